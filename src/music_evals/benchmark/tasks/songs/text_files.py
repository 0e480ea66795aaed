"""Generated lyrics and the patterns that were asked for, out of folders, a manifest, or two files."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from music_evals.benchmark.inputs import check_systems, files_of, manifest_rows, named_path, read_text
from music_evals.benchmark.rows import Failure
from music_evals.benchmark.tasks.songs.text_pairs import TextPair, TextPairSet, TextSide, check_counts
from music_evals.errors import InvalidInputError, MusicEvalsError, NoDataError, PairCountError
from music_evals.locations import Location, Remote, location, resolve

__all__ = ["TEXT_SUFFIXES", "texts_in_folders", "texts_in_manifest"]

TEXT_SUFFIXES = frozenset({"", ".txt", ".md", ".lrc"})
"""What is taken for a text in a folder."""

MODALITY = "lyrics"
PATTERN = "pattern"
SETTING = "generated"
COLUMNS = ("generated", "reference")


def texts_in_folders(
    reference: str | os.PathLike[str],
    generated: Sequence[str | os.PathLike[str]],
    *,
    controls: Sequence[str],
    limit: int | None = None,
) -> TextPairSet:
    """Pair the texts of two or more folders, or single files."""
    root = location(reference)
    patterns = dict(list(_texts_of(root).items())[:limit])
    named = [named_path(text, SETTING) for text in generated]
    check_systems([name for name, _ in named], controls, SETTING)
    pairs: list[TextPair | Failure] = []
    for system, path in named:
        texts = _texts_of(path)
        if path.is_dir() != root.is_dir():
            raise PairCountError(
                f"{root} and {path}: one is a folder and the other a file; give two folders or two files"
            )
        if root.is_file():
            texts = dict(zip(patterns, texts.values(), strict=True))
        extra = [] if limit is not None else [item for item in texts if item not in patterns]
        items = (*patterns, *extra)
        for item in items:
            try:
                sides = (_read_side(item, PATTERN, patterns.get(item)), _read_side(item, "text", texts.get(item)))
                pairs.append(_pair(item, system, "", *sides))
            except MusicEvalsError as error:
                pairs.append(Failure(item, system, f"{type(error).__name__}: {error}"))
    return _pair_set(root.resolve().name, [name for name, _ in named], pairs)


def _texts_of(path: Location) -> dict[str, tuple[Location, str]]:
    return files_of(path, TEXT_SUFFIXES, "no texts; expected files such as .txt, one a song")


def _pair(item: str, system: str, group: str, reference: TextSide, generated: TextSide) -> TextPair:
    return TextPair(item, system, group or reference.content, MODALITY, reference, generated)


def _read_side(item: str, side: str, file: tuple[Location, str] | None) -> TextSide:
    if file is None:
        raise PairCountError(f"no {side} for {item!r}; add it, or take its partner away")
    path, name = file
    return TextSide(name, _text_of(path))


def texts_in_manifest(
    path: str | os.PathLike[str], *, controls: Sequence[str], limit: int | None = None
) -> TextPairSet:
    """Read pairs from a manifest."""
    place = location(path)
    rows = manifest_rows(place)
    if not rows:
        raise NoDataError(f"{place} holds no pairs; expected the columns {' and '.join(map(_either, COLUMNS))}")
    there = list(dict.fromkeys(str(name) for row in rows for name in row if name is not None))
    missing = [name for name in COLUMNS if not {name, _file_column(name)} & {*there}]
    if missing:
        raise InvalidInputError(f"{place}: no column {' and '.join(map(_either, missing))}; it has {', '.join(there)}")
    pairs = [_pair_of_row(row, number, place) for number, row in enumerate(rows, start=1)]
    items = set(list(dict.fromkeys(pair.item for pair in pairs))[:limit])
    chosen = [pair for pair in pairs if pair.item in items]
    systems = list(dict.fromkeys(pair.system for pair in chosen))
    check_systems(systems, controls, "the column system, or")
    check_counts(chosen, str(place))
    return _pair_set(place.name, systems, chosen)


def _pair_of_row(row: Mapping[str, Any], number: int, path: Location) -> TextPair | Failure:
    item, system, group = (str(row.get(name) or "") for name in ("id", "system", "group"))
    item, system = item or f"row {number}", system or path.stem
    try:
        generated, reference = (_side_of_row(row, name, path.parent) for name in COLUMNS)
    except MusicEvalsError as error:
        return Failure(item, system, f"{type(error).__name__}: {error}")
    return _pair(item, system, group, reference, generated)


def _side_of_row(row: Mapping[str, Any], column: str, folder: Location) -> TextSide:
    text, file = row.get(column), row.get(_file_column(column))
    if not file and isinstance(text, str):
        return TextSide(f"text {hashlib.sha256(text.encode()).hexdigest()[:8]}", text)
    if not file:
        return _refuse(column, "a text", text)
    if text:
        raise InvalidInputError(f"give {column} or {_file_column(column)} in a row, not both")
    if not isinstance(file, str):
        return _refuse(_file_column(column), "a path", file)
    return TextSide(file, _text_of(_below(folder, file)))


def _text_of(path: Location) -> str:
    """Return what a file holds without the newline at its end, which is the file's and not the song's."""
    return read_text(path).removesuffix("\n")


def _file_column(column: str) -> str:
    return f"{column}_file"


def _either(column: str) -> str:
    return f"{column} or {_file_column(column)}"


def _refuse(column: str, wanted: str, value: object) -> NoReturn:
    raise InvalidInputError(f"the column {column} must hold {wanted}, got {type(value).__name__}")


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


def _pair_set(name: str, systems: Sequence[str], outcomes: Sequence[TextPair | Failure]) -> TextPairSet:
    about = {"id": name, "config": None, "split": None, "revision": None}
    pairs = tuple(pair for pair in outcomes if isinstance(pair, TextPair))
    failures = tuple(pair for pair in outcomes if isinstance(pair, Failure))
    return TextPairSet(about, tuple(systems), pairs, failures)
