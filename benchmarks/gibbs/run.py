"""How long Gibbs sampling takes: 16 bars and 15 sweeps of the published size, and the naive sampler beside it.

Usage: python -m benchmarks.gibbs.run --network MODULE:CLASS --network MODULE:CLASS=FOLDER

Writes results.csv beside itself and fills the tables of README.md. A network is a class of `music_evals.models`, with
random weights at its default size, or with those of a folder. Runs on a GPU where there is one; on a CPU a network of
the published size takes some minutes.
"""

from __future__ import annotations

import argparse
import pkgutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from benchmarks.gibbs.timing import first_steps, ode_to_joy, receipt, side_by_side, timed_run
from benchmarks.musib.tables import fill, write_csv

from music_evals.models.gibbs import GibbsSettings

HERE = Path(__file__).parent
STEPS_A_BAR = 32
COLUMNS = (
    "network", "sampler", "mode", "steps", "sweeps", "seconds", "snapshot_seconds", "sequential_seconds", "kept",
    "passes", "changed", "density", "naive_seconds", "ratio", "device", "threads", "load_average", "torch",
)  # fmt: skip
RUN_COLUMNS = {
    "network": "network", "mode": "mode", "steps": "steps", "sweeps": "sweeps", "seconds": "seconds",
    "snapshot_seconds": "from snapshots", "sequential_seconds": "each seeing all before", "kept": "kept of steps ahead",
    "passes": "passes", "changed": "cells changed last", "density": "density",
}  # fmt: skip
RATIO_COLUMNS = {
    "network": "network", "mode": "mode", "steps": "steps", "sweeps": "sweeps", "seconds": "exact, seconds",
    "naive_seconds": "naive, seconds", "ratio": "times faster",
}  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and write table and page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--network", action="append", required=True, help="MODULE:CLASS, or MODULE:CLASS=FOLDER")
    parser.add_argument("--bars", type=int, default=16, help="of the timed piece (default: %(default)s)")
    parser.add_argument("--sweeps", type=int, default=15, help="default: %(default)s")
    parser.add_argument("--mode", choices=("sample", "threshold"), default="threshold", help="default: %(default)s")
    parser.add_argument("--naive-steps", type=int, default=4, help="length of the piece for both samplers")
    parser.add_argument("--naive-sweeps", type=int, default=2)
    parser.add_argument("--pairs", type=int, default=2, help="runs of either sampler (default: %(default)s)")
    parser.add_argument("--windows-at-once", type=int, help="steps in one call of the network")
    parser.add_argument("--call-cost", type=float, help="of a call besides its windows, in windows")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--out", type=Path, default=HERE, help="folder of results.csv and README.md")
    options = parser.parse_args(arguments)
    rows = [row for name in options.network for row in measured(name, options)]
    about = receipt(options.device)
    write_csv(options.out / "results.csv", COLUMNS, [{**dict.fromkeys(COLUMNS), **row, **about} for row in rows])
    page = options.out / "README.md"
    if page.is_file():
        page.write_text(fill(page.read_text(encoding="utf-8"), sections(rows, about)), encoding="utf-8")


def measured(name: str, options: argparse.Namespace) -> list[dict[str, Any]]:
    """Return the rows of a network: the whole piece, and the two samplers on its beginning."""
    network = load(name, options.device)
    settings = GibbsSettings(
        sweeps=options.sweeps, mode=options.mode, windows_at_once=options.windows_at_once, call_cost=options.call_cost
    )
    piece = first_steps(ode_to_joy(), options.bars * STEPS_A_BAR)
    whole = timed_run(network, piece, settings, progress=lambda line: print(f"{name}: {line}", file=sys.stderr))
    short = GibbsSettings(
        sweeps=options.naive_sweeps, mode=options.mode, eta=0.5, windows_at_once=options.windows_at_once
    )
    beside = side_by_side(network, first_steps(piece, options.naive_steps), short, options.pairs)
    return [{"network": name, "sampler": "exact", **whole}, {"network": name, "sampler": "both", **beside}]


def load(name: str, device: str) -> Any:
    """Return a network: ``module:Class`` with random weights (seed 0), or ``module:Class=folder`` with its weights."""
    place, _, folder = name.partition("=")
    kind = pkgutil.resolve_name(place)
    torch.manual_seed(0)
    return (kind.from_pretrained(folder) if folder else kind()).to(device).eval()


def sections(rows: Sequence[Mapping[str, Any]], about: Mapping[str, str]) -> dict[str, str]:
    """Return the texts between the markers of the page."""
    return {
        "runs": _table([row for row in rows if row["sampler"] == "exact"], RUN_COLUMNS),
        "ratio": _table([row for row in rows if row["sampler"] == "both"], RATIO_COLUMNS),
        "machine": ", ".join(f"{key.replace('_', ' ')}: {value}" for key, value in about.items()),
    }


def _table(rows: Sequence[Mapping[str, Any]], columns: Mapping[str, str]) -> str:
    lines = [columns.values(), ["---"] * len(columns), *([_shown(row[key]) for key in columns] for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.3f}" if value < 1 else f"{value:.1f}"
    return "" if value is None else str(value)


if __name__ == "__main__":
    main()
