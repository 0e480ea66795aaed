"""The tables of an editing test: what a study says, from its tidy tables, in one pass.

Rows of the tables below are dicts with the same keys; NaN is what is not defined.

- ``sample_means``: one row a sample; loads, answers of editors and of listeners, and how many there were of each.
- ``pairs``: one row a piece and style; ratios of loads (proposed / baseline) and differences of answers. Ratios are
  those of means over editors; ``ratio_<load>_per_editor`` is the geometric mean of the ratios of those who edited both.
- ``summary``: by style and role, mean and standard deviation of each load and answer over single edits or ratings and
  over samples (table 2 of the paper mixes both).
- ``ratios``: by style and over all, the mean ratio as in table 3 with its t test against 1, and the geometric mean with
  intervals clustered by piece and by editor. Equal models have a mean ratio above 1; their geometric mean is 1.
- ``correlations``: the comparison sets of table 4. Set 1: loads with answers, over samples; set 2: ratios of loads with
  differences of answers, over pairs; sets 3 and 4: answers among themselves. Corrections for several tests are by set.
  Beside r and without a test: Spearman's, r within styles, r given style and model, and r of the logarithms of ratios.
- ``style_similarity``: by style and role, how near listeners found the samples to each style.
- ``censoring``: by style and role, edits that the time limit ended. Their times are too short, and so are the means.
- ``ratios_unmarked``: ``ratios`` of the edits that are not marked as hard to believe; empty where none is marked.
- ``warnings``: what a reader has to know, one sentence each.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from music_evals.errors import InvalidInputError, PairCountError
from music_evals.metrics.editing import (
    EDITOR_QUESTIONS,
    LISTENER_QUESTION,
    LOADS,
    effort_ratio,
    group_means,
    moments,
    stars,
)
from music_evals.pipelines.study_tables import ROLES, SIMILARITY, TIME_LIMIT_S, StudyTables, Table, tell_marks
from music_evals.stats.correlations import adjusted_correlation, correlation, jackknife_interval, mean_test
from music_evals.stats.intervals import MANY_CLUSTERS, check_confidence, mean_interval
from music_evals.stats.multiplicity import benjamini_hochberg, holm

__all__ = ["ALL_STYLES", "TABLES", "evaluate_answers", "evaluate_editing_test", "evaluate_effort"]

ALL_STYLES: Final = "all"
"""In place of a style: all of them together."""
TABLES: Final = (
    "sample_means", "pairs", "summary", "ratios", "correlations", "style_similarity", "censoring",
    "ratios_unmarked", "warnings",
)  # fmt: skip
"""What `evaluate_editing_test` returns, in this order."""

Rows = list[dict[str, Any]]


def evaluate_editing_test(
    tables: StudyTables, *, confidence: float = 0.95, epsilon: float = 0.0, time_limit_s: float = TIME_LIMIT_S
) -> dict[str, Any]:
    """Return the tables of a study; the module says what each holds.

    Parameters
    ----------
    tables
        As `pipelines.study_tables.study_tables` or `read_study` give them.
    confidence
        Nominal coverage of the intervals, above 0 and below 1.
    epsilon
        Added to both sides of a ratio of loads; with 0, a load of 0 is refused.
    time_limit_s
        Longest time for an edit, in seconds; longer ones are named in the warnings.

    Returns
    -------
    dict
        The tables by name (`TABLES`), each a list of rows; ``warnings`` a list of sentences. Without a listening test,
        rows and columns of LQ1 are missing, and ``style_similarity`` is empty.

    Raises
    ------
    PairCountError
        A sample that nobody edited; the message names its row.
    InvalidInputError
        A mean load of 0 where epsilon is 0; the message names the sample. Options out of range.
    """
    check_confidence(confidence)
    if not time_limit_s > 0:
        raise InvalidInputError(f"time_limit_s must be above 0, got {time_limit_s}")
    means = _sample_means(tables)
    pairs = _pairs(means, epsilon)
    for pair in pairs:
        pair.update(_per_editor(tables, pair, epsilon))
    names = [name for name, _, _ in _columns(tables) if name.startswith(SIMILARITY)]
    rows: Rows = []
    for style, role in itertools.product(_styles(tables), ROLES) if names else ():
        chosen = [row for row in means if (row["style"], row["role"]) == (style, role)]
        cells = {name.removeprefix(SIMILARITY): moments([row[name] for row in chosen]).mean for name in names}
        rows.append({"style": style, "role": role, "n_samples": len(chosen)} | cells)
    result: dict[str, Any] = {
        "sample_means": means,
        "pairs": pairs,
        "summary": list(_summary(tables, means)),
        "ratios": list(_ratios(tables, pairs, confidence, epsilon)),
        "correlations": list(_correlations(means, pairs, confidence)),
        "style_similarity": rows,
        "censoring": list(_censoring(tables, time_limit_s)),
        "ratios_unmarked": [],
    }
    if "marks" in tables.edits and (tables.edits["marks"] != "").any():
        rest = {name: column[tables.edits["marks"] == ""] for name, column in tables.edits.items()}
        believed = tables._replace(edits=rest)
        result["ratios_unmarked"] = list(_ratios(believed, _pairs_of(tables, rest, epsilon), confidence, epsilon))
    return {**result, "warnings": list(_warnings(tables, result, time_limit_s))}


def evaluate_effort(
    tables: StudyTables, *, confidence: float = 0.95, epsilon: float = 0.0, per_item: bool = False
) -> dict[str, Any]:
    """Return how much work a model makes for editors, of what the baseline makes.

    Parameters
    ----------
    tables, confidence, epsilon
        As of `evaluate_editing_test`.
    per_item
        Add ``per_item``, one dict a pair.

    Returns
    -------
    dict
        For time, keyboard and mouse the geometric mean over all pairs, ``<name>``; its interval by piece,
        ``<name>_ci``, and by editor, ``<name>_editor_ci``; ``<name>_n``, ``<name>_n_defined`` and
        ``<name>_n_clusters``, pairs, those that count, and the effective number of pieces.

    Raises
    ------
    PairCountError, InvalidInputError
        As `evaluate_editing_test`.
    """
    check_confidence(confidence)
    pairs = _pairs(_sample_means(tables), epsilon)
    result: dict[str, Any] = {}
    for row in list(_ratios(tables, pairs, confidence, epsilon))[-len(LOADS) :]:  # those of all styles come last
        name = f"{row['load']}_effort_ratio"
        result |= {
            name: row["geometric_mean"], f"{name}_ci": (row["ci_low"], row["ci_high"]), f"{name}_n": len(pairs),
            f"{name}_n_defined": row["n"], f"{name}_n_clusters": row["n_pieces"],
            f"{name}_editor_ci": (row["editor_ci_low"], row["editor_ci_high"]),
        }  # fmt: skip
    return result | ({"per_item": pairs} if per_item else {})


def evaluate_answers(
    tables: StudyTables, *, confidence: float = 0.95, epsilon: float = 0.0, per_item: bool = False
) -> dict[str, Any]:
    """Return how differently editors and listeners answered of a model and of the baseline, and all tables.

    Parameters
    ----------
    tables, confidence, epsilon
        As of `evaluate_editing_test`.
    per_item
        Add ``per_item``, one dict a pair.

    Returns
    -------
    dict
        For each question the mean difference over all pairs, ``delta_eq1`` and so on, with ``_ci`` by piece, ``_n``,
        ``_n_defined`` and ``_n_clusters``; ``delta_lq1`` where there was a listening test. Then ``tables``.

    Raises
    ------
    PairCountError, InvalidInputError
        As `evaluate_editing_test`.
    """
    analysis = evaluate_editing_test(tables, confidence=confidence, epsilon=epsilon)
    pairs: Rows = analysis["pairs"]
    result: dict[str, Any] = {}
    for question in _questions(analysis["sample_means"]):
        name, pieces = f"delta_{question}", [pair["piece_id"] for pair in pairs]
        mean = mean_interval([pair[name] for pair in pairs], pieces, confidence=confidence, span=(-4.0, 4.0))
        key = name.lower()
        result |= {
            key: mean.estimate, f"{key}_ci": (mean.low, mean.high), f"{key}_n": mean.n,
            f"{key}_n_defined": mean.n_defined, f"{key}_n_clusters": mean.n_clusters,
        }  # fmt: skip
    return {**result, "tables": analysis} | ({"per_item": pairs} if per_item else {})


def _columns(tables: StudyTables) -> Iterator[tuple[str, Table, str]]:
    """Yield the name of each load and answer, its table and its column."""
    yield from ((name, tables.edits, column) for name, column in LOADS.items())
    yield from ((name, tables.edits, name) for name in EDITOR_QUESTIONS)
    if tables.listening is not None:
        yield LISTENER_QUESTION, tables.listening, LISTENER_QUESTION
        similar = (name for name in tables.listening if name.startswith(SIMILARITY))
        yield from ((name, tables.listening, name) for name in similar)


def _codes(tables: StudyTables, table: Table) -> npt.NDArray[np.int64]:
    """Return the row in `samples` of each row of another table."""
    rows = {sample: row for row, sample in enumerate(tables.samples["sample_id"].tolist())}
    return np.array([rows[sample] for sample in table["sample_id"].tolist()], dtype=np.int64)


def _sample_means(tables: StudyTables, edits: Table | None = None) -> Rows:
    """Return one row a sample; `edits` may stand in for those of the study, and may then leave samples out."""
    given = tables if edits is None else tables._replace(edits=edits, listening=None)
    n_samples = len(given.samples["sample_id"])
    names = ("sample_id", "piece_id", "style", "model", "role")
    rows: Rows = [
        dict(zip(names, values, strict=True))
        for values in zip(*(given.samples[name].tolist() for name in names), strict=True)
    ]
    for name, table, column in _columns(given):
        means = group_means(table[column], _codes(given, table), n_samples)
        for row, mean, n in zip(rows, means.mean.tolist(), means.n.tolist(), strict=True):
            row[name] = mean
            if name == "time":
                row["n_edits"] = n
            elif name == LISTENER_QUESTION:
                row["n_ratings"] = n
    for number, row in enumerate(rows, start=1):
        if edits is None and not row["n_edits"]:
            raise PairCountError(
                f"samples, row {number}: nobody edited {row['sample_id']!r}; add its edits, or leave its pair out"
            )
    return rows


def _pairs(means: Rows, epsilon: float) -> Rows:
    """Return one row a piece and style, in the order of their first samples."""
    by_role: dict[tuple[str, str], dict[str, dict[str, Any]]] = {}
    for row in means:
        by_role.setdefault((row["piece_id"], row["style"]), {})[row["role"]] = row
    pairs: Rows = []
    for (piece, style), samples in by_role.items():
        proposed, baseline = (samples[role] for role in ROLES)
        pair: dict[str, Any] = {"piece_id": piece, "style": style}
        pair |= {role: samples[role]["sample_id"] for role in ROLES}
        pair |= {f"n_edits_{role}": samples[role]["n_edits"] for role in ROLES}
        for load in LOADS:
            try:
                pair[f"ratio_{load}"] = float(effort_ratio([baseline[load]], [proposed[load]], epsilon=epsilon)[0])
            except InvalidInputError as error:
                where = f"samples {baseline['sample_id']!r} (baseline) and {proposed['sample_id']!r} (proposed), {load}"
                raise InvalidInputError(f"{where}: {str(error).removeprefix('pair 1: ')}") from None
        for question in _questions(means):
            pair[f"delta_{question}"] = proposed[question] - baseline[question]
        pairs.append(pair)
    return pairs


def _per_editor(tables: StudyTables, pair: dict[str, Any], epsilon: float) -> dict[str, float]:
    """Return the geometric mean ratio of each load over the editors of both samples; NaN without such editors."""
    rows = [np.flatnonzero(tables.edits["sample_id"] == pair[role]) for role in ROLES]
    editors = [tables.edits["editor_id"][of_role] for of_role in rows]  # each there once
    both, *places = np.intersect1d(editors[0], editors[1], assume_unique=True, return_indices=True)
    ratios: dict[str, float] = {"n_editors_of_both": len(both)}
    for load, column in LOADS.items():
        first, second = (tables.edits[column][of[place]] + epsilon for of, place in zip(rows, places, strict=True))
        is_defined = len(both) and (first > 0).all() and (second > 0).all()
        ratios[f"ratio_{load}_per_editor"] = float(np.exp(np.mean(np.log(first / second)))) if is_defined else math.nan
    return ratios


def _questions(means: Rows) -> list[str]:
    return [name for name in (*EDITOR_QUESTIONS, LISTENER_QUESTION) if name in means[0]]


def _styles(tables: StudyTables) -> list[str]:
    return list(dict.fromkeys(tables.samples["style"].tolist()))


def _summary(tables: StudyTables, means: Rows) -> Iterator[dict[str, Any]]:
    for style, role in itertools.product(_styles(tables), ROLES):
        chosen = np.array([(row["style"], row["role"]) == (style, role) for row in means])
        for name, table, column in _columns(tables):
            single = moments(table[column][chosen[_codes(tables, table)]])
            over = moments([row[name] for row, is_chosen in zip(means, chosen.tolist(), strict=True) if is_chosen])
            yield {
                "style": style, "role": role, "name": name,
                "mean": single.mean, "sd": single.sd, "n": single.n,
                "sample_mean": over.mean, "sample_sd": over.sd, "n_samples": over.n,
            }  # fmt: skip


def _ratios(tables: StudyTables, pairs: Rows, confidence: float, epsilon: float) -> Iterator[dict[str, Any]]:
    styles = _styles(tables)
    editors = tables.edits["editor_id"]
    without_editor = [  # the pairs of the study without each of them
        _pairs_of(tables, {name: column[editors != editor] for name, column in tables.edits.items()}, epsilon)
        for editor in np.unique(editors)
    ]
    for style in [*styles, ALL_STYLES] if len(styles) > 1 else styles:
        chosen = [pair for pair in pairs if style in {pair["style"], ALL_STYLES}]
        for load in LOADS:
            name = f"ratio_{load}"
            values = np.array([pair[name] for pair in chosen])
            summary, logs = moments(values), np.log(values)
            by_piece = mean_interval(logs, [pair["piece_id"] for pair in chosen], confidence=confidence)
            left = [_mean_log(rows, name, style) for rows in without_editor]
            by_editor = jackknife_interval(by_piece.estimate, left, confidence=confidence)
            yield {
                "style": style, "load": load, "n": summary.n, "mean": summary.mean, "sd": summary.sd,
                "p": mean_test(values - 1),
                "geometric_mean": math.exp(by_piece.estimate), "p_geometric": mean_test(logs),
                "ci_low": math.exp(by_piece.low), "ci_high": math.exp(by_piece.high), "n_pieces": by_piece.n_clusters,
                "editor_ci_low": math.exp(by_editor[0]), "editor_ci_high": math.exp(by_editor[1]),
                "n_editors": len(without_editor),
            }  # fmt: skip


def _pairs_of(tables: StudyTables, edits: Table, epsilon: float) -> Rows:
    """Return the pairs of some of the edits, but for those that have lost all edits or loads of a sample."""
    means = _sample_means(tables, edits)
    lost = {
        (row["piece_id"], row["style"])
        for row in means
        if not row["n_edits"] or any(row[load] + epsilon == 0 for load in LOADS)
    }
    return _pairs([row for row in means if (row["piece_id"], row["style"]) not in lost], epsilon)


def _mean_log(pairs: Rows, name: str, style: str) -> float:
    values = [math.log(pair[name]) for pair in pairs if style in {pair["style"], ALL_STYLES}]
    return math.fsum(values) / len(values) if values else math.nan


def _correlations(means: Rows, pairs: Rows, confidence: float) -> Iterator[dict[str, Any]]:
    questions = _questions(means)
    ratios, deltas = [f"ratio_{load}" for load in LOADS], [f"delta_{name}" for name in questions]
    sets = (
        (means, list(itertools.product(LOADS, questions))),
        (pairs, list(itertools.product(ratios, deltas))),
        (means, list(itertools.combinations(questions, 2))),
        (pairs, list(itertools.combinations(deltas, 2))),
    )
    for number, (rows, cells) in enumerate(sets, start=1):
        pieces = [row["piece_id"] for row in rows]
        estimates = [
            correlation([row[x] for row in rows], [row[y] for row in rows], pieces, confidence=confidence)
            for x, y in cells
        ]
        p_values = [estimate.p for estimate in estimates]
        adjusted = zip(holm(p_values).tolist(), benjamini_hochberg(p_values).tolist(), stars(p_values), strict=True)
        for (x, y), estimate, (p_holm, p_bh, signs) in zip(cells, estimates, adjusted, strict=True):
            yield {
                "set": number, "x": x, "y": y, "r": estimate.r, "n": estimate.n, "p": estimate.p,
                "ci_low": estimate.low, "ci_high": estimate.high,
                "piece_ci_low": estimate.clustered_low, "piece_ci_high": estimate.clustered_high,
                "n_pieces": estimate.n_clusters,
                "p_holm": p_holm, "p_bh": p_bh, "stars": signs, **_other_readings(rows, x, y),
            }  # fmt: skip


def _other_readings(rows: Rows, x: str, y: str) -> dict[str, float]:
    """Return one pair of columns by other correlations, without tests: they say how far r depends on its kind."""
    first, second = ([row[name] for row in rows] for name in (x, y))
    style = [[row["style"] for row in rows]]
    # the role of a sample is its model; pairs have both
    both = [*style, [row["role"] for row in rows]] if "role" in rows[0] else style
    return {
        "spearman": adjusted_correlation(first, second, [], ranks=True),
        "r_within_style": adjusted_correlation(first, second, style),
        "r_partial": adjusted_correlation(first, second, both),
        "r_log": adjusted_correlation(np.log(first), second, []) if x.startswith("ratio_") else math.nan,
    }


def _censoring(tables: StudyTables, time_limit_s: float) -> Iterator[dict[str, Any]]:
    codes, samples = _codes(tables, tables.edits), tables.samples
    for style, role in itertools.product(_styles(tables), ROLES):
        chosen = ((samples["style"] == style) & (samples["role"] == role))[codes]
        hit = int(np.count_nonzero(tables.edits["hit_limit"][chosen]))
        over = int(np.count_nonzero(tables.edits["time_s"][chosen] > time_limit_s))
        n = int(np.count_nonzero(chosen))
        yield {
            "style": style, "role": role, "n_edits": n, "n_hit_limit": hit, "share": hit / n, "n_over_limit": over
        }  # fmt: skip


def _warnings(tables: StudyTables, result: dict[str, Any], time_limit_s: float) -> Iterator[str]:
    hit = int(np.count_nonzero(tables.edits["hit_limit"]))
    if hit:
        yield (
            f"The time limit ended {hit} of {len(tables.edits['time_s'])} edits: mean times are too short, and "
            "ratios of times are too near to 1 where the slower side hit it more often."
        )
    for row in np.flatnonzero(tables.edits["time_s"] > time_limit_s):
        yield f"edits, row {row + 1}: {tables.edits['time_s'][row]:g} s are over the limit of {time_limit_s:g} s."
    if "marks" in tables.edits:
        yield from tell_marks(tables.edits["editor_id"].tolist(), tables.edits["marks"].tolist())
    counts = {row["n_edits"] for row in result["sample_means"]}
    if len(counts) > 1:
        yield f"Samples have from {min(counts)} to {max(counts)} edits: a mean of few counts as much as one of many."
    n_pieces = len(set(tables.samples["piece_id"].tolist()))
    if n_pieces < MANY_CLUSTERS:
        yield f"Intervals clustered by piece rest on {n_pieces} pieces; with so few they are rough."
    for row in result["correlations"]:
        if math.isnan(row["r"]):
            yield f"Set {row['set']}: the correlation of {row['x']} and {row['y']} is undefined (n = {row['n']})."
