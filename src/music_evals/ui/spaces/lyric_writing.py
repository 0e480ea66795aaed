"""Lyrics that a language model writes on the page: for a theme, in a given structure.

The variable ``MUSIC_EVALS_WRITER`` names the model, as ``ID@COMMIT`` of the Hub or as a folder; without it nothing is
written. It is loaded at the first request, before a graphics card is taken where the page is served with one.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Mapping
from typing import Any, Final, cast

from music_evals.errors import InvalidInputError, InvalidLyricsError, ModelUnavailableError
from music_evals.lyrics.prompts import lyric_prompt
from music_evals.protocols import WRITERS, LyricWriter, load_plugin
from music_evals.ui.gpu import on_gpu
from music_evals.ui.spaces.lyric_scoring import MAX_CHARACTERS
from music_evals.ui.spaces.words_muchin import LYRICS_WORDS

__all__ = ["MAX_THEME", "VARIABLE", "writer_place", "written_lyrics"]

VARIABLE: Final = "MUSIC_EVALS_WRITER"
MAX_THEME: Final = 300  # characters
MAX_TOKENS: Final = 1024
TOKEN_SEC: Final = 0.05  # on a graphics card

Progress = Callable[[float, str], Any]


def writer_place(environment: Mapping[str, str] | None = None) -> tuple[str, str | None] | None:
    """Return folder or id of the model that the owner of the page names, and its commit; None where none is named.

    Raises
    ------
    InvalidInputError
        An id without a commit: its weights could change.

    """
    named = (os.environ if environment is None else environment).get(VARIABLE, "").strip()
    if not named:
        return None
    if os.path.isdir(named):  # noqa: PTH112  (a text of the environment)
        return named, None
    source, _, revision = named.partition("@")
    if not (source and revision):
        raise InvalidInputError(f"{VARIABLE}: expected a folder or ID@COMMIT, got {named!r}")
    return source, revision


def written_lyrics(
    theme: str, pattern: str, seed: float = 0, language: str = "en", progress: Progress = lambda _share, _text: None
) -> str:
    """Return the lyrics that the page's model writes for a theme and a pattern, as it wrote them.

    Args:
        theme: what the song is about.
        pattern: headers such as (verse), lines of c, R and spaces.
        seed: a whole number from 0; another one gives other lyrics.
        language: en or zh.
        progress: called with a share and a word for each stage.

    Raises
    ------
    ModelUnavailableError
        No model is named, or it cannot be loaded.
    InvalidLyricsError, InvalidPatternError
        No theme, or too long a one; an invalid pattern.

    """
    t = LYRICS_WORDS(language)
    place = writer_place()
    if place is None:
        raise ModelUnavailableError(t("no_writer", variable=VARIABLE))
    if not theme.strip() or len(theme) > MAX_THEME:
        raise InvalidLyricsError(t("theme_size", most=MAX_THEME))
    prompt = lyric_prompt(theme.strip(), pattern)
    progress(0.1, t("stage_write_lyrics"))
    _writer(*place)  # in this process, before a card is taken
    return _answer(place, prompt, int(seed or 0))[:MAX_CHARACTERS]


@on_gpu(lambda *_: MAX_TOKENS, call_sec=TOKEN_SEC)
def _answer(place: tuple[str, str | None], prompt: str, seed: int) -> str:
    return _writer(*place).write([prompt], seed=seed)[0].text


@functools.lru_cache(maxsize=1)
def _writer(source: str, revision: str | None) -> LyricWriter:
    make = load_plugin(WRITERS, "transformers", "writer")
    writer = make(source, revision=revision, max_new_tokens=MAX_TOKENS, template_options={"enable_thinking": False})
    writer.load()
    return cast("LyricWriter", writer)
