"""Edits from end to end: settings in; records, the edited files and a manifest for `music-evals preserve` out.

A run that was killed goes on where it stood: an edit is done where its record says so and its file has the hash that
the record states. What failed is tried again. No edit depends on the others, on the engine or on the order.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import math
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Final

from music_evals.annotations import EditInstruction
from music_evals.benchmark.columns import dump_json
from music_evals.benchmark.engines import Failed, Unit
from music_evals.benchmark.inputs import load_lyric_writer
from music_evals.benchmark.records import Records
from music_evals.benchmark.run import Job, Progress, Row, record
from music_evals.benchmark.run import Settings as RunSettings
from music_evals.benchmark.task import Task
from music_evals.benchmark.tasks.edits.sources import (
    Generate,
    Source,
    by_model,
    by_templates,
    expand,
    sources_in_files,
    sources_of_dataset,
)
from music_evals.benchmark.tasks.edits.work import EditUnit, EditWork, check_editor, is_score, sounds_of
from music_evals.errors import InvalidInputError, MusicEvalsError, NoDataError, UnknownNameError
from music_evals.files import write_atomically
from music_evals.locations import hash_file
from music_evals.numerics import package_versions
from music_evals.options import MISSING, option
from music_evals.protocols import RENDERERS, LyricWriter

MOST_SECONDS = 30.0  # that systems with weights take; for the plan of the memory where nothing says less

RECORDS, MANIFEST = "edit_records", "manifest.jsonl"

OLD_RECORDS = "edits.jsonl"
"""Where older versions wrote the records."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Settings(RunSettings):
    """What is edited, by which system, and how; the options of the verb ``edit`` by their keywords."""

    sources: Sequence[str] = option(
        (),
        "recordings, scores, folders, or manifests: CSV or JSONL with the column source and, where wanted, id, group, "
        "instruction, source_prompt, target_prompt, before, after, bars, confidence, intended, description",
        flag="sources",
        group="data",
        metavar="SOURCE",
        nargs="*",
    )
    column: str = option("audio", "column with the recordings (default: %(default)s)", group="data")
    system: str = option(MISSING, "the editing system; one of another package is MODULE:CLASS", metavar="NAME")
    parameters: Mapping[str, Any] = dataclasses.field(default_factory=dict)  # of the system
    # For a system with weights: ``source`` (folder or Hub id), ``revision``, ``device``, ``dtype``.
    weights: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    # For all sources; the columns of a manifest or dataset have precedence, each for itself.
    instruction: EditInstruction | None = None
    generate: Sequence[str] = ()  # tasks for which instructions are written from the description of each source
    # A language model that writes them, or the options of `inputs.load_lyric_writer`; None is by templates.
    writer: LyricWriter | Mapping[str, Any] | None = None
    # With `seconds` or `mono` the manifest names what was edited in place of the source.
    seconds: float | None = option(None, "the first S seconds of each recording only", group="data", metavar="S")
    mono: bool = option(False, "mix recordings down to one channel first", group="data")
    render: str | None = option(
        None,
        f"render scores and their edits ({' or '.join(RENDERERS)}), so that recordings are compared",
        metavar="NAME",
    )

    GROUPS: ClassVar = {
        "data": "what is edited (files, or --dataset)", "asked": "what is asked", "how": "how", "run": "how",
        "output": "where it goes",
    }  # fmt: skip
    TEXTS: ClassVar = {
        "dataset": "a name (see list), a folder or a Hub id with a column of recordings",
        "limit": "the first N sources only",
        "seed": "(default: %(default)s)",
        "out": "folder for edits and records",
        "confidence": None,
        "n_resamples": None,
        "report": None,
    }

    ONE_OF = ("sources", "dataset")

    def __post_init__(self) -> None:
        if self.writer is not None and not self.generate:
            raise InvalidInputError("a language model writes instructions for the tasks of `generate`; name some")
        if self.seconds is not None and not 1 <= self.seconds < math.inf:
            raise InvalidInputError(f"`seconds` must be at least 1 and finite, got {self.seconds}")
        if self.render not in {None, *RENDERERS}:
            noun = "renderer"
            raise UnknownNameError(noun, str(self.render), RENDERERS)
        super().__post_init__()


@dataclasses.dataclass(frozen=True)
class Edits:
    """What a run of edits made."""

    rows: list[dict[str, Any]]  # one record an edit, in the order of the sources
    failures: list[tuple[str, str]]  # item and error of those that failed
    files: dict[str, Path]  # ``records`` and ``manifest``


class Editing(Task):
    """Edits that a system makes of sources; the task `preservation` scores them."""

    name = "edits"
    settings = Settings
    packages = ("music_evals", "numpy", "scipy", "librosa", "soxr", "torch", "diffusers", "transformers")
    work = EditWork  # what loads a system, and edits in other processes
    check_editor = staticmethod(check_editor)

    def run(
        self,
        settings: Settings,
        *,
        work: EditWork | None = None,
        progress: Progress | None = None,
        tell: Callable[[str], None] | None = None,
    ) -> Edits:
        """Let a system edit all sources, and write the edits, their records and the manifest.

        `work` is the system, where it is loaded already; `settings` then only say what records call it. `tell` is
        called before the first edit with what it will need of the device, where the system has weights; where the
        device has less, `NotEnoughMemoryError` is raised and nothing is edited.
        """
        out = Path(settings.out)
        work = work or EditWork(settings.system, dict(settings.parameters), dict(settings.weights))
        editor = work.editor
        info = editor.info
        sources, about = _sources(settings, out)
        write: Generate = by_templates
        writer = settings.writer
        if writer is not None:
            writer = load_lyric_writer(writer) if isinstance(writer, Mapping) else writer
            write = by_model(writer, out, afresh=settings.overwrite)
        default = f"What the parameters of {info.name} say."
        instruction, seed = settings.instruction, settings.seed
        ready = expand(sources, instruction, generate=settings.generate, default=default, seed=seed, write=write)
        _plan(editor, settings, tell)
        header = {
            "task": self.name,
            "dataset": about,
            "system": {**dataclasses.asdict(info), "parameters": dict(info.parameters)},
            "seed": settings.seed,
            "seconds": settings.seconds,
            "mono": settings.mono,
            "render": sounds_of(settings.render),
            "versions": package_versions(self.packages),
        }
        job = EditJob(header, ready, settings, work)
        if (out / OLD_RECORDS).is_file():
            (out / OLD_RECORDS).rename(out / f"{RECORDS}.jsonl")
        records = record(job, out / RECORDS, settings, progress=progress)
        rows = job.latest(records)
        failures = [(row["item"], row["error"]) for row in rows if "error" in row]
        good = []  # rows of a manifest that preservation reads, with what people want to read in it
        for row in rows:
            if "error" not in row:
                made = {name: row["files"][name] for name in ("reference", "estimate")}
                about_edit = {"id": row["item"], **made, "system": row["system"], "group": row["group"]}
                about_edit["instruction"] = row["instruction"]["text"]
                about_edit["intended"] = ",".join(row["instruction"]["intended_facets"] or info.changes)
                if targets := row["instruction"].get("targets"):
                    about_edit["targets"] = targets
                role = "control" if info.control else "system"
                good.append({**about_edit, "key": row["key"], "sha256": row["files"]["sha256"], "role": role})
        manifest = write_atomically(out / MANIFEST, "".join(f"{dump_json(row)}\n" for row in good).encode())
        return Edits(rows, failures, {"records": out / RECORDS, "manifest": manifest})


EDITS: Final = Editing()
"""The task."""


def _plan(editor: Any, settings: Settings, tell: Callable[[str], None] | None) -> None:
    """Say what the edits need of the device, and stop where it has less; a system of others may not know."""
    if not hasattr(editor, "plan"):
        return
    longest = min(settings.seconds or math.inf, editor.info.max_seconds or math.inf, MOST_SECONDS)
    plan = editor.plan(longest, device=settings.weights.get("device", "cpu"), processes=settings.workers or 1)
    if plan is None:
        return
    if tell is not None:
        tell(plan.text)
    plan.check()


def _sources(settings: Settings, out: Path) -> tuple[list[Source], dict[str, Any]]:
    if settings.dataset is None:
        sources = sources_in_files(list(map(os.fspath, settings.sources)))[: settings.limit]
        about: dict[str, Any] = {"id": "files", "config": None, "split": None, "revision": None}
    else:
        sources, about = sources_of_dataset(
            settings.dataset,
            settings.config,
            settings.split,
            column=settings.column,
            revision=settings.revision,
            limit=settings.limit,
            folder=out / "dataset",
        )
    if not sources:
        raise NoDataError("no sources; nothing can be edited")
    return sources, about


@dataclasses.dataclass
class EditJob(Job):
    """Edits into one store of records, each with its file beside it."""

    header: Mapping[str, Any]
    sources: Sequence[Source]
    settings: Settings
    work: EditWork

    def __post_init__(self) -> None:
        self.size = len(self.sources)
        self._out = Path(self.settings.out)
        self._hashes: dict[str, str] = {}

    def left(self, rows: Records) -> list[Unit]:
        """Leave out what is done by the same request and whose file is as it was written."""
        done: dict[str, Row] = {}
        for row in (row for row in self.latest(rows) if "error" not in row):
            files = row["files"]
            with contextlib.suppress(OSError):
                edit = (self._out / files["estimate"]).read_bytes()
                is_whole = hashlib.sha256(edit).hexdigest() == files["sha256"]
                if is_whole and (self._out / files["reference"]).is_file():
                    done[row["item"]] = row
        chosen, units = self.settings, []
        for source in self.sources:
            if source.item in done and done[source.item]["asked"] == self._identity(source):
                continue
            assert source.instruction is not None
            render = chosen.render if is_score(source.path) else None
            how = (chosen.seed, chosen.seconds, chosen.mono, render, source.problem)
            unit = EditUnit(source.item, source.path, source.instruction, *how)
            units.append(Unit(unit, source.item, source.path))
        return units

    def latest(self, rows: Records) -> list[Row]:
        """Return the last record of each source, in the order of the sources."""
        last = {row["item"]: row for row in rows.of("edit")}
        return [last[source.item] for source in self.sources if source.item in last]

    def rows(self, unit: Unit, answer: Any) -> list[Row]:
        """Write the files of an edit, and return its record."""
        source = next(source for source in self.sources if source.item == unit.label)
        assert source.instruction is not None
        about: Row = {
            "kind": "edit",
            "item": source.item,
            "system": self.settings.system,
            "group": source.group,
            "instruction": source.instruction.to_dict(),
            "asked": self._identity(source),
        }
        if isinstance(answer, Failed):
            return [about | {"error": answer.reason}]
        task: EditUnit = unit.payload
        estimate = write_atomically(
            self._out / "edits" / f"{source.item}{answer['suffix']}", answer["edit"], parents=True
        )
        reference = Path(source.path).resolve()
        if task.copied:
            reference = write_atomically(self._out / "sources" / f"{source.item}.flac", answer["source"], parents=True)
        files = {
            "reference": os.path.relpath(reference, self._out.resolve()),
            "estimate": os.path.relpath(estimate.resolve(), self._out.resolve()),
            "sha256": hashlib.sha256(answer["edit"]).hexdigest(),
        }
        fields = ("key", "content", "seconds", "log", "warnings", "provenance")
        return [about | {"files": files} | {name: answer[name] for name in fields}]

    def _identity(self, source: Source) -> list[Any]:
        """Return what decides an edit besides the header: the bytes of the source and the instruction."""
        assert source.instruction is not None
        if source.path not in self._hashes:
            try:
                self._hashes[source.path] = hash_file(Path(source.path))
            except MusicEvalsError as error:  # which is that of its row
                self._hashes[source.path] = str(error)
        return [self._hashes[source.path], source.instruction.to_dict()]
