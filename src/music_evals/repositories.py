"""Where the repository folders are: each mirrors one repository on the Hub.

A name such as ``known_edits`` is looked up under the current folder, then among the folders that the package came with:
those of the clone that it is used from, or those in its wheel.
"""

from __future__ import annotations

import functools
import os
import tomllib
from collections.abc import Mapping
from pathlib import Path

from music_evals.errors import UnknownNameError

__all__ = [
    "DATASETS",
    "EXAMPLES",
    "HUB_FOLDERS",
    "METRICS",
    "MODELS",
    "ORGANISATION",
    "find_repository",
    "folders",
    "is_installed",
    "repo_path",
    "shipped",
]

METRICS, DATASETS, MODELS = "metrics", "datasets_scripts", "models"
HUB_FOLDERS = (METRICS, DATASETS, MODELS, "spaces")
"""Folders of the repository that hold one folder for each repository on the Hub."""

EXAMPLES = "examples"
"""Folder of the repository with small files to try the commands on."""

INSTALLED = "_repositories"
"""Folder of the installed package that holds the repository folders of the wheel; see setup.py."""

ORGANISATION = "MUSIC_EVALS_ORG"
"""Environment variable: user or organisation on the Hub whose repositories plain names stand for, if nothing else."""


def repo_path(name: str) -> str:
    """Return where a metric, dataset or model such as ``"note_f1"`` is, as `evaluate` and `datasets` load it.

    Looked up as `find_repository` does, among metrics, datasets and models; their names are unique. Where it is no
    folder here and ``MUSIC_EVALS_ORG`` names an organisation, its id on the Hub. A name that nothing has is an
    `UnknownNameError`.

    Examples
    --------
    >>> import evaluate
    >>> evaluate.load(repo_path("note_f1")).name
    'note_f1'
    """
    kinds = (METRICS, DATASETS, MODELS)
    place = next(filter(None, (_here(name, kind) for kind in kinds)), None)
    if place is not None:
        return str(place)
    if on_hub := _of_organisation(name):
        return on_hub
    raise UnknownNameError("metric, dataset or model", name, {known for kind in kinds for known in folders(kind)})


def find_repository(name: str, folder: str, kind: str, known: Mapping[str, str] | None = None) -> tuple[str, bool]:
    """Return the path or Hub id of a dataset or model of this name, and whether it is on this machine.

    Looked up in this order: the path `name`; `folder`/`name` under the current folder; both among the folders that the
    package came with; the Hub id `name`; the Hub id of a plain name under the organisation that the environment
    variable ``MUSIC_EVALS_ORG`` names, if it does. `kind` is a word for the message, such as ``"model"``; `known` are
    further names to suggest.

    Raises `UnknownNameError` for what is neither a folder nor of the form of a Hub id. A path whose first part is a
    folder here is never looked up on the Hub: it is a typing error, not somebody's repository.
    """
    place = _here(name, folder)
    if place is not None:
        return str(place), True
    owner, slash, repository = name.partition("/")
    is_id = slash and repository and "/" not in repository and owner not in {"", ".", "..", *HUB_FOLDERS}
    if is_id and not Path(owner).is_dir():
        return name, False
    if on_hub := _of_organisation(name):
        return on_hub, False
    parent = Path(name).parent if slash and Path(name).parent.is_dir() else None
    candidates = folders(folder) if parent is None else {f"{parent}/{inner}" for inner in _inside(parent)}
    advice = f"names are looked up in ./{folder} and in the package; a folder or a Hub id (owner/name) may be given too"
    raise UnknownNameError(kind, name, {*candidates, *(known or {})}, advice)


def shipped(path: str | os.PathLike[str]) -> Path | None:
    """Return a file or folder that the package came with, by its path in the repository; None if it did not.

    Only repository folders, such as ``models/anticipation_rnn``, and the examples come with it.
    """
    home, inner = _home(), Path(path)
    known = inner.parts[:1] == (EXAMPLES,) or (len(inner.parts) > 1 and inner.parts[0] in HUB_FOLDERS)
    if home is None or not known or ".." in inner.parts:
        return None
    return home / inner if (home / inner).exists() else None


def is_installed(place: Path) -> bool:
    """Return whether a repository folder came in a wheel: without git, and not to be written to."""
    home = _home()
    return home is not None and home.name == INSTALLED and place.resolve().is_relative_to(home)


def folders(kind: str) -> dict[str, Path]:
    """Return name -> path of all repository folders of a kind: those here, then those that the package came with."""
    home = _home()
    places = [Path(kind), *([home / kind] if home else [])]
    paths: dict[str, Path] = {}
    for place in places:
        for name in _inside(place):
            paths.setdefault(name, place / name)
    return paths


def _here(name: str, folder: str) -> Path | None:
    inner = Path(folder) / name
    candidates = (Path(name), inner, shipped(inner), shipped(name))
    return next((place for place in candidates if place is not None and place.is_dir()), None)


def _of_organisation(name: str) -> str:
    """Return the Hub id of a plain name if the environment names an organisation; else an empty string."""
    owner = os.environ.get(ORGANISATION, "").strip()
    return f"{owner}/{name}" if owner and name and "/" not in name and not name.startswith(".") else ""


@functools.cache
def _home() -> Path | None:
    """Return where the repository folders are that the package came with: in its wheel, or the root of its clone."""
    package = Path(__file__).resolve().parent
    if (package / INSTALLED).is_dir():
        return package / INSTALLED
    root = package.parents[1]
    try:
        project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return root if project.get("project", {}).get("name") == "music_evals" else None


def _inside(parent: Path) -> list[str]:
    return sorted(path.name for path in parent.glob("[!._]*") if path.is_dir())
