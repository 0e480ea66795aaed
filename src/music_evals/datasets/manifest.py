"""Parquet files of a data set: written with the manifest that vouches for them, and read back.

A manifest holds, for each file, its row count, the SHA-256 of its bytes and the SHA-256 of its rows. The bytes change
with the Parquet writer; the rows do not, and a rebuild is right when its row hashes agree.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from music_evals.errors import MusicEvalsError, UnknownNameError
from music_evals.files import write_atomically
from music_evals.protocols import PREPARED_DATASETS, prepared_place
from music_evals.repositories import DATASETS, find_repository

__all__ = [
    "build_script", "facts_of", "file_rows", "flat_features", "load_split", "parquet_bytes", "rows_sha256",
    "write_dataset",
]  # fmt: skip


@contextlib.contextmanager
def build_script() -> Iterator[None]:
    """End a script `build.py` that fails with an error of ours with its message alone, and exit code 1."""
    try:
        yield
    except MusicEvalsError as error:
        raise SystemExit(f"build.py: {error}") from None


def flat_features(columns: Mapping[str, str]) -> Any:
    """Return the `datasets.Features` of columns of plain values: name -> type, as of `datasets.Value`."""
    from datasets import Features, Value

    return Features({name: Value(kind) for name, kind in columns.items()})


def file_rows(manifest: Mapping[str, Any]) -> str:
    """Return the rows and the name of each file of a manifest, a line each."""
    return "\n".join(f"{facts['rows']:>6}  {name}" for name, facts in manifest["files"].items())


def rows_sha256(rows: Iterable[Mapping[str, Any]]) -> str:
    """Return the SHA-256 of rows as canonical JSON, one a line, keys sorted: independent of the file format."""
    digest = hashlib.sha256()
    for row in rows:
        line = json.dumps(
            row, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False, default=bytes.hex
        )
        digest.update(line.encode() + b"\n")
    return digest.hexdigest()


def facts_of(rows: Sequence[Mapping[str, Any]], content: bytes) -> dict[str, Any]:
    """Return what a manifest holds of a file: how many rows, and the SHA-256 of its bytes and of its rows."""
    return {"rows": len(rows), "sha256": hashlib.sha256(content).hexdigest(), "rows_sha256": rows_sha256(rows)}


def write_dataset(
    folder: Path,
    configs: Mapping[str, Mapping[str, Sequence[Mapping[str, Any]]]],
    features: Any,
    *,
    own_features: Mapping[str, Any] | None = None,
    **facts: Any,
) -> dict[str, Any]:
    """Write one Parquet file a split and then the manifest, each whole or not at all.

    All configs have the same columns, but for those that `own_features` names.
    """
    files: dict[str, Any] = {}
    contents: dict[str, bytes] = {}
    for config, splits in configs.items():
        for split, rows in splits.items():
            name = f"data/{config}/{split}-00000-of-00001.parquet"
            contents[name] = parquet_bytes(rows, (own_features or {}).get(config, features))
            files[name] = facts_of(rows, contents[name])
    manifest = {**facts, "files": files}
    # Last, so that a manifest never vouches for files that were not written.
    contents["manifest.json"] = (json.dumps(manifest, indent=2) + "\n").encode()
    for name, content in contents.items():
        write_atomically(folder / name, content, parents=True)
    return manifest


def parquet_bytes(rows: Sequence[Mapping[str, Any]], features: Any) -> bytes:
    """Return rows as a Parquet file whose schema carries the features; for a data set of several files a split."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    # The schema carries the features, so that a reader gets exact types without a card.
    table = pa.Table.from_pylist(list(rows), schema=features.arrow_schema)
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd", compression_level=19)
    return bytes(sink.getvalue())


def load_split(dataset: str | os.PathLike[str], config: str, split: str) -> Any:
    """Load one split as a `datasets.Dataset`, by name, folder or id on the Hub."""
    # The files of a folder are read themselves: `datasets.load_dataset` keeps a copy of a folder and goes on giving it
    # out after a rebuild.
    import datasets
    import pyarrow as pa
    import pyarrow.parquet as pq

    place, local = find_repository(os.fspath(dataset), DATASETS, "dataset")
    if not local:
        return datasets.load_dataset(place, config, split=split)
    name = Path(place).name
    place = prepared_place(place, config)
    files: dict[str, list[Path]] = {}
    for path in sorted(Path(place).glob("data/*/*.parquet")):
        files.setdefault(f"{path.parent.name}/{path.name.split('-')[0]}", []).append(path)
    if f"{config}/{split}" not in files:
        configs = {key.partition("/")[0] for key in files}
        if config not in configs:
            raise UnknownNameError(f"config of {name}", config, {*configs, *PREPARED_DATASETS.get(name, ())})
        splits = [key.partition("/")[2] for key in files if key.startswith(f"{config}/")]
        raise UnknownNameError(f"split of {name}/{config}", split, splits)
    return datasets.Dataset(pa.concat_tables([pq.read_table(path) for path in files[f"{config}/{split}"]]))
