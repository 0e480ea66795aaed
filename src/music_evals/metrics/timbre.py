"""Timbre that an edit preserved: spectral shapes, whenever they sound.

`timbre_similarity` is our own; the other two are of the package `musecpeval`, under its variant only.

Package: github.com/Yashvishe13/MuseCPEval at 0121201. Gaussians: Mandel, Ellis, "Song-level features", ISMIR 2005.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from music_evals.annotations import BandFrames, TimbreFrames
from music_evals.metrics.arrays import MUSECPEVAL, RELEASE_EPSILON, check_variant, cosine_of_means, undefined

__all__ = ["mean_mfcc_cosine", "mfcc_skl_similarity", "timbre_similarity"]

# Of `timbre_similarity`. Chosen on renders and recordings of the development halves of the validity benchmark.
QUANTILES: Final = (0.1, 0.5, 0.9)  # of each row over the frames
SOUNDING_DB: Final = 40.0  # frames that lie further below the loudest are left out
SHARE_FLOOR_DB: Final = -50.0  # bands that hold less of a frame's power are taken for this
MAX_SHIFT: Final = 6  # semitones, either way
HALVED_DB: Final = 2.0  # the difference at which the similarity is one half
STEEPNESS: Final = 4  # small differences, as other notes on one instrument make, count for little

# Of `mfcc_skl_similarity`.
SCALE: Final = 50.0  # the divergence at which the similarity is one half
RIDGE: Final = 1e-6  # of the mean variance, which is added to the variances


def timbre_similarity(reference: BandFrames, estimate: BandFrames, *, variant: str = "corrected") -> float:
    """How alike two recordings sound, whatever they play: spectral shapes and tones within bands, in any order.

    Of each frame the level of every band is taken against the level of the frame, and beside it how far tones stand out
    of the band. The spread of both over the frames that sound, as quantiles of 10, 50 and 90 %, is compared band by
    band, with the estimate moved by up to 6 semitones either way to where it fits best. With a mean absolute difference
    of D dB the similarity is 2 ** -(D / 2 dB) ** 4.

    In [0, 1], higher is better, symmetric, exactly 1 for identical frames. The order of frames, their number, the level
    of the whole and a transposition of all that sounds do not matter. 0 where only the estimate has no frames;
    undefined (NaN) where the reference has none.

    Parameters
    ----------
    reference, estimate
        Bands over time, in dB.
    variant
        Checked only: neither paper nor code has it.

    Returns
    -------
    float
        Similarity.

    Raises
    ------
    UnknownNameError
        An unknown variant.

    Examples
    --------
    >>> levels = np.repeat(np.linspace(0.0, -40.0, 96), 10).reshape(96, 10)
    >>> bright, flat = BandFrames(np.vstack([levels, levels * 0]), 0.1), BandFrames(np.zeros((192, 10)), 0.1)
    >>> timbre_similarity(bright, bright), timbre_similarity(bright, flat) < 0.01
    (1.0, True)
    """
    check_variant(variant)
    if not reference.frames.shape[1]:
        return undefined("timbre_similarity", "the reference has no frames")
    if not estimate.frames.shape[1]:
        return 0.0
    first, second = _spread(reference), _spread(estimate)
    n = first.shape[-1]
    differences = []
    for shift in range(-MAX_SHIFT, MAX_SHIFT + 1):
        # what band b of the reference holds, band b + shift of the estimate does
        left, right = max(0, -shift), max(0, shift)
        moved = second[..., right : n - left] - first[..., left : n - right]
        differences.append(float(np.abs(moved).mean()))
    return float(2.0 ** -((min(differences) / HALVED_DB) ** STEEPNESS))


def _spread(bands: BandFrames) -> npt.NDArray[np.float64]:
    """Return the quantiles of the bands' shares and of the prominence of tones, shape (3, 2, 96)."""
    levels, prominence = np.split(bands.frames.astype(np.float64), 2)
    of_frames = 10 * np.log10((10 ** (levels / 10)).sum(axis=0))
    sounding = of_frames >= of_frames.max() - SOUNDING_DB
    shares = np.maximum(levels - of_frames, SHARE_FLOOR_DB)
    spread: npt.NDArray[np.float64] = np.quantile(np.stack([shares, prominence])[..., sounding], QUANTILES, axis=-1)
    return spread


def mfcc_skl_similarity(reference: TimbreFrames, estimate: TimbreFrames, *, variant: str = MUSECPEVAL) -> float:
    """Nearness of two recordings as Gaussians of their frames: 1 / (1 + D / 50), D = KL(R || E) + KL(E || R).

    In [0, 1], higher is better, symmetric; 1 but for rounding for identical frames. 0 where a side has no more frames
    than features. Raises `UnknownNameError` for another variant.
    """
    check_variant(variant, (MUSECPEVAL,))
    first, second = reference.frames.T, estimate.frames.T
    if min(len(first), len(second)) <= first.shape[1]:
        return 0.0
    (mean, covariance, inverse), (other, covariance2, inverse2) = map(_gaussian, (first, second))
    # Of n features, with means d apart: 2 D = tr(S2⁻¹ S1) + tr(S1⁻¹ S2) + d' (S1⁻¹ + S2⁻¹) d - 2 n.
    # Logarithms of the determinants cancel in the sum of both directions.
    crossed = np.trace(inverse2 @ covariance) + np.trace(inverse @ covariance2)
    divergence = 0.5 * (crossed + (other - mean) @ (inverse + inverse2) @ (other - mean) - 2.0 * len(mean))
    return float(1.0 / (1.0 + max(divergence, 0.0) / SCALE)) if np.isfinite(divergence) else 0.0


def _gaussian(frames: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], ...]:
    """Return mean, covariance and its inverse of frames of shape (n, d)."""
    covariance = np.cov(frames, rowvar=False)
    covariance += RIDGE * (np.trace(covariance) / len(covariance) + RELEASE_EPSILON) * np.eye(len(covariance))
    return frames.mean(axis=0), covariance, np.linalg.inv(covariance)


def mean_mfcc_cosine(reference: TimbreFrames, estimate: TimbreFrames, *, variant: str = MUSECPEVAL) -> float:
    """Cosine of the mean frames, in [-1, 1], higher is better, symmetric; otherwise as `mfcc_skl_similarity`."""
    check_variant(variant, (MUSECPEVAL,))
    return cosine_of_means(reference.frames.T, estimate.frames.T)
