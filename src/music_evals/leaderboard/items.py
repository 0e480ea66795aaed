"""The items of a table: matched by what they are held against, and none left out to one's own good.

Runs may call the same reference by other names, so that items are matched by the hash of their reference, and where a
reference has several items in a run, such as several edits of one recording, by their order in it. What a system made
with other seeds is no item of its own. A control that has fewer items of a reference is beside all of them.

Who leaves out what is hard must not gain by it. A score that a system does not define, where a control or half of the
ranked systems do, counts as the worst of the controls there, and no better than the system's own mean. Where no control
says what such items are worth, and for divergences, which are of all items together, the system is not ranked.
"""

from __future__ import annotations

import collections
import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from music_evals.leaderboard.records import A_CONTROL, DIVERGENCE, ResultRecord, base_item
from music_evals.metrics.catalogue import CATALOGUE
from music_evals.pipelines.intervals import intervals_of_means

LEVELS: Final = {"baseline": 1, "control": 2}  # role -> level; that of others is 0

_SIDES = ("groups", "references", "reference_values", "targets")


def level(record: ResultRecord) -> int:
    """Return 0 for a system, 1 for a baseline, 2 for a control: the higher ones show what the lower have to beat."""
    return LEVELS.get(record.role, 0)


def takes_place(record: ResultRecord) -> bool:
    """Tell whether a score has a place in a ranking: that of a ranked system, or of a control."""
    wanted = A_CONTROL if record.role == "control" else ""
    return record.value is not None and record.direction != "none" and record.unranked == wanted


def merit(record: ResultRecord, value: float) -> float:
    """Return a number that is larger for a better score."""
    return value if record.direction == "higher" else -value if record.direction == "lower" else -abs(value)


def span_of(record: ResultRecord) -> tuple[float, float]:
    """Return the range of a score, which is open where the catalogue does not know it."""
    metric = CATALOGUE.get(record.metric)
    return (-math.inf, math.inf) if metric is None else (metric.low, metric.high)


def mean_of_seeds(seeds: Sequence[float | None]) -> float:
    """Return the mean of what is defined; NaN where nothing is."""
    defined = [value for value in seeds if value is not None]
    if len(defined) < 2:  # the mean of numpy takes its time
        return defined[0] if defined else math.nan
    return float(np.mean(defined))


def match_items(records: Sequence[ResultRecord]) -> list[ResultRecord]:
    """Return the records of a table with names of items that are the same wherever the item is."""
    known: dict[tuple[str, str], set[str]] = {}
    for record in records:
        for item, reference in zip(record.items, record.references, strict=False):
            known.setdefault((record.run, reference), set()).add(base_item(item))
    places = {
        (run, reference, item): place
        for (run, reference), items in known.items()
        for place, item in enumerate(sorted(items))
    }
    matched = []
    for record in records:
        rows: dict[tuple[str, int], list[int]] = {}
        for row, (item, reference) in enumerate(zip(record.items, record.references, strict=False)):
            rows.setdefault((reference, places[record.run, reference, base_item(item)]), []).append(row)
        for (reference, _), held in list(rows.items()) if record.role == "control" else ():
            for place in range(len(known[record.run, reference])):
                rows.setdefault((reference, place), held)
        first = [held[0] for held in rows.values()]
        taken: dict[str, Any] = {
            name: tuple(side[row] for row in first) for name in _SIDES if (side := getattr(record, name))
        }
        values = tuple(tuple(value for row in held for value in record.values[row]) for held in rows.values())
        names = tuple(f"{reference} {place}" for reference, place in rows)
        matched.append(dataclasses.replace(record, items=names, values=values, **taken) if rows else record)
    return matched


class Counted(NamedTuple):
    """A record as it counts in a table, and what is to be said of it."""

    record: ResultRecord
    n_filled: int = 0


def complete(records: Mapping[str, ResultRecord]) -> dict[str, Counted]:
    """Return the records of a column, by the name of their row, with what they leave out; see the module."""
    placed = {name: record for name, record in records.items() if takes_place(record)}
    defined = {name: _defined(record) for name, record in placed.items()}
    ranked = [name for name, record in placed.items() if level(record) < 2]
    controls = [name for name, record in placed.items() if level(record)]
    times = collections.Counter(item for name in ranked for item in defined[name])
    wanted = {item for item, n in times.items() if 2 * n >= len(ranked)}
    wanted.update(item for name in controls for item in defined[name])
    counted = {name: Counted(record) for name, record in records.items()}
    for name in ranked:
        missing = sorted(item for item in wanted if defined[name].get(item, NOTHING).share < 1)
        if not defined[name]:
            counted[name] = Counted(dataclasses.replace(placed[name], unranked="its record holds no scores of items"))
        elif missing:
            fillers = [defined[other] for other in controls if other != name]
            counted[name] = _filled(placed[name], defined[name], missing, fillers)
    return counted


class _Score(NamedTuple):
    """The mean over the seeds of an item that define it, their share, and the group."""

    mean: float
    share: float
    group: str


NOTHING = _Score(0.0, 0.0, "")


def _defined(record: ResultRecord) -> dict[str, _Score]:
    """Return what is defined, by item."""
    scores = {}
    for item, group, seeds in zip(record.items, record.groups, record.values, strict=True):
        share = sum(value is not None for value in seeds) / max(len(seeds), 1)
        if share == 1 or (share and record.kind != DIVERGENCE):  # of which a seed without a value leaves the item out
            scores[item] = _Score(mean_of_seeds(seeds), share, group)
    return scores


def _filled(
    record: ResultRecord, own: Mapping[str, _Score], missing: Sequence[str], fillers: Sequence[Mapping[str, _Score]]
) -> Counted:
    mean = float(np.mean([score.mean for score in own.values()]))
    rows = dict(own)
    for item in missing:
        offered = [held[item] for held in fillers if item in held]
        if not offered or record.kind == DIVERGENCE:
            reason = f"it leaves out {len(missing)} items that others define"
            return Counted(dataclasses.replace(record, unranked=reason))
        worst = min(offered, key=lambda score: merit(record, score.mean))
        counted = min(worst.mean, mean, key=lambda value: merit(record, value))
        held = own.get(item, worst._replace(share=0.0))
        rows[item] = _Score(held.share * held.mean + (1 - held.share) * counted, 1.0, held.group)
    values, _, groups = zip(*rows.values(), strict=True)
    [interval] = intervals_of_means([record.metric], np.array(values)[:, None], groups, record.confidence)
    ends: dict[str, Any] = {
        key: None if math.isnan(end) else end for key, end in (("low", interval.low), ("high", interval.high))
    }
    seeds = tuple((value,) for value in values)
    changed = dataclasses.replace(
        record, items=tuple(rows), groups=groups, values=seeds, references=(), targets=(), **ends
    )
    return Counted(dataclasses.replace(changed, value=interval.estimate), len(missing))
