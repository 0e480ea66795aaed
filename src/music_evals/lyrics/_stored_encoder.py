"""An encoder that keeps what it made of a text on disk."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from music_evals.errors import InvalidInputError
from music_evals.files import Store
from music_evals.lyrics._vectors import Vectors, check_lengths, check_vectors
from music_evals.protocols import TextEncoder

__all__ = ["StoredEncoder"]

_LITTLE_ENDIAN = np.dtype("<f4")


class StoredEncoder:
    """An encoder that looks a text up before it encodes it."""

    def __init__(self, encoder: TextEncoder, folder: str | os.PathLike[str]) -> None:
        self.name, self.revision = encoder.name, encoder.revision
        self._encoder, self._store = encoder, Store(folder)
        if not encoder.revision:
            raise InvalidInputError(
                f"the encoder {encoder.name!r} has no revision, so stored embeddings could be those of another version "
                "of it; give it one, as_encoder(..., revision=...), or leave the cache out"
            )

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Return unit vectors, shape (n, dimensions), float32."""
        stored = {text: self._store.get(self._key(text)) for text in texts}
        known = {text: np.frombuffer(content, _LITTLE_ENDIAN) for text, content in stored.items() if content}
        missing = [text for text, content in stored.items() if not content]
        if missing:
            vectors = check_vectors(self._encoder.encode(missing), missing, self.name)
            check_lengths(vectors, missing, self.name)
            for text, vector in zip(missing, vectors, strict=True):
                self._store.put(self._key(text), vector.astype(_LITTLE_ENDIAN).tobytes())
                known[text] = vector
        return np.stack([known[text] for text in texts]).astype(np.float32) if texts else self._encoder.encode([])

    def _key(self, text: str) -> dict[str, Any]:
        return {"encoder": self.name, "revision": self.revision, "text": text}
