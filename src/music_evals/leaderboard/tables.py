"""From records to tables: what may be ranked together, what stands outside, and why.

A table holds the results of one task whose conditions are equal: what its references hold, variant, protocol, encoder,
options, readers (`records.conditions_of`). What dataset and files are called plays no part. Its columns are metrics; a
metric that was made with different extractors has a column for each. Tables of the same references, or of the same
names, say how they differ, which is why they are no single ranking.

Rows stand in the order of their mean place over the ranked columns, or of their place in one; who is not in a column
has the place after its last. Where success of edits is known, those on the Pareto front of success and preservation
come first, by name, then the others, and there is no mean place. Controls and baselines have places too, and what
cannot be told from one stands below it (`ranks`). Leaking systems, runs over a part of the split, and scores with
failures stand outside the ranking, each with its reason. `entries` says which records are one row, `items` what missing
scores count, `presets` which tables come first. Tables of papers come last.
"""

from __future__ import annotations

import collections
import functools
import hashlib
import json
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from music_evals.benchmark.contents import front_first, on_kernels
from music_evals.benchmark.formats import coverage_note, plain
from music_evals.errors import UnknownNameError
from music_evals.leaderboard.board import read_board
from music_evals.leaderboard.entries import Entry, entries_of, is_ranked, key_of
from music_evals.leaderboard.items import LEVELS, Counted, complete, level, match_items, takes_place
from music_evals.leaderboard.planes import plane_of_table
from music_evals.leaderboard.presets import HEADLINES, PRESETS, PUBLISHED_TABLES, TASK_NAMES, fits, published_table
from music_evals.leaderboard.ranks import ALPHA, Comparison, Place, Progress, compare_pairs, places, rank_ranges
from music_evals.leaderboard.records import DIVERGENCE, REFERENCES, ResultRecord, conditions_of
from music_evals.metrics.catalogue import CATALOGUE, metric_of
from music_evals.pipelines.edit_success import SUCCESS
from music_evals.stats import PairedTest
from music_evals.stats.intervals import effective_clusters

FORMAT = 4  # of the tests in a kept leaderboard: those of another one are made again

UNDEFINED = "undefined"
NAMES = ("dataset", "config", "split")  # what the references of a table are called; it decides nothing
LONGEST_PLACE = 80  # characters of the names in a title
BY_HEADLINE = frozenset({"lyrics"})
"""Tasks in which the headline alone makes the mean rank: in other scores nonsense may be above what people wrote."""
MOST_NAMES = 3  # of controls that are named in a cell
MOST_TESTS = 50_000  # of a table, that are written down with it: a file of 12 MB

FEW_GROUPS = 10  # A test of c groups has no p under 2 / 2^c, and Holm's correction multiplies it

OUTSIDE = "* outside its interval, which is bias-corrected"  # beside a row with such a score

BIAS = (
    "* few items make a divergence too large; the interval is corrected for that bias and the value is not, so that a "
    "value may lie outside its interval"
)

NO_INTERVAL_DECIMALS, MOST_DECIMALS = 3, 6
NO_WIDTH = 1e-12  # intervals that are not wider differ by rounding alone

Row = dict[str, Any]
Tests = Mapping[tuple[str, str], PairedTest]  # ids of two records -> their test


def build_leaderboard(
    board: str | os.PathLike[str], *, by: str | None = None, progress: Progress | None = None
) -> dict[str, Any]:
    """Return all tables of a board, made from its records alone.

    Parameters
    ----------
    board
        Its folder.
    by
        Score whose order the rows of tables have, where a table has it; None is the mean place; see the module.
    progress
        Called after some tests.

    Returns
    -------
    dict
        As `make_leaderboard`.

    Raises
    ------
    NoDataError, CorruptRecordsError, FileTooLargeError
        The folder holds no records, or files that are not what their names or the schema say.
    UnknownNameError
        No table ranks by such a score.
    """
    return make_leaderboard(read_board(board), by=by, progress=progress)


def records_digest(records: Iterable[ResultRecord]) -> str:
    """Return a hash of which records these are, in their order: tables that were made of them say it."""
    about = [[record.id, record.run, record.submitter, record.date, record.source] for record in records]
    return hashlib.sha256(json.dumps(about).encode()).hexdigest()[:32]


def decimals_of(low: float | None, high: float | None) -> int:
    """Return the decimals of a score that its interval bears out: two significant digits of half its width."""
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
    records: Sequence[ResultRecord],
    *,
    by: str | None = None,
    known: Tests | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Return all tables, as one value that JSON can hold. Equal records in the same order give equal tables."""
    grouped: dict[str, list[ResultRecord]] = {}
    for record in records:
        grouped.setdefault(key_of([record.task, conditions_of(record)]), []).append(record)

    test = functools.partial(compare_pairs, known=known, seed=seed, progress=progress)
    tables = [_table(group, test) for group in grouped.values()]
    _set_apart(tables)
    scores = {column["metric"]: None for table in tables for column in table["columns"] if column["n_ranked"]}
    if by is not None and by not in scores:
        label = "score that ranks"
        raise UnknownNameError(label, by, scores)
    for table in tables:
        table["rows"] = _ordered(table, by)
    order = {preset.name: number for number, preset in enumerate(PRESETS)}
    tables.sort(key=lambda table: (order.get(table["preset"], len(order)), -len(table["rows"]), table["id"]))
    tables += map(published_table, PUBLISHED_TABLES)
    content: dict[str, Any] = plain(
        {"format": FORMAT, "alpha": ALPHA, "by": by, "records": records_digest(records), "tables": tables}
    )
    return content


def _table(
    records: Sequence[ResultRecord], test: Callable[[Sequence[Sequence[ResultRecord]]], list[Comparison]]
) -> Row:
    task, settings = records[0].task, _settings(records)
    entries = entries_of(match_items(records))
    columns = [(column, complete(cells)) for column, cells in _columns(entries)]
    placed = [_placed(cells) for _, cells in columns]
    tests = test([list(cells.values()) for cells in placed])
    rows = {entry.name: _row(entry, [cells.get(entry.name) for _, cells in columns]) for entry in entries}
    by_column: dict[int, list[Comparison]] = {}
    for comparison in tests:
        by_column.setdefault(comparison.column, []).append(comparison)
    for number, ((column, cells), ranked) in enumerate(zip(columns, placed, strict=True)):
        own, names = by_column.get(number, []), list(ranked)
        at = dict(
            zip(names, zip(rank_ranges(len(names), own), places([*ranked.values()], own), strict=True), strict=True)
        )
        untold = _untold(names, own)
        for name, counted in cells.items():
            rank, place = at.get(name, (None, Place(None, None)))
            ranking = {"rank": rank and list(rank), **place._asdict(), "mark": untold.get(name, "")}
            rows[name]["cells"][column["id"]] = _cell(counted) | ranking
        column["n_ranked"] = len(ranked)
    heads, plane = [column for column, _ in columns], plane_of_table(entries) if task == "preservation" else {}
    with_ranks = [column for column in heads if column["n_ranked"]]
    leading = (column for name in (SUCCESS, HEADLINES[task]) for column in with_ranks if column["metric"] == name)
    headline = next(leading, heads[0])
    fields = ("difference", "low", "high", "p_value", "p_holm", "n", "is_significant")
    listed = []
    for pair in tests if len(tests) <= MOST_TESTS else ():
        names = list(placed[pair.column])
        where = {"column": heads[pair.column]["id"], "a": names[pair.a], "b": names[pair.b]}
        listed.append(where | {key: getattr(pair, key) for key in fields})
    parts = (task, *(settings.get(key) for key in (*NAMES, "variant")))
    words = "-".join("".join(c if c.isascii() and c.isalnum() else "_" for c in str(part)) for part in parts if part)
    conditions = {key: value for key, value in settings.items() if key not in NAMES}
    return {
        "id": f"{words[:80]}-{hashlib.sha256(key_of(conditions).encode()).hexdigest()[:6]}",  # for any file system
        "title": _title(task, settings),
        "task": task,
        "preset": next((preset.name for preset in PRESETS if preset.task == task and fits(preset, settings)), None),
        "settings": settings,
        "apart": [],
        "notes": [*_on_order(records), *_notes(records, entries, len(tests))],
        "headline": headline["id"],
        "columns": sorted(heads, key=lambda column: column is not headline),
        "rows": list(rows.values()),
        "tests": listed,
        "n_tests": len(tests),
        **({"plane": plane} if plane else {}),
        "published": None,
    }


def _settings(records: Sequence[ResultRecord]) -> Row:
    """Return what all records of a table have in common, and all names that its references go by."""
    named = {key: [value for record in records if (value := getattr(record, key))] for key in NAMES}
    return {key: ", ".join(dict.fromkeys(values)) or None for key, values in named.items()} | {
        key: value for key, value in conditions_of(records[0]).items() if key not in NAMES
    }


def _placed(cells: Mapping[str, Counted]) -> dict[str, ResultRecord]:
    """Return those that have a place in a column, controls last; empty if no system is ranked."""
    held = {name: counted.record for name, counted in cells.items() if takes_place(counted.record)}
    if not any(level(record) < 2 for record in held.values()):
        return {}
    return dict(sorted(held.items(), key=lambda pair: level(pair[1])))


def _untold(names: Sequence[str], tests: Sequence[Comparison]) -> dict[str, str]:
    """Return a mark for each system that does not differ significantly from a control."""
    controls: dict[str, list[str]] = {}
    for test in tests:
        if test.control is not None and test.is_untold:
            controls.setdefault(names[test.a + test.b - test.control], []).append(names[test.control])
    return {
        name: f"not told from {', '.join(held[:MOST_NAMES])}"
        + (f" and {len(held) - MOST_NAMES} more" if len(held) > MOST_NAMES else "")
        for name, held in controls.items()
    }


def _ordered(table: Row, by: str | None) -> list[Row]:
    """Return rows in the order of their mean place, controls first among equals, those without a place last."""
    # controls that are equal keep the order of their run, in which people's own come first
    ranked = [column for column in table["columns"] if column["n_ranked"]]
    head = HEADLINES[table["task"]]
    meant = [column for column in ranked if column["metric"] == head and table["task"] in BY_HEADLINE] or ranked
    chosen = [column for column in ranked if by in {column["metric"], column["id"]}] or meant

    def place(row: Row, columns: Sequence[Row], key: str = "place") -> float:
        values = [row["cells"].get(column["id"], {}).get(key) for column in columns]
        if all(value is None for value in values):
            return math.inf
        after = [column["n_ranked"] + 1 for column in columns]
        return float(np.mean([last if value is None else value for value, last in zip(values, after, strict=True)]))

    # a mean over ranks of preservation would be won by who returns the input
    is_two = any(column["metric"] == SUCCESS for column in ranked)
    names = sorted(row["label"] for row in table["rows"] if is_two and row["kind"] == "ranked")
    lead = [*dict.fromkeys([*front_first(table.get("plane", {}).get("systems", {})), *names])] if by is None else []
    for row in table["rows"]:
        row["mean_rank"] = None if is_two or math.isinf(mean := place(row, meant)) else mean
    kinds = ("ranked", "control", "unranked")
    return sorted(
        table["rows"],
        key=lambda row: (
            lead.index(row["label"]) if row["label"] in lead else len(lead),
            place(row, chosen),
            -LEVELS.get(row["role"], 0),
            place(row, chosen, "by_value"),
            place(row, meant, "by_value"),
            kinds.index(row["kind"]),
            "" if row["role"] == "control" else row["label"],
        ),
    )


def _columns(entries: Sequence[Entry]) -> list[tuple[Row, dict[str, ResultRecord]]]:
    """Return the columns, each with name of the system -> record."""
    held: dict[tuple[str, str], dict[str, ResultRecord]] = {}
    for entry in entries:
        for where, record in entry.records.items():
            held.setdefault(where, {})[entry.name] = record
    metrics = [metric for metric, _ in held]
    counts: collections.Counter[str] = collections.Counter()
    columns: list[tuple[Row, dict[str, ResultRecord]]] = []
    for (metric, _), records in held.items():
        counts[metric] += 1
        first = next(iter(records.values()))
        name = metric if metrics.count(metric) == 1 else f"{metric} #{counts[metric]}"
        current, definition = CATALOGUE.get(first.metric), first.extractors.get("definition", 1)
        title = first.title  # which names a definition that is not this version's
        if current is not None and definition != current.definition_under(first.variant):
            title = f"{title}, definition {definition}"
        about = {"id": name, "metric": metric, "title": title, "direction": first.direction}
        columns.append((about | {"extractors": dict(first.extractors), "differs": "", "n_ranked": 0}, records))
    for column, _ in columns:
        others = [other for other, _ in columns if other["metric"] == column["metric"] and other is not column]
        if others:
            sides = ({"definition": 1, **side["extractors"]} for side in (column, others[0]))
            column["differs"] = "; ".join(_differences(*sides))
    return columns


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


def _row(entry: Entry, cells: Sequence[Counted | None]) -> Row:
    records = [counted.record for counted in cells if counted is not None]
    has_rank = any(map(is_ranked, records))
    reasons = sorted({record.unranked for record in records} - {""})
    is_control = entry.last.role == "control"
    return {
        "label": entry.name,
        "system": entry.last.system,
        "kind": "ranked" if has_rank else "control" if is_control else "unranked",
        "why": "" if has_rank else "; ".join(reasons) or UNDEFINED,
        "remark": OUTSIDE if any(map(_is_outside, records)) else "",
        **{name: getattr(entry.last, name) for name in ("role", "content", "submitter", "date", "source")},
        "mean_rank": None,
        "cells": {},
    }


def _is_outside(record: ResultRecord) -> bool:
    """Tell whether the interval of a divergence, corrected for its bias, does not hold the value."""
    if record.kind != DIVERGENCE or record.value is None or record.low is None or record.high is None:
        return False
    return not record.low <= record.value <= record.high


def _cell(counted: Counted) -> Row:
    record, n_filled = counted
    bounds = (record.low, record.high)
    interval = "" if None in bounds else "..".join(shown(bound, *bounds) for bound in bounds)
    return {
        **{key: getattr(record, key) for key in ("value", "low", "high", "floor", "n", "n_defined", "n_failed")},
        "why": record.unranked or (UNDEFINED if record.value is None else ""),
        "shown": shown(record.value, *bounds),
        "interval": f"{interval} *" if _is_outside(record) else interval,
        "filled": n_filled,
        "record": record.id,
        "run": record.run,
    }


def _on_order(records: Sequence[ResultRecord]) -> Iterator[str]:
    if any(record.metric == SUCCESS and is_ranked(record) for record in records):
        yield "rows are in the order of the Pareto front of success and preservation, then of the name: no mean rank"


def _notes(records: Sequence[ResultRecord], entries: Sequence[Entry], n_tests: int) -> Iterator[str]:
    if REFERENCES not in records[0].settings:
        yield "what the references hold was not recorded: nothing but this run can stand here; add its results again"
    head = HEADLINES[records[0].task]
    if records[0].task in BY_HEADLINE and any(record.metric == head for record in records):
        yield f"the mean rank is that of {metric_of(head).heading} alone: in other scores nonsense may be above people"
    if n_tests > MOST_TESTS:
        yield f"{n_tests} tests, which are not written down one by one"
    counted = [record for entry in entries for record in entry.records.values()]
    versions = sorted({str(record.receipt.get("versions", {}).get("music_evals")) for record in counted})
    if len(versions) > 1:
        yield f"made with several versions of music_evals: {', '.join(versions)}"
    yield from on_kernels(sorted({name for record in counted for name in record.receipt.get("kernels", ())}))
    superseded = sum(entry.n_superseded for entry in entries)
    if superseded:
        yield f"{superseded} scores were added again later by the same hand; the last ones count"
    if n_retained := sum(entry.n_kept for entry in entries):
        yield f"{n_retained} scores that were added later may not be ranked; the ranked ones of the same hand count"
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
    place = " ".join(str(settings[key]) for key in NAMES if settings.get(key))
    words = f"{place[:LONGEST_PLACE]}..." if len(place) > LONGEST_PLACE else place
    return f"{TASK_NAMES[task]}: {words}, variant {settings['variant']}, references {settings[REFERENCES][:6]}"


def _set_apart(tables: Sequence[Row]) -> None:
    """Say of each table which others are of the same references or names, and why they are no single ranking."""
    for table in tables:
        for other in tables:
            own, theirs = table["settings"], other["settings"]
            is_near = own[REFERENCES] == theirs[REFERENCES] or all(own[key] == theirs[key] for key in NAMES)
            if other is not table and other["task"] == table["task"] and is_near:
                conditions = ({key: side[key] for key in side.keys() - {*NAMES}} for side in (own, theirs))
                table["apart"].append(
                    {"table": other["id"], "title": other["title"], "reasons": _differences(*conditions)}
                )
