"""Tables of a leaderboard as text, CSV, LaTeX, JSON and HTML, and the file of tables that is kept beside a board.

A score is printed to two significant digits of half the width of its interval (`tables.decimals_of`), and the ends of
the interval to the same digits; without an interval to three decimals. In CSV and JSON the full number stands beside
it. Names are those of strangers: whatever they hold stays text in every format.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from music_evals.benchmark.columns import dump_json
from music_evals.benchmark.contents import front_first
from music_evals.benchmark.formats import ARROWS, align, render, static
from music_evals.benchmark.tasks.preservation.plots import plane_figure
from music_evals.csv_files import csv_text
from music_evals.files import UNSENT, write_atomically
from music_evals.leaderboard.ranks import Progress
from music_evals.leaderboard.records import ResultRecord
from music_evals.leaderboard.tables import FORMAT, Tests, make_leaderboard, records_digest
from music_evals.stats import PairedTest
from music_evals.stats.paired import NOT_COMPARED

Table = Mapping[str, Any]
Cell = Mapping[str, Any]

TABLES = "leaderboard.json"  # all tables, beside the data of a board and among what is exported

MAX_TABLES_BYTES = 64 * 2**20  # of a file of tables that is read: those of 16 systems and 141 records take 130 kB

LEGEND: Final = (
    "[1-3]: ranks that the data leave open, by paired tests on shared items, swapped within whole groups, with Holm's "
    "correction over all metrics and pairs of the table. Controls and baselines take places too; ~: not told from one "
    "of them, and so placed below it. Rows are in the order of their mean rank, or as a note says. Digits: two of half "
    "the width of the interval. In brackets: controls, and what is outside the ranking."
)

CSV_COLUMNS: Final = (
    *("system", "kind", "why", "role", "content", "submitter", "date", "source", "metric", "column", "direction"),
    *("value", "low", "high", "n", "n_defined", "n_failed", "rank_first", "rank_last", "place", "mean_rank", "mark"),
    *("shown", "interval", "record"),
)

_LATEX: Final = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "[": "{[}",  # after a line break it would open an argument
    "]": "{]}",
    '"': r"\textquotedbl{}",
    "`": r"\textasciigrave{}",
    **{letter: f"\\{letter}" for letter in "&%$#_{}"},
}
"""More than pandas escapes."""
_LATEX_ARROWS: Final = {
    "higher": r"$\uparrow$",
    "lower": r"$\downarrow$",
    "zero": r"$\rightarrow 0$",
    "none": r"$\approx$",
}
_LATEX_MARKS: Final = {
    "ranked": "",
    "control": " (control)",
    "unranked": " (not ranked)",
    "published": " (published, not re-run)",
}


def load_leaderboard(
    board: str | os.PathLike[str], records: Sequence[ResultRecord], *, progress: Progress | None = None
) -> dict[str, Any]:
    """Return all tables of a board, with the tests that lie beside its data, which take the longest."""
    # The tests are used where their file says that it is of these records, in this order. Their differences and
    # p-values are taken as they are: for a folder of somebody else, use `build_leaderboard`, which reads records alone.
    return make_leaderboard(records, known=_stored_tests(Path(board) / TABLES, records), progress=progress)


def _stored_tests(path: Path, records: Sequence[ResultRecord]) -> Tests:
    """Return the tests in a file of tables; none if it is of other records or invalid."""
    try:
        content = json.loads(path.read_bytes()) if path.stat().st_size <= MAX_TABLES_BYTES else {}
        if (content["format"], content["records"]) != (FORMAT, records_digest(records)):
            return {}
        tests: dict[tuple[str, str], PairedTest] = {}
        for table in content["tables"]:
            ids = {(row["label"], at): cell["record"] for row in table["rows"] for at, cell in row["cells"].items()}
            for row in table["tests"]:
                tests[ids[row["a"], row["column"]], ids[row["b"], row["column"]]] = _stored_test(row)
    except (OSError, ValueError, RecursionError, LookupError, TypeError, AttributeError):
        return {}
    return tests


def _stored_test(row: Mapping[str, Any]) -> PairedTest:
    difference, p_value, n = row["difference"], row["p_value"], row["n"]
    if difference is None and p_value is None and n == 0:
        return NOT_COMPARED
    low, high = (math.nan if row[key] is None else row[key] for key in ("low", "high"))
    are_numbers = all(type(number) is float and not math.isinf(number) for number in (difference, low, high, p_value))
    if are_numbers and not math.isnan(difference) and 0 <= p_value <= 1:
        return PairedTest(difference, low, high, p_value, int(n))
    raise ValueError(row)


def keep_tables(leaderboard: Mapping[str, Any], board: str | os.PathLike[str]) -> Path:
    """Write all tables beside the data of a board, where `load_leaderboard` finds their tests."""
    content = f"{dump_json(leaderboard)}\n".encode("utf-8", "replace")
    return write_atomically(Path(board) / TABLES, content, parts=UNSENT)


def write_leaderboard(leaderboard: Mapping[str, Any], out: str | os.PathLike[str]) -> dict[str, Path]:
    """Write leaderboard.json, index.html and each table as CSV and LaTeX."""
    folder = Path(out)
    contents = {
        "page": ("index.html", html_page(leaderboard)),
        "tables": (TABLES, dump_json(leaderboard, indent=1) + "\n"),
    }
    for table in leaderboard["tables"]:
        contents[f"{table['id']}, CSV"] = (f"tables/{table['id']}.csv", csv_table(table))
        contents[f"{table['id']}, LaTeX"] = (f"tables/{table['id']}.tex", latex_table(table))
    for name, text in contents.values():
        write_atomically(folder / name, text.encode("utf-8", "replace"), parents=True)
    return {kind: folder / name for kind, (name, _) in contents.items()}


def ranks_of(cell: Cell) -> str:
    """Return ``2-4``, ``2`` or nothing where the score has no rank."""
    first, last = cell["rank"] or ("", "")
    return str(first) if first == last else f"{first}-{last}"


def rank_words(cell: Cell) -> str:
    """Return ``ranks 2-4``, ``rank 2`` or nothing where the score has no rank."""
    ranks = ranks_of(cell)
    return f"{'ranks' if '-' in ranks else 'rank'} {ranks}" if ranks else ""


def text_tables(leaderboard: Mapping[str, Any]) -> str:
    """Return all tables of our own for a terminal, and the names of those of papers."""
    parts = []
    for table in leaderboard["tables"]:
        if table["published"]:
            continue
        heads = (f"{_line(column['title'])} {ARROWS[column['direction']]}" for column in table["columns"])
        lines = [["", "mean rank", *heads]]
        for row in table["rows"]:
            cells = _cells(table, row)
            label = _line(row["label"])
            lines.append([label if row["kind"] == "ranked" else f"({label})", mean_rank(row), *map(_with_rank, cells)])
            if any(cell and cell["interval"] for cell in cells):
                lines.append(["", "", *(_line(cell["interval"]) if cell else "" for cell in cells)])
        remarks = (f"- {_line(text)}" for text in remarks_on(table))
        parts.append("\n".join([_line(_heading(table)), align(lines), *remarks]))
    papers = [f"- {_line(table['title'])}" for table in leaderboard["tables"] if table["published"]]
    return "\n\n".join([*parts, LEGEND, "\n".join(["Tables of papers, in the exported files:", *papers])])


def mean_rank(row: Mapping[str, Any]) -> str:
    """Return the mean rank of a row as text; empty if it is unranked."""
    return "" if row["mean_rank"] is None else f"{row['mean_rank']:.1f}"


def _cells(table: Table, row: Mapping[str, Any]) -> list[Cell | None]:
    return [row["cells"].get(column["id"]) for column in table["columns"]]


def _with_rank(cell: Cell | None) -> str:
    if cell is None:
        return ""
    ranks = ranks_of(cell)
    return _line(f"{cell['shown']} [{ranks}]{'~' if cell['mark'] else ''}" if ranks else str(cell["shown"]))


def _line(text: str) -> str:
    """Return text as one line without control characters: a name must not move the cursor."""
    return " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())


def _heading(table: Table) -> str:
    return f"{table['preset']} ({table['title']})" if table["preset"] else str(table["title"])


def remarks_on(table: Table) -> Iterator[str]:
    """Yield what a reader of a table should know, a line each."""
    yield from table["notes"]
    points = table.get("plane", {}).get("systems", {})
    if front := [name for name in front_first(points) if points[name]["front"]]:
        yield f"on the front of success and preservation: {', '.join(front)}"
    for other in table["apart"]:
        yield f"not ranked together with {other['title']}: {'; '.join(other['reasons'])}"
    for column in table["columns"]:
        if column["differs"]:
            yield f"{column['title']} ({column['id']}) is a column of its own: {column['differs']}"
    outside = ((row["why"], row["label"]) for row in table["rows"] if row["kind"] not in {"ranked", "control"})
    for why, labels in _grouped(outside).items():
        yield f"not ranked: {', '.join(labels)}: {why}"
    marked = (
        (row["label"], column["title"])
        for row in table["rows"]
        for column in table["columns"]
        if row["cells"].get(column["id"], {}).get("mark")
    )
    for label, titles in _grouped(marked).items():
        yield f"{label}: not told from controls or baselines, and so placed below them: {', '.join(titles)}"
    if table["published"]:
        yield f"published rows: {table['published']['source']}"


def _grouped(pairs: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    groups: dict[str, list[str]] = {}
    for key, label in pairs:
        groups.setdefault(key, []).append(label)
    return groups


def csv_rows(table: Table) -> list[dict[str, Any]]:
    """Return a table as rows, one a score, with `CSV_COLUMNS`."""
    rows = []
    for row in table["rows"]:
        for column, cell in zip(table["columns"], _cells(table, row), strict=True):
            if cell is not None:
                first, last = cell["rank"] or (None, None)
                about = {**row, **cell, "why": cell["why"] or row["why"], "system": row["label"]}
                about |= {"metric": column["metric"], "column": column["id"], "direction": column["direction"]}
                about |= {"rank_first": first, "rank_last": last}
                rows.append({name: about.get(name) for name in CSV_COLUMNS})
    return rows


def csv_table(table: Table) -> str:
    """Return a table as CSV, one line a score; a text that a spreadsheet would compute begins with an apostrophe."""
    return csv_text(CSV_COLUMNS, csv_rows(table), line_end="\r\n")


def latex_name(text: str) -> str:
    r"""Return text as LaTeX that shows it, and does nothing else."""
    return "".join(_LATEX.get(letter, letter) for letter in _line(text))


def latex_table(table: Table) -> str:
    r"""Return a table as LaTeX that needs ``booktabs``; ranks stand beside the scores as ``\scriptsize``."""
    import pandas as pd

    heads = [f"{latex_name(column['title'])} {_LATEX_ARROWS[column['direction']]}" for column in table["columns"]]
    rows, before = [], "ranked"
    for row in table["rows"]:
        rule = "" if row["kind"] == before else "\\midrule\n"
        before = row["kind"]
        label = rule + latex_name(row["label"]) + _LATEX_MARKS[row["kind"]]
        rows.append([label, *map(_latex_cell, _cells(table, row))])
    frame = pd.DataFrame(rows, columns=["system", *heads], dtype=object)
    text: str = frame.to_latex(index=False, escape=False, column_format="l" + "r" * len(heads))
    return f"% {latex_name(_heading(table))}\n{text}"


def _latex_cell(cell: Cell | None) -> str:
    if cell is None:
        return ""
    ranks = latex_name(ranks_of(cell)).replace("-", "--")
    mark = r"$\sim$" if cell["mark"] else ""
    rank = f" {{\\scriptsize {{[}}{ranks}{{]}}{mark}}}" if ranks else ""
    text = latex_name(str(cell["shown"]))
    return (f"$-${text[1:]}" if text.startswith("-") else text) + rank


def plane_html(table: Table) -> str:
    """Return the plane of a table as HTML, in the order of its rows; empty for a table without one."""
    points = table.get("plane", {}).get("systems", {})
    in_order = {row["label"]: points[row["label"]] for row in table["rows"] if row["label"] in points}
    return plane_figure(in_order) if points else ""


def html_page(leaderboard: Mapping[str, Any]) -> str:
    """Return all tables as one page without any outside reference."""
    tables = [
        {
            "table": table,
            "anchor": re.sub(r"[^\w-]", "_", table["id"]),
            "heading": _heading(table),
            "remarks": list(remarks_on(table)),
            "picture": plane_html(table),
            "rows": [(row, mean_rank(row), _cells(table, row)) for row in table["rows"]],
        }
        for table in leaderboard["tables"]
    ]
    body = render(
        "music_evals.leaderboard", "tables.html", tables=tables, arrows=ARROWS, legend=LEGEND, ranks=rank_words
    )
    values = {"title": "Leaderboard", "sections": [body], "style": static("report.css"), "script": ""}
    return render("music_evals.benchmark", "page.html", **values)
