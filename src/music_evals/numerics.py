"""What the last bits of a number depend on besides the packages: threads, which are held to one, and kernels.

A product of matrices that is shared out to threads is cut into other blocks, and its sums are rounded in another order.
Each item is therefore worked out by one thread; several items at once by several, or by processes. The kernels are
chosen by the libraries for the processor at hand, and cannot be held: `kernels` names them.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import os
import platform
import sys
import threading
from collections.abc import Iterable, Iterator
from importlib import metadata
from typing import Any

import numpy as np

from music_evals import __version__

PACKAGES = ("music_evals", "numpy", "scipy", "datasets", "torch", "symusic", "music21")

_lock = threading.Lock()
_inside = 0  # threads that are in a section
_limits: list[Any] = []  # what is given back when the last one leaves


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Work with one thread of linear algebra (BLAS) and of OpenMP, which PyTorch uses; also a decorator.

    Sections may be nested, and entered by several threads. Libraries are held that are loaded when one is entered.
    """
    global _inside  # noqa: PLW0603 (what it counts is one for the process, too)
    from threadpoolctl import OpenBLASController

    libraries = _libraries(len(sys.modules))
    blas = libraries.select(user_api="blas")
    # OpenMP keeps a number for each thread of the program, BLAS one for all: the last to leave gives that one back.
    # threadpoolctl ignores all threads but the one that set it first, unless it forgets that one.
    with libraries.select(user_api="openmp").limit(limits=1):
        with _lock:
            _inside += 1
            if any(library["num_threads"] != 1 for library in blas.info()):
                OpenBLASController.clear_controlling_thread(force=True)
                _limits.append(blas.limit(limits=1))
                OpenBLASController.clear_controlling_thread(force=True)
        try:
            yield
        finally:
            with _lock:
                _inside -= 1
                if not _inside:
                    OpenBLASController.clear_controlling_thread(force=True)
                    while _limits:
                        _limits.pop().restore_original_limits()
                    OpenBLASController.clear_controlling_thread(force=True)


def n_cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def n_threads() -> int:
    """Return how many items this process may work on at once: its cores, or OMP_NUM_THREADS where that is less."""
    cores = n_cores()
    # what holds linear algebra to one thread: processes that share the cores have it set
    limit = os.environ.get("OMP_NUM_THREADS", "")
    return min(cores, max(int(limit), 1)) if limit.isdecimal() else cores


@functools.cache
def kernels() -> str:
    """Return what computes here, such as ``"x86_64, OpenBLAS SkylakeX, NumPy X86_V3 X86_V4"``.

    Two machines of one name give equal numbers; those of other names may differ in the last bits.
    """
    blas = _libraries(len(sys.modules)).select(user_api="blas").info()
    kinds = {
        " ".join(filter(None, [_NAMES.get(library["internal_api"]), library.get("architecture")])) for library in blas
    }
    features = np.show_config(mode="dicts")["SIMD Extensions"].get("found", [])
    return ", ".join(filter(None, [platform.machine(), *sorted(kinds), " ".join(["NumPy", *features])]))


def package_versions(packages: Iterable[str] = PACKAGES) -> dict[str, str]:
    """Return the versions that decide the numbers; packages that are not installed are left out."""
    versions = {"python": platform.python_version()}
    for name in packages:
        with contextlib.suppress(metadata.PackageNotFoundError):
            versions[name] = metadata.version(name)
    return versions | {"music_evals": __version__}


_NAMES = {"openblas": "OpenBLAS", "mkl": "MKL", "blis": "BLIS", "flexiblas": "FlexiBLAS"}


@functools.lru_cache(maxsize=1)
def _libraries(_n_modules: int) -> Any:
    """Look for libraries, which takes 2 ms: again only where modules were imported since, which may bring new ones."""
    importlib.import_module("scipy.linalg")  # brings a BLAS of its own, beside NumPy's
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
