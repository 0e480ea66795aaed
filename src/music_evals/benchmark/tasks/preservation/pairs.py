"""Which original belongs to which edit: pairs from two folders, from a manifest, from two files, or from a dataset.

A pair has an item (the original, or what a manifest calls it), a system (who made the edit) and a group (the cluster of
the intervals; by default the edits of one original, known by what its file holds and not by its name). Nothing is
decoded here: the files are only hashed, so that a record can say what it is about. A file at a URL is not even fetched:
it has a fingerprint (`locations`), and whoever compares the pair fetches it. The recordings of a dataset are taken as
the bytes or files that they are and go through our own decoder, so that a dataset and a folder of the same files give
equal numbers; rows of scores are rendered first.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from music_evals.annotations import targets_of, targets_text
from music_evals.audio.io import AUDIO_SUFFIXES
from music_evals.benchmark.inputs import File, check_systems, load_split, manifest_rows, paired_files, resolve_revision
from music_evals.benchmark.rows import Failure, Pair, PairSet, check_unique
from music_evals.errors import (
    InvalidInputError,
    MusicEvalsError,
    NoDataError,
    PairCountError,
    UnknownNameError,
    located,
)
from music_evals.locations import (
    Location,
    Remote,
    fingerprints,
    folder_of,
    hash_file,
    location,
    resolve,
    suffix_of,
    without_suffix,
)
from music_evals.pipelines.preservation import modality
from music_evals.protocols import RENDERED_DATASETS, RENDERERS, load_plugin
from music_evals.symbolic.files import READERS

__all__ = [
    "AUDIO_SUFFIXES", "CEILING", "CONTROLS", "REENCODED", "UNRELATED", "Columns", "MusicFile", "Pair",
    "PairSet", "pairs_in_folders", "pairs_in_manifest", "pairs_of_dataset",
]  # fmt: skip

MUSIC_SUFFIXES = AUDIO_SUFFIXES | READERS.keys()

NO_MUSIC = "no recordings and no scores; expected files such as .wav, .flac, .mp3, .mid"

GROUPINGS = ("file", "folder")

CEILING = "same music"
UNRELATED = "unrelated music"
CONTROLS = (CEILING, UNRELATED)
"""Systems of our own: originals against themselves, played back otherwise; and against originals of other groups."""

REENCODED = "re-encoded"
"""The treatment of the same-music control; see `worker.reencode`."""


@dataclasses.dataclass(frozen=True)
class MusicFile:
    """One file of a pair."""

    path: str  # where it is read: a path or a URL
    name: str  # what records call it: its path within what was given
    content: str  # hash of its bytes, or the fingerprint of what lies at a URL


class Columns(NamedTuple):
    """Which columns of a manifest or a dataset say what."""

    reference: str = "reference"  # original and edit
    estimate: str = "estimate"
    system: str = "system"  # who made the edit, where there is such a column
    # Cluster: ``"file"`` (what the file of the original holds), ``"folder"`` (where it lies) or a column; None is the
    # column ``group`` where there is one, else ``"file"``.
    group_by: str | None = None


DEFAULT_COLUMNS = Columns()

KIND = "kind"
"""Column of a rendered dataset with the kind of edit: one mean over all kinds says nothing."""


@dataclasses.dataclass(frozen=True)
class _Candidate:
    """A pair before its files are read."""

    item: str  # as those of a `Pair`; an empty group is the content of the original
    system: str
    group: str
    reference: File
    estimate: File
    where: str = ""  # file and row of a manifest
    targets: str = ""  # what was asked, in the form of `annotations.targets_of`


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
    root, pairs = paired_files(
        reference, estimates, MUSIC_SUFFIXES, NO_MUSIC, setting="estimates", controls=CONTROLS, limit=limit
    )
    candidates = [
        _Candidate(name, system, folder_of(name) if group_by == "folder" else "", original, edit)
        for name, system, original, edit in pairs
    ]
    return _make_pairs(candidates, {"id": root.resolve().name, "config": None, "split": None, "revision": None})


def pairs_in_manifest(
    path: str | os.PathLike[str], columns: Columns = DEFAULT_COLUMNS, *, limit: int | None = None
) -> PairSet:
    """Read pairs from a manifest; its cells are paths from its folder, or URLs."""
    place = location(path)
    rows = manifest_rows(place)
    if not rows:
        raise NoDataError(f"{place} holds no pairs; expected the columns {columns.reference} and {columns.estimate}")
    there = list(dict.fromkeys(str(name) for row in rows for name in row if name is not None))
    missing = [name for name in (columns.reference, columns.estimate) if name not in there]
    if missing:
        raise InvalidInputError(
            f"{place}: no column {', '.join(missing)}; it has {', '.join(there)}. Name both with `reference_column` "
            "and `estimate_column`"
        )
    candidates = []
    for number, row in enumerate(rows, start=1):
        where = f"{place}, row {number}"
        files: list[File] = []
        for name in (columns.reference, columns.estimate):
            value = row.get(name)
            try:
                is_given = isinstance(value, str) and value.strip()
                files.append((resolve(place.parent, str(value)), str(value)) if is_given else None)
            except InvalidInputError as error:
                raise located(error, where) from error
        item = without_suffix(files[0][1]) if files[0] else f"row {number}"
        candidates.append(_candidate(row, files, columns, where=where, item=item, system=place.stem))
    items = set(list(dict.fromkeys(candidate.item for candidate in candidates))[:limit])
    chosen = [candidate for candidate in candidates if candidate.item in items]
    made = _make_pairs(chosen, {"id": place.name, "config": None, "split": None, "revision": None})
    controls = {pair.system for pair, row in zip(candidates, rows, strict=True) if row.get("role") == "control"}
    return dataclasses.replace(made, controls=tuple(name for name in made.systems if name in controls))


def pairs_of_dataset(
    dataset: str,
    config: str | None,
    split: str,
    columns: Columns = DEFAULT_COLUMNS,
    *,
    folder: Path,
    revision: str | None = None,
    renderer: str | None = None,
    limit: int | None = None,
    progress: Callable[[int, int, str], None] | None = None,
) -> PairSet:
    """Return the pairs of one split of a dataset: two columns of recordings, or rows of scores that are rendered."""
    name = Path(dataset).name
    if renderer is not None and name not in RENDERED_DATASETS:
        raise InvalidInputError(
            f"{dataset} holds recordings, `renderer` is for {', '.join(RENDERED_DATASETS)}; leave it out"
        )
    if renderer not in {None, *RENDERERS}:
        noun = "renderer"
        raise UnknownNameError(noun, str(renderer), RENDERERS)
    revision = resolve_revision(dataset, revision)
    rows = load_split(dataset, config, split, revision=revision)
    rows = rows.select(range(min(len(rows), limit or len(rows))))
    if not len(rows):
        raise NoDataError(f"{dataset}, split {split}: no rows; nothing can be compared")
    about = {"id": dataset, "config": rows.info.config_name, "split": split, "revision": revision}
    with_files: Iterator[tuple[Mapping[str, Any], Sequence[File]]]
    if name in RENDERED_DATASETS:
        about["renderer"] = renderer or RENDERERS[0]
        if columns.system == DEFAULT_COLUMNS.system:
            columns = columns._replace(system=KIND)
        render = functools.partial(load_plugin(RENDERED_DATASETS, name, "dataset"), renderer=about["renderer"])
        with_files = _rendered(rows, render, progress)
    else:
        folder.mkdir(parents=True, exist_ok=True)
        sides = (columns.reference, columns.estimate)
        rows = _undecoded(rows, sides, dataset)
        with_files = ((row, [_file(row[side], folder) for side in sides]) for row in rows)
    candidates = []
    for number, (row, files) in enumerate(with_files):
        where, item = f"{dataset}, row {number}", f"row {number}"
        candidates.append(_candidate(row, files, columns, where=where, item=item, system=columns.estimate))
    return _make_pairs(candidates, about)


def _rendered(
    rows: Any, render: Callable[[Any], tuple[Path, Path]], progress: Callable[[int, int, str], None] | None
) -> Iterator[tuple[Mapping[str, Any], Sequence[File]]]:
    """Yield each row with its recordings; all that say the same sound the same."""
    for number, row in enumerate(rows, start=1):
        files = render(row)
        if progress is not None:
            progress(number, len(rows), "rendering")
        yield row, [(file, file.name) for file in files]


def _undecoded(rows: Any, sides: Sequence[str], dataset: str) -> Any:
    """Keep what is needed of the split, and let audio be handed out as it is stored."""
    import datasets

    missing = [name for name in sides if name not in rows.column_names]
    if missing:
        raise InvalidInputError(
            f"{dataset}: no column {', '.join(missing)}; it has {', '.join(rows.column_names)}. Name both with "
            "`reference_column` and `estimate_column`"
        )
    for name in sides:
        feature = rows.features[name]
        if isinstance(feature, datasets.Audio):
            rows = rows.cast_column(name, datasets.Audio(decode=False))
        elif getattr(feature, "dtype", "") not in {"string", "large_string"}:
            raise InvalidInputError(
                f"{dataset}: column {name} holds {feature}; expected audio, or paths or URLs as text"
            )
    words = [name for name, feature in rows.features.items() if isinstance(feature, datasets.Value)]
    return rows.select_columns(list(dict.fromkeys([*sides, *words])))


def _file(value: Any, folder: Path) -> File:
    """Return the file of a cell: its own path or URL, or one that its bytes are written to, named by what they are."""
    if value is None:
        return None
    if isinstance(value, str):
        return (location(value), value) if value else None
    content, path = value["bytes"], value["path"]
    if content is None:
        return (location(path), path) if path else None
    written = folder / f"{hashlib.sha256(content).hexdigest()[:32]}{suffix_of(content, path)}"
    if not written.exists():
        written.write_bytes(content)
    # two recordings of one name need not be the same: the name also says what it holds
    return written, f"{written.stem[:16]}/{Path(path).name}" if path else written.name


def _candidate(
    row: Mapping[str, Any], files: Sequence[File], columns: Columns, *, where: str, item: str, system: str
) -> _Candidate:
    """Return the pair that a row describes."""
    reference, estimate = files
    named = row.get("id", row.get("item_id"))
    by = columns.group_by
    if by in GROUPINGS:
        group = folder_of(reference[1] if reference else "") if by == "folder" else ""
    else:
        value = row.get(by or "group")
        if by and value in (None, ""):
            raise InvalidInputError(
                f"{where}: nothing in the column {by!r} of `group_by`; it has {', '.join(map(str, row))}"
            )
        group = "" if value is None else str(value)
    item = item if named in (None, "") else str(named)
    try:
        targets = targets_text(targets_of(row.get("targets")))
    except MusicEvalsError as error:
        raise located(error, where) from error
    return _Candidate(item, str(row.get(columns.system) or system), group, reference, estimate, where, targets)


def _make_pairs(candidates: Sequence[_Candidate], dataset: Mapping[str, Any]) -> PairSet:
    """Read the files of candidates and return pairs and failures."""
    check_unique(candidates)
    systems = tuple(dict.fromkeys(candidate.system for candidate in candidates))
    check_systems(systems, CONTROLS, "estimates")
    # each file is read once: those of this machine are hashed, and of others the fingerprints are taken
    sides = [side for candidate in candidates for side in (candidate.reference, candidate.estimate) if side]
    remote = [place for place, _ in sides if isinstance(place, Remote)]
    contents: dict[Location, str | MusicEvalsError] = dict(fingerprints(remote).items()) if remote else {}
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


def _pair(candidate: _Candidate, contents: dict[Location, str | MusicEvalsError]) -> Pair:
    sides = []
    for side, file in (("reference", candidate.reference), ("estimate", candidate.estimate)):
        if file is None:
            raise PairCountError(f"no {side} for {candidate.item!r}; add it, or take its partner away")
        place, name = file
        if place not in contents and isinstance(place, Path):
            contents[place] = hash_file(place)
        content = contents[place]
        if isinstance(content, MusicEvalsError):
            raise content
        sides.append(MusicFile(str(place), name, content))
    reference, estimate = sides
    kind, other = modality(reference.path), modality(estimate.path)
    if kind != other:
        raise InvalidInputError(
            f"{reference.name} is {kind} and {estimate.name} {other}; compare two recordings, or two scores"
        )
    group = candidate.group or reference.content
    return Pair(candidate.item, candidate.system, group, kind, reference, estimate, targets=candidate.targets)
