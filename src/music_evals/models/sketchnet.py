"""SketchNet: pitch and rhythm of a measure apart, so that a user may sketch either.

A variational autoencoder (SketchVAE) has two encoders, one of the pitches of a measure and one of its rhythm, and one
decoder. SketchInpainter goes from the latents of past and future to those of the middle, pitch and rhythm each by
itself. SketchConnector, a transformer over all sixteen measures, brings them together with what the user has sketched.

Sources: Chen, Wang, Berg-Kirkpatrick & Dubnov, "Music SketchNet: controllable music generation via factorized
representations of pitch and rhythm" (ISMIR 2020), for the three networks; Araneda et al., "MUSIB: musical score
inpainting benchmark", for vocabulary and layout. 78,447,797 parameters of SketchVAE, 79,266,048 of SketchInpainter and
12,865,280 of SketchConnector. MUSIB never trained the connector, and evaluates the second stage alone: that is the
decoding ``"without_connector"``.

Deviations, each with a switch in `SketchNetConfig` that brings back the published behaviour: the logits go through no
ReLU (`output_relu`); the true latents that training feeds into the bidirectional network are fed one measure at a time,
so that its backward half cannot read the answer (`unmasked_future`); outside of training a latent is the mean of its
distribution (`sampled_latents`); the empty measures that are to be written are not filled with a C4 (`fix_empty`); what
is decoded of a sketch is what the connector made of it, as in training (`swapped_latents`); what is written is held to
the sketch (`obey_sketches`). The decodings ``"reference_pitch"`` and ``"reference_rhythm"`` take the sketch from the
true middle, and leak; they treat it as published, whatever these two say.
"""

# Annotations stay real objects here: the Hub mixin reads the type of `config` from the signature.
import dataclasses
import math
from collections.abc import Sequence
from typing import ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import pack_padded_sequence

from music_evals.annotations import MUSIB_LAYOUT, VOCABULARY_SIZE, Tokens
from music_evals.errors import InvalidInputError, PairCountError
from music_evals.models._measures import (
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
    gaussian_kl,
    normals,
)
from music_evals.models._sketch_connector import SketchConnector
from music_evals.models._sketches import Sketch, SketchTensors, factorize, sketch_tensors, write_sketched

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

DECODINGS = ("argmax", "sample", "two_stage", "without_connector", "reference_pitch", "reference_rhythm")
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
class SketchNetConfig(MeasureConfig):
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
    obey_sketches
        Whether what is sketched stands in the middle as it was given: then the network chooses what is left open. Else,
        as published, a sketch only steers the latents, and the network may miss it.
    swapped_latents
        Whether what was sketched takes the place of what the connector made of it before it is decoded, as published.
        Training never shows the decoder such pairs.
    measures_per_context, output_relu, unmasked_future, sampled_latents, fix_empty
        As in `inpaintnet.InpaintNetConfig`.
    decoding, temperature, kind_temperature, top_p
        As in `anticipation_rnn.AnticipationRNNConfig`.

    Raises
    ------
    InvalidInputError, UnknownNameError
        A value outside its range.

    """

    model_type: str = "sketchnet"
    connector_size: int = 0
    connector_layers: int = 0
    connector_heads: int = 4
    measure_dropout: float = 0.2
    connector_dropout: float = 0.1
    kl_weight: float = 0.1
    forcing_decay: float = 4000.0
    reveal_batches: float = 0.5
    reveal: float = 0.3
    obey_sketches: bool = True
    swapped_latents: bool = False

    def __post_init__(self) -> None:
        self._check_measures(
            SketchNet,
            SIZES,
            at_least_one=("connector_heads", "forcing_decay"),
            shares=("measure_dropout", "connector_dropout"),
            probabilities=("reveal_batches", "reveal"),
        )
        self._check_heads("connector_size", "connector_heads")


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


class SketchNet(MeasureNetwork, tags=["music", "symbolic-music", "inpainting"]):
    """SketchNet over NoteSeq contexts of 6 + 4 + 6 measures; a `protocols.LikelihoodInpainter`.

    Measures -> SketchVAE's encoders -> latents -> SketchInpainter -> SketchConnector, with the user's sketch ->
    SketchVAE's decoder. It is trained in three stages, ``"vae"``, ``"inpainter"`` and ``"connector"``, each of which
    leaves the networks before it as they are.

    Parameters
    ----------
    config
        Sizes, training and default decoding.
    decoding
        Overrides `config.decoding`. ``"argmax"`` takes the most likely token, ``"sample"`` draws one,
        ``"two_stage"`` first draws onset, hold or rest and then the pitch, as in `AnticipationRNN`.
        ``"without_connector"`` is greedy and decodes what SketchInpainter wrote, as MUSIB does. ``"reference_pitch"``
        and ``"reference_rhythm"`` are greedy and leak: the sketch is taken from the true middle.
    temperature, top_p
        Override those of the config. All of them, `kind_temperature`, `obey_sketches` and `swapped_latents` may also be
        set as attributes, at any time.

    Raises
    ------
    InvalidInputError, UnknownNameError
        A decoding, temperature or share that does not exist.

    """

    config: SketchNetConfig
    vae: SketchVAE
    config_class = SketchNetConfig
    decodings = DECODINGS
    leaking = frozenset({"reference_pitch", "reference_rhythm"})
    fixed = frozenset({"argmax", "without_connector", "reference_pitch", "reference_rhythm"})
    stages: ClassVar = {"vae": ("vae",), "inpainter": ("inpainter",), "connector": ("connector",)}
    sketch_class = Sketch

    def __init__(
        self,
        config: SketchNetConfig | None = None,
        *,
        decoding: str | None = None,
        temperature: float | None = None,
        top_p: float | None = None,
    ) -> None:
        super().__init__(config, decoding, temperature, top_p)
        config = self.config
        self.obey_sketches, self.swapped_latents = config.obey_sketches, config.swapped_latents
        self.vae = SketchVAE(config)
        self.inpainter = SketchInpainter(config)
        self.connector = SketchConnector(config)

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
        if sketch is None or not (self.swapped_latents or self.sees_reference):
            return z
        return torch.where(sketch.given[..., None], sketch.values, z)

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
        measures = self._true_measures(contexts)
        return self._vae_loss(measures) if self.stage == "vae" else self._span_loss(measures, varied=varied)

    def _forced_ticks(self) -> Sequence[bool]:
        """Draw each tick by itself, the fewer the longer the training."""
        k = self.config.forcing_decay
        share = k / (k + math.exp(min(self.training_step / k, 700))) if self.training else 0.0
        return (torch.rand(STEPS) < share).tolist()

    def _divergence(self, mean: Tensor, log_std: Tensor) -> Tensor:
        return gaussian_kl(mean, log_std).mean(-1).sum(-1)

    def _span_loss(self, measures: Tensor, *, varied: bool) -> Tensor:
        start, stop = draw_span(varied=varied)
        latents = self._sample_latents(*self.vae.encode(fix_empty(measures)))  # (batch, 16, 2, latent)
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

    @property
    def _numbers(self) -> tuple[int, ...]:
        """Two a step, and one for each number of a latent."""
        latents = N_MEASURES * 2 * self.config.latent_size if self.config.sampled_latents else 0
        return (2 * MUSIB_LAYOUT.middle_steps + latents,)

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
            What the user wants of the middles: one for all, or one each. With `obey_sketches` it stands in them as it
            was given: onsets, holds and rests of a rhythm, with pitches by the network; pitches in their order and no
            others, with a rhythm by the network, drawn at `kind_temperature` (`temperature` where it is None) from
            whole measures, without a nucleus. Every `Sketch` can be obeyed.

        Returns
        -------
        Tokens
            Middles, shape (n, 96), values 0..129.

        Raises
        ------
        InvalidTokensError, ContextLengthError
            Not contexts, or for a decoding that leaks not whole ones.
        InvalidInputError
            A sketch for a decoding that does without, or something else than sketches.
        PairCountError
            Another number of sketches than of contexts.

        """
        if sketches is not None and self.decoding not in {"argmax", "sample", "two_stage"}:
            raise InvalidInputError(
                f"the decoding {self.decoding} takes no sketches; choose argmax, sample or two_stage"
            )
        checked = self._checked(contexts)
        if self.sees_reference:
            pitch = self.decoding == "reference_pitch"
            truth = checked[:, MUSIB_LAYOUT.middle]
            sketches = [Sketch.from_tokens(row, pitch=pitch, rhythm=not pitch) for row in truth]
        wanted = [sketches] * len(checked) if isinstance(sketches, Sketch) else sketches
        is_list = isinstance(wanted, Sequence) and all(isinstance(sketch, Sketch) for sketch in wanted)
        if wanted is not None and not is_list:
            raise InvalidInputError("sketches must be Sketch objects; Sketch.from_tokens makes one of a middle")
        if wanted is not None and len(wanted) != len(checked):
            raise PairCountError(f"expected one sketch a context, {len(checked)}, or one for all; got {len(wanted)}")

        def decode(rows: slice, uniform: Tensor) -> Tensor:
            return self._decode(self._tensor(checked[rows]), uniform, None if wanted is None else wanted[rows])

        return self._fill(len(checked), self._numbers, rng, decode)

    def _decode(self, contexts: Tensor, uniform: Tensor, sketches: Sequence[Sketch] | None = None) -> Tensor:
        """Write the four measures side by side; `uniform` is laid out as in `_numbers`."""
        n = 2 * MUSIB_LAYOUT.middle_steps
        per_token, rest = uniform[:, :n].reshape(-1, STEPS, 2), uniform[:, n:]  # (batch * 4, 24, 2), ...
        shape = (len(contexts), N_MEASURES, 2, self.config.latent_size)
        noise = normals(rest).view(shape) if rest.shape[1] else None

        def choose(logits: Tensor, tick: int) -> Tensor:
            return self._choose(logits, per_token[:, tick])

        sketched = None if sketches is None else sketch_tensors(sketches)
        sketch = None if sketched is None else self._encode_sketches(sketched, noise)
        z = self._plan(cut(contexts), noise, sketch).flatten(2).flatten(0, 1)  # (batch * 4, 2 * latent)
        tokens: Tensor  # (batch * 4, 24)
        if sketched is None or not self.obey_sketches or self.sees_reference:
            tokens = self.vae.decoder(z, choose=choose)[1]
        else:
            heat = 0.0 if self.decoding in self.fixed else self._temperatures[0]
            tokens = write_sketched(self.vae.decoder, z, sketched, choose, uniform=per_token[..., 0], temperature=heat)
        return tokens.view(len(contexts), -1)

    def _encode_sketches(self, sketches: SketchTensors, noise: Tensor | None) -> _Latents:
        """Return the latents of what was sketched; what was not is encoded from a filler, and not given."""
        pitches, lengths, rhythms, given = sketches
        pitch = self.vae.encode_pitch(pitches.view(-1, STEPS).to(self.device), lengths.flatten())
        rhythm = self.vae.encode_rhythm(rhythms.view(-1, STEPS).to(self.device))
        shape = (len(given), _N_MIDDLE, 2, -1)
        mean, log_std = (torch.stack(pair, dim=1).view(shape) for pair in zip(pitch, rhythm, strict=True))
        values = mean if noise is None else mean + log_std.exp() * noise[:, MIDDLE]
        return _Latents(values, given.to(self.device))


def _without_middle(measures: Tensor) -> Tensor:
    """Leave the middle out: (batch, 16, ...) to (batch, 12, ...)."""
    return torch.cat([measures[:, : MIDDLE.start], measures[:, MIDDLE.stop :]], dim=1)
