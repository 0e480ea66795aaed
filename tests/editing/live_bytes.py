"""How many bytes the tensors that a computation makes take at most at one time."""

from __future__ import annotations

import weakref
from typing import Any

from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class LiveBytes(TorchDispatchMode):  # type: ignore[misc]
    """Counts storages that appear inside of its context, each until it is freed."""

    def __init__(self) -> None:
        super().__init__()
        self.now = self.peak = 0
        self._known: set[int] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = {leaf.untyped_storage()._cdata for leaf in tree_leaves((args, kwargs)) if hasattr(leaf, "numel")}
        made = func(*args, **(kwargs or {}))
        for leaf in tree_leaves(made):
            if not hasattr(leaf, "untyped_storage"):
                continue
            storage = leaf.untyped_storage()
            key = storage._cdata
            if key in self._known or key in given:
                continue
            self._known.add(key)
            self.now += storage.nbytes()
            self.peak = max(self.peak, self.now)
            weakref.finalize(storage, self._freed, key, storage.nbytes())
        return made

    def _freed(self, key: int, n_bytes: int) -> None:
        self._known.discard(key)
        self.now -= n_bytes
