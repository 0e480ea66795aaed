"""Scores of structured lyrics: lyrics in, the score of MuChin out, for one song or for many.

Rhymes are found by `music_evals.lyrics.rhyme`, patterns by `music_evals.lyrics.patterns`; the score is
`music_evals.metrics.lyric_structure`. What is loaded, and from where, is the affair of the callers: input are texts.
"""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Iterable, Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from music_evals.annotations import Pattern
from music_evals.errors import (
    InvalidInputError,
    InvalidLyricsError,
    InvalidPatternError,
    NoChineseWarning,
    UndefinedMetricWarning,
    UnsupportedTypeError,
    located,
)
from music_evals.lyrics.patterns import SplitText, check_pattern, mark_lyrics, split_sections
from music_evals.lyrics.rhyme import RhymeMethod, last_character
from music_evals.lyrics.words import cut_words
from music_evals.metrics.catalogue import LYRIC_SCORES
from music_evals.metrics.lyric_content import lyric_wordlikeness
from music_evals.metrics.lyric_structure import (
    MAXIMUM,
    Agreement,
    LyricStructure,
    rhyme_agreement,
    structure_score,
    without_letters,
)
from music_evals.pipelines.intervals import check_groups, report_means
from music_evals.pipelines.lyric_content import WORDLIKENESS, pair_texts
from music_evals.stats.intervals import check_confidence

__all__ = [
    "EMPTY_TEXT", "HEADERS_ONLY", "NO_CHINESE", "NO_CHINESE_EMPTY", "NO_CHINESE_FORM", "NO_HEADER", "WITHOUT_CHINESE",
    "Agreement", "LyricStructure", "evaluate_lyrics", "lyric_structure", "rhyme_agreement", "score_names", "scores_of",
]  # fmt: skip


EMPTY_TEXT: Final = "the lyrics are empty"
"""Note on lyrics in which there is nothing to score."""
NO_HEADER: Final = "the lyrics have no section header, a word in round brackets as (verse)"
"""Note on lyrics in which there is nothing to score."""
HEADERS_ONLY: Final = "the lyrics are headers only: not one line stands under them"
"""Note on lyrics in which there is nothing to score."""

NO_CHINESE: Final = (
    "the lyrics have no Chinese character; the letters c and R count as characters, so that a pattern handed back "
    "scores like true lyrics"
)
"""Note on lines without a Chinese character, as the authors' code scores them."""
NO_CHINESE_FORM: Final = "the lyrics have no Chinese character; what they earn is for sections and lines alone"
"""The same where the text was normalised, so that letters count as foreign symbols."""
NO_CHINESE_EMPTY: Final = "the lyrics have no Chinese character, and score as an empty text"
"""The same under the other variants."""
WITHOUT_CHINESE: Final = (NO_CHINESE, NO_CHINESE_FORM, NO_CHINESE_EMPTY)
"""All notes on lines without a Chinese character."""


def lyric_structure(
    reference: str,
    generated: str,
    *,
    variant: str = "official",
    rhyme: RhymeMethod | None = None,
    normalise: bool = False,
    song_format: str = "auto",
    autojunk: bool = True,
    accumulate_song: bool = False,
    section_match: str = "initial",
    strict: bool = True,
) -> LyricStructure:
    r"""Score how well lyrics keep the structure that was asked for.

    The authors' code scores lines without a Chinese character like all others, so that the pattern itself, handed back,
    reaches the score of true lyrics. ``"official"`` keeps to that, with a note; with `normalise` the letters ``c`` and
    ``R`` are foreign symbols, and the other variants score such lyrics as an empty text.

    Parameters
    ----------
    reference
        The pattern: headers, lines of ``c``, ``R`` and spaces (`music_evals.lyrics.patterns`). Headers may stand inside
        a line, and lines may be blank. A song's own: ``sections_text(sections_of_rows(row["structure"], "rhyme"))``.
    generated
        Lyrics with section headers such as ``(verse)``, one phrase a line.
    variant
        ``"official"``: the authors' code bit for bit, the maker of the paper's table 1. ``"corrected"``: the fewest
        edits that make the lyrics what was asked for, 0 to 100, which no damage raises. ``"paper"``: appendix G, as
        `music_evals.metrics.lyric_structure` reads it. The corrected total is always there, as
        ``LyricStructure.corrected_total``.
    rhyme
        How rhymes are found: ``"official"`` (also None), ``"line"``, ``"char"`` or a function from a line to its class,
        None for no class. See `music_evals.lyrics.rhyme`.
    normalise
        First read the lyrics as language models write them (`music_evals.lyrics.normalise.normalise_lyrics`): code
        fences, remarks, other brackets, traditional characters. Off for parity. What it changed is in the notes.
    song_format
        With `normalise`: the format of the lyrics, one of `music_evals.lyrics.song_formats.FORMATS`, or ``"auto"``,
        which detects it. The notes name the detected format.
    autojunk, accumulate_song, section_match
        As in `music_evals.metrics.lyric_structure.structure_score`.
    strict
        True: lyrics that cannot be scored are errors, and so is what the authors' code stops at. False: such a pair of
        blank lines counts as right, and all else scores what the authors' code gives it: lyrics without a header 0,
        headers without a line the points of headers. The notes say so.

    Returns
    -------
    LyricStructure
        Points by level and in total (0..110, corrected 0..100; higher is better), all intermediate values, and where
        points were lost.

    Raises
    ------
    InvalidLyricsError
        With ``strict``: no header, no line under any header, or what the authors' code stops at.
    InvalidPatternError
        With ``strict``: a reference that is not in the grammar; tells line and column.
    UnsupportedTypeError
        Lyrics or a reference that are no text.
    UnknownNameError
        A variant, rhyme method or way to match that does not exist.
    MissingBackendError
        The rhyme method, or the normaliser, needs a package that is not installed.

    Examples
    --------
    >>> lyrics = "(verse)\n床前明月光\n疑是地上霜\n举头望明月\n低头思故乡"
    >>> score = lyric_structure("(verse)\nccccR\nccccR\nccccc\nccccR", lyrics, rhyme="char")
    >>> round(score.total, 2), round(score.song, 2), score.reward_factor
    (109.92, 10.0, 1.0)
    """
    for name, text in (("a reference pattern", reference), ("generated lyrics", generated)):
        if not isinstance(text, str):
            raise UnsupportedTypeError(f"{name} must be a text with headers such as (verse), got {type(text).__name__}")
    notes: tuple[str, ...] = ()
    if song_format != "auto" and not normalise:
        raise InvalidInputError(f"the format {song_format!r} is read with `normalise=True` alone; leave one out")
    if normalise:
        from music_evals.lyrics.normalise import normalise_lyrics

        read = normalise_lyrics(generated, song_format=song_format)
        generated, notes = read.text, read.changes
    marked = mark_lyrics(generated, "official" if rhyme is None else rhyme)
    wanted = check_pattern(reference) if strict else split_sections(reference)
    if normalise:
        marked = without_letters(marked)
    notes = (*notes, *_check_contents(wanted, generated, marked, strict=strict, normalise=normalise))
    if NO_CHINESE in notes and (normalise or variant != "official"):
        replacement = NO_CHINESE_FORM if variant == "official" else NO_CHINESE_EMPTY
        notes = tuple(replacement if note == NO_CHINESE else note for note in notes)
        marked = marked if variant == "official" else Pattern("", (), ())
    labels = tuple(section.label for section in wanted.sections)
    score = structure_score(
        Pattern(reference, labels, tuple(tuple(section.body.splitlines()) for section in wanted.sections)),
        marked,
        variant=variant,
        autojunk=autojunk,
        accumulate_song=accumulate_song,
        section_match=section_match,
        strict=strict,
    )
    return dataclasses.replace(score, notes=(*notes, *score.notes)) if notes else score


def score_names(variant: str) -> tuple[str, ...]:
    """Return the scores of a lyric under a variant: the total, its levels, and the corrected total beside them."""
    return tuple(name for name in LYRIC_SCORES if name != "lyric_reward" or variant != "corrected")


def scores_of(score: LyricStructure) -> dict[str, float]:
    """Return the points of one lyric by their names in the catalogue, those of `score_names`."""
    points = (score.total, *(getattr(score, level) for level in MAXIMUM), score.corrected_total)
    by_name = dict(zip(LYRIC_SCORES, points, strict=True))
    return {name: by_name[name] for name in score_names(score.variant)}


def evaluate_lyrics(
    references: Iterable[str],
    generated: Iterable[str],
    *,
    groups: npt.ArrayLike | None = None,
    confidence: float = 0.95,
    per_item: bool = False,
    **options: Any,
) -> dict[str, Any]:
    """Score many lyrics against the structures that were asked for.

    Parameters
    ----------
    references
        Patterns in the same order, n texts.
    generated
        Lyrics, n texts.
    groups
        Cluster of each lyric for the intervals, shape (n,), such as the song that several lyrics were written for; None
        makes each its own.
    confidence
        Nominal coverage of the intervals, above 0 and below 1.
    per_item
        True adds the scores of each lyric.
    **options
        Of `lyric_structure`.

    Returns
    -------
    dict
        For each of the scores of `score_names`, and ``lyric_wordlikeness``, which tells random characters that keep the
        form from a song (left out where `rhyme` is a function, which needs no extra): ``<name>``, the mean,
        ``<name>_ci`` (low, high), a clustered interval (`stats.intervals`), ``<name>_n`` lyrics, ``<name>_n_defined``
        of them that count: all, and ``<name>_n_clusters``, the effective number of clusters. ``per_item``: a list of
        one dict a lyric: its scores by name, and ``notes``.

    Warns
    -----
    NoChineseWarning
        Lyrics without a Chinese character; tells how many, and which is the first.
    UndefinedMetricWarning
        No lyrics have one: ``lyric_wordlikeness`` is NaN.

    Raises
    ------
    PairCountError, NoDataError
        Lyrics, references and groups differ in number, or are empty.
    InvalidLyricsError, InvalidPatternError, UnsupportedTypeError
        As `lyric_structure`; tells the place.
    UnknownNameError, MissingBackendError
        As `lyric_structure`.
    InvalidInputError
        An option out of range.
    """
    check_confidence(confidence)
    pairs = list(zip(*pair_texts(references, generated), strict=True))
    clusters = check_groups(groups, len(pairs))
    rows = [_score_at(index, *pair, options) for index, pair in enumerate(pairs)]
    notes = [(index, note) for index, row in enumerate(rows) for note in row.notes if note in WITHOUT_CHINESE]
    if notes:
        msg = f"{len(notes)} of {len(rows)} lyrics, the first is generated[{notes[0][0]}]: {notes[0][1]}"
        warnings.warn(msg, NoChineseWarning, stacklevel=2)
    own_rhymes = callable(options.get("rhyme"))  # needs no extra, as the dictionary of words does
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedMetricWarning)  # means say how many are defined
        scores = [
            scores_of(row) | ({} if own_rhymes else {WORDLIKENESS: lyric_wordlikeness(cut_words(row.generated.words))})
            for row in rows
        ]
    columns = np.array([list(row.values()) for row in scores], dtype=np.float64)
    result = report_means([*scores[0]], columns, clusters, confidence)
    if per_item:
        result["per_item"] = [{**row, "notes": list(each.notes)} for row, each in zip(scores, rows, strict=True)]
    return result


def _score_at(index: int, reference: str, generated: str, options: Mapping[str, Any]) -> LyricStructure:
    try:
        return lyric_structure(reference, generated, **options)
    except InvalidLyricsError as error:
        raise located(error, f"generated[{index}]") from error
    except InvalidPatternError as error:
        raise located(error, f"references[{index}]") from error
    except UnsupportedTypeError as error:
        raise located(error, f"pair {index}") from error


def _check_contents(
    wanted: SplitText, generated: str, marked: Pattern, *, strict: bool, normalise: bool
) -> tuple[str, ...]:
    """Return notes on what is missing; where nothing is left to score, that is an error with `strict`."""
    notes = []
    if not generated.strip():
        notes.append(EMPTY_TEXT)
    elif not marked.labels:
        notes.append(NO_HEADER)
    elif not any(line.strip() for section in marked.lines for line in section):
        notes.append(HEADERS_ONLY)
    if strict and notes:
        otherwise = "" if normalise else "read them with `normalise=True`, "
        raise InvalidLyricsError(f"{notes[0]}; give lyrics with headers, {otherwise}or score them with `strict=False`")
    written = [line for section in marked.words for line in section] if marked.labels else generated.splitlines()
    if any(map(str.strip, written)) and all(last_character(line) < 0 for line in written):
        notes.append(NO_CHINESE)
    if not wanted.sections:
        notes.append("the reference has no section header")
    return tuple(notes)
