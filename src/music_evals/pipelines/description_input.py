"""Descriptions as they come in: checked, paired by song, with the dimensions that are scored."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from music_evals.annotations import DIMENSIONS, GROUPS, SCORED
from music_evals.errors import InvalidTagsError, NoDataError, PairCountError, UnknownNameError

Description = Mapping[str, Mapping[str, Sequence[str]]]
"""Group of annotators -> dimension -> tags."""

Descriptions = Sequence[Description] | Mapping[str, Description]
"""Of several songs, in order or by the id of the song."""

SHOWN = 5  # ids in a message


def description_of_row(row: Mapping[str, Any]) -> dict[str, dict[str, list[str]]]:
    """Return the tags of a row of CaiMD: group of annotators -> dimension -> tags."""
    description: dict[str, dict[str, list[str]]] = {}
    for group in GROUPS:
        if row.get(group) is None:
            continue
        try:
            entries = row[group]["dimensions"].items()
            tags = {name: entry["tags"] for name, entry in entries if entry is not None}
        except (KeyError, TypeError, AttributeError) as error:
            raise InvalidTagsError(
                f"{group} of a row must be {{dimensions: {{name: {{tags: [...]}}}}}}: {error!r}"
            ) from error
        description[group] = {name: list(check_tags(given, f"{group}/{name}")) for name, given in tags.items()}
    return description


def check_tags(tags: Any, where: str) -> tuple[str, ...]:
    """Return tags as a tuple, as they are written."""
    if isinstance(tags, str | bytes) or not isinstance(tags, Sequence | np.ndarray):
        raise InvalidTagsError(
            f"{where}: tags must be a list of strings, as ['慢速', '抒情'], got {type(tags).__name__} {tags!r:.60}"
        )
    for place, tag in enumerate(tags):
        if not isinstance(tag, str):
            raise InvalidTagsError(
                f"{where}: tags must be strings, but tag {place} is {type(tag).__name__} {tag!r:.60}"
            )
    return tuple(str(tag) for tag in tags)


def check_description(description: Any, where: str) -> dict[str, dict[str, tuple[str, ...]]]:
    """Return a description whose groups, dimensions and tags exist."""
    if not isinstance(description, Mapping):
        raise InvalidTagsError(
            f"{where}: a description must be {{group: {{dimension: [tags]}}}}, got {type(description).__name__}"
        )
    checked: dict[str, dict[str, tuple[str, ...]]] = {}
    for group, dimensions in description.items():
        if group not in DIMENSIONS:
            raise UnknownNameError("group of annotators", str(group), GROUPS, f"in {where}")
        if not isinstance(dimensions, Mapping):
            raise InvalidTagsError(f"{where}: {group} must be {{dimension: [tags]}}, got {type(dimensions).__name__}")
        _check_dimensions(group, dimensions, where)
        checked[group] = {name: check_tags(tags, f"{where}, {group}/{name}") for name, tags in dimensions.items()}
    return checked


def _check_dimensions(group: str, names: Iterable[Any], where: str) -> None:
    for name in names:
        if name not in DIMENSIONS[group]:
            kind = f"{group} dimension"
            raise UnknownNameError(kind, str(name), DIMENSIONS[group], f"in {where}")


def choose_dimensions(
    annotators: Iterable[str] | None, dimensions: Mapping[str, Sequence[str]] | None, generated: Iterable[Description]
) -> dict[str, tuple[str, ...]]:
    """Return group -> dimensions to score."""
    wanted = {**SCORED, **(dimensions or {})}
    groups = list(annotators) if annotators is not None else None
    if groups is None:
        spoken = {group for description in generated for group in description}
        groups = [group for group in GROUPS if group in spoken]
    for group in [*groups, *(dimensions or {})]:
        if group not in GROUPS:
            raise UnknownNameError("group of annotators", group, GROUPS)
    for group, names in wanted.items():
        _check_dimensions(group, names, "dimensions")
    if not groups:
        raise NoDataError(
            f"no generated description speaks for {' or '.join(GROUPS)}; give {{group: {{dimension: [tags]}}}}"
        )
    return {group: tuple(dict.fromkeys(wanted[group])) for group in GROUPS if group in groups}


def pair_up(
    generated: Descriptions, references: Descriptions
) -> tuple[list[tuple[Description, Description]], list[str]]:
    """Return pairs of checked descriptions, and the id or the place of each song."""
    if isinstance(generated, Mapping) != isinstance(references, Mapping):
        raise PairCountError("generated and references must both be in order or both be by id; got one of each")
    ids: list[str]
    if isinstance(references, Mapping) and isinstance(generated, Mapping):
        ids = list(references)
        reported = []
        for side, own, other in (("generated", generated, references), ("references", references, generated)):
            missing = [item for item in other if item not in own]
            if missing:
                dots = " ..." if len(missing) > SHOWN else ""
                reported.append(f"{side} lacks {len(missing)}: {', '.join(map(str, missing[:SHOWN]))}{dots}")
        if reported:
            raise PairCountError(f"song ids must pair up; {'; '.join(reported)}")
        both = [(generated[item], references[item]) for item in ids]
    else:
        first: list[Any] = list(generated)
        second: list[Any] = list(references)
        if len(first) != len(second):
            raise PairCountError(f"generated and references must pair up, got {len(first)} and {len(second)} songs")
        ids = [f"song {place}" for place in range(len(second))]
        both = list(zip(first, second, strict=True))
    if not both:
        raise NoDataError("no songs to judge; give at least one description and its reference")
    pairs: list[tuple[Description, Description]] = [
        (check_description(estimate, f"generated, {item}"), check_description(reference, f"references, {item}"))
        for (estimate, reference), item in zip(both, ids, strict=True)
    ]
    return pairs, ids
