"""What an editor did with a sample, event by event: checked, played again from the first note on, and counted.

A log is a list of events ``[milliseconds, what, ...]`` in the order of time:

``load``, ``submit``, ``limit``, ``blur``, ``focus``, ``hide``, ``show``
    The sample is there; the editor is done; the time is over; the window and the tab lose and get attention.
``play`` tick, ``stop`` tick, ``select`` notes
    The transport, and how many notes are selected.
``key`` category, ``click`` category device
    A key that is pressed, repeats left out, and a button of a pointer; a drag is one. Categories: `CATEGORIES`. Which
    key it was is not kept.
``edit`` operation changes, ``undo`` changes, ``redo`` changes
    Changes ``[id, before, after]`` of notes ``[onset, duration, pitch, velocity, voice]`` in ticks; before is None
    where a note is new, after where it goes.
``idle`` milliseconds, ``absent`` milliseconds
    Nothing was done for more than `IDLE_MS`, up to here; the page was closed for so long.

The page counts too; these counts are the reference. The time is from the first sight to the end; of each absence at
most `IDLE_MS` are in it, since the clock stops where a page stays closed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from music_evals.errors import TamperedLogError

__all__ = [
    "CATEGORIES",
    "DEVICES",
    "IDLE_MS",
    "EditCounts",
    "Note",
    "check_counts",
    "check_log",
    "count_log",
    "replay_log",
]

Note = tuple[int, int, int, int, int]
"""Onset and duration in ticks, pitch, velocity, voice."""

IDLE_MS = 60_000
"""A gap without an action that is longer does not count as active time."""
CATEGORIES = ("edit", "transport", "navigation", "modifier", "other")
"""What a key or a click did."""
DEVICES = ("mouse", "touch", "pen")
"""What a click came from."""
MAX_EVENTS = 100_000
"""Of a log: nobody does more in a day."""

_OPERATIONS = frozenset(
    {"add", "remove", "move", "resize", "split", "merge", "duplicate", "transpose", "quantise", "reset"}
)
_ENDS = frozenset({"submit", "limit"})


class EditCounts(NamedTuple):
    """What can be counted from a log; times in milliseconds.

    Attributes
    ----------
    time_ms
        From the first sight to the end.
    active_ms
        The same without hidden tabs and gaps of more than `IDLE_MS`.
    playback_ms
        While the sample sounded.
    key_presses, mouse_clicks
        All of them.
    edit_key_presses, edit_clicks
        Those that changed notes.
    n_edits, n_undone, n_redone
        Operations.
    hit_limit
        Whether the time limit ended it.

    """

    time_ms: int
    active_ms: int
    playback_ms: int
    key_presses: int
    mouse_clicks: int
    edit_key_presses: int
    edit_clicks: int
    n_edits: int
    n_undone: int
    n_redone: int
    hit_limit: bool


def check_log(log: Any) -> list[list[Any]]:
    """Return a log whose every event has the form of its kind.

    Parameters
    ----------
    log
        What was sent.

    Raises
    ------
    TamperedLogError
        It is none: it does not begin with ``load`` or end with ``submit``, goes back in time, or holds an event that no
        page writes. The message says which event.

    """
    if not isinstance(log, list) or not 2 <= len(log) <= MAX_EVENTS:
        raise TamperedLogError("a log is a list of 2 events or more, from load to submit")
    last = 0
    for number, event in enumerate(log):
        reason = _reason(event, last)
        if reason:
            raise TamperedLogError(f"event {number}: {reason}")
        last = event[0]
    if log[0][1] != "load" or log[0][0] != 0:
        raise TamperedLogError("event 0: a log begins with load, at 0 ms")
    if log[-1][1] != "submit" or any(event[1] in {"load", "submit"} for event in log[1:-1]):
        raise TamperedLogError(f"event {len(log) - 1}: a log has one submit, at its end, and one load")
    return log


def _reason(event: Any, last: int) -> str:
    """Say what is wrong with an event, in no words where nothing is."""
    if not isinstance(event, list) or len(event) < 2 or type(event[0]) is not int or not isinstance(event[1], str):
        return "expected [milliseconds, what, ...]"
    at, what, *data = event
    if at < last:
        return f"{at} ms come after {last} ms"
    if what not in _FORMS:
        return f"no page writes {what!r}"
    is_well_formed, form = _FORMS[what]
    return "" if is_well_formed(data) and (what != "idle" or data[0] <= at) else f"{what} has {form}"


def _is_number(data: list[Any]) -> bool:
    return len(data) == 1 and type(data[0]) is int and data[0] >= 0


def _is_gap(data: list[Any]) -> bool:
    return _is_number(data) and data[0] > IDLE_MS


def _is_key(data: list[Any]) -> bool:
    return len(data) == 1 and data[0] in CATEGORIES


def _is_click(data: list[Any]) -> bool:
    return len(data) == 2 and data[0] in CATEGORIES and data[1] in DEVICES


def _is_edit(data: list[Any]) -> bool:
    return len(data) == 2 and data[0] in _OPERATIONS and _are_changes(data[1])


def _is_change_alone(data: list[Any]) -> bool:
    return len(data) == 1 and _are_changes(data[0])


def _are_changes(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(map(_is_change, value))


def _is_change(value: Any) -> bool:
    if not isinstance(value, list) or len(value) != 3 or type(value[0]) is not int or value[1] == value[2]:
        return False
    return all(side is None or _is_note(side) for side in value[1:])


def _is_note(value: Any) -> bool:
    if not isinstance(value, list) or len(value) != 5 or any(type(part) is not int for part in value):
        return False
    onset, duration, pitch, velocity, voice = value
    return bool(onset >= 0 and duration > 0 and 0 <= pitch <= 127 and 1 <= velocity <= 127 and voice >= 0)


_FORMS: dict[str, tuple[Callable[[list[Any]], bool], str]] = {
    **dict.fromkeys(
        ("load", "submit", "limit", "blur", "focus", "hide", "show"), (lambda data: not data, "nothing more to say")
    ),
    **dict.fromkeys(("play", "stop", "select", "absent"), (_is_number, "one whole number from 0 on")),
    "idle": (_is_gap, f"the milliseconds of a gap, more than {IDLE_MS} and not before the beginning"),
    "key": (_is_key, f"one of {', '.join(CATEGORIES)}"),
    "click": (_is_click, "a category and a device"),
    "edit": (_is_edit, "an operation and changes of notes"),
    **dict.fromkeys(("undo", "redo"), (_is_change_alone, "changes of notes")),
}


def replay_log(
    original: Sequence[Sequence[int]], log: Sequence[Sequence[Any]], *, locked: Sequence[int] = ()
) -> dict[int, Note]:
    """Do again what a log says, and return the notes at its end.

    Parameters
    ----------
    original
        Notes that the editor was given; the first has the id 0.
    log
        From `check_log`.
    locked
        Voices that cannot be changed.

    Returns
    -------
    dict
        Id -> note.

    Raises
    ------
    TamperedLogError
        It cannot have happened so: a change does not start at what was there, touches a locked voice, comes after the
        time limit, or takes back or does again what was not done. The message says which event.

    """
    notes: dict[int, Note] = {number: _note(note) for number, note in enumerate(original)}
    history = _History()
    limit = False
    for number, (_, what, *data) in enumerate(log):
        limit = limit or what == "limit"
        if what in {"edit", "undo", "redo"}:
            reason = "it comes after the time limit" if limit else history.reason(what, data[-1])
            reason = reason or _apply(notes, data[-1], set(locked))
            if reason:
                raise TamperedLogError(f"event {number}, {what}: {reason}")
    return notes


class _History:
    """What may be undone and done again."""

    def __init__(self) -> None:
        self.done: list[list[Any]] = []
        self.undone: list[list[Any]] = []

    def reason(self, what: str, changes: list[Any]) -> str:
        """Note a step, or say why it cannot have come."""
        if what == "edit":
            self.done.append(changes)
            self.undone.clear()
            return ""
        source, goal = (self.done, self.undone) if what == "undo" else (self.undone, self.done)
        if not source:
            return f"nothing is left to {what}"
        known = source.pop()
        goal.append(known)
        return "" if changes == (_backwards(known) if what == "undo" else known) else "it is not what was done"


def _apply(notes: dict[int, Note], changes: Sequence[Sequence[Any]], locked: set[int]) -> str:
    """Change notes, or say why they cannot have changed so."""
    for id_, before, after in changes:
        if notes.get(id_) != (None if before is None else _note(before)):
            return f"note {id_} was not as it says"
        if {note[4] for note in (before, after) if note is not None} & locked:
            return f"note {id_} is of a voice that is locked"
        if after is None:
            del notes[id_]
        else:
            notes[id_] = _note(after)
    return ""


def _note(values: Sequence[int]) -> Note:
    onset, duration, pitch, velocity, voice = values
    return onset, duration, pitch, velocity, voice


def _backwards(changes: Sequence[Sequence[Any]]) -> list[list[Any]]:
    return [[id_, after, before] for id_, before, after in reversed(changes)]


def count_log(log: Sequence[Sequence[Any]]) -> EditCounts:
    """Count what a log holds.

    Parameters
    ----------
    log
        From `check_log`.

    """
    what = [event[1] for event in log]
    time_ms = log[-1][0]
    keys = [event[2] for event in log if event[1] == "key"]
    clicks = [event[2] for event in log if event[1] == "click"]
    idle = sum(event[2] for event in log if event[1] == "idle")
    hidden = sum(end - start for start, end in _spans(log, {"hide"}, {"show"}))
    return EditCounts(
        time_ms=time_ms,
        active_ms=max(0, time_ms - hidden - idle),
        playback_ms=sum(end - start for start, end in _spans(log, {"play"}, {"stop", *_ENDS})),
        key_presses=len(keys),
        mouse_clicks=len(clicks),
        edit_key_presses=keys.count("edit"),
        edit_clicks=clicks.count("edit"),
        n_edits=what.count("edit"),
        n_undone=what.count("undo"),
        n_redone=what.count("redo"),
        hit_limit="limit" in what,
    )


def _spans(log: Sequence[Sequence[Any]], starts: set[str], ends: set[str]) -> Iterator[tuple[int, int]]:
    """Yield when something began and ended; what never ended does so with the log."""
    begun: int | None = None
    for at, what, *_ in log:
        if what in starts and begun is None:
            begun = at
        elif what in ends and begun is not None:
            yield begun, at
            begun = None
    if begun is not None:
        yield begun, log[-1][0]


def check_counts(log: Sequence[Sequence[Any]], said: Mapping[str, Any]) -> EditCounts:
    """Return the counts of a log, which the page that wrote it must have found too.

    Parameters
    ----------
    log
        From `check_log`.
    said
        What the page counted.

    Raises
    ------
    TamperedLogError
        It says something else.

    """
    counts = count_log(log)
    for name, value in counts._asdict().items():
        if said.get(name) != value:
            raise TamperedLogError(f"the page counted {name} {said.get(name)!r}, its log has {value!r}")
    return counts
