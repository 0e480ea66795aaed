"""Descriptions of songs against descriptions by people, tag list by tag list: MuChin's description benchmark.

A description holds, for each group of annotators, tags under that group's dimensions (`annotations.DIMENSIONS`). Two
lists of tags are compared by the cosines of their embeddings (`metrics.semantics`); each distinct tag is encoded once,
however many songs it stands in. Tags are compared as they are written: nothing is stripped or folded, as in the
released code.

Averages
    The score of a dimension is the mean over the songs that define it. The average of a group is the plain mean of its
    dimensions' scores, as in table 2 of the paper; a dimension that no song defines is left out. The one score of all
    is the mean of the groups' averages. Of a single song the same holds: the mean over what the song defines.

"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from music_evals.annotations import GROUPS
from music_evals.errors import (
    InvalidTagsError,
    UndefinedMetricWarning,
    UnknownNameError,
    located,
)
from music_evals.lyrics.embeddings import DEFAULT_ENCODER, Embeddings, as_encoder, embed, load_encoder
from music_evals.metrics.scales import DESCRIPTION_SCORES
from music_evals.metrics.semantics import SemanticSimilarity, check_options, semantic_similarity
from music_evals.pipelines._description_input import (
    Description,
    Descriptions,
    check_description,
    check_tags,
    choose_dimensions,
    description_of_row,
    pair_up,
)
from music_evals.pipelines.intervals import Options, check_groups, intervals_of_means, report
from music_evals.protocols import TextEncoder
from music_evals.stats import resampling

__all__ = [
    "SCORES",
    "TOTAL",
    "Description",
    "DescriptionJudgement",
    "EncoderLike",
    "check_description",
    "check_tags",
    "description_of_row",
    "evaluate_descriptions",
    "judge_description",
    "judge_descriptions",
    "resolve_encoder",
    "tag_semantic_similarity",
    "tag_similarity_table",
]

EncoderLike = TextEncoder | str | Callable[[Sequence[str]], npt.ArrayLike]
"""An encoder, its name, or a function from texts to vectors."""

TOTAL: Final = "tag_semantic_similarity"
SCORES: Final = DESCRIPTION_SCORES
"""Name of each score -> its scale."""

Floats = npt.NDArray[np.float64]


class DescriptionJudgement(NamedTuple):
    """All scores of one song.

    Attributes
    ----------
    values
        Score -> its value: ``tag_semantic_similarity``, ``<group>_average``, ``<group>/<dimension>``; NaN where it is
        undefined.
    similarities
        ``<group>/<dimension>`` -> the comparison in full.
    reasons
        Score -> why it is NaN, in words.

    """

    values: Mapping[str, float]
    similarities: Mapping[str, SemanticSimilarity]
    reasons: Mapping[str, str]


class _Scoring(NamedTuple):
    """How lists are compared, and what is."""

    dimensions: Mapping[str, tuple[str, ...]]
    options: Mapping[str, Any]

    @property
    def rows(self) -> list[tuple[str, str]]:
        """Group and dimension of every row, in the order of the results."""
        return [(group, name) for group, names in self.dimensions.items() for name in names]


def resolve_encoder(encoder: EncoderLike) -> TextEncoder:
    """Return an encoder for an encoder, its name (`lyrics.embeddings.load_encoder`) or a function.

    Raises
    ------
    ModelUnavailableError, MissingBackendError
        As `lyrics.embeddings.load_encoder`.

    """
    if isinstance(encoder, str):
        return load_encoder(encoder)
    if isinstance(encoder, TextEncoder):
        return encoder
    return as_encoder(encoder, getattr(encoder, "__name__", type(encoder).__name__))


def tag_semantic_similarity(
    generated: Sequence[str],
    reference: Sequence[str],
    *,
    encoder: EncoderLike = DEFAULT_ENCODER,
    aggregation: str = "mean",
    normalize_by_self: bool = False,
    empty: str = "nan",
) -> SemanticSimilarity:
    """Compare two lists of tags by meaning.

    Parameters
    ----------
    generated, reference
        Tags, taken as they are; one that repeats counts each time.
    encoder
        An encoder, its name, or a function from texts to vectors. A name loads the model at each call: for many calls
        load it once, and for many songs use `evaluate_descriptions`.
    aggregation, normalize_by_self, empty
        As in `metrics.semantics.semantic_similarity`; the defaults are the official score.

    Returns
    -------
    SemanticSimilarity
        Its `value` is the score; NaN for an empty list, unless `empty` says otherwise.

    Raises
    ------
    InvalidTagsError
        Tags that are not lists of strings, or an empty list with ``empty="raise"``.
    UnknownNameError, InvalidInputError
        An option that does not exist, or that does not go with another.
    ModelUnavailableError, MissingBackendError, BackendError
        The encoder cannot be loaded, or failed.

    Warns
    -----
    UndefinedMetricWarning
        The score is NaN.

    Examples
    --------
    >>> found = tag_semantic_similarity(["悲伤", "慢速"], ["悲伤"], encoder="char-ngrams", aggregation="f1")
    >>> round(found.value, 3)
    0.667

    """
    check_options(aggregation, empty, normalize_by_self=normalize_by_self)
    first, second = check_tags(generated, "generated"), check_tags(reference, "reference")
    vectors = embed(resolve_encoder(encoder), (*first, *second))
    return semantic_similarity(
        vectors.of(first), vectors.of(second), aggregation=aggregation, normalize_by_self=normalize_by_self, empty=empty
    )


def judge_description(
    generated: Description,
    reference: Description,
    *,
    encoder: EncoderLike = DEFAULT_ENCODER,
    annotators: Iterable[str] | None = None,
    dimensions: Mapping[str, Sequence[str]] | None = None,
    aggregation: str = "mean",
    normalize_by_self: bool = False,
    empty: str = "nan",
) -> DescriptionJudgement:
    """Compare the description of one song with that of people.

    Parameters
    ----------
    generated, reference
        Group of annotators -> dimension -> tags. A dimension that is missing is an empty list.
    encoder, aggregation, normalize_by_self, empty
        As in `tag_semantic_similarity`.
    annotators
        Groups to judge; None for those that `generated` speaks for.
    dimensions
        Group -> dimensions to judge; None for the ten of table 2 (`annotations.SCORED`). Others are not looked at.

    Returns
    -------
    DescriptionJudgement
        Averages are means over what the song defines.

    Raises
    ------
    UnknownNameError
        A group or dimension that does not exist, or an unknown option; the message offers the nearest.
    InvalidTagsError
        Tags that are not lists of strings, or an empty list with ``empty="raise"``.
    NoDataError
        `generated` speaks for no group.
    InvalidInputError, ModelUnavailableError, MissingBackendError, BackendError
        As `tag_semantic_similarity`.

    """
    check_options(aggregation, empty, normalize_by_self=normalize_by_self)
    first, second = check_description(generated, "generated"), check_description(reference, "reference")
    options = {"aggregation": aggregation, "normalize_by_self": normalize_by_self, "empty": empty}
    scoring = _Scoring(choose_dimensions(annotators, dimensions, [first]), options)
    return _all_judged([(first, second)], ["this song"], resolve_encoder(encoder), scoring)[0]


def judge_descriptions(
    generated: Descriptions,
    references: Descriptions,
    *,
    encoder: EncoderLike = DEFAULT_ENCODER,
    annotators: Iterable[str] | None = None,
    dimensions: Mapping[str, Sequence[str]] | None = None,
    aggregation: str = "mean",
    normalize_by_self: bool = False,
    empty: str = "nan",
) -> dict[str, DescriptionJudgement]:
    """Do as `judge_description` for many songs, each distinct tag encoded once.

    Parameters
    ----------
    generated, references
        Descriptions in the same order, or both by the id of the song.
    encoder, annotators, dimensions, aggregation, normalize_by_self, empty
        As in `judge_description`; None for `annotators` is the groups that any of `generated` speaks for.

    Returns
    -------
    dict
        Id, or ``"song 0"`` and so on, -> judgement, in the order of `references`.

    Raises
    ------
    PairCountError
        Numbers or ids of songs that do not pair up; the first few are named.
    NoDataError
        No songs, or descriptions that speak for no group.
    UnknownNameError, InvalidTagsError
        As `judge_description`; the message names the song.
    InvalidInputError, ModelUnavailableError, MissingBackendError, BackendError
        As `tag_semantic_similarity`.

    """
    check_options(aggregation, empty, normalize_by_self=normalize_by_self)
    pairs, ids = pair_up(generated, references)
    options = {"aggregation": aggregation, "normalize_by_self": normalize_by_self, "empty": empty}
    scoring = _Scoring(choose_dimensions(annotators, dimensions, [first for first, _ in pairs]), options)
    return dict(zip(ids, _all_judged(pairs, ids, resolve_encoder(encoder), scoring), strict=True))


def tag_similarity_table(
    generated: Descriptions,
    references: Descriptions,
    group: str,
    *,
    encoder: EncoderLike = DEFAULT_ENCODER,
    dimensions: Sequence[str] | None = None,
) -> Floats:
    """Return what the released code writes to a file: mean and deviation of each song and dimension.

    Parameters
    ----------
    generated, references
        As in `evaluate_descriptions`.
    group
        One of `annotations.GROUPS`.
    encoder
        As in `tag_semantic_similarity`.
    dimensions
        Their order; None for that of the released code (`annotations.SCORED`).

    Returns
    -------
    numpy.ndarray
        Shape (songs, dimensions, 2): mean and population standard deviation of the cosines of all pairs of tags; NaN
        where a list is empty.

    Raises
    ------
    PairCountError, UnknownNameError, InvalidTagsError, NoDataError
        As `evaluate_descriptions`.

    """
    if group not in GROUPS:
        raise UnknownNameError("group of annotators", group, GROUPS)
    pairs, ids = pair_up(generated, references)
    options = {"aggregation": "mean", "normalize_by_self": False, "empty": "nan"}
    chosen = None if dimensions is None else {group: dimensions}
    scoring = _Scoring(choose_dimensions([group], chosen, []), options)
    songs = _all_judged(pairs, ids, resolve_encoder(encoder), scoring)
    return np.array([[(found.value, found.std) for found in song.similarities.values()] for song in songs])


def evaluate_descriptions(
    generated: Descriptions,
    references: Descriptions,
    *,
    encoder: EncoderLike = DEFAULT_ENCODER,
    annotators: Iterable[str] | None = None,
    dimensions: Mapping[str, Sequence[str]] | None = None,
    aggregation: str = "mean",
    normalize_by_self: bool = False,
    empty: str = "nan",
    groups: npt.ArrayLike | None = None,
    confidence: float = 0.95,
    n_resamples: int = 1000,
    seed: int = 0,
    per_item: bool = False,
) -> dict[str, Any]:
    """Compare descriptions of songs with those of people, all dimensions in one pass.

    Parameters
    ----------
    generated, references
        Descriptions in the same order, or both by the id of the song; with ids the order is that of `references`.
    encoder, aggregation, normalize_by_self, empty
        As in `tag_semantic_similarity`. Each distinct tag is encoded once.
    annotators
        Groups to judge; None for those that any of `generated` speaks for.
    dimensions
        As in `judge_description`.
    groups
        Cluster of each song for the intervals, shape (n,); None makes each song its own.
    confidence
        Nominal coverage of the intervals, above 0 and below 1.
    n_resamples, seed
        Of the bootstrap; 0 resamples leave the intervals out (NaN).
    per_item
        True adds the scores of each song.

    Returns
    -------
    dict
        For each name out of `SCORES` that is judged: ``<name>``, ``<name>_ci`` (low, high), ``<name>_n`` songs and
        ``<name>_n_defined`` of them that count. An average is the mean of its dimensions' scores (see the module); it
        is defined for a song by any of them, and its interval is that of the linearised mean, which with nothing
        missing is the mean over songs. ``<group>/<dimension>_std``: mean over songs of the deviation over pairs.
        ``n_dimensions``: group -> dimensions that the average is made of. ``encoder``: its name and revision.
        ``per_item``: one dict a song: its scores, ``reasons`` (score -> why it is NaN) and, with ids, ``id``.

    Raises
    ------
    PairCountError
        Numbers or ids of songs that do not pair up; the first few are named.
    NoDataError
        No songs, or descriptions that speak for no group.
    UnknownNameError, InvalidTagsError
        As `judge_description`; the message names the song.
    InvalidInputError, ModelUnavailableError, MissingBackendError, BackendError
        As `tag_semantic_similarity`, or an option of the intervals out of range.

    Warns
    -----
    UndefinedMetricWarning
        A score is NaN because no song defines it.

    """
    resampling.check_options(confidence, n_resamples, seed, least=0)
    check_options(aggregation, empty, normalize_by_self=normalize_by_self)
    pairs, ids = pair_up(generated, references)
    clusters = check_groups(groups, len(pairs))
    options = {"aggregation": aggregation, "normalize_by_self": normalize_by_self, "empty": empty}
    scoring = _Scoring(choose_dimensions(annotators, dimensions, [first for first, _ in pairs]), options)
    loaded = resolve_encoder(encoder)
    songs = _all_judged(pairs, ids, loaded, scoring)
    names, columns = _columns(songs, scoring)
    drawn = Options(clusters, confidence, n_resamples, seed)
    result: dict[str, Any] = {}
    for name, interval in zip(names, intervals_of_means(columns, drawn), strict=True):
        result |= report(name, interval)
    result |= {f"{name}_std": _mean([song.similarities[name].std for song in songs]) for name in songs[0].similarities}
    result["n_dimensions"] = {
        group: sum(bool(result[f"{group}/{name}_n_defined"]) for name in chosen)
        for group, chosen in scoring.dimensions.items()
    }
    result["encoder"] = {"name": loaded.name, "revision": loaded.revision}
    if per_item:
        by_id = isinstance(references, Mapping)
        result["per_item"] = [
            {**({"id": place} if by_id else {}), **song.values, "reasons": dict(song.reasons)}
            for song, place in zip(songs, ids, strict=True)
        ]
    return result


def _all_judged(
    pairs: Sequence[tuple[Description, Description]], ids: Sequence[str], encoder: TextEncoder, scoring: _Scoring
) -> list[DescriptionJudgement]:
    tags = (tag for pair in pairs for side in pair for tag in _tags(side, scoring))
    vectors = embed(encoder, tags)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedMetricWarning)  # the reasons are told in the judgements
        return [_judged(*pair, vectors, scoring, place) for pair, place in zip(pairs, ids, strict=True)]


def _tags(description: Description, scoring: _Scoring) -> Iterator[str]:
    for group, name in scoring.rows:
        yield from description.get(group, {}).get(name, ())


def _judged(
    generated: Description, reference: Description, vectors: Embeddings, scoring: _Scoring, place: str
) -> DescriptionJudgement:
    similarities: dict[str, SemanticSimilarity] = {}
    for group, dimension in scoring.rows:
        name = f"{group}/{dimension}"
        lists = [vectors.of(side.get(group, {}).get(dimension, ())) for side in (generated, reference)]
        try:
            similarities[name] = semantic_similarity(*lists, **scoring.options)
        except InvalidTagsError as error:
            raise located(error, f"{place}, {name}") from error
    reasons = {name: reason for name, found in similarities.items() if (reason := _reason(found))}
    values = {name: found.value for name, found in similarities.items()}
    averages = {
        f"{group}_average": _mean([values[f"{group}/{name}"] for name in names])
        for group, names in scoring.dimensions.items()
    }
    total = {TOTAL: _mean(list(averages.values()))}
    found_values = {**total, **averages, **values}
    for name in (*total, *averages):
        if np.isnan(found_values[name]):
            reasons[name] = "no dimension is defined"
    return DescriptionJudgement(found_values, similarities, reasons)


def _reason(found: SemanticSimilarity) -> str:
    """Return why a comparison is undefined; empty where it is not."""
    if not np.isnan(found.value):
        return ""
    empty = [side for side, n in (("generated", found.n_generated), ("reference", found.n_reference)) if not n]
    return f"no {' and no '.join(empty)} tags" if empty else "the vectors of a list cancel out"


def _columns(songs: Sequence[DescriptionJudgement], scoring: _Scoring) -> tuple[list[str], Floats]:
    """Return the names of the scores, and their values, shape (songs, scores), whose column means are the results."""
    averages: dict[str, Floats] = {}
    rows: dict[str, Floats] = {}
    for group, names in scoring.dimensions.items():
        own = {f"{group}/{name}": np.array([song.values[f"{group}/{name}"] for song in songs]) for name in names}
        averages[f"{group}_average"] = _mean_of_means(list(own.values()))
        rows |= own
    columns = {TOTAL: _mean_of_means(list(averages.values())), **averages, **rows}
    return list(columns), np.column_stack(list(columns.values()))


def _mean_of_means(columns: Sequence[Floats]) -> Floats:
    """Return a column, shape (songs,), whose mean is the plain mean of the columns' means.

    Where nothing is missing that is the mean of the columns. Where a column lacks songs, those that it has count for
    more: each gives the mean of means plus what it moves it by (its linearisation), so that a bootstrap of the column
    is one of the mean of means, to first order.
    """
    stacked = np.column_stack(columns)
    defined = ~np.isnan(stacked)
    counts = defined.sum(axis=0)
    kept = counts > 0
    if not kept.any():
        return np.full(len(stacked), np.nan)
    stacked, defined, counts = stacked[:, kept], defined[:, kept], counts[kept]
    means = np.nansum(stacked, axis=0) / counts
    some = defined.any(axis=1)
    moved = np.where(defined, stacked - means, 0) * (some.sum() / counts)
    return np.where(some, means.mean() + moved.mean(axis=1), np.nan)


def _mean(values: Sequence[float]) -> float:
    """Return the mean of what is defined; NaN where nothing is."""
    defined = [value for value in values if not np.isnan(value)]
    return float(np.mean(defined)) if defined else float("nan")
