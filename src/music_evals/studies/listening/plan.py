"""How large a listening test must be: power and coverage of its intervals, from simulated tests with a known effect."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from music_evals.errors import InvalidInputError, UnknownNameError
from music_evals.studies.listening.analysis import evaluate_listening
from music_evals.studies.listening.screening import ANCHOR
from music_evals.studies.listening.settings import ListeningSettings
from music_evals.studies.listening.simulation import (
    ListeningWorld,
    expected_rating,
    expected_share,
    simulate_listening_test,
)
from music_evals.studies.pairs import REFERENCE

__all__ = ["SPREADS", "PlannedTest", "plan_listening", "world_of"]

SPREADS = {
    "rating": {},
    "ab": {"taste_sd": 0.2, "sound_sd": 0.3, "rating_sd": 0.7},
    "mushra": {"listener_sd": 8.0, "item_sd": 8.0, "taste_sd": 4.0, "sound_sd": 6.0, "rating_sd": 5.0},
}
"""Type -> spreads of a simulated test, assumptions of ours; for ``rating`` those of `ListeningWorld`."""

_MIDDLES = {"rating": 3.0, "ab": 0.0, "mushra": 60.0}
_CONTROLS = {REFERENCE: 100.0, ANCHOR: 20.0}


class PlannedTest(NamedTuple):
    """What simulated tests of one size found about the difference of two systems; of the share in ``ab``."""

    n_listeners: int
    n_items: int
    minutes: float
    """Of one listener, for the sounds alone, each heard once."""
    truth: float
    power: float
    """Share of the tests whose interval lies on the right side of no difference (of one half). Where there is none, the
    share whose interval lies below it: false alarms of one side."""
    coverage: float
    """Share of the intervals that hold the truth."""
    coverage_all: float
    """The same where nobody is left out."""
    bias: float
    """Mean estimate less the truth."""
    bias_all: float
    """The same where nobody is left out."""
    width: float
    """Median width of the interval."""
    kept_careless: float
    """Share of careless listeners who were kept; NaN where there were none."""
    lost_careful: float
    """Share of careful listeners who were left out."""


def world_of(kind: str, effect: float, **others: float) -> ListeningWorld:
    """Return a world with two systems, the first better by an effect in the unit of the scale.

    Parameters
    ----------
    kind
        Type of the test; in ``ab`` the effect is that on what is compared, in the unit of the spreads.
    effect
        The difference.
    **others
        Parameters of `ListeningWorld`.

    Raises
    ------
    UnknownNameError
        No such type.
    InvalidInputError
        As `ListeningWorld`.

    """
    if kind not in SPREADS:
        raise UnknownNameError("type of listening test", kind, tuple(SPREADS))
    middle = _MIDDLES[kind]
    effects = {"first": middle + effect / 2, "second": middle - effect / 2}
    return ListeningWorld(
        effects=effects | (_CONTROLS if kind == "mushra" else {}),
        **{**SPREADS[kind], **others},  # type: ignore[arg-type]  # numbers by their names
    )


def plan_listening(
    world: ListeningWorld,
    settings: ListeningSettings,
    listeners: Sequence[int],
    *,
    n_draws: int = 200,
    confidence: float = 0.95,
    seed: int = 0,
    progress: Callable[[int, int], object] | None = None,
) -> list[PlannedTest]:
    """Simulate listening tests of several sizes.

    Parameters
    ----------
    world
        What is true, with systems ``first`` and ``second``: `world_of`.
    settings
        Of the test; its `listeners` are replaced.
    listeners
        Sizes, at least 2 each.
    n_draws
        Tests of each size, at least 1.
    confidence
        As of `analysis.evaluate_listening`.
    seed
        Draws everything; each size has draws of its own.
    progress
        Called after each size with how many are done and how many there are.

    Returns
    -------
    list of PlannedTest
        In the order of `listeners`.

    Raises
    ------
    InvalidInputError
        A size below 2, or no draws.

    """
    if n_draws < 1 or not listeners or min(listeners) < 2:
        raise InvalidInputError(f"expected sizes from 2 on and at least one draw, got {list(listeners)}, {n_draws}")
    truth, nothing = _truth(world, settings.type), 0.5 if settings.type == "ab" else 0.0
    planned = []
    for done, size in enumerate(listeners, start=1):
        rng = np.random.default_rng([seed, size])
        sized = dataclasses.replace(settings, listeners=size)
        draws = np.array([_simulate_once(world, sized, confidence, rng) for _ in range(n_draws)]).T
        screened, everybody = draws[:3], draws[3:6]
        kept_careless, careless, lost_careful, careful = draws[6:10].sum(axis=1).tolist()
        planned.append(
            PlannedTest(
                size,
                world.n_items,
                float(draws[10, 0]),
                truth,
                power=float(np.mean(screened[1] > nothing if truth > nothing else screened[2] < nothing)),
                coverage=float(np.mean((screened[1] <= truth) & (truth <= screened[2]))),
                coverage_all=float(np.mean((everybody[1] <= truth) & (truth <= everybody[2]))),
                bias=float(screened[0].mean() - truth),
                bias_all=float(everybody[0].mean() - truth),
                width=float(np.nanmedian(screened[2] - screened[1])),
                kept_careless=kept_careless / careless if careless else float("nan"),
                lost_careful=lost_careful / careful if careful else float("nan"),
            )
        )
        if progress is not None:
            progress(done, len(listeners))
    return planned


def _simulate_once(
    world: ListeningWorld, settings: ListeningSettings, confidence: float, rng: np.random.Generator
) -> list[float]:
    """Return estimate, low and high end, of kept listeners and of all listeners; then four counts and minutes.

    They count careless listeners who were kept, all careless ones, careful ones who were left out, all careful ones.
    """
    test = simulate_listening_test(world, settings, rng=rng)
    results = evaluate_listening(test.tables, settings, confidence=confidence)
    table, name = ("preferences", "share") if settings.type == "ab" else ("differences", "difference")
    intervals = {
        row["listeners"]: (row[name], row["low"], row["high"])
        for row in results[table]
        if (row["first"], row["second"], row["question"]) == ("first", "second", settings.questions[0].name)
    }
    passed = {listener["listener"] for listener in results["listeners"] if listener["is_kept"]}
    names = {listener["listener"] for listener in results["listeners"]}
    careful = names - test.careless
    counts = len(test.careless & passed), len(test.careless), len(careful - passed), len(careful)
    minutes = float(np.mean([listener["seconds"] for listener in results["listeners"]])) / 60
    return [*intervals["kept"], *intervals["all"], *counts, minutes]


def _truth(world: ListeningWorld, kind: str) -> float:
    if kind == "ab":
        return expected_share(world, "first", "second")
    return expected_rating(world, "first", kind) - expected_rating(world, "second", kind)
