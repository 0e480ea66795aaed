"""Marks of rhyming lines against reference marks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from music_evals.errors import InvalidInputError
from music_evals.metrics._undefined import undefined

__all__ = ["Agreement", "rhyme_agreement"]


class Agreement(NamedTuple):
    """Marks against reference marks; 0..1 each, higher is better, NaN where undefined.

    Attributes
    ----------
    precision, recall, f1
        Of the marked lines.

    """

    precision: float
    recall: float
    f1: float


def rhyme_agreement(reference_marks: Sequence[bool], marks: Sequence[bool]) -> Agreement:
    """Compare rhyme marks, such as those found by a program with those of people.

    Parameters
    ----------
    reference_marks
        One a line, n of them: whether it rhymes.
    marks
        n of them, of the same lines.

    Returns
    -------
    Agreement
        Precision is NaN where no line is marked, recall where no line should be, F1 where neither.

    Warns
    -----
    UndefinedMetricWarning
        Where one of them is NaN.

    Raises
    ------
    InvalidInputError
        Different numbers of marks.

    Examples
    --------
    >>> rhyme_agreement([True, True, False, True], [True, True, True, False])
    Agreement(precision=0.6666666666666666, recall=0.6666666666666666, f1=0.6666666666666666)

    """
    if len(reference_marks) != len(marks):
        raise InvalidInputError(
            f"{len(reference_marks)} reference marks and {len(marks)} marks; give one of each a line"
        )
    n_reference, n_marked = sum(map(bool, reference_marks)), sum(map(bool, marks))
    both = sum(bool(first and second) for first, second in zip(reference_marks, marks, strict=True))
    return Agreement(
        both / n_marked if n_marked else undefined("precision of rhymes", "no line is marked"),
        both / n_reference if n_reference else undefined("recall of rhymes", "no line has a reference mark"),
        2 * both / (n_reference + n_marked)
        if n_reference + n_marked
        else undefined("F1 of rhymes", "no line is marked on any side"),
    )
