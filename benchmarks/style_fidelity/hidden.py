"""What hiding neighbours at first does to transfers: melodies of chorales over triads, carried over to each style.

Usage: python -m benchmarks.style_fidelity.hidden --model FOLDER [--model FOLDER ...] [--hidden N ...] [--write]

Pieces are the first bars of chorales of the validation split: the soprano over triads on every beat, which is of
neither style. Models sample with their own settings but for `hidden_max`. With ``--write`` the rows of the models that
were run replace those of hidden.csv, and the table of README.md is made of all rows there. The models hide none, the
setting whose outputs lie nearest to the validation pieces of their style (the least mean of the seven divergences).
"""

from __future__ import annotations

import argparse
import dataclasses
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.musib.tables import fill, read_csv, write_csv
from benchmarks.style_fidelity.run import read, rolls_of
from tqdm import tqdm

from music_evals.annotations import Arrangement, Score
from music_evals.benchmark.inputs import find_model
from music_evals.datasets.style_transfer_pieces.build import with_triads
from music_evals.files import write_atomically
from music_evals.pipelines.style_transfer.fidelity import CLASSIFIERS, evaluate_style, load_style_classifier
from music_evals.pipelines.style_transfer.histograms import HISTOGRAMS
from music_evals.pipelines.style_transfer.rearrangement import prepare
from music_evals.protocols import STYLE_TRANSFERS
from music_evals.symbolic.notes import sort_notes

HERE = Path(__file__).parent
COLUMNS = ("model", "hidden", "pieces", "divergence", "p_target", "kept", "density", "consonance", "seconds")
CORPORA = {"bach": "jsb_chorales/style", "swing": "swing_synth/swing_synth"}
HEADINGS = {
    "model": "model",
    "hidden": "hidden at first",
    "pieces": "pieces",
    "divergence": "mean divergence, nats",
    "p_target": "p(target)",
    "kept": "share kept of the input",
    "density": "cells, times those of the input",
    "consonance": "consonance",
}
QUARTERS = 16
# Yeh et al., "Automatic melody harmonization with triad chords" (2021): pitch consonance of a melody over a pitch
CONSONANCE = np.array([1, -1, -1, 1, 1, 0, -1, 1, 1, 1, -1, -1])


def main(arguments: Sequence[str] | None = None) -> None:
    """Transfer, print, and write where it is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", action="append", default=[], help="folder of a model; may be given many times")
    parser.add_argument("--hidden", type=int, nargs="+", default=[0, 8, 32], help="default: %(default)s")
    parser.add_argument("--pieces", type=int, default=6, help="of the validation split (default: %(default)s)")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--out", type=Path, default=HERE, help="folder of hidden.csv and README.md")
    options = parser.parse_args(arguments)
    given = [prepare(song, "soprano").arrangement for song in songs(options.pieces)]
    rows = [row for folder in options.model for row in judged(folder, given, options.hidden)]
    for line in table(rows):
        print(line)
    if options.write:
        path, page = options.out / "hidden.csv", options.out / "README.md"
        models = {row["model"] for row in rows}
        old = [row for row in read_csv(path) if row["model"] not in models] if path.is_file() else []
        write_csv(path, COLUMNS, sorted([*old, *rows], key=lambda row: (row["model"], int(row["hidden"]))))
        text = fill(page.read_text(encoding="utf-8"), {"hidden": "\n".join(table(read_csv(path)))})
        write_atomically(page, text.encode())


def songs(number: int) -> list[Score]:
    """Return sopranos of chorales of the validation split over triads, evenly chosen."""
    chorales = read("jsb_chorales/style", "validation")
    step = max(len(chorales) // number, 1)
    return [with_triads(soprano(piece.score)) for piece in chorales[::step][:number]]


def soprano(score: Score) -> Score:
    """Return the first bars of the highest voice of a chorale alone."""
    end = QUARTERS * score.ticks_per_quarter
    notes = score.voice(0)[score.voice(0)["onset_tick"] < end]
    return dataclasses.replace(score, notes=sort_notes(notes), voices=("soprano",))


def judged(folder: str, given: Sequence[Arrangement], hidden: Sequence[int]) -> Iterator[dict[str, Any]]:
    """Yield a row for each number of hidden steps."""
    found = find_model(folder, STYLE_TRANSFERS)
    model = found.plugin(STYLE_TRANSFERS).from_pretrained(str(found.folder)).eval()
    classifier = load_style_classifier(CLASSIFIERS[0])
    corpus = rolls_of(read(CORPORA[model.style], "validation"))
    own = model.sampling
    for number in hidden:
        model.sampling = dataclasses.replace(own, hidden_max=number)
        begun = time.monotonic()
        made = [
            model.transfer(arrangement, rng=np.random.default_rng(index))
            for index, arrangement in enumerate(tqdm(given, desc=f"{model.name}, {number} hidden", unit="piece"))
        ]
        like = evaluate_style([one.merged for one in made], corpus, target=model.style, classifier=classifier)
        yield {
            "model": model.name,
            "hidden": number,
            "pieces": len(made),
            "divergence": float(np.mean([like[name] for name in HISTOGRAMS])),
            "p_target": like["style_probability"],
            "kept": float(np.mean([kept(*pair) for pair in zip(given, made, strict=True)])),
            "density": float(np.mean([density(*pair) for pair in zip(given, made, strict=True)])),
            "consonance": float(np.nanmean([consonance(one) for one in made])),
            "seconds": time.monotonic() - begun,
        }


def kept(given: Arrangement, made: Arrangement) -> float:
    """Return the share of the accompaniment's cells that input and output have in common, of those of either."""
    before, after = given.accompaniment.cells, made.accompaniment.cells
    return float((before & after).sum() / (before | after).sum())


def density(given: Arrangement, made: Arrangement) -> float:
    """Return how many cells of accompaniment there are for each of the input's."""
    return float(made.accompaniment.cells.sum() / given.accompaniment.cells.sum())


def consonance(arrangement: Arrangement) -> float:
    """Return the mean pitch consonance of melody over accompaniment, -1 to 1, of the steps where both sound."""
    values = []
    for above, below in zip(arrangement.melody.cells, arrangement.accompaniment.cells, strict=True):
        if above.any() and below.any():
            values.append(CONSONANCE[np.subtract.outer(np.flatnonzero(above), np.flatnonzero(below)) % 12].mean())
    return float(np.mean(values)) if values else float("nan")


def table(rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield the lines of the table."""
    yield "| " + " | ".join(HEADINGS.values()) + " |"
    yield "|" + " --- |" * len(HEADINGS)
    for row in rows:
        shown = [row[key] if key in {"model", "hidden", "pieces"} else f"{float(row[key]):.2f}" for key in HEADINGS]
        yield "| " + " | ".join(map(str, shown)) + " |"


if __name__ == "__main__":
    main()
