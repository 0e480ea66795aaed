"""Lyrics that keep a pattern and say nothing, which no advice on scores may put above the lyrics of people.

All of them sing in all places of the pattern, and rhyme where it asks for it, on characters of one class. They are a
function of the pattern and of the random numbers that are handed in.
"""

from __future__ import annotations

import functools
import math
import random
import re
from collections.abc import Callable, Sequence
from typing import Final

from music_evals.lyrics.patterns import check_pattern
from music_evals.lyrics.words import cut_words, dictionary_words
from music_evals.metrics.lyric_content import distances_from_people
from music_evals.pipelines.lyric_content import lines_of, word_scores

Fill = Callable[[str], str]
"""From a stretch of a pattern without a pause, as ``"cccR"``, to as many characters."""

RHYMES: Final = "安山天年边间言关"
"""Ends of lines that rhyme, all of the class of an, ian and uan."""
STEPS: Final = 400
"""Of a search; most lyrics are where people's are after some twenty."""


def filled(pattern: str, fill: Fill) -> str:
    """Return lyrics that keep a pattern; headers, lines and pauses are the pattern's."""
    return "".join(section.header + _sung(section.body, fill) for section in check_pattern(pattern).sections)


def _sung(body: str, fill: Fill) -> str:
    return re.sub("[cR]+", lambda match: fill(match[0]), body)


def random_characters(pattern: str, rng: random.Random) -> str:
    """Return common characters at random, rhyming where the pattern asks for it."""
    return filled(pattern, functools.partial(_characters, rng=rng))


def random_words(pattern: str, rng: random.Random) -> str:
    """Return words of the dictionary at random that fill each line exactly, rhyming where the pattern asks for it."""
    return filled(pattern, functools.partial(_words, rng=rng))


def shuffled_words(pattern: str, lines: Sequence[str], rng: random.Random) -> str:
    """Return the words of lyrics in another order, as whole words as the lines of the pattern allow."""
    pool = cut_words([lines])
    rng.shuffle(pool)

    def fill(run: str) -> str:
        text = ""
        while pool and (room := len(run) - len(text)):
            at = next((at for at, word in enumerate(pool) if len(word) <= room), -1)
            word = pool.pop(at)
            text += word[:room]
            pool.extend(filter(None, [word[room:]]))  # where no word is short enough, one is cut
        return text

    return filled(pattern, fill)


def climbed(pattern: str, rng: random.Random) -> str:
    """Return what a local search finds that sees the public scores: words, diversity and repetition like people's.

    It begins with `random_words`, and sings a line at random anew as long as that takes it no farther from the ranges
    of people; the form is kept at each step.
    """
    target = filled(pattern, str).splitlines()
    lines = random_words(pattern, rng).splitlines()
    places = [at for at, line in enumerate(target) if "(" not in line and line.strip()]
    distance, steps = _distance(lines), STEPS if places else 0
    while distance and steps:
        steps -= 1
        at = rng.choice(places)
        twins = [lines[other] for other in places if target[other] == target[at]]
        candidates = (_sung(target[at], functools.partial(draw, rng=rng)) for draw in (_characters, _words))
        tried = [*lines[:at], rng.choice([rng.choice(twins), *candidates]), *lines[at + 1 :]]
        if (tried_distance := _distance(tried)) <= distance:
            lines, distance = tried, tried_distance
    return "\n".join(lines)


def _distance(lines: Sequence[str]) -> float:
    """Return how far lyrics are from the ranges of people; a score that is undefined counts nothing."""
    distances = distances_from_people(*word_scores(lines_of("\n".join(lines))))
    return sum(distance for distance in distances if not math.isnan(distance))


@functools.cache
def _common() -> str:
    """Return the 3,755 characters of the first level of GB 2312."""
    codes = (bytes([row, cell]) for row in range(0xB0, 0xD8) for cell in range(0xA1, 0xFF))
    return b"".join(codes).decode("gb2312", errors="ignore")


def _characters(run: str, *, rng: random.Random) -> str:
    return "".join(rng.choice(RHYMES if sign == "R" else _common()) for sign in run)


@functools.cache
def _by_length() -> dict[tuple[int, bool], tuple[str, ...]]:
    """Return (length, whether it must rhyme) -> words; those of one character are all common ones, or `RHYMES`."""
    words: dict[tuple[int, bool], list[str]] = {(1, False): list(_common()), (1, True): list(RHYMES)}
    for word in dictionary_words():
        words.setdefault((len(word), False), []).append(word)
        if word[-1] in RHYMES:
            words.setdefault((len(word), True), []).append(word)
    return {key: tuple(members) for key, members in words.items()}


def _words(run: str, *, rng: random.Random) -> str:
    text, left = "", len(run)
    while left:
        # no single character is left over where words can be chosen so
        size = rng.choice([size for size in (2, 3, 4) if size <= left and left - size != 1] or [1])
        left -= size
        text += rng.choice(_by_length()[size, not left and run[-1] == "R"])
    return text
