from __future__ import annotations

from pathlib import Path

import pytest

import music_evals
from music_evals import repositories
from music_evals.errors import UnknownNameError


@pytest.fixture
def fresh_home() -> object:
    """What the package came with is looked up anew."""
    repositories._home.cache_clear()
    yield
    repositories._home.cache_clear()


def test_a_typing_error_in_a_path_is_not_asked_of_the_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "models" / "anticipation_rnn").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    assert repositories.find_repository("anticipation_rnn", "models", "model") == ("models/anticipation_rnn", True)
    assert repositories.find_repository("somebody/some_model", "models", "model") == ("somebody/some_model", False)
    with pytest.raises(UnknownNameError, match="anticipation_rnn"):
        repositories.find_repository("models/anticipation_rn", "models", "model")
    for name in ("./nothing", "/nothing/here", "a/b/c", "nothing"):
        with pytest.raises(UnknownNameError):
            repositories.find_repository(name, "models", "model")


def test_names_are_found_from_any_folder_of_a_clones_user(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A path first, then the repository folders here, then those of the clone in use; a Hub id last."""
    monkeypatch.chdir(tmp_path)
    here = str(root / "datasets_scripts" / "jsb_chorales"), True
    assert repositories.find_repository("jsb_chorales", "datasets_scripts", "dataset") == here
    assert repositories.find_repository("datasets_scripts/jsb_chorales", "datasets_scripts", "dataset") == here
    there = ("somebody/jsb_chorales", False)
    assert repositories.find_repository("somebody/jsb_chorales", "datasets_scripts", "dataset") == there
    with pytest.raises(UnknownNameError, match="anticipation_rnn"):
        repositories.find_repository("models/anticipation_rn", "models", "model")
    (tmp_path / "datasets_scripts" / "jsb_chorales").mkdir(parents=True)
    assert (
        repositories.find_repository("jsb_chorales", "datasets_scripts", "dataset")[0]
        == "datasets_scripts/jsb_chorales"
    )
    (tmp_path / "jsb_chorales").mkdir()
    assert repositories.find_repository("jsb_chorales", "datasets_scripts", "dataset")[0] == "jsb_chorales"


def test_an_organisation_stands_behind_names_that_are_nowhere_here(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MUSIC_EVALS_ORG", "my-org")
    assert repositories.find_repository("jsb_chorales", "datasets_scripts", "dataset")[0] == str(
        root / "datasets_scripts/jsb_chorales"
    )
    assert repositories.find_repository("our_songs", "datasets_scripts", "dataset") == ("my-org/our_songs", False)
    assert repositories.repo_path("our_songs") == "my-org/our_songs"
    for name in ("./our_songs", "models/our_songs", "a/b/c", ".hidden"):
        with pytest.raises(UnknownNameError):
            repositories.find_repository(name, "models", "model")


def test_a_metric_dataset_or_model_is_found_by_its_name_alone(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for kind in ("metrics", "datasets_scripts", "models"):
        for name, folder in repositories.folders(kind).items():
            assert music_evals.repo_path(name) == str(folder) == str(root / kind / name), "names are unique"
    assert music_evals.repo_path("models/music_tagger") == str(root / "models/music_tagger")
    with pytest.raises(UnknownNameError, match="note_f1"):
        music_evals.repo_path("note_f")


def test_only_repository_folders_and_examples_of_a_clone_are_found(root: Path) -> None:
    assert repositories.shipped("models/anticipation_rnn") == root / "models" / "anticipation_rnn"
    assert repositories.shipped("examples") == root / "examples"
    for path in ("src/music_evals", "models", "models/../src", "models/none", "/models/anticipation_rnn", "somebody/x"):
        assert repositories.shipped(path) is None
    assert not repositories.is_installed(root / "models" / "anticipation_rnn")


@pytest.mark.usefixtures("fresh_home")
def test_an_installed_package_brings_its_folders_along(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the wheel, whatever lies around it."""
    package = tmp_path / "site-packages" / "music_evals"
    model = package / "_repositories" / "models" / "own_model"
    model.mkdir(parents=True)
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'music_evals'\n")
    monkeypatch.setattr(repositories, "__file__", str(package / "repositories.py"))
    monkeypatch.chdir(tmp_path)
    assert repositories.find_repository("own_model", "models", "model") == (str(model), True)
    assert repositories.find_repository("models/own_model", "models", "model") == (str(model), True)
    assert repositories.folders("models") == {"own_model": model}
    assert repositories.is_installed(model)


@pytest.mark.usefixtures("fresh_home")
@pytest.mark.parametrize("project", [None, "[project]\nname = 'other'\n", "[project\n", "[tool.x]\n"])
def test_a_package_that_is_not_in_a_clone_has_none(
    project: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder above an installation is somebody else's, and its folders are not ours."""
    (tmp_path / "models" / "anticipation_rnn").mkdir(parents=True)
    if project is not None:
        (tmp_path / "pyproject.toml").write_text(project)
    monkeypatch.setattr(repositories, "__file__", str(tmp_path / "lib" / "music_evals" / "repositories.py"))
    assert repositories._home() is None
    assert repositories.shipped("models/anticipation_rnn") is None
