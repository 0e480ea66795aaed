"""Lexica from files of captions: what is read, what is kept, and that the pages offer it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.caimap_bench import StudyBench

from music_evals.annotations import AUDIO_EFFECTS
from music_evals.caimap.domain.description import MAX_TAG
from music_evals.caimap.domain.lexica import Lexicon, build_lexicon, demo_lexicon, read_terms
from music_evals.caimap.domain.machine import ForbiddenError
from music_evals.caimap.services.managing import keep_lexica, lexica_of, terms_of
from music_evals.caimap.storage.tables import AuditRow
from music_evals.cli import main
from music_evals.errors import InvalidInputError, MusicEvalsError, NoDataError, UnknownNameError, UnreadableFileError

OURS = {"source": "ours", "licence": "CC0-1.0"}


def test_a_csv_with_lists_as_those_of_musiccaps(tmp_path: Path) -> None:
    file = tmp_path / "captions.csv"
    file.write_text('ytid,aspect_list\na,"[\'jazz\', \'soft piano\']"\nb,"[\'jazz\', ""singer\'s voice""]"\nc,\n')
    assert read_terms(file, "aspect_list") == [["jazz", "soft piano"], ["jazz", "singer's voice"], []]


def test_json_lines_with_texts_and_columns_of_columns(tmp_path: Path) -> None:
    file = tmp_path / "captions.jsonl"
    rows = [{"said": {"tags": ["钢琴", "弦乐"]}}, {"said": {"tags": "钢琴，鼓、 吉他"}}, {"said": {"tags": None}}]
    rows[2]["note"] = "软\u2028的"  # ends no line of JSON
    file.write_text("\n".join(json.dumps(row, ensure_ascii=False) for row in rows))
    assert read_terms(file, "said.tags") == [["钢琴", "弦乐"], ["钢琴", "鼓", "吉他"], []]


def test_the_parquet_of_an_export(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    file = tmp_path / "songs.parquet"
    pq.write_table(pa.Table.from_pylist([{"amateur": {"tags": ["a", "b"]}}]), file)
    assert read_terms(file, "amateur.tags") == [["a", "b"]]


@pytest.mark.parametrize(
    ("name", "content", "error", "words"),
    [
        ("a.csv", "x,y\n1,2\n", InvalidInputError, "row 1 has no column 'tags'; its columns: x, y"),
        ("a.jsonl", "[1]\n", InvalidInputError, "row 1 has no column"),
        ("a.jsonl", "{\n", UnreadableFileError, "cannot be read"),
        ("a.parquet", "no parquet", UnreadableFileError, "cannot be read"),
        ("a.txt", "jazz", InvalidInputError, "from .csv, .jsonl and .parquet"),
    ],
)
def test_what_cannot_be_read_is_named(
    tmp_path: Path, name: str, content: str, error: type[MusicEvalsError], words: str
) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(error, match=words):
        read_terms(tmp_path / name, "tags")


def test_a_list_is_read_as_values_and_never_run(tmp_path: Path) -> None:
    file = tmp_path / "captions.csv"
    file.write_text("tags\n\"[__import__('os').abort(), 'jazz']\"\n")
    with pytest.raises(InvalidInputError, match=r"row 1: .* is no list of texts"):
        read_terms(file, "tags")


def test_spellings_are_one_term_and_counted_once_a_caption() -> None:
    captions = [["\uff2aazz", "jazz", "piano"], ["jazz"], ["Jazz "], ["drums"], ["drums"]]
    assert build_lexicon(captions, **OURS).terms == ("jazz", "drums", "piano")
    assert build_lexicon(captions, least=2, **OURS).terms == ("jazz", "drums")
    assert build_lexicon(captions, most=1, **OURS).terms == ("jazz",)


@given(st.lists(st.lists(st.text(max_size=MAX_TAG + 5), max_size=4), max_size=6))
def test_terms_are_tags_each_once(captions: list[list[str]]) -> None:
    try:
        terms = build_lexicon(captions, **OURS).terms
    except NoDataError:
        return
    assert len(set(terms)) == len(terms)
    assert all(0 < len(term) <= MAX_TAG and term == term.strip() for term in terms)


@pytest.mark.parametrize("about", [{"source": " ", "licence": "CC0-1.0"}, {"source": "ours", "licence": ""}])
def test_a_lexicon_says_where_it_comes_from(about: dict[str, str]) -> None:
    with pytest.raises(InvalidInputError, match="source of its captions and their licence"):
        build_lexicon([["jazz"]], **about)
    with pytest.raises(NoDataError):
        build_lexicon([["x" * (MAX_TAG + 1)]], **OURS)


def test_the_verb_builds_what_the_pages_offer(
    bench: StudyBench, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "songs.jsonl"
    dimensions = {"instrumentation": {"tags": ["马头琴", "钢琴"]}, "song_purpose": {"tags": ["开车"]}}
    file.write_text(json.dumps({"amateur": dimensions}))
    command = ["caimap", "lexicon", "build", str(tmp_path), str(file), "--database", bench.url, "--group", "amateur"]
    command += ["--column", "amateur.{dimension}.tags", "--source", "our captions", "--licence", "CC0-1.0"]
    assert main([*command, "--dimension", "instrumentation", "--dimension", "song_purpose"]) == 0
    assert "amateur instrumentation: 2 terms" in capsys.readouterr().out
    assert terms_of(bench.service, "amateur", "instrumentation") == ["马头琴", "钢琴"]
    assert lexica_of(bench.service, "amateur")["song_purpose"] == Lexicon(("开车",), "our captions", "CC0-1.0")
    # others offer what they did; the licence stands in the log
    assert terms_of(bench.service, "amateur", "culture_region") == demo_lexicon("amateur", "culture_region")
    with bench.store.reading() as session:
        noted = session.query(AuditRow).filter_by(kind="lexicon", object="amateur/instrumentation").one()
    assert noted.detail == {"terms": 2, "source": "our captions", "licence": "CC0-1.0"}
    # a dimension that is none: nothing of the command is kept
    assert main([*command, "--column", "amateur.instrumentation.tags", "--dimension", "instrumentatoin"]) == 2
    assert "instrumentation" in capsys.readouterr().err
    assert main([*command, "--dimension", "instrumentation", "--least", "0"]) == 2


def test_who_may_keep_lexica_and_for_what(bench: StudyBench) -> None:
    one = {"instrumentation": build_lexicon([["jazz"]], **OURS)}
    with pytest.raises(ForbiddenError):
        keep_lexica(bench.service, bench.INSPECTOR, "amateur", one)
    with pytest.raises(UnknownNameError, match="group"):
        keep_lexica(bench.service, bench.ADMIN, "amateurs", one)
    with pytest.raises(UnknownNameError, match="dimension"):
        keep_lexica(bench.service, bench.ADMIN, "amateur", {AUDIO_EFFECTS: one["instrumentation"]})
    assert lexica_of(bench.service, "amateur") == {}
