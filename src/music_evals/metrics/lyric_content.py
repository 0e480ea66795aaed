"""What stands beside the form of lyrics: how much they repeat themselves, their words, and how near a theme they are.

Diversity
    Distinct-n (Li et al., *A Diversity-Promoting Objective Function for Neural Conversation Models*, NAACL 2016):
    distinct n-grams over all n-grams. Here it is taken within each section and then averaged, so that a chorus that
    comes again, as it should, costs nothing. Tokens are single Chinese characters and words of other scripts; n-grams
    stay within a line.
Words
    The share of the characters that stand in words of a dictionary, and how far it is from what people write:
    characters at random make few words, words at random make hardly anything else.
Theme
    The cosine between a text and the lyrics by their embeddings (Reimers and Gurevych, *Sentence-BERT*, EMNLP 2019).
    The lyrics are the mean of the vectors of their sections, weighted by their lengths, since encoders read a few
    hundred characters at once.

Conventions
    Sections are sequences of lines. No score sees whether a text is good: random characters are most diverse, and a
    theme that is copied into the lyrics is nearest to itself.

"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from music_evals.errors import InvalidInputError, PairCountError
from music_evals.metrics.arrays import undefined

__all__ = [
    "DIVERSITY_OF_PEOPLE", "REPETITION_OF_PEOPLE", "WORDS_OF_PEOPLE", "distances_from_people", "gated_structure",
    "line_repetition", "lyric_diversity", "lyric_wordlikeness", "lyrics_vector", "outside", "theme_similarity",
    "word_share",
]  # fmt: skip

Sections = Sequence[Sequence[str]]

WORDS_OF_PEOPLE = (0.413, 0.784)
"""Share of characters in words, `word_share`: 1st and 99th percentile of lyrics by people. Like the next two: of
246 songs of MuChin, the half ``range`` of ``python -m benchmarks.lyric_content.people``, which measures them again."""
DIVERSITY_OF_PEOPLE = (0.701, 1.0)
"""The same of `lyric_diversity`."""
REPETITION_OF_PEOPLE = (0.0, 0.8)
"""The same of `line_repetition`."""

CANCELLED = 1e-9
"""A sum of unit vectors this much shorter than their number has no direction."""

_TOKEN = re.compile(r"[\u4e00-\u9fff]|[^\W\d_\u4e00-\u9fff]+")


def lyric_diversity(sections: Sections, *, n: int = 2) -> float:
    """Return the mean over sections of distinct n-grams over all n-grams.

    Parameters
    ----------
    sections
        Lines of each section.
    n
        Tokens of an n-gram, at least 1.

    Returns
    -------
    float
        0..1. No direction: compare with a corpus (``benchmarks/lyric_content``). NaN where no section has an n-gram.

    Raises
    ------
    InvalidInputError
        An `n` below 1.

    Warns
    -----
    UndefinedMetricWarning
        Where it is NaN.

    Examples
    --------
    >>> lyric_diversity([["春眠不觉晓"], ["啦啦啦啦啦"]])  # four of four, and one of four
    0.625
    """
    if n < 1:
        raise InvalidInputError(f"n must be at least 1, got {n}")
    shares = []
    for lines in sections:
        tokens = [_TOKEN.findall(line) for line in lines]
        ngrams = [tuple(line[at : at + n]) for line in tokens for at in range(len(line) - n + 1)]
        if ngrams:
            shares.append(len(set(ngrams)) / len(ngrams))
    return float(np.mean(shares)) if shares else undefined("lyric_diversity", f"no section has {n} tokens in a line")


def line_repetition(sections: Sections) -> float:
    """Return the share of lines that stand word for word earlier in the song.

    Parameters
    ----------
    sections
        Lines of each section; lines without a token do not count.

    Returns
    -------
    float
        0..1. No direction: compare with a corpus. NaN without a line.

    Warns
    -----
    UndefinedMetricWarning
        Where it is NaN.

    Examples
    --------
    >>> line_repetition([["春眠不觉晓", "处处闻啼鸟"], ["春眠 不觉晓"]])
    0.3333333333333333
    """
    known: set[tuple[str, ...]] = set()
    total = repeated = 0
    for line in (line for lines in sections for line in lines):
        tokens = tuple(_TOKEN.findall(line))
        if tokens:
            total += 1
            repeated += tokens in known
            known.add(tokens)
    return repeated / total if total else undefined("line repetition", "there is no line with a word")


def word_share(words: Sequence[str]) -> float:
    """Return the share of the Chinese characters that stand in words of two or more characters, 0..1.

    `words` are those of the whole lyrics, as `lyrics.words.cut_words` cuts them. One character repeated, as 啦啦, is no
    word; of a word with other signs, as T恤, the Chinese characters count. Without one it is NaN, with a warning.
    """
    sizes = [sum("\u4e00" <= char <= "\u9fff" for char in word) for word in words]
    # a single character, or one repeated, is no word
    inside = sum(size for word, size in zip(words, sizes, strict=True) if len(set(word)) > 1)
    return inside / sum(sizes) if any(sizes) else undefined("lyric_wordlikeness", "there is no Chinese character")


def lyric_wordlikeness(words: Sequence[str]) -> float:
    """Return how far `word_share` is outside of what people write, `WORDS_OF_PEOPLE`.

    Parameters
    ----------
    words
        As of `word_share`.

    Returns
    -------
    float
        0..0.413, lower is better, 0 within the range; characters at random make fewer words than people, words at
        random more. NaN without a Chinese character.

    Warns
    -----
    UndefinedMetricWarning
        Where it is NaN.

    Examples
    --------
    >>> round(lyric_wordlikeness(["处处", "闻", "啼鸟"]), 3), lyric_wordlikeness(["啦啦"])  # two of five, none
    (0.013, 0.413)
    """
    return outside(word_share(words), WORDS_OF_PEOPLE)


def outside(value: float, span: tuple[float, float]) -> float:
    """Return how far a value is outside of a range, 0 within; NaN stays NaN."""
    return float(np.maximum(0.0, np.maximum(span[0] - value, value - span[1])))


def gated_structure(structure: float, *, wordlikeness: float, diversity: float, repetition: float) -> float:
    """Return the points of lyrics for their structure, and 0 where their words are not like people's.

    The gates are `lyric_wordlikeness`, `lyric_diversity` and `line_repetition`; one that is outside of the range of
    people, or NaN, is shut. Range and direction are those of `structure`.
    """
    return structure if distances_from_people(wordlikeness, diversity, repetition) == (0.0, 0.0, 0.0) else 0.0


def distances_from_people(wordlikeness: float, diversity: float, repetition: float) -> tuple[float, float, float]:
    """Return how far `lyric_wordlikeness`, `lyric_diversity` and `line_repetition` are outside of people's ranges."""
    return wordlikeness, outside(diversity, DIVERSITY_OF_PEOPLE), outside(repetition, REPETITION_OF_PEOPLE)


def lyrics_vector(sections: npt.NDArray[np.float32], weights: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the direction of lyrics: the mean of the unit vectors of their sections, shape (d,), made a unit vector.

    It is NaN throughout where sections (k, d) cancel out, by their weights (k,).
    """
    whole = weights @ np.asarray(sections, dtype=np.float64)
    length = float(np.linalg.norm(whole))
    return whole / length if length > CANCELLED * float(weights.sum()) else np.full_like(whole, np.nan)


def theme_similarity(
    theme: npt.NDArray[np.float32], sections: npt.NDArray[np.float32], weights: npt.NDArray[np.float64]
) -> float:
    """Return the cosine between a theme and lyrics.

    Parameters
    ----------
    theme
        Its unit vector, shape (d,).
    sections
        Unit vectors of the sections, shape (k, d).
    weights
        Lengths of the sections, shape (k,), above 0.

    Returns
    -------
    float
        -1..1, higher is nearer. NaN without a section, and where the vectors of sections cancel out.

    Raises
    ------
    PairCountError
        Sections and weights differ in number.

    Warns
    -----
    UndefinedMetricWarning
        Where it is NaN.
    """
    if len(sections) != len(weights):
        raise PairCountError(f"{len(sections)} sections and {len(weights)} weights; give one of each a section")
    if not len(sections):
        return undefined("lyric_theme_similarity", "the lyrics have no section with a word")
    whole = lyrics_vector(sections, weights)
    if np.isnan(whole).any():
        return undefined("lyric_theme_similarity", "the vectors of the sections cancel out")
    return float(np.clip(whole @ np.asarray(theme, dtype=np.float64), -1.0, 1.0))
