"""What is ranked together, in which order, and what is said of it."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
from tests.leaderboard.toy_records import SETTINGS, A, B, C, cell_of, record, row_of, tables_of

from music_evals.benchmark.tasks.inpainting.items import load_items
from music_evals.leaderboard import tables
from music_evals.leaderboard.export import html_page, text_tables
from music_evals.leaderboard.presets import PRESETS, PUBLISHED, fits
from music_evals.leaderboard.records import ResultRecord, content_of_item, references_hash
from music_evals.leaderboard.tables import decimals_of, make_leaderboard, records_digest, shown


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"references": "abc"}, "references: toy, elsewhere abc"),
        ({"variant": "paper"}, "variant: official, elsewhere paper"),
        ({"option rhyme": "char"}, "option rhyme: none, elsewhere char"),
        ({"encoder": "e"}, "encoder: none, elsewhere e"),
        ({"version of jieba": "0.42"}, "version of jieba: none, elsewhere 0.42"),
    ],
)
def test_what_was_made_otherwise_stands_apart(changed: dict[str, Any], reason: str) -> None:
    other = record("B", [0.9] * 10, settings=SETTINGS | changed)
    first, second = sorted(tables_of(A, other), key=lambda table: "A" not in str(table["rows"]))
    assert first["apart"] == [{"table": second["id"], "title": second["title"], "reasons": [reason]}]
    assert first["id"] != second["id"]
    assert cell_of(first, "A")["rank"] == [1, 1]
    assert reason in text_tables({"tables": [first]})


def test_another_split_is_another_table_without_a_word() -> None:
    other = record("B", [0.9] * 10, split="validation", settings=SETTINGS | {"references": "those of validation"})
    assert [table["apart"] for table in tables_of(A, other)] == [[], []]


def test_other_extractors_make_another_column() -> None:
    heard = record("B", [0.9] * 10, extractors={"beats": {"backend": "madmom", "version": 2}})
    (table,) = tables_of(A, heard, dataclasses.replace(C, extractors={}))
    first, second = table["columns"]
    assert (first["n_ranked"], second["n_ranked"]) == (2, 1)
    assert first["differs"] == "beats: none, elsewhere madmom version 2"
    assert second["id"] in row_of(table, "B")["cells"]
    assert first["id"] not in row_of(table, "B")["cells"]
    assert {test["column"] for test in table["tests"]} == {first["id"]}


def test_another_definition_makes_another_column() -> None:
    chroma: dict[str, Any] = {
        "task": "preservation", "metric": "chroma_dtw_similarity", "title": "Chroma DTW similarity",
        "variant": "corrected", "settings": SETTINGS | {"variant": "corrected"},
    }  # fmt: skip
    old, new = record("A", [0.9] * 10, **chroma), record("B", [0.5] * 10, extractors={"definition": 3}, **chroma)
    (table,) = tables_of(old, new)
    first, second = table["columns"]
    assert (first["title"], second["title"]) == ("Chroma DTW similarity, definition 1", "Chroma DTW similarity")
    assert first["differs"] == "definition: 1, elsewhere 3"
    assert table["tests"] == []  # nobody is compared by two definitions
    (alone,) = tables_of(old)
    assert alone["columns"][0]["title"].endswith(", definition 1")


@pytest.mark.parametrize("why", ["it has seen the reference", "only the first 3 items were judged"])
def test_who_stands_outside_is_told_why(why: str) -> None:
    out = record("best", [5.0] * 10, unranked=why)
    (table,) = tables_of(A, B, out)
    assert cell_of(table, "best")["rank"] is None
    assert (row_of(table, "best")["kind"], row_of(table, "best")["why"]) == ("unranked", why)
    assert cell_of(table, "A")["rank"] == [1, 1]
    assert f"not ranked: best: {why}" in text_tables({"tables": [table]})


def test_an_undefined_score_has_no_rank() -> None:
    (table,) = tables_of(A, B, record("none", [None] * 10))
    assert cell_of(table, "none")["why"] == "undefined"
    assert cell_of(table, "B")["rank"] == [2, 2]


HAND: dict[str, Any] = {"content": "c" * 32, "submitter": "me"}


def test_the_last_of_the_same_hand_counts() -> None:
    first, second = record("A", [1.0] * 10, **HAND), record("A", [0.1] * 10, date="1999-01-01", **HAND)
    for order in ((first, second, B), (second, first, B)):  # a date is what somebody wrote
        (table,) = tables_of(*order)
        assert cell_of(table, "A")["value"] == order[1].value
        assert row_of(table, "A")["date"] == order[1].date
        assert "1 scores were added again" in " ".join(table["notes"])


@pytest.mark.parametrize("fields", [{"unranked": "only the first 3 items were judged"}, {"value": None}])
def test_what_may_not_be_ranked_takes_no_place_of_what_is(fields: dict[str, Any]) -> None:
    good, bad = record("A", [1.0] * 10, **HAND), record("A", [0.1] * 10, date="2030-01-01", **HAND, **fields)
    (table,) = tables_of(good, bad, B)
    assert cell_of(table, "A")["record"] == good.id
    assert (row_of(table, "A")["kind"], row_of(table, "A")["date"]) == ("ranked", good.date)
    assert "1 scores that were added later may not be ranked" in " ".join(table["notes"])
    (table,) = tables_of(bad, good, B)
    assert cell_of(table, "A")["record"] == good.id


@pytest.mark.parametrize("fields", [{}, {"content": "c" * 32}, {"submitter": "me"}])
@pytest.mark.parametrize("run", ["run", "another"])
def test_namesakes_that_do_not_say_who_they_are_replace_nothing(fields: dict[str, Any], run: str) -> None:
    first, second = record("A", [1.0] * 10, **fields), record("A", [0.1] * 10, run=run, **fields)
    beside = record("A", [0.5] * 10, metric="lyric_song", **fields)
    (table,) = tables_of(first, beside, second, B)
    label = f"A ({', '.join(['system', *(value[:8] for value in fields.values())])})"
    assert {row["label"] for row in table["rows"]} == {label, f"{label} #2", "B"}
    assert set(row_of(table, label)["cells"]) == {"lyric_structure", "lyric_song"}
    assert cell_of(table, label)["record"] == first.id
    assert cell_of(table, f"{label} #2")["record"] == second.id
    assert {test[side] for test in table["tests"] for side in "ab"} <= {row["label"] for row in table["rows"]}


def test_a_name_cannot_take_the_label_of_another_row() -> None:
    named = [record("A (system, x)", [0.5] * 10), record("A", [0.6] * 10, submitter="x"), record("A", [0.7] * 10)]
    (table,) = tables_of(*named)
    assert {row["label"] for row in table["rows"]} == {"A (system, x)", "A (system, x) #2", "A (system)"}


def test_one_name_of_two_hands_is_two_rows() -> None:
    (table,) = tables_of(dataclasses.replace(A, submitter="x"), record("A", [0.5] * 10, submitter="y"))
    assert {row["label"] for row in table["rows"]} == {"A (system, x)", "A (system, y)"}


def test_equal_records_are_one_row() -> None:
    twice = [dataclasses.replace(A, submitter=name) for name in "xy"]
    (table,) = tables_of(*twice, B)
    assert [row["label"] for row in table["rows"]] == ["A", "B"]
    assert cell_of(table, "A")["rank"] == [1, 1]


def test_published_tables_stand_alone_come_last_and_are_never_ranked() -> None:
    settings = SETTINGS | {"references": "caimd", "option normalise": False}
    own = record("A", [1.0] * 10, settings=settings, dataset="caimd", config="v2")
    assert all(table["published"] for table in make_leaderboard([])["tables"])
    first, *tables = make_leaderboard([own])["tables"]
    assert [row["kind"] for row in first["rows"]] == ["ranked"]
    assert first["published"] is None
    assert [table["task"] for table in tables] == ["inpainting", "preservation", "lyrics", "descriptions"]
    for table in tables:
        assert table["settings"]["conditions"] in table["title"]
        assert table["preset"] is None
        assert {(row["kind"], row["why"]) for row in table["rows"]} == {("published", PUBLISHED)}
        assert all(cell["rank"] is None for row in table["rows"] for cell in row["cells"].values())
    lyrics = next(table for table in tables if table["task"] == "lyrics")
    assert cell_of(lyrics, "GPT-4")["shown"] == "67.08"
    preservation = next(table for table in tables if table["task"] == "preservation")
    assert cell_of(preservation, "Vanilla", "chroma_dtw_similarity")["shown"] == "0.860"  # as printed


def test_published_tables_are_folded_on_the_page() -> None:
    page = html_page(make_leaderboard([A, B]))
    assert page.index("<h2 ") < page.index("<details><summary>Score inpainting: MUSIB")
    assert page.count("<h2 ") == 1


STAND_INS = [
    {"dataset": "jsb_chorales", "config": "musib", "split": "test", "variant": "corrected", "references": "0" * 16},
    {"dataset": "medleydb_editing", "config": "stand_in", "split": "test", "variant": "corrected"},
    {"dataset": "caimd", "config": "v2", "split": "test", "variant": "official", "option normalise": True},
]


@pytest.mark.parametrize("settings", STAND_INS)
def test_what_is_only_called_like_a_preset_does_not_fit(settings: dict[str, Any]) -> None:
    assert not any(fits(preset, settings) for preset in PRESETS)


@pytest.mark.parametrize(("config", "place"), [("musib", 0), ("musib_official", 1)])
def test_presets_are_known_by_what_the_data_set_holds(config: str, place: int) -> None:
    items = load_items("jsb_chorales", config, "test")
    rows = [{"tokens": tokens} for tokens in items.contexts]
    assert references_hash(map(content_of_item, rows)) == PRESETS[place].settings["references"]


def order_of(*records: ResultRecord) -> list[str]:
    (table,) = tables_of(*records)
    return [row["label"] for row in table["rows"]]


def test_of_rows_whose_ranks_overlap_the_better_value_stands_first() -> None:
    # "wide" has the best value and differs from nobody (ranks 1-3); "steady" is better than "low" only (ranks 1-2)
    wide = record("wide", [3.0, -0.5] * 5)
    steady, low = record("steady", [1.0] * 10), record("low", [0.9] * 10)
    (table,) = tables_of(steady, low, wide)
    assert [cell_of(table, name)["rank"] for name in ("wide", "steady", "low")] == [[1, 3], [1, 2], [2, 3]]
    assert order_of(steady, low, wide) == ["wide", "steady", "low"]


def test_whoever_leaves_items_out_without_a_control_is_not_ranked() -> None:
    good = record("good", [1.0] * 10)
    easy = record("easy", [2.0] * 5 + [None] * 5)
    (table,) = tables_of(easy, good, B)
    assert (cell_of(table, "easy")["rank"], cell_of(table, "good")["rank"]) == (None, [1, 1])
    assert cell_of(table, "easy")["why"] == "it leaves out 5 items that others define"
    assert order_of(easy, good, B) == ["good", "B", "easy"]


@pytest.mark.parametrize("direction", ["lower", "zero"])
def test_the_order_follows_the_direction(direction: str) -> None:
    rows = [
        record(name, [value] * 10, direction=direction) for name, value in (("far", 3.0), ("near", 1.0), ("at", 2.0))
    ]
    assert order_of(*rows) == ["near", "at", "far"]


def test_the_board_that_ships_is_in_the_order_of_its_benchmark(root: Path) -> None:
    table = json.loads((root / "spaces" / "leaderboard" / "board" / "leaderboard.json").read_text())["tables"][0]
    rows = sorted(table["rows"], key=lambda row: row["cells"]["note_f1"]["by_value"])
    ranked = [row["label"] for row in rows if row["kind"] == "ranked"]
    page = (root / "benchmarks" / "jsb_chorales" / "README.md").read_text().partition("\n## Honest scores\n")[2]
    page_order = [line.split("`")[1] for line in page.partition("\n## ")[0].splitlines() if line.startswith("| `")]
    both = [name for name in page_order if name in ranked]
    assert {"copy_past", "anticipation_rnn"} <= set(both)
    assert [name for name in ranked if name in both] == list(dict.fromkeys(both))


def test_a_value_outside_its_interval_says_why() -> None:
    features = {"kind": "divergence", "direction": "lower", "reference_values": (0.5,) * 10}
    above = record("above", [0.5] * 10, value=0.028, low=0.0, high=0.024, **features)
    within = record("within", [0.4] * 10, value=0.02, low=0.0, high=0.024, **features)
    (table,) = tables_of(above, within)
    assert cell_of(table, "above")["interval"] == "0.000..0.024 *"
    assert (row_of(table, "above")["remark"], row_of(table, "within")["remark"]) == (tables.OUTSIDE, "")
    assert tables.BIAS in table["notes"]
    text = text_tables({"tables": [table]})
    assert "0.000..0.024 *" in text
    assert tables.BIAS in text
    assert tables.OUTSIDE in html_page({"tables": [table]})
    (table,) = tables_of(within, record("mean", [0.5] * 10, metric="other", value=0.5, low=0.1, high=0.4))
    assert tables.BIAS not in table["notes"]  # of a mean there is no such reason


@pytest.mark.parametrize(
    ("low", "high", "decimals"),
    [
        (0.4, 0.6, 2), (0.45, 0.47, 3), (0.1234, 0.1236, 5), (10.0, 30.0, 0), (100.0, 900.0, 0),
        (0.0, 0.01992, 3), (0.5, 0.5, 3), (0.0, 1e-17, 3), (None, 1.0, 3), (0.0, 1e-9, 6),
    ],
)  # fmt: skip
def test_digits_are_two_of_half_the_width(low: float | None, high: float | None, decimals: int) -> None:
    assert decimals_of(low, high) == decimals


def test_scores_as_text() -> None:
    assert shown(0.123456, 0.1, 0.2) == "0.123"
    assert shown(0.12345, 0.12, 0.125) == "0.1235"  # halves of the width 0.0025: four decimals
    assert shown(-0.0001, -0.5, 0.5) == "0.00"
    assert shown(None) == "n/a"


def test_equal_records_give_equal_tables() -> None:
    assert make_leaderboard([A, B, C]) == make_leaderboard([A, B, C])
    assert records_digest([C, B, A]) != records_digest([A, B, C])  # the order decides what counts


def test_few_groups_are_told() -> None:
    (table,) = tables_of(*(record(name, [0.5] * 4) for name in "ab"))
    assert "as few as 4 groups" in " ".join(table["notes"])
    (table,) = tables_of(A, B)
    assert table["notes"] == []


def test_systems_of_several_kernels_are_told() -> None:
    of = [record(name, [1.0] * 10, receipt={"kernels": [f"kernel {name}"]}) for name in "AB"]
    (mixed,), (plain,) = tables_of(*of), tables_of(of[0], B)
    told = "scores were made with several kinds of processor kernels, so last digits may differ: kernel A; kernel B"
    assert told in mixed["notes"]
    assert not any("kernels" in note for note in plain["notes"])
