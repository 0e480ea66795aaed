"""What is known of a piece of `known_edits`, in seconds, and how edits of the audio move it.

One function makes the truth of a source and of what an edit made of it. It is the truth of a rendering: the recording
ends `RELEASE_SEC` after the last note.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from music_evals.annotations import DRUMS, Beats, Chords, Chroma, F0Track, Features, Key, Melody, Score, Segments
from music_evals.audio.rendering import RELEASE_SEC
from music_evals.datasets.known_edits.harmony import transpose_label
from music_evals.datasets.known_edits.pieces import Piece

HOP_SEC = 512 / 22050  # the hop of the chroma and pitch extractors
_DECIMALS = 6

FloatArray = npt.NDArray[np.float64]


def features_of(piece: Piece) -> Features:
    """Return beats, key, chords, melody, its f0 track and sections of a piece as it is rendered."""
    last = max(note.end for part in piece.parts for note in part.notes)
    duration = _rounded(piece.seconds(last)).item() + RELEASE_SEC
    melody = Melody(_intervals(piece, piece.melody.notes), np.array([float(n.pitch) for n in piece.melody.notes]))
    # a short first bar is a pickup and ends on a beat, every other bar begins on one
    beats: list[int] = []
    for start, end in piece.bar_spans():
        beats += range(start + (end - start) % piece.beat if start == 0 else start, end, piece.beat)
    sections = _intervals(piece, [(span.start, span.end) for span in piece.sections])
    sections[-1, 1] = duration
    return Features(
        duration,
        beats=Beats(_rounded(piece.seconds(beats)), piece.bpm),
        key=piece.key,
        chords=Chords(
            _intervals(piece, [(span.start, span.end) for span in piece.chords]),
            tuple(span.label for span in piece.chords),
        ),
        f0=f0_track(melody, duration),
        melody=melody,
        segments=Segments(sections, tuple(span.label for span in piece.sections)),
    )


def _rounded(seconds: FloatArray) -> FloatArray:
    return np.round(seconds, _DECIMALS)


def _intervals(piece: Piece, spans: Sequence[Any]) -> FloatArray:
    """Return start and end in seconds, shape (n, 2), of notes or of (start, end) in ticks."""
    ticks = [(span[0], span.end if hasattr(span, "pitch") else span[1]) for span in spans]
    return _rounded(piece.seconds(np.array(ticks, dtype=np.float64).reshape(-1, 2)))


def f0_track(melody: Melody, duration_sec: float) -> F0Track:
    """Return the pitch of the melody every `HOP_SEC` from 0 to the end of the recording; 0 where it rests."""
    times = np.arange(int(duration_sec / HOP_SEC) + 1, dtype=np.float64) * HOP_SEC
    frequencies = np.zeros(len(times), dtype=np.float64)
    if len(melody.pitches):
        note = np.searchsorted(melody.intervals_sec[:, 0], times, side="right") - 1
        sounding = (note >= 0) & (times < melody.intervals_sec[note, 1])
        frequencies[sounding] = 440 * 2 ** ((melody.pitches[note[sounding]] - 69) / 12)
    return F0Track(times, frequencies)


def moved(features: Features, operations: Sequence[Mapping[str, Any]]) -> Features:
    """Return the truth of a recording after operations of `audio_edits`."""
    for operation in operations:
        name = operation["op"]
        if name == "offset":
            features = _warped(features, shift_sec=operation["seconds"])
        elif name == "stretch":
            features = _warped(features, speed=operation["factor"])
        elif name == "varispeed":
            semitones = operation["semitones"]
            features = _transposed(_warped(features, speed=2 ** (semitones / 12)), semitones)
        elif name == "cut":
            features = _cut(features, features.duration_sec * (1 - operation["share"]))
    return features


def parts_of(features: Features) -> tuple[Beats, Key, Chords, Melody, Segments]:
    """Return what the truth always has; the type of `Features` cannot say so."""
    parts = (features.beats, features.key, features.chords, features.melody, features.segments)
    return cast("tuple[Beats, Key, Chords, Melody, Segments]", parts)


def _warped(features: Features, *, speed: float = 1.0, shift_sec: float = 0.0) -> Features:
    def move(seconds: FloatArray) -> FloatArray:
        return _rounded(seconds / speed + shift_sec)

    beats, _, chords, melody, segments = parts_of(features)
    duration = round(features.duration_sec / speed + shift_sec, _DECIMALS)
    sections = move(segments.intervals_sec)
    sections[0, 0], sections[-1, 1] = 0.0, duration
    notes = Melody(move(melody.intervals_sec), melody.pitches)
    return dataclasses.replace(
        features,
        duration_sec=duration,
        beats=Beats(move(beats.times_sec), beats.bpm * speed),
        chords=Chords(move(chords.intervals_sec), chords.labels),
        melody=notes,
        f0=f0_track(notes, duration),
        segments=Segments(sections, segments.labels),
    )


def _transposed(features: Features, semitones: int) -> Features:
    _, key, chords, melody, _ = parts_of(features)
    notes = Melody(melody.intervals_sec, melody.pitches + semitones)
    return dataclasses.replace(
        features,
        key=Key((key.tonic + semitones) % 12, key.mode),
        chords=Chords(chords.intervals_sec, tuple(transpose_label(label, semitones) for label in chords.labels)),
        melody=notes,
        f0=f0_track(notes, features.duration_sec),
    )


def _cut(features: Features, end_sec: float) -> Features:
    end = round(end_sec, _DECIMALS)
    beats, _, chords, melody, segments = parts_of(features)

    def keep(intervals: FloatArray) -> tuple[FloatArray, int]:
        remaining = intervals[intervals[:, 0] < end]
        return np.minimum(remaining, end), len(remaining)

    harmony, n_chords = keep(chords.intervals_sec)
    form, n_sections = keep(segments.intervals_sec)
    sounding, n_notes = keep(melody.intervals_sec)
    notes = Melody(sounding, melody.pitches[:n_notes])
    return dataclasses.replace(
        features,
        duration_sec=end,
        beats=Beats(beats.times_sec[beats.times_sec < end], beats.bpm),
        chords=Chords(harmony, chords.labels[:n_chords]),
        melody=notes,
        f0=f0_track(notes, end),
        segments=Segments(form, segments.labels[:n_sections]),
    )


def velocity_chroma(score: Score, duration_sec: float, operations: Sequence[Mapping[str, Any]] = ()) -> Chroma:
    """Return the pitch classes that a score sounds, weighted by velocity, every `HOP_SEC`; drums do not count."""
    # It stands for what is heard in the recording, where loud notes count for more. The chroma of a score as such
    # (`pipelines.score_features`) counts notes, whatever their velocity.
    pitched = np.array([score.programs[voice] < DRUMS for voice in score.notes["voice"]], dtype=bool)
    notes, semitones = score.notes[pitched], 0
    seconds = score.seconds(np.stack([notes["onset_tick"], notes["onset_tick"] + notes["duration_tick"]], axis=1))
    for operation in operations:
        if operation["op"] == "offset":
            seconds = seconds + operation["seconds"]
        elif operation["op"] == "stretch":
            seconds = seconds / operation["factor"]
        elif operation["op"] == "varispeed":
            semitones += operation["semitones"]
            seconds = seconds / 2 ** (operation["semitones"] / 12)
    frames = np.zeros((12, int(duration_sec / HOP_SEC) + 1))
    for (first, last), note in zip(np.ceil(seconds / HOP_SEC).astype(np.int64), notes, strict=True):
        frames[(note["pitch"] + semitones) % 12, first:last] += note["velocity"] / 127
    return Chroma(frames, HOP_SEC)
