"""Recordings: decoding, the feature store, and one feature a file.

`io` decodes, `store` keeps features in files, `backends` lists the extractors by name, and `extraction` runs them.
`chroma`, `key`, `chords`, `beats`, `f0`, `melody`, `structure` and `segments` hold one feature each; those that need a
package of their own are in `optional` and `optional_f0`. `rendering` goes the other way, from a score to a recording.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from music_evals.audio.backends import BACKENDS, DEFAULT_BACKENDS, Backend, get_backend
    from music_evals.audio.extraction import extract, receipt
    from music_evals.audio.io import Audio, AudioLimits, AudioPolicy, load_audio
    from music_evals.audio.store import FeatureStore

_HOME = {
    "BACKENDS": "backends",
    "DEFAULT_BACKENDS": "backends",
    "Audio": "io",
    "AudioLimits": "io",
    "AudioPolicy": "io",
    "Backend": "backends",
    "FeatureStore": "store",
    "extract": "extraction",
    "get_backend": "backends",
    "load_audio": "io",
    "receipt": "extraction",
}

__all__ = [
    "BACKENDS",
    "DEFAULT_BACKENDS",
    "Audio",
    "AudioLimits",
    "AudioPolicy",
    "Backend",
    "FeatureStore",
    "extract",
    "get_backend",
    "load_audio",
    "receipt",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
    msg = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(msg)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
