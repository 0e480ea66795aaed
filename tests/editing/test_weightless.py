"""Edits without weights do to music what they say, and leave the rest alone."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from tests.editing.house import ASK, RATE, audio_request, recording, score_request, triads

from music_evals.annotations import DRUMS, NOTE_DTYPE, EditInstruction, EditRequest, Score, targets_of
from music_evals.editing.controls import Identity, SimpleEdit, Unrelated, unrelated_score
from music_evals.editing.weightless import (
    Effects,
    Equaliser,
    HpssRemix,
    NoiseVocoder,
    Reorchestration,
    TimeStretch,
    Transposition,
)
from music_evals.errors import InvalidInputError, UnsupportedEditError
from music_evals.symbolic.notes import make_notes

Array = npt.NDArray[np.float64]


def tones(*frequencies_hz: float, seconds: float = 2.0) -> EditRequest:
    time_sec = np.arange(round(seconds * RATE)) / RATE
    mix = sum(0.1 * np.sin(2 * np.pi * hz * time_sec) for hz in frequencies_hz)
    return EditRequest(source_id="tones", instruction=ASK, audio=np.asarray(mix, np.float32)[None], sample_rate=RATE)


def spectrum(samples: npt.NDArray[np.float32]) -> tuple[Array, Array]:
    middle = samples[0, len(samples[0]) // 4 : -len(samples[0]) // 4]
    power = np.abs(np.fft.rfft(middle * np.hanning(len(middle)))) ** 2
    return np.fft.rfftfreq(len(middle), 1 / RATE), power


def test_identity_is_the_source_bit_for_bit() -> None:
    request = audio_request(channels=2)
    (result,) = Identity().edit([request])
    assert np.array_equal(result.audio, request.audio)
    assert result.log["gain_db"] == 0
    (score,) = Identity().edit([score_request()])
    assert score.score is not None
    assert score.score.to_dict() == triads().to_dict()


@pytest.mark.parametrize(
    ("targets", "steps"),
    [
        ("transpose=+2; tempo=1.25x", [Transposition(semitones=2.0), TimeStretch(rate=1.25)]),
        ("length=0.5x", [TimeStretch(rate=2.0)]),
        ("loudness=+6 dB; tempo=120 bpm; key=A minor", []),
    ],
)
def test_the_simple_edit_does_what_targets_name(targets: str, steps: list[Transposition | TimeStretch]) -> None:
    """As the edits without weights would, one after the other; what it cannot follow stays as it is."""
    instruction = EditInstruction(text="Change it.", targets=targets_of(targets))
    request = expected = EditRequest(source_id="triads", instruction=instruction, score=triads())
    for step in steps:
        expected = EditRequest(source_id="triads", instruction=ASK, score=step.edit([expected])[0].score)
    (result,) = SimpleEdit().edit([request])
    assert result.score is not None
    assert expected.score is not None
    assert result.score.to_dict() == expected.score.to_dict()


def test_the_simple_edit_reaches_a_length_in_seconds() -> None:
    instruction = EditInstruction(text="Longer.", targets=targets_of("length=30 s"))
    (result,) = SimpleEdit().edit([EditRequest(source_id="triads", instruction=instruction, score=triads())])
    assert result.score is not None
    assert float(result.score.seconds(result.score.end_tick)) == pytest.approx(30)


def test_unrelated_music_does_not_depend_on_the_notes_of_the_source() -> None:
    (result,) = Unrelated().edit([audio_request()])
    assert result.audio is not None
    source = recording()
    alike = np.corrcoef(result.audio[0], source[0])[0, 1]
    assert abs(alike) < 0.2
    drawn = {unrelated_score(8, np.random.default_rng(seed)).tempos[0].bpm for seed in range(20)}
    assert len(drawn) > 10
    for seed in range(20):
        piece = unrelated_score(8, np.random.default_rng(seed))
        end_sec = float(piece.seconds(piece.end_tick))
        bar_sec = 240 / piece.tempos[0].bpm
        assert 8 <= end_sec < 8 + bar_sec + 1e-9


@pytest.mark.parametrize("semitones", [-5, 3])
def test_a_tone_is_transposed_by_semitones(semitones: int) -> None:
    (result,) = Transposition(semitones=semitones).edit([tones(440.0)])
    hz, power = spectrum(result.audio)
    assert hz[power.argmax()] == pytest.approx(440 * 2 ** (semitones / 12), rel=0.005)


def test_drums_of_a_score_are_not_transposed() -> None:
    notes = make_notes([0, 0], [4, 4], [60, 38], 80, [0, 1])
    source = Score(notes, 4, voices=("piano", "drums"), programs=(0, DRUMS))
    (result,) = Transposition(semitones=4).edit([score_request(score=source)])
    assert result.score is not None
    assert sorted(result.score.notes["pitch"].tolist()) == [38, 64]


def test_impossible_transpositions_are_refused() -> None:
    with pytest.raises(UnsupportedEditError):
        Transposition(semitones=0.5).edit([score_request()])
    high = Score(make_notes([0], [4], [120], 80, 0), 4)
    with pytest.raises(UnsupportedEditError):
        Transposition(semitones=12).edit([score_request(score=high)])
    with pytest.raises(InvalidInputError, match="`semitones`"):
        Transposition(semitones=25)
    empty = Score(np.zeros(0, NOTE_DTYPE), 4)
    (result,) = Transposition(semitones=2).edit([score_request(score=empty)])
    assert result.score is not None
    assert len(result.score.notes) == 0


def test_a_stretch_changes_time_and_not_pitch() -> None:
    (result,) = TimeStretch(rate=1.25).edit([tones(440.0)])
    assert result.audio.shape[1] == pytest.approx(2 * RATE / 1.25, rel=0.01)
    hz, power = spectrum(result.audio)
    assert hz[power.argmax()] == pytest.approx(440, rel=0.005)
    (score,) = TimeStretch(rate=1.25).edit([score_request()])
    assert score.score is not None
    assert score.score.seconds(score.score.end_tick) == pytest.approx(8 / 1.25)
    (silent_tempo,) = TimeStretch(rate=2).edit([score_request(score=Score(triads().notes, 4))])
    assert silent_tempo.score is not None
    assert [tempo.bpm for tempo in silent_tempo.score.tempos] == [240.0]


def test_reorchestration_changes_instruments_alone() -> None:
    source = Score(make_notes([0, 0], [4, 4], [60, 38], 80, [0, 1]), 4, voices=("a", "b"), programs=(40, DRUMS))
    for seed in range(20):
        (result,) = Reorchestration().edit([score_request(score=source, seed=seed)])
        assert result.score is not None
        assert np.array_equal(result.score.notes, source.notes)
        melodic, drums = result.score.programs
        assert drums == DRUMS
        assert melodic // 8 != 40 // 8
        assert 0 <= melodic < 14 * 8


def test_the_vocoder_keeps_pitch_classes_and_loses_octaves() -> None:
    (result,) = NoiseVocoder().edit([tones(440.0, 660.0, seconds=4)])  # A4 and E5
    hz, power = spectrum(result.audio)
    pitch = 69 + 12 * np.log2(np.maximum(hz, 1) / 440)
    classes = np.bincount(np.round(pitch[1:]).astype(int) % 12, weights=power[1:], minlength=12)
    assert set(np.argsort(classes)[-2:]) == {9, 4}
    assert classes[[9, 4]].sum() > 0.8 * classes.sum()
    octaves = [power[np.abs(pitch - p) < 0.5].sum() for p in (45, 57, 69, 81)]  # A2 to A5
    assert min(octaves) > 0.02 * sum(octaves), "the source has nothing but A4"


def test_the_vocoder_keeps_onsets() -> None:
    request = tones(440.0, seconds=2)
    gated = request.audio.copy()
    gated[:, RATE // 2 : RATE] = 0
    (result,) = NoiseVocoder().edit([audio_request(audio=gated)])
    rms = [
        np.sqrt(np.mean(result.audio[0, int(a * RATE) : int(b * RATE)] ** 2)) for a, b in ((0.1, 0.45), (0.55, 0.95))
    ]
    assert rms[1] < 0.02 * rms[0]


def test_hpss_takes_hits_away() -> None:
    request = tones(440.0)
    clicked = request.audio.copy()
    clicked[:, 5000::5000] += 0.8
    (result,) = HpssRemix(percussive_db=-60).edit([audio_request(audio=clicked)])
    assert np.abs(result.audio).max() / np.sqrt(np.mean(result.audio**2)) < 0.6 * (
        np.abs(clicked).max() / np.sqrt(np.mean(clicked**2))
    )
    (same,) = HpssRemix(percussive_db=0).edit([audio_request(audio=clicked)])
    assert np.abs(same.audio - clicked).max() < 0.02  # the two parts make the whole


def test_shelves_reach_their_gains() -> None:
    request = tones(60.0, 1000.0, 9000.0)
    (result,) = Equaliser(low_db=6, high_db=-12, low_hz=250, high_hz=3000).edit([request])
    hz, before = spectrum(request.audio)
    _, after = spectrum(result.audio)
    gain = {
        at: 10 * np.log10(after[np.abs(hz - at) < 5].sum() / before[np.abs(hz - at) < 5].sum())
        for at in (60, 1000, 9000)
    }
    assert gain[60] - gain[1000] == pytest.approx(6, abs=0.7)
    assert gain[9000] - gain[1000] == pytest.approx(-12, abs=1.0)
    (flat,) = Equaliser(low_db=0, high_db=0).edit([request])
    assert np.abs(flat.audio - request.audio).max() < 1e-6


def test_effects_add_overtones_and_a_tail() -> None:
    (driven,) = Effects(drive_db=24, reverb_sec=0).edit([tones(440.0)])
    hz, power = spectrum(driven.audio)
    third = power[np.abs(hz - 1320) < 20].sum() / power[np.abs(hz - 440) < 20].sum()
    assert third > 0.005  # tanh makes odd harmonics
    stopped = tones(440.0).audio.copy()
    stopped[:, RATE:] = 0
    (room,) = Effects(drive_db=0, reverb_sec=2.0).edit([audio_request(audio=stopped)])
    assert np.sqrt(np.mean(room.audio[0, RATE + 2000 : RATE + 6000] ** 2)) > 1e-3
    (dry,) = Effects(drive_db=0, reverb_sec=0).edit([audio_request(audio=stopped)])
    assert np.abs(dry.audio - stopped).max() < 1e-6


@pytest.mark.parametrize(
    ("kind", "wrong"),
    [
        (TimeStretch, {"rate": 0}),
        (NoiseVocoder, {"highest_hz": 10}),
        (HpssRemix, {"harmonic_db": 99}),
        (Equaliser, {"low_hz": 1}),
        (Effects, {"wet": 1.5}),
    ],
)
def test_parameters_out_of_range_are_named(kind: type, wrong: dict[str, float]) -> None:
    with pytest.raises(InvalidInputError, match=f"`{next(iter(wrong))}`"):
        kind(**wrong)
