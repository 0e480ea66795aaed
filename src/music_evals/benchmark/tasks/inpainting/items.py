"""Items of a run: contexts of one split of a dataset, checked once, with an id, a song and a fingerprint."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from music_evals.annotations import MUSIB_LAYOUT, Tokens
from music_evals.benchmark.inputs import load_split, resolve_revision
from music_evals.errors import ContextLengthError, InvalidInputError, MusicEvalsError, NoDataError, located
from music_evals.symbolic import noteseq

TRAIN_CONFIGS = {"musib_official": "musib"}
"""Config that baselines are fitted on, where a config has no train split of its own."""


@dataclasses.dataclass(frozen=True, eq=False)
class ItemSet:
    """Whole contexts that systems are scored on."""

    # Where they came from; config may be None, and revision, the commit on the Hub, is None for local files.
    dataset: str
    config: str | None
    split: str
    item_ids: tuple[str, ...]  # one id an item, without repetitions
    songs: tuple[str, ...]  # cluster of each item: windows of one song are no independent observations
    contexts: Tokens  # shape (n, 384), uint8 NoteSeq tokens 0..129
    # Shape (n,), True where the middle occurs in a training window; None where that is not known.
    seen_in_train: npt.NDArray[np.bool_] | None = None
    # Shape (n,), 0..1, how near the middle comes to a training passage, and to one of its own context; or not known.
    near_train: npt.NDArray[np.float64] | None = None
    repeats_in_context: npt.NDArray[np.float64] | None = None
    voices: tuple[str, ...] | None = None  # which voice of its song each item is; None where that is not known
    revision: str | None = None
    # Item id -> reason, for items that could not be read. They have no row in `contexts`.
    failures: Mapping[str, str] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        noteseq.check_contexts(self.contexts)
        n = len(self.item_ids)
        if n == 0 and not self.failures:
            raise NoDataError(f"{self.dataset}, split {self.split}: no items; nothing can be judged")
        if not len(self.songs) == len(self.contexts) == n:
            raise InvalidInputError(
                f"{n} item ids, {len(self.songs)} songs and {len(self.contexts)} contexts; expected equal numbers"
            )
        if len(set(self.item_ids)) < n:
            twice = next(item for item in self.item_ids if self.item_ids.count(item) > 1)
            raise InvalidInputError(
                f"item id {twice!r} occurs twice in {self.dataset}, split {self.split}; ids must be unique"
            )

    def __len__(self) -> int:
        return len(self.item_ids)

    @functools.cached_property
    def fingerprint(self) -> str:
        """Hash of the content: ids, songs, tokens and what is known of them."""
        digest = hashlib.sha256()
        digest.update("\0".join((*self.item_ids, *self.songs, *sorted(self.failures))).encode())
        digest.update(np.ascontiguousarray(self.contexts).tobytes())
        for column in (self.seen_in_train, self.near_train, self.repeats_in_context):
            if column is not None:
                digest.update(column.tobytes())
        if self.voices is not None:
            digest.update("\0".join(self.voices).encode())
        return digest.hexdigest()[:16]

    @property
    def middles(self) -> Tokens:
        """The true middles, shape (n, 96)."""
        return self.contexts[:, MUSIB_LAYOUT.middle]

    def head(self, n: int | None) -> ItemSet:
        """Return the first `n` items, or all of them for None."""
        if n is None or n >= len(self):
            return self
        names = ("item_ids", "songs", "contexts", "seen_in_train", "near_train", "repeats_in_context", "voices")
        columns = {name: column[:n] for name in names if (column := getattr(self, name)) is not None}
        return dataclasses.replace(self, **columns)


def load_items(dataset: str, config: str | None, split: str, *, revision: str | None = None) -> ItemSet:
    """Load one split of a dataset (a name under ``datasets_scripts``, a folder or a Hub id) of contexts.

    Its columns are ``item_id``, ``song``, ``tokens`` and, where there are such, ``seen_in_train``, ``near_train``,
    ``repeats_in_context`` and ``voice``. The revision of the items is the commit that was read, or None for a folder.
    """
    revision = resolve_revision(dataset, revision)
    rows = load_split(dataset, config, split, revision=revision)
    table, config = rows.with_format("arrow")[:], rows.info.config_name
    missing = [name for name in ("item_id", "song", "tokens") if name not in table.column_names]
    if missing:
        raise InvalidInputError(
            f"{dataset}, split {split}: no column {', '.join(missing)}; expected item_id, song and tokens (384 NoteSeq "
            f"tokens), got {', '.join(table.column_names)}"
        )
    item_ids = _read_column(table, "item_id", dataset, str)
    return ItemSet(
        dataset=dataset,
        config=config,
        split=split,
        revision=revision,
        item_ids=item_ids,
        songs=_read_column(table, "song", dataset, str),
        contexts=_read_contexts(table, item_ids, dataset),
        seen_in_train=_read_column(table, "seen_in_train", dataset, bool),
        near_train=_read_column(table, "near_train", dataset, float),
        repeats_in_context=_read_column(table, "repeats_in_context", dataset, float),
        voices=_read_column(table, "voice", dataset, str),
    )


# Columns of a dataset as arrays: whatever a stranger's table holds, it is checked before it is believed.


def _read_column(table: Any, name: str, dataset: str, kind: type[str | bool | float]) -> Any:
    """Return a column of ids as text, or of true and false or of numbers from 0 to 1 as an array; None without it."""
    from pyarrow import types

    if name not in table.column_names:
        return None
    text = (types.is_string, types.is_large_string, types.is_string_view, types.is_integer)
    form, checks = {
        str: ("text or whole numbers", text),
        bool: ("true and false (bool), or no such column", (types.is_boolean,)),
        float: ("numbers from 0 to 1 (float), or no such column", (types.is_floating,)),
    }[kind]
    column = table[name]
    if not any(check(column.type) for check in checks):
        raise InvalidInputError(f"{dataset}: column {name} holds {column.type}; expected {form}")
    if column.null_count:
        row = next(index for index, value in enumerate(column) if not value.is_valid)
        raise InvalidInputError(
            f"{dataset}: column {name} has no value in {column.null_count} rows, the first is row {row}; fill them in"
        )
    if kind is str:
        return tuple(map(str, column.to_pylist()))
    values: npt.NDArray[Any] = column.to_numpy().astype(kind)
    wrong = np.flatnonzero(~((values >= 0) & (values <= 1)))
    if wrong.size:
        raise InvalidInputError(
            f"{dataset}: column {name} holds {values[wrong[0]]:g} in row {wrong[0]}; expected numbers from 0 to 1"
        )
    return values


def _read_contexts(table: Any, item_ids: tuple[str, ...], dataset: str) -> Tokens:
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
    rows = values.to_numpy(zero_copy_only=False).reshape(-1, MUSIB_LAYOUT.n_steps)
    try:
        return noteseq.check_contexts(rows)
    except MusicEvalsError:
        for item, row in zip(item_ids, rows, strict=True):
            try:
                noteseq.check_contexts(row[None])
            except MusicEvalsError as error:
                raise located(error, f"{dataset}: item {item!r}") from error
        raise
