"""InpaintNet: a path through the latent space of single measures.

A variational autoencoder (MeasureVAE) turns each measure into a latent vector and back. A second network (LatentRNN)
reads the latents of past and future and writes those of the middle, one measure after the other; each is decoded,
encoded again and fed back.

Sources: Pati, Lerch & Hadjeres, "Learning to traverse latent spaces for musical score inpainting" (ISMIR 2019), for
both networks; Araneda et al., "MUSIB: musical score inpainting benchmark", for vocabulary, layout and the sizes:
17,710,261 parameters of MeasureVAE and 41,468,160 of LatentRNN.

Deviations, each with a switch in `InpaintNetConfig` that brings back the published behaviour: the logits go through no
ReLU (`output_relu`); the true latents that training feeds into the bidirectional network are fed one measure at a time,
so that its backward half cannot read the answer (`unmasked_future`); outside of training a latent is the mean of its
distribution (`sampled_latents`); the empty measures that are to be written are not filled with a C4 (`fix_empty`).
MUSIB's own scores feed the true latents of the middle to half of the items: that is the mode ``"forced_latents"``, a
leak, kept to reproduce them.
"""

import dataclasses
from collections.abc import Sequence
from typing import ClassVar

import torch
from torch import Tensor, nn

from music_evals.annotations import MUSIB_LAYOUT, VOCABULARY_SIZE
from music_evals.models.layers.measures import (
    MIDDLE,
    N_MEASURES,
    STEPS,
    HierarchicalDecoder,
    LatentRNN,
    MeasureConfig,
    MeasureNetwork,
    bidirectional_gru,
    cross_entropy,
    cut,
    draw_span,
    fix_empty,
    normals,
    xavier,
)

__all__ = ["DECODINGS", "SIZES", "InpaintNet", "InpaintNetConfig", "LatentRNN", "MeasureVAE"]

DECODINGS = ("argmax", "sample", "two_stage", "forced_latents")
"""How tokens are chosen; only ``"forced_latents"`` reads the true middle."""

SIZES = {
    "paper": {"note_embedding_size": 10, "measure_size": 512, "latent_size": 256, "context_size": 512},
    "small": {"note_embedding_size": 10, "measure_size": 128, "latent_size": 64, "context_size": 80},
}
"""Size -> the numbers that it stands for: the published ones, and 2.2 million parameters in all."""

_LEAK = 0.5  # share of the items that MUSIB's evaluation feeds the true latents


@dataclasses.dataclass(frozen=True)
class InpaintNetConfig(MeasureConfig):
    """Sizes of both networks, how they are trained, and the default decoding.

    A value outside its range raises `InvalidInputError`, a name that does not exist `UnknownNameError`.

    Parameters
    ----------
    model_type
        Always ``"inpaintnet"``; tells a reader of config.json which class to load.
    size
        One of `SIZES`; gives every size below that is 0 its value.
    note_embedding_size
        Length of one note's vector, in encoder and decoder.
    measure_size
        Hidden size of the encoder of a measure and of both networks of its decoder.
    latent_size
        Numbers that a measure is turned into.
    context_size
        Hidden size of the networks that read past and future; the one that writes has twice as much.
    dropout
        Between the layers of every recurrent network, 0..1.
    kl_weight
        Weight of the divergence of the latents from the prior, summed over their numbers.
    measure_forcing
        Probability that a batch of MeasureVAE is decoded from the true tokens.
    latent_forcing
        Probability that a batch of LatentRNN is fed the true latents.
    measures_per_context
        Measures of each context that MeasureVAE is trained on, drawn anew at each visit, 1..16.
    output_relu
        Published: logits go through a ReLU, which makes all unlikely tokens equally likely.
    unmasked_future
        Published: true latents are fed as one sequence to the bidirectional network, whose backward half then reads the
        measure that it is to predict.
    sampled_latents
        Published: latents are drawn from their distribution outside of training too.
    fix_empty
        ``"inputs"``: measures without an onset get a C4 where they are read. ``"all"``, published: those to be written
        as well, in training.
    decoding, temperature, kind_temperature, top_p
        As in `anticipation_rnn.AnticipationRNNConfig`.
    """

    model_type: str = "inpaintnet"
    kl_weight: float = 0.001
    measure_forcing: float = 0.5

    def __post_init__(self) -> None:
        self._check_measures(InpaintNet, SIZES, probabilities=("measure_forcing",))


class MeasureVAE(nn.Module):
    """Encoder and decoder of one measure; Pati et al., section 3.1."""

    def __init__(self, config: InpaintNetConfig) -> None:
        super().__init__()
        size = config.measure_size
        self.note_embedding = nn.Embedding(VOCABULARY_SIZE, config.note_embedding_size)
        self.encoder_rnn = bidirectional_gru(config.note_embedding_size, size, config.dropout)
        self.mean, self.log_std = (
            nn.Sequential(nn.Linear(4 * size, 2 * size), nn.SELU(), nn.Linear(2 * size, config.latent_size))
            for _ in range(2)
        )
        self.decoder = HierarchicalDecoder(
            config.latent_size, size, config.note_embedding_size, config.dropout, output_relu=config.output_relu
        )
        xavier(self)

    def encode(self, measures: Tensor) -> tuple[Tensor, Tensor]:
        """Return mean and logarithm of the standard deviation of the latents, (..., latent), of measures (..., 24)."""
        flat = measures.reshape(-1, STEPS)
        _, states = self.encoder_rnn(self.note_embedding(flat))  # (4, n, size)
        hidden = states.transpose(0, 1).reshape(len(flat), -1)  # (n, 4 * size)
        shape = (*measures.shape[:-1], -1)
        return self.mean(hidden).view(shape), self.log_std(hidden).view(shape)


class InpaintNet(MeasureNetwork, tags=["music", "symbolic-music", "inpainting"]):
    """InpaintNet over NoteSeq contexts of 6 + 4 + 6 measures; a `protocols.LikelihoodInpainter`.

    Measures -> MeasureVAE's encoder -> latents -> LatentRNN -> latents of the middle -> MeasureVAE's decoder. It is
    trained in two stages, ``"vae"`` and ``"latent_rnn"``; the second leaves the autoencoder as it is.

    Parameters
    ----------
    config
        `InpaintNetConfig`: sizes, training and default decoding; None is its defaults.
    decoding
        Overrides `config.decoding`. ``"argmax"`` takes the most likely token, ``"sample"`` draws one,
        ``"two_stage"`` first draws onset, hold or rest and then the pitch, as in `AnticipationRNN`.
        ``"forced_latents"`` leaks: for half of the items, drawn by `rng`, LatentRNN is fed the true latents.
    temperature, top_p
        Override those of the config. All of them, and `kind_temperature`, may also be set as attributes, at any time.

    Raises
    ------
    InvalidInputError, UnknownNameError
        A decoding, temperature or share that does not exist.
    """

    config: InpaintNetConfig
    vae: MeasureVAE
    config_class = InpaintNetConfig
    decodings = DECODINGS
    leaking = frozenset({"forced_latents"})
    stages: ClassVar = {"vae": ("vae",), "latent_rnn": ("latent_rnn",)}

    def _build(self, config: InpaintNetConfig) -> None:
        self.vae = MeasureVAE(config)
        self.latent_rnn = LatentRNN(config.latent_size, config.context_size, config.dropout)
        # two a step, one for who is fed the truth, and one for each number of a latent
        latents = N_MEASURES * config.latent_size if config.sampled_latents else 0
        self._numbers = (2 * MUSIB_LAYOUT.middle_steps + 1 + latents,)

    @property
    def deterministic(self) -> bool:
        """Whether `inpaint` does without `rng`."""
        return super().deterministic and self.decoding != "forced_latents"

    def forward(self, contexts: Tensor) -> Tensor:
        """Return the logits (batch, 96, 130) of every middle step, given the true tokens before it.

        Of whole contexts (batch, 384), int64, values 0..129. A measure is written from past, future and the true
        measures of the middle before it.
        """
        measures = cut(contexts)  # (batch, 16, 24)
        latents, _ = self.vae.encode(fix_empty(measures))  # (batch, 16, latent)
        state = self.latent_rnn.read(latents[:, : MIDDLE.start], latents[:, MIDDLE.stop :])
        logits = []
        for measure in range(MIDDLE.start, MIDDLE.stop):
            z, state = self.latent_rnn.write(latents[:, measure - 1, None], state)  # (batch, 1, latent)
            logits.append(self.vae.decoder(z[:, 0], measures[:, measure], (True,) * STEPS)[0])
        return torch.cat(logits, dim=1)  # (batch, 96, 130)

    def training_loss(self, contexts: Tensor, *, varied: bool = False) -> Tensor:
        """Return the loss of the stage for whole contexts (batch, 384), (batch,), nats a step.

        ``"vae"``: cross-entropy of the tokens of some measures plus the weighted divergence of their latents.
        ``"latent_rnn"``: cross-entropy of the measures that were written, each tick given the network's own choice
        before it, as published; outside of training that is MUSIB's NLL without the true latents. Varied, it writes
        other spans than the middle too, of 2 to 6 measures, as Pati et al. train it.
        """
        measures = self._true_measures(contexts)
        if self.stage == "vae":
            return self._vae_loss(measures)
        start, stop = draw_span(varied=varied)
        latents = self._sample_latents(*self.vae.encode(fix_empty(measures)))  # (batch, 16, latent)
        state = self.latent_rnn.read(latents[:, :start], latents[:, stop:])
        forced = self.training and bool(torch.rand(()) < self.config.latent_forcing)
        if forced and self.config.unmasked_future:
            zs, _ = self.latent_rnn.write(latents[:, start - 1 : stop - 1], state)  # (batch, n, latent)
            logits, _ = self.vae.decoder(zs.flatten(0, 1))
            return cross_entropy(logits.view(len(zs), -1, VOCABULARY_SIZE), measures[:, start:stop].flatten(1)).mean(1)
        losses, before = [], latents[:, start - 1]
        for measure in range(start, stop):
            z, state = self.latent_rnn.write(before[:, None], state)
            logits, tokens = self.vae.decoder(z[:, 0])  # (batch, 24, 130), (batch, 24)
            losses.append(cross_entropy(logits, measures[:, measure]))
            before = latents[:, measure] if forced else self._sample_latents(*self.vae.encode(fix_empty(tokens)))
        return torch.cat(losses, dim=1).mean(1)

    def _forced_ticks(self) -> Sequence[bool]:
        """Give a whole batch the true tokens, or none of it."""
        return (self.training and bool(torch.rand(()) < self.config.measure_forcing),) * STEPS

    def _decode(self, contexts: Tensor, uniform: Tensor) -> Tensor:
        """Write the middle measure by measure, each fed back as a latent; `uniform` is laid out as in `_numbers`."""
        n = 2 * MUSIB_LAYOUT.middle_steps
        per_token = uniform[:, :n].reshape(len(contexts), -1, 2)  # (batch, 96, 2)
        coin, rest = uniform[:, n : n + 1], uniform[:, n + 1 :]
        noise = normals(rest).view(len(contexts), N_MEASURES, -1) if rest.shape[1] else None  # (batch, 16, latent)

        def latent(measures: Tensor, where: slice) -> Tensor:
            mean, log_std = self.vae.encode(fix_empty(measures))
            return mean if noise is None else mean + log_std.exp() * noise[:, where]

        def choose(logits: Tensor, tick: int) -> Tensor:
            return self._choose(logits, per_token[:, (measure - MIDDLE.start) * STEPS + tick])

        measures = cut(contexts)
        past = latent(measures[:, : MIDDLE.start], slice(0, MIDDLE.start))
        future = latent(measures[:, MIDDLE.stop :], slice(MIDDLE.stop, N_MEASURES))
        first = state = self.latent_rnn.read(past, future)
        if self.sees_reference:
            forced = coin < _LEAK  # (batch, 1)
            truth = torch.cat([past[:, -1:], latent(measures[:, MIDDLE], MIDDLE)], dim=1)  # (batch, 5, latent)
            ahead = self.latent_rnn.write(truth[:, :-1], first)[0]  # (batch, 4, latent), each with a look ahead
        before, written = past[:, -1], []
        for measure in range(MIDDLE.start, MIDDLE.stop):
            z, state = self.latent_rnn.write(before[:, None], state)
            if self.sees_reference and self.config.unmasked_future:
                z = torch.where(forced[:, None], ahead[:, measure - MIDDLE.start, None], z)
            written.append(self.vae.decoder(z[:, 0], choose=choose)[1])  # (batch, 24)
            before = latent(written[-1][:, None], slice(measure, measure + 1))[:, 0]
            if self.sees_reference:
                before = torch.where(forced, truth[:, measure - MIDDLE.start + 1], before)
        return torch.cat(written, dim=1)  # (batch, 96)
