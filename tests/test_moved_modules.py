"""Modules that were moved are imported by their old names for one release, with a warning."""

from __future__ import annotations

import importlib
import sys

import pytest


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("editing.precision", "editing.conversion"),
        ("editing.samples", "editing.audioldm2"),
        ("editing.seeds", "editing.system"),
        ("symbolic.remi", "symbolic.encodings.remi"),
        ("symbolic.abc_reading", "symbolic.reading.abc"),
        ("symbolic.note_values", "symbolic.rewriting.note_values"),
        ("symbolic.triads", "symbolic.melody"),
        ("pipelines.gap_filling", "pipelines.gaps.filling"),
        ("pipelines.style_fidelity", "pipelines.style_transfer.fidelity"),
        ("pipelines.tag_extraction", "pipelines.tags"),
        ("studies.slots", "studies.storage"),
        ("studies.edit_logs", "studies.editing.logs"),
        ("studies.listening_results", "studies.listening.results"),
        ("studies.tables", "pipelines.study_tables"),
    ],
)
def test_the_old_name_is_the_new_module(old: str, new: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, f"music_evals.{old}", raising=False)
    with pytest.warns(DeprecationWarning, match=f"{old} is called music_evals.{new} now"):
        module = importlib.import_module(f"music_evals.{old}")
    assert module is importlib.import_module(f"music_evals.{new}")


def test_other_modules_are_missing_as_ever() -> None:
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("music_evals.symbolic.nothing")
