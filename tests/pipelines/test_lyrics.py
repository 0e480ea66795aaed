from __future__ import annotations

import inspect
import json
import math
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from music_evals.annotations import sections_of_rows, sections_text
from music_evals.errors import (
    InvalidInputError,
    InvalidLyricsError,
    InvalidPatternError,
    NoChineseWarning,
    NoDataError,
    PairCountError,
    UnknownNameError,
    UnsupportedTypeError,
)
from music_evals.metrics.catalogue import LYRIC_SCORES
from music_evals.metrics.lyric_structure import MAXIMUM, VARIANTS
from music_evals.pipelines import lyrics
from music_evals.pipelines.lyrics import (
    EMPTY_TEXT,
    HEADERS_ONLY,
    NO_CHINESE,
    NO_CHINESE_EMPTY,
    NO_CHINESE_FORM,
    NO_HEADER,
    LyricStructure,
    evaluate_lyrics,
    lyric_structure,
    score_names,
    scores_of,
)

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = json.loads((ROOT / "tests" / "golden" / "lyric_official.json").read_text("utf-8"))
EXAMPLES = ROOT / "../shared/data/muchin/lyric_score_examples.jsonl"
DEV = ROOT / "../shared/data/muchin/dev.jsonl"
CASES = {case["name"]: case for case in GOLDEN["cases"]}

# our names of what the examples call otherwise
FIELDS = {
    "extra": "reward", "p1ws_sr": "song_ratio", "cumulative": "cumulative_ratio", "wcm_amr": "word_ratio",
    "ttrc_sr": "rhyme_ratio", "r_ratio": "rhyme_share", "pll_rc": "parallel_rhymes", "rc_ino": "expected_rhymes",
    "rc_ing": "found_rhymes", "max_equ_slc_sum": "compared_lines", "matched2s_lcsum": "matched_lines",
    "o_snc_s": "expected_codes", "g_snc_s": "found_codes", "g_msstr": "pattern",
}  # fmt: skip

PRINTED = [name for name in LYRIC_SCORES if name != "lyric_structure_corrected"]  # of table 1

LYRICS = "(verse)\n床前明月光\n疑是地上霜\n举头望明月\n低头思故乡\n(chorus)\n春眠不觉晓\n花落知多少"
PATTERN = "(verse)\nccccR\nccccR\nccccc\nccccR\n(chorus)\nccccR\nccccR"


def hold_to(score: LyricStructure, expected: dict[str, Any], tolerance: float = 1e-12) -> None:
    for name, value in expected.items():
        field = FIELDS.get(name, name)
        found: Any = score.generated.text if field == "pattern" else getattr(score, field)
        if isinstance(value, str):
            assert (found if field == "pattern" else "".join(found)) == value, name
        else:
            assert found == pytest.approx(value, abs=tolerance, rel=0), name


# --------------------------------------------------------------------------------------------------------- parity
@pytest.mark.parametrize("name", [name for name, case in CASES.items() if "scores" in case])
def test_every_component_is_the_one_of_the_authors(name: str) -> None:
    case = CASES[name]
    score = lyric_structure(case["reference"], case["generated"], accumulate_song=case["accumulate_song"], strict=False)
    hold_to(score, case["scores"], tolerance=0.0)  # to the last bit


@pytest.mark.parametrize("name", list(CASES))
def test_strict_changes_no_number(name: str) -> None:
    case = CASES[name]
    options = {"accumulate_song": case["accumulate_song"]}
    try:
        score = lyric_structure(case["reference"], case["generated"], **options)
    except (InvalidLyricsError, InvalidPatternError):
        assert name in {
            "no_header", "empty_lyrics", "headers_only", "empty_reference", "both_empty", "several_marks_in_a_line",
            "blank_line_opposite_blank_line",
        }  # fmt: skip
    else:
        hold_to(score, case["scores"], tolerance=0.0)


@pytest.mark.skipif(not EXAMPLES.exists(), reason=f"needs the examples of MuChin, {EXAMPLES}")
def test_the_examples_of_the_reference_data() -> None:
    lines = EXAMPLES.read_text(encoding="utf-8").splitlines()
    assert len(lines) == 37
    for case in map(json.loads, lines):
        arguments = case["structure"], case["generated"]
        if "error" in case["scores"]:
            with pytest.raises(InvalidLyricsError):
                lyric_structure(*arguments)
            assert lyric_structure(*arguments, strict=False).word_ratio == 1.0
            continue
        score = lyric_structure(*arguments, accumulate_song=case["am_p1sr"], strict=False)
        hold_to(score, case["scores"])
    first = json.loads(lines[0])
    assert lyric_structure(first["structure"], first["generated"]).total == 56.22101801738358


@pytest.mark.slow
@pytest.mark.skipif(not DEV.exists(), reason=f"needs the songs of MuChin, {DEV}")
def test_true_and_foreign_lyrics_of_real_songs() -> None:
    songs = [json.loads(line) for line in DEV.read_text(encoding="utf-8").splitlines()]
    words, patterns = (
        [sections_text(sections_of_rows(song["structure"], field)) for song in songs] for field in ("lines", "rhyme")
    )
    true = evaluate_lyrics(patterns, words)
    # over all 1,000 songs the authors' code gives 107.46 and 43.72
    assert true["lyric_structure"] == pytest.approx(107.46, abs=0.3)
    assert true["lyric_section"] == 32.5
    other = evaluate_lyrics(patterns[1:] + patterns[:1], words)
    assert other["lyric_structure"] == pytest.approx(43.72, abs=1.5)


# -------------------------------------------------------------------------------------------------------- options
def test_every_way_to_find_rhymes() -> None:
    polyphones = CASES["polyphones"]
    totals = {
        method: lyric_structure(polyphones["reference"], polyphones["generated"], rhyme=method).total
        for method in ("official", "line", "char")
    }
    assert totals["official"] == polyphones["scores"]["total"]
    assert totals["char"] != totals["official"]
    assert lyric_structure(polyphones["reference"], polyphones["generated"]).total == totals["official"]
    unrhymed = lyric_structure(PATTERN, LYRICS, rhyme=lambda _: None)
    assert (unrhymed.found_rhymes, unrhymed.rhyme) == (0, 0.0)
    same = lyric_structure(PATTERN, LYRICS, rhyme=lambda _: "all")
    assert same.found_rhymes == same.compared_lines == 6


def test_options_reach_the_score() -> None:
    paper = lyric_structure(PATTERN, LYRICS, rhyme="char", variant="paper")
    assert paper.variant == "paper"
    assert paper.phrase_ratio == 1.0
    other = LYRICS.replace("chorus", "coda")
    assert lyric_structure(PATTERN, other, rhyme="char").section == 32.5
    assert lyric_structure(PATTERN, other, rhyme="char", section_match="type").section == 16.25
    case = CASES["another_structure"]
    with_junk, without = (
        lyric_structure(case["reference"], case["generated"], rhyme="char", autojunk=on).song for on in (True, False)
    )
    assert with_junk < without


def test_the_corrected_total_stands_beside_every_variant() -> None:
    shorter = LYRICS.replace("低头思故乡", "低头思")
    found = {way: lyric_structure(PATTERN, shorter, rhyme="char", variant=way) for way in VARIANTS}
    assert len({score.corrected_total for score in found.values()}) == 1
    score = found["corrected"]
    # 2 sections, 6 lines, 30 characters, 5 rhymes; 2 characters and 1 rhyme are missing
    assert score.edits.needed == (0, 0, 2, 1)
    assert score.total == pytest.approx(32.5 + 17.5 + 20 * 28 / 30 + 20 * 4 / 5 + 10 * 40 / 43)
    assert (found["official"].maximum, score.maximum) == (110.0, 100.0)


def test_latin_letters_never_count_as_characters_beside_the_official_variant() -> None:
    """The first line in letters of a pattern, under Chinese ones: it is a line short."""
    mixed = LYRICS.replace("床前明月光", "ccccR")
    score = lyric_structure(PATTERN, mixed, rhyme="char", variant="corrected")
    assert score.edits.needed == (0, 1, 5, 1)
    raw, read = (lyric_structure(PATTERN, mixed, rhyme="char", normalise=on) for on in (False, True))
    assert raw.word == 20.0 * raw.cumulative_ratio
    assert read.word == 0.0


def test_normalising_is_off_unless_asked_for() -> None:
    raw = f"好的，这是歌词：\n```\n{LYRICS.replace('(', '（').replace(')', '）')}\n```"
    with pytest.raises(InvalidLyricsError):
        lyric_structure(PATTERN, raw, rhyme="char")
    pytest.importorskip("opencc", reason="the normaliser turns traditional characters with opencc")
    read = lyric_structure(PATTERN, raw, rhyme="char", normalise=True)
    assert read.total == lyric_structure(PATTERN, LYRICS, rhyme="char").total
    assert read.notes
    assert lyric_structure(PATTERN, LYRICS, rhyme="char", normalise=True).notes == ()


# ------------------------------------------------------------------------------------------------------ bad input
@pytest.mark.parametrize(
    ("generated", "complaint"),
    [
        ("", "the lyrics are empty"),
        (" \n", "the lyrics are empty"),
        ("床前明月光", "the lyrics have no section header"),
        ("[verse]\n床前明月光", "the lyrics have no section header"),
        ("(verse)\n(chorus)\n \n", "headers only"),
    ],
)
def test_lyrics_that_cannot_be_judged(generated: str, complaint: str) -> None:
    with pytest.raises(InvalidLyricsError, match=f"{complaint}.*strict=False"):
        lyric_structure(PATTERN, generated, rhyme="char")
    score = lyric_structure(PATTERN, generated, rhyme="char", strict=False)
    assert any(complaint in note for note in score.notes)
    assert f"note: {score.notes[0]}" in score.explain()


@pytest.mark.parametrize(
    ("options", "total", "note"),
    [
        ({}, 106.9, NO_CHINESE),  # as in the official code: the note is what tells
        ({"strict": False}, 106.9, NO_CHINESE),
        ({"normalise": True}, 54.2, NO_CHINESE_FORM),
        ({"variant": "paper"}, 0.0, NO_CHINESE_EMPTY),
        ({"variant": "paper", "normalise": True}, 0.0, NO_CHINESE_EMPTY),
        ({"variant": "corrected"}, 0.0, NO_CHINESE_EMPTY),
    ],
)
def test_a_text_without_a_chinese_character_is_announced(options: dict[str, Any], total: float, note: str) -> None:
    score = lyric_structure(PATTERN, PATTERN, rhyme="char", **options)
    assert score.total == pytest.approx(total, abs=0.1)
    assert score.corrected_total == 0.0
    assert score.notes == (note,)
    assert f"note: {note}" in score.explain()
    assert lyric_structure(PATTERN, PATTERN + "\n啊", rhyme="char", **options).notes == ()


@pytest.mark.parametrize(
    ("generated", "notes"),
    [
        ("好的，以下是歌词：\n(主歌)\nla la la", (NO_CHINESE,)),  # the words before the first header are no lyrics
        ("Spring has come\nand gone", (NO_HEADER, NO_CHINESE)),
        ("床前明月光", (NO_HEADER,)),
        ("(verse)\n \n", (HEADERS_ONLY,)),
        ("", (EMPTY_TEXT,)),
    ],
)
def test_only_lines_that_are_sung_can_lack_characters(generated: str, notes: tuple[str, ...]) -> None:
    assert lyric_structure(PATTERN, generated, rhyme="char", strict=False).notes == notes


def test_headers_without_a_line_earn_the_points_of_headers_under_official() -> None:
    """As in the authors' code, whose own value is the golden case ``headers_only``; the card names the figure."""
    example, headers = "(verse)\nccccR\nccccR\n(chorus)\nccccc\nccccR", "(verse)\n(chorus)"
    assert CASES["headers_only"]["scores"]["total"] > 0
    score = lyric_structure(example, headers, rhyme="char", strict=False)
    assert round(score.total, 2) == 38.21
    assert (score.section, score.phrase, score.corrected_total) == (32.5, 0.0, 0.0)
    card = Path(__file__).resolve().parents[2] / "metrics" / "lyric_structure" / "README.md"
    assert "38.21" in card.read_text(encoding="utf-8")


def test_a_reference_that_is_not_in_the_grammar() -> None:
    with pytest.raises(InvalidPatternError, match=r"line 2, column 5: .* got 'x'"):
        lyric_structure("(verse)\nccccx", LYRICS, rhyme="char")
    with pytest.raises(InvalidPatternError):
        lyric_structure("", LYRICS, rhyme="char")
    score = lyric_structure("", LYRICS, rhyme="char", strict=False)
    assert score.total == 0.0
    assert score.notes == ("the reference has no section header",)


def test_both_empty_is_the_authors_own_value() -> None:
    assert lyric_structure("", "", strict=False).total == 42.5


@pytest.mark.parametrize(("generated", "reference"), [(None, PATTERN), (LYRICS, None), (b"(verse)", PATTERN)])
def test_other_types(generated: Any, reference: Any) -> None:
    with pytest.raises(UnsupportedTypeError, match="must be a text"):
        lyric_structure(reference, generated)


def test_every_function_takes_the_reference_first() -> None:
    for function in (made for made in vars(lyrics).values() if inspect.isfunction(made)):
        names = list(inspect.signature(function).parameters)
        sides = [name.removesuffix("s") for name in names if name in {"reference", "references", "generated"}]
        assert sides in ([], ["reference"], ["generated"], ["reference", "generated"]), function.__name__
    with pytest.raises(UnsupportedTypeError, match="a reference pattern must be a text"):
        lyric_structure(None, None)  # type: ignore[arg-type]
    with pytest.raises(UnsupportedTypeError, match="references must be a list"):
        evaluate_lyrics(PATTERN, LYRICS)
    with pytest.raises(PairCountError, match="1 references and 2 lyrics"):
        evaluate_lyrics([PATTERN], [LYRICS, LYRICS])


@pytest.mark.parametrize(
    ("options", "word"),
    [({"variant": "correct"}, "variant"), ({"rhyme": "jieba"}, "rhyme method"), ({"section_match": "x"}, "way to")],
)
def test_names_that_do_not_exist(options: dict[str, str], word: str) -> None:
    with pytest.raises(UnknownNameError, match=f"unknown {word}"):
        lyric_structure(PATTERN, LYRICS, **{"rhyme": "char", **options})  # type: ignore[arg-type]


# ----------------------------------------------------------------------------------------------------- properties
def of_patterns(text: str) -> str:
    """Write lyrics that keep a pattern: characters that rhyme where they should, and nowhere else."""
    lines = []
    others = iter("月雪家花歌车书屋水飞高桥秋楼山天人心儿鱼" * 40)
    for line in text.split("\n"):
        if line.startswith("("):
            lines.append(line)
        else:
            lines.append(line.replace("R", "光")[:-1].replace("c", "一") + (next(others) if line[-1] == "c" else "光"))
    return "\n".join(lines)


patterns = st.lists(
    st.tuples(st.sampled_from(["verse1", "chorus1", "bridge"]), st.lists(st.from_regex(r"c{1,9}R", fullmatch=True),
                                                                        min_size=2, max_size=5)),
    min_size=1, max_size=5,
).map(lambda parts: "\n".join(line for label, body in parts for line in (f"({label})", *body)))  # fmt: skip


@given(patterns)
def test_lyrics_that_keep_their_pattern_lose_only_the_authors_hundredth(pattern: str) -> None:
    score = lyric_structure(pattern, of_patterns(pattern), rhyme="char")
    assert score.generated.text == pattern
    assert (score.song, score.section, score.word_ratio, score.rhyme_ratio) == (10.0, 32.5, 1.0, 1.0)
    n = 2 * score.compared_lines
    assert score.phrase == pytest.approx(17.5 * n / (n + 0.01), abs=1e-12)


@given(patterns, patterns, st.sampled_from(["official", "corrected", "paper"]))
def test_scores_stay_in_their_published_ranges(reference: str, other: str, variant: str) -> None:
    scores = scores_of(lyric_structure(reference, of_patterns(other), rhyme="char", variant=variant))
    assert tuple(scores) == score_names(variant)
    assert set(LYRIC_SCORES) - set(scores) == ({"lyric_reward"} if variant == "corrected" else set())
    for name, value in scores.items():
        assert LYRIC_SCORES[name].low <= value <= LYRIC_SCORES[name].high


def test_what_a_score_is() -> None:
    assert {name: (info.low, info.high) for name, info in LYRIC_SCORES.items()} == {
        "lyric_structure": (0.0, 110.0), "lyric_song": (0.0, 10.0), "lyric_section": (0.0, 32.5),
        "lyric_phrase": (0.0, 17.5), "lyric_word": (0.0, 20.0), "lyric_rhyme": (0.0, 20.0), "lyric_reward": (0.0, 10.0),
        "lyric_structure_corrected": (0.0, 100.0),
    }  # fmt: skip
    assert {info.direction for info in LYRIC_SCORES.values()} == {"higher"}


# ------------------------------------------------------------------------------------------------- many at a time
NAMES = ("poems_as_asked", "a_section_is_missing", "punctuation", "no_rhyme_at_all", "song_as_asked")


def test_means_and_their_intervals() -> None:
    chosen = [CASES[name] for name in NAMES]
    result = evaluate_lyrics(
        [case["reference"] for case in chosen], [case["generated"] for case in chosen],
        groups=[0, 0, 1, 1, 2], per_item=True,
    )  # fmt: skip
    for name, level in zip(PRINTED, ("total", *MAXIMUM), strict=True):
        expected = [case["scores"][level] for case in chosen]
        assert result[name] == pytest.approx(np.mean(expected), abs=1e-12)
        low, high = result[f"{name}_ci"]
        assert low <= result[name] <= high
        assert (result[f"{name}_n"], result[f"{name}_n_defined"]) == (5, 5)
        assert [item[name] for item in result["per_item"]] == expected
    assert [item["notes"] for item in result["per_item"]] == [[]] * 5
    again = evaluate_lyrics(iter([PATTERN]), iter([LYRICS]), rhyme="char")
    assert again["lyric_structure"] == lyric_structure(PATTERN, LYRICS, rhyme="char").total
    assert all(map(math.isnan, again["lyric_structure_ci"]))
    assert "per_item" not in again


def test_a_set_with_texts_without_chinese_warns() -> None:
    told = r"1 of 2 lyrics, the first is generated\[1\]: the lyrics have no Chinese character; .* like true lyrics"
    with pytest.warns(NoChineseWarning, match=told) as caught:
        result = evaluate_lyrics([PATTERN] * 2, [LYRICS, PATTERN], rhyme="char", per_item=True)
    assert [Path(each.filename).name for each in caught] == ["test_lyrics.py"]
    assert [item["notes"] for item in result["per_item"]] == [[], [NO_CHINESE]]


def test_options_are_those_of_one_song() -> None:
    result = evaluate_lyrics([PATTERN] * 2, ["", LYRICS], rhyme="char", strict=False, per_item=True)
    assert result["per_item"][0]["lyric_structure"] == 0.0
    assert result["per_item"][0]["notes"] == ["the lyrics are empty"]


def test_errors_tell_their_place() -> None:
    with pytest.raises(InvalidLyricsError, match=r"generated\[1\]: the lyrics have no section header"):
        evaluate_lyrics([PATTERN, PATTERN], [LYRICS, "床前明月光"], rhyme="char")
    with pytest.raises(InvalidPatternError, match=r"references\[0\]: pattern, line 1, column 1"):
        evaluate_lyrics([""], [LYRICS], rhyme="char")


@pytest.mark.parametrize(
    ("generated", "references", "options", "error"),
    [
        ([LYRICS], [], {}, PairCountError),
        ([], [], {}, NoDataError),
        (LYRICS, [PATTERN], {}, UnsupportedTypeError),
        ([LYRICS], PATTERN, {}, UnsupportedTypeError),
        ([LYRICS], [3], {}, UnsupportedTypeError),
        ([LYRICS], [PATTERN], {"groups": [1, 2]}, PairCountError),
        ([LYRICS], [PATTERN], {"confidence": 1.5}, InvalidInputError),
        ([LYRICS], [PATTERN], {"variant": "correct"}, UnknownNameError),
    ],
)
def test_many_bad_inputs(generated: Any, references: Any, options: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        evaluate_lyrics(references, generated, **{"rhyme": "char", **options})


def inputs() -> Iterator[str]:
    yield LYRICS


def test_any_iterable_will_do() -> None:
    assert evaluate_lyrics((PATTERN,), inputs(), rhyme="char")["lyric_section"] == 32.5


def test_own_rhymes_need_no_dictionary(monkeypatch: pytest.MonkeyPatch) -> None:
    def ends_alike(line: str) -> bool:
        return line[-1] in "光霜"

    monkeypatch.setitem(sys.modules, "music_evals.lyrics.last_words", None)
    result = evaluate_lyrics([PATTERN], [LYRICS], rhyme=ends_alike)
    assert result["lyric_structure"] == lyric_structure(PATTERN, LYRICS, rhyme=ends_alike).total
    assert "lyric_wordlikeness" not in result
