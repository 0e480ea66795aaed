"""Plans of a listening test: who hears what, in which order, on which side; one plan a participant, blind.

Blocks
    The items are dealt to the blocks, those of one group to different ones as far as may be. Participant n has block n
    modulo the number of blocks, and all systems (or pairs of them) of its items.
Order
    A participant hears each item once before any comes again, with another system each time. Over as many participants
    of a block as it has items times systems, each sound stands at each place exactly once; with fewer, about as often.
    The order of items is a row of Williams' square, in which each item follows each other equally often where their
    number is even.
Sides
    Of two sounds each is the first one for every second participant; the sounds of a page of MUSHRA stand at each place
    equally often. Which participant has which is drawn.
Attention checks
    One in each equal part of a plan, at a place that is drawn.

References
----------
E. J. Williams: "Experimental designs balanced for the estimation of residual effects of treatments", Aust. J. Sci. Res.
A 2, 1949.

"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from music_evals.errors import NoDataError
from music_evals.studies.listening.settings import CHECK, ListeningSettings, check_pairs_of_test, played_systems
from music_evals.studies.pairs import StudyPair


class _Trial(NamedTuple):
    """One page before its sounds are in order."""

    files: tuple[str, ...]
    questions: tuple[str, ...]
    reference: str


def make_plans(
    pairs: Sequence[StudyPair], settings: ListeningSettings, checks: Sequence[str] = ()
) -> list[dict[str, Any]]:
    """Return the plans of a listening test."""
    check_pairs_of_test(pairs, settings, makes_anchor=False)
    if len(checks) != settings.checks:
        raise NoDataError(f"the test has {settings.checks} attention checks, and {len(checks)} files for them")
    rng = np.random.default_rng([settings.seed, 1])
    blocks = [_Block(settings, trials, rng) for trials in _blocks(pairs, settings, rng)]
    plans = []
    for slot in range(settings.listeners):
        number, turn = slot % settings.blocks, slot // settings.blocks
        trials = blocks[number].trials(turn)
        n_trials, n_checks = len(trials), len(checks)
        # one attention check in each equal part of the plan, behind its first trial
        starts = [check * n_trials // n_checks + 1 for check in range(n_checks)]
        ends = [(check + 1) * n_trials // n_checks for check in range(n_checks)]
        places = [int(rng.integers(start, max(start, end) + 1)) for start, end in zip(starts, ends, strict=True)]
        for place, check in sorted(zip(places, rng.permutation(n_checks), strict=True), reverse=True):
            trials.insert(place, {"type": "check", "stimuli": [checks[check]], "reference": None, "questions": [CHECK]})
        plans.append({"slot": slot, "block": number, "trials": trials})
    return plans


def _blocks(
    pairs: Sequence[StudyPair], settings: ListeningSettings, rng: np.random.Generator
) -> list[list[list[_Trial]]]:
    """Return the trials of each block by item and variant: a system, a pair of them, or a question of MUSHRA."""
    files: dict[str, dict[str, StudyPair]] = defaultdict(dict)
    for pair in pairs:
        files[pair.item_id][pair.system] = pair
    groups: dict[str, list[str]] = defaultdict(list)
    for item in (list(files)[place] for place in rng.permutation(len(files))):
        groups[next(iter(files[item].values())).group].append(item)
    # items of one group stand beside each other, and so go to different blocks
    dealt = list(itertools.chain.from_iterable(groups.values()))
    systems = played_systems(settings, [pair.system for pair in pairs])
    systems = tuple(systems[place] for place in rng.permutation(len(systems)))
    return [
        [_trials_of_item(files[item], systems, settings) for item in dealt[number :: settings.blocks]]
        for number in range(settings.blocks)
    ]


def _trials_of_item(held: dict[str, StudyPair], systems: Sequence[str], settings: ListeningSettings) -> list[_Trial]:
    names = tuple(question.name for question in settings.questions)
    reference = next(iter(held.values())).reference if settings.is_reference_open else ""
    if settings.type == "mushra":
        return [_Trial(tuple(held[system].estimate for system in systems), (name,), reference) for name in names]
    sets: list[tuple[str, ...]] = [(system,) for system in systems]
    if settings.type == "ab":
        sets = [pair for pair in itertools.combinations(systems, 2) if settings.against in {"", *pair}]
    return [_Trial(tuple(held[system].estimate for system in played), names, reference) for played in sets]


class _Block:
    """The trials of one block, and what has been drawn for those who have it."""

    def __init__(
        self, settings: ListeningSettings, by_item: Sequence[Sequence[_Trial]], rng: np.random.Generator
    ) -> None:
        self.settings = settings
        self.by_item = by_item
        self.rng = rng
        self._orders: dict[tuple[int, int], list[tuple[int, ...]]] = {}

    def trials(self, turn: int) -> list[dict[str, Any]]:
        """Return the trials of the participant who is number `turn` of this block."""
        n_items, n_variants = len(self.by_item), len(self.by_item[0])
        order = order_of_items(n_items, turn)
        # with this offset, turns run through all pairs of a row and a variant
        offset = turn + turn // math.lcm(n_items, n_variants)
        rows = []
        for sweep, item in itertools.product(range(n_variants), order):
            # one question of MUSHRA is asked of all items before the next
            mixed = 0 if self.settings.type == "mushra" else item
            variant = (mixed + sweep + offset) % n_variants
            trial = self.by_item[item][variant]
            stimuli = [trial.files[place] for place in self._sides(item, variant, len(trial.files), turn)]
            row = {"type": self.settings.type, "stimuli": stimuli, "reference": trial.reference or None}
            rows.append({**row, "questions": list(trial.questions)})
        return rows

    def _sides(self, item: int, variant: int, count: int, turn: int) -> tuple[int, ...]:
        """Return the order of the sounds of a trial: those of `count` turns put each sound at each place once."""
        if turn % count == 0 or (item, variant) not in self._orders:
            order, shifts = (self.rng.permutation(count).tolist() for _ in range(2))
            self._orders[item, variant] = [(*order[-shift:], *order[:-shift]) for shift in shifts]
        return self._orders[item, variant][turn % count]


def order_of_items(n_items: int, row: int) -> list[int]:
    """Return a row of Williams' square: the numbers 0..n_items - 1, at each place another in each of n_items rows."""
    zigzag = [(place + 1) // 2 if place % 2 else -(place // 2) for place in range(n_items)]
    return [(start + row) % n_items for start in zigzag]
