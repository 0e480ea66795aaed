"""MuseCPBench whole: systems edit the same sources, preservation is scored, and the tables of the study."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["PRESERVED", "RESULTS", "TABLE", "TASKS", "scores_folder"]

TASKS = {"musecpbench": "task:MUSECPBENCH"}

RESULTS, TABLE, PRESERVED = "musecpbench.json", "musecpbench.md", "preserved"
"""Results of a study, the same as tables, and the folder with the results of preservation."""


def scores_folder(place: str | os.PathLike[str]) -> Path | None:
    """Return the folder with the results of preservation, given that of a study, this one, or a file of either.

    None for a folder outside of a study.
    """
    path = Path(place)
    folder = path.parent if path.suffix == ".json" else path
    for study in (folder, folder.resolve().parent):
        if (study / RESULTS).is_file() and (study == folder or folder.resolve().name == PRESERVED):
            return study / PRESERVED
    return None
