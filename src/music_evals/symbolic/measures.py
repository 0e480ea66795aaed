"""Measures: where the bars of a score lie, and what each tick is in its bar.

A bar starts at tick 0, at every time signature, and one signature's length after the bar before. So a signature inside
a bar cuts that bar short: this is how pickups and irregular bars are written, whether as a short signature (1/4 before
4/4, as in MIDI exports) or as the same signature again at the first full bar (as `symbolic.notation` writes them).
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from music_evals.annotations import KeySignature, Score, Tempo, TimeSignature
from music_evals.errors import InvalidInputError

__all__ = ["MeterMap", "count_musib_measures", "drop_repeated_signatures", "meter_map", "slice_measures"]

Change = TypeVar("Change", TimeSignature, Tempo, KeySignature)

FOUR_FOUR = TimeSignature(
    0, 4, 4
)  # what a MIDI file without a signature means (Standard MIDI Files 1.0, "Time Signature")


@dataclasses.dataclass(frozen=True, eq=False)
class MeterMap:
    """The bars of a score.

    Attributes
    ----------
    starts
        First tick of each bar and, last, the end of the last bar: shape (n_measures + 1,), increasing.
    signatures
        The signature in force in each bar, one a bar.
    ticks_per_quarter
        The grid of `starts`.
    """

    starts: npt.NDArray[np.int64]
    signatures: tuple[TimeSignature, ...]
    ticks_per_quarter: int

    @property
    def n_measures(self) -> int:
        """Number of bars, a pickup counted as one."""
        return len(self.signatures)

    @functools.cached_property
    def lengths(self) -> npt.NDArray[np.int64]:
        """Length of each bar in ticks, shape (n_measures,)."""
        return np.diff(self.starts)

    @property
    def pickup_ticks(self) -> int:
        """Length of the pickup in ticks, 0 without one.

        The first bar is a pickup if it is shorter than the second. A first bar of 3/4 before 4/4 is read as one: the
        two cannot be distinguished.
        """
        if len(self.signatures) < 2 or self.lengths[0] >= self.lengths[1]:
            return 0
        return int(self.lengths[0])

    def measure_of(self, tick: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """Return the index of the bar that holds each tick; `InvalidInputError` for one before or after all bars."""
        ticks = np.asarray(tick, dtype=np.int64)
        if ticks.size and (ticks.min() < 0 or ticks.max() >= self.starts[-1]):
            raise InvalidInputError(
                f"ticks must lie in 0..{self.starts[-1] - 1}, the bars of this map; got {ticks.min()}..{ticks.max()}"
            )
        return np.searchsorted(self.starts, ticks, side="right") - 1

    def position_in_measure(self, tick: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """Return how many ticks each tick lies after its bar line; in a pickup, after the bar line that is not there.

        A pickup of one quarter before 4/4 thus starts at three quarters. Other short bars are counted from their own
        start.
        """
        ticks = np.asarray(tick, dtype=np.int64)
        measure = self.measure_of(ticks)
        missing = self.lengths[1] - self.pickup_ticks if self.pickup_ticks else 0
        return ticks - self.starts[measure] + np.where(measure == 0, missing, 0)

    def beat_of(self, tick: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Return the beat of each tick in its bar, from 0.0, in units of the signature's denominator."""
        measure = self.measure_of(tick)
        beats = np.array([4 * self.ticks_per_quarter / signature.denominator for signature in self.signatures])
        return np.asarray(self.position_in_measure(tick) / beats[measure], dtype=np.float64)

    def span(self, first: int, n_measures: int) -> tuple[int, int]:
        """Return the first tick of bar `first` and the end of the `n_measures` bars from there, which must exist."""
        if first < 0 or n_measures < 0 or first + n_measures > self.n_measures:
            raise InvalidInputError(
                f"bars {first}..{first + n_measures - 1} were asked for; the score has 0..{self.n_measures - 1}"
            )
        return int(self.starts[first]), int(self.starts[first + n_measures])


def meter_map(score: Score, *, default: TimeSignature = FOUR_FOUR) -> MeterMap:
    """Find the bars of a score, up to the end of its last note.

    Where a bar's length is no whole number of ticks, its bar lines are rounded half up, each by itself. `default` is
    the signature before the first one that the score gives; 4/4 is the MIDI standard's. A score without notes has no
    bars.

    Examples
    --------
    >>> from music_evals.symbolic.notes import make_notes
    >>> notes = make_notes([0, 1, 5], [1, 4, 4], [60, 62, 64])
    >>> meter_map(Score(notes, 1, (TimeSignature(0, 1, 4), TimeSignature(1, 4, 4)))).starts
    array([0, 1, 5, 9])
    """
    starts: list[int] = []
    signatures: list[TimeSignature] = []
    end = 0
    default_at_0 = dataclasses.replace(default, tick=0)
    changes = list({change.tick: change for change in (default_at_0, *score.time_signatures)}.values())
    stops = [*(change.tick for change in changes[1:]), None]
    for change, stop in zip(changes, stops, strict=True):
        reach = score.end_tick if stop is None else min(stop, score.end_tick)
        # bar lines from the signature's tick on, up to the first that is not before `reach`
        length = _measure_ticks(change, score.ticks_per_quarter)
        count = math.ceil((reach - change.tick) / length) if reach > change.tick else 0
        lines = [math.floor(change.tick + bar * length + Fraction(1, 2)) for bar in range(count + 1)]
        while len(lines) > 1 and lines[-2] >= reach:
            lines.pop()
        starts += lines[:-1]
        signatures += [change] * (len(lines) - 1)
        if len(lines) > 1:
            end = lines[-1] if stop is None else min(lines[-1], stop)
    return MeterMap(np.array([*starts, end], dtype=np.int64), tuple(signatures), score.ticks_per_quarter)


def count_musib_measures(onset_tick: npt.ArrayLike, ticks_per_quarter: int) -> int:
    """Count the measures of a voice as MUSIB's table does.

    Measures are four quarters from time 0, and only those in which a note starts are counted; a voice without notes has
    none. Onsets, in ticks and in any order, are rounded to sixteenths, halves down, on the authors' grid: it stops
    short of the last onset, so every onset after its end is pulled back to it.
    """
    onsets = np.asarray(onset_tick, dtype=np.int64)
    if onsets.size == 0:
        return 0
    # the nearest sixteenth, halves down; then those behind the end of the authors' grid are pulled back to it
    sixteenths = -((ticks_per_quarter - 8 * onsets) // (2 * ticks_per_quarter))
    end_of_grid = max((4 * int(onsets.max()) - 1) // ticks_per_quarter, 0)
    return len(np.unique(np.minimum(sixteenths, end_of_grid) // 16))


def _measure_ticks(signature: TimeSignature, ticks_per_quarter: int) -> Fraction:
    length = Fraction(4 * signature.numerator * ticks_per_quarter, signature.denominator)
    if length < 1:
        raise InvalidInputError(
            f"a bar of {signature.numerator}/{signature.denominator} is shorter than one tick of {ticks_per_quarter} a "
            "quarter; use a finer grid"
        )
    return length


def drop_repeated_signatures(signatures: Sequence[TimeSignature], ticks_per_quarter: int) -> tuple[TimeSignature, ...]:
    """Leave out every signature that says nothing new.

    A signature is kept if it differs from the one in force, or if it moves the bar lines: the same signature again in
    the middle of a bar is how a pickup or an irregular bar is written. They are sorted by tick; of several at one tick
    the last counts.
    """
    changes: list[TimeSignature] = []
    for signature in {signature.tick: signature for signature in signatures}.values():
        current = changes[-1] if changes else None
        if current is not None and dataclasses.replace(current, tick=signature.tick) == signature:
            bars = (signature.tick - current.tick) / _measure_ticks(current, ticks_per_quarter)
            if bars.denominator == 1:
                continue
        changes.append(signature)
    return tuple(changes)


def slice_measures(score: Score, first: int, n_measures: int) -> Score:
    """Cut whole bars out of a score.

    The first bar is counted in `meter_map(score)`; bars that are not all there are an `InvalidInputError`. The result
    starts at tick 0 with the signatures and the tempo that are in force there. Notes that began before the first bar
    are left out, notes that outlast the last bar are cut at its end. All voices keep their index.
    """
    start, stop = meter_map(score).span(first, n_measures)
    # notes that begin inside, cut at the end and counted from the start
    onsets = score.notes["onset_tick"]
    notes = score.notes[(onsets >= start) & (onsets < stop)].copy()
    notes["duration_tick"] = np.minimum(notes["duration_tick"], stop - notes["onset_tick"])
    notes["onset_tick"] -= start
    return dataclasses.replace(
        score,
        notes=notes,
        time_signatures=_in_force(score.time_signatures, start, stop),
        tempos=_in_force(score.tempos, start, stop),
        key_signatures=_in_force(score.key_signatures, start, stop),
    )


def _in_force(changes: Sequence[Change], start: int, stop: int) -> tuple[Change, ...]:
    """Keep the changes inside [start, stop) and the last one before, and count from `start`."""
    moved = [dataclasses.replace(change, tick=max(change.tick - start, 0)) for change in changes if change.tick < stop]
    last_at_start = max((index for index, change in enumerate(moved) if change.tick == 0), default=0)
    return tuple(moved[last_at_start:])
