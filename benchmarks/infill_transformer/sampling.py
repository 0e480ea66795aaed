"""Whether what `sample` draws can be told from the true middles: divergences against chance, and their power.

Usage: python -m benchmarks.infill_transformer.sampling models/infill_transformer [--choose] [--write] [--split test]

    --choose    score temperatures and nuclei on the validation split and say which one is chosen
    --write     with --choose: make it that of config.json; else: write sampling_<name>_<split>.csv beside this file

A divergence is compared with the 95th percentile of what it is when model and truth are swapped at random, by songs.
Of the settings whose four divergences all stay below it on average over the seeds, and whose rate of repeated notes
does not differ from the truth's (its interval holds 0), the one with the highest note F1 is chosen. Without --choose,
the config's own setting is scored seed by seed, and beside it stands the power of each test: how often it sees a system
that draws as the model does but for a share of songs, in which it writes `mode_pitch_beats`.
"""

from __future__ import annotations

import argparse
import functools
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from benchmarks.inpainting_models.choose_decoding import table_name
from benchmarks.musib.systems import ROOT
from benchmarks.musib.tables import write_csv
from tqdm import tqdm

from music_evals.annotations import REST, Tokens
from music_evals.benchmark.formats import markdown_rows
from music_evals.benchmark.tasks.inpainting.items import ItemSet, load_items
from music_evals.files import write_atomically
from music_evals.metrics import divergence, melodic_intervals
from music_evals.metrics.inpainting import note_f1
from music_evals.models.baselines import make_baseline
from music_evals.pipelines.inpainting import item_features
from music_evals.protocols import INPAINTERS, load_plugin
from music_evals.stats import null_divergences, paired_mean_test
from music_evals.symbolic.noteseq import mask_middle

HERE = Path(__file__).parent
TEMPERATURES = (0.8, 0.9, 1.0)
NUCLEI = (0.9, 0.95, 1.0)
SEEDS = 5
DIVERGENCES = (*divergence.FEATURES, "interval_divergence")
SHARES = (0.05, 0.1, 0.2, 0.4)  # of songs, of the system whose detection is the power
TRIALS = 200
COLUMNS = (
    "metric", "temperature", "top_p", "n", "n_songs", "seed", "value", "limit", "power", "true", "low", "high",
)  # fmt: skip
"""Columns of the table. A divergence has a `limit`, the 95th percentile by chance, and its `power`: the share seen at
each of `SHARES`. The rate of repeated notes has that of the truth, and the interval of their difference."""


class Bins(NamedTuple):
    """What a divergence compares: the bin of each value of truth and system, its song, and how bins are compared."""

    true: npt.NDArray[Any]
    found: npt.NDArray[Any]
    songs: npt.NDArray[Any]
    n_bins: int
    measure: Any

    def value(self) -> float:
        """Return the divergence."""
        return float(self.measure(*(divergence.masses(bins, self.n_bins) for bins in (self.true, self.found))))

    def limit(self, permutations: int = 1000) -> float:
        """Return the 95th percentile of the divergence when whole songs are swapped."""
        drawn = null_divergences(
            self.true,
            self.found,
            n_bins=self.n_bins,
            divergence=self.measure,
            units=self.songs,
            n_permutations=permutations,
        )
        return float(np.quantile(drawn, 0.95))


def all_bins(items: ItemSet, middles: Tokens) -> dict[str, Bins]:
    """Return what each divergence compares."""
    songs = np.array(items.songs)
    plain = functools.partial(divergence.jensen_shannon, base="nats")
    scaled = functools.partial(divergence.normalised_jensen_shannon, base="nats")
    found = {}
    for name, values in item_features(items.contexts, middles).items():
        true, other = (divergence.histogram_bins(side) for side in values)
        found[name] = Bins(true, other, songs, divergence.n_bins("corrected"), plain)
    pairs = melodic_intervals.interval_pairs(items.middles, middles)
    found["interval_divergence"] = Bins(
        pairs.reference, pairs.estimate, songs[pairs.items], melodic_intervals.INTERVAL_BINS, scaled
    )
    return found


class Repeats(NamedTuple):
    """The rate of repeated notes, that of the truth, and the interval of their difference by songs."""

    value: float
    true: float
    low: float
    high: float


def repeats(items: ItemSet, middles: Tokens) -> Repeats:
    """Compare how often a note is that before it."""
    found, true = (melodic_intervals.repeated_note_rate(part) for part in (middles, items.middles))
    test = paired_mean_test(found, true, list(items.songs), span=(0, 1))
    return Repeats(float(np.nanmean(found)), float(np.nanmean(true)), test.low, test.high)


def drawn(model: Any, items: ItemSet) -> list[Tokens]:
    """Return what `sample` writes, once a seed."""
    model.decoding = "sample"
    return [model.inpaint(mask_middle(items.contexts), rng=np.random.default_rng(seed)) for seed in range(SEEDS)]


def scored(middles: Sequence[Tokens], items: ItemSet) -> dict[str, Any]:
    """Return the mean scores of some seeds' output, and whether it is told from the truth."""
    found = [all_bins(items, one) for one in middles]
    row: dict[str, Any] = {"note_f1": float(np.mean([note_f1(items.middles, one) for one in middles]))}
    for name in DIVERGENCES:
        row[name] = float(np.mean([bins[name].value() for bins in found]))
        row[f"{name}_limit"] = float(np.mean([bins[name].limit(300) for bins in found]))
    rates = Repeats(*(float(mean) for mean in np.mean([repeats(items, one) for one in middles], axis=0)))
    row |= {"repeated_note_rate": rates.value, "true_repeated_note_rate": rates.true}
    row["rest_share"] = float(np.mean([(one == REST).mean() for one in middles]))
    differs = rates.low > 0 or rates.high < 0  # no interval, as where the two are equal: not shown to differ
    row["within"] = not differs and all(row[name] <= row[f"{name}_limit"] for name in DIVERGENCES)
    return row


def choose(model: Any, items: ItemSet) -> tuple[list[dict[str, Any]], dict[str, Any] | None]:
    """Score every setting and return them all, and the one that is chosen; None where every one is told apart."""
    rows = []
    for temperature in tqdm(TEMPERATURES):
        for top_p in NUCLEI:
            model.temperature, model.top_p = temperature, top_p
            rows.append({"temperature": temperature, "top_p": top_p, **scored(drawn(model, items), items)})
    return rows, max((row for row in rows if row["within"]), key=lambda row: row["note_f1"], default=None)


def power(name: str, items: ItemSet, middles: Tokens, other: Tokens) -> dict[float, float]:
    """Return how often a divergence sees a system that writes `other` in a share of songs and `middles` in the rest."""
    rng, songs, names = np.random.default_rng(0), np.array(items.songs), sorted(set(items.songs))
    seen = dict.fromkeys(SHARES, 0.0)
    for share in SHARES:
        for _ in range(TRIALS):
            wrong = np.isin(songs, rng.choice(names, max(1, round(share * len(names))), replace=False))
            bins = all_bins(items, np.where(wrong[:, None], other, middles))[name]
            seen[share] += (bins.value() > bins.limit(100)) / TRIALS
    return seen


def seed_rows(model: Any, items: ItemSet, train: ItemSet) -> list[dict[str, Any]]:
    """Return one row for each seed and score of the model's own setting, with the power of each test."""
    other = make_baseline("mode_pitch_beats", train.contexts).inpaint(
        mask_middle(items.contexts), rng=np.random.default_rng(0)
    )
    every = drawn(model, items)
    powers = {name: power(name, items, every[0], other) for name in tqdm(DIVERGENCES)}
    shared = {"temperature": model.temperature, "top_p": model.top_p, "n": len(items), "n_songs": len(set(items.songs))}
    empty, rows = dict.fromkeys(COLUMNS, ""), []
    for seed, middles in enumerate(every):
        for name, bins in all_bins(items, middles).items():
            told = " ".join(f"{share:g}:{value:.2f}" for share, value in powers[name].items())
            cells = {"seed": seed, "value": bins.value(), "limit": bins.limit(), "power": told}
            rows.append({**empty, "metric": name, **shared, **cells})
        rows.append(
            {**empty, "metric": "repeated_note_rate", **shared, "seed": seed, **repeats(items, middles)._asdict()}
        )
    return rows


def shown(rows: Sequence[dict[str, Any]]) -> str:
    """Return rows as Markdown."""
    head = list(rows[0])
    cells = [[f"{v:.4f}" if isinstance(v, float) else str(v) for v in row.values()] for row in rows]
    return markdown_rows([head, ["---"] * len(head), *cells])


def read_options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path, help="folder with config.json and model.safetensors")
    parser.add_argument("--dataset", default=str(ROOT / "datasets_scripts/jsb_chorales"))
    parser.add_argument("--config", default="musib")
    parser.add_argument("--split", default="validation")
    parser.add_argument("--choose", action="store_true")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args(arguments)
    if options.choose and options.split != "validation":
        parser.error("settings are chosen on the validation split")
    return options


def main(arguments: Sequence[str] | None = None) -> None:
    """Choose a setting, or score the model's own."""
    options = read_options(arguments)
    path = options.model / "config.json"
    stored = json.loads(path.read_text(encoding="utf-8"))
    model = load_plugin(INPAINTERS, stored["model_type"], "model").from_pretrained(str(options.model))
    items = load_items(options.dataset, options.config, options.split)
    if options.choose:
        rows, best = choose(model, items)
        print(shown(rows))
        if best is None:
            raise SystemExit("every setting is told from the truth: nothing was chosen")
        print(f"chosen: temperature {best['temperature']}, top_p {best['top_p']}")
        if options.write:
            stored |= {name: best[name] for name in ("temperature", "top_p")}
            write_atomically(path, (json.dumps(stored, indent=2) + "\n").encode())
        return
    rows = seed_rows(model, items, load_items(options.dataset, options.config, "train"))
    print(shown(rows))
    if options.write:
        write_csv(HERE / f"sampling_{table_name(options.model)}_{options.split}.csv", COLUMNS, rows)


if __name__ == "__main__":
    main()
