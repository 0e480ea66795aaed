"""Where a score of texts begins and ends: what people wrote for a song, and what they wrote for another one.

The controls are made of the data alone, so that they say nothing of any system.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence

import numpy as np

from music_evals.annotations import LyricSection, sections_text
from music_evals.benchmark.songs.songs import Song
from music_evals.benchmark.songs.text_pairs import TextPair, TextSide

__all__ = [
    "ANOTHER_SONG",
    "LYRIC_CONTROLS",
    "OWN_TAGS",
    "SHUFFLED",
    "TAG_CONTROLS",
    "TRUE_LYRICS",
    "against_another",
    "against_own",
    "shuffled_sections",
    "shuffled_structures",
]

TRUE_LYRICS = "true lyrics"
ANOTHER_SONG = "another song"
SHUFFLED = "shuffled structure"
OWN_TAGS = "own tags"

LYRIC_CONTROLS = (TRUE_LYRICS, ANOTHER_SONG, SHUFFLED)
TAG_CONTROLS = (OWN_TAGS, ANOTHER_SONG)

Sides = Callable[[Song], TextSide]


def against_own(
    songs: Sequence[Song], reference: Sides, estimate: Sides, *, system: str, entrance: str
) -> list[TextPair]:
    """Pair the reference of each song with what people made for it."""
    return [TextPair(song.id, system, song.group, entrance, reference(song), estimate(song)) for song in songs]


def against_another(songs: Sequence[Song], reference: Sides, estimate: Sides, *, entrance: str) -> list[TextPair]:
    """Pair the reference of each song with what people made for the next song of another group.

    After the last song comes the first one. There are none where all songs are of one group.
    """
    pairs: list[TextPair] = []
    for place, song in enumerate(songs):
        following = (*songs[place + 1 :], *songs[:place])
        other = next((found for found in following if found.group != song.group), None)
        if other is not None:
            pairs.append(TextPair(song.id, ANOTHER_SONG, song.group, entrance, reference(song), estimate(other)))
    return pairs


def shuffled_structures(songs: Sequence[Song], reference: Sides, *, seed: int, entrance: str) -> list[TextPair]:
    """Pair the reference of each song with its own sections in another order.

    A song whose sections are all the same has no other order, and is left out.
    """
    pairs: list[TextPair] = []
    for song in songs:
        sections = shuffled_sections(song.words, song.id, seed)
        if sections:
            estimate = TextSide(f"{song.id}, shuffled", sections_text(sections))
            pairs.append(TextPair(song.id, SHUFFLED, song.group, entrance, reference(song), estimate))
    return pairs


def shuffled_sections(sections: Sequence[LyricSection], item: str, seed: int) -> list[LyricSection]:
    """Return sections in another order that hangs on the song's id and the seed; none where there is no other order."""
    drawn = int.from_bytes(hashlib.sha256(f"{seed}\0{item}".encode()).digest()[:8], "big")
    order = np.random.default_rng(drawn).permutation(len(sections))
    # the order drawn may be the order there is; one of its turns is not, unless all sections are the same
    turned = ([sections[place] for place in np.roll(order, turn)] for turn in range(len(sections)))
    return next((found for found in turned if found != list(sections)), [])
