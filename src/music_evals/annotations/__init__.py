"""Frozen, unit-bearing, self-checking values that every room of the library shares.

`scores` holds what is written in notes: `Score`, its signatures and tempi, NoteSeq tokens, contexts. `rolls` holds
the same on a grid of steps and pitches: `PianoRoll`, `Arrangement`. `recordings` holds the features of a recording:
beats, key, chords, melody, segments, each with its times in seconds. `lyrics` holds song texts in sections,
`descriptions` the dimensions by which people describe a song, `edits` what is asked of editing systems and returned.
"""

from __future__ import annotations

from music_evals.annotations.descriptions import (
    AMATEUR,
    AUDIO_EFFECTS,
    DIMENSIONS,
    GROUPS,
    PROFESSIONAL,
    SCORED,
    Dimension,
    theme_of_row,
)
from music_evals.annotations.edits import (
    BACKBONES,
    EDIT_TASKS,
    FACETS,
    EditConditions,
    EditInstruction,
    EditorInfo,
    EditRequest,
    EditResult,
    Weights,
)
from music_evals.annotations.lyrics import LyricSection, Pattern, sections_of_rows, sections_of_text, sections_text
from music_evals.annotations.recordings import (
    FEATURES,
    NO_CHORD,
    BandFrames,
    Beats,
    Chords,
    Chroma,
    F0Track,
    Features,
    Key,
    Melody,
    Segments,
    StructureFrames,
    TimbreFrames,
)
from music_evals.annotations.rolls import LOWEST_PITCH, N_ROLL_PITCHES, Arrangement, Cells, PianoRoll
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
from music_evals.annotations.targets import FORMS, INSTRUMENTS, EditTarget, targets_of, targets_text, targets_to_dict

__all__ = [
    "AMATEUR", "AUDIO_EFFECTS", "BACKBONES", "DEFAULT_BPM", "DIMENSIONS", "DRUMS", "EDIT_TASKS", "FACETS", "FEATURES",
    "FORMS", "GROUPS", "HOLD", "INSTRUMENTS", "LOWEST_PITCH", "MASK", "MUSIB_LAYOUT", "NOTE_DTYPE", "NO_CHORD",
    "N_ROLL_PITCHES", "PROFESSIONAL", "REST", "SCORED", "VOCABULARY_SIZE", "Arrangement", "BandFrames", "Beats",
    "Cells", "Chords", "Chroma", "ContextLayout", "Dimension", "EditConditions", "EditInstruction", "EditRequest",
    "EditResult", "EditTarget", "EditorInfo", "F0Track", "Features", "Key", "KeySignature", "LyricSection", "Melody",
    "NoteArray", "Pattern", "PianoRoll", "Score", "Segments", "StructureFrames", "Tempo", "TimbreFrames",
    "TimeSignature", "Tokens", "Weights", "check_tokens", "sections_of_rows", "sections_of_text", "sections_text",
    "targets_of", "targets_text", "targets_to_dict", "theme_of_row",
]  # fmt: skip
