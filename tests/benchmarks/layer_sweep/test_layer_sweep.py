"""The layer sweep on a tiny encoder: a probe a layer, a table, a picture, and going on."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
import soundfile

pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
from tests.models.test_music_tagger import song_row  # noqa: E402

from benchmarks.layer_sweep import run  # noqa: E402

RATE = 24000
pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture
def songs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    import torch

    monkeypatch.setenv("MUSIC_EVALS_CACHE", str(tmp_path / "cache"))
    torch.manual_seed(0)
    config = transformers.HubertConfig(
        hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=16, conv_dim=(8,) * 7,
        num_conv_pos_embeddings=8, num_conv_pos_embedding_groups=2,
    )  # fmt: skip
    transformers.HubertModel(config).save_pretrained(tmp_path / "mert")
    transformers.Wav2Vec2FeatureExtractor(sampling_rate=RATE, do_normalize=True).save_pretrained(tmp_path / "mert")
    (tmp_path / "audio").mkdir()
    rng = np.random.default_rng(0)
    rows = [song_row(index) for index in range(4)]
    for row in rows:
        soundfile.write(tmp_path / "audio" / f"{row['id']}.wav", rng.standard_normal(RATE) * 0.1, RATE)
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    recipe = {
        "model_type": "music_tagger",
        "model": {"hidden_size": 8},
        "data": {
            "dataset": "rows.jsonl", "audio": "audio",
            "encoder": {"name": "mert-95m", "model": str(tmp_path / "mert"), "window_seconds": 1.0},
        },
        "training": {"epochs": 3, "checkpoint_every": 3, "batch_size": 4, "learning_rate": 0.01},
    }  # fmt: skip
    (tmp_path / "train.yaml").write_text(json.dumps(recipe))
    return tmp_path


@pytest.mark.slow
def test_every_layer_has_its_probe_and_its_place(songs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = songs / "out"
    command = ["--layers", "0-2", "--out", str(out), "--recipe", str(songs / "train.yaml"), "--set", "data.test=any"]
    run.main([*command, "--device", "cpu"])
    assert capsys.readouterr().out.count("F1") == 6  # three layers, two groups
    with (out / "layers.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {row["layer"] for row in rows} == {"0", "1", "2"}
    assert {(row["group"], row["songs"]) for row in rows} == {("professional", "4"), ("amateur", "4")}
    cells = [float(row["f1"]) for row in rows if (row["layer"], row["group"]) == ("1", "amateur")]
    assert cells[-1] == pytest.approx(np.mean(cells[:-1]), abs=1e-4)
    assert "F1 of tags" in (out / "layers.svg").read_text()
    weights = [(out / f"layer_{layer:02d}" / "model.safetensors").read_bytes() for layer in range(3)]
    assert len(set(weights)) == 3, "each layer says something else"
    before = (out / "layers.csv").read_bytes()
    run.main([*command, "--device", "cpu"])
    assert (out / "layers.csv").read_bytes() == before


def test_a_sweep_needs_songs_to_judge_by(songs: Path) -> None:
    with pytest.raises(ValueError, match=r"data\.test"):
        run.sweep(songs / "train.yaml", [0], songs / "out", [], device="cpu")


@pytest.mark.parametrize(("text", "layers"), [("0-2", [0, 1, 2]), ("3, 1", [1, 3]), ("0-1,1,5", [0, 1, 5])])
def test_layers_are_numbers_and_ranges(text: str, layers: list[int]) -> None:
    assert run.layers_of(text) == layers
    with pytest.raises(ValueError, match="layers are numbers"):
        run.layers_of("a-b")
