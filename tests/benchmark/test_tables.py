"""What the shared results and tables do for a benchmark that is none of ours."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from music_evals.benchmark.contents import MOST_COLUMNS, caveats, tables, undefined_systems
from music_evals.benchmark.formats import Section, coverage_note
from music_evals.benchmark.report import ROOM_PX, score_page
from music_evals.benchmark.results import build_results
from music_evals.benchmark.score_table import ScoreTable
from music_evals.benchmark.scores import read_scores
from music_evals.benchmark.tables import MOST_CHARACTERS, markdown_report, summary, text_report
from music_evals.benchmark.task import Task
from music_evals.errors import UnknownNameError
from music_evals.metrics.catalogue import Metric, block
from music_evals.stats.intervals import UNEQUAL_COVERAGE, rare_differences, simulated_coverage

SCALES = block(
    *(Metric(f"part_{number}", f"Part {number}", "parts", high=9.0) for number in range(10)),
    Metric("loss", "Loss", "rest", high=9.0, direction="lower"),
    Metric("bias", "Bias", "rest", low=-9.0, high=9.0, direction="zero"),
)


class Toys(Task):
    name = "toys"
    title = "Toys"
    scales = SCALES
    controls = ("oracle",)
    controls_explained = "oracle: it knows."
    items = "toys"
    remarks = "broken wheels"

    def describe_run(self, header: Mapping[str, Any]) -> str:
        return f"setting {header['variant']}"

    def published_scores(self, header: Mapping[str, Any]) -> dict[str, Any]:
        table = {"Old": dict.fromkeys(header["metrics"], 1.0)}
        return {"source": "A paper", "table": table, "spread": {"Old": {"loss": 0.25}}, "differences": {"age": "old"}}

    def control_notes(self, systems: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
        if "oracle" in systems:
            yield "the oracle is our own"


TASK = Toys()


def records(values: Mapping[tuple[str, str], float], **header: Any) -> list[dict[str, Any]]:
    """Return records in which every score of a system's item has one value."""
    about = {"metrics": list(SCALES), "companions": [], "versions": {}, "variant": "x", **header}
    dataset = {"id": "box", "config": None, "split": None, "revision": None}
    systems = list(dict.fromkeys(system for system, _ in values if system != "oracle"))
    rows: list[dict[str, Any]] = [{"kind": "run", "task": "toys", "dataset": dataset, **about}]
    rows.append({"kind": "selection", "systems": systems})
    for system, item in values:
        sides = {side: {"name": item, "content": item} for side in ("reference", "estimate")}
        pair = {"item": item, "system": system, "group": item, "modality": "toy"}
        rows.append({"kind": "pair", **pair, **sides, "treatment": ""})
    for (system, item), value in values.items():
        for name in SCALES:
            who = {"item": item, "system": system, "content": [item, item], "metric": name}
            rows.append({"kind": "score", **who, "variant": "x", "value": value, "n": 1})
    return rows


@pytest.fixture
def rows() -> list[dict[str, Any]]:
    wobble = [0.01 * (-1) ** n for n in range(12)]
    values = {(name, f"{n}"): level + wobble[n] for name, level in (("a", 1.0), ("b", 2.0)) for n in range(12)}
    return records({**values, ("oracle", "0"): 9.0})


def test_what_differs_is_handed_in(rows: list[dict[str, Any]]) -> None:
    about = {"item": "1", "system": "a", "content": ["1", "1"]}
    results = build_results(read_scores([*rows, {"kind": "remarks", **about, "notes": ["a wheel"]}], TASK), TASK)
    assert results["systems"]["oracle"]["role"] == "control"
    assert results["best"]["loss"] == ["a"]
    assert results["best"]["part_0"] == ["b"]
    assert results["best"]["bias"] == ["a"]
    assert {test[side] for test in results["comparisons"] for side in "ab"} == {"a", "b"}
    text = text_report(results, published=True)
    for words in ("box, setting x", "a: 12 toys, 12 groups", "oracle: it knows.", "the oracle is our own"):
        assert words in text, words
    assert "toys with remarks, such as broken wheels: 1; results.json has them all" in text
    assert "a wheel (toys: 1)" in text
    assert "sd 0.250" in text
    assert "(sd 0.250)" in markdown_report(results)


def test_a_task_of_the_last_release_is_a_task(rows: list[dict[str, Any]]) -> None:
    from music_evals.benchmark import results

    with pytest.warns(DeprecationWarning, match=r"ScoreTask is called benchmark\.task\.Task"):
        make = results.ScoreTask
    told = make(
        name="toys",
        title="Toys",
        scales=SCALES,
        controls=("oracle",),
        controls_explained="oracle: it knows.",
        how=lambda header: f"setting {header['variant']}",
        items="toys",
        on_controls=lambda systems: ["the oracle is our own"] if "oracle" in systems else [],
    )
    old, new = (build_results(read_scores(rows, task), task, n_resamples=20) for task in (told, TASK))
    assert old["scores"] == new["scores"]
    for key in ("how", "controls", "on_controls"):
        assert old["wording"][key] == new["wording"][key]


def test_published_results_are_told_on_request(rows: list[dict[str, Any]]) -> None:
    """A terminal shows the reader's own results; the file has everything."""
    results = build_results(read_scores(rows, TASK), TASK)
    own, whole = text_report(results), text_report(results, published=True)
    assert "sd 0.250" not in own
    assert own.endswith("Published results of others are in table.md.")
    assert "are in table.md" not in whole


@pytest.mark.parametrize(("system", "beside"), [("a", True), ("a" * MOST_CHARACTERS, False)])
def test_intervals_stand_beside_the_values_where_there_is_room(system: str, beside: bool) -> None:
    scores = {(system, str(number)): float(number) for number in range(3, 6)}
    text = text_report(build_results(read_scores(records(scores), TASK), TASK))
    rest = text.partition("\nRest\n")[2].split("\n\n")[0].splitlines()[1:]
    interval = rest[0].split()[2] if beside else rest[1].split()[0]
    low, high = interval.split("..")
    assert 0 <= float(low) < 4 < float(high) <= 9
    assert rest[0].split() == [system, *(["4.000", interval] * 2 if beside else ["4.000"] * 2)]
    assert len(rest) == (1 if beside else 2)


def test_wide_tables_are_cut_into_equal_parts(rows: list[dict[str, Any]]) -> None:
    results = build_results(read_scores(rows, TASK), TASK)
    found = tables(results)
    assert list(found) == ["Parts, 1 of 2", "Parts, 2 of 2", "Rest"]
    assert [len(names) for names in found.values()] == [5, 5, 2]
    assert [name for names in found.values() for name in names] == list(SCALES)
    assert max(map(len, found.values())) <= MOST_COLUMNS


def test_the_page_is_made_of_the_same(rows: list[dict[str, Any]], read_page: Any) -> None:
    found = read_scores(rows, TASK)
    results = build_results(found, TASK)
    page = score_page(
        results, found, {"glue": "<strong>"},
        pictures=[Section("Own picture", 9, "<p>drawn</p>")], items=[Section("Own items", 9, "<p>listed</p>")],
        style=".toy {}",
    )  # fmt: skip
    parsed = read_page(page)
    text = " ".join(parsed.text)
    for words in ("Toys: box", "Own picture", "Own items", "Old (published)", "sd 0.250", "<strong>", "the oracle is"):
        assert words in text, words
    assert summary(results).splitlines()[0] in text
    assert ".toy {}" in page


@pytest.mark.slow
def test_a_long_page_is_folded_as_far_as_it_must(rows: list[dict[str, Any]], read_page: Any) -> None:
    @functools.cache
    def built(n_systems: int) -> tuple[Any, Any]:
        values = {(f"system {place}", f"{n}"): float(n) for place in range(n_systems) for n in range(3)}
        scores = read_scores(records(values), TASK)
        return build_results(scores, TASK, n_resamples=20), scores

    def opened(pictures: list[Section], n_systems: int) -> list[bool]:
        page = score_page(*built(n_systems), {}, pictures=pictures)
        return ["open" in attributes for attributes in read_page(page).all("details") if "part" in attributes.values()]

    assert all(opened([Section("Picture", 200, "<p>drawn</p>")], 2))
    many = opened([Section("Tall", ROOM_PX, "<p>drawn</p>"), Section("Nothing", 0, "")], 27)
    assert many[0]  # the first scores, however many systems there are
    assert sum(many) < len(many) / 2
    assert len(many) == len(opened([], 27)) + 1  # what is empty has no heading


def test_explanations_of_what_is_judged_are_kept(rows: list[dict[str, Any]]) -> None:
    about = {"item": "1", "system": "a"}
    told = {"kind": "explanation", **about, "content": ["1", "1"], "lines": ["all of it"]}
    other = {"kind": "explanation", **about, "content": ["1", "other"], "lines": ["nothing"]}
    found = read_scores([*rows, told, other], TASK)
    assert found.explanations == {("1", "a"): told}


def test_scores_that_the_benchmark_has_not(rows: list[dict[str, Any]]) -> None:
    rows[0]["metrics"].append("part_11")
    with pytest.raises(UnknownNameError, match="unknown score of toys 'part_11'; did you mean part_1"):
        build_results(read_scores(rows, TASK), TASK)


def test_remarks_and_names_cannot_write_markdown(rows: list[dict[str, Any]]) -> None:
    about = {"item": "1", "system": "a", "content": ["1", "1"]}
    nasty = "![x](http://evil) | <b>`\n# head"
    results = build_results(read_scores([*rows, {"kind": "remarks", **about, "notes": [nasty]}], TASK), TASK)
    results["wording"]["on_remarks"] = [f"{nasty}: 1 toy"]
    table = markdown_report(results)
    assert "- `![x](http://evil) \\| <b>' # head` (toys: 1)" in table
    assert "- !\\[x](http://evil) \\| \\<b>\\` # head: 1 toy" in table


def test_one_is_not_many(rows: list[dict[str, Any]]) -> None:
    assert (
        "a: 1 toy, 1 group\n" in text_report(build_results(read_scores(records({("a", "1"): 1.0}), TASK), TASK)) + "\n"
    )


def test_why_nothing_is_defined(rows: list[dict[str, Any]]) -> None:
    for row in rows:
        if row["kind"] == "score" and row["system"] == "a":
            row |= {"value": None, "reason": "no wheels" if row["item"] != "3" else "no box"}
        if row["kind"] == "score" and row["system"] == "b" and row["metric"] == "loss":
            row |= {"value": None, "reason": "it floats"}
    results = build_results(read_scores(rows, TASK), TASK)
    assert undefined_systems(results) == ["a"]
    told = caveats(results)
    assert told[0].startswith("a has no Part 0, ")
    assert told[0].endswith("(nothing at all is defined): no wheels (11 toys); no box (1 toy)")
    assert told[1] == "b has no Loss: it floats (12 toys)"


def test_scores_that_are_not_shown(rows: list[dict[str, Any]]) -> None:
    class Fewer(Toys):
        def shown_metrics(self, scores: ScoreTable) -> list[str]:
            return [name for name in scores.metrics if name != "loss"]

    task = Fewer()
    results = build_results(read_scores(rows, task), task)
    assert "loss" not in results["scales"]
    assert "loss" not in results["metrics"]
    assert {test["metric"] for test in results["comparisons"]} == {*SCALES} - {"loss"}


def test_nothing_to_caution_against() -> None:
    results = build_results(read_scores(records({("a", f"{n}"): float(n % 2) for n in range(12)}), TASK), TASK)
    assert caveats(results) == []


def test_scores_without_spread_are_explained() -> None:
    results = build_results(read_scores(records({("a", f"{n}"): 0.0 for n in range(12)}), TASK), TASK)
    assert results["scores"]["a"]["loss"]["low"] is None
    (caveat,) = caveats(results)
    assert caveat == "a score that is the same in all groups does not say how far it may move, and has no interval: a"


@pytest.mark.parametrize("n", [12, 40])
def test_intervals_from_few_groups_come_with_what_they_cover(n: int, read_page: Any) -> None:
    found = read_scores(records({("a", f"{number}"): float(number % 3) for number in range(n)}), TASK)
    results = build_results(found, TASK)
    assert results["scores"]["a"]["loss"]["n_clusters"] == pytest.approx(n)
    page = " ".join(read_page(score_page(results, found, {})).text)
    for text in (text_report(results), markdown_report(results), page):
        assert ("Effective number of groups 12.0: in simulations with so few, nominal 95 %" in text) == (n < 30)
    low, high = (round(100 * share) for share in simulated_coverage(12).means)  # type: ignore[union-attr]
    assert (f"held the truth {low} to {high} % of the time for means and their differences." in page) == (n < 30)


def test_a_range_of_effective_numbers_has_the_range_of_what_was_simulated() -> None:
    spanned = [simulated_coverage(number).means for number in (2, 7, 12)]  # type: ignore[union-attr]
    least, most = round(100 * min(low for low, _ in spanned)), round(100 * max(high for _, high in spanned))
    note = coverage_note([(12.4, 12), (2.2, 3)], "songs", divergences=False)
    assert note == (
        "effective number of songs 2.2 to 12.4: in simulations with so few, nominal 95 % intervals held the truth "
        f"{least} to {most} % of the time for means and their differences"
    )
    assert "divergences and theirs" in coverage_note([(12.0, 12)], "songs", divergences=True)


def test_differences_of_scores_with_extractors_come_with_what_they_do_not_hold() -> None:
    assert coverage_note([(90.0, 90)], "songs", divergences=False, compared=["note_f1", "loss"]) == ""
    note = coverage_note([(90.0, 90), (41.0, 41)], "songs", divergences=False, compared=["note_f1", "delta_bpm"])
    assert f"they held the truth {100 * rare_differences(41):.0f} % of the time at worst" in note
    assert coverage_note([(0.0, 0)], "songs", divergences=False, compared=["delta_bpm"]) == ""


def test_groups_of_very_unequal_size_are_named_however_many_they_are() -> None:
    assert coverage_note([(90.0, 120)], "songs", divergences=True) == ""
    note = coverage_note([(90.0, 120), (47.5, 120)], "songs", divergences=True)
    assert note.startswith("the songs are of very unequal size, 120 weigh as much as 47.5 of one size: ")
    assert f"held the truth {100 * UNEQUAL_COVERAGE:.0f} % of the time at worst" in note
    both = coverage_note([(10.2, 18)], "songs", divergences=True)
    assert both.startswith("effective number of songs 10.2: ")
    assert "; the songs are of very unequal size, 18 weigh as much as 10.2" in both


def test_differences_have_intervals(rows: list[dict[str, Any]], read_page: Any) -> None:
    for row in rows:  # so that not all groups differ alike
        if row["kind"] == "score" and row["system"] == "b":
            row["value"] += 0.02 * (int(row["item"]) % 3 - 1)
    found = read_scores(rows, TASK)
    results = build_results(found, TASK)
    (test,) = (test for test in results["comparisons"] if test["metric"] == "loss")
    assert test["difference"] == pytest.approx(-1)
    assert test["low"] < test["difference"] < test["high"]
    shown = f"-1.000 ({test['low']:.3f}..{test['high']:.3f})"
    assert f"Loss: a - b = {shown}, p = " in text_report(results)
    assert shown in " ".join(read_page(score_page(results, found, {})).text)


def test_an_interval_without_0_beside_a_large_p_is_counted(rows: list[dict[str, Any]]) -> None:
    results = build_results(read_scores(rows, TASK), TASK)
    results["comparisons"][0] |= {"difference": 0.5, "low": 0.1, "high": 0.9, "p_holm": 0.2}
    assert "1 further difference with an interval that leaves out 0" in text_report(results)


def test_a_small_p_beside_an_interval_with_0_is_explained(rows: list[dict[str, Any]], read_page: Any) -> None:
    found = read_scores(rows, TASK)
    results = build_results(found, TASK)

    def told() -> tuple[str, ...]:
        page = " ".join(read_page(score_page(results, found, {})).text)
        return text_report(results), markdown_report(results), page

    assert not any("Test and interval disagree" in text for text in told())
    results["comparisons"][0] |= {"difference": 0.5, "low": -0.1, "high": 0.9, "p_holm": 0.002}
    assert all("Test and interval disagree" in text for text in told())


def test_a_score_outside_of_its_interval_is_explained_where_it_stands(
    rows: list[dict[str, Any]], read_page: Any
) -> None:
    found = read_scores(rows, TASK)
    results = build_results(found, TASK)
    told = (text_report(results), markdown_report(results), " ".join(read_page(score_page(results, found, {})).text))
    assert not any("†" in text for text in told)
    results["scores"]["a"]["loss"] |= {"value": 0.5, "low": 0.1, "high": 0.4, "null": 0.2}
    told = (text_report(results), markdown_report(results), " ".join(read_page(score_page(results, found, {})).text))
    for text in told:
        assert "0.100..0.400†" in text
        assert "† The score lies outside of its interval" in " ".join(text.split())
        assert "makes a divergence larger than it truly is" in " ".join(text.split())
