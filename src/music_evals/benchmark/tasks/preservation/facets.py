"""What readers can hold: one score a facet, 0 at unrelated music and 1 at the same music of the user's own corpus.

A facet is the mean of the positions of its metrics between the two controls of the run (`stats.calibration`), so that
it follows from the means in the tables. The metrics are those of the run, and of its auxiliary ones those of `BESIDE`;
one whose controls overlap or lie next to each other is left out of it for all systems, and named, and so are those
of `NOT_COUNTED`, and sections where most of the music cannot be cut. There is no score over facets unless it is asked
for: `grade`. Variants of the authors have their own metrics alone.

Beside it stands what the controls of this very run say of its scores: how far from their ends unrelated music and the
same music lie, and how many of the unrelated pairs share key or tempo.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from music_evals.benchmark.formats import counted
from music_evals.benchmark.score_table import ScoreTable
from music_evals.benchmark.tasks.preservation.controls import shares_key, shares_tempo, traits_of
from music_evals.benchmark.tasks.preservation.pairs import CEILING, CONTROLS, UNRELATED
from music_evals.deprecation import renamed_options
from music_evals.metrics.catalogue import CATALOGUE, Metric
from music_evals.pipelines.preservation import SURE_SECTIONS_SEC
from music_evals.stats.calibration import LEAST_AUC, Clustered, Position, combined_positions, separation

__all__ = [
    "BESIDE", "FAR_FROM_WORST", "LEAST_GAP", "NEAR_BEST", "NOT_COUNTED", "both_groups", "describe_controls", "facets",
    "grade", "on_shared",
]  # fmt: skip

BESIDE = ("swing_ratio", "ssm_correlation", "melody_contour_accuracy", "timbre_similarity")
"""Auxiliary metrics that count in their facet where a run has them, for what its other metrics do not hear: eighths
that swing, form where no sections are found, a lead that is taken out, and timbre."""

NOT_COUNTED = {
    "voicing_recall": "of renders that nothing was chosen on its AUC is 0.90, and unrelated music scores 0.87"
}
"""Metrics that do not count in their facet, and why."""

SECTIONS = ("segment_ari", "boundary_f_measure")
"""They count only where at least half of the originals can be cut: `SURE_SECTIONS_SEC` long, with sections of two
kinds. Elsewhere the correlation of self-similarity carries the facet, if the run has it."""

FAR_FROM_WORST, NEAR_BEST = 0.5, 0.9
"""Shares of the range of a score: unrelated music above the first, and the same music below the second, are named."""

LEAST_GAP = 0.1
"""Share of the range of a score by which the means of both controls must lie apart: places between two that are closer
are quotients of small numbers. It is not asked of scores without bounds."""

MANY_SHARED = 0.2
"""From this share of unrelated pairs on, a corpus is said to share its key or tempo."""

MANY_UNDEFINED = 0.2
"""From this share of scores without a value on, a facet is said to rest upon the others."""

_SHARED = {"key": (shares_key, "harmony and melody"), "tempo": (shares_tempo, "rhythm")}


def describe_controls(score_table: ScoreTable) -> dict[str, dict[str, Any]]:
    """Return how many unrelated pairs share key and tempo, of those with both known, and a note on it."""
    pairs = score_table.of(UNRELATED)
    if UNRELATED not in score_table.controls or not len(pairs):
        return {}
    pairs = pairs.take(~pairs.failed)
    sides = [
        [traits_of(score_table.outlines.get(pair[side]["content"])) for side in ("reference", "estimate")]
        for pair in pairs
    ]
    shared: dict[str, dict[str, int]] = {}
    for trait, (shares, _) in _SHARED.items():
        known = [is_shared for is_shared in (shares(*both) for both in sides) if is_shared is not None]
        shared[trait] = {"shared": sum(known), "known": len(known)}
    alike = [f"{n['shared']} of {n['known']} in one {trait}" for trait, n in shared.items() if n["shared"]]
    return {UNRELATED: {"shared": shared, "note": f"[{', '.join(alike)}]" if alike else ""}}


def on_shared(about: Mapping[str, Any]) -> Iterator[str]:
    """Yield what a reader should know of unrelated pairs that share key or tempo."""
    for trait, (_, facet) in _SHARED.items():
        n = about.get("shared", {}).get(trait, {"shared": 0, "known": 0})
        if n["shared"] > MANY_SHARED * n["known"]:
            yield (
                f"originals of this corpus share their {trait}: {n['shared']} of {n['known']} pairs of {UNRELATED} are "
                f"in one {trait}, though chosen to differ; their scores of {facet} may lie above those of chance"
            )


def both_groups(score_table: ScoreTable) -> npt.NDArray[np.int64]:
    """Return the groups of the two originals of each unrelated pair, shape (n, 2)."""
    same, unrelated = score_table.scored(CEILING), score_table.scored(UNRELATED)
    # every original stands in the first control: the group of one that is met
    groups = dict(zip((pair["reference"]["content"] for pair in same), same.codes("group").tolist(), strict=True))
    own = unrelated.codes("group").tolist()
    met = [groups.get(pair["estimate"]["content"], group) for pair, group in zip(unrelated, own, strict=True)]
    return np.column_stack([own, met]).astype(np.int64).reshape(len(own), 2)


@dataclasses.dataclass(frozen=True)
class Calibrated:
    """Metrics with their facets, the controls, how well each metric tells them apart, and which do not count."""

    scales: Mapping[str, Metric]
    same: Clustered
    unrelated: Clustered
    apart: Mapping[str, float]
    barred: Mapping[str, str]  # metrics that do not count whatever the controls say -> why

    @functools.cached_property
    def gaps(self) -> dict[str, float]:
        """Distance of the means of both controls, as a share of the range; infinite for scores without bounds."""
        pairs = zip(self.scales.items(), _means(self.same), _means(self.unrelated), strict=True)
        return {
            name: abs(_share(same, scale) - _share(unrelated, scale)) if np.isfinite(scale.high) else np.inf
            for (name, scale), same, unrelated in pairs
        }

    @functools.cached_property
    def used(self) -> list[str]:
        """Metrics that count: they tell the controls apart."""
        counted = {name: chance for name, chance in self.apart.items() if name not in self.barred}
        return [name for name, chance in counted.items() if chance >= LEAST_AUC and self.gaps[name] >= LEAST_GAP]

    def places(self, values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return where scores, shape (n, n_metrics), stand: 0 is the mean of unrelated, 1 that of the same music."""
        low, high = (np.array(_means(side)) for side in (self.unrelated, self.same))
        with np.errstate(invalid="ignore", divide="ignore"):  # of a metric that counts both differ
            placed: npt.NDArray[np.float64] = (values - low) / (high - low)
        return placed

    @property
    def by_facet(self) -> dict[str, list[str]]:
        """All metrics of each facet."""
        names = list(dict.fromkeys(scale.facet for scale in self.scales.values()))
        return {facet: [name for name, scale in self.scales.items() if scale.facet == facet] for facet in names}

    def weights(self, facet: str) -> npt.NDArray[np.float64]:
        """Return the share of each metric in a facet, shape (n_metrics,); all 0 where none is used."""
        used = [name in self.used and scale.facet == facet for name, scale in self.scales.items()]
        shares: npt.NDArray[np.float64] = np.array(used, dtype=np.float64) / max(sum(used), 1)
        return shares

    def whole(self, facets: Iterable[str]) -> npt.NDArray[np.float64]:
        """Return the share of each metric where these facets count alike; all 0 where one of them has no score."""
        rows = np.array([self.weights(facet) for facet in facets]).reshape(-1, len(self.scales))
        shares: npt.NDArray[np.float64] = rows.sum(axis=0) * bool(rows.any(axis=1).all())
        return shares


@renamed_options(found="score_table")
def facets(score_table: ScoreTable, *, confidence: float = 0.95) -> dict[str, Any]:
    """Return the calibrated scores of the facets, as results.json holds them; nothing without both controls.

    Parameters
    ----------
    score_table
        The records of a run.
    confidence
        Nominal coverage of the intervals.

    Returns
    -------
    dict
        ``scores``: system -> facet -> ``value`` (0 unrelated, 1 the same music, higher is better, not clipped),
        ``low``, ``high``, ``undefined`` (share of the scores of its metrics that have no value), ``n`` pairs and
        ``n_groups``; ``metrics``: facet -> ``used`` and ``left_out``, since its controls differ too little;
        ``separation``: metric -> the chance that the same music scores better than unrelated music; ``remarks``, in
        words. NaN where there is no score. Where the run names facets that the edits are meant to change, ``others``
        has these as ``intended`` and, as ``scores``, a cell for each system over the other facets, which count alike.
    """
    held = calibrated(score_table)
    if held is None:
        return {}
    weights = {facet: held.weights(facet) for facet in held.by_facet}
    intended = score_table.header.get("intended", ())
    others = [facet for facet in weights if facet not in intended]
    # the facets that were not meant to change, which count alike; NaN where one of them has no score
    whole = [held.whole(others)] if intended else []
    scores: dict[str, Any] = {}
    over_others: dict[str, Any] = {}
    for system in score_table.systems:
        if system not in CONTROLS:
            pairs = score_table.of(system)
            cells = _cells(pairs, held, [*weights.values(), *whole], confidence)
            scores[system] = dict(zip(weights, cells, strict=False))
            over_others[system] = cells[-1]
    return {
        "scores": scores,
        **({"others": {"intended": list(intended), "facets": others, "scores": over_others}} if intended else {}),
        "metrics": {
            facet: {
                "used": [name for name in names if name in held.used],
                "left_out": [name for name in names if name not in held.used],
            }
            for facet, names in held.by_facet.items()
        },
        "separation": dict(held.apart),
        "remarks": [*_on_range(held), *_on_facets(held, scores)],
    }


@renamed_options(found="score_table")
def grade(score_table: ScoreTable, *, confidence: float = 0.95) -> dict[str, Position]:
    """Return for each system one score over all facets, which count alike: the mean of what `facets` returns.

    A single number hides what a system changed. It is in no result and on no page, and only worked out here.

    Parameters
    ----------
    score_table
        The records of a run, as ``Outcome.scores`` or `benchmark.load.load_results` has them.
    confidence
        Nominal coverage of the intervals.

    Returns
    -------
    dict
        System -> `stats.calibration.Position`; NaN where a facet has no score. Empty without both controls.
    """
    held = calibrated(score_table)
    if held is None:
        return {}
    whole = [held.whole(held.by_facet)]
    scored = {system: score_table.scored(system) for system in score_table.compared}
    sides = {name: Clustered(pairs.values(*held.scales), pairs.codes("group")) for name, pairs in scored.items()}
    return {
        system: combined_positions(own, held.same, held.unrelated, whole, confidence=confidence)[0]
        for system, own in sides.items()
    }


def calibrated(score_table: ScoreTable) -> Calibrated | None:
    """Return the scale of a run between its two controls; None without both, and without a score that has a side."""
    if not {CEILING, UNRELATED} <= set(score_table.controls):
        return None
    header = score_table.header
    scales = sided(header["metrics"], header["companions"], header["variant"])
    same, unrelated = score_table.scored(CEILING), score_table.scored(UNRELATED)
    return calibrate(
        scales,
        Clustered(same.values(*scales), same.codes("group")),
        Clustered(unrelated.values(*scales), both_groups(score_table)),
        _barred(score_table, same, scales) if header["variant"] == "corrected" else {},
    )


def sided(metrics: Iterable[str], auxiliary: Iterable[str], variant: str) -> dict[str, Metric]:
    """Return the metrics of facets of which more, or less, is better: with `BESIDE` under ``"corrected"``."""
    beside = [name for name in auxiliary if name in BESIDE and variant == "corrected"]
    every = {name: CATALOGUE[name] for name in (*metrics, *beside)}
    return {name: scale for name, scale in every.items() if scale.direction in {"higher", "lower"}}


def calibrate(
    scales: Mapping[str, Metric], same: Clustered, unrelated: Clustered, barred: Mapping[str, str]
) -> Calibrated | None:
    """Return the scale between the scores of two controls, shape (n, n_metrics); None without a metric."""
    sides = [np.asarray(side.values) for side in (same, unrelated)]
    apart = {
        name: separation(*(column[:, place] for column in sides), lower_is_better=scale.direction == "lower")
        for place, (name, scale) in enumerate(scales.items())
    }
    return Calibrated(scales, same, unrelated, apart, barred) if scales else None


def _barred(score_table: ScoreTable, same: ScoreTable, scales: Mapping[str, Metric]) -> dict[str, str]:
    """Return the metrics that do not count, and why."""
    originals = [score_table.outlines.get(content) for content in {pair["reference"]["content"] for pair in same}]
    cut = [
        outline["duration_sec"] >= SURE_SECTIONS_SEC and len({label for *_, label in outline.get("segments", ())}) > 1
        for outline in originals
        if outline is not None
    ]
    barred = dict(NOT_COUNTED)
    if "ssm_correlation" in scales and 2 * sum(cut) < len(cut):
        why = f"{len(cut) - sum(cut)} of {len(cut)} originals are too short or too even to be cut"
        barred |= dict.fromkeys(SECTIONS, why)
    return barred


def _cells(
    pairs: ScoreTable, held: Calibrated, weights: Sequence[npt.NDArray[np.float64]], confidence: float
) -> list[dict[str, Any]]:
    """Return scores, which share of the scores of their metrics has no value, and of how many pairs and groups."""
    readable = pairs.take(~pairs.failed)
    clustered = Clustered(readable.values(*held.scales), readable.codes("group"))
    positions = combined_positions(clustered, held.same, held.unrelated, np.array(weights), confidence=confidence)
    n_defined = np.count_nonzero(~np.isnan(clustered.values), axis=0)
    n_groups = len(np.unique(np.asarray(clustered.groups)))
    cells = []
    for position, row in zip(positions, weights, strict=True):
        share = 1 - n_defined[row > 0] / max(len(pairs), 1)  # what failed has no value either
        undefined = float(share.mean()) if len(share) else np.nan
        value = {"value": position.estimate, "low": position.low, "high": position.high}
        cells.append(value | {"undefined": undefined, "n": len(pairs), "n_groups": n_groups})
    return cells


def _on_range(held: Calibrated) -> Iterator[str]:
    """Yield which scores do not begin or end where their range does, by the controls of this run."""
    for side, sign, bound, where in (
        (held.unrelated, 1, FAR_FROM_WORST, f"{UNRELATED} of this run reaches "),
        (held.same, -1, NEAR_BEST, f"{CEILING} of this run reaches no more than "),
    ):
        named = [
            f"{mean:.2f} in {scale.heading}"
            for scale, mean in zip(held.scales.values(), _means(side), strict=True)
            if np.isfinite(scale.high) and scale.direction == "higher" and sign * (_share(mean, scale) - bound) > 0
        ]
        if named:
            yield f"{where}{_listed(named)}: read each score between the two controls"


def _means(side: Clustered) -> list[float]:
    columns = np.asarray(side.values).T
    return [float(column[~np.isnan(column)].mean()) if (~np.isnan(column)).any() else np.nan for column in columns]


def _share(mean: float, scale: Metric) -> float:
    # scores that are below 0 for what is worse than chance begin at 0
    return (mean - max(scale.low, 0.0)) / (scale.high - max(scale.low, 0.0))


def _on_facets(held: Calibrated, scores: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> Iterator[str]:
    """Yield which metrics and scores the summary does without."""
    dropped = []
    barred = [f"{held.scales[name].heading} ({why})" for name, why in held.barred.items() if name in held.scales]
    if barred:
        yield f"not in the summary by facet: {', '.join(barred)}"
    for name, auc in held.apart.items():
        why = f"AUC {auc:.2f}" if auc < LEAST_AUC else f"means {100 * held.gaps[name]:.0f} % of its range apart"
        if name not in held.used and name not in held.barred:
            dropped.append(f"{held.scales[name].heading} ({'too few' if np.isnan(auc) else why})")
    if dropped:
        yield (
            f"left out of the summary by facet, since they hardly tell {CEILING} from {UNRELATED} in this run: "
            f"{', '.join(dropped)}"
        )
    thin = [
        f"{100 * cell['undefined']:.0f} % of {facet} of {system}"
        for system, cells in scores.items()
        for facet, cell in cells.items()
        if cell["undefined"] > MANY_UNDEFINED
    ]
    if thin:
        yield f"the summary by facet rests upon what is defined; without a value are {_listed(thin)}"
    if len(np.unique(np.asarray(held.unrelated.groups))) == 2:
        yield "two originals give the summary by facet no interval: without one of them there is no unrelated music"


def _listed(parts: Sequence[str], most: int = 6) -> str:
    """Return some of many parts as one text."""
    more = len(parts) - most
    shown = [*parts[:most], counted(more, "others")] if more > 0 else list(parts)
    return " and ".join(filter(None, [", ".join(shown[:-1]), shown[-1]]))
