from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from music_evals.errors import InvalidInputError, InvalidLyricsError, UndefinedMetricWarning, UnknownNameError
from music_evals.metrics.lyric_structure import MAXIMUM, Pattern, rhyme_agreement, structure_score

GOLDEN = json.loads((Path(__file__).resolve().parents[1] / "golden" / "lyric_official.json").read_text("utf-8"))


def pattern(text: str) -> Pattern:
    """Read ``(label)`` headers on lines of their own."""
    labels: list[str] = []
    lines: list[list[str]] = []
    for line in text.split("\n"):
        if line.startswith("("):
            labels.append(line[1:-1])
            lines.append([])
        elif labels:
            lines[-1].append(line)
    return Pattern(text, tuple(labels), tuple(map(tuple, lines)))


# ------------------------------------------------------------------------------------------------------ official
def official(name: str) -> dict[str, Any]:
    return next(each for each in GOLDEN["patterns"] if each["name"] == name)


def test_the_example_of_the_authors() -> None:
    case = official("readme_example")
    # its pattern has a header inside a line
    apart = pattern(case["reference"].replace("c(verse)", "c\n(verse)"))
    reference = dataclasses.replace(apart, text=case["reference"])
    score = structure_score(reference, pattern(case["pattern"]))
    assert score.total == case["scores"]["total"] == 56.22101801738358
    for name, value in case["scores"].items():
        found = getattr(score, name)
        assert ("".join(found) if name.endswith("codes") else found) == value, name


def test_a_small_case_by_hand() -> None:
    # V C against V B: one of two sections; in it 2 lines against 3
    reference = pattern("(verse)\nccccR\nccccR\n(chorus)\nccR")
    generated = pattern("(verse)\nccccR\nccR\nxxcc\n(bridge)\nccR")
    score = structure_score(reference, generated)
    assert score.section_ratio == 2 * 1 / 4
    assert score.pairs == ((0, 0),)
    assert score.phrase_ratio == 2 * 2 / (0.01 + 5)
    assert score.word_ratio == 1.0 * (2 * 3 / 8)
    assert score.rhyme_ratio == 1.0
    assert score.rhyme_share == 1.0
    # every compared line rhymes on both sides: 0.7 of the reward
    assert score.reward_factor == 0.7
    carried = 0.5 * score.phrase_ratio
    assert score.cumulative_ratio == carried
    points = [score.section, score.phrase, score.word, score.rhyme, score.reward]
    expected = [32.5 * 0.5, 17.5 * carried, 20 * 0.75 * carried, 20 * carried, 10 * carried * 0.7]
    assert points == pytest.approx(expected, abs=1e-12)
    assert score.total == pytest.approx(score.song + sum(expected), abs=1e-12)


@pytest.mark.parametrize(
    ("expected", "found", "factor"),
    [
        (3, 3, 1.0),  # 0.6 of five lines
        (2, 4, 1.0),  # 0.8
        (2, 2, 0.7),  # 0.4, but just the ones that should
        (4, 2, 0.4 * (1 - abs(0.4 - 0.7))),  # 0.4 belongs to the range
        (4, 5, 0.0),  # 1.0 - 0.7 > 0.3 in binary arithmetic
        (5, 5, 0.7),
        (4, 1, 0.0),
        (0, 0, 0.0),
    ],
)
def test_the_official_reward(expected: int, found: int, factor: float) -> None:
    def lines(n: int) -> str:
        return "\n".join(["(verse)", *(["cccR"] * n), *(["cccc"] * (5 - n))])

    score = structure_score(pattern(lines(expected)), pattern(lines(found)))
    assert score.reward_factor == factor
    assert score.reward == 10.0 * score.cumulative_ratio * factor


def test_foreign_characters_lengthen_a_line_and_spaces_count() -> None:
    score = structure_score(pattern("(verse)\ncc cR"), pattern("(verse)\ncc cRxyz"))
    assert score.word_ratio == 2 * 5 / (5 + 8)
    assert structure_score(pattern("(verse)\ncccc"), pattern("(verse)\nc c ")).word_ratio == 2 * 3 / (4 + 3)


def test_a_blank_line_makes_the_product_zero() -> None:
    score = structure_score(pattern("(verse)\ncccR\ncccR"), pattern("(verse)\ncccR\n\ncccR"))
    assert score.word == score.word_ratio == 0.0


def test_blank_against_blank() -> None:
    both = pattern("(verse)\ncccR\n\ncccR")
    with pytest.raises(InvalidLyricsError):
        structure_score(both, both)
    score = structure_score(both, both, strict=False)
    assert score.word_ratio == 1.0
    assert "where the official code stops" in score.notes[0]
    assert structure_score(both, both, variant="paper").notes == ()


def test_a_label_without_a_single_capital() -> None:
    odd = Pattern("(ßvers)\ncc", ("ßvers",), (("cc",),))
    with pytest.raises(InvalidLyricsError, match="'SS'"):
        structure_score(odd, odd)
    score = structure_score(odd, odd, strict=False)
    assert (score.section, len(score.notes)) == (32.5, 1)


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize("options", [{"variant": "paper"}, {"section_match": "type"}, {"section_match": "label"}])
def test_only_initials_need_a_single_capital(options: dict[str, str], strict: bool) -> None:
    odd = Pattern("(ßvers)\ncc", ("ßvers",), (("cc",),))
    score = structure_score(odd, odd, strict=strict, **options)
    assert score.section_ratio == 1.0
    assert score.notes == ()


def test_sections_match_by_initial_type_or_label() -> None:
    reference, generated = pattern("(intro)\ncR\n(verse1)\ncR"), pattern("(Interlude)\ncR\n(Verse2)\ncR")
    ratios = {way: structure_score(reference, generated, section_match=way).section_ratio for way in
              ("initial", "type", "label")}  # fmt: skip
    assert ratios == {"initial": 1.0, "type": 0.5, "label": 0.0}


def test_options_that_change_the_song_level() -> None:
    reference = pattern("(verse)\n" + "\n".join(["cccccR"] * 30))
    generated = pattern("(chorus)\n" + "\n".join(["ccccccR"] * 30))
    assert structure_score(reference, generated).song_ratio < 0.1
    assert structure_score(reference, generated, autojunk=False).song_ratio > 0.8
    half = pattern("(verse)\ncccR\ncccR")
    plain, carried = (structure_score(half, pattern("(verse)\ncccR"), accumulate_song=on) for on in (False, True))
    assert carried.song == plain.song
    assert carried.section == 32.5 * plain.song_ratio


# --------------------------------------------------------------------------------------------------------- paper
def test_the_paper_on_the_example_of_the_authors() -> None:
    case = official("readme_example")
    apart = pattern(case["reference"].replace("c(verse)", "c\n(verse)"))
    reference = dataclasses.replace(apart, text=case["reference"])
    score = structure_score(reference, pattern(case["pattern"]), variant="paper")
    ratios = (score.song_ratio, score.section_ratio, score.phrase_ratio, score.word_ratio, score.rhyme_ratio)
    # worked from the text of appendix G: 10 of 2 x 40 lines rhyme on both sides, 24 lines are compared
    assert ratios == pytest.approx((0.6431, 0.6, 1.0, 0.9724, 0.25), abs=5e-5)
    points = (score.song, score.section, score.phrase, score.word, score.rhyme)
    assert points == pytest.approx((6.431, 12.540, 6.752, 7.504, 1.876), abs=5e-4)
    assert sum(points) == pytest.approx(35.104, abs=5e-4)
    # 13 of 24 lines: 0.4 x (1 - (0.7 - 13 / 24))
    assert score.reward_factor == pytest.approx(0.4 * (1 - (0.7 - 13 / 24)), abs=1e-12)
    assert score.reward == pytest.approx(1.876 / 2 * score.reward_factor, abs=5e-4)


@pytest.mark.parametrize(
    ("expected", "found", "factor"),
    [(3, 3, 1.0), (2, 4, 1.0), (2, 2, 0.7), (4, 2, 0.4 * 0.7), (4, 5, 0.4 * 0.7), (4, 1, 0.0), (0, 0, 0.0)],
)
def test_the_reward_of_the_paper_is_exact_at_its_bounds(expected: int, found: int, factor: float) -> None:
    def lines(n: int) -> str:
        return "\n".join(["(verse)", *(["cccR"] * n), *(["cccc"] * (5 - n))])

    score = structure_score(pattern(lines(expected)), pattern(lines(found)), variant="paper")
    assert score.reward_factor == pytest.approx(factor, abs=1e-12)


def test_the_paper_sums_characters_over_all_lines() -> None:
    score = structure_score(pattern("(verse)\ncccR\ncc cR"), pattern("(verse)\ncR\ncccccR"), variant="paper")
    assert score.word_ratio == 2 * (2 + 4) / (4 + 2 + 4 + 6)
    assert score.rhyme_ratio == 2 * 2 / (2 + 2)
    nothing = structure_score(pattern("(verse)\ncR"), pattern("(chorus)\ncR"), variant="paper")
    assert (nothing.phrase, nothing.word, nothing.rhyme, nothing.reward) == (0.0, 0.0, 0.0, 0.0)


# ---------------------------------------------------------------------------------------------------- properties
lines = st.builds(
    lambda n, pause, rhyme: "c" * n + (" " + "c" * pause if pause else "") + "R" * rhyme,
    st.integers(1, 12), st.integers(0, 6), st.booleans(),
)  # fmt: skip
songs = st.lists(
    st.tuples(st.sampled_from(["verse1", "chorus1", "bridge1", "ending1"]), st.lists(lines, min_size=1, max_size=6)),
    min_size=1, max_size=6,
).map(lambda parts: pattern("\n".join(line for label, body in parts for line in (f"({label})", *body))))  # fmt: skip
variants = st.sampled_from(["official", "paper", "corrected"])


@given(songs, songs, variants, st.booleans(), st.booleans())
def test_points_stay_in_their_ranges(
    reference: Pattern, generated: Pattern, variant: str, autojunk: bool, accumulate: bool
) -> None:
    score = structure_score(reference, generated, variant=variant, autojunk=autojunk, accumulate_song=accumulate)
    for level, most in MAXIMUM.items():
        assert 0.0 <= getattr(score, level) <= most
    assert score.total == pytest.approx(sum(getattr(score, level) for level in MAXIMUM), abs=1e-9)
    assert 0.0 <= score.corrected_total <= 100.0
    for level in score.levels:
        assert 0.0 <= level.ratio <= 1.0
        assert level.points == getattr(score, level.name)


@given(songs)
def test_a_song_keeps_its_own_structure(song: Pattern) -> None:
    score = structure_score(song, song)
    assert (score.song_ratio, score.section_ratio, score.word_ratio) == (1.0, 1.0, 1.0)
    assert score.section == 32.5
    assert all(line.lossless for section in score.sections for line in section.lines)
    paper = structure_score(song, song, variant="paper")
    assert (paper.phrase_ratio, paper.word_ratio) == (1.0, 1.0)


@given(songs, st.data())
def test_a_longer_line_never_helps_at_the_word_level(song: Pattern, data: st.DataObject) -> None:
    section = data.draw(st.integers(0, len(song.lines) - 1))
    line = data.draw(st.integers(0, len(song.lines[section]) - 1))
    longer = [list(each) for each in song.lines]
    longer[section][line] = "c" + longer[section][line]
    generated = Pattern(song.text, song.labels, tuple(map(tuple, longer)))
    score = structure_score(song, generated)
    n = len(song.lines[section][line])
    assert score.word_ratio == 2 * n / (2 * n + 1)
    assert score.phrase_ratio == structure_score(song, song).phrase_ratio


# -------------------------------------------------------------------------------------------------- explanations
def test_sections_and_lines_tell_what_was_lost() -> None:
    reference = pattern("(verse)\ncccR\ncccR\n(chorus)\nccR\n(ending)\ncc")
    words = (("我爱你们", "hi你", ""), ("好",))
    generated = Pattern("(verse)\ncccc\nhic\n\n(ending)\nc", ("verse", "ending"), (("cccc", "hic", ""), ("c",)), words)
    score = structure_score(reference, generated)
    verse, chorus, ending = score.sections
    assert [part.status for part in score.sections] == ["matched", "missing", "matched"]
    assert (chorus.expected_label, chorus.found_label, chorus.expected_index) == ("chorus", None, 1)
    assert (ending.expected_index, ending.found_index) == (2, 1)
    first, second, third = verse.lines
    assert (first.rhyme_expected, first.rhyme_found, first.ratio, first.words) == (True, False, 1.0, "我爱你们")
    assert (second.expected_count, second.found_count, second.foreign_count) == (4, 1, 2)
    assert second.ratio == 2 * 1 / (4 + 3)
    assert (third.status, third.expected) == ("extra", None)
    assert math.isnan(third.ratio)
    assert chorus.lines[0].status == "missing"
    told = "\n".join(score.explain())
    for statement in (
        "sections V C E expected, V E found",
        "section 1 (verse): 2 lines expected, 3 found",
        "line 1 '我爱你们': a rhyme is expected",
        "line 2 'hi你': 4 characters expected, 1 and 2 foreign ones found, ratio 0.286; a rhyme is expected",
        "line 3: not expected",
        "section 2 (chorus) is missing",
        "line 1 '好': 2 characters expected, 1 found, ratio 0.667",
    ):
        assert statement in told


def test_sections_that_nobody_asked_for() -> None:
    score = structure_score(pattern("(verse)\ncR\ncR"), pattern("(verse)\ncR\ncR\n(outro)\ncc"))
    assert [part.status for part in score.sections] == ["matched", "extra"]
    assert "section (outro), number 2 of the lyrics, is not expected" in score.explain()


@given(songs, songs)
def test_line_reports_hold_the_product_and_every_line(reference: Pattern, generated: Pattern) -> None:
    score = structure_score(reference, generated)
    lines = [line for section in score.sections for line in section.lines]
    compared = [line.ratio for line in lines if line.status == "matched"]
    assert math.prod(compared) == pytest.approx(score.word_ratio, rel=1e-9)
    assert len(compared) == score.compared_lines
    assert sum(line.expected is not None for line in lines) == sum(map(len, reference.lines))
    assert sum(line.actual is not None for line in lines) == sum(map(len, generated.lines))


@pytest.mark.parametrize(
    ("found", "variant", "reason"),
    [
        ("cR\ncR\ncc", "official", "within 0.6 to 0.8"),
        ("cR\ncR\ncR", "official", "earns nothing in the official code"),
        ("cR\ncR\ncR", "paper", "1.000 of the compared lines rhyme; 0.6 to 0.8 would earn all"),
        ("cR\ncc\ncc", "official", "as many as expected"),
    ],
)
def test_the_reward_has_a_reason(found: str, variant: str, reason: str) -> None:
    score = structure_score(pattern("(verse)\ncR\ncc\ncc"), pattern(f"(verse)\n{found}"), variant=variant)
    assert reason in score.levels[-1].reason


# ----------------------------------------------------------------------------------------------------- bad input
@pytest.mark.parametrize(
    ("options", "word"), [({"variant": "correct"}, "variant"), ({"section_match": "first"}, "match sections")]
)
def test_names_that_do_not_exist(options: dict[str, str], word: str) -> None:
    with pytest.raises(UnknownNameError, match=word):
        structure_score(pattern("(a)\nc"), pattern("(a)\nc"), **options)


# -------------------------------------------------------------------------------------------------------- rhymes
def test_agreement_of_marks_by_hand() -> None:
    # 2 of 3 marks are right, 2 of 4 are found
    found = rhyme_agreement([True, True, True, True, False], [True, True, False, False, True])
    assert found == pytest.approx((2 / 3, 1 / 2, 4 / 7))


def test_agreement_is_undefined_without_marks() -> None:
    with pytest.warns(UndefinedMetricWarning) as told:
        nothing = rhyme_agreement([False], [False])
    assert all(map(math.isnan, nothing))
    assert [str(each.message).split(" of ")[0] for each in told] == ["precision", "recall", "F1"]
    assert {each.filename for each in told} == {__file__}
    with pytest.warns(UndefinedMetricWarning, match="precision of rhymes is undefined: no line is marked"):
        missed = rhyme_agreement([True], [False])
    assert math.isnan(missed.precision)
    assert (missed.recall, missed.f1) == (0.0, 0.0)
    with pytest.raises(InvalidInputError, match="2 reference marks and 1 marks"):
        rhyme_agreement([True, False], [True])
