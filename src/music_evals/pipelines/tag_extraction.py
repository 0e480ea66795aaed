"""Tags out of free text, such as a music captioning model writes: the words of a vocabulary that stand in it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from music_evals.annotations import SCORED
from music_evals.errors import InvalidTagsError
from music_evals.lyrics.tag_groups import fold_tag

__all__ = ["EXTRACTIONS", "Vocabulary", "extract_tags", "vocabulary_of"]

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
        place = _place(text, form, taken)
        if place is not None:
            taken.append((*place, by_form[form]))
    return [tag for _, _, tag in sorted(taken)]


def _place(text: str, form: str, taken: Sequence[tuple[int, int, str]]) -> tuple[int, int] | None:
    """Return where a tag first stands outside of the longer ones that were found."""
    pattern = re.escape(form)
    if re.fullmatch(r"[\x00-\x7f]+", form):
        pattern = rf"(?<![a-z0-9]){pattern}(?![a-z0-9])"
    spans = (match.span() for match in re.finditer(pattern, text))
    return next((span for span in spans if all(span[1] <= a or span[0] >= b for a, b, _ in taken)), None)
