"""Simulated annotators under the rules of the platform: who is caught when, and what the samples cost.

Nothing here is measured on people. What an annotator of each habit does is assumed (`HABITS`), and handed to the same
rules that judge people: `listening`, `description`, `structure`, `assurance` and `grades`. It tells what
the rules can see at all; it does not tell how many people cheat.
"""

from __future__ import annotations

import dataclasses
import itertools
import statistics
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

import numpy as np

from music_evals.annotations import AUDIO_EFFECTS, DIMENSIONS
from music_evals.caimap.domain import grades, structure
from music_evals.caimap.domain.assurance import PASS_MARK, SHARE, block_of, is_drawn, is_scored
from music_evals.caimap.domain.description import check_description
from music_evals.caimap.domain.grades import weekly
from music_evals.caimap.domain.ledger import Rates
from music_evals.caimap.domain.listening import check_listening, listening_of
from music_evals.caimap.domain.values import Description, Effects, PlaybackEvent, Section, Structure, Tagged
from music_evals.errors import InvalidAnnotationError, InvalidInputError

__all__ = ["HABITS", "SONGS", "Habit", "Outcome", "Plan", "simulate"]

SONGS: Final = 30
"""Of each kind of task, within which who cheats is to be caught."""

INSPECTOR_SD: Final = 3.0
"""Points by which an inspector's total scatters about what a description deserves; assumed."""

_LABELS: Final = ("verse1", "chorus1", "verse2", "chorus2", "bridge1", "pre-chorus1", "chorus3")
_USUAL: Final = 0.07  # share of the commonest sequence of labels among the songs of MuChin
_ALPHABET: Final = "春夏秋冬风花雪月山水云雨日夜江河"
_WORDS: Final = 30


class Habit(NamedTuple):
    """How an annotator works; all of it is assumed.

    Attributes
    ----------
    points, points_sd, new_words
        What descriptions deserve by the forms, from 0 to 100: mean and standard deviation. Share of their words that
        are not those of the last one.
    line_error, form
        Chance that a line of a structure gets a wrong label or mark of rhyme, beside its form: that of the ``"song"``,
        of the ``"last"`` one, ``"one"`` verse, or a ``"wrong"`` one that both annotators agree on.
    page, describing, start
        Least and most: time on the page of a structure and of a description, in durations of the song; seconds until it
        is played.
    played, skips
        Share of a song that is played for a structure; chance that the first attempt at a description hears no whole.
    late_sec, missing, breaks
        Mean delay of reports, share of them that are lost, and pauses with a hidden page a song.
    rests, resting
        Whether they work by another habit, of the number of the song and whether its block has shown its sample.
    """

    points: float
    points_sd: float = 10.0
    line_error: float = 0.02
    page: tuple[float, float] = (1.4, 3.0)
    describing: tuple[float, float] = (1.4, 3.0)
    honest: bool = False  # is to be left alone
    form: str = "song"
    played: float = 1.0
    new_words: float = 1.0
    start: tuple[float, float] = (0.5, 8.0)
    skips: float = 0.0
    late_sec: float = 0.1
    missing: float = 0.0
    breaks: float = 0.3
    partner: str = "careful"  # habit of who makes the other pass
    rests: Callable[[int, bool], bool] = lambda _, __: False
    resting: str = ""


_CAREFUL: Final = Habit(85, 7, honest=True)
_EXPERT: Final = Habit(88, 6, 0.01, (0.75, 1.6), (1.25, 1.8), honest=True, played=0.65, start=(0.2, 2.0), breaks=1.0)
_LAZY: Final = _CAREFUL._replace(honest=False)
_IDLE: Final = Habit(25, 10, 0.0, (0.01, 0.05), (1.0, 1.1), form="one", played=0.0, new_words=0.0, skips=0.9)
_LET_PLAY: Final = _IDLE._replace(page=(1.3, 1.8), describing=(1.3, 1.8), played=1.0)

HABITS: Final[Mapping[str, Habit]] = MappingProxyType(
    {
        "careful": _CAREFUL,
        "quick expert": _EXPERT,
        "slow phone": _CAREFUL._replace(page=(1.6, 5.0), describing=(1.6, 5.0), late_sec=1.0, missing=0.05),
        "interrupted": _CAREFUL._replace(page=(1.5, 12.0), describing=(1.5, 12.0), breaks=4.0),
        "hasty": Habit(64, 10, 0.15, (1.15, 2.0), (1.15, 2.0), skips=0.3),
        "random": Habit(25, 10, 0.8, (1.0, 1.3), (1.0, 1.3), skips=0.9),
        "idle pair": _IDLE._replace(partner="idle pair"),
        "idle, partner honest": _IDLE,
        "idle while it plays": _LET_PLAY._replace(partner="idle while it plays"),
        "waits without playing": Habit(40, line_error=0.5, page=(1.3, 1.8), played=0.0),
        "labels of the last song": Habit(60, form="last"),
        "pair agreed on wrong labels": Habit(85, 7, 0.0, form="wrong", partner="pair agreed on wrong labels"),
        "popular tags at random": Habit(40, 8),
        "last text, words exchanged": Habit(45, 10, new_words=0.1),
        "script": Habit(75, 8, 0.05, (1.3, 1.3), (1.3, 1.3), start=(1.0, 1.0), breaks=0.0),
        "reads the sample off": _LAZY._replace(rests=lambda song, sampled: sampled or song % 5 > 2, resting="random"),
        "lazy after 15 songs": _LAZY._replace(rests=lambda song, _: song >= 15, resting="idle, partner honest"),
        "lazy every other song": _LAZY._replace(rests=lambda song, _: song % 2 > 0, resting="random"),
    }
)
"""Name -> habit."""


@dataclasses.dataclass(frozen=True)
class Plan:
    """What is simulated."""

    share: float = SHARE  # of descriptions and of equal structures that an inspector sees, from 0 to 1
    annotators: int = 10  # of each habit, at least 2
    weeks: int = 4  # how long
    tasks: int = 10  # structures and descriptions a week, so many of both each
    seed: int = 0  # of everything that is drawn
    habits: Mapping[str, Habit] = dataclasses.field(default_factory=lambda: HABITS)  # name -> habit

    def __post_init__(self) -> None:
        block_of(self.share)  # refuses what is no share
        if self.annotators < 2 or self.weeks < 1 or self.tasks < 1:
            raise InvalidInputError("a simulation needs 2 annotators of each habit, 1 week and 1 task at least")


class Outcome(NamedTuple):
    """What became of the annotators of one habit.

    Attributes
    ----------
    caught, songs
        Share that is excluded within `SONGS` songs, of honest ones a false alarm; median of the songs until then of who
        was excluded, NaN of nobody.
    refused, scored
        Share of descriptions whose first attempt the rules of listening refused; number that inspectors scored.
    entered, bad
        Descriptions that entered the data; share that deserves less than `assurance.PASS_MARK`, NaN where none entered.
    lost
        Share of the descriptions that deserve the mark and did not enter: rejected, or of a week that was discarded.
    """

    habit: str  # its name
    excluded: tuple[float, ...]  # share that is excluded at the end of each week
    caught: float
    songs: float
    cents: float  # paid to one by the rates of `ledger.Rates` and not taken back, on average
    refused: float
    entered: int
    bad: float
    lost: float
    scored: int


@dataclasses.dataclass
class _Annotator:
    habit: str
    number: int
    rng: np.random.Generator
    weeks: int = 0  # until the exclusion; 0 without
    cents: int = 0
    refused: int = 0
    scored: int = 0
    entered: list[float] = dataclasses.field(default_factory=list)  # what the descriptions deserve that entered
    dropped: list[float] = dataclasses.field(default_factory=list)  # what the others deserve
    structures: list[Structure] = dataclasses.field(default_factory=list)
    descriptions: list[Description] = dataclasses.field(default_factory=list)
    visits: list[grades.Visit] = dataclasses.field(default_factory=list)
    sampled: list[bool] = dataclasses.field(default_factory=list)


def simulate(plan: Plan) -> list[Outcome]:
    """Let annotators of all habits work: one outcome a habit, in their order."""
    outcomes = []
    for place, habit in enumerate(plan.habits):
        rngs = [np.random.default_rng([plan.seed, place, number]) for number in range(plan.annotators)]
        people = [_Annotator(habit, number, rng) for number, rng in enumerate(rngs)]
        for person, week in itertools.product(people, range(plan.weeks)):
            if not person.weeks:
                _week(person, plan, week)
        outcomes.append(_outcome(habit, people, plan))
    return outcomes


def _outcome(habit: str, people: list[_Annotator], plan: Plan) -> Outcome:
    entered = [points for person in people for points in person.entered]
    dropped = [points for person in people for points in person.dropped]
    good, lost = (sum(points >= PASS_MARK for points in row) for row in (entered, dropped))
    ends = [person.weeks for person in people if person.weeks]
    until = [sum(end <= week for end in ends) / len(people) for week in range(1, plan.weeks + 1)]
    return Outcome(
        habit=habit,
        excluded=tuple(until),
        caught=sum(end * plan.tasks <= SONGS for end in ends) / len(people),
        songs=statistics.median(ends) * plan.tasks if ends else float("nan"),
        cents=statistics.fmean(person.cents for person in people),
        refused=sum(person.refused for person in people) / (len(entered) + len(dropped)),
        entered=len(entered),
        bad=1 - good / len(entered) if entered else float("nan"),
        lost=lost / (good + lost) if good + lost else float("nan"),
        scored=sum(person.scored for person in people),
    )


def _week(person: _Annotator, plan: Plan, week: int) -> None:
    """Let somebody work for a week, and grade it; a week of who is excluded is discarded and paid back."""
    entered: list[float] = []
    accuracies: list[float] = []
    scores: list[float] = []
    warnings: list[str] = []
    cents, rates = 0, Rates()
    length = block_of(plan.share)[1]
    for song in range(week * plan.tasks, (week + 1) * plan.tasks):
        first = song // length * length  # of its block
        habit = plan.habits[person.habit]
        if habit.rests(song, any(person.sampled[first : week * plan.tasks])):  # what a closed week has shown
            habit = plan.habits[habit.resting]
        duration = float(person.rng.uniform(120, 300))
        # accuracy and warning of a structure: its passes meet, and an inspector finds the truth
        truth, wrong = (_song(np.random.default_rng([plan.seed, song, person.number, side])) for side in (0, 1))
        ours, theirs = (
            _annotated(truth, wrong, pass_habit, person) for pass_habit in (habit, plan.habits[habit.partner])
        )
        events = _played(person.rng, habit, habit.played * duration)
        page_sec = max(events[-1].received_sec, person.rng.uniform(*habit.page) * duration)
        person.visits.append(grades.Visit(page_sec, events[0].received_sec, duration))
        listening = listening_of(events if habit.played else [], duration)
        warned = grades.structure_warning(ours, person.structures, listening, person.visits)
        person.structures.append(ours)
        is_seen = warned or is_drawn(f"structure/{song}/{person.number}", seed=plan.seed, share=plan.share)
        accepted = ours if structure.congruent(ours, theirs) and not is_seen else truth
        if not warned and grades.agree_on_wrong(ours, theirs, accepted):
            warned = "wrong_together"
        accuracy = structure.agreement(ours, accepted)
        accuracies.append(accuracy)
        warnings += [kind for kind in (warned, _described(person, habit, duration)) if kind]
        deserves = float(np.clip(person.rng.normal(habit.points, habit.points_sd), 0, 100))
        points = float(np.clip(deserves + person.rng.normal(0, INSPECTOR_SD), 0, 100))
        read = first < week * plan.tasks
        is_sampled = is_scored(person.number, "amateur", song, seed=plan.seed, share=plan.share, is_read=read)
        person.sampled.append(is_sampled)
        scores += [points] if is_sampled else []
        fails = is_sampled and points < PASS_MARK
        (person.dropped if fails else entered).append(deserves)
        cents += rates.structure + (0 if fails else rates.amateur)
    person.scored += len(scores)
    if weekly(accuracies, scores, warnings).excluded:
        person.weeks = week + 1
        person.dropped += entered
    else:
        person.entered += entered
        person.cents += cents


def _song(rng: np.random.Generator) -> Structure:
    labels = list(_LABELS[:6])
    if rng.random() > _USUAL:
        steps = rng.integers(1, len(_LABELS), rng.integers(4, 9)).cumsum() % len(_LABELS)
        labels = ["verse1", *(_LABELS[step] for step in steps)]
    sections = []
    for label in labels:
        lines = tuple(_words(rng, 7) for _ in range(rng.integers(2, 6)))
        patterns = tuple(structure.line_pattern(line, bool(number % 2)) for number, line in enumerate(lines))
        sections.append(Section(label, lines, patterns))
    return Structure(tuple(sections), "春")


def _words(rng: np.random.Generator, n: int) -> str:
    return "".join(_ALPHABET[at] for at in rng.integers(len(_ALPHABET), size=n))


def _annotated(truth: Structure, wrong: Structure, habit: Habit, person: _Annotator) -> Structure:
    """Return a pass over a song: where somebody errs, the line goes to another section or rhymes otherwise."""
    parts = list(structure.flat_lines(truth))
    if habit.form != "song":
        model = wrong if habit.form == "wrong" else (person.structures or [truth])[0]
        labels = [label for label, *_ in structure.flat_lines(model)] if habit.form != "one" else ["verse1"]
        labels += labels[-1:] * len(parts)
        parts = [(label, line, pattern) for label, (_, line, pattern) in zip(labels, parts, strict=False)]
    rng = person.rng
    for place, (label, line, pattern) in enumerate(parts):
        if rng.random() < habit.line_error / 2:
            parts[place] = label, line, structure.line_pattern(line, not pattern.endswith("R"))
        elif rng.random() < habit.line_error / 2:
            parts[place] = str(rng.choice([name for name in _LABELS if name != label])), line, pattern
    sections = []
    for label, run in itertools.groupby(parts, key=lambda part: part[0]):
        _, lines, patterns = zip(*run, strict=True)
        sections.append(Section(label, lines, patterns))
    return Structure(tuple(sections), truth.theme)


# type B


def _described(person: _Annotator, habit: Habit, duration: float) -> str:
    """Let somebody describe a song, and return the warning; what was refused is done again."""
    rng, spent, tries = person.rng, 0.0, 0
    skips = rng.random() < habit.skips
    while True:
        events = _played(rng, habit, rng.uniform(30, 0.9 * duration) if skips and not tries else duration)
        try:
            listening = check_listening(events, duration)
            break
        except InvalidAnnotationError:
            spent, tries = spent + events[-1].received_sec, tries + 1
    person.refused += tries > 0
    page_sec = max(spent + events[-1].received_sec, rng.uniform(*habit.describing) * duration)
    person.visits.append(grades.Visit(page_sec, events[0].received_sec, duration))
    description = _text(person, habit)
    check_description(description)
    warned = grades.description_warning(description, person.descriptions, listening, person.visits)
    person.descriptions.append(description)
    return warned


def _text(person: _Annotator, habit: Habit) -> Description:
    rng = person.rng
    words = [_words(rng, 2) for _ in range(_WORDS)]
    if person.descriptions:
        last = person.descriptions[-1].overall_text
        repeats = rng.random(_WORDS) >= habit.new_words
        words = [last[2 * at : 2 * at + 2] if repeats[at] else word for at, word in enumerate(words)]
    names = [name for name in DIMENSIONS["amateur"] if name != AUDIO_EFFECTS]
    tags = {name: Tagged(tuple(f"{name[:9]}{tag}" for tag in rng.permutation(40)[:3])) for name in names}
    return Description("amateur", "".join(words), tags, Effects(clear=True))


def _played(rng: np.random.Generator, habit: Habit, until: float, begun: float = 0.0) -> list[PlaybackEvent]:
    """Return what a page reports of a player: beats, late or lost, pauses with a hidden page, reloads, the end."""
    passed = begun + rng.uniform(*habit.start) + rng.exponential(habit.late_sec)
    events = [PlaybackEvent("play", 0.0, passed)]
    for at in np.arange(5.0, until, 5.0).tolist():
        passed += 5.0
        received = max(events[-1].received_sec, passed + rng.exponential(habit.late_sec))
        if rng.random() < 5.0 * habit.breaks / until:
            passed = received + rng.exponential(40.0)
            events += [PlaybackEvent(kind, at, received) for kind in ("pause", "hidden")]
            events += [PlaybackEvent(kind, at, passed) for kind in ("shown", "play")]
        elif rng.random() >= habit.missing:
            events.append(PlaybackEvent("beat", at, received))
        if rng.random() < habit.breaks / 1000:  # the page is loaded again
            return [*events, *_played(rng, habit, until, events[-1].received_sec)]
    return [*events, PlaybackEvent("pause", until, max(events[-1].received_sec, passed + (until % 5 or 5)))]
