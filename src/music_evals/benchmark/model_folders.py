"""Models with weights, for every benchmark that evaluates models: their folders, their files, their random numbers."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from music_evals.benchmark.sources import model_type_of
from music_evals.errors import InvalidInputError, NoDataError, UnreadableFileError
from music_evals.protocols import load_plugin
from music_evals.repositories import MODELS, find_repository

__all__ = ["ModelFolder", "derive_rng", "find_model", "hash_of", "split_model"]


class ModelFolder(NamedTuple):
    """A model on this machine."""

    source: str  # name, folder or Hub id, as it was given
    folder: Path
    revision: str | None  # commit of a Hub id
    model_type: str

    def plugin(self, registry: dict[str, str]) -> Any:
        """Return the class of its type; raise where that is not known, or where there are no weights."""
        model_class = load_plugin(registry, self.model_type, "model type")
        if not (self.folder / "model.safetensors").is_file():
            raise NoDataError(
                f"{self.source} holds no model.safetensors; it is not trained yet: "
                f"music-evals train {self.source}/train.yaml"
            )
        return model_class

    def content_hash(self, options: Mapping[str, Any]) -> str:
        """Return a hash of all that decides what the model says: configuration, weights and options."""
        config, weights = ((self.folder / name).read_bytes() for name in ("config.json", "model.safetensors"))
        return hash_of(b"\0".join([config, weights, json.dumps(dict(options), sort_keys=True).encode()]))


def find_model(name: str | os.PathLike[str], registry: Mapping[str, str]) -> ModelFolder:
    """Return the folder of a model by name, folder or Hub id, the last fetched where it is not here.

    Raises
    ------
    UnknownNameError, UnreadableFileError
        There is no such model, or it cannot be fetched.

    """
    name = os.fspath(name)
    place, local = find_repository(name, MODELS, "model", registry)
    source, folder, revision = (name, Path(place), None) if local else _fetch(place)
    model_type = model_type_of(folder, registry)
    return ModelFolder(source, folder, revision, model_type)


def hash_of(content: bytes) -> str:
    """Return what records call a content."""
    return hashlib.sha256(content).hexdigest()[:16]


def derive_rng(seed: int, system: str, label: str) -> np.random.Generator:
    """Return the generator of one answer: it depends on these names alone, not on what else is run."""
    digest = hashlib.sha256(f"{seed}\0{system}\0{label}".encode()).digest()
    return np.random.default_rng(np.random.SeedSequence(np.frombuffer(digest, dtype=np.uint32).tolist()))


def split_model(text: str) -> tuple[str | None, str, str | None]:
    """Return name, folder or Hub id, and revision; a path that exists is never cut."""
    name: str | None
    revision: str | None = None
    name, equals, source = text.partition("=")
    if not equals or Path(text).exists():
        name, source = None, text
    if "@" in source and not Path(source).exists():
        source, _, revision = source.partition("@")
    if "" in {name, source, revision}:
        raise InvalidInputError(f"`models` takes ID, NAME=ID or ID@REVISION, got {text!r}")
    return name, source, revision


def _fetch(place: str) -> tuple[str, Path, str]:
    """Return id, local folder and commit of a Hub model; only configuration and weights are fetched."""
    import huggingface_hub

    repository, _, revision = place.partition("@")
    try:
        snapshot = huggingface_hub.snapshot_download(
            repository, revision=revision or None, allow_patterns=["config.json", "model.safetensors"]
        )
    except (OSError, ValueError) as error:
        raise UnreadableFileError(
            f"model {place} cannot be fetched from the Hub: {str(error).splitlines()[0]}; check name and network"
        ) from error
    folder = Path(snapshot)
    return repository, folder, folder.name  # the cache names a snapshot by its commit
