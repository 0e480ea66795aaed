"""Which listeners of a test are left out afterwards, by rules that its settings state before anybody answers.

MUSHRA has the post-screening of ITU-R BS.1534-3; `rule_texts` says all rules in words. One of them compares a listener
with the others, and so says little where they are few, heard little, or agree little themselves: there it is not
applied. Where most people cheat alike it leaves out the honest ones; nothing that looks at answers alone can tell.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from music_evals.studies.answers import FASTER_THAN_TIME, is_possible
from music_evals.studies.pairs import REFERENCE

if TYPE_CHECKING:
    from music_evals.studies.listening.answers import ListeningTables
    from music_evals.studies.listening.settings import ListeningSettings

__all__ = ["ANCHOR", "answer_matrices", "rule_texts", "screen_listeners"]

ANCHOR = "anchor"
"""System of the mid-range anchor."""
LEAST_ANSWERS = 8
"""Fewer answers to a question look alike, or unlike those of others, by chance."""
LEAST_LISTENERS = 6
"""Fewer say little of each other."""
_SCORES = {"mushra": (90.0, 0.15), "rating": (4.0, 0.5), "ab": (0.5, 0.5)}
"""Type -> below which score a hidden reference is too low, and above it an anchor too high; in which share of items."""
_ALIKE, _CHANCE = 0.9, 0.01
"""Who gives this share of another's answers copied them, unless any pair does so by chance in more tests than this."""

Row = dict[str, Any]
Rows = Sequence[Row]
Floats = npt.NDArray[np.float64]


def rule_texts(settings: ListeningSettings) -> dict[str, str]:
    """Return the rules of a test: the mark of each, and who gets it and is left out."""
    kind, (score, share) = settings.type, _SCORES[settings.type]
    texts = {
        FASTER_THAN_TIME: "claims more seconds than passed at the server between joining and sending",
        "failed_checks": f"fails more than {settings.allowed_failures} of {settings.checks} attention checks",
        "no_variance": f"always {'chooses one side' if kind == 'ab' else 'gives one rating'}, or up to four in turn",
        "same_answers": f"has {_ALIKE:.0%} of the answers of somebody who sent earlier, beyond chance",
    }
    if kind == "mushra":
        texts["low_reference"] = f"rates the hidden reference below {score:g} in more than {share:.0%} of the items"
        texts["high_anchor"] = f"rates the anchor above {score:g} in more than {share:.0%} of the items"
    elif any(question.is_of_original for question in settings.questions):
        low = "rates it 1 to 3" if kind == "rating" else "mostly prefers others"
        texts["low_reference"] = f"asked what is kept of the original, {low} in more than half of the items"
    if settings.least_agreement:
        texts["low_agreement"] = (
            f"agrees with the others less than {settings.least_agreement:g} times as much as a typical one (the upper "
            f"quartile); not applied with fewer than {LEAST_LISTENERS}, or where honest ones would do so by chance"
        )
    return texts


def screen_listeners(tables: ListeningTables, settings: ListeningSettings) -> tuple[list[Row], str]:
    """Apply the rules of a test to every listener; return a row each, and a note.

    Rows are those of `tables.listeners` with ``low_references`` and ``high_anchors``, shares of the items; ``spread``,
    the standard deviation of the answers (in ``ab`` of the side); ``agreement``, the mean over questions and by
    question, -1 to 1, 0 by chance, negative for a scale turned round: Pearson's correlation with the mean of the half
    that agrees the most of those whom no other rule leaves out, on sounds of systems; of two sounds the share of
    choices that are those of most of them less the share that are not, each weighed by how clear the majority is;
    ``marks``, names of `rule_texts` with commas; and ``is_kept``. NaN where something is not defined. The note says why
    nobody was left out for little agreement; it is empty where the rule was applied.
    """
    kind, (score, share) = settings.type, _SCORES[settings.type]
    names = [row["listener"] for row in tables.listeners]
    about = {question.name for question in settings.questions if kind == "mushra" or question.is_of_original}
    own = [row for row in tables.ratings if row["system"] not in {REFERENCE, ANCHOR}] or tables.ratings
    matrices = answer_matrices(own, tables.choices, kind, names)
    copied = _copies(np.concatenate(list(matrices.values())), [row.get("received_at") for row in tables.listeners])
    rows: list[Row] = []
    marks: list[list[str]] = []
    for place, row in enumerate(tables.listeners):
        mine = [
            rating for rating in tables.ratings if rating["listener"] == names[place] and rating["question"] in about
        ]
        low = _share([rating["rating"] < score for rating in mine if rating["system"] == REFERENCE])
        high = _share([rating["rating"] > score for rating in mine if rating["system"] == ANCHOR and kind == "mushra"])
        spread, is_pattern = _spread(
            [answer for answer in tables.choices or tables.ratings if answer["listener"] == names[place]]
        )
        rows.append({**row, "low_references": low, "high_anchors": high, "spread": spread})
        rules = {
            FASTER_THAN_TIME: not is_possible(row["seconds"], row["server_sec"]),
            "failed_checks": row["n_failed"] > settings.allowed_failures,
            "no_variance": is_pattern,
            "same_answers": place in copied,
            "low_reference": low > share,
            "high_anchor": high > share,
        }
        marks.append([mark for mark, is_so in rules.items() if is_so])
    honest = np.array([not own_marks for own_marks in marks])
    agreements = {question: _agreements(matrix, honest, kind) for question, matrix in matrices.items()}
    all_questions = np.array(list(agreements.values()))
    mean = np.array([_share(column[~np.isnan(column)]) for column in all_questions.T])
    compared = mean[honest & ~np.isnan(mean)]
    typical = float(np.quantile(compared, 0.75)) if len(compared) else 0.0
    n = min(int((~np.isnan(matrix)).sum(axis=0).min()) for matrix in matrices.values())
    # 2.5 standard errors must not bring a typical listener to the limit
    error = (1 - typical**2) ** (0.5 if kind == "ab" else 1.0) / math.sqrt(max(n, 1))
    is_applied = len(compared) >= LEAST_LISTENERS and (1 - settings.least_agreement) * typical > 2.5 * error
    limit = settings.least_agreement * typical if is_applied and settings.least_agreement else -math.inf
    for place, own_marks in enumerate(marks):
        if mean[place] < limit:
            own_marks.append("low_agreement")
        by_question = {f"agreement {question}": float(of[place]) for question, of in agreements.items()}
        rows[place] |= {
            "agreement": float(mean[place]),
            **by_question,
            "marks": ", ".join(own_marks),
            "is_kept": not own_marks,
        }
    note = f"low_agreement was not applied: {len(compared)} listeners compared, who agree by {typical:.2f}"
    return rows, "" if is_applied or not settings.least_agreement else note


def _share(values: Sequence[Any] | Floats) -> float:
    return float(np.mean(values)) if len(values) else math.nan


def _spread(rows: Rows) -> tuple[float, bool]:
    """Return the spread of one listener's answers, and whether they follow no sound at all."""
    answers = defaultdict(list)
    for row in sorted(rows, key=lambda row: row["order_index"]):
        answers[row["question"]].append(float(row["chosen"] == row["first"] if "chosen" in row else row["rating"]))
    by_question = [np.array(values) for values in answers.values()]
    # one, two, three or four answers over and over, at least four times
    is_pattern = all(
        len(series) >= LEAST_ANSWERS
        and any(np.array_equal(series[n:], series[:-n]) for n in range(1, min(4, len(series) // 4) + 1))
        for series in by_question
    )
    return _share([series.std() for series in by_question]), bool(rows) and is_pattern


def answer_matrices(ratings: Rows, choices: Rows, kind: str, listeners: Sequence[str]) -> dict[str, Floats]:
    """Return question -> answers by sound (in ``ab`` by pair) and listener; NaN if missing."""
    answers: dict[str, dict[tuple[str, ...], dict[str, float]]] = defaultdict(lambda: defaultdict(dict))
    for row in choices if kind == "ab" else ratings:
        pair = sorted((row["first"], row["second"])) if kind == "ab" else [row["system"]]
        value = row["chosen"] == pair[0] if kind == "ab" else row["rating"]
        answers[row["question"]][(row["item"], *pair)][row["listener"]] = float(value)
    return {
        question: np.array([[units[unit].get(name, math.nan) for name in listeners] for unit in sorted(units)])
        for question, units in answers.items()
    }


def _agreements(matrix: Floats, honest: npt.NDArray[np.bool_], kind: str) -> Floats:
    """Return how far each listener agrees with honest ones: with the half that agree the most, as others blur it."""
    agreements = np.array([_agreement(matrix, place, honest, kind) for place in range(len(honest))])
    if np.count_nonzero(honest & ~np.isnan(agreements)) < LEAST_LISTENERS:
        return agreements
    core = honest & (agreements >= np.nanmedian(agreements[honest]))
    return np.array([_agreement(matrix, place, core, kind) for place in range(len(honest))])


def _agreement(matrix: Floats, place: int, core: npt.NDArray[np.bool_], kind: str) -> float:
    others = matrix[:, core & (np.arange(len(core)) != place)]
    rated = ~np.isnan(matrix[:, place]) & (np.count_nonzero(~np.isnan(others), axis=1) >= 2)
    if np.count_nonzero(rated) < LEAST_ANSWERS:
        return math.nan
    mine, theirs = matrix[rated, place], np.nanmean(others[rated], axis=1)
    if kind == "ab":
        clear = 2 * theirs - 1
        return float((2 * mine - 1) @ clear / np.abs(clear).sum()) if np.any(clear) else math.nan
    return float(np.corrcoef(mine, theirs)[0, 1]) if np.ptp(mine) and np.ptp(theirs) else math.nan


def _copies(answers: Floats, arrived: Sequence[float | None]) -> set[int]:
    """Return which listeners have the answers of somebody who sent earlier; shape (answers, listeners)."""
    from scipy.stats import binom

    order = sorted(range(len(arrived)), key=lambda place: arrived[place] or math.inf)
    equal = {}
    for first, second in itertools.combinations(order, 2):
        both = answers[~np.isnan(answers[:, first] + answers[:, second])]
        if len(both) >= LEAST_ANSWERS:
            equal[second, first] = both[:, first] == both[:, second]
    usual = _share([_share(matches) for matches in equal.values()])
    return {
        later
        for (later, _), matches in equal.items()
        if _share(matches) >= _ALIKE and len(equal) * binom.sf(matches.sum() - 1, len(matches), usual) < _CHANCE
    }
