"""One process of an engine: it works on one unit at a time, and may die or hang of it."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import signal
import sys
import threading
import types
from collections.abc import Callable
from concurrent import futures
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.context import SpawnContext, SpawnProcess
from pathlib import Path
from typing import TYPE_CHECKING, Any

from music_evals.benchmark.engines.units import Failed, Unit, answer
from music_evals.errors import BackendError, ParserCrashError
from music_evals.processes import forbid_core_files

if TYPE_CHECKING:
    from pebble import ProcessFuture, ProcessPool

UNIT_TIMEOUT_SEC = 1800.0
"""For one unit: half an hour of music on a slow machine takes a fraction of it."""

THREADS = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"), "1"
)
"""One thread for each process: they share the cores, and sums are taken in one order whatever the machine."""

LEFT = 256
"""Stands for the exit code 0 of a process that nobody asked to end."""


class WorkerProcess:
    """One process at a time, in a pool of its own: so it is known which unit it died of."""

    def __init__(self, work: bytes, folder: Path, *, script: bool = False, timeout_sec: float | None = None) -> None:
        (folder / "own").mkdir(parents=True)
        self._work, self._folder = work, folder
        self._context = _ScriptContext() if script else _Context()
        self._timeout_sec = UNIT_TIMEOUT_SEC if timeout_sec is None else timeout_sec
        self._pool: ProcessPool | None = None
        self.unit = Unit(None, "")  # what it works on, or worked on last

    def start(self, unit: Unit) -> ProcessFuture[Any]:
        """Let it work on a unit."""
        from pebble import ProcessPool

        self.unit = unit
        if self._pool is not None and not self._pool.active:  # it was lost while it had nothing to do
            self.end()
        if self._pool is None:
            begin = (self._work, str(self._folder))
            self._pool = ProcessPool(1, initializer=_begin, initargs=begin, context=self._context)
        return self._pool.schedule(_answer_in_process, (unit.payload,), timeout=self._timeout_sec)

    def answer(self, future: futures.Future[Any]) -> Any:
        """Return the answer, or that the process died of it."""
        from pebble import ProcessExpired

        try:
            return future.result()
        except futures.TimeoutError:
            cause = f"did not finish within {self._timeout_sec:g} s"
        except ProcessExpired as error:
            code = error.exitcode
            if code is not None and code < 0:
                cause = f"died ({signal.strsignal(-code) or f'signal {-code}'})"
            else:
                parts = [f"exit code {0 if code == LEFT else code}", self._last_words()]
                cause = f"died ({': '.join(filter(None, parts))})"
        except BrokenProcessPool:  # pebble had not yet heard that the unit was begun, or it never was
            if not (self._folder / "begun").exists():
                raise BackendError(
                    f"a process of this run cannot start: {self._last_words() or 'it gives no reason'}"
                ) from None
            cause = f"died ({self._last_words() or 'it gives no reason'})"
        return Failed(f"{ParserCrashError.__name__}: {self.unit.label}: the process {cause}")

    def _last_words(self) -> str:
        with contextlib.suppress(FileNotFoundError):
            lines = (self._folder / "log").read_text(errors="replace").strip().splitlines()
            return lines[-1] if lines else ""
        return ""

    def end(self) -> None:
        """End the process; another starts with the next unit."""
        if self._pool is not None:
            self._pool.stop()  # type: ignore[no-untyped-call]
            self._pool.join()
        self._pool = None


class _Process(SpawnProcess):
    """A process that is never taken for one that was asked to end, and leaves Ctrl-C to its parent."""

    def start(self) -> None:
        """Start it where no interrupt arrives: it would end in a traceback while it still imports."""
        held = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            super().start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, held)

    def __reduce__(self) -> tuple[Any, ...]:
        return _made_quietly, (type(self),), self.__dict__

    @property
    def exitcode(self) -> int | None:
        # pebble passes over code 0, and would wait for the time-out of the unit
        code = super().exitcode
        return LEFT if code == 0 else code


def _made_quietly(kind: type[_Process]) -> _Process:
    """Make the object in the new process, silent until `_begin` opens its log: what it shares may be gone."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    return kind.__new__(kind)


class _ProcessWithoutScript(_Process):
    """A process that does not run the user's script again, which therefore needs no ``__main__`` guard."""

    _lock = threading.Lock()

    def start(self) -> None:
        with self._lock:
            script = sys.modules["__main__"]
            sys.modules["__main__"] = types.ModuleType("__main__")
            try:
                super().start()
            finally:
                sys.modules["__main__"] = script


class _ScriptContext(SpawnContext):
    Process = _Process


class _Context(SpawnContext):
    Process = _ProcessWithoutScript


_work: list[Callable[[Any], Any]] = []  # of this process, if it is one of an engine


def _begin(work: bytes, folder: str) -> None:
    """Prepare a new process: threads, output, its end; then build the work, which imports what it needs."""
    os.environ.update(THREADS)
    forbid_core_files()
    log = os.open(Path(folder, "log"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(log, 1)  # what libraries print is no result of ours
    os.dup2(log, 2)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    built = pickle.loads(work)  # noqa: S301 (our parent wrote it)
    if hasattr(built, "begin"):
        built.begin(Path(folder, "own"))
    _work[:] = [built]
    Path(folder, "begun").touch()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)  # it was killed: nobody waits for the result


def _answer_in_process(payload: Any) -> Any:
    return answer(_work[0], payload)
