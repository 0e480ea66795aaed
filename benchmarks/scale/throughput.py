"""Items a second by engine and workers, and what a million pairs would cost, on paper.

    python benchmarks/scale/throughput.py                          # about a quarter of an hour on two idle cores
    python benchmarks/scale/throughput.py --items 4 --chunks 20    # a trial
    python benchmarks/scale/throughput.py --paper-only --vcpu-hour 0.04

Preservation is measured on rendered pairs of known edits (eleven metrics, no feature store to begin with), inpainting
on the contexts of JSB chorales, again and again, with one baseline and the control. A run counts from its first answer
to its last: what it takes to start its processes stands in a column of its own, since it does not grow with the items.
The prices are assumptions, to be replaced by those of one's own machines.
"""

from __future__ import annotations

import argparse
import csv
import math
import os
import re
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import soundfile

import music_evals
from music_evals.benchmark.tasks.preservation.pairs import pairs_of_dataset
from music_evals.numerics import kernels

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
WAYS = (("serial", 1), ("local", 1), ("local", 2), ("ray", 1), ("ray", 2))
MEASURED = ("task", "engine", "workers", "items", "start_sec", "items_per_sec", "worker_sec_per_item")
CHUNK_ITEMS = 64  # of inpainting, whose progress is counted by chunks
PAIRS = 1_000_000
NODES = (1, 16, 64)


def main() -> None:
    """Measure, write throughput.csv, and fill the tables of README.md."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, default=64, help="pairs for each engine (default: %(default)s)")
    parser.add_argument("--chunks", type=int, default=200, help="chunks of 64 contexts of inpainting (%(default)s)")
    parser.add_argument("--work", type=Path, default=Path(tempfile.gettempdir()) / "scale_throughput")
    parser.add_argument("--paper-only", action="store_true", help="take the measurements of throughput.csv")
    parser.add_argument("--vcpu-hour", type=float, default=0.05, help="assumed price (default: %(default)s)")
    parser.add_argument("--node-vcpus", type=int, default=32, help="of an assumed CPU node (default: %(default)s)")
    parser.add_argument("--gpu-node-hour", type=float, default=4.0, help="assumed price (default: %(default)s)")
    parser.add_argument("--gpu-node-vcpus", type=int, default=16, help="of an assumed GPU node (default: %(default)s)")
    options = parser.parse_args()
    if not options.paper_only:
        measured = measure(options)
        with (HERE / "throughput.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, MEASURED, lineterminator="\n")
            writer.writeheader()
            writer.writerows(measured)
    with (HERE / "throughput.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    machine = f"{os.cpu_count()} cores ({kernels()}), music_evals {music_evals.__version__}, Ray {version('ray')}"
    if not options.paper_only:
        _fill("throughput", [*table(rows, MEASURED), "", f"Measured on {machine}."])
    _fill("paper", paper(rows, options))


# --- measurements


def measure(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Return a row for each task, engine and number of workers."""
    os.chdir(ROOT)
    shutil.rmtree(options.work, ignore_errors=True)
    manifest = make_pairs(options.work, options.items)
    contexts = make_contexts(options.work, options.chunks * CHUNK_ITEMS)
    seconds = statistics.fmean(soundfile.info(path).duration for path in recordings_of(manifest))
    tasks: dict[str, tuple[str, dict[str, Any]]] = {
        f"preserve, recordings of {seconds:.0f} s": ("preservation", {"manifest": manifest, "controls": False}),
        "inpainting, one baseline": ("inpainting", {"dataset": str(contexts), "baselines": "copy_past", "n_seeds": 1}),
    }
    warm_up(options.work, manifest)
    measured = []
    for name, (task, settings) in tasks.items():
        for engine, workers in WAYS:
            out = options.work / f"{task}-{engine}-{workers}"
            row = {"task": name, "engine": engine, "workers": workers, **timed(task, out, settings, engine, workers)}
            measured.append(row)
            print(*row.values(), sep="\t", flush=True)
    return measured


def make_pairs(work: Path, n: int) -> Path:
    """Render known edits, and return a manifest of so many pairs."""
    found = pairs_of_dataset("known_edits", "default", "held_out", folder=work, limit=n)
    manifest = work / "pairs.csv"
    work.mkdir(parents=True, exist_ok=True)
    with manifest.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "system", "reference", "estimate"])
        for pair in found.pairs:
            paths = [os.path.relpath(Path(side.path).absolute(), work) for side in (pair.reference, pair.estimate)]
            writer.writerow([pair.item, "known edits", *paths])
    return manifest


def recordings_of(manifest: Path) -> list[Path]:
    """Return the recordings of a manifest."""
    with manifest.open(newline="") as file:
        return [manifest.parent / row[side] for row in csv.DictReader(file) for side in ("reference", "estimate")]


def make_contexts(work: Path, n: int) -> Path:
    """Return a data set of so many contexts: those of JSB chorales, again and again."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    source = ROOT / "datasets_scripts" / "jsb_chorales" / "data" / "musib"
    (path,) = source.glob("test-*.parquet")
    rows = pq.read_table(path, columns=["item_id", "song", "tokens"])
    copies = math.ceil(n / len(rows))
    table = pa.concat_tables([rows] * copies).slice(0, n)
    ids = pa.array([f"{number:07}" for number in range(n)])
    table = table.set_column(table.column_names.index("item_id"), "item_id", ids)
    folder = work / "contexts"
    (folder / "data" / "musib").mkdir(parents=True, exist_ok=True)
    pq.write_table(table, folder / "data" / "musib" / "test-00000-of-00001.parquet")
    (folder / "README.md").write_text(
        "---\nconfigs:\n- config_name: musib\n  default: true\n  data_files:\n"
        '  - {split: test, path: "data/musib/test-*.parquet"}\n---\n'
    )
    return folder


def warm_up(work: Path, manifest: Path) -> None:
    """Judge one pair, so that what is compiled once on a machine is compiled."""
    music_evals.run(
        "preservation", work / "warm-up", manifest=manifest, limit=1, controls=False, report=False, n_resamples=20
    )


def timed(task: str, out: Path, settings: dict[str, Any], engine: str, workers: int) -> dict[str, Any]:
    """Return items a second from the first answer to the last, and the seconds before."""
    calls: list[tuple[float, int]] = []
    start = time.perf_counter()

    def progress(done: int, _total: int, _label: str) -> None:
        calls.append((time.perf_counter() - start, done))

    how: dict[str, Any] = {"engine": engine, "workers": workers, "report": False, "n_resamples": 20, "overwrite": True}
    music_evals.run(task, out, progress=progress, **settings, **how)
    (first, done_first), (last, done_last) = calls[0], calls[-1]
    rate = (done_last - done_first) / (last - first)
    return {
        "items": done_last,
        "start_sec": f"{first:.1f}",
        "items_per_sec": f"{rate:.3g}" if rate < 1000 else f"{rate:.0f}",
        "worker_sec_per_item": f"{workers / rate:.3g}",
    }


# --- on paper


def paper(rows: Sequence[dict[str, str]], options: argparse.Namespace) -> list[str]:
    """Return the lines on a million pairs, from the seconds a pair takes a worker in the widest run of each engine."""
    pair_sec = max(
        float(row["worker_sec_per_item"])
        for row in rows
        if row["task"].startswith("preserve") and row["engine"] == "ray"
    )
    hours = PAIRS * pair_sec / 3600
    gpu_node = f"a GPU node of {options.gpu_node_vcpus} vCPUs {options.gpu_node_hour:g} an hour"
    hours_on = [
        f"hours, {kind} nodes ({n} vCPUs)" for kind, n in (("CPU", options.node_vcpus), ("GPU", options.gpu_node_vcpus))
    ]
    lines = f"""\
A pair takes a worker {pair_sec:.3g} s (the slower of the runs of the engine ray above), so a million take
{hours:,.0f} worker-hours, whatever the number of nodes.

Assumptions, none of them measured: a worker is one vCPU that is as fast as a core of the machine above; reading the
files takes nothing; nodes are paid by the second; a vCPU-hour costs {options.vcpu_hour:g}, {gpu_node}, in whatever
currency (`--vcpu-hour`, `--gpu-node-hour`). No extractor of preservation uses a GPU, so that a GPU node counts with its
vCPUs.

| nodes | {hours_on[0]} | cost | {hours_on[1]} | cost |
|---:|---:|---:|---:|---:|""".splitlines()
    for nodes in NODES:
        on_cpu, on_gpu = hours / (nodes * options.node_vcpus), hours / (nodes * options.gpu_node_vcpus)
        cost_cpu = hours * options.vcpu_hour
        cost_gpu = on_gpu * nodes * options.gpu_node_hour
        lines.append(f"| {nodes} | {on_cpu:,.1f} | {cost_cpu:,.0f} | {on_gpu:,.1f} | {cost_gpu:,.0f} |")
    return lines


def table(rows: Sequence[dict[str, str]], columns: Sequence[str]) -> list[str]:
    """Return rows as lines of Markdown."""
    titles = [name.replace("_", " ").replace("sec per item", "s an item").replace(" sec", " s") for name in columns]
    return [
        "| " + " | ".join(titles) + " |",
        "|---|---|" + "---:|" * (len(columns) - 2),
        *("| " + " | ".join(row[name] for name in columns) + " |" for row in rows),
    ]


def _fill(block: str, lines: Sequence[str]) -> None:
    """Put lines between the marks of a block of README.md."""
    path = HERE / "README.md"
    marks: Callable[[re.Match[str]], str] = lambda found: "\n".join([found[1], *lines, found[2]])  # noqa: E731
    text, n = re.subn(
        rf"(<!-- {block} -->).*?(<!-- /{block} -->)", marks, path.read_text(encoding="utf-8"), flags=re.DOTALL
    )
    if n != 1:
        raise SystemExit(f"{path} has no block {block}")
    path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
