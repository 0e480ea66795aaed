"""One system on one piece: the pairs of this benchmark, and what is recorded of each."""

from __future__ import annotations

import dataclasses
import math
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from music_evals.annotations import LOWEST_PITCH, Arrangement, PianoRoll
from music_evals.benchmark.model_folders import own_rng
from music_evals.benchmark.rows import Failure
from music_evals.benchmark.style_transfer.systems import System
from music_evals.errors import InvalidInputError, UndefinedMetricWarning
from music_evals.metrics.catalogue import CELL_SCORES
from music_evals.metrics.cell_prediction import cell_scores, count_cells
from music_evals.metrics.style_classifier import StyleClassifier
from music_evals.pipelines.cell_prediction import name_hidden
from music_evals.pipelines.style_fidelity import evaluate_melody, style_probabilities
from music_evals.symbolic.piano_rolls import roll_notes

__all__ = [
    "TOWARDS",
    "CellJudge",
    "Pair",
    "PairSet",
    "Piece",
    "TransferJudge",
    "Who",
    "cell_score_names",
    "output_of",
]

TOWARDS = ("style_probability", "style_accuracy")


@dataclasses.dataclass(frozen=True, eq=False)
class Piece:
    """A piece: the reference of a pair."""

    name: str
    content: str  # hash of its notes
    group: str  # family of its tune
    value: PianoRoll | Arrangement


@dataclasses.dataclass(frozen=True)
class Who:
    """The estimate of a pair: what a system makes of it."""

    name: str
    content: str


@dataclasses.dataclass(frozen=True, eq=False)
class Pair:
    """A piece and a system."""

    item: str
    system: str
    reference: Piece
    estimate: Who
    seed: int = 0
    entrance: str = "roll"
    treatment: str = ""

    @property
    def group(self) -> str:
        """Cluster of the intervals."""
        return self.reference.group


@dataclasses.dataclass(frozen=True)
class PairSet:
    """All that is judged in one run."""

    systems: tuple[str, ...]
    pairs: tuple[Pair, ...]
    failures: tuple[Failure, ...] = ()


@dataclasses.dataclass(frozen=True)
class CellJudge:
    """Judges the cells that a system predicts of a piece."""

    systems: Mapping[str, System]
    hidden: Sequence[int]

    def __call__(self, pair: Pair) -> dict[str, Any]:
        """Return the scores for each number of hidden steps."""
        roll = pair.reference.value
        assert isinstance(roll, PianoRoll)
        system = self.systems[pair.system]
        scores: dict[str, Any] = {}
        for hidden in self.hidden:
            counted = cell_scores(count_cells(roll.cells, system.plugin.cell_probabilities(roll, hidden=hidden)))
            if hidden in system.fitted:
                likely = system.likely(hidden).cell_probabilities(roll, hidden=hidden)
                counted["cell_nll"] = cell_scores(count_cells(roll.cells, likely))["cell_nll"]
            for name, value in counted.items():
                reason = "a wrong cell was held for impossible" if math.isinf(value) else "nothing to count"
                scores[name_hidden(name, hidden)] = _score(value, reason)
        return {"scores": scores, "notes": []}


@dataclasses.dataclass(frozen=True)
class TransferJudge:
    """Lets a system carry a piece over, and judges what became of the melody and where the classifier puts it."""

    systems: Mapping[str, System]
    classifier: StyleClassifier | None
    bars: int

    def __call__(self, pair: Pair) -> dict[str, Any]:
        """Return the scores, and the notes of the output as explanation."""
        given = pair.reference.value
        assert isinstance(given, Arrangement)
        system = self.systems[pair.system]
        rng = own_rng(pair.seed, pair.system, pair.reference.name)
        output = system.plugin.transfer(given, rng=rng)
        if not isinstance(output, Arrangement) or not output.melody.same_grid(given.melody):
            raise InvalidInputError(f"{pair.system} returned no arrangement on the grid of the input")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UndefinedMetricWarning)  # said of each score below
            [item] = evaluate_melody([given], [output], per_item=True)["per_item"]
        scores = {name: _score(value, "the melody has nothing to keep") for name, value in item.items()}
        towards, reason = _towards(output, system.style, self.classifier, self.bars)
        scores |= {name: _score(value, reason) for name, value in zip(TOWARDS, towards, strict=True)}
        return {"scores": scores, "notes": [], "explanation": {"seed": pair.seed, "output": _notes_of(output)}}


def _score(value: float, reason: str) -> dict[str, Any]:
    return {"value": float(value)} if math.isfinite(value) else {"value": None, "reason": reason}


def _towards(
    output: Arrangement, style: str, classifier: StyleClassifier | None, bars: int
) -> tuple[tuple[float, float], str]:
    if classifier is None or style not in classifier.styles:
        return (math.nan, math.nan), f"no classifier knows the style {style!r}"
    given = style_probabilities(output.merged, classifier, bars=bars)
    given = given[~np.isnan(given)]
    if not len(given):
        return (math.nan, math.nan), "nothing sounds"
    given = given if style == classifier.styles[1] else 1 - given
    return (float(given.mean()), float((given > 0.5).mean())), ""


def _notes_of(output: Arrangement) -> list[list[int]]:
    """Return onset, duration, pitch and voice (0 the melody) of each note, in steps."""
    found = []
    for voice, roll in enumerate((output.melody, output.accompaniment)):
        notes = roll_notes(roll)
        found += [[int(note["onset_tick"]), int(note["duration_tick"]), int(note["pitch"]), voice] for note in notes]
    return found


def output_of(notes: Sequence[Sequence[int]], given: Arrangement) -> Arrangement:
    """Return an output from its record, on the grid of its input."""
    rolls = []
    for voice in (0, 1):
        cells, onsets, offsets = (np.zeros_like(given.melody.cells) for _ in range(3))
        for onset, duration, pitch, of in notes:
            if of == voice:
                cells[onset : onset + duration, pitch - LOWEST_PITCH] = True
                onsets[onset, pitch - LOWEST_PITCH] = True
                offsets[onset + duration : onset + duration + 1, pitch - LOWEST_PITCH] = True
        rolls.append(given.melody.with_notes(cells, onsets, offsets & ~cells))
    return Arrangement(*rolls)


def cell_score_names(hidden: Sequence[int]) -> tuple[str, ...]:
    """Return the scores of a run with these numbers of hidden steps."""
    return tuple(name_hidden(name, steps) for steps in hidden for name in CELL_SCORES)
