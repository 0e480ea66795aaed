from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from music_evals.errors import InvalidInputError, ModelUnavailableError
from music_evals.lyrics.model_files import ModelPlace, choose_device, find_model, folder_hash, has_file, unavailable

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "model" / "pooling").mkdir(parents=True)
    (tmp_path / "model" / "config.json").write_text("{}")
    (tmp_path / "model" / "pooling" / "config.json").write_text("{}")
    (tmp_path / "model" / "model.safetensors").write_bytes(bytes(3 << 20))
    return tmp_path / "model"


def change(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize(
    ("damage", "same"),
    [
        (lambda folder: change(folder / "model.safetensors"), False),  # a byte in the middle
        (lambda folder: (folder / "pooling" / "config.json").write_text("[]"), False),
        (lambda folder: (folder / "config.json").rename(folder / "other.json"), False),
        (lambda folder: (folder / ".cache").mkdir() or (folder / ".cache" / "x").touch(), True),
        (lambda folder: (folder / "__pycache__").mkdir() or (folder / "__pycache__" / "x.pyc").touch(), True),
        (lambda folder: folder.rename(folder.with_name("moved")).rename(folder), True),
    ],
)
def test_the_hash_of_a_folder_is_that_of_all_that_matters(
    folder: Path, damage: Callable[[Path], object], same: bool
) -> None:
    before = folder_hash(folder)
    assert before.startswith("sha256-")
    damage(folder)
    assert (folder_hash(folder) == before) is same
    assert find_model(str(folder), None, "config.json") == ModelPlace(None, folder_hash(folder), here=True)


def test_a_folder_has_no_revisions(folder: Path) -> None:
    with pytest.raises(InvalidInputError, match="no revisions"):
        find_model(str(folder), "main", "config.json")
    place = find_model(str(folder), None, "config.json")
    assert has_file(str(folder), place, "config.json")
    assert not has_file(str(folder), place, "generation_config.json")


def test_files_of_a_model_on_the_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    stored = tmp_path / "models--lab--poet"
    for place in ("snapshots", ".no_exist"):
        (stored / place / COMMIT).mkdir(parents=True)
    (stored / "refs").mkdir()
    (stored / "refs" / "main").write_text(COMMIT)
    (stored / "snapshots" / COMMIT / "config.json").write_text("{}")
    (stored / ".no_exist" / COMMIT / "none.json").touch()
    found = find_model("lab/poet", None, "config.json")
    assert found == ModelPlace(COMMIT, COMMIT, here=True)
    assert has_file("lab/poet", found, "config.json")
    assert not has_file("lab/poet", found, "none.json")
    with pytest.raises(ModelUnavailableError, match=r"not known whether there is one; .*hf download lab/poet"):
        has_file("lab/poet", found, "unknown.json")
    with pytest.raises(ModelUnavailableError, match="Hub cannot be reached"):
        find_model("lab/poet", None, "modules.json")


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("lab/poet", "give a folder, or fetch it with: hf download lab/poet"),
        ("./lab/x/y", "give a folder that exists"),
        ("", "give a"),
    ],
)
def test_how_to_get_a_model(name: str, advice: str, tmp_path: Path) -> None:
    text = str(unavailable(name, "it is torn.\nmore", "or write one"))
    assert text.startswith(f"model {name!r} cannot be loaded: it is torn; {advice}")
    assert text.endswith("; or write one")
    assert "get the folder anew" in str(unavailable(str(tmp_path), ""))


def test_devices() -> None:
    import torch

    assert choose_device("cpu") == torch.device("cpu")
    assert choose_device(None).type == ("cuda" if torch.cuda.is_available() else "cpu")
    for missing in ("gpu", "cuda:x", "mtia", "meta"):  # no name, no number, not built in, keeps no numbers
        with pytest.raises(InvalidInputError, match=f"torch has no device '{missing}' here; expected 'cpu'"):
            choose_device(missing)
    with pytest.raises(InvalidInputError, match="needs a GPU that is not there"):
        choose_device("cuda:99")
