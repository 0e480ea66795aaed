"""A word while numba compiles, and none where it takes the code from its cache."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("numba")

CODE = """
import sys
from music_evals.audio.extraction import _telling_of_compiling
from slow_code import doubled, tripled
with _telling_of_compiling():
    print(doubled(2), tripled(2))
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


def test_compiling_is_told_of_once_and_only_where_it_happens(tmp_path: Path) -> None:
    (tmp_path / "slow_code.py").write_text(SLOW_CODE)
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": str(tmp_path)}
    told = []
    for _ in range(2):
        command = [sys.executable, "-c", CODE]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=300)
        assert done.stdout == "4 6\n"
        told.append(done.stderr)
    assert told == ["compiling the extractors, once on this machine; this takes up to half a minute\n", ""]
