"""Where the windows are: the folders of the repository that mirror one repository on the Hub each."""

from __future__ import annotations

import functools
import os
import tomllib
from collections.abc import Mapping
from pathlib import Path

from music_evals.errors import UnknownNameError

__all__ = ["DATASETS", "MODELS", "WINDOWS", "find_window", "in_clone", "window_names"]

DATASETS, MODELS = "datasets_scripts", "models"
WINDOWS = ("metrics", DATASETS, MODELS, "spaces")
"""Folders of the repository that hold one folder for each repository on the Hub."""


def find_window(name: str, folder: str, kind: str, known: Mapping[str, str] | None = None) -> tuple[str, bool]:
    """Tell where a dataset or model of this name is.

    Looked up in this order: the path `name`; `folder`/`name` under the current folder; both under the clone that the
    package is used from, if it is; the Hub id `name`.

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
    in_window = Path(folder) / name
    for candidate in (Path(name), in_window, in_clone(in_window), in_clone(name)):
        if candidate is not None and candidate.is_dir():
            return str(candidate), True
    owner, slash, repository = name.partition("/")
    is_id = slash and repository and "/" not in repository and owner not in {"", ".", "..", *WINDOWS}
    if is_id and not Path(owner).is_dir():
        return name, False
    parent = Path(name).parent if slash and Path(name).parent.is_dir() else None
    found = window_names(folder) if parent is None else [f"{parent}/{inner}" for inner in _folders(parent)]
    advice = f"names are looked up in ./{folder}; a folder or a Hub id (owner/name) may be given too"
    raise UnknownNameError(kind, name, {*found, *(known or {})}, advice)


def in_clone(path: str | os.PathLike[str]) -> Path | None:
    """Return a window of the clone that the package is used from, by its path from the root; None where there is none.

    Only what lies in a folder of windows is found, such as ``models/anticipation_rnn``.
    """
    root, inner = _clone(), Path(path)
    if root is None or len(inner.parts) < 2 or inner.parts[0] not in WINDOWS or ".." in inner.parts:
        return None
    return root / inner if (root / inner).exists() else None


@functools.cache
def _clone() -> Path | None:
    """Return the root of the clone that this very file lies in; None for a package that was installed from one."""
    root = Path(__file__).resolve().parents[2]
    try:
        project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return root if project.get("project", {}).get("name") == "music_evals" else None


def _folders(parent: Path) -> list[str]:
    return [path.name for path in parent.glob("*") if path.is_dir()]


def window_names(folder: str) -> list[str]:
    """Return the names of the datasets or models in a folder of windows, here and in the clone."""
    root = _clone()
    return [name for place in (Path(folder), *([root / folder] if root else [])) for name in _folders(place)]
