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

from music_evals.errors import UnknownNameError, importing
from music_evals.protocols._describing import (
    MUSIC_ENCODER_TYPES,
    MUSIC_ENCODERS,
    TAGGERS,
    TUNED_WRITERS,
    WRITERS,
    LyricWriter,
    MusicEncoder,
    Tagger,
    TextEncoder,
    Written,
)
from music_evals.protocols._editing import EDIT_STUDIES, EDITORS, INSTRUCTION_WRITERS, EditingSystem
from music_evals.protocols._inpainting import (
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
from music_evals.protocols._rolls import (
    ROLL_BASELINES,
    STYLE_TRANSFERS,
    CellPredictor,
    StyleTransfer,
    SweptTransfer,
    TransferState,
    TransferSweep,
)

__all__ = [
    "BASELINES",
    "CONTROL",
    "CONTROLS",
    "EDITORS",
    "EDIT_STUDIES",
    "INPAINTERS",
    "INSTRUCTION_WRITERS",
    "MUSIC_ENCODERS",
    "MUSIC_ENCODER_TYPES",
    "NEAR_COPY",
    "PREPARED_DATASETS",
    "RENDERED_DATASETS",
    "RENDERERS",
    "ROLL_BASELINES",
    "STYLE_TRANSFERS",
    "TAGGERS",
    "TUNED_WRITERS",
    "WRITERS",
    "CellPredictor",
    "EditingSystem",
    "GapInpainter",
    "GapLimits",
    "Inpainter",
    "LikelihoodInpainter",
    "LyricWriter",
    "MusicEncoder",
    "NoteLikelihood",
    "NoteLikelihoodInpainter",
    "RenderPair",
    "StyleTransfer",
    "SweptTransfer",
    "Tagger",
    "TextEncoder",
    "TransferState",
    "TransferSweep",
    "Written",
    "load_plugin",
    "prepared_place",
]


class RenderPair(Protocol):
    """A function that makes the recordings of a row, or finds them where it made them before."""

    def __call__(
        self, row: Mapping[str, Any], *, renderer: str = "additive", cache: str | os.PathLike[str] | None = None
    ) -> tuple[Path, Path]:
        """Return original and edit; a cache of None is the user's own."""
        ...


RENDERED_DATASETS: dict[str, str] = {
    "known_edits": "music_evals.datasets.known_edits.build:render_pair",
}
"""Dataset whose rows hold scores -> ``module:function``, a `RenderPair`."""

PREPARED_DATASETS: dict[str, dict[str, str]] = {
    "ailabs_1k7": {"ailabs_1k7": "music_evals.datasets.ailabs_1k7.build:prepare"},
    "irish_folk": dict.fromkeys(
        ("music21_folk", "small", "folk_rnn", "folk_rnn_small"), "music_evals.datasets.irish_folk.build:prepare"
    ),
}
"""Dataset -> its configs that are built on first use -> ``module:function``; the function takes the name of the config
and returns the folder that holds it."""

RENDERERS = ("additive", "fluidsynth")
"""What such rows are rendered with: the first needs nothing but us, the second FluidSynth and a soundfont."""


def load_plugin(registry: dict[str, str], name: str, kind: str) -> Any:
    """Import the object that a registry names.

    Raises
    ------
    UnknownNameError
        The name is not registered; the message offers the nearest.
    MissingBackendError
        It needs a package of the extra ``models``.

    """
    if name not in registry:
        raise UnknownNameError(kind, name, registry)
    module, _, attribute = registry[name].partition(":")
    with importing("models", f"the {kind} {name!r}"):
        return getattr(importlib.import_module(module), attribute)


def prepared_place(place: str, config: str | None) -> str:
    """Return the folder that holds a config of the dataset in a folder, built now where it is built on first use.

    Raises
    ------
    MissingBackendError, NoDataError
        What it is built from is missing; the message says what to do.

    """
    built = PREPARED_DATASETS.get(Path(place).name, {})
    if config is None or config not in built:
        return place
    folder: str = load_plugin(built, config, "config")(config)
    return folder
