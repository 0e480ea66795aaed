"""Texts of language models, recorded as they come: a prompt that was answered is not sent, or paid for, again.

Records as in `records`, with these rows after the header:

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
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import Any, NamedTuple

from music_evals.benchmark.records import RecordStore, dump_json
from music_evals.errors import BackendError, ModelUnavailableError, MusicEvalsError, OutputError
from music_evals.numerics import kernels
from music_evals.protocols import LyricWriter, Written

__all__ = ["Key", "Request", "WritingSystem", "ask", "keep_answers", "key_of", "latest_rows", "left_to_ask"]

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
    """Ask every system for every prompt and seed that has no answer yet."""
    start = time.perf_counter()
    report = _progress_reporter(systems, len(prompts), progress)
    for system in systems:
        content = system.content
        left = left_to_ask(system, prompts, records.rows)
        report(system.name, len(system.seeds) * len(prompts) - len(left))
        if left:
            _append(records, _new_writer(records.rows, system, content))
        keep = _keeper(records, system.name, content, report)
        try:
            _ask_writer(system.writer, left, keep)
        finally:
            _call(system.writer, "close")
    session = {
        "kind": "sitting",
        "wall_time_sec": time.perf_counter() - start,
        "versions": dict(versions),
        "kernels": kernels(),
    }
    records.append([session])
    records.compact()
    return records.rows


def left_to_ask(system: WritingSystem, prompts: Mapping[str, str], rows: Iterable[Row]) -> list[Request]:
    """Return what a system has given no good answer to yet."""
    content = system.content
    answered = {key for key, row in latest_rows(rows).items() if "error" not in row}
    wanted = [Request(seed, item, prompt) for seed in system.seeds for item, prompt in prompts.items()]
    return [request for request in wanted if (content, *request) not in answered]


def keep_answers(
    system: WritingSystem,
    requests: Sequence[Request],
    written: Sequence[Written | MusicEvalsError],
    records: RecordStore,
) -> None:
    """Record what came in a batch; the seconds of each answer are not known."""
    _append(records, _new_writer(records.rows, system, system.content))
    answers = [_Answer(request, _whole(answer), 0.0) for request, answer in zip(requests, written, strict=True)]
    _append(records, [_generation(system.name, system.content, answer) for answer in answers])


def key_of(row: Row) -> Key:
    """Return the key of a generation."""
    return row["writer"], row["seed"], row["item"], row["prompt"]


def latest_rows(rows: Iterable[Row]) -> dict[Key, Row]:
    """Return the last generation of each key."""
    return {key_of(row): row for row in rows if row["kind"] == "generation"}


def _progress_reporter(
    systems: Sequence[WritingSystem], n_prompts: int, progress: Progress | None
) -> Callable[[str, int], None]:
    """Return a function that adds to what is done and reports it."""
    total = n_prompts * sum(len(system.seeds) for system in systems)
    done = 0

    def report(label: str, more: int) -> None:
        nonlocal done
        done += more
        if progress is not None:
            progress(done, total, label)

    return report


def _append(records: RecordStore, new: Sequence[Row]) -> None:
    if new:
        records.append(new)


def _new_writer(rows: Iterable[Row], system: WritingSystem, content: str) -> list[Row]:
    known = any(row["kind"] == "writer" and row["content_hash"] == content for row in rows)
    return [] if known else [{"kind": "writer", "content_hash": content, "about": system.about}]


def _call(writer: LyricWriter, method: str) -> None:
    """Call what a writer may have: see `protocols.LyricWriter`."""
    function = getattr(writer, method, None)
    if function is not None:
        function()


def _keeper(
    records: RecordStore, system: str, content: str, report: Callable[[str, int], None]
) -> Callable[[list[_Answer]], None]:
    """Return a function that records answers."""

    def keep(answers: list[_Answer]) -> None:
        _append(records, [_generation(system, content, answer) for answer in answers])
        report(system, len(answers))

    return keep


def _generation(system: str, content: str, answer: _Answer) -> Row:
    about = {"kind": "generation", "system": system, "writer": content, **answer.request._asdict()}
    if isinstance(answer.written, MusicEvalsError):
        return {**about, "error": f"{type(answer.written).__name__}: {answer.written}", "seconds": answer.seconds}
    return {**about, **answer.written._asdict(), "seconds": answer.seconds}


def _ask_writer(writer: LyricWriter, left: Sequence[Request], keep: Callable[[list[_Answer]], None]) -> None:
    """Ask in the portions that the writer likes, and keep answers as they come."""
    size, at_once = getattr(writer, "batch_size", 1), getattr(writer, "concurrency", 1)
    by_seed = [list(same_seed) for _, same_seed in itertools.groupby(left, lambda request: request.seed)]
    portions = [same[start : start + size] for same in by_seed for start in range(0, len(same), size)]
    if at_once == 1 and not hasattr(writer, "cancel"):
        for portion in portions:
            keep(_ask_portion(writer, portion))
    else:  # an answer that is under way and paid for outlives Ctrl-C in a thread only
        _ask_at_once(writer, portions, at_once, keep)


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
        _call(writer, "cancel")
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
        written = _checked(writer.write([request.prompt for request in portion], seed=portion[0].seed), len(portion))
    except ModelUnavailableError:
        raise
    except MusicEvalsError as error:
        if len(portion) > 1:  # one of them is at fault, or all together are too many: none is failed for another
            return [answer for request in portion for answer in _ask_portion(writer, [request])]
        return [_Answer(portion[0], error, time.perf_counter() - start)]
    seconds = (time.perf_counter() - start) / len(portion)
    return [_Answer(request, answer, seconds) for request, answer in zip(portion, written, strict=True)]


def _checked(written: Sequence[Written], n: int) -> Sequence[Written]:
    if len(written) != n:
        raise BackendError(f"{n} prompts were answered by {len(written)} texts; a writer returns one for each")
    for answer in written:
        whole = _whole(answer)
        if isinstance(whole, MusicEvalsError):
            raise whole
    return written


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
