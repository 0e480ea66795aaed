from __future__ import annotations

import csv
import dataclasses
import io
import json
import math
import signal
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from music_evals.benchmark.inpainting.task import Settings as InpaintingSettings
from music_evals.benchmark.inpainting.task import run_benchmark
from music_evals.benchmark.songs.lyrics import Settings as LyricSettings
from music_evals.benchmark.songs.lyrics import run_lyrics
from music_evals.benchmark.songs.songs import load_songs
from music_evals.errors import (
    ChangedResultsError,
    CorruptRecordsError,
    FileTooLargeError,
    InvalidInputError,
    NoDataError,
    OutputError,
    UnknownNameError,
    UnreadableFileError,
)
from music_evals.leaderboard import board as leaderboard_board
from music_evals.leaderboard import verbs as leaderboard_module
from music_evals.leaderboard.board import DetailReader, add_part, details_of, parts, read_board
from music_evals.leaderboard.details import Detail, details_of_run
from music_evals.leaderboard.export import csv_table, html_page, latex_name, latex_table, text_tables
from music_evals.leaderboard.form import has_form
from music_evals.leaderboard.ranks import Comparison, compare, compare_pairs, rank_ranges
from music_evals.leaderboard.records import ResultRecord, id_of, read_run, records_of_run
from music_evals.leaderboard.tables import PUBLISHED, decimals_of, make_leaderboard, records_digest, shown
from music_evals.leaderboard.verbs import (
    add_results,
    build_leaderboard,
    keep_tables,
    load_leaderboard,
    write_leaderboard,
)

NASTY = "<img src=x onerror=alert(1)> =1+1 \\input{/etc/passwd} %&_${7*7}\"'\u202e\n|"
SETTINGS: dict[str, Any] = {"dataset": "toy", "config": "c", "split": "test", "variant": "official", "revision": None}


def record(system: str, values: list[float | None], **fields: Any) -> ResultRecord:
    """A record of a mean over items, each a group of its own."""
    defined = [value for value in values if value is not None]
    made = ResultRecord(
        **{
            "id": "", "task": "lyrics", "dataset": "toy", "config": "c", "split": "test", "revision": None,
            "fingerprint": None, "system": system, "role": "system", "content": None, "metric": "lyric_structure",
            "title": "Total", "direction": "higher", "kind": "mean", "variant": "official",
            "value": float(np.mean(defined)) if defined else None, "low": None, "high": None, "confidence": 0.95,
            "floor": None, "n": len(values), "n_defined": len(defined), "n_failed": 0,
            "items": tuple(f"i{row:02d}" for row in range(len(values))),
            "groups": tuple(f"g{row:02d}" for row in range(len(values))), "references": ("r",) * len(values),
            "values": tuple((value,) for value in values), "reference_values": (), "unranked": "",
            "settings": SETTINGS, "extractors": {}, "receipt": {}, "run": "run", "date": "2026-11-20",
        }
        | fields
    )  # fmt: skip
    return dataclasses.replace(made, id=id_of(made))


A, B = record("A", [1.0] * 10), record("B", [0.9] * 10)
C = record("C", [1.0, 0.8] * 5)


def tables_of(*records: ResultRecord) -> list[dict[str, Any]]:
    """Tables of records, without those of papers alone."""
    return [table for table in make_leaderboard(records)["tables"] if table["tests"] or table["rows"][0]["role"]]


def row_of(table: dict[str, Any], label: str) -> dict[str, Any]:
    return next(row for row in table["rows"] if row["label"] == label)


def cell_of(table: dict[str, Any], label: str, column: str = "lyric_structure") -> dict[str, Any]:
    return row_of(table, label)["cells"][column]


# --- ranks


def test_ranges_by_hand() -> None:
    # A - B is 0.1 at ten items: 2 of 2^10 sign patterns are as extreme. A - C is 0.2 at five items and 0 at five: 2 of
    # 2^5. B and C are equal on average: 1. Holm: 3 * 2/1024, then 2 * 2/32, then 1
    made = compare_pairs([[A, B, C]])
    assert [row.p_value for row in made] == pytest.approx([2 / 1024, 2 / 32, 1.0])
    assert [row.p_holm for row in made] == pytest.approx([6 / 1024, 4 / 32, 1.0])
    assert [str(row) for row in rank_ranges(3, made)] == ["1-2", "2-3", "1-3"]


def test_lower_is_better_turns_them_round() -> None:
    lower = [dataclasses.replace(row, direction="lower") for row in (A, B, C)]
    assert [tuple(row) for row in rank_ranges(3, compare_pairs([lower]))] == [(2, 3), (1, 2), (1, 3)]


def test_nearer_to_zero_is_better() -> None:
    near = record("near", [-0.1] * 10, direction="zero")
    far = record("far", [0.5, -0.5] * 5, direction="zero")  # its mean is 0, which is not near
    assert [str(row) for row in rank_ranges(2, compare_pairs([[near, far]]))] == ["1", "2"]


def test_a_clear_order_has_single_ranks() -> None:
    systems = [record(str(level), [float(level)] * 12) for level in range(4)]
    made = compare_pairs([systems])
    assert [str(row) for row in rank_ranges(4, made)] == ["4", "3", "2", "1"]


def test_equal_systems_have_the_full_range() -> None:
    same = [record(name, [0.3, 0.7, None] * 4) for name in "abcde"]
    made = compare_pairs([same])
    assert {row.p_holm for row in made} == {1.0}
    assert {tuple(row) for row in rank_ranges(5, made)} == {(1, 5)}


def test_the_correction_goes_over_all_columns() -> None:
    alone = compare_pairs([[A, B]])
    beside = compare_pairs([[A, B], [B, C], [A, C]])
    assert beside[0].p_holm == pytest.approx(3 * alone[0].p_holm)


def test_noise_rarely_gets_a_narrower_range(rng: np.random.Generator) -> None:
    wrong = 0
    for _ in range(80):
        noise = rng.normal(size=(4, 12))
        made = compare_pairs([[record(str(row), values.tolist()) for row, values in enumerate(noise)]])
        wrong += any(tuple(row) != (1, 4) for row in rank_ranges(4, made))
    assert wrong <= 80 * 0.05 + 3 * math.sqrt(80 * 0.05 * 0.95)


def test_true_ranks_are_within_the_ranges(rng: np.random.Generator) -> None:
    missed = 0
    for _ in range(40):
        values = rng.normal(size=(4, 14)) + np.arange(4)[:, None] * 0.7
        made = compare_pairs([[record(str(row), column.tolist()) for row, column in enumerate(values)]])
        ranges = rank_ranges(4, made)
        missed += any(not first <= 4 - row <= last for row, (first, last) in enumerate(ranges))
    assert missed <= 40 * 0.05 + 3 * math.sqrt(40 * 0.05 * 0.95)


def test_only_shared_items_with_the_same_reference_are_compared() -> None:
    other = dataclasses.replace(B, references=("other",) * 9 + ("r",))
    assert compare(A, other).n == 1
    assert compare(A, dataclasses.replace(B, items=tuple("abcdefghij"))).n == 0
    ranges = rank_ranges(2, compare_pairs([[A, dataclasses.replace(B, items=tuple("abcdefghij"))]]))
    assert {tuple(row) for row in ranges} == {(1, 2)}  # what cannot be compared is not told apart


def test_items_of_one_group_in_either_run_are_one_cluster() -> None:
    pairs = dataclasses.replace(A, groups=tuple(f"g{row // 2}" for row in range(10)))
    assert compare(pairs, B).p_value == pytest.approx(2 / 2**5)
    chained = dataclasses.replace(B, groups=tuple(f"h{(row + 1) // 2}" for row in range(10)))
    assert compare(pairs, chained).p_value == 1.0  # the two chain all ten together


def test_seeds_are_one_item() -> None:
    first = dataclasses.replace(A, values=((0.5, 1.5, None),) * 10)
    assert compare(first, B).difference == pytest.approx(0.1)


def test_a_pair_that_was_not_compared_is_open() -> None:
    assert [tuple(row) for row in rank_ranges(2, [Comparison(0, 1, 0, None, math.nan, math.nan, 0)])] == [(1, 2)] * 2


# --- what may be ranked together


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"revision": "abc"}, "revision: none, elsewhere abc"),
        ({"variant": "paper"}, "variant: official, elsewhere paper"),
        ({"option rhyme": "char"}, "option rhyme: none, elsewhere char"),
        ({"encoder": "e"}, "encoder: none, elsewhere e"),
        ({"version of jieba": "0.42"}, "version of jieba: none, elsewhere 0.42"),
    ],
)
def test_what_was_made_otherwise_stands_apart(changed: dict[str, Any], reason: str) -> None:
    other = record("B", [0.9] * 10, settings=SETTINGS | changed)
    first, second = sorted(tables_of(A, other), key=lambda table: "A" not in str(table["rows"]))
    assert first["apart"] == [{"table": second["id"], "title": second["title"], "reasons": [reason]}]
    assert first["id"] != second["id"]
    assert cell_of(first, "A")["rank"] == [1, 1]
    assert reason in text_tables({"tables": [first]})


def test_another_split_is_another_table_without_a_word() -> None:
    other = record("B", [0.9] * 10, settings=SETTINGS | {"split": "validation"})
    assert [table["apart"] for table in tables_of(A, other)] == [[], []]


def test_other_extractors_make_another_column() -> None:
    heard = record("B", [0.9] * 10, extractors={"beats": {"backend": "madmom", "version": 2}})
    (table,) = tables_of(A, heard, dataclasses.replace(C, extractors={}))
    first, second = table["columns"]
    assert (first["n_ranked"], second["n_ranked"]) == (2, 1)
    assert first["differs"] == "beats: none, elsewhere madmom version 2"
    assert second["id"] in row_of(table, "B")["cells"]
    assert first["id"] not in row_of(table, "B")["cells"]
    assert {test["column"] for test in table["tests"]} == {first["id"]}


@pytest.mark.parametrize("why", ["a control", "only the first 3 items were judged"])
def test_who_stands_outside_is_told_why(why: str) -> None:
    out = record("best", [5.0] * 10, unranked=why)
    (table,) = tables_of(A, B, out)
    assert cell_of(table, "best")["rank"] is None
    assert (row_of(table, "best")["kind"], row_of(table, "best")["why"]) == ("unranked", why)
    assert cell_of(table, "A")["rank"] == [1, 1]
    assert f"not ranked: best: {why}" in text_tables({"tables": [table]})


def test_an_undefined_score_has_no_rank() -> None:
    (table,) = tables_of(A, B, record("none", [None] * 10))
    assert cell_of(table, "none")["why"] == "undefined"
    assert cell_of(table, "B")["rank"] == [2, 2]


HAND: dict[str, Any] = {"content": "c" * 32, "submitter": "me"}


def test_the_last_of_the_same_hand_counts() -> None:
    first, second = record("A", [1.0] * 10, **HAND), record("A", [0.1] * 10, date="1999-01-01", **HAND)
    for order in ((first, second, B), (second, first, B)):  # a date is what somebody wrote
        (table,) = tables_of(*order)
        assert cell_of(table, "A")["value"] == order[1].value
        assert row_of(table, "A")["date"] == order[1].date
        assert "1 scores were added again" in " ".join(table["notes"])


@pytest.mark.parametrize("fields", [{"unranked": "only the first 3 items were judged"}, {"value": None}])
def test_what_may_not_be_ranked_takes_no_place_of_what_is(fields: dict[str, Any]) -> None:
    good, bad = record("A", [1.0] * 10, **HAND), record("A", [0.1] * 10, date="2030-01-01", **HAND, **fields)
    (table,) = tables_of(good, bad, B)
    assert cell_of(table, "A")["record"] == good.id
    assert (row_of(table, "A")["kind"], row_of(table, "A")["date"]) == ("ranked", good.date)
    assert "1 scores that were added later may not be ranked" in " ".join(table["notes"])
    (table,) = tables_of(bad, good, B)
    assert cell_of(table, "A")["record"] == good.id


@pytest.mark.parametrize("fields", [{}, {"content": "c" * 32}, {"submitter": "me"}])
@pytest.mark.parametrize("run", ["run", "another"])
def test_namesakes_that_do_not_say_who_they_are_replace_nothing(fields: dict[str, Any], run: str) -> None:
    first, second = record("A", [1.0] * 10, **fields), record("A", [0.1] * 10, run=run, **fields)
    beside = record("A", [0.5] * 10, metric="lyric_song", **fields)
    (table,) = tables_of(first, beside, second, B)
    label = f"A ({', '.join(['system', *(value[:8] for value in fields.values())])})"
    assert {row["label"] for row in table["rows"]} == {label, f"{label} #2", "B"}
    assert set(row_of(table, label)["cells"]) == {"lyric_structure", "lyric_song"}
    assert cell_of(table, label)["record"] == first.id
    assert cell_of(table, f"{label} #2")["record"] == second.id
    assert {test[side] for test in table["tests"] for side in "ab"} <= {row["label"] for row in table["rows"]}


def test_a_name_cannot_take_the_label_of_another_row() -> None:
    named = [record("A (system, x)", [0.5] * 10), record("A", [0.6] * 10, submitter="x"), record("A", [0.7] * 10)]
    (table,) = tables_of(*named)
    assert {row["label"] for row in table["rows"]} == {"A (system, x)", "A (system, x) #2", "A (system)"}


def test_one_name_of_two_hands_is_two_rows() -> None:
    (table,) = tables_of(dataclasses.replace(A, submitter="x"), record("A", [0.5] * 10, submitter="y"))
    assert {row["label"] for row in table["rows"]} == {"A (system, x)", "A (system, y)"}


def test_equal_records_are_one_row() -> None:
    twice = [dataclasses.replace(A, submitter=name) for name in "xy"]
    (table,) = tables_of(*twice, B)
    assert [row["label"] for row in table["rows"]] == ["A", "B"]
    assert cell_of(table, "A")["rank"] == [1, 1]


def test_published_tables_are_marked_and_never_ranked() -> None:
    tables = make_leaderboard([])["tables"]
    assert {table["task"] for table in tables} == {"inpainting", "preservation", "lyrics", "descriptions"}
    for table in tables:
        assert table["preset"]
        assert {(row["kind"], row["why"]) for row in table["rows"]} == {("published", PUBLISHED)}
        assert all(cell["rank"] is None for row in table["rows"] for cell in row["cells"].values())
    lyrics = next(table for table in tables if table["task"] == "lyrics")
    assert cell_of(lyrics, "GPT-4")["shown"] == "67.08"
    preservation = next(table for table in tables if table["task"] == "preservation")
    assert cell_of(preservation, "Vanilla", "chroma_dtw_similarity")["shown"] == "0.860"  # as printed


def test_published_rows_stand_below_ours_in_a_preset() -> None:
    settings = {"dataset": "caimd", "config": "v2", "split": "test", "variant": "official", "option normalise": True}
    tables = make_leaderboard([record("A", [1.0] * 10, settings=settings)])["tables"]
    table = next(table for table in tables if table["preset"] and table["task"] == "lyrics")
    assert [row["kind"] for row in table["rows"]] == ["ranked", *["published"] * 5]
    assert cell_of(table, "A")["rank"] == [1, 1]


# --- the board


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
from music_evals.leaderboard import verbs as leaderboard
real, left = Path.replace, [int(sys.argv[3])]
def replace(self, target):
    left[0] -= 1
    if left[0] < 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return real(self, target)
Path.replace = replace
leaderboard.add_results(sys.argv[1], sys.argv[2])
"""


@pytest.mark.parametrize("survived", [0, 1])
def test_a_kill_in_the_middle_leaves_the_board_as_it_was(lyrics_run: Path, tmp_path: Path, survived: int) -> None:
    board = tmp_path / "board"
    add_part(board, [A])
    # files are put in their place one after the other: the card is there, then details, then records
    ended = subprocess.run([sys.executable, "-c", KILLED, lyrics_run, board, str(survived)], check=False)
    assert ended.returncode == -signal.SIGKILL
    assert read_board(board) == [A]
    added = add_results(lyrics_run, board)
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
        {"value": float("nan")}, {"items": None},
    ],
)  # fmt: skip
def test_records_that_are_not_what_they_say(changed: dict[str, Any], tmp_path: Path) -> None:
    forged = dataclasses.replace(A, **changed)
    if "id" not in changed and changed.keys() & {"task", "groups", "direction"}:
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
    with pytest.raises(FileTooLargeError, match="details of one run"):
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
    with pytest.raises(NoDataError, match="holds no records"):
        read_board(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError):
        add_part(tmp_path / "file" / "board", [A])


# --- from runs


@pytest.fixture
def lyrics_run(songs_file: Path, tmp_path: Path) -> Path:
    """Two systems of lyrics, one with the words of the songs and one with half of them."""
    songs = load_songs(str(songs_file))
    options: list[str] = []
    for name, share in (("words", 1.0), ("half", 0.5)):
        path = tmp_path / f"{name}.jsonl"
        rows = [{"id": song.id, "text": cut(song.words_text(), share)} for song in songs]
        path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
        options.append(f"{name}={path}")
    out = tmp_path / "lyrics_run"
    run_lyrics(
        LyricSettings(out, str(songs_file), predictions=options, rhyme="char", n_resamples=50, report=False, seed=1)
    )
    return out


def cut(text: str, share: float) -> str:
    lines = text.splitlines()
    return "\n".join(lines[: max(2, round(len(lines) * share))])


@pytest.fixture
def inpainting_run(settings: dict[str, Any]) -> Path:
    run_benchmark(InpaintingSettings(**settings, baselines="silence,copy_past,markov", report=False))
    return Path(settings["out"])


def test_lyrics_from_end_to_end(lyrics_run: Path, tmp_path: Path) -> None:
    board = tmp_path / "board"
    added = add_results(lyrics_run, board, submitter="me", source="https://example.org", date="2026-11-20")
    assert added.n_known == 0
    assert {(row.submitter, row.date, row.source) for row in added.new} == {("me", "2026-11-20", "https://example.org")}
    assert add_results(lyrics_run, board).new == ()
    leaderboard = build_leaderboard(board)
    table = next(table for table in leaderboard["tables"] if table["settings"]["dataset"] == "songs.jsonl")
    results = json.loads((lyrics_run / "results.json").read_text())
    assert table["settings"]["option rhyme"] == "char"
    assert "version of jieba" in table["settings"]
    for system, cells in results["scores"].items():
        for metric, cell in cells.items():
            assert cell_of(table, system, metric)["value"] == pytest.approx(cell["value"])
    assert row_of(table, "true lyrics")["why"] == "a control"
    assert table["headline"] == table["columns"][0]["id"] == "lyric_structure"
    assert json.loads(json.dumps(leaderboard)) == leaderboard
    assert "local files without a revision" in " ".join(table["notes"])


def test_explanations_are_behind_the_scores(lyrics_run: Path, tmp_path: Path) -> None:
    new = add_results(lyrics_run, tmp_path / "board", systems=["half"]).new
    assert {row.system for row in new} == {"half"}
    reader = DetailReader(tmp_path / "board")
    found = reader.content(new[0].run, new[0].items[0], "half", "explanation")
    assert found is not None
    assert found["lines"]
    assert reader.content(new[0].run, new[0].items[0], "words", "explanation") is None
    bare = add_results(lyrics_run, tmp_path / "bare", details=False).new
    assert DetailReader(tmp_path / "bare").get(bare[0].run, bare[0].items[0], "half", "explanation") is None


def test_inpainting_from_end_to_end(inpainting_run: Path, tmp_path: Path) -> None:
    add_results(inpainting_run, tmp_path / "board")
    records = read_board(tmp_path / "board")
    (table,) = tables_of(*records)
    results = json.loads((inpainting_run / "results.json").read_text())
    for system, cells in results["tables"]["all"]["scores"].items():
        for metric, cell in cells.items():
            assert cell_of(table, system, metric)["value"] == cell["value"]
    # the tests of the run itself are made with the same items, clusters and statistics
    ours = {(test["column"], test["a"], test["b"]): test for test in table["tests"]}
    compared = 0
    for system, cells in results["tables"]["all"]["scores"].items():
        for metric, cell in cells.items():
            test = cell.get("test")
            made = ours.get((metric, system, test["against"])) if test else None
            if made:
                compared += 1
                assert made["difference"] == pytest.approx(test["difference"])
                assert made["n"] == test["n"]
                if not metric.endswith("divergence"):  # these are drawn with another number of resamples
                    assert made["p_value"] == pytest.approx(test["p_value"])
    assert compared > 5
    record_of = {(row.system, row.metric): row for row in records}
    one = record_of["markov", "groove_divergence"]
    assert (one.kind, len(one.values[0]), len(one.reference_values)) == ("divergence", 2, 70)
    reader = DetailReader(tmp_path / "board")
    assert len(reader.content(one.run, one.items[0], "", "context")["tokens"]) == 384
    assert len(reader.content(one.run, one.items[0], "markov", "middle")["tokens"]) == 96


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"options": {"limit": 3}}, "only the first 3 items were judged"),
        ({"failures": [{"item": "i", "system": "copy_past", "metric": None, "error": "x"}]}, "1 results failed"),
        ({"failures": [{"item": "i", "system": None, "metric": None, "error": "x"}]}, "1 results failed"),
    ],
)
def test_what_does_not_deserve_a_rank(inpainting_run: Path, change: dict[str, Any], why: str) -> None:
    run = read_run(inpainting_run)
    run.results.update(change)
    found = {row.system: row.unranked for row in records_of_run(run)}
    assert found["copy_past"] == why
    assert found["reference"] == "a control"


def test_kinds_of_edit_and_leaking_systems_have_no_rank(inpainting_run: Path) -> None:
    run = read_run(inpainting_run)
    run.results["systems"]["copy_past"]["role"] = "leaking"
    found = {row.system: row.unranked for row in records_of_run(run)}
    assert found["copy_past"] == "it has seen the reference"
    run.results["dataset"]["id"] = "/somewhere/known_edits"
    assert {row.unranked for row in records_of_run(run) if row.system == "markov"} == {
        "a kind of edit, by which metrics are judged"
    }


def test_no_folder_of_a_machine_goes_to_a_board(inpainting_run: Path, tmp_path: Path) -> None:
    for row in records_of_run(read_run(inpainting_run)):
        assert row.dataset == "tiny"
        assert str(tmp_path.parent.parent) not in json.dumps(dataclasses.asdict(row))


def test_wrong_results(lyrics_run: Path, tmp_path: Path) -> None:
    with pytest.raises(NoDataError, match=r"results.json is not there"):
        read_run(tmp_path / "nothing")
    run = read_run(lyrics_run)
    with pytest.raises(UnknownNameError, match="unknown system of these results"):
        records_of_run(run, systems=["no such one"])
    with pytest.raises(InvalidInputError, match="a date such as"):
        records_of_run(run, date="yesterday")
    run.results["systems"]["x" * 201] = run.results["systems"]["half"]
    with pytest.raises(InvalidInputError, match="1 to 200 characters"):
        records_of_run(run)
    path = lyrics_run / "results.json"
    path.write_text(path.read_text().replace('"variant": "official"', '"variant": "paper"'))
    with pytest.raises(ChangedResultsError, match=r"variant is 'paper' in results.json and 'official' in records"):
        read_run(lyrics_run)
    path.write_text("{")
    with pytest.raises(UnreadableFileError, match="no JSON"):
        read_run(lyrics_run)


def test_a_changed_score_gets_on_no_board(inpainting_run: Path, tmp_path: Path) -> None:
    path = inpainting_run / "results.json"
    results = json.loads(path.read_text())
    results["tables"]["all"]["scores"]["copy_past"]["note_f1"]["value"] = 0.99
    path.write_text(json.dumps(results))
    with pytest.raises(ChangedResultsError, match=r"tables.all.scores.copy_past.note_f1.value is 0.99 in results.json"):
        add_results(inpainting_run, tmp_path / "board")
    assert not (tmp_path / "board").exists()


def test_recordings_go_in_by_their_hash(lyrics_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from music_evals.benchmark.preservation.pairs import hash_file
    from music_evals.leaderboard import details as leaderboard_details

    folder = tmp_path / "music"
    folder.mkdir()
    (folder / "a.wav").write_bytes(b"RIFF wanted")
    (folder / "b.wav").write_bytes(b"RIFF other")
    (folder / "c.txt").write_bytes(b"RIFF wanted")
    run = read_run(lyrics_run)
    content = hash_file(folder / "a.wav")
    side = {"name": "a.wav", "content": content}
    run.rows.append(
        {"kind": "pair", "item": "x", "system": "half", "entrance": "audio", "reference": side, "estimate": side}
    )
    found = [row for row in details_of_run(run, [A], [folder]) if row.kind == "audio"]
    assert [(row.item, row.media) for row in found] == [(content, b"RIFF wanted")]
    monkeypatch.setattr(leaderboard_details, "MAX_MEDIA_BYTES", 3)
    with pytest.raises(FileTooLargeError):
        details_of_run(run, [A], [folder])
    with pytest.raises(NoDataError):
        details_of_run(run, [A], [tmp_path / "none"])


# --- export


@pytest.mark.parametrize(
    ("low", "high", "decimals"),
    [
        (0.4, 0.6, 2), (0.45, 0.47, 3), (0.1234, 0.1236, 5), (10.0, 30.0, 0), (100.0, 900.0, 0),
        (0.0, 0.01992, 3), (0.5, 0.5, 3), (0.0, 1e-17, 3), (None, 1.0, 3), (0.0, 1e-9, 6),
    ],
)  # fmt: skip
def test_digits_are_two_of_half_the_width(low: float | None, high: float | None, decimals: int) -> None:
    assert decimals_of(low, high) == decimals


def test_scores_as_text() -> None:
    assert shown(0.123456, 0.1, 0.2) == "0.123"
    assert shown(0.12345, 0.12, 0.125) == "0.1235"  # halves of the width 0.0025: four decimals
    assert shown(-0.0001, -0.5, 0.5) == "0.00"
    assert shown(None) == "n/a"


def test_latex_shows_what_it_is_given() -> None:
    told = latex_name('a_b & 50% #1 $x$ {y} ~^\\ <z>|"`[0]')
    assert told == (
        r"a\_b \& 50\% \#1 \$x\$ \{y\} \textasciitilde{}\textasciicircum{}\textbackslash{} "
        r"\textless{}z\textgreater{}\textbar{}\textquotedbl{}\textasciigrave{}{[}0{]}"
    )
    assert latex_name("two\nlines\t\x07") == "two lines"


def test_latex_tables_hold_rank_ranges() -> None:
    (table,) = tables_of(A, B, C, record("ceiling", [2.0] * 10, unranked="a control"))
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


def test_tables_beside_the_data_are_used_while_they_are_of_it(tmp_path: Path) -> None:
    add_part(tmp_path, [A, B])
    keep_tables(build_leaderboard(tmp_path) | {"mark": True}, tmp_path)
    assert load_leaderboard(tmp_path, read_board(tmp_path))["mark"]
    add_part(tmp_path, [C])
    records = read_board(tmp_path)
    made = load_leaderboard(tmp_path, records)
    assert "mark" not in made
    assert made["records"] == records_digest(records)
    (tmp_path / "leaderboard.json").write_text("[" * 100_000)
    assert load_leaderboard(tmp_path, records) == made


FORGED: list[tuple[tuple[Any, ...], Any]] = [
    (("format",), True),
    (("alpha",), "0.05"),
    (("tables",), {}),
    (("tables", 0, "id"), "../../outside"),
    (("tables", 0, "task"), "poker"),
    (("tables", 0, "preset"), NASTY),
    (("tables", 0, "headline"), "none"),
    (("tables", 0, "notes"), [7]),
    (("tables", 0, "columns", 0, "direction"), "up"),
    (("tables", 0, "columns", 0, "n_ranked"), -1),
    (("tables", 0, "rows", 0, "kind"), NASTY),
    (("tables", 0, "rows", 0, "label"), 7),
    (("tables", 0, "rows", 0, "system"), "other"),
    (("tables", 0, "rows", 0, "cells", "none"), {}),
    (("tables", 0, "rows", 0, "cells", "lyric_structure"), None),
    *(
        (("tables", 0, "rows", 0, "cells", "lyric_structure", key), value)
        for key, value in [
            ("value", '"><img src=x>'), ("value", True), ("value", 99.0), ("value", math.inf), ("n", "1"), ("n", 5),
            ("rank", ["1", "2"]), ("rank", [2, 1]), ("rank", [1]), ("shown", None), ("record", "none"), ("record", ""),
        ]
    ),
    (("tables", 0, "tests", 0, "n"), "<b>"),
    (("tables", 0, "tests", 0, "difference"), None),
    (("tables", 0, "tests", 0, "a"), "none"),
    (("tables", 0, "tests", 0, "is_significant"), 1),
    (("tables", 0, "published"), {"source": 1, "differences": {}}),
]  # fmt: skip


@pytest.mark.parametrize(("place", "value"), FORGED)
def test_tables_of_another_form_are_made_again(place: tuple[Any, ...], value: Any, tmp_path: Path) -> None:
    add_part(tmp_path, [A, B])
    records = read_board(tmp_path)
    made = make_leaderboard(records)
    made["tables"].sort(key=lambda table: not table["tests"])
    assert has_form(json.loads(json.dumps(made)), records)
    content = at = json.loads(json.dumps(made))
    for key in place[:-1]:
        at = at[key]
    at[place[-1]] = value
    assert not has_form(content, records)
    (tmp_path / "leaderboard.json").write_text(json.dumps(content))  # Infinity among it
    assert load_leaderboard(tmp_path, records) == make_leaderboard(records)


def test_ranks_are_of_what_may_be_ranked_and_ids_are_there_once() -> None:
    out = record("out", [5.0] * 10, unranked="a control")
    content = json.loads(json.dumps(make_leaderboard([A, B, out])))
    assert has_form(content, [A, B, out])
    assert not has_form(content | {"tables": content["tables"] * 2}, [A, B, out])
    table = next(table for table in content["tables"] if table["tests"])
    cell_of(table, "out")["rank"] = [1, 1]
    assert not has_form(content, [A, B, out])
    paper = next(table for table in make_leaderboard([])["tables"] if table["task"] == "lyrics")
    cell_of(paper, "GPT-4")["rank"] = [1, 1]
    assert not has_form(make_leaderboard([]) | {"tables": [paper]}, [])


def test_a_file_of_tables_that_is_too_large_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add_part(tmp_path, [A])
    keep_tables(build_leaderboard(tmp_path) | {"mark": True}, tmp_path)
    monkeypatch.setattr(leaderboard_module, "MAX_TABLES_BYTES", 10)
    assert "mark" not in load_leaderboard(tmp_path, read_board(tmp_path))


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


def test_equal_records_give_equal_tables() -> None:
    assert make_leaderboard([A, B, C]) == make_leaderboard([A, B, C])
    assert records_digest([C, B, A]) != records_digest([A, B, C])  # the order decides what counts


@pytest.mark.slow
def test_the_tables_that_ship_are_what_this_version_makes(root: Path) -> None:
    board = root / "spaces" / "leaderboard" / "board"
    assert json.loads((board / "leaderboard.json").read_text()) == json.loads(json.dumps(build_leaderboard(board)))


def test_few_groups_are_told() -> None:
    (table,) = tables_of(*(record(name, [0.5] * 4) for name in "ab"))
    assert "as few as 4 groups" in " ".join(table["notes"])
    (table,) = tables_of(A, B)
    assert table["notes"] == [
        "local files without a revision: systems are compared where items have the same reference"
    ]


def test_the_board_that_ships_is_whole(root: Path) -> None:
    board = root / "spaces" / "leaderboard" / "board"
    records = read_board(board)
    sizes = [path.stat().st_size for kind in ("data", "details") for path in parts(board, kind)]
    assert sum(sizes) < 300_000
    tables = load_leaderboard(board, records)
    assert json.loads((board / "leaderboard.json").read_text()) == tables  # they are those of these records
    first = tables["tables"][0]
    assert first["preset"] == "Score inpainting: JSB Chorales"
    assert all(not str(row.receipt["dataset"]["id"]).startswith("/") for row in records)


def test_systems_of_several_kernels_are_told() -> None:
    of = [record(name, [1.0] * 10, receipt={"kernels": [f"kernel {name}"]}) for name in "AB"]
    (mixed,), (plain,) = tables_of(*of), tables_of(of[0], B)
    told = "scores were made with several kinds of processor kernels, so last digits may differ: kernel A; kernel B"
    assert told in mixed["notes"]
    assert not any("kernels" in note for note in plain["notes"])
