"""Vectors of texts: encoders by name, each text encoded once, and kept on disk where that is wished.

An encoder is anything with the attributes of `music_evals.protocols.TextEncoder`. By name there are

- a sentence-transformers model, a Hub id or a folder; ``"BAAI/bge-large-zh-v1.5"``, which MuChin uses, is the default.
  It runs in single precision, pools as its own configuration says (BGE: the first token), and gets no instruction: the
  released code configures one and does not apply it to what it compares.
- ``"char-ngrams"``: hashed character n-grams. It needs no weights and knows no meaning; results name it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from music_evals.errors import InvalidInputError
from music_evals.lyrics._char_ngrams import CharNgrams
from music_evals.lyrics._sentence_models import SentenceEncoder, load_sentence_encoder
from music_evals.lyrics._stored_encoder import StoredEncoder
from music_evals.lyrics._vectors import Vectors, check_lengths, check_vectors, unit_vectors
from music_evals.protocols import TextEncoder

__all__ = [
    "CHAR_NGRAMS",
    "DEFAULT_ENCODER",
    "CharNgrams",
    "Embeddings",
    "SentenceEncoder",
    "StoredEncoder",
    "as_encoder",
    "embed",
    "load_encoder",
]

DEFAULT_ENCODER: Final = "BAAI/bge-large-zh-v1.5"
"""The encoder behind table 2 of MuChin."""

CHAR_NGRAMS: Final = "char-ngrams"
"""The encoder that needs no weights."""


def load_encoder(
    name: str = DEFAULT_ENCODER,
    *,
    revision: str | None = None,
    device: str | None = None,
    cache: str | os.PathLike[str] | None = None,
    trust_remote_code: bool = False,
) -> TextEncoder:
    """Return the encoder of a name.

    Parameters
    ----------
    name
        ``"char-ngrams"``, a folder, or the Hub id of a sentence-transformers model.
    revision
        Commit, tag or branch of a Hub id. None is the newest; without a connection, the copy on this machine.
    device
        Where a model computes, as ``"cpu"`` or ``"cuda:1"``; None takes a GPU where there is one.
    cache
        Folder where vectors are kept by model, revision and text; None keeps none. It does not change a number.
    trust_remote_code
        Run Python code that comes with a model. It can do whatever you can: read it first.

    Returns
    -------
    TextEncoder
        Its revision is the commit that was loaded, ``sha256-...`` of the files of a folder, or the version of
        ``"char-ngrams"``.

    Raises
    ------
    ModelUnavailableError
        A name that does not exist, or weights that are not here and cannot be fetched; the message says how to get
        them. Another encoder is never taken in its place.
    MissingBackendError
        sentence-transformers is not installed (extra ``text``).
    InvalidInputError
        A revision or device for what has none, or a device that is not there.

    """
    encoder: TextEncoder
    if name == CHAR_NGRAMS:
        if revision is not None or device is not None:
            raise InvalidInputError(f"{CHAR_NGRAMS!r} has no revisions and needs no device; leave both out")
        encoder = CharNgrams()
    else:
        encoder = load_sentence_encoder(name, revision=revision, device=device, trust_remote_code=trust_remote_code)
    return encoder if cache is None else StoredEncoder(encoder, cache)


def as_encoder(
    function: Callable[[Sequence[str]], npt.ArrayLike],
    name: str,
    *,
    revision: str = "",
    cache: str | os.PathLike[str] | None = None,
) -> TextEncoder:
    """Make an encoder of a function from texts to vectors.

    Parameters
    ----------
    function
        Takes n texts, gives vectors of shape (n, dimensions), of any length but 0: they are divided by it.
    name
        What results call it.
    revision
        Its version; needed for a cache.
    cache
        As in `load_encoder`.

    Raises
    ------
    InvalidInputError
        No name, something that cannot be called, or a cache without a revision.

    """
    if not callable(function) or not name:
        raise InvalidInputError(
            f"expected a function from texts to vectors and a name for it, got {function!r} and {name!r}"
        )
    encoder: TextEncoder = _FunctionEncoder(function, name, revision)
    return encoder if cache is None else StoredEncoder(encoder, cache)


class _FunctionEncoder:
    """A function with a name."""

    def __init__(self, function: Callable[[Sequence[str]], npt.ArrayLike], name: str, revision: str) -> None:
        self.name, self.revision, self._function = name, revision, function

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Return what the function gives, each vector divided by its length."""
        if not texts:
            return np.empty((0, 0), dtype=np.float32)
        vectors = check_vectors(self._function(texts), texts, self.name)
        return unit_vectors(vectors, texts, self.name)


class Embeddings:
    """Texts and their vectors, each text encoded once.

    Parameters
    ----------
    encoder
        What makes them.
    texts
        In any order, with repetitions.

    Raises
    ------
    BackendError
        The encoder does not give one finite unit vector a text.

    """

    def __init__(self, encoder: TextEncoder, texts: Iterable[str]) -> None:
        distinct = list(dict.fromkeys(texts))
        self._rows = {text: row for row, text in enumerate(distinct)}
        vectors = np.empty((0, 0), dtype=np.float32)
        if distinct:
            vectors = check_vectors(encoder.encode(distinct), distinct, encoder.name)
            check_lengths(vectors, distinct, encoder.name)
        self._vectors = vectors

    def __len__(self) -> int:
        return len(self._rows)

    def of(self, texts: Sequence[str]) -> Vectors:
        """Return the vectors of texts that were given, shape (n, dimensions), in their order and with repetitions."""
        return self._vectors[[self._rows[text] for text in texts]]


def embed(encoder: TextEncoder, texts: Iterable[str]) -> Embeddings:
    """Encode texts, each distinct one once.

    Raises
    ------
    BackendError
        The encoder failed, or does not give one finite unit vector a text.
    OutputError
        Its cache cannot be written.

    """
    return Embeddings(encoder, texts)
