"""What each role may do and see; a person sees what is theirs, inspectors and administrators see what they judge."""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

from music_evals.caimap.values import ROLES, Person, Task
from music_evals.errors import MusicEvalsError, UnknownNameError

__all__ = ["KINDS_OF_ROLE", "RIGHTS", "ForbiddenError", "check_right", "may_open"]

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
    """Refuse who has not a right.

    Raises
    ------
    ForbiddenError
        The person's role does not have it, they have withdrawn, or they would annotate and are excluded.
    UnknownNameError
        There is no such right.

    """
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
