"""The dictionary of a tagger: which tags it knows, in which dimension, and how they become targets and back.

As in MuChin (Appendix H; `EncoderGroup` of the released code) the outputs of a group of annotators
are the tags of its ten dimensions of table 2, one dimension after the other; the themes of the lyrics are left out.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from music_evals.annotations import GROUPS, SCORED
from music_evals.errors import InvalidInputError, InvalidTagsError, NoDataError, UnknownNameError, UnreadableFileError
from music_evals.files import parse_json

__all__ = ["THRESHOLDS", "Clusters", "TagVocabulary", "read_clusters", "row_tags"]

THRESHOLDS: Final = (0.5, 0.6, 0.7, 0.8, 0.9)
"""Probabilities that the released code decodes at; which of them made table 2 is not said."""

_CLUSTERS: Final = "JSON, group -> dimension -> tag -> name of its cluster"
Clusters = Mapping[str, Mapping[str, Mapping[str, str]]]
"""Group -> dimension -> tag -> name of the cluster that stands for it."""


class TagVocabulary:
    """Tags by dimension, for one or both groups of annotators.

    Parameters
    ----------
    tags
        Group -> dimension -> tags. A group needs all of its dimensions in `annotations.SCORED`; the order is made that
        one. A dimension may be empty.

    Raises
    ------
    UnknownNameError
        A group or dimension that does not exist.
    InvalidTagsError
        Tags that are no strings, or a tag twice.
    InvalidInputError
        A dimension is missing, or a group has no tag at all.

    Examples
    --------
    >>> names = dict.fromkeys(SCORED["amateur"], ())
    >>> vocabulary = TagVocabulary({"amateur": names | {"song_purpose": ("KTV", "sleep")}})
    >>> vocabulary.size("amateur"), vocabulary.columns("amateur")["song_purpose"]
    (2, slice(0, 2, None))
    """

    def __init__(self, tags: Mapping[str, Mapping[str, Sequence[str]]]) -> None:
        checked: dict[str, Mapping[str, tuple[str, ...]]] = {}
        for group in (name for name in (*GROUPS, *tags) if name in tags):
            if group not in GROUPS:
                raise UnknownNameError("group of annotators", group, GROUPS)
            for name in tags[group]:
                if name not in SCORED[group]:
                    raise UnknownNameError(group + " dimension", name, SCORED[group])
            if missing := [name for name in SCORED[group] if name not in tags[group]]:
                raise InvalidInputError(
                    f"the {group} dimensions {', '.join(missing)} are missing; give them an empty list where they have "
                    "no tag"
                )
            own = {name: check_tags(tags[group][name], f"{group}, {name}") for name in SCORED[group]}
            for name, values in own.items():
                if len(set(values)) != len(values):
                    raise InvalidTagsError(f"{group}, {name}: a tag occurs twice")
            if not any(own.values()):
                raise InvalidInputError(f"the group {group!r} has no tag at all")
            checked[group] = MappingProxyType(own)
        if not checked:
            raise InvalidInputError("a vocabulary needs at least one group of annotators")
        self.tags: Mapping[str, Mapping[str, tuple[str, ...]]] = MappingProxyType(checked)

    @property
    def groups(self) -> tuple[str, ...]:
        """Groups of annotators, in the order of `annotations.GROUPS`."""
        return tuple(self.tags)

    def size(self, group: str) -> int:
        """Return how many outputs a group has."""
        return sum(len(tags) for tags in self.tags[group].values())

    def columns(self, group: str) -> dict[str, slice]:
        """Return where the outputs of each dimension lie."""
        slices, start = {}, 0
        for name, tags in self.tags[group].items():
            slices[name] = slice(start, start + len(tags))
            start += len(tags)
        return slices

    def encode(self, group: str, rows: Sequence[Mapping[str, Sequence[str]]]) -> npt.NDArray[np.bool_]:
        """Return the targets of songs, bool, shape (songs, outputs); rows are as from `row_tags`.

        A tag that the vocabulary does not have is left out.
        """
        targets = np.zeros((len(rows), self.size(group)), dtype=np.bool_)
        for name, columns in self.columns(group).items():
            place = {tag: columns.start + index for index, tag in enumerate(self.tags[group][name])}
            for row, tags in zip(targets, rows, strict=True):
                row[[place[tag] for tag in tags.get(name, ()) if tag in place]] = True
        return targets

    def decode(
        self, group: str, probabilities: npt.NDArray[np.floating[Any]], threshold: float
    ) -> dict[str, list[str]]:
        """Return dimension -> tags of one song, of probabilities (outputs,), 0..1, in the order of the vocabulary.

        Tags above the threshold are given; a dimension with none above it gives its most likely tag (of several, the
        first), as the released code does. A dimension is empty only where the vocabulary has no tag for it.
        """
        result = {}
        for name, columns in self.columns(group).items():
            part = probabilities[columns]
            chosen = np.flatnonzero(part > threshold)
            if not len(chosen) and len(part):
                chosen = np.array([part.argmax()])
            result[name] = [self.tags[group][name][index] for index in chosen]
        return result

    def to_json(self) -> str:
        """Return the text of a vocabulary.json."""
        return json.dumps({group: dict(tags) for group, tags in self.tags.items()}, ensure_ascii=False, indent=1) + "\n"

    @classmethod
    def from_json(cls, text: str | bytes, place: str = "vocabulary.json") -> TagVocabulary:
        """Read what `to_json` wrote; anything else raises `UnreadableFileError`."""
        try:
            return cls(json.loads(text))
        except (ValueError, TypeError, AttributeError, LookupError) as error:
            raise UnreadableFileError(
                f"{place}: not a vocabulary of group -> dimension -> tags ({error}); train the tagger again"
            ) from error

    @classmethod
    def build(cls, rows: Mapping[str, Sequence[Mapping[str, Sequence[str]]]], *, min_count: int = 1) -> TagVocabulary:
        """Collect the tags of training songs, the most frequent first, ties in the order of their characters.

        Parameters
        ----------
        rows
            Group -> dimension -> tags of each song, as from `row_tags`.
        min_count
            Songs that a tag must occur in.

        Raises
        ------
        NoDataError
            A group has no tag that occurs so often.
        InvalidInputError
            `min_count` below 1.
        """
        if min_count < 1:
            raise InvalidInputError(f"min_count must be at least 1, got {min_count}")
        tags: dict[str, dict[str, list[str]]] = {}
        for group, songs in rows.items():
            counts = {name: Counter(tag for song in songs for tag in set(song[name])) for name in SCORED[group]}
            tags[group] = {
                name: sorted((tag for tag in count if count[tag] >= min_count), key=lambda tag: (-count[tag], tag))
                for name, count in counts.items()
            }
            if not any(tags[group].values()):
                raise NoDataError(
                    f"no {group} tag occurs in {min_count} or more of {len(songs)} songs; lower min_count"
                )
        return cls(tags)


def check_tags(tags: Any, place: str) -> tuple[str, ...]:
    """Return tags as a tuple."""
    is_list = isinstance(tags, Sequence | np.ndarray) and not isinstance(tags, str | bytes)
    if not is_list or not all(isinstance(tag, str) for tag in tags):
        raise InvalidTagsError(f"{place}: expected a list of tags that are strings, got {tags!r:.80}")
    return tuple(str(tag) for tag in tags)


def row_tags(row: Mapping[str, Any], group: str, clusters: Clusters | None = None) -> dict[str, list[str]]:
    """Return dimension -> tags of a row of caimd: the ten dimensions of a group, the tags exactly as they stand.

    A tag that `clusters` knows is replaced by the name of its cluster; of several tags of one cluster one is left. A
    row without such a description, with a dimension missing or with tags that are not lists of strings raises
    `InvalidTagsError`.
    """
    place = f"song {row.get('id')!r}, {group}"
    dimensions = (row.get(group) or {}).get("dimensions")
    if not isinstance(dimensions, Mapping):
        raise InvalidTagsError(f"{place}: no dimensions; expected the schema of caimd (datasets_scripts/caimd)")
    result = {}
    for name in SCORED[group]:
        if not isinstance(dimensions.get(name), Mapping):
            raise InvalidTagsError(
                f"{place}: the dimension {name!r} is missing; expected the schema of caimd (datasets_scripts/caimd)"
            )
        tags = check_tags(dimensions[name].get("tags"), f"{place}, {name}")
        names = clusters.get(group, {}).get(name, {}) if clusters else {}
        result[name] = list(dict.fromkeys(names.get(tag, tag) for tag in tags))
    return result


def read_clusters(path: str | Path) -> Clusters:
    """Read a map from tags to the names of their clusters: JSON, group -> dimension -> tag -> name.

    MuChin replaces tags so before training, by a map that is not released. A file that is missing or of another form
    raises `UnreadableFileError`, a group or dimension that does not exist `UnknownNameError`.
    """
    try:
        values = parse_json(Path(path).read_bytes(), str(path), _CLUSTERS)
        names = [name for tags in values.values() for part in tags.values() for name in part.values()]
    except OSError as error:
        raise UnreadableFileError(f"{path}: cannot be read ({error.strerror}); check the path") from error
    except AttributeError as error:  # a list or a text where there should be names
        raise UnreadableFileError(f"{path}: of another form; expected {_CLUSTERS}") from error
    if not all(isinstance(name, str) and name for name in names):
        raise UnreadableFileError(f"{path}: the names of clusters must be texts that are not empty")
    for group, tags in values.items():
        if group not in GROUPS:
            raise UnknownNameError("group of annotators", group, GROUPS)
        for name in tags:
            if name not in SCORED[group]:
                raise UnknownNameError(group + " dimension", name, SCORED[group])
    clusters: Clusters = values
    return clusters
