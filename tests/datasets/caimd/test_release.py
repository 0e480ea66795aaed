"""`caimd_release`: a copy of the published layout is read to the letter, and what is odd in it is counted or named."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from music_evals.datasets.caimd import texts as caimd_texts
from music_evals.datasets.caimd.release import FILES, OVERLAPS, IdMaps, find_release, read_maps, read_song
from music_evals.datasets.caimd.schema import load_rows
from music_evals.datasets.caimd.texts import ANOMALIES, BROKEN, BrokenSongError, parse_meta
from music_evals.errors import NoDataError, UnknownNameError, UnreadableFileError

from .caimd_copies import UNUSED, write_maps, write_release, write_song

FOLDER = Path(__file__).resolve().parents[3] / "datasets_scripts" / "caimd"


@pytest.fixture(scope="module")
def rows() -> list[dict[str, Any]]:
    named = enumerate(load_rows(dataset=FOLDER), 1)
    return [{**row, "id": f"s_{number:04d}", "genre": row["genre"] or "pop", "album": "集"} for number, row in named]


@pytest.fixture(scope="module")
def maps(tmp_path_factory: pytest.TempPathFactory) -> IdMaps:
    folder = tmp_path_factory.mktemp("maps")
    write_maps(folder)
    return read_maps(folder)


@pytest.fixture
def song(tmp_path: Path, rows: list[dict[str, Any]]) -> Path:
    write_song(tmp_path / "s_0001", rows[0])
    return tmp_path / "s_0001"


def test_songs_come_back_to_the_letter(tmp_path: Path, rows: list[dict[str, Any]], maps: IdMaps) -> None:
    for row in rows:
        write_song(tmp_path / row["id"], row)
        read = read_song(tmp_path / row["id"], maps)
        assert read.row == row
        assert +read.anomalies == {}


def test_a_song_of_the_v2_sample_is_put_right(tmp_path: Path, rows: list[dict[str, Any]], maps: IdMaps) -> None:
    """Files under each other's name, questions for answers, names among tags, a description for raw lyrics."""
    row = {**rows[6], "id": "qq_7"}
    write_song(tmp_path / "qq_7", row, v2=True)
    read = read_song(tmp_path / "qq_7", maps)
    lost = {group: {**row[group], "overall_text": None} for group in ("professional", "amateur")}
    assert read.row == {**row, **lost, "genre": None, "album": None, "timed_lyrics": []}
    assert +read.anomalies == {
        "groups_swapped": 1,
        "question_for_text": 18,  # ten questions and eight
        "label_among_tags": 20,
        "mid_differs": 2,
        "no_text": 2,
        "raw_is_description": 1,
        "carriage_return": 1,
        "blank_genre": 1,
        "blank_album": 1,
    }


def edit(name: str, old: str, new: str) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        text = (folder / name).read_text(encoding="utf-8")
        assert old in text
        (folder / name).write_bytes(text.replace(old, new, 1).encode())

    return change


def edit_answers(name: str, change: Callable[[list[dict[str, Any]]], object]) -> Callable[[Path], None]:
    def apply(folder: Path) -> None:
        told = json.loads((folder / name).read_text(encoding="utf-8"))
        change(told["ans"])
        (folder / name).write_text(json.dumps(told), encoding="utf-8")

    return apply


def first_tags(answers: list[dict[str, Any]]) -> list[str]:
    return answers[0]["tags"][0]["value"]


def both(old: str, words: str, patterns: str) -> Callable[[Path], None]:
    """Change the first section header of words and patterns."""

    def change(folder: Path) -> None:
        edit("str_lyric", old, words)(folder)
        edit("str_rhyme", old, patterns)(folder)

    return change


def edit_texts(old: str, new: str) -> Callable[[Path], None]:
    """Change the words of a line wherever they stand."""

    def change(folder: Path) -> None:
        for name in ("str_lyric", "raw_lyric"):
            edit(name, old, new)(folder)

    return change


AMATEUR, PROFESSIONAL = "amat_desc_json", "prof_desc_json"


@pytest.mark.parametrize(
    ("anomaly", "change"),
    [
        ("byte_order_mark", edit("str_lyric", "(verse1)", "\ufeff(verse1)")),
        ("carriage_return", edit("str_rhyme", "(verse1)\n", "(verse1)\r\n")),
        ("blank_line", edit("str_lyric", "(verse2)", "\n(verse2)")),
        ("mid_differs", edit(AMATEUR, '"s_0001"', '"s_0002"')),
        ("unknown_id", edit_answers(AMATEUR, lambda a: a[0]["tags"].append({"tid": "0" * 32, "value": ["中文"]}))),
        ("unknown_id", edit_answers(AMATEUR, lambda a: a[0]["tags"].append({"tid": UNUSED, "value": ["中文"]}))),
        ("repeated_answer", edit_answers(AMATEUR, lambda a: a[0]["tags"].append(a[0]["tags"][1]))),
        ("no_answer", edit_answers(PROFESSIONAL, lambda a: a[3]["tags"].clear())),
        ("no_answer", edit_answers(PROFESSIONAL, lambda a: a[-1]["options"].pop())),
        ("no_text", edit_answers(PROFESSIONAL, lambda a: a[0].pop("desc"))),
        ("short_text", edit_answers(PROFESSIONAL, lambda a: a[0].update(desc="好听"))),
        ("number_of_tags", edit_answers(AMATEUR, lambda a: first_tags(a).__delitem__(slice(2, None)))),
        ("number_of_tags", edit_answers(AMATEUR, lambda a: first_tags(a).extend("甲乙丙"))),
        ("spaces_around_tag", edit_answers(AMATEUR, lambda a: first_tags(a).__setitem__(0, " 安静"))),
        ("tag_twice", edit_answers(AMATEUR, lambda a: first_tags(a).__setitem__(0, first_tags(a)[1]))),
        ("blank_title", edit("meta_info", "末班车过海桥", "")),
        ("blank_artist", edit("meta_info", "林晚舟", "")),
        ("blank_genre", edit("meta_info", "pop", "")),
        ("blank_album", edit("meta_info", "album", "year")),
        ("unknown_section", both("(verse1)", "(rap1)", "(rap1)")),
        ("empty_section", both("(verse1)", "(intro1)\n(verse1)", "(intro1)\n(verse1)")),
        ("not_chinese", edit_texts("末班车", "末班K")),
        ("not_in_grammar", edit("str_rhyme", "ccc cccccc", "cRc cccccc")),
        ("lengths_differ", edit("str_rhyme", "ccc cccccc", "ccc ccccccc")),
        ("pauses_differ", edit("str_rhyme", "ccc cccccc", "cc ccccccc")),
        ("line_without_time", edit("raw_lyric", "[", "[ti:歌]\n[")),
        ("line_without_section", edit("tknz_json", "<|ss_verse|>", "")),
        ("raw_not_monotone", edit("raw_lyric", "[00:16.40]", "[09:16.40]")),
        ("tokens_not_monotone", edit("tknz_json", "[00:16.40]", "[09:16.40]")),
        ("raw_text", edit("raw_lyric", "末班车", "末班船")),
    ],
)
def test_each_anomaly_is_counted_alone(
    anomaly: str, change: Callable[[Path], None], song: Path, maps: IdMaps, rows: list[dict[str, Any]]
) -> None:
    change(song)
    read = read_song(song, maps)
    assert +read.anomalies == {anomaly: 1}
    assert anomaly in ANOMALIES
    assert set(read.row) == set(rows[0])


def test_anomalies_that_come_in_company(song: Path, maps: IdMaps) -> None:
    edit("raw_lyric", "\n", "\n[00:20.00]啦\n")(song)
    edit("tknz_json", "{", '{"[00:16.40]": "<|ss_verse|>啦", ')(song)
    edit_answers(AMATEUR, lambda a: first_tags(a).__setitem__(0, " "))(song)
    read = read_song(song, maps)
    assert +read.anomalies == {
        "raw_text": 1,
        "raw_line_count": 1,
        "same_time_twice": 1,
        "empty_tag": 1,
        "spaces_around_tag": 1,
    }
    assert [line["text"] for line in read.row["timed_sections"][:2]] == ["啦", "末班车 开过跨海的长桥"]


def test_every_anomaly_is_explained(tmp_path: Path, rows: list[dict[str, Any]], maps: IdMaps) -> None:
    """A count without a name in the table would be lost from the card."""
    write_song(tmp_path / "qq_1", rows[0], v2=True)
    assert set(read_song(tmp_path / "qq_1", maps).anomalies) <= set(ANOMALIES)


def test_the_times_of_v2_have_milliseconds(song: Path, maps: IdMaps) -> None:
    edit("tknz_json", "[00:16.40]", "[00:16.404]")(song)
    assert read_song(song, maps).row["timed_sections"][0]["start"] == 16.404


def test_performers_are_parted_by_commas_in_v1_and_by_slashes_too_in_v2() -> None:
    from collections import Counter

    text = "name : 歌\nsinger: 甲/乙,丙"
    assert parse_meta(text, Counter(), slash=False)["artist"] == ["甲/乙", "丙"]
    assert parse_meta(text, Counter(), slash=True)["artist"] == ["甲", "乙", "丙"]


def fifo(folder: Path) -> None:
    (folder / "raw_lyric").unlink()
    os.mkfifo(folder / "raw_lyric")


def link_out(folder: Path) -> None:
    outside = folder.parents[1] / "outside"
    outside.write_text("(verse1)\n春", encoding="utf-8")
    (folder / "str_lyric").unlink()
    (folder / "str_lyric").symlink_to(outside)


@pytest.mark.parametrize(
    ("kind", "change", "message"),
    [
        ("missing_file", lambda folder: (folder / "str_rhyme").unlink(), "s_0001/str_rhyme: no such file"),
        ("forbidden_file", fifo, "not a plain file"),
        ("forbidden_file", link_out, "leads out"),
        ("not_utf8", lambda folder: (folder / "raw_lyric").write_bytes("春".encode("gbk")), "not UTF-8"),
        ("unparsable", lambda folder: (folder / "tknz_json").write_text('{"[00:01.00]"'), "tknz_json: not JSON"),
        ("unparsable", lambda folder: (folder / "tknz_json").write_text("[1]"), "object of strings"),
        ("unparsable", lambda folder: (folder / AMATEUR).write_text("[" * 100_000), "not JSON"),
        ("unparsable", lambda folder: (folder / AMATEUR).write_text("[]"), "expected a JSON object"),
        ("unparsable", lambda folder: (folder / AMATEUR).write_text("{}"), "not the form of a description"),
        ("unparsable", lambda folder: (folder / AMATEUR).write_text('{"ans": []}'), "no answer"),
        ("unparsable", lambda folder: (folder / AMATEUR).write_bytes((folder / PROFESSIONAL).read_bytes()), "both"),
        ("unparsable", edit_answers(AMATEUR, lambda a: a[0]["tags"][0].update(value="安静")), "list of strings"),
        ("unparsable", edit_answers(AMATEUR, lambda a: a[0].update(desc=5)), "no text"),
        ("unparsable", edit_answers(AMATEUR, lambda a: a[-1]["options"][0].update(opid=5)), "answers on sound"),
        ("unparsable", edit_answers(AMATEUR, lambda a: a[-1]["options"][0].update(opid=99)), "not the form"),
        ("unparsable", edit("str_lyric", "(verse1)", "啦\n(verse1)"), "section header"),
        ("unparsable", lambda folder: (folder / "str_lyric").write_text(""), "no section header"),
        ("structure_differs", edit("str_rhyme", "(verse2)", "(verse3)"), "verse2.*there.*verse3.*here"),
        ("structure_differs", edit("str_rhyme", "ccc cccccc", "ccc\ncccccc"), "differ"),
    ],
)
def test_a_broken_song_is_named(
    kind: str, change: Callable[[Path], object], message: str, song: Path, maps: IdMaps
) -> None:
    change(song)
    with pytest.raises(BrokenSongError, match=message) as caught:
        read_song(song, maps, song.parent)
    assert caught.value.kind == kind
    assert kind in BROKEN
    assert isinstance(caught.value, UnreadableFileError)


def test_a_file_over_the_bound_is_not_read(song: Path, maps: IdMaps, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(caimd_texts, "MAX_FILE_BYTES", 100)
    with pytest.raises(BrokenSongError, match="expected at most 100") as caught:
        read_song(song, maps)
    assert caught.value.kind == "too_large"


# finding


def test_v1_is_found_in_a_clone_and_in_its_folders(tmp_path: Path, rows: list[dict[str, Any]]) -> None:
    write_release(tmp_path, rows[:3])
    (tmp_path / ".git" / "s_0009").mkdir(parents=True)
    for source in (tmp_path, tmp_path / "dataset", tmp_path / "dataset" / "bm-data"):
        release = find_release(source)
        assert release.layout == "v1"
        assert {split: [path.name for path in songs] for split, songs in release.splits.items()} == {
            "test": ["s_0001", "s_0002", "s_0003"]
        }
        assert read_maps(source).options["3"] == "清晰"


def write_v2(folder: Path, rows: list[dict[str, Any]]) -> Path:
    """Two songs of V1, three others, one of which is a song of V1 once more."""
    for row in rows[:2]:
        write_song(folder / "MuChin-1000" / "bm-data" / row["id"], row)
    named = [{**row, "id": name} for row, name in zip(rows[2:5], ("12", "qq_3", "qq_4"), strict=True)]
    write_release(folder, named, v2=True)
    match = {"query": "fp.enlarged/qq_3_src.json", "matches": [{"score": 0.98, "path": "fp.v1/s_0001_src.json"}]}
    (folder / OVERLAPS[0]).write_text(json.dumps(match) + "\n")
    return folder


def test_v2_keeps_songs_of_v1_apart(tmp_path: Path, rows: list[dict[str, Any]]) -> None:
    release = find_release(write_v2(tmp_path, rows))
    assert release.layout == "v2"
    assert {split: [path.name for path in songs] for split, songs in release.splits.items()} == {
        "test": ["s_0001", "s_0002"],
        "train": ["12", "qq_4"],
        "repeated": ["qq_3"],
    }
    first = find_release(tmp_path, "v1")
    assert list(first.splits) == ["test"]
    assert [reason for _, reason in first.left_out] == ["not a song of V1"] * 3


def test_v2_needs_the_list_of_songs_in_both(tmp_path: Path, rows: list[dict[str, Any]]) -> None:
    path = write_v2(tmp_path, rows) / OVERLAPS[0]
    elsewhere = path.rename(tmp_path.parent / f"{tmp_path.name}.jsonl")
    with pytest.raises(NoDataError, match="muchin_5790_1000_overlap"):
        find_release(tmp_path)
    assert [path.name for path in find_release(tmp_path, overlap=elsewhere).splits["repeated"]] == ["qq_3"]
    elsewhere.write_text("{}\n")
    with pytest.raises(UnreadableFileError, match="expected lines such as"):
        find_release(tmp_path, overlap=elsewhere)


def test_folders_that_are_no_songs_are_named(tmp_path: Path, rows: list[dict[str, Any]]) -> None:
    source = tmp_path / "copy"
    write_release(source, rows[:1])
    songs = source / "dataset" / "bm-data"
    write_song(songs / "s 0002", rows[1])
    write_song(source / "again" / "s_0001", rows[0])
    write_song(tmp_path / "s_0003", rows[2])
    (songs / "s_0003").symlink_to(tmp_path / "s_0003")
    (songs / "loop").symlink_to(source)
    release = find_release(source)
    assert [path.name for path in release.splits["test"]] == ["s_0001"]
    assert {Path(song).name: reason.split(":")[0] for song, reason in release.left_out} == {
        "s 0002": "a name that is no id",
        "s_0001": "a second folder of song s_0001",
        "s_0003": "a link that leads out of the release",
    }


def test_nothing_to_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(NoDataError):
        find_release(tmp_path / "nowhere")
    with pytest.raises(NoDataError):
        find_release(tmp_path)
    with pytest.raises(UnknownNameError, match="v2"):
        find_release(tmp_path, "v3")
    with pytest.raises(NoDataError, match="qidmap"):
        read_maps(tmp_path, tmp_path)


def test_maps_of_another_release_are_refused(tmp_path: Path) -> None:
    write_maps(tmp_path)
    parts = (tmp_path / "subqidmap.json").read_text(encoding="utf-8")
    (tmp_path / "subqidmap.json").write_text(parts.replace("歌曲用途", "歌曲"), encoding="utf-8")
    with pytest.raises(UnreadableFileError, match="expected '歌曲用途'"):
        read_maps(tmp_path)
    (tmp_path / "subqidmap.json").write_text('{"a": 1}')
    with pytest.raises(UnreadableFileError, match="object of strings"):
        read_maps(tmp_path)


def test_a_song_has_seven_files() -> None:
    assert len(FILES) == len(set(FILES)) == 7
