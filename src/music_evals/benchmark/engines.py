"""Engines: where the units of a run are worked on. An engine changes no number, only how long it takes.

An engine takes units and a work, and yields each unit with its answer as it comes. It groups the units of one place:
the edits of one original meet in one process, which analyses the original once.

serial
    In this process, one after the other.
local
    In processes of their own, each of which takes one unit at a time. One that dies, in native code or for want of
    memory, or that hangs, costs its unit alone: the unit has failed, and a new process takes the next.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import multiprocessing
import os
import pickle
import signal
import sys
import tempfile
import threading
import types
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from concurrent import futures
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.context import SpawnContext, SpawnProcess
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from music_evals.errors import BackendError, ParserCrashError
from music_evals.processes import forbid_core_files

if TYPE_CHECKING:
    from pebble import ProcessFuture, ProcessPool

__all__ = ["ENGINES", "THREADS", "Failed", "Unit", "Work", "local", "serial"]

UNIT_TIMEOUT_SEC = 1800.0
"""For one unit: half an hour of music on a slow machine takes a fraction of it."""

THREADS = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"), "1"
)
"""One thread for each process: they share the cores, and sums are taken in one order whatever the machine."""


class Work(Protocol):
    """What is done with each unit; it can be pickled, and may keep what it loads from one unit to the next."""

    # It may have a method ``begin(folder)``, which a process of the engine calls once, before it imports anything
    # heavy: the folder is its own, and lasts as long as the run.

    def __call__(self, payload: Any, /) -> Any:
        """Return the answer for a unit."""
        ...


@dataclasses.dataclass(frozen=True)
class Unit:
    """What one process does in one go."""

    payload: Any  # what the work is given
    label: str  # what messages call it
    place: str = ""  # units of one place go to one process, unless another one would be idle
    size: int = 1  # how much of the progress it is
    parts: tuple[Unit, ...] = ()  # smaller units that make it up: tried one by one where the whole one ends its process


class Failed(NamedTuple):
    """In place of an answer: the kind and the message of the error."""

    reason: str


Answers = Generator[tuple[Unit, Any]]


def serial(units: Sequence[Unit], work: Work, *, workers: int = 1) -> Answers:  # noqa: ARG001 (as all engines)
    """Yield each unit with its answer, worked out in this process."""
    queue = _Queue(units)
    place = ""
    while (unit := queue.take(place, ())) is not None:
        place = unit.place
        yield unit, answer(work, unit.payload)


def local(units: Sequence[Unit], work: Work, *, workers: int = 1) -> Answers:
    """Yield each unit with its answer, worked out in so many processes; a unit that ends its process has `Failed`."""
    queue, pickled = _Queue(units), pickle.dumps(work)
    running: dict[futures.Future[Any], _Process] = {}
    with contextlib.ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="music_evals_")))
        idle = [_Process(pickled, scratch / str(number)) for number in range(min(workers, len(units)))]
        for process in idle:
            stack.callback(process.end)
        while True:
            # all that can work is given work before what is done is handed out: writing it down takes time
            for process in list(idle):
                unit = queue.take(process.place, [other.place for other in running.values()])
                if unit is not None:
                    idle.remove(process)
                    running[process.start(unit)] = process
            if not running:
                return
            done = []
            for future in futures.wait(running, return_when=futures.FIRST_COMPLETED).done:
                process = running.pop(future)
                idle.append(process)
                found = process.answer(future)
                if isinstance(found, Failed) and process.unit.parts:
                    queue.add(process.unit.parts)
                else:
                    done.append((process.unit, found))
            yield from done


class Engine(Protocol):
    """A function such as `serial` and `local`."""

    def __call__(self, units: Sequence[Unit], work: Work, *, workers: int = 1) -> Answers:
        """Yield each unit with its answer, as it comes."""
        ...


ENGINES: Mapping[str, Engine] = {"serial": serial, "local": local}


def answer(work: Work, payload: Any) -> Any:
    """Return the answer, or the error in its place: what is wrong with one item must not end the run of all."""
    try:
        return work(payload)
    except Exception as error:  # noqa: BLE001 (it is recorded, with its kind)
        return Failed(f"{type(error).__name__}: {error}")


class _Queue:
    """Units that nobody works on yet, by place."""

    def __init__(self, units: Sequence[Unit]) -> None:
        self._left: dict[str, collections.deque[Unit]] = {}
        self.add(units)

    def add(self, units: Sequence[Unit]) -> None:
        for unit in units:
            self._left.setdefault(unit.place, collections.deque()).append(unit)

    def take(self, place: str, taken: Collection[str]) -> Unit | None:
        """Return the next unit of this place, of one where nobody works, or of the one with most left; None at last."""
        if place not in self._left:
            free = (other for other in self._left if other not in taken)
            place = next(free, "") or max(self._left, key=lambda other: len(self._left[other]), default="")
        if place not in self._left:
            return None
        unit = self._left[place].popleft()
        if not self._left[place]:
            del self._left[place]
        return unit


class _Process:
    """One process at a time, in a pool of its own: so it is known which unit it died of."""

    def __init__(self, work: bytes, folder: Path) -> None:
        (folder / "own").mkdir(parents=True)
        self._work, self._folder = work, folder
        self._pool: ProcessPool | None = None
        self.unit = Unit(None, "")

    @property
    def place(self) -> str:
        return self.unit.place

    def start(self, unit: Unit) -> ProcessFuture[Any]:
        from pebble import ProcessPool

        self.unit = unit
        if self._pool is not None and not self._pool.active:  # it was lost while it had nothing to do
            self.end()
        if self._pool is None:
            # work that is defined in the user's script is found by running that script again, and in no other way
            context = multiprocessing.get_context("spawn") if b"__main__" in self._work else _Context()
            begin = (self._work, str(self._folder))
            self._pool = ProcessPool(1, initializer=_begin, initargs=begin, context=context)
        return self._pool.schedule(_answer_in_process, (unit.payload,), timeout=UNIT_TIMEOUT_SEC)

    def answer(self, future: futures.Future[Any]) -> Any:
        """Return the answer, or that the process died of it."""
        from pebble import ProcessExpired

        try:
            return future.result()
        except futures.TimeoutError:
            cause = f"did not finish within {UNIT_TIMEOUT_SEC:g} s"
        except ProcessExpired as error:
            cause = f"died ({self._cause(error.exitcode)})"
        except BrokenProcessPool:  # pebble had not yet heard that the unit was begun, or it never was
            if not (self._folder / "begun").exists():
                raise BackendError(
                    f"a process of this run cannot start: {self._last_words() or 'it gives no reason'}"
                ) from None
            cause = f"died ({self._last_words() or 'it gives no reason'})"
        return Failed(f"{ParserCrashError.__name__}: {self.unit.label}: the process {cause}")

    def _cause(self, code: int | None) -> str:
        if code is not None and code < 0:
            return signal.strsignal(-code) or f"signal {-code}"
        return ": ".join(filter(None, [f"exit code {code}", self._last_words()]))

    def _last_words(self) -> str:
        with contextlib.suppress(FileNotFoundError):
            lines = (self._folder / "log").read_text(errors="replace").strip().splitlines()
            return lines[-1] if lines else ""
        return ""

    def end(self) -> None:
        if self._pool is not None:
            self._pool.stop()  # type: ignore[no-untyped-call]
            self._pool.join()
        self._pool = None


class _ProcessWithoutScript(SpawnProcess):
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
