"""Compiled code of the extractors: made once, then copied, so that no two processes ever write one cache.

librosa's inner loops are compiled by numba at their first use, which takes half a minute; later processes read the
result from a cache. Processes that fill one cache together have been seen to die, so each gets a copy of its own.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import json
import logging
import os
import platform
import shutil
from pathlib import Path
from typing import Any

from music_evals.benchmark.versions import package_versions
from music_evals.files import cache_folder

__all__ = ["cache_home", "keep_cache", "use_cache"]

LOGGER = logging.getLogger(__name__)


def cache_home(extractors: str = "") -> Path:
    """Return where the compiled code of extractors is kept for what numba tells it by; it may not exist."""
    # That is the processor, and place and time of the source: the code of another environment would be passed over, and
    # all be compiled again without a word.
    versions = package_versions(("numba", "llvmlite", "librosa"))
    made_by = [versions, platform.machine(), _processor(), _source(), extractors]
    key = hashlib.sha256(json.dumps(made_by, sort_keys=True).encode()).hexdigest()[:16]
    return cache_folder(f"compiled-{key}")


def _processor() -> list[Any]:
    if importlib.util.find_spec("llvmlite") is None:
        return []
    from llvmlite import binding

    return [binding.get_host_cpu_name(), sorted(binding.get_host_cpu_features().items())]


def _source() -> list[Any]:
    """Return where librosa lies and when it was last changed."""
    spec = importlib.util.find_spec("librosa")
    if spec is None or spec.origin is None:
        return []
    folder = Path(spec.origin).parent
    return [str(folder), max(path.stat().st_mtime_ns for path in folder.rglob("*.py"))]


def use_cache(folder: Path, extractors: str = "") -> None:
    """Let this process compile into `folder`, which is filled with what is kept; called before numba is imported."""
    with contextlib.suppress(OSError):  # what cannot be copied is compiled again
        shutil.copytree(cache_home(extractors), folder, dirs_exist_ok=True)
    os.environ["NUMBA_CACHE_DIR"] = str(folder)


def keep_cache(folder: Path, extractors: str = "") -> None:
    """Keep what a process compiled for later runs, unless another run has been faster."""
    home = cache_home(extractors)
    part = home.with_name(f".{home.name}.{os.getpid()}.part")
    try:
        part.parent.mkdir(parents=True, exist_ok=True)
        shutil.copytree(folder, part)
        part.rename(home)
    except OSError as error:
        # only speed is lost: every run compiles for itself
        LOGGER.info("compiled code is not kept in %s: %s", home, error)
        shutil.rmtree(part, ignore_errors=True)
