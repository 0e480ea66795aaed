"""The last stage of SketchNet: a transformer over the latents of all measures."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn import functional

from music_evals.models._measures import N_MEASURES

if TYPE_CHECKING:
    from music_evals.models.sketchnet import SketchNetConfig

__all__ = ["SketchConnector"]


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
