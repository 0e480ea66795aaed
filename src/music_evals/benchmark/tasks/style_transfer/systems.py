"""Systems of a run: models of piano rolls, and the trivial rows that stand beside every table."""

from __future__ import annotations

import dataclasses
import functools
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from music_evals import __version__
from music_evals.annotations import Arrangement, PianoRoll
from music_evals.benchmark.inputs import find_model, hash_of
from music_evals.protocols import ROLL_BASELINES, STYLE_TRANSFERS, load_plugin


@dataclasses.dataclass(frozen=True, eq=False)
class System:
    """One system of a run."""

    name: str  # system id in records and tables
    content_hash: str  # hash of everything that decides its output
    make: Callable[[], Any]  # builds the plug-in, in this process or in a worker
    style: str = ""  # what it writes
    # Hidden steps -> probabilities that a cell sounds where a rule says silence, and sound: for its likelihoods.
    fitted: Mapping[int, tuple[float, float]] = dataclasses.field(default_factory=dict)
    details: Mapping[str, Any] = dataclasses.field(default_factory=dict)  # what a receipt should say of it

    def __getstate__(self) -> dict[str, Any]:
        # what travels to a worker process is the recipe, not the built plug-in
        return {key: value for key, value in self.__dict__.items() if key != "plugin"}

    @functools.cached_property
    def plugin(self) -> Any:
        """The plug-in, built once."""
        return self.make()

    def likely(self, hidden: int) -> Any:
        """Return what likelihoods are taken of: a rule is sure of itself, and is given fitted probabilities."""
        if hidden not in self.fitted:
            return self.plugin
        silent, sounding = self.fitted[hidden]
        return dataclasses.replace(self.plugin, silent=silent, sounding=sounding)


def load_model(name: str | os.PathLike[str]) -> System:
    """Load a model of piano rolls by name, folder or Hub id; `NoDataError` where it is not trained yet."""
    model_folder = find_model(name, STYLE_TRANSFERS)
    plugin = model_folder.plugin(STYLE_TRANSFERS)
    make = functools.partial(plugin.from_pretrained, str(model_folder.folder))
    model = make()
    details = {"source": model_folder.source, "revision": model_folder.revision}
    return System(model.name, model_folder.content_hash({}), make, model.style, details=details)


def rules(train: Sequence[PianoRoll], hidden: Sequence[int]) -> list[System]:
    """Return the trivial rows of cell prediction; their likelihoods are fitted to training pieces, if there are any."""
    content = hash_of(b"".join(np.packbits(roll.cells).tobytes() for roll in train))
    systems = []
    for name in ROLL_BASELINES:
        make = functools.partial(load_plugin(ROLL_BASELINES, name, "baseline"), name)
        fits = {steps: make().fitted(train, hidden=steps) for steps in hidden} if train else {}
        fitted = {steps: (fit.silent, fit.sounding) for steps, fit in fits.items()}
        systems.append(System(name, hash_of(f"{name}\0{__version__}\0{content}".encode()), make, fitted=fitted))
    return systems


class _Unchanged:
    """Hands the input back: it keeps the melody, and all of its own style."""

    def transfer(self, arrangement: Arrangement, *, rng: np.random.Generator) -> Arrangement:  # noqa: ARG002
        return arrangement


class _MelodyAlone:
    """Leaves the accompaniment out: it keeps the melody, and is in no style."""

    def transfer(self, arrangement: Arrangement, *, rng: np.random.Generator) -> Arrangement:  # noqa: ARG002
        nothing = np.zeros_like(arrangement.melody.cells)
        return Arrangement(arrangement.melody, arrangement.melody.with_notes(nothing, nothing, nothing))


TRIVIAL_TRANSFERS: Final[Mapping[str, Callable[[], Any]]] = {"unchanged": _Unchanged, "melody_alone": _MelodyAlone}
"""Name -> what any style transfer has to beat."""


def trivial_transfers(styles: Sequence[str]) -> list[System]:
    """Return the trivial rows of transfers, one of each for each target style."""
    return [
        System(f"{name}:{style}", hash_of(f"{name}\0{__version__}".encode()), make, style)
        for style in styles
        for name, make in TRIVIAL_TRANSFERS.items()
    ]
