"""How likely the true middles are: by each model's own loss, over the tokens, and in bits a note, which all can give.

No two losses count the same, so nothing here is ranked. The last column comes nearest to one scale: all that a model
must be told to write the true notes, in bits, over their number. It still depends on the grid: VLI's is sixteenths.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import torch
from benchmarks.musib.systems import DATA, DESIGNS, Data, fingerprint, size_of, weights_of
from benchmarks.musib.tables import Row, interval_of_mean, number

from music_evals.annotations import MUSIB_LAYOUT
from music_evals.benchmark.formats import markdown_rows
from music_evals.benchmark.published import read_published
from music_evals.benchmark.tasks.inpainting.items import ItemSet, load_items
from music_evals.benchmark.tasks.inpainting.systems import load_model
from music_evals.files import write_atomically
from music_evals.metrics.likelihood import inpainting_nll

Floats = npt.NDArray[np.float64]

COLUMNS = ("data", "model", "size", "split", "definition", "value", "low", "high", "n", "n_defined", "unit")
"""Columns of nll.csv."""

SPLITS = ("validation", "test")
BATCH = 32

OWN: Final = "own loss"
TOKENS: Final = "tokens"
NOTES: Final = "notes"
UNITS: Final = {OWN: "nats", TOKENS: "nats a step", NOTES: "bits a note"}

_STAND_IN: Final = next(data for data in DATA if data.key == "folk")
"""The folk tunes that our likelihoods are of, beside the published ones."""

COUNTED: Final = {
    "anticipation_rnn": "cross-entropy of 131 classes, mean over the 96 steps; each step is given the true one before",
    "inpaintnet": (
        "cross-entropy of 130 classes, mean over the 96 steps, each step given the model's own choice before it; the "
        "published one is given true latents for half of the batches"
    ),
    "sketchnet": (
        "cross-entropy of 130 classes, mean over the 96 steps, each step given the model's own choice before it; that "
        "of the connector, which the published model lacks"
    ),
    "vli": (
        "mean over pitch, duration, bar and position of the cross-entropies of the notes, each given the true ones "
        "before; the published one has tempo and velocity too, and random stretches in place of the middle"
    ),
}
"""Model -> what its own loss counts, as ours defines it."""


def likelihood_rows(data: Data, out: Path, *, items: int | None = None, models: Path | None = None) -> Iterator[Row]:
    """Yield the likelihoods of every model with weights for a data set, on its validation and test splits."""
    for split in SPLITS:
        judged = load_items(data.place, data.config, split).head(items)
        for design in DESIGNS:
            folder = weights_of(design, data, models)
            if folder is not None:
                about = {"data": data.key, "model": design.name, "size": size_of(folder), "split": split}
                content = hashlib.sha256(judged.contexts.tobytes() + repr(judged.songs).encode()).hexdigest()[:16]
                kept = out / "likelihoods" / f"{fingerprint(folder)}-{content}.json"
                yield from ({**about, **row} for row in _kept_or_found(kept, folder, judged))


def _kept_or_found(path: Path, folder: Path, judged: ItemSet) -> list[Row]:
    """Return what a model says of a split; what was worked out before is read."""
    if path.is_file():
        kept: list[Row] = json.loads(path.read_text(encoding="utf-8"))
        return kept
    rows = list(_of_model(load_model(folder).inpainter, judged))
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, json.dumps(rows).encode())
    return rows


def _of_model(model: Any, judged: ItemSet) -> Iterator[Row]:
    yield _row(OWN, own_loss(model, judged.contexts), judged)
    if hasattr(model, "nll"):
        yield _row(TOKENS, np.asarray(inpainting_nll(-model.nll(judged.contexts))), judged)
    if hasattr(model, "note_nll"):
        yield _row(NOTES, bits_a_note(*model.note_nll(judged.contexts)), judged)


def _row(definition: str, values: Floats, judged: ItemSet) -> Row:
    found = interval_of_mean(values, judged.songs)
    return {
        "definition": definition,
        "value": found.estimate,
        "low": found.low,
        "high": found.high,
        "n": found.n,
        "n_defined": found.n_defined,
        "unit": UNITS[definition],
    }


def own_loss(model: Any, contexts: npt.NDArray[np.uint8]) -> Floats:
    """Return what training minimises, without dropout, shape (n,); what it draws is drawn from one seed."""
    if model.stages:
        model.begin_stage(list(model.stages)[-1])
    model.eval()
    with torch.no_grad(), torch.random.fork_rng():
        torch.manual_seed(0)
        parts = [
            model.training_loss(torch.from_numpy(contexts[start : start + BATCH].astype(np.int64)), varied=False)
            for start in range(0, len(contexts), BATCH)
        ]
    losses: Floats = torch.cat(parts).double().numpy()
    return losses


def bits_a_note(nats: Floats, n_notes: npt.NDArray[np.int64]) -> Floats:
    """Return numbers, one a middle, whose mean is the bits of all middles over all their notes.

    They are that ratio plus how far each middle lies from it, so that the interval of their mean is that of the ratio,
    by the delta method. NaN where no middle has notes.
    """
    mean_notes = float(np.mean(n_notes))
    if not mean_notes:
        return np.full(len(nats), np.nan)
    ratio = float(np.mean(nats)) / mean_notes
    bits: Floats = (ratio + (nats - ratio * n_notes) / mean_notes) / math.log(2)
    return bits


def likelihood_table(rows: Sequence[Row], data: Data) -> str:
    """Return the likelihoods of a data set with what each counts; models stand in the order of the paper."""
    head = [
        "model",
        "own loss counts",
        "own loss, validation",
        "own loss, test",
        "nats a step, test",
        "bits a note, test",
    ]
    lines = [head, ["---", "---", "---:", "---:", "---:", "---:"]]
    found = {(row["model"], row["split"], row["definition"]): row for row in rows if row["data"] == data.key}
    wanted = [("validation", OWN), ("test", OWN), ("test", TOKENS), ("test", NOTES)]
    for design in DESIGNS:
        cells = [found.get((design.name, *which)) for which in wanted]
        if cells[0] is None:
            lines.append([f"`{design.name}`", "untrained", "", "", "", ""])
            continue
        lines.append([f"`{design.name}` ({cells[0]['size']})", COUNTED[design.name], *map(_with_interval, cells)])
    return f"**{data.title}**\n\n{markdown_rows(lines)}\n\n{MUSIB_LAYOUT.middle_steps} steps are four measures."


def _with_interval(row: Row | None) -> str:
    if row is None:
        return "not given"
    return f"{number(row['value'])} ({number(row['low'])} to {number(row['high'])})"


def published_table(rows: Sequence[Row]) -> str:
    """Return the published likelihoods of folk tunes beside those of the literature and ours, with MUSIB's gaps."""
    table, starred = read_published("musib_table2"), read_published("musib_starred")
    head = [
        "published",
        "MUSIB, table 2",
        "literature (starred)",
        "gap",
        f"ours, {_STAND_IN.title}, own loss, validation",
    ]
    lines = [head, ["---", *("---:" for _ in head[1:])]]
    wanted = (_STAND_IN.key, "validation", OWN)
    found = {row["model"]: row for row in rows if (row["data"], row["split"], row["definition"]) == wanted}
    for system, row in table.means.items():
        printed = row["inpainting_nll"]
        star = starred.means.get(system, {}).get("inpainting_nll")
        gap = "" if star is None else f"{100 * (star - printed) / star:+.0f} %"
        design = next(design.name for design in DESIGNS if system in design.published)
        own = found.get(design)
        lines.append([system, number(printed), number(star), gap, "" if own is None else _with_interval(own)])
    return markdown_rows(lines)
