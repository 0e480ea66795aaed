"""The infill transformer: a bidirectional transformer over quarters that reads how a melody agrees with itself.

A stretch of a melody is cut into quarters of six steps, and each is one place of the transformer. What is hidden is
`MASK`. For each two quarters it is worked out how well the visible melody agrees with itself at their distance around
them (`_infill_layers.agreement`, the vote of the baseline ``lag_vote`` with several reaches); small networks turn that,
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

# Annotations stay real objects here: the Hub mixin reads the type of `config` from the signature.
import dataclasses
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from music_evals.annotations import HOLD, MASK, MUSIB_LAYOUT, VOCABULARY_SIZE, Tokens, check_tokens
from music_evals.errors import InvalidInputError
from music_evals.models._infill_layers import (
    Block,
    Edges,
    PairBias,
    Sources,
    StepHead,
    agreement,
    pitches_beside,
    step_one_hot,
)
from music_evals.models._infill_masks import LIMITS, Gaps, draw_gaps, gap_quarters, masked_stretches, middle_gaps
from music_evals.models._lag_votes import decode_expected_f1
from music_evals.models._network import SizedConfig, StepwiseNetwork, draw
from music_evals.symbolic.contexts import STEPS_PER_QUARTER as STEPS
from music_evals.symbolic.noteseq import check_contexts

__all__ = ["DECODINGS", "SIZES", "InfillTransformer", "InfillTransformerConfig"]

DECODINGS = ("best", "sample", "argmax")
"""How a gap is filled; none reads what is hidden."""

SIZES = {
    "small": {"model_size": 128, "n_layers": 4, "n_heads": 4, "inner_size": 384, "step_size": 96},
    "tiny": {"model_size": 96, "n_layers": 2, "n_heads": 4, "inner_size": 192, "step_size": 64},
}
"""Size -> the numbers that it stands for: what is shipped, and one for trials."""

_FARTHEST = 64  # quarters; what lies further away is as far as that
_MIDDLE = np.zeros(MUSIB_LAYOUT.n_steps, dtype=bool)
_MIDDLE[MUSIB_LAYOUT.middle] = True


@dataclasses.dataclass(frozen=True)
class InfillTransformerConfig(SizedConfig):
    """Sizes of the network, what it may use, how it is trained, and the default decoding.

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

    Raises
    ------
    InvalidInputError, UnknownNameError
        A value outside its range.

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
        if self.model_size % self.n_heads:
            raise InvalidInputError(f"model_size must be a multiple of n_heads ({self.n_heads}), got {self.model_size}")
        for name in ("n_pointers", "chain_weight"):
            if not getattr(self, name) >= 0:
                raise InvalidInputError(f"{name} must not be negative, got {getattr(self, name)}")


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
        Sizes, training and default decoding.
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

    def __init__(
        self,
        config: InfillTransformerConfig | None = None,
        *,
        decoding: str | None = None,
        temperature: float | None = None,
        top_p: float | None = None,
    ) -> None:
        super().__init__(config, decoding, temperature, top_p)
        config = self.config
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
        """Return the marginals of quarters.

        Parameters
        ----------
        tokens
            Stretches, shape (batch, steps), whole quarters, `MASK` where they are hidden.
        quarters
            Those that are asked, shape (batch, g).

        Returns
        -------
        Tensor
            Shape (batch, g, 6, 130); probabilities.

        """
        reading = self.read(tokens)
        rows = torch.arange(len(tokens), device=tokens.device)[:, None]
        before = torch.full((*quarters.shape, STEPS), MASK, device=tokens.device)
        marginals: Tensor = self.head(
            reading.states[rows, quarters], before, self.point(reading, quarters), reading.sources
        )
        return marginals

    # --- training

    def training_loss(self, contexts: Tensor, *, varied: bool = False) -> Tensor:
        """Return the cross-entropy of the hidden steps, nats a step, of marginals and chain.

        Parameters
        ----------
        contexts
            Whole contexts, shape (batch, steps), int64; whole quarters.
        varied
            False hides the middle of the benchmark. True hides gaps of any place and length in a share of the
            contexts, `varied_gaps`, and shows a part of the gap in another, `shown`.

        Returns
        -------
        Tensor
            Shape (batch,): the mean over hidden steps of the marginals' loss, plus `chain_weight` of the chain's over
            those of the first quarter that is not whole.

        """
        if varied:
            gaps = draw_gaps(len(contexts), contexts.shape[1], self.config.varied_gaps, self.config.shown)
        else:
            gaps = middle_gaps(len(contexts), contexts.shape[1])
        return self._gap_loss(contexts, Gaps(*(part.to(contexts.device) for part in gaps)))

    def _gap_loss(self, contexts: Tensor, gaps: Gaps) -> Tensor:
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
        middle = MUSIB_LAYOUT.middle
        true = contexts[:, middle].cpu().numpy()
        hidden = torch.zeros_like(contexts, dtype=torch.bool)
        hidden[:, middle] = True
        written = self._best(contexts.masked_fill(hidden, MASK))[:, middle].cpu().numpy()
        right = ((written == true) & (true < HOLD)).sum(axis=1)
        n_notes = (written < HOLD).sum(axis=1) + (true < HOLD).sum(axis=1)
        return 1 - torch.from_numpy(np.divide(2 * right, n_notes, out=np.ones(len(true)), where=n_notes > 0))

    # --- filling

    def inpaint(self, contexts: Tokens, *, rng: np.random.Generator) -> Tokens:
        """Fill the middles of the benchmark.

        Parameters
        ----------
        contexts
            Shape (n, 384). The middle is masked here.
        rng
            The only source of randomness; not used where `deterministic`. Each item has numbers of its own, so that the
            first items do not depend on how many follow.

        Returns
        -------
        Tokens
            Middles, shape (n, 96), values 0..129.

        Raises
        ------
        InvalidTokensError, ContextLengthError
            Not contexts.

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
            As in `inpaint`.

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
        """Return stretches (n, steps) with what is `MASK` filled."""
        n, n_steps = masked.shape
        return self._fill(
            n, (n_steps,), rng, lambda rows, uniform: self._decode(self._tensor(masked[rows]), uniform), n_steps
        )

    def _decode(self, masked: Tensor, uniform: Tensor) -> Tensor:
        """Fill stretches (batch, steps), each step with a uniform number of its own; `uniform` has the same shape."""
        if self.decoding == "best":
            return self._best(masked)
        temperature = 0.0 if self.decoding == "argmax" else self.temperature
        return self._chain(
            masked, lambda log_p, rows, places: draw(log_p, temperature, uniform[rows, places], self.top_p)
        )

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
                before = quarters_of[every, here][:, None]
                p = self.head(states, before, pointed, reading.sources, beside)[:, 0, step].double()  # (batch, 130)
                rows, log_p = every[is_next], (p / p.sum(-1, keepdim=True)).log()[is_next]
                filled[rows, here[is_next] * STEPS + step] = choose(log_p, rows, here[is_next] * STEPS + step)
        return filled

    # --- likelihood

    def nll(self, contexts: Tokens) -> npt.NDArray[np.float64]:
        """Return the negative log-likelihood of the true middle, step by step.

        Each step is given past, future and the true middle before it, by the distribution that ``"sample"`` draws from
        at temperature 1 and with a `top_p` of 1; the sum over steps is the likelihood of the middle.

        Parameters
        ----------
        contexts
            Whole contexts, shape (n, 384), values 0..129.

        Returns
        -------
        numpy.ndarray
            Shape (n, 96), nats, at least 0.

        Raises
        ------
        InvalidTokensError, ContextLengthError
            Not whole contexts.

        """
        checked = check_contexts(contexts)
        return self._nats(checked, np.broadcast_to(_MIDDLE, checked.shape))[:, MUSIB_LAYOUT.middle]

    def gap_log_likelihood(self, tokens: Tokens, hidden: npt.NDArray[np.bool_]) -> npt.NDArray[np.float64]:
        """Return how likely what stands at the hidden steps is given all others; see `protocols.GapInpainter`.

        It is exact: the probability that ``"sample"`` draws these tokens at temperature 1 and with a `top_p` of 1.

        Parameters
        ----------
        tokens, hidden
            As in `infill`; the hidden steps hold what is asked for.

        Returns
        -------
        numpy.ndarray
            Shape (n,), nats, at most 0.

        Raises
        ------
        InvalidTokensError, ContextLengthError, InvalidInputError
            As in `infill`.

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
