"""Songs sorted by what annotators said of them: by genre, emotion, purpose, culture and audience.

MuChin's discrepancy study (Wang et al., IJCAI 2024, section 3.1) sorts songs by clusters of tags that were never
released. The groups and keywords in ``tag_groups.yaml`` are a selection of our own, made from the most frequent tags of
the released songs; numbers by group are comparable with each other and not with the paper's.

A song belongs to a group where any of its tags holds any of the group's keywords, the test of the released code. Three
things differ. A song counts once for a group, however many of its tags match. A keyword right after 不, 没, 无, 非 or
不适合 does not count: 不开心 is not happy. Keywords in Latin letters match whole words: ``rap`` is not in
``therapy``. Songs may belong to several groups or to none. Tags are compared after `fold_tag`.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from music_evals.yaml_files import packaged_yaml

__all__ = ["GROUPINGS", "Grouping", "TagGroup", "fold_tag"]

_NEGATIONS: Final = ("不", "没", "无", "非", "不适合")


def fold_tag(tag: str) -> str:
    """Return a tag as it is counted: NFKC, without outer spaces, case-folded. Scores take tags as they are written.

    Examples
    --------
    >>> fold_tag(" KTV ")
    'ktv'
    """
    return unicodedata.normalize("NFKC", tag).strip().casefold()


class TagGroup(NamedTuple):
    """Songs that share something, identified by their tags.

    Attributes
    ----------
    name
        In rows and results.
    english, chinese
        For pages.
    keywords
        Folded (`fold_tag`), in Chinese or in Latin letters.
    """

    name: str
    english: str
    chinese: str
    keywords: tuple[str, ...]

    def matches(self, tags: Iterable[str]) -> bool:
        """Tell whether any of the tags holds any keyword."""
        pattern = _pattern(self.keywords)
        return any(pattern.search(fold_tag(tag)) for tag in tags)


class Grouping(NamedTuple):
    """A way to sort songs.

    Attributes
    ----------
    name
        In rows and results.
    english, chinese
        For pages.
    dimensions
        Group of annotators -> the dimension whose tags are looked at; amateurs are not asked for genres.
    groups
        In the order of tables and pictures.
    """

    name: str
    english: str
    chinese: str
    dimensions: Mapping[str, str]
    groups: tuple[TagGroup, ...]

    def assign(self, tags: Iterable[str]) -> tuple[str, ...]:
        """Return the names of the groups that a song with these tags belongs to, each once."""
        listed = list(tags)
        return tuple(group.name for group in self.groups if group.matches(listed))


@functools.cache
def _pattern(keywords: tuple[str, ...]) -> re.Pattern[str]:
    chinese = [re.escape(word) for word in keywords if not word.isascii()]
    latin = [re.escape(word) for word in keywords if word.isascii()]
    affirmed = "".join(f"(?<!{negation})" for negation in _NEGATIONS)
    parts = [f"{affirmed}(?:{'|'.join(chinese)})"] if chinese else []
    parts += [f"(?<![a-z0-9])(?:{'|'.join(latin)})(?![a-z0-9])"] if latin else []
    return re.compile("|".join(parts))


GROUPINGS: Final[Mapping[str, Grouping]] = MappingProxyType(
    {
        name: Grouping(
            name,
            grouping["english"],
            grouping["chinese"],
            MappingProxyType(grouping["dimensions"]),
            tuple(
                TagGroup(group, names["english"], names["chinese"], tuple(names["keywords"]))
                for group, names in grouping["groups"].items()
            ),
        )
        for name, grouping in packaged_yaml("music_evals.lyrics", "tag_groups.yaml").items()
    }
)
"""Name -> grouping, as in ``tag_groups.yaml``."""
