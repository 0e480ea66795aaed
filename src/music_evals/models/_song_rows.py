"""Rows of songs that a recipe names: a folder, a file of JSON lines, a dataset by name or its id on the Hub."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from music_evals.errors import InvalidInputError, NoDataError
from music_evals.files import check_no_pointers_below, json_lines, reading
from music_evals.repositories import DATASETS, find_repository

__all__ = ["beside", "check_ids", "song_rows"]


def song_rows(dataset: str, config: str | None, split: str, folder: Path) -> Any:
    """Return the rows of a split: a list where they are JSON lines, else a `datasets.Dataset` with undecoded audio.

    A path is relative to the folder of the recipe, or else to the working folder.
    """
    place = beside(folder, dataset)
    return _json_lines(place) if place.is_file() else _load(dataset, config, split, place)


def beside(folder: Path, name: str) -> Path:
    """Return a path that stands in a recipe."""
    return folder / name if (folder / name).exists() else Path(name)


def check_ids(ids: Sequence[str], place: str) -> None:
    """Raise where two rows have one id, or a row has none."""
    if len(set(ids)) != len(ids) or "None" in ids:
        twice = next((name for name, count in Counter(ids).items() if count > 1), "None")
        raise InvalidInputError(
            f"{place}: every row needs an id of its own, got {twice!r} more than once or none at all"
        )


def _json_lines(path: Path) -> list[Mapping[str, Any]]:
    with reading(path):
        content = path.read_bytes()
    return [row for _, row in json_lines(content, path)]


def _load(dataset: str, config: str | None, split: str, place: Path) -> Any:
    import datasets
    from datasets.exceptions import DatasetGenerationError

    name = str(place) if place.exists() else find_repository(dataset, DATASETS, "dataset")[0]
    try:
        rows = datasets.load_dataset(name, config, split=split)
    except (FileNotFoundError, ValueError, ConnectionError, DatasetGenerationError) as error:
        check_no_pointers_below(name)
        reason = error.__cause__ or error
        raise NoDataError(f"cannot load split {split!r} of {dataset} (config {config}): {reason}") from error
    for column, kind in rows.features.items():
        if isinstance(kind, datasets.Audio):  # we decode, and only what is needed
            rows = rows.cast_column(column, datasets.Audio(decode=False))
    return rows
