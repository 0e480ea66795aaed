"""What every benchmark asks of its options, and the files that it leaves in its folder."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from music_evals.errors import InvalidInputError
from music_evals.files import write_atomically

__all__ = ["NUMBERS", "RECORDS", "REPORT", "RESULTS", "TABLE", "VALIDATION", "check_options", "write_files"]

RECORDS, RESULTS, TABLE, REPORT = "records.jsonl", "results.json", "table.md", "report.html"
VALIDATION = "validation_records.jsonl"
"""Records of the baselines on what the best of them are chosen on."""


NUMBERS: Mapping[str, tuple[str, int]] = {
    "limit": ("--limit", sys.maxsize),
    "n_resamples": ("--resamples", 1_000_000),
    "workers": ("--workers", 1000),
}
"""Setting -> its option, and the most that it may be: beyond lie typing errors that would fill the memory."""


def check_options(settings: Any, numbers: Mapping[str, tuple[str, int]] = NUMBERS) -> None:
    """Check what the settings of all benchmarks have in common.

    Parameters
    ----------
    settings
        With `out`, `confidence` and the names in `numbers`, where None is the default.
    numbers
        As `NUMBERS`.

    Raises
    ------
    InvalidInputError
        An empty folder name, a confidence that is none, or a number below 1 or above its bound.

    """
    if not os.fspath(settings.out):
        raise InvalidInputError("--out is empty; name a folder for records and results, . for the current one")
    for name, (option, most) in numbers.items():
        value = getattr(settings, name)
        if value is not None and not 1 <= value <= most:
            bound = "least 1" if value < 1 else f"most {most}"
            msg = f"{option} must be at {bound}, got {value}"
            raise InvalidInputError(msg)
    if not 0 < settings.confidence < 1:
        msg = f"--confidence must lie above 0 and below 1, got {settings.confidence}; 95 % is 0.95"
        raise InvalidInputError(msg)


def write_files(out: Path, contents: Mapping[str, tuple[str, str]]) -> dict[str, Path]:
    """Write texts, kind -> (file name, text), whole or not at all; return all files of the run by kind."""
    for name, content in contents.values():
        write_atomically(out / name, content.encode())
    return {"records": out / RECORDS, **{kind: out / name for kind, (name, _) in contents.items()}}
