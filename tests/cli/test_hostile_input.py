from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from music_evals import cli
from music_evals.annotations import Score
from music_evals.benchmark.records import RecordStore, read_records
from music_evals.symbolic.midi import save_midi
from music_evals.symbolic.notes import make_notes

MIDDLE = [60, *[128] * 95]


@pytest.fixture
def small(tiny_dataset: Path, tmp_path: Path) -> list[str]:
    """Arguments of a small run."""
    return [
        "inpainting", "--dataset", str(tiny_dataset), "--config", "musib", "--baselines", "none",
        "--limit", "4", "--resamples", "20", "--no-report", "--out", str(tmp_path / "out"),
    ]  # fmt: skip


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, made the current one."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """Run what must be refused as wrong usage, and return the message."""
    assert cli.main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("music-evals: error: ")
    assert "Traceback" not in err
    return err


def write_predictions(path: Path, **fields: object) -> Path:
    rows = [{"item_id": f"musib/test/{row:03d}", "middle": MIDDLE, **fields} for row in range(4)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.mark.slow
def test_pairs_of_which_no_reference_can_be_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    prediction = tmp_path / "pairs" / "prediction" / "a.mid"
    prediction.parent.mkdir(parents=True)
    save_midi(Score(make_notes(np.arange(16) * 480, 480, 60), 480), prediction)
    (tmp_path / "pairs" / "reference").mkdir()
    (tmp_path / "pairs" / "reference" / "a.mid").write_bytes(b"no MIDI")
    out = tmp_path / "out"
    assert cli.main(["inpainting", "--pairs", str(tmp_path / "pairs"), "--out", str(out), "--resamples", "20"]) == 1
    err = capsys.readouterr().err
    assert "1 failed:" in err
    assert "a (input): UnreadableFileError" in err
    assert json.loads((out / "results.json").read_text())["tables"]["all"]["n_items"] == 0
    assert "UnreadableFileError" in (out / "report.html").read_text()


@pytest.mark.parametrize("seed", [2**70, -1])
def test_seeds_of_predictions_that_no_record_holds(
    small: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], seed: int
) -> None:
    path = write_predictions(tmp_path / "mine.jsonl", seed=seed)
    assert "line 1: expected a system name" in refused([*small, "--predictions", str(path)], capsys)
    assert not (tmp_path / "out").exists()


def test_a_line_of_brackets(small: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "deep.jsonl"
    path.write_text("[" * 100_000)
    assert "line 1 is not JSON" in refused([*small, "--predictions", str(path)], capsys)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("token", [2**70, -(2**70), 130])
def test_tokens_that_no_byte_holds(
    small: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], token: int
) -> None:
    path = write_predictions(tmp_path / "mine.jsonl", middle=[token] * 96)
    assert "line 1: " in refused([*small, "--predictions", str(path)], capsys)


def test_an_empty_system_name(small: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_predictions(tmp_path / "mine.jsonl", system=" ")
    assert "expected a system name" in refused([*small, "--predictions", str(path)], capsys)


def test_a_system_name_cannot_break_the_table(small: list[str], tmp_path: Path) -> None:
    path = write_predictions(tmp_path / "mine.jsonl", system="a|b\nc `d`")
    assert cli.main([*small, "--predictions", str(path)]) == 0
    table = (tmp_path / "out" / "table.md").read_text()
    parts = [part.splitlines() for part in table.split("\n\n") if part.startswith("|")]
    assert any(row.startswith(r"| `a\|b c 'd'` |") for rows in parts for row in rows)
    for rows in parts:  # a pipe with a backslash is no border of a cell
        assert len({len(re.findall(r"(?<!\\)\|", row)) for row in rows}) == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (["--out", ""], "--out is empty"),
        (["--revision", "foo"], "revision"),
        (["--seeds", "9000000000"], "--seeds must be at most 1000, got 9000000000"),
        (["--resamples", "0"], "--resamples must be at least 1, got 0"),
        (["--resamples", "9000000000"], "--resamples must be at most"),
        (["--confidence", "95"], "--confidence must lie above 0"),
        (["--decoding", "sample"], "--decoding goes with --model"),
        (["--temperature", "0.5"], "--temperature goes with --model"),
        (["--dataset", "nowhere"], "looked up in ./datasets_scripts and in the package; a folder or a Hub id"),
    ],
)
def test_what_would_be_ignored_or_never_end_is_refused(
    small: list[str], elsewhere: Path, capsys: pytest.CaptureFixture[str], change: list[str], message: str
) -> None:
    assert message in refused([*small, *change], capsys)
    assert not (elsewhere.parent / "out").exists()
    assert list(elsewhere.iterdir()) == []


def test_overwrite_leaves_nothing_of_the_other_run(small: list[str], tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    derived = ("report.html", "results.json", "table.md", "model_card.md", "validation_records.jsonl")
    with RecordStore(out / "validation_records", {"task": "of another run"}):
        pass
    for name in (*derived, "notes.txt"):
        (out / name).write_text("of another run")
    assert cli.main([*small, "--overwrite"]) == 0
    assert sorted(path.name for path in out.iterdir()) == ["notes.txt", "records", "results.json", "table.md"]
    assert (out / "notes.txt").read_text() == "of another run"
    assert "of another run" not in (out / "table.md").read_text()


def test_the_limit_does_not_cut_validation_and_is_on_record(small: list[str], tmp_path: Path) -> None:
    small[small.index("none")] = "copy_past"
    assert cli.main(small) == 0
    results = json.loads((tmp_path / "out" / "results.json").read_text())
    assert results["tables"]["all"]["n_items"] == 4
    assert results["best_baseline_chosen_on"]["n_items"] == 12
    assert results["options"] == {"limit": 4, "decoding": None, "temperature": None}


def test_a_config_that_was_left_out_is_recorded_by_name(small: list[str], tmp_path: Path) -> None:
    at = small.index("--config")
    del small[at : at + 2]
    assert cli.main(small) == 0
    header = read_records(tmp_path / "out" / "records")[0]
    assert header["dataset"]["config"] == "musib"


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full, a device of Linux")
@pytest.mark.parametrize("verb", ["inpainting", "frame"])
def test_standard_output_on_a_full_disk(small: list[str], tmp_path: Path, verb: str) -> None:
    save_midi(Score(make_notes([0], 480, 60), 480), tmp_path / "a.mid")
    arguments = small if verb == "inpainting" else ["frame", str(tmp_path)]
    command = [str(Path(sys.executable).parent / "music-evals"), *arguments]
    with Path("/dev/full").open("w") as full:
        run = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert run.returncode == 1
    assert "cannot write to standard output: No space left on device" in run.stderr
    assert "Traceback" not in run.stderr
    assert "Exception ignored" not in run.stderr


def test_recipes_go_with_filters(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save_midi(Score(make_notes([0], 480, 60), 480), tmp_path / "a.mid")
    assert cli.main(["frame", str(tmp_path), "--filters", "musib_folk,min_measures=1", "--json"]) == 0
    out, err = capsys.readouterr()
    assert "file/s" in err  # the progress bar counts files
    steps = [step["name"] for step in json.loads(out)["filters"]["steps"]]
    assert steps[-2:] == ["min_measures=17", "min_measures=1"]
    assert "musib_folk" in refused(["frame", str(tmp_path), "--filters", "unique,musib_folks"], capsys)
    for wrong in ("-3", "x", "", "9" * 5000):
        message = refused(["frame", str(tmp_path), "--filters", f"min_measures={wrong}"], capsys)
        assert "min_measures takes a whole number from 0 on" in message
    assert "unique takes no number" in refused(["frame", str(tmp_path), "--filters", "unique=3"], capsys)
