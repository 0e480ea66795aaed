"""Run a worker script of an optional package in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from music_evals.audio.io import Audio
from music_evals.errors import BackendError

__all__ = ["run_worker"]

TIMEOUT_SEC = 1800


def run_worker(package: str, task: str, audio: Audio) -> Any:
    """Run ``workers/<package>_worker.py TASK SAMPLES.npy`` and return what it prints as JSON."""
    # The process works in a temporary folder of its own, which is removed with all that the package left in it.
    worker = Path(__file__).parent / "workers" / f"{package}_worker.py"
    with tempfile.TemporaryDirectory() as folder:
        np.save(Path(folder) / "samples.npy", audio.samples)
        command = [sys.executable, str(worker), task, "samples.npy"]
        try:
            done = subprocess.run(  # noqa: S603 - our own script
                command, cwd=folder, capture_output=True, text=True, timeout=TIMEOUT_SEC, check=False
            )
        except subprocess.TimeoutExpired as error:
            raise BackendError(
                f"{package} took more than {TIMEOUT_SEC} s for a recording of {audio.duration_sec:.0f} s"
            ) from error
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise BackendError(f"{package} failed with exit status {done.returncode}: {reason}")
    last = (done.stdout.strip().splitlines() or [""])[-1]  # the packages print messages of their own before
    try:
        return json.loads(last)
    except json.JSONDecodeError as error:
        raise BackendError(f"{package} ended without a result; its last line is {last[:100]!r}") from error
