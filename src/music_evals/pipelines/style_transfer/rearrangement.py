"""Rewrite the accompaniment of a score in the style of a model that is handed in, sweep by sweep.

`prepare` splits a score into melody and accompaniment; `rearrange` yields what the model has written after each sweep,
as an arrangement or a score. Command, page and Python share both; files are read by `symbolic.files`.

What becomes of a score
-----------------------
- The melody stays note by note as the score has it, off the grid too. The model sees it on its grid.
- Tempi, time signatures and key signatures stay; a pickup is one to the model too.
- The new accompaniment is one voice, on the model's grid, with the median velocity of the one before.
- Drums are left out, of what the model sees and of what is written.

What is refused, and what is remarked
-------------------------------------
Refused with a named error: a score without notes or without a voice that can be identified as the melody, notes outside
of A0 to G#7 (MIDI 21..104), and, unless asked for, meters that models hardly know (all but `METERS`). Remarked and done
all the same: meters other than 4/4, which the model knows from the position of each step in its bar; notes off its
grid, such as triplets, which it sees rounded; no accompaniment to begin with; drums.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator
from typing import Final

import numpy as np

from music_evals.annotations import DRUMS, Arrangement, NoteArray, Score
from music_evals.errors import InvalidInputError, NoDataError, PolyphonyError, UnknownNameError
from music_evals.protocols import StyleTransfer, SweptTransfer, TransferState
from music_evals.symbolic.encodings.piano_rolls import STEPS_PER_QUARTER, arrange, roll_notes
from music_evals.symbolic.melody import skyline
from music_evals.symbolic.notes import make_notes, quantize, rescale_tick, sort_notes
from music_evals.symbolic.roles import MELODY, ROLES, name_words

__all__ = ["METERS", "SKYLINE", "Prepared", "Written", "pick_melody", "prepare", "rearrange"]

SKYLINE: Final = "skyline"
"""What to name for a melody of the highest notes of all voices, for a piece whose melody has no voice of its own."""

METERS: Final = frozenset({(4, 4), (2, 2), (2, 4), (3, 4)})
"""Meters that are not refused; a short bar before the first whole one is a pickup and does not count."""

MAX_TICKS_PER_QUARTER: Final = 32767  # of a MIDI file
_FINE_TICKS: Final = 960  # for a score whose ticks and the model's steps have no common grid that a file can hold
_PIANO: Final = 0  # program of an accompaniment that was none before
_VELOCITY: Final = 80


@dataclasses.dataclass(frozen=True, eq=False)
class Prepared:
    """A score that is ready to be rearranged.

    Parameters
    ----------
    score
        Two voices, ``"melody"`` and ``"accompaniment"``, in ticks that are whole fractions of the model's steps.
    arrangement
        The same on the model's grid.
    melody
        What was taken for the melody: the name of a voice, or `SKYLINE`.
    remarks
        What a reader should know, a sentence each.
    """

    score: Score
    arrangement: Arrangement
    melody: str
    remarks: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, eq=False)
class Written:
    """What a model has written so far.

    Parameters
    ----------
    prepared
        What it was given.
    done, total
        Sweeps so far and in all; 1 and 1 for a model that does all at once.
    state
        What the next sweep goes on from; None for a model that does all at once.
    """

    prepared: Prepared
    done: int
    total: int
    state: TransferState | None
    _arrange: Callable[[], Arrangement]

    @property
    def complete(self) -> bool:
        """Whether no sweep follows."""
        return self.done >= self.total

    def arrangement(self) -> Arrangement:
        """Return melody and accompaniment on the model's grid; of a sweep, the model is asked where notes start."""
        return self._arrange()

    def score(self) -> Score:
        """Return the melody as it was given over the new accompaniment, with the tempi and signatures given."""
        # the melody of a prepared score over another accompaniment
        arrangement = self.arrangement()
        melody, before = self.prepared.score.voice(0), self.prepared.score.voice(1)
        roll = arrangement.accompaniment
        new = roll_notes(roll)
        velocity = int(np.median(before["velocity"])) if len(before) else _VELOCITY
        onsets, durations = (
            rescale_tick(new[name], roll.steps_per_quarter, self.prepared.score.ticks_per_quarter)
            for name in ("onset_tick", "duration_tick")
        )
        written = make_notes(onsets, durations, new["pitch"].astype(np.int64), velocity, 1)
        return dataclasses.replace(self.prepared.score, notes=sort_notes(np.concatenate([melody, written])))


def pick_melody(score: Score, melody: str | None = None) -> int | None:
    """Return the index of the voice of the melody, or None for the highest notes of all voices.

    Parameters
    ----------
    score
        Any score; drums are no melody.
    melody
        Name of a voice, or its number from 1, or ``"skyline"`` for the highest notes. None takes the one voice with
        notes, if it has one note at a time, or the one whose name says so (`symbolic.roles.ROLES`).

    Raises
    ------
    NoDataError
        No voice has pitched notes, or the one that is named has none.
    PolyphonyError
        No melody was named, and none can be identified; the message lists the voices and says what to do.
    UnknownNameError
        There is no such voice.
    InvalidInputError
        Several voices have this name, or it is a drum kit.

    Examples
    --------
    >>> two = Score(make_notes([0, 0], [4, 4], [48, 72], voice=[0, 1]), 4, voices=("Bass", "Lead vocal"))
    >>> pick_melody(two), pick_melody(two, "Bass"), pick_melody(two, "1")
    (1, 0, 0)
    """
    counts = np.bincount(score.notes["voice"], minlength=len(score.voices))
    pitched = [n for n in range(len(score.voices)) if counts[n] and not _is_drums(score, n)]
    if not pitched:
        raise NoDataError("no voice has pitched notes, so that there is no melody to keep; give another file")
    listed = ", ".join(f"{n + 1} {score.voices[n]!r}" for n in pitched)
    if melody is not None:
        return _named_voice(score, melody, listed)
    called = [n for n in pitched if ROLES[MELODY].words & name_words(score.voices[n])]
    if len(called) == 1:
        return called[0]
    if len(pitched) == 1 and _one_at_a_time(score.voice(pitched[0])):
        return pitched[0]
    if len(pitched) == 1:
        raise PolyphonyError(
            f"the one voice with notes, {listed}, holds melody and accompaniment together; put the melody on a track "
            f"of its own, or name `melody='{SKYLINE}'` to take the highest notes"
        )
    why = f"{len(called)} names say so" if called else "no name says so"
    raise PolyphonyError(
        f"which voice is the melody cannot be told ({why}); the voices are {listed}: name one with `melody`, by number "
        f"or name, or `melody='{SKYLINE}'` to take the highest notes of all"
    )


def prepare(
    score: Score, melody: str | None = None, *, steps_per_quarter: int = STEPS_PER_QUARTER, any_meter: bool = False
) -> Prepared:
    """Split a score into melody and accompaniment, on the grid of a model.

    Parameters
    ----------
    score
        Any score; see the top of this module for what stays of it.
    melody
        As in `pick_melody`.
    steps_per_quarter
        Of the model.
    any_meter
        True takes other meters than `METERS` too.

    Raises
    ------
    NoDataError, PolyphonyError, UnknownNameError, InvalidInputError
        As `pick_melody`.
    InvalidInputError
        Another meter than `METERS`, unless `any_meter`.
    InvalidNotesError
        A note outside of A0 to G#7 (MIDI 21..104).
    """
    index = pick_melody(score, melody)
    if not any_meter:
        meters = list(score.time_signatures)
        # a pickup: a short bar, and the first whole one where it ends
        ends = [round(meter.quarters * score.ticks_per_quarter) for meter in meters[:1]]
        has_pickup = len(meters) > 1 and meters[0].quarters < meters[1].quarters and meters[1].tick in ends
        for meter in meters[has_pickup:]:
            if (meter.numerator, meter.denominator) not in METERS:
                known = ", ".join(f"{upper}/{lower}" for upper, lower in sorted(METERS))
                raise InvalidInputError(
                    f"the piece is in {meter.numerator}/{meter.denominator} from tick {meter.tick} on; models have "
                    f"learnt from music in 4/4, some in 3/4. Give a piece in {known}, or ask for it all the same with "
                    "`any_meter=True`"
                )
    ticks = math.lcm(score.ticks_per_quarter, steps_per_quarter)
    fine = quantize(score, ticks if ticks <= MAX_TICKS_PER_QUARTER else math.lcm(_FINE_TICKS, steps_per_quarter))
    drums = [voice for voice in range(len(score.voices)) if _is_drums(score, voice)]
    notes = fine.notes[~np.isin(fine.notes["voice"], drums)].copy()
    in_melody = notes["voice"] == index if index is not None else _highest(notes)
    programs = [_program(score, notes[part]["voice"]) for part in (in_melody, ~in_melody)]
    notes["voice"] = np.where(in_melody, 0, 1)
    voices = ("melody", "accompaniment")
    split = dataclasses.replace(fine, notes=sort_notes(notes), voices=voices, programs=tuple(programs))
    arrangement = arrange(split, 0, steps_per_quarter=steps_per_quarter)
    name = SKYLINE if index is None else score.voices[index] or str(index + 1)
    return Prepared(split, arrangement, name, tuple(_remarks(score, split, steps_per_quarter)))


def rearrange(
    prepared: Prepared,
    model: StyleTransfer,
    *,
    seed: int = 0,
    n_sweeps: int | None = None,
    start: TransferState | None = None,
) -> Iterator[Written]:
    """Rewrite the accompaniment, and yield what there is after each sweep.

    Parameters
    ----------
    prepared
        Of `prepare`, on the model's grid.
    model
        A `protocols.SweptTransfer`, or a plain `protocols.StyleTransfer`, which yields once.
    seed
        At least 0; the last value is ``model.transfer(..., rng=numpy.random.default_rng(seed))``, also where a run is
        stopped after any sweep and resumed.
    n_sweeps
        In all; None: those of the model. For a model that is swept.
    start
        State of an earlier sweep (`Written.state`, or ``model.read_state(file)``): yielded first, then gone on from.

    Raises
    ------
    InvalidInputError
        Another grid than the model's, a negative seed, fewer than 1 sweep, or sweeps of a model that has none.
    OtherResultsError
        `start` is of another piece, seed or setting.
    """
    arrangement = prepared.arrangement
    grid = arrangement.melody.steps_per_quarter
    if grid != model.steps_per_quarter:
        raise InvalidInputError(
            f"the score is prepared for {grid} steps a quarter, the model takes {model.steps_per_quarter}; give "
            "`steps_per_quarter` of the model to `prepare`"
        )
    if seed < 0:
        raise InvalidInputError(f"`seed` must be at least 0, got {seed}")
    if n_sweeps is not None and n_sweeps < 1:
        raise InvalidInputError(f"`sweeps` must be at least 1, got {n_sweeps}")
    rng = np.random.default_rng(seed)
    if isinstance(model, SweptTransfer):
        return _swept(
            prepared, model, int(rng.integers(2**63)), model.n_sweeps if n_sweeps is None else n_sweeps, start
        )
    if n_sweeps is not None or start is not None:
        raise InvalidInputError(f"{model.name} writes all at once; leave `sweeps` out")
    return _at_once(prepared, model, rng)


def _swept(
    prepared: Prepared, model: SweptTransfer, seed: int, total: int, start: TransferState | None
) -> Iterator[Written]:
    arrangement = prepared.arrangement
    sweeps = model.sweeps(arrangement, seed=seed, n_sweeps=total, start=start)  # refuses a foreign state now

    def written(state: TransferState) -> Written:
        return Written(prepared, state.sweeps_done, total, state, lambda: model.arranged(state.cells, arrangement))

    def run() -> Iterator[Written]:
        if start is not None:
            yield written(start)
        for sweep in sweeps:
            yield written(sweep.state)

    return run()


def _at_once(prepared: Prepared, model: StyleTransfer, rng: np.random.Generator) -> Iterator[Written]:
    output = model.transfer(prepared.arrangement, rng=rng)
    yield Written(prepared, 1, 1, None, lambda: output)


def _named_voice(score: Score, melody: str, listed: str) -> int | None:
    matches = [n for n, name in enumerate(score.voices) if name == melody]
    matches = matches or [n for n, name in enumerate(score.voices) if name.casefold() == melody.casefold()]
    if not matches and melody == SKYLINE:
        return None
    if not matches and melody.isdecimal() and 1 <= int(melody) <= len(score.voices):
        matches = [int(melody) - 1]
    if not matches:
        raise UnknownNameError("voice", melody, [*score.voices, SKYLINE], f"the voices are {listed}")
    if len(matches) > 1:
        numbers = " and ".join(str(n + 1) for n in matches)
        raise InvalidInputError(f"{len(matches)} voices are called {melody!r}; name one by its number, {numbers}")
    if _is_drums(score, matches[0]):
        raise InvalidInputError(f"voice {melody!r} is a drum kit, which has no melody; the voices are {listed}")
    if not len(score.voice(matches[0])):
        raise NoDataError(f"voice {melody!r} has no notes; the voices are {listed}")
    return matches[0]


def _is_drums(score: Score, voice: int) -> bool:
    return bool(score.programs) and score.programs[voice] == DRUMS


def _one_at_a_time(notes: NoteArray) -> bool:
    return bool((notes["onset_tick"][:-1] + notes["duration_tick"][:-1] <= notes["onset_tick"][1:]).all())


def _highest(notes: NoteArray) -> np.ndarray:
    """Return which notes, whole, the skyline takes."""
    line = {(int(note["onset_tick"]), int(note["pitch"])) for note in skyline(notes)}
    return np.array([(int(note["onset_tick"]), int(note["pitch"])) in line for note in notes], dtype=np.bool_)


def _program(score: Score, voices: np.ndarray) -> int:
    """Return the program of the voice that most of some notes come from."""
    if not score.programs or not len(voices):
        return _PIANO
    return score.programs[int(np.bincount(voices).argmax())]


def _remarks(score: Score, split: Score, steps_per_quarter: int) -> Iterator[str]:
    """Yield what a reader should know."""
    drums = [score.voices[n] for n in np.unique(score.notes["voice"]) if _is_drums(score, n)]
    if drums:
        yield f"drums are left out: {', '.join(map(repr, drums))}"
    if not len(split.voice(1)):
        yield "there is no accompaniment to begin with; the model writes one to silence"
    if not _one_at_a_time(split.voice(0)):
        yield "notes of the melody sound together or overlap; all of them stay"
    meters = sorted({(change.numerator, change.denominator) for change in score.time_signatures} - {(4, 4)})
    if meters:
        names = ", ".join(f"{upper}/{lower}" for upper, lower in meters)
        yield (
            f"the meter is {names}: the model is told where each step lies in its bar, and does well only if it has "
            "learnt such bars; its card says what it was trained on"
        )
    if not score.time_signatures:
        yield "no time signature is stated: bars are taken for 4/4 from the beginning, as MIDI has it"
    step = split.ticks_per_quarter // steps_per_quarter
    off = int((split.notes["onset_tick"] % step != 0).sum())
    if off:
        yield (
            f"{off} of {len(split.notes)} notes start off the model's grid of {steps_per_quarter} steps a quarter, "
            "such as triplets; it sees them rounded, the melody that is written keeps them"
        )
