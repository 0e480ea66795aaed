"""Which original belongs to which edit: pairs from two folders, from a manifest, or from two files.

A pair has an item (the original, or what a manifest calls it), a system (who made the edit) and a group (the cluster of
the intervals; by default the edits of one original, known by what its file holds and not by its name). Several systems
are compared on the items that they share. Nothing is decoded here: the files are only hashed, so that a record can say
what it is about. A file at a URL is not even fetched: it has a fingerprint (`locations`), and whoever compares the pair
fetches it.
"""

from __future__ import annotations

import dataclasses
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from music_evals.audio.io import AUDIO_SUFFIXES
from music_evals.benchmark.inputs import check_systems, files_of, manifest_rows, named_path, some
from music_evals.benchmark.rows import Failure
from music_evals.errors import InvalidInputError, MusicEvalsError, NoDataError, PairCountError, located
from music_evals.locations import (
    Location,
    Remote,
    fingerprints,
    folder_of,
    hash_file,
    location,
    resolve,
    without_suffix,
)
from music_evals.pipelines.preservation import modality
from music_evals.symbolic.files import READERS

__all__ = [
    "AUDIO_SUFFIXES",
    "CEILING",
    "CONTROLS",
    "DEFAULT_COLUMNS",
    "REENCODED",
    "UNRELATED",
    "Candidate",
    "Columns",
    "MusicFile",
    "Pair",
    "PairSet",
    "candidate_of",
    "make_pairs",
    "pairs_in_folders",
    "pairs_in_manifest",
]

MUSIC_SUFFIXES = AUDIO_SUFFIXES | READERS.keys()

NO_MUSIC = "no recordings and no scores; expected files such as .wav, .flac, .mp3, .mid"

GROUPINGS = ("file", "folder")

CEILING = "same music"
UNRELATED = "unrelated music"
CONTROLS = (CEILING, UNRELATED)
"""Systems of our own: originals against themselves, played back otherwise; and against originals of other groups."""

REENCODED = "re-encoded"
"""The treatment of the same-music control; see `reencoding`."""


@dataclasses.dataclass(frozen=True)
class MusicFile:
    """One file of a pair."""

    path: str  # where it is read: a path or a URL
    name: str  # what records call it: its path within what was given
    content: str  # hash of its bytes, or the fingerprint of what lies at a URL


@dataclasses.dataclass(frozen=True)
class Pair:
    """An original and an edit of it."""

    item: str
    system: str
    group: str
    reference: MusicFile
    estimate: MusicFile
    modality: str
    treatment: str = ""
    """What is done to the estimate before it is compared; of a control only."""


class Columns(NamedTuple):
    """Which columns of a manifest or a dataset say what."""

    reference: str = "reference"  # original and edit
    estimate: str = "estimate"
    system: str = "system"  # who made the edit, where there is such a column
    # Cluster: ``"file"`` (what the file of the original holds), ``"folder"`` (where it lies) or a column; None is the
    # column ``group`` where there is one, else ``"file"``.
    group_by: str | None = None


DEFAULT_COLUMNS = Columns()


@dataclasses.dataclass(frozen=True)
class Candidate:
    """A pair before its files are read."""

    item: str  # as those of a `Pair`; an empty group is the content of the original
    system: str
    group: str
    reference: tuple[Location, str] | None  # place, and the name for the records; None for a partner that is missing
    estimate: tuple[Location, str] | None
    where: str = ""  # file and row of a manifest


@dataclasses.dataclass(frozen=True)
class PairSet:
    """All that is compared in one run."""

    # Where the pairs come from, for the receipt: ``id``, ``config``, ``split``, ``revision``, and what else decides the
    # files.
    dataset: Mapping[str, Any]
    systems: tuple[str, ...]  # who made the edits, in the order given
    pairs: tuple[Pair, ...]  # in the order given
    failures: tuple[Failure, ...] = ()  # pairs that lack a partner, or whose files cannot be read
    controls: tuple[str, ...] = ()  # those of the systems whose rows have the role ``control``: outside of comparisons


def pairs_in_folders(
    reference: str | os.PathLike[str],
    estimates: Sequence[str | os.PathLike[str]],
    *,
    group_by: str | None = None,
    limit: int | None = None,
) -> PairSet:
    """Pair the files of two or more folders, or single files, by paths or URLs."""
    if group_by not in {None, *GROUPINGS}:
        raise InvalidInputError(
            f"folders are grouped by {' or '.join(GROUPINGS)}, got `group_by` {group_by}; columns need a manifest"
        )
    root = location(reference)
    named = [named_path(text, "estimates") for text in estimates]
    originals = files_of(root, MUSIC_SUFFIXES, NO_MUSIC)
    chosen = dict(list(originals.items())[:limit])
    candidates: list[Candidate] = []
    for system, path in named:
        edits = files_of(path, MUSIC_SUFFIXES, NO_MUSIC)
        if path.is_dir() != root.is_dir():
            raise PairCountError(
                f"{root} and {path}: one is a folder and the other a file; give two folders or two files"
            )
        if root.is_file():
            edits = dict(zip(chosen, edits.values(), strict=True))
        extra = [] if limit is not None else [name for name in edits if name not in chosen]
        for name in (*chosen, *extra):
            group = folder_of(name) if group_by == "folder" else ""
            candidates.append(Candidate(name, system, group, chosen.get(name), edits.get(name)))
    check_systems([system for system, _ in named], CONTROLS, "estimates")
    return make_pairs(candidates, {"id": root.resolve().name, "config": None, "split": None, "revision": None})


def pairs_in_manifest(
    path: str | os.PathLike[str], columns: Columns = DEFAULT_COLUMNS, *, limit: int | None = None
) -> PairSet:
    """Read pairs from a manifest; its cells are paths from its folder, or URLs."""
    place = location(path)
    rows = manifest_rows(place)
    if not rows:
        raise NoDataError(f"{place} holds no pairs; expected the columns {columns.reference} and {columns.estimate}")
    _check_columns(place, rows, columns)
    candidates = []
    for number, row in enumerate(rows, start=1):
        where = f"{place}, row {number}"
        reference, estimate = (
            _cell(row.get(name), place.parent, where) for name in (columns.reference, columns.estimate)
        )
        item = without_suffix(reference[1]) if reference else f"row {number}"
        candidates.append(candidate_of(row, (reference, estimate), columns, where=where, item=item, system=place.stem))
    items = set(list(dict.fromkeys(candidate.item for candidate in candidates))[:limit])
    chosen = [candidate for candidate in candidates if candidate.item in items]
    made = make_pairs(chosen, {"id": place.name, "config": None, "split": None, "revision": None})
    controls = {pair.system for pair, row in zip(candidates, rows, strict=True) if row.get("role") == "control"}
    return dataclasses.replace(made, controls=tuple(name for name in made.systems if name in controls))


def _check_columns(path: Location, rows: Sequence[Mapping[str, Any]], columns: Columns) -> None:
    there = list(dict.fromkeys(str(name) for row in rows for name in row if name is not None))
    missing = [name for name in (columns.reference, columns.estimate) if name not in there]
    if missing:
        raise InvalidInputError(
            f"{path}: no column {', '.join(missing)}; it has {', '.join(there)}. Name both with `reference_column` "
            "and `estimate_column`"
        )


def _cell(value: object, folder: Location, where: str) -> tuple[Location, str] | None:
    if not isinstance(value, str) or not value.strip():
        return None
    try:
        return resolve(folder, value), value
    except InvalidInputError as error:
        raise located(error, where) from error


def candidate_of(
    row: Mapping[str, Any],
    files: tuple[tuple[Location, str] | None, tuple[Location, str] | None],
    columns: Columns,
    *,
    where: str,
    item: str,
    system: str,
) -> Candidate:
    """Return the pair that a row describes."""
    named = row.get("id", row.get("item_id"))
    return Candidate(
        item=item if _empty(named) else str(named),
        system=str(row.get(columns.system) or system),
        group=_group_of(row, files[0][1] if files[0] else "", columns.group_by, where),
        reference=files[0],
        estimate=files[1],
        where=where,
    )


def _group_of(row: Mapping[str, Any], reference: str, group_by: str | None, where: str) -> str:
    if group_by is None:
        return "" if _empty(row.get("group")) else str(row["group"])
    if group_by in GROUPINGS:
        return "" if group_by == "file" else folder_of(reference)
    if _empty(row.get(group_by)):
        raise InvalidInputError(
            f"{where}: nothing in the column {group_by!r} of `group_by`; it has {', '.join(map(str, row))}"
        )
    return str(row[group_by])


def _empty(value: object) -> bool:
    return value is None or value == ""


def make_pairs(candidates: Sequence[Candidate], dataset: Mapping[str, Any]) -> PairSet:
    """Read the files of candidates and return pairs and failures."""
    counts = Counter((candidate.item, candidate.system) for candidate in candidates)
    twice = [f"{item} ({system})" for (item, system), count in counts.items() if count > 1]
    if twice:
        raise PairCountError(
            f"ids must be unique for each system, twice or more: {some(twice)}; give each pair its own id"
        )
    systems = tuple(dict.fromkeys(candidate.system for candidate in candidates))
    check_systems(systems, CONTROLS, "estimates")
    sides = [side for candidate in candidates for side in (candidate.reference, candidate.estimate) if side]
    remote = [place for place, _ in sides if isinstance(place, Remote)]
    contents: dict[Location, str | MusicEvalsError] = dict(fingerprints(remote)) if remote else {}
    pairs: list[Pair] = []
    failures: list[Failure] = []
    for candidate in candidates:
        try:
            pairs.append(_pair(candidate, contents))
        except MusicEvalsError as error:
            if candidate.where and "://" not in candidate.where and not isinstance(error, NoDataError | PairCountError):
                error = located(error, candidate.where)
            failures.append(Failure(candidate.item, candidate.system, f"{type(error).__name__}: {error}"))
    return PairSet(dict(dataset), systems, tuple(pairs), tuple(failures))


def _pair(candidate: Candidate, contents: dict[Location, str | MusicEvalsError]) -> Pair:
    """Return the pair, its files hashed each once; `contents` holds hashes, and fingerprints of files elsewhere."""
    files = []
    for side, file in (("reference", candidate.reference), ("estimate", candidate.estimate)):
        if file is None:
            raise PairCountError(f"no {side} for {candidate.item!r}; add it, or take its partner away")
        place, name = file
        if place not in contents and isinstance(place, Path):
            contents[place] = hash_file(place)
        content = contents[place]
        if isinstance(content, MusicEvalsError):
            raise content
        files.append(MusicFile(str(place), name, content))
    reference, estimate = files
    modalities = modality(reference.path), modality(estimate.path)
    if modalities[0] != modalities[1]:
        raise InvalidInputError(
            f"{reference.name} is {modalities[0]} and {estimate.name} {modalities[1]}; compare two recordings, or two "
            "scores"
        )
    group = candidate.group or reference.content
    return Pair(candidate.item, candidate.system, group, reference, estimate, modalities[0])
