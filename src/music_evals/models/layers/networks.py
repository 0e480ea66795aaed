"""What the inpainting networks of this room share: names, decoding options, draws, files."""

# Annotations stay real objects here: the Hub mixin reads the types of a class that inherits from it.
import abc
import dataclasses
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from music_evals.annotations import HOLD, MUSIB_LAYOUT, VOCABULARY_SIZE, Tokens
from music_evals.errors import InvalidInputError, UnknownNameError
from music_evals.models.baselines import hide_middle
from music_evals.models.layers.saving import SavedNetwork, check_config, fill_sizes
from music_evals.numerics import n_threads, one_thread
from music_evals.protocols import NoteLikelihood
from music_evals.protocols.settings import check_rules, check_type
from music_evals.symbolic.noteseq import check_contexts

# Contexts that are worked out together. Their number is fixed, whatever the number of cores: the last bits of a product
# of matrices may depend on how many rows it has. Likelihoods by each of the five networks that ship were found to
# differ by up to 1e-5 nats where 16 rows were cut in parts; so small jobs are not cut up to occupy all cores.
_ROWS_AT_ONCE = 64

_Result = TypeVar("_Result")

Sizes = Mapping[str, Mapping[str, int]]
"""Size -> the fields of a config that it stands for, and their values."""


@dataclasses.dataclass(frozen=True)
class NetworkConfig:
    """What every config has: the type of its model, by which a reader of config.json loads its class, and a decoding.

    A value outside its range raises `InvalidInputError`, a name that does not exist `UnknownNameError`.
    """

    model_type: str = ""
    decoding: str = "argmax"
    temperature: float = 1.0
    top_p: float = 1.0

    def _check(
        self,
        network: "type[InpaintingNetwork]",
        *,
        at_least_one: tuple[str, ...],
        shares: tuple[str, ...] = (),
        probabilities: tuple[str, ...] = (),
    ) -> None:
        """Check types, fields of at least 1, shares in [0, 1), probabilities in [0, 1], and the decoding."""
        check_config(self, at_least_one=at_least_one, shares=shares, probabilities=probabilities)
        if self.decoding in network.leaking:
            raise InvalidInputError(
                f"{self.decoding} reads the true middle and cannot be a default; ask for it by name"
            )
        check_choice(self.decoding, self.temperature, network.decodings, self.top_p)


@dataclasses.dataclass(frozen=True)
class SizedConfig(NetworkConfig):
    """Of the networks that come in several sizes."""

    size: str = "paper"

    def _check_sized(
        self, network: "type[InpaintingNetwork]", sizes: Sizes, *, at_least_one: tuple[str, ...] = (), **rules: Any
    ) -> None:
        """Give every size that is 0 the value that it has in `size`, then check as `_check` does, the sizes too."""
        fill_sizes(self, sizes)
        self._check(network, at_least_one=(*sizes[self.size], *at_least_one), **rules)

    def _check_heads(self, width: str, heads: str) -> None:
        """Check that heads of attention can share a width, and that positions fill it with sines and cosines."""
        twice = 2 * getattr(self, heads)
        check_rules(self, {f"{width} must be a multiple of twice {heads} ({twice})": getattr(self, width) % twice == 0})


@dataclasses.dataclass(frozen=True)
class TokenConfig(NetworkConfig):
    """Of the networks that write token by token."""

    kind_temperature: float | None = None

    def _check(self, network: "type[InpaintingNetwork]", **rules: Any) -> None:
        """Check all that a config has, and the temperature of kinds."""
        super()._check(network, **rules)
        if self.kind_temperature is not None and not 0 <= self.kind_temperature < float("inf"):
            raise InvalidInputError(f"kind_temperature must be 0 or more, got {self.kind_temperature}")


def check_choice(decoding: str, temperature: float, decodings: tuple[str, ...], top_p: float = 1.0) -> None:
    """Check how tokens are chosen."""
    check_type("decoding", decoding, str)
    check_type("temperature", temperature, float)
    check_type("top_p", top_p, float)
    if decoding not in decodings:
        raise UnknownNameError("decoding", decoding, decodings)
    if not 0 <= temperature < float("inf"):
        raise InvalidInputError(f"temperature must be 0 or more, got {temperature}")
    if not 0 < top_p <= 1:
        raise InvalidInputError(f"top_p must lie above 0 and be at most 1, got {top_p}")


class InpaintingNetwork(SavedNetwork):
    """Base of the inpainting networks.

    A subclass has `training_loss(contexts, *, varied)`, what training minimises, (batch,), of whole contexts
    (batch, 384), and `inpaint(contexts, *, rng)`; see `protocols.Inpainter`. On a CPU contexts are decoded, and their
    likelihoods worked out, 64 by each core: fewer than 65 occupy one alone.
    """

    decodings: ClassVar[tuple[str, ...]]
    """How tokens may be chosen."""
    leaking: ClassVar[frozenset[str]]
    """Those decodings that read the true middle."""
    fixed: ClassVar[frozenset[str]] = frozenset({"argmax"})
    """Those decodings that draw nothing, whatever the temperature."""
    pitch_range: ClassVar[tuple[int, int]] = (0, 127)
    """Lowest and highest pitch that it knows; training transposes within."""
    stages: ClassVar[dict[str, tuple[str, ...]]] = {}
    """Stages of its training, in order, each with the submodules that it trains; may be empty."""
    stage: str = ""
    """The stage that `training_loss` belongs to; empty without stages."""
    training_step: int = 0
    """Steps of the stage that have been trained; the loop sets it, schedules of teacher forcing read it."""

    def __init__(
        self,
        config: Any = None,
        *,
        decoding: str | None = None,
        temperature: float | None = None,
        top_p: float | None = None,
    ) -> None:
        super().__init__(config)
        self._dropouts: dict[nn.RNNBase, float] = {}  # as built: `begin_stage` takes that of what it freezes away
        self.decoding: str = self.config.decoding if decoding is None else decoding
        self.temperature: float = self.config.temperature if temperature is None else temperature
        self.top_p: float = self.config.top_p if top_p is None else top_p
        check_choice(self.decoding, self.temperature, self.decodings, self.top_p)
        # who asks for a temperature of 0 wants the most likely, of kinds too
        self.kind_temperature = None if temperature == 0 else getattr(self.config, "kind_temperature", None)
        self._build(self.config)

    @abc.abstractmethod
    def _build(self, config: Any) -> None:
        """Make the layers."""

    def begin_stage(self, name: str) -> None:
        """Train the submodules of a stage from here on, and freeze all others."""
        if name not in self.stages:
            raise UnknownNameError("stage", name, self.stages)
        self.stage = name
        for child, module in self.named_children():
            module.requires_grad_(child in self.stages[name])
            for part in module.modules():
                if isinstance(part, nn.RNNBase):
                    whole = self._dropouts.setdefault(part, part.dropout)
                    part.dropout = whole if child in self.stages[name] else 0.0

    def train(self, mode: bool = True) -> Self:  # noqa: FBT001, FBT002 - as PyTorch has it
        """Switch dropout on or off; what the stage has frozen stays without."""
        super().train(mode)
        for child, module in self.named_children():
            if self.stage and child not in self.stages[self.stage]:
                module.eval()
                for part in module.modules():
                    if isinstance(part, nn.RNNBase):
                        part.train(mode)  # with a dropout of 0: cuDNN passes no gradient through one in evaluation
        return self

    @property
    def name(self) -> str:
        """System id."""
        return str(self.config.model_type) + ("" if self.decoding == self.config.decoding else f":{self.decoding}")

    @property
    def deterministic(self) -> bool:
        """Whether `inpaint` does without `rng`."""
        return self.decoding in self.fixed or self.temperature == 0

    @property
    def sees_reference(self) -> bool:
        """Whether the decoding leaks."""
        return self.decoding in self.leaking

    def _each_part(self, n: int, work: Callable[[slice], _Result]) -> list[_Result]:
        """Return ``work(rows)`` of all rows, some at once, in their order; on a CPU all cores work, each at a part.

        A part is worked out by one thread alone, so that no number depends on how many there are. Up to
        `_ROWS_AT_ONCE` rows are one part, and so occupy one core.
        """

        def alone(rows: slice) -> _Result:
            torch.get_num_threads()  # PyTorch sets the threads of each thread at its first use: not after they are held
            with torch.inference_mode(), one_thread():
                return work(rows)

        parts = [slice(start, start + _ROWS_AT_ONCE) for start in range(0, n, _ROWS_AT_ONCE)]
        workers = min(n_threads(), len(parts)) if self.device.type == "cpu" else 1
        was_training = self.training
        self.eval()
        try:
            if workers < 2:
                return [alone(rows) for rows in parts]
            with ThreadPoolExecutor(workers) as pool:
                return list(pool.map(alone, parts))
        finally:
            self.train(was_training)

    def _checked(self, contexts: Tokens) -> Tokens:
        """Return contexts that are right, the middle hidden where the decoding does not read it."""
        return check_contexts(contexts) if self.sees_reference else hide_middle(contexts)

    def _fill(
        self,
        n: int,
        numbers: tuple[int, ...],
        rng: np.random.Generator,
        decode: Callable[[slice, Tensor], Tensor],
        n_steps: int = MUSIB_LAYOUT.middle_steps,
    ) -> Tokens:
        """Fill n items, some rows at once; `decode` is given these and uniform numbers (rows, *numbers) of their own.

        A row has the same numbers however many follow; they are 0 where nothing is drawn.
        """
        shape = (n, *numbers)
        uniform = np.zeros(shape) if self.deterministic else rng.random(shape)

        def fill(rows: slice) -> npt.NDArray[np.uint8]:
            return decode(rows, torch.from_numpy(uniform[rows]).to(self.device)).cpu().numpy().astype(np.uint8)

        return np.concatenate([np.empty((0, n_steps), dtype=np.uint8), *self._each_part(n, fill)])

    def _tensor(self, tokens: Tokens) -> Tensor:
        return torch.from_numpy(tokens.astype(np.int64)).to(self.device)


class StepwiseNetwork(InpaintingNetwork):
    """Base of those that say how likely each step of the middle is."""

    @abc.abstractmethod
    def nll(self, contexts: Tokens) -> npt.NDArray[np.float64]:
        """Return what each true step of the middle costs, (n, 96) nats, of whole contexts (n, 384)."""

    def note_nll(self, contexts: Tokens) -> NoteLikelihood:
        """Return how likely the whole true middles are; see `protocols.NoteLikelihoodInpainter`.

        It is the sum of `nll` over the steps. That counts every hold and rest too, for these say how long a note is;
        the notes are the onsets, on a grid of 24 steps a measure. Contexts are as of `nll`.
        """
        nats = self.nll(contexts).sum(axis=1)
        return NoteLikelihood(nats, (check_contexts(contexts)[:, MUSIB_LAYOUT.middle] < HOLD).sum(axis=1))


class TokenNetwork(StepwiseNetwork):
    """Base of those that write token by token; its `forward` gives logits (batch, 96, 130 or more) of the middle."""

    config: TokenConfig
    _numbers: tuple[int, ...]  # shape of the uniform numbers that one item needs at most

    @property
    def _temperatures(self) -> tuple[float, float]:
        """Of kinds, and of pitches or whole tokens."""
        apart = self.decoding == "two_stage" and self.kind_temperature is not None
        return (self.kind_temperature if apart else self.temperature), self.temperature  # type: ignore[return-value]

    @property
    def deterministic(self) -> bool:
        """Whether `inpaint` does without `rng`."""
        return self.decoding in self.fixed or not any(self._temperatures)

    @abc.abstractmethod
    def _decode(self, contexts: Tensor, uniform: Tensor) -> Tensor:
        """Return middles (batch, 96) of contexts (batch, 384), with uniform numbers (batch, *`_numbers`)."""

    def _choose(self, logits: Tensor, uniform: Tensor) -> Tensor:
        """Choose one token a row from logits (batch, 130) with two uniform numbers (batch, 2)."""
        if self.decoding not in {"sample", "two_stage"}:
            return logits.argmax(-1)
        log_p = logits.double().log_softmax(-1)
        of_kinds, of_pitches = self._temperatures
        if self.decoding == "sample":
            return draw(log_p, of_pitches, uniform[:, 0], self.top_p)
        pitches = log_p[:, :HOLD]  # (batch, 128)
        kinds = torch.cat([pitches.logsumexp(-1, keepdim=True), log_p[:, HOLD:]], dim=-1)  # onset, hold, rest
        kind = draw(kinds, of_kinds, uniform[:, 0])
        pitch = draw(pitches, of_pitches, uniform[:, 1], self.top_p)
        return torch.where(kind == 0, pitch, HOLD - 1 + kind)

    def inpaint(self, contexts: Tokens, *, rng: np.random.Generator) -> Tokens:
        """Fill the middles.

        Parameters
        ----------
        contexts
            Shape (n, 384). The middle is masked here, unless `decoding` leaks and needs it.
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
            Not contexts, or for a decoding that leaks not whole ones.
        """
        checked = self._checked(contexts)
        return self._fill(
            len(checked), self._numbers, rng, lambda rows, uniform: self._decode(self._tensor(checked[rows]), uniform)
        )

    def nll(self, contexts: Tokens) -> npt.NDArray[np.float64]:
        """Return the negative log-likelihood of the true middle, step by step.

        Each step is given past, future and the true middle before it, as far as the network reads that: `forward` says
        what reaches a step. It is the distribution that ``"sample"`` draws from at temperature 1, over the 130 real
        tokens, so that the sum over steps is the likelihood of the middle; a network with `sampled_latents` is given
        their means here. The published losses differ: see `training_loss`.

        Of whole contexts, shape (n, 384), values 0..129 (others raise `InvalidTokensError` or `ContextLengthError`);
        the result is (n, 96), nats, at least 0.
        """
        checked = check_contexts(contexts)

        def work(rows: slice) -> npt.NDArray[np.float64]:
            tokens = self._tensor(checked[rows])
            log_p = self(tokens)[..., :VOCABULARY_SIZE].double().log_softmax(-1)  # (batch, 96, 130)
            true = tokens[:, MUSIB_LAYOUT.middle, None]  # (batch, 96, 1)
            nats: npt.NDArray[np.float64] = -log_p.gather(-1, true).squeeze(-1).cpu().numpy()
            return nats

        return np.concatenate([np.empty((0, MUSIB_LAYOUT.middle_steps)), *self._each_part(len(checked), work)])


def draw(log_p: Tensor, temperature: float, uniform: Tensor, top_p: float = 1.0) -> Tensor:
    """Draw a class a row from log-probabilities (batch, classes): the cumulative sum inverted at uniform (batch,).

    Temperature 0 takes the most likely class. Below 1, `top_p` keeps the fewest classes that together have at least
    this probability (nucleus sampling; Holtzman et al., 2020).
    """
    if temperature == 0:
        return log_p.argmax(-1)
    p = (log_p / temperature).softmax(-1)  # (batch, classes)
    if top_p < 1:
        ranked, order = p.sort(-1, descending=True)
        # a class stays while those before it have less than top_p: the first one always does
        nucleus = torch.zeros_like(p, dtype=torch.bool).scatter(-1, order, ranked.cumsum(-1) - ranked < top_p)
        p = p.where(nucleus, 0.0)
    cumulative = p.cumsum(-1)
    # the distribution function inverted; times its last value, since a nucleus sums to less than 1
    passed = (cumulative <= uniform[:, None] * cumulative[:, -1:]).sum(-1)
    return passed.clamp(max=log_p.shape[-1] - 1)
