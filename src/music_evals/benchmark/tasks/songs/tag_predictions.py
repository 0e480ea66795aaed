"""Tags of recordings by models: each recording is tagged once, and its tags are recorded.

The records are, after their header, rows of the kind ``prediction``: system, hash of the model's files, its options and
what it says of itself (`protocols.Tagger.describe`), song, hash of the file that was read, and its tags or the error in
their place. A run that was killed goes on where it stood; a recording that failed is tagged again.
"""

from __future__ import annotations

import dataclasses
import hashlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from music_evals.audio.io import AUDIO_SUFFIXES, recordings
from music_evals.benchmark.columns import dump_json
from music_evals.benchmark.engines import Failed, Unit
from music_evals.benchmark.inputs import check_systems, model_type_of, named_path, some
from music_evals.benchmark.records import reading_rows
from music_evals.benchmark.run import Job, Progress, Row, Settings, record
from music_evals.benchmark.tasks.songs.songs import SongSet
from music_evals.benchmark.tasks.songs.texts import Prediction
from music_evals.errors import MusicEvalsError, NoDataError
from music_evals.locations import HASH_DIGITS, exists, hash_file
from music_evals.lyrics.model_files import unavailable
from music_evals.pipelines.descriptions import check_description
from music_evals.protocols import TAGGERS, Tagger, load_plugin
from music_evals.repositories import MODELS, find_repository

TAGS = "tags"
"""File of the records in the folder of a run."""


class _Model(NamedTuple):
    system: str
    content: str
    tagger: Tagger


def tag_songs(
    models: Sequence[str | os.PathLike[str]],
    audio: str | os.PathLike[str],
    songs: SongSet,
    path: Path,
    settings: Settings,
    *,
    options: Mapping[str, Any],
    progress: Progress | None = None,
) -> list[Prediction]:
    """Let models describe the recordings of songs, and record it."""
    if not Path(audio).is_dir():
        raise NoDataError(f"{audio}: no such folder of recordings; check the path")
    loaded = [_load(text, options) for text in models]
    check_systems([model.system for model in loaded], (), "models")
    listed = []
    for model in loaded:
        for item, file in _files(model, Path(audio), songs).items():
            try:
                content, error = ("", file) if isinstance(file, str) else (hash_file(file), "")
            except MusicEvalsError as why:  # it went away, or may not be read
                content, error = "", f"{type(why).__name__}: {why}"
            listed.append(_Recording(model, item, None if error else Path(file), content, error))
    job = _TaggingJob(listed)
    # a network is loaded once, into this process
    here = dataclasses.replace(settings, engine="serial", workers=None, ray_address=None)
    rows = record(job, path, here, progress=progress)
    with reading_rows():
        latest = {(row["system"], row["model"], row["content"]): row for row in rows if row["kind"] == "prediction"}
    predictions = []
    for recording in job.recordings:
        row, where = latest.get(recording.key, {}), str(recording.file or recording.item)
        error = recording.error or row.get("error", "")
        predictions.append(
            Prediction(recording.item, recording.model.system, row.get("tags"), where=where, error=error)
        )
    return predictions


class _Recording(NamedTuple):
    """What a model reads for a song, or why there is nothing."""

    model: _Model
    item: str
    file: Path | None
    content: str
    error: str = ""

    @property
    def key(self) -> tuple[str, str, str]:
        return self.model.system, self.model.content, self.content


class _TaggingJob(Job):
    """Each model tags each recording once; the tags are recorded."""

    def __init__(self, recordings: Sequence[_Recording]) -> None:
        self.header = {"task": "tagging"}
        self.recordings, self.size, self.work = recordings, len(recordings), _describe

    def left(self, rows: Sequence[Row]) -> list[Unit]:
        good = (row for row in rows if row["kind"] == "prediction" and "error" not in row)
        known = {(row["system"], row["model"], row["content"]) for row in good}
        there = (recording for recording in self.recordings if recording.file is not None)
        return [Unit(recording, recording.item) for recording in there if recording.key not in known]

    def rows(self, unit: Unit, answer: Any) -> list[Row]:
        system, model, content = unit.payload.key
        about = {"kind": "prediction", "system": system, "model": model, "item": unit.payload.item, "content": content}
        return [about | ({"error": answer.reason} if isinstance(answer, Failed) else {"tags": answer})]


def _describe(recording: _Recording) -> dict[str, dict[str, list[str]]]:
    where = f"{recording.model.system}, {recording.item}"
    return plain_tags(check_description(recording.model.tagger.tag(str(recording.file)), where))


def _files(model: _Model, audio: Path, songs: SongSet) -> dict[str, Path | str]:
    """Return song -> the file that a model reads for it, or why it has no file."""
    ids = [song.id for song in songs.songs]
    suffixes = getattr(model.tagger, "suffixes", AUDIO_SUFFIXES)
    there = recordings(audio, ids, suffixes)
    shown = "recording" if suffixes == AUDIO_SUFFIXES else "file"
    if not there:
        raise NoDataError(
            f"{audio}: no {shown} is called by the id of a song; the ids are like {some(sorted(ids)[:2])}"
        )
    ends = ".wav, .flac or the like" if suffixes == AUDIO_SUFFIXES else " or ".join(sorted(suffixes))
    return {item: there.get(item, f"NoDataError: no {shown} called {item}{ends} in {audio}; add it") for item in ids}


def _load(text: str | os.PathLike[str], options: Mapping[str, Any]) -> _Model:
    name, place = named_path(text, "models")
    repository, local = find_repository(str(place), MODELS, "model", TAGGERS)
    if not local:
        raise unavailable(str(place), "a tagger is loaded from a folder, and there is none")
    folder = Path(repository)
    plugin = load_plugin(TAGGERS, model_type_of(folder, TAGGERS), "model type")
    tagger: Tagger = plugin.from_pretrained(str(folder), **options)
    files = sorted(file for file in folder.iterdir() if file.suffix in {".json", ".safetensors"})
    hashes = {file.name: hash_file(file) for file in files}
    reported = {"options": dict(options), "files": hashes, "about": dict(tagger.describe())}
    content = hashlib.sha256(dump_json(reported).encode()).hexdigest()[:HASH_DIGITS]
    named = isinstance(text, str) and "=" in text and not exists(text)
    return _Model(name if named else tagger.name, content, tagger)


def plain_tags(tags: Mapping[str, Mapping[str, Sequence[str]]]) -> dict[str, dict[str, list[str]]]:
    """Return tags as values that JSON can hold."""
    return {group: {name: list(values) for name, values in named.items()} for group, named in tags.items()}
