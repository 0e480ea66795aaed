"""Records of a toy data set, and how to find their rows and cells in tables."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from music_evals.leaderboard.records import ResultRecord, id_of
from music_evals.leaderboard.tables import make_leaderboard

NASTY = "<img src=x onerror=alert(1)> =1+1 \\input{/etc/passwd} %&_${7*7}\"'\u202e\n|"


SETTINGS: dict[str, Any] = {"references": "toy", "variant": "official"}


def record(system: str, values: list[float | None], **fields: Any) -> ResultRecord:
    """A record of a mean over items, each a group of its own."""
    defined = [value for value in values if value is not None]
    made = ResultRecord(
        **{
            "id": "", "task": "lyrics", "dataset": "toy", "config": "c", "split": "test", "revision": None,
            "fingerprint": None, "system": system, "role": "system", "content": None, "metric": "lyric_structure",
            "title": "Total", "direction": "higher", "kind": "mean", "variant": "official",
            "value": float(np.mean(defined)) if defined else None, "low": None, "high": None, "confidence": 0.95,
            "floor": None, "n": len(values), "n_defined": len(defined), "n_failed": 0,
            "items": tuple(f"i{row:02d}" for row in range(len(values))),
            "groups": tuple(f"g{row:02d}" for row in range(len(values))), "references": ("r",) * len(values),
            "values": tuple((value,) for value in values), "reference_values": (), "unranked": "",
            "settings": SETTINGS, "extractors": {}, "receipt": {}, "run": "run", "date": "2026-11-20",
        }
        | fields
    )  # fmt: skip
    return dataclasses.replace(made, id=id_of(made))


A, B = record("A", [1.0] * 10), record("B", [0.9] * 10)


C = record("C", [1.0, 0.8] * 5)


def tables_of(*records: ResultRecord) -> list[dict[str, Any]]:
    """Tables of records, without those of papers alone."""
    return [table for table in make_leaderboard(records)["tables"] if table["tests"] or table["rows"][0]["role"]]


def row_of(table: dict[str, Any], label: str) -> dict[str, Any]:
    return next(row for row in table["rows"] if row["label"] == label)


def cell_of(table: dict[str, Any], label: str, column: str = "lyric_structure") -> dict[str, Any]:
    return row_of(table, label)["cells"][column]
