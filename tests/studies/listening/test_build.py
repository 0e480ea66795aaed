"""The folder of a listening test: equal loudness, blind, whole, and its key."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

from music_evals.audio.loudness import integrated_loudness
from music_evals.errors import InvalidInputError, MusicEvalsError, PairCountError, UnreadableFileError
from music_evals.studies.folders import Introduction
from music_evals.studies.listening.build import build_listening_test, low_passed, read_listening_key, tones
from music_evals.studies.listening.screening import ANCHOR
from music_evals.studies.listening.settings import ListeningSettings, named_questions
from music_evals.studies.pairs import REFERENCE, read_pairs

RATE = 22_050
TOLD = Introduction(title="A test", consent=("You may stop.",), instructions=("Listen.",))
PAGE = {"index.html": b'<script type="application/json" id="study"></script>'}


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three items of two systems and their originals: a second of noise in two channels, each of its own level."""
    folder = tmp_path_factory.mktemp("edits")
    rng = np.random.default_rng(5)
    rows = [["id", "group", "system", "reference", "estimate", "sample_id"]]
    for item in range(3):
        level = 0.02 * (item + 1)
        soundfile.write(folder / f"r{item}.wav", level * rng.normal(size=(RATE, 2)), RATE)
        for system in ("x", "y"):
            name = f"{system}{item}.wav"
            soundfile.write(folder / name, 2 * level * rng.normal(size=RATE), RATE)
            rows.append([f"item {item}", f"song {item}", system, f"r{item}.wav", name, f"sample {item}{system}"])
    with (folder / "pairs.csv").open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    return folder / "pairs.csv"


def build(table: Path, out: Path, **settings: Any) -> Any:
    chosen = ListeningSettings(**{"listeners": 2, "seed": 91, **settings})
    return build_listening_test(table, out, chosen, study="mine", introduction=TOLD, page=PAGE)


def test_a_rating_test_is_blind_and_equally_loud(table: Path, tmp_path: Path) -> None:
    built = build(table, tmp_path / "study", checks=2)
    audio = sorted((tmp_path / "study/page/audio").iterdir())
    assert len(audio) == 6 + 2  # neither open nor hidden references
    for path in audio:
        samples, rate = soundfile.read(path)
        assert (samples.ndim, rate) == (1, 44_100)
        assert integrated_loudness(samples, rate) == pytest.approx(-23.0, abs=0.1)
    seen = (tmp_path / "study/study.json").read_text()
    assert not any(word in seen for word in ("item ", "song ", '"x"', '"y"', "sample ", "seed"))
    played = {file for plan in built.study.plans for trial in plan["trials"] for file in trial["stimuli"]}
    assert played == {f"audio/{path.name}" for path in audio}


def test_the_key_says_who_is_who(table: Path, tmp_path: Path) -> None:
    built = build(table, tmp_path / "study", checks=2)
    key = read_listening_key(built.study.key)
    assert key.settings == ListeningSettings(listeners=2, seed=91, checks=2)
    assert {pair.estimate.rpartition("/")[2] for pair in built.pairs} == set(key.pairs)
    assert {(pair.item_id, pair.system, pair.sample_id) for pair in key.pairs.values()} == {
        (f"item {item}", system, f"sample {item}{system}") for item in range(3) for system in "xy"
    }
    assert set(key.seconds) == {*key.pairs, *key.checks}
    for name, count in key.checks.items():
        samples, rate = soundfile.read(tmp_path / "study/page/audio" / name)
        edges = np.diff((np.abs(samples) > 0.02).astype(int))
        starts = np.flatnonzero(edges == 1) / rate
        assert np.count_nonzero(np.diff(starts, prepend=-1) > 0.3) == count
    # the table has its files, and their hashes
    assert len(read_pairs(built.study.key / "pairs.csv")) == 6


def test_mushra_has_reference_and_anchor(table: Path, tmp_path: Path) -> None:
    built = build(table, tmp_path / "study", type="mushra", checks=0)
    key = read_listening_key(built.study.key)
    page = tmp_path / "study/page"
    for plan in built.study.plans:
        for trial in plan["trials"]:
            systems = {key.pairs[file.rpartition("/")[2]].system: file for file in trial["stimuli"]}
            assert set(systems) == {REFERENCE, "x", "y", ANCHOR}
            hidden, opened = (soundfile.read(page / name)[0] for name in (systems[REFERENCE], trial["reference"]))
            assert 0 < np.abs(hidden - opened).max() < 4 / 2**15  # dither of one step each, and rounding
            played = [*trial["stimuli"], trial["reference"]]
            assert len({(page / name).read_bytes() for name in played}) == 5
            assert len({(page / name).stat().st_size for name in played}) == 1
            assert len({soundfile.info(page / name).frames for name in played}) == 1
            assert trial["reference"].rpartition("/")[2] in key.seconds
            heard = [soundfile.read(page / systems[name])[0] for name in (REFERENCE, ANCHOR)]
            power = [np.abs(np.fft.rfft(samples * np.hanning(len(samples)))) ** 2 for samples in heard]
            hz = np.fft.rfftfreq(44_100, 1 / 44_100)
            above = [one[hz > 4100].sum() / one[hz < 3400].sum() for one in power]
            assert above[0] > 1
            assert above[1] < 1e-5


def test_an_anchor_of_ones_own_is_taken(table: Path, tmp_path: Path) -> None:
    rows = table.read_text().replace(",y,", f",{ANCHOR},")
    own = table.with_name("own.csv")
    own.write_text(rows)
    built = build(own, tmp_path / "study", type="mushra", questions=named_questions("mushra", ["harmony"]), checks=0)
    assert {pair.system for pair in built.pairs} == {REFERENCE, "x", ANCHOR}
    assert {pair.sample_id for pair in built.pairs if pair.system == ANCHOR} == {f"sample {n}y" for n in range(3)}


def test_systems_that_sound_the_same_are_named_among_the_judged(table: Path, tmp_path: Path) -> None:
    both = table.with_name("both.csv")
    lines = table.read_text().splitlines()
    both.write_text("\n".join([lines[0], "a,g,x,r0.wav,r0.wav,", "a,g,y,r0.wav,r0.wav,"]) + "\n")
    built = build(both, tmp_path / "study", checks=0)
    assert [(pair.system, pair.same_as) for pair in built.pairs] == [("x", ""), ("y", "x")]
    assert read_pairs(built.study.key / "pairs.csv")


@pytest.fixture
def unequal(tmp_path: Path) -> Path:
    """The outputs of the review: 8.0, 7.4 and 6.3 s, beside an original of 8 s, and an item whose sounds are equal."""
    rows = [["id", "system", "reference", "estimate"]]
    rng = np.random.default_rng(7)
    for item, seconds in (("a", (8.0, 7.4, 6.3)), ("b", (1.0, 1.0, 1.002))):
        soundfile.write(tmp_path / f"{item}r.wav", 0.1 * rng.normal(size=round(seconds[0] * RATE)), RATE)
        for system, length in zip("xyz", seconds, strict=True):
            soundfile.write(tmp_path / f"{item}{system}.wav", 0.1 * rng.normal(size=round(length * RATE)), RATE)
            rows.append([item, system, f"{item}r.wav", f"{item}{system}.wav"])
    with (tmp_path / "unequal.csv").open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    return tmp_path / "unequal.csv"


def test_sounds_of_unequal_length_are_refused_with_rows_and_lengths(unequal: Path, tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"item 'a'.* row 1 x 8\.000 s, row 2 y 7\.400 s, row 3 z 6\.300 s"):
        build(unequal, tmp_path / "study")
    assert not (tmp_path / "study").exists()


@pytest.mark.parametrize("kind", ["rating", "mushra"])
def test_sounds_of_unequal_length_are_cut_to_the_shortest_where_that_is_chosen(
    unequal: Path, tmp_path: Path, kind: str
) -> None:
    built = build(unequal, tmp_path / "study", type=kind, lengths="cut", checks=0)
    longer = {"row 1 x": 1.7, "row 2 y": 1.1}
    if kind == "mushra":
        longer |= {"row 1 reference": 1.7, "anchor": 1.7}
    assert built.cut == {"a": longer}
    test = json.loads((built.study.key / "test.json").read_text())
    assert (test["settings"]["lengths"], test["cut"]) == ("cut", built.cut)
    key = read_listening_key(built.study.key)
    frames = {"a": round(6.3 * 44_100), "b": 44_100}
    for name, pair in key.pairs.items():
        samples, _ = soundfile.read(built.study.page / "audio" / name)
        assert len(samples) == frames[pair.item_id]
        assert (np.abs(samples[-100:]).max() < 0.01) == (
            pair.item_id == "a"
        )  # all that were cut fade, the shortest too


def test_an_original_that_nobody_hears_may_be_longer(table: Path, tmp_path: Path) -> None:
    long = table.with_name("long.csv")
    soundfile.write(table.with_name("long.wav"), 0.1 * np.random.default_rng(9).normal(size=2 * RATE), RATE)
    lines = table.read_text().splitlines()
    long.write_text("\n".join([lines[0], *(line.replace("r0.wav", "long.wav") for line in lines[1:3])]) + "\n")
    build(long, tmp_path / "study", checks=0)
    with pytest.raises(InvalidInputError, match="unequal length"):
        build(long, tmp_path / "other", checks=0, with_open_reference=True)


def test_what_is_wrong_names_its_row(table: Path, tmp_path: Path) -> None:
    lines = table.read_text().splitlines()
    noise = table.with_name("noise.wav")
    noise.write_bytes(b"this is no sound")
    cases: list[tuple[str, type[MusicEvalsError], str]] = [
        (lines[1].replace("x0.wav", "noise.wav"), UnreadableFileError, r"bad.csv, row 1: .*noise.wav"),
        (lines[1].replace("x0.wav", "gone.wav"), UnreadableFileError, r"row 1: the estimate gone.wav cannot be read"),
        (lines[1].replace(",x,", f",{REFERENCE},"), InvalidInputError, "row 1: the system 'reference' must be the"),
    ]
    bad = table.with_name("bad.csv")
    for line, error, said in cases:
        bad.write_text("\n".join([lines[0], line, lines[2]]) + "\n")
        with pytest.raises(error, match=said):
            build(bad, tmp_path / "study", systems=("y",) if REFERENCE in line else ())
    bad.write_text("\n".join([*lines[:4]]) + "\n")
    with pytest.raises(PairCountError, match="row 3: item 'item 1' has no y"):
        build(bad, tmp_path / "study")
    assert not (tmp_path / "study").exists()


def test_a_place_that_is_taken_is_kept(table: Path, tmp_path: Path) -> None:
    built = build(table, tmp_path / "study")
    (built.study.folder / "answers.json").write_text("dear")
    with pytest.raises(InvalidInputError, match="is there already"):
        build(table, tmp_path / "study")
    assert (built.study.folder / "answers.json").read_text() == "dear"


def test_a_damaged_key_is_refused(table: Path, tmp_path: Path) -> None:
    built = build(table, tmp_path / "study")
    for name, content in (("checks.csv", "file,tones\na,b\n"), ("test.json", "{}"), ("test.json", "[1")):
        kept = (built.study.key / name).read_text()
        (built.study.key / name).write_text(content)
        with pytest.raises(UnreadableFileError, match="no key of a listening test"):
            read_listening_key(built.study.key)
        (built.study.key / name).write_text(kept)
    settings = json.loads((built.study.key / "test.json").read_text())
    settings["settings"]["listeners"] = 0
    (built.study.key / "test.json").write_text(json.dumps(settings))
    with pytest.raises(InvalidInputError, match="`listeners` must be"):
        read_listening_key(built.study.key)


def test_the_anchor_keeps_time_and_what_is_low() -> None:
    at = np.arange(44_100) / 44_100
    low, high = (np.sin(2 * np.pi * hz * at).astype(np.float32) for hz in (1000, 5000))
    found = low_passed(low + high, 44_100, 3500.0)
    assert np.abs(found[2000:-2000] - low[2000:-2000]).max() < 0.003


def test_checks_are_equally_long() -> None:
    assert len({len(tones(count, 8000)) for count in range(1, 6)}) == 1
