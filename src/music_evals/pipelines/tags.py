"""Tags against tags, in whatever form a song's tags come: one list, lists by dimension, or by group and dimension."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from music_evals.annotations import DIMENSIONS, GROUPS, SCORED
from music_evals.errors import InvalidTagsError, UndefinedMetricWarning, located
from music_evals.lyrics.embeddings import DEFAULT_ENCODER, Embeddings, embed
from music_evals.lyrics.tag_groups import fold_tag
from music_evals.metrics.semantics import SemanticSimilarity, check_options, semantic_similarity
from music_evals.pipelines.descriptions import (
    TOTAL,
    Description,
    EncoderLike,
    check_description,
    check_tags,
    evaluate_descriptions,
    resolve_encoder,
)
from music_evals.pipelines.intervals import check_groups, check_pairs, report_means
from music_evals.stats import mean_interval
from music_evals.stats.intervals import check_confidence

__all__ = [
    "EXTRACTIONS",
    "TAG_FORMS",
    "TagItem",
    "Vocabulary",
    "check_item",
    "evaluate_tags",
    "extract_tags",
    "form_of",
    "vocabulary_of",
]

TagItem = Sequence[str] | Mapping[str, Sequence[str]] | Mapping[str, Mapping[str, Sequence[str]]]
"""The tags of one song."""

TAG_FORMS: Final = ("list", "dimensions", "groups")
"""Tags alone; dimension -> tags; group of annotators -> dimension -> tags."""


def form_of(item: TagItem) -> str:
    """Return the form of a song's tags, out of `TAG_FORMS`; a description that says nothing is ``"groups"``."""
    if not isinstance(item, Mapping):
        return "list"
    return "groups" if all(isinstance(value, Mapping) for value in item.values()) else "dimensions"


def check_item(item: Any, where: str) -> TagItem:
    """Return the tags of one song, its lists as tuples.

    Parameters
    ----------
    item
        A `TagItem`, in one of the `TAG_FORMS`.
    where
        For the message of an error.

    Raises
    ------
    InvalidTagsError
        Tags that are not lists of strings, or lists by dimension beside lists by group.
    UnknownNameError
        A group or dimension that does not exist.
    """
    if not isinstance(item, Mapping):
        return check_tags(item, where)
    if form_of(item) == "groups":
        return check_description(item, where)
    mixed = [name for name, value in item.items() if isinstance(value, Mapping)]
    if mixed:
        raise InvalidTagsError(
            f"{where}: give tags by dimension or by group and dimension; {mixed[0]!r} holds dimensions, others do not"
        )
    groups = [group for group in GROUPS if set(item) <= set(DIMENSIONS[group])]
    # where no group has all the dimensions, the nearest group names what it does not have
    nearest = groups[0] if groups else max(GROUPS, key=lambda group: len(set(item) & set(DIMENSIONS[group])))
    checked: Mapping[str, Sequence[str]] = check_description({nearest: item}, where)[nearest]
    return checked


def evaluate_tags(
    references: Sequence[TagItem],
    generated: Sequence[TagItem],
    *,
    encoder: EncoderLike = DEFAULT_ENCODER,
    aggregation: str = "mean",
    normalize_by_self: bool = False,
    empty: str = "nan",
    annotators: str | None = None,
    dimensions: Mapping[str, Sequence[str]] | None = None,
    groups: npt.ArrayLike | None = None,
    confidence: float = 0.95,
    per_item: bool = False,
) -> dict[str, Any]:
    """Compare the tags of songs with those of people.

    Parameters
    ----------
    references, generated
        Tags of each song in the same order, all in one form of `TAG_FORMS`.
    encoder, aggregation, normalize_by_self, empty
        As in `pipelines.descriptions.tag_semantic_similarity`. Each distinct tag is encoded once.
    annotators
        Whose dimensions they are, for tags by dimension: one of `annotations.GROUPS`. None takes the one group that
        has them all.
    dimensions
        Group -> dimensions to score. None takes those of table 2 (`annotations.SCORED`) that any song names on either
        side.
    groups, confidence, per_item
        As in `pipelines.descriptions.evaluate_descriptions`.

    Returns
    -------
    dict
        For lists: ``tag_semantic_similarity``, the mean over the songs that define it, ``tag_semantic_similarity_ci``
        (low, high), ``..._n`` songs, ``..._n_defined`` of them that count, ``..._n_clusters``, ``..._std``, the mean
        over songs of the deviation over pairs; ``encoder``, its name and revision; ``per_item``, one dict a song with
        its score and ``reasons`` (score -> why it is NaN). For tags by dimension: as `evaluate_descriptions`.

    Raises
    ------
    PairCountError, NoDataError
        References, predictions and groups differ in number, or are empty.
    InvalidTagsError
        Tags that are not lists of strings, songs in different forms, dimensions that both groups have without
        `annotators`, or an empty list with ``empty="raise"``. The message names the song.
    UnknownNameError
        An option, group or dimension that does not exist.
    InvalidInputError, ModelUnavailableError, MissingBackendError, BackendError
        As `pipelines.descriptions.evaluate_descriptions`.

    Warns
    -----
    UndefinedMetricWarning
        The score is NaN because no song defines it.
    """
    check_confidence(confidence)
    check_options(aggregation, empty, normalize_by_self=normalize_by_self)
    options: dict[str, Any] = {"aggregation": aggregation, "normalize_by_self": normalize_by_self, "empty": empty}
    nothing = "no songs to judge; give at least one list of tags and its reference"
    check_pairs(references, generated, "predictions", "a song", nothing)
    first: list[Any] = [check_item(item, f"predictions[{i}]") for i, item in enumerate(generated)]
    second: list[Any] = [check_item(item, f"references[{i}]") for i, item in enumerate(references)]
    form = _common_form(first, second)
    if form == "list":
        if annotators is not None or dimensions is not None:
            raise InvalidTagsError("annotators and dimensions go with tags by dimension; these are lists")
        return _evaluate_lists(first, second, encoder, options, groups=groups, confidence=confidence, per_item=per_item)
    if form == "dimensions":
        annotators = annotators or _only_group([*first, *second])
        first, second = ([{annotators: item} for item in side] for side in (first, second))
    return evaluate_descriptions(
        second,
        first,
        encoder=encoder,
        annotators=None if annotators is None else [annotators],
        dimensions=_named([*first, *second]) if dimensions is None else dimensions,
        per_item=per_item,
        groups=groups,
        confidence=confidence,
        **options,
    )


def _common_form(generated: Sequence[TagItem], references: Sequence[TagItem]) -> str:
    """Return the form of all songs; a description that says nothing goes with any but lists."""
    places = [f"predictions[{i}]" for i in range(len(generated))] + [f"references[{i}]" for i in range(len(references))]
    items = zip(places, [*generated, *references], strict=True)
    forms = [(place, form_of(item)) for place, item in items if not isinstance(item, Mapping) or item]
    for place, form in forms:
        if form != forms[0][1]:
            raise InvalidTagsError(
                f"{place} holds tags in the form {form!r}, {forms[0][0]} in the form {forms[0][1]!r}; give all in one"
            )
    return forms[0][1] if forms else "groups"


def _only_group(items: Sequence[Any]) -> str:
    """Return the group of annotators that has all dimensions of the songs."""
    names = {name for item in items for name in item}
    fitting = [group for group in GROUPS if names <= set(DIMENSIONS[group])]
    if len(fitting) == 1:
        return fitting[0]
    have = "both groups of annotators have" if fitting else "no group of annotators has"
    raise InvalidTagsError(
        f"{have} the dimensions {', '.join(sorted(names))}; say annotators='professional' or annotators='amateur'"
    )


def _named(descriptions: Sequence[Description]) -> dict[str, list[str]]:
    """Return the dimensions of table 2 that any description names, by group."""
    named = {group: {name for item in descriptions for name in item.get(group, {})} for group in GROUPS}
    dimensions = {group: [name for name in SCORED[group] if name in names] for group, names in named.items() if names}
    missing = [group for group, names in dimensions.items() if not names]
    if missing:
        names = ", ".join(sorted(named[missing[0]]))
        raise InvalidTagsError(
            f"{missing[0]}: of {names} none is in table 2; to judge them, say dimensions={{{missing[0]!r}: [...]}}"
        )
    return dimensions


def _evaluate_lists(
    generated: Sequence[Sequence[str]],
    references: Sequence[Sequence[str]],
    encoder: EncoderLike,
    options: Mapping[str, Any],
    *,
    groups: npt.ArrayLike | None,
    confidence: float,
    per_item: bool,
) -> dict[str, Any]:
    clusters = check_groups(groups, len(references))
    loaded = resolve_encoder(encoder)
    vectors = embed(loaded, (tag for side in (generated, references) for tags in side for tag in tags))
    songs = [
        _compared(f"song {i}", vectors, first, second, options)
        for i, (first, second) in enumerate(zip(generated, references, strict=True))
    ]
    values = np.array([[song.value] for song in songs])
    deviations = np.array([song.std for song in songs])
    result = report_means([TOTAL], values, clusters, confidence)
    result[f"{TOTAL}_std"] = mean_interval(deviations, None).estimate
    result["encoder"] = {"name": loaded.name, "revision": loaded.revision}
    if per_item:
        result["per_item"] = [
            {TOTAL: song.value, "reasons": {TOTAL: song.reason} if song.reason else {}} for song in songs
        ]
    return result


def _compared(
    place: str, vectors: Embeddings, first: Sequence[str], second: Sequence[str], options: Mapping[str, Any]
) -> SemanticSimilarity:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedMetricWarning)  # the reason is reported with the song
        try:
            return semantic_similarity(vectors.of(second), vectors.of(first), **options)
        except InvalidTagsError as error:
            raise located(error, place) from error


EXTRACTIONS: Final = ("vocabulary",)
"""Ways to find tags in a text. ``"vocabulary"``: the tags that annotators used anywhere in the data set."""

Vocabulary = Mapping[str, Mapping[str, Sequence[str]]]
"""Group of annotators -> dimension -> tags."""


def vocabulary_of(descriptions: Iterable[Vocabulary]) -> dict[str, dict[str, list[str]]]:
    """Return all tags of descriptions by group and scored dimension, each once, in the order of the alphabet."""
    vocabulary: dict[str, dict[str, set[str]]] = {
        group: {name: set() for name in names} for group, names in SCORED.items()
    }
    for description in descriptions:
        for group, names in SCORED.items():
            for name in names:
                vocabulary[group][name].update(tag for tag in description.get(group, {}).get(name, ()) if tag.strip())
    return {group: {name: sorted(tags) for name, tags in names.items()} for group, names in vocabulary.items()}


def extract_tags(text: str, vocabulary: Vocabulary) -> dict[str, dict[str, list[str]]]:
    """Return the tags of a vocabulary that a text holds, for both groups of annotators.

    A tag is found where its characters stand in the text, whatever their case, width or spaces; in Latin letters as
    whole words. Where one tag of a dimension lies within another one that is found there, the longer one counts. What
    the vocabulary does not know is not found, and what a text denies is: "no drums" holds drums.

    Parameters
    ----------
    text
        In any language, not empty.
    vocabulary
        Group -> dimension -> tags (`vocabulary_of`).

    Returns
    -------
    dict
        Group -> dimension -> tags in the order in which the text has them; a dimension of which it says nothing has an
        empty list.

    Raises
    ------
    InvalidTagsError
        An empty text.

    Examples
    --------
    >>> words = {"amateur": {"vocal_components": ["女声", "温柔的女声", "男声"]}}
    >>> extract_tags("这首歌由温柔的女声演唱", words)
    {'amateur': {'vocal_components': ['温柔的女声']}}
    """
    if not text.strip():
        raise InvalidTagsError("a text to find tags in is empty; leave the song out")
    folded = fold_tag(text)
    return {group: {name: _held(folded, tags) for name, tags in names.items()} for group, names in vocabulary.items()}


def _held(text: str, tags: Sequence[str]) -> list[str]:
    by_form = {fold_tag(tag): tag for tag in sorted(tags)}
    taken: list[tuple[int, int, str]] = []
    for form in sorted(filter(None, by_form), key=lambda word: (-len(word), word)):
        # where a tag first stands outside of the longer ones that were found
        pattern = re.escape(form)
        if re.fullmatch(r"[\x00-\x7f]+", form):
            pattern = rf"(?<![a-z0-9]){pattern}(?![a-z0-9])"
        spans = (match.span() for match in re.finditer(pattern, text))
        place = next((span for span in spans if all(span[1] <= a or span[0] >= b for a, b, _ in taken)), None)
        if place is not None:
            taken.append((*place, by_form[form]))
    return [tag for _, _, tag in sorted(taken)]
