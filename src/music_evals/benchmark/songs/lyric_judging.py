"""How one text of a run is judged: its form, its diversity, and, where an encoder is named, its nearness to its theme.

The vectors of all themes and sections are worked out before anything is scored, for other processes need these alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from music_evals.benchmark.run import Progress
from music_evals.benchmark.songs.text_pairs import TextPair
from music_evals.errors import InvalidLyricsError
from music_evals.lyrics.embeddings import embed
from music_evals.pipelines.lyric_content import theme_parts, theme_score
from music_evals.protocols import TextEncoder

__all__ = ["THEME", "LyricJudge"]

THEME: Final = "lyric_theme_similarity"

NO_THEME = "the song has no theme"
NO_WORDS = "the text has no words"


class LyricJudge:
    """Judges pairs by a function of the form, and adds the similarity to the themes of their songs.

    Parameters
    ----------
    form
        From a pair to an answer as in `rows.Judge`.
    options
        Of the scores; `normalise` and `song_format` say how a text is read.
    judged
        Systems that are judged; the texts of controls are never in a format of their own.
    encoder, themes
        None leaves the themes out; else id of a song -> what it is about.

    """

    def __init__(
        self,
        form: Callable[[TextPair], dict[str, Any]],
        options: Mapping[str, Any],
        judged: Sequence[str],
        encoder: TextEncoder | None,
        themes: Mapping[str, str],
    ) -> None:
        self._form, self._options, self._judged = form, options, judged
        self._encoder, self._themes = encoder, themes
        self._vectors = None if encoder is None else embed(encoder, ())

    def learn(self, pairs: Sequence[TextPair], _: Progress | None) -> None:
        """Encode each distinct theme and section of the pairs."""
        if self._encoder is not None:
            self._vectors = embed(self._encoder, self._texts(pairs))
        self._encoder = None  # let go: other processes need the vectors alone

    def __call__(self, pair: TextPair) -> dict[str, Any]:
        """Return an answer as in `rows.Judge`."""
        answer = self._form(pair)
        if self._vectors is None:
            return answer
        return {**answer, "scores": answer["scores"] | {THEME: self._score(pair)}}

    def _score(self, pair: TextPair) -> dict[str, Any]:
        theme, parts = self._themes.get(pair.reference.name, ""), self._parts(pair)
        if not theme:
            return {"value": None, "reason": NO_THEME}
        assert self._vectors is not None  # as the caller knows
        value = theme_score(self._vectors, theme, parts)
        return {"value": None, "reason": NO_WORDS} if math.isnan(value) else {"value": value}

    def _texts(self, pairs: Sequence[TextPair]) -> Iterable[str]:
        for pair in pairs:
            if theme := self._themes.get(pair.reference.name, ""):
                yield theme
                yield from self._parts(pair)

    def _parts(self, pair: TextPair) -> list[str]:
        """Return the sections of a text as it is read for its form; none of one that cannot be read."""
        text = pair.estimate.value
        if self._options["normalise"]:
            from music_evals.lyrics.normalise import normalise_lyrics

            named = self._options.get("song_format", "auto") if pair.system in self._judged else "auto"
            try:
                text = normalise_lyrics(text, song_format=named).text
            except InvalidLyricsError:
                return []  # the form says why
        return theme_parts(text)
