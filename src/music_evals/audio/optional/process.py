"""Run a worker script of an optional package in a process of its own, and perhaps in an environment of its own."""

from __future__ import annotations

import importlib.metadata
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from music_evals.audio.io import Audio
from music_evals.errors import BackendError
from music_evals.files import cache_folder

TIMEOUT_SEC = 1800


def environment(package: str) -> Path:
    """Return where the environment of a package of its own lies (``benchmarks.parity.backends``); it may not exist."""
    return cache_folder("backends") / package


def installed_version(package: str) -> str:
    """Return the version of a package in its own environment; empty if it is not installed."""
    places = [str(path) for path in environment(package).glob("lib/*/site-packages")]
    return next(
        (distribution.version for distribution in importlib.metadata.distributions(name=package, path=places)), ""
    )


def run_worker(package: str, task: str, audio: Audio, *, wav: bool = False) -> Any:
    """Run ``workers/<package>_worker.py TASK SAMPLES`` and return what it prints as JSON; SAMPLES is .npy or .wav."""
    # The process works in a temporary folder of its own, which is removed with all that the package left in it.
    worker = Path(__file__).parent / "workers" / f"{package}_worker.py"
    with tempfile.TemporaryDirectory() as folder:
        samples = Path(folder, "samples.wav" if wav else "samples.npy")
        if wav:  # as they are: as 16 bits where these hold them all, else as floats
            import soundfile

            scaled = audio.samples.astype(np.float64) * 2**15
            whole = bool((scaled == np.round(scaled)).all() and np.abs(audio.samples).max() < 1)
            content, subtype = (scaled.astype(np.int16), "PCM_16") if whole else (audio.samples, "FLOAT")
            soundfile.write(samples, content, audio.sample_rate, subtype=subtype)
        else:
            np.save(samples, audio.samples)
        python = environment(package) / "bin" / "python" if installed_version(package) else sys.executable
        command = [str(python), str(worker), task, samples.name]
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
