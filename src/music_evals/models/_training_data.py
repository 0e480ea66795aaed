"""What a recipe's datasets hold to learn from: windows of melodies, also cut anew out of whole voices, or pieces."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from music_evals.annotations import MUSIB_LAYOUT, PianoRoll, Tokens
from music_evals.errors import InvalidInputError, NoDataError, UnknownNameError, located
from music_evals.files import check_no_pointers_below
from music_evals.models.examples import Examples, RollExamples, TokenExamples
from music_evals.models.recipe import DataConfig, MoreData
from music_evals.protocols import PREPARED_DATASETS, STYLE_TRANSFERS, prepared_place
from music_evals.repositories import DATASETS, find_repository
from music_evals.symbolic.encodings.piano_rolls import piano_roll
from music_evals.symbolic.noteseq import check_contexts
from music_evals.symbolic.piece_rows import score_of_row

__all__ = ["cut_voices", "recipe_examples", "rolls_of_split", "training_contexts", "whole_voices"]

Read = TypeVar("Read")

# Columns that say where a window was cut: of which voice of which song, and at which measure.
_VOICE_COLUMNS = ("song", "voice", "start")
_MEASURE = MUSIB_LAYOUT.steps_per_measure


def recipe_examples(model_type: str, config: Any, data: DataConfig, folder: Path) -> tuple[Examples, Examples]:
    """Return what a network is trained on and what it is validated on.

    Parameters
    ----------
    model_type
        One of `protocols.STYLE_TRANSFERS` learns from piano rolls, any other from contexts of a melody.
    config
        Of the network; for rolls its `window` and `steps_per_quarter` are read.
    data, folder
        The recipe's data, and where the recipe lies.

    Raises
    ------
    NoDataError
        A split is missing or empty.
    InvalidInputError
        A setting of melodies for rolls or the other way round, or rows of another kind or grid.

    """
    of_rolls = model_type in STYLE_TRANSFERS
    other = "stride_steps" if of_rolls else "validation_stride_steps"
    if getattr(data, other) is not None:
        raise InvalidInputError(
            f"{other} is for networks of {'melodies' if of_rolls else 'piano rolls'}, not for {model_type}; "
            "leave it out of the recipe"
        )
    if not of_rolls:
        validation = _load_split(data, data.validation, folder, _tokens)[1]
        return TokenExamples(training_contexts(data, folder)), TokenExamples(validation)
    parts: list[DataConfig | MoreData] = [data, *data.also]
    train = [roll for some in parts for roll in rolls_of_split(some, some.train, folder, config.steps_per_quarter)]
    rolls = rolls_of_split(data, data.validation, folder, config.steps_per_quarter)
    return (
        RollExamples(train, config.window),
        RollExamples(rolls, config.window, stride=data.validation_stride_steps or 1),
    )


def rolls_of_split(data: DataConfig | MoreData, split: str, folder: Path, steps_per_quarter: int) -> list[PianoRoll]:
    """Return the pieces of a split as rolls, all voices of each in one.

    Raises
    ------
    NoDataError
        The split is missing or empty.
    InvalidInputError
        Rows of another kind, or on another grid than `steps_per_quarter`.

    """

    def rolls(rows: Any) -> list[PianoRoll]:
        pieces = []
        for row in rows:
            score = score_of_row(row)
            if score.ticks_per_quarter != steps_per_quarter:
                raise InvalidInputError(
                    f"the rows have {score.ticks_per_quarter} steps a quarter, the network {steps_per_quarter}; set "
                    "model.steps_per_quarter, or name another config"
                )
            pieces.append(piano_roll(score, steps_per_quarter=steps_per_quarter))
        return pieces

    return _load_split(data, split, folder, rolls)


def training_contexts(data: DataConfig, folder: Path) -> Tokens:
    """Return the training contexts of all datasets, shape (n, 384), cut anew where the recipe says so."""
    contexts = []
    parts: list[DataConfig | MoreData] = [data, *data.also]
    for some in parts:
        columns, tokens = _load_split(some, some.train, folder, _tokens)
        if data.stride_steps is not None:
            tokens = cut_voices(whole_voices(columns, tokens), tokens.shape[1], data.stride_steps)
        contexts.append(tokens)
    return np.concatenate(contexts)


def _load_split(data: DataConfig | MoreData, split: str, folder: Path, read: Callable[[Any], Read]) -> Read:
    """Return what a function reads out of the rows of a split."""
    from datasets import get_dataset_config_names, load_dataset
    from datasets.exceptions import DatasetGenerationError

    beside = folder / data.dataset
    place, local = (str(beside), True) if beside.exists() else find_repository(data.dataset, DATASETS, "dataset")
    if local:
        place = prepared_place(place, data.config)
    try:
        rows = load_dataset(place, data.config, split=split)
    except (FileNotFoundError, ValueError, ConnectionError, DatasetGenerationError) as error:
        check_no_pointers_below(place)
        try:
            configs = {*get_dataset_config_names(place), *PREPARED_DATASETS.get(Path(place).name, ())}
        except (OSError, ValueError, RuntimeError):  # what is wrong is not the config
            configs = {data.config}
        if data.config not in configs:
            kind = f"config of {data.dataset}"
            raise UnknownNameError(kind, str(data.config), configs) from error
        reason = error.__cause__ or error
        raise NoDataError(
            f"cannot load split {split!r} of {data.dataset} ({data.config}), looked for in {place}: {reason}"
        ) from error
    if len(rows) == 0:
        raise NoDataError(f"split {split!r} of {data.dataset} ({data.config}) is empty; training needs examples")
    try:
        return read(rows)
    except InvalidInputError as error:
        raise located(error, f"{data.dataset} ({data.config}), split {split}") from error


def _tokens(rows: Any) -> tuple[dict[str, npt.NDArray[Any]], Tokens]:
    """Return what rows say of where their windows were cut, and the windows."""
    if "tokens" not in rows.column_names:
        raise InvalidInputError(
            f"no column tokens; expected windows of 384 NoteSeq tokens, got {', '.join(rows.column_names)}: name a "
            "config that has them, or train a network of piano rolls"
        )
    wanted = [name for name in ("tokens", *_VOICE_COLUMNS) if name in rows.column_names]
    columns = rows.select_columns(wanted).with_format("numpy")[:]
    return columns, check_contexts(np.stack(columns.pop("tokens")))


def whole_voices(columns: Mapping[str, npt.NDArray[Any]], windows: Tokens) -> list[Tokens]:
    """Return the voices that the windows were cut out of, in the order of their first windows.

    Windows that overlap become one stretch; a gap between two windows begins a new one.

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
    places_of_voice: dict[tuple[str, str], list[tuple[int, int]]] = {}
    for row, (song, voice, start) in enumerate(zip(*(columns[name] for name in _VOICE_COLUMNS), strict=True)):
        places_of_voice.setdefault((str(song), str(voice)), []).append((int(start), row))
    voices: list[Tokens] = []
    for (song, voice), places in places_of_voice.items():
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
