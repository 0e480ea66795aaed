"""The logs of an editing test as a data set: of the editors who agreed to it, under numbers that nobody else knows."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

from music_evals.errors import InvalidInputError, NoDataError
from music_evals.files import folder_written_whole, write_atomically
from music_evals.pipelines.study_tables import EDITS, SAMPLES, Column, rows_of
from music_evals.studies.editing.answers import Collected
from music_evals.studies.editing.logs import CHANGES
from music_evals.studies.editing.study import CONSENT
from music_evals.studies.folders import StudyFolder

__all__ = ["write_logs"]

_OPEN = re.compile(r"(cc0|cc[- ]by|pddl|odc|mit\b|apache|public domain)(?!.*(\bnd\b|\bno[- ]?deriv))", re.IGNORECASE)
"""Licences that let notes be published as they were changed."""
_COLUMNS = {
    "edits": (*EDITS, Column("events", "text", "its log as JSON (`studies.editing.logs`), times in milliseconds")),
    "samples": (
        *SAMPLES,
        Column("ticks_per_quarter", "integer", "ticks of a quarter note"),
        Column("notes", "text", "JSON: onset and duration in ticks, pitch, velocity, voice; empty if not allowed"),
    ),
}
_CARD = """---
license: {licence}
configs:
- config_name: edits
  data_files: data/edits.parquet
- config_name: samples
  data_files: data/samples.parquet
---

# Logs of the editing test {study}

{agreed} of {editors} editors agreed: {edits} of {all_edits} edits, {marked} of them marked as hard to believe. Nobody
else is in it. Where the licence of a sample is not open, logs say how many notes changed, and not which. The page of
the editing test of `music_evals` wrote the logs; each was played again and counted.
"""


def write_logs(study: StudyFolder, collected: Collected, folder: str | os.PathLike[str], *, licence: str) -> int:
    """Write edits, samples and a card of what `collect_edits` gave; return how many editors agreed.

    `licence` is an id of the Hub, of the logs. Raises `NoDataError` where nobody agreed, `InvalidInputError` where the
    folder holds something else than this function wrote, or the licence is no id.
    """
    import pyarrow as pa
    from pyarrow import parquet

    target = Path(folder)
    if target.exists() and not (target / "data" / "edits.parquet").is_file() and any(target.iterdir()):
        raise InvalidInputError(f"{target} holds something else; name a new folder")
    if not re.fullmatch(r"[a-z0-9.-]+", licence):
        raise InvalidInputError(f"the licence must be an id such as cc-by-4.0, got {licence!r}")
    agreed = [token for token, answers in collected.participants.items() if answers.get(CONSENT) is True]
    names = {token: f"editor-{number:02d}" for number, token in enumerate(agreed, start=1)}
    samples = []
    for row in rows_of(study.key / "samples.csv", table_name="key/samples.csv"):
        value = study.settings["samples"][row["code"]]
        notes = json.dumps(value["notes"]) if _OPEN.match(str(row.get("licence", "")).strip()) else ""
        samples.append({**row, "ticks_per_quarter": value["ticks_per_quarter"], "notes": notes})
    bare = {row["sample_id"] for row in samples if not row["notes"]}
    edits = []
    for row, log in zip(collected.tables["edits"], collected.logs, strict=True):
        if row["editor_id"] in names:
            is_bare = row["sample_id"] in bare
            events = [[*event[:-1], len(event[-1])] if is_bare and event[1] in CHANGES else event for event in log]
            edits.append({**row, "editor_id": names[row["editor_id"]], "events": json.dumps(events)})
    if not edits:
        raise NoDataError(f"none of {len(collected.participants)} editors agreed that their log may be published")
    card = _CARD.format(
        licence=licence, study=study.study, agreed=len(agreed), editors=len(collected.participants), edits=len(edits),
        all_edits=len(collected.logs), marked=sum(bool(row["marks"]) for row in edits),
    )  # fmt: skip
    with folder_written_whole(target) as part:
        (part / "data").mkdir()
        for name, rows in (("edits", edits), ("samples", samples)):
            columns = [column for column in _COLUMNS[name] if column.name in rows[0]]
            table = pa.Table.from_pylist([{column.name: row[column.name] for column in columns} for row in rows])
            parquet.write_table(table, part / "data" / f"{name}.parquet")
            card += f"\n## {name}\n\n| column | kind | is |\n| --- | --- | --- |\n"
            card += "".join(f"| `{column.name}` | {column.kind} | {column.meaning} |\n" for column in columns)
        write_atomically(part / "README.md", card.encode())
    return len(agreed)
