"""What a reader should know before using results: what is undefined, differs, has no interval or is not listed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from music_evals.benchmark.cells import counted
from music_evals.benchmark.contents import compared_systems, n_failures, table_of, undefined_systems, unlisted
from music_evals.benchmark.manifests import some
from music_evals.benchmark.versions import on_kernels

__all__ = ["caveats", "grouped_remarks", "of_few", "undefined_notes"]

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
        *_on_not_given(results),
        *_on_survivors(results),
        *_on_systems(results),
        *_on_groups(results),
        *results["wording"]["on_controls"],
        *results.get("facets", {}).get("remarks", ()),
        *results["wording"].get("on_parts", ()),
        *_on_remarks(results),
        *_on_lists(results),
    ]


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


def _on_not_given(results: Mapping[str, Any]) -> Iterator[str]:
    """Yield for how many items no prediction was given, and where they count."""
    scores = table_of(results)["scores"]
    for system in compared_systems(results):
        counts = {name: n for name, cell in scores.get(system, {}).items() if (n := cell.get("n_not_given"))}
        if counts:
            titles = [results["scales"][name]["title"] for name in results["scales"] if name in counts]
            yield (
                f"no prediction of {system} for {max(counts.values())} of {scores[system][next(iter(counts))]['n']} "
                f"{results['wording']['items']}: they count as the worst at {', '.join(titles)}, and have no other "
                "score, at which it is not said to be better than a system that was scored on more"
            )


def _on_survivors(results: Mapping[str, Any]) -> Iterator[str]:
    """Yield which means are over the items that define a score, where those are few."""
    scores = table_of(results)["scores"]
    for system in compared_systems(results):
        cells = scores.get(system, {})
        few = [scale["title"] for name, scale in results["scales"].items() if name in cells and of_few(cells[name])]
        if few:
            yield (
                f"fewer than {SURE_SHARE:.0%} of the {results['wording']['items']} of {system} define "
                f"{some(list(dict.fromkeys(few)))}: the mean is over those, marked 'only', and may not hold for "
                "the rest"
            )


def _on_systems(results: Mapping[str, Any]) -> Iterator[str]:
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


def _on_remarks(results: Mapping[str, Any]) -> Iterator[str]:
    if results["notes"]:
        subject = "{items} with remarks, such as {remarks}".format(**results["wording"])
        more = results.get("unlisted", {}).get("n_notes", 0)
        place = "the records have" if more else "results.json has"
        yield f"{subject}: {len(results['notes']) + more}; {place} them all"


def _on_lists(results: Mapping[str, Any]) -> Iterator[str]:
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
