"""Tags of recordings by models: each recording is heard once, and what was said of it is kept.

The record file has, after its header, rows of the kind ``prediction``: system, hash of the model's files and options,
song, hash of the recording, and its tags or the error in their place. A run that was killed goes on where it stood; a
recording that failed is heard again.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from music_evals.benchmark.manifests import some
from music_evals.benchmark.pairs import AUDIO_SUFFIXES, HASH_DIGITS, check_systems, files_of, hash_file, split_estimate
from music_evals.benchmark.records import RecordFile, dump_json, reading_rows
from music_evals.benchmark.score_records import Progress
from music_evals.benchmark.songs import SongSet
from music_evals.benchmark.systems import model_type_of
from music_evals.benchmark.tasks import find_window
from music_evals.benchmark.text_predictions import Prediction
from music_evals.errors import MusicEvalsError, NoDataError, PairCountError
from music_evals.pipelines.descriptions import check_description
from music_evals.protocols import TAGGERS, Tagger, load_plugin

__all__ = ["TAGS", "plain_tags", "tag_songs"]

TAGS = "tags.jsonl"
"""File of the records in the folder of a run."""

MODELS = "models"


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
        Folder that is searched with its sub-folders for recordings called ``<id>.wav``, ``<id>.flac`` and so on.
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
    recordings = _recordings(Path(audio), songs)
    loaded = [_load(text, options) for text in models]
    check_systems([model.system for model in loaded], (), "--model")
    found: list[Prediction] = []
    with RecordFile(path, {"task": "tagging"}, overwrite=overwrite) as records:
        with reading_rows():
            known = {
                (row["system"], row["model"], row["content"]): row["tags"]
                for row in records.rows
                if row["kind"] == "prediction" and "error" not in row
            }
        for number, (model, item) in enumerate(_asked(loaded, songs), start=1):
            recording = recordings.get(item)
            if recording is None:
                lack = f"NoDataError: no recording called {item}.wav, .flac or the like in {audio}; add it"
                found.append(Prediction(item, model.system, None, where=str(audio), error=lack))
                continue
            key = model.system, model.content, hash_file(recording)
            if key not in known:
                row = _described(model, item, recording)
                about = {"system": model.system, "model": model.content, "item": item, "content": key[2]}
                records.append([{"kind": "prediction", **about, **row}])
                if "error" in row:
                    found.append(Prediction(item, model.system, None, where=str(recording), error=row["error"]))
                else:
                    known[key] = row["tags"]
            if key in known:
                found.append(Prediction(item, model.system, known[key], where=str(recording)))
            if progress is not None:
                progress(number, len(loaded) * len(songs.songs), item)
    return found


def _asked(models: Sequence[_Model], songs: SongSet) -> Iterator[tuple[_Model, str]]:
    return ((model, song.id) for model in models for song in songs.songs)


def _recordings(audio: Path, songs: SongSet) -> dict[str, Path]:
    """Return song -> its recording."""
    wanted = {song.id for song in songs.songs}
    found: dict[str, Path] = {}
    lack = "no recordings; expected files called by the ids of songs, such as .wav, .flac, .mp3"
    for path, name in files_of(audio, AUDIO_SUFFIXES, lack).values():
        if path.stem not in wanted:
            continue
        if path.stem in found:
            msg = f"{audio}: {found[path.stem]} and {name} are both recordings of {path.stem!r}; keep one"
            raise PairCountError(msg)
        found[path.stem] = path
    if not found:
        msg = f"{audio}: no recording is called by the id of a song; the ids are like {some(sorted(wanted)[:2])}"
        raise NoDataError(msg)
    return found


def _load(text: str, options: Mapping[str, Any]) -> _Model:
    name, place = split_estimate(text, "--model")
    window, local = find_window(str(place), MODELS, "model", TAGGERS)
    if not local:
        msg = f"{place} is no folder; fetch the model first, and name the folder"
        raise NoDataError(msg)
    folder = Path(window)
    plugin = load_plugin(TAGGERS, model_type_of(folder, TAGGERS), "model type")
    tagger: Tagger = plugin.from_pretrained(str(folder), **options)
    files = sorted(file for file in folder.iterdir() if file.suffix in {".json", ".safetensors"})
    told = dump_json({"options": dict(options), "files": {file.name: hash_file(file) for file in files}})
    content = hashlib.sha256(told.encode()).hexdigest()[:HASH_DIGITS]
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
