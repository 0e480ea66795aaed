"""What systems scored, read from the records of any benchmark and put together as the content of results.json.

A score of a system is the mean over the items that define it; `n` counts all its items, `n_failed` those without a
score for this metric because something failed, `n_defined` those in the mean. The interval is clustered by group. What
differs between benchmarks is handed in as a `ScoreTask`; the statistics stand in `aggregate`.

Records come in two forms. Rows ``selection`` and ``pair`` name what each system was judged on; where there are none,
the header names the systems with their seeds, and every row ``item`` is judged for each of them.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from music_evals.benchmark import aggregate
from music_evals.benchmark.cells import plain
from music_evals.benchmark.records import reading_rows
from music_evals.benchmark.versions import kernels_of
from music_evals.errors import CorruptRecordsError, UnknownNameError
from music_evals.metrics.catalogue import Metric

__all__ = ["Found", "ScoreTask", "build_results", "collect"]

OUTSIDE = frozenset({"control", "leaking"})
"""Roles that have seen the reference: they are compared with nobody and get no rank."""

WHOLE = "all"
"""The view that holds every item."""

Row = Mapping[str, Any]
Floats = npt.NDArray[np.float64]


def _nothing_published(_: Mapping[str, Any]) -> dict[str, Any]:
    return {"source": "", "table": {}, "differences": {}}


def _nothing_to_say(_: Any) -> Iterable[str]:
    return ()


def _all_scores(found: Found) -> Sequence[str]:
    return found.names


def _as_they_are(_: Found) -> None:
    pass


def _one_view(_: Found) -> Mapping[str, Collection[str]]:
    return {}


@dataclasses.dataclass(frozen=True)
class ScoreTask:
    """What one benchmark hands to the results, tables and pages that all share."""

    name: str  # the task in the header of its records
    title: str  # of its report, before the name of the dataset
    scales: Mapping[str, Metric]  # metric or companion -> its scale, in the order of the tables
    controls: tuple[str, ...]  # systems of our own that stand outside of all comparisons
    controls_explained: str  # A sentence or two on what they are, for below the tables
    how: Callable[[Mapping[str, Any]], str]  # header -> what the scores were made with, in a few words
    companions: Collection[str] = ()  # scores that get tables of their own
    # Header -> ``source``, ``table`` (system -> metric -> value), ``differences`` (what -> why) and, where it is
    # printed, ``spread`` (system -> metric -> standard deviation).
    published: Callable[[Mapping[str, Any]], dict[str, Any]] = _nothing_published
    items: str = "pairs"  # what is counted, as ``"pairs"`` of ``"groups"``
    groups: str = "groups"
    remarks: str = "lengths that differ"  # what remarks are about, as ``"lengths that differ"``
    # ``systems`` of the results -> what a reader should know of the controls.
    on_controls: Callable[[Mapping[str, Mapping[str, Any]]], Iterable[str]] = _nothing_to_say
    # ``notes`` of the results -> what a reader should know of the remarks, beside their number.
    on_remarks: Callable[[Sequence[Mapping[str, Any]]], Iterable[str]] = _nothing_to_say
    # Records -> the scores out of their header that results are made of, by default all.
    shown: Callable[[Found], Sequence[str]] = _all_scores
    # Changes records that were read, e.g. the groups of pairs, or refuses them.
    finish: Callable[[Found], None] = _as_they_are
    beside: tuple[str, ...] = ()  # keys of results.json that are made of other files than the records
    # Score of a whole set of items -> the recorded feature of items whose distribution it compares with the control's.
    divergences: Mapping[str, str] = dataclasses.field(default_factory=dict)
    # Scores that a system has although it failed to predict; they are compared with nobody.
    without_prediction: Collection[str] = ()
    # The score that ranks. Systems are then tested against the best baseline of each score, which is chosen on the
    # validation records, and not two by two.
    ranked_by: str = ""
    # Records -> items of each part that gets tables of its own, by name; `WHOLE` first. None has one table for all.
    views: Callable[[Found], Mapping[str, Collection[str]]] = _one_view
    view_titles: Mapping[str, str] = dataclasses.field(default_factory=dict)  # view -> what it holds, in words
    explained: str = ""  # sentences on the scores, for below the tables

    def scale(self, name: str) -> Metric:
        """Return the scale of a metric or companion."""
        if name not in self.scales:
            kind = f"score of {self.name}"
            raise UnknownNameError(kind, name, self.scales)
        return self.scales[name]


@dataclasses.dataclass(frozen=True, eq=False)
class Found:
    """The records of a run, those of its last selection."""

    header: dict[str, Any]  # the run row, with ``metrics`` and ``companions``
    # System -> ``"system"``, ``"model"``, ``"baseline"``, ``"leaking"`` or ``"control"``, in the order of the tables.
    roles: dict[str, str]
    # System -> its pairs: ``item``, ``group``, ``reference`` ...; ``error`` where it could not be judged.
    pairs: dict[str, list[dict[str, Any]]]
    # (item, system) -> metric -> score row. Where a system has several seeds, ``value`` is their mean and ``values``
    # holds them.
    scores: dict[tuple[str, str], dict[str, dict[str, Any]]]
    # One dict a failed result: item, system, metric (None for all), error; where there are seeds, the seed.
    failures: list[dict[str, Any]] = dataclasses.field(default_factory=list)
    notes: dict[tuple[str, str], list[str]] = dataclasses.field(default_factory=dict)  # (item, system) -> remarks
    # Content of a file -> what can be drawn of it.
    outlines: dict[str, dict[str, Any]] = dataclasses.field(default_factory=dict)
    # (item, system) -> where points were lost.
    explanations: dict[tuple[str, str], dict[str, Any]] = dataclasses.field(default_factory=dict)
    # Item -> its row, where items are recorded.
    items: dict[str, dict[str, Any]] = dataclasses.field(default_factory=dict)
    # (item, system) -> what it wrote with each of its seeds, where that is recorded.
    predictions: dict[tuple[str, str], list[Any]] = dataclasses.field(default_factory=dict)
    wall_time_sec: float = 0.0  # of all sittings together
    kernels: tuple[str, ...] = ()  # those that made the scores; see `versions.kernels_of`

    @property
    def systems(self) -> tuple[str, ...]:
        """All systems, in the order of the tables."""
        return tuple(self.roles)

    @property
    def controls(self) -> tuple[str, ...]:
        """Those of the systems that are controls."""
        return tuple(name for name, role in self.roles.items() if role == "control")

    @property
    def judged(self) -> list[str]:
        """Those of the systems that are compared and ranked."""
        return [name for name, role in self.roles.items() if role not in OUTSIDE]

    @property
    def names(self) -> tuple[str, ...]:
        """Metrics and companions."""
        return (*self.header["metrics"], *self.header["companions"])

    def value(self, item: str, system: str, metric: str) -> float:
        """Return a score; NaN where it is undefined or failed."""
        value = self.scores.get((item, system), {}).get(metric, {}).get("value")
        return math.nan if value is None else float(value)

    def values(self, items: Sequence[str], system: str, metric: str) -> Floats:
        """Return the score of each item, the mean over its seeds, shape (n,)."""
        return np.array([self.value(item, system, metric) for item in items], dtype=np.float64)

    def by_seed(self, items: Sequence[str], system: str, metric: str) -> Floats:
        """Return the scores of each seed, shape (seeds, n); no row where none of the items has it."""
        held = [self.scores.get((item, system), {}).get(metric, {}).get("values", ()) for item in items]
        n_seeds = max(map(len, held), default=0)
        return (
            np.array([seeds or (math.nan,) * n_seeds for seeds in held], dtype=np.float64)
            .reshape(len(items), n_seeds)
            .T
        )

    def readable(self, system: str, *, failed: bool = False) -> list[Row]:
        """Return the pairs that were judged, by item; with `failed` those too that were not."""
        pairs = sorted(self.pairs.get(system, []), key=lambda pair: pair["item"])
        return [pair for pair in pairs if failed or "error" not in pair]

    def only(self, items: Collection[str]) -> Found:
        """Return the records of some items."""
        kept = {system: [pair for pair in pairs if pair["item"] in items] for system, pairs in self.pairs.items()}
        return dataclasses.replace(self, pairs=kept)


@reading_rows()
def collect(rows: Sequence[Row], task: ScoreTask) -> Found:
    """Read the rows of a record file; of two rows for one score the later one counts.

    Raises
    ------
    CorruptRecordsError
        The first row is no header, or rows have an unknown form.

    """
    if not rows or rows[0].get("kind") != "run":
        raise CorruptRecordsError("the records do not start with their header; restore the file, or start afresh")
    found = _of_items(rows, task) if "systems" in rows[0] else _of_pairs(rows, task)
    task.finish(found)
    names = task.shown(found)
    header = {key: [name for name in found.header[key] if name in names] for key in ("metrics", "companions")}
    if "systems" not in rows[0]:  # features of items are scores that nobody shows
        shown = {who: {name: row for name, row in held.items() if name in names} for who, held in found.scores.items()}
        found = dataclasses.replace(found, scores=shown, header=found.header | header)
        found.failures.extend(_failures(found))
    return found


def _of_pairs(rows: Sequence[Row], task: ScoreTask) -> Found:
    """Read records whose selections name the pairs."""
    start = max(number for number, row in enumerate(rows) if row["kind"] == "selection")
    pairs: dict[str, list[dict[str, Any]]] = {}
    for row in rows[start:]:
        if row["kind"] == "pair":
            pairs.setdefault(row["system"], []).append(dict(row))
    keys = {
        (pair["item"], pair["system"], pair["reference"]["content"], pair["estimate"]["content"])
        for pair in itertools.chain(*pairs.values())
        if "error" not in pair
    }
    scores: dict[tuple[str, str], dict[str, dict[str, Any]]] = {}
    reported: dict[str, dict[tuple[str, str], dict[str, Any]]] = {"remarks": {}, "explanation": {}}
    for row in rows:
        if row["kind"] not in {"score", *reported} or (row["item"], row["system"], *row["content"]) not in keys:
            continue
        who = row["item"], row["system"]
        if row["kind"] == "score":
            scores.setdefault(who, {})[row["metric"]] = dict(row)
        else:
            reported[row["kind"]][who] = dict(row)
    systems = list(rows[start]["systems"])
    # records of before a control had its name may hold a system that was called so
    controls = [name for name in task.controls if name in pairs and name not in systems]
    return Found(
        header=dict(rows[0]),
        roles=dict.fromkeys(systems, "system") | dict.fromkeys(controls, "control"),
        pairs=pairs,
        scores=scores,
        notes={who: list(row["notes"]) for who, row in reported["remarks"].items()},
        outlines={row["content"]: dict(row) for row in rows if row["kind"] == "outline"},
        explanations=reported["explanation"],
        wall_time_sec=_wall_time(rows),
        kernels=tuple(kernels_of(rows)),
    )


def _of_items(rows: Sequence[Row], task: ScoreTask) -> Found:
    """Read records whose header names the systems with their seeds: each is judged on every item."""
    header = dict(rows[0])
    seeds: dict[str, dict[int, int]] = {
        name: {seed: place for place, seed in enumerate(held["seeds"])} for name, held in header["systems"].items()
    }
    recorded = [row for row in rows if row["kind"] == "item"]
    items = {row["item"]: dict(row) for row in recorded if "error" not in row}
    latest = {(row["system"], row["item"], row["metric"], row["seed"]): row for row in rows if row["kind"] == "score"}
    predictions: dict[tuple[str, str], list[Any]] = {
        (item, name): [None] * len(places) for name, places in seeds.items() for item in items
    }
    for row in rows:
        if row["kind"] == "prediction":
            predictions[row["item"], row["system"]][seeds[row["system"]][row["seed"]]] = row["middle"]
    values: dict[tuple[str, str], dict[str, list[float]]] = {who: {} for who in predictions}
    errors: dict[tuple[str, str, int, str | None], str] = {}
    for (system, item, metric, seed), row in latest.items():
        place = seeds[system][seed]
        held = values[item, system].setdefault(metric, [math.nan] * len(seeds[system]))
        held[place] = math.nan if row.get("value") is None else float(row["value"])
        if "error" in row:
            # without a prediction every metric of it fails, for one reason; what needs none has its own
            alone = metric in task.without_prediction
            errors[item, system, seed, metric if alone else None] = row["error"]
            if not alone:  # a chunk that is tried again may fail on an item that it had a prediction for
                predictions[item, system][place] = None
    pairs = {name: [_pair_of_item(row, name, predictions[item, name]) for item, row in items.items()] for name in seeds}
    complete = {(pair["item"], name) for name, made in pairs.items() for pair in made if "error" not in pair}
    broken = [(row["item"], None, None, None, row["error"]) for row in recorded if "error" in row]
    failed = [*broken, *((*who, error) for who, error in errors.items())]
    metrics = [name for name in task.scales if name not in task.without_prediction]
    metrics += [name for name in task.without_prediction if any(name in held for held in values.values())]
    return Found(
        header=header | {"metrics": [name for name in task.scales if name in metrics], "companions": []},
        roles={name: held["role"] for name, held in header["systems"].items()},
        pairs=pairs,
        scores={
            who: {
                metric: {"values": tuple(column), "value": _mean(column)}
                for metric, column in held.items()
                if who in complete or metric in task.without_prediction
            }
            for who, held in values.items()
        },
        failures=[dict(zip(("item", "system", "seed", "metric", "error"), row, strict=True)) for row in failed],
        items=items,
        predictions=predictions,
        wall_time_sec=_wall_time(rows),
        kernels=tuple(kernels_of(rows)),
    )


def _pair_of_item(item: Row, system: str, predictions: Sequence[Any]) -> dict[str, Any]:
    """Return the pair that an item and a system make; it has an error unless there is a prediction of every seed."""
    side = {"name": item["item"], "content": item["item"]}
    pair = {"item": item["item"], "system": system, "group": item["song"], "entrance": "item", "reference": side}
    return pair if all(made is not None for made in predictions) else pair | {"error": "no prediction of every seed"}


def _mean(column: Sequence[float]) -> float | None:
    """Return the mean over the seeds that define a score."""
    defined = [value for value in column if not math.isnan(value)]
    return sum(defined) / len(defined) if defined else None


def _wall_time(rows: Sequence[Row]) -> float:
    return float(sum(row["wall_time_sec"] for row in rows if row["kind"] == "sitting"))


def build_results(
    found: Found,
    task: ScoreTask,
    validation: Found | None = None,
    *,
    confidence: float = 0.95,
    n_resamples: int = 1000,
    seed: int = 0,
) -> dict[str, Any]:
    """Return the content of results.json.

    Parameters
    ----------
    found
        From `collect`.
    task
        What this benchmark hands in.
    validation
        Records of the baselines on what the best of them are chosen on; None makes no tests against them.
    confidence, n_resamples, seed
        Of the intervals; the tests take ten times as many resamples.

    Returns
    -------
    dict
        What the header says; ``kernels`` that made the scores; ``wording``: what the tables call things;
        ``intervals``; ``scales``: metric -> facet, range, direction, title; ``systems``: name -> ``role``,
        ``entrances``, ``n_pairs``, ``n_groups`` and what the header says of it; what `aggregate.table` gives, or for a
        task with views ``tables``: view -> the same;
        ``failures``, ``undefined`` and ``notes`` with their reasons; ``published``. A task that ranks has also
        ``ranked_by``, ``best_baseline`` (metric -> system) and ``best_baseline_chosen_on``. Undefined numbers are
        None. Equal records give equal results, whatever their order.

    """
    draws = aggregate.Draws(confidence, n_resamples, seed)
    systems = {name: {**found.header.get("systems", {}).get(name, {}), **_about(found, name)} for name in found.systems}
    scales = {name: task.scale(name) for name in found.names}
    notes = [
        {"item": item, "system": system, "notes": reported}
        for (item, system), reported in sorted(found.notes.items())
        if system not in found.controls
    ]
    best = {} if validation is None else aggregate.best_baselines(validation, task)
    views = task.views(found)
    tables = {name: aggregate.table(found.only(items), task, best, draws) for name, items in views.items()}
    ranked = {
        "ranked_by": task.ranked_by,
        "best_baseline": best,
        "best_baseline_chosen_on": None if validation is None else validation.header["dataset"],
    }
    results = {
        **{key: value for key, value in found.header.items() if key != "kind"},
        "kernels": list(dict.fromkeys([*found.kernels, *(validation.kernels if validation else ())])),
        "wording": {
            "title": task.title,
            "how": task.how(found.header),
            "items": task.items,
            "groups": task.groups,
            "remarks": task.remarks,
            "controls": task.controls_explained,
            "explained": task.explained,
            "views": {name: task.view_titles[name] for name in views},
            "on_controls": list(task.on_controls(systems)),
            "on_remarks": list(task.on_remarks(notes)),
        },
        "intervals": {
            "confidence": confidence,
            "n_resamples": n_resamples,
            "seed": seed,
            "clusters": task.groups.removesuffix("s"),
        },
        "scales": {name: _scale(scale, companion=name in task.companions) for name, scale in scales.items()},
        "systems": systems,
        **(ranked if task.ranked_by else {}),
        **({"tables": tables} if views else aggregate.table(found, task, best, draws)),
        "failures": found.failures,
        "undefined": list(_undefined(found)),
        "notes": notes,
        "published": task.published(found.header),
    }
    content: dict[str, Any] = plain(results)
    return content


def _scale(scale: Metric, *, companion: bool) -> dict[str, Any]:
    kept = ("facet", "low", "high", "direction", "best")
    return {key: getattr(scale, key) for key in kept} | {"title": scale.heading, "companion": companion}


def _about(found: Found, system: str) -> dict[str, Any]:
    pairs = found.pairs.get(system, [])
    readable = [pair for pair in pairs if "error" not in pair]
    return {
        "role": found.roles[system],
        "entrances": sorted({pair["entrance"] for pair in readable}),
        "n_pairs": len(pairs),
        "n_groups": len({pair["group"] for pair in readable}),
    }


def _failures(found: Found) -> Iterable[dict[str, Any]]:
    """Yield what failed; a pair of which every score failed for one reason is one failure."""
    for system in found.systems:
        for pair in found.pairs.get(system, []):
            who = {"item": pair["item"], "system": system}
            if "error" in pair:
                yield {**who, "metric": None, "error": pair["error"]}
                continue
            scores = found.scores.get((pair["item"], system), {})
            errors = {name: row["error"] for name, row in scores.items() if "error" in row}
            if len(errors) == len(found.names) and len(set(errors.values())) == 1:
                yield {**who, "metric": None, "error": next(iter(errors.values()))}
                continue
            yield from ({**who, "metric": name, "error": errors[name]} for name in found.names if name in errors)


def _undefined(found: Found) -> Iterable[dict[str, Any]]:
    for system in found.systems:
        for pair in found.pairs.get(system, []):
            for name, row in found.scores.get((pair["item"], system), {}).items():
                if "error" not in row and row["value"] is None and "reason" in row:
                    yield {"item": pair["item"], "system": system, "metric": name, "reason": row["reason"]}
