"""Which layer of a music encoder says most of a song: a probe on each, judged on songs that none was trained on.

Usage: python -m benchmarks.layer_sweep.run --layers 0-12 --out FOLDER --set data.dataset=... --set data.audio=...
           --set data.test=validation

Trains the recipe of models/music_tagger (or --recipe) once a layer, each in a folder of its own, so that a sweep that
was stopped goes on where it stood. Writes layers.csv (F1 of each layer, group and dimension) and layers.svg. Layer 0 is
what goes into the first layer. Choose by a validation split: whoever picks a layer by the test split has looked at it.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.drawing import INK, ORANGE, plt, save
from tqdm import tqdm

from music_evals.annotations import GROUPS
from music_evals.files import write_atomically
from music_evals.models.training import train_from_file
from music_evals.models.training.taggers import SCORES

RECIPE = Path(__file__).resolve().parents[2] / "models" / "music_tagger" / "train.yaml"
FIELDS = ("layer", "group", "dimension", "threshold", "f1", "recall", "songs")
MEAN = "mean"
THRESHOLD = "0.5"  # of the tagger's own decoding

Row = dict[str, Any]


def layers_of(text: str) -> list[int]:
    """Return the layers that ``0-12`` or ``0,6,12`` names, each once, in their order."""
    found: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"(\d+)(?:-(\d+))?", part.strip())
        if not match:
            message = f"layers are numbers with commas, or a range such as 0-12; got {text!r}"
            raise ValueError(message)
        first, last = int(match[1]), int(match[2] or match[1])
        found += range(first, last + 1)
    return sorted(dict.fromkeys(found))


def rows_of(layer: int, scores: dict[str, Any]) -> list[Row]:
    """Return the scores of a layer by group and dimension, and their mean over the dimensions of each group."""
    rows = []
    for group in (name for name in GROUPS if name in scores[THRESHOLD]):
        cells = scores[THRESHOLD][group]
        about = {"layer": layer, "group": group, "threshold": THRESHOLD, "songs": scores["songs"]}
        rows += [
            {**about, "dimension": name, "f1": cell["f1"], "recall": cell["recall"]} for name, cell in cells.items()
        ]
        means = {name: sum(cell[name] for cell in cells.values()) / len(cells) for name in ("f1", "recall")}
        rows.append({**about, "dimension": MEAN, **means})
    return rows


def sweep(recipe: Path, layers: Sequence[int], out: Path, changes: Sequence[str], **options: Any) -> list[Row]:
    """Train and judge a probe on each layer; what is done is not done again."""
    rows: list[Row] = []
    for layer in tqdm(layers, desc="layer"):
        given = [*changes, f"data.encoder.layer={layer}"]
        result = train_from_file(recipe, out=out / f"layer_{layer:02d}", changes=given, **options)
        path = result.folder / SCORES
        if not path.is_file():
            message = "no songs to judge the layers by: name a split that the probes are not trained on (data.test)"
            raise ValueError(message)
        rows += rows_of(layer, json.loads(path.read_text(encoding="utf-8")))
    return rows


def write_table(rows: Sequence[Row], path: Path) -> None:
    """Write the rows as CSV, whole or not at all."""
    text = io.StringIO()
    writer = csv.DictWriter(text, FIELDS, lineterminator="\n")
    writer.writeheader()
    writer.writerows({**row, "f1": f"{row['f1']:.4f}", "recall": f"{row['recall']:.4f}"} for row in rows)
    write_atomically(path, text.getvalue().encode())


def draw(rows: Sequence[Row], path: Path) -> None:
    """Draw F1 against the layer, a panel a group: dimensions as thin lines, their mean as dots, the best one filled."""
    groups = [group for group in GROUPS if any(row["group"] == group for row in rows)]
    figure, grid = plt.subplots(
        1, len(groups), figsize=(3.2 * len(groups), 2.6), sharey=True, squeeze=False, layout="constrained"
    )
    for axes, group in zip(grid[0], groups, strict=True):
        own = [row for row in rows if row["group"] == group]
        for name in dict.fromkeys(row["dimension"] for row in own):
            line = [(row["layer"], row["f1"]) for row in own if row["dimension"] == name]
            places, values = zip(*line, strict=True)
            if name != MEAN:
                axes.plot(places, values, color="#bbbbbb", linewidth=0.7)
                continue
            axes.plot(places, values, color=INK, linewidth=1, marker="o", markersize=4, markerfacecolor="white")
            best = max(line, key=lambda one: (one[1], -one[0]))
            axes.plot(*best, marker="o", markersize=5, color=ORANGE)
        axes.set_title(f"{group}, {own[0]['songs']} songs", loc="left")
        axes.set_xlabel("layer")
        axes.set_xticks(sorted({row["layer"] for row in own}))
    grid[0, 0].set_ylabel("F1 of tags")
    grid[0, 0].set_ylim(0, math.ceil(10 * max(row["f1"] for row in rows) + 0.1) / 10)
    save(figure, path)


def main(arguments: Sequence[str] | None = None) -> None:
    """Sweep, write table and picture, and print the means."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layers", type=layers_of, required=True, help="such as 0-12, or 0,6,12")
    parser.add_argument("--out", type=Path, required=True, help="folder of the probes, layers.csv and layers.svg")
    parser.add_argument("--recipe", type=Path, default=RECIPE, help="of the probes (default: that of music_tagger)")
    parser.add_argument(
        "--set", action="append", default=[], dest="changes", metavar="NAME=VALUE", help="of the recipe"
    )
    parser.add_argument("--device", help="of PyTorch (default: a GPU if there is one)")
    options = parser.parse_args(arguments)
    rows = sweep(options.recipe, options.layers, options.out, options.changes, device=options.device)
    write_table(rows, options.out / "layers.csv")
    draw(rows, options.out / "layers.svg")
    for row in rows:
        if row["dimension"] == MEAN:
            print(f"layer {row['layer']:2d}  {row['group']:12s}  F1 {row['f1']:.3f}")


if __name__ == "__main__":
    main()
