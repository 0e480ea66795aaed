"""Success over preservation: a point for each system, and whether it does better than the controls in either.

Across is how much of what was asked is there (`edit_success`); up is the mean of the facets between unrelated music (0)
and the same music (1), as `facets` has them, or one of them. A score that an edit's targets are meant to change
(`metrics.edit_success.MEANT_TO_CHANGE`) says nothing of damage: it does not count for that edit, and for none where all
edits of a system are meant to change it. Nor does a facet that the run says is meant to change, or that has no score
left. Both are over the edits whose success is measured.

The two are never made one number: what a success is worth in damage is a question of the task, every weight would be
ours, and with most weights a system that does next to nothing wins. So the only order is the Pareto front: those that
no other beats in both, of those whose success can be told from that of the music unchanged. Controls are in no order.

System and control are compared source by source, by the means of their edits, as they need not have the same number.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from music_evals.annotations import targets_of
from music_evals.benchmark.formats import SIGNIFICANCE
from music_evals.benchmark.score_table import OUTSIDE, Mask, ScoreTable
from music_evals.benchmark.tables import PLANE_AXES
from music_evals.benchmark.tasks.preservation.facets import Calibrated, calibrated
from music_evals.benchmark.tasks.preservation.pairs import CEILING
from music_evals.metrics.edit_success import MEANT_TO_CHANGE
from music_evals.pipelines.edit_success import SUCCESS
from music_evals.stats import holm, mean_interval, paired_mean_tests
from music_evals.stats.calibration import Clustered, combined_positions
from music_evals.stats.clusters import Floats, Integers
from music_evals.stats.plane import bootstrap_ellipse, pareto_front

__all__ = ["Edits", "plane", "plane_of"]


class Edits(NamedTuple):
    """The edits of one system."""

    role: str
    success: Floats
    """Shape (n,); NaN where it is not measured."""
    values: Floats
    """Scores of preservation, shape (n, n_metrics)."""
    groups: Integers
    """Source of each edit, by numbers that all systems share."""
    targets: Sequence[str] = ()
    """What was asked of each edit, in the form of `annotations.targets_of`; nothing where that is not known."""


class _Measured(NamedTuple):
    """The edits of one system whose success is measured."""

    role: str
    success: Floats
    values: Floats  # NaN where an edit is meant to change it
    groups: Integers
    changed: Mask  # metrics that all of them are meant to change, shape (n_metrics,)


def plane_of(score_table: ScoreTable, **options: Any) -> dict[str, Any]:
    """Return the plane of a run with targets, see `plane`; nothing without both controls."""
    held = calibrated(score_table)
    if held is None:
        return {}
    systems = {}
    for name, role in score_table.roles.items():
        pairs = score_table.scored(name)
        success = pairs.values(SUCCESS)[:, 0]
        groups = pairs.codes("group").astype(np.int64)
        targets = [pair.get("targets", "") for pair in pairs]
        systems[name] = Edits(role, success, pairs.values(*held.scales), groups, targets)
    return plane(held, systems, intended=score_table.header.get("intended", ()), **options)


def plane(
    held: Calibrated,
    systems: Mapping[str, Edits],
    *,
    intended: Sequence[str] = (),
    confidence: float = 0.95,
    n_resamples: int = 1000,
    seed: int = 0,
) -> dict[str, Any]:
    """Return the points of systems and what they are compared with, as results.json holds them.

    `held` is the scale of preservation, `intended` names facets that the edits were meant to change; tests take ten
    times as many resamples as ellipses. ``facets``: those in the mean. ``systems``: name -> ``role``, ``n`` edits of
    ``n_groups`` sources, ``front``, and cells with ``value``, ``low`` and ``high``: ``success``, ``preservation`` and,
    where there are several, each facet, with ``ellipse`` (`stats.plane`). ``tests``: ``system``, ``control``, ``axis``,
    the fields of `stats.PairedTest`, ``p_holm`` over all of them, and ``verdict``: ``"better"``, ``"worse"``,
    ``"not told apart"``, ``"undecided"`` where test and interval disagree, or ``"not compared"``. Nothing where no
    facet has a score, or no system an edit whose success is measured.
    """
    measured = {name: own for name, edits in systems.items() if len((own := _measured(edits, held)).success)}
    ranked = [name for name, edits in measured.items() if edits.role not in OUTSIDE]
    changed = np.logical_or.reduce([measured[name].changed for name in ranked]) if ranked else ()
    meant = [name for name, is_changed in zip(held.scales, changed, strict=False) if is_changed]
    held = dataclasses.replace(held, barred={**held.barred, **dict.fromkeys(meant, "edits are meant to change it")})
    facets = [facet for facet in held.by_facet if facet not in intended and held.weights(facet).any()]
    if not facets or not ranked:
        return {}
    ups = {PLANE_AXES[1]: held.whole(facets)} | ({facet: held.weights(facet) for facet in facets} if facets[1:] else {})
    options = {"confidence": confidence, "n_resamples": n_resamples, "seed": seed}
    points = {name: _point(edits, held, ups, **options) for name, edits in measured.items()}
    sources = {name: _by_source(edits, held, facets) for name, edits in measured.items()}
    controls = [name for name, edits in measured.items() if edits.role == "control"]
    tests = _tests(sources, ranked, controls, **options)
    idle = {
        test["system"]
        for test in tests
        if (test["control"], test["axis"]) == (CEILING, "success") and test["verdict"] not in {"better", "undecided"}
    }
    places = [[np.nan if name in idle else points[name][axis]["value"] for axis in PLANE_AXES] for name in ranked]
    for name, is_on in zip(ranked, pareto_front(places).tolist(), strict=True):
        points[name]["front"] = is_on
    return {"facets": facets, "systems": points, "tests": tests}


def _measured(edits: Edits, held: Calibrated) -> _Measured:
    """Return the edits whose success is measured, without the scores that each is meant to change."""
    chosen = np.flatnonzero(~np.isnan(edits.success))
    meant = np.zeros((len(chosen), len(held.scales)), dtype=bool)
    for row, place in enumerate(chosen.tolist() if edits.targets else ()):
        changed = frozenset[str]().union(*(MEANT_TO_CHANGE[target.kind] for target in targets_of(edits.targets[place])))
        meant[row] = [name in changed for name in held.scales]
    always: Mask = np.logical_and.reduce(meant, axis=0)
    # a control has a point whatever its own edits, of which there are fewer, are meant to change
    values = np.where(meant & ~always, np.nan, edits.values[chosen])
    return _Measured(edits.role, edits.success[chosen], values, edits.groups[chosen], always)


def _tests(
    sources: Mapping[str, tuple[Integers, Floats]], systems: Sequence[str], controls: Sequence[str], **options: Any
) -> list[dict[str, Any]]:
    """Return the tests of each system against each control, in both."""
    options["n_resamples"] *= 10  # as `aggregate.Resampling.of_tests`
    tests: list[dict[str, Any]] = []
    for system in systems:
        for control in controls:
            _, first, second = np.intersect1d(sources[system][0], sources[control][0], return_indices=True)
            sides = sources[system][1][first], sources[control][1][second]
            made = paired_mean_tests(*sides, None, spans=[(0.0, 1.0), (-math.inf, math.inf)], **options)
            about = {"system": system, "control": control}
            tests += [about | {"axis": axis} | test._asdict() for axis, test in zip(PLANE_AXES, made, strict=True)]
    for test, p_holm in zip(tests, holm([test["p_value"] for test in tests]).tolist(), strict=True):
        test |= {"p_holm": p_holm, "verdict": _verdict(test, p_holm)}
    return tests


def _point(edits: _Measured, held: Calibrated, ups: Mapping[str, Floats], **options: Any) -> dict[str, Any]:
    """Return the cells of a system: success, and each way up with the ellipse about the two."""
    confidence = options["confidence"]
    across = mean_interval(edits.success, edits.groups, confidence=confidence, span=(0.0, 1.0))
    clustered = Clustered(edits.values, edits.groups)
    positions = combined_positions(clustered, held.same, held.unrelated, [*ups.values()], confidence=confidence)
    places = held.places(edits.values)
    columns = np.column_stack([edits.success, np.where(np.isfinite(places), places, np.nan)])
    point: dict[str, Any] = {
        "role": edits.role,
        "front": False,
        "n": len(edits.success),
        "n_groups": len(np.unique(edits.groups)),
        PLANE_AXES[0]: {"value": across.estimate, "low": across.low, "high": across.high},
    }
    for (name, shares), position in zip(ups.items(), positions, strict=True):
        weights = [[1.0, *np.zeros(len(shares))], [0.0, *shares / shares.sum()]]
        ellipse = bootstrap_ellipse(columns, edits.groups, weights, **options)
        cell = {"value": position.estimate, "low": position.low, "high": position.high}
        point[name] = cell | {"ellipse": ellipse._asdict()}
    return point


def _by_source(edits: _Measured, held: Calibrated, facets: Sequence[str]) -> tuple[Integers, Floats]:
    """Return sources and, for each, the means over its edits of success and preservation, shape (sources, 2)."""
    places = held.places(edits.values)
    # of an edit, the mean of the facets that it defines, each the mean of its metrics
    columns = [places[:, held.weights(facet) > 0] for facet in facets]
    preservation = mean_of_rows(np.column_stack([mean_of_rows(own) for own in columns]))
    names, codes = np.unique(edits.groups, return_inverse=True)
    by_edit = np.column_stack([edits.success, preservation])
    return names, np.array([mean_of_rows(by_edit[codes == code].T) for code in range(len(names))])


def mean_of_rows(rows: Floats) -> Floats:
    """Return the mean of what each row defines; NaN where that is nothing."""
    defined = ~np.isnan(rows)
    n = np.count_nonzero(defined, axis=1)
    means: Floats = np.divide(np.nansum(rows, axis=1), n, out=np.full(len(rows), np.nan), where=n > 0)
    return means


def _verdict(test: Mapping[str, Any], p_holm: float) -> str:
    if math.isnan(p_holm):
        return "not compared"
    is_significant = p_holm < SIGNIFICANCE
    # without an interval all sources differ alike, or there is only one
    is_clear = test["difference"] != 0 if math.isnan(test["low"]) else not test["low"] <= 0 <= test["high"]
    if is_clear != is_significant:
        return "undecided"
    return "not told apart" if not is_clear else "better" if test["difference"] > 0 else "worse"
