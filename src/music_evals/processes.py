"""Read many files whose parser may crash or hang: it runs in a process of its own.

One worker reads file after file. If it dies or does not finish, that file is reported as an error, a new worker is
started, and the batch goes on. The worker is a plain child process, so that a script needs no ``__main__`` guard. It is
spoken to through POSIX pipes (Linux, macOS).

Requests and answers travel by `pickle` through pipes that only this process and its own child hold. So the worker is a
guard against files that crash a parser, hang it or unfold to more than the memory. It is none against a file that takes
a parser over and makes it run code: such code has the rights of the user already, and could answer with a pickle of
its own. Against that, run the whole program in a container.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import signal
import subprocess
import sys
import tempfile
import weakref
from collections.abc import Callable, Mapping
from multiprocessing.connection import Connection
from typing import IO, Any, Generic, TypeVar, cast

from music_evals.errors import InvalidInputError, MusicEvalsError, ParserCrashError, worded

T = TypeVar("T")

START_TIMEOUT_SEC = 120.0  # a cold disk and a busy machine take seconds to import a parser
EXIT_TIMEOUT_SEC = 10.0  # a process that has closed its pipe is about to end
_WORKER = "from music_evals.processes import _serve; _serve()"
_READY = "ready"


class ReaderProcess(Generic[T]):
    """A reader in a process of its own, for files that come one at a time.

    The process starts with the first file, which takes about half a second, and stays until `close`, until it dies on
    a file, or until this object is gone. `environment` are variables that it gets beside those of this one, `label` is
    what the message of its death calls the reader. `memory_bytes` is its largest data segment (``RLIMIT_DATA``, on
    Linux all private memory that can be written) once the reader is imported; None sets no limit, nor does a platform
    that has none to set. What takes longer than `timeout_sec` for one file is ended, and reported as its death.

    Raises `InvalidInputError` for a limit that is not positive and, with the first file, for a reader that cannot be
    imported.
    """

    def __init__(
        self,
        reader: Callable[[Any], T],
        *,
        timeout_sec: float = 60.0,
        environment: Mapping[str, str] | None = None,
        label: str = "parser",
        memory_bytes: int | None = None,
    ) -> None:
        if memory_bytes is not None and memory_bytes <= 0:
            raise InvalidInputError(f"memory_bytes must be positive, got {memory_bytes}")
        if timeout_sec <= 0:
            raise InvalidInputError(f"timeout_sec must be positive, got {timeout_sec}")
        self._reader, self._timeout_sec = reader, timeout_sec
        self._environment, self._label = dict(environment or {}), label
        self._memory_bytes = memory_bytes
        self._worker: _Worker[T] | None = None
        self._end: Callable[[], object] | None = None

    def read(self, item: str | os.PathLike[str] | bytes, *, name: str | None = None) -> T | MusicEvalsError:
        """Return what the reader makes of a path or of bytes, its named error, or how it died.

        `name` is what the message of its death calls the item; None for the path, or the number of bytes.
        """
        if self._worker is None:
            self._worker = _Worker(self._reader, self._environment, self._label, self._memory_bytes)
            self._end = weakref.finalize(self, self._worker.close)
        item = item if isinstance(item, bytes) else os.fspath(item)
        called = name or (item if isinstance(item, str) else f"{len(item)} bytes")
        answer = self._worker.ask(item, self._timeout_sec)
        if isinstance(answer, str):
            self.close()
            return ParserCrashError(f"{called}: {answer}; the file was skipped, check or remove it")
        kind, value = answer
        return cast("T", value) if kind is None else worded(kind, *value)

    def close(self) -> None:
        """End the process; another starts with the next file."""
        if self._end is not None:
            self._end()
        self._worker = self._end = None


class _Worker(Generic[T]):
    """A child process that reads files on request."""

    def __init__(
        self, reader: Callable[[Any], T], environment: Mapping[str, str], label: str, memory_bytes: int | None
    ) -> None:
        module, name = getattr(reader, "__module__", None), getattr(reader, "__qualname__", "<")
        if module in {None, "__main__"} or "<" in name:
            raise InvalidInputError(
                f"the reader must be a function at the top of a module that can be imported, got {reader!r}"
            )
        self.label, self.memory_bytes = label, memory_bytes
        self.log = tempfile.TemporaryFile()  # noqa: SIM115  # closed in close()
        self.process = subprocess.Popen(  # noqa: S603  # our own interpreter and a constant command
            [sys.executable, "-P", "-c", _WORKER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log,
            env=os.environ | environment | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )  # fmt: skip
        self.pipes = cast("tuple[IO[bytes], IO[bytes]]", (self.process.stdin, self.process.stdout))
        requests, answers = (os.dup(pipe.fileno()) for pipe in self.pipes)
        self.requests = Connection(requests, readable=False)
        self.answers = Connection(answers, writable=False)
        answer = self.ask((module, name, memory_bytes), START_TIMEOUT_SEC)
        if answer != _READY:
            self.close()
            raise InvalidInputError(f"the worker cannot import the reader {module}.{name}: {answer}")

    def ask(self, request: Any, timeout_sec: float) -> Any:
        """Send a request and return the answer, or text that says why the reader failed."""
        try:
            self.requests.send(request)
            if not self.answers.poll(timeout_sec):
                return f"the {self.label} did not finish within {timeout_sec:g} s"
            return self.answers.recv()
        except (EOFError, OSError):
            return f"the {self.label} died ({self._cause_of_death()})"

    def _cause_of_death(self) -> str:
        try:
            code = self.process.wait(timeout=EXIT_TIMEOUT_SEC)
        except subprocess.TimeoutExpired:
            return "it closed its pipe"
        if code < 0:
            return signal.strsignal(-code) or f"signal {-code}"
        self.log.seek(max(self.log.seek(0, os.SEEK_END) - 4096, 0))
        lines = self.log.read().decode(errors="replace").strip().splitlines()
        cause = f"exit code {code}: {lines[-1]}" if lines else f"exit code {code}"
        if self.memory_bytes is not None and "MemoryError" in cause:
            return f"it needs more than the {self.memory_bytes / 2**30:g} GiB of memory that it may take; {cause}"
        return cause

    def close(self) -> None:
        """End the process and free its pipes."""
        self.process.kill()
        self.process.wait()
        self.requests.close()
        self.answers.close()
        for pipe in self.pipes:
            pipe.close()
        self.log.close()


def _serve() -> None:
    """Answer the requests of the parent until it closes the pipe. Runs in the worker."""
    forbid_core_files()
    requests = Connection(os.dup(sys.stdin.fileno()), writable=False)
    answers = Connection(os.dup(sys.stdout.fileno()), readable=False)
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what a reader prints must not reach the answers
    try:
        module, name, memory_bytes = requests.recv()
        # the reader, by its dotted name
        reader: Any = importlib.import_module(module)
        for part in name.split("."):
            reader = getattr(reader, part)
        _limit_memory(memory_bytes)
        answers.send(_READY)
    except (ImportError, AttributeError) as error:
        answers.send(str(error))
        return
    with contextlib.suppress(EOFError):  # the parent is gone, or done
        while True:
            item = requests.recv()
            try:
                answers.send((None, reader(item)))
            except MusicEvalsError as error:  # any other exception ends the worker
                answers.send((type(error), (str(error), vars(error))))


def forbid_core_files() -> None:
    """Let no crash leave a memory image on disk: crashes are expected here."""
    try:
        import resource
    except ImportError:  # not on this platform
        return
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))


def _limit_memory(n_bytes: int | None) -> None:
    """Let this process allocate no more than so much; None is no limit."""
    if n_bytes is None:
        return
    try:
        import resource
    except ImportError:  # not on this platform
        return
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    allowed = n_bytes if hard == resource.RLIM_INFINITY else min(n_bytes, hard)
    with contextlib.suppress(OSError, ValueError):  # a platform that knows the limit and cannot set it
        resource.setrlimit(resource.RLIMIT_DATA, (allowed, hard))
