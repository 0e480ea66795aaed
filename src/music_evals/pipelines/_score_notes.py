"""What all features of a score start from: its notes in seconds, and its beats in ticks."""

from __future__ import annotations

import dataclasses
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from music_evals.annotations import DRUMS, Score, TimeSignature
from music_evals.symbolic.measures import MeterMap, meter_map

__all__ = ["PitchedNotes", "beat_ticks", "most_beats", "pitched_notes", "tactus_count"]


@dataclasses.dataclass(frozen=True, eq=False)
class PitchedNotes:
    """The notes of all voices that are no drums, in onset order; every array has shape (n,)."""

    onset_ticks: npt.NDArray[np.int64]  # on the score's grid
    offset_ticks: npt.NDArray[np.int64]
    onsets_sec: npt.NDArray[np.float64]  # the same in seconds
    offsets_sec: npt.NDArray[np.float64]
    pitches: npt.NDArray[np.int64]  # MIDI numbers, int64
    voices: npt.NDArray[np.int64]  # index of the voice

    def only(self, voice: int) -> PitchedNotes:
        """Return the notes of one voice."""
        chosen = self.voices == voice
        return PitchedNotes(*(getattr(self, field.name)[chosen] for field in dataclasses.fields(self)))


def pitched_notes(score: Score) -> PitchedNotes:
    """Return the notes that have a pitch, with their times."""
    drums = np.flatnonzero(np.array(score.programs) == DRUMS)
    notes = score.notes[~np.isin(score.notes["voice"], drums)]
    onsets, offsets = notes["onset_tick"], notes["onset_tick"] + notes["duration_tick"]
    return PitchedNotes(
        onsets,
        offsets,
        score.seconds(onsets),
        score.seconds(offsets),
        notes["pitch"].astype(np.int64),
        notes["voice"].astype(np.int64),
    )


def beat_ticks(score: Score) -> npt.NDArray[np.float64]:
    """Return the tick of every beat before the end of the last note, shape (n,); fractions of a tick are possible."""
    # Beats are counted from the start of each bar, and in a pickup from its end backwards.
    bars = meter_map(score)
    ticks = [
        float(tick)
        for index, beat in enumerate(_tactus_of_bars(bars))
        for tick in _beats_of_bar(bars, index, beat)
        if tick < score.end_tick
    ]
    return np.array(ticks, dtype=np.float64)


def tactus_count(score: Score) -> float:
    """Return how many beats long the score is, up to the end of its last note."""
    bars = meter_map(score)
    ends = np.minimum(bars.starts[1:], score.end_tick)
    spans = zip(bars.starts[:-1].tolist(), ends.tolist(), _tactus_of_bars(bars), strict=True)
    return float(sum((end - start) / beat for start, end, beat in spans))


def most_beats(score: Score) -> float:
    """Return a bound on the number of beats that takes no time to find: as if all were as short as the shortest."""
    signatures = (TimeSignature(0, 4, 4), *score.time_signatures)
    return float(score.end_tick / min(tactus_ticks(signature, score.ticks_per_quarter) for signature in signatures))


def tactus_ticks(signature: TimeSignature, ticks_per_quarter: int) -> Fraction:
    """Return the length of a beat in ticks: the denominator's note, or three of them in a compound meter."""
    compound = signature.denominator >= 8 and signature.numerator % 3 == 0
    return Fraction(4 * ticks_per_quarter * (3 if compound else 1), signature.denominator)


def _tactus_of_bars(bars: MeterMap) -> list[Fraction]:
    """Return the length of a beat in each bar; a pickup has the beat of the bar that it leads to."""
    beats = [tactus_ticks(signature, bars.ticks_per_quarter) for signature in bars.signatures]
    if bars.pickup_ticks:
        beats[0] = beats[1]
    return beats


def _beats_of_bar(bars: MeterMap, index: int, beat: Fraction) -> list[Fraction]:
    start, stop = int(bars.starts[index]), int(bars.starts[index + 1])
    whole = (stop - start) // beat
    if index == 0 and bars.pickup_ticks:
        return [stop - number * beat for number in range(whole, 0, -1)]
    count = -((start - stop) // beat)  # the last one perhaps cut short by the next bar line
    return [start + number * beat for number in range(count)]
