"""Logs of the piano roll: what cannot have happened is refused, and says which event."""

from __future__ import annotations

from typing import Any

import pytest

from music_evals.errors import TamperedLogError
from music_evals.studies.edit_logs import check_counts, check_log, count_log, replay_log

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
    [80_000, "key", "modifier"],
    [80_000, "redo", [MOVED]],
    [81_000, "submit"],
]


def with_event(place: int, *event: Any) -> list[list[Any]]:
    return [*LOG[:place], list(event), *LOG[place:]]


def test_a_log_is_played_again_and_counted() -> None:
    assert replay_log(NOTES, check_log(LOG)) == {0: (0, 120, 60, 80, 0), 1: (180, 120, 64, 80, 1)}
    counts = count_log(LOG)
    assert counts._asdict() == {
        "time_ms": 81_000, "active_ms": 81_000 - 4000 - 71_000, "playback_ms": 2000, "key_presses": 3,
        "mouse_clicks": 1, "edit_key_presses": 1, "edit_clicks": 1, "n_edits": 1, "n_undone": 1, "n_redone": 1,
        "hit_limit": False,
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
    ],
)
def test_what_no_page_writes_is_refused(log: Any, said: str) -> None:
    with pytest.raises(TamperedLogError, match=said):
        check_log(log)


@pytest.mark.parametrize(
    ("place", "event", "said"),
    [
        (2, (1200, "edit", "move", [[1, [0, 120, 64, 80, 1], [5, 120, 64, 80, 1]]]), "event 2, edit: note 1 was not"),
        (2, (1200, "edit", "move", [[7, None, [0, 120, 64, 80, 1]], [7, None, [0, 120, 64, 80, 1]]]), "note 7 was not"),
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
    to_another = [[0, "load"], [5, "edit", "move", [[1, NOTES[1], [120, 120, 64, 80, 0]]]], [6, "submit"]]
    with pytest.raises(TamperedLogError, match="locked"):
        replay_log(NOTES, check_log(to_another), locked=[0])


def test_a_page_that_counted_otherwise_is_refused() -> None:
    with pytest.raises(TamperedLogError, match="key_presses 2, its log has 3"):
        check_counts(LOG, count_log(LOG)._asdict() | {"key_presses": 2})
    with pytest.raises(TamperedLogError, match="time_ms None"):
        check_counts(LOG, {})
