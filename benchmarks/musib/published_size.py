"""VLI at its published size on the chorales, beside the small one that ships and the rules without a network.

Usage: python -m benchmarks.musib.published_size [--write]

The weights of 93.57 million parameters are too large to ship. What they wrote into each window of the test split lies
in published_size/, with the log of their training and the scores that their decoding was chosen by; this scores it
anew. README.md says how the weights were made.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import datasets
from benchmarks.musib.hypotheses import ACCURACIES, N_RESAMPLES, divergence_difference, mean_difference, scores_of
from benchmarks.musib.judging import Judged, Plan
from benchmarks.musib.systems import DATA, HERE, ROOT, size_of

import music_evals
from benchmarks.musib import tables
from music_evals.benchmark.aggregate import Resampling, compare_divergences
from music_evals.benchmark.formats import markdown_rows
from music_evals.benchmark.tasks.inpainting.runner import COMPANION, INTERVALS
from music_evals.benchmark.tasks.inpainting.task import HEADINGS, INPAINTING
from music_evals.files import write_atomically
from music_evals.pipelines.inpainting import FEATURES

FOLDER = HERE / "published_size"
SMALL = ROOT / "models" / "vli"
LARGE = "vli_paper"
"""The system whose middles are in the file of that name."""

LARGE_SIZE = "paper, 93.57 M"
COMPARED = ("note_f1", INTERVALS, COMPANION, *ACCURACIES, *FEATURES)
COLUMNS = ("metric", "difference", "low", "high", "n", "n_groups")
"""Columns of differences.csv."""


def judge(out: Path) -> Judged:
    """Score both sizes and all rules on all test windows of the chorales."""
    data = next(data for data in DATA if data.key == "jsb")
    settings: dict[str, Any] = {
        "dataset": data.place,
        "config": data.config,
        "report": False,
        "predictions": str(FOLDER / f"{LARGE}.jsonl"),
    }
    outcome = music_evals.run("inpainting", out, models=[str(SMALL)], **settings)
    plan = Plan(data, "honest", "own", (SMALL,), settings)
    return Judged(plan, outcome.results, outcome.scores, {LARGE: LARGE_SIZE, "vli": size_of(SMALL)})


def differences(run: Judged) -> Iterator[tables.Row]:
    """Yield by how much the large one is better than the small one, with 95 % intervals by songs."""
    large, small = (scores_of(run, name) for name in (LARGE, "vli"))
    for metric in COMPARED:
        found: tuple[float, ...]
        if metric == INTERVALS:
            test = compare_divergences(
                run.found, INPAINTING, ("vli", LARGE), metric, Resampling(n_resamples=N_RESAMPLES)
            )
            found = test.difference, test.low, test.high, test.n, len(set(run.found.songs))
        elif metric in FEATURES:
            found = divergence_difference(run.found, LARGE, "vli", metric, 0.95)
        elif metric == COMPANION:  # both repeat more notes than the true middles
            found = mean_difference(small, large, (metric, metric), 0.95)
        else:
            found = mean_difference(large, small, (metric, metric), 0.95)
        yield {"metric": metric, **dict(zip(COLUMNS[1:], found, strict=True))}


def sections(run: Judged, rows: list[tables.Row]) -> dict[str, str]:
    """Return the tables of README.md."""
    return {"published_size": f"{tables.honest_table(run)}\n\n{difference_table(rows)}"}


def difference_table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the differences, also those that were read from their file."""
    shown = [["score", "better by", "95 % interval", "songs", "windows"], ["---", "---:", "---:", "---:", "---:"]]
    for row in rows:
        difference, low, high = (f"{float(row[name]):+.3f}" for name in COLUMNS[1:4])
        shown.append([HEADINGS[row["metric"]], difference, f"{low} to {high}", str(row["n_groups"]), str(row["n"])])
    return markdown_rows(shown)


def main() -> None:
    """Score, and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "musib_published_size")
    parser.add_argument("--write", action="store_true", help="write published_size/ and its section of README.md")
    options = parser.parse_args()
    datasets.disable_progress_bars()
    run = judge(options.out)
    rows = list(differences(run))
    found = sections(run, rows)
    print(found["published_size"])
    if options.write:
        tables.write_csv(FOLDER / "results.csv", tables.SCORES, tables.score_rows(run))
        tables.write_csv(FOLDER / "differences.csv", COLUMNS, rows)
        page = HERE / "README.md"
        write_atomically(page, tables.fill(page.read_text(encoding="utf-8"), found).encode())


if __name__ == "__main__":
    main()
