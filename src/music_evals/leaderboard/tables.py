"""From records to tables: what may be ranked together, what stands outside, and why.

A table holds the results of one task whose ``settings`` are equal: dataset, config, split, content, variant, protocol,
encoder, options, readers. Its columns are metrics; a metric that was made with different extractors has a column for
each. Tables of one dataset and split tell how they differ, which is why they are no single ranking.

In a table a row is a system: its name and role, the hash of its files, and who added it. Where all of these are told
and equal, what was added last counts: by the order in which the board grew, not by the date that somebody wrote. A
score that may not be ranked never takes the place of one that is. Where the hash or the name of who added it is
missing, two additions are two rows, as nothing shows that they are of one system; what else cannot be told apart is
numbered. Equal records have one id and are read once, such as a baseline that two people ran in the same way. Who
added a record is what they said.

Controls, leaking systems, runs over a part of the split, and scores with failures stand outside the ranking, each with
its reason. Tables of papers stand beside ours as "published, not re-run" and are never ranked.
"""

from __future__ import annotations

import collections
import hashlib
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from music_evals.benchmark.cells import plain
from music_evals.benchmark.published import (
    published_descriptions,
    published_lyrics,
    published_preservation,
    published_section,
    read_published,
)
from music_evals.benchmark.tables import FEW_GROUPS
from music_evals.benchmark.versions import on_kernels
from music_evals.leaderboard.ranks import ALPHA, Comparison, Progress, compare_pairs, rank_ranges
from music_evals.leaderboard.records import ResultRecord
from music_evals.metrics.catalogue import PRESERVATION_METRICS, metric_of

__all__ = ["FORMAT", "PRESETS", "PUBLISHED", "Preset", "decimals_of", "make_leaderboard", "records_digest", "shown"]

FORMAT = 1
PUBLISHED = "published, not re-run"
UNDEFINED = "undefined"

NO_INTERVAL_DECIMALS, MOST_DECIMALS = 3, 6
NO_WIDTH = 1e-12
"""Intervals that are not wider differ by rounding alone."""

TASK_NAMES: Final = {
    "inpainting": "Score inpainting",
    "preservation": "Music editing: what is preserved",
    "lyrics": "Structured lyrics",
    "descriptions": "Music description",
}
HEADLINES: Final = {
    "inpainting": "note_f1",
    "preservation": "chroma_dtw_similarity",
    "lyrics": "lyric_structure",
    "descriptions": "tag_semantic_similarity",
}
"""Task -> the metric that a table is sorted by at first; one that none of its systems has makes way for the first."""


class Preset(NamedTuple):
    """A table that a reader should see first.

    Attributes
    ----------
    name
        What it is called.
    task
        Of its records.
    settings
        What those of the table must say.
    published
        Table of a paper that belongs beside it: one of `_PUBLISHED`, or empty.

    """

    name: str
    task: str
    settings: Mapping[str, Any]
    published: str = ""


PRESETS: Final = (
    Preset(
        "Score inpainting: JSB Chorales",
        "inpainting",
        {"dataset": "jsb_chorales", "config": "musib", "split": "test", "variant": "corrected"},
    ),
    Preset(
        "Score inpainting: JSB Chorales, the published conditions",
        "inpainting",
        {"dataset": "jsb_chorales", "config": "musib_official", "split": "test", "variant": "official"},
        "inpainting",
    ),
    Preset(
        "Music editing: MedleyDB",
        "preservation",
        {"dataset": "medleydb_editing", "split": "test", "variant": "corrected"},
        "preservation",
    ),
    Preset(
        "Structured lyrics: CaiMD",
        "lyrics",
        {"dataset": "caimd", "config": "v2", "split": "test", "variant": "official", "option normalise": True},
        "lyrics",
    ),
    Preset(
        "Music description: CaiMD",
        "descriptions",
        {"dataset": "caimd", "config": "v2", "split": "test", "variant": "mean"},
        "descriptions",
    ),
)
"""What comes first, in this order; where there are no results yet, the published table stands alone."""

Row = dict[str, Any]


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
    records: Sequence[ResultRecord], *, seed: int = 0, progress: Progress | None = None
) -> dict[str, Any]:
    """Return all tables, as one value that JSON can hold.

    Parameters
    ----------
    records
        Of a board, in the order in which they were added, which decides what counts.
    seed
        Of the tests.
    progress
        Called after each test: tests done, tests of this table, metric.

    Returns
    -------
    dict
        ``format``, ``alpha``, ``records`` (`records_digest`) and ``tables``, those of presets first. A table has
        ``id``, ``title``, ``task``, ``preset`` (name or None), ``settings``, ``apart`` (tables of the same split that
        it is not ranked with: ``table``, ``title``, ``reasons``), ``notes``, ``headline``, ``columns``, ``rows``,
        ``tests`` and ``published`` (``source`` and ``differences``, or None). A column has ``id``, ``metric``,
        ``title``, ``direction``, ``extractors``, ``differs`` (what sets it apart from the columns of the same metric)
        and ``n_ranked``. A row has ``label``, ``system``, ``kind`` (``"ranked"``, ``"unranked"``, ``"published"``),
        ``why``, ``role``, ``content``, ``submitter``, ``date``, ``source`` and ``cells``: column ->
        ``value``, ``low``, ``high``, ``floor``, ``n``, ``n_defined``, ``n_failed``, ``rank`` ([first, last] or None),
        ``why``, ``shown``, ``interval``,
        ``record`` and ``run``. Equal records in the same order give equal tables.

    """
    grouped: dict[str, list[ResultRecord]] = {}
    for record in records:
        grouped.setdefault(_key({"task": record.task, **record.settings}), []).append(record)
    tables = [_table(found, seed, progress) for found in grouped.values()]
    _tell_apart(tables)
    held = {table["preset"] for table in tables}
    tables += [_printed_alone(preset) for preset in PRESETS if preset.published and preset.name not in held]
    order = {preset.name: number for number, preset in enumerate(PRESETS)}
    tables.sort(key=lambda table: (order.get(table["preset"], len(order)), -len(table["rows"]), table["id"]))
    content: dict[str, Any] = plain(
        {"format": FORMAT, "alpha": ALPHA, "records": records_digest(records), "tables": tables}
    )
    return content


def _key(mapping: Mapping[str, Any]) -> str:
    return json.dumps(mapping, sort_keys=True, ensure_ascii=False)


def _table(records: Sequence[ResultRecord], seed: int, progress: Progress | None) -> dict[str, Any]:
    task, settings = records[0].task, dict(records[0].settings)
    entries = _entries(records)
    columns = _columns(entries)
    ranked = [[record for record in found.values() if _is_ranked(record)] for _, found in columns]
    tests = compare_pairs(ranked, seed=seed, progress=progress)
    rows = _rows(entries)
    told = []
    for number, (column, found) in enumerate(columns):
        own = [test for test in tests if test.column == number]
        ranges = dict(zip((record.id for record in ranked[number]), rank_ranges(len(ranked[number]), own), strict=True))
        for name, record in found.items():
            rank = ranges.get(record.id)
            rows[name]["cells"][column["id"]] = _cell(record) | {"rank": None if rank is None else list(rank)}
        told.append(column | {"n_ranked": len(ranked[number])})
    preset = next((preset for preset in PRESETS if preset.task == task and _fits(preset, settings)), None)
    printed = _published(preset) if preset and preset.published else None
    table: Row = {
        "id": _slug(task, settings),
        "title": _title(task, settings),
        "task": task,
        "preset": preset.name if preset else None,
        "settings": settings,
        "apart": [],
        "notes": list(_notes(records, entries)),
        "headline": _headline(task, told),
        "columns": told,
        "rows": list(rows.values()),
        "tests": [_test(test, told, ranked, entries) for test in tests],
        "published": None,
    }
    table["rows"].sort(key=lambda row: _order(row, table))
    table["columns"].sort(key=lambda column: bool(column["id"] != table["headline"]))
    if printed:
        _add_published(table, printed)
    return table


def _is_ranked(record: ResultRecord) -> bool:
    return not record.unranked and record.value is not None


class _Entry(NamedTuple):
    """A system in a table: metric with its extractors -> the record that counts, and the one that was added last."""

    name: str
    records: dict[tuple[str, str], ResultRecord]
    last: ResultRecord
    n_superseded: int
    n_kept: int


class _Who(NamedTuple):
    """What makes records one row; run and number are empty where hash and submitter are told."""

    system: str
    role: str
    content: str
    submitter: str
    run: str
    number: int


Where = tuple[str, str]
"""Metric, and its extractors as JSON."""


def _where(record: ResultRecord) -> Where:
    return record.metric, _key(record.extractors)


def _entries(records: Sequence[ResultRecord]) -> list[_Entry]:
    """Return the rows of a table; see the module on which records make a row."""
    unique: dict[str, ResultRecord] = {}
    for record in records:
        unique.setdefault(record.id, record)
    found: dict[_Who, list[ResultRecord]] = {}
    times: collections.Counter[tuple[_Who, Where]] = collections.Counter()
    for record in unique.values():
        who = _Who(record.system, record.role, record.content or "", record.submitter, "", 0)
        if not (who.content and who.submitter):  # one of a kind in each addition: none replaces another
            who = who._replace(run=record.run)
            times[who, _where(record)] += 1
            who = who._replace(number=times[who, _where(record)])
        found.setdefault(who, []).append(record)
    return [_entry(label, own) for label, own in zip(_labels(list(found)), found.values(), strict=True)]


def _entry(label: str, records: Sequence[ResultRecord]) -> _Entry:
    """Return the row of records of one system, in the order in which they were added."""
    counted: dict[Where, ResultRecord] = {}
    n_superseded = n_kept = 0
    for record in records:
        before = counted.get(_where(record))
        if before is not None and _is_ranked(before) and not _is_ranked(record):
            n_kept += 1
            continue
        n_superseded += before is not None
        counted[_where(record)] = record
    ids = {record.id for record in counted.values()}
    last = next(record for record in reversed(records) if record.id in ids)
    return _Entry(label, counted, last, n_superseded, n_kept)


def _labels(keys: Sequence[_Who]) -> list[str]:
    """Return a label for each row: the name, and where several have it what tells them apart; no label is there twice.

    Two additions that nothing else tells apart are numbered.
    """
    names = collections.Counter(key.system for key in keys)
    labels: dict[str, None] = {}
    numbers: collections.Counter[str] = collections.Counter()
    for key in keys:
        beside = ", ".join(filter(None, (key.role, key.content[:8], key.submitter)))
        plain_label = f"{key.system} ({beside})" if names[key.system] > 1 and beside else key.system
        label = plain_label
        while label in labels:
            numbers[plain_label] += 1
            label = f"{plain_label} #{numbers[plain_label] + 1}"
        labels[label] = None
    return list(labels)


def _columns(entries: Sequence[_Entry]) -> list[tuple[Row, dict[str, ResultRecord]]]:
    """Return the columns, each with name of the system -> record."""
    held: dict[tuple[str, str], dict[str, ResultRecord]] = {}
    for entry in entries:
        for where, record in entry.records.items():
            held.setdefault(where, {})[entry.name] = record
    metrics = [metric for metric, _ in held]
    seen: dict[str, int] = {}
    columns = []
    for (metric, _), found in held.items():
        seen[metric] = seen.get(metric, 0) + 1
        one = next(iter(found.values()))
        column: Row = {
            "id": metric if metrics.count(metric) == 1 else f"{metric} #{seen[metric]}",
            "metric": metric,
            "title": one.title,
            "direction": one.direction,
            "extractors": dict(one.extractors),
            "differs": "",
        }
        columns.append((column, found))
    for column, _ in columns:
        others = [other for other, _ in columns if other["metric"] == column["metric"] and other is not column]
        if others:
            column["differs"] = "; ".join(_differences(column["extractors"], others[0]["extractors"]))
    return columns


def _differences(own: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    """Return what differs, as ``name: ours, elsewhere theirs``."""
    return [
        f"{name}: {_told(own.get(name))}, elsewhere {_told(other.get(name))}"
        for name in sorted(own.keys() | other.keys())
        if own.get(name) != other.get(name)
    ]


def _told(value: object) -> str:
    if isinstance(value, Mapping):
        return " ".join(f"{_told(part)}" if key == "backend" else f"{key} {_told(part)}" for key, part in value.items())
    return "none" if value is None else str(value)


def _rows(entries: Sequence[_Entry]) -> dict[str, Row]:
    rows: dict[str, Row] = {}
    for entry in entries:
        reasons = {record.unranked for record in entry.records.values()}
        ranked = any(map(_is_ranked, entry.records.values()))
        rows[entry.name] = {
            "label": entry.name,
            "system": entry.last.system,
            "kind": "ranked" if ranked else "unranked",
            "why": "" if ranked else "; ".join(sorted(filter(None, reasons))) or UNDEFINED,
            **{name: getattr(entry.last, name) for name in ("role", "content", "submitter", "date", "source")},
            "cells": {},
        }
    return rows


def _cell(record: ResultRecord) -> Row:
    numbers = {name: getattr(record, name) for name in ("value", "low", "high", "floor", "n", "n_defined", "n_failed")}
    bounds = (record.low, record.high)
    return {
        **numbers,
        "why": record.unranked or (UNDEFINED if record.value is None else ""),
        "shown": shown(record.value, *bounds),
        "interval": "" if None in bounds else "..".join(shown(bound, *bounds) for bound in bounds),
        "record": record.id,
        "run": record.run,
    }


def _test(
    test: Comparison, columns: Sequence[Row], ranked: Sequence[Sequence[ResultRecord]], entries: Sequence[_Entry]
) -> Row:
    names = {record.id: entry.name for entry in entries for record in entry.records.values()}
    found = ranked[test.column]
    return {
        "column": columns[test.column]["id"],
        "a": names[found[test.a].id],
        "b": names[found[test.b].id],
        "difference": test.difference,
        "p_value": test.p_value,
        "p_holm": test.p_holm,
        "n": test.n,
        "is_significant": test.is_significant,
    }


def _headline(task: str, columns: Sequence[Row]) -> str:
    wanted = next((column["id"] for column in columns if column["metric"] == HEADLINES[task]), None)
    return str(wanted or columns[0]["id"])


def _order(row: Row, table: Mapping[str, Any]) -> tuple[Any, ...]:
    """Sort ranked rows first, by rank and then by value of the headline; then others by name."""
    cell = row["cells"].get(table["headline"])
    direction = next(column["direction"] for column in table["columns"] if column["id"] == table["headline"])
    if row["kind"] != "ranked" or cell is None or cell["rank"] is None:
        return (1 if row["kind"] == "ranked" else 2, row["label"])
    merit = cell["value"] if direction == "higher" else -abs(cell["value"])
    return (0, *cell["rank"], -merit, row["label"])


def _notes(records: Sequence[ResultRecord], entries: Sequence[_Entry]) -> Iterator[str]:
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
    clusters = {len(set(record.groups)) for record in counted if record.n_defined}
    if clusters and min(clusters) < FEW_GROUPS:
        yield f"as few as {min(clusters)} groups of items: intervals are too narrow, and few differences can be found"


def _fits(preset: Preset, settings: Mapping[str, Any]) -> bool:
    return all(settings.get(key) == value for key, value in preset.settings.items())


def _title(task: str, settings: Mapping[str, Any]) -> str:
    place = " ".join(str(settings[key]) for key in ("dataset", "config", "split") if settings.get(key))
    return f"{TASK_NAMES[task]}: {place}, variant {settings['variant']}"


def _slug(task: str, settings: Mapping[str, Any]) -> str:
    """Return a name that any file system takes: letters, digits and hyphens, and a hash of all settings."""
    parts = (task, *(settings.get(key) for key in ("dataset", "config", "split", "variant")))
    words = "-".join("".join(c if c.isascii() and c.isalnum() else "_" for c in str(part)) for part in parts if part)
    return f"{words[:80]}-{hashlib.sha256(_key(settings).encode()).hexdigest()[:6]}"


def _tell_apart(tables: Sequence[Row]) -> None:
    """Tell each table which others are of the same split, and why they are no single ranking."""
    place = ("dataset", "config", "split")
    for table in tables:
        for other in tables:
            same = all(table["settings"].get(key) == other["settings"].get(key) for key in place)
            if other is not table and other["task"] == table["task"] and same:
                reasons = _differences(table["settings"], other["settings"])
                table["apart"].append({"table": other["id"], "title": other["title"], "reasons": reasons})


def _published(preset: Preset) -> dict[str, Any]:
    if preset.published == "inpainting":
        return published_section()
    if preset.published == "preservation":
        return published_preservation(PRESERVATION_METRICS)
    if preset.published == "lyrics":
        return published_lyrics(HEADED["lyrics"])
    return published_descriptions(HEADED["descriptions"])


HEADED: Final = {
    name: tuple(dict.fromkeys(score for row in read_published(file).means.values() for score in row))
    for name, file in (("lyrics", "muchin_table1"), ("descriptions", "muchin_table2"))
}
"""Published table -> its scores."""


def _add_published(table: Row, printed: Mapping[str, Any]) -> None:
    """Put the rows of a paper below ours, in the first column of each metric."""
    columns: dict[str, str] = {}
    for column in table["columns"]:
        columns.setdefault(column["metric"], column["id"])
    decimals = _printed_decimals(printed["table"])
    spread = printed.get("spread", {})
    for system, scores in printed["table"].items():
        cells = {
            columns[metric]: _printed_cell(value, decimals[metric], spread.get(system, {}).get(metric))
            for metric, value in scores.items()
            if metric in columns
        }
        table["rows"].append(
            {
                "label": system,
                "system": system,
                "kind": "published",
                "why": PUBLISHED,
                **dict.fromkeys(("role", "content", "submitter", "date"), ""),
                "source": printed["source"],
                "cells": cells,
            }
        )
    table["published"] = {"source": printed["source"], "differences": printed["differences"]}


def _printed_decimals(table: Mapping[str, Mapping[str, float]]) -> dict[str, int]:
    found: dict[str, int] = {}
    for row in table.values():
        for metric, value in row.items():
            found[metric] = max(found.get(metric, 0), len(repr(value).partition(".")[2]))
    return found


def _printed_cell(value: float, decimals: int, spread: float | None) -> Row:
    undefined = dict.fromkeys(("low", "high", "floor", "n", "n_defined", "n_failed", "rank"))
    interval = "" if spread is None else f"sd {spread:.{decimals}f}"
    text = f"{value:.{decimals}f}"
    return {"value": value, **undefined, "why": PUBLISHED, "shown": text, "interval": interval, "record": "", "run": ""}


def _printed_alone(preset: Preset) -> Row:
    """Return the table of a preset that has no results yet: what is published."""
    printed = _published(preset)
    metrics = list(dict.fromkeys(metric for row in printed["table"].values() for metric in row))
    columns = [
        {"id": metric, "metric": metric, **_about(metric), "extractors": {}, "differs": "", "n_ranked": 0}
        for metric in metrics
    ]
    table: Row = {
        "id": _slug(preset.task, preset.settings),
        "title": _title(preset.task, preset.settings),
        "task": preset.task,
        "preset": preset.name,
        "settings": dict(preset.settings),
        "apart": [],
        "notes": ["no results yet: what papers report stands alone"],
        "headline": _headline(preset.task, columns),
        "columns": columns,
        "rows": [],
        "tests": [],
        "published": None,
    }
    _add_published(table, printed)
    return table


def _about(metric: str) -> dict[str, str]:
    """Return title and direction of a metric that is known from its paper alone."""
    about = metric_of(metric)
    return {"title": about.heading, "direction": about.direction}
