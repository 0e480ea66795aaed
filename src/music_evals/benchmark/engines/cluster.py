"""The engine of many machines: workers on all nodes of a Ray cluster, and one process that writes records.

A run is a data set of Ray Data: its blocks are chunks of units, neighbours by place; a pool of warm actors maps them;
their answers stream back as they come. The process that was started by the user alone writes records, so that nodes
need share no folder, and nothing is written twice. Why it is built so (measured with Ray 2.60):

One CPU an actor.
    Blocks that have to be read ask for CPUs of their own, and actors that hold all CPUs then wait for ever for their
    first block. Ours come from the process that was started by the user and are read by nobody: one actor on a cluster
    of one CPU finishes. What Ray can never place is refused before the run, by `schedule`.
An actor works through a `WorkerProcess`, as the engine ``local`` does.
    What would kill the actor kills that process, and costs one unit with the message that ``local`` has for it; a unit
    that hangs ends by the same clock; threads, output and numbers are those of ``local``. Without it Ray Data works on
    a unit that kills its actor for ever, since it tries a lost block again without end (its arguments that bound this
    are deprecated, and go with 2.64).
An actor that Ray has started again gives back the chunk that it is handed first.
    That is what is left of such a loop: units that get the actor itself killed, for the memory of the node. What was
    given back is tried again at the end, unit by unit, and has failed after `LOSSES` losses.
An answer that comes twice counts once.
    Ray works on blocks again whose answers lay on a node that was lost.
"""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import os
import pickle
import re
import signal
import socket
import sys
import tempfile
import threading
from collections.abc import Generator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from music_evals.benchmark.engines import process
from music_evals.benchmark.engines.process import WorkerProcess
from music_evals.benchmark.engines.units import Answered, Answers, Failed, Unit, Work, answer
from music_evals.errors import BackendError, InvalidInputError, ParserCrashError, importing
from music_evals.numerics import kernels, n_cores, package_versions

if TYPE_CHECKING:
    import pyarrow as pa

CPUS = 1.0
"""Of each worker: its process computes with one thread."""

CHUNKS = 16
"""For each worker, or more: few units are lost with a node, and all workers end at about the same time."""

LARGEST_CHUNK = 256
"""Units: a chunk is a block of Ray Data, of which it keeps books in memory."""

PIECES = 4
"""In which the answers of a chunk are handed over: Ray Data takes about ten a second from a worker."""

IN_FLIGHT = 2
"""Chunks that a worker has at once: the one it works on, and the next."""

LOSSES = 3
"""Workers that may be lost with one unit before it has failed."""

CONNECT_SEC = 10.0
"""For the head of a cluster to answer at all."""


def check_address(address: str) -> None:
    """Raise `InvalidInputError` unless this can be the address of a cluster."""
    if address.startswith("ray://"):
        raise InvalidInputError(
            f"`ray_address` {address} is one of Ray's client, which Ray Data does not support; start the run on a node "
            "of the cluster, such as by `ray job submit`, with host:port of its head"
        )
    if address not in {"auto", "local"} and not re.fullmatch(r"[^\s/:]+:\d{1,5}|\[[0-9a-fA-F:]+\]:\d{1,5}", address):
        raise InvalidInputError(
            f"`ray_address` must be host:port of the head of a cluster, as 10.0.0.1:6379, or auto for the cluster that "
            f"this machine belongs to, or local for a new one on this machine; got {address!r}"
        )


def schedule(nodes: Sequence[Mapping[str, float]], workers: int | None = None, cpus: float = CPUS) -> int:
    """Return how many workers of so many CPUs start on nodes with these resources; by default all that fit."""
    # An actor lies on one node: two nodes with half a CPU to spare have room for none that takes a whole one.
    room = sum(int(node.get("CPU", 0.0) / cpus + 1e-6) for node in nodes)
    if room and (workers is None or workers <= room):
        return workers or room
    has = ", ".join(f"{node.get('CPU', 0.0):g}" for node in nodes) or "no nodes"
    wanted = "a worker cannot start" if workers is None or not room else f"`workers` {workers} cannot all start"
    remedy = f"ask for at most {room}, or add nodes" if room else f"add nodes with at least {cpus:g}"
    raise InvalidInputError(
        f"{wanted} on this Ray cluster, and would be waited for without end: each takes {cpus:g} CPU of one node, the "
        f"nodes have {has}, which is room for {room}; {remedy}"
    )


def on_ray(
    units: Sequence[Unit],
    work: Work,
    *,
    workers: int | None = None,
    address: str | None = None,
    versions: Mapping[str, str] | None = None,
) -> Answers:
    """Yield each unit with its answer, worked out by the workers of a Ray cluster, by default as many as have room.

    The cluster is the one that this process has joined, else the one at `address`, else the one that the variable
    RAY_ADDRESS names, else a new one on this machine, which ends with the run. `versions` are those of packages that
    all nodes must have.
    """
    if not units:
        return
    with _cluster(address, workers) as ray:
        n_workers = schedule([node["Resources"] for node in ray.nodes() if node["Alive"]], workers)
        setup = _WorkerSetup(
            work=[ray.put(ray.cloudpickle.dumps(_OnPickles(work, str(Path.cwd()))))],
            versions=dict(versions or {}),
            timeout_sec=process.UNIT_TIMEOUT_SEC,
            path=tuple(sys.path),
        )
        waiting, alone = [(unit, 0) for unit in units], False
        while waiting:
            left = dict(enumerate(waiting))
            waiting = []
            chunks = _chunks([unit for unit, _ in left.values()], n_workers, alone=alone)
            with contextlib.closing(_map(chunks, setup, n_workers)) as results:
                for number, reached, made_by in results:
                    if number not in left:
                        continue
                    unit, _ = left.pop(number)
                    if isinstance(reached, Failed) and unit.parts:
                        waiting += [(part, 0) for part in unit.parts]
                    else:
                        yield Answered(unit, reached, made_by)
            for unit, losses in left.values():
                if losses + 1 < LOSSES:
                    waiting.append((unit, losses + 1))
                elif unit.parts:
                    waiting += [(part, 0) for part in unit.parts]
                else:
                    reason = (
                        f"{unit.label}: {LOSSES} workers were lost with it, for the memory of their nodes or otherwise"
                    )
                    yield Answered(unit, Failed(f"{ParserCrashError.__name__}: {reason}"))
            alone = True  # from here on one unit takes no other with it


class _Sent(NamedTuple):
    """What is sent of a unit."""

    number: int
    label: str
    payload: bytes


def _chunks(units: Sequence[Unit], workers: int, *, alone: bool) -> list[list[_Sent]]:
    """Return the units in chunks; those of a place are in one, unless other workers would be idle."""
    import ray

    places: dict[str, list[_Sent]] = {}
    for number, unit in enumerate(units):
        payload = ray.cloudpickle.dumps(unit.payload)  # type: ignore[no-untyped-call]
        places.setdefault(unit.place, []).append(_Sent(number, unit.label, payload))
    size = 1 if alone else min(-(-len(units) // (CHUNKS * workers)), LARGEST_CHUNK)
    of_place = 1 if alone else min(-(-len(units) // workers), LARGEST_CHUNK)
    chunks: list[list[_Sent]] = []
    for place, sent in places.items():
        step = of_place if place else size
        for start in range(0, len(sent), step):
            piece = sent[start : start + step]
            if chunks and len(chunks[-1]) + len(piece) <= size:
                chunks[-1] += piece
            else:
                chunks.append(piece)
    return chunks


@dataclasses.dataclass(frozen=True)
class _WorkerSetup:
    """What every worker is given once."""

    work: list[Any]  # holds the reference of the pickled work: Ray would put the work itself in place of a bare one
    versions: Mapping[str, str]
    timeout_sec: float
    path: tuple[str, ...]  # where modules are found


class _Result(NamedTuple):
    """What came back of a unit."""

    number: int
    answer: Any
    kernels: str


def _map(chunks: Sequence[Sequence[_Sent]], setup: _WorkerSetup, workers: int) -> Generator[_Result]:
    """Yield what the workers find, as they find it; nothing for units whose worker was lost."""
    import pyarrow as pa
    import ray.data

    tables = [pa.table({"chunk": pa.array([pickle.dumps(chunk)], pa.large_binary())}) for chunk in chunks]
    dataset = ray.data.from_arrow(tables).map_batches(
        _Worker,
        fn_constructor_args=(setup,),
        compute=ray.data.ActorPoolStrategy(
            size=min(workers, len(chunks)), max_tasks_in_flight_per_actor=IN_FLIGHT, max_concurrent_calls_per_actor=1
        ),
        num_cpus=CPUS,
        batch_size=None,
        batch_format="pyarrow",
    )
    dataset.context.enable_progress_bars = False
    dataset.context.target_max_block_size = 1  # what a worker yields is handed over at once, not with its chunk
    batches: Any = iter(dataset.iter_batches(batch_size=None, batch_format="pyarrow", prefetch_batches=0))
    try:
        with contextlib.closing(batches):  # the workers end with it
            for batch in batches:
                for piece in batch["results"].to_pylist():
                    for number, pickled in pickle.loads(piece):  # noqa: S301 (our workers wrote it)
                        if pickled is None:  # given back
                            continue
                        reached, made_by = pickle.loads(pickled)  # noqa: S301
                        if isinstance(reached, BackendError):
                            raise reached
                        yield _Result(number, reached, made_by)
    except ray.exceptions.RayError as error:
        raise BackendError(f"the Ray cluster does not work: {str(error).strip().splitlines()[-1]}") from error


class _Worker:
    """A warm actor: it holds one process, which holds the work and what that has loaded."""

    def __init__(self, setup: _WorkerSetup) -> None:
        import ray

        here = ray.get_runtime_context()
        sys.path += [place for place in setup.path if place not in sys.path]  # its process has the same path
        self._scratch = tempfile.TemporaryDirectory(prefix="music_evals_")
        self._process = WorkerProcess(
            ray.get(setup.work[0]), Path(self._scratch.name) / "0", timeout_sec=setup.timeout_sec
        )
        self._gives_back = bool(here.was_current_actor_reconstructed)
        self._differs: BackendError | None = None  # that this machine has packages of other versions
        own = package_versions(setup.versions)
        wanted = {name: version for name, version in setup.versions.items() if own.get(name) != version}
        if wanted:
            others = ", ".join(f"{name} {own.get(name, 'none')} and not {wanted[name]}" for name in wanted)
            self._differs = BackendError(
                f"node {here.get_node_id()} of the Ray cluster ({socket.gethostname()}) has {others}; numbers depend "
                "on them: install the same packages on all nodes"
            )

    def __call__(self, table: pa.Table) -> Iterator[pa.Table]:
        """Yield the answers to the units of a chunk, in pieces; None in place of one gives the unit back."""
        import pyarrow as pa

        gives_back, self._gives_back = self._gives_back, False
        chunk: list[_Sent] = pickle.loads(table["chunk"][0].as_py())  # noqa: S301 (the driver wrote it)
        step = -(-len(chunk) // PIECES)
        # always as many pieces: where Ray works on a chunk again it goes on after the pieces that it has
        for start in range(0, len(chunk), step):
            piece = [
                (number, None if gives_back else self._answer(Unit(payload, label)))
                for number, label, payload in chunk[start : start + step]
            ]
            yield pa.table({"results": pa.array([pickle.dumps(piece)], pa.large_binary())})

    def _answer(self, unit: Unit) -> bytes:
        if self._differs is not None:
            return pickle.dumps((self._differs, ""))
        try:
            answer = self._process.answer(self._process.start(unit))
        except BackendError as error:
            return pickle.dumps((error, ""))
        return answer if isinstance(answer, bytes) else pickle.dumps((answer, ""))

    def __del__(self) -> None:
        # when the pool is done with this actor
        self._process.end()
        self._scratch.cleanup()


@dataclasses.dataclass(frozen=True)
class _OnPickles:
    """A work on payloads as they travel: an actor hands them on without opening them."""

    work: Work
    place: str  # working directory of the process that was started by the user: paths may be relative

    def begin(self, folder: Path) -> None:
        """Go to the same place, where this machine has it; see `Work`."""
        with contextlib.suppress(OSError):
            os.chdir(self.place)
        if hasattr(self.work, "begin"):
            self.work.begin(folder)

    def __call__(self, payload: bytes) -> bytes:
        """Return the pickle of the answer and of the kernels that made it."""
        return pickle.dumps((answer(self.work, pickle.loads(payload)), kernels()))  # noqa: S301 (the driver wrote it)


@contextlib.contextmanager
def _cluster(address: str | None, workers: int | None) -> Iterator[Any]:
    """Join a cluster, or start one on this machine; leave it, or end it, in the end. What was joined before stays."""
    with importing("scale", "the engine ray"):
        import ray
        import ray.data

    if ray.is_initialized():
        joined = ray.get_runtime_context().gcs_address
        if address not in {None, "auto", joined}:
            raise InvalidInputError(f"`ray_address` is {address}, but this process has joined the cluster {joined}")
        with _quiet():
            yield ray
        return
    where = address or os.environ.get("RAY_ADDRESS") or "local"
    options: dict[str, Any] = {}
    if where == "local":
        options = {"num_cpus": workers or n_cores(), "include_dashboard": False}
    else:
        check_address(where)
        host, _, port = where.rpartition(":")
        try:  # Ray would try for a minute, with many messages
            if where != "auto":
                socket.create_connection((host.strip("[]"), int(port)), CONNECT_SEC).close()
        except (OSError, OverflowError) as error:
            raise BackendError(
                f"no Ray cluster answers at {where}: {error}; start its head with `ray start --head`, and give "
                "host:port as it prints them"
            ) from error
    # For the whole run: Ray Data asks again at each execution, and a thread of it then polls for figures to send.
    with _quiet(), _restored(RAY_USAGE_STATS_ENABLED="0"):
        try:
            ray.init(address=where, log_to_driver=False, logging_level=logging.ERROR, **options)
        except (OSError, RuntimeError, ValueError) as error:
            raise BackendError(f"cannot join the Ray cluster {where}: {error}") from error
        try:
            yield ray
        finally:
            with contextlib.redirect_stdout(sys.stderr):  # it prints what it has not yet said
                ray.shutdown()


@contextlib.contextmanager
def _restored(**variables: str) -> Iterator[None]:
    """Set variables of the environment, and put them back, with what Ray does with SIGTERM, which outlasts the run."""
    handler, before = signal.getsignal(signal.SIGTERM), {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, handler)
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


class _Stdout:
    """Standard output, but for what the threads of Ray print: that is no result of ours, and goes to standard error."""

    def __init__(self, own: Any) -> None:
        self._own = own

    def write(self, text: str) -> int:
        of_ray = threading.current_thread().name.startswith("ray_")
        return int((sys.stderr if of_ray else self._own).write(text))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._own, name)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Leave what Ray Data says of itself to its log file, and standard output to us."""
    shown = [
        handler for handler in logging.getLogger("ray.data").handlers if isinstance(handler, logging.StreamHandler)
    ]
    levels = [handler.level for handler in shown]
    for handler in shown:
        handler.setLevel(logging.CRITICAL + 1)
    try:
        with contextlib.redirect_stdout(_Stdout(sys.stdout)):
            yield
    finally:
        for handler, level in zip(shown, levels, strict=True):
            handler.setLevel(level)
