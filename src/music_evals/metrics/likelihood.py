"""Likelihood of the true middle under a model."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from music_evals.errors import InvalidInputError
from music_evals.metrics.arrays import FloatArray

__all__ = ["inpainting_nll"]

# A log-softmax in single precision may end a little above 0.
_TOLERANCE = 1e-4


def inpainting_nll(log_probabilities: npt.ArrayLike) -> FloatArray | np.float64:
    """Mean negative log-likelihood of the true tokens, in nats a step.

    In [0, inf), lower is better; infinite where the model holds a true token for impossible. Models are comparable only
    if they predict the same tokens from the same conditions: a teacher-forced value is no rival of a free one.

    Parameters
    ----------
    log_probabilities
        Natural logarithms of the probability of the true token at each step of the middle, shape (n, steps) or
        (steps,), at most 0.

    Returns
    -------
    FloatArray or float
        Shape (n,), or one number for a single middle.

    Raises
    ------
    InvalidInputError
        NaN, values above 0 or another shape.

    Notes
    -----
    MUSIB, "NLL", there the validation loss as each model defines it. Hold tokens dominate it.

    Examples
    --------
    >>> inpainting_nll([-0.5, -1.5]).item()
    1.0
    """
    values = np.asarray(log_probabilities, dtype=np.float64)
    if values.ndim not in {1, 2} or not values.shape[-1]:
        raise InvalidInputError(f"expected log-probabilities of shape (n, steps) or (steps,), got {values.shape}")
    wrong = ~(values <= _TOLERANCE)
    if wrong.any():
        raise InvalidInputError(
            f"log-probabilities must be at most 0, got {values[wrong][0]}; give the natural logarithm of the "
            "probability of the true token at each step"
        )
    nll = -np.minimum(values, 0.0).mean(axis=-1) + 0.0  # + 0.0 turns -0 into 0
    return nll if values.ndim == 2 else np.float64(nll)
