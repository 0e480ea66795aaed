"""Do the metrics of a run agree with people? Its records beside the ratings of listeners, for any task.

Ratings (`studies.ratings`) and records meet at item and system. Where the ratings are those of a blind study, its key
says what the run calls a system. What was rated and has no score in the run shows how far listeners agree with each
other, and nothing of a metric: so do a hidden reference and other controls, which score perfectly by definition.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from music_evals.benchmark.contents import heading
from music_evals.benchmark.formats import align, counted, format_interval, format_value, plain
from music_evals.benchmark.inputs import some
from music_evals.benchmark.load import LoadedResults, find_task, load_results
from music_evals.errors import NoDataError
from music_evals.stats import holm
from music_evals.stats.agreement import RatingTable, agreement, leave_one_out
from music_evals.stats.reliability import krippendorff_alpha
from music_evals.studies.pairs import StudyPair
from music_evals.studies.ratings import Rating, check_ratings

__all__ = ["FEW", "LOW_ALPHA", "agreement_of_run", "agreement_text"]

LOW_ALPHA = 0.667
"""Below it Krippendorff (Content Analysis, 2004, 11.4.3) draws not even tentative conclusions from ratings."""

FEW = 10
"""With fewer items or listeners an interval is to be read with care."""

TESTED = ("stimuli", "preferences")
"""Kinds of agreement with a p-value."""


Stimuli = Sequence[tuple[str, str]]
"""Item and system, as in the ratings."""
Made = tuple[str, int | None]
"""What a run calls the system of a stimulus, and the seed of the one prediction of several that was heard."""


def agreement_of_run(
    run: str | os.PathLike[str] | LoadedResults,
    ratings: Sequence[Rating],
    *,
    key: Sequence[StudyPair] = (),
    level: str = "interval",
    confidence: float = 0.95,
    n_resamples: int = 1000,
    seed: int = 0,
) -> dict[str, Any]:
    """Return how each score of a run agrees with the listeners, for each question that they answered.

    `key` are rows of the study's `pairs.csv`, which say what the run calls a stimulus: its system, and the one of
    several predictions that listeners heard; none are needed where ratings name items and systems as the run does.
    `level` is that of Krippendorff's alpha: ``"interval"``, ``"ordinal"`` or ``"nominal"``.

    The result has ``run``; ``intervals``: ``confidence``, ``n_resamples``, ``seed``; ``questions``: question ->
    ``n_ratings``, ``n_listeners``, ``n_items``, ``n_systems``, ``n_stimuli``, ``n_clusters`` (of items), ``n_judged``
    (stimuli of systems that the run scores), ``not_judged`` (system -> other stimuli), ``level``, ``alpha``,
    ``leave_one_out``; ``agreement``: a row for each question and score, with ``facet`` and ``title`` of the score and
    ``stimuli``, ``systems`` and ``preferences``, each with ``estimate``, ``low``, ``high``, ``p_value``, ``p_holm``
    (corrected over all of them) and ``n``: see `stats.agreement`, whose correlations are turned so that above 0 always
    agrees with people; ``notes``, in words. None where something is not defined.

    Raises `NoDataError` where nothing that was rated is in the run, or there are no ratings; the errors of
    `ratings.check_ratings`; `InvalidInputError` for an option out of range; and `UnknownNameError` for another level.
    """
    check_ratings(ratings)
    loaded = run if isinstance(run, LoadedResults) else load_results(run)
    task, scales = find_task(loaded.task), loaded.results["scales"]
    # the scores that every item has, and that have a better and a worse end
    names = [name for name in scales if scales[name]["direction"] != "none" and not task.is_divergence(name)]
    clusters: dict[str, str] = {}
    for system in loaded.scores.systems:
        pairs = loaded.scores.scored(system)
        clusters |= zip(pairs.text("item"), pairs.text("group"), strict=True)
    # what the run calls each stimulus of a study, None for those of other runs; a run whose folder has another name now
    # is taken for all of them
    is_named = loaded.folder.name in {pair.run for pair in key}
    others = {pair for pair in key if is_named and pair.run not in {"", loaded.folder.name}}
    names_in_run = {
        (pair.item_id, pair.system): None if pair in others else (pair.run_system or pair.system, pair.run_seed)
        for pair in key
    }
    questions: dict[str, Any] = {}
    rows: list[dict[str, Any]] = []
    for facet in dict.fromkeys(rating.facet for rating in ratings):
        own = [rating for rating in ratings if rating.facet == facet]
        stimuli = sorted({(rating.item, rating.system) for rating in own})
        # ratings as numbers; items that `clusters` does not know are clusters of their own
        numbers = {stimulus: number for number, stimulus in enumerate(stimuli)}
        items = [item for item, _ in stimuli]
        table = RatingTable(
            [rating.rating for rating in own],
            np.array([numbers[rating.item, rating.system] for rating in own], dtype=np.int64),
            [rating.listener for rating in own],
            items=items,
            systems=[system for _, system in stimuli],
            clusters=[f"known {clusters[item]}" if item in clusters else f"item {item}" for item in items],
        )
        scores, there = _values(loaded, names, stimuli, [names_in_run.get(pair, (pair[1], None)) for pair in stimuli])
        questions[facet] = _about(own, stimuli, table, there, level)
        agreements = agreement(table, scores, confidence=confidence, n_resamples=n_resamples, seed=seed)
        for name, result in zip(names, agreements, strict=True):
            kinds = {kind: {**value._asdict(), "p_holm": float("nan")} for kind, value in result._asdict().items()}
            about = {"question": facet, "metric": name, "title": heading(loaded.results, name)}
            rows.append({**about, "facet": scales[name]["facet"], **kinds})
    if not any(about["n_judged"] for about in questions.values()):
        raise NoDataError(_no_meeting(loaded, ratings))
    corrected = holm([row[kind]["p_value"] for row in rows for kind in TESTED]).reshape(-1, len(TESTED))
    for row, p_values in zip(rows, corrected.tolist(), strict=True):
        for kind, p_value in zip(TESTED, p_values, strict=True):
            row[kind]["p_holm"] = p_value
    intervals = {"confidence": confidence, "n_resamples": n_resamples, "seed": seed}
    content = {"run": loaded.folder.name, "intervals": intervals, "questions": questions, "agreement": rows}
    made: dict[str, Any] = plain({**content, "notes": list(_notes(questions))})
    return made


def _values(
    loaded: LoadedResults, names: Sequence[str], stimuli: Stimuli, in_run: Sequence[Made | None]
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
    """Return the scores of stimuli, higher being better, shape (n, names); and which stimuli the run scored."""
    score_table, values = loaded.scores, np.full((len(stimuli), len(names)), np.nan)
    there = np.zeros(len(stimuli), dtype=bool)
    places: dict[Made, list[int]] = {}
    for place, made in enumerate(in_run):
        if made is not None and made[0] in score_table.compared:
            places.setdefault(made, []).append(place)
    for (system, seed), rows in places.items():
        items = [stimuli[row][0] for row in rows]
        there[rows] = score_table.at(items, system).rows >= 0
        for column, name in enumerate(names):
            # the scores of the predictions with one seed, or the mean over all
            seeds = score_table.header.get("systems", {}).get(system, {}).get("seeds", ())
            by_seed = score_table.at(items, system).by_seed(name) if seed in seeds else ()
            own = score_table.at(items, system).values(name)[:, 0]
            own = by_seed[list(seeds).index(seed)] if len(by_seed) == len(seeds) > 1 else own
            direction = loaded.results["scales"][name]["direction"]
            turned = own if direction == "higher" else -own if direction == "lower" else -np.abs(own)
            values[rows, column] = np.where(np.isfinite(turned), turned, np.nan)
    return values, there


def _about(
    ratings: Sequence[Rating], stimuli: Stimuli, table: RatingTable, there: npt.NDArray[np.bool_], level: str
) -> dict[str, Any]:
    """Return the counts of a question, and how far its listeners agree with each other."""
    outside = Counter(system for (_, system), inside in zip(stimuli, there, strict=True) if not inside)
    counts = {
        "n_ratings": len(ratings), "n_listeners": table.n_listeners, "n_items": len({item for item, _ in stimuli}),
        "n_systems": table.n_systems, "n_stimuli": len(stimuli), "n_clusters": table.n_clusters,
        "n_judged": int(there.sum()),
    }  # fmt: skip
    alpha, one_out = krippendorff_alpha(table.matrix, level=level), leave_one_out(table.matrix)
    return {**counts, "not_judged": dict(outside), "level": level, "alpha": alpha, "leave_one_out": one_out}


def _no_meeting(loaded: LoadedResults, ratings: Sequence[Rating]) -> str:
    items = loaded.scores.columns["item"].categories.to_pylist() or ["none"]
    rated = some(list(dict.fromkeys(rating.system for rating in ratings)))
    return (
        f"nothing that was rated is in {loaded.folder}: the ratings are of {rated} on items such as "
        f"{ratings[0].item!r}, the run holds {some(list(loaded.scores.systems))} on items such as {items[0]!r}; both "
        "must use the same names, or the key of the study must say which are the same"
    )


def _notes(questions: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    for facet, about in questions.items():
        if about["not_judged"]:
            outside = ", ".join(f"{system} ({n})" for system, n in about["not_judged"].items())
            yield f"{facet}: rated and not judged in the run, and so no part of any agreement with it: {outside}"
        if min(about["n_clusters"], about["n_listeners"]) < 2:
            yield f"{facet}: one listener or one group of items says nothing of another: no interval, no test"
        elif min(about["n_clusters"], about["n_listeners"]) < FEW:
            yield (
                f"{facet}: with {counted(about['n_clusters'], 'groups')} of items and "
                f"{counted(about['n_listeners'], 'listeners')} the intervals are rough"
            )
        if about["alpha"] < LOW_ALPHA:
            yield (
                f"{facet}: listeners agree little with each other (alpha {about['alpha']:.2f}, below {LOW_ALPHA}); "
                "no score can agree with all of them"
            )


def agreement_text(made: Mapping[str, Any]) -> str:
    """Return the result of `agreement_of_run` as text for a terminal, a table for each question."""
    parts = []
    for facet, about in made["questions"].items():
        lines = [["", "stimuli", "p", "systems", "preferences", "p"]]
        for row in made["agreement"]:
            if row["question"] == facet:
                cells = [[_estimate_text(row[kind]), format_value(row[kind]["p_holm"])] for kind in TESTED]
                lines.append([row["title"], *cells[0], _estimate_text(row["systems"]), *cells[1]])
        parts.append(
            f"{facet}: {counted(about['n_ratings'], 'ratings')} by {counted(about['n_listeners'], 'listeners')} of "
            f"{counted(about['n_items'], 'items')} and {counted(about['n_systems'], 'systems')}; Krippendorff's alpha "
            f"({about['level']}) {format_value(about['alpha'])}, a listener against the others "
            f"{format_value(about['leave_one_out'])}\n{align(lines)}"
        )
    parts.append(
        "stimuli, systems: rank correlation with the mean rating, above 0 where people like what scores better; "
        "preferences:\nshare of a listener's preferences within an item that the score has too, 0.5 is chance. "
        f"Intervals ({100 * made['intervals']['confidence']:g} %): items\nand listeners drawn anew; p: against no "
        "agreement, Holm-corrected over the whole report."
    )
    notes = "\n".join(f"note: {note}" for note in made["notes"])
    return "\n\n".join(filter(None, [*parts, notes]))


def _estimate_text(cell: Mapping[str, Any]) -> str:
    interval = format_interval({**cell, "value": cell["estimate"]})
    return f"{format_value(cell['estimate'])} {interval}".rstrip()
