"""What a listening test found: means, differences and preferences, agreement, screening, and effects of order.

Intervals are those of `stats.crossed`: for other listeners and other items (by their groups, such as songs) at once.
Everything is given for all listeners and for those who are kept by the rules that the test states
(`studies.listening.screening`).
"""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from music_evals.benchmark.formats import counted
from music_evals.errors import InvalidInputError
from music_evals.stats import holm
from music_evals.stats.agreement import leave_one_out
from music_evals.stats.crossed import Crossed, crossed_difference, crossed_estimate, crossed_mean
from music_evals.stats.reliability import krippendorff_alpha
from music_evals.studies.listening.agreement import FEW, LOW_ALPHA
from music_evals.studies.listening.answers import ListeningTables
from music_evals.studies.listening.screening import answer_matrices, screen_listeners
from music_evals.studies.listening.settings import SCALES, ListeningSettings

__all__ = ["TABLES", "evaluate_listening"]

TABLES = ("listeners", "means", "differences", "preferences", "agreement", "order", "warnings")
"""Names of what `evaluate_listening` returns."""

_NEARLY = 1e-9
"""What is smaller is rounding, in pages or units of the scale."""
_MOST_SWEEPS = 500
"""Plans that were followed by all need two or three."""

_LEVELS = {"rating": "ordinal", "ab": "nominal", "mushra": "interval"}

Row = dict[str, Any]


def evaluate_listening(
    tables: ListeningTables, settings: ListeningSettings, *, confidence: float = 0.95
) -> dict[str, Any]:
    """Return the tables of a listening test: `TABLES` -> rows. The rules of its settings say who is kept.

    ``listeners``: as `screening.screen_listeners` has them. ``means``: ``question``, ``system``, ``listeners``
    (``kept`` or ``all``), ``mean``, ``sd``, ``n`` and the interval. ``differences``: ``first`` less ``second``, with
    ``p`` and ``p_holm``, corrected over all of one set of listeners; in the type ``ab`` it is empty. ``preferences``
    (``ab``): ``share`` of the choices in which ``first`` was preferred to ``second``, ``p`` against one half.
    ``agreement``: Krippendorff's alpha, and the rank correlation of a listener with the others. ``order``: by how much
    a rating changes from the first page to the last, the sound being the same; in ``ab`` the share of choices of the
    first of two sounds. ``warnings``, in words. Raises `InvalidInputError` where no listener is left.
    """
    kind = settings.type
    listeners, note = screen_listeners(tables, settings)
    passed = {row["listener"] for row in listeners if row["is_kept"]}
    if not passed:
        raise InvalidInputError(
            f"none of {counted(len(listeners), 'listeners')} passed the attention checks and the screening: "
            f"{'; '.join(sorted({row['marks'] for row in listeners}))}; look at what they answered"
        )
    sets = {"kept": passed, "all": {row["listener"] for row in listeners}}
    results: dict[str, Any] = {name: [] for name in TABLES} | {"listeners": listeners}
    for name, names in sets.items():
        ratings = [row for row in tables.ratings if row["listener"] in names]
        chosen = [row for row in tables.choices if row["listener"] in names]
        results["means"] += [{**row, "listeners": name} for row in _means(ratings, kind, confidence)]
        for table, rows in (
            ("differences", _differences(ratings, confidence) if kind != "ab" else []),
            ("preferences", _preferences(chosen, confidence)),
        ):
            corrected = holm([row["p"] for row in rows]).tolist() if rows else []
            results[table] += [{**row, "p_holm": p, "listeners": name} for row, p in zip(rows, corrected, strict=True)]
        results["agreement"] += [{**row, "listeners": name} for row in _agreement(ratings, chosen, kind)]
        results["order"] += [{**row, "listeners": name} for row in _order(ratings, chosen, kind, confidence)]
    results["warnings"] = [*_warnings(results, tables, confidence), *filter(None, [note])]
    return results


def _by(rows: Sequence[Row], *names: str) -> dict[tuple[Any, ...], list[Row]]:
    groups: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in rows:
        groups[tuple(row[name] for name in names)].append(row)
    return groups


def _columns(rows: Sequence[Row]) -> tuple[list[float], list[str], list[str]]:
    return [row["rating"] for row in rows], [row["listener"] for row in rows], [row["group"] for row in rows]


def _interval_row(estimate: Crossed, low: float, high: float) -> Row:
    """Return the interval of an estimate, within what it can be."""
    return {
        "low": max(estimate.low, low) if math.isfinite(estimate.low) else estimate.low,
        "high": min(estimate.high, high) if math.isfinite(estimate.high) else estimate.high,
        "n": estimate.n,
        "n_listeners": estimate.n_listeners,
        "n_groups": estimate.n_items,
    }


def _means(ratings: Sequence[Row], kind: str, confidence: float) -> list[Row]:
    means = []
    for (question, system), rows in _by(ratings, "question", "system").items():
        mean = crossed_mean(*_columns(rows), confidence=confidence)
        spread = float(np.std([row["rating"] for row in rows], ddof=1)) if len(rows) > 1 else float("nan")
        about = {"question": question, "system": system, "mean": mean.estimate, "sd": spread}
        means.append({**about, **_interval_row(mean, *SCALES[kind])})
    return sorted(means, key=lambda row: (row["question"], -row["mean"], row["system"]))


def _differences(ratings: Sequence[Row], confidence: float) -> list[Row]:
    differences = []
    for (question,), rows in _by(ratings, "question").items():
        by_system = _by(rows, "system")
        for (first,), (second,) in itertools.combinations(sorted(by_system), 2):
            both = [*by_system[first,], *by_system[second,]]
            values, listeners, groups = _columns(both)
            estimate = crossed_difference(
                values, [row["system"] == first for row in both], listeners, groups, confidence=confidence
            )
            about = {"question": question, "first": first, "second": second, "difference": estimate.estimate}
            differences.append({**about, **_interval_row(estimate, -math.inf, math.inf), "p": estimate.p_value})
    return differences


def _preferences(chosen: Sequence[Row], confidence: float) -> list[Row]:
    names = ("question", "first", "second")
    # a pair of systems is the same whichever of the two came first
    turned = [row | dict(zip(names[1:], sorted((row["first"], row["second"])), strict=True)) for row in chosen]
    shares = sorted(_shares(turned, names, confidence), key=lambda entry: entry[0])
    return [
        dict(zip(names, pair, strict=True))
        | {"share": share.estimate, **_interval_row(share, 0.0, 1.0), "p": share.p_value}
        for pair, share in shares
    ]


def _shares(
    chosen: Sequence[Row], names: Sequence[str], confidence: float
) -> Iterator[tuple[tuple[str, ...], Crossed]]:
    """Yield how often the first of two sounds was chosen, by some columns."""
    for key, rows in _by(chosen, *names).items():
        is_first = [{**row, "rating": float(row["chosen"] == row["first"])} for row in rows]
        yield key, crossed_mean(*_columns(is_first), nothing=0.5, confidence=confidence)


def _agreement(ratings: Sequence[Row], chosen: Sequence[Row], kind: str) -> list[Row]:
    listeners = sorted({row["listener"] for row in ratings})
    rows = []
    for question, matrix in answer_matrices(ratings, chosen, kind, listeners).items():
        alpha = krippendorff_alpha(matrix, level=_LEVELS[kind])
        one_out = leave_one_out(matrix) if kind != "ab" else float("nan")  # two values have no ranks to speak of
        about = {"question": question, "level": _LEVELS[kind], "alpha": alpha, "leave_one_out": one_out}
        rows.append({**about, "n_listeners": matrix.shape[1], "n_stimuli": matrix.shape[0]})
    return rows


def _order(ratings: Sequence[Row], chosen: Sequence[Row], kind: str, confidence: float) -> list[Row]:
    if kind == "ab":
        effect, low, high = "share of the first sound", 0.0, 1.0
        estimates = dict(_shares(chosen, ("question",), confidence))
    else:
        effect, low, high = "first to last page", -math.inf, math.inf
        estimates = {key: _change(rows, confidence) for key, rows in _by(ratings, "question").items()}
    return [
        {"question": question, "effect": effect, "estimate": estimate.estimate, **_interval_row(estimate, low, high)}
        for (question,), estimate in estimates.items()
    ]


def _change(rows: Sequence[Row], confidence: float) -> Crossed:
    """Return how much a rating changes over the test, where sound and listener are the same."""
    values, listeners, groups = _columns(rows)
    sounds = [f"{row['item']}\n{row['system']}" for row in rows]
    place = [row["order_index"] for row in rows]
    # least squares with a level for each sound and each listener: what is left of place and rating beside these
    labels = [np.unique(names, return_inverse=True)[1] for names in (sounds, listeners)]
    away, left = (_without_levels(np.array(column, dtype=np.float64), labels) for column in (place, values))
    size = float(away @ away)
    if size < _NEARLY * len(rows):
        return crossed_estimate(float("nan"), np.zeros(len(rows)), listeners, groups, confidence=confidence)
    slope, length = float(away @ left) / size, float(max(place) - min(place))
    influences = length * away * (left - slope * away) / size
    return crossed_estimate(length * slope, influences, listeners, groups, confidence=confidence)


def _without_levels(
    values: npt.NDArray[np.float64], labels: Sequence[npt.NDArray[np.int64]]
) -> npt.NDArray[np.float64]:
    """Return what is left of values when means by each of several labels are taken away in turn, until none is left."""
    left = values.copy()
    for _ in range(_MOST_SWEEPS):
        before = left.copy()
        for codes in labels:
            left -= (np.bincount(codes, left) / np.bincount(codes))[codes]
        if np.abs(left - before).max() < _NEARLY:
            break
    return left


def _warnings(results: Mapping[str, Any], tables: ListeningTables, confidence: float) -> list[str]:
    n_kept = sum(row["is_kept"] for row in results["listeners"])
    out = len(results["listeners"]) - n_kept
    lines = []
    if out:
        lines.append(f"{counted(out, 'listeners')} of {len(results['listeners'])} left out; the tables have both sets")
    unknown = sum(math.isnan(row["server_sec"]) for row in results["listeners"])
    if unknown:
        lines.append(f"no server knows the time of {counted(unknown, 'listeners')}: theirs is as their page says")
    groups = {row["group"] for row in tables.ratings}
    if min(n_kept, len(groups)) < 2:
        lines.append("one listener or one group of items says nothing of another: no interval, no test")
    elif min(n_kept, len(groups)) < FEW:
        lines.append(
            f"with {counted(n_kept, 'listeners')} and {counted(len(groups), 'groups')} of items the intervals are rough"
        )
    counts = Counter((row["item"], row["system"]) for row in tables.ratings)
    if len(set(counts.values())) > 1:
        lines.append(
            f"sounds were heard {min(counts.values())} to {max(counts.values())} times: the design is not complete"
        )
    lines += [
        f"{row['question']}: listeners agree little with each other (alpha {row['alpha']:.2f}, below {LOW_ALPHA})"
        for row in results["agreement"]
        if row["listeners"] == "kept" and row["alpha"] < LOW_ALPHA
    ]
    for row in results["order"]:
        nothing = 0.5 if row["effect"].startswith("share") else 0.0
        if row["listeners"] == "kept" and not math.isnan(row["low"]) and not row["low"] <= nothing <= row["high"]:
            lines.append(
                f"{row['question']}: the order played a part ({row['effect']}: {row['estimate']:.2f}, "
                f"{100 * confidence:g} % {row['low']:.2f} to {row['high']:.2f}); plans are balanced against it"
            )
    return lines
