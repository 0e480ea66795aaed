"""What the benchmark may know of a plug-in, and the registry of those that ship with the package.

A plug-in is any object with the methods below; nothing needs to be inherited. The registry holds import paths as text,
so that looking up a name imports nothing but that plug-in.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from music_evals.errors import ModelUnavailableError, UnknownNameError, importing
from music_evals.protocols.describing import (
    DEFAULT_TEXT_AUDIO_ENCODER,
    MUSIC_ENCODER_TYPES,
    MUSIC_ENCODERS,
    TAGGERS,
    TEXT_AUDIO_ENCODERS,
    TUNED_WRITERS,
    WRITERS,
    LayeredEncoder,
    LyricWriter,
    MusicEncoder,
    Tagger,
    TextAudioEncoder,
    TextEncoder,
    Written,
)
from music_evals.protocols.editing import EDIT_STUDIES, EDITORS, INSTRUCTION_WRITERS, EditingSystem, declared
from music_evals.protocols.inpainting import (
    BASELINES,
    CONTROL,
    CONTROLS,
    INPAINTERS,
    NEAR_COPY,
    GapInpainter,
    GapLimits,
    Inpainter,
    LikelihoodInpainter,
    NoteLikelihood,
    NoteLikelihoodInpainter,
)
from music_evals.protocols.rolls import (
    ROLL_BASELINES,
    STYLE_TRANSFERS,
    CellPredictor,
    StyleTransfer,
    SweptTransfer,
    TransferState,
    TransferSweep,
)

__all__ = [
    "BASELINES", "CONTROL", "CONTROLS", "DEFAULT_TEXT_AUDIO_ENCODER", "EDITORS", "EDIT_STUDIES", "INPAINTERS",
    "INSTRUCTION_WRITERS", "MUSIC_ENCODERS", "MUSIC_ENCODER_TYPES", "NEAR_COPY", "PREPARED_DATASETS",
    "RENDERED_DATASETS", "RENDERERS", "ROLL_BASELINES", "STYLE_TRANSFERS", "TAGGERS", "TEXT_AUDIO_ENCODERS",
    "TUNED_WRITERS", "WRITERS", "CellPredictor", "EditingSystem", "GapInpainter", "GapLimits", "Inpainter",
    "LayeredEncoder", "LikelihoodInpainter", "LyricWriter", "MusicEncoder", "NoteLikelihood", "NoteLikelihoodInpainter",
    "RenderPair", "StyleTransfer", "SweptTransfer", "Tagger", "TextAudioEncoder", "TextEncoder", "TransferState",
    "TransferSweep", "Written", "editor_names", "load_editor", "load_plugin", "prepared_place",
]  # fmt: skip


class RenderPair(Protocol):
    """A function that makes the recordings of a row, or finds them where it made them before."""

    def __call__(
        self, row: Mapping[str, Any], *, renderer: str = "additive", cache: str | os.PathLike[str] | None = None
    ) -> tuple[Path, Path]:
        """Return original and edit; a cache of None is the user's own."""
        ...


RENDERED_DATASETS: dict[str, str] = {
    name: place for places in declared("datasets", "*/build.py", "RENDERED").values() for name, place in places.items()
}
"""Dataset whose rows hold scores -> ``module:function``, a `RenderPair`, which its builder names in `RENDERED`."""

PREPARED_DATASETS: dict[str, dict[str, str]] = {
    module.split(".")[-2]: places for module, places in declared("datasets", "*/build.py", "PREPARED").items()
}
"""Dataset -> its configs that are built on first use -> ``module:function``; the function takes the name of the config
and returns the folder that holds it. Its builder names them in `PREPARED`."""

RENDERERS = ("additive", "fluidsynth")
"""What such rows are rendered with: the first needs nothing but us, the second FluidSynth and a soundfont."""


def load_plugin(registry: dict[str, str], name: str, kind: str, *, group: str = "") -> Any:
    """Import the object that a registry names; with a group of entry points also one of these, or ``module:object``.

    Raises
    ------
    UnknownNameError
        The name is not registered; the message offers the nearest.
    MissingBackendError
        It needs a package of the extra ``models``.
    ModelUnavailableError
        That of another package cannot be imported, for whatever reason.
    """
    if name not in (known := registry | _entry_points(group)) and not (group and ":" in name):
        raise UnknownNameError(kind, name, known)
    module, _, attribute = registry.get(name, known.get(name, name)).partition(":")
    if name in registry:
        with importing("models", f"the {kind} {name!r}"):
            return getattr(importlib.import_module(module), attribute)
    try:
        return getattr(importlib.import_module(module), attribute)
    except Exception as error:  # whatever the code of others raises
        why = f"{type(error).__name__}: {error}"
        raise ModelUnavailableError(
            f"{kind} {name!r} cannot be imported ({why}); install its package beside music_evals, or check the name"
        ) from error


def _entry_points(group: str) -> dict[str, str]:
    import importlib.metadata

    return {point.name: point.value for point in importlib.metadata.entry_points(group=group)} if group else {}


_EDITOR_GROUP = "music_evals.editing"


def editor_names() -> list[str]:
    """Return the editing systems that are known by name: ours, and those of installed packages by entry points."""
    return list(EDITORS | _entry_points(_EDITOR_GROUP))


def load_editor(name: str) -> Any:
    """Import an editing system: of `EDITORS`, of the entry points ``music_evals.editing``, or ``module:object``."""
    return load_plugin(EDITORS, name, "editing system", group=_EDITOR_GROUP)


def prepared_place(place: str, config: str | None) -> str:
    """Return the folder that holds a config of the dataset in a folder, built now where it is built on first use."""
    built = PREPARED_DATASETS.get(Path(place).name, {})
    if config is None or config not in built:
        return place
    folder: str = load_plugin(built, config, "config")(config)
    return folder
