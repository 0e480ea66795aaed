"""VLI: variable-length infilling with a two-stream transformer that knows in which bar a note stands.

A melody is a sequence of notes, six ids each (`encodings.remi`). The content stream reads notes as they are. The query
stream knows of a note only where it starts, reads what stands around it, and predicts the rest of it and where the next
one starts. Attention knows nothing of the order of notes but how many bars lie between two. The middle is written note
by note until the network says that it ends, or until it has as many notes as the user wants.

Sources: Chang, Lee & Yang, "Variable-length music score infilling via XLNet and musically specialized positional
encoding" (ISMIR 2021), for the representation and the positions; Yang et al., "XLNet: generalized autoregressive
pretraining for language understanding" (2019), for two-stream attention; Araneda et al., "MUSIB: musical score
inpainting benchmark", for layout and sizes: 93,573,127 parameters, to which the XLNet core of the published code adds
19,200 that are never used.

Deviations. A query of its own predicts the first onset: the published code takes it from the true middle, which is the
decoding ``"first_onset"``, a leak. Onsets come in order and stay inside the middle (`free_onsets` lifts this). The
fourth id of a bar, which the published network has and never uses, stands for a step of two bars, so that a bar may
stay without an onset (`long_jumps`). Tempo and velocity, which are the same for all notes here, have no part in the
loss (`constant_columns`). The first note after the middle says nothing of how long it is since the note before.
Sequences are padded to the longest of a batch instead of 512.
"""

# Annotations stay real objects here: the Hub mixin reads the type of `config` from the signature.
import dataclasses
import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn import functional

from music_evals.annotations import Tokens
from music_evals.errors import InvalidInputError, PairCountError
from music_evals.models._network import InpaintingNetwork, SizedConfig, draw
from music_evals.models._vli_layers import Layer, Reader, View
from music_evals.models._vli_notes import (
    BAR_RANGE,
    BARS_ON,
    BEFORE,
    BEGIN,
    COLUMN_SIZES,
    END,
    END_POSITION,
    LAST_BAR,
    NOTE_COLUMNS,
    PITCHES,
    SLOTS,
    Batch,
    Here,
    Span,
    constant_ids,
    middle_span,
    next_onsets,
    onset_alone,
    onset_log_p,
    pad,
    random_span,
    to_tokens,
    warn_of_rounding,
    without_middle,
)
from music_evals.protocols import NoteLikelihood
from music_evals.symbolic.encodings import remi
from music_evals.symbolic.noteseq import check_contexts

__all__ = ["DECODINGS", "SIZES", "VLI", "VLIConfig"]

DECODINGS = ("argmax", "sample", "first_onset", "true_length", "true_onsets")
"""How notes are chosen; the last three read the true middle."""

SIZES = {
    "paper": {"model_size": 768, "n_layers": 12, "n_heads": 8, "inner_size": 3072, "embedding_size": 256},
    "small": {"model_size": 160, "n_layers": 6, "n_heads": 4, "inner_size": 640, "embedding_size": 48},
}
"""Size -> the numbers that it stands for: the published ones, and 2.1 million parameters."""


@dataclasses.dataclass(frozen=True)
class VLIConfig(SizedConfig):
    """Sizes of the network, how it is trained, and the default decoding.

    Parameters
    ----------
    model_type
        Always ``"vli"``; tells a reader of config.json which class to load.
    size
        One of `SIZES`; gives every size below that is 0 its value.
    model_size, n_layers, n_heads
        Width of both streams, number of layers, and heads of each; the heads share the width.
    inner_size
        Of the feed-forward networks.
    embedding_size
        Length of the vector of one id; a note has six.
    dropout
        Everywhere, 0..1.
    varied_spans
        In varied training, the share of contexts from which a random span of 12.5 to 25 per cent of the notes is left
        out; from the others it is the middle. Published: 1.
    constant_columns
        Published: tempo and velocity have a part in the loss though they never change here.
    long_jumps
        Whether two onsets may lie two bars apart, with an empty bar between; else, published, the next onset is at most
        one bar on and empty bars are lost.
    free_onsets
        Published: onsets may come twice, go back within a bar and run past the middle; what lies outside is left out.
    decoding, temperature, top_p
        As in `anticipation_rnn.AnticipationRNNConfig`. Published: a `top_p` of 0.9, with a temperature of 1 in MUSIB
        and 0.8 in the authors' code.

    Raises
    ------
    InvalidInputError, UnknownNameError
        A value outside its range.

    """

    model_type: str = "vli"
    model_size: int = 0
    n_layers: int = 0
    n_heads: int = 0
    inner_size: int = 0
    embedding_size: int = 0
    dropout: float = 0.1
    varied_spans: float = 0.5
    constant_columns: bool = False
    long_jumps: bool = True
    free_onsets: bool = False
    decoding: str = "sample"
    top_p: float = 0.9

    def __post_init__(self) -> None:
        self._check_sized(VLI, SIZES, shares=("dropout",), probabilities=("varied_spans",))
        self._check_heads("model_size", "n_heads")


class VLI(InpaintingNetwork, tags=["music", "symbolic-music", "inpainting"]):
    """VLI over NoteSeq contexts of 6 + 4 + 6 measures; a `protocols.Inpainter`.

    Tokens -> notes on a grid of sixteenths -> six ids a note -> two streams -> the ids of one note more, and so on.

    Parameters
    ----------
    config
        Sizes, training and default decoding.
    decoding
        Overrides `config.decoding`. ``"argmax"`` takes the most likely id, ``"sample"`` draws one. The others draw too,
        and leak: ``"first_onset"`` is given the true first onset, as in MUSIB's evaluation, ``"true_length"`` the true
        number of notes, ``"true_onsets"`` where all of them start.
    temperature, top_p
        Override those of the config. All three may also be set as attributes, at any time.

    Raises
    ------
    InvalidInputError, UnknownNameError
        A decoding, temperature or share that does not exist.

    """

    config: VLIConfig
    config_class = VLIConfig
    decodings = DECODINGS
    leaking = frozenset({"first_onset", "true_length", "true_onsets"})
    pitch_range = PITCHES

    positions: Tensor

    def __init__(
        self,
        config: VLIConfig | None = None,
        *,
        decoding: str | None = None,
        temperature: float | None = None,
        top_p: float | None = None,
    ) -> None:
        super().__init__(config, decoding, temperature, top_p)
        config = self.config
        size = config.model_size
        self.embeddings = nn.ModuleList(nn.Embedding(n, config.embedding_size) for n in COLUMN_SIZES)
        self.into = nn.Linear(len(COLUMN_SIZES) * config.embedding_size, size)
        angles = torch.arange(-BAR_RANGE, BAR_RANGE + 1)[:, None] / 10_000 ** (torch.arange(0, size, 2) / size)
        self.register_buffer("positions", torch.cat([angles.sin(), angles.cos()], dim=-1), persistent=False)
        self.layers = nn.ModuleList(Layer(config) for _ in range(config.n_layers))
        self.heads = nn.ModuleList(nn.Linear(size, n) for n in COLUMN_SIZES)
        self.dropout = nn.Dropout(config.dropout)
        for name, parameter in self.named_parameters():
            if "norm" not in name:
                bias = name.endswith(".bias")
                nn.init.zeros_(parameter) if bias else nn.init.normal_(parameter, std=0.02)

    def _embed(self, ids: Tensor) -> Tensor:
        """Return the input of a stream (batch, notes, size) for ids (batch, notes, 6)."""
        parts = [embedding(ids[..., column]) for column, embedding in enumerate(self.embeddings)]
        embedded: Tensor = self.dropout(self.into(torch.cat(parts, dim=-1) * math.sqrt(self.config.embedding_size)))
        return embedded

    @property
    def blocks(self) -> list[Layer]:
        """The layers, with their type."""
        return [layer for layer in self.layers if isinstance(layer, Layer)]

    def streams(self, h: Tensor, g: Tensor, bars: tuple[Tensor, Tensor], masks: tuple[Tensor, Tensor]) -> Tensor:
        """Run both streams through all layers and return the query stream.

        Parameters
        ----------
        h
            Content stream, shape (batch, notes, size).
        g
            Query stream, shape (batch, queries, size).
        bars
            Of the notes of either, shapes (batch, notes) and (batch, queries).
        masks
            Which notes of the content stream each note of either looks at, shapes (batch, notes, notes) and
            (batch, queries, notes).

        Returns
        -------
        Tensor
            Shape (batch, queries, size).

        """
        table = self.dropout(self.positions)
        for layer in self.blocks:
            keys = layer.keys(h)
            h, g = (
                layer(x, x_bars, View(keys, bars[0], x_mask), table)
                for x, x_bars, x_mask in zip((h, g), bars, masks, strict=True)
            )
        final: Tensor = self.dropout(g)
        return final

    def forward(self, batch: Batch) -> list[Tensor]:
        """Return the logits of every column, (batch, m + 1, ids), for the start of a span and each of its m notes.

        The first says where the first note starts; the others what their note is, and where the next one starts.
        """
        n, m = batch.known.shape[1], batch.notes.shape[1]
        h = self._embed(torch.cat([batch.known, batch.notes], dim=1))  # (batch, n + m, size)
        bars = torch.cat([batch.known_bars, batch.bars], dim=1)
        there = torch.cat([batch.is_known, batch.is_note], dim=1)[:, None]  # (batch, 1, n + m)
        g = self._embed(torch.cat([self._start(len(h)), onset_alone(batch.notes)], dim=1))  # (batch, m + 1, size)
        g_bars = torch.cat([batch.before[:, None], batch.bars], dim=1)
        # what is known looks at what is known, a note also at itself and those before it, a query at those before it
        order = torch.cat([torch.zeros(n), torch.arange(1, m + 1)]).to(h.device)  # (n + m,)
        h_mask = there & (order[None, :] <= order[:, None])
        g_mask = there & (order[None, :] < torch.arange(m + 1, device=h.device).clamp(min=1)[:, None])
        g = self.streams(h, g, (bars, g_bars), (h_mask, g_mask))
        return [head(g) for head in self.heads]

    def _start(self, n: int) -> Tensor:
        """Return the query for the first onset (n, 1, 6): of the start of the span nothing is known but its bar."""
        ids = torch.tensor(BEGIN)
        ids[remi.BAR] = END  # as an input it stands nowhere else
        return ids.expand(n, 1, -1).to(self.device)

    def _middle_spans(self, contexts: Tokens, *, with_notes: bool) -> list[Span]:
        alone = len(contexts) == 1
        return [
            self._middle_span(context, None if alone else row, with_notes=with_notes)
            for row, context in enumerate(contexts)
        ]

    def _middle_span(self, context: Tokens, row: int | None, *, with_notes: bool) -> Span:
        return middle_span(context, row, with_notes=with_notes, long_jumps=self.config.long_jumps)

    def _random_span(self, context: Tokens, row: int) -> Span:
        return random_span(context, row, long_jumps=self.config.long_jumps)

    def _onset_log_p(self, bar_logits: Tensor, position_logits: Tensor, here: Here) -> tuple[Tensor, Tensor]:
        config = self.config
        return onset_log_p(bar_logits, position_logits, here, free=config.free_onsets, long_jumps=config.long_jumps)

    # --- training and likelihood

    def training_loss(self, contexts: Tensor, *, varied: bool = False) -> Tensor:
        """Return the mean cross-entropy over the columns of a note.

        A note costs its pitch, its duration, and bar and position of the next one; before the first note stands its own
        onset, and the last one is followed by the end. With `constant_columns` tempo and velocity count as well.

        Parameters
        ----------
        contexts
            Whole contexts, shape (batch, 384), int64; pitches 22..107.
        varied
            Whether in a share of the contexts, `varied_spans`, a random stretch of the notes is to be written; else it
            is the middle.

        Returns
        -------
        Tensor
            Shape (batch,): for each column a mean over the notes, then a mean over columns, nats.

        Raises
        ------
        InvalidNotesError
            A pitch that VLI does not know.

        """
        spans = []
        for row, context in enumerate(contexts.cpu().numpy().astype(np.uint8)):
            random = varied and bool(torch.rand(()) < self.config.varied_spans)
            spans.append(
                self._random_span(context, row) if random else self._middle_span(context, row, with_notes=True)
            )
        batch = pad(spans, self.device)
        logits = self(batch)
        onsets = next_onsets(batch)  # (batch, m + 1, 2)
        is_predicted = functional.pad(batch.is_note, (1, 0), value=True)  # (batch, m + 1): the start always
        columns = [*NOTE_COLUMNS, remi.TEMPO, remi.VELOCITY] if self.config.constant_columns else [*NOTE_COLUMNS]
        losses = [_mean_loss(logits[column][:, 1:], batch.notes[..., column], batch.is_note) for column in columns]
        losses += [
            _mean_loss(logits[column], onsets[..., index], is_predicted)
            for index, column in enumerate((remi.BAR, remi.POSITION))
        ]
        return torch.stack(losses).mean(0)

    def note_nll(self, contexts: Tokens) -> NoteLikelihood:
        """Return how likely the whole true middles are; see `protocols.NoteLikelihoodInpainter`.

        The middle is taken on the grid of sixteenths. Counted are onset, pitch and duration of each note and the end,
        by the distribution that ``"sample"`` draws from at temperature 1 and with a `top_p` of 1. Onsets that are
        further on than the network can say count as the farthest that it can.

        Parameters
        ----------
        contexts
            Whole contexts, shape (n, 384), values 0..129.

        Raises
        ------
        InvalidTokensError, ContextLengthError
            Not whole contexts.
        InvalidNotesError
            A pitch outside 22..107.

        """
        checked = check_contexts(contexts)
        spans = self._middle_spans(checked, with_notes=True)

        def work(rows: slice) -> npt.NDArray[np.float64]:
            nats: npt.NDArray[np.float64] = self._span_nll(pad(spans[rows], self.device)).cpu().numpy()
            return nats

        nats = np.concatenate([np.empty(0), *self._each_part(len(checked), work)])
        return NoteLikelihood(nats, np.array([len(span.notes) for span in spans], dtype=np.int64))

    def _span_nll(self, batch: Batch) -> Tensor:
        logits = self(batch)
        onsets = next_onsets(batch)  # (batch, m + 1, 2)
        bars = torch.cat([batch.before[:, None], batch.bars], dim=1)
        last = torch.full_like(bars[:, :1], remi.POSITIONS_PER_BAR - 1)
        places = torch.cat([last, batch.notes[..., remi.POSITION]], dim=1)
        by_bar, by_position = self._onset_log_p(logits[remi.BAR], logits[remi.POSITION], Here(bars, places))
        bar, position = onsets[..., :1], onsets[..., 1:]
        which = by_position.gather(2, bar[..., None].expand(-1, -1, 1, by_position.shape[-1])).squeeze(2)
        at = which.gather(-1, position).masked_fill(bar == END, 0.0)
        log_p = (by_bar.gather(-1, bar) + at).squeeze(-1)  # (batch, m + 1)
        log_p[:, 1:] *= batch.is_note
        total = -log_p.sum(1)
        for column in NOTE_COLUMNS:
            values = self._values(logits[column][:, 1:], column).gather(-1, batch.notes[..., column, None])
            total = total - (values.squeeze(-1) * batch.is_note).sum(1)
        return total

    @staticmethod
    def _values(logits: Tensor, column: int) -> Tensor:
        """Return log-probabilities (..., values) of a column without BOS, EOS and PAD."""
        return logits[..., : remi.N_VALUES[column]].double().log_softmax(-1)

    # --- decoding

    def inpaint(
        self, contexts: Tokens, *, rng: np.random.Generator, n_notes: int | Sequence[int] | None = None
    ) -> Tokens:
        """Fill the middles.

        Parameters
        ----------
        contexts
            Shape (n, 384), pitches 22..107. The middle is masked here, unless `decoding` reads it. Onsets and ends are
            rounded to sixteenths.
        rng
            The only source of randomness; not used where `deterministic`. Each item has numbers of its own, so that the
            first items do not depend on how many follow.
        n_notes
            Notes that each middle is to have, 0..64, where that is known: one number for all, or one each. None: the
            network says when it ends.

        Returns
        -------
        Tokens
            Middles, shape (n, 96), values 0..129; rests up to the first onset.

        Warns
        -----
        RoundedNotesWarning
            Onsets, such as those of triplets, that lie off the grid of sixteenths.

        Raises
        ------
        InvalidTokensError, ContextLengthError
            Not contexts, or for a decoding that leaks not whole ones.
        InvalidNotesError
            A pitch outside 22..107 in what is read.
        InvalidInputError
            A number of notes that has no room, or one for a decoding that takes its own.
        PairCountError
            Another number of these than of contexts.

        """
        checked = self._checked(contexts)
        counts = self._check_counts(n_notes, len(checked))
        spans = self._middle_spans(checked, with_notes=self.sees_reference)
        if self.decoding == "true_length":
            counts = [len(span.notes) for span in spans]
        warn_of_rounding(checked if self.sees_reference else without_middle(checked))

        def decode(rows: slice, uniform: Tensor) -> Tensor:
            left = None if counts is None else torch.tensor(counts[rows], device=self.device)
            written = self._decode(pad(spans[rows], self.device), uniform, left)
            return torch.from_numpy(np.stack([to_tokens(notes) for notes in written]))

        return self._fill(len(checked), (SLOTS, 4), rng, decode)  # bar, position, pitch, duration of each note

    def _check_counts(self, n_notes: int | Sequence[int] | None, n: int) -> list[int] | None:
        if n_notes is None:
            return None
        if self.sees_reference or self.config.free_onsets:
            raise InvalidInputError(
                f"{self.name} takes no number of notes; choose argmax or sample, without free onsets"
            )
        counts = [n_notes] * n if isinstance(n_notes, int | np.integer) else list(n_notes)
        if len(counts) != n:
            raise PairCountError(f"expected one number of notes a context, {n}, or one for all; got {len(counts)}")
        for count in counts:
            if not (isinstance(count, int | np.integer) and 0 <= count <= SLOTS):
                raise InvalidInputError(f"a middle has room for 0..{SLOTS} notes, got {count}")
        return [int(count) for count in counts]

    def _pick(self, log_p: Tensor, uniform: Tensor) -> Tensor:
        """Choose a class a row from log-probabilities (batch, classes) with uniform numbers (batch,)."""
        return log_p.argmax(-1) if self.decoding == "argmax" else draw(log_p, self.temperature, uniform, self.top_p)

    def _decode(self, batch: Batch, uniform: Tensor, left: Tensor | None) -> list[npt.NDArray[np.int64]]:
        """Write the middles note by note; return the notes of each (n, 6), bars counted from the context's start."""
        n = len(batch.known)
        reader = Reader(self, batch)
        bar, position = batch.before, torch.full_like(batch.before, remi.POSITIONS_PER_BAR - 1)
        there = torch.ones_like(bar, dtype=torch.bool)
        written = []
        g = reader.look(self._start(n), bar)
        for index in range(SLOTS):
            jump, next_bar, place = self._choose_onset(g, Here(bar, position, left), batch, uniform[:, index], index)
            there = there & (jump != END) & (place != END_POSITION)
            if not there.any():
                break
            bar, position = torch.where(there, next_bar, bar), torch.where(there, place, position)
            ids = torch.tensor(constant_ids(), device=self.device).repeat(n, 1)
            ids[:, remi.BAR], ids[:, remi.POSITION] = jump, position
            g = reader.look(onset_alone(ids[:, None]), bar)
            for number, column in enumerate(NOTE_COLUMNS, start=2):
                log_p = self._values(self.heads[column](g), column)
                ids[:, column] = self._pick(log_p, uniform[:, index, number])
            left = None if left is None else left - there.long()
            reader.read(ids[:, None], bar, there)
            written.append(ids.clone())
            written[-1][:, remi.BAR] = bar.masked_fill(~there, -1)
        if not written:
            return [np.zeros((0, len(COLUMN_SIZES)), dtype=np.int64)] * n
        rows = torch.stack(written, dim=1).cpu().numpy()
        return [row[(row[:, remi.BAR] > BEFORE) & (row[:, remi.BAR] <= LAST_BAR)] for row in rows]

    def _choose_onset(
        self, g: Tensor, here: Here, batch: Batch, uniform: Tensor, index: int
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Choose where note `index` starts, if at all: how far on, bar and position."""
        if self.decoding == "true_onsets" or (self.decoding == "first_onset" and index == 0):
            jump, place = next_onsets(batch)[:, index].unbind(-1)
            return jump, functional.pad(batch.bars, (0, 1))[:, index], place
        by_bar, by_position = self._onset_log_p(self.heads[remi.BAR](g), self.heads[remi.POSITION](g), here)
        jump = self._pick(by_bar, uniform[:, 0])
        # the end has no positions: what is drawn there is not used
        log_p = by_position[torch.arange(len(jump), device=jump.device), jump].nan_to_num(nan=0.0)
        on = torch.tensor(BARS_ON, device=jump.device)[jump]
        return jump, (here.bars + on).clamp(max=BAR_RANGE - 1), self._pick(log_p, uniform[:, 1])


def _mean_loss(logits: Tensor, ids: Tensor, mask: Tensor) -> Tensor:
    """Return the mean loss (batch,) of what is asked: logits (batch, q, classes), ids and asked (batch, q)."""
    losses = functional.cross_entropy(logits.float().transpose(1, 2), ids, reduction="none") * mask
    mean: Tensor = losses.sum(1) / mask.sum(1).clamp(min=1)
    return mean
