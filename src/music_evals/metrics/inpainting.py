"""Note metrics of score inpainting: how the notes of a filled middle compare with the true ones.

Conventions
-----------
- Sequences are NoteSeq tokens, shape (n, steps) or (steps,), dtype uint8: 0..127 onset of that pitch, 128 hold,
  129 rest. The published task has 96 steps, 4 measures of 24. A single sequence gives a single number.
- A note starts at a token < 128 and lasts to the next onset, the first rest or the end of the sequence. Holds at the
  start and holds after a rest belong to no note. The note metrics do not tell them from rests, so that where no note
  starts a side of rests and one of holds agree; `silence_divergence` tells them apart.
- A position is a step. Onsets of both sides at one step are *shared*.
- Scores are per item; the mean over items (macro average) is the published aggregate.

Metrics: `position_score`, `note_f1` (F1 scores), `pitch_accuracy`, `rhythm_accuracy`, `consonance_pitch_accuracy`
(conditional on shared positions), `self_replication_rate` (copying).

Variants
--------
=====================  ==============  ============================  ==========================
Case                   ``corrected``   ``paper``                     ``official``
=====================  ==============  ============================  ==========================
neither side has a     F1 scores 1,    NaN: the text divides 0 by 0  0
note                   accuracies NaN
only the estimate is   F1 scores 0,    as corrected                  0
empty                  accuracies NaN
only the reference is  F1 scores 0,    as corrected                  the authors' code fails:
empty                  accuracies NaN                                `InvalidInputError`
no shared position     accuracies NaN  NaN                           accuracies 0
=====================  ==============  ============================  ==========================

`note_f1` is ours and has no official code; under ``official`` it takes the conventions of the authors' F1.

``chen2020``, of the two accuracies alone, is what MUSIB changed: the accuracies of Music SketchNet, over time indexes
and not over notes. Of the steps where the reference has an onset, the share where the estimate has the same token
(pitch); of those where it holds or rests, the same (rhythm). NaN where the reference has no such step.

References
----------
K. Chen, C. Wang, T. Berg-Kirkpatrick, S. Dubnov: "Music SketchNet: controllable music generation via factorized
representations of pitch and rhythm", ISMIR 2020. Code: github.com/RetroCirce/Music-SketchNet,
``5-1-loss_and_accuracy.ipynb`` at ee3d0f8.

M. Araneda-Hernandez, F. Bravo-Marquez, D. Parra, R. F. Cádiz: "MUSIB: musical score inpainting benchmark", EURASIP
Journal on Audio, Speech, and Music Processing 2023:19, section "Note metrics". Official code:
github.com/maranedah/music_inpainting_benchmark, ``src/report/metrics.py`` at 567f4cc.

"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
import numpy.typing as npt

from music_evals.annotations import HOLD, MUSIB_LAYOUT, Tokens, check_tokens
from music_evals.errors import ContextLengthError, InvalidInputError, NoDataError
from music_evals.metrics.arrays import (
    VARIANTS,
    FloatArray,
    IntArray,
    by_chunks,
    check_contexts,
    check_middles,
    check_pairs,
    check_same_count,
    check_variant,
    warn_undefined,
)
from music_evals.metrics.note_counts import NoteCounts, count_notes

__all__ = [
    "ACCURACY_VARIANTS", "CHEN", "CONSONANCE", "VARIANTS", "NoteCounts", "consonance_pitch_accuracy", "consonance_rows",
    "count_notes", "note_counts", "note_f1", "note_scores", "pitch_accuracy", "position_score", "replication_kernel",
    "rhythm_accuracy", "self_replication_rate", "step_accuracies",
]  # fmt: skip

CHEN: Final = "chen2020"
"""The accuracies of Music SketchNet, over time indexes."""

ACCURACY_VARIANTS: Final = (*VARIANTS, CHEN)
"""Variants of `pitch_accuracy` and `rhythm_accuracy`."""

CONSONANCE: Final = (1.0, 0.0, 0.3, 0.5, 0.7, 0.8, 0.4, 0.9, 0.6, 0.7, 0.3, 0.1)
"""Weight of the interval between the true and the given pitch, by semitones modulo the octave: 0 minor second, 1 unison
and octave. Consonance by Schwartz, Howe and Purves ("The statistical structure of human speech sounds predicts musical
universals", Journal of Neuroscience 23(18), 2003), on the scale -1..1 to which Hall, Tamir and Rohrmeier bring it
("Optimising computational measures from behavioural data predicts perceived consonance", TISMIR 8(1), 2025, table 1:
-1, -.4, 0, .4, .6, -.2, .8, .2, .4, -.4, -.8, 1 from minor second to octave), moved to 0..1 by (x + 1) / 2."""

_NO_NOTE = "neither side has a note"
_NO_SHARED = "reference and estimate share no position"
_NO_STEP = "the reference has no onset (for pitch), or neither holds nor rests (for rhythm)"
_ACCURACIES = ("pitch_accuracy", "rhythm_accuracy")


def position_score(
    reference: npt.ArrayLike, estimate: npt.ArrayLike, *, variant: str = "corrected"
) -> FloatArray | np.float64:
    """F1 of the positions of the notes, pitch and duration left aside.

    2 |R & E| / (|R| + |E|) for the sets R and E of steps with an onset. In [0, 1], higher is better, symmetric. If
    neither side has a note it is 1, and undefined (NaN) under ``paper``.

    Parameters
    ----------
    reference, estimate
        NoteSeq tokens, shape (n, steps) or (steps,), values 0..129.
    variant
        ``"corrected"``, ``"official"`` or ``"paper"``; see the top of this module.

    Returns
    -------
    FloatArray or float
        Shape (n,), or one number for single sequences.

    Raises
    ------
    InvalidTokensError, ContextLengthError, PairCountError, UnknownNameError
        Input that is not two equal sets of token sequences, or an unknown variant.
    InvalidInputError
        ``official`` only: a reference without a note beside an estimate that has some.

    Notes
    -----
    "posF1" of MUSIB. Published as 2PR / (P + R), which is the same number where it is defined.

    Examples
    --------
    >>> position_score([60, 128, 62, 128], [60, 128, 128, 64]).item()
    0.5
    """
    return _note_metric("position_score", reference, estimate, variant)


def pitch_accuracy(
    reference: npt.ArrayLike, estimate: npt.ArrayLike, *, variant: str = "corrected"
) -> FloatArray | np.float64:
    """Share of equal pitches among the shared positions.

    In [0, 1], higher is better, symmetric. Undefined (NaN) where no position is shared: that failure is
    `position_score`'s to report. It is conditional, so that one sure note scores 1: rank with `note_f1`. Parameters and
    errors are those of `position_score`. "pAcc" of MUSIB, where ``official`` gives 0 instead of NaN. ``chen2020`` is
    that of Music SketchNet: the share of the reference's onsets that are met, not symmetric, NaN without one.
    """
    return _note_metric("pitch_accuracy", reference, estimate, variant)


def rhythm_accuracy(
    reference: npt.ArrayLike, estimate: npt.ArrayLike, *, variant: str = "corrected"
) -> FloatArray | np.float64:
    """Share of equal durations among the shared positions.

    In [0, 1], higher is better, symmetric. Undefined (NaN) where no position is shared. Durations are cut at the end of
    the sequence. Conditional like `pitch_accuracy`. Parameters and errors are those of `position_score`. "rAcc" of
    MUSIB, where ``official`` gives 0 instead of NaN. ``chen2020`` is that of Music SketchNet: the share of the
    reference's holds and rests that are met, which depends on how fine the steps are.
    """
    return _note_metric("rhythm_accuracy", reference, estimate, variant)


def note_f1(
    reference: npt.ArrayLike, estimate: npt.ArrayLike, *, variant: str = "corrected"
) -> FloatArray | np.float64:
    """F1 of the notes by position and pitch, unconditional: the metric to rank with.

    2 |R & E| / (|R| + |E|) for the sets R and E of (step, pitch). In [0, 1], higher is better, symmetric, never above
    `position_score`. If neither side has a note it is 1, and undefined (NaN) under ``paper``. Parameters and errors are
    those of `position_score`. Not in MUSIB.

    Examples
    --------
    >>> note_f1([60, 128, 62, 128], [60, 128, 63, 64]).item()  # one of two notes found, three given
    0.4
    """
    return _note_metric("note_f1", reference, estimate, variant)


def note_counts(reference: npt.ArrayLike, estimate: npt.ArrayLike) -> NoteCounts:
    """Return the counts that all note metrics are made of; input and errors as in `position_score`."""
    first, second, _ = check_pairs(reference, estimate)
    counts = by_chunks(lambda *rows: np.array(count_notes(*rows), dtype=np.float64), first, second)
    return NoteCounts(*counts.astype(np.int64))


def note_scores(counts: NoteCounts, *, variant: str = "corrected") -> dict[str, FloatArray]:
    """Return the four note metrics by name, shape (n,) each, from one set of counts.

    Raises
    ------
    InvalidInputError
        ``official`` only: a reference without a note beside an estimate that has some.
    """
    check_variant(variant)
    if variant == "official":
        failing = (counts.reference == 0) & (counts.estimate > 0)
        if failing.any():
            raise InvalidInputError(
                f"item {int(np.argmax(failing))}: the official code cannot score a reference without onset (it stops "
                f'with an IndexError); leave out such items ({int(failing.sum())} here) or use variant="corrected"'
            )
    empty = 0.0 if variant == "official" else np.nan
    return {
        "position_score": _f1(counts.shared, counts, variant),
        "pitch_accuracy": _ratio(counts.same_pitch, counts.shared, empty),
        "rhythm_accuracy": _ratio(counts.same_duration, counts.shared, empty),
        "note_f1": _f1(counts.same_pitch, counts, variant),
    }


def step_accuracies(reference: Tokens, estimate: Tokens) -> dict[str, tuple[FloatArray, IntArray]]:
    """Return the two accuracies of ``chen2020`` of checked middles, and how many steps they are of, (n,) each."""
    accuracies = {}
    for name, is_counted in (("pitch_accuracy", reference < HOLD), ("rhythm_accuracy", reference >= HOLD)):
        n_steps = is_counted.sum(axis=1)
        accuracies[name] = _ratio((is_counted & (reference == estimate)).sum(axis=1), n_steps, np.nan), n_steps
    return accuracies


def _note_metric(name: str, reference: npt.ArrayLike, estimate: npt.ArrayLike, variant: str) -> FloatArray | np.float64:
    check_variant(variant, ACCURACY_VARIANTS if name in _ACCURACIES else VARIANTS)
    first, second, single = check_pairs(reference, estimate)
    if variant == CHEN:
        scores, why = step_accuracies(first, second)[name][0], _NO_STEP
    else:
        scores = note_scores(note_counts(first, second), variant=variant)[name]
        why = _NO_SHARED if name in _ACCURACIES else _NO_NOTE
    warn_undefined(name, scores, why, stacklevel=4)
    return np.float64(scores[0]) if single else scores


def _f1(matched: IntArray, counts: NoteCounts, variant: str) -> FloatArray:
    if variant != "official":
        # 2PR / (P + R) as one division, which is defined where one side is empty
        return _ratio(2 * matched, counts.reference + counts.estimate, 1.0 if variant == "corrected" else np.nan)
    # theirs goes through precision and recall, which rounds otherwise
    precision, recall = _ratio(matched, counts.estimate, 0.0), _ratio(matched, counts.reference, 0.0)
    return _ratio(2 * (precision * recall), precision + recall, 0.0)


def _ratio(
    part: npt.NDArray[np.int64 | np.float64], whole: npt.NDArray[np.int64 | np.float64], empty: float
) -> FloatArray:
    result: FloatArray = np.divide(part, whole, out=np.full(len(whole), empty), where=whole > 0)
    return result


# Extensions: what the authors name as future work.


def consonance_pitch_accuracy(reference: npt.ArrayLike, estimate: npt.ArrayLike) -> FloatArray | np.float64:
    """Pitch accuracy that gives a wrong pitch the consonance of its interval with the true one.

    Mean over the shared positions of `CONSONANCE` at the distance in semitones, modulo the octave. In [0, 1], higher is
    better, symmetric, never below `pitch_accuracy`. An octave counts like the true pitch, as it does in the source;
    `pitch_accuracy` beside it tells the two apart. Undefined (NaN) where no position is shared. Input and errors are
    those of `position_score`; there are no variants.

    Examples
    --------
    >>> consonance_pitch_accuracy([60, 128, 62, 128], [67, 128, 62, 128]).item()  # a fifth, and the same
    0.95
    """
    first, second, single = check_pairs(reference, estimate)
    scores = by_chunks(consonance_rows, first, second)[0]
    warn_undefined("consonance_pitch_accuracy", scores, _NO_SHARED)
    return np.float64(scores[0]) if single else scores


def consonance_rows(reference: Tokens, estimate: Tokens) -> FloatArray:
    """Return `consonance_pitch_accuracy` of checked middles, shape (1, n): the kernel of a pass over many items."""
    items, steps = np.nonzero((reference < HOLD) & (estimate < HOLD))
    # int64, for differences of uint8 wrap around
    distance = np.abs(reference[items, steps].astype(np.int64) - estimate[items, steps])
    n = len(reference)
    total = np.bincount(items, np.array(CONSONANCE)[distance % 12], minlength=n)
    return np.atleast_2d(_ratio(total, np.bincount(items, minlength=n), np.nan))


def self_replication_rate(
    contexts: npt.ArrayLike, estimate: npt.ArrayLike, *, corpus: npt.ArrayLike | None = None, transposed: bool = False
) -> FloatArray:
    """Share of the middle's measures that are copies of a measure of the context, or of a corpus.

    A measure is a copy if its 24 tokens (onsets with pitch, holds, rests) occur as a measure of the past or the future
    of its own context, or, if `corpus` is given, as a measure of the corpus. Measures without onset are left out on
    both sides. In [0, 1]; neither direction is better: compare with the rate of the true middle. Undefined (NaN) for a
    middle without onset.

    Parameters
    ----------
    contexts
        Whole contexts, shape (n, 384), values 0..129; only past and future are read.
    estimate
        Middles, shape (n, 96), values 0..129.
    corpus
        Tokens of e.g. the training set, shape (..., steps) with steps a multiple of 24; read measure by measure in
        place of the context.
    transposed
        True also counts copies at another pitch: measures are compared relative to their first onset.

    Returns
    -------
    FloatArray
        Shape (n,).

    Raises
    ------
    InvalidTokensError, ContextLengthError, PairCountError
        Input that is not one middle a context, or a corpus that is not whole measures.
    NoDataError
        An empty corpus.
    """
    whole, middles = check_contexts(contexts), check_middles(estimate)
    check_same_count(whole, middles)
    rates: FloatArray = by_chunks(replication_kernel(corpus, transposed=transposed), whole, middles)[0]
    warn_undefined("self_replication_rate", rates, "the middle has no onset")
    return rates


def replication_kernel(corpus: npt.ArrayLike | None, *, transposed: bool) -> Callable[[Tokens, Tokens], FloatArray]:
    """Return what gives the `self_replication_rate` of checked contexts and middles, shape (1, n)."""
    sources = None if corpus is None else _corpus_measures(corpus, transposed=transposed)

    def kernel(whole: Tokens, middles: Tokens) -> FloatArray:
        measures, sounding = _measures(middles, transposed=transposed)
        if sources is None:
            outside = np.concatenate([whole[:, MUSIB_LAYOUT.past], whole[:, MUSIB_LAYOUT.future]], axis=1)
            around, _ = _measures(outside, transposed=transposed)
            # each measure of a middle with each measure around it
            copied = (measures[:, :, None] == around[:, None, :]).any(axis=2)
        else:
            copied = np.isin(measures.ravel(), sources).reshape(measures.shape)
        return np.atleast_2d(_ratio((copied & sounding).sum(axis=1), sounding.sum(axis=1), np.nan))

    return kernel


def _measures(tokens: Tokens, *, transposed: bool) -> tuple[npt.NDArray[np.void], npt.NDArray[np.bool_]]:
    """Return each measure as one comparable value, and whether it has an onset; both (n, measures)."""
    n_steps = MUSIB_LAYOUT.steps_per_measure
    content = np.ascontiguousarray(tokens).reshape(len(tokens), -1, n_steps)
    onsets = content < HOLD
    sounding = np.asarray(onsets.any(axis=2))
    if transposed:
        first = np.take_along_axis(content, onsets.argmax(axis=2)[..., None], axis=2).astype(np.int16)
        # -127..127 semitones from the first onset become 385..639, apart from hold and rest
        content = np.where(onsets, content - first + 512, content)
    # the bytes of 24 tokens as one value, which is compared as a whole
    measures: npt.NDArray[np.void] = content.view(f"V{content.itemsize * n_steps}")[..., 0]
    return measures, sounding


def _corpus_measures(corpus: npt.ArrayLike, *, transposed: bool) -> npt.NDArray[np.void]:
    tokens = check_tokens(corpus)
    n_steps = MUSIB_LAYOUT.steps_per_measure
    if not tokens.size:
        raise NoDataError("the corpus is empty; give it at least one measure, or None for the context")
    if tokens.shape[-1] % n_steps:
        raise ContextLengthError(f"the corpus must be whole measures of {n_steps} steps, got shape {tokens.shape}")
    measures, sounding = _measures(tokens.reshape(-1, n_steps), transposed=transposed)
    return np.unique(measures[sounding])
