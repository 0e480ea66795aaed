"""The tuning of a pair: how to read the pitch classes of an estimate in that of its reference.

Key, chords and chroma of a recording lie in a tuning of its own, and which of two neighbours a pitch between them
belongs to is a matter of a hair: of copies moved by 46 and 54 cents the first has the pitch classes of its original,
the second those a semitone higher. Here both sides are read in the reference's tuning, without a step between one
semitone and the next. Our own; the authors' code leaves each side in its own.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from music_evals.annotations import Chords, Chroma, Key
from music_evals.metrics.arrays import check_variant, undefined

__all__ = ["SAME_TUNING", "moved_label", "over_readings", "shared_readings", "tuning_cents"]

SAME_TUNING: Final = 0.25
"""Semitones by which two sides may be tuned apart before the pitch of one counts as moved."""

_ROOT: Final = re.compile("([A-G])([#b]*)")
_LETTERS: Final = {"C": 0, "D": 2, "E": 4, "F": 5, "G": 7, "A": 9, "B": 11}
_ROOTS: Final = ("C", "C#", "D", "D#", "E", "F", "F#", "G", "G#", "A", "A#", "B")


def shared_readings(reference: float, estimate: float) -> tuple[tuple[int, float], ...]:
    """How to read the pitch classes of an estimate in the tuning of its reference.

    With d the distance of the tunings, estimate less reference, k the nearest integer and e = d - k, the estimate's
    pitch classes lie k semitones and e above those of the reference. They are read as moved by k, and from |e| = 0.25
    on as moved to the next semitone as well, with a weight that grows evenly from 0 to 1/2 at the quarter tone, where
    both neighbours are equally near.

    Parameters
    ----------
    reference, estimate
        Their tunings in semitones, -0.5..0.5.

    Returns
    -------
    tuple of (int, float)
        Semitones by which to move the estimate's pitch classes up, and the weight of that reading; one or two, whose
        weights add up to 1.

    Examples
    --------
    >>> shared_readings(0.0, 0.1)
    ((0, 1.0),)
    >>> shared_readings(0.49, -0.49)
    ((-1, 1.0),)
    >>> shared_readings(0.0, 0.5)
    ((0, 0.5), (1, 0.5))
    """
    apart = estimate - reference
    nearest = round(apart)
    rest = apart - nearest
    weight = 0.5 * max(0.0, abs(rest) - SAME_TUNING) / (0.5 - SAME_TUNING)
    if not weight:
        return ((nearest, 1.0),)
    return ((nearest, 1.0 - weight), (nearest + (1 if rest > 0 else -1), weight))


def tuning_cents(reference: Chroma, estimate: Chroma, *, variant: str = "corrected") -> float:
    """How much higher the estimate is tuned than the reference, in cents, less whole semitones.

    -50..50; nearer to 0 is better, antisymmetric, 0 for identical recordings. A semitone and 10 cents are 10 cents:
    whole semitones are what the other scores see. Without pitches, as of drums, it says nothing. Undefined (NaN) where
    nothing sounds on a side.

    Parameters
    ----------
    reference, estimate
        Chroma, of which the tunings count.
    variant
        Checked only: neither paper nor code has it.

    Returns
    -------
    float
        Cents.

    Raises
    ------
    UnknownNameError
        An unknown variant.
    """
    check_variant(variant)
    for side, chroma in (("reference", reference), ("estimate", estimate)):
        if not chroma.frames.any():
            return undefined("tuning_cents", f"the {side} has no sounding frame")
    apart = estimate.tuning - reference.tuning
    return 100 * (apart - round(apart))


def over_readings(
    reference: Key | Chords | Chroma,
    estimate: Key | Chords | Chroma,
    score: Callable[[int], float],
    variant: str = "corrected",
) -> float:
    """Return the mean of a score over the readings of an estimate in its reference's tuning, by their weights.

    The score is given the semitones by which the estimate is moved up: 0 and nothing else but under ``"corrected"``.
    """
    if variant != "corrected":
        return score(0)
    return sum(weight * score(steps) for steps, weight in shared_readings(reference.tuning, estimate.tuning))


def moved_label(label: str, semitones: int) -> str:
    """Return a chord label in Harte syntax with its root moved up; what has no root stays as it is."""
    match = _ROOT.match(label)
    if match is None or not semitones % 12:
        return label
    root = _LETTERS[match[1]] + match[2].count("#") - match[2].count("b")
    return _ROOTS[(root + semitones) % 12] + label[match.end() :]
