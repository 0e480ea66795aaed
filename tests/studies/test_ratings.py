"""Tables of ratings: their three forms, the key of a blind study, and what is wrong with them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from music_evals.errors import InvalidInputError, NoDataError, PairCountError, UnreadableFileError
from music_evals.studies.pairs import StudyPair
from music_evals.studies.ratings import OVERALL, Rating, read_ratings

ROWS: list[dict[str, Any]] = [
    {"item": "song 1", "system": "zeta", "listener": "p1", "facet": "melody", "rating": 75, "scale": "0-100"},
    {"item": "song 1", "system": "zeta", "listener": 2, "facet": "melody", "rating": 20.5, "scale": "0..100"},
]
EXPECTED = (
    Rating(item="song 1", system="zeta", listener="p1", facet="melody", rating=0.75, scaled=True),
    Rating(item="song 1", system="zeta", listener="2", facet="melody", rating=0.205, scaled=True),
)


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    if path.suffix == ".csv":
        path.write_text("\n".join([",".join(rows[0]), *(",".join(map(str, row.values())) for row in rows)]) + "\n")
    elif path.suffix == ".jsonl":
        path.write_text("\n".join(map(json.dumps, rows)) + "\n\n")
    else:
        parquet.write_table(pa.Table.from_pylist([{**row, "listener": str(row["listener"])} for row in rows]), path)
    return path


@pytest.mark.parametrize("name", ["r.csv", "r.jsonl", "r.parquet"])
def test_all_forms_are_read_alike(tmp_path: Path, name: str) -> None:
    assert read_ratings(write(tmp_path / name, ROWS)) == pytest.approx(EXPECTED)


def test_names_of_columns_and_what_may_be_missing(tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    path.write_text("listener_id,item_id,system,question,score\nme,1,a,,-3\nme,1,b,how much was changed,4\n")
    first, second = read_ratings(path, reverse=["how much was changed"])
    assert first == Rating(item="1", system="a", listener="me", rating=-3.0, facet=OVERALL)
    assert second.rating == -4
    path.write_text("item,system,listener,rating,scale\n1,a,me,2,1 to 5\n")
    (third,) = read_ratings(path, reverse=[OVERALL])
    assert third.rating == pytest.approx(0.75)


def test_played_files_are_found_in_the_key(tmp_path: Path) -> None:
    key = [StudyPair(item_id="1", group="1", system="zeta", reference="audio/0.flac", estimate="audio/f00.flac")]
    path = tmp_path / "r.csv"
    path.write_text("estimate,listener,rating\naudio/f00.flac,me,3\nf00.flac,you,4\n")
    assert [(one.item, one.system) for one in read_ratings(path, key=key)] == [("1", "zeta")] * 2
    with pytest.raises(InvalidInputError, match=r"no column item or item_id or id; no column system.*its pairs\.csv"):
        read_ratings(path)
    path.write_text("estimate,listener,rating\nf01.flac,me,3\n")
    with pytest.raises(InvalidInputError, match=r"row 1: the key knows no played file 'f01\.flac'"):
        read_ratings(path, key=key)
    path.write_text("estimate,item,system,listener,rating\nf00.flac,1,eta,me,3\n")
    with pytest.raises(InvalidInputError, match="'zeta' on '1' by the key, and here 'eta' on '1'"):
        read_ratings(path, key=key)


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        ("item,system,listener,rating\n", NoDataError, "holds no ratings"),
        ("item,system,rating\n1,a,3\n", InvalidInputError, "no column listener or listener_id; it has item, system"),
        ("item,id,system,listener,rating\n1,1,a,me,3\n", InvalidInputError, "item and id both name the item"),
        ("item,system,listener,rating\n1,a,me\n", InvalidInputError, "row 1 has more or fewer cells"),
        ("item,system,listener,rating\n1,a,me,good\n", InvalidInputError, "row 1: rating must be a number, got 'good'"),
        ("item,system,listener,rating\n1,a,me,nan\n", InvalidInputError, "row 1: rating must be a finite number"),
        ("item,system,listener,rating\n1,a,me,\n", InvalidInputError, "row 1: rating must be a number, got ''"),
        ("item,system,listener,rating\n1, ,me,3\n", InvalidInputError, "row 1: system is empty"),
        ("item,system,listener,rating,scale\n1,a,me,6,1-5\n", InvalidInputError, r"6 lies outside of its scale 1\.\.5"),
        ("item,system,listener,rating,scale\n1,a,me,6,5\n", InvalidInputError, "scale must be two numbers"),
        ("item,system,listener,rating,scale\n1,a,me,6,5-1\n", InvalidInputError, "the lower first"),
        ("item,system,listener,rating\n1,a,me,3\n1,a,me,4\n", PairCountError, "row 2: listener 'me' rated 'a' on"),
        ("item,system,listener,rating,scale\n1,a,me,3,1-5\n1,b,me,4,\n", InvalidInputError, "in all or in none"),
    ],
)  # fmt: skip
def test_wrong_tables_are_refused_by_name(tmp_path: Path, text: str, kind: type[Exception], message: str) -> None:
    path = tmp_path / "r.csv"
    path.write_text(text)
    with pytest.raises(kind, match=message):
        read_ratings(path)


def test_wrong_files_are_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(NoDataError):
        read_ratings(tmp_path / "none.csv")
    for name, content, message in (
        ("r.txt", b"", r"read from \.csv, \.jsonl, \.parquet"),
        ("r.jsonl", b"{", "is no JSONL"),
        ("r.csv", b"\xff\xfe\x00", "is no CSV"),
        ("r.parquet", b"PAR1 and more", "is no PARQUET"),
    ):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(UnreadableFileError, match=message):
            read_ratings(tmp_path / name)
    (tmp_path / "r.jsonl").write_text("[1]\n")
    with pytest.raises(InvalidInputError, match="line 1 holds a list"):
        read_ratings(tmp_path / "r.jsonl")
    with pytest.raises(InvalidInputError, match="no question tempo to reverse; it has melody"):
        read_ratings(write(tmp_path / "r.csv", ROWS), reverse=["tempo"])
