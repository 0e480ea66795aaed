"""Features of a score, read from its notes: the symbolic entrance of the metrics of music context preservation.

Nothing is rendered and nothing is listened to. Beats and tempo come from the tempo map and the meter, chroma and melody
are exact; key, chords and sections are analysed from the notes, because a file does not state them, or states them
wrongly: key signatures in MIDI files are C major wherever nobody set one, and never tell the mode reliably. They are
not read.

What a file leaves out is taken as the MIDI standard says, and `score_remarks` tells it: 120 quarters a minute, 4/4.
Velocities and programs play no part, except that drums have no pitch.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from typing import Any, Final

import numpy as np

from music_evals.annotations import (
    DEFAULT_BPM,
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
)
from music_evals.audio.extraction import SHORTEST_STRUCTURE_SEC
from music_evals.errors import UnknownNameError
from music_evals.pipelines._score_harmony import score_chords, score_key
from music_evals.pipelines._score_melody import melody_voice, score_melody
from music_evals.pipelines._score_notes import PitchedNotes, beat_ticks, most_beats, pitched_notes, tactus_count
from music_evals.pipelines._score_structure import HOP_SEC, frame_of, score_chroma, score_segments, score_structure

__all__ = ["melody_voice", "score_features", "score_remarks"]

MAX_BEATS: Final = 200_000  # of two hours at 1,600 a minute; damaged files claim bars of one tick
MAX_DURATION_SEC: Final = 2 * 3600.0  # the grids are as long as the piece; damaged tempo maps claim years


@dataclasses.dataclass(frozen=True)
class _Reading:
    """A score and what several features need of it."""

    score: Score
    pitched: PitchedNotes
    duration_sec: float


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
        - chords: major and minor triads, beat by beat, see `_score_harmony`.
        - chroma: number of notes that sound in each pitch class, every 23.2 ms.
        - melody, f0: the voice of `melody_voice`, else the upper line of all voices that have a pitch, see
          `_score_melody`; f0 every 23.2 ms.
        - structure, segments: the algorithm of the recordings on pitch classes, octaves and onset counts, see
          `_score_structure`.

    Raises
    ------
    UnknownNameError
        A feature that does not exist.

    Examples
    --------
    >>> from music_evals.symbolic.notes import make_notes
    >>> found = score_features(Score(make_notes([0, 480, 960], [480] * 3, [60, 64, 67]), 480), ["beats", "melody"])
    >>> found.beats.times_sec, found.beats.bpm, found.melody.pitches
    (array([0. , 0.5, 1. ]), 120.0, array([60., 64., 67.]))

    """
    wanted = tuple(FEATURES) if features is None else tuple(features)
    for name in wanted:
        if name not in FEATURES:
            raise UnknownNameError("feature", name, FEATURES)
    end_sec = float(score.seconds(score.end_tick))
    reading = _Reading(score, pitched_notes(score), end_sec)
    undefined = {name: reason for name in wanted if (reason := _why_undefined(name, reading))}
    found: dict[str, Any] = {name: _READERS[name](reading) for name in wanted if name not in undefined}
    if "key" in found and found["key"] is None:
        undefined["key"] = "the notes fit all keys alike"
    return Features(reading.duration_sec, **found, undefined=undefined, silent=not len(score.notes))


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
    if name in {"beats", "chords"} and most_beats(reading.score) > MAX_BEATS:
        return f"more than {MAX_BEATS} beats"
    if name != "beats" and not len(reading.pitched.pitches):
        return "no notes but drums"
    if name in {"segments", "structure"} and reading.duration_sec < SHORTEST_STRUCTURE_SEC:
        return f"shorter than {SHORTEST_STRUCTURE_SEC:g} s"
    return ""


def _beats(reading: _Reading) -> Beats:
    score = reading.score
    times_sec = score.seconds(beat_ticks(score))
    return Beats(times_sec, 60 * tactus_count(score) / reading.duration_sec)


def _key(reading: _Reading) -> Key | None:
    return score_key(reading.pitched)


def _chords(reading: _Reading) -> Chords:
    return score_chords(reading.score, reading.pitched)


def _chroma(reading: _Reading) -> Chroma:
    return score_chroma(reading.pitched, reading.duration_sec)


def _melody(reading: _Reading) -> Melody:
    return score_melody(reading.score, reading.pitched)


def _f0(reading: _Reading) -> F0Track:
    melody = _melody(reading)
    n_frames = int(np.ceil(reading.duration_sec / HOP_SEC))
    frequencies_hz = np.zeros(n_frames)
    first, stop = (frame_of(times_sec, n_frames) for times_sec in melody.intervals_sec.T)
    for start, end, pitch in zip(first.tolist(), stop.tolist(), melody.pitches.tolist(), strict=True):
        frequencies_hz[start:end] = 440 * 2 ** ((pitch - 69) / 12)
    return F0Track(np.arange(n_frames, dtype=np.float64) * HOP_SEC, frequencies_hz)


def _structure(reading: _Reading) -> StructureFrames:
    return score_structure(reading.score, reading.pitched, reading.duration_sec)


def _segments(reading: _Reading) -> Segments:
    return score_segments(reading.score, reading.pitched, reading.duration_sec)


_READERS: dict[str, Callable[[_Reading], Any]] = {
    "beats": _beats,
    "key": _key,
    "chords": _chords,
    "chroma": _chroma,
    "f0": _f0,
    "melody": _melody,
    "segments": _segments,
    "structure": _structure,
}
