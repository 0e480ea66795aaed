"""What a user sketches for SketchNet, and pitches and rhythm of a measure apart."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from music_evals.annotations import HOLD, MUSIB_LAYOUT
from music_evals.errors import ContextLengthError, InvalidInputError
from music_evals.models._measures import STEPS
from music_evals.symbolic import factorized
from music_evals.symbolic.noteseq import check_tokens

__all__ = ["Sketch", "SketchTensors", "factorize", "sketch_tensors"]

_N_MIDDLE = MUSIB_LAYOUT.middle_measures


@dataclasses.dataclass(frozen=True)
class Sketch:
    """What a user wants of the four measures of the middle; what is None is left to the network.

    `SketchNet` writes what is sketched as it stands here, unless its `obey_sketches` is off: then it may miss it.

    Parameters
    ----------
    pitches
        One entry a measure: None, or MIDI numbers 0..127 in the order in which they are to sound, 1 to 24 of them.
    rhythms
        One entry a measure: None, or 24 steps, each 1 onset, 2 hold or 3 rest.

    Raises
    ------
    InvalidInputError
        Not four entries, an entry of another form, or a measure with other numbers of pitches and of onsets.

    Examples
    --------
    >>> Sketch(pitches=((60, 62, 64), None, None, None)).pitches[0]
    (60, 62, 64)

    """

    pitches: tuple[tuple[int, ...] | None, ...] = (None,) * _N_MIDDLE
    rhythms: tuple[tuple[int, ...] | None, ...] = (None,) * _N_MIDDLE

    def __post_init__(self) -> None:
        rules = {
            "pitches": (self.pitches, range(128), range(1, STEPS + 1), "1 to 24 MIDI numbers 0..127"),
            "rhythms": (self.rhythms, range(1, 4), (STEPS,), "24 steps of 1 onset, 2 hold or 3 rest"),
        }
        for name, (entries, values, lengths, wanted) in rules.items():
            if not isinstance(entries, Sequence) or len(entries) != _N_MIDDLE:
                found = len(entries) if isinstance(entries, Sequence) else repr(entries)
                raise InvalidInputError(f"{name} needs one entry a measure of the middle, {_N_MIDDLE}; got {found}")
            for measure, entry in enumerate(entries):
                fits = (
                    isinstance(entry, Sequence)
                    and len(entry) in lengths
                    and all(isinstance(value, int | np.integer) and value in values for value in entry)
                )
                if entry is not None and not fits:
                    raise InvalidInputError(f"{name} of measure {measure} must be {wanted}, or None; got {entry}")
        for measure, (notes, steps) in enumerate(zip(self.pitches, self.rhythms, strict=True)):
            if notes is not None and steps is not None and len(notes) != steps.count(1):
                raise InvalidInputError(
                    f"measure {measure} has {len(notes)} pitches and a rhythm of {steps.count(1)} onsets; give as many "
                    "of both, or leave one to the network (None)"
                )

    @classmethod
    def from_tokens(cls, middle: npt.ArrayLike, *, pitch: bool = True, rhythm: bool = True) -> Self:
        """Take pitches, rhythm or both from a middle that is there, such as one that a user has edited.

        Parameters
        ----------
        middle
            NoteSeq tokens, shape (96,). A measure without an onset sketches no pitches.
        pitch, rhythm
            What to take.

        Raises
        ------
        InvalidTokensError, ContextLengthError
            Not the tokens of a middle.

        """
        tokens = check_tokens(middle)
        if tokens.shape != (MUSIB_LAYOUT.middle_steps,):
            raise ContextLengthError(f"expected a middle of shape ({MUSIB_LAYOUT.middle_steps},), got {tokens.shape}")
        parts = factorized.encode(tokens)
        pitches = [tuple(row[:n].tolist()) or None for row, n in zip(parts.px, parts.len_x, strict=True)]
        rhythms = [tuple(row.tolist()) for row in parts.rx]
        nothing = (None,) * _N_MIDDLE
        return cls(tuple(pitches) if pitch else nothing, tuple(rhythms) if rhythm else nothing)


class SketchTensors(NamedTuple):
    """Sketches side by side, with a filler for what is not sketched."""

    pitches: Tensor  # (batch, 4, 24), packed to the left
    lengths: Tensor  # (batch, 4), how many pitches there are
    rhythms: Tensor  # (batch, 4, 24): 0 onset, 1 hold, 2 rest
    given: Tensor  # (batch, 4, 2), bool: whether pitch and rhythm are sketched


def sketch_tensors(sketches: Sequence[Sketch]) -> SketchTensors:
    """Lay sketches side by side."""
    pitches = torch.full((len(sketches), _N_MIDDLE, STEPS), factorized.PAD)
    lengths = torch.ones(len(sketches), _N_MIDDLE, dtype=torch.int64)
    rhythms = torch.zeros_like(pitches)
    given = torch.zeros(len(sketches), _N_MIDDLE, 2, dtype=torch.bool)
    for row, sketch in enumerate(sketches):
        for measure, (notes, steps) in enumerate(zip(sketch.pitches, sketch.rhythms, strict=True)):
            given[row, measure] = torch.tensor([notes is not None, steps is not None])
            if notes is not None:
                pitches[row, measure, : len(notes)] = torch.tensor(notes)
                lengths[row, measure] = len(notes)
            if steps is not None:
                rhythms[row, measure] = torch.tensor(steps) - 1
    return SketchTensors(pitches, lengths, rhythms, given)


def factorize(measures: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Cut measures (n, 24) into packed pitches (n, 24), their number (n,) and rhythm classes (n, 24).

    The same as `symbolic.factorized.encode`, which counts the rhythm from 1.
    """
    onsets = measures < HOLD
    order = (~onsets).to(torch.uint8).argsort(dim=1, stable=True)  # onsets first, in their order
    lengths = onsets.sum(1)
    steps = torch.arange(STEPS, device=measures.device)
    pitches = measures.gather(1, order).masked_fill(steps >= lengths[:, None], factorized.PAD)
    return pitches, lengths, (measures - HOLD + 1).clamp(min=0)
