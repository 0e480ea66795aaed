"""Which editing systems the editing page offers: those without weights, and those whose weights its owner names.

The variable ``MUSIC_EVALS_EDITORS`` names weights, as ``zeta=cvssp/audioldm2-music@COMMIT``, with blanks between
several; a place without a commit is a folder, and a system of another package is ``module:Class``. Nothing else is
loaded, and each is loaded at its first use.
"""

from __future__ import annotations

import functools
import inspect
import json
import os
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from music_evals.annotations import EditorInfo
from music_evals.benchmark.tasks.edits.work import check_editor, make_editor, read_parameters
from music_evals.errors import InvalidInputError, UnknownNameError
from music_evals.protocols import EDITORS, EditingSystem, editor_names, load_editor

__all__ = ["VARIABLE", "Offer", "find_editors"]

VARIABLE: Final = "MUSIC_EVALS_EDITORS"
_NOT_PARAMETERS: Final = {"self", "model", "weights"}


class Offer(NamedTuple):
    """A system that the page can run."""

    name: str
    place: str = ""  # folder or id of its weights; empty for a system without
    revision: str = ""  # commit of an id

    @property
    def defaults(self) -> dict[str, Any]:
        """Its parameters with their values."""
        parameters = inspect.signature(load_editor(self.name)).parameters
        return {name: parameter.default for name, parameter in parameters.items() if name not in _NOT_PARAMETERS}

    @property
    def licence(self) -> str:
        """Licence of its weights, which a visitor accepts; empty without weights."""
        return str(load_editor(self.name).licence) if self.place else ""

    @property
    def weights(self) -> dict[str, str]:
        """What its weights are loaded from; empty for a system without."""
        named = {"source": self.place, "revision": self.revision}
        return {name: value for name, value in named.items() if value}

    def read(self, parameters: str) -> dict[str, Any]:
        """Return parameters as they are typed, ``NAME=VALUE`` with commas or lines between, once they are checked."""
        words = [word.strip() for line in parameters.splitlines() for word in line.split(",") if word.strip()]
        values = read_parameters(words)
        check_editor(self.name, values, self.weights)
        return values

    def make(self, parameters: str) -> EditingSystem:
        """Return the system with parameters as they are typed."""
        return _made(self, json.dumps(self.read(parameters), sort_keys=True))


@functools.lru_cache(maxsize=2)
def _made(offer: Offer, parameters: str) -> EditingSystem:
    return make_editor(offer.name, json.loads(parameters), offer.weights)


def find_editors(environment: Mapping[str, str] | None = None) -> dict[str, Offer]:
    """Return name -> system for all that can be run on recordings here, those without weights first.

    Raises
    ------
    InvalidInputError, UnknownNameError
        The variable names something else than systems with their weights.

    """
    named = (os.environ if environment is None else environment).get(VARIABLE, "").split()
    offers = {name: Offer(name) for name in EDITORS if _edits_alone(name)}
    for word in named:
        name, equals, place = word.partition("=")
        if not (equals and place):
            raise InvalidInputError(f"{VARIABLE}: expected NAME=PLACE or NAME=ID@COMMIT, got {word!r}")
        if not getattr(load_editor(name), "licence", ""):
            raise UnknownNameError("editing system with weights", name, _with_weights())
        place, _, revision = place.partition("@")
        offers[name] = Offer(name, place, revision)
    return offers


def _edits_alone(name: str) -> bool:
    kind = load_editor(name)
    if hasattr(kind, "from_pretrained"):
        return False
    info: EditorInfo = kind().info
    return not info.control and "audio" in info.entrances


def _with_weights() -> list[str]:
    """Return the systems whose weights have a licence that a visitor can accept; a codec alone needs no licence."""
    return [name for name in editor_names() if getattr(load_editor(name), "licence", "")]
