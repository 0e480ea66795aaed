from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from music_evals.benchmark.tasks.songs.songs import check_ids, load_songs, read_songs
from music_evals.errors import (
    InvalidInputError,
    InvalidLyricsError,
    InvalidTagsError,
    MusicEvalsError,
    NoDataError,
    PairCountError,
    UnknownNameError,
    UnreadableFileError,
)

Rows = list[dict[str, Any]]
REAL_SONGS = Path(__file__).resolve().parents[5] / "shared" / "data" / "muchin" / "dev.jsonl"


def write(path: Path, rows: Rows) -> str:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return str(path)


def test_a_song_holds_what_its_row_holds(songs_file: Path) -> None:
    songs = load_songs(str(songs_file))
    assert [song.id for song in songs] == ["s1", "s2", "s3", "s4"]
    song = songs[0]
    assert (song.title, song.artist, song.theme) == ("静夜", ("甲",), "歌词写静夜。")
    assert song.pattern_text() == "(verse1)\nccccR\nccccR\nccccc\nccccR\n(chorus1)\nccccc\nccccR\nccccc\nccccR"
    assert song.words_text(numbered=False).startswith("(verse)\n床前明月光\n")
    assert song.has_words
    assert song.tags["professional"]["song_purpose"] == ("明亮", "思乡")
    assert set(song.tags) == {"professional", "amateur"}


def test_songs_of_one_title_and_performer_or_of_the_same_words_are_one_group(tmp_path: Path, song_rows: Rows) -> None:
    other = copy.deepcopy(song_rows[0]) | {"id": "s5", "title": "又一首", "artist": ["丁"]}
    bridge = copy.deepcopy(song_rows[3]) | {"id": "s6", "title": " 又一首", "artist": ["丁"]}
    cover = copy.deepcopy(song_rows[1]) | {"id": "s7", "artist": ["戊"]}
    cover["structure"][0]["lines"][0] = "白日依山近"
    songs = load_songs(write(tmp_path / "more.jsonl", [*song_rows, other, bridge, cover]))
    groups = {song.id: song.group for song in songs}
    # s5 has the words of s1; s6 the title of s5 and the words of s4, which is grouped with s3: one group of five
    assert groups == {"s1": "s1", "s2": "s2", "s3": "s1", "s4": "s1", "s5": "s1", "s6": "s1", "s7": "s7"}


def test_the_limit_keeps_the_first_songs_and_knows_the_others(songs_file: Path) -> None:
    songs = read_songs(str(songs_file), limit=2)
    assert [song.id for song in songs.songs] == ["s1", "s2"]
    assert songs.about == {"id": "songs.jsonl", "config": None, "split": None, "revision": None}
    check_ids(["s1", "s4"], songs, "mine.jsonl")
    with pytest.raises(PairCountError, match=r"mine.jsonl: 7 ids are not songs of songs.jsonl: x0, .* and 2 more"):
        check_ids([f"x{number}" for number in range(7)], songs, "mine.jsonl")


def test_a_dataset_is_read_as_its_file(tmp_path: Path, songs_file: Path, song_rows: Rows) -> None:
    import datasets

    folder = tmp_path / "window" / "data" / "demo"
    folder.mkdir(parents=True)
    datasets.Dataset.from_list(song_rows).to_parquet(folder / "test-00000-of-00001.parquet")
    head = (
        '---\nconfigs:\n- config_name: demo\n  data_files:\n  - {split: test, path: "data/demo/test-*.parquet"}\n---\n'
    )
    (tmp_path / "window" / "README.md").write_text(head)
    assert load_songs(str(tmp_path / "window"), "demo") == load_songs(str(songs_file))
    assert read_songs(str(tmp_path / "window")).about["config"] == "demo"
    with pytest.raises(UnknownNameError, match="did you mean demo"):
        load_songs(str(tmp_path / "window"), "demos")


Damage = Callable[[dict[str, Any]], Any]


def purpose(row: dict[str, Any]) -> dict[str, Any]:
    return row["amateur"]["dimensions"]["song_purpose"]


@pytest.mark.parametrize(
    ("damage", "error", "message"),
    [
        (lambda row: row.pop("id"), InvalidInputError, "line 1: nothing in id; expected id and structure"),
        (lambda row: row.update(id=3), InvalidInputError, "the id must be a text"),
        (lambda row: row.update(structure=None), InvalidInputError, "nothing in structure"),
        (lambda row: row.update(structure="(a)"), InvalidInputError, "structure must be a list of sections"),
        (lambda row: row.update(title=1), InvalidInputError, "title must be a text, got int"),
        (lambda row: row["structure"][0].pop("label"), InvalidLyricsError, "needs a label"),
        (lambda row: row["structure"][0].update(label="(a)"), InvalidLyricsError, r"\(s1\): a section label must be"),
        (lambda row: row["structure"][0]["rhyme"].pop(), InvalidLyricsError, "4 lines and 3 patterns"),
        (lambda row: row["structure"][0].update(lines=[1]), InvalidLyricsError, "a list of texts, got a list of int"),
        (lambda row: purpose(row).update(tags="安静"), InvalidTagsError, "must be a list of strings"),
        (lambda row: purpose(row).update(tags=[1]), InvalidTagsError, "must be strings"),
        (
            lambda row: row["amateur"]["dimensions"].update(x={"tags": []}),
            UnknownNameError,
            "unknown amateur dimension",
        ),
        (lambda row: row.update(amateur={}), InvalidTagsError, "amateur of a row must be"),
    ],
)
def test_rows_that_are_no_songs(
    tmp_path: Path, song_rows: Rows, damage: Damage, error: type[MusicEvalsError], message: str
) -> None:
    damage(song_rows[0])
    path = write(tmp_path / "bad.jsonl", song_rows)
    with pytest.raises(error, match=message):
        load_songs(path)


def test_files_that_hold_no_songs(tmp_path: Path, song_rows: Rows) -> None:
    with pytest.raises(NoDataError):
        load_songs(str(tmp_path / "none.jsonl"))
    with pytest.raises(NoDataError):
        load_songs(write(tmp_path / "empty.jsonl", []))
    with pytest.raises(PairCountError, match="twice or more: s1"):
        load_songs(write(tmp_path / "twice.jsonl", [song_rows[0], song_rows[0]]))
    with pytest.raises(InvalidInputError, match="neither configs nor revisions"):
        load_songs(write(tmp_path / "one.jsonl", song_rows), "demo")
    (tmp_path / "torn.jsonl").write_text('{"id": "s1", ')
    with pytest.raises(UnreadableFileError, match="line 1 is not JSON"):
        load_songs(str(tmp_path / "torn.jsonl"))


def test_files_in_another_encoding_and_keys_that_come_twice_are_named(tmp_path: Path) -> None:
    path = tmp_path / "songs.jsonl"
    path.write_bytes('{"id": "s1"}\n{"id": "\u6b4c"}\n'.encode("gbk"))
    with pytest.raises(
        UnreadableFileError, match=r"songs\.jsonl, line 2 cannot be read: not UTF-8; .*iconv -f GBK -t UTF-8"
    ):
        load_songs(str(path))
    path.write_text('\n{"id": "s1", "id": "s2"}\n')
    with pytest.raises(UnreadableFileError, match=r"songs\.jsonl, line 2: the key 'id' comes more than once"):
        load_songs(str(path))
    path.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 1\n")
    with pytest.raises(UnreadableFileError, match=r"songs\.jsonl: a Git LFS pointer"):
        load_songs(str(path))


def test_an_id_in_two_unicode_forms_is_one(tmp_path: Path, song_rows: Rows) -> None:
    rows = [{**song_rows[0], "id": "cafe\u0301"}, {**song_rows[1], "id": "b"}]
    songs = load_songs(write(tmp_path / "songs.jsonl", rows))
    assert songs[0].id == "caf\u00e9"
    with pytest.raises(PairCountError, match="twice or more: caf\u00e9"):
        load_songs(write(tmp_path / "twice.jsonl", [rows[0], {**song_rows[1], "id": "caf\u00e9"}]))


def test_columns_that_nobody_asked_for_may_be_missing(tmp_path: Path, song_rows: Rows) -> None:
    rows = [{"id": row["id"], "structure": row["structure"]} for row in song_rows]
    for row in rows:
        for section in row["structure"]:
            section["lines"] = None
    path = write(tmp_path / "patterns.jsonl", rows)
    songs = load_songs(path, columns=["structure"])
    assert not any(song.has_words or song.theme or song.tags for song in songs)
    assert [song.group for song in songs] == ["s1", "s2", "s3", "s4"]
    with pytest.raises(InvalidInputError, match="nothing in professional, amateur"):
        load_songs(path)


@pytest.mark.skipif(not REAL_SONGS.exists(), reason="the development songs are not here")
def test_the_development_songs() -> None:
    songs = load_songs(str(REAL_SONGS))
    assert len(songs) == 469
    assert len({song.group for song in songs}) == 466  # three songs share title and performers with another one
    assert all(song.theme and song.has_words and len(song.tags) == 2 for song in songs)
