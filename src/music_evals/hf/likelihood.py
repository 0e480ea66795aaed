"""Modules that score a model by the probability that it gives to the truth."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from music_evals.errors import InvalidInputError, NoDataError, UnsupportedTypeError
from music_evals.hf.module import GROUPS, INTERVALS, LoneModule, list_batch
from music_evals.hf.symbolic import CITATION, CODEBASE
from music_evals.metrics.likelihood import inpainting_nll
from music_evals.symbolic.encodings.items import describe, holds_only

LIKELIHOOD_INPUTS = f"""
Args:
    predictions: one row an item, in a list, tuple or array: the log-probability in nats, at most 0, that the model gave
        to the true token at each step. -inf is taken, and makes the score infinite. All rows have the same length.
{GROUPS}\
{INTERVALS}.
"""


class LikelihoodMetric(LoneModule):
    """Base of the modules that score a model by the probability that it gives to the truth.

    A prediction is a row of log-probabilities (nats), one a step; there is no reference to give: the truth is what the
    probabilities are of.
    """

    kind = "numbers"
    paper, authors_code, arguments = CITATION, CODEBASE, LIKELIHOOD_INPUTS
    columns: ClassVar = {"predictions": {"feature": {"dtype": "float64", "_type": "Value"}, "_type": "List"}}

    def add_batch(self, *, predictions: Any = None, references: Any = None, **inputs: Any) -> None:  # noqa: ARG002
        """Add rows of log-probabilities; references are not read.

        Raises
        ------
        UnsupportedTypeError
            A row is not a list, tuple or array of numbers.
        InvalidInputError
            A number above 0 or NaN, or an empty row. Nothing of the batch was added.
        """
        rows = list_batch("predictions", predictions)
        if not rows:
            raise NoDataError("predictions are empty; give at least one item")
        super().add_batch(predictions=[_log_probabilities(i, row) for i, row in enumerate(rows)], **inputs)


def read_log_probabilities(predictions: Sequence[Sequence[float]]) -> npt.NDArray[np.float64]:
    """Return the rows that a `LikelihoodMetric` keeps as one array of shape (n, steps).

    Raises
    ------
    InvalidInputError
        Rows of different length.
    """
    lengths = {len(row) for row in predictions}
    if len(lengths) > 1:
        raise InvalidInputError(
            f"every row needs one log-probability a step; got rows of {', '.join(map(str, sorted(lengths)))} steps"
        )
    return np.asarray(predictions, dtype=np.float64)


def _log_probabilities(index: int, row: Any) -> list[float]:
    is_array = isinstance(row, np.ndarray) and np.issubdtype(row.dtype, np.number) and row.ndim == 1
    if not is_array and not holds_only(row, float | int | np.number):
        raise UnsupportedTypeError(
            f"predictions[{index}] must be a list, tuple or 1-D array of log-probabilities, got {describe(row)}"
        )
    try:
        inpainting_nll(row)
    except InvalidInputError as error:
        raise InvalidInputError(f"predictions[{index}]: {error}") from error
    return [float(value) for value in row]
