"""A rule over many folders, modules or pages is one test that lists all that break it; what it reads is read once."""

from __future__ import annotations

import ast
import functools
import inspect
import os
import re
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pytest

from music_evals.errors import MissingBackendError
from music_evals.yaml_files import load_yaml

__all__ = [
    "CORE_ALONE", "ROOT", "SOURCE", "card_of", "code_lines", "missing_topics", "over", "place", "subfolders", "text_of",
    "tree_of",
]  # fmt: skip

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "music_evals"

CORE_ALONE = bool(os.environ.get("MUSIC_EVALS_CORE_ALONE"))
"""No extra is installed: a test that needs one skips. Set by `.ci/run lowest`, nowhere else."""

T = TypeVar("T")


def place(path: Path) -> str:
    """Name a file or folder by its place in the repository."""
    return path.relative_to(ROOT).as_posix()


def over(things: Sequence[T], name: Callable[[T], str] = str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make one test of a rule over many things: it fails with a line for each of them that breaks the rule.

    The rule's first parameter is the thing; fixtures follow, and all things share them. Where the core is tested alone,
    a thing that needs an extra is left out; the test is skipped if all of them do.
    """

    def decorate(rule: Callable[..., None]) -> Callable[..., None]:
        _, *fixtures = inspect.signature(rule).parameters.values()

        @functools.wraps(rule)
        def test(**given: Any) -> None:
            wrong = [] if things else ["there is nothing that the rule is about"]
            without_extra: list[str] = []
            for thing in things:
                try:
                    rule(thing, **given)
                except MissingBackendError as error:
                    (without_extra if CORE_ALONE else wrong).append(f"{name(thing)}: {_told(error, rule)}")
                except Exception as error:  # noqa: BLE001  (whatever it is, the next folder is looked at, too)
                    wrong.append(f"{name(thing)}: {_told(error, rule)}")
            if wrong:
                pytest.fail("\n".join([f"{len(wrong)} of {len(things)} break the rule", *wrong]), pytrace=False)
            if things and len(without_extra) == len(things):
                pytest.skip("\n".join(["needs an extra", *without_extra]))

        test.__signature__ = inspect.Signature(fixtures)  # type: ignore[attr-defined]
        return test

    return decorate


def _told(error: Exception, rule: Callable[..., None]) -> str:
    """Tell what is wrong, and by which line of the rule."""
    file = inspect.getsourcefile(rule)
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    kind = "" if isinstance(error, AssertionError) else f"{type(error).__name__}: "
    return f"{kind}{error} (line {lines[-1] if lines else '?'} of {Path(file or '').name})"


def subfolders(house: str) -> list[Path]:
    """Return the folders below one of the repository's houses, such as `metrics`."""
    return sorted(path for path in (ROOT / house).iterdir() if path.is_dir() and path.name != "__pycache__")


@functools.cache
def text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@functools.cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(text_of(path))


@functools.cache
def card_of(folder: Path) -> tuple[dict[str, Any], str]:
    """Return the head and the text of the card of a folder."""
    match = re.fullmatch(r"---\n(.*?)\n---\n(.*)", text_of(folder / "README.md"), re.DOTALL)
    if match is None:
        message = f"{place(folder)}/README.md must begin with YAML between two lines of ---"
        raise AssertionError(message)
    return load_yaml(match[1], place(folder)), match[2]


def code_lines(path: Path) -> int:
    """Count lines that are neither blank, nor comment, nor docstring."""
    docs: set[int] = set()
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            docs.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    lines = enumerate(text_of(path).splitlines(), start=1)
    return sum(bool(line.strip()) and not line.strip().startswith("#") and i not in docs for i, line in lines)


def missing_topics(card: str, topics: dict[str, str]) -> dict[str, str]:
    """Return those topics, each with its pattern, of which a card does not speak."""
    return {
        topic: pattern
        for topic, pattern in topics.items()
        if not re.search(pattern, card, re.MULTILINE | re.IGNORECASE)
    }
