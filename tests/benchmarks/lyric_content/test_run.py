import csv
import shutil
import sys

import pytest

from benchmarks.lyric_content import run


@pytest.fixture(scope="module")
def rows():
    songs = run.read_songs(run.HERE / "no such file")
    return {(row.score, row.lyrics): row for row in [*run.diversities(songs, 0), *run.themes(songs, "char-ngrams", 0)]}


def test_repetition_is_seen_and_scrambling_is_not(rows):
    found = {lyrics: row for (score, lyrics), row in rows.items() if score == "lyric_diversity"}
    true = found["true lyrics"]
    for name in ("two lines of each section in a loop", "one line of each section in all places",
                 "two characters of each line over and over", "one character in all places"):  # fmt: skip
        assert found[name].value < true.value - 0.2
        assert found[name].beside < true.beside
    scrambled = "all characters of the song in another order"
    assert found[scrambled].value >= true.value
    repeated = {lyrics: row.value for (score, lyrics), row in rows.items() if score == "lyric_line_repetition"}
    assert repeated[scrambled] < repeated["true lyrics"] < repeated["one character in all places"]


def test_a_theme_counts_less_the_less_of_its_lyrics_is_left(rows):
    steps = [row.value - row.beside for (score, _), row in rows.items() if score == "lyric_theme_similarity"]
    assert len(steps) == len(run.SHARES)
    assert steps[0] > 0.03
    assert steps[0] > steps[2] > steps[4]
    assert abs(steps[4]) < 0.02


def test_the_command_writes_table_and_page(tmp_path, monkeypatch, capsys):
    shutil.copy(run.HERE / "README.md", tmp_path)
    monkeypatch.setattr(run, "HERE", tmp_path)
    monkeypatch.setattr(sys, "argv", ["run", "--songs", str(tmp_path / "none.jsonl")])
    run.main()
    with (tmp_path / "results.csv").open(encoding="utf-8", newline="") as file:
        assert {row["score"] for row in csv.DictReader(file)} >= {"lyric_diversity", "lyric_theme_similarity"}
    page = (tmp_path / "README.md").read_text(encoding="utf-8")
    assert "the demo songs of caimd" in page
    assert "encoder `char-ngrams`" in page
    assert capsys.readouterr().out.count("|") > 50
