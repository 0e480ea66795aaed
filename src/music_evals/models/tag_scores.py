"""How well a tagger finds the very tags: accuracy, recall and F1 as MuChin's released code counts them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

__all__ = ["TagScores", "tag_scores"]

_EPSILON = 1e-5  # of the released code, in every denominator


class TagScores(NamedTuple):
    """Means over songs, each 0..1, higher is better.

    Attributes
    ----------
    accuracy
        Share of outputs that are right, those that are rightly off included: near 1 for any tagger that says little.
    recall
        Share of the true tags that were found.
    f1
        Harmonic mean of precision and recall.

    """

    accuracy: float
    recall: float
    f1: float


def tag_scores(predicted: npt.NDArray[np.bool_], true: npt.NDArray[np.bool_]) -> TagScores:
    """Compare chosen outputs with targets, song by song, and take the mean over songs.

    Follows `F1_score` of the released code (`und_eval/models/mlp.py`): 1e-5 is added to each denominator, so that a
    song without true or without chosen tags scores 0, and a song whose outputs are all right scores 1 throughout. The
    choice is by threshold alone: the rule that gives every dimension a tag is not part of it.

    Parameters
    ----------
    predicted, true
        Bool, shape (songs, outputs); the outputs of one dimension.

    Returns
    -------
    TagScores
        NaN where there are no songs or no outputs.

    """
    if not true.size:
        return TagScores(np.nan, np.nan, np.nan)
    accuracy = (predicted == true).mean(1)
    hits = (predicted & true).sum(1)
    precision = hits / (predicted.sum(1) + _EPSILON)
    recall = hits / (true.sum(1) + _EPSILON)
    f1 = 2 * precision * recall / (precision + recall + _EPSILON)
    whole = accuracy == 1
    means = [np.where(whole, 1.0, values).mean() for values in (accuracy, recall, f1)]
    return TagScores(*(float(mean) for mean in means))
