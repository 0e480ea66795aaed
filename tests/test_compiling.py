"""What numba compiles, for the first time: alone among threads and processes, and with a word where it takes long."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("numba")

CODE = """
from music_evals.compiling import compiled_by_numba

@compiled_by_numba
def six():
    from slow_code import doubled, tripled
    return doubled(2), tripled(2)

print(*six(), *six())
"""
SLOW_CODE = """
import numba

@numba.njit(cache=True)
def doubled(x):
    return 2 * x

@numba.njit(cache=True)
def tripled(x):
    return 3 * x
"""
# each writes when its first run begins and ends; two that overlap show it
SPANS = """
import sys, threading, time
from music_evals.compiling import compiled_by_numba

def span(name):
    @compiled_by_numba
    def run(seconds):
        with open(sys.argv[1], "a") as file:
            print("begin", name, file=file, flush=True)
            time.sleep(seconds)
            print("end", name, file=file, flush=True)
    return run

threads = [threading.Thread(target=span(f"{sys.argv[2]}{number}"), args=[0.2]) for number in range(2)]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""
BEATS = """
import numpy as np
from music_evals.audio.beats import track_beats_librosa
from music_evals.audio.io import Audio
noise = np.random.default_rng(0).uniform(-1, 1, 22050 * 4).astype(np.float32)
print(len(track_beats_librosa(Audio(noise, 22050)).times_sec))
"""


def environment(tmp_path: Path) -> dict[str, str]:
    own = {"NUMBA_CACHE_DIR": str(tmp_path / "code"), "MUSIC_EVALS_CACHE": str(tmp_path / "cache")}
    return {**os.environ, **own, "PYTHONPATH": str(tmp_path)}


@pytest.mark.slow
def test_compiling_is_logged_once_and_only_where_it_happens(tmp_path: Path) -> None:
    (tmp_path / "slow_code.py").write_text(SLOW_CODE)
    warnings = []
    for _ in range(2):
        command = [sys.executable, "-c", CODE]
        done = subprocess.run(
            command, env=environment(tmp_path), capture_output=True, text=True, check=True, timeout=300
        )
        assert done.stdout == "4 6 4 6\n"
        warnings.append(done.stderr.count("\n"))
    assert warnings == [1, 0]


@pytest.mark.slow
def test_first_runs_never_overlap(tmp_path: Path) -> None:
    spans = tmp_path / "spans.txt"
    command = [sys.executable, "-c", SPANS, str(spans)]
    processes = [subprocess.Popen([*command, name], env=environment(tmp_path)) for name in "ab"]
    assert [process.wait(timeout=300) for process in processes] == [0, 0]
    lines = spans.read_text().splitlines()
    assert len(lines) == 8
    for begin, end in zip(lines[::2], lines[1::2], strict=True):
        assert begin.split() == ["begin", end.split()[1]]


def test_later_runs_may_overlap(tmp_path: Path) -> None:
    import threading

    from music_evals.compiling import compiled_by_numba

    both = threading.Barrier(2)

    @compiled_by_numba
    def wait(for_other: bool) -> int:
        return both.wait(timeout=30) if for_other else -1

    assert wait(False) == -1
    threads = [threading.Thread(target=wait, args=[True]) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not both.broken


def test_a_lock_that_cannot_be_made_is_only_warned_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from music_evals import compiling

    (tmp_path / "file").write_text("")
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "file" / "cache"))
    compiling._lock.cache_clear()
    try:
        assert compiling.compiled_by_numba(lambda: 7)() == 7
    finally:
        compiling._lock.cache_clear()
    assert caplog.records[0].levelname == "WARNING"


@pytest.mark.slow  # librosa is compiled, twice half a minute
def test_two_processes_on_a_fresh_machine_leave_a_cache_that_a_third_can_use(tmp_path: Path) -> None:
    command = [sys.executable, "-c", BEATS]
    start = {"env": environment(tmp_path), "stdout": subprocess.PIPE}
    processes = [subprocess.Popen(command, **start) for _ in range(2)]
    outputs = [process.communicate(timeout=600)[0] for process in processes]
    third = subprocess.run(command, **start, check=False)
    assert [process.returncode for process in processes] + [third.returncode] == [0, 0, 0]
    assert outputs[0] == outputs[1] == third.stdout
