"""What is edited: recordings and scores out of files, folders, manifests and datasets, each with its instruction."""

from __future__ import annotations

import dataclasses
import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from music_evals.annotations import EditInstruction
from music_evals.audio.io import AUDIO_SUFFIXES
from music_evals.benchmark.inputs import files_of, load_split, manifest_rows, resolve_revision, some
from music_evals.benchmark.tasks.edits.instructions import Generate, by_templates
from music_evals.errors import InvalidInputError, NoDataError, PairCountError
from music_evals.files import check_path
from music_evals.locations import location, resolve
from music_evals.pipelines.suffixes import suffix_of
from music_evals.protocols import RENDERED_DATASETS, load_plugin
from music_evals.symbolic.files import READERS

__all__ = ["Source", "bars_of", "expand", "sources_in_files", "sources_of_dataset"]

SUFFIXES = AUDIO_SUFFIXES | READERS.keys()

_PARTIAL = f".{'0' * 32}.flac.part"  # what the name of a file gets while it is written
_TEXTS = ("source_prompt", "target_prompt", "before", "after", "task")


@dataclasses.dataclass(frozen=True)
class Source:
    """One piece of music, and what is asked of the editing system."""

    item: str
    path: str
    group: str
    columns: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    """What its row says of the instruction; empty for files without one."""
    instruction: EditInstruction | None = None
    problem: str = ""
    """Why nothing can be edited: its row names no file, or an edit of that name cannot be written."""


def sources_in_files(paths: Sequence[str]) -> list[Source]:
    """Return the sources of files, folders and manifests (CSV or JSON lines with the column ``source``)."""
    sources: list[Source] = []
    for text in paths:
        place = location(text)
        if not isinstance(place, Path):
            raise InvalidInputError(f"{text}: sources are read from this machine; fetch them first")
        if place.suffix.lower() in {".csv", ".jsonl"}:
            sources += _sources_in_manifest(place)
            continue
        lack = "no recordings and no scores; expected files such as .wav, .flac, .mp3, .mid"
        if place.is_file() and place.suffix.lower() not in SUFFIXES:
            raise InvalidInputError(f"{place} is neither a recording, a score nor a manifest (.csv, .jsonl)")
        sources += [Source(item, str(file), item) for item, (file, _) in files_of(place, SUFFIXES, lack).items()]
    return sources


def _sources_in_manifest(place: Path) -> Iterator[Source]:
    rows = manifest_rows(place)
    if not rows or "source" not in rows[0]:
        raise NoDataError(f"{place} has no rows with the column `source`; it names a file in each row")
    for number, row in enumerate(rows, start=1):
        cell = str(row.get("source") or "").strip()
        if not cell:
            raise InvalidInputError(f"{place}, row {number}: nothing in the column `source`")
        item = str(row.get("id") or PurePosixPath(cell).with_suffix(""))
        group = str(row.get("group") or PurePosixPath(cell).with_suffix(""))
        try:
            check_path(str(place.parent / cell))
            check_path(item + _PARTIAL)
        except InvalidInputError as error:
            why = f"{place}, row {number}: {error}"
            yield Source(
                f"row {number}", f"row {number}{PurePosixPath(cell).suffix[:9]}", group, dict(row), problem=why
            )
            continue
        yield Source(item, str(resolve(place.parent, cell)), group, dict(row))


def sources_of_dataset(
    dataset: str, config: str | None, split: str, *, column: str, revision: str | None, limit: int | None, folder: Path
) -> tuple[list[Source], dict[str, Any]]:
    """Return the sources of one split, and where they come from; recordings in its files are written to `folder`."""
    revision = resolve_revision(dataset, revision)
    rows = load_split(dataset, config, split, revision=revision)
    name = Path(dataset).name
    about = {"id": dataset, "config": rows.info.config_name, "split": split, "revision": revision}
    made = _rendered(rows, name) if name in RENDERED_DATASETS else _stored(rows, dataset, column, folder)
    by_item: dict[str, Source] = {}
    for source in made:
        by_item.setdefault(source.item, source)
        if limit is not None and len(by_item) == limit:
            break
    return list(by_item.values()), about


def _rendered(rows: Any, name: str) -> Iterator[Source]:
    """Yield the originals of a dataset whose rows hold scores, each once."""
    render = load_plugin(RENDERED_DATASETS, name, "dataset")
    for row in rows:
        reference, _ = render(row)
        item = str(row.get("piece_id") or row.get("piece") or reference.stem)
        yield Source(item, str(reference), item)


def _stored(rows: Any, dataset: str, column: str, folder: Path) -> Iterator[Source]:
    import datasets

    if column not in rows.column_names:
        raise InvalidInputError(
            f"{dataset}: no column {column}; it has {', '.join(rows.column_names)}. Name one with `column`"
        )
    if isinstance(rows.features[column], datasets.Audio):
        rows = rows.cast_column(column, datasets.Audio(decode=False))
    words = [name for name, feature in rows.features.items() if isinstance(feature, datasets.Value)]
    for number, row in enumerate(rows.select_columns(list(dict.fromkeys([column, *words]))), start=1):
        value = row[column]
        path = value if isinstance(value, str) else (value or {}).get("path")
        content = None if isinstance(value, str) else (value or {}).get("bytes")
        if content is not None:
            folder.mkdir(parents=True, exist_ok=True)
            digest = hashlib.sha256(content).hexdigest()[:32]
            path = str(folder / f"{digest}{suffix_of(content, path)}")
            Path(path).write_bytes(content)
        if not path:
            raise InvalidInputError(f"{dataset}, row {number}: the column {column} holds no recording")
        item = str(row.get("id") or f"row_{number}")
        yield Source(item, path, str(row.get("group") or item), {name: row[name] for name in words if name != column})


def expand(
    sources: Sequence[Source],
    base: EditInstruction | None,
    *,
    generate: Sequence[str],
    default: str,
    seed: int,
    write: Generate = by_templates,
) -> list[Source]:
    """Return the sources with their instructions: those of their rows over those of the whole run.

    With `generate` each source gets an instruction for each of these tasks of which its description names something.
    """
    for source in sources:
        _check_item(source.item)
    if generate:
        made = write({source.item: _description(source, base) for source in sources}, generate, seed)
        ready = [
            dataclasses.replace(source, item=instruction.id, instruction=instruction)
            for source in sources
            for instruction in made[source.item]
        ]
    else:
        ready = [dataclasses.replace(source, instruction=_instruction(source, base, default)) for source in sources]
    counts = Counter(source.item for source in ready)
    twice = [item for item, count in counts.items() if count > 1]
    if twice:
        raise PairCountError(f"ids must be unique, twice or more: {some(twice)}; give each source its own id")
    return ready


def _description(source: Source, base: EditInstruction | None) -> str:
    columns = source.columns
    own = str(columns.get("description") or columns.get("source_prompt") or "")
    return own or (base.source_prompt if base else "")


def _check_item(item: str) -> None:
    """Refuse an id that is no name of a file below the folder of the run."""
    parts = PurePosixPath(item).parts
    if not parts or item.startswith("/") or ".." in parts or "\\" in item or not item.isprintable():
        raise InvalidInputError(f"the id {item!r} cannot be the name of a file; give another one in the column `id`")


def _instruction(source: Source, base: EditInstruction | None, default: str) -> EditInstruction:
    columns = source.columns
    held = {name: str(columns[name]).strip() for name in _TEXTS if columns.get(name)}
    values: dict[str, Any] = {**(base.to_dict() if base else {"text": default}), **held}
    if columns.get("instruction"):
        values["text"] = str(columns["instruction"])
    if columns.get("bars"):
        values["bars"] = bars_of(columns["bars"])
    if columns.get("confidence") not in {None, ""}:
        values["confidence"] = _whole(columns["confidence"], source.item)
    if columns.get("intended"):
        named = columns["intended"]
        names = named.split(",") if isinstance(named, str) else named
        values["intended_facets"] = [str(name).strip() for name in names]
    return EditInstruction.from_dict(values)


def _whole(value: Any, item: str) -> int:
    try:
        return int(value)
    except ValueError:
        raise InvalidInputError(f"{item}: confidence must be a whole number, got {value!r}") from None


def bars_of(value: Any) -> tuple[int, int]:
    """Return the range of bars that ``"4:8"`` or a list of two says."""
    parts = value.split(":") if isinstance(value, str) else list(value)
    try:
        first, end = map(int, parts)
    except ValueError:
        raise InvalidInputError(f"bars are FIRST:END, such as 4:8, counted from 0, got {value!r}") from None
    return first, end
