"""The cost of edits on a device is measured with random weights, and a study's hours follow from its calls."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("diffusers")

from benchmarks.editing import gpu

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def tiny_sizes(tmp_path: Path) -> Path:
    windows = {name: json.loads((ROOT / f"models/{name}/config.json").read_text()) for name in ("zeta", "musicongen")}
    family = windows["musicongen"]
    networks = {"width": 16, "n_heads": 2, "hidden": 24, "n_encoder": 1, "n_decoder": 1, "n_feedback": 1}
    sizes = {name: family[name] for name in ("audio_encoder", "text_encoder")}
    sizes |= {"small": family["decoder"], "medium": family["decoder"]}
    sizes |= {"audioldm2": windows["zeta"]["parts"], "refinpaint": networks}
    path = tmp_path / "sizes.json"
    path.write_text(json.dumps(sizes))
    return path


@pytest.mark.slow
@pytest.mark.parametrize("system", ["musicgen_melody", "refinpaint"])
def test_a_row_says_what_an_edit_takes(system: str, tiny_sizes: Path, tmp_path: Path) -> None:
    gpu.main(
        ["--device", "cpu", "--systems", system, "--seconds", "1", "--sizes", str(tiny_sizes), "--out", str(tmp_path)]
    )
    with (tmp_path / "gpu.csv").open(encoding="utf-8", newline="") as file:
        row, *others = csv.DictReader(file)
    assert not others
    assert row["system"] == system
    assert float(row["seconds"]) > 0
    assert row["peak_gib"] == ""
    assert (row["study_hours"] == "") == (system != "refinpaint")


def test_hours_follow_from_the_calls_of_a_study() -> None:
    assert gpu.hours("musicgen", 30.0, 36.0) == pytest.approx(0.2)  # 20 edits, nothing shared
    assert gpu.hours("musicgen", 10.0, 36.0) is None
    # ZETA inverts 107 sources for 696 edits: 182,000 calls of 600 an edit
    assert gpu.hours("zeta", 30.0, 60.0) == pytest.approx(60 * 182_000 / 600 / 3600)
