"""JSB Chorales as 16-measure contexts for score inpainting: the builder of `datasets_scripts/jsb_chorales`.

Configs
-------
``musib``
    The 171 songs, measure counts and splits of MUSIB, every voice, every window at a stride of one measure. MUSIB reads
    everything as 4/4 from time 0: pickups shift its bar lines, and a 3/4 piece has bars of four beats.
``musib_official``
    The contexts on which MUSIB's published numbers were measured: soprano, first 16 measures, one for each song of
    validation and test. There is nothing to train on.
``strict_4_4``
    Four parts, 4/4 throughout, every bar line where the page has it: the pickup is left out and measure 0 is the first
    full bar. Songs keep their split of ``musib``; others go to train.

Sources: MUSIB (journal paper and its code); Araneda, thesis, Universidad de Chile 2023.
"""

from __future__ import annotations

import dataclasses
import importlib.resources
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

from music_evals.annotations import MUSIB_LAYOUT, Tokens
from music_evals.csv_files import csv_rows
from music_evals.datasets import tunes
from music_evals.datasets.bach_corpus import VOICES, Chorale, chorale_paths, encoder_credit
from music_evals.datasets.near_copies import NEAR, training_passages
from music_evals.datasets.tunes import Training, cut_windows, training_keys, voice_tokens
from music_evals.errors import InvalidInputError, UnknownNameError
from music_evals.symbolic.measures import count_musib_measures

__all__ = [
    "CONFIGS", "SPLITS", "SongFact", "build_config", "count_notated_measures", "features", "is_strict", "musib_songs",
    "song_rows", "training_content",
]  # fmt: skip

CONFIGS = ("musib", "musib_official", "strict_4_4")
SPLITS = ("train", "validation", "test")


@dataclasses.dataclass(frozen=True)
class SongFact:
    """What MUSIB's published table says of a song: its measure count and its split."""

    n_measures: int
    split: str


def musib_songs() -> dict[str, SongFact]:
    """Return MUSIB's 171 songs: name -> measure count and split, in the order of their names."""
    table = importlib.resources.files("music_evals.datasets.jsb_chorales") / "musib_songs.csv"
    rows = csv_rows(table.read_text(encoding="utf-8"), table)
    return dict(sorted((row["song"], SongFact(int(row["n_measures"]), row["split"])) for row in rows))


def features() -> Any:
    """Return the columns of every config as `datasets.Features`."""
    from datasets import Features

    others = {"title", "collection", "family"}
    return Features({name: kind for name, kind in tunes.features().items() if name not in others})


def count_notated_measures(chorale: Chorale) -> int:
    """Count the measures of a 4/4 piece from its first full one to its end, repeats written out."""
    # The last one counts although it may lack the beats that the pickup has.
    last = chorale.measures[-1]
    return math.ceil((last.offset_quarters + last.notated_quarters - chorale.pickup_quarters) / 4)


def is_strict(chorale: Chorale) -> bool:
    """Whether a piece has four parts, is in 4/4 throughout, and keeps its bar lines four quarters apart."""
    # The last condition fails where a repeat goes back to a place that breaks the count of four.
    aligned = all((bar.offset_quarters - chorale.pickup_quarters) % 4 == 0 for bar in chorale.measures if bar.is_full)
    return len(chorale.score.voices) == len(VOICES) and chorale.time_signatures == {"4/4"} and aligned


@dataclasses.dataclass(frozen=True, eq=False)
class Piece:
    """A chorale as one config reads it."""

    chorale: Chorale  # the piece
    n_measures: int  # how many measures are windowed
    split: str  # ``"train"``, ``"validation"`` or ``"test"``
    cut_quarters: float = 0.0  # where measure 0 starts, in quarter notes from the start of the piece

    def windows(self, voice: int) -> Tokens:
        """Return the windows of one voice, shape (n_measures - 15, 384)."""
        tokens = voice_tokens(self.chorale.score, voice, self.n_measures, pickup_quarters=self.cut_quarters)
        return cut_windows(tokens)


def musib_piece(chorale: Chorale) -> Piece:
    """Read a chorale as MUSIB does."""
    songs = musib_songs()
    if chorale.name not in songs:
        raise UnknownNameError("song of MUSIB", chorale.name, songs)
    fact = songs[chorale.name]
    counted = count_musib_measures(chorale.score.voice(0)["onset_tick"], chorale.score.ticks_per_quarter)
    if counted != fact.n_measures:
        raise InvalidInputError(
            f"{chorale.name} has {counted} measures, MUSIB's table says {fact.n_measures}; the corpus of the installed "
            "music21 differs from the one the data set was made from (10.5.1)"
        )
    return Piece(chorale, fact.n_measures, fact.split)


def strict_piece(chorale: Chorale) -> Piece:
    """Read a 4/4 chorale with its own bar lines; `is_strict` must hold."""
    fact = musib_songs().get(chorale.name)
    split = fact.split if fact else "train"
    return Piece(chorale, count_notated_measures(chorale), split, chorale.pickup_quarters)


def pieces_of(config: str, chorales: Iterable[Chorale]) -> list[Piece]:
    """Choose the pieces of a config, in the order of their names."""
    if config not in CONFIGS:
        raise UnknownNameError("config of jsb_chorales", config, CONFIGS)
    ordered = sorted(chorales, key=lambda chorale: chorale.name)
    if config == "strict_4_4":
        pieces = [strict_piece(chorale) for chorale in ordered if is_strict(chorale)]
        return [piece for piece in pieces if piece.n_measures >= MUSIB_LAYOUT.n_measures]
    songs = musib_songs()
    return [musib_piece(chorale) for chorale in ordered if chorale.name in songs]


def training_content(windows: Sequence[Tokens]) -> Training:
    """Return what training windows, any number of arrays (m, 384), hold."""
    return Training(training_keys(window for some in windows for window in some), training_passages(windows))


def song_rows(piece: Piece, train: Training) -> Iterator[dict[str, Any]]:
    """Make the rows of one piece: voices from soprano to bass, each with its windows in time order."""
    chorale = piece.chorale
    names = ("key_fifths", "mode", "time_signature", "pickup_quarters")
    shared = {"song": chorale.name, "n_measures": piece.n_measures, **{name: getattr(chorale, name) for name in names}}
    known = None if piece.split == "train" else train
    for index, voice in enumerate(VOICES):
        prefix, windows = f"{chorale.name}/{voice}", piece.windows(index)
        yield from tunes.window_rows(prefix, windows, known, voice=voice, voice_index=index, **shared)


def build_config(config: str, chorales: Iterable[Chorale]) -> dict[str, list[dict[str, Any]]]:
    """Make all rows of a config."""
    pieces = pieces_of(config, chorales)
    training = [piece.windows(voice) for piece in pieces if piece.split == "train" for voice in range(len(VOICES))]
    train = training_content(training)
    splits = {
        split: [row for piece in pieces if piece.split == split for row in song_rows(piece, train)] for split in SPLITS
    }
    if config == "musib_official":
        return {
            split: [row for row in splits[split] if row["voice_index"] == 0 and row["start"] == 0]
            for split in ("validation", "test")
        }
    return splits


# --- the numbers on the card: how the counts of MUSIB arise, and what real bars would add


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
