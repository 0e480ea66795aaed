"""Engines: equal answers wherever the work is done, and one unit lost by a process that dies or hangs."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from music_evals.benchmark.engines import ENGINES, Failed, Unit, local, serial
from music_evals.benchmark.engines import process as engine_process
from music_evals.errors import BackendError

WORK = '''
import ctypes
import os
import time
from pathlib import Path


class Doubling:
    """Doubles numbers; some words end the process, each in its own way."""

    def begin(self, folder):
        assert list(folder.iterdir()) == []
        self.begun = os.getpid()

    def __call__(self, payload):
        if payload == "die":
            print("out of luck")
            os._exit(3)
        if payload == "leave":
            os._exit(0)
        if payload == "crash":
            ctypes.string_at(0)
        if payload == "hang":
            time.sleep(600)
        if payload == "bug":
            raise KeyError("a bug")
        if payload == "process":
            return os.getpid(), os.environ["OMP_NUM_THREADS"], self.begun
        if isinstance(payload, tuple):
            return [self(one) for one in payload]
        return 2 * payload
'''


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    (tmp_path / "doubling_work.py").write_text(WORK)
    monkeypatch.syspath_prepend(tmp_path)
    import doubling_work  # type: ignore[import-not-found]

    yield doubling_work.Doubling()
    sys.modules.pop("doubling_work")


def units(*payloads: Any, place: str = "") -> list[Unit]:
    return [Unit(payload, f"unit {number}", place) for number, payload in enumerate(payloads)]


def workers_left() -> list[psutil.Process]:
    return [one for one in psutil.Process().children(recursive=True) if "spawn_main" in " ".join(one.cmdline())]


@pytest.mark.parametrize("delay", [0.0, 0.05, 0.2])
def test_an_interrupt_of_a_terminal_is_left_to_the_parent(
    work: Any, delay: float, capfd: pytest.CaptureFixture[str]
) -> None:
    """It reaches all processes of the terminal, also while they still import what they need."""

    def interrupt() -> None:
        end = time.monotonic() + 20
        while not (found := workers_left()) and time.monotonic() < end:
            time.sleep(0.001)
        time.sleep(delay)
        for process in found:
            with contextlib.suppress(psutil.NoSuchProcess):  # on a fast machine it has done its work by now
                process.send_signal(signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    answers = [answered.answer for answered in local(units(1, 2), work)]
    thread.join()
    assert answers == [2, 4]
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(("name", "workers"), [("serial", 1), ("serial", 3), ("local", 3)])
def test_every_engine_gives_each_unit_its_answer(work: Any, name: str, workers: int) -> None:
    asked = units(*range(10), "bug")
    found = {unit.label: answer for unit, answer, _ in ENGINES[name](asked, work, workers=workers)}
    assert found == {f"unit {n}": 2 * n for n in range(10)} | {"unit 10": Failed("KeyError: 'a bug'")}
    assert list(ENGINES[name]([], work, workers=workers)) == []


def test_a_process_that_ends_costs_its_unit_alone(work: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_process, "UNIT_TIMEOUT_SEC", 2.0)
    asked = units(1, "die", "crash", 4, "hang", 6, 7)
    found = [one.answer for one in sorted(local(asked, work, workers=2), key=lambda one: one.unit.label)]
    assert [found[place] for place in (0, 3, 5, 6)] == [2, 8, 12, 14]
    assert found[1] == Failed("ParserCrashError: unit 1: the process died (exit code 3: out of luck)")
    assert found[2] == Failed("ParserCrashError: unit 2: the process died (Segmentation fault)")
    assert found[4] == Failed("ParserCrashError: unit 4: the process did not finish within 2 s")
    assert workers_left() == []


def test_a_process_that_leaves_in_order_is_noticed_at_once(work: Any) -> None:
    """Some native libraries end a process with exit code 0, which a pool may take for an end that it asked for."""
    start = time.monotonic()
    found = {unit.label: answer for unit, answer, _ in local(units("leave", 2), work)}
    assert found == {"unit 0": Failed("ParserCrashError: unit 0: the process died (exit code 0)"), "unit 1": 4}
    assert time.monotonic() - start < 60


@pytest.mark.slow
def test_of_units_that_die_none_is_lost_or_told_twice(work: Any) -> None:
    """A process that dies before it was heard of is the hardest case of a pool."""
    asked = units(*(["die", 1] * 12))
    found = {unit.label: answer for unit, answer, _ in local(asked, work, workers=2)}
    assert len(found) == 24
    assert sum(isinstance(answer, Failed) for answer in found.values()) == 12


@pytest.mark.slow
def test_parts_of_a_unit_that_dies_are_tried_one_by_one(work: Any) -> None:
    parts = units(1, "die", 3)
    whole = Unit((1, "die", 3), "whole", size=3, parts=tuple(parts))
    found = [(unit.label, answer) for unit, answer, _ in local([whole], work)]
    assert [label for label, _ in found] == ["unit 0", "unit 1", "unit 2"]
    assert [answer for _, answer in found if not isinstance(answer, Failed)] == [2, 6]


def test_units_of_one_place_meet_in_one_process(work: Any) -> None:
    asked = [unit for place in "ab" for unit in units(*["process"] * 5, place=place)]
    asked = asked[::2] + asked[1::2]
    places: dict[str, set[int]] = {}
    order: list[str] = []
    for unit, (process, threads, begun), _ in local(asked, work, workers=2):
        assert threads == "1"
        assert begun == process != os.getpid()  # begun once, in the process itself
        places.setdefault(unit.place, set()).add(process)
    assert min(map(len, places.values())) == 1
    for unit, _, _ in serial([dataclasses.replace(unit, payload=1) for unit in asked], work):
        order.append(unit.place)
    assert order == ["a"] * 5 + ["b"] * 5


def test_a_run_that_is_left_ends_its_processes(work: Any) -> None:
    answers = local(units(1, "hang", "hang"), work, workers=2)
    assert next(answers)[1] == 2
    assert workers_left()
    answers.close()
    assert workers_left() == []


def test_work_that_cannot_be_found_ends_the_run(work: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "path", [place for place in sys.path if place != str(tmp_path)])
    with pytest.raises(BackendError, match=r"cannot start: .*No module named 'doubling_work'"):
        list(local(units(1), work))


SCRIPT = """
import sys
sys.path.insert(0, {folder!r})
print("once")
from doubling_work import Doubling
from music_evals.benchmark.engines import Unit, local
for unit, answer, _ in local([Unit(payload, "one") for payload in {payloads!r}], Doubling(), workers=2):
    print(answer, flush=True)
"""


@pytest.mark.slow
def test_a_script_needs_no_guard(work: Any, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.format(folder=str(tmp_path), payloads=[1, 1]))
    ran = subprocess.run([sys.executable, str(script)], check=True, capture_output=True, text=True, timeout=120)
    assert ran.stdout.split() == ["once", "2", "2"]


@pytest.mark.slow
def test_processes_end_with_a_parent_that_is_killed(work: Any, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.format(folder=str(tmp_path), payloads=[1, "hang", "hang"]))
    with subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        assert [parent.stdout.readline().strip() for _ in range(2)] == ["once", "2"]
        children = psutil.Process(parent.pid).children(recursive=True)
        assert len(children) >= 2
        parent.send_signal(signal.SIGKILL)
    _, alive = psutil.wait_procs(children, timeout=20)
    assert alive == []


def test_the_time_that_a_unit_takes_besides_its_work(work: Any, record_property: pytest.RecordProperty) -> None:
    start = time.perf_counter()
    assert sum(1 for _ in local(units(*range(200)), work)) == 200
    record_property("local_seconds_200_units", time.perf_counter() - start)  # told, not asserted
