"""The study from end to end: sources in; edits of every system, one run of preservation over them, and tables out.

A study that was stopped goes on when it is started again: edits and scores are resumed, each by its own records.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from music_evals.annotations import EditorInfo
from music_evals.benchmark.cells import plain
from music_evals.benchmark.manifests import manifest_rows
from music_evals.benchmark.musecpbench.folders import JUDGED, RESULTS, TABLE
from music_evals.benchmark.musecpbench.tables import markdown, study
from music_evals.benchmark.records import dump_json
from music_evals.benchmark.run import Progress, find, run
from music_evals.errors import (
    InvalidInputError,
    MissingBackendError,
    ModelUnavailableError,
    NoDataError,
    OutputError,
    UnknownNameError,
)
from music_evals.files import write_atomically
from music_evals.protocols import EDIT_STUDIES, EDITORS, load_plugin

__all__ = ["PAPER_DATA", "PROTOCOLS", "Settings", "Study", "run_musecpbench"]

PROTOCOLS = ("ours", "paper")
"""``"ours"``: all systems edit the same sources. ``"paper"``: each those that the paper gave it."""

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
    """What is studied, and how.

    Parameters
    ----------
    out
        Folder of the study.
    sources
        Under ``"ours"``: the table of recordings that ``music-evals edit`` reads. None takes our own pieces
        (`datasets.edit_study`), which are rendered into the folder of the study.
    scores
        Under ``"ours"``: the same pieces as scores, for systems that edit nothing else; they are rendered.
    n_pieces
        How many of our own pieces.
    paper_sources
        Under ``"paper"``: system -> table of the sources that the paper gave it, as far as they are at hand.
    systems
        Names in `protocols.EDITORS`; empty for all.
    protocol
        One of `PROTOCOLS`.
    weights
        System -> ``source``, ``revision``, ``device``, for those that need weights.
    limit
        Take the first sources of each table.
    seconds
        Cut each recording to its beginning.
    seed
        Of edits, controls and tests.
    workers
        Processes; None for the number that edits and scores choose.
    overwrite
        Start afresh.
    report
        Write the page of preservation too; it needs matplotlib.

    Raises
    ------
    InvalidInputError
        Scores without their recordings, or weights of a system that is not chosen.
    UnknownNameError
        A protocol or system that does not exist.

    """

    out: str | os.PathLike[str]
    sources: str | os.PathLike[str] | None = None
    scores: str | os.PathLike[str] | None = None
    n_pieces: int = 12
    paper_sources: Mapping[str, str | os.PathLike[str]] = dataclasses.field(default_factory=dict)
    systems: Sequence[str] = ()
    protocol: str = "ours"
    weights: Mapping[str, Mapping[str, Any]] = dataclasses.field(default_factory=dict)
    limit: int | None = None
    seconds: float | None = None
    seed: int = 0
    workers: int | None = None
    overwrite: bool = False
    report: bool = True

    def __post_init__(self) -> None:
        for what, names, known in (
            ("protocol", (self.protocol,), PROTOCOLS),
            ("editing system", (*self.systems, *self.weights, *self.paper_sources), EDITORS),
        ):
            for name in names:
                if name not in known:
                    raise UnknownNameError(what, name, known)
        if left := [name for name in self.weights if name not in self.chosen]:
            raise InvalidInputError(f"weights of {', '.join(left)}, which is not among the systems; name it there too")
        if self.scores is not None and self.sources is None:
            raise InvalidInputError("`scores` are the pieces of `sources`; give that table of recordings too")
        if self.paper_sources and self.protocol != "paper":
            raise InvalidInputError("`paper_sources` belong to the protocol paper; ask for it")

    @property
    def chosen(self) -> list[str]:
        """The systems that are asked for, each once."""
        return list(dict.fromkeys(self.systems or EDITORS))


class Study(NamedTuple):
    """What a study found."""

    results: dict[str, Any]  # what musecpbench.json holds
    failures: list[tuple[str, str]]  # ``item (system)`` and error of the edits that failed
    files: dict[str, Path]  # ``study``, ``table`` and the ``results`` of preservation


def run_musecpbench(settings: Settings, *, progress: Progress | None = None) -> Study:
    """Let all systems edit, judge what they preserved, and write musecpbench.json and musecpbench.md.

    Raises
    ------
    NoDataError
        No system edited anything; the message has the reasons.
    MusicEvalsError
        What edits and preservation raise for their input.

    """
    out = Path(settings.out)
    held = _own_pieces(settings, out)
    infos: dict[str, EditorInfo] = {}
    left_out: dict[str, str] = {}
    edits: list[dict[str, Any]] = []
    manifest: list[dict[str, Any]] = []
    for system in settings.chosen:
        table = _table(system, held, out, infos, left_out)
        if table is None:
            continue
        made = _edit(system, infos[system], table, held, progress)
        edits += made.rows
        manifest += _from(out, _folder(held, system), made.files["manifest"])
        if len(made.failures) == len(made.rows):
            left_out[system] = made.failures[0][1]
    if not manifest:
        raise NoDataError(f"no system edited anything: {'; '.join(f'{name}: {why}' for name, why in left_out.items())}")
    written = "".join(f"{dump_json(row)}\n" for row in manifest).encode()
    merged = write_atomically(out / "manifest.jsonl", written, parents=True)
    outcome = run(
        "preservation",
        out / JUDGED,
        progress=progress,
        manifest=str(merged),
        seed=settings.seed,
        workers=settings.workers,
        overwrite=settings.overwrite,
        report=settings.report,
    )
    about = {
        "protocol": settings.protocol,
        "variant": outcome.results["variant"],
        "left_out": left_out,
        "paper_data": dict(PAPER_DATA),
    }
    results = plain(study(outcome.results, outcome.found, infos, edits, about))
    files = {
        "study": write_atomically(out / RESULTS, f"{dump_json(results)}\n".encode()),
        "table": write_atomically(out / TABLE, markdown(results).encode()),
        "results": outcome.files["results"],
    }
    failures = [(f"{row['item']} ({row['system']})", row["error"]) for row in edits if "error" in row]
    return Study(results, failures, files)


def _own_pieces(settings: Settings, out: Path) -> Settings:
    """Return the settings with the tables of our own pieces, where none are given."""
    if settings.protocol == "paper" or settings.sources is not None:
        return settings
    write = load_plugin(EDIT_STUDIES, "stand_in", "study of edits")
    made = write(out / "sources", n_pieces=settings.n_pieces)
    return dataclasses.replace(settings, sources=made.recordings, scores=made.scores)


def _table(
    system: str, settings: Settings, out: Path, infos: dict[str, EditorInfo], left_out: dict[str, str]
) -> str | os.PathLike[str] | None:
    """Return what a system edits, and note what it is; nothing where it cannot run, whose reason is noted."""
    if settings.protocol == "paper":
        if system not in PAPER_DATA:
            left_out[system] = "not a system of the paper"
            return None
        if system not in settings.paper_sources:
            left_out[system] = f"no sources attached; the paper took {PAPER_DATA[system]}"
            return None
    try:
        info = find("MAKERS", "editor", "maker")(system, {}, dict(settings.weights.get(system, {}))).info
    except (ModelUnavailableError, MissingBackendError) as error:
        left_out[system] = str(error)
        return None
    if settings.protocol == "paper":
        table: str | os.PathLike[str] | None = settings.paper_sources[system]
    else:
        table = settings.sources if "audio" in info.entrances else settings.scores
    if table is None:
        left_out[system] = "it edits scores, and `scores` names none"
        return None
    infos[system] = info
    return table if info.needs else _each_once(table, out / "edits" / f"{system}.jsonl")


def _each_once(table: str | os.PathLike[str], path: Path) -> Path:
    """Write the sources of a table, each once and without what is asked: for a system that does the same anyway."""
    folder = Path(table).resolve().parent
    rows: dict[str, dict[str, Any]] = {}
    for row in manifest_rows(Path(table)):
        source = str(folder / str(row["source"]))
        name = Path(source).name  # with its ending: a score is no recording of the same name
        if source not in rows:
            n_alike = sum(Path(other).name == name for other in rows)
            item = f"{name}_{n_alike + 1}" if n_alike else name
            rows[source] = {"id": item, "source": source, "group": str(row.get("group") or item)}
    return write_atomically(path, "".join(f"{dump_json(row)}\n" for row in rows.values()).encode(), parents=True)


def _edit(
    system: str, info: EditorInfo, table: str | os.PathLike[str], settings: Settings, progress: Progress | None
) -> Any:
    heard = "audio" in info.entrances
    asked = find("MAKERS", "edit_settings", "maker")(
        out=_folder(settings, system),
        sources=[os.fspath(table)],
        system=system,
        weights=dict(settings.weights.get(system, {})),
        seconds=settings.seconds if heard else None,
        mono=heard,  # one form for all, so that all are compared with the same file
        render=None if heard else "additive",
        limit=settings.limit,
        seed=settings.seed,
        workers=settings.workers,
        overwrite=settings.overwrite,
    )
    return find("MAKERS", "edits", "maker")(asked, progress=progress)


def _folder(settings: Settings, system: str) -> Path:
    return Path(settings.out, "edits", system)


def _from(out: Path, folder: Path, manifest: Path) -> list[dict[str, Any]]:
    """Return the rows of a system's manifest, with paths from the folder of the study."""
    if not manifest.stat().st_size:
        return []
    place = folder.relative_to(out).as_posix()
    try:
        rows = [dict(row) for row in manifest_rows(manifest)]
    except OSError as error:
        raise OutputError(f"{manifest} cannot be read again: {error}") from error
    return [row | {side: f"{place}/{row[side]}" for side in ("reference", "estimate")} for row in rows]
