"""MUSIB's findings as hypotheses: what each says of differences between systems, and what the intervals say to it.

How differences become verdicts is that of all benchmarks: `music_evals.stats.multiplicity`. Differences on one data
set are paired by window; between two data sets nothing pairs, and the intervals of both sides are put together.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
from benchmarks.musib.judging import Judged, design_of
from benchmarks.musib.tables import Row, interval_of_mean, span_of

from music_evals.benchmark.aggregate import over_seeds, side_by_side
from music_evals.benchmark.formats import markdown_rows
from music_evals.benchmark.tasks.inpainting.task import HEADINGS
from music_evals.metrics.catalogue import metric_of
from music_evals.metrics.divergence import histogram_bins, n_bins
from music_evals.pipelines.inpainting import FEATURES
from music_evals.protocols import CONTROL
from music_evals.stats import swap_test_divergence
from music_evals.stats.multiplicity import ERROR_RATE, verdict

Floats = npt.NDArray[np.float64]

N_RESAMPLES: Final = 4000
"""The ends of an interval of 99.7 % need more of them than those of 95 %."""

COLUMNS = (
    "hypothesis",
    "data",
    "a",
    "b",
    "metric",
    "difference",
    "low",
    "high",
    "confidence",
    "n",
    "n_groups",
    "sizes",
)
"""Columns of differences.csv."""

ACCURACIES = ("position_score", "pitch_accuracy", "rhythm_accuracy")


class Hypothesis(NamedTuple):
    """A finding and how it is tested."""

    key: str
    claim: str
    source: str  # where it is published, or that it is not
    measured: str
    every: bool = True  # whether all parts must hold, or one of them
    untestable: str = ""  # why no run can test it; empty where one can


HYPOTHESES: Final = (
    Hypothesis(
        "vli_best_on_folk",
        "VLI is the best model on folk tunes, but for silence.",
        "Table 2 and text; groove is a tie in the paper.",
        "VLI against each other model: position, pitch and rhythm, and the divergence of pitch classes.",
    ),
    Hypothesis(
        "inpaintnet_best_on_jsb",
        "InpaintNet is the best model on the chorales.",
        "Table 3 and text; by the thesis not in pitch classes, which are left out here.",
        "InpaintNet against each other model: position, pitch and rhythm, divergences of silence and groove.",
    ),
    Hypothesis(
        "vli_worst_on_jsb",
        "VLI is the worst model on the chorales.",
        "Table 3 of the paper; the thesis prints other numbers for VLI, which contradict it.",
        "Each other model against VLI: position, pitch and rhythm.",
    ),
    Hypothesis(
        "sketchnet_best_rhythm_on_few_tunes",
        "On 171 folk tunes SketchNet is the best at position and rhythm.",
        "Table 4.",
        "SketchNet against each other design, all trained on 171 tunes at equal budgets: position and rhythm.",
    ),
    Hypothesis(
        "position_before_rhythm_before_pitch",
        "Every model is better at positions than at rhythm, and at rhythm than at pitch.",
        "Text; two of the printed numbers contradict it, VLI's on both sets of folk tunes.",
        "For each model and data set: position less rhythm, rhythm less pitch, on the windows that define both.",
    ),
    Hypothesis(
        "more_data_helps",
        "More tunes make better models.",
        "Tables 2 and 4, all tunes against 171; there the number of steps differs too.",
        "All tunes less 171 of them, at equal steps: note F1, and the model's own loss with its sign turned.",
    ),
    Hypothesis(
        "a_model_beats_copying_jsb",
        "A trained model fills the chorales better than copying the four measures before.",
        "Not published: the tables have no baseline.",
        "Each model against copy_past: note F1.",
        every=False,
    ),
    Hypothesis(
        "a_model_beats_copying_folk",
        "A trained model fills folk tunes better than copying the four measures before.",
        "Not published: the tables have no baseline.",
        "Each model against copy_past: note F1.",
        every=False,
    ),
    Hypothesis(
        "a_model_beats_every_rule",
        "A trained model fills the chorales better than the best rule that needs no network.",
        "Not published; the rule is the one that is best on validation.",
        "Each model against that rule: note F1.",
        every=False,
    ),
    Hypothesis(
        "folk_helps_jsb",
        "A model that was trained on folk tunes first fills chorales better.",
        "Not published.",
        "Folk, then chorales, less chorales alone with as many steps on them: note F1.",
    ),
    Hypothesis(
        "every_model_drops_on_jsb",
        "Every model is worse on chorales than on folk tunes, but for InpaintNet's rhythm.",
        "Tables 2 and 3, and text.",
        "For each design, at equal steps: folk tunes less chorales, position, pitch and rhythm (not InpaintNet's).",
    ),
    Hypothesis(
        "vli_drops_most_on_jsb",
        "VLI loses the most from folk tunes to chorales.",
        "Tables 2 and 3, and text.",
        "VLI's drop, at equal steps, less that of each other design: position, pitch and rhythm.",
    ),
    Hypothesis(
        "inpaintnet_most_stable",
        "InpaintNet is the most stable across data sets.",
        "Text; in tables 2 and 3 its numbers change the least.",
        "How much each other design changes from folk to chorales, up or down, at equal steps, less InpaintNet's.",
    ),
    Hypothesis(
        "sketchnet_good_at_silence",
        "SketchNet is good at silence: first on folk tunes, second to InpaintNet on the chorales.",
        "Tables 2 and 3, and text.",
        "Divergence of silence: SketchNet against each other model on folk tunes, against all but InpaintNet there.",
    ),
    Hypothesis(
        "few_folk_tunes_above_jsb",
        "With as few tunes, folk is still above chorales: the complexity of the melody counts besides the amount.",
        "Tables 3 and 4, and text; the printed InpaintNet contradicts it in pitch and rhythm.",
        "For each design, trained on 171 tunes or 136 chorales, at equal steps: folk less chorales, the same scores.",
    ),
    Hypothesis(
        "divergences_nearer_to_listeners",
        "Divergences are nearer to human judgement than the scores of notes.",
        "Thesis, section 5.1.1, as an expectation.",
        "How each score goes with ratings of filled middles by listeners.",
        untestable="there are no ratings, neither published nor ours (`music-evals listening-test` collects some)",
    ),
)


class Scores(NamedTuple):
    """What one system scored: an array of each score, in the order of the items."""

    items: Sequence[str]
    songs: Sequence[str]
    values: Mapping[str, Floats]
    size: str = ""


class Part(NamedTuple):
    """A difference that a hypothesis claims to be above 0."""

    hypothesis: str
    data: str
    a: str
    b: str
    metric: str
    sizes: str
    # Confidence -> difference, low, high, items, songs.
    measure: Any


# --- parts


EACH: Final = "each model"
BEST_RULE: Final = "the best baseline on validation"

_CLAIMS: Final = (
    ("vli_best_on_folk", "folk", "vli", EACH, (*ACCURACIES, "pitch_class_divergence")),
    ("inpaintnet_best_on_jsb", "jsb", "inpaintnet", EACH, (*ACCURACIES, "silence_divergence", "groove_divergence")),
    ("vli_worst_on_jsb", "jsb", EACH, "vli", ACCURACIES),
    ("a_model_beats_copying_jsb", "jsb", EACH, "copy_past", ("note_f1",)),
    ("a_model_beats_copying_folk", "folk", EACH, "copy_past", ("note_f1",)),
    ("a_model_beats_every_rule", "jsb", EACH, BEST_RULE, ("note_f1",)),
    ("sketchnet_good_at_silence", "folk", "sketchnet", EACH, ("silence_divergence",)),
    ("sketchnet_good_at_silence", "jsb", "sketchnet", "vli", ("silence_divergence",)),
    ("sketchnet_good_at_silence", "jsb", "sketchnet", "anticipation_rnn", ("silence_divergence",)),
)
"""Hypothesis, data, who is claimed to be better, than whom, and at which scores."""


def judged_parts(honest: Mapping[str, Judged]) -> Iterator[Part]:
    """Yield the parts that the honest runs decide; `honest` holds them by the key of the data."""
    for hypothesis, key, better, worse, metrics in _CLAIMS:
        if key in honest:
            for a, b in itertools.product(_picked(honest[key], better), _picked(honest[key], worse)):
                if a != b:
                    yield from _against(hypothesis, honest[key], a, b, metrics)
    for run in honest.values():
        for system in _models(run).values():
            for better, worse in (("position_score", "rhythm_accuracy"), ("rhythm_accuracy", "pitch_accuracy")):
                yield _within(run, system, better, worse)


def _picked(run: Judged, who: str) -> list[str]:
    """Return the systems that a claim is about, of those that have been judged."""
    models = _models(run)
    if who == EACH:
        return list(models.values())
    name = run.results["best_baseline"].get("note_f1") if who == BEST_RULE else models.get(who, who)
    return [name] if name in run.results["systems"] else []


def _models(run: Judged) -> dict[str, str]:
    """Return design -> system of a run."""
    found = {system: design_of(run.results, system) for system in run.results["systems"]}
    return {design.name: system for system, design in found.items() if design is not None}


def _against(hypothesis: str, run: Judged, a: str, b: str, metrics: Sequence[str]) -> Iterator[Part]:
    sizes = "; ".join(f"{name}: {run.sizes[name]}" for name in (a, b) if name in run.sizes)
    for metric in metrics:

        def measure(confidence: float, metric: str = metric) -> tuple[float, ...]:
            if metric in FEATURES:
                return divergence_difference(run.found, a, b, metric, confidence)
            return mean_difference(scores_of(run, a), scores_of(run, b), (metric, metric), confidence)

        yield Part(hypothesis, run.plan.data.key, a, b, metric, sizes, measure)


def _within(run: Judged, system: str, better: str, worse: str) -> Part:
    def measure(confidence: float) -> tuple[float, ...]:
        scores = scores_of(run, system)
        return mean_difference(scores, scores, (better, worse), confidence)

    what = f"{better} - {worse}"
    key = run.plan.data.key
    return Part("position_before_rhythm_before_pitch", key, system, system, what, run.sizes[system], measure)


def scores_of(run: Judged, system: str) -> Scores:
    """Return the item scores of a system, the mean over its seeds."""
    items = list(run.found.item_rows)
    metrics = [name for name in run.found.metrics if name not in FEATURES]
    values = {name: run.found.at(items, system).values(name)[:, 0] for name in metrics}
    return Scores(items, run.found.songs, values, run.sizes.get(system, ""))


# --- differences


def mean_difference(a: Scores, b: Scores, metrics: tuple[str, str], confidence: float) -> tuple[float, ...]:
    """Return the mean of a's less b's over the items of both, its interval, and the numbers of items and songs."""
    place = {item: row for row, item in enumerate(b.items)}
    rows = [(row, place[item]) for row, item in enumerate(a.items) if item in place]
    if not rows:
        message = "two systems that have no item in common cannot be compared"
        raise ValueError(message)
    first, second = (np.array(side, dtype=np.intp) for side in zip(*rows, strict=True))
    differences = a.values[metrics[0]][first] - b.values[metrics[1]][second]
    songs = np.array(a.songs)[first]
    (low, high), (other_low, other_high) = map(span_of, metrics)
    span = (low - other_high, high - other_low)
    found = interval_of_mean(differences, songs.tolist(), confidence, span)
    defined = ~np.isnan(differences)
    return found.estimate, found.low, found.high, int(defined.sum()), len(set(songs[defined].tolist()))


def drop(a: Scores, b: Scores, metric: str, confidence: float) -> tuple[float, ...]:
    """Return the mean of a less that of b, on other music, its interval, and the numbers of items and songs of both."""
    sides = [(scores.values[metric], scores.songs) for scores in (a, b)]
    return _between(sides[0], sides[1], span_of(metric), confidence)


def drop_difference(
    more: tuple[Scores, Scores], less: tuple[Scores, Scores], metric: str, confidence: float, *, signed: bool = True
) -> tuple[float, ...]:
    """Return how much further one system drops from its first music to its second than another: two scores of each.

    Where not `signed`, how much more it changes, up or down: the sign of each change is taken as it is measured.
    """
    changes = [
        float(np.nanmean(first.values[metric]) - np.nanmean(second.values[metric])) for first, second in (more, less)
    ]
    up, down = (1.0 if signed else math.copysign(1.0, change) for change in changes)
    sides = []
    for one, other in zip(more, less, strict=True):  # on the same items, so that they are paired
        if list(one.items) != list(other.items):
            message = "two systems are compared on the same items only"
            raise ValueError(message)
        sides.append((up * one.values[metric] - down * other.values[metric], one.songs))
    ends = [up * first - down * second for first in span_of(metric) for second in span_of(metric)]
    return _between(sides[0], sides[1], (min(ends), max(ends)), confidence)


def _between(
    first: tuple[Floats, Sequence[str]],
    second: tuple[Floats, Sequence[str]],
    span: tuple[float, float],
    confidence: float,
) -> tuple[float, ...]:
    """Return the difference of two means of unrelated songs.

    Its interval is put together from theirs: each limit lies as far from the difference as the root of the summed
    squares of the distances that the two limits have from their means (Zou and Donner, Statistics in Medicine, 2008).
    """
    a, b = (interval_of_mean(values, list(songs), confidence, span) for values, songs in (first, second))
    difference = a.estimate - b.estimate
    low = difference - math.hypot(a.estimate - a.low, b.high - b.estimate)
    high = difference + math.hypot(a.high - a.estimate, b.estimate - b.low)
    songs = [{song for song, value in zip(names, values, strict=True) if not math.isnan(value)}
             for values, names in (first, second)]  # fmt: skip
    return difference, low, high, a.n_defined + b.n_defined, sum(map(len, songs))


def divergence_difference(found: Any, a: str, b: str, metric: str, confidence: float) -> tuple[float, ...]:
    """Return how much nearer a is to the reference than b: b's divergence less a's, with its interval by songs."""
    feature, variant = FEATURES[metric], found.header["variant"]
    items, size = list(found.item_rows), n_bins(variant)
    reference = found.at(items, CONTROL).values(feature)[:, 0]
    of_a, of_b = (found.at(items, system).by_seed(feature) for system in (a, b))
    kept = ~np.isnan(reference) & ~np.isnan(np.concatenate([of_a, of_b])).any(axis=0)
    songs = np.array(found.songs)[kept]
    n_rows = math.lcm(len(of_a), len(of_b))  # each seed of a system stands in equally many rows

    def laid(values: Floats) -> npt.NDArray[np.int64]:
        return side_by_side(histogram_bins(values[:, kept], variant=variant), n_rows, size)

    test = swap_test_divergence(
        laid(reference[None]),
        laid(of_b),
        laid(of_a),
        np.tile(songs, n_rows).tolist(),
        n_bins=n_rows * size,
        divergence=over_seeds(n_rows, size),
        upper=metric_of(metric).high,
        confidence=confidence,
        n_resamples=1,  # the p-value is not read
        n_bootstrap=N_RESAMPLES,
    )
    return test.difference, test.low, test.high, int(kept.sum()), len(set(songs.tolist()))


def difference_rows(parts: Sequence[Part]) -> Iterator[Row]:
    """Yield the differences of all parts, each with an interval that holds with the others of its hypothesis."""
    counts: dict[str, int] = {}
    for part in parts:
        counts[part.hypothesis] = counts.get(part.hypothesis, 0) + 1
    for part in parts:
        confidence = 1 - ERROR_RATE / counts[part.hypothesis]
        difference, low, high, n, n_groups = part.measure(confidence)
        yield {
            "hypothesis": part.hypothesis,
            "data": part.data,
            "a": part.a,
            "b": part.b,
            "metric": part.metric,
            "difference": _defined(difference),
            "low": _defined(low),
            "high": _defined(high),
            "confidence": confidence,
            "n": n,
            "n_groups": n_groups,
            "sizes": part.sizes,
        }


def _defined(value: float) -> float | None:
    return None if math.isnan(value) else float(value)


# --- what they say


def verdict_table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return every hypothesis with its verdict, from the rows of differences.csv alone."""
    lines = [["hypothesis", "where it is from", "what is measured", "differences", "verdict"], ["---"] * 5]
    for hypothesis in HYPOTHESES:
        own = [row for row in rows if row["hypothesis"] == hypothesis.key]
        intervals = [(_read(row["low"]), _read(row["high"])) for row in own]
        said = f"**{verdict(intervals, every=hypothesis.every)}**{_caveat(own)}"
        if hypothesis.untestable:
            said = f"**not testable**: {hypothesis.untestable}"
        lines.append([
            f"**{hypothesis.key}** {hypothesis.claim}", hypothesis.source, hypothesis.measured, _counted(intervals),
            said,
        ])  # fmt: skip
    return markdown_rows(lines)


def _counted(intervals: Sequence[tuple[float | None, float | None]]) -> str:
    """Return how many intervals lie above 0, below, and across, and how many differences have none."""
    ends = [(low, high) for low, high in intervals if low is not None and high is not None]
    above, below = sum(low > 0 for low, _ in ends), sum(high < 0 for _, high in ends)
    counts = f"{above} above 0, {below} below, {len(ends) - above - below} across" if intervals else ""
    return f"{counts}, {len(intervals) - len(ends)} without interval" if len(ends) < len(intervals) else counts


def _caveat(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return for which models alone the verdict is, where one of them is small."""
    return (
        " of designs of which some are small, not of the published ones"
        if any("small" in str(row["sizes"]) for row in rows)
        else ""
    )


def part_table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the differences of all hypotheses."""
    head = ["hypothesis", "data", "a", "b", "score", "a better than b by", "interval", "songs", "windows"]
    lines = [head, [*["---"] * 5, "---:", "---", "---:", "---:"]]
    for row in rows:
        numbers = [_read(row[key]) for key in ("difference", "low", "high")]
        shown, low, high = ("n/a" if value is None else f"{value:+.3f}" for value in numbers)
        metric = HEADINGS.get(row["metric"], row["metric"])
        interval = "n/a" if None in numbers[1:] else f"{low} to {high}"
        counts = [str(row["n_groups"]), str(row["n"])]
        lines.append(
            [row["hypothesis"], row["data"], f"`{row['a']}`", f"`{row['b']}`", metric, shown, interval, *counts]
        )
    return markdown_rows(lines)


def _read(value: Any) -> float | None:
    return None if value in {"", None} else float(value)
