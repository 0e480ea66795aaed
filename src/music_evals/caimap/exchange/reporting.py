"""Reports as files: agreement as a page and a table a question as CSV, and what an export holds as pictures."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from music_evals.annotations import DIMENSIONS
from music_evals.caimap.domain.consistency import Coefficient, Drift, PersonWeek
from music_evals.caimap.services.oversight import StudyAgreement
from music_evals.caimap.web.rendering import STATIC, render
from music_evals.caimap.web.words import dimension_names, translator
from music_evals.csv_files import csv_text
from music_evals.datasets.caimd.schema import SECTION_TYPES, load_rows
from music_evals.files import write_atomically

__all__ = ["MOST_TAGS", "agreement_values", "write_pictures", "write_report"]

MOST_TAGS: Final = 12
"""Of a dimension that are drawn."""

_COLUMNS: Final[Mapping[str, type[NamedTuple]]] = {
    "structure": Coefficient,
    "tags": Coefficient,
    "inspectors": Coefficient,
    "weeks": PersonWeek,
    "drift": Drift,
}


def agreement_values(agreement: StudyAgreement, language: str) -> dict[str, Any]:
    """Return what the template of the tables shows: they, and names of rows in a language."""
    return {"agreement": agreement, "names": {**dimension_names(language), "": translator(language)("whole")}}


def write_report(agreement: StudyAgreement, out: Path, *, language: str = "zh") -> list[Path]:
    """Write ``agreement.html`` and a CSV a table into a folder, in ``"zh"`` or ``"en"``; return what was written.

    The agreement is of `services.oversight.study_agreement`, the columns are those of `caimap.domain.consistency`.
    Raises `UnknownNameError` for another language, and `OutputError` where the folder cannot be written to.
    """
    tables = agreement_values(agreement, language)
    contents = {"agreement.html": _page("agreement", "agreement_tables.html", language, **tables)}
    for name, rows in agreement._asdict().items():
        contents[f"{name}.csv"] = csv_text(_COLUMNS[name]._fields, rows)
    return [write_atomically(out / name, content.encode(), parents=True) for name, content in contents.items()]


def write_pictures(export: str | os.PathLike[str], out: Path, *, language: str = "zh") -> Path:
    """Draw what an export holds into ``pictures.html``: sections, lines, and the most frequent tags of each dimension.

    Raises `UnknownNameError` where nothing was exported to that folder, or for another language, and `OutputError`
    where `out` cannot be written to.
    """
    rows, text = load_rows("songs", "test", dataset=export), translator(language)
    parts = [part for row in rows for part in row["structure"]]
    fives = Counter(sum(len(part["lines"]) for part in row["structure"]) // 5 * 5 for row in rows)
    kinds = Counter(part["type"] for part in parts)
    lengths = Counter(len(line.replace(" ", "")) for part in parts for line in part["lines"])
    pictures: list[tuple[str, list[tuple[Any, int]]]] = [
        (text("sections_a_song"), sorted(Counter(len(row["structure"]) for row in rows).items())),
        (text("section_kinds"), [(kind, kinds[kind]) for kind in SECTION_TYPES if kinds[kind]]),
        (text("lines_a_song"), [(f"{least} … {least + 4}", count) for least, count in sorted(fives.items())]),
        (text("characters_a_line"), sorted(lengths.items())),
    ]
    for group, dimensions in DIMENSIONS.items():
        for name, row in dimensions.items():
            tags = Counter(tag for song in rows for tag in song[group]["dimensions"][name]["tags"])
            title = f"{text(group)}: {row.chinese if language == 'zh' else row.english}"
            pictures.append((title, tags.most_common(MOST_TAGS)))
    page = _page("distributions", "pictures.html", language, pictures=pictures)
    return write_atomically(out / "pictures.html", page.encode(), parents=True)


def _page(title: str, part: str, language: str, **values: Any) -> str:
    """Return a template as a page of its own, with its style."""
    style = (STATIC / "caimap.css").read_text(encoding="utf-8")
    return render("report.html", language, title=title, part=part, style=style, **values)
