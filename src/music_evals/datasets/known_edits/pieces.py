"""The pieces of `known_edits` as values that edits work on: parts with roles, bars, chords, sections, key and tempo.

Time is counted in ticks of `TPQ` a quarter note from the start of the piece; one tempo holds throughout unless an edit
gave the piece a tempo map.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from music_evals.annotations import Key, KeySignature, Score, Tempo, TimeSignature
from music_evals.symbolic.notes import make_notes

TPQ = 480


class Note(NamedTuple):
    """A note: onset and duration in ticks, MIDI pitch (or key of the drum kit), velocity."""

    onset: int
    duration: int
    pitch: int
    velocity: int

    @property
    def end(self) -> int:
        """Tick where the note ends."""
        return self.onset + self.duration


class Span(NamedTuple):
    """A stretch of time with a label: a chord or a section, in ticks."""

    start: int
    end: int
    label: str


@dataclasses.dataclass(frozen=True)
class Part:
    """One instrument."""

    name: str  # name of its track
    # ``"melody"``, ``"chords"`` (accompaniment that may be held or broken), ``"voice"`` (other voices that move on
    # their own), ``"bass"`` or ``"drums"``.
    role: str
    program: int  # general MIDI program, or `annotations.DRUMS`
    notes: tuple[Note, ...]  # in onset order; no two of one pitch overlap

    def with_notes(self, notes: Iterable[Note]) -> Part:
        """Return the part with other notes, sorted and tidied."""
        return dataclasses.replace(self, notes=tidy(notes))


@dataclasses.dataclass(frozen=True)
class Piece:
    """A piece, or what an edit made of it."""

    name: str  # its id, as `edits.yaml` lists it
    parts: tuple[Part, ...]  # the instruments; exactly one has the role ``"melody"``
    bars: tuple[int, ...]  # ticks where bars start; the first may be a pickup
    end: int  # tick where the last bar ends
    meter: tuple[int, int]  # numerator and denominator
    mspq: int  # microseconds a quarter note: the nominal tempo
    key: Key  # tonic and mode of the whole
    chords: tuple[Span, ...]  # without gaps from 0 to `end`; sections of one label are repetitions
    sections: tuple[Span, ...]
    # Tempo map as (tick, microseconds a quarter), the first at 0; empty where `mspq` holds throughout.
    tempos: tuple[tuple[int, int], ...] = ()

    @property
    def beat(self) -> int:
        """Ticks in a beat: a dotted quarter in 6/8 and 3/8, else the denominator of the meter."""
        return beat_of(self.meter)

    @property
    def bar(self) -> int:
        """Ticks in a full bar."""
        return 4 * TPQ * self.meter[0] // self.meter[1]

    @property
    def bpm(self) -> float:
        """Nominal beats a minute."""
        return 6e7 / self.mspq * TPQ / self.beat

    @property
    def melody(self) -> Part:
        """The part that has the melody."""
        return next(part for part in self.parts if part.role == "melody")

    @property
    def offers(self) -> frozenset[str]:
        """What `needs` in `edits.yaml` may ask for: drums or no_drums, accompaniment, sections."""
        roles = {part.role for part in self.parts if part.notes}
        offered = {"drums" if "drums" in roles else "no_drums"}
        if "chords" in roles:
            offered.add("accompaniment")
        if len({section.label for section in self.sections}) > 1:
            offered.add("sections")
        return frozenset(offered)

    def bar_spans(self) -> Iterator[tuple[int, int]]:
        """Yield start and end of every bar."""
        yield from itertools.pairwise((*self.bars, self.end))

    def chord_at(self, tick: int) -> str:
        """Return the label of the chord that sounds at a tick."""
        return next((chord.label for chord in self.chords if chord.start <= tick < chord.end), self.chords[-1].label)

    def map_parts(self, change: Callable[[Part], Part], roles: Iterable[str] | None = None) -> Piece:
        """Return the piece with every part of some roles (None: all) replaced by ``change(part)``."""
        wanted = None if roles is None else set(roles)
        parts = tuple(change(part) if wanted is None or part.role in wanted else part for part in self.parts)
        return dataclasses.replace(self, parts=parts)

    def seconds(self, ticks: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Return the time of ticks in seconds, same shape."""
        at = np.asarray(ticks, dtype=np.float64)
        changes = np.array(self.tempos or ((0, self.mspq),), dtype=np.float64)
        starts, rates = changes[:, 0], changes[:, 1] / (1e6 * TPQ)
        reached = np.concatenate([[0.0], np.cumsum(np.diff(starts) * rates[:-1])])
        index = np.clip(np.searchsorted(starts, at, side="right") - 1, 0, None)
        seconds: npt.NDArray[np.float64] = reached[index] + (at - starts[index]) * rates[index]
        return seconds

    def score(self) -> Score:
        """Return the notes as a `Score`, parts without notes left out."""
        parts = [part for part in self.parts if part.notes]
        rows = [(*note, voice) for voice, part in enumerate(parts) for note in part.notes]
        major_tonic = (self.key.tonic + (3 if self.key.mode == "minor" else 0)) % 12
        fifths = (7 * major_tonic + 5) % 12 - 5
        return Score(
            make_notes(*np.array(rows, dtype=np.int64).T),
            TPQ,
            time_signatures=(TimeSignature(0, *self.meter),),
            tempos=tuple(Tempo(tick, 6e7 / mspq) for tick, mspq in self.tempos or ((0, self.mspq),)),
            key_signatures=(KeySignature(0, fifths, self.key.mode == "minor"),),
            voices=tuple(part.name for part in parts),
            programs=tuple(part.program for part in parts),
        )


def beat_of(meter: tuple[int, int]) -> int:
    """Return the ticks of a beat: a dotted quarter in 6/8 and 3/8, else the denominator of the meter."""
    numerator, denominator = meter
    return 3 * TPQ // 2 if denominator == 8 and numerator % 3 == 0 else 4 * TPQ // denominator


def tidy(notes: Iterable[Note]) -> tuple[Note, ...]:
    """Sort notes and end each where the next of its pitch starts; of two at one place the longer stays."""
    latest: dict[int, int] = {}
    tidied: list[Note] = []
    for note in sorted(notes, key=lambda n: (n.onset, n.pitch, -n.duration)):
        before = latest.get(note.pitch)
        if before is not None and tidied[before].onset == note.onset:
            continue
        if before is not None and tidied[before].end > note.onset:
            tidied[before] = tidied[before]._replace(duration=note.onset - tidied[before].onset)
        latest[note.pitch] = len(tidied)
        tidied.append(note)
    return tuple(tidied)


def articulate(notes: Sequence[Note], mspq: int) -> list[Note]:
    """Detach repeated notes: one that the same pitch follows at once ends 0.08 s early, at most a quarter of it."""
    gap = round(0.08e6 * TPQ / mspq)
    result = list(notes)
    for index, (note, following) in enumerate(itertools.pairwise(notes)):
        if note.pitch == following.pitch and note.end == following.onset:
            result[index] = note._replace(duration=note.duration - min(gap, note.duration // 4))
    return result


def merge_spans(spans: Iterable[Span]) -> tuple[Span, ...]:
    """Join neighbours of one label."""
    merged: list[Span] = []
    for span in spans:
        if merged and merged[-1].label == span.label and merged[-1].end == span.start:
            merged[-1] = merged[-1]._replace(end=span.end)
        else:
            merged.append(span)
    return tuple(merged)


def splice(piece: Piece, spans: Sequence[tuple[int, int]]) -> Piece:
    """Play stretches of a piece one after the other: what leaving out, repeating and moving of music has in common."""
    # A note is cut where its stretch ends. One that sounds into a stretch from before goes on if the stretch before
    # ends within the same note, and is left out otherwise.
    starts = list(itertools.accumulate((end - start for start, end in spans), initial=0))
    bars = tuple(
        at + bar - start
        for at, (start, end) in zip(starts, spans, strict=False)
        for bar in piece.bars
        if start <= bar < end
    )
    return dataclasses.replace(
        piece,
        parts=tuple(part.with_notes(_splice_notes(part.notes, spans)) for part in piece.parts),
        bars=bars,
        end=starts[-1],
        chords=_splice_labels(piece.chords, spans),
        sections=_splice_sections(piece.sections, spans),
    )


def _splice_notes(notes: Sequence[Note], spans: Sequence[tuple[int, int]]) -> list[Note]:
    result: list[Note] = []
    open_notes: dict[Note, int] = {}  # source note -> index in result, for those that their stretch cut off
    at = 0
    for start, end in spans:
        cut: dict[Note, int] = {}
        for note in notes:
            if note.onset >= end or note.end <= start:
                continue
            if note.onset >= start:
                result.append(note._replace(onset=at + note.onset - start, duration=min(note.end, end) - note.onset))
                index = len(result) - 1
            elif note in open_notes:
                index = open_notes[note]
                result[index] = result[index]._replace(duration=at + min(note.end, end) - start - result[index].onset)
            else:
                continue
            if note.end > end:
                cut[note] = index
        open_notes = cut
        at += end - start
    return result


def _splice_labels(labels: Sequence[Span], spans: Sequence[tuple[int, int]]) -> tuple[Span, ...]:
    spliced: list[Span] = []
    at = 0
    for start, end in spans:
        inside = [span for span in labels if span.start < end and span.end > start]
        spliced += [Span(at + max(s.start, start) - start, at + min(s.end, end) - start, s.label) for s in inside]
        at += end - start
    return merge_spans(spliced)


def _splice_sections(sections: Sequence[Span], spans: Sequence[tuple[int, int]]) -> tuple[Span, ...]:
    """Cut sections as `_splice_labels` does, but keep apart two of one label that follow each other."""
    spliced: list[tuple[Span, int]] = []  # with the index of the source section
    at = 0
    for start, end in spans:
        for index, section in enumerate(sections):
            if section.start >= end or section.end <= start:
                continue
            low, high = max(section.start, start), min(section.end, end)
            piece = Span(at + low - start, at + high - start, section.label)
            if spliced and spliced[-1][1] == index and low != section.start:
                spliced[-1] = (spliced[-1][0]._replace(end=piece.end), index)
            else:
                spliced.append((piece, index))
        at += end - start
    return tuple(span for span, _ in spliced)
