"""Tables as text, CSV, LaTeX and HTML, and the tests that are kept beside a board."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import math
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from tests.leaderboard.toy_records import NASTY, SETTINGS, A, B, C, cell_of, record, tables_of

from music_evals.leaderboard import (
    build_leaderboard,
    export,
    keep_tables,
    load_leaderboard,
    read_board,
    write_leaderboard,
)
from music_evals.leaderboard.board import add_part
from music_evals.leaderboard.export import csv_table, html_page, latex_name, latex_table, text_tables
from music_evals.leaderboard.tables import make_leaderboard, records_digest


def test_latex_shows_what_it_is_given() -> None:
    told = latex_name('a_b & 50% #1 $x$ {y} ~^\\ <z>|"`[0]')
    assert told == (
        r"a\_b \& 50\% \#1 \$x\$ \{y\} \textasciitilde{}\textasciicircum{}\textbackslash{} "
        r"\textless{}z\textgreater{}\textbar{}\textquotedbl{}\textasciigrave{}{[}0{]}"
    )
    assert latex_name("two\nlines\t\x07") == "two lines"


def test_latex_tables_hold_rank_ranges() -> None:
    (table,) = tables_of(A, B, C, record("ceiling", [2.0] * 10, unranked="it has seen the reference", role="leaking"))
    text = latex_table(table)
    assert r"A & 1.000 {\scriptsize {[}1--2{]}} \\" in text
    assert "ceiling (not ranked) & 2.000 \\\\" in text
    assert text.count("\\midrule") == 2
    assert text.startswith("% ")


class Tags(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}


def test_hostile_names_stay_text(tmp_path: Path) -> None:
    rows = [
        record(NASTY, [1.0] * 10, submitter="=cmd()", title=NASTY),
        record("=HYPERLINK(1)", [0.5] * 10, title=NASTY),
    ]
    settings = SETTINGS | {"dataset": "../../" + NASTY}
    leaderboard = make_leaderboard([dataclasses.replace(row, settings=settings, date="2026-11-20") for row in rows])
    files = write_leaderboard(leaderboard, tmp_path)
    assert all(tmp_path in path.parents for path in files.values())
    parsed = Tags(html_page(leaderboard))
    assert "img" not in parsed.tags
    assert not any(name.startswith("on") for name in parsed.attributes)
    table = next(table for table in leaderboard["tables"] if table["tests"])
    cells = list(csv.reader(io.StringIO(csv_table(table))))
    assert not any(cell.startswith(("=", "+", "@", "-")) for row in cells for cell in row)
    assert {row[0] for row in cells[1:]} == {NASTY, "'=HYPERLINK(1)"}
    latex = latex_table(table)
    assert "\\input" not in latex.replace("\\textbackslash{}input", "")
    assert all("\n" not in line and "\u202e" not in line for line in latex.splitlines())
    text = text_tables(leaderboard)
    assert "\u202e" not in text
    assert len(text.splitlines()) == len(text.split("\n"))


def p_value_of(leaderboard: dict[str, Any]) -> float:
    """Of the only test of a board with A and B."""
    (value,) = (test["p_value"] for table in leaderboard["tables"] for test in table["tests"])
    return value


def keep_marked(board: Path) -> None:
    """Keep tables whose only test has a p-value that is not its own, so that a reader of it is found out."""
    leaderboard = json.loads(json.dumps(build_leaderboard(board)))
    for table in leaderboard["tables"]:
        for test in table["tests"]:
            test["p_value"] = 0.5
    keep_tables(leaderboard, board)


def test_tests_beside_the_data_are_used_while_they_are_of_it(tmp_path: Path) -> None:
    add_part(tmp_path, [A, B])
    keep_marked(tmp_path)
    kept = load_leaderboard(tmp_path, read_board(tmp_path))
    assert p_value_of(kept) == 0.5
    assert all(cell_of(table, "A")["rank"] == [1, 2] for table in kept["tables"] if table["tests"])
    add_part(tmp_path, [C])
    records = read_board(tmp_path)
    made = load_leaderboard(tmp_path, records)
    assert made == make_leaderboard(records)
    assert made["records"] == records_digest(records)
    (tmp_path / "leaderboard.json").write_text("[" * 100_000)
    assert load_leaderboard(tmp_path, records) == made


def test_tables_kept_by_an_earlier_version_still_give_their_tests(tmp_path: Path) -> None:
    add_part(tmp_path, [A, B])
    keep_marked(tmp_path)
    wanted = load_leaderboard(tmp_path, read_board(tmp_path))
    content = json.loads((tmp_path / "leaderboard.json").read_text())
    for table in content["tables"]:
        table["rows"].reverse()
        for row in table["rows"]:
            del row["remark"]
    (tmp_path / "leaderboard.json").write_text(json.dumps(content))
    assert load_leaderboard(tmp_path, read_board(tmp_path)) == wanted


FORGED: list[tuple[tuple[Any, ...], Any]] = [
    (("format",), 1),
    (("records",), "0" * 32),
    (("tables",), {}),
    (("tables", 0, "tests"), 7),
    (("tables", 0, "rows", 0), "row"),
    (("tables", 0, "rows", 0, "cells", "lyric_structure"), None),
    *(
        (("tables", 0, "tests", 0, key), value)
        for key, value in [
            ("n", "<b>"), ("low", math.inf), ("high", "1"),
            ("difference", None), ("difference", math.inf), ("difference", "1"), ("difference", True),
            ("p_value", -0.1), ("p_value", 2.0), ("p_value", math.nan), ("a", "none"), ("column", ["x"]),
        ]
    ),
]  # fmt: skip


@pytest.mark.parametrize(("place", "value"), FORGED)
def test_what_is_no_test_is_made_again(place: tuple[Any, ...], value: Any, tmp_path: Path) -> None:
    add_part(tmp_path, [A, B])
    keep_marked(tmp_path)
    content = at = json.loads((tmp_path / "leaderboard.json").read_text())
    content["tables"].sort(key=lambda table: not table["tests"])
    for key in place[:-1]:
        at = at[key]
    at[place[-1]] = value
    (tmp_path / "leaderboard.json").write_text(json.dumps(content))  # Infinity among it
    records = read_board(tmp_path)
    assert load_leaderboard(tmp_path, records) == make_leaderboard(records)


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("id",), "../../outside"), (("notes",), [NASTY]), (("rows", 0, "kind"), "published"), (("headline",), "none"),
        (("rows", 0, "cells", "lyric_structure", "value"), 99.0),
        (("rows", 0, "cells", "lyric_structure", "rank"), [1, 1]),
        (("tests", 0, "p_holm"), 0.001), (("tests", 0, "is_significant"), True), (("columns", 0, "direction"), "lower"),
    ],
)  # fmt: skip
def test_all_but_the_tests_is_made_from_records(place: tuple[Any, ...], value: Any, tmp_path: Path) -> None:
    add_part(tmp_path, [A, B])
    keep_marked(tmp_path)
    wanted = load_leaderboard(tmp_path, read_board(tmp_path))
    content = json.loads((tmp_path / "leaderboard.json").read_text())
    at = next(table for table in content["tables"] if table["tests"])
    for key in place[:-1]:
        at = at[key]
    at[place[-1]] = value
    (tmp_path / "leaderboard.json").write_text(json.dumps(content))
    assert load_leaderboard(tmp_path, read_board(tmp_path)) == wanted


def test_a_file_of_tables_that_is_too_large_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add_part(tmp_path, [A, B])
    keep_marked(tmp_path)
    monkeypatch.setattr(export, "MAX_TABLES_BYTES", 10)
    assert p_value_of(load_leaderboard(tmp_path, read_board(tmp_path))) != 0.5


def test_cells_are_escaped_whatever_they_hold() -> None:
    (table,) = tables_of(A, B)
    cell_of(table, "A").update(shown="-1\\input{x}", rank=["1}\\input{y", 2])
    latex = latex_table(table)
    assert "$-$1\\textbackslash{}input\\{x\\}" in latex
    assert "\\input" not in latex
    cell_of(table, "A").update(shown="\x1b[2J", interval="\x1b[2J", rank=None)
    assert "\x1b" not in text_tables({"tables": [table]})


def test_numbers_and_intervals_get_no_apostrophe() -> None:
    low = record("low", [-0.2, -0.1] * 5, value=-0.15, low=-0.2, high=-0.1)
    (table,) = tables_of(low, record("-1+cmd()", [1.0] * 10), record("-2..=x", [1.0] * 10))
    rows = list(csv.DictReader(io.StringIO(csv_table(table))))
    found = {row["system"]: row for row in rows}
    assert found.keys() == {"low", "'-1+cmd()", "'-2..=x"}
    assert (found["low"]["value"], found["low"]["shown"]) == ("-0.15", "-0.150")
    assert found["low"]["interval"] == "-0.200..-0.100"
    assert (found["low"]["rank_first"], found["low"]["n"]) == ("3", "10")  # whole numbers stay whole


@pytest.mark.slow
def test_the_tables_that_ship_are_what_this_version_makes(root: Path) -> None:
    board = root / "spaces" / "leaderboard" / "board"
    assert json.loads((board / "leaderboard.json").read_text()) == json.loads(json.dumps(build_leaderboard(board)))
