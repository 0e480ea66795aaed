"""Where a score of texts begins and ends: what people wrote for a song, what they wrote for another, and no lyrics.

The controls are made of the data alone, so that they say nothing of any system. Some need no words of people but the
pattern alone: what "echo" and "one character" score is what form alone is worth, and what those of `nonsense` score is
what any of these scores can be brought to without a song.
"""

from __future__ import annotations

import dataclasses
import hashlib
import random
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Final

import numpy as np

from music_evals.annotations import LyricSection, sections_text
from music_evals.benchmark.rows import Pair
from music_evals.benchmark.tasks.songs import nonsense
from music_evals.benchmark.tasks.songs.songs import Song
from music_evals.benchmark.tasks.songs.texts import TextSide
from music_evals.errors import InvalidPatternError
from music_evals.lyrics.patterns import check_pattern

TRUE_LYRICS = "true lyrics"
ANOTHER_SONG = "another song"
SHUFFLED = "shuffled structure"
ECHO = "echo"
ONE_CHARACTER = "one character"
RANDOM_CHARACTERS = "random characters"
RANDOM_WORDS = "random words"
SHUFFLED_WORDS = "shuffled words"
CLIMBED = "climbed"
OWN_TAGS = "own tags"
COMMON_TAGS = "common tags"
RANDOM_TAGS = "random tags"

LYRIC_CONTROLS = (
    *(TRUE_LYRICS, ANOTHER_SONG, SHUFFLED, SHUFFLED_WORDS, ECHO, ONE_CHARACTER),
    *(RANDOM_CHARACTERS, RANDOM_WORDS, CLIMBED),
)
TAG_CONTROLS = (OWN_TAGS, ANOTHER_SONG, COMMON_TAGS, RANDOM_TAGS)

SYLLABLE = "啦"
"""The one character: what is sung where there are no words."""

Sides = Callable[[Song], TextSide]


def against_own(songs: Sequence[Song], reference: Sides, estimate: Sides, *, system: str, modality: str) -> list[Pair]:
    """Pair the reference of each song with what people made for it."""
    return [Pair(song.id, system, song.group, modality, reference(song), estimate(song)) for song in songs]


def against_another(songs: Sequence[Song], reference: Sides, estimate: Sides, *, modality: str) -> list[Pair]:
    """Pair the reference of each song with what people made for the next song of another group."""
    # After the last song comes the first one. There are no pairs if all songs are of one group.
    pairs: list[Pair] = []
    for place, song in enumerate(songs):
        following = (*songs[place + 1 :], *songs[:place])
        other = next((candidate for candidate in following if candidate.group != song.group), None)
        if other is not None:
            pairs.append(Pair(song.id, ANOTHER_SONG, song.group, modality, reference(song), estimate(other)))
    return pairs


def shuffled_structures(songs: Sequence[Song], reference: Sides, *, seed: int, modality: str) -> list[Pair]:
    """Pair the reference of each song with its own sections in another order; none where all of them are the same."""
    pairs: list[Pair] = []
    for song in songs:
        if sections := shuffled_sections(song.words, song.id, seed):
            estimate = TextSide(f"{song.id}, shuffled", sections_text(sections))
            pairs.append(Pair(song.id, SHUFFLED, song.group, modality, reference(song), estimate))
    return pairs


def shuffled_sections(sections: Sequence[LyricSection], item: str, seed: int) -> list[LyricSection]:
    """Return sections in another order, by the song's id and the seed; none where there is no other order."""
    song_seed = int.from_bytes(hashlib.sha256(f"{seed}\0{item}".encode()).digest()[:8], "big")
    order = np.random.default_rng(song_seed).permutation(len(sections))
    # the order drawn may be the order there is; one of its turns is not, unless all sections are the same
    turned = ([sections[place] for place in np.roll(order, turn)] for turn in range(len(sections)))
    return next((candidate for candidate in turned if candidate != list(sections)), [])


def shuffled_words(song: Song, seed: int) -> TextSide:
    """Return the words of a song in another order."""
    lines = [line for section in song.words for line in section.lines]
    text = nonsense.shuffled_words(song.pattern_text(), lines, _derive_rng(seed, SHUFFLED_WORDS, song.pattern_text()))
    return TextSide(f"{song.id}, {SHUFFLED_WORDS}", text)


def _derive_rng(seed: int, system: str, pattern: str) -> random.Random:
    return random.Random(f"{seed} {system} {pattern.strip()}")


def pattern_controls(pairs: Iterable[Pair], *, seed: int) -> list[Pair]:
    """Pair the pattern of each item with itself, with itself sung on one character, and with nonsense that keeps it."""
    # The echo is the pattern as it stands, and not the whole prompt around it: it is all of the prompt that a lazy
    # model has to hand back, and the part that the score is made for. Instructions and example around it would only
    # lower the score, and there are no prompts where texts come out of files.
    items: dict[str, Pair] = {}
    for pair in pairs:
        items.setdefault(pair.item, pair)
    chosen = [pair for pair in items.values() if asks_for_words(pair.reference.value)]
    controls = []
    for system, make in _OF_PATTERNS.items():
        for pair in chosen:
            pattern = pair.reference.value
            estimate = TextSide(f"{pair.item}, {system}", make(pattern, _derive_rng(seed, system, pattern)))
            controls.append(dataclasses.replace(pair, system=system, estimate=estimate))
    return controls


def without_another_song(systems: Collection[str]) -> list[str]:
    """Return the remark on a run that scores people's texts without a control of another song's."""
    if {TRUE_LYRICS, OWN_TAGS}.isdisjoint(systems) or ANOTHER_SONG in systems:
        return []
    return ["all songs are of one group: there is no row of another song to compare with"]


def asks_for_words(pattern: str) -> bool:
    """Tell whether a pattern is in the grammar and has a character to sing."""
    try:
        split = check_pattern(pattern)
    except InvalidPatternError:
        return False
    return any(sign in section.body for section in split.sections for sign in "cR")


def on_one_character(pattern: str) -> str:
    """Return lyrics that keep a pattern with `SYLLABLE` in all places; headers, lines and pauses are the pattern's."""
    return nonsense.filled(pattern, lambda run: SYLLABLE * len(run))


_OF_PATTERNS: Final[Mapping[str, Callable[[str, random.Random], str]]] = {
    ECHO: lambda pattern, _: pattern,
    ONE_CHARACTER: lambda pattern, _: on_one_character(pattern),
    RANDOM_CHARACTERS: nonsense.random_characters,
    RANDOM_WORDS: nonsense.random_words,
    CLIMBED: nonsense.climbed,
}
"""Control -> what makes it of a pattern and of numbers drawn for it."""
