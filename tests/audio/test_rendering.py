from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from music_evals.annotations import DRUMS, Score, Tempo
from music_evals.audio.rendering import (
    PEAK,
    Kit,
    Timbre,
    find_soundfont,
    harmonics,
    render_additive,
    render_fluidsynth,
    stock_timbre,
)
from music_evals.errors import BackendError, InvalidInputError, MissingBackendError
from music_evals.symbolic.midi import to_pretty_midi, write_midi
from music_evals.symbolic.notes import make_notes

RATE = 22050


def score(*notes: tuple[int, int, int, int], program: int = 80, tempos: tuple[Tempo, ...] = ()) -> Score:
    """Notes of one voice: onset and duration in ticks of 480 a quarter, pitch, velocity."""
    onsets, durations, pitches, velocities = zip(*notes, strict=True) if notes else ((), (), (), ())
    return Score(make_notes(onsets, durations, pitches, velocities), 480, tempos=tempos, programs=(program,))


def partials_hz(samples: np.ndarray, above: float = 0.01) -> np.ndarray:
    """Frequencies of the peaks of the spectrum, in 1 Hz bins of the first second."""
    spectrum = np.abs(np.fft.rfft(samples[:RATE] * np.hanning(RATE)))
    inner = spectrum[1:-1]
    peaks = (inner > spectrum[:-2]) & (inner >= spectrum[2:]) & (inner > above * spectrum.max())
    return np.flatnonzero(peaks) + 1


needs_fluidsynth = pytest.mark.usefixtures("fluidsynth")


def test_seconds_agree_with_pretty_midi() -> None:
    music = score((0, 5000, 60, 90), tempos=(Tempo(100, 90.0), Tempo(1200, 133.0), Tempo(1201, 50.0)))
    ticks = np.array([0, 50, 100, 700, 1200, 1201, 4999])
    theirs = [to_pretty_midi(music).tick_to_time(int(tick)) for tick in ticks]
    np.testing.assert_allclose(music.seconds(ticks), theirs, atol=1e-5)  # MIDI rounds a tempo to microseconds


def test_a_tone_has_the_harmonics_of_its_recipe() -> None:
    organ = Timbre(body=(1.0, 0.0, 0.5), release_sec=0.01)
    samples = render_additive(score((0, 1920, 69, 100)), timbres={0: organ})
    assert partials_hz(samples).tolist() == [440, 1320]


def test_the_edge_is_out_of_tune_by_its_ratio() -> None:
    bar = Timbre(body=(1.0,), edge=(1.0,), edge_ratio=2.75)
    assert partials_hz(render_additive(score((0, 1920, 69, 100)), timbres={0: bar})).tolist() == [440, 1210]


@pytest.mark.parametrize("program", range(0, 96, 5))
def test_nothing_lies_above_the_nyquist_frequency(program: int) -> None:
    timbre = stock_timbre(program)
    pure = Timbre(timbre.body, timbre.edge, timbre.edge_ratio)  # neither noise nor vibrato
    samples = render_additive(score((0, 1920, 105, 100)), timbres={0: pure})  # A7, 3520 Hz
    allowed = {3520 * h for h in (1, 2, 3)} | {3520 * h * timbre.edge_ratio for h in (1, 2, 3)}
    for partial in partials_hz(samples):
        assert min(abs(partial - hz) for hz in allowed) < 2


def test_notes_start_where_the_tempi_put_them() -> None:
    music = score((480, 240, 72, 100), (1440, 240, 72, 100), tempos=(Tempo(0, 60.0), Tempo(960, 120.0)))
    loud = np.abs(render_additive(music)) > 0.05
    onsets = np.flatnonzero(loud & ~np.roll(loud, 1))
    firsts = [onsets[0] / RATE, onsets[onsets > 2 * RATE][0] / RATE]
    np.testing.assert_allclose(firsts, [1.0, 2.5], atol=0.01)
    assert len(render_additive(music)) == round((2.75 + 1) * RATE)


def test_velocity_is_amplitude_to_the_power_of_one_and_a_half() -> None:
    music = score((0, 480, 69, 127), (960, 480, 69, 32))
    samples = render_additive(music, timbres={0: Timbre(body=(1.0,))})
    loud, soft = (np.abs(samples[round(start * RATE) :][: RATE // 2]).max() for start in (0, 1))
    assert soft / loud == pytest.approx((32 / 127) ** 1.5, rel=0.01)


def test_the_same_seed_gives_the_same_samples() -> None:
    music = Score(
        make_notes([0, 0, 480], [480, 480, 480], [60, 38, 64], 90, [0, 1, 0]),
        480,
        voices=("Tune", "Drums"),
        programs=(40, DRUMS),
    )
    first = render_additive(music, seed=3)
    assert first.dtype == np.float32
    assert np.abs(first).max() == pytest.approx(PEAK)
    assert np.array_equal(first, render_additive(music, seed=3))
    assert not np.array_equal(first, render_additive(music, seed=4))


def test_a_score_without_notes_is_a_second_of_silence() -> None:
    assert np.array_equal(render_additive(score()), np.zeros(RATE, dtype=np.float32))


def test_drums_sound_where_they_are_struck_and_a_kit_tunes_them() -> None:
    music = score((480, 10, 36, 100), program=DRUMS)
    stock = render_additive(music)
    assert not stock[: RATE // 2].any()
    assert np.abs(stock[RATE // 2 :][:2000]).max() == pytest.approx(PEAK)
    lower, higher = (
        np.argmax(np.abs(np.fft.rfft(render_additive(music, timbres={0: Kit(pitch=pitch, noise=0)}))))
        for pitch in (1.0, 2.0)
    )
    assert higher / lower == pytest.approx(2, rel=0.15)


@pytest.mark.parametrize(("program", "recipe"), [(DRUMS, Timbre((1.0,))), (0, Kit())])
def test_a_recipe_of_the_wrong_kind_is_refused(program: int, recipe: Timbre | Kit) -> None:
    with pytest.raises(InvalidInputError, match="expected a"):
        render_additive(score((0, 10, 60, 90), program=program), timbres={0: recipe})


def test_harmonics_by_hand() -> None:
    assert harmonics(4, 1.0, even=0.5, first=2.0) == pytest.approx((2, 1 / 4, 1 / 3, 1 / 8))


@pytest.mark.parametrize("program", range(128))
def test_every_program_sounds(program: int) -> None:
    assert np.abs(render_additive(score((0, 96, 60, 90), program=program))).max() == pytest.approx(PEAK)


def test_a_soundfont_that_is_named_but_missing_is_not_replaced(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MUSIC_EVALS_SOUNDFONT", str(tmp_path / "no.sf2"))
    with pytest.raises(MissingBackendError, match=r"no\.sf2.*apt-get install"):
        find_soundfont()


@needs_fluidsynth
def test_fluidsynth_plays_the_pitch_at_its_time_and_ends_a_second_later() -> None:
    samples = render_fluidsynth(write_midi(score((960, 960, 69, 100), tempos=(Tempo(0, 120.0),), program=73)))
    assert len(samples) / RATE == pytest.approx(3.0, abs=0.01)
    assert np.abs(samples[: RATE - 500]).max() < 1e-3
    assert partials_hz(samples[RATE:], 0.5)[0] == pytest.approx(440, abs=3)
    assert np.abs(samples).max() == pytest.approx(PEAK)


@needs_fluidsynth
def test_fluidsynth_is_silent_where_nothing_plays() -> None:
    samples = render_fluidsynth(write_midi(score()))
    assert len(samples)
    assert not samples.any()


@needs_fluidsynth
def test_fluidsynth_hears_nothing_of_the_file_before() -> None:
    one, other = (write_midi(score((0, 480, pitch, 100), program=48)) for pitch in (60, 65))
    first = render_fluidsynth(one)
    render_fluidsynth(other)
    assert np.array_equal(first, render_fluidsynth(one))


@needs_fluidsynth
def test_fluidsynth_refuses_what_is_no_midi_file_and_no_soundfont(tmp_path: Path) -> None:
    with pytest.raises(BackendError, match="MIDI"):
        render_fluidsynth(b"not a file")
    (tmp_path / "empty.sf2").write_bytes(b"nothing")
    with pytest.raises(BackendError, match=r"empty\.sf2"):
        render_fluidsynth(write_midi(score((0, 10, 60, 90))), soundfont=tmp_path / "empty.sf2")
