"""Repository folders: what they are, and whether those of this repository are fit to be published."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from music_evals.errors import InvalidInputError, NoDataError
from music_evals.hub.card_checks import problems
from music_evals.hub.publishing import Published
from music_evals.hub.repository_folders import (
    REPOSITORY_TYPES,
    RepositoryFolder,
    all_repository_folders,
    find_repository_folders,
)
from music_evals.repositories import HUB_FOLDERS

from .hub_house import ROOT, write

OURS = all_repository_folders(ROOT)


@pytest.mark.parametrize("folder", OURS, ids=[folder.label for folder in OURS])
def test_ours_are_fit_to_be_published(folder: RepositoryFolder) -> None:
    assert problems(folder) == []


def test_all_in_the_order_of_need(tree: Path) -> None:
    folders = all_repository_folders(tree)
    assert [folder.kind for folder in folders] == ["datasets_scripts", "models", "metrics", "spaces"]
    assert [folder.repository("o").type for folder in folders] == ["dataset", "model", "space", "space"]


def test_repository_folders_are_found_by_their_paths(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tree)
    (folder,) = find_repository_folders(["metrics/tiny_metric/", tree / "metrics/tiny_metric"])
    assert folder.label == "metrics/tiny_metric"
    assert folder.root == tree
    with pytest.raises(InvalidInputError, match="is no folder"):
        find_repository_folders(["metrics/gone"])
    with pytest.raises(InvalidInputError, match="is no repository folder: it lies in root/"):
        find_repository_folders(["benchmarks"])
    (tree / "models/tiny_model/variant").mkdir()
    with pytest.raises(InvalidInputError, match="published with the whole folder, models/tiny_model"):
        find_repository_folders(["models/tiny_model/variant"])
    with pytest.raises(NoDataError):
        find_repository_folders([])
    with pytest.raises(NoDataError):
        all_repository_folders(tree / "benchmarks")


def test_repository_folders_of_the_clone_in_use_are_found_from_any_folder(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert set(HUB_FOLDERS) == set(REPOSITORY_TYPES)
    (folder,) = find_repository_folders(["metrics/note_f1", "note_f1"])  # one by its path and by its name
    assert folder.path == ROOT / "metrics/note_f1"
    assert [found.label for found in find_repository_folders(["known_edits", "leaderboard"])] == [
        "datasets_scripts/known_edits",
        "spaces/leaderboard",
    ]
    monkeypatch.chdir(tree)
    (folder,) = find_repository_folders(["metrics/tiny_metric"])
    assert folder.root == tree
    with pytest.raises(InvalidInputError, match="is no folder"):
        find_repository_folders(["src/music_evals"])


def test_a_link_is_no_repository_folder(tree: Path) -> None:
    (tree / "metrics/linked").symlink_to(tree / "metrics/tiny_metric")
    (tree / "other").mkdir()
    (tree / "other/metrics").symlink_to(tree / "metrics")
    for find in (
        lambda: find_repository_folders([tree / "metrics/linked"]),
        lambda: find_repository_folders([tree / "other/metrics/tiny_metric"]),
        lambda: all_repository_folders(tree),
        lambda: all_repository_folders(tree / "other"),
    ):
        with pytest.raises(InvalidInputError, match="may not be a link"):
            find()
    (tree / "metrics/linked").unlink()
    (tree / "root").symlink_to(tree)  # a root may be reached by a link
    (folder,) = find_repository_folders([tree / "root/metrics/tiny_metric"])
    assert folder.root == tree


def test_what_never_travels(tree: Path) -> None:
    left = {f"{name}/x": "x" for name in ("__pycache__", "run", "variant/run", ".cache")}
    folder = write(tree / "models/tiny_model", {**left, "a.pyc": "x", ".hidden": "x", "b.part": "x", "variant/c": "x"})
    files = set(RepositoryFolder(folder).files())
    assert files == {"README.md", "config.json", "model.safetensors", "train.yaml", "variant/c"}


@pytest.mark.parametrize(
    ("path", "old", "new", "said"),
    [
        ("metrics/tiny_metric/README.md", "license: apache-2.0\n", "", "license is missing"),
        ("metrics/tiny_metric/README.md", "title: Tiny\n", "", "title is missing"),
        ("metrics/tiny_metric/README.md", "description: A metric.\n", "", "description is missing"),
        ("metrics/tiny_metric/README.md", "[evaluate, metric]", "[metric]", "tags must hold evaluate"),
        ("metrics/tiny_metric/README.md", "sdk: gradio", "sdk: shiny", "sdk must be one of"),
        ("metrics/tiny_metric/README.md", "6.31.0", "latest", "sdk_version must name one release"),
        ("metrics/tiny_metric/README.md", "app.py", "main.py", "app_file names main.py"),
        ("metrics/tiny_metric/README.md", "---\n", "", "no YAML"),
        ("metrics/tiny_metric/README.md", "title: Tiny", "title: [", "cannot be read"),
        ("metrics/tiny_metric/requirements.txt", "[spaces]", "==1.0", "with its extras and no version"),
        ("spaces/tiny_space/README.md", "title: Tiny", f"title: Tiny\nshort_description: {'x' * 61}", "61 characters"),
        ("datasets_scripts/tiny_set/README.md", "data/one/", "data/two/", "no file is like data/two"),
        ("datasets_scripts/tiny_set/README.md", "cc-by-4.0", "other", "license_name"),
        ("datasets_scripts/tiny_set/README.md", "configs:", "config:", "configs must list"),
        ("datasets_scripts/tiny_set/eval.yaml", "config: one", "config: two", "no config 'two'"),
        ("datasets_scripts/tiny_set/eval.yaml", "tasks:", "task:", "breaks the schema"),
        ("models/tiny_model/README.md", "library_name", "library", "library_name is missing"),
        ("models/tiny_model/README.md", "---\n\n#", "model-index: [{name: a}]\n---\n\n#", "model-index of the card"),
        ("models/tiny_model/README.md", "\n# Tiny model\n", "\n", "no text below"),
    ],
)
def test_what_keeps_a_folder_from_being_published(tree: Path, path: str, old: str, new: str, said: str) -> None:
    file = tree / path
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new, 1))
    complaints = problems(RepositoryFolder(file.parent))
    assert any(said in problem for problem in complaints), complaints


def test_files_that_are_missing_or_too_many(tree: Path) -> None:
    metric = RepositoryFolder(tree / "metrics/tiny_metric")
    (metric.path / "tiny_metric.py").unlink()
    (metric.path / "requirements.txt").unlink()
    assert len(problems(metric)) == 2
    dataset = RepositoryFolder(write(tree / "datasets_scripts/tiny_set", {"tiny_set.py": "x"}))
    assert "stops load_dataset" in problems(dataset)[0]
    model = RepositoryFolder(write(tree / "models/tiny_model", {"optimizer.pt": b"x"}))
    assert "training state" in problems(model)[0]
    (model.path / "optimizer.pt").unlink()
    (model.path / "model.safetensors").unlink()
    assert "no weights" in problems(model)[0]
    card = model.path / "README.md"
    card.write_text(card.read_text().replace("license:", "status: untrained\nlicense:"))
    assert problems(model) == []
    card.write_text(card.read_text().replace("status: untrained", "status: external-weights"))
    assert problems(model) == []
    write(model.path, {"model.safetensors": b"x"})
    assert "not ours to send" in problems(model)[0]
    card.unlink()
    assert problems(model) == ["README.md, the card, is missing, or git ignores it"]


def test_links_and_files_that_are_no_text(tree: Path) -> None:
    folder = RepositoryFolder(tree / "spaces/tiny_space")
    (folder.path / "away").symlink_to(tree)
    (folder.path / "packages.txt").write_bytes(b"\xff\xfe")
    first, second = problems(folder)
    assert first == "away is a link; put the file itself there"
    assert second.startswith("packages.txt is no text in UTF-8")


def test_a_manifest_vouches_for_the_files(tree: Path) -> None:
    folder = RepositoryFolder(tree / "datasets_scripts/tiny_set")
    name = "data/one/test-00000-of-00001.parquet"
    digest = hashlib.sha256((folder.path / name).read_bytes()).hexdigest()
    manifest = folder.path / "manifest.json"
    manifest.write_text(json.dumps({"files": {name: {"sha256": digest}}}))
    assert problems(folder) == []
    write(folder.path, {name: "other", "data/one/test-x.parquet": "x"})
    assert problems(folder) == [
        "data/one/test-x.parquet is not in manifest.json; rebuild, or delete it",
        f"{name} is not the file of manifest.json; rebuild it",
    ]
    manifest.write_text("[]")
    assert "not of our form" in problems(folder)[0]


def test_former_names_of_published_work_and_warn(tree: Path) -> None:
    folder = RepositoryFolder(tree / "metrics/tiny_metric")
    published = Published(folder, folder.repository("o"), "unchanged")
    with pytest.warns(DeprecationWarning, match="is called folder now"):
        assert published.window is folder
    with pytest.warns(DeprecationWarning, match="is called retained now"):
        assert published.kept == ()
