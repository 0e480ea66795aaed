"""How often intervals of the ratio of efforts hold the truth, in simulated editing tests.

Usage: python -m benchmarks.editing_study.run [--draws N] [--write]

Studies with a known effect (`studies.editing.simulation`; the published design but for the number of pieces) are judged
by the geometric mean ratio clustered by piece, and by the mixed model with and without samples as a term.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.musib.tables import fill, write_csv
from tqdm import tqdm

from music_evals.files import write_atomically
from music_evals.pipelines.editing_test import evaluate_effort
from music_evals.pipelines.study_tables import StudyTables
from music_evals.studies.editing.mixed_model import mixed_models
from music_evals.studies.editing.simulation import StudyDesign, simulate_study

HERE = Path(__file__).parent
COLUMNS = ("pieces", "edits", "ratio", "learning", "interval", "draws", "undefined", "coverage", "power", "width")
PIECES = (6, 12, 24)
WORLDS = [StudyDesign(n_pieces=n, ratio=ratio, n_listeners=0) for ratio in (1.0, 0.7) for n in PIECES]
WORLDS.append(StudyDesign(n_pieces=12, ratio=0.7, learning=0.95, n_listeners=0))


def main(arguments: Sequence[str] | None = None) -> None:
    """Simulate, print, and write where it is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=100, help="studies of each kind (default: %(default)s)")
    parser.add_argument("--write", action="store_true", help="write results.csv and the table of README.md")
    options = parser.parse_args(arguments)
    rows = [row for world in WORLDS for row in judged(world, options.draws)]
    for row in rows:
        print(row)
    if options.write:
        write_csv(HERE / "results.csv", COLUMNS, rows)
        lines = ["| " + " | ".join(COLUMNS) + " |", "| " + " | ".join("---" for _ in COLUMNS) + " |"]
        lines += ["| " + " | ".join(shown(row[name]) for name in COLUMNS) + " |" for row in rows]
        readme = HERE / "README.md"
        page = fill(readme.read_text(encoding="utf-8"), {"coverage": "\n".join(lines)})
        write_atomically(readme, page.encode())


def judged(design: StudyDesign, draws: int) -> Iterator[dict[str, Any]]:
    """Yield a row for each kind of interval."""
    n_pieces, ratio = design.n_pieces, design.ratio
    ends: dict[str, list[tuple[float, float]]] = {}
    for draw in tqdm(range(draws), desc=f"{n_pieces} pieces, ratio {ratio:g}", leave=False):
        study = simulate_study(design, rng=np.random.default_rng([draw, n_pieces, round(100 * ratio)]))
        for name, both in intervals(study):
            ends.setdefault(name, []).append(both)
    for name, found in ends.items():
        low, high = np.array(found).T
        defined = np.isfinite(low) & np.isfinite(high)
        low, high = low[defined], high[defined]
        yield {
            "pieces": n_pieces, "edits": 2 * n_pieces * len(design.styles) * design.edits_per_sample, "ratio": ratio,
            "learning": design.learning, "interval": name, "draws": draws, "undefined": int(draws - defined.sum()),
            "coverage": round(float(np.mean((low <= ratio) & (ratio <= high))), 3),
            "power": round(float(np.mean(high < 1)), 3), "width": round(float(np.median(high / low)), 2),
        }  # fmt: skip


def intervals(study: StudyTables) -> Iterator[tuple[str, tuple[float, float]]]:
    """Yield the intervals of the ratio of times, 95 %."""
    yield "geometric mean, by piece", evaluate_effort(study)["time_effort_ratio_ci"]
    for name, with_samples in (("mixed model", True), ("mixed model without samples", False)):
        row = mixed_models(study, with_samples=with_samples)[0]
        yield name, (row["ci_low"], row["ci_high"])


def shown(value: Any) -> str:
    """Return a cell; numbers as they were rounded."""
    return f"{value:g}" if isinstance(value, float) else str(value)


if __name__ == "__main__":
    main()
