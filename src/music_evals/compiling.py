"""What numba compiles at its first use: by one thread of one process at a time, and aloud.

librosa's inner loops are compiled when they are imported or called for the first time, and kept in a cache. Two
processes that fill it together mix its parts, and every later process dies of them with a segmentation fault; two
threads that compile or import numba together may die or wait for each other for ever. So first uses take turns, in a
cache of our own, unless ``NUMBA_CACHE_DIR`` names another.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from music_evals.files import cache_folder

LOGGER = logging.getLogger(__name__)
Parameters = ParamSpec("Parameters")
Value = TypeVar("Value")

_COMPILING = threading.RLock()


def compiled_by_numba(function: Callable[Parameters, Value]) -> Callable[Parameters, Value]:
    """Let a function that imports and calls what numba compiles run alone, the first time in a process.

    No other thread, and no other process of this user, runs a decorated function for the first time meanwhile. The
    first compilation of a process is logged, since it takes up to half a minute.
    """
    compiled = False

    @functools.wraps(function)
    def first_alone(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Value:
        nonlocal compiled
        if compiled:
            return function(*args, **kwargs)
        with _COMPILING, _no_other_process(), _compilations_logged():
            value = function(*args, **kwargs)
        compiled = True
        return value

    return first_alone


if "numba" not in sys.modules:  # which reads it when it is imported
    os.environ.setdefault("NUMBA_CACHE_DIR", str(cache_folder("compiled")))


@contextlib.contextmanager
def _no_other_process() -> Iterator[None]:
    lock = _lock()
    try:
        lock.acquire(blocking=False)
    except TimeoutError:
        LOGGER.warning("waiting for another process that prepares the extractors (%s)", lock.lock_file)
        lock.acquire()
    except OSError as error:
        LOGGER.warning("no lock at %s (%s): run no second process before this one has ended", lock.lock_file, error)
    try:
        yield
    finally:
        lock.release()


@functools.cache
def _lock() -> Any:
    from filelock import FileLock

    cache = Path(os.environ.get("NUMBA_CACHE_DIR") or cache_folder("compiled"))
    with contextlib.suppress(OSError):
        cache.mkdir(parents=True, exist_ok=True)
    return FileLock(cache / "compiling.lock")


@contextlib.contextmanager
def _compilations_logged() -> Iterator[None]:
    """Warn, once a process, when code is compiled inside; code that numba takes from its cache is not."""
    try:
        from numba.core import event
    except ImportError:  # the function says what is missing
        yield
        return
    listener = _listener()
    event.register("numba:compile", listener)  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        event.unregister("numba:compile", listener)  # type: ignore[no-untyped-call]


@functools.cache
def _listener() -> Any:
    from numba.core.event import Event, Listener

    class CompilationListener(Listener):
        """Logs the first compilation."""

        logged = False

        def on_start(self, event: Event) -> None:  # noqa: ARG002 (as numba calls it)
            if not self.logged:
                self.logged = True
                LOGGER.warning("compiling the extractors, once on this machine; this takes up to half a minute")

        def on_end(self, event: Event) -> None:
            """Say nothing."""

    return CompilationListener()
