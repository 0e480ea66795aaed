"""Logs of the piano roll: what cannot have happened is refused, and says which event."""

from __future__ import annotations

from typing import Any

import pytest

from music_evals.errors import TamperedLogError
from music_evals.studies.editing.logs import check_counts, check_log, count_log, replay_log

NOTES = [[0, 120, 60, 80, 0], [120, 120, 64, 80, 1]]
MOVED = [1, [120, 120, 64, 80, 1], [180, 120, 64, 80, 1]]
BACK = [1, [180, 120, 64, 80, 1], [120, 120, 64, 80, 1]]
LOG: list[list[Any]] = [
    [0, "load"],
    [1000, "click", "edit", "mouse"],
    [1500, "edit", "move", [MOVED]],
    [2000, "key", "edit"],
    [2000, "undo", [BACK]],
    [2500, "key", "transport"],
    [2500, "play", 0],
    [4500, "stop", 240],
    [5000, "hide"],
    [9000, "show"],
    [80_000, "idle", 71_000],
    [80_000, "key", "edit"],
    [80_000, "redo", [MOVED]],
    [80_900, "click", "other", "mouse"],
    [81_000, "submit"],
]


def with_event(place: int, *event: Any) -> list[list[Any]]:
    return [*LOG[:place], list(event), *LOG[place:]]


def test_a_log_is_played_again_and_counted() -> None:
    assert replay_log(NOTES, check_log(LOG)) == {0: (0, 120, 60, 80, 0), 1: (180, 120, 64, 80, 1)}
    counts = count_log(LOG)
    assert counts._asdict() == {
        "time_ms": 81_000, "active_ms": 81_000 - 4000 - 71_000, "playback_ms": 2000, "key_presses": 3,
        "mouse_clicks": 2, "edit_key_presses": 2, "edit_clicks": 1, "n_edits": 1, "n_undone": 1, "n_redone": 1,
        "hit_limit": False, "n_midi": 0,
    }  # fmt: skip
    assert check_counts(LOG, counts._asdict()) == counts


@pytest.mark.parametrize(
    ("log", "said"),
    [
        ([], "a list of 2 events"),
        ("load", "a list of 2 events"),
        (LOG[1:], "begins with load"),
        (LOG[:-1], "one submit"),
        (with_event(3, 1600, "load"), "one submit, at its end, and one load"),
        (with_event(3, 1000, "key", "edit"), "event 3: 1000 ms come after 1500 ms"),
        (with_event(1, "5", "key", "edit"), "event 1: expected"),
        (with_event(1, 5, "key", "KeyA"), "event 1: key has one of"),
        (with_event(1, 5, "click", "edit", "keyboard"), "event 1: click has"),
        (with_event(1, 5, "steal"), "event 1: no page writes 'steal'"),
        (with_event(1, 5, "idle", 5), "event 1: idle has"),
        (with_event(1, 5, "idle", 70_000), "not before the beginning"),
        (with_event(1, 5, "play", -1), "event 1: play has"),
        (with_event(1, 5, "play", True), "event 1: play has"),
        (with_event(1, 5, "edit", "move", []), "event 1: edit has"),
        (with_event(1, 5, "edit", "paint", [MOVED]), "event 1: edit has"),
        (with_event(1, 5, "edit", "move", [[1, None, [0, 0, 60, 80, 1]]]), "event 1: edit has"),
        (with_event(1, 5, "edit", "move", [[1, None, [0, 5, 128, 80, 1]]]), "event 1: edit has"),
        (with_event(1, 5, "edit", "move", [[1, None, None]]), "event 1: edit has"),
        (with_event(1, 5, "edit", ["move"], [MOVED]), "event 1: edit has"),
        (with_event(1, 5, "midi", "loud"), "event 1: midi has"),
        ([[0, "load"], [10**400, "submit"]], "event 1: no page"),
        (with_event(1, 5, "absent", 10**400), "event 1: absent has"),
        (with_event(1, 5, "edit", "add", [[7, None, [10**30, 5, 60, 80, 1]]]), "event 1: edit has"),
        (with_event(1, 5, "edit", "add", [[7, None, [0, 5, 60, 80, 10**30]]]), "event 1: edit has"),
        (with_event(1, 5, "midi"), "event 1: midi has"),
        *(
            (with_event(1, 5, "edit", *edit), "event 1: edit has")
            for edit in (
                ("move", [[1, NOTES[1], [120, 60, 64, 80, 1]]]),  # that is a resize
                ("move", [[0, NOTES[0], [60, 120, 60, 80, 0]], [*MOVED[:2], [200, 120, 64, 80, 1]]]),  # not as one
                ("add", [[7, None, NOTES[0]], [8, None, NOTES[1]]]),
                ("remove", [MOVED]),
                ("transpose", [MOVED]),
                ("resize", [[0, NOTES[0], None]]),
                ("duplicate", [MOVED]),
                ("quantise", [[1, NOTES[1], [120, 120, 65, 80, 1]]]),
            )
        ),
    ],
)
def test_what_no_page_writes_is_refused(log: Any, said: str) -> None:
    with pytest.raises(TamperedLogError, match=said):
        check_log(log)


@pytest.mark.parametrize(
    ("place", "event", "said"),
    [
        (2, (1200, "edit", "move", [[1, [0, 120, 64, 80, 1], [5, 120, 64, 80, 1]]]), "event 2, edit: note 1 was not"),
        (2, (1200, "edit", "duplicate", [[7, None, [0, 120, 64, 80, 1]]] * 2), "note 7 was not"),
        (2, (1200, "undo", [BACK]), "event 2, undo: nothing is left to undo"),
        (4, (2000, "redo", [MOVED]), "nothing is left to redo"),
        (4, (2000, "undo", [[1, MOVED[2], [60, 120, 64, 80, 1]]]), "not what was done"),
        (2, (1200, "limit"), "event 3, edit: it comes after the time limit"),
    ],
)
def test_what_cannot_have_happened_is_refused(place: int, event: tuple[Any, ...], said: str) -> None:
    with pytest.raises(TamperedLogError, match=said):
        replay_log(NOTES, check_log(with_event(place, *event)))


def test_a_locked_voice_stays_as_it_is() -> None:
    with pytest.raises(TamperedLogError, match="locked"):
        replay_log(NOTES, LOG, locked=[1])
    to_another = [[0, "load"], [5, "edit", "reset", [[1, NOTES[1], [120, 120, 64, 80, 0]]]], [6, "submit"]]
    with pytest.raises(TamperedLogError, match="locked"):
        replay_log(NOTES, check_log(to_another), locked=[0])


def test_a_page_that_counted_otherwise_is_refused() -> None:
    with pytest.raises(TamperedLogError, match="key_presses 2, its log has 3"):
        check_counts(LOG, count_log(LOG)._asdict() | {"key_presses": 2})
    with pytest.raises(TamperedLogError, match="time_ms None"):
        check_counts(LOG, {})


def worked(*events: Any) -> list[list[Any]]:
    """A log that was opened and ended by a click, with something in between."""
    return check_log([[0, "load"], *events, [90_000, "click", "other", "mouse"], [90_000, "submit"]])


def shifted(by: int, *ids: int) -> list[Any]:
    """Notes of the original that go `by` ticks to the right."""
    return [[id_, NOTES[id_], [NOTES[id_][0] + by, *NOTES[id_][1:]]] for id_ in ids]


UP = [[0, NOTES[0], [0, 120, 61, 80, 0]]]
UP_AGAIN = [[0, UP[0][2], [0, 120, 62, 80, 0]]]
KEY, CLICK = [10, "key", "edit"], [10, "click", "edit", "mouse"]


def test_the_forged_session_of_three_milliseconds_is_refused() -> None:
    log = check_log([[0, "load"], [1, "edit", "move", UP], [3, "submit"]])
    with pytest.raises(TamperedLogError, match="event 1, edit"):
        replay_log(NOTES, log)
    with pytest.raises(TamperedLogError, match="event 1, submit"):
        replay_log(NOTES, check_log([[0, "load"], [3, "submit"]]))


@pytest.mark.parametrize(
    ("events", "number"),
    [
        ([[20, "edit", "move", UP], [30, "key", "edit"]], 1),  # the key comes later
        (
            [CLICK, [20, "edit", "move", UP], [30, "edit", "move", UP_AGAIN]],
            3,
        ),  # a click does one thing, and is not held
        ([KEY, [20, "edit", "move", UP], [30, "edit", "transpose", UP_AGAIN]], 3),  # a held key goes on with the same
        ([KEY, [20, "edit", "move", UP], [30, "edit", "move", shifted(5, 1)]], 3),  # and with the same notes
        ([KEY, [20, "edit", "move", UP], [30, "undo", [[0, UP[0][2], NOTES[0]]]]], 3),
        ([[10, "key", "modifier"], [20, "edit", "move", UP]], 2),  # which would be called the key of an edit
        ([KEY, [20, "absent", 5000], [30, "edit", "move", UP]], 3),  # before the page was closed
        ([KEY, [20, "edit", "move", UP], [30, "click", "edit", "mouse"], [40, "edit", "reset", UP_AGAIN]], 4),
    ],
)
def test_a_change_that_no_hand_made_is_refused(events: list[list[Any]], number: int) -> None:
    with pytest.raises(TamperedLogError, match=f"event {number}, "):
        replay_log(NOTES, worked(*sorted(events, key=lambda event: event[0])))


@pytest.mark.parametrize(
    "events",
    [
        [KEY, [10, "edit", "move", UP], [510, "edit", "move", UP_AGAIN]],  # a key that is held
        [KEY, [10, "edit", "move", UP], [20, "click", "edit", "mouse"], [510, "edit", "move", UP_AGAIN]],  # and a click
        [[10, "click", "other", "mouse"], [20, "key", "edit"], [4000, "edit", "move", UP]],  # a slow drag
        [KEY, [10, "edit", "move", UP], [20, "click", "edit", "touch"], [30, "key", "edit"],
         [30, "undo", [[0, UP[0][2], NOTES[0]]]], [40, "edit", "resize", [[1, NOTES[1], [120, 60, 64, 80, 1]]]]],
        [[5, "select", 2], KEY, [10, "edit", "quantise", [*shifted(5, 0, 1)]]],
        [[5, "select", 2], KEY, [10, "edit", "move", shifted(5, 0, 1)], [20, "click", "edit", "pen"],
         [21, "edit", "reset", [[id_, after, before] for id_, before, after in shifted(5, 0, 1)]]],
        [[5, "midi", "edit"], [5, "edit", "move", UP]],
    ],
)  # fmt: skip
def test_what_hands_do_on_a_true_page_passes(events: list[list[Any]]) -> None:
    log = worked(*events)
    assert replay_log(NOTES, log)
    assert count_log(log).n_midi == sum(event[1] == "midi" for event in events)


def test_the_time_limit_ends_a_log_without_a_hand_and_pages_of_before_count_no_midi() -> None:
    log = check_log([[0, "load"], [5000, "limit"], [5000, "submit"]])
    assert replay_log(NOTES, log) == {0: tuple(NOTES[0]), 1: tuple(NOTES[1])}
    said = {name: value for name, value in count_log(log)._asdict().items() if name != "n_midi"}
    assert check_counts(log, said).n_midi == 0
