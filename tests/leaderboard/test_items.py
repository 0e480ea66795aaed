"""Items that are matched by their references, what is left out, and controls that nobody stands above."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.leaderboard.toy_records import SETTINGS, cell_of, record, row_of, tables_of

from music_evals.benchmark.tasks.songs.descriptions import DESCRIPTIONS, Settings
from music_evals.benchmark.tasks.songs.songs import load_songs
from music_evals.errors import UnknownNameError
from music_evals.leaderboard import add_to_board, build_leaderboard
from music_evals.leaderboard.records import ResultRecord, conditions_of
from music_evals.leaderboard.tables import make_leaderboard

REFERENCES = tuple(f"r{row}" for row in range(10))
CONTROL: dict[str, Any] = {"role": "control", "unranked": "a control"}


def scored(system: str, values: Any, **fields: Any) -> ResultRecord:
    """A record whose items each have a reference of their own."""
    n = len(values)
    return record(system, list(values), **{"references": tuple(f"r{row}" for row in range(n)), **fields})


def order(table: dict[str, Any]) -> list[str]:
    return [row["label"] for row in table["rows"]]


def test_items_of_other_names_are_matched_by_their_references() -> None:
    turned = tuple(reversed(REFERENCES))
    first = scored("first", np.arange(10) / 10)
    second = scored("second", np.arange(10)[::-1] / 10 + 0.1, items=tuple("abcdefghij"), references=turned, run="other")
    (table,) = tables_of(first, second)
    (test,) = table["tests"]
    assert test["n"] == 10
    assert test["difference"] == pytest.approx(-0.1)
    assert test["p_value"] == pytest.approx(2 / 2**10)  # item by item it is the same difference


def test_several_items_of_one_reference_are_matched_in_their_order() -> None:
    twice = tuple(f"r{row // 2}" for row in range(10))
    groups = tuple(f"g{row // 2}" for row in range(10))
    first = scored("first", np.arange(10) / 10, references=twice, groups=groups)
    names = tuple(f"edit {row}" for row in range(10))
    second = scored("second", np.arange(10) / 10, references=twice, groups=groups, items=names, run="other")
    held = {"items": first.items[::2], "groups": first.groups[::2], "references": twice[::2]}
    control = scored("control", [0.0] * 5, **held, **CONTROL)
    (table,) = tables_of(first, second, control)
    by_pair = {frozenset((test["a"], test["b"])): test for test in table["tests"]}
    assert by_pair[frozenset(("first", "second"))]["n"] == 10
    assert by_pair[frozenset(("first", "second"))]["difference"] == 0
    assert by_pair[frozenset(("first", "control"))]["n"] == 10  # the control is beside both items of a reference


def test_what_other_seeds_made_is_no_item_of_its_own() -> None:
    five = record(
        "five", [0.0, 1.0] * 5, items=tuple(f"s{n // 2}{', run 2' if n % 2 else ''}" for n in range(10)),
        references=tuple(f"r{n // 2}" for n in range(10)), groups=tuple(f"s{n // 2}" for n in range(10)),
    )  # fmt: skip
    once = scored("once", [0.5] * 5, items=tuple(f"s{n}" for n in range(5)), groups=tuple(f"s{n}" for n in range(5)))
    (table,) = tables_of(five, once)
    (test,) = table["tests"]
    assert (test["n"], test["difference"]) == (5, 0.0)


def test_old_records_stand_with_their_own_run_alone() -> None:
    old = {"dataset": "manifest.jsonl", "split": "test", "variant": "official"}
    records = [record(name, [0.5] * 10, settings=old, run=run) for name, run in (("A", "1"), ("B", "2"), ("C", "2"))]
    tables = tables_of(*records)
    assert sorted(order(table) for table in tables) == [["A"], ["B", "C"]]
    assert conditions_of(records[1]) == conditions_of(records[2]) != conditions_of(records[0])
    (new,) = tables_of(record("A", [0.5] * 10), record("B", [0.5] * 10, dataset="other", split="train", run="2"))
    assert new["settings"]["dataset"] == "toy, other"


def test_half_of_the_scores_left_out_count_as_the_control() -> None:
    rng = np.random.default_rng(1)
    full = 0.3 + rng.uniform(0, 0.2, 12)
    full[6:] -= 0.1  # the second half is hard
    half = [*full[:6], *[None] * 6]
    control = scored("another", full - 0.2, **CONTROL)
    (table,) = tables_of(scored("full", full), scored("half", half), control)
    cells = {name: cell_of(table, name) for name in ("full", "half", "another")}
    assert cells["half"]["value"] == pytest.approx((full[:6].sum() + (full[6:] - 0.2).sum()) / 12)
    assert cells["half"]["value"] < cells["full"]["value"] < np.mean(full[:6])
    assert cells["half"]["low"] <= cells["half"]["value"] <= cells["half"]["high"]
    assert (cells["half"]["filled"], cells["half"]["n_defined"]) == (6, 6)
    assert order(table) == ["full", "half", "another"]


def test_a_control_that_is_better_than_the_system_fills_nothing_up() -> None:
    (table,) = tables_of(
        scored("bad", [0.1, 0.2] * 3 + [None] * 6), scored("truth", [1.0] * 12, **CONTROL), scored("other", [0.5] * 12)
    )
    assert cell_of(table, "bad")["value"] == pytest.approx(0.15)


def test_seeds_without_a_score_count_too() -> None:
    partly = dataclasses.replace(scored("partly", [0.8] * 8), values=((0.8, None),) * 8)
    (table,) = tables_of(partly, scored("low", [0.2] * 8, **CONTROL))
    assert cell_of(table, "partly")["value"] == pytest.approx(0.5)


@pytest.mark.parametrize("direction", ["higher", "lower", "zero"])
def test_what_cannot_be_told_from_a_control_stands_below_it(direction: str) -> None:
    sign = 1 if direction == "higher" else -1
    rng = np.random.default_rng(0)
    noise = rng.normal(0, 0.3, 12)
    level = {"higher": 0.0, "lower": 2.0, "zero": 2.0}[direction]
    control = scored("nonsense", level + noise, direction=direction, **CONTROL)
    like_it = scored("like it", level + noise + sign * 0.01 * rng.choice([-1, 1.4], 12), direction=direction)
    good = scored("good", level + noise + sign, direction=direction)
    worse = scored("worse", level + noise - sign, direction=direction)
    (table,) = tables_of(worse, like_it, good, control)
    ranks = {row["label"]: row["cells"]["lyric_structure"]["rank"] for row in table["rows"]}
    assert order(table) == ["good", "nonsense", "like it", "worse"]
    assert ranks == {"good": [1, 1], "nonsense": [2, 2], "like it": [3, 3], "worse": [4, 4]}
    assert cell_of(table, "like it")["mark"] == "not told from nonsense"
    assert cell_of(table, "good")["mark"] == cell_of(table, "nonsense")["mark"] == ""
    assert row_of(table, "nonsense")["kind"] == "control"


def test_a_baseline_is_ranked_and_is_a_control_of_systems() -> None:
    noise = np.random.default_rng(0).normal(0, 0.1, 12)
    base = scored("base", noise, role="baseline")
    (table,) = tables_of(scored("like it", noise, role="model"), base, scored("good", noise + 1, role="model"))
    assert order(table) == ["good", "base", "like it"]
    assert row_of(table, "base")["kind"] == "ranked"


def test_a_board_of_many_systems_still_tells_them_from_controls() -> None:
    """Tests against controls are a family of their own, however many systems there are."""
    noise = np.random.default_rng(0).normal(0, 0.1, 12)
    crowd = [scored(f"s{n}", noise + 0.5, run=f"run {n}") for n in range(30)]
    (table,) = tables_of(*crowd, scored("control", noise, **CONTROL))
    assert {cell_of(table, row.system)["mark"] for row in crowd} == {""}
    assert cell_of(table, "control")["rank"] == [31, 31]


def test_controls_of_several_runs_are_one_row_unless_they_differ() -> None:
    same = [scored("echo", [0.5] * 10, receipt={"n": n}, run=f"run {n}", **CONTROL) for n in range(3)]
    other = scored("echo", [0.6] * 10, run="run 9", **CONTROL)
    (table,) = tables_of(*same, other, scored("A", [0.9] * 10))
    assert len([row for row in table["rows"] if row["system"] == "echo"]) == 2


def several(system: str, *values: float, **fields: Any) -> list[ResultRecord]:
    """Records of a system that is worth so much at several metrics."""
    noise = np.random.default_rng(0).normal(0, 0.01, 12)
    return [scored(system, value + noise, metric=f"m{n}", title=f"m{n}", **fields) for n, value in enumerate(values)]


def test_rows_stand_in_the_order_of_their_mean_rank() -> None:
    one_trick, steady = several("one trick", 0.9, 0.1, 0.1, 0.1), several("steady", 0.8, 0.8, 0.8, 0.8)
    (table,) = tables_of(*one_trick, *steady)
    assert [(row["label"], row["mean_rank"]) for row in table["rows"]] == [("steady", 1.25), ("one trick", 1.75)]


def test_lyrics_that_form_alone_puts_first_stand_below_people() -> None:
    gated = "lyric_structure_gated"
    records = [
        scored(name, np.array([value] * 12) - np.arange(12) / 1000, metric=metric, direction=direction, **fields)
        for name, form, share, worth, fields in (
            ("true lyrics", 95, 0.1, 90, CONTROL), ("climbed", 100, 0.0, 90, CONTROL), ("people", 94, 0.1, 85, {}),
            ("rhyming", 100, 0.0, 0, {}), ("searched", 100, 0.0, 90, {}),
        )
        for metric, value, direction in (
            ("lyric_structure", form, "higher"), ("lyric_song", form, "higher"),
            ("lyric_wordlikeness", share, "lower"), (gated, worth, "higher"),
        )
    ]  # fmt: skip
    by_form, *_ = make_leaderboard(records, by="lyric_structure")["tables"]
    assert order(by_form)[-1] == "people"
    for by in (None, gated):
        table, *_ = make_leaderboard(records, by=by)["tables"]
        assert table["headline"] == gated
        assert order(table) == ["true lyrics", "climbed", "searched", "people", "rhyming"]
        assert [row["mean_rank"] for row in table["rows"]] == [2, 2, 2, 4, 5]  # three are equal


def test_who_leaves_scores_out_gains_no_rank() -> None:
    (table,) = tables_of(*several("picky", 0.9), *several("whole", 0.8, 0.8, 0.8), *several("low", 0.1, 0.1, 0.1))
    assert order(table)[0] == "whole"
    assert row_of(table, "picky")["mean_rank"] == pytest.approx((1 + 3 + 3) / 3)


def test_rows_by_one_score() -> None:
    records = [*several("a", 0.9, 0.1, 0.1), *several("b", 0.5, 0.8, 0.8)]
    for by, first in ((None, "b"), ("m0", "a"), ("m1", "b")):
        made = make_leaderboard(records, by=by)
        assert made["by"] == by
        assert made["tables"][0]["rows"][0]["label"] == first
    with pytest.raises(UnknownNameError) as raised:
        make_leaderboard(records, by="m9")
    assert raised.value.facts["name"] == "m9"


@pytest.mark.slow
def test_half_of_the_tags_missing_stand_below_all_of_them(songs_file: Path, tmp_path: Path) -> None:
    songs = load_songs(str(songs_file))
    rows = {
        song.id: {group: {name: list(tags) for name, tags in named.items()} for group, named in song.tags.items()}
        for song in songs
    }
    left_out = {"half": list(rows)[::2], "other half": list(rows)[1::2], "all": []}
    files = []
    for name, silent in left_out.items():
        path = tmp_path / f"{name}.jsonl"
        said = [
            {"id": item, **({group: {} for group in tags} if item in silent else tags)} for item, tags in rows.items()
        ]
        path.write_text("".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in said), encoding="utf-8")
        files.append(f"{name}={path}")
    settings = Settings(
        tmp_path / "run", str(songs_file), predictions=files, encoder="char-ngrams", n_resamples=20, report=False
    )
    results = DESCRIPTIONS.run(settings).results["scores"]
    metric = "tag_semantic_similarity"
    halves = [results[name][metric]["value"] for name in ("half", "other half")]
    assert max(halves) > results["all"][metric]["value"]  # what an average over the defined songs rewards
    add_to_board(tmp_path / "run", tmp_path / "board")
    table = build_leaderboard(tmp_path / "board")["tables"][0]
    values = {name: cell_of(table, name, metric)["value"] for name in left_out}
    assert max(values["half"], values["other half"]) < values["all"]
    labels = order(table)
    assert labels.index("all") < min(labels.index("half"), labels.index("other half"))
    assert labels.index("own tags") < labels.index("all")  # the truth as a system is the truth as a control


def test_conditions_are_those_of_the_settings() -> None:
    assert conditions_of(scored("A", [1.0])) == SETTINGS
