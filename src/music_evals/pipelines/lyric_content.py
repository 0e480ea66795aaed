"""Scores of the content of lyrics: repetition and words against lyrics of people, and nearness to a theme."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from music_evals.errors import UndefinedMetricWarning, UnsupportedTypeError
from music_evals.lyrics.embeddings import DEFAULT_ENCODER, Embeddings, embed
from music_evals.lyrics.patterns import split_sections
from music_evals.lyrics.words import cut_words
from music_evals.metrics.lyric_content import (
    WORDS_OF_PEOPLE,
    line_repetition,
    lyric_diversity,
    lyric_wordlikeness,
    lyrics_vector,
    outside,
    theme_similarity,
    word_share,
)
from music_evals.pipelines.descriptions import EncoderLike, resolve_encoder
from music_evals.pipelines.intervals import check_groups, check_pairs, mean_of_defined, report_means
from music_evals.stats.intervals import check_confidence

__all__ = [
    "evaluate_diversity",
    "evaluate_themes",
    "evaluate_wordlikeness",
    "lines_of",
    "pair_texts",
    "theme_parts",
    "theme_score",
    "word_scores",
]

DIVERSITY: Final = "lyric_diversity"
WORDLIKENESS: Final = "lyric_wordlikeness"
THEME: Final = "lyric_theme_similarity"
RANGE: Final = (5.0, 95.0)
"""Percentiles of the corpus between which a lyric is as diverse as lyrics are."""

Texts = Iterable[str]


def lines_of(text: str) -> list[list[str]]:
    """Return the lines of each section; a text without headers is one section, and what precedes the first is none."""
    split = split_sections(text)
    return [section.body.splitlines() for section in split.sections] or [text.splitlines()]


def word_scores(sections: Sequence[Sequence[str]]) -> tuple[float, float, float]:
    """Return `lyric_wordlikeness`, `lyric_diversity` and `line_repetition` of lines; no warning where one is NaN."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedMetricWarning)  # whoever asks sees which is NaN
        return lyric_wordlikeness(cut_words(sections)), lyric_diversity(sections), line_repetition(sections)


def evaluate_diversity(
    references: Texts,
    generated: Texts,
    *,
    n: int = 2,
    groups: npt.ArrayLike | None = None,
    confidence: float = 0.95,
    per_item: bool = False,
) -> dict[str, Any]:
    """Measure how much lyrics repeat themselves, against lyrics of people.

    Parameters
    ----------
    references
        Lyrics of people, n texts with section headers: those of the same songs, or any others.
    generated
        Lyrics, n texts.
    n
        Tokens of an n-gram.
    groups
        Cluster of each lyric for the intervals, shape (n,); None makes each its own.
    confidence
        Nominal coverage of the intervals, above 0 and below 1.
    per_item
        True adds the scores of each lyric.

    Returns
    -------
    dict
        ``lyric_diversity``, the mean over lyrics, with ``_ci``, ``_n``, ``_n_defined``, ``_n_clusters``;
        ``_reference``, the mean of the references; ``_range``, their 5th and 95th percentile; ``_in_range``, the share
        of the lyrics that lie between them; ``lyric_line_repetition`` and its ``_reference``, means of the share of
        lines that repeat an earlier one. Shares are of the lyrics that are defined, NaN without any.

    Raises
    ------
    PairCountError, NoDataError
        Lyrics, references and groups differ in number, or are empty.
    UnsupportedTypeError
        Something that is no text.
    InvalidInputError
        An option out of range.

    Warns
    -----
    UndefinedMetricWarning
        No lyric, or no reference, has an n-gram.
    """

    def measure(text: str) -> tuple[float, float]:
        return lyric_diversity(lines_of(text), n=n), line_repetition(lines_of(text))

    names, texts = (DIVERSITY, "lyric_line_repetition"), (references, generated)
    return _against_people(names, measure, texts, groups=groups, confidence=confidence, per_item=per_item)


def evaluate_wordlikeness(
    references: Texts,
    generated: Texts,
    *,
    groups: npt.ArrayLike | None = None,
    confidence: float = 0.95,
    per_item: bool = False,
) -> dict[str, Any]:
    """Measure how far the share of characters that stand in words is outside of what people write.

    Parameters
    ----------
    references, generated, groups, confidence, per_item
        As `evaluate_diversity`. The range of people does not come from the references: they show whether it suits them.

    Returns
    -------
    dict
        ``lyric_wordlikeness``, the mean over lyrics, with ``_ci``, ``_n``, ``_n_defined``, ``_n_clusters``;
        ``_reference``, the mean of the references; ``_range``, `metrics.lyric_content.WORDS_OF_PEOPLE`; ``_in_range``,
        the share of the lyrics within it; ``lyric_word_share`` and its ``_reference``, means of the share itself.

    Raises
    ------
    PairCountError, NoDataError, UnsupportedTypeError, InvalidInputError
        As `evaluate_diversity`.
    MissingBackendError
        The extra ``lyrics`` is not installed.

    Warns
    -----
    UndefinedMetricWarning
        No lyric has a Chinese character.
    """

    def measure(text: str) -> tuple[float, float]:
        share = word_share(cut_words(lines_of(text)))
        return outside(share, WORDS_OF_PEOPLE), share

    names, texts = (WORDLIKENESS, "lyric_word_share"), (references, generated)
    scores = _against_people(
        names, measure, texts, span=(0.0, 0.0), groups=groups, confidence=confidence, per_item=per_item
    )
    return scores | {f"{WORDLIKENESS}_range": WORDS_OF_PEOPLE}


def _against_people(
    names: tuple[str, str],
    measure: Callable[[str], tuple[float, float]],
    texts: tuple[Texts, Texts],
    *,
    span: tuple[float, float] | None = None,
    groups: npt.ArrayLike | None,
    confidence: float,
    per_item: bool,
) -> dict[str, Any]:
    """Return what `evaluate_diversity` does, of a score and what stands beside it; None takes the span from people."""
    check_confidence(confidence)
    wanted, given = pair_texts(*texts)
    clusters = check_groups(groups, len(given))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedMetricWarning)  # means say how many are defined
        (values, extra), (known, known_extra) = (np.array([*map(measure, side)]).T for side in (given, wanted))
    score, other = names
    result = report_means([score], values[:, None], clusters, confidence)
    corpus, defined = known[~np.isnan(known)], values[~np.isnan(values)]
    low, high = span or (np.percentile(corpus, RANGE) if len(corpus) else (np.nan, np.nan))
    result |= {
        f"{score}_reference": mean_of_defined(known),
        f"{score}_range": (float(low), float(high)),
        f"{score}_in_range": mean_of_defined(((defined >= low) & (defined <= high)).astype(float)),
        other: mean_of_defined(extra),
        f"{other}_reference": mean_of_defined(known_extra),
    }
    if per_item:
        rows = zip(values.tolist(), extra.tolist(), strict=True)
        result["per_item"] = [dict(zip(names, row, strict=True)) for row in rows]
    return result


def evaluate_themes(
    references: Texts,
    generated: Texts,
    *,
    encoder: EncoderLike = DEFAULT_ENCODER,
    groups: npt.ArrayLike | None = None,
    confidence: float = 0.95,
    per_item: bool = False,
) -> dict[str, Any]:
    """Measure how near lyrics are to the themes or prompts that they were written for.

    Parameters
    ----------
    references
        Themes, n texts.
    generated
        Lyrics, n texts, with section headers or without.
    encoder
        As in `pipelines.descriptions.tag_semantic_similarity`. Nothing is computed without its weights.
    groups, confidence, per_item
        As in `evaluate_diversity`; a cluster may be the theme of several lyrics.

    Returns
    -------
    dict
        ``lyric_theme_similarity``, the mean over lyrics, with ``_ci``, ``_n``, ``_n_defined``, ``_n_clusters``;
        ``_other``, the mean similarity of the same lyrics to the themes of all other groups, which is what chance gives
        with this encoder, NaN where there is one group; ``encoder``, its name and revision.

    Raises
    ------
    PairCountError, NoDataError, UnsupportedTypeError
        As `evaluate_diversity`.
    InvalidInputError, ModelUnavailableError, MissingBackendError, BackendError
        As `pipelines.descriptions.evaluate_descriptions`.

    Warns
    -----
    UndefinedMetricWarning
        No pair of lyrics and theme has words on both sides.
    """
    check_confidence(confidence)
    themes, lyrics = pair_texts(references, generated)
    clusters = check_groups(groups, len(lyrics))
    labels = np.arange(len(lyrics)) if clusters is None else clusters
    sections = [theme_parts(text) for text in lyrics]
    loaded = resolve_encoder(encoder)
    vectors = embed(loaded, [*filter(str.strip, themes), *(text for parts in sections for text in parts)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedMetricWarning)  # means say how many are defined
        values = np.array(
            [theme_score(vectors, theme, parts) for theme, parts in zip(themes, sections, strict=True)],
            dtype=np.float64,
        )
    result = report_means([THEME], values[:, None], clusters, confidence)
    result[f"{THEME}_other"] = mean_of_defined(_to_others(vectors, themes, sections, labels))
    result["encoder"] = {"name": loaded.name, "revision": loaded.revision}
    if per_item:
        result["per_item"] = [{THEME: value} for value in values.tolist()]
    return result


def theme_score(vectors: Embeddings, theme: str, parts: Sequence[str]) -> float:
    """Return the similarity of a lyric, as `theme_parts`, to its theme, from their vectors; NaN without words."""
    if not (parts and theme.strip()):
        return float("nan")
    return theme_similarity(vectors.of([theme])[0], vectors.of(parts), _lengths(parts))


def _to_others(
    vectors: Embeddings, themes: Sequence[str], sections: Sequence[Sequence[str]], labels: npt.NDArray[Any]
) -> npt.NDArray[np.float64]:
    """Return the mean similarity of each lyric to the themes of all other groups, shape (n,); NaN where undefined."""
    known = [place for place, theme in enumerate(themes) if theme.strip()]
    similarities = np.full(len(sections), np.nan)
    if not known:
        return similarities
    all_of_them = np.asarray(vectors.of([themes[place] for place in known]), dtype=np.float64)
    groups = labels[known]
    total = all_of_them.sum(axis=0)
    own = {group: (all_of_them[groups == group].sum(axis=0), int((groups == group).sum())) for group in set(groups)}
    for place, parts in enumerate(sections):
        held, count = own.get(labels[place], (np.zeros_like(total), 0))
        if parts and len(known) > count:
            similarities[place] = (
                lyrics_vector(vectors.of(parts), _lengths(parts)) @ (total - held) / (len(known) - count)
            )
    return similarities


def _lengths(parts: Sequence[str]) -> npt.NDArray[np.float64]:
    return np.array([len(text) for text in parts], dtype=np.float64)


def theme_parts(text: str) -> list[str]:
    """Return each section of a lyric that has words as one text; these are what is encoded."""
    parts = ("，".join(line.strip() for line in lines if line.strip()) for lines in lines_of(text))
    return [part for part in parts if part]


def pair_texts(references: Texts, generated: Texts) -> tuple[Sequence[str], Sequence[str]]:
    """Return both sides as sequences of texts, of one length that is not 0."""
    sides = []
    for name, side in {"references": references, "generated": generated}.items():
        if isinstance(side, str | bytes | Mapping):
            raise UnsupportedTypeError(f"{name} must be a list of texts, got {type(side).__name__}; put it into a list")
        texts = list(side)
        for index, text in enumerate(texts):
            if not isinstance(text, str):
                raise UnsupportedTypeError(f"{name}[{index}] must be a text, got {type(text).__name__}")
        sides.append(texts)
    check_pairs(sides[0], sides[1], "lyrics", "a song", "no lyrics to judge; give at least one with its reference")
    return sides[0], sides[1]
