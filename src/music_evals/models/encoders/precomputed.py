"""Features that were made elsewhere, one safetensors file a song: how they are written and read.

Jukebox is no longer part of transformers; its features take this way, and those of any other encoder can.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from music_evals.errors import InvalidInputError, NoDataError, UnreadableFileError
from music_evals.files import check_no_pointer_in, write_atomically
from music_evals.models.encoders.audio import Extraction, Feature, Source

__all__ = ["FEATURES_SUFFIX", "JUKEBOX_SIZE", "PrecomputedFeatures", "read_features", "write_features"]

JUKEBOX_SIZE: Final = 4800  # numbers in a vector of Jukebox's prior

FEATURES_SUFFIX: Final = ".safetensors"
"""Ending of the files."""

_VERSION = 1  # of the numbers; goes up whenever they change


class PrecomputedFeatures(Extraction):
    """Features that were made elsewhere: one safetensors file a song; see `write_features` for the format.

    Parameters
    ----------
    name
        Of the encoder that made them.
    size
        Length of the vectors.
    """

    def __init__(self, name: str, size: int) -> None:
        self.name, self.size = name, size
        self.about: Mapping[str, Any] = {"name": name, "size": size, "version": _VERSION}

    def features(self, source: Source) -> Feature:
        """Return the vector of a song, as `read_features` does: the mean over time where the file holds frames.

        The source is the file, or a path that has it beside it under the same name with the ending `FEATURES_SUFFIX`.
        """
        if not isinstance(source, str | os.PathLike):
            raise InvalidInputError(
                f"{self.name} features are read from files; pass a path, not {type(source).__name__}"
            )
        return read_features(Path(source).with_suffix(FEATURES_SUFFIX), size=self.size)


def write_features(
    folder: str | os.PathLike[str], song_id: str, features: npt.ArrayLike, *, sample_rate: int, layer: int
) -> Path:
    """Write features that were made elsewhere, in the form that `read_features` takes; return the path.

    The file is ``<folder>/<song id>.safetensors``. Its tensor ``features`` is float32, the vector itself, shape
    (size,), or frames, shape (frames, size), of which the mean is taken. Its metadata are three texts: ``song_id``,
    ``sample_rate`` (Hz, of the recording as the network read it) and ``layer``.

    Features of another shape, or not finite, raise `InvalidInputError`; a folder that is not there or cannot be written
    to raises `OutputError`.
    """
    from safetensors.numpy import save

    array = np.ascontiguousarray(features, dtype=np.float32)
    if array.ndim not in {1, 2} or not array.size or not np.isfinite(array).all():
        raise InvalidInputError(f"expected finite features of shape (size,) or (frames, size), got shape {array.shape}")
    about = {"song_id": song_id, "sample_rate": str(sample_rate), "layer": str(layer)}
    return write_atomically(Path(folder) / f"{song_id}{FEATURES_SUFFIX}", save({"features": array}, metadata=about))


def read_features(path: str | os.PathLike[str], *, size: int = JUKEBOX_SIZE) -> Feature:
    """Read features that were made elsewhere, float32, shape (size,): the mean over time.

    `write_features` documents the format; a file that is not there raises `NoDataError`. One that is no safetensors,
    cut, without the metadata, of another song than its name says, or of another shape raises `UnreadableFileError`.
    """
    from safetensors import SafetensorError, safe_open

    path = Path(path)
    if not path.is_file():
        raise NoDataError(
            f"{path}: no such file; features of a song lie in <song id>.safetensors (see models/music_tagger)"
        )
    check_no_pointer_in(path)
    try:
        with safe_open(path, framework="numpy") as file:
            about = file.metadata() or {}
            array = np.asarray(file.get_tensor("features"), dtype=np.float32)
    except (SafetensorError, OSError, ValueError, TypeError) as error:
        raise UnreadableFileError(
            f"{path}: not a file of features ({error}); write it with "
            "music_evals.models.encoders.precomputed.write_features"
        ) from error
    wrong = [name for name in ("song_id", "sample_rate", "layer") if name not in about]
    if wrong or about["song_id"] != path.stem:
        reason = f"lacks the metadata {', '.join(wrong)}" if wrong else f"holds the song {about['song_id']!r}"
        raise UnreadableFileError(f"{path}: {reason}; name the file after its song and write it with write_features")
    if array.ndim not in {1, 2} or array.shape[-1] != size or not array.size or not np.isfinite(array).all():
        raise UnreadableFileError(
            f"{path}: expected finite features of shape ({size},) or (frames, {size}), got {array.shape}"
        )
    return array if array.ndim == 1 else array.mean(axis=0, dtype=np.float64).astype(np.float32)
