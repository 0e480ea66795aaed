"""What engines are given and what they answer; and the engine that is this process."""

from __future__ import annotations

import collections
import dataclasses
import itertools
from collections.abc import Collection, Generator, Iterable, Sequence
from typing import Any, NamedTuple, Protocol


class Work(Protocol):
    """What is done with each unit; it can be pickled, and may keep what it loads from one unit to the next."""

    # It may have a method ``begin(folder)``, which a process of the engine calls once, before it imports anything
    # heavy: the folder is its own, and lasts as long as the run.

    def __call__(self, payload: Any, /) -> Any:
        """Return the answer for a unit."""
        ...


@dataclasses.dataclass(frozen=True)
class Unit:
    """What one process does in one go."""

    payload: Any  # what the work is given
    label: str  # what messages call it
    place: str = ""  # units of one place go to one process, unless another one would be idle
    size: int = 1  # how much of the progress it is
    parts: tuple[Unit, ...] = ()  # smaller units that make it up: tried one by one where the whole one ends its process


class Failed(NamedTuple):
    """In place of an answer: the kind and the message of the error."""

    reason: str


class Answered(NamedTuple):
    """A unit and its answer, or `Failed`."""

    unit: Unit
    answer: Any
    kernels: str = ""  # as in `numerics.kernels`, where another machine may have worked it out


Answers = Generator[Answered]


def answer(work: Work, payload: Any) -> Any:
    """Return the answer, or the error in its place: what is wrong with one item must not end the run of all."""
    try:
        return work(payload)
    except Exception as error:  # noqa: BLE001 (it is recorded, with its kind)
        return Failed(f"{type(error).__name__}: {error}")


class UnitQueue:
    """Units without a worker yet, by place."""

    def __init__(self, units: Iterable[Unit]) -> None:
        self._left: dict[str, collections.deque[Unit]] = {}
        self.add(units)

    def add(self, units: Iterable[Unit]) -> None:
        """Put further units at the end."""
        for unit in units:
            self._left.setdefault(unit.place, collections.deque()).append(unit)

    def take(self, place: str, taken: Collection[str]) -> Unit | None:
        """Return the next unit of this place, of a place without a worker, or of the fullest place; None at the end."""
        if place not in self._left:
            free = (other for other in self._left if other not in taken)
            place = next(free, "") or max(self._left, key=lambda other: len(self._left[other]), default="")
        if place not in self._left:
            return None
        unit = self._left[place].popleft()
        if not self._left[place]:
            del self._left[place]
        return unit


def serial(units: Sequence[Unit], work: Work, *, workers: int = 1) -> Answers:  # noqa: ARG001 (as all engines)
    """Yield each unit with its answer, worked out in this process."""
    by_place: dict[str, list[Unit]] = {"": []}
    for unit in units:
        by_place.setdefault(unit.place, []).append(unit)
    for unit in itertools.chain.from_iterable(by_place.values()):
        yield Answered(unit, answer(work, unit.payload))
