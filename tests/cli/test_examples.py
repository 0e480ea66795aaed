"""The verb ``examples``, and that the files it copies are what their script makes."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest
import soundfile

from music_evals import cli


def test_they_are_copied_and_never_written_over(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.main(["examples"]) == 0
    out, err = capsys.readouterr()
    files = out.splitlines()
    assert f"{len(files)} of {len(files)} files copied to examples" in err
    for file in files:
        assert (tmp_path / file).read_bytes() == (root / file).read_bytes()
    assert not list(tmp_path.rglob("*.py"))
    (tmp_path / "examples" / "lyrics.jsonl").write_text("mine")
    (tmp_path / "examples" / "tags.jsonl").unlink()
    assert cli.main(["examples"]) == 0
    err = capsys.readouterr().err
    assert f"1 of {len(files)} files copied" in err
    assert "left as they are, for they differ from ours: examples/lyrics.jsonl" in err
    assert (tmp_path / "examples" / "lyrics.jsonl").read_text() == "mine"


def test_a_folder_that_cannot_be_made(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").touch()
    assert cli.main(["examples", str(tmp_path / "file" / "inner")]) == 1
    assert "cannot make the folder" in capsys.readouterr().err


@pytest.mark.slow
def test_they_are_small_and_made_by_their_script(root: Path, tmp_path: Path) -> None:
    spec = importlib.util.spec_from_file_location("build_examples", root / "examples" / "build.py")
    assert spec
    assert spec.loader
    build = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(build)
    made = build.build(tmp_path)
    stored = {str(path.relative_to(root / "examples")) for path in (root / "examples").rglob("*") if path.is_file()}
    assert {name for name in stored if not name.endswith((".py", ".pyc", "README.md"))} == set(made)
    assert sum((root / "examples" / name).stat().st_size for name in made) < 1_000_000
    for name in made:
        if name.endswith(".ogg"):  # each file has a random number of its stream in it
            ours, theirs = (soundfile.read(folder / name)[0] for folder in (root / "examples", tmp_path))
            assert np.abs(ours - theirs).max() < 0.01
        else:
            assert (root / "examples" / name).read_bytes() == (tmp_path / name).read_bytes(), name


def test_each_is_named_on_the_card(root: Path) -> None:
    card = (root / "examples" / "README.md").read_text(encoding="utf-8")
    for path in (root / "examples").iterdir():
        if path.name not in {"README.md", "build.py", "__pycache__"}:
            assert f"`{path.name}{'/' * path.is_dir()}`" in card


@pytest.mark.parametrize("name", ["originals", "new_melody", "faster"])
def test_the_recordings_pair_up(root: Path, name: str) -> None:
    names = sorted(path.name for path in (root / "examples" / name).iterdir())
    assert names == ["song_disco.ogg", "song_rock.ogg"]
