"""Recordings: decoded once, mixed down, resampled and peak-normalised.

Every extractor takes an `Audio`. What was done to the file on the way is its `AudioPolicy`, which goes into every
result's receipt: scores are comparable only under one policy.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

__all__ = ["DEFAULT_POLICY", "SAMPLE_RATE", "Audio", "AudioPolicy"]

SAMPLE_RATE = 22050  # Hz; the rate that librosa, the official code and basic-pitch work at

Value = TypeVar("Value")


@dataclasses.dataclass(frozen=True)
class AudioPolicy:
    """What is done to every recording before a feature is extracted.

    Parameters
    ----------
    sample_rate
        Target rate in Hz.
    peak_normalise
        Scale the loudest sample to 1. Silence stays silent.
    silence_dbfs
        A recording whose peak lies below this, before it is normalised, is silent: none of its features is defined.

    """

    sample_rate: int = SAMPLE_RATE
    peak_normalise: bool = True
    silence_dbfs: float = -60.0


DEFAULT_POLICY = AudioPolicy()


@dataclasses.dataclass(frozen=True, eq=False)
class Audio:
    """One recording, ready for extraction.

    Parameters
    ----------
    samples
        float32, mono, shape (n,), within -1..1; must not be written to.
    sample_rate
        In Hz.
    policy
        How the samples came about.
    silent
        True if the recording was silent before it was normalised.

    """

    samples: npt.NDArray[np.float32]
    sample_rate: int = SAMPLE_RATE
    policy: AudioPolicy = DEFAULT_POLICY
    silent: bool = False
    _shared: dict[Any, Any] = dataclasses.field(default_factory=dict, repr=False)

    @property
    def duration_sec(self) -> float:
        """Length in seconds."""
        return len(self.samples) / self.sample_rate

    def share(self, key: str, compute: Callable[[], Value]) -> Value:
        """Return what several extractors need, such as a spectrogram: worked out at the first call, then kept."""
        if key not in self._shared:
            self._shared[key] = compute()
        value: Value = self._shared[key]
        return value

    @property
    def content_hash(self) -> str:
        """SHA-256 of samples and rate: the identity of the recording in the feature store."""
        return self.share("content_hash", self._hash)

    def _hash(self) -> str:
        digest = hashlib.sha256(f"{self.sample_rate}:{self.silent}:".encode())
        digest.update(np.ascontiguousarray(self.samples).data)
        return digest.hexdigest()
