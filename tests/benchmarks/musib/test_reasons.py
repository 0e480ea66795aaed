"""The reasons of a difference are picked by rule."""

from __future__ import annotations

import itertools

import pytest
from benchmarks.musib.reasons import ACCURACIES, DIVERGENCES, NLL, REASONS, Cell, not_repeated, repeated
from benchmarks.musib.systems import DESIGNS, HERE
from benchmarks.musib.tables import read_csv

METRICS = ("position_score", *ACCURACIES, *DIVERGENCES, NLL)


@pytest.mark.parametrize(
    ("cell", "first", "among", "never"),
    [
        (
            Cell("vli", "position_score", "jsb", 0.643),
            "ticks",
            {"empty_bars", "grid"},
            {"fix_empty", "doubled", "split"},
        ),
        (Cell("vli", "position_score", "folk", 0.940), "empty_bars", {"split"}, {"ticks", "grid"}),
        (Cell("vli", "silence_divergence", "folk", 0.022), "empty_bars", {"doubled"}, {"ticks"}),
        (Cell("sketchnet", "groove_divergence", "jsb", 0.228), "fix_empty", {"weights"}, {"size", "ticks"}),
        (Cell("inpaintnet", "pitch_accuracy", "jsb", 0.505, small=True), "fix_empty", {"size", "ahead"}, {"connector"}),
        (Cell("anticipation_rnn", "pitch_accuracy", "jsb", 0.243), "weights", {"schedule", "grid"}, {"ahead"}),
    ],
)
def test_what_is_not_repeated(cell: Cell, first: str, among: set[str], never: set[str]) -> None:
    codes = not_repeated(cell)
    assert codes[0] == first
    assert among <= set(codes)
    assert not never & set(codes)


def test_a_published_value_within_our_interval_needs_no_other_reason() -> None:
    cell = Cell("vli", "position_score", "jsb", 0.643)
    assert not_repeated(cell._replace(ours=0.65, low=0.6, high=0.7)) == ["noise"]
    assert "noise" not in not_repeated(cell._replace(ours=0.68, low=0.65, high=0.7))
    assert "noise" not in not_repeated(cell)


def test_plain_estimates_of_a_divergence_are_compared_and_not_one_with_a_corrected_interval() -> None:
    """VLI's groove in the thesis: .306 is outside of .102 to .284, and yet nearer to our .258 than half its width."""
    cell = Cell("vli", "groove_divergence", "jsb", 0.306, ours=0.258, low=0.102, high=0.284)
    assert not_repeated(cell) == ["noise"]
    # and a value inside of the interval need not be near ours
    assert "noise" not in not_repeated(cell._replace(published=0.11))


def test_the_reasons_in_the_file_are_those_of_the_rule() -> None:
    """Every row of published.csv of which we have a number."""
    rows = [row for row in read_csv(HERE / "published.csv") if row["size"]]
    assert rows
    for row in rows:
        numbers = (float(row[key]) if row[key] else None for key in ("published", "ours", "low", "high"))
        small, design = row["size"].startswith("small"), row["system"].partition(":")[0]
        cell = Cell(design, row["metric"], row["data"], *numbers, small=small)
        assert not_repeated(cell) == row["because"].split()


def test_noise_is_not_said_to_be_equality() -> None:
    assert "does not say that the two are equal" in REASONS["noise"]
    assert "18 of the chorales" in REASONS["noise"]


def test_likelihoods_are_never_the_same_thing() -> None:
    near = Cell("anticipation_rnn", NLL, "jsb", 0.459, ours=0.45, low=0.4, high=0.5)
    assert not_repeated(near) == ["nll", "weights", "schedule"]
    assert not_repeated(near._replace(design="vli", small=True)) == ["vli_nll"]


def test_what_the_published_conditions_do() -> None:
    leak = ["leak", "decoding", "contexts"]
    assert repeated(Cell("anticipation_rnn", "position_score", "jsb", 0.832)) == leak
    assert repeated(Cell("vli", "silence_divergence", "jsb", 0.197)) == [*leak, "bins"]
    assert repeated(Cell("inpaintnet", "groove_divergence", "jsb", 0.153)) == [*leak, "bins", "entropy"]
    folk = Cell("sketchnet", "rhythm_accuracy", "folk", 0.868)
    assert repeated(folk) == ["connector", "decoding", "first_windows", "undefined"]
    assert repeated(Cell("anticipation_rnn", NLL, "jsb", 0.459)) == ["contexts"]  # teacher-forced either way


def test_every_cell_has_reasons_and_every_reason_a_cell() -> None:
    used = {"noise"}
    sides = (("jsb", "folk"), METRICS, DESIGNS, (False, True))
    for music, metric, design, small in itertools.product(*sides):
        cell = Cell(design.name, metric, music, 0.5, small=small)
        assert not_repeated(cell)
        assert repeated(cell)
        used |= {*not_repeated(cell), *repeated(cell)}
    assert used == set(REASONS)
