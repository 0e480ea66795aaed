"""Who gets which song: clusters spread evenly over annotators, and the two passes of a structure apart in time.

Source: Wang et al., "MuChin", IJCAI 2024: songs are sampled evenly from clusters of their embeddings and given out so
that each annotator hears all kinds, and the two annotations of a structure are made at different times. The paper gives
no span of time; the default is ours.
"""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np

from music_evals.caimap.domain.machine import KINDS_OF_ROLE, LIVE_TASK_STATES
from music_evals.caimap.domain.values import Person, Task

PASS_GAP: Final = dt.timedelta(days=1)
"""At least so long after the first pass of a structure was submitted the second is given out; our choice."""

IDLE: Final = dt.timedelta(days=14)
"""Without anything done on a task that was given out, after which others get its place; our choice."""

STATE_OF_KIND: Final[Mapping[str, str]] = {
    "structure": "structuring",
    "professional": "describing",
    "amateur": "describing",
}
"""Kind of task -> state of a song in which it is given out: type A has passed before type B opens."""


class Offer(NamedTuple):
    """A place that waits for an annotator."""

    song: str  # its id
    kind: str  # of the task
    number: int  # 1 or 2, of the pass


def offers(
    person: Person, states: Mapping[str, str], tasks: Iterable[Task], *, now: dt.datetime, gap: dt.timedelta = PASS_GAP
) -> list[Offer]:
    """List what a person may be given now."""
    if person.excluded or person.withdrawn:
        return []
    by_song: dict[str, list[Task]] = {}
    for task in tasks:
        by_song.setdefault(task.song, []).append(task)
    available = []
    for kind in KINDS_OF_ROLE.get(person.role, ()):
        for song, state in states.items():
            ours = [task for task in by_song.get(song, ()) if task.kind == kind and not task.training]
            if state != STATE_OF_KIND[kind] or any(task.person == person.id for task in ours):
                continue
            number = _free_place(kind, [task for task in ours if task.state in LIVE_TASK_STATES], now, gap)
            if number:
                available.append(Offer(song, kind, number))
    return available


def _free_place(kind: str, live: Sequence[Task], now: dt.datetime, gap: dt.timedelta) -> int:
    """Return the number of the place that may be taken now, 0 for none."""
    taken = {task.number for task in live}
    if kind != "structure":
        return 0 if taken else 1
    if not taken:
        return 1
    # the other pass waits until this one was handed in, some time ago; a moment to come is of a clock that was ahead
    done = all(task.submitted is not None and not now - gap < task.submitted <= now for task in live)
    free = {1, 2} - taken
    return min(free) if free and done else 0


def choose(
    available: Sequence[Offer],
    clusters: Mapping[str, int | None],
    had: Iterable[int | None],
    *,
    rng: np.random.Generator,
) -> Offer | None:
    """Choose one offer: of the cluster that a person has had least, then the place that is nearest to done."""
    if not available:
        return None
    times = Counter(had)
    fewest = min(times[clusters[offer.song]] for offer in available)
    even = [offer for offer in available if times[clusters[offer.song]] == fewest]
    latest = max(offer.number for offer in even)
    equal = [offer for offer in even if offer.number == latest]
    return equal[int(rng.integers(len(equal)))]
