"""Pooled features in files, so that a recording is encoded once: one safetensors file a recording and encoder.

A file is written whole or not at all, and says for which recording, encoder and parameters it stands. One that is
damaged is an error: it is never used, and never silently replaced.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from music_evals.errors import CorruptCacheError, OutputError
from music_evals.files import write_atomically

__all__ = ["feature_path", "read_feature", "write_feature"]

Feature = npt.NDArray[np.float32]
_TENSOR = "features"


def feature_path(folder: Path, key: Mapping[str, Any]) -> Path:
    """Return where the feature of a key lies: ``<folder>/<2 digits>/<digest>.safetensors``."""
    digest = hashlib.sha256(_text(key).encode()).hexdigest()
    return folder / digest[:2] / f"{digest}.safetensors"


def _text(key: Mapping[str, Any]) -> str:
    return json.dumps(key, sort_keys=True, ensure_ascii=False)


def _checksum(feature: Feature) -> str:
    return hashlib.sha256(np.ascontiguousarray(feature, dtype="<f4").tobytes()).hexdigest()


def read_feature(path: Path, key: Mapping[str, Any]) -> Feature | None:
    """Return a stored feature, shape (size,), or None where there is none.

    Raises
    ------
    CorruptCacheError
        The file was cut or damaged, or stands for something else.

    """
    from safetensors import SafetensorError, safe_open

    if not path.is_file():
        return None
    try:
        with safe_open(path, framework="numpy") as file:
            about = file.metadata() or {}
            feature: Feature = file.get_tensor(_TENSOR)
        sound = about.get("key") == _text(key) and about.get("sha256") == _checksum(feature)
    except (SafetensorError, OSError, KeyError, ValueError) as error:
        msg = f"{path}: a stored feature that is cut or damaged ({error}); delete it, and it is worked out again"
        raise CorruptCacheError(msg) from error
    if not sound:
        msg = f"{path}: a stored feature that is damaged or of another recording; delete it, it is worked out again"
        raise CorruptCacheError(msg)
    return feature


def write_feature(path: Path, key: Mapping[str, Any], feature: Feature) -> None:
    """Store a feature whole.

    Raises
    ------
    OutputError
        The folder cannot be written to, or is full.

    """
    from safetensors.numpy import save

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        msg = f"{path.parent}: cannot be made ({error.strerror}); pass another cache folder"
        raise OutputError(msg) from error
    write_atomically(path, save({_TENSOR: feature}, metadata={"key": _text(key), "sha256": _checksum(feature)}))
