from __future__ import annotations

import json
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from music_evals.annotations import Score, Tempo
from music_evals.benchmark.load import load_results
from music_evals.benchmark.tasks.preservation.pairs import CEILING, UNRELATED, Columns, pairs_of_dataset
from music_evals.benchmark.tasks.preservation.report import SHOWN_PAIRS
from music_evals.benchmark.tasks.preservation.task import PRESERVATION, Settings
from music_evals.datasets.known_edits.labels import kinds
from music_evals.errors import (
    CorruptRecordsError,
    InvalidInputError,
    MissingBackendError,
    UndefinedMetricWarning,
    UnknownNameError,
)
from music_evals.metrics.catalogue import SHOWN_AUXILIARY
from music_evals.pipelines.preservation import AUXILIARY, PRESERVATION_METRICS, evaluate_preservation
from music_evals.symbolic.midi import save_midi
from music_evals.symbolic.notes import make_notes

Write = Callable[[str, dict[str, str]], Path]
NASTY = "<script>alert(1)<&'\" $x"
LIGHT = {"beats": "librosa", "f0": "harmonic_sum", "melody": "from_f0"}


@pytest.fixture
def judge(stub_judge: Any) -> Any:
    return stub_judge((*PRESERVATION_METRICS, *AUXILIARY))


@pytest.fixture
def folders(write_files: Write) -> dict[str, Any]:
    """Settings of a run over two systems and six items, one of them without a partner."""
    reference = write_files("r", {f"{name}.wav": str(number) for number, name in enumerate("abcdef")})
    one = write_files("one", {f"{name}.wav": f"{number}.25" for number, name in enumerate("abcdef")})
    two = write_files("two", {f"{name}.wav": f"{number}.5" for number, name in enumerate("abcde")})
    estimates = (f"one={one}", f"two={two}")
    return {"reference": reference, "estimates": estimates, "n_resamples": 50, "engine": "serial", "backends": LIGHT}


def test_a_run_writes_all_its_files(folders: dict[str, Any], tmp_path: Path, judge: Any) -> None:
    outcome = PRESERVATION.run(Settings(tmp_path / "out", **folders | {"engine": "local"}, workers=2), scorer=judge)
    assert set(outcome.files) == {"records", "results", "table", "report"}
    results = json.loads(outcome.files["results"].read_text())
    assert results == outcome.results
    with pytest.warns(DeprecationWarning, match=r"Outcome\.found is called scores now"):
        assert outcome.found is outcome.scores
    assert list(results["systems"]) == ["one", "two", CEILING, UNRELATED]
    assert results["scores"]["one"]["circle_of_fifths_distance"]["value"] == 0.75
    assert results["scores"]["two"]["circle_of_fifths_distance"]["value"] == 0.5
    assert results["scores"][CEILING]["circle_of_fifths_distance"]["value"] == 1
    assert results["scores"]["two"]["circle_of_fifths_distance"]["n"] == 6
    assert [(row["item"], row["system"]) for row in results["failures"]] == [("f", "two")]
    assert {test["n"] for test in results["comparisons"]} == {5}
    assert [note for note in outcome.notes if "lengths that differ: 1;" in note]
    extractors = results["extractors"]
    assert extractors["policy"]["sample_rate"] == 22050
    assert extractors["features"]["beats"]["version"] >= 1
    assert results["versions"]["librosa"]
    assert "### Harmony" in outcome.files["table"].read_text()


def test_the_page_needs_nothing_from_outside_and_escapes_names(
    write_files: Write, tmp_path: Path, judge: Any, read_page: Any
) -> None:
    rows = [
        {"reference": f"{n}.wav", "estimate": text, "id": f"{n} {NASTY}", "system": f"{system} {NASTY}", "group": NASTY}
        for n in range(4)
        for system, text in (("x", "9.wav"), ("y", "missing.wav"))
    ]
    files = {f"{n}.wav": str(n) for n in range(10)}
    folder = write_files("m", {**files, "list.jsonl": "\n".join(map(json.dumps, rows))})
    settings = Settings(
        tmp_path / "out", manifest=folder / "list.jsonl", n_resamples=20, engine="serial", backends=LIGHT
    )
    page = PRESERVATION.run(settings, scorer=judge).files["report"].read_text()
    parsed = read_page(page)
    assert "http" not in page
    assert not re.search(r"@import|url\((?!#)", page)
    for _, attributes in parsed.tags:
        assert not any(
            (attributes.get(name) or "#").partition("#")[0] for name in ("src", "href", "xlink:href", "data")
        )
    assert [attributes for tag, attributes in parsed.tags if tag == "script"] == [{"type": "application/json"}, {}]
    escaped = ("&lt;script&gt;alert(1)", r"\u003cscript\u003ealert(1)")  # in the text, and in the list of pairs
    assert page.count("alert(1)") == sum(map(page.count, escaped))
    ids = [attributes["id"] for _, attributes in parsed.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    text = " ".join(parsed.text)
    assert NASTY in text
    for word in (
        "Harmony",
        "At a glance",
        "The published table",
        "Pairs",
        "Failures",
        "Receipt",
        "MusiConGen (published)",
    ):
        assert word in text, word
    assert page.count('class="timeline"') == 4
    assert page.count('class="plot"') == 2  # a radar for each system


def test_the_worst_pairs_are_drawn_first(write_files: Write, tmp_path: Path, stub_judge: Any) -> None:
    names = [f"{number:02d}" for number in range(SHOWN_PAIRS + 5)]
    reference = write_files("r", {f"{name}.wav": "0" for name in names})
    estimate = write_files("e", {f"{name}.wav": f"0.{name}" for name in names})
    metrics = "beat_f_measure,information_gain,segment_ari"
    how: dict[str, Any] = {"metrics": metrics, "n_resamples": 20, "engine": "serial", "backends": LIGHT}
    settings = Settings(tmp_path / "out", reference=reference, estimates=(str(estimate),), **how)
    page = PRESERVATION.run(settings, scorer=stub_judge(settings.measures.scores)).files["report"].read_text()
    shown = re.findall(r'aria-label="Timeline of (\d\d), e"', page)
    assert shown == sorted(names, reverse=True)[:SHOWN_PAIRS]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"manifest": "list.csv"}, "give one of `reference`"),
        ({"reference": None, "estimates": ()}, "give one of `reference`"),
        ({"estimates": ()}, "`reference` and `estimates` go together"),
        ({"renderer": "additive"}, "`renderer` goes with `dataset`"),
        ({"config": "small"}, "`config` goes with `dataset`"),
        ({"workers": 0}, "`workers` must be at least 1"),
        ({"n_resamples": 0}, "`n_resamples` must be at least 1"),
        ({"limit": 0}, "`limit` must be at least 1"),
        ({"confidence": 95}, "`confidence` must lie above 0 and below 1"),
        ({"seed": -1}, "`seed` must be at least 0"),
        ({"timelines": -1}, "`timelines` must be at least 0"),
        ({"out": ""}, "`out` is empty"),
    ],
)
def test_settings_that_make_no_sense(
    folders: dict[str, Any], tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidInputError, match=message):
        Settings(**{"out": tmp_path, **folders, **change})


@pytest.mark.parametrize(
    "change", [{"metrics": "beat_f_measur"}, {"companions": "same_mod"}, {"variant": "paperr"}, {"audio": "besides"}]
)
def test_names_that_do_not_exist(folders: dict[str, Any], tmp_path: Path, change: dict[str, Any]) -> None:
    with pytest.raises(UnknownNameError, match="did you mean"):
        Settings(**{"out": tmp_path, **folders, **change})


def test_names_of_metrics(folders: dict[str, Any], tmp_path: Path) -> None:
    assert len(Settings(tmp_path, **folders).measures.metrics) == 11
    assert len(Settings(tmp_path, **folders, metrics="all", companions="all").measures.scores) == 29
    some = Settings(tmp_path, **folders, metrics="delta_bpm, circle_of_fifths_distance", companions="tempo_log2")
    assert some.measures.scores == ("circle_of_fifths_distance", "delta_bpm", "tempo_log2")
    # five auxiliary metrics beside all eleven, unless others are asked for, and none beside chosen ones
    assert set(Settings(tmp_path, **folders).measures.companions) == set(SHOWN_AUXILIARY)
    assert Settings(tmp_path, **folders, companions="none").measures.companions == ()
    assert Settings(tmp_path, **folders, metrics="delta_bpm").measures.companions == ()
    # one that is asked for as a metric is no auxiliary metric of itself
    own = Settings(tmp_path, **folders, metrics="ssm_correlation", companions="all").measures
    assert (own.metrics, own.companions) == (("ssm_correlation",), ("boundary_f_measure_3s",))


def test_a_companion_that_is_asked_for_as_a_metric_has_its_place(
    folders: dict[str, Any], tmp_path: Path, judge: Any
) -> None:
    names = "ssm_correlation,motif_recall"
    results = PRESERVATION.run(Settings(tmp_path / "out", **folders, metrics=names), scorer=judge).results
    assert set(results["facets"]["separation"]) == {"ssm_correlation", "motif_recall"}
    assert set(results["facets"]["scores"]["one"]) == {"structure", "melody"}


@pytest.mark.usefixtures("without_essentia")
def test_backends_that_are_not_there(folders: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="beats backend"):
        PRESERVATION.run(Settings(tmp_path / "out", **{**folders, "backends": {"beats": "tcnn"}}))
    with pytest.raises(UnknownNameError, match="feature 'beat'"):
        PRESERVATION.run(Settings(tmp_path / "out", **{**folders, "backends": {"beat": "tcn"}}))
    with pytest.raises(MissingBackendError, match="essentia"):
        PRESERVATION.run(Settings(tmp_path / "out", **{**folders, "backends": {"key": "essentia_bgate"}}))
    assert not (tmp_path / "out").exists()


@pytest.mark.usefixtures("without_essentia")
def test_missing_extractors_of_a_variant_are_told_and_cost_their_metrics_alone(
    folders: dict[str, Any], tmp_path: Path, judge: Any
) -> None:
    changes = {"variant": "official", "metrics": "circle_of_fifths_distance,delta_bpm", "backends": {}}
    settings = Settings(tmp_path / "out", **{**folders, **changes})
    told = PRESERVATION.run(settings, scorer=judge).results["extractors"]["features"]
    assert "essentia" in told["key"]["missing"]
    assert told["beats"]["backend"] == "librosa_official"


def test_a_run_of_nothing_but_failures_has_all_its_files(
    write_files: Write, tmp_path: Path, judge: Any, read_page: Any
) -> None:
    folder = write_files("m", {"list.csv": "reference,estimate\na.wav,b.wav\n"})
    outcome = PRESERVATION.run(Settings(tmp_path / "out", manifest=folder / "list.csv"), scorer=judge)
    assert outcome.results["failures"][0]["error"].startswith("NoDataError: ")
    assert outcome.results["scores"]["list"]["delta_bpm"] == {
        "value": None, "low": None, "high": None, "n": 1, "n_defined": 0, "n_failed": 1, "n_groups": 0,
        "n_clusters": 0.0,
    }  # fmt: skip
    read_page(outcome.files["report"].read_text())


@pytest.mark.slow
def test_results_do_not_depend_on_workers_order_or_resume(folders: dict[str, Any], tmp_path: Path, judge: Any) -> None:
    def results(name: str, **changes: Any) -> dict[str, Any]:
        settings = Settings(tmp_path / name, **{**folders, "engine": "local", "report": False, **changes})
        return PRESERVATION.run(settings, scorer=judge).results

    first = results("a", workers=1)
    assert results("b", workers=3) == first
    assert results("a", workers=1) == first  # resumed
    assert results("b", workers=2, overwrite=True) == first
    turned = results("c", estimates=folders["estimates"][::-1])
    assert turned["scores"] == first["scores"]
    assert results("d", controls=False)["scores"]["one"] == first["scores"]["one"]


def test_an_added_system_leaves_the_first_alone(folders: dict[str, Any], tmp_path: Path, judge: Any) -> None:
    calls: list[str] = []
    one = {**folders, "estimates": folders["estimates"][:1], "report": False, "controls": False}
    PRESERVATION.run(Settings(tmp_path / "out", **one), scorer=judge)
    both = {**one, "estimates": folders["estimates"]}
    outcome = PRESERVATION.run(
        Settings(tmp_path / "out", **both), scorer=judge, progress=lambda *call: calls.append(call[2])
    )
    assert len(calls) == 5  # of the second system alone
    assert list(outcome.results["systems"]) == ["one", "two"]


@pytest.mark.slow
def test_facets_that_were_meant_to_change_are_named_afterwards_too(
    folders: dict[str, Any], tmp_path: Path, judge: Any
) -> None:
    """They change no score: nothing is judged again, and the results are those of a run that named them at once."""

    def results(name: str, intended: str | None) -> tuple[dict[str, Any], list[str]]:
        calls: list[str] = []
        settings = Settings(tmp_path / name, **{**folders, "report": False}, intended=intended)
        PRESERVATION.run(settings, scorer=judge, progress=lambda *call: calls.append(call[2]))
        return load_results(tmp_path / name).results, calls

    plain, first = results("a", None)
    assert first
    assert "intended" not in plain
    at_once, _ = results("b", "melody, harmony")
    assert at_once["facets"]["others"]["intended"] == ["harmony", "melody"]
    assert results("a", "harmony,melody") == (at_once, [])
    assert results("a", "melody")[0]["intended"] == ["melody"]
    assert results("a", None) == (plain, [])
    with pytest.raises(CorruptRecordsError, match="variant was 'corrected' and is now 'paper'"):
        PRESERVATION.run(Settings(tmp_path / "a", **{**folders, "variant": "paper", "backends": {}}), scorer=judge)


def save_tune(path: Path, pitches: list[int], *, bpm: float = 120.0) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    onsets = np.arange(len(pitches)) * 480
    notes = make_notes(onsets, 480, np.array(pitches))
    save_midi(Score(notes, 480, tempos=(Tempo(0, bpm),), voices=("melody",)), path)


TUNE = [60, 62, 64, 65, 67, 69, 71, 72, 67, 64, 60, 67, 72, 71, 69, 67] * 4


@pytest.mark.slow
def test_scores_are_compared_without_rendering(tmp_path: Path) -> None:
    other = [69, 71, 72, 71, 69, 68, 69, 74, 72, 71, 69, 68, 65, 68, 69, 64] * 4  # in A minor
    for name, pitches in {"one": TUNE, "two": other}.items():
        save_tune(tmp_path / "r" / f"{name}.mid", pitches)
        save_tune(tmp_path / "same" / f"{name}.mid", pitches)
        save_tune(tmp_path / "up" / f"{name}.mid", [pitch + 7 for pitch in pitches], bpm=90)
    estimates = tuple(str(tmp_path / name) for name in ("same", "up"))
    settings = Settings(
        tmp_path / "out", reference=tmp_path / "r", estimates=estimates, n_resamples=20, engine="serial", report=False
    )
    results = PRESERVATION.run(settings).results
    assert results["failures"] == []
    assert results["systems"]["same"]["entrances"] == ["symbolic"]
    same, up = results["scores"]["same"], results["scores"]["up"]
    for name, scale in results["scales"].items():
        assert same[name]["value"] in {scale["best"], None}, name
    assert up["delta_bpm"]["value"] == pytest.approx(30, abs=1e-3)  # MIDI holds microseconds a quarter
    assert up["circle_of_fifths_distance"]["value"] == pytest.approx(1 / 6)  # a fifth up is one step of six
    assert up["motif_jaccard"]["value"] == 1  # intervals stay
    assert results["scores"][CEILING] == same | {
        name: {**cell, "n": 2} for name, cell in same.items()
    }  # written as MIDI and read again, nothing is lost
    assert results["scores"][UNRELATED]["motif_jaccard"]["value"] < 0.3


@pytest.mark.slow
def test_intervals_are_those_of_the_library(tmp_path: Path) -> None:
    shifts = {"down/one": (0, -5), "up/one": (0, 7), "down/two": (1, -5), "up/two": (1, 2), "down/three": (2, 1)}
    for name, (start, shift) in shifts.items():
        tune = [pitch * (1 if start < 2 else -1) + 120 * (start // 2) for pitch in TUNE]
        save_tune(tmp_path / "r" / f"{name}.mid", [pitch + start for pitch in tune])
        save_tune(tmp_path / "e" / f"{name}.mid", [pitch + start + shift for pitch in tune], bpm=120 + shift)
    settings = Settings(
        tmp_path / "out", reference=tmp_path / "r", estimates=(str(tmp_path / "e"),), n_resamples=100, engine="serial",
        report=False,
    )  # fmt: skip
    results = PRESERVATION.run(settings).results
    assert results["systems"]["e"]["n_groups"] == 3  # five files, three originals
    sides = ([tmp_path / side / f"{name}.mid" for name in shifts] for side in "re")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        library = evaluate_preservation(*sides, companions=SHOWN_AUXILIARY)
    for name, cell in results["scores"]["e"].items():
        assert cell["value"] == pytest.approx(library[name], nan_ok=True), name
        expected = [None if np.isnan(end) else pytest.approx(end) for end in library[f"{name}_ci"]]
        assert [cell["low"], cell["high"]] == expected, name
    assert results["scores"]["e"]["delta_bpm"]["low"] is not None


def audio_dataset(folder: Path, rows: list[dict[str, Any]]) -> Path:
    """Write a dataset with two columns of audio."""
    import datasets
    import pyarrow as pa
    import pyarrow.parquet as pq

    audio, text = datasets.Audio(), datasets.Value("string")
    features = datasets.Features({"before": audio, "after": audio, "id": text, "song": text})
    encoded = [{**row, **{side: {"bytes": row[side], "path": None} for side in ("before", "after")}} for row in rows]
    folder.mkdir()
    pq.write_table(pa.Table.from_pylist(encoded, features.arrow_schema), folder / "test-00000-of-00001.parquet")
    return folder


def test_a_dataset_with_two_audio_columns(tmp_path: Path) -> None:
    rows = [
        {"before": b"RIFF one", "after": b"fLaC two", "id": "a", "song": "x"},
        {"before": b"RIFF one", "after": b"who knows", "id": "b", "song": "x"},
        {"before": b"MThd one", "after": b"MThd two", "id": "c", "song": "y"},
    ]
    dataset = audio_dataset(tmp_path / "set", rows)
    columns = Columns("before", "after", group_by="song")
    found = pairs_of_dataset(str(dataset), None, "test", columns, folder=tmp_path / "spool")
    named = [(pair.item, pair.system, pair.group) for pair in found.pairs]
    assert named == [("a", "after", "x"), ("b", "after", "x"), ("c", "after", "y")]
    assert [Path(pair.estimate.path).suffix for pair in found.pairs] == [".flac", "", ".mid"]
    assert [pair.modality for pair in found.pairs] == ["audio", "audio", "symbolic"]
    assert found.pairs[0].reference == found.pairs[1].reference
    assert Path(found.pairs[0].reference.path).read_bytes() == b"RIFF one"
    by_file = pairs_of_dataset(str(dataset), None, "test", Columns("before", "after"), folder=tmp_path / "again")
    assert by_file.pairs[0].group == by_file.pairs[1].group != by_file.pairs[2].group
    assert str(tmp_path) not in by_file.pairs[0].group  # records name no place of this run
    assert len(pairs_of_dataset(str(dataset), None, "test", columns, folder=tmp_path / "spool", limit=1).pairs) == 1


def test_datasets_that_hold_no_pairs(tmp_path: Path) -> None:
    dataset = str(audio_dataset(tmp_path / "set", [{"before": b"1", "after": b"2", "id": "a", "song": "x"}]))
    with pytest.raises(InvalidInputError, match="no column reference, estimate; it has before, after, id, song"):
        pairs_of_dataset(dataset, None, "test", folder=tmp_path / "spool")
    with pytest.raises(InvalidInputError, match="`renderer`"):
        pairs_of_dataset(dataset, None, "test", folder=tmp_path / "spool", renderer="additive")
    with pytest.raises(UnknownNameError, match="renderer"):
        pairs_of_dataset("known_edits", None, "test", folder=tmp_path / "spool", renderer="aditive")
    with pytest.raises(UnknownNameError, match="did you mean test"):
        pairs_of_dataset(dataset, None, "tset", folder=tmp_path / "spool")


def test_a_rendered_dataset(in_root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MUSIC_EVALS_CACHE", str(tmp_path / "cache"))
    calls: list[str] = []
    found = pairs_of_dataset(
        "known_edits", "small", "test", folder=tmp_path, limit=1, progress=lambda *call: calls.append(call[2])
    )
    (pair,) = found.pairs
    assert found.dataset["renderer"] == "additive"
    assert pair.item.count("/") == 2  # piece, kind and strength
    assert found.systems == (pair.system,)
    assert pair.system in kinds()  # a mean over all kinds of edits says nothing
    assert Path(pair.reference.path).is_relative_to(tmp_path / "cache")
    assert calls == ["rendering"]


def test_a_manifest_says_which_systems_are_controls(write_files: Write, tmp_path: Path, judge: Any) -> None:
    """They have a score a facet, and no part in comparisons, as those of the run."""
    files = {f"{side}{n}.wav": f"{n}{side}" for n in range(4) for side in (".1", ".25", ".5", ".75")}
    folder = write_files("m", files)
    lines = ["id,reference,estimate,system,role,group"]
    for system, side, role in (("mine", ".25", "system"), ("copy", ".5", "control"), ("yours", ".75", "")):
        lines += [f"{n},.1{n}.wav,{side}{n}.wav,{system},{role},{n}" for n in range(4)]
    (folder / "list.csv").write_text("\n".join(lines))
    settings = {"manifest": folder / "list.csv", "report": False, "backends": LIGHT, "intended": "melody"}
    results = PRESERVATION.run(Settings(tmp_path / "out", engine="serial", **settings), scorer=judge).results
    roles = {name: about["role"] for name, about in results["systems"].items()}
    assert roles == {
        "mine": "system", "copy": "control", "yours": "system", CEILING: "control", UNRELATED: "control",
    }  # fmt: skip
    assert {(test["a"], test["b"]) for test in results["comparisons"]} == {("mine", "yours")}
    assert set(results["facets"]["scores"]) == {"mine", "copy", "yours"} == set(results["facets"]["others"]["scores"])
    assert load_results(tmp_path / "out").results == results
