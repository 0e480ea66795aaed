"""Files of records, as older versions wrote them, and as a kill or damage leaves them."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from music_evals.benchmark.columns import dump_json
from music_evals.benchmark.records import RecordStore, read_records


def write_json_lines(path: Path, *blocks: Iterable[Mapping[str, Any]]) -> Path:
    """Write records as JSON lines: blocks of rows, each with a closing row."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        for block in blocks:
            lines = [dump_json(row).encode() + b"\n" for row in block]
            closing = {"kind": "block", "rows": len(lines), "crc32": zlib.crc32(b"".join(lines))}
            file.write(b"".join(lines) + dump_json(closing).encode() + b"\n")
    return path


def shards(folder: Path) -> dict[str, bytes]:
    """Return name -> content of the shards in a folder of records."""
    return {path.name: path.read_bytes() for path in folder.glob("*.parquet")}


def damage(folder: Path) -> None:
    """Cut a byte off a shard."""
    path = min(folder.glob("*.parquet"))
    path.write_bytes(path.read_bytes()[:-1])


def cut(folder: Path, n_rows: int, target: Path | None = None) -> None:
    """Leave the first rows of records, as a kill does; on request elsewhere."""
    first, *rows = read_records(folder)[:n_rows]
    header = {key: value for key, value in first.items() if key != "kind"}
    with RecordStore(target or folder, header, rows, overwrite=True):
        pass
