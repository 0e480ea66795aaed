"""The verb ``listening-test``, from a run of the verb ``inpainting`` on."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from music_evals.cli import main
from music_evals.cli.verbs import build_parser
from music_evals.studies.listening.inpainting import StudySettings
from music_evals.studies.pairs import read_pairs


@pytest.fixture
def run(inpainting_run_of_all: Path) -> Path:
    return inpainting_run_of_all


def pairs(run: Path, out: Path, *others: str) -> int:
    plain = ["--items", "2", "--sounds", "additive", "--bpm", "400", "--licence", "CC0-1.0"]
    return main(["listening-test", "pairs", str(run), "--out", str(out), *plain, *others])


def test_one_command_makes_a_study(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert pairs(run, tmp_path / "study", "--systems", "all") == 0
    out, err = capsys.readouterr()
    first, second, third = out.splitlines()
    assert first == "2 items of 2 songs, 5 systems: reference, mine, silence, copy_past, markov"
    assert second == "10 files to be judged, 1.8 minutes in all"
    assert third == f"{tmp_path / 'study'}: pairs.csv (the key), pairs.json, audio/"
    assert "2/2" in err
    found = read_pairs(tmp_path / "study/pairs.csv")
    same = [pair for pair in found if pair.same_as]
    assert ("note: " in err) == bool(same)
    # what is listened to names nobody
    names = " ".join(path.name for path in (tmp_path / "study/audio").iterdir())
    assert not any(pair.system in names for pair in found)


def test_json_is_what_the_folder_keeps(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert pairs(run, tmp_path / "study", "--json", "--seed", "7", "--systems", "copy_past") == 0
    content = json.loads(capsys.readouterr().out)
    assert content == json.loads((tmp_path / "study/pairs.json").read_text())
    assert (content["seed"], list(content["systems"])) == (7, ["copy_past"])


@pytest.mark.slow
def test_wrong_use_is_told_in_the_words_of_the_command(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "study"
    for others, said in (
        (["--items", "0"], "--items must be 1 to 10,000, got 0"),
        (["--items", "71"], "ask for fewer (--items), or choose other systems (--systems)"),
        (["--systems", "copypast"], "unknown system 'copypast'; did you mean copy_past"),
        (["--loudness", "-1"], "choose a lower --loudness"),
        (["--licence", "unknown"], "state its terms with --licence"),
    ):
        assert pairs(run, out, *others) == 2
        assert said in capsys.readouterr().err
    assert not out.exists()
    assert pairs(tmp_path, out) == 2
    assert "holds no records (records)" in capsys.readouterr().err
    assert pairs(run, out) == 0
    assert pairs(run, out) == 2
    assert "holds a study; name another folder with --out, or replace it, --overwrite" in capsys.readouterr().err
    assert pairs(run, out, "--overwrite") == 0
    (out / "ratings.csv").write_text("dear to somebody")
    assert pairs(run, out, "--overwrite") == 2
    assert "holds ratings.csv" in capsys.readouterr().err


def test_what_is_left_out_is_what_the_function_takes() -> None:
    options = build_parser().parse_args(["listening-test", "pairs", "run", "--out", "study"])
    for field in dataclasses.fields(StudySettings):
        if field.default is not dataclasses.MISSING:
            assert getattr(options, field.name) == field.default


def test_a_step_must_be_named(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["listening-test"])
    assert ended.value.code == 2
    assert "STEP" in capsys.readouterr().err


@pytest.mark.slow
def test_ratings_of_a_study_are_set_against_its_run(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Listeners name the files that they heard; the key says who made them, with which seed of which run."""
    study = tmp_path / "study"
    assert pairs(run, study) == 0
    key = read_pairs(study / "pairs.csv")
    better = {"reference": 5, "mine": 3, "copy_past": 2}
    rows = [f"{pair.estimate},{who},{better[pair.system]},1-5" for pair in key for who in ("p1", "p2", "p3")]
    ratings = tmp_path / "answers.csv"
    ratings.write_text("\n".join(["estimate,listener,rating,scale", *rows]) + "\n")
    capsys.readouterr()
    command = ["listening-test", "agreement", str(run), str(ratings), "--resamples", "20"]
    assert main([*command, "--key", str(study / "pairs.csv")]) == 0
    out = capsys.readouterr().out
    assert "overall: 18 ratings by 3 listeners of 2 items and 3 systems; Krippendorff's alpha (interval) 1.000" in out
    assert "note F1 ↑" in out
    assert "rated and not judged in the run, and so no part of any agreement with it: reference (2)" in out
    assert main([*command, "--key", str(study / "pairs.csv"), "--json"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert content["questions"]["overall"]["n_judged"] == 4
    assert content["intervals"] == {"confidence": 0.95, "n_resamples": 20, "seed": 0}
    assert main(command) == 2
    assert "played files need the key of the study, its pairs.csv" in capsys.readouterr().err
    assert main([*command, "--key", str(study / "pairs.csv"), "--level", "ratio"]) == 2
