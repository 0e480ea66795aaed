"""Patterns of melodic intervals, from notes and from frames."""

from __future__ import annotations

from collections import Counter
from typing import Final

import numpy as np

from music_evals.annotations import Chroma, F0Track, Melody
from music_evals.errors import UnsupportedTypeError

Pattern = tuple[int, ...]

OFFICIAL_RATE_HZ: Final = 20
OFFICIAL_EPSILON: Final = 1e-8
"""Added by the authors to the sizes that they divide by, and in Hz the frequency of an unvoiced frame."""


def note_patterns(melody: Melody, n: int, *, folded: bool) -> Counter[Pattern]:
    """Return how often each row of n intervals between consecutive notes occurs, in whole semitones.

    `folded` takes intervals modulo the octave and leaves out those of 0: a note that is struck again, in whatever
    octave, is the same note.
    """
    steps = intervals(melody)
    if folded:
        steps = [step % 12 for step in steps if step % 12]
    return Counter(zip(*(steps[i:] for i in range(n)), strict=False))


def intervals(melody: Melody) -> list[int]:
    """Return the intervals between consecutive notes, in whole semitones."""
    steps: list[int] = np.rint(np.diff(melody.pitches)).astype(np.int64).tolist()
    return steps


def frame_patterns(track: F0Track, n: int) -> set[Pattern]:
    """Return the rows of n steps between frames of 1/20 s that the authors' code takes for interval patterns."""
    # The contour is read at the nearest frame, unvoiced frames are 1e-8 Hz, steps are rounded to semitones.
    times = track.times_sec
    if len(times) < 2:
        return set()
    from scipy.interpolate import interp1d

    grid = np.linspace(times[0], times[-1], int((times[-1] - times[0]) * OFFICIAL_RATE_HZ) + 1)
    frequencies = np.where(track.voiced, track.frequencies_hz, 0.0)
    contour = interp1d(times, frequencies, kind="nearest", fill_value="extrapolate")(grid)
    cents = 1200 * np.log2(np.maximum(contour, OFFICIAL_EPSILON) / 440.0)
    steps: list[int] = np.round(np.diff(cents) / 100.0).astype(int).tolist()
    return set(zip(*(steps[i:] for i in range(n)), strict=False))


def chroma_patterns(chroma: object, n: int) -> set[Pattern]:
    """Return the rows of n intervals modulo the octave that musecpeval 0.3.0 reads off the strongest pitch classes."""
    # A note is a pitch class that is the strongest in two frames in a row or more; equal neighbours are one note.
    if not isinstance(chroma, Chroma):
        raise UnsupportedTypeError("motifs of musecpeval-0.3 are made of Chroma; give the contour of both sides")
    strongest = chroma.frames.argmax(axis=0)
    starts = np.flatnonzero(np.diff(strongest, prepend=-1))
    long = np.diff(starts, append=len(strongest)) >= 2
    notes = strongest[starts[long]]
    notes = notes[np.diff(notes, prepend=-1) != 0]
    return set(zip(*((np.diff(notes) % 12).tolist()[i:] for i in range(n)), strict=False))
