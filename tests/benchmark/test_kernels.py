"""A run that is resumed on another kind of processor goes on, and says what made its scores."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from tests.benchmark.record_files import shards

from music_evals.benchmark.contents import caveats
from music_evals.benchmark.engines import ENGINES, Answered, Unit
from music_evals.benchmark.records import RecordStore, read_records, rows_in_memory
from music_evals.benchmark.results import build_results
from music_evals.benchmark.rows import PairJob
from music_evals.benchmark.run import Job, Settings, record
from music_evals.benchmark.score_table import UNKNOWN, ScoreMatrix
from music_evals.benchmark.scores import read_scores
from music_evals.benchmark.tables import text_report
from music_evals.benchmark.tasks.inpainting import task as inpainting
from music_evals.benchmark.tasks.inpainting.report import render_report
from music_evals.benchmark.tasks.preservation.pairs import PairSet, pairs_in_folders
from music_evals.benchmark.tasks.preservation.task import PRESERVATION
from music_evals.numerics import kernels

Elsewhere = Callable[[str], None]
SCORE = {"kind": "score"}
OF_TWO = "scores were made with several kinds of processor kernels, so last digits may differ: A; B"


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> Elsewhere:
    return lambda name: monkeypatch.setattr("music_evals.benchmark.run.kernels", lambda: name)


def row(name: str) -> dict[str, str]:
    return {"kind": "kernels", "kernels": name}


def kernels_of(rows: list[dict[str, Any]]) -> list[str]:
    """Return the kernels that made scores, as they are read from the rows of a run."""
    rows = [{"metric": "m", **each} if each["kind"] == "score" else each for each in rows]
    return list(ScoreMatrix.read(rows_in_memory(rows), ["m"], 1, lambda table: np.zeros(len(table), int)).kernels)


def test_only_kernels_that_made_a_score_count() -> None:
    assert kernels_of([row("A"), row("B"), SCORE, SCORE, row("C"), SCORE, row("B"), SCORE]) == ["B", "C"]
    assert kernels_of([SCORE, row("A"), SCORE]) == [UNKNOWN, "A"]
    assert kernels_of([]) == []


def test_scores_of_other_machines_say_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nodes of a cluster may have processors of several kinds."""
    made_by = {"a": "", "b": "B", "c": "B", "d": kernels()}

    class Letters(Job):
        header: ClassVar = {"task": "letters"}
        size = 4
        work: Any = None

        def left(self, _: Any) -> list[Unit]:
            return [Unit(name, name) for name in made_by]

        def rows(self, unit: Unit, answer: Any) -> list[dict[str, Any]]:
            return [{"kind": "score", "item": unit.label, "value": answer}]

    def elsewhere(units: Any, _: Any, **__: Any) -> Any:
        return (Answered(unit, 1.0, made_by[unit.payload]) for unit in units)

    monkeypatch.setitem(ENGINES, "serial", elsewhere)
    rows = record(Letters(), tmp_path / "records", Settings(tmp_path))
    told = [row.get("kernels", row.get("item")) for row in rows if row["kind"] in {"kernels", "score"}]
    assert told == [kernels(), "a", "B", "b", "c", kernels(), "d"]
    assert kernels_of(rows) == [kernels(), "B"]


class TestPairs:
    @pytest.fixture
    def pairs(self, write_files: Callable[[str, dict[str, str]], Path]) -> PairSet:
        reference = write_files("r", {"a.wav": "0", "b.wav": "1"})
        return pairs_in_folders(reference, [f"s={write_files('e', {'a.wav': '0', 'b.wav': 'half'})}"])

    def judged(self, pairs: PairSet, path: Path, stub_judge: Any) -> list[dict[str, Any]]:
        scores = ("beat_f_measure", "motif_recall")
        receipt = {
            "variant": "corrected",
            "metrics": list(scores),
            "companions": [],
            "dataset": {"id": "x", "config": None, "split": None},
            "extractors": {"features": {}},
            "versions": {},
        }
        header = {"task": "preservation", **receipt}
        job = PairJob(header, pairs, (), scores, "corrected", stub_judge(scores))
        return record(job, path, Settings(path.parent))

    def test_a_run_goes_on_and_says_so(
        self, tmp_path: Path, pairs: PairSet, stub_judge: Any, elsewhere: Elsewhere
    ) -> None:
        path = tmp_path / "records"
        elsewhere("A")
        assert kernels_of(self.judged(pairs, path, stub_judge)) == ["A"]
        elsewhere("B")
        rows = self.judged(pairs, path, stub_judge)  # "half" failed on a metric: it is tried again
        assert [each["kernels"] for each in rows if each["kind"] == "kernels"] == ["A", "B"]
        results = build_results(read_scores(rows, PRESERVATION), PRESERVATION, n_resamples=20)
        assert results["kernels"] == ["A", "B"]
        assert OF_TWO in caveats(results)
        rows = self.judged(pairs, path, stub_judge)  # on "B" again, which is said already
        assert [each["kernels"] for each in rows if each["kind"] == "kernels"] == ["A", "B"]

    def test_where_nothing_is_left_nothing_is_written(
        self, tmp_path: Path, pairs: PairSet, stub_judge: Any, elsewhere: Elsewhere
    ) -> None:
        path = tmp_path / "records"
        pairs = dataclasses.replace(pairs, pairs=pairs.pairs[:1])
        self.judged(pairs, path, stub_judge)
        before = shards(path)
        elsewhere("B")
        self.judged(pairs, path, stub_judge)
        assert shards(path) == before


@pytest.mark.slow
@pytest.mark.usefixtures("undrawn")
def test_inpainting_goes_on_and_says_so(settings: dict[str, Any], fake_model: Path, elsewhere: Elsewhere) -> None:
    chosen = inpainting.Settings(**settings, models=[str(fake_model)], baselines="copy_past,silence")
    elsewhere("A")
    whole = inpainting.INPAINTING.run(chosen)
    assert whole.results["kernels"] == ["A"]
    assert "processor kernels" not in text_report(whole.results)
    # what a run that was killed after its first chunk leaves
    path = settings["out"] / "records"
    rows = read_records(path)
    first = next(number for number, each in enumerate(rows) if each["kind"] == "score")
    header = {key: value for key, value in rows[0].items() if key != "kind"}
    with RecordStore(path, header, overwrite=True) as records:
        records.append(rows[1 : first + 1])
    elsewhere("B")
    resumed = inpainting.INPAINTING.run(chosen)
    assert resumed.results["kernels"] == ["A", "B"]
    assert resumed.results["tables"] == whole.results["tables"]
    assert f"- {OF_TWO}" in text_report(resumed.results)
    assert f"- {OF_TWO}" in (settings["out"] / "table.md").read_text()
    assert OF_TWO in render_report(resumed.results, resumed.scores)
