"""Ctrl-C at any time: one line, exit code 130, and nothing that goes on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from music_evals import cli

# it has begun when it answers Ctrl-C itself; before, that is Python's own
START = """
import signal, sys
from music_evals.cli import main

def begin(number, handler, set_handler=signal.signal):
    signal.signal = set_handler
    set_handler(number, handler)
    print("begun", flush=True)

signal.signal = begin
sys.exit(main())
"""


def interrupted(code: str, *arguments: str, after: float, group: bool = True) -> tuple[int, str]:
    """Start a command, send it Ctrl-C so many seconds after it has begun, and return its exit code and stderr."""
    command = [sys.executable, "-c", code, *arguments]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        time.sleep(after)
        (os.killpg if group else os.kill)(process.pid, signal.SIGINT)
        _, err = process.communicate(timeout=60)
    return process.returncode, err


@pytest.mark.parametrize("comes", [True, False])
def test_an_import_that_makes_another_error_of_it(comes: bool) -> None:
    """numpy's does: what is interrupted while a module of C is imported ends as an `ImportError`."""
    code = (
        "import os, signal, sys\nfrom music_evals import cli\nfrom music_evals.cli import verbs\n"
        "def run(arguments):\n    try:\n"
        f"        {comes} and os.kill(os.getpid(), signal.SIGINT)\n"
        "    except KeyboardInterrupt:\n        pass\n"
        "    raise ImportError('datetime')\n"
        "verbs.run = run\nsys.exit(cli.main())"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    lines = ended.stderr.splitlines()
    assert (ended.returncode, lines[-1]) == ((130, cli.INTERRUPTED) if comes else (1, "ImportError: datetime"))
    assert not comes or len(lines) == 1


def test_an_interrupt_while_the_streams_are_set_up() -> None:
    """A stream whose encoder is not made takes no text any more: the interrupt waits until they are all there."""
    code = (
        "import codecs, os, signal, sys\nfrom music_evals import cli\n"
        "encoder = codecs.lookup(sys.stderr.encoding).incrementalencoder\nmake = encoder.__init__\n"
        "calls = []\ndef interrupt(*arguments):\n    calls.append(1)\n"
        "    len(calls) == 2 and os.kill(os.getpid(), signal.SIGINT)  # that of stderr\n    make(*arguments)\n"
        "encoder.__init__ = interrupt\nsys.exit(cli.main())"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (130, cli.INTERRUPTED + "\n")


@pytest.mark.parametrize("after", [0, 0.02, 0.1, 0.3, 0.7, 1.5])
def test_a_run_ends_in_one_line(after: float, tiny_dataset: Path, tmp_path: Path) -> None:
    run = [
        "inpainting", "--dataset", str(tiny_dataset), "--config", "musib", "--baselines", "all", "--seeds", "100",
        "--engine", "local", "--workers", "2", "--no-report", "--out", str(tmp_path / "out"),
    ]  # fmt: skip
    code, err = interrupted(START, *run, after=after, group=after != 0.3)
    assert code == 130, err
    assert err.splitlines()[-1].endswith(cli.INTERRUPTED), err
    assert err.count(cli.INTERRUPTED) == 1
    for word in ("Traceback", "ignored", "Error", "leaked"):
        assert word not in err


HOSTILE = """
import sys, time
from music_evals import cli
from music_evals.cli import verbs

class Lost:
    def __del__(self):  # an interrupt that comes here is seen by no caller
        print("begun", flush=True)
        time.sleep(60)

def deaf(arguments):
    print("begun", flush=True)
    while True:
        try:
            time.sleep(60)
        except KeyboardInterrupt:
            pass

def lost(arguments):
    Lost()
    time.sleep(60)

def late(arguments):  # the work is done: threads, or the interpreter, take their time to end
    import atexit
    atexit.register(lambda: (print("begun", flush=True), time.sleep(60)))
    return 1

cli.GRACE_SEC = 1
verbs.run = {"deaf": deaf, "lost": lost, "late": late}[sys.argv.pop()]
sys.exit(cli.main())
"""


@pytest.mark.parametrize(("what", "code", "lines"), [("deaf", 130, 1), ("lost", 130, 1), ("late", 1, 0)])
def test_an_interrupt_that_nobody_heeds_ends_the_process_too(what: str, code: int, lines: int) -> None:
    assert interrupted(HOSTILE, what, after=0.1) == (code, f"{cli.INTERRUPTED}\n" * lines)


@pytest.mark.slow
def test_a_process_in_the_background_is_not_interrupted() -> None:
    """A shell that runs a script starts it with interrupts ignored."""
    code = "import signal, sys; signal.signal(signal.SIGINT, signal.SIG_IGN); print('begun', flush=True)\n"
    code += "from music_evals.cli import main; sys.exit(main())"
    assert interrupted(code, "list", "tasks", after=0)[0] == 0


def test_an_interrupt_within_a_process_of_others_is_a_code(monkeypatch: pytest.MonkeyPatch) -> None:
    from music_evals.cli import verbs

    def interrupt(*_: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(verbs, "run", interrupt)
    held, hook = signal.getsignal(signal.SIGINT), sys.unraisablehook
    assert cli.main(["list", "tasks"]) == 130
    assert (signal.getsignal(signal.SIGINT), sys.unraisablehook) == (held, hook)
