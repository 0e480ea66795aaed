"""What a piano roll is made of, counted: harmony, rhythm and texture as histograms that do not know the key.

Bars are read from the positions of steps in their bar. Of all histograms only that of registers changes when a piece is
transposed, and none when its bars change places, but for that of grooves, which compares neighbours.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final

import numpy as np
import numpy.typing as npt

from music_evals.annotations import N_ROLL_PITCHES, PianoRoll
from music_evals.errors import InvalidInputError
from music_evals.metrics.divergence import histogram_bins, n_bins
from music_evals.symbolic.encodings.piano_rolls import roll_notes

Floats = npt.NDArray[np.float64]

POSITIONS: Final = 24
"""Bins of the position in a beat: as many as grids of 8 and of 12 steps a quarter both divide into."""

LENGTHS: Final = (0.125, 0.25, 0.375, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0)
"""Upper ends, in quarters, of the bins of note lengths; the last bin holds what is longer."""

MOST_PITCHES: Final = 8
"""From this number of pitches at once on, all numbers are one bin."""

REGISTER: Final = 7
"""Semitones in a bin of registers; 12 bins make 84 pitches."""

_ROUNDING = 1e-9

HISTOGRAMS: Final[Mapping[str, int]] = MappingProxyType(
    {
        "style_pitch_class_divergence": n_bins("corrected"),
        "style_interval_divergence": 12,
        "style_groove_divergence": n_bins("corrected"),
        "style_onset_divergence": POSITIONS,
        "style_duration_divergence": len(LENGTHS) + 1,
        "style_density_divergence": MOST_PITCHES + 1,
        "style_register_divergence": N_ROLL_PITCHES // REGISTER,
    }
)
"""Divergence -> bins of the histogram that it compares."""


def roll_histograms(roll: PianoRoll) -> dict[str, Floats]:
    """Return the counts behind each divergence of `HISTOGRAMS`; all 0 where a roll has nothing to count."""
    notes = roll_notes(roll)
    bar = _bar_of(roll)
    onset, pitch = notes["onset_tick"], notes["pitch"].astype(np.int64)
    phase = np.floor(roll.beat_phase[onset] * POSITIONS + _ROUNDING).astype(np.int64)
    length = np.searchsorted(np.array(LENGTHS) + _ROUNDING, notes["duration_tick"] / roll.steps_per_quarter)
    register = roll.cells.sum(axis=0).reshape(-1, REGISTER).sum(axis=1)
    # the interval of each sounding cell above the lowest of its step, octaves folded; not the lowest itself
    step, column = np.nonzero(roll.cells)
    lowest = np.argmax(roll.cells, axis=1)[step]
    above: npt.NDArray[np.int64] = (column - lowest)[column > lowest] % 12
    # 1 - the share of differing steps of each pair of neighbouring bars of equal length, one with an onset
    starts = roll.onsets.any(axis=1)
    bars = np.split(starts, np.flatnonzero(np.diff(bar)) + 1) if len(roll) else []
    pairs = [
        (first, second)
        for first, second in itertools.pairwise(bars)
        if len(first) == len(second) and (first.any() or second.any())
    ]
    counted = {
        "style_pitch_class_divergence": histogram_bins(_entropies(bar[onset], pitch)),
        "style_interval_divergence": above,
        "style_groove_divergence": histogram_bins(
            np.array([1 - np.mean(first != second) for first, second in pairs], dtype=np.float64)
        ),
        "style_onset_divergence": phase,
        "style_duration_divergence": length,
        "style_density_divergence": np.minimum(roll.cells.sum(axis=1), MOST_PITCHES),
    }
    histograms = {
        name: np.bincount(bins, minlength=HISTOGRAMS[name]).astype(np.float64) for name, bins in counted.items()
    }
    return histograms | {"style_register_divergence": register.astype(np.float64)}


def stretches(roll: PianoRoll, bars: int) -> Iterator[PianoRoll]:
    """Yield the stretches of so many whole bars, one after the other; a shorter piece is one, a shorter rest none."""
    if bars < 1:
        raise InvalidInputError(f"a stretch must have at least 1 bar, got {bars}")
    starts = [*np.flatnonzero(np.diff(_bar_of(roll), prepend=-1)).tolist(), len(roll)]
    if len(starts) <= bars:
        yield roll
        return
    for first in range(0, len(starts) - bars, bars):
        steps = slice(starts[first], starts[first + bars])
        cells, onsets, offsets = roll.cells[steps], roll.onsets[steps], roll.offsets[steps]
        yield PianoRoll(cells, onsets, offsets, roll.beat_phase[steps], roll.bar_phase[steps], roll.steps_per_quarter)


_SHARES: Final[Mapping[str, Sequence[str]]] = MappingProxyType(
    {
        "style_interval_divergence": [f"interval {semitones} above the lowest" for semitones in range(12)],
        "style_onset_divergence": [f"onset at {position}/8 of the beat" for position in range(8)],
        "style_duration_divergence": [*(f"note up to {quarters:g} quarters" for quarters in LENGTHS), "longer note"],
        "style_density_divergence": [*(f"{n} pitches at once" for n in range(MOST_PITCHES)), "8 pitches or more"],
    }
)

CLASSIFIER_FEATURES: Final = (
    *(name for names in _SHARES.values() for name in names),
    "pitch-class entropy of a bar",
    "likeness of neighbouring grooves",
)
"""What the style classifier reads of a stretch: shares, and two means; all from 0 to 1."""


def classifier_features(roll: PianoRoll) -> Floats:
    """Return the features of a stretch, in the order of `CLASSIFIER_FEATURES`; all NaN where nothing sounds.

    What has nothing to be counted of (chords in a single line, neighbours of a single bar) is a share of 0.
    """
    if not roll.cells.any():
        return np.full(len(CLASSIFIER_FEATURES), np.nan)
    histograms = roll_histograms(roll)
    histograms["style_onset_divergence"] = histograms["style_onset_divergence"].reshape(8, -1).sum(axis=1)
    shares = [histograms[name] / max(histograms[name].sum(), 1.0) for name in _SHARES]
    centres = (np.arange(n_bins("corrected")) + 0.5) / n_bins("corrected")
    means = [
        histograms[name] @ centres / max(histograms[name].sum(), 1.0)
        for name in ("style_pitch_class_divergence", "style_groove_divergence")
    ]
    return np.array([*np.concatenate(shares), *means])


def _bar_of(roll: PianoRoll) -> npt.NDArray[np.int64]:
    """Return the number of the bar of each step; a bar starts where the position falls."""
    return np.cumsum(np.diff(roll.bar_phase, prepend=roll.bar_phase[:1]) < 0)


def _entropies(bar: npt.NDArray[np.int64], pitch: npt.NDArray[np.int64]) -> Floats:
    """Return the entropy of the pitch classes of each bar with a note, over that of all twelve alike."""
    names, codes = np.unique(bar, return_inverse=True)
    counts = np.zeros((len(names), 12))
    np.add.at(counts, (codes, pitch % 12), 1)
    # sorted, so that transposed bars have equal entropies to the last bit
    shares = np.sort(counts, axis=1) / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    bits = -(shares * np.log2(np.where(shares > 0, shares, 1))).sum(axis=1)
    entropies: Floats = np.clip(bits / np.log2(12), 0, 1)
    return entropies
