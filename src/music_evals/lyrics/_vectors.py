"""What every encoder must give: one finite vector a text, of length 1."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from music_evals.errors import BackendError

__all__ = ["UNIT_TOLERANCE", "Vectors", "check_lengths", "check_vectors", "unit_vectors"]

UNIT_TOLERANCE = 1e-3
"""A vector this far from length 1 is no unit vector; half precision leaves about 5e-4."""

Vectors = npt.NDArray[np.float32]


def check_vectors(given: npt.ArrayLike, texts: Sequence[str], name: str) -> Vectors:
    """Return one finite vector a text, float32."""
    vectors = np.asarray(given, dtype=np.float32)
    if vectors.ndim != 2 or len(vectors) != len(texts):
        raise BackendError(
            f"the encoder {name!r} must give one vector a text, shape ({len(texts)}, dimensions), got {vectors.shape}"
        )
    finite = np.isfinite(vectors).all(axis=1)
    if not finite.all():
        raise BackendError(
            f"the encoder {name!r} gives values that are not finite for {texts[int(np.argmin(finite))]!r}"
        )
    return vectors


def unit_vectors(vectors: Vectors, texts: Sequence[str], name: str) -> Vectors:
    """Return vectors divided by their lengths."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    if not lengths.all():
        text = texts[int(np.argmin(lengths))]
        raise BackendError(f"the encoder {name!r} gives a vector of zeros for {text!r}; it has no direction to compare")
    return np.asarray(vectors / lengths, dtype=np.float32)


def check_lengths(vectors: Vectors, texts: Sequence[str], name: str) -> None:
    """Hold vectors to length 1."""
    lengths = np.linalg.norm(vectors, axis=1)
    wrong = np.flatnonzero(np.abs(lengths - 1) > UNIT_TOLERANCE)
    if len(wrong):
        text, length = texts[wrong[0]], lengths[wrong[0]]
        raise BackendError(
            f"the encoder {name!r} must give unit vectors, but that of {text!r} has length {length:.4g}; as_encoder "
            "divides by it"
        )
