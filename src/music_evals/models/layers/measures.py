"""What the two models that write measure by measure share: the decoder of a measure, FixEmpty, latents."""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from music_evals.annotations import HOLD, MUSIB_LAYOUT, VOCABULARY_SIZE
from music_evals.errors import UnknownNameError
from music_evals.models.layers.networks import InpaintingNetwork, SizedConfig, Sizes, TokenConfig, TokenNetwork
from music_evals.protocols.settings import check_rules
from music_evals.symbolic.encodings.factorized import FIX_EMPTY_PITCH

STEPS = MUSIB_LAYOUT.steps_per_measure
N_MEASURES = MUSIB_LAYOUT.n_measures
MIDDLE = slice(MUSIB_LAYOUT.past_measures, MUSIB_LAYOUT.past_measures + MUSIB_LAYOUT.middle_measures)
BEATS, TICKS = 4, 6  # of a measure, and of a beat
N_LAYERS = 2  # of every recurrent network of both models

FIX_EMPTY = ("inputs", "all")
"""What FixEmpty is applied to: the measures that are read, or those that are to be written too, as MUSIB does."""


@dataclasses.dataclass(frozen=True)
class MeasureConfig(SizedConfig, TokenConfig):
    """Settings of both models; `inpaintnet.InpaintNetConfig` documents them."""

    note_embedding_size: int = 0
    measure_size: int = 0
    latent_size: int = 0
    context_size: int = 0
    dropout: float = 0.5
    kl_weight: float = 0.0
    latent_forcing: float = 0.5
    measures_per_context: int = 4
    output_relu: bool = False
    unmasked_future: bool = False
    sampled_latents: bool = False
    fix_empty: str = "inputs"

    def _check_measures(
        self,
        network: type[InpaintingNetwork],
        sizes: Sizes,
        *,
        shares: tuple[str, ...] = (),
        probabilities: tuple[str, ...] = (),
        **others: Any,
    ) -> None:
        """Fill in the sizes, and check what both models have and what is named."""
        shares, probabilities = ("dropout", *shares), ("latent_forcing", *probabilities)
        self._check_sized(network, sizes, shares=shares, probabilities=probabilities, **others)
        rules = {
            "kl_weight must not be negative": self.kl_weight >= 0,
            f"measures_per_context must lie in 1..{N_MEASURES}": 1 <= self.measures_per_context <= N_MEASURES,
        }
        check_rules(self, rules)
        if self.fix_empty not in FIX_EMPTY:
            raise UnknownNameError("fix_empty", self.fix_empty, FIX_EMPTY)


class MeasureNetwork(TokenNetwork):
    """Base of both models; their first stage is an autoencoder of single measures."""

    config: MeasureConfig
    vae: Any
    """Has `encode`, from measures to means and log deviations of their latents, and a `HierarchicalDecoder`."""

    @property
    def deterministic(self) -> bool:
        """Whether `inpaint` does without `rng`."""
        return super().deterministic and not self.config.sampled_latents

    @abc.abstractmethod
    def _forced_ticks(self) -> Sequence[bool]:
        """Draw which ticks of a batch of the first stage are given the true token before them."""

    def _sample_latents(self, mean: Tensor, log_std: Tensor) -> Tensor:
        """Draw latents in training, and where the config says so; else return their means."""
        is_sampled = self.training or self.config.sampled_latents
        return mean + log_std.exp() * torch.randn_like(mean) if is_sampled else mean

    def _true_measures(self, contexts: Tensor) -> Tensor:
        """Return the measures (batch, 16, 24) that are to be written."""
        measures = cut(contexts)
        return fix_empty(measures) if self.config.fix_empty == "all" else measures

    def _vae_loss(self, measures: Tensor) -> Tensor:
        """Reconstruct measures that are drawn in training; outside of it those of the middle."""
        # k measures of each context, (batch, k, 24), drawn in training
        chosen = measures[:, MIDDLE]
        if self.training:
            order = torch.rand(measures.shape[:2]).argsort(1)[:, : self.config.measures_per_context]
            chosen = measures.gather(1, order.to(measures.device)[..., None].expand(-1, -1, STEPS))
        mean, log_std = self.vae.encode(fix_empty(chosen))  # (batch, k, latent), or (batch, k, 2, latent)
        z = self._sample_latents(mean, log_std).flatten(0, 1).flatten(1)  # (batch * k, all numbers of a latent)
        true = chosen.reshape(-1, STEPS)
        logits, _ = self.vae.decoder(z, true, self._forced_ticks())  # (batch * k, 24, 130)
        written = cross_entropy(logits, true).view(len(chosen), -1).mean(1)
        # of N(mean, std) from N(0, 1), nats; summed over the numbers of a latent, of pitch and rhythm apart the mean
        divergence: Tensor = (mean.square() + (2 * log_std).exp() - 1) / 2 - log_std
        divergence = divergence.mean(-1) if mean.dim() == 4 else divergence
        return written + self.config.kl_weight * divergence.sum(-1).mean(1)


class HierarchicalDecoder(nn.Module):
    """From the latent of a measure to its 24 tokens: a network of 4 beats, and under each one of 6 ticks.

    Pati, Lerch and Hadjeres (2019), section 3.1; both models have it, in two sizes.
    """

    def __init__(self, latent_size: int, size: int, embedding_size: int, dropout: float, *, output_relu: bool) -> None:
        super().__init__()
        self.size = size
        self.output_relu = output_relu
        self.beat_state = nn.Sequential(nn.Linear(latent_size, N_LAYERS * size), nn.SELU())
        self.beat_input = nn.Parameter(torch.zeros(1))
        self.beat_rnn = nn.GRU(1, size, N_LAYERS, batch_first=True, dropout=dropout)
        self.tick_state = nn.Sequential(nn.Linear(size, N_LAYERS * size), nn.SELU())
        self.tick_plan = nn.Sequential(nn.Linear(size, size), nn.SELU())
        self.first_note = nn.Parameter(torch.zeros(embedding_size))
        self.note_embedding = nn.Embedding(VOCABULARY_SIZE, embedding_size)
        self.tick_rnn = nn.GRU(embedding_size + size, size, N_LAYERS, batch_first=True, dropout=dropout)
        self.head = nn.Linear(size, VOCABULARY_SIZE)

    def forward(
        self,
        z: Tensor,
        true: Tensor | None = None,
        forced: Sequence[bool] = (False,) * STEPS,
        choose: Callable[[Tensor, int], Tensor] | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Return logits (batch, 24, 130) and the tokens that were chosen from them (batch, 24).

        Each tick is given the token before it: the `true` one (batch, 24) where that tick is `forced`, else the one
        that ``choose(logits, tick)`` took, which is the most likely by default.
        """
        beats = self.beats(z)  # (batch, 4, size)
        if true is not None and all(forced):
            # all beats side by side, for the notes before each tick are known
            before = torch.cat([self.first_note.expand(len(true), 1, -1), self.note_embedding(true[:, :-1])], dim=1)
            beats = beats.reshape(-1, self.size)  # (batch * 4, size)
            plan, state = self.begin_beat(beats)
            x = torch.cat([before.reshape(len(beats), TICKS, -1), plan[:, None].expand(-1, TICKS, -1)], dim=-1)
            hidden, _ = self.tick_rnn(x, state)  # (batch * 4, 6, size)
            logits = self._logits(hidden.reshape(len(true), STEPS, -1))
            return logits, logits.argmax(-1)
        steps: list[Tensor] = []
        tokens: list[Tensor] = []
        note = self.first_note.expand(len(z), -1)  # (batch, embedding)
        for beat in range(BEATS):
            plan, state = self.begin_beat(beats[:, beat])
            for tick in range(beat * TICKS, (beat + 1) * TICKS):
                logits, state = self.step(note, plan, state)
                steps.append(logits)
                tokens.append(choose(steps[-1], tick) if choose else steps[-1].argmax(-1))
                note = self.note_embedding(true[:, tick] if true is not None and forced[tick] else tokens[-1])
        return torch.stack(steps, dim=1), torch.stack(tokens, dim=1)

    def beats(self, z: Tensor) -> Tensor:
        """Return what there is to know of each beat, (batch, 4, size), from latents (batch, latent)."""
        beats, _ = self.beat_rnn(self.beat_input.expand(len(z), BEATS, 1), _layers(self.beat_state(z)))
        return beats  # type: ignore[no-any-return]

    def begin_beat(self, beat: Tensor) -> tuple[Tensor, Tensor]:
        """Return the plan (batch, size) and the first state (2, batch, size) of the ticks of a beat (batch, size)."""
        return self.tick_plan(beat), _layers(self.tick_state(beat))

    def step(self, note: Tensor, plan: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """Return the logits (batch, 130) of a tick and the next state, from the vector of the note before it."""
        hidden, state = self.tick_rnn(torch.cat([note, plan], dim=-1)[:, None], state)
        return self._logits(hidden[:, 0]), state

    def _logits(self, hidden: Tensor) -> Tensor:
        logits: Tensor = self.head(hidden)
        return logits.relu() if self.output_relu else logits


def _layers(flat: Tensor) -> Tensor:
    """Cut (batch, 2 * size) into the states of two layers, (2, batch, size)."""
    return flat.view(len(flat), N_LAYERS, -1).transpose(0, 1).contiguous()


class LatentRNN(nn.Module):
    """From the latents of past and future to those between them; Pati et al. (2019), section 3.2."""

    def __init__(self, latent_size: int, size: int, dropout: float) -> None:
        super().__init__()
        self.past_rnn = bidirectional_gru(latent_size, size, dropout)
        self.future_rnn = bidirectional_gru(latent_size, size, dropout)
        self.generation_rnn = bidirectional_gru(latent_size, 2 * size, dropout)
        self.out = nn.Linear(4 * size, latent_size)
        xavier(self)

    def read(self, past: Tensor, future: Tensor) -> Tensor:
        """Return the first state of `write`, (4, batch, 2 * size), from latents (batch, measures, latent)."""
        _, before = self.past_rnn(past)
        _, after = self.future_rnn(future)
        return torch.cat([before, after], dim=-1)

    def write(self, latents: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """Return the latents that follow each of (batch, measures, latent), and the state after the last.

        The network runs both ways: one measure at a time, or each is written with a look at those that come later.
        """
        hidden, state = self.generation_rnn(latents, state)  # (batch, measures, 4 * size)
        return self.out(hidden), state


def bidirectional_gru(input_size: int, size: int, dropout: float) -> nn.GRU:
    """Return a network of two layers; its last states are (4, batch, size)."""
    return nn.GRU(input_size, size, N_LAYERS, batch_first=True, dropout=dropout, bidirectional=True)


def xavier(module: nn.Module) -> None:
    """Draw all weights from Xavier's normal distribution, as published; biases stay as they are."""
    for name, parameter in module.named_parameters():
        if "weight" in name:
            nn.init.xavier_normal_(parameter)


def cut(contexts: Tensor) -> Tensor:
    """Cut contexts (batch, 384) into measures (batch, 16, 24)."""
    return contexts.view(len(contexts), N_MEASURES, STEPS)


def fix_empty(measures: Tensor) -> Tensor:
    """Give measures (..., 24) without an onset a C4 on their first step, as `encodings.factorized.fix_empty` does."""
    empty = ~(measures < HOLD).any(-1, keepdim=True)
    return torch.cat([measures[..., :1].masked_fill(empty, FIX_EMPTY_PITCH), measures[..., 1:]], dim=-1)


def draw_span(*, varied: bool) -> tuple[int, int]:
    """Return first measure and end of what is to be written: the middle, or a span as Pati et al. train with.

    Those have 2 to 6 measures, and at least one measure on either side.
    """
    if not varied:
        return MIDDLE.start, MIDDLE.stop
    length = int(torch.randint(2, 7, ()))
    start = int(torch.randint(1, N_MEASURES - length, ()))
    return start, start + length


def normals(uniform: Tensor) -> Tensor:
    """Turn uniform numbers in [0, 1) into standard normal ones by the inverse of their distribution."""
    # 2^-54 is half of the spacing of the uniform numbers: 0 itself would become minus infinity
    normal: Tensor = torch.special.ndtri(uniform.double() + 2.0**-54)
    return normal.float()


def cross_entropy(logits: Tensor, tokens: Tensor) -> Tensor:
    """Return the loss of each step, nats: logits (..., 130), tokens (...)."""
    losses: Tensor = functional.cross_entropy(logits.float().flatten(0, -2), tokens.flatten(), reduction="none")
    return losses.view(tokens.shape)
