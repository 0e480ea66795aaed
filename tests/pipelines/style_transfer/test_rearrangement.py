"""A score whose accompaniment is rewritten: what is the melody, what stays, and sweeps that can be resumed."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from music_evals.annotations import DRUMS, Arrangement, KeySignature, Score, Tempo, TimeSignature
from music_evals.errors import (
    InvalidInputError,
    InvalidNotesError,
    NoDataError,
    OtherResultsError,
    PolyphonyError,
    UnknownNameError,
)
from music_evals.models.bmst import BMST, BMSTConfig
from music_evals.models.gibbs import GibbsSettings
from music_evals.pipelines.style_transfer.rearrangement import Prepared, pick_melody, prepare, rearrange
from music_evals.protocols import StyleTransfer, SweptTransfer
from music_evals.symbolic.encodings.piano_rolls import arrange
from music_evals.symbolic.midi import read_midi, write_midi
from music_evals.symbolic.notes import make_notes

TINY = BMSTConfig(style="bach", window=8, embedding=8, n_layers=1, n_heads=2, inner=8, context=3, pitch_width=4)


def piece(**changes: object) -> Score:
    """Return a melody with a triplet over chords and drums, with a pickup of a quarter, 480 ticks a quarter."""
    melody = [(0, 480, 72), (480, 160, 74), (640, 160, 76), (800, 160, 77), (960, 1440, 72)]
    chords = [(480, 960, 48), (480, 960, 55), (1440, 960, 50)]
    drums = [(0, 120, 36), (480, 120, 38)]
    rows = [(*row, voice) for voice, part in enumerate((chords, melody, drums)) for row in part]
    onset, duration, pitch, voice = zip(*rows, strict=True)
    score = Score(
        make_notes(onset, duration, pitch, [90 if one == 1 else 50 for one in voice], voice),
        480,
        (TimeSignature(0, 1, 4), TimeSignature(480, 4, 4)),
        (Tempo(0, 100.0), Tempo(960, 80.0)),
        (KeySignature(0, -1, True),),
        ("Chords", "Melody", "Kit"),
        (0, 73, DRUMS),
    )
    return dataclasses.replace(score, **changes)  # type: ignore[arg-type]


@pytest.fixture
def model() -> BMST:
    import torch

    with torch.random.fork_rng():
        torch.manual_seed(3)
        return BMST(TINY, sampling=GibbsSettings(sweeps=3)).eval()


class Octave:
    """A plain style transfer: the accompaniment is the melody an octave lower."""

    name, style, deterministic, steps_per_quarter = "octave", "plain", True, 4

    def transfer(self, arrangement: Arrangement, *, rng: np.random.Generator) -> Arrangement:  # noqa: ARG002
        lower = [np.roll(getattr(arrangement.melody, part), -12, axis=1) for part in ("cells", "onsets", "offsets")]
        return Arrangement(arrangement.melody, arrangement.melody.with_notes(*lower))


def rows(score: Score, voice: int) -> list[tuple[int, ...]]:
    return [tuple(note)[:4] for note in score.voice(voice).tolist()]


# --- what is the melody


def two(*names: str) -> Score:
    n = len(names)
    return Score(make_notes([0] * n, [4] * n, range(48, 48 + n), voice=range(n)), 4, voices=names)


@pytest.mark.parametrize(
    ("names", "index"),
    [
        (("Bass", "MELODY"), 1),
        (("Soprano", "Alto", "Tenor", "Bass"), 0),
        (("Piano", "Lead vocals"), 1),
        (("Gesang", "Klavier"), 0),
        (("",), 0),
    ],
)
def test_names_say_which_voice_is_the_melody(names: tuple[str, ...], index: int) -> None:
    assert pick_melody(two(*names)) == index


@pytest.mark.parametrize("names", [("Right hand", "Left hand"), ("Vocals", "Backing vocals", "Bass"), ("Lady", "Lord")])
def test_what_cannot_be_told_is_refused_with_what_to_do(names: tuple[str, ...]) -> None:
    with pytest.raises(PolyphonyError, match=r"`melody`.*number or name.*skyline") as caught:
        pick_melody(two(*names))
    assert all(repr(name) in str(caught.value) for name in names)


def test_one_voice_of_chords_is_split_only_if_asked_for() -> None:
    notes = make_notes([0, 0, 4, 4], [4, 8, 4, 4], [72, 48, 74, 52])
    score = Score(notes, 4, (TimeSignature(0, 4, 4),))
    with pytest.raises(PolyphonyError, match=r"track of its own.*melody='skyline'"):
        prepare(score)
    prepared = prepare(score, "skyline")
    assert rows(prepared.score, 0) == [(0, 8, 72, 64), (8, 8, 74, 64)]  # ticks are the least of both grids, 8
    assert rows(prepared.score, 1) == [(0, 16, 48, 64), (8, 8, 52, 64)]
    assert prepared.melody == "skyline"


@pytest.mark.parametrize(
    ("melody", "error", "words"),
    [
        ("Kit", InvalidInputError, "drum kit"),
        ("Flute", UnknownNameError, "1 'Chords', 2 'Melody'"),
        ("4", UnknownNameError, "'Melody'"),
    ],
)
def test_a_wrong_melody(melody: str, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        prepare(piece(), melody)


def test_names_numbers_and_case() -> None:
    assert [pick_melody(piece(), name) for name in ("melody", "1", "chords", "2")] == [1, 0, 0, 1]
    with pytest.raises(InvalidInputError, match="1 and 2"):
        pick_melody(two("Hand", "Hand"), "Hand")


def test_nothing_to_keep() -> None:
    with pytest.raises(NoDataError):
        prepare(Score(make_notes([0], [4], [36]), 4, voices=("Kit",), programs=(DRUMS,)))
    with pytest.raises(InvalidNotesError, match=r"A0\.\.G#7"):
        prepare(Score(make_notes([0], [4], [105]), 4))


# --- what stays


@pytest.mark.slow
def test_melody_tempo_meter_and_key_stay(model: BMST) -> None:
    score = piece()
    *_, last = rearrange(prepare(score), model)
    written = read_midi(write_midi(last.score()))
    assert written.voices == ("melody", "accompaniment")
    assert written.programs == (73, 0)
    assert rows(written, 0) == rows(score, 1)  # the triplet too
    assert written.time_signatures == score.time_signatures
    assert written.key_signatures == score.key_signatures
    assert [round(tempo.bpm) for tempo in written.tempos] == [100, 80]
    accompaniment = written.voice(1)
    assert len(accompaniment)
    assert set(accompaniment["velocity"].tolist()) == {50}
    assert not (accompaniment["onset_tick"] % 60).any()


def test_the_model_sees_all_but_the_drums() -> None:
    prepared = prepare(piece())
    apart = piece()
    kept = dataclasses.replace(apart, notes=apart.notes[apart.notes["voice"] < 2])
    expected = arrange(kept, 1)
    assert np.array_equal(prepared.arrangement.accompaniment.cells, expected.accompaniment.cells)
    assert np.array_equal(prepared.arrangement.melody.onsets, expected.melody.onsets)
    assert prepared.arrangement.melody.bar_phase[:9].tolist() == [*np.arange(24, 32) / 32, 0]  # the pickup


def test_remarks() -> None:
    (drums, off) = prepare(piece(time_signatures=(TimeSignature(0, 4, 4),))).remarks
    assert "'Kit'" in drums
    assert off.startswith("2 of 8 notes start off")
    assert any(
        one.startswith("the meter is 3/4:") for one in prepare(piece(time_signatures=(TimeSignature(0, 3, 4),))).remarks
    )
    lonely = prepare(Score(make_notes([0], [4], [60]), 4))
    assert [one.split(";")[0].split(":")[0] for one in lonely.remarks] == [
        "there is no accompaniment to begin with",
        "no time signature is stated",
    ]


@pytest.mark.parametrize("ticks", [1, 6, 220, 480, 32767])
def test_any_grid_can_be_written(ticks: int, model: BMST) -> None:
    score = Score(make_notes([0, ticks], [ticks, ticks], [72, 74]), ticks, voices=("melody",))
    *_, last = rearrange(prepare(score), model, n_sweeps=1)
    found = last.score()
    read_midi(write_midi(found))
    assert (found.voice(0)["onset_tick"] / found.ticks_per_quarter).tolist() == [0, 1]


# --- sweeps


def test_models_are_told_apart(model: BMST) -> None:
    assert isinstance(model, SweptTransfer)
    assert isinstance(Octave(), StyleTransfer)
    assert not isinstance(Octave(), SweptTransfer)


@pytest.mark.slow
def test_the_last_sweep_is_what_transfer_gives(model: BMST) -> None:
    prepared = prepare(piece())
    found = list(rearrange(prepared, model, seed=5))
    assert [(one.done, one.total, one.complete) for one in found] == [(1, 3, False), (2, 3, False), (3, 3, True)]
    whole = model.transfer(prepared.arrangement, rng=np.random.default_rng(5))
    assert np.array_equal(found[-1].arrangement().accompaniment.cells, whole.accompaniment.cells)
    assert not np.array_equal(found[0].state.cells, found[-1].state.cells)  # type: ignore[union-attr]


@pytest.mark.slow
def test_a_run_goes_on_from_its_file(model: BMST, tmp_path: Path) -> None:
    prepared = prepare(piece())
    *_, whole = rearrange(prepared, model, seed=5)
    first = next(rearrange(prepared, model, seed=5))
    assert first.state is not None
    first.state.save(tmp_path / "state.npz")
    start = model.read_state(tmp_path / "state.npz")
    again = list(rearrange(prepared, model, seed=5, start=start))
    assert [one.done for one in again] == [1, 2, 3]
    assert rows(again[-1].score(), 1) == rows(whole.score(), 1)
    assert [one.done for one in rearrange(prepared, model, seed=5, start=again[-1].state)] == [3]
    for changed in ({"seed": 6}, {"seed": 5, "n_sweeps": 4}):
        with pytest.raises(OtherResultsError):
            rearrange(prepared, model, start=start, **changed)
    with pytest.raises(OtherResultsError):
        rearrange(prepare(piece(), "Chords"), model, seed=5, start=start)


def test_a_plain_model_writes_all_at_once() -> None:
    prepared: Prepared = prepare(piece(), steps_per_quarter=4)
    (only,) = rearrange(prepared, Octave())
    assert (only.done, only.total, only.state) == (1, 1, None)
    assert set(only.score().voice(1)["pitch"].tolist()) == {60, 62, 64, 65}
    with pytest.raises(InvalidInputError, match="octave writes all at once"):
        rearrange(prepared, Octave(), n_sweeps=2)
    with pytest.raises(InvalidInputError, match="prepared for 8 steps a quarter, the model takes 4"):
        rearrange(prepare(piece()), Octave())


@pytest.mark.parametrize("options", [{"seed": -1}, {"n_sweeps": 0}])
def test_numbers_out_of_range(options: dict[str, int], model: BMST) -> None:
    with pytest.raises(InvalidInputError, match="must be at least"):
        rearrange(prepare(piece()), model, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(("numerator", "denominator"), [(6, 8), (5, 4), (3, 2)])
def test_meters_that_models_hardly_know_are_refused_unless_asked_for(numerator: int, denominator: int) -> None:
    score = piece(time_signatures=(TimeSignature(0, numerator, denominator),))
    with pytest.raises(InvalidInputError, match=rf"in {numerator}/{denominator} from tick 0 on.*`any_meter=True`"):
        prepare(score)
    assert any(remark.startswith("the meter is") for remark in prepare(score, any_meter=True).remarks)


def test_a_pickup_is_no_other_meter() -> None:
    pickup = (TimeSignature(0, 1, 8), TimeSignature(240, 4, 4))
    assert prepare(piece(time_signatures=pickup)).arrangement.melody.bar_phase[0] == 0.875
