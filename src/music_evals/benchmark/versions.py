"""Which packages made the numbers: part of every receipt."""

from __future__ import annotations

import platform
from collections.abc import Iterable
from importlib import metadata

from music_evals import __version__

__all__ = ["PACKAGES", "package_versions"]

PACKAGES = ("music_evals", "numpy", "scipy", "datasets", "torch", "symusic", "music21")


def package_versions(packages: Iterable[str] = PACKAGES) -> dict[str, str]:
    """Return the versions that decide the numbers; packages that are not installed are left out."""
    versions = {"python": platform.python_version()}
    for name in packages:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return versions | {"music_evals": __version__}
