"""One run of a benchmark: what all settings have in common, and the way from units to records.

A task says what is to be done as a `Job`: a header, units of work that are left, what works on them, and the rows that
an answer becomes. `record` does the rest for every task: it opens or resumes the records, lets an engine work, and
writes the rows down as they come. `write_outcome` writes what is made of the records.
"""

from __future__ import annotations

import abc
import contextlib
import dataclasses
import importlib
import itertools
import os
import pkgutil
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence, Sized
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple

from music_evals.benchmark import tasks
from music_evals.benchmark.columns import dump_json
from music_evals.benchmark.engines import ENGINES, Unit, Work, check_address, on_ray
from music_evals.benchmark.records import Records, RecordStore, reading_rows, records_at, remove_file
from music_evals.deprecation import warn_renamed
from music_evals.errors import InvalidInputError, UnknownNameError, check_extras
from music_evals.files import check_folder, write_atomically
from music_evals.locations import Remote, location
from music_evals.metrics.catalogue import CATALOGUE
from music_evals.numerics import kernels
from music_evals.options import MISSING, option
from music_evals.protocols import load_plugin

if TYPE_CHECKING:
    from music_evals.benchmark.task import Task
__all__ = [
    "Job", "Outcome", "Progress", "Row", "Settings", "load_task", "record", "run", "settings_of", "task_places"
]  # fmt: skip

RAY = "ray"

RECORDS, RESULTS, TABLE, REPORT = "records", "results.json", "table.md", "report.html"
VALIDATION = "validation_records"
"""Records of the baselines on what the best of them are chosen on."""

Row = dict[str, Any]
"""One row of the records."""

Progress = Callable[[int, int, str], None]
"""Called with what is done, what there is in all, and what is worked on."""


def task_places() -> dict[str, str]:
    """Return task -> ``module:object``, as the folders under `benchmark.tasks` name theirs in ``TASKS``."""
    places: dict[str, str] = {}
    for folder in pkgutil.iter_modules(tasks.__path__):
        if folder.ispkg:
            package = f"{tasks.__name__}.{folder.name}"
            held: Mapping[str, str] = getattr(importlib.import_module(package), "TASKS", {})
            places |= {task: f"{package}.{place}" for task, place in held.items()}
    return places


def load_task(name: str, kind: str = "task") -> Task:
    """Return a task by its name; `kind` is what an error calls it."""
    task: Task = load_plugin(task_places(), name, kind)
    return task


def settings_of(task: str) -> type[Settings]:
    """Return the settings of a task."""
    return load_task(task).settings


def run(
    task: str | Task, /, out: str | os.PathLike[str], *, progress: Progress | None = None, **settings: Any
) -> Outcome:
    """Run a benchmark into a folder: records, results.json, table.md and report.html.

    A run that was killed is resumed where it stood when it is started again with the same settings.

    Parameters
    ----------
    task
        ``"preservation"``, ``"inpainting"``, ``"lyrics"``, ``"descriptions"``, ``"discrepancy"``,
        ``"lyric_writing"``, ``"style-transfer"``, ``"edits"``, ``"musecpbench"``; or a `Task` of your own.
    out
        Folder for records and results; made where it is missing.
    progress
        Called after each piece of work, with what is done, what there is in all, and a label.
    **settings
        Of the task's ``Settings``, such as those of `benchmark.tasks.preservation.task`: the options of its verb.
        Names that stand there with commas may be a list.

    Returns
    -------
    Outcome
        ``results``, what results.json holds, and ``files``, what was written. What failed is in
        ``results["failures"]``.

    Raises
    ------
    UnknownNameError
        There is no such task, or the task has no such setting.
    InvalidInputError
        A setting is missing.
    MusicEvalsError
        What the task raises for its input; see its function.
    """
    chosen = load_task(task) if isinstance(task, str) else task
    known = {field.name: field for field in dataclasses.fields(chosen.settings)}
    for name, value in settings.items():
        if name not in known:
            option = f"setting of {chosen.name}"
            raise UnknownNameError(option, name, known)
        if isinstance(value, list | tuple) and known[name].type in {"str", "str | None", str, str | None}:
            settings[name] = ",".join(map(str, value))
    required = [name for name, field in known.items() if field.default is field.default_factory is dataclasses.MISSING]
    if missing := [name for name in required if name not in {"out", *settings}]:
        raise InvalidInputError(f"{chosen.name} needs {', '.join(f'`{name}`' for name in missing)}")
    outcome: Outcome = chosen.run(chosen.settings(out=out, **settings), progress=progress)
    return outcome


WORKERS = "processes (default: {}; with ray one a processor); changes no number"
"""What the option `workers` says, with the number that suits the task."""


@dataclasses.dataclass(frozen=True)
class Settings:
    """What the settings of all tasks have in common.

    Parameters
    ----------
    out
        Folder for records and results; made where it is missing.
    dataset, config, split, revision
        What is evaluated: a name under ``./datasets_scripts``, a folder or a Hub id; its config, split and commit.
    limit
        Take the first items only.
    engine
        ``"serial"`` works in this process, ``"local"`` in processes of its own, ``"ray"`` on the machines of a Ray
        cluster; None is what suits the task. Changes no number.
    workers
        Processes; None is what suits the task, and on a cluster as many as it has processors. Changes no number.
    ray_address
        ``host:port`` of the head of a Ray cluster, or ``"auto"`` for the one that this machine belongs to; None is the
        one that the variable ``RAY_ADDRESS`` names, or else a new one on this machine, which ends with the run.
    confidence
        Nominal coverage of intervals.
    n_resamples, seed
        Of tests of differences, which take ten times as many resamples, and of the intervals of divergences; those of
        means draw nothing. The seed also draws what a task draws at random.
    overwrite
        Start afresh in `out`, whatever it holds.
    report
        Write report.html.

    Raises
    ------
    InvalidInputError
        Settings that contradict each other, or a number out of range.
    UnknownNameError
        An engine that does not exist.
    MissingBackendError
        Ray is not installed, and its engine was asked for.
    """

    out: str | os.PathLike[str] = option(MISSING, "folder for records and results", group="output", metavar="DIR")
    dataset: str | None = option(
        None, "a name (see list), a folder, a Hub id, or a file of JSON lines, each a row of CaiMD", group="data"
    )
    _: dataclasses.KW_ONLY
    config: str | None = option(None, "config of the dataset", group="data")
    split: str = option("test", "split of the dataset (default: %(default)s)", group="data")
    revision: str | None = option(None, "commit, tag or branch of a Hub dataset", group="data")
    limit: int | None = option(None, "the first N songs only", group="data")
    engine: str | None = option(
        None,
        "serial: in this process; local: in processes of this machine; ray: on the machines of a Ray cluster, or on "
        "this one (default: what suits the task); changes no number",
        group="run",
        metavar="NAME",
    )
    workers: int | None = option(None, WORKERS.format(1), group="run")
    ray_address: str | None = option(
        None,
        "host:port of the head of a Ray cluster, or auto for that of this machine (default: the variable RAY_ADDRESS, "
        "or else a new cluster on this machine, which ends with the run)",
        group="run",
        metavar="H:P",
    )
    confidence: float = option(0.95, "of the intervals (default: %(default)s)", group="run", metavar="P")
    n_resamples: int = option(
        1000,
        "of a divergence's interval; a test of a difference takes ten times as many, a mean none (default: "
        "%(default)s)",
        flag="--resamples",
        group="run",
    )
    seed: int = option(0, "of intervals and tests (default: %(default)s)", group="run", metavar="SEED")
    overwrite: bool = option(False, "start afresh, whatever the folder holds", group="output")
    report: bool = option(True, "write no report.html", group="output")

    GROUPS: ClassVar[Mapping[str, str]] = {
        "data": "what is scored", "how": "how", "run": "how", "output": "where it goes"
    }  # fmt: skip
    """Key of a group of options -> title in the help of the verb; an option of another group has no flag."""
    TEXTS: ClassVar[Mapping[str, str | None]] = {}
    """Option of a base class -> what it does here, or None where it is none."""

    BOUNDS: ClassVar[Mapping[str, tuple[int, int]]] = {
        "limit": (1, sys.maxsize),
        "workers": (1, 1000),
        "n_resamples": (1, 1_000_000),
        "seed": (0, sys.maxsize),
    }
    """Setting -> the least and the most that it may be: beyond lie typing errors that would fill the memory."""
    ONE_OF: ClassVar[tuple[str, ...]] = ()
    """Settings of which exactly one is given."""
    GO_WITH: ClassVar[Mapping[str, tuple[str, ...]]] = {"dataset": ("config", "revision")}
    """Setting -> those that would be ignored in silence without it, and are refused."""
    PATHS: ClassVar[tuple[str, ...]] = ("out",)
    """Settings that must be paths of this machine, and no URLs."""

    def __post_init__(self) -> None:
        if not os.fspath(self.out):
            raise InvalidInputError("`out` is empty; name a folder for records and results, . for the current one")
        self._check_given()
        check_folder(self.out, "out")
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if field.default == () and isinstance(value, str | os.PathLike | Mapping):
                raise InvalidInputError(f"`{field.name}` must be a list, of one also, got {value!r}")
        for name, (least, most) in self.BOUNDS.items():
            value = getattr(self, name)
            if value is not None and not least <= value <= most:
                bound = f"at least {least}" if value < least else f"at most {most}"
                raise InvalidInputError(f"`{name}` must be {bound}, got {value}")
        if not 0 < self.confidence < 1:
            raise InvalidInputError(f"`confidence` must lie above 0 and below 1, got {self.confidence}; 95 % is 0.95")
        if self.engine not in {None, *ENGINES}:
            option = "engine"
            raise UnknownNameError(option, str(self.engine), ENGINES)
        if self.ray_address is not None and self.engine != RAY:
            raise InvalidInputError("`ray_address` goes with `engine='ray'`; ask for that too, or leave it out")
        if self.engine == RAY:
            check_extras(["scale"], "the engine ray")
            check_address(self.ray_address or "local")

    def _check_given(self) -> None:
        """Raise where settings exclude each other, need another, or are URLs that must be paths."""
        given = {
            name: value
            for name, value in ((field.name, getattr(self, field.name)) for field in dataclasses.fields(self))
            if value is not None and value is not False and not (isinstance(value, Sized) and not value)
        }
        if self.ONE_OF and len(given.keys() & {*self.ONE_OF}) != 1:
            *others, last = (f"`{name}`" for name in self.ONE_OF)
            raise InvalidInputError(f"give one of {', '.join(others)} and {last}")
        for owner, names in self.GO_WITH.items():
            if owner not in given and (lone := [f"`{name}`" for name in names if name in given]):
                raise InvalidInputError(f"{' and '.join(lone)} goes with `{owner}`; give that too, or leave it out")
        for name in self.PATHS:
            if name in given and isinstance(place := location(given[name]), Remote):
                raise InvalidInputError(
                    f"`{name}` must be a path, on this machine or a shared file system; got {place}"
                )


class Job(abc.ABC):
    """What is to be done for one store of records."""

    # The ``run`` row: what the numbers depend on. A file with another one belongs to another run.
    header: Mapping[str, Any]
    items: Sequence[Row] = ()  # rows that are written together with it
    size: int  # all that there is to do, finished or not, for the progress
    engine: str = "serial"  # what suits it, unless the settings name others
    workers: int = 1
    before: Callable[[Sequence[Any], Progress | None], None] | None = None
    """Called with the parts of the payloads that are left, and how progress is reported, where there are any."""
    work: Work  # what works on the payload of a unit

    @abc.abstractmethod
    def left(self, rows: Records) -> list[Unit]:
        """Return what is left to do, beside the rows that are there."""

    @abc.abstractmethod
    def rows(self, unit: Unit, answer: Any) -> list[Row]:
        """Return the rows of a unit and its answer, or what `engines.Failed` says in place of one."""

    def selection(self, rows: Records) -> Iterable[Row]:  # noqa: ARG002
        """Return the rows that say what is scored from here on, unless `rows` say it already."""
        return []


def definitions_of(header: Mapping[str, Any]) -> dict[str, dict[str, int]]:
    """Return the ``definitions`` of a new run by score, but for those that are 1: older headers have none either."""
    known = [CATALOGUE[name] for key in ("metrics", "companions") for name in header.get(key, ()) if name in CATALOGUE]
    definitions = {metric.name: metric.definition_under(str(header.get("variant"))) for metric in known}
    changed = {name: number for name, number in definitions.items() if number > 1}
    return {"definitions": changed} if changed else {}


def record(job: Job, path: Path, settings: Settings, *, progress: Progress | None = None) -> Records:
    """Do what is left of a job, and return its records, which are in the folder `path`."""
    # Rows are written as they come, so that a run may be ended at any time, and resumed; see `records`.
    started = time.monotonic()
    header, work = {**job.header, **definitions_of(job.header)}, job.work
    with RecordStore(path, header, job.items, overwrite=settings.overwrite) as records:
        with reading_rows():
            rows = records.rows
            units = job.left(rows)
            named = [row["kernels"] for row in rows.of("kernels")][-1:] if "kernels" in rows.kinds else []
            begin = [] if not units or named == [kernels()] else [{"kind": "kernels", "kernels": kernels()}]
            selection = job.selection(rows)
        records.append(itertools.chain(selection, begin))
        if not units:
            records.compact()
            return records.rows
        if job.before is not None:
            job.before([part for unit in units for part in unit.payload], progress)
        done = job.size - sum(unit.size for unit in units)
        last, workers = kernels(), settings.workers or job.workers
        if settings.engine == RAY:
            versions = job.header.get("versions")
            answered = on_ray(units, work, workers=settings.workers, address=settings.ray_address, versions=versions)
        else:  # the one that the settings ask for, or that suits the job
            engine = ENGINES[settings.engine or ("local" if workers > 1 else job.engine)]
            answered = engine(units, work, workers=workers)
        with contextlib.closing(answered) as answers:
            for unit, answer, made_by in answers:
                begin = [{"kind": "kernels", "kernels": made_by}] if made_by not in {"", last} else []
                last = made_by or last
                records.append(begin + job.rows(unit, answer))
                done += unit.size
                if progress is not None:
                    progress(done, job.size, unit.label)
        records.append([{"kind": "sitting", "wall_time_sec": round(time.monotonic() - started, 3)}])
        records.compact()
        return records.rows


# --- what a run leaves in its folder


@dataclasses.dataclass(frozen=True, eq=False)
class Outcome:
    """What a run gives back.

    Attributes
    ----------
    results
        The content of results.json.
    scores
        The records, as the task reads them.
    files
        What was written, by kind: ``records``, ``results``, ``table``, ``report``, and what else the task writes.
    notes
        What a reader of the results should know.
    """

    results: dict[str, Any]
    scores: Any
    files: dict[str, Path]
    notes: list[str]

    @property
    def found(self) -> Any:
        """The old name of ``scores``."""
        warn_renamed("Outcome.found", "scores")
        return self.scores


def remove_results(out: Path, *others: str) -> None:
    """Remove what is made from records, should this run end before its own are written: it tells of another run."""
    for name in (RESULTS, TABLE, REPORT, *others):
        remove_file(out / name)


class ExtraOutputs(NamedTuple):
    """What a task shows and writes besides the scores."""

    results: Mapping[str, Any] = MappingProxyType({})
    """Further keys of results.json."""
    markdown: str = ""
    """A section at the end of table.md."""
    notes: Sequence[str] = ()
    files: Mapping[str, tuple[str, str]] = MappingProxyType({})
    """Kind -> file name and content."""


NO_EXTRA_OUTPUTS: Final = ExtraOutputs()


def write_outcome(
    out: Path,
    results: dict[str, Any],
    scores: Any,
    *,
    table: str,
    page: Callable[[], str] | None = None,
    others: Mapping[str, tuple[str, str]] | None = None,
    notes: Sequence[str] = (),
) -> Outcome:
    """Write the files of a run, each whole or not at all."""
    contents = {"results": (RESULTS, dump_json(results, indent=2) + "\n"), "table": (TABLE, table + "\n")}
    contents |= others or {}
    if page is not None:
        contents["report"] = (REPORT, page())
    for name, content in contents.values():
        write_atomically(out / name, content.encode())
    files = {"records": records_at(out / RECORDS) or out / RECORDS}
    files |= {kind: out / name for kind, (name, _) in contents.items()}
    return Outcome(results, scores, files, list(notes))
