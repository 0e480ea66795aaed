"""From records to columns: what was judged, and what each score of it is; of two rows for one score the later counts.

Records come in two forms. Rows ``selection`` and ``pair`` name what each system was judged on; where there are none,
the header names the systems with their seeds, and every row ``item`` is judged for each of them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import TYPE_CHECKING

from music_evals.benchmark.collecting_items import of_items
from music_evals.benchmark.collecting_pairs import failures_of_pairs, n_failures_of_pairs, of_pairs
from music_evals.benchmark.found import Found
from music_evals.benchmark.grids import Row
from music_evals.benchmark.records import MemoryRecords, Records, reading_rows
from music_evals.errors import CorruptRecordsError

if TYPE_CHECKING:
    from music_evals.benchmark.results import ScoreTask

__all__ = ["collect"]


@reading_rows()
def collect(rows: Iterable[Row], task: ScoreTask) -> Found:
    """Read the records of a run; of two rows for one score the later one counts.

    Raises
    ------
    CorruptRecordsError
        The first row is no header, or rows have an unknown form.

    """
    records = rows if isinstance(rows, Records) else MemoryRecords(rows)
    header = records[0] if len(records) else {}
    if header.get("kind") != "run":
        raise CorruptRecordsError("the records do not start with their header; restore the file, or start afresh")
    by_item = "systems" in header
    found = (of_items if by_item else of_pairs)(records, header, task)
    task.finish(found)
    names = task.shown(found)
    shown = {key: [name for name in found.header[key] if name in names] for key in ("metrics", "companions")}
    if by_item:
        return found
    found = dataclasses.replace(found, header=found.header | shown)
    return dataclasses.replace(found, failures=failures_of_pairs(found), n_failures=n_failures_of_pairs(found))
