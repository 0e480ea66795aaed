"""The states of a song and of a task, and every step between them, in one table each.

Nothing in the platform changes a state but through `step`. Steps of the role ``"system"`` follow from what a person did
and are taken by the platform itself. The drawings of the documentation are made from these tables by `drawing`.

Source: Wang et al., "MuChin", IJCAI 2024: screening and structure, structure assurance, description, description
assurance, spot check and settlement. The paper names the five phases; the names of states and steps are ours.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from music_evals.errors import MusicEvalsError, UnknownNameError

__all__ = [
    "FIRST_SONG_STATE",
    "FIRST_TASK_STATE",
    "LIVE_TASK_STATES",
    "SONG",
    "SYSTEM",
    "TASK",
    "ForbiddenStepError",
    "Machine",
    "Step",
    "drawing",
    "states",
    "step",
]

SYSTEM: Final = "system"
"""Who takes the steps that follow from others."""


class ForbiddenStepError(MusicEvalsError, RuntimeError):
    """A step that the table does not have, or that is another role's.

    Parameters
    ----------
    message
        What was asked for and what may be done.
    state, action, role
        What was asked for, in the words of the table.
    kind
        As of every error.

    """

    def __init__(self, message: str, *, state: str, action: str, role: str, kind: str = "step") -> None:
        super().__init__(message, kind=kind, state=state)
        self.state, self.action, self.role = state, action, role


class Step(NamedTuple):
    """Where a step leads and who may take it.

    Attributes
    ----------
    target
        State afterwards.
    roles
        Roles that may take it.

    """

    target: str
    roles: frozenset[str]


Machine = Mapping[tuple[str, str], Step]
"""(state, action) -> step."""


def _machine(*rows: tuple[str, str, str, str]) -> Machine:
    return MappingProxyType(
        {
            (state, action): Step(target, frozenset(roles.split()))
            for sources, action, target, roles in rows
            for state in sources.split()
        }
    )


FIRST_SONG_STATE: Final = "imported"
"""Of a song that has just come."""

SONG: Final = _machine(
    # phase 1, screening and structure
    ("imported", "open", "structuring", "administrator"),
    ("imported", "take_over", "finished", "administrator"),  # annotated elsewhere
    ("structuring", "screen", "screened", "professional"),
    ("screened", "exclude", "excluded", "administrator"),
    ("screened", "keep", "structuring", "administrator"),
    # phase 2, structure assurance
    ("structuring", "match", "describing", SYSTEM),
    ("structuring", "differ", "inspecting", SYSTEM),
    ("inspecting", "settle", "describing", "inspector"),
    # phase 3, description; phase 4, description assurance
    ("describing", "described", "assuring", SYSTEM),
    ("assuring", "reject", "describing", SYSTEM),
    ("assuring", "pass", "checking", SYSTEM),
    # phase 5, spot check and entry into the data set
    ("checking", "return", "describing", "administrator"),
    ("checking", "finish", "finished", "administrator"),
    # weeks that are discarded, and people who withdraw
    ("structuring inspecting describing assuring checking finished", "redo_structure", "structuring", SYSTEM),
    ("describing assuring checking finished", "redo_description", "describing", SYSTEM),
)
"""Of a song."""

FIRST_TASK_STATE: Final = "assigned"
"""Of a task that has just been given to somebody."""

_ANNOTATORS: Final = "professional amateur"

TASK: Final = _machine(
    ("assigned", "open", "working", _ANNOTATORS),
    ("assigned", "take_over", "accepted", "administrator"),  # annotated elsewhere
    ("working", "save", "working", _ANNOTATORS),
    ("working", "screen", "screened", "professional"),
    ("working", "submit", "submitted", _ANNOTATORS),
    ("screened", "resume", "working", SYSTEM),
    ("assigned working screened", "cancel", "cancelled", f"administrator {SYSTEM}"),
    # type A: by the congruence check, or by an inspector
    ("submitted", "accept", "accepted", SYSTEM),
    ("sampled", "accept", "accepted", SYSTEM),  # its song was left out meanwhile
    # type B: sampled for assurance, or taken as it is
    ("submitted", "sample", "sampled", SYSTEM),
    ("sampled", "pass", "accepted", "inspector"),
    ("sampled", "fail", "rejected", "inspector"),
    ("accepted", "reopen", "rejected", "administrator"),
    # weeks that are discarded, and people who withdraw
    ("submitted sampled accepted", "discard", "discarded", SYSTEM),
)
"""Of a task of an annotator."""

LIVE_TASK_STATES: Final = frozenset({"assigned", "working", "screened", "submitted", "sampled", "accepted"})
"""Of a task that holds its place at its song: nobody else is given it."""


def step(machine: Machine, state: str, action: str, role: str) -> str:
    """Return the state after a step.

    Parameters
    ----------
    machine
        `SONG` or `TASK`.
    state
        Before.
    action
        What is done.
    role
        Of who does it, or `SYSTEM`.

    Raises
    ------
    ForbiddenStepError
        The table has no such step, or not for this role.

    """
    transition = machine.get((state, action))
    if transition is None:
        possible = sorted(name for source, name in machine if source == state)
        raise ForbiddenStepError(
            f"{action!r} is not possible when {state}; possible: {', '.join(possible) or 'nothing, it is over'}",
            state=state, action=action, role=role,
        )  # fmt: skip
    if role not in transition.roles:
        raise ForbiddenStepError(
            f"{action!r} is for {' or '.join(sorted(transition.roles))}, not for {role}",
            kind="step_role", state=state, action=action, role=role,
        )  # fmt: skip
    return transition.target


def states(machine: Machine) -> tuple[str, ...]:
    """Return the states of a table, in the order in which it names them."""
    names = [name for (source, _), transition in machine.items() for name in (source, transition.target)]
    return tuple(dict.fromkeys(names))


def drawing(name: str) -> str:
    """Draw a table as a Mermaid state diagram, one arrow a step.

    Parameters
    ----------
    name
        ``"song"`` or ``"task"``.

    Raises
    ------
    UnknownNameError
        There is no such table.

    """
    tables = {"song": (SONG, FIRST_SONG_STATE), "task": (TASK, FIRST_TASK_STATE)}
    if name not in tables:
        raise UnknownNameError("state machine", name, tables)
    machine, first = tables[name]
    leaving = {source for source, _ in machine}
    arrows = [
        f"    {source} --> {transition.target}: {action} ({', '.join(sorted(transition.roles))})"
        for (source, action), transition in machine.items()
    ]
    ends = [f"    {state} --> [*]" for state in states(machine) if state not in leaving]
    return "\n".join(["stateDiagram-v2", f"    [*] --> {first}", *arrows, *ends, ""])
