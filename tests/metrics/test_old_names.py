"""Names that were changed keep working for one release, with a warning."""

from __future__ import annotations

import importlib

import pytest

from music_evals.metrics.lyric_edits import Amounts, Edits
from music_evals.metrics.lyric_report import LineReport
from music_evals.symbolic.filters import apply_filters
from music_evals.symbolic.frame import FileFacts


@pytest.mark.parametrize(
    ("module", "old", "new"),
    [
        ("metrics.catalogue", "COMPANIONS", "AUXILIARY"),
        ("metrics.catalogue", "SHOWN_COMPANIONS", "SHOWN_AUXILIARY"),
        ("pipelines.preservation", "COMPANIONS", "AUXILIARY"),
        ("pipelines.style_transfer.fidelity", "MELODY_COMPANIONS", "MELODY_AUXILIARY"),
    ],
)
def test_names_of_modules(module: str, old: str, new: str) -> None:
    loaded = importlib.import_module(f"music_evals.{module}")
    with pytest.warns(DeprecationWarning, match=f"{old} is called {new} now"):
        assert getattr(loaded, old) is getattr(loaded, new)


def test_fields() -> None:
    none = Amounts(0, 0, 0, 0)
    edits = Edits(Amounts(1, 2, 3, 4), none, (), ())
    line = LineReport("matched", "cc", "cR", None, 2, 2, 0, 0.5, rhyme_expected=False, rhyme_found=True)
    report = apply_filters([FileFacts("a.mid", n_instruments=1, n_measures=1, hash="1")], [])
    for value, old, new in ((edits, "asked", "expected"), (line, "found", "actual"), (report, "kept", "passed")):
        with pytest.warns(DeprecationWarning, match=f"{old} is called {new} now"):
            assert getattr(value, old) == getattr(value, new)
