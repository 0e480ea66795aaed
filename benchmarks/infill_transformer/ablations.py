"""What each part of the infill transformer is worth: trained without it, in equal steps, and compared in pairs.

Usage: python -m benchmarks.infill_transformer.ablations [--steps 1000] [--size tiny] [--only NAME ...] [--write]

    --steps N       of each training
    --only NAME     these alone; the table then holds what is done
    --write         write ablations.csv and the section of README.md

Every training is the recipe's with one change, of the same seed. It is judged by `best` on the validation split of
`jsb_chorales`; the test split is never read. Differences are paired by window, their intervals by song. Some seeds of
the whole network say what a seed alone does. An interrupted table goes on where it stood.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from benchmarks.musib.systems import ROOT
from benchmarks.musib.tables import fill, write_csv

from music_evals.benchmark.formats import markdown_rows
from music_evals.benchmark.tasks.inpainting.items import ItemSet, load_items
from music_evals.files import write_atomically
from music_evals.metrics.inpainting import note_f1
from music_evals.models.baselines import make_baseline
from music_evals.models.infill_transformer import InfillTransformer
from music_evals.models.training import train_from_file
from music_evals.stats import mean_interval
from music_evals.stats.paired import paired_mean_test
from music_evals.symbolic.noteseq import mask_middle

HERE = Path(__file__).parent
WHOLE = "the whole network"
ABLATIONS: Mapping[str, tuple[str, ...]] = {
    WHOLE: (),
    "another seed": ("training.seed=1",),
    "a third seed": ("training.seed=2",),
    "without agreement": ("model.votes=false",),
    "without pointers": ("model.n_pointers=0",),
    "without either": ("model.votes=false", "model.n_pointers=0"),
    "without the chain's loss": ("model.chain_weight=0",),
    "the benchmark's gap alone": ("model.varied_gaps=0",),
    "nothing of a gap shown": ("model.shown=0",),
    "the benchmark's windows alone": ("data.stride_steps=null",),
    "without transposition": ("training.transpose_low=0", "training.transpose_high=0"),
    "folk tunes as well": ("data.also=[{dataset: irish_folk, config: music21_folk_cleared}]",),
    "without the moving average": ("training.average=0",),
}
"""What is left out or added -> the changes of the recipe."""

COLUMNS = (
    "system", "kind", "changes", "note_f1", "low", "high", "by_song", "difference", "difference_low", "difference_high",
    "p_value", "difference_by_song", "difference_by_song_low", "difference_by_song_high", "p_value_by_song",
)  # fmt: skip
"""Columns of ablations.csv. Differences are those from the whole network; `by_song` counts every song alike."""

EPOCH_STEPS = 125
SEEDS = 5

Scores = npt.NDArray[np.float64]
"""Note F1 of each window, the mean over seeds."""


def trained(name: str, steps: int, size: str, out: Path) -> InfillTransformer:
    """Train one variant, or take it up where it stood, and return it with the weights of its best epoch."""
    changes = (f"model.size={size}", f"training.cycles=[{max(1, steps // EPOCH_STEPS)}]", *ABLATIONS[name])
    folder = out / f"{name.replace(' ', '_')}-{size}-{steps}"
    train_from_file(ROOT / "models/infill_transformer/train.yaml", changes=changes, out=folder, progress=True)
    return InfillTransformer.from_pretrained(str(folder))


def judged(model: Any, items: ItemSet) -> Scores:
    """Return the note F1 of each window, the mean over seeds."""
    masked = mask_middle(items.contexts)
    seeds = range(1 if model.deterministic else SEEDS)
    found = [note_f1(items.middles, model.inpaint(masked, rng=np.random.default_rng(seed))) for seed in seeds]
    mean: Scores = np.mean(found, axis=0)
    return mean


def by_song(scores: Scores, songs: Sequence[str]) -> Scores:
    """Return the mean of each song."""
    names = np.array(songs)
    return np.array([scores[names == song].mean() for song in sorted(set(songs))])


def rivals(whole: InfillTransformer, train: ItemSet, items: ItemSet) -> Iterator[tuple[str, Scores]]:
    """Yield what else the whole network is compared with: its other decodings, and rules without training."""
    for decoding in ("argmax", "sample"):
        whole.decoding = decoding
        yield f"decoded by {decoding}", judged(whole, items)
    for name in ("lag_vote", "copy_past", "mode_pitch_beats"):
        yield name, judged(make_baseline(name, train.contexts), items)


def row_of(name: str, kind: str, scores: Scores, whole: Scores, songs: Sequence[str]) -> dict[str, Any]:
    """Return a row of the table: the score, and how it differs from that of the whole network."""
    found = mean_interval(scores, list(songs), span=(0, 1))
    test = paired_mean_test(scores, whole, list(songs), span=(0, 1))
    alike, alike_whole = by_song(scores, songs), by_song(whole, songs)
    song_test = paired_mean_test(alike, alike_whole, None, span=(0, 1))
    return {
        "system": name,
        "kind": kind,
        "changes": " ".join(ABLATIONS.get(name, ())),
        "note_f1": found.estimate,
        "low": found.low,
        "high": found.high,
        "by_song": float(alike.mean()),
        "difference": test.difference,
        "difference_low": test.low,
        "difference_high": test.high,
        "p_value": test.p_value,
        "difference_by_song": song_test.difference,
        "difference_by_song_low": song_test.low,
        "difference_by_song_high": song_test.high,
        "p_value_by_song": song_test.p_value,
    }


def section(rows: Sequence[Mapping[str, Any]], size: str, steps: int) -> str:
    """Return the table as Markdown."""
    head = ["", "note F1", "by song", "difference", "p", "difference by song", "p"]
    lines = [head, ["---", *["---:"] * 6]]
    for row in rows:
        whole = row["system"] == WHOLE
        cells = [f"{row['note_f1']:.3f} ({row['low']:.3f} to {row['high']:.3f})", f"{row['by_song']:.3f}"]
        for kind in ("", "_by_song"):
            low, high = row[f"difference{kind}_low"], row[f"difference{kind}_high"]
            cells.append("" if whole else f"{row[f'difference{kind}']:+.3f} ({low:+.3f} to {high:+.3f})")
            cells.append("" if whole else f"{row[f'p_value{kind}']:.4f}")
        lines.append([row["system"], *cells])
    return f"Size `{size}`, {steps} steps each.\n\n{markdown_rows(lines)}"


def read_options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--size", default="tiny")
    parser.add_argument("--only", nargs="+", choices=sorted(ABLATIONS), default=list(ABLATIONS), metavar="NAME")
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "infill_ablations")
    parser.add_argument("--write", action="store_true")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> None:
    """Train, judge, compare and write."""
    options = read_options(arguments)
    place = str(ROOT / "datasets_scripts/jsb_chorales")
    train, items = (load_items(place, "musib", split) for split in ("train", "validation"))
    names = [WHOLE, *(name for name in ABLATIONS if name in options.only and name != WHOLE)]
    scores: dict[str, tuple[str, Scores]] = {}
    for name in names:
        model = trained(name, options.steps, options.size, options.out)
        scores[name] = ("training", judged(model, items))
        if name == WHOLE:
            others = dict(rivals(model, train, items))
    scores |= {name: ("decoding" if " " in name else "rule", values) for name, values in others.items()}
    whole = scores[WHOLE][1]
    rows = [row_of(name, kind, values, whole, items.songs) for name, (kind, values) in scores.items()]
    folder = HERE if options.write else options.out
    write_csv(folder / "ablations.csv", COLUMNS, rows)
    text = section(rows, options.size, options.steps)
    if options.write:
        page = HERE / "README.md"
        write_atomically(page, fill(page.read_text(encoding="utf-8"), {"ablations": text}).encode())
    print(text)


if __name__ == "__main__":
    main()
