"""Time of a pair at two commits, side by side in one run: the working tree against an earlier commit.

    python benchmarks/preservation_speed/compare.py 29f0c1a        # about two minutes; writes compared.csv

Both judge the same pair of 30 s, in turn, each in a process of its own that stays warm; the ratio is the median of the
ratios turn by turn, so that a machine that slows down in between slows down both. Then new processes, in turn too: one
that judges the pair in memory, and ``music-evals preserve`` on its two files, with compiled code in the cache.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from run import HERE, PAIR_SEC, fill_in, make_recordings, two_cores

ROOT = HERE.parents[1]
GOALS = {("warm", "wall"): "ratio 1.25", ("cold command", "wall"): "1.5 s"}

# Each child imports `music_evals` from the tree that PYTHONPATH names: the one here, or that of the other commit.
CHILD = """
import inspect, os, sys, time, warnings
warnings.simplefilter("ignore")
from music_evals.pipelines.preservation import evaluate_preservation
# before 0.3 intervals were resampled
plain = {"n_resamples": 0} if "n_resamples" in inspect.signature(evaluate_preservation).parameters else {}
def judge(one, other):
    evaluate_preservation([one], [other], **plain)
judge(*sys.argv[1:3])
if len(sys.argv) > 3:
    judge(*sys.argv[3:5])
    for _ in sys.stdin:
        wall, processor = time.perf_counter(), sum(os.times()[:4])
        judge(*sys.argv[3:5])
        print(time.perf_counter() - wall, sum(os.times()[:4]) - processor, flush=True)
"""


class Times(NamedTuple):
    """Seconds of one turn."""

    wall: float
    processor: float


def main() -> None:
    """Measure both, print the table, write compared.csv and the README."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("commit", help="what the working tree is compared with")
    parser.add_argument("--turns", type=int, default=15, help="warm turns (default: %(default)s)")
    parser.add_argument("--cold-turns", type=int, default=5, help="new processes of each kind (default: %(default)s)")
    parser.add_argument("--work", type=Path, default=Path(tempfile.gettempdir()) / "preservation_speed")
    options = parser.parse_args()
    two_cores()
    make_recordings(options.work)
    pair = [str(options.work / f"{name}.wav") for name in ("original", "edit_0")]
    warm_up = [str(options.work / f"warm_{name}.wav") for name in ("original", "edit")]
    with _tree(options.commit) as other:
        trees = {"now": ROOT / "src", "before": other / "src"}
        found = {
            "warm": _warm(trees, [*warm_up, *pair], options.turns),
            "cold call": _cold(trees, lambda _: [sys.executable, "-c", CHILD, *pair], options.cold_turns),
            "cold command": _cold(trees, lambda out: _command(pair, out), options.cold_turns),
        }
    _report(found, options.commit)


@contextlib.contextmanager
def _tree(commit: str) -> Iterator[Path]:
    """Check a commit out into a folder of its own for as long as it is needed."""
    with tempfile.TemporaryDirectory(prefix="music_evals_") as scratch:
        folder = Path(scratch) / "tree"
        subprocess.run(["git", "-C", ROOT, "worktree", "add", "--quiet", "--detach", folder, commit], check=True)
        try:
            yield folder
        finally:
            subprocess.run(["git", "-C", ROOT, "worktree", "remove", "--force", folder], check=True)


def _environment(tree: Path) -> dict[str, str]:
    return os.environ | {"PYTHONPATH": str(tree), "PYTHONWARNINGS": "ignore", "HF_HUB_OFFLINE": "1"}


def _warm(trees: dict[str, Path], arguments: list[str], turns: int) -> dict[str, list[Times]]:
    """Judge the pair turn by turn in one process for each tree."""
    found: dict[str, list[Times]] = {name: [] for name in trees}
    with contextlib.ExitStack() as stack:
        children = {}
        for name, tree in trees.items():
            child = subprocess.Popen(
                [sys.executable, "-c", CHILD, *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                env=_environment(tree),
            )
            children[name] = stack.enter_context(child)
        for _ in range(turns + 1):
            for name, child in children.items():
                child.stdin.write("go\n")
                child.stdin.flush()
                found[name].append(Times(*map(float, child.stdout.readline().split())))
        for child in children.values():
            child.stdin.close()
    return {name: times[1:] for name, times in found.items()}  # the first turn also waits for the process to be warm


def _cold(trees: dict[str, Path], command: Callable[[Path], list[str]], turns: int) -> dict[str, list[Times]]:
    """Run a command in a new process turn by turn; a first one, which may compile, does not count."""
    found: dict[str, list[Times]] = {name: [] for name in trees}
    for turn in range(turns + 1):
        for name, tree in trees.items():
            with tempfile.TemporaryDirectory(prefix="music_evals_") as scratch:
                wall, before = time.perf_counter(), os.times()
                subprocess.run(
                    command(Path(scratch) / "out"),
                    check=True,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    env=_environment(tree),
                )
                after = os.times()
            processor = after.children_user + after.children_system - before.children_user - before.children_system
            if turn:
                found[name].append(Times(time.perf_counter() - wall, processor))
    return found


def _command(pair: list[str], out: Path) -> list[str]:
    verb = [sys.executable, "-m", "music_evals.cli", "preserve", "--no-report"]
    return [*verb, "--reference", pair[0], "--estimate", pair[1], "--out", str(out)]


def _report(found: dict[str, dict[str, list[Times]]], commit: str) -> None:
    rows: list[list[Any]] = []
    for what, times in found.items():
        for clock in Times._fields:
            now, before = ([getattr(turn, clock) for turn in times[side]] for side in ("now", "before"))
            ratios = [one / other for one, other in zip(now, before, strict=True)]
            rows.append([what, clock, *map(statistics.median, (now, before, ratios))])
    machine = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    with (HERE / "compared.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["quantity", "seconds", "now", "before", "ratio", "commit", "machine"])
        writer.writerows([*row[:2], *(f"{value:.3f}" for value in row[2:]), commit, machine] for row in rows)
    lines = [f"| a pair of {PAIR_SEC} s | seconds | now | at {commit} | ratio | goal |", "|---|---|---|---|---|---|"]
    lines += [
        f"| {what} | {clock} | {now:.3f} | {before:.3f} | {ratio:.2f} | {GOALS.get((what, clock), '')} |"
        for what, clock, now, before, ratio in rows
    ]
    print("\n".join(lines))
    fill_in("compared", lines)


if __name__ == "__main__":
    main()
