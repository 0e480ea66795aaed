"""The states of a song and of a task with every step between them, in one table each, and what each role may do.

Nothing in the platform changes a state but through `step`. Steps of the role ``"system"`` follow from what a person did
and are taken by the platform itself. The drawings of the documentation are made from these tables by `drawing`.

Source: Wang et al., "MuChin", IJCAI 2024: screening and structure, structure assurance, description, description
assurance, spot check and settlement. The paper names the five phases; the names of states and steps are ours.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from music_evals.caimap.domain.values import ROLES, Person, Task
from music_evals.errors import MusicEvalsError, UnknownNameError

SYSTEM: Final = "system"
"""Who takes the steps that follow from others."""


class ForbiddenStepError(MusicEvalsError, RuntimeError):
    """A step that the table does not have, or that is another role's."""

    def __init__(self, message: str, *, state: str, action: str, role: str, kind: str = "step") -> None:
        super().__init__(message, kind=kind, state=state)
        self.state, self.action, self.role = state, action, role


class Step(NamedTuple):
    """Where a step leads and who may take it."""

    target: str  # state afterwards
    roles: frozenset[str]  # roles that may take it


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
    """Return the state after a step."""
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
    """Draw a table as a Mermaid state diagram, one arrow a step."""
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


KINDS_OF_ROLE: Final = MappingProxyType({"professional": ("structure", "professional"), "amateur": ("amateur",)})
"""Role -> kinds of task that it may be given."""

RIGHTS: Final = MappingProxyType(
    {
        "annotate": frozenset({"professional", "amateur"}),
        "inspect": frozenset({"inspector"}),
        "judge": frozenset({"inspector", "administrator"}),  # discussions of the training
        "manage": frozenset({"administrator"}),
        "ask": frozenset(ROLES),  # feedback threads
    }
)
"""Right -> roles that have it."""


class ForbiddenError(MusicEvalsError, PermissionError):
    """What was asked for is not for this person."""


def check_right(person: Person, right: str) -> None:
    """Refuse who has not a right."""
    if right not in RIGHTS:
        raise UnknownNameError("right", right, RIGHTS)
    if person.withdrawn or person.role not in RIGHTS[right]:
        raise ForbiddenError(
            f"this is for {' or '.join(sorted(RIGHTS[right]))}, not for {person.role}",
            kind="not_for_role",
            roles=tuple(sorted(RIGHTS[right])),
            role=person.role,
        )

    if right == "annotate" and person.excluded:
        raise ForbiddenError(
            "you get no further tasks, after a week of grade IV or with two warnings; ask in Feedback",
            kind="no_further_tasks",
        )


def may_open(person: Person, task: Task) -> bool:
    """Tell whether a person may see a task of an annotator: their own, and as one who judges or manages any."""
    return not person.withdrawn and (task.person == person.id or person.role in RIGHTS["judge"])
