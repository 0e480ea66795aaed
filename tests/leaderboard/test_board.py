"""The append-only board: additions, damage, bounds."""

from __future__ import annotations

import dataclasses
import json
import signal
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from tests.leaderboard.toy_records import A, B, C

from music_evals.errors import CorruptRecordsError, FileTooLargeError, NoDataError, OutputError
from music_evals.leaderboard import add_to_board, build_leaderboard, keep_tables, load_leaderboard, read_board
from music_evals.leaderboard import board as leaderboard_board
from music_evals.leaderboard.board import DetailReader, add_part, details_of, parts
from music_evals.leaderboard.details import Detail
from music_evals.leaderboard.records import ResultRecord, id_of


def files_in(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_adding_appends_and_never_rewrites(tmp_path: Path) -> None:
    board = tmp_path / "board"
    assert add_part(board, [A]) == (A,)
    before = files_in(board)
    assert add_part(board, [A, B, B]) == (B,)
    after = files_in(board)
    assert before.items() <= after.items()
    assert len(after) == len(before) + 1
    assert read_board(board) == [A, B]
    assert [path.name[:5] for path in parts(board)] == ["00000", "00001"]


def test_adding_twice_changes_nothing(tmp_path: Path) -> None:
    add_part(tmp_path, [A, B])
    before = files_in(tmp_path)
    again = [dataclasses.replace(row, date="2027-01-01", submitter="z", source="s", run="r") for row in (A, B)]
    assert add_part(tmp_path, again) == ()
    assert files_in(tmp_path) == before


def test_two_who_add_at_once_are_both_read_and_once(tmp_path: Path) -> None:
    for name, records in (("x", [A, B]), ("y", [B, C])):
        add_part(tmp_path / name, records)
    (tmp_path / "both" / "data").mkdir(parents=True)
    for path in (*parts(tmp_path / "x"), *parts(tmp_path / "y")):
        (tmp_path / "both" / "data" / path.name).write_bytes(path.read_bytes())
    assert sorted(row.system for row in read_board(tmp_path / "both")) == ["A", "B", "C"]


KILLED = """
import os, signal, sys
from pathlib import Path
from music_evals import leaderboard
real, left = Path.replace, [int(sys.argv[3])]
def replace(self, target):
    left[0] -= 1
    if left[0] < 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return real(self, target)
Path.replace = replace
leaderboard.add_to_board(sys.argv[1], sys.argv[2])
"""


@pytest.mark.slow
@pytest.mark.parametrize("survived", [0, 1])
def test_a_kill_in_the_middle_leaves_the_board_as_it_was(
    preservation_run_of_all: Path, tmp_path: Path, survived: int
) -> None:
    board = tmp_path / "board"
    add_part(board, [A])
    # files are put in their place one after the other: the card is there, then details, then records
    ended = subprocess.run([sys.executable, "-c", KILLED, preservation_run_of_all, board, str(survived)], check=False)
    assert ended.returncode == -signal.SIGKILL
    held = files_in(board)
    assert any(name.endswith(".part") for name in held)
    assert not any(name.endswith(".part") for name in uploaded(held))
    assert read_board(board) == [A]
    added = add_to_board(preservation_run_of_all, board)
    assert len(added.new) == len(read_board(board)) - 1 > 0
    assert details_of(board, {row.run for row in added.new})
    assert len(parts(board, "details")) == 1  # what was written before the kill is not written again


def test_damage_is_told_and_not_skipped(tmp_path: Path) -> None:
    add_part(tmp_path, [A])
    (path,) = parts(tmp_path)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    with pytest.raises(CorruptRecordsError, match="hash of its name"):
        read_board(tmp_path)
    with pytest.raises(CorruptRecordsError):
        add_part(tmp_path, [B])


@pytest.mark.parametrize(
    "changed",
    [
        {"value": 99.0}, {"id": "0" * 32}, {"task": "poker"}, {"groups": ("g",)}, {"direction": "up"},
        {"targets": ("tempo=1.2x",)},
        {"value": float("nan")}, {"items": None},
    ],
)  # fmt: skip
def test_records_that_are_not_what_they_say(changed: dict[str, Any], tmp_path: Path) -> None:
    forged = dataclasses.replace(A, **changed)
    if "id" not in changed and changed.keys() & {"task", "groups", "targets", "direction"}:
        forged = dataclasses.replace(forged, id=id_of(forged))
    with pytest.raises(CorruptRecordsError, match=r"take the file away"):
        forge(tmp_path, forged)


def forge(board: Path, made: ResultRecord) -> None:
    (board / "data").mkdir()
    leaderboard_board._write(board / "data", [leaderboard_board._row(made)], leaderboard_board.SCHEMA)
    read_board(board)


def test_a_file_with_other_columns(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    leaderboard_board._write(tmp_path / "data", [{"id": "x"}], {"id": "string"})
    with pytest.raises(CorruptRecordsError, match="other columns"):
        read_board(tmp_path)


def test_files_that_are_no_part_are_not_looked_at(tmp_path: Path) -> None:
    add_part(tmp_path, [A])
    for name in (".00001-0123456789abcdef.parquet.77.part", "notes.txt", "1-0123456789abcdef.parquet"):
        (tmp_path / "data" / name).write_text("nothing")
    assert read_board(tmp_path) == [A]


def test_files_over_the_bounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add_part(tmp_path, [A])
    for bound, told in (("UNFOLDED_BYTES", "10 bytes"), ("ROWS", "0 rows"), ("VALUES", "10 values")):
        with monkeypatch.context() as patch:
            patch.setattr(leaderboard_board, f"MAX_{bound}", int(told.split()[0]))
            with pytest.raises(FileTooLargeError, match=f"unfolds to more than {told}"):
                read_board(tmp_path)
            if bound != "VALUES":
                with pytest.raises(FileTooLargeError):
                    add_part(tmp_path / "new", [A])
    monkeypatch.setattr(leaderboard_board, "MAX_PART_BYTES", 10)
    with pytest.raises(FileTooLargeError, match="more than 10 bytes"):
        read_board(tmp_path)


def test_a_small_file_that_unfolds_is_stopped_on_the_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "x" * 2**20
    made = [Detail("run", str(row), "", "tags", text) for row in range(200)]  # 200 MiB, one text in the dictionary
    add_part(tmp_path, [A], made)
    (path,) = parts(tmp_path, "details")
    assert path.stat().st_size < 10_000
    monkeypatch.setattr(leaderboard_board, "MAX_UNFOLDED_BYTES", 4 * 2**20)
    monkeypatch.setattr(leaderboard_board, "MAX_BATCH_BYTES", 2 * 2**20)
    rows = leaderboard_board._read(path, leaderboard_board.DETAIL_SCHEMA)
    read = []
    with pytest.raises(FileTooLargeError, match="unfolds"):
        read.extend(row["item"] for row in rows)
    assert len(read) <= 4
    with pytest.raises(FileTooLargeError, match="unfolds"):
        details_of(tmp_path, ["run"])


def test_details_of_one_run_in_many_files_are_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for row, made in enumerate((A, B)):
        add_part(tmp_path, [made], [Detail("run", f"{row}{letter}", "", "tags", "x" * 700) for letter in "abc"])
    monkeypatch.setattr(leaderboard_board, "MAX_UNFOLDED_BYTES", 3000)
    with pytest.raises(FileTooLargeError):
        details_of(tmp_path, ["run"])


def test_a_reader_keeps_the_runs_that_were_asked_for_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = [f"run{number}" for number in range(4)]
    add_part(tmp_path, [A], [Detail(run, "i", "", "tags", "x" * 100) for run in runs])
    reader = DetailReader(tmp_path)
    monkeypatch.setattr(leaderboard_board, "MAX_KEPT_RUNS", 2)
    for run in (*runs[:2], runs[0], runs[2]):
        assert reader.get(run, "i", "", "tags") is not None
    assert list(reader._runs) == [runs[0], runs[2]]
    monkeypatch.setattr(leaderboard_board, "MAX_KEPT_BYTES", 150)
    assert reader.get(runs[3], "i", "", "tags") is not None
    assert list(reader._runs) == [runs[3]]
    monkeypatch.setattr(leaderboard_board, "MAX_KEPT_BYTES", 1)
    assert reader.get(runs[1], "i", "", "tags") is not None


def test_a_board_that_is_not_there_or_cannot_be_made(tmp_path: Path) -> None:
    with pytest.raises(NoDataError):
        read_board(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError):
        add_part(tmp_path / "file" / "board", [A])


@pytest.mark.slow
def test_the_board_that_ships_is_whole(root: Path) -> None:
    board = root / "spaces" / "leaderboard" / "board"
    records = read_board(board)
    sizes = [path.stat().st_size for kind in ("data", "details") for path in parts(board, kind)]
    assert sum(sizes) < 500_000
    tables = load_leaderboard(board, records)
    assert json.loads((board / "leaderboard.json").read_text()) == tables  # they are those of these records
    first = tables["tables"][0]
    assert first["preset"] == "Score inpainting: JSB Chorales"
    assert all(not str(row.receipt["dataset"]["id"]).startswith("/") for row in records)


def test_no_part_of_a_file_lies_where_an_upload_would_take_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parts_seen: list[Path] = []

    def replace(self: Path, target: Path) -> Path:
        parts_seen.append(self.relative_to(tmp_path))
        return real(self, target)

    real = Path.replace
    monkeypatch.setattr(Path, "replace", replace)
    add_part(tmp_path, [A, B], [Detail("run", "i00", "A", "explanation", "{}")])
    keep_tables(build_leaderboard(tmp_path), tmp_path)
    assert len(parts_seen) == 4  # card, details, records, tables
    assert uploaded(map(str, parts_seen)) == []


def uploaded(names: Iterable[str]) -> list[str]:
    """Return what `huggingface_hub` takes of a folder."""
    from huggingface_hub.utils import DEFAULT_IGNORE_PATTERNS, filter_repo_objects

    return list(filter_repo_objects(names, ignore_patterns=DEFAULT_IGNORE_PATTERNS))
