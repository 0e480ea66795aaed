"""The page on descriptions: its callbacks as plain functions, its layout in a process of its own."""

from __future__ import annotations

import csv
import json
import math
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest
import soundfile

from music_evals.annotations import DIMENSIONS, GROUPS, SCORED
from music_evals.benchmark.records import read_records
from music_evals.benchmark.tasks.songs.songs import load_songs
from music_evals.cli import main
from music_evals.datasets.caimd.demo import demo_rows
from music_evals.errors import (
    FileTooLargeError,
    InvalidTagsError,
    ModelUnavailableError,
    NoDataError,
    UnknownNameError,
    UnreadableFileError,
)
from music_evals.pipelines.descriptions import score_description
from music_evals.ui.spaces import description as page
from music_evals.ui.spaces import tag_comparison
from music_evals.ui.spaces.words_muchin import DESCRIPTION_WORDS
from music_evals.ui.widgets import tag_view

SPACE = Path(__file__).resolve().parents[3] / "spaces" / "description"
FIRST = "Song purpose: 睡前、独处\n适用人群：年轻人"
SECOND = "song_purpose: 睡前; 放松\nTarget audience: 年轻人，上班族\nSinging & voice: 男声"


@pytest.fixture(scope="module")
def songs():
    return load_songs(str(SPACE / "songs.jsonl"), columns=GROUPS)


@pytest.fixture(autouse=True)
def no_weights(monkeypatch):
    """What is on this machine does not decide the tests."""
    monkeypatch.setattr(tag_comparison, "_bge_commit", lambda: None)
    monkeypatch.delenv(page.TAGGER_VARIABLE, raising=False)


@pytest.fixture(autouse=True)
def updates(monkeypatch):
    """Gradio takes seconds to import, and all that is asked of it here is a dict."""
    monkeypatch.setattr(page, "_matrix_choice", lambda _found, chosen, _language: {"value": chosen})


def text_of(view: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", view))


def test_songs_are_our_own(songs):
    rows = {row["id"]: row for row in demo_rows(lambda lines: [False] * len(lines))}
    for line in (SPACE / "songs.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        assert row == {key: rows[row["id"]][key] for key in row}
    assert len(songs) == 6


def test_names_count_in_both_languages_and_as_in_the_data():
    assert tag_comparison.parse_description(FIRST, "amateur") == {
        "song_purpose": ["睡前", "独处"],
        "target_audience": ["年轻人"],
    }
    assert tag_comparison.parse_description("抒情，慢速、\n 钢琴", "amateur") == {"tags": ["抒情", "慢速", "钢琴"]}
    assert tag_comparison.parse_description("", "amateur") == {}
    for group in GROUPS:
        for dimension in DIMENSIONS[group].values():
            for name in (dimension.name, dimension.english.upper(), dimension.chinese):
                assert tag_comparison.parse_description(f"{name}: 甲", group) == {dimension.name: ["甲"]}


@pytest.mark.parametrize("language", ["en", "zh"])
def test_what_is_written_is_read_back(songs, language):
    for song in songs:
        for group in GROUPS:
            tags = {name: list(found) for name, found in song.tags[group].items()}
            assert (
                tag_comparison.parse_description(tag_comparison.write_description(tags, group, language), group) == tags
            )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("mood: 甲", "line 1: mood is no dimension of the professional group; they are: Expressive"),
        ("song_purpose: 甲\n乙", "line 2: a line without the name"),
        ("song_purpose: 甲\n歌曲用途：乙", "line 2: 歌曲用途 stands here a second time"),
        (f"song_purpose: {'甲' * 61}", "line 1: a tag of 61 characters, at most 60"),
        ("song_purpose: " + "甲,乙," * 26, "line 1: 52 tags, at most 50"),
        ("\n".join(f"{name}: " + "甲," * 40 for name in list(DIMENSIONS["professional"])[:6]), "240 tags, at most 200"),
        ("甲" * 6001, "6001 characters in a description, at most 6000"),
    ],
)
def test_limits_and_mistakes_are_told_with_their_line(text, said):
    with pytest.raises(InvalidTagsError, match=re.escape(said)):
        tag_comparison.parse_description(text, "professional")
    with pytest.raises(InvalidTagsError, match=r"[\u4e00-\u9fff]"):
        tag_comparison.parse_description(text, "professional", "zh")


def test_a_group_that_does_not_exist():
    with pytest.raises(UnknownNameError):
        tag_comparison.parse_description("甲", "experts")


def test_scores_are_those_of_the_library(songs):
    first, second = songs[0].tags["professional"], songs[1].tags["professional"]
    found = tag_comparison.compare({**first}, {**second}, "professional")
    wanted = score_description({"professional": second}, {"professional": first}, encoder="char-ngrams")
    assert found.average == wanted.values["professional_average"]
    for name in SCORED["professional"]:
        assert found.similarities[name].value == wanted.values[f"professional/{name}"]
        assert found.cosines[name].mean() == pytest.approx(found.similarities[name].value, abs=1e-6)
    assert "lyric_themes" in found.similarities
    assert "not part of the average" in tag_view.table_html(found)


def test_two_lists_by_hand():
    """One of three tags is shared and one is near: best matches 1, 0 and the cosine of 钢琴伴奏 and 钢琴."""
    found, values, table, _, matrix, python, shell, *_ = page.compare_descriptions(
        "抒情,慢速", "抒情", encoder="char-ngrams"
    )
    assert values["scores"]["tags"]["value"] == pytest.approx(0.5)
    assert values["scores"]["tags"]["precision"] == pytest.approx(0.5)
    assert values["scores"]["tags"]["recall"] == pytest.approx(1.0)
    assert math.isnan(values["average"])
    assert "all tags" in table
    assert "抒情: 抒情 (1.000)" in matrix
    assert matrix.count("▾") == 2  # once in the legend
    assert "tag_semantic_similarity" in python
    assert "python -" in shell
    assert found.group == ""


def test_what_is_undefined_is_shown_so_with_its_reason():
    outputs = page.compare_descriptions(FIRST, SECOND, "amateur", "char-ngrams", "f1")
    found, values, table = outputs[:3]
    assert math.isnan(values["scores"]["vocal_components"]["value"])
    assert "undefined" in text_of(table)
    assert "no tags to judge" in table
    assert math.isnan(found.average)
    assert "has none: Singing &amp; voice" in table
    stored = json.loads(Path(outputs[-3]).read_text(encoding="utf-8"))
    assert stored["scores"]["vocal_components"]["value"] is None
    with Path(outputs[-2]).open(encoding="utf-8", newline="") as file:
        rows = {row["dimension"]: row for row in csv.DictReader(file)}
    assert rows["vocal_components"]["value"] == ""
    assert rows["song_purpose"]["generated"] == "睡前、独处"
    assert "参考一侧" not in table
    assert "待评一侧没有标签" in tag_view.table_html(found, "zh")
    assert "nothing to compare" in tag_view.matrix_html(found, "vocal_components")
    lyrics_only = tag_comparison.compare({"lyric_themes": ["甲"]}, {"lyric_themes": ["甲"]}, "amateur")
    assert "No average" in tag_view.table_html(lyrics_only)


def test_the_matrix_marks_the_best_matches():
    found = tag_comparison.compare(
        {"song_purpose": ["睡前", "运动健身"]}, {"song_purpose": ["健身", "睡前"]}, "amateur"
    )
    view = tag_view.matrix_html(found, "song_purpose", "zh")
    cells = [text_of(cell).strip() for cell in re.findall(r'<td class="tg-n tg-cell".*?</td>', view)]
    assert [cell.rpartition(" ")[0] for cell in cells] == ["", "▸▾", "▸▾", ""]
    assert cells[1].endswith("1.00")
    assert "歌曲用途：行为 A" in view
    assert "compare two descriptions first" in tag_view.matrix_html(None, None).lower()


def test_descriptions_of_two_kinds_or_of_nothing_are_refused():
    with pytest.raises(InvalidTagsError):
        page.compare_descriptions("甲", "song_purpose: 乙")
    with pytest.raises(NoDataError):
        page.compare_descriptions(" ", "\n")
    with pytest.raises(NoDataError, match="两侧都没有标签"):
        page.compare_descriptions("song_purpose:", "", language="zh")


def test_encoders_that_are_not_here_are_refused_and_that_is_said_plainly():
    assert tag_comparison.available_encoders() == ["char-ngrams"]
    assert "knows no meaning" in page._encoder_text("en")
    assert "不懂词义" in page._encoder_text("zh")
    with pytest.raises(UnknownNameError):
        page.compare_descriptions(FIRST, SECOND, "amateur", "BAAI/bge-large-zh-v1.5")
    with pytest.raises(UnknownNameError):
        page.compare_descriptions(FIRST, SECOND, "amateur", "../../etc")
    with pytest.raises(UnknownNameError):
        page.compare_descriptions(FIRST, SECOND, "amateur", "char-ngrams", "median")


def test_bge_is_offered_first_where_its_weights_are(monkeypatch):
    monkeypatch.setattr(tag_comparison, "_bge_commit", lambda: "a" * 40)
    assert tag_comparison.available_encoders() == ["BAAI/bge-large-zh-v1.5", "char-ngrams"]
    assert "is on the machine" in page._encoder_text("en")


def test_an_encoder_with_weights_takes_a_card_for_each_call(monkeypatch):
    plain, calls = tag_comparison._encoder("char-ngrams"), []

    class Weights:
        name, revision = "BAAI/bge-large-zh-v1.5", "a" * 40

        def encode(self, texts):
            return plain.encode(texts)

    def on_card(name, texts):
        calls.append((name, texts))
        return Weights().encode(texts)

    monkeypatch.setattr(tag_comparison, "_encoder", lambda _name: Weights())
    monkeypatch.setattr(tag_comparison, "_encode_on_gpu", on_card)
    found = tag_comparison.compare({"tags": ["慢速"]}, {"tags": ["慢速"]}, "", Weights.name)
    assert found.similarities["tags"].value == pytest.approx(1)
    assert (found.encoder, found.revision) == (Weights.name, Weights.revision)
    assert calls == [(Weights.name, ["慢速"])]


def test_the_code_gives_the_same_score(tmp_path, monkeypatch):
    found = page.compare_descriptions(SECOND, FIRST, "amateur", "char-ngrams", "best_match")[0]
    python, shell = tag_comparison.code_of(found)
    space: dict = {}
    exec(python, space)  # noqa: S102
    assert space["result"].values["amateur_average"] == found.average
    monkeypatch.chdir(tmp_path)
    files, _, command = shell.rpartition("music-evals ")
    subprocess.run(["bash", "-c", files], check=True)
    assert main(command.replace("\\\n", " ").split()) == 0
    records = read_records(tmp_path / "results" / "description" / "records")
    [score] = [row for row in records if row.get("metric") == "amateur_average"]
    assert score["value"] == pytest.approx(found.average)
    lists = page.compare_descriptions("抒情,慢速", "抒情")[0]
    exec(tag_comparison.code_of(lists)[0], space)  # noqa: S102
    assert space["result"].value == lists.similarities["tags"].value


def test_tags_of_a_song_stand_side_by_side(songs):
    for language in ("en", "zh"):
        view = tag_view.song_html(songs[0], language=language)
        assert view.count("data-dimension") == len({*DIMENSIONS["professional"], *DIMENSIONS["amateur"]})
        for group in GROUPS:
            assert all(tag in view for tags in songs[0].tags[group].values() for tag in tags)
    assert "两组的余弦" in view
    with pytest.raises(UnknownNameError):
        page.song_tags({}, "demo_1", "char-ngrams")


def test_every_example_is_compared(songs):
    examples = page._examples(songs)
    assert len({example.label("zh") for example in examples}) == len(examples) == 6
    for example in examples:
        outputs = page.compare_descriptions(*example.texts("zh"), example.group, language="zh")
        assert outputs[0].similarities


def test_tags_of_visitors_stay_text():
    outputs = page.compare_descriptions("<img src=x onerror=alert(1)>,${1}", "{{2}},<b>")
    for view in (outputs[2], outputs[4]):
        assert "<img" not in view
        assert "<b>" not in view
        assert "${" not in view
        assert "{{" not in view


def test_stages_are_told():
    steps: list[str] = []
    page.compare_descriptions(FIRST, SECOND, "amateur", progress=lambda _share, text: steps.append(text), language="zh")
    assert steps == ["读取标签", "编码并比较", "写出结果"]


class Probe:
    """A tagger that says how long the recording is that it hears, and where it lies."""

    name = "probe"
    groups = ("amateur",)

    def __init__(self):
        self.heard: list[Path] = []

    def tag(self, path):
        self.heard.append(Path(path))
        samples, rate = soundfile.read(path)
        return {"amateur": {"song_purpose": [f"{len(samples) / rate:.1f} s"], "perception_of_tempo": []}}

    def describe(self):
        return {}


@pytest.fixture
def probe(monkeypatch):
    tagger = Probe()
    monkeypatch.setenv(page.TAGGER_VARIABLE, "somebody/tagger")
    monkeypatch.setattr(page, "_load_tagger", lambda _place: tagger)
    return tagger


def recording(path: Path, seconds: float) -> str:
    rate = 8000
    soundfile.write(path, 0.1 * np.sin(np.arange(int(rate * seconds)) / 7), rate)
    return str(path)


def test_a_recording_is_described_from_a_copy_of_our_own(probe, tmp_path):
    file = recording(tmp_path / "clip.wav", 1.5)
    values, view, python, json_path, csv_path, receipt = page.tag_recording(file, "zh")
    assert values["tags"]["amateur"]["song_purpose"] == ["1.5 s"]
    assert "歌曲用途" in view
    assert "快慢感受" not in view  # no tags there
    assert "from_pretrained('somebody/tagger')" in python
    assert json.loads(Path(json_path).read_text(encoding="utf-8"))["tagger"] == "probe"
    assert "song_purpose" in Path(csv_path).read_text(encoding="utf-8")
    assert "probe" in receipt
    assert str(probe.heard[0]) != file
    assert not probe.heard[0].exists()


@pytest.mark.slow
def test_recordings_that_are_none_or_too_long_are_refused(probe, tmp_path, monkeypatch):
    with pytest.raises(NoDataError):
        page.tag_recording(None)
    text = tmp_path / "a.txt"
    text.write_text("no music", encoding="utf-8")
    with pytest.raises(UnknownNameError):
        page.tag_recording(str(text))
    text.rename(tmp_path / "a.wav")
    with pytest.raises(UnreadableFileError, match=r"^a\.wav cannot be read as a recording"):
        page.tag_recording(str(tmp_path / "a.wav"))
    with pytest.raises(FileTooLargeError, match=r"long\.wav is too long or too large: at most 6 minutes and 64 MiB"):
        page.tag_recording(recording(tmp_path / "long.wav", 361))
    with pytest.raises(FileTooLargeError, match="最长 6 分钟"):
        page.tag_recording(recording(tmp_path / "long.wav", 361), "zh")
    monkeypatch.setattr(page, "MAX_RECORDING_BYTES", 100)
    with pytest.raises(FileTooLargeError):
        page.tag_recording(recording(tmp_path / "large.wav", 1))
    assert not probe.heard


def test_without_a_tagger_the_page_says_how_to_get_one():
    for language in ("en", "zh"):
        told = page._probe_text(language)
        assert page.TAGGER_VARIABLE in told
        assert "music-evals train models/music_tagger/train.yaml" in told
        with pytest.raises(ModelUnavailableError, match="music-evals train"):
            page.tag_recording("a.wav", language)


def test_a_tagger_is_loaded_from_a_folder(tmp_path, monkeypatch):
    loaded = {}

    class Plugin:
        @classmethod
        def from_pretrained(cls, folder, **options):
            loaded.update(folder=folder, **options)
            return Probe()

    (tmp_path / "config.json").write_text('{"model_type": "music_tagger"}', encoding="utf-8")
    monkeypatch.setattr(page, "load_plugin", lambda _registry, _name, _kind: Plugin)
    page._load_tagger.cache_clear()
    assert page._load_tagger(str(tmp_path)).name == "probe"
    assert loaded == {"folder": str(tmp_path), "features_cache": False}
    page._load_tagger.cache_clear()
    monkeypatch.setattr(Probe, "suffixes", {".npz"}, raising=False)
    with pytest.raises(ModelUnavailableError, match=r"reads \.npz files and no recordings"):
        page._load_tagger(str(tmp_path))


def test_a_tagger_that_cannot_be_had_is_named(monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    page._load_tagger.cache_clear()
    with pytest.raises(ModelUnavailableError, match="no folder and cannot be had"):
        page._load_tagger("nobody/no_tagger")


def test_lists_have_words_in_both_languages():
    for language in ("en", "zh"):
        t = DESCRIPTION_WORDS(language)
        assert all(t(f"aggregation_{name}") for name in page.AGGREGATIONS)
        assert all(t(group) for group in GROUPS)
