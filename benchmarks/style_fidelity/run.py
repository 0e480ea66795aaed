"""Fit the classifier of two styles, and try it and the other measures of style transfers on known material.

Usage: python -m benchmarks.style_fidelity.run [--first NAME/CONFIG] [--second NAME/CONFIG] [--out FOLDER]
       [--classifier FILE]
       python -m benchmarks.style_fidelity.run --write   # tables of the README from the CSV files alone

Training pieces fit the classifiers, one for each length of stretches; validation pieces choose the penalty; test pieces
are what every number is of. Writes, beside itself: accuracy.csv, conditions.csv, divergences.csv and melody.csv; and
the classifier of stretches of four bars to the file of `--classifier`, by default the one that the package ships.
"""

from __future__ import annotations

import argparse
import csv
import dataclasses
import json
import math
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from benchmarks.musib.tables import fill, read_csv
from datasets import load_dataset

from music_evals.annotations import Arrangement, PianoRoll, Score
from music_evals.benchmark.formats import markdown_rows
from music_evals.files import write_atomically
from music_evals.metrics.style_classifier import StyleClassifier, choose_style_classifier
from music_evals.pipelines.style_transfer.fidelity import STRETCH_BARS, evaluate_melody, evaluate_style, style_rows
from music_evals.pipelines.style_transfer.histograms import CLASSIFIER_FEATURES, HISTOGRAMS
from music_evals.stats import mean_interval
from music_evals.symbolic.encodings.piano_rolls import arrange, piano_roll
from music_evals.symbolic.notes import make_notes
from music_evals.symbolic.piece_rows import score_of_row

ROOT = Path(__file__).resolve().parents[2]
SHIPPED = ROOT / "src" / "music_evals" / "pipelines" / "style_transfer" / "classifiers" / "bach_swing.json"
LENGTHS = (1, 2, 4, 8)
SUBSETS: dict[str, Callable[[str], bool]] = {
    "all features": lambda _: True,
    "harmony alone": lambda name: name.startswith(("interval", "pitch-class")),
    "rhythm alone": lambda name: name.startswith(("onset", "note", "longer", "likeness")),
    "rhythm without the position of onsets": lambda name: name.startswith(("note", "longer", "likeness")),
}


class Piece(NamedTuple):
    """A piece of a corpus."""

    score: Score
    family: str
    melody: str


def read(place: str, split: str) -> list[Piece]:
    """Return the pieces of a split of ``NAME/CONFIG`` under datasets_scripts."""
    name, _, config = place.partition("/")
    rows = load_dataset(str(ROOT / "datasets_scripts" / name), config or None, split=split)
    return [Piece(score_of_row(row), row["family"], row["melody"]) for row in rows]


def rolls_of(pieces: Iterable[Piece], change: Callable[[Score], Score] | None = None) -> list[PianoRoll]:
    """Return the rolls of pieces, changed where a change is given."""
    return [piano_roll(piece.score if change is None else change(piece.score)) for piece in pieces]


def transposed(semitones: int) -> Callable[[Score], Score]:
    """Return the change that moves all notes."""

    def change(score: Score) -> Score:
        notes = score.notes.copy()
        notes["pitch"] += np.uint8(semitones) if semitones >= 0 else np.uint8(256 + semitones)
        return dataclasses.replace(score, notes=notes)

    return change


def off_beats(found: int, wanted: int) -> Callable[[Score], Score]:
    """Return the change that moves the starts at one of eight positions of the beat to another; ends stay."""

    def change(score: Score) -> Score:
        onset, end = score.notes["onset_tick"], score.notes["onset_tick"] + score.notes["duration_tick"]
        moved = np.where(onset % 8 == found, onset - found + wanted, onset)
        columns = (score.notes[name].astype(np.int64) for name in ("pitch", "velocity", "voice"))
        return dataclasses.replace(score, notes=make_notes(moved, np.maximum(end - moved, 1), *columns))

    return change


def voice_alone(name: str) -> Callable[[Score], Score]:
    """Return the change that keeps one voice."""

    def change(score: Score) -> Score:
        return dataclasses.replace(score, notes=score.notes[score.notes["voice"] == score.voices.index(name)])

    return change


def shuffled_bars(roll: PianoRoll, rng: np.random.Generator) -> PianoRoll:
    """Return a roll whose bars have changed places."""
    bar = np.cumsum(np.diff(roll.bar_phase, prepend=roll.bar_phase[:1]) < 0)
    order = np.concatenate([np.flatnonzero(bar == one) for one in rng.permutation(int(bar[-1]) + 1)])
    arrays = (roll.cells, roll.onsets, roll.offsets)
    cells, onsets, offsets = (array[order] for array in arrays)
    return PianoRoll(cells, onsets, offsets, roll.beat_phase[order], roll.bar_phase[order], roll.steps_per_quarter)


def noise(roll: PianoRoll, rng: np.random.Generator) -> PianoRoll:
    """Return as many cells at random places as the roll has."""
    cells = rng.random(roll.cells.shape) < roll.cells.mean()
    silent = np.zeros_like(cells)
    return roll.with_notes(cells, cells & ~np.vstack([silent[:1], cells[:-1]]), silent)


def silence(roll: PianoRoll) -> PianoRoll:
    """Return the same steps without notes."""
    nothing = np.zeros_like(roll.cells)
    return roll.with_notes(nothing, nothing, nothing)


class Corpora(NamedTuple):
    """The pieces of both styles by split."""

    styles: tuple[str, str]
    pieces: dict[str, tuple[list[Piece], list[Piece]]]

    def rows(self, split: str, bars: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return features, labels and families of the stretches of a split."""
        found = [(style_rows(rolls_of(side), bars), side, label) for label, side in enumerate(self.pieces[split])]
        features = np.vstack([rows for (rows, _), _, _ in found])
        labels = np.concatenate([np.full(len(rows), label) for (rows, _), _, label in found])
        families = [f"{label} {side[piece].family}" for (_, of), side, label in found for piece in of.tolist()]
        return features, labels, np.array(families)


def accuracies(corpora: Corpora) -> tuple[list[dict[str, Any]], StyleClassifier]:
    """Return the held-out accuracy of each length and set of features, and the classifier of four bars."""
    table, shipped = [], None
    for bars in LENGTHS:
        train, validation, test = (corpora.rows(split, bars) for split in ("train", "validation", "test"))
        for subset, keeps in SUBSETS.items():
            kept = [place for place, name in enumerate(CLASSIFIER_FEATURES) if keeps(name)]
            names = [CLASSIFIER_FEATURES[place] for place in kept]
            fitted = choose_style_classifier(
                (train[0][:, kept], train[1]),
                (validation[0][:, kept], validation[1]),
                names=names,
                styles=corpora.styles,
            )
            if bars == STRETCH_BARS and len(kept) == len(CLASSIFIER_FEATURES):
                shipped = fitted
            given = fitted.probabilities(test[0][:, kept])
            sounds = ~np.isnan(given)
            right = ((given > 0.5) == test[1])[sounds].astype(float)
            interval = mean_interval(right, test[2][sounds], span=(0.0, 1.0))
            table.append(
                {
                    "bars": bars,
                    "features": subset,
                    "n_features": len(kept),
                    "l2": fitted.l2,
                    "accuracy": f"{interval.estimate:.4f}",
                    "low": f"{interval.low:.4f}",
                    "high": f"{interval.high:.4f}",
                    **{
                        f"accuracy_{style}": f"{right[test[1][sounds] == label].mean():.4f}"
                        for label, style in enumerate(corpora.styles)
                    },
                    "stretches": int(sounds.sum()),
                    "pieces": len(set(test[2])),
                }
            )
    assert shipped is not None
    return table, shipped


def conditions(corpora: Corpora, rng: np.random.Generator) -> list[tuple[str, str, list[PianoRoll]]]:
    """Return style, what was done to it, and the rolls of its test pieces."""
    found = []
    for style, pieces in zip(corpora.styles, corpora.pieces["test"], strict=True):
        rolls = rolls_of(pieces)
        voices = list(dict.fromkeys(name for piece in pieces for name in piece.score.voices))
        changes: dict[str, list[PianoRoll]] = {
            "as it is": rolls,
            "3 semitones up": rolls_of(pieces, transposed(3)),
            "an octave up": rolls_of(pieces, transposed(12)),
            "bars shuffled": [shuffled_bars(roll, rng) for roll in rolls],
            "off-beats swung (4/8 to 5/8)": rolls_of(pieces, off_beats(4, 5)),
            "off-beats straightened (5/8 to 4/8)": rolls_of(pieces, off_beats(5, 4)),
            **{f"{voice} alone": rolls_of(pieces, voice_alone(voice)) for voice in voices},
            "as many cells at random": [noise(roll, rng) for roll in rolls],
            "silence": [silence(roll) for roll in rolls],
        }
        found += [(style, name, changed) for name, changed in changes.items()]
    return found


def given_to(classifier: StyleClassifier, tried: Sequence[tuple[str, str, list[PianoRoll]]]) -> list[dict[str, Any]]:
    """Return to which style the shipped classifier gives the stretches of each condition."""
    table = []
    for style, name, rolls in tried:
        towards = classifier.probabilities(style_rows(rolls, STRETCH_BARS)[0])
        sounds = towards[~np.isnan(towards)]
        table.append(
            {
                "style": style,
                "condition": name,
                "stretches": len(towards),
                "undefined": len(towards) - len(sounds),
                f"given_to_{classifier.styles[1]}": f"{(sounds > 0.5).mean():.4f}" if len(sounds) else "",
                f"probability_{classifier.styles[1]}": f"{sounds.mean():.4f}" if len(sounds) else "",
            }
        )
    return table


def divergences(
    corpora: Corpora, tried: Sequence[tuple[str, str, list[PianoRoll]]], n_resamples: int
) -> list[dict[str, Any]]:
    """Return the divergences of each condition from the training pieces of both styles, with their noise floors."""
    table = []
    families = {style: [piece.family for piece in corpora.pieces["test"][n]] for n, style in enumerate(corpora.styles)}
    for target, corpus in zip(corpora.styles, corpora.pieces["train"], strict=True):
        rolls, groups = rolls_of(corpus), [piece.family for piece in corpus]
        for style, name, changed in tried:
            if name == "silence":
                continue
            found = evaluate_style(
                changed, rolls, groups=families[style], corpus_groups=groups, n_resamples=n_resamples
            )
            for score in HISTOGRAMS:
                low, high = found[f"{score}_ci"]
                table.append(
                    {
                        "target": target,
                        "style": style,
                        "condition": name,
                        "score": score,
                        "value": f"{found[score]:.5f}",
                        "low": "" if math.isnan(low) else f"{low:.5f}",
                        "high": "" if math.isnan(high) else f"{high:.5f}",
                        "null": f"{found[f'{score}_null']:.5f}",
                    }
                )
    return table


def melodies(corpora: Corpora, rng: np.random.Generator) -> list[dict[str, Any]]:
    """Return the scores of the melody for outputs whose damage is known; of the style that names its melodies."""
    pieces = next(side for side in corpora.pieces["test"] if all(piece.melody for piece in side))
    originals = [arrange(piece.score, piece.melody) for piece in pieces]

    def changed(change: Callable[[Score], Score]) -> list[Arrangement]:
        return [
            Arrangement(piano_of(change(piece.score), piece.melody, one), one.accompaniment)
            for piece, one in zip(pieces, originals, strict=True)
        ]

    def piano_of(score: Score, melody: str, original: Arrangement) -> PianoRoll:
        roll = arrange(score, melody).melody
        return original.melody.with_notes(roll.cells, roll.onsets, roll.offsets)

    def thinned(share: float) -> Callable[[Score], Score]:
        def change(score: Score) -> Score:
            kept = (rng.random(len(score.notes)) >= share) | (score.notes["voice"] != 0)
            kept[[0, -1]] = True
            return dataclasses.replace(score, notes=score.notes[kept])

        return change

    tried = {
        "as it is": originals,
        "melody kept, silence below": [Arrangement(one.melody, silence(one.accompaniment)) for one in originals],
        "melody kept, noise below": [Arrangement(one.melody, noise(one.accompaniment, rng)) for one in originals],
        "a tenth of the notes left out": changed(thinned(0.1)),
        "half of the notes left out": changed(thinned(0.5)),
        "melody an octave up": changed(transposed(12)),
        "melody a semitone up": changed(transposed(1)),
        "noise in its place": [Arrangement(noise(one.melody, rng), one.accompaniment) for one in originals],
    }
    table = []
    for name, outputs in tried.items():
        found = evaluate_melody(originals, outputs, groups=[piece.family for piece in pieces])
        scores = [key for key in found if f"{key}_ci" in found]
        table.append({"condition": name, **{key: f"{found[key]:.4f}" for key in scores}})
    return table


def write(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    """Write a table."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def sections(folder: Path) -> dict[str, str]:
    """Return the tables of the README that are made from the CSV files of a folder."""
    accuracy = [["Bars in a stretch", "stretches", *SUBSETS], ["---"] * (2 + len(SUBSETS))]
    rows = read_csv(folder / "accuracy.csv")
    for bars in dict.fromkeys(row["bars"] for row in rows):
        of = {row["features"]: row for row in rows if row["bars"] == bars}
        cells = [_percent(of[name]) for name in SUBSETS]
        accuracy.append([bars, next(iter(of.values()))["stretches"], *cells])
    melody = read_csv(folder / "melody.csv")
    names = list(melody[0])
    kept = [names, ["---"] * len(names), *([row[name] for name in names] for row in melody)]
    return {"accuracy": markdown_rows(accuracy), "melody": markdown_rows(kept)}


def _percent(row: dict[str, str]) -> str:
    value, low, high = (f"{100 * float(row[name]):.1f}" for name in ("accuracy", "low", "high"))
    return f"{value} %" if low == "nan" else f"{value} % ({low} to {high})"


def main() -> None:
    """Fit, try, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--first", default="jsb_chorales/style", help="data set and config of the first style")
    parser.add_argument("--second", default="swing_synth/swing_synth", help="those of the second style")
    parser.add_argument("--resamples", type=int, default=300)
    parser.add_argument("--classifier", type=Path, default=SHIPPED)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent)
    parser.add_argument("--write", action="store_true", help="fill the tables of README.md from the CSV files alone")
    options = parser.parse_args()
    if options.write:
        page = options.out / "README.md"
        write_atomically(page, fill(page.read_text(encoding="utf-8"), sections(options.out)).encode())
        return
    places = (options.first, options.second)
    pieces = {split: (read(places[0], split), read(places[1], split)) for split in ("train", "validation", "test")}
    names = [
        load_dataset(str(ROOT / "datasets_scripts" / p.split("/")[0]), p.split("/")[1], split="test") for p in places
    ]
    corpora = Corpora((names[0][0]["style"], names[1][0]["style"]), pieces)
    rng = np.random.default_rng(0)
    options.out.mkdir(parents=True, exist_ok=True)
    table, classifier = accuracies(corpora)
    write(options.out / "accuracy.csv", table)
    text = json.dumps(classifier.to_dict(), indent=1) + "\n"
    write_atomically(options.classifier, text.encode())
    tried = conditions(corpora, rng)
    write(options.out / "conditions.csv", given_to(classifier, tried))
    write(options.out / "melody.csv", melodies(corpora, rng))
    write(options.out / "divergences.csv", divergences(corpora, tried, options.resamples))


if __name__ == "__main__":
    main()
