"""A logistic regression that tells two corpora apart by features that a reader can name.

It is a measure of likeness to one corpus as against another, and of nothing else: what is unlike both is still given to
one of them, and a feature that it does not read plays no part. How far it can be trusted is a matter of held-out pieces
of both corpora (``benchmarks/style_fidelity``).

The loss is the mean negative log-likelihood, both classes weighted alike, plus half of `l2` times the squared length of
the weights of standardised features.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Final, Self

import numpy as np
import numpy.typing as npt

from music_evals.errors import InvalidInputError, NoDataError, PairCountError

__all__ = ["L2_GRID", "StyleClassifier", "choose_style_classifier", "fit_style_classifier"]

L2_GRID: Final = (0.0001, 0.001, 0.01, 0.1, 1.0)
"""Strengths that are tried on the validation split."""

Floats = npt.NDArray[np.float64]


@dataclasses.dataclass(frozen=True, eq=False)
class StyleClassifier:
    """A fitted logistic regression.

    Parameters
    ----------
    styles
        The style of label 0 and that of label 1.
    features
        Names of the features, in order.
    mean, scale
        Of each feature of the training data, shape (features,); what is constant there has the scale 1.
    weights
        Of the standardised features, shape (features,): above 0 speaks for the second style.
    bias
        Log-odds of the mean.
    l2
        Strength of the penalty.

    Raises
    ------
    InvalidInputError
        Shapes that do not agree, numbers that are not finite, a scale that is not above 0, or one style twice.
    """

    styles: tuple[str, str]
    features: tuple[str, ...]
    mean: Floats
    scale: Floats
    weights: Floats
    bias: float
    l2: float

    def __post_init__(self) -> None:
        columns = (self.mean, self.scale, self.weights)
        if len(self.styles) != 2 or len(set(self.styles)) != 2:
            raise InvalidInputError(f"a classifier tells two different styles apart, got {', '.join(self.styles)}")
        if any(column.shape != (len(self.features),) for column in columns):
            raise InvalidInputError(f"mean, scale and weights must have one number a feature, {len(self.features)}")
        if not all(np.isfinite(column).all() for column in (*columns, self.bias)) or not (self.scale > 0).all():
            raise InvalidInputError("mean, scale, weights and bias must be finite, and scale above 0; fit it again")

    def probabilities(self, features: npt.ArrayLike) -> Floats:
        """Return how likely each row is of the second style rather than of the first, shape (n,).

        Parameters
        ----------
        features
            Shape (n, features); a row with NaN, as of silence, has the probability NaN.

        Raises
        ------
        InvalidInputError
            Another number of features.
        """
        rows = np.asarray(features, dtype=np.float64)
        if rows.ndim != 2 or rows.shape[1] != len(self.features):
            raise InvalidInputError(f"expected features of shape (n, {len(self.features)}), got {rows.shape}")
        odds = ((rows - self.mean) / self.scale * self.weights).sum(axis=1) + self.bias
        return _logistic(odds)

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON values; the inverse of `from_dict`."""
        arrays = {name: getattr(self, name).tolist() for name in ("mean", "scale", "weights")}
        return {
            "styles": list(self.styles), "features": list(self.features), **arrays, "bias": self.bias, "l2": self.l2
        }  # fmt: skip

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Return what `to_dict` gave.

        Raises
        ------
        InvalidInputError
            A value is missing, of another type, or contradicts the others.
        """
        try:
            mean, scale, weights = (np.array(values[name], dtype=np.float64) for name in ("mean", "scale", "weights"))
            styles, features = tuple(values["styles"]), tuple(values["features"])
            return cls(styles, features, mean, scale, weights, float(values["bias"]), float(values["l2"]))
        except (KeyError, TypeError, ValueError) as error:
            raise InvalidInputError(f"these values are no style classifier: {error}; fit it again") from error


def fit_style_classifier(
    features: npt.ArrayLike, labels: npt.ArrayLike, *, names: Sequence[str], styles: tuple[str, str], l2: float
) -> StyleClassifier:
    """Fit the classifier; equal input gives equal weights, and the order of rows plays no part but in rounding.

    Parameters
    ----------
    features
        Shape (n, features); rows with NaN, as of silence, are left out.
    labels
        0 for the first style, 1 for the second, shape (n,).
    names, styles
        Of the features and of the labels.
    l2
        Strength of the penalty, above 0.

    Raises
    ------
    PairCountError
        Not one label a row.
    NoDataError
        A style without rows.
    InvalidInputError
        Labels other than 0 and 1, or a penalty that is not above 0.
    """
    from scipy.optimize import minimize

    rows, truth = _check(features, labels)
    if not l2 > 0:
        raise InvalidInputError(f"l2 must be above 0, got {l2}: styles that a feature separates have no other optimum")
    # features of mean 0 and deviation 1; one that does not vary says nothing
    mean, deviation = rows.mean(axis=0), rows.std(axis=0)
    scale = np.where(deviation > 1e-12, deviation, 1.0)
    standard = (rows - mean) / scale
    # both styles weigh the same, however many rows they have
    share = np.where(truth == 1, 0.5 / truth.sum(), 0.5 / (1 - truth).sum())

    def loss(parameters: Floats) -> tuple[float, Floats]:
        weights, bias = parameters[:-1], parameters[-1]
        odds = standard @ weights + bias
        # the weighted log-loss of a logistic regression with an L2 penalty, and its gradient
        value = (share * (np.logaddexp(0, odds) - truth * odds)).sum() + l2 / 2 * weights @ weights
        slope = share * (_logistic(odds) - truth)
        return float(value), np.append(slope @ standard + l2 * weights, slope.sum())

    optimum = minimize(
        loss, np.zeros(rows.shape[1] + 1), jac=True, method="L-BFGS-B", options={"maxiter": 2000, "ftol": 1e-12}
    )
    return StyleClassifier(styles, tuple(names), mean, scale, optimum.x[:-1], float(optimum.x[-1]), l2)


def choose_style_classifier(
    train: tuple[npt.ArrayLike, npt.ArrayLike],
    validation: tuple[npt.ArrayLike, npt.ArrayLike],
    *,
    names: Sequence[str],
    styles: tuple[str, str],
    grid: Sequence[float] = L2_GRID,
) -> StyleClassifier:
    """Fit one classifier a penalty, and return the one with the least balanced log-loss on the validation rows.

    Parameters and errors are those of `fit_style_classifier`; of equals the stronger penalty is taken.
    """
    rows, truth = _check(*validation)

    def log_loss(fitted: StyleClassifier) -> float:
        of_truth = np.where(truth == 1, fitted.probabilities(rows), 1 - fitted.probabilities(rows))
        nats = -np.log(np.maximum(of_truth, 1e-300))  # a probability of 0 would make all others irrelevant
        return float(np.mean([nats[truth == label].mean() for label in (0, 1)]))

    fitted = [fit_style_classifier(*train, names=names, styles=styles, l2=l2) for l2 in sorted(grid, reverse=True)]
    return min(fitted, key=log_loss)


def _check(features: npt.ArrayLike, labels: npt.ArrayLike) -> tuple[Floats, npt.NDArray[np.int64]]:
    rows, truth = np.asarray(features, dtype=np.float64), np.asarray(labels)
    if rows.ndim != 2 or truth.shape != rows.shape[:1]:
        raise PairCountError(f"expected features (n, features) and one label a row, got {rows.shape}, {truth.shape}")
    if not np.isin(truth, (0, 1)).all():
        raise InvalidInputError("labels must be 0 for the first style and 1 for the second")
    is_defined = ~np.isnan(rows).any(axis=1)
    rows, truth = rows[is_defined], truth[is_defined].astype(np.int64)
    if set(truth.tolist()) != {0, 1}:
        raise NoDataError("each of the two styles needs at least one stretch that sounds; give pieces of both")
    return rows, truth


def _logistic(odds: Floats) -> Floats:
    from scipy.special import expit

    probabilities: Floats = expit(odds)
    return probabilities
