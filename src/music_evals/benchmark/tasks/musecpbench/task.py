"""The study from end to end: sources in; edits of every system, one run of preservation over them, and tables out.

A study that was stopped goes on when it is started again: edits and scores are resumed, each by its own records.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Final, NamedTuple

from music_evals.annotations import EditorInfo
from music_evals.benchmark.columns import dump_json
from music_evals.benchmark.formats import plain
from music_evals.benchmark.inputs import manifest_rows
from music_evals.benchmark.run import Progress, load_task, run
from music_evals.benchmark.tables import markdown_block, plane_block
from music_evals.benchmark.task import Task
from music_evals.benchmark.tasks.musecpbench import PRESERVED, RESULTS, TABLE
from music_evals.benchmark.tasks.musecpbench.tables import markdown, study
from music_evals.errors import (
    InvalidInputError,
    MissingBackendError,
    ModelUnavailableError,
    MusicEvalsError,
    NoDataError,
    OutputError,
    UnknownNameError,
)
from music_evals.files import write_atomically
from music_evals.options import MISSING, option
from music_evals.protocols import EDIT_STUDIES, editor_names, load_plugin
from music_evals.symbolic.files import READERS

__all__ = ["CONTROLS", "MUSECPBENCH", "PAPER_DATA", "PROTOCOLS", "MuseCPBench", "Settings", "Study"]

PROTOCOLS = ("ours", "paper")
"""``"ours"``: all systems edit the same sources. ``"paper"``: each those that the paper gave it."""

CONTROLS = ("identity", "unrelated", "simple_edit", "resynth")
"""Run in every study: ceiling and floor of what is preserved; where targets are named, the success that needs no model;
and where its weights are named, the ceiling of a codec."""

FINISHED = "music_evals.editing.finished:FinishedFiles"

PAPER_DATA: Mapping[str, str] = {
    "musicgen": "20 captions of MedleyDB excerpts (medleydb_editing, config vanilla); which is not printed",
    "musicgen_melody": "100 clips of MusicCaps with 100 instructions; neither is printed",
    "musicongen": "100 clips of MusicCaps with 100 instructions; neither is printed",
    "musicmagus": "60 samples of AudioLDM 2 with 60 word pairs; neither is printed",
    "zeta": "26 excerpts of MedleyDB with 697 prompts (medleydb_editing, config zeta, holds 35 with 696)",
    "refinpaint": "6 scores of Lakh with 50 configurations each; neither is printed",
}
"""System -> what the paper let it edit."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Settings:
    """What is studied, and how; the options of the verb ``benchmark`` by their keywords.

    Parameters
    ----------
    sources, scores
        Under ``"ours"``: the table of recordings that ``music-evals edit`` reads, and the same pieces as scores, for
        systems that edit nothing else. None takes our own pieces (`datasets.edit_study`), rendered into the folder.
    paper_sources
        Under ``"paper"``: system -> table of the sources that the paper gave it, as far as they are at hand.
    systems
        Names that `protocols.load_editor` knows; empty for all of `protocols.editor_names`. `CONTROLS` are added.
    protocol
        One of `PROTOCOLS`.
    weights
        System -> ``source``, ``revision``, ``device``, for those that need weights.
    parameters
        System -> its parameters, and what its weights are loaded with, by name.
    outputs
        System -> folder of edits that it made elsewhere, with a manifest (`editing.finished`); it is not run here.
    report
        Write the page of preservation too; it needs matplotlib.

    Raises
    ------
    InvalidInputError
        Scores without their recordings, weights or parameters of a system that is not chosen, or bad parameters.
    UnknownNameError
        A protocol, system or parameter that does not exist; the message lists those that do.
    """

    out: str | os.PathLike[str] = option(MISSING, "folder of the study", group="output", metavar="DIR")
    sources: str | os.PathLike[str] | None = option(
        None,
        "recordings and instructions, as the verb edit reads them (default: our own pieces, rendered)",
        group="data",
        metavar="TABLE",
    )
    scores: str | os.PathLike[str] | None = option(
        None, "the same pieces as scores; they are rendered", group="data", metavar="TABLE"
    )
    n_pieces: int = option(12, "of our own (default: %(default)s)", flag="--pieces", group="data")
    paper_sources: Mapping[str, str | os.PathLike[str]] = option(
        {},
        "what the paper gave to a system, see the data sets medleydb_editing, musiccaps_edits, audioldm2_samples and "
        "lakh_refinpaint; may be given again",
        group="data",
        metavar="SYSTEM=TABLE",
    )
    systems: Sequence[str] = ()
    protocol: str = option("ours", "ours (default) or paper", group="data")
    weights: Mapping[str, Mapping[str, Any]] = dataclasses.field(default_factory=dict)
    parameters: Mapping[str, Mapping[str, Any]] = dataclasses.field(default_factory=dict)
    outputs: Mapping[str, str | os.PathLike[str]] = option(
        {},
        "edits made elsewhere: a folder with manifest.jsonl or .csv (id, estimate, sha256); may be given again",
        group="who",
        metavar="NAME=FOLDER",
    )
    limit: int | None = option(None, "the first N rows of each table only", group="data")
    seconds: float | None = option(None, "the first S seconds of each recording only", group="data", metavar="S")
    seed: int = option(0, "(default: %(default)s)", group="who", metavar="SEED")
    workers: int | None = option(None, "processes (default: as edit and preserve choose)", group="who")
    overwrite: bool = option(False, "start afresh, whatever the folder holds", group="output")
    report: bool = option(True, "no page of preserve in preserved/", group="output")

    GROUPS: ClassVar = {"data": "what is edited", "who": "who edits", "output": "where it goes"}

    def __post_init__(self) -> None:
        if self.protocol not in PROTOCOLS:
            raise UnknownNameError("protocol", self.protocol, PROTOCOLS)
        if self.scores is not None and self.sources is None:
            raise InvalidInputError("`scores` are the pieces of `sources`; give that table of recordings too")
        if self.paper_sources and self.protocol != "paper":
            raise InvalidInputError("`paper_sources` belong to the protocol paper; ask for it")
        known = [*editor_names(), *self.outputs]
        given = self.weights.keys() | self.parameters.keys()
        for name in (*self.systems, *self.paper_sources, *given):
            if name not in known and ":" not in name:  # one of another package is imported when it is its turn
                raise UnknownNameError("editing system", name, known)
        if left := sorted(given - {*self.chosen}):
            message = f"weights or parameters of {', '.join(left)}, which is not among the systems; name it there too"
            raise InvalidInputError(message)
        for name in self.outputs:
            if not re.fullmatch(r"\w[\w.+-]*", name) or name in {*CONTROLS, *self.weights}:
                others = f"none of {', '.join(CONTROLS)}, none with weights"
                raise InvalidInputError(f"`outputs` are of systems with simple names, {others}; got {name!r}")
        edits: Any = load_task("edits")
        for name in given:
            with contextlib.suppress(MissingBackendError, ModelUnavailableError):  # which cost it its row, and no more
                edits.check_editor(*self.maker(name))

    @property
    def named(self) -> list[str]:
        """The systems that are asked for by name: one of them that cannot run is a failure."""
        resynth = [name for name in CONTROLS if name in self.weights]
        return list(dict.fromkeys([*self.systems, *self.outputs, *resynth]))

    @property
    def chosen(self) -> list[str]:
        """All systems, each once; controls are the last, since they edit what the others did."""
        chosen = dict.fromkeys([*(self.systems or editor_names()), *self.named, *CONTROLS[:3]])
        return sorted(chosen, key=lambda name: name in CONTROLS)

    def maker(self, system: str) -> tuple[str, dict[str, Any], dict[str, Any]]:
        """Return what a system is loaded with: name, parameters and weights."""
        parameters = dict(self.parameters.get(system, {}))
        if system in self.outputs:
            return FINISHED, {"folder": os.fspath(self.outputs[system]), "name": system, **parameters}, {}
        return system, parameters, dict(self.weights.get(system, {}))


class Study(NamedTuple):
    """What a study found."""

    results: dict[str, Any]  # what musecpbench.json holds
    failures: list[tuple[str, str]]  # systems that were asked for and did not run; ``item (system)``; and the errors
    files: dict[str, Path]  # ``study``, ``table`` and the ``results`` of preservation


class MuseCPBench(Task):
    """Editing systems on the same sources, and what each preserves."""

    name = "musecpbench"
    settings = Settings

    def run(self, settings: Settings, *, progress: Progress | None = None) -> Study:
        """Let all systems edit, score what they preserved, and write musecpbench.json and musecpbench.md.

        Raises
        ------
        NoDataError
            No system edited anything; the message has the reasons.
        MusicEvalsError
            What edits and preservation raise for their input.
        """
        out = Path(settings.out)
        held = settings
        if settings.protocol == "ours" and settings.sources is None:  # our own pieces
            write = load_plugin(EDIT_STUDIES, "stand_in", "study of edits")
            pieces = write(out / "sources", n_pieces=settings.n_pieces)
            held = dataclasses.replace(settings, sources=pieces.recordings, scores=pieces.scores)
        infos: dict[str, EditorInfo] = {}
        left_out: dict[str, str] = {}
        edits: list[dict[str, Any]] = []
        manifest: list[dict[str, Any]] = []
        for system in settings.chosen:
            beside = [row for row in manifest if system != "simple_edit" or row.get("targets")]
            if system in CONTROLS and system not in settings.systems and not beside:
                continue  # nobody is there whom they would be beside, or nothing was asked that could be followed
            try:
                info, made = _edited(system, held, list(infos), progress)
            except OutputError:
                raise
            except Exception as error:  # noqa: BLE001 (whatever it raises, it costs this system its row and no other)
                kind = "" if isinstance(error, MusicEvalsError) else f"{type(error).__name__}: "
                left_out[system] = f"{kind}{error}"
                continue
            infos[system] = info
            edits += made.rows
            table = made.files["manifest"]
            try:
                rows = manifest_rows(table) if table.stat().st_size else []
            except OSError as error:
                raise OutputError(f"{table} cannot be read again: {error}") from error
            place = _folder(held, system).relative_to(out).as_posix()  # paths are from the folder of the study
            sides = ("reference", "estimate")
            manifest += [{**row, **{side: f"{place}/{row[side]}" for side in sides}} for row in rows]
            if len(made.failures) == len(made.rows):
                left_out[system] = made.failures[0][1]
        if not manifest:
            raise NoDataError(
                f"no system edited anything: {'; '.join(f'{name}: {why}' for name, why in left_out.items())}"
            )
        infos = {name: infos[name] for name in sorted(infos, key=lambda name: name not in CONTROLS)}
        written = "".join(f"{dump_json(row)}\n" for row in manifest).encode()
        merged = write_atomically(out / "manifest.jsonl", written, parents=True)
        passed_on = {name: getattr(settings, name) for name in ("seed", "workers", "overwrite", "report")}
        outcome = run("preservation", out / PRESERVED, progress=progress, manifest=str(merged), **passed_on)
        about = {
            "protocol": settings.protocol,
            "variant": outcome.results["variant"],
            "left_out": left_out,
            "refused": [name for name in left_out if name in settings.named],
            "paper_data": dict(PAPER_DATA),
        }
        results = plain(study(outcome.results, outcome.scores, infos, edits, about))
        files = {
            "study": write_atomically(out / RESULTS, f"{dump_json(results)}\n".encode()),
            "table": write_atomically(out / TABLE, (markdown(results) + _plane(outcome.results)).encode()),
            "results": outcome.files["results"],
        }
        failures = [(name, left_out[name]) for name in about["refused"] if name not in infos]
        failures += [(f"{row['item']} ({row['system']})", row["error"]) for row in edits if "error" in row]
        return Study(results, failures, files)


MUSECPBENCH: Final = MuseCPBench()
"""The task."""


def _plane(results: Mapping[str, Any]) -> str:
    """Return the plane of the run of preservation as Markdown; nothing where no targets were named."""
    if "plane" not in results:
        return ""
    block = plane_block(results)
    return f"\n## {block.title}\n\n{block.caption}\n\n{markdown_block(block)}\n"


def _edited(
    system: str, settings: Settings, before: Collection[str], progress: Progress | None
) -> tuple[EditorInfo, Any]:
    """Load a system, once, and let it edit; return what it is and its edits. `before` are the systems that did."""
    paper, control = settings.protocol == "paper", system in CONTROLS
    if paper and not control and system not in settings.paper_sources:
        took = f"; the paper took {PAPER_DATA[system]}" if system in PAPER_DATA else ""
        known = took or system in settings.outputs
        raise NoDataError(f"no sources attached{took}" if known else "not a system of the paper")
    edits: Any = load_task("edits")
    work = edits.work(*settings.maker(system))
    info = work.editor.info
    is_audio = "audio" in info.entrances
    if paper:  # a control edits what the systems edited
        own = before if control else {system}
        tables = [table for name, table in settings.paper_sources.items() if name in own]
    else:
        tables = [table for table in (settings.sources if is_audio else settings.scores,) if table is not None]
    if not tables:
        raise NoDataError("there is nothing for it to edit" if is_audio else "it edits scores, and `scores` names none")
    table, limit = tables[0], settings.limit
    if not info.needs and system not in settings.outputs:
        of_each = limit if control and paper else None  # else of the sources, each once
        skipped = READERS if control and paper and "score" not in info.entrances else ()
        path = _folder(settings, system)
        table = _each_once(tables, path.with_name(f"{path.name}.jsonl"), of_each, skipped)
        limit = None if of_each else limit
    edit_settings = edits.settings(
        out=_folder(settings, system),
        sources=[os.fspath(table)],
        system=system,
        weights=dict(settings.weights.get(system, {})),
        seconds=settings.seconds if is_audio else None,
        mono=is_audio,  # one form for all, so that all are compared with the same file
        render="additive" if not is_audio or (control and paper) else None,
        limit=limit,
        seed=settings.seed,
        workers=settings.workers,
        overwrite=settings.overwrite or system in settings.outputs,  # what lies there is taken as it is now
    )
    return info, edits.run(edit_settings, work=work, progress=progress)


def _each_once(
    tables: Sequence[str | os.PathLike[str]], path: Path, limit: int | None, skipped: Collection[str]
) -> Path:
    """Write the sources of tables, each once, for a system that does the same whatever it is told.

    Of what is asked only the targets stay, the first that are named of a source.
    """
    rows: dict[str, dict[str, Any]] = {}
    for table in tables:
        folder = Path(table).resolve().parent
        for row in manifest_rows(Path(table))[:limit]:
            source = str(folder / str(row["source"]))
            name = Path(source).name  # with its ending: a score is no recording of the same name
            if source not in rows and Path(source).suffix.lower() not in skipped:
                n_alike = sum(Path(other).name == name for other in rows)
                item = f"{name}_{n_alike + 1}" if n_alike else name
                rows[source] = {"id": item, "source": source, "group": str(row.get("group") or item)}
            if source in rows and row.get("targets"):  # what its edit is measured by, whoever made it
                rows[source].setdefault("targets", row["targets"])
    return write_atomically(path, "".join(f"{dump_json(row)}\n" for row in rows.values()).encode(), parents=True)


def _folder(settings: Settings, system: str) -> Path:
    return Path(settings.out, "edits", system.replace(":", "."))
