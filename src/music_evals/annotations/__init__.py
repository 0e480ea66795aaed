"""Frozen, unit-bearing, self-checking values that every room of the library shares.

`scores` holds what is written in notes: `Score`, its signatures and tempi, NoteSeq tokens, contexts. `recordings` holds
what is heard in a recording: beats, key, chords, melody, segments, each with its times in seconds.
"""

from __future__ import annotations

from music_evals.annotations.recordings import (
    FEATURES,
    NO_CHORD,
    Beats,
    Chords,
    Chroma,
    F0Track,
    Features,
    Key,
    Melody,
    Segments,
    StructureFrames,
)
from music_evals.annotations.scores import (
    DEFAULT_BPM,
    DRUMS,
    HOLD,
    MASK,
    MUSIB_LAYOUT,
    NOTE_DTYPE,
    REST,
    VOCABULARY_SIZE,
    ContextLayout,
    KeySignature,
    NoteArray,
    Score,
    Tempo,
    TimeSignature,
    Tokens,
    check_tokens,
)

__all__ = [
    "DEFAULT_BPM",
    "DRUMS",
    "FEATURES",
    "HOLD",
    "MASK",
    "MUSIB_LAYOUT",
    "NOTE_DTYPE",
    "NO_CHORD",
    "REST",
    "VOCABULARY_SIZE",
    "Beats",
    "Chords",
    "Chroma",
    "ContextLayout",
    "F0Track",
    "Features",
    "Key",
    "KeySignature",
    "Melody",
    "NoteArray",
    "Score",
    "Segments",
    "StructureFrames",
    "Tempo",
    "TimeSignature",
    "Tokens",
    "check_tokens",
]
