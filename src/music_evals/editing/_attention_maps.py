"""Cross-attention of a network of diffusers with its maps in sight: collected, or compared with those of another pass.

Nothing is stored but the maps of one pass of the network. What the network returns is what its own processors return.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Self

__all__ = ["AttentionMaps"]


class _Processor:
    """What diffusers calls for one attention layer; it hands each map to its owner."""

    def __init__(self, owner: AttentionMaps) -> None:
        self.owner = owner

    def __call__(
        self,
        attn: Any,
        hidden_states: Any,
        encoder_hidden_states: Any = None,
        attention_mask: Any = None,
        **_: Any,
    ) -> Any:
        """Return (batch, rows, width) as softmax(QK' / sqrt(d) + mask) V, with the map in sight."""
        batch, n_heads = len(hidden_states), attn.heads
        told = hidden_states if encoder_hidden_states is None else encoder_hidden_states
        query, key, value = (
            part.unflatten(-1, (n_heads, -1)).transpose(1, 2)
            for part in (attn.to_q(hidden_states), attn.to_k(told), attn.to_v(told))
        )  # (batch, heads, rows or words, width of a head)
        scores = query @ key.transpose(-1, -2) * query.shape[-1] ** -0.5
        if attention_mask is not None:
            mask = attn.prepare_attention_mask(attention_mask, told.shape[1], batch)
            scores = scores + mask.view(batch, n_heads, -1, mask.shape[-1])
        weights = scores.softmax(-1)
        self.owner.see(weights)
        out = (weights @ value).transpose(1, 2).flatten(-2)
        return attn.to_out[1](attn.to_out[0](out))


class AttentionMaps:
    """Looks at the cross-attention of a network while it is entered; the network's processors are put back after it.

    Parameters
    ----------
    unet
        A network of diffusers whose cross-attention layers have neither norms, residuals nor a factor of their own, as
        those in its transformers.

    """

    def __init__(self, unet: Any) -> None:
        self._unet = unet
        self._before: dict[str, Any] = {}
        self._see: Callable[[Any], None] | None = None

    def __enter__(self) -> Self:
        self._before = dict(self._unet.attn_processors)
        ours = {}
        for name, processor in self._before.items():
            layer = self._unet.get_submodule(name.removesuffix(".processor"))
            ours[name] = _Processor(self) if layer.is_cross_attention else processor
        self._unet.set_attn_processor(ours)  # it empties the dict that it is given
        return self

    def __exit__(self, *_: object) -> None:
        self._unet.set_attn_processor(self._before)

    def see(self, weights: Any) -> None:
        """Take the map of the next layer, (batch, heads, rows, words)."""
        if self._see is not None:
            self._see(weights)

    @contextlib.contextmanager
    def collected(self) -> Iterator[list[Any]]:
        """Give a list that the maps of a pass are put into, one a layer."""
        found: list[Any] = []
        with self._seeing(found.append):
            yield found

    @contextlib.contextmanager
    def compared(self, wanted: Sequence[Any]) -> Iterator[list[Any]]:
        """Give a list of how far each map of a pass is from the one that is wanted: differences squared and summed.

        It is the mean over batch and heads, halved: the authors' code has both halves of guidance in its batch. Their
        sum can be differentiated by whatever the pass depends on.
        """
        found: list[Any] = []
        with self._seeing(lambda seen: found.append(((seen - wanted[len(found)]) ** 2).sum((-1, -2)).mean() / 2)):
            yield found

    @contextlib.contextmanager
    def _seeing(self, see: Callable[[Any], None]) -> Iterator[None]:
        self._see = see
        try:
            yield
        finally:
            self._see = None
