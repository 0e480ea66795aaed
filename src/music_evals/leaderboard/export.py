"""Tables of a leaderboard as text, CSV, LaTeX and HTML, with the digits that the intervals bear out.

A score is printed to two significant digits of half the width of its interval (`leaderboard_tables.decimals_of`), and
the ends of the interval to the same digits; without an interval to three decimals. In CSV and JSON the full number
stands beside it. Names are those of strangers: whatever they hold stays text in every format.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping
from html import escape
from typing import Any, Final

from music_evals.benchmark.cells import ARROWS, align
from music_evals.benchmark.page import facts_table, page, plain_table

__all__ = ["LEGEND", "csv_rows", "csv_table", "html_page", "latex_name", "latex_table", "rank_text", "text_tables"]

Table = Mapping[str, Any]

LEGEND: Final = (
    "[1-3]: ranks that the data leave open, by paired tests on shared items, swapped within whole groups, with Holm's "
    "correction over all metrics and pairs of the table. Digits: two of half the width of the interval. In brackets: "
    "outside the ranking."
)

FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")
"""What makes a spreadsheet compute a cell."""

_NUMBER = r"[-+]?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?"
_PLAIN_NUMBERS = re.compile(rf"{_NUMBER}(\.\.{_NUMBER})?")
"""A number or an interval, which a spreadsheet takes as it is."""

CSV_COLUMNS: Final = (
    *("system", "kind", "why", "role", "content", "submitter", "date", "source", "metric", "column", "direction"),
    *("value", "low", "high", "n", "n_defined", "n_failed", "rank_first", "rank_last", "shown", "interval", "record"),
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
_LATEX_ARROWS: Final = {"higher": r"$\uparrow$", "lower": r"$\downarrow$", "zero": r"$\rightarrow 0$"}


def rank_text(cell: Mapping[str, Any] | None) -> str:
    """Return ``2-4``, ``2`` or nothing where the score has no rank."""
    if not cell or not cell["rank"]:
        return ""
    first, last = cell["rank"]
    return str(first) if first == last else f"{first}-{last}"


def text_tables(leaderboard: Mapping[str, Any]) -> str:
    """Return all tables for a terminal."""
    parts = []
    for table in leaderboard["tables"]:
        lines = [["", *(f"{_line(column['title'])} {ARROWS[column['direction']]}" for column in table["columns"])]]
        for row in table["rows"]:
            lines += _text_lines(table, row)
        parts.append(
            "\n".join([_line(_heading(table)), align(lines), *(f"- {_line(text)}" for text in _remarks(table))])
        )
    return "\n\n".join([*parts, LEGEND])


def _text_lines(table: Table, row: Mapping[str, Any]) -> Iterator[list[str]]:
    cells = [row["cells"].get(column["id"]) for column in table["columns"]]
    name = _line(row["label"])
    label = name if row["kind"] == "ranked" else f"({name})"
    yield [label, *map(_shown, cells)]
    if any(cell and cell["interval"] for cell in cells):
        yield ["", *(_line(cell["interval"]) if cell else "" for cell in cells)]


def _shown(cell: Mapping[str, Any] | None) -> str:
    if cell is None:
        return ""
    rank = rank_text(cell)
    return _line(f"{cell['shown']} [{rank}]" if rank else str(cell["shown"]))


def _line(text: str) -> str:
    """Return text as one line without control characters: a name must not move the cursor."""
    return " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())


def _heading(table: Table) -> str:
    return f"{table['preset']} ({table['title']})" if table["preset"] else str(table["title"])


def _remarks(table: Table) -> Iterator[str]:
    """Yield what a reader of a table should know, a line each."""
    yield from table["notes"]
    for other in table["apart"]:
        yield f"not ranked together with {other['table']}: {'; '.join(other['reasons'])}"
    for column in table["columns"]:
        if column["differs"]:
            yield f"{column['title']} ({column['id']}) is a column of its own: {column['differs']}"
    outside: dict[str, list[str]] = {}
    for row in table["rows"]:
        if row["kind"] != "ranked":
            outside.setdefault(row["why"], []).append(row["label"])
    for why, labels in outside.items():
        yield f"not ranked: {', '.join(labels)}: {why}"
    if table["published"]:
        yield f"published rows: {table['published']['source']}"


def csv_rows(table: Table) -> list[dict[str, Any]]:
    """Return a table as rows, one a score, with `CSV_COLUMNS`."""
    rows = []
    for row in table["rows"]:
        for column in table["columns"]:
            cell = row["cells"].get(column["id"])
            if cell is not None:
                first, last = cell["rank"] or (None, None)
                about = {**row, **cell, "why": cell["why"] or row["why"], "system": row["label"]}
                about |= {"metric": column["metric"], "column": column["id"], "direction": column["direction"]}
                about |= {"rank_first": first, "rank_last": last}
                rows.append({name: about.get(name) for name in CSV_COLUMNS})
    return rows


def csv_table(table: Table) -> str:
    """Return a table as CSV, one line a score; a text that a spreadsheet would compute begins with an apostrophe.

    Numbers and intervals such as ``-0.2..-0.1`` stay as they are.
    """
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(CSV_COLUMNS)
    writer.writerows([_csv_cell(row[name]) for name in CSV_COLUMNS] for row in csv_rows(table))
    return text.getvalue()


def _csv_cell(value: object) -> object:
    if value is None:
        return ""
    is_formula = isinstance(value, str) and value.startswith(FORMULA_STARTS) and not _PLAIN_NUMBERS.fullmatch(value)
    return f"'{value}" if is_formula else value


def latex_name(text: str) -> str:
    r"""Return text as LaTeX that shows it, and does nothing else.

    Examples
    --------
    >>> print(latex_name(r"50%_\input{x}"))
    50\%\_\textbackslash{}input\{x\}

    """
    return "".join(_LATEX.get(letter, letter) for letter in _line(text))


def latex_table(table: Table) -> str:
    r"""Return a table as LaTeX that needs the package ``booktabs``; ranks stand below the scores as ``\scriptsize``."""
    columns = table["columns"]
    heads = [f"{latex_name(column['title'])} {_LATEX_ARROWS[column['direction']]}" for column in columns]
    lines = [
        f"% {latex_name(_heading(table))}",
        f"\\begin{{tabular}}{{l{'r' * len(columns)}}}",
        "\\toprule",
        " & ".join(["system", *heads]) + r" \\",
        "\\midrule",
    ]
    before = "ranked"
    for row in table["rows"]:
        if row["kind"] != before:
            before = row["kind"]
            lines.append("\\midrule")
        cells = [_latex_cell(row["cells"].get(column["id"])) for column in columns]
        mark = {"ranked": "", "unranked": r" (not ranked)", "published": r" (published, not re-run)"}[row["kind"]]
        lines.append(" & ".join([latex_name(row["label"]) + mark, *cells]) + r" \\")
    return "\n".join([*lines, "\\bottomrule", "\\end{tabular}", ""])


def _latex_cell(cell: Mapping[str, Any] | None) -> str:
    if cell is None:
        return ""
    told = latex_name(rank_text(cell)).replace("-", "--")
    rank = f" {{\\scriptsize {{[}}{told}{{]}}}}" if told else ""
    text = latex_name(str(cell["shown"]))
    return (f"$-${text[1:]}" if text.startswith("-") else text) + rank


def html_page(leaderboard: Mapping[str, Any]) -> str:
    """Return all tables as one page without any outside reference."""
    sections = ["<h1>Leaderboard</h1>", f'<p class="muted">{escape(LEGEND)}</p>']
    for table in leaderboard["tables"]:
        anchor = re.sub(r"[^\w-]", "_", table["id"])
        sections.append(f'<h2 id="{anchor}">{escape(_heading(table))}</h2>')
        sections.append(_html_table(table))
        told = "".join(f"<li>{escape(text)}</li>" for text in _remarks(table))
        sections.append(f"<ul>{told}</ul>" if told else "")
        about = facts_table({key: value for key, value in table["settings"].items() if value is not None})
        sections.append(f"<details><summary>What all these results have in common</summary>{about}</details>")
    return page("Leaderboard", sections)


def _html_table(table: Table) -> str:
    if not table["columns"]:
        return plain_table((), [])
    head = "".join(
        f'<th scope="col">{escape(column["title"])} {ARROWS[column["direction"]]}</th>' for column in table["columns"]
    )
    body = "".join(_html_row(table, row) for row in table["rows"])
    top = f'<thead><tr><th scope="col">system</th>{head}</tr></thead>'
    return f'<div class="scroll"><table>{top}<tbody>{body}</tbody></table></div>'


def _html_row(table: Table, row: Mapping[str, Any]) -> str:
    kind, why = ("", "") if row["kind"] == "ranked" else ("outside", f" <small>{escape(row['why'])}</small>")
    cells = "".join(_html_cell(row["cells"].get(column["id"])) for column in table["columns"])
    return f'<tr class="{kind}"><th scope="row">{escape(row["label"])}{why}</th>{cells}</tr>'


def _html_cell(cell: Mapping[str, Any] | None) -> str:
    if cell is None:
        return "<td></td>"
    rank = f"ranks {rank_text(cell)}" if "-" in rank_text(cell) else f"rank {rank_text(cell)}" if cell["rank"] else ""
    small = "".join(f"<small>{escape(line)}</small>" for line in (cell["interval"], rank) if line)
    return f"<td>{escape(cell['shown'])}{small}</td>"
