"""The repository folders of a clone: one folder, one repository on the Hub."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from music_evals.errors import InvalidInputError, NoDataError
from music_evals.hub.client import Repository, RepositoryType
from music_evals.hub.source import listed_files
from music_evals.repositories import HUB_FOLDERS, folders, is_installed, shipped

__all__ = ["REPOSITORY_TYPES", "RepositoryFolder", "all_repository_folders", "find_repository_folders"]

REPOSITORY_TYPES: dict[str, RepositoryType] = {
    "datasets_scripts": "dataset",
    "models": "model",
    "metrics": "space",
    "spaces": "space",
}
"""Kind of folder -> what it becomes on the Hub, in the order in which they need each other."""

METRICS = "metrics"

IGNORED = frozenset({"__pycache__", "run", "flagged", "results"})
"""Folders that never travel: caches, and what training and pages leave behind."""
IGNORED_SUFFIXES = frozenset({".pyc", ".pyo", ".part", ".lock", ".log", ".tmp"})


@dataclasses.dataclass(frozen=True)
class RepositoryFolder:
    """A folder that mirrors one repository on the Hub."""

    path: Path  # absolute: ``<root>/<kind>/<name>``

    def __post_init__(self) -> None:
        parent = self.path.parent
        if self.path.resolve() != parent.parent.resolve() / parent.name / self.path.name:
            raise InvalidInputError(
                f"{self.path} leads to {self.path.resolve()}; a repository folder may not be a link, put the folder "
                "itself there"
            )

    @property
    def name(self) -> str:
        """Name of the folder and of the repository."""
        return self.path.name

    @property
    def kind(self) -> str:
        """Key of `REPOSITORY_TYPES`."""
        return self.path.parent.name

    @property
    def root(self) -> Path:
        """Root of the repository that it belongs to."""
        return self.path.parents[1]

    @property
    def label(self) -> str:
        """``<kind>/<name>``."""
        return f"{self.kind}/{self.name}"

    def repository(self, org: str) -> Repository:
        """Return what it becomes under a user or an organisation."""
        return Repository(REPOSITORY_TYPES[self.kind], f"{org}/{self.name}")

    def files(self) -> dict[str, Path]:
        """Return path in the repository -> file, without caches, hidden files and what training leaves behind."""
        # In a clone of git, files that git ignores are left out too.
        listed = listed_files(self.path)
        paths = sorted(_walk(self.path) if listed is None else listed)
        inner = {path.relative_to(self.path): path for path in paths}
        return {name.as_posix(): path for name, path in inner.items() if _travels(name)}


def _travels(name: Path) -> bool:
    hidden = any(part.startswith(".") or part in IGNORED for part in name.parts)
    return not hidden and name.suffix not in IGNORED_SUFFIXES


def _walk(folder: Path) -> Iterator[Path]:
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            yield from _walk(path)
        else:
            yield path


def find_repository_folders(paths: Iterable[str | os.PathLike[str]]) -> list[RepositoryFolder]:
    """Return the repository folders at these paths, each once; a path may be of the clone in use, or only a name."""
    named = [_repository_folder(_located(Path(path))) for path in paths]
    if not named:
        raise NoDataError(
            f"no repository folder is named: give some, such as metrics/note_f1, of {', '.join(REPOSITORY_TYPES)}"
        )
    return list(dict.fromkeys(named))


def _located(path: Path) -> Path:
    if path.exists():
        return path
    named = (folders(kind).get(str(path)) for kind in HUB_FOLDERS)
    place = shipped(path) or next(filter(None, named), path)
    if is_installed(place):
        raise InvalidInputError(
            f"{path} is part of the installed package; what is published is a clone's commit: publish from one"
        )
    return place


def _repository_folder(path: Path) -> RepositoryFolder:
    absolute = Path(os.path.abspath(path))  # noqa: PTH100 - links are not followed, for they are refused
    folder = absolute.parent.parent.resolve() / absolute.parent.name / absolute.name
    if not folder.is_dir():
        raise InvalidInputError(f"{path} is no folder; name a repository folder, such as metrics/note_f1")
    if folder.parent.name not in REPOSITORY_TYPES:
        kinds = ", ".join(REPOSITORY_TYPES)
        msg = f"{path} is no repository folder: it lies in {folder.parent.name}/, expected one of {kinds}"
        if folder.parent.parent.name in REPOSITORY_TYPES:
            msg += f"; a variant is published with the whole folder, {path.parent}"
        raise InvalidInputError(msg)
    return RepositoryFolder(folder)


def all_repository_folders(root: str | os.PathLike[str]) -> list[RepositoryFolder]:
    """Return all repository folders below a root, in the order of `REPOSITORY_TYPES`."""
    base = Path(root).resolve()
    paths = [path for kind in REPOSITORY_TYPES for path in sorted((base / kind).glob("*")) if _is_published(path)]
    if not paths:
        kinds = ", ".join(REPOSITORY_TYPES)
        raise NoDataError(f"{root} holds no repository folder; run from the root of the repository, where {kinds} are")
    return [RepositoryFolder(path) for path in paths]


def _is_published(path: Path) -> bool:
    return path.is_dir() and not path.name.startswith(".") and path.name not in IGNORED
