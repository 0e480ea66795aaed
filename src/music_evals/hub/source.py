"""Where the code is that a published folder installs: address and commit of the source repository."""

from __future__ import annotations

import dataclasses
import functools
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

from music_evals.errors import InvalidInputError

__all__ = ["Source", "listed_files", "uncommitted"]

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
        address = self.given_url or self._declared_url()
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

    def _declared_url(self) -> str | None:
        path = self.root / "pyproject.toml"
        if not path.is_file():
            return None
        declared = tomllib.loads(path.read_text(encoding="utf-8")).get("project", {}).get("urls", {})
        urls = {name.lower(): address for name, address in declared.items()}
        return next((urls[name] for name in _URL_NAMES if name in urls), None)

    @functools.cached_property
    def revision(self) -> str:
        """Full commit that is pinned; `InvalidInputError` where it lacks what is published, or cannot be fetched."""
        if self.given_revision is not None:
            return self._resolved(self.given_revision)
        advice = "published requirements pin a commit that pip can fetch: {}, or name a commit as the revision"
        if self._git("rev-parse", "--git-dir") is None:
            raise InvalidInputError(f"{self.root} is no clone of git; " + advice.format("publish from one"))
        places = [place for place in PACKAGE if (self.root / place).exists()]
        changed = self._git("status", "--porcelain", "--", *places)
        if changed:
            names = ", ".join(line[3:] for line in changed.splitlines()[:5])
            raise InvalidInputError(
                f"the clone holds changes that are not committed ({names}); " + advice.format("commit and push them")
            )
        pinned = self._git("log", "-1", "--pretty=format:%H", "--", *places)
        if not pinned:
            raise InvalidInputError(
                f"{self.root} has no commit that holds the package; " + advice.format("commit and push it")
            )
        if not self._git("branch", "--remotes", "--contains", pinned):
            raise InvalidInputError(
                f"no remote branch that this clone knows has {pinned[:12]}; " + advice.format("push it")
            )
        return pinned

    def _resolved(self, revision: str) -> str:
        if _COMMIT.fullmatch(revision):
            return revision
        commit = self._git("rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}")
        if not commit:
            raise InvalidInputError(
                f"the revision must be a commit, all 40 digits or a name that this clone knows; got {revision!r}"
            )
        return commit

    def _git(self, *arguments: str) -> str | None:
        return _git(self.root, *arguments)


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
