"""What the benchmark may know of an editing system, and which ship with the package."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from music_evals.annotations import EditorInfo, EditRequest, EditResult

__all__ = ["EDITORS", "EDIT_STUDIES", "INSTRUCTION_WRITERS", "EditingSystem"]


@runtime_checkable
class EditingSystem(Protocol):
    """A system that edits music: it reads no file, falls back to no other model, and reports what it cut or dropped."""

    @property
    def info(self) -> EditorInfo:
        """What it is, what it needs, and the parameters that it was made with."""
        ...

    def supports(self, request: EditRequest) -> str:
        """Return why it cannot follow a request, in a sentence that says what to do; empty where it can."""
        ...

    def edit(self, requests: Sequence[EditRequest]) -> list[EditResult]:
        """Return one result a request, in their order; what comes of one does not depend on the others.

        Raises
        ------
        UnsupportedEditError
            An instruction, or a kind of source, that it cannot follow.
        InvalidAudioError
            A source that is silent, or that has several channels where one is needed.
        FileTooLargeError
            A source that is too long.

        """
        ...

    def network_calls(self, seconds: float) -> int:
        """Return about how often an edit of so many seconds calls a network; 0 for a system without."""
        ...


EDIT_STUDIES: dict[str, str] = {
    "stand_in": "music_evals.datasets.edit_study:write_study_sources",
}
"""Sources of a study of editing systems -> ``module:function`` (folder, n_pieces=), which writes the tables
``recordings`` and ``scores``."""

_WEIGHTLESS = "music_evals.editing.weightless"

EDITORS: dict[str, str] = {
    "identity": "music_evals.editing.controls:Identity",
    "unrelated": "music_evals.editing.controls:Unrelated",
    "transposition": f"{_WEIGHTLESS}:Transposition",
    "time_stretch": f"{_WEIGHTLESS}:TimeStretch",
    "reorchestration": f"{_WEIGHTLESS}:Reorchestration",
    "noise_vocoder": f"{_WEIGHTLESS}:NoiseVocoder",
    "hpss_remix": f"{_WEIGHTLESS}:HpssRemix",
    "equaliser": f"{_WEIGHTLESS}:Equaliser",
    "effects": f"{_WEIGHTLESS}:Effects",
    "musicgen": "music_evals.editing.musicgen:MusicGen",
    "musicgen_melody": "music_evals.editing.musicgen_melody:MusicGenMelody",
    "musicongen": "music_evals.editing.musicongen:MusiConGen",
    "resynth": "music_evals.editing.resynth:Resynth",
    "zeta": "music_evals.editing.zeta:Zeta",
    "musicmagus": "music_evals.editing.musicmagus:MusicMagus",
    "refinpaint": "music_evals.editing.refinpaint:RefinPaint",
}
"""Editing system -> ``module:class`` of an `EditingSystem`; its keyword arguments are its parameters. One with weights
has ``from_pretrained(source, revision=, device=, **parameters)``, and without them says which it needs."""

INSTRUCTION_WRITERS: dict[str, str] = {
    "templates": "music_evals.editing.instructions:generate",
    "language_model": "music_evals.editing.instruction_writing:write_instructions",
}
"""Who writes instructions for a description -> ``module:function`` (source id, description, tasks=, seed=); that of the
language model takes the model first, a `LyricWriter`."""
