"""Features of a score, read from its notes: the symbolic input of the metrics of music context preservation.

Nothing is rendered and nothing is listened to. Beats and tempo come from the tempo map and the meter, chroma and melody
are exact; key, chords and sections are analysed from the notes, because a file does not state them, or states them
wrongly: key signatures in MIDI files are C major wherever nobody set one, and never tell the mode reliably. They are
not read.

What a file leaves out is taken as the MIDI standard says, and `score_remarks` tells it: 120 quarters a minute, 4/4.
Velocities and programs play no part, except that drums have no pitch.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from music_evals.annotations import (
    DEFAULT_BPM,
    DRUMS,
    FEATURES,
    Beats,
    Chords,
    Chroma,
    F0Track,
    Features,
    Key,
    Melody,
    Score,
    Segments,
    StructureFrames,
    TimeSignature,
)
from music_evals.audio.chords import CHORD_LABELS, log_softmax, states_to_chords
from music_evals.audio.extraction import SHORTEST_STRUCTURE_SEC
from music_evals.audio.filters import pool, standardise, viterbi
from music_evals.audio.io import SAMPLE_RATE
from music_evals.audio.key import key_correlations
from music_evals.audio.segments import POOLED_FRAMES, form_of
from music_evals.audio.spectra import HOP_LENGTH
from music_evals.audio.structure import CHROMA_WEIGHT, FRAME_SEC
from music_evals.errors import UnknownNameError
from music_evals.numerics import one_thread
from music_evals.symbolic.measures import meter_map

__all__ = ["melody_voice", "score_features", "score_remarks"]

MAX_BEATS: Final = 200_000  # of two hours at 1,600 a minute; damaged files claim bars of one tick
MAX_DURATION_SEC: Final = 2 * 3600.0  # the grids are as long as the piece; damaged tempo maps claim years
TEMPERATURE: Final = 15.0  # of the softmax over triads
BASS_BONUS: Final = 0.15  # of a cosine, for the triad whose root is the lowest note
STAY: Final = 0.2  # probability that a chord lasts for another beat; the other 23 share the rest
HOP_SEC: Final = HOP_LENGTH / SAMPLE_RATE  # of chroma and f0: the grid of the recordings, 23.2 ms
N_OCTAVES: Final = 11  # of the MIDI range
REGISTER_STARTS: Final = (48, 72)  # C3 and C5 part low, middle and high notes

FloatArray = npt.NDArray[np.float64]

# A voice that says it carries the melody, the surest name first: "MELODY (flute)", "Lead vocals", "Singstimme".
# Words, in any case; not a melodica, melodic toms, a leader, tuned percussion or singing bowls.
_NAMES: Final = (
    r"melod(?!ica|ic tom)",
    r"lead(?!er|ing)",
    r"vocal",
    r"vox(?![a-z])",
    r"soprano",
    r"tunes?(?![a-z])",
    r"solo",
    r"sing(?:ers?|ing(?! bowl)|stimmen?)?(?![a-z])",
)

# Chosen on the tuning half of `known_edits`: from 5 to 12 semitones and 4 s to the whole piece the best.
FAR_BELOW_SEMITONES: Final = 7
AROUND_SEC: Final = 4.0


@dataclasses.dataclass(frozen=True)
class _Reading:
    """A score and what several features need of it."""

    score: Score
    pitched: _PitchedNotes
    duration_sec: float
    n_frames: int  # of `HOP_SEC`


def score_features(score: Score, features: Iterable[str] | None = None) -> Features:
    """Return the features of a score.

    Parameters
    ----------
    score
        Any score. Voices with the program `DRUMS` have onsets, and no pitch.
    features
        Names out of `annotations.FEATURES`; None for all.

    Returns
    -------
    Features
        `duration_sec` is the end of the last note. Undefined: every feature of a score without notes, or of more than
        two hours (recordings are read up to half an hour, `AudioLimits`); beats and chords where there are more than
        200,000 beats; all but beats of a score of drums alone; segments and structure of less than 10 s, as of a
        recording; the key of notes that fit all keys alike.

        - beats: every tactus of the meter, up to the last end: the denominator's note, or three of them where the
          numerator is a multiple of three over eighths or less (6/8, 9/8, 12/8: the dotted quarter). Tempo: beats over
          minutes of the whole, so the tempo itself where there is but one.
        - key: Aarden-Essen profile, on pitch classes weighted by their written durations.
        - chords: major and minor triads, beat by beat.
        - chroma: number of notes that sound in each pitch class, every 23.2 ms.
        - melody, f0: the voice of `melody_voice`, else the upper line of all voices that have a pitch; f0
          every 23.2 ms.
        - structure, segments: the algorithm of the recordings on pitch classes, octaves and onset counts.

    Raises
    ------
    UnknownNameError
        A feature that does not exist.

    Examples
    --------
    >>> from music_evals.symbolic.notes import make_notes
    >>> features = score_features(Score(make_notes([0, 480, 960], [480] * 3, [60, 64, 67]), 480), ["beats", "melody"])
    >>> features.beats.times_sec, features.beats.bpm, features.melody.pitches
    (array([0. , 0.5, 1. ]), 120.0, array([60., 64., 67.]))
    """
    wanted = tuple(FEATURES) if features is None else tuple(features)
    for name in wanted:
        if name not in FEATURES:
            raise UnknownNameError("feature", name, FEATURES)
    end_sec = float(score.seconds(score.end_tick))
    # the notes that have a pitch, with their times
    drums = np.flatnonzero(np.array(score.programs) == DRUMS)
    notes = score.notes[~np.isin(score.notes["voice"], drums)]
    onsets, offsets = notes["onset_tick"], notes["onset_tick"] + notes["duration_tick"]
    reading = _Reading(
        score,
        _PitchedNotes(
            onsets,
            offsets,
            score.seconds(onsets),
            score.seconds(offsets),
            notes["pitch"].astype(np.int64),
            notes["voice"].astype(np.int64),
        ),
        end_sec,
        int(np.ceil(min(end_sec, MAX_DURATION_SEC) / HOP_SEC)),
    )
    undefined = {name: reason for name in wanted if (reason := _why_undefined(name, reading))}
    values: dict[str, Any] = {name: _READERS[name](reading) for name in wanted if name not in undefined}
    if "key" in values and values["key"] is None:
        undefined["key"] = "the notes fit all keys alike"
    return Features(reading.duration_sec, **values, undefined=undefined, silent=not len(score.notes))


def score_remarks(score: Score) -> tuple[str, ...]:
    """Return what had to be assumed of a score, in words, and which voice its melody is."""
    remarks = []
    if not score.tempos or score.tempos[0].tick > 0:
        remarks.append(f"no tempo at the start of the file: {DEFAULT_BPM:g} quarters a minute assumed")
    if not score.time_signatures or score.time_signatures[0].tick > 0:
        remarks.append("no time signature at the start of the file: 4/4 assumed")
    voice = melody_voice(score)
    named = "the skyline of all voices" if voice is None else f"the voice {score.voices[voice]!r}"
    return (*remarks, f"melody: {named}")


def _why_undefined(name: str, reading: _Reading) -> str:
    """Return why a score does not have a feature, "" where it does."""
    if not len(reading.score.notes):
        return "no notes"
    if reading.duration_sec > MAX_DURATION_SEC:
        return f"longer than {MAX_DURATION_SEC / 3600:g} h"
    if name in {"beats", "chords"}:
        # a bound on their number that takes no time to find: as if all were as short as the shortest
        score, signatures = reading.score, (TimeSignature(0, 4, 4), *reading.score.time_signatures)
        shortest = min(tactus_ticks(signature, score.ticks_per_quarter) for signature in signatures)
        if score.end_tick / shortest > MAX_BEATS:
            return f"more than {MAX_BEATS} beats"
    if name != "beats" and not len(reading.pitched.pitches):
        return "no notes but drums"
    if name in {"contour", "timbre", "bands"}:
        return "of recordings only"
    if name in {"segments", "structure"} and reading.duration_sec < SHORTEST_STRUCTURE_SEC:
        return f"shorter than {SHORTEST_STRUCTURE_SEC:g} s"
    return ""


def _beats(reading: _Reading) -> Beats:
    ticks, n_beats = _beat_ticks(reading.score)
    # each note between the two frames that it begins between
    starts = reading.score.seconds(reading.score.notes["onset_tick"]) / HOP_SEC
    before = starts.astype(np.int64)
    onsets = np.bincount(np.append(before, before + 1), np.append(before + 1 - starts, starts - before)).astype(
        np.float64
    )
    bpm = 60 * n_beats / reading.duration_sec
    return Beats(reading.score.seconds(ticks), bpm, onsets=onsets, onset_rate_hz=1 / HOP_SEC)


def _f0(reading: _Reading) -> F0Track:
    melody = _melody(reading)
    n_frames = reading.n_frames
    frequencies_hz = np.zeros(n_frames)
    first, stop = (_frame_of(times_sec, n_frames) for times_sec in melody.intervals_sec.T)
    for start, end, pitch in zip(first.tolist(), stop.tolist(), melody.pitches.tolist(), strict=True):
        frequencies_hz[start:end] = 440 * 2 ** ((pitch - 69) / 12)
    return F0Track(np.arange(n_frames, dtype=np.float64) * HOP_SEC, frequencies_hz)


def _key(reading: _Reading) -> Key | None:
    """Return the key whose Aarden-Essen profile fits the durations of the pitch classes best, None if all fit alike."""
    # There is no noise in notes, and so no threshold as for recordings.
    notes, weights = reading.pitched, np.zeros(12)
    np.add.at(weights, notes.pitches % 12, notes.offset_ticks - notes.onset_ticks)
    correlations = key_correlations(weights)
    mode, tonic = np.unravel_index(int(correlations.argmax()), correlations.shape)
    if not correlations.any():
        return None
    return Key(int(tonic), ("major", "minor")[mode])


def _chords(reading: _Reading) -> Chords:
    """Return the chords from 0 to the end of the last note; neighbours that are alike are one."""
    # For every beat the written durations of the pitch classes are compared (cosine) with the 24 major and minor
    # triads. The triad whose root is the lowest note of the beat gets a bonus, because a bass names the chord more
    # surely than a passing note above it; a Viterbi path through the beats prefers to stay. A beat without a note has
    # none.
    score = reading.score
    ticks = np.unique(np.concatenate([[0.0], _beat_ticks(score)[0], [float(score.end_tick)]]))
    # the share of each beat that a pitch class sounds, and 1 where it is the bass, the lowest note of all that sound
    # in the beat: shape (12, n_beats) each
    notes = reading.pitched
    n_beats = len(ticks) - 1
    first = np.searchsorted(ticks, notes.onset_ticks, side="right") - 1
    last = np.searchsorted(ticks, notes.offset_ticks, side="left") - 1
    classes = notes.pitches % 12
    # the first beat in part, the last in part, those between as a whole
    changes, parts = np.zeros((12, n_beats + 1)), np.zeros((12, n_beats))
    np.add.at(changes, (classes, np.minimum(first + 1, last)), 1)
    np.add.at(changes, (classes, last), -1)
    np.add.at(parts, (classes, first), np.minimum(notes.offset_ticks, ticks[first + 1]) - notes.onset_ticks)
    longer = last > first
    np.add.at(parts, (classes[longer], last[longer]), notes.offset_ticks[longer] - ticks[last[longer]])
    weights = np.cumsum(changes, axis=1)[:, :-1] + parts / np.diff(ticks)
    basses = np.zeros((12, n_beats))
    taken = np.zeros(n_beats, dtype=bool)
    for pitch in np.unique(notes.pitches):
        here = notes.pitches == pitch
        steps = np.zeros(n_beats + 1)
        np.add.at(steps, first[here], 1)
        np.add.at(steps, last[here] + 1, -1)
        sounds = np.cumsum(steps)[:-1] > 0
        basses[pitch % 12, sounds & ~taken] = 1
        taken |= sounds
    # how well each beat fits each triad, shape (24, n_beats), in the order of `CHORD_LABELS`
    triads = [np.isin(np.arange(12), steps).astype(float) for steps in ((0, 4, 7), (0, 3, 7))]
    templates = np.stack([np.roll(triad, root) for triad in triads for root in range(12)]) / np.sqrt(3)
    norms = np.linalg.norm(weights, axis=0)
    with one_thread():
        cosines = templates @ (weights / np.where(norms > 0, norms, 1))
    scores = TEMPERATURE * (cosines + BASS_BONUS * np.concatenate([basses, basses]))
    path = viterbi(log_softmax(scores), STAY)
    states = np.where(weights.any(axis=0), path, len(CHORD_LABELS))
    return states_to_chords(states, score.seconds(ticks))


def _frame_of(times_sec: FloatArray, n_frames: int) -> npt.NDArray[np.int64]:
    """Return the first frame of `HOP_SEC` that is not before each time, at most `n_frames`; shape (n,)."""
    return np.minimum(np.ceil(times_sec / HOP_SEC - 1e-9).astype(np.int64), n_frames)


def _structure(reading: _Reading) -> StructureFrames:
    """Return frames four a second, each row of mean 0 and standard deviation 1, pitch classes at half their weight."""
    centres = np.rint(np.arange(reading.n_frames) * HOP_SEC / FRAME_SEC)
    edges = np.append(np.flatnonzero(np.diff(centres, prepend=-1)), len(centres))
    rows = [standardise(pool(block, edges)) for block in _blocks(reading)]
    rows[0] *= CHROMA_WEIGHT
    return StructureFrames(np.concatenate(rows).astype(np.float32), FRAME_SEC)


def _segments(reading: _Reading) -> Segments:
    """Return the sections that the segmenter of recordings finds."""
    n_frames, duration_sec = reading.n_frames, reading.duration_sec
    edges = np.append(np.arange(0, n_frames - POOLED_FRAMES, POOLED_FRAMES), n_frames)
    blocks = [pool(block, edges) for block in _blocks(reading)]
    start_sec = float(reading.score.seconds(reading.score.notes["onset_tick"].min()))
    hop_sec = POOLED_FRAMES * HOP_SEC
    return form_of(blocks, hop_sec, start_sec=start_sec, end_sec=duration_sec, duration_sec=duration_sec)


def _blocks(reading: _Reading) -> list[FloatArray]:
    """Return pitch classes, octaves and onsets, shape (rows, n_frames) each, as counted in a recording."""
    # Notes that sound in each of twelve pitch classes; those that sound in each of eleven octaves, in the place of
    # timbre; and those that start, of drums and in three registers.
    pitches = reading.pitched.pitches
    # count the notes that start at each frame: drums, low, middle and high; shape (4, n_frames)
    score, notes, n_frames = reading.score, reading.pitched, reading.n_frames
    drums = score.notes[np.isin(score.notes["voice"], np.flatnonzero(np.array(score.programs) == DRUMS))]
    drums_sec = score.seconds(drums["onset_tick"])
    registers = 1 + np.searchsorted(REGISTER_STARTS, notes.pitches, "right")
    rows = np.concatenate([np.zeros(len(drums), np.int64), registers])
    times_sec = np.concatenate([drums_sec, notes.onsets_sec])
    counts = np.zeros((2 + len(REGISTER_STARTS), n_frames))
    np.add.at(counts, (rows, np.minimum(_frame_of(times_sec, n_frames), n_frames - 1)), 1)
    return [
        np.log1p(_sounding(reading, pitches % 12, 12)),
        np.log1p(_sounding(reading, pitches // 12, N_OCTAVES)),
        counts,
    ]


def _sounding(reading: _Reading, rows: npt.NDArray[np.int64], n_rows: int) -> FloatArray:
    """Count the notes of each row that sound at each frame, shape (n_rows, n_frames): a note lasts at least a frame."""
    notes, n_frames = reading.pitched, reading.n_frames
    changes = np.zeros((n_rows, n_frames + 1))
    first = np.minimum(_frame_of(notes.onsets_sec, n_frames), n_frames - 1)
    np.add.at(changes, (rows, first), 1)
    np.add.at(changes, (rows, np.maximum(_frame_of(notes.offsets_sec, n_frames), first + 1)), -1)
    return np.cumsum(changes, axis=1)[:, :n_frames]


def melody_voice(score: Score) -> int | None:
    """Return the voice whose name says that it is the melody, None where none does."""
    # Names with a word that starts with "melod", "lead", "vocal", "soprano" or "solo", or that is "vox", "tune" or
    # "sing", with the forms of the last two, in the order of `_NAMES`; then the first voice. Voices of drums and voices
    # without notes do not count.
    drums = set(np.flatnonzero(np.array(score.programs) == DRUMS).tolist())
    sounding = [index for index in np.unique(score.notes["voice"]).tolist() if index not in drums]
    for name in _NAMES:
        for index in sounding:
            if re.search(rf"(?<![a-z]){name}", score.voices[index], re.IGNORECASE):
                return int(index)
    return None


def _melody(reading: _Reading) -> Melody:
    """Return the notes of the melody, one after the other."""
    notes = reading.pitched
    voice = melody_voice(reading.score)
    if voice is not None:
        columns = (getattr(notes, field.name) for field in dataclasses.fields(notes))
        notes = _PitchedNotes(*(column[notes.voices == voice] for column in columns))
    line = _upper_line(notes)
    if voice is not None or len(line.pitches) == len(notes.pitches):
        return line  # one voice alone: nothing can be its accompaniment
    is_near = _near_the_middle(line)
    return Melody(line.intervals_sec[is_near], line.pitches[is_near])


def _upper_line(notes: _PitchedNotes) -> Melody:
    """Return the skyline of Uitdenbogerd and Zobel (ACM Multimedia 1999)."""
    # Where notes start, the highest of them goes on the line, to its end or to the next note of the line. Two
    # deviations, for lines over an accompaniment: a note that starts below a sounding note of the line does not cut it,
    # and a note that lies more than a fifth below the middle of the line around it is accompaniment in a rest of the
    # melody, and left out (`_near_the_middle`).
    # of those that start together the highest comes first, and of the same pitch the longest
    order = np.lexsort((-notes.offsets_sec, -notes.pitches, notes.onsets_sec))
    line: list[list[float]] = []
    columns = (notes.onsets_sec[order], notes.offsets_sec[order], notes.pitches[order])
    for onset, offset, pitch in zip(*(column.tolist() for column in columns), strict=True):
        if line and onset < line[-1][1]:
            if onset == line[-1][0] or pitch < line[-1][2]:
                continue
            line[-1][1] = onset
        line.append([onset, offset, pitch])
    rows = np.array(line, dtype=np.float64).reshape(-1, 3)
    return Melody(rows[:, :2], rows[:, 2])


def _near_the_middle(line: Melody) -> npt.NDArray[np.bool_]:
    """Tell which notes are not far below the median pitch, by duration, of the notes around them; shape (n,)."""
    onsets = line.intervals_sec[:, 0]
    durations = np.diff(line.intervals_sec, axis=1)[:, 0]
    starts = np.searchsorted(onsets, onsets - AROUND_SEC, side="left")
    stops = np.searchsorted(onsets, onsets + AROUND_SEC, side="right")
    middles = [
        _median(line.pitches[start:stop], durations[start:stop]) for start, stop in zip(starts, stops, strict=True)
    ]
    is_near: npt.NDArray[np.bool_] = line.pitches >= np.array(middles) - FAR_BELOW_SEMITONES
    return is_near


def _median(values: FloatArray, weights: FloatArray) -> float:
    order = np.argsort(values)
    reached = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(reached, reached[-1] / 2)])


_READERS: dict[str, Callable[[_Reading], Any]] = {
    "beats": _beats,
    "key": _key,
    "chords": _chords,
    # how many notes of each pitch class sound at each frame
    "chroma": lambda reading: Chroma(_sounding(reading, reading.pitched.pitches % 12, 12), HOP_SEC),
    "f0": _f0,
    "melody": _melody,
    "segments": _segments,
    "structure": _structure,
}


@dataclasses.dataclass(frozen=True, eq=False)
class _PitchedNotes:
    """The notes of all voices that are no drums, in onset order; every array has shape (n,)."""

    onset_ticks: npt.NDArray[np.int64]  # on the score's grid
    offset_ticks: npt.NDArray[np.int64]
    onsets_sec: npt.NDArray[np.float64]  # the same in seconds
    offsets_sec: npt.NDArray[np.float64]
    pitches: npt.NDArray[np.int64]  # MIDI numbers, int64
    voices: npt.NDArray[np.int64]  # index of the voice


def _beat_ticks(score: Score) -> tuple[npt.NDArray[np.float64], float]:
    """Return the tick of every beat before the end of the last note, shape (n,), and how many beats lie before it."""
    # Fractions of a tick are possible, and of a beat.
    bars = meter_map(score)
    beats = [tactus_ticks(signature, bars.ticks_per_quarter) for signature in bars.signatures]
    if bars.pickup_ticks:  # it has the beat of the bar that it leads to
        beats[0] = beats[1]
    ticks: list[Fraction] = []
    n_beats = Fraction()
    for index, beat in enumerate(beats):
        start, stop = int(bars.starts[index]), int(bars.starts[index + 1])
        n_beats += (min(stop, score.end_tick) - start) / beat
        if index == 0 and bars.pickup_ticks:  # counted from its end backwards
            ticks += [stop - number * beat for number in range((stop - start) // beat, 0, -1)]
        else:  # the last one perhaps cut short by the next bar line
            ticks += [start + number * beat for number in range(-((start - stop) // beat))]
    return np.array([float(tick) for tick in ticks if tick < score.end_tick], dtype=np.float64), float(n_beats)


def tactus_ticks(signature: TimeSignature, ticks_per_quarter: int) -> Fraction:
    """Return the length of a beat in ticks: the denominator's note, or three of them in a compound meter."""
    compound = signature.denominator >= 8 and signature.numerator % 3 == 0
    return Fraction(4 * ticks_per_quarter * (3 if compound else 1), signature.denominator)
