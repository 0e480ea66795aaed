"""What can be shown of single items behind a score: music, texts' explanations, tags, recordings.

A detail is told by the run, the item, the system and its kind:

context
    ``tokens`` of an item of inpainting, the true middle among them; its system is empty.
middle
    ``tokens`` that a system wrote with its first seed.
pair
    ``reference`` and ``estimate``, each with name and content; ``remarks``.
outline
    Beats, chords, sections and melody of one file; its item is the hash of the file, its system empty.
explanation
    ``lines``: where a text lost points.
tags
    ``tags`` that a model gave.
audio
    A recording as it is in its file; its item is the hash of the file, its system empty.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from music_evals.benchmark.manifests import hash_file
from music_evals.benchmark.preservation.pairs import AUDIO_SUFFIXES
from music_evals.benchmark.records import dump_json, read_records, reading_rows
from music_evals.benchmark.songs.tag_predictions import TAGS
from music_evals.errors import FileTooLargeError, NoDataError
from music_evals.leaderboard.records import ResultRecord, Run

__all__ = ["MAX_MEDIA_BYTES", "Detail", "details_of_run", "media_of"]

MAX_MEDIA_BYTES = 32 * 2**20
"""Of one recording: half a minute takes 5 MiB as WAV, and less in any other form."""

Row = Mapping[str, Any]


class Detail(NamedTuple):
    """Something to show of an item.

    Attributes
    ----------
    run
        That of the records; see `leaderboard_records.ResultRecord`.
    item, system, kind
        See the module.
    content
        JSON text.
    media
        Bytes of a recording, or empty.

    """

    run: str
    item: str
    system: str
    kind: str
    content: str
    media: bytes = b""


def details_of_run(run: Run, records: Sequence[ResultRecord], media: Sequence[str | os.PathLike[str]]) -> list[Detail]:
    """Return what can be shown of the items of some records.

    Parameters
    ----------
    run
        From `leaderboard_records.read_run`.
    records
        Records of it; details of other systems are left out.
    media
        Folders that are searched for the recordings that were compared, by the hash of their content.

    Raises
    ------
    NoDataError
        A folder of recordings that is not there.
    FileTooLargeError
        A recording over `MAX_MEDIA_BYTES`.
    CorruptRecordsError
        Rows of an unknown form.

    """
    if not records:
        return []
    systems = {record.system for record in records}
    together = records[0].run
    with reading_rows():
        make = _of_inpainting if run.task == "inpainting" else _of_scores
        found = [Detail(together, *row) for row in make(run, systems)]
    wanted = {row.item for row in found if row.kind == "outline"} | _contents(run)
    found += [
        Detail(together, content, "", "audio", dump_json({"name": path.name}), path.read_bytes())
        for content, path in media_of(media, wanted).items()
    ]
    return found


def media_of(folders: Sequence[str | os.PathLike[str]], wanted: Collection[str]) -> dict[str, Path]:
    """Return hash -> file of the recordings in some folders, those with a wanted hash.

    Raises
    ------
    NoDataError
        A folder that is not there.
    FileTooLargeError
        A wanted recording over `MAX_MEDIA_BYTES`.

    """
    found: dict[str, Path] = {}
    for folder in map(Path, folders):
        if not folder.is_dir():
            msg = f"{folder} is no folder; give one with the recordings that were compared"
            raise NoDataError(msg)
        for path in sorted(folder.rglob("*")):
            if path.suffix.lower() not in AUDIO_SUFFIXES or not path.is_file():
                continue
            content = hash_file(path)
            if content not in wanted or content in found:
                continue
            if path.stat().st_size > MAX_MEDIA_BYTES:
                msg = f"{path}: more than {MAX_MEDIA_BYTES} bytes; a board takes shorter or compressed recordings only"
                raise FileTooLargeError(msg)
            found[content] = path
    return found


def _contents(run: Run) -> set[str]:
    rows = [row for row in run.rows if row["kind"] == "pair" and row.get("entrance") == "audio"]
    return {row[side]["content"] for row in rows for side in ("reference", "estimate")}


def _of_inpainting(run: Run, systems: Collection[str]) -> Iterator[tuple[str, str, str, str]]:
    seeds = {name: held["seeds"][0] for name, held in run.results["systems"].items() if name in systems}
    middles: dict[tuple[str, str], Any] = {}
    for row in run.rows:
        if row["kind"] == "item" and "tokens" in row:
            yield row["item"], "", "context", dump_json({"tokens": row["tokens"]})
        elif row["kind"] == "prediction" and seeds.get(row["system"]) == row["seed"]:
            middles[row["item"], row["system"]] = row["middle"]
    for (item, system), tokens in middles.items():
        yield item, system, "middle", dump_json({"tokens": tokens})


def _of_scores(run: Run, systems: Collection[str]) -> Iterator[tuple[str, str, str, str]]:
    remarks = {(row["item"], row["system"]): row["notes"] for row in run.rows if row["kind"] == "remarks"}
    pairs: dict[tuple[str, str], Row] = {}
    explained: dict[tuple[str, str], Row] = {}
    outlines: dict[str, dict[str, Any]] = {}
    row: Row
    for row in run.rows:
        if row["kind"] == "pair" and "error" not in row and row["system"] in systems:
            pairs[row["item"], row["system"]] = row
        elif row["kind"] == "explanation" and row["system"] in systems:
            explained[row["item"], row["system"]] = row
        elif row["kind"] == "outline":
            outlines[row["content"]] = {key: value for key, value in row.items() if key not in {"kind", "content"}}
    for (item, system), row in pairs.items():
        about = {side: row[side] for side in ("reference", "estimate")}
        yield item, system, "pair", dump_json({**about, "remarks": remarks.get((item, system), [])})
    for (item, system), row in explained.items():
        yield item, system, "explanation", dump_json({"lines": list(row["lines"])})
    for content, outline in outlines.items():
        yield content, "", "outline", dump_json(outline)
    yield from _tags(run, systems)


def _tags(run: Run, systems: Collection[str]) -> Iterator[tuple[str, str, str, str]]:
    path = run.folder / TAGS
    rows = read_records(path) if run.task == "descriptions" and path.is_file() else ()
    heard: dict[tuple[str, str], Any] = {
        (row["item"], row["system"]): row["tags"] for row in rows if row.get("tags") and row["system"] in systems
    }
    for (item, system), tags in heard.items():
        yield item, system, "tags", dump_json({"tags": tags})
