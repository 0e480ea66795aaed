"""Values of written music: notes on a grid, signatures, tokens, contexts.

Conventions
-----------
- Symbolic time is counted in ticks of a grid that the value states (`Score.ticks_per_quarter`); seconds appear only
  where a name ends in ``_sec``.
- Pitches are MIDI numbers, 0..127, 60 = C4. Velocities are 1..127.
- Values that break the rules of their parameters raise `InvalidInputError`, notes `InvalidNotesError`.
- NoteSeq tokens: 0..127 onset of that pitch, `HOLD` = 128, `REST` = 129. `MASK` = 130 hides what a model may not see.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from music_evals.errors import InvalidInputError, InvalidNotesError, InvalidTokensError

HOLD = 128
"""The token of a step in which the last note goes on."""

REST = 129
"""The token of a silent step."""

VOCABULARY_SIZE = 130
"""Tokens that music is written in: 128 pitches, `HOLD` and `REST`."""

MASK = 130
"""The token that hides what a model may not see."""

DRUMS = 128
"""The program of a drum kit, next to the 128 melodic programs 0..127 of General MIDI."""

DEFAULT_BPM = 120.0
"""What a MIDI file without a tempo means, in quarters a minute (Standard MIDI Files 1.0, "Set Tempo")."""

Tokens = npt.NDArray[np.uint8]
"""NoteSeq tokens, shape (steps,) or (items, steps)."""

NoteArray = npt.NDArray[np.void]
"""Structured array of `NOTE_DTYPE`, shape (notes,)."""

NOTE_DTYPE = np.dtype(
    [("onset_tick", "<i8"), ("duration_tick", "<i8"), ("pitch", "u1"), ("velocity", "u1"), ("voice", "<i2")]
)
"""One note: onset and duration in ticks, pitch and velocity as in MIDI, and the number of its voice."""


def check_tokens(tokens: npt.ArrayLike) -> Tokens:
    """Return NoteSeq tokens as uint8; raise `InvalidTokensError` for no whole numbers, or some outside 0..129."""
    array = np.asarray(tokens)
    if array.size == 0:
        return array.astype(np.uint8)
    if not np.issubdtype(array.dtype, np.integer):
        raise InvalidTokensError(f"tokens must be whole numbers 0..{VOCABULARY_SIZE - 1}, got {array.dtype}")
    if array.min() < 0 or array.max() >= VOCABULARY_SIZE:
        wrong = array[(array < 0) | (array >= VOCABULARY_SIZE)].flat[0]
        raise InvalidTokensError(
            f"token {wrong} is outside the vocabulary 0..{VOCABULARY_SIZE - 1} (0..127 pitch, 128 hold, 129 rest)"
        )
    return array.astype(np.uint8, copy=False)


@dataclasses.dataclass(frozen=True)
class ContextLayout:
    """How a context is cut into past, middle and future.

    The default is MUSIB's: 6 + 4 + 6 measures of 4/4 with 24 steps each, 384 steps, middle at steps 144..239.
    """

    past_measures: int = 6
    middle_measures: int = 4
    future_measures: int = 6
    steps_per_measure: int = 24

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if value < (0 if field.name in {"past_measures", "future_measures"} else 1):
                raise InvalidInputError(f"{field.name} must be positive, got {value}")

    @functools.cached_property
    def n_measures(self) -> int:
        """Measures in a context."""
        return self.past_measures + self.middle_measures + self.future_measures

    @functools.cached_property
    def n_steps(self) -> int:
        """Steps in a context."""
        return self.n_measures * self.steps_per_measure

    @functools.cached_property
    def past(self) -> slice:
        """Steps of the past."""
        return slice(0, self.past_measures * self.steps_per_measure)

    @functools.cached_property
    def middle(self) -> slice:
        """Steps of the middle."""
        return slice(self.past.stop, self.past.stop + self.middle_steps)

    @functools.cached_property
    def middle_steps(self) -> int:
        """Number of steps in the middle."""
        return self.middle_measures * self.steps_per_measure

    @functools.cached_property
    def future(self) -> slice:
        """Steps of the future."""
        return slice(self.middle.stop, self.n_steps)


MUSIB_LAYOUT = ContextLayout()
"""The contexts of MUSIB: 144 steps of past, 96 of middle, 144 of future."""


@dataclasses.dataclass(frozen=True)
class TimeSignature:
    """A time signature from `tick` on."""

    tick: int
    numerator: int
    denominator: int

    def __post_init__(self) -> None:
        if self.tick < 0 or self.numerator < 1 or self.denominator < 1 or self.denominator & (self.denominator - 1):
            raise InvalidInputError(
                f"time signature {self.numerator}/{self.denominator} at tick {self.tick} is not one"
            )

    @property
    def quarters(self) -> float:
        """Length of one measure in quarter notes."""
        return 4 * self.numerator / self.denominator


@dataclasses.dataclass(frozen=True)
class Tempo:
    """A tempo from `tick` on, in quarter notes a minute."""

    tick: int
    bpm: float

    def __post_init__(self) -> None:
        if self.tick < 0 or not 0 < self.bpm < float("inf"):
            raise InvalidInputError(
                f"tempo {self.bpm} at tick {self.tick} is not one; expected quarters a minute above 0"
            )


@dataclasses.dataclass(frozen=True)
class KeySignature:
    """A key signature from `tick` on: sharps (positive) or flats (negative), -7..7."""

    tick: int
    fifths: int
    minor: bool = False

    def __post_init__(self) -> None:
        if self.tick < 0 or not -7 <= self.fifths <= 7:
            raise InvalidInputError(
                f"key signature of {self.fifths} fifths at tick {self.tick} is not one; expected -7..7"
            )


@dataclasses.dataclass(frozen=True, eq=False)
class Score:
    """Notes on a stated grid, with the signatures and tempi that the source gave.

    Parameters
    ----------
    notes
        Structured array of `NOTE_DTYPE`, shape (n_notes,), sorted by onset, voice, pitch. It is not copied and must
        not be written to.
    ticks_per_quarter
        The grid: ticks in one quarter note.
    time_signatures, tempos, key_signatures
        Sorted by tick. Empty where the source gives none: nothing is assumed here.
    voices
        Name of each voice; `notes["voice"]` indexes it.
    programs
        General MIDI program of each voice, 0..127, or `DRUMS`. Empty where the source gives none.
    """

    notes: NoteArray
    ticks_per_quarter: int
    time_signatures: tuple[TimeSignature, ...] = ()
    tempos: tuple[Tempo, ...] = ()
    key_signatures: tuple[KeySignature, ...] = ()
    voices: tuple[str, ...] = ("",)
    programs: tuple[int, ...] = ()

    _CHANGES: ClassVar[dict[str, type]] = {
        "time_signatures": TimeSignature,
        "tempos": Tempo,
        "key_signatures": KeySignature,
    }

    def __post_init__(self) -> None:
        if self.ticks_per_quarter < 1:
            raise InvalidInputError(f"ticks_per_quarter must be at least 1, got {self.ticks_per_quarter}")
        _check_notes(self.notes, len(self.voices))
        if self.programs and (
            len(self.programs) != len(self.voices) or not all(0 <= p <= DRUMS for p in self.programs)
        ):
            raise InvalidInputError(
                f"programs must be 0..{DRUMS}, one for each of {len(self.voices)} voices, got {self.programs}"
            )
        for name in self._CHANGES:
            ticks = [change.tick for change in getattr(self, name)]
            if ticks != sorted(ticks):
                raise InvalidInputError(f"{name} must be sorted by tick, got {ticks}")

    @property
    def end_tick(self) -> int:
        """End of the last note that ends, 0 for an empty score."""
        return int((self.notes["onset_tick"] + self.notes["duration_tick"]).max(initial=0))

    def voice(self, index: int) -> NoteArray:
        """Return the notes of one voice, in onset order."""
        notes: NoteArray = self.notes[self.notes["voice"] == index]
        return notes

    def seconds(self, ticks: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Return the times of ticks in seconds, the shape of `ticks`, by the tempi of the score.

        Before the first tempo it runs at `DEFAULT_BPM`; of several tempi at one tick the last counts.

        Examples
        --------
        >>> score = Score(np.zeros(0, NOTE_DTYPE), 2, tempos=(Tempo(4, 60.0),))
        >>> score.seconds([0, 4, 6]).tolist()
        [0.0, 1.0, 2.0]
        """
        bpm_at = {0: DEFAULT_BPM} | {tempo.tick: tempo.bpm for tempo in self.tempos}
        starts = np.array(list(bpm_at), dtype=np.float64)
        tick_sec = 60 / (np.array(list(bpm_at.values())) * self.ticks_per_quarter)
        start_sec = np.concatenate([[0.0], np.cumsum(np.diff(starts) * tick_sec[:-1])])
        at = np.asarray(ticks, dtype=np.float64)
        index = np.searchsorted(starts, at, side="right") - 1
        seconds: npt.NDArray[np.float64] = np.asarray(start_sec[index] + (at - starts[index]) * tick_sec[index])
        return seconds

    def to_dict(self) -> dict[str, Any]:
        """Return plain Python values that JSON can hold; `from_dict` is the inverse."""
        return {
            "notes": [list(note) for note in self.notes.tolist()],
            "ticks_per_quarter": self.ticks_per_quarter,
            "voices": list(self.voices),
            "programs": list(self.programs),
            **{name: [dataclasses.asdict(change) for change in getattr(self, name)] for name in self._CHANGES},
        }

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """Rebuild a score from `to_dict`."""
        changes = {name: tuple(kind(**change) for change in values[name]) for name, kind in cls._CHANGES.items()}
        notes = np.array([tuple(note) for note in values["notes"]], dtype=NOTE_DTYPE)
        names = {"voices": tuple(values["voices"]), "programs": tuple(values.get("programs", ()))}
        return cls(notes, values["ticks_per_quarter"], **names, **changes)


def _check_notes(notes: NoteArray, n_voices: int) -> None:
    if notes.dtype != NOTE_DTYPE or notes.ndim != 1:
        raise InvalidNotesError(f"notes must be a 1-D array of NOTE_DTYPE, got {notes.dtype} with shape {notes.shape}")
    rules = {
        "onset_tick must not be negative": notes["onset_tick"] < 0,
        "duration_tick must be at least 1": notes["duration_tick"] < 1,
        "pitch must lie in 0..127": notes["pitch"] > 127,
        "velocity must lie in 1..127": (notes["velocity"] < 1) | (notes["velocity"] > 127),
        f"voice must lie in 0..{n_voices - 1}": (notes["voice"] < 0) | (notes["voice"] >= n_voices),
    }
    for rule, broken in rules.items():
        if broken.any():
            index = int(np.argmax(broken))
            raise InvalidNotesError(f"{rule}; note {index} is {notes[index]}")
    order = np.lexsort((notes["pitch"], notes["voice"], notes["onset_tick"]))
    if not np.array_equal(order, np.arange(len(notes))):
        raise InvalidNotesError(
            "notes must be sorted by onset, voice, pitch; build them with symbolic.notes.make_notes"
        )
