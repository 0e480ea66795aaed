"""Vectors of texts: encoders by name, each text encoded once, and kept on disk where that is wished.

An encoder is anything with the attributes of `music_evals.protocols.TextEncoder`. By name there are

- a sentence-transformers model, a Hub id or a folder; ``"BAAI/bge-large-zh-v1.5"``, which MuChin uses, is the default.
  It runs in single precision, pools as its own configuration says (BGE: the first token), and gets no instruction: the
  released code configures one and does not apply it to what it compares.
- ``"char-ngrams"``: hashed character n-grams. It needs no weights and knows no meaning; results name it.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib
import importlib.util
import os
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from music_evals.errors import BackendError, InvalidInputError, MissingBackendError, ModelUnavailableError
from music_evals.files import Store
from music_evals.lyrics.model_files import choose_device, find_model, unavailable
from music_evals.numerics import one_thread
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
        return encoder if cache is None else StoredEncoder(encoder, cache)
    if importlib.util.find_spec(PACKAGE) is None:
        raise MissingBackendError("sentence-transformers", "text", "an encoder of texts")
    place = find_model(name, revision, MODULES, advice=_ADVICE)  # before the library, which takes seconds to import
    chosen = choose_device(device)
    library = importlib.import_module(PACKAGE)
    with _loading(name):
        if not library.util.is_sentence_transformer_model(name, revision=place.commit, local_files_only=place.here):
            raise ModelUnavailableError(
                f"{name!r} is not a sentence-transformers model: it has no {MODULES}, which says how tokens become one "
                "vector; name one that has, or wrap your own function by as_encoder"
            )
        model = library.SentenceTransformer(
            name,
            revision=place.commit,
            device=str(chosen),
            trust_remote_code=trust_remote_code,
            local_files_only=place.here,
            model_kwargs={"dtype": "float32"},
        )
    encoder = SentenceEncoder(model.float().eval(), name, place.identity)
    return encoder if cache is None else StoredEncoder(encoder, cache)


def as_encoder(
    function: Callable[[Sequence[str]], npt.ArrayLike],
    name: str,
    *,
    revision: str = "",
    cache: str | os.PathLike[str] | None = None,
) -> TextEncoder:
    """Make an encoder of a function from texts to vectors.

    The function takes n texts and gives vectors of shape (n, dimensions), of any length but 0: they are divided by it.
    The name is what results call it; the revision is its version, without which a cache (as in `load_encoder`) is
    refused (`InvalidInputError`).
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
        vectors = _check_vectors(self._function(texts), texts, self.name)
        return _unit_vectors(vectors, texts, self.name)


class Embeddings:
    """Texts, in any order and with repetitions, and their vectors, each text encoded once.

    An encoder that does not give one finite unit vector a text is a `BackendError`.
    """

    def __init__(self, encoder: TextEncoder, texts: Iterable[str]) -> None:
        distinct = list(dict.fromkeys(texts))
        self._rows = {text: row for row, text in enumerate(distinct)}
        self._vectors = _encoded(encoder, distinct) if distinct else np.empty((0, 0), dtype=np.float32)

    def __len__(self) -> int:
        return len(self._rows)

    def of(self, texts: Sequence[str]) -> Vectors:
        """Return the vectors of texts that were given, shape (n, dimensions), in their order and with repetitions."""
        return self._vectors[[self._rows[text] for text in texts]]


def embed(encoder: TextEncoder, texts: Iterable[str]) -> Embeddings:
    """Return `Embeddings` of texts; an encoder that fails, or gives no finite unit vectors, is a `BackendError`."""
    return Embeddings(encoder, texts)


UNIT_TOLERANCE = 1e-3
"""A vector this far from length 1 is no unit vector; half precision leaves about 5e-4."""

Vectors = npt.NDArray[np.float32]


def _check_vectors(given: npt.ArrayLike, texts: Sequence[str], name: str) -> Vectors:
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


def _unit_vectors(vectors: Vectors, texts: Sequence[str], name: str) -> Vectors:
    """Return vectors divided by their lengths."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    if not lengths.all():
        text = texts[int(np.argmin(lengths))]
        raise BackendError(f"the encoder {name!r} gives a vector of zeros for {text!r}; it has no direction to compare")
    return np.asarray(vectors / lengths, dtype=np.float32)


def _encoded(encoder: TextEncoder, texts: Sequence[str]) -> Vectors:
    """Return the vectors of texts, held to length 1."""
    vectors = _check_vectors(encoder.encode(texts), texts, encoder.name)
    lengths = np.linalg.norm(vectors, axis=1)
    wrong = np.flatnonzero(np.abs(lengths - 1) > UNIT_TOLERANCE)
    if len(wrong):
        text, length = texts[wrong[0]], lengths[wrong[0]]
        raise BackendError(
            f"the encoder {encoder.name!r} must give unit vectors, but that of {text!r} has length {length:.4g}; "
            "as_encoder divides by it"
        )
    return vectors


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
        keys = {text: {"encoder": self.name, "revision": self.revision, "text": text} for text in texts}
        stored = {text: self._store.get(key) for text, key in keys.items()}
        known = {text: np.frombuffer(content, _LITTLE_ENDIAN) for text, content in stored.items() if content}
        missing = [text for text, content in stored.items() if not content]
        if missing:
            for text, vector in zip(missing, _encoded(self._encoder, missing), strict=True):
                self._store.put(keys[text], vector.astype(_LITTLE_ENDIAN).tobytes())
                known[text] = vector
        return np.stack([known[text] for text in texts]).astype(np.float32) if texts else self._encoder.encode([])


PACKAGE = "sentence_transformers"
MODULES = "modules.json"  # says how tokens become one vector
BATCH = 64
_ADVICE = "'char-ngrams' needs no weights"


class SentenceEncoder:
    """A sentence-transformers model in single precision, pooled as its own configuration says, without a prompt."""

    def __init__(self, model: Any, name: str, revision: str) -> None:
        self._model, self.name, self.revision = model, name, revision

    @property
    def device(self) -> str:
        """Where it computes, as ``"cpu"`` or ``"cuda:0"``."""
        return str(self._model.device)

    def encode(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Return unit vectors, shape (n, dimensions), float32, whether the model makes them so or not."""
        if not texts:
            return np.empty((0, 0), dtype=np.float32)
        try:
            with one_thread():
                vectors = self._model.encode(
                    list(texts), prompt="", batch_size=BATCH, show_progress_bar=False, convert_to_numpy=True
                )
        except RuntimeError as error:
            raise BackendError(f"the encoder {self.name!r} failed on {len(texts)} texts: {error}") from error
        checked = _check_vectors(vectors, texts, self.name)
        # what a model has divided already keeps its last bit
        is_unit = np.abs(np.linalg.norm(checked, axis=1) - 1) <= UNIT_TOLERANCE
        return checked if is_unit.all() else _unit_vectors(checked, texts, self.name)


@contextlib.contextmanager
def _loading(name: str) -> Iterator[None]:
    """Turn what goes wrong within into a `ModelUnavailableError`, and keep the library's bars off stderr."""
    from safetensors import SafetensorError
    from transformers.utils import logging

    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    except ModelUnavailableError:
        raise
    except (OSError, ValueError, RuntimeError, KeyError, ImportError, SafetensorError) as error:
        reason = str(error) or type(error).__name__
        if "trust_remote_code" in str(error):
            reason = "it runs code of its own, which needs trust_remote_code=True; read that code first"
        raise unavailable(name, reason, _ADVICE) from error
    finally:
        if shown and os.environ.get("HF_HUB_DISABLE_PROGRESS_BARS") != "1":
            logging.enable_progress_bar()


SIZES = (1, 2, 3)
DIMENSIONS = 2048
VERSION = "1"  # goes up whenever a vector changes
_START, _END = "\x02", "\x03"  # no text in print holds them, so that the ends of a word count as letters
_KEPT_HASHES = 1 << 18


class CharNgrams:
    """Unit vectors of hashed character 1-, 2- and 3-grams, the same on every machine and in every process."""

    # It sees spelling, not meaning: 悲伤 and 伤感 are alike because of 伤, 快乐 and 开心 are not. It is there for
    # demos, for tests of everything around an encoder, and as a floor under learned ones.
    #
    # A text is stripped after NFKC normalisation and case-folded, and gets a mark at each end, which 2- and 3-grams may
    # hold. Each n-gram is hashed by BLAKE2b to one of 2048 places and a sign; the counts are divided by their length.
    # Texts without a common n-gram have a cosine near 0, give or take collisions, and below 0 at times.

    name = "char-ngrams"
    revision = VERSION

    def encode(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Return unit vectors, shape (n, 2048), float32."""
        vectors = np.zeros((len(texts), DIMENSIONS))
        for row, text in zip(vectors, texts, strict=True):
            letters = unicodedata.normalize("NFKC", text).strip().casefold()
            for size in SIZES:
                within = letters if size == 1 else f"{_START}{letters}{_END}"
                for start in range(len(within) - size + 1):
                    place, sign = _hashed(within[start : start + size])
                    row[place] += sign
            if not row.any():  # all n-grams fell on one another with opposite signs
                row[0] = 1.0
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        return vectors.astype(np.float32)


@functools.lru_cache(maxsize=_KEPT_HASHES)
def _hashed(ngram: str) -> tuple[int, int]:
    digest = hashlib.blake2b(ngram.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    number = int.from_bytes(digest, "big")
    return (number >> 1) % DIMENSIONS, 1 if number & 1 else -1
