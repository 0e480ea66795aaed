"""The Space of style transfer: its callbacks as plain functions."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import huggingface_hub
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from music_evals.annotations import Score, TimeSignature
from music_evals.errors import (
    FileTooLargeError,
    InvalidInputError,
    NoDataError,
    PolyphonyError,
    UnknownNameError,
    UnreadableFileError,
)
from music_evals.models.bmst import BMST, BMSTConfig
from music_evals.pipelines.style_transfer.rearrangement import prepare, rearrange
from music_evals.symbolic.midi import read_midi, save_midi
from music_evals.symbolic.notes import make_notes
from music_evals.symbolic.piece_rows import piece_columns
from music_evals.ui.spaces import style_transfer as space
from music_evals.ui.spaces.style_transfer import Model, find_models
from music_evals.ui.widgets.ab_player import Track

TINY = BMSTConfig(style="bach", window=8, embedding=8, n_layers=1, n_heads=2, inner=8, context=3, pitch_width=4)


def song(*voices: str, length: int = 480) -> Score:
    notes = make_notes([0, 480, 0], [480, length, 960], [72, 74, 48], 70, [0, 0, 1])
    return Score(notes, 480, (TimeSignature(0, 4, 4),), voices=voices)


@pytest.fixture(autouse=True)
def _no_owner(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MUSIC_EVALS_ORG", "SPACE_AUTHOR_NAME"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder as that of the repository, with one model and one piece."""
    with torch.random.fork_rng():
        torch.manual_seed(3)
        BMST(TINY).save_pretrained(tmp_path / "models/bmst")
    (tmp_path / "examples/midi").mkdir(parents=True)
    save_midi(song("Melody", "Bass"), tmp_path / "examples/midi/tune.mid")
    save_midi(song("Right", "Left"), tmp_path / "hands.mid")
    return tmp_path


@pytest.mark.slow
def test_each_sweep_is_seen_heard_and_kept(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    served: list[str] = []

    def player(first: Track, second: Track) -> list[Track]:
        served.append(second.title)
        return [first, second]

    monkeypatch.setattr(space, "player", player)
    found = list(space.rewrite(root, None, "tune", "", "bmst:bach", 3, 5))
    statuses, pictures, heard, files = zip(*found, strict=True)
    assert [status.partition(" by")[0] for status in statuses] == [f"Sweep {n} of 3" for n in (1, 2, 3)]
    assert [" s left at " in status for status in statuses] == [True, True, False]
    assert served == ["Sweep 1", "Sweep 2", "Sweep 3"]
    assert all(np.array_equal(pair[0].samples, heard[0][0].samples) for pair in heard)  # the original
    network = BMST.from_pretrained(root / "models/bmst")
    *_, whole = rearrange(prepare(song("Melody", "Bass")), network, seed=5, n_sweeps=3)
    last = read_midi(files[-1])
    assert last.notes.tolist() == whole.score().notes.tolist()  # one call a sweep changes nothing
    assert pictures[-1].count('class="accompaniment"') == 1 + len(last.voice(1))
    assert len(set(files)) == 3


def test_cancelling_says_so_once() -> None:
    going = "Sweep 1 of 3 by bmst:bach, about 4 s left at 2.0 s a sweep ...\n\ndrums are left out."
    assert space._cancelled(going) == "Sweep 1 of 3 by bmst:bach. Cancelled.\n\ndrums are left out."
    assert space._cancelled("Sweep 3 of 3 by bmst:bach.") == "Sweep 3 of 3 by bmst:bach."


def test_melodies_to_choose_from(root: Path) -> None:
    assert space.melody_choices(root, None, "tune")[:2] == (["Melody", "Bass", "skyline"], "Melody")
    names, taken, remark = space.melody_choices(root, str(root / "hands.mid"), "")
    assert (names, taken) == (["Right", "Left", "skyline"], "")
    assert remark.startswith("Which voice")


def test_pieces_of_the_data_set_are_offered_where_it_is(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert {"twinkle", "moonlight", "tune"} <= set(space.find_pieces(root))  # the package brings six along
    rows = [{"name": name, **piece_columns(song("melody", name), 24)} for name in ("first", "second")]
    folder = root / "datasets_scripts/style_transfer_pieces/data/all"
    folder.mkdir(parents=True)
    pq.write_table(pa.Table.from_pylist(rows), folder / "test-00000-of-00001.parquet")
    pieces = space.find_pieces(root)
    assert list(pieces) == ["first", "second", "tune"]
    assert pieces["second"]().voices == ("melody", "second")
    monkeypatch.setattr(space, "shipped", lambda _path: None)
    assert space.find_pieces(root / "models") == {}


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ((None, "", "", "bmst:bach", 1, 0), NoDataError, "upload a file"),
        ((None, "none", "", "bmst:bach", 1, 0), UnknownNameError, "tune"),
        ((None, "tune", "", "bmst:swing", 1, 0), UnknownNameError, "bmst:bach"),
        ((None, "tune", "", "bmst:bach", float("nan"), 0), InvalidInputError, "sweeps"),
        ((None, "tune", "", "bmst:bach", "many", 0), InvalidInputError, "sweeps"),
        ((None, "tune", "", "bmst:bach", 1, float("inf")), InvalidInputError, "seed"),
        (("hands.mid", "", "", "bmst:bach", 1, 0), PolyphonyError, "skyline"),
        (("long.mid", "", "1", "bmst:bach", 1, 0), FileTooLargeError, "too long"),
    ],
)
def test_bad_input(root: Path, arguments: tuple[Any, ...], error: type[Exception], words: str) -> None:
    save_midi(song("a", "b", length=480 * 1000), root / "long.mid")
    path, *rest = arguments
    with pytest.raises(error, match=words):
        next(space.rewrite(root, path and str(root / path), *rest))


def test_the_fastest_model_is_offered_first(root: Path) -> None:
    menu = space._menu(root / "nothing")  # those that the package brings along
    assert menu["value"] == menu["choices"][0] == "full_sequence:bach"
    assert [name.partition(":")[0] for name in menu["choices"]] == sorted(
        (name.partition(":")[0] for name in menu["choices"]), key=["full_sequence", "style_lstm", "bmst"].index
    )


@pytest.mark.gradio
def test_there_is_no_melody_to_choose_without_a_piece(root: Path) -> None:
    for piece in (None, ""):
        choice, remark = space._choose_on_page(root, None, piece)
        assert (choice["choices"], choice["value"], choice["interactive"], remark) == ([], None, False, "")
    choice, _ = space._choose_on_page(root, None, "tune")
    assert (choice["choices"], choice["value"], choice["interactive"]) == (
        ["Melody", "Bass", "skyline"],
        "Melody",
        True,
    )
    choice, _ = space._choose_on_page(root, str(root / "hands.mid"), None)
    assert choice["value"] is None  # it has to be chosen, and nothing blank is


def test_without_weights_the_page_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "bmst:bach" in find_models(tmp_path)  # the package brings it along
    monkeypatch.setattr(space, "shipped", lambda _path: None)
    with pytest.raises(NoDataError, match=r"music-evals train models/bmst/train\.yaml"):
        next(space.rewrite(tmp_path, None, "song_rock", "", "bmst:bach", 1, 0))


def test_on_the_hub_those_of_the_owner_are_offered(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repository = root / "hub" / "bmst"
    BMST(TINY).save_pretrained(repository)
    BMST(dataclasses.replace(TINY, style="swing")).save_pretrained(repository / "swing")
    down = True

    def files(place: str) -> list[str]:
        if down or place != "owner/bmst":
            raise ConnectionError("no network")
        return [path.relative_to(repository).as_posix() for path in repository.rglob("*") if path.is_file()]

    fetched: list[str] = []

    def snapshot(place: str, *, allow_patterns: list[str]) -> str:
        assert place == "owner/bmst"
        fetched.extend(allow_patterns)
        return str(repository)

    monkeypatch.setattr(huggingface_hub, "list_repo_files", files)
    monkeypatch.setattr(huggingface_hub, "hf_hub_download", lambda _place, file: str(repository / file))
    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot)
    monkeypatch.setattr(space, "shipped", lambda _path: None)
    space._on_hub.cache_clear()
    monkeypatch.setenv("SPACE_AUTHOR_NAME", "owner")
    assert find_models(root) == {"bmst:bach": Model("bmst", str(root / "models/bmst"), None)}  # folders go first
    monkeypatch.setenv("MUSIC_EVALS_ORG", "owner")
    assert find_models(root) == {}
    down = False  # what could not be reached is asked for again
    found = find_models(root)
    assert list(found) == ["bmst:bach", "bmst:swing"]
    assert space._load(found["bmst:swing"]).name == "bmst:swing"
    assert fetched == ["swing/config.json", "swing/model.safetensors"]
    space._on_hub.cache_clear()


def test_a_config_of_something_else_is_named(root: Path) -> None:
    (root / "models/bmst/config.json").write_text("[]")
    with pytest.raises(UnreadableFileError, match="style transfer"):
        find_models(root)


@pytest.mark.slow
def test_a_sweep_is_one_call_of_the_card(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[bool] = []
    one = space._one_sweep
    monkeypatch.setattr(space, "player", lambda *_: {})

    def counted(*given: Any) -> Any:
        calls.append(given[-1] is None)
        return one(*given)

    monkeypatch.setattr(space, "_one_sweep", counted)
    list(space.rewrite(root, None, "tune", "", "bmst:bach", 3, 0))
    assert calls == [True, False, False]


def test_a_menu_that_comes_late_leaves_the_choice_alone(monkeypatch: pytest.MonkeyPatch, root: Path) -> None:
    pytest.importorskip("gradio")
    monkeypatch.setattr(space, "find_models", lambda _root: {"bmst:bach": None, "bmst:chopin": None})
    late = space._menu_now(root, "bmst:bach")
    assert (late["choices"], "value" in late) == (["bmst:bach", "bmst:chopin"], False)
    assert space._menu_now(root, "bmst:gone")["value"] == "bmst:bach"
    assert space._menu_now(root, None)["value"] == "bmst:bach"
