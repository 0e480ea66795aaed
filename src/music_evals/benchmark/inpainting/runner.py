"""Run systems over items, chunk by chunk, into a record file.

A chunk is some consecutive items, one system and one seed; the likelihoods of a system are chunks of their own, so that
they may fail by themselves. Its randomness hangs on nothing but these names, so that a run that was killed and resumed,
or spread over processes, gives the same predictions as one that was not.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import hashlib
import multiprocessing
import os
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent import futures
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from music_evals.annotations import MUSIB_LAYOUT, Tokens
from music_evals.benchmark.inpainting.systems import System
from music_evals.benchmark.records import RecordFile, read_records, reading_rows
from music_evals.benchmark.sources import ItemSet
from music_evals.benchmark.versions import kernel_rows, package_versions
from music_evals.errors import InvalidInputError, InvalidTokensError, MusicEvalsError, UndefinedMetricWarning
from music_evals.metrics.catalogue import INPAINTING_METRICS
from music_evals.metrics.likelihood import inpainting_nll
from music_evals.pipelines.inpainting import FEATURES, item_features, item_scores
from music_evals.protocols import LikelihoodInpainter
from music_evals.symbolic import noteseq

__all__ = ["METRICS", "NLL", "Progress", "run"]

CHUNK_ITEMS = 64
"""Items in a chunk: enough for a network to run them together, few enough to lose little by a kill."""

NLL = "inpainting_nll"

METRICS = (*(name for name, info in INPAINTING_METRICS.items() if info.kind == "item"), *FEATURES.values())
"""What is recorded of a prediction: item metrics, and in place of each divergence the feature that it compares."""

PLUGIN_ERRORS = (ArithmeticError, LookupError, RuntimeError, TypeError, ValueError)
"""What a plug-in may raise for an item. It becomes an error record; anything else (memory, interrupts) ends the run."""

Progress = Callable[[int, int, str], None]
"""Called with chunks done, chunks in all, and the name of the system."""

Row = dict[str, Any]
Floats = npt.NDArray[np.float64]


@dataclasses.dataclass(frozen=True)
class _Chunk:
    system: int
    seed: int
    start: int
    stop: int
    likelihood: bool = False

    @property
    def rows(self) -> range:
        return range(self.start, self.stop)


@dataclasses.dataclass(frozen=True, eq=False)
class _Job:
    """Everything that a chunk is worked out from; sent once to each worker process."""

    items: ItemSet
    systems: Sequence[System]
    variant: str
    seeds: tuple[int, ...]


def run(
    items: ItemSet,
    systems: Sequence[System],
    path: str | os.PathLike[str],
    *,
    seeds: Iterable[int] = (0,),
    variant: str = "corrected",
    protocol: str | None = None,
    workers: int = 1,
    overwrite: bool = False,
    options: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
) -> list[Row]:
    """Judge every system on every item and return the records.

    Parameters
    ----------
    items
        What is judged on.
    systems
        Who is judged; names must differ.
    path
        The record file. A run that was killed is taken up again; finished chunks are skipped, failed items are not.
    seeds
        Seeds of the systems that use randomness.
    variant
        Variant of the metrics.
    protocol
        Name of a published protocol, for the receipt.
    workers
        Processes; 1 works in this one.
    overwrite
        Start afresh.
    options
        What else the receipt should say of how the run was asked for. A run with others is another run.
    progress
        Called after each chunk.

    Returns
    -------
    list of dict
        All rows of the record file; see `records`.

    Raises
    ------
    InvalidInputError
        Two systems of one name, no seed, or no worker.
    CorruptRecordsError
        The record file is damaged or belongs to another run.
    OutputError
        The records cannot be written.

    """
    job = _Job(items, systems, variant, tuple(dict.fromkeys(seeds)))
    _check(job, workers)
    chunks = list(_chunks(job))
    started = time.monotonic()
    with RecordFile(path, _header(job, protocol, options or {}), _item_rows(items), overwrite=overwrite) as records:
        with reading_rows():
            todo = _unfinished(job, chunks, records.rows)
            begin = kernel_rows(records.rows) if todo else []
        if begin:
            records.append(begin)
        done = len(chunks) - len(todo)
        for chunk, rows in _work(job, todo, workers):
            records.append(rows)
            done += 1
            if progress is not None:
                progress(done, len(chunks), systems[chunk.system].name)
        if todo:
            records.append([{"kind": "sitting", "wall_time_sec": round(time.monotonic() - started, 3)}])
    return read_records(Path(path))


def _check(job: _Job, workers: int) -> None:
    names = [system.name for system in job.systems]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        msg = f"systems need different names, got {', '.join(twice)} more than once; rename one of them"
        raise InvalidInputError(msg)
    if not job.seeds or workers < 1:
        msg = f"expected at least one seed and one worker, got {len(job.seeds)} and {workers}"
        raise InvalidInputError(msg)


def _header(job: _Job, protocol: str | None, options: Mapping[str, Any]) -> Row:
    items = job.items
    return {
        "task": "inpainting",
        "protocol": protocol,
        "variant": job.variant,
        "dataset": {
            "id": items.dataset,
            "config": items.config,
            "split": items.split,
            "revision": items.revision,
            "fingerprint": items.fingerprint,
            "n_items": len(items),
        },
        "systems": {system.name: system.header(job.seeds) for system in job.systems},
        "extractors": {},
        "seeds": list(job.seeds),
        "options": dict(options),
        "versions": package_versions(),
    }


def _item_rows(items: ItemSet) -> list[Row]:
    seen = [None] * len(items) if items.seen_in_train is None else items.seen_in_train.tolist()
    rows: list[Row] = [
        {"kind": "item", "item": item, "song": song, "seen_in_train": known, "tokens": tokens}
        for item, song, known, tokens in zip(items.item_ids, items.songs, seen, items.contexts.tolist(), strict=True)
    ]
    return rows + [{"kind": "item", "item": item, "error": reason} for item, reason in sorted(items.failures.items())]


def _chunks(job: _Job) -> Iterator[_Chunk]:
    starts = range(0, len(job.items), CHUNK_ITEMS)
    for index, system in enumerate(job.systems):
        seeds = [(seed, False) for seed in system.seeds(job.seeds)]
        if isinstance(system.inpainter, LikelihoodInpainter):
            # the likelihood of the true middle does not hang on the seed: it is worked out once
            seeds.append((seeds[0][0], True))
        for seed, likelihood in seeds:
            for start in starts:
                yield _Chunk(index, seed, start, min(start + CHUNK_ITEMS, len(job.items)), likelihood)


def _unfinished(job: _Job, chunks: Sequence[_Chunk], rows: Sequence[Mapping[str, Any]]) -> list[_Chunk]:
    """Leave out the chunks of which every item has its scores; one failed item brings its chunk back."""
    good: dict[tuple[str, int, str, str], bool] = {}
    for row in rows:
        if row["kind"] == "score":
            good[row["system"], row["seed"], row["item"], row["metric"]] = "error" not in row

    def finished(chunk: _Chunk) -> bool:
        name = job.systems[chunk.system].name
        metrics = (NLL,) if chunk.likelihood else METRICS
        items = job.items.item_ids[chunk.start : chunk.stop]
        return all(good.get((name, chunk.seed, item, metric), False) for item in items for metric in metrics)

    return [chunk for chunk in chunks if not finished(chunk)]


def _work(job: _Job, chunks: Sequence[_Chunk], workers: int) -> Iterator[tuple[_Chunk, list[Row]]]:
    results = map(functools.partial(_judge, job), chunks) if workers == 1 else _in_processes(job, chunks, workers)
    yield from zip(chunks, results, strict=True)


def _in_processes(job: _Job, chunks: Sequence[_Chunk], workers: int) -> Iterator[list[Row]]:
    """Judge chunks in new processes, in order; they are spawned, since a fork of a threaded process may hang."""
    context = multiprocessing.get_context("spawn")
    with futures.ProcessPoolExecutor(workers, context, _start_worker, (job, os.getpid())) as pool:
        with _one_thread():
            results = pool.map(_judge_in_worker, chunks)  # all processes start here
        yield from results


@contextlib.contextmanager
def _one_thread() -> Iterator[None]:
    """Let processes that are started here compute in one thread: libraries read the variable when they are imported."""
    if "OMP_NUM_THREADS" in os.environ:
        yield
        return
    os.environ["OMP_NUM_THREADS"] = "1"
    try:
        yield
    finally:
        del os.environ["OMP_NUM_THREADS"]


_worker_job: list[_Job] = []  # set once in each worker process, so that the items do not travel with every chunk


def _start_worker(job: _Job, parent: int) -> None:
    """Keep the job for all chunks of this process, and end it with the parent."""
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    _worker_job[:] = [job]


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)  # the parent was killed: nobody waits for the result


def _judge_in_worker(chunk: _Chunk) -> list[Row]:
    return _judge(_worker_job[0], chunk)


def _judge(job: _Job, chunk: _Chunk) -> list[Row]:
    """Return the prediction and score rows of one chunk."""
    system, rows = job.systems[chunk.system], chunk.rows
    if chunk.likelihood:
        likelihoods, errors = _likelihoods(job, system.inpainter, rows)
        scores = {NLL: likelihoods}
    else:
        middles, errors = _inpaint(job, system, rows, chunk.seed)
        scores = _scores(job, rows, middles, errors)
    result: list[Row] = []
    for position, row in enumerate(rows):
        who = {"item": job.items.item_ids[row], "system": system.name, "seed": chunk.seed}
        reason = errors.get(row)
        if reason is None and not chunk.likelihood:
            result.append({"kind": "prediction", **who, "middle": middles[position].tolist()})
        result.extend(
            _score_row({**who, "metric": name, "variant": job.variant}, found[position], reason)
            for name, found in scores.items()
        )
    return result


def _score_row(what: Row, value: float, reason: str | None) -> Row:
    """Return a score of one item; a value of None is undefined, which is not the same as failed."""
    if reason is not None:
        return {"kind": "score", **what, "error": reason, "n": 0}
    # JSON has neither NaN nor infinity
    number = None if np.isnan(value) else float(value) if np.isfinite(value) else "inf"
    return {"kind": "score", **what, "value": number, "n": 1}


def _inpaint(job: _Job, system: System, rows: Sequence[int], seed: int) -> tuple[Tokens, dict[int, str]]:
    """Return middles (len(rows), 96) and the reason for each row that failed.

    Where a chunk fails as a whole, its items are tried one by one, so that one bad item does not take the others down.
    """
    errors = {
        row: system.failures[job.items.item_ids[row]] for row in rows if job.items.item_ids[row] in system.failures
    }
    try:
        return _ask(job, system, rows, seed, f"chunk {rows[0]}"), errors
    except PLUGIN_ERRORS:
        middles = np.zeros((len(rows), MUSIB_LAYOUT.middle_steps), dtype=np.uint8)
    for position, row in enumerate(rows):
        try:
            middles[position] = _ask(job, system, [row], seed, f"item {job.items.item_ids[row]}")[0]
        except PLUGIN_ERRORS as error:
            errors.setdefault(row, f"{type(error).__name__}: {error}")
    return middles, errors


def _ask(job: _Job, system: System, rows: Sequence[int], seed: int, label: str) -> Tokens:
    contexts = job.items.contexts[rows[0] : rows[-1] + 1]
    seen = contexts.copy() if system.sees_reference else noteseq.mask_middle(contexts)
    middles = noteseq.check_tokens(system.inpaint(seen, rows, seed=seed, rng=_rng(seed, system.name, label)))
    expected = (len(rows), MUSIB_LAYOUT.middle_steps)
    if middles.shape != expected:
        msg = f"{system.name} returned middles of shape {middles.shape}, expected {expected}"
        raise InvalidTokensError(msg)
    return middles


def _rng(seed: int, system: str, label: str) -> np.random.Generator:
    digest = hashlib.sha256(f"{seed}\0{system}\0{label}".encode()).digest()
    return np.random.default_rng(np.random.SeedSequence(np.frombuffer(digest, dtype=np.uint32).tolist()))


def _scores(job: _Job, rows: Sequence[int], middles: Tokens, errors: dict[int, str]) -> dict[str, Floats]:
    """Return metric or feature -> values (len(rows),), undefined ones NaN; adds the rows that fail to `errors`."""
    contexts = job.items.contexts[rows[0] : rows[-1] + 1]
    try:
        return _score(contexts, middles, job.variant)
    except MusicEvalsError:
        scores = {name: np.full(len(rows), np.nan) for name in METRICS}
    # one item that the variant cannot score must not take the others of its chunk down
    for position, row in enumerate(rows):
        try:
            found = _score(contexts[[position]], middles[[position]], job.variant)
        except MusicEvalsError as error:
            errors.setdefault(row, f"{type(error).__name__}: {error}")
            continue
        for name, value in found.items():
            scores[name][position] = value[0]
    return scores


def _score(contexts: Tokens, middles: Tokens, variant: str) -> dict[str, Floats]:
    with warnings.catch_warnings():
        # what is undefined is counted and shown in every table
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        features = item_features(contexts, middles, variant=variant)
        filled = {FEATURES[name]: estimate for name, (_, estimate) in features.items()}
        return {**item_scores(contexts, middles, variant=variant), **filled}


def _likelihoods(job: _Job, model: Any, rows: Sequence[int]) -> tuple[Floats, dict[int, str]]:
    """Return the negative log-likelihoods (len(rows),) and the reason for each row that failed; see `_inpaint`."""

    def ask(start: int, stop: int) -> Floats:
        values = np.asarray(inpainting_nll(-model.nll(job.items.contexts[start:stop])), dtype=np.float64)
        if values.shape != (stop - start,):
            msg = f"{model.name} returned likelihoods of {values.size} items, expected {stop - start}"
            raise InvalidInputError(msg)
        return values

    errors: dict[int, str] = {}
    try:
        return ask(rows[0], rows[-1] + 1), errors
    except PLUGIN_ERRORS:
        found = np.full(len(rows), np.nan)
    for position, row in enumerate(rows):
        try:
            found[position] = ask(row, row + 1)[0]
        except PLUGIN_ERRORS as error:
            errors[row] = f"{type(error).__name__}: {error}"
    return found, errors
