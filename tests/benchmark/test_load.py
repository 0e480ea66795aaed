"""Results that are read back are what their records give, or they are refused by the name of the value."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from music_evals.benchmark.load import load_results
from music_evals.benchmark.records import RecordStore
from music_evals.errors import ChangedResultsError, CorruptRecordsError, NoDataError, UnreadableFileError

from .tasks.inpainting.test_numbers import BEFORE, records


@pytest.fixture
def run(preservation_run: Path) -> Path:
    return preservation_run


def change(run: Path, how: Callable[[dict[str, Any]], Any]) -> None:
    results = json.loads((run / "results.json").read_bytes())
    how(results)
    (run / "results.json").write_text(json.dumps(results))


def test_results_are_made_from_the_records(run: Path) -> None:
    loaded = load_results(run)
    assert (loaded.task, loaded.folder) == ("preservation", run)
    assert loaded.results == json.loads((run / "results.json").read_bytes())
    assert load_results(run / "results.json").results == loaded.results
    assert loaded.scores.value("a", "up", "circle_of_fifths_distance") == 0.0
    with pytest.warns(DeprecationWarning, match=r"LoadedResults\.found is called scores now"):
        assert loaded.found is loaded.scores
    assert loaded.records[0]["kind"] == "run"


@pytest.mark.parametrize(
    ("how", "named"),
    [
        (lambda r: r["scores"]["up"]["motif_recall"].update(value=0.99), "scores.up.motif_recall.value is 0.99 in"),
        (lambda r: r["scores"]["up"]["motif_recall"].update(n=7), "scores.up.motif_recall.n is 7 in"),
        (lambda r: r["scores"]["up"].update(forged={"value": 1.0}), "scores.up.forged is an object of 1 in"),
        (lambda r: r["systems"]["same music"].update(role="system"), "systems.same music.role is 'system' in"),
        (lambda r: r["failures"].append({}), "failures is a list of 1 in results.json and a list of 0 in"),
        (lambda r: r["dataset"].update(id="another"), "dataset.id is 'another' in"),
        (lambda r: r["intervals"].update(confidence=0.5), "scores.up.circle_of_fifths_distance.low is "),
        (lambda r: r.update(variant="paper"), "variant is 'paper' in"),
    ],
)
def test_a_changed_value_is_refused_by_its_name(run: Path, how: Callable[[dict[str, Any]], Any], named: str) -> None:
    change(run, how)
    with pytest.raises(ChangedResultsError) as caught:
        load_results(run)
    assert named in str(caught.value)
    assert isinstance(caught.value, CorruptRecordsError)


def test_last_bits_and_what_a_version_tells_otherwise_are_no_changes(run: Path) -> None:
    wanted = load_results(run).results
    value = wanted["scores"]["up"]["circle_of_fifths_distance"]["value"]
    assert value > 0
    change(run, lambda r: r["scores"]["up"]["circle_of_fifths_distance"].update(value=value * (1 + 1e-13)))
    change(run, lambda r: r["wording"].update(title="Another title"))
    change(run, lambda r: r.pop("notes"))
    change(run, lambda r: r.update(tables={"all": {"scores": {"up": {"motif_recall": {"value": 0.99}}}}}))
    assert load_results(run).results == wanted


@pytest.mark.parametrize("name", ["records", "results.json"])
def test_a_missing_file_says_what_to_do(run: Path, name: str) -> None:
    (run / name).rename(run / "away")
    with pytest.raises(NoDataError, match=f"{name} is not there; give the folder of a run"):
        load_results(run)


@pytest.mark.parametrize(
    "intervals",
    [None, {}, {"confidence": 0.95, "n_resamples": 10**9, "seed": 0}, {"confidence": 2.0, "n_resamples": 9, "seed": 0}],
)
def test_intervals_that_cannot_be_made_again(run: Path, intervals: Any) -> None:
    change(run, lambda r: r.update(intervals=intervals))
    with pytest.raises(UnreadableFileError, match="does not say how its intervals were made"):
        load_results(run)


@pytest.mark.parametrize("text", ["{", "[]", '{"a": 1}', "[" * 100_000])
def test_files_that_hold_no_results(run: Path, text: str) -> None:
    (run / "results.json").write_text(text)
    with pytest.raises(UnreadableFileError):
        load_results(run)


@pytest.mark.slow
def test_results_of_inpainting_that_an_older_version_made_otherwise_are_refused_by_name(tmp_path: Path) -> None:
    baselines = ("copy_past", "markov", "silence", "reference")
    files = {"records": records(1, 9, split="test")}
    files["validation_records"] = records(2, 6, split="validation", names=baselines)
    for name, (header, *rows) in files.items():
        with RecordStore(tmp_path / name, {key: header[key] for key in header if key != "kind"}, rows):
            pass
    old = json.loads(BEFORE.read_text(encoding="utf-8"))
    header = files["records"][0]
    told = {"metrics": {"note_f1": {"direction": "higher"}}, "published": None}
    old = {**{key: header[key] for key in header if key != "kind"}, **told, **old}
    (tmp_path / "results.json").write_text(json.dumps(old))
    # intervals were made in another way then; the records still hold all that is needed to make them again
    with pytest.raises(ChangedResultsError, match=r"made by another version: tables\.all\.scores\..*\.(low|high) is"):
        load_results(tmp_path)
    shutil.rmtree(tmp_path / "validation_records")
    with pytest.raises(NoDataError, match=r"validation_records is not there"):
        load_results(tmp_path)
