"""Simulated listening tests: what was put in is found again."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from music_evals.errors import InvalidInputError
from music_evals.studies.listening.settings import ListeningSettings, named_questions
from music_evals.studies.listening.simulation import (
    ListeningWorld,
    expected_rating,
    expected_share,
    simulate_listening_test,
)

QUIET = ListeningWorld(
    effects={"a": 4.0, "b": 2.0}, n_items=3, listener_sd=0, item_sd=0, taste_sd=0, sound_sd=0, rating_sd=0, slips=0
)


def test_without_noise_everybody_says_what_is_true(rng: np.random.Generator) -> None:
    tables = simulate_listening_test(QUIET, ListeningSettings(listeners=3), rng=rng).tables
    assert {(row["system"], row["rating"]) for row in tables.ratings} == {("a", 4), ("b", 2)}
    assert all(row["is_right"] for row in tables.checks)
    assert len(tables.listening) == 3 * 6
    chosen = simulate_listening_test(QUIET, ListeningSettings(type="ab", listeners=2), rng=rng).tables.choices
    assert {row["chosen"] for row in chosen} == {"a"}


def test_an_order_effect_lifts_the_last_pages(rng: np.random.Generator) -> None:
    world = dataclasses.replace(QUIET, order_effect=2.0, effects={"a": 3.0})
    ratings = simulate_listening_test(world, ListeningSettings(listeners=2, checks=0), rng=rng).tables.ratings
    assert [(row["order_index"], row["rating"]) for row in ratings[:3]] == [(0, 3), (1, 4), (2, 5)]


def test_careless_listeners_are_as_many_as_asked_and_named(rng: np.random.Generator) -> None:
    world = dataclasses.replace(QUIET, careless=0.25, effects={"a": 5.0})
    test = simulate_listening_test(world, ListeningSettings(listeners=8), rng=rng)
    assert len(test.careless) == 2
    for row in test.tables.ratings:
        if row["listener"] not in test.careless:
            assert row["rating"] == 5
    assert {row["rating"] for row in test.tables.ratings if row["listener"] in test.careless} != {5}


@pytest.mark.parametrize("kind", ["rating", "mushra"])
def test_expected_ratings_are_those_of_many_draws(kind: str) -> None:
    unit = 1 if kind == "rating" else 20
    effects = {"a": 4.2 * unit} | ({} if kind == "rating" else {"reference": 100.0, "anchor": 10.0})
    spreads = dict.fromkeys(("listener_sd", "item_sd", "taste_sd", "sound_sd", "rating_sd"), 0.5 * unit)
    world = ListeningWorld(effects=effects, n_items=30, **spreads)
    rng = np.random.default_rng(3)
    means = []
    for _ in range(12):
        settings = ListeningSettings(type=kind, listeners=10, checks=0)
        ratings = simulate_listening_test(world, settings, rng=rng).tables.ratings
        means.append(np.mean([row["rating"] for row in ratings if row["system"] == "a"]))
    error = np.std(means, ddof=1) / len(means) ** 0.5
    assert abs(np.mean(means) - expected_rating(world, "a", kind)) < 3.5 * error
    assert expected_rating(world, "a", kind) < 4.2 * unit - 0.05 * unit  # the end of the scale holds it down


@pytest.mark.slow
def test_expected_shares_are_those_of_many_draws() -> None:
    world = ListeningWorld(effects={"a": 0.4, "b": 0.0}, n_items=30, order_effect=0.5)
    rng, shares = np.random.default_rng(4), []
    for _ in range(12):
        chosen = simulate_listening_test(world, ListeningSettings(type="ab", listeners=20), rng=rng).tables.choices
        shares.append(np.mean([row["chosen"] == "a" for row in chosen]))
    error = np.std(shares, ddof=1) / len(shares) ** 0.5
    assert abs(np.mean(shares) - expected_share(world, "a", "b")) < 3.5 * error
    assert expected_share(world, "a", "b") + expected_share(world, "b", "a") == pytest.approx(1)


def test_several_questions(rng: np.random.Generator) -> None:
    settings = ListeningSettings(listeners=2, questions=named_questions("rating", ["LQ1", "melody"]))
    tables = simulate_listening_test(QUIET, settings, rng=rng).tables
    assert {row["question"] for row in tables.ratings} == {"LQ1", "melody"}


@pytest.mark.parametrize(
    "wrong", [{"effects": {}}, {"n_items": 1}, {"rating_sd": -1.0}, {"careless": 1.5}, {"slips": 2.0}]
)
def test_worlds_that_cannot_be(wrong: dict[str, object]) -> None:
    with pytest.raises(InvalidInputError):
        dataclasses.replace(QUIET, **wrong)
