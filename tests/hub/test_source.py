from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from music_evals.errors import InvalidInputError
from music_evals.hub.repository_folders import RepositoryFolder, Source, listed_files, uncommitted

from .hub_house import REVISION, SOURCE, write

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


def git(root: Path, *arguments: str) -> str:
    who = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"]
    done = subprocess.run(["git", "-C", str(root), *who, *arguments], capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A clone whose package is pushed, with a later commit that changes a card only."""
    subprocess.run(["git", "init", "-q", "--bare", str(tmp_path / "far.git")], check=True)
    root = tmp_path / "clone"
    subprocess.run(["git", "clone", "-q", str(tmp_path / "far.git"), str(root)], check=True, capture_output=True)
    write(root, {"pyproject.toml": f'[project.urls]\nRepository = "{SOURCE}.git"\n', "src/a.py": "a = 1\n"})
    git(root, "add", ".")
    git(root, "commit", "-qm", "package")
    write(root, {"metrics/x/README.md": "x\n"})
    git(root, "add", ".")
    git(root, "commit", "-qm", "card")
    git(root, "push", "-q", "origin", "HEAD")
    return root


def test_the_last_commit_of_the_package_is_pinned(clone: Path) -> None:
    source = Source(clone)
    assert source.revision == git(clone, "rev-parse", "HEAD~1")
    assert source.url == SOURCE
    assert Source(clone, "https://other.org/a/b/").url == "https://other.org/a/b"


def test_changes_that_are_not_committed(clone: Path) -> None:
    write(clone, {"metrics/x/README.md": "other\n", "metrics/x/new.txt": "new\n", "notes.txt": "of no folder\n"})
    assert Source(clone).revision
    assert uncommitted(clone / "metrics/x") == ["metrics/x/README.md", "metrics/x/new.txt"]
    write(clone, {"src/b.py": "b = 1\n"})
    with pytest.raises(InvalidInputError, match=r"not committed \(src/b.py\).*name a commit"):
        _ = Source(clone).revision


def test_files_that_git_ignores_are_not_listed(clone: Path) -> None:
    folder = write(clone / "metrics/x", {".gitignore": "*.bin\n", "secret.bin": "x", "new.txt": "x", "gone.txt": "x"})
    git(clone, "add", "metrics")
    (folder / "gone.txt").unlink()
    listed = listed_files(folder)
    assert listed is not None
    assert {path.name for path in listed} == {".gitignore", "README.md", "new.txt"}
    assert set(RepositoryFolder(folder).files()) == {"README.md", "new.txt"}
    assert listed_files(clone.parent) is None
    write(clone, {".gitignore": "build/\n"})
    assert listed_files(write(clone / "build/metrics/x", {"a.txt": "x"})) is None


def test_a_clone_that_git_cannot_read(tmp_path: Path) -> None:
    folder = write(tmp_path, {".git": "gitdir: gone\n", "metrics/x/a.txt": "x"}) / "metrics/x"
    with pytest.raises(InvalidInputError, match="git cannot read the clone"):
        uncommitted(folder)


def test_a_commit_that_is_not_pushed(clone: Path) -> None:
    write(clone, {"src/a.py": "a = 2\n"})
    git(clone, "commit", "-qam", "more")
    with pytest.raises(InvalidInputError, match=r"no remote branch that this clone knows.*name a commit"):
        _ = Source(clone).revision
    assert Source(clone, given_revision="HEAD").revision == git(clone, "rev-parse", "HEAD")


def test_a_commit_that_is_given(tmp_path: Path, clone: Path) -> None:
    assert Source(tmp_path, given_revision=REVISION).revision == REVISION
    with pytest.raises(InvalidInputError, match="must be a commit"):
        _ = Source(clone, given_revision="gone").revision


def test_no_clone_and_no_address(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"no clone of git.*name a commit"):
        _ = Source(tmp_path).revision
    with pytest.raises(InvalidInputError, match=r"give it, .*, or write \[project.urls\]"):
        _ = Source(tmp_path).url
    with pytest.raises(InvalidInputError, match="start with https"):
        _ = Source(tmp_path, "git@x.org:a/b").url
