"""A corpus of toy pieces, and the folder of a toy model."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.benchmark.tasks.style_transfer.toy_style import Toy, toy

from music_evals import protocols
from music_evals.datasets.style_pieces import PieceFacts, features, row_of


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """A data set of whole pieces."""
    from datasets import Dataset

    folder = tmp_path / "toy_pieces"
    splits = {"train": range(3), "test": range(3, 6)}
    for split, seeds in splits.items():
        rows = [row_of(toy(seed), PieceFacts(f"toy{seed}", "toy", f"tune{seed}", melody="melody")) for seed in seeds]
        (folder / "data").mkdir(parents=True, exist_ok=True)
        Dataset.from_list(rows, features=features()).to_parquet(folder / "data" / f"{split}-00000.parquet")
    (folder / "README.md").write_text(
        "---\nconfigs:\n- config_name: toy\n  default: true\n  data_files:\n"
        '  - {split: train, path: "data/train-*.parquet"}\n  - {split: test, path: "data/test-*.parquet"}\n---\n'
    )
    return folder


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of a model whose class is `Toy`."""
    monkeypatch.setitem(protocols.STYLE_TRANSFERS, "toy", "tests.benchmark.tasks.style_transfer.toy_style:Toy")
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps({"model_type": "toy"}))
    (folder / "model.safetensors").write_bytes(b"weights")
    Toy.calls = 0
    return folder
