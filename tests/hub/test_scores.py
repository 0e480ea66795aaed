"""results.json as the verbs write it, read for a card."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from music_evals.errors import ChangedResultsError, InvalidInputError, UnknownNameError, UnreadableFileError
from music_evals.hub.pushing import push_results
from music_evals.hub.scores import TASKS, system_scores


@pytest.fixture(scope="module")
def inpainting(inpainting_run_of_all: Path) -> dict[str, Any]:
    return json.loads((inpainting_run_of_all / "results.json").read_bytes())


@pytest.fixture(scope="module")
def preservation(preservation_run_of_all: Path) -> dict[str, Any]:
    return json.loads((preservation_run_of_all / "results.json").read_bytes())


def test_inpainting(inpainting: dict[str, Any]) -> None:
    results = inpainting
    scores = system_scores(results)
    assert scores.system == "mine"
    cell = results["tables"]["all"]["scores"]["mine"]["note_f1"]
    assert scores.scores["note_f1"].value == round(cell["value"], 4)
    assert (scores.scores["note_f1"].low, scores.scores["note_f1"].high) == (
        round(cell["low"], 4),
        round(cell["high"], 4),
    )
    assert scores.scores["groove_divergence"].null is not None
    assert scores.n_items == 70
    assert (scores.dataset.config, scores.dataset.split, scores.dataset.revision) == ("musib", "test", None)
    assert scores.dataset.fingerprint == results["dataset"]["fingerprint"]
    assert (scores.variant, scores.task.type, scores.items) == ("corrected", "music-inpainting", "windows")
    with pytest.raises(InvalidInputError, match="is a control"):
        system_scores(results, "reference")


def test_preservation(preservation: dict[str, Any]) -> None:
    results = preservation
    scores = system_scores(results)
    assert scores.system == "up"
    assert scores.scores["circle_of_fifths_distance"].value == 0.0556
    assert "same_mode" not in scores.scores  # an auxiliary metric gets no rank
    assert set(scores.scores) | set(scores.undefined) == set(results["metrics"])
    assert (scores.n_items, scores.items, scores.task.type) == (3, "pairs", "music-editing")
    assert scores.departures == ()
    assert scores.dataset.config is None
    with pytest.raises(InvalidInputError, match="is a control"):
        system_scores(results, "same music")


def defaults(settings: type) -> dict[str, Any]:
    return {field.name: field.default for field in dataclasses.fields(settings)}


def test_what_ranks_are_the_defaults_of_the_benchmarks() -> None:
    from music_evals.benchmark.tasks.inpainting import task as inpainting
    from music_evals.benchmark.tasks.preservation import task as preservation
    from music_evals.benchmark.tasks.songs import descriptions, lyrics

    def ranked(task: str) -> dict[str, Any]:
        return {place.rpartition(".")[2]: wanted for place, wanted in TASKS[task].ranked.items()}

    lyric = {**defaults(lyrics.Settings), "rhyme": lyrics.Settings(dataset="x", out="y").options["rhyme"]}
    assert ranked("lyrics") == {name: lyric[name] for name in ranked("lyrics")}
    described = defaults(descriptions.Settings)
    assert ranked("descriptions") == {
        "variant": described["aggregation"],
        "normalize_by_self": described["normalize_by_self"],
        "name": described["encoder"],
    }
    assert ranked("preservation") == {"variant": defaults(preservation.Settings)["variant"]}
    assert ranked("inpainting") == {"variant": inpainting.Settings(dataset="x", out="y").scored_variant}


def test_another_encoder_has_no_rank(preservation: dict[str, Any]) -> None:
    results = {
        **preservation,
        "task": "descriptions",
        "variant": "mean",
        "options": {"normalize_by_self": True, "empty": "nan"},
        "encoder": {"name": "char-ngrams", "revision": ""},
    }
    scores = system_scores(results)
    assert scores.departures == ("normalize_by_self True", "encoder name char-ngrams")
    assert "encoder char-ngrams" in scores.settings
    assert "normalize_by_self True" in scores.settings


def test_nought_is_told_and_lists_are(preservation: dict[str, Any]) -> None:
    results = {**preservation, "options": {"temperature": 0.0, "seed": 0, "off": False, "list": ["a", "b"]}}
    results["systems"] = {**results["systems"], "up": {**results["systems"]["up"], "temperature": 0.0}}
    settings = system_scores(results, "up").settings
    assert {"temperature 0.0", "seed 0", "list a, b"} <= set(settings)
    assert not any(text.startswith("off") for text in settings)


def test_which_system(preservation: dict[str, Any]) -> None:
    results = preservation
    two = {**results, "systems": {**results["systems"], "down": results["systems"]["up"]}}
    with pytest.raises(UnknownNameError, match="known: down, up; name one with `system`"):
        system_scores(two, model="other")
    controls = {name: held for name, held in results["systems"].items() if held["role"] == "control"}
    with pytest.raises(InvalidInputError, match=r"are of same music.* alone, which are no systems that a card shows"):
        system_scores({**results, "systems": controls}, model="other")
    assert system_scores(two, model="up").system == "up"
    with pytest.raises(UnknownNameError, match="did you mean up"):
        system_scores(results, "uq")


def test_changed_results_are_not_pushed(preservation_run: Path) -> None:
    results = json.loads((preservation_run / "results.json").read_text())
    results["scores"]["up"]["motif_recall"]["value"] = 0.99
    (preservation_run / "results.json").write_text(json.dumps(results))
    with pytest.raises(ChangedResultsError, match=r"scores.up.motif_recall.value is 0.99 in results.json"):
        push_results(preservation_run, "owner/mine")


def test_results_of_an_unknown_form(preservation: dict[str, Any]) -> None:
    results: dict[str, Any] = dict(preservation)
    del results["scores"]
    with pytest.raises(UnreadableFileError, match="unknown form"):
        system_scores(results)
