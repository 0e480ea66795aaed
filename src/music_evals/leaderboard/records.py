"""What a board takes from a run: a record for each metric and system, and what can be shown of single items.

A record holds what a ranking needs, the scores of every item included. Its id is a hash of its content without ``run``,
``source``, ``date`` and ``submitter``: the same results always have the same ids, whoever adds them.

Two mappings say what may be ranked together: records where both are equal. ``settings`` holds what concerns all metrics
of the run: a hash of what all of its references hold, variant, protocol, and of text tasks the encoder, the options and
the packages that read texts. What dataset, split and files are called plays no part. ``extractors`` holds what this
metric alone hears the music with, and as ``definition`` the number of its formula where that is not 1. Older records,
without the hash of references, share a table with those of their own run alone (`conditions_of`).
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import hashlib
import json
import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import PurePath, PurePosixPath, PureWindowsPath
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from music_evals.benchmark.columns import dump_json
from music_evals.benchmark.contents import divergences_of_set, unlisted
from music_evals.benchmark.inputs import hash_of
from music_evals.benchmark.load import LoadedResults, load_results
from music_evals.benchmark.records import reading_rows
from music_evals.benchmark.results import definition_in
from music_evals.benchmark.score_table import UNKNOWN
from music_evals.benchmark.tasks.inpainting.runner import INTERVALS, NLL
from music_evals.benchmark.tasks.style_transfer.task import TRANSFERS
from music_evals.errors import InvalidInputError, UnknownNameError
from music_evals.metrics.catalogue import SUCCESS_SCORES, features_of, metric_of
from music_evals.pipelines.edit_success import SUCCESS
from music_evals.pipelines.inpainting import FEATURES
from music_evals.protocols import CONTROL, RENDERED_DATASETS

TASKS: Final = ("inpainting", "preservation", "lyrics", "descriptions", "style-transfer")
"""Tasks whose results a board takes."""

MEAN, DIVERGENCE = "mean", "divergence"
A_CONTROL = "a control"  # why a control is no ranked system; it takes a place beside them all the same
REFERENCES = "references"  # setting that holds a hash of what the references of a run hold
OF_A_SET = "a divergence of all outputs together, which the record does not hold"
"""Why a divergence without its items has no rank."""
LONGEST_NAME = 200  # characters of the name of a system
ID_DIGITS = 32
READERS = ("jieba", "pypinyin", "pypinyin-dict", "opencc")  # packages that decide how lyrics are read
_RUN = re.compile(r", run [0-9]+\Z")
COMMON_PACKAGES = ("numpy", "scipy", "onnxruntime")  # of an extractor; their versions do not separate results

_PLACE = ("task", "dataset", "config", "split", "revision", "fingerprint", "variant")  # fields of a record

Row = Mapping[str, Any]
Seeds = tuple[float | None, ...]


@dataclasses.dataclass(frozen=True)
class ResultRecord:
    """One metric of one system in one run."""

    id: str  # hash of the fields in `CONTENT`
    task: str  # one of `TASKS`
    # What was evaluated on: id without folders, and None where the run does not say. The fingerprint is a hash of the
    # split's content.
    dataset: str
    config: str | None
    split: str | None
    revision: str | None
    fingerprint: str | None
    # Name, role (``"system"``, ``"model"``, ``"baseline"``, ``"leaking"``, ``"control"``) and hash of the files and
    # options of the system; the hash is None where the run has none.
    system: str
    role: str
    content: str | None
    # Score; ``"higher"``, ``"lower"`` or ``"zero"`` (nearer to 0) is better, ``"none"`` is compared with the reference.
    metric: str
    title: str
    direction: str
    # ``"mean"``: the score is the mean over items. ``"divergence"``: it compares how a feature of the items is
    # distributed.
    kind: str
    variant: str  # variant of the metric, or aggregation
    value: float | None  # score, its interval, and the noise floor of a divergence; None is undefined
    low: float | None
    high: float | None
    confidence: float
    floor: float | None
    n: int  # items that were evaluated, that define the score, and that failed
    n_defined: int
    n_failed: int
    # One an item: its id, its group (song), and the hash of what it was held against; none where the run has none.
    items: tuple[str, ...]
    groups: tuple[str, ...]
    references: tuple[str, ...]
    # One an item: the score, or for a divergence the feature, of each seed; None is undefined.
    values: tuple[Seeds, ...]
    # One an item: the feature of the reference, for a divergence; else empty.
    reference_values: tuple[float | None, ...]
    unranked: str  # why this record is in no ranking; empty where it is in one
    settings: Mapping[str, Any]  # what must be equal in all that is ranked together; see the module
    extractors: Mapping[str, Any]
    receipt: Mapping[str, Any]  # what else the run records: versions, kernels, options, intervals, the system
    run: str = ""  # which records were added together; details of items are found by it
    # Address of what stands behind the record, day on which it was added (``YYYY-MM-DD``), and who added it.
    source: str = ""
    date: str = ""
    submitter: str = ""
    # One an item, of the success of edits: what was asked, in the form of `annotations.targets_of`; else empty.
    targets: tuple[str, ...] = ()


ABOUT = ("id", "run", "source", "date", "submitter")
CONTENT = tuple(field.name for field in dataclasses.fields(ResultRecord) if field.name not in ABOUT)
"""Fields that the id is a hash of."""


def id_of(record: ResultRecord) -> str:
    """Return the hash of what a record holds."""
    content = {name: getattr(record, name) for name in CONTENT}
    if not record.targets:  # which older records do not have
        del content["targets"]
    text = json.dumps(content, sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:ID_DIGITS]


def conditions_of(record: ResultRecord) -> dict[str, Any]:
    """Return what must be equal in all records of a table; see the module for those without a hash of references."""
    known = record.settings.get(REFERENCES)
    return {**record.settings, REFERENCES: known or f"{record.run} (a run whose references were not hashed)"}


def read_run(folder: str | os.PathLike[str]) -> LoadedResults:
    """Read the results of a run, which are checked against its records, and are of a task that a board takes."""
    run = load_results(folder)
    if run.task not in TASKS:
        raise UnknownNameError("task of a board", run.task, TASKS)
    return run


def records_of_run(
    run: LoadedResults,
    *,
    source: str = "",
    date: str | None = None,
    submitter: str = "",
    systems: Sequence[str] | None = None,
) -> list[ResultRecord]:
    """Return a record for each metric of the systems of a run, or of some of them; a date of None is today (UTC)."""
    try:
        day = (dt.datetime.now(dt.UTC).date() if date is None else dt.date.fromisoformat(date)).isoformat()
    except ValueError as error:
        raise InvalidInputError(f"expected a date such as 2026-11-20, got {date!r}") from error
    known: Mapping[str, Any] = run.results["systems"]
    for name in systems or ():
        if name not in known:
            raise UnknownNameError("system of these results", name, known)
    chosen = set(known if systems is None else systems)
    for name in chosen:
        if not name.strip() or len(name) > LONGEST_NAME:
            raise InvalidInputError(
                f"expected the name of a system of 1 to {LONGEST_NAME} characters, got {name[:60]!r}; evaluate again"
            )
    with reading_rows():
        unsigned = list(_of_inpainting(run) if run.task == "inpainting" else _of_scores(run))
    records = [dataclasses.replace(record, id=id_of(record)) for record in unsigned if record.system in chosen]
    together = hashlib.sha256("".join(sorted(record.id for record in records)).encode()).hexdigest()[:ID_DIGITS]
    about: dict[str, Any] = {"run": together, "source": source, "date": day, "submitter": submitter}
    return [dataclasses.replace(record, **about) for record in records]


def _last_part(name: str) -> str:
    """Return the name of a dataset without folders and owner: the same rows may lie here or on the Hub."""
    return PurePath(name.replace("\\", "/")).name or name


def _settings(run: LoadedResults) -> dict[str, Any]:
    """Return what must be equal in all runs that are ranked together."""
    results = run.results
    dataset = {key: value for key, value in results["dataset"].items() if key not in {"id", "n_items", *_PLACE}}
    common = {REFERENCES: references_hash(_references(run)), "variant": results["variant"]} | dataset
    if run.task == "inpainting":
        return common | {"protocol": results.get("protocol")}
    options = (results.get("options") or {}).items()
    common |= {f"option {key}": value for key, value in options if key not in {"limit", "variant"}}
    if run.task == "lyrics":
        readers = {f"version of {name}": results["versions"].get(name) for name in READERS}
        return common | {"numbered": results.get("numbered", True)} | readers
    if encoder := results.get("encoder"):
        common |= {"encoder": encoder["name"], "revision of the encoder": encoder["revision"]}
    return common


def _references(run: LoadedResults) -> list[str]:
    """Return the hash of the reference of each item of a run: of pairs that failed too, and of the controls."""
    if run.task == "inpainting":
        return list(map(content_of_item, run.scores.item_rows.values()))
    known: set[tuple[str, str]] = set()
    for pairs in map(run.scores.of, run.scores.systems):
        there = pairs.take(pairs.codes("reference") >= 0)
        known.update(zip(there.text("reference"), map(base_item, there.text("item")), strict=True))
    return [reference for reference, _ in known]


def base_item(item: str) -> str:
    """Return the name of an item without the number of the run that made it; see `benchmark.tasks.songs.texts`."""
    return _RUN.sub("", item)


def references_hash(references: Iterable[str]) -> str:
    """Return a hash of the hashes of references, one an item, whatever their order."""
    return hash_of("\0".join(sorted(references)).encode())


def content_of_item(item: Row) -> str:
    """Return a hash of the tokens of an item of inpainting."""
    return hash_of(dump_json(list(map(int, item["tokens"]))).encode())


def _receipt(run: LoadedResults, system: str) -> dict[str, Any]:
    """Return what else a run records; local paths are shortened to their last part, since a board is public."""

    def without_folders(facts: Row) -> dict[str, Any]:
        return {
            key: _last_part(value)
            if isinstance(value, str) and (PurePosixPath(value).is_absolute() or PureWindowsPath(value).is_absolute())
            else value
            for key, value in facts.items()
        }

    results = run.results
    fields = ("protocol", "options", "encoder", "versions", "kernels", "intervals", "seeds", "numbered")
    about = {key: results[key] for key in fields if results.get(key) not in (None, [UNKNOWN])}
    return about | {
        "dataset": without_folders(results["dataset"]),
        "system": without_folders(results["systems"][system]),
    }


def _unranked(run: LoadedResults, system: str, metric: str) -> str:
    """Return why a score is in no ranking; empty where it is in one."""
    results = run.results
    role = results["systems"][system]["role"]
    limit = (results.get("options") or {}).get("limit")
    failed = sum(
        row.get("n", 1)
        for row in (*results["failures"], *unlisted(results, "failures"))
        if row["system"] in {system, None} and row.get("metric") in {metric, None}
    )
    if role == "control":
        return A_CONTROL
    if role == "leaking":
        return "it has seen the reference"
    if limit is not None:
        return f"only the first {limit} items were judged"
    if failed:
        return f"{failed} results failed"
    if _last_part(str(results["dataset"]["id"])) in RENDERED_DATASETS:
        return "a kind of edit, by which metrics are judged"
    if metric_of(metric).direction == "none":
        return "a rate, which is compared with the reference's own"
    if metric == INTERVALS:
        return "an item has many intervals, which the record does not hold"
    return "what it counts differs from model to model" if metric == NLL else ""


def _number(value: object) -> float | None:
    """Return a finite number, or None: a record holds neither NaN nor infinity."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.floating):
        return None
    return float(value) if math.isfinite(value) else None


def _of_inpainting(run: LoadedResults) -> Iterator[ResultRecord]:
    scores, items, settings = run.scores, list(run.scores.item_rows), _settings(run)
    references = tuple(map(content_of_item, scores.item_rows.values()))
    for system, cells in run.results["tables"]["all"]["scores"].items():
        for metric, cell in cells.items():
            feature = FEATURES.get(metric, "")
            reference = scores.at(items, CONTROL).by_seed(feature)
            values = scores.at(items, system).by_seed(feature or metric)
            if metric == NLL:  # not every seed has one
                values = values[~np.isnan(values).all(axis=1)]
            yield _record(
                run,
                system,
                metric,
                cell,
                settings=settings,
                n_failed=cell["n"] - cell["n_scored"],
                items=tuple(items),
                groups=tuple(scores.songs),
                references=references,
                values=tuple(tuple(map(_number, row)) for row in values.T.tolist()),
                reference_values=tuple(map(_number, reference[0].tolist())) if len(reference) else (),
            )


def _of_scores(run: LoadedResults) -> Iterator[ResultRecord]:
    scores, scales = run.scores, run.results["scales"]
    is_transfer = (run.results.get("options") or {}).get("kind") == TRANSFERS
    common, targets_hash = _settings(run), _targets(run)
    for system in scores.systems:
        pairs = scores.scored(system)
        texts: dict[str, Any] = {f"{name}s": tuple(pairs.text(name)) for name in ("item", "group", "reference")}
        settings = common | ({"target style": scores.header["judged"][system]["style"]} if is_transfer else {})
        targets = tuple(pair.get("targets", "") for pair in pairs) if SUCCESS in scores.metrics else ()
        for metric in scores.metrics:
            cell = run.results["scores"][system][metric]
            record = _record(
                run,
                system,
                metric,
                cell,
                settings=settings,
                direction=scales[metric]["direction"],
                kind=MEAN,
                n_failed=cell["n_failed"],
                **texts,
                values=tuple((_number(value),) for value in pairs.values(metric)[:, 0].tolist()),
                # success is compared where the same was asked
                extractors=_extractors(run, metric) | ({"targets": targets_hash} if metric in SUCCESS_SCORES else {}),
                targets=targets if metric == SUCCESS else (),
            )
            companion = scales[metric]["companion"] and not record.unranked and metric != SUCCESS
            yield dataclasses.replace(record, unranked="a companion of the metrics") if companion else record
        for metric, cell in divergences_of_set(run.results, system).items():
            record = _record(run, system, metric, cell, settings=settings, kind=DIVERGENCE)
            yield dataclasses.replace(record, unranked=record.unranked or OF_A_SET)


def _targets(run: LoadedResults) -> str:
    """Return a hash of what was asked of the edits of each original."""
    rows = (row for row in run.records.of("pair") if row.get("targets"))
    return references_hash({f"{row['reference']['content']} {row['targets']}" for row in rows})


def _extractors(run: LoadedResults, metric: str) -> dict[str, Any]:
    """Return what a metric hears the music with: of each feature that it needs, what decides its values."""
    used = run.results.get("extractors") or {}
    features = used.get("features") or {}
    if run.task != "preservation" or not features:
        return {}
    by_feature: dict[str, Any] = {}
    pending = list(features_of(metric, run.results["variant"]))
    while pending:
        name = pending.pop(0)
        if name not in by_feature and name in features:
            extractor = features[name]
            packages = {key: held for key, held in extractor.get("packages", {}).items() if key not in COMMON_PACKAGES}
            fields = ("backend", "name", "version", "parameters", "weights", "missing")
            deciding = {key: extractor[key] for key in fields if extractor.get(key)}
            by_feature[name] = deciding | ({"packages": packages} if packages else {})
            pending += extractor.get("inputs", ())
    return by_feature | {key: used[key] for key in ("policy", "decoder") if key in used}


def _record(
    run: LoadedResults,
    system: str,
    metric: str,
    cell: Row,
    *,
    settings: Row,
    extractors: Row = MappingProxyType({}),
    **fields: Any,
) -> ResultRecord:
    """Return a record without its id; what is not given is empty, or as the catalogue has it."""
    definition, about = definition_in(run.results, metric), metric_of(metric)
    by_default: dict[str, Any] = {
        "direction": about.direction,
        "kind": DIVERGENCE if about.kind == "set" else MEAN,
        "n_failed": 0,
        **dict.fromkeys(("items", "groups", "references", "values", "reference_values"), ()),
    }
    facts = run.results["systems"][system]
    # of style transfer, what is no model is a rule that any model has to beat
    header = run.scores.header.get("judged", {}).get(system)
    role = "baseline" if header is not None and "source" not in header else facts["role"]
    numbers: dict[str, Any] = {key: _number(cell.get(key)) for key in ("value", "low", "high")}
    return ResultRecord(
        id="",
        system=system,
        role=role,
        content=facts.get("content_hash"),
        metric=metric,
        title=about.heading,
        confidence=run.results["intervals"]["confidence"],
        floor=_number(cell.get("null")),
        n=cell["n"],
        n_defined=cell["n_defined"],
        unranked=_unranked(run, system, metric),
        settings=settings,
        receipt=json.loads(dump_json(_receipt(run, system))),
        task=run.task,
        dataset=_last_part(str(run.results["dataset"]["id"])),
        variant=run.results["variant"],
        **{key: run.results["dataset"].get(key) for key in _PLACE if key not in {"task", "dataset", "variant"}},
        **numbers,
        **(by_default | fields),
        extractors={**extractors, **({"definition": definition} if definition > 1 else {})},
    )
