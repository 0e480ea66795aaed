from __future__ import annotations

import copy
import dataclasses
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from music_evals.benchmark.contents import caveats, significant
from music_evals.benchmark.formats import plain
from music_evals.benchmark.published import read_published
from music_evals.benchmark.records import check_same_run
from music_evals.benchmark.results import build_results
from music_evals.benchmark.run import definitions_of
from music_evals.benchmark.scores import read_scores
from music_evals.benchmark.tables import legend, markdown_report, text_report
from music_evals.benchmark.tasks.preservation.pairs import CEILING, UNRELATED
from music_evals.benchmark.tasks.preservation.plots import (
    RIM,
    differing_notes,
    differing_spans,
    outward,
    timeline,
    unmatched,
)
from music_evals.benchmark.tasks.preservation.report import _left_out, render_report, worst_pairs
from music_evals.benchmark.tasks.preservation.task import PRESERVATION
from music_evals.errors import CorruptRecordsError
from music_evals.metrics.catalogue import PRESERVATION_METRICS
from music_evals.stats import mean_interval

METRICS = ["circle_of_fifths_distance", "beat_f_measure"]


Scores = dict[tuple[str, str], list[Any]]


def records(scores: Scores, groups: dict[str, str] | None = None) -> list[dict[str, Any]]:
    """Return records of (system, item) -> one value, None (undefined) or text (error) a metric."""
    systems = list(dict.fromkeys(system for system, _ in scores if system not in {CEILING, UNRELATED}))
    header = {
        "variant": "corrected",
        "metrics": METRICS,
        "companions": [],
        "extractors": {"features": {}},
        "versions": {},
    }
    dataset = {"id": "d", "config": None, "split": None, "revision": None}
    header |= definitions_of(header)
    rows: list[dict[str, Any]] = [
        {"kind": "run", "task": "preservation", "dataset": dataset, "versions": {}, **header},
        {"kind": "selection", "systems": systems},
    ]
    for system, item in scores:
        about = {"item": item, "system": system, "group": (groups or {}).get(item, item), "modality": "audio"}
        sides = {side: {"name": f"{item}.wav", "content": f"{side} {item}"} for side in ("reference", "estimate")}
        rows.append({"kind": "pair", **about, **sides, "treatment": ""})
    for (system, item), values in scores.items():
        for metric, value in zip(METRICS, values, strict=True):
            found: dict[str, Any] = {"value": value}
            if isinstance(value, str):
                found = {"error": value}
            elif value is None:
                found |= {"reason": "reference: silent"}
            about = {"item": item, "system": system, "content": [f"reference {item}", f"estimate {item}"]}
            rows.append({"kind": "score", **about, "metric": metric, "variant": "corrected", **found, "n": 1})
    return rows


def results_of(rows: list[dict[str, Any]]) -> dict[str, Any]:
    return build_results(read_scores(rows, PRESERVATION), PRESERVATION, n_resamples=200)


def test_means_intervals_and_counts_are_those_of_the_pairs() -> None:
    values = {"a": 0.2, "b": 0.4, "c": 0.9, "d": None, "e": "BackendError: broken"}
    groups = {"a": "x", "b": "x"}
    results = results_of(records({("s", item): [0.5, value] for item, value in values.items()}, groups))
    cell = results["scores"]["s"]["beat_f_measure"]
    assert cell["value"] == pytest.approx(0.5)  # (0.2 + 0.4 + 0.9) / 3
    assert (cell["n"], cell["n_defined"], cell["n_failed"]) == (5, 3, 1)
    column = np.array([0.2, 0.4, 0.9, np.nan, np.nan])
    expected = mean_interval(column, np.array(["x", "x", "c", "d", "e"]), span=(0, 1))
    assert (cell["low"], cell["high"]) == (expected.low, expected.high)
    assert results["systems"]["s"] == {"role": "system", "entrances": ["audio"], "n_pairs": 5, "n_groups": 4}
    assert results["undefined"] == [
        {"item": "d", "system": "s", "metric": "beat_f_measure", "reason": "reference: silent"}
    ]
    assert results["failures"] == [
        {"item": "e", "system": "s", "metric": "beat_f_measure", "error": "BackendError: broken"}
    ]
    json.dumps(results, allow_nan=False)


def test_results_of_an_older_definition_are_labelled() -> None:
    rows = records({("mine", "a"): [0.5, 0.7], (UNRELATED, "a"): [0.5, 0.7]})
    swapped = [{**row, "metric": "chroma_dtw_similarity"} if row.get("metric") == METRICS[1] else row for row in rows]
    header = {**swapped[0], "metrics": [METRICS[0], "chroma_dtw_similarity"]}
    del header["definitions"]
    old = results_of([header, *swapped[1:]])
    assert old["scales"]["chroma_dtw_similarity"]["definition"] == 1
    assert "Chroma DTW similarity, definition 1" in text_report(old)
    new = results_of([{**header, **definitions_of(header)}, *swapped[1:]])
    assert new["definitions"] == {METRICS[0]: 3, "chroma_dtw_similarity": 3}
    assert new["scales"]["chroma_dtw_similarity"]["title"] == "Chroma DTW similarity"
    official = results_of([{**header, "variant": "official"}, *swapped[1:]])
    assert official["scales"]["chroma_dtw_similarity"]["title"] == "Chroma DTW similarity"


def test_a_run_is_not_resumed_by_another_definition() -> None:
    header = {"variant": "corrected", "metrics": ["chroma_dtw_similarity", "delta_bpm"], "companions": []}
    with pytest.raises(CorruptRecordsError, match=r"chroma_dtw_similarity was 'absent' and is now 3.*another folder"):
        check_same_run(header, {**header, **definitions_of(header)}, Path("records"))
    assert definitions_of({**header, "variant": "official"}) == {}
    assert definitions_of({**header, "variant": "paper"}) == definitions_of(header)


def test_the_order_of_records_changes_nothing() -> None:
    rows = records({(system, item): [0.1 * n, 0.05 * n] for system in "st" for n, item in enumerate("abcdef")})
    shuffled = copy.deepcopy(rows[:2]) + rows[2:14][::-1] + rows[14:][::-1]
    assert results_of(shuffled) == results_of(rows)


def test_two_systems_are_tested_on_the_items_that_they_share() -> None:
    scores = {("s", f"{n}"): [0.0, 0.9] for n in range(8)} | {("t", f"{n}"): [0.0, 0.4] for n in range(2, 10)}
    results = results_of(records(scores))
    tests = {test["metric"]: test for test in results["comparisons"]}
    assert results["n_shared"] == 6
    assert tests["beat_f_measure"]["n"] == 6
    assert tests["beat_f_measure"]["difference"] == pytest.approx(0.5)
    assert tests["beat_f_measure"]["p_value"] == pytest.approx(2 / 2**6)  # all six signs alike, or all turned
    assert tests["circle_of_fifths_distance"]["p_value"] == 1
    assert tests["beat_f_measure"]["p_holm"] == pytest.approx(2 * 2 / 2**6)  # the smaller of two, times two
    assert results["best"] == {"circle_of_fifths_distance": ["s", "t"], "beat_f_measure": ["s"]}
    assert [test["metric"] for test in significant(results)] == []
    more = {("s", f"{n}"): [0.0, 0.9] for n in range(8)} | {("t", f"{n}"): [0.0, 0.4] for n in range(8)}
    assert [test["metric"] for test in significant(results_of(records(more)))] == ["beat_f_measure"]


def test_items_with_another_original_are_not_compared() -> None:
    rows = records({("s", "a"): [0.0, 1.0], ("t", "a"): [0.0, 0.5], ("s", "b"): [0.0, 1.0], ("t", "b"): [0.0, 0.5]})
    changed = json.loads(json.dumps(rows).replace("reference a", "reference other", 1))
    assert [test["n"] for test in results_of(changed)["comparisons"]] == [1, 1]


def test_nobody_is_best_by_failing() -> None:
    scores = {("s", "a"): [0.1, 0.5], ("s", "b"): [0.3, 0.1], ("t", "a"): [0.2, 0.9], ("t", "b"): ["E: x", "E: x"]}
    results = results_of(records(scores))
    # t has the better means, 0.2 and 0.9; on item a it is worse at the first, and better at the second
    assert results["best"] == {"circle_of_fifths_distance": ["s"]}
    assert results["failures"] == [{"item": "b", "system": "t", "metric": None, "error": "E: x"}]  # one, not two


def test_silence_is_never_best() -> None:
    honest: Scores = {("honest", item): [0.25, 0.4] for item in "abc"}
    silent: Scores = {("silent", "a"): [0.0, 1.0], ("silent", "b"): [None, None], ("silent", "c"): [None, None]}
    results = results_of(records({**honest, **silent}))
    assert results["scores"]["silent"]["beat_f_measure"]["value"] == 1  # the mean of what it defines
    assert results["best"] == {}  # nor is the other one better where both can be judged
    all_silent: Scores = {("silent", item): [None, None] for item in "abc"}
    results = results_of(records({**honest, **all_silent}))
    assert results["best"] == {"circle_of_fifths_distance": ["honest"], "beat_f_measure": ["honest"]}
    (caveat,) = [text for text in caveats(results) if "different numbers of items" in text]
    assert caveat.endswith(": all scores")
    half = results_of(records({**honest, **{("half", item): [0.0, None] for item in "abc"}}))
    (caveat,) = [text for text in caveats(half) if "different numbers of items" in text]
    assert caveat.endswith(": Beat F-measure")
    assert half["best"] == {"circle_of_fifths_distance": ["half"], "beat_f_measure": ["honest"]}
    assert caveat in text_report(half)
    assert caveat in markdown_report(half)


def test_equals_are_all_best() -> None:
    values = {"s": 0.3, "t": 0.1 + 0.2, "u": 0.2}
    results = results_of(records({(system, item): [0.5, value] for system, value in values.items() for item in "ab"}))
    assert results["best"] == {"circle_of_fifths_distance": ["s", "t", "u"], "beat_f_measure": ["s", "t"]}
    assert markdown_report(results).count("0.300 ★") == 2


def test_nothing_is_best_where_nothing_is_shared() -> None:
    scores = {("s", "a"): [0.1, 0.5], ("s", "b"): [0.1, 0.5], ("t", "c"): [0.0, 1.0], ("t", "d"): [0.0, 1.0]}
    results = results_of(records(scores))
    assert (results["best"], results["comparisons"], results["n_shared"]) == ({}, [], 0)
    text = text_report(results)
    assert "no item that all systems share: nothing is marked best or tested" in text
    assert "* best" not in text


def test_intervals_of_few_groups_are_told() -> None:
    scores = {("s", f"{n}"): [0.1 * n, 0.5 if n < 4 else None] for n in range(12)}
    cells = results_of(records(scores))["scores"]["s"]
    assert [cell["n_groups"] for cell in cells.values()] == [12, 4]
    few = legend(results_of(records(scores)))
    assert "Effective number of groups 4.0 to 12.0: in simulations with so few, nominal 95 %" in few
    many = {("s", f"{n}"): [0.01 * n, 0.02 * n] for n in range(40)}
    assert "effective number" not in legend(results_of(records(many)))
    alike = results_of(records({key: [0.5, 0.5] for key in scores}))
    assert caveats(alike) == []  # an extractor may fail on others: that says how far the score may move
    share = 1 - 0.05 ** (1 / 12)
    cell = alike["scores"]["s"]["beat_f_measure"]
    assert (cell["low"], cell["high"]) == pytest.approx((0.5 - 0.5 * share, 0.5 + 0.5 * share))
    alone = results_of(records(scores, groups=dict.fromkeys(map(str, range(12)), "one")))
    assert alone["scores"]["s"]["beat_f_measure"]["low"] is None
    survivors, caveat = caveats(alone)
    assert survivors.startswith("fewer than 90% of the pairs of s define")
    assert "only n 4/12" in markdown_report(alone)
    assert caveat.startswith("one group says nothing of a second")
    assert caveat in markdown_report(alone)
    assert caveat in render_report(alone, read_scores(records(scores), PRESERVATION))


def test_pairs_of_one_original_are_one_group_whatever_its_file() -> None:
    rows = records({("s", item): [0.1, value] for item, value in (("a", 0.1), ("b", 0.9), ("c", 0.7))})
    for row in rows:
        if row["kind"] == "pair":
            row["group"] = row["reference"]["content"]
    assert results_of(rows)["systems"]["s"]["n_groups"] == 3
    music = [{"kind": "outline", "content": f"reference {item}", "music": "tune"} for item in "ab"]
    results = results_of([*rows, *music])
    assert results["systems"]["s"]["n_groups"] == 2
    expected = mean_interval([0.1, 0.9, 0.7], ["tune", "tune", "reference c"], span=(0, 1))
    cell = results["scores"]["s"]["beat_f_measure"]
    assert (cell["low"], cell["high"]) == (expected.low, expected.high)


def test_the_table_holds_what_the_terminal_shows() -> None:
    scores = {("s", f"{n}"): [0.0, 0.9] for n in range(8)} | {("t", f"{n}"): [0.0, 0.4] for n in range(8)}
    rows = records({**scores, ("s", "bad"): ["E: a | b", "E: a | b"], ("t", "bad"): [0.0, 0.5]})
    about = {"item": "1", "system": "s", "content": ["reference 1", "estimate 1"]}
    results = results_of([*rows, {"kind": "remarks", **about, "notes": ["lengths differ"]}])
    text, markdown = text_report(results, published=True), markdown_report(results)
    for shown in (
        "Beat F-measure: ", "= +0.500, p = 0.0156, n = 8", "Harmony, published", "MusiConGen", "not run by us",
        "lengths differ", " (pairs: 1)", "of one length when its segmenter is missing",
    ):  # fmt: skip
        assert shown in text, shown
        assert shown in markdown, shown
    assert "Circle-of-fifths distance ↓ |" in markdown.partition("### Harmony, published")[2]
    published = text.partition("Rhythm, published")[2]
    assert published.splitlines()[1].strip() == "Beat F-measure ↑"
    (row,) = (line for line in published.splitlines() if line.startswith("MusicMagus"))
    assert row.split() == ["MusicMagus", "0.030"]
    assert "- `bad`, `s`, all scores: `E: a \\| b`" in markdown
    assert "so called" not in markdown
    assert 'marked "(control)"' not in markdown  # there are none


def test_every_system_has_its_share_of_timelines() -> None:
    scores = {(system, f"{n}"): [0.0, value + n / 100] for system, value in (("s", 0.1), ("t", 0.8)) for n in range(6)}
    rows = records(scores)
    contents = [f"{side} {n}" for side in ("reference", "estimate") for n in range(6)]
    outlines = [{"kind": "outline", "content": content, "duration_sec": 9.0} for content in contents]
    found = read_scores([*rows, *outlines], PRESERVATION)
    results = build_results(found, PRESERVATION, n_resamples=20)
    assert [pair["item"] for pairs, _ in worst_pairs(results, found) for pair in pairs] == [
        str(n) for n in range(6)
    ] * 2

    def drawn(n: int) -> list[str]:
        return re.findall(r'aria-label="Timeline of (\d, .)"', render_report(results, found, timelines=n))

    assert drawn(5) == ["0, s", "1, s", "2, s", "0, t", "1, t"]
    assert drawn(1) == ["0, s", "0, t"]
    assert drawn(0) == []
    page = render_report(results, found)
    assert "no score of this run compares them: chords, sections, melody." in page
    official = build_results(found, PRESERVATION, n_resamples=20) | {
        "variant": "official",
        "metrics": [*METRICS, "motif_recall"],
    }
    assert "the official motifs are made of pitch frame by frame" in _left_out(official)


def test_controls_stand_outside() -> None:
    scores = {("s", "a"): [0.5, 0.5], ("t", "a"): [0.5, 0.6], (CEILING, "a"): [0.0, 1.0], (UNRELATED, "a"): [0.3, 0.1]}
    results = results_of(records(scores))
    assert [about["role"] for about in results["systems"].values()] == ["system", "system", "control", "control"]
    assert {test[side] for test in results["comparisons"] for side in "ab"} == {"s", "t"}
    assert results["best"]["beat_f_measure"] == ["t"]
    text = text_report(results)
    assert "(same music)" in text
    assert "(unrelated music)" in text
    assert "| `same music` (control) |" in markdown_report(results)
    assert 'Rows marked "(control)" are controls.' in markdown_report(results)
    two = {(UNRELATED, "a"): [0.3, 0.1], (UNRELATED, "b"): [0.3, 0.1]}
    assert any("two pairs of unrelated music share originals" in text for text in caveats(results_of(records(two))))
    assert not any("share originals" in text for text in caveats(results))


def test_only_the_last_selection_counts() -> None:
    rows = records({("s", "a"): [0.0, 0.9], ("s", "b"): [0.0, 0.1]})
    last = [rows[1], rows[2]]
    results = results_of([*rows, *last])
    assert results["scores"]["s"]["beat_f_measure"]["value"] == 0.9
    assert results["scores"]["s"]["beat_f_measure"]["n"] == 1


def test_scores_of_other_bytes_do_not_count() -> None:
    rows = records({("s", "a"): [0.0, 0.9]})
    rows.append({**rows[-1], "content": ["reference a", "estimate of last week"], "value": 0.1})
    assert results_of(rows)["scores"]["s"]["beat_f_measure"]["value"] == 0.9


def test_records_of_something_else_are_damage() -> None:
    with pytest.raises(CorruptRecordsError):
        read_scores([{"kind": "run"}], PRESERVATION)
    with pytest.raises(CorruptRecordsError):
        read_scores([{"kind": "run"}, {"kind": "selection"}], PRESERVATION)


def test_tables_tell_direction_interval_and_what_is_missing() -> None:
    results = results_of(records({("s", "a"): [0.0, None], ("s", "b"): [0.5, 0.25], ("s", "c"): [0.0, 0.75]}))
    text = text_report(results)
    assert "Circle-of-fifths distance ↓" in text
    assert "Beat F-measure ↑" in text
    assert "n 2/3" in text
    assert "0.500" in text
    assert "published, not run by us" not in text
    markdown = markdown_report(results)
    assert "published, not run by us" in markdown
    assert "| system | Beat F-measure ↑ |" in markdown
    assert "### Harmony" in markdown


def test_published_rows_are_those_of_the_paper() -> None:
    published = read_published("musecpbench_table2").means
    assert list(published) == ["Vanilla", "MusicGen", "MusiConGen", "MusicMagus", "ZETA", "RefinPaint"]
    assert all(set(row) == set(PRESERVATION_METRICS) for row in published.values())
    assert published["ZETA"]["delta_bpm"] == 4.125
    assert published["MusiConGen"]["chroma_dtw_similarity"] == 0.902
    assert published["RefinPaint"]["motif_recall"] == 0.568
    assert results_of(records({("s", "a"): [0.0, 1.0]}))["published"]["table"]["MusicGen"] == {
        "circle_of_fifths_distance": 0.197,
        "beat_f_measure": 0.273,
    }


@pytest.mark.parametrize(
    ("name", "value", "place"),
    [
        ("beat_f_measure", 1.0, 1.0),
        ("beat_f_measure", 0.25, 0.25),
        ("circle_of_fifths_distance", 0.0, 1.0),
        ("circle_of_fifths_distance", 5 / 6, 1 / 6),
        ("segment_ari", -0.5, 0.0),
        ("segment_ari", 0.5, 0.5),
        ("delta_bpm", 0.0, 1.0),
        ("delta_bpm", RIM["delta_bpm"] / 4, 0.75),
        ("delta_bpm", 1000.0, 0.0),
    ],
)
def test_outward_is_better(name: str, value: float, place: float) -> None:
    assert outward(name, value, dataclasses.asdict(PRESERVATION_METRICS[name])) == pytest.approx(place)


def test_an_undefined_score_has_no_place() -> None:
    assert np.isnan(outward("beat_f_measure", None, dataclasses.asdict(PRESERVATION_METRICS["beat_f_measure"])))


def test_what_differs_between_two_files() -> None:
    assert unmatched([1.0, 2.0, 3.0], [1.07, 2.08], 0.07) == [False, True, True]
    assert unmatched([1.0], [], 0.07) == [True]
    assert unmatched([], [1.0], 0.07) == []
    own = [(0.0, 2.0, "C:maj"), (2.0, 4.0, "G:maj")]
    other = [(0.0, 1.0, "C:maj"), (1.0, 3.0, "A:min"), (3.0, 3.5, "G:maj")]
    assert differing_spans(own, other) == [(1.0, 2.0), (2.0, 3.0)]
    notes = [(0.0, 1.0, 60.0), (1.0, 2.0, 62.0), (2.0, 3.0, 64.0)]
    edited = [(0.05, 1.0, 60.3), (1.0, 2.0, 63.0), (2.2, 3.0, 64.0)]
    assert differing_notes(notes, edited) == [False, True, True]


def test_a_timeline_shows_what_there_is() -> None:
    reference = {
        "duration_sec": 10.0,
        "beats": [1.0, 2.0, 3.0],
        "chords": [[0.0, 5.0, "C:maj"], [5.0, 10.0, "<N>"]],
        "segments": [[0.0, 4.0, "A"], [4.0, 10.0, "B"]],
        "melody": [[0.0, 1.0, 60.0], [1.0, 2.0, 62.0]],
    }
    estimate = {**reference, "beats": [1.0, 2.5], "melody": [[0.0, 1.0, 60.0]]}
    picture = timeline(reference, estimate, label='a "pair"')
    assert 'aria-label="Timeline' not in picture
    assert 'aria-label="a &quot;pair&quot;"' in picture
    assert "&lt;N&gt;" in picture
    assert picture.count('<line class="differs"') == 3  # beats 2 and 3 of the original, 2.5 of the edit
    assert re.findall(r">(melody, \w+)</text>", picture) == ["melody, original", "melody, edit"]
    lanes = re.findall(r'<g class="(\w+)" [^>]*>(.*?)</g>', picture)
    notes = [(side, re.findall(r'class="(note[^"]*)"', drawn)) for side, drawn in lanes]
    assert [found for found in notes if found[1]] == [("original", ["note", "note differs"]), ("edit", ["note"])]
    assert re.findall(r'class="inside"[^>]*>([^<]+)', picture)[0] == "C"  # as musicians write C:maj
    assert "<title>C:maj</title>" in picture  # also where the block is too narrow for its name
    alone = timeline(reference, {"duration_sec": 10.0, "beats": [1.0]}, label="no melody in the edit")
    assert alone.count("note differs") == 2
    bare = timeline({"duration_sec": 1.0}, {"duration_sec": 0.0}, label="nothing")
    assert bare.count("<text") >= 1
    assert "rect" not in bare


def test_what_json_cannot_hold_is_told_in_words() -> None:
    inf, nan = float("inf"), float("nan")
    held = {"a": [1, nan, inf], "b": (np.float64(-inf), "text", None, True)}
    assert plain(held) == {"a": [1, None, "inf"], "b": ["-inf", "text", None, True]}
