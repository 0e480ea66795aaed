"""How well a lyric keeps a given structure: the score of MuChin, on patterns.

A structure is a list of sections with lines of ``c``, ``R`` and spaces (`Pattern`). A lyric is compared with it on five
levels, and a reward stands on top (Wang et al., *MuChin*, IJCAI 2024, appendix G, equations 1-3 and algorithm 1):

======== ======= =====================================================================================
level    maximum compares
======== ======= =====================================================================================
song     10      the whole patterns as strings, in order
section  32.5    the sequence of section codes
phrase   17.5    numbers of lines in the sections that match
word     20      numbers of characters in the lines that are compared, the first ones of matching sections
rhyme    20      rhyming lines among them
reward   10      for a good share of rhyming lines
======== ======= =====================================================================================

Higher is better; a level that nothing matches on is 0. The three variants:

- ``"official"``: the authors' code (CarlWangChina/MuChin, ``gen_eval/glrc_obj_eval.py`` at be09ac6) bit for bit. It
  made table 1 of the paper. Its habits: song and section level are the gestalt ratio of `difflib` with ``autojunk``;
  the section and phrase ratio are carried into the levels below, the word ratio is not; the word ratio is the
  *product* of the lines' ratios, so that one blank line makes it 0; the phrase ratio is divided by one hundredth of a
  line too much, so that a perfect lyric does not reach 110; a share of rhyming lines of exactly 1 gets no reward by its
  share, since 1.0 - 0.7 is more than 0.3 in binary arithmetic.
- ``"paper"``: the text of appendix G, with our readings where it leaves room. p1 and p2 as above. p3 = 2 sum min / sum
  over lines of matched sections; p4 the same over the characters (``c`` and ``R``) of compared lines; p5 = 2 K / (La +
  Lb), K compared lines that rhyme on both sides, La and Lb *all* lines of the two songs. Each level carries all ratios
  up to its own (equation 3). Reward: algorithm 1 with all five ratios carried; the share is that of the lyric's
  rhyming lines among the compared ones, held to its bounds in exact arithmetic; the condition for 0.7 as printed: as
  many rhyming lines among the compared ones of both sides, and more than none.
- ``"corrected"``: ours, 0 to 100, without the reward. Each level is max(0, 1 - edits / asked), where the edits are the
  fewest that make the lyric what was asked for (`lyric_edits`): at the section level sections to add, drop or rename,
  at the phrase level lines to add or drop, at the word level characters and pauses to add, drop or change, at the rhyme
  level rhymes that are missing, and at the song level all of them together. Levels add, and carry nothing into each
  other. A rhyme that nobody asked for neither earns nor costs; a symbol that is no Chinese character and no pause
  counts as none, a line of them alone as no line, and a section of such lines as no section. Where a pattern asks for
  no rhyme, the rhyme level is as the phrase level; where it asks for no line, all below are as the section level.

Why a corrected one: under ``"official"`` damage can pay, since fewer rhymes may earn more reward, and letters ``c`` and
``R`` pass for characters, so that the pattern itself scores like true lyrics (``benchmarks/lyric_structure`` counts
both). Under ``"corrected"`` no step raises the score by which a lyric that is as asked loses sections, lines,
characters, pauses or rhymes, gets a section misnamed, or characters replaced by foreign symbols, in any order and
number; nor does a step by which such a lyric gets more of anything. Where both are mixed a text may come nearer to the
pattern by another pairing of its lines, and then scores so.
"""

from __future__ import annotations

import dataclasses
import difflib
import functools
from collections.abc import Sequence
from typing import Final, NamedTuple

from music_evals.annotations import Pattern
from music_evals.errors import InvalidInputError, InvalidLyricsError, UnknownNameError
from music_evals.metrics.arrays import undefined
from music_evals.metrics.lyric_edits import Edits, count_edits, without_letters
from music_evals.metrics.lyric_report import (
    Level,
    LineReport,
    SectionReport,
    level_reasons,
    line_counts,
    report_sections,
    reported_sections,
)

__all__ = [
    "MAXIMUM", "SECTION_MATCHES", "VARIANTS", "Agreement", "Level", "LineReport", "LyricStructure", "Pattern",
    "SectionReport", "rhyme_agreement", "structure_score", "without_letters",
]  # fmt: skip

VARIANTS: Final = ("official", "corrected", "paper")
"""The authors' code bit for bit, the fewest edits, or the text of the paper."""
SECTION_MATCHES: Final = ("initial", "type", "label")
"""What makes sections the same: the first letter of their labels, the label without its number, or all of it."""

MAXIMUM: Final = {"song": 10.0, "section": 32.5, "phrase": 17.5, "word": 20.0, "rhyme": 20.0, "reward": 10.0}
"""Level -> points that can be reached; ``"corrected"`` has no reward."""


@dataclasses.dataclass(frozen=True)
class _Points:
    """Fields of `LyricStructure`."""

    song: float
    section: float
    phrase: float
    word: float
    rhyme: float
    reward: float
    total: float
    song_ratio: float
    section_ratio: float
    phrase_ratio: float
    word_ratio: float
    rhyme_ratio: float
    cumulative_ratio: float
    rhyme_share: float
    reward_factor: float


@dataclasses.dataclass(frozen=True)
class LyricStructure(_Points):
    """Score of one lyric, with all that it was made of.

    Parameters
    ----------
    song, section, phrase, word, rhyme, reward
        Points, 0 to `MAXIMUM`, higher is better.
    total
        Their sum, 0..110; of ``"corrected"`` 0..100.
    song_ratio, section_ratio, phrase_ratio, word_ratio, rhyme_ratio
        Of each level alone, 0..1: p1 to p5.
    cumulative_ratio
        What the reward is multiplied by.
    rhyme_share
        Rhyming lines of the lyric among the compared ones; of ``"corrected"`` 0, as it has no reward.
    reward_factor
        Share of the reward that `rhyme_share` earns, 0..1.
    compared_lines
        Lines that have a counterpart in a matched section.
    matched_lines
        Lines of matched sections, both sides together; official: 0.01 more.
    corrected_total
        The total under ``"corrected"``, 0..100, whichever variant was asked for.
    expected_rhymes, found_rhymes, parallel_rhymes
        ``R`` in the compared lines of the reference and of the lyric, and compared lines with both.
    expected_codes, found_codes
        Section codes that were compared.
    pairs
        Matched sections: place in the reference, place in the lyric, from 0.
    reference, generated
        The two patterns.
    variant
        The one that was asked for.
    edits
        What ``"corrected"`` is made of, whichever variant was asked for.
    notes
        What a reader should know, in words: what the authors' code could not score, and the like.
    """

    compared_lines: int
    matched_lines: float
    corrected_total: float
    expected_rhymes: int
    found_rhymes: int
    parallel_rhymes: int
    expected_codes: tuple[str, ...]
    found_codes: tuple[str, ...]
    pairs: tuple[tuple[int, int], ...]
    reference: Pattern = dataclasses.field(repr=False)
    generated: Pattern = dataclasses.field(repr=False)
    edits: Edits = dataclasses.field(repr=False)
    variant: str = "official"
    notes: tuple[str, ...] = ()

    @property
    def levels(self) -> tuple[Level, ...]:
        """The five levels and, where the variant has one, the reward, with their reasons."""
        ratios = (self.song_ratio, self.section_ratio, self.phrase_ratio, self.word_ratio, self.rhyme_ratio)
        named = zip(MAXIMUM.items(), (*ratios, self.reward_factor), level_reasons(self), strict=True)
        levels = (Level(name, getattr(self, name), most, ratio, reason) for (name, most), ratio, reason in named)
        return tuple(level for level in levels if level.name != "reward" or self.variant != "corrected")

    @property
    def maximum(self) -> float:
        """Points that can be reached under this variant."""
        return sum(level.maximum for level in self.levels)

    @functools.cached_property
    def sections(self) -> tuple[SectionReport, ...]:
        """Sections of both texts in reading order, with their lines and what each of them lost."""
        line_pairs = self.edits.line_pairs if self.variant == "corrected" else None
        return report_sections(self.reference, self.generated, self.pairs, self.variant, line_pairs)

    def explain(self) -> tuple[str, ...]:
        """Return where points were lost, one statement a line: the levels, then sections and lines with a loss."""
        levels = [
            f"{level.name:8}{level.points:7.2f} of {level.maximum:<5g} ratio {level.ratio:.3f}: {level.reason}"
            for level in self.levels
        ]
        total = f"{'total':8}{self.total:7.2f} of {self.maximum:<5g} ({self.variant})"
        return (total, *levels, *reported_sections(self.sections), *(f"note: {note}" for note in self.notes))


class _Counts(NamedTuple):
    """Sums over the lines of matched sections."""

    compared: int
    matched: float
    expected_rhymes: int
    found_rhymes: int
    parallel: int
    product: float
    common: int
    characters: int
    blanks: tuple[tuple[int, int], ...]


def structure_score(
    reference: Pattern,
    generated: Pattern,
    *,
    variant: str = "official",
    autojunk: bool = True,
    accumulate_song: bool = False,
    section_match: str = "initial",
    strict: bool = True,
) -> LyricStructure:
    """Compare the pattern of a lyric with the pattern that it should have.

    Parameters
    ----------
    reference
        The structure that was asked for.
    generated
        Pattern of the lyric. The order of the two matters: the song level is not symmetric.
    variant
        One of `VARIANTS`. Besides ``"official"``, letters ``c`` and ``R`` in the words of the lyric are foreign.
    autojunk
        `difflib`'s heuristic for sequences of 200 elements and more. Table 1 was made with it; without it the song
        level is about three times as high for unrelated songs.
    accumulate_song
        Carry the song ratio into all other levels, as the authors' ``am_p1sr`` does. ``"paper"`` always does.
    section_match
        One of `SECTION_MATCHES`. ``"initial"`` is official: intro and interlude are the same. Case does not count.
    strict
        What the authors' code stops at (a blank line opposite a blank line; a label whose first letter has no single
        capital) is an error. False scores such a pair of lines as 1, and says so in `LyricStructure.notes`.

    Returns
    -------
    LyricStructure
        Points, ratios, counts and explanations.

    Raises
    ------
    InvalidLyricsError
        What the authors' code stops at, with ``strict``.
    UnknownNameError
        A variant or a way to match that does not exist.
    """
    if variant not in VARIANTS:
        raise UnknownNameError("variant", variant, VARIANTS)
    if section_match not in SECTION_MATCHES:
        raise UnknownNameError("way to match sections", section_match, SECTION_MATCHES)
    # sections are matched by their codes, in order
    codes = tuple(_codes(each.labels, section_match) for each in (reference, generated))
    notes: tuple[str, ...] = ()
    if variant == "official" and section_match == "initial":
        notes = _check_initials((*reference.labels, *generated.labels), strict=strict)
    blocks = difflib.SequenceMatcher(None, codes[0], codes[1], autojunk).get_matching_blocks()
    pairs = tuple((block.a + k, block.b + k) for block in blocks for k in range(block.size))
    clean = without_letters(generated)
    edits = count_edits(reference, clean, codes, tuple(MAXIMUM.values())[:-1])
    corrected = _corrected(edits)
    if variant != "official":
        generated = clean
    if variant == "corrected":
        pairs = edits.pairs
    counts = _count(reference, generated, pairs, variant)
    if variant == "official":  # the paper adds up before it divides
        notes += _check_blanks(reference, counts.blanks, strict=strict)
    # p1 of whole texts, p2 of sections
    p1 = difflib.SequenceMatcher(None, reference.text, generated.text, autojunk).ratio()
    n = len(codes[0]) + len(codes[1])
    p2 = 2.0 * len(pairs) / n if n else 1.0
    if variant == "official":
        points = _official(p1, p2, counts, accumulate_song=accumulate_song)
    elif variant == "corrected":
        points, counts = corrected, _edited_counts(reference, generated, edits)
    else:
        points = _paper(p1, p2, counts, sum(map(len, reference.lines)) + sum(map(len, generated.lines)))
    return LyricStructure(
        **vars(points),
        compared_lines=counts.compared,
        matched_lines=counts.matched,
        corrected_total=corrected.total,
        expected_rhymes=counts.expected_rhymes,
        found_rhymes=counts.found_rhymes,
        parallel_rhymes=counts.parallel,
        expected_codes=codes[0],
        found_codes=codes[1],
        pairs=pairs,
        reference=reference,
        generated=generated,
        edits=edits,
        variant=variant,
        notes=notes,
    )


def _codes(labels: Sequence[str], section_match: str) -> tuple[str, ...]:
    if section_match == "initial":
        return tuple(label[0].upper() for label in labels)
    if section_match == "label":
        return tuple(label.casefold() for label in labels)
    return tuple(label.rstrip("0123456789_-").casefold() or label.casefold() for label in labels)


def _check_initials(labels: Sequence[str], *, strict: bool) -> tuple[str, ...]:
    """Return a note where the authors' code would lose count of the sections, or raise it."""
    odd = next((label for label in labels if len(label[0].upper()) != 1), None)
    if odd is None:
        return ()
    about = f"the first letter of section label {odd!r} becomes {odd[0].upper()!r} as a capital"
    if strict:
        raise InvalidLyricsError(
            f"{about}, where the official code loses count of the sections; rename it, or score it with strict=False"
        )
    return (f"{about}: the official code cannot score this",)


def _check_blanks(reference: Pattern, blanks: Sequence[tuple[int, int]], *, strict: bool) -> tuple[str, ...]:
    """Return a note where a blank line met a blank line, which stops the authors' code, or raise it."""
    if not blanks:
        return ()
    section, line = blanks[0]
    place = f"section {section + 1} ({reference.labels[section]}), line {line + 1}"
    about = f"{place}: blank in the reference and in the lyrics"
    if strict:
        raise InvalidLyricsError(
            f"{about}, where the official code divides by zero; remove the line, or score it with strict=False"
        )
    return (f"{about}; scored as 1, where the official code stops",)


def _count(reference: Pattern, generated: Pattern, pairs: Sequence[tuple[int, int]], variant: str) -> _Counts:
    compared = expected_rhymes = found_rhymes = parallel = common = characters = 0
    # not a sum with 0.01 at its end: the order of additions is the authors'
    matched, product = (0.0 if variant == "paper" else 0.01), 1.0
    blanks = []
    for first, second in pairs:
        expected, actual = reference.lines[first], generated.lines[second]
        compared += min(len(expected), len(actual))
        matched += len(expected) + len(actual)
        for index in range(min(len(expected), len(actual))):
            wanted, line = expected[index].strip(), actual[index].strip()
            wanted_rhymes, line_rhymes = wanted.count("R"), line.count("R")
            expected_rhymes += wanted_rhymes
            found_rhymes += line_rhymes
            parallel += bool(wanted_rhymes & line_rhymes)
            # characters in common, and those of each side
            least, wanted_count, line_count = line_counts(wanted, line, variant)
            common += least
            characters += wanted_count + line_count
            if wanted or line:
                product *= least * 2.0 / (len(wanted) + len(line))
            else:
                blanks.append((first, index))
    return _Counts(
        compared, matched, expected_rhymes, found_rhymes, parallel, product, common, characters, tuple(blanks)
    )


def _official(p1: float, p2: float, counts: _Counts, *, accumulate_song: bool) -> _Points:
    """Return points and ratios; each product in the order of the authors' code, since its bits are kept."""
    carried = (p1 if accumulate_song else 1.0) * p2
    song, section = MAXIMUM["song"] * p1, MAXIMUM["section"] * carried
    # p3, lines: the ratio is carried into the levels below
    p3 = counts.compared * 2.0 / counts.matched
    carried *= p3
    phrase = MAXIMUM["phrase"] * carried
    p4 = counts.product
    word = MAXIMUM["word"] * p4 * carried
    # p5, rhymes: like the word ratio it is carried no further
    rhymes = counts.expected_rhymes + counts.found_rhymes
    p5 = 2 * min(counts.expected_rhymes, counts.found_rhymes) / rhymes if rhymes else 0.0
    rhyme = MAXIMUM["rhyme"] * p5 * carried
    share = counts.found_rhymes / counts.compared if counts.compared else 0.0
    factor = _official_factor(share, counts)
    reward = MAXIMUM["reward"] * carried * factor
    total = song + section + phrase + word + rhyme + reward
    return _Points(song, section, phrase, word, rhyme, reward, total, p1, p2, p3, p4, p5, carried, share, factor)


def _official_factor(share: float, counts: _Counts) -> float:
    if 0.6 <= share <= 0.8:
        return 1.0
    if counts.parallel == counts.expected_rhymes == counts.found_rhymes and counts.parallel > 0:
        return 0.7
    distance = abs(share - 0.7)
    return 0.4 * (1 - distance) if distance <= 0.3 else 0.0


def _paper(p1: float, p2: float, counts: _Counts, all_lines: int) -> _Points:
    p3 = 2.0 * counts.compared / counts.matched if counts.matched else 0.0
    p4 = 2.0 * counts.common / counts.characters if counts.characters else 0.0
    p5 = 2.0 * counts.parallel / all_lines if all_lines else 0.0
    song, section = MAXIMUM["song"] * p1, MAXIMUM["section"] * p1 * p2
    phrase, word = MAXIMUM["phrase"] * p1 * p2 * p3, MAXIMUM["word"] * p1 * p2 * p3 * p4
    carried = p1 * p2 * p3 * p4 * p5
    rhyme = MAXIMUM["rhyme"] * carried
    share = counts.found_rhymes / counts.compared if counts.compared else 0.0
    factor = _paper_factor(share, counts)
    reward = MAXIMUM["reward"] * carried * factor
    total = song + section + phrase + word + rhyme + reward
    return _Points(song, section, phrase, word, rhyme, reward, total, p1, p2, p3, p4, p5, carried, share, factor)


def _paper_factor(share: float, counts: _Counts) -> float:
    tenths, lines = 10 * counts.found_rhymes, counts.compared  # whole numbers, so that the bounds belong to the range
    if lines and 6 * lines <= tenths <= 8 * lines:
        return 1.0
    if counts.expected_rhymes == counts.found_rhymes > 0:
        return 0.7
    return 0.4 * (1.0 - abs(share - 0.7)) if lines and 4 * lines <= tenths <= 10 * lines else 0.0


def _corrected(edits: Edits) -> _Points:
    """Return the points of what the fewest edits leave of each level."""
    p1, p2 = (
        _left(sum(edits.needed), sum(edits.expected), 0.0),
        _left(edits.needed.sections, edits.expected.sections, 0.0),
    )
    # a level of which nothing is asked for is as the one above it
    p3 = _left(edits.needed.lines, edits.expected.lines, p2)
    p4 = _left(edits.needed.characters, edits.expected.characters, p3)
    p5 = _left(edits.needed.rhymes, edits.expected.rhymes, p3)
    most = MAXIMUM
    song, section, phrase = most["song"] * p1, most["section"] * p2, most["phrase"] * p3
    word, rhyme = most["word"] * p4, most["rhyme"] * p5
    total = song + section + phrase + word + rhyme
    return _Points(song, section, phrase, word, rhyme, 0.0, total, p1, p2, p3, p4, p5, 1.0, 0.0, 0.0)


def _left(needed: int, expected: int, otherwise: float) -> float:
    return max(0.0, 1.0 - needed / expected) if expected else otherwise


def _edited_counts(reference: Pattern, generated: Pattern, edits: Edits) -> _Counts:
    """Return the sums over the lines that the fewest edits pair."""
    marks = [
        ("R" in reference.lines[first][a], "R" in generated.lines[second][b])
        for (first, second), lines in zip(edits.pairs, edits.line_pairs, strict=True)
        for a, b in lines
    ]
    matched = sum(len(reference.lines[first]) + len(generated.lines[second]) for first, second in edits.pairs)
    n_expected_rhymes, n_rhymes = sum(each for each, _ in marks), sum(each for _, each in marks)
    return _Counts(len(marks), float(matched), n_expected_rhymes, n_rhymes, sum(map(all, marks)), 1.0, 0, 0, ())


class Agreement(NamedTuple):
    """Marks against reference marks; 0..1 each, higher is better, NaN where undefined.

    Attributes
    ----------
    precision, recall, f1
        Of the marked lines.
    """

    precision: float
    recall: float
    f1: float


def rhyme_agreement(reference_marks: Sequence[bool], marks: Sequence[bool]) -> Agreement:
    """Compare rhyme marks, such as those found by a program with those of people.

    Parameters
    ----------
    reference_marks
        One a line, n of them: whether it rhymes.
    marks
        n of them, of the same lines.

    Returns
    -------
    Agreement
        Precision is NaN where no line is marked, recall where no line should be, F1 where neither.

    Warns
    -----
    UndefinedMetricWarning
        Where one of them is NaN.

    Raises
    ------
    InvalidInputError
        Different numbers of marks.

    Examples
    --------
    >>> rhyme_agreement([True, True, False, True], [True, True, True, False])
    Agreement(precision=0.6666666666666666, recall=0.6666666666666666, f1=0.6666666666666666)
    """
    if len(reference_marks) != len(marks):
        raise InvalidInputError(
            f"{len(reference_marks)} reference marks and {len(marks)} marks; give one of each a line"
        )
    n_reference, n_marked = sum(map(bool, reference_marks)), sum(map(bool, marks))
    both = sum(bool(first and second) for first, second in zip(reference_marks, marks, strict=True))
    return Agreement(
        both / n_marked if n_marked else undefined("precision of rhymes", "no line is marked"),
        both / n_reference if n_reference else undefined("recall of rhymes", "no line has a reference mark"),
        2 * both / (n_reference + n_marked)
        if n_reference + n_marked
        else undefined("F1 of rhymes", "no line is marked on any side"),
    )
