"""A lead sheet of a recording: melody and chords by our extractors, counted in beats, as MIDI and MusicXML.

MuChin (appendix B) has lead sheets made by Sheet Sage on features of Jukebox; ours stand in its place.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, Final
from xml.etree import ElementTree as ET

import numpy as np
import numpy.typing as npt

from music_evals.annotations import NOTE_DTYPE, Features, Score, Tempo, TimeSignature
from music_evals.errors import InvalidAnnotationError
from music_evals.symbolic.contexts import STEPS_PER_QUARTER
from music_evals.symbolic.midi import write_midi
from music_evals.symbolic.rewriting.note_values import spell_pitch

__all__ = ["FEATURES", "LeadSheet", "make_lead_sheet"]

FEATURES: Final = ("beats", "chords", "melody")
"""What a lead sheet is made of, as names of `music_evals.annotations.FEATURES`."""

_STEP: Final = STEPS_PER_QUARTER // 2  # an eighth
_MEASURE: Final = 4 * STEPS_PER_QUARTER
_CHORD_OCTAVE: Final = 48  # the C below middle C
_VELOCITY: Final = (90, 60)  # melody, chords
_VALUES: Final = {24: "whole", 12: "half", 6: "quarter", 3: "eighth"}
_KINDS: Final = {
    "": "major", "maj": "major", "min": "minor", "7": "dominant", "maj7": "major-seventh", "min7": "minor-seventh",
    "dim": "diminished", "aug": "augmented", "sus2": "suspended-second", "sus4": "suspended-fourth",
}  # fmt: skip


@dataclasses.dataclass(frozen=True)
class LeadSheet:
    """A lead sheet, and how well its notes fitted the grid."""

    midi: bytes
    musicxml: bytes
    bpm: float  # 60 by the median distance of beats
    n_notes: int
    n_dropped: int  # notes that fell on the place of another one
    off_grid: float  # mean distance of an onset from its place on the grid, in beats, 0 to 0.25; lower is surer


@dataclasses.dataclass(frozen=True)
class _Chord:
    onset: int
    root: str
    quality: str
    pitches: tuple[int, ...]


def make_lead_sheet(features: Features, title: str = "") -> LeadSheet:
    """Write melody and chords on a grid of eighths, counted in the beats of features that have all of `FEATURES`.

    Every beat is a quarter. Where measures begin is not known: four beats make one, from the first beat on.

    Raises `InvalidAnnotationError`: a feature is missing or undefined, there are fewer than two beats, or no note.
    """
    absent = [name for name in FEATURES if getattr(features, name) is None]
    missing = [f"{name} ({features.undefined.get(name, 'not extracted')})" for name in absent]
    if missing:
        raise InvalidAnnotationError(f"no lead sheet without {', '.join(missing)}")
    assert features.beats is not None
    assert features.chords is not None
    assert features.melody is not None
    beats = features.beats.times_sec
    if len(beats) < 2 or not len(features.melody.pitches):
        raise InvalidAnnotationError(
            f"a lead sheet needs two beats and a note, got {len(beats)} and {len(features.melody.pitches)}"
        )
    # what begins before the first beat moves the count by whole measures
    at = _in_beats(features.melody.intervals_sec, beats)
    chords_at = _in_beats(features.chords.intervals_sec[:, 0], beats)
    shift = 4 * int(np.ceil(max(0.0, -np.round(at * 2).min() / 2) / 4))
    exact = (at + shift) * STEPS_PER_QUARTER
    grid = np.round(exact / _STEP).astype(np.int64) * _STEP
    notes = _written(grid, features.melody.pitches)
    chords = _chords((chords_at + shift) * STEPS_PER_QUARTER, features.chords.labels)
    bpm = 60 / float(np.median(np.diff(beats)))
    off_grid = float(np.abs(exact[:, 0] - grid[:, 0]).mean()) / STEPS_PER_QUARTER
    end = max(note[1] for note in notes)
    midi = write_midi(_score(notes, chords, end, bpm))
    return LeadSheet(midi, _musicxml(notes, chords, title), bpm, len(notes), len(grid) - len(notes), off_grid)


def _in_beats(times_sec: npt.NDArray[np.float64], beats: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return times as beats from the first one; outside of the beats the nearest distance goes on."""
    places = np.interp(times_sec, beats, np.arange(len(beats)))
    before = (times_sec - beats[0]) / (beats[1] - beats[0])
    after = len(beats) - 1 + (times_sec - beats[-1]) / (beats[-1] - beats[-2])
    result: npt.NDArray[np.float64] = np.where(
        times_sec < beats[0], before, np.where(times_sec > beats[-1], after, places)
    )
    return result


def _written(grid: npt.NDArray[np.int64], pitches: npt.NDArray[np.float64]) -> list[tuple[int, int, int]]:
    """Return onset, end and pitch of the notes, one a place: the longest, cut where the next one begins."""
    longest: dict[int, tuple[int, int, int]] = {}
    for (onset, end), pitch in zip(grid.tolist(), pitches.tolist(), strict=True):
        note = (onset, max(end, onset + _STEP), round(pitch))
        if onset not in longest or note[1] > longest[onset][1]:
            longest[onset] = note
    notes = [longest[onset] for onset in sorted(longest)]
    nexts = [*(note[0] for note in notes[1:]), notes[-1][1]]
    return [(onset, min(end, limit), pitch) for (onset, end, pitch), limit in zip(notes, nexts, strict=True)]


def _chords(places: npt.NDArray[np.float64], labels: Sequence[str]) -> list[_Chord]:
    """Return the chords on the grid of quarters, the last one that falls on a place; no chord has no pitches."""
    from mir_eval import chord

    by_onset: dict[int, _Chord] = {}
    for place, label in zip(places.tolist(), labels, strict=True):
        onset = max(0, round(place / STEPS_PER_QUARTER)) * STEPS_PER_QUARTER
        root, quality, _, _ = chord.split(label)
        number, bitmap, _ = chord.encode(label)
        pitches = tuple(_CHORD_OCTAVE + int(number) + step for step in np.flatnonzero(bitmap).tolist())
        by_onset[onset] = _Chord(onset, root, quality, pitches if number >= 0 else ())
    return [by_onset[onset] for onset in sorted(by_onset)]


def _score(notes: Sequence[tuple[int, int, int]], chords: Sequence[_Chord], end: int, bpm: float) -> Score:
    rows = [(onset, stop - onset, pitch, _VELOCITY[0], 0) for onset, stop, pitch in notes]
    stops = [*(chord.onset for chord in chords[1:]), end]
    for chord, stop in zip(chords, stops, strict=True):
        rows += [
            (chord.onset, stop - chord.onset, pitch, _VELOCITY[1], 1) for pitch in chord.pitches if stop > chord.onset
        ]
    rows.sort(key=lambda row: (row[0], row[4], row[2]))
    return Score(
        np.array(rows, dtype=NOTE_DTYPE),
        STEPS_PER_QUARTER,
        (TimeSignature(0, 4, 4),),
        (Tempo(0, bpm),),
        voices=("melody", "chords"),
        programs=(0, 0),
    )


def _musicxml(notes: Sequence[tuple[int, int, int]], chords: Sequence[_Chord], title: str) -> bytes:
    root = ET.Element("score-partwise", version="4.0")
    ET.SubElement(ET.SubElement(root, "work"), "work-title").text = title
    part_list = ET.SubElement(ET.SubElement(root, "part-list"), "score-part", id="P1")
    ET.SubElement(part_list, "part-name").text = "Melody"
    part = ET.SubElement(root, "part", id="P1")
    for number in range(-(-notes[-1][1] // _MEASURE)):
        measure = ET.SubElement(part, "measure", number=str(number + 1))
        start = number * _MEASURE
        if not number:
            attributes = _texts(measure, "attributes", divisions=STEPS_PER_QUARTER)
            _texts(attributes, "key", fifths=0)
            _texts(attributes, "time", beats=4, **{"beat-type": 4})
        for chord in chords:
            if start <= chord.onset < start + _MEASURE:
                harmony = ET.SubElement(measure, "harmony")
                if chord.pitches:
                    alter = chord.root.count("#") - chord.root.count("b")
                    _texts(harmony, "root", **{"root-step": chord.root[0]} | ({"root-alter": alter} if alter else {}))
                    kind = ET.SubElement(harmony, "kind", text=chord.quality)
                    kind.text = _KINDS.get(chord.quality, "other")
                else:
                    _texts(harmony, "root", **{"root-step": "C"})
                    ET.SubElement(harmony, "kind", text="N.C.").text = "none"
                ET.SubElement(harmony, "offset").text = str(chord.onset - start)
        position = start
        for onset, end, pitch in [*notes, (start + _MEASURE, start + _MEASURE, 0)]:
            low, high = max(onset, start), min(end, start + _MEASURE)
            if high < low or onset > start + _MEASURE:
                continue
            _add_notes(measure, low - position, None)
            _add_notes(measure, high - low, pitch, before=onset < low, after=end > high)
            position = high
    ET.indent(root)
    content: bytes = ET.tostring(root, encoding="UTF-8", xml_declaration=True)
    return content + b"\n"


def _texts(parent: ET.Element, tag: str, **values: Any) -> ET.Element:
    element = ET.SubElement(parent, tag)
    for name, value in values.items():
        ET.SubElement(element, name).text = str(value)
    return element


def _add_notes(
    measure: ET.Element, steps: int, pitch: int | None, *, before: bool = False, after: bool = False
) -> None:
    """Write a note, or a rest, in as few tied values as it takes."""
    while steps > 0:
        value = next(value for value in _VALUES if value <= steps)
        steps -= value
        note = ET.SubElement(measure, "note")
        ties = (["stop"] if before else []) + (["start"] if steps or after else [])
        if pitch is None:
            ET.SubElement(note, "rest")
            ties = []
        else:
            name = spell_pitch(pitch)
            alter = {"alter": name.alter} if name.alter else {}
            _texts(note, "pitch", step=name.letter, **alter, octave=name.octave)
        ET.SubElement(note, "duration").text = str(value)
        for tie in ties:
            ET.SubElement(note, "tie", type=tie)
        ET.SubElement(note, "voice").text = "1"
        ET.SubElement(note, "type").text = _VALUES[value]
        notations = ET.SubElement(note, "notations") if ties else note
        for tie in ties:
            ET.SubElement(notations, "tied", type=tie)
        before = True
