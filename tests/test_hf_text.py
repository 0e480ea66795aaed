"""The base classes of the modules of texts, seen through two small modules of our own."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import music_evals.hf as mh
from music_evals.annotations import LyricSection
from music_evals.errors import (
    InvalidInputError,
    InvalidLyricsError,
    InvalidPatternError,
    InvalidTagsError,
    NoDataError,
    PairCountError,
    UnknownNameError,
    UnsupportedTypeError,
)

LYRICS = "(verse)\n床前明月光\n疑是地上霜"
PATTERN = "(verse)\nccccR\nccccR"
ROWS = [{"label": "verse", "type": "verse", "lines": ["床前明月光", "疑是地上霜"], "rhyme": ["ccccR", "ccccR"]}]


class Echo(mh.LyricsMetric):
    """What arrives."""

    def _info(self) -> Any:
        return self.make_info("What arrives.")

    def _compute(self, predictions: list[str], references: list[str], *, fail: bool = False) -> dict[str, Any]:
        if fail:
            raise InvalidInputError("asked to fail")
        return {"lyrics": mh.read_lyrics(predictions), "patterns": mh.read_lyrics(references)}


class TagEcho(mh.TagsMetric):
    """What arrives."""

    def _info(self) -> Any:
        return self.make_info("What arrives.")

    def _compute(self, predictions: list[str], references: list[str], *, fail: bool = False) -> dict[str, Any]:
        if fail:
            raise InvalidInputError("asked to fail")
        return {"generated": mh.read_tags(predictions), "reference": mh.read_tags(references)}


@pytest.fixture
def echo(tmp_path: Path) -> Echo:
    return Echo(cache_dir=str(tmp_path))


@pytest.fixture
def tag_echo(tmp_path: Path) -> TagEcho:
    return TagEcho(cache_dir=str(tmp_path))


def test_a_pattern_comes_in_three_forms(echo: Echo) -> None:
    sections = [LyricSection("verse", ("ccccR", "ccccR"))]
    row_of_arrow = [{"label": "verse", "rhyme": np.array(["ccccR", "ccccR"], dtype=object)}]
    references = [PATTERN, ROWS, sections, tuple(ROWS), row_of_arrow]
    found = echo.compute(predictions=[LYRICS] * 5, references=references)
    assert found == {"lyrics": [LYRICS] * 5, "patterns": [PATTERN] * 5}


@pytest.mark.parametrize(
    "text", ["", "(verse)\r\n“引号”\\n\t\u0000\u2028", '{"a": [1]}', "null", "\ud800", "长" * 5000, np.str_("(verse)")]
)
def test_texts_arrive_as_they_are(text: str, echo: Echo) -> None:
    found = echo.compute(predictions=[text], references=[text])
    assert found == {"lyrics": [str(text)], "patterns": [str(text)]}


@pytest.mark.parametrize(
    ("prediction", "message"),
    [(None, "NoneType"), (7, "int"), (b"(verse)", "bytes"), ([LYRICS], "list of str"), (ROWS, "list of dict")],
)
def test_lyrics_of_another_type_are_refused(prediction: Any, message: str, echo: Echo) -> None:
    with pytest.raises(UnsupportedTypeError, match=rf"^predictions\[1\]: expected lyrics as one text, got {message}"):
        echo.add_batch(predictions=[LYRICS, prediction], references=[PATTERN, PATTERN])
    assert len(echo) == 0


@pytest.mark.parametrize(
    ("reference", "error", "message"),
    [
        (None, UnsupportedTypeError, "NoneType"),
        ([], UnsupportedTypeError, "list without items"),
        ({"label": "verse"}, UnsupportedTypeError, "got dict"),
        (["ccccR"], UnsupportedTypeError, "got str for section 0"),
        ([*ROWS, {"label": "chorus", "lines": []}], UnsupportedTypeError, "section 1: a row has a label and its rhyme"),
        ([{"label": None, "rhyme": []}], UnsupportedTypeError, "section 0"),
        ([{"label": "verse", "rhyme": "ccccR"}], UnsupportedTypeError, "a list of lines"),
        ([{"label": "verse", "rhyme": [5]}], InvalidPatternError, "such as 'ccccR', got int"),
        ([{"label": "(verse)", "rhyme": ["c"]}], InvalidLyricsError, "a word without brackets"),
    ],
)
def test_patterns_of_another_type_are_refused(reference: Any, error: type[Exception], message: str, echo: Echo) -> None:
    with pytest.raises(error, match=message) as caught:
        echo.add_batch(predictions=[LYRICS, LYRICS], references=[PATTERN, reference])
    assert str(caught.value).startswith("references[1]: ")
    assert len(echo) == 0


DESCRIPTION = {"professional": {"musical_genres": ["流行"]}, "amateur": {"song_purpose": []}}


def test_tags_come_in_three_forms(tag_echo: TagEcho) -> None:
    items = [
        ["慢速", "抒情, 柔和"],
        ("慢速",),
        np.array(["慢速", "快"]),
        [],
        {"musical_genres": ("流行",)},
        DESCRIPTION,
        {},
    ]
    found = tag_echo.compute(predictions=items, references=items)
    read = [["慢速", "抒情, 柔和"], ["慢速"], ["慢速", "快"], [], {"musical_genres": ["流行"]}, DESCRIPTION, {}]
    assert found == {"generated": read, "reference": read}
    json.dumps(found)


@pytest.mark.parametrize(
    ("item", "error", "message"),
    [
        (None, UnsupportedTypeError, "NoneType"),
        ("慢速，抒情", UnsupportedTypeError, "got str; cut the text at its commas"),
        ({"慢速"}, UnsupportedTypeError, "got set"),
        (["慢速", None], InvalidTagsError, "tag 1 is NoneType"),
        ([["慢速"]], InvalidTagsError, "tag 0 is list"),
        (np.array([1.5]), InvalidTagsError, "tag 0 is float64"),
        ({"musical_genres": "流行"}, InvalidTagsError, "list of strings"),
        ({"musical_genres": [1]}, InvalidTagsError, "tag 0 is int"),
        ({"musical_genre": ["流行"]}, UnknownNameError, "did you mean musical_genres"),
        ({"professionals": {}}, UnknownNameError, "did you mean professional"),
        ({"amateur": {"musical_genres": ["流行"]}}, UnknownNameError, "unknown amateur dimension 'musical_genres'"),
        ({"amateur": {}, "song_purpose": []}, InvalidTagsError, "'amateur' holds dimensions, others do not"),
    ],
)
def test_what_is_no_tag_is_named(item: Any, error: type[Exception], message: str, tag_echo: TagEcho) -> None:
    with pytest.raises(error, match=message) as caught:
        tag_echo.add_batch(predictions=[["慢速"], item], references=[["慢速"]] * 2)
    assert "predictions[1]" in str(caught.value)
    with pytest.raises(error, match=r"references\[0\]"):
        tag_echo.add(prediction=["慢速"], reference=item)
    assert len(tag_echo) == 0


@pytest.mark.parametrize("batch", [LYRICS, {"label": "verse"}, 7, b"(verse)"])
def test_a_bare_item_is_no_batch(batch: Any, echo: Echo) -> None:
    with pytest.raises(UnsupportedTypeError, match="must be a list of items"):
        echo.compute(predictions=batch, references=[PATTERN])


def test_pairs_must_pair_up(echo: Echo, tag_echo: TagEcho) -> None:
    with pytest.raises(PairCountError):
        echo.compute(predictions=[LYRICS], references=[PATTERN, PATTERN])
    with pytest.raises(PairCountError):
        tag_echo.compute(predictions=[["慢速"]])
    with pytest.raises(NoDataError):
        tag_echo.compute(predictions=[], references=[])
    with pytest.raises(NoDataError):
        echo.compute()


def test_order_is_kept_when_ways_to_add_are_mixed(echo: Echo) -> None:
    echo.add(prediction="a", reference=PATTERN)
    echo.add_batch(predictions=["b", "c"], references=[PATTERN, ROWS])
    with pytest.raises(UnsupportedTypeError):
        echo.add_batch(predictions=["x", None], references=[PATTERN, PATTERN])
    assert echo.compute(predictions=["d"], references=[PATTERN])["lyrics"] == ["a", "b", "c", "d"]


def test_a_failed_compute_leaves_a_fresh_instance(tag_echo: TagEcho, tmp_path: Path) -> None:
    for _ in range(2):
        with pytest.raises(InvalidInputError, match="asked to fail"):
            tag_echo.compute(predictions=[["慢速"]], references=[["慢速"]], fail=True)
        with pytest.raises(TypeError, match="unknown_option"):
            tag_echo.compute(predictions=[["慢速"]], references=[["慢速"]], unknown_option=1)
    assert not list(tmp_path.rglob("*.arrow"))
    assert tag_echo.compute(predictions=[["快"]], references=[["慢速"]])["generated"] == [["快"]]


def test_inputs_are_not_written_to(tag_echo: TagEcho) -> None:
    item = {"musical_genres": ["流行"]}
    tag_echo.compute(predictions=[item], references=[item])
    assert item == {"musical_genres": ["流行"]}


def test_columns_of_a_data_set(echo: Echo, tag_echo: TagEcho) -> None:
    import datasets

    rows = datasets.Dataset.from_dict({"text": [LYRICS], "structure": [ROWS], "tags": [["慢速", "抒情"]]})
    assert echo.compute(predictions=rows["text"], references=rows["structure"])["patterns"] == [PATTERN]
    found = tag_echo.compute(predictions=rows["tags"], references=rows["tags"])
    assert found["generated"] == [["慢速", "抒情"]]


def test_the_bases_are_abstract_and_tell_what_they_take(echo: Echo, tag_echo: TagEcho) -> None:
    assert inspect.isabstract(mh.LyricsMetric)
    assert inspect.isabstract(mh.TagsMetric)
    assert "headers such as (verse)" in echo.compute.__doc__
    assert "dimension -> tags" in tag_echo.compute.__doc__
    for module in (echo, tag_echo):
        assert module.info.license == "Apache-2.0"
        assert "wang2024muchin" in module.citation
