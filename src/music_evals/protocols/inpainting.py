"""What the benchmark may know of a system that fills gaps, and those that ship with the package."""

from __future__ import annotations

import math
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from music_evals.annotations import Tokens


@runtime_checkable
class Inpainter(Protocol):
    """A model that fills the middle of a context.

    Attributes
    ----------
    name
        System id in records and tables.
    deterministic
        True when `inpaint` does not use `rng`: one seed is enough.
    sees_reference
        True for a control or a leaking protocol, which gets the true middle; such a system stands outside of all
        comparisons. False for every honest model: the middle that it gets is masked (`annotations.MASK`).
    """

    name: str
    deterministic: bool
    sees_reference: bool

    def inpaint(self, contexts: Tokens, *, rng: np.random.Generator) -> Tokens:
        """Return middles, shape (n, 96), values 0..129, for contexts of shape (n, 384)."""
        ...


@runtime_checkable
class LikelihoodInpainter(Inpainter, Protocol):
    """An inpainter that can also say how likely each true token is, by the model's own definition of a step's NLL."""

    def nll(self, contexts: Tokens) -> npt.NDArray[np.float64]:
        """Return the negative log-likelihood (nats, >= 0) of each true token, (n, 96), for whole contexts (n, 384)."""
        ...


class NoteLikelihood(NamedTuple):
    """How likely whole true middles are."""

    nats: npt.NDArray[np.float64]
    """Negative log-likelihood of each middle, shape (n,)."""
    n_notes: npt.NDArray[np.int64]
    """Notes of each middle, shape (n,)."""

    @property
    def bits_per_note(self) -> float:
        """Bits of all middles over their notes; NaN where they have none."""
        n = int(self.n_notes.sum())
        return float(self.nats.sum()) / math.log(2) / n if n else math.nan


@runtime_checkable
class NoteLikelihoodInpainter(Inpainter, Protocol):
    """An inpainter that can also say how likely the whole true middle is: what `nll` leaves to each model's definition.

    It is the probability of the middle given past and future alone, under the distribution that the model samples from
    at temperature 1, before anything is cut off; each note or token is given those before it. Divided by the notes it
    is a number that models share, as far as their vocabularies allow: VLI knows sixteenths, 86 pitches and durations
    up to two bars, and middles are rounded to these before they are asked for, so that it has fewer to tell apart than
    a model of tokens with 24 steps a measure.
    """

    def note_nll(self, contexts: Tokens) -> NoteLikelihood:
        """Return the negative log-likelihood of the middles of whole contexts (n, 384), and their notes."""
        ...


class GapLimits(NamedTuple):
    """What gaps a `GapInpainter` can take, in steps of its grid of 24 steps to four quarters."""

    steps: int
    """Of the whole stretch, gap and context, at most; a longer piece is cut around its gap."""
    hidden_steps: int
    """From the first hidden step to the last, at most."""
    quantum: int
    """The stretch and what comes before it in the piece are whole multiples of this."""


@runtime_checkable
class GapInpainter(Inpainter, Protocol):
    """An inpainter that can fill any gap, not only the middle four measures of sixteen.

    Attributes
    ----------
    gap_limits
        What it can take.
    """

    gap_limits: GapLimits

    def infill(self, tokens: Tokens, hidden: npt.NDArray[np.bool_], *, rng: np.random.Generator) -> Tokens:
        """Return the tokens with the hidden steps filled, shape (n, steps), values 0..129.

        Parameters
        ----------
        tokens
            Stretches of a melody, shape (n, steps), values 0..129 where they are not hidden; others are not read.
        hidden
            Which steps to fill, the same shape; what is not hidden stays, also between hidden steps ("keep this note").
        rng
            The only source of randomness; each item has numbers of its own.
        """
        ...

    def gap_log_likelihood(self, tokens: Tokens, hidden: npt.NDArray[np.bool_]) -> npt.NDArray[np.float64]:
        """Return how likely what stands at the hidden steps is given all others, shape (n,), nats, at most 0.

        It ranks candidates for one gap: more is better. It need not be a normalised likelihood.
        """
        ...


INPAINTERS: dict[str, str] = {
    "anticipation_rnn": "music_evals.models.anticipation_rnn:AnticipationRNN",
    "infill_transformer": "music_evals.models.infill_transformer:InfillTransformer",
    "inpaintnet": "music_evals.models.inpaintnet:InpaintNet",
    "sketchnet": "music_evals.models.sketchnet:SketchNet",
    "vli": "music_evals.models.vli:VLI",
}
"""Model type -> ``module:class`` of every inpainter with weights."""

CONTROL = "reference"
"""The baseline that returns the true middle: it must score perfectly and stands outside of all comparisons."""

CONTROLS = (CONTROL, "best_lag")
"""The baselines that see the true middle and stand outside of all comparisons; ``best_lag`` chooses what it copies."""

BASELINES: dict[str, str] = dict.fromkeys(
    (
        "silence",
        "repeat_last_measure",
        "copy_past",
        "interpolation_copy",
        "last_pitch_beats",
        "mode_pitch_beats",
        "lag_vote",
        "markov",
        "corpus_prior",
        "best_lag",
        CONTROL,
    ),
    "music_evals.models.baselines:make_baseline",
)
"""Baseline -> ``module:function``; the function takes the name and the training contexts and returns an `Inpainter`."""

NEAR_COPY = 14 / 16
"""From this value of the columns ``near_train`` and ``repeats_in_context`` on, a middle is called a near copy."""
