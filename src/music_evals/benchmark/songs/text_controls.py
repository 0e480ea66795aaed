"""Where a score of texts begins and ends: what people wrote for a song, what they wrote for another, and no lyrics.

The controls are made of the data alone, so that they say nothing of any system. Two of them need no words of people,
but the pattern alone: "echo" and "one character". What they score is what form alone is worth.
"""

from __future__ import annotations

import dataclasses
import hashlib
import re
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from music_evals.annotations import LyricSection, sections_text
from music_evals.benchmark.songs.songs import Song
from music_evals.benchmark.songs.text_pairs import TextPair, TextSide
from music_evals.errors import InvalidPatternError
from music_evals.lyrics.patterns import check_pattern

__all__ = [
    "ANOTHER_SONG",
    "ECHO",
    "LYRIC_CONTROLS",
    "ONE_CHARACTER",
    "OWN_TAGS",
    "SHUFFLED",
    "TAG_CONTROLS",
    "TRUE_LYRICS",
    "against_another",
    "against_own",
    "on_one_character",
    "pattern_controls",
    "shuffled_sections",
    "shuffled_structures",
]

TRUE_LYRICS = "true lyrics"
ANOTHER_SONG = "another song"
SHUFFLED = "shuffled structure"
ECHO = "echo"
ONE_CHARACTER = "one character"
OWN_TAGS = "own tags"

LYRIC_CONTROLS = (TRUE_LYRICS, ANOTHER_SONG, SHUFFLED, ECHO, ONE_CHARACTER)
TAG_CONTROLS = (OWN_TAGS, ANOTHER_SONG)

SYLLABLE = "啦"
"""The one character: what is sung where there are no words."""

Sides = Callable[[Song], TextSide]


def against_own(
    songs: Sequence[Song], reference: Sides, estimate: Sides, *, system: str, entrance: str
) -> list[TextPair]:
    """Pair the reference of each song with what people made for it."""
    return [TextPair(song.id, system, song.group, entrance, reference(song), estimate(song)) for song in songs]


def against_another(songs: Sequence[Song], reference: Sides, estimate: Sides, *, entrance: str) -> list[TextPair]:
    """Pair the reference of each song with what people made for the next song of another group."""
    # After the last song comes the first one. There are none where all songs are of one group.
    pairs: list[TextPair] = []
    for place, song in enumerate(songs):
        following = (*songs[place + 1 :], *songs[:place])
        other = next((found for found in following if found.group != song.group), None)
        if other is not None:
            pairs.append(TextPair(song.id, ANOTHER_SONG, song.group, entrance, reference(song), estimate(other)))
    return pairs


def shuffled_structures(songs: Sequence[Song], reference: Sides, *, seed: int, entrance: str) -> list[TextPair]:
    """Pair the reference of each song with its own sections in another order."""
    # A song whose sections are all the same has no other order, and is left out.
    pairs: list[TextPair] = []
    for song in songs:
        sections = shuffled_sections(song.words, song.id, seed)
        if sections:
            estimate = TextSide(f"{song.id}, shuffled", sections_text(sections))
            pairs.append(TextPair(song.id, SHUFFLED, song.group, entrance, reference(song), estimate))
    return pairs


def shuffled_sections(sections: Sequence[LyricSection], item: str, seed: int) -> list[LyricSection]:
    """Return sections in another order, by the song's id and the seed; none where there is no other order."""
    drawn = int.from_bytes(hashlib.sha256(f"{seed}\0{item}".encode()).digest()[:8], "big")
    order = np.random.default_rng(drawn).permutation(len(sections))
    # the order drawn may be the order there is; one of its turns is not, unless all sections are the same
    turned = ([sections[place] for place in np.roll(order, turn)] for turn in range(len(sections)))
    return next((found for found in turned if found != list(sections)), [])


def pattern_controls(pairs: Iterable[TextPair]) -> list[TextPair]:
    """Pair the pattern of each item with itself, and with itself sung on one character."""
    # The echo is the pattern as it stands, and not the whole prompt around it: it is all of the prompt that a lazy
    # model has to hand back, and the part that the score is made for. Instructions and example around it would only
    # lower the score, and there are no prompts where texts come out of files.
    items: dict[str, TextPair] = {}
    for pair in pairs:
        items.setdefault(pair.item, pair)
    chosen = [pair for pair in items.values() if _asks_for_words(pair.reference.value)]
    return [
        dataclasses.replace(
            pair, system=system, estimate=TextSide(f"{pair.item}, {system}", made(pair.reference.value))
        )
        for system, made in ((ECHO, str), (ONE_CHARACTER, on_one_character))
        for pair in chosen
    ]


def _asks_for_words(pattern: str) -> bool:
    try:
        split = check_pattern(pattern)
    except InvalidPatternError:
        return False
    return any(sign in section.body for section in split.sections for sign in "cR")


def on_one_character(pattern: str) -> str:
    """Return lyrics that keep a pattern with `SYLLABLE` in all places; headers, lines and pauses are the pattern's."""
    sections = check_pattern(pattern).sections
    return "".join(section.header + re.sub("[cR]", SYLLABLE, section.body) for section in sections)
