"""Time, loops and starts of the player that compares two recordings."""

from __future__ import annotations

from typing import Any

import pytest

from music_evals.ui.widgets.timeline_view import clock

LOOP = {"loop": True, "from": 2.0, "to": 5.0, "length": 10.0}
NO_LOOP = {**LOOP, "loop": False}


@pytest.mark.parametrize("sec", [0.0, 0.04, 0.06, 59.94, 59.96, 83.46, 600.0, 3599.97])
def test_the_clock_is_that_of_python(call: Any, sec: float) -> None:
    assert call("abPlayer")("clock", sec) == clock(sec)


@pytest.mark.parametrize(
    ("state", "clock_sec", "expected"),
    [
        ({**NO_LOOP, "playing": False, "position": 3.0, "startedAt": 0.0}, 100.0, 3.0),  # it stands
        ({**NO_LOOP, "playing": True, "position": 3.0, "startedAt": 50.0}, 51.5, 4.5),
        ({**NO_LOOP, "playing": True, "position": 3.0, "startedAt": 50.0}, 49.9, 3.0),  # it has not begun yet
        ({**NO_LOOP, "playing": True, "position": 3.0, "startedAt": 50.0}, 90.0, 10.0),  # not beyond the end
        ({**LOOP, "playing": True, "position": 3.0, "startedAt": 50.0}, 52.0, 5.0),
        ({**LOOP, "playing": True, "position": 3.0, "startedAt": 50.0}, 53.0, 3.0),  # 6 is 1 beyond: 2 + (6 - 2) mod 3
        ({**LOOP, "playing": True, "position": 3.0, "startedAt": 50.0}, 56.5, 3.5),  # two rounds and a half
        ({**LOOP, "playing": True, "position": 0.0, "startedAt": 50.0}, 51.0, 1.0),  # on the way into the loop
    ],
)
def test_where_it_stands(call: Any, state: dict[str, Any], clock_sec: float, expected: float) -> None:
    assert call("abPlayer")("positionAt", state, clock_sec) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("at", "state", "expected"),
    [(4.0, NO_LOOP, 4.0), (9.995, NO_LOOP, 0.0), (9.995, LOOP, 2.0), (7.0, LOOP, 2.0), (7.0, NO_LOOP, 7.0)],
)
def test_where_it_starts(call: Any, at: float, state: dict[str, Any], expected: float) -> None:
    assert call("abPlayer")("startFor", at, state) == expected


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"from": 3.0, "loop": True}, {"loop": True, "from": 3.0, "to": 5.0}),
        ({"from": 6.0, "loop": True}, {"loop": True, "from": 6.0, "to": 10.0}),  # the end gives way
        ({"to": 1.0, "loop": True}, {"loop": True, "from": 0, "to": 1.0}),  # the start gives way
        ({"from": 9.95, "loop": True}, {"loop": True, "from": 0, "to": 10.0}),  # shorter than 0.1 s: all of it
        ({"loop": False}, {"loop": False, "from": 2.0, "to": 5.0}),
    ],
)
def test_a_loop_is_never_too_short(call: Any, change: dict[str, Any], expected: dict[str, Any]) -> None:
    assert call("abPlayer")("looped", LOOP, change) == expected
