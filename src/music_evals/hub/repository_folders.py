"""The repository folders of a clone: one folder, one repository on the Hub."""

from __future__ import annotations

import dataclasses
import functools
import os
import re
import shutil
import subprocess
import tomllib
from collections.abc import Iterable
from pathlib import Path

from music_evals.errors import InvalidInputError, NoDataError
from music_evals.hub.client import Repository, RepositoryType
from music_evals.repositories import HUB_FOLDERS, folders, is_installed, shipped

PACKAGE = ("src", "pyproject.toml", "setup.py")
"""The code of the installed package; the repository folders that come with it are published by themselves."""

_COMMIT = re.compile("[0-9a-f]{40}")
_URL_NAMES = ("repository", "source", "source code", "homepage")


@dataclasses.dataclass(frozen=True)
class Source:
    """The source repository; what is not given is found out where it is first needed."""

    root: Path  # root of the clone
    given_url: str | None = None  # address, ``https://...``; None takes that of pyproject.toml
    # Commit that published requirements pin; None takes the last one that changed the package, and refuses if the clone
    # holds changes that it does not, or if no remote branch has it.
    given_revision: str | None = None

    @functools.cached_property
    def url(self) -> str:
        """Address, without ``.git`` at its end."""
        address, path = self.given_url, self.root / "pyproject.toml"
        if not address and path.is_file():
            declared = tomllib.loads(path.read_text(encoding="utf-8")).get("project", {}).get("urls", {})
            urls = {name.lower(): listed for name, listed in declared.items()}
            address = next((urls[name] for name in _URL_NAMES if name in urls), None)
        if address is None:
            raise InvalidInputError(
                "the address of the source repository is not known, which requirements and links of published folders "
                "need: give it, https://..., or write [project.urls] Repository in pyproject.toml"
            )
        if not re.fullmatch(r"https?://[^\s/]+/\S+", address):
            raise InvalidInputError(
                f"expected the address of the source repository to start with https://, got {address!r}"
            )
        return address.rstrip("/").removesuffix(".git")

    @functools.cached_property
    def revision(self) -> str:
        """Full commit that is pinned; `InvalidInputError` where it lacks what is published, or cannot be fetched."""
        if self.given_revision is not None:
            if _COMMIT.fullmatch(self.given_revision):
                return self.given_revision
            commit = _git(self.root, "rev-parse", "--verify", "--quiet", f"{self.given_revision}^{{commit}}")
            if not commit:
                raise InvalidInputError(
                    "the revision must be a commit, all 40 digits or a name that this clone knows; got "
                    f"{self.given_revision!r}"
                )
            return commit
        advice = "published requirements pin a commit that pip can fetch: {}, or name a commit as the revision"
        if _git(self.root, "rev-parse", "--git-dir") is None:
            raise InvalidInputError(f"{self.root} is no clone of git; " + advice.format("publish from one"))
        places = [place for place in PACKAGE if (self.root / place).exists()]
        changed = _git(self.root, "status", "--porcelain", "--", *places)
        if changed:
            names = ", ".join(line[3:] for line in changed.splitlines()[:5])
            raise InvalidInputError(
                f"the clone holds changes that are not committed ({names}); " + advice.format("commit and push them")
            )
        pinned = _git(self.root, "log", "-1", "--pretty=format:%H", "--", *places)
        if not pinned:
            raise InvalidInputError(
                f"{self.root} has no commit that holds the package; " + advice.format("commit and push it")
            )
        if not _git(self.root, "branch", "--remotes", "--contains", pinned):
            raise InvalidInputError(
                f"no remote branch that this clone knows has {pinned[:12]}; " + advice.format("push it")
            )
        return pinned


def listed_files(folder: Path) -> list[Path] | None:
    """Return the files of a folder that git does not ignore, committed or not; None outside of a clone."""
    if not _is_in_clone(folder):
        return None
    listed = _git(folder, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    paths = [folder / name for name in (listed or "").split("\0") if name]
    return [path for path in dict.fromkeys(paths) if path.is_symlink() or path.is_file()]


def uncommitted(folder: Path) -> list[str]:
    """Return the files of a folder, by their paths in the clone, that differ from the last commit."""
    if not _is_in_clone(folder):
        if any((parent / ".git").exists() for parent in folder.parents):
            raise InvalidInputError(f"git cannot read the clone that holds {folder}; see what `git status` says there")
        return []
    changed = _git(folder, "status", "--porcelain", "--untracked-files=all", "--", ".") or ""
    return [line[3:] for line in changed.splitlines()]


def _is_in_clone(folder: Path) -> bool:
    """Return whether a folder is in a clone; a root that git ignores, such as a build's, is not."""
    inside = _git(folder, "rev-parse", "--is-inside-work-tree") == "true"
    return inside and _git(folder.parent.parent, "check-ignore", "--quiet", ".") is None


def _git(folder: Path, *arguments: str) -> str | None:
    """Return the output of git in a folder; None if it fails or is not installed."""
    git = shutil.which("git")
    if git is None:
        return None
    done = subprocess.run(  # noqa: S603 - git, by its full path
        [git, "-C", str(folder), *arguments], capture_output=True, text=True, check=False
    )
    return done.stdout.rstrip("\n") if done.returncode == 0 else None


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
        if listed is None:
            walked = os.walk(self.path, onerror=_refuse)  # `rglob` would pass over a folder that cannot be read
            listed = [Path(top, name) for top, inner, names in walked for name in (*inner, *names)]
        paths = sorted(path for path in listed if path.is_symlink() or not path.is_dir())
        inner = {path.relative_to(self.path): path for path in paths}
        return {
            name.as_posix(): path
            for name, path in inner.items()
            if name.suffix not in IGNORED_SUFFIXES
            and not any(part.startswith(".") or part in IGNORED for part in name.parts)
        }


def find_repository_folders(paths: Iterable[str | os.PathLike[str]]) -> list[RepositoryFolder]:
    """Return the repository folders at these paths, each once; a path may be of the clone in use, or only a name."""
    named = []
    for path in map(Path, paths):
        place = path
        if not path.exists():
            place = shipped(path) or next(filter(None, (folders(kind).get(str(path)) for kind in HUB_FOLDERS)), path)
            if is_installed(place):
                raise InvalidInputError(
                    f"{path} is part of the installed package; what is published is a clone's commit: publish from one"
                )
        named.append(_repository_folder(place))
    if not named:
        raise NoDataError(
            f"no repository folder is named: give some, such as metrics/note_f1, of {', '.join(REPOSITORY_TYPES)}"
        )
    return list(dict.fromkeys(named))


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
    paths = [
        path
        for kind in REPOSITORY_TYPES
        for path in sorted((base / kind).glob("*"))
        if path.is_dir() and not path.name.startswith(".") and path.name not in IGNORED
    ]
    if not paths:
        kinds = ", ".join(REPOSITORY_TYPES)
        raise NoDataError(f"{root} holds no repository folder; run from the root of the repository, where {kinds} are")
    return [RepositoryFolder(path) for path in paths]


def _refuse(error: OSError) -> None:
    raise error
