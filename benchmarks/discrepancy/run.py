"""The discrepancy study on the demo songs and, where they are, on the development songs of MuChin.

    python benchmarks/discrepancy/run.py                       # a few minutes; writes results.csv and pictures
    python benchmarks/discrepancy/run.py --encoder BAAI/bge-large-zh-v1.5 --out FOLDER

Only means, intervals and tests over groups of songs are written: no tag, title or line of a song.
"""

from __future__ import annotations

import argparse
import csv
import shutil
import tempfile
from pathlib import Path
from typing import Any

from music_evals.benchmark.songs.discrepancy import Outcome, Settings, run_discrepancy
from music_evals.lyrics.embeddings import CHAR_NGRAMS
from music_evals.pipelines.discrepancy import ALL, FACING, Cell

HERE = Path(__file__).resolve().parent
DEMO = HERE.parents[1] / "datasets_scripts" / "caimd"
DEV = HERE.parents[2] / "shared" / "data" / "muchin" / "dev.jsonl"  # third-party songs, never in the repository
N_PERMUTATIONS = 100_000  # the smallest p-value of 300 tests is .003 after Holm's correction
SCORES: dict[str, dict[str, Any]] = {
    "tags": {"level": "tags"},
    "tags_normalized": {"level": "tags", "normalize_by_self": True},
    "joined": {"level": "joined"},
}
FIELDS = ("data", "encoder", "score", *Cell._fields)


def study(data: str, score: str, encoder: str, out: Path) -> Outcome:
    """Run the study on one set of songs with one score."""
    where: dict[str, Any] = {"dataset": str(DEMO), "config": "demo"} if data == "demo" else {"dataset": str(DEV)}
    return run_discrepancy(Settings(out=out, encoder=encoder, n_permutations=N_PERMUTATIONS, **where, **SCORES[score]))


def rows_of(outcome: Outcome, data: str, score: str) -> list[list[str]]:
    """Return rows of results.csv."""
    encoder = outcome.found.settings["encoder"]
    name = f"{encoder['name']} {encoder['revision']}"
    return [
        [data, name, score, *cell[:3], *(_number(value) for value in cell[3:])] for cell in outcome.found.cells
    ]  # fmt: skip


def _number(value: float) -> str:
    return str(value) if isinstance(value, int) else ("" if value != value else f"{value:.4g}")  # noqa: PLR0124


def main() -> None:
    """Run all studies; write the table and the pictures, and print what README.md shows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--encoder", default=CHAR_NGRAMS, help="see music-evals discrepancy (default: %(default)s)")
    parser.add_argument("--out", type=Path, default=HERE, help="folder for results.csv and pictures")
    arguments = parser.parse_args()
    rows: list[list[str]] = []
    for data in ("demo", *(["muchin_dev"] if DEV.is_file() else [])):
        for score in SCORES:
            with tempfile.TemporaryDirectory() as folder:
                outcome = study(data, score, arguments.encoder, Path(folder))
                rows += rows_of(outcome, data, score)
                if data != "demo" and score != "tags_normalized":
                    shutil.copy(outcome.files["plot"], arguments.out / f"{data}_{score}.svg")
            report(data, score, outcome)
    with (arguments.out / "results.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows([FIELDS, *rows])


def report(data: str, score: str, outcome: Outcome) -> None:
    """Print all songs' similarities and the groups that differ, as Markdown rows."""
    found = outcome.found
    print(f"\n{data}, {score}: {found.n_songs} songs, {outcome.results['n_clusters']} clusters")
    for name in found.dimensions:
        cell = found.cell(ALL, ALL, name)
        print(f"| {FACING[name].english} | {cell.similarity:.3f} ({cell.low:.3f}..{cell.high:.3f}) |")
    for cell in found.cells:
        if cell.p_adjusted < 0.05:
            numbers = f"{cell.n_defined} | {cell.similarity:.3f} | {cell.difference:+.3f} | {cell.p_adjusted:.2g}"
            print(f"| {cell.grouping} | {cell.group} | {FACING[cell.dimension].english} | {numbers} |")


if __name__ == "__main__":
    main()
