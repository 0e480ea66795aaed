"""The plane of a table: systems by what they did of what was asked, and by what they preserved.

It is that of `benchmark.tasks.preservation.plane`, made of records: the scale of preservation lies between the two
controls of the table, and who is not ranked is drawn and has no order. Where there is one, it orders the rows: no board
orders systems by preservation alone where success is known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from music_evals.benchmark.tasks.preservation.facets import NOT_COUNTED, calibrate, sided
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
    if SUCCESS not in columns:
        return {}
    variant = next(iter(controls[CEILING].records.values())).variant
    scales = sided([name for name in PRESERVATION_METRICS if name in columns], columns, variant)
    wanted = [columns[name] for name in (SUCCESS, *scales)]
    groups: dict[str, int] = {}
    systems = {}
    for entry in (entry for entry in entries if entry.records.keys() >= {*wanted}):
        records = [entry.records[where] for where in wanted]
        values = np.array([_values(record, records[0].items) for record in records], dtype=np.float64).T
        own = np.array([groups.setdefault(name, len(groups)) for name in records[0].groups], dtype=np.int64)
        role = "system" if is_ranked(records[0]) else "control" if entry.last.role == "control" else "leaking"
        systems[entry.name] = Edits(role, values[:, 0], values[:, 1:], own, records[0].targets)
    sides = [systems.get(controls[name].name) for name in (CEILING, UNRELATED)]
    same, unrelated = (Clustered(side.values, side.groups) if side is not None else None for side in sides)
    if same is None or unrelated is None:
        return {}
    held = calibrate(scales, same, unrelated, NOT_COUNTED if variant == "corrected" else {})
    return plane(held, systems, seed=seed) if held is not None else {}


def _values(record: ResultRecord, items: Sequence[str]) -> list[float]:
    """Return the score of each of these items."""
    held: Mapping[str, float] = dict(zip(record.items, map(mean_of_seeds, record.values), strict=True))
    return [held.get(item, np.nan) for item in items]
