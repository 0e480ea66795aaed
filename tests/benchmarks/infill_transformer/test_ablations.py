"""The table of ablations: what a row says, and that a training is taken up where it stood."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from benchmarks.musib.studies import take

from benchmarks.infill_transformer import ablations
from music_evals.models.training import recipe

torch = pytest.importorskip("torch")

SONGS = ["a", "a", "a", "b", "c"]


def test_every_change_is_one_of_the_recipe() -> None:
    path = ablations.ROOT / "models/infill_transformer/train.yaml"
    whole = recipe.read_sections(path)
    for name, changes in ablations.ABLATIONS.items():
        changed = recipe.read_sections(path, changes)
        assert (changed != whole) == (name != ablations.WHOLE)


def test_a_song_counts_once_by_song() -> None:
    np.testing.assert_allclose(ablations.by_song(np.array([0.0, 0.3, 0.6, 1.0, 0.5]), SONGS), [0.3, 1.0, 0.5])


def test_a_row_holds_the_difference_from_the_whole() -> None:
    rng = np.random.default_rng(0)
    songs = [f"song {n % 12}" for n in range(60)]
    whole = rng.random(60)
    row = ablations.row_of("without agreement", "training", whole - 0.2 + 0.01 * rng.random(60), whole, songs)
    assert row["changes"] == "model.votes=false"
    assert row["difference"] == pytest.approx(-0.195, abs=0.01)
    assert row["difference_low"] < row["difference"] < row["difference_high"] < 0
    assert row["p_value"] < 0.01
    assert row["difference_by_song"] == pytest.approx(row["difference"], abs=0.01)


def test_the_section_shows_no_difference_of_the_whole_from_itself() -> None:
    whole = np.linspace(0, 1, 5)
    rows = [ablations.row_of(name, "training", whole, whole, SONGS) for name in (ablations.WHOLE, "another seed")]
    lines = ablations.section(rows, "tiny", 100).splitlines()
    assert lines[-2].split("|")[4].strip() == ""
    assert lines[-1].split("|")[4].strip().startswith("+0.000")


@pytest.mark.slow
def test_trains_and_compares(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    few = ("training.epoch_contexts=32", "model.model_size=16", "model.n_layers=1")
    changed = {name: (*ablations.ABLATIONS[name], *few) for name in (ablations.WHOLE, "without pointers")}
    monkeypatch.setattr(ablations, "ABLATIONS", changed)
    load = ablations.load_items
    monkeypatch.setattr(ablations, "load_items", lambda *place: take(load(*place), range(0, 200, 20)))
    arguments = ["--steps", "1", "--only", "without pointers", "--out", str(tmp_path)]
    ablations.main(arguments)
    rows = (tmp_path / "ablations.csv").read_text(encoding="utf-8").splitlines()
    assert [row.partition(",")[0] for row in rows[1:3]] == [ablations.WHOLE, "without pointers"]
    assert len(rows) == 8  # two decodings and three rules beside
    ablations.main(arguments)
    logs = [path.read_text(encoding="utf-8").splitlines() for path in tmp_path.glob("*/run/log.csv")]
    assert [len(log) for log in logs] == [2, 2]  # nothing is trained twice
    assert (tmp_path / "ablations.csv").read_text(encoding="utf-8").splitlines() == rows
