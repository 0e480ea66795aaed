"""The numbers on the card of `jsb_chorales`, computed: how MUSIB's counts arise and what real bars would add."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any

from music_evals.annotations import MUSIB_LAYOUT
from music_evals.datasets.bach_corpus import VOICES, Chorale, chorale_paths, encoder_credit
from music_evals.datasets.jsb_chorales.build import is_strict, musib_songs, pieces_of
from music_evals.datasets.near_copies import NEAR
from music_evals.symbolic.measures import count_musib_measures


def window_counts(n_measures: Iterable[int], *, voices: int = len(VOICES)) -> dict[str, int]:
    """Count songs, their measures and windows in all voices, and contexts by the published formula."""
    counts, width = list(n_measures), MUSIB_LAYOUT.n_measures
    return {
        "songs": len(counts),
        "measures": voices * sum(counts),
        "published_contexts": voices * sum(n - width for n in counts),
        "windows": voices * sum(n - width + 1 for n in counts),
    }


def corpus_counts(chorales: Iterable[Chorale]) -> dict[str, object]:
    """Compute what the card says of the songs of `musib` and of those that `strict_4_4` leaves out."""
    pieces, paths = list(chorales), chorale_paths()
    songs = [chorale for chorale in pieces if chorale.name in musib_songs()]
    strict = pieces_of("strict_4_4", pieces)
    steps_per_quarter = MUSIB_LAYOUT.steps_per_measure // 4
    four_part = [chorale for chorale in pieces if len(chorale.score.voices) == len(VOICES)]
    # MUSIB's filters: four parts and at least 16 measures by its counting rule
    counted = (
        count_musib_measures(chorale.score.voice(0)["onset_tick"], chorale.score.ticks_per_quarter)
        for chorale in four_part
    )
    four_four = [chorale for chorale in four_part if chorale.time_signatures == {"4/4"}]
    return {
        "musib": window_counts(count for count in counted if count >= MUSIB_LAYOUT.n_measures),
        "musib_songs_by_last_note_end": window_counts(math.ceil(_bars(chorale)) for chorale in songs),
        "musib_songs_by_full_bars": window_counts(math.floor(_bars(chorale)) for chorale in songs),
        "musib_first_time_signature": _tally(chorale.time_signature for chorale in songs),
        "musib_pickup_quarters": _tally(chorale.pickup_quarters for chorale in songs),
        "musib_single_4_4": sum(chorale.time_signatures == {"4/4"} for chorale in songs),
        "musib_mode": _tally(chorale.mode for chorale in songs),
        "musib_notes": sum(len(chorale.score.notes) for chorale in songs),
        "musib_notes_off_grid": sum(
            int((score.notes["onset_tick"] * steps_per_quarter % score.ticks_per_quarter != 0).sum())
            for score in (chorale.score for chorale in songs)
        ),
        "musib_files_with_credit": sum(bool(encoder_credit(paths[chorale.name])) for chorale in songs),
        "strict_4_4": window_counts(piece.n_measures for piece in strict),
        "strict_4_4_new_songs": sorted({piece.chorale.name for piece in strict} - musib_songs().keys()),
        "strict_4_4_misaligned": sorted(chorale.name for chorale in four_four if not is_strict(chorale)),
    }


def near_counts(
    configs: Mapping[str, Mapping[str, Iterable[Mapping[str, Any]]]],
) -> dict[str, dict[str, dict[str, int]]]:
    """Count in the rows of each config and split but train which middles training or their own context nearly hold."""
    counts: dict[str, dict[str, dict[str, int]]] = {}
    for config, splits in configs.items():
        for split, rows in ((name, list(rows)) for name, rows in splits.items() if name != "train"):
            near = [row for row in rows if row["near_train"] >= NEAR]
            counts.setdefault(config, {})[split] = {
                "windows": len(rows),
                "near_train": len(near),
                "near_train_not_seen": sum(not row["seen_in_train"] for row in near),
                "repeats_in_context": sum(row["repeats_in_context"] >= NEAR for row in rows),
            }
    return counts


def _bars(chorale: Chorale) -> Fraction:
    return Fraction(chorale.score.end_tick, 4 * chorale.score.ticks_per_quarter)


def _tally(values: Iterable[object]) -> dict[str, int]:
    return {str(value): count for value, count in Counter(values).most_common()}
