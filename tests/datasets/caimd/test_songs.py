"""`caimd`: the form of the rows, the demo songs, and the JSON of the paper."""

from __future__ import annotations

import copy
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.datasets.making import run_script

from music_evals import repositories
from music_evals.annotations import AUDIO_EFFECTS, DIMENSIONS, GROUPS, theme_of_row
from music_evals.datasets.caimd.demo import demo_rows, line_pattern, read_lyrics
from music_evals.datasets.caimd.paper_json import from_json, joined_description, to_json
from music_evals.datasets.caimd.schema import SECTION_TYPES, effect_tags, features, load_rows, section_row, song_texts
from music_evals.datasets.manifest import parquet_bytes, rows_sha256
from music_evals.errors import InvalidInputError, InvalidLyricsError, InvalidTagsError, UnknownNameError
from music_evals.lyrics.tag_groups import GROUPINGS

from .caimd_copies import DEV, dev_rows

FOLDER = Path(__file__).resolve().parents[3] / "datasets_scripts" / "caimd"
POEMS = {f"demo_{number:04d}" for number in range(19, 25)}
needs_dev = pytest.mark.skipif(not DEV.exists(), reason="the development songs are not beside this repository")


@pytest.fixture(scope="module")
def rows() -> list[dict[str, Any]]:
    return list(load_rows(dataset=FOLDER))


def lines_of(row: dict[str, Any], field: str = "lines") -> list[str]:
    return [line for section in row["structure"] for line in section[field]]


# the form of the rows


def test_a_row_has_the_dimensions_of_both_groups_in_their_order() -> None:
    columns = features()
    for group in GROUPS:
        dimensions = columns[group]["dimensions"]
        assert list(dimensions) == list(DIMENSIONS[group])
        assert set(dimensions[AUDIO_EFFECTS]) - set(dimensions["lyric_themes"]) == {
            "sound_quality", "live", "lo_fi", "option_texts",
        }  # fmt: skip


def test_lists_of_structs_come_back_as_lists_of_dicts(rows: list[dict[str, Any]]) -> None:
    first = rows[0]["structure"][0]
    assert first["label"] == "verse1"
    assert first["type"] == "verse"
    assert len(first["lines"]) == len(first["rhyme"]) == 4
    assert isinstance(rows[0]["timed_lyrics"][0]["start"], float)


@needs_dev
def test_a_line_of_the_development_songs_is_a_row() -> None:
    import datasets
    import pyarrow as pa
    import pyarrow.parquet as pq

    songs = dev_rows()
    table = pq.read_table(pa.BufferReader(parquet_bytes(songs, features())))
    assert len(songs) == 469
    assert list(datasets.Dataset(table)) == songs


def test_load_rows_names_what_there_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UnknownNameError, match="unknown split of caimd/demo 'train'; known: test"):
        load_rows("demo", "train", dataset=FOLDER)
    monkeypatch.setattr(repositories, "_home", lambda: None)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UnknownNameError, match="unknown dataset 'caimd'"):
        load_rows()


def test_load_rows_finds_the_songs_of_the_clone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: list[dict[str, Any]]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert list(load_rows()) == rows


def test_load_rows_reads_every_shard_in_order(tmp_path: Path, rows: list[dict[str, Any]]) -> None:
    folder = tmp_path / "data" / "v1"
    folder.mkdir(parents=True)
    for number, part in enumerate((rows[:2], rows[2:5])):
        (folder / f"test-{number:05d}-of-00002.parquet").write_bytes(parquet_bytes(part, features()))
    assert list(load_rows("v1", "test", dataset=tmp_path)) == rows[:5]


@pytest.mark.parametrize(
    ("quality", "live", "lo_fi", "tags"),
    [
        ("clear", False, False, ["清晰"]),
        ("unclear", True, True, ["不清晰", "现场版", "Lo-Fi"]),
        ("clear", None, True, ["清晰", "Lo-Fi"]),
        (None, None, None, []),
    ],
)
def test_effect_tags(quality: str | None, live: bool | None, lo_fi: bool | None, tags: list[str]) -> None:
    assert effect_tags(quality, live=live, lo_fi=lo_fi) == tags


# the demo songs


def test_the_demo_file_is_built_from_its_source(rows: list[dict[str, Any]]) -> None:
    """The rhymes of the file are those that the official method finds now."""
    assert demo_rows() == rows


def test_build_script_writes_the_demo(
    tmp_path: Path, rows: list[dict[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    run_script(FOLDER / "build.py", "--demo", "--out", tmp_path)
    assert capsys.readouterr().out.split() == ["24", "data/demo/test-00000-of-00001.parquet"]
    built = json.loads((tmp_path / "manifest.json").read_text())
    assert built == json.loads((FOLDER / "manifest.json").read_text())
    assert built["files"]["data/demo/test-00000-of-00001.parquet"]["rows_sha256"] == rows_sha256(rows)


def test_demo_songs_are_named_as_such(rows: list[dict[str, Any]]) -> None:
    assert [row["id"] for row in rows] == [f"demo_{number:04d}" for number in range(1, 25)]
    assert len({row["title"] for row in rows}) == 24


def test_demo_lyrics_are_in_the_grammar_of_the_release(rows: list[dict[str, Any]]) -> None:
    for row in rows:
        assert 12 <= len(lines_of(row)) <= 45, row["id"]
        assert {section["type"] for section in row["structure"]} <= set(SECTION_TYPES)
        for line, pattern in zip(lines_of(row), lines_of(row, "rhyme"), strict=True):
            assert pattern == line_pattern(line, rhymes=pattern.endswith("R")), (row["id"], line)


def test_demo_covers_every_kind_of_section(rows: list[dict[str, Any]]) -> None:
    assert {section["type"] for row in rows for section in row["structure"]} == set(SECTION_TYPES)


def test_demo_times_go_on_and_carry_the_lines(rows: list[dict[str, Any]]) -> None:
    for row in rows:
        starts = [line["start"] for line in row["timed_lyrics"]]
        assert starts == sorted(set(starts))
        assert 0 < starts[0] < starts[-1] < 300
        assert [line["text"] for line in row["timed_lyrics"]] == lines_of(row)
        assert [line["start"] for line in row["timed_sections"]] == starts


def test_demo_descriptions_keep_the_limits_of_the_release(rows: list[dict[str, Any]]) -> None:
    few = {("amateur", name) for name in ("song_purpose", "culture_region", "target_audience")}
    for row in rows:
        for group in GROUPS:
            assert 50 <= len(row[group]["overall_text"]) <= 180
            for name, told in row[group]["dimensions"].items():
                least = 1 if (group, name) in few or name == AUDIO_EFFECTS else 3
                assert least <= len(told["tags"]) <= 5, (row["id"], group, name)
                assert len(set(told["tags"])) == len(told["tags"]), (row["id"], group, name)


def test_demo_has_every_answer_on_sound(rows: list[dict[str, Any]]) -> None:
    for group in GROUPS:
        effects = [row[group]["dimensions"][AUDIO_EFFECTS] for row in rows]
        for key in ("sound_quality", "live", "lo_fi"):
            assert len({effect[key] for effect in effects}) == 2, (group, key)
    remarks = [row["professional"]["dimensions"][AUDIO_EFFECTS]["option_texts"] for row in rows]
    assert any(remark["live"] for remark in remarks)
    assert any(remark["lo_fi"] for remark in remarks)


@pytest.mark.parametrize("name", ["genre", "emotion", "purpose"])
def test_demo_songs_fall_into_the_groups_of_the_discrepancy_study(name: str, rows: list[dict[str, Any]]) -> None:
    grouping = GROUPINGS[name]
    for group, dimension in grouping.dimensions.items():
        found = Counter(part for row in rows for part in grouping.assign(row[group]["dimensions"][dimension]["tags"]))
        assert sum(count >= 3 for count in found.values()) >= 6, (group, found)


@needs_dev
def test_no_line_of_our_own_is_in_the_development_songs(rows: list[dict[str, Any]]) -> None:
    """Short phrases are common property; lines of eight characters and more are not."""
    known = {line.replace(" ", "") for song in dev_rows() for line in lines_of(song)}
    ours = {line.replace(" ", "") for row in rows if row["id"] not in POEMS for line in lines_of(row)}
    assert not {line for line in ours & known if len(line) >= 8}


def test_a_header_without_lines_repeats_its_section() -> None:
    parts = read_lyrics("(verse1)\n春眠不觉晓\n(chorus1)\n处处 闻啼鸟\n(verse1)\n")
    assert [part.label for part in parts] == ["verse1", "chorus1", "verse1"]
    assert parts[0] == parts[2]


@pytest.mark.parametrize("text", ["春眠不觉晓", "(verse1)\n(verse2)\n春", "(rap1)\n春"])
def test_broken_demo_lyrics_are_named(text: str) -> None:
    with pytest.raises(InvalidInputError):
        read_lyrics(text)


@pytest.mark.parametrize("line", ["春 眠，", "春  眠", " 春", "", "spring"])
def test_a_line_of_the_demo_is_characters_and_single_spaces(line: str) -> None:
    with pytest.raises(InvalidInputError, match="single spaces"):
        line_pattern(line, rhymes=False)


# the JSON of the paper


def test_json_has_theme_sections_and_patterns(rows: list[dict[str, Any]]) -> None:
    row = rows[22]
    told = json.loads(to_json(row))
    assert told["lyrics"].startswith("(verse1)\n春眠不觉晓\n处处闻啼鸟\n")
    assert told["rhyme"].startswith("(verse1)\nccccR\nccccR\nccccc\nccccR\n(verse2)\n")
    assert told["theme"] == row["professional"]["dimensions"]["lyric_themes"]["text"] == theme_of_row(row)
    aspect = told["descriptions"]["amateur"]["aspects"]["song_purpose"]
    assert aspect == {"name": "歌曲用途", "tags": ["教小孩背诗", "校园活动"], "text": "教小朋友背古诗。"}
    joined = told["descriptions"]["amateur"]["joined"].split("\n")
    assert joined[0] == row["amateur"]["overall_text"]
    assert "歌曲用途：教小孩背诗、校园活动。教小朋友背古诗。" in joined
    assert len(joined) == 12


def test_demo_songs_come_back_from_json(rows: list[dict[str, Any]]) -> None:
    for row in rows:
        assert from_json(to_json(row)) == row
        assert from_json(to_json(row, indent=None)) == row


words = st.text(st.characters(min_codepoint=0x4E00, max_codepoint=0x9FFF), min_size=1, max_size=6)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
lyric_lines = st.lists(words, min_size=1, max_size=3).map(" ".join)


@st.composite
def structures(draw: st.DrawFn) -> list[dict[str, Any]]:
    parts = []
    for _ in range(draw(st.integers(0, 4))):
        lines = draw(st.lists(lyric_lines, max_size=4))
        patterns = [line_pattern(line, rhymes=draw(st.booleans())) for line in lines]
        label = draw(st.sampled_from(SECTION_TYPES)) + draw(st.sampled_from(["", "1", "2", "12"]))
        parts.append(section_row(label, lines, patterns))
    return parts


def descriptions(group: str) -> st.SearchStrategy[dict[str, Any]]:
    told = st.fixed_dictionaries({"tags": st.lists(texts, max_size=5), "text": st.none() | texts})
    maybe = st.none() | st.booleans()
    effects = st.fixed_dictionaries(
        {
            "tags": st.lists(texts, max_size=3),
            "text": st.none() | texts,
            "sound_quality": st.sampled_from(["clear", "unclear", None]),
            "live": maybe,
            "lo_fi": maybe,
            "option_texts": st.none()
            | st.fixed_dictionaries({}, optional={"live": st.none() | texts, "lo_fi": st.none() | texts}),
        }
    )
    dimensions = {name: effects if name == AUDIO_EFFECTS else told for name in DIMENSIONS[group]}
    return st.fixed_dictionaries({"overall_text": st.none() | texts, "dimensions": st.fixed_dictionaries(dimensions)})


seconds = st.floats(0, 1000)
songs = st.fixed_dictionaries(
    {
        "id": texts,
        "title": st.none() | texts,
        "artist": st.lists(texts, max_size=3),
        "genre": st.none() | texts,
        "album": st.none() | texts,
        **{group: descriptions(group) for group in GROUPS},
        "structure": structures(),
        "timed_lyrics": st.lists(st.fixed_dictionaries({"start": seconds, "text": texts}), max_size=3),
        "timed_sections": st.lists(
            st.fixed_dictionaries({"start": seconds, "section": st.none() | texts, "text": texts}), max_size=3
        ),
    }
)


@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(songs)
def test_any_row_comes_back_from_json(row: dict[str, Any]) -> None:
    assert from_json(to_json(row)) == row


@pytest.mark.parametrize("remarks", [{}, {"live": "掌声"}, {"lo_fi": None}, {"live": None, "lo_fi": "噪声"}, None])
def test_remarks_on_sound_come_back_as_they_are(remarks: dict[str, Any] | None, rows: list[dict[str, Any]]) -> None:
    row = copy.deepcopy(rows[0])
    row["amateur"]["dimensions"][AUDIO_EFFECTS]["option_texts"] = remarks
    assert from_json(to_json(row)) == row


@needs_dev
def test_development_songs_come_back_from_json() -> None:
    written = list(map(json.loads, DEV.read_text(encoding="utf-8").splitlines()))
    for row in (*dev_rows(), *written):  # with all keys of the remarks on sound, and with those that were written
        assert from_json(to_json(row)) == row


def test_a_header_is_what_the_lyric_score_takes_for_one(rows: list[dict[str, Any]]) -> None:
    told = json.loads(to_json(rows[0]))
    with pytest.raises(InvalidInputError, match=r"header such as \(verse1\) first, got '\(verse 1\)'"):
        from_json(json.dumps({**told, "lyrics": told["lyrics"].replace("(verse1)", "(verse 1)", 1)}))
    row = copy.deepcopy(rows[0])
    row["structure"][1] |= {"label": "verse 1", "type": "verse "}
    with pytest.raises(InvalidInputError, match="read back"):
        to_json(row)


def change_line(row: dict[str, Any], line: str) -> None:
    row["structure"][0]["lines"][0] = line


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (lambda row: change_line(row, "(verse9)"), InvalidInputError),
        (lambda row: change_line(row, "一\n二"), InvalidLyricsError),
        (lambda row: row["structure"][0].update(type="chorus"), InvalidInputError),
        (lambda row: row["structure"][0]["rhyme"].pop(), InvalidInputError),
        (lambda row: row["timed_lyrics"][0].update(start=float("nan")), InvalidInputError),
        (lambda row: row["amateur"]["dimensions"]["song_purpose"].update(tags="助眠"), InvalidTagsError),
        (lambda row: row.pop("album"), InvalidInputError),
    ],
)
def test_a_row_that_json_cannot_hold_is_refused(change: Any, error: type, rows: list[dict[str, Any]]) -> None:
    row = copy.deepcopy(rows[0])
    change(row)
    with pytest.raises(error):
        to_json(row)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda told: told.update(theme="别的"), "theme"),
        (lambda told: told["descriptions"]["amateur"].update(joined=""), "joined"),
        (lambda told: told.update(lyrics="没有标题"), "section header"),
        (lambda told: told.update(rhyme="(verse1)\ncc"), "same sections"),
        (lambda told: told.pop("descriptions"), "to_json"),
        (lambda told: told["timed_lyrics"][0].update(start="1"), "finite number"),
        (lambda told: told["descriptions"]["amateur"]["aspects"]["song_purpose"].update(name="?"), "song_purpose"),
    ],
)
def test_json_that_contradicts_itself_is_refused(change: Any, message: str, rows: list[dict[str, Any]]) -> None:
    told = json.loads(to_json(rows[0]))
    change(told)
    with pytest.raises(InvalidInputError, match=message):
        from_json(json.dumps(told))


@pytest.mark.parametrize("text", ["", "[]", "null", '{"id": NaN}', "[" * 100_000])
def test_text_that_is_no_such_json_is_refused(text: str) -> None:
    with pytest.raises(InvalidInputError, match="to_json"):
        from_json(text)


def test_theme_falls_back_on_the_amateur(rows: list[dict[str, Any]]) -> None:
    row = copy.deepcopy(rows[0])
    row["professional"]["dimensions"]["lyric_themes"]["text"] = None
    row["amateur"]["dimensions"]["lyric_themes"]["text"] = " 离别\n"
    assert theme_of_row(row) == "离别"
    row["amateur"]["dimensions"]["lyric_themes"]["text"] = None
    assert theme_of_row(row) is None
    row["professional"]["dimensions"]["lyric_themes"]["text"] = " \n"
    assert theme_of_row(row) is None
    assert theme_of_row({"id": "a", "amateur": None, "professional": {"dimensions": {}}}) is None
    assert "歌词和主题内容：失恋、回忆、夜晚、回家。\n" in joined_description(row["amateur"], "amateur")


def test_song_texts_drop_numbers_on_request(rows: list[dict[str, Any]]) -> None:
    words, pattern = song_texts(rows[22], numbered=False)
    assert words.split("\n")[0] == pattern.split("\n")[0] == "(verse)"


# the card


def test_the_card_lists_songs_and_dimensions_as_they_are(rows: list[dict[str, Any]]) -> None:
    card = (FOLDER / "README.md").read_text(encoding="utf-8")
    for group, table in DIMENSIONS.items():
        for name, row in table.items():
            assert f"| {group} | `{name}` | {row.english} | {row.chinese} |" in card
    for row in rows:
        counts = f"{len(row['structure'])} | {len(lines_of(row))}"
        tags = "、".join(row["professional"]["dimensions"]["musical_genres"]["tags"])
        assert f"| `{row['id']}` | {row['title']} | {row['genre'] or ''} | {counts} | {tags} |" in card
