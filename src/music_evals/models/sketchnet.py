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

from music_evals.annotations import HOLD, MUSIB_LAYOUT, REST, VOCABULARY_SIZE, Tokens
from music_evals.errors import ContextLengthError, InvalidInputError, PairCountError
from music_evals.models.layers.measures import (
    BEATS,
    MIDDLE,
    N_MEASURES,
    STEPS,
    TICKS,
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
)
from music_evals.models.layers.networks import draw
from music_evals.symbolic.encodings import factorized
from music_evals.symbolic.noteseq import check_tokens

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

    A value outside its range raises `InvalidInputError`, a name that does not exist `UnknownNameError`.

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
        attended = functional.scaled_dot_product_attention(query, key, value, dropout_p=dropout)
        x = x + self.dropout(self.out(attended.transpose(1, 2).flatten(2)))
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


@dataclasses.dataclass(frozen=True)
class Sketch:
    """What a user wants of the four measures of the middle; what is None is left to the network.

    `SketchNet` writes what is sketched as it stands here, unless its `obey_sketches` is off: then it may miss it.

    Parameters
    ----------
    pitches
        One entry a measure: None, or MIDI numbers 0..127 in the order in which they are to sound, 1 to 24 of them.
    rhythms
        One entry a measure: None, or 24 steps, each 1 onset, 2 hold or 3 rest.

    Raises
    ------
    InvalidInputError
        Not four entries, an entry of another form, or a measure with other numbers of pitches and of onsets.

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
            if not isinstance(entries, Sequence) or len(entries) != _N_MIDDLE:
                got = len(entries) if isinstance(entries, Sequence) else repr(entries)
                raise InvalidInputError(f"{name} needs one entry a measure of the middle, {_N_MIDDLE}; got {got}")
            for measure, entry in enumerate(entries):
                fits = (
                    isinstance(entry, Sequence)
                    and len(entry) in lengths
                    and all(isinstance(value, int | np.integer) and value in values for value in entry)
                )
                if entry is not None and not fits:
                    raise InvalidInputError(f"{name} of measure {measure} must be {wanted}, or None; got {entry}")
        for measure, (notes, steps) in enumerate(zip(self.pitches, self.rhythms, strict=True)):
            if notes is not None and steps is not None and len(notes) != steps.count(1):
                raise InvalidInputError(
                    f"measure {measure} has {len(notes)} pitches and a rhythm of {steps.count(1)} onsets; give as many "
                    "of both, or leave one to the network (None)"
                )

    @classmethod
    def from_tokens(cls, middle: npt.ArrayLike, *, pitch: bool = True, rhythm: bool = True) -> Self:
        """Take pitches, rhythm or both from a middle that is there, such as one that a user has edited.

        The middle is NoteSeq tokens, shape (96,), else `InvalidTokensError` or `ContextLengthError`; a measure without
        an onset sketches no pitches.
        """
        tokens = check_tokens(middle)
        if tokens.shape != (MUSIB_LAYOUT.middle_steps,):
            raise ContextLengthError(f"expected a middle of shape ({MUSIB_LAYOUT.middle_steps},), got {tokens.shape}")
        parts = factorized.encode(tokens)
        pitches = [tuple(row[:n].tolist()) or None for row, n in zip(parts.px, parts.len_x, strict=True)]
        rhythms = [tuple(row.tolist()) for row in parts.rx]
        nothing = (None,) * _N_MIDDLE
        return cls(tuple(pitches) if pitch else nothing, tuple(rhythms) if rhythm else nothing)


class SketchTensors(NamedTuple):
    """Sketches side by side, with a filler for what is not sketched."""

    pitches: Tensor  # (batch, 4, 24), packed to the left
    lengths: Tensor  # (batch, 4), how many pitches there are
    rhythms: Tensor  # (batch, 4, 24): 0 onset, 1 hold, 2 rest
    given: Tensor  # (batch, 4, 2), bool: whether pitch and rhythm are sketched


def sketch_tensors(sketches: Sequence[Sketch]) -> SketchTensors:
    """Lay sketches side by side."""
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
    return SketchTensors(pitches, lengths, rhythms, given)


def factorize(measures: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Cut measures (n, 24) into packed pitches (n, 24), their number (n,) and rhythm classes (n, 24).

    The same as `symbolic.encodings.factorized.encode`, which counts the rhythm from 1.
    """
    onsets = measures < HOLD
    order = (~onsets).to(torch.uint8).argsort(dim=1, stable=True)  # onsets first, in their order
    lengths = onsets.sum(1)
    steps = torch.arange(STEPS, device=measures.device)
    pitches = measures.gather(1, order).masked_fill(steps >= lengths[:, None], factorized.PAD)
    return pitches, lengths, (measures - HOLD + 1).clamp(min=0)


_OPEN = -1  # a token that is not known
_COLDEST = 1e-6  # temperature: a lower one would overflow, and chooses the same


def place_pitches(
    decoder: HierarchicalDecoder, z: Tensor, pitches: Tensor, lengths: Tensor, *, uniform: Tensor, temperature: float
) -> Tensor:
    """Return measures (n, 24) that have the given pitches, in their order, and no others.

    Of all such measures one is drawn by the decoder's probability to the power of 1 / temperature; at 0 the most likely
    one is taken. Side by side it writes one draft for each number of pitches that may have been used before a tick.
    Where drafts meet at the same number, one goes on, drawn by its share of the probability, or the likelier one at 0.
    That is exact as far as the decoder remembers no more of a draft than tick and number, and close to it elsewhere:
    what it remembers otherwise are the notes of the same beat, and the one before it.

    Latents `z` are (n, latent), pitches (n, 24), packed to the left, their numbers `lengths` (n,), 1 to 24; `uniform`
    is a number in [0, 1) for each tick, (n, 24).
    """
    n, n_counts = len(z), int(lengths.max()) + 1
    first = torch.arange(n, device=z.device)[:, None] * n_counts  # (n, 1): the row of each measure's first draft
    count = torch.arange(n_counts, device=z.device)  # pitches used, (counts,)
    following = functional.pad(pitches, (0, 1), value=factorized.PAD)[:, :n_counts]  # (n, counts): the next pitch
    total = torch.zeros(n, n_counts, dtype=torch.float64, device=z.device).masked_fill(count > 0, -torch.inf)
    tokens = torch.zeros(n * n_counts, STEPS, dtype=torch.int64, device=z.device)
    note = decoder.first_note.expand(n * n_counts, -1)
    beats = decoder.beats(z)  # (n, 4, size)
    for tick in range(BEATS * TICKS):
        if tick % TICKS == 0:
            plan, state = decoder.begin_beat(beats[:, tick // TICKS])
            plan, state = plan.repeat_interleave(n_counts, dim=0), state.repeat_interleave(n_counts, dim=1)
        logits, state = decoder.step(note, plan, state)
        log_p = logits.double().log_softmax(-1).view(n, n_counts, -1) / max(temperature, _COLDEST)
        missing = lengths[:, None] - count  # (n, counts)
        possible = (missing >= 0) & (missing < STEPS - tick)
        # how likely a number of pitches is reached by an onset (from one pitch fewer), a hold and a rest
        onset = total + log_p.gather(-1, following[..., None]).squeeze(-1)
        onset = functional.pad(onset[:, :-1], (1, 0), value=-torch.inf)
        ways = torch.stack([onset, total + log_p[..., HOLD], total + log_p[..., REST]], dim=-1)  # (n, counts, 3)
        ways = ways.masked_fill(~possible[..., None], -torch.inf)
        if temperature == 0:
            way, total = ways.argmax(-1), ways.amax(-1)
        else:
            way = draw(ways.flatten(0, 1), 1.0, uniform[:, tick].repeat_interleave(n_counts)).view(n, n_counts)
            total = ways.logsumexp(-1)
        source = (count - (way == factorized.ONSET).long()).clamp(min=0)  # (n, counts): the draft that goes on here
        token = torch.where(way == factorized.ONSET, following.gather(1, source), HOLD - 1 + way).flatten()
        drafts = (first + source).flatten()
        tokens, state = tokens[drafts], state[:, drafts]
        tokens[:, tick] = token
        note = decoder.note_embedding(token)
    return tokens[first.squeeze(-1) + lengths]


class SketchNet(MeasureNetwork, tags=["music", "symbolic-music", "inpainting"]):
    """SketchNet over NoteSeq contexts of 6 + 4 + 6 measures; a `protocols.LikelihoodInpainter`.

    Measures -> SketchVAE's encoders -> latents -> SketchInpainter -> SketchConnector, with the user's sketch ->
    SketchVAE's decoder. It is trained in three stages, ``"vae"``, ``"inpainter"`` and ``"connector"``, each of which
    leaves the networks before it as they are.

    Parameters
    ----------
    config
        `SketchNetConfig`: sizes, training and default decoding; None is its defaults.
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

    def _build(self, config: SketchNetConfig) -> None:
        self.obey_sketches, self.swapped_latents = config.obey_sketches, config.swapped_latents
        self.vae = SketchVAE(config)
        self.inpainter = SketchInpainter(config)
        self.connector = SketchConnector(config)
        # two a step, and one for each number of a latent
        latents = N_MEASURES * 2 * config.latent_size if config.sampled_latents else 0
        self._numbers = (2 * MUSIB_LAYOUT.middle_steps + latents,)

    def forward(self, contexts: Tensor) -> Tensor:
        """Return the logits (batch, 96, 130) of every middle step, given the true tokens before it in its measure.

        Of whole contexts (batch, 384), int64, values 0..129. The latents of the middle depend on past and future
        alone; ``"without_connector"`` does without the connector here too.
        """
        measures = cut(contexts)
        z = self._plan(measures)  # (batch, 4, 2, latent)
        true = measures[:, MIDDLE].reshape(-1, STEPS)
        logits: Tensor = self.vae.decoder(z.flatten(2).flatten(0, 1), true, (True,) * STEPS)[0]  # (batch * 4, 24, 130)
        return logits.view(len(contexts), -1, VOCABULARY_SIZE)

    def _plan(
        self, measures: Tensor, noise: Tensor | None = None, sketch: tuple[Tensor, Tensor] | None = None
    ) -> Tensor:
        """Return the latents of the middle (batch, 4, 2, latent) from measures (batch, 16, 24) with any middle.

        `sketch` is what `_encode_sketches` returned.
        """
        mean, log_std = self.vae.encode(fix_empty(_without_middle(measures)))  # (batch, 12, 2, latent)
        known = mean if noise is None else mean + log_std.exp() * _without_middle(noise)
        past, future = known[:, : MIDDLE.start], known[:, MIDDLE.start :]
        z: Tensor = self.inpainter(past, future, _N_MIDDLE, ahead=False)
        if self.decoding == "without_connector":
            return z
        if sketch is not None:
            z = torch.where(sketch[1][..., None], sketch[0], z)
        z = self.connector(torch.cat([past, z, future], dim=1))[:, MIDDLE]
        if sketch is None or not (self.swapped_latents or self.sees_reference):
            return z
        return torch.where(sketch[1][..., None], sketch[0], z)

    def training_loss(self, contexts: Tensor, *, varied: bool = False) -> Tensor:
        """Return the loss of the stage for whole contexts (batch, 384), (batch,), nats a step.

        ``"vae"``: cross-entropy of the tokens of some measures plus the weighted divergence of their latents. The other
        two: cross-entropy of the measures that were written, each tick given the network's own choice before it, as
        published; outside of training that is MUSIB's NLL. Varied, they write other spans than the middle too, of 2 to
        6 measures.
        """
        measures = self._true_measures(contexts)
        if self.stage == "vae":
            return self._vae_loss(measures)
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

    def _forced_ticks(self) -> Sequence[bool]:
        """Draw each tick by itself, the fewer the longer the training."""
        k = self.config.forcing_decay
        share = k / (k + math.exp(min(self.training_step / k, 700))) if self.training else 0.0
        return (torch.rand(STEPS) < share).tolist()

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

        return self._fill(
            len(checked),
            self._numbers,
            rng,
            lambda rows, uniform: self._decode(
                self._tensor(checked[rows]), uniform, None if wanted is None else wanted[rows]
            ),
        )

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
        if sketched is None or not self.obey_sketches or self.sees_reference:
            return self.vae.decoder(z, choose=choose)[1].view(len(contexts), -1)  # type: ignore[no-any-return]
        # what is sketched stands in the measure: a rhythm says what is an onset, a hold and a rest, and each onset
        # takes its pitch, where pitches are sketched too
        pitches, lengths, rhythm = (part.flatten(0, 1).to(z.device) for part in sketched[:3])
        has_pitch, has_rhythm = sketched.given.to(z.device).flatten(0, 1).unbind(-1)  # (batch * 4,) each
        onset = rhythm == factorized.ONSET
        known = pitches.gather(1, (onset.cumsum(1) - 1).clamp(min=0))  # (batch * 4, 24): the pitch of each onset
        known = torch.where(onset, known.where(has_pitch[:, None], _OPEN), HOLD - 1 + rhythm)
        known = known.where(has_rhythm[:, None], _OPEN)
        onset &= has_rhythm[:, None]

        def choose_open(logits: Tensor, tick: int) -> Tensor:
            no_onset = logits[:, HOLD:].masked_fill(onset[:, tick, None], -torch.inf)
            chosen = choose(torch.cat([logits[:, :HOLD], no_onset], dim=-1), tick)
            return torch.where(known[:, tick] == _OPEN, chosen, known[:, tick])

        tokens: Tensor = self.vae.decoder(z, choose=choose_open)[1]  # (batch * 4, 24)
        rows = (has_pitch & ~has_rhythm).nonzero().squeeze(-1)
        if len(rows):
            heat = 0.0 if self.decoding in self.fixed else self._temperatures[0]
            tokens[rows] = place_pitches(
                self.vae.decoder, z[rows], pitches[rows], lengths[rows], uniform=per_token[rows, :, 0], temperature=heat
            )
        return tokens.view(len(contexts), -1)

    def _encode_sketches(self, sketches: SketchTensors, noise: Tensor | None) -> tuple[Tensor, Tensor]:
        """Return the latents (batch, 4, 2, latent) of sketches, and which are given: the others are of a filler."""
        pitches, lengths, rhythms, given = sketches
        pitch = self.vae.encode_pitch(pitches.view(-1, STEPS).to(self.device), lengths.flatten())
        rhythm = self.vae.encode_rhythm(rhythms.view(-1, STEPS).to(self.device))
        shape = (len(given), _N_MIDDLE, 2, -1)
        mean, log_std = (torch.stack(pair, dim=1).view(shape) for pair in zip(pitch, rhythm, strict=True))
        values = mean if noise is None else mean + log_std.exp() * noise[:, MIDDLE]
        return values, given.to(self.device)


def _without_middle(measures: Tensor) -> Tensor:
    """Leave the middle out: (batch, 16, ...) to (batch, 12, ...)."""
    return torch.cat([measures[:, : MIDDLE.start], measures[:, MIDDLE.stop :]], dim=1)
