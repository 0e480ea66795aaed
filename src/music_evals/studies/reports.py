"""What the reports of all studies share: sections with a table in Markdown, and the files that a report consists of."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from music_evals.benchmark.formats import markdown_rows, plain
from music_evals.files import write_atomically
from music_evals.pipelines.study_tables import table_text


def section(title: str, note: str, head: Sequence[str], rows: Sequence[Sequence[Any]], *, level: int = 2) -> list[str]:
    """Return the lines of a heading, of what is to be known, and of a table; no cell ends its cell or line."""
    cells = [[re.sub(r"(?<!\\)\|", r"\\|", str(cell).replace("\n", " ")) for cell in row] for row in (head, *rows)]
    table = markdown_rows([cells[0], ["---"] * len(head), *cells[1:]])
    return [f"{'#' * level} {title}", *([note] if note else []), "", table, ""]


def write_report_files(
    folder: str | os.PathLike[str],
    text: str,
    content: Mapping[str, Any],
    tables: Mapping[str, Sequence[Mapping[str, Any]]],
    files: Mapping[str, bytes],
) -> dict[str, Path]:
    """Write ``report.md``, ``tables.json`` and one CSV a table that has rows, each whole or not at all."""
    texts = {"report.md": text, "tables.json": json.dumps(plain(content), indent=1, allow_nan=False) + "\n"}
    texts |= {f"{name}.csv": table_text(plain(rows)) for name, rows in tables.items() if rows}
    contents = {name: own.encode() for name, own in texts.items()} | dict(files)
    return {name: write_atomically(Path(folder) / name, own, parents=True) for name, own in contents.items()}
