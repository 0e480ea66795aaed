"""The table of a listening study: what is written is read back, and what is wrong is said with its row."""

from __future__ import annotations

import csv
import dataclasses
import hashlib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from music_evals.errors import InvalidInputError, MusicEvalsError, NoDataError, PairCountError, UnreadableFileError
from music_evals.studies.pairs import COLUMNS, REFERENCE, StudyPair, check_pairs, read_pairs, write_pairs

LETTERS = st.characters(exclude_categories=["Cc", "Cs"])
TEXT = st.text(LETTERS, max_size=12)
NAME = st.text(LETTERS, min_size=1, max_size=12).filter(str.strip)
NUMBER = st.none() | st.floats(allow_nan=False, allow_infinity=False)


@st.composite
def study_pairs(draw: st.DrawFn) -> StudyPair:
    start, length, rest = (draw(st.floats(0.001, 1e3)) for _ in range(3))
    known = draw(st.booleans())
    return StudyPair(
        **{name: draw(NAME) for name in ("item_id", "group", "system", "reference", "estimate")},
        **{name: draw(TEXT) for name in ("task", "reference_sha256", "estimate_sha256", "licence", "source", "run")},
        **{name: draw(NUMBER) for name in ("reference_lufs", "estimate_lufs", "gain_db")},
        seconds=start + length + rest if known else None,
        start_sec=start if known else None,
        end_sec=start + length if known else None,
        run_system=draw(TEXT),
        run_seed=draw(st.none() | st.integers(0, 2**63 - 1)),
    )


def pair(**others: Any) -> StudyPair:
    return StudyPair(
        **{"item_id": "a", "group": "song", "system": "x", "reference": "r.flac", "estimate": "e.flac", **others}
    )


@given(found=st.lists(study_pairs(), min_size=1, max_size=4, unique_by=lambda pair: pair.item_id))
def test_what_is_written_is_read_back(found: list[StudyPair], tmp_path_factory: pytest.TempPathFactory) -> None:
    path = write_pairs(tmp_path_factory.mktemp("study") / "pairs.csv", found)
    assert read_pairs(path, check_files=False) == tuple(found)


def test_a_spreadsheet_reads_the_columns(tmp_path: Path) -> None:
    path = write_pairs(tmp_path / "pairs.csv", [pair(source='a "b", c', seconds=2.5, run_seed=3)])
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file))
    assert rows[0] == list(COLUMNS)
    cells = dict(zip(*rows, strict=True))
    assert (cells["source"], cells["seconds"], cells["run_seed"], cells["gain_db"]) == ('a "b", c', "2.5", "3", "")


def test_two_columns_are_a_table_too(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text("\ufeffreference,estimate,my own column\nsongs/one.wav,out/1.wav,7\n", encoding="utf-8")
    (found,) = read_pairs(path, check_files=False)
    assert found == StudyPair(
        item_id="songs/one", group="songs/one.wav", system="mine", reference="songs/one.wav", estimate="out/1.wav"
    )
    path.write_text("id,reference,estimate\nfirst,songs/one.wav,out/1.wav\n")
    assert read_pairs(path, check_files=False)[0].item_id == "first"


@pytest.mark.parametrize(
    ("text", "kind", "said"),
    [
        ("", InvalidInputError, "no column reference and no column estimate"),
        ("reference,system\na,b\n", InvalidInputError, "no column estimate; it has reference, system"),
        ("reference,estimate\n", NoDataError, "no pairs"),
        ("reference,estimate\na,b\n,c\n", InvalidInputError, "row 2: item_id is empty"),
        ("reference,estimate\na,\n", InvalidInputError, "row 1: estimate is empty"),
        ("reference,estimate\na\n", InvalidInputError, "row 1: more or fewer cells"),
        ("reference,estimate\na,b,c\n", InvalidInputError, "row 1: more or fewer cells"),
        ('reference,estimate\na,"b\n', UnreadableFileError, "is no CSV"),
        ("reference,estimate,seconds\na,b,long\n", InvalidInputError, "row 1: seconds must be a number, got 'long'"),
        ("reference,estimate,seconds\na,b,nan\n", InvalidInputError, "row 1: seconds must be a finite number"),
        ("reference,estimate,run_seed\na,b,1.5\n", InvalidInputError, "row 1: run_seed must be a whole number"),
        ("reference,estimate,start_sec\na,b,1\n", InvalidInputError, "row 1: start_sec and end_sec go together"),
        ("reference,estimate,start_sec,end_sec\na,b,2,1\n", InvalidInputError, "row 1: expected start_sec < end_sec"),
        ("reference,estimate,system\na,b,x\na,c,x\n", PairCountError, "row 2: item 'a' of system 'x' occurs twice"),
        ("reference,estimate,same_as\na,b,y\n", InvalidInputError, "row 1: same_as names 'y'"),
        ("item_id,reference,estimate,system\na,r,b,x\na,q,c,y\n", InvalidInputError, "row 2: item 'a' has the "),
    ],
)
def test_a_wrong_table_is_refused_with_its_row(
    text: str, kind: type[MusicEvalsError], said: str, tmp_path: Path
) -> None:
    path = tmp_path / "pairs.csv"
    path.write_text(text)
    with pytest.raises(kind) as raised:
        read_pairs(path, check_files=False)
    assert said in str(raised.value)
    assert str(path) in str(raised.value)


def test_a_table_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NoDataError):
        read_pairs(tmp_path / "pairs.csv")
    (tmp_path / "pairs.csv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UnreadableFileError, match="cannot be read"):
        read_pairs(tmp_path / "pairs.csv")


@pytest.mark.parametrize("letter", ["\x00", "\n", "\r", "\x1b", "\ud800"])
def test_control_characters_are_refused_in_every_text(letter: str) -> None:
    for field in dataclasses.fields(StudyPair):
        if field.type == "str":
            with pytest.raises(InvalidInputError, match=f"{field.name} holds the control character"):
                pair(**{field.name: f"a{letter}b"})


@pytest.mark.parametrize("name", ["seconds", "start_sec", "gain_db", "estimate_lufs"])
def test_numbers_are_finite(name: str) -> None:
    with pytest.raises(InvalidInputError, match=f"{name} must be a finite number"):
        pair(**{name: float("inf")})


def test_the_first_that_sounds_so_stands_above() -> None:
    rows = [pair(system=REFERENCE), pair(same_as=REFERENCE)]
    check_pairs(rows)
    with pytest.raises(InvalidInputError, match="row 1: same_as names 'reference'"):
        check_pairs(rows[::-1])
    with pytest.raises(InvalidInputError, match="row 1: same_as names 'x'"):
        check_pairs([pair(same_as="x")])


def test_files_are_held_to_their_hashes(tmp_path: Path) -> None:
    (tmp_path / "r.flac").write_bytes(b"original")
    (tmp_path / "e.flac").write_bytes(b"edit")
    known = hashlib.sha256(b"edit").hexdigest()
    path = write_pairs(tmp_path / "pairs.csv", [pair(estimate_sha256=known)])
    assert len(read_pairs(path)) == 1
    (tmp_path / "e.flac").write_bytes(b"other")
    with pytest.raises(UnreadableFileError, match=r"row 1: the estimate e\.flac is another file"):
        read_pairs(path)
    (tmp_path / "e.flac").unlink()
    with pytest.raises(UnreadableFileError, match=r"row 1: the estimate e\.flac cannot be read"):
        read_pairs(path)
