"""Systems of a run: models, baselines, the control, and predictions made elsewhere, each with a hash of its content."""

from __future__ import annotations

import dataclasses
import functools
import json
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from music_evals import __version__
from music_evals.annotations import MUSIB_LAYOUT, Tokens
from music_evals.benchmark.inputs import find_model, hash_of
from music_evals.errors import InvalidInputError, InvalidTokensError, UnknownNameError
from music_evals.options import with_commas
from music_evals.protocols import BASELINES, CONTROLS, INPAINTERS, Inpainter, load_plugin
from music_evals.symbolic.noteseq import check_tokens

Role = Literal["model", "baseline", "control", "leaking"]
"""A control or a leaking system has seen the reference and stands outside of all comparisons."""


@dataclasses.dataclass(frozen=True, eq=False)
class System:
    """One system of a run."""

    name: str  # system id in records and tables
    role: Role  # see `Role`
    content_hash: str  # hash of everything that decides its output: weights, configuration, options, training contexts
    # Builds the plug-in, in this process or in a worker; None for predictions made elsewhere.
    make: Callable[[], Inpainter] | None = None
    # Seed -> middles of all items, shape (n, 96), for predictions made elsewhere.
    stored: Mapping[int, Tokens] | None = None
    # Item id -> reason, for stored predictions that could not be read.
    failures: Mapping[str, str] = dataclasses.field(default_factory=dict)
    # What a receipt should say of it: path, decoding, temperature. Part of the run's header.
    details: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.name.strip():
            raise InvalidInputError("a system needs a name that is not empty")
        if (self.make is None) == (self.stored is None):
            raise InvalidInputError(f"system {self.name!r} needs either a plug-in or stored predictions")

    def __getstate__(self) -> dict[str, Any]:
        # what travels to a worker process is the recipe, not the built plug-in, which may hold closures
        return {key: value for key, value in self.__dict__.items() if key != "inpainter"}

    @functools.cached_property
    def inpainter(self) -> Inpainter | None:
        """The plug-in, built once; None for predictions made elsewhere."""
        return None if self.make is None else self.make()

    @property
    def sees_reference(self) -> bool:
        """Whether it is given the true middle."""
        return self.inpainter is not None and self.inpainter.sees_reference

    def seeds(self, seeds: Sequence[int]) -> tuple[int, ...]:
        """Return the seeds that are run: the first of them for a deterministic system, its own for stored ones."""
        if self.inpainter is None:
            return tuple(sorted(self.stored or {}))
        return tuple(seeds[:1]) if self.inpainter.deterministic else tuple(seeds)

    def inpaint(self, contexts: Tokens, rows: Sequence[int], *, seed: int, rng: np.random.Generator) -> Tokens:
        """Return the middles of the items `rows`, shape (n, 96), checked."""
        if self.inpainter is None:
            middles = (self.stored or {})[seed][list(rows)]
        else:
            middles = self.inpainter.inpaint(contexts, rng=rng)
        middles, expected = check_tokens(middles), (len(rows), MUSIB_LAYOUT.middle_steps)
        if middles.shape != expected:
            raise InvalidTokensError(f"{self.name} returned middles of shape {middles.shape}, expected {expected}")
        return middles


def chosen_names(choice: str, known: Collection[str], kind: str) -> tuple[str, ...]:
    """Read names with commas, each once, ``"all"`` or ``"none"``."""
    if choice in {"all", "none"}:
        return tuple(known) if choice == "all" else ()
    names = with_commas(choice)
    for name in names:
        if name not in known:
            raise UnknownNameError(kind, name, [*known, "all", "none"])
    return tuple(dict.fromkeys(names))


def baseline_system(name: str, train_contexts: Tokens | None) -> System:
    """Build one baseline or control."""
    train = b"" if train_contexts is None else np.ascontiguousarray(train_contexts).tobytes()
    content = hash_of(f"{name}\0{__version__}\0{hash_of(train)}".encode())
    make = functools.partial(load_plugin(BASELINES, name, "baseline"), name, train_contexts)
    system = System(name, "control" if name in CONTROLS else "baseline", content, make)
    _ = system.inpainter  # built here, so that what is missing is said before anything runs
    return system


def load_model(
    name: str | os.PathLike[str], *, decoding: str | None = None, temperature: float | None = None
) -> System:
    """Load a model with weights; a name such as ``vli:sample`` has a decoding of its own, which counts more."""
    name, own = split_decoding(os.fspath(name))
    decoding = own or decoding
    model_folder = find_model(name, INPAINTERS)
    plugin = model_folder.plugin(INPAINTERS)
    options = {
        key: value for key, value in {"decoding": decoding, "temperature": temperature}.items() if value is not None
    }
    make = functools.partial(plugin.from_pretrained, str(model_folder.folder), **options)
    model = make()
    role: Role = "leaking" if model.sees_reference else "model"
    label = f"{model.name} (leaks)" if role == "leaking" else model.name
    held = {key: getattr(model, key) for key in ("decoding", "temperature") if hasattr(model, key)}
    details = {"source": model_folder.source, "revision": model_folder.revision, **held}
    return System(label, role, model_folder.content_hash(options), make, details=details)


def split_decoding(name: str) -> tuple[str, str | None]:
    """Split ``name:decoding``; a folder with a colon in its name is one."""
    before, _, decoding = name.rpartition(":")
    split = before and decoding.isidentifier() and not Path(name).exists()
    return (before, decoding) if split else (name, None)


def stored_system(name: str, stored: Mapping[int, Tokens], failures: Mapping[str, str] | None = None) -> System:
    """Return a system for predictions made elsewhere."""
    content = b"".join(np.int64(seed).tobytes() + stored[seed].tobytes() for seed in sorted(stored))
    failed = json.dumps(dict(failures or {}), sort_keys=True).encode()
    return System(name, "model", hash_of(content + failed), stored=dict(stored), failures=dict(failures or {}))
