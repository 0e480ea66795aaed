"""Texts of language models, recorded as they come: a prompt that was answered is not sent, or paid for, again.

They are asked for one by one, or in batches: there a first run hands in what is not answered yet, and a later one
collects the answers. Records as in `records`, with these rows after the header:

writer
    What decides the answers of one system, and its hash.
generation
    One answer, or the error in its place: system, hash of the writer, seed, item, prompt, text, tokens and seconds.
sitting
    Wall time, package versions and processor kernels of one session.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any, Final, NamedTuple

from music_evals.benchmark.columns import dump_json
from music_evals.benchmark.records import RecordStore
from music_evals.benchmark.tasks.songs.writing_log import Metered
from music_evals.errors import (
    BackendError,
    BatchPendingError,
    CorruptRecordsError,
    InvalidInputError,
    ModelUnavailableError,
    MusicEvalsError,
    OutputError,
)
from music_evals.files import parse_json, write_atomically
from music_evals.numerics import kernels
from music_evals.protocols import LyricWriter, Written

BATCHES: Final = "batches.json"
"""Hash of a writer -> id of its batch, and what was asked in it; only of batches that are not collected yet."""

Row = dict[str, Any]

Key = tuple[str, int, str, str]
"""Hash of the writer, seed, item and prompt: equal keys have one answer."""

Progress = Callable[[int, int, str], None]
"""Called with answers there, answers in all, and the system."""


class WritingSystem(NamedTuple):
    """A language model under the name that it has in the tables."""

    name: str
    writer: LyricWriter
    seeds: tuple[int, ...]

    @property
    def about(self) -> dict[str, Any]:
        """What decides its answers; the name is part of it, since not every writer says what it is."""
        return {"system": self.name, **self.writer.describe()}

    @property
    def content(self) -> str:
        """Hash of `about`."""
        return hashlib.sha256(dump_json(self.about).encode()).hexdigest()[:16]


class Request(NamedTuple):
    """One prompt that a writer gets."""

    seed: int
    item: str
    prompt: str


class _Answer(NamedTuple):
    request: Request
    written: Written | MusicEvalsError
    seconds: float


def ask(
    systems: Sequence[WritingSystem],
    prompts: Mapping[str, str],
    records: RecordStore,
    *,
    versions: Mapping[str, str],
    progress: Progress | None = None,
) -> Sequence[Row]:
    """Ask every system for every prompt and seed that has no answer yet, in the portions that its writer likes."""
    start, n_done = time.perf_counter(), 0
    n_all = len(prompts) * sum(len(system.seeds) for system in systems)
    for system in systems:
        writer, content = system.writer, system.content
        left = _left_to_ask(system, prompts, records.rows)

        def keep(answers: list[_Answer], name: str = system.name, content: str = content) -> None:
            nonlocal n_done
            _record(records, name, content, answers)
            n_done += len(answers)
            if progress is not None:
                progress(n_done, n_all, name)

        n_done += len(system.seeds) * len(prompts) - len(left)
        keep([])
        if left:
            _record_writer(records, system, content)
        size, at_once = getattr(writer, "batch_size", 1), getattr(writer, "concurrency", 1)
        by_seed = [list(same_seed) for _, same_seed in itertools.groupby(left, lambda request: request.seed)]
        portions = [same[start : start + size] for same in by_seed for start in range(0, len(same), size)]
        try:
            if at_once == 1 and not hasattr(writer, "cancel"):
                for portion in portions:
                    keep(_ask_portion(writer, portion))
            else:  # an answer that is under way and paid for outlives Ctrl-C in a thread only
                _ask_at_once(writer, portions, at_once, keep)
        finally:
            getattr(writer, "close", lambda: None)()
    about = {"kind": "sitting", "wall_time_sec": time.perf_counter() - start}
    records.append([about | {"versions": dict(versions), "kernels": kernels()}])
    records.compact()
    return records.rows


def _left_to_ask(system: WritingSystem, prompts: Mapping[str, str], rows: Iterable[Row]) -> list[Request]:
    """Return what a system has given no good answer to yet."""
    content = system.content
    answered = {key for key, row in latest_rows(rows).items() if "error" not in row}
    requests = [Request(seed, item, prompt) for seed in system.seeds for item, prompt in prompts.items()]
    return [request for request in requests if (content, *request) not in answered]


def key_of(row: Row) -> Key:
    """Return the key of a generation."""
    return row["writer"], row["seed"], row["item"], row["prompt"]


def latest_rows(rows: Iterable[Row]) -> dict[Key, Row]:
    """Return the last generation of each key."""
    return {key_of(row): row for row in rows if row["kind"] == "generation"}


def _record_writer(records: RecordStore, system: WritingSystem, content: str) -> None:
    """Record what a writer is, once."""
    if not any(row["kind"] == "writer" and row["content_hash"] == content for row in records.rows):
        records.append([{"kind": "writer", "content_hash": content, "about": system.about}])


def _record(records: RecordStore, system: str, content: str, answers: Iterable[_Answer]) -> None:
    rows = []
    for request, written, seconds in answers:
        about = {"kind": "generation", "system": system, "writer": content, **request._asdict()}
        if isinstance(written, MusicEvalsError):
            rows.append({**about, "error": f"{type(written).__name__}: {written}", "seconds": seconds})
        else:
            rows.append({**about, **written._asdict(), "seconds": seconds})
    if rows:
        records.append(rows)


def _ask_at_once(
    writer: LyricWriter, portions: Sequence[list[Request]], at_once: int, keep: Callable[[list[_Answer]], None]
) -> None:
    """Ask in threads. What stops the run, Ctrl-C too, is raised when what is under way was answered and kept."""
    pool = ThreadPoolExecutor(at_once)
    answered: list[list[_Answer]] = []  # by the threads; what comes in is there whatever stops this one
    n_kept = 0

    def keep_new() -> None:
        nonlocal n_kept
        while n_kept < len(answered):
            keep(answered[n_kept])
            n_kept += 1

    try:
        futures = [pool.submit(lambda it: answered.append(_ask_portion(writer, it)), portion) for portion in portions]
        for future in as_completed(futures):
            future.result()
            keep_new()
    except OutputError:
        raise  # nothing can be kept any more
    except BaseException:
        getattr(writer, "cancel", lambda: None)()
        try:
            pool.shutdown(cancel_futures=True)  # waits for what is under way; a second Ctrl-C ends that
        finally:
            keep_new()
        raise
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _ask_portion(writer: LyricWriter, portion: list[Request]) -> list[_Answer]:
    start = time.perf_counter()
    try:
        written = writer.write([request.prompt for request in portion], seed=portion[0].seed)
        if len(written) != len(portion):
            raise BackendError(
                f"{len(portion)} prompts were answered by {len(written)} texts; a writer returns one for each"
            )
        for answer in map(_whole, written):
            if isinstance(answer, MusicEvalsError):
                raise answer
    except ModelUnavailableError:
        raise
    except MusicEvalsError as error:
        if len(portion) > 1:  # one of them is at fault, or all together are too many: none is failed for another
            return [answer for request in portion for answer in _ask_portion(writer, [request])]
        return [_Answer(portion[0], error, time.perf_counter() - start)]
    seconds = (time.perf_counter() - start) / len(portion)
    return [_Answer(request, answer, seconds) for request, answer in zip(portion, written, strict=True)]


def _whole(answer: Written | MusicEvalsError) -> Written | MusicEvalsError:
    """Return an answer, or an error in place of one that cannot be written down."""
    try:
        if isinstance(answer, Written):
            answer.text.encode()
    except UnicodeEncodeError as error:
        return BackendError(
            f"the answer holds half a character ({error.reason}), which no file can hold; it is asked again"
        )
    return answer


def ask_in_batches(
    systems: Sequence[WritingSystem], prompts: Mapping[str, str], records: RecordStore, folder: Path
) -> None:
    """Collect batches that are done, and hand in what is left; raises `BatchPendingError` while any is under way.

    What a batch gave no good answer to is a failure of this run, and is handed in again by the next.
    """
    path = folder / BATCHES
    known: dict[str, Any] = {}
    if path.exists():
        try:
            parsed = parse_json(path.read_bytes(), str(path))
            known = {content: {"batch": entry["batch"], "asked": entry["asked"]} for content, entry in parsed.items()}
        except (OSError, ValueError, AttributeError, TypeError, KeyError) as error:
            raise CorruptRecordsError(
                f"{path} is damaged ({error}): batches that were handed in cannot be collected; delete it to ask anew"
            ) from error
    messages: list[str] = []
    for system in systems:
        writer: Any = system.writer
        if not hasattr(writer, "submit"):
            raise InvalidInputError(f"{system.name} has no batches: only endpoints have; leave it out, or the batch")
        try:
            if system.content in known:
                messages += _collect(system, records, known, path)
            else:
                messages += _submit(system, _left_to_ask(system, prompts, records.rows), known, path)
        finally:
            writer.close()
    if messages:
        raise BatchPendingError(f"{'; '.join(messages)}; give the same command again to collect the answers")


def _submit(system: WritingSystem, left: Sequence[Request], known: dict[str, Any], path: Path) -> list[str]:
    if not left:
        return []
    writer: Any = system.writer
    if isinstance(writer, Metered):
        writer.reserve([request.prompt for request in left])
    batch = writer.submit([(request.prompt, request.seed) for request in left])
    known[system.content] = {"batch": batch, "asked": [list(request) for request in left]}
    _write(path, known)
    return [f"{system.name}: {len(left)} requests were handed in as the batch {batch}"]


def _collect(system: WritingSystem, records: RecordStore, known: dict[str, Any], path: Path) -> list[str]:
    writer: Any = system.writer
    held = known[system.content]
    requests = [Request(*values) for values in held["asked"]]
    batch = writer.collect(held["batch"], len(requests))
    if not batch.done:
        n_done = "" if batch.n_done is None else f", {batch.n_done} of {len(requests)} answered"
        return [f"{system.name}: the batch {held['batch']} is {batch.status}{n_done}"]
    _record_writer(records, system, system.content)
    # the seconds of each answer are not known
    answers = (_Answer(request, _whole(batch.answers[number]), 0.0) for number, request in enumerate(requests))
    _record(records, system.name, system.content, answers)
    del known[system.content]
    _write(path, known)
    return []


def _write(path: Path, known: Mapping[str, Any]) -> None:
    write_atomically(path, (json.dumps(known, ensure_ascii=False) + "\n").encode())
