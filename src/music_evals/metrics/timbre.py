"""Timbre that an edit preserved: spectral shapes, whenever they sound; ``musecpeval-0.3`` only.

Package: github.com/Yashvishe13/MuseCPEval at 0121201. Gaussians: Mandel, Ellis, "Song-level features", ISMIR 2005.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from music_evals.annotations import TimbreFrames
from music_evals.metrics.arrays import MUSECPEVAL, RELEASE_EPSILON, check_variant, cosine_of_means

__all__ = ["mean_mfcc_cosine", "mfcc_skl_similarity"]

SCALE: Final = 50.0  # the divergence at which the similarity is one half
RIDGE: Final = 1e-6  # of the mean variance, which is added to the variances


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
