"""The plane of a table: systems by what they did of what was asked, and by what they preserved.

It is that of `benchmark.tasks.preservation.plane`, made of records: the scale of preservation lies between the two
controls of the table, and who is not ranked is drawn and has no order. Where there is one, it orders the rows: no board
orders systems by preservation alone where success is known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from music_evals.benchmark.tasks.preservation.facets import calibrate
from music_evals.benchmark.tasks.preservation.pairs import CEILING, UNRELATED
from music_evals.benchmark.tasks.preservation.plane import Edits, plane
from music_evals.leaderboard.entries import Entry, is_ranked
from music_evals.leaderboard.items import mean_of_seeds
from music_evals.leaderboard.records import ResultRecord
from music_evals.metrics.catalogue import PRESERVATION_METRICS
from music_evals.pipelines.edit_success import SUCCESS
from music_evals.stats.calibration import Clustered

__all__ = ["plane_of_table"]


def plane_of_table(entries: Sequence[Entry], *, seed: int = 0) -> dict[str, Any]:
    """Return the plane of the rows of a table, see `plane.plane`; nothing without success or without both controls."""
    controls = {entry.last.system: entry for entry in reversed(entries) if entry.last.role == "control"}
    if not {CEILING, UNRELATED} <= controls.keys():
        return {}
    # of each score the column that the control has: another one was made with other extractors, or of other targets
    columns = {metric: (metric, about) for metric, about in reversed(controls[CEILING].records)}
    names = [name for name in PRESERVATION_METRICS if name in columns]
    if SUCCESS not in columns:
        return {}
    numbers: dict[str, int] = {}
    systems = {}
    for entry in entries:
        records = [entry.records.get(columns[name]) for name in (SUCCESS, *names)]
        if (success := records[0]) is None or None in records:
            continue
        values = np.array([_values(record, success.items) for record in records if record is not None]).T
        groups = np.array([numbers.setdefault(name, len(numbers)) for name in success.groups], dtype=np.int64)
        role = "system" if is_ranked(success) else "control" if entry.last.role == "control" else "leaking"
        systems[entry.name] = Edits(role, values[:, 0], values[:, 1:], groups)
    sides = [systems[name] for name in (controls[CEILING].name, controls[UNRELATED].name) if name in systems]
    if len(sides) < 2:
        return {}
    held = calibrate(names, *(Clustered(side.values, side.groups) for side in sides))
    return {} if held is None else plane(held, systems, seed=seed)


def _values(record: ResultRecord, items: Sequence[str]) -> list[float]:
    """Return the score of each of these items."""
    held: Mapping[str, float] = dict(zip(record.items, map(mean_of_seeds, record.values), strict=True))
    return [held.get(item, np.nan) for item in items]
