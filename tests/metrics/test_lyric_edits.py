"""The corrected variant of the lyric score: the fewest edits, and that damage never pays."""

from __future__ import annotations

import functools
import itertools

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from music_evals.annotations import Pattern
from music_evals.metrics.lyric_edits import FOREIGN, Amounts, edit_distance, without_letters
from music_evals.metrics.lyric_structure import MAXIMUM, LyricStructure, structure_score

Sections = list[tuple[str, list[str]]]


def pattern(sections: Sections) -> Pattern:
    text = "\n".join(row for label, lines in sections for row in (f"({label})", *lines))
    return Pattern(text, tuple(label for label, _ in sections), tuple(tuple(lines) for _, lines in sections))


def corrected(reference: Sections, generated: Sections) -> LyricStructure:
    return structure_score(pattern(reference), pattern(generated), variant="corrected")


ASKED: Sections = [("verse", ["cccR", "cc cR", "cccc"]), ("chorus", ["ccR", "ccR"])]


# --------------------------------------------------------------------------------------------------------- by hand
def test_a_text_as_asked_needs_no_edit() -> None:
    score = corrected(ASKED, ASKED)
    # 2 sections, 5 lines, 4 + 5 + 4 + 3 + 3 characters with a pause, 4 rhymes
    assert score.edits.expected == Amounts(2, 5, 19, 4)
    assert score.edits.needed == Amounts(0, 0, 0, 0)
    assert score.total == score.corrected_total == score.maximum == 100.0
    assert [level.name for level in score.levels] == ["song", "section", "phrase", "word", "rhyme"]
    assert all(line.lossless for section in score.sections for line in section.lines)


def test_every_level_by_hand() -> None:
    # chorus misnamed; verse: a character and a rhyme short in line 1, line 3 gone; chorus: one foreign symbol too much
    found: Sections = [("verse", ["ccc", "cc cR"]), ("xyz", ["ccR", "ccxR"])]
    score = corrected(ASKED, found)
    assert score.edits.needed == Amounts(1, 1, 1 + 4 + 1, 1)
    expected = {
        "song": 10 * (1 - 9 / 30), "section": 32.5 * (1 - 1 / 2), "phrase": 17.5 * (1 - 1 / 5),
        "word": 20 * (1 - 6 / 19), "rhyme": 20 * (1 - 1 / 4),
    }  # fmt: skip
    assert {level.name: level.points for level in score.levels} == pytest.approx(expected, abs=1e-12)
    assert score.total == pytest.approx(sum(expected.values()), abs=1e-12)
    told = "\n".join(score.explain())
    assert "1 sections to add, drop or rename; 2 asked for" in told
    assert "6 characters and pauses to add, drop or change; 19 asked for" in told
    assert "section 2 (chorus), headed (xyz)" in told
    assert "line 3: missing, 4 characters expected" in told


def test_lines_are_paired_with_what_they_are_and_not_by_number() -> None:
    """The first line is missing: by number all lines would have the wrong length, as in the official variant."""
    asked: Sections = [("verse", ["c" * n for n in (3, 9, 3, 9, 3)])]
    found: Sections = [("verse", ["c" * n for n in (9, 3, 9, 3)])]
    score = corrected(asked, found)
    assert score.edits.needed == Amounts(0, 1, 3, 0)
    assert score.edits.line_pairs == (((1, 0), (2, 1), (3, 2), (4, 3)),)
    assert structure_score(pattern(asked), pattern(found)).word < 1.2  # 20 for true lyrics


def test_rhymes_beyond_what_was_asked_earn_nothing_and_cost_nothing() -> None:
    more: Sections = [(label, [line[:-1] + "R" for line in lines]) for label, lines in ASKED]
    assert corrected(ASKED, more).total == 100.0
    without: Sections = [(label, [line.replace("R", "c") for line in lines]) for label, lines in ASKED]
    elsewhere: Sections = [("verse", ["cccc", "cc cc", "cccR"]), ("chorus", ["ccc", "ccc"])]
    assert corrected(ASKED, elsewhere).total == corrected(ASKED, without).total == pytest.approx(100 - 20 - 10 * 4 / 30)


def test_where_nothing_of_a_kind_is_asked_for() -> None:
    unrhymed: Sections = [("verse", ["ccc", "ccc"])]
    half: Sections = [("verse", ["ccc"])]
    score = corrected(unrhymed, half)
    assert (score.phrase_ratio, score.rhyme_ratio) == (0.5, 0.5)
    played: Sections = [("intro", []), ("verse", ["ccR", "ccR"]), ("ending", [])]
    assert corrected(played, played).total == 100.0
    assert corrected([("intro", [])], [("intro", [])]).total == 100.0
    assert corrected([("intro", [])], []).total == 0.0
    assert corrected([], ASKED).total == 0.0


@pytest.mark.parametrize(
    "found",
    [
        [],
        [("verse", []), ("chorus", [])],
        [("verse", ["xxxx", "xxxxx", "xxxx"]), ("chorus", ["xxx", "xxx"])],
        [("verse", ["ccc"] * 400)],
    ],
    ids=["nothing", "headers", "foreign", "endless"],
)
def test_the_low_end(found: Sections) -> None:
    assert corrected(ASKED, found).total <= (0.0 if len(found) != 1 else 20.0)


def test_letters_of_the_words_are_no_characters() -> None:
    words = (("ccc光", "Rc霜"),)
    raw = Pattern("(cR)\ncccR\nRcR", ("cR",), (("cccR", "RcR"),), words)
    clean = without_letters(raw)
    assert clean.lines == (("xxxR", "xxR"),)
    assert clean.text == "(cR)\nxxxR\nxxR"
    assert without_letters(clean) == clean
    assert structure_score(raw, raw).word == 20.0 * structure_score(raw, raw).cumulative_ratio
    assert structure_score(raw, raw, variant="corrected").edits.needed.characters == 5


# ------------------------------------------------------------------------------------------------------- an oracle
@functools.cache
def slow_distance(first: str, second: str) -> int:
    """By its definition: the best of all first steps."""
    if not first or not second:
        return len(first) + len(second)
    changed = slow_distance(first[1:], second[1:]) + (first[0] != second[0] or first[0] == FOREIGN)
    return min(changed, 1 + slow_distance(first[1:], second), 1 + slow_distance(first, second[1:]))


symbols = st.text("c xx", max_size=9)


@given(symbols, symbols, symbols)
def test_the_edit_distance_is_its_definition(first: str, second: str, third: str) -> None:
    assert edit_distance(first, second) == slow_distance(first, second)
    assert edit_distance(first, third) <= edit_distance(first, second) + edit_distance(second, third)


# a line begins with a character: pauses at its ends do not count
lines = st.builds(
    lambda n, pause, rhyme: "c" * n + (" " + "c" * pause if pause else "") + ("R" if rhyme else "c"),
    st.integers(1, 6), st.integers(0, 3), st.booleans(),
)  # fmt: skip
songs = st.lists(
    st.tuples(st.sampled_from(["verse", "chorus", "bridge"]), st.lists(lines, min_size=1, max_size=4)),
    min_size=1, max_size=4,
)  # fmt: skip
small = st.lists(st.tuples(st.sampled_from(["verse", "chorus"]), st.lists(lines, min_size=1, max_size=2)),
                 min_size=1, max_size=2)  # fmt: skip


def pairings(n: int, m: int) -> list[tuple[tuple[int, int], ...]]:
    """All pairings in order of n things with m things."""
    return [
        tuple(zip(some, others, strict=True))
        for size in range(min(n, m) + 1)
        for some in itertools.combinations(range(n), size)
        for others in itertools.combinations(range(m), size)
    ]


def cost(asked: Amounts, needed: tuple[int, int, int, int]) -> float:
    """Points that edits cost where no level is at its floor."""
    most = [32.5, 17.5, 20.0, 20.0]
    levels = sum(points * n / of for points, n, of in zip(most, needed, asked, strict=True) if of)
    return levels + 10.0 * sum(needed) / sum(asked)


def all_costs(asked: Amounts, first: Sections, second: Sections) -> list[float]:
    """What every pairing of sections and lines costs."""
    found = []
    for sections in pairings(len(first), len(second)):
        inner = [pairings(len(first[i][1]), len(second[j][1])) for i, j in sections]
        for chosen in itertools.product(*inner):
            n_sections = len(first) + len(second) - 2 * len(sections)
            n_lines = sum(len(rows) for _, rows in first) + sum(len(rows) for _, rows in second)
            n_characters = sum(len(row) for side in (first, second) for _, rows in side for row in rows)
            n_rhymes = asked.rhymes
            for (i, j), rows in zip(sections, chosen, strict=True):
                n_sections += first[i][0] != second[j][0]
                for a, b in rows:
                    wanted, got = first[i][1][a], second[j][1][b]
                    n_lines -= 2
                    n_characters += slow_distance(wanted.replace("R", "c"), got.replace("R", "c"))
                    n_characters -= len(wanted) + len(got)
                    n_rhymes -= "R" in wanted and "R" in got
            found.append(cost(asked, (n_sections, n_lines, n_characters, n_rhymes)))
    return found


@given(small, small)
@example([("verse", ["c cR"])], [("verse", ["cR"]), ("verse", ["cR"])])  # a section too much, with its rhyme
def test_no_pairing_needs_less(first: Sections, second: Sections) -> None:
    edits = corrected(first, second).edits
    assert cost(edits.expected, edits.needed) == pytest.approx(min(all_costs(edits.expected, first, second)), abs=1e-9)


# ------------------------------------------------------------------------------------------------------------ laws
@given(songs, songs)
def test_the_range(reference: Sections, generated: Sections) -> None:
    score = corrected(reference, generated)
    assert 0.0 <= score.total <= 100.0 + 1e-12
    for level in score.levels:
        assert 0.0 <= level.points <= MAXIMUM[level.name]
    paired = [line for section in score.sections for line in section.lines if line.status == "matched"]
    assert len(paired) == score.compared_lines
    everything = [line for section in score.sections for line in section.lines]
    assert sum(line.expected is not None for line in everything) == sum(len(rows) for _, rows in reference)
    assert sum(line.actual is not None for line in everything) == sum(len(rows) for _, rows in generated)


def lose(text: Sections, draw: st.DrawFn) -> Sections:
    """Take one thing away from a text that only lost things, or spoil it; lines that are sung alone are touched."""
    text = [(label, list(rows)) for label, rows in text]
    i = draw(st.integers(0, len(text) - 1))
    label, rows = text[i]
    places = [place for place, row in enumerate(rows) if "c" in row or "R" in row]
    kind = draw(st.sampled_from(["section", "name", "line", "character", "foreign", "rhyme"]))
    if kind == "section" and places:
        return text[:i] + text[i + 1 :]
    if kind == "name" and places and label != "no such section":
        return [*text[:i], ("no such section", rows), *text[i + 1 :]]
    if not places:
        return text
    j = draw(st.sampled_from(places))
    row = rows[j]
    if kind == "line":
        return [*text[:i], (label, rows[:j] + rows[j + 1 :]), *text[i + 1 :]]
    if kind == "rhyme":
        rows[j] = row.replace("R", "c")
        return text
    signs = [place for place, sign in enumerate(row) if sign == "c"]
    if not signs or (len(signs) == 1 and "R" not in row):
        return text
    k = draw(st.sampled_from(signs))
    rows[j] = row[:k] + (FOREIGN if kind == "foreign" else "") + row[k + 1 :]
    return text


def gain(text: Sections, draw: st.DrawFn) -> Sections:
    """Add one thing to a text that only got things too much."""
    text = [(label, list(rows)) for label, rows in text]
    i = draw(st.integers(0, len(text) - 1))
    rows = text[i][1]
    kind = draw(st.sampled_from(["section", "line", "character", "foreign"]))
    if kind == "section":
        return [*text[:i], ("verse", ["ccccc"]), *text[i:]]
    j = draw(st.integers(0, len(rows) - 1))
    if kind == "line":
        rows.insert(j, draw(st.sampled_from(["c", "ccccccc", "xxx"])))
    elif "c" in rows[j] or "R" in rows[j]:
        rows[j] = ("c" if kind == "character" else FOREIGN) + rows[j]
    return text


@pytest.mark.parametrize("step", [lose, gain])
@given(data=st.data())
def test_no_step_along_a_chain_of_damage_raises_the_score(step, data) -> None:
    """And each step that changes something lowers it, unless it is at its floor."""
    reference = data.draw(songs)
    text, before = reference, corrected(reference, reference)
    for _ in range(data.draw(st.integers(1, 12))):
        damaged = data.draw(st.composite(lambda draw, text=text: step(text, draw))())
        if not damaged:
            break
        after = corrected(reference, damaged)
        assert after.total <= before.total + 1e-9
        for level in ("song_ratio", "section_ratio", "phrase_ratio", "word_ratio", "rhyme_ratio"):
            assert getattr(after, level) <= getattr(before, level) + 1e-12
        if damaged != text and after.song_ratio > 0:
            assert after.total < before.total - 1e-9
        text, before = damaged, after


@given(songs, songs, st.data())
def test_spoiling_lowers_or_keeps_the_score_of_any_text(reference: Sections, text: Sections, data) -> None:
    """Whatever the text is: a foreign symbol in place of a character, a rhyme less, a name that nobody asked for."""
    i = data.draw(st.integers(0, len(text) - 1))
    j = data.draw(st.integers(0, len(text[i][1]) - 1))
    row = text[i][1][j]
    kind = data.draw(st.sampled_from(["rhyme", "name", "foreign", "insert"]))
    spoiled = [(label, list(rows)) for label, rows in text]
    if kind == "name":
        spoiled[i] = ("no such section", spoiled[i][1])
    elif kind == "rhyme":
        spoiled[i][1][j] = row.replace("R", "c")
    else:
        assume("c" in row)
        k = row.index("c")
        spoiled[i][1][j] = row[:k] + FOREIGN + row[k + (kind == "foreign") :]
    asked = corrected(reference, text).edits
    needed = corrected(reference, spoiled).edits.needed
    assert cost(asked.expected, needed) >= cost(asked.expected, asked.needed) - 1e-9
