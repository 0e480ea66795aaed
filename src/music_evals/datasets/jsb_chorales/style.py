"""Whole chorales for style transfer: four voices by name, each content once, split by tune.

Sources: Lu, Wu, Chiu, Su, "Actions speak louder than listening", ACM MM 2021, and its authors' code, whose split by
index is kept beside ours for comparison.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from music_evals.annotations import Score, TimeSignature
from music_evals.datasets.bach_corpus import VOICES, Chorale
from music_evals.datasets.families import link
from music_evals.datasets.style_pieces import PieceFacts, row_of
from music_evals.errors import InvalidInputError

__all__ = [
    "content_key",
    "four_voices",
    "official_splits",
    "page_signatures",
    "split_families",
    "style_row",
    "tune_families",
]

INCIPIT_INTERVALS = 20
SHARES = {"train": 0.8, "validation": 0.1, "test": 0.1}
OFFICIAL_COUNTS = {"train": 296, "validation": 37, "test": 38}


def four_voices(score: Score) -> Score:
    """Return soprano, alto, tenor and bass of a score, in this order, under these names.

    Parts are taken by name; instruments are left out. A score of four parts without these names is read from top to
    bottom.

    Raises
    ------
    InvalidInputError
        More or fewer parts than four, and not one each of these names.

    """
    names = [name.strip().casefold() for name in score.voices]
    if all(names.count(voice) == 1 for voice in VOICES):
        chosen = [names.index(voice) for voice in VOICES]
    elif len(names) == len(VOICES):
        chosen = list(range(len(VOICES)))
    else:
        raise InvalidInputError(
            f"parts {', '.join(score.voices)} are not soprano, alto, tenor and bass; name them so or leave "
            "the piece out"
        )
    place = np.full(len(names), -1)
    place[chosen] = np.arange(len(VOICES))
    notes = score.notes[place[score.notes["voice"]] >= 0].copy()
    notes["voice"] = place[notes["voice"]]
    notes = notes[np.lexsort((notes["pitch"], notes["voice"], notes["onset_tick"]))]
    return dataclasses.replace(score, notes=notes, voices=VOICES, programs=())


def style_row(chorale: Chorale, family: str) -> dict[str, Any]:
    """Make the row of a chorale; its bar lines are those of the page, with pickup and changes of metre."""
    facts = PieceFacts(
        chorale.name,
        "bach",
        family,
        source=f"music21 corpus, bach/{chorale.name}.mxl",
        licence="music21-corpus-terms",
        melody=VOICES[0],
    )
    score = dataclasses.replace(four_voices(chorale.score), time_signatures=page_signatures(chorale))
    return row_of(score, facts)


def page_signatures(chorale: Chorale) -> tuple[TimeSignature, ...]:
    """Return time signatures that put the bar lines where the page has them.

    One stands wherever a bar does not begin where the one before leads to, as after a pickup. Where a repeat falls
    inside of a bar, its two halves stay one bar.
    """
    score = chorale.score
    first = score.time_signatures[0]
    signatures: list[TimeSignature] = []
    start = full = 0.0  # of the bar in question, in quarter notes
    for bar in chorale.measures:
        at = bar.offset_quarters
        goes_on = bool(signatures) and not bar.is_full and start < at and at + bar.notated_quarters == start + full
        if goes_on:
            continue
        if not signatures or bar.full_quarters != full or (at - start) % full:
            tick = round(at * score.ticks_per_quarter)
            signatures.append(_signature(tick, bar.full_quarters, first.denominator))
        start, full = at, bar.full_quarters
    return tuple(signatures)


def _signature(tick: int, quarters: float, denominator: int) -> TimeSignature:
    """Return a signature of a length; its denominator is doubled until the numerator is whole."""
    while quarters * denominator % 4:
        denominator *= 2
    return TimeSignature(tick, round(quarters * denominator / 4), denominator)


def content_key(row: Mapping[str, Any]) -> str:
    """Return a digest of what a row sounds like, for finding pieces that occur twice: onsets, lengths, pitches."""
    notes = sorted((note["onset"], note["pitch"], note["duration"]) for note in row["notes"])
    return hashlib.sha256(repr((row["ticks_per_quarter"], notes)).encode()).hexdigest()


def tune_families(scores: Mapping[str, Score]) -> dict[str, str]:
    """Return for each piece the first name, in the order of names, of those that begin with its soprano's intervals.

    Two pieces are of one family if the first 20 intervals of their sopranos are the same, in any key and rhythm; of a
    shorter soprano all its intervals count.
    """
    first: dict[bytes, int] = {}
    overlaps = {}
    names = sorted(scores)
    for index, name in enumerate(names):
        pitches = four_voices(scores[name]).voice(0)["pitch"].astype(np.int64)
        key = np.diff(pitches[: INCIPIT_INTERVALS + 1]).tobytes()
        overlaps[first.setdefault(key, index), index] = 1.0
    return {name: names[root] for name, root in zip(names, link(len(names), overlaps, 1.0), strict=True)}


def split_families(families: Mapping[str, str]) -> dict[str, str]:
    """Return a split for each piece, 80/10/10 as near as whole families allow.

    Families come in the order of the SHA-256 of their names, so that the split depends on nothing but the names; each
    goes where most pieces are missing.
    """
    members: dict[str, list[str]] = {}
    for name, family in sorted(families.items()):
        members.setdefault(family, []).append(name)
    missing = {split: share * len(families) for split, share in SHARES.items()}
    splits = {}
    for family in sorted(members, key=lambda name: hashlib.sha256(name.encode()).hexdigest()):
        split = max(missing, key=lambda name: missing[name])
        missing[split] -= len(members[family])
        splits.update(dict.fromkeys(members[family], split))
    return splits


def official_splits(n_pieces: int = 371) -> dict[str, list[int]]:
    """Return the positions of each split in the authors' code: files ordered as text ("0", "1", "10", "100", ...).

    Parameters
    ----------
    n_pieces
        Entries of music21's chorale list, duplicates and all; the published split is one of 371.

    Raises
    ------
    InvalidInputError
        Another number of entries.

    """
    if n_pieces != sum(OFFICIAL_COUNTS.values()):
        raise InvalidInputError(f"the authors split {sum(OFFICIAL_COUNTS.values())} chorales, not {n_pieces}")
    order: Sequence[int] = [int(text) for text in sorted(map(str, range(n_pieces)))]
    splits, start = {}, 0
    for split, count in OFFICIAL_COUNTS.items():
        splits[split] = list(order[start : start + count])
        start += count
    return splits
