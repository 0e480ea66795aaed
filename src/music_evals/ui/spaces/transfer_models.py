"""Which models the page of style transfer offers, and where they are.

A model is offered where its weights are: in folders of the repository, or in repositories of an owner on the Hub. Its
name says type and style, as in records of the benchmark: ``bmst:bach``.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from music_evals.errors import UnreadableFileError, hub_errors
from music_evals.files import parse_json
from music_evals.protocols import STYLE_TRANSFERS, StyleTransfer, load_plugin
from music_evals.repositories import MODELS, shipped
from music_evals.ui.places import hub_owner

__all__ = ["Model", "find_models"]

CONFIG, WEIGHTS = "config.json", "model.safetensors"


class Model(NamedTuple):
    """A model with weights."""

    type: str  # of `protocols.STYLE_TRANSFERS`
    place: str  # a folder, or a repository on the Hub
    variant: str | None  # folder in the repository, empty for its root; None where the place is a folder

    def load(self) -> StyleTransfer:
        """Load it; from the Hub, it is fetched the first time."""
        return _load(self)


@functools.lru_cache(maxsize=4)
def _load(model: Model) -> StyleTransfer:
    folder = Path(model.place)
    if model.variant is not None:
        import huggingface_hub

        files = [_path(model.variant, name) for name in (CONFIG, WEIGHTS)]
        folder = Path(huggingface_hub.snapshot_download(model.place, allow_patterns=files)) / model.variant
    loaded: StyleTransfer = load_plugin(STYLE_TRANSFERS, model.type, "model type").from_pretrained(str(folder))
    return loaded


def find_models(root: str | os.PathLike[str]) -> dict[str, Model]:
    """Return name, such as ``bmst:bach``, -> model for every style transfer whose weights are there.

    They are those of the Hub where ``MUSIC_EVALS_ORG`` names an organisation; else those of folders at `root`; else, on
    the Hub, those of the Space's owner; and those that the package brought along where none of these is there. What
    cannot be reached now is left out.
    """
    models = dict(_in_folders(Path(root, MODELS, kind) for kind in STYLE_TRANSFERS))
    if owner := hub_owner(here=bool(models)):
        models = dict(_of_owner(owner))
    return models or dict(_in_folders(filter(None, (shipped(f"{MODELS}/{kind}") for kind in STYLE_TRANSFERS))))


def _in_folders(folders: Iterable[Path]) -> Iterator[tuple[str, Model]]:
    for folder in folders:
        for weights in sorted(folder.glob(f"**/{WEIGHTS}")):
            yield _named(weights.parent / CONFIG, str(weights.parent), None)


def _of_owner(owner: str) -> Iterator[tuple[str, Model]]:
    for kind in STYLE_TRANSFERS:
        try:
            yield from _on_hub(f"{owner}/{kind}")
        except hub_errors():  # the next visit asks again
            continue


@functools.cache
def _on_hub(repository: str) -> tuple[tuple[str, Model], ...]:
    """Return the models of a repository: one at its root, and one in each folder with weights."""
    import huggingface_hub

    files = huggingface_hub.list_repo_files(repository)
    variants = sorted(path.removesuffix(WEIGHTS).rstrip("/") for path in files if Path(path).name == WEIGHTS)
    return tuple(
        _named(Path(huggingface_hub.hf_hub_download(repository, _path(variant, CONFIG))), repository, variant)
        for variant in variants
    )


def _path(variant: str, name: str) -> str:
    return f"{variant}/{name}" if variant else name


def _named(config: Path, place: str, variant: str | None) -> tuple[str, Model]:
    try:
        settings = parse_json(config.read_bytes(), str(config))
        kind, style = settings["model_type"], settings["style"]
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise UnreadableFileError(f"{config} is no configuration of a style transfer: {error!r:.80}") from error
    return f"{kind}:{style}", Model(kind, place, variant)
