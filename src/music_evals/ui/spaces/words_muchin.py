"""Words of the pages on songs, in English and in Chinese, from `words_muchin.yaml`."""

from __future__ import annotations

import functools
import re
from typing import Any, Final

from music_evals.ui.words import Words
from music_evals.yaml_files import packaged_yaml


@functools.cache
def _content() -> dict[str, Any]:
    """Return what the file of words holds."""
    content: dict[str, Any] = packaged_yaml("music_evals.ui.spaces", "words_muchin.yaml")
    return content


def _words(page: str) -> Words:
    """Return the words of a page, with those that both pages use."""
    pairs = {**_content()["shared"], **_content()[page]}
    return Words({language: {key: pair[at] for key, pair in pairs.items()} for at, language in enumerate(("en", "zh"))})


LYRICS_WORDS: Final = _words("lyrics")  # of the page that scores the structure of lyrics

DESCRIPTION_WORDS: Final = _words("description")  # of the page that compares tags


def said_in(language: str, message: str) -> str:
    """Return what visitors read in place of a message of the library; one without such words stays as it is."""
    placed = re.fullmatch(r"(pattern, line \d+, column \d+: )(.+)", message, re.DOTALL)
    if placed:
        message = placed[1] + said_in(language, placed[2])
    for saying in _content()["sayings"]:
        match = re.fullmatch(saying["said"], message, re.DOTALL)
        if match and language in saying:
            return match.expand(saying[language])
    return message
