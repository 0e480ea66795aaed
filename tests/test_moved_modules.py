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
        ("benchmark.inpainting.task", "benchmark.tasks.inpainting.task"),
        ("benchmark.preparation.steps", "preparation.steps"),
        ("benchmark.inpainting.listening", "studies.listening.inpainting"),
    ],
)
def test_the_old_name_is_the_new_module(old: str, new: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, f"music_evals.{old}", raising=False)
    with pytest.warns(DeprecationWarning, match="is called music_evals") as warned:  # of a folder that moved, too
        module = importlib.import_module(f"music_evals.{old}")
    assert any(str(warning.message).startswith(f"music_evals.{old} is called music_evals.{new}") for warning in warned)
    assert module is importlib.import_module(f"music_evals.{new}")


def test_other_modules_are_missing_as_ever() -> None:
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("music_evals.symbolic.nothing")


def test_names_of_a_module_that_is_a_folder_now() -> None:
    from music_evals.studies import listening
    from music_evals.studies.listening.settings import ListeningSettings

    with pytest.warns(DeprecationWarning, match=r"listening\.ListeningSettings is called"):
        assert listening.ListeningSettings is ListeningSettings
    with pytest.raises(AttributeError):
        listening.nothing  # noqa: B018
