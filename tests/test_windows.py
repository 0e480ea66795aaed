from __future__ import annotations

from pathlib import Path

import pytest

from music_evals import windows
from music_evals.errors import UnknownNameError


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


def test_only_windows_of_a_clone_are_found(root: Path) -> None:
    assert windows.in_clone("models/anticipation_rnn") == root / "models" / "anticipation_rnn"
    for path in ("src/music_evals", "models", "models/../src", "models/none", "/models/anticipation_rnn", "somebody/x"):
        assert windows.in_clone(path) is None


@pytest.mark.parametrize("project", [None, "[project]\nname = 'other'\n", "[project\n", "[tool.x]\n"])
def test_a_package_that_is_not_in_a_clone_has_none(
    project: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder above an installation is somebody else's, and its windows are not ours."""
    (tmp_path / "models" / "anticipation_rnn").mkdir(parents=True)
    if project is not None:
        (tmp_path / "pyproject.toml").write_text(project)
    monkeypatch.setattr(windows, "__file__", str(tmp_path / "lib" / "music_evals" / "windows.py"))
    windows._clone.cache_clear()
    try:
        assert windows._clone() is None
        assert windows.in_clone("models/anticipation_rnn") is None
    finally:
        windows._clone.cache_clear()
