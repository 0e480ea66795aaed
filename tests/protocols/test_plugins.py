"""Plug-ins of other packages: an entry point, or ``package.module:Name``; what fails in them is named."""

from __future__ import annotations

import importlib.metadata
from pathlib import Path
from types import SimpleNamespace

import pytest

from music_evals import protocols
from music_evals.benchmark.tasks.edits.work import EditWork, make_editor
from music_evals.editing.weightless import Effects
from music_evals.errors import InvalidInputError, ModelUnavailableError, UnknownNameError
from music_evals.protocols import editor_names, load_editor


class Half:
    """Not all that an editing system is."""

    info = None


@pytest.fixture
def theirs(monkeypatch: pytest.MonkeyPatch) -> None:
    points = {"music_evals.editing": [SimpleNamespace(name="theirs", value=f"{Effects.__module__}:Effects")]}
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda *, group: points.get(group, []))


def test_an_editing_system_comes_by_its_import_path() -> None:
    assert load_editor(f"{Effects.__module__}:Effects") is Effects
    assert load_editor("effects") is Effects


@pytest.mark.usefixtures("theirs")
def test_an_editing_system_comes_by_an_entry_point() -> None:
    assert load_editor("theirs") is Effects
    assert list(editor_names())[-1] == "theirs"
    with pytest.raises(UnknownNameError):
        load_editor("their")
    assert EditWork("theirs", {"wet": 0.2}, {}).editor.info.parameters["wet"] == 0.2


def test_ours_cannot_be_replaced_by_an_entry_point(monkeypatch: pytest.MonkeyPatch) -> None:
    points = [SimpleNamespace(name="effects", value=f"{__name__}:Half")]
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda *, group: points)  # noqa: ARG005
    assert load_editor("effects") is Effects


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("no_such_package.module:System", "No module named 'no_such_package'"),
        ("music_evals.editing.weightless:Nothing", "Nothing"),
        ("broken_package:System", "SyntaxError"),
    ],
)
def test_what_cannot_be_imported_is_named(
    name: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broken_package.py").write_text("def broken(:\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ModelUnavailableError, match=words) as caught:
        load_editor(name)
    assert str(caught.value).startswith(f"editing system {name!r} cannot be imported")


def test_other_registries_take_no_import_path() -> None:
    with pytest.raises(UnknownNameError):
        protocols.load_plugin(protocols.STYLE_TRANSFERS, f"{__name__}:Half", "model type")


def test_what_is_no_editing_system_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="network_calls"):
        make_editor(f"{__name__}:Half", {}, {})
