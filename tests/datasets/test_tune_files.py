"""Splits that keep families together, and files that vouch for themselves."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections import Counter
from pathlib import Path

import pytest
from tests.datasets.making import melody, score

from music_evals.datasets.manifest import load_split, rows_sha256
from music_evals.datasets.tune_files import (
    Placed,
    parse_shares,
    place,
    place_as,
    split_counts,
    split_families,
    write_tunes,
    write_whole,
)
from music_evals.datasets.tunes import tune_from_score
from music_evals.errors import InvalidInputError


def test_no_family_stands_in_two_splits() -> None:
    families = [number // 3 for number in range(300)]
    splits = split_families(families)
    assert Counter(splits) == {"train": 240, "validation": 30, "test": 30}
    assert all(len(set(splits[start : start + 3])) == 1 for start in range(0, 300, 3))
    assert splits == split_families(families)
    assert splits != split_families(families, seed=1)


def test_a_family_that_would_fill_a_split_goes_to_train() -> None:
    families = [0] * 20 + list(range(1, 181))  # a tenth of 200 tunes is 20
    for seed in range(20):
        assert set(split_families(families, seed=seed)[:20]) == {"train"}


def test_shares_are_obeyed_and_no_split_that_was_asked_for_stays_empty() -> None:
    assert Counter(split_families(range(10), shares=(1, 0, 1))) == {"train": 5, "test": 5}
    assert Counter(split_families(range(4))) == {"train": 2, "validation": 1, "test": 1}
    assert split_families([0, 0, 0]) == ["train"] * 3


def test_what_was_drawn_once_stays_whatever_is_read_later() -> None:
    tune = tune_from_score(score(melody(1, 16)), "")
    tunes = [dataclasses.replace(tune, name=name) for name in "abcdef"]
    drawn = {"b": "validation", "c": "test", "gone": "test"}
    apart = place_as(tunes, range(6), drawn)
    assert [item.split for item in apart] == ["train", "validation", "test", "train", "train", "train"]
    # a and b are settings of one tune, as c and d are; e is new, and links nothing
    together = place_as(tunes, [0, 0, 2, 2, 4, 5], drawn)
    assert [item.split for item in together] == ["validation", "validation", "test", "test", "train", "train"]
    assert [item.family for item in together] == ["a", "a", "c", "c", "e", "f"]
    # what has grown together goes to where a model may have learned from it; what is new follows
    assert {item.split for item in place_as(tunes, [0] * 6, drawn)} == {"validation"}
    assert {item.split for item in place_as(tunes, [0] * 6, {**drawn, "f": "train"})} == {"train"}


@pytest.mark.parametrize("text", ["8:1", "8:1:1:1", "a:1:1", "0:1:1", "8:-1:1", "8:1:1.5", ""])
def test_shares_that_cannot_be_read(text: str) -> None:
    with pytest.raises(InvalidInputError, match="8:1:1"):
        parse_shares(text)


def test_written_files_are_those_of_the_manifest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("music_evals.datasets.tune_files.ROWS_PER_FILE", 6)
    tunes = [tune_from_score(score(melody(seed, 20)), f"tune{seed}") for seed in range(6)]
    placed = place(tunes, range(6), shares=(4, 1, 1))
    seen: list[tuple[int, int]] = []
    manifest = write_tunes(tmp_path, {"folk": placed}, progress=lambda *done: seen.append(done), source="tests")
    assert seen[-1] == (30, 30)
    assert json.loads((tmp_path / "manifest.json").read_text()) == manifest
    assert len([name for name in manifest["files"] if "/train-" in name]) == 2  # 20 rows, at least 6 in a file
    for name, facts in manifest["files"].items():
        assert hashlib.sha256((tmp_path / name).read_bytes()).hexdigest() == facts["sha256"]
    rows = load_split(tmp_path, "folk", "test")
    [facts] = [facts for name, facts in manifest["files"].items() if "/test-" in name]
    assert rows_sha256(rows) == facts["rows_sha256"]
    assert split_counts(placed)["test"] == {"songs": 1, "families": 1, "measures": 20, "windows": 5}


def test_nothing_of_an_earlier_data_set_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tunes = [tune_from_score(score(melody(seed, 20)), f"tune{seed}") for seed in range(6)]
    placed = place(tunes, range(6), shares=(4, 1, 1))
    monkeypatch.setattr("music_evals.datasets.tune_files.ROWS_PER_FILE", 6)
    write_tunes(tmp_path, {"folk": placed})
    monkeypatch.undo()
    manifest = write_tunes(tmp_path, {"folk": placed})
    assert {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.parquet")} == set(manifest["files"])
    assert len(load_split(tmp_path, "folk", "train")) == 20


def test_a_manifest_is_written_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tune = tune_from_score(score(melody(1)), "a")

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    (tmp_path / "manifest.json").write_text("{}")  # of an earlier data set
    with pytest.raises(KeyboardInterrupt):
        write_tunes(tmp_path, {"folk": [Placed(tune, "a", "train")]}, progress=stop)
    assert not (tmp_path / "manifest.json").exists()


def test_of_two_writers_one_wins_and_a_folder_that_cannot_be_written_is_no_success(tmp_path: Path) -> None:
    tune = tune_from_score(score(melody(0)), "a")
    configs = {"folk": [Placed(tune, "a", "train")]}
    (tmp_path / "kept").mkdir()
    first = write_whole(tmp_path / "kept", configs, "tunes", {"source": "first"})  # an empty folder is replaced
    assert write_whole(tmp_path / "kept", configs, "tunes", {"source": "second"})["files"] == first["files"]
    assert json.loads((tmp_path / "kept" / "manifest.json").read_text())["source"] == "first"
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "somebody's.txt").write_text("kept")
    with pytest.raises(OSError, match="other"):
        write_whole(tmp_path / "other", configs, "tunes", {})
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["kept", "other"]
