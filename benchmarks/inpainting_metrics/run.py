"""Time and memory of all inpainting metrics over as many windows as IrishFolk has, beside plain Python.

    python benchmarks/inpainting_metrics/run.py            # about a minute; writes results.csv

Each measurement runs in a process of its own, so that its peak memory is its own, and on two cores.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
PARQUET = HERE.parents[1] / "datasets_scripts" / "jsb_chorales" / "data" / "musib"

N_PAIRS = 342_094  # windows of the true IrishFolk set: sum over its 17,538 songs of (measures - 15)
N_PLAIN = 2_000
N_RESAMPLES = 1_000
N_CORES = 2
EDIT_RATE = 0.1
MIDDLE = slice(144, 240)
GOALS = {"metrics_wall": 1.5, "metrics_peak_memory": 572, "intervals_wall": 5.0, "ratio_wall": 50}


def make_pairs(n: int, seed: int = 0) -> dict[str, np.ndarray]:
    """Tile the contexts of `jsb_chorales` to `n` and edit their middles at random.

    Each step of a middle is replaced with probability `EDIT_RATE`: by a hold, a rest, or an onset within the pitches of
    its own context. A tile of a song counts as a song of its own.
    """
    import pyarrow.parquet as pq

    files = sorted(PARQUET.glob("*.parquet"))
    if not files:
        sys.exit(f"no Parquet under {PARQUET.relative_to(HERE.parents[1])}; build jsb_chorales first")
    tables = [pq.read_table(path, columns=["song", "tokens"]) for path in files]
    real = np.array([row for table in tables for row in table["tokens"].to_pylist()], dtype=np.uint8)
    names = [name for table in tables for name in table["song"].to_pylist()]
    songs = np.unique(names, return_inverse=True)[1]
    index, tile = np.arange(n) % len(real), np.arange(n) // len(real)
    contexts = real[index]
    rng = np.random.default_rng(seed)
    middles = contexts[:, MIDDLE].copy()
    items, steps = np.nonzero(rng.random(middles.shape, dtype=np.float32) < EDIT_RATE)
    others = contexts[items, rng.integers(0, contexts.shape[1], len(items))]
    kinds = rng.random(len(items))
    middles[items, steps] = np.where(kinds < 1 / 3, 128, np.where(kinds < 2 / 3, 129, others))
    return {"contexts": contexts, "middles": middles, "groups": songs[index] + tile * (songs.max() + 1)}


def measure(work: Callable[[], Any], repeats: int) -> dict[str, float]:
    """Return wall and processor seconds (the fastest of `repeats`) and peak memory in MiB of this process."""
    walls, processors = [], []
    for _ in range(repeats):
        wall, processor = time.perf_counter(), time.process_time()
        work()
        walls.append(time.perf_counter() - wall)
        processors.append(time.process_time() - processor)
    return {"wall": min(walls), "processor": min(processors), "peak_memory": peak_memory()}


def peak_memory() -> float:
    """Return the largest resident memory of this process so far, in MiB."""
    status = Path("/proc/self/status")
    if status.is_file():  # ru_maxrss would start from the parent's
        line = next(line for line in status.read_text(encoding="utf-8").splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2  # macOS counts bytes


def run_metrics(folder: Path, n_resamples: int) -> dict[str, float]:
    """Measure the library."""
    from music_evals.pipelines.inpainting import evaluate_inpainting

    contexts, middles, groups = (np.load(folder / f"{name}.npy") for name in ("contexts", "middles", "groups"))
    return measure(lambda: evaluate_inpainting(contexts, middles, groups=groups, n_resamples=n_resamples), repeats=5)


def run_plain(folder: Path) -> dict[str, float]:
    """Measure the plain definitions on the first items, and hold the library's numbers to theirs."""
    import plain

    from music_evals.pipelines.inpainting import evaluate_inpainting

    # spread over the set; every item costs about the same, so time goes with their number
    contexts, middles = (np.load(folder / f"{name}.npy", mmap_mode="r") for name in ("contexts", "middles"))
    chosen = np.linspace(0, len(contexts) - 1, N_PLAIN).astype(int)
    contexts, middles = np.array(contexts[chosen]), np.array(middles[chosen])
    lists = contexts.tolist(), middles.tolist()
    found: list[Any] = []
    result = measure(lambda: found.append(plain.evaluate(*lists)), repeats=2)
    scores, divergences = found[0]
    ours = evaluate_inpainting(contexts, middles, n_resamples=0, per_item=True)
    for theirs, row in zip(scores, ours["per_item"], strict=True):
        for name, value in theirs.items():
            np.testing.assert_equal(row[name], value)
    for name, value in divergences.items():
        np.testing.assert_allclose(ours[name], value, atol=1e-12)
    return result


CHILDREN: dict[str, Callable[[Path], dict[str, float]]] = {
    "metrics": lambda folder: run_metrics(folder, 0),
    "with_intervals": lambda folder: run_metrics(folder, N_RESAMPLES),
    "plain": run_plain,
}


def run_child(name: str, folder: Path) -> dict[str, float]:
    """Run one measurement in a fresh process."""
    command = [sys.executable, str(Path(__file__).resolve()), "--child", name, "--folder", str(folder)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout)


def table_of(children: dict[str, dict[str, float]], n: int) -> list[tuple[str, str, str]]:
    """Return the rows of results.csv: quantity, value, unit."""
    ours, full, plain = (children[name] for name in CHILDREN)
    scale = n / N_PLAIN
    rows = [
        ("metrics_wall", f"{ours['wall']:.2f}", "s"),
        ("metrics_processor", f"{ours['processor']:.2f}", "s"),
        ("metrics_peak_memory", f"{ours['peak_memory']:.0f}", "MiB"),
        ("intervals_wall", f"{full['wall'] - ours['wall']:.2f}", "s"),
        ("with_intervals_wall", f"{full['wall']:.2f}", "s"),
        ("with_intervals_peak_memory", f"{full['peak_memory']:.0f}", "MiB"),
        ("plain_items", str(N_PLAIN), "items"),
        ("plain_wall", f"{plain['wall']:.2f}", "s"),
        ("plain_wall_scaled", f"{plain['wall'] * scale:.0f}", "s"),
        ("ratio_wall", f"{plain['wall'] * scale / ours['wall']:.0f}", "times"),
        ("ratio_processor", f"{plain['processor'] * scale / ours['processor']:.0f}", "times"),
    ]
    return [("items", str(n), "items"), ("resamples", str(N_RESAMPLES), ""), *rows, *receipt()]


def receipt() -> list[tuple[str, str, str]]:
    """Return hardware and versions."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.is_file() else []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return [
        ("cpu", models[0] if models else platform.machine(), ""),
        ("cores", str(min(N_CORES, os.cpu_count() or 1)), ""),
        ("load_average", f"{os.getloadavg()[0]:.1f}", "processes"),
        ("system", platform.system(), ""),
        ("python", platform.python_version(), ""),
        *((package, version(package), "") for package in ("numpy", "scipy", "music_evals")),
    ]


def main() -> None:
    """Measure, check the goals and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--items", type=int, default=N_PAIRS, help="context pairs (default: %(default)s)")
    parser.add_argument("--out", type=Path, default=HERE / "results.csv", help="where the table goes")
    parser.add_argument("--child", choices=CHILDREN, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:N_CORES])
    if arguments.child:
        print(json.dumps(CHILDREN[arguments.child](arguments.folder)))
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for part, array in make_pairs(arguments.items).items():
            np.save(folder / f"{part}.npy", array)
        children = {child: run_child(child, folder) for child in CHILDREN}
    rows = table_of(children, arguments.items)
    with arguments.out.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows([("quantity", "value", "unit"), *rows])
    for quantity, value, unit in rows:
        goal = f"   goal {GOALS[quantity]:g}" if quantity in GOALS else ""
        print(f"{quantity:28} {value:>12} {unit}{goal}")


if __name__ == "__main__":
    main()
