"""The contexts of a recipe: the windows of its datasets, or cut anew out of whole voices at other places."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from music_evals.annotations import MUSIB_LAYOUT, Tokens
from music_evals.errors import InvalidInputError, NoDataError
from music_evals.models.recipe import DataConfig, MoreData
from music_evals.protocols import prepared_place
from music_evals.symbolic.noteseq import check_contexts
from music_evals.windows import DATASETS, find_window

__all__ = ["cut_voices", "training_contexts", "validation_contexts", "whole_voices"]

# Columns that say where a window was cut: of which voice of which song, and at which measure.
_VOICE_COLUMNS = ("song", "voice", "start")
_MEASURE = MUSIB_LAYOUT.steps_per_measure


def training_contexts(data: DataConfig, folder: Path) -> Tokens:
    """Return the training contexts of all datasets, shape (n, 384), cut anew where the recipe says so."""
    contexts = []
    parts: list[DataConfig | MoreData] = [data, *data.also]
    for some in parts:
        columns, tokens = _load_split(some, some.train, folder)
        if data.stride_steps is not None:
            tokens = cut_voices(whole_voices(columns, tokens), tokens.shape[1], data.stride_steps)
        contexts.append(tokens)
    return np.concatenate(contexts)


def validation_contexts(data: DataConfig, folder: Path) -> Tokens:
    """Return the validation contexts as they are, shape (n, 384)."""
    return _load_split(data, data.validation, folder)[1]


def _load_split(data: DataConfig | MoreData, split: str, folder: Path) -> tuple[dict[str, npt.NDArray[Any]], Tokens]:
    """Return what a split says of where its windows were cut, and the windows."""
    from datasets import load_dataset

    beside = folder / data.dataset
    place, local = (str(beside), True) if beside.exists() else find_window(data.dataset, DATASETS, "dataset")
    if local:
        place = prepared_place(place, data.config)
    try:
        rows = load_dataset(place, data.config, split=split)
    except (FileNotFoundError, ValueError, ConnectionError) as error:
        raise NoDataError(
            f"cannot load split {split!r} of {data.dataset} ({data.config}), looked for in {place}: {error}"
        ) from error
    if len(rows) == 0:
        raise NoDataError(f"split {split!r} of {data.dataset} ({data.config}) is empty; training needs contexts")
    wanted = [name for name in ("tokens", *_VOICE_COLUMNS) if name in rows.column_names]
    columns = rows.select_columns(wanted).with_format("numpy")[:]
    return columns, check_contexts(np.stack(columns.pop("tokens")))


def whole_voices(columns: Mapping[str, npt.NDArray[Any]], windows: Tokens) -> list[Tokens]:
    """Return the voices that the windows were cut out of, in the order of their first windows.

    Windows that overlap become one stretch; where there is none for so long that two do not touch, a new stretch
    begins.

    Parameters
    ----------
    columns
        `song`, `voice` and `start`, shape (n,) each; a start is counted in measures.
    windows
        Shape (n, steps), values 0..129.

    Raises
    ------
    InvalidInputError
        A column is missing, or two windows differ where they overlap.

    """
    missing = [name for name in _VOICE_COLUMNS if name not in columns]
    if missing:
        raise InvalidInputError(
            f"stride_steps wants the columns {', '.join(_VOICE_COLUMNS)}; the dataset lacks {', '.join(missing)}: "
            "leave stride_steps out to train on its windows as they are"
        )
    found: dict[tuple[str, str], list[tuple[int, int]]] = {}
    for row, (song, voice, start) in enumerate(zip(*(columns[name] for name in _VOICE_COLUMNS), strict=True)):
        found.setdefault((str(song), str(voice)), []).append((int(start), row))
    voices: list[Tokens] = []
    for (song, voice), places in found.items():
        first, whole = 0, np.empty(0, dtype=np.uint8)
        for start, row in sorted(places):
            offset = (start - first) * _MEASURE
            if offset > len(whole) or not len(whole):
                voices += [whole] if len(whole) else []
                first, whole, offset = start, windows[row], 0
                continue
            shared = len(whole) - offset
            if not np.array_equal(whole[offset:], windows[row][:shared]):
                raise InvalidInputError(
                    f"the windows of {song}, {voice}, differ where they overlap, at measure {start}"
                )
            whole = np.concatenate([whole, windows[row][shared:]])
        voices.append(whole)
    return voices


def cut_voices(voices: Sequence[Tokens], n_steps: int, stride_steps: int) -> Tokens:
    """Return the windows of `n_steps` of all voices that start at every `stride_steps` steps, shape (n, n_steps)."""
    windows = [
        np.lib.stride_tricks.sliding_window_view(voice, n_steps)[::stride_steps]
        for voice in voices
        if len(voice) >= n_steps
    ]
    return np.concatenate([np.empty((0, n_steps), dtype=np.uint8), *windows])
