"""Limits of a description: how many tags a dimension takes and how long its texts are.

Source: measured over the 1,000 released songs of MuChin (3 to 5 tags a dimension; 1 to 5 for the amateurs' purpose,
culture and audience; textual descriptions of 50 to 180 characters) and, for the least of 50, Wang et al., IJCAI 2024.
"""

from __future__ import annotations

from typing import Final

from music_evals.caimap.values import Description
from music_evals.errors import InvalidAnnotationError

__all__ = ["MAX_TAG", "MAX_TAGS", "MAX_TEXT", "MIN_TEXT", "check_description", "fewest_tags", "written_characters"]

MAX_TAGS: Final = 5
"""Tags of a dimension."""

MAX_TAG: Final = 30
"""Characters of a tag."""

MIN_TEXT: Final = 50
"""Characters of a textual description, spaces not counted."""

MAX_TEXT: Final = 500
"""Characters of any text of a description."""

_FREE: Final = {"amateur": {"song_purpose", "culture_region", "target_audience"}}


def fewest_tags(group: str, dimension: str) -> int:
    """Return how many tags a dimension needs: 3, or 1 for the amateurs' purpose, culture and audience."""
    return 1 if dimension in _FREE.get(group, ()) else 3


def written_characters(text: str) -> int:
    """Count the characters of a text without its spaces: the unit of the limits on texts.

    Examples
    --------
    >>> written_characters("很 安静")
    3

    """
    return len("".join(text.split()))


def check_description(description: Description) -> None:
    """Refuse a description that is too short or too long.

    Parameters
    ----------
    description
        As submitted.

    Raises
    ------
    InvalidAnnotationError
        The first limit that it breaks, with what was found.

    """
    found = written_characters(description.overall_text)
    if found < MIN_TEXT:
        raise InvalidAnnotationError(
            f"the textual description needs {MIN_TEXT} characters without spaces, got {found}",
            kind="few_characters",
            least=MIN_TEXT,
            found=found,
        )
    remarks = (description.effects.live_text, description.effects.lo_fi_text)
    texts = [description.overall_text, *remarks, *(said.text for said in description.dimensions.values())]
    if max(map(len, texts)) > MAX_TEXT:
        raise InvalidAnnotationError(
            f"a text has {max(map(len, texts))} characters; at most {MAX_TEXT} are taken",
            kind="long_text",
            found=max(map(len, texts)),
            most=MAX_TEXT,
        )
    for name, said in description.dimensions.items():
        fewest = fewest_tags(description.group, name)
        if not fewest <= len(said.tags) <= MAX_TAGS:
            raise InvalidAnnotationError(
                f"{name} takes {fewest} to {MAX_TAGS} tags, got {len(said.tags)}",
                kind="tag_count",
                dimension=name,
                least=fewest,
                most=MAX_TAGS,
                found=len(said.tags),
            )
        if any(tag != tag.strip() for tag in said.tags) or len(set(said.tags)) != len(said.tags):
            raise InvalidAnnotationError(
                f"{name}: tags have no spaces around them and stand once, got {said.tags}",
                kind="tags_twice",
                dimension=name,
            )
        longest = max(said.tags, key=len)
        if len(longest) > MAX_TAG:
            raise InvalidAnnotationError(
                f"{name}: a tag has at most {MAX_TAG} characters, got {longest!r}",
                kind="long_tag",
                dimension=name,
                most=MAX_TAG,
                found=longest,
            )
