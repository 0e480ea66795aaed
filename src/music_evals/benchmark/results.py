"""What systems scored, read from the records of any benchmark and put together as the content of results.json.

A score of a system is the mean over the items that define it; `n` counts all its items, `n_failed` those without a
score for this metric because something failed, `n_defined` those in the mean. The interval is clustered by group. What
differs between benchmarks is handed in as a `ScoreTask`; the statistics stand in `aggregate`.

The records are read by `collect`, and held in columns as `Found`. They come in two forms. Rows ``selection`` and
``pair`` name what each system was judged on; where there are none, the header names the systems with their seeds, and
every row ``item`` is judged for each of them.
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
from music_evals.benchmark.collecting_items import of_items
from music_evals.benchmark.collecting_pairs import failures_of_pairs, n_failures_of_pairs, of_pairs
from music_evals.benchmark.found import OUTSIDE, Found
from music_evals.benchmark.grids import MOST_LISTED
from music_evals.benchmark.listed import Listed
from music_evals.benchmark.records import MemoryRecords, Records, reading_rows
from music_evals.benchmark.versions import definition_in
from music_evals.errors import CorruptRecordsError, UnknownNameError
from music_evals.metrics.catalogue import Metric

__all__ = ["OUTSIDE", "WHOLE", "Found", "ScoreTask", "build_results", "collect"]

WHOLE = "all"
"""The view that holds every item."""

Row = Mapping[str, Any]
Key = TypeVar("Key")


def _nothing_published(_: Mapping[str, Any]) -> dict[str, Any]:
    return {"source": "", "table": {}, "differences": {}}


def _all_scores(found: Found) -> Sequence[str]:
    return found.names


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
    companions: Collection[str] = ()  # scores that get tables of their own
    # Header -> ``source``, ``table`` (system -> metric -> value), ``differences`` (what -> why) and, where it is
    # printed, ``spread`` (system -> metric -> standard deviation).
    published: Callable[[Mapping[str, Any]], dict[str, Any]] = _nothing_published
    items: str = "pairs"  # what is counted, as ``"pairs"`` of ``"groups"``
    groups: str = "groups"
    remarks: str = "lengths that differ"  # what remarks are about, as ``"lengths that differ"``
    # Records -> what else is known of systems, by name; ``note`` stands beside the name.
    about: Callable[[Found], Mapping[str, Mapping[str, Any]]] = _empty
    # Records and a system -> the groups of both sides of its pairs that could be read, shape (n, 2), where the other
    # side is of a group too; None where it is not.
    sides: Callable[[Found, str], npt.NDArray[np.int64] | None] = _none
    # Records and the confidence of intervals -> one score a facet, as `tables.facet_blocks` shows them, with remarks.
    facets: Callable[..., Mapping[str, Any]] = _empty
    # ``systems`` of the results -> what a reader should know of the controls.
    on_controls: Callable[[Mapping[str, Mapping[str, Any]]], Iterable[str]] = _empty
    # ``notes`` of the results -> what a reader should know of the remarks, beside their number.
    on_remarks: Callable[[Sequence[Mapping[str, Any]]], Iterable[str]] = _empty
    # Records -> the scores out of their header that results are made of, by default all.
    shown: Callable[[Found], Sequence[str]] = _all_scores
    # Changes records that were read, e.g. the groups of pairs, or refuses them.
    finish: Callable[[Found], None] = _none
    beside: tuple[str, ...] = ()  # keys of results.json that are made of other files than the records
    # Score of a whole set of items -> the recorded feature of items whose distribution it compares with the control's.
    divergences: Mapping[str, str] = dataclasses.field(default_factory=dict)
    # Score of a whole set of items -> a feature of which an item has many values, compared with the control's too.
    listed: Mapping[str, Listed] = dataclasses.field(default_factory=dict)
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
    views: Callable[[Found], Mapping[str, Collection[str]]] = _empty
    view_titles: Mapping[str, str] = dataclasses.field(default_factory=dict)  # view -> what it holds, in words
    explained: str = ""  # sentences on the scores, for below the tables
    # Records -> items of each part for which the score that ranks is worked out, by its name in words; `WHOLE` first.
    parts: Callable[[Found], Mapping[str, Collection[str]]] = _empty
    # ``parts`` of the results -> what a reader should know of them.
    on_parts: Callable[[Mapping[str, Mapping[str, Any]]], Iterable[str]] = _empty

    def is_divergence(self, name: str) -> bool:
        """Tell whether a score compares how something is distributed over a whole set of items."""
        return name in self.divergences or name in self.listed

    def scale(self, name: str) -> Metric:
        """Return the scale of a main or auxiliary metric."""
        if name not in self.scales:
            kind = f"score of {self.name}"
            raise UnknownNameError(kind, name, self.scales)
        return self.scales[name]


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
        them up; what `aggregate.table` gives, or for a
        task with views ``tables``: view -> the same; for a task with parts ``parts``: part -> ``n_items``, ``n_songs``
        and ``scores``, system -> the score that ranks;
        ``failures``, ``undefined`` and ``notes`` with their reasons, no more than `MOST_LISTED` of each; ``unlisted``,
        where there are more: how many are left out, by system, score and reason; ``published``. A task that ranks has
        also ``ranked_by``, ``best_baseline`` (metric -> system) and ``best_baseline_chosen_on``. Undefined numbers are
        None. Equal records give equal results, whatever their order.

    """
    draws = aggregate.Draws(confidence, n_resamples, seed)
    more = task.about(found)
    systems = {
        name: {**found.header.get("systems", {}).get(name, {}), **_about(found, name), **more.get(name, {})}
        for name in found.systems
    }
    facets = task.facets(found, confidence=confidence)
    scales = {name: task.scale(name) for name in found.names}
    undefined = found.undefined(MOST_LISTED)
    best = {} if validation is None else aggregate.best_baselines(validation, task)
    views = task.views(found)
    tables = {name: aggregate.table(found.only(items), task, best, draws) for name, items in views.items()}
    parts = {name: _part(found, task, items, draws) for name, items in task.parts(found).items()}
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
            "on_remarks": list(task.on_remarks(found.remarks)),
            "on_parts": list(task.on_parts(parts)),
        },
        "intervals": {
            "confidence": confidence,
            "n_resamples": n_resamples,
            "seed": seed,
            "clusters": task.groups.removesuffix("s"),
        },
        "scales": {
            name: _scale(scale, found.header, companion=name in task.companions) for name, scale in scales.items()
        },
        "systems": systems,
        **(ranked if task.ranked_by else {}),
        **({"tables": tables} if views else aggregate.table(found, task, best, draws)),
        **({"parts": parts} if parts else {}),
        **({"facets": facets} if facets else {}),
        "failures": list(found.failures),
        "undefined": undefined,
        "notes": list(found.remarks[:MOST_LISTED]),
        **_unlisted(found, undefined),
        "published": task.published(found.header),
    }
    content: dict[str, Any] = plain(results)
    return content


def _part(found: Found, task: ScoreTask, items: Collection[str], draws: aggregate.Draws) -> dict[str, Any]:
    """Return ``n_items``, ``n_songs`` and, for each system, the score that ranks, over some items."""
    ranking = dataclasses.replace(found.only(items), header=found.header | {"metrics": [task.ranked_by]})
    table = aggregate.table(ranking, task, {}, draws)
    scores = {system: cells[task.ranked_by] for system, cells in table["scores"].items()}
    return {"n_items": table["n_items"], "n_songs": table["n_songs"], "scores": scores}


def _scale(scale: Metric, header: Row, *, companion: bool) -> dict[str, Any]:
    kept = ("facet", "low", "high", "direction", "best")
    definition = definition_in(header, scale.name)
    title = scale.heading_of(str(header.get("variant")), definition)
    about = {"title": title, "definition": definition, "companion": companion}
    return {key: getattr(scale, key) for key in kept} | about


def _about(found: Found, system: str) -> dict[str, Any]:
    pairs = found.of(system)
    readable = pairs.take(~pairs.failed)
    entrances = np.unique(found.table.entrances.codes[readable.rows])
    return {
        "role": found.roles[system],
        "entrances": found.table.entrances.words.take(entrances).to_pylist(),
        "n_pairs": len(pairs),
        "n_groups": aggregate.n_distinct(readable.groups),
    }


def _unlisted(found: Found, undefined: Sequence[Row]) -> dict[str, Any]:
    """Return the key ``unlisted``, which counts what the lists of a huge run leave out; nothing where all are whole."""
    failures = Counter(found.n_failures)
    failures.subtract((row["system"], row["metric"]) for row in found.failures)
    reasons: Counter[tuple[str, str, str]] = Counter()
    if len(undefined) == MOST_LISTED:
        reasons = found.n_undefined()
        reasons.subtract((row["system"], row["metric"], row["reason"]) for row in undefined)
    remarks: Counter[str] = Counter()
    n_remarks = max(0, len(found.remarks) - MOST_LISTED)
    if n_remarks:
        remarks = found.remarks.counts()
        remarks.subtract(note for row in found.remarks[:MOST_LISTED] for note in row["notes"])
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


@reading_rows()
def collect(rows: Iterable[Row], task: ScoreTask) -> Found:
    """Read the records of a run; of two rows for one score the later one counts.

    Raises
    ------
    CorruptRecordsError
        The first row is no header, or rows have an unknown form.

    """
    records = rows if isinstance(rows, Records) else MemoryRecords(rows)
    header = records[0] if len(records) else {}
    if header.get("kind") != "run":
        raise CorruptRecordsError("the records do not start with their header; restore the file, or start afresh")
    by_item = "systems" in header
    found = (of_items if by_item else of_pairs)(records, header, task)
    task.finish(found)
    names = task.shown(found)
    shown = {key: [name for name in found.header[key] if name in names] for key in ("metrics", "companions")}
    if by_item:
        return found
    found = dataclasses.replace(found, header=found.header | shown)
    return dataclasses.replace(found, failures=failures_of_pairs(found), n_failures=n_failures_of_pairs(found))
