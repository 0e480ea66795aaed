"""The scripts that measure the platform under load and kill its server, in short, and that they would find a loss."""

from __future__ import annotations

import pytest
from benchmarks.caimap import kill, load
from benchmarks.caimap.people import Kept, lost
from tests.caimap_bench import StudyBench, one_verse

from music_evals.caimap.services import annotating
from music_evals.caimap.storage.tables import TaskRow

pytest.importorskip("uvicorn")


def test_what_is_lost_is_found(bench: StudyBench) -> None:
    bench.songs("s1", "s2")
    task = bench.take(bench.PRO, listens=False).id
    annotating.record(bench.service, bench.PRO, task, [{"kind": "play", "position_sec": 0}])
    annotating.save(bench.service, bench.PRO, task, bench.version(TaskRow, task), {"theme": "2"})
    assert lost(bench.store, [{task: Kept(draft=2, events=1)}]) == []
    assert lost(bench.store, [{task: Kept(draft=1, events=0)}]) == []  # more than was acknowledged may be there
    found = lost(bench.store, [{task: Kept(draft=3, events=3, submitted=True)}, {task + 1: Kept()}])
    assert found == [
        f"task {task}: 2 events",
        f"task {task}: its annotation",
        f"task {task}: draft 3",
        f"task {task + 1}",
    ]
    annotating.submit(bench.service, bench.PRO, task, bench.version(TaskRow, task), one_verse("春眠不觉晓"))
    assert lost(bench.store, [{task: Kept(draft=2, events=1, submitted=True)}]) == []


@pytest.mark.slow
@pytest.mark.slow
def test_a_short_load_is_measured_and_loses_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    load.main(["--seconds", "15", "--people", "3", "--every", "0.2"])  # its status judges the machine's speed too
    printed = capsys.readouterr().out
    assert "errors: none" in printed
    assert "lost: 0 []" in printed
    assert "acknowledged: 0 annotations" not in printed


@pytest.mark.slow
@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_a_killed_server_comes_back_with_what_it_acknowledged(
    database: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert kill.main(["--times", "2", "--people", "3", "--least", "1", "--database", database]) == 0
    printed = capsys.readouterr().out
    assert "left out" in printed or "killed 2 times" in printed
