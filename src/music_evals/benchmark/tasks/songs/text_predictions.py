"""What systems made for the songs of a dataset: JSON lines ``{"id": ..., ...}``, one file or more."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from music_evals.benchmark.inputs import check_systems, json_lines, named_path, shown_types
from music_evals.benchmark.rows import Failure
from music_evals.benchmark.tasks.songs.songs import Song, SongSet, check_ids
from music_evals.benchmark.tasks.songs.text_pairs import TextPair, TextPairSet, TextSide, run_name
from music_evals.errors import InvalidInputError, NoDataError, PairCountError
from music_evals.files import item_name
from music_evals.locations import Location

__all__ = ["SEED_END", "Prediction", "pairs_of_predictions", "read_predictions"]

SEED_END = 2**63
"""Seeds are below: records and tables hold them as 64-bit integers."""

SETTING = "predictions"


@dataclasses.dataclass(frozen=True)
class Prediction:
    """What one system made for one song with one seed."""

    item: str  # of what it is
    system: str
    value: Any  # plain values; None if it is missing, and `error` says why
    seed: int = 0
    where: str = ""  # file and line, for messages
    error: str = ""  # why there is no value


def read_predictions(
    files: Sequence[str | os.PathLike[str]], read_value: Callable[[Mapping[str, Any], str], Any], expected: str
) -> list[Prediction]:
    """Read the lines of all files."""
    named = [named_path(text, SETTING) for text in files]
    check_systems([name for name, _ in named], (), SETTING)
    return [prediction for name, path in named for prediction in _read_file(name, path, read_value, expected)]


def _read_file(
    name: str, path: Location, read_value: Callable[[Mapping[str, Any], str], Any], expected: str
) -> Iterator[Prediction]:
    empty = True
    for number, row in json_lines(path):
        empty = False
        where = f"{path}, line {number}"
        item, system, seed = row.get("id"), row.get("system", name), row.get("seed", 0)
        if not (isinstance(item, str) and isinstance(system, str) and type(seed) is int):
            raise InvalidInputError(
                f'{where}: expected {{"id": text, {expected}}} and, where there are several, "system": text and '
                f'"seed": number; got {shown_types(row)}'
            )
        if not 0 <= seed < SEED_END:
            raise InvalidInputError(f"{where}: a seed must be 0..2**63 - 1, got {seed}")
        yield Prediction(item_name(item), system, read_value(row, where), seed, where)
    if empty:
        raise NoDataError(f'{path} holds no predictions; expected lines {{"id": text, {expected}}}')


def pairs_of_predictions(
    predictions: Iterable[Prediction],
    songs: SongSet,
    reference: Callable[[Song], TextSide],
    *,
    modality: str,
    controls: Sequence[str],
) -> TextPairSet:
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
    check_systems(list(by_system), controls, SETTING)
    for system, by_seed in by_system.items():
        check_ids((item for by_item in by_seed.values() for item in by_item), songs, f"system {system!r}")
    pairs: list[TextPair] = []
    failures: list[Failure] = []
    for system, by_seed in by_system.items():
        for run, seed in enumerate(sorted(by_seed)):
            for song in songs.songs:
                made = by_seed[seed].get(song.id)
                item = run_name(song.id, run)
                if made is None or made.error:
                    missing = f"PairCountError: no prediction for {song.id!r} with seed {seed}; add it, or set `limit`"
                    failures.append(Failure(item, system, made.error if made else missing))
                    continue
                estimate = TextSide(f"{song.id}, seed {seed}", made.value)
                pairs.append(TextPair(item, system, song.group, modality, reference(song), estimate))
    return TextPairSet(songs.about, tuple(by_system), tuple(pairs), tuple(failures))
