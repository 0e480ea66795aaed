"""Pieces of medium swing as rows of whole pieces: the builder of `datasets_scripts/swing_synth`.

Stands in for the charts of iReal Pro that Lu et al. (ACM MM 2021) rendered and could not publish: as many pieces, for
piano and bass, by rules of ours. Nothing measured on it compares with their numbers.

Configs
-------
``swing_synth``
    8 steps a quarter, as for the chorales. The second eighth of a beat lies at step 5 of 8, as near as this grid comes
    to two thirds.
``triplet``
    The same pieces on 12 steps a quarter, where it lies at step 8: two thirds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from music_evals.annotations import KeySignature, Score, TimeSignature
from music_evals.datasets.style_pieces import SHARES, PieceFacts, row_of, split_families
from music_evals.datasets.swing_synth.players import EIGHTHS_PER_BAR, Hit, comp, walk
from music_evals.datasets.swing_synth.progressions import Chord, Progression, compose
from music_evals.symbolic.notes import make_notes

__all__ = ["CONFIGS", "N_PIECES", "SEED", "Piece", "build_configs", "compose_piece", "counts", "piece_row", "ticks"]

CONFIGS: Final = {"swing_synth": 8, "triplet": 12}
"""Config -> steps a quarter."""

N_PIECES: Final = 487
"""As many as Lu et al. rendered."""
SEED: Final = 2021
"""Of the set; another one gives other pieces by the same rules."""

_OFF_BEAT: Final = {8: 5, 12: 8}  # grid -> where the second eighth of a beat lies
_BLUES_BARS: Final = 12
_NAMES: Final = ("C", "Db", "D", "Eb", "E", "F", "F#", "G", "Ab", "A", "Bb", "B")


class Piece(NamedTuple):
    """A piece before it is put on a grid."""

    number: int
    progression: Progression
    tonic: int
    """Pitch class."""
    bars: tuple[tuple[Chord, ...], ...]
    """Of all choruses; the last one is the tonic chord."""
    bass: list[Hit]
    piano: list[Hit]


def compose_piece(index: int, seed: int = SEED) -> Piece:
    """Return a piece of the set by its number, from 0; equal on every machine."""
    rng = np.random.default_rng((seed, index))
    progression, tonic = compose(rng), int(rng.integers(12))
    # a blues has two choruses, a longer song one or two
    n_choruses = 1 if len(progression.bars) > _BLUES_BARS and rng.integers(2) else 2
    first = progression.bars[0][0]
    home = Chord(0, first.quality if first.root == 0 else "m6" if progression.minor else "maj7", 4)
    bars = (*(progression.bars * n_choruses)[:-1], (home,))  # the last turnaround comes home instead
    return Piece(index, progression, tonic, bars, walk(bars, tonic, rng), comp(bars, tonic, rng))


def ticks(eighths: int, grid: int) -> int:
    """Return where a number of eighths lies on a grid of so many steps a quarter, 8 or 12."""
    return eighths // 2 * grid + eighths % 2 * _OFF_BEAT[grid]


def piece_row(piece: Piece, grid: int) -> dict[str, Any]:
    """Return the row of a piece on a grid."""
    parts = (_notes(piece.piano, grid, detached=0), _notes(piece.bass, grid, detached=1))
    columns = [np.array([note[field] for part in parts for note in part]) for field in range(3)]
    voices = np.repeat(np.arange(2), [len(part) for part in parts])
    order = np.lexsort((columns[2], voices, columns[0]))
    onset, duration, pitch = (column[order] for column in columns)
    score = Score(
        make_notes(onset, duration, pitch, voice=voices[order]),
        grid,
        (TimeSignature(0, 4, 4),),
        key_signatures=(_key(piece.tonic, minor=piece.progression.minor),),
        voices=("piano", "bass"),
    )
    of = piece.progression
    facts = PieceFacts(
        f"swing{piece.number:03d}",
        "swing",
        of.digest,
        title=f"{of.form} in {_NAMES[piece.tonic]}{' minor' if of.minor else ''}",
        source="rules of music_evals",
        licence="cc0-1.0",
    )
    return row_of(score, facts, ticks_per_quarter=grid)


def build_configs(n_pieces: int = N_PIECES, seed: int = SEED) -> dict[str, dict[str, list[dict[str, Any]]]]:
    """Make all rows: no two pieces with the chords of one progression are in different splits."""
    pieces = [compose_piece(index, seed) for index in range(n_pieces)]
    splits = split_families({f"swing{piece.number:03d}": piece.progression.digest for piece in pieces})
    configs = {}
    for config, grid in CONFIGS.items():
        rows = [piece_row(piece, grid) for piece in pieces]
        configs[config] = {split: [row for row in rows if splits[row["name"]] == split] for split in SHARES}
    return configs


def counts(configs: Mapping[str, Mapping[str, Sequence[Mapping[str, Any]]]]) -> dict[str, Any]:
    """Return what the card says of the set: pieces, progressions, notes and steps of each split, and its forms."""
    rows = [row for split in configs["swing_synth"].values() for row in split]
    forms = [str(row["title"]).partition(" in ")[0] for row in rows]
    return {
        **{
            config: {
                split: {
                    "pieces": len(some),
                    "progressions": len({row["family"] for row in some}),
                    "notes": sum(len(row["notes"]) for row in some),
                    "steps": sum(row["measure_starts"][-1] for row in some),
                }
                for split, some in splits.items()
            }
            for config, splits in configs.items()
        },
        "forms": {form: forms.count(form) for form in sorted(set(forms))},
        "minor": sum(str(row["title"]).endswith(" minor") for row in rows),
    }


def _notes(hits: Sequence[Hit], grid: int, *, detached: int) -> list[tuple[int, int, int]]:
    """Return (onset, duration, pitch) of all notes; held quarters may end some steps early, to be told apart."""
    notes = []
    for hit in hits:
        start, end = ticks(hit.start, grid), ticks(hit.start + hit.length, grid)
        length = max(1, end - start - (detached if hit.length < EIGHTHS_PER_BAR else 0))
        notes += [(start, length, pitch) for pitch in hit.pitches]
    return notes


def _key(tonic: int, *, minor: bool) -> KeySignature:
    """Return the key signature of a tonic: from five flats to six sharps."""
    major = (tonic + 3) % 12 if minor else tonic
    fifths = major * 7 % 12
    return KeySignature(0, fifths if fifths <= 6 else fifths - 12, minor)
