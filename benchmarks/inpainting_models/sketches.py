"""Measure how far SketchNet obeys a sketch, and what it makes of the rest.

Usage: python -m benchmarks.inpainting_models.sketches [--split validation|test] [--seeds 5] [--write]

Each window is filled along a sketch that is taken from its true middle: none, the rhythm, the pitches, or both of all
four measures. A measure obeys a rhythm where each of its 24 steps is the onset, hold or rest of the sketch, and pitches
where its onsets have these pitches, in this order and no others; both are also counted where they were not sketched.
`note_f1` and the divergences say what became of the rest. They know the sketch: they are no scores of the model.

Four ways to treat a sketch are compared on the validation windows of both shipped weights, at their own decoding. On
the test windows only the published one and the default of `SketchNetConfig` are run. With ``--write`` the rows go to
sketches.csv, and tables between the markers of README.md and of the cards of the models.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from benchmarks.inpainting_models.choose_decoding import ROOT, tokens_of
from tqdm import tqdm

from music_evals.annotations import HOLD, MUSIB_LAYOUT, Tokens
from music_evals.files import write_atomically
from music_evals.metrics.melodic_intervals import interval_divergence
from music_evals.models.sketchnet import Sketch, SketchNet
from music_evals.pipelines.inpainting import evaluate_inpainting

HERE = Path(__file__).parent
TABLE = "sketches.csv"
START, END = "<!-- sketches:start -->", "<!-- sketches:end -->"
SPLITS = ("validation", "test")
SKETCHES: Final[Mapping[str, Mapping[str, bool]]] = {
    "none": {},
    "rhythm": {"pitch": False, "rhythm": True},
    "pitches": {"pitch": True, "rhythm": False},
    "both": {"pitch": True, "rhythm": True},
}
"""What is sketched -> what `Sketch.from_tokens` takes from the true middle."""
METRICS = ("note_f1", "silence_divergence", "pitch_class_divergence", "groove_divergence")


class Weights(NamedTuple):
    """Weights that are shipped, and the data that they were trained on."""

    folder: str
    dataset: str
    config: str


WEIGHTS = (
    Weights("models/sketchnet", "jsb_chorales", "musib"),
    Weights("models/sketchnet/folk", "irish_folk", "music21_folk_cleared"),
)


class Reading(NamedTuple):
    """A way to treat a sketch: two settings of `SketchNetConfig`."""

    obey_sketches: bool
    swapped_latents: bool

    def give(self, model: SketchNet) -> None:
        """Make a network treat sketches so."""
        model.obey_sketches, model.swapped_latents = self

    @property
    def label(self) -> str:
        """What a reader calls it."""
        known = {PUBLISHED: " (published)", DEFAULT: " (default)"}
        words = "obeyed" if self.obey_sketches else "steers", "swapped" if self.swapped_latents else "connected"
        return ", ".join(words) + known.get(self, "")


PUBLISHED = Reading(obey_sketches=False, swapped_latents=True)
DEFAULT = Reading(obey_sketches=True, swapped_latents=False)
READINGS = (
    PUBLISHED,
    Reading(obey_sketches=False, swapped_latents=False),
    Reading(obey_sketches=True, swapped_latents=True),
    DEFAULT,
)


def obedience(middles: Tokens, true: Tokens) -> dict[str, float]:
    """Return the shares of measures (n, 96) with the true rhythm, and of those with an onset with the true pitches."""
    size = MUSIB_LAYOUT.steps_per_measure
    found, wanted = middles.reshape(-1, size), true.reshape(-1, size)
    # onset, hold or rest: all pitches are one kind
    rhythm = (np.maximum(found, HOLD - 1) == np.maximum(wanted, HOLD - 1)).all(1)
    sounding = (wanted < HOLD).any(1)
    pitches = [np.array_equal(a[a < HOLD], b[b < HOLD]) for a, b in zip(found[sounding], wanted[sounding], strict=True)]
    return {"rhythm_obeyed": float(rhythm.mean()), "pitches_obeyed": float(np.mean(pitches))}


def measure(model: SketchNet, contexts: Tokens, sketch: str, n_seeds: int) -> dict[str, float]:
    """Return obedience and what became of the rest, each a mean over seeds."""
    true = contexts[:, MUSIB_LAYOUT.middle]
    sketches = None if sketch == "none" else [Sketch.from_tokens(row, **SKETCHES[sketch]) for row in true]
    runs = []
    for seed in range(1 if model.deterministic else n_seeds):
        middles = model.inpaint(contexts, rng=np.random.default_rng(seed), sketches=sketches)
        scores = evaluate_inpainting(contexts, middles, n_resamples=0, metrics=METRICS)
        runs.append(
            {
                **obedience(middles, true),
                **{name: float(scores[name]) for name in METRICS},
                "interval_divergence": float(interval_divergence(true, middles)),
            }
        )
    return {"seeds": len(runs), **{name: float(np.mean([run[name] for run in runs])) for name in runs[0]}}


def rows_of(weights: Weights, split: str, n_seeds: int) -> Iterator[dict[str, Any]]:
    """Fill the windows of a split along every sketch, treated in every way; no sketch is treated in one way."""
    model = SketchNet.from_pretrained(str(ROOT / weights.folder))
    contexts = tokens_of(weights.dataset, weights.config, split)
    readings = READINGS if split == "validation" else (PUBLISHED, DEFAULT)
    runs = [("none", DEFAULT), *((name, reading) for name in SKETCHES if name != "none" for reading in readings)]
    for name, reading in tqdm(runs, desc=f"{weights.dataset} {split}"):
        reading.give(model)
        about = {"dataset": weights.dataset, "split": split, "windows": len(contexts), "sketch": name}
        yield {**about, "treated": "" if name == "none" else reading.label, **measure(model, contexts, name, n_seeds)}


def table(rows: Iterable[Mapping[str, Any]]) -> str:
    """Return rows as they stand on a page."""
    columns = {
        "sketch": "Sketch",
        "treated": "Treated",
        "rhythm_obeyed": "Measures with its rhythm",
        "pitches_obeyed": "with its pitches",
        "note_f1": "note_f1",
        "silence_divergence": "silence_divergence",
        "pitch_class_divergence": "pitch_class_divergence",
        "interval_divergence": "interval_divergence",
        "groove_divergence": "groove_divergence",
    }
    lines = [list(columns.values()), ["---"] * len(columns)]
    lines += [[f"{row[key]:.3f}" if isinstance(row[key], float) else row[key] for key in columns] for row in rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def fill(page: Path, text: str) -> None:
    """Write a text between the markers of a page."""
    before, start, rest = page.read_text(encoding="utf-8").partition(START)
    _, end, after = rest.partition(END)
    if not (start and end):
        raise SystemExit(f"{page}: expected the markers {START} and {END}")
    write_atomically(page, f"{before}{START}\n{text}\n{END}{after}".encode())


def write(rows: Sequence[Mapping[str, Any]], folder: Path, root: Path) -> None:
    """Write all rows beside the script, and tables on its page and on the cards."""
    with (folder / TABLE).open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows({key: round(x, 4) if isinstance(x, float) else x for key, x in row.items()} for row in rows)
    parts = {
        (weights, split): [row for row in rows if (row["dataset"], row["split"]) == (weights.dataset, split)]
        for split in SPLITS
        for weights in WEIGHTS
    }
    titled = (
        f"`{weights.dataset}`, {part[0]['windows']} {split} windows:\n\n{table(part)}"
        for (weights, split), part in parts.items()
    )
    fill(folder / "README.md", "\n\n".join(titled))
    for weights in WEIGHTS:
        part = parts[weights, "test"]
        fill(root / weights.folder / "README.md", f"{part[0]['windows']} test windows:\n\n{table(part)}")


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print the tables, and write them where that is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--split", choices=SPLITS, help="only one of them (default: both)")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--write", action="store_true", help="both splits to sketches.csv, README.md and the cards")
    options = parser.parse_args(arguments)
    if options.write and options.split:
        parser.error("--write wants both splits; leave --split out")
    splits = (options.split,) if options.split else SPLITS
    rows: list[dict[str, Any]] = []
    for split in splits:
        for weights in WEIGHTS:
            part = list(rows_of(weights, split, options.seeds))
            print(f"{weights.dataset} {split}\n{table(part)}", flush=True)
            rows += part
    if options.write:
        write(rows, HERE, ROOT)


if __name__ == "__main__":
    main()
