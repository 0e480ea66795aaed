"""Key: tonic and mode of a whole recording."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from music_evals.annotations import Key
from music_evals.audio.backends import UndefinedFeature
from music_evals.audio.chroma import accompaniment_chroma, smoothed_chroma
from music_evals.audio.filters import unit_columns
from music_evals.audio.io import Audio
from music_evals.audio.spectra import SILENCE, sounding_frames, tuning

__all__ = ["AARDEN_ESSEN", "estimate_key", "estimate_key_krumhansl", "key_correlations"]

AARDEN_ESSEN: Final = {
    "major": (17.7661, 0.145624, 14.9265, 0.160186, 19.8049, 11.3587, 0.291248, 22.062, 0.145624, 8.15494, 0.232998,
              4.95122),
    "minor": (18.2648, 0.737619, 14.0499, 16.8599, 0.702494, 14.4362, 0.702494, 18.6161, 4.56621, 1.93186, 7.37619,
              1.75623),
}  # fmt: skip
"""How often each degree occurs in melodies of one mode, in percent, tonic first: B. Aarden, "Dynamic melodic
expectancy", dissertation, Ohio State University 2003, counted on the Essen Folksong Collection; numbers as in Humdrum's
`keycor`."""

KRUMHANSL: Final = {
    "major": (6.35, 2.23, 3.48, 2.33, 4.38, 4.09, 2.52, 5.19, 2.39, 3.66, 2.29, 2.88),
    "minor": (6.33, 2.68, 3.52, 5.38, 2.60, 3.53, 2.54, 4.75, 3.98, 2.69, 3.34, 3.17),
}
"""How well each degree fits a key to listeners: C. L. Krumhansl, E. J. Kessler, Psychological Review 89, 1982."""

# What decides the key. `spread` is the deviation of the mean pitch classes over their mean: how uneven they are in
# all; `clarity` the same within a frame, as a median: how much single pitches stand out while they sound. Measured on
# 130 excerpts of real recordings, on 32 loops of sampled drum kits and on noise of four colours:
#   noise                 spread up to .026, clarity up to .09, correlation up to .75
#   percussion alone      clarity up to .24, correlation above .6 with clarity up to .13 only, or from tuned drums
#   speech                clarity up to .29, correlation up to .37
#   music                 correlation .6 and more, or clarity .25 and more with a correlation above .37
MIN_SPREAD: Final = 0.028
MAX_SPREAD: Final = 1.3  # of one pitch alone 1.4 and more
MIN_CLARITY: Final = 0.13
MIN_CORRELATION: Final = 0.6
CLEAR: Final = 0.24
MIN_CORRELATION_IF_CLEAR: Final = 0.37


def estimate_key(audio: Audio) -> Key:
    """Estimate the key: the profile that the mean chroma correlates best with, of twelve tonics and two modes.

    The chroma is that of the chords (`accompaniment_chroma`), each frame of length 1. It finds the mode more often than
    a chroma of plain magnitudes does, in which a loud bass or melody drowns the thirds. Silence plays no part.

    Where single pitches stand out while they sound, a correlation of 0.37 is enough; where they do not, as under drums
    or noise, it must be 0.6, and without any of them there is no key. The confidence is the correlation of the key less
    that of the next best, which is most often the relative key or a fifth away.

    Where there is no key, `UndefinedFeature` is raised: silence, noise, percussion or speech alone, one pitch alone, a
    constant, or all pitch classes alike.

    References
    ----------
    C. L. Krumhansl: "Cognitive Foundations of Musical Pitch", Oxford 1990, chapter 4 (the method).
    """
    if audio.samples.std() <= SILENCE * np.abs(audio.samples).max(initial=0.0):
        raise UndefinedFeature("no key: nothing sounds")
    chroma = accompaniment_chroma(audio)[:, sounding_frames(audio)]
    weights = unit_columns(chroma).mean(axis=1, dtype=np.float64)
    spread = _spread(weights)
    clarity = float(np.median(_spread(chroma.astype(np.float64))))
    if spread <= MIN_SPREAD or clarity < MIN_CLARITY:
        raise UndefinedFeature("no key: no pitch stands out")
    if spread > MAX_SPREAD:
        raise UndefinedFeature("no key: one pitch alone")
    correlations = key_correlations(weights)
    needed = MIN_CORRELATION if clarity < CLEAR else MIN_CORRELATION_IF_CLEAR
    mode, tonic = np.unravel_index(int(correlations.argmax()), correlations.shape)
    if correlations[mode, tonic] < needed:
        raise UndefinedFeature(f"no key: no profile correlates with the mean chroma by {needed} or more")
    second, best = np.sort(correlations, axis=None)[-2:]
    return Key(int(tonic), ("major", "minor")[mode], float(best - second), tuning(audio))


def _spread(classes: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return standard deviation over mean of the pitch classes, along the first axis; 0 where all are 0."""
    mean = classes.mean(axis=0)
    spread: npt.NDArray[np.float64] = classes.std(axis=0) / np.where(mean > 0, mean, 1)
    return spread


def key_correlations(weights: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Correlate the weights of pitch classes, shape (12,), 0 = C first, >= 0, with the profiles of all keys.

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


def estimate_key_krumhansl(audio: Audio) -> Key:
    """Return the key of musecpeval 0.3.0: the profile of `KRUMHANSL` that correlates best with its mean chroma."""
    mean = smoothed_chroma(audio).frames.mean(axis=1)
    if not np.ptp(mean):
        raise UndefinedFeature("no key: all pitch classes alike")
    keys = [(tonic, mode) for tonic in range(12) for mode in KRUMHANSL]  # of equal ones the first
    correlations = [np.corrcoef(mean, np.roll(KRUMHANSL[mode], tonic))[0, 1] for tonic, mode in keys]
    return Key(*keys[int(np.argmax(correlations))])
