"""Texts asked for in batches: the first run hands in what is not answered yet, a later one collects the answers."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from music_evals.benchmark.records import RecordStore
from music_evals.benchmark.tasks.songs.generations import Request, WritingSystem, keep_answers, left_to_ask
from music_evals.benchmark.tasks.songs.spending import Metered
from music_evals.errors import BatchPendingError, CorruptRecordsError, InvalidInputError
from music_evals.files import parse_json, write_atomically

__all__ = ["BATCHES", "ask_in_batches"]

BATCHES: Final = "batches.json"
"""Hash of a writer -> id of its batch, and what was asked in it; only of batches that are not collected yet."""


def ask_in_batches(
    systems: Sequence[WritingSystem], prompts: Mapping[str, str], records: RecordStore, folder: Path
) -> None:
    """Collect batches that are done, and hand in what is left; raises `BatchPendingError` while any is under way.

    What a batch gave no good answer to is a failure of this run, and is handed in again by the next.
    """
    path = folder / BATCHES
    known = _read(path)
    messages: list[str] = []
    for system in systems:
        writer: Any = system.writer
        if not hasattr(writer, "submit"):
            raise InvalidInputError(f"{system.name} has no batches: only endpoints have; leave it out, or the batch")
        try:
            if system.content in known:
                messages += _collect(system, records, known, path)
            else:
                messages += _submit(system, left_to_ask(system, prompts, records.rows), known, path)
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
    keep_answers(system, requests, [batch.answers[number] for number in range(len(requests))], records)
    del known[system.content]
    _write(path, known)
    return []


def _read(path: Path) -> dict[str, Any]:
    if not path.exists():
        return {}
    try:
        parsed = parse_json(path.read_bytes(), str(path))
        batches: dict[str, Any] = {
            content: {"batch": entry["batch"], "asked": entry["asked"]} for content, entry in parsed.items()
        }
    except (OSError, ValueError, AttributeError, TypeError, KeyError) as error:
        raise CorruptRecordsError(
            f"{path} is damaged ({error}): batches that were handed in cannot be collected; delete it to ask anew"
        ) from error
    return batches


def _write(path: Path, known: Mapping[str, Any]) -> None:
    write_atomically(path, (json.dumps(known, ensure_ascii=False) + "\n").encode())
