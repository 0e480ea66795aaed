"""Choose how Anticipation-RNN decodes, on the validation split, by mean `note_f1` among the temperatures above 0.

Usage: python benchmarks/anticipation_rnn/choose_decoding.py [--write] [--checkpoint models/anticipation_rnn/run/...]

Writes results.csv beside itself; prints the baselines' scores and how far the likelihood depends on the context. With
``--write`` the winner becomes the default in the model's config.json. With ``--checkpoint`` it also tells what storing
the weights in half precision costs. The test split is never read.
"""

from __future__ import annotations

import argparse
import csv
import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from datasets import load_dataset
from tqdm import tqdm

from music_evals.annotations import HOLD, MUSIB_LAYOUT, REST, Tokens
from music_evals.models.anticipation_rnn import AnticipationRNN
from music_evals.models.baselines import make_baseline
from music_evals.pipelines.inpainting import evaluate_inpainting
from music_evals.protocols import BASELINES, CONTROLS

ROOT = Path(__file__).resolve().parents[2]
TEMPERATURES = (0.0, 0.25, 0.5, 0.75, 1.0)
METRICS = (
    "note_f1",
    "position_score",
    "pitch_accuracy",
    "rhythm_accuracy",
    "silence_divergence",
    "pitch_class_divergence",
    "groove_divergence",
)


@dataclasses.dataclass(frozen=True)
class Setting:
    """One way to decode."""

    decoding: str
    temperature: float


# At temperature 0 `sample` is `argmax`.
SETTINGS = [Setting("argmax", 1.0)] + [
    Setting(decoding, temperature)
    for decoding in ("sample", "two_stage")
    for temperature in TEMPERATURES
    if (decoding, temperature) != ("sample", 0.0)
]


def score(model: AnticipationRNN, contexts: Tokens, n_seeds: int) -> dict[str, float]:
    """Return each metric's mean over seeds, and the share of holds and onsets per middle."""
    seeds = range(1 if model.deterministic else n_seeds)
    runs, middles = [], []
    for seed in seeds:
        middles.append(model.inpaint(contexts, rng=np.random.default_rng(seed)))
        runs.append(evaluate_inpainting(contexts, middles[-1], n_resamples=0, metrics=METRICS))
    every = np.stack(middles)
    return {
        "seeds": len(seeds),
        **{name: float(np.mean([run[name] for run in runs])) for name in METRICS},
        "onsets_per_middle": float((every < HOLD).sum(-1).mean()),
        "rest_share": float((every == REST).mean()),
    }


def context_use(model: AnticipationRNN, contexts: Tokens) -> dict[str, float]:
    """Return the NLL (nats a step) with the true context, and with the future or the past of another song's window."""
    other = np.roll(contexts, len(contexts) // 2, axis=0)
    swapped = {"true context": contexts}
    for name, part in (("another future", MUSIB_LAYOUT.future), ("another past", MUSIB_LAYOUT.past)):
        swapped[name] = contexts.copy()
        swapped[name][:, part] = other[:, part]
    return {name: float(model.nll(tokens).mean()) for name, tokens in swapped.items()}


def baseline_scores(contexts: Tokens, train: Tokens, n_seeds: int) -> dict[str, float]:
    """Return the mean `note_f1` of every baseline on the same windows."""
    result = {}
    for name in (name for name in BASELINES if name not in CONTROLS):
        baseline = make_baseline(name, train)
        seeds = range(1 if baseline.deterministic else n_seeds)
        filled = [baseline.inpaint(contexts, rng=np.random.default_rng(seed)) for seed in seeds]
        scores = [evaluate_inpainting(contexts, m, n_resamples=0, metrics=["note_f1"])["note_f1"] for m in filled]
        result[name] = float(np.mean(scores))
    return result


def half_precision_cost(model: AnticipationRNN, checkpoint: Path, contexts: Tokens, n_seeds: int) -> dict[str, float]:
    """Return what rounding the best weights of a checkpoint to half precision changes (rounded minus exact)."""
    from safetensors import safe_open

    exact = AnticipationRNN(model.config, decoding=model.decoding, temperature=model.temperature).eval()
    with safe_open(checkpoint, framework="pt") as file:
        names = [name for name in file.keys() if name.startswith("best.")]  # noqa: SIM118 - not a dict
        exact.load_state_dict({name.removeprefix("best."): file.get_tensor(name) for name in names})
    losses = [float(network.nll(contexts).mean()) for network in (model, exact)]
    scores = [score(network, contexts, n_seeds)["note_f1"] for network in (model, exact)]
    return {"nll": losses[0] - losses[1], "note_f1": scores[0] - scores[1]}


def tokens_of(split: str) -> Tokens:
    """Return the contexts of a split of `musib`, shape (n, 384)."""
    dataset = load_dataset(str(ROOT / "datasets_scripts" / "jsb_chorales"), "musib", split=split)
    return np.stack(dataset.with_format("numpy")[:]["tokens"]).astype(np.uint8)


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, default=ROOT / "models" / "anticipation_rnn")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--checkpoint", type=Path)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("results.csv"))
    return parser.parse_args(arguments)


def main() -> None:
    """Score every setting, write the table, name the winner."""
    options = parse()
    torch.set_num_threads(options.threads)
    train, contexts = (tokens_of(split) for split in ("train", "validation"))
    model = AnticipationRNN.from_pretrained(options.model)
    rows: list[dict[str, Any]] = []
    for setting in tqdm(SETTINGS):
        model.decoding, model.temperature = setting.decoding, setting.temperature
        rows.append({**dataclasses.asdict(setting), **score(model, contexts, options.seeds)})
    with options.out.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows({key: round(x, 4) if isinstance(x, float) else x for key, x in row.items()} for row in rows)
    for row in rows:
        print(f"{row['decoding']:10} {row['temperature']:4} " + " ".join(f"{row[name]:.3f}" for name in METRICS))
    true = contexts[:, MUSIB_LAYOUT.middle]
    print(f"true middles: {(true < HOLD).sum(1).mean():.2f} onsets, {(true == REST).mean():.4f} rests")
    print("validation NLL:", {name: round(value, 4) for name, value in context_use(model, contexts).items()})
    print("baselines:", {name: round(f1, 3) for name, f1 in baseline_scores(contexts, train, options.seeds).items()})
    best = max((row for row in rows if row["temperature"] > 0), key=lambda row: row["note_f1"])
    print(f"best by note_f1 above temperature 0: {best['decoding']} at {best['temperature']}")
    model.decoding, model.temperature = best["decoding"], best["temperature"]
    if options.checkpoint:
        print("half precision costs", half_precision_cost(model, options.checkpoint, contexts, options.seeds))
    if options.write:
        path = options.model / "config.json"
        chosen = {key: best[key] for key in ("decoding", "temperature")}
        path.write_text(json.dumps({**json.loads(path.read_text()), **chosen}, indent=2, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
