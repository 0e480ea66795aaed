"""The figures on coverage that the package prints are those of its benchmark, and the benchmark still finds them."""

from __future__ import annotations

import re

import numpy as np
import pytest
from benchmarks.interval_coverage import rare, rivals, run, worlds

from music_evals.benchmark.formats import coverage_note
from music_evals.metrics.catalogue import PRESERVATION_METRICS
from music_evals.stats.intervals import MANY_CLUSTERS, RARE_DIFFERENCES, SIMULATED_COVERAGE, UNEQUAL_COVERAGE

PROMISED = (0.93, 0.97)
"""Where nominal 95 % intervals of means shall lie from `MANY_CLUSTERS` on; those of divergences may hold more."""


def test_the_package_prints_what_was_simulated() -> None:
    assert [tuple(row) for row in SIMULATED_COVERAGE] == run.bands(run.read())
    assert run.unequal(run.read()) == UNEQUAL_COVERAGE
    assert list(RARE_DIFFERENCES) == run.rare_differences(run.read())


def test_nothing_that_is_printed_contradicts_what_was_simulated() -> None:
    rows = [row for row in run.read() if row.estimator == "chosen" and row.confidence == run.CONFIDENCE]
    assert {row.kind for row in rows} == {"mean", "rare", "divergence", "difference"}
    for row in rows:
        if row.kind == "rare" and not row.promised:  # errors that are larger than the interval is promised for
            continue
        note = coverage_note([(row.effective, row.n_clusters)], "songs", divergences=True)
        ranges = re.findall(r"(\d+) to (\d+) %", note)
        many = [round(100 * PROMISED[0]), round(100 * PROMISED[1]) if row.kind == "mean" else 100]
        low, high = map(int, ranges[row.kind not in {"mean", "rare"}]) if ranges else many
        worst = re.search(r"held the truth (\d+) % of the time at worst", note)
        least = min(low, int(worst[1])) if worst else low
        assert least - 0.7 <= 100 * row.coverage <= high + 0.7, row


def test_means_are_covered_from_thirty_clusters_on() -> None:
    read = [row for row in run.read() if row.kind == "mean" and row.promised and row.confidence == run.CONFIDENCE]
    rows = [row for row in read if row.n_clusters >= MANY_CLUSTERS]
    error = 0.007  # standard error of .95 in 1,000 simulations
    covered = {name: [row.coverage for row in rows if row.estimator == name] for name in ("chosen", "percentile")}
    assert len(covered["chosen"]) >= 27
    assert all(PROMISED[0] - error <= coverage <= PROMISED[1] + error for coverage in covered["chosen"])
    assert min(covered["percentile"]) < 0.9


def test_higher_confidences_are_simulated_too() -> None:
    chosen = [row for row in run.read() if row.kind == "mean" and row.estimator == "chosen"]
    kept = [row for row in chosen if row.promised and row.n_clusters >= MANY_CLUSTERS]
    for confidence in run.OTHER_CONFIDENCES:
        covered = [row.coverage for row in kept if row.confidence == confidence]
        assert len(covered) >= 27
        assert min(covered) > confidence - 0.02
    assert all(row.wide >= row.width for row in chosen)


def test_rare_large_errors_are_covered_from_twenty_clusters_on() -> None:
    rows = [row for row in run.read() if row.kind == "rare" and row.promised and row.confidence == run.CONFIDENCE]
    covered = {
        name: [row.coverage for row in rows if row.estimator == name and row.n_clusters >= 20]
        for name in ("chosen", "spread alone")
    }
    assert min(covered["chosen"]) >= 0.92
    assert min(covered["spread alone"]) < 0.35
    assert all(row.coverage >= 0.92 for row in rows if row.estimator == "chosen")  # with fewer, too
    measured = {row.world.split(",")[0] for row in rows if row.sizes == rare.MEASURED}
    assert {*PRESERVATION_METRICS} <= measured


def test_one_in_twenty_fails_and_twenty_songs_cover_it() -> None:
    (world,) = (
        world for world in rare.made_up(np.full(18, 17)) if (world.sizes, world.name) == ("equal", "5% fail, 26 BPM")
    )
    by_name = {row.estimator: row for row in run.of_means([world], 400, (20,)) if row.confidence == run.CONFIDENCE}
    assert by_name["chosen"].coverage >= 0.92
    assert by_name["spread alone"].coverage == pytest.approx(1 - 0.95**20, abs=0.08)  # the samples that hold an error
    assert by_name["chosen"].width < by_name["betting"].width


@pytest.mark.slow
def test_the_simulation_finds_it_again() -> None:
    songs = worlds.load_songs("test")
    every = [world for world in worlds.made_up(songs.sizes) if world.bounded]
    found = list(run.of_means(every, 300, (30,)))
    found_rare = list(run.of_means([*rare.made_up(songs.sizes), *rare.measured()], 300, (20,)))
    known = {
        (row.sizes, row.world, row.n_clusters, row.estimator, row.confidence): row.coverage
        for row in run.read()
        if row.kind in {"mean", "rare"}
    }
    assert {row.estimator for row in found} == {*rivals.estimators(np.random.default_rng(0), every[0])}
    found += found_rare
    for row in found:
        before = known[row.sizes, row.world, row.n_clusters, row.estimator, row.confidence]
        variance = max(0.08 * 0.92, before * (1 - before))
        error = 4 * (variance * (1 / 300 + 1 / 1000)) ** 0.5
        assert row.coverage == pytest.approx(before, abs=error)
