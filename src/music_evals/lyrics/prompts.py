"""Prompts that ask a language model for a lyric with a given theme and structure, or for the theme of a lyric.

The task is that of MuChin, section 3.2 (Wang et al., IJCAI 2024): theme and pattern in, a lyric in sections out, with
one worked example. The wording is our own, in Chinese and in English; the example is written for this package.
Templates stand in ``prompts.yaml``, with a version.
"""

from __future__ import annotations

import functools
import hashlib
import json
import string
from typing import Any, Final, NamedTuple

from music_evals.annotations import sections_text
from music_evals.errors import InvalidLyricsError, InvalidPatternError, UnknownNameError, located
from music_evals.lyrics.patterns import read_pattern
from music_evals.yaml_files import packaged_yaml

__all__ = ["LANGUAGES", "Example", "default_example", "lyric_prompt", "prompt_receipt", "theme_prompt", "theme_receipt"]

LANGUAGES: Final = ("zh", "en")
"""Languages of the instructions; the lyric is Chinese with either of them."""


class Example(NamedTuple):
    """A worked example: what was asked, and a lyric that answers it."""

    theme: str
    structure: str
    """A pattern, see `lyric_prompt`."""
    lyrics: str
    """With the headers of the pattern, one line for each of its lines."""


def lyric_prompt(theme: str, structure: str, *, language: str = "zh", example: Example | None = None) -> str:
    r"""Return the prompt for one lyric.

    Parameters
    ----------
    theme
        What the song is about, in any language; not empty.
    structure
        Pattern: headers in brackets, and lines of ``c``, final ``R`` and spaces. Numbers of headers are left out of
        the prompt.
    language
        Of the instructions, one of `LANGUAGES`.
    example
        The worked example; None takes `default_example`.

    Raises
    ------
    InvalidLyricsError
        An empty theme, or an example with an empty theme or lyric.
    InvalidPatternError
        A structure, or that of the example, that is not in the grammar.
    UnknownNameError
        A language without a template.

    Examples
    --------
    >>> print(lyric_prompt("Leaving home.", "(verse1)\nccc ccR", language="en")[-54:])
    Theme: Leaving home.
    Structure:
    (verse)
    ccc ccR
    Lyric:
    """
    template = _template(language)
    shown = example or default_example()
    if not shown.lyrics.strip():
        raise InvalidLyricsError("the lyrics of the example are empty; give the lyric that answers its structure")
    try:
        example_theme, example_structure = _checked(shown.theme, shown.structure)
    except (InvalidLyricsError, InvalidPatternError) as error:
        raise located(error, "example") from error
    theme, structure = _checked(theme, structure)
    filled = string.Template(template).substitute(
        theme=theme,
        structure=structure,
        example_theme=example_theme,
        example_structure=example_structure,
        example_lyrics=shown.lyrics.strip(),
    )
    return filled.strip()


def theme_prompt(lyrics: str, *, language: str = "zh") -> str:
    r"""Return the prompt that asks what a lyric is about; the answer is a paragraph in Chinese.

    Lyrics have section headers or none; empty ones are an `InvalidLyricsError`. The language is that of the
    instructions, one of `LANGUAGES`.

    Examples
    --------
    >>> print(theme_prompt("(verse)\n春眠不觉晓", language="en")[-29:])
    Lyric:
    (verse)
    春眠不觉晓
    Theme:
    """
    template = _template(language, "themes")
    if not lyrics.strip():
        raise InvalidLyricsError("the lyrics are empty: there is nothing to say what they are about")
    return string.Template(template).substitute(lyrics=lyrics.strip()).strip()


def default_example() -> Example:
    """Return the worked example of the package."""
    return Example(**{name: text.strip() for name, text in _content()["example"].items()})


def prompt_receipt(language: str = "zh", example: Example | None = None) -> dict[str, Any]:
    """Return what decides a prompt besides the song: template version, language, hash of template and example."""
    shown = example or default_example()
    content = json.dumps([_template(language), *shown], ensure_ascii=False)
    return {
        "version": _content()["version"],
        "language": language,
        "example": "built-in" if example is None else "given",
        "content_hash": hashlib.sha256(content.encode()).hexdigest()[:16],
    }


def theme_receipt(language: str = "zh") -> dict[str, Any]:
    """Return what decides the prompt for a theme, besides the lyrics: version, language, and a hash of the template."""
    digest = hashlib.sha256(_template(language, "themes").encode()).hexdigest()[:16]
    return {"version": _content()["version"], "language": language, "content_hash": digest}


@functools.cache
def _content() -> dict[str, Any]:
    content: dict[str, Any] = packaged_yaml("music_evals.lyrics", "prompts.yaml")
    return content


def _template(language: str, kind: str = "prompts") -> str:
    if language not in LANGUAGES:
        raise UnknownNameError("language of prompts", str(language), LANGUAGES)
    template: str = _content()[kind][language]
    return template


def _checked(theme: str, structure: str) -> tuple[str, str]:
    """Return a theme without outer spaces and a structure without numbers in its headers."""
    if not isinstance(theme, str) or not theme.strip():
        raise InvalidLyricsError(
            f"the theme of a lyric must be a text that is not empty, got {theme!r}; say what the song is about"
        )
    return theme.strip(), sections_text(read_pattern(structure), numbered=False)
