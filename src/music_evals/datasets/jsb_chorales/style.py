"""Whole chorales for style transfer: four voices by name, each content once, split by tune.

Sources: Lu, Wu, Chiu, Su, "Actions speak louder than listening", ACM MM 2021, and its authors' code, whose split by
index is kept beside ours for comparison.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from music_evals.annotations import Score, TimeSignature
from music_evals.datasets.bach_corpus import VOICES, Chorale
from music_evals.datasets.families import incipit_families
from music_evals.datasets.style_pieces import SHARES, PieceFacts, row_of, split_families
from music_evals.errors import InvalidInputError

__all__ = [
    "STYLE_CONFIGS", "content_key", "four_voices", "has_four_voices", "official_splits", "official_style_splits",
    "page_signatures", "style_configs", "style_counts", "style_row", "style_splits", "tune_families",
]  # fmt: skip

STYLE_CONFIGS = ("style", "style_official")
"""Configs of whole chorales; those of windows are `build.CONFIGS`."""


OFFICIAL_COUNTS = {"train": 296, "validation": 37, "test": 38}


def four_voices(score: Score) -> Score:
    """Return soprano, alto, tenor and bass of a score, in this order, under these names.

    Parts are taken by name, or by the first word of it, as of ``"Soprano Oboe 1"``; instruments are left out. A score
    of four parts without these names is read from top to bottom; others raise `InvalidInputError`.
    """
    names = [name.strip().casefold() for name in score.voices]
    words = [name.partition(" ")[0] for name in names]
    by_name = [called for called in (names, words) if all(called.count(voice) == 1 for voice in VOICES)]
    if by_name:
        chosen = [by_name[0].index(voice) for voice in VOICES]
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
        source=f"music21 corpus, bach/{chorale.name}",
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
            tick, denominator = round(at * score.ticks_per_quarter), first.denominator
            while bar.full_quarters * denominator % 4:  # until the numerator is whole
                denominator *= 2
            signatures.append(TimeSignature(tick, round(bar.full_quarters * denominator / 4), denominator))
        start, full = at, bar.full_quarters
    return tuple(signatures)


def style_configs(chorales: Mapping[str, Chorale], listed: Sequence[str]) -> dict[str, dict[str, list[dict[str, Any]]]]:
    """Make the rows of all `STYLE_CONFIGS` from the chorales by name and the list of their names, by split."""
    splits = (style_splits(chorales.values()), official_style_splits(chorales, listed))
    return dict(zip(STYLE_CONFIGS, splits, strict=True))


def style_splits(chorales: Iterable[Chorale]) -> dict[str, list[dict[str, Any]]]:
    """Make the rows of the config ``style``: each content once, no tune in two splits.

    Of chorales with the same notes the first by name is kept. Those that are not of four voices (`has_four_voices`) are
    left out.
    """
    chosen = {chorale.name: chorale for chorale in chorales if has_four_voices(chorale)}
    families = tune_families({name: chorale.score for name, chorale in chosen.items()})
    made = (style_row(chosen[name], families[name]) for name in sorted(chosen, reverse=True))
    contents = {content_key(row): row for row in made}
    splits = split_families({row["name"]: row["family"] for row in contents.values()})
    rows = sorted(contents.values(), key=lambda row: str(row["name"]))
    return {split: [row for row in rows if splits[row["name"]] == split] for split in SHARES}


def official_style_splits(chorales: Mapping[str, Chorale], listed: Sequence[str]) -> dict[str, list[dict[str, Any]]]:
    """Make the rows of the config ``style_official``: all entries of a list, in the authors' splits.

    A row is named by its place among the 371 names of `bach_corpus.chorale_list`, as ``"003-bwv347"``, since 19 names
    come twice and one three times. Entries that are not of four voices are left out.
    """
    families = tune_families({name: chorale.score for name, chorale in chorales.items() if has_four_voices(chorale)})
    return {
        split: [
            {**style_row(chorales[listed[place]], families[listed[place]]), "name": f"{place:03d}-{listed[place]}"}
            for place in places
            if listed[place] in families
        ]
        for split, places in official_splits(len(listed)).items()
    }


def has_four_voices(chorale: Chorale) -> bool:
    """Whether a chorale is of soprano, alto, tenor and bass, instruments aside."""
    try:
        four_voices(chorale.score)
    except InvalidInputError:
        return False
    return True


def content_key(row: Mapping[str, Any]) -> str:
    """Return a digest of what a row sounds like, for finding pieces that occur twice: onsets, lengths, pitches."""
    notes = sorted((note["onset"], note["pitch"], note["duration"]) for note in row["notes"])
    return hashlib.sha256(repr((row["ticks_per_quarter"], notes)).encode()).hexdigest()


def tune_families(scores: Mapping[str, Score]) -> dict[str, str]:
    """Return for each piece the first name of those that begin with its soprano's intervals; see `incipit_families`."""
    return incipit_families({name: four_voices(score).voice(0)["pitch"] for name, score in scores.items()})


def official_splits(n_pieces: int = 371) -> dict[str, list[int]]:
    """Return the positions of each split in the authors' code: files ordered as text ("0", "1", "10", "100", ...).

    The published split is one of the 371 entries of music21's chorale list, duplicates and all; another number raises
    `InvalidInputError`.
    """
    if n_pieces != sum(OFFICIAL_COUNTS.values()):
        raise InvalidInputError(f"the authors split {sum(OFFICIAL_COUNTS.values())} chorales, not {n_pieces}")
    order: Sequence[int] = [int(text) for text in sorted(map(str, range(n_pieces)))]
    splits, start = {}, 0
    for split, count in OFFICIAL_COUNTS.items():
        splits[split] = list(order[start : start + count])
        start += count
    return splits


def style_counts(
    chorales: Mapping[str, Chorale], configs: Mapping[str, Mapping[str, Sequence[Mapping[str, Any]]]]
) -> dict[str, Any]:
    """Return what the card says of the configs of whole chorales."""
    sizes = {
        config: {
            split: {
                "pieces": len(rows),
                "families": len({row["family"] for row in rows}),
                "notes": sum(len(row["notes"]) for row in rows),
                "measures": sum(len(row["measure_starts"]) - 1 for row in rows),
                "steps": sum(row["measure_starts"][-1] for row in rows),
            }
            for split, rows in splits.items()
        }
        for config, splits in configs.items()
    }
    rows = [row for split in configs["style"].values() for row in split]
    names = {row["name"] for row in rows}
    pitches = [note["pitch"] for row in rows for note in row["notes"]]
    meters = [
        {f"{signature['numerator']}/{signature['denominator']}" for signature in row["time_signatures"]} for row in rows
    ]
    return {
        **sizes,
        "style_files": len(chorales),
        "style_left_out": sorted(set(chorales) - names),
        "style_pitches": [min(pitches), max(pitches)],
        "style_meters": {
            "4/4": meters.count({"4/4"}),
            "3/4": meters.count({"3/4"}),
            "others": sum(meter not in ({"4/4"}, {"3/4"}) for meter in meters),
        },
    }
