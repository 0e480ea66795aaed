"""How alike two lists of texts are in meaning, from their embeddings: MuChin's score of descriptions.

Every function takes unit vectors, one a text, so that inner products are cosines; what makes them is
`music_evals.lyrics.embeddings`. Products are taken in single precision, their means and deviations in double.

Conventions
    Generated first, as in the released code; rows of a matrix are generated texts, columns reference texts. Higher is
    better. Texts that repeat count each time. A list without texts defines nothing: see `empty`.

References
----------
Wang et al. (2024), MuChin: A Chinese Colloquial Description Benchmark, IJCAI, 3.3 and table 2: "outer product of the
embeddings", in the released code (`semantic/data_analysis.py`) the mean over all pairs. Zhang et al. (2020), BERTScore,
ICLR, section 3: precision, recall and F of greedy matches.

"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from music_evals.errors import InvalidInputError, InvalidTagsError, UnknownNameError
from music_evals.metrics.arrays import undefined
from music_evals.numerics import one_thread

__all__ = [
    "AGGREGATIONS",
    "EMPTY",
    "BestMatches",
    "PairStatistics",
    "SemanticSimilarity",
    "best_matches",
    "check_options",
    "cosine_matrix",
    "normalized_similarity",
    "pair_statistics",
    "semantic_similarity",
]

AGGREGATIONS: Final = ("mean", "best_match", "f1")
"""How a matrix of cosines becomes a score; the first is the official one."""

EMPTY: Final = ("nan", "zero", "raise")
"""What becomes of a list without texts."""

UNIT_TOLERANCE = 1e-3
"""A vector this far from length 1 is not a unit vector; half precision leaves about 5e-4."""

Floats = npt.NDArray[np.float32]


class PairStatistics(NamedTuple):
    """The cosines of all pairs of texts, as the released code sums them up."""

    mean: float
    """-1..1."""
    std: float
    """Population standard deviation over the pairs, at least 0."""


class BestMatches(NamedTuple):
    """Each text with the one that is nearest to it on the other side; one text may be the best match of several."""

    precision: float
    """Mean over generated texts of the largest cosine with a reference text, -1..1."""
    recall: float
    """Mean over reference texts of the largest cosine with a generated text, -1..1."""

    @property
    def mean(self) -> float:
        """Mean of both directions, -1..1."""
        return (self.precision + self.recall) / 2

    @property
    def f1(self) -> float:
        """Harmonic mean of both directions, 0..1; 0 where either is not above 0, which is its limit there."""
        if min(self) <= 0:
            return 0.0
        return 2 * self.precision * self.recall / (self.precision + self.recall)


class SemanticSimilarity(NamedTuple):
    """Similarity of one list of texts to another.

    Attributes
    ----------
    value
        The score, at most 1; higher is better. NaN where it is not defined.
    std
        Population standard deviation of the cosines of all pairs, whatever the aggregation: the second column of the
        released code's arrays.
    precision, recall
        As in `BestMatches`, whatever the aggregation.
    n_generated, n_reference
        Texts on each side.
    """

    value: float
    std: float
    precision: float
    recall: float
    n_generated: int
    n_reference: int

    @property
    def reason(self) -> str:
        """Why the score is NaN, in words; empty where it is defined."""
        if not np.isnan(self.value):
            return ""
        empty = [side for side, n in (("generated", self.n_generated), ("reference", self.n_reference)) if not n]
        return f"no {' and no '.join(empty)} tags" if empty else "the vectors of a list cancel out"


def check_options(aggregation: str, empty: str, *, normalize_by_self: bool) -> None:
    """Hold the options of `semantic_similarity` to what there is.

    Raises
    ------
    UnknownNameError
        Another aggregation, or way with empty lists.
    InvalidInputError
        `normalize_by_self` with an aggregation that has no use for it.
    """
    if aggregation not in AGGREGATIONS:
        raise UnknownNameError("aggregation", aggregation, AGGREGATIONS)
    if empty not in EMPTY:
        raise UnknownNameError("way with empty lists", empty, EMPTY)
    if normalize_by_self and aggregation != "mean":
        raise InvalidInputError(
            f"normalize_by_self goes with aggregation='mean'; got {aggregation!r}, under which a list scores 1 against "
            "itself already"
        )


def cosine_matrix(generated: npt.ArrayLike, reference: npt.ArrayLike) -> Floats:
    """Return the cosines of all pairs, shape (n_generated, n_reference), float32.

    Parameters
    ----------
    generated, reference
        Unit vectors, shapes (n_generated, dimensions) and (n_reference, dimensions).

    Raises
    ------
    InvalidInputError
        Arrays of other shapes, values that are not finite, or vectors that are not of length 1.
    """
    first, second = _unit_vectors(generated, "generated"), _unit_vectors(reference, "reference")
    if first.shape[1] != second.shape[1] and len(first) and len(second):
        raise InvalidInputError(
            f"generated and reference vectors must have equal dimensions, got {first.shape[1]} and {second.shape[1]}; "
            "embed both with one encoder"
        )
    if not (len(first) and len(second)):
        return np.empty((len(first), len(second)), dtype=np.float32)
    with one_thread():
        cosines: Floats = np.clip(first @ second.T, -1, 1)
    return cosines


def pair_statistics(cosines: npt.ArrayLike) -> PairStatistics:
    """Return mean and population standard deviation over all pairs; NaN without a pair.

    Parameters
    ----------
    cosines
        Shape (n_generated, n_reference), from `cosine_matrix`.
    """
    matrix = np.asarray(cosines, dtype=np.float64)
    if not matrix.size:
        return PairStatistics(float("nan"), float("nan"))
    return PairStatistics(float(matrix.mean()), float(matrix.std()))


def best_matches(cosines: npt.ArrayLike) -> BestMatches:
    """Match each text greedily with the nearest one of the other side; NaN without a pair.

    Parameters
    ----------
    cosines
        Shape (n_generated, n_reference), from `cosine_matrix`.
    """
    matrix = np.asarray(cosines, dtype=np.float64)
    if not matrix.size:
        return BestMatches(float("nan"), float("nan"))
    return BestMatches(float(matrix.max(axis=1).mean()), float(matrix.max(axis=0).mean()))


def normalized_similarity(generated: npt.ArrayLike, reference: npt.ArrayLike) -> float:
    """Return the mean over all pairs, relative to what the lists score against themselves.

    A list of several distinct texts scores below 1 against itself, the lower the more it says; two lists that agree
    cannot reach 1 either. With m(X, Y) the mean over all pairs, this is ``m(G, R) / sqrt(m(G, G) m(R, R))``: the
    cosine of the two mean vectors. It lies in -1..1, is the same both ways, and is exactly 1 for a list and itself.
    Other divisors do not do: by m(R, R) alone, or by the larger of the two, a list can score above 1 or the scores of
    both directions differ.

    Parameters
    ----------
    generated, reference
        Unit vectors, as in `cosine_matrix`.

    Returns
    -------
    float
        NaN without texts on either side, or where a list's vectors cancel out.

    Raises
    ------
    InvalidInputError
        As `cosine_matrix`.
    """
    first, second = _unit_vectors(generated, "generated"), _unit_vectors(reference, "reference")
    if not (len(first) and len(second)):
        return float("nan")
    # the mean over all pairs is the product of the mean vectors
    mean_generated = np.asarray(first, dtype=np.float64).mean(axis=0)
    mean_reference = np.asarray(second, dtype=np.float64).mean(axis=0)
    # sums of products, all three in one way: for equal lists they are equal to the last bit, and the ratio is 1
    between = float(np.sum(mean_generated * mean_reference))
    within_generated = float(np.sum(mean_generated * mean_generated))
    within_reference = float(np.sum(mean_reference * mean_reference))
    if min(within_generated, within_reference) <= 0:
        return float("nan")
    return float(np.clip(between / np.sqrt(within_generated * within_reference), -1, 1))


def semantic_similarity(
    reference: npt.ArrayLike,
    generated: npt.ArrayLike,
    *,
    aggregation: str = "mean",
    normalize_by_self: bool = False,
    empty: str = "nan",
) -> SemanticSimilarity:
    """Compare two lists of texts by their embeddings.

    A score is NaN where a list has no texts (`empty`), and, with `normalize_by_self`, where its vectors cancel out.

    Parameters
    ----------
    reference, generated
        Unit vectors, shapes (n_generated, dimensions) and (n_reference, dimensions).
    aggregation
        ``"mean"`` (default, official): the mean over all pairs. ``"best_match"``: each text with its best match on the
        other side, both directions, and their mean. ``"f1"``: the harmonic mean of the two directions, as BERTScore
        without its weights.
    normalize_by_self
        Divide the mean by what the lists score against themselves (`normalized_similarity`).
    empty
        A list without texts, on either side: ``"nan"``, a score of 0 (``"zero"``), or an error (``"raise"``).

    Returns
    -------
    SemanticSimilarity
        Its `std`, `precision` and `recall` do not depend on the options.

    Raises
    ------
    UnknownNameError, InvalidInputError
        As `check_options` and `cosine_matrix`.
    InvalidTagsError
        A list without texts, and `empty` is ``"raise"``.

    Warns
    -----
    UndefinedMetricWarning
        The score is NaN.
    """
    check_options(aggregation, empty, normalize_by_self=normalize_by_self)
    cosines = cosine_matrix(generated, reference)
    statistics, matches = pair_statistics(cosines), best_matches(cosines)
    if not cosines.size:
        value = _of_empty(cosines.shape, empty)
    elif normalize_by_self:
        value = normalized_similarity(generated, reference)
        if np.isnan(value):
            value = undefined("semantic similarity", "the vectors of a list cancel out, its mean vector is zero")
    else:
        value = {"mean": statistics.mean, "best_match": matches.mean, "f1": matches.f1}[aggregation]
    return SemanticSimilarity(value, statistics.std, *matches, *cosines.shape)


def _of_empty(shape: tuple[int, ...], empty: str) -> float:
    side = "reference" if shape[0] else "generated"
    if empty == "raise":
        raise InvalidTagsError(f"the {side} list is empty; give it a text, or choose empty='nan' or empty='zero'")
    if empty == "zero":
        return 0.0
    return undefined("semantic similarity", f"the {side} list is empty", stacklevel=4)


def _unit_vectors(given: npt.ArrayLike, name: str) -> Floats:
    vectors = np.asarray(given, dtype=np.float32)
    if vectors.shape in {(0,), (0, 0)}:
        return np.empty((0, 0), dtype=np.float32)
    if vectors.ndim != 2:
        raise InvalidInputError(f"{name} must hold one vector a text, shape (n, dimensions), got {vectors.shape}")
    lengths = np.linalg.norm(vectors, axis=1)
    wrong = np.flatnonzero(~(np.abs(lengths - 1) <= UNIT_TOLERANCE))
    if len(wrong):
        raise InvalidInputError(
            f"{name} must hold unit vectors, but vector {wrong[0]} has length {lengths[wrong[0]]:.4g}; divide by it"
        )
    return vectors
