"""A listening study out of runs: who is heard on what, and that the sounds are those of the records."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from tests.benchmark.record_files import damage
from tests.judging import judge_items

from music_evals.annotations import Tokens
from music_evals.benchmark.tasks.inpainting.items import ItemSet, load_items
from music_evals.benchmark.tasks.inpainting.systems import Role, System, baseline_system
from music_evals.benchmark.tasks.preservation.pairs import pairs_in_manifest
from music_evals.errors import CorruptRecordsError, InvalidInputError, MusicEvalsError, NoDataError, UnknownNameError
from music_evals.studies.listening import inpainting
from music_evals.studies.listening.inpainting import StudySettings, build_study
from music_evals.studies.pairs import REFERENCE, read_pairs
from music_evals.studies.stimuli import Study

N_ITEMS = 12
SAMPLE_RATE = 16_000
"""Of what is played here: the melodies need no more."""

REST = 129


@pytest.fixture(autouse=True, scope="module")
def lower_rate() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(inpainting, "SAMPLE_RATE", SAMPLE_RATE)
        yield


@pytest.fixture(scope="module")
def items(tiny_dataset: Path) -> ItemSet:
    """Twelve items of three songs."""
    return load_items(str(tiny_dataset), "musib", "test").head(N_ITEMS)


def stored(
    name: str, middles: Tokens | Mapping[int, Tokens], items: ItemSet, role: Role = "model", **about: Any
) -> System:
    """A system that wrote these middles; it lacks the items in `about["lacks"]`."""
    by_seed = middles if isinstance(middles, Mapping) else {0: middles}
    failures = dict.fromkeys(about.pop("lacks", ()), "failed on purpose")
    content = f"{name}{sorted(about.items())}{[by_seed[seed].tobytes()[:200] for seed in sorted(by_seed)]}"
    return System(name, role, content, stored=by_seed, failures=failures, details=about)


def held_note(items: ItemSet, pitch: int) -> Tokens:
    """Middles of one note that is held all the time."""
    middles = np.full((len(items), 96), 128, dtype=np.uint8)
    middles[:, 0] = pitch
    return middles


def run(folder: Path, items: ItemSet, *systems: System, seeds: tuple[int, ...] = (0,)) -> Path:
    judge_items(items, [*systems, baseline_system("reference", None)], folder / "records", seeds=seeds)
    return folder


@pytest.fixture(scope="module")
def runs(items: ItemSet, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two runs of one model in two decodings, beside baselines, a control and a model that leaks."""
    root = tmp_path_factory.mktemp("runs")
    baselines = [baseline_system(name, None) for name in ("copy_past", "lag_vote", "silence", "best_lag")]
    best = stored("net", held_note(items, 60), items, decoding="best")
    leaks = stored("net:teacher_forced (leaks)", items.middles.copy(), items, "leaking", decoding="teacher_forced")
    sampled = stored("net:sample", {2: held_note(items, 64), 1: held_note(items, 62)}, items, decoding="sample")
    return [run(root / "careful", items, best, leaks, *baselines), run(root / "alive", items, sampled, baselines[0])]


def build(out: Path, runs: list[Path], **options: Any) -> Study:
    chosen = {"items": 4, "sounds": "additive", "bpm": 400, "licence": "CC0-1.0", **options}
    return build_study(StudySettings(runs=runs, out=out, **chosen))


@pytest.fixture(scope="module")
def study(runs: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Study:
    return build(tmp_path_factory.mktemp("studies") / "study", runs)


@pytest.mark.slow
def test_the_usual_systems_are_heard_on_the_same_items(study: Study, items: ItemSet) -> None:
    systems = [REFERENCE, "net best", "copy_past", "lag_vote", "net sample"]
    assert [pair.system for pair in study.pairs] == systems * 4
    assert {pair.item_id for pair in study.pairs} <= set(items.item_ids)
    songs = dict(zip(items.item_ids, items.songs, strict=True))
    assert all(pair.group == songs[pair.item_id] for pair in study.pairs)
    by_label = {pair.system: (pair.run, pair.run_system, pair.run_seed) for pair in study.pairs}
    assert by_label == {
        REFERENCE: ("careful", "", None),
        "net best": ("careful", "net", 0),
        "copy_past": ("careful", "copy_past", 0),  # of the second run it is the same
        "lag_vote": ("careful", "lag_vote", 0),
        "net sample": ("alive", "net:sample", 1),  # the lowest seed
    }
    assert {(pair.task, pair.licence) for pair in study.pairs} == {("inpainting", "CC0-1.0")}
    assert {pair.source for pair in study.pairs} == {f"tiny, musib, test, {pair.item_id}" for pair in study.pairs}


def test_the_gap_is_marked(study: Study) -> None:
    # 6 + 4 + 6 measures of four quarters at 400 a minute, and a second of release
    assert {(pair.start_sec, pair.end_sec, pair.seconds) for pair in study.pairs} == {(3.6, 6.0, 10.6)}


def test_what_sounds_is_what_the_records_hold(study: Study) -> None:
    """Outside of the gap all systems play the reference; within it a held note has its own pitch."""
    read = {pair.system: _samples(study, pair.estimate) for pair in study.pairs[:5]}
    heard = slice(round(3.7 * SAMPLE_RATE), round(5.9 * SAMPLE_RATE))
    for system, pitch in (("net best", 60), ("net sample", 62)):
        samples = read[system][heard]
        spectrum = np.abs(np.fft.rfft(samples * np.hanning(len(samples))))
        strongest = np.argmax(spectrum) * SAMPLE_RATE / len(samples)
        assert 12 * np.log2(strongest / 440) + 69 == pytest.approx(pitch, abs=0.1)
    before = slice(0, round(3.5 * SAMPLE_RATE))
    truth = read[REFERENCE][before]
    for system, samples in read.items():
        # each is levelled as a whole: what is left between them is one factor
        factor = np.dot(samples[before], truth) / np.dot(truth, truth)
        assert np.abs(samples[before] - factor * truth).max() < 2e-4, system


def _samples(study: Study, name: str) -> npt.NDArray[np.float64]:
    import soundfile

    samples: npt.NDArray[np.float64] = soundfile.read(study.folder / name)[0]
    return samples


def test_systems_that_wrote_the_same_are_marked(items: ItemSet, tmp_path: Path) -> None:
    rests = np.full((N_ITEMS, 96), REST, dtype=np.uint8)
    held = np.full((N_ITEMS, 96), REST, dtype=np.uint8)
    held[:, 1:] = 128  # a hold that belongs to no note is silent too
    systems = [stored("true", items.middles.copy(), items), stored("rests", rests, items), stored("held", held, items)]
    found = build(tmp_path / "study", [run(tmp_path / "run", items, *systems)], items=1).pairs
    assert [(pair.system, pair.same_as) for pair in found] == [
        (REFERENCE, ""), ("true", REFERENCE), ("rests", ""), ("held", "rests"),
    ]  # fmt: skip
    assert found[2].estimate_sha256 == found[3].estimate_sha256


@pytest.mark.slow
def test_items_come_from_as_many_songs_as_can_be(runs: list[Path], tmp_path: Path) -> None:
    counts = {}
    for n in (3, 7):
        pairs = build(tmp_path / str(n), runs, items=n, systems="copy_past", bpm=400).pairs
        counts[n] = sorted(Counter(pair.group for pair in pairs if pair.system == REFERENCE).values())
    assert counts == {3: [1, 1, 1], 7: [2, 2, 3]}


def test_the_seed_decides_the_items(runs: list[Path], tmp_path: Path) -> None:
    chosen = [
        [pair.item_id for pair in build(tmp_path / name, runs, items=2, systems="copy_past", seed=seed).pairs]
        for name, seed in (("first", 1), ("again", 1), ("other", 3))
    ]
    assert chosen[0] == chosen[1] != chosen[2]
    contents = [sorted(path.read_bytes() for path in (tmp_path / name).rglob("*.*")) for name in ("first", "again")]
    assert contents[0] == contents[1]


def test_only_items_that_all_systems_have_are_heard(items: ItemSet, tmp_path: Path) -> None:
    lacks = items.item_ids[:9]
    systems = [stored("whole", held_note(items, 60), items), stored("part", held_note(items, 61), items, lacks=lacks)]
    folder = run(tmp_path / "run", items, *systems)
    pairs = build(tmp_path / "study", [folder], items=3).pairs
    assert {pair.item_id for pair in pairs} == set(items.item_ids[9:])
    with pytest.raises(InvalidInputError, match="share 3 of 12 items, and 4 are asked for: whole has 12, part has 3"):
        build(tmp_path / "more", [folder], items=4)


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        ("all", ["net best", "copy_past", "lag_vote", "silence", "net sample"]),
        ("net sample, net best", ["net sample", "net best"]),
        ("net", ["net best", "net sample"]),
        ("net:sample", ["net sample"]),
        ("reference,best_lag,net (leaks)", ["best_lag", "net teacher_forced (leaks)"]),
    ],
)
def test_systems_are_chosen_by_either_name(choice: str, expected: list[str], runs: list[Path], tmp_path: Path) -> None:
    pairs = build(tmp_path / "study", runs, items=1, systems=choice).pairs
    assert [pair.system for pair in pairs] == [REFERENCE, *expected]


def test_equal_names_are_told_apart(items: ItemSet, tmp_path: Path) -> None:
    hot, hotter, other = (
        run(
            tmp_path / name,
            items,
            stored("net", held_note(items, pitch), items, decoding="sample", temperature=temperature),
        )
        for name, pitch, temperature in (("a", 60, 0.8), ("b", 61, 1.0), ("c", 62, 1.0))
    )
    labels = [pair.system for pair in build(tmp_path / "two", [hot, hotter], items=1).pairs[1:]]
    assert labels == ["net sample temperature 0.8", "net sample temperature 1.0"]
    labels = [pair.system for pair in build(tmp_path / "three", [hot, hotter, other], items=1).pairs[1:]]
    assert labels == ["net sample temperature 0.8", "net sample temperature 1.0 (b)", "net sample temperature 1.0 (c)"]


def test_the_manifest_reader_of_edits_reads_it_too(study: Study) -> None:
    found = pairs_in_manifest(study.folder / "pairs.csv")
    assert found.failures == ()
    ours = read_pairs(study.folder / "pairs.csv")
    assert [(pair.item, pair.system, pair.group) for pair in found.pairs] == [
        (pair.item_id, pair.system, pair.group) for pair in ours
    ]
    assert [Path(pair.estimate.path).name for pair in found.pairs] == [Path(pair.estimate).name for pair in ours]


def test_how_it_was_made_is_kept(study: Study, runs: list[Path]) -> None:
    about = json.loads((study.folder / "pairs.json").read_text())
    assert about == study.about
    assert set(about["runs"]) == {"careful", "alive"}
    assert about["runs"]["alive"]["dataset"]["config"] == "musib"
    assert about["systems"]["net sample"]["decoding"] == "sample"
    assert about["settings"]["bpm"] == 400
    assert about["player"].endswith("additive")


@pytest.mark.slow
def test_fluidsynth_plays_as_long_and_as_loud(fluidsynth: None, runs: list[Path], tmp_path: Path) -> None:
    pairs = build(tmp_path / "study", runs, items=1, sounds="fluidsynth", program=73).pairs
    assert {(pair.seconds, pair.estimate_lufs) for pair in pairs} == {(10.6, -23.0)}
    assert "FluidSynth" in json.loads((tmp_path / "study/pairs.json").read_text())["player"]
    assert len({pair.estimate_sha256 for pair in pairs}) >= 4  # copies may be equal


@pytest.mark.slow
def test_the_licence_comes_from_the_card_or_from_the_leader(items: ItemSet, tiny_dataset: Path, tmp_path: Path) -> None:
    import dataclasses
    import shutil

    folder = run(tmp_path / "run", items, stored("net", held_note(items, 60), items))
    with pytest.raises(InvalidInputError, match=r"the licence of .*tiny \(run\) is not known here"):
        build(tmp_path / "study", [folder], items=1, licence=None)
    carded = tmp_path / "carded"
    shutil.copytree(tiny_dataset, carded)
    card = carded / "README.md"
    for head, expected in (("license: other\nlicense_name: my-terms", "my-terms"), ("license: cc0-1.0", "cc0-1.0")):
        card.write_text((tiny_dataset / "README.md").read_text().replace("---\n", f"---\n{head}\n", 1))
        here = dataclasses.replace(items, dataset=str(carded))
        folder = run(tmp_path / expected, here, stored("net", held_note(items, 60), items))
        assert build(tmp_path / f"study {expected}", [folder], items=1, licence=None).pairs[0].licence == expected
    card.write_text((tiny_dataset / "README.md").read_text().replace("---\n", "---\nlicense: unknown\n", 1))
    with pytest.raises(InvalidInputError, match="is not known here"):
        build(tmp_path / "third", [folder], items=1, licence=" ")


@pytest.mark.parametrize(
    ("options", "kind", "said"),
    [
        ({"runs": []}, NoDataError, "no runs"),
        ({"runs": "careful"}, InvalidInputError, "`runs` must be a list"),
        ({"items": 0}, InvalidInputError, "`items` must be 1 to 10,000, got 0"),
        ({"seed": -1}, InvalidInputError, "`seed` must be 0 to"),
        ({"bpm": float("nan")}, InvalidInputError, "`bpm` must be 20 to 400, got nan"),
        ({"program": 128}, InvalidInputError, "`program` must be 0 to 127, got 128"),
        ({"loudness_lufs": 3}, InvalidInputError, "`loudness_lufs` must be -60 to 0"),
        ({"sounds": "organ"}, UnknownNameError, "unknown sounds 'organ'"),
        ({"systems": "net bset"}, UnknownNameError, "did you mean net best"),
        ({"systems": "reference"}, NoDataError, "no system is left"),
        ({"items": 13}, InvalidInputError, "share 12 of 12 items, and 13 are asked for"),
        ({"loudness_lufs": -1.0}, InvalidInputError, "choose a lower `loudness_lufs`"),
    ],
)
def test_wrong_settings_are_refused(
    options: dict[str, Any], kind: type[MusicEvalsError], said: str, runs: list[Path], tmp_path: Path
) -> None:
    given = {"runs": runs, "out": tmp_path / "study", "items": 1, "sounds": "additive", "licence": "CC0-1.0"} | options
    with pytest.raises(kind) as raised:
        build_study(StudySettings(**given))
    assert said in str(raised.value)
    assert list(tmp_path.iterdir()) == []


def test_folders_that_are_no_runs_of_inpainting_are_refused(runs: list[Path], items: ItemSet, tmp_path: Path) -> None:
    with pytest.raises(NoDataError, match=r"holds no records \(records\)"):
        build(tmp_path / "study", [tmp_path])
    with pytest.raises(InvalidInputError, match="is given twice"):
        build(tmp_path / "study", [runs[0], runs[0] / "." / ""])
    other = tmp_path / "other"
    shutil.copytree(runs[0] / "records", other / "records")
    damage(other / "records")
    with pytest.raises(CorruptRecordsError, match="damaged"):
        build(tmp_path / "study", [other])
    assert not (tmp_path / "study").exists()


def test_a_run_of_another_task_is_refused(tmp_path: Path) -> None:
    from music_evals.benchmark.records import RecordStore

    with RecordStore(tmp_path / "run/records", {"task": "lyrics", "systems": {}}):
        pass
    with pytest.raises(InvalidInputError, match=r"is a run of lyrics; expected one of inpainting"):
        build(tmp_path / "study", [tmp_path / "run"])


def test_runs_on_other_music_are_refused(items: ItemSet, tmp_path: Path) -> None:
    import dataclasses

    changed = dataclasses.replace(items, contexts=items.contexts[::-1].copy())
    apart = dataclasses.replace(items, item_ids=tuple(f"other {item}" for item in items.item_ids))
    first = run(tmp_path / "first", items, stored("net", held_note(items, 60), items))
    second = run(tmp_path / "second", changed, stored("net", held_note(items, 61), items))
    third = run(tmp_path / "third", apart, stored("net", held_note(items, 61), items))
    with pytest.raises(InvalidInputError, match="first and second hold different music as item"):
        build(tmp_path / "study", [first, second])
    with pytest.raises(NoDataError, match=r"share no item: net .* has 12, net .* has 12"):
        build(tmp_path / "study", [first, third])


def test_a_system_without_a_prediction_is_named(items: ItemSet, tmp_path: Path) -> None:
    systems = [
        stored("net", held_note(items, 60), items),
        stored("broken", held_note(items, 61), items, lacks=items.item_ids),
    ]
    folder = run(tmp_path / "run", items, *systems)
    with pytest.raises(NoDataError, match="run holds no prediction of broken"):
        build(tmp_path / "study", [folder])
    assert len(build(tmp_path / "study", [folder], items=1, systems="net").pairs) == 2
