"""How the headings of a leaderboard sort its rows."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import music_evals

SCRIPT = Path(music_evals.__file__).parent / "ui" / "static" / "leaderboard.js"


@pytest.fixture
def evaluate() -> Callable[[str], Any]:
    """Run an expression in QuickJS after the script."""
    quickjs = pytest.importorskip("quickjs")
    context = quickjs.Context()
    context.eval(SCRIPT.read_text(encoding="utf-8"))
    return lambda expression: json.loads(context.eval(f"JSON.stringify({expression})"))


@pytest.mark.parametrize(
    ("texts", "column", "rising", "falling"),
    [
        (["0.5", "-2", "", "10"], 1, [1, 0, 3, 2], [3, 0, 1, 2]),  # as numbers, undefined last either way
        (["b", "A", "c", ""], 0, [3, 1, 0, 2], [2, 0, 1, 3]),  # names whatever their case
        (["1", "1", "0", "1"], 1, [2, 0, 1, 3], [0, 1, 3, 2]),  # equal ones keep their order
    ],
)
def test_order(evaluate: Any, texts: list[str], column: int, rising: list[int], falling: list[int]) -> None:
    keys = f"{json.dumps(texts)}.map(text => musicEvals.leaderboard.keyOf(text, {column}))"
    assert evaluate(f"musicEvals.leaderboard.order({keys}, false)") == rising
    assert evaluate(f"musicEvals.leaderboard.order({keys}, true)") == falling
