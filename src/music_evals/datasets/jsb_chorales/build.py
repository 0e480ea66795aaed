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
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from music_evals.annotations import MUSIB_LAYOUT, Tokens
from music_evals.csv_files import csv_rows
from music_evals.datasets import tunes
from music_evals.datasets.bach_corpus import VOICES, Chorale
from music_evals.datasets.near_copies import training_passages
from music_evals.datasets.tunes import Training
from music_evals.datasets.windows import cut_windows, training_keys, voice_tokens
from music_evals.errors import InvalidInputError, UnknownNameError
from music_evals.symbolic.measures import count_musib_measures

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
