"""The one writer and the one reader of CSV."""

from __future__ import annotations

import csv
import io
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from music_evals.csv_files import csv_rows, csv_text
from music_evals.errors import UnreadableFileError

STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")  # noqa: RUF001


@pytest.mark.parametrize("start", STARTS)
def test_no_spreadsheet_computes_a_cell(start: str) -> None:
    text = csv_text([f"{start}name", "b"], [{f"{start}name": f"{start}1+cmd|' /C calc'!A0", "b": 1}, (f"{start}x", 2)])
    cells = [cell for row in csv.reader(io.StringIO(text, newline="")) for cell in row]
    assert [cell[:2] for cell in cells[::2]] == [f"'{start}"] * 3
    assert cells[1::2] == ["b", "1", "2"]


@pytest.mark.parametrize(
    ("value", "cell"),
    [
        (-1.5, "-1.5"), (np.float64(-0.1), "-0.1"), (np.int64(-3), "-3"), (-math.inf, "-inf"), (True, "True"),
        ("-1.5", "-1.5"), ("+3", "+3"), ("-0.2..-0.1", "-0.2..-0.1"), ("-0.2..0.1 *", "-0.2..0.1 *"), ("1e-9", "1e-9"),
        (None, ""), (math.nan, ""), (np.nan, ""), ("'a", "'a"), ("a=b", "a=b"), ("", ""),
    ],
)  # fmt: skip
def test_numbers_stay_numbers_and_nothing_is_empty(value: object, cell: str) -> None:
    assert csv_text(["a", "b"], [[value, 0]]) == f"a,b\n{cell},0\n"


@given(st.lists(st.tuples(st.text(), st.text()), max_size=5))
def test_texts_come_back(rows: list[tuple[str, str]]) -> None:
    rows = [tuple(cell.encode("utf-8", "replace").decode() for cell in row) for row in rows]  # type: ignore[misc]
    found = csv_rows(csv_text(["'=a", "b"], rows), "here")
    assert [tuple(row.values()) for row in found] == rows
    assert all(list(row) == ["'=a", "b"] for row in found)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (f"a,b\n1,2\n3,{'x' * 131_073}\n5,6\n", 3),
        (f"{'x' * 140_000},b\n1,2\n", 1),
        ('a,b\n1,2\n3,"4\n5,6\n', 4),  # the quote is missed where the table ends
        ('a,b\n1,"2"3\n', 2),
    ],
)
def test_what_is_no_table_names_place_and_line(text: str, line: int) -> None:
    with pytest.raises(UnreadableFileError, match=rf"list\.csv, line {line}\b"):
        csv_rows(text, "list.csv")


def test_cells_that_are_missing_or_too_many_are_told_apart() -> None:
    assert csv_rows("a,b\n1\n1,2,3\n\n4,\0\n", "x") == [
        {"a": "1", "b": None},
        {"a": "1", "b": "2", None: ["3"]},
        {"a": "4", "b": "\0"},
    ]
