"""Texts of systems for songs, and what they are scored against: out of folders, a manifest, or JSON lines.

The sides of a pair are values in memory, known by a hash of what they hold. A system that made several texts for a
song, by several seeds, has one item for each: the first run keeps the song's id, the others are called ``<id>, run 2``
and so on, whatever the seeds are, so that systems are compared run by run; all runs of a song are in its group.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from music_evals.benchmark.inputs import (
    SEED_END,
    check_systems,
    json_lines,
    manifest_rows,
    named_path,
    paired_files,
    read_text,
    shown_types,
)
from music_evals.benchmark.rows import Failure, Pair, PairSet, check_unique
from music_evals.benchmark.tasks.songs.songs import Song, SongSet, check_ids
from music_evals.errors import InvalidInputError, MusicEvalsError, NoDataError, PairCountError
from music_evals.files import item_name
from music_evals.locations import HASH_DIGITS, Location, Remote, location, resolve

LYRICS = "lyrics"
"""Modality of lyrics."""

TEXT_SUFFIXES = frozenset({"", ".txt", ".md", ".lrc"})
"""What is taken for a text in a folder."""

SETTING, PREDICTIONS = "generated", "predictions"
COLUMNS = ("generated", "reference")
EITHER = {column: f"{column} or {column}_file" for column in COLUMNS}


@dataclasses.dataclass(frozen=True)
class TextSide:
    """A reference or an estimate: a text, or tags."""

    name: str  # what records call it
    value: Any  # what it holds; plain values that JSON can hold

    @property
    def content(self) -> str:
        """Hash of what it holds."""
        text = json.dumps(self.value, ensure_ascii=False, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:HASH_DIGITS]


def texts_in_folders(
    reference: str | os.PathLike[str],
    generated: Sequence[str | os.PathLike[str]],
    *,
    controls: Sequence[str],
    limit: int | None = None,
) -> PairSet:
    """Pair the texts of two or more folders, or single files."""
    lack = "no texts; expected files such as .txt, one a song"
    root, files = paired_files(
        reference, generated, TEXT_SUFFIXES, lack, setting=SETTING, controls=controls, limit=limit
    )
    pairs: list[Pair | Failure] = []
    for item, system, *both in files:
        sides = []
        try:
            for side, file in zip(("pattern", "text"), both, strict=True):
                if file is None:
                    raise PairCountError(f"no {side} for {item!r}; add it, or take its partner away")
                sides.append(TextSide(file[1], _text_of(file[0])))
            pattern, text = sides
            pairs.append(Pair(item, system, pattern.content, LYRICS, pattern, text))
        except MusicEvalsError as error:
            pairs.append(Failure(item, system, f"{type(error).__name__}: {error}"))
    return _pair_set(root.resolve().name, list(dict.fromkeys(pair.system for pair in pairs)), pairs)


def texts_in_manifest(path: str | os.PathLike[str], *, controls: Sequence[str], limit: int | None = None) -> PairSet:
    """Read pairs from a manifest."""
    place = location(path)
    rows = manifest_rows(place)
    if not rows:
        raise NoDataError(f"{place} holds no pairs; expected the columns {' and '.join(EITHER.values())}")
    there = list(dict.fromkeys(str(name) for row in rows for name in row if name is not None))
    missing = [either for name, either in EITHER.items() if not {name, f"{name}_file"} & {*there}]
    if missing:
        raise InvalidInputError(f"{place}: no column {' and '.join(missing)}; it has {', '.join(there)}")
    pairs: list[Pair | Failure] = []
    for number, row in enumerate(rows, start=1):
        item, system, group = (str(row.get(name) or "") for name in ("id", "system", "group"))
        item, system = item or f"row {number}", system or place.stem
        try:
            text, pattern = (_side_of_row(row, name, place.parent) for name in COLUMNS)
            pairs.append(Pair(item, system, group or pattern.content, LYRICS, pattern, text))
        except MusicEvalsError as error:
            pairs.append(Failure(item, system, f"{type(error).__name__}: {error}"))
    items = set(list(dict.fromkeys(pair.item for pair in pairs))[:limit])
    chosen = [pair for pair in pairs if pair.item in items]
    systems = list(dict.fromkeys(pair.system for pair in chosen))
    check_systems(systems, controls, "the column system, or")
    check_unique(chosen, str(place))
    return _pair_set(place.name, systems, chosen)


def _side_of_row(row: Mapping[str, Any], column: str, folder: Location) -> TextSide:
    text, file = row.get(column), row.get(f"{column}_file")
    if not file and isinstance(text, str):
        return TextSide(f"text {hashlib.sha256(text.encode()).hexdigest()[:8]}", text)
    if file and text:
        raise InvalidInputError(f"give {column} or {column}_file in a row, not both")
    if isinstance(file, str) and file:
        return TextSide(file, _text_of(_below(folder, file)))
    name, form, value = (f"{column}_file", "a path", file) if file else (column, "a text", text)
    raise InvalidInputError(f"the column {name} must hold {form}, got {type(value).__name__}")


def _text_of(path: Location) -> str:
    """Return what a file holds without the newline at its end, which is the file's and not the song's."""
    return read_text(path).removesuffix("\n")


def _below(folder: Location, file: str) -> Location:
    """Return where a file lies that a manifest names; a manifest may come from others, and reads its folder only."""
    place = resolve(folder, file)
    try:
        if isinstance(folder, Remote) or isinstance(place, Remote):
            inside = str(place).startswith(f"{str(folder).rstrip('/')}/") and ".." not in str(place).split("/")
        else:
            inside = place.resolve().is_relative_to(folder.resolve())
    except (OSError, ValueError) as error:  # a null byte, or a name that is too long
        raise InvalidInputError(f"{file!r:.60} is no path of a file: {error}") from error
    if not inside:
        raise InvalidInputError(
            f"{file!r} does not lie below the manifest's folder {folder}; put the file there, or give its text"
        )
    return place


def _pair_set(name: str, systems: Sequence[str], outcomes: Sequence[Pair | Failure]) -> PairSet:
    about = {"id": name, "config": None, "split": None, "revision": None}
    pairs = tuple(pair for pair in outcomes if isinstance(pair, Pair))
    return PairSet(about, tuple(systems), pairs, tuple(pair for pair in outcomes if isinstance(pair, Failure)))


@dataclasses.dataclass(frozen=True)
class Prediction:
    """What one system made for one song of a dataset with one seed."""

    item: str  # of what it is
    system: str
    value: Any  # plain values; None if it is missing, and `error` says why
    seed: int = 0
    where: str = ""  # file and line, for messages
    error: str = ""  # why there is no value


def read_predictions(
    files: Sequence[str | os.PathLike[str]], read_value: Callable[[Mapping[str, Any], str], Any], expected: str
) -> list[Prediction]:
    """Read the JSON lines ``{"id": ..., ...}`` of all files."""
    named = [named_path(text, PREDICTIONS) for text in files]
    check_systems([name for name, _ in named], (), PREDICTIONS)
    predictions = []
    for name, path in named:
        where = ""
        for number, row in json_lines(path):
            where = f"{path}, line {number}"
            item, system, seed = row.get("id"), row.get("system", name), row.get("seed", 0)
            if not (isinstance(item, str) and isinstance(system, str) and type(seed) is int):
                raise InvalidInputError(
                    f'{where}: expected {{"id": text, {expected}}} and, where there are several, "system": text and '
                    f'"seed": number; got {shown_types(row)}'
                )
            if not 0 <= seed < SEED_END:
                raise InvalidInputError(f"{where}: a seed must be 0..2**63 - 1, got {seed}")
            predictions.append(Prediction(item_name(item), system, read_value(row, where), seed, where))
        if not where:
            raise NoDataError(f'{path} holds no predictions; expected lines {{"id": text, {expected}}}')
    return predictions


def pairs_of_predictions(
    predictions: Iterable[Prediction],
    songs: SongSet,
    reference: Callable[[Song], TextSide],
    *,
    modality: str,
    controls: Sequence[str],
) -> PairSet:
    """Pair predictions with their songs; where a song has none of a system and seed, that is a failure."""
    by_system: dict[str, dict[int, dict[str, Prediction]]] = {}
    for prediction in predictions:
        by_item = by_system.setdefault(prediction.system, {}).setdefault(prediction.seed, {})
        if prediction.item in by_item:
            raise PairCountError(
                f"{prediction.where}: a second prediction for {prediction.item!r} of system {prediction.system!r} with "
                f"seed {prediction.seed}; keep one, or give them seeds"
            )
        by_item[prediction.item] = prediction
    check_systems(list(by_system), controls, PREDICTIONS)
    for system, by_seed in by_system.items():
        check_ids((item for by_item in by_seed.values() for item in by_item), songs, f"system {system!r}")
    pairs: list[Pair] = []
    failures: list[Failure] = []
    for system, by_seed in by_system.items():
        for run, seed in enumerate(sorted(by_seed)):
            for song in songs.songs:
                made = by_seed[seed].get(song.id)
                item = f"{song.id}, run {run + 1}" if run else song.id
                if made is None or made.error:
                    missing = f"PairCountError: no prediction for {song.id!r} with seed {seed}; add it, or set `limit`"
                    failures.append(Failure(item, system, made.error if made else missing))
                    continue
                estimate = TextSide(f"{song.id}, seed {seed}", made.value)
                pairs.append(Pair(item, system, song.group, modality, reference(song), estimate))
    return PairSet(songs.about, tuple(by_system), tuple(pairs), tuple(failures))
