"""An encoder of texts that needs nothing: hashed counts of character n-grams.

It sees spelling, not meaning: 悲伤 and 伤感 are alike because of 伤, 快乐 and 开心 are not. It is there for demos, for
tests of everything around an encoder, and as a floor under learned ones.
"""

from __future__ import annotations

import functools
import hashlib
import unicodedata
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

__all__ = ["CharNgrams"]

SIZES = (1, 2, 3)
DIMENSIONS = 2048
VERSION = "1"  # goes up whenever a vector changes
_START, _END = "\x02", "\x03"  # no text in print holds them, so that the ends of a word count as letters
_KEPT_HASHES = 1 << 18


class CharNgrams:
    """Unit vectors of hashed character 1-, 2- and 3-grams, the same on every machine and in every process."""

    # A text is stripped after NFKC normalisation and case-folded, and gets a mark at each end, which 2- and 3-grams may
    # hold. Each n-gram is hashed by BLAKE2b to one of 2048 places and a sign; the counts are divided by their length.
    # Texts without a common n-gram have a cosine near 0, give or take collisions, and below 0 at times.

    name = "char-ngrams"
    revision = VERSION

    def encode(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Return unit vectors, shape (n, 2048), float32."""
        vectors = np.zeros((len(texts), DIMENSIONS))
        for row, text in zip(vectors, texts, strict=True):
            for ngram in _ngrams(text):
                place, sign = _hashed(ngram)
                row[place] += sign
            if not row.any():  # all n-grams fell on one another with opposite signs
                row[0] = 1.0
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        return vectors.astype(np.float32)


def _ngrams(text: str) -> Iterator[str]:
    letters = unicodedata.normalize("NFKC", text).strip().casefold()
    marked = f"{_START}{letters}{_END}"
    for size in SIZES:
        within = letters if size == 1 else marked
        yield from (within[start : start + size] for start in range(len(within) - size + 1))


@functools.lru_cache(maxsize=_KEPT_HASHES)
def _hashed(ngram: str) -> tuple[int, int]:
    digest = hashlib.blake2b(ngram.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    number = int.from_bytes(digest, "big")
    return (number >> 1) % DIMENSIONS, 1 if number & 1 else -1
