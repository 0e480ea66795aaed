"""The inpainting Space: its callbacks as plain functions, its layout in a process of its own."""

from __future__ import annotations

import ast
import io
import json
import math
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from tests.filling import Walker

from music_evals.annotations import HOLD, MUSIB_LAYOUT, REST, Score, TimeSignature
from music_evals.benchmark.tasks.inpainting.predictions import load_pairs
from music_evals.benchmark.tasks.inpainting.systems import System
from music_evals.errors import (
    FileTooLargeError,
    InvalidInputError,
    InvalidNotesError,
    NoDataError,
    PolyphonyError,
    UnknownNameError,
    UnreadableFileError,
)
from music_evals.models import baselines
from music_evals.pipelines.gaps.filling import SCORES
from music_evals.pipelines.inpainting import evaluate_inpainting
from music_evals.symbolic.contexts import cut_context
from music_evals.symbolic.midi import write_midi
from music_evals.symbolic.notes import make_notes
from music_evals.ui.spaces import gap_filling, melody_sources
from music_evals.ui.spaces import inpainting as inpainting_space
from music_evals.ui.spaces.gap_filling import Filling, Places, Request, fill
from music_evals.ui.spaces.gap_views import pairs_archive, python_code, shell_code, show_filling
from music_evals.ui.widgets.roll_editor import Melody, read_locks, read_melody, write_melody

ROOT = Path(__file__).resolve().parents[3]
SPACE = ROOT / "spaces" / "inpainting"
NOWHERE = Places((), None)
ODE = melody_sources.example("Ode to Joy")


def filled(request: Request, melody: Melody = ODE, places: Places = NOWHERE) -> Filling:
    *_, last = fill(places, melody, request)
    return last


def midi_file(path: Path, n_measures: int, *, pitches: tuple[int, ...] = (60,)) -> str:
    """One note a measure and voice; in measure m the pitch is higher by m modulo 12."""
    rows = [(1920 * m, 960, pitch + m % 12, voice) for m in range(n_measures) for voice, pitch in enumerate(pitches)]
    onsets, durations, keys, voices = (list(column) for column in zip(*rows, strict=True))
    notes = make_notes(onsets, durations, keys, voice=voices)
    path.write_bytes(write_midi(Score(notes, 480, voices=tuple(f"voice <{i}>" for i in range(len(pitches))))))
    return str(path)


@pytest.mark.parametrize("name", list(melody_sources.EXAMPLES))
def test_examples_are_sixteen_full_measures(name: str) -> None:
    melody = read_melody(inpainting_space.example_melody(name))
    tokens = melody.tokens
    assert tokens.shape == (384,)
    for measure in tokens.reshape(16, 24):
        assert measure[0] != HOLD  # every bar line begins something
    assert melody.notes[-1][0] + melody.notes[-1][1] == 384
    with pytest.raises(UnknownNameError):
        inpainting_space.example_melody("no such")


def test_the_first_phrase_of_the_ode_is_as_beethoven_wrote_it() -> None:
    pitches = [pitch for onset, _, pitch in ODE.notes if onset < 4 * 24]
    assert pitches == [64, 64, 65, 67, 67, 65, 64, 62, 60, 60, 62, 64, 64, 62, 62]


def test_a_baseline_fills_from_what_stands_around_the_gap() -> None:
    [candidate] = filled(Request("copy_past")).candidates
    expected = baselines.copy_past(ODE.tokens[None])[0]
    assert np.array_equal(candidate.middle, expected)


def test_scores_are_those_of_the_pipeline() -> None:
    filling = filled(Request("interpolation_copy"))
    [candidate] = filling.candidates
    judged = evaluate_inpainting(ODE.tokens[None], candidate.middle[None], metrics=SCORES)
    assert candidate.scores == {name: judged[name] for name in SCORES}
    assert candidate.diff is not None
    kept, all_notes = candidate.diff.count("kept"), candidate.diff.count("missed") + candidate.diff.count("extra")
    assert candidate.scores["note_f1"] == pytest.approx(2 * kept / (2 * kept + all_notes))


def test_the_middle_is_not_seen() -> None:
    other = ODE.tokens.copy()
    other[MUSIB_LAYOUT.middle] = REST
    for name in ("copy_past", "repeat_last_measure", "last_pitch_beats"):
        ours, others = (filled(Request(name), Melody(tokens)).candidates[0].middle for tokens in (ODE.tokens, other))
        assert np.array_equal(ours, others)


def test_silence_leaves_the_accuracies_undefined_and_says_so() -> None:
    filling = filled(Request("silence"))
    scores = filling.candidates[0].scores
    assert scores["note_f1"] == scores["position_score"] == 0
    assert math.isnan(scores["pitch_accuracy"])
    shown = show_filling(filling)
    assert shown.count("<td>undefined</td>") == 2
    assert "no note of the candidate starts where a true note starts" in shown
    assert "0 kept, 16 missed, 0 extra." in shown


def test_without_a_true_middle_nothing_is_judged() -> None:
    filling = filled(Request("copy_past", evaluate=False))
    shown = show_filling(filling)
    assert filling.candidates[0].scores == {}
    assert "note_f1" not in shown
    assert "The true middle" not in shown
    assert 'class="note filled"' in shown
    assert "nothing to score" in shell_code(filling)
    assert "evaluate=False" in python_code(NOWHERE, filling)
    assert zipfile.ZipFile(io.BytesIO(pairs_archive(filling))).namelist() == ["candidate_1.mid"]


def test_an_empty_gap_is_taken_for_silence_and_said() -> None:
    tokens = ODE.tokens.copy()
    tokens[MUSIB_LAYOUT.middle] = REST
    shown = show_filling(filled(Request("silence"), Melody(tokens)))
    assert "silence is taken for the true middle" in shown
    assert "Neither the true middle nor the candidate has a note." in shown


def test_a_deterministic_system_gives_one_candidate_and_says_why() -> None:
    filling = filled(Request("copy_past", n_candidates=5))
    assert len(filling.candidates) == filling.n_candidates == 1
    assert "whatever the seed" in " ".join(filling.notes)


def test_what_is_shown_says_range_and_direction() -> None:
    shown = show_filling(filled(Request("copy_past")))
    assert shown.count("0 to 1, higher is better") == len(SCORES)
    for kind in ("kept", "missed", "extra"):
        assert f'class="note {kind}"' in shown
    assert "<li>measure 7, beat 1: " in shown


def test_the_archive_gives_the_same_scores_by_the_command(tmp_path: Path) -> None:
    filling = filled(Request("interpolation_copy"))
    zipfile.ZipFile(io.BytesIO(pairs_archive(filling))).extractall(tmp_path)
    items, system = load_pairs(tmp_path)
    assert system.stored is not None
    judged = evaluate_inpainting(items.contexts, system.stored[0], metrics=SCORES)
    assert {name: judged[name] for name in SCORES} == filling.candidates[0].scores
    assert "music-evals inpainting --pairs pairs" in shell_code(filling)


@pytest.mark.parametrize("request_", [Request("copy_past"), Request("last_pitch_beats", evaluate=False)])
def test_the_code_that_is_shown_gives_the_same(request_: Request, capsys: pytest.CaptureFixture[str]) -> None:
    filling = filled(request_)
    exec(python_code(NOWHERE, filling), {})  # noqa: S102
    printed = [ast.literal_eval(line) for line in capsys.readouterr().out.splitlines()]
    assert printed == [candidate.row for candidate in filling.candidates]
    assert ("note_f1" in printed[0]) == request_.evaluate


def test_bad_requests_are_named() -> None:
    for wrong in ({"temperature": -1.0}, {"temperature": math.nan}, {"seed": -1}, {"n_candidates": 9}):
        with pytest.raises(InvalidInputError, match=next(iter(wrong))):
            Request("copy_past", **wrong)  # type: ignore[arg-type]
    with pytest.raises(UnknownNameError):
        filled(Request("reference"))  # the control sees the answer
    with pytest.raises(NoDataError):
        filled(Request("copy_past"), Melody(np.full(MUSIB_LAYOUT.n_steps, REST, dtype=np.uint8)))


def test_progress_is_told_stage_by_stage() -> None:
    told: list[tuple[float, str]] = []
    steps = inpainting_space.fill_gap(
        NOWHERE,
        write_melody(ODE),
        "copy_past",
        0.25,
        0,
        3,
        True,
        progress=lambda share, what: told.append((share, what)),
    )
    assert [step[0] for step in steps] == ["0 of 1 candidates by copy_past ...", "1 of 1 candidates by copy_past."]
    assert [what for _, what in told] == ["Reading the melody", "Loading copy_past", "Candidate 1 of 1", "Drawing"]
    assert [share for share, _ in told] == sorted(share for share, _ in told)


def test_a_file_is_opened_voice_by_voice(tmp_path: Path) -> None:
    path = midi_file(tmp_path / "a.mid", 20, pitches=(60, 48))
    piece, voices, voice, last, text, note = inpainting_space.open_file(path)
    assert voices == ["1: voice <0> (20 notes)", "2: voice <1> (20 notes)", "the highest notes of all voices"]
    assert (voice, last) == (voices[0], 5)
    assert read_melody(text).notes[0] == [0, 12, 60]
    assert "20 measures, 2 voices" in note
    moved = read_melody(inpainting_space.change_voice(piece, voices[1], 3, text))
    assert moved.first_measure == 3
    assert moved.notes[0] == [0, 12, 50]
    assert inpainting_space.change_voice(None, "", 1, text) == text
    with pytest.raises(NoDataError):  # the state of the page has gone, with the upload
        inpainting_space.change_voice(None, voice, 1, text)
    with pytest.raises(UnknownNameError):
        inpainting_space.change_voice(piece, "3", 1, text)


def test_a_short_file_ends_in_silence(tmp_path: Path) -> None:
    _, _, _, last, text, note = inpainting_space.open_file(midi_file(tmp_path / "<b>.mid", 3))
    assert last == 1
    assert "the rest is silence" in note
    assert "<b>" not in note
    assert (read_melody(text).tokens[3 * 24 :] == REST).all()


def test_of_chords_the_highest_notes_are_taken_and_that_is_said(tmp_path: Path) -> None:
    notes = make_notes([0, 0, 1920], [480, 480, 480], [60, 64, 67])
    (tmp_path / "chords.mid").write_bytes(write_midi(Score(notes, 480)))
    piece, voices, voice, _, text, note = inpainting_space.open_file(str(tmp_path / "chords.mid"))
    assert voice == voices[-1] == "the highest notes of all voices"
    assert [row[2] for row in read_melody(text).notes] == [64, 67]
    assert "1 voices. No voice has one note at a time: these are the highest notes." in note
    with pytest.raises(PolyphonyError):
        piece.cut(voices[0], 1)


@pytest.mark.slow
def test_another_meter_is_said(tmp_path: Path) -> None:
    meters = (TimeSignature(0, 3, 4), TimeSignature(480 * 12, 2, 2), TimeSignature(480 * 24, 6, 8))
    score = Score(make_notes([0], [480 * 64], [60]), 480, time_signatures=meters)
    (tmp_path / "waltz.mid").write_bytes(write_midi(score))
    note = inpainting_space.open_file(str(tmp_path / "waltz.mid"))[-1]
    assert "Its meter is 3/4, 6/8; measures here last four quarters" in note
    assert "meter" not in inpainting_space.open_file(midi_file(tmp_path / "a.mid", 20))[-1]


def test_chords_elsewhere_do_no_harm_and_a_voice_of_one_note_at_a_time_is_found(tmp_path: Path) -> None:
    starts = [1920 * m for m in range(20)]
    rows = [(start, 960, 60, voice) for start in starts for voice in (0, 1)]
    rows += [(start, 960, 64, 0) for start in starts[:2]]  # chords of voice 0, in the first two measures
    onsets, durations, keys, voices = (list(column) for column in zip(*sorted(rows), strict=True))
    score = Score(make_notes(onsets, durations, keys, voice=voices), 480, voices=("piano", "flute"))
    (tmp_path / "a.mid").write_bytes(write_midi(score))
    piece, _, voice, *_ = inpainting_space.open_file(str(tmp_path / "a.mid"))
    assert voice == "2: flute (20 notes)"
    assert len(piece.cut("1: piano (22 notes)", 3).notes) == 16
    with pytest.raises(PolyphonyError):
        piece.cut("1: piano (22 notes)", 2)


@pytest.mark.slow
def test_a_note_that_is_held_over_the_start_is_kept_as_holds(tmp_path: Path) -> None:
    score = Score(make_notes([0, 480 * 4 * 17], [480 * 6, 480], [60, 62]), 480)
    (tmp_path / "a.mid").write_bytes(write_midi(score))
    piece, _, voice, *_ = inpainting_space.open_file(str(tmp_path / "a.mid"))
    melody = read_melody(inpainting_space.change_voice(piece, voice, 2, ""))
    assert melody.tokens[:13].tolist() == [HOLD] * 12 + [REST]
    assert np.array_equal(melody.tokens, cut_context(score, 1))


@pytest.mark.parametrize(
    ("name", "content"),
    [("a.abc", b"X:1\nT:scale\nM:4/4\nL:1/4\nK:C\nCDEF|GABc|\n"), ("a.ABC", b"X:1\nM:4/4\nL:1/4\nK:C\nCDEF|GABc|\n")],
)
def test_abc_is_read(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    text = inpainting_space.open_file(str(tmp_path / name))[4]
    assert [note[2] for note in read_melody(text).notes] == [60, 62, 64, 65, 67, 69, 71, 72]


def test_a_file_of_very_many_voices_is_refused(tmp_path: Path) -> None:
    notes = make_notes([0] * 65, [480] * 65, [60] * 65, voice=list(range(65)))
    (tmp_path / "a.mid").write_bytes(write_midi(Score(notes, 480, voices=("",) * 65)))
    with pytest.raises(FileTooLargeError, match="65 voices"):
        inpainting_space.open_file(str(tmp_path / "a.mid"))


def test_only_a_run_that_is_going_is_cancelled() -> None:
    assert inpainting_space._cancelled("1 of 8 candidates ...") == "1 of 8 candidates. Cancelled."
    assert inpainting_space._cancelled("3 of 3 candidates by silence.") == "3 of 3 candidates by silence."


@pytest.mark.slow
def test_bad_uploads_are_named(tmp_path: Path) -> None:
    with pytest.raises(NoDataError, match="upload"):
        inpainting_space.open_file(None)
    (tmp_path / "a.mid").write_bytes(b"no MIDI")
    with pytest.raises(UnreadableFileError):
        inpainting_space.open_file(str(tmp_path / "a.mid"))
    (tmp_path / "a.wav").write_bytes(b"RIFF")
    with pytest.raises(UnknownNameError):
        inpainting_space.open_file(str(tmp_path / "a.wav"))
    (tmp_path / "b.mid").write_bytes(bytes(2**20 + 1))
    with pytest.raises(FileTooLargeError):
        inpainting_space.open_file(str(tmp_path / "b.mid"))
    (tmp_path / "c.mid").write_bytes(write_midi(Score(make_notes([], [], []), 480)))
    with pytest.raises(NoDataError):
        inpainting_space.open_file(str(tmp_path / "c.mid"))


@pytest.fixture
def walker(monkeypatch: pytest.MonkeyPatch) -> tuple[Places, Walker]:
    """A page with one model, which fills any gap."""
    model = Walker()
    system = System("walker", "model", "0" * 16, lambda: model, details={"decoding": "sample", "temperature": 1.0})
    monkeypatch.setattr(gap_filling, "_load", lambda _place: system)
    return Places((gap_filling.Model("walker", "here", "infill_transformer", "sample", 1.0),), None), model


def test_other_spans_are_filled_scored_and_shown(walker: tuple[Places, Walker]) -> None:
    places, model = walker
    filling = filled(Request("walker", first=3, n_measures=2, n_candidates=3), places=places)
    assert filling.complete
    assert len(filling.candidates) == 3
    assert all(candidate.middle.shape == (48,) for candidate in filling.candidates)
    [(tokens, hidden), *_] = model.shown
    assert np.flatnonzero(hidden[0]).tolist() == list(range(48, 96))
    assert (tokens[0, 48:96] > REST).all()  # masked
    assert filling.candidates[0].diff is not None
    assert filling.candidates[0].diff.count("kept") + filling.candidates[0].diff.count("missed") == 7
    shown = show_filling(filling)
    assert "Candidate 1: piano roll of measures 1 to 16, gap 3 to 4" in shown
    assert 'data-from="24" data-to="120"' in shown  # the gap is played with a measure before and after
    assert "measure 3, beat 1: " in shown
    assert "see the Python" in shell_code(filling)
    assert filling.receipt["gap"] == "measures 3 to 4 of the sixteen"
    whole = Request("walker", first=1, n_measures=8, evaluate=False, n_candidates=1)
    assert 'data-from="0" data-to="216"' in show_filling(filled(whole, places=places))


def test_locked_notes_are_in_every_candidate(walker: tuple[Places, Walker]) -> None:
    places, _ = walker
    keep = ((150, 4, 72), (200, 6, 48))
    filling = filled(Request("walker", keep=keep, n_candidates=4), places=places)
    assert "2 notes stay as you locked them." in filling.notes
    for candidate in filling.candidates:
        rows = {(int(n["onset_tick"]) + 144, int(n["duration_tick"]), int(n["pitch"])) for n in candidate.notes}
        assert set(keep) <= rows
    shown = show_filling(filling)
    assert shown.count('data-keep="150,4,72"') == 2 * 4  # in the picture and among the boxes to tick
    assert '<input type="checkbox" data-keep="200,6,48"> C3 at measure 9, beat 2' in shown
    assert filling.results()["kept"] == [[150, 4, 72], [200, 6, 48]]
    first = filled(Request("walker"), places=places).candidates[0]
    one = first.notes[3]
    lock = (144 + int(one["onset_tick"]), int(one["duration_tick"]), int(one["pitch"]))
    again = filled(Request("walker", keep=(lock,), seed=1), places=places)  # of a candidate, into the next
    assert all(candidate.middle[lock[0] - 144] == lock[2] for candidate in again.candidates)
    with pytest.raises(InvalidInputError, match="C5 at measure 5, beat 1 is to stay, and does not lie in the gap"):
        filled(Request("walker", keep=((96, 6, 72),)), places=places)


def test_what_a_system_cannot_do_is_refused_with_the_reason(walker: tuple[Places, Walker]) -> None:
    places, _ = walker
    for wrong, words in (
        (Request("copy_past", first=6), "measures 7 to 10 of the sixteen, no more and no fewer; walker fills other"),
        (Request("copy_past", n_measures=2), "no more and no fewer"),
        (Request("copy_past", keep=((150, 4, 72),)), "cannot keep notes in it; walker can. Take the locks away"),
        (Request("walker", sketch="rhythm"), "walker follows no sketch. Choose no sketch"),
        (Request("walker", first=1, n_measures=9), "fills at most 8 measures at once"),
    ):
        with pytest.raises(InvalidInputError, match=words):
            filled(wrong, places=places)
    with pytest.raises(InvalidInputError, match="measures 15 to 17, does not lie within the sixteen"):
        Request("walker", first=15, n_measures=3)
    for wrong_name in ({"decoding": "teacher_forced"}, {"sketch": "harmony"}):
        with pytest.raises(UnknownNameError):
            Request("walker", **wrong_name)


def test_fewer_candidates_than_wanted_are_said(walker: tuple[Places, Walker]) -> None:
    places, _ = walker
    rest = ODE.tokens.copy()
    rest[rest == HOLD] = REST
    keep = tuple((step, 1, 60) for step in range(144, 239))
    filling = filled(Request("walker", keep=keep, n_candidates=8), Melody(rest), places)  # one step is left
    assert filling.complete
    assert len(filling.candidates) < 8
    assert "candidates differ" in filling.notes[-1]


def test_text_of_the_page_reaches_the_request(walker: tuple[Places, Walker]) -> None:
    places, _ = walker
    values = (write_melody(ODE), "walker", 1.0, 0, 2, False, "own", 5, 3, "none", "[[100, 4, 61]]")
    *_, last = inpainting_space.fill_gap(places, *values)
    assert last[0] == "2 of 2 candidates by walker."
    assert "1 note stays as you locked it." in last[1]
    assert "hide_gap(tokens, gap, [(100, 4, 61)])" in last[3]
    with pytest.raises(InvalidNotesError, match="notes that stay are JSON such as"):
        list(inpainting_space.fill_gap(places, *values[:-1], "[[1, 2]]"))


@pytest.mark.parametrize("text", ["[", "{}", "[[0, 6]]", "[[383, 2, 60]]", '[["0", 6, 60]]', "[" * 30_000])
def test_locks_that_are_none_are_refused(text: str) -> None:
    with pytest.raises(InvalidNotesError):
        read_locks(text)
    assert read_locks(None) == read_locks("[]") == ()


RUN_MODEL = """
import json, sys
import numpy as np
from music_evals.ui.spaces import gap_filling, gap_views, melody_sources
places = gap_filling.find_places(sys.argv[1])
melody = melody_sources.example("Ode to Joy")
def middles(n, **options):
    *_, last = gap_filling.fill(places, melody, gap_filling.Request(n_candidates=n, **options))
    return last, [candidate.middle.tolist() for candidate in last.candidates]
def by_code(filling):
    scope = {}
    exec(gap_views.python_code(places, filling), scope)
    return [one.middle.tolist() for one in scope["candidates"]]
name = {"system": "anticipation_rnn"}
filling, two = middles(2, temperature=1.0, seed=4, **name)
_, three = middles(3, temperature=1.0, seed=4, **name)
_, other = middles(1, temperature=1.0, seed=5, **name)
_, likely = middles(3, temperature=0.0, decoding="sample", **name)
fitted, markov = middles(2, system="markov")
folk, jigs = middles(2, system="vli/folk", temperature=1.0)
sketched, along = middles(2, system="sketchnet", sketch="rhythm")
print(json.dumps({"two": two, "three": three, "other": other, "likely": likely, "receipt": filling.receipt,
  "code": by_code(filling), "markov": [markov, by_code(fitted)], "folk": [jigs, by_code(folk)],
  "sketch": [along, by_code(sketched)], "followed": [sketched.followed(one) for one in sketched.candidates]}))
"""


@pytest.mark.slow
def test_the_models_fill_and_receipt_and_code_say_how() -> None:
    """In a process of its own: PyTorch and the data set library stay out of the fast tests."""
    done = subprocess.run(
        [sys.executable, "-c", RUN_MODEL, str(ROOT)], capture_output=True, text=True, cwd=ROOT, check=False,
        env=os.environ | {"OMP_NUM_THREADS": "1", "HF_DATASETS_OFFLINE": "1", "HF_HUB_OFFLINE": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["three"][:2] == found["two"]  # more candidates do not change the first ones
    assert found["two"][0] != found["two"][1]
    assert found["other"][0] != found["two"][0]
    assert len(found["likely"]) == 1
    assert found["code"] == found["two"]
    for name in ("markov", "folk", "sketch"):
        shown, by_code = found[name]
        assert len(shown) == 2
        assert by_code == shown
    for said in found["followed"]:  # the rhythm of the ode is obeyed
        assert said == "16 of 16 drawn onsets are there, and 0 others in their measures"
    receipt = found["receipt"]
    assert receipt["source"] == "anticipation_rnn"  # no path of this machine
    assert receipt["temperature"] == 1.0
    assert receipt["seed"] == 4
    assert len(receipt["hash of weights, configuration and training data"]) == 16
    assert {"music_evals", "torch", "numpy"} <= set(receipt["versions"])


BUILD = """
import json, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
import app
page = app.build_demo()
events = [
    {"name": f.api_name, "visibility": f.api_visibility, "cancels": bool(f.cancels)} for f in page.fns.values()
]
blocks = [block for block in page.blocks.values()]
print(json.dumps({
    "events": events, "max": page.max_upload_bytes,
    "ids": sorted(block.elem_id for block in blocks if getattr(block, "elem_id", None)),
    "heavy": sorted({"torch", "music21", "datasets"} & set(sys.modules)),
}))
"""


@pytest.mark.slow
@pytest.mark.gradio
def test_the_page_is_built_without_network_or_heavy_packages(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error::UserWarning:gradio", "-c", BUILD, str(SPACE)],
        capture_output=True, text=True, check=False, cwd=tmp_path,
        env=os.environ | {"GRADIO_ANALYTICS_ENABLED": "False", "HF_HUB_OFFLINE": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.splitlines()[-1])
    public = {event["name"] for event in found["events"] if event["visibility"] == "public"}
    assert public == {"example", "open_file", "fill"}
    assert any(event["cancels"] for event in found["events"])
    assert {"gap_first", "gap_measures", "sketch", "kept", "decoding"} <= set(found["ids"])
    assert {"editor", "candidates", "receipt", "code_python", "code_shell", "download_json"} <= set(found["ids"])
    assert found["max"] == 2**20
    assert found["heavy"] == []


def test_the_app_is_thin() -> None:
    lines = (SPACE / "app.py").read_text(encoding="utf-8").splitlines()
    assert len([line for line in lines if line.strip() and not line.strip().startswith("#")]) <= 40
