"""Score inpainting evaluated in one pass: all metrics of a set of filled middles, with their intervals.

Every evaluate module and the benchmark runner come through here, so that they give equal numbers. What is loaded, and
from where, is their affair: the input are NoteSeq tokens.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from music_evals.annotations import HOLD, MUSIB_LAYOUT, Tokens
from music_evals.errors import InvalidInputError, NoDataError, UndefinedMetricWarning
from music_evals.metrics import divergence, inpainting, likelihood, melodic_intervals
from music_evals.metrics.arrays import (
    FloatArray,
    IntArray,
    by_chunks,
    check_contexts,
    check_middles,
    check_same_count,
    check_variant,
)
from music_evals.metrics.catalogue import INPAINTING_EXTENSIONS, INPAINTING_METRICS, Metric, metric_of, select_names
from music_evals.pipelines.intervals import check_groups, interval_of_rates, intervals_of_means, report, report_means
from music_evals.stats import Interval, resampling
from music_evals.stats.intervals import check_confidence, effective_clusters

__all__ = ["FEATURES", "evaluate_inpainting", "evaluate_nll", "item_features", "item_scores"]


AVERAGES: Final = ("macro", "micro")
_DEFAULTS: Final = {"n_resamples": 1000, "seed": 0, "base": "nats"}
"""Options of divergences."""

_F1_SCORES = ("position_score", "note_f1")
_ACCURACIES = {"pitch_accuracy", "rhythm_accuracy"}
_NOTE_METRICS = ("position_score", "pitch_accuracy", "rhythm_accuracy", "note_f1")
_RATES = tuple(name for name, metric in INPAINTING_EXTENSIONS.items() if metric.direction == "none")
_PLAIN = INPAINTING_EXTENSIONS.keys() - {*_RATES, "interval_divergence", "consonance_pitch_accuracy"}
"""Extensions that need no more than the middles: the function of their name in `metrics.inpainting`."""
_SCORES: Final[Mapping[str, Metric]] = MappingProxyType({**INPAINTING_METRICS, **INPAINTING_EXTENSIONS})

FEATURES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "silence_divergence": "silence_rate",
        "pitch_class_divergence": "pitch_class_entropy_difference",
        "groove_divergence": "groove_similarity",
    }
)
"""Divergence -> the feature of items whose distributions it compares, in the order of `divergence.FEATURES`."""

Features = dict[str, tuple[FloatArray, FloatArray]]


class _Pairs(NamedTuple):
    """Checked input and what one pass over it gave."""

    contexts: Tokens
    middles: Tokens
    counts: inpainting.NoteCounts | None
    features: Features
    rows: Mapping[str, FloatArray]
    """Extensions of items by name, and ``<name>_reference``: a rate of the true middle."""

    @property
    def true(self) -> Tokens:
        return self.contexts[:, MUSIB_LAYOUT.middle]


def item_scores(
    contexts: npt.ArrayLike, middles: npt.ArrayLike, *, variant: str = "corrected", extensions: Iterable[str] = ()
) -> dict[str, FloatArray]:
    """Return the item metrics by name, shape (n,) each; NaN where an item is undefined.

    Parameters
    ----------
    contexts
        Whole contexts with the true middle, shape (n, 384), values 0..129.
    middles
        Filled middles, shape (n, 96), values 0..129.
    variant
        ``"corrected"``, ``"official"`` or ``"paper"``; the extensions have none.
    extensions
        Names of item metrics out of `INPAINTING_EXTENSIONS` to add.

    Raises
    ------
    InvalidTokensError, ContextLengthError, PairCountError, UnknownNameError, NoDataError
        As `evaluate_inpainting`.
    """
    names = (*_NOTE_METRICS, *select_names(extensions, INPAINTING_EXTENSIONS, "extension"))
    pairs = _analyse(contexts, middles, names, variant)
    return _item_scores(pairs, names, variant)


def item_features(contexts: npt.ArrayLike, middles: npt.ArrayLike, *, variant: str = "corrected") -> Features:
    """Return what the divergences are made of: by metric, (of the true middle, of the filled middle), shape (n,) each.

    Input and errors are those of `item_scores`. `metrics.divergence.histogram_bins` turns the values into bins.
    """
    return _analyse(contexts, middles, divergence.FEATURES, variant).features


class _Options(NamedTuple):
    """How intervals and noise floors are made."""

    groups: npt.NDArray[Any] | None
    confidence: float
    n_resamples: int
    seed: int


def evaluate_inpainting(
    contexts: npt.ArrayLike,
    middles: npt.ArrayLike,
    *,
    groups: npt.ArrayLike | None = None,
    variant: str = "corrected",
    confidence: float = 0.95,
    n_resamples: int | None = None,
    seed: int | None = None,
    metrics: Iterable[str] | None = None,
    extensions: Iterable[str] = (),
    per_item: bool = False,
    average: str = "macro",
    base: str | None = None,
    corpus: npt.ArrayLike | None = None,
    transposed: bool = False,
) -> dict[str, Any]:
    """Score filled middles against the true ones, all metrics in one pass.

    Parameters
    ----------
    contexts
        Whole contexts with the true middle, NoteSeq tokens of shape (n, 384), values 0..129.
    middles
        Filled middles in the same order, shape (n, 96), values 0..129.
    groups
        Cluster (song) of each item, shape (n,), for intervals and noise floors; None makes each item its own.
    variant
        ``"corrected"``, ``"official"`` or ``"paper"``; see `metrics.inpainting` and `metrics.divergence`. The
        extensions have none. The two accuracies, where they are asked for alone, have ``"chen2020"`` too.
    confidence
        Nominal coverage of the intervals, above 0 and below 1.
    n_resamples
        Resamples of the divergences' intervals and of their noise floors, 1000 by default; 0 leaves both out (NaN).
    seed
        Seed of both, 0 by default. A metric's numbers do not depend on which others are computed.
    metrics
        Names out of `INPAINTING_METRICS` and `INPAINTING_EXTENSIONS`; None for all of the former.
    extensions
        Names out of `INPAINTING_EXTENSIONS` to add to them.
    per_item
        True adds the scores of each item.
    average
        ``"macro"``: mean over items, as published. ``"micro"``: over the notes (for accuracies the shared positions,
        for the rates the measures with an onset or the intervals) of all items together.
    base
        Logarithm of the divergences, ``"nats"`` (default) or ``"bits"``.
    corpus
        Tokens (..., steps) in whose measures `self_replication_rate` looks for copies; None for the item's context.
    transposed
        True lets it count copies at another pitch too.

    Returns
    -------
    dict
        For each name: ``<name>``, ``<name>_ci`` (low, high), ``<name>_n`` items, ``<name>_n_defined`` of them that
        count and ``<name>_n_clusters``, the effective number of clusters; for set metrics ``<name>_null``, the noise
        floor: their mean when true and filled middles are swapped at random, a group as a whole. About half of pure
        noise lies above it. For rates, which are compared with those of the true middles, ``<name>_reference``: the
        mean of these. How intervals are made stands in `stats.intervals` for means and in `stats.resampling` for set
        metrics. ``per_item``: a list of one dict an item, with the item metrics and, for the divergences, the value
        behind it of the filled middle (for that of intervals the rate of repeated notes); for these values and the
        rates also that of the true middle (``..._reference``).

    Raises
    ------
    InvalidTokensError, ContextLengthError
        Tokens outside 0..129, or not of the shapes above.
    PairCountError
        Contexts, middles and groups differ in number.
    NoDataError
        No items.
    UnknownNameError
        Unknown variant, metric, extension, average or base; the message names the nearest.
    InvalidInputError
        ``official``: a reference without a note; an option out of range; or `n_resamples`, `seed` or `base`, which are
        for divergences, where none is computed.

    Warns
    -----
    UndefinedMetricWarning
        A score is NaN because no item defines it.
    """
    chosen = select_names(metrics, _SCORES, "metric", default=INPAINTING_METRICS)
    names = select_names((*chosen, *select_names(extensions, INPAINTING_EXTENSIONS, "extension")), _SCORES, "metric")
    select_names(average, AVERAGES, "average")
    divergence_options = _of_divergences(names, n_resamples=n_resamples, seed=seed, base=base)
    resampling.check_options(confidence, divergence_options["n_resamples"], divergence_options["seed"], least=0)
    pairs = _analyse(contexts, middles, names, variant, corpus=corpus, transposed=transposed)
    options = _Options(
        check_groups(groups, len(pairs.middles)),
        confidence,
        divergence_options["n_resamples"],
        divergence_options["seed"],
    )
    scores = _item_scores(pairs, names, variant)
    intervals = _mean_intervals(pairs, scores, options, average)
    result: dict[str, Any] = {}
    for name in names:
        if name in intervals:
            result |= report(name, intervals[name])
        else:
            result |= report(name, *_set_level(pairs, name, options, variant, divergence_options["base"]))
        if name in _RATES:
            result[f"{name}_reference"] = _mean_of_truth(pairs, name, average)
    if per_item:
        result["per_item"] = _per_item(pairs, scores, names)
    return result


def evaluate_nll(
    log_probabilities: npt.ArrayLike,
    *,
    groups: npt.ArrayLike | None = None,
    confidence: float = 0.95,
    per_item: bool = False,
) -> dict[str, Any]:
    """Return the mean `inpainting_nll` over items, in nats a step, with its interval.

    Parameters
    ----------
    log_probabilities
        Natural logarithm of the probability of the true token at each step, shape (n, steps), at most 0.
    groups, confidence, per_item
        As in `evaluate_inpainting`.

    Returns
    -------
    dict
        ``inpainting_nll`` and its ``_ci``, ``_n``, ``_n_defined`` and ``_n_clusters``. The interval is NaN where a
        value is infinite.

    Raises
    ------
    InvalidInputError
        NaN, values above 0, or not of shape (n, steps).
    NoDataError, PairCountError
        No items, or not one group an item.
    """
    check_confidence(confidence)
    rows = np.asarray(log_probabilities, dtype=np.float64)
    if not len(rows):
        raise NoDataError("there are no log-probabilities; give one row an item")
    if rows.ndim != 2:
        raise InvalidInputError(
            f"expected log-probabilities of shape (n, steps), got {rows.shape}; give one row an item"
        )
    values = np.asarray(likelihood.inpainting_nll(rows))
    clusters = check_groups(groups, len(values))
    result = report_means(["inpainting_nll"], values[:, None], clusters, confidence)
    if per_item:
        result["per_item"] = [{"inpainting_nll": float(value)} for value in values]
    return result


def _of_divergences(names: Iterable[str], **given: Any) -> dict[str, Any]:
    """Return the options of divergences, the defaults for those that are None; refuse them where no score is one."""
    options = [f"`{option}`" for option, value in given.items() if value is not None]
    if options and not any(metric_of(name).kind == "set" for name in names):
        divergences = ", ".join(name for name, metric in _SCORES.items() if metric.kind == "set")
        raise InvalidInputError(
            f"{' and '.join(options)} can be given for divergences only ({divergences}), and none of these is "
            "computed; leave it out"
        )
    return {option: _DEFAULTS[option] if value is None else value for option, value in given.items()}


def _analyse(
    contexts: npt.ArrayLike,
    middles: npt.ArrayLike,
    names: Sequence[str],
    variant: str,
    *,
    corpus: npt.ArrayLike | None = None,
    transposed: bool = False,
) -> _Pairs:
    """Check the input and pass over it once, for what these metrics need."""
    of_steps = {*names} <= _ACCURACIES
    check_variant(variant, inpainting.ACCURACY_VARIANTS if of_steps else inpainting.VARIANTS)
    whole, filled = check_contexts(contexts), check_middles(middles)
    check_same_count(whole, filled)
    if not len(whole):
        raise NoDataError("there are no items to score; give at least one context and its middle")
    if variant == inpainting.CHEN:
        accuracies = inpainting.step_accuracies(whole[:, MUSIB_LAYOUT.middle], filled)
        return _Pairs(whole, filled, None, {}, {name: scores for name, (scores, _) in accuracies.items()})
    notes, features = not {*_NOTE_METRICS}.isdisjoint(names), not {*divergence.FEATURES}.isdisjoint(names)
    extensions = _extension_kernels(names, corpus, transposed=transposed)
    if not notes and not features and not extensions:
        return _Pairs(whole, filled, None, {}, {})
    kernel = functools.partial(_pass, notes=notes, features=features, extensions=extensions, variant=variant)
    rows = list(by_chunks(kernel, whole, filled))
    counts = inpainting.NoteCounts(*(rows.pop(0).astype(np.int64) for _ in range(5))) if notes else None
    feature_values = [rows.pop(0) for _ in range(2 * len(divergence.FEATURES))] if features else []
    values = (
        dict(zip(divergence.FEATURES, zip(feature_values[0::2], feature_values[1::2], strict=True), strict=True))
        if features
        else {}
    )
    return _Pairs(whole, filled, counts, values, dict(zip(extensions, rows, strict=True)))


Kernel = Callable[[Tokens, Tokens], FloatArray]
"""Takes contexts and middles, returns shape (1, n)."""


def _extension_kernels(names: Sequence[str], corpus: npt.ArrayLike | None, *, transposed: bool) -> dict[str, Kernel]:
    """Return what works out the extensions of items, and of rates also that of the true middle."""
    kernels: dict[str, Kernel] = {name: _of_middles(getattr(inpainting, name)) for name in names if name in _PLAIN}
    if "consonance_pitch_accuracy" in names:
        kernels["consonance_pitch_accuracy"] = lambda whole, middles: inpainting.consonance_rows(
            whole[:, MUSIB_LAYOUT.middle], middles
        )
    if "self_replication_rate" in names:
        kernels["self_replication_rate"] = inpainting.replication_kernel(corpus, transposed=transposed)
    if "repeated_note_rate" in names:
        kernels["repeated_note_rate"] = lambda _, middles: melodic_intervals.repeated_rows(middles)
    return kernels | {f"{name}_reference": _of_truth(kernels[name]) for name in _RATES if name in kernels}


def _of_middles(metric: Callable[..., Any]) -> Kernel:
    """Return what works out a function of `metrics.inpainting`; whoever averages warns where no item defines it."""

    def kernel(whole: Tokens, middles: Tokens) -> FloatArray:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UndefinedMetricWarning)
            return np.asarray(metric(whole[:, MUSIB_LAYOUT.middle], middles), dtype=np.float64)[None]

    return kernel


def _of_truth(kernel: Kernel) -> Kernel:
    return lambda whole, _: kernel(whole, whole[:, MUSIB_LAYOUT.middle])


def _pass(
    contexts: Tokens, middles: Tokens, *, notes: bool, features: bool, extensions: Mapping[str, Kernel], variant: str
) -> FloatArray:
    true = contexts[:, MUSIB_LAYOUT.middle]
    parts = []
    if notes:
        parts.append(np.array(inpainting.count_notes(true, middles), dtype=np.float64))
    if features:
        parts.append(divergence.feature_rows(contexts, middles, variant=variant))
    parts += [kernel(contexts, middles) for kernel in extensions.values()]
    return np.concatenate(parts)


def _item_scores(pairs: _Pairs, names: Sequence[str], variant: str) -> dict[str, FloatArray]:
    """Return the item metrics that are asked for, by name."""
    scores = {} if pairs.counts is None else inpainting.note_scores(pairs.counts, variant=variant)
    scores |= pairs.rows
    return {name: scores[name] for name in names if name in scores}


def _mean_intervals(
    pairs: _Pairs, scores: Mapping[str, FloatArray], options: _Options, average: str
) -> dict[str, Interval]:
    """Return the interval of each item metric."""
    if not scores:
        return {}
    if average == "macro":
        columns = np.stack([*scores.values()], axis=1)
        intervals = intervals_of_means([*scores], columns, options.groups, options.confidence)
        return dict(zip(scores, intervals, strict=True))
    weights = _weights(pairs, scores)
    return {
        name: interval_of_rates(name, values, weights[name], options.groups, options.confidence)
        for name, values in scores.items()
    }


def _weights(pairs: _Pairs, names: Iterable[str]) -> dict[str, IntArray]:
    """Return what each item weighs in a micro average: the denominator of its score."""
    if pairs.counts is None and {*pairs.rows} >= _ACCURACIES:  # over time indexes
        return {name: n for name, (_, n) in inpainting.step_accuracies(pairs.true, pairs.middles).items()}
    counts = inpainting.note_counts(pairs.true, pairs.middles) if pairs.counts is None else pairs.counts
    return {
        name: counts.reference + counts.estimate
        if name in _F1_SCORES
        else _weights_of_rate(name, pairs.middles)
        if name in _RATES
        else counts.shared
        if name not in _PLAIN
        else np.ones_like(counts.shared)
        for name in names
    }


def _weights_of_rate(name: str, middles: Tokens) -> IntArray:
    """Return the denominator of a rate: the measures with an onset, or the melodic intervals."""
    onsets = middles < HOLD
    weights: IntArray = np.maximum(onsets.sum(axis=1) - 1, 0)
    if name == "self_replication_rate":
        weights = onsets.reshape(len(middles), -1, MUSIB_LAYOUT.steps_per_measure).any(axis=2).sum(axis=1)
    return weights


def _mean_of_truth(pairs: _Pairs, name: str, average: str) -> float:
    """Return the mean rate of the true middles; NaN where none defines it."""
    values = pairs.rows[f"{name}_reference"]
    defined = ~np.isnan(values)
    if not defined.any():
        return float("nan")
    weights = _weights_of_rate(name, pairs.true)[defined] if average == "micro" else None
    return float(np.average(values[defined], weights=weights))


def _set_level(pairs: _Pairs, name: str, options: _Options, variant: str, base: str) -> tuple[Interval, float]:
    """Return a divergence with its interval, and its noise floor."""
    if name == "interval_divergence":
        return _interval_divergence(pairs, options, base)
    reference, estimate = (divergence.histogram_bins(values, variant=variant) for values in pairs.features[name])
    measure = functools.partial(divergence.jensen_shannon, base=base)
    return _divergence_interval(reference, estimate, divergence.n_bins(variant), measure, options)


def _interval_divergence(pairs: _Pairs, options: _Options, base: str) -> tuple[Interval, float]:
    """Resample and swap the intervals of an item together."""
    n = len(pairs.middles)
    intervals = melodic_intervals.interval_pairs(pairs.true, pairs.middles)
    items = intervals.items
    if not len(items):
        return Interval(np.nan, np.nan, np.nan, n, 0, 0.0), float("nan")
    measure = functools.partial(divergence.normalised_jensen_shannon, base=base)
    options = options._replace(groups=items if options.groups is None else options.groups[items])
    interval, null = _divergence_interval(
        intervals.reference, intervals.estimate, melodic_intervals.INTERVAL_BINS, measure, options
    )
    return interval._replace(n=n, n_defined=len(np.unique(items))), null


def _divergence_interval(
    reference: IntArray,
    estimate: IntArray,
    n_bins: int,
    measure: Callable[[FloatArray, FloatArray], FloatArray],
    options: _Options,
) -> tuple[Interval, float]:
    if not options.n_resamples:
        masses = (divergence.masses(bins, n_bins) for bins in (reference, estimate))
        n_defined = int(((reference >= 0) & (estimate >= 0)).sum())
        groups = np.arange(len(reference)) if options.groups is None else options.groups
        sizes = np.unique(groups, return_counts=True)[1]
        n_clusters = float(effective_clusters(sizes.astype(np.float64)))
        return Interval(float(measure(*masses)), np.nan, np.nan, len(reference), n_defined, n_clusters), float("nan")
    upper = float(measure(np.array([1.0, 0.0]), np.array([0.0, 1.0])))  # two histograms that share nothing
    interval = resampling.bootstrap_divergence(
        reference, estimate, n_bins=n_bins, divergence=measure, upper=upper, **options._asdict()
    )
    null = resampling.null_divergence(
        reference,
        estimate,
        n_bins=n_bins,
        divergence=measure,
        n_permutations=options.n_resamples,
        seed=options.seed,
        units=options.groups,
    )
    return interval, null


def _per_item(pairs: _Pairs, scores: Mapping[str, FloatArray], names: Sequence[str]) -> list[dict[str, float]]:
    columns: dict[str, FloatArray] = {}
    for name, values in scores.items():
        columns[name] = values
        if name in _RATES:
            columns[f"{name}_reference"] = pairs.rows[f"{name}_reference"]
    for name in names:
        if name in FEATURES:
            true, filled = pairs.features[name]
            columns |= {FEATURES[name]: filled, f"{FEATURES[name]}_reference": true}
    if "interval_divergence" in names:
        # of an item alone, its intervals show best in how many of them are none
        rates = (melodic_intervals.repeated_rows(middles)[0] for middles in (pairs.middles, pairs.true))
        columns |= dict(zip(("repeated_note_rate", "repeated_note_rate_reference"), rates, strict=True))
    rows = zip(*(values.tolist() for values in columns.values()), strict=True)
    return [dict(zip(columns, row, strict=True)) for row in rows]
