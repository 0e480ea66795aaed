"""How many functions a score lies deep: no more than the limits of `tools/shape.toml`, which only fall."""

from __future__ import annotations

import runpy
import tomllib
from pathlib import Path

import pytest
from tools import shape, trace

pytestmark = pytest.mark.slow

DEPTH = tomllib.loads(shape.CONFIG.read_text(encoding="utf-8"))["depth"]


def test_no_route_is_deeper_than_its_limit() -> None:
    counts = trace.count_all()
    deeper = {name: (count, DEPTH["limit"][name]) for name, count in counts.items() if count > DEPTH["limit"][name]}
    assert not deeper, f"route -> counted and limit; python tools/trace.py --route NAME lists the functions: {deeper}"
    assert counts.keys() == DEPTH["limit"].keys() >= DEPTH["target"].keys()
    assert all(DEPTH["limit"][name] <= count for name, count in DEPTH["baseline"].items())


def test_functions_are_counted_in_all_and_before_the_metric(tmp_path: Path) -> None:
    """Bodies of classes, comprehensions, other packages and `audio/` are not."""
    (tmp_path / "metrics").mkdir()
    (tmp_path / "audio").mkdir()
    (tmp_path / "run.py").write_text(
        "class A:\n    def go(self, score, heard):\n        [helper() for _ in 'ab']\n        heard()\n"
        "        score()\n        after()\ndef helper(): return sorted('ba', key=lambda c: c)\ndef after(): ...\n"
    )
    (tmp_path / "metrics" / "rhythm.py").write_text("def score(): ...\n")
    (tmp_path / "audio" / "beats.py").write_text("def heard(): ...\n")
    names = {name: runpy.run_path(str(tmp_path / name)) for name in ("run.py", "metrics/rhythm.py", "audio/beats.py")}
    with trace.Trace(tmp_path) as entered:
        names["run.py"]["A"]().go(names["metrics/rhythm.py"]["score"], names["audio/beats.py"]["heard"])
    assert list(entered.entered.values()) == [
        "run.py: A.go",
        "run.py: helper",
        "metrics/rhythm.py: score",
        "run.py: after",
    ]
    assert entered.counts() == {"functions": 4, "files": 2, "functions_before": 2, "files_before": 1}
