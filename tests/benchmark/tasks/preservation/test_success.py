"""Targets in a manifest: what was asked is measured beside what was preserved, of systems and of controls."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

from music_evals import cli
from music_evals.annotations import Score
from music_evals.audio.rendering import render_additive
from music_evals.benchmark.load import load_results
from music_evals.benchmark.records import read_records
from music_evals.benchmark.tasks.preservation.pairs import CEILING, UNRELATED, pairs_in_manifest
from music_evals.errors import InvalidInputError, UnknownNameError
from music_evals.symbolic.midi import save_midi
from music_evals.symbolic.notes import make_notes

TUNES = {
    "a": (60, 62, 64, 65, 67, 69, 71, 72),
    "b": (67, 71, 74, 67, 72, 76, 79, 74),
    "c": (62, 65, 69, 74, 72, 69, 65, 62),
}
OPTIONS = ("--metrics", "circle_of_fifths_distance,motif_jaccard", "--resamples", "20", "--workers", "1", "--no-report")


def save_tune(folder: Path, name: str, tune: str, up: int = 0) -> str:
    notes = make_notes(np.arange(48) * 480, 480, np.array(TUNES[tune] * 6) + up)
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    save_midi(Score(notes, 480), path)
    return name


def manifest(folder: Path, rows: list[dict[str, Any]]) -> Path:
    path = folder / "pairs.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two systems are asked for a tone up: one does it, the other returns its input; of one pair nothing was asked."""
    folder = tmp_path_factory.mktemp("targets")
    rows: list[dict[str, Any]] = []
    for tune in TUNES:
        original = save_tune(folder, f"{tune}.mid", tune)
        moved = save_tune(folder, f"{tune}_up.mid", tune, up=2)
        for system, edit in (("mover", moved), ("lazy", original)):
            rows.append(
                {
                    "id": tune,
                    "reference": original,
                    "estimate": edit,
                    "system": system,
                    "targets": "transpose=+2; loudness=+3 dB",
                }
            )
    rows[-1]["targets"] = ""
    out = folder / "out"
    assert cli.main(["preserve", "--manifest", str(manifest(folder, rows)), "--out", str(out), *OPTIONS]) == 0
    return out


def test_who_does_what_is_asked_stands_above_who_returns_the_input(run: Path) -> None:
    scores = load_results(run).results["scores"]
    assert scores["mover"]["edit_success"]["value"] == scores["mover"]["edit_done"]["value"] == 1
    assert scores["lazy"]["edit_success"]["value"] == scores["lazy"]["edit_done"]["value"] == 0
    assert scores["lazy"]["circle_of_fifths_distance"]["value"] == 0  # which alone it would win
    [explained] = [
        row for row in read_records(run / "records").of("explanation") if (row["item"], row["system"]) == ("a", "mover")
    ]
    assert explained["targets"]["transpose"] == {
        "success": 1.0, "verdict": "done", "requested": 2.0, "measured": 2.0, "reason": "",
    }  # fmt: skip
    assert explained["targets"]["loudness"]["success"] is None
    assert explained["targets"]["loudness"]["reason"]
    assert (scores["lazy"]["edit_success"]["n_defined"], scores["lazy"]["edit_success"]["n"]) == (2, 3)


def test_a_board_takes_the_results(run: Path, tmp_path: Path) -> None:
    board = str(tmp_path / "board")
    assert cli.main(["leaderboard", "add", str(run), "--board", board]) == 0
    assert cli.main(["leaderboard", "build", "--board", board, "--out", str(tmp_path / "tables")]) == 0
    [table] = [
        table
        for table in json.loads((tmp_path / "tables" / "leaderboard.json").read_text())["tables"]
        if table["tests"]
    ]
    # who returned its input is first in preservation, and has no place before who did what was asked
    assert [row["label"] for row in table["rows"]][:2] == ["mover", "lazy"]
    assert {row["mean_rank"] for row in table["rows"]} == {None}
    assert table["headline"] == "edit_success"
    points = table["plane"]["systems"]
    assert [name for name, point in points.items() if point["front"]] == ["mover"]
    in_run = load_results(run).results["plane"]["systems"]
    # the key of what was asked to be a tone higher is no damage
    assert points["mover"].keys() & {"harmony", "melody"} == set()
    assert points["mover"]["preservation"]["value"] == points["lazy"]["preservation"]["value"] == 1
    for name, axis in itertools.product(points, ("success", "preservation")):
        assert points[name][axis]["value"] == in_run[name][axis]["value"], (name, axis)
    assert "<ellipse" in (tmp_path / "tables" / "index.html").read_text()


def test_the_controls_are_asked_for_the_same(run: Path) -> None:
    """The same music is at 0, whatever it preserves, and no contestant."""
    loaded = load_results(run)
    assert loaded.results["scores"][CEILING]["edit_success"]["value"] == 0
    assert 0 <= loaded.results["scores"][UNRELATED]["edit_success"]["value"] <= 1
    compared = {name for test in loaded.results["comparisons"] for name in (test["a"], test["b"])}
    assert compared == {"mover", "lazy"}
    tested = {test["metric"]: test for test in loaded.results["comparisons"]}
    assert abs(tested["edit_success"]["difference"]) == 1


@pytest.mark.slow
def test_a_run_without_targets_has_no_such_score(tmp_path: Path) -> None:
    rows = [{"reference": save_tune(tmp_path, "a.mid", "a"), "estimate": save_tune(tmp_path, "b.mid", "b")}]
    out = tmp_path / "out"
    assert cli.main(["preserve", "--manifest", str(manifest(tmp_path, rows)), "--out", str(out), *OPTIONS]) == 0
    [scores] = [
        scores for name, scores in load_results(out).results["scores"].items() if name not in {CEILING, UNRELATED}
    ]
    assert "edit_success" not in scores


@pytest.mark.slow
def test_a_run_is_not_resumed_with_other_targets(run: Path, tmp_path: Path) -> None:
    """The records know what was asked."""
    rows = [json.loads(line) for line in (run.parent / "pairs.jsonl").read_text().splitlines()]
    for row in rows:
        row["targets"] = {"transpose": -5}
    again = run.parent / "others.jsonl"
    again.write_text("".join(json.dumps(row) + "\n" for row in rows))
    out = tmp_path / "out"
    for path, code, more in ((run.parent / "pairs.jsonl", 0, []), (again, 2, []), (again, 0, ["--overwrite"])):
        assert cli.main(["preserve", "--manifest", str(path), "--out", str(out), *OPTIONS, *more]) == code
    assert load_results(out).results["scores"]["mover"]["edit_success"]["value"] == 0


@pytest.mark.slow
def test_a_run_is_resumed_with_more_systems(run: Path, tmp_path: Path) -> None:
    """As long as the same was asked of the pairs that are there."""
    rows = [json.loads(line) for line in (run.parent / "pairs.jsonl").read_text().splitlines()]
    out, command = tmp_path / "out", ["preserve", "--manifest", str(run.parent / "part.jsonl"), *OPTIONS]
    for chosen in ({"mover"}, {"mover", "lazy"}):
        part = [row for row in rows if row["system"] in chosen]
        (run.parent / "part.jsonl").write_text("".join(json.dumps(row) + "\n" for row in part))
        assert cli.main([*command, "--out", str(out)]) == 0
    again, whole = load_results(out).results, load_results(run).results
    assert again["scores"]["lazy"] == whole["scores"]["lazy"]
    assert again["scores"]["mover"] == whole["scores"]["mover"]


@pytest.mark.slow
def test_the_same_music_is_not_made_softer_by_its_control(tmp_path: Path) -> None:
    """It is an original against a lesser copy, 6 dB softer; as an edit it changed nothing."""
    samples = render_additive(Score(make_notes(np.arange(16) * 480, 480, np.array(TUNES["a"] * 2)), 480))
    for name, gain in (("a.wav", 0.5), ("softer.wav", 0.25)):
        soundfile.write(tmp_path / name, gain * samples / np.abs(samples).max(), 22_050)
    rows = [{"reference": "a.wav", "estimate": "softer.wav", "system": "softer", "targets": "loudness=-6.02 dB"}]
    out = tmp_path / "out"
    made = ["preserve", "--manifest", str(manifest(tmp_path, rows)), "--out", str(out)]
    assert cli.main([*made, "--metrics", "chroma_dtw_similarity", *OPTIONS[2:]]) == 0
    scores = load_results(out).results["scores"]
    assert scores["softer"]["edit_success"]["value"] == pytest.approx(1, abs=1e-3)
    assert scores[CEILING]["edit_success"]["value"] == 0


@pytest.mark.parametrize(("targets", "error"), [("tempo=fast", InvalidInputError), ({"mood": "sad"}, UnknownNameError)])
def test_a_row_with_other_targets_is_named(
    targets: Any, error: type[Exception], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = save_tune(tmp_path, "a.mid", "a")
    rows = [{"reference": name, "estimate": name, "targets": targets}]
    code = cli.main(["preserve", "--manifest", str(manifest(tmp_path, rows)), "--out", str(tmp_path / "out"), *OPTIONS])
    assert code == 2
    assert "row 1" in capsys.readouterr().err
    with pytest.raises(error):
        pairs_in_manifest(tmp_path / "pairs.jsonl")


def test_edit_hands_its_targets_on(tmp_path: Path) -> None:
    save_tune(tmp_path, "sources/a.mid", "a")
    command = ["edit", str(tmp_path / "sources"), "--system", "transposition", "--set", "semitones=3", "--workers", "1"]
    asked = ["--targets", "transpose=+3; tempo=2x", "--out", str(tmp_path / "edits")]
    assert cli.main([*command, *asked]) == 0
    [row] = [json.loads(line) for line in (tmp_path / "edits" / "manifest.jsonl").read_text().splitlines()]
    assert row["targets"] == {"transpose": "+3", "tempo": "2x"}
    out = tmp_path / "out"
    made = ["--manifest", str(tmp_path / "edits" / "manifest.jsonl"), "--out", str(out), "--no-controls"]
    assert cli.main(["preserve", *made, *OPTIONS]) == 0
    [scores] = load_results(out).results["scores"].values()
    assert scores["edit_success"]["value"] == 0.5  # the pitch is there, the tempo is not
