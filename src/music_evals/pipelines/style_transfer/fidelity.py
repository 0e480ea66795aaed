"""Scores of style transfers beyond the published error rate: likeness to the target corpus, and the melody.

Two questions that pull against each other: an output that is a piece of the corpus has perfect fidelity and has lost
the melody; the input left as it is keeps the melody and all of its own style. Read both, and both beside the untouched
input.

Fidelity is measured in two ways. Divergences of harmony, rhythm and texture (`metrics.catalogue.STYLE_SCORES`) compare
histograms of a set of outputs with those of the corpus; each piece weighs alike. They say how far, and in which
respect; their noise floor, ``<name>_null``, is what pieces of one style differ by at these numbers of pieces. A
classifier (`metrics.style_classifier`) says to which of two corpora stretches of the outputs would be given.

Preservation of the melody (`MELODY_SCORES`) is counted in cells and starts of the input's melody, and by the melody
metrics of music context preservation on the voice of the melody.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from music_evals.annotations import Arrangement, PianoRoll
from music_evals.deprecation import module_getattr
from music_evals.errors import InvalidInputError, NoDataError, UnknownNameError, UnreadableFileError
from music_evals.files import parse_json
from music_evals.metrics.catalogue import MELODY_SCORES
from music_evals.metrics.divergence import jensen_shannon
from music_evals.metrics.style_classifier import StyleClassifier
from music_evals.pipelines.intervals import check_groups, check_pairs, report, report_means
from music_evals.pipelines.preservation import evaluate_preservation
from music_evals.pipelines.style_transfer.histograms import (
    CLASSIFIER_FEATURES,
    HISTOGRAMS,
    classifier_features,
    roll_histograms,
    stretches,
)
from music_evals.stats import Interval
from music_evals.stats.resampling import bias_corrected, check_options
from music_evals.symbolic.encodings.piano_rolls import arrangement_score

__all__ = [
    "CLASSIFIERS",
    "MELODY_AUXILIARY",
    "MELODY_METRICS",
    "STRETCH_BARS",
    "evaluate_melody",
    "evaluate_style",
    "load_style_classifier",
    "melody_scores",
    "style_probabilities",
    "style_rows",
    "towards_style",
]

STRETCH_BARS: Final = 4
"""Bars of a stretch that the classifier is asked about."""

MELODY_METRICS: Final = ("voicing_recall", "motif_jaccard", "motif_recall")
"""Metrics of music context preservation that are taken of the voice of the melody."""

MELODY_AUXILIARY: Final = ("raw_pitch_accuracy", "melody_contour_accuracy", "interval_lcs")
"""Auxiliary metrics of these: the metrics hardly see which pitch sounds when."""

CLASSIFIERS: Final = ("bach_swing",)
"""Classifiers that ship with the package, fitted by ``benchmarks/style_fidelity/run.py``; ``bach_swing`` tells the
chorales of `jsb_chorales` from the pieces of `swing_synth`."""

Floats = npt.NDArray[np.float64]


def load_style_classifier(place: str | os.PathLike[str]) -> StyleClassifier:
    """Return a classifier by name or from a file that holds `StyleClassifier.to_dict` as JSON.

    Raises
    ------
    UnknownNameError
        Neither a name out of `CLASSIFIERS` nor a file.
    InvalidInputError
        The file holds no classifier, or one of other features than this version measures.
    """
    path = Path(__file__).with_name("classifiers") / f"{place}.json" if place in CLASSIFIERS else Path(place)
    if not path.is_file():
        raise UnknownNameError("style classifier", os.fspath(place), CLASSIFIERS)
    try:
        values = parse_json(path.read_bytes(), str(path))
    except UnreadableFileError as error:
        raise InvalidInputError(f"{error}; fit the classifier again") from error
    if not isinstance(values, dict):
        raise InvalidInputError(f"{path} holds no classifier; fit it again")
    return _of_our_features(StyleClassifier.from_dict(values))


def style_rows(rolls: Sequence[PianoRoll], bars: int = STRETCH_BARS) -> tuple[Floats, npt.NDArray[np.int64]]:
    """Return what the classifier reads of the stretches of pieces.

    Parameters
    ----------
    rolls
        Pieces.
    bars
        Bars of a stretch; a shorter piece is one stretch, and a shorter rest of a piece is left out. A note that is
        held into a stretch counts as one that starts there.

    Returns
    -------
    features
        Shape (stretches, features), in the order of `CLASSIFIER_FEATURES`; NaN where a stretch is silent.
    pieces
        Number of the piece of each, shape (stretches,).

    Raises
    ------
    InvalidInputError
        Fewer bars than 1.
    """
    rows = [(classifier_features(part), number) for number, roll in enumerate(rolls) for part in stretches(roll, bars)]
    features = np.array([row for row, _ in rows], dtype=np.float64).reshape(-1, len(CLASSIFIER_FEATURES))
    return features, np.array([number for _, number in rows], dtype=np.int64)


def style_probabilities(roll: PianoRoll, classifier: StyleClassifier, *, bars: int = STRETCH_BARS) -> Floats:
    """Return how likely each stretch is of the classifier's second style, shape (stretches,); NaN of silence.

    Raises
    ------
    InvalidInputError
        Fewer bars than 1, or a classifier of other features.
    """
    return _of_our_features(classifier).probabilities(style_rows([roll], bars)[0])


def evaluate_style(
    estimates: Sequence[PianoRoll],
    corpus: Sequence[PianoRoll],
    *,
    target: str | None = None,
    classifier: StyleClassifier | None = None,
    bars: int = STRETCH_BARS,
    groups: npt.ArrayLike | None = None,
    corpus_groups: npt.ArrayLike | None = None,
    confidence: float = 0.95,
    n_resamples: int = 1000,
    seed: int = 0,
    per_item: bool = False,
) -> dict[str, Any]:
    """Score how similar a set of pieces is to a corpus.

    Parameters
    ----------
    estimates
        Pieces, such as the outputs of a style transfer, melody and accompaniment merged.
    corpus
        Held-out pieces of the target style; all on grids of any fineness.
    target
        Which of the classifier's styles is the target.
    classifier
        Separates the target from another style; None leaves ``style_probability`` and ``style_accuracy`` out.
    bars
        Bars of the stretches that it is asked about.
    groups, corpus_groups
        Cluster of each piece, shape (n,) each; None makes each piece its own.
    confidence
        Nominal coverage of the intervals.
    n_resamples, seed
        Resamples of the intervals of divergences and relabellings of their noise floors, and the seed of both.
    per_item
        True adds the scores of each estimate; its divergences are those of the piece alone from the corpus, and larger
        than that of the set, for they are of less music.

    Returns
    -------
    dict
        For each name of `metrics.catalogue.STYLE_SCORES`: ``<name>``, ``<name>_ci`` (low, high), ``<name>_n`` pieces,
        ``<name>_n_defined`` of them that count, ``<name>_n_clusters``, the effective number of their clusters, and of
        divergences ``<name>_null``, the noise floor: the mean when clusters change sides at random. Intervals of
        divergences draw the clusters of both sides, as in `stats.resampling`. ``per_item``: one dict an estimate.

    Raises
    ------
    NoDataError, PairCountError
        No estimates, no corpus, or not one group a piece.
    InvalidInputError
        A classifier without a target out of its styles or of other features, or an option out of range.

    Warns
    -----
    UndefinedMetricWarning
        A score is NaN because no piece defines it.
    """
    check_options(confidence, n_resamples, seed)
    if not len(estimates) or not len(corpus):
        raise NoDataError("fidelity compares a set of pieces with a corpus; give at least one roll of each")
    if classifier is not None and target not in classifier.styles:
        raise InvalidInputError(f"`target` must be one of the classifier's styles, {classifier.styles}, got {target!r}")
    clusters = [_codes(groups, len(estimates)), _codes(corpus_groups, len(corpus))]
    sides = [[roll_histograms(roll) for roll in rolls] for rolls in (estimates, corpus)]
    result: dict[str, Any] = {}
    items: list[dict[str, float]] = [{} for _ in estimates]
    for place, name in enumerate(HISTOGRAMS):
        masses = [_masses(np.array([histograms[name] for histograms in side])) for side in sides]
        compared = _Sides(masses[0], masses[1], *clusters)
        rng = np.random.default_rng([seed, place])
        interval = compared.interval(confidence, n_resamples, rng)
        result |= report(name, interval, compared.null(n_resamples, rng))
        for item, alone in zip(items, masses[0], strict=True):
            item[name] = compared.divergence_of(alone)
    if classifier is not None:
        columns = np.array([towards_style(roll, classifier, str(target), bars) for roll in estimates])
        names = ("style_probability", "style_accuracy")
        for column, name in enumerate(names):
            for item, value in zip(items, columns[:, column].tolist(), strict=True):
                item[name] = value
        result |= report_means(names, columns, clusters[0], confidence)
    return result | ({"per_item": items} if per_item else {})


def melody_scores(melody: PianoRoll, output: PianoRoll) -> dict[str, float]:
    """Return `MELODY_SCORES` of one output; NaN where the melody has nothing to keep.

    Parameters
    ----------
    melody
        The input's melody.
    output
        All that sounds in the output, on the same grid.

    Raises
    ------
    InvalidInputError
        Other steps, beats or bars.
    """
    if not melody.same_grid(output):
        raise InvalidInputError(
            f"the melody ({len(melody)} steps) and the output ({len(output)}) must share one grid; a style transfer "
            "returns the steps that it was given"
        )
    return {
        "melody_cell_recall": _share(melody.cells, output.cells),
        "melody_onset_recall": _share(melody.onsets, output.onsets),
    }


def evaluate_melody(
    references: Sequence[Arrangement],
    estimates: Sequence[Arrangement],
    *,
    groups: npt.ArrayLike | None = None,
    confidence: float = 0.95,
    bpm: float = 120.0,
    per_item: bool = False,
) -> dict[str, Any]:
    """Score how well the melodies of a set of pieces were preserved.

    Parameters
    ----------
    references
        The inputs.
    estimates
        The outputs in the same order, each on the grid of its input.
    groups, confidence
        As in `evaluate_style`, of pairs of pieces.
    per_item
        True adds the scores of each piece.
    bpm
        Tempo of both, quarters a minute: the metrics of preservation know seconds, and frames of 23 ms.

    Returns
    -------
    dict
        For each name of `MELODY_SCORES`, `MELODY_METRICS` and `MELODY_AUXILIARY` the keys of a mean, as of
        `evaluate_preservation`. The first are of all that sounds in the output, whichever voice has it; the others of
        the voice that it calls its melody.

    Raises
    ------
    PairCountError, NoDataError
        Not as many estimates as references, not one group a piece, or no pieces.
    InvalidInputError
        An output on another grid than its input.

    Warns
    -----
    UndefinedMetricWarning
        A score is NaN because no piece defines it.
    """
    nothing = "there are no pieces to score; give at least one arrangement and its output"
    check_pairs(references, estimates, "estimates", "a piece", nothing)
    clusters = _codes(groups, len(references))
    items = [
        melody_scores(arrangement.melody, output.merged)
        for arrangement, output in zip(references, estimates, strict=True)
    ]
    columns = np.array([[item[name] for name in MELODY_SCORES] for item in items])
    result = report_means([*MELODY_SCORES], columns, clusters, confidence)
    scores = [[arrangement_score(arrangement, bpm=bpm) for arrangement in side] for side in (references, estimates)]
    preservation = evaluate_preservation(
        *scores,
        metrics=MELODY_METRICS,
        companions=MELODY_AUXILIARY,
        groups=clusters,
        confidence=confidence,
        per_item=True,
    )
    for item, row in zip(items, preservation.pop("per_item"), strict=True):
        item.update({name: row[name] for name in (*MELODY_METRICS, *MELODY_AUXILIARY)})
    return result | preservation | ({"per_item": items} if per_item else {})


class _Sides(NamedTuple):
    """Masses of the pieces of both sides, shape (n, bins), NaN where a piece has none; and their clusters."""

    estimates: Floats
    corpus: Floats
    groups: npt.NDArray[np.int64]
    corpus_groups: npt.NDArray[np.int64]

    def divergence_of(self, alone: Floats) -> float:
        whole = _pooled(_totals(self.corpus, self.corpus_groups), np.ones((1, _count(self.corpus_groups))))[0]
        return float(jensen_shannon(alone, whole))

    def interval(self, confidence: float, n_resamples: int, rng: np.random.Generator) -> Interval:
        totals = [_totals(self.estimates, self.groups), _totals(self.corpus, self.corpus_groups)]
        sizes = [len(weights) for _, weights in totals]
        observed = float(
            jensen_shannon(*(_pooled(total, np.ones((1, n)))[0] for total, n in zip(totals, sizes, strict=True)))
        )
        defined = ~np.isnan(self.estimates[:, 0])
        n = (len(defined), int(defined.sum()))
        # the side with fewer clusters has the fewer degrees of freedom
        few = self.groups if sizes[0] <= sizes[1] else self.corpus_groups
        if math.isnan(observed) or min(sizes) < 2:
            return Interval(observed, math.nan, math.nan, *n, float(sizes[0]))
        resampled = [
            _pooled(total, rng.multinomial(size, [1 / size] * size, n_resamples))
            for total, size in zip(totals, sizes, strict=True)
        ]
        low, high, _ = bias_corrected(observed, jensen_shannon(*resampled), (few, _count(few)), confidence)
        low, high = np.clip([low, high], 0, math.log(2))
        counts = np.bincount(self.groups).astype(np.float64)
        return Interval(observed, float(low), float(high), *n, float(counts.sum() ** 2 / (counts**2).sum()))

    def null(self, n_permutations: int, rng: np.random.Generator) -> float:
        n = _count(self.groups)
        both = [
            np.concatenate(parts)
            for parts in zip(
                _totals(self.estimates, self.groups), _totals(self.corpus, self.corpus_groups), strict=True
            )
        ]
        first = rng.permuted(np.tile(np.arange(len(both[1])) < n, (n_permutations, 1)), axis=1)
        divergences = jensen_shannon(_pooled(both, first), _pooled(both, ~first))
        defined = divergences[~np.isnan(divergences)]
        return float(defined.mean()) if len(defined) else math.nan


def _codes(groups: npt.ArrayLike | None, n: int) -> npt.NDArray[np.int64]:
    labels = check_groups(groups, n)
    return np.arange(n) if labels is None else np.unique(labels, return_inverse=True)[1].astype(np.int64)


def _count(codes: npt.NDArray[np.int64]) -> int:
    return int(codes.max()) + 1


def _masses(counts: Floats) -> Floats:
    """Return counts of pieces, shape (n, bins), as shares; NaN where a piece has nothing to count."""
    total = counts.sum(axis=1, keepdims=True)
    masses: Floats = np.divide(counts, total, out=np.full_like(counts, np.nan), where=total > 0)
    return masses


def _totals(masses: Floats, codes: npt.NDArray[np.int64]) -> tuple[Floats, Floats]:
    """Return the sum of the masses of each cluster, shape (clusters, bins), and its pieces that have some."""
    defined = ~np.isnan(masses[:, 0])
    sums, pieces = np.zeros((_count(codes), masses.shape[1])), np.zeros(_count(codes))
    np.add.at(sums, codes[defined], masses[defined])
    np.add.at(pieces, codes[defined], 1)
    return sums, pieces


def _pooled(totals: Sequence[Floats], times: npt.NDArray[Any]) -> Floats:
    """Return the mean masses, shape (rows, bins), of clusters taken so many times, shape (rows, clusters)."""
    sums, pieces = totals
    times = times.astype(np.float64)
    n = (times @ pieces)[:, None]
    mean: Floats = np.divide(times @ sums, n, out=np.full((len(times), sums.shape[1]), np.nan), where=n > 0)
    return mean


def _of_our_features(classifier: StyleClassifier) -> StyleClassifier:
    if classifier.features != CLASSIFIER_FEATURES:
        raise InvalidInputError("the classifier reads other features than this version measures; fit it again")
    return classifier


def towards_style(roll: PianoRoll, classifier: StyleClassifier, target: str, bars: int) -> tuple[float, float]:
    """Return the mean probability of the target over the stretches that sound, and the share that is given to it."""
    towards = style_probabilities(roll, classifier, bars=bars)
    towards = towards[~np.isnan(towards)]
    if not len(towards):
        return math.nan, math.nan
    towards = towards if target == classifier.styles[1] else 1 - towards
    return float(towards.mean()), float((towards > 0.5).mean())


def _share(wanted: npt.NDArray[np.bool_], present: npt.NDArray[np.bool_]) -> float:
    n = int(wanted.sum())
    return float((wanted & present).sum() / n) if n else math.nan


if not TYPE_CHECKING:
    __getattr__ = module_getattr(__name__, {"MELODY_COMPANIONS": "MELODY_AUXILIARY"})
