"""What a run of preparation leaves for others: a data set, its card, and a table that CaiMAP takes in."""

from __future__ import annotations

import dataclasses
import hashlib
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from music_evals.benchmark.preparation.contract import Column, Described, Song
from music_evals.benchmark.preparation.embeddings import write_embeddings
from music_evals.benchmark.preparation.job import Key
from music_evals.benchmark.preparation.steps import all_steps
from music_evals.benchmark.records import dump_json
from music_evals.files import write_atomically, written_whole

__all__ = ["CLUSTERS", "CONFIG", "EMBEDDINGS", "TABLE", "Made", "export"]

CONFIG: Final = "automatic"
"""Config of the data set."""
EMBEDDINGS: Final = "embeddings"
"""Config of the vectors."""
CLUSTERS, TABLE = "clusters.json", "songs.jsonl"
"""What is to be known of the clusters; and ids and recordings of songs, as ``caimap import`` takes them."""

_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_FILE: Final = "test-00000-of-00001.parquet"
_FAILURES: Final = [{"step": "string", "error": "string"}]


@dataclasses.dataclass(frozen=True)
class Made:
    """What a run made.

    Attributes
    ----------
    out, source
        Folder of the run, and that of the songs.
    songs, rows
        The songs, and the row of each.
    answers
        Song and step -> answer.

    """

    out: Path
    source: Path
    songs: Sequence[Song]
    rows: Sequence[Mapping[str, Any]]
    answers: Mapping[Key, Mapping[str, Any]]


def export(made: Made, steps: Sequence[Described], told: Mapping[str, Any], n_failures: int) -> dict[str, Path]:
    """Write all files, and return them by kind; those of an earlier run that this one does not make are removed."""
    out = made.out
    files = {
        "data": out / CONFIG / _FILE, "embeddings": out / EMBEDDINGS / _FILE, "clusters": out / CLUSTERS,
        "table": out / TABLE,
    }  # fmt: skip
    _write_parquet(made.rows, files["data"])
    embedded = [song.song for song in made.songs if (song.song, "embeddings") in made.answers]
    table = _table(made)
    if embedded:
        places = [out / made.answers[song, "embeddings"]["vector"] for song in embedded]
        write_embeddings(embedded, places, files["embeddings"])
    if told:
        write_atomically(files["clusters"], f"{dump_json(told, indent=1)}\n".encode())
    if table:
        write_atomically(files["table"], "".join(f"{dump_json(row)}\n" for row in table).encode())
    for kind, is_made in {"embeddings": embedded, "clusters": told, "table": table}.items():
        if not is_made:
            files.pop(kind).unlink(missing_ok=True)
    notes = _notes(len(embedded), told, len(table))
    text = _card(steps, len(made.songs), n_failures, notes, [CONFIG, *([EMBEDDINGS] if embedded else [])])
    return {**files, "card": write_atomically(out / "README.md", text.encode())}


def _columns() -> list[Column]:
    return [column for step in all_steps().values() for column in step.columns]


def _write_parquet(rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    import datasets

    kinds = {"song": "string", **{column.name: column.kind for column in _columns()}, "failures": _FAILURES}
    features = datasets.Features({name: _feature(kind) for name, kind in kinds.items()})
    columns = {name: [row[name] for row in rows] for name in features}
    with written_whole(path, parents=True) as part:
        datasets.Dataset.from_dict(columns, features=features).to_parquet(part)


def _feature(kind: Any) -> Any:
    """Return the feature of `datasets` for the kind of a column."""
    import datasets

    if isinstance(kind, Mapping):
        return {name: _feature(inner) for name, inner in kind.items()}
    return datasets.List(_feature(kind[0])) if isinstance(kind, list) else datasets.Value(kind)


def _table(made: Made) -> list[dict[str, str]]:
    """Return the songs with recording and lyrics, of a sample that alone, as `caimap.importing.read_songs` has them."""
    rows = []
    for song, row in zip(made.songs, made.rows, strict=True):
        if song.audio is None or not (row["sections"] or row["lines"]) or row["sampled"] is False:
            continue
        known = {"audio": Path(song.audio).relative_to(made.source).as_posix()}
        if _ID.fullmatch(song.song):
            rows.append({"id": song.song, **known})
        else:  # a name with a folder or in Chinese cannot be an id of a release
            digest = hashlib.sha256(song.song.encode()).hexdigest()[:16]
            rows.append({"id": f"song-{digest}", "prepared": song.song, **known})
    return rows


def _notes(n_embedded: int, told: Mapping[str, Any], n_table: int) -> list[str]:
    """Return what the card says of files beside the data set."""
    notes = []
    if n_embedded:
        notes.append(f"The config `{EMBEDDINGS}` has the vectors of {n_embedded} songs: `song`, `embedding` (float32).")
    if "clusters" in told:
        about = told["clusters"]
        drawn = "" if about["sample"] is None else f"; {about['sample']} were drawn, evenly from clusters"
        notes.append(
            f"{about['n_songs']} songs stand in {about['n_held']} clusters by the encoder {about['encoder']}, seed "
            f"{about['seed']}{drawn} (`{CLUSTERS}`)."
        )
    if n_table:
        notes.append(f"`{TABLE}` names {n_table} songs with recording and lyrics, for `music-evals caimap import`.")
    return notes


def _card(
    steps: Sequence[Described], n_songs: int, n_failures: int, notes: Sequence[str], configs: Sequence[str]
) -> str:
    table = "\n".join(f"| `{one.name}` | {one.source} | {one.licence} | {one.sure} |" for one in steps)
    columns = "\n".join(f"| `{name}` | {text} |" for column in _columns() for name, text in column.what.items())
    listed = "\n".join(
        f"- config_name: {name}\n  data_files:\n  - split: test\n    path: {name}/test-*.parquet" for name in configs
    )
    beside = "".join(f"\n{note}\n" for note in notes)
    return f"""---
configs:
{listed}
---

# Songs prepared by programs

{n_songs} songs, one row each, joined to other data of theirs by `song`; {n_failures} steps failed, those of a song with
their reason in `failures`. Nothing here was checked by a person. Lyrics, stems and lead sheets have the rights of their
songs: ask before publishing them. A column of a step that was not done is empty.
{beside}
| step | source | licence | how sure |
|---|---|---|---|
{table}

| column | what it holds |
|---|---|
| `song` | name of the song's files without ending, with its folder |
{columns}
| `failures` | steps that failed, and why |
"""
