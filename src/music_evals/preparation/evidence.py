"""Where characters may begin: events in pitch and level of a voice, with the evidence of each for an onset.

An event is a place where the voice stops and begins again, where its level dips, or where its pitch steps. Events are
found on a grid of 10 ms of our own, so that nothing depends on the frames of an extractor.
"""

from __future__ import annotations

import dataclasses
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from music_evals.annotations import F0Track
from music_evals.errors import InvalidAnnotationError, InvalidAudioError

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Marks = npt.NDArray[np.bool_]

GRID_SEC: Final = 0.01
LEVEL_WINDOW_SEC: Final = 0.03  # three periods of the lowest voice: shorter windows follow the period itself
SHORTEST_GAP_SEC: Final = 0.02  # a shorter stop of the voice is one of the tracker
SHORTEST_VOICED_SEC: Final = 0.04  # a shorter sound has no pitch that anybody hears
LONGEST_CONSONANT_SEC: Final = 0.22  # a longer gap between vowels is a rest and a consonant
LONGEST_LEAD_SEC: Final = 0.18  # of a consonant that follows a rest
FLOOR_DB: Final = 40.0  # below the loud parts of the voice (their 95th percentile) nothing is sung
# A vibrato of 1 semitone either way at 5 Hz lies above or below its mean for 0.1 s, by 0.64 semitones on average: to
# follow it saves 0.064 semitone seconds for two changes. What is a note saves more than that for one.
CHANGE_COST: Final = 0.07  # semitone seconds
STATES: Final = 0.5  # semitones between the pitches that a note may have
OUTLIER: Final = 3.0  # semitones: an octave error costs no more
SMALLEST_STEP: Final = 0.75  # semitones; less is intonation
SMALLEST_DIP_DB: Final = 2.0
CLOSURE_DB: Final = 10.0  # by which the level falls in a consonant; trackers also lose the voice where a note changes
DIP_WINDOW_SEC: Final = 0.5
LONGEST_FALL_SEC: Final = 0.1
EARLY_FRAMES: Final = 4  # by which the level may fall before a tracker has the voice stop
ABSORBED_SEC: Final = 0.1  # from its consonant on, a vowel takes so long to reach its pitch

FEATURES: Final = ("gap", "rest", "dip", "step")
"""Of an event: a short gap of the voice in which the level falls (0 or 1), a long gap (0 or 1), depth of
the dip in tens of decibels, at most 3, and whether the pitch steps (0 or 1): how far it does says nothing more."""


@dataclasses.dataclass(frozen=True)
class Levels:
    """The level of a recording, best of the voice alone."""

    times_sec: Floats  # increasing, shape (n,)
    decibels: Floats  # shape (n,), finite, against any reference

    def __post_init__(self) -> None:
        if self.times_sec.shape != self.decibels.shape or self.times_sec.ndim != 1 or not len(self.times_sec):
            raise InvalidAnnotationError(
                f"expected one level a frame, got shapes {self.decibels.shape} and {self.times_sec.shape}"
            )
        if not (np.isfinite(self.decibels).all() and (np.diff(self.times_sec) > 0).all()):
            raise InvalidAnnotationError("expected finite levels at times that increase")


def measure_levels(samples: npt.ArrayLike, sample_rate: int) -> Levels:
    """Return the root mean square of the samples around each hundredth of a second, in dB against full scale."""
    values = np.asarray(samples, dtype=np.float64)
    if values.ndim != 1 or not len(values) or not np.isfinite(values).all():
        raise InvalidAudioError(f"expected finite samples of shape (n,), got shape {values.shape}; mix down first")
    times_sec: Floats = np.arange(int(len(values) / sample_rate / GRID_SEC) + 1, dtype=np.float64) * GRID_SEC
    energy = np.concatenate([[0.0], np.cumsum(values**2)])
    ends = [np.clip(np.rint((times_sec + half) * sample_rate).astype(np.int64), 0, len(values))
            for half in (-LEVEL_WINDOW_SEC / 2, LEVEL_WINDOW_SEC / 2)]  # fmt: skip
    power = (energy[ends[1]] - energy[ends[0]]) / (LEVEL_WINDOW_SEC * sample_rate)
    return Levels(times_sec, 10 * np.log10(np.maximum(power, 1e-12)))


class Voice(NamedTuple):
    """What is known of the voice at each place of the grid, which begins at `start_sec`."""

    start_sec: float
    voiced: Marks
    pitch: Floats  # MIDI, whole or not; the last one goes on where nothing is voiced
    note: Floats  # the same, held from step to step
    decibels: Floats


class Evidence(NamedTuple):
    """Events by time: the place of the grid at which a character would begin, and `FEATURES`, shape (n, 4)."""

    frames: Integers
    features: Floats


def follow_voice(f0: F0Track, levels: Levels) -> Voice:
    """Return pitch, held notes and level of a voice on the grid."""
    if not f0.voiced.any():
        raise InvalidAnnotationError("no frame is voiced; was the voice recorded, and is this its pitch?")
    start, end = float(f0.times_sec[0]), float(f0.times_sec[-1])
    offsets = np.arange(int(round((end - start) / GRID_SEC, 6)) + 1) * GRID_SEC
    decibels = np.round(np.interp(offsets, levels.times_sec - start, levels.decibels), 3)  # no dips of rounding
    # the frame of the extractor that is nearest to each place
    middles = (f0.times_sec[1:] + f0.times_sec[:-1]) / 2 - start
    nearest = np.searchsorted(np.round(middles, 6), np.round(offsets, 6))
    voiced = f0.voiced[nearest]
    loud = np.percentile(decibels[voiced], 95)
    voiced = voiced & (decibels > loud - FLOOR_DB)
    voiced = _without_short(voiced, SHORTEST_GAP_SEC, kind=False)
    voiced = _without_short(voiced, SHORTEST_VOICED_SEC, kind=True)
    if not voiced.any():
        raise InvalidAnnotationError("the voice never sounds for longer than 0.04 s; is this its pitch?")
    semitones = 69 + 12 * np.log2(np.where(f0.voiced, f0.frequencies_hz, 440.0) / 440.0)
    pitch = np.round(np.interp(offsets, f0.times_sec[f0.voiced] - start, semitones[f0.voiced]), 6)
    # the track of held pitches that costs least: its distance from the pitch, and `CHANGE_COST` a change
    # Over frames of 10 ms the cost is the sum of min(|pitch - note|, OUTLIER) * GRID_SEC over voiced frames, plus the
    # changes; Viterbi over pitches half a semitone apart. The absolute distance lets glides and vibrato weigh little.
    low, high = np.floor(pitch[voiced].min()) - 1, np.ceil(pitch[voiced].max()) + 1
    states = np.arange(low, high + STATES / 2, STATES)
    distance = np.minimum(np.abs(pitch[:, None] - states), OUTLIER) * GRID_SEC * voiced[:, None]
    total = distance[0]
    came_from = np.zeros(distance.shape, dtype=np.int64)
    stay = np.arange(len(states))
    for t in range(1, len(pitch)):
        best = int(total.argmin())
        change = total[best] + CHANGE_COST < total
        came_from[t] = np.where(change, best, stay)
        total = np.where(change, total[best] + CHANGE_COST, total) + distance[t]
    path = np.empty(len(pitch), dtype=np.int64)
    path[-1] = total.argmin()
    for t in range(len(pitch) - 1, 0, -1):
        path[t - 1] = came_from[t, path[t]]
    held: Floats = states[path]
    return Voice(start, voiced, pitch, held, decibels)


def _without_short(marks: Marks, seconds: float, *, kind: bool) -> Marks:
    """Return the marks with runs of a kind that are shorter than so many seconds turned; not those at the ends."""
    marks = marks.copy()
    for first, last in _runs(marks == kind):
        if (last - first) * GRID_SEC < seconds and (kind or (first > 0 and last < len(marks))):
            marks[first:last] = not kind
    return marks


def _runs(marks: Marks) -> list[tuple[int, int]]:
    """Return first place, and the place after the last one, of each run of true marks."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], marks, [False]]).astype(np.int8)))
    return [(int(first), int(last)) for first, last in edges.reshape(-1, 2)]


def find_events(voice: Voice) -> Evidence:
    """Return the events of a voice; of those that belong together, as a dip and the step after it, one is made."""
    spans = _gaps(voice)
    spans += [
        dip for dip in _dips(voice) if not any(first - 3 <= dip[1] <= last + 5 for _, _, first, last, *_ in spans)
    ]
    absorbed = round(ABSORBED_SEC / GRID_SEC)
    changes = np.flatnonzero(np.abs(np.diff(voice.note)) > 0) + 1
    # a wide glide is held in two or three changes: those within `ABSORBED_SEC` of each other are one step
    steps = np.split(changes, np.flatnonzero(np.diff(changes) > absorbed) + 1) if len(changes) else []
    events = [(frame, gap, rest, dip, _step(voice, first - absorbed, last + absorbed))
             for frame, _, first, last, gap, rest, dip in spans]  # fmt: skip
    for step in steps:
        middle, size = int(np.rint(step.mean())), _step(voice, int(step[0]) - 1, int(step[-1]))
        alone = not any(first - absorbed <= middle <= last + absorbed for _, _, first, last, *_ in spans)
        if alone and size >= SMALLEST_STEP and voice.voiced[step].all() and voice.voiced[step - 1].all():
            events.append((middle, 0.0, 0.0, 0.0, size))
    table = np.array(sorted(events), dtype=np.float64).reshape(-1, 5)
    closed = table[:, 1] * (table[:, 3] >= CLOSURE_DB)
    features = np.stack([closed, table[:, 2], np.minimum(table[:, 3] / 10, 3.0), table[:, 4] >= SMALLEST_STEP], axis=1)
    return Evidence(table[:, 0].astype(np.int64), features)


_Span = tuple[int, int, int, int, float, float, float]  # onset, lowest place, first, last, gap, rest, dip


def _gaps(voice: Voice) -> list[_Span]:
    """Return where the voice begins: after a short gap where the level falls, after a rest where it rises."""
    spans: list[_Span] = []
    lead = round(LONGEST_LEAD_SEC / GRID_SEC)
    end = None
    for first, last in _runs(voice.voiced):
        short = end is not None and (first - end) * GRID_SEC <= LONGEST_CONSONANT_SEC
        start = end if short and end is not None else max(first - lead, 0)
        before = voice.decibels[start : first + 1]
        dip = float(voice.decibels[max(start - 10, 0) : first + 10].max() - before.min())
        quietest = start + int(np.flatnonzero(before <= before.min() + 3)[-1])
        onset = (
            _fall(voice.decibels, start - EARLY_FRAMES, start + int(before.argmin()))
            if short
            else min(quietest + 1, first)
        )
        spans.append((onset, quietest, start, first, float(short), float(not short), dip))
        end = last
    return spans


def _dips(voice: Voice) -> list[_Span]:
    """Return the dips of the level, each at the place where it falls."""
    from scipy.ndimage import uniform_filter1d
    from scipy.signal import find_peaks

    smooth = np.round(uniform_filter1d(voice.decibels, 3), 3)
    window = round(DIP_WINDOW_SEC / GRID_SEC) | 1
    lowest, properties = find_peaks(-smooth, plateau_size=(1, window // 2), prominence=SMALLEST_DIP_DB, wlen=window)
    spans: list[_Span] = []
    for place, depth in zip(lowest.tolist(), properties["prominences"].tolist(), strict=True):
        if voice.voiced[place]:
            fall = _fall(voice.decibels, place - round(LONGEST_FALL_SEC / GRID_SEC), place)
            spans.append((fall, place, fall, place, 0.0, 0.0, depth))
    return spans


def _fall(decibels: Floats, first: int, last: int) -> int:
    """Return where between two places the level falls fastest."""
    places = np.arange(max(first, 2), max(last, 2) + 1)
    drops = decibels[np.minimum(places, len(decibels)) - 2] - decibels[np.minimum(places + 2, len(decibels) - 1)]
    return int(places[drops.argmax()])


def _step(voice: Voice, first: int, last: int) -> float:
    """Return how far the held note moves over a span."""
    return abs(float(voice.note[min(last, len(voice.note) - 1)] - voice.note[max(first, 0)]))
