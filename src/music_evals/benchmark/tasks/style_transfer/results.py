"""What this benchmark hands to the shared results, tables and pages."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Final

from music_evals.benchmark.results import ScoreTask
from music_evals.metrics.catalogue import CELL_SCORES, HIDDEN_CELL_SCORES, MELODY_SCORES, STYLE_SCORES, metric_of
from music_evals.pipelines.style_fidelity import MELODY_AUXILIARY, MELODY_METRICS

__all__ = ["CELLS", "KINDS", "STYLE_TRANSFER", "TRANSFERS", "TRANSFER_SCORES"]

CELLS, TRANSFERS = "cells", "transfers"
KINDS = (CELLS, TRANSFERS)
"""What a run judges: the cells that models predict, or the pieces that they carry over."""

TRANSFER_SCORES: Final = (
    *MELODY_SCORES, *MELODY_METRICS, *MELODY_AUXILIARY, *(n for n, m in STYLE_SCORES.items() if m.kind == "item")
)  # fmt: skip
"""What is recorded of an output; divergences are of all outputs of a system together."""


def _how(header: Mapping[str, Any]) -> str:
    options = header["options"]
    if options["kind"] == CELLS:
        return f"cells of whole pieces, {', '.join(map(str, options['hidden']))} steps hidden on either side"
    return f"melodies carried over, {options['n_seeds']} seeds"


STYLE_TRANSFER: Final = ScoreTask(
    name="style-transfer",
    title="Style transfer",
    scales={
        **CELL_SCORES,
        **HIDDEN_CELL_SCORES,
        **{name: dataclasses.replace(metric_of(name), facet="melody kept") for name in TRANSFER_SCORES},
        **{name: STYLE_SCORES[name] for name in TRANSFER_SCORES if name in STYLE_SCORES},
    },
    controls=(),
    controls_explained="",
    how=_how,
    items="pieces",
    groups="tunes",
    extra_keys=("fidelity",),
    explained=(
        "Means over pieces, each of which counts alike. Of cells, silence and the rules that copy a neighbour are what "
        "a model has to beat: on a grid of 32nd notes a rule of two lines has almost no error unless neighbours are "
        "hidden. Of transfers, `unchanged` is the input and `melody_alone` the input without accompaniment."
    ),
)
"""What this benchmark hands to the shared results, tables and pages."""
