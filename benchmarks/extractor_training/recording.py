"""What happens to music on its way to a listener: room, compressor, saturation, and a lossy codec."""

from __future__ import annotations

import io

import numpy as np
import numpy.typing as npt
from benchmarks.extractor_training.timbres import colour

__all__ = ["compressed", "degrade", "through_codec"]

Rng = np.random.Generator
Samples = npt.NDArray[np.float32]

BLOCK = 256  # samples a compressor listens to at once
CODECS = (("MP3", "MPEG_LAYER_III"), ("OGG", "VORBIS"))


def degrade(samples: Samples, sample_rate: int, rng: Rng) -> Samples:
    """Return another recording of the same music: as long, at the same place, for the ear the same notes."""
    heard = colour(samples, sample_rate, rng)
    if rng.random() < 0.5:
        heard = compressed(heard, rng.uniform(2, 10), rng.uniform(0.02, 0.3), sample_rate)
    if rng.random() < 0.25:
        drive = rng.uniform(1, 4)
        heard = np.tanh(drive * heard / max(float(np.abs(heard).max()), 1e-9)).astype(np.float32)
    if rng.random() < 0.6:
        heard = through_codec(heard, sample_rate, *CODECS[rng.integers(len(CODECS))], float(rng.uniform(0.5, 0.99)))
    return heard


def compressed(samples: Samples, ratio: float, release_sec: float, sample_rate: int) -> Samples:
    """Return music whose level above its median is divided by a ratio; the level falls slowly in the compressor's ear.

    Parameters
    ----------
    samples
        Mono, shape (n,).
    ratio
        1 changes nothing.
    release_sec
        Time in which what the compressor hears falls by 8.7 dB.
    sample_rate
        Hz.

    """
    n_blocks = -(-len(samples) // BLOCK)
    blocks = np.pad(samples, (0, n_blocks * BLOCK - len(samples))).reshape(n_blocks, BLOCK)
    level = np.sqrt((blocks.astype(np.float64) ** 2).mean(axis=1))
    keep = np.exp(-BLOCK / (release_sec * sample_rate))
    for i in range(1, n_blocks):
        level[i] = max(level[i], keep * level[i - 1])
    threshold = float(np.median(level[level > 0])) if (level > 0).any() else 1.0
    gain = np.maximum(level / threshold, 1.0) ** (1 / ratio - 1)
    at = np.arange(len(samples)) / BLOCK
    louder: Samples = (samples * np.interp(at, np.arange(n_blocks) + 0.5, gain)).astype(np.float32)
    return louder


def through_codec(samples: Samples, sample_rate: int, container: str, subtype: str, strength: float) -> Samples:
    """Return samples after a lossy codec, as long as they were.

    Parameters
    ----------
    samples
        Mono, shape (n,).
    sample_rate
        Hz.
    container, subtype
        As soundfile names them.
    strength
        0 and up, below 1: how much is thrown away.

    """
    import soundfile

    peak = max(float(np.abs(samples).max(initial=0.0)), 1e-9)
    file = io.BytesIO()
    soundfile.write(
        file,
        samples * np.float32(0.9 / peak),
        sample_rate,
        format=container,
        subtype=subtype,
        compression_level=strength,
    )
    file.seek(0)
    heard, _ = soundfile.read(file, dtype="float32")
    kept: Samples = np.pad(heard, (0, max(0, len(samples) - len(heard))))[: len(samples)] * np.float32(peak / 0.9)
    return kept
