"""What stands in results.json, as tables and texts ask for it: views, columns, orders, marks, tests, failures.

And what a reader should know before using them: what is undefined, differs, has no interval or is not listed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from music_evals.benchmark.formats import ARROWS, SIGNIFICANCE, counted
from music_evals.benchmark.inputs import some
from music_evals.benchmark.results import WHOLE
from music_evals.benchmark.score_table import OUTSIDE

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
    """Return the systems as a table shows them: the ranked ones, best first; then who has seen the reference.

    Where success and preservation are both known, those on the Pareto front come first, by name, and then the others.
    """
    ranking = front_first(results["plane"]["systems"]) if "plane" in results else table.get("ranking", [])
    outside = [name for name in results["systems"] if name not in ranking]
    return [*ranking, *sorted(outside, key=lambda name: results["systems"][name]["role"] == "control")]


def front_first(points: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return the systems of a plane, those on the front by name, then the others; controls have no order."""
    ranked = (name for name, point in points.items() if point["role"] not in OUTSIDE)
    return sorted(ranked, key=lambda name: (not points[name]["front"], name))


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
    parts: dict[str, list[str]] = {}
    for title, names in by_facet:
        n_parts = -(-len(names) // MOST_COLUMNS)
        width = -(-len(names) // n_parts)
        for part in range(n_parts):
            shown = f"{title}, {part + 1} of {n_parts}" if n_parts > 1 else title
            parts[shown] = names[part * width : (part + 1) * width]
    return parts


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


SURE_SHARE = 0.9
"""Of the items: where one in ten is missing, a mean may be off by a tenth of the scale."""

FEW_OF_A_KIND = 3
"""Remarks of one kind that are shown one by one."""

MOST_REASONS = 3
"""Why a score is undefined, in a note."""


def caveats(results: Mapping[str, Any]) -> list[str]:
    """Return what a reader of these results should know before using them, a sentence each."""
    return [
        *results["wording"]["on_remarks"],
        *on_kernels(results["kernels"]),
        *undefined_notes(results),
        *_on_missing(results),
        *_on_comparisons(results),
        *_on_groups(results),
        *results["wording"]["on_controls"],
        *results.get("facets", {}).get("remarks", ()),
        *results["wording"].get("on_parts", ()),
        *_on_lists(results),
    ]


def on_kernels(names: Sequence[str]) -> Iterator[str]:
    """Yield what a reader should know of scores that several kinds of kernels made."""
    if len(names) > 1:
        yield f"scores were made with several kinds of processor kernels, so last digits may differ: {'; '.join(names)}"


def undefined_notes(results: Mapping[str, Any]) -> Iterator[str]:
    """Yield why, for each system, scores that none of its items defines are undefined, with the reasons counted."""
    items = results["wording"]["items"]
    counts: dict[tuple[str, str], Counter[str]] = {}
    for row in (*results["undefined"], *unlisted(results, "undefined")):
        counts.setdefault((row["system"], row["metric"]), Counter())[row["reason"]] += row.get("n", 1)
    reported: dict[tuple[str, str], list[str]] = {}
    for (system, metric), reasons in counts.items():
        if system in compared_systems(results) and not results["scores"][system][metric]["n_defined"]:
            why = "; ".join(f"{reason} ({counted(n, items)})" for reason, n in reasons.most_common(MOST_REASONS))
            reported.setdefault((system, why), []).append(results["scales"][metric]["title"])
    for (system, why), titles in reported.items():
        every = " (nothing at all is defined)" if system in undefined_systems(results) else ""
        yield f"{system} has no {some(list(dict.fromkeys(titles)))}{every}: {why}"


def of_few(cell: Mapping[str, Any]) -> bool:
    """Return whether fewer than nine in ten of the items that did not fail define a score, but some do."""
    return bool(0 < cell["n_defined"] < SURE_SHARE * (cell["n"] - cell["n_failed"]))


def _on_missing(results: Mapping[str, Any]) -> Iterator[str]:
    """Yield for how many items no prediction was given, then which means are over few items that define a score."""
    scores, items = table_of(results)["scores"], results["wording"]["items"]
    cells_of = {system: scores.get(system, {}) for system in compared_systems(results)}
    titles = {name: scale["title"] for name, scale in results["scales"].items()}
    for system, cells in cells_of.items():
        counts = {name: n for name, cell in cells.items() if (n := cell.get("n_not_given"))}
        if counts:
            yield (
                f"no prediction of {system} for {max(counts.values())} of {cells[next(iter(counts))]['n']} {items}: "
                f"they count as the worst at {', '.join(titles[name] for name in titles if name in counts)}, and have "
                "no other score, at which it is not said to be better than a system that was scored on more"
            )
    for system, cells in cells_of.items():
        few = [title for name, title in titles.items() if name in cells and of_few(cells[name])]
        if few:
            yield (
                f"fewer than {SURE_SHARE:.0%} of the {items} of {system} define {some(list(dict.fromkeys(few)))}: the "
                "mean is over those, marked 'only', and may not hold for the rest"
            )


def _on_comparisons(results: Mapping[str, Any]) -> Iterator[str]:
    names = compared_systems(results)
    if len(names) < 2 or "comparisons" not in results:
        return
    if not results["n_shared"]:
        tested = "" if results["comparisons"] else " or tested"
        yield f"there is no item that all systems share: nothing is marked best{tested}"
        return
    differing = [
        results["scales"][name]["title"]
        for name in results["scales"]
        if len({results["scores"][system][name]["n_defined"] for system in names}) > 1
    ]
    if differing:
        yield (
            "the systems define different numbers of items, so that their means are over different items: "
            + ("all scores" if len(differing) == len(results["scales"]) else "; ".join(differing))
        )


def _on_groups(results: Mapping[str, Any]) -> Iterator[str]:
    held = [
        (system, cell)
        for system, cells in table_of(results)["scores"].items()
        for cell in cells.values()
        if cell["n_defined"] and cell["low"] is None
    ]
    alone = dict.fromkeys(system for system, cell in held if cell["n_groups"] == 1)
    if alone:
        yield f"one group says nothing of a second, so a score that only one defines has no interval: {some([*alone])}"
    alike = dict.fromkeys(
        system for system, cell in held if cell["n_groups"] > 1 and isinstance(cell["value"], int | float)
    )
    if alike:
        yield (
            "a score that is the same in all groups does not say how far it may move, and has no interval: "
            f"{some([*alike])}"
        )


def _on_lists(results: Mapping[str, Any]) -> Iterator[str]:
    if results["notes"]:
        subject = "{items} with remarks, such as {remarks}".format(**results["wording"])
        more = results.get("unlisted", {}).get("n_notes", 0)
        place = "the records have" if more else "results.json has"
        yield f"{subject}: {len(results['notes']) + more}; {place} them all"
    n = n_failures(results)
    if n > len(results["failures"]):
        yield f"results.json lists the first {len(results['failures'])} of {n} failures; the records hold all"
    if more := sum(row["n"] for row in unlisted(results, "undefined")):
        listed = len(results["undefined"])
        yield f"results.json lists the first {listed} of {listed + more} undefined scores; the records hold all"


def grouped_remarks(counts: Mapping[str, int]) -> list[tuple[str, int, int]]:
    """Return remarks, how many others of their kind each stands for, and how often; the most frequent first.

    Remarks that quote what they are about, as ``headers: '**Verse**' became '(verse)'``, are of one kind where they
    begin with the same words. Few of a kind are shown one by one.
    """
    kinds: dict[str, list[tuple[str, int]]] = {}
    for note, count in sorted(counts.items(), key=lambda row: -row[1]):
        words, _, quoted = note.partition(": ")
        kinds.setdefault(words if quoted[:1] in {"'", '"'} else note, []).append((note, count))
    grouped = [
        rows
        for notes in kinds.values()
        for rows in ([[row] for row in notes] if len(notes) <= FEW_OF_A_KIND else [notes])
    ]
    shown = [(rows[0][0], len(rows) - 1, sum(count for _, count in rows)) for rows in grouped]
    return sorted(shown, key=lambda row: -row[2])
