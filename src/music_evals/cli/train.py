"""The verb ``train``."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from music_evals.benchmark.formats import plain
from music_evals.cli.console import to_stdout
from music_evals.cli.options import add_list, add_verb, from_options
from music_evals.csv_files import csv_rows
from music_evals.errors import importing


def add(verbs: Any) -> None:
    """Add the verb ``train``."""
    verb = add_verb(
        verbs,
        "train",
        _run,
        "train a model from its recipe",
        "Train a model from its recipe, on a GPU if there is one. A run that was killed is taken up again, "
        "if recipe and data are the same.",
        "examples:\n"
        "  music-evals train models/anticipation_rnn/train.yaml\n"
        "  music-evals train models/vli/train-folk.yaml --trackio inpainting\n"
        "  music-evals train models/vli/train.yaml --start vli --set data.dataset=my_corpus \\\n"
        "      --set data.config=default --out runs/tuned\n"
        "  music-evals train models/inpaintnet/train.yaml --set stages.vae.cycles=[2] --out runs/probe\n"
        "  music-evals train models/music_tagger/train.yaml --set data.audio=songs --out runs/probe\n"
        "  music-evals train models/lyric_writer/train.yaml --set model.base=Qwen/Qwen3-0.6B \\\n"
        "      --set data.dataset=caimd_v2 --out runs/writer",
    )
    verb.add_argument("recipe", help="a train.yaml, beside which weights are written; or, with --out, a model")
    add_list(
        verb,
        "--set",
        "replace a setting of the recipe, or stages.NAME.SETTING of one stage; may be given many times",
        dest="changes",
        metavar="SECTION.SETTING=VALUE",
    )
    verb.add_argument("--out", metavar="DIR", help="folder for the weights, the log and the checkpoint")
    verb.add_argument(
        "--start", metavar="MODEL", help="start from the weights of a model of notes: a folder, a name or a Hub id"
    )
    verb.add_argument("--trackio", metavar="PROJECT", help="also log the curves of an inpainter to a trackio dashboard")
    verb.add_argument("--device", help="cpu, cuda, ... (default: a GPU if there is one)")
    verb.add_argument(
        "--trust-remote-code",
        action="store_true",
        help="run code that comes with a tagger's encoder or a language model; read it first",
    )
    verb.add_argument("--restart", dest="resume", action="store_false", help="forget the checkpoint and start again")
    verb.add_argument("--json", action="store_true", help="print the result as JSON")


def _run(options: argparse.Namespace) -> int:
    with importing("models", "training"):
        from music_evals.models.training import train_from_file

    result = from_options(options, train_from_file, path=options.recipe, progress=True)
    values = {key: str(value) if isinstance(value, Path) else value for key, value in result._asdict().items()}
    if values.get("judged") is not None:  # nats a token before and after tuning, and the difference
        from music_evals.stats import paired_mean_test

        path = Path(values["judged"])
        rows = csv_rows(path.read_text(encoding="utf-8"), path)
        base, tuned = ([float(row[name]) for row in rows] for name in ("base", "tuned"))
        means = {"base": sum(base) / len(base), "tuned": sum(tuned) / len(tuned)}
        values["judged_loss"] = plain({**means, **paired_mean_test(tuned, base, None)._asdict()})
    text = json.dumps(values) if options.json else "\n".join(f"{key}: {value}" for key, value in values.items())
    with to_stdout():
        print(text)
    return 0
