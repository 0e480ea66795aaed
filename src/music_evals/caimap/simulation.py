"""Simulated annotators under the rules of the platform: who is caught when, and what the sample of descriptions costs.

Nothing here is measured on people. What an annotator of each habit does is assumed (`HABITS`), and handed to the same
rules that judge people: `listening`, `structure`, `assurance` and `grades`. It tells what the rules can see at all, and
how one share of sampled descriptions compares with another; it does not tell how many people are hasty.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

import numpy as np

from music_evals.caimap import structure
from music_evals.caimap.assurance import PASS_MARK, SHARE, is_sampled
from music_evals.caimap.grades import weekly
from music_evals.caimap.listening import check_listening, warning_of
from music_evals.caimap.values import PlaybackEvent, Section, Structure
from music_evals.errors import InvalidAnnotationError, InvalidInputError

__all__ = ["HABITS", "Habit", "Outcome", "Plan", "simulate"]

INSPECTOR_SD: Final = 3.0
"""Points by which an inspector's total scatters about what a description deserves; assumed."""

_BEAT_SEC: Final = 5.0
_DURATION_SEC: Final = 200.0
_SECTIONS: Final = ("verse1", "chorus1", "verse2", "chorus2", "bridge1", "chorus3")
_LINES: Final = 4
_ALPHABET: Final = "春夏秋冬风花雪月山水云雨日夜江河"


class Habit(NamedTuple):
    """How an annotator works; all of it is assumed.

    Attributes
    ----------
    line_error
        Chance that a line gets a wrong label or mark of rhyme.
    points, points_sd
        What descriptions deserve by the forms, from 0 to 100: mean and standard deviation.
    skips
        Chance that the first attempt at a description is handed in before the song was played whole.
    page
        Least and most time on the page, in durations of the song; at least 1.

    """

    line_error: float
    points: float
    points_sd: float
    skips: float
    page: tuple[float, float]


HABITS: Final[Mapping[str, Habit]] = MappingProxyType(
    {
        "careful": Habit(line_error=0.02, points=85, points_sd=7, skips=0.0, page=(1.4, 3.0)),
        "hasty": Habit(line_error=0.15, points=64, points_sd=10, skips=0.3, page=(1.15, 2.0)),
        "random": Habit(line_error=0.8, points=25, points_sd=10, skips=0.9, page=(1.0, 1.3)),
    }
)
"""Name -> habit."""


@dataclasses.dataclass(frozen=True)
class Plan:
    """What is simulated.

    Parameters
    ----------
    share
        Of descriptions that an inspector scores, from 0 to 1.
    annotators
        Of each habit, at least 2.
    weeks
        How long.
    tasks
        Structures and descriptions a week, so many of both each.
    seed
        Of everything that is drawn.

    """

    share: float = SHARE
    annotators: int = 10
    weeks: int = 4
    tasks: int = 10
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.share <= 1:
            raise InvalidInputError(f"the share must lie between 0 and 1, got {self.share}")
        if self.annotators < 2 or self.weeks < 1 or self.tasks < 1:
            raise InvalidInputError("a simulation needs 2 annotators of each habit, 1 week and 1 task at least")


class Outcome(NamedTuple):
    """What became of the annotators of one habit.

    Attributes
    ----------
    habit
        Its name.
    excluded
        Share that is excluded at the end of each week.
    refused
        Share of descriptions whose first attempt the rules of listening refused.
    entered
        Descriptions that entered the data.
    bad
        Share of these that deserve less than `assurance.PASS_MARK`; NaN where none entered.
    lost
        Share of the descriptions that deserve the mark and did not enter: rejected, or of a week that was discarded.
    scored
        Descriptions that inspectors scored.

    """

    habit: str
    excluded: tuple[float, ...]
    refused: float
    entered: int
    bad: float
    lost: float
    scored: int


@dataclasses.dataclass
class _Annotator:
    habit: str
    excluded: bool = False
    refused: int = 0
    kept: list[float] = dataclasses.field(default_factory=list)
    """What the descriptions deserve that entered."""
    dropped: list[float] = dataclasses.field(default_factory=list)
    """What the others deserve."""
    scored: int = 0


def simulate(plan: Plan) -> list[Outcome]:
    """Let annotators of all habits work side by side.

    Parameters
    ----------
    plan
        What is simulated. Plans that differ in their share alone draw the same descriptions.

    Returns
    -------
    list of Outcome
        One a habit, in the order of `HABITS`.

    """
    people = [_Annotator(habit) for habit in HABITS for _ in range(plan.annotators)]
    excluded: dict[str, list[float]] = {habit: [] for habit in HABITS}
    for week in range(plan.weeks):
        at_work = [number for number, person in enumerate(people) if not person.excluded]
        accuracies = _structures(people, at_work, plan, np.random.default_rng([plan.seed, week, 0]))
        for number in at_work:
            _week(people[number], accuracies[number], plan, number, week)
        for habit, shares in excluded.items():
            shares.append(sum(person.excluded for person in people if person.habit == habit) / plan.annotators)
    return [_outcome(habit, people, excluded[habit]) for habit in HABITS]


def _outcome(habit: str, people: list[_Annotator], excluded: list[float]) -> Outcome:
    ours = [person for person in people if person.habit == habit]
    kept = [points for person in ours for points in person.kept]
    good = sum(points >= PASS_MARK for points in kept)
    dropped = sum(points >= PASS_MARK for person in ours for points in person.dropped)
    made = len(kept) + sum(len(person.dropped) for person in ours)
    return Outcome(
        habit=habit,
        excluded=tuple(excluded),
        refused=sum(person.refused for person in ours) / made,
        entered=len(kept),
        bad=1 - good / len(kept) if kept else float("nan"),
        lost=dropped / (good + dropped) if good + dropped else float("nan"),
        scored=sum(person.scored for person in ours),
    )


# type A


def _structures(
    people: list[_Annotator], at_work: list[int], plan: Plan, rng: np.random.Generator
) -> dict[int, list[float]]:
    """Return the accuracy of each structure of a week: passes meet at random, and an inspector finds the truth."""
    accuracies: dict[int, list[float]] = {number: [] for number in at_work}
    if len(at_work) < 2:
        return accuracies  # nobody is there for the second pass
    for task in range(plan.tasks):
        order = [int(number) for number in rng.permutation(at_work)]
        for first, second in zip(order, [*order[1:], *order[:1]], strict=True):
            truth = _song(np.random.default_rng([plan.seed, task, first]))
            passes = [_annotated(truth, HABITS[people[number].habit].line_error, rng) for number in (first, second)]
            accepted = passes[0] if structure.congruent(*passes) else truth
            accuracies[first].append(structure.agreement(passes[0], accepted))
    return accuracies


def _song(rng: np.random.Generator) -> Structure:
    sections = []
    for label in _SECTIONS:
        lines = tuple("".join(rng.choice(list(_ALPHABET), 7)) for _ in range(_LINES))
        patterns = tuple(structure.line_pattern(line, bool(number % 2)) for number, line in enumerate(lines))
        sections.append(Section(label, lines, patterns))
    return Structure(tuple(sections), "春")


def _annotated(truth: Structure, line_error: float, rng: np.random.Generator) -> Structure:
    """Return a pass over a song: where somebody errs, the line goes to another section or rhymes otherwise."""
    parts: list[tuple[str, str, str]] = []
    for label, line, pattern in structure.flat_lines(truth):
        if rng.random() >= line_error:
            parts.append((label, line, pattern))
        elif rng.random() < 0.5:
            parts.append((label, line, structure.line_pattern(line, not pattern.endswith("R"))))
        else:
            parts.append((str(rng.choice([name for name in _SECTIONS if name != label])), line, pattern))
    return Structure(tuple(_sections(parts)), truth.theme)


def _sections(parts: list[tuple[str, str, str]]) -> Iterator[Section]:
    run: list[tuple[str, str, str]] = []
    for part in parts:
        if run and run[-1][0] != part[0]:
            yield Section(run[0][0], tuple(line for _, line, _ in run), tuple(pattern for *_, pattern in run))
            run = []
        run.append(part)
    yield Section(run[0][0], tuple(line for _, line, _ in run), tuple(pattern for *_, pattern in run))


# type B


def _week(person: _Annotator, accuracies: list[float], plan: Plan, number: int, week: int) -> None:
    """Let somebody describe songs for a week, and grade it; a week of who is excluded is discarded."""
    rng = np.random.default_rng([plan.seed, week, 1, number])
    habit = HABITS[person.habit]
    entered: list[float] = []
    scores: list[float] = []
    warnings: list[str] = []
    for task in range(plan.tasks):
        refused, warned = _described(habit, rng)
        person.refused += refused
        warnings += [warned] if warned else []
        deserves = float(np.clip(rng.normal(habit.points, habit.points_sd), 0, 100))
        given = float(np.clip(deserves + rng.normal(0, INSPECTOR_SD), 0, 100))
        sampled = is_sampled(number, "description", week * plan.tasks + task, seed=plan.seed, share=plan.share)
        if sampled:
            scores.append(given)
        (person.dropped if sampled and given < PASS_MARK else entered).append(deserves)
    person.scored += len(scores)
    person.excluded = weekly(accuracies, scores, warnings).excluded
    (person.dropped if person.excluded else person.kept).extend(entered)


def _described(habit: Habit, rng: np.random.Generator) -> tuple[bool, str]:
    """Return whether a first attempt was refused, and the warning of the one that was taken."""
    refused = False
    if rng.random() < habit.skips:
        heard = _played(until=rng.uniform(30, 0.9 * _DURATION_SEC))
        try:
            check_listening(heard, _DURATION_SEC)
        except InvalidAnnotationError:
            refused = True
    page_sec = rng.uniform(*habit.page) * _DURATION_SEC
    found = check_listening(_played(until=_DURATION_SEC), _DURATION_SEC)
    return refused, warning_of(found, _DURATION_SEC, page_sec)


def _played(until: float) -> list[PlaybackEvent]:
    """Return what a page reports of a player; of an annotator who writes afterwards it reports nothing more."""
    beats = [PlaybackEvent("beat", at, at) for at in np.arange(_BEAT_SEC, until, _BEAT_SEC).tolist()]
    last = "ended" if until == _DURATION_SEC else "pause"
    return [PlaybackEvent("play", 0.0, 0.0), *beats, PlaybackEvent(last, until, until)]
