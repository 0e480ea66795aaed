"""How descriptions of the same song by professionals and amateurs differ: MuChin's discrepancy study.

For each song the tags of both groups of annotators are compared, dimension by dimension, where both were asked
(`FACING`). Songs are sorted by what the professionals said of genre, emotion and purpose (`lyrics.tag_groups`), and
the mean similarity of each group of songs is reported with its interval: low similarity is a large discrepancy. Each
group is tested against the songs outside of it.

Levels
    ``"tags"`` (default) takes the similarity of two lists of tags (`metrics.semantics`), the score of the paper's
    benchmark. ``"joined"`` embeds all tags of a dimension as one text, joined by commas, as the released code of the
    study does; it measures how alike the lists look as a whole.

What to keep in mind
    Groups overlap, and a song without any keyword is in none. The emotion of a song is known by the professionals' tags
    of the very dimension that is then compared, as it is for purposes. Short lists and lists of similar tags score
    higher under the default mean, whoever wrote them: `normalize_by_self` takes that out. For most songs the themes of
    the lyrics were written by a machine for both groups, and audio effects are a closed question.

References
----------
Wang et al. (2024), MuChin: A Chinese Colloquial Description Benchmark, IJCAI, section 3.1 and figure 3. Released code:
`semantic/data_analysis.py`. Deviations: see `lyrics.tag_groups`; means with intervals and tests in place of lists
of values; a list without tags is undefined and counted, not dropped.

"""

from __future__ import annotations

import dataclasses
import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from music_evals.annotations import AUDIO_EFFECTS, GROUPS
from music_evals.errors import InvalidInputError, NoDataError, UndefinedMetricWarning, UnknownNameError
from music_evals.lyrics.embeddings import DEFAULT_ENCODER, embed
from music_evals.lyrics.tag_groups import GROUPINGS, fold_tag
from music_evals.metrics.semantics import check_options, semantic_similarity
from music_evals.pipelines.description_input import Description, Descriptions, check_description
from music_evals.pipelines.descriptions import EncoderLike, resolve_encoder
from music_evals.pipelines.intervals import check_groups
from music_evals.stats import holm, mean_intervals
from music_evals.stats.intervals import check_confidence, check_seed
from music_evals.stats.labels import label_mean_tests

__all__ = [
    "ALL",
    "DEFAULT_BY",
    "FACING",
    "LEVELS",
    "Cell",
    "DiscrepancyStudy",
    "Facing",
    "check_level",
    "common_tags",
    "facing_similarities",
    "study_discrepancy",
]

LEVELS: Final = ("tags", "joined")
"""What is embedded: each tag, or all tags of a dimension as one text."""

DEFAULT_BY: Final = ("genre", "emotion", "purpose")
"""The three panels of figure 3."""

ALL: Final = "all"
"""The grouping and the group of all songs, beside the others for comparison."""

JOINT: Final = ","  # the separator of the released code's tables

Floats = npt.NDArray[np.float64]


class Facing(NamedTuple):
    """What both groups of annotators were asked.

    Attributes
    ----------
    english
        For pages.
    professional, amateur
        The dimensions that face each other.
    """

    english: str
    professional: str
    amateur: str


_SAME: Final = {
    "instrumentation": "Instrumentation",
    "vocal_components": "Vocals",
    "lyric_themes": "Lyric themes",
    "song_purpose": "Purpose",
    "culture_region": "Culture and region",
    "target_audience": "Audience",
    AUDIO_EFFECTS: "Audio effects",
}
"""Dimensions that both groups have under one name."""

FACING: Final[Mapping[str, Facing]] = MappingProxyType(
    {
        "expressive_impact": Facing(
            "Expressive impact", "expressive_impact_singer_accompaniment", "expressive_impact_singer"
        ),
        "emotional_impact": Facing("Emotional impact", "emotional_impact_lyrics_melody", "emotional_impact_lyrics"),
        "tempo": Facing("Tempo", "tempo_rhythm", "perception_of_tempo"),
        **{name: Facing(english, name, name) for name, english in _SAME.items()},
    }
)
"""Name -> the dimensions of both groups that face each other.

Professionals were asked for singer and accompaniment, lyrics and melody, tempo and rhythm; amateurs for the singer, the
lyrics, and how fast it feels. Musical genres (professionals) and what feels special (amateurs) have no counterpart.
"""


def common_tags(description: Description) -> dict[str, tuple[str, ...]]:
    """Return what a professional and an amateur both wrote of a song: the common description of MuChin's figure 1.

    Parameters
    ----------
    description
        Group of annotators -> dimension -> tags, of one song.

    Returns
    -------
    dict
        Name of `FACING` -> the professional's tags, in their order, that the amateur wrote too; case, width and outer
        spaces do not count. Empty if they share no tag; a synonym is another tag.

    Raises
    ------
    UnknownNameError
        A group is missing.
    """
    if missing := [group for group in GROUPS if group not in description]:
        raise UnknownNameError("group of annotators", missing[0], sorted(description))
    common = {}
    for name, facing in FACING.items():
        others = {fold_tag(tag) for tag in description["amateur"].get(facing.amateur, ())}
        tags = description["professional"].get(facing.professional, ())
        common[name] = tuple(tag for tag in tags if fold_tag(tag) in others)
    return common


class Cell(NamedTuple):
    """One group of songs in one dimension.

    Attributes
    ----------
    grouping, group
        As in `lyrics.tag_groups.GROUPINGS`; both are ``"all"`` for all songs.
    dimension
        As in `FACING`.
    similarity
        Mean over the songs of the group that define it, at most 1; lower is a larger discrepancy.
    low, high
        Ends of its clustered interval, see `stats.intervals`.
    n, n_defined, n_clusters
        Songs in the group, those that count, and their effective number of clusters.
    difference
        `similarity` minus that of the songs outside the group.
    p_value, p_adjusted
        Of the difference: from a permutation test of the songs' labels, and after Holm's correction over all tests of
        the study.
    """

    grouping: str
    group: str
    dimension: str
    similarity: float
    low: float
    high: float
    n: int
    n_defined: int
    n_clusters: float
    difference: float = math.nan
    p_value: float = math.nan
    p_adjusted: float = math.nan


@dataclasses.dataclass(frozen=True)
class DiscrepancyStudy:
    """What the study found.

    Attributes
    ----------
    settings
        ``level``, ``aggregation``, ``normalize_by_self``, ``encoder`` (name and revision), ``confidence``,
        ``n_permutations``, ``seed``.
    n_songs
        Songs given.
    dimensions
        Names out of `FACING`, in the order of tables and pictures.
    groups
        Grouping -> its groups, in their order; without ``"all"``.
    n_ungrouped
        Grouping -> songs that belong to none of its groups.
    cells
        Those of all songs first, then by grouping, group and dimension.
    """

    settings: Mapping[str, Any]
    n_songs: int
    dimensions: tuple[str, ...]
    groups: Mapping[str, tuple[str, ...]]
    n_ungrouped: Mapping[str, int]
    cells: tuple[Cell, ...]

    def cell(self, grouping: str, group: str, dimension: str) -> Cell:
        """Return one cell.

        Raises
        ------
        UnknownNameError
            A name that does not exist.
        """
        for cell in self.cells:
            if cell[:3] == (grouping, group, dimension):
                return cell
        name = f"{grouping}/{group}/{dimension}"
        raise UnknownNameError("cell", name, ("/".join(cell[:3]) for cell in self.cells))

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values, for JSON but for NaN."""
        return {
            "settings": dict(self.settings),
            "n_songs": self.n_songs,
            "dimensions": list(self.dimensions),
            "groups": {name: list(groups) for name, groups in self.groups.items()},
            "n_ungrouped": dict(self.n_ungrouped),
            "cells": [cell._asdict() for cell in self.cells],
        }


class _TestOptions(NamedTuple):
    """How intervals and tests are made."""

    groups: npt.NDArray[Any] | None
    confidence: float
    n_permutations: int
    seed: int


def study_discrepancy(
    descriptions: Descriptions,
    *,
    encoder: EncoderLike = DEFAULT_ENCODER,
    by: Sequence[str] = DEFAULT_BY,
    dimensions: Sequence[str] | None = None,
    level: str = "tags",
    aggregation: str = "mean",
    normalize_by_self: bool = False,
    groups: npt.ArrayLike | None = None,
    confidence: float = 0.95,
    n_permutations: int = 10_000,
    seed: int = 0,
    similarities: npt.ArrayLike | None = None,
) -> DiscrepancyStudy:
    """Compare the tags of professionals and amateurs for the same songs, by groups of songs.

    Parameters
    ----------
    descriptions
        One a song, in order or by id: group of annotators -> dimension -> tags.
    encoder
        An encoder, its name, or a function from texts to vectors.
    by
        Names out of `lyrics.tag_groups.GROUPINGS`.
    dimensions
        Names out of `FACING`; None for all ten.
    level
        ``"tags"`` or ``"joined"``.
    aggregation, normalize_by_self
        As in `metrics.semantics.semantic_similarity`; at ``level="joined"`` there is one pair of texts and no choice.
    groups
        Cluster of each song, shape (n,); None makes each song its own. Songs of one cluster belong to the groups of any
        of them.
    confidence
        Nominal coverage of the intervals, above 0 and below 1.
    n_permutations, seed
        Of the tests; 0 leaves them out (NaN).
    similarities
        The result of `facing_similarities` for these songs and options, if it was computed before.

    Returns
    -------
    DiscrepancyStudy
        A song without tags on a side is undefined there: left out of the mean, and counted.

    Raises
    ------
    NoDataError
        No songs.
    UnknownNameError
        A grouping, dimension, level or aggregation that does not exist; the message offers the nearest.
    InvalidTagsError
        Tags that are not lists of strings.
    PairCountError
        Not one cluster a song.
    InvalidInputError
        An option out of range, or one that does not go with another.
    ModelUnavailableError, MissingBackendError, BackendError
        The encoder cannot be loaded, or failed.
    """
    check_confidence(confidence)
    check_seed(seed)
    if not isinstance(n_permutations, int) or n_permutations < 0:
        raise InvalidInputError(f"n_permutations must be a whole number of at least 0, got {n_permutations!r}")
    names = _check_names(by, dimensions)
    check_level(level, aggregation, normalize_by_self=normalize_by_self)
    songs = _songs(descriptions)
    clusters = check_groups(groups, len(songs))
    loaded = resolve_encoder(encoder)
    options = {"aggregation": aggregation, "normalize_by_self": normalize_by_self}
    if similarities is None:
        values = _similarities(songs, names, loaded, level, options)
    else:
        shape = (len(songs), len(names))
        array = np.asarray(similarities, dtype=np.float64)
        if array.shape != shape:
            raise InvalidInputError(
                f"similarities must have one row a song and one column a dimension, shape {shape}, got {array.shape}"
            )
        values = array
    labels = {name: _labels(songs, name, clusters) for name in by}
    test_options = _TestOptions(clusters, confidence, n_permutations, seed)
    cells = _cells(
        values, np.ones((len(songs), 1), dtype=bool), [(ALL, ALL)], names, test_options._replace(n_permutations=0)
    )
    for grouping, inside in labels.items():
        keys = [(grouping, group.name) for group in GROUPINGS[grouping].groups]
        cells += _cells(values, inside, keys, names, test_options)
    about = {"name": loaded.name, "revision": loaded.revision}
    intervals = {"confidence": confidence, "n_permutations": n_permutations, "seed": seed}
    # the cells with p-values corrected over all of them
    adjusted = holm([cell.p_value for cell in cells])
    return DiscrepancyStudy(
        settings={"level": level, **options, "encoder": about, **intervals},
        n_songs=len(songs),
        dimensions=names,
        groups={name: tuple(group.name for group in GROUPINGS[name].groups) for name in by},
        n_ungrouped={name: int(np.count_nonzero(~inside.any(axis=1))) for name, inside in labels.items()},
        cells=tuple(cell._replace(p_adjusted=float(p)) for cell, p in zip(cells, adjusted, strict=True)),
    )


def check_level(level: str, aggregation: str, *, normalize_by_self: bool) -> None:
    """Hold the options that say how both sides are compared to what there is.

    Raises
    ------
    UnknownNameError
        A level or aggregation that does not exist.
    InvalidInputError
        One that does not go with another.
    """
    if level not in LEVELS:
        raise UnknownNameError("level", level, LEVELS)
    check_options(aggregation, "nan", normalize_by_self=normalize_by_self)
    if level == "joined" and (aggregation != "mean" or normalize_by_self):
        raise InvalidInputError(
            "level='joined' compares one text with one text: leave aggregation and normalize_by_self out"
        )


def facing_similarities(
    descriptions: Descriptions,
    *,
    encoder: EncoderLike = DEFAULT_ENCODER,
    dimensions: Sequence[str] | None = None,
    level: str = "tags",
    aggregation: str = "mean",
    normalize_by_self: bool = False,
) -> Floats:
    """Return how alike both groups of annotators describe each song, dimension by dimension.

    Parameters
    ----------
    descriptions, encoder, dimensions, level, aggregation, normalize_by_self
        As in `study_discrepancy`.

    Returns
    -------
    numpy.ndarray
        Shape (songs, dimensions), at most 1; NaN where a side has no tags.

    Raises
    ------
    NoDataError, UnknownNameError, InvalidTagsError, InvalidInputError
        As `study_discrepancy`.
    ModelUnavailableError, MissingBackendError, BackendError
        The encoder cannot be loaded, or failed.
    """
    names = _check_names((), dimensions)
    check_level(level, aggregation, normalize_by_self=normalize_by_self)
    options = {"aggregation": aggregation, "normalize_by_self": normalize_by_self}
    return _similarities(_songs(descriptions), names, resolve_encoder(encoder), level, options)


def _check_names(by: Iterable[str], dimensions: Sequence[str] | None) -> tuple[str, ...]:
    if isinstance(by, str):
        raise InvalidInputError(f"by must be a list of groupings, as ['genre', 'emotion'], got {by!r}")
    for name in by:
        if name not in GROUPINGS:
            raise UnknownNameError("grouping", name, GROUPINGS)
    names = tuple(dict.fromkeys(FACING if dimensions is None else dimensions))
    for name in names:
        if name not in FACING:
            raise UnknownNameError("shared dimension", name, FACING)
    return names


def _songs(descriptions: Descriptions) -> list[Mapping[str, Mapping[str, tuple[str, ...]]]]:
    items = descriptions.items() if isinstance(descriptions, Mapping) else enumerate(descriptions)
    songs = [check_description(description, f"song {place}") for place, description in items]
    if not songs:
        raise NoDataError("no songs to study; give at least one description")
    return list(songs)


def _texts(song: Description, dimension: str, level: str) -> tuple[list[str], list[str]]:
    """Return what both groups of annotators say of a dimension, as it is embedded."""
    facing = FACING[dimension]
    sides = [
        list(song.get(group, {}).get(name, ()))
        for group, name in (("professional", facing.professional), ("amateur", facing.amateur))
    ]
    if level == "joined":
        sides = [[JOINT.join(side)] if side else [] for side in sides]
    return sides[0], sides[1]


def _similarities(
    songs: Sequence[Description], names: Sequence[str], encoder: Any, level: str, options: Mapping[str, Any]
) -> Floats:
    """Return the similarity of both sides, shape (songs, dimensions); NaN where one is silent."""
    texts = [[_texts(song, name, level) for name in names] for song in songs]
    vectors = embed(encoder, (text for song in texts for sides in song for side in sides for text in side))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedMetricWarning)  # they are counted in the cells
        return np.array(
            [[semantic_similarity(*map(vectors.of, sides), **options).value for sides in song] for song in texts]
        ).reshape(len(songs), len(names))


def _labels(songs: Sequence[Description], grouping: str, clusters: npt.NDArray[Any] | None) -> npt.NDArray[np.bool_]:
    """Return which song belongs to which group, shape (songs, groups); songs of a cluster share theirs."""
    chosen = GROUPINGS[grouping]
    tags = [song.get("professional", {}).get(chosen.dimensions["professional"], ()) for song in songs]
    inside = np.array([[group.matches(own) for group in chosen.groups] for own in tags], dtype=bool)
    if clusters is None:
        return inside
    _, codes = np.unique(clusters, return_inverse=True)
    shared = np.zeros((codes.max() + 1, inside.shape[1]), dtype=bool)
    np.logical_or.at(shared, codes, inside)
    return shared[codes]


def _cells(
    values: Floats,
    inside: npt.NDArray[np.bool_],
    keys: Sequence[tuple[str, str]],
    names: Sequence[str],
    test_options: _TestOptions,
) -> list[Cell]:
    """Return the cells of one grouping, group by group."""
    cells = []
    tests = [
        label_mean_tests(
            column, inside, test_options.groups, n_resamples=test_options.n_permutations, seed=test_options.seed
        )
        if test_options.n_permutations
        else None
        for column in values.T
    ]
    for place, ((grouping, group), member) in enumerate(zip(keys, inside.T, strict=True)):
        clusters = None if test_options.groups is None else test_options.groups[member]
        spans = [(-1.0, 1.0)] * len(names)  # cosines
        intervals = mean_intervals(values[member], clusters, confidence=test_options.confidence, spans=spans)
        for name, interval, tested in zip(names, intervals, tests, strict=True):
            cell = Cell(grouping, group, name, *interval)
            if tested is not None:
                cell = cell._replace(difference=tested[place].difference, p_value=tested[place].p_value)
            cells.append(cell)
    return cells
