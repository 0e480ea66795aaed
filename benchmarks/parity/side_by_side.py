"""What each comparison with the authors' code shares: their checkout, the difference of a stage, what tests keep."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from music_evals.files import write_atomically

__all__ = ["GOAL", "GOLDEN", "Authors", "Recorder", "Stage", "compare", "importable", "verify_commit"]

GOLDEN = Path(__file__).parents[2] / "tests" / "golden" / "parity"
GOAL = 1e-4
"""A stage is equal where no value differs by more than this part of the largest value of theirs."""


class Authors(NamedTuple):
    """Whose code it is."""

    repository: str
    """``owner/name`` on GitHub."""
    commit: str
    """At least seven digits."""


class Stage(NamedTuple):
    """One stage of a system, ours beside theirs."""

    name: str
    n: int
    """How many values were compared."""
    largest: float
    """The largest value of theirs, in absolute terms."""
    difference: float
    """The largest difference, as a part of it (where all of theirs are 0, as it is)."""
    note: str = ""
    """What differs on purpose; empty where the stage is to be equal."""

    @property
    def equal(self) -> bool:
        """Whether the difference is within the goal."""
        return self.difference <= GOAL


def compare(name: str, ours: npt.ArrayLike, theirs: npt.ArrayLike, note: str = "") -> Stage:
    """Return the largest difference of two arrays of one shape; raise `ValueError` for other shapes."""
    one, other = (np.asarray(values, dtype=np.float64) for values in (ours, theirs))
    if one.shape != other.shape:
        raise ValueError(f"{name}: ours has the shape {one.shape}, theirs {other.shape}")
    if not one.size:
        raise ValueError(f"{name}: there is nothing to compare")
    largest = float(np.abs(other).max())
    difference = float(np.abs(one - other).max()) / (largest or 1.0)
    return Stage(name, one.size, largest, difference if np.isfinite(difference) else np.inf, note)


def verify_commit(checkout: Path, authors: Authors) -> None:
    """Raise `SystemExit` where a folder is not a checkout at the commit that is meant."""
    head = subprocess.run(["git", "-C", checkout, "rev-parse", "HEAD"], capture_output=True, text=True, check=False)
    if not head.stdout.startswith(authors.commit):
        state = head.stdout.strip()[:7] or head.stderr.strip()
        sys.exit(f"{checkout}: git clone https://github.com/{authors.repository}, checkout {authors.commit} ({state})")


@contextlib.contextmanager
def importable(*folders: Path) -> Iterator[None]:
    """Let the modules of folders be imported, before all others; afterwards they are forgotten again."""
    before = set(sys.modules)
    sys.path[:0] = [str(folder) for folder in folders]
    try:
        yield
    finally:
        del sys.path[: len(folders)]
        for name in set(sys.modules) - before:
            file = getattr(sys.modules[name], "__file__", None) or ""
            if any(Path(file).is_relative_to(folder) for folder in folders):
                del sys.modules[name]


class Recorder:
    """Keeps arrays of a run of the authors' code for the tests, and compares ours with them."""

    def __init__(self) -> None:
        self.stages: list[Stage] = []
        self.arrays: dict[str, npt.NDArray[Any]] = {}

    def keep(self, **arrays: Any) -> None:
        """Keep inputs and weights under their names."""
        self.arrays.update({name: np.ascontiguousarray(values) for name, values in arrays.items()})

    def stage(self, name: str, ours: Any, theirs: Any, *, note: str = "", kept: bool = False) -> None:
        """Compare one stage; `kept` keeps the values of theirs under its name."""
        self.stages.append(compare(name, ours, theirs, note))
        if kept:
            self.keep(**{name: theirs})

    def write(self, system: str, authors: Authors, **about: str) -> None:
        """Write what was kept into the folder of the tests."""
        from safetensors.numpy import save

        metadata: Mapping[str, str] = {"repository": authors.repository, "commit": authors.commit, **about}
        GOLDEN.mkdir(parents=True, exist_ok=True)
        write_atomically(GOLDEN / f"{system}.safetensors", save(self.arrays, dict(metadata)))
