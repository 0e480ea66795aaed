"""What systems scored, summed up: means, intervals, comparisons of systems. Made from records alone, for any benchmark.

A score of a system is the mean over the items that define it; `n` counts all its items, `n_failed` those without a
score for this metric because something failed, `n_defined` those in the mean. The interval is clustered by group.

Systems are compared two by two on the items that they share and that have the same reference: a permutation test that
swaps the two within whole groups, with Holm's correction over all tests of the table. Best at a metric is who defines
it for as many of the items that all share as any other, and is beaten by nobody: what leaves the hard items out wins
nothing. The controls are never compared: they show where a metric begins and ends.

What differs between benchmarks is handed in as a `ScoreTask`.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from music_evals.benchmark.cells import plain
from music_evals.benchmark.records import reading_rows
from music_evals.benchmark.versions import kernels_of
from music_evals.errors import UnknownNameError
from music_evals.metrics.catalogue import Metric
from music_evals.stats import bootstrap_means, holm, paired_mean_test

__all__ = ["Found", "ScoreTask", "build_results", "collect"]

TESTS_PER_RESAMPLE = 10
"""Permutations for each resample: the smallest p-values need more of them than the ends of an interval."""

TIE = 1e-9
"""Means that differ by less are equal."""

Row = Mapping[str, Any]
Floats = npt.NDArray[np.float64]


def _nothing_published(_: Sequence[str]) -> dict[str, Any]:
    return {"source": "", "table": {}, "differences": {}}


def _nothing_to_say(_: Any) -> Iterable[str]:
    return ()


def _as_they_are(_: Found) -> None:
    pass


def _all_scores(found: Found) -> Sequence[str]:
    return found.names


@dataclasses.dataclass(frozen=True)
class ScoreTask:
    """What one benchmark hands to the results, tables and pages that all share.

    Parameters
    ----------
    name
        The task in the header of its records.
    title
        Of its report, before the name of the dataset.
    scales
        Metric or companion -> its scale.
    controls
        Systems of our own that stand outside of all comparisons.
    controls_explained
        A sentence or two on what they are, for below the tables.
    how
        Header -> what the scores were made with, in a few words.
    companions
        Scores that get tables of their own.
    published
        Metrics of the run -> ``source``, ``table`` (system -> metric -> value), ``differences`` (what -> why) and,
        where it is printed, ``spread`` (system -> metric -> standard deviation).
    items
        What is counted, as ``"pairs"``.
    remarks
        What remarks are about, as ``"lengths that differ"``.
    on_controls
        ``systems`` of the results -> what a reader should know of the controls.
    on_remarks
        ``notes`` of the results -> what a reader should know of the remarks, beside their number.
    shown
        Records -> the scores out of their header that results are made of, by default all.
    finish
        Changes records that were read, e.g. the groups of pairs.
    beside
        Keys of results.json that are made of other files than the records.

    """

    name: str
    title: str
    scales: Mapping[str, Metric]
    controls: tuple[str, ...]
    controls_explained: str
    how: Callable[[Mapping[str, Any]], str]
    companions: Collection[str] = ()
    published: Callable[[Sequence[str]], dict[str, Any]] = _nothing_published
    items: str = "pairs"
    remarks: str = "lengths that differ"
    on_controls: Callable[[Mapping[str, Mapping[str, Any]]], Iterable[str]] = _nothing_to_say
    on_remarks: Callable[[Sequence[Mapping[str, Any]]], Iterable[str]] = _nothing_to_say
    shown: Callable[[Found], Sequence[str]] = _all_scores
    finish: Callable[[Found], None] = _as_they_are
    beside: tuple[str, ...] = ()

    def scale(self, name: str) -> Metric:
        """Return the scale of a metric or companion.

        Raises
        ------
        UnknownNameError
            This benchmark has no such score.

        """
        if name not in self.scales:
            kind = f"score of {self.name}"
            raise UnknownNameError(kind, name, self.scales)
        return self.scales[name]


@dataclasses.dataclass(frozen=True, eq=False)
class Found:
    """The records of a run, those of its last selection.

    Attributes
    ----------
    header
        The run row.
    systems
        Systems in their order, then the controls.
    controls
        Those of the systems that are controls.
    pairs
        System -> its pair rows.
    scores
        (item, system) -> metric -> score row.
    notes
        (item, system) -> remarks.
    outlines
        Content of a file -> what can be drawn of it.
    explanations
        (item, system) -> where points were lost.
    wall_time_sec
        Of all sittings together.
    kernels
        Those that made the scores; see `versions.kernels_of`.

    """

    header: dict[str, Any]
    systems: tuple[str, ...]
    controls: tuple[str, ...]
    pairs: dict[str, list[dict[str, Any]]]
    scores: dict[tuple[str, str], dict[str, dict[str, Any]]]
    notes: dict[tuple[str, str], list[str]]
    outlines: dict[str, dict[str, Any]]
    explanations: dict[tuple[str, str], dict[str, Any]]
    wall_time_sec: float
    kernels: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """Metrics and companions."""
        return (*self.header["metrics"], *self.header["companions"])

    def value(self, item: str, system: str, metric: str) -> float:
        """Return a score; NaN where it is undefined or failed."""
        value = self.scores.get((item, system), {}).get(metric, {}).get("value")
        return math.nan if value is None else float(value)


@reading_rows()
def collect(rows: Sequence[Row], task: ScoreTask) -> Found:
    """Read the rows of a record file; of two rows for one score the later one counts."""
    header = dict(rows[0])
    selection, pairs = _selected(rows)
    keys = {
        (pair["item"], pair["system"], pair["reference"]["content"], pair["estimate"]["content"])
        for pair in itertools.chain(*pairs.values())
        if "error" not in pair
    }
    scores: dict[tuple[str, str], dict[str, dict[str, Any]]] = {}
    told: dict[str, dict[tuple[str, str], dict[str, Any]]] = {"remarks": {}, "explanation": {}}
    for row in rows:
        if row["kind"] not in {"score", *told} or (row["item"], row["system"], *row["content"]) not in keys:
            continue
        who = row["item"], row["system"]
        if row["kind"] == "score":
            scores.setdefault(who, {})[row["metric"]] = dict(row)
        else:
            told[row["kind"]][who] = dict(row)
    # records of before a control had its name may hold a system that was called so
    controls = tuple(name for name in task.controls if name in pairs and name not in selection["systems"])
    found = Found(
        header=header,
        systems=(*selection["systems"], *controls),
        controls=controls,
        pairs=pairs,
        scores=scores,
        notes={who: list(row["notes"]) for who, row in told["remarks"].items()},
        outlines={row["content"]: dict(row) for row in rows if row["kind"] == "outline"},
        explanations=told["explanation"],
        wall_time_sec=sum(row["wall_time_sec"] for row in rows if row["kind"] == "sitting"),
        kernels=tuple(kernels_of(rows)),
    )
    task.finish(found)
    return _restricted(found, task.shown(found))


def _restricted(found: Found, names: Sequence[str]) -> Found:
    """Leave out the scores that the benchmark does not show."""
    header = {key: [name for name in found.header[key] if name in names] for key in ("metrics", "companions")}
    scores = {who: {name: row for name, row in told.items() if name in names} for who, told in found.scores.items()}
    return dataclasses.replace(found, header=found.header | header, scores=scores)


def _selected(rows: Sequence[Row]) -> tuple[Row, dict[str, list[dict[str, Any]]]]:
    start = max(number for number, row in enumerate(rows) if row["kind"] == "selection")
    pairs: dict[str, list[dict[str, Any]]] = {}
    for row in rows[start:]:
        if row["kind"] == "pair":
            pairs.setdefault(row["system"], []).append(dict(row))
    return rows[start], pairs


def build_results(
    found: Found, task: ScoreTask, *, confidence: float = 0.95, n_resamples: int = 1000, seed: int = 0
) -> dict[str, Any]:
    """Return the content of results.json.

    Parameters
    ----------
    found
        From `collect`.
    task
        What this benchmark hands in.
    confidence, n_resamples, seed
        Of the intervals; the tests take ten times as many resamples.

    Returns
    -------
    dict
        What the header says; ``kernels`` that made the scores; ``wording``: what the tables call things;
        ``intervals``; ``scales``: metric -> facet, range, direction, title; ``systems``: name -> ``role``
        (``"system"`` or ``"control"``), ``entrances``,
        ``n_pairs``, ``n_groups``; ``scores``: system -> metric -> ``value``, ``low``, ``high``, ``n``, ``n_defined``,
        ``n_failed``, ``n_groups`` (of those defined); ``n_shared``: items that all systems were given; ``best``: metric
        -> best systems, several where they are equal, none where systems share no items; ``comparisons``: one dict a
        test; ``failures``, ``undefined`` and ``notes`` with their reasons; ``published``. Undefined numbers are None.
        Equal records give equal results, whatever their order.

    """
    judged = [name for name in found.systems if name not in found.controls]
    scores = {name: _cells(found, name, confidence, n_resamples, seed) for name in found.systems}
    systems = {name: _about(found, name) for name in found.systems}
    scales = {name: task.scale(name) for name in found.names}
    notes = [
        {"item": item, "system": system, "notes": told}
        for (item, system), told in sorted(found.notes.items())
        if system not in found.controls
    ]
    results = {
        **{key: value for key, value in found.header.items() if key != "kind"},
        "kernels": list(found.kernels),
        "wording": {
            "title": task.title,
            "how": task.how(found.header),
            "items": task.items,
            "remarks": task.remarks,
            "controls": task.controls_explained,
            "on_controls": list(task.on_controls(systems)),
            "on_remarks": list(task.on_remarks(notes)),
        },
        "intervals": {"confidence": confidence, "n_resamples": n_resamples, "seed": seed, "clusters": "group"},
        "scales": {name: _scale(scale, companion=name in task.companions) for name, scale in scales.items()},
        "systems": systems,
        "scores": scores,
        "n_shared": len(_shared_by_all(found, judged)),
        "best": _best(found, scales, judged) if len(judged) > 1 else {},
        "comparisons": _comparisons(found, judged, TESTS_PER_RESAMPLE * n_resamples, seed),
        "failures": list(_failures(found)),
        "undefined": list(_undefined(found)),
        "notes": notes,
        "published": task.published(found.header["metrics"]),
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
        "role": "control" if system in found.controls else "system",
        "entrances": sorted({pair["entrance"] for pair in readable}),
        "n_pairs": len(pairs),
        "n_groups": len({pair["group"] for pair in readable}),
    }


def _cells(found: Found, system: str, confidence: float, n_resamples: int, seed: int) -> dict[str, dict[str, Any]]:
    pairs = sorted(found.pairs.get(system, []), key=lambda pair: pair["item"])
    readable = [pair for pair in pairs if "error" not in pair]
    values = np.array(
        [[found.value(pair["item"], system, name) for name in found.names] for pair in readable], dtype=np.float64
    ).reshape(len(readable), len(found.names))
    groups = np.array([pair["group"] for pair in readable], dtype=str)
    intervals = bootstrap_means(values, groups, confidence=confidence, n_resamples=n_resamples, seed=seed)
    failed = {name: sum(_failed(found, pair, name) for pair in pairs) for name in found.names}
    return {
        name: {
            "value": interval.estimate,
            "low": interval.low,
            "high": interval.high,
            "n": len(pairs),
            "n_defined": interval.n_defined,
            "n_failed": failed[name],
            "n_groups": len(set(groups[~np.isnan(column)])),
        }
        for name, interval, column in zip(found.names, intervals, values.T, strict=True)
    }


def _failed(found: Found, pair: Row, metric: str) -> bool:
    score = found.scores.get((pair["item"], pair["system"]), {}).get(metric, {})
    return "error" in pair or "value" not in score


def _best(found: Found, scales: Mapping[str, Metric], judged: Sequence[str]) -> dict[str, list[str]]:
    """Return metric -> the best of those who define it for the most items: nobody wins by failing on what is hard."""
    items = _shared_by_all(found, judged)
    best: dict[str, list[str]] = {}
    for name in found.names:
        values = {system: np.array([found.value(item, system, name) for item in items]) for system in judged}
        counts = {system: np.count_nonzero(~np.isnan(column)) for system, column in values.items()}
        winners = [
            system
            for system in judged
            if 0 < counts[system] == max(counts.values())
            and not any(_beats(scales[name].direction, values[other], values[system]) for other in judged)
        ]
        if winners:
            best[name] = winners
    return best


def _shared_by_all(found: Found, judged: Sequence[str]) -> list[str]:
    """Return the items that every system was given, with the same original where it could be read."""
    given = [{pair["item"] for pair in found.pairs.get(system, [])} for system in judged]
    originals: dict[str, set[str]] = {}
    for system in judged:
        for pair in found.pairs.get(system, []):
            if "error" not in pair:
                originals.setdefault(pair["item"], set()).add(pair["reference"]["content"])
    shared = set.intersection(*given) if given else set()
    return sorted(item for item in shared if len(originals.get(item, ())) == 1)


def _beats(direction: str, first: Floats, second: Floats) -> bool:
    """Tell whether the first mean is better, over the items that both define."""
    both = ~(np.isnan(first) | np.isnan(second))
    if not both.any():
        return False
    return _merit(direction, float(first[both].mean())) > _merit(direction, float(second[both].mean())) + TIE


def _merit(direction: str, value: float) -> float:
    """Return a number that is larger for a better score."""
    return value if direction == "higher" else -value if direction == "lower" else -abs(value)


def _comparisons(found: Found, judged: Sequence[str], n_resamples: int, seed: int) -> list[dict[str, Any]]:
    tests: list[dict[str, Any]] = []
    for a, b in itertools.combinations(judged, 2):
        items, groups = _shared(found, a, b)
        if not items:
            continue
        for name in found.names:
            first, second = ([found.value(item, system, name) for item in items] for system in (a, b))
            made = paired_mean_test(np.array(first), np.array(second), groups, n_resamples=n_resamples, seed=seed)
            tests.append({"a": a, "b": b, "metric": name, **made._asdict()})
    for test, p_holm in zip(tests, holm([test["p_value"] for test in tests]), strict=True):
        test["p_holm"] = float(p_holm)
    return tests


def _shared(found: Found, a: str, b: str) -> tuple[list[str], npt.NDArray[np.str_]]:
    """Return the items that two systems made of the same original, and their groups."""
    sides = [{pair["item"]: pair for pair in found.pairs.get(system, []) if "error" not in pair} for system in (a, b)]
    items = [
        item
        for item in sorted(sides[0].keys() & sides[1].keys())
        if sides[0][item]["reference"]["content"] == sides[1][item]["reference"]["content"]
    ]
    return items, np.array([sides[0][item]["group"] for item in items], dtype=str)


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
                if "error" not in row and row["value"] is None:
                    yield {"item": pair["item"], "system": system, "metric": name, "reason": row["reason"]}
