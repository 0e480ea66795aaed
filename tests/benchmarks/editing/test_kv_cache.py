"""The timing of the key-value cache writes its table and compares what it times."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from benchmarks.editing import kv_cache  # noqa: E402
from music_evals.editing.refinpaint_networks import RefinPaintNetworks  # noqa: E402


def test_table_and_page_are_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small = {"n_heads": 2, "hidden": 16, "n_encoder": 1, "n_decoder": 2, "max_tokens": 24}
    monkeypatch.setattr(kv_cache, "RefinPaintNetworks", lambda **given: RefinPaintNetworks(**{**given, **small}))
    page = Path(kv_cache.HERE / "README.md").read_text(encoding="utf-8")
    (tmp_path / "README.md").write_text(page, encoding="utf-8")
    kv_cache.main(["--turns", "2", "--steps", "24", "--width", "16", "--out", str(tmp_path)])
    rows = list(csv.DictReader(io.StringIO((tmp_path / "kv_cache.csv").read_text(encoding="utf-8"))))
    assert [(row["turn"], row["rows"], row["steps"]) for row in rows] == [("0", "24", "24"), ("1", "24", "24")]
    for row in rows:
        assert float(row["ratio"]) == pytest.approx(
            24 * float(row["step_seconds"]) / float(row["cached_seconds"]), rel=0.02
        )
    assert "Median:" in (tmp_path / "README.md").read_text(encoding="utf-8")


def test_other_choices_without_the_cache_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    inpainter = RefinPaintNetworks(
        width=8, n_heads=1, hidden=8, n_encoder=1, n_decoder=1, n_feedback=1, max_tokens=12
    ).inpainter
    monkeypatch.setattr(kv_cache, "step_anew", lambda *_: -1)
    with torch.no_grad(), pytest.raises(ValueError, match="without it"):
        kv_cache.turn(inpainter, 0, 3)
