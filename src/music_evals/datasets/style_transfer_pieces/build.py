"""Builder of the data set style_transfer_pieces: six pieces out of copyright, written down here in ABC.

Four are those of Lu et al., "Actions speak louder than listening" (ACM MM 2021); a song and a strain of ragtime take
the place of its two songs that are in copyright. Children's songs get what the paper gave them before a transfer: a
triad in root position on every beat, here by `symbolic.melody`.
"""

from __future__ import annotations

import dataclasses
import importlib.resources
from typing import Any, Final

import numpy as np

from music_evals.annotations import Key, Score
from music_evals.datasets.style_pieces import PieceFacts, row_of
from music_evals.symbolic.melody import harmonise
from music_evals.symbolic.notation import abc_fields, from_abc
from music_evals.symbolic.notes import make_notes, sort_notes

MELODY: Final = "melody"
"""Voice that every piece has."""

PIECES: Final = {
    "london_bridge": "children's song",
    "old_macdonald": "children's song",
    "twinkle": "children's song",
    "moonlight": "classical",
    "jeanie": "parlour song",
    "entertainer": "ragtime",
}
"""Name -> what the row calls its style."""

TICKS_PER_QUARTER: Final = 24
"""Holds 32nd notes and the triplets of the sonata; models of 8 steps a quarter round the triplets."""

_LOWEST_ROOT: Final = 48  # roots of triads lie in MIDI 48..59


def piece_score(name: str) -> Score:
    """Return one of `PIECES`, a children's song with triads."""
    score = from_abc(_text(name), name=name)
    return with_triads(score) if PIECES[name] == "children's song" else score


def with_triads(score: Score) -> Score:
    """Return a melody over triads in root position, one a beat, each as long as the beat, in a voice ``"chords"``.

    The score has one voice in a stated key and one meter, and begins with a whole bar.
    """
    key = score.key_signatures[0]
    tonic = (7 * key.fifths + (9 if key.minor else 0)) % 12
    beat = 4 * score.ticks_per_quarter // score.time_signatures[0].denominator
    triads = harmonise(score.notes, Key(tonic, "minor" if key.minor else "major"), beat)
    notes = [
        (index * beat, beat, _LOWEST_ROOT + triad.root + tone)
        for index, triad in enumerate(triads)
        for tone in triad.tones
    ]
    onsets, durations, pitches = zip(*notes, strict=True)
    chords = make_notes(onsets, durations, pitches, voice=np.ones(len(notes), dtype=np.int64))
    return dataclasses.replace(
        score, notes=sort_notes(np.concatenate([score.notes, chords])), voices=(*score.voices, "chords")
    )


def build_rows() -> list[dict[str, Any]]:
    """Return the rows of all pieces, in the order of `PIECES`."""
    rows = []
    for name, style in PIECES.items():
        text = _text(name)
        title, composer, source = ("".join(abc_fields(text, letter)) for letter in "TCS")
        facts = PieceFacts(
            name, style, family=name, title=title, source=f"{composer}; {source}", licence="CC0-1.0", melody=MELODY
        )
        rows.append(row_of(piece_score(name), facts, ticks_per_quarter=TICKS_PER_QUARTER))
    return rows


def _text(name: str) -> str:
    pieces = importlib.resources.files("music_evals.datasets.style_transfer_pieces") / "pieces"
    return (pieces / f"{name}.abc").read_text(encoding="utf-8")
