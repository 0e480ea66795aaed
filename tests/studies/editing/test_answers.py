"""Sessions that can have happened and are hard to believe: what is marked, and what honest work is not."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from music_evals.pipelines.study_tables import tell_marks
from music_evals.studies.answers import Participant
from music_evals.studies.editing.answers import copies, edit_marks, mark_editor
from music_evals.studies.editing.logs import check_log, count_log

NOTE = [0, 120, 60, 80, 0]
UP = [0, NOTE, [0, 120, 61, 80, 0]]
DOWN = [0, UP[2], NOTE]


def log_of(*events: Any, end: int) -> list[list[Any]]:
    return check_log([[0, "load"], *events, [end, "click", "other", "mouse"], [end, "submit"]])


def marks(*events: Any, end: int, is_changed: bool = True) -> list[str]:
    log = log_of(*events, end=end)
    return edit_marks(log, count_log(log), is_changed=is_changed)


def edit(at: int, change: list[Any]) -> list[list[Any]]:
    return [[at, "key", "edit"], [at, "edit", "move", [change]]]


def keys(times: Any) -> list[list[Any]]:
    return [[int(at), "key", "other"] for at in times]


PLAYED = [[1500, "play", 0], [6000, "stop", 480]]


def test_work_that_hands_do_is_not_marked() -> None:
    assert marks(*PLAYED, *edit(8000, UP), end=60_000) == []
    assert marks(*PLAYED, end=9000, is_changed=False) == []  # it was good as it was
    assert marks([75_000, "idle", 75_000], end=75_000, is_changed=False) == ["unheard"]  # and not too short
    # a key that is held, and repeats as fast as systems let it
    held = [[8000 + 16 * n, "edit", "move", [UP if n % 2 else DOWN]] for n in range(90)]
    assert marks([8000, "key", "edit"], *held, end=60_000) == []


@pytest.mark.parametrize(
    ("found", "names"),
    [
        (marks(*edit(1, UP), end=3), "too_short changed_unseen"),
        (marks([1, "hide"], [100_000, "show"], *edit(101_000, UP), end=101_500), "too_short"),
        (marks(*edit(300, UP), end=30_000), "changed_unseen"),
        (marks(*edit(3000, UP), *keys(range(9000, 9900, 30)), end=60_000), "faster_than_hands regular"),
        (marks([3000, "key", "edit"], *([3000 + n, "edit", "move", [UP if n % 2 else DOWN]] for n in range(300)),
               end=60_000), "faster_than_hands"),
        (marks(*PLAYED, *edit(8000, UP), *keys(range(9000, 40_000, 1000)), end=41_000), "regular"),
        (marks(*PLAYED, *edit(8000, UP), end=1_500_000), "left_open"),
        (marks(end=60_000, is_changed=False), "unheard"),
        (marks(*edit(8000, UP), *edit(9000, DOWN), *edit(10_000, UP), *edit(10_500, DOWN), end=60_000,
               is_changed=False), "nothing_kept"),
    ],
)  # fmt: skip
def test_what_is_hard_to_believe_is_marked(found: list[str], names: str) -> None:
    assert found == names.split()


def late(editor: Participant, seconds: dict[str, float]) -> set[str]:
    rows: dict[str, dict[str, Any]] = {name: {"time_s": sec, "marks": []} for name, sec in seconds.items()}
    mark_editor(editor, rows, [])
    assert all(set(row["marks"]) <= {"faster_than_time"} for row in rows.values())
    return {name for name, row in rows.items() if row["marks"]}


def test_pieces_that_take_longer_than_the_server_waited_are_late() -> None:
    editor = Participant("t", 0, {}, 1000.0, {"sample-1": 1400.0, "sample-2": 1500.0, "sample-3": 5000.0})
    assert late(editor, {"sample-1": 399, "sample-2": 90, "sample-3": 60}) == set()
    assert late(editor, {"sample-1": 399, "sample-2": 300, "sample-3": 60}) == {"sample-2"}
    assert late(editor, {"sample-1": 900, "sample-2": 50, "sample-3": 4000}) == {"sample-1", "sample-3"}
    # without a connection both came at once
    at_once = editor._replace(received_at={"sample-1": 2000.0, "sample-2": 2003.0})
    assert late(at_once, {"sample-1": 500, "sample-2": 480}) == set()
    assert late(at_once, {"sample-1": 900, "sample-2": 480}) == {"sample-2"}
    assert late(editor._replace(joined_at=None, received_at={}), {"sample-1": 9000}) == set()


def test_a_log_that_was_sent_twice_is_a_copy_but_for_the_first() -> None:
    rng = np.random.default_rng(3)
    times = np.cumsum(rng.lognormal(7, 1, 30))
    log, own = log_of(*keys(times), end=90_000), log_of(*keys(times[:-1]), end=99_000)
    others = log_of(*([at, "key", "edit"] for at in map(int, np.cumsum(rng.lognormal(7, 1, 30)))), end=99_000)
    logs = [log, log, own, others]
    assert copies(logs, [20.0, 10.0, 30.0, 5.0]) == {0}
    assert copies([log, others], [1.0, 2.0]) == set()
    assert copies([log, log], [math.inf, math.inf]) == {0, 1}  # nobody knows who was first
    at_the_same_times = [
        [at, what, *rest[:-1], "edit"] if what == "key" else [at, what, *rest] for at, what, *rest in log
    ]
    assert copies([log, at_the_same_times], [1.0, 2.0]) == {1}
    assert copies([log, [[2 * at, *rest] for at, *rest in log]], [1.0, 2.0]) == {1}
    short = log_of(*edit(8000, UP), end=60_000)
    assert copies([short, short], [1.0, 2.0]) == set()


def test_marks_are_told_by_editor() -> None:
    told = tell_marks(["ada", "bo", "ada"], ["regular unheard", "", "regular"])
    assert "2 of 3" in told[0]
    assert told[1:] == ["ada: regular 2, unheard 1"]
    assert tell_marks(["bo"], [""]) == tell_marks([], []) == []
