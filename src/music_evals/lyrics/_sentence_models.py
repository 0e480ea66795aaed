"""Text encoders through sentence-transformers (extra ``text``): a Hub id at one commit, or a folder.

A model that is not there is an error that says how to get it; nothing else is ever taken in its place.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from music_evals.errors import BackendError, MissingBackendError, ModelUnavailableError
from music_evals.lyrics._vectors import UNIT_TOLERANCE, check_vectors, unit_vectors
from music_evals.lyrics.model_files import choose_device, find_model, unavailable
from music_evals.numerics import one_thread

__all__ = ["SentenceEncoder", "load_sentence_encoder"]

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
        found = check_vectors(vectors, texts, self.name)
        # what a model has divided already keeps its last bit
        is_unit = np.abs(np.linalg.norm(found, axis=1) - 1) <= UNIT_TOLERANCE
        return found if is_unit.all() else unit_vectors(found, texts, self.name)


def load_sentence_encoder(
    name: str, *, revision: str | None = None, device: str | None = None, trust_remote_code: bool = False
) -> SentenceEncoder:
    """Load a sentence-transformers model."""
    if importlib.util.find_spec(PACKAGE) is None:
        raise MissingBackendError("sentence-transformers", "text", "an encoder of texts")
    place = find_model(name, revision, MODULES, advice=_ADVICE)  # before the library, which takes seconds to import
    chosen = choose_device(device)
    library = importlib.import_module(PACKAGE)
    with _named(name), _quiet():
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
    return SentenceEncoder(model.float().eval(), name, place.identity)


@contextlib.contextmanager
def _named(name: str) -> Iterator[None]:
    """Turn what goes wrong within into a `ModelUnavailableError`."""
    from safetensors import SafetensorError

    try:
        yield
    except ModelUnavailableError:
        raise
    except (OSError, ValueError, RuntimeError, KeyError, ImportError, SafetensorError) as error:
        reason = str(error) or type(error).__name__
        if "trust_remote_code" in str(error):
            reason = "it runs code of its own, which needs trust_remote_code=True; read that code first"
        raise unavailable(name, reason, _ADVICE) from error


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep the library's bars off stderr; whoever runs us draws their own."""
    from transformers.utils import logging

    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown and os.environ.get("HF_HUB_DISABLE_PROGRESS_BARS") != "1":
            logging.enable_progress_bar()
