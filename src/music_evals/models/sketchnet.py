"""SketchNet: pitch and rhythm of a measure apart, so that a user may sketch either.

A variational autoencoder (SketchVAE) has two encoders, one of the pitches of a measure and one of its rhythm, and one
decoder. SketchInpainter goes from the latents of past and future to those of the middle, pitch and rhythm each by
itself. SketchConnector, a transformer over all sixteen measures, brings them together with what the user has sketched.

Sources: Chen, Wang, Berg-Kirkpatrick & Dubnov, "Music SketchNet: controllable music generation via factorized
representations of pitch and rhythm" (ISMIR 2020), for the three networks; Araneda et al., "MUSIB: musical score
inpainting benchmark", for vocabulary and layout. 78,447,797 parameters of SketchVAE, 79,266,048 of SketchInpainter and
12,865,280 of SketchConnector. MUSIB never trained the connector, and judges the second stage alone: that is the
decoding ``"without_connector"``.

Deviations, each with a switch in `SketchNetConfig` that brings back the published behaviour: the logits go through no
ReLU (`output_relu`); the true latents that training feeds into the bidirectional network are fed one measure at a time,
so that its backward half cannot read the answer (`unmasked_future`); outside of training a latent is the mean of its
distribution (`sampled_latents`); the empty measures that are to be written are not filled with a C4 (`fix_empty`). The
decodings ``"reference_pitch"`` and ``"reference_rhythm"`` take the sketch from the true middle, and leak.
"""

# Annotations stay real objects here: the Hub mixin reads the type of `config` from the signature.
import dataclasses
import math
from collections.abc import Sequence
from typing import ClassVar, NamedTuple, Self

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import pack_padded_sequence

from music_evals.annotations import HOLD, MUSIB_LAYOUT, VOCABULARY_SIZE, Tokens
from music_evals.errors import ContextLengthError, InvalidInputError, PairCountError
from music_evals.models._contexts import hide_middle
from music_evals.models._measures import (
    MIDDLE,
    N_MEASURES,
    STEPS,
    HierarchicalDecoder,
    LatentRNN,
    bidirectional_gru,
    check_training,
    cross_entropy,
    cut,
    draw_measures,
    draw_span,
    fix_empty,
    gaussian_kl,
    normals,
)
from music_evals.models._network import InpaintingNetwork, check_choice, check_ranges, chunks, draw, fill_sizes
from music_evals.symbolic import factorized
from music_evals.symbolic.noteseq import check_contexts, check_tokens

__all__ = [
    "DECODINGS",
    "SIZES",
    "Sketch",
    "SketchConnector",
    "SketchInpainter",
    "SketchNet",
    "SketchNetConfig",
    "SketchVAE",
]

DECODINGS = ("argmax", "sample", "without_connector", "reference_pitch", "reference_rhythm")
"""How tokens are chosen; the last two read the true middle."""

SIZES = {
    "paper": {
        "note_embedding_size": 10,
        "measure_size": 1024,
        "latent_size": 128,
        "context_size": 512,
        "connector_size": 512,
        "connector_layers": 4,
    },
    "small": {
        "note_embedding_size": 10,
        "measure_size": 128,
        "latent_size": 32,
        "context_size": 48,
        "connector_size": 96,
        "connector_layers": 3,
    },
}
"""Size -> the numbers that it stands for: the published ones, and 2.4 million parameters in all."""

_N_MIDDLE = MUSIB_LAYOUT.middle_measures


@dataclasses.dataclass(frozen=True)
class SketchNetConfig:
    """Sizes of the three networks, how they are trained, and the default decoding.

    Parameters
    ----------
    model_type
        Always ``"sketchnet"``; tells a reader of config.json which class to load.
    size
        One of `SIZES`; gives every size below that is 0 its value.
    note_embedding_size
        Length of one note's vector, in the pitch encoder and in the decoder.
    measure_size
        Hidden size of both encoders of a measure and of both networks of its decoder.
    latent_size
        Numbers that the pitches of a measure are turned into, and its rhythm.
    context_size
        Hidden size of the networks that read past and future; those that write have twice as much.
    connector_size
        Width of the connector; its inner layers are four times as wide.
    connector_layers, connector_heads
        Layers of the connector, and heads of each; the heads share its width.
    measure_dropout, dropout, connector_dropout
        Of SketchVAE, of SketchInpainter and of SketchConnector, 0..1.
    kl_weight
        Weight of the divergences of pitch and rhythm latents from the prior, each a mean over its numbers.
    forcing_decay
        SketchVAE's ticks are given the true token before them with the probability k / (k + exp(step / k)), k being
        this number: nearly 1 at first, a half at step k ln k. Published: 4000.
    latent_forcing
        Probability that a batch of SketchInpainter is fed the true latents.
    reveal_batches, reveal
        Share of the batches in which SketchConnector is shown true latents, and the probability of each latent there.
    measures_per_context
        Measures of each context that SketchVAE is trained on, drawn anew at each visit, 1..16.
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
    decoding
        One of `DECODINGS`, except those that read the true middle: a leak is never a default.
    temperature
        For ``"sample"``: 1 samples the network's own distribution, 0 takes the most likely.
    top_p
        For ``"sample"``: the most likely tokens that together reach this probability are kept, above 0 and at most 1.

    Raises
    ------
    InvalidInputError, UnknownNameError
        A value outside its range.

    """

    model_type: str = "sketchnet"
    size: str = "paper"
    note_embedding_size: int = 0
    measure_size: int = 0
    latent_size: int = 0
    context_size: int = 0
    connector_size: int = 0
    connector_layers: int = 0
    connector_heads: int = 4
    measure_dropout: float = 0.2
    dropout: float = 0.5
    connector_dropout: float = 0.1
    kl_weight: float = 0.1
    forcing_decay: float = 4000.0
    latent_forcing: float = 0.5
    reveal_batches: float = 0.5
    reveal: float = 0.3
    measures_per_context: int = 4
    output_relu: bool = False
    unmasked_future: bool = False
    sampled_latents: bool = False
    fix_empty: str = "inputs"
    decoding: str = "argmax"
    temperature: float = 1.0
    top_p: float = 1.0

    def __post_init__(self) -> None:
        fill_sizes(self, SIZES)
        shares = ("measure_dropout", "dropout", "connector_dropout")
        check_ranges(self, "sketchnet", at_least_one=(*SIZES["paper"], "connector_heads"), shares=shares)
        check_training(self, ("latent_forcing", "reveal_batches", "reveal"))
        if not self.forcing_decay >= 1:
            raise InvalidInputError(f"forcing_decay must be at least 1, got {self.forcing_decay}")
        if self.connector_size % (2 * self.connector_heads):
            raise InvalidInputError(
                f"connector_size must be a multiple of twice connector_heads ({2 * self.connector_heads}), got "
                f"{self.connector_size}"
            )
        if self.decoding in SketchNet.leaking:
            raise InvalidInputError(
                f"{self.decoding} reads the true middle and cannot be a default; ask for it by name"
            )
        check_choice(self.decoding, self.temperature, DECODINGS, self.top_p)


@dataclasses.dataclass(frozen=True)
class Sketch:
    """What a user wants of the four measures of the middle; what is None is left to the network.

    Parameters
    ----------
    pitches
        One entry a measure: None, or MIDI numbers 0..127 in the order in which they are to sound, 1 to 24 of them.
    rhythms
        One entry a measure: None, or 24 steps, each 1 onset, 2 hold or 3 rest.

    Raises
    ------
    InvalidInputError
        Not four entries, or an entry of another form.

    Examples
    --------
    >>> Sketch(pitches=((60, 62, 64), None, None, None)).pitches[0]
    (60, 62, 64)

    """

    pitches: tuple[tuple[int, ...] | None, ...] = (None,) * _N_MIDDLE
    rhythms: tuple[tuple[int, ...] | None, ...] = (None,) * _N_MIDDLE

    def __post_init__(self) -> None:
        rules = {
            "pitches": (self.pitches, range(128), range(1, STEPS + 1), "1 to 24 MIDI numbers 0..127"),
            "rhythms": (self.rhythms, range(1, 4), (STEPS,), "24 steps of 1 onset, 2 hold or 3 rest"),
        }
        for name, (entries, values, lengths, wanted) in rules.items():
            if len(entries) != _N_MIDDLE:
                raise InvalidInputError(
                    f"{name} needs one entry a measure of the middle, {_N_MIDDLE}; got {len(entries)}"
                )
            for measure, entry in enumerate(entries):
                if entry is not None and not (len(entry) in lengths and all(value in values for value in entry)):
                    raise InvalidInputError(f"{name} of measure {measure} must be {wanted}, or None; got {entry}")

    @classmethod
    def from_tokens(cls, middle: npt.ArrayLike, *, pitch: bool = True, rhythm: bool = True) -> Self:
        """Take pitches, rhythm or both from a middle that is there, such as one that a user has edited.

        Parameters
        ----------
        middle
            NoteSeq tokens, shape (96,). A measure without an onset sketches no pitches.
        pitch, rhythm
            What to take.

        Raises
        ------
        InvalidTokensError, ContextLengthError
            Not the tokens of a middle.

        """
        tokens = check_tokens(middle)
        if tokens.shape != (MUSIB_LAYOUT.middle_steps,):
            raise ContextLengthError(f"expected a middle of shape ({MUSIB_LAYOUT.middle_steps},), got {tokens.shape}")
        parts = factorized.encode(tokens)
        pitches = [tuple(row[:n].tolist()) or None for row, n in zip(parts.px, parts.len_x, strict=True)]
        rhythms = [tuple(row.tolist()) for row in parts.rx]
        nothing = (None,) * _N_MIDDLE
        return cls(tuple(pitches) if pitch else nothing, tuple(rhythms) if rhythm else nothing)


class _Latents(NamedTuple):
    """Sketched latents of the middle, and which of them there are."""

    values: Tensor  # (batch, 4, 2, latent): pitch and rhythm
    given: Tensor  # (batch, 4, 2), bool


class SketchVAE(nn.Module):
    """Two encoders and one decoder of a measure; Chen et al., section 3.2."""

    def __init__(self, config: SketchNetConfig) -> None:
        super().__init__()
        size, latent = config.measure_size, config.latent_size
        self.note_embedding = nn.Embedding(VOCABULARY_SIZE, config.note_embedding_size)
        self.pitch_rnn = bidirectional_gru(config.note_embedding_size, size, config.measure_dropout)
        self.pitch_mean = nn.Linear(4 * size, latent)
        self.pitch_log_std = nn.Linear(4 * size, latent)
        self.rhythm_rnn = bidirectional_gru(3, size, config.measure_dropout)
        self.rhythm_mean = nn.Linear(4 * size, latent)
        self.rhythm_log_std = nn.Linear(4 * size, latent)
        self.decoder = HierarchicalDecoder(
            2 * latent, size, config.note_embedding_size, config.measure_dropout, output_relu=config.output_relu
        )

    def encode_pitch(self, pitches: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """Return mean and log deviation (n, latent) of left-packed pitches (n, 24), of which `lengths` (n,) count."""
        notes = self.note_embedding(pitches)  # (n, 24, embedding)
        packed = pack_padded_sequence(notes, lengths.cpu(), batch_first=True, enforce_sorted=False)
        _, states = self.pitch_rnn(packed)  # (4, n, size)
        hidden = states.transpose(0, 1).flatten(1)  # (n, 4 * size)
        return self.pitch_mean(hidden), self.pitch_log_std(hidden)

    def encode_rhythm(self, rhythm: Tensor) -> tuple[Tensor, Tensor]:
        """Return mean and log deviation (n, latent) of rhythm classes (n, 24): 0 onset, 1 hold, 2 rest."""
        _, states = self.rhythm_rnn(functional.one_hot(rhythm, 3).to(self.note_embedding.weight.dtype))
        hidden = states.transpose(0, 1).flatten(1)
        return self.rhythm_mean(hidden), self.rhythm_log_std(hidden)

    def encode(self, measures: Tensor) -> tuple[Tensor, Tensor]:
        """Return mean and log deviation (..., 2, latent), pitch and rhythm, of measures (..., 24) with an onset."""
        flat = measures.reshape(-1, STEPS)
        pitches, lengths, rhythm = factorize(flat)
        pairs = zip(self.encode_pitch(pitches, lengths), self.encode_rhythm(rhythm), strict=True)
        mean, log_std = (torch.stack(pair, dim=1).view(*measures.shape[:-1], 2, -1) for pair in pairs)
        return mean, log_std


def factorize(measures: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Cut measures (n, 24) into packed pitches (n, 24), their number (n,) and rhythm classes (n, 24).

    The same as `symbolic.factorized.encode`, which counts the rhythm from 1.
    """
    onsets = measures < HOLD
    order = (~onsets).to(torch.uint8).argsort(dim=1, stable=True)  # onsets first, in their order
    lengths = onsets.sum(1)
    steps = torch.arange(STEPS, device=measures.device)
    pitches = measures.gather(1, order).masked_fill(steps >= lengths[:, None], factorized.PAD)
    return pitches, lengths, (measures - HOLD + 1).clamp(min=0)


class SketchInpainter(nn.Module):
    """From the latents of past and future to those between them, pitch and rhythm apart; Chen et al., section 3.3."""

    def __init__(self, config: SketchNetConfig) -> None:
        super().__init__()
        sizes = config.latent_size, config.context_size, config.dropout
        self.pitch, self.rhythm = LatentRNN(*sizes), LatentRNN(*sizes)

    def forward(self, past: Tensor, future: Tensor, n: int, true: Tensor | None = None, *, ahead: bool) -> Tensor:
        """Return the n latents between `past` and `future`, each (batch, measures, 2, latent).

        Each is given the one before it: the `true` one (batch, n, 2, latent) if that is there, else what was written.
        `ahead`: the true ones are read as one sequence, so that each is written with a look at those that come later.
        """
        written = []
        for kind, path in enumerate((self.pitch, self.rhythm)):
            state = path.read(past[..., kind, :], future[..., kind, :])
            before = past[:, -1:, kind]  # (batch, 1, latent)
            if true is not None and ahead:
                z, _ = path.write(torch.cat([before, true[:, :-1, kind]], dim=1), state)
                written.append(z)
                continue
            zs = []
            for measure in range(n):
                z, state = path.write(before, state)
                zs.append(z)
                before = z if true is None else true[:, measure : measure + 1, kind]
            written.append(torch.cat(zs, dim=1))  # (batch, n, latent)
        return torch.stack(written, dim=2)


class _ConnectorLayer(nn.Module):
    """Attention whose query alone is normalised first, and a feed-forward network."""

    def __init__(self, size: int, n_heads: int, dropout: float) -> None:
        super().__init__()
        self.n_heads = n_heads
        self.norm = nn.LayerNorm(size, eps=1e-6)
        self.query, self.key, self.value, self.out = (nn.Linear(size, size, bias=False) for _ in range(4))
        self.feed_forward = nn.Sequential(
            nn.LayerNorm(size, eps=1e-6), nn.Linear(size, 4 * size), nn.ReLU(), nn.Linear(4 * size, size)
        )
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        """Return (batch, measures, size) for the same."""
        query, key, value = (
            part.unflatten(-1, (self.n_heads, -1)).transpose(1, 2)  # (batch, heads, measures, size / heads)
            for part in (self.query(self.norm(x)), self.key(x), self.value(x))
        )
        dropout = self.dropout.p if self.training else 0.0
        seen = functional.scaled_dot_product_attention(query, key, value, dropout_p=dropout)
        x = x + self.dropout(self.out(seen.transpose(1, 2).flatten(2)))
        return x + self.dropout(self.feed_forward(x))  # type: ignore[no-any-return]


class SketchConnector(nn.Module):
    """A transformer over all measures that brings inpainted and sketched latents together; Chen et al., section 3.4."""

    positions: Tensor

    def __init__(self, config: SketchNetConfig) -> None:
        super().__init__()
        size, both = config.connector_size, 2 * config.latent_size
        self.into = nn.Linear(both, size)
        angle = torch.arange(N_MEASURES)[:, None] / 10_000 ** (torch.arange(0, size, 2) / size)  # (16, size / 2)
        positions = torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1)  # (16, size)
        self.register_buffer("positions", positions, persistent=False)
        self.dropout = nn.Dropout(config.connector_dropout)
        self.layers = nn.Sequential(
            *(
                _ConnectorLayer(size, config.connector_heads, config.connector_dropout)
                for _ in range(config.connector_layers)
            )
        )
        self.norm = nn.LayerNorm(size, eps=1e-6)
        self.out = nn.Linear(size, both)

    def forward(self, latents: Tensor) -> Tensor:
        """Return all latents (batch, 16, 2, latent) anew."""
        x = self.dropout(self.into(latents.flatten(2)) + self.positions)  # (batch, 16, size)
        connected: Tensor = self.out(self.norm(self.layers(x)))  # (batch, 16, 2 * latent)
        return connected.view_as(latents)


class SketchNet(InpaintingNetwork, tags=["music", "symbolic-music", "inpainting"]):
    """SketchNet over NoteSeq contexts of 6 + 4 + 6 measures; a `protocols.LikelihoodInpainter`.

    Measures -> SketchVAE's encoders -> latents -> SketchInpainter -> SketchConnector, with the user's sketch ->
    SketchVAE's decoder. It is trained in three stages, ``"vae"``, ``"inpainter"`` and ``"connector"``, each of which
    leaves the networks before it as they are.

    Parameters
    ----------
    config
        Sizes, training and default decoding.
    decoding
        Overrides `config.decoding`. ``"argmax"`` takes the most likely token, ``"sample"`` draws one.
        ``"without_connector"`` is greedy and decodes what SketchInpainter wrote, as MUSIB does. ``"reference_pitch"``
        and ``"reference_rhythm"`` are greedy and leak: the sketch is taken from the true middle.
    temperature, top_p
        Override those of the config.

    Attributes
    ----------
    name
        ``"sketchnet"``; with a colon and the decoding where that is not the default of the config.
    deterministic, sees_reference
        See `protocols.Inpainter`; they follow `decoding` and `temperature`, which may be set at any time.

    Raises
    ------
    InvalidInputError, UnknownNameError
        A decoding, temperature or share that does not exist.

    """

    config: SketchNetConfig
    config_class = SketchNetConfig
    decodings = DECODINGS
    leaking = frozenset({"reference_pitch", "reference_rhythm"})
    fixed = frozenset({"argmax", "without_connector", "reference_pitch", "reference_rhythm"})
    stages: ClassVar = {"vae": ("vae",), "inpainter": ("inpainter",), "connector": ("connector",)}

    def __init__(
        self,
        config: SketchNetConfig | None = None,
        *,
        decoding: str | None = None,
        temperature: float | None = None,
        top_p: float | None = None,
    ) -> None:
        super().__init__()
        self.config = config = config or SketchNetConfig()
        self._set_decoding(decoding, temperature, config.top_p if top_p is None else top_p)
        self.vae = SketchVAE(config)
        self.inpainter = SketchInpainter(config)
        self.connector = SketchConnector(config)

    @property
    def deterministic(self) -> bool:
        """Whether `inpaint` does without `rng`."""
        return super().deterministic and not self.config.sampled_latents

    def forward(self, contexts: Tensor) -> Tensor:
        """Return the logits of every middle step, given the true tokens before it in its measure.

        Parameters
        ----------
        contexts
            Whole contexts, shape (batch, 384), int64, values 0..129. The latents of the middle depend on past and
            future alone; ``"without_connector"`` does without the connector here too.

        Returns
        -------
        Tensor
            Shape (batch, 96, 130).

        """
        measures = cut(contexts)
        z = self._plan(measures)  # (batch, 4, 2, latent)
        true = measures[:, MIDDLE].reshape(-1, STEPS)
        logits: Tensor = self.vae.decoder(z.flatten(2).flatten(0, 1), true, (True,) * STEPS)[0]  # (batch * 4, 24, 130)
        return logits.view(len(contexts), -1, VOCABULARY_SIZE)

    def _plan(self, measures: Tensor, noise: Tensor | None = None, sketch: _Latents | None = None) -> Tensor:
        """Return the latents of the middle (batch, 4, 2, latent) from measures (batch, 16, 24) with any middle."""
        mean, log_std = self.vae.encode(fix_empty(_without_middle(measures)))  # (batch, 12, 2, latent)
        known = mean if noise is None else mean + log_std.exp() * _without_middle(noise)
        past, future = known[:, : MIDDLE.start], known[:, MIDDLE.start :]
        z: Tensor = self.inpainter(past, future, _N_MIDDLE, ahead=False)
        if self.decoding == "without_connector":
            return z
        if sketch is not None:
            z = torch.where(sketch.given[..., None], sketch.values, z)
        z = self.connector(torch.cat([past, z, future], dim=1))[:, MIDDLE]
        # what was sketched is decoded as it is (as published)
        return z if sketch is None else torch.where(sketch.given[..., None], sketch.values, z)

    def training_loss(self, contexts: Tensor, *, varied: bool = False) -> Tensor:
        """Return the loss of the stage.

        ``"vae"``: cross-entropy of the tokens of some measures plus the weighted divergence of their latents. The other
        two: cross-entropy of the measures that were written, each tick given the network's own choice before it, as
        published; outside of training that is MUSIB's NLL.

        Parameters
        ----------
        contexts
            Whole contexts, shape (batch, 384), int64.
        varied
            Whether the later stages write other spans too, of 2 to 6 measures; else they write the middle. ``"vae"``
            knows no difference.

        Returns
        -------
        Tensor
            Shape (batch,), nats a step.

        """
        measures = cut(contexts)
        if self.config.fix_empty == "all":
            measures = fix_empty(measures)
        return self._vae_loss(measures) if self.stage == "vae" else self._span_loss(measures, varied=varied)

    def _vae_loss(self, measures: Tensor) -> Tensor:
        """Reconstruct measures that are drawn in training; outside of it those of the middle."""
        # k measures of each context, (batch, k, 24)
        chosen = draw_measures(measures, self.config.measures_per_context) if self.training else measures[:, MIDDLE]
        mean, log_std = self.vae.encode(fix_empty(chosen))  # (batch, k, 2, latent)
        z = self._drawn(mean, log_std).flatten(2).flatten(0, 1)  # (batch * k, 2 * latent)
        k = self.config.forcing_decay
        share = k / (k + math.exp(min(self.training_step / k, 700))) if self.training else 0.0
        true = chosen.reshape(-1, STEPS)
        logits, _ = self.vae.decoder(z, true, (torch.rand(STEPS) < share).tolist())  # (batch * k, 24, 130)
        divergence = gaussian_kl(mean, log_std).mean(-1).sum(-1).mean(1)
        return cross_entropy(logits, true).view(len(chosen), -1).mean(1) + self.config.kl_weight * divergence

    def _span_loss(self, measures: Tensor, *, varied: bool) -> Tensor:
        start, stop = draw_span(varied=varied)
        latents = self._drawn(*self.vae.encode(fix_empty(measures)))  # (batch, 16, 2, latent)
        past, true, future = latents[:, :start], latents[:, start:stop], latents[:, stop:]
        coin = float(torch.rand(()))
        forced = self.stage == "inpainter" and self.training and coin < self.config.latent_forcing
        given = true if forced else None
        z = self.inpainter(past, future, stop - start, given, ahead=self.config.unmasked_future)
        if self.stage != "inpainter":
            if self.training and coin < self.config.reveal_batches:
                revealed = torch.rand(stop - start, 2, 1).to(z.device) < self.config.reveal
                z = torch.where(revealed, true, z)
            z = self.connector(torch.cat([past, z, future], dim=1))[:, start:stop]
        logits, _ = self.vae.decoder(z.flatten(2).flatten(0, 1))  # (batch * n, 24, 130)
        losses = cross_entropy(logits, measures[:, start:stop].reshape(-1, STEPS))
        return losses.view(len(measures), -1).mean(1)

    def _drawn(self, mean: Tensor, log_std: Tensor) -> Tensor:
        """Draw latents in training, and where the config says so; else return their means."""
        drawn = self.training or self.config.sampled_latents
        return mean + log_std.exp() * torch.randn_like(mean) if drawn else mean

    def nll(self, contexts: Tokens) -> npt.NDArray[np.float64]:
        """Return the negative log-likelihood of the true middle, step by step.

        Each step is given past, future and the true tokens before it in its measure; nothing else of the middle reaches
        it. It is the distribution that ``"sample"`` draws from at temperature 1 without a sketch, so that the sum over
        steps is the likelihood of the middle. The published loss differs: see `training_loss`.

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
        result = np.empty((len(checked), MUSIB_LAYOUT.middle_steps))
        with self._inference():
            for rows in chunks(len(checked)):
                tokens = self._tensor(checked[rows])
                log_p = self(tokens).double().log_softmax(-1)  # (batch, 96, 130)
                true = tokens[:, MUSIB_LAYOUT.middle, None]  # (batch, 96, 1)
                result[rows] = -log_p.gather(-1, true).squeeze(-1).cpu().numpy()
        return result

    def inpaint(
        self, contexts: Tokens, *, rng: np.random.Generator, sketches: Sketch | Sequence[Sketch] | None = None
    ) -> Tokens:
        """Fill the middles.

        Parameters
        ----------
        contexts
            Shape (n, 384). The middle is masked here, unless `decoding` takes its sketch from there.
        rng
            The only source of randomness; not used where `deterministic`. Each item has numbers of its own, so that the
            first items do not depend on how many follow.
        sketches
            What the user wants of the middles: one for all, or one each.

        Returns
        -------
        Tokens
            Middles, shape (n, 96), values 0..129.

        Raises
        ------
        InvalidTokensError, ContextLengthError
            Not contexts, or for a decoding that leaks not whole ones.
        InvalidInputError
            A sketch for a decoding that does without.
        PairCountError
            Another number of sketches than of contexts.

        """
        if sketches is not None and self.decoding not in {"argmax", "sample"}:
            raise InvalidInputError(f"the decoding {self.decoding} takes no sketches; choose argmax or sample")
        checked = check_contexts(contexts) if self.sees_reference else hide_middle(contexts)
        if self.sees_reference:
            pitch = self.decoding == "reference_pitch"
            truth = checked[:, MUSIB_LAYOUT.middle]
            sketches = [Sketch.from_tokens(row, pitch=pitch, rhythm=not pitch) for row in truth]
        wanted = [sketches] * len(checked) if isinstance(sketches, Sketch) else sketches
        if wanted is not None and len(wanted) != len(checked):
            raise PairCountError(f"expected one sketch a context, {len(checked)}, or one for all; got {len(wanted)}")
        middles = np.empty((len(checked), MUSIB_LAYOUT.middle_steps), dtype=np.uint8)
        latents = N_MEASURES * 2 * self.config.latent_size if self.config.sampled_latents else 0
        width = MUSIB_LAYOUT.middle_steps + latents  # a token a step, latents
        draws = np.zeros((len(checked), width)) if self.deterministic else rng.random((len(checked), width))
        with self._inference():
            for rows in chunks(len(checked)):
                uniform = torch.from_numpy(draws[rows]).to(self.device)
                part = None if wanted is None else wanted[rows]
                middles[rows] = self._decode(self._tensor(checked[rows]), uniform, part).cpu().numpy()
        return middles

    def _decode(self, contexts: Tensor, uniform: Tensor, sketches: Sequence[Sketch] | None) -> Tensor:
        """Write the four measures side by side; `uniform` is laid out as in `inpaint`."""
        n = MUSIB_LAYOUT.middle_steps
        per_token, rest = uniform[:, :n].reshape(-1, STEPS), uniform[:, n:]  # (batch * 4, 24), ...
        shape = (len(contexts), N_MEASURES, 2, self.config.latent_size)
        noise = normals(rest).view(shape) if rest.shape[1] else None

        def choose(logits: Tensor, tick: int) -> Tensor:
            if self.decoding != "sample":
                return logits.argmax(-1)
            return draw(logits.double().log_softmax(-1), self.temperature, per_token[:, tick], self.top_p)

        sketch = None if sketches is None else self._encode_sketches(sketches, noise)
        z = self._plan(cut(contexts), noise, sketch)  # (batch, 4, 2, latent)
        tokens: Tensor = self.vae.decoder(z.flatten(2).flatten(0, 1), choose=choose)[1]  # (batch * 4, 24)
        return tokens.view(len(contexts), -1)

    def _encode_sketches(self, sketches: Sequence[Sketch], noise: Tensor | None) -> _Latents:
        """Return the latents of what was sketched; what was not is encoded from a filler, and not given."""
        pitches = torch.full((len(sketches), _N_MIDDLE, STEPS), factorized.PAD)
        lengths = torch.ones(len(sketches), _N_MIDDLE, dtype=torch.int64)
        rhythms = torch.zeros_like(pitches)
        given = torch.zeros(len(sketches), _N_MIDDLE, 2, dtype=torch.bool)
        for row, sketch in enumerate(sketches):
            for measure, (notes, steps) in enumerate(zip(sketch.pitches, sketch.rhythms, strict=True)):
                given[row, measure] = torch.tensor([notes is not None, steps is not None])
                if notes is not None:
                    pitches[row, measure, : len(notes)] = torch.tensor(notes)
                    lengths[row, measure] = len(notes)
                if steps is not None:
                    rhythms[row, measure] = torch.tensor(steps) - 1
        pitch = self.vae.encode_pitch(pitches.view(-1, STEPS).to(self.device), lengths.flatten())
        rhythm = self.vae.encode_rhythm(rhythms.view(-1, STEPS).to(self.device))
        shape = (len(sketches), _N_MIDDLE, 2, -1)
        mean, log_std = (torch.stack(pair, dim=1).view(shape) for pair in zip(pitch, rhythm, strict=True))
        values = mean if noise is None else mean + log_std.exp() * noise[:, MIDDLE]
        return _Latents(values, given.to(self.device))


def _without_middle(measures: Tensor) -> Tensor:
    """Leave the middle out: (batch, 16, ...) to (batch, 12, ...)."""
    return torch.cat([measures[:, : MIDDLE.start], measures[:, MIDDLE.stop :]], dim=1)
