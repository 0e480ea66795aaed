"""The infill transformer: a bidirectional transformer over quarters that reads how a melody agrees with itself.

A stretch of a melody is cut into quarters of six steps, and each is one place of the transformer. What is hidden is
`MASK`. For each two quarters it is worked out how well the visible melody agrees with itself at their distance around
them (`agreement`, the vote of the baseline ``lag_vote`` with several reaches); small networks turn that,
and the distance, into a bias of every head of attention. Each hidden step is then a mixture of what some pointers copy
from the same step of other quarters, and of a softmax of its own; the pointers are scored by the same agreement and by
the states of both quarters, and start out as the lag vote itself.

Two distributions come from one network. The marginals of all hidden steps, given what is visible, are what ``"best"``
is decoded from: the notes that promise the highest note F1. The chain fills quarter after quarter, step after step,
each given all before it: ``"sample"`` draws from it, and the likelihood of a gap is exact under it. In the chain a
pointer goes on copying the quarter that it copies, and each token is weighed by its interval from the pitch before it
and from the first one after the gap: without that its melodies leap. Training hides gaps of random place and length,
shows parts of them again, and asks for both.

This is our own design. Ideas are of Vaswani et al., "Attention is all you need" (2017); Raffel et al., "Exploring the
limits of transfer learning" (2020), for biases by distance; See, Liu and Manning, "Get to the point: summarization with
pointer-generator networks" (2017), for the mixture; Uria, Murray and Larochelle, "A deep and tractable density
estimator" (2014), for one network that is given any part of what it is to fill.
"""

import dataclasses
import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn import functional

from music_evals.annotations import HOLD, MASK, MUSIB_LAYOUT, REST, VOCABULARY_SIZE, Tokens, check_tokens
from music_evals.errors import ContextLengthError, InvalidInputError
from music_evals.models.layers.lag_votes import decode_expected_f1
from music_evals.models.layers.networks import SizedConfig, StepwiseNetwork, draw
from music_evals.protocols import GapLimits
from music_evals.protocols.settings import check_rules
from music_evals.symbolic.contexts import STEPS_PER_QUARTER as STEPS
from music_evals.symbolic.noteseq import check_contexts

__all__ = ["DECODINGS", "SIZES", "InfillTransformer", "InfillTransformerConfig"]

LIMITS = GapLimits(steps=504, hidden_steps=192, quantum=STEPS)
"""What gaps the network takes."""

_MIDDLE = MUSIB_LAYOUT.middle
_HIDDEN = np.zeros(MUSIB_LAYOUT.n_steps, dtype=bool)  # the middle of the benchmark
_HIDDEN[_MIDDLE] = True
_SHORTEST, _LONGEST = 4, 32  # quarters


class Gaps(NamedTuple):
    """Which steps are hidden, and the quarters that hold them: equally many in each row."""

    hidden: Tensor  # (batch, steps), bool
    quarters: Tensor  # (batch, g), int64


def middle_gaps(n: int, n_steps: int) -> Gaps:
    """Hide the middle of the benchmark."""
    quarters = torch.arange(_MIDDLE.start // STEPS, _MIDDLE.stop // STEPS)
    return Gaps(torch.from_numpy(_HIDDEN[:n_steps]).repeat(n, 1), quarters.expand(n, -1))


def draw_gaps(n: int, n_steps: int, varied: float, shown: float) -> Gaps:
    """Hide a gap in each row.

    All gaps of a batch have one length: that of the benchmark's middle, or, for a share `varied` of the batches, 4 to
    32 quarters. The same share of the rows has it anywhere, the others as near to the middle as may be. Of a share
    `shown` of the rows some is shown: the first quarters, as a chain that goes on has them, or single steps or quarters
    anywhere, as a user keeps notes. At least one quarter stays hidden.
    """
    n_quarters, length = n_steps // STEPS, MUSIB_LAYOUT.middle_steps // STEPS
    if torch.rand(()) < varied:
        length = int(torch.randint(_SHORTEST, min(_LONGEST, n_quarters // 2) + 1, ()))
    middle = min(_MIDDLE.start // STEPS, n_quarters - length)
    anywhere = torch.randint(n_quarters - length + 1, (n,))
    starts = torch.where(torch.rand(n) < varied, anywhere, middle)
    quarters = starts[:, None] + torch.arange(length)  # (n, g)
    # some is shown: a prefix, whole quarters, or steps
    order = torch.arange(length).expand(n, -1)
    prefix = order < torch.randint(length, (n, 1))
    whole_quarters = torch.rand(n, length) < torch.rand(n, 1)
    steps = torch.rand(n, length, STEPS) < torch.rand(n, 1, 1)
    ways = torch.stack(
        [prefix[..., None].expand(-1, -1, STEPS), whole_quarters[..., None].expand(-1, -1, STEPS), steps]
    )
    way = torch.multinomial(torch.tensor([0.6, 0.2, 0.2]), n, replacement=True)
    visible = ways[way, torch.arange(n)] & (torch.rand(n) < shown)[:, None, None]
    visible[torch.arange(n), torch.randint(length, (n,))] &= ~visible.all((1, 2))[:, None]
    hidden = torch.zeros(n, n_quarters, STEPS, dtype=torch.bool)
    hidden[torch.arange(n)[:, None], quarters] = ~visible
    return Gaps(hidden.view(n, n_steps), quarters)


def gap_quarters(hidden: Tensor) -> Tensor:
    """Return the quarters of each row with a hidden step, in order, shape (batch, g), -1 where a row has fewer."""
    there = hidden.view(len(hidden), -1, STEPS).any(-1)  # (batch, q)
    n, place = int(there.sum(1).max()), torch.arange(there.shape[1], device=hidden.device)
    ordered = torch.where(there, place, there.shape[1]).sort(1).values[:, :n]
    return torch.where(ordered < there.shape[1], ordered, -1)


def masked_stretches(tokens: npt.ArrayLike, hidden: npt.NDArray[np.bool_]) -> Tokens:
    """Return checked stretches with `MASK` at the hidden steps, whatever stood there."""
    array, mask = np.array(tokens), np.asarray(hidden)
    if array.ndim != 2 or mask.shape != array.shape or mask.dtype != bool:
        raise InvalidInputError(
            f"expected tokens (n, steps) and hidden of the same shape, true where a step is to be filled; got "
            f"{array.shape} and {mask.dtype} {mask.shape}"
        )
    n_steps = array.shape[1]
    if n_steps % LIMITS.quantum or not 0 < n_steps <= LIMITS.steps:
        raise ContextLengthError(
            f"infill_transformer takes stretches of at most {LIMITS.steps} steps, in whole quarters of "
            f"{LIMITS.quantum} steps; got {n_steps}: cut the stretch around the gap"
        )
    places = np.where(mask, np.arange(n_steps), -1).max(axis=1, initial=-1), np.argmax(mask, axis=1)
    longest = int((places[0] - places[1] + 1).max(initial=0))
    if longest > LIMITS.hidden_steps:
        raise ContextLengthError(
            f"infill_transformer fills at most {LIMITS.hidden_steps} steps from the first hidden one to the last; got "
            f"{longest}: fill the gap in parts"
        )
    array[mask] = REST
    masked = check_tokens(array).copy()
    masked[mask] = MASK
    return masked


DECODINGS = ("best", "sample", "argmax")
"""How a gap is filled; none reads what is hidden."""

SIZES = {
    "small": {"model_size": 128, "n_layers": 4, "n_heads": 4, "inner_size": 384, "step_size": 96},
    "tiny": {"model_size": 96, "n_layers": 2, "n_heads": 4, "inner_size": 192, "step_size": 64},
}
"""Size -> the numbers that it stands for: what is shipped, and one for trials."""

_FARTHEST = 64  # quarters; what lies further away is as far as that


@dataclasses.dataclass(frozen=True)
class InfillTransformerConfig(SizedConfig):
    """Sizes of the network, what it may use, how it is trained, and the default decoding.

    A value outside its range raises `InvalidInputError`, a name that does not exist `UnknownNameError`.

    Parameters
    ----------
    model_type
        Always ``"infill_transformer"``; tells a reader of config.json which class to load.
    size
        One of `SIZES`; gives every size below that is 0 its value.
    model_size, n_layers, n_heads, inner_size
        Width, number of layers, heads of each, and width of the feed-forward networks.
    step_size
        Width of the network that decides each step.
    embedding_size
        Length of the vector of one token.
    pair_size
        Width of the network from the alignment of two quarters to the biases of attention.
    n_pointers
        What copies from other quarters; with 0 there is only the network's own softmax.
    votes
        Whether the network is given how well the melody agrees with itself.
    dropout
        Everywhere, 0..1.
    varied_gaps
        In varied training, the share of contexts whose gap lies anywhere and has any length; the others have the gap
        of the benchmark.
    shown
        In varied training, the share of contexts of whose gap some is shown.
    chain_weight
        What the loss of the chain counts beside that of the marginals.
    decoding
        One of `DECODINGS`.
    temperature, top_p
        Of ``"sample"``: 1 and 1 draw from the network's own distribution.
    """

    model_type: str = "infill_transformer"
    size: str = "small"
    model_size: int = 0
    n_layers: int = 0
    n_heads: int = 0
    inner_size: int = 0
    step_size: int = 0
    embedding_size: int = 24
    pair_size: int = 24
    n_pointers: int = 4
    votes: bool = True
    dropout: float = 0.15
    varied_gaps: float = 0.5
    shown: float = 0.5
    chain_weight: float = 0.5
    decoding: str = "best"

    def __post_init__(self) -> None:
        self._check_sized(
            InfillTransformer,
            SIZES,
            at_least_one=("embedding_size", "pair_size"),
            shares=("dropout",),
            probabilities=("varied_gaps", "shown"),
        )
        rules = {f"{name} must not be negative": getattr(self, name) >= 0 for name in ("n_pointers", "chain_weight")}
        rules[f"model_size must be a multiple of n_heads ({self.n_heads})"] = self.model_size % self.n_heads == 0
        check_rules(self, rules)


# What is summed up of two stretches that lie a lag apart: of which notes, how fast it fades with the distance in
# quarters, and on which side of the quarter that asks.
_KERNELS = (
    ("pitch", 4.0, "both"),
    ("pitch", 12.0, "both"),
    ("pitch", 36.0, "both"),
    ("pitch", 12.0, "before"),
    ("pitch", 12.0, "after"),
    ("rhythm", 4.0, "both"),
    ("rhythm", 12.0, "both"),
)
_SHRINKAGE = 0.25
_COUNTED = (12.0, "both")  # how far, and on which side, notes are counted for the last feature
FEATURES = (*(f"{kind} {reach:g} {side}" for kind, reach, side in _KERNELS), "notes of pitch 12 both")
"""Features that align two quarters, in the order of `agreement`."""

# How a head starts out, in turn: what the features and the distance in quarters, back and forth, weigh. Without it all
# hidden quarters would be alike for long. A vote looks away from the quarter itself, which always agrees with itself.
_VOTE, _NEAR_VOTE = {"pitch 12 both": 8.0}, {"pitch 4 both": 4.0}
_FIRST_HEADS: tuple[tuple[dict[str, float], float, float], ...] = (
    (_VOTE, 0.0, 0.0),
    ({}, 0.5, 2.0),
    ({}, 2.0, 0.5),
    (_NEAR_VOTE, 0.05, 0.05),
    ({}, 0.1, 0.1),
    ({}, 0.0, 0.0),
)
_FIRST_POINTERS = ((_VOTE, 0.0, 0.0), (_NEAR_VOTE, 0.0, 0.0))  # the first is the baseline ``lag_vote``; the others flat
_NOT_ITSELF = 8.0

_ALL = slice(None)
_POINTER_SIZE = 32
_BY_CHANCE = 0.3  # how well what is hidden fits what is given
_LEAP = 24  # semitones


def agreement(tokens: Tensor, visible: Tensor) -> Tensor:
    """Return how well a melody agrees with itself around each two quarters, shape (batch, q, q, features).

    Tokens and what is visible have the shape (batch, steps), int64 and bool; whole quarters. ``[b, here, there]``
    compares the stretch around `here` with the one that lies as far from it as `there` does. The features are Dice
    coefficients as in `layers.lag_votes`, of onset and pitch or of onsets alone, quarter by quarter, and the logarithm
    of how many notes there were to compare. What is hidden is not read.
    """
    batch, n = len(tokens), tokens.shape[1] // STEPS
    device = tokens.device
    onsets = ((tokens < HOLD) & visible).view(batch, n, STEPS).float()
    shown = visible.view(batch, n, STEPS).float()
    pitches = functional.one_hot(tokens.clamp(max=HOLD), HOLD + 1)[..., :HOLD].view(batch, n, STEPS, HOLD)
    pitches = (pitches * onsets[..., None]).flatten(2)  # (batch, q, 6 * 128)
    across = shown.transpose(1, 2)
    with torch.autocast(tokens.device.type, enabled=False):
        notes = onsets @ across + shown @ onsets.transpose(1, 2)  # (batch, q, q): those with both steps visible
        shared = {"pitch": pitches @ pitches.transpose(1, 2), "rhythm": onsets @ onsets.transpose(1, 2)}
        # by lag: row l holds what lies l - (n - 1) quarters apart, by where its first half lies
        place = torch.arange(n, device=device)
        other = place[None, :] + torch.arange(1 - n, n, device=device)[:, None]  # (lags, q)
        there = (other >= 0) & (other < n)
        flat = (place[None, :] * n + other.clamp(0, n - 1)).flatten()
        by_lag = {
            name: pairs.flatten(1)[:, flat].view(batch, 2 * n - 1, n) * there
            for name, pairs in (*shared.items(), ("notes", notes))
        }
        away = place[:, None] - place[None, :]  # (from, asked): above 0 is after what asks
        sides = {"both": away.abs() >= 0, "before": away <= 0, "after": away >= 0}
        back = (place[None, :] - place[:, None] + n - 1) * n + place[:, None]  # (asked, there) in (lags, q)
        coefficients, n_notes = [], {}
        for kind, reach, side in _KERNELS:
            kernel = torch.exp(-away.abs() / reach) * sides[side]  # (q, q)
            n_notes[reach, side] = by_lag["notes"] @ kernel
            coefficients.append(2 * (by_lag[kind] @ kernel) / (n_notes[reach, side] + _SHRINKAGE))
        amount = torch.log1p(n_notes[_COUNTED]) / 4
        stacked = torch.stack([*coefficients, amount], dim=-1)  # (batch, lags, q, features)
    return stacked.flatten(1, 2)[:, back.flatten()].view(batch, n, n, -1)


def step_one_hot(tokens: Tensor, visible: Tensor) -> Tensor:
    """Return what stands at each step of each quarter, (batch, q, 6 * 130): one-hot, and zeros where it is hidden."""
    one_hot = functional.one_hot(tokens.clamp(max=VOCABULARY_SIZE - 1), VOCABULARY_SIZE) * visible[..., None]
    return one_hot.view(len(tokens), -1, STEPS * VOCABULARY_SIZE).float()


class Sources(NamedTuple):
    """What stands where: of all quarters."""

    one_hot: Tensor  # (batch, q, 6 * 130), zeros where hidden
    any_visible: Tensor  # (batch, q)


class PairBias(nn.Module):
    """From the alignment of two quarters, and how far they lie apart, to a number for each head and each pointer."""

    def __init__(self, heads: tuple[int, int, int], hidden_size: int, farthest: int) -> None:
        """Take layers, heads of each and pointers; the width in between; the distance beyond which all are alike."""
        super().__init__()
        n_layers, n_heads, n_pointers = heads
        n = n_layers * n_heads + n_pointers
        self.farthest = farthest
        self.features = nn.Linear(len(FEATURES), hidden_size)
        self.lags = nn.Embedding(2 * farthest + 1, hidden_size)
        self.out = nn.Linear(hidden_size, n)
        self.by_features = nn.Linear(len(FEATURES), n, bias=False)
        self.by_lag = nn.Embedding(2 * farthest + 1, n)
        nn.init.normal_(self.lags.weight, std=0.1)
        nn.init.normal_(self.out.weight, std=0.02)
        nn.init.zeros_(self.out.bias)
        nn.init.zeros_(self.by_features.weight)
        nn.init.zeros_(self.by_lag.weight)
        starts = [_FIRST_HEADS[head % len(_FIRST_HEADS)] for _ in range(n_layers) for head in range(n_heads)]
        starts += _FIRST_POINTERS[:n_pointers]
        distance = torch.arange(-farthest, farthest + 1)
        with torch.no_grad():
            for head, (votes, back, forth) in enumerate(starts):
                for name, weight in votes.items():
                    self.by_features.weight[head, FEATURES.index(name)] = weight
                fall = back * distance.clamp(max=0).abs() + forth * distance.clamp(min=0)
                self.by_lag.weight[:, head] = -fall - _NOT_ITSELF * bool(votes) * (distance == 0)

    def forward(self, features: Tensor) -> Tensor:
        """Return (batch, heads, q, q) of features (batch, q, q, features)."""
        n = features.shape[1]
        place = torch.arange(n, device=features.device)
        lags = (place[None, :] - place[:, None]).clamp(-self.farthest, self.farthest) + self.farthest
        x = functional.gelu(self.features(features) + self.lags(lags))
        bias: Tensor = self.out(x) + self.by_features(features) + self.by_lag(lags)
        return bias.permute(0, 3, 1, 2)


class Edges(nn.Module):
    """How many quarters it is to the nearest visible ones, before and after."""

    def __init__(self, size: int, farthest: int) -> None:
        super().__init__()
        self.farthest = farthest
        self.before, self.after = (nn.Embedding(farthest + 1, size) for _ in range(2))
        for table in (self.before, self.after):
            nn.init.normal_(table.weight, std=0.2)

    def forward(self, any_visible: Tensor) -> Tensor:
        """Return (batch, q, size) of which quarters (batch, q) have something visible."""
        before = _since_visible(any_visible).clamp(max=self.farthest)
        after = _since_visible(any_visible.flip(1)).flip(1).clamp(max=self.farthest)
        distances: Tensor = self.before(before) + self.after(after)
        return distances


def _since_visible(any_visible: Tensor) -> Tensor:
    """Return how many quarters each lies after the last one with something visible; very many if there is none."""
    place = torch.arange(any_visible.shape[1], device=any_visible.device)
    last: Tensor = torch.where(any_visible, place, -any_visible.shape[1] * 10**3).cummax(1).values
    return place - last


class Block(nn.Module):
    """Attention with a bias for each pair of quarters, then a feed-forward network; each is normalised first."""

    def __init__(self, size: int, n_heads: int, inner_size: int, dropout: float) -> None:
        super().__init__()
        self.n_heads = n_heads
        self.attention_norm = nn.LayerNorm(size)
        self.into = nn.Linear(size, 3 * size)
        self.out = nn.Linear(size, size)
        self.norm = nn.LayerNorm(size)
        self.inner = nn.Linear(size, inner_size)
        self.outer = nn.Linear(inner_size, size)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, bias: Tensor) -> Tensor:
        """Return states (batch, q, size); `bias` is (batch, heads, q, q)."""
        batch, n, size = x.shape
        heads = self.into(self.attention_norm(x)).view(batch, n, 3, self.n_heads, size // self.n_heads)
        query, key, value = heads.permute(2, 0, 3, 1, 4)  # (batch, heads, q, size / heads) each
        scores = query @ key.transpose(-1, -2) / math.sqrt(size // self.n_heads) + bias
        looked = self.dropout(scores.softmax(-1)) @ value
        x = x + self.dropout(self.out(looked.transpose(1, 2).reshape(batch, n, size)))
        after: Tensor = x + self.dropout(self.outer(self.dropout(functional.gelu(self.inner(self.norm(x))))))
        return after


class StepHead(nn.Module):
    """From the states of quarters to the distribution of each of their steps: pointers, and a softmax of its own."""

    def __init__(self, size: int, step_size: int, embedding_size: int, n_pointers: int, dropout: float) -> None:
        super().__init__()
        self.n_pointers, self.step_size = n_pointers, step_size
        self.norm = nn.LayerNorm(size)
        if n_pointers:
            self.query = nn.Linear(size, n_pointers * _POINTER_SIZE)
            self.key = nn.Linear(size, n_pointers * _POINTER_SIZE)
            nn.init.zeros_(self.key.weight)  # at first alignment alone decides
            nn.init.zeros_(self.key.bias)
            self.slip = nn.Parameter(torch.full((n_pointers,), -2.0))  # logit of the chance to copy something else
        self.steps = nn.Linear(size, STEPS * step_size)
        self.before = nn.Embedding(VOCABULARY_SIZE + 1, embedding_size)
        self.read = nn.ModuleList(nn.Linear(i * embedding_size, step_size) for i in range(1, STEPS))
        self.step_norm = nn.LayerNorm(step_size)
        self.inner = nn.Linear(step_size, step_size)
        self.dropout = nn.Dropout(dropout)
        self.tokens = nn.Linear(step_size, VOCABULARY_SIZE)
        self.leaps = nn.Linear(step_size, 2 * (2 * _LEAP + 1))
        nn.init.zeros_(self.leaps.weight)
        nn.init.zeros_(self.leaps.bias)
        self.gates = nn.Linear(step_size, 1 + n_pointers)
        nn.init.zeros_(self.gates.weight)
        with torch.no_grad():  # the own softmax knows nothing yet
            self.gates.bias.copy_(torch.tensor([0.0, 2.0, 1.0, *[-1.0] * n_pointers])[: 1 + n_pointers])

    def point(self, states: Tensor, bias: Tensor, quarters: Tensor, sources: Sources) -> Tensor:
        """Return where each pointer of the quarters `quarters` (batch, g) points, before anything of them is known.

        The result is log-probabilities (batch, p, g, q); `bias` is (batch, p, q, q).
        """
        batch, n, _ = states.shape
        g, p = quarters.shape[1], self.n_pointers
        normed = self.norm(states)
        rows = torch.arange(batch, device=states.device)[:, None]
        query = self.query(normed[rows, quarters]).view(batch, g, p, _POINTER_SIZE).transpose(1, 2)
        key = self.key(normed).view(batch, n, p, _POINTER_SIZE).permute(0, 2, 3, 1)
        by_content = (query @ key) / math.sqrt(_POINTER_SIZE)  # (batch, p, g, q)
        pointed = bias.transpose(1, 2)[rows, quarters].transpose(1, 2)  # (batch, p, g, q)
        scores = (by_content + pointed).float()
        log_p: Tensor = scores.masked_fill(~sources.any_visible[:, None, None], -1e4).log_softmax(-1)
        return log_p

    def copies(self, pointed: Tensor, before: Tensor, sources: Sources, at: slice = _ALL) -> Tensor:
        """Return what each pointer copies to the steps `at`, (batch, p, g, s, 130), given the steps before each.

        A pointer that copies a quarter goes on copying it: by Bayes' rule a quarter that differs from the steps before
        loses its share, all but a learnt part of it. `before` is (batch, g, 6), `MASK` where nothing is given. Rows sum
        to 1, or are 0 where nothing is visible at that step of any quarter.
        """
        batch, before = len(before), before[..., : at.stop]
        held = sources.one_hot.view(batch, -1, STEPS, VOCABULARY_SIZE)  # (batch, q, 6, 130)
        held = held[:, :, : at.stop].transpose(1, 2)
        given = before != MASK
        given_tokens = functional.one_hot(before.clamp(max=VOCABULARY_SIZE - 1), VOCABULARY_SIZE) * given[..., None]
        with torch.autocast(pointed.device.type, enabled=False):
            equal = given_tokens.transpose(1, 2).float() @ held.transpose(-1, -2)  # (batch, 6, g, q)
            unknown = 1 - held.sum(-1)[:, :, None]  # (batch, 6, 1, q)
            slip = self.slip.float().sigmoid()[:, None, None, None]  # of each pointer
            likely = slip + (1 - slip) * (equal + _BY_CHANCE * unknown)[:, None]  # (batch, p, 6, g, q)
            evidence = likely.log() * given.transpose(1, 2)[:, None, :, :, None]
            evidence = functional.pad(evidence[:, :, :-1], (0, 0, 0, 0, 1, 0)).cumsum(2)  # of the steps before
            weights = (pointed[:, :, None] + evidence[:, :, at]).softmax(-1)  # (batch, p, s, g, q)
            copied = weights @ held[:, None, at]  # (batch, p, s, g, 130)
        shares: Tensor = copied / copied.sum(-1, keepdim=True).clamp(min=1e-6)
        return shares.transpose(2, 3)

    def forward(
        self,
        states: Tensor,
        before: Tensor,
        pointed: Tensor | None,
        sources: Sources,
        beside: Tensor | None = None,
        *,
        at: slice = _ALL,
    ) -> Tensor:
        """Return the distribution of each of the steps `at`, (batch, g, s, 130), of states (batch, g, size).

        A step is given the tokens of the quarter before it: `before` (batch, g, 6), `MASK` where it is not. `pointed`
        is what `point` returned; None without pointers. `beside` (batch, g, 2) holds the pitch that sounds last before
        the quarter and the one that sounds first after the gap, or -1; None where the steps before are not given.
        """
        steps = self.steps(self.norm(states)).unflatten(-1, (STEPS, self.step_size))  # (batch, g, 6, step)
        embedded = self.before(before).flatten(2)  # (batch, g, 6 * embedding)
        size = self.before.embedding_dim
        contributions = [read(embedded[..., : (i + 1) * size]) for i, read in enumerate(self.read)]
        steps = steps + functional.pad(torch.stack(contributions, dim=2), (0, 0, 1, 0))
        x = self.step_norm(steps + functional.gelu(steps))
        x = self.dropout(functional.gelu(self.inner(x)) + x)  # of all steps: last bits depend on how many there are
        p: Tensor = self.tokens(x)[:, :, at].float().softmax(-1)  # (batch, g, s, 130)
        if pointed is not None:
            copies = self.copies(pointed, before, sources, at).permute(0, 2, 3, 1, 4)  # (batch, g, s, p, 130)
            gates = self.gates(x)[:, :, at].float()  # (batch, g, s, 1 + p)
            there = copies.sum(-1) > 0.5  # (batch, g, s, p): whether there is something to copy
            gates[..., 1:] = gates[..., 1:].masked_fill(~there, -1e4)
            shares = gates.softmax(-1)
            p = shares[..., :1] * p + (shares[..., 1:, None] * copies).sum(-2)
        near = None if beside is None else self.nearness(x, before, beside)[:, :, at]
        return p if near is None else (torch.log(p + 1e-12) + near).softmax(-1)

    def nearness(self, x: Tensor, before: Tensor, beside: Tensor) -> Tensor:
        """Return the logarithm of a weight for each token, (batch, g, 6, 130), by its interval from two pitches.

        They are the one before the step and the first one after the gap; what is no onset weighs 1.
        """
        last = beside[..., :1]
        pitches = [last]
        for step in range(STEPS - 1):
            token = before[..., step : step + 1]
            last = torch.where(token < HOLD, token, last)
            pitches.append(last)
        known = torch.stack([torch.cat(pitches, -1), beside[..., 1:].expand(-1, -1, STEPS)], -1)  # (batch, g, 6, 2)
        leaps = torch.arange(HOLD, device=x.device) - known[..., None]
        leaps = leaps.clamp(-_LEAP, _LEAP) + _LEAP  # (batch, g, 6, 2, 128)
        table = self.leaps(x).float().unflatten(-1, (2, -1))  # (batch, g, 6, 2, leaps)
        weights = (table.gather(-1, leaps) * (known >= 0)[..., None]).sum(-2)
        return functional.pad(weights, (0, VOCABULARY_SIZE - HOLD))


def pitches_beside(tokens: Tensor) -> Tensor:
    """Return what sounds last before each quarter and first after it, shape (batch, q, 2).

    It is -1 where something hidden lies between, or nothing is there; after a quarter what is hidden is passed over.
    """
    onset, hidden = tokens < HOLD, tokens == MASK
    place = torch.arange(tokens.shape[1], device=tokens.device)
    last = torch.where(onset, place, -1).cummax(1).values
    blocked = torch.where(hidden, place, -1).cummax(1).values
    sounding = torch.where(last > blocked, tokens.gather(1, last.clamp(min=0)), -1)
    before = functional.pad(sounding, (1, 0), value=-1)[:, :-1:STEPS]
    n = tokens.shape[1]
    first = torch.where(onset, place, n).flip(1).cummin(1).values.flip(1)
    following = torch.where(first < n, tokens.gather(1, first.clamp(max=n - 1)), -1)
    after = functional.pad(following, (0, 1), value=-1)[:, STEPS::STEPS]
    return torch.stack([before, after], -1)


class Reading(NamedTuple):
    """What the network knows of a stretch, before it says anything of its steps."""

    states: Tensor  # (batch, q, size)
    pointer_bias: Tensor  # (batch, pointers, q, q)
    features: Tensor  # (batch, q, q, features)
    sources: Sources


class InfillTransformer(StepwiseNetwork, tags=["music", "symbolic-music", "inpainting"]):
    """Fills any gap of a melody; a `protocols.GapInpainter` and a `protocols.LikelihoodInpainter`.

    Tokens -> quarters -> transformer with a bias by alignment -> pointers and softmax for each step.

    Parameters
    ----------
    config
        `InfillTransformerConfig`: sizes, training and default decoding; None is its defaults.
    decoding
        Overrides `config.decoding`. ``"best"`` takes the notes that promise the highest note F1, all at once.
        ``"sample"`` draws step after step, out of the nucleus `top_p` at `temperature`; ``"argmax"`` takes the most
        likely token step after step.
    temperature, top_p
        Override those of the config. All three may also be set as attributes, at any time.

    Raises
    ------
    InvalidInputError, UnknownNameError
        A decoding, temperature or share that does not exist.
    """

    config: InfillTransformerConfig
    config_class = InfillTransformerConfig
    decodings = DECODINGS
    leaking = frozenset()
    fixed = frozenset({"best", "argmax"})
    gap_limits = LIMITS

    def _build(self, config: InfillTransformerConfig) -> None:
        size, heads = config.model_size, (config.n_layers, config.n_heads, config.n_pointers)
        self.embedding = nn.Embedding(VOCABULARY_SIZE + 1, config.embedding_size)
        self.into = nn.Linear(STEPS * config.embedding_size, size)
        self.edges = Edges(size, _FARTHEST // 2)
        self.pairs = PairBias(heads, config.pair_size, _FARTHEST)
        self.blocks = nn.ModuleList(
            Block(size, config.n_heads, config.inner_size, config.dropout) for _ in range(config.n_layers)
        )
        self.head = StepHead(size, config.step_size, config.embedding_size, config.n_pointers, config.dropout)
        self.dropout = nn.Dropout(config.dropout)

    def read(self, tokens: Tensor) -> Reading:
        """Read stretches (batch, steps) of whole quarters, `MASK` where they are hidden."""
        batch, visible = len(tokens), tokens != MASK
        with torch.no_grad():
            features = agreement(tokens, visible)
            if not self.config.votes:
                features = torch.zeros_like(features)
        sources = Sources(step_one_hot(tokens, visible), visible.view(batch, -1, STEPS).any(-1))
        bias = self.pairs(features)  # (batch, layers * heads + pointers, q, q)
        n = self.config.n_heads
        embedded = self.embedding(tokens).view(batch, -1, self.into.in_features)
        x = self.dropout(self.into(embedded) + self.edges(sources.any_visible))
        for index, block in enumerate(self.blocks):
            x = block(x, bias[:, index * n : (index + 1) * n])
        return Reading(x, bias[:, len(self.blocks) * n :], features, sources)

    def point(self, reading: Reading, quarters: Tensor) -> Tensor | None:
        """Return where the pointers of the quarters (batch, g) point that are asked; None without pointers."""
        if not self.config.n_pointers:
            return None
        return self.head.point(reading.states, reading.pointer_bias, quarters, reading.sources)

    def forward(self, tokens: Tensor, quarters: Tensor) -> Tensor:
        """Return the marginals of quarters (batch, g), probabilities (batch, g, 6, 130).

        The tokens are stretches (batch, steps) of whole quarters, `MASK` where they are hidden.
        """
        reading = self.read(tokens)
        rows = torch.arange(len(tokens), device=tokens.device)[:, None]
        before = torch.full((*quarters.shape, STEPS), MASK, device=tokens.device)
        states, pointed = reading.states[rows, quarters], self.point(reading, quarters)
        marginals: Tensor = self.head(states, before, pointed, reading.sources)
        return marginals

    # --- training

    def training_loss(self, contexts: Tensor, *, varied: bool = False) -> Tensor:
        """Return the cross-entropy of the hidden steps of contexts (batch, steps), nats a step, (batch,).

        It is the mean over hidden steps of the marginals' loss, plus `chain_weight` of the chain's over those of the
        first quarter that is not whole. Hidden is the middle of the benchmark; varied, gaps of any place and length in
        a share of the contexts, `varied_gaps`, and a part of the gap is shown in another, `shown`.
        """
        n, n_steps = contexts.shape
        shares = self.config.varied_gaps, self.config.shown
        gaps = draw_gaps(n, n_steps, *shares) if varied else middle_gaps(n, n_steps)
        gaps = Gaps(*(part.to(contexts.device) for part in gaps))
        reading = self.read(contexts.masked_fill(gaps.hidden, MASK))
        rows = torch.arange(len(contexts), device=contexts.device)[:, None]
        states, pointed = reading.states[rows, gaps.quarters], self.point(reading, gaps.quarters)
        true = contexts.view(len(contexts), -1, STEPS)[rows, gaps.quarters]  # (batch, g, 6)
        hidden = gaps.hidden.view(len(contexts), -1, STEPS)[rows, gaps.quarters]
        losses = torch.zeros(len(contexts), device=contexts.device)
        # the chain is asked for the first quarter that is not whole, and for no other
        first = hidden & (hidden.any(-1).cumsum(1) == 1)[..., None]
        beside = pitches_beside(contexts.masked_fill(gaps.hidden, MASK))[rows, gaps.quarters]
        marginals = (torch.full_like(true, MASK), None, hidden, 1.0)
        chain = (true, beside, first, self.config.chain_weight)
        for before, near, counted, weight in (marginals, chain):
            p = self.head(states, before, pointed, reading.sources, near).gather(-1, true[..., None]).squeeze(-1)
            nats = -torch.log(p + 1e-9) * counted  # (batch, g, 6)
            losses = losses + weight * nats.sum((1, 2)) / counted.sum((1, 2)).clamp(min=1)
        return losses

    def validation_losses(self, contexts: Tensor) -> Tensor:
        """Return 1 - note F1 of the middles that ``"best"`` writes, shape (batch,): what training is to make small.

        The cross-entropy of whole middles goes up again long before the notes that are written get worse.
        """
        true = contexts[:, _MIDDLE].cpu().numpy()
        hidden = torch.from_numpy(_HIDDEN).to(contexts.device)
        written = self._best(contexts.masked_fill(hidden, MASK))[:, _MIDDLE].cpu().numpy()
        right = ((written == true) & (true < HOLD)).sum(axis=1)
        n_notes = (written < HOLD).sum(axis=1) + (true < HOLD).sum(axis=1)
        return 1 - torch.from_numpy(np.divide(2 * right, n_notes, out=np.ones(len(true)), where=n_notes > 0))

    # --- filling

    def inpaint(self, contexts: Tokens, *, rng: np.random.Generator) -> Tokens:
        """Return middles, shape (n, 96), values 0..129, of contexts (n, 384), whose middle is masked here.

        `rng` is as in `infill`. What is no context raises `InvalidTokensError` or `ContextLengthError`.
        """
        return self._filled(self._checked(contexts), rng)[:, MUSIB_LAYOUT.middle]

    def infill(self, tokens: Tokens, hidden: npt.NDArray[np.bool_], *, rng: np.random.Generator) -> Tokens:
        """Fill the hidden steps of any stretches; see `protocols.GapInpainter`.

        Parameters
        ----------
        tokens
            Shape (n, steps), values 0..129 where they are not hidden; `gap_limits` says how many steps.
        hidden
            Which steps to fill, the same shape, bool. All others stay, also between hidden ones.
        rng
            The only source of randomness; not used where `deterministic`. Each item has numbers of its own, so that the
            first items do not depend on how many follow.

        Returns
        -------
        Tokens
            The same shape, values 0..129.

        Raises
        ------
        InvalidTokensError, ContextLengthError, InvalidInputError
            Not tokens, or a stretch or gap that the network does not take; the message names the limit.
        """
        return self._filled(masked_stretches(tokens, hidden), rng)

    def _filled(self, masked: Tokens, rng: np.random.Generator) -> Tokens:
        """Return stretches (n, steps) with what is `MASK` filled, each step with a uniform number of its own."""
        n, n_steps = masked.shape
        temperature = 0.0 if self.decoding == "argmax" else self.temperature

        def decode(rows: slice, uniform: Tensor) -> Tensor:
            stretches = self._tensor(masked[rows])
            if self.decoding == "best":
                return self._best(stretches)
            return self._chain(
                stretches, lambda log_p, at, places: draw(log_p, temperature, uniform[at, places], self.top_p)
            )

        return self._fill(n, (n_steps,), rng, decode, n_steps)

    @torch.no_grad()
    def _best(self, masked: Tensor) -> Tensor:
        """Return the stretches with the notes that promise the highest note F1."""
        quarters = gap_quarters(masked == MASK)  # (batch, g)
        p = self(masked, quarters.clamp(min=0)).double()  # (batch, g, 6, 130)
        marginals = torch.zeros(*masked.shape, VOCABULARY_SIZE, dtype=torch.float64, device=masked.device)
        by_quarter = marginals.view(len(masked), -1, STEPS, VOCABULARY_SIZE)
        rows, columns = (quarters >= 0).nonzero(as_tuple=True)
        by_quarter[rows, quarters[rows, columns]] = p[rows, columns]
        known = masked.cpu().numpy().astype(np.uint8)
        filled = decode_expected_f1(marginals.cpu().numpy(), known=known)
        return torch.from_numpy(filled.astype(np.int64)).to(masked.device)

    def _chain(self, masked: Tensor, choose: Callable[[Tensor, Tensor, Tensor], Tensor]) -> Tensor:
        """Return stretches (batch, steps) filled quarter after quarter, step after step, each given all before it.

        ``choose(log_p, rows, places)`` returns the token of each hidden step that is next in its row, of
        log-probabilities (hidden, 130); `rows` and `places` (hidden,) say where they are.
        """
        filled, hidden = masked.clone(), masked == MASK
        quarters_of, every = filled.view(len(filled), -1, STEPS), torch.arange(len(masked), device=masked.device)
        for quarters in gap_quarters(hidden).T:  # (batch,), -1 where a row is done
            here = quarters.clamp(min=0)
            reading = self.read(filled)
            states, pointed = reading.states[every, here][:, None], self.point(reading, here[:, None])
            beside = pitches_beside(filled)[every, here][:, None]
            for step in range(STEPS):
                is_next = hidden[every, here * STEPS + step] & (quarters >= 0)
                rows, places = every[is_next], here[is_next] * STEPS + step
                if len(rows):
                    before, at = quarters_of[every, here][:, None], slice(step, step + 1)
                    p = self.head(states, before, pointed, reading.sources, beside, at=at)[:, 0, 0].double()
                    filled[rows, places] = choose((p / p.sum(-1, keepdim=True)).log()[is_next], rows, places)
        return filled

    # --- likelihood

    def nll(self, contexts: Tokens) -> npt.NDArray[np.float64]:
        """Return the negative log-likelihood of the true middle, step by step: (n, 96) nats, at least 0.

        Each step of whole contexts (n, 384) is given past, future and the true middle before it, by the distribution
        that ``"sample"`` draws from at temperature 1 and with a `top_p` of 1; the sum over steps is the likelihood of
        the middle. Others than whole contexts raise `InvalidTokensError` or `ContextLengthError`.
        """
        checked = check_contexts(contexts)
        return self._nats(checked, np.broadcast_to(_HIDDEN, checked.shape))[:, MUSIB_LAYOUT.middle]

    def gap_log_likelihood(self, tokens: Tokens, hidden: npt.NDArray[np.bool_]) -> npt.NDArray[np.float64]:
        """Return how likely what stands at the hidden steps is given all others; see `protocols.GapInpainter`.

        Shape (n,), nats, at most 0. It is exact: the probability that ``"sample"`` draws these tokens at temperature 1
        and with a `top_p` of 1. Arguments and errors are those of `infill`; the hidden steps hold what is asked for.
        """
        masked_stretches(tokens, hidden)  # raises for what the network does not take
        log_p: npt.NDArray[np.float64] = -self._nats(check_tokens(tokens), hidden).sum(axis=1)
        return log_p

    def _nats(self, tokens: Tokens, hidden: npt.NDArray[np.bool_]) -> npt.NDArray[np.float64]:
        """Return what each hidden step costs in the chain, (n, steps); others cost nothing."""

        def work(part: slice) -> npt.NDArray[np.float64]:
            true, mask = self._tensor(tokens[part]), torch.from_numpy(hidden[part].copy()).to(self.device)
            nats = torch.zeros(true.shape, dtype=torch.float64, device=self.device)

            def choose(log_p: Tensor, rows: Tensor, places: Tensor) -> Tensor:
                chosen = true[rows, places]
                nats[rows, places] = -log_p.gather(-1, chosen[:, None]).squeeze(-1)
                return chosen

            self._chain(true.masked_fill(mask, MASK), choose)
            return nats.cpu().numpy()

        return np.concatenate([np.empty((0, tokens.shape[1])), *self._each_part(len(tokens), work)])
