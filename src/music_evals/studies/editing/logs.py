"""What an editor did with a sample, event by event: checked, played again from the first note on, and counted.

A log is a list of events ``[milliseconds, kind, ...]`` in the order of time:

``load``, ``submit``, ``limit``, ``blur``, ``focus``, ``hide``, ``show``
    The sample is there; the editor is done; the time is over; the window and the tab lose and get attention.
``play`` tick, ``stop`` tick, ``select`` notes
    The transport, and how many notes are selected.
``key`` category, ``midi`` category, ``click`` category device
    A key that is pressed, repeats left out, a note that is played on a keyboard, and a button of a pointer; a drag is
    one. Categories: `CATEGORIES`. Which key it was is not kept.
``edit`` operation changes, ``undo`` changes, ``redo`` changes
    Changes ``[id, before, after]`` of notes ``[onset, duration, pitch, velocity, voice]`` in ticks; before is None
    where a note is new, after where it goes.
``idle`` milliseconds, ``absent`` milliseconds
    Nothing was done for more than `IDLE_MS`, up to here; the page was closed for so long.

No page changes notes, or ends a sample, without hands: a change has a key, a click or a played note before it that no
other change used up, but for a key that is held, and for a click that drags while a key does something of its own.

The page counts too; these counts are the reference. The time is from the first sight to the end; of each absence at
most `IDLE_MS` are in it, since the clock stops where a page stays closed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from music_evals.errors import TamperedLogError

__all__ = [
    "CATEGORIES",
    "CHANGES",
    "DEVICES",
    "IDLE_MS",
    "INPUTS",
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
MAX_NUMBER = 2**31
"""Of milliseconds, 24 days, and of ticks."""

INPUTS = frozenset({"key", "click", "midi"})
"""What hands do."""
CHANGES = frozenset({"edit", "undo", "redo"})
"""What becomes of it in the notes."""

_MAKES: dict[str, set[Any]] = {
    "add": {"new"}, "remove": {"gone"}, "move": {0, 2}, "resize": {1}, "split": {1, "new"}, "merge": {1, "gone"},
    "duplicate": {"new"}, "transpose": {2}, "quantise": {0, 1}, "reset": {0, 1, 2, 3, 4, "new", "gone"},
}  # fmt: skip
"""Which of the values of a note an operation changes, and whether notes are new or gone."""
_HELD, _HELD_ANEW = {"move", "resize", "transpose"}, {"duplicate", "split", "undo", "redo"}
"""What a key that is held goes on doing, with the same notes and with others."""
_ENDS = frozenset({"submit", "limit"})


class EditCounts(NamedTuple):
    """What can be counted from a log; times in milliseconds."""

    time_ms: int  # from the first sight to the end
    active_ms: int  # the same without hidden tabs and gaps of more than `IDLE_MS`
    playback_ms: int  # while the sample sounded
    key_presses: int
    mouse_clicks: int
    edit_key_presses: int  # those that changed notes
    edit_clicks: int
    n_edits: int
    n_undone: int
    n_redone: int
    hit_limit: bool  # the time limit ended it
    n_midi: int = 0  # notes that were played; pages of before do not count them


def check_log(log: Any) -> list[list[Any]]:
    """Return a log whose every event has the form of its kind, or raise `TamperedLogError`, which names the event."""
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
    """Return what is wrong with an event; empty if it is valid."""
    if not isinstance(event, list) or len(event) < 2 or type(event[0]) is not int or not isinstance(event[1], str):
        return "expected [milliseconds, kind, ...]"
    at, kind, *data = event
    if not last <= at < MAX_NUMBER:
        return f"{at} ms come after {last} ms" if at < last else "no page is open for so long"
    if kind not in _FORMS:
        return f"no page writes {kind!r}"
    is_well_formed, form = _FORMS[kind]
    return "" if is_well_formed(data) and (kind != "idle" or data[0] <= at) else f"{kind} has {form}"


def _is_number(data: list[Any]) -> bool:
    return len(data) == 1 and type(data[0]) is int and 0 <= data[0] < MAX_NUMBER


def _is_edit(data: list[Any]) -> bool:
    if len(data) != 2 or not isinstance(data[0], str) or not _are_changes(data[1]):
        return False
    operation, differences = data[0], [_difference(before, after) for _, before, after in data[1]]
    is_uniform = operation not in {"move", "transpose"} or all(each == differences[0] for each in differences)
    is_single = operation != "add" or len(differences) == 1
    return is_uniform and is_single and set().union(*differences) <= _MAKES.get(operation, set())


def _difference(before: list[int] | None, after: list[int] | None) -> dict[Any, int]:
    """Return which values of a note change and by how much, in the words of `_MAKES`."""
    if before is None or after is None:
        return {"gone" if before else "new": 1}
    return {part: after[part] - before[part] for part in range(5) if after[part] != before[part]}


def _are_changes(value: Any) -> bool:
    """Tell whether a value is a list of changes ``[id, before, after]``, each from one note or none to another."""
    return isinstance(value, list) and bool(value) and all(
        isinstance(change, list) and len(change) == 3 and type(change[0]) is int and change[1] != change[2]
        and all(side is None or _is_note(side) for side in change[1:])
        for change in value
    )  # fmt: skip


def _is_note(value: Any) -> bool:
    if not isinstance(value, list) or len(value) != 5 or any(type(part) is not int for part in value):
        return False
    onset, duration, pitch, velocity, voice = value
    is_there = 0 <= onset < MAX_NUMBER and 0 < duration < MAX_NUMBER and 0 <= voice < MAX_NUMBER
    return bool(is_there and 0 <= pitch <= 127 and 1 <= velocity <= 127)


_FORMS: dict[str, tuple[Callable[[list[Any]], bool], str]] = {
    **dict.fromkeys(
        ("load", "submit", "limit", "blur", "focus", "hide", "show"), (lambda data: not data, "nothing more to say")
    ),
    **dict.fromkeys(("play", "stop", "select", "absent"), (_is_number, "one whole number from 0 on")),
    "idle": (
        lambda data: _is_number(data) and data[0] > IDLE_MS,
        f"the milliseconds of a gap, more than {IDLE_MS} and not before the beginning",
    ),
    **dict.fromkeys(
        ("key", "midi"), (lambda data: len(data) == 1 and data[0] in CATEGORIES, f"one of {', '.join(CATEGORIES)}")
    ),
    "click": (lambda data: len(data) == 2 and data[0] in CATEGORIES and data[1] in DEVICES, "a category and a device"),
    "edit": (_is_edit, "an operation and changes of notes"),
    **dict.fromkeys(("undo", "redo"), (lambda data: len(data) == 1 and _are_changes(data[0]), "changes of notes")),
}


def replay_log(
    original: Sequence[Sequence[int]], log: Sequence[Sequence[Any]], *, locked: Sequence[int] = ()
) -> dict[int, Note]:
    """Replay a checked log, and return the notes at its end by their ids; the first of the original notes has the id 0.

    Raises `TamperedLogError`: the log is impossible: a change starts from other notes, touches a locked voice, comes
    after the time limit, undoes or redoes something else than the last change, or follows no key, click or played note.
    The message names the event.
    """
    notes: dict[int, Note] = {number: _note(note) for number, note in enumerate(original)}
    initial, hands, limit = dict(notes), _Hands(), False
    done: list[list[Any]] = []
    undone: list[list[Any]] = []
    for number, (_, kind, *data) in enumerate(log):
        limit = limit or kind == "limit"
        reason = ""
        if kind in CHANGES:
            reason = "it comes after the time limit" if limit else _step(done, undone, kind, data[-1])
            reason = reason or _apply(notes, data[-1], set(locked))
            if data[0] == "reset" and notes != initial:
                reason = reason or "these are not the notes of the beginning"
        hands = _Hands() if kind == "absent" else hands
        reason = reason or hands.reason(kind, data, is_over=limit)
        if reason:
            raise TamperedLogError(f"event {number}, {kind}: {reason}")
    return notes


class _Hands:
    """Keys, clicks and played notes since the page was opened that no change has used up."""

    def __init__(self) -> None:
        self.has_key = self.has_click = self.had_key = False
        self.category, self.last, self.ids = "", "", set[int]()

    def reason(self, kind: str, data: list[Any], *, is_over: bool) -> str:
        """Record an event; return why no key, click or played note can have caused it, else an empty text."""
        if kind in INPUTS:
            self.has_click, self.has_key = self.has_click or kind == "click", self.has_key or kind != "click"
            self.category, self.had_key = data[0], self.had_key or kind == "key"
        elif kind == "submit" and not (is_over or self.has_key or self.has_click):
            return "nobody pressed that it is done"
        elif kind in CHANGES:
            doing, ids = data[0] if kind == "edit" else kind, {id_ for id_, *_ in data[-1]}
            is_same = doing in _HELD_ANEW or (doing in _HELD and ids <= self.ids)
            is_held = self.had_key and doing == self.last and is_same
            if self.category != "edit" or not (self.has_key or is_held or self.has_click):
                return "no key, click or played note can have caused it"
            if self.has_key or not is_held:  # a click that drags stays while a key does something of its own
                self.has_key, self.has_click = False, self.has_click and self.has_key
            self.last, self.ids = doing, ids
        return ""


def _step(done: list[list[Any]], undone: list[list[Any]], kind: str, changes: list[Any]) -> str:
    """Record a step in the stacks of undo and redo; return why it is impossible, else an empty text."""
    if kind == "edit":
        done.append(changes)
        undone.clear()
        return ""
    source, goal = (done, undone) if kind == "undo" else (undone, done)
    if not source:
        return f"nothing is left to {kind}"
    known = source.pop()
    goal.append(known)
    expected = [[id_, after, before] for id_, before, after in reversed(known)] if kind == "undo" else known
    return "" if changes == expected else "it is not what was done"


def _apply(notes: dict[int, Note], changes: Sequence[Sequence[Any]], locked: set[int]) -> str:
    """Apply changes to notes; return why they are impossible, else an empty text."""
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


def count_log(log: Sequence[Sequence[Any]]) -> EditCounts:
    """Count the events of a log."""
    kinds = [event[1] for event in log]
    time_ms = log[-1][0]
    keys = [event[2] for event in log if event[1] == "key"]
    clicks = [event[2] for event in log if event[1] == "click"]
    idle = sum(event[2] for event in log if event[1] == "idle")
    return EditCounts(
        time_ms=time_ms,
        active_ms=max(0, time_ms - _between(log, "hide", {"show"}) - idle),
        playback_ms=_between(log, "play", {"stop", *_ENDS}),
        key_presses=len(keys),
        mouse_clicks=len(clicks),
        edit_key_presses=keys.count("edit"),
        edit_clicks=clicks.count("edit"),
        n_edits=kinds.count("edit"),
        n_undone=kinds.count("undo"),
        n_redone=kinds.count("redo"),
        hit_limit="limit" in kinds,
        n_midi=kinds.count("midi"),
    )


def _between(log: Sequence[Sequence[Any]], start: str, ends: set[str]) -> int:
    """Return the milliseconds from each start to its end; one without an end ends with the log."""
    total, begun = 0, None
    for at, kind, *_ in log:
        if kind == start and begun is None:
            begun = at
        elif kind in ends and begun is not None:
            total, begun = total + at - begun, None
    return total + (0 if begun is None else log[-1][0] - begun)


def check_counts(log: Sequence[Sequence[Any]], page_counts: Mapping[str, Any]) -> EditCounts:
    """Return the counts of a log; raises `TamperedLogError` where the page counted something else."""
    counts = count_log(log)
    for name, value in counts._asdict().items():
        if page_counts.get(name, 0 if name == "n_midi" else None) != value:
            raise TamperedLogError(f"the page counted {name} {page_counts.get(name)!r}, its log has {value!r}")
    return counts
