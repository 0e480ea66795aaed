"""What networks learn from: contexts of a melody or windows of piano rolls, batch by batch, each transposed.

An `Examples` knows how many there are, how far each may be moved, and what a batch of them is to its network.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from music_evals.annotations import HOLD, LOWEST_PITCH, N_ROLL_PITCHES, PianoRoll, Tokens
from music_evals.errors import NoDataError

__all__ = [
    "Examples",
    "RollExamples",
    "RollWindows",
    "TokenExamples",
    "draw_transpositions",
    "hash_arrays",
    "transpose",
]

Shifts = npt.NDArray[np.int64]


class Examples(Protocol):
    """What is learnt from."""

    def __len__(self) -> int:
        """Return how many there are."""
        ...

    def draw_transpositions(
        self, low: int, high: int, rng: np.random.Generator, *, pitch_range: tuple[int, int] = (0, 127)
    ) -> Shifts:
        """Return how far each is moved in an epoch, semitones, shape (n,); low <= 0 <= high, both included."""
        ...

    def batch(self, rows: Shifts, shifts: Shifts, device: str) -> Any:
        """Return some of them, moved, as the network takes them."""
        ...

    def content_hash(self) -> str:
        """Return a hash of all of them, in their order."""
        ...


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

    Parameters
    ----------
    rolls
        At least one; all on one grid.
    window
        Steps on either side.
    stride
        Every so many steps of each roll is an example, its first step among them.

    Raises
    ------
    NoDataError
        There are no rolls.

    """

    def __init__(self, rolls: Sequence[PianoRoll], window: int, stride: int = 1) -> None:
        if not rolls:
            raise NoDataError("there are no rolls to learn from; name a split that has pieces")
        self.window, self.stride = window, stride
        self.ends = np.cumsum([-(-len(roll) // stride) for roll in rolls])
        self.padded = [_padded(roll, window) for roll in rolls]
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
        piece = self._piece(np.arange(len(self)))
        lows, highs = np.maximum(low, bottom - self.lowest), np.minimum(high, top - self.highest)
        shifts: Shifts = rng.integers(np.minimum(lows, 0)[piece], np.maximum(highs, 0)[piece], endpoint=True)
        return shifts

    def batch(self, rows: Shifts, shifts: Shifts, device: str) -> RollWindows:
        """Return the windows around some steps, moved."""
        pieces = self._piece(rows)
        starts = (rows - np.concatenate([[0], self.ends])[pieces]) * self.stride  # of the windows, in padded rolls
        length = 2 * self.window + 1
        cut = [
            [array[start : start + length] for array in self.padded[piece]]
            for piece, start in zip(pieces, starts, strict=True)
        ]
        *notes, meta = (np.stack(arrays) for arrays in zip(*cut, strict=True))
        arrays = [*(_moved(array, shifts) for array in notes), meta]
        return RollWindows(*(torch.from_numpy(array).to(device) for array in arrays))

    def content_hash(self) -> str:
        """Return a hash of the rolls, and of where their examples start and how far they reach."""
        return hash_arrays([np.array([self.window, self.stride]), *(array for roll in self.padded for array in roll)])

    def _piece(self, rows: Shifts) -> Shifts:
        return np.searchsorted(self.ends, rows, side="right")


def hash_arrays(arrays: Iterable[npt.NDArray[Any]]) -> str:
    """Return a hash of arrays, each with its shape."""
    sha256 = hashlib.sha256()
    for array in arrays:
        sha256.update(repr((array.shape, array.dtype.str)).encode() + array.tobytes())
    return sha256.hexdigest()


def _padded(roll: PianoRoll, window: int) -> tuple[npt.NDArray[Any], ...]:
    """Return cells, onsets, offsets and metadata of a roll with silence on either side."""
    notes = (np.pad(array, ((window, window), (0, 0))) for array in (roll.cells, roll.onsets, roll.offsets))
    meta = np.zeros((len(roll) + 2 * window, 4), dtype=np.float32)
    meta[:window, 0] = meta[window + len(roll) :, 1] = 1
    meta[window : window + len(roll), 2:] = np.stack([roll.beat_phase, roll.bar_phase], axis=1)
    return (*notes, meta)


def _moved(windows: npt.NDArray[np.bool_], shifts: Shifts) -> npt.NDArray[np.bool_]:
    """Return each window (n, steps, 84) moved by its own number of pitches; what leaves the range is lost."""
    sources = np.arange(N_ROLL_PITCHES) - shifts[:, None]
    inside = (sources >= 0) & (sources < N_ROLL_PITCHES)
    moved = np.take_along_axis(windows, np.clip(sources, 0, N_ROLL_PITCHES - 1)[:, None, :], axis=2)
    return moved & inside[:, None, :]


def transpose(contexts: Tokens, semitones: npt.NDArray[np.int64]) -> Tokens:
    """Transpose each context by its own number of semitones; holds and rests stay.

    Parameters
    ----------
    contexts
        Shape (n, steps), values 0..129.
    semitones
        Shape (n,); every moved pitch must stay in 0..127 (see `draw_transpositions`).

    Returns
    -------
    Tokens
        A new array; transposing it by ``-semitones`` gives back `contexts`.

    """
    moved = contexts + semitones[:, None]
    return np.where(contexts < HOLD, moved, contexts).astype(np.uint8)


def draw_transpositions(
    contexts: Tokens, low: int, high: int, rng: np.random.Generator, *, pitch_range: tuple[int, int] = (0, 127)
) -> npt.NDArray[np.int64]:
    """Draw a transposition for each context, uniform over those in low..high that keep its pitches in a range.

    Parameters
    ----------
    contexts
        Shape (n, steps), values 0..129.
    low, high
        Semitones, low <= 0 <= high; both included.
    rng
        The source of randomness.
    pitch_range
        Lowest and highest pitch that the network knows; a context that leaves it already is moved no further out.

    Returns
    -------
    numpy.ndarray
        Shape (n,), int64.

    """
    bottom, top = pitch_range
    onsets = contexts < HOLD
    lowest = np.where(onsets, contexts, top).min(axis=1, initial=top).astype(np.int64)
    highest = np.where(onsets, contexts, bottom).max(axis=1, initial=bottom).astype(np.int64)
    shifts: npt.NDArray[np.int64] = rng.integers(
        np.maximum(low, np.minimum(bottom - lowest, 0)), np.minimum(high, np.maximum(top - highest, 0)), endpoint=True
    )
    return shifts
