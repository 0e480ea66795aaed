"""Columns of a dataset as arrays: whatever a stranger's table holds, it is checked before it is believed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from music_evals.annotations import MUSIB_LAYOUT, Tokens
from music_evals.errors import ContextLengthError, InvalidInputError, MusicEvalsError, located
from music_evals.symbolic import noteseq

__all__ = ["read_contexts", "read_flags", "read_names", "read_shares"]


def read_names(table: Any, name: str, dataset: str) -> tuple[str, ...]:
    """Return a column of ids as text."""
    from pyarrow import types

    column = table[name]
    kind = column.type
    text = types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)
    if not text and not types.is_integer(kind):
        raise InvalidInputError(f"{dataset}: column {name} holds {kind}; expected text or whole numbers")
    _check_no_nulls(column, name, dataset)
    return tuple(map(str, column.to_pylist()))


def read_flags(table: Any, name: str, dataset: str) -> npt.NDArray[np.bool_] | None:
    """Return a column of true and false, or None where the table has none of this name."""
    from pyarrow import types

    column = _known(table, name, dataset, types.is_boolean, "true and false (bool)")
    return None if column is None else column.to_numpy().astype(bool)


def read_shares(table: Any, name: str, dataset: str) -> npt.NDArray[np.float64] | None:
    """Return a column of numbers from 0 to 1, or None where the table has none of this name."""
    from pyarrow import types

    column = _known(table, name, dataset, types.is_floating, "numbers from 0 to 1 (float)")
    if column is None:
        return None
    shares: npt.NDArray[np.float64] = column.to_numpy().astype(np.float64)
    wrong = np.flatnonzero(~((shares >= 0) & (shares <= 1)))
    if wrong.size:
        raise InvalidInputError(
            f"{dataset}: column {name} holds {shares[wrong[0]]:g} in row {wrong[0]}; expected numbers from 0 to 1"
        )
    return shares


def _known(table: Any, name: str, dataset: str, fits: Callable[[Any], bool], wanted: str) -> Any:
    """Return a column whose type fits, with a value in every row; None where the table has none of this name."""
    if name not in table.column_names:
        return None
    column = table[name]
    if not fits(column.type):
        raise InvalidInputError(f"{dataset}: column {name} holds {column.type}; expected {wanted}, or no such column")
    _check_no_nulls(column, name, dataset)
    return column


def read_contexts(table: Any, item_ids: tuple[str, ...], dataset: str) -> Tokens:
    """Return the column ``tokens`` as (n, 384), checked."""
    import pyarrow.compute as pc
    from pyarrow import types

    column = table["tokens"]
    kind = column.type
    lists = types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)
    if not lists or not types.is_integer(kind.value_type):
        raise InvalidInputError(
            f"{dataset}: column tokens holds {kind}; expected lists of {MUSIB_LAYOUT.n_steps} whole numbers"
        )
    lengths = pc.fill_null(pc.list_value_length(column), 0).to_numpy()
    wrong = np.flatnonzero(lengths != MUSIB_LAYOUT.n_steps)
    if wrong.size:
        raise ContextLengthError(
            f"{dataset}: item {item_ids[wrong[0]]!r} has {lengths[wrong[0]]} tokens; expected "
            f"{MUSIB_LAYOUT.n_steps} (16 measures of 24 steps)"
        )
    flat = column.combine_chunks().flatten()
    # -1 is no token: a step without a value is refused with the tokens outside the vocabulary
    values = pc.fill_null(flat.cast("int64", safe=False), -1) if flat.null_count else flat
    return _check(values.to_numpy(zero_copy_only=False).reshape(-1, MUSIB_LAYOUT.n_steps), item_ids, dataset)


def _check(rows: npt.NDArray[np.generic], item_ids: tuple[str, ...], dataset: str) -> Tokens:
    try:
        return noteseq.check_contexts(rows)
    except MusicEvalsError:
        for item, row in zip(item_ids, rows, strict=True):
            try:
                noteseq.check_contexts(row[None])
            except MusicEvalsError as error:
                raise located(error, f"{dataset}: item {item!r}") from error
        raise


def _check_no_nulls(column: Any, name: str, dataset: str) -> None:
    if column.null_count:
        row = next(index for index, value in enumerate(column) if not value.is_valid)
        raise InvalidInputError(
            f"{dataset}: column {name} has no value in {column.null_count} rows, the first is row {row}; fill them in"
        )
