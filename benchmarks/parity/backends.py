"""Install what the authors' variants need, each package into an environment of its own.

Usage: python -m benchmarks.parity.backends [essentia] [madmom] [msaf] [musecpeval]

Without a name all four, below ``~/.cache/music_evals/backends`` or ``$MUSIC_EVALS_CACHE/backends``: extractors find
the first three there; the last is what `musecpeval-0.3` is compared with. Licences: essentia AGPL-3.0; madmom
BSD-3-Clause, its weights CC BY-NC-SA 4.0; msaf and musecpeval MIT. Exit code 1 if one cannot be installed.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from typing import Final

from music_evals.audio.optional.process import environment, installed_version

__all__ = ["PINS", "install", "main"]

PINS: Final[dict[str, tuple[tuple[str, ...], ...]]] = {
    "essentia": (("essentia==2.1b6.dev1389", "numpy==2.4.6"),),
    # it is built here, and its build needs what it does not name
    "madmom": (("setuptools<81", "cython", "numpy==2.4.6", "wheel"), ("--no-build-isolation", "madmom==0.16.1")),
    "msaf": (("msaf==0.1.80", "librosa==0.11.0", "numpy==2.4.6"),),
    "musecpeval": (("musecpeval==0.3.0", "msaf==0.1.80", "librosa==0.11.0", "numpy==2.2.6"),),
}
"""Package -> arguments of ``pip install``, one call after the other."""


def install(package: str) -> str:
    """Make the environment of a package anew; return why that failed, empty where it did not."""
    python = str(environment(package) / "bin" / "python")
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    steps = [[sys.executable, "-m", "venv", "--clear", str(environment(package))]]
    for step in [*steps, *([*pip, *pins] for pins in PINS[package])]:
        done = subprocess.run(step, capture_output=True, text=True, check=False)
        if done.returncode:
            return "\n".join((done.stderr or done.stdout).strip().splitlines()[-5:]) or f"exit status {done.returncode}"
    return ""


def main(arguments: Sequence[str]) -> int:
    """Install what is named and print what came of it."""
    if not set(arguments) <= set(PINS):
        sys.stderr.write(str(__doc__))
        return 2
    failures = {name: install(name) for name in arguments or PINS}
    for name, why in failures.items():
        told = f"not installed: {why}" if why else f"{installed_version(name)} in {environment(name)}"
        sys.stdout.write(f"{name}: {told}\n")
    return int(any(failures.values()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
