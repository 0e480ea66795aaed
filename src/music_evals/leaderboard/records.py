"""Result records: one metric of one system in one run, with the scores of every item, made from the files of a run.

A record holds what a ranking needs and nothing that hangs on who added it: its id is a hash of its content without
``run``, ``source``, ``date`` and ``submitter``, so that the same results always have the same ids.

What may be ranked together is told by two mappings. ``settings`` holds what concerns all metrics of the run: the
dataset with its config, split and content (the fingerprint where the run has one, else the revision), variant,
protocol, and of text tasks the encoder, the options and the packages that read texts. ``extractors`` holds what this
metric alone hears the music with. Records are ranked together where both are equal.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import hashlib
import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath, PurePosixPath, PureWindowsPath
from typing import Any, Final

import numpy as np

from music_evals.benchmark.inpainting.runner import NLL
from music_evals.benchmark.load import LoadedResults as Run
from music_evals.benchmark.load import load_results
from music_evals.benchmark.records import dump_json, reading_rows
from music_evals.benchmark.results import Found
from music_evals.errors import InvalidInputError, UnknownNameError
from music_evals.metrics.catalogue import features_of
from music_evals.pipelines.inpainting import FEATURES
from music_evals.protocols import RENDERED_DATASETS

__all__ = ["CONTENT", "TASKS", "ResultRecord", "Run", "id_of", "read_run", "records_of_run"]

TASKS: Final = ("inpainting", "preservation", "lyrics", "descriptions")
"""Tasks whose results a board takes."""

MEAN, DIVERGENCE = "mean", "divergence"

LONGEST_NAME = 200
"""Characters of the name of a system."""

ID_DIGITS = 32

READERS = ("jieba", "pypinyin", "pypinyin-dict", "opencc")
"""Packages that decide how lyrics are read; see `lyrics.rhyme`."""

COMMON_PACKAGES = ("numpy", "scipy", "onnxruntime")
"""Packages of an extractor whose version does not separate results."""

Row = Mapping[str, Any]
Seeds = tuple[float | None, ...]


@dataclasses.dataclass(frozen=True)
class ResultRecord:
    """One metric of one system in one run.

    Attributes
    ----------
    id
        Hash of the fields in `CONTENT`.
    task
        One of `TASKS`.
    dataset, config, split, revision, fingerprint
        What was judged on: id without folders, and None where the run does not say. The fingerprint is a hash of the
        split's content.
    system, role, content
        Name, role (``"system"``, ``"model"``, ``"baseline"``, ``"leaking"``, ``"control"``) and hash of the files and
        options of the system; the hash is None where the run has none.
    metric, title, direction
        Score; ``"higher"``, ``"lower"`` or ``"zero"`` (nearer to 0) is better.
    kind
        ``"mean"``: the score is the mean over items. ``"divergence"``: it compares how a feature of the items is
        distributed.
    variant
        Variant of the metric, or aggregation.
    value, low, high, confidence, floor
        Score, its interval, and the noise floor of a divergence; None is undefined.
    n, n_defined, n_failed
        Items that were judged, that define the score, and that failed.
    items, groups, references
        One an item: its id, its group (song), and the hash of what it was held against; empty where the fingerprint of
        the split says that.
    values
        One an item: the score, or for a divergence the feature, of each seed; None is undefined.
    reference_values
        One an item: the feature of the reference, for a divergence; else empty.
    unranked
        Why this record is in no ranking; empty where it is in one.
    settings, extractors
        What must be equal in all that is ranked together; see the module.
    receipt
        What else the run says of itself: versions, options, intervals, the system.
    run
        Which records were added together: details of items are found by it.
    source
        Address of what stands behind the record, or empty.
    date
        When it was added, ``YYYY-MM-DD``.
    submitter
        Who added it, or empty.

    """

    id: str
    task: str
    dataset: str
    config: str | None
    split: str | None
    revision: str | None
    fingerprint: str | None
    system: str
    role: str
    content: str | None
    metric: str
    title: str
    direction: str
    kind: str
    variant: str
    value: float | None
    low: float | None
    high: float | None
    confidence: float
    floor: float | None
    n: int
    n_defined: int
    n_failed: int
    items: tuple[str, ...]
    groups: tuple[str, ...]
    references: tuple[str, ...]
    values: tuple[Seeds, ...]
    reference_values: tuple[float | None, ...]
    unranked: str
    settings: Mapping[str, Any]
    extractors: Mapping[str, Any]
    receipt: Mapping[str, Any]
    run: str = ""
    source: str = ""
    date: str = ""
    submitter: str = ""


ABOUT = ("id", "run", "source", "date", "submitter")
CONTENT = tuple(field.name for field in dataclasses.fields(ResultRecord) if field.name not in ABOUT)
"""Fields that the id is a hash of."""


def id_of(record: ResultRecord) -> str:
    """Return the hash of what a record holds."""
    content = {name: getattr(record, name) for name in CONTENT}
    text = json.dumps(content, sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:ID_DIGITS]


def read_run(folder: str | os.PathLike[str]) -> Run:
    """Read the results of a run and check them against its records.

    Raises
    ------
    NoDataError, UnreadableFileError, CorruptRecordsError, ChangedResultsError, UnknownNameError
        As `benchmark.load.load_results`.

    """
    return load_results(folder)


def records_of_run(
    run: Run,
    *,
    source: str = "",
    date: str | None = None,
    submitter: str = "",
    systems: Sequence[str] | None = None,
) -> list[ResultRecord]:
    """Return a record for each system and metric of a run.

    Parameters
    ----------
    run
        From `read_run`.
    source, submitter
        See `ResultRecord`.
    date
        ``YYYY-MM-DD``; None is today (UTC).
    systems
        Names of those to take; None takes all.

    Raises
    ------
    UnknownNameError
        A system that the run does not have.
    InvalidInputError
        A date that is none, or a name of a system that is too long or has no visible letter.
    CorruptRecordsError
        Rows of an unknown form.

    """
    day = dt.datetime.now(dt.UTC).date().isoformat() if date is None else _checked_date(date)
    chosen = _chosen(run, systems)
    about: dict[str, Any] = {"source": source, "date": day, "submitter": submitter}
    with reading_rows():
        make = _of_inpainting if run.task == "inpainting" else _of_scores
        records = [
            dataclasses.replace(record, id=id_of(record), **about) for record in make(run) if record.system in chosen
        ]
    together = hashlib.sha256("".join(sorted(record.id for record in records)).encode()).hexdigest()[:ID_DIGITS]
    return [dataclasses.replace(record, run=together) for record in records]


def _checked_date(text: str) -> str:
    try:
        return dt.date.fromisoformat(text).isoformat()
    except ValueError as error:
        msg = f"expected a date such as 2026-11-20, got {text!r}"
        raise InvalidInputError(msg) from error


def _chosen(run: Run, systems: Sequence[str] | None) -> set[str]:
    known: Mapping[str, Any] = run.results["systems"]
    for name in systems or ():
        if name not in known:
            kind = "system of these results"
            raise UnknownNameError(kind, name, known)
    chosen = set(known if systems is None else systems)
    for name in chosen:
        if not name.strip() or len(name) > LONGEST_NAME:
            msg = f"expected the name of a system of 1 to {LONGEST_NAME} characters, got {name[:60]!r}; judge again"
            raise InvalidInputError(msg)
    return chosen


def _place(run: Run) -> dict[str, Any]:
    dataset = run.results["dataset"]
    told = {key: dataset.get(key) for key in ("config", "split", "revision", "fingerprint")}
    return {"task": run.task, "dataset": _last_part(str(dataset["id"])), "variant": run.results["variant"], **told}


def _last_part(name: str) -> str:
    """Return the name of a dataset without folders and owner: the same rows may lie here or on the Hub."""
    return PurePath(name.replace("\\", "/")).name or name


def _settings(run: Run) -> dict[str, Any]:
    """Return what must be equal in all runs that are ranked together."""
    results, place = run.results, _place(run)
    dataset = {key: value for key, value in results["dataset"].items() if key not in {"id", "n_items"} | place.keys()}
    content = {"fingerprint": place["fingerprint"]} if place["fingerprint"] else {"revision": place["revision"]}
    told = {key: place[key] for key in ("dataset", "config", "split", "variant")} | content | dataset
    if run.task == "inpainting":
        return told | {"protocol": results.get("protocol")}
    options = {f"option {key}": value for key, value in (results.get("options") or {}).items() if key != "limit"}
    told |= {key: value for key, value in options.items() if key != "option variant"}
    if run.task == "lyrics":
        readers = {f"version of {name}": results["versions"].get(name) for name in READERS}
        return told | {"numbered": results.get("numbered", True)} | readers
    if encoder := results.get("encoder"):
        told |= {"encoder": encoder["name"], "revision of the encoder": encoder["revision"]}
    return told


def _receipt(run: Run, system: str) -> dict[str, Any]:
    results = run.results
    kept = ("protocol", "options", "encoder", "versions", "intervals", "seeds", "numbered")
    about = {key: results[key] for key in kept if results.get(key) is not None}
    return about | {
        "dataset": _without_folders(results["dataset"]),
        "system": _without_folders(results["systems"][system]),
    }


def _without_folders(about: Row) -> dict[str, Any]:
    """Return facts in which a place on somebody's machine is its last part: a board is for others to read."""
    return {
        key: _last_part(value) if isinstance(value, str) and _is_absolute(value) else value
        for key, value in about.items()
    }


def _is_absolute(text: str) -> bool:
    return PurePosixPath(text).is_absolute() or PureWindowsPath(text).is_absolute()


def _unranked(run: Run, system: str, metric: str) -> str:
    """Return why a score is in no ranking; empty where it is in one."""
    results = run.results
    role = results["systems"][system]["role"]
    limit = (results.get("options") or {}).get("limit")
    failed = sum(row["system"] in {system, None} and row.get("metric") in {metric, None} for row in results["failures"])
    if role == "control":
        return "a control"
    if role == "leaking":
        return "it has seen the reference"
    if limit is not None:
        return f"only the first {limit} items were judged"
    if failed:
        return f"{failed} results failed"
    if _last_part(str(results["dataset"]["id"])) in RENDERED_DATASETS:
        return "a kind of edit, by which metrics are judged"
    return "what it counts differs from model to model" if metric == NLL else ""


def _number(value: object) -> float | None:
    """Return a finite number, or None: a record holds neither NaN nor infinity."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.floating):
        return None
    return float(value) if math.isfinite(value) else None


def _of_inpainting(run: Run) -> Iterator[ResultRecord]:
    found, settings = run.found, _settings(run)
    items, scales = list(found.items), run.results["scales"]
    for system, cells in run.results["tables"]["all"]["scores"].items():
        for metric, cell in cells.items():
            feature = FEATURES.get(metric)
            reference = found.by_seed(items, found.controls[0], feature or "")
            yield _record(
                run,
                _place(run),
                system,
                metric,
                cell,
                title=scales[metric]["title"],
                direction=scales[metric]["direction"],
                kind=DIVERGENCE if feature else MEAN,
                n_failed=cell["n"] - cell["n_scored"],
                items=tuple(items),
                groups=tuple(row["song"] for row in found.items.values()),
                values=_by_item(found, items, system, feature or metric),
                reference_values=tuple(map(_number, reference[0].tolist())) if len(reference) else (),
                settings=settings,
            )


def _by_item(found: Found, items: Sequence[str], system: str, column: str) -> tuple[Seeds, ...]:
    """Return the values of each item by seed; none where an item is not scored, as in the tables."""
    values = found.by_seed(items, system, column)
    if column == NLL:  # not every seed has one
        values = values[~np.isnan(values).all(axis=1)]
    return tuple(tuple(map(_number, row)) for row in values.T.tolist())


def _of_scores(run: Run) -> Iterator[ResultRecord]:
    found = run.found
    place, settings = _place(run), _settings(run)
    scales = run.results["scales"]
    for system in found.systems:
        pairs = sorted(
            (pair for pair in found.pairs.get(system, []) if "error" not in pair), key=lambda row: row["item"]
        )
        for metric in found.names:
            cell = run.results["scores"][system][metric]
            record = _record(
                run,
                place,
                system,
                metric,
                cell,
                title=scales[metric]["title"],
                direction=scales[metric]["direction"],
                kind=MEAN,
                n_failed=cell["n_failed"],
                items=tuple(pair["item"] for pair in pairs),
                groups=tuple(pair["group"] for pair in pairs),
                references=tuple(pair["reference"]["content"] for pair in pairs),
                values=tuple((_number(found.value(pair["item"], system, metric)),) for pair in pairs),
                settings=settings,
                extractors=_extractors(run, metric),
            )
            companion = scales[metric]["companion"] and not record.unranked
            yield dataclasses.replace(record, unranked="a companion of the metrics") if companion else record


def _extractors(run: Run, metric: str) -> dict[str, Any]:
    """Return what a metric hears the music with: of each feature that it needs, what decides its values."""
    told = run.results.get("extractors") or {}
    features = told.get("features") or {}
    if run.task != "preservation" or not features:
        return {}
    found: dict[str, Any] = {}
    pending = list(features_of(metric, run.results["variant"]))
    while pending:
        name = pending.pop(0)
        if name not in found and name in features:
            found[name] = _deciding(features[name])
            pending += features[name].get("inputs", ())
    return found | {key: told[key] for key in ("policy", "decoder") if key in told}


def _deciding(extractor: Row) -> dict[str, Any]:
    packages = {key: value for key, value in extractor.get("packages", {}).items() if key not in COMMON_PACKAGES}
    kept = ("backend", "name", "version", "parameters", "weights", "missing")
    return {key: extractor[key] for key in kept if extractor.get(key)} | ({"packages": packages} if packages else {})


def _record(run: Run, place: Row, system: str, metric: str, cell: Row, **told: Any) -> ResultRecord:
    numbers: dict[str, Any] = {key: _number(cell.get(key)) for key in ("value", "low", "high")}
    content = run.results["systems"][system].get("content_hash")
    fields = {"references": (), "reference_values": (), "extractors": {}, **told}
    return ResultRecord(
        id="",
        system=system,
        role=run.results["systems"][system]["role"],
        content=content,
        metric=metric,
        confidence=run.results["intervals"]["confidence"],
        floor=_number(cell.get("null")),
        n=cell["n"],
        n_defined=cell["n_defined"],
        unranked=_unranked(run, system, metric),
        receipt=json.loads(dump_json(_receipt(run, system))),
        **place,
        **numbers,
        **fields,
    )
