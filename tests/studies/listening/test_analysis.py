"""What a listening test found: numbers worked by hand, who is left out, and intervals that hold what is true."""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from music_evals.errors import InvalidInputError, UnknownNameError
from music_evals.pipelines.study_tables import LISTENING, read_table
from music_evals.stats.crossed import crossed_difference, crossed_mean
from music_evals.studies.listening.analysis import TABLES, evaluate_listening
from music_evals.studies.listening.answers import ListeningTables
from music_evals.studies.listening.report import report_text, write_report
from music_evals.studies.listening.settings import ListeningSettings
from music_evals.studies.listening.simulation import ListeningWorld, plan_listening, simulate_listening_test, world_of

RATINGS = {("x", "a"): (5, 4), ("y", "a"): (4, 4), ("x", "b"): (3, 1), ("y", "b"): (2, 2)}
"""(item, system) -> what ann and bob said."""


OF = {kind: ListeningSettings(type=kind) for kind in ("rating", "ab", "mushra")}
NO_SERVER = "no server knows the time of {}: theirs is as their page says"
NOT_APPLIED = "low_agreement was not applied: 0 listeners compared, who agree by 0.00"


def by_hand() -> ListeningTables:
    rows, index = [], {"ann": 0, "bob": 0}
    for (item, system), said in RATINGS.items():
        for who, rating in zip(("ann", "bob"), said, strict=True):
            rows.append({"item": item, "group": item, "system": system, "listener": who, "question": "LQ1",
                         "rating": rating, "scale": "1-5", "block": 0, "order_index": index[who]})  # fmt: skip
            index[who] += 1
    return ListeningTables(rows, [], [], [], listeners("ann", "bob"))


def listeners(*names: str, failed: int = 0) -> list[dict[str, Any]]:
    return [
        {
            "listener": name,
            "slot": n,
            "block": 0,
            "n_trials": 4,
            "seconds": 60.0,
            "server_sec": math.nan,
            "n_checks": 3,
            "n_failed": failed,
        }
        for n, name in enumerate(names)
    ]


def cell(rows: list[dict[str, Any]], **known: Any) -> dict[str, Any]:
    (found,) = [row for row in rows if all(row[name] == value for name, value in known.items())]
    return found


def test_means_and_differences_are_those_of_the_ratings() -> None:
    found = evaluate_listening(by_hand(), OF["rating"])
    assert list(found) == list(TABLES)
    mean = cell(found["means"], system="a", listeners="kept")
    assert mean["mean"] == 17 / 4
    assert (mean["n"], mean["n_listeners"], mean["n_groups"]) == (4, 2, 2)
    one = crossed_mean([5, 4, 4, 4], ["p", "q", "p", "q"], ["x", "x", "y", "y"])
    assert (mean["low"], mean["high"]) == (max(one.low, 1), min(one.high, 5))  # within the scale
    difference = cell(found["differences"], listeners="all")
    assert (difference["first"], difference["second"], difference["difference"]) == ("a", "b", 17 / 4 - 2)
    both = crossed_difference(
        [5, 4, 4, 4, 3, 1, 2, 2], [True] * 4 + [False] * 4, ["p", "q"] * 4, ["x", "x", "y", "y"] * 2
    )
    assert (difference["low"], difference["high"], difference["p"]) == pytest.approx(both[1:4])
    assert difference["p_holm"] == difference["p"]  # one test
    assert found["warnings"] == [
        NO_SERVER.format("2 listeners"), "with 2 listeners and 2 groups of items the intervals are rough", NOT_APPLIED
    ]  # fmt: skip


def test_who_failed_the_checks_is_left_out_of_one_set() -> None:
    tables = by_hand()
    tables.listeners[1]["n_failed"] = 2
    found = evaluate_listening(tables, OF["rating"])
    assert [(row["is_kept"], row["marks"]) for row in found["listeners"]] == [(True, ""), (False, "failed_checks")]
    assert cell(found["means"], system="b", listeners="kept")["mean"] == 2.5
    assert cell(found["means"], system="b", listeners="all")["mean"] == 2
    assert math.isnan(cell(found["means"], system="b", listeners="kept")["low"])
    assert "1 listener of 2 left out; the tables have both sets" in found["warnings"]
    lenient = ListeningSettings(allowed_failures=2)
    assert all(row["is_kept"] for row in evaluate_listening(tables, lenient)["listeners"])
    tables.listeners[0]["n_failed"] = 2
    with pytest.raises(InvalidInputError, match="none of 2 listeners passed"):
        evaluate_listening(tables, OF["rating"])
    with pytest.raises(InvalidInputError, match="`allowed_failures` must be 0 to 20"):
        ListeningSettings(allowed_failures=-1)


def test_mushra_is_screened_by_its_rules() -> None:
    rows = []
    for who, reference in (("ann", (100, 95, 91)), ("bob", (100, 80, 100))):
        for item, score in zip("xyz", reference, strict=True):
            for system, rating in (("reference", score), ("s", 50), ("anchor", 20)):
                rows.append({"item": item, "group": item, "system": system, "listener": who, "question": "overall",
                             "rating": rating, "scale": "0-100", "block": 0, "order_index": 0})  # fmt: skip
    found = evaluate_listening(ListeningTables(rows, [], [], [], listeners("ann", "bob")), OF["mushra"])
    ann, bob = found["listeners"]
    assert (ann["is_kept"], ann["low_references"], ann["high_anchors"]) == (True, 0, 0)
    assert (bob["is_kept"], bob["low_references"]) == (False, 1 / 3)
    assert bob["marks"] == "low_reference"
    assert cell(found["means"], system="reference", listeners="kept")["n_listeners"] == 1


def test_preferences_do_not_depend_on_the_side() -> None:
    choices = []
    for who, flipped in (("ann", False), ("bob", True)):
        for item, chosen in (("x", "a"), ("y", "a"), ("z", "b")):
            first, second = ("b", "a") if flipped else ("a", "b")
            choices.append({"item": item, "group": item, "first": first, "second": second, "listener": who,
                            "question": "preference", "chosen": chosen, "block": 0, "order_index": 0})  # fmt: skip
    won = [
        {**row, "system": system, "rating": float(row["chosen"] == system), "scale": "0-1"}
        for row in choices
        for system in "ab"
    ]
    found = evaluate_listening(ListeningTables(won, [], choices, [], listeners("ann", "bob")), OF["ab"])
    share = cell(found["preferences"], listeners="kept")
    assert (share["first"], share["second"], share["share"], share["n"]) == ("a", "b", 2 / 3, 6)
    assert 0 <= share["low"] <= 2 / 3 <= share["high"] <= 1
    assert cell(found["agreement"], listeners="kept")["alpha"] == 1
    assert cell(found["order"], listeners="kept")["estimate"] == 0.5
    assert found["differences"] == []


def test_an_order_effect_is_found_and_plans_balance_it() -> None:
    world = ListeningWorld(effects={"a": 3.0, "b": 2.5}, order_effect=1.5, n_items=8)
    test = simulate_listening_test(world, ListeningSettings(listeners=32), rng=np.random.default_rng(0))
    found = evaluate_listening(test.tables, OF["rating"])
    order = cell(found["order"], listeners="kept")
    assert order["low"] < 1.4 < order["high"]  # the ends of the scale hold it down a little
    assert order["low"] > 0.8
    assert any(line.startswith("LQ1: the order played a part (first to last page") for line in found["warnings"])
    sided = ListeningWorld(effects={"a": 0.0, "b": 0.0}, order_effect=1.0)
    test = simulate_listening_test(sided, ListeningSettings(type="ab", listeners=24), rng=np.random.default_rng(1))
    found = evaluate_listening(test.tables, OF["ab"])
    assert cell(found["order"], listeners="kept")["low"] > 0.6
    share = cell(found["preferences"], listeners="kept")
    assert share["low"] < 0.5 < share["high"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "effect", "others"),
    [
        ("rating", 0.5, {}),
        ("rating", 0.5, {"order_effect": 1.0}),
        ("ab", 0.5, {}),
        ("ab", 0.5, {"order_effect": 0.5}),
        ("mushra", 10.0, {}),
        ("rating", 0.0, {"careless": 0.25}),
    ],
)
def test_intervals_hold_the_truth(kind: str, effect: float, others: dict[str, float]) -> None:
    """120 draws know a coverage of .95 to about .04 (two standard errors)."""
    (found,) = plan_listening(world_of(kind, effect, **others), ListeningSettings(type=kind), [12], n_draws=120)
    assert found.coverage >= 0.89
    assert found.lost_careful < 0.08
    if others.get("careless"):
        assert found.kept_careless < 0.25  # (2 of 3 tones by chance: 0.104)
        assert found.power < 0.1
    else:
        assert found.power > 0.6
    assert found.minutes > 1


@pytest.mark.slow
def test_screening_mends_what_careless_listeners_do() -> None:
    world = world_of("mushra", 20.0, careless=0.4)
    settings = ListeningSettings(type="mushra", listeners=20)
    rng, differences = np.random.default_rng(2), []
    for _ in range(8):
        found = evaluate_listening(simulate_listening_test(world, settings, rng=rng).tables, OF["mushra"])
        differences.append(
            [
                cell(found["differences"], first="first", second="second", listeners=name)["difference"]
                for name in ("kept", "all")
            ]
        )
    kept, everybody = np.mean(differences, axis=0)
    assert kept > 17
    assert everybody < 14  # random answers bring all systems together


@pytest.mark.slow
def test_larger_tests_find_more() -> None:
    small, large = plan_listening(world_of("rating", 0.4), ListeningSettings(), [4, 20], n_draws=15)
    assert small.power < large.power
    assert small.width > large.width
    assert (small.n_listeners, large.n_listeners, small.n_items) == (4, 20, 12)
    for sizes, draws in (([1], 5), ([], 5), ([4], 0)):
        with pytest.raises(InvalidInputError, match="sizes from 2 on"):
            plan_listening(world_of("rating", 0.4), ListeningSettings(), sizes, n_draws=draws)
    with pytest.raises(UnknownNameError):
        world_of("abx", 1.0)


@pytest.mark.parametrize("kind", ["rating", "ab", "mushra"])
def test_the_report_has_all_tables(kind: str, tmp_path: Path) -> None:
    world = world_of(kind, 1.0 if kind != "mushra" else 20.0)
    tables = simulate_listening_test(
        world, ListeningSettings(type=kind, listeners=6), rng=np.random.default_rng(5)
    ).tables
    found = evaluate_listening(tables, OF[kind])
    files = write_report(found, tables, OF[kind], tmp_path / "report")
    text = files["report.md"].read_text()
    assert text == report_text(found, OF[kind])
    for title in ("## Means", "## Agreement among listeners", "## Order", "## Listeners"):
        assert title in text
    assert ("## Preferences" in text) == (kind == "ab") == ("choices.csv" in files)
    assert ("## Differences" in text) == (kind != "ab")
    content = json.loads(files["tables.json"].read_text())
    assert content["type"] == kind
    with files["ratings.csv"].open(newline="") as file:
        assert len(list(csv.DictReader(file))) == len(tables.ratings)
    if kind == "rating":
        assert len(read_table(files["listening.csv"], LISTENING, table_name="listening")["LQ1"]) == 6 * 24
    else:
        assert "listening.csv" not in files


def test_names_cannot_break_the_report() -> None:
    tables = by_hand()
    for row in tables.ratings:
        row["system"] = row["system"].replace("a", "a|b\n# <script>")
    text = report_text(evaluate_listening(tables, OF["rating"]), OF["rating"])
    assert "\n# <script>" not in text
    assert r"`a\|b # <script>`" in text
