"""What is edited: recordings and scores out of files, folders, manifests and datasets, each with its instruction.

Instructions stand in the rows, or are written for the run: by templates, or by a language model that is asked once and
whose answers are kept.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from music_evals.annotations import EditInstruction
from music_evals.audio.io import AUDIO_SUFFIXES
from music_evals.benchmark.columns import dump_json
from music_evals.benchmark.inputs import files_of, load_split, manifest_rows, resolve_revision, some
from music_evals.errors import BackendError, CorruptRecordsError, InvalidInputError, NoDataError, PairCountError
from music_evals.files import check_path, parse_json, write_atomically
from music_evals.locations import location, resolve, suffix_of
from music_evals.protocols import INSTRUCTION_WRITERS, RENDERED_DATASETS, LyricWriter, load_plugin
from music_evals.symbolic.files import READERS

INSTRUCTIONS = "instructions.jsonl"

Generate = Callable[[Mapping[str, str], Sequence[str], int], dict[str, list[EditInstruction]]]
"""Descriptions by source, tasks and seed -> the instructions of each source."""

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


def by_templates(descriptions: Mapping[str, str], tasks: Sequence[str], seed: int) -> dict[str, list[EditInstruction]]:
    """Write instructions by templates; raises `NoDataError` for a description without a word that they know."""
    write = load_plugin(INSTRUCTION_WRITERS, "templates", "writer of instructions")
    return {item: list(write(item, text, tasks=tasks, seed=seed)) for item, text in descriptions.items()}


def _stored_instructions(path: Path, writer: Mapping[str, Any]) -> dict[str, list[EditInstruction]]:
    """Return what was kept of a language model, by what was asked; without those of another model or setting."""
    if not path.is_file():
        return {}
    instructions = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        try:
            row = parse_json(line, f"line {number}")
            if row["by"] == writer:
                instructions[row["asked"]] = [EditInstruction.from_dict(entry) for entry in row["instructions"]]
        except (ValueError, KeyError, TypeError) as error:
            raise CorruptRecordsError(
                f"{path}, line {number} is no kept instruction ({error}); move the file away to ask again"
            ) from error
    return instructions


def by_model(writer: LyricWriter, folder: Path, *, afresh: bool = False) -> Generate:
    """Return what lets a language model write instructions, and keeps them in `folder`.

    What is kept there is not asked again unless `afresh`, so that a run that goes on has the same instructions. A
    source whose answer is no instruction is named when all were asked; what was good is kept.
    """
    about = writer.describe()
    identity = {name: about[name] for name in ("model", "commit", "content_hash", "url") if name in about}
    path, by = folder / INSTRUCTIONS, {"name": writer.name, **identity}

    def generate(descriptions: Mapping[str, str], tasks: Sequence[str], seed: int) -> dict[str, list[EditInstruction]]:
        write = load_plugin(INSTRUCTION_WRITERS, "language_model", "writer of instructions")
        questions = {item: dump_json([item, text, list(tasks), seed]) for item, text in descriptions.items()}
        stored = {} if afresh else _stored_instructions(path, by)
        refused = []
        for item, question in questions.items():
            if question in stored:
                continue
            try:
                stored[question] = write(writer, item, descriptions[item], tasks=tasks, seed=seed)
            except BackendError as error:
                refused.append(str(error))
                continue
            rows = (
                {"asked": question, "by": by, "instructions": [instruction.to_dict() for instruction in instructions]}
                for question, instructions in stored.items()
            )
            write_atomically(path, "".join(f"{dump_json(row)}\n" for row in rows).encode(), parents=True)
        if hasattr(writer, "close"):
            writer.close()  # the editing system needs the memory
        if refused:
            raise BackendError(
                f"{len(refused)} of {len(questions)} answers are no instructions, such as: {refused[0]}; take another "
                "seed or model, or write these by hand"
            )
        made = {item: stored[question] for item, question in questions.items()}
        bare = [item for item, instructions in made.items() if not instructions]
        if bare:
            raise NoDataError(
                f"{writer.name} found no {' or '.join(tasks)} in the description of {bare[0]} "
                f"({len(bare)} of {len(made)} sources); describe more, or write these by hand"
            )
        return made

    return generate


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
    descriptions = {}
    for source in sources:
        item, columns = source.item, source.columns
        parts = PurePosixPath(item).parts
        if not parts or item.startswith("/") or ".." in parts or "\\" in item or not item.isprintable():
            raise InvalidInputError(
                f"the id {item!r} cannot be the name of a file; give another one in the column `id`"
            )
        own = str(columns.get("description") or columns.get("source_prompt") or "")
        descriptions[item] = own or (base.source_prompt if base else "")
    if generate:
        made = write(descriptions, generate, seed)
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


def _instruction(source: Source, base: EditInstruction | None, default: str) -> EditInstruction:
    columns = source.columns
    held = {name: str(columns[name]).strip() for name in _TEXTS if columns.get(name)}
    values: dict[str, Any] = {**(base.to_dict() if base else {"text": default}), **held}
    if columns.get("instruction"):
        values["text"] = str(columns["instruction"])
    if columns.get("bars"):
        values["bars"] = bars_of(columns["bars"])
    if columns.get("confidence") not in {None, ""}:
        try:
            values["confidence"] = int(columns["confidence"])
        except ValueError:
            value = columns["confidence"]
            raise InvalidInputError(f"{source.item}: confidence must be a whole number, got {value!r}") from None
    if columns.get("targets"):
        values["targets"] = columns["targets"]
    if columns.get("intended"):
        named = columns["intended"]
        names = named.split(",") if isinstance(named, str) else named
        values["intended_facets"] = [str(name).strip() for name in names]
    return EditInstruction.from_dict(values)


def bars_of(value: Any) -> tuple[int, int]:
    """Return the range of bars that ``"4:8"`` or a list of two says."""
    parts = value.split(":") if isinstance(value, str) else list(value)
    try:
        first, end = map(int, parts)
    except ValueError:
        raise InvalidInputError(f"bars are FIRST:END, such as 4:8, counted from 0, got {value!r}") from None
    return first, end
