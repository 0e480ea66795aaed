"""What systems scored, read from the records of any benchmark and put together as the content of results.json.

A score of a system is the mean over the items that define it; `n` counts all its items, `n_failed` those without a
score for this metric because something failed, `n_defined` those in the mean. The interval is clustered by group. What
differs between benchmarks is said by its `task.Task`; the statistics stand in `aggregate`.
"""

from __future__ import annotations

import dataclasses
import importlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from music_evals.benchmark import aggregate
from music_evals.benchmark.formats import plain
from music_evals.benchmark.score_table import MOST_LISTED, ScoreTable
from music_evals.deprecation import warn_renamed
from music_evals.metrics.catalogue import Metric

if TYPE_CHECKING:
    from music_evals.benchmark.task import Task

__all__ = ["WHOLE", "build_results"]

WHOLE = "all"
"""The view that holds every item."""

Row = Mapping[str, Any]
Key = TypeVar("Key")

_OLD_FIELDS = {
    "how": "describe_run", "about": "describe_systems", "published": "published_scores", "facets": "facet_scores",
    "sides": "paired_groups", "finish": "check_scores", "shown": "shown_metrics", "not_given": "missing_scores",
    "on_controls": "control_notes", "on_remarks": "remark_notes", "on_parts": "part_notes",
}  # fmt: skip
"""Field of a `ScoreTask` of the last release -> the method of `task.Task` in place of it."""


def __getattr__(name: str) -> Any:
    if name == "OUTSIDE":
        warn_renamed(f"{__name__}.OUTSIDE", "benchmark.score_table.OUTSIDE")
        return importlib.import_module("music_evals.benchmark.score_table").OUTSIDE
    if name != "ScoreTask":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    warn_renamed(f"{__name__}.ScoreTask", "benchmark.task.Task, and a task is a subclass of it,")
    return _score_task


def _score_task(**fields: Any) -> Task:
    """Return a task out of the fields of a `ScoreTask`."""
    base = importlib.import_module("music_evals.benchmark.task").Task  # which stands above this module
    own = {name: staticmethod(value) if callable(value) else value for name, value in fields.items()}
    task: Task = type("ScoreTask", (base,), {_OLD_FIELDS.get(name, name): value for name, value in own.items()})()
    return task


def build_results(
    scores: ScoreTable,
    task: Task,
    validation: ScoreTable | None = None,
    *,
    confidence: float = 0.95,
    n_resamples: int = 1000,
    seed: int = 0,
) -> dict[str, Any]:
    """Return the content of results.json.

    Parameters
    ----------
    scores
        From `scores.read_scores`.
    task
        The benchmark.
    validation
        Records of the baselines on what the best of them are chosen on; None makes no tests against them.
    confidence
        Nominal coverage of the intervals.
    n_resamples, seed
        Of what is drawn: the intervals and noise floors of divergences, and the tests of differences, which take ten
        times as many resamples. Intervals of means draw nothing.

    Returns
    -------
    dict
        What the header says; ``kernels`` that made the scores; ``wording``: what the tables call things;
        ``intervals``; ``scales``: metric -> facet, range, direction, title; ``systems``: name -> ``role``,
        ``entrances``, ``n_pairs``, ``n_groups`` and what header and task say of it; ``facets``, where the task sums
        them up, and ``plane``, where it sets one against the others; what `aggregate.table_of_scores` gives, or for a
        task with views ``tables``: view -> the same; for a task with parts ``parts``: part -> ``n_items``, ``n_songs``
        and ``scores``, system -> the score that ranks;
        ``failures``, ``undefined`` and ``notes`` with their reasons, no more than `MOST_LISTED` of each; ``unlisted``,
        where there are more: how many are left out, by system, score and reason; ``published``. A task that ranks has
        also ``ranked_by``, ``best_baseline`` (metric -> system) and ``best_baseline_chosen_on``. Undefined numbers are
        None. Equal records give equal results, whatever their order.
    """
    resampling = aggregate.Resampling(confidence, n_resamples, seed)
    more = task.describe_systems(scores)
    systems = {
        name: {**scores.header.get("systems", {}).get(name, {}), **_about(scores, name), **more.get(name, {})}
        for name in scores.systems
    }
    facets = task.facet_scores(scores, confidence=confidence)
    plane = task.plane(scores, **resampling._asdict()) if task.across in scores.metrics else {}
    scales = {name: task.scale(name) for name in scores.metrics}
    undefined, n_undefined = scores.undefined()
    best = {} if validation is None else aggregate.best_baselines(validation, task)
    views = task.views(scores)
    tables = {
        name: aggregate.table_of_scores(scores.only(items), task, best, resampling) for name, items in views.items()
    }
    parts = {name: _part(scores, task, items, resampling) for name, items in task.parts(scores).items()}
    ranked = {
        "ranked_by": task.ranked_by,
        "best_baseline": best,
        "best_baseline_chosen_on": None if validation is None else validation.header["dataset"],
    }
    results = {
        **{key: value for key, value in scores.header.items() if key != "kind"},
        "kernels": list(dict.fromkeys([*scores.matrix.kernels, *(validation.matrix.kernels if validation else ())])),
        "wording": _wording(task, scores, systems, views, parts),
        "intervals": {**resampling._asdict(), "clusters": task.groups.removesuffix("s")},
        "scales": {
            name: _scale(scale, scores.header, is_auxiliary=name in task.auxiliary) for name, scale in scales.items()
        },
        "systems": systems,
        **(ranked if task.ranked_by else {}),
        **({"tables": tables} if views else aggregate.table_of_scores(scores, task, best, resampling)),
        **{key: held for key, held in {"parts": parts, "facets": facets, "plane": plane}.items() if held},
        "failures": list(scores.failures),
        "undefined": undefined,
        "notes": list(scores.remarks[:MOST_LISTED]),
        **_unlisted(scores, undefined, n_undefined),
        "published": task.published_scores(scores.header),
    }
    content: dict[str, Any] = plain(results)
    return content


def _wording(
    task: Task, scores: ScoreTable, systems: Mapping[str, Any], views: Iterable[str], parts: Mapping[str, Any]
) -> dict[str, Any]:
    """Return what the tables call things."""
    return {
        "title": task.title,
        "how": task.describe_run(scores.header),
        "items": task.items,
        "groups": task.groups,
        "remarks": task.remarks,
        "controls": task.controls_explained,
        "explained": task.explained,
        "views": {name: task.view_titles[name] for name in views},
        "on_controls": list(task.control_notes(systems)),
        "on_remarks": list(task.remark_notes(scores.remarks)),
        "on_parts": list(task.part_notes(parts)),
    }


def definition_in(header: Row, name: str) -> int:
    """Return by which definition the run of a header, or of its results, computed a score."""
    return int(header.get("definitions", {}).get(name, 1))


def _part(scores: ScoreTable, task: Task, items: Collection[str], resampling: aggregate.Resampling) -> dict[str, Any]:
    """Return ``n_items``, ``n_songs`` and, for each system, the score that ranks, over some items."""
    ranking = dataclasses.replace(scores.only(items), header=scores.header | {"metrics": [task.ranked_by]})
    table = aggregate.table_of_scores(ranking, task, {}, resampling)
    cells = {system: own[task.ranked_by] for system, own in table["scores"].items()}
    return {"n_items": table["n_items"], "n_songs": table["n_songs"], "scores": cells}


def _scale(scale: Metric, header: Row, *, is_auxiliary: bool) -> dict[str, Any]:
    fields = ("facet", "low", "high", "direction", "best")
    definition = definition_in(header, scale.name)
    title = scale.heading_of(str(header.get("variant")), definition)
    about = {"title": title, "definition": definition, "companion": is_auxiliary}
    return {key: getattr(scale, key) for key in fields} | about


def _about(scores: ScoreTable, system: str) -> dict[str, Any]:
    pairs = scores.of(system)
    readable = pairs.take(~pairs.failed)
    return {
        "role": scores.roles[system],
        "entrances": sorted(set(readable.text("modality"))),
        "n_pairs": len(pairs),
        "n_groups": aggregate.n_distinct(readable.codes("group")),
    }


def _unlisted(
    scores: ScoreTable, undefined: Sequence[Row], n_undefined: Counter[tuple[str, str, str]]
) -> dict[str, Any]:
    """Return the key ``unlisted``, which counts what the lists of a huge run leave out; nothing where all are whole."""
    failures = Counter(scores.n_failures)
    failures.subtract((row["system"], row["metric"]) for row in scores.failures)
    reasons: Counter[tuple[str, str, str]] = Counter()
    if len(undefined) == MOST_LISTED:
        reasons = n_undefined.copy()
        reasons.subtract((row["system"], row["metric"], row["reason"]) for row in undefined)
    remarks: Counter[str] = Counter()
    n_remarks = max(0, len(scores.remarks) - MOST_LISTED)
    if n_remarks:
        remarks = Counter(note for row in scores.remarks for note in row["notes"])
        remarks.subtract(note for row in scores.remarks[:MOST_LISTED] for note in row["notes"])
    unlisted = {
        "failures": [{"system": who[0], "metric": who[1], "n": n} for who, n in (+failures).items()],
        "undefined": [
            {"system": system, "metric": metric, "reason": reason, "n": n}
            for (system, metric, reason), n in _commonest(reasons, lambda key: (*key[:2], "other reasons"))
        ],
        "notes": [{"note": note, "n": n} for note, n in _commonest(remarks, lambda _: "other remarks")],
        "n_notes": n_remarks,
    }
    return {"unlisted": unlisted} if any(unlisted.values()) else {}


def _commonest(counts: Counter[Key], rest: Callable[[Key], Key]) -> list[tuple[Key, int]]:
    """Return what was counted, the commonest kinds by themselves and the others together under other names."""
    kinds = (+counts).most_common()
    others: Counter[Key] = Counter()
    for key, n in kinds[MOST_LISTED:]:
        others[rest(key)] += n
    return [*kinds[:MOST_LISTED], *others.items()]
