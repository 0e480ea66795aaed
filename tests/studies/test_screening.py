"""Post-screening of MUSHRA, on cases that can be counted by hand."""

import math

import pytest

from music_evals.errors import InvalidInputError, NoDataError, PairCountError
from music_evals.studies.screening import MushraRating, screen_mushra


def answers(listener, references, anchors):
    rows = []
    for number, (reference, anchor) in enumerate(zip(references, anchors, strict=True)):
        rows.append(MushraRating(listener, f"item {number}", "reference", reference))
        rows.append(MushraRating(listener, f"item {number}", "anchor", anchor))
    return rows


def test_fifteen_per_cent_of_twenty_items_is_three():
    # 3 of 20 = 0.15 is not more than 15 per cent, 4 of 20 is
    kept = answers("a", [89] * 3 + [90] * 17, [91] * 3 + [90] * 17)
    low = answers("b", [89] * 4 + [100] * 16, [20] * 20)
    high = answers("c", [100] * 20, [91] * 4 + [20] * 16)
    said = screen_mushra(high + low + kept)
    assert said == (("a", 0.15, 0.15, True), ("b", 0.2, 0.0, False), ("c", 0.0, 0.2, False))


def test_the_limits_are_options():
    rows = answers("a", [80, 100], [20, 20])
    assert not screen_mushra(rows)[0].is_kept
    assert screen_mushra(rows, score_limit=80)[0].is_kept
    assert screen_mushra(rows, share_limit=0.5)[0].is_kept


@pytest.mark.parametrize("score", [-1, 101, math.nan])
def test_scores_out_of_range_name_their_row(score):
    with pytest.raises(InvalidInputError, match="row 2"):
        screen_mushra(answers("a", [100], [score]))


def test_what_cannot_be_screened():
    with pytest.raises(NoDataError):
        screen_mushra([])
    with pytest.raises(InvalidInputError, match="anchor"):
        screen_mushra(answers("a", [100], [20])[:1])
    with pytest.raises(PairCountError, match="twice"):
        screen_mushra(answers("a", [100], [20]) * 2)
