"""What models answered, kept for other runs: with another variant, beside other systems, or on other machines.

An answer is that of one chunk of items, since what a network draws for one of them depends on those beside it. Its key
is all that decides it: the model's weights, configuration and options, the contexts that it is shown, seed and chunk,
and the versions and processor kernels that computed it. An answer of anything else is never taken.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from music_evals.annotations import Tokens
from music_evals.benchmark.tasks.inpainting.systems import System
from music_evals.files import Store
from music_evals.numerics import kernels, package_versions

__all__ = ["PredictionCache"]

Array = npt.NDArray[Any]


@dataclasses.dataclass(frozen=True)
class PredictionCache:
    """A folder of predictions, which any number of processes and machines may share."""

    store: Store

    def get_or_compute(
        self, system: System, question: dict[str, Any], contexts: Tokens, compute: Callable[[], Array], dtype: str
    ) -> Array:
        """Return a stored prediction, or compute and store it; baselines are quicker computed than looked up."""
        if system.make is None or system.role not in {"model", "leaking"}:
            return compute()
        key = {
            **question,
            "system": system.name,  # its randomness depends on it
            "content": system.content_hash,
            "contexts": hashlib.sha256(np.ascontiguousarray(contexts).tobytes()).hexdigest(),
            "versions": package_versions(),
            "kernels": kernels(),
        }
        stored = self.store.get(key)
        if stored is not None:
            return np.frombuffer(stored, dtype).reshape(len(contexts), -1)
        answer = compute()
        self.store.put(key, answer.astype(dtype, copy=False).tobytes())
        return answer
