"""A score on its range."""

from __future__ import annotations

import math
import re

import pytest

from music_evals.errors import UnknownNameError
from music_evals.ui.widgets.bars import Bar, Mark, bar_of, bars_html


def places(shown: str, kind: str) -> list[float]:
    return [float(place) for place in re.findall(rf'class="{kind}" style="left:([\d.]+)%', shown)]


def test_a_value_stands_where_it_belongs() -> None:
    marks = {"best": Mark("identical pair", 1.0), "chance": Mark("unrelated pair", 0.25, about=True)}
    shown = bars_html([Bar("beat_f_measure", 0.5, 0, 1, "higher", **marks, title="Beat F")])
    assert [places(shown, kind) for kind in ("value", "best", "chance")] == [[50], [100], [25]]
    assert ">0 to 1; higher is better; identical pair 1; unrelated pair about 0.25<" in shown
    assert 'aria-label="Beat F: 0.500; 0 to 1; higher is better;' in shown
    assert re.findall(r'<i class="(\w+)"></i>([^<]+)', shown) == [
        ("value", "this score"), ("best", "identical pair"), ("chance", "unrelated pair"),
    ]  # fmt: skip


def test_a_marker_that_is_not_known_is_left_out() -> None:
    shown = bars_html([Bar("x", 0.5, 0, 1, "higher", chance=Mark("unknown", math.nan))])
    assert "unknown" not in shown
    assert not places(shown, "chance")


@pytest.mark.parametrize(
    ("low", "high", "direction", "value", "place"),
    [
        (-1, 1, "higher", 0.0, 50),
        (0, math.log(2), "lower", math.log(2), 100),
        (0, math.inf, "lower", 8.0, 80),  # drawn to a quarter beyond it
        (-math.inf, math.inf, "zero", 4.0, 90),  # -5 to 5
        (0, math.inf, "lower", 0.0, 0),
        (0, 1, "higher", 1.5, 100),
        (0, 1, "none", math.inf, 100),
    ],
)
def test_ends(low: float, high: float, direction: str, value: float, place: float) -> None:
    assert places(bars_html([Bar("x", value, low, high, direction)]), "value") == [place]


def test_what_is_missing_has_no_pointer_and_says_why() -> None:
    undefined = bar_of("inpainting_nll", math.nan, reason="only <one> item")
    failed = Bar("y", None, 0, 1, "higher", state="failed", reason="no package")
    shown = bars_html([undefined, failed])
    assert not places(shown, "value")
    assert places(shown, "chance") == [80]  # of a bar that ends a quarter beyond the only marker
    assert re.findall(r'class="none">([^<]+)', shown) == ["undefined", "not computed"]
    assert re.findall(r'data-state="(\w+)"', shown) == ["undefined", "failed"]
    assert "only &lt;one&gt; item" in shown
    assert "0 and up, drawn to 6.08; lower is better; all tokens equally likely 4.87" in shown
    assert (undefined.row["value"], undefined.row["high"]) == (None, None)


def test_the_mean_over_unrelated_pairs_is_no_marker_where_it_was_not_measured() -> None:
    known = bar_of("segment_ari", 0.5, modality="audio", variant="corrected")
    assert known.row["unrelated"] == 0.36
    for modality, variant in (("symbolic", "corrected"), ("audio", "paper"), ("", "")):
        assert bar_of("segment_ari", 0.5, modality=modality, variant=variant).row["unrelated"] is None


def test_scores_stand_below_their_facets() -> None:
    bars = [Bar(name, 0.5, 0, 1, "higher", facet=facet) for name, facet in (("a", "rhythm"), ("b", "melody"))]
    assert re.findall(r"<h3>(\w+)|data-score=\"(\w)", bars_html(bars)) == [
        ("Rhythm", ""), ("", "a"), ("Melody", ""), ("", "b"),
    ]  # fmt: skip
    assert "<h3>" not in bars_html(bars, headings=False)


def test_everything_is_escaped_and_every_score_is_known() -> None:
    shown = bars_html([Bar('<x>"', 0.5, 0, 1, "higher", Mark("<b>", 0.1), title="<i>", facet="<u>", reason="<s>")])
    assert not re.search(r"<(x|i|u|s)>", shown)
    assert shown.count("<b>") == 1  # the score itself
    assert 'data-score="&lt;x&gt;&#34;"' in shown
    with pytest.raises(UnknownNameError, match="no_such_score"):
        bar_of("no_such_score", 0.5)
