"""Limits of a description: how many tags a dimension takes and how long its texts are.

Source: measured over the 1,000 released songs of MuChin (3 to 5 tags a dimension; 1 to 5 for the amateurs' purpose,
culture and audience; textual descriptions of 50 to 180 characters) and, for the least of 50, Wang et al., IJCAI 2024.
"""

from __future__ import annotations

from typing import Final

from music_evals.caimap.domain.values import Description
from music_evals.errors import InvalidAnnotationError

MAX_TAGS: Final = 5
"""Tags of a dimension."""

MAX_TAG: Final = 30
"""Characters of a tag."""

MIN_TEXT: Final = 50
"""Characters of a textual description, spaces not counted."""

MAX_TEXT: Final = 500
"""Characters of any text of a description."""

_REPEATED: Final = 1 / 3
"""Share of tags that stand in another dimension already; none of 938 descriptions of MuChin has more than 0.28."""

_FREE: Final = {"amateur": {"song_purpose", "culture_region", "target_audience"}}


def fewest_tags(group: str, dimension: str) -> int:
    """Return how many tags a dimension needs: 3, or 1 for the amateurs' purpose, culture and audience."""
    return 1 if dimension in _FREE.get(group, ()) else 3


def texts_of(description: Description) -> list[str]:
    """Return all texts: the textual description, remarks and those of dimensions."""
    remarks = (description.effects.live_text, description.effects.lo_fi_text)
    return [description.overall_text, *remarks, *(tagged.text for tagged in description.dimensions.values())]


def check_description(description: Description) -> None:
    """Refuse a description that is too short or too long, or whose dimensions say the same."""
    n_characters = len("".join(description.overall_text.split()))
    if n_characters < MIN_TEXT:
        raise InvalidAnnotationError(
            f"the textual description needs {MIN_TEXT} characters without spaces, got {n_characters}",
            kind="few_characters",
            least=MIN_TEXT,
            found=n_characters,
        )
    texts = texts_of(description)
    if max(map(len, texts)) > MAX_TEXT:
        raise InvalidAnnotationError(
            f"a text has {max(map(len, texts))} characters; at most {MAX_TEXT} are taken",
            kind="long_text",
            found=max(map(len, texts)),
            most=MAX_TEXT,
        )
    for name, tagged in description.dimensions.items():
        fewest = fewest_tags(description.group, name)
        if not fewest <= len(tagged.tags) <= MAX_TAGS:
            raise InvalidAnnotationError(
                f"{name} takes {fewest} to {MAX_TAGS} tags, got {len(tagged.tags)}",
                kind="tag_count",
                dimension=name,
                least=fewest,
                most=MAX_TAGS,
                found=len(tagged.tags),
            )
        if any(tag != tag.strip() for tag in tagged.tags) or len(set(tagged.tags)) != len(tagged.tags):
            raise InvalidAnnotationError(
                f"{name}: tags have no spaces around them and stand once, got {tagged.tags}",
                kind="tags_twice",
                dimension=name,
            )
        longest = max(tagged.tags, key=len)
        if len(longest) > MAX_TAG:
            raise InvalidAnnotationError(
                f"{name}: a tag has at most {MAX_TAG} characters, got {longest!r}",
                kind="long_tag",
                dimension=name,
                most=MAX_TAG,
                found=longest,
            )
    tags = [tag.casefold() for tagged in description.dimensions.values() for tag in tagged.tags]
    repeated = 1 - len(set(tags)) / len(tags)
    if repeated > _REPEATED:
        raise InvalidAnnotationError(
            f"{repeated:.0%} of the tags stand in several dimensions; say of each what is its own",
            kind="tags_repeated",
            found=f"{100 * repeated:.0f}",
        )
