"""The tunes inside music21: which are taken, how they are named and read, and what is built on first use."""

from __future__ import annotations

import dataclasses
import json
import shutil
from collections import Counter
from pathlib import Path

import pytest
from tests.datasets.making import melody, write_abc

from music_evals.benchmark.inputs import split_names
from music_evals.benchmark.tasks.inpainting.items import load_items
from music_evals.datasets import tune_files
from music_evals.datasets.irish_folk import build
from music_evals.datasets.irish_folk.build import read_tunes, tune_sources
from music_evals.datasets.manifest import load_split
from music_evals.errors import NoDataError, UnknownNameError
from music_evals.files import Store

DRAWN = build.StoredSplits(
    {"airdsAirs/book1/2": "validation", "oneills1850/0001-0050/9": "test", "ryansMammoth/AirFourReel": "test"},
    frozenset({"airdsAirs/book1/1", "airdsAirs/book1/2", "oneills1850/0001-0050/9"}),
)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three small books: settings recur in other books and keys, and a number stands twice."""
    root = tmp_path_factory.mktemp("corpus")
    write_abc(root / "airdsAirs/book1.abc", [(seed, f"Air {seed}", melody(seed, 18)) for seed in range(1, 6)])
    write_abc(root / "airdsAirs/waltzes.abc", [(1, "Waltz", melody(50))], meter="3/4")
    twice = [(7, "Here", melody(7, 17)), (7, "Again", melody(8, 17)), (9, "There", melody(9, 18))]
    write_abc(root / "oneills1850/0001-0050.abc", twice)
    for seed in range(10, 14):
        write_abc(
            root / f"ryansMammoth/Tune{seed}Reel.abc", [(1, f"Tune {seed} -- Reel", melody(seed, 16))], meter="C|"
        )
    write_abc(root / "ryansMammoth/AirFourReel.abc", [(1, "Air Four -- Reel", melody(4, 18))])
    return root


@pytest.fixture(scope="module")
def read(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache folder in which the tunes of the corpus were read."""
    root = tmp_path_factory.mktemp("read")
    read_tunes(tune_sources(corpus), store=Store(root / "pieces"))
    return root


@pytest.fixture
def cache(corpus: Path, read: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(read, tmp_path, dirs_exist_ok=True)
    monkeypatch.setenv("MUSIC_EVALS_CACHE", str(tmp_path))
    monkeypatch.setattr(build, "corpus_folder", lambda: corpus)
    monkeypatch.setattr(build, "stored_splits", lambda: DRAWN)
    return tmp_path


def test_tunes_in_other_meters_are_not_sources(corpus: Path) -> None:
    names = [source.name for source in tune_sources(corpus)]
    assert names == [
        *(f"airdsAirs/book1/{number}" for number in range(1, 6)),
        "oneills1850/0001-0050/7",
        "oneills1850/0001-0050/7.2",
        "oneills1850/0001-0050/9",
        "ryansMammoth/AirFourReel",
        *(f"ryansMammoth/Tune{seed}Reel" for seed in range(10, 14)),
    ]


def test_a_package_without_the_books_is_named(tmp_path: Path) -> None:
    with pytest.raises(NoDataError, match="holds no airdsAirs"):
        tune_sources(tmp_path)


@pytest.mark.slow
def test_what_was_taken_is_counted(corpus: Path) -> None:
    sources = [source for source in tune_sources(corpus) if source.collection == "ryansMammoth"]
    short = sources[0]._replace(name="short", content=b"X:1\nT:Short\nM:C\nL:1/4\nK:G\nGABc|dedB|\n")
    tunes, counts = read_tunes([*sources, short])
    assert counts == {
        "ryansMammoth: in 4/4 or 2/2": 6,
        "ryansMammoth: left out (ContextLengthError)": 1,
        "ryansMammoth: taken": 5,
        "ryansMammoth: taken, repeats as written": 0,
    }
    assert [tune.time_signature for tune in tunes] == ["4/4", *["2/2"] * 4]
    assert {tune.collection for tune in tunes} == {"ryansMammoth"}


@pytest.mark.slow
def test_it_is_built_on_first_use_and_found_by_its_name(
    cache: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    items = load_items("irish_folk", "music21_folk", "test")
    assert "reading the folk tunes" in capsys.readouterr().err  # with a bar
    train = load_split("irish_folk", "music21_folk", "train")
    settings = {"airdsAirs/book1/4", "ryansMammoth/AirFourReel"}  # of one tune: where one was drawn for, both are
    assert set(items.songs) == {"oneills1850/0001-0050/9", *settings}
    assert not set(items.songs) & set(train["song"])
    assert set(split_names("irish_folk", "small")) == {"train", "validation", "test"}
    assert set(load_items("irish_folk", "small", "test").songs) == {"oneills1850/0001-0050/9"}
    manifest = json.loads((build.place_of("music21") / "manifest.json").read_text())
    assert manifest["books"]["music21_folk"]["ryansMammoth"]["songs"] == 5
    assert manifest["families"]["music21_folk"] == 12  # 13 tunes, one of them in two books

    monkeypatch.setattr(build, "build_music21", None)  # the second time nothing is built
    assert load_items("irish_folk", "music21_folk", "test").fingerprint == items.fingerprint
    with pytest.raises(UnknownNameError, match="music21_folk"):
        load_items("irish_folk", "music21_flok", "test")


def test_a_build_that_is_stopped_leaves_no_data_set(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    original = tune_files.write_tunes

    def stopped(folder: Path, *args: object, **kwargs: object) -> None:
        original(folder, *args, **kwargs)  # type: ignore[arg-type]
        raise KeyboardInterrupt

    monkeypatch.setattr(tune_files, "write_tunes", stopped)
    with pytest.raises(KeyboardInterrupt):
        build.prepare("music21_folk")
    assert not list((cache / "datasets").iterdir())
    assert list((cache / "pieces").rglob("*.entry"))  # what was read is kept: the next run goes on


@pytest.mark.usefixtures("cache")
def test_the_cleared_part_keeps_families_and_splits() -> None:
    placed, _ = build.place_music21()
    cleared = build.cleared_only(placed)
    assert {item.tune.collection for item in cleared} == {"ryansMammoth"}
    assert {(item.tune.name, item.family, item.split) for item in cleared} <= {
        (item.tune.name, item.family, item.split) for item in placed
    }
    [four] = [item for item in cleared if item.tune.name == "ryansMammoth/AirFourReel"]
    assert four.family == "airdsAirs/book1/4"  # a book that is not passed on names it, and holds nothing else of it


def test_what_was_drawn_has_the_sizes_of_the_card() -> None:
    splits, small = build.stored_splits()
    counts = Counter(splits.values())
    assert counts == {"train": 1160, "validation": 134, "test": 126}
    assert Counter(splits[name] for name in small) == {"train": 136, "validation": 17, "test": 18}


def test_the_small_set_has_the_sizes_of_the_chorales() -> None:
    from tests.datasets.making import score

    from music_evals.datasets.tune_files import Placed
    from music_evals.datasets.tunes import tune_from_score

    tune = tune_from_score(score(melody(1, 16)), "a")
    splits = ["train"] * 300 + ["validation"] * 40 + ["test"] * 40
    placed = [
        Placed(dataclasses.replace(tune, name=f"t{index}"), f"t{index}", split) for index, split in enumerate(splits)
    ]
    small = build.draw_small(placed)
    assert len(small) == 171
    assert [item.split for item in small].count("test") == 18
    assert small == build.draw_small(placed)
    assert small != build.draw_small(placed, seed=1)
    assert set(small) <= set(placed)
