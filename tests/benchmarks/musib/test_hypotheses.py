"""Verdicts follow from intervals, and differences from scores."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from benchmarks.musib.hypotheses import (
    HYPOTHESES,
    Part,
    Scores,
    difference_rows,
    divergence_difference,
    mean_difference,
    verdict,
    verdict_table,
)

from benchmarks.musib import hypotheses
from music_evals.metrics.divergence import histogram_bins, jensen_shannon, masses

ABOVE, BELOW, ACROSS, NONE = (0.1, 0.2), (-0.2, -0.1), (-0.1, 0.1), (None, None)


@pytest.mark.parametrize(
    ("intervals", "every", "said"),
    [
        ([], True, "untested"),
        ([], False, "untested"),
        ([ABOVE, ABOVE], True, "supported"),
        ([ABOVE, ACROSS], True, "undecided"),
        ([ABOVE, BELOW], True, "contradicted"),
        ([ACROSS, BELOW], True, "contradicted"),
        ([ABOVE, NONE], True, "undecided"),
        ([BELOW, ABOVE], False, "supported"),
        ([BELOW, ACROSS], False, "undecided"),
        ([BELOW, BELOW], False, "contradicted"),
        ([BELOW, NONE], False, "undecided"),
        ([(0.0, 0.2)], True, "undecided"),  # an end at 0 is not above it
    ],
)
def test_verdicts(intervals, every, said) -> None:
    assert verdict(intervals, every=every) == said


def row(hypothesis: str, low: Any, high: Any, sizes: str = "") -> dict[str, Any]:
    return {"hypothesis": hypothesis, "low": low, "high": high, "sizes": sizes}


def line_of(table: str, hypothesis: str) -> str:
    return next(line for line in table.splitlines() if f"**{hypothesis}**" in line)


def test_the_table_of_verdicts_is_read_off_the_rows_alone() -> None:
    rows = [
        row("vli_worst_on_jsb", "0.100000", "0.200000", "vli: small, 2.11 M"),
        row("vli_worst_on_jsb", "0.010000", "0.300000", "vli: small, 2.11 M"),
        row("a_model_beats_copying_jsb", "-0.2", "-0.1", "anticipation_rnn: paper, 1.99 M"),
        row("a_model_beats_copying_jsb", "", "", "anticipation_rnn: paper, 1.99 M"),
    ]
    table = verdict_table(rows)
    assert len(table.splitlines()) == 2 + len(HYPOTHESES)
    worst = line_of(table, "vli_worst_on_jsb")
    assert "2 above 0, 0 below, 0 across" in worst
    assert "**supported** of designs of which some are small, not of the published ones" in worst
    copying = line_of(table, "a_model_beats_copying_jsb")
    assert "0 above 0, 1 below, 0 across, 1 without interval" in copying
    assert copying.endswith("**undecided** |")
    assert line_of(table, "folk_helps_jsb").endswith("**untested** |")
    assert "**not testable**: there are no ratings" in line_of(table, "divergences_nearer_to_listeners")


def test_names_of_hypotheses_are_unique_and_claimed_ones_exist() -> None:
    names = [hypothesis.key for hypothesis in HYPOTHESES]
    assert len(set(names)) == len(names)
    assert {claim[0] for claim in hypotheses._CLAIMS} <= set(names)


def scores(items: list[str], values: list[float]) -> Scores:
    return Scores(items, [item[0] for item in items], {"note_f1": np.array(values)})


def test_differences_are_paired_by_item() -> None:
    """b and c are shared and defined: .5 - .1 and .9 - .3, mean .5; d is undefined."""
    one = scores(["a1", "b1", "c1", "d1"], [0.0, 0.5, 0.9, math.nan])
    other = scores(["d1", "c1", "b1"], [0.7, 0.3, 0.1])
    difference, low, high, n, n_groups = mean_difference(one, other, ("note_f1", "note_f1"), 0.95)
    assert difference == pytest.approx(0.5)
    assert low <= 0.5 <= high
    assert (n, n_groups) == (2, 2)
    with pytest.raises(ValueError, match="no item in common"):
        mean_difference(one, scores(["e1"], [0.5]), ("note_f1", "note_f1"), 0.95)


def test_the_intervals_of_a_hypothesis_hold_together() -> None:
    asked: list[float] = []

    def measure(confidence: float) -> tuple[float, ...]:
        asked.append(confidence)
        return (0.1, math.nan, math.nan, 4, 1)

    parts = [Part("one", "jsb", "a", "b", "note_f1", "", measure)]
    parts += [Part("four", "jsb", "a", "b", name, "", measure) for name in "wxyz"]
    rows = list(difference_rows(parts))
    assert asked == pytest.approx([0.95, *[0.9875] * 4])
    assert (rows[0]["difference"], rows[0]["low"]) == (0.1, None)  # a single song has no interval


def test_a_drop_to_other_music_has_an_interval_put_together_from_both_sides() -> None:
    """Limits by Zou and Donner, by hand from the two intervals; swapping the sides turns them round."""
    rng = np.random.default_rng(0)
    one = scores([f"{song}{n}" for song in "abcdef" for n in range(4)], rng.uniform(0.5, 0.9, 24).tolist())
    other = scores([f"{song}{n}" for song in "uvwxyz" for n in range(4)], [*rng.uniform(0, 0.4, 23), math.nan])
    difference, low, high, n, n_groups = hypotheses.drop(one, other, "note_f1", 0.99)
    a, b = (hypotheses.interval_of_mean(s.values["note_f1"], s.songs, 0.99, (0, 1)) for s in (one, other))
    assert difference == pytest.approx(a.estimate - b.estimate)
    assert low == pytest.approx(difference - math.sqrt((a.estimate - a.low) ** 2 + (b.high - b.estimate) ** 2))
    assert high == pytest.approx(difference + math.sqrt((a.high - a.estimate) ** 2 + (b.estimate - b.low) ** 2))
    assert (n, n_groups) == (47, 12)
    assert hypotheses.drop(other, one, "note_f1", 0.99)[:3] == pytest.approx((-difference, -high, -low))


def test_which_of_two_systems_drops_further_and_which_changes_more() -> None:
    """On music a one gains .1 where the other loses .3: it drops .4 less, and changes .2 less."""
    items = [[f"{song}{n}" for song in songs for n in range(3)] for songs in ("abcd", "wxyz")]

    def system(first: float, second: float) -> tuple[Scores, Scores]:
        wobble = np.random.default_rng(1).uniform(-0.01, 0.01, 12)
        return tuple(
            scores(names, (level + wobble).tolist()) for names, level in zip(items, (first, second), strict=True)
        )

    steady, falling = system(0.5, 0.6), system(0.8, 0.5)
    dropped = hypotheses.drop_difference(falling, steady, "note_f1", 0.95)
    changed = hypotheses.drop_difference(falling, steady, "note_f1", 0.95, signed=False)
    assert dropped[0] == pytest.approx(0.4)
    assert changed[0] == pytest.approx(0.2)
    assert changed[1] <= 0.2 <= changed[2]
    assert dropped[3:] == (24, 8)
    with pytest.raises(ValueError, match="same items"):
        hypotheses.drop_difference(falling, steady[::-1], "note_f1", 0.95)


class Found:
    """Features of 40 items of 8 songs: one system like the reference, with two seeds, and one far from it."""

    def __init__(self) -> None:
        rng = np.random.default_rng(0)
        self.header = {"variant": "corrected"}
        self.item_rows = {f"{n}": {} for n in range(40)}
        self.songs = [f"song {n % 8}" for n in range(40)]
        self.reference = rng.uniform(0, 0.3, 40)
        self.seeds = {"near": rng.uniform(0, 0.3, (2, 40)), "far": rng.uniform(0.6, 0.9, (1, 40))}

    def at(self, _, system):
        return SimpleNamespace(values=lambda _: self.reference[:, None], by_seed=lambda _: self.seeds[system])


def test_the_difference_of_two_divergences() -> None:
    found = Found()

    def divergence(system: str) -> float:
        truth = masses(histogram_bins(found.reference), 100)
        return np.mean([jensen_shannon(truth, masses(histogram_bins(row), 100)) for row in found.seeds[system]])

    difference, low, high, n, n_groups = divergence_difference(found, "near", "far", "silence_divergence", 0.95)
    assert difference == pytest.approx(divergence("far") - divergence("near"))
    assert 0 < low < high
    assert (n, n_groups) == (40, 8)
    turned = divergence_difference(found, "far", "near", "silence_divergence", 0.95)
    assert turned[0] == pytest.approx(-difference)
    assert turned[2] < 0


def judged(systems: dict[str, str]) -> Any:
    """A run of one data set with these systems: name -> what `source` says, or nothing for a baseline."""
    about = {name: {"source": source} if source else {} for name, source in systems.items()}
    results = {"systems": about, "best_baseline": {"note_f1": "lag_vote"}}
    plan = SimpleNamespace(data=SimpleNamespace(key="jsb"))
    return SimpleNamespace(
        plan=plan, results=results, sizes={name: "small, 2.00 M" for name in systems if systems[name]}
    )


def test_parts_are_of_the_systems_that_were_judged() -> None:
    run = judged({"anticipation_rnn": "m/a", "vli": "m/v", "copy_past": "", "lag_vote": "", "reference": ""})
    found = [(part.hypothesis, part.a, part.b, part.metric) for part in hypotheses.judged_parts({"jsb": run})]
    assert ("a_model_beats_every_rule", "vli", "lag_vote", "note_f1") in found
    assert ("a_model_beats_copying_jsb", "anticipation_rnn", "copy_past", "note_f1") in found
    assert [part[1:] for part in found if part[0] == "vli_worst_on_jsb"] == [
        ("anticipation_rnn", "vli", metric) for metric in ("position_score", "pitch_accuracy", "rhythm_accuracy")
    ]
    assert not any(part[0] in {"inpaintnet_best_on_jsb", "vli_best_on_folk"} for part in found)
