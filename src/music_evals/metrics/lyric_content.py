"""What stands beside the form of lyrics: how much they repeat themselves, and how near they are to a theme.

Diversity
    Distinct-n (Li et al., *A Diversity-Promoting Objective Function for Neural Conversation Models*, NAACL 2016):
    distinct n-grams over all n-grams. Here it is taken within each section and then averaged, so that a chorus that
    comes again, as it should, costs nothing. Tokens are single Chinese characters and words of other scripts; n-grams
    stay within a line.
Theme
    The cosine between a text and the lyrics by their embeddings (Reimers and Gurevych, *Sentence-BERT*, EMNLP 2019).
    The lyrics are the mean of the vectors of their sections, weighted by their lengths, since encoders read a few
    hundred characters at once.

Conventions
    Sections are sequences of lines. Neither score sees whether a text is good: random characters are most diverse, and
    a theme that is copied into the lyrics is nearest to itself.

"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from music_evals.errors import InvalidInputError, PairCountError
from music_evals.metrics._undefined import undefined

__all__ = ["line_repetition", "lyric_diversity", "lyrics_vector", "theme_similarity"]

Sections = Sequence[Sequence[str]]

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
        found = [gram for line in lines for gram in _grams(_TOKEN.findall(line), n)]
        if found:
            shares.append(len(set(found)) / len(found))
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


def _grams(tokens: Sequence[str], n: int) -> list[tuple[str, ...]]:
    return [tuple(tokens[at : at + n]) for at in range(len(tokens) - n + 1)]
