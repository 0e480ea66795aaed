"""From records to tables: what may be ranked together, what stands outside, and why.

A table holds the results of one task whose ``settings`` are equal: dataset, config, split, content, variant, protocol,
encoder, options, readers. Its columns are metrics; a metric that was made with different extractors has a column for
each. Tables of one dataset and split say how they differ, which is why they are no single ranking.

Rows stand in the order of the headline's values; but no row stands above one whose whole range of ranks is better.
Controls, leaking systems, runs over a part of the split, and scores with failures stand outside the ranking, each with
its reason. `entries` says which records are one row, `presets` which tables come first.
"""

from __future__ import annotations

import collections
import hashlib
import json
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from music_evals.benchmark.cells import coverage_note, plain
from music_evals.benchmark.versions import on_kernels
from music_evals.leaderboard.board import read_board
from music_evals.leaderboard.entries import Entry, entries_of, is_ranked, key_of
from music_evals.leaderboard.presets import HEADLINES, PRESETS, TASK_NAMES, Preset, add_published, fits, published
from music_evals.leaderboard.ranks import ALPHA, Comparison, Progress, compare_pairs, rank_ranges
from music_evals.leaderboard.records import DIVERGENCE, ResultRecord
from music_evals.metrics.catalogue import CATALOGUE, metric_of
from music_evals.stats import PairedTest
from music_evals.stats.intervals import effective_clusters

__all__ = [
    "FORMAT",
    "build_leaderboard",
    "decimals_of",
    "make_leaderboard",
    "records_digest",
    "shown",
]

FORMAT = 3
"""Of the tests in a kept leaderboard: those of another one are made again."""

UNDEFINED = "undefined"

FEW_GROUPS = 10
"""A test of c groups has no p under 2 / 2^c, and Holm's correction multiplies it."""

OUTSIDE = "* outside its interval, which is bias-corrected"
"""Beside a row with such a score."""

BIAS = (
    "* few items make a divergence too large; the interval is corrected for that bias and the value is not, so that a "
    "value may lie outside its interval"
)

NO_INTERVAL_DECIMALS, MOST_DECIMALS = 3, 6
NO_WIDTH = 1e-12  # intervals that are not wider differ by rounding alone

Row = dict[str, Any]
Tests = Mapping[tuple[str, str], PairedTest]
"""Ids of two records -> their test."""


def build_leaderboard(board: str | os.PathLike[str], *, progress: Progress | None = None) -> dict[str, Any]:
    """Return all tables of a board, made from its records alone.

    Parameters
    ----------
    board
        Its folder.
    progress
        Called after each test.

    Returns
    -------
    dict
        As `make_leaderboard`.

    Raises
    ------
    NoDataError, CorruptRecordsError, FileTooLargeError
        The folder holds no records, or files that are not what their names or the schema say.

    """
    return make_leaderboard(read_board(board), progress=progress)


def records_digest(records: Iterable[ResultRecord]) -> str:
    """Return a hash of which records these are, in their order: tables that were made of them say it."""
    about = [[record.id, record.run, record.submitter, record.date, record.source] for record in records]
    return hashlib.sha256(json.dumps(about).encode()).hexdigest()[:32]


def decimals_of(low: float | None, high: float | None) -> int:
    """Return the decimals of a score that its interval bears out: two significant digits of half its width.

    Without an interval, or with one of no width, three decimals are shown.

    Examples
    --------
    >>> decimals_of(0.71, 0.79), decimals_of(0.7101, 0.7132), decimals_of(20, 500), decimals_of(None, None)
    (3, 4, 0, 3)

    """
    half = 0.0 if low is None or high is None else (high - low) / 2
    if not (math.isfinite(half) and half > NO_WIDTH):
        return NO_INTERVAL_DECIMALS
    exponent = int(f"{half:.1e}".partition("e")[2])
    return min(max(1 - exponent, 0), MOST_DECIMALS)


def shown(value: float | None, low: float | None = None, high: float | None = None) -> str:
    """Return a score with the digits that its interval bears out; see `decimals_of`."""
    if value is None:
        return "n/a"
    decimals = decimals_of(low, high)
    return f"{round(value, decimals) + 0.0:.{decimals}f}"


def make_leaderboard(
    records: Sequence[ResultRecord], *, known: Tests | None = None, seed: int = 0, progress: Progress | None = None
) -> dict[str, Any]:
    """Return all tables, as one value that JSON can hold. Equal records in the same order give equal tables."""
    grouped: dict[str, list[ResultRecord]] = {}
    for record in records:
        grouped.setdefault(key_of({"task": record.task, **record.settings}), []).append(record)

    def test(columns: Sequence[Sequence[ResultRecord]]) -> list[Comparison]:
        return compare_pairs(columns, known=known, seed=seed, progress=progress)

    tables = [_table(found, test) for found in grouped.values()]
    _set_apart(tables)
    held = {table["preset"] for table in tables}
    tables += [_printed_alone(preset) for preset in PRESETS if preset.is_published and preset.name not in held]
    order = {preset.name: number for number, preset in enumerate(PRESETS)}
    tables.sort(key=lambda table: (order.get(table["preset"], len(order)), -len(table["rows"]), table["id"]))
    content: dict[str, Any] = plain(
        {"format": FORMAT, "alpha": ALPHA, "records": records_digest(records), "tables": tables}
    )
    return content


def _table(
    records: Sequence[ResultRecord], test: Callable[[Sequence[Sequence[ResultRecord]]], list[Comparison]]
) -> Row:
    task, settings = records[0].task, dict(records[0].settings)
    entries = entries_of(records)
    rows = {entry.name: _row(entry) for entry in entries}
    columns = _columns(entries)
    ranked = [[record for record in found.values() if is_ranked(record)] for _, found in columns]
    tests = test(ranked)
    for number, (column, found) in enumerate(columns):
        own = [test for test in tests if test.column == number]
        ranges = dict(zip((record.id for record in ranked[number]), rank_ranges(len(ranked[number]), own), strict=True))
        for name, record in found.items():
            rank = ranges.get(record.id)
            rows[name]["cells"][column["id"]] = _cell(record) | {"rank": None if rank is None else list(rank)}
        column["n_ranked"] = len(ranked[number])
    names = {record.id: entry.name for entry in entries for record in entry.records.values()}
    heads = [column for column, _ in columns]
    made = [_test(test, heads[test.column], ranked[test.column], names) for test in tests]
    return _assembled(task, settings, heads, rows=list(rows.values()), tests=made, notes=list(_notes(records, entries)))


def _assembled(
    task: str, settings: Row, columns: Sequence[Row], *, rows: Sequence[Row], tests: Sequence[Row], notes: Sequence[str]
) -> Row:
    """Return a table in its order, with the rows of a paper where it is a preset that has some."""
    headline = next((column for column in columns if column["metric"] == HEADLINES[task]), columns[0])
    preset = next((preset for preset in PRESETS if preset.task == task and fits(preset, settings)), None)
    table: Row = {
        "id": _slug(task, settings),
        "title": _title(task, settings),
        "task": task,
        "preset": preset.name if preset else None,
        "settings": settings,
        "apart": [],
        "notes": notes,
        "headline": headline["id"],
        "columns": sorted(columns, key=lambda column: column is not headline),
        "rows": _ordered(rows, headline),
        "tests": tests,
        "published": None,
    }
    if preset and preset.is_published:
        add_published(table)
    return table


def _ordered(rows: Iterable[Row], headline: Row) -> list[Row]:
    """Return rows by value, yet none above one whose whole range of ranks is better; those without a rank below."""
    ranked: list[Row] = []
    others: list[Row] = []
    for row in rows:
        has_rank = row["kind"] == "ranked" and row["cells"].get(headline["id"], {}).get("rank")
        (ranked if has_rank else others).append(row)
    cells = {row["label"]: row["cells"][headline["id"]] for row in ranked}

    def merit(row: Row) -> float:
        value = cells[row["label"]]["value"]
        return float(value if headline["direction"] == "higher" else -abs(value))

    ranked.sort(key=lambda row: (-merit(row), row["label"]))
    placed = []
    while ranked:
        behind = min(cells[row["label"]]["rank"][1] for row in ranked)
        row = next(row for row in ranked if cells[row["label"]]["rank"][0] <= behind)
        ranked.remove(row)
        placed.append(row)
    return placed + sorted(others, key=lambda row: (row["kind"] != "ranked", row["label"]))


def _columns(entries: Sequence[Entry]) -> list[tuple[Row, dict[str, ResultRecord]]]:
    """Return the columns, each with name of the system -> record."""
    held: dict[tuple[str, str], dict[str, ResultRecord]] = {}
    for entry in entries:
        for where, record in entry.records.items():
            held.setdefault(where, {})[entry.name] = record
    metrics = [metric for metric, _ in held]
    seen: collections.Counter[str] = collections.Counter()
    columns: list[tuple[Row, dict[str, ResultRecord]]] = []
    for (metric, _), found in held.items():
        seen[metric] += 1
        one = next(iter(found.values()))
        name = metric if metrics.count(metric) == 1 else f"{metric} #{seen[metric]}"
        columns.append((_column(name, metric, _heading(one), one.direction, one.extractors), found))
    for column, _ in columns:
        others = [other for other, _ in columns if other["metric"] == column["metric"] and other is not column]
        if others:
            sides = ({"definition": 1, **side["extractors"]} for side in (column, others[0]))
            column["differs"] = "; ".join(_differences(*sides))
    return columns


def _heading(record: ResultRecord) -> str:
    """Return the heading of a column, which names a definition that is not this version's."""
    metric, definition = CATALOGUE.get(record.metric), record.extractors.get("definition", 1)
    is_current = metric is None or definition == metric.definition_under(record.variant)
    return record.title if is_current else f"{record.title}, definition {definition}"


def _column(
    name: str, metric: str, title: str, direction: str, extractors: Mapping[str, Any] = MappingProxyType({})
) -> Row:
    about = {"id": name, "metric": metric, "title": title, "direction": direction}
    return about | {"extractors": dict(extractors), "differs": "", "n_ranked": 0}


def _differences(own: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    """Return what differs, as ``name: ours, elsewhere theirs``."""
    return [
        f"{name}: {_in_words(own.get(name))}, elsewhere {_in_words(other.get(name))}"
        for name in sorted(own.keys() | other.keys())
        if own.get(name) != other.get(name)
    ]


def _in_words(value: object) -> str:
    if isinstance(value, Mapping):
        return " ".join(
            _in_words(part) if key == "backend" else f"{key} {_in_words(part)}" for key, part in value.items()
        )
    return "none" if value is None else str(value)


def _row(entry: Entry) -> Row:
    records = entry.records.values()
    has_rank = any(map(is_ranked, records))
    reasons = sorted({record.unranked for record in records} - {""})
    return {
        "label": entry.name,
        "system": entry.last.system,
        "kind": "ranked" if has_rank else "unranked",
        "why": "" if has_rank else "; ".join(reasons) or UNDEFINED,
        "remark": OUTSIDE if any(map(_is_outside, records)) else "",
        **{name: getattr(entry.last, name) for name in ("role", "content", "submitter", "date", "source")},
        "cells": {},
    }


def _is_outside(record: ResultRecord) -> bool:
    """Tell whether the interval of a divergence, corrected for its bias, does not hold the value."""
    if record.kind != DIVERGENCE or record.value is None or record.low is None or record.high is None:
        return False
    return not record.low <= record.value <= record.high


def _cell(record: ResultRecord) -> Row:
    bounds = (record.low, record.high)
    interval = "" if None in bounds else "..".join(shown(bound, *bounds) for bound in bounds)
    return {
        **{key: getattr(record, key) for key in ("value", "low", "high", "floor", "n", "n_defined", "n_failed")},
        "why": record.unranked or (UNDEFINED if record.value is None else ""),
        "shown": shown(record.value, *bounds),
        "interval": f"{interval} *" if _is_outside(record) else interval,
        "record": record.id,
        "run": record.run,
    }


def _test(test: Comparison, column: Row, ranked: Sequence[ResultRecord], names: Mapping[str, str]) -> Row:
    numbers = {
        key: getattr(test, key) for key in ("difference", "low", "high", "p_value", "p_holm", "n", "is_significant")
    }
    return {"column": column["id"], "a": names[ranked[test.a].id], "b": names[ranked[test.b].id], **numbers}


def _notes(records: Sequence[ResultRecord], entries: Sequence[Entry]) -> Iterator[str]:
    settings = records[0].settings
    if not (settings.get("fingerprint") or settings.get("revision")):
        yield "local files without a revision: systems are compared where items have the same reference"
    counted = [record for entry in entries for record in entry.records.values()]
    versions = sorted({str(record.receipt.get("versions", {}).get("music_evals")) for record in counted})
    if len(versions) > 1:
        yield f"made with several versions of music_evals: {', '.join(versions)}"
    yield from on_kernels(sorted({name for record in counted for name in record.receipt.get("kernels", ())}))
    superseded = sum(entry.n_superseded for entry in entries)
    if superseded:
        yield f"{superseded} scores were added again later by the same hand; the last ones count"
    if kept := sum(entry.n_kept for entry in entries):
        yield f"{kept} scores that were added later may not be ranked; the ranked ones of the same hand count"
    if any(map(_is_outside, counted)):
        yield BIAS
    counted = [record for record in counted if record.groups]  # divergences of a whole set name no items
    clusters = {len(set(record.groups)) for record in counted if record.n_defined}
    if clusters and min(clusters) < FEW_GROUPS:
        yield f"as few as {min(clusters)} groups of items: few differences can be found"
    held = [record for record in counted if record.low is not None]
    few = coverage_note(map(_clusters, held), "groups", divergences=any(r.kind == DIVERGENCE for r in held))
    if few:
        yield few


def _clusters(record: ResultRecord) -> tuple[float, int]:
    """Return the effective number of groups behind a record, and their number."""
    defined = [None not in seeds and bool(seeds) for seeds in record.values]
    sizes = collections.Counter(group for group, is_defined in zip(record.groups, defined, strict=True) if is_defined)
    return float(effective_clusters(np.array([*sizes.values()], dtype=np.float64))), len(sizes)


def _title(task: str, settings: Mapping[str, Any]) -> str:
    place = " ".join(str(settings[key]) for key in ("dataset", "config", "split") if settings.get(key))
    return f"{TASK_NAMES[task]}: {place}, variant {settings['variant']}"


def _slug(task: str, settings: Mapping[str, Any]) -> str:
    """Return a name that any file system takes: letters, digits and hyphens, and a hash of all settings."""
    parts = (task, *(settings.get(key) for key in ("dataset", "config", "split", "variant")))
    words = "-".join("".join(c if c.isascii() and c.isalnum() else "_" for c in str(part)) for part in parts if part)
    return f"{words[:80]}-{hashlib.sha256(key_of(settings).encode()).hexdigest()[:6]}"


def _set_apart(tables: Sequence[Row]) -> None:
    """Say of each table which others are of the same split, and why they are no single ranking."""
    for table in tables:
        for other in tables:
            same = all(
                table["settings"].get(key) == other["settings"].get(key) for key in ("dataset", "config", "split")
            )
            if other is not table and other["task"] == table["task"] and same:
                reasons = _differences(table["settings"], other["settings"])
                table["apart"].append({"table": other["id"], "title": other["title"], "reasons": reasons})


def _printed_alone(preset: Preset) -> Row:
    """Return the table of a preset that has no results yet: what is published."""
    metrics = dict.fromkeys(metric for row in published(preset.task)["table"].values() for metric in row)
    columns = [_column(name, name, metric_of(name).heading, metric_of(name).direction) for name in metrics]
    return _assembled(
        preset.task,
        dict(preset.settings),
        columns,
        rows=(),
        tests=(),
        notes=["no results yet: what papers report stands alone"],
    )
