"""The verb ``list``: every name of the package, from any folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from music_evals import cli
from music_evals.benchmark.run import task_places
from music_evals.cli.listing import VERBS
from music_evals.metrics.catalogue import CATALOGUE, LYRIC_SCORES, PRESERVATION_METRICS, SUCCESS_SCORES
from music_evals.repositories import repo_path

CONTENT = ("lyric_structure_gated", "lyric_wordlikeness", "lyric_diversity", "lyric_theme_similarity")


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test runs in the clone."""
    monkeypatch.chdir(tmp_path)


def listed(what: str, capsys: pytest.CaptureFixture[str], *options: str) -> dict[str, dict[str, Any]]:
    assert cli.main(["list", what, "--json", *options]) == 0
    rows = json.loads(capsys.readouterr().out)
    found = {row["name"]: row for row in rows}
    assert len(found) == len(rows), "names are unique"
    return found


def lines(what: str, capsys: pytest.CaptureFixture[str], *options: str) -> dict[str, str]:
    assert cli.main(["list", what, *options]) == 0
    return {line.split()[0]: line for line in capsys.readouterr().out.splitlines()}


def test_metrics_are_the_catalogue_and_the_modules_of_several(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = listed("metrics", capsys)
    modules = {path.name for path in (root / "metrics").iterdir() if path.is_dir()}
    assert set(rows) == set(CATALOGUE) | modules
    assert list(rows)[: len(CATALOGUE)] == list(CATALOGUE)
    assert {name for name, row in rows.items() if row["path"]} == modules
    assert rows["note_f1"]["path"] == repo_path("note_f1")
    bpm = rows["delta_bpm"]
    assert (bpm["low"], bpm["high"], bpm["better"], bpm["unit"], bpm["task"]) == (
        0,
        "inf",
        "lower",
        "BPM",
        "preservation",
    )
    assert bpm["description"]
    assert bpm["features"] == ["beats"]
    shown = lines("metrics", capsys)
    assert set(shown) == set(rows)
    assert shown["delta_bpm"].split("  ")[-1] == "module"
    for word in ("rhythm: Delta BPM", "0 to inf", "lower", "BPM"):
        assert word in shown["delta_bpm"]


@pytest.mark.slow
def test_a_task_filters(capsys: pytest.CaptureFixture[str]) -> None:
    kept = listed("metrics", capsys, "--task", "preservation")
    assert set(PRESERVATION_METRICS) < set(kept)
    assert {"harmony_preservation", "music_context_preservation"} < set(kept)
    assert not {"note_f1", "lyric_song", "musical_inpainting"} & set(kept)
    assert set(listed("metrics", capsys, "--task", "lyric_writing")) == {*LYRIC_SCORES, *CONTENT}
    by_text = {"text_audio_similarity", "text_direction", "instruction_rank", "lpaps"}
    assert set(listed("metrics", capsys, "--task", "edits")) == {*SUCCESS_SCORES} | by_text
    assert list(lines("datasets", capsys, "--task", "inpainting")) == ["ailabs_1k7", "irish_folk", "jsb_chorales"]
    assert list(lines("models", capsys, "--task", "descriptions")) == ["music_tagger"]
    assert list(lines("tasks", capsys, "--task", "discrepancy")) == ["discrepancy"]


def test_datasets_say_configs_splits_sizes_and_licence(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import pyarrow.parquet as pq

    rows = listed("datasets", capsys)
    assert set(rows) == {path.name for path in (root / "datasets_scripts").iterdir() if path.is_dir()}
    for name, row in rows.items():
        assert row["licence"]
        assert row["tasks"]
        for config in row["configs"]:
            for split in config["splits"]:
                files = (Path(row["path"]) / "data" / config["name"]).glob(f"{split['name']}-*.parquet")
                assert split["rows"] == sum(pq.read_metadata(file).num_rows for file in files), name
    assert "musib (train 2,504, validation 232, test 308)" in lines("datasets", capsys)["jsb_chorales"]


@pytest.mark.slow
def test_models_say_task_parameters_and_status(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch", reason="models need the extra `models`")
    from music_evals.models.anticipation_rnn import AnticipationRNN

    rows = listed("models", capsys)
    trained, untrained = rows["anticipation_rnn"], rows["music_tagger"]
    network = AnticipationRNN.from_pretrained(trained["path"])
    assert trained["parameters"] == sum(value.numel() for value in network.state_dict().values())
    assert (trained["status"], trained["task"], trained["licence"]) == ("trained", "inpainting", "apache-2.0")
    assert (untrained["status"], untrained["parameters"]) == ("untrained", None)
    assert Path(untrained["recipe"]).name == "train.yaml"
    assert (rows["zeta"]["status"], rows["zeta"]["task"], rows["zeta"]["recipe"]) == ("external-weights", "edit", None)
    assert "1.99 M parameters" in lines("models", capsys)["anticipation_rnn"]


def test_tasks_say_verb_and_settings(capsys: pytest.CaptureFixture[str]) -> None:
    rows = listed("tasks", capsys)
    assert set(rows) == set(VERBS) == set(task_places()) - {"edits", "musecpbench"}
    settings = {setting["name"]: setting for setting in rows["inpainting"]["settings"]}
    assert settings["models"]["option"] == "--model"
    assert settings["n_seeds"]["default"] == 5
    assert settings["out"]["required"]
    assert rows["preservation"]["verb"] == "music-evals preserve"
    assert "music-evals inpainting" in lines("tasks", capsys)["inpainting"]


@pytest.mark.slow
def test_windows_of_the_current_folder_are_listed_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    own = tmp_path / "models" / "own" / "big"
    own.mkdir(parents=True)
    (own / "config.json").write_text('{"model_type": "anticipation_rnn"}')
    (tmp_path / "datasets_scripts" / "mine").mkdir(parents=True)
    row = listed("models", capsys)["own/big"]
    assert (row["status"], row["task"], row["path"]) == ("untrained", "inpainting", str(own))
    assert listed("datasets", capsys)["mine"]["configs"] == []
    (tmp_path / "datasets_scripts" / "mine" / "manifest.json").write_text("[]")
    assert cli.main(["list", "datasets"]) == 2
    assert "is no manifest of a data set" in capsys.readouterr().err
    (own / "config.json").write_text("{")
    assert cli.main(["list", "models"]) == 2
    assert "is not JSON" in capsys.readouterr().err
