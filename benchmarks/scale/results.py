"""Time and memory of results from many records: means, intervals, paired tests, checks of digests included.

    python benchmarks/scale/results.py             # about ten minutes; writes results.csv and the table
    python benchmarks/scale/results.py --most 100000

The records are made by a seeded generator: preservation's eleven scores of pairs in up to 20,000 clusters of unequal
size, a part of them undefined, failed, or failed first and done in a second sitting. Each measurement runs in a process
of its own, tied to two cores, with 1,000 resamples.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import itertools
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from music_evals.benchmark.load import load_results
from music_evals.benchmark.records import RecordStore, read_records, records_at
from music_evals.benchmark.rows import PairJob
from music_evals.benchmark.run import RECORDS, Settings
from music_evals.benchmark.tasks.preservation.pairs import MusicFile, Pair, PairSet
from music_evals.benchmark.tasks.preservation.task import PRESERVATION
from music_evals.metrics.catalogue import PRESERVATION_METRICS

HERE = Path(__file__).resolve().parent
N_CORES = 2
MOST_CLUSTERS = 20_000
SEED = 10
CHUNK = 10_000
METRICS = tuple(PRESERVATION_METRICS)
HEADER = {
    "task": "preservation",
    "dataset": {"id": "synthetic", "config": None, "split": None, "revision": None},
    "variant": "corrected",
    "metrics": list(METRICS),
    "companions": [],
    "extractors": {"features": {}},
    "versions": {},
}
MEASURED = ("pairs", "systems", "step", "seconds", "processor_seconds", "peak_mb", "disk_mb")


class Run(NamedTuple):
    """Records of so many pairs, to equal shares of so many systems."""

    pairs: int
    systems: int

    @property
    def name(self) -> str:
        """Name of its folder."""
        return "-".join(map(str, self))


def main() -> None:
    """Write records where they are missing, measure in child processes, write results.csv and the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--most", type=int, default=1_000_000, help="pairs of the largest run (default: 1000000)")
    parser.add_argument("--work", type=Path, default=Path(tempfile.gettempdir()) / "scale_results")
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        step, name = options.child
        json.dump(STEPS[step](Run(*map(int, name.split("-"))), options.work / name), sys.stdout)
        return
    sizes = [n for n in (10_000, 100_000, 1_000_000) if n <= options.most]
    runs = [Run(*key) for key in itertools.product(sizes, (1, 4))]
    measured = []
    for run in runs:
        folder = options.work / run.name
        if records_at(folder / RECORDS) is None:
            _in_child("write", run, options.work)
        for step in ("build", "load", "resume"):
            found = _in_child(step, run, options.work)
            disk = sum(path.stat().st_size for path in _files(folder)) / 1e6
            numbers = (f"{found['seconds']:.1f}", f"{found['processor_seconds']:.1f}", f"{found['peak_mb']:.0f}")
            row = (*run, step, *numbers, f"{disk:.0f}")
            measured.append(dict(zip(MEASURED, row, strict=True)))
            print(*row, sep="\t", flush=True)
    with (HERE / "results.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, MEASURED)
        writer.writeheader()
        writer.writerows(measured)
    _write_table(measured)


def _files(folder: Path) -> list[Path]:
    place = records_at(folder / RECORDS)
    return [] if place is None else list(place.glob("*.parquet"))


def _in_child(step: str, run: Run, work: Path) -> dict[str, float]:
    command = [sys.executable, __file__, "--work", str(work), "--child", step, run.name]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


# --- steps, each in a process of its own


def write(run: Run, folder: Path) -> dict[str, float]:
    """Write the records of a run."""
    start = time.perf_counter()
    with RecordStore(folder / RECORDS, HEADER) as records:
        for rows in made_rows(run):
            records.append(rows)
    return _measured(start)


def build(_: Run, folder: Path) -> dict[str, float]:
    """Make results.json and table.md, as a run does when it ends."""
    _tie()
    start = time.perf_counter()
    place = records_at(folder / RECORDS)
    assert place is not None
    PRESERVATION.write(read_records(place), Settings(folder, report=False), lambda *_: "")
    return _measured(start)


def load(_: Run, folder: Path) -> dict[str, float]:
    """Read the results back and hold them to their records, as a board or a model card does."""
    _tie()
    start = time.perf_counter()
    load_results(folder)
    return _measured(start)


def resume(run: Run, folder: Path) -> dict[str, float]:
    """Tell what is left of a run that is done but for its failures; the pairs themselves are there before."""
    _tie()
    pairs = [
        Pair(item, system, group, "audio", MusicFile("", original, original), MusicFile("", edit, edit))
        for item, system, group, original, edit in made_pairs(run)
    ]
    judged = PairSet(HEADER["dataset"], tuple(_systems(run)), tuple(pairs))  # type: ignore[arg-type]
    job = PairJob(HEADER, judged, (), METRICS, "corrected", scorer=lambda _: {})
    start = time.perf_counter()
    place = records_at(folder / RECORDS)
    assert place is not None
    records = read_records(place)
    left = job.left(records)
    assert 0 < len(left) < run.pairs / 10
    assert list(job.selection(records)) == []
    return _measured(start)


STEPS = {"write": write, "build": build, "load": load, "resume": resume}


def _tie() -> None:
    cores = sorted(os.sched_getaffinity(0))[:N_CORES]
    os.sched_setaffinity(0, cores)


def _measured(start: float) -> dict[str, float]:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return {
        "seconds": time.perf_counter() - start,
        "processor_seconds": used.ru_utime + used.ru_stime,  # of the whole process, its imports included
        "peak_mb": used.ru_maxrss * 1024 / 1e6,
    }


# --- the generator


def _systems(run: Run) -> list[str]:
    return [f"system {number}" for number in range(run.systems)]


def made_pairs(run: Run) -> Iterator[tuple[str, str, str, str, str]]:
    """Yield item, system, group, original and edit of each pair."""
    n_items = run.pairs // run.systems
    clusters = _clusters(n_items)
    for system in _systems(run):
        for item, cluster in enumerate(clusters.tolist()):
            original = _hash(f"original {cluster}")
            yield f"clip {item:07}", system, original, original, _hash(f"{system} {item}")


def _clusters(n_items: int) -> np.ndarray:
    """Return the cluster of each item: a few are large, many small."""
    rng = np.random.default_rng(SEED)
    n_clusters = min(MOST_CLUSTERS, n_items // 4)
    weights = rng.lognormal(0, 1, n_clusters)
    return rng.choice(n_clusters, n_items, p=weights / weights.sum())


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def made_rows(run: Run) -> Iterator[Iterable[dict[str, Any]]]:
    """Yield the rows of a run after its header, in pieces."""
    yield itertools.chain([{"kind": "selection", "systems": _systems(run)}], map(_pair_row, made_pairs(run)))
    yield [{"kind": "kernels", "kernels": "synthetic"}]
    yield [
        {"kind": "outline", "content": _hash(f"original {cluster}"), "music": f"music {cluster}", "duration_sec": 30.0}
        for cluster in range(min(MOST_CLUSTERS, run.pairs // run.systems // 4))
    ]
    rng = np.random.default_rng(SEED + 1)
    again: list[tuple[str, ...]] = []
    pairs = made_pairs(run)
    while chunk := list(itertools.islice(pairs, CHUNK)):
        late = rng.random(len(chunk)) < 0.01  # its first try failed as a whole
        again += [pair for pair, failed in zip(chunk, late, strict=True) if failed]
        yield from _score_rows(rng, chunk, late)
    yield [{"kind": "sitting", "wall_time_sec": 1.0}]
    yield from _score_rows(rng, again, rng.random(len(again)) < 0.5)
    yield [{"kind": "sitting", "wall_time_sec": 1.0}]


def _pair_row(pair: tuple[str, ...]) -> dict[str, Any]:
    item, system, group, original, edit = pair
    sides = {"reference": {"name": original, "content": original}, "estimate": {"name": edit, "content": edit}}
    about = {"item": item, "system": system, "group": group, "modality": "audio"}
    return {"kind": "pair", **about, **sides, "treatment": ""}


def _score_rows(rng: np.random.Generator, pairs: list[Any], failed: np.ndarray) -> Iterator[list[dict[str, Any]]]:
    shape = (len(pairs), len(METRICS))
    values, chance = rng.normal(0.6, 0.2, shape).tolist(), rng.random(shape).tolist()
    remarked = (rng.random(len(pairs)) < 0.05).tolist()
    for place, (item, system, _, original, edit) in enumerate(pairs):
        about = {"item": item, "system": system, "content": [original, edit]}
        rows: list[dict[str, Any]] = []
        for metric, value, luck in zip(METRICS, values[place], chance[place], strict=True):
            score: dict[str, Any] = {"value": value}
            if failed[place]:
                score = {"error": "ParserCrashError: the process died (Killed)"}
            elif luck < 0.002:
                score = {"error": "BackendError: no beats"}
            elif luck < 0.03:
                score = {"value": None, "reason": "reference: silent"}
            what = {"kind": "score", **about, "metric": metric, "variant": "corrected"}
            rows.append({**what, **score, "n": int("error" not in score)})
        if remarked[place]:
            rows.append({"kind": "remarks", **about, "notes": [f"lengths differ by {place % 40} frames"]})
        yield rows


def _write_table(measured: list[dict[str, Any]]) -> None:
    lines = ["| " + " | ".join(MEASURED).replace("_", " ") + " |", "|" + "---|" * len(MEASURED)]
    lines += ["| " + " | ".join(str(row[name]) for name in MEASURED) + " |" for row in measured]
    path = HERE / "README.md"
    text = path.read_text(encoding="utf-8")
    marked = re.compile(r"(<!-- results:table -->\n).*?(<!-- results:table end -->)", re.DOTALL)
    path.write_text(marked.sub(lambda found: found[1] + "\n".join(lines) + "\n" + found[2], text), encoding="utf-8")


if __name__ == "__main__":
    main()
