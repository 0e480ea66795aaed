"""The choice of temperature and nucleus: who is told from the truth, and how surely."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")
from benchmarks.infill_transformer import sampling
from music_evals.annotations import Tokens
from music_evals.benchmark.tasks.inpainting.items import ItemSet
from music_evals.models.infill_transformer import InfillTransformer, InfillTransformerConfig

N_SONGS, WINDOWS = 12, 4


def melodies(seed: int) -> Tokens:
    """Random walks of quarters with an eighth here and there, (n, 384)."""
    rng = np.random.default_rng(seed)
    n = N_SONGS * WINDOWS
    tokens = np.full((n, 384), 128, dtype=np.uint8)
    pitches = 60 + np.cumsum(rng.integers(-2, 3, (n, 128)), axis=1).clip(-12, 12)
    onsets = rng.random((n, 128)) < 0.4
    onsets[:, ::2] = True
    rows, halves = np.nonzero(onsets)
    tokens[rows, halves * 3] = pitches[rows, halves]
    return tokens


@pytest.fixture
def items() -> ItemSet:
    ids = tuple(f"{song}-{window}" for song in range(N_SONGS) for window in range(WINDOWS))
    return ItemSet("made", None, "validation", ids, tuple(one.partition("-")[0] for one in ids), melodies(0))


def test_the_same_law_is_not_told_apart_and_one_pitch_is(items: ItemSet) -> None:
    same = sampling.scored([melodies(seed)[:, 144:240] for seed in range(1, 4)], items)
    assert same["interval_divergence"] < same["interval_divergence_limit"]
    assert abs(same["repeated_note_rate"] - same["true_repeated_note_rate"]) < 0.1
    assert sampling.scored([items.middles], items)["within"]
    monotone = np.full((len(items), 96), 128, dtype=np.uint8)
    monotone[:, ::6] = 60
    found = sampling.scored([monotone], items)
    assert not found["within"]
    assert found["interval_divergence"] > found["interval_divergence_limit"]
    assert found["repeated_note_rate"] > 0.9


def test_power_grows_with_the_share_of_wrong_songs(items: ItemSet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampling, "TRIALS", 12)
    wrong = np.full((len(items), 96), 128, dtype=np.uint8)
    wrong[:, ::6] = 60
    seen = sampling.power("interval_divergence", items, melodies(1)[:, 144:240], wrong)
    assert seen[sampling.SHARES[0]] <= seen[sampling.SHARES[-1]]
    assert seen[sampling.SHARES[-1]] > 0.9


def test_chooses_the_highest_note_f1_within(items: ItemSet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampling, "TEMPERATURES", (0.8, 1.0))
    monkeypatch.setattr(sampling, "NUCLEI", (1.0,))
    monkeypatch.setattr(sampling, "drawn", lambda model, _: [np.full((1, 96), int(model.temperature * 10))])
    scores = {8: {"note_f1": 0.4, "within": False}, 10: {"note_f1": 0.3, "within": True}}
    monkeypatch.setattr(sampling, "scored", lambda middles, _: scores[int(middles[0][0, 0])])
    model = InfillTransformer(InfillTransformerConfig(size="tiny"))
    rows, best = sampling.choose(model, items)
    assert [row["note_f1"] for row in rows] == [0.4, 0.3]
    assert best is not None
    assert best["temperature"] == 1.0
    scores[10]["within"] = False
    assert sampling.choose(model, items)[1] is None


def test_writes_what_was_chosen(tmp_path: Path, items: ItemSet, monkeypatch: pytest.MonkeyPatch) -> None:
    InfillTransformer(InfillTransformerConfig(size="tiny")).save_pretrained(tmp_path)
    row = {"temperature": 0.9, "top_p": 0.95, "note_f1": 0.3}
    monkeypatch.setattr(sampling, "choose", lambda *_: ([row], row))
    monkeypatch.setattr(sampling, "load_items", lambda *_: items)
    sampling.main([str(tmp_path), "--choose", "--write"])
    config = json.loads((tmp_path / "config.json").read_text(encoding="utf-8"))
    assert (config["temperature"], config["top_p"]) == (0.9, 0.95)


def test_nothing_is_chosen_on_test(tmp_path: Path) -> None:
    with pytest.raises(SystemExit):
        sampling.main([str(tmp_path), "--choose", "--split", "test"])
