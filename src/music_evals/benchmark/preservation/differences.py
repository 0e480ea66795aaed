"""Differences of systems on the pairs that two of them share: means over other pairs tell nothing of them."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np

from music_evals.benchmark.aggregate import shared
from music_evals.benchmark.cells import counted, format_difference, format_value
from music_evals.benchmark.contents import heading, is_significant
from music_evals.benchmark.found import Found
from music_evals.benchmark.templates import render

__all__ = ["MOST_OPEN", "differences"]

MOST_OPEN = 3
"""Comparisons of two systems that are shown at once; where there are more, each is shown on demand."""


def differences(results: Mapping[str, Any], found: Found) -> str:
    """Return a table for each two systems that share items; empty where no two do."""
    couples = [
        _couple(results, found, first, second, list(tests))
        for (first, second), tests in itertools.groupby(results["comparisons"], key=lambda test: (test["a"], test["b"]))
    ]
    if not couples:
        return ""
    return render("music_evals.benchmark.preservation", "differences.html", couples=couples, most_open=MOST_OPEN)


def _couple(
    results: Mapping[str, Any], found: Found, first: str, second: str, tests: list[Mapping[str, Any]]
) -> dict[str, Any]:
    a, b = shared(found, first, second)
    sizes = [results["systems"][name]["n_pairs"] for name in (first, second)]
    rows = []
    for test in tests:
        sides = np.array([side.values(test["metric"])[:, 0] for side in (a, b)])
        means = sides[:, ~np.isnan(sides).any(axis=0)].mean(axis=1) if test["n"] else (np.nan, np.nan)
        rows.append(
            {
                "title": heading(results, test["metric"]),
                "means": [format_value(float(mean)) for mean in means],
                "difference": format_difference(test),
                "p_value": "n/a" if test["p_holm"] is None else f"{test['p_holm']:.4f}",
                "better": _better(results, test) if is_significant(test) else "",
                "n": test["n"],
            }
        )
    items = results["wording"]["items"]
    part = "" if sizes == [len(a), len(a)] else f" (of {sizes[0]} and {sizes[1]})"
    return {
        "names": (first, second),
        "shared": f"{counted(len(a), items)}{part}",
        "n_significant": sum(map(is_significant, tests)),
        "rows": rows,
    }


def _better(results: Mapping[str, Any], test: Mapping[str, Any]) -> str:
    """Return the name of the better system, or that they differ where neither more nor less is better."""
    direction = results["scales"][test["metric"]]["direction"]
    if direction not in {"higher", "lower"}:
        return "differ"
    return str(test["a"] if (test["difference"] > 0) == (direction == "higher") else test["b"])
