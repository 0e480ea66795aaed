"""Programs of others that do a step: run without a shell, ended as a whole when their time is over."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from collections.abc import Sequence

from music_evals.errors import BackendError

_MAX_OUTPUT = 1_000_000  # bytes of the output of a program that are read


def run_program(
    command: Sequence[str], name: str, *, timeout_sec: float, folder: str | None = None, task: str = "", hint: str = ""
) -> None:
    """Run a program to its end."""
    # a group of its own: when its time is over, or we are interrupted, all that it started is ended with it
    with tempfile.TemporaryFile() as messages:
        try:
            process = subprocess.Popen(  # noqa: S603 - a program by name, without a shell
                command, cwd=folder, stdin=subprocess.DEVNULL, stdout=messages, stderr=messages, start_new_session=True
            )
        except OSError as error:
            raise BackendError(f"{name} does not run ({error.strerror}); check {command[0]}") from error
        try:
            status = process.wait(timeout=timeout_sec)
        except subprocess.TimeoutExpired as error:
            raise BackendError(f"{name} did not {task or 'end'} within {timeout_sec:g} s; it was ended") from error
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        messages.seek(0, os.SEEK_END)
        messages.seek(max(0, messages.tell() - _MAX_OUTPUT))
        lines = messages.read().decode(errors="replace").strip().splitlines() or ["no message"]
    if status:
        raise BackendError(f"{name} failed with exit status {status}: {lines[-1]}{'; ' if hint else ''}{hint}")
