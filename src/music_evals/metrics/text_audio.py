"""Whether an edit sounds like the text that was asked for, and how near it stays to its original, by an encoder.

From embeddings of both in one space (`protocols.TextAudioEncoder`), or from the layers of its audio side; numbers of
two encoders cannot be compared.

Conventions
-----------
- Vectors have shape (d,) and any length: only their directions count. A silent recording is a vector of zeros.
- Unchanged or silent, an edit went nowhere and has a direction of 0; a silent one is like no text and ranks last.
- What the original or the texts leave undefined is NaN, with an `UndefinedMetricWarning` that says why.

References
----------
Wu et al., "Large-scale contrastive language-audio pretraining", ICASSP 2023: the similarity. Gal et al.,
"StyleGAN-NADA", ACM ToG 2022, equation 2: the direction, there between images. Manor and Michaeli, "Zero-shot
unsupervised and text-based audio editing using DDPM inversion", ICML 2024, and its code at f324c19: LPAPS, after Zhang
et al., "The unreasonable effectiveness of deep features as a perceptual metric", CVPR 2018.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from music_evals.errors import InvalidInputError
from music_evals.metrics.arrays import FloatArray, undefined

__all__ = ["instruction_rank", "lpaps", "text_audio_similarity", "text_direction"]

ROUNDING: Final = 1e-5
"""Unit vectors of single precision that are nearer to each other than this are the same."""
EPSILON: Final = 1e-10  # what the published code of LPAPS adds to every norm


def text_audio_similarity(text: npt.ArrayLike, audio: npt.ArrayLike) -> float:
    """Cosine of the embeddings of a text and a recording, in [-1, 1], higher is better; 0 for silence."""
    return float(np.clip(_unit(text) @ _unit(audio), -1.0, 1.0))


def text_direction(
    source_text: npt.ArrayLike, target_text: npt.ArrayLike, original: npt.ArrayLike, edit: npt.ArrayLike
) -> float:
    """Cosine of the way an edit went, edit less original, with the way from the text of the original to the target.

    All four as unit vectors of shape (d,). In [-1, 1], higher is better, about 0 by chance. 0 where the edit is the
    original, or silent: it went nowhere. NaN where both texts are the same, or the original is silent.
    """
    wanted = _unit(target_text) - _unit(source_text)
    if np.linalg.norm(wanted) <= ROUNDING:
        return undefined("text_direction", "the text of the original says what the target says")
    if not np.any(original):
        return undefined("text_direction", "the original is silent")
    way = _unit(edit) - _unit(original)
    if not np.any(edit) or np.linalg.norm(way) <= ROUNDING:
        return 0.0
    return text_audio_similarity(wanted, way)


def instruction_rank(text: npt.ArrayLike, others: Sequence[npt.ArrayLike], audio: npt.ArrayLike) -> float:
    """Share of other instructions that a recording is less like than its own, in [0, 1]; higher is better.

    Of vectors of shape (d,), those of the others not zeros. 1 where its own comes first, 0.5 by chance, 0 for silence:
    what is as like as its own does not count. NaN without others.
    """
    texts = np.asarray([text, *others], np.float64)
    if len(texts) == 1:
        return undefined("instruction_rank", "there is no other instruction")
    # cosines but for the length of the audio's vector, which changes no order
    cosines = texts @ np.asarray(audio, np.float64) / np.linalg.norm(texts, axis=1)
    return float(np.mean(cosines[1:] < cosines[0]))


def lpaps(reference: Sequence[npt.ArrayLike], estimate: Sequence[npt.ArrayLike]) -> float:
    """Distance of two recordings in the layers of an audio encoder, as editing papers report it.

    A score of preservation, not of success. At least 0, lower is nearer to the original, 0 for the same recording, at
    most 4 for each layer; symmetric. Of each layer, the values of a channel over all positions are divided by their
    norm; the squared differences are summed over positions and averaged over channels; the layers are added up.

    Parameters
    ----------
    reference, estimate
        A matrix a layer, shape (positions, channels).

    Raises
    ------
    InvalidInputError
        Sides with other layers, or layers of other shapes.

    Notes
    -----
    LPIPS, which it is named after, divides by norms over channels, and has learned weights. The published code has not.
    """
    first, second = ([np.asarray(layer, np.float64) for layer in side] for side in (reference, estimate))
    shapes, others = ([layer.shape for layer in side] for side in (first, second))
    if shapes != others or not shapes or any(len(shape) != 2 for shape in shapes):
        raise InvalidInputError(f"expected equal layers of shape (positions, channels), got {shapes} and {others}")
    units = ((layer / (np.linalg.norm(layer, axis=0) + EPSILON) for layer in side) for side in (first, second))
    return float(sum(((layer - other) ** 2).sum(axis=0).mean() for layer, other in zip(*units, strict=True)))


def _unit(vector: npt.ArrayLike) -> FloatArray:
    """Return a vector divided by its length; zeros stay zeros."""
    given = np.asarray(vector, np.float64)
    length = np.linalg.norm(given)
    return given / length if length else given
