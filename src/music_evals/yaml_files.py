"""Read YAML, by the one library for it, ruamel.yaml: safely, as YAML 1.2, into plain values.

`music_evals.hub.heads` changes YAML that others wrote.
"""

from __future__ import annotations

import contextlib
import importlib.resources
import itertools
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from music_evals.errors import UnreadableFileError
from music_evals.files import decode_text

_MOST_YAML, _MOST_VALUES, _DEEPEST = 2**20, 100_000, 100  # the longest heads of cards have 2**19 characters
_SLIPS: Final = (ArithmeticError, AssertionError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)
_BOOLEANS: Final = re.compile(r"(?:yes|Yes|YES|no|No|NO|on|On|ON|off|Off|OFF)\Z")


def load_yaml(text: str, place: object, *, old_booleans: bool = False) -> Any:
    """Return the values of YAML."""
    from ruamel.yaml import YAML

    yaml = YAML(typ="safe", pure=True)
    if old_booleans:
        resolver = yaml.resolver
        _ = resolver.versioned_resolver  # which fills in the rules of YAML 1.2
        resolver.add_version_implicit_resolver((1, 2), "tag:yaml.org,2002:bool", _BOOLEANS, list("yYnNoO"))
    with named_errors(f"{place} cannot be read as YAML"):
        return yaml.load(text)


def read_yaml_file(path: str | Path) -> Any:
    """Return the values of a YAML file of our own."""
    return load_yaml(Path(path).read_text(encoding="utf-8"), path)


def packaged_yaml(package: str, name: str) -> Any:
    """Return the values of a YAML file that lies in a package."""
    return load_yaml(importlib.resources.files(package).joinpath(name).read_text(encoding="utf-8"), name)


@contextlib.contextmanager
def named_errors(subject: str) -> Iterator[None]:
    """Turn what ruamel.yaml raises on a text that it cannot take, its own slips too, into `UnreadableFileError`."""
    from ruamel.yaml.error import YAMLError

    try:
        yield
    except UnreadableFileError:
        raise
    except (YAMLError, *_SLIPS) as error:
        mark = getattr(error, "problem_mark", None)
        line = "" if mark is None else f", line {mark.line + 1}"
        reason = getattr(error, "problem", None) or f"{type(error).__name__}: {error}"
        raise UnreadableFileError(f"{subject}: {reason}{line}") from error


def yaml_text(content: bytes, place: object) -> str:
    """Return the text of YAML as `decode_text` does, unless it is so long or so deep that its parser takes minutes."""
    text = decode_text(content, place)
    depths = itertools.accumulate(1 if mark in "[{" else -1 for mark in text if mark in "[]{}")
    if len(text) > _MOST_YAML or max(depths, default=0) > _DEEPEST:
        raise UnreadableFileError(
            f"{place}: YAML of more than {_MOST_YAML} characters, or brackets more than {_DEEPEST} deep; write less"
        )
    return text


def check_tree(value: Any, place: object) -> None:
    """Raise `UnreadableFileError` where YAML names itself, or grows beyond bounds by names that stand for others."""
    left, n_values = [(value, 0)], 0
    while left:
        part, depth = left.pop()
        n_values += 1
        if n_values > _MOST_VALUES or depth > _DEEPEST:
            raise UnreadableFileError(
                f"{place} holds more than {_MOST_VALUES} values, or some more than {_DEEPEST} deep; write less of it"
            )
        inside = part.values() if isinstance(part, Mapping) else part if isinstance(part, list | tuple) else ()
        left += [(child, depth + 1) for child in inside]
