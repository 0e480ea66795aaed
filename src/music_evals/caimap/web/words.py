"""The texts of the pages in Chinese and English, from one catalogue."""

from __future__ import annotations

import functools
import importlib.resources
from collections.abc import Callable, Mapping
from typing import Final

from music_evals.errors import UnknownNameError

__all__ = ["LANGUAGES", "catalogue", "translator"]

LANGUAGES: Final = ("zh", "en")
"""Of the pages; the first is the default."""


@functools.cache
def catalogue() -> Mapping[str, tuple[str, str]]:
    """Return name -> (Chinese, English)."""
    import yaml

    text = importlib.resources.files("music_evals.caimap.web").joinpath("words.yaml").read_text(encoding="utf-8")
    return {name: (given[0], given[1]) for name, given in yaml.safe_load(text).items()}


def translator(language: str) -> Callable[[str], str]:
    """Return what gives the text of a name.

    Raises
    ------
    UnknownNameError
        No such language; and, from what is returned, no such name.

    """
    if language not in LANGUAGES:
        raise UnknownNameError("language", language, LANGUAGES)
    place = LANGUAGES.index(language)

    def text(name: str) -> str:
        if name not in catalogue():
            raise UnknownNameError("text", name, catalogue())
        return catalogue()[name][place]

    return text
