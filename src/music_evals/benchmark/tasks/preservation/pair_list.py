"""Pairs by metric: rows of a table that is sorted on the page, and points of a picture of one metric by another."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from music_evals.benchmark.contents import heading
from music_evals.benchmark.formats import Section, format_value, render
from music_evals.benchmark.scores import Floats, ScoreTable
from music_evals.benchmark.tasks.preservation.plots import outward

__all__ = ["MOST_PAIRS", "mean_places", "pair_list", "placed"]

MOST_PAIRS = 2000
"""Pairs of a page, the worst of each system to equal shares; the records hold all."""

SHOWN_AT_FIRST = 20
"""Rows; a button shows the others."""

_PACKAGE = "music_evals.benchmark.tasks.preservation"


def placed(results: Mapping[str, Any]) -> list[str]:
    """Return the metrics that have a place on the radar: those of which more, or less, is better."""
    return [name for name in results["metrics"] if results["scales"][name]["direction"] != "zero"]


def mean_places(results: Mapping[str, Any], pairs: ScoreTable) -> Floats:
    """Return the mean of the places of each pair on the radar, 1 the best; NaN for a pair that has none."""
    names = placed(results)
    if not names:
        return np.full(len(pairs), np.nan)
    columns = zip(names, pairs.values(*names).T, strict=True)
    places = np.array([outward(name, column, results["scales"][name]) for name, column in columns])
    n_defined = np.count_nonzero(~np.isnan(places), axis=0)
    sums = np.nansum(places, axis=0)
    means: Floats = np.divide(sums, n_defined, out=np.full(len(pairs), np.nan), where=n_defined > 0)
    return means


def pair_list(results: Mapping[str, Any], score_table: ScoreTable, anchors: Mapping[tuple[str, str], str]) -> Section:
    """Return table and picture; `anchors` are the places of the page where pairs are drawn, by item and system."""
    every = {system: score_table.scored(system) for system in score_table.systems}
    held = {system: pairs for system, pairs in every.items() if len(pairs)}
    if not held:
        return Section("", 0, "")
    share = _share([len(pairs) for pairs in held.values()])
    rows: list[tuple[int, str, str, list[tuple[str, float | str | None]]]] = []
    for place, (system, pairs) in enumerate(held.items()):
        worst = pairs.take(np.argsort(mean_places(results, pairs), kind="stable")[:share])  # NaN comes last
        items = worst.text("item")
        for item, values in zip(items, worst.values(*score_table.metrics).tolist(), strict=True):
            rows.append((place, item, anchors.get((item, system), ""), list(map(_cell, values))))
    page = render(
        _PACKAGE,
        "pair_list.html",
        rows=rows,
        held={"systems": list(held), "rows": rows},
        n_pairs=sum(map(len, every.values())),
        systems=[(name, results["systems"][name]["role"] == "control") for name in held],
        titles=[heading(results, name) for name in score_table.metrics],
        n_metrics=len(results["metrics"]),
        axes=_axes(results, held),
        shown_at_first=SHOWN_AT_FIRST,
    )
    return Section("Pairs by metric", 1000 + 52 * min(len(rows), SHOWN_AT_FIRST), page)


def _cell(value: float) -> tuple[str, float | str | None]:
    """Return a value as it is shown, and what it is sorted by: None where it is undefined."""
    if np.isnan(value):
        return format_value(value), None
    return format_value(value), float(f"{value:.6g}") if np.isfinite(value) else str(value)


def _share(lengths: list[int]) -> int:
    """Return how many pairs each system may show, so that all together are not too many."""
    return next((n for n in range(max(lengths), 1, -1) if sum(min(n, mine) for mine in lengths) <= MOST_PAIRS), 1)


def _axes(results: Mapping[str, Any], held: Mapping[str, ScoreTable]) -> tuple[int, int]:
    """Return which scores are drawn first: the two, of two facets where that is possible, that take the most values."""
    names = list(results["scales"])
    values = np.concatenate([pairs.values(*names) for pairs in held.values()])
    n_values = [len(np.unique(column[np.isfinite(column)])) for column in values.T]
    first = int(np.argmax(n_values))
    facets = [results["scales"][name]["facet"] for name in names]
    others = [place for place, facet in enumerate(facets) if facet != facets[first]] or [len(names) - 1]
    return first, max(others, key=lambda place: n_values[place])
