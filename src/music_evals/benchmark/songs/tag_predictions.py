"""Tags of recordings by models: each recording is heard once, and what was said of it is kept.

The record file has, after its header, rows of the kind ``prediction``: system, hash of the model's files, its options
and what it says of itself (`protocols.Tagger.describe`), song, hash of the file that was read, and its tags or the
error in their place. A run that was killed goes on where it stood; a
recording that failed is heard again.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from music_evals.audio.io import AUDIO_SUFFIXES, recordings
from music_evals.benchmark.inpainting.systems import model_type_of
from music_evals.benchmark.manifests import some
from music_evals.benchmark.preservation.pairs import HASH_DIGITS, check_systems, hash_file, split_estimate
from music_evals.benchmark.records import RecordFile, dump_json, reading_rows
from music_evals.benchmark.rows import Progress
from music_evals.benchmark.songs.songs import SongSet
from music_evals.benchmark.songs.text_predictions import Prediction
from music_evals.errors import MusicEvalsError, NoDataError
from music_evals.lyrics.model_files import unavailable
from music_evals.pipelines.descriptions import check_description
from music_evals.protocols import TAGGERS, Tagger, load_plugin
from music_evals.windows import MODELS, find_window

__all__ = ["TAGS", "plain_tags", "tag_songs"]

TAGS = "tags.jsonl"
"""File of the records in the folder of a run."""


class _Model(NamedTuple):
    system: str
    content: str
    tagger: Tagger


def tag_songs(
    models: Sequence[str],
    audio: str | os.PathLike[str],
    songs: SongSet,
    path: Path,
    *,
    options: Mapping[str, Any],
    overwrite: bool = False,
    progress: Progress | None = None,
) -> list[Prediction]:
    """Let models describe the recordings of songs.

    Parameters
    ----------
    models
        ``DIR`` or ``NAME=DIR``: a folder, or a name under ``./models``, with a config.json whose ``model_type`` is one
        of `protocols.TAGGERS`. Without a name, the tagger says its own.
    audio
        Folder that is searched with its sub-folders for recordings called ``<id>.wav``, ``<id>.flac`` and so on, or
        for the files that a model reads in their place (`protocols.Tagger`).
    songs
        Whose recordings are heard.
    path
        The record file.
    options
        What the models are loaded with.
    overwrite
        Hear all recordings again.
    progress
        Called after each recording.

    Returns
    -------
    list of Prediction
        One a song and model; without a recording, or with one that cannot be described, an error stands in it.

    Raises
    ------
    UnknownNameError
        No such folder, or no such type of model.
    NoDataError
        No folder of recordings, or none for any song.
    PairCountError
        Two recordings of one song.
    UnreadableFileError, ModelUnavailableError, MissingBackendError
        A model cannot be loaded.
    CorruptRecordsError, OutputError
        The record file is damaged, or cannot be written.

    """
    if not Path(audio).is_dir():
        msg = f"{audio}: no such folder of recordings; check the path"
        raise NoDataError(msg)
    loaded = [_load(text, options) for text in models]
    check_systems([model.system for model in loaded], (), "--model")
    heard = [(model, item, path) for model in loaded for item, path in _files(model, Path(audio), songs).items()]
    found: list[Prediction] = []
    with RecordFile(path, {"task": "tagging"}, overwrite=overwrite) as records:
        with reading_rows():
            known = {
                (row["system"], row["model"], row["content"]): row["tags"]
                for row in records.rows
                if row["kind"] == "prediction" and "error" not in row
            }
        for number, (model, item, file) in enumerate(heard, start=1):
            found.append(_predicted(model, item, file, records, known))
            if progress is not None:
                progress(number, len(heard), item)
    return found


def _files(model: _Model, audio: Path, songs: SongSet) -> dict[str, Path | str]:
    """Return song -> the file that a model reads for it, or why there is none."""
    ids = [song.id for song in songs.songs]
    suffixes = getattr(model.tagger, "suffixes", AUDIO_SUFFIXES)
    there = recordings(audio, ids, suffixes)
    shown = "recording" if suffixes == AUDIO_SUFFIXES else "file"
    if not there:
        msg = f"{audio}: no {shown} is called by the id of a song; the ids are like {some(sorted(ids)[:2])}"
        raise NoDataError(msg)
    ends = ".wav, .flac or the like" if suffixes == AUDIO_SUFFIXES else " or ".join(sorted(suffixes))
    return {item: there.get(item, f"NoDataError: no {shown} called {item}{ends} in {audio}; add it") for item in ids}


def _predicted(
    model: _Model, item: str, file: Path | str, records: RecordFile, known: dict[tuple[str, str, str], Any]
) -> Prediction:
    """Return what a model says of a song, from the records where it is there; what is new is recorded."""
    if isinstance(file, str):
        return Prediction(item, model.system, None, where=item, error=file)
    try:
        key = model.system, model.content, hash_file(file)
    except MusicEvalsError as error:  # it went away, or may not be read
        return Prediction(item, model.system, None, where=str(file), error=f"{type(error).__name__}: {error}")
    if key not in known:
        row = _described(model, item, file)
        about = {"system": model.system, "model": model.content, "item": item, "content": key[2]}
        records.append([{"kind": "prediction", **about, **row}])
        if "error" in row:
            return Prediction(item, model.system, None, where=str(file), error=row["error"])
        known[key] = row["tags"]
    return Prediction(item, model.system, known[key], where=str(file))


def _load(text: str, options: Mapping[str, Any]) -> _Model:
    name, place = split_estimate(text, "--model")
    window, local = find_window(str(place), MODELS, "model", TAGGERS)
    if not local:
        raise unavailable(str(place), "a tagger is loaded from a folder, and there is none")
    folder = Path(window)
    plugin = load_plugin(TAGGERS, model_type_of(folder, TAGGERS), "model type")
    tagger: Tagger = plugin.from_pretrained(str(folder), **options)
    files = sorted(file for file in folder.iterdir() if file.suffix in {".json", ".safetensors"})
    hashes = {file.name: hash_file(file) for file in files}
    told = {"options": dict(options), "files": hashes, "about": dict(tagger.describe())}
    content = hashlib.sha256(dump_json(told).encode()).hexdigest()[:HASH_DIGITS]
    named = "=" in text and not Path(text).exists()
    return _Model(name if named else tagger.name, content, tagger)


def _described(model: _Model, item: str, recording: Path) -> dict[str, Any]:
    try:
        tags = check_description(model.tagger.tag(recording), f"{model.system}, {item}")
    except MusicEvalsError as error:
        return {"error": f"{type(error).__name__}: {error}"}
    return {"tags": plain_tags(tags)}


def plain_tags(tags: Mapping[str, Mapping[str, Sequence[str]]]) -> dict[str, dict[str, list[str]]]:
    """Return tags as values that JSON can hold."""
    return {group: {name: list(found) for name, found in named.items()} for group, named in tags.items()}
