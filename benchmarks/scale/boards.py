"""Time of `leaderboard build` over boards of many systems, from the files of a board to its tables.

    python benchmarks/scale/boards.py                # some minutes; writes boards.csv and the table of the README

Records are made by a seeded generator: the eleven scores of preservation of each system and of a control, every system
in a run of its own. Each measurement runs in a process of its own.
"""

from __future__ import annotations

import argparse
import csv
import dataclasses
import re
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from music_evals.leaderboard import build_leaderboard, write_leaderboard
from music_evals.leaderboard.board import add_part
from music_evals.leaderboard.records import A_CONTROL, ResultRecord, id_of
from music_evals.metrics.catalogue import PRESERVATION_METRICS

HERE = Path(__file__).resolve().parent
METRICS = tuple(PRESERVATION_METRICS)[:11]
BOARDS = ((300, 2), (300, 14), (300, 20), (300, 100), (50, 100))  # systems, and items of each
MEASURED = ("systems", "items", "tests", "seconds", "processor_seconds", "peak_mb")
SEED = 10


def records(n_systems: int, n_items: int) -> list[ResultRecord]:
    """Return the records of a board, the control's last."""
    rng = np.random.default_rng(SEED)
    found = []
    for number in range(n_systems + 1):
        role = "control" if number == n_systems else "system"
        values = rng.uniform(0, 0.5, (len(METRICS), n_items)) + (0.5 if role == "system" else 0.0)
        found += [record(f"{role} {number}", role, metric, row) for metric, row in zip(METRICS, values, strict=True)]
    return found


def record(system: str, role: str, metric: str, values: np.ndarray[Any, Any]) -> ResultRecord:
    """Return a record of one metric."""
    n = len(values)
    about: dict[str, Any] = dict.fromkeys(
        ("config", "split", "revision", "fingerprint", "content", "low", "high", "floor")
    )
    about |= {"id": "", "task": "preservation", "dataset": "synthetic", "system": system, "role": role, "run": system}
    about |= {"metric": metric, "title": metric, "direction": PRESERVATION_METRICS[metric].direction, "kind": "mean"}
    about |= {"variant": "corrected", "value": float(values.mean()), "confidence": 0.95, "n_failed": 0}
    about |= dict.fromkeys(("n", "n_defined"), n) | {key: {} for key in ("extractors", "receipt")}
    names = tuple(map(str, range(n)))
    about |= dict.fromkeys(("items", "groups", "references"), names) | {"values": tuple((v,) for v in values.tolist())}
    about |= {"reference_values": (), "unranked": A_CONTROL if role == "control" else ""}
    made = ResultRecord(**about, settings={"references": "synthetic", "variant": "corrected"})
    return dataclasses.replace(made, id=id_of(made))


def measure(n_systems: int, n_items: int) -> dict[str, float]:
    """Build and export a board in this process."""
    with tempfile.TemporaryDirectory() as scratch:
        add_part(scratch, records(n_systems, n_items))
        start, before = time.perf_counter(), time.process_time()
        leaderboard = build_leaderboard(scratch)
        write_leaderboard(leaderboard, Path(scratch) / "site")
        seconds = time.perf_counter() - start, time.process_time() - before
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    numbers = (n_systems, n_items, leaderboard["tables"][0]["n_tests"], *(round(s, 1) for s in seconds), peak_mb)
    return dict(zip(MEASURED, numbers, strict=True))


def main() -> None:
    """Measure each board in a process of its own, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--one", nargs=2, type=int, metavar=("SYSTEMS", "ITEMS"))
    options = parser.parse_args()
    if options.one:
        print(",".join(map(str, measure(*options.one).values())))
        return
    rows = []
    for board in BOARDS:
        command = [sys.executable, __file__, "--one", *map(str, board)]
        rows.append(subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip().split(","))
        print(*rows[-1])
    with (HERE / "boards.csv").open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([MEASURED, *rows])
    lines = [" | ".join(row) for row in ([name.replace("_", " ") for name in MEASURED], ["---"] * len(MEASURED), *rows)]
    table = "\n".join(f"| {line} |" for line in lines)
    readme = HERE / "README.md"
    text = re.sub(
        r"(<!-- boards:table -->\n).*?(\n<!-- end -->)", rf"\g<1>{table}\g<2>", readme.read_text(), flags=re.DOTALL
    )
    readme.write_text(text)


if __name__ == "__main__":
    main()
