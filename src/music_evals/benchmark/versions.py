"""Which packages and processor kernels made the numbers: part of every receipt."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Mapping, Sequence
from importlib import metadata
from typing import Any

from music_evals import __version__

__all__ = [
    "PACKAGES",
    "definition_in",
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


def definition_in(header: Row, name: str) -> int:
    """Return by which definition the run of a header, or of its results, computed a score."""
    return int(header.get("definitions", {}).get(name, 1))


def on_kernels(names: Sequence[str]) -> list[str]:
    """Return what a reader should know of scores that several kinds of kernels made."""
    if len(names) < 2:
        return []
    return [f"scores were made with several kinds of processor kernels, so last digits may differ: {'; '.join(names)}"]
