"""What is learnt from: windows of melodies, also cut anew out of whole voices, piano rolls, and rows of songs."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from music_evals.annotations import HOLD, LOWEST_PITCH, MUSIB_LAYOUT, N_ROLL_PITCHES, PianoRoll, Tokens
from music_evals.errors import InvalidInputError, NoDataError, UnknownNameError, located
from music_evals.files import check_no_pointers_below, json_lines, reading
from music_evals.models.training.recipe import DataConfig, MoreData
from music_evals.protocols import PREPARED_DATASETS, STYLE_TRANSFERS, prepared_place
from music_evals.repositories import DATASETS, find_repository
from music_evals.symbolic.encodings.piano_rolls import piano_roll
from music_evals.symbolic.noteseq import check_contexts
from music_evals.symbolic.piece_rows import score_of_row

__all__ = [
    "Examples", "RollExamples", "RollWindows", "TokenExamples", "beside", "cut_voices", "draw_transpositions",
    "hash_arrays", "recipe_examples", "rolls_of_split", "song_rows", "training_contexts", "transpose", "whole_voices",
]  # fmt: skip

Shifts = npt.NDArray[np.int64]
Read = TypeVar("Read")

# Columns that say where a window was cut: of which voice of which song, and at which measure.
_VOICE_COLUMNS = ("song", "voice", "start")
_MEASURE = MUSIB_LAYOUT.steps_per_measure


class TokenExamples:
    """Contexts of a melody, shape (n, steps), values 0..129; a batch is int64, (rows, steps)."""

    def __init__(self, contexts: Tokens) -> None:
        self.contexts = contexts

    def __len__(self) -> int:
        """Return the number of contexts."""
        return len(self.contexts)

    def draw_transpositions(
        self, low: int, high: int, rng: np.random.Generator, *, pitch_range: tuple[int, int] = (0, 127)
    ) -> Shifts:
        """Return what `draw_transpositions` draws."""
        return draw_transpositions(self.contexts, low, high, rng, pitch_range=pitch_range)

    def batch(self, rows: Shifts, shifts: Shifts, device: str) -> Tensor:
        """Return some contexts, moved."""
        moved = transpose(self.contexts[rows], shifts)
        return torch.from_numpy(moved.astype(np.int64)).to(device)

    def content_hash(self) -> str:
        """Return a hash of the contexts and their number."""
        return hash_arrays([self.contexts.astype(np.uint8)])


class RollWindows(NamedTuple):
    """Steps of rolls with what lies around them, cut out for training; n windows of 2 window + 1 steps."""

    cells: Tensor
    """Shape (n, steps, 84), bool; so are the next two."""
    onsets: Tensor
    offsets: Tensor
    meta: Tensor
    """Padding before, padding after, positions in beat and bar: (n, steps, 4), 0..1."""


class RollExamples:
    """The steps of piano rolls, each in the middle of a window; a batch is a `RollWindows`.

    `rolls`: at least one, all on one grid, else `NoDataError`; `window`: steps on either side; `stride`: every so many
    steps of each roll is an example, its first step among them.
    """

    def __init__(self, rolls: Sequence[PianoRoll], window: int, stride: int = 1) -> None:
        if not rolls:
            raise NoDataError("there are no rolls to learn from; name a split that has pieces")
        self.window, self.stride = window, stride
        self.ends = np.cumsum([-(-len(roll) // stride) for roll in rolls])
        self.padded: list[tuple[npt.NDArray[Any], ...]] = []
        for roll in rolls:  # cells, onsets, offsets and metadata, with silence on either side
            notes = (np.pad(array, ((window, window), (0, 0))) for array in (roll.cells, roll.onsets, roll.offsets))
            meta = np.zeros((len(roll) + 2 * window, 4), dtype=np.float32)
            meta[:window, 0] = meta[window + len(roll) :, 1] = 1
            meta[window : window + len(roll), 2:] = np.stack([roll.beat_phase, roll.bar_phase], axis=1)
            self.padded.append((*notes, meta))
        sounding = [np.flatnonzero(roll.cells.any(axis=0)) for roll in rolls]
        # a silent roll may be moved as far as any
        self.lowest, self.highest = (
            np.array([edge(columns) if len(columns) else N_ROLL_PITCHES // 2 for columns in sounding]) + LOWEST_PITCH
            for edge in (np.min, np.max)
        )

    def __len__(self) -> int:
        """Return the number of steps, of all rolls, that are examples."""
        return int(self.ends[-1])

    def draw_transpositions(
        self,
        low: int,
        high: int,
        rng: np.random.Generator,
        *,
        pitch_range: tuple[int, int] = (LOWEST_PITCH, LOWEST_PITCH + N_ROLL_PITCHES - 1),
    ) -> Shifts:
        """Return shifts that are uniform over those that keep the whole piece of a step in a range."""
        bottom, top = max(pitch_range[0], LOWEST_PITCH), min(pitch_range[1], LOWEST_PITCH + N_ROLL_PITCHES - 1)
        piece = np.searchsorted(self.ends, np.arange(len(self)), side="right")
        lows, highs = np.maximum(low, bottom - self.lowest), np.minimum(high, top - self.highest)
        shifts: Shifts = rng.integers(np.minimum(lows, 0)[piece], np.maximum(highs, 0)[piece], endpoint=True)
        return shifts

    def batch(self, rows: Shifts, shifts: Shifts, device: str) -> RollWindows:
        """Return the windows around some steps, moved."""
        pieces = np.searchsorted(self.ends, rows, side="right")
        starts = (rows - np.concatenate([[0], self.ends])[pieces]) * self.stride  # of the windows, in padded rolls
        length = 2 * self.window + 1
        cut = [
            [array[start : start + length] for array in self.padded[piece]]
            for piece, start in zip(pieces, starts, strict=True)
        ]
        *notes, meta = (np.stack(arrays) for arrays in zip(*cut, strict=True))
        # each window moved by its own number of pitches; what leaves the range is lost
        sources = np.arange(N_ROLL_PITCHES) - shifts[:, None]
        inside = ((sources >= 0) & (sources < N_ROLL_PITCHES))[:, None, :]
        sources = np.clip(sources, 0, N_ROLL_PITCHES - 1)[:, None, :]
        arrays = [*(np.take_along_axis(array, sources, axis=2) & inside for array in notes), meta]
        return RollWindows(*(torch.from_numpy(array).to(device) for array in arrays))

    def content_hash(self) -> str:
        """Return a hash of the rolls, and of where their examples start and how far they reach."""
        return hash_arrays([np.array([self.window, self.stride]), *(array for roll in self.padded for array in roll)])


Examples = TokenExamples | RollExamples
"""What a network learns from: how many there are, how far each may be moved, and what a batch of them is."""


def hash_arrays(arrays: Iterable[npt.NDArray[Any]]) -> str:
    """Return a hash of arrays, each with its shape."""
    sha256 = hashlib.sha256()
    for array in arrays:
        sha256.update(repr((array.shape, array.dtype.str)).encode() + array.tobytes())
    return sha256.hexdigest()


def transpose(contexts: Tokens, semitones: npt.NDArray[np.int64]) -> Tokens:
    """Transpose each context by its own number of semitones; holds and rests stay."""
    moved = contexts + semitones[:, None]
    return np.where(contexts < HOLD, moved, contexts).astype(np.uint8)


def draw_transpositions(
    contexts: Tokens, low: int, high: int, rng: np.random.Generator, *, pitch_range: tuple[int, int] = (0, 127)
) -> npt.NDArray[np.int64]:
    """Draw a transposition for each context, uniform over those in low..high that keep its pitches in a range."""
    bottom, top = pitch_range
    onsets = contexts < HOLD
    lowest = np.where(onsets, contexts, top).min(axis=1, initial=top).astype(np.int64)
    highest = np.where(onsets, contexts, bottom).max(axis=1, initial=bottom).astype(np.int64)
    shifts: npt.NDArray[np.int64] = rng.integers(
        np.maximum(low, np.minimum(bottom - lowest, 0)), np.minimum(high, np.maximum(top - highest, 0)), endpoint=True
    )
    return shifts


# --- what a recipe of notes names


def recipe_examples(model_type: str, config: Any, data: DataConfig, folder: Path) -> tuple[Examples, Examples]:
    """Return what a network is trained on and what it is validated on."""
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
    """Return the pieces of a split as rolls, all voices of each in one."""

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
    rows = _load_rows(data.dataset, data.config, split, folder)
    if len(rows) == 0:
        raise NoDataError(f"split {split!r} of {data.dataset} ({data.config}) is empty; training needs examples")
    try:
        return read(rows)
    except InvalidInputError as error:
        raise located(error, f"{data.dataset} ({data.config}), split {split}") from error


def _load_rows(dataset: str, config: str | None, split: str, folder: Path) -> Any:
    """Return the rows of a split of a folder, relative to the recipe's, a name, or an id on the Hub."""
    from datasets import get_dataset_config_names, load_dataset
    from datasets.exceptions import DatasetGenerationError

    place, local = (
        (str(folder / dataset), True) if (folder / dataset).exists() else find_repository(dataset, DATASETS, "dataset")
    )
    if local:
        place = prepared_place(place, config)
    try:
        return load_dataset(place, config, split=split)
    except (FileNotFoundError, ValueError, ConnectionError, DatasetGenerationError) as error:
        check_no_pointers_below(place)
        try:
            configs = {*get_dataset_config_names(place), *PREPARED_DATASETS.get(Path(place).name, ())}
        except (OSError, ValueError, RuntimeError):  # what is wrong is not the config
            configs = {config}
        if config is not None and config not in configs:
            raise UnknownNameError(f"config of {dataset}", str(config), configs) from error
        reason = error.__cause__ or error
        raise NoDataError(
            f"cannot load split {split!r} of {dataset} ({config}), looked for in {place}: {reason}"
        ) from error


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


# --- rows of songs


def song_rows(dataset: str, config: str | None, split: str, folder: Path) -> Any:
    """Return the rows of a split: a list where they are JSON lines, else a `datasets.Dataset` with undecoded audio.

    The dataset is a folder, a file of JSON lines, a name, or an id on the Hub; a path is relative to the folder of the
    recipe, or else to the working folder.
    """
    import datasets

    place = beside(folder, dataset)
    if place.is_file():
        with reading(place):
            content = place.read_bytes()
        return [row for _, row in json_lines(content, place)]
    rows = _load_rows(dataset, config, split, folder)
    for column, kind in rows.features.items():
        if isinstance(kind, datasets.Audio):  # we decode, and only what is needed
            rows = rows.cast_column(column, datasets.Audio(decode=False))
    return rows


def beside(folder: Path, name: str) -> Path:
    """Return a path that stands in a recipe."""
    return folder / name if (folder / name).exists() else Path(name)


def check_ids(ids: Sequence[str], place: str) -> None:
    """Raise where two rows have one id, or a row has none."""
    if len(set(ids)) != len(ids) or "None" in ids:
        twice = next((name for name, count in Counter(ids).items() if count > 1), "None")
        raise InvalidInputError(
            f"{place}: every row needs an id of its own, got {twice!r} more than once or none at all"
        )
