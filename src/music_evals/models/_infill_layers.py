"""The layers of the infill transformer: how well a melody agrees with itself, attention that reads it, pointers."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from music_evals.annotations import HOLD, MASK, VOCABULARY_SIZE
from music_evals.symbolic.contexts import STEPS_PER_QUARTER as STEPS

__all__ = [
    "FEATURES",
    "Block",
    "Edges",
    "PairBias",
    "Sources",
    "StepHead",
    "agreement",
    "pitches_beside",
    "step_one_hot",
]

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

_POINTER_SIZE = 32
_BY_CHANCE = 0.3  # how well what is hidden fits what is given
_FARTHEST_LEAP = 24  # semitones


def agreement(tokens: Tensor, visible: Tensor) -> Tensor:
    """Return how well a melody agrees with itself around each two quarters, shape (batch, q, q, features).

    ``[b, here, there]`` compares the stretch around `here` with the one that lies as far from it as `there` does. The
    features are Dice coefficients as in `_lag_votes.lag_agreement`, of onset and pitch or of onsets alone, quarter by
    quarter, and the logarithm of how many notes there were to compare. What is hidden is not read.

    Parameters
    ----------
    tokens, visible
        Shape (batch, steps), int64 and bool; whole quarters.

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
        lags = torch.arange(2 * n - 1, device=device)
        other = place[None, :] + lags[:, None] - (n - 1)  # (lags, q)
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


class Sources(NamedTuple):
    """What stands where: of all quarters."""

    one_hot: Tensor  # (batch, q, 6 * 130), zeros where hidden
    any_visible: Tensor  # (batch, q)


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
        self.leaps = nn.Linear(step_size, 2 * (2 * _FARTHEST_LEAP + 1))
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

    def copies(self, pointed: Tensor, before: Tensor, sources: Sources) -> Tensor:
        """Return what each pointer copies to each step, (batch, p, g, 6, 130), given the steps before it.

        A pointer that copies a quarter goes on copying it: by Bayes' rule a quarter that differs from the steps before
        loses its share, all but a learnt part of it. `before` is (batch, g, 6), `MASK` where nothing is given. Rows sum
        to 1, or are 0 where nothing is visible at that step of any quarter.
        """
        batch = len(before)
        held = sources.one_hot.view(batch, -1, STEPS, VOCABULARY_SIZE).transpose(1, 2)  # (batch, 6, q, 130)
        given = before != MASK
        given_tokens = functional.one_hot(before.clamp(max=VOCABULARY_SIZE - 1), VOCABULARY_SIZE) * given[..., None]
        with torch.autocast(pointed.device.type, enabled=False):
            equal = given_tokens.transpose(1, 2).float() @ held.transpose(-1, -2)  # (batch, 6, g, q)
            unknown = 1 - held.sum(-1)[:, :, None]  # (batch, 6, 1, q)
            slip = self.slip.float().sigmoid()[:, None, None, None]  # of each pointer
            likely = slip + (1 - slip) * (equal + _BY_CHANCE * unknown)[:, None]  # (batch, p, 6, g, q)
            evidence = likely.log() * given.transpose(1, 2)[:, None, :, :, None]
            evidence = functional.pad(evidence[:, :, :-1], (0, 0, 0, 0, 1, 0)).cumsum(2)  # of the steps before
            weights = (pointed[:, :, None] + evidence).softmax(-1)  # (batch, p, 6, g, q)
            copied = weights @ held[:, None]  # (batch, p, 6, g, 130)
        shares: Tensor = copied / copied.sum(-1, keepdim=True).clamp(min=1e-6)
        return shares.transpose(2, 3)

    def forward(
        self, states: Tensor, before: Tensor, pointed: Tensor | None, sources: Sources, beside: Tensor | None = None
    ) -> Tensor:
        """Return the distribution of each step, (batch, g, 6, 130), of states (batch, g, size).

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
        x = self.dropout(functional.gelu(self.inner(x)) + x)
        own: Tensor = self.tokens(x).float().softmax(-1)  # (batch, g, 6, 130)
        near = None if beside is None else self.nearness(x, before, beside)
        if pointed is None:
            return own if near is None else _weighed(own, near)
        copies = self.copies(pointed, before, sources).permute(0, 2, 3, 1, 4)  # (batch, g, 6, p, 130)
        gates = self.gates(x).float()  # (batch, g, 6, 1 + p)
        there = copies.sum(-1) > 0.5  # (batch, g, 6, p): whether there is something to copy
        gates[..., 1:] = gates[..., 1:].masked_fill(~there, -1e4)
        shares = gates.softmax(-1)
        mixed: Tensor = shares[..., :1] * own + (shares[..., 1:, None] * copies).sum(-2)
        return mixed if near is None else _weighed(mixed, near)

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
        leaps = leaps.clamp(-_FARTHEST_LEAP, _FARTHEST_LEAP) + _FARTHEST_LEAP  # (batch, g, 6, 2, 128)
        table = self.leaps(x).float().unflatten(-1, (2, -1))  # (batch, g, 6, 2, leaps)
        weights = (table.gather(-1, leaps) * (known >= 0)[..., None]).sum(-2)
        return functional.pad(weights, (0, VOCABULARY_SIZE - HOLD))


def _weighed(p: Tensor, log_weights: Tensor) -> Tensor:
    """Return distributions times weights, as distributions."""
    return (torch.log(p + 1e-12) + log_weights).softmax(-1)


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
