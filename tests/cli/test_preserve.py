from __future__ import annotations

import functools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.benchmark.record_files import damage

from music_evals import cli
from music_evals.annotations import Score
from music_evals.benchmark.tasks.preservation import task as preservation
from music_evals.metrics.catalogue import AUXILIARY, PRESERVATION_METRICS, SHOWN_AUXILIARY
from music_evals.symbolic.midi import save_midi
from music_evals.symbolic.notes import make_notes

TUNE = np.array([60, 62, 64, 65, 67, 69, 71, 72, 67, 64, 60, 67, 72, 71, 69, 67] * 4)


def write_tune(path: Path, shift: int = 0) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    save_midi(Score(make_notes(np.arange(len(TUNE)) * 480, 480, TUNE + shift), 480), path)


@pytest.fixture
def small(tmp_path: Path) -> list[str]:
    """Arguments of a small run over scores, which need no extractor."""
    for number, name in enumerate("abc"):
        write_tune(tmp_path / "r" / f"{name}.mid", number)
        write_tune(tmp_path / "e" / f"{name}.mid", number + 7)
    return [
        "preserve", "--reference", str(tmp_path / "r"), "--estimate", f"up={tmp_path / 'e'}",
        "--resamples", "20", "--workers", "1", "--no-report", "--out", str(tmp_path / "out"),
    ]  # fmt: skip


@pytest.fixture
def quick(
    write_files: Callable[[str, dict[str, str]], Path], stub_judge: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> list[str]:
    """Arguments of a run over files of numbers, which a stub compares."""
    run = functools.partial(preservation.PRESERVATION.run, scorer=stub_judge((*PRESERVATION_METRICS, *AUXILIARY)))
    monkeypatch.setattr(preservation.PRESERVATION, "run", run)
    reference = write_files("r", {f"{name}.mid": "0" for name in "abc"})
    estimate = write_files("e", {f"{name}.mid": "0.5" for name in "abc"})
    return [
        "preserve", "--reference", str(reference), "--estimate", f"up={estimate}",
        "--resamples", "20", "--engine", "serial", "--no-report", "--out", str(tmp_path / "out"),
    ]  # fmt: skip


@pytest.mark.slow
def test_a_run_ends_with_the_tables_and_where_things_are(
    quick: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    quick.remove("--no-report")
    (tmp_path / "r" / "b.mid").write_text("9")  # another original, for the row of unrelated music
    assert cli.main(quick) == 0
    out, err = capsys.readouterr()
    for word in (
        "Harmony",
        "Rhythm",
        "Structure",
        "Melody",
        "variant corrected; up: 3 pairs",
        "same",
        "unrelated",
        "By facet, from unrelated music (0) to the same music (1), up has",
    ):
        assert word in out
    assert out.splitlines()[-1] == f"{tmp_path / 'out'}: records, results.json, table.md, report.html"
    assert "pair" in err  # the progress bar
    assert "pair/s" not in out


@pytest.mark.slow
def test_the_own_scores_come_first_and_fit_one_screen(
    quick: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """All eleven scores and five beside them, what they say and where the files are, on 80 columns and 28 rows."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "r" / "b.mid").write_text("9")
    quick.remove("--no-report")
    assert cli.main([*quick[:-1], "results"]) == 0
    own = capsys.readouterr().out.splitlines()
    assert len(own) <= 27, "\n".join(own)
    assert max(map(len, own)) <= 80
    scores = [line for line in own if " ↑" in line or " ↓" in line]
    assert [line.split()[0] for line in scores if not line.startswith(" ")] == [
        "Harmony",
        "Rhythm",
        "Structure",
        "Melody",
        "Companions",
    ]
    assert len(scores) == len(PRESERVATION_METRICS) + len(SHOWN_AUXILIARY)
    assert "MusicGen" not in "".join(own)
    assert cli.main([*quick[:-1], "results", "--published"]) == 0
    whole = capsys.readouterr().out
    assert whole.startswith("\n".join(own[:15]))
    for more in ("MusicGen", "How to read this:", "Notes:"):
        assert more in whole


@pytest.mark.slow
def test_several_systems_stand_side_by_side(
    quick: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "r" / "b.mid").write_text("9")
    quick[quick.index("--estimate") : quick.index("--estimate")] = ["--estimate", f"same={tmp_path / 'r'}"]
    assert cli.main([*quick, "--companions", "none"]) == 0
    out = capsys.readouterr().out
    assert out.index("(same music)") < out.index("same preserved in full: key") < out.index("up preserved in part: ")
    assert "11 differences between systems significant at 0.05 (Holm); * is best." in out
    assert "Notes:" not in out


def test_json_is_all_that_stdout_gets(small: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([*small, "--json", "--no-controls", "--limit", "2"]) == 0
    out, err = capsys.readouterr()
    results = json.loads(out)
    assert results == json.loads((tmp_path / "out" / "results.json").read_text())
    assert "results: " in err
    assert list(results["systems"]) == ["up"]
    assert results["scores"]["up"]["circle_of_fifths_distance"]["value"] == pytest.approx(1 / 6)
    assert results["scores"]["up"]["circle_of_fifths_distance"]["n"] == 2


def test_one_pair_a_manifest_and_companions(
    quick: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    common = quick[quick.index("--resamples") :]
    files = ["--reference", str(tmp_path / "r" / "a.mid"), "--estimate", str(tmp_path / "e" / "a.mid")]
    assert cli.main(["preserve", *files, *common, "--metrics", "delta_bpm", "--companions", "tempo_log2"]) == 0
    assert "Tempo change" in capsys.readouterr().out
    (tmp_path / "list.csv").write_text("reference,estimate,system,song\nr/a.mid,e/a.mid,up,1\nr/b.mid,e/b.mid,up,1\n")
    manifest = ["--manifest", str(tmp_path / "list.csv"), "--group-by", "song", "--overwrite", "--json"]
    assert cli.main(["preserve", *manifest, *common]) == 0
    assert json.loads(capsys.readouterr().out)["systems"]["up"]["n_groups"] == 1


@pytest.mark.slow
def test_failed_items_are_listed(quick: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "e" / "b.mid").unlink()
    (tmp_path / "e" / "c.mid").write_text("unreadable")
    quick += ["--companions", "none"]
    assert cli.main(quick) == 1
    out, err = capsys.readouterr()
    assert "2 failed:" in err
    assert "b (up): PairCountError: no estimate for 'b'" in err
    assert "c (up): UnreadableFileError" in err
    assert out.count(" 1/3 ") == 11
    assert "2 failures, which table.md lists." in out
    assert "Traceback" not in err
    (tmp_path / "e" / "b.mid").write_text("0.5")
    (tmp_path / "e" / "c.mid").write_text("0.5")
    assert cli.main(quick) == 0  # the same command again does what is left


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (["--metrics", "beat_f_measur"], "did you mean beat_f_measure"),
        (["--companions", "same_mod"], "did you mean same_mode"),
        (["--variant", "paperr"], "did you mean paper"),
        (["--backend", "beats=tcnn"], "unknown beats backend"),
        (["--backend", "beats"], "--backend takes FEATURE=NAME"),
        (
            ["--backend", "beats=tcn", "--backend", "beats=librosa"],
            "two extractors of beats, tcn and librosa; keep one",
        ),
        (["--estimate", "other=/nowhere"], "no such file or folder"),
        (["--manifest", "list.csv"], "give one of --reference"),
        (["--workers", "0"], "--workers must be at least 1"),
        (["--group-by", "song"], "folders are grouped by"),
        (["--renderer", "additive"], "--renderer goes with --dataset"),
    ],
)
def test_wrong_names_and_options_are_usage_errors(
    small: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], change: list[str], message: str
) -> None:
    assert cli.main([*small, *change]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("music-evals: error: ")
    assert message in err
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_an_unwritable_folder_and_damaged_records(
    quick: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "records").touch()
    assert cli.main(quick) == 1
    assert "cannot write" in capsys.readouterr().err
    (tmp_path / "out" / "records").unlink()
    assert cli.main(quick) == 0
    damage(tmp_path / "out" / "records")
    assert cli.main(quick) == 1
    assert "is damaged" in capsys.readouterr().err
    assert cli.main([*quick, "--overwrite"]) == 0


@pytest.mark.slow
def test_another_run_in_the_same_folder_is_refused(quick: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(quick) == 0
    assert cli.main([*quick, "--variant", "paper"]) == 2
    assert "variant was 'corrected' and is now 'paper'" in capsys.readouterr().err
