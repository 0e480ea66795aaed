"""Headers of runs: whether two are of one run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from music_evals.errors import OtherRunError

__all__ = ["check_same_run"]


def check_same_run(found: dict[str, Any], wanted: dict[str, Any], path: Path) -> None:
    """Raise where the headers of two runs differ: with the settings and data that do, else with the rest."""
    old, new = _flatten(found), _flatten(wanted)
    differences = [
        f"{key} was {old.get(key, 'absent')!r} and is now {new.get(key, 'absent')!r}"
        for key in sorted(old | new, key=lambda key: ("." in key, key))
        if old.get(key) != new.get(key) or (key in old) != (key in new)
    ]
    # what was chosen: settings and data; most of the rest follows from it
    chosen = [line for line in differences if "." not in line.partition(" ")[0] or line.startswith("dataset.")]
    if differences := chosen or differences:
        shown = "; ".join(differences[:5]) + (f"; and {len(differences) - 5} more" if len(differences) > 5 else "")
        raise OtherRunError(
            f"{path} belongs to another run: {shown}. Choose another folder (`out`), or start afresh (`overwrite=True`)"
        )


def _flatten(value: Any, prefix: str = "") -> dict[str, Any]:
    """Return nested dictionaries as one, with dotted keys, so that a difference can be named."""
    if not isinstance(value, dict):
        return {prefix: value}
    flat: dict[str, Any] = {}
    for key, inner in value.items():
        flat.update(_flatten(inner, f"{prefix}.{key}" if prefix else key))
    return flat
