"""No regular expression of the package takes quadratic time: each is timed on texts that make a bad one slow."""

from __future__ import annotations

import ast
import copy
import functools
import importlib
import re
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import pytest
from tests.conformance.rules import SOURCE, tree_of

METHODS = ("search", "match", "fullmatch", "split", "findall", "finditer", "sub", "subn")
N_CHARACTERS = 100_000
LIMIT_SEC = 1.0
"""Of the processor's time for one pattern and text; a linear one needs some milliseconds."""
FIRST_CHARACTERS, FIRST_LIMIT_SEC = 10_000, 0.15
"""Most quadratic patterns need more than this already here, and so are found a hundred times sooner."""
CLEARLY_LINEAR_SEC = 0.003
"""What is this quick with the first characters would, if it were quadratic, take a third of the limit with all."""


class Use(NamedTuple):
    """A pattern, and one way in which a module applies it."""

    module: str
    line: int
    pattern: re.Pattern[str]
    method: str


@functools.cache
def trees() -> dict[Path, ast.Module]:
    return {path: tree_of(path) for path in sorted(SOURCE.rglob("*.py"))}


def calls(tree: ast.Module) -> Iterator[ast.Call]:
    """Yield each call of a function of `re` that takes a pattern."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            is_re = isinstance(node.func.value, ast.Name) and node.func.value.id == "re"
            if is_re and node.func.attr in {"compile", *METHODS} and node.args:
                yield node


class _Given(ast.NodeTransformer):
    """Puts a letter where a pattern takes what is known at run time alone."""

    def visit_FormattedValue(self, node: ast.FormattedValue) -> ast.Constant:  # noqa: ARG002
        return ast.Constant("x")


@functools.cache
def names_in(path: Path) -> dict[str, Any]:
    """Return what the names of a module stand for; it is imported, which patterns that are plain texts do without."""
    try:
        return vars(importlib.import_module(module_of(path)))
    except ImportError:  # of an extra that is not installed
        return {"re": re}


def module_of(path: Path) -> str:
    return ".".join(path.relative_to(SOURCE.parent).with_suffix("").parts).removesuffix(".__init__")


def value_of(node: ast.expr, names: dict[str, Any]) -> Any:
    made = compile(ast.fix_missing_locations(ast.Expression(node)), "", "eval")
    return eval(made, dict(names))  # noqa: S307 - our own source


def texts_of(node: ast.expr, path: Path) -> list[str]:
    """Return what a pattern may be; none where it is made elsewhere as a whole."""
    if isinstance(node, ast.IfExp):
        return [*texts_of(node.body, path), *texts_of(node.orelse, path)]
    if isinstance(node, ast.Constant):
        return [node.value]
    try:
        value = value_of(node, names_in(path))
    except (NameError, AttributeError):
        if not isinstance(node, ast.JoinedStr):
            return []
        value = value_of(_Given().visit(copy.deepcopy(node)), {})
    return [value] if isinstance(value, str) else []


def flags_of(call: ast.Call) -> int:
    place = {"compile": 1, "sub": 4, "subn": 4, "split": 3}.get(call.func.attr, 2)  # type: ignore[attr-defined]
    given = [word.value for word in call.keywords if word.arg == "flags"] + call.args[place : place + 1]
    return value_of(given[0], {"re": re}) if given else 0


@functools.cache
def applied() -> dict[tuple[str, Path | None], set[str]]:
    """Return (name of a pattern, module) -> the methods that are asked of it there; of all modules under None."""
    found: dict[tuple[str, Path | None], set[str]] = {}
    for path, tree in trees().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and node.attr in METHODS:
                name = getattr(node.value, "id", getattr(node.value, "attr", ""))
                for place in (path, None):
                    found.setdefault((name, place), set()).add(node.attr)
    return found


def given_names(tree: ast.Module) -> dict[int, str]:
    """Return the identity of each part of a value -> the name that the value is given."""
    found = {}
    for node in ast.walk(tree):
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        if targets and isinstance(targets[0], ast.Name) and node.value is not None:  # type: ignore[union-attr]
            found |= {id(inner): targets[0].id for inner in ast.walk(node.value)}  # type: ignore[union-attr]
    return found


def uses_in(path: Path) -> list[Use]:
    """Return the patterns that a module hands to `re`, each with the ways in which it is applied."""
    found: dict[tuple[str, int, str], Use] = {}
    names = given_names(trees()[path])
    for call in calls(trees()[path]):
        method = call.func.attr  # type: ignore[attr-defined]
        name = names.get(id(call), "")
        ways = {method} if method != "compile" else applied().get((name, path)) or applied().get((name, None))
        for text in texts_of(call.args[0], path):
            pattern = re.compile(text, flags_of(call))
            for way in sorted(ways or {"search"}):
                found[pattern.pattern, pattern.flags, way] = Use(module_of(path), call.lineno, pattern, way)
    return list(found.values())


def repeats(pattern: re.Pattern[str]) -> bool:
    """Tell whether anything in a pattern repeats without a small bound; what does not, takes linear time."""
    import re._parser as parser  # type: ignore[import-not-found]

    def walk(part: Any) -> bool:
        if isinstance(part, parser.SubPattern | list | tuple):
            if isinstance(part, tuple) and len(part) == 3 and isinstance(part[1], int) and part[1] > 1000:
                return True
            return any(walk(inner) for inner in part)
        return part is parser.MAXREPEAT

    return walk(parser.parse(pattern.pattern, pattern.flags))


def letters_of(pattern: re.Pattern[str]) -> list[str]:
    """Return the literal characters of a pattern in their order, classes by their first member."""
    import re._parser as parser  # type: ignore[import-not-found]

    found: list[str] = []

    def walk(part: Any) -> None:
        if isinstance(part, tuple) and len(part) == 2 and part[0] in {parser.LITERAL, parser.RANGE}:
            found.append(chr(part[1] if part[0] is parser.LITERAL else part[1][0]))
        elif isinstance(part, parser.SubPattern | list | tuple):
            for inner in part:
                walk(inner)

    walk(parser.parse(pattern.pattern, pattern.flags))
    return found


COMMON = (" ", "\n", " \n", "\t", "(", "[", "{", "<", "\\", '"', "0", "a", "一", "-", ".", ":", "a ")


def texts_for(pattern: re.Pattern[str]) -> Iterator[str]:
    """Yield short texts that are repeated: common ones, and those that begin as the pattern does."""
    letters = letters_of(pattern)
    start = "".join(letters)
    own = [*letters[:8], start, *(start[:n] for n in (2, 4, 7)), *(f"{letter} " for letter in letters[:2])]
    yield from dict.fromkeys(text for text in (*COMMON, *own) if text)


class Slow(Exception):  # noqa: N818 - an event of the clock
    """A pattern took too long."""


def _stop(_signal: int, _frame: FrameType | None) -> None:
    raise Slow


def seconds(use: Use, text: str, limit: float) -> float:
    """Return the processor's seconds of a use, no more than the limit."""
    apply: Callable[..., Any] = getattr(use.pattern, use.method)
    arguments = ("", text) if use.method in {"sub", "subn"} else (text,)
    signal.setitimer(signal.ITIMER_VIRTUAL, limit)
    start = time.process_time()
    try:
        result = apply(*arguments)
        if use.method == "finditer":
            for _ in result:
                pass
    except Slow:
        return limit
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    return time.process_time() - start


@pytest.fixture
def clock() -> Iterator[None]:
    before = signal.signal(signal.SIGVTALRM, _stop)
    yield
    signal.signal(signal.SIGVTALRM, before)


def slow_text(use: Use) -> str:
    """Return the first repeated text, before an end that fits nothing, on which a pattern is slow; empty for none."""
    for text in texts_for(use.pattern):
        for n, limit in ((FIRST_CHARACTERS, FIRST_LIMIT_SEC), (N_CHARACTERS, LIMIT_SEC)):
            whole = (text * (n // len(text) + 1))[:n] + "\u0001"
            needed = seconds(use, whole, limit)
            if needed >= limit:
                return text
            if needed < CLEARLY_LINEAR_SEC:
                break
    return ""


@pytest.mark.slow
def test_every_pattern_is_linear(clock: None) -> None:
    slow = {}
    for path in trees():
        for use in uses_in(path):
            if repeats(use.pattern) and (text := slow_text(use)):
                slow[f"{use.module}:{use.line} {use.method} {use.pattern.pattern}"] = text
    assert slow == {}


@pytest.mark.parametrize(("pattern", "text"), [(r"\s+$", " "), (r"\[.*?\]x", "["), (r"(a|aa)+$", "a")])
def test_a_pattern_that_is_not_is_found(clock: None, pattern: str, text: str) -> None:
    assert slow_text(Use("", 0, re.compile(pattern), "search")) == text
