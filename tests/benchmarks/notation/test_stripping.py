"""The copies of tunes that independent readers get: expected texts follow ABC 2.1, section 4.8."""

from __future__ import annotations

import pytest
from benchmarks.notation.stripping import stripped, with_start_signs

HEAD = "X:1\nM:4/4\nL:1/4\nK:C\n"


def test_what_performs_is_left_out() -> None:
    tune = 'X:1\nT:t\nR:hornpipe\nM:4/4\nL:1/4\nK:C\n"Am"C {d}~D !trill!E .F|\nw:la\n%%MIDI program 4\nGABc|]\n'
    copy = stripped(tune, played=True)
    assert copy.startswith("X:1\nM:4/4\nL:1/4\nK:C\n")
    assert "".join(copy.split("K:C")[1].split()) == "CDEF|GABc|]"


def test_written_order_has_no_repeat_signs() -> None:
    copy = stripped(HEAD + "|:C4|1 D4:|2 E4|]\n", played=False)
    assert ":" not in copy.split("K:C")[1]
    assert "".join(letter for letter in copy.split("K:C")[1] if letter in "CDE") == "CDE"


@pytest.mark.parametrize(
    ("music", "signed"),
    [
        ("C|D:|E|F:|", "|:C|D::E|F:|"),
        ("C||D:|", "C|:D:|"),
        ("|:C:|D||E:|", "|:C:|D|:E:|"),
        ("|:C|1D:|2E|]F:|", "|:C|1D:|2E|:F:|"),
        ("|:C||D:|", "|:C||D:|"),
    ],
)
def test_start_signs_stand_where_the_standard_restarts(music: str, signed: str) -> None:
    copy = with_start_signs(stripped(HEAD + music + "\n", played=True))
    assert "".join(copy.split("K:C")[1].split()) == signed
