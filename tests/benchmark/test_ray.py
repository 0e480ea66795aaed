"""The engine of many machines: equal digits, and nothing lost or counted twice, whatever happens to the cluster."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

import music_evals
from music_evals.benchmark.engines import Answered, Failed, Unit, on_ray
from music_evals.benchmark.engines import process as engine_process
from music_evals.benchmark.records import read_records, records_at
from music_evals.benchmark.run import Settings, record
from music_evals.cli import main
from music_evals.errors import BackendError, InvalidInputError

pytest.importorskip("ray", reason="needs the extra scale")

pytestmark = pytest.mark.slow  # the services of three nodes take both processors of a small machine

WORK = '''
import os
import signal
import time
from pathlib import Path

from music_evals.benchmark.engines import Failed, Unit
from music_evals.benchmark.run import Job


class Doubling:
    """Doubles numbers; some words end the process, or what runs it."""

    def begin(self, folder):
        assert list(folder.iterdir()) == []
        self.begun = os.getpid()

    def __call__(self, payload):
        if payload == "die":
            print("out of luck")
            os._exit(3)
        if payload == "hang":
            time.sleep(600)
        if payload == "bug":
            raise KeyError("a bug")
        if payload == "end the worker":
            os.kill(os.getppid(), signal.SIGKILL)
            time.sleep(600)
        if payload == "process":
            return os.getpid(), os.environ["OMP_NUM_THREADS"], self.begun, os.getcwd()
        if payload == "slow":
            time.sleep(0.2)
            return os.getpid(), os.getppid()
        if isinstance(payload, tuple):
            return [self(one) for one in payload]
        return 2 * payload


class Slowly(Doubling):
    """Takes its time, and writes down where it works."""

    def __init__(self, log):
        self.log = log

    def __call__(self, number):
        with Path(self.log).open("a") as log:
            log.write(f"{os.getpid()} {os.getppid()}\\n")
        time.sleep(0.2)
        return 2 * number


class Doubles(Job):
    """Forty numbers."""

    header = {"task": "doubles", "variant": "corrected"}
    size = 40

    def __init__(self, log):
        self.work = Slowly(log)

    work = None

    def left(self, rows):
        there = {row["item"] for row in rows if row["kind"] == "score" and "error" not in row}
        return [Unit(n, f"n{n}", f"place {n // 4}") for n in range(self.size) if f"n{n}" not in there]

    def rows(self, unit, answer):
        what = {"error": answer.reason} if isinstance(answer, Failed) else {"value": answer}
        return [{"kind": "score", "item": unit.label, **what}]
'''


@pytest.fixture(scope="module")
def module_path(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder that the workers of the cluster import from, with the module ``ray_work``."""
    folder = tmp_path_factory.mktemp("work")
    (folder / "ray_work.py").write_text(WORK)
    sys.path.insert(0, str(folder))
    yield folder
    sys.path.remove(str(folder))
    sys.modules.pop("ray_work", None)


class Simulated:
    """A cluster of two nodes of one processor, of which the head is one."""

    def __init__(self) -> None:
        from ray.cluster_utils import Cluster

        self.cluster = Cluster(
            initialize_head=True,
            head_node_args={
                "num_cpus": 1,
                "include_dashboard": False,
                "include_log_monitor": False,
                "no_monitor": True,
                "object_store_memory": 2**28,
            },
        )
        self.nodes: list[Any] = []
        self.complete()

    @property
    def address(self) -> str:
        return str(self.cluster.address)

    def complete(self) -> None:
        if not self.nodes:
            self.nodes.append(self.cluster.add_node(num_cpus=1, object_store_memory=2**28))
        self.cluster.wait_for_nodes()

    def lose_a_node(self) -> None:
        self.cluster.remove_node(self.nodes.pop(), allow_graceful=False)


HASTY = {
    "RAY_idle_worker_killing_time_threshold_ms": "600000",  # a process that waits is the next actor: it starts for 1 s
    "RAY_health_check_period_ms": "500",  # a node that is gone is noticed
}


@pytest.fixture(scope="module")
def simulated(module_path: Path) -> Iterator[Simulated]:
    """The cluster, which this process has joined."""
    import ray

    with pytest.MonkeyPatch.context() as patch:
        for name, value in HASTY.items():
            patch.setenv(name, value)
        cluster = Simulated()
        ray.init(address=cluster.address, log_to_driver=False)
        yield cluster
        ray.shutdown()
        cluster.cluster.shutdown()


@pytest.fixture
def cluster(simulated: Simulated) -> Simulated:
    """The cluster with all its nodes."""
    simulated.complete()
    return simulated


def units(*payloads: Any, place: str = "") -> list[Unit]:
    return [Unit(payload, f"unit {number}", place) for number, payload in enumerate(payloads)]


def doubling() -> Any:
    import ray_work  # type: ignore[import-not-found]

    return ray_work.Doubling()


def by_label(found: list[Answered]) -> dict[str, Any]:
    """Return the answers; each unit has one."""
    assert max(Counter(one.unit.label for one in found).values()) == 1
    return {one.unit.label: one.answer for one in found}


def wait_until(true: Callable[[], Any], seconds: float = 180) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.05)


# the contract of an engine


def test_every_unit_has_its_answer(cluster: Simulated, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that ends its worker costs itself alone, too, which Ray itself would begin again for ever."""
    monkeypatch.setattr(engine_process, "UNIT_TIMEOUT_SEC", 5.0)
    parts = [Unit(1, "part 0"), Unit("die", "part 1"), Unit(3, "part 2")]
    whole = Unit((1, "die", 3), "whole", size=3, parts=tuple(parts))
    asked = units(*range(8), "bug", "die", "hang", "end the worker")
    found = by_label(list(on_ray([*asked, whole], doubling(), workers=2)))
    assert [found.pop(f"unit {n}") for n in range(8)] == [2 * n for n in range(8)]
    assert found.pop("unit 8") == Failed("KeyError: 'a bug'")
    assert found.pop("unit 9") == Failed("ParserCrashError: unit 9: the process died (exit code 3: out of luck)")
    assert found.pop("unit 10") == Failed("ParserCrashError: unit 10: the process did not finish within 5 s")
    assert "3 workers were lost with it" in found.pop("unit 11").reason
    assert found == {
        "part 0": 2,
        "part 1": Failed("ParserCrashError: part 1: the process died (exit code 3: out of luck)"),
        "part 2": 6,
    }


def test_units_of_one_place_meet_in_one_process(cluster: Simulated, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    asked = [Unit("process", f"{place} {n}", place) for n in range(5) for place in "abcd"]
    processes: dict[str, set[int]] = {}
    for unit, (worker, threads, begun, folder), kernels in on_ray(asked, doubling(), workers=2):
        assert threads == "1"
        assert begun == worker != os.getpid()
        assert folder == str(tmp_path)  # so that relative paths are found
        assert kernels
        processes.setdefault(unit.place, set()).add(worker)
    assert [len(found) for found in processes.values()] == [1] * 4
    assert len(set.union(*processes.values())) == 2


def test_other_packages_on_a_node_are_refused(cluster: Simulated) -> None:
    with pytest.raises(BackendError, match=r"numpy [\d.]+ and not 0.1; .* install the same packages on all nodes"):
        list(on_ray(units(1), doubling(), workers=1, versions={"numpy": "0.1"}))


def test_more_workers_than_there_is_room_for_are_refused(cluster: Simulated) -> None:
    with pytest.raises(InvalidInputError, match="room for 2; ask for at most 2"):
        list(on_ray(units(1), doubling(), workers=3))


def test_another_cluster_than_the_one_that_was_joined_is_refused(cluster: Simulated) -> None:
    with pytest.raises(InvalidInputError, match="this process has joined the cluster"):
        list(on_ray(units(1), doubling(), address="10.0.0.1:6379"))


# losses in mid-run


def test_a_lost_node_or_worker_costs_nothing_and_a_killed_process_its_unit_alone(
    cluster: Simulated, capsys: pytest.CaptureFixture[str]
) -> None:
    found: list[Answered] = []
    for one in on_ray(units(*["slow"] * 40), doubling()):
        found.append(one)
        if len(found) == 6:
            cluster.lose_a_node()
        elif len(found) == 16:
            os.kill(one.answer[1], signal.SIGKILL)  # what runs the process that worked on it
        elif len(found) == 28:
            assert not any(isinstance(other.answer, Failed) for other in found)
            os.kill(one.answer[0], signal.SIGKILL)
    failed = [one.answer.reason for one in found if isinstance(one.answer, Failed)]
    assert len(by_label(found)) == 40
    assert len(failed) <= 1
    assert all("the process died" in reason for reason in failed)
    assert capsys.readouterr().out == ""  # what Ray says of it goes to standard error


DRIVER = """
import sys
sys.path.insert(0, {folder!r})
from pathlib import Path
from ray_work import Doubles
from music_evals.benchmark import records as record_files
from music_evals.benchmark.run import Settings, record
record_files.SHARD_SECONDS = 0  # each answer is written as it comes
out, how = Path({out!r}), {how!r}
record(Doubles(str(out / "log")), out / "records", Settings(out, engine="ray", **how))
"""


def started(out: Path, module_path: Path, address: str, workers: int | None = None) -> subprocess.Popen[bytes]:
    """Start a run that writes below a folder; where it works stands in its ``log``."""
    out.mkdir()
    script = DRIVER.format(folder=str(module_path), out=str(out), how={"ray_address": address, "workers": workers})
    return subprocess.Popen([sys.executable, "-c", script], stderr=subprocess.DEVNULL)


def scores_in(path: Path) -> int:
    there = records_at(path)
    return sum(row["kind"] == "score" for row in read_records(there)) if there else 0


def test_a_run_whose_driver_is_killed_goes_on_where_it_stood(
    cluster: Simulated, tmp_path: Path, module_path: Path
) -> None:
    from ray_work import Doubles

    out = tmp_path / "out"
    records, log = out / "records", out / "log"
    with started(out, module_path, cluster.address) as driver:
        wait_until(lambda: scores_in(records) >= 5)
        driver.kill()
    there = scores_in(records)
    assert 5 <= there < 40
    left = {int(pid) for line in log.read_text().splitlines() for pid in line.split()}
    wait_until(lambda: not any(psutil.pid_exists(pid) for pid in left))  # of a driver that is gone, nothing works on
    rows = record(Doubles(str(log)), records, Settings(out, engine="ray"))
    values = [(row["item"], row["value"]) for row in rows if row["kind"] == "score"]
    assert sorted(values) == sorted((f"n{n}", 2 * n) for n in range(40))  # each once
    assert list(rows) == list(read_records(records))


# equal digits

TUNES = {
    "dorian": "X:1\nT:a\nM:4/4\nL:1/8\nK:Ddor\nD2EF G2AB|c2BA G2FE|D2EF G2AB|A4 D4|",
    "major": "X:1\nT:b\nM:3/4\nL:1/8\nK:G\nG2B2d2|g2f2e2|d2B2G2|A4 G2|",
    "minor": "X:1\nT:c\nM:4/4\nL:1/8\nK:Amin\nA2cB AGE2|G2AB cdeg|a2ge dcBA|B2G2 A4|",
}


@pytest.fixture
def tunes(write_files: Any) -> dict[str, Any]:
    """Settings that compare two systems on three tunes."""
    edits = {name: text.replace("G2", "A2") for name, text in TUNES.items()}
    others = {name: text.replace("c2", "e2").replace("d2", "B2") for name, text in TUNES.items()}
    folders = {"r": TUNES, "one": edits, "two": others}
    paths = {
        folder: write_files(folder, {f"{name}.abc": text for name, text in texts.items()})
        for folder, texts in folders.items()
    }
    return {"reference": paths["r"], "estimates": [f"one={paths['one']}", f"two={paths['two']}"]}


def comparable(outcome: Any) -> tuple[Any, list[str]]:
    """Return the results, and the records as a set."""
    results = json.loads(outcome.files["results"].read_text())
    rows = read_records(outcome.files["records"])
    return results, sorted(json.dumps(row, sort_keys=True) for row in rows if row["kind"] != "sitting")


def same_digits(task: str, folder: Path, *, local: int = 0, **settings: Any) -> None:
    def judge(name: str, **how: Any) -> tuple[Any, list[str]]:
        return comparable(music_evals.run(task, folder / name, n_resamples=50, report=False, **settings, **how))

    expected = judge("serial", engine="serial")
    assert len(expected[1]) > 10
    assert judge("ray", engine="ray") == expected
    if local:
        assert judge("local", engine="local", workers=local) == expected


def test_preservation_of_scores_has_the_same_digits(cluster: Simulated, tmp_path: Path, tunes: dict[str, Any]) -> None:
    same_digits("preservation", tmp_path, **tunes)


def test_lyrics_have_the_same_digits(cluster: Simulated, tmp_path: Path, in_root: Path) -> None:
    same_digits("lyrics", tmp_path, dataset="caimd", config="demo", limit=6)


def test_preservation_of_recordings_has_the_same_digits(cluster: Simulated, tmp_path: Path, in_root: Path) -> None:
    same_digits("preservation", tmp_path, local=2, dataset="known_edits", config="small", limit=1)


def test_inpainting_has_the_same_digits(cluster: Simulated, tmp_path: Path, tiny_dataset: Path) -> None:
    same_digits("inpainting", tmp_path, dataset=str(tiny_dataset), n_seeds=2, limit=20)


def test_descriptions_have_the_same_digits(cluster: Simulated, tmp_path: Path, in_root: Path) -> None:
    same_digits("descriptions", tmp_path, local=2, dataset="caimd", config="demo", encoder="char-ngrams", limit=10)


def test_a_study_of_one_unit_has_the_same_digits(cluster: Simulated, tmp_path: Path, in_root: Path) -> None:
    same_digits("discrepancy", tmp_path, dataset="caimd", config="demo", encoder="char-ngrams", n_permutations=50)


# a cluster of its own


AS_BEFORE = """
import os
import signal
import sys
from music_evals import cli
from music_evals.benchmark.records import RecordStore
os.environ.pop("RAY_USAGE_STATS_ENABLED")
before, during, append = signal.getsignal(signal.SIGTERM), set(), RecordStore.append
def noting(*rows):
    during.add(os.environ.get("RAY_USAGE_STATS_ENABLED"))
    append(*rows)
RecordStore.append = noting
assert cli.main(sys.argv[1:]) == 0
assert "0" in during, "Ray Data would poll for figures to send"
assert (os.environ.get("RAY_USAGE_STATS_ENABLED"), signal.getsignal(signal.SIGTERM)) == (None, before)
"""


@pytest.fixture(scope="module")
def ended(module_path: Path, tmp_path_factory: pytest.TempPathFactory) -> list[psutil.Process]:
    """All processes of two runs that were ended, by Ctrl-C and by a kill, while they worked."""
    folder, children = tmp_path_factory.mktemp("ended"), []
    with contextlib.ExitStack() as stack:
        running = {
            end: stack.enter_context(started(folder / end.name, module_path, "local", workers=1))
            for end in (signal.SIGINT, signal.SIGKILL)
        }

        def at_work() -> list[signal.Signals]:
            return [end for end in running if scores_in(folder / end.name / "records") >= 2]

        while running:
            wait_until(at_work)
            for end in at_work():
                driver = running.pop(end)
                own = psutil.Process(driver.pid).children(recursive=True)
                assert any("raylet" in child.name() for child in own)
                children += own
                driver.send_signal(end)
    return children


@pytest.mark.usefixtures("ended")  # whose agents tell a head that is gone for a minute: it passes meanwhile
def test_without_an_address_a_cluster_is_started_and_ended(
    tmp_path: Path, in_root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It leaves its process as it was, and prints what a run without it prints."""
    how = ["lyrics", "--dataset", "caimd", "--config", "demo", "--limit", "6", "--resamples", "20", "--json"]
    assert main([*how, "--engine", "serial", "--out", str(tmp_path / "serial")]) == 0
    how += ["--engine", "ray", "--workers", "2", "--out", str(tmp_path / "ray")]
    environment = {name: value for name, value in os.environ.items() if name != "RAY_ADDRESS"}
    with subprocess.Popen(
        [sys.executable, "-c", AS_BEFORE, *how], stdout=subprocess.PIPE, text=True, env=environment
    ) as ran:
        children: set[psutil.Process] = set()
        while ran.poll() is None:
            with contextlib.suppress(psutil.NoSuchProcess):
                children.update(psutil.Process(ran.pid).children(recursive=True))
            time.sleep(0.2)
        assert ran.stdout is not None
        assert ran.stdout.read() == capsys.readouterr().out
        assert ran.returncode == 0
    _, alive = psutil.wait_procs(children, timeout=20)
    assert alive == []


def test_a_run_that_is_ended_leaves_nothing_running(ended: list[psutil.Process]) -> None:
    _, alive = psutil.wait_procs(ended, timeout=120)
    assert alive == []
