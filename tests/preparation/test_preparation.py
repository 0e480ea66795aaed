"""The verb ``prepare``: a lead sheet with a known answer, rhymes, lines in time, bad songs, and resuming."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree as ET

import datasets
import numpy as np
import pytest
import soundfile

from music_evals.annotations import NOTE_DTYPE, Beats, Chords, Features, Melody, Score, Tempo
from music_evals.audio.io import encode_flac
from music_evals.audio.rendering import SAMPLE_RATE, render_additive
from music_evals.benchmark.records import read_records
from music_evals.cli import main
from music_evals.errors import InvalidAnnotationError, InvalidInputError, NoDataError
from music_evals.preparation.lead_sheet import make_lead_sheet
from music_evals.preparation.steps import STEPS, Column, Inputs, Step
from music_evals.preparation.task import Settings, find_songs, run_preparation
from music_evals.symbolic.midi import read_midi

# written for this test: lines 1, 2 and 4 end in ang, line 3 in an
LRC = "[00:04.00]船过小江\n[00:01.50]灯火微光\n[00:05.25]今夜无眠\n[00:06.00]风吹衣裳\n"

SCALE = (60, 62, 64, 65, 67, 69, 71, 72)


def _features(**changed: object) -> Features:
    """Return two measures of quarters at 120 beats a minute: one note a beat, C, then G minor."""
    beats = np.arange(8) * 0.5
    values = {
        "beats": Beats(beats + 0.25),
        "chords": Chords(np.array([[0.0, 2.25], [2.25, 4.25]]), ("C:maj", "G:min")),
        "melody": Melody(np.stack([beats + 0.25, beats + 0.75], axis=1), np.array(SCALE, dtype=float)),
    }
    return Features(4.25, **{**values, **changed})  # type: ignore[arg-type]


def test_lead_sheet_has_the_notes_and_chords_in_beats() -> None:
    sheet = make_lead_sheet(_features(), "Scale")
    assert (sheet.n_notes, sheet.n_dropped) == (8, 0)
    assert sheet.bpm == pytest.approx(120)
    assert sheet.off_grid == pytest.approx(0, abs=1e-9)
    score = read_midi(sheet.midi)
    melody = score.notes[score.notes["voice"] == 0]
    assert tuple(melody["pitch"]) == SCALE
    np.testing.assert_array_equal(melody["onset_tick"], np.arange(8) * score.ticks_per_quarter)
    chords = score.notes[score.notes["voice"] == 1]
    assert {int(pitch) % 12 for pitch in chords["pitch"][chords["onset_tick"] > 0]} == {7, 10, 2}  # G, B flat, D
    root = ET.fromstring(sheet.musicxml)  # noqa: S314 (it is our own)
    assert [note.findtext("pitch/step") for note in root.iter("note")] == list("CDEFGABC")
    assert [len(measure.findall("note")) for measure in root.iter("measure")] == [4, 4]
    assert [kind.text for kind in root.iter("kind")] == ["major", "minor"]
    assert [step.text for step in root.iter("root-step")] == ["C", "G"]


def test_every_measure_of_the_lead_sheet_is_full() -> None:
    # rests, a note over a bar line, one before the first beat, and two that fall on one place
    melody = Melody(
        np.array([[0.05, 0.2], [0.25, 0.3], [0.3, 0.4], [2.0, 3.0], [3.5, 3.6]]),
        np.array([50.0, 61.0, 62.0, 63.0, 66.0]),
    )
    sheet = make_lead_sheet(_features(melody=melody))
    assert sheet.n_notes + sheet.n_dropped == 5
    assert sheet.n_dropped == 1
    root = ET.fromstring(sheet.musicxml)  # noqa: S314 (it is our own)
    measures = [[int(note.findtext("duration", "0")) for note in one.findall("note")] for one in root.iter("measure")]
    assert [sum(one) for one in measures] == [24] * len(measures)
    tied = [note for note in root.iter("note") if note.find("tie") is not None]
    assert {note.findtext("pitch/step") for note in tied} == {"E"}  # 63, E flat, reaches over the bar line


def test_a_lead_sheet_is_never_made_up() -> None:
    with pytest.raises(InvalidAnnotationError, match="beats"):
        make_lead_sheet(Features(4.0, undefined={"beats": "silent"}))
    with pytest.raises(InvalidAnnotationError, match="two beats"):
        make_lead_sheet(_features(beats=Beats(np.array([1.0]))))


@pytest.fixture
def songs(tmp_path: Path) -> Path:
    root = tmp_path / "songs"
    root.mkdir()
    notes = [(8 * beat, 7, SCALE[beat % 8] + 12, 100, 0) for beat in range(12)]
    notes += [(8 * beat, 6, pitch, 60, 0) for beat in range(12) for pitch in (48, 52, 55)]
    table = np.array(sorted(notes, key=lambda note: (note[0], note[2])), dtype=NOTE_DTYPE)
    samples = render_additive(Score(table, 8, tempos=(Tempo(0, 120),)))
    (root / "one.flac").write_bytes(encode_flac(samples, SAMPLE_RATE))
    (root / "one.lrc").write_text(LRC, encoding="utf-8")
    (root / "broken.wav").write_bytes(b"no sound")
    (root / "english.txt").write_text("a boat upon the river\na light beside the bay\n", encoding="utf-8")
    return root


def test_prepare_writes_a_data_set_and_names_what_failed(
    songs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    command = ["prepare", str(songs), "--out", str(out), "--engine", "serial", "--json"]
    assert main(command) == 1
    printed = {row["song"]: row for row in json.loads(capsys.readouterr().out)}
    loaded = datasets.load_dataset(str(out), "automatic", split="test", cache_dir=str(tmp_path / "cache"))
    rows = {row["song"]: row for row in loaded}
    assert set(rows) == set(printed) == {"one", "broken", "english"}
    one = rows["one"]
    assert [line["start_sec"] for line in one["lines"]] == [1.5, 4.0, 5.25, 6.0]
    (section,) = one["sections"]
    assert section["lines"] == ["灯火微光", "船过小江", "今夜无眠", "风吹衣裳"]
    assert section["rhymes"] == [True, True, False, True]
    assert not one["failures"]
    score = read_midi(out / one["lead_sheet"]["midi"])
    assert int((score.notes["voice"] == 0).sum()) == one["lead_sheet"]["n_notes"]
    assert one["lead_sheet"]["n_notes"] >= 4
    assert {failure["step"] for failure in rows["broken"]["failures"]} == {"alignment", "rhymes", "lead_sheet"}
    english = {failure["step"]: failure["error"] for failure in rows["english"]["failures"]}
    assert "not Chinese" in english["rhymes"]
    assert "time stamp" in english["alignment"]
    assert "no audio" in english["lead_sheet"]
    assert sorted(path.name for path in (out / "lead_sheets").iterdir()) == ["one.mid", "one.musicxml"]


def test_a_second_run_does_only_what_changed(songs: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    (songs / "broken.wav").unlink()
    (songs / "english.txt").unlink()
    command = ["prepare", str(songs), "--out", str(out), "--steps", "alignment,rhymes", "--engine", "serial"]
    assert main(command) == 0

    def done() -> list[str]:
        return [row["step"] for row in read_records(out / "preparation").of("preparation")]

    assert done() == ["alignment", "rhymes"]
    assert main(command) == 0
    assert len(done()) == 2
    (songs / "one.lrc").write_text(LRC.replace("眠", "忘"), encoding="utf-8")
    assert main(command) == 0
    assert len(done()) == 4
    (row,) = datasets.load_dataset(str(out), "automatic", split="test", cache_dir=str(tmp_path / "cache"))
    assert row["sections"][0]["rhymes"] == [True] * 4


def test_songs_are_found_by_name(tmp_path: Path) -> None:
    with pytest.raises(NoDataError):
        find_songs(tmp_path)
    (tmp_path / "a.txt").write_text("一\n", encoding="utf-8")
    (tmp_path / "a.lrc").write_text("一\n", encoding="utf-8")
    with pytest.raises(InvalidInputError, match="take one away"):
        find_songs(tmp_path)
    assert main(["prepare", str(tmp_path), "--out", str(tmp_path / "out"), "--steps", "nothing"]) == 2


def _shout(inputs: Inputs) -> dict[str, object]:
    """Return the first line of the alignment in upper case, the size of the recording's file, and a file."""
    text = inputs.answers["alignment"]["lines"][0]["text"]
    size = Path(inputs.files["audio"]).stat().st_size if "audio" in inputs.files else 0
    return {"text": text.upper(), "n_bytes": size, "note": text.encode()}


def _count(inputs: Inputs) -> dict[str, object]:
    note = inputs.made("shout", "note")
    return {"n": None if note is None else len(note.read_bytes())}


@pytest.mark.slow
def test_a_step_reads_files_and_answers_and_all_of_it_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    columns = (Column("shout", {"text": "string", "n_bytes": "int64", "note": "string"}, {"shout": "loud"}),)
    about = {"loud": 1}
    shout = Step(
        "shout", "s", "l", "x", does=_shout, needs=("lyrics",), after=("alignment",), uses=("audio",),
        files={"note": "notes/{song}.txt"}, columns=columns, about=lambda _: dict(about),
    )  # fmt: skip
    count = Step("count", "s", "l", "x", does=_count, uses=("shout",), columns=(Column("count", "int64", {}, "n"),))
    monkeypatch.setitem(STEPS, "shout", shout)
    monkeypatch.setitem(STEPS, "count", count)
    folder, out = tmp_path / "songs", tmp_path / "out"
    folder.mkdir()
    (folder / "a.lrc").write_text("[00:01.00]hey\n", encoding="utf-8")
    (folder / "b.lrc").write_text("no stamp\n", encoding="utf-8")

    def run(*steps: str) -> tuple[list[str], dict[str, dict[str, object]]]:
        """Return the steps that were done in this run, and the rows."""
        path = out / "preparation"
        before = len(read_records(path)) if path.exists() else 0
        prepared = run_preparation(Settings(out, songs=folder, steps=steps or ("shout", "count")))
        new = read_records(path)[before:]
        done = [f"{row['song']} {row['step']}" for row in new if row["kind"] == "preparation" and "value" in row]
        return done, {str(row["song"]): row for row in prepared.rows}

    done, rows = run()
    assert done == ["a alignment", "a shout", "a count", "b count"]
    assert rows["a"]["shout"] == {"text": "HEY", "n_bytes": 0, "note": "notes/a.txt"}
    assert (rows["a"]["count"], rows["b"]["count"]) == (3, None)
    assert [one["step"] for one in rows["b"]["failures"]] == ["alignment", "shout"]  # type: ignore[attr-defined]
    assert "that step failed" in rows["b"]["failures"][1]["error"]  # type: ignore[index]
    assert run()[0] == []
    soundfile.write(folder / "a.wav", np.zeros(16000), 8000)  # what steps use where it is there
    done, rows = run()
    assert done == ["a alignment", "a shout", "a count"]
    assert rows["a"]["shout"]["n_bytes"] == (folder / "a.wav").stat().st_size  # type: ignore[index]
    (out / "notes" / "a.txt").unlink()
    assert run()[0] == ["a shout"]  # the answer is the same again, so that the step after it has nothing to do
    about["loud"] = 2
    assert run()[0] == ["a shout"]
    (folder / "b.lrc").write_text("[00:02.00]ho\n", encoding="utf-8")
    assert run()[0] == ["b alignment", "b shout", "b count"]
    assert run("count")[0] == ["a count", "b count"]  # what it only uses counts where it is asked for
