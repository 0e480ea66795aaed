"""Compiled code of the extractors: made once, then copied, so that no two processes ever write one cache.

librosa's inner loops are compiled by numba at their first use, which takes half a minute; later processes read the
result from a cache. Processes that fill one cache together have been seen to die, so each gets a copy of its own.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import platform
import shutil
from pathlib import Path

from music_evals.benchmark.versions import package_versions
from music_evals.files import cache_folder

__all__ = ["cache_home", "keep_cache", "use_cache"]

LOGGER = logging.getLogger(__name__)


def cache_home() -> Path:
    """Return where compiled code is kept for the packages and the machine of today; it may not exist."""
    made_by = [package_versions(("numba", "llvmlite", "librosa")), platform.machine(), platform.processor()]
    key = hashlib.sha256(json.dumps(made_by, sort_keys=True).encode()).hexdigest()[:16]
    return cache_folder(f"compiled-{key}")


def use_cache(folder: Path) -> None:
    """Let this process compile into `folder`, which is filled with what is kept; called before numba is imported."""
    with contextlib.suppress(OSError):  # what cannot be copied is compiled again
        shutil.copytree(cache_home(), folder, dirs_exist_ok=True)
    os.environ["NUMBA_CACHE_DIR"] = str(folder)


def keep_cache(folder: Path) -> None:
    """Keep what a process compiled for later runs, unless another run has been faster."""
    home = cache_home()
    part = home.with_name(f".{home.name}.{os.getpid()}.part")
    try:
        part.parent.mkdir(parents=True, exist_ok=True)
        shutil.copytree(folder, part)
        part.rename(home)
    except OSError as error:
        # only speed is lost: every run compiles for itself
        LOGGER.info("compiled code is not kept in %s: %s", home, error)
        shutil.rmtree(part, ignore_errors=True)
