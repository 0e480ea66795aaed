"""Orders, ticks and spans of the table and the picture of pairs by metric."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st


@pytest.mark.parametrize(
    ("values", "descending", "expected"),
    [
        ([3, 1, 2], False, [1, 2, 0]),
        ([3, 1, 2], True, [0, 2, 1]),
        ([None, 1, None, -2.5], False, [3, 1, 0, 2]),  # what is undefined comes last,
        ([None, 1, None, -2.5], True, [1, 3, 0, 2]),  # whatever the direction
        ([1, 1, 0], True, [0, 1, 2]),  # equals keep their order
        (["piece 10", "piece 9", "b"], False, [2, 1, 0]),  # numbers in names count as numbers
        ([], False, []),
    ],
)
def test_orders(call: Any, values: list[Any], descending: bool, expected: list[int]) -> None:
    assert call("pairList")("order", values, descending) == expected


def test_infinities_are_sorted(call: Any) -> None:
    run = call("pairList")
    assert run("order", [1e308, -1e308, 0], False) == [1, 2, 0]


@pytest.mark.parametrize(
    ("low", "high", "n", "expected"),
    [
        (0, 1, 5, [0, 0.2, 0.4, 0.6, 0.8, 1]),
        (-0.05, 1.05, 5, [0, 0.5, 1]),
        (0.93, 0.97, 4, [0.93, 0.94, 0.95, 0.96, 0.97]),
        (-42, 13, 5, [-40, -20, 0]),
    ],
)
def test_ticks(call: Any, low: float, high: float, n: int, expected: list[float]) -> None:
    assert call("pairList")("ticks", low, high, n) == pytest.approx(expected)


@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6), st.integers(3, 10))
def test_ticks_are_within_and_not_too_many(low: float, width: float, n: int) -> None:
    quickjs = pytest.importorskip("quickjs")
    from music_evals.benchmark.formats import static

    context = quickjs.Context()
    context.eval(static("pairs.js"))
    found = list(map(float, context.eval(f"musicEvals.pairList.ticks({low}, {low + width}, {n}).join()").split(",")))
    assert 1 <= len(found) <= n + 1
    room = 1e-6 * (abs(low) + width)
    assert all(low - room <= tick <= low + width + room for tick in found)


def test_spans_hold_their_values(call: Any) -> None:
    run = call("pairList")
    assert run("span", [0, 1]) == pytest.approx([-0.05, 1.05])
    assert run("span", [0.3, 0.3]) == pytest.approx([-0.2, 0.8])
    assert run("span", [100]) == pytest.approx([90, 110])


def test_the_nearest_point(call: Any) -> None:
    run = call("pairList")
    points = [{"x": 0, "y": 0}, {"x": 10, "y": 0}, {"x": 10, "y": 8}]
    assert run("nearest", points, 9, 1, 5) == 1
    assert run("nearest", points, 100, 100, 5) == -1
    assert run("nearest", [], 0, 0, 5) == -1
