"""Descriptions of songs against descriptions by people, tag list by tag list: MuChin's description benchmark.

A description holds, for each group of annotators, tags under that group's dimensions (`annotations.DIMENSIONS`). Two
lists of tags are compared by the cosines of their embeddings (`metrics.semantics`); each distinct tag is encoded once,
however many songs it stands in. Tags are compared as they are written: nothing is stripped or folded, as in the
released code.

Averages
    Of a song and a group: the mean over the dimensions that the reference has tags for (`average_of_group`). Where the
    generated side leaves any of these without tags it is undefined, unless ``empty="zero"`` counts them as 0: nobody
    gains by silence. Dimensions that the reference leaves empty are left out, and counted. The one score of a song is
    the mean of the averages of the groups that the reference speaks for, among those that are scored; undefined where
    one of them is.

    Over songs every score is the mean over the songs that define it. With nothing missing the average of a group is
    also the plain mean of its dimensions' scores, as in table 2 of the paper.

"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from music_evals.annotations import GROUPS
from music_evals.deprecation import module_getattr
from music_evals.errors import InvalidTagsError, UndefinedMetricWarning, UnknownNameError, located
from music_evals.lyrics.embeddings import DEFAULT_ENCODER, Embeddings, as_encoder, embed, load_encoder
from music_evals.metrics.semantics import SemanticSimilarity, check_options, semantic_similarity
from music_evals.pipelines.description_input import (
    Description,
    Descriptions,
    check_description,
    check_tags,
    choose_dimensions,
    description_of_row,
    pair_up,
)
from music_evals.pipelines.intervals import check_groups, mean_of_defined, report_means
from music_evals.protocols import TextEncoder
from music_evals.stats.intervals import check_confidence

__all__ = [
    "TOTAL", "Description", "DescriptionScores", "EncoderLike", "GroupAverage", "average_of_group", "check_description",
    "check_tags", "description_of_row", "evaluate_descriptions", "resolve_encoder", "score_description",
    "tag_semantic_similarity", "tag_similarity_table",
]  # fmt: skip

EncoderLike = TextEncoder | str | Callable[[Sequence[str]], npt.ArrayLike]
"""An encoder, its name, or a function from texts to vectors."""

TOTAL: Final = "tag_semantic_similarity"
"""The one score of a song: the mean of the averages of the groups."""

Floats = npt.NDArray[np.float64]


class DescriptionScores(NamedTuple):
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
    n_dimensions
        Group -> dimensions that its average is over: those that the reference has tags for.
    """

    values: Mapping[str, float]
    similarities: Mapping[str, SemanticSimilarity]
    reasons: Mapping[str, str]
    n_dimensions: Mapping[str, int]


class GroupAverage(NamedTuple):
    """The average of one song over the dimensions of a group.

    Attributes
    ----------
    value
        -1..1, higher is better; NaN where it is undefined.
    reason
        Why it is NaN; empty where it is defined.
    n_dimensions
        Dimensions that the reference has tags for.
    """

    value: float
    reason: str
    n_dimensions: int


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
    reference: Sequence[str],
    generated: Sequence[str],
    *,
    encoder: EncoderLike = DEFAULT_ENCODER,
    aggregation: str = "mean",
    normalize_by_self: bool = False,
    empty: str = "nan",
) -> SemanticSimilarity:
    """Compare two lists of tags by meaning.

    Parameters
    ----------
    reference, generated
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
    >>> result = tag_semantic_similarity(["悲伤"], ["悲伤", "慢速"], encoder="char-ngrams", aggregation="f1")
    >>> round(result.value, 3)
    0.667
    """
    check_options(aggregation, empty, normalize_by_self=normalize_by_self)
    first, second = check_tags(generated, "generated"), check_tags(reference, "reference")
    vectors = embed(resolve_encoder(encoder), (*first, *second))
    return semantic_similarity(
        vectors.of(second), vectors.of(first), aggregation=aggregation, normalize_by_self=normalize_by_self, empty=empty
    )


def score_description(
    reference: Description,
    generated: Description,
    *,
    encoder: EncoderLike = DEFAULT_ENCODER,
    annotators: Iterable[str] | None = None,
    dimensions: Mapping[str, Sequence[str]] | None = None,
    aggregation: str = "mean",
    normalize_by_self: bool = False,
    empty: str = "nan",
) -> DescriptionScores:
    """Compare the description of one song with that of people.

    Parameters
    ----------
    reference, generated
        Group of annotators -> dimension -> tags. A dimension that is missing is an empty list.
    encoder, aggregation, normalize_by_self, empty
        As in `tag_semantic_similarity`.
    annotators
        Groups to score; None for those that `generated` speaks for.
    dimensions
        Group -> dimensions to score; None for the ten of table 2 (`annotations.SCORED`). Others are not looked at.

    Returns
    -------
    DescriptionJudgement
        Averages as described at the top of this module.

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
    return _score_songs([(first, second)], ["this song"], resolve_encoder(encoder), scoring)[0]


def tag_similarity_table(
    references: Descriptions,
    generated: Descriptions,
    group: str,
    *,
    encoder: EncoderLike = DEFAULT_ENCODER,
    dimensions: Sequence[str] | None = None,
) -> Floats:
    """Return what the released code writes to a file: mean and deviation of each song and dimension.

    Parameters
    ----------
    references, generated
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
    songs = _score_songs(pairs, ids, resolve_encoder(encoder), scoring)
    return np.array(
        [[(similarity.value, similarity.std) for similarity in song.similarities.values()] for song in songs]
    )


def evaluate_descriptions(
    references: Descriptions,
    generated: Descriptions,
    *,
    encoder: EncoderLike = DEFAULT_ENCODER,
    annotators: Iterable[str] | None = None,
    dimensions: Mapping[str, Sequence[str]] | None = None,
    aggregation: str = "mean",
    normalize_by_self: bool = False,
    empty: str = "nan",
    groups: npt.ArrayLike | None = None,
    confidence: float = 0.95,
    per_item: bool = False,
) -> dict[str, Any]:
    """Compare descriptions of songs with those of people, all dimensions in one pass.

    Parameters
    ----------
    references, generated
        Descriptions in the same order, or both by the id of the song; with ids the order is that of `references`.
    encoder, aggregation, normalize_by_self, empty
        As in `tag_semantic_similarity`. Each distinct tag is encoded once.
    annotators
        Groups to score; None for those that any of `generated` speaks for.
    dimensions
        As in `score_description`.
    groups
        Cluster of each song for the intervals, shape (n,); None makes each song its own.
    confidence
        Nominal coverage of the intervals, above 0 and below 1.
    per_item
        True adds the scores of each song.

    Returns
    -------
    dict
        For each description score of the catalogue that is scored: ``<name>``, ``<name>_ci`` (low, high), ``<name>_n``
        songs, ``<name>_n_defined`` of them that count and ``<name>_n_clusters``, the effective number of clusters;
        averages are those of the songs (see the module). ``<group>/<dimension>_std``: mean over songs of the deviation
        over pairs. ``n_dimensions``: group -> dimensions that any reference has tags for. ``n_without_reference``:
        group -> lists, one a song and dimension, that are in no average because the reference has no tags there.
        ``encoder``: its name and revision. ``per_item``: one dict a song: its scores, ``reasons`` (score -> why it is
        NaN) and, with ids, ``id``.

    Raises
    ------
    PairCountError
        Numbers or ids of songs that do not pair up; the first few are named.
    NoDataError
        No songs, or descriptions that speak for no group.
    UnknownNameError, InvalidTagsError
        As `score_description`; the message names the song.
    InvalidInputError, ModelUnavailableError, MissingBackendError, BackendError
        As `tag_semantic_similarity`, or an option of the intervals out of range.

    Warns
    -----
    UndefinedMetricWarning
        A score is NaN because no song defines it.
    """
    check_confidence(confidence)
    check_options(aggregation, empty, normalize_by_self=normalize_by_self)
    pairs, ids = pair_up(generated, references)
    clusters = check_groups(groups, len(pairs))
    options = {"aggregation": aggregation, "normalize_by_self": normalize_by_self, "empty": empty}
    scoring = _Scoring(choose_dimensions(annotators, dimensions, [first for first, _ in pairs]), options)
    loaded = resolve_encoder(encoder)
    songs = _score_songs(pairs, ids, loaded, scoring)
    names = list(songs[0].values)
    columns = np.array([[song.values[name] for name in names] for song in songs])
    result = report_means(names, columns, clusters, confidence)
    for name in songs[0].similarities:
        result[f"{name}_std"] = mean_of_defined([song.similarities[name].std for song in songs])
    reported = {
        group: np.array([[bool(song.similarities[f"{group}/{name}"].n_reference) for name in chosen] for song in songs])
        for group, chosen in scoring.dimensions.items()
    }
    result["n_dimensions"] = {group: int(has_tags.any(axis=0).sum()) for group, has_tags in reported.items()}
    result["n_without_reference"] = {group: int((~has_tags).sum()) for group, has_tags in reported.items()}
    result["encoder"] = {"name": loaded.name, "revision": loaded.revision}
    if per_item:
        by_id = isinstance(references, Mapping)
        result["per_item"] = [
            {**({"id": place} if by_id else {}), **song.values, "reasons": dict(song.reasons)}
            for song, place in zip(songs, ids, strict=True)
        ]
    return result


def _score_songs(
    pairs: Sequence[tuple[Description, Description]], ids: Sequence[str], encoder: TextEncoder, scoring: _Scoring
) -> list[DescriptionScores]:
    lists = (side.get(group, {}).get(name, ()) for pair in pairs for side in pair for group, name in scoring.rows)
    vectors = embed(encoder, itertools.chain.from_iterable(lists))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedMetricWarning)  # the reasons are in the scores
        return [_score_song(*pair, vectors, scoring, place) for pair, place in zip(pairs, ids, strict=True)]


def _score_song(
    generated: Description, reference: Description, vectors: Embeddings, scoring: _Scoring, place: str
) -> DescriptionScores:
    similarities: dict[str, SemanticSimilarity] = {}
    for group, dimension in scoring.rows:
        name = f"{group}/{dimension}"
        lists = [vectors.of(side.get(group, {}).get(dimension, ())) for side in (reference, generated)]
        try:
            similarities[name] = semantic_similarity(*lists, **scoring.options)
        except InvalidTagsError as error:
            raise located(error, f"{place}, {name}") from error
    averages = {group: average_of_group(similarities, group, names) for group, names in scoring.dimensions.items()}
    summed = {TOTAL: _total(averages), **{f"{group}_average": average for group, average in averages.items()}}
    by_name: dict[str, GroupAverage | SemanticSimilarity] = {**summed, **similarities}
    values = {name: score.value for name, score in by_name.items()}
    reasons = {name: score.reason for name, score in by_name.items() if score.reason}
    n_dimensions = {group: average.n_dimensions for group, average in averages.items()}
    return DescriptionScores(values, similarities, reasons, n_dimensions)


def average_of_group(
    similarities: Mapping[str, SemanticSimilarity], group: str, dimensions: Sequence[str]
) -> GroupAverage:
    """Return the average of one song over the dimensions of one group that its reference has tags for.

    Parameters
    ----------
    similarities
        ``<group>/<dimension>`` -> the comparison of both lists.
    group
        One of `annotations.GROUPS`.
    dimensions
        Those that are scored.

    Returns
    -------
    GroupAverage
        Undefined if the generated side leaves out any of these dimensions: a system must not gain by leaving out what
        is hard.
    """
    described = [similarity for name in dimensions if (similarity := similarities[f"{group}/{name}"]).n_reference]
    if not described:
        return GroupAverage(float("nan"), f"no reference tags in any {group} dimension", 0)
    silent = sum(not similarity.n_generated for similarity in described if np.isnan(similarity.value))
    undefined = sum(bool(np.isnan(similarity.value)) for similarity in described)
    if silent:
        reason = f"no generated tags in {silent} of {len(described)} dimensions; `empty='zero'` counts them as 0"
    elif undefined:
        reason = f"the vectors of a list cancel out in {undefined} of {len(described)} dimensions"
    else:
        return GroupAverage(float(np.mean([similarity.value for similarity in described])), "", len(described))
    return GroupAverage(float("nan"), reason, len(described))


def _total(averages: Mapping[str, GroupAverage]) -> GroupAverage:
    """Return the mean of the averages of the groups that the reference has tags for."""
    spoken = {group: average for group, average in averages.items() if average.n_dimensions}
    if not spoken:
        return GroupAverage(float("nan"), "no reference tags in any dimension", 0)
    reasons = [f"{group}: {average.reason}" for group, average in spoken.items() if average.reason]
    value = float("nan") if reasons else float(np.mean([average.value for average in spoken.values()]))
    return GroupAverage(value, ", and ".join(reasons), sum(average.n_dimensions for average in spoken.values()))


if not TYPE_CHECKING:
    __getattr__ = module_getattr(
        __name__, {"DescriptionJudgement": "DescriptionScores", "judge_description": "score_description"}
    )
