"""The report on agreement as files: one page, and a table a question as CSV."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from music_evals.annotations import DIMENSIONS
from music_evals.caimap.consistency import Coefficient, Drift, PersonWeek
from music_evals.caimap.web.rendering import STATIC, render
from music_evals.caimap.web.words import translator
from music_evals.caimap.work.comparing import StudyAgreement
from music_evals.csv_files import csv_text
from music_evals.files import write_atomically

__all__ = ["agreement_values", "write_report"]

_COLUMNS: Final[Mapping[str, type[NamedTuple]]] = {
    "structure": Coefficient,
    "tags": Coefficient,
    "inspectors": Coefficient,
    "weeks": PersonWeek,
    "drift": Drift,
}


def agreement_values(found: StudyAgreement, language: str) -> dict[str, Any]:
    """Return what the template of the tables shows: they, and names of rows in a language."""
    text = translator(language)
    names = {
        name: row.chinese if language == "zh" else row.english
        for rows in DIMENSIONS.values()
        for name, row in rows.items()
    }
    return {"found": found, "names": {**names, "overall_text": text("overall_text"), "": text("whole")}}


def write_report(found: StudyAgreement, out: Path, *, language: str = "zh") -> list[Path]:
    """Write ``agreement.html`` and a CSV a table, with names of columns as in `caimap.consistency`.

    Parameters
    ----------
    found
        Of `work.comparing.study_agreement`.
    out
        Folder; it is made.
    language
        Of the page, ``"zh"`` or ``"en"``.

    Returns
    -------
    list of Path
        What was written.

    Raises
    ------
    UnknownNameError
        No such language.
    OutputError
        The folder cannot be written to.

    """
    style = (STATIC / "caimap.css").read_text(encoding="utf-8")
    page = render("report.html", language, style=style, **agreement_values(found, language))
    contents = {"agreement.html": page}
    for name, rows in found._asdict().items():
        contents[f"{name}.csv"] = csv_text(_COLUMNS[name]._fields, rows)
    return [write_atomically(out / name, content.encode(), parents=True) for name, content in contents.items()]
