"""The verb ``fill``: ten tunes of different formats, what it writes, and what it refuses."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from tests import filling

from music_evals import protocols
from music_evals.benchmark.tasks.inpainting import systems
from music_evals.cli import main
from music_evals.symbolic.notes import make_notes
from music_evals.symbolic.tunes import Tune, open_tune

OPTIONS = {"two.abc": ["--tune", "2"]}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("fill")
    filling.write_tunes(place)
    return place


@pytest.fixture
def walker(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the model that fills any gap a baseline, so that it can be named."""
    known = {**protocols.BASELINES, "walker": f"{__name__}:make_walker"}
    monkeypatch.setattr(protocols, "BASELINES", known)
    monkeypatch.setattr(systems, "BASELINES", known)


def make_walker(_name: str, _train: object) -> filling.Walker:
    return filling.Walker()


def parts(tune: Tune, voice: int, first: int, n: int) -> tuple[list, list]:
    """Return the notes of a tune inside and outside of a gap; those over its edges are cut there."""
    start, stop = tune.bars.span(first, n)
    inside, outside = [], []
    for onset, duration, pitch, _velocity, number in tune.score.notes.tolist():
        end = onset + duration
        if number != voice or end <= start or onset >= stop:
            outside.append((onset, end, pitch, number))
            continue
        if onset >= start:
            inside.append((onset, min(end, stop), pitch))
        elif onset < start:
            outside.append((onset, start, pitch, number))
        if end > stop:
            outside.append((stop, end, pitch, number))
    return sorted(inside), sorted(outside)


OURS = "infill_transformer"


@pytest.mark.slow
@pytest.mark.parametrize("name", list(filling.TUNES))
@pytest.mark.parametrize("kind", ["rules", OURS])
@pytest.mark.usefixtures("walker")
def test_ten_tunes_are_filled(
    folder: Path, tmp_path: Path, name: str, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    voice, measures, rule = filling.TUNES[name]
    model, draws = (OURS, True) if kind == OURS else (rule, rule == "walker")
    command = ["fill", str(folder / name), "--measures", measures, "--model", model, "--out", str(tmp_path / "out")]
    command += [*(["--voice", voice] if voice else []), *OPTIONS.get(name, []), "--seed", "5"]
    ours = ["--decoding", "sample", "--temperature", "2", "--candidates", "2"]
    command += ours if kind == OURS else ["--candidates", "3"]
    assert main([*command, "--json"]) == 0
    content = json.loads(capsys.readouterr().out)
    number = 2 if name == "two.abc" else None
    old = open_tune(folder / name, tune=number)
    index = old.voice(voice)
    first, n = old.measures(measures)
    assert content["voice"] == {"number": index + 1, "name": old.score.voices[index]}
    assert len(content["candidates"]) == (2 if kind == OURS else 3 if draws else 1)
    fillings = set()
    for candidate in content["candidates"]:
        path = tmp_path / "out" / candidate["file"]
        assert path.suffix == (folder / name).suffix
        new = open_tune(path, tune=number)
        (inside, outside), (truth, kept) = parts(new, index, first, n), parts(old, index, first, n)
        assert outside == kept
        ticks = old.bars.ticks_per_quarter
        assert [(on / ticks, (end - on) / ticks, pitch) for on, end, pitch in inside] == [
            tuple(note[key] for key in ("onset_quarter", "duration_quarter", "pitch")) for note in candidate["notes"]
        ]
        assert len(content["truth"]) == len(truth)
        hits = {(on, pitch) for on, _, pitch in inside} & {(on, pitch) for on, _, pitch in truth}
        assert candidate["scores"]["note_f1"] == pytest.approx(2 * len(hits) / (len(inside) + len(truth)))
        fillings.add(tuple(inside))
    assert len(fillings) == len(content["candidates"])
    likelihoods = [candidate["log_likelihood"] for candidate in content["candidates"]]
    assert likelihoods == (sorted(likelihoods, reverse=True) if draws else [None])
    assert content["ranked_by"] == ("likelihood" if draws else "order of drawing")
    picture = ET.fromstring((tmp_path / "out/candidates.svg").read_text())  # noqa: S314  # our own
    rolls = [one for one in picture if one.get("class") == "roll"]
    assert len(rolls) == 1 + len(content["candidates"])  # what stood there, and each candidate
    filled = [rect for rect in rolls[1] if rect.get("class") == "note filled"]
    assert len(filled) == len(content["candidates"][0]["notes"])


@pytest.mark.usefixtures("walker")
def test_the_same_seed_gives_the_same_files(folder: Path, tmp_path: Path) -> None:
    command = ["fill", str(folder / "waltz.midi"), "--measures", "5-9", "--model", "walker"]
    for out, seed in (("a", "1"), ("b", "1"), ("c", "2")):
        assert main([*command, "--seed", seed, "--out", str(tmp_path / out)]) == 0
    a, b, c = ({path.name: path.read_bytes() for path in (tmp_path / out).iterdir()} for out in "abc")
    assert a == b
    assert a["candidate_1.midi"] != c["candidate_1.midi"]
    # fewer candidates than before: what is left of the fill before goes
    assert main([*command, "--candidates", "2", "--out", str(tmp_path / "a")]) == 0
    assert sorted(path.name for path in (tmp_path / "a").iterdir()) == [
        "candidate_1.midi", "candidate_2.midi", "candidates.svg", "fill.json",
    ]  # fmt: skip


@pytest.mark.usefixtures("walker")
def test_a_context_that_is_asked_for_is_all_that_is_shown(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    model = filling.Walker()
    monkeypatch.setattr(f"{__name__}.make_walker", lambda *_: model)
    command = ["fill", str(folder / "waltz.midi"), "--measures", "5-9", "--model", "walker", "--context", "2"]
    assert main([*command, "--json", "--out", str(tmp_path / "out")]) == 0
    assert json.loads(capsys.readouterr().out)["context"] == 2
    assert {tokens.shape for tokens, _ in model.shown} == {(1, 9 * 18)}
    assert main([*command[:-1], "20", "--out", str(tmp_path / "more")]) == 0  # the tune has sixteen measures
    model.gap_limits = model.gap_limits._replace(steps=11 * 18)
    assert main([*command[:-1], "4", "--out", str(tmp_path / "less")]) == 2
    assert "a --context of at most 3 measures on each side, got 4; ask for less" in capsys.readouterr().err


@pytest.mark.usefixtures("walker")
def test_the_picture_has_numbers_and_semitones_of_one_height(folder: Path, tmp_path: Path) -> None:
    rolls, numbers = {}, {}
    for name, measures, context in (("pickup.mid", "2", "1"), ("pickup.mid", "2-3", "2"), ("reel.abc", "7", "3")):
        out = tmp_path / f"{name} {measures}"
        command = ["fill", str(folder / name), "--measures", measures, "--context", context, "--model", "walker"]
        assert main([*command, "--candidates", "1", "--out", str(out)]) == 0
        picture = ET.fromstring((out / "candidates.svg").read_text())  # noqa: S314  # our own
        numbers[out.name] = [(int(one.get("x", "")), one.text) for one in picture if one.get("class") == "number"]
        rolls[out.name] = next(one for one in picture if one.get("class") == "roll")
    # three measures, and six, on 960 pixels; a pickup is filled up in front
    assert numbers["pickup.mid 2"] == [(8, "1"), (328, "2"), (648, "3")]
    assert numbers["pickup.mid 2-3"] == [(8 + 160 * bar, str(bar)) for bar in range(6)]
    assert [number for _, number in numbers["reel.abc 7"]] == ["4", "5", "6", "7", "8", "9", "10"]
    for roll in rolls.values():
        height = float(roll.get("viewBox", "").split()[3])
        semitone = next(float(one.get("height", "")) for one in roll if "note" in one.get("class", ""))
        assert float(roll.get("height", "")) * semitone / height == 5  # pixels


@pytest.mark.slow
def test_a_network_fills_and_ranks(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch")
    command = ["fill", str(folder / "choir.musicxml"), "--voice", "Bass", "--measures", "7-10", "--model"]
    command += ["anticipation_rnn", "--temperature", "0.8", "--candidates", "2", "--out", str(tmp_path / "out")]
    assert main(command) == 0
    out, err = capsys.readouterr()
    found = [float(value) for value in re.findall(r"log-likelihood (-[\d.]+)", out)]
    assert len(found) == 2
    assert found == sorted(found, reverse=True)
    assert "candidates.svg" in out
    assert "anticipation_rnn" in err


@pytest.mark.slow
def test_a_model_may_name_its_decoding(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch")
    command = ["fill", str(folder / "odd_running.mid"), "--voice", "Tune", "--measures", "7-10", "--candidates", "1"]
    for name, options in (("a", ["anticipation_rnn:argmax"]), ("b", ["anticipation_rnn", "--decoding", "argmax"])):
        assert main([*command, "--model", *options, "--out", str(tmp_path / name)]) == 0
    assert (tmp_path / "a/candidate_1.mid").read_bytes() == (tmp_path / "b/candidate_1.mid").read_bytes()
    assert json.loads((tmp_path / "a/fill.json").read_text())["model"]["decoding"] == "argmax"
    assert main([*command, "--model", "anticipation_rnn:x", "--out", str(tmp_path / "c")]) == 2
    assert "unknown decoding 'x'" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("sketch", ["rhythm", "contour"])
def test_a_sketch_stays(folder: Path, tmp_path: Path, sketch: str) -> None:
    pytest.importorskip("torch")
    command = ["fill", str(folder / "odd_running.mid"), "--voice", "Tune", "--measures", "7-10", "--candidates", "2"]
    out = tmp_path / "out"
    assert main([*command, "--model", "sketchnet", "--sketch", sketch, "--out", str(out)]) == 0
    content = json.loads((out / "fill.json").read_text())
    assert content["sketch"] == sketch
    assert content["truth"] == []  # what stands there is no truth to be scored by
    drawn, _ = parts(open_tune(folder / "odd_running.mid"), 0, 6, 4)
    assert len(content["candidates"]) == 2
    others = []
    for candidate in content["candidates"]:
        assert candidate["scores"] == {}
        written, _ = parts(open_tune(out / candidate["file"]), 0, 6, 4)
        if sketch == "rhythm":
            assert [note[:2] for note in written] == [note[:2] for note in drawn]
        else:
            assert [note[2] for note in written] == [note[2] for note in drawn]
        others.append(written != drawn)
    assert any(others)


def test_what_fills_no_gap_is_not_offered(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = [
        "fill",
        str(folder / "waltz.midi"),
        "--measures",
        "5-8",
        "--model",
        "zzz",
        "--out",
        str(tmp_path / "out"),
    ]
    assert main(command) == 2
    offered = capsys.readouterr().err.partition("known: ")[2].partition(";")[0].split(", ")
    assert {"lag_vote", "anticipation_rnn"} <= set(offered)
    assert not {"best_lag", "reference", "markov", "corpus_prior"} & set(offered)


def test_what_is_no_truth_is_neither_written_nor_drawn(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["fill", str(folder / "odd_running.mid"), "--voice", "Tune", "--measures", "7-10", "--model", "copy_past"]
    assert main([*command, "--no-judge", "--out", str(tmp_path / "out")]) == 0
    assert "not scored: as --no-judge asks" in capsys.readouterr().out
    content = json.loads((tmp_path / "out/fill.json").read_text())
    assert (content["truth"], content["no_judge"], content["places"]) == ([], True, [7, 10])
    assert content["sha256"] == hashlib.sha256((folder / "odd_running.mid").read_bytes()).hexdigest()
    assert [content[key] for key in ("tune", "meter", "n_candidates", "seed")] == [None, None, 4, 0]
    assert "what stood in the gap" not in (tmp_path / "out/candidates.svg").read_text()


@pytest.mark.usefixtures("walker")
def test_what_cannot_be_edited_is_said_before_anything_is_drawn(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    hanging = [filling.meter(4, 2), *filling.line(filling.quarters(64), 24), (0, bytes([0x90, 90, 64]))]
    (tmp_path / "hanging.mid").write_bytes(filling.midi([filling.chunk(hanging)], 24))
    monkeypatch.setattr(filling.Walker, "infill", lambda *_, **__: pytest.fail("drawn"))
    command = ["fill", str(tmp_path / "hanging.mid"), "--measures", "7-8", "--model", "walker"]
    assert main([*command, "--out", str(tmp_path / "out")]) == 2
    assert "never ends" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["octaves.mid", "octaves.abc", "octaves.musicxml"])
def test_of_chords_the_highest_notes_are_filled_and_compared(tmp_path: Path, name: str) -> None:
    filling.write_chords(tmp_path)
    command = ["fill", str(tmp_path / name), "--measures", "7-10", "--model", "copy_past", "--highest"]
    assert main([*command, "--out", str(tmp_path / "out")]) == 0
    content = json.loads((tmp_path / "out/fill.json").read_text())
    assert content["highest"] is True
    assert [note["pitch"] for note in content["truth"]] == [72, 74, 76, 77] * 4
    [candidate] = content["candidates"]
    assert [note["pitch"] for note in candidate["notes"]] == [72, 74, 76, 77] * 4
    assert candidate["scores"]["note_f1"] == 1
    old, new = open_tune(tmp_path / name), open_tune(tmp_path / "out" / candidate["file"])
    (truth, kept), (inside, outside) = parts(old, 0, 6, 4), parts(new, 0, 6, 4)
    assert outside == kept
    assert len(outside) == 12 * 8  # chords of two
    assert inside == [note for note in truth if note[2] >= 72]  # the lower notes of the chords are gone


def test_a_gap_without_notes_is_not_scored(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tune = open_tune(folder / "type0.mid")
    (tmp_path / "gap.mid").write_bytes(tune.replaced(0, 6, 4, make_notes([], [], [])))
    command = ["fill", str(tmp_path / "gap.mid"), "--voice", "1", "--measures", "7-10", "--model", "copy_past"]
    assert main([*command, "--out", str(tmp_path / "out")]) == 0
    assert "not scored: no note stood in the gap" in capsys.readouterr().out
    assert json.loads((tmp_path / "out/fill.json").read_text())["candidates"][0]["scores"] == {}


REFUSED = {
    "no voice": (["type0.mid", "--measures", "7-10"], "2 voices have notes (1 'one track channel 1', 2 "),
    "which voice": (["type0.mid", "--measures", "7-10"], "name one with --voice"),
    "unknown voice": (["type0.mid", "--measures", "7-10", "--voice", "9"], "voices are 1 'one track channel 1'"),
    "outside": (["waltz.midi", "--measures", "7-30"], "has no measure 30; it has 1 to 16"),
    "backwards": (["waltz.midi", "--measures", "8-7"], "--measures 8-7 end before they start"),
    "no numbers": (["waltz.midi", "--measures", "all"], "has no measure all"),
    "too few": (["odd_running.mid", "--voice", "Tune", "--measures", "7-9"], "lag_vote fills 4 measures of four"),
    "too many": (["odd_running.mid", "--voice", "Tune", "--measures", "6-10"], "no more and no fewer; the gap has 5"),
    "meter": (["waltz.midi", "--measures", "5-8"], "one in the gap lasts 3 quarters"),
    "candidates": (["waltz.midi", "--measures", "5-8", "--candidates", "0", "--model", "walker"], "--candidates must"),
    "seed": (["waltz.midi", "--measures", "5-8", "--seed", "-1", "--model", "walker"], "--seed must be 0 or more, got"),
    "span": (["waltz.midi", "--measures", "2-15", "--model", "walker"], "walker fills at most 32 (8 measures of 4/4)"),
    "context": (
        ["waltz.midi", "--measures", "5-6", "--model", "walker", "--context", "0"],
        "--context must be 1 or more, got 0",
    ),
    "context of sixteen": (
        ["odd_running.mid", "--voice", "Tune", "--measures", "7-10", "--context", "4"],
        "lag_vote is always shown 6 measures before the gap and 6 after it; leave --context out",
    ),
    "no context": (["lonely.mid", "--measures", "1-4"], "there are no notes before and after the gap"),
    "chords": (["chords.mid", "--measures", "7-10"], "of one note at a time, or its highest notes with --highest"),
    "no meter": (["free.mid", "--measures", "1"], "it has no measures; say what they are with --meter"),
    "truth": (["odd_running.mid", "--voice", "Tune", "--measures", "7-10", "--model", "reference"], "sees the true"),
    "fitted": (["waltz.midi", "--measures", "5-8", "--model", "markov"], "is fitted on training data"),
    "unknown model": (["waltz.midi", "--measures", "5-8", "--model", "lag_votes"], "did you mean lag_vote"),
    "decoding": (
        ["odd_running.mid", "--voice", "Tune", "--measures", "7-10", "--model", "anticipation_rnn", "--decoding", "x"],
        "unknown decoding 'x'",
    ),
    "meter stated": (["waltz.midi", "--measures", "5-8", "--meter", "4/4"], "; --meter is for MIDI files that state"),
    "temperature": (["waltz.midi", "--measures", "5-8", "--temperature", "1"], "has neither decoding nor temperature"),
    "no file": (["nowhere.mid", "--measures", "5-8"], "no such file"),
    "several tunes": (["two.abc", "--measures", "5-8"], "holds 2 tunes (1..2); choose one with"),
    "no sketch": (["type0.mid", "--measures", "7-10", "--voice", "1", "--sketch", "rhythm"], "takes no sketch"),
    "low": (["low.mid", "--measures", "7-10", "--model", "vli"], "error: the music has the pitch"),
    "high": (["high.mid", "--measures", "7-10", "--model", "vli"], "and VLI knows 22..107 alone; transpose the tune"),
}  # fmt: skip


@pytest.fixture(scope="module")
def bad(folder: Path) -> Path:
    head = filling.meter(4, 2)

    def write(name: str, *events: tuple[int, bytes]) -> None:
        (folder / name).write_bytes(filling.midi([filling.chunk(list(events))], 24))

    write("lonely.mid", head, *filling.line(filling.quarters(16), 24))
    write("chords.mid", head, *filling.line(filling.quarters(64), 24), *filling.line(filling.quarters(60, shift=4), 24))
    write("free.mid", *filling.line(filling.quarters(16), 24))
    write("low.mid", head, *filling.line(filling.quarters(64, shift=-60), 24))
    write("high.mid", head, *filling.line(filling.quarters(64, shift=48), 24))
    return folder


@pytest.mark.parametrize("case", list(REFUSED))
@pytest.mark.usefixtures("walker")
def test_what_cannot_be_filled_is_refused(
    bad: Path, tmp_path: Path, case: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (name, *options), message = REFUSED[case]
    if "vli" in options or "anticipation_rnn" in options:
        pytest.importorskip("torch")
    command = ["fill", str(bad / name), *(["--model", "lag_vote"] if "--model" not in options else []), *options]
    assert main([*command, "--out", str(tmp_path / "out")]) == 2
    out, err = capsys.readouterr()
    assert message in err
    assert not out
    assert not (tmp_path / "out").exists()


def test_a_folder_with_other_files_is_left_alone(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    command = ["fill", str(folder / "odd_running.mid"), "--voice", "Tune", "--measures", "7-10", "--model", "lag_vote"]
    command += ["--out", str(out)]
    out.mkdir()
    for name in ("mine.mid", "candidate_1.mid"):  # without a fill.json that lists it a name says nothing
        (out / name).write_bytes(b"kept")
        assert main(command) == 2
        assert f"{out} holds {name}, which is not of a fill; name a new folder with --out" in capsys.readouterr().err
        assert (out / name).read_bytes() == b"kept"
        (out / name).unlink()
    (out / ".DS_Store").write_bytes(b"of the desktop")
    assert main(command) == 0
    (out / "candidate_7.mid").write_bytes(b"kept")
    assert main(command) == 2
    assert "holds candidate_7.mid, which is not of a fill that fill.json lists" in capsys.readouterr().err
    assert sorted(path.name for path in out.iterdir()) == [
        ".DS_Store", "candidate_1.mid", "candidate_7.mid", "candidates.svg", "fill.json",
    ]  # fmt: skip
    assert main([*command[:-1], str(out / "candidate_1.mid")]) == 2
    assert "candidate_1.mid is a file; choose another folder" in capsys.readouterr().err


def test_a_candidate_that_was_changed_is_not_lost(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    command = ["fill", str(folder / "odd_running.mid"), "--voice", "Tune", "--measures", "7-10", "--model", "lag_vote"]
    command += ["--out", str(out)]
    assert main(command) == 0
    written = {path.name: path.read_bytes() for path in out.iterdir()}
    assert main(command) == 0  # what is as it was written is replaced
    for name in ("candidate_1.mid", "candidates.svg"):
        (out / name).write_bytes(written[name] + b" and a better ending")
        capsys.readouterr()
        assert main(command) == 2
        assert f"{out / name} was changed since it was written, and would be lost" in capsys.readouterr().err
        assert (out / name).read_bytes() == written[name] + b" and a better ending"
        (out / name).write_bytes(written[name])
    # one that is saved while others are drawn
    versions = "music_evals.numerics.package_versions"
    monkeypatch.setattr(versions, lambda: (out / "candidate_1.mid").write_bytes(b"saved") and {})
    assert main(command) == 2
    assert "candidate_1.mid was changed since it was written" in capsys.readouterr().err
    assert {path.name: path.read_bytes() for path in out.iterdir()} == {**written, "candidate_1.mid": b"saved"}


def test_a_file_of_that_name_that_is_no_record_is_not_lost(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    command = ["fill", str(folder / "odd_running.mid"), "--voice", "Tune", "--measures", "7-10", "--model", "lag_vote"]
    for text in ("{}", "[]", "mine", '{"files": [1]}', '{"candidates": [{"file": "candidate_1.mid"}]}'):
        (out / "fill.json").write_text(text)
        assert main([*command, "--out", str(out)]) == 2
        assert f"{out} holds fill.json, which is not of a fill;" in capsys.readouterr().err
        assert (out / "fill.json").read_text() == text


def test_what_is_filled_is_never_written_over(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    command = ["fill", str(folder / "odd_running.mid"), "--voice", "Tune", "--measures", "7-10", "--model", "lag_vote"]
    assert main([*command, "--out", str(out)]) == 0
    (tmp_path / "link.mid").symlink_to(out / "candidate_1.mid")
    (tmp_path / "linked").symlink_to(out)
    liked = (out / "candidate_1.mid").read_bytes()
    for file, place in (
        (out / "candidate_1.mid", out),
        (tmp_path / "link.mid", out),
        (out / "candidate_1.mid", tmp_path / "linked"),
    ):
        again = ["fill", str(file), "--voice", "Tune", "--measures", "2-5", "--model", "copy_past", "--out", str(place)]
        capsys.readouterr()
        assert main(again) == 2
        assert "candidate_1.mid is what is to be filled, and would be lost" in capsys.readouterr().err
        assert (out / "candidate_1.mid").read_bytes() == liked


def test_the_stand_in_is_what_the_protocol_asks_for() -> None:
    assert isinstance(filling.Walker(), protocols.GapInpainter)
    assert "walker" not in protocols.BASELINES
