"""The eight Bach chorales of `known_edits`, from the corpus of music21: notes, key, chords, form and instruments."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from music_evals.annotations import Key
from music_evals.datasets.bach_corpus import VOICES, Chorale, read_chorale
from music_evals.datasets.known_edits.harmony import NO_TRIAD, QUALITIES, chord_label
from music_evals.datasets.known_edits.pieces import TPQ, Note, Part, Piece, Span, articulate, merge_spans

_VELOCITIES = (92, 72, 72, 80)
_BREATH = TPQ // 2


@dataclasses.dataclass(frozen=True)
class Setting:
    """How a chorale is played."""

    source: str  # name in the corpus
    bpm: float  # beats a minute
    programs: tuple[int, int, int, int]  # one a voice, soprano first
    # Where phrases end, in quarters from the start: the fermatas of the page. The melody breathes there, and the last
    # of them is the end of the piece as it is played here.
    phrases: tuple[int, ...]
    stollen: int = 0  # length of the opening section that is played twice, in quarters; 0 where nothing is repeated


CHORALES: dict[str, Setting] = {
    "chorale_bwv269": Setting("bwv269", 126, (40, 48, 44, 42), (12, 21, 33, 42, 51, 63, 75, 84), 21),
    "chorale_bwv153_1": Setting("bwv153.1", 84, (68, 66, 60, 70), (8, 16, 24, 32, 40, 48, 56), 16),
    "chorale_bwv267": Setting("bwv267", 120, (56, 60, 60, 58), (8, 16, 24, 32, 40, 48, 56, 64, 72, 84), 16),
    "chorale_bwv17_7": Setting("bwv17.7", 126, (52, 54, 52, 52), (12, 24, 36, 48, 60, 69, 81, 90), 24),
    "chorale_bwv347": Setting("bwv347", 100, (64, 66, 66, 70), (8, 16, 24, 32, 40, 48, 56, 68), 16),
    "chorale_bwv86_6": Setting("bwv86.6", 88, (20, 16, 16, 18), (8, 16, 24, 32, 40, 48, 56), 16),
    "chorale_bwv281": Setting("bwv281", 60, (74, 78, 68, 70), (8, 15, 24, 32)),
    "chorale_bwv40_8": Setting("bwv40.8", 120, (40, 44, 48, 42), (8, 16, 24, 32, 40, 48, 56, 64, 80)),
}  # fmt: skip
"""Id -> setting."""


def set_chorale(name: str) -> Piece:
    """Return one of the chorales, about 0.2 s."""
    setting = CHORALES[name]
    chorale = read_chorale(setting.source)
    end = setting.phrases[-1] * TPQ
    voices = [_voice(chorale, index, end) for index in range(len(VOICES))]
    mspq = round(6e7 / setting.bpm)
    parts = []
    for role, program, notes in zip(VOICES, setting.programs, voices, strict=True):
        played = notes
        if role == "soprano":
            ends = {quarter * TPQ for quarter in setting.phrases[:-1]}
            breathing = [note._replace(duration=note.duration - _BREATH * (note.end in ends)) for note in notes]
            played = articulate(breathing, mspq)
        parts.append(Part(role, {"soprano": "melody", "bass": "bass"}.get(role, "voice"), program, tuple(played)))
    stollen = setting.stollen * TPQ
    sections: tuple[Span, ...] = (Span(0, end, "A"),)
    if stollen:
        sections = (Span(0, stollen, "A"), Span(stollen, 2 * stollen, "A"), Span(2 * stollen, end, "B"))
    signature = chorale.score.time_signatures[0]
    starts = (round(measure.offset_quarters * TPQ) for measure in chorale.measures)
    return Piece(
        name,
        tuple(parts),
        tuple(start for start in starts if start < end),
        end,
        (signature.numerator, signature.denominator),
        mspq,
        key_of(chorale),
        chords_of(voices, end),
        sections,
    )


def _voice(chorale: Chorale, index: int, end: int) -> list[Note]:
    scale = TPQ / chorale.score.ticks_per_quarter
    notes = []
    for row in chorale.score.voice(index):
        onset = round(row["onset_tick"] * scale)
        stop = min(round((row["onset_tick"] + row["duration_tick"]) * scale), end)
        if onset < end:
            notes.append(Note(onset, stop - onset, int(row["pitch"]), _VELOCITIES[index]))
    return notes


def key_of(chorale: Chorale) -> Key:
    """Return the key: what signature and final bass note say together."""
    # A final bass on the tonic of the signature's major is that major; on its relative minor's, that minor, also where
    # the last chord is raised to major.
    major = 7 * chorale.key_fifths % 12
    final = int(chorale.score.voice(len(VOICES) - 1)["pitch"][-1]) % 12
    return Key(major, "major") if final == major else Key((major + 9) % 12, "minor")


def chords_of(voices: Sequence[Sequence[Note]], end: int) -> tuple[Span, ...]:
    """Name the chord of every beat of a chorale from what sounds in it; equal neighbours are joined."""
    spans = []
    for start in range(0, end, TPQ):
        shares: dict[int, float] = {}
        for notes in voices:
            for note in notes:
                overlap = min(note.end, start + TPQ) - max(note.onset, start)
                if overlap > 0:
                    shares[note.pitch % 12] = shares.get(note.pitch % 12, 0.0) + overlap / TPQ
        lowest = [note.pitch for note in voices[-1] if note.onset <= start < note.end]
        spans.append(Span(start, start + TPQ, chord_of(shares, lowest[0] % 12 if lowest else None)))
    return merge_spans(spans)


def chord_of(shares: dict[int, float], bass: int | None) -> str:
    """Return the chord that explains most of what sounds."""
    best, best_score, best_share = NO_TRIAD, float("-inf"), 0.0
    for root in range(12):
        for quality, template in QUALITIES.items():
            if quality.startswith("sus"):
                continue
            tones = [(root + step) % 12 for step in template]
            explained = sum(shares.get(tone, 0.0) for tone in tones)
            missing = sum(
                0.25 if step == 7 else 0.6 for step, t in zip(template, tones, strict=True) if not shares.get(t)
            )
            score = explained - missing - 0.6 * (len(template) - 3) + (0.1 if bass == root else 0.0)
            if score > best_score:
                best, best_score, best_share = chord_label(root, quality), score, explained
    return best if best_share >= 0.75 * sum(shares.values()) else NO_TRIAD
