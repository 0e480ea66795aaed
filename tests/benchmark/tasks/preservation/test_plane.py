"""Success over preservation: where systems stand, who is on the front, and what is told from the controls."""

from __future__ import annotations

import itertools
import re
from typing import Any

import numpy as np
import pytest

from music_evals.benchmark.contents import order
from music_evals.benchmark.formats import plain
from music_evals.benchmark.results import build_results
from music_evals.benchmark.scores import read_scores
from music_evals.benchmark.tables import facet_blocks, markdown_report, plane_block
from music_evals.benchmark.tasks.preservation.pairs import CEILING, UNRELATED
from music_evals.benchmark.tasks.preservation.plots import plane_figure, plane_svg
from music_evals.benchmark.tasks.preservation.report import render_report
from music_evals.benchmark.tasks.preservation.task import PRESERVATION
from music_evals.stats import paired_mean_test

HARMONY, RHYTHM = "chroma_dtw_similarity", "beat_f_measure"
N = 12
SYSTEMS = {  # success, harmony and rhythm, each with its spread over the items
    "unsure": (0.5, 0.7, 0.7), "bold": (0.9, 0.4, 0.6), "lazy": (0.0, 0.95, 0.95), "beaten": (0.4, 0.5, 0.6),
    CEILING: (0.0, 0.95, 0.95), UNRELATED: (0.1, 0.1, 0.2),
}  # fmt: skip


def results_of(
    systems: dict[str, tuple[float, float, float]] = SYSTEMS,
    *,
    targets: bool = True,
    requests: tuple[str, ...] = ("",),
    n: int = N,
    **selection: Any,
) -> tuple[dict[str, Any], Any]:
    """Return the results of systems whose scores of an item are their own, and a spread of 0.05 that all share.

    `requests` are the targets of the items, in turn.
    """
    names = [HARMONY, RHYTHM, *(["edit_success"] if targets else [])]
    header = {"variant": "corrected", "metrics": names[:2], "companions": names[2:], "extractors": {"features": {}}}
    dataset = {"id": "made_up", "config": None, "split": None, "revision": None}
    shown = [name for name in systems if name not in {CEILING, UNRELATED}]
    rows: list[dict[str, Any]] = [
        {"kind": "run", "task": "preservation", "dataset": dataset, "versions": {}, **header},
        {"kind": "selection", "systems": shown, **selection},
    ]
    level = np.linspace(-0.05, 0.05, n)
    for (system, (success, *preserved)), place in itertools.product(systems.items(), range(n)):
        item, contents = f"{place:02d}", [f"reference {place}", f"{system} {place}"]
        sides = {
            side: {"name": f"{item}.wav", "content": content}
            for side, content in zip(("reference", "estimate"), contents, strict=True)
        }
        about = {"item": item, "system": system}
        rows.append({"kind": "pair", **about, "group": item, "modality": "audio", **sides, "treatment": ""})
        if request := requests[place % len(requests)]:
            rows[-1]["targets"] = request
        values = [*(value + level[place] for value in preserved), success and success + level[::-1][place]]
        for name, value in zip(names, values, strict=False):
            score = {"metric": name, "value": float(value), "n": 1, "variant": "corrected"}
            rows.append({"kind": "score", **about, "content": contents, **score})
    table = read_scores(rows, PRESERVATION)
    return build_results(table, PRESERVATION, n_resamples=200), table


@pytest.fixture(scope="module")
def results() -> dict[str, Any]:
    return results_of()[0]


def test_points_are_the_means_of_the_tables(results: dict[str, Any]) -> None:
    """By hand: harmony of bold lies (0.4 - 0.1) / 0.85 of the way, rhythm (0.6 - 0.2) / 0.75."""
    point = results["plane"]["systems"]["bold"]
    assert point["success"]["value"] == pytest.approx(0.9)
    assert point["preservation"]["value"] == pytest.approx((0.3 / 0.85 + 0.4 / 0.75) / 2)
    for facet, name in (("harmony", HARMONY), ("rhythm", RHYTHM)):
        assert point[facet]["value"] == pytest.approx(results["facets"]["scores"]["bold"][facet]["value"]), name
    assert (point["n"], point["n_groups"], results["plane"]["facets"]) == (N, N, ["harmony", "rhythm"])
    controls = {name: results["plane"]["systems"][name] for name in (CEILING, UNRELATED)}
    assert (controls[CEILING]["success"]["value"], controls[UNRELATED]["preservation"]["value"]) == pytest.approx(
        (0, 0)
    )
    assert controls[CEILING]["preservation"]["value"] == pytest.approx(1)
    # what is hard to preserve is easy to do here: the ellipse falls
    assert point["preservation"]["ellipse"]["angle_rad"] < 0


def test_the_front_is_of_who_did_something(results: dict[str, Any]) -> None:
    """Nothing beats the lazy system in both, and it is on no front: its success is that of the music unchanged."""
    points = results["plane"]["systems"]
    assert [name for name, point in points.items() if point["front"]] == ["unsure", "bold"]
    assert order(results, results) == ["bold", "unsure", "beaten", "lazy", CEILING, UNRELATED]
    assert [row.name for row in plane_block(results).rows] == order(results, results)
    verdicts = {(test["system"], test["control"], test["axis"]): test["verdict"] for test in results["plane"]["tests"]}
    assert len(verdicts) == 4 * 2 * 2
    assert verdicts["lazy", CEILING, "success"] == verdicts["lazy", CEILING, "preservation"] == "not told apart"
    assert verdicts["bold", CEILING, "success"] == verdicts["bold", UNRELATED, "preservation"] == "better"
    assert verdicts["bold", CEILING, "preservation"] == verdicts["lazy", UNRELATED, "success"] == "worse"


def test_tests_are_paired_by_source(results: dict[str, Any]) -> None:
    found = next(
        test
        for test in results["plane"]["tests"]
        if (test["system"], test["control"], test["axis"]) == ("bold", UNRELATED, "success")
    )
    level = np.linspace(0.05, -0.05, N)
    expected = paired_mean_test(0.9 + level, 0.1 + level, None, span=(0, 1), n_resamples=2000)
    assert {key: found[key] for key in ("difference", "p_value", "n")} == pytest.approx(
        {"difference": 0.8, "p_value": expected.p_value, "n": N}
    )
    assert found["p_holm"] > found["p_value"]


def test_few_sources_leave_it_undecided() -> None:
    """With three sources no p is under 0.25, however far the intervals lie from 0: the two disagree."""
    results, _ = results_of(n=3)
    verdicts = {(test["system"], test["control"], test["axis"]): test["verdict"] for test in results["plane"]["tests"]}
    assert verdicts["bold", CEILING, "success"] == "undecided"
    assert verdicts["lazy", CEILING, "success"] == "not told apart"
    assert results["plane"]["systems"]["bold"]["front"]


def test_facets_that_were_meant_to_change_are_in_no_mean() -> None:
    results, _ = results_of(intended=["harmony"])
    point = results["plane"]["systems"]["bold"]
    assert results["plane"]["facets"] == ["rhythm"]
    assert point["preservation"]["value"] == pytest.approx(0.4 / 0.75)
    assert "harmony" not in point


def test_what_all_edits_are_asked_to_change_is_in_no_mean() -> None:
    """The rhythm of an edit that is asked for another tempo is no damage."""
    results, _ = results_of(requests=("tempo=1.2x",))
    assert results["plane"]["facets"] == ["harmony"]
    assert results["plane"]["systems"]["bold"]["preservation"]["value"] == pytest.approx(0.3 / 0.85)
    assert results["facets"]["scores"]["bold"]["rhythm"]["value"] == pytest.approx(0.4 / 0.75)


def test_what_some_edits_are_asked_to_change_counts_for_the_others() -> None:
    """Every second edit, 0.05 / 11 above the others in the mean, is asked for another tempo."""
    results, _ = results_of(requests=("loudness=+3 dB", "tempo=1.2x; loudness=+3 dB"))
    point = results["plane"]["systems"]["bold"]
    assert results["plane"]["facets"] == ["harmony", "rhythm"]
    assert point["harmony"]["value"] == pytest.approx(0.3 / 0.85)
    assert point["rhythm"]["value"] == pytest.approx((0.4 - 0.05 / 11) / 0.75)
    control = results["plane"]["systems"][CEILING]
    assert control["rhythm"]["value"] == pytest.approx(1 - 0.05 / 11 / 0.75)


def test_without_targets_nothing_changes() -> None:
    results, table = results_of(targets=False)
    assert "plane" not in results
    assert order(results, results)[:4] == list(SYSTEMS)[:4]
    assert "Success and preservation" not in [block.title for block in facet_blocks(results)]
    assert "Success over preservation" not in render_report(results, table)


def test_without_controls_there_is_no_scale() -> None:
    assert "plane" not in results_of({name: SYSTEMS[name] for name in ("bold", "lazy")})[0]


def test_the_page_begins_with_it() -> None:
    results, table = results_of()
    page = render_report(results, table)
    headings = re.findall("<h2>(.*?)</h2>", page)
    assert headings[:3] == ["Success over preservation", "Success and preservation", "By facet, between the controls"]
    assert page.count('aria-label="Success and ') == 3  # and once for each facet
    assert "### Success and preservation" in markdown_report(results)


def test_what_is_drawn_is_what_is_there(results: dict[str, Any]) -> None:
    points = dict(results["plane"]["systems"])
    points["<b>"] = points.pop("beaten")
    picture = plane_svg(points)
    assert picture.count("<circle") == 6
    assert picture.count("fill:none;stroke:currentColor") == 2  # controls
    assert picture.count("<polyline") == 1
    assert "<b>" not in picture
    assert "<b>" not in plane_svg(points, axis="harmony")
    assert "<b>5" not in plane_figure(points)
    points["<b>"] = plain({**points["<b>"], "success": {"value": float("nan")}})
    assert plane_svg(points).count("<circle") == 5
