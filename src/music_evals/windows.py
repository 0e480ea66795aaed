"""Where the windows are: the folders of the repository that mirror one repository on the Hub each.

A name such as ``known_edits`` is looked up under the current folder, then among the windows that the package came with:
those of the clone that it is used from, or those that its wheel brought along.
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
    "METRICS",
    "MODELS",
    "ORGANISATION",
    "WINDOWS",
    "find_window",
    "folders",
    "is_installed",
    "shipped",
    "window",
]

METRICS, DATASETS, MODELS = "metrics", "datasets_scripts", "models"
WINDOWS = (METRICS, DATASETS, MODELS, "spaces")
"""Folders of the repository that hold one folder for each repository on the Hub."""

EXAMPLES = "examples"
"""Folder of the repository with small files to try the commands on."""

INSTALLED = "_windows"
"""Folder of the installed package that holds what the wheel brought along; see setup.py."""

ORGANISATION = "MUSIC_EVALS_ORG"
"""Environment variable: user or organisation on the Hub whose repositories plain names stand for, if nothing else."""


def window(name: str) -> str:
    """Return where a metric, dataset or model of this name is, as `evaluate` and `datasets` load it.

    Looked up as `find_window` does, among metrics, datasets and models; their names are unique.

    Parameters
    ----------
    name
        Such as ``"note_f1"`` or ``"jsb_chorales"``.

    Returns
    -------
    str
        Its folder; or its id on the Hub, where it is no folder and ``MUSIC_EVALS_ORG`` names an organisation.

    Raises
    ------
    UnknownNameError
        There is none; names the nearest.

    Examples
    --------
    >>> import evaluate
    >>> evaluate.load(window("note_f1")).name
    'note_f1'

    """
    houses = (METRICS, DATASETS, MODELS)
    place = next(filter(None, (_here(name, house) for house in houses)), None)
    if place is not None:
        return str(place)
    if on_hub := _of_organisation(name):
        return on_hub
    raise UnknownNameError("metric, dataset or model", name, {found for house in houses for found in folders(house)})


def find_window(name: str, folder: str, kind: str, known: Mapping[str, str] | None = None) -> tuple[str, bool]:
    """Tell where a dataset or model of this name is.

    Looked up in this order: the path `name`; `folder`/`name` under the current folder; both among the windows that the
    package came with; the Hub id `name`; the Hub id of a plain name under the organisation that the environment
    variable ``MUSIC_EVALS_ORG`` names, if it does.

    Parameters
    ----------
    name
        A name, a path or a Hub id.
    folder
        The window, e.g. ``"models"``.
    kind
        Word for the message, e.g. ``"model"``.
    known
        Further names to offer when nothing is found.

    Returns
    -------
    tuple of str and bool
        Path or Hub id, and whether it is on this machine.

    Raises
    ------
    UnknownNameError
        Neither a folder nor the form of a Hub id. A path whose first part is a folder here is never asked of the Hub:
        it is a typing error, not somebody's repository.

    """
    place = _here(name, folder)
    if place is not None:
        return str(place), True
    owner, slash, repository = name.partition("/")
    is_id = slash and repository and "/" not in repository and owner not in {"", ".", "..", *WINDOWS}
    if is_id and not Path(owner).is_dir():
        return name, False
    if on_hub := _of_organisation(name):
        return on_hub, False
    parent = Path(name).parent if slash and Path(name).parent.is_dir() else None
    found = folders(folder) if parent is None else {f"{parent}/{inner}" for inner in _inside(parent)}
    advice = f"names are looked up in ./{folder} and in the package; a folder or a Hub id (owner/name) may be given too"
    raise UnknownNameError(kind, name, {*found, *(known or {})}, advice)


def shipped(path: str | os.PathLike[str]) -> Path | None:
    """Return a file or folder that the package came with, by its path in the repository; None where there is none.

    Only what lies in a folder of windows or in the examples is found, such as ``models/anticipation_rnn``.
    """
    home, inner = _home(), Path(path)
    known = inner.parts[:1] == (EXAMPLES,) or (len(inner.parts) > 1 and inner.parts[0] in WINDOWS)
    if home is None or not known or ".." in inner.parts:
        return None
    return home / inner if (home / inner).exists() else None


def is_installed(place: Path) -> bool:
    """Tell whether a window came in a wheel: without git, and not to be written to."""
    home = _home()
    return home is not None and home.name == INSTALLED and place.resolve().is_relative_to(home)


def folders(house: str) -> dict[str, Path]:
    """Return name -> folder of all windows of a kind, here and of those that the package came with; ours come last."""
    home = _home()
    places = [Path(house), *([home / house] if home else [])]
    found: dict[str, Path] = {}
    for place in places:
        for name in _inside(place):
            found.setdefault(name, place / name)
    return found


def _here(name: str, folder: str) -> Path | None:
    in_window = Path(folder) / name
    candidates = (Path(name), in_window, shipped(in_window), shipped(name))
    return next((place for place in candidates if place is not None and place.is_dir()), None)


def _of_organisation(name: str) -> str:
    """Return the Hub id of a plain name, where the environment names an organisation; else nothing."""
    owner = os.environ.get(ORGANISATION, "").strip()
    return f"{owner}/{name}" if owner and name and "/" not in name and not name.startswith(".") else ""


@functools.cache
def _home() -> Path | None:
    """Return the folder of the windows that the package came with: in its wheel, or the root of its clone."""
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
