"""Claimed times are held against those of the server."""

import math

import pytest

from music_evals.studies.answers import is_possible, passed_sec


def test_seconds_that_passed_at_the_server():
    assert passed_sec(1000.0, 1090.5) == 90.5
    for start, end in ((None, 1000.0), (1000.0, None), (1000.0, 999.0)):
        assert math.isnan(passed_sec(start, end))


@pytest.mark.parametrize(
    ("claimed", "passed", "possible"),
    [(300, 300, True), (302, 300, True), (300, 3000, True), (300, 290, False), (300, 3, False), (300, math.nan, True)],
)
def test_more_than_passed_cannot_have_been_spent(claimed, passed, possible):
    assert is_possible(claimed, passed) is possible
