"""No writer that writes no song stands above the true lyrics."""

from __future__ import annotations

import csv
import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks.lyric_writers import degenerate
from music_evals.benchmark.tasks.songs.text_controls import LYRIC_CONTROLS, TRUE_LYRICS
from music_evals.datasets.caimd.demo import demo_rows
from music_evals.leaderboard import add_to_board, build_leaderboard


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("degenerate")


@pytest.fixture(scope="module")
def results(folder: Path) -> Any:
    """Three songs whose words are a character short of their pattern, as those that people sing often are."""
    songs = demo_rows()[:3]
    for song in songs:
        lines = song["structure"][0]["lines"]
        lines[0] = lines[0][1:]
    path = folder / "songs.jsonl"
    path.write_text("".join(json.dumps(song, ensure_ascii=False) + "\n" for song in songs), encoding="utf-8")
    return degenerate.measure(path, folder)


@pytest.mark.slow
def test_none_of_eighteen_writers_stands_above_the_truth_on_the_board(
    folder: Path, results: Any, tmp_path: Path
) -> None:
    assert results["scores"]["rhyming characters"]["lyric_structure"]["value"] > 100
    add_to_board(folder / "run", tmp_path, details=False)
    table = build_leaderboard(tmp_path)["tables"][0]
    assert table["headline"] == "lyric_structure_gated"
    rows = {row["label"]: row for row in table["rows"]}
    assert rows.keys() == {*LYRIC_CONTROLS, *degenerate.WRITERS}
    assert next(iter(rows)) == TRUE_LYRICS
    assert rows[TRUE_LYRICS]["kind"] == "control"
    best = rows[TRUE_LYRICS]["mean_rank"]
    for name in degenerate.WRITERS:
        cell = rows[name]["cells"]["lyric_structure_gated"]
        assert rows[name]["kind"] == "ranked"
        assert rows[name]["mean_rank"] == cell["place"] >= best
        if cell["place"] == best:  # a tie, and a mark that says so
            assert TRUE_LYRICS in cell["mark"]
    order = list(rows)
    nonsense = {"rhyming characters", "one syllable", "dictionary words", "permuted lines", "nothing"}
    assert order.index("shuffled true words") < min(map(order.index, nonsense))


def test_none_of_eighteen_writers_stands_above_the_truth(results: Any) -> None:
    rows = degenerate.rows_of(results)
    assert len(degenerate.WRITERS) >= 18
    assert {row.system for row in rows} == {TRUE_LYRICS, *degenerate.WRITERS}
    found = {row.system: row for row in rows}
    true = found[TRUE_LYRICS]
    assert rows[0].system == TRUE_LYRICS
    assert all(degenerate.merit(row, true) <= degenerate.merit(true, true) for row in rows)
    assert true.lyric_structure_gated > 80
    # what one of the scores alone would put first
    assert found["rhyming characters"].lyric_structure_corrected >= true.lyric_structure_corrected
    themes = [row.lyric_theme_similarity or -1.0 for row in (found["the theme, rhyming"], true)]
    assert themes[0] > themes[1]
    for name in ("rhyming characters", "any characters", "characters of the song", "permuted lines", "one syllable",
                 "one word", "one line", "dictionary words", "nothing", "the pattern", "English"):  # fmt: skip
        assert found[name].lyric_structure_gated == 0, name


def test_no_control_stands_above_the_truth_in_any_song(results: Any) -> None:
    """The gated structure of a run, for its controls as for what is judged."""
    values = {name: results["scores"][name]["lyric_structure_gated"]["value"] for name in LYRIC_CONTROLS}
    assert max(values.values()) == values[TRUE_LYRICS]
    assert {results["systems"][name]["role"] for name in LYRIC_CONTROLS} == {"control"}
    zero = {"random characters", "random words", "one character", "echo"}
    assert {name for name, value in values.items() if value == 0} >= zero


def test_the_command_writes_table_and_page(results: Any, tmp_path: Any, monkeypatch: Any, capsys: Any) -> None:
    shutil.copy(degenerate.HERE / "README.md", tmp_path)
    monkeypatch.setattr(degenerate, "HERE", tmp_path)
    monkeypatch.setattr(degenerate, "measure", lambda *_, **__: results)
    monkeypatch.setattr(sys, "argv", ["degenerate", "--songs", str(tmp_path / "none.jsonl")])
    degenerate.main()
    page = (tmp_path / "README.md").read_text(encoding="utf-8")
    assert capsys.readouterr().out.strip() in page
    with (tmp_path / "degenerate.csv").open(encoding="utf-8", newline="") as file:
        assert len(list(csv.DictReader(file))) == 1 + len(degenerate.WRITERS)


def test_the_stored_table_puts_none_above_the_truth() -> None:
    with (degenerate.HERE / "degenerate.csv").open(encoding="utf-8", newline="") as file:
        stored = list(csv.DictReader(file))
    gated = {row["system"]: float(row["lyric_structure_gated"]) for row in stored}
    assert stored[0]["system"] == TRUE_LYRICS
    assert max(gated.values()) == gated[TRUE_LYRICS]
