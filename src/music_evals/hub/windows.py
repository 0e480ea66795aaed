"""The windows of a repository: one folder, one repository on the Hub."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from music_evals.errors import InvalidInputError, NoDataError
from music_evals.hub.client import Repository, RepositoryType
from music_evals.hub.source import listed_files
from music_evals.windows import WINDOWS, folders, is_installed, shipped

__all__ = ["HOUSES", "Window", "all_windows", "find_windows"]

HOUSES: dict[str, RepositoryType] = {
    "datasets_scripts": "dataset",
    "models": "model",
    "metrics": "space",
    "spaces": "space",
}
"""Folder of windows -> what they become, in the order in which they need each other: data, models, metrics, Spaces."""

METRICS = "metrics"

IGNORED = frozenset({"__pycache__", "run", "flagged", "results"})
"""Folders that never travel: caches, and what training and pages leave behind."""
IGNORED_SUFFIXES = frozenset({".pyc", ".pyo", ".part", ".lock", ".log", ".tmp"})


@dataclasses.dataclass(frozen=True)
class Window:
    """A folder that mirrors one repository on the Hub."""

    folder: Path  # where it is, absolute: ``<root>/<house>/<name>``

    def __post_init__(self) -> None:
        house = self.folder.parent
        if self.folder.resolve() != house.parent.resolve() / house.name / self.folder.name:
            raise InvalidInputError(
                f"{self.folder} leads to {self.folder.resolve()}; a window is no link, put the folder itself there"
            )

    @property
    def name(self) -> str:
        """Name of the folder and of the repository."""
        return self.folder.name

    @property
    def house(self) -> str:
        """Key of `HOUSES`."""
        return self.folder.parent.name

    @property
    def root(self) -> Path:
        """Root of the repository that it belongs to."""
        return self.folder.parents[1]

    @property
    def label(self) -> str:
        """``<house>/<name>``."""
        return f"{self.house}/{self.name}"

    def repository(self, org: str) -> Repository:
        """Return what it becomes under a user or an organisation."""
        return Repository(HOUSES[self.house], f"{org}/{self.name}")

    def files(self) -> dict[str, Path]:
        """Return path in the repository -> file, without caches, hidden files and what training leaves behind."""
        # In a clone of git, files that git ignores are left out too.
        listed = listed_files(self.folder)
        paths = sorted(_walk(self.folder) if listed is None else listed)
        inner = {path.relative_to(self.folder): path for path in paths}
        return {name.as_posix(): path for name, path in inner.items() if _travels(name)}


def _travels(name: Path) -> bool:
    kept = not any(part.startswith(".") or part in IGNORED for part in name.parts)
    return kept and name.suffix not in IGNORED_SUFFIXES


def _walk(folder: Path) -> Iterator[Path]:
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            yield from _walk(path)
        else:
            yield path


def find_windows(paths: Iterable[str | os.PathLike[str]]) -> list[Window]:
    """Return the windows at these paths, each once; what is not here may be one of the clone in use, or its name."""
    windows = [_window(_found(Path(path))) for path in paths]
    if not windows:
        raise NoDataError(f"no window is named: give folders such as metrics/note_f1, of {', '.join(HOUSES)}")
    return list(dict.fromkeys(windows))


def _found(path: Path) -> Path:
    if path.exists():
        return path
    named = (folders(house).get(str(path)) for house in WINDOWS)
    place = shipped(path) or next(filter(None, named), path)
    if is_installed(place):
        raise InvalidInputError(
            f"{path} is part of the installed package; what is published is a clone's commit: publish from one"
        )
    return place


def _window(path: Path) -> Window:
    given = Path(os.path.abspath(path))  # noqa: PTH100 - links are not followed, for they are refused
    folder = given.parent.parent.resolve() / given.parent.name / given.name
    if not folder.is_dir():
        raise InvalidInputError(f"{path} is no folder; a window is one, such as metrics/note_f1")
    if folder.parent.name not in HOUSES:
        msg = f"{path} is no window: it lies in {folder.parent.name}/, expected one of {', '.join(HOUSES)}"
        if folder.parent.parent.name in HOUSES:
            msg += f"; a variant is published with the whole folder, {path.parent}"
        raise InvalidInputError(msg)
    return Window(folder)


def all_windows(root: str | os.PathLike[str]) -> list[Window]:
    """Return all windows below a root, in the order of `HOUSES`."""
    base = Path(root).resolve()
    found = [Window(path) for house in HOUSES for path in sorted((base / house).glob("*")) if _is_window(path)]
    if not found:
        raise NoDataError(f"{root} holds no window; run from the root of the repository, where {', '.join(HOUSES)} are")
    return found


def _is_window(path: Path) -> bool:
    return path.is_dir() and not path.name.startswith(".") and path.name not in IGNORED
