"""Scores of one text of a run: its form, its words and, if an encoder is named, its nearness to its theme.

The vectors of all themes and sections are worked out before anything is scored, for other processes need these alone.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from music_evals.benchmark.rows import Pair, score_or_reason
from music_evals.benchmark.run import Progress
from music_evals.benchmark.tasks.songs.songs import Song
from music_evals.benchmark.tasks.songs.text_controls import TRUE_LYRICS
from music_evals.benchmark.tasks.songs.texts import TextSide
from music_evals.errors import InvalidLyricsError
from music_evals.lyrics.embeddings import embed
from music_evals.pipelines.lyric_content import theme_parts, theme_score
from music_evals.protocols import TextEncoder

THEME: Final = "lyric_theme_similarity"
GATED: Final = "lyric_structure_gated"

NO_THEME = "the song has no theme"
NO_WORDS = "the text has no words"


class LyricScorer:
    """Scores pairs by a function of the form, held to what the true lyrics get, and by similarity to the theme."""

    def __init__(
        self,
        form: Callable[[Pair], dict[str, Any]],  # from a pair to an answer as in `rows.Scorer`
        options: Mapping[str, Any],  # of the scores; `normalise` and `song_format` say how a text is read
        judged: Sequence[str],  # systems; the texts of controls are never in a format of their own
        encoder: TextEncoder | None,  # None leaves the themes out
        songs: Sequence[Song],  # with themes and true lyrics; none where patterns alone are known
    ) -> None:
        self._form, self._options, self._judged = form, options, judged
        self._encoder, self._themes = encoder, {song.id: song.theme for song in songs}
        self._true = {song.id: song.words_text() for song in songs if song.has_words}
        self._ceilings: dict[str, float] = {}
        self._vectors = None if encoder is None else embed(encoder, ())

    def learn(self, pairs: Sequence[Pair], _: Progress | None) -> None:
        """Encode each distinct theme and section of the pairs."""
        if self._encoder is not None:
            self._vectors = embed(self._encoder, self._texts(pairs))
        self._encoder = None  # let go: other processes need the vectors alone

    def __call__(self, pair: Pair) -> dict[str, Any]:
        """Return an answer as in `rows.Scorer`."""
        answer, song = self._form(pair), pair.reference.name
        if song in self._true and song not in self._ceilings:  # what the true lyrics get, worked out once a song
            true = dataclasses.replace(pair, system=TRUE_LYRICS, estimate=TextSide(song, self._true[song]))
            self._ceilings[song] = self._form(true)["scores"][GATED]["value"]
        gated = min(answer["scores"][GATED]["value"], self._ceilings.get(song, math.inf))
        more: dict[str, Any] = {GATED: {"value": gated}}
        if self._vectors is not None:
            theme, parts = self._themes.get(pair.reference.name, ""), self._parts(pair)
            value = theme_score(self._vectors, theme, parts) if theme else math.nan
            more[THEME] = score_or_reason(value, NO_WORDS if theme else NO_THEME)
        return {**answer, "scores": answer["scores"] | more}

    def _texts(self, pairs: Sequence[Pair]) -> Iterable[str]:
        for pair in pairs:
            if theme := self._themes.get(pair.reference.name, ""):
                yield theme
                yield from self._parts(pair)

    def _parts(self, pair: Pair) -> list[str]:
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
