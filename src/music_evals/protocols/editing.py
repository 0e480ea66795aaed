"""What the benchmark may know of an editing system, and which ship with the package."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Protocol, runtime_checkable

from music_evals.annotations import EditorInfo, EditRequest, EditResult

_PACKAGE: Final = Path(__file__).resolve().parents[1]


def declared(room: str, files: str, constant: str, *, first: Sequence[str] = ()) -> dict[str, dict[str, str]]:
    """Return module -> name -> ``module:object`` of what files of a room declare; some modules may come first.

    They declare it as a dictionary of literals, name -> object, in a constant at the margin. The text is read and no
    module imported: many need the packages of an extra.
    """
    declaration = re.compile(rf"^{constant} = (\{{.*?\}})$", re.DOTALL | re.MULTILINE)
    order = dict(zip(first, range(-len(first), 0), strict=True))
    places: dict[str, dict[str, str]] = {}
    for path in sorted((_PACKAGE / room).glob(files), key=lambda path: (order.get(path.stem, 0), path)):
        if literal := declaration.search(path.read_text(encoding="utf-8")):
            module = ".".join(path.relative_to(_PACKAGE.parent).with_suffix("").parts)
            places[module] = {name: f"{module}:{value}" for name, value in ast.literal_eval(literal[1]).items()}
    return places


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


EDIT_STUDIES: dict[str, str] = {"stand_in": "music_evals.datasets.edit_study:write_study_sources"}
"""Sources of a study of editing systems -> ``module:function`` (folder, n_pieces=), which writes the tables
``recordings`` and ``scores``."""

_FIRST = (
    *(
        "controls",
        "weightless",
        "musicgen",
        "musicgen_melody",
        "musicongen",
        "resynth",
        "zeta",
        "musicmagus",
        "refinpaint",
    ),
)
EDITORS: dict[str, str] = {
    name: place
    for systems in declared("editing", "*.py", "SYSTEMS", first=_FIRST).values()
    for name, place in systems.items()
}
"""Editing system -> ``module:class`` of an `EditingSystem`; its keyword arguments are its parameters. One with weights
has ``from_pretrained(source, revision=, device=, **parameters)``, and without them says which it needs. Each file of
``music_evals/editing`` names its own in a constant `SYSTEMS`, system -> class."""

INSTRUCTION_WRITERS: dict[str, str] = {
    "templates": "music_evals.editing.instructions:generate",
    "language_model": "music_evals.editing.instruction_writing:write_instructions",
}
"""Who writes instructions for a description -> ``module:function`` (source id, description, tasks=, seed=); that of the
language model takes the model first, a `LyricWriter`."""
