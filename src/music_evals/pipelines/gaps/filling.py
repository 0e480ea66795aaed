"""Fill a gap in a melody with a model that is handed in, and compare what it wrote with the truth where it is known.

`fill` is the call that command, page and Python share: notes of one voice and the measures of the gap go in, ranked
candidates come out, as notes. Files are read and written by `symbolic.tunes`.

Two kinds of models fill gaps, and neither is shown anything of what stands in the gap:

- `protocols.GapInpainter`: any gap within its `gap_limits`. It is shown whole measures around the gap, as many as it
  can take, of any meter whose measures are whole multiples of its quantum. Notes can be locked.
- Any other `protocols.Inpainter`: four measures of four quarters, the middle of sixteen. A shorter gap is refused: a
  model that writes four measures at once has not been asked how it goes on from notes that are kept, and what is cut
  out of its middle need not lead to them.

A note never crosses an edge of the gap: one that sounds into the gap is cut there, one that sounds out of it becomes a
note of its own after the gap, and holds at the start of a filled gap are rests.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from music_evals.annotations import HOLD, MASK, MUSIB_LAYOUT, NoteArray, Tokens
from music_evals.deprecation import renamed_options
from music_evals.errors import ContextLengthError, InvalidInputError, NoDataError
from music_evals.metrics import inpainting as metrics
from music_evals.pipelines.gaps.diff import CHANGES, NoteDiff, diff_notes
from music_evals.pipelines.gaps.steering import end_locked, sketched
from music_evals.pipelines.gaps.stretches import Stretch, cut_stretch
from music_evals.protocols import GapInpainter, LikelihoodInpainter, NoteLikelihoodInpainter
from music_evals.symbolic import noteseq
from music_evals.symbolic.contexts import STEPS_PER_QUARTER
from music_evals.symbolic.notes import make_notes, rescale_tick

if TYPE_CHECKING:
    from music_evals.protocols import Inpainter
    from music_evals.symbolic.measures import MeterMap

__all__ = ["MAX_DRAWS", "SCORES", "Candidate", "Filling", "draw_candidates", "fill", "fill_gap", "rank"]

SCORES: Final = ("note_f1", "position_score", "pitch_accuracy", "rhythm_accuracy")
"""Scores of one candidate, the one to rank with first."""

DEFAULT_VELOCITY: Final = 64

MAX_DRAWS: Final = 8
"""Draws for each candidate that is asked for, at most, until all differ."""


@dataclasses.dataclass(frozen=True, eq=False)
class Candidate:
    """One filled gap.

    Parameters
    ----------
    number
        From 1, in the order of drawing.
    middle
        NoteSeq tokens of the gap, shape (steps,), values 0..129.
    scores
        Score -> value, NaN where undefined; empty where the truth is not known.
    diff
        Its notes against the true ones; None where these are not known.
    notes
        Its notes, in ticks of the tune that was given to `fill`; else in steps from the start of the gap.
    log_likelihood
        What it is ranked by, in nats; more is better. None where the model cannot say, or was not asked.
    """

    number: int
    middle: Tokens
    scores: Mapping[str, float] = dataclasses.field(default_factory=dict)
    diff: NoteDiff | None = None
    notes: NoteArray = dataclasses.field(default_factory=lambda: make_notes([], [], []))
    log_likelihood: float | None = None

    @property
    def row(self) -> dict[str, Any]:
        """Everything as one flat row of plain values."""
        counts = {} if self.diff is None else {kind: self.diff.count(kind) for kind in CHANGES}
        ranked = {} if self.log_likelihood is None else {"log_likelihood": self.log_likelihood}
        middle = " ".join(map(str, self.middle.tolist()))
        return {"candidate": self.number, **ranked, **self.scores, **counts, "middle": middle}


@dataclasses.dataclass(frozen=True, eq=False)
class Filling:
    """What `fill` returns.

    Parameters
    ----------
    candidates
        All different, the best first.
    ranked
        Whether the model ranked them by how likely they are; else they stand in the order in which they were drawn.
    stretch
        What the model was shown.
    truth
        The notes that stood in the gap, in the ticks of the tune; a note that sounds out of the gap ends with it. Empty
        where they are not judged by.
    remarks
        What a reader should know, a sentence each.
    """

    candidates: tuple[Candidate, ...]
    ranked: bool
    stretch: Stretch
    truth: NoteArray
    remarks: tuple[str, ...] = ()


@renamed_options(judge="evaluate")
def fill(
    notes: NoteArray,
    inpainter: Inpainter,
    *,
    bars: MeterMap,
    first: int,
    n_measures: int,
    keep: NoteArray | None = None,
    sketch: str | None = None,
    context: int | None = None,
    seed: int = 0,
    n_candidates: int = 1,
    evaluate: bool | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Filling:
    """Fill measures of a melody with a model, several times, and rank what it wrote.

    Parameters
    ----------
    notes
        One voice, shape (n,), in the ticks of `bars`; `symbolic.tunes.open_tune` reads it from a file, and
        `symbolic.contexts.pick_voice` takes the highest notes of one with chords. What stands in the gap is not shown
        to the model.
    inpainter
        A `protocols.Inpainter`, or a `protocols.GapInpainter`; see the top of this module.
    bars
        The measures of the tune, as of `symbolic.measures.meter_map`.
    first, n_measures
        Index of the first measure of the gap in `bars`, from 0, and how many.
    keep
        Notes of the gap that stay where they are, out of `notes`; for a `GapInpainter`.
    sketch
        One of `steering.SKETCHES`: what stands in the gap is a sketch, whose rhythm stays, or its pitches in their
        order; for a model that takes sketches, such as SketchNet. Measures without a note are left to the model.
    context
        Measures on each side of the gap that a `GapInpainter` is shown, where the tune has them; None: all it can take.
    seed
        Draw i is made with ``numpy.random.default_rng([seed, i])``: asking for more does not change the first ones.
    n_candidates
        How many, at least 1. A draw that has the notes of one before does not count; at most `MAX_DRAWS` draws are made
        for each. A deterministic model gives one.
    evaluate
        Whether to score candidates against the notes that stand in the gap; None does so if the gap holds a note that
        is no sketch.
    progress
        Called with the number of candidates so far and of those wanted.

    Returns
    -------
    Filling
        Candidates in the ticks of the tune, the likeliest first where the model can say how likely they are. New notes
        have the median velocity of those that the model was shown.

    Raises
    ------
    NoDataError
        The model would see no note.
    InvalidInputError
        A system that must see the truth, a negative seed, fewer than 1 candidate or measure, locks that cannot be kept,
        nothing in the gap to sketch with, or a model that takes no sketch.
    UnknownNameError
        Another kind of sketch.
    ContextLengthError, PolyphonyError
        As `stretches.cut_stretch`.
    InvalidNotesError
        The model does not know a pitch of the tune.

    Examples
    --------
    >>> from music_evals.models.baselines import make_baseline
    >>> from music_evals.annotations import Score, TimeSignature
    >>> from music_evals.symbolic.measures import meter_map
    >>> tune = Score(make_notes(range(64), [1] * 64, [60, 62, 64, 65] * 16), 1, (TimeSignature(0, 4, 4),))
    >>> filling = fill(tune.notes, make_baseline("copy_past"), bars=meter_map(tune), first=6, n_measures=4)
    >>> filling.candidates[0].notes["pitch"][:4].tolist(), filling.candidates[0].scores["note_f1"]
    ([60, 62, 64, 65], 1.0)
    """
    stretch = cut_stretch(notes, inpainter, bars=bars, first=first, n_measures=n_measures, keep=keep, context=context)
    known = sketch is None and bool((stretch.tokens[stretch.gap] < HOLD).any())
    truth_known = known if evaluate is None else evaluate
    if sketch is not None:
        inpainter = sketched(inpainter, stretch.tokens[stretch.gap], sketch)
    (start, stop), tpq = bars.span(first, n_measures), bars.ticks_per_quarter
    onsets, end = notes["onset_tick"], stretch.origin_tick + rescale_tick(len(stretch.tokens), STEPS_PER_QUARTER, tpq)
    inside = (onsets >= start) & (onsets < stop)
    shown = (onsets < end) & (onsets + notes["duration_tick"] > stretch.origin_tick) & ~inside
    velocities = np.concatenate([notes["velocity"][shown], [] if keep is None else keep["velocity"]])
    velocity = int(np.median(velocities)) if len(velocities) else DEFAULT_VELOCITY
    candidates: list[Candidate] = []
    wanted = 1 if inpainter.deterministic else n_candidates
    for candidate in draw_candidates(
        stretch.tokens,
        stretch.hidden,
        inpainter,
        gap=stretch.gap,
        seed=seed,
        n_candidates=n_candidates,
        evaluate=truth_known,
    ):
        # steps from the start of the gap, in the ticks of the tune
        onsets, durations = candidate.notes["onset_tick"], candidate.notes["duration_tick"]
        begins, ends = (start + rescale_tick(steps, STEPS_PER_QUARTER, tpq) for steps in (onsets, onsets + durations))
        written = make_notes(begins, np.maximum(ends - begins, 1), candidate.notes["pitch"], velocity)
        candidates.append(dataclasses.replace(candidate, notes=written))
        if progress is not None:
            progress(len(candidates), wanted)
    ranked = all(candidate.log_likelihood is not None for candidate in candidates)
    truth = notes[inside & truth_known].copy()
    truth["duration_tick"] = np.minimum(truth["duration_tick"], stop - truth["onset_tick"])
    remarks = (*stretch.remarks, *_remarks(inpainter, len(candidates), n_candidates, ranked=ranked))
    return Filling(rank(candidates), ranked, stretch, truth, remarks)


def rank(candidates: Sequence[Candidate]) -> tuple[Candidate, ...]:
    """Return candidates by their likelihood, the best first; in the order given where a model cannot say."""
    if any(candidate.log_likelihood is None for candidate in candidates):
        return tuple(candidates)
    return tuple(sorted(candidates, key=lambda candidate: -(candidate.log_likelihood or 0.0)))


@renamed_options(judge="evaluate")
def draw_candidates(
    tokens: Tokens,
    hidden: npt.NDArray[np.bool_],
    inpainter: Inpainter,
    *,
    gap: slice | None = None,
    seed: int = 0,
    n_candidates: int = 1,
    evaluate: bool = True,
    truth: Tokens | None = None,
    likelihood: bool = True,
) -> Iterator[Candidate]:
    """Fill the hidden steps of a stretch until there are enough different candidates; each is yielded when it is there.

    Parameters
    ----------
    tokens
        NoteSeq tokens, shape (steps,), values 0..129; the inpainter never sees the hidden ones.
    hidden
        Which steps to fill, shape (steps,). A model that is no `GapInpainter` fills the middle of sixteen measures.
    inpainter
        What fills them. A deterministic one gives one candidate, however many are asked for.
    gap
        Steps of a candidate: the hidden ones and what is locked between and beside them. None takes those from the
        first hidden one to the last.
    seed, n_candidates
        As `fill`.
    evaluate
        Whether what stands in the gap is the truth, to compare with.
    truth
        The true tokens of the gap, where the locked notes in `tokens` are others; None takes those of `tokens`.
    likelihood
        Whether to ask the model how likely each candidate is, which may take as long as filling the gap.

    Yields
    ------
    Candidate
        The steps of the gap; its notes in steps from there.

    Raises
    ------
    NoDataError, InvalidInputError
        As `fill`.
    ContextLengthError
        A stretch that is not of the form which the model fills.
    """
    if not hidden.any():
        raise InvalidInputError("every note of the gap is to be kept: nothing is left to fill")
    distinct: set[bytes] = set()
    steps = np.flatnonzero(hidden)
    place = slice(int(steps[0]), int(steps[-1]) + 1) if gap is None else gap
    true = (tokens[place] if truth is None else truth) if evaluate else None
    n_draws = MAX_DRAWS * n_candidates
    for candidate in _draws(
        tokens, hidden, inpainter, gap=place, seed=seed, n_candidates=n_candidates, n_draws=n_draws, truth=true
    ):
        key = candidate.notes.tobytes()
        if key in distinct:
            continue
        distinct.add(key)
        whole = _with(tokens, place, candidate.middle)
        value = _log_likelihood(inpainter, whole, hidden) if likelihood else None
        yield dataclasses.replace(candidate, number=len(distinct), log_likelihood=value)
        if len(distinct) == n_candidates:
            return


@renamed_options(judge="evaluate")
def fill_gap(
    context: Tokens, inpainter: Inpainter, *, seed: int = 0, n_candidates: int = 1, evaluate: bool = True
) -> Iterator[Candidate]:
    """Fill the middle of one context several times; each candidate is yielded as soon as it is there.

    Parameters
    ----------
    context
        NoteSeq tokens of sixteen measures, shape (384,). The inpainter never sees the middle.
    inpainter
        What fills it. A deterministic one gives one candidate, however many are asked for.
    seed
        Candidate i draws from ``numpy.random.default_rng([seed, i])``: asking for more does not change the first ones.
    n_candidates
        How many, at least 1; two may be alike.
    evaluate
        Whether the middle of the context is the true one, to compare the candidates with.

    Yields
    ------
    Candidate

    Raises
    ------
    NoDataError
        Past and future have no note.
    InvalidInputError
        A system that must see the true middle, a negative seed, or fewer than 1 candidate.
    """
    yield from _draws(
        context,
        _middle_hidden(),
        inpainter,
        gap=MUSIB_LAYOUT.middle,
        seed=seed,
        n_candidates=n_candidates,
        n_draws=n_candidates,
        truth=context[MUSIB_LAYOUT.middle] if evaluate else None,
    )


def _draws(
    tokens: Tokens,
    hidden: npt.NDArray[np.bool_],
    inpainter: Inpainter,
    *,
    gap: slice,
    seed: int,
    n_candidates: int,
    n_draws: int,
    truth: Tokens | None,
) -> Iterator[Candidate]:
    """Check a stretch, and fill it again and again."""
    if not (tokens[~hidden] < HOLD).any():
        raise NoDataError("there are no notes before and after the gap")
    if inpainter.sees_reference:
        raise InvalidInputError(f"{inpainter.name} sees the true middle, and so fills no gap; name another model")
    for name, value, least in (("seed", seed, 0), ("n_candidates", n_candidates, 1)):
        if value < least:
            raise InvalidInputError(f"`{name}` must be {least} or more, got {value}")
    any_gap = isinstance(inpainter, GapInpainter)
    if not any_gap and not np.array_equal(hidden, _middle_hidden()):
        raise ContextLengthError(f"{inpainter.name} fills the middle four of sixteen measures, and nothing else")
    masked = np.where(hidden, np.uint8(MASK), tokens)[None]
    for number in range(1, 2 if inpainter.deterministic else n_draws + 1):
        rng = np.random.default_rng([seed, number])
        if isinstance(inpainter, GapInpainter):
            filled = np.where(hidden, inpainter.infill(masked, hidden[None], rng=rng)[0], tokens)
        else:
            filled = _with(tokens, gap, inpainter.inpaint(masked, rng=rng)[0])
        middle = noteseq.check_tokens(end_locked(filled, hidden, gap)[gap])
        notes = noteseq.decode(middle)
        yield Candidate(number, middle, notes=notes) if truth is None else _scored(number, truth, middle, notes)


def _scored(number: int, truth: Tokens, middle: Tokens, notes: NoteArray) -> Candidate:
    counts = metrics.note_counts(truth[None], middle[None])
    values = metrics.note_scores(counts)
    return Candidate(
        number, middle, {name: float(values[name][0]) for name in SCORES}, diff_notes(truth, middle), notes
    )


def _log_likelihood(inpainter: Inpainter, whole: Tokens, hidden: npt.NDArray[np.bool_]) -> float | None:
    if isinstance(inpainter, GapInpainter):
        return float(inpainter.gap_log_likelihood(whole[None], hidden[None])[0])
    if isinstance(inpainter, NoteLikelihoodInpainter):
        return -float(inpainter.note_nll(whole[None]).nats[0])
    if isinstance(inpainter, LikelihoodInpainter):
        return -float(inpainter.nll(whole[None]).sum())
    return None


def _middle_hidden() -> npt.NDArray[np.bool_]:
    hidden = np.zeros(MUSIB_LAYOUT.n_steps, dtype=np.bool_)
    hidden[MUSIB_LAYOUT.middle] = True
    return hidden


def _with(tokens: Tokens, gap: slice, middle: Tokens) -> Tokens:
    whole = tokens.copy()
    whole[gap] = middle
    return whole


def _remarks(inpainter: Inpainter, n: int, wanted: int, *, ranked: bool) -> Iterator[str]:
    if inpainter.deterministic and wanted > 1:
        yield f"{inpainter.name} uses no randomness as it is set: there is one candidate, whatever the seed"
    elif n < wanted:
        yield f"{n} of {wanted} candidates differ: {MAX_DRAWS * wanted} draws gave no more"
    if n > 1 and not ranked:
        yield f"{inpainter.name} cannot say how likely a candidate is: they stand in the order of drawing"
