"""`caimd_build`: a release becomes Parquet files that load, whole or not at all, and never in a checkout."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from tests.datasets.making import run_script

from music_evals.datasets.caimd import build as caimd_build
from music_evals.datasets.caimd.build import BuildSettings, build_release, check_out
from music_evals.datasets.caimd.release import OVERLAPS
from music_evals.datasets.caimd.schema import load_rows
from music_evals.datasets.caimd.texts import BrokenSongError
from music_evals.datasets.manifest import rows_sha256
from music_evals.errors import InvalidInputError, NoDataError, OutputError

from .caimd_copies import DEV, dev_rows, write_release, write_song

FOLDER = Path(__file__).resolve().parents[3] / "datasets_scripts" / "caimd"


@pytest.fixture(scope="module")
def rows() -> list[dict[str, Any]]:
    return [{**row, "id": f"s_{number:04d}"} for number, row in enumerate(load_rows(dataset=FOLDER), 1)]


@pytest.fixture
def source(tmp_path: Path, rows: list[dict[str, Any]]) -> Path:
    return write_release(tmp_path / "copy", rows[:10])


@pytest.fixture(autouse=True)
def _small_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(caimd_build, "SHARD_SONGS", 4)


def song(source: Path, name: str) -> Path:
    return source / "dataset" / "bm-data" / name


def forbid_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("a song was read again")

    monkeypatch.setattr(caimd_build, "read_song", refuse)


def test_a_built_folder_loads_with_its_card(source: Path, tmp_path: Path, rows: list[dict[str, Any]]) -> None:
    from datasets import load_dataset

    seen: list[tuple[int, int, str]] = []
    manifest = build_release(BuildSettings(source, tmp_path / "out"), lambda *told: seen.append(told))
    assert seen == [(4, 10, "test"), (8, 10, "test"), (10, 10, "test")]
    assert list(manifest["files"]) == [f"data/v1/test-{number:05d}-of-00003.parquet" for number in range(3)]
    assert [facts["rows"] for facts in manifest["files"].values()] == [4, 4, 2]
    loaded = load_dataset(str(tmp_path / "out"))
    assert list(loaded["test"]) == rows[:10]
    assert list(load_rows("v1", "test", dataset=tmp_path / "out")) == rows[:10]
    first = manifest["files"]["data/v1/test-00000-of-00003.parquet"]
    assert first["rows_sha256"] == rows_sha256(rows[:4])
    assert json.loads((tmp_path / "out" / "manifest.json").read_text(encoding="utf-8")) == manifest
    assert "| `test` | 10 |" in (tmp_path / "out" / "README.md").read_text(encoding="utf-8")


def test_a_built_folder_is_not_built_again(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = BuildSettings(source, tmp_path / "out")
    manifest = build_release(settings)
    forbid_reading(monkeypatch)
    assert build_release(settings) == manifest


def test_a_stopped_build_goes_on(
    source: Path, tmp_path: Path, rows: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = BuildSettings(source, tmp_path / "out")

    def stop(done: int, *_: object) -> None:
        if done == 8:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build_release(settings, stop)
    assert not (tmp_path / "out" / "manifest.json").exists()
    read: list[str] = []
    reader = caimd_build.read_song
    monkeypatch.setattr(
        caimd_build, "read_song", lambda folder, *rest: read.append(folder.name) or reader(folder, *rest)
    )
    build_release(settings)
    assert read == ["s_0009", "s_0010"]
    assert list(load_rows("v1", "test", dataset=tmp_path / "out")) == rows[:10]


def test_a_changed_song_and_a_cut_file_are_built_again(source: Path, tmp_path: Path) -> None:
    settings = BuildSettings(source, tmp_path / "out")
    build_release(settings)
    (song(source, "s_0001") / "meta_info").write_text("name: 新\nsinger: 甲\n", encoding="utf-8")
    last = tmp_path / "out" / "data/v1/test-00002-of-00003.parquet"
    last.write_bytes(last.read_bytes()[:100])
    build_release(settings)
    built = load_rows("v1", "test", dataset=tmp_path / "out")
    assert built[0]["title"] == "新"
    assert len(built) == 10


def test_a_broken_song_is_left_out_or_stops(source: Path, tmp_path: Path, rows: list[dict[str, Any]]) -> None:
    (song(source, "s_0002") / "tknz_json").unlink()
    (song(source, "s_0003") / "str_rhyme").write_text("(verse1)\ncR", encoding="utf-8")
    manifest = build_release(BuildSettings(source, tmp_path / "out"))
    assert [entry["song"] for entry in manifest["left_out"]] == ["s_0002", "s_0003"]
    assert manifest["broken"] == {"missing_file": 1, "structure_differs": 1}
    kept = load_rows("v1", "test", dataset=tmp_path / "out")
    assert kept["id"] == [row["id"] for row in rows[:10] if row["id"] not in {"s_0002", "s_0003"}]
    assert "2 of 10 folders were left out" in (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    with pytest.raises(BrokenSongError, match="s_0002/tknz_json"):
        build_release(BuildSettings(source, tmp_path / "out", strict=True))


def test_all_songs_broken_is_no_data_set(source: Path, tmp_path: Path) -> None:
    for path in source.glob("dataset/bm-data/*/str_lyric"):
        path.unlink()
    with pytest.raises(NoDataError, match="all 10 songs are broken"):
        build_release(BuildSettings(source, tmp_path / "out"))
    assert not (tmp_path / "out" / "manifest.json").exists()


def test_songs_that_agree_are_listed(source: Path, tmp_path: Path, rows: list[dict[str, Any]]) -> None:
    write_song(song(source, "s_0020"), {**rows[0], "id": "s_0020", "title": "别的歌"})
    changed = {**rows[1], "id": "s_0021"}
    sections = [{**part, "rhyme": [line.replace("R", "c") for line in part["rhyme"]]} for part in changed["structure"]]
    write_song(song(source, "s_0021"), {**changed, "structure": sections})
    relabelled = {**rows[2], "id": "s_0022", "title": "又一首歌"}
    others = [{**part, "label": f"bridge{place + 1}"} for place, part in enumerate(relabelled["structure"])]
    write_song(song(source, "s_0022"), {**relabelled, "structure": others})
    assert build_release(BuildSettings(source, tmp_path / "out"))["duplicates"] == {
        "structure": [["s_0001", "s_0020"]],
        "words": [["s_0002", "s_0021"]],
        "lines": [["s_0003", "s_0022"]],
        "meta": [["s_0002", "s_0021"]],
    }


def test_limit_takes_the_first_songs(source: Path, tmp_path: Path) -> None:
    manifest = build_release(BuildSettings(source, tmp_path / "out", limit=5))
    assert sum(facts["rows"] for facts in manifest["files"].values()) == manifest["songs"] == 5
    with pytest.raises(InvalidInputError, match="at least 1"):
        BuildSettings(source, tmp_path / "out", limit=0)


def test_two_builds_do_not_mix(source: Path, tmp_path: Path) -> None:
    build_release(BuildSettings(source, tmp_path / "out", limit=5))
    with pytest.raises(OutputError, match="of another build"):
        build_release(BuildSettings(source, tmp_path / "out"))


def test_v2_has_three_splits(tmp_path: Path, rows: list[dict[str, Any]]) -> None:
    from datasets import load_dataset

    source = tmp_path / "copy"
    for row in rows[:2]:
        write_song(source / "MuChin-1000" / row["id"], row)
    named = [{**row, "id": name} for row, name in zip(rows[2:5], ("12", "qq_3", "qq_4"), strict=True)]
    write_release(source, named, v2=True)
    (source / OVERLAPS[0]).write_text('{"query": "fp.enlarged/qq_3_src.json", "matches": []}\n')
    manifest = build_release(BuildSettings(source, tmp_path / "out"))
    loaded = load_dataset(str(tmp_path / "out"), "v2")
    assert {split: part["id"] for split, part in loaded.items()} == {
        "test": ["s_0001", "s_0002"],
        "train": ["12", "qq_4"],
        "repeated": ["qq_3"],
    }
    assert manifest["anomalies"]["groups_swapped"] == 3


def test_a_checkout_is_refused(source: Path, tmp_path: Path) -> None:
    (tmp_path / "clone" / ".git").mkdir(parents=True)
    with pytest.raises(OutputError, match="git checkout"):
        build_release(BuildSettings(source, tmp_path / "clone" / "data" / "out"))
    assert not (tmp_path / "clone" / "data").exists()
    (tmp_path / "link").symlink_to(tmp_path / "clone")
    with pytest.raises(OutputError, match="git checkout"):
        check_out(tmp_path / "link" / "out")
    build_release(BuildSettings(source, tmp_path / "clone" / "out", allow_git=True))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written_is_named(source: Path, tmp_path: Path) -> None:
    (tmp_path / "shut").mkdir(mode=0o500)
    with pytest.raises(OutputError, match="cannot be made"):
        build_release(BuildSettings(source, tmp_path / "shut" / "out"))


def test_a_file_in_place_of_the_folder_is_named(source: Path, tmp_path: Path) -> None:
    (tmp_path / "out").write_text("")
    with pytest.raises(OutputError, match="cannot be made"):
        build_release(BuildSettings(source, tmp_path / "out"))


def test_the_script_tells_what_it_found(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(caimd_build, "SHARD_SONGS", 1000)
    (song(source, "s_0004") / "str_lyric").unlink()
    run_script(FOLDER / "build.py", "--source", source, "--out", tmp_path / "out")
    out, err = capsys.readouterr()
    assert out.split() == ["9", "data/v1/test-00000-of-00001.parquet"]
    assert "left out: s_0004: s_0004/str_lyric: no such file" in err
    with pytest.raises(SystemExit, match=r"^build\.py: "):
        run_script(FOLDER / "build.py", "--source", tmp_path / "nowhere", "--out", tmp_path / "other")


def test_the_script_asks_for_a_folder_outside(source: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        run_script(FOLDER / "build.py", "--source", source)
    assert ended.value.code == 2
    assert "needs --out" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.skipif(not DEV.exists(), reason="the development songs are not beside this repository")
def test_the_development_songs_survive_the_release_and_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(caimd_build, "SHARD_SONGS", 250)
    songs = dev_rows()
    source = write_release(tmp_path / "copy", songs)
    manifest = build_release(BuildSettings(source, tmp_path / "out"))
    assert list(load_rows("v1", "test", dataset=tmp_path / "out")) == songs
    # of the songs themselves, counted over the lines of dev.jsonl in another way
    lines = [[line for part in song["structure"] for line in part["lines"]] for song in songs]
    raw = [[line["text"] for line in song["timed_lyrics"]] for song in songs]
    tags = [
        tag
        for song in songs
        for group in ("professional", "amateur")
        for told in song[group]["dimensions"].values()
        for tag in told["tags"]
    ]
    assert manifest["anomalies"] == {
        "spaces_around_tag": sum(tag[0].isspace() or tag[-1].isspace() for tag in tags),
        "blank_genre": sum(song["genre"] is None for song in songs),
        "blank_album": sum(song["album"] is None for song in songs),
        "raw_line_count": sum(len(a) != len(b) for a, b in zip(lines, raw, strict=True)),
        "raw_text": sum(a != b for a, b in zip(lines, raw, strict=True)),
    }
