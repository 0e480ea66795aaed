"""One layer of VLI, with positions relative in bars, and a reader that keeps what the layers have read."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from music_evals.models._vli_notes import BAR_RANGE, Batch

if TYPE_CHECKING:
    from music_evals.models.vli import VLI, VLIConfig

__all__ = ["Layer", "Reader", "View"]


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

    def __init__(self, model: VLI, batch: Batch) -> None:
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
