"""Choose how an inpainting network decodes, on the validation split.

Usage: python benchmarks/inpainting_models/choose_decoding.py models/anticipation_rnn [--write] [--bound 0.1]

A setting may win whose output is not further from the true middles than a bound, in silence, pitch classes and melodic
intervals (`silence_divergence`, `pitch_class_divergence`, `interval_divergence`, 0 to 0.693 nats), and that rests for
at least a third of the time that they do: few middles of a chorale have rests at all, and the divergence hardly sees
their lack. A network that writes no rests, or one pitch over and over, scores a high `note_f1` and is nothing that
anybody wants to hear. Of those that may win the one with the highest mean `note_f1` does.

Writes a table beside itself, named after the model. Prints the baselines' scores, and how far the likelihood depends on
the context. With ``--write`` the winner becomes the default in the model's config.json. With ``--checkpoint`` it also
tells what storing the weights in half precision costs. The test split is never read.
"""

from __future__ import annotations

import argparse
import csv
import dataclasses
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from datasets import load_dataset
from tqdm import tqdm

from music_evals.annotations import HOLD, MUSIB_LAYOUT, REST, Tokens
from music_evals.metrics.melodic_intervals import interval_divergence
from music_evals.models.baselines import make_baseline
from music_evals.pipelines.inpainting import evaluate_inpainting
from music_evals.protocols import BASELINES, CONTROLS, INPAINTERS, load_plugin

ROOT = Path(__file__).resolve().parents[2]
TEMPERATURES = (0.25, 0.5, 0.75, 1.0)
METRICS = (
    "note_f1",
    "position_score",
    "pitch_accuracy",
    "rhythm_accuracy",
    "silence_divergence",
    "pitch_class_divergence",
    "groove_divergence",
)
BOUNDED = ("silence_divergence", "pitch_class_divergence", "interval_divergence")
BOUND = 0.1  # nats; the largest divergence is ln 2 = 0.693
LEAST_RESTS = 1 / 3  # of the true middles' share of rests


@dataclasses.dataclass(frozen=True)
class Setting:
    """One way to decode; what a network does not have is None."""

    decoding: str
    temperature: float = 1.0
    kind_temperature: float | None = None
    top_p: float = 1.0

    def give(self, model: Any) -> None:
        """Make a network decode so."""
        model.decoding, model.temperature, model.top_p = self.decoding, self.temperature, self.top_p
        if hasattr(model, "kind_temperature"):
            model.kind_temperature = self.kind_temperature


def settings_of(model: Any) -> list[Setting]:
    """Return all settings that are tried: every honest decoding of the network that may be a default."""
    honest = [decoding for decoding in model.decodings if decoding not in model.leaking]
    settings = [Setting(decoding) for decoding in honest if decoding in model.fixed]
    if "sample" in honest:
        settings += [Setting("sample", heat, top_p=top_p) for top_p in (1.0, 0.9) for heat in TEMPERATURES]
    if "two_stage" in honest:
        settings += [Setting("two_stage", heat) for heat in (0.0, *TEMPERATURES)]
        # kinds hotter than pitches; at the temperature 1 of kinds there are as many rests as the network expects
        pairs = [(heat, kinds) for kinds in (0.5, 0.75, 1.0) for heat in (0.0, *TEMPERATURES) if heat < kinds]
        settings += [Setting("two_stage", heat, kind_temperature=kinds) for heat, kinds in pairs]
    return settings


def choose(rows: Sequence[Mapping[str, Any]], bound: float, rests: float) -> Mapping[str, Any] | None:
    """Return the row with the highest note F1 among those within the bound and with enough rests; None without any."""
    within = [row for row in rows if all(row[name] <= bound for name in BOUNDED) and row["rest_share"] >= rests]
    return max(within, key=lambda row: row["note_f1"], default=None)


def score(model: Any, contexts: Tokens, n_seeds: int) -> dict[str, float]:
    """Return each metric's mean over seeds, onsets a middle and the share of rests."""
    seeds = range(1 if model.deterministic else n_seeds)
    runs, middles = [], []
    for seed in seeds:
        middles.append(model.inpaint(contexts, rng=np.random.default_rng(seed)))
        run = evaluate_inpainting(contexts, middles[-1], n_resamples=0, metrics=METRICS)
        run["interval_divergence"] = interval_divergence(contexts[:, MUSIB_LAYOUT.middle], middles[-1])
        runs.append(run)
    every = np.stack(middles)
    return {
        "seeds": len(seeds),
        **{name: float(np.mean([run[name] for run in runs])) for name in (*METRICS, "interval_divergence")},
        "onsets_per_middle": float((every < HOLD).sum(-1).mean()),
        "rest_share": float((every == REST).mean()),
    }


def context_use(model: Any, contexts: Tokens) -> dict[str, float]:
    """Return bits a note with the true context, and with the future or the past of another song's window."""
    other = np.roll(contexts, len(contexts) // 2, axis=0)
    swapped = {"true context": contexts}
    for name, part in (("another future", MUSIB_LAYOUT.future), ("another past", MUSIB_LAYOUT.past)):
        swapped[name] = contexts.copy()
        swapped[name][:, part] = other[:, part]
    return {name: model.note_nll(tokens).bits_per_note for name, tokens in swapped.items()}


def baseline_scores(contexts: Tokens, train: Tokens, n_seeds: int) -> dict[str, float]:
    """Return the mean `note_f1` of every baseline on the same windows."""
    result = {}
    for name in (name for name in BASELINES if name not in CONTROLS):
        baseline = make_baseline(name, train)
        seeds = range(1 if baseline.deterministic else n_seeds)
        filled = [baseline.inpaint(contexts, rng=np.random.default_rng(seed)) for seed in seeds]
        scores = [evaluate_inpainting(contexts, m, metrics=["note_f1"])["note_f1"] for m in filled]
        result[name] = float(np.mean(scores))
    return result


def half_precision_cost(model: Any, checkpoint: Path, contexts: Tokens) -> float:
    """Return by how many bits a note the rounding of a checkpoint's best weights to half precision changes."""
    from safetensors import safe_open

    exact = type(model)(model.config).eval()
    with safe_open(checkpoint, framework="pt") as file:
        names = [name for name in file.keys() if name.startswith("best.")]  # noqa: SIM118 - not a dict
        exact.load_state_dict({name.removeprefix("best."): file.get_tensor(name) for name in names})
    rounded, whole = (float(network.note_nll(contexts).bits_per_note) for network in (model, exact))
    return rounded - whole


def tokens_of(dataset: str, config: str, split: str) -> Tokens:
    """Return the contexts of a split, shape (n, 384)."""
    rows = load_dataset(str(ROOT / "datasets_scripts" / dataset), config, split=split)
    return np.stack(rows.with_format("numpy")[:]["tokens"]).astype(np.uint8)


def table_name(model: Path) -> str:
    """Return the name of a model's table: ``vli``, and ``vli_folk`` for a variant in a folder of its own."""
    folder = model.resolve()
    models = ROOT / "models"
    return "_".join(folder.relative_to(models).parts) if folder.is_relative_to(models) else folder.name


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path, help="folder with config.json and model.safetensors")
    parser.add_argument("--dataset", default="jsb_chorales")
    parser.add_argument("--config", default="musib")
    parser.add_argument("--items", type=int, help="validation windows, evenly spread (default: all)")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--bound", type=float, default=BOUND)
    parser.add_argument("--checkpoint", type=Path)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--out", type=Path)
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> None:
    """Score every setting, write the table, name the winner."""
    options = parse(arguments)
    path = options.model / "config.json"
    stored = json.loads(path.read_text(encoding="utf-8"))
    model = load_plugin(INPAINTERS, stored["model_type"], "model").from_pretrained(str(options.model))
    contexts = tokens_of(options.dataset, options.config, "validation")
    if options.items is not None:
        contexts = contexts[np.linspace(0, len(contexts) - 1, min(options.items, len(contexts))).astype(int)]
    rows: list[dict[str, Any]] = []
    for setting in tqdm(settings_of(model)):
        setting.give(model)
        rows.append({**dataclasses.asdict(setting), **score(model, contexts, options.seeds)})
    true = contexts[:, MUSIB_LAYOUT.middle]
    rests = LEAST_RESTS * float((true == REST).mean())
    best = choose(rows, options.bound, rests)
    for row in rows:
        row["chosen"] = "yes" if row is best else ""
    with (options.out or Path(__file__).with_name(f"{table_name(options.model)}.csv")).open(
        "w", newline="", encoding="utf-8"
    ) as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows({key: round(x, 4) if isinstance(x, float) else x for key, x in row.items()} for row in rows)
    print(f"true middles: {(true < HOLD).sum(1).mean():.2f} onsets, {(true == REST).mean():.4f} rests")
    print("bits a note:", {name: round(value, 3) for name, value in context_use(model, contexts).items()})
    train = tokens_of(options.dataset, options.config, "train")
    print("baselines:", {name: round(f1, 3) for name, f1 in baseline_scores(contexts, train, options.seeds).items()})
    if options.checkpoint:
        print("half precision costs, bits a note:", half_precision_cost(model, options.checkpoint, contexts))
    if best is None:
        least = min(max(row[name] for name in BOUNDED) for row in rows)
        raise SystemExit(
            f"no setting keeps {', '.join(BOUNDED)} within {options.bound} and rests for {rests:.4f} of the time; the "
            f"nearest has a divergence of {least:.3f}"
        )
    names = [field.name for field in dataclasses.fields(Setting) if hasattr(model.config, field.name)]
    chosen = {name: best[name] for name in names}
    print(f"best by note_f1 within {options.bound} and with enough rests: {chosen}, note_f1 {best['note_f1']:.4f}")
    if options.write:
        path.write_text(json.dumps({**stored, **chosen}, indent=2, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
