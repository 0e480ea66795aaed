"""The tables of a finished run as rows of CSV files and as Markdown."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy.typing as npt
from benchmarks.musib.judging import Judged, design_of
from benchmarks.musib.reasons import NLL, Cell, not_repeated, repeated
from benchmarks.musib.systems import DESIGNS, Data

from music_evals.benchmark.contents import order, table_of
from music_evals.benchmark.formats import markdown_rows
from music_evals.benchmark.published import read_published
from music_evals.benchmark.tasks.inpainting.report import compact_table
from music_evals.benchmark.tasks.inpainting.task import HEADINGS
from music_evals.files import write_atomically
from music_evals.metrics.catalogue import CATALOGUE
from music_evals.stats import Interval, mean_interval

Row = dict[str, Any]

WHOLE = "all"

SCORES = (
    "data", "protocol", "decoding", "subset", "system", "role", "size", "metric", "value", "low", "high", "null",
    "n", "n_defined", "n_groups", "best_baseline",
)  # fmt: skip
"""Columns of results.csv."""

COMPARED = (
    "data", "table", "published_system", "system", "size", "metric", "published", "ours", "low", "high", "difference",
    "because", "honest", "change", "because_of_protocol",
)  # fmt: skip
"""Columns of published.csv."""


def score_rows(judged: Judged) -> Iterator[Row]:
    """Yield one row for each subset, system and metric."""
    plan, results = judged.plan, judged.results
    for subset, scores in _subsets(results):
        for system, cells in scores.items():
            for metric, cell in cells.items():
                yield {
                    "data": plan.data.key,
                    "protocol": plan.protocol,
                    "decoding": plan.decoding,
                    "subset": subset,
                    "system": system,
                    "role": results["systems"][system]["role"],
                    "size": judged.sizes.get(system, ""),
                    "metric": metric,
                    **{key: cell.get(key) for key in ("value", "low", "high", "null", "n", "n_defined", "n_groups")},
                    "best_baseline": results["best_baseline"].get(metric, ""),
                }


def _subsets(results: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Mapping[str, Any]]]]:
    """Yield the tables of a run, all windows first, and the parts of them that have the score that ranks alone."""
    whole = {WHOLE: table_of(results), **results.get("tables", {})}
    yield from ((name, table["scores"]) for name, table in whole.items())
    for name, part in results.get("parts", {}).items():
        if name not in whole:
            yield name, {system: {results["ranked_by"]: cell} for system, cell in part["scores"].items()}


def interval_of_mean(
    values: npt.ArrayLike,
    songs: Sequence[str],
    confidence: float = 0.95,
    span: tuple[float, float] = (-math.inf, math.inf),
) -> Interval:
    """Return the mean over windows with its interval by songs."""
    return mean_interval(values, list(songs), confidence=confidence, span=span)


def span_of(metric: str) -> tuple[float, float]:
    """Return the range of a score; a model's own loss, which the catalogue does not know, has none."""
    known = CATALOGUE.get(metric)
    return (-math.inf, math.inf) if known is None else (known.low, known.high)


def compared_rows(data: Data, runs: Sequence[Judged]) -> Iterator[Row]:
    """Yield one row for each cell of the published table of a data set: theirs, ours, and why they differ."""
    published = read_published(str(data.table)).means
    for design in DESIGNS:
        official, honest = (_cells(runs, design.name, *which) for which in _WHERE)
        for name in design.published:
            for metric, value in published.get(name, {}).items():
                yield _compared(data, design.name, (name, metric, value), official, honest)


_WHERE = (("official", "published"), ("honest", "own"))
"""Protocol and decoding of the two runs that a published cell is compared with."""


def _cells(runs: Sequence[Judged], design: str, protocol: str, decoding: str) -> Row | None:
    """Return system, size and cells of a design in one of the runs; None where it has not been judged so."""
    for run in runs:
        if (run.plan.protocol, run.plan.decoding) == (protocol, decoding):
            for system, cells in table_of(run.results)["scores"].items():
                found = design_of(run.results, system)
                if found is not None and found.name == design:
                    return {"system": system, "size": run.sizes[system], "cells": cells}
    return None


def _compared(
    data: Data, design: str, printed: tuple[str, str, float], official: Row | None, honest: Row | None
) -> Row:
    name, metric, value = printed
    ours = official["cells"].get(metric, {}) if official else {}
    free = honest["cells"].get(metric, {}) if honest else {}
    cell = Cell(
        design,
        metric,
        "jsb" if data.dataset == "jsb_chorales" else "folk",
        value,
        ours.get("value"),
        ours.get("low"),
        ours.get("high"),
        small=official is not None and official["size"].startswith("small"),
    )
    change = _minus(free.get("value"), ours.get("value"))
    return {
        "data": data.key,
        "table": data.table,
        "published_system": name,
        "system": official["system"] if official else "not judged",
        "size": official["size"] if official else "",
        "metric": metric,
        "published": value,
        "ours": ours.get("value"),
        "low": ours.get("low"),
        "high": ours.get("high"),
        "difference": _minus(ours.get("value"), value),
        "because": " ".join(not_repeated(cell)) if official else "",
        "honest": free.get("value"),
        "change": change,
        "because_of_protocol": " ".join(repeated(cell)) if change is not None else "",
    }


def _minus(one: Any, other: Any) -> float | None:
    # JSON holds an infinite likelihood as text
    return one - other if isinstance(one, float | int) and isinstance(other, float | int) else None


# --- Markdown


def honest_table(judged: Judged) -> str:
    """Return the honest table of one data set: all windows, the size of each system, the interval of what ranks.

    Songs differ in length: intervals are as wide as those of fewer songs of one length, whose number stands beside.
    """
    table = table_of(judged.results)
    clusters = max(scores["note_f1"]["n_clusters"] for scores in table["scores"].values())
    windows = f"{table['n_items']} windows of {table['n_songs']} songs, which count as {clusters:.0f} of one length"
    shown = compact_table(judged.results, table, sizes=judged.sizes, without={NLL})
    return f"**{judged.plan.data.title}**, test split: {windows}.\n\n{shown}"


def printed_table(data: Data, runs: Sequence[Judged]) -> str:
    """Return the published table of a data set with our rows below: as published, then by our own decodings."""
    published = read_published(str(data.table))
    metrics = list(next(iter(published.means.values())))
    lines = [["system", "size", *(HEADINGS[name] for name in metrics)], ["---", "---", *("---:" for _ in metrics)]]
    for name, row in published.means.items():
        lines.append([f"{name}, published", "", *(number(row[metric]) for metric in metrics)])
    own = [run for run in runs if run.plan.protocol == "official" and run.plan.data == data]
    for run in sorted(own, key=lambda run: run.plan.decoding, reverse=True):
        table = table_of(run.results)
        for system in order(run.results, table):
            if run.plan.decoding == "own" or system in run.sizes:
                cells = table["scores"][system]
                shown = [number(cells.get(metric, {}).get("value")) for metric in metrics]
                lines.append([f"`{system}`", run.sizes.get(system, ""), *shown])
    return f"**{data.title}**. Published: {published.source}.\n\n{markdown_rows(lines)}"


def compared_table(rows: Sequence[Row]) -> str:
    """Return published beside ours, metric by metric, with the codes of the reasons; of what has been judged."""
    head = [
        "published",
        "score",
        "printed",
        "ours, as published",
        "difference",
        "because",
        "ours, honest",
        "because of",
    ]
    lines = [head, ["---", "---", "---:", "---:", "---:", "---", "---:", "---"]]
    last = ""
    for row in (row for row in rows if row["size"]):
        name = "" if row["published_system"] == last else row["published_system"]
        last = row["published_system"]
        lines.append([
            name, HEADINGS[row["metric"]], number(row["published"]), number(row["ours"]), number(row["difference"]),
            row["because"].replace(" ", ", "), number(row["honest"]), row["because_of_protocol"].replace(" ", ", "),
        ])  # fmt: skip
    return markdown_rows(lines)


def number(value: float | str | None) -> str:
    """Return a number with three decimals, or nothing; text stays as it is."""
    return "" if value is None else f"{value:.3f}" if isinstance(value, float | int) else value


def write_csv(path: Path, columns: Sequence[str], rows: Iterable[Row]) -> None:
    """Write rows, numbers with six decimals, empty where undefined."""
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({key: _plain(row[key]) for key in columns})
    write_atomically(path, text.getvalue().encode())


def _plain(value: Any) -> Any:
    return "" if value is None else f"{value:.6f}" if isinstance(value, float) else value


def read_csv(path: Path) -> list[dict[str, str]]:
    """Read what `write_csv` wrote."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def fill(page: str, sections: Mapping[str, str]) -> str:
    """Return a page with texts between its markers ``<!-- name:start -->`` and ``<!-- name:end -->``."""
    for name, text in sections.items():
        start, end = f"<!-- {name}:start -->", f"<!-- {name}:end -->"
        before, found, rest = page.partition(start)
        _, closed, after = rest.partition(end)
        if not (found and closed):
            message = f"the page has no markers {start} and {end}"
            raise ValueError(message)
        page = f"{before}{start}\n{text}\n{end}{after}"
    return page
