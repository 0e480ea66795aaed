from __future__ import annotations

import dataclasses
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import psutil
import pytest

from music_evals.benchmark.records import read_records
from music_evals.benchmark.rows import PairJob
from music_evals.benchmark.run import Settings, record
from music_evals.benchmark.tasks.preservation.controls import make_controls
from music_evals.benchmark.tasks.preservation.pairs import CONTROLS, Pair, PairSet, pairs_in_folders
from music_evals.errors import BackendError, CorruptRecordsError

Write = Callable[[str, dict[str, str]], Path]
METRICS = ("beat_f_measure", "motif_recall")


@pytest.fixture
def judge(stub_judge: Any) -> Any:
    return stub_judge(METRICS)


@pytest.fixture
def pairs(write_files: Write) -> PairSet:
    reference = write_files("r", {f"{name}.wav": str(number) for number, name in enumerate("abcdef")})
    edits = {"a": "0", "b": "1.5", "c": "undefined", "d": "half", "e": "4.25", "f": "5"}
    return pairs_in_folders(reference, [f"s={write_files('e', {f'{n}.wav': t for n, t in edits.items()})}"])


def run(
    pairs: PairSet,
    path: Path,
    judge: Any,
    *,
    controls: Sequence[Pair] = (),
    variant: str = "corrected",
    progress: Any = None,
    **settings: Any,
) -> list[dict[str, Any]]:
    """Judge in this process, but for `workers`, which are others."""
    settings.setdefault("engine", "local" if "workers" in settings else "serial")
    header = {"task": "preservation", "variant": variant}
    job = PairJob(header, pairs, controls, METRICS, variant, judge, engine="local")
    return record(job, path, Settings(path.parent, **settings), progress=progress)


def scores_of(rows: list[dict[str, Any]]) -> dict[tuple[str, str, str], dict[str, Any]]:
    """Return the last row of every score, without what names it."""
    return {
        (row["system"], row["item"], row["metric"]): {
            key: row[key] for key in ("value", "reason", "error") if key in row
        }
        for row in rows
        if row["kind"] == "score"
    }


def test_every_pair_has_every_metric_once(tmp_path: Path, pairs: PairSet, judge: Any) -> None:
    rows = run(pairs, tmp_path / "records", judge)
    assert rows[0] == {"kind": "run", "task": "preservation", "variant": "corrected"}
    assert len([row for row in rows if row["kind"] == "score"]) == 6 * 2
    found = scores_of(rows)
    assert found["s", "b", "beat_f_measure"] == {"value": 0.5}  # 1 - |1 - 1.5| / 1
    assert found["s", "b", "motif_recall"] == {"value": 0.75}  # 1 - |1 - 1.5| / 2
    assert found["s", "c", "motif_recall"] == {"value": None, "reason": "reference: silent"}
    assert found["s", "d", "beat_f_measure"] == {"value": 1.0}
    assert found["s", "d", "motif_recall"] == {"error": "MissingBackendError: none"}
    kinds = [row["kind"] for row in rows[1:8]]
    assert kinds == ["selection", *["pair"] * 6]
    outlined = [row["content"] for row in rows if row["kind"] == "outline"]
    assert len(outlined) == len(set(outlined)) == 10  # "0" and "5" are on both sides


def test_a_resumed_run_does_not_run_again_what_succeeded(
    tmp_path: Path, pairs: PairSet, judge: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "log"
    monkeypatch.setenv("STUB", "count")
    monkeypatch.setenv("STUB_LOG", str(log))
    path = tmp_path / "records"
    first = run(pairs, path, judge)
    assert len(log.read_text().splitlines()) == 6
    again = run(pairs, path, judge)
    assert [line.split()[1] for line in log.read_text().splitlines()[6:]] == ["d.wav"]  # the one with an error
    assert scores_of(again) == scores_of(first)
    assert len([row for row in again if row["kind"] == "selection"]) == 1


def test_other_bytes_are_compared_again(tmp_path: Path, pairs: PairSet, judge: Any, write_files: Write) -> None:
    path = tmp_path / "records"
    run(pairs, path, judge)
    write_files("e", {"b.wav": "1.25"})
    changed = pairs_in_folders(tmp_path / "r", [f"s={tmp_path / 'e'}"])
    calls: list[tuple[int, int, str]] = []
    rows = run(changed, path, judge, progress=lambda *call: calls.append(call))
    assert sorted(item for _, _, item in calls) == ["b (s)", "d (s)"]
    assert calls[-1][:2] == (6, 6)
    assert scores_of(rows)["s", "b", "beat_f_measure"] == {"value": 0.75}
    assert len([row for row in rows if row["kind"] == "selection"]) == 2


@pytest.mark.slow
def test_a_process_that_dies_costs_its_pair_alone(tmp_path: Path, write_files: Write, judge: Any) -> None:
    names = ["die", "crash", "bug", "unreadable", "1"]
    reference = write_files("r", {f"{name}.wav": "1" for name in names})
    pairs = pairs_in_folders(reference, [f"s={write_files('e', {f'{name}.wav': name for name in names})}"])
    found = scores_of(run(pairs, tmp_path / "records", judge, workers=2))
    assert found["s", "1", "motif_recall"] == {"value": 1.0}
    errors = {name: found["s", name, "motif_recall"]["error"] for name in names[:-1]}
    assert errors["die"].startswith("ParserCrashError: die (s): the process died (exit code 3")
    assert "Segmentation fault" in errors["crash"]
    assert errors["bug"] == "KeyError: 'a bug'"
    assert errors["unreadable"] == "UnreadableFileError: estimate: it is noise"


@pytest.mark.slow
def test_order_and_number_of_processes_change_nothing(tmp_path: Path, pairs: PairSet, judge: Any) -> None:
    def canonical(name: str, chosen: PairSet, workers: int) -> list[str]:
        rows = run(chosen, tmp_path / name, judge, workers=workers, controls=make_controls(chosen.pairs))
        return sorted(json.dumps(row, sort_keys=True) for row in rows if row["kind"] != "sitting")

    turned = dataclasses.replace(pairs, pairs=pairs.pairs[::-1])
    assert canonical("1", pairs, 1) == canonical("turned", turned, 2)
    assert [child for child in psutil.Process().children() if "spawn_main" in " ".join(child.cmdline())] == []


def test_edits_of_one_original_stay_together(
    tmp_path: Path, write_files: Write, judge: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STUB", "count")
    monkeypatch.setenv("STUB_LOG", str(tmp_path / "log"))
    reference = write_files("r", {f"{name}.wav": name for name in "123"})
    edits = [f"{s}={write_files(s, {f'{name}.wav': f'{name}.{s}' for name in '123'})}" for s in "5678"]
    run(pairs_in_folders(reference, edits), tmp_path / "records", judge, workers=1)
    order = [line.split()[1] for line in (tmp_path / "log").read_text().splitlines()]
    assert order == [name for name in ("1.wav", "2.wav", "3.wav") for _ in range(4)]


@pytest.mark.slow
def test_a_killed_run_goes_on_where_it_stood(tmp_path: Path, write_files: Write, stub_judge: Any) -> None:
    names = [f"{number:02d}" for number in range(12)]
    reference = write_files("r", {f"{name}.wav": "1" for name in names})
    estimate = write_files("e", {f"{name}.wav": "kill parent" if name == "07" else "1" for name in names})
    code = (
        "import sys\n"
        f"sys.path.insert(0, {str(Path(sys.modules[stub_judge.__module__].__file__ or '').parent)!r})\n"
        "from pathlib import Path\n"
        "from stub_preservation import StubJudge\n"
        "from music_evals.benchmark.tasks.preservation.pairs import pairs_in_folders\n"
        "from music_evals.benchmark.rows import PairJob\n"
        "from music_evals.benchmark.run import Settings, record\n"
        "from music_evals.benchmark import records\n"
        "records.SHARD_SECONDS = 0\n"  # each score is written as it comes
        f"pairs = pairs_in_folders({str(reference)!r}, [{f's={estimate}'!r}])\n"
        "header = {'task': 'preservation', 'variant': 'corrected'}\n"
        f"job = PairJob(header, pairs, (), {METRICS!r}, 'corrected', StubJudge({METRICS!r}), engine='local')\n"
        f"record(job, Path({str(tmp_path / 'records')!r}), Settings({str(tmp_path)!r}))\n"
    )
    environment = {**os.environ, "STUB_RECORDS": str(tmp_path / "records")}
    killed = subprocess.run([sys.executable, "-c", code], check=False, timeout=120, env=environment)
    assert killed.returncode == -signal.SIGKILL
    (estimate / "07.wav").write_text("1")
    finished = len(scores_of(read_records(tmp_path / "records"))) // 2
    assert 1 <= finished <= 7
    calls: list[tuple[int, int, str]] = []
    rows = run(
        pairs_in_folders(reference, [f"s={estimate}"]),
        tmp_path / "records",
        stub_judge(METRICS),
        progress=lambda *call: calls.append(call),
    )
    assert calls[0] == (finished + 1, 12, f"{finished:02d} (s)")
    assert len(scores_of(rows)) == 12 * 2
    assert all(score == {"value": 1.0} for score in scores_of(rows).values())


def test_another_run_is_refused(tmp_path: Path, pairs: PairSet, judge: Any) -> None:
    path = tmp_path / "records"
    run(pairs, path, judge)
    with pytest.raises(CorruptRecordsError, match="variant was 'corrected' and is now 'paper'"):
        run(pairs, path, judge, variant="paper")
    rows = run(pairs, path, judge, variant="paper", overwrite=True)
    assert rows[0]["variant"] == "paper"


def test_a_judge_that_a_process_does_not_find_ends_the_run(
    tmp_path: Path, pairs: PairSet, judge: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Path(sys.modules[type(judge).__module__].__file__ or "").parent
    monkeypatch.setattr(sys, "path", [place for place in sys.path if place != str(folder)])
    with pytest.raises(BackendError, match=r"cannot start.*No module named 'stub_preservation'"):
        run(pairs, tmp_path / "records", judge, workers=1)


def test_a_first_sitting_without_its_controls_says_nothing_new(
    tmp_path: Path, pairs: PairSet, judge: Any, write_files: Write
) -> None:
    """Pairs, then controls; resumed, and with a pair more."""
    path = tmp_path / "records"

    def selections(chosen: PairSet) -> int:
        header = {"task": "preservation", "variant": "corrected"}
        for controls, later in (((), CONTROLS), (make_controls(chosen.pairs), ())):
            job = PairJob(header, chosen, controls, METRICS, "corrected", judge, engine="local", later=later)
            rows = record(job, path, Settings(path.parent, engine="serial"))
        return len([row for row in rows if row["kind"] == "selection"])

    assert selections(pairs) == 2
    assert selections(pairs) == 2
    write_files("r", {"g.wav": "9"})
    write_files("e", {"g.wav": "9"})
    assert selections(pairs_in_folders(tmp_path / "r", [f"s={tmp_path / 'e'}"])) == 4


def test_controls_draw_no_outlines(tmp_path: Path, pairs: PairSet, judge: Any) -> None:
    rows = run(dataclasses.replace(pairs, pairs=()), tmp_path / "r.jsonl", judge, controls=make_controls(pairs.pairs))
    assert {row["system"] for row in rows if row["kind"] == "score"} == set(CONTROLS)
    assert not [row for row in rows if row["kind"] == "outline"]
