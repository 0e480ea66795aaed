"""What the benchmark may know of a plug-in, and the registry of those that ship with the package.

A plug-in is any object with the methods below; nothing needs to be inherited. The registry holds import paths as text,
so that looking up a name imports nothing but that plug-in.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from music_evals.annotations import Tokens
from music_evals.errors import UnknownNameError

__all__ = [
    "BASELINES",
    "CONTROL",
    "INPAINTERS",
    "RENDERED_DATASETS",
    "RENDERERS",
    "Inpainter",
    "LikelihoodInpainter",
    "RenderPair",
    "load_plugin",
]


@runtime_checkable
class Inpainter(Protocol):
    """A model that fills the middle of a context.

    Attributes
    ----------
    name
        System id in records and tables.
    deterministic
        True when `inpaint` does not use `rng`: one seed is enough.
    sees_reference
        True for a control or a leaking protocol, which gets the true middle; such a system stands outside of all
        comparisons. False for every honest model: the middle that it gets is masked (`annotations.MASK`).

    """

    name: str
    deterministic: bool
    sees_reference: bool

    def inpaint(self, contexts: Tokens, *, rng: np.random.Generator) -> Tokens:
        """Return middles, shape (n, 96), values 0..129, for contexts of shape (n, 384)."""
        ...


@runtime_checkable
class LikelihoodInpainter(Inpainter, Protocol):
    """An inpainter that can also say how likely the true middle is."""

    def nll(self, contexts: Tokens) -> npt.NDArray[np.float64]:
        """Return the negative log-likelihood (nats, >= 0) of each true token, (n, 96), for whole contexts (n, 384)."""
        ...


class RenderPair(Protocol):
    """A function that makes the recordings of a row, or finds them where it made them before."""

    def __call__(
        self, row: Mapping[str, Any], *, renderer: str = "additive", cache: str | os.PathLike[str] | None = None
    ) -> tuple[Path, Path]:
        """Return original and edit; a cache of None is the user's own."""
        ...


INPAINTERS: dict[str, str] = {
    "anticipation_rnn": "music_evals.models.anticipation_rnn:AnticipationRNN",
}
"""Model type -> ``module:class`` of every inpainter with weights."""

CONTROL = "reference"
"""The baseline that returns the true middle: it must score perfectly and stands outside of all comparisons."""

BASELINES: dict[str, str] = dict.fromkeys(
    (
        "silence",
        "repeat_last_measure",
        "copy_past",
        "interpolation_copy",
        "last_pitch_beats",
        "markov",
        "corpus_prior",
        CONTROL,
    ),
    "music_evals.models.baselines:make_baseline",
)
"""Baseline -> ``module:function``; the function takes the name and the training contexts and returns an `Inpainter`."""


RENDERED_DATASETS: dict[str, str] = {
    "known_edits": "music_evals.datasets.known_edits:render_pair",
}
"""Dataset whose rows hold scores -> ``module:function``, a `RenderPair`."""

RENDERERS = ("additive", "fluidsynth")
"""What such rows are rendered with: the first needs nothing but us, the second FluidSynth and a soundfont."""


def load_plugin(registry: dict[str, str], name: str, kind: str) -> Any:
    """Import the object that a registry names.

    Raises
    ------
    UnknownNameError
        The name is not registered; the message offers the nearest.

    """
    if name not in registry:
        raise UnknownNameError(kind, name, registry)
    module, _, attribute = registry[name].partition(":")
    return getattr(importlib.import_module(module), attribute)
