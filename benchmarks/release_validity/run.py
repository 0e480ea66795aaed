"""Which release to cite: the variants of music context preservation beside each other on edits whose truth is known.

Usage: python -m benchmarks.release_validity.run [--pieces 2] [--seconds 12] [--metrics FACETS] [--write]

Held-out pieces of `known_edits`, rendered, and the first seconds of each: edits, another piece, white noise, silence.
Prints the mean of every score of the release by edit and variant; `--write` writes results.csv and README.md's table.
What needs a package that is missing is left out by name (``python -m benchmarks.parity.backends`` installs them).
"""

from __future__ import annotations

import argparse
import itertools
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.musib.tables import fill, read_csv, write_csv

from music_evals.benchmark.formats import markdown_rows
from music_evals.datasets.known_edits.build import load_rows, render_pair
from music_evals.files import write_atomically
from music_evals.metrics.arrays import MUSECPEVAL
from music_evals.metrics.catalogue import RELEASE_SCORES, RELEASES, metric_of
from music_evals.pipelines.preservation import evaluate_preservation

HERE = Path(__file__).parent
VARIANTS = ("corrected", "official", MUSECPEVAL)
PIECES = ("song_pop", "folk_oh_susanna", "song_funk")
KNOWN = {
    "transposed by 2": ("transpose", 2.0),
    "tempo x 1.2": ("tempo", 1.2),
    "other instruments": ("timbre", 3.0),
    "melody replaced": ("melody_replaced", 1.0),
}
"""Column -> kind and strength of `known_edits`; the truth is in its card."""

COLUMNS = ("same music", *KNOWN, "another piece", "white noise", "silence")


def main(arguments: Sequence[str] | None = None) -> None:
    """Judge, print, and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pieces", type=int, default=2, choices=range(2, len(PIECES) + 1))
    parser.add_argument("--seconds", type=float, default=12.0)
    facets = "harmony,rhythm,structure,melody,timbre"
    parser.add_argument("--metrics", default=facets, help="facets with commas; rows of the others stay")
    parser.add_argument("--write", action="store_true", help="results.csv and README.md")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        pairs = list(made_pairs(PIECES[: options.pieces], options.seconds, Path(folder)))
        with ProcessPoolExecutor(len(VARIANTS)) as processes:
            found = processes.map(
                judged, VARIANTS, itertools.repeat(pairs), itertools.repeat(options.metrics.split(","))
            )
            rows = [row for rows in found for row in rows]
    for row in rows:
        print(*row.values(), sep="\t")
    if options.write:
        file, order = HERE / "results.csv", list(RELEASES[MUSECPEVAL])
        new = {(row["variant"], row["score"]) for row in rows}
        rows += [row for row in read_csv(file) if (row["variant"], row["score"]) not in new] if file.exists() else []
        rows.sort(key=lambda row: (order.index(row["score"]), VARIANTS.index(row["variant"])))
        write_csv(file, ("variant", "score", *COLUMNS), rows)
        page = HERE / "README.md"
        text = f"{options.pieces} pieces, {options.seconds:g} s of each.\n\n{table(rows)}"
        write_atomically(page, fill(page.read_text(encoding="utf-8"), {"results": text}).encode())


def made_pairs(pieces: Sequence[str], seconds: float, folder: Path) -> Iterator[tuple[str, str, str]]:
    """Yield column, original and edit: files of a length."""
    import soundfile

    def written(name: str, samples: Any, rate: int) -> str:
        soundfile.write(folder / f"{name}.wav", samples[: int(seconds * rate)], rate, subtype="PCM_16")
        return str(folder / f"{name}.wav")

    rows = {(row["piece"], row["kind"], row["strength"]): row for row in load_rows("default", "held_out")}
    rng, originals = np.random.default_rng(0), {}
    for piece in pieces:
        for column, (kind, strength) in KNOWN.items():
            files = render_pair(rows[piece, kind, strength])
            sides = [soundfile.read(file) for file in files]
            originals[piece] = written(piece, *sides[0])
            yield column, originals[piece], written(f"{piece} {kind}", *sides[1])
        rate = soundfile.info(originals[piece]).samplerate
        noise = np.clip(0.1 * rng.standard_normal(int(seconds * rate)), -1, 1)
        yield "same music", originals[piece], originals[piece]
        yield "white noise", originals[piece], written(f"{piece} noise", noise, rate)
        yield "silence", originals[piece], written(f"{piece} silence", np.zeros(len(noise)), rate)
    for first, second in zip(pieces, (*pieces[1:], pieces[0]), strict=True):
        yield "another piece", originals[first], originals[second]


def judged(variant: str, pairs: Sequence[tuple[str, str, str]], facets: Sequence[str]) -> list[dict[str, str]]:
    """Return a row for each score of a variant, the mean by column; a dash where no pair has a value."""
    sides = [pair[1] for pair in pairs], [pair[2] for pair in pairs]
    names = [name for name in RELEASES[MUSECPEVAL] if variant == MUSECPEVAL or name not in RELEASE_SCORES]
    names = [name for name in names if metric_of(name).facet in facets]
    items = evaluate_preservation(*sides, metrics=names, variant=variant, per_item=True, failures="record")["per_item"]
    rows = []
    for name in names:
        if (missing := items[0]["errors"].get(name, "")).startswith("MissingBackendError"):
            print(f"{variant}: {name}: {missing}")
            continue
        values = {
            column: [item[name] for pair, item in zip(pairs, items, strict=True) if pair[0] == column]
            for column in COLUMNS
        }
        rows.append({"variant": variant, "score": name, **{column: _mean(found) for column, found in values.items()}})
    return rows


def _mean(values: Sequence[float]) -> str:
    defined = [value for value in values if not np.isnan(value)]
    return f"{np.mean(defined):.2f}" if defined else "-"


def table(rows: Sequence[Mapping[str, str]]) -> str:
    """Return the means as a table in Markdown, the variants of a score below each other."""
    arrows = {"higher": "↑", "lower": "↓"}
    order = list(dict.fromkeys(row["score"] for row in rows))
    head = ("Score", "Variant", *COLUMNS)
    body = [
        [f"{arrows[metric_of(score).direction]} `{score}`", f"`{row['variant']}`", *(row[column] for column in COLUMNS)]
        for score in order
        for row in rows
        if row["score"] == score
    ]
    return markdown_rows([head, ["---"] * len(head), *body])


if __name__ == "__main__":
    main()
