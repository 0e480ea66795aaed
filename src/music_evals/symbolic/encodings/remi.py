"""REMI-like encoding of the variable-length infilling model (VLI): six ids a note.

The columns are Tempo, Bar, Position, Pitch, Duration and Velocity; each has ids of its own, the last three of which are
BOS, EOS and PAD. A bar is four quarters from tick 0, whatever the signatures say; a position is a sixteenth, a duration
a thirty-second.

What the encoding loses: voices, signatures, tempo changes between notes; onsets and tempo changes finer than a
sixteenth and lengths finer than a thirty-second (each rounded half up by itself), the part of a length beyond two bars;
velocity within a bin of 4, tempo within a bin of 4 and outside 28..211. The scheme cannot say pitches outside 22..107
or more than 16 bars: these raise.

Deviations from MUSIB's code, which gets them wrong: the grid is that of the score (theirs takes 480 ticks a quarter for
granted), bars without onsets keep their place, the last onset is not pulled back, durations are thirty-seconds on the
way out as on the way in.

Source: Chang, Lee and Yang, "Variable-Length Music Score Infilling via XLNet and Musically Specialized Positional
Encoding", ISMIR 2021; MUSIB, section "Data representation".
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from music_evals.annotations import DEFAULT_BPM, Score, Tempo
from music_evals.errors import ContextLengthError, InvalidNotesError, InvalidTokensError
from music_evals.symbolic.notes import make_notes, rescale_tick

COLUMNS = ("tempo", "bar", "position", "pitch", "duration", "velocity")
"""Names of the six ids of a note."""
TEMPO = 0  # the place of this id among the six of a note
BAR = 1  # the place of this id among the six of a note
POSITION = 2  # the place of this id among the six of a note
PITCH = 3  # the place of this id among the six of a note
DURATION = 4  # the place of this id among the six of a note
VELOCITY = 5  # the place of this id among the six of a note

N_VALUES = (46, 16, 16, 86, 64, 32)  # tempi 28, 32, ..., 208; bars; sixteenths; pitches 22..107; 1/32 notes; bins of 4
N_SPECIAL = 3  # BOS, EOS, PAD, in this order after the values
SIZES = tuple(n + N_SPECIAL for n in N_VALUES)
"""Number of ids of each column, BOS, EOS and PAD included: 49, 19, 19, 89, 67, 35."""

LOWEST_PITCH = 22
LOWEST_BPM, BPM_BIN = 28, 4
VELOCITY_BIN = 4
TICKS_PER_QUARTER = 8  # decoded scores count thirty-seconds
TICKS_PER_POSITION = 2
POSITIONS_PER_BAR = 16
SEQUENCE_LENGTH = 512  # MUSIB's length of padded sequences

Ids = npt.NDArray[np.int64]


def encode(score: Score) -> Ids:
    """Encode the notes of all voices."""
    notes = score.notes
    positions = rescale_tick(notes["onset_tick"], score.ticks_per_quarter, POSITIONS_PER_BAR // 4)
    lengths = rescale_tick(notes["duration_tick"], score.ticks_per_quarter, TICKS_PER_QUARTER)
    # tempo of each position; changes are rounded like onsets, so that notes which come to start together share one
    changes = rescale_tick([tempo.tick for tempo in score.tempos], score.ticks_per_quarter, POSITIONS_PER_BAR // 4)
    bpm = np.array([DEFAULT_BPM, *(tempo.bpm for tempo in score.tempos)])
    in_force = bpm[np.searchsorted(changes, positions, side="right")]
    ids = (np.floor(np.round(in_force, 6)) - LOWEST_BPM) // BPM_BIN  # 91.9999999 is 92 that went through a MIDI file
    columns = np.stack(
        [
            np.asarray(np.clip(ids, 0, N_VALUES[TEMPO] - 1), dtype=np.int64),
            positions // POSITIONS_PER_BAR,
            positions % POSITIONS_PER_BAR,
            notes["pitch"].astype(np.int64) - LOWEST_PITCH,
            np.clip(lengths, 1, N_VALUES[DURATION]) - 1,
            notes["velocity"].astype(np.int64) // VELOCITY_BIN,
        ],
        axis=1,
    )
    for column, limit in ((PITCH, "pitches 22..107"), (BAR, "16 bars; cut it with symbolic.measures.slice_measures")):
        outside = (columns[:, column] < 0) | (columns[:, column] >= N_VALUES[column])
        if outside.any():
            raise InvalidNotesError(f"REMI has only {limit}; got the note {notes[int(np.argmax(outside))]}")
    order = np.lexsort((notes["pitch"], positions))
    return np.asarray(columns[order], dtype=np.int64)


def decode(ids: npt.ArrayLike) -> Score:
    """Read the notes back."""
    rows = _check_ids(ids)
    positions = rows[:, BAR] * POSITIONS_PER_BAR + rows[:, POSITION]
    onsets = positions * TICKS_PER_POSITION
    notes = make_notes(
        onsets, rows[:, DURATION] + 1, rows[:, PITCH] + LOWEST_PITCH, np.maximum(rows[:, VELOCITY] * VELOCITY_BIN, 1)
    )
    # the tempo of each onset, the first from tick 0 on, without repetitions
    order = np.argsort(onsets, kind="stable")
    onsets, tempo_ids = onsets[order], rows[order, TEMPO]
    differ = (np.diff(onsets) == 0) & (np.diff(tempo_ids) != 0)
    if differ.any():
        raise InvalidTokensError(
            f"two tempi at one onset, tick {onsets[int(np.argmax(differ))]}; notes that start together share a tempo"
        )
    tempos = [
        Tempo(int(onsets[index]) if index else 0, float(LOWEST_BPM + BPM_BIN * tempo_ids[index]))
        for index in np.flatnonzero(np.diff(tempo_ids, prepend=-1))
    ]
    return Score(notes, TICKS_PER_QUARTER, tempos=tuple(tempos))


def pad(ids: Ids, length: int = SEQUENCE_LENGTH) -> Ids:
    """Fill up a sequence with PAD."""
    if len(ids) > length:
        raise ContextLengthError(
            f"{len(ids)} notes do not fit into {length}; cut the piece with symbolic.measures.slice_measures"
        )
    padding = np.tile(np.array(SIZES, dtype=np.int64) - 1, (length - len(ids), 1))
    return np.concatenate([ids, padding])


def relative_bars(ids: npt.ArrayLike) -> npt.NDArray[np.int64]:
    """Return the bar ids that VLI's network reads: 0 same bar as the note before, 1 a later one.

    Jumps over empty bars are 1 as well, so bars cannot be read back from these ids. The first note has 0.
    """
    bars = _check_ids(ids)[:, BAR]
    return np.asarray(np.minimum(np.diff(bars, prepend=bars[:1]), 1), dtype=np.int64)


def _check_ids(ids: npt.ArrayLike) -> Ids:
    rows = np.asarray(ids)
    if rows.size == 0:
        return np.zeros((0, len(COLUMNS)), dtype=np.int64)
    if rows.ndim != 2 or rows.shape[1] != len(COLUMNS) or not np.issubdtype(rows.dtype, np.integer):
        raise InvalidTokensError(
            f"expected whole numbers of shape (n_notes, 6), got {rows.dtype} of shape {rows.shape}"
        )
    padded = (rows == np.array(SIZES) - 1).all(axis=1)
    n_notes = len(rows) - int(np.argmin(padded[::-1])) if not padded.all() else 0
    rows = np.asarray(rows[:n_notes], dtype=np.int64)
    outside = (rows < 0) | (rows >= np.array(N_VALUES))
    if outside.any():
        row, column = np.argwhere(outside)[0]
        raise InvalidTokensError(
            f"row {row}: {COLUMNS[column]} id {rows[row, column]} is not the id of a value, 0..{N_VALUES[column] - 1}; "
            "BOS, EOS and PAD are no notes, and PAD may only stand at the end"
        )
    return rows
