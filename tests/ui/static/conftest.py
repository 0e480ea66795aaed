"""The scripts of pages in QuickJS: their pure functions run without a browser."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from music_evals.benchmark.formats import static
from music_evals.caimap.web.rendering import STATIC
from music_evals.ui.assets import script

Call = Callable[..., Any]


@pytest.fixture
def call() -> Callable[[str], Call]:
    """`call("pianoRoll")("place", 33, 7, 24)` calls a function of a script with JSON values and gives its value."""
    quickjs = pytest.importorskip("quickjs")
    context = quickjs.Context()
    names = ("kept", "kept_notes", "rolls", "piano_roll", "roll_editor", "ab_player", "listening_test")
    context.eval(script(*names) + static("pairs.js"))
    for name in ("waveform.js", "rows.js"):
        context.eval((STATIC / name).read_text(encoding="utf-8"))

    def of(namespace: str) -> Call:
        def run(name: str, *values: Any) -> Any:
            given = ", ".join(map(json.dumps, values))
            text = context.eval(f"JSON.stringify(musicEvals.{namespace}.{name}({given}))")
            return None if text is None else json.loads(text)

        return run

    return of
