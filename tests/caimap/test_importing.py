"""Songs of a table: what is refused by row and reason, recordings that stay, and what programs prepared."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from tests.caimap_bench import StudyBench, description, one_verse

from music_evals.caimap.domain.structure import pre_annotated
from music_evals.caimap.domain.values import FinishedSong, Song, TimedLine
from music_evals.caimap.exchange.exporting import export_songs
from music_evals.caimap.exchange.importing import keep_recordings, read_finished, read_songs
from music_evals.caimap.exchange.prepared import read_prepared
from music_evals.caimap.exchange.rows import row_of
from music_evals.caimap.services import accounts, managing
from music_evals.caimap.services.study import song_of
from music_evals.caimap.storage.tables import SongRow
from music_evals.cli import main
from music_evals.datasets.caimd.build import BuildSettings, build_release
from music_evals.errors import InvalidInputError, NoDataError, UnreadableFileError

GOOD: dict[str, Any] = {"id": "s1", "lines": ["春眠不觉晓"], "audio": "a.flac", "cluster": 3, "licence": "CC0"}


def table(folder: Path, *rows: Any) -> Path:
    path = folder / "songs.jsonl"
    path.write_text("\n".join(json.dumps(row, ensure_ascii=False) for row in rows), encoding="utf-8")
    return path


@pytest.fixture
def recordings(tmp_path: Path) -> Path:
    folder = tmp_path / "recordings"
    folder.mkdir()
    soundfile.write(folder / "a.flac", np.zeros(8000), 8000)
    soundfile.write(folder / "b.FLAC", np.zeros(16000), 8000, format="FLAC")
    (folder / "broken.flac").write_bytes(b"no audio")
    (tmp_path / "outside.flac").write_bytes((folder / "a.flac").read_bytes())
    return folder


def test_songs_come_with_the_length_of_their_recordings(tmp_path: Path, recordings: Path) -> None:
    ((song,), _) = read_songs(table(tmp_path, GOOD), recordings)
    assert (song.duration_sec, song.cluster, song.lines, song.licence) == (1.0, 3, ("春眠不觉晓",), "CC0")
    assert song.automatic == ()


WRONG: list[tuple[Any, str]] = [
    ({**GOOD, "audio": "none.flac"}, "no recording"),
    ({**GOOD, "audio": "../outside.flac"}, "no recording"),
    ({**GOOD, "audio": "a\0"}, "no recording"),
    ({**GOOD, "audio": "."}, "no recording"),
    ({**GOOD, "audio": "broken.flac"}, "does not decode"),
    ({**GOOD, "audio": None}, "audio must be the name of a file, got None"),
    ({**GOOD, "lines": []}, "no lyrics"),
    ({**GOOD, "lines": [" "]}, "no lyrics"),
    ({**GOOD, "lines": "春眠"}, "lines must be a list, got '春眠'"),
    ({**GOOD, "lines": None}, "lines must be a list, got None"),
    ({**GOOD, "lines": ["春眠", 1]}, "line 2 must be a text, got 1"),
    ({**GOOD, "lines": ["春眠\n不觉"]}, r"line 1 holds a line break or control character \(U\+000A\)"),
    ({**GOOD, "lines": ["春眠\u2028不觉"]}, r"line 1 holds a line break or control character \(U\+2028\)"),
    ({**GOOD, "lines": ["春" * 121]}, "line 1 has 121 characters, at most 120"),
    ({**GOOD, "lines": ["春"] * 401}, "at most 400, got 401"),
    ({**GOOD, "lines": ["hello world"]}, "not Chinese: 0% of the letters"),
    ({**GOOD, "lines": ["春 is here"]}, "not Chinese: 14% of the letters"),
    ({**GOOD, "lines": ["123"]}, "not Chinese: 0% of the letters"),
    ({"id": "s2", "lines": ["春"], "licence": "CC0"}, "audio must be"),
    ({**GOOD, "rhymes": [True, False]}, "marks of rhyme"),
    ({**GOOD, "rhymes": ["false"]}, "rhymes must be true or false, one a line, got 'false'"),
    ({**GOOD, "rhymes": [1]}, "rhymes must be true or false"),
    ({**GOOD, "rhymes": True}, "rhymes must be a list"),
    ({**GOOD, "cluster": "abc"}, "cluster must be a whole number, got 'abc'"),
    ({**GOOD, "cluster": float("nan")}, "cluster must be a whole number, got nan"),
    ({**GOOD, "cluster": 3.0}, "cluster must be a whole number"),
    ({**GOOD, "cluster": True}, "cluster must be a whole number"),
    ({**GOOD, "id": None}, "id must be a text, got None"),
    ({**GOOD, "id": 7}, "id must be a text, got 7"),
    ({**GOOD, "id": ""}, "the id '' cannot be that of a song"),
    ({**GOOD, "id": "album/track1"}, "the id 'album/track1' cannot be that of a song"),
    ({**GOOD, "id": "春"}, "the id '春' cannot be"),
    ({**GOOD, "id": "s" * 65}, "at most 64"),
    ({**GOOD, "id": "s1"}, "the id 's1' is that of an earlier row"),
    ({**GOOD, "title": 3}, "title must be a text, got 3"),
    ({**GOOD, "title": "a\nb"}, "title holds a line break"),
    ({**GOOD, "album": "a\rb"}, "album holds a line break"),
    ({**GOOD, "genre": "a\u0085b"}, r"genre holds a line break or control character \(U\+0085\)"),
    ({**GOOD, "title": "\0"}, "title holds a line break or control character"),
    ({**GOOD, "theme": "春" * 401}, "theme has 401 characters, at most 400"),
    ({**GOOD, "artist": "Queen"}, "artist must be a list, got 'Queen'"),
    ({**GOOD, "artist": [None]}, "artist must be a text, got None"),
    ({**GOOD, "artist": ["Earth, Wind & Fire"]}, "'Earth, Wind & Fire' cannot be an artist"),
    ({**GOOD, "artist": ["AC/DC"]}, "'AC/DC' cannot be an artist"),
    ({**GOOD, "artist": [" "]}, "cannot be an artist"),
    ({**GOOD, "licence": None}, "licence is missing"),
    ({**GOOD, "licence": " "}, "licence is missing"),
    ({**GOOD, "licence": 4}, "licence must be a text"),
    ({**GOOD, "license": "CC0"}, "unknown columns: 'license'; known are album, artist, audio"),
    ({**GOOD, "prepared": "s1"}, "unknown columns: 'prepared'"),
    ([1], "of the wrong type"),
]


@pytest.mark.parametrize(("row", "reason"), WRONG, ids=[reason for _, reason in WRONG])
def test_a_bad_row_is_named_and_nothing_is_taken(tmp_path: Path, recordings: Path, row: Any, reason: str) -> None:
    first = {**GOOD, "id": "s1"}
    if isinstance(row, dict) and row.get("id") == "s1" and "earlier" not in reason:
        row = {**row, "id": "s2"}
    with pytest.raises(InvalidInputError, match=rf"row 2: .*{reason}.*nothing was imported"):
        read_songs(table(tmp_path, first, row), recordings)


@pytest.mark.parametrize("text", ['{"id": ', "nothing", '"\\ud800"', f'{{"cluster": {"9" * 5000}}}', "[" * 100_000])
def test_a_row_that_is_no_json_is_named(tmp_path: Path, recordings: Path, text: str) -> None:
    path = table(tmp_path, GOOD)
    path.write_text(f"{path.read_text(encoding='utf-8')}\n\n{text}\n", encoding="utf-8")
    with pytest.raises(InvalidInputError, match=r"row 3: .*nothing was imported"):
        read_songs(path, recordings)


def test_half_a_pair_is_no_text(tmp_path: Path, recordings: Path) -> None:
    path = tmp_path / "songs.jsonl"
    path.write_text(json.dumps({**GOOD, "title": "\ud800"}), encoding="utf-8")
    with pytest.raises(InvalidInputError, match=r"row 1: title holds .*U\+D800"):
        read_songs(path, recordings)


def test_tables_that_cannot_be_read(tmp_path: Path, recordings: Path) -> None:
    (tmp_path / "empty.jsonl").write_text("\n", encoding="utf-8")
    with pytest.raises(NoDataError):
        read_songs(tmp_path / "empty.jsonl", recordings)
    with pytest.raises(UnreadableFileError):
        read_songs(tmp_path / "none.jsonl", recordings)


def test_breaks_inside_texts_cut_no_row(tmp_path: Path, recordings: Path) -> None:
    rows = [GOOD, {**GOOD, "id": "s2", "title": "a\u2028b"}]
    with pytest.raises(InvalidInputError, match=r"row 2: title holds a line break .*U\+2028"):
        read_songs(table(tmp_path, *rows), recordings)


def test_what_is_null_is_not_known_and_the_licence_may_be_that_of_all(tmp_path: Path, recordings: Path) -> None:
    names = ("title", "artist", "genre", "album", "cluster", "rhymes", "theme", "licence")
    bare = {**GOOD, **dict.fromkeys(names)}
    own = {**GOOD, "id": "s2", "title": " 春 "}
    first, second = read_songs(table(tmp_path, bare, own), recordings, licence="CC-BY-4.0").songs
    assert first == Song("s1", ("春眠不觉晓",), 1.0, audio="a.flac", licence="CC-BY-4.0")
    assert (second.licence, second.title) == ("CC0", "春")


def test_what_is_taken_in_can_be_exported_and_comes_back(tmp_path: Path, recordings: Path) -> None:
    # signs that files of the release, tables and pages might trip over
    hostile = {"title": "a : b {x} <i>", "artist": ["A & B", "「丙」"], "genre": "[00:01.00]", "album": "(verse1)"}
    rows = [{**GOOD, **hostile, "id": "-_9"}, {**GOOD, "id": "b" * 64, "lines": ["春眠 ok!", "", "春/晓"]}]
    songs = read_songs(table(tmp_path, *rows), recordings).songs
    assert pre_annotated(songs[1]).sections[0].lines == ("春眠 ok!", "春/晓")
    said = {group: description(group) for group in ("professional", "amateur")}
    done = [FinishedSong(song, one_verse("春眠不觉晓"), **said, structure_people=(2, 3), professional_person=4,
                         amateur_person=5, consent="1") for song in songs]  # fmt: skip
    made = export_songs(done, tmp_path / "out", key=bytes(32))
    manifest = build_release(BuildSettings(made.folder / "release", tmp_path / "built", strict=True))
    (file,) = manifest["files"]
    import datasets

    built = datasets.load_dataset("parquet", data_files=str(tmp_path / "built" / file), split="train")
    about = ("id", "title", "artist", "genre", "album")
    assert [{name: row[name] for name in about} for row in built] == [
        {name: row_of(song)[name] for name in about} for song in done
    ]


def test_songs_annotated_elsewhere_must_be_exportable_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from music_evals.datasets.caimd.schema import load_rows

    rows = [dict(row) for row in load_rows()]
    rows[1]["artist"] = ["a,b"]
    monkeypatch.setattr("music_evals.caimap.exchange.importing.load_rows", lambda *_, **__: rows)
    with pytest.raises(InvalidInputError, match=r"row 2, .*'a,b' cannot be an artist.*nothing was imported"):
        read_finished("caimd", "demo", "test", licence="CC0")
    with pytest.raises(InvalidInputError, match="licence"):
        read_finished("caimd", "demo", "test", licence=" ")
    rows.clear()
    with pytest.raises(NoDataError):
        read_finished("caimd", "demo", "test", licence="CC0")


# recordings


def study_of(bench: StudyBench, folder: Path) -> Callable[..., int]:
    """Return the verb `import` for a study whose database is that of the bench."""

    def run(*options: Any) -> int:
        return main(["caimap", "import", str(folder), *map(str, options), "--database", bench.url])

    return run


def kept(bench: StudyBench, name: str) -> Song:
    with bench.store.reading() as session:
        return song_of(session.get_one(SongRow, name))


def test_an_import_never_changes_a_recording_that_is_there(
    bench: StudyBench, tmp_path: Path, recordings: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    study, other = tmp_path / "study", tmp_path / "other"
    other.mkdir()
    soundfile.write(other / "a.flac", np.zeros(24000), 8000)
    run = study_of(bench, study)
    first = (recordings / "a.flac").read_bytes()
    assert run(table(tmp_path, GOOD), "--audio", recordings) == 0
    assert (study / "audio" / kept(bench, "s1").audio).read_bytes() == first
    # what is refused copies nothing
    assert run(table(tmp_path, GOOD), "--audio", other) == 2
    assert "nothing was imported" in capsys.readouterr().err
    assert [path.read_bytes() for path in (study / "audio").iterdir()] == [first]
    # another song of that file name
    assert run(table(tmp_path, {**GOOD, "id": "s2"}), "--audio", other) == 0
    assert [kept(bench, name).duration_sec for name in ("s1", "s2")] == [1.0, 3.0]
    for name, source in (("s1", recordings), ("s2", other)):
        assert (study / "audio" / kept(bench, name).audio).read_bytes() == (source / "a.flac").read_bytes()


def test_recordings_are_called_by_their_content(tmp_path: Path, recordings: Path) -> None:
    (recordings / "same.flac").write_bytes((recordings / "a.flac").read_bytes())
    rows = [{**GOOD, "id": name[0], "audio": name} for name in ("a.flac", "b.FLAC", "same.flac")]
    kept = keep_recordings(read_songs(table(tmp_path, *rows), recordings).songs, recordings, tmp_path / "audio")
    digests = [hashlib.sha256((recordings / name).read_bytes()).hexdigest() for name in ("a.flac", "b.FLAC")]
    assert [song.audio for song in kept] == [f"{digest}.flac" for digest in (*digests, digests[0])]
    assert sorted(path.name for path in (tmp_path / "audio").iterdir()) == sorted(f"{one}.flac" for one in digests)


# what programs prepared


def prepared(folder: Path, *rows: dict[str, Any]) -> Path:
    """Write rows as `music-evals prepare` does: columns that all versions have, and those that the rows add."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder = folder / "prepared"
    (folder / "automatic").mkdir(parents=True, exist_ok=True)
    full = [{"lines": [], "sections": [], "lead_sheet": None, "failures": [], **row} for row in rows]
    kinds = pa.schema(
        [
            ("song", pa.string()),
            ("lines", pa.list_(pa.struct({"start_sec": pa.float64(), "text": pa.string()}))),
            (
                "sections",
                pa.list_(
                    pa.struct({"section": pa.string(), "lines": pa.list_(pa.string()), "rhymes": pa.list_(pa.bool_())})
                ),
            ),
            ("failures", pa.list_(pa.struct({"step": pa.string(), "error": pa.string()}))),
        ]
    )
    added = {
        "cluster": pa.int64(),
        "sampled": pa.bool_(),
        "theme": pa.struct(dict.fromkeys(("text", "model", "state", "day"), pa.string())),
    }
    for name, kind in added.items():
        if any(name in row for row in full):
            kinds = kinds.append(pa.field(name, kind))
    pq.write_table(pa.Table.from_pylist(full, schema=kinds), folder / "automatic" / "test-00000-of-00001.parquet")
    return folder


SECTIONS = [
    {"section": "verse1", "lines": ["春眠不觉晓", "处处闻啼鸟"], "rhymes": [True, True]},
    {"section": "chorus1", "lines": ["夜来风雨声"], "rhymes": [False]},
]
TIMED = [{"start_sec": 0.25, "text": "春眠不觉晓。"}, {"start_sec": 0.5, "text": "处处闻啼鸟。"}]
THEME = {"text": "春天的早晨", "model": "a/model", "state": "abc123", "day": "2026-11-25"}
BARE = {"id": "s1", "audio": "a.flac", "licence": "CC0"}


def test_what_programs_prepared_fills_a_row_and_is_said_to_be_theirs(
    bench: StudyBench, tmp_path: Path, recordings: Path
) -> None:
    found = {"song": "s1", "sections": SECTIONS, "lines": TIMED, "cluster": 7, "theme": THEME}
    folder = prepared(tmp_path, found)
    run = study_of(bench, tmp_path / "study")
    assert run(table(tmp_path, BARE), "--audio", recordings, "--prepared", folder) == 0
    song = kept(bench, "s1")
    assert song.lines == ("春眠不觉晓", "处处闻啼鸟", "夜来风雨声")
    assert (song.rhymes, song.cluster, song.theme) == ((True, True, False), 7, "春天的早晨")
    assert song.timed_lyrics == (TimedLine(0.25, "春眠不觉晓。"), TimedLine(0.5, "处处闻啼鸟。"))
    assert dict(song.automatic) == {
        "lines": "music-evals prepare, rhymes",
        "rhymes": "music-evals prepare, rhymes",
        "cluster": "music-evals prepare, clusters",
        "theme": "music-evals prepare, themes: a/model, abc123, 2026-11-25",
        "timed_lyrics": "music-evals prepare, alignment",
    }
    shown = pre_annotated(song)
    assert shown.theme == "春天的早晨"
    assert shown.sections[0].rhyme == ("ccccR", "ccccR", "ccccc")


def test_the_editor_says_what_a_program_wrote(bench: StudyBench, tmp_path: Path) -> None:
    testclient = pytest.importorskip("starlette.testclient")
    from music_evals.caimap.web.app import build_app
    from music_evals.caimap.web.visitors import COOKIE

    wrote = (("rhymes", "a program"), ("theme", "a model"), ("cluster", "a program"))
    songs = [Song("s1", ("春眠不觉晓",), 40.0, automatic=wrote), Song("s2", ("春眠不觉晓",), 40.0)]
    managing.add_songs(bench.service, bench.ADMIN, songs)
    client = testclient.TestClient(build_app(bench.service, tmp_path))
    seen = {}
    for who in (bench.PRO, bench.OTHER_PRO):
        client.cookies.set(COOKIE, accounts.open_session(bench.service, who))
        task = bench.take(who)
        seen[task.song] = client.get(f"/task/{task.id}").text
    assert "由程序预先填写，请核对： 押韵 · 主题</p>" in seen["s1"]
    assert "由程序预先填写" not in seen["s2"]


def test_what_a_row_says_itself_stays(tmp_path: Path, recordings: Path) -> None:
    found = read_prepared(prepared(tmp_path, {"song": "s1", "sections": SECTIONS, "cluster": 7, "theme": THEME}))
    lines = ["春眠不觉晓", "处处闻啼鸟", "夜来风雨声"]
    own = {**BARE, "lines": lines, "rhymes": [False, False, True], "cluster": 0, "theme": "鸟"}
    ((song,), _) = read_songs(table(tmp_path, own), recordings, prepared=found)
    assert (song.rhymes, song.cluster, song.theme, song.automatic) == ((False, False, True), 0, "鸟", ())
    with pytest.raises(InvalidInputError, match="row 1: its lines are not those that were prepared"):
        read_songs(table(tmp_path, {**BARE, "lines": lines[:2]}), recordings, prepared=found)
    # marks of the row's own do not depend on prepared lines
    other = {**own, "lines": lines[:1], "rhymes": [True]}
    assert read_songs(table(tmp_path, other), recordings, prepared=found).songs[0].rhymes == (True,)


def test_an_earlier_preparation_and_one_that_failed(tmp_path: Path, recordings: Path) -> None:
    failed = [{"step": "rhymes", "error": "is not Chinese"}]
    rows = [{"song": "a", "lines": TIMED, "failures": failed}, {"song": "b", "failures": failed}]
    found = read_prepared(prepared(tmp_path, *rows))
    ((song,), left) = read_songs(table(tmp_path, {**BARE, "id": "a"}), recordings, prepared=found)
    assert (song.lines, song.rhymes, song.cluster, left) == (("春眠不觉晓。", "处处闻啼鸟。"), (), None, [])
    with pytest.raises(InvalidInputError, match=r"row 1: lines is missing, .*\(rhymes: is not Chinese\)"):
        read_songs(table(tmp_path, {**BARE, "id": "b"}), recordings, prepared=found)
    ((song,), _) = read_songs(table(tmp_path, {**GOOD, "id": "b"}), recordings, prepared=found)
    assert song.lines == ("春眠不觉晓",)


def test_the_sample_alone_is_taken(
    bench: StudyBench, tmp_path: Path, recordings: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    drawn = {"a": True, "b": False, "c": None, "d": False}
    folder = prepared(tmp_path, *({"song": name, "sections": SECTIONS, "sampled": one} for name, one in drawn.items()))
    run = study_of(bench, tmp_path / "study")
    rows = table(tmp_path, *({**BARE, "id": name} for name in drawn))
    assert run(rows, "--audio", recordings, "--prepared", folder) == 0
    out, err = capsys.readouterr()
    assert (out, "2 songs are not in the sample" in err) == ("2 songs\n", True)
    assert {name for name in "ac" if kept(bench, name)} == {"a", "c"}
    with pytest.raises(NoDataError, match="none of the 1 songs"):
        read_songs(table(tmp_path, {**BARE, "id": "b"}), recordings, prepared=read_prepared(folder))


def test_ids_that_do_not_match_are_named(tmp_path: Path, recordings: Path) -> None:
    found = read_prepared(prepared(tmp_path, *({"song": f"专辑/{n}", "sections": SECTIONS} for n in "123")))
    rows = table(tmp_path, BARE, {**BARE, "id": "s2", "prepared": "专辑/2"}, {**BARE, "id": "s3"})
    with pytest.raises(InvalidInputError, match=r"2 of 3 songs were not prepared: 's1', 's3'; prepared were '专辑/1'"):
        read_songs(rows, recordings, prepared=found)
    named = [{**BARE, "id": f"s{n}", "prepared": f"专辑/{n}"} for n in "12"]
    assert [song.id for song in read_songs(table(tmp_path, *named), recordings, prepared=found).songs] == ["s1", "s2"]
    twice = [{**BARE, "id": f"s{n}", "prepared": "专辑/1"} for n in "12"]
    with pytest.raises(InvalidInputError, match="two songs are called '专辑/1'"):
        read_songs(table(tmp_path, *twice), recordings, prepared=found)


def test_lyrics_of_another_recording_are_refused(tmp_path: Path, recordings: Path) -> None:
    late = [*TIMED, {"start_sec": 1.5, "text": "夜来风雨声"}]
    found = read_prepared(prepared(tmp_path, {"song": "s1", "lines": late}))
    with pytest.raises(
        InvalidInputError, match=r"row 1: the recording has 1\.00 s, and '夜来风雨声' begins at 1\.50 s"
    ):
        read_songs(table(tmp_path, BARE), recordings, prepared=found)


def test_folders_that_hold_no_preparation(tmp_path: Path) -> None:
    with pytest.raises(NoDataError, match="music-evals prepare"):
        read_prepared(tmp_path / "none")
    folder = prepared(tmp_path, {"song": "s1"}, {"song": "s1"})
    with pytest.raises(InvalidInputError, match="two rows are of the song 's1'"):
        read_prepared(folder)
    (folder / "automatic" / "test-00000-of-00001.parquet").write_bytes(b"no parquet")
    with pytest.raises(UnreadableFileError, match="not what music-evals prepare writes"):
        read_prepared(folder)


def test_what_the_verb_prepare_writes_is_what_is_read(
    bench: StudyBench, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "source"
    source.mkdir()
    soundfile.write(source / "s1.flac", np.zeros(24000), 8000)
    (source / "s1.lrc").write_text("[00:01.00]春眠不觉晓\n[00:02.00]处处闻啼鸟\n", encoding="utf-8")
    steps = ["--steps", "alignment,rhymes", "--out", str(tmp_path / "out")]
    assert main(["prepare", str(source), *steps]) == 0
    capsys.readouterr()
    run = study_of(bench, tmp_path / "study")
    assert run(table(tmp_path, {**BARE, "audio": "s1.flac"}), "--audio", source, "--prepared", tmp_path / "out") == 0
    song = kept(bench, "s1")
    assert (song.lines, song.rhymes) == (("春眠不觉晓", "处处闻啼鸟"), (True, True))
    assert song.timed_lyrics[1] == TimedLine(2.0, "处处闻啼鸟")
