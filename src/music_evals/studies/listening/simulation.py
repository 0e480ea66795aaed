"""Listening tests that nobody heard: answers with known effects, to size a test and to prove its statistics.

What a listener says of a sound is the mean of its system and what its item, the two together, the listener, what the
listener thinks of the system, the place in the test, and what is left add to it. It is rounded and held to the scale;
of two sounds the one with the greater sum is chosen. Careless listeners answer at random, attention checks among them.

How large a test must be: `plan_listening` gives power and coverage of its intervals for several sizes.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from music_evals.errors import InvalidInputError, UnknownNameError
from music_evals.studies.listening.analysis import evaluate_listening
from music_evals.studies.listening.answers import (
    MOST_TONES,
    Answers,
    ListeningKey,
    ListeningTables,
    check_answers,
    listening_tables,
)
from music_evals.studies.listening.design import make_plans
from music_evals.studies.listening.screening import ANCHOR
from music_evals.studies.listening.settings import SCALES, ListeningSettings, played_systems
from music_evals.studies.pairs import REFERENCE, StudyPair
from music_evals.studies.planning import draw_sizes

__all__ = [
    "SPREADS",
    "ListeningWorld",
    "PlannedTest",
    "SimulatedTest",
    "expected_rating",
    "expected_share",
    "plan_listening",
    "simulate_listening_test",
    "world_of",
]

SECONDS = 10.0
"""Length of every sound."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class ListeningWorld:
    """What is true in a simulated test; spreads (`_sd`) are in the unit of the scale.

    Raises `InvalidInputError`: no system, fewer than two items, or a spread or share out of its range.
    """

    effects: Mapping[str, float]  # system -> its mean: 1 to 5, or 0 to 100; in ``ab`` any number
    n_items: int = 12  # each is a group of its own
    listener_sd: float = 0.4
    item_sd: float = 0.4
    taste_sd: float = 0.2  # of what a listener thinks of a system
    sound_sd: float = 0.3  # of what a system made of an item
    rating_sd: float = 0.7  # of what is left
    order_effect: float = 0.0  # rise of ratings from first to last page; in ``ab`` preference of the first sound
    careless: float = 0.0  # share of listeners who answer at random, 0 to 1; their number is rounded
    slips: float = 0.02  # share of attention checks that a careful listener fails
    is_reference_harsh: bool = False  # ``mushra``: harsh listeners rate the hidden reference low, too

    def __post_init__(self) -> None:
        if not self.effects or self.n_items < 2:
            raise InvalidInputError("a simulated test needs a system and two items at least")
        spreads = (self.listener_sd, self.item_sd, self.taste_sd, self.sound_sd, self.rating_sd)
        if not (all(spread >= 0 for spread in spreads) and 0 <= self.careless <= 1 and 0 <= self.slips <= 1):
            raise InvalidInputError("no spread is negative, and shares lie from 0 to 1")

    @property
    def sd(self) -> float:
        """Spread of one rating of a system, all sources together."""
        spreads = (self.listener_sd, self.item_sd, self.taste_sd, self.sound_sd, self.rating_sd)
        return math.hypot(*spreads)


class SimulatedTest(NamedTuple):
    """A test that was simulated: its tables, as one that was held would give them, and who answered at random."""

    tables: ListeningTables
    careless: frozenset[str]


def simulate_listening_test(
    world: ListeningWorld, settings: ListeningSettings, *, rng: np.random.Generator
) -> SimulatedTest:
    """Draw the answers of one listening test, along the plans and through the checks of a real one."""
    seeded = dataclasses.replace(settings, seed=int(rng.integers(2**31)))
    pairs = []
    systems = enumerate(played_systems(settings, list(world.effects)))
    for item, (number, system) in itertools.product(range(world.n_items), systems):
        name, file = f"item {item}", f"{item}-{number}.flac"
        pairs.append(StudyPair(item_id=name, group=name, system=system, reference=f"r{item}.flac", estimate=file))
    checks = {f"check{number}.flac": int(rng.integers(1, MOST_TONES + 1)) for number in range(settings.checks)}
    by_file = {pair.estimate: pair for pair in pairs}
    lengths = dict.fromkeys([*by_file, *checks, *(pair.reference for pair in pairs)], SECONDS)
    key = ListeningKey(seeded, by_file, checks, lengths)
    plans = make_plans(pairs, seeded, list(checks))
    careless = set(rng.permutation(len(plans))[: round(world.careless * len(plans))].tolist())
    minds = _Minds(world, key, rng)
    answered: list[Answers] = []
    for slot, plan in enumerate(plans):
        content = {"slot": slot, "trials": minds.trials(plan, is_careless=slot in careless)}
        answered.append(check_answers(content, listener=f"l{slot:03d}", plans=plans, key=key))
    return SimulatedTest(listening_tables(answered, key), frozenset(f"l{slot:03d}" for slot in careless))


class _Minds:
    """What listeners think; each is drawn in turn."""

    def __init__(self, world: ListeningWorld, key: ListeningKey, rng: np.random.Generator) -> None:
        self.world = world
        self.key = key
        self.rng = rng
        items = {pair.item_id: rng.normal(0, world.item_sd) for pair in key.pairs.values()}
        # a hidden reference is what it is, and so is the anchor: neither was made by chance
        fixed = {REFERENCE, ANCHOR} if key.settings.type == "mushra" else set()
        self.recognised = set() if world.is_reference_harsh else fixed
        self.sounds = {
            file: world.effects[pair.system]
            + (0.0 if pair.system in fixed else items[pair.item_id] + rng.normal(0, world.sound_sd))
            for file, pair in key.pairs.items()
        }

    def trials(self, plan: Mapping[str, Any], *, is_careless: bool) -> list[dict[str, Any]]:
        """Return what one listener sends."""
        harsh = self.rng.normal(0, self.world.listener_sd)
        taste = {system: self.rng.normal(0, self.world.taste_sd) for system in self.world.effects}
        rows = []
        for place, trial in enumerate(plan["trials"]):
            played = [*trial["stimuli"], *filter(None, [trial["reference"]])]
            shift = harsh + self.world.order_effect * place / max(len(plan["trials"]) - 1, 1)
            answers = {name: self._answer(trial, shift, taste, is_careless=is_careless) for name in trial["questions"]}
            row = {"answers": answers, "heard_sec": dict.fromkeys(played, SECONDS)}
            rows.append({**row, "seconds": SECONDS * len(played)})
        return rows

    def _answer(
        self, trial: Mapping[str, Any], shift: float, taste: Mapping[str, float], *, is_careless: bool
    ) -> dict[str, int]:
        kind, files = trial["type"], trial["stimuli"]
        if kind == "check":
            right = self.key.checks[files[0]]
            is_wrong = is_careless or self.rng.random() < self.world.slips
            return {files[0]: int(self.rng.integers(1, MOST_TONES + 1)) if is_wrong else right}
        low, high = SCALES[kind]
        if kind == "ab":
            first, second = (self._perceived(file, shift, taste) for file in files)
            is_first = first + self.world.order_effect > second
            if is_careless:
                is_first = self.rng.random() < 0.5
            return {files[0]: int(is_first), files[1]: int(not is_first)}
        if is_careless:
            return {file: int(self.rng.integers(low, high + 1)) for file in files}
        return {file: int(np.clip(round(self._perceived(file, shift, taste)), low, high)) for file in files}

    def _perceived(self, file: str, shift: float, taste: Mapping[str, float]) -> float:
        system = self.key.pairs[file].system
        own = 0.0 if system in self.recognised else shift + taste[system]
        return float(self.sounds[file] + own + self.rng.normal(0, self.world.rating_sd))


def expected_rating(world: ListeningWorld, system: str, kind: str) -> float:
    """Return the mean rating of a system over all listeners and items that there could be, without effect of order."""
    from scipy.special import ndtr

    low, high = SCALES[kind]
    edges = (np.arange(low, high) + 0.5 - world.effects[system]) / world.sd
    return float(low + (1 - ndtr(edges)).sum())


def expected_share(world: ListeningWorld, first: str, second: str) -> float:
    """Return how often one system is preferred to another by all listeners on all items, each side as often first."""
    from scipy.special import ndtr

    spread = math.sqrt(2) * math.hypot(world.taste_sd, world.sound_sd, world.rating_sd)
    away = world.effects[first] - world.effects[second]
    return float(np.mean([ndtr((away + side * world.order_effect) / spread) for side in (-1, 1)]))


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
    """Return a world with two systems, the first better by an effect in the unit of the scale (``ab``: of the spreads).

    The others are parameters of `ListeningWorld`. Raises `UnknownNameError` where there is no such type of test.
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
    """Simulate `n_draws` listening tests of several sizes, at least 2 listeners each: one row a size, in their order.

    The world (`world_of`) says what is true of the systems ``first`` and ``second``; the `listeners` of the settings
    are replaced. `progress` is called after each size with how many are done and how many there are. Raises
    `InvalidInputError` for a size below 2, or no draws.
    """
    if settings.type == "ab":
        truth, nothing = expected_share(world, "first", "second"), 0.5
    else:
        first, second = (expected_rating(world, system, settings.type) for system in ("first", "second"))
        truth, nothing = first - second, 0.0

    planned = []
    for size, draws in draw_sizes(
        listeners,
        lambda size, rng: _simulate_once(world, dataclasses.replace(settings, listeners=size), confidence, rng),
        n_draws=n_draws, seed=seed, progress=progress,
    ):  # fmt: skip
        (screened, low, high), (everybody, low_all, high_all) = draws[:3], draws[3:6]
        kept_careless, careless, lost_careful, careful = draws[6:10].sum(axis=1).tolist()
        planned.append(
            PlannedTest(
                size,
                world.n_items,
                float(draws[10, 0]),
                truth,
                power=float(np.mean(low > nothing if truth > nothing else high < nothing)),
                coverage=float(np.mean((low <= truth) & (truth <= high))),
                coverage_all=float(np.mean((low_all <= truth) & (truth <= high_all))),
                bias=float(screened.mean() - truth),
                bias_all=float(everybody.mean() - truth),
                width=float(np.nanmedian(high - low)),
                kept_careless=kept_careless / careless if careless else float("nan"),
                lost_careful=lost_careful / careful if careful else float("nan"),
            )
        )
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
