from __future__ import annotations

from pathlib import Path

import pytest

import music_evals
from music_evals import windows
from music_evals.errors import UnknownNameError


@pytest.fixture
def fresh_home() -> object:
    """What the package came with is looked up anew."""
    windows._home.cache_clear()
    yield
    windows._home.cache_clear()


def test_a_typing_error_in_a_path_is_not_asked_of_the_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "models" / "anticipation_rnn").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    assert windows.find_window("anticipation_rnn", "models", "model") == ("models/anticipation_rnn", True)
    assert windows.find_window("somebody/some_model", "models", "model") == ("somebody/some_model", False)
    with pytest.raises(UnknownNameError, match="did you mean models/anticipation_rnn"):
        windows.find_window("models/anticipation_rn", "models", "model")
    for name in ("./nothing", "/nothing/here", "a/b/c", "nothing"):
        with pytest.raises(UnknownNameError):
            windows.find_window(name, "models", "model")


def test_names_are_found_from_any_folder_of_a_clones_user(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A path first, then the windows here, then those of the clone in use; a Hub id last."""
    monkeypatch.chdir(tmp_path)
    here = str(root / "datasets_scripts" / "jsb_chorales"), True
    assert windows.find_window("jsb_chorales", "datasets_scripts", "dataset") == here
    assert windows.find_window("datasets_scripts/jsb_chorales", "datasets_scripts", "dataset") == here
    there = ("somebody/jsb_chorales", False)
    assert windows.find_window("somebody/jsb_chorales", "datasets_scripts", "dataset") == there
    with pytest.raises(UnknownNameError, match="did you mean anticipation_rnn"):
        windows.find_window("models/anticipation_rn", "models", "model")
    (tmp_path / "datasets_scripts" / "jsb_chorales").mkdir(parents=True)
    assert windows.find_window("jsb_chorales", "datasets_scripts", "dataset")[0] == "datasets_scripts/jsb_chorales"
    (tmp_path / "jsb_chorales").mkdir()
    assert windows.find_window("jsb_chorales", "datasets_scripts", "dataset")[0] == "jsb_chorales"


def test_an_organisation_stands_behind_names_that_are_nowhere_here(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MUSIC_EVALS_ORG", "my-org")
    assert windows.find_window("jsb_chorales", "datasets_scripts", "dataset")[0] == str(
        root / "datasets_scripts/jsb_chorales"
    )
    assert windows.find_window("our_songs", "datasets_scripts", "dataset") == ("my-org/our_songs", False)
    assert windows.window("our_songs") == "my-org/our_songs"
    for name in ("./our_songs", "models/our_songs", "a/b/c", ".hidden"):
        with pytest.raises(UnknownNameError):
            windows.find_window(name, "models", "model")


def test_a_metric_dataset_or_model_is_found_by_its_name_alone(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for house in ("metrics", "datasets_scripts", "models"):
        for name, folder in windows.folders(house).items():
            assert music_evals.window(name) == str(folder) == str(root / house / name), "names are unique"
    assert music_evals.window("models/music_tagger") == str(root / "models/music_tagger")
    with pytest.raises(UnknownNameError, match="did you mean note_f1"):
        music_evals.window("note_f")


def test_only_windows_and_examples_of_a_clone_are_found(root: Path) -> None:
    assert windows.shipped("models/anticipation_rnn") == root / "models" / "anticipation_rnn"
    assert windows.shipped("examples") == root / "examples"
    for path in ("src/music_evals", "models", "models/../src", "models/none", "/models/anticipation_rnn", "somebody/x"):
        assert windows.shipped(path) is None
    assert not windows.is_installed(root / "models" / "anticipation_rnn")


@pytest.mark.usefixtures("fresh_home")
def test_an_installed_package_brings_its_windows_along(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the wheel, whatever lies around it."""
    package = tmp_path / "site-packages" / "music_evals"
    model = package / "_windows" / "models" / "own_model"
    model.mkdir(parents=True)
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'music_evals'\n")
    monkeypatch.setattr(windows, "__file__", str(package / "windows.py"))
    monkeypatch.chdir(tmp_path)
    assert windows.find_window("own_model", "models", "model") == (str(model), True)
    assert windows.find_window("models/own_model", "models", "model") == (str(model), True)
    assert windows.folders("models") == {"own_model": model}
    assert windows.is_installed(model)


@pytest.mark.usefixtures("fresh_home")
@pytest.mark.parametrize("project", [None, "[project]\nname = 'other'\n", "[project\n", "[tool.x]\n"])
def test_a_package_that_is_not_in_a_clone_has_none(
    project: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder above an installation is somebody else's, and its windows are not ours."""
    (tmp_path / "models" / "anticipation_rnn").mkdir(parents=True)
    if project is not None:
        (tmp_path / "pyproject.toml").write_text(project)
    monkeypatch.setattr(windows, "__file__", str(tmp_path / "lib" / "music_evals" / "windows.py"))
    assert windows._home() is None
    assert windows.shipped("models/anticipation_rnn") is None
