"""A score on its range."""

from __future__ import annotations

import math
import re

import pytest

from music_evals.ui.widgets.bars import Mark, Range, range_bar

UNIT = Range(0, 1, "higher")


def places(shown: str, what: str) -> list[float]:
    return [float(place) for place in re.findall(rf'class="me-bar-{what}"[^>]*left:([\d.]+)%', shown)]


def test_a_value_stands_where_it_belongs() -> None:
    marks = [Mark("identical pair", 1.0), Mark("unrelated pairs", 0.25), Mark("unknown", math.nan)]
    shown = range_bar("beat_f_measure", 0.5, UNIT, marks)
    assert places(shown, "point") == [50]
    assert places(shown, "mark") == [100, 25]
    assert "<li>1 identical pair: 1.000</li><li>2 unrelated pairs: 0.250</li>" in shown
    assert 'aria-label="beat_f_measure: 0.500 on a scale of 0 to 1, higher is better →"' in shown


@pytest.mark.parametrize(
    ("span", "value", "place"),
    [
        (Range(-1, 1, "higher"), 0.0, 50),
        (Range(0, math.log(2), "lower"), math.log(2), 100),
        (Range(0, math.inf, "lower"), 8.0, 80),  # drawn to a quarter beyond it
        (Range(-math.inf, math.inf, "zero"), 4.0, 90),  # -5 to 5
        (Range(0, math.inf, "lower"), 0.0, 0),
        (UNIT, 1.5, 100),
        (Range(0, 1, "none"), math.inf, 100),
    ],
)
def test_ends(span: Range, value: float, place: float) -> None:
    assert places(range_bar("x", value, span), "point") == [place]


def test_undefined_has_no_pointer() -> None:
    shown = range_bar("x", math.nan, Range(0, math.inf, "lower"), [Mark("all equal", 4.0)])
    assert not places(shown, "point")
    assert places(shown, "mark") == [80]
    assert ">undefined<" in shown
    assert "∞" in shown


def test_everything_is_escaped() -> None:
    shown = range_bar('<x>"', 0.5, UNIT, [Mark("<b>", 0.1)], title="<i>")
    assert not re.search(r"<(x|b|i)>", shown)
    assert 'data-score="&lt;x&gt;&quot;"' in shown
