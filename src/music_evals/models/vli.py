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

import dataclasses
import math
import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn import functional

from music_evals.annotations import HOLD, MUSIB_LAYOUT, Score, Tokens
from music_evals.errors import InvalidInputError, InvalidNotesError, PairCountError, RoundedNotesWarning
from music_evals.models.layers.networks import InpaintingNetwork, SizedConfig, draw
from music_evals.protocols import NoteLikelihood
from music_evals.symbolic import noteseq
from music_evals.symbolic.contexts import STEPS_PER_QUARTER, quantize_voice
from music_evals.symbolic.encodings import remi
from music_evals.symbolic.notes import make_notes
from music_evals.symbolic.noteseq import check_contexts

__all__ = ["DECODINGS", "SIZES", "VLI", "VLIConfig"]

# Ids of a bar are relative in the network: the bar of the note before, the next one, the end, two bars on.
SAME, NEXT, END, AFTER_NEXT = range(4)
BARS_ON = (0, 1, 0, 2)
COLUMN_SIZES = (*remi.SIZES[: remi.BAR], 4, *remi.SIZES[remi.BAR + 1 :])
BEGIN = [size - 3 for size in remi.SIZES]  # BOS of each column: what the query stream does not know
END_POSITION = remi.SIZES[remi.POSITION] - 2
NOTE_COLUMNS = (remi.PITCH, remi.DURATION)  # what a note needs besides its onset
LAST_BAR = MUSIB_LAYOUT.past_measures + MUSIB_LAYOUT.middle_measures - 1
BEFORE = MUSIB_LAYOUT.past_measures - 1  # the bar that the first onset of the middle is counted from
SLOTS = MUSIB_LAYOUT.middle_measures * remi.POSITIONS_PER_BAR  # onsets that the middle has room for
BAR_RANGE = MUSIB_LAYOUT.n_measures  # bars between two notes, at most
PITCHES = (remi.LOWEST_PITCH, remi.LOWEST_PITCH + remi.N_VALUES[remi.PITCH] - 1)
"""Lowest and highest pitch."""


class Span(NamedTuple):
    """One context as notes: what is known, and what is to be written between."""

    known: npt.NDArray[np.int64]  # (n, 6), ids of the network
    known_bars: npt.NDArray[np.int64]  # (n,)
    notes: npt.NDArray[np.int64]  # (m, 6), ids of the network
    bars: npt.NDArray[np.int64]  # (m,)
    before: int  # the bar that the first onset is counted from


class Batch(NamedTuple):
    """Spans side by side, padded at the end."""

    known: Tensor  # (batch, n, 6)
    known_bars: Tensor  # (batch, n)
    is_known: Tensor  # (batch, n), False where padded
    notes: Tensor  # (batch, m, 6)
    bars: Tensor  # (batch, m)
    is_note: Tensor  # (batch, m)
    before: Tensor  # (batch,)


class Here(NamedTuple):
    """How far a middle is written."""

    bars: Tensor  # of the last note, (batch,) or (batch, q)
    positions: Tensor  # of the last note
    left: Tensor | None = None  # notes that are still to be written, where that is known


def note_ids(tokens: Tokens, first_bar: int, row: int | None) -> npt.NDArray[np.int64]:
    """Turn the tokens of one stretch into ids (n, 6), bars counted from the start of the context.

    `row` is the number of the context, for messages; None where there is one alone.
    """
    notes = noteseq.decode(tokens)
    low, high = PITCHES
    outside = (notes["pitch"] < low) | (notes["pitch"] > high)
    if outside.any():
        which = "the music" if row is None else f"context {row}"
        raise InvalidNotesError(
            f"{which} has the pitch {notes['pitch'][outside][0]}, and VLI knows {low}..{high} alone; "
            "transpose the tune by octaves until it fits, or use a model of all pitches, such as anticipation_rnn"
        )
    sixteenths = quantize_voice(notes, STEPS_PER_QUARTER, remi.POSITIONS_PER_BAR // 4)
    sixteenths["onset_tick"] += first_bar * remi.POSITIONS_PER_BAR
    return remi.encode(Score(sixteenths, remi.POSITIONS_PER_BAR // 4))


def middle_span(context: Tokens, row: int | None, *, with_notes: bool, long_jumps: bool) -> Span:
    """Cut a context into past and future, which are known, and the middle, which is read only on demand."""
    past, middle, future = MUSIB_LAYOUT.past, MUSIB_LAYOUT.middle, MUSIB_LAYOUT.future
    before = note_ids(context[past], 0, row)
    after = note_ids(context[future], LAST_BAR + 1, row)
    between = note_ids(context[middle], BEFORE + 1, row) if with_notes else before[:0]
    return _span((before, between, after), BEFORE, long_jumps=long_jumps)


def _span(stretches: tuple[npt.NDArray[np.int64], ...], start: int, *, long_jumps: bool) -> Span:
    """Make the bars of three stretches of notes relative; `start` is the bar that the first onset is counted from."""
    before, between, after = stretches
    first = before[0, remi.BAR] if len(before) else 0
    known = np.concatenate(
        [relative_bars(before, first, long_jumps=long_jumps), relative_bars(after, 0, long_jumps=long_jumps)]
    )
    if len(after):
        known[len(before), remi.BAR] = NEXT  # it is not said how long ago the span's last note was
    bars = np.concatenate([before, after])[:, remi.BAR]
    notes = relative_bars(between, start, long_jumps=long_jumps)
    return Span(known, bars, notes, between[:, remi.BAR], start)


def relative_bars(ids: npt.NDArray[np.int64], first: int, *, long_jumps: bool) -> npt.NDArray[np.int64]:
    """Replace bars by how far on they are from the note before; `first` is the bar before the first note."""
    relative = ids.copy()
    steps = np.diff(ids[:, remi.BAR], prepend=first)
    far = AFTER_NEXT if long_jumps else NEXT
    relative[:, remi.BAR] = np.where(steps >= 2, far, steps.clip(0, 1))
    return relative


def random_span(context: Tokens, row: int | None, *, long_jumps: bool) -> Span:
    """Leave out a stretch of 12.5 to 25 per cent of all notes, as published."""
    ids = note_ids(context, 0, row)
    n = len(ids)
    length = int(torch.randint(max(n // 8, 1), max(n // 4, 1) + 1, ()))
    start = int(torch.randint(max(n - length, 0) + 1, ()))
    bar = int(ids[start - 1, remi.BAR]) if start else int(ids[0, remi.BAR]) - 1 if n else 0
    return _span((ids[:start], ids[start : start + length], ids[start + length :]), bar, long_jumps=long_jumps)


def pad(spans: Sequence[Span], device: torch.device) -> Batch:
    """Lay spans side by side."""
    columns = []
    for notes, bars in (("known", "known_bars"), ("notes", "bars")):
        rows = [getattr(span, notes) for span in spans]
        columns += [rows, [getattr(span, bars) for span in spans], [np.ones(len(row), bool) for row in rows]]
    before = torch.tensor([span.before for span in spans], dtype=torch.int64)
    return Batch(*(column.to(device) for column in (*map(_padded, columns), before)))


def _padded(rows: Sequence[npt.NDArray[np.generic]]) -> Tensor:
    """Lay arrays of different length side by side, with zeros (False) at the end."""
    longest = max((len(row) for row in rows), default=0)
    padded = [np.pad(row, [(0, longest - len(row)), *((0, 0),) * (row.ndim - 1)]) for row in rows]
    return torch.from_numpy(np.stack(padded))


def next_onsets(batch: Batch) -> Tensor:
    """Return bar and position (batch, m + 1, 2) that follow the start and each note; the end follows the last."""
    ends = torch.tensor([END, END_POSITION], device=batch.notes.device)
    onsets = batch.notes[..., [remi.BAR, remi.POSITION]].where(batch.is_note[..., None], ends)
    return torch.cat([onsets, ends.expand(len(onsets), 1, 2)], dim=1)


def onset_alone(ids: Tensor) -> Tensor:
    """Return ids (..., 6) of which only bar and position are known: the input of the query stream."""
    known = torch.tensor([column in {remi.BAR, remi.POSITION} for column in range(len(BEGIN))], device=ids.device)
    return ids.where(known, torch.tensor(BEGIN, device=ids.device))


def to_tokens(ids: npt.NDArray[np.int64]) -> Tokens:
    """Turn the notes of a middle (n, 6) into NoteSeq tokens (96,); of two at one onset the later one stays."""
    ids = ids.copy()
    ids[:, remi.BAR] -= BEFORE + 1
    notes = remi.decode(ids).notes
    notes = notes[np.append(np.diff(notes["onset_tick"]) > 0, True)] if len(notes) else notes
    gaps = np.diff(notes["onset_tick"], append=np.iinfo(np.int64).max)
    notes["duration_tick"] = np.minimum(notes["duration_tick"], gaps)  # a note ends where the next one starts
    return noteseq.encode(quantize_voice(notes, remi.TICKS_PER_QUARTER, STEPS_PER_QUARTER), MUSIB_LAYOUT.middle_steps)


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

    A value outside its range raises `InvalidInputError`, a name that does not exist `UnknownNameError`.

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


class View(NamedTuple):
    """What a stream looks at: the notes of the content stream."""

    keys: tuple[Tensor, Tensor]  # keys and values, (batch, heads, k, size / heads) each
    bars: Tensor  # (batch, k)
    mask: Tensor  # (batch, q or 1, k), bool


class Layer(nn.Module):
    """Attention with positions relative in bars, then a feed-forward network; each is normalised last."""

    def __init__(self, config: VLIConfig) -> None:
        super().__init__()
        size, self.n_heads = config.model_size, config.n_heads
        self.query, self.key, self.value, self.relative, self.out = (
            nn.Linear(size, size, bias=False) for _ in range(5)
        )
        heads = (config.n_heads, 1, size // config.n_heads)
        self.content_bias = nn.Parameter(torch.empty(heads))
        self.position_bias = nn.Parameter(torch.empty(heads))
        # of segments, which notes do not have: counted in the published number, and without effect there too
        self.segment_bias = nn.Parameter(torch.empty(heads))
        self.attention_norm = nn.LayerNorm(size, eps=1e-12)
        self.inner = nn.Linear(size, config.inner_size)
        self.outer = nn.Linear(config.inner_size, size)
        self.norm = nn.LayerNorm(size, eps=1e-12)
        self.dropout = nn.Dropout(config.dropout)

    def keys(self, h: Tensor) -> tuple[Tensor, Tensor]:
        """Return keys and values (batch, heads, notes, size / heads) of the content stream (batch, notes, size)."""
        return self._heads(self.key(h)), self._heads(self.value(h))

    def forward(self, x: Tensor, bars: Tensor, view: View, table: Tensor) -> Tensor:
        """Return one stream (batch, q, size), its notes in `bars` (batch, q), after it has looked at the view.

        `table` holds the vectors of distances in bars.
        """
        key, value = view.keys
        query = self._heads(self.query(x))  # (batch, heads, q, size / heads)
        distances = self._heads(self.relative(table))  # (heads, range, size / heads)
        by_content = (query + self.content_bias) @ key.transpose(-1, -2)  # (batch, heads, q, k)
        by_bars = (query + self.position_bias) @ distances.transpose(-1, -2)  # (batch, heads, q, range)
        bars_on = view.bars[:, None, :] - bars[:, :, None] + BAR_RANGE  # (batch, q, k)
        by_position = by_bars.gather(-1, bars_on[:, None].expand(-1, self.n_heads, -1, -1))
        scores = (by_content + by_position) / math.sqrt(key.shape[-1])
        mask = view.mask[:, None]
        weights = scores.masked_fill(~mask, torch.finfo(scores.dtype).min).softmax(-1) * mask  # 0 if all is masked
        looked = (self.dropout(weights) @ value).transpose(1, 2).flatten(2)  # (batch, q, size)
        x = self.attention_norm(x + self.dropout(self.out(looked)))
        inner = self.dropout(functional.gelu(self.inner(x)))
        after: Tensor = self.norm(x + self.dropout(self.outer(inner)))
        return after

    def _heads(self, x: Tensor) -> Tensor:
        """Cut (..., notes, size) into (..., heads, notes, size / heads)."""
        return x.view(*x.shape[:-1], self.n_heads, x.shape[-1] // self.n_heads).transpose(-3, -2)


class Reader:
    """The content stream while notes are added to it: keys and values of all layers are kept."""

    def __init__(self, model: "VLI", batch: Batch) -> None:
        self.model = model
        self.bars, self.mask = batch.known_bars, batch.is_known[:, None]  # (batch, k), (batch, 1, k)
        self.keys: list[tuple[Tensor, Tensor]] = []
        h = model._embed(batch.known)
        for layer in model.blocks:  # what is known never looks at what is written
            self.keys.append(layer.keys(h))
            h = layer(h, self.bars, self._view(-1), model.positions)

    def _view(self, layer: int) -> View:
        return View(self.keys[layer], self.bars, self.mask)

    def look(self, ids: Tensor, bar: Tensor) -> Tensor:
        """Return the query stream (batch, size) of ids (batch, 1, 6) in bars (batch,)."""
        g = self.model._embed(ids)
        for index, layer in enumerate(self.model.blocks):
            g = layer(g, bar[:, None], self._view(index), self.model.positions)
        return g[:, 0]

    def read(self, ids: Tensor, bar: Tensor, there: Tensor) -> None:
        """Add one note to each row where it is there."""
        self.bars = torch.cat([self.bars, bar[:, None]], dim=1)
        self.mask = torch.cat([self.mask, there[:, None, None]], dim=2)
        h = self.model._embed(ids)
        for index, layer in enumerate(self.model.blocks):
            key, value = (torch.cat(pair, dim=2) for pair in zip(self.keys[index], layer.keys(h), strict=True))
            self.keys[index] = key, value
            h = layer(h, bar[:, None], self._view(index), self.model.positions)


class VLI(InpaintingNetwork, tags=["music", "symbolic-music", "inpainting"]):
    """VLI over NoteSeq contexts of 6 + 4 + 6 measures; a `protocols.Inpainter`.

    Tokens -> notes on a grid of sixteenths -> six ids a note -> two streams -> the ids of one note more, and so on.

    Parameters
    ----------
    config
        `VLIConfig`: sizes, training and default decoding; None is its defaults.
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

    def _build(self, config: VLIConfig) -> None:
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
        """Run both streams through all layers and return the query stream, (batch, queries, size).

        `h` is the content stream (batch, notes, size), `g` the query stream; `bars` are those of the notes of either,
        (batch, notes) and (batch, queries), and `masks` say which notes of the content stream each of either looks at,
        (batch, notes, notes) and (batch, queries, notes).
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
        how: Any = {"with_notes": with_notes, "long_jumps": self.config.long_jumps}
        alone = len(contexts) == 1
        return [middle_span(context, None if alone else row, **how) for row, context in enumerate(contexts)]

    def _onset_log_p(self, bar_logits: Tensor, position_logits: Tensor, here: Here) -> tuple[Tensor, Tensor]:
        """Return log-probabilities of the next bar (..., 4) and, for each of these, of the next position (..., 4, 19).

        Only later onsets of the middle have any. Where it is known how many notes are left, they are given room, and
        the end comes when none is left.
        """
        bars, positions, left = here
        free = self.config.free_onsets
        slots = torch.arange(remi.POSITIONS_PER_BAR, device=bars.device)
        onward = torch.tensor(BARS_ON, device=bars.device)
        slot = (bars - BEFORE - 1) * remi.POSITIONS_PER_BAR + positions  # sixteenths from the start of the middle
        there = ((bars - BEFORE - 1)[..., None] + onward)[..., None] * remi.POSITIONS_PER_BAR + slots  # (..., 4, 16)
        room = torch.full_like(slot, SLOTS) if left is None else SLOTS - (left - 1).clamp(min=0)
        open_slots = torch.ones_like(there, dtype=torch.bool)
        if not free:
            open_slots = (there > slot[..., None, None]) & (there < room[..., None, None])
        open_slots[..., END, :] = False
        if not self.config.long_jumps:
            open_slots[..., AFTER_NEXT, :] = False
        if left is not None:
            open_slots &= (left > 0)[..., None, None]
        open_bars = open_slots.any(-1)
        open_bars[..., END] = True if left is None else left <= 0
        never = torch.zeros_like(open_slots[..., :1])
        ends = torch.tensor([True, True, False, True], device=bars.device)[:, None] & (free and left is None)
        open_positions = torch.cat([open_slots, never, never | ends, never], dim=-1)  # BOS, EOS, PAD
        by_bar = bar_logits.double().masked_fill(~open_bars, -torch.inf).log_softmax(-1)
        expanded = position_logits.double()[..., None, :].masked_fill(~open_positions, -torch.inf)
        return by_bar, expanded.log_softmax(-1)

    # --- training and likelihood

    def training_loss(self, contexts: Tensor, *, varied: bool = False) -> Tensor:
        """Return the mean cross-entropy over the columns of a note.

        A note costs its pitch, its duration, and bar and position of the next one; before the first note stands its own
        onset, and the last one is followed by the end. With `constant_columns` tempo and velocity count as well.

        Of whole contexts (batch, 384), int64, pitches 22..107 (others raise `InvalidNotesError`); the result, (batch,),
        is for each column a mean over the notes, then a mean over columns, nats. The middle is to be written; varied,
        in a share of the contexts, `varied_spans`, a random stretch of the notes.
        """
        spans = []
        for row, context in enumerate(contexts.cpu().numpy().astype(np.uint8)):
            long_jumps = self.config.long_jumps
            if varied and bool(torch.rand(()) < self.config.varied_spans):
                spans.append(random_span(context, row, long_jumps=long_jumps))
            else:
                spans.append(middle_span(context, row, with_notes=True, long_jumps=long_jumps))
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

        The middles of whole contexts, shape (n, 384), values 0..129, are taken on the grid of sixteenths. Counted are
        onset, pitch and duration of each note and the end, by the distribution that ``"sample"`` draws from at
        temperature 1 and with a `top_p` of 1. Onsets that are further on than the network can say count as the farthest
        that it can. A pitch outside 22..107 raises `InvalidNotesError`; what is no whole context
        `InvalidTokensError` or `ContextLengthError`.
        """
        checked = check_contexts(contexts)
        spans = self._middle_spans(checked, with_notes=True)

        def work(rows: slice) -> npt.NDArray[np.float64]:
            batch = pad(spans[rows], self.device)
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
            return np.asarray(total.cpu().numpy())

        nats = np.concatenate([np.empty(0), *self._each_part(len(checked), work)])
        return NoteLikelihood(nats, np.array([len(span.notes) for span in spans], dtype=np.int64))

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
        counts: list[int] | None = None
        if n_notes is not None:
            if self.sees_reference or self.config.free_onsets:
                raise InvalidInputError(
                    f"{self.name} takes no number of notes; choose argmax or sample, without free onsets"
                )
            counts = [n_notes] * len(checked) if isinstance(n_notes, int | np.integer) else list(n_notes)
            if len(counts) != len(checked):
                raise PairCountError(
                    f"expected one number of notes a context, {len(checked)}, or one for all; got {len(counts)}"
                )
            for count in counts:
                if not (isinstance(count, int | np.integer) and 0 <= count <= SLOTS):
                    raise InvalidInputError(f"a middle has room for 0..{SLOTS} notes, got {count}")
        spans = self._middle_spans(checked, with_notes=self.sees_reference)
        if self.decoding == "true_length":
            counts = [len(span.notes) for span in spans]
        # NoteSeq writes onsets that are no sixteenths on other steps than 0, 2, 3 and 5 of a quarter
        onsets = checked < HOLD
        n_off = int((onsets & np.isin(np.arange(checked.shape[1]) % STEPS_PER_QUARTER, (1, 4))).sum())
        if n_off:
            warnings.warn(
                f"{n_off} of {int(onsets.sum())} onsets lie off VLI's grid of sixteenths, as those of triplets do, and "
                "were rounded",
                RoundedNotesWarning,
                stacklevel=2,
            )

        def decode(rows: slice, uniform: Tensor) -> Tensor:
            left = None if counts is None else torch.tensor([int(count) for count in counts[rows]], device=self.device)
            written = self._decode(pad(spans[rows], self.device), uniform, left)
            return torch.from_numpy(np.stack([to_tokens(notes) for notes in written]))

        return self._fill(len(checked), (SLOTS, 4), rng, decode)  # bar, position, pitch, duration of each note

    def _pick(self, log_p: Tensor, uniform: Tensor) -> Tensor:
        """Choose a class a row from log-probabilities (batch, classes) with uniform numbers (batch,)."""
        return log_p.argmax(-1) if self.decoding == "argmax" else draw(log_p, self.temperature, uniform, self.top_p)

    def _decode(self, batch: Batch, uniform: Tensor, left: Tensor | None) -> list[npt.NDArray[np.int64]]:
        """Write the middles note by note; return the notes of each (n, 6), bars counted from the context's start."""
        n = len(batch.known)
        reader = Reader(self, batch)
        # the ids of a note with a tempo of 120 and a velocity of 64, the only ones here
        note = make_notes([0], [1], [remi.LOWEST_PITCH])
        constant_ids = torch.tensor(remi.encode(Score(note, remi.TICKS_PER_QUARTER))[0].tolist(), device=self.device)
        bar, position = batch.before, torch.full_like(batch.before, remi.POSITIONS_PER_BAR - 1)
        there = torch.ones_like(bar, dtype=torch.bool)
        written = []
        g = reader.look(self._start(n), bar)
        for index in range(SLOTS):
            # where the note starts, if at all: how far on, bar and position
            if self.decoding == "true_onsets" or (self.decoding == "first_onset" and index == 0):
                jump, place = next_onsets(batch)[:, index].unbind(-1)
                next_bar = functional.pad(batch.bars, (0, 1))[:, index]
            else:
                here = Here(bar, position, left)
                by_bar, by_position = self._onset_log_p(self.heads[remi.BAR](g), self.heads[remi.POSITION](g), here)
                jump = self._pick(by_bar, uniform[:, index, 0])
                # the end has no positions: what is drawn there is not used
                log_p = by_position[torch.arange(n, device=jump.device), jump].nan_to_num(nan=0.0)
                next_bar = (bar + torch.tensor(BARS_ON, device=jump.device)[jump]).clamp(max=BAR_RANGE - 1)
                place = self._pick(log_p, uniform[:, index, 1])
            there = there & (jump != END) & (place != END_POSITION)
            if not there.any():
                break
            bar, position = torch.where(there, next_bar, bar), torch.where(there, place, position)
            ids = constant_ids.repeat(n, 1)
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


def _mean_loss(logits: Tensor, ids: Tensor, mask: Tensor) -> Tensor:
    """Return the mean loss (batch,) of what is asked: logits (batch, q, classes), ids and asked (batch, q)."""
    losses = functional.cross_entropy(logits.float().transpose(1, 2), ids, reduction="none") * mask
    mean: Tensor = losses.sum(1) / mask.sum(1).clamp(min=1)
    return mean
