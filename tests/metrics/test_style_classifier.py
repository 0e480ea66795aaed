"""The classifier of two corpora: what it must find, what it must refuse."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from music_evals.errors import InvalidInputError, NoDataError, PairCountError
from music_evals.metrics.style_classifier import StyleClassifier, choose_style_classifier, fit_style_classifier

STYLES = ("calm", "wild")


def corpus(rng: np.random.Generator, n: int = 60) -> tuple[np.ndarray, np.ndarray]:
    """Rows whose first feature tells the styles, whose second tells nothing, and whose third is constant."""
    labels = np.arange(n) % 2
    return np.column_stack([rng.normal(2.0 * labels, 1.0), rng.normal(size=n), np.ones(n)]), labels


def fit(rows: np.ndarray, labels: np.ndarray, l2: float = 0.01) -> StyleClassifier:
    return fit_style_classifier(rows, labels, names=["pace", "noise", "one"], styles=STYLES, l2=l2)


def test_it_finds_the_feature_that_tells(rng: np.random.Generator) -> None:
    fitted = fit(*corpus(rng, 400))
    assert fitted.weights[0] > 5 * abs(fitted.weights[1])
    assert fitted.weights[2] == 0
    held_out, truth = corpus(np.random.default_rng(1), 2000)
    # two normal laws two deviations apart: the best rule is right in 84.1 % of cases
    assert np.mean((fitted.probabilities(held_out) > 0.5) == truth) == pytest.approx(0.841, abs=0.02)


def test_at_the_optimum_the_slope_is_zero(rng: np.random.Generator) -> None:
    """By hand: the mean weighted residual of each class is the same, for the bias is not penalised."""
    rows, labels = corpus(rng)
    fitted = fit(rows, labels)
    residual = fitted.probabilities(rows) - labels
    assert residual[labels == 0].mean() + residual[labels == 1].mean() == pytest.approx(0, abs=1e-4)
    standard = (rows - fitted.mean) / fitted.scale
    share = np.where(labels == 1, 0.5 / labels.sum(), 0.5 / (1 - labels).sum())
    assert (share * residual) @ standard + 0.01 * fitted.weights == pytest.approx(0, abs=1e-4)


def test_scale_and_order_of_the_input_play_no_part(rng: np.random.Generator) -> None:
    rows, labels = corpus(rng)
    one, other = fit(rows, labels), fit(rows * [1000, 0.01, 7] + [5, -3, 0], labels)
    assert other.probabilities(rows * [1000, 0.01, 7] + [5, -3, 0]) == pytest.approx(one.probabilities(rows), abs=1e-4)
    order = rng.permutation(len(rows))
    assert fit(rows[order], labels[order]).weights == pytest.approx(one.weights, abs=1e-4)


def test_swapped_styles_swap_the_probabilities(rng: np.random.Generator) -> None:
    rows, labels = corpus(rng)
    assert fit(rows, 1 - labels).probabilities(rows) == pytest.approx(
        1 - fit(rows, labels).probabilities(rows), abs=1e-4
    )


def test_a_stronger_penalty_is_less_sure(rng: np.random.Generator) -> None:
    rows, labels = corpus(rng)
    sure = [np.abs(fit(rows, labels, l2).probabilities(rows) - 0.5).mean() for l2 in (0.001, 0.1, 10.0)]
    assert sure == sorted(sure, reverse=True)


def test_the_penalty_is_chosen_on_validation(rng: np.random.Generator) -> None:
    """Ten rows and forty features of noise: only a strong penalty keeps it from learning the noise by heart."""
    rows, labels = rng.normal(size=(10, 40)), np.arange(10) % 2
    others = (rng.normal(size=(200, 40)), np.arange(200) % 2)
    names = [str(n) for n in range(40)]
    chosen = choose_style_classifier((rows, labels), others, names=names, styles=STYLES, grid=(0.0001, 10.0))
    assert chosen.l2 == 10.0


def test_silence_is_of_neither_style(rng: np.random.Generator) -> None:
    rows, labels = corpus(rng)
    with_silence = np.vstack([rows, np.full((1, 3), np.nan)])
    fitted = fit(with_silence, np.append(labels, 1))
    assert fitted.weights == pytest.approx(fit(rows, labels).weights)
    assert math.isnan(fitted.probabilities(with_silence)[-1])


def test_it_travels_as_json(rng: np.random.Generator) -> None:
    rows, labels = corpus(rng)
    fitted = fit(rows, labels)
    again = StyleClassifier.from_dict(json.loads(json.dumps(fitted.to_dict())))
    assert np.array_equal(again.probabilities(rows), fitted.probabilities(rows))
    assert again.to_dict() == fitted.to_dict()


@pytest.mark.parametrize(
    "change",
    [{"styles": ["calm", "calm"]}, {"weights": [1.0]}, {"scale": [1.0, 0.0, 1.0]}, {"bias": math.nan}, {"mean": "x"}],
)
def test_a_damaged_file_is_refused(change: dict[str, object], rng: np.random.Generator) -> None:
    with pytest.raises(InvalidInputError):
        StyleClassifier.from_dict({**fit(*corpus(rng)).to_dict(), **change})
    with pytest.raises(InvalidInputError, match="no style classifier"):
        StyleClassifier.from_dict({})


def test_bad_input_is_refused(rng: np.random.Generator) -> None:
    rows, labels = corpus(rng)
    with pytest.raises(NoDataError):
        fit(rows, np.zeros(len(rows)))
    with pytest.raises(PairCountError):
        fit(rows, labels[:-1])
    with pytest.raises(InvalidInputError, match="labels"):
        fit(rows, labels + 1)
    with pytest.raises(InvalidInputError, match="l2 must be above 0"):
        fit(rows, labels, 0.0)
    with pytest.raises(InvalidInputError, match="features of shape"):
        fit(rows, labels).probabilities(rows[:, :2])
