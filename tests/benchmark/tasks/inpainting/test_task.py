"""The benchmark from end to end, on a small generated dataset."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tests.benchmark.record_files import damage

from music_evals.benchmark import formats
from music_evals.benchmark.contents import mark
from music_evals.benchmark.load import load_results
from music_evals.benchmark.published import read_published
from music_evals.benchmark.records import read_records
from music_evals.benchmark.tables import markdown_table, text_report
from music_evals.benchmark.tasks.inpainting.items import load_items
from music_evals.benchmark.tasks.inpainting.task import INPAINTING, Settings
from music_evals.errors import (
    CorruptRecordsError,
    InvalidInputError,
    MissingBackendError,
    NoDataError,
    PairCountError,
    UnknownNameError,
)

FEW = "copy_past,silence"
"""Baselines, where it does not matter that there are more."""

# Slow enough to be killed, by sleeping after each chunk.
CHILD = """
import sys, time
from music_evals.benchmark.tasks.inpainting.task import Settings, INPAINTING
out, dataset = sys.argv[1:]
settings = Settings(out, dataset=dataset, config="musib", n_seeds=2, n_resamples=50, report=False)
INPAINTING.run(settings, progress=lambda *_: time.sleep(0.02))
"""


def test_a_whole_run(settings: dict[str, Any], fake_model: Path) -> None:
    outcome = INPAINTING.run(Settings(**settings, models=[str(fake_model)]))
    out = settings["out"]
    check_marks(outcome.results)
    assert {path.name for path in out.iterdir()} == {
        "records", "validation_records", "results.json", "table.md", "report.html",
    }  # fmt: skip
    results = json.loads((out / "results.json").read_text())
    assert results == outcome.results
    assert results["failures"] == []
    assert set(results["tables"]) == {"all", "unseen"}
    table = results["tables"]["all"]
    assert (table["n_items"], table["n_songs"]) == (70, 18)
    assert results["tables"]["unseen"]["n_items"] == 56
    assert set(table["ranking"]) == set(results["systems"]) - {"reference", "best_lag"}
    assert results["systems"]["best_lag"]["role"] == "control"
    control = {name: cell["value"] for name, cell in table["scores"]["reference"].items()}
    assert 0 < control.pop("repeated_note_rate") < 1
    assert list(control.values()) == [1, 0, 1, 1, 1, 0, 0, 0]
    assert table["scores"]["fake"]["inpainting_nll"]["value"] == pytest.approx(0.5)
    # the best baseline of each metric is tested against, and is no control
    assert not {"reference", "best_lag"} & set(results["best_baseline"].values())
    for metric, best in results["best_baseline"].items():
        assert table["scores"]["fake"][metric]["test"]["against"] == best
        assert "test" not in table["scores"][best][metric]
    assert results["best_baseline_chosen_on"]["split"] == "validation"


def check_marks(results: dict[str, Any]) -> None:
    """Tables mark what is better, in Markdown and on a terminal."""
    lines = markdown_table(results).splitlines()
    assert lines[0].startswith("| system | note F1 ↑ | interval div. ↓ | repeated notes ≈ | position ↑ |")
    assert len({line.count("|") for line in lines}) == 1
    best = results["best_baseline"]["note_f1"]
    assert re.search(rf"\| `{best}` \| \d\.\d{{3}} = \(", "\n".join(lines))
    assert [line for line in lines if line.startswith("| `reference` (control) | 1.000 |")]
    text = text_report(results)
    assert "(reference)" in text
    assert "floor 0." in text
    assert "n 0/70" in text  # the accuracies of silence


@pytest.mark.slow
def test_killed_and_resumed_it_ends_the_same(tiny_dataset: Path, tmp_path: Path) -> None:
    def start(out: Path) -> subprocess.Popen[bytes]:
        return subprocess.Popen([sys.executable, "-c", CHILD, str(out), str(tiny_dataset)])

    whole, broken = tmp_path / "whole", tmp_path / "broken"
    assert start(whole).wait() == 0
    n_rows = len(read_records(whole / "records"))
    for share in (0.3, 0.8):  # twice, at different places
        child = start(broken)
        deadline = time.monotonic() + 60
        path = broken / "records"
        while not list(path.glob("*.parquet")) or len(read_records(path)) < share * n_rows:
            assert child.poll() is None, "the run ended before it could be killed"
            assert time.monotonic() < deadline
            time.sleep(0.005)
        os.kill(child.pid, signal.SIGKILL)
        child.wait()
        assert not (broken / "results.json").exists()
        (path / ".00001-0.parquet.0.part").write_bytes(b"torn")  # what a kill within a write leaves behind
    assert start(broken).wait() == 0
    for name in ("results.json", "table.md"):
        assert (broken / name).read_bytes() == (whole / name).read_bytes()
    for name in ("records", "validation_records"):
        first, second = (
            [row for row in read_records(out / name) if row["kind"] != "sitting"] for out in (whole, broken)
        )
        assert first == second  # nothing lost, nothing twice


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="limits of file sizes are set as Linux has them")
def test_a_disk_that_fills_up_in_mid_run(tiny_dataset: Path, tmp_path: Path) -> None:
    limited = "import resource, signal\nsignal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
    limited += "resource.setrlimit(resource.RLIMIT_FSIZE, (5_000, resource.RLIM_INFINITY))\n" + CHILD
    command = [sys.executable, "-c", limited, str(tmp_path / "out"), str(tiny_dataset)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert "music_evals.errors.OutputError: " in run.stderr
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["records"]
    for out in ("out", "fresh"):
        subprocess.run([sys.executable, "-c", CHILD, str(tmp_path / out), str(tiny_dataset)], check=True)
    results = [(tmp_path / out / "results.json").read_bytes() for out in ("out", "fresh")]
    assert results[0] == results[1]


@pytest.mark.slow
def test_other_options_are_refused(settings: dict[str, Any]) -> None:
    small = {**settings, "baselines": "copy_past", "limit": 5, "report": False}
    INPAINTING.run(Settings(**small))
    with pytest.raises(CorruptRecordsError, match="belongs to another run"):
        INPAINTING.run(Settings(**{**small, "limit": 6}))
    with pytest.raises(CorruptRecordsError, match=r"systems\.markov"):
        INPAINTING.run(Settings(**{**small, "baselines": "markov"}))
    INPAINTING.run(Settings(**{**small, "limit": 6, "overwrite": True}))
    # how it is summed up is no part of the run
    changed = INPAINTING.run(Settings(**{**small, "limit": 6, "confidence": 0.5}))
    assert changed.results["intervals"]["confidence"] == 0.5


@pytest.mark.slow
def test_damaged_records_are_not_built_upon(settings: dict[str, Any]) -> None:
    small = {**settings, "baselines": "copy_past", "limit": 5, "report": False}
    INPAINTING.run(Settings(**small))
    path = settings["out"] / "records"
    damage(path)
    with pytest.raises(CorruptRecordsError, match="damaged"):
        INPAINTING.run(Settings(**small))


def test_nothing_is_written_before_all_names_are_known(settings: dict[str, Any]) -> None:
    wrong: list[tuple[dict[str, Any], type[Exception]]] = [
        ({"config": "musik"}, UnknownNameError),
        ({"split": "tset"}, UnknownNameError),
        ({"models": ["no_such_model"]}, UnknownNameError),
        ({"baselines": "copy_pasta"}, UnknownNameError),
        ({"dataset": "no_such_dataset"}, UnknownNameError),
        ({"predictions": "no_such_file.jsonl"}, NoDataError),
    ]
    for change, error in wrong:
        with pytest.raises(error):
            INPAINTING.run(Settings(**{**settings, **change}))
        assert not settings["out"].exists(), change


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"dataset": None}, InvalidInputError, "give one of `dataset` and `pairs`"),
        ({"pairs": "folder"}, InvalidInputError, "give one of `dataset` and `pairs`"),
        (
            {"dataset": None, "pairs": "folder", "predictions": "x"},
            InvalidInputError,
            "`predictions` goes with `dataset`",
        ),
        ({"dataset": None, "pairs": "folder", "limit": 3}, InvalidInputError, "`limit` goes with `dataset`"),
        ({"n_seeds": 0}, InvalidInputError, "`n_seeds` must be at least 1"),
        ({"limit": -1}, InvalidInputError, "`limit` must be at least 1"),
        ({"workers": 0}, InvalidInputError, "`workers` must be at least 1"),
        ({"confidence": 95}, InvalidInputError, r"95 % is 0\.95"),
        ({"variant": "0fficial"}, UnknownNameError, "did you mean official"),
        ({"protocol": "0fficial"}, UnknownNameError, "did you mean official"),
        ({"protocol": "official"}, InvalidInputError, "config musib_official"),
        ({"protocol": "official", "config": None, "variant": "paper"}, InvalidInputError, "variant official"),
    ],
)
def test_settings_that_make_no_sense(
    settings: dict[str, Any], change: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        Settings(**{**settings, **change})


def test_a_folder_that_cannot_be_written(settings: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(InvalidInputError, match="`out`"):
        INPAINTING.run(Settings(**{**settings, "out": tmp_path / "file", "baselines": "copy_past"}))


def test_without_matplotlib_the_run_does_not_start(settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingBackendError, match=r"\.\[report\]"):
        INPAINTING.run(Settings(**settings))
    assert not settings["out"].exists()
    outcome = INPAINTING.run(Settings(**settings, report=False, limit=4, baselines="copy_past"))
    assert "report" not in outcome.files


@pytest.mark.slow
@pytest.mark.usefixtures("undrawn")
def test_the_official_protocol(settings: dict[str, Any], tiny_dataset: Path, tmp_path: Path, fake_model: Path) -> None:
    chorales = tmp_path / "jsb_chorales"
    chorales.symlink_to(tiny_dataset)
    official = {**settings, "dataset": str(chorales), "config": None, "protocol": "official"}
    official |= {"decoding": "teacher_forced", "baselines": f"{FEW},markov"}
    outcome = INPAINTING.run(Settings(**official, models=[str(fake_model)]))
    results = outcome.results
    assert results["dataset"]["config"] == "musib_official"
    assert results["variant"] == "official"
    assert results["tables"]["all"]["n_items"] == 6
    # baselines are fitted on the train split of `musib`, chosen on the official validation contexts
    assert "markov" in results["systems"]
    assert results["best_baseline_chosen_on"]["n_items"] == 6
    # what leaks is labelled, outside of ranking and tests
    leaking = "fake:teacher_forced (leaks)"
    assert results["systems"][leaking]["role"] == "leaking"
    assert leaking not in results["tables"]["all"]["ranking"]
    assert all("test" not in cell for cell in results["tables"]["all"]["scores"][leaking].values())
    text = text_report(results, published=True)
    for system, row in read_published("musib_table3").means.items():
        line = " ".join(line for line in text.splitlines() if line.startswith(system))
        assert all(f"{value:.3f}" in line for value in row.values())
    assert "teacher-forced" in text
    assert "transposes" in text
    page = (settings["out"] / "report.html").read_text()
    assert "The published table" in page


@pytest.mark.usefixtures("undrawn")
def test_the_published_table_stands_beside_its_own_data_alone(settings: dict[str, Any]) -> None:
    official = {**settings, "config": None, "protocol": "official", "baselines": "copy_past"}
    outcome = INPAINTING.run(Settings(**official))
    assert outcome.results["variant"] == "official"
    assert outcome.results["published"] == {"source": "", "table": {}, "differences": {}}
    assert "The published table" not in (settings["out"] / "report.html").read_text()


def test_the_published_table_is_as_printed() -> None:
    # MUSIB, table 3, the row of Anticipation-RNN: NLL, posF1, pAcc, rAcc | S, H, GS
    printed = read_published("musib_table3").means
    assert list(printed["Anticipation-RNN"].values()) == [0.459, 0.832, 0.243, 0.682, 0.240, 0.525, 0.232]
    assert len(printed) == 5


@pytest.mark.slow
def test_predictions_made_elsewhere(settings: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "mine.jsonl"
    write_true_middles(path, settings, slice(None))
    few = {**settings, "baselines": FEW, "report": False}
    outcome = INPAINTING.run(Settings(**few, predictions=path))
    cells = outcome.results["tables"]["all"]["scores"]["mine"]
    assert cells["note_f1"]["value"] == 1
    assert cells["note_f1"]["test"]["difference"] > 0


@pytest.mark.slow
def test_predictions_for_part_of_the_items_are_failures_of_the_rest(settings: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "part.jsonl"
    write_true_middles(path, settings, slice(5, None))
    few = {**settings, "baselines": FEW, "report": False, "n_resamples": 20}
    with pytest.raises(PairCountError, match=r"no prediction for 5 of 70 items.*`allow_missing=True`"):
        INPAINTING.run(Settings(**few, predictions=path))
    results = INPAINTING.run(Settings(**few, predictions=path, allow_missing=True)).results
    table = results["tables"]["all"]
    assert [row["error"] for row in results["failures"]] == ["no prediction was given"] * 5
    for name, cell in table["scores"]["part"].items():
        assert (cell["n"], cell["n_scored"], cell["n_failed"]) == (70, 65, 5), name
    # right wherever there is a prediction, and yet below all that answered every item
    for name in ("note_f1", "position_score"):
        cell = table["scores"]["part"][name]
        assert (cell["value"], cell["n_defined"], cell["test"]["n"]) == (pytest.approx(65 / 70), 70, 70)
    assert table["scores"]["part"]["pitch_accuracy"]["value"] == 1
    assert table["ranking"][-1] == "part"
    text = text_report(results)
    assert "part [65/70 scored]" in text
    assert "no prediction of part for 5 of 70 windows: they count as the worst at note F1, position, and" in text


def test_the_official_accuracies_of_a_missing_prediction_are_0(settings: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "part.jsonl"
    write_true_middles(path, settings, slice(5, None))
    few = {**settings, "report": False, "n_resamples": 20, "baselines": "none", "variant": "official"}
    table = INPAINTING.run(Settings(**few, predictions=path, allow_missing=True)).results["tables"]["all"]
    assert table["scores"]["part"]["pitch_accuracy"]["value"] == pytest.approx(65 / 70)


@pytest.mark.slow
@pytest.mark.usefixtures("undrawn")
def test_right_answers_to_a_few_windows_win_nothing(settings: dict[str, Any], tmp_path: Path, read_page: Any) -> None:
    path = tmp_path / "few.jsonl"
    n = write_true_middles(path, settings, slice(None, None, 35))
    few = {**settings, "baselines": FEW, "report": True}
    outcome = INPAINTING.run(Settings(**few, predictions=path, allow_missing=True))
    results = outcome.results
    cells = results["tables"]["all"]["scores"]["few"]
    assert cells["note_f1"]["value"] == pytest.approx(n / 70)
    assert cells["silence_divergence"]["value"] == 0
    marks = {name: mark(results, results["tables"]["all"], "few", name) for name in cells}
    assert "better" not in marks.values()
    page = " ".join(read_page((settings["out"] / "report.html").read_text(encoding="utf-8")).text)
    lead = page[page.index("reaches a note F1 of") - 40 :][:400]
    assert "few reaches" not in lead
    assert f"few answered {n} of 70 windows and is ranked below." in " ".join(lead.split())
    assert "better than" not in lead


@pytest.mark.slow
def test_a_run_shows_and_corrects_what_it_asks_for(settings: dict[str, Any]) -> None:
    few = {**settings, "report": False, "baselines": FEW}
    plain = INPAINTING.run(Settings(**few)).results
    more = INPAINTING.run(Settings(**few, extensions="all")).results
    again = INPAINTING.run(Settings(**few)).results
    extensions = {"consonance_pitch_accuracy", "self_replication_rate"}
    assert set(more["scales"]) == set(plain["scales"]) | extensions
    assert again == plain
    assert load_results(settings["out"]).results == again
    cells, others = (found["tables"]["all"]["scores"] for found in (plain, more))
    # asking for more changes no correction of what every run has
    assert cells == {system: {name: others[system][name] for name in row} for system, row in cells.items()}
    assert any("test" in row["consonance_pitch_accuracy"] for row in others.values())


def test_what_allows_missing_predictions(settings: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError, match="`allow_missing` goes with `predictions`"):
        Settings(**settings, allow_missing=True)
    with pytest.raises(UnknownNameError, match="self_replication_rate"):
        Settings(**settings, extensions="self_replication")


def write_true_middles(path: Path, settings: dict[str, Any], which: slice) -> int:
    """Write the right answers to some items of the test split as predictions; return how many."""
    items = load_items(settings["dataset"], "musib", "test")
    pairs = list(zip(items.item_ids, items.middles.tolist(), strict=True))[which]
    path.write_text("".join(json.dumps({"item_id": item, "middle": middle}) + "\n" for item, middle in pairs))
    return len(pairs)


@pytest.mark.slow
def test_without_a_train_split_fitted_baselines_are_left_out(settings: dict[str, Any], tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    source = Path(settings["dataset"]) / "data" / "musib" / "test-00000-of-00001.parquet"
    (tmp_path / "only_test").mkdir()
    pq.write_table(pq.read_table(source), tmp_path / "only_test" / "test.parquet")
    plain = {**settings, "dataset": str(tmp_path / "only_test"), "config": None, "report": False}
    outcome = INPAINTING.run(Settings(**plain))
    assert "markov, corpus_prior" in outcome.notes[0]
    assert "copy_past" in outcome.results["systems"]
    assert outcome.results["best_baseline"] == {}  # there is no validation split either
    with pytest.raises(NoDataError, match="markov"):
        INPAINTING.run(Settings(**{**plain, "baselines": "markov", "overwrite": True}))


def test_the_backend_is_there() -> None:
    formats.check_backend()
