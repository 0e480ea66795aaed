"""What systems scored, read from the records of any benchmark and put together as the content of results.json.

A score of a system is the mean over the items that define it; `n` counts all its items, `n_failed` those without a
score for this metric because something failed, `n_defined` those in the mean. The interval is clustered by group. What
differs between benchmarks is handed in as a `ScoreTask`; the statistics stand in `aggregate`.

The records are read by `scores.read_scores` as a `ScoreTable`.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from music_evals.benchmark import aggregate
from music_evals.benchmark.cells import plain
from music_evals.benchmark.scores import MOST_LISTED, OUTSIDE, HistogramFeature, ScoreTable
from music_evals.benchmark.versions import definition_in
from music_evals.errors import UnknownNameError
from music_evals.metrics.catalogue import Metric

__all__ = ["OUTSIDE", "WHOLE", "ScoreTable", "ScoreTask", "build_results"]

WHOLE = "all"
"""The view that holds every item."""

Row = Mapping[str, Any]
Key = TypeVar("Key")


def _nothing_published(_: Mapping[str, Any]) -> dict[str, Any]:
    return {"source": "", "table": {}, "differences": {}}


def _all_scores(scores: ScoreTable) -> Sequence[str]:
    return scores.metrics


def _none(*_: Any) -> None:
    """Change nothing, and know of nothing."""


def _empty(*_: Any, **__: Any) -> dict[str, Any]:
    """Return what stands where a task has nothing to say, by name."""
    return {}


@dataclasses.dataclass(frozen=True)
class ScoreTask:
    """What one benchmark hands to the results, tables and pages that all share."""

    name: str  # the task in the header of its records
    title: str  # of its report, before the name of the dataset
    scales: Mapping[str, Metric]  # main or auxiliary metric -> its scale, in the order of the tables
    # Systems of our own that stand outside of all comparisons; the first has the distributions that divergences compare
    # with.
    controls: tuple[str, ...]
    controls_explained: str  # A sentence or two on what they are, for below the tables
    how: Callable[[Mapping[str, Any]], str]  # header -> what the scores were made with, in a few words
    auxiliary: Collection[str] = ()  # auxiliary metrics: they get tables of their own
    # Header -> ``source``, ``table`` (system -> metric -> value), ``differences`` (what -> why) and, where it is
    # printed, ``spread`` (system -> metric -> standard deviation).
    published: Callable[[Mapping[str, Any]], dict[str, Any]] = _nothing_published
    items: str = "pairs"  # what is counted, as ``"pairs"`` of ``"groups"``
    groups: str = "groups"
    remarks: str = "lengths that differ"  # what remarks are about, as ``"lengths that differ"``
    # Records -> what else is known of systems, by name; ``note`` stands beside the name.
    about: Callable[[ScoreTable], Mapping[str, Mapping[str, Any]]] = _empty
    # Records and a system -> the groups of both sides of its pairs that could be read, shape (n, 2), where the other
    # side is of a group too; None where it is not.
    sides: Callable[[ScoreTable, str], npt.NDArray[np.int64] | None] = _none
    # Records and the confidence of intervals -> one score a facet, as `tables.facet_blocks` shows them, with remarks.
    facets: Callable[..., Mapping[str, Any]] = _empty
    # ``systems`` of the results -> what a reader should know of the controls.
    on_controls: Callable[[Mapping[str, Mapping[str, Any]]], Iterable[str]] = _empty
    # ``notes`` of the results -> what a reader should know of the remarks, beside their number.
    on_remarks: Callable[[Sequence[Mapping[str, Any]]], Iterable[str]] = _empty
    # Records -> the scores out of their header that results are made of, by default all.
    shown: Callable[[ScoreTable], Sequence[str]] = _all_scores
    # Changes records that were read, e.g. the groups of pairs, or refuses them.
    finish: Callable[[ScoreTable], None] = _none
    extra_keys: tuple[str, ...] = ()  # keys of results.json that are made of other files than the records
    # Score of a whole set of items -> the recorded feature of items whose distribution it compares with the control's.
    divergences: Mapping[str, str] = dataclasses.field(default_factory=dict)
    # Score of a whole set of items -> a feature of which an item has many values, compared with the control's too.
    histogram_features: Mapping[str, HistogramFeature] = dataclasses.field(default_factory=dict)
    on_request: Collection[str] = ()  # scores that are shown only where they were asked for, and the records hold them
    # Scores that a system has although it failed to predict; they are compared with nobody.
    without_prediction: Collection[str] = ()
    # Header -> what an item scores for which no prediction was given, by score: the worst. At scores that are not named
    # it counts nowhere.
    not_given: Callable[[Mapping[str, Any]], Mapping[str, float]] = _empty
    # The score that ranks. Systems are then tested against the best baseline of each score, which is chosen on the
    # validation records, and not two by two.
    ranked_by: str = ""
    # Records -> items of each part that gets tables of its own, by name; `WHOLE` first. None has one table for all.
    views: Callable[[ScoreTable], Mapping[str, Collection[str]]] = _empty
    view_titles: Mapping[str, str] = dataclasses.field(default_factory=dict)  # view -> what it holds, in words
    explained: str = ""  # sentences on the scores, for below the tables
    # Records -> items of each part for which the score that ranks is worked out, by its name in words; `WHOLE` first.
    parts: Callable[[ScoreTable], Mapping[str, Collection[str]]] = _empty
    # ``parts`` of the results -> what a reader should know of them.
    on_parts: Callable[[Mapping[str, Mapping[str, Any]]], Iterable[str]] = _empty

    def is_divergence(self, name: str) -> bool:
        """Tell whether a score compares how something is distributed over a whole set of items."""
        return name in self.divergences or name in self.histogram_features

    def scale(self, name: str) -> Metric:
        """Return the scale of a main or auxiliary metric."""
        if name not in self.scales:
            kind = f"score of {self.name}"
            raise UnknownNameError(kind, name, self.scales)
        return self.scales[name]


def build_results(
    scores: ScoreTable,
    task: ScoreTask,
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
        What this benchmark hands in.
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
        them up; what `aggregate.table_of_scores` gives, or for a
        task with views ``tables``: view -> the same; for a task with parts ``parts``: part -> ``n_items``, ``n_songs``
        and ``scores``, system -> the score that ranks;
        ``failures``, ``undefined`` and ``notes`` with their reasons, no more than `MOST_LISTED` of each; ``unlisted``,
        where there are more: how many are left out, by system, score and reason; ``published``. A task that ranks has
        also ``ranked_by``, ``best_baseline`` (metric -> system) and ``best_baseline_chosen_on``. Undefined numbers are
        None. Equal records give equal results, whatever their order.

    """
    resampling = aggregate.Resampling(confidence, n_resamples, seed)
    more = task.about(scores)
    systems = {
        name: {**scores.header.get("systems", {}).get(name, {}), **_about(scores, name), **more.get(name, {})}
        for name in scores.systems
    }
    facets = task.facets(scores, confidence=confidence)
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
        "wording": {
            "title": task.title,
            "how": task.how(scores.header),
            "items": task.items,
            "groups": task.groups,
            "remarks": task.remarks,
            "controls": task.controls_explained,
            "explained": task.explained,
            "views": {name: task.view_titles[name] for name in views},
            "on_controls": list(task.on_controls(systems)),
            "on_remarks": list(task.on_remarks(scores.remarks)),
            "on_parts": list(task.on_parts(parts)),
        },
        "intervals": {
            "confidence": confidence,
            "n_resamples": n_resamples,
            "seed": seed,
            "clusters": task.groups.removesuffix("s"),
        },
        "scales": {
            name: _scale(scale, scores.header, is_auxiliary=name in task.auxiliary) for name, scale in scales.items()
        },
        "systems": systems,
        **(ranked if task.ranked_by else {}),
        **({"tables": tables} if views else aggregate.table_of_scores(scores, task, best, resampling)),
        **({"parts": parts} if parts else {}),
        **({"facets": facets} if facets else {}),
        "failures": list(scores.failures),
        "undefined": undefined,
        "notes": list(scores.remarks[:MOST_LISTED]),
        **_unlisted(scores, undefined, n_undefined),
        "published": task.published(scores.header),
    }
    content: dict[str, Any] = plain(results)
    return content


def _part(
    scores: ScoreTable, task: ScoreTask, items: Collection[str], resampling: aggregate.Resampling
) -> dict[str, Any]:
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
