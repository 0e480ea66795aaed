"""Metre: whether the bars of a recording have three beats or four."""

from __future__ import annotations

from typing import Final

import numpy as np

from music_evals.annotations import Beats, Chroma

__all__ = ["METRES", "beats_of_a_bar"]

METRES: Final = (3, 4)
"""What can be told apart; bars of two beats count as half of four, bars of six as two of three."""

BARS: Final = 4  # lags of one to so many bars are looked at
FEWEST_BEATS: Final = 24


def beats_of_a_bar(beats: Beats, chroma: Chroma) -> float:
    """Return the beats of a bar, 3 or 4: after how many the harmony is most like itself; NaN below 24 beats.

    Each beat has the mean of its chroma, less the mean of all. The likeness at a lag is the mean cosine of two beats so
    far apart; a metre has that of the lags of one to four bars, less that of the lags between.
    """
    if len(beats.times_sec) < FEWEST_BEATS:
        return float("nan")
    edges = np.clip((beats.times_sec / chroma.hop_sec).round().astype(int), 0, chroma.frames.shape[1])
    sums = np.concatenate([np.zeros((12, 1)), np.cumsum(chroma.frames, axis=1, dtype=np.float64)], axis=1)
    means = np.diff(sums[:, edges], axis=1) / np.maximum(np.diff(edges), 1)
    means -= means.mean(axis=1, keepdims=True)
    lengths = np.linalg.norm(means, axis=0)
    unit = means / np.where(lengths > 0, lengths, 1)
    lags = np.arange(1, BARS * max(METRES) + 1)
    likeness = np.array([np.mean(np.sum(unit[:, lag:] * unit[:, :-lag], axis=0)) for lag in lags])
    contrasts = []
    for metre in METRES:
        near = likeness[: BARS * metre]
        on_bars = lags[: BARS * metre] % metre == 0
        contrasts.append(near[on_bars].mean() - near[~on_bars].mean())
    return float(METRES[int(np.argmax(contrasts))])
