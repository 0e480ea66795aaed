"""What stands in results.json, as tables and texts ask for it: views, columns, orders, marks, tests, failures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from music_evals.benchmark.cells import ARROWS, SIGNIFICANCE
from music_evals.benchmark.results import OUTSIDE, WHOLE

__all__ = [
    "MOST_COLUMNS",
    "columns",
    "compared_systems",
    "comparisons",
    "divergences_of_set",
    "failures",
    "heading",
    "is_significant",
    "mark",
    "n_failures",
    "order",
    "significant",
    "table_of",
    "tables",
    "undefined_systems",
    "unlisted",
    "verdict",
    "views",
]

MOST_COLUMNS = 7
"""Scores of one facet that are more than this are shown in several tables of nearly equal widths."""

_VERDICTS = {"better": "significantly better than", "worse": "significantly worse than"}


def views(results: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    """Return title and numbers of all items, and of each part that has tables of its own."""
    if "tables" not in results:
        return [("", results)]
    return [(results["wording"]["views"][name], table) for name, table in results["tables"].items()]


def table_of(results: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the numbers of all items."""
    table: Mapping[str, Any] = results["tables"][WHOLE] if "tables" in results else results
    return table


def order(results: Mapping[str, Any], table: Mapping[str, Any]) -> list[str]:
    """Return the systems as a table shows them: the ranked ones, best first; then who has seen the reference."""
    ranking = table.get("ranking", [])
    outside = [name for name in results["systems"] if name not in ranking]
    return [*ranking, *sorted(outside, key=lambda name: results["systems"][name]["role"] == "control")]


def compared_systems(results: Mapping[str, Any]) -> list[str]:
    """Return the systems that are compared."""
    return [name for name, about in results["systems"].items() if about["role"] not in OUTSIDE]


def tables(results: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return title -> columns of the tables: the metrics of each facet, and its auxiliary metrics apart."""
    names_by_title: dict[str, list[str]] = {}
    for name, scale in results["scales"].items():
        title = scale["facet"].capitalize() + (", companions" if scale["companion"] else "")
        names_by_title.setdefault(title, []).append(name)
    order = list(dict.fromkeys(title.partition(",")[0] for title in names_by_title))
    by_facet = sorted(names_by_title.items(), key=lambda row: order.index(row[0].partition(",")[0]))
    return {part: shown for title, names in by_facet for part, shown in _parts(title, names)}


def _parts(title: str, names: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    n_parts = -(-len(names) // MOST_COLUMNS)
    width = -(-len(names) // n_parts)
    for part in range(n_parts):
        shown = f"{title}, {part + 1} of {n_parts}" if n_parts > 1 else title
        yield shown, list(names[part * width : (part + 1) * width])


def heading(results: Mapping[str, Any], name: str) -> str:
    """Return title and direction of a metric."""
    scale = results["scales"][name]
    return f"{scale['title']} {ARROWS[scale['direction']]}"


def columns(table: Mapping[str, Any]) -> list[str]:
    """Return the scores that any system of a table has."""
    return list(dict.fromkeys(name for cells in table["scores"].values() for name in cells))


def mark(results: Mapping[str, Any], table: Mapping[str, Any], system: str, metric: str) -> str:
    """Return how a score stands out; see `Cell`."""
    if "best" in table:
        return "best" if system in table["best"].get(metric, ()) else ""
    if results["best_baseline"].get(metric) == system:
        return "baseline"
    test = table["scores"][system][metric].get("test")
    if not test or not is_significant(test):
        return ""
    higher = results["scales"][metric]["direction"] == "higher"
    if (test["difference"] > 0) != higher:
        return "worse"
    # who failed on items is not better for that
    return "" if test.get("on_fewer_items") else "better"


def verdict(results: Mapping[str, Any], system: str, metric: str) -> str:
    """Return the words for `mark` over all items, to stand before "the best baseline"."""
    table = table_of(results)
    marked = mark(results, table, system, metric)
    if not marked and table["scores"][system][metric].get("test", {}).get("on_fewer_items"):
        return f"scored on fewer {results['wording']['items']} than, and so not shown to be better than,"
    return _VERDICTS.get(marked, "not significantly different from")


def undefined_systems(results: Mapping[str, Any]) -> list[str]:
    """Return the systems without a single score that is defined."""
    scores = table_of(results)["scores"]
    return [
        system for system in compared_systems(results) if not any(cell["n_defined"] for cell in scores[system].values())
    ]


def unlisted(results: Mapping[str, Any], kind: str) -> list[Mapping[str, Any]]:
    """Return what a list of a huge run leaves out, counted."""
    rows: list[Mapping[str, Any]] = results.get("unlisted", {}).get(kind, [])
    return rows


def divergences_of_set(results: Mapping[str, Any], system: str) -> dict[str, dict[str, Any]]:
    """Return the divergences of all outputs of a system together, as cells of a table; most benchmarks have none."""
    divergences: Mapping[str, Mapping[str, Any]] = results.get("fidelity", {}).get(system, {})
    return {name: {**cell, "low": cell["ci"][0], "high": cell["ci"][1]} for name, cell in divergences.items()}


def n_failures(results: Mapping[str, Any]) -> int:
    """Return how many results failed, those too that are not listed one by one."""
    more: int = sum(row["n"] for row in unlisted(results, "failures"))
    return len(results["failures"]) + more


def comparisons(results: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return all tests over all items: of systems two by two, or of each with the best baseline."""
    table = table_of(results)
    if "comparisons" in table:
        tests: list[Mapping[str, Any]] = table["comparisons"]
        return tests
    tested = [
        (a, name, cell["test"])
        for a, cells in table["scores"].items()
        for name, cell in cells.items()
        if "test" in cell
    ]
    return [{"a": a, "b": test["against"], "metric": name, **test} for a, name, test in tested]


def significant(results: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the tests whose corrected p-value is small."""
    return list(filter(is_significant, comparisons(results)))


def is_significant(test: Mapping[str, Any]) -> bool:
    """Tell whether the corrected p-value of a test is small."""
    return test["p_holm"] is not None and bool(test["p_holm"] < SIGNIFICANCE)


def holds_zero(test: Mapping[str, Any]) -> bool:
    """Tell whether the interval of a difference holds 0; not so of one that has none."""
    return test["low"] is not None and bool(test["low"] <= 0 <= test["high"])


def failures(results: Mapping[str, Any]) -> list[list[str]]:
    """Return item, system, seed, score and reason of what failed; the seed is empty for a task without seeds."""
    return [
        [
            str(row["item"]),
            str(row["system"] or "all systems"),
            "" if row.get("seed") is None else f"seed {row['seed']}",
            str(row["metric"] or "all scores"),
            str(row["error"]),
        ]
        for row in results["failures"]
    ]
