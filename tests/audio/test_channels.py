"""Recordings as they are: channels, rate and level left alone."""

import numpy as np
import pytest
import soundfile

from music_evals.audio.io import AudioLimits, load_audio, load_channels
from music_evals.errors import FileTooLargeError, InvalidAudioError, InvalidInputError, NoDataError, UnreadableFileError


@pytest.fixture
def stereo() -> np.ndarray:
    return (0.3 * np.random.default_rng(0).uniform(-1, 1, (70000, 2))).astype(np.float32)


@pytest.mark.parametrize("ending", ["wav", "flac"])
def test_a_file_comes_as_it_is(tmp_path, stereo, ending):
    path = tmp_path / f"song.{ending}"
    soundfile.write(path, stereo, 44100, subtype="PCM_16")
    samples, rate = load_channels(path)
    assert (samples.shape, samples.dtype, rate) == ((70000, 2), np.float32, 44100)
    np.testing.assert_allclose(samples, stereo, atol=2**-15)


def test_an_array_may_stand_either_way(stereo):
    for array in (stereo, stereo.T, stereo.astype(np.float64)):
        samples, rate = load_channels(array, rate=48000)
        np.testing.assert_array_equal(samples, stereo)
        assert rate == 48000
    whole = (stereo * 2**15).astype(np.int16)
    np.testing.assert_allclose(load_channels(whole, rate=8000)[0], stereo, atol=2**-14)
    assert load_channels(stereo[:, 0], rate=8000)[0].shape == (70000, 1)


def test_the_mean_of_the_channels_is_what_load_audio_hears(tmp_path, stereo):
    path = tmp_path / "song.wav"
    soundfile.write(path, stereo, 22050, subtype="FLOAT")
    mono = load_channels(path)[0].mean(1)
    np.testing.assert_allclose(load_audio(path).samples, mono / np.abs(mono).max(), atol=1e-6)


def test_what_is_no_recording(tmp_path, stereo):
    with pytest.raises(NoDataError):
        load_channels(tmp_path / "none.wav")
    path = tmp_path / "song.wav"
    soundfile.write(path, stereo, 44100)
    with pytest.raises(FileTooLargeError):
        load_channels(path, limits=AudioLimits(max_sec=1))
    with pytest.raises(InvalidInputError, match="leave rate away"):
        load_channels(path, rate=44100)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(UnreadableFileError):
        load_channels(path)
    with pytest.raises(InvalidAudioError, match="NaN"):
        load_channels(np.array([0.0, np.nan, 0.0]), rate=8000)
    with pytest.raises(InvalidAudioError, match="infinite"):
        load_channels(np.full(20, 1e300), rate=8000)
    with pytest.raises(InvalidAudioError, match="no samples"):
        load_channels(np.zeros(0), rate=8000)
    with pytest.raises(InvalidAudioError, match="rate"):
        load_channels(stereo)
