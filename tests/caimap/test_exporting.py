"""Finished songs as a data set: equal rows through Parquet and through the release's files, and nobody's name."""

from __future__ import annotations

import copy
import dataclasses
import json
import re
import stat
from collections import Counter
from html import unescape
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from sqlalchemy import select
from tests.caimap.test_work import describe, two_passes
from tests.caimap_bench import StudyBench, one_verse

from music_evals.annotations import DIMENSIONS
from music_evals.caimap.domain.machine import ForbiddenError
from music_evals.caimap.domain.values import FinishedSong, Song, TimedLine
from music_evals.caimap.exchange import demo
from music_evals.caimap.exchange.exporting import anonymous, export_songs, read_key
from music_evals.caimap.exchange.importing import read_finished
from music_evals.caimap.exchange.reporting import MOST_TAGS, write_pictures
from music_evals.caimap.exchange.rows import finished_of, row_of
from music_evals.caimap.services import accounts, annotating, managing
from music_evals.caimap.services.study import Settings
from music_evals.caimap.storage.tables import PersonRow, SongRow
from music_evals.cli import main
from music_evals.datasets.caimd.build import BuildSettings, build_release
from music_evals.datasets.caimd.schema import features, load_rows
from music_evals.datasets.caimd.writing import release_files
from music_evals.errors import InvalidInputError, MusicEvalsError, NoDataError, OutputError
from music_evals.yaml_files import load_yaml

KEY = bytes(range(32))


def finished(row: dict[str, Any], **changes: Any) -> FinishedSong:
    """Return a song of the demo as a study leaves it."""
    structure = demo.structure_of_row(row)
    lines = tuple(line for section in structure.sections for line in section.lines)
    timed = tuple(TimedLine(line["start"], line["text"]) for line in row["timed_lyrics"])
    song = Song(
        row["id"], lines, 20.0, title=row["title"], artist=tuple(row["artist"]), genre=row["genre"],
        album=row["album"], licence="Apache-2.0", timed_lyrics=timed,
    )  # fmt: skip
    people = {"structure_people": (2, 3), "professional_person": 4, "amateur_person": 5, "consent": "1"}
    descriptions = {group: demo._description(row, group) for group in ("professional", "amateur")}
    return FinishedSong(**{"song": song, "structure": structure, **descriptions, **people, **changes})


@pytest.fixture(scope="module")
def songs() -> list[FinishedSong]:
    return [finished(row) for row in demo.demo_rows()]


def rows_in(folder: Path, config: str = "songs") -> list[dict[str, Any]]:
    import datasets

    return list(datasets.load_dataset("parquet", data_files=str(folder / f"data/{config}/*.parquet"), split="train"))


def test_the_demo_comes_back_equal(songs: list[FinishedSong], tmp_path: Path) -> None:
    made = export_songs(songs, tmp_path / "out", key=KEY)
    assert (made.songs, made.people) == (24, 4)
    written = [row_of(song) for song in songs]
    assert rows_in(made.folder) == written
    for row, source in zip(written, demo.demo_rows(), strict=True):
        for name in ("id", "title", "artist", "structure"):
            assert row[name] == source[name]
        for group in ("professional", "amateur"):
            assert row[group]["overall_text"] == source[group]["overall_text"]
            for name, said in source[group]["dimensions"].items():
                assert row[group]["dimensions"][name]["tags"] == said["tags"], name


def test_the_builder_of_caimd_reads_the_release_files(songs: list[FinishedSong], tmp_path: Path) -> None:
    export_songs(songs, tmp_path / "out", key=KEY)
    manifest = build_release(BuildSettings(tmp_path / "out" / "release", tmp_path / "built", strict=True))
    assert manifest["left_out"] == []
    assert manifest["broken"] == {}
    (file,) = manifest["files"]
    import datasets

    rows = list(datasets.load_dataset("parquet", data_files=str(tmp_path / "built" / file), split="train"))
    # an empty text is none in the files, as in the release
    assert sorted(rows, key=lambda row: row["id"]) == sorted(map(row_of, songs), key=lambda row: row["id"])


@pytest.mark.requirement(number=15)
def test_a_study_is_exported_by_the_verb(bench: StudyBench, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    song = Song("s1", ("春眠不觉晓", "处处闻啼鸟"), 40.0, rhymes=(True, True), licence="CC0")
    managing.add_songs(bench.service, bench.ADMIN, [song])
    study = ["caimap", "export", str(tmp_path / "study"), "--database", bench.url, "--out"]
    assert main([*study, str(tmp_path / "a")]) == 2
    assert "no song of this study is finished" in capsys.readouterr().err
    two_passes(bench, one_verse("春眠不觉晓"), one_verse("春眠不觉晓"))
    describe(bench)
    managing.review_song(bench.service, bench.ADMIN, "s1", bench.version(SongRow, "s1"))
    assert main([*study, str(tmp_path / "a"), "--title", "Ours: a test"]) == 0
    assert "1 songs by 4 people" in capsys.readouterr().out
    (work,) = rows_in(tmp_path / "a", "work")
    key = read_key(tmp_path / "study" / "export.key")
    assert work["structure"] == [anonymous(bench.PRO, key), anonymous(bench.OTHER_PRO, key)]
    assert work["licence"] == "CC0"
    assert stat.S_IMODE((tmp_path / "study" / "export.key").stat().st_mode) == 0o600
    card = (tmp_path / "a" / "README.md").read_text()
    assert 'pretty_name: "Ours: a test"' in card
    everything = b"".join(path.read_bytes() for path in (tmp_path / "a").rglob("*") if path.is_file())
    assert not any(f"{role}{number}".encode() in everything for number, role in enumerate(bench.PEOPLE, 1))
    # whoever withdraws takes their work along
    managing.withdraw(bench.service, bench.ADMIN, bench.FAN)
    assert main([*study, str(tmp_path / "b")]) == 2
    assert "no song of this study is finished" in capsys.readouterr().err


@pytest.mark.parametrize("title", ['"Best" songs', "[draft] songs", "*songs*", "- a", "#1 songs", "a: b", "春天"])
def test_any_title_stands_in_the_card_as_it_is(songs: list[FinishedSong], tmp_path: Path, title: str) -> None:
    export_songs(songs[:1], tmp_path / "a", key=KEY, title=title)
    header, text = (tmp_path / "a" / "README.md").read_text(encoding="utf-8").split("---\n", 2)[1:]
    assert load_yaml(header, "the card")["pretty_name"] == title
    assert len(load_yaml(header, "the card")["configs"]) == 2
    assert f"# {title}\n" in text


def finish(bench: StudyBench, verb: list[str]) -> list[str]:
    """Let one song pass all phases, and return the verb that exports it."""
    bench.songs("s1")
    two_passes(bench, one_verse("春眠不觉晓"), one_verse("春眠不觉晓"))
    describe(bench)
    managing.review_song(bench.service, bench.ADMIN, "s1", bench.version(SongRow, "s1"))
    return [*verb, "--database", bench.url]


def test_the_consent_is_that_of_the_people(bench: StudyBench) -> None:
    with bench.store.writing() as session:
        session.get_one(PersonRow, bench.FAN).consent = "2026-b"
        session.get_one(PersonRow, bench.OTHER_FAN).consent = "never worked"
    finish(bench, [])
    bench.service.configure(Settings(consent="of another day"))
    (done,) = managing.finished_songs(bench.service)
    assert done.consent == "1, 2026-b"


def test_nobody_is_exported_without_consent(
    bench: StudyBench, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with bench.store.writing() as session:
        for who in (bench.OTHER_PRO, bench.FAN, bench.OTHER_FAN):
            session.get_one(PersonRow, who).consent = ""
    verb = finish(bench, ["caimap", "export", str(tmp_path / "study"), "--out", str(tmp_path / "out")])
    assert main(verb) == 2
    said = capsys.readouterr().err
    assert "none is known of professional5 (person 5, as in s1), amateur7 (person 7, as in s1); withdraw them" in said
    assert not (tmp_path / "out").exists()
    assert main([*verb[:1], "publish", *verb[2:3], "lab/songs", *verb[-2:]]) == 2
    assert "none is known of professional5" in capsys.readouterr().err


@pytest.mark.parametrize("version", ["", "  ", "v" * 41])
def test_a_study_has_a_text_that_people_consent_to(bench: StudyBench, version: str) -> None:
    with pytest.raises(InvalidInputError, match="`consent`"):
        bench.service.configure(Settings(consent=version))


@pytest.mark.slow
def test_a_finished_study_comes_in_and_goes_out_equal(
    bench: StudyBench, tmp_path: Path, in_root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    study = [str(tmp_path / "study"), "--database", bench.url]
    taken = ["caimap", "import", *study, "caimd", "--finished", "--licence", "Apache-2.0"]
    assert main(taken) == 0
    assert capsys.readouterr().out == "24 songs\n"
    assert main(["caimap", "export", *study, "--out", str(tmp_path / "out")]) == 0
    assert rows_in(tmp_path / "out") == sorted(load_rows(), key=lambda row: row["id"])
    (work, *_) = rows_in(tmp_path / "out", "work")
    assert (work["consent"], work["licence"]) == ("as published", "Apache-2.0")
    card = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    assert "24 were annotated elsewhere" in card
    assert "on the platform" not in card
    # what was exported can be taken in again, elsewhere; not twice here
    again = read_finished(tmp_path / "out", "songs", "test", licence="Apache-2.0")
    assert [row_of(song) for song in again] == rows_in(tmp_path / "out")
    assert main(taken) == 2
    assert "there is one of that id; nothing was imported" in capsys.readouterr().err


def test_those_who_annotated_elsewhere_are_nobody(bench: StudyBench, songs: list[FinishedSong]) -> None:
    assert managing.add_finished(bench.service, bench.ADMIN, songs[:2]) == 2
    assert managing.add_finished(bench.service, bench.ADMIN, songs[2:3]) == 1
    with bench.store.reading() as session:
        others = list(session.scalars(select(PersonRow).where(PersonRow.name.in_(accounts.STAND_INS.values()))))
    assert {(other.role, other.excluded, other.password_hash) for other in others} == {
        ("professional", True, ""), ("amateur", True, ""),
    }  # fmt: skip
    for other in others:
        with pytest.raises(accounts.SignInError):
            accounts.sign_in(bench.service, other.name, "")
        with pytest.raises(InvalidInputError, match="nobody of this study"):
            managing.withdraw(bench.service, bench.ADMIN, other.id)
    with pytest.raises(ForbiddenError):
        managing.add_finished(bench.service, bench.PRO, songs[3:])
    assert annotating.take_next(bench.service, bench.PRO) is None
    assert managing.ledger_of(bench.service, bench.ADMIN) == []


def test_whoever_has_the_name_of_those_elsewhere_is_not_taken_for_them(
    bench: StudyBench, songs: list[FinishedSong]
) -> None:
    name = accounts.STAND_INS["amateur"]
    token = accounts.invite(bench.service, bench.ADMIN, "amateur")
    who = accounts.accept(bench.service, token, name, "a long password", consents=True)
    managing.add_finished(bench.service, bench.ADMIN, songs[:1])
    managing.add_finished(bench.service, bench.ADMIN, songs[1:2])
    done = managing.finished_songs(bench.service)
    assert len({song.amateur_person for song in done}) == 1
    assert who not in {song.amateur_person for song in done}
    with bench.store.reading() as session:
        assert session.get_one(PersonRow, done[0].amateur_person).name == f"{name} 2"
    assert accounts.reset_link(bench.service, bench.ADMIN, who)
    with pytest.raises(InvalidInputError, match="no account to sign in to"):
        accounts.reset_link(bench.service, bench.ADMIN, done[0].amateur_person)
    managing.withdraw(bench.service, who, who)
    with pytest.raises(InvalidInputError, match="nobody of this study"):
        managing.withdraw(bench.service, bench.ADMIN, done[0].amateur_person)
    assert len(managing.finished_songs(bench.service)) == 2


@pytest.mark.parametrize(
    ("broken", "words"),
    [
        (lambda row: row.pop("structure"), r"row 2, '\w+': a column is missing .*'structure'"),
        (lambda row: row["structure"][0].update(label="refrain1"), "a section must be one of"),
        (lambda row: row["structure"][0].update(rhyme=["R"]), "give one a line"),
        (lambda row: row["structure"][0].update(type="chorus"), "structure would not come back"),
        (lambda row: row["amateur"]["dimensions"]["audio_effects"].update(text="x"), "amateur would not come back"),
    ],
)
def test_a_row_that_breaks_a_rule_is_named(monkeypatch: pytest.MonkeyPatch, broken: Any, words: str) -> None:
    rows = copy.deepcopy([dict(row) for row in load_rows()])
    broken(rows[1])
    monkeypatch.setattr("music_evals.caimap.exchange.importing.load_rows", lambda *_, **__: rows)
    with pytest.raises(InvalidInputError, match=words):
        read_finished("caimd", "demo", "test", licence="Apache-2.0")


def test_the_released_songs_come_back_equal(root: Path) -> None:
    path = root.parent / "shared" / "data" / "muchin" / "dev.jsonl"
    if not path.is_file():
        pytest.skip("the released songs are not attached")
    import datasets

    given = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    rows = list(datasets.Dataset.from_list(given, features=features()))
    for row in rows:
        assert row_of(finished_of(row, licence="as published")) == row


def test_names_say_nothing_and_stay_the_same(tmp_path: Path) -> None:
    key = read_key(tmp_path / "export.key")
    assert read_key(tmp_path / "export.key") == key
    names = {anonymous(person, key) for person in range(1000)}
    assert len(names) == 1000
    assert anonymous(1, key) != anonymous(1, KEY)
    (tmp_path / "export.key").write_text("00")
    with pytest.raises(InvalidInputError, match="key of 1 bytes"):
        read_key(tmp_path / "export.key")
    (tmp_path / "export.key").write_text("no key")
    with pytest.raises(InvalidInputError, match="holds no key"):
        read_key(tmp_path / "export.key")


@pytest.mark.requirement(number=15)
def test_what_cannot_be_exported_is_named(songs: list[FinishedSong], tmp_path: Path) -> None:
    with pytest.raises(NoDataError):
        export_songs([], tmp_path / "a", key=KEY)
    bare = dataclasses.replace(songs[0], song=dataclasses.replace(songs[0].song, licence=" "))
    with pytest.raises(InvalidInputError, match="1 songs have no licence"):
        export_songs([bare], tmp_path / "a", key=KEY)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").touch()
    with pytest.raises(OutputError, match="new or empty"):
        export_songs(songs, tmp_path / "full", key=KEY)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"id": "a/b"}, "cannot be that of a song"),
        ({"title": "a\nb"}, "line break"),
        ({"artist": ["a,b"]}, "separate names"),
        ({"timed_sections": [{"start": 1.0, "section": "verse", "text": t} for t in "ab"]}, "at one time"),
    ],
)
def test_what_the_release_cannot_hold_is_named(songs: list[FinishedSong], change: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInputError, match=words):
        release_files(row_of(songs[0]) | change)


def test_times_and_sections_are_written_as_the_release_has_them(songs: list[FinishedSong]) -> None:
    song = dataclasses.replace(
        songs[0].song,
        timed_lyrics=(TimedLine(61.25, "一"), TimedLine(125.004, "二")),
        timed_sections=(TimedLine(61.25, "一", "verse"), TimedLine(125.004, "二", "pre-chorus")),
    )
    files = release_files(row_of(dataclasses.replace(songs[0], song=song)))
    assert files["raw_lyric"] == "[01:01.250]一\n[02:05.004]二"
    assert json.loads(files["tknz_json"]) == {"[01:01.250]": "<|ss_verse|>一", "[02:05.004]": "<|ss_pre_chorus|>二"}


def test_what_an_export_holds_is_drawn(songs: list[FinishedSong], tmp_path: Path) -> None:
    evil = dataclasses.replace(songs[0].amateur.dimensions["instrumentation"], tags=("<b>&\"'", "钢琴", "鼓"))
    amateur = dataclasses.replace(songs[0].amateur, dimensions={**songs[0].amateur.dimensions, "instrumentation": evil})
    songs = songs[:3]
    made = export_songs([dataclasses.replace(songs[0], amateur=amateur), *songs[1:]], tmp_path / "out", key=KEY)
    path = write_pictures(made.folder, tmp_path / "report", language="en")
    page = path.read_text(encoding="utf-8")
    assert "<b>" not in page
    assert "&lt;b&gt;" in page
    drawn: dict[str, dict[str, int]] = {}
    for name, picture in re.findall(r"<h2>(.*?)</h2>\s*(<svg.*?</svg>)", page, re.DOTALL):
        svg = ET.fromstring(picture)  # noqa: S314  (ours)
        texts = [text.text for text in svg.iter("text")]
        assert len(list(svg.iter("rect"))) == len(texts) // 2
        drawn[unescape(name)] = dict(zip(texts[::2], map(int, texts[1::2]), strict=True))
        widths = [float(bar.get("width")) for bar in svg.iter("rect")]
        counts = [int(text) for text in texts[1::2]]
        assert widths == pytest.approx([380 * count / max(counts) for count in counts], abs=0.06)
    structures = [song.structure for song in songs]
    kinds = Counter(section.kind for each in structures for section in each.sections)
    assert drawn["Kinds of sections"] == dict(kinds)
    assert drawn["Sections a song"] == {
        str(number): count for number, count in Counter(len(each.sections) for each in structures).items()
    }
    assert sum(drawn["Lines a song"].values()) == len(songs)
    lines = [line for each in structures for section in each.sections for line in section.lines]
    assert sum(drawn["Characters a line"].values()) == len(lines)
    instruments = drawn[f"Amateur description: {DIMENSIONS['amateur']['instrumentation'].english}"]
    said = [amateur, *(song.amateur for song in songs[1:])]
    counts = Counter(tag for one in said for tag in one.dimensions["instrumentation"].tags)
    assert len(counts) <= MOST_TAGS
    assert instruments == dict(counts)
    assert len(drawn) == 4 + sum(len(dimensions) for dimensions in DIMENSIONS.values())
    with pytest.raises(MusicEvalsError):
        write_pictures(tmp_path / "nothing", tmp_path / "report")


def test_corrected_readings_are_exported(songs: list[FinishedSong], tmp_path: Path) -> None:
    first, *others = songs[0].structure.sections
    read = dataclasses.replace(first, readings=("le5", *[""] * (len(first.lines) - 1)))
    structure = dataclasses.replace(songs[0].structure, sections=(read, *others))
    made = export_songs([dataclasses.replace(songs[0], structure=structure), songs[1]], tmp_path / "out", key=KEY)
    (row, other) = rows_in(made.folder, "work")
    assert row["readings"] == [list(section.readings) for section in structure.sections]
    assert row["readings"][0][0] == "le5"
    assert not any(reading for section in other["readings"] for reading in section)
    assert rows_in(made.folder)[0]["structure"] == row_of(songs[0])["structure"]  # CaiMD has no column for them
