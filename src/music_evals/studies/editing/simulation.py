"""Editing tests that were never held: tables with known effects, to size a study and to prove its statistics.

Loads are log-normal. The logarithm of a load of an edit is the sum of a base, of what the editor, the piece and the
sample add, of the effect where the model is the proposed one, and of what is left; the three loads of an edit share
what editor, piece and sample add. An answer falls with the difficulty of the sample, and is rounded to 1..5.

How large a study must be: `plan_sizes` gives power and coverage of its intervals for several sizes.

References
----------
The design (six pieces, two styles, two models, twelve editors, three edits a sample, 31 listeners) is that of Lu, Wu,
Chiu, Su: "Actions speak louder than listening", ACM MM 2021, section 5. The spreads are assumptions of ours.

"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from music_evals.errors import InvalidInputError
from music_evals.pipelines.editing_test import evaluate_effort
from music_evals.pipelines.study_tables import ROLES, TIME_LIMIT_S, StudyTables, study_tables
from music_evals.studies.planning import draw_sizes

__all__ = ["PlannedSize", "StudyDesign", "plan_sizes", "simulate_study"]

_BASES = {"time_s": 600.0, "key_presses": 150.0, "mouse_clicks": 400.0}
"""Load of an editor with a piece of no particular difficulty."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class StudyDesign:
    """Size of a study and what is true in it; spreads (`_sd`) are those that each adds to the logarithm of a load.

    Raises `InvalidInputError`: a value out of its range.
    """

    n_pieces: int = 6  # at least 1
    styles: tuple[str, ...] = ("bach", "jazz")  # target styles, not empty
    n_editors: int = 12  # at least 1
    edits_per_sample: int = 3  # editors of each sample, at most `n_editors`
    n_listeners: int = 31  # 0 is a study without a listening test
    ratings_per_sample: int = 10  # listeners of each sample, at most `n_listeners`
    ratio: float = 1.0  # true ratio of loads, proposed / baseline, above 0; 1 is no effect
    editor_sd: float = 0.3
    piece_sd: float = 0.3
    sample_sd: float = 0.2
    edit_sd: float = 0.4
    slope: float = 1.5  # by how much an answer falls where the logarithm of the load grows by 1
    answer_sd: float = 0.8  # spread of an answer about that, before it is rounded
    time_limit_s: float = TIME_LIMIT_S  # edits end here; infinity for no limit
    learning: float = 1.0  # factor of each load for every sample done before; below 1 where editors learn
    careless: float = 0.0  # share of the editors who answer at random, 0 to 1; they work as the others do

    def __post_init__(self) -> None:
        if not (self.n_pieces >= 1 and self.styles and 1 <= self.edits_per_sample <= self.n_editors):
            raise InvalidInputError(
                "a study needs pieces, styles and at least as many editors as edits a sample; got "
                f"{self.n_pieces} pieces, {len(self.styles)} styles, {self.n_editors} editors and "
                f"{self.edits_per_sample} edits a sample"
            )
        if self.n_listeners and not 1 <= self.ratings_per_sample <= self.n_listeners:
            raise InvalidInputError(
                f"ratings_per_sample must lie in 1..{self.n_listeners}, the listeners; got {self.ratings_per_sample}"
            )
        spreads = (self.editor_sd, self.piece_sd, self.sample_sd, self.edit_sd, self.answer_sd)
        if not (self.ratio > 0 and self.time_limit_s > 0 and all(spread >= 0 for spread in spreads)):
            raise InvalidInputError("a ratio and a time limit lie above 0, and no spread is negative")
        if not (self.learning > 0 and 0 <= self.careless <= 1):
            raise InvalidInputError("learning lies above 0, and the careless are a share of the editors, 0 to 1")


def simulate_study(design: StudyDesign, *, rng: np.random.Generator) -> StudyTables:
    """Draw the tables of one study, as one that was held would give them.

    Examples
    --------
    >>> tables = simulate_study(StudyDesign(n_pieces=2, styles=("bach",)), rng=np.random.default_rng(0))
    >>> len(tables.samples["sample_id"]), len(tables.edits["sample_id"])
    (4, 12)
    """
    samples: list[dict[str, Any]] = []
    edits: list[dict[str, Any]] = []
    listening: list[dict[str, Any]] = []
    kinds = list(itertools.product(range(design.n_pieces), design.styles, ROLES))
    editors = _assign(design.n_editors, design.edits_per_sample, len(kinds), rng)
    listeners = _assign(design.n_listeners, design.ratings_per_sample, len(kinds), rng)
    of_editor = rng.normal(0, design.editor_sd, design.n_editors)
    of_piece = rng.normal(0, design.piece_sd, design.n_pieces)
    for (piece, style, role), at_work, hearing in zip(kinds, editors, listeners, strict=True):
        name = f"s{len(samples):03d}"
        samples.append({"sample_id": name, "piece_id": f"piece {piece}", "style": style, "model": role, "role": role})
        effect = math.log(design.ratio) if role == ROLES[0] else 0.0
        difficulty = of_piece[piece] + rng.normal(0, design.sample_sd) + effect
        for editor, place in at_work.items():
            row = _edit(design, of_editor[editor] + difficulty + math.log(design.learning) * place, difficulty, rng)
            if editor < design.careless * design.n_editors:
                row |= {question: int(rng.integers(1, 6)) for question in ("EQ1", "EQ2", "EQ3")}
            edits.append({"sample_id": name, "editor_id": f"e{editor:02d}", "order_index": place, **row})
        for listener, place in hearing.items():
            row = {"LQ1": _answer(design, difficulty, rng)}
            row |= {f"sim_{other}": _answer(design, float(other != style), rng) for other in design.styles}
            known = {"sample_id": name, "listener_id": f"l{listener:02d}", "order_index": place}
            listening.append({**known, **row})
    return study_tables(samples, edits, listening or None)


def _assign(n_people: int, per_sample: int, n_samples: int, rng: np.random.Generator) -> list[dict[int, int]]:
    """Draw the people of each sample, and where in their own order they come to it: person -> place, from 0."""
    if not n_people:
        return [{} for _ in range(n_samples)]
    # those who have the fewest samples, by lot among equals: a fixed turn would give each model people of its own; the
    # order of a person's samples is drawn too: no piece comes late for all
    has = np.zeros(n_people, dtype=np.int64)
    chosen = []
    for _ in range(n_samples):
        by_lot = rng.permutation(n_people)
        people = by_lot[np.argsort(has[by_lot], kind="stable")][:per_sample]
        has[people] += 1
        chosen.append(people.tolist())
    places = [iter(rng.permutation(n).tolist()) for n in has]
    return [{person: next(places[person]) for person in people} for people in chosen]


def _edit(design: StudyDesign, load: float, difficulty: float, rng: np.random.Generator) -> dict[str, Any]:
    """Draw the loads and answers of one edit."""
    loads = {name: base * math.exp(load + rng.normal(0, design.edit_sd)) for name, base in _BASES.items()}
    counts = {name: max(1, round(loads[name])) for name in ("key_presses", "mouse_clicks")}
    answers = {name: _answer(design, difficulty, rng) for name in ("EQ1", "EQ2", "EQ3")}
    time = min(loads["time_s"], design.time_limit_s)
    return {"time_s": time, **counts, "hit_limit": loads["time_s"] >= design.time_limit_s, **answers}


def _answer(design: StudyDesign, difficulty: float, rng: np.random.Generator) -> int:
    """Draw an answer, 1 to 5."""
    return int(np.clip(round(3.5 - design.slope * difficulty + rng.normal(0, design.answer_sd)), 1, 5))


class PlannedSize(NamedTuple):
    """What studies of one size found."""

    n_pieces: int
    n_edits: int
    """Edits in all, both models."""
    power: float
    """Share of the studies whose interval of the ratio of times, clustered by piece, lies on the right side of 1."""
    coverage: float
    """Share of those intervals that hold the true ratio. The time limit can lower it: it brings ratios nearer to 1."""
    width: float
    """Median of the upper over the lower end of the interval."""


def plan_sizes(
    design: StudyDesign,
    pieces: Sequence[int],
    *,
    n_draws: int = 200,
    confidence: float = 0.95,
    seed: int = 0,
    progress: Callable[[int, int], object] | None = None,
) -> list[PlannedSize]:
    """Simulate `n_draws` studies of several sizes, at least 2 pieces each: one row a size, in their order.

    The design says what is true; its `n_pieces` is replaced, and nobody listens. `progress` is called after each size
    with how many are done and how many there are. Raises `InvalidInputError` for a size below 2, or no draws.
    """
    unheard = dataclasses.replace(design, n_listeners=0)
    draws = draw_sizes(
        pieces,
        lambda n_pieces, rng: evaluate_effort(
            simulate_study(dataclasses.replace(unheard, n_pieces=n_pieces), rng=rng), confidence=confidence
        )["time_effort_ratio_ci"],
        n_draws=n_draws, seed=seed, progress=progress,
    )  # fmt: skip
    return [
        PlannedSize(
            n_pieces,
            2 * n_pieces * len(design.styles) * design.edits_per_sample,
            float(np.mean(high < 1 if design.ratio < 1 else low > 1)),
            float(np.mean((low <= design.ratio) & (design.ratio <= high))),
            float(np.median(high / low)),
        )
        for n_pieces, (low, high) in draws
    ]
