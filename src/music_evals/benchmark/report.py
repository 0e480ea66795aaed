"""The page of a run, for all benchmarks: one HTML file that needs nothing but a browser. Made from the results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from music_evals.benchmark.contents import caveats, comparisons, failures, n_failures, significant
from music_evals.benchmark.formats import Section, format_difference, render, static
from music_evals.benchmark.score_table import ScoreTable
from music_evals.benchmark.tables import PAGE, blocks, facet_blocks, legend, part_blocks, published_blocks, summary

ROOM_PX = 4300
"""Of the sections that are open at first, in their order, so that a page stays below 6,000 px on a wide screen."""

LISTED = 200
"""Rows of a list of what is undefined or remarked on; the records hold all."""

_NOT_IN_DETAILS = frozenset({"role", "entrances", "n_pairs", "n_groups", "sees_reference", "shared", "note"})
"""What the receipt tells of a system in columns, or not at all."""


class _Listed(NamedTuple):
    title: str
    intro: str
    rows: list[list[str]]


def score_page(
    results: Mapping[str, Any],
    score_table: ScoreTable,
    facts: Mapping[str, Any],
    *,
    lead: str = "",
    highlight: str | None = None,
    compared: Section | None = None,
    first: Section | None = None,
    pictures: Sequence[Section] = (),
    items: Sequence[Section] = (),
    style: str = "",
    script: str = "",
) -> str:
    """Return the page; `compared` stands in place of the list of all tests, and sections without content are left out.

    `first` stands before the tables.
    The first scores are open, and what follows as far as there is room (`ROOM_PX`); all else opens at a click.
    """
    wording = results["wording"]
    item = wording["items"].removesuffix("s")
    reasons = [[row[key] for key in ("item", "system", "metric", "reason")] for row in results["undefined"]]
    remarks = [[row["item"], row["system"], "all", "; ".join(row["notes"])] for row in results["notes"]]
    if "ranked_by" in results:
        how_compared = (
            "Each system with the best baseline of the score, which was chosen on the validation split: the two are "
            "swapped within whole groups; Holm's correction over the scores of a system."
        )
    else:
        how_compared = (
            "On the items that two systems share, with the same reference: the two are swapped within whole groups; "
            f"Holm's correction over all {len(comparisons(results))} tests."
        )
    return render(
        "music_evals.benchmark",
        "report.html",
        title=f"{wording['title']}: {results['dataset']['id']}",
        style=static("report.css") + style,
        script=script,
        lead=lead,
        summary=summary(results).splitlines(),
        blocks=[*facet_blocks(results), *blocks(results), *part_blocks(results)],
        highlight=highlight,
        legend=legend(results, PAGE),
        caveats=caveats(results),
        tests=list(_tests(results)),
        n_significant=len(significant(results)),
        how_compared=how_compared,
        compared=compared,
        first=first,
        pictures=pictures,
        published=results["published"],
        published_blocks=list(published_blocks(results)),
        items=items,
        failures=failures(results),
        n_failures=n_failures(results),
        room_px=ROOM_PX,
        lists=[
            _Listed("Undefined", f"Scores that a {item} does not define; they are in no mean.", reasons),
            _Listed("Remarks", f"What a reader should know of a {item}.", remarks),
        ],
        most_rows=LISTED,
        facts=_facts(results, score_table, facts),
        receipts=list(_receipts(results)),
    )


def _tests(results: Mapping[str, Any]) -> Iterable[list[str]]:
    from markupsafe import Markup

    marked = {id(test) for test in significant(results)}
    for test in comparisons(results):
        p_value = "n/a" if test["p_holm"] is None else f"{test['p_holm']:.4f}"
        shown = Markup("<b>{}</b>").format(p_value) if id(test) in marked else p_value
        title = results["scales"][test["metric"]]["title"]
        yield [test["a"], test["b"], title, format_difference(test), shown, str(test["n"])]


Ranked = tuple[ScoreTable, npt.NDArray[np.float64]]
"""Pairs of one system in some order, and what they are ranked by."""


def shares(ranked: Sequence[Ranked], n: int) -> list[tuple[Mapping[str, Any], float]]:
    """Return the first pairs of each system, to equal shares: `n` of all, and at least one of each; none for 0."""
    held = [(pairs, values) for pairs, values in ranked if len(pairs)]
    turns = sorted((turn, place) for place, (pairs, _) in enumerate(held) for turn in range(min(n, len(pairs))))
    chosen = sorted(turns[: max(n, len(held))], key=lambda turn: turn[::-1])
    return [(held[place][0][turn], float(held[place][1][turn])) for turn, place in chosen]


def _facts(results: Mapping[str, Any], score_table: ScoreTable, facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the numbers depend on."""
    dataset = results["dataset"]
    return {
        "dataset": " / ".join(str(dataset[key]) for key in ("id", "config", "split") if dataset[key]),
        **{name: value for name, value in dataset.items() if name not in {"id", "config", "split"} and value},
        **facts,
        "intervals": "{confidence:.0%}, clustered by {clusters}".format(**results["intervals"]),
        "resamples": "{n_resamples} for divergences and as many tens for tests, seed {seed}".format(
            **results["intervals"]
        ),
        "wall time": f"{score_table.wall_time_sec:.0f} s",
        "processor kernels": "; ".join(results["kernels"]),
        **{f"version of {name}": version for name, version in results["versions"].items()},
    }


def _receipts(results: Mapping[str, Any]) -> Iterable[tuple[tuple[str, ...], list[list[str]]]]:
    """Yield tables of extractors, where there are any, and of systems."""
    features = (results.get("extractors") or {}).get("features") or {}
    if features:
        yield ("feature", "extractor"), [[name, _details(about)] for name, about in features.items()]
    systems = [
        [
            name,
            about["role"],
            ", ".join(about["entrances"]),
            str(about["n_pairs"]),
            _details({key: value for key, value in about.items() if key not in _NOT_IN_DETAILS}),
        ]
        for name, about in results["systems"].items()
    ]
    yield ("system", "role", "entrance", results["wording"]["items"], "details"), systems


def _details(about: Mapping[str, Any]) -> str:
    shown = {key: value for key, value in about.items() if value not in ({}, [], "", None)}
    return "; ".join(f"{key.replace('_', ' ')}: {value}" for key, value in shown.items())
