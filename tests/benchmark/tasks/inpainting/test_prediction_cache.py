"""What a model answered once is not asked again, and never taken for the answer to anything else."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from music_evals.benchmark.run import Settings as RunSettings
from music_evals.benchmark.run import record
from music_evals.benchmark.tasks.inpainting import runner
from music_evals.benchmark.tasks.inpainting.items import load_items
from music_evals.benchmark.tasks.inpainting.runner import InpaintingJob
from music_evals.benchmark.tasks.inpainting.systems import baseline_system, load_model
from music_evals.benchmark.tasks.inpainting.task import INPAINTING, Settings
from music_evals.files import Store


@pytest.fixture
def asked(fake_model: Path, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many items the fake model is asked for at a time; likelihoods count as well."""
    import fake_plugin

    counts: list[int] = []
    for name in ("inpaint", "nll"):
        method = getattr(fake_plugin.Fake, name)

        def counting(self: Any, contexts: Any, _method: Any = method, **options: Any) -> Any:
            counts.append(len(contexts))
            return _method(self, contexts, **options)

        monkeypatch.setattr(fake_plugin.Fake, name, counting)
    return counts


@pytest.fixture
def judge(tiny_dataset: Path, fake_model: Path, tmp_path: Path) -> Callable[..., list[dict[str, Any]]]:
    """Judge the fake model, and return what is recorded of predictions and scores."""
    items = load_items(str(tiny_dataset), "musib", "test")

    def run(name: str, folder: Path | None = None, **job: Any) -> list[dict[str, Any]]:
        systems = job.pop("systems", None) or [load_model(fake_model, temperature=job.pop("temperature", None))]
        held = None if folder is None else Store(folder)
        made = InpaintingJob(items.head(job.pop("limit", None)), systems, cache=held, **{"seeds": [0, 1], **job})
        settings = RunSettings(tmp_path / name, engine="serial")  # what is asked is counted in this process
        rows = record(made, tmp_path / name / "records", settings)
        return [row for row in rows if row["kind"] in {"prediction", "score"}]

    return run


def test_another_run_asks_nothing_and_finds_equal_digits(judge: Any, asked: list[int], tmp_path: Path) -> None:
    plain = judge("plain")
    once = sum(asked)
    assert once == 3 * 70  # two seeds and the likelihoods
    assert judge("first", tmp_path / "cache") == plain
    assert sum(asked) == 2 * once
    assert judge("again", tmp_path / "cache") == plain
    official = judge("official", tmp_path / "cache", variant="official")
    baseline = baseline_system("copy_past", None)
    beside = judge("beside", tmp_path / "cache", systems=[baseline, load_model(_model())])
    assert sum(asked) == 2 * once
    assert [row for row in beside if row["system"] == "fake"] == plain
    assert [row["middle"] for row in official if "middle" in row] == [row["middle"] for row in plain if "middle" in row]
    assert len(list((tmp_path / "cache").rglob("*.entry"))) == 3 * 2  # chunks; baselines are not kept


def _model() -> Path:
    return Path(sys.modules["fake_plugin"].__file__).parent / "fake_model"


@pytest.mark.slow
def test_nothing_else_is_taken_for_an_answer(
    judge: Any, asked: list[int], tmp_path: Path, fake_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def again(name: str, **changes: Any) -> int:
        before = sum(asked)
        found = judge(name, tmp_path / "cache", **changes)
        new = sum(asked) - before
        assert found == judge(f"plain {name}", **changes)
        return new

    assert again("first") == 3 * 70
    assert again("none") == 0
    assert again("seed", seeds=[0, 2]) == 70
    assert again("temperature", temperature=0.5) == 3 * 70
    assert again("fewer", limit=66) == 3 * 2  # the first chunk is the same
    for entry in (tmp_path / "cache").rglob("*.entry"):
        entry.write_bytes(entry.read_bytes()[:-1])
    assert again("damaged") == 3 * 70
    (fake_model / "model.safetensors").write_bytes(b"other weights")
    assert again("weights") == 3 * 70
    monkeypatch.setattr(runner, "kernels", lambda: "another kind of processor")
    assert again("kernels") == 3 * 70


@pytest.mark.slow
def test_what_fails_is_not_kept(judge: Any, asked: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import fake_plugin

    works = fake_plugin.Fake.inpaint

    def fail(*_: object, **__: object) -> None:
        message = "out of memory"
        raise RuntimeError(message)

    monkeypatch.setattr(fake_plugin.Fake, "inpaint", fail)
    rows = judge("failed", tmp_path / "cache")
    assert all(row["error"] == "RuntimeError: out of memory" for row in rows if row["metric"] != "inpainting_nll")
    monkeypatch.setattr(fake_plugin.Fake, "inpaint", works)
    asked.clear()
    assert not [row for row in judge("again", tmp_path / "cache") if "error" in row]
    assert sum(asked) == 2 * 70


@pytest.mark.slow
def test_a_run_with_a_cache_is_the_same_run(settings: dict[str, Any], fake_model: Path, tmp_path: Path) -> None:
    settings |= {"models": [fake_model], "baselines": "none", "report": False}
    outcome = INPAINTING.run(Settings(**settings, cache=tmp_path / "cache"))
    plain = INPAINTING.run(Settings(**settings))  # resumes it: the header is the same
    assert plain.results == outcome.results
    assert Store(tmp_path / "cache").size() > 0
