"""How the folder of a study of editing systems is laid out, for who writes it and who finds it."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["JUDGED", "RESULTS", "TABLE", "judged_in"]

RESULTS, TABLE, JUDGED = "musecpbench.json", "musecpbench.md", "preserved"
"""Results of a study, the same as tables, and the folder of what preservation found."""


def judged_in(place: str | os.PathLike[str]) -> Path | None:
    """Return the folder of what preservation found, given that of a study, this one, or a file of either.

    None for what belongs to no study.
    """
    path = Path(place)
    folder = path.parent if path.suffix == ".json" else path
    for study in (folder, folder.resolve().parent):
        if (study / RESULTS).is_file() and (study == folder or folder.resolve().name == JUDGED):
            return study / JUDGED
    return None
