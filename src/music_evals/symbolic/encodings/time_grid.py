"""The time grid of performed MIDI: seconds in, steps out.

A performance is known in seconds, and its tempo map says how long a beat lasts. The grid has one time for each step;
every onset and every end goes to the nearest of them.

Source: thesis (Araneda, 2023), Algorithm 1. Deviations from its pseudo-code, which would not run as printed, and from
MUSIB's code:

- a quarter lasts 60 / bpm seconds (printed: bpm / 60), and is divided by the steps of a quarter (printed: by the steps
  of a measure);
- the last tempo reaches to the end of the last note (printed: left out, and with one tempo that is everything);
- the running time starts at 0 (printed: never set);
- tempi are not cut to whole numbers, so a piece at 91.99999 does not drift (MUSIB's code cuts);
- the grid runs on through a tempo change: a step that a change falls into has part of each tempo (printed: the grid
  starts again there, which moves every bar after a change that is off the grid);
- the grid is closed: it holds a time at or after the last end, so the last note keeps its last step (MUSIB's code: half
  open);
- an end goes to the time nearest to itself (printed: nearest to where it lands when it is moved along with its onset).
  At one tempo this equals the quantisation of ticks, and notes that followed each other do not come to overlap;
- a note lasts at least one step, and no piece is padded with times that repeat.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from music_evals.annotations import DRUMS, Score, Tempo, TimeSignature
from music_evals.errors import InvalidInputError
from music_evals.symbolic.measures import drop_repeated_signatures
from music_evals.symbolic.notes import make_notes

if TYPE_CHECKING:
    import pretty_midi

__all__ = ["grid_times", "nearest_step", "quantize_performance"]

TIE = 1e-6  # of a step: times this near to midway count as midway, for seconds are rounded numbers

Times = npt.NDArray[np.float64]


def grid_times(
    tempo_times_sec: npt.ArrayLike, bpm: npt.ArrayLike, end_sec: float, *, steps_per_quarter: int = 6
) -> Times:
    """Return the time of every step.

    Parameters
    ----------
    tempo_times_sec, bpm
        Where each tempo starts, seconds, increasing from 0; and the tempi, quarters a minute, above 0; shapes (m,).
        Others are an `InvalidInputError`.
    end_sec
        End of the last note, seconds.
    steps_per_quarter
        6 is MUSIB's 24 steps a measure of 4/4.

    Returns
    -------
    Times
        Shape (n_steps + 1,), seconds; the first is 0, the last is the first one at or after `end_sec`.

    Examples
    --------
    >>> grid_times([0.0, 1.0], [60.0, 120.0], 2.0, steps_per_quarter=2)
    array([0.  , 0.5 , 1.  , 1.25, 1.5 , 1.75, 2.  ])
    """
    starts, tempi = np.asarray(tempo_times_sec, dtype=np.float64), np.asarray(bpm, dtype=np.float64)
    if starts.ndim != 1 or starts.shape != tempi.shape or not starts.size:
        raise InvalidInputError(
            f"expected as many tempi as times, at least one; got shapes {tempi.shape} and {starts.shape}"
        )
    if starts[0] != 0 or not (np.diff(starts) > 0).all() or not ((tempi > 0) & np.isfinite(tempi)).all():
        raise InvalidInputError(
            f"tempi must be above 0, the first at 0 s and each after the one before; got {tempi} at {starts}"
        )
    quarter_sec = 60 / tempi
    if steps_per_quarter < 1 or not 0 <= end_sec < np.inf:
        raise InvalidInputError(
            f"steps_per_quarter must be at least 1 and end_sec not negative, got {steps_per_quarter} and {end_sec}"
        )
    # steps that have passed at the start of each tempo, and at the end
    passed = np.concatenate([[0.0], np.cumsum(np.diff(starts) / quarter_sec[:-1])]) * steps_per_quarter
    last = int(np.searchsorted(starts, end_sec, side="right")) - 1
    end_step = passed[last] + (end_sec - starts[last]) / quarter_sec[last] * steps_per_quarter
    steps = np.arange(int(np.ceil(end_step - TIE)) + 1)
    tempo = np.searchsorted(passed, steps, side="right") - 1
    return np.asarray(starts[tempo] + (steps - passed[tempo]) * quarter_sec[tempo] / steps_per_quarter)


def nearest_step(times_sec: npt.ArrayLike, grid: Times) -> npt.NDArray[np.int64]:
    """Return the index of the grid time that is nearest to each time; midway goes to the later one.

    Times are in seconds, of any shape; those after the grid go to its last step.
    """
    midway = (grid[:-1] + grid[1:]) / 2 - TIE * np.diff(grid)
    return np.searchsorted(midway, np.asarray(times_sec, dtype=np.float64), side="right")


def quantize_performance(midi: pretty_midi.PrettyMIDI, *, steps_per_quarter: int = 6) -> Score:
    """Put performed MIDI on a grid of steps that follows its tempo map.

    Times are in seconds, with one or several tempi, which are refused as by `grid_times`. The score has
    `steps_per_quarter` ticks a quarter (6 is MUSIB's 24 steps a measure of 4/4), one voice for each instrument with
    notes, time signatures and tempi at their nearest step.
    """
    instruments = [instrument for instrument in midi.instruments if instrument.notes]
    rows = [
        (note.start, note.end, note.pitch, note.velocity, voice)
        for voice, instrument in enumerate(instruments)
        for note in instrument.notes
    ]
    onsets, ends, pitches, velocities, voices = np.array(rows, dtype=np.float64).reshape(-1, 5).T
    times, bpms = midi.get_tempo_changes()
    end = max([float(ends.max(initial=0)), *times, *(change.time for change in midi.time_signature_changes)])
    grid = grid_times(times, bpms, end, steps_per_quarter=steps_per_quarter)
    onset_steps = nearest_step(onsets, grid)
    lengths = np.maximum(nearest_step(ends, grid) - onset_steps, 1)
    signatures = sorted(midi.time_signature_changes, key=lambda change: float(change.time))
    return Score(
        make_notes(onset_steps, lengths, *(column.astype(np.int64) for column in (pitches, velocities, voices))),
        steps_per_quarter,
        drop_repeated_signatures(
            [
                TimeSignature(int(nearest_step(change.time, grid)), change.numerator, change.denominator)
                for change in signatures
            ],
            steps_per_quarter,
        ),
        tuple(Tempo(int(nearest_step(time, grid)), float(bpm)) for time, bpm in zip(times, bpms, strict=True)),
        voices=tuple(instrument.name for instrument in instruments),
        programs=tuple(DRUMS if instrument.is_drum else int(instrument.program) for instrument in instruments),
    )
