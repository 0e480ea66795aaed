"""What the player of the annotation platform works out."""

from __future__ import annotations

from typing import Any

import pytest


def test_peaks_become_heights(call: Any) -> None:
    assert call("waveform")("heights", [0, 51, 255]) == [0, 0.2, 1]


@pytest.mark.parametrize(
    ("x", "left", "width", "second"),
    [
        (100, 100, 400, 0),
        (200, 100, 400, 50),
        (500, 100, 400, 200),
        (90, 100, 400, 0),
        (501, 100, 400, 200),
        (100, 100, 0, 0),
    ],
)
def test_a_place_of_the_waveform_is_a_second_of_the_song(
    call: Any, x: float, left: float, width: float, second: float
) -> None:
    assert call("waveform")("secondAt", x, left, width, 200) == second


@pytest.mark.parametrize(
    ("seconds", "shown"), [(0, "0:00"), (9.99, "0:09"), (65.9, "1:05"), (600, "10:00"), (3725, "62:05"), (-1, "0:00")]
)
def test_clock(call: Any, seconds: float, shown: str) -> None:
    assert call("waveform")("clock", seconds) == shown


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("", "钢琴、"),
        ("钢", "钢琴、"),
        ("温暖、钢", "温暖、钢琴、"),
        ("温暖, 明亮，钢", "温暖、明亮、钢琴、"),
        ("温暖、", "温暖、钢琴、"),
    ],
)
def test_a_term_takes_the_place_of_the_tag_that_is_being_written(call: Any, text: str, field: str) -> None:
    assert call("waveform")("withTerm", text, "钢琴") == field
