"""Score every edit of `known_edits`, and pairs of unrelated pieces, into a record file."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import json
import multiprocessing
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from formulas import scoring_digest
from tqdm import tqdm

from music_evals.annotations import Features
from music_evals.audio.store import FeatureStore
from music_evals.datasets.known_edits import build as known_edits
from music_evals.metrics.catalogue import AUXILIARY
from music_evals.pipelines.preservation import compare, load_features

UNRELATED = "unrelated"
TRUTH = "truth"
"""In place of a renderer: no audio and no extractor, but the exact annotations."""

Row = dict[str, Any]


def measure(rows: Sequence[Row], renderer: str, work: Path, workers: int) -> Path:
    """Append what is missing to the records of a renderer, and return their path.

    One line a pair: item_id, renderer, half, piece, kind, strength, and the value (or null and a reason) of each
    metric. A run that was stopped goes on. Records of other extractors (versions, weights), formulas or
    renderings are left aside.
    """
    path = work / f"{renderer}-{scoring_digest(modules=[known_edits.__name__])}.jsonl"
    work.mkdir(parents=True, exist_ok=True)
    done = {json.loads(line)["item_id"] for line in path.read_text().splitlines()} if path.exists() else set()
    by_piece = [list(group) for _, group in itertools.groupby(rows, key=lambda row: row["piece"])]
    jobs = [[row for row in group if row["item_id"] not in done] for group in by_piece]
    worker = functools.partial(_score_piece, renderer=renderer, work=work)
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
        os.environ[name] = "1"  # of the workers, which start afresh: each has a core
    with path.open("a") as file, ProcessPoolExecutor(workers, multiprocessing.get_context("spawn")) as pool:
        bar = tqdm(total=sum(map(len, jobs)), desc=f"edits, {renderer}", unit="pair")
        for records in pool.map(worker, [job for job in jobs if job]):
            append_records(file, records)
            bar.update(len(records))
        bar.close()
        sources = [group[0] for group in by_piece]
        for record in tqdm(
            _unrelated(sources, renderer, work, done), desc=f"unrelated, {renderer}", unit="pair", mininterval=5
        ):
            append_records(file, [record])
    return path


def append_records(file: Any, records: Iterable[Row]) -> None:
    """Write records, a line each, so that a run that is stopped has them."""
    for record in records:
        file.write(json.dumps(record) + "\n")
    file.flush()


def _score_piece(rows: Sequence[Row], *, renderer: str, work: Path) -> list[Row]:
    """Score all edits of one piece; its own features are extracted once."""
    source = _features(rows[0], "reference", renderer, work)
    records = []
    for row in rows:
        edited = _features(row, "estimate", renderer, work)
        facts = {key: row[key] for key in ("item_id", "half", "piece", "kind", "strength")}
        records.append(record_of(compare_sides(source, edited, renderer), renderer=renderer, **facts))
    return records


def _unrelated(sources: Sequence[Row], renderer: str, work: Path, done: set[str]) -> Iterator[Row]:
    """Score every ordered pair of different pieces of one half."""
    features = {row["piece"]: _features(row, "reference", renderer, work) for row in sources}
    halves = {row["piece"]: row["half"] for row in sources}
    for one, other in itertools.permutations(features, 2):
        name = f"{UNRELATED}:{one}:{other}"
        if halves[one] == halves[other] and name not in done:
            values = compare_sides(features[one], features[other], renderer)
            yield record_of(
                values, renderer=renderer, item_id=name, half=halves[one], piece=one, kind=UNRELATED, strength=0.0
            )


def _features(row: Row, which: str, renderer: str, work: Path) -> Features:
    if renderer == TRUTH:
        return dataclasses.replace(known_edits.annotations(row, which), chroma=known_edits.chroma(row, which))
    path = known_edits.render(row, renderer=renderer, which=which, cache=work / "audio")
    return load_features(path, companions=AUXILIARY, store=FeatureStore(work / "features"))


def compare_sides(source: Features, edited: Features, renderer: str) -> Mapping[str, Any]:
    """Return the scores of a pair; exact annotations have no auxiliary metrics."""
    return compare(source, edited, companions=() if renderer == TRUTH else AUXILIARY)


def record_of(values: Mapping[str, Any], **facts: Any) -> Row:
    """Return one line: facts, the value of each score or None, and why there is none."""
    scores = {name: None if value.reason else value.value for name, value in values.items()}
    reasons = {name: value.reason for name, value in values.items() if value.reason}
    return {**facts, **scores, "reasons": reasons}
