"""Compare pairs in processes of their own, into a record file.

A process takes one pair at a time, and goes on with the edits of one original while there are any. One that dies, in
native code or for want of memory, costs its pair alone: the pair is recorded as failed, and a new process takes the
next. Which process a pair meets, and in which order, changes no number.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import functools
import json
import queue
import tempfile
import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from music_evals.benchmark.preservation import worker as _worker
from music_evals.benchmark.preservation.compiled import cache_home, keep_cache, worker_environment
from music_evals.benchmark.preservation.pairs import CONTROLS, Pair, PairSet
from music_evals.benchmark.records import RecordFile, read_records, reading_rows
from music_evals.benchmark.rows import Answer, Progress, Row, new_selection, score_rows, unfinished
from music_evals.benchmark.versions import kernel_rows
from music_evals.errors import MusicEvalsError
from music_evals.processes import ReaderProcess

__all__ = ["COMPILING", "Judging", "Progress", "run_pairs"]

PAIR_TIMEOUT_SEC = 1800.0
"""For one pair: half an hour of music on a slow machine takes a fraction of it."""

COMPILING = "compiling the extractors, once on this machine"


@dataclasses.dataclass(frozen=True)
class Judging:
    """How pairs are compared.

    Parameters
    ----------
    metrics, companions
        Names, in the order of the results.
    variant
        Variant of the metrics.
    backends
        Feature -> backend, where it is not the variant's.
    store
        Folder of the feature store, or None.
    worker
        Function that answers a `worker.request`; it is called in other processes.
    compiles
        Whether the worker compiles code at its first recording.

    """

    metrics: tuple[str, ...]
    companions: tuple[str, ...] = ()
    variant: str = "corrected"
    backends: Mapping[str, str] = dataclasses.field(default_factory=dict)
    store: str | None = None
    worker: Callable[[str], dict[str, Any]] = _worker.answer
    compiles: bool = True

    @property
    def scores(self) -> tuple[str, ...]:
        """Metrics and companions."""
        return (*self.metrics, *self.companions)

    @property
    def extractors(self) -> str:
        """What decides which code is compiled, as text."""
        return json.dumps([self.variant, self.backends], sort_keys=True)

    @property
    def settings(self) -> dict[str, Any]:
        """What a process needs to know."""
        return {
            "metrics": list(self.metrics),
            "companions": list(self.companions),
            "variant": self.variant,
            "backends": dict(self.backends),
            "store": self.store,
        }


def run_pairs(
    pairs: PairSet,
    controls: Sequence[Pair],
    path: Path,
    judging: Judging,
    *,
    receipt: Mapping[str, Any],
    workers: int = 1,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> list[Row]:
    """Compare pairs and controls, and return the records.

    Parameters
    ----------
    pairs, controls
        What is compared.
    path
        The record file. A run that was killed is taken up again; pairs whose files are the same bytes and whose scores
        are all there are skipped, failed ones are not.
    judging
        How they are compared.
    receipt
        What else the header should say. A run with another one is another run.
    workers
        Processes.
    overwrite
        Start afresh.
    progress
        Called after each pair.

    Returns
    -------
    list of dict
        All rows of the record file: the header; ``selection``, after which the ``pair`` rows of one sitting follow,
        the last selection being what is judged; ``score`` rows as in `records`, with ``content``, the hashes of both
        files; ``remarks`` on a pair; ``outline`` of a file, for drawings.

    Raises
    ------
    CorruptRecordsError
        The record file is damaged or belongs to another run.
    OutputError
        The records cannot be written.

    """
    started = time.monotonic()
    chosen = [*pairs.pairs, *controls]
    with RecordFile(path, {"task": "preservation", **receipt}, overwrite=overwrite) as records:
        with reading_rows():
            todo = unfinished(chosen, judging.scores, records.rows)
            outlined = {row["content"] for row in records.rows if row["kind"] == "outline"}
            begin = new_selection(pairs, controls, records.rows) + (kernel_rows(records.rows) if todo else [])
        if begin:
            records.append(begin)
        done = len(chosen) - len(todo)
        with contextlib.closing(_answers(todo, judging, min(workers, len(todo)), progress)) as answers:
            for pair, answer in answers:
                records.append(_rows(pair, judging, answer, outlined))
                done += 1
                if progress is not None:
                    progress(done, len(chosen), pair.item)
        if todo:
            records.append([{"kind": "sitting", "wall_time_sec": round(time.monotonic() - started, 3)}])
    return read_records(path)


def _rows(pair: Pair, judging: Judging, answer: Answer, outlined: set[str]) -> list[Row]:
    """Return the rows of one compared pair; adds to `outlined` what is now in the records."""
    rows = score_rows(pair, judging.scores, judging.variant, answer)
    drawn = {} if isinstance(answer, MusicEvalsError) else answer["outlines"]
    for content, outline in drawn.items():
        if content not in outlined:
            outlined.add(content)
            rows.append({"kind": "outline", "content": content, **outline})
    return rows


def _answers(
    todo: Sequence[Pair], judging: Judging, workers: int, progress: Progress | None
) -> Generator[tuple[Pair, Answer]]:
    """Yield each pair with what came of it, as it comes."""
    if not todo:
        return
    with tempfile.TemporaryDirectory(prefix="music_evals_", ignore_cleanup_errors=True) as scratch:
        start = functools.partial(_start, judging, Path(scratch))
        processes = [start(0)]
        heard = any(pair.entrance == "audio" for pair in todo)
        if judging.compiles and heard and not cache_home(judging.extractors).is_dir():
            if progress is not None:
                progress(0, len(todo), COMPILING)
            warm = processes[0].read(_worker.warm_up_request(judging.settings), name=COMPILING)
            if not isinstance(warm, MusicEvalsError):  # else every process compiles for itself, as it can
                keep_cache(Path(scratch) / "0", judging.extractors)
        processes += map(start, range(1, workers))
        with _Crew(processes, todo, judging) as crew:
            yield from crew.answers()


def _start(judging: Judging, scratch: Path, number: int) -> ReaderProcess[dict[str, Any]]:
    folder = scratch / str(number)
    folder.mkdir()
    environment = worker_environment(folder, judging.extractors)
    return ReaderProcess(judging.worker, timeout_sec=PAIR_TIMEOUT_SEC, environment=environment, what="process")


class _Crew:
    """Processes, each fed by a thread, and the pairs that are left."""

    def __init__(
        self, processes: Sequence[ReaderProcess[dict[str, Any]]], todo: Sequence[Pair], judging: Judging
    ) -> None:
        self._processes, self._judging, self._n_pairs = processes, judging, len(todo)
        self._lock = threading.Lock()
        self._by_original: dict[str, collections.deque[Pair]] = {}
        for pair in todo:
            self._by_original.setdefault(pair.reference.content, collections.deque()).append(pair)
        self._held: set[str] = set()
        self._done: queue.SimpleQueue[tuple[Pair, Answer] | Exception] = queue.SimpleQueue()
        self._threads = [threading.Thread(target=self._feed, args=(process,), daemon=True) for process in processes]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._by_original.clear()
        for process in self._processes:
            process.close()
        for thread in self._threads:
            thread.join()
        for process in self._processes:  # a thread may have started one again in between
            process.close()

    def answers(self) -> Iterator[tuple[Pair, Answer]]:
        """Yield each pair with its answer; raise what is no affair of one pair."""
        for _ in range(self._n_pairs):
            done = self._done.get()
            if isinstance(done, Exception):
                raise done
            yield done

    def _feed(self, process: ReaderProcess[dict[str, Any]]) -> None:
        original: str | None = None
        while (pair := self._take(original)) is not None:
            original = pair.reference.content
            try:
                self._done.put((pair, process.read(self._message(pair), name=f"{pair.item} ({pair.system})")))
            except Exception as error:  # noqa: BLE001 (it is raised where answers are waited for)
                self._done.put(error)

    def _take(self, original: str | None) -> Pair | None:
        """Return the next pair: of this original, of one that nobody works on, or of the one with most pairs left."""
        with self._lock:
            if original not in self._by_original:
                self._held.discard(original or "")
                free = [content for content in self._by_original if content not in self._held]
                shared = sorted(self._by_original, key=lambda content: -len(self._by_original[content]))
                original = next(iter([*free, *shared]), None)
            if original is None:
                return None
            self._held.add(original)
            left = self._by_original[original]
            pair = left.popleft()
            if not left:
                del self._by_original[original]
            return pair

    def _message(self, pair: Pair) -> str:
        reference = {"path": pair.reference.path, "content": pair.reference.content, "treatment": ""}
        estimate = {"path": pair.estimate.path, "content": pair.estimate.content, "treatment": pair.treatment}
        return _worker.request(self._judging.settings, reference, estimate, outlines=pair.system not in CONTROLS)
