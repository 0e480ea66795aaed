"""Edits of real recordings, made by ffmpeg, SoX and Rubber Band as their table says."""

from __future__ import annotations

import functools
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import soundfile
from real_recordings import Recording

PROGRAMS = {"ffmpeg": ("ffmpeg", "-version"), "sox": ("sox", "--version"), "rubberband": ("rubberband", "--version")}
"""Program -> what makes it say its version."""

PACKAGES = "apt install ffmpeg sox rubberband-cli"
WHITE_NOISE_DBFS = 10 * np.log10(1 / 3)  # RMS of SoX's white noise, which is uniform between -1 and 1


def missing_programs() -> list[str]:
    """Return the programs that are not installed."""
    return [name for name in PROGRAMS if shutil.which(name) is None]


def program_versions() -> dict[str, str]:
    """Return name -> version."""
    versions = {}
    for name, command in PROGRAMS.items():
        said = subprocess.run(command, capture_output=True, text=True, check=False)
        first = (said.stdout + said.stderr).strip().splitlines()[0]
        number = re.search(r"\d+(\.\d+)+\S*", first)
        versions[name] = number[0] if number else first
    return versions


def edits_of(plan: Mapping[str, Any]) -> list[tuple[str, float]]:
    """Return every (kind, strength) of the table."""
    return [(kind, strength) for kind, facts in plan["kinds"].items() for strength in facts["strengths"]]


def make_excerpt(plan: Mapping[str, Any], recording: Recording, path: Path, target: Path) -> Path:
    """Make the excerpt that is the original of all edits; nothing is done where it is already there."""
    words = {"recording": path, "start": recording.start_sec, "length": recording.length_sec}
    return _make(plan["excerpt"], {**words, "source": target}, target)


def make_edit(plan: Mapping[str, Any], kind: str, strength: float, source: Path, target: Path) -> Path:
    """Make one edit of an excerpt; nothing is done where it is already there."""
    commands = plan["kinds"][kind]["commands"]
    if isinstance(commands, Mapping):
        commands = commands[strength]
    length, level = _measured(source)
    words = {
        "source": source, "edit": target, "strength": strength, "minus_strength": -strength,
        "length": length, "quarter": length / 4, "half": length / 2, "three_quarters": length * 3 / 4,
        "cut_from": length * (1 - strength) / 2, "cut_to": length * (1 + strength) / 2,
        "noise_gain": level - strength - WHITE_NOISE_DBFS,
    }  # fmt: skip
    return _make(commands, words, target)


@functools.lru_cache(maxsize=1)
def _measured(path: Path) -> tuple[float, float]:
    """Return the length in seconds and the RMS in dBFS."""
    samples, rate = soundfile.read(path)
    return len(samples) / rate, float(10 * np.log10(np.mean(samples**2)))


def _make(commands: Sequence[str], words: Mapping[str, Any], target: Path) -> Path:
    """Run the commands; the target appears whole or not at all."""
    if target.exists():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        made = Path(folder) / target.name
        role = "edit" if "edit" in words else "source"
        filled = {**words, role: made, "scratch": Path(folder) / "scratch"}
        for command in commands:
            arguments = [word.format_map(filled) for word in shlex.split(command)]
            done = subprocess.run(arguments, capture_output=True, text=True, check=False)
            if done.returncode:
                raise RuntimeError(f"{shlex.join(arguments)} failed: {done.stderr.strip()}")
        made.replace(target)
    return target
