"""Programs that do a step: what they say when they fail, and that nothing of them outlives their time."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from music_evals.errors import BackendError
from music_evals.preparation.programs import run_program


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def test_a_program_that_ends_well_ends(tmp_path: Path) -> None:
    run_program(python("open('made', 'w').close()"), "it", timeout_sec=30, folder=str(tmp_path))
    assert (tmp_path / "made").exists()


def test_a_program_has_nothing_to_read() -> None:
    run_program(python("import sys; sys.exit(len(sys.stdin.read()))"), "it", timeout_sec=30)


def test_the_last_line_that_was_said_is_in_the_message() -> None:
    code = "import sys; print('first'); print('no such model', file=sys.stderr); sys.exit(3)"
    with pytest.raises(BackendError, match=r"^it failed with exit status 3: no such model; install one$"):
        run_program(python(code), "it", timeout_sec=30, hint="install one")
    with pytest.raises(BackendError, match=r"exit status 1: no message$"):
        run_program(python("raise SystemExit(1)"), "it", timeout_sec=30)


@pytest.mark.slow
def test_what_a_program_started_is_ended_with_it(tmp_path: Path) -> None:
    child = "import time; time.sleep(60)"
    code = (
        "import pathlib, subprocess, sys, time\n"
        f"started = subprocess.Popen([sys.executable, '-c', {child!r}])\n"
        f"pathlib.Path({str(tmp_path / 'child')!r}).write_text(str(started.pid))\n"
        "time.sleep(60)"
    )
    with pytest.raises(BackendError, match=r"it did not sing within 1\.5 s; it was ended"):
        run_program(python(code), "it", timeout_sec=1.5, task="sing")
    process = Path("/proc") / (tmp_path / "child").read_text()
    if not Path("/proc/self").exists():
        pytest.skip("this system does not show processes")
    for _ in range(50):
        if not process.exists() or (process / "stat").read_text().split()[2] == "Z":
            return
        time.sleep(0.1)
    os.kill(int(process.name), 9)
    pytest.fail("the child of the program lives on")


def test_a_program_that_cannot_be_run_is_named(tmp_path: Path) -> None:
    (tmp_path / "it").write_text("no program")
    with pytest.raises(BackendError, match="it does not run"):
        run_program([str(tmp_path / "it")], "it", timeout_sec=30)
