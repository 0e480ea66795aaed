"""What a network has to beat: simple ways to fill a middle, and to predict a cell of a roll, under the same protocols.

Conventions
-----------
- A copy takes tokens as they are. Where the copied stretch starts with a hold, the middle starts with a hold too and
  goes on with whatever sounds at the end of the past: nothing is invented to take its place.
- The honest ones see the context with its middle masked. Two are controls, which see the true middle and stand outside
  of all comparisons: ``"reference"`` returns it, and must score perfectly; ``"best_lag"`` chooses by it which stretch
  of the context to copy, and shows how far copying could go.
- Training windows overlap by up to 15 measures, and are taken as they come: a passage that lies in many windows counts
  once for each.

Piano rolls. On a grid of 32nd notes nearly every step is the one before, and what changes does so on few steps of the
beat. A model that sees the steps around the one in question can copy; `hidden` takes away the nearest of them.

Conventions of rolls:

- With `hidden` steps hidden on either side, a rule copies the nearest visible step: the one hidden + 1 away.
- Before the first step and after the last there is silence, as in the padding of the published model.
- Steps are counted from the start of the roll. A rule of every n-th step takes all music to change on these alone: 4
  steps are an eighth note on the grid of 8 steps a quarter, 2 a sixteenth.
- A rule is sure of itself: its probabilities are 0 and 1, and one wrong cell makes the likelihood of a piece 0.
  `RollBaseline.fitted` gives the same rule the probabilities that its two answers have on training pieces.

Source of the rules: ours. Published numbers to set beside them: Lu et al., "Actions speak louder than listening" (ACM
MM 2021), table 1.
"""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Callable, Iterable
from typing import Final, Self

import numpy as np
import numpy.typing as npt

from music_evals.annotations import HOLD, MUSIB_LAYOUT, REST, Cells, PianoRoll, Tokens
from music_evals.errors import InvalidInputError, NoDataError, UnknownNameError
from music_evals.models.layers.lag_votes import decode_expected_f1, lag_marginals
from music_evals.protocols import CONTROLS
from music_evals.symbolic.noteseq import check_contexts, mask_middle

__all__ = [
    "BASELINES", "ROLL_BASELINES", "Baseline", "MarkovChain", "RollBaseline", "best_lag", "copy_past",
    "interpolation_copy", "lag_vote", "last_pitch_beats", "make_baseline", "make_roll_baseline", "mode_pitch_beats",
    "repeat_last_measure", "silence",
]  # fmt: skip

MARKOV_ORDER = 2
"""Default order of the Markov baseline; the data of 136 songs is too thin for more."""

_MIDDLE = MUSIB_LAYOUT.middle
_MEASURE = MUSIB_LAYOUT.steps_per_measure
_BEAT = _MEASURE // 4  # four beats a measure

Fill = Callable[[Tokens, np.random.Generator], Tokens]
"""From checked contexts (n, 384) and randomness to middles (n, 96)."""


@dataclasses.dataclass(frozen=True, eq=False)
class Baseline:
    """A baseline as a `protocols.Inpainter`.

    Parameters
    ----------
    name
        System id.
    fill
        What it does.
    deterministic, sees_reference
        See `protocols.Inpainter`.
    """

    name: str
    fill: Fill
    deterministic: bool = True
    sees_reference: bool = False

    def inpaint(self, contexts: Tokens, *, rng: np.random.Generator) -> Tokens:
        """Return middles, shape (n, 96), values 0..129, of contexts (n, 384).

        The middle is masked here, unless `sees_reference`; `rng` is not used where `deterministic`. What is no context
        raises `InvalidTokensError` or `ContextLengthError`.
        """
        return self.fill(check_contexts(contexts) if self.sees_reference else hide_middle(contexts), rng)


def silence(contexts: Tokens) -> Tokens:
    """Return rests."""
    return np.full((len(contexts), MUSIB_LAYOUT.middle_steps), REST, dtype=np.uint8)


def repeat_last_measure(contexts: Tokens) -> Tokens:
    """Return the last measure of the past, four times."""
    return np.tile(contexts[:, _MIDDLE.start - _MEASURE : _MIDDLE.start], MUSIB_LAYOUT.middle_measures)


def copy_past(contexts: Tokens) -> Tokens:
    """Return the last four measures of the past."""
    return contexts[:, _MIDDLE.start - MUSIB_LAYOUT.middle_steps : _MIDDLE.start].copy()


def interpolation_copy(contexts: Tokens) -> Tokens:
    """Return the last two measures of the past, then the first two of the future."""
    half = MUSIB_LAYOUT.middle_steps // 2
    past = contexts[:, _MIDDLE.start - half : _MIDDLE.start]
    return np.concatenate([past, contexts[:, _MIDDLE.stop : _MIDDLE.stop + half]], axis=1)


def last_pitch_beats(contexts: Tokens) -> Tokens:
    """Return one note a beat on the last pitch of the past, held from beat to beat.

    Where the past has no note the middle is rests.
    """
    past = contexts[:, MUSIB_LAYOUT.past]
    onsets = past < HOLD
    last = past.shape[1] - 1 - onsets[:, ::-1].argmax(axis=1)
    middles = np.full((len(contexts), MUSIB_LAYOUT.middle_steps), HOLD, dtype=np.uint8)
    middles[:, ::_BEAT] = past[np.arange(len(past)), last][:, None]
    middles[~onsets.any(axis=1)] = REST
    return middles


def mode_pitch_beats(contexts: Tokens) -> Tokens:
    """Return one note a beat on the pitch that starts most often on that beat of the context's measures.

    The pitch of a beat of the measure is the one with the most onsets there in past and future; of equals the one with
    the most onsets anywhere in the context, then the lower one. So is it where no note of the context starts on a beat.
    Where the context has no note at all the middle is rests.
    """
    n = len(contexts)
    visible = np.concatenate([contexts[:, MUSIB_LAYOUT.past], contexts[:, MUSIB_LAYOUT.future]], axis=1)
    everywhere = _count_pitches(visible)
    beats = np.stack([_count_pitches(visible[:, beat::_MEASURE]) for beat in range(0, _MEASURE, _BEAT)], axis=1)
    # onsets on the beat decide, those anywhere only between equals: there are fewer of them than steps
    pitches = (beats * visible.shape[1] + everywhere[:, None]).argmax(axis=2)
    middles = np.full((n, MUSIB_LAYOUT.middle_steps), HOLD, dtype=np.uint8)
    middles[:, ::_BEAT] = np.tile(pitches, MUSIB_LAYOUT.middle_measures)
    middles[~everywhere.any(axis=1)] = REST
    return middles


def _count_pitches(tokens: Tokens) -> npt.NDArray[np.int64]:
    """Return the number of onsets of each pitch in each row, shape (n, 128)."""
    rows, steps = np.nonzero(tokens < HOLD)
    counts = np.bincount(rows * HOLD + tokens[rows, steps], minlength=len(tokens) * HOLD)
    return counts.reshape(len(tokens), HOLD)


def lag_vote(contexts: Tokens) -> Tokens:
    """Return what the context votes for: at every lag of whole quarters, as loud as it agrees with itself there.

    No training. See `layers.lag_votes` for the vote, and for the decoding, which takes the notes that promise the
    highest note F1.
    """
    # a few contexts at a time: their marginals fill 6 MB
    parts = (contexts[start : start + 64] for start in range(0, len(contexts), 64))
    return np.concatenate([silence(contexts[:0]), *(decode_expected_f1(lag_marginals(part)) for part in parts)])


def best_lag(contexts: Tokens) -> Tokens:
    """Return the four measures of the context that have the best note F1 with the true middle, which this control sees.

    They start on any quarter and lie wholly in the past or in the future. Of equals the nearest, the past first.
    """
    n_steps, truth = MUSIB_LAYOUT.middle_steps, contexts[:, _MIDDLE]
    past = range(_MIDDLE.start - n_steps, -1, -_BEAT)
    future = range(_MIDDLE.stop, contexts.shape[1] - n_steps + 1, _BEAT)
    middles, best = silence(contexts), np.full(len(contexts), -1.0)
    # lags of equal distance follow each other, the past first
    for start in (start for pair in zip(past, future, strict=True) for start in pair):
        copy = contexts[:, start : start + n_steps]
        right = ((copy == truth) & (truth < HOLD)).sum(axis=1)
        notes = (copy < HOLD).sum(axis=1) + (truth < HOLD).sum(axis=1)
        f1 = np.divide(2 * right, notes, out=np.ones(len(contexts)), where=notes > 0)
        better = f1 > best
        middles[better], best[better] = copy[better], f1[better]
    return middles


def corpus_prior(train_contexts: Tokens) -> Fill:
    """Return a filler that copies the middle of a train window, each as likely as any other, whatever the context."""
    middles = check_contexts(train_contexts)[:, _MIDDLE].copy()

    def fill(contexts: Tokens, rng: np.random.Generator) -> Tokens:
        chosen: Tokens = middles[rng.integers(len(middles), size=len(contexts))]
        return chosen

    return fill


Event = tuple[int, int]
"""A note or a rest: (pitch or `REST`, duration in steps)."""


class MarkovChain:
    """A Markov chain of order k over (pitch, duration) pairs.

    A rest is a pair too, with `REST` for a pitch. The longest suffix of the last k pairs that was seen in training
    decides what may follow (backing off to shorter ones, at last to none), and what follows is drawn as often as it
    did there. Pairs are drawn until the middle is full; the last one is cut by the future.

    Pairs whose length is not known are not learnt: those cut by an edge of a window. At generation the last pair of
    the past ends with the past, and what the past holds before its first onset or rest is left out.

    Parameters
    ----------
    train_contexts
        Whole contexts, shape (n, 384).
    order
        k, at least 1.

    Raises
    ------
    InvalidInputError
        An order below 1.
    NoDataError
        The contexts hold no pair of known length.
    """

    def __init__(self, train_contexts: Tokens, *, order: int = MARKOV_ORDER) -> None:
        if order < 1:
            raise InvalidInputError(f"the order of a Markov chain must be at least 1, got {order}")
        self.order = order
        counts: dict[tuple[Event, ...], collections.Counter[Event]] = collections.defaultdict(collections.Counter)
        for tokens in check_contexts(train_contexts):
            events = _events(tokens)[:-1]  # the length of the last is not known, nor of a rest that opens the window
            events = events[1:] if tokens[0] == REST else events
            for index, event in enumerate(events):
                for length in range(min(order, index) + 1):
                    counts[tuple(events[index - length : index])][event] += 1
        if not counts:
            raise NoDataError("a Markov chain needs training contexts with notes; these hold none of known length")
        self._followers = {
            history: (list(counter), np.cumsum(list(counter.values()))) for history, counter in counts.items()
        }

    def follow(self, history: tuple[Event, ...], rng: np.random.Generator) -> Event:
        """Draw the pair that follows a history, of which the last `order` pairs count."""
        suffix = history[-self.order :]
        while suffix not in self._followers:
            suffix = suffix[1:]
        events, cumulative = self._followers[suffix]
        return events[int(cumulative.searchsorted(rng.integers(cumulative[-1]), side="right"))]

    def fill(self, contexts: Tokens, rng: np.random.Generator) -> Tokens:
        """Return middles, shape (n, 96), for contexts of shape (n, 384)."""
        middles = silence(contexts)
        for middle, past in zip(middles, contexts[:, MUSIB_LAYOUT.past], strict=True):
            history = tuple(_events(past)[-self.order :])
            position = 0
            while position < len(middle):
                pitch, duration = self.follow(history, rng)
                if pitch != REST:
                    middle[position : position + duration] = HOLD
                    middle[position] = pitch
                history = (*history, (pitch, duration))[-self.order :]
                position += duration
        return middles


def _events(tokens: Tokens) -> list[Event]:
    """Return all pairs of a sequence; the last one ends with it.

    They start at an onset, and at a rest that follows a sounding step or opens the sequence.
    """
    silent = tokens == REST
    # A hold after a rest belongs to no note (see symbolic.noteseq): it prolongs the rest.
    last = np.maximum.accumulate(np.where(tokens != HOLD, np.arange(len(tokens)), -1))
    resting = (last >= 0) & silent[last]
    before = np.concatenate([[False], resting[:-1]])
    starts = np.flatnonzero((tokens < HOLD) | (silent & ~before))
    durations = np.diff(np.append(starts, len(tokens)))
    return list(zip(tokens[starts].tolist(), durations.tolist(), strict=True))


def _plain(function: Callable[[Tokens], Tokens]) -> Callable[[Tokens | None], Fill]:
    return lambda _train_contexts: lambda contexts, _rng: function(contexts)


def _fitted(name: str, make: Callable[[Tokens], Fill]) -> Callable[[Tokens | None], Fill]:
    def make_or_raise(train_contexts: Tokens | None) -> Fill:
        if train_contexts is None or len(train_contexts) == 0:
            raise NoDataError(
                f"the baseline {name!r} is fitted on training contexts, and there are none; pass train_contexts"
            )
        return make(train_contexts)

    return make_or_raise


BASELINES: dict[str, Callable[[Tokens | None], Fill]] = {
    "silence": _plain(silence),
    "repeat_last_measure": _plain(repeat_last_measure),
    "copy_past": _plain(copy_past),
    "interpolation_copy": _plain(interpolation_copy),
    "last_pitch_beats": _plain(last_pitch_beats),
    "mode_pitch_beats": _plain(mode_pitch_beats),
    "lag_vote": _plain(lag_vote),
    "markov": _fitted("markov", lambda train_contexts: MarkovChain(train_contexts).fill),
    "corpus_prior": _fitted("corpus_prior", corpus_prior),
    "best_lag": _plain(best_lag),
    "reference": _plain(lambda contexts: contexts[:, _MIDDLE].copy()),
}
"""Name -> maker of its filler from training contexts (which most do not need)."""

_RANDOM = frozenset({"markov", "corpus_prior"})
_SEES_REFERENCE = frozenset(CONTROLS)


def make_baseline(name: str, train_contexts: Tokens | None = None) -> Baseline:
    """Return one of `BASELINES` as a `protocols.Inpainter`.

    Only ``"markov"`` and ``"corpus_prior"`` are fitted, on whole contexts of the train split, shape (n, 384); without
    any they raise `NoDataError`. A name that there is not raises `UnknownNameError`, which offers the nearest.
    """
    if name not in BASELINES:
        raise UnknownNameError("baseline", name, BASELINES)
    fill = BASELINES[name](train_contexts)
    return Baseline(name, fill, deterministic=name not in _RANDOM, sees_reference=name in _SEES_REFERENCE)


def hide_middle(contexts: npt.ArrayLike) -> Tokens:
    """Return checked contexts with `annotations.MASK` in the middle, whatever stood there."""
    array = np.array(contexts)
    if array.ndim == 2 and array.shape[1] == MUSIB_LAYOUT.n_steps:
        array[:, MUSIB_LAYOUT.middle] = REST
    return mask_middle(check_contexts(array))


# --- cells of piano rolls: rules that copy a visible step


Rule = Callable[[Cells, int], Cells]
"""From true cells (steps, 84) and the distance of the nearest visible step to cells of the same shape."""


@dataclasses.dataclass(frozen=True)
class RollBaseline:
    """A rule as a `protocols.CellPredictor`.

    Parameters
    ----------
    name
        System id.
    rule
        What it does.
    silent, sounding
        Probability that a cell sounds where the rule says that it is silent, and where it says that it sounds.

    Raises
    ------
    InvalidInputError
        Probabilities outside of 0..1.
    """

    name: str
    rule: Rule
    silent: float = 0.0
    sounding: float = 1.0

    def __post_init__(self) -> None:
        if not (0 <= self.silent <= 1 and 0 <= self.sounding <= 1):
            raise InvalidInputError(f"probabilities must lie in 0..1, got {self.silent} and {self.sounding}")

    def cell_probabilities(self, roll: PianoRoll, *, hidden: int = 0) -> npt.NDArray[np.float64]:
        """Return how likely each cell of a true roll sounds, shape (steps, 84), 0..1; its own step is not read.

        `hidden` steps on either side of the step in question are hidden; fewer than 0 raise `InvalidInputError`.
        """
        return np.where(self._predict(roll, hidden), self.sounding, self.silent)

    def fitted(self, rolls: Iterable[PianoRoll], *, hidden: int = 0) -> Self:
        """Return the same rule with the probabilities that its answers have on training pieces, for likelihoods.

        A cell that the rule says sounds does so in s of n cases, which gives (s + 1) / (n + 2): never 0 nor 1. Where
        that falls below 0.5, the rule no longer predicts that anything sounds; take error rates of the rule as it is.
        `hidden` is as the probabilities will be asked for: what is copied from afar is right less often. Without rolls
        `NoDataError` is raised, for fewer than 0 hidden steps `InvalidInputError`.
        """
        cases, sounds = np.zeros(2, dtype=np.int64), np.zeros(2, dtype=np.int64)
        for roll in rolls:
            predicted = self._predict(roll, hidden)
            cases += [np.sum(~predicted), np.sum(predicted)]
            sounds += [np.sum(roll.cells & ~predicted), np.sum(roll.cells & predicted)]
        if not cases.any():
            raise NoDataError("a rule is fitted to training pieces; give at least one roll")
        silent, sounding = ((sounds + 1) / (cases + 2)).tolist()
        return dataclasses.replace(self, silent=silent, sounding=sounding)

    def _predict(self, roll: PianoRoll, hidden: int) -> Cells:
        if hidden < 0:
            raise InvalidInputError(f"hidden must be at least 0 steps, got {hidden}")
        return self.rule(roll.cells, hidden + 1)


def make_roll_baseline(name: str) -> RollBaseline:
    """Return one of `ROLL_BASELINES`; another name raises `UnknownNameError`."""
    if name not in ROLL_BASELINES:
        raise UnknownNameError("baseline", name, ROLL_BASELINES)
    return RollBaseline(name, ROLL_BASELINES[name])


def _copy(cells: Cells, distance: int) -> Cells:
    """Return cells moved by steps: later, so that each is the one before, or earlier, where the distance is below 0."""
    copied = np.zeros_like(cells)
    if distance > 0:
        copied[distance:] = cells[:-distance]
    else:
        copied[:distance] = cells[-distance:]
    return copied


def _copy_around(period: int) -> Rule:
    """Return the rule that copies the step after on every n-th step, where notes start, and else the one before."""

    def rule(cells: Cells, distance: int) -> Cells:
        copied = _copy(cells, distance)
        copied[::period] = _copy(cells, -distance)[::period]
        return copied

    return rule


ROLL_BASELINES: Final[dict[str, Rule]] = {
    "silence": lambda cells, _: np.zeros_like(cells),
    "copy_previous": _copy,
    "copy_next": lambda cells, distance: _copy(cells, -distance),
    "copy_every_4": _copy_around(4),
    "copy_every_2": _copy_around(2),
}
"""Name -> rule: nothing sounds; the step before; the step after; the two-line rule, which copies the step after on
every fourth (or every second) step and the step before on all others."""
