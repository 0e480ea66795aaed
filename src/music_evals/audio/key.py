"""Key: tonic and mode of a whole recording."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from music_evals.annotations import Key
from music_evals.audio._filters import unit_columns
from music_evals.audio.backends import UndefinedFeature
from music_evals.audio.chroma import accompaniment_chroma
from music_evals.audio.io import Audio

__all__ = ["AARDEN_ESSEN", "estimate_key", "key_correlations"]

AARDEN_ESSEN: Final = {
    "major": (17.7661, 0.145624, 14.9265, 0.160186, 19.8049, 11.3587, 0.291248, 22.062, 0.145624, 8.15494, 0.232998,
              4.95122),
    "minor": (18.2648, 0.737619, 14.0499, 16.8599, 0.702494, 14.4362, 0.702494, 18.6161, 4.56621, 1.93186, 7.37619,
              1.75623),
}  # fmt: skip
"""How often each degree occurs in melodies of one mode, in percent, tonic first: B. Aarden, "Dynamic melodic
expectancy", dissertation, Ohio State University 2003, counted on the Essen Folksong Collection; numbers as in Humdrum's
`keycor`."""

# Measured on pieces whose key is known, and on sounds without one. Drums alone correlate up to 0.46, music 0.72 and
# more, even under pink noise of its own level. Noise is flat, and may correlate by chance up to 0.75; but its pitch
# classes spread by at most 0.015 of their mean from 5 s on and 0.026 in 2.5 s, those of music by 0.032 and more under
# such noise and 0.18 without.
MIN_CORRELATION: Final = 0.6
MIN_SPREAD: Final = 0.028


def estimate_key(audio: Audio) -> Key:
    """Estimate the key: the profile that the mean chroma correlates best with, of twelve tonics and two modes.

    The chroma is that of the chords (`accompaniment_chroma`), each frame of length 1. It finds the mode more often than
    a chroma of plain magnitudes does, in which a loud bass or melody drowns the thirds.

    Parameters
    ----------
    audio
        The recording.

    Returns
    -------
    Key
        Tonic and mode.

    Raises
    ------
    UndefinedFeature
        No key: silence, noise, or all pitch classes alike.

    References
    ----------
    C. L. Krumhansl: "Cognitive Foundations of Musical Pitch", Oxford 1990, chapter 4 (the method).

    """
    weights = unit_columns(accompaniment_chroma(audio)).mean(axis=1, dtype=np.float64)
    if weights.std() <= MIN_SPREAD * weights.mean():
        raise UndefinedFeature("no key: the pitch classes are all alike")
    correlations = key_correlations(weights)
    mode, tonic = np.unravel_index(int(correlations.argmax()), correlations.shape)
    if correlations[mode, tonic] < MIN_CORRELATION:
        raise UndefinedFeature(f"no key: no profile correlates with the mean chroma by {MIN_CORRELATION} or more")
    return Key(int(tonic), ("major", "minor")[mode])


def key_correlations(weights: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Correlate the weights of pitch classes with the profiles of all keys.

    Parameters
    ----------
    weights
        Shape (12,), pitch class 0 = C first, >= 0.

    Returns
    -------
    ndarray
        Pearson correlations, shape (2, 12): major and minor, by tonic. All 0 if the weights are all alike.

    """
    classes = np.asarray(weights, np.float64)
    centred = classes - classes.mean()
    length = np.sqrt(centred @ centred)
    if length <= 1e-9 * float(np.abs(classes).max()):
        return np.zeros((2, 12))
    rows = []
    for mode in ("major", "minor"):
        profile = np.array(AARDEN_ESSEN[mode])
        profile -= profile.mean()
        turned = np.stack([np.roll(profile, tonic) for tonic in range(12)])
        rows.append(turned @ centred / (np.sqrt(profile @ profile) * length))
    return np.stack(rows)
