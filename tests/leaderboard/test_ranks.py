"""Ranges of ranks: by hand, by simulation, and what is compared."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from tests.leaderboard.toy_records import A, B, C, record

from music_evals.leaderboard.ranks import Comparison, compare_pairs, rank_ranges
from music_evals.leaderboard.records import ResultRecord
from music_evals.stats.paired import NOT_COMPARED


def compare(first: ResultRecord, second: ResultRecord) -> Comparison:
    return compare_pairs([[first, second]])[0]


def test_ranges_by_hand() -> None:
    # A - B is 0.1 at ten items: 2 of 2^10 sign patterns are as extreme. A - C is 0.2 at five items and 0 at five: 2 of
    # 2^5. B and C are equal on average: 1. Holm: 3 * 2/1024, then 2 * 2/32, then 1
    made = compare_pairs([[A, B, C]])
    assert [row.p_value for row in made] == pytest.approx([2 / 1024, 2 / 32, 1.0])
    assert [row.p_holm for row in made] == pytest.approx([6 / 1024, 4 / 32, 1.0])
    assert rank_ranges(3, made) == [(1, 2), (2, 3), (1, 3)]


def test_lower_is_better_turns_them_round() -> None:
    lower = [dataclasses.replace(row, direction="lower") for row in (A, B, C)]
    assert [tuple(row) for row in rank_ranges(3, compare_pairs([lower]))] == [(2, 3), (1, 2), (1, 3)]


def test_nearer_to_zero_is_better() -> None:
    near = record("near", [-0.1] * 10, direction="zero")
    far = record("far", [0.5, -0.5] * 5, direction="zero")  # its mean is 0, which is not near
    assert rank_ranges(2, compare_pairs([[near, far]])) == [(1, 1), (2, 2)]


def test_a_clear_order_has_single_ranks() -> None:
    systems = [record(str(level), [float(level)] * 12) for level in range(4)]
    made = compare_pairs([systems])
    assert rank_ranges(4, made) == [(rank, rank) for rank in (4, 3, 2, 1)]


def test_equal_systems_have_the_full_range() -> None:
    same = [record(name, [0.3, 0.7, None] * 4) for name in "abcde"]
    made = compare_pairs([same])
    assert {row.p_holm for row in made} == {1.0}
    assert {tuple(row) for row in rank_ranges(5, made)} == {(1, 5)}


def test_the_correction_goes_over_all_columns() -> None:
    alone = compare_pairs([[A, B]])
    beside = compare_pairs([[A, B], [B, C], [A, C]])
    assert beside[0].p_holm == pytest.approx(3 * alone[0].p_holm)


def test_noise_rarely_gets_a_narrower_range(rng: np.random.Generator) -> None:
    wrong = 0
    for _ in range(80):
        noise = rng.normal(size=(4, 12))
        made = compare_pairs([[record(str(row), values.tolist()) for row, values in enumerate(noise)]])
        wrong += any(tuple(row) != (1, 4) for row in rank_ranges(4, made))
    assert wrong <= 80 * 0.05 + 3 * math.sqrt(80 * 0.05 * 0.95)


def test_true_ranks_are_within_the_ranges(rng: np.random.Generator) -> None:
    missed = 0
    for _ in range(40):
        values = rng.normal(size=(4, 14)) + np.arange(4)[:, None] * 0.7
        made = compare_pairs([[record(str(row), column.tolist()) for row, column in enumerate(values)]])
        ranges = rank_ranges(4, made)
        missed += any(not first <= 4 - row <= last for row, (first, last) in enumerate(ranges))
    assert missed <= 40 * 0.05 + 3 * math.sqrt(40 * 0.05 * 0.95)


def test_only_shared_items_with_the_same_reference_are_compared() -> None:
    other = dataclasses.replace(B, references=("other",) * 9 + ("r",))
    assert compare(A, other).n == 1
    assert compare(A, dataclasses.replace(B, items=tuple("abcdefghij"))).n == 0
    ranges = rank_ranges(2, compare_pairs([[A, dataclasses.replace(B, items=tuple("abcdefghij"))]]))
    assert {tuple(row) for row in ranges} == {(1, 2)}  # what cannot be compared is not told apart


def test_items_of_one_group_in_either_run_are_one_cluster() -> None:
    pairs = dataclasses.replace(A, groups=tuple(f"g{row // 2}" for row in range(10)))
    assert compare(pairs, B).p_value == pytest.approx(2 / 2**5)
    chained = dataclasses.replace(B, groups=tuple(f"h{(row + 1) // 2}" for row in range(10)))
    assert compare(pairs, chained).p_value == 1.0  # the two chain all ten together


def test_seeds_are_one_item() -> None:
    first = dataclasses.replace(A, values=((0.5, 1.5, None),) * 10)
    assert compare(first, B).difference == pytest.approx(0.1)


def test_differences_stay_within_what_the_score_can_reach() -> None:
    few = [compare(record("A", [1.0, 0.9, 0.1], **what), record("B", [0.0, 0.1, 0.9], **what))
           for what in ({"metric": "note_f1"}, {"metric": "not_in_the_catalogue"})]  # fmt: skip
    assert (few[0].low, few[0].high) == (-1, 1)
    assert few[1].low < -1


def test_a_pair_that_was_not_compared_is_open() -> None:
    assert [tuple(row) for row in rank_ranges(2, [Comparison(0, 1, 0, None, *NOT_COMPARED)])] == [(1, 2)] * 2
