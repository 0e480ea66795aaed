"""Sources for the tests of editing systems: our own notes, rendered by our own synthesiser."""

from __future__ import annotations

from typing import Any

import numpy as np

from music_evals.annotations import EditInstruction, EditRequest, Score, Tempo
from music_evals.audio.rendering import render_additive
from music_evals.symbolic.notes import make_notes

RATE = 22050
ASK = EditInstruction(text="Change it.")


def triads() -> Score:
    """Return C, F, G, C as whole notes at 120 a minute: 8 s."""
    pitches = np.array([[60, 64, 67], [65, 69, 72], [67, 71, 74], [60, 64, 67]])
    onsets = np.repeat(np.arange(4) * 16, 3)
    return Score(
        make_notes(onsets, np.full(12, 16), pitches.ravel(), 80, 0), 4, tempos=(Tempo(0, 120.0),), programs=(0,)
    )


def recording(channels: int = 1, seconds: float = 3.0) -> Any:
    samples = render_additive(triads(), sample_rate=RATE)[: round(seconds * RATE)] * np.float32(0.4)
    return np.stack([samples * np.float32(0.8**channel) for channel in range(channels)])


def audio_request(
    instruction: EditInstruction = ASK, *, channels: int = 1, seconds: float = 3.0, **others: Any
) -> EditRequest:
    audio = recording(channels, seconds)
    return EditRequest(
        **{"source_id": "song", "instruction": instruction, "audio": audio, "sample_rate": RATE, **others}
    )


def score_request(instruction: EditInstruction = ASK, **others: Any) -> EditRequest:
    return EditRequest(**{"source_id": "score", "instruction": instruction, "score": triads(), **others})
