"""What decides a score besides the recording: extractors, and everything that is written between features and scores.

The modules are found by the imports of the pipeline, so that none is forgotten; a change in any of them, of a word too,
sets the records of a run aside. Features are kept through it.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import music_evals
from music_evals.audio.extraction import receipt
from music_evals.pipelines import preservation

_PACKAGE = Path(music_evals.__file__).parent


def scoring_digest(*about: Any, modules: Iterable[str] = ()) -> str:
    """Return a digest of extractors, formulas, further modules and what else decides the scores of a run."""
    text = json.dumps([receipt(), formulas(modules), about], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def formulas(modules: Iterable[str] = ()) -> dict[str, str]:
    """Return the text of the pipeline, of further modules, and of each that these import, directly or not, by name."""
    # the pipeline finds the functions of scores by name, in the modules of their facets
    left = [preservation.__name__, *(f"music_evals.metrics.{facet}" for facet in preservation.FACETS), *modules]
    found: dict[str, str] = {}
    while left:
        name = left.pop()
        path = _file_of(name)
        if path is not None and name not in found:
            found[name] = path.read_text(encoding="utf-8")
            left += _imported(found[name])
    return found


def _file_of(name: str) -> Path | None:
    """Return the file of a module of the package; None for anything else that is imported."""
    package, *parts = name.split(".")
    place = _PACKAGE.joinpath(*parts)
    files = [place.with_suffix(".py"), place / "__init__.py"] if package == music_evals.__name__ and parts else []
    return next((file for file in files if file.is_file()), None)


@functools.cache
def _imported(text: str) -> list[str]:
    """Return what a module imports, wherever in it: of ``from a import b`` both ``a`` and ``a.b``."""
    names = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names += [node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)]
    return names
