"""Which packages and processor kernels made the numbers: part of every receipt."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Mapping, Sequence
from importlib import metadata
from typing import Any

from music_evals import __version__
from music_evals.metrics.catalogue import CATALOGUE
from music_evals.numerics import kernels

__all__ = [
    "PACKAGES",
    "definition_in",
    "definitions_of",
    "kernel_row",
    "kernel_rows",
    "kernels_of",
    "on_kernels",
    "package_versions",
]

Row = Mapping[str, Any]

PACKAGES = ("music_evals", "numpy", "scipy", "datasets", "torch", "symusic", "music21")

UNKNOWN = "not recorded"
"""Kernels of scores that an earlier version of this package made."""


def package_versions(packages: Iterable[str] = PACKAGES) -> dict[str, str]:
    """Return the versions that decide the numbers; packages that are not installed are left out."""
    versions = {"python": platform.python_version()}
    for name in packages:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return versions | {"music_evals": __version__}


def definitions_of(header: Row) -> dict[str, dict[str, int]]:
    """Return the ``definitions`` of a new run by score, but for those that are 1: older headers have none either."""
    names = (*header.get("metrics", ()), *header.get("companions", ()))
    numbers = {
        name: CATALOGUE[name].definition_under(str(header.get("variant"))) for name in names if name in CATALOGUE
    }
    changed = {name: number for name, number in numbers.items() if number > 1}
    return {"definitions": changed} if changed else {}


def definition_in(header: Row, name: str) -> int:
    """Return by which definition the run of a header, or of its results, computed a score."""
    return int(header.get("definitions", {}).get(name, 1))


def kernel_rows(rows: Iterable[Row]) -> list[dict[str, Any]]:
    """Return the row that says which kernels make the scores after it; none if the last one of `rows` says so."""
    last = [row["kernels"] for row in rows if row["kind"] == "kernels"][-1:]
    return [] if last == [kernels()] else [kernel_row(kernels())]


def kernel_row(kernels: str) -> dict[str, Any]:
    """Return the row that says which kernels make the scores after it."""
    return {"kind": "kernels", "kernels": kernels}


def kernels_of(rows: Iterable[Row]) -> list[str]:
    """Return the kernels that made the scores of a run, in the order of the sessions."""
    names: dict[str, None] = {}
    current = UNKNOWN
    for row in rows:
        if row["kind"] == "kernels":
            current = str(row["kernels"])
        elif row["kind"] == "score":
            names[current] = None
    return list(names)


def on_kernels(names: Sequence[str]) -> list[str]:
    """Return what a reader should know of scores that several kinds of kernels made."""
    if len(names) < 2:
        return []
    return [f"scores were made with several kinds of processor kernels, so last digits may differ: {'; '.join(names)}"]
