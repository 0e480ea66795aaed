"""How the runs at equal budgets are judged: each design as it is shipped to decode that data, and by one likelihood.

A decoding changes what a network writes more than much training does, so one that nobody chose says little of a design.
The decoding of a shipped model was chosen on validation, within bounds, and lies in its config.json. The weights of a
run are others; what they are decoded with stands beside every score.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from benchmarks.musib.likelihood import bits_a_note, own_loss
from benchmarks.musib.systems import DATA, DESIGNS, weights_of

from music_evals.benchmark.tasks.inpainting.items import ItemSet
from music_evals.pipelines.inpainting import item_scores
from music_evals.symbolic.noteseq import mask_middle

DECODING: Final = ("decoding", "temperature", "kind_temperature", "top_p")
"""Settings of a config that say how its network decodes; not every design has all."""

BITS: Final = "bits_a_note"
"""Beside the scores: numbers whose mean is the bits of all true middles over their notes, see `likelihood`."""

Decoding = Mapping[str, Any]


def shipped_decoding(design: str, data: str, models: Path) -> dict[str, Any]:
    """Return how the shipped model of a design decodes a data set.

    Raises
    ------
    ValueError
        There is no such model.

    """
    folder = weights_of(
        next(one for one in DESIGNS if one.name == design), next(one for one in DATA if one.key == data), models
    )
    if folder is None:
        message = (
            f"{models / design} has no weights for {data}, by whose decoding {design} is judged; train them, and "
            "choose it by benchmarks/inpainting_models/choose_decoding.py --write"
        )
        raise ValueError(message)
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    return {name: config[name] for name in DECODING if name in config}


def decode_by(model: Any, decoding: Decoding) -> Any:
    """Make a network decode so, and return it."""
    for name, value in decoding.items():
        setattr(model, name, value)
    return model


def in_words(decoding: Decoding) -> str:
    """Return a decoding as the table shows it, without what changes nothing."""
    if decoding["decoding"] == "argmax":
        return "argmax"
    words = [decoding["decoding"], f"T {decoding['temperature']:g}"]
    if decoding.get("kind_temperature") is not None:
        words.append(f"kinds T {decoding['kind_temperature']:g}")
    if decoding["top_p"] < 1:
        words.append(f"top p {decoding['top_p']:g}")
    return ", ".join(words)


def judge(model: Any, items: ItemSet, seeds: int) -> dict[str, Any]:
    """Return the scores of each window, the mean over seeds, the model's own loss, and the bits a note."""
    masked = mask_middle(items.contexts)
    filled = [
        item_scores(items.contexts, model.inpaint(masked, rng=np.random.default_rng(seed)))
        for seed in range(1 if model.deterministic else seeds)
    ]
    values = {metric: _mean([one[metric] for one in filled]) for metric in filled[0]}
    values["own_loss"] = own_loss(model, items.contexts).tolist()
    values[BITS] = _mean([bits_a_note(*model.note_nll(items.contexts))])
    return {"items": items.item_ids, "songs": items.songs, "values": values}


def _mean(rows: Sequence[Any]) -> list[float | None]:
    """Return the mean over seeds of the defined scores of each window; None where no seed has one."""
    stacked = np.array(rows)
    defined = ~np.isnan(stacked)
    sums, counts = np.where(defined, stacked, 0).sum(axis=0), defined.sum(axis=0)
    means = np.divide(sums, counts, out=np.full(stacked.shape[1], np.nan), where=counts > 0)
    return [None if math.isnan(value) else float(value) for value in means]
