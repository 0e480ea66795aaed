"""Edits of real recordings: manifest, table, programs, evidence. The recording of these tests is generated."""

from __future__ import annotations

import copy
import dataclasses
import functools
import hashlib
import importlib
import importlib.resources
import json
import os
import string
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import soundfile
from tests.web import WebServer

from music_evals.annotations import F0Track, Features
from music_evals.errors import InvalidInputError
from music_evals.metrics.catalogue import AUXILIARY, PRESERVATION_METRICS, SHOWN_AUXILIARY
from music_evals.yaml_files import packaged_yaml, read_yaml_file

pd = pytest.importorskip("pandas")

FOLDER = Path(__file__).resolve().parents[3] / "benchmarks" / "preservation_validity"
PLAN = read_yaml_file(FOLDER / "real_edits.yaml")
RATE = 44100
MODULES = (
    "analyse", "measure", "run", "real", "real_edits", "real_evidence", "real_measure", "real_recordings",
    "extractors", "real_extractors", "formulas", "success", "timbre",
)  # fmt: skip


@pytest.fixture(scope="module")
def real() -> Iterator[SimpleNamespace]:
    """The scripts, imported as they import each other: by name alone."""
    assert not set(MODULES) & set(sys.modules)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(FOLDER)
        yield SimpleNamespace(**{name: importlib.import_module(name) for name in MODULES})
    for name in MODULES:
        sys.modules.pop(name, None)


@pytest.fixture(scope="module")
def programs(real: SimpleNamespace) -> None:
    """Skip where a program is missing."""
    absent = real.real_edits.missing_programs()
    if absent:
        reason = f"{', '.join(absent)} not installed; {real.real_edits.PACKAGES}"
        assert "audio_programs" not in os.environ.get("MUSIC_EVALS_REQUIRE", "").split(","), reason
        pytest.skip(reason)


def tune(semitones: float = 0.0) -> np.ndarray:
    """Return 15 s: eight notes of decaying partials, then the same a fourth higher."""
    notes = [60, 64, 67, 72, 71, 67, 65, 62]
    note = RATE * 15 // 16 + 1  # samples
    pitches = np.repeat([*notes, *(pitch + 5 for pitch in notes)], note)[: 15 * RATE] + semitones
    phase = np.cumsum(440 * 2 ** ((pitches - 69) / 12) / RATE)
    envelope = np.tile(np.exp(-np.arange(note) / RATE * 2), 16)[: 15 * RATE]
    return 0.2 * envelope * sum(np.sin(2 * np.pi * k * phase) / k for k in (1, 2, 3))


def known_edits_plan() -> dict[str, Any]:
    plan: dict[str, Any] = packaged_yaml("music_evals.datasets.known_edits", "edits.yaml")
    return plan


def line(real: SimpleNamespace, **changes: Any) -> Any:
    facts = {
        "name": "a", "source": "A", "repository": "owner/name", "commit": "0" * 40, "path": "a b/tune.wav",
        "sha256": "0" * 64, "start_sec": 0.0, "length_sec": 15.0, "half": "test", "licence": "CC0-1.0",
        "evidence": "LICENSE", "training": True,
    }  # fmt: skip
    return real.real_recordings.Recording(**{**facts, **changes})


def attached(real: SimpleNamespace, folder: Path, samples: np.ndarray, **changes: Any) -> Any:
    """Return the manifest's line of a recording that is written below a folder."""
    recording = line(real, **changes)
    path = folder / recording.place
    path.parent.mkdir(parents=True, exist_ok=True)
    soundfile.write(path, samples, RATE)
    return dataclasses.replace(recording, sha256=hashlib.sha256(path.read_bytes()).hexdigest())


# The manifest.


def test_the_halves_of_the_manifest_share_no_artist_and_say_where_each_licence_is_written(
    real: SimpleNamespace,
) -> None:
    recordings = real.real_recordings.load_manifest(FOLDER / "recordings.csv")
    sources = {half: {one.source for one in recordings if one.half == half} for half in real.real_recordings.HALVES}
    assert not sources["development"] & sources["test"]
    assert all(len(names) >= 5 for names in sources.values())
    assert len({one.sha256 for one in recordings}) == len(recordings)
    for one in recordings:
        assert len(one.commit) == 40
        assert len(one.sha256) == 64
        assert one.evidence
        assert one.training == (one.licence in {"Public domain", "CC0-1.0", "CC-BY", "CC-BY-3.0", "CC-BY-4.0"})


@pytest.mark.parametrize(
    "changes",
    [
        {"half": "train"}, {"length_sec": 14.0}, {"length_sec": 31.0}, {"start_sec": -1.0}, {"path": "../../secret"},
        {"path": "/etc/passwd"}, {"licence": "CC-BY-NC-3.0"}, {"licence": "CC-BY-SA-4.0"}, {"evidence": ""},
    ],
)  # fmt: skip
def test_a_line_that_breaks_a_rule_is_refused(real: SimpleNamespace, changes: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError, match="a: "):
        line(real, **changes)


@pytest.mark.parametrize(("second", "words"), [({"name": "a"}, "twice"), ({"half": "development"}, "one half only")])
def test_a_manifest_names_no_recording_twice_and_no_source_in_both_halves(
    real: SimpleNamespace, tmp_path: Path, second: dict[str, Any], words: str
) -> None:
    rows = [vars(line(real)), {**vars(line(real)), "name": "b", **second}]
    pd.DataFrame(rows).replace({True: "yes"}).to_csv(tmp_path / "manifest.csv", index=False)
    with pytest.raises(InvalidInputError, match=words):
        real.real_recordings.load_manifest(tmp_path / "manifest.csv")


def test_a_recording_is_known_by_its_hash(real: SimpleNamespace, tmp_path: Path) -> None:
    good = attached(real, tmp_path, tune())
    other = dataclasses.replace(good, name="other", sha256="1" * 64)
    absent = line(real, name="absent", path="none.wav")
    found, missing = real.real_recordings.attach([good, other, absent], tmp_path)
    assert found == {"a": tmp_path / "owner" / "name" / "a b" / "tune.wav"}
    assert "another file" in missing["other"]
    assert "is missing" in missing["absent"]


def test_what_is_fetched_is_kept_only_where_its_hash_is_right(
    real: SimpleNamespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with WebServer({f"owner/name/{'0' * 40}/a b/tune.wav": b"music"}) as web:
        monkeypatch.setattr(real.real_recordings, "RAW", web.url)
        good = line(real, sha256=hashlib.sha256(b"music").hexdigest())
        real.real_recordings.fetch([good], tmp_path / "mine")
        wrong = line(real, sha256="2" * 64)
        with pytest.raises(InvalidInputError):
            real.real_recordings.fetch([wrong], tmp_path / "elsewhere")
    assert (tmp_path / "mine" / good.place).read_bytes() == b"music"
    assert not (tmp_path / "elsewhere").exists()


# The table of edits.


def test_the_table_judges_the_eleven_as_the_rendered_one_does() -> None:
    rendered = known_edits_plan()
    assert PLAN["fields"] == rendered["fields"]
    assert {name: PLAN["responds_to"][name] for name in PRESERVATION_METRICS} == rendered["responds_to"]
    for kind, same in (("transpose", "transpose"), ("tempo", "stretch")):
        ours, theirs = (table["kinds"][name]["labels"] for table, name in ((PLAN, kind), (rendered, same)))
        assert ours == {field: label if isinstance(label, str) else label[1] for field, label in theirs.items()}


def test_the_table_is_whole() -> None:
    words = {
        "source", "edit", "scratch", "strength", "minus_strength", "length", "quarter", "half", "three_quarters",
        "cut_from", "cut_to", "noise_gain",
    }  # fmt: skip
    for name, facts in PLAN["kinds"].items():
        commands = facts["commands"]
        lists = [commands[strength] for strength in facts["strengths"]] if isinstance(commands, dict) else [commands]
        for command in (command for each in lists for command in each):
            assert {part[1] for part in string.Formatter().parse(command) if part[1]} <= words, name
            assert command.split()[0] in {"ffmpeg", "sox", "rubberband"}
        assert set(facts.get("labels", {})) <= set(PLAN["fields"])
        assert set(facts.get("labels", {}).values()) <= {"same", "shifted", "scaled", "changed"}
    assert not any("labels" in PLAN["kinds"][kind] for kind in PLAN["control"])
    assert set(PLAN["responds_to"]) <= {*PRESERVATION_METRICS, *AUXILIARY}
    assert all(rule["field"] in PLAN["fields"] for rule in PLAN["responds_to"].values())


# The programs.


@pytest.fixture(scope="module")
def excerpt(real: SimpleNamespace, programs: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("recording")
    recording = attached(real, folder, np.concatenate([np.zeros(RATE), tune()]), start_sec=1.0)
    return real.real_edits.make_excerpt(PLAN, recording, folder / recording.place, folder / "source.wav")


def edit(real: SimpleNamespace, kind: str, strength: float, excerpt: Path) -> np.ndarray:
    path = real.real_edits.make_edit(PLAN, kind, strength, excerpt, excerpt.parent / f"{kind}_{strength:g}.wav")
    samples, rate = soundfile.read(path)
    assert rate == RATE
    assert samples.ndim == 1
    return samples


def rms_db(samples: np.ndarray) -> float:
    return float(10 * np.log10(np.mean(samples**2)))


def test_an_excerpt_has_its_length_its_start_and_room_above(real: SimpleNamespace, excerpt: Path) -> None:
    samples, rate = soundfile.read(excerpt)
    assert (len(samples), rate) == (15 * RATE, RATE)
    assert 20 * np.log10(np.abs(samples).max()) == pytest.approx(-12, abs=0.05)
    expected = tune() / np.abs(tune()).max() * 10 ** (-12 / 20)
    np.testing.assert_allclose(samples, expected, atol=2e-4)


@pytest.mark.parametrize("kind", PLAN["control"])
def test_edits_that_change_nothing_keep_the_length(real: SimpleNamespace, excerpt: Path, kind: str) -> None:
    source = soundfile.read(excerpt)[0]
    for strength in PLAN["kinds"][kind]["strengths"]:
        samples = edit(real, kind, strength, excerpt)
        assert len(samples) == pytest.approx(len(source), abs=2)
        assert not np.array_equal(samples, source[: len(samples)])
        # no program moves the music: around the second note it is most like the original where it was
        place = slice(RATE * 9 // 10, RATE * 11 // 10)
        likeness = {
            lag: np.corrcoef(source[place], samples[place.start + lag : place.stop + lag])[0, 1]
            for lag in range(-RATE // 100, RATE // 100, 21)
        }
        assert abs(max(likeness, key=likeness.__getitem__)) <= RATE // 500


def test_gain_and_noise_are_as_loud_as_the_table_says(real: SimpleNamespace, excerpt: Path) -> None:
    source = soundfile.read(excerpt)[0]
    assert rms_db(edit(real, "gain", -18, excerpt)) == pytest.approx(rms_db(source) - 18, abs=0.05)
    for kind, strength in (("noise", 20), ("loud_noise", 0)):
        noise = edit(real, kind, strength, excerpt) - source
        assert rms_db(noise) == pytest.approx(rms_db(source) - strength, abs=0.2)
    assert rms_db(edit(real, "noise_alone", 0, excerpt)) == pytest.approx(rms_db(source), abs=0.2)


@pytest.mark.slow
def test_pitch_and_tempo_are_changed_as_the_table_says(real: SimpleNamespace, excerpt: Path) -> None:
    def loudest_hz(samples: np.ndarray, at_sec: float) -> float:
        frame = samples[round(at_sec * RATE) :][: RATE // 4] * np.hanning(RATE // 4)
        return float(np.argmax(np.abs(np.fft.rfft(frame, 4 * RATE))) / 4)

    source = soundfile.read(excerpt)[0]
    note = loudest_hz(source, 2.9)
    raised = edit(real, "transpose", 5, excerpt)
    assert len(raised) == pytest.approx(len(source), abs=RATE // 100)
    assert 12 * np.log2(loudest_hz(raised, 2.9) / note) == pytest.approx(5, abs=0.2)
    slower = edit(real, "tempo", 0.8, excerpt)
    assert len(slower) == pytest.approx(len(source) / 0.8, abs=RATE // 100)
    assert 12 * np.log2(loudest_hz(slower, 2.9 / 0.8) / note) == pytest.approx(0, abs=0.2)


def test_cuts_are_where_the_table_says(real: SimpleNamespace, excerpt: Path) -> None:
    source = soundfile.read(excerpt)[0]
    middle = len(source) // 2
    assert np.array_equal(edit(real, "sections_swapped", 1, excerpt), [*source[middle:], *source[:middle]])
    quarters = np.split(source, [round(len(source) * k / 4) for k in (1, 2, 3)])
    np.testing.assert_allclose(edit(real, "sections_swapped", 2, excerpt), np.concatenate(quarters[::-1]), atol=1e-9)
    kept = [*source[: round(len(source) * 0.35)], *source[round(len(source) * 0.65) :]]
    assert np.array_equal(edit(real, "section_removed", 0.3, excerpt), kept)
    assert np.array_equal(edit(real, "reversed", 1, excerpt), source[::-1])


def test_an_edit_is_made_once_and_whole_or_not_at_all(real: SimpleNamespace, excerpt: Path, tmp_path: Path) -> None:
    target = tmp_path / "edits" / "gain.wav"
    real.real_edits.make_edit(PLAN, "gain", -6, excerpt, target)
    made = target.stat().st_mtime_ns
    assert real.real_edits.make_edit(PLAN, "gain", -6, excerpt, target).stat().st_mtime_ns == made
    plan = {"kinds": {"bad": {"commands": ["sox {source} {edit}", "sox {source} {edit} no_such_effect"]}}}
    with pytest.raises(RuntimeError, match=r"no_such_effect failed: .*sox"):
        real.real_edits.make_edit(plan, "bad", 1, excerpt, tmp_path / "edits" / "bad.wav")
    assert [path.name for path in target.parent.iterdir()] == ["gain.wav"]


def test_the_versions_of_the_programs_are_read(real: SimpleNamespace, programs: None) -> None:
    versions = real.real_edits.program_versions()
    assert set(versions) == {"ffmpeg", "sox", "rubberband"}
    assert all(version[0].isdigit() for version in versions.values())


# From recordings to records.


@pytest.mark.slow
def test_a_run_goes_on_where_it_stood(real: SimpleNamespace, programs: None, tmp_path: Path) -> None:
    kinds = {
        "gain": {**PLAN["kinds"]["gain"], "strengths": [-6]},
        "transpose": {**PLAN["kinds"]["transpose"], "strengths": [1]},
    }
    plan = {**PLAN, "kinds": kinds}
    recordings = [attached(real, tmp_path, tune(), name="a", source="A", path="a.wav")]
    recordings.append(attached(real, tmp_path, tune(3)[::-1].copy(), name="b", source="B", path="b.wav"))
    recordings.append(attached(real, tmp_path, tune(2), name="c", source="B", path="c.wav"))
    files, missing = real.real_recordings.attach(recordings, tmp_path)
    assert not missing
    measure = real.real_measure.measure_recordings
    path = measure(recordings, files, plan, "test", work=tmp_path / "work")
    lines = path.read_text().splitlines()
    records = [json.loads(each) for each in lines]
    # two edits of each, and the pairs by different artists
    assert sorted(each["item_id"] for each in records) == sorted(
        [f"{name}:{edit}" for name in "abc" for edit in ("gain:-6", "transpose:1")]
        + [f"unrelated:{pair}" for pair in ("a:b", "b:a", "a:c", "c:a")]
    )
    assert all({*PRESERVATION_METRICS, *AUXILIARY} <= set(each) for each in records)
    by_id = {each["item_id"]: each for each in records}
    assert by_id["a:gain:-6"]["raw_pitch_accuracy"] > 0.95 > by_id["a:transpose:1"]["raw_pitch_accuracy"]
    path.write_text("\n".join(lines[:3]) + "\n")
    assert measure(recordings, files, plan, "test", work=tmp_path / "work") == path
    assert sorted(path.read_text().splitlines()) == sorted(lines)


COMPARING = """
import sys
from music_evals import Score, evaluate_preservation
from music_evals.symbolic.notes import make_notes
tune = Score(make_notes([240 * n for n in range(64)], [240] * 64, [60 + 7 * n % 12 for n in range(64)]), 480)
evaluate_preservation([tune], [tune], companions=True)
found = {name: module.__file__ for name, module in sys.modules.items() if name.startswith("music_evals.")}
print(*(name for name, file in found.items() if not file.endswith("__init__.py")))
"""


@pytest.mark.slow
def test_a_change_in_whatever_decides_scores_leaves_the_records_of_a_run_aside(
    real: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is loaded to compare two pieces is counted, whoever imports it and however."""
    command = [sys.executable, "-W", "ignore", "-c", COMPARING]
    loaded = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    texts = real.formulas.formulas()
    assert set(loaded) <= set(texts)
    assert {"music_evals.audio.tempo_levels", "music_evals.pipelines.preservation_features"} <= set(loaded)
    digest = real.formulas.scoring_digest()
    assert real.formulas.scoring_digest() == digest
    assert real.formulas.scoring_digest("other excerpts") != digest
    now = real.formulas.receipt()
    monkeypatch.setattr(real.formulas, "receipt", lambda: now)
    for name in loaded:
        changed = {**texts, name: texts[name] + " "}
        monkeypatch.setattr(real.formulas, "formulas", lambda _, changed=changed: changed)
        assert real.formulas.scoring_digest() != digest, name
    edits = "music_evals.datasets.known_edits.build"
    monkeypatch.undo()
    assert set(real.formulas.formulas([edits])) > {edits, "music_evals.audio.rendering", *texts}


# From records to evidence.


def scores(**values: dict[str, float]) -> Any:
    """Return three recordings by two artists whose scores depend on the kind alone; 0 where nothing is said."""
    rows = []
    for piece, source in (("a", "A"), ("b", "B"), ("c", "B")):
        for kind, facts in PLAN["kinds"].items():
            for strength in facts["strengths"]:
                row = {name: values.get(name, {}).get(kind, 0.0) for name in {*PRESERVATION_METRICS, *AUXILIARY}}
                rows.append({"piece": piece, "source": source, "kind": kind, "strength": float(strength), **row})
        row = {name: values.get(name, {}).get("unrelated", 0.0) for name in {*PRESERVATION_METRICS, *AUXILIARY}}
        rows.append({"piece": piece, "source": source, "kind": "unrelated", "strength": 0.0, **row})
    return pd.DataFrame(rows).assign(half="test", renderer="recordings")


@pytest.mark.slow
def test_evidence_by_hand(real: SimpleNamespace) -> None:
    everything = dict.fromkeys([*PLAN["kinds"], "unrelated"], 1.0)
    table = scores(
        # sees exactly what it shall; noise alone outscores unrelated music and the louder noise
        chroma_dtw_similarity=everything
        | {"transpose": 0.5, "sections_swapped": 0.5, "section_removed": 0.5, "reversed": 0.5}
        | {"noise_alone": 0.8, "unrelated": 0.7, "loud_noise": 0.6},
        # an octave flip either way counts the same, and an MP3 has one
        tempo_log2=dict.fromkeys(everything, 0.0) | {"mp3": -0.4, "tempo": 0.25},
        circle_of_fifths_distance=dict.fromkeys(everything, 0.0) | {"eq": np.nan, "noise_alone": np.nan},
    )
    found = {item.metric: item for item in real.real_evidence.real_evidence(table, PLAN, "test")}
    assert set(found) == {*PRESERVATION_METRICS, *AUXILIARY}
    chroma = found["chroma_dtw_similarity"]
    # of 10 edits that change the harmony, noise alone (.8) scores above the 2 of 19 that keep it under loud noise (.6)
    assert chroma.auc == pytest.approx(1 - 2 / (10 * 19))
    assert (chroma.same_music, chroma.worst_decile) == (1, 1)
    assert (chroma.unrelated, chroma.noise) == (pytest.approx(0.7), pytest.approx(0.8))
    # 20 to 10 dB and 10 to 0 dB do not score better, 0 dB to noise alone does
    assert chroma.noise_order == pytest.approx(2 / 3)
    tempo = found["tempo_log2"]
    # 2 of 13 edits of the control are off by .4: more than one in ten
    assert (tempo.same_music, tempo.worst_decile) == (0, pytest.approx(0.4))
    n_edits = len(real.real_edits.edits_of(PLAN)) - 1
    assert found["circle_of_fifths_distance"].undefined == pytest.approx(2 / n_edits)
    assert np.isnan(found["same_mode"].auc)
    assert found["same_mode"].n_sources == 2
    text = real.real_evidence.evidence_table(list(found.values()))
    assert "nan" not in text
    assert text.count("\n") == len(found) + 2


@pytest.mark.slow
def test_the_committed_evidence_is_that_of_the_committed_scores(real: SimpleNamespace) -> None:
    if not (FOLDER / "real_scores.csv").exists():
        pytest.skip(f"nothing is measured yet; run {real.real.COMMAND}")
    table = pd.read_csv(FOLDER / "real_scores.csv")
    halves = [half for half in real.real_recordings.HALVES if half in set(table.half)]
    found = [item for half in halves for item in real.real_evidence.real_evidence(table, PLAN, half)]
    committed = pd.read_csv(FOLDER / "real_evidence.csv")
    made = pd.DataFrame([vars(item) for item in found])
    pd.testing.assert_frame_equal(made, committed, check_exact=False, atol=1e-4, check_dtype=False)
    run = json.loads((FOLDER / "real_run.json").read_text(encoding="utf-8"))
    assert run["inputs"] == real.real._inputs(FOLDER / "recordings.csv")
    assert not real.real.outdated(run), f"not measured as they ship: run {real.real.COMMAND}"
    assert run["pairs"] == len(table)
    pages = real.real_evidence.real_pages(found, run)
    assert {path.parent.name for path in pages} >= {*PRESERVATION_METRICS, *SHOWN_AUXILIARY, "preservation_validity"}
    for path, text in pages.items():
        assert f"<!-- real -->\n{text}<!-- /real -->\n" in path.read_text(encoding="utf-8"), "run real.py --write"


@pytest.mark.parametrize("name", ["melody_contour_accuracy", "interval_lcs"])
def test_who_is_judged_by_a_label_that_order_does_not_change_says_so(name: str) -> None:
    """Both see the order of intervals; the table of edits, which stays as it is, calls swapped sections the same."""
    assert PLAN["responds_to"][name]["field"] == "intervals"
    assert "intervals" not in PLAN["kinds"]["sections_swapped"]["labels"]
    median = pd.read_csv(FOLDER / "real_scores.csv").groupby("kind")[name].median()
    assert median["sections_swapped"] < min(median[PLAN["control"]])
    for place in (FOLDER, FOLDER.parents[1] / "metrics" / name):
        said = (place / "README.md").read_text(encoding="utf-8")
        assert "`sections_swapped`" in said, place
        assert "sees a new order by design" in said or "see a new order by design" in said, place


@pytest.fixture
def facts(real: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What a run of today writes down of itself."""
    programs = {"ffmpeg": "6.1"}  # which edited the recordings: not looked at, and not on every machine
    monkeypatch.setattr(real.real, "program_versions", lambda: programs)
    run: dict[str, Any] = json.loads(json.dumps(real.real._run_facts(scores(), FOLDER / "recordings.csv")))
    return run


def test_what_ships_otherwise_than_a_run_had_it_is_named(
    real: SimpleNamespace, facts: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not real.real.outdated(facts)
    now = real.real.receipt()
    monkeypatch.setattr(real.real, "receipt", lambda: now)
    for change, named in (
        (("extractors", "features", "beats", "version", 99), ["extractor of beats"]),
        (("extractors", "features", "f0", "weights", "melody_rendered.onnx", "0" * 64), ["extractor of f0"]),
        (("extractors", "features", "melody", "parameters", "attack", 0.9), ["extractor of melody"]),
        (("extractors", "features", "loudness", {"backend": "new"}), ["extractor of loudness"]),
        (("extractors", "features", "beats", "packages", "numpy", "1.0"), []),
        (("definitions", "delta_bpm", 99), ["definition of delta_bpm"]),
    ):
        run = copy.deepcopy(facts)
        *above, last, value = change
        functools.reduce(dict.__getitem__, above, run)[last] = value
        assert real.real.outdated(run) == named, change


@pytest.mark.slow
@pytest.mark.parametrize("current", [True, False])
def test_pages_are_not_written_of_what_ships_otherwise(
    real: SimpleNamespace, facts: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, current: bool
) -> None:
    if current:
        del facts["definitions"]  # as in runs of before
    else:
        facts["definitions"]["delta_bpm"] = 99
    (tmp_path / "real_run.json").write_text(json.dumps(facts))
    scores().to_csv(tmp_path / "real_scores.csv", index=False)
    monkeypatch.setattr(sys, "argv", ["real.py", "--write", "--out", str(tmp_path)])
    if current:
        real.real.main()
    else:
        with pytest.raises(InvalidInputError, match="definition of delta_bpm changed since the scores were made: run"):
            real.real.main()
    assert (tmp_path / "real_evidence.csv").exists() == current


@pytest.mark.slow
def test_a_card_of_what_was_not_measured_says_so(real: SimpleNamespace) -> None:
    found = real.real_evidence.real_evidence(scores().drop(columns="interval_lcs"), PLAN, "test")
    run = json.loads((FOLDER / "real_run.json").read_text(encoding="utf-8"))
    pages = {path.parent.name: text for path, text in real.real_evidence.real_pages(found, run).items()}
    assert pages["interval_lcs"].endswith("\n\nNot measured yet.\n")
    assert "`interval_lcs`" not in pages["melody_preservation"]
    assert "`ssm_correlation` | test" in pages["ssm_correlation"]


# The means of rendered edits, which are all that is known of auxiliary metrics there.


def test_cards_of_companions_hold_the_committed_means(real: SimpleNamespace) -> None:
    answers, plan = pd.read_csv(FOLDER / "responses.csv"), known_edits_plan()
    for name in SHOWN_AUXILIARY:
        text = real.run._auxiliary_table(answers, name, plan["control"])
        card = (FOLDER.parents[1] / "metrics" / name / "README.md").read_text(encoding="utf-8")
        assert f"<!-- validity -->\n{text}<!-- /validity -->\n" in card, "run run.py --write"
        assert text.startswith("Not measured") == (name not in answers)


def test_means_out_of_answers_are_those_of_pairs(real: SimpleNamespace) -> None:
    """Of the eleven, chance and ceiling were made of all pairs: the answers of each kind give the same means."""
    answers, plan, evidence = pd.read_csv(FOLDER / "responses.csv"), known_edits_plan(), {}
    for row in pd.read_csv(FOLDER / "evidence.csv").itertuples():
        evidence[row.metric, row.half, row.renderer] = (row.chance, row.ceiling)
    for name in ("major_minor_score", "segment_ari", "voicing_recall"):
        table = real.run._auxiliary_table(answers, name, plan["control"])
        for renderer in real.run.RENDERERS:
            chance, ceiling = evidence[name, "held_out", renderer]
            assert f"| audio, {renderer} | {chance:.2f} | {ceiling:.2f} |" in table


# The command.


def test_the_command_says_why_it_skips(
    real: SimpleNamespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["real.py", "--recordings", str(tmp_path), "--out", str(tmp_path)])
    monkeypatch.setattr(real.real, "missing_programs", lambda: ["sox"])
    real.real.main()
    assert "sox not installed; apt install" in capsys.readouterr().err
    monkeypatch.setattr(real.real, "missing_programs", list)
    real.real.main()
    said = capsys.readouterr().err
    assert "vibe_ace skipped: " in said
    assert "no recording is there" in said
    assert not list(tmp_path.iterdir())


# ------------------------------------------------------------------------------------------------------- extractors
def test_cards_of_rhythm_say_that_no_beats_of_recordings_are_annotated(real: SimpleNamespace) -> None:
    """The only annotation of the manifest is a fundamental frequency; one of beats would have to be used."""
    assert list(real.real_extractors.ANNOTATED) == ["vocadito_1"]
    for name in ("delta_bpm", "beat_f_measure", "information_gain", "rhythm_preservation"):
        text = (FOLDER.parents[1] / "metrics" / name / "README.md").read_text(encoding="utf-8")
        limits = " ".join(text.partition("## Limitations")[2].partition("\n## ")[0].split())
        assert "not measured on annotated real recordings: the manifest" in limits, name


def f0_of(*hertz: float) -> Features:
    return Features(len(hertz) * 0.5, f0=F0Track(0.5 * np.arange(len(hertz)), np.array(hertz, dtype=float)))


def test_agreement_is_the_score_of_one_backend_against_another(real: SimpleNamespace) -> None:
    nothing = Features(2.0, undefined={"f0": "silent"})
    found = {
        ("f0", "ours"): {"a": f0_of(440, 440, 0, 440), "b": f0_of(440, 440, 440, 440), "c": nothing},
        ("f0", "theirs"): {"a": f0_of(440, 880, 440, 440), "b": f0_of(440, 440, 440, 440), "c": f0_of(440, 440, 0, 0)},
        ("key", "alone"): {},
    }
    table = real.real_extractors.agreement(found, {"a": "development", "b": "development", "c": "test"})
    row = table[table.half == "development"].iloc[0]
    assert (row["backend"], row["as truth"], row["files"], row["undefined"]) == ("ours", "theirs", 2, 0)
    # a: theirs sounds four times, ours is right in two of these; b is right throughout
    assert row["RPA"] == pytest.approx((2 / 4 + 1) / 2)
    assert row["VR"] == pytest.approx((3 / 4 + 1) / 2)
    assert list(table[table.half == "test"][["files", "undefined"]].iloc[0]) == [0, 1]


def test_the_annotation_is_cut_to_the_excerpt(
    real: SimpleNamespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = real.real_extractors
    recording = dataclasses.replace(real.real_recordings.load_manifest(FOLDER / "recordings.csv")[0], start_sec=1.0)
    content = b"0.0,100.0\n0.5,100.0\n1.0,440.0\n1.5,0.0\n2.0,440.0\n"
    place = tmp_path / recording.repository / "truth.csv"
    place.parent.mkdir(parents=True)
    place.write_bytes(content)
    annotation = module.Annotation("truth.csv", hashlib.sha256(content).hexdigest())
    monkeypatch.setitem(module.ANNOTATED, recording.name, annotation)
    found = {("f0", "ours"): {recording.name: f0_of(440, 0, 220)}}
    truths = {recording.name: module.read_annotation(recording, tmp_path)}
    (row,) = module.against_annotations(found, [recording], truths).to_dict("records")
    assert (row["RPA"], row["RCA"], row["VFA"]) == (0.5, 1.0, 0.0)
    place.write_bytes(content + b"2.5,440.0\n")
    with pytest.raises(InvalidInputError, match="another file"):
        module.read_annotation(recording, tmp_path)
    place.unlink()
    with pytest.raises(InvalidInputError, match="is missing, the annotation of"):
        module.read_annotation(recording, tmp_path)


def test_rows_of_features_that_were_not_measured_again_stay(real: SimpleNamespace) -> None:
    def table(*rows: tuple[str, str, float]) -> Any:
        found = pd.DataFrame([{"feature": a, "backend": b, "renderer": "additive", "F": c} for a, b, c in rows])
        return found.set_index(real.extractors.GROUP)

    before = table(("beats", "tcn", 0.9), ("f0", "pyin", 0.3), ("f0", "melody_net", 0.8), ("segments", "foote", 0.5))
    found = real.extractors.merged(before, table(("f0", "melody_net", 0.85), ("key", "aarden_essen", 1.0)))
    assert [(*index[:2], value) for index, value in found.F.items()] == [
        ("beats", "tcn", 0.9),
        ("key", "aarden_essen", 1.0),
        ("f0", "melody_net", 0.85),
        ("segments", "foote", 0.5),
    ]


def test_the_tables_of_timbre_are_made_of_its_scores(real: SimpleNamespace) -> None:
    rows = pd.read_csv(FOLDER / "timbre.csv")
    text = f"{real.timbre.summary_table(rows)}\n{real.timbre.edits_table(rows)}"
    for place in (FOLDER, FOLDER.parents[1] / "metrics" / "timbre_similarity"):
        assert text in (place / "README.md").read_text(encoding="utf-8"), "run timbre.py --write"


def test_the_tables_of_edit_success_are_made_of_its_scores(real: SimpleNamespace) -> None:
    summary = pd.read_csv(FOLDER / "success.csv")
    table = real.success.table_of(summary[summary.half == "held_out"])
    for page in (FOLDER / "README.md", real.success.ROOT / "metrics" / "edit_success" / "README.md"):
        assert table in page.read_text(encoding="utf-8")


def test_success_reaches_its_goal_on_renders_and_recordings(real: SimpleNamespace) -> None:
    """What the card promises: four kinds of target everywhere, keys on renders; and no edit at all has 0."""
    summary = pd.read_csv(FOLDER / "success.csv")
    test = summary[summary.half == "held_out"].set_index(["input", "kind"])
    assert test.auc.loc[:, ["tempo", "transpose", "length", "loudness"]].min() >= 0.95
    assert test.auc.loc[["additive", "fluidsynth"], "key"].min() >= 0.95
    assert (summary.identity == 0).all()
    assert set(summary.kind) == set(real.success.ANY)
    assert real.success.targets_of_row({"kind": "gain", "strength": -6})["loudness"].text == "-6 dB"
