"""What a board can show of single items of a run: music, explanations, tags, recordings."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from music_evals.benchmark.columns import dump_json
from music_evals.benchmark.load import LoadedResults
from music_evals.benchmark.records import read_records, reading_rows, records_at
from music_evals.benchmark.tasks.preservation.pairs import AUDIO_SUFFIXES
from music_evals.benchmark.tasks.songs.tag_predictions import TAGS
from music_evals.errors import FileTooLargeError, NoDataError
from music_evals.leaderboard.records import ResultRecord
from music_evals.locations import hash_file

SIDES = ("reference", "estimate")
MAX_MEDIA_BYTES = 32 * 2**20  # of one recording: half a minute takes 5 MiB as WAV, and less in any other form

Row = Mapping[str, Any]


class Detail(NamedTuple):
    """Something to show of an item, found by run, item, system and kind; ``content`` is JSON text."""

    # What the content of each kind holds. The system of ``"context"``, ``"outline"`` and ``"audio"`` is empty, and the
    # item of the last two is the hash of a file.
    # ``"context"``: ``tokens`` of an item of inpainting, the true middle among them
    # ``"middle"``: ``tokens`` that a system wrote with its first seed
    # ``"pair"``: ``reference`` and ``estimate``, each with name and content; ``remarks``
    # ``"outline"``: beats, chords, sections and melody of one file
    # ``"explanation"``: ``lines``, where a text lost points
    # ``"tags"``: ``tags`` that a model gave
    # ``"audio"``: ``name`` of a recording, whose bytes are ``media``

    run: str
    item: str
    system: str
    kind: str
    content: str
    media: bytes = b""


def details_of_run(
    run: LoadedResults, records: Sequence[ResultRecord], media: Sequence[str | os.PathLike[str]] = ()
) -> list[Detail]:
    """Return what can be shown of the items of some records, with the recordings of them that lie in some folders."""
    if not records:
        return []
    systems = {record.system for record in records}
    with reading_rows():
        rows = list((_music if run.task == "inpainting" else _compared)(run, systems))
        recordings = {item for item, _, kind, _ in rows if kind == "outline"}
        for row in run.records.of("pair"):
            if row.get("modality") == "audio":
                recordings |= {row[side]["content"] for side in SIDES}
    together = records[0].run
    details = [Detail(together, item, system, kind, dump_json(content)) for item, system, kind, content in rows]
    for digest, path in _recordings(media, recordings).items():
        details.append(Detail(together, digest, "", "audio", dump_json({"name": path.name}), path.read_bytes()))
    return details


def _recordings(folders: Sequence[str | os.PathLike[str]], wanted: Collection[str]) -> dict[str, Path]:
    """Return hash -> file of the recordings below some folders, those with a wanted hash."""
    paths: dict[str, Path] = {}
    for folder in map(Path, folders):
        if not folder.is_dir():
            raise NoDataError(f"{folder} is no folder; expected one with the recordings that were compared")
        for path in sorted(folder.rglob("*")):
            if path.suffix.lower() not in AUDIO_SUFFIXES or not path.is_file():
                continue
            content = hash_file(path)
            if content in wanted and path.stat().st_size > MAX_MEDIA_BYTES:
                raise FileTooLargeError(
                    f"{path}: more than {MAX_MEDIA_BYTES} bytes; a board takes shorter or compressed recordings only"
                )
            if content in wanted:
                paths.setdefault(content, path)
    return paths


Shown = tuple[str, str, str, Row]  # item, system, kind and content of a detail


def _music(run: LoadedResults, systems: Collection[str]) -> Iterator[Shown]:
    seeds = {name: held["seeds"][0] for name, held in run.results["systems"].items() if name in systems}
    middles: dict[tuple[str, str], Any] = {}
    for row in run.records.of("item", "prediction"):
        if row["kind"] == "item" and "tokens" in row:
            yield row["item"], "", "context", {"tokens": row["tokens"]}
        elif row["kind"] == "prediction" and seeds.get(row["system"]) == row["seed"]:
            middles[row["item"], row["system"]] = row["middle"]
    for (item, system), tokens in middles.items():
        yield item, system, "middle", {"tokens": tokens}


def _compared(run: LoadedResults, systems: Collection[str]) -> Iterator[Shown]:
    """Yield pairs, explanations, outlines and tags; of two rows for one of them the later one counts."""
    remarks = {(row["item"], row["system"]): row["notes"] for row in run.records.of("remarks")}
    latest: dict[tuple[str, str, str], Row] = {}
    for row in run.records.of("outline", "pair", "explanation"):
        if row["kind"] == "outline":
            content = {key: value for key, value in row.items() if key not in {"kind", "content"}}
            latest[row["content"], "", "outline"] = content
        elif row["kind"] == "pair" and "error" not in row and row["system"] in systems:
            notes = {"remarks": remarks.get((row["item"], row["system"]), [])}
            latest[row["item"], row["system"], "pair"] = {**{side: row[side] for side in SIDES}, **notes}
        elif row["kind"] == "explanation" and "lines" in row and row["system"] in systems:
            latest[row["item"], row["system"], "explanation"] = {"lines": list(row["lines"])}
    path = records_at(run.folder / TAGS)
    for row in read_records(path) if run.task == "descriptions" and path is not None else ():
        if row.get("tags") and row["system"] in systems:
            latest[row["item"], row["system"], "tags"] = {"tags": row["tags"]}
    yield from ((*key, content) for key, content in latest.items())
