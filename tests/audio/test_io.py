"""Decoding: what comes out of each container, and that nothing comes out of a damaged one."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import os
import pickle
import struct
import threading
import time
import tracemalloc
from pathlib import Path

import hypothesis.strategies as st
import numpy as np
import pytest
import soundfile
from hypothesis import given
from hypothesis.extra.numpy import arrays

from music_evals.audio import io as audio_io
from music_evals.audio import samples as blocks_of_samples
from music_evals.audio.io import Audio, AudioLimits, AudioPolicy, check_header, encode_flac, load_audio
from music_evals.errors import (
    FileTooLargeError,
    InvalidAudioError,
    InvalidInputError,
    MissingBackendError,
    MusicEvalsError,
    NoDataError,
    UnreadableFileError,
)

RATE = 44100
RAW = AudioPolicy(peak_normalise=False)

CONTAINERS = {
    "wav": {"format": "WAV", "subtype": "PCM_16"},
    "wav_float": {"format": "WAV", "subtype": "FLOAT"},
    "rf64": {"format": "RF64", "subtype": "PCM_16"},
    "aiff": {"format": "AIFF", "subtype": "PCM_16"},
    "flac": {"format": "FLAC", "subtype": "PCM_16"},
    "flac_24": {"format": "FLAC", "subtype": "PCM_24"},
    "vorbis": {"format": "OGG", "subtype": "VORBIS"},
    "mp3": {"format": "MP3", "subtype": "MPEG_LAYER_III"},
}
LOSSLESS = ("wav", "wav_float", "rf64", "aiff", "flac", "flac_24")


def tone(seconds: float = 1.0, rate: int = RATE, amplitude: float = 0.5, hertz: float = 440.0) -> np.ndarray:
    return amplitude * np.sin(2 * np.pi * hertz * np.arange(round(seconds * rate)) / rate)


def noise(seconds: float = 1.0, channels: int = 2) -> np.ndarray:
    """Whole numbers, which every lossless container holds as they are."""
    values = np.random.default_rng(3).integers(-20_000, 20_000, (round(seconds * RATE), channels))
    return values.astype(np.int16)


def encoded(kind: str, samples: np.ndarray | None = None, rate: int = RATE) -> bytes:
    file = io.BytesIO()
    samples = noise() if samples is None else samples
    if kind == "wav_float" and samples.dtype == np.int16:
        samples = samples / 32768  # else libsndfile writes the numbers as they are
    soundfile.write(file, samples, rate, **CONTAINERS[kind])
    return file.getvalue()


@pytest.fixture(scope="module")
def files() -> dict[str, bytes]:
    return {kind: encoded(kind) for kind in CONTAINERS}


def write(folder: Path, content: bytes, name: str = "take.wav") -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


def refused(path: Path, match: str) -> None:
    with pytest.raises(UnreadableFileError, match=match) as caught:
        load_audio(path)
    assert str(path) in str(caught.value)


class TestWhatComesOut:
    @pytest.mark.parametrize("kind", LOSSLESS)
    def test_a_lossless_file_is_its_samples(self, tmp_path, kind):
        samples = noise()
        audio = load_audio(write(tmp_path, encoded(kind, samples, 22050)), policy=RAW)
        expected = (samples[:, 0].astype(float) + samples[:, 1]) / 2 / 32768
        np.testing.assert_array_equal(audio.samples, expected.astype(np.float32))
        assert audio.sample_rate == 22050

    @pytest.mark.parametrize("kind", ["vorbis", "mp3"])
    def test_a_lossy_file_is_nearly_its_samples(self, tmp_path, kind):
        time_sec = np.arange(2 * RATE) / RATE
        sound = 0.5 * np.sin(2 * np.pi * (200 + 200 * time_sec) * time_sec)  # rises: a shift by one sample would show
        audio = load_audio(write(tmp_path, encoded(kind, sound)), policy=AudioPolicy(RATE, peak_normalise=False))
        assert len(audio.samples) == len(sound)
        middle = slice(2000, -2000)  # the ends are smeared
        np.testing.assert_allclose(audio.samples[middle], sound[middle], atol=0.02)

    def test_the_suffix_says_nothing(self, tmp_path, files):
        names = ("take.wav", "take.flac", "take")
        hashes = {load_audio(write(tmp_path, files["mp3"], name)).content_hash for name in names}
        assert len(hashes) == 1

    @pytest.mark.parametrize("rate", [8000, 11025, 16000, 44100, 48000, 96000, 192_000])
    def test_a_sine_is_resampled_to_that_sine(self, tmp_path, rate):
        sound = tone(1.0, rate, amplitude=0.8)
        audio = load_audio(write(tmp_path, encoded("wav_float", sound, rate)), policy=RAW)
        assert len(audio.samples) == 22050
        middle = slice(2000, -2000)  # the ends of a cut sine ring
        np.testing.assert_allclose(audio.samples[middle], tone(1.0, 22050, 0.8)[middle], atol=2e-4)

    def test_resampling_is_that_of_one_call_on_the_whole_file(self, tmp_path, files, monkeypatch):
        import soxr

        path = write(tmp_path, files["wav"])
        whole, rate = soundfile.read(path, dtype="float32")
        expected = soxr.resample(whole.mean(axis=1, dtype=np.float64).astype(np.float32), rate, 22050, "HQ")
        for block in (1000, 1 << 16):
            monkeypatch.setattr(blocks_of_samples, "BLOCK", block)
            np.testing.assert_array_equal(load_audio(path, policy=RAW).samples, expected)

    def test_six_channels_become_their_mean(self, tmp_path):
        channels = np.stack([np.full(5000, 0.1 * (1 + c)) for c in range(6)], axis=1)
        audio = load_audio(write(tmp_path, encoded("wav_float", channels, 22050)), policy=RAW)
        np.testing.assert_allclose(audio.samples, 0.35, rtol=1e-6)

    def test_the_peak_is_one(self):
        audio = load_audio(tone(amplitude=0.01), rate=RATE)
        assert np.abs(audio.samples).max() == 1.0
        assert not audio.silent

    @pytest.mark.parametrize(("amplitude", "silent"), [(0.00101, False), (0.00099, True), (0.0, True)])
    def test_silence_starts_at_minus_60_dbfs(self, amplitude, silent):
        samples = np.resize(np.float32([amplitude, -amplitude]), 22050)
        audio = load_audio(samples, rate=22050)
        assert audio.silent is silent
        if silent:
            np.testing.assert_array_equal(audio.samples, samples)

    @pytest.mark.parametrize("rate", [22050, 44100, 48000])
    @pytest.mark.parametrize("offset", [0.5, -1.0, 1e-3])
    def test_a_constant_is_silence_at_any_rate(self, tmp_path, rate, offset):
        for noise_of in (0.0, 0.0009, 0.01):
            samples = offset + noise_of * np.resize([1.0, -1.0], rate)
            from_file = load_audio(write(tmp_path, encoded("wav_float", samples, rate)), policy=RAW)
            audio = load_audio(samples, rate=rate)
            # what alternates from sample to sample is gone where the rate is halved
            assert audio.silent == from_file.silent == (noise_of < 0.001 or (rate > 22050 and abs(offset) < 0.001))
            assert audio.at_rate(rate).silent == (noise_of < 0.001)

    def test_music_on_an_offset_is_music(self):
        assert not load_audio(0.3 + tone(amplitude=0.0011), rate=RATE).silent
        assert not load_audio(np.where(np.arange(RATE) == 99, 0.0011, 0.0), rate=22050).silent

    def test_opposite_channels_are_silence_and_it_is_known_why(self, tmp_path):
        opposite = np.stack([tone(), -tone()])
        for source, rate in ((opposite, RATE), (write(tmp_path, encoded("wav", opposite.T)), None)):
            audio = load_audio(source, rate=rate)
            assert audio.silent
            assert audio.cancelled
        for plain in (tone(), np.stack([tone(), tone()]), np.zeros((2, RATE)), np.stack([tone() + 0.1, 0 * tone()])):
            assert not load_audio(plain, rate=RATE).cancelled
        # one of sixteen channels, at -50 dBFS: the mean lies below -60
        assert load_audio(np.stack([tone(amplitude=0.003), *np.zeros((15, RATE))]), rate=RATE).cancelled
        assert not load_audio(np.stack([tone(amplitude=0.0009), *np.zeros((15, RATE))]), rate=RATE).cancelled
        # silent at the rate that is wanted, and not because of its channels
        above = tone(hertz=20000) * np.hanning(RATE)
        audio = load_audio(np.stack([above, above]), rate=RATE)
        assert (audio.silent, audio.cancelled) == (True, False)

    def test_the_policy_is_kept(self):
        policy = AudioPolicy(16000, peak_normalise=False, silence_dbfs=-40)
        audio = load_audio(tone(amplitude=0.009), rate=RATE, policy=policy)
        assert audio.policy == policy
        assert audio.sample_rate == 16000
        assert audio.silent
        assert audio.duration_sec == pytest.approx(1.0)

    def test_the_caller_s_samples_are_left_alone(self):
        samples = tone().astype(np.float32)
        before = samples.copy()
        load_audio(samples, rate=22050)
        np.testing.assert_array_equal(samples, before)


class TestArrays:
    @pytest.mark.parametrize(
        ("dtype", "values", "expected"),
        [
            (np.int16, [-32768, 16384, 0], [-1, 0.5, 0]),
            (np.int32, [-(2**31), 2**30, 0], [-1, 0.5, 0]),
            (np.float32, [-0.5, 2.0, 0], [-0.5, 2.0, 0]),
            (np.float64, [-0.5, 2.0, 0], [-0.5, 2.0, 0]),
        ],
    )
    def test_whole_numbers_are_scaled_by_their_range(self, dtype, values, expected):
        audio = load_audio(np.array(values * 20, dtype), rate=22050, policy=RAW)
        np.testing.assert_array_equal(audio.samples, np.array(expected * 20, np.float32))

    def test_an_int16_array_is_the_wav_file_of_it(self, tmp_path):
        samples = noise()
        from_file = load_audio(write(tmp_path, encoded("wav", samples)))
        assert load_audio(samples, rate=RATE).content_hash == from_file.content_hash
        assert load_audio(samples.T, rate=RATE).content_hash == from_file.content_hash

    @pytest.mark.parametrize("shape", [(2, 2), (16, 10), (17, 17), (2, 3, 1000), (), (1000, 900)])
    def test_an_ambiguous_shape_is_refused(self, shape):
        with pytest.raises(InvalidAudioError, match=r"of which one, the channels"):
            load_audio(np.zeros(shape), rate=RATE)

    @pytest.mark.parametrize("samples", [[1, 2, 3], np.zeros(9, np.uint8), np.zeros(9, complex), ["a"], [None]])
    def test_other_types_are_refused(self, samples):
        with pytest.raises(InvalidAudioError, match="convert them to floats"):
            load_audio(samples, rate=RATE)

    def test_the_rate_is_asked_for(self):
        with pytest.raises(InvalidAudioError, match="pass rate="):
            load_audio(tone())

    @pytest.mark.parametrize("rate", [0, -1, 3999, 400_000, 22050.5, float("nan")])
    def test_absurd_rates_are_refused(self, rate):
        with pytest.raises(InvalidAudioError, match="sample rate"):
            load_audio(tone(), rate=rate)

    @pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e300])
    @pytest.mark.parametrize("channels", [1, 2])
    def test_samples_that_are_not_finite_are_refused(self, value, channels):
        samples = np.zeros((50_000, channels))
        samples[49_999, 0] = value
        with pytest.raises(InvalidAudioError, match="NaN or infinite"):
            load_audio(samples, rate=RATE)

    def test_no_samples_are_refused(self):
        with pytest.raises(InvalidAudioError, match="no samples"):
            load_audio(np.zeros(0), rate=RATE)

    def test_a_long_array_is_refused(self):
        with pytest.raises(FileTooLargeError):
            load_audio(tone(2.0), rate=RATE, limits=AudioLimits(max_sec=1))


class TestNoAudio:
    def test_a_missing_file(self, tmp_path):
        with pytest.raises(NoDataError):
            load_audio(tmp_path / "gone.wav")

    def test_a_folder(self, tmp_path):
        refused(tmp_path, "a folder, not a file")

    def test_a_name_that_no_file_can_have(self, tmp_path):
        refused(tmp_path / "a\0b.wav", "cannot be read")

    def test_a_pipe_does_not_hang(self, tmp_path):
        os.mkfifo(tmp_path / "pipe.wav")
        refused(tmp_path / "pipe.wav", "a pipe or device")

    def test_a_file_that_may_not_be_read(self, tmp_path, files, monkeypatch):
        path = write(tmp_path, files["wav"])

        def denied(*_, **__):
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr(Path, "open", denied)  # root may read everything
        refused(path, "Permission denied")

    @pytest.mark.parametrize(
        ("content", "match"),
        [
            (b"", "empty"),
            (b"hello world\n" * 100, "no WAV, FLAC"),
            (b"RIFF", "no WAV, FLAC"),
            (b"RIFF\x10\0\0\0WAVE", "without a fmt and a data chunk"),
            (b"fLaC\0\0\0\x22", "its header is cut"),
            (b"FORM\0\0\0\x04AIFF", "without a COMM and an SSND chunk"),
            (b"OggS", "is cut"),
            (b"ID3\x04\0\0\0\0\0\0", "no MP3 frame"),
            (b"ID3\x04\0\0\0\0\0\0" + b"text" * 50, "no MP3 frame"),
            (b"\xff\xfb\x90\x64", "MP3 frame is cut"),
            (bytes(5000), "no WAV, FLAC"),
        ],
    )
    def test_what_is_no_audio(self, tmp_path, content, match):
        refused(write(tmp_path, content), match)

    @given(kind=st.sampled_from(sorted(CONTAINERS)), tail=st.binary(max_size=300), kept=st.integers(0, 120))
    def test_nonsense_behind_a_good_beginning_is_refused_by_name(self, tmp_path_factory, files, kind, tail, kept):
        path = write(tmp_path_factory.mktemp("nonsense"), files[kind][:kept] + tail)
        with pytest.raises(MusicEvalsError, match=r"take\.wav"):
            load_audio(path)

    def test_a_file_of_chunks_and_nothing_else_ends_soon(self, tmp_path):
        refused(write(tmp_path, b"RIFF\0\0\0\0WAVE" + b"junk\0\0\0\0" * 20_000), "more than 10000 chunks")

    def test_a_rate_for_a_file(self, tmp_path, files):
        with pytest.raises(InvalidInputError, match="brings its own sample rate"):
            load_audio(write(tmp_path, files["wav"]), rate=RATE)

    @pytest.mark.parametrize("kind", ["wav", "aiff"])
    def test_a_file_without_samples(self, tmp_path, kind):
        with pytest.raises((InvalidAudioError, UnreadableFileError), match=r"take\.wav: .*no (samples|length)"):
            load_audio(write(tmp_path, encoded(kind, np.zeros((0, 1)))))

    def test_samples_that_are_not_finite(self, tmp_path):
        samples = tone()
        samples[RATE // 2] = np.nan
        path = write(tmp_path, encoded("wav_float", samples))
        with pytest.raises(InvalidAudioError, match=r"take\.wav"):
            load_audio(path)

    def test_too_many_channels(self, tmp_path):
        path = write(tmp_path, encoded("wav", np.zeros((100, 17))))
        with pytest.raises(InvalidAudioError, match="17"):
            load_audio(path)

    @pytest.mark.parametrize("rate", [1, 1000, 3_000_000])
    def test_an_absurd_rate(self, tmp_path, rate):
        with pytest.raises(InvalidAudioError, match=f"a sample rate of {rate} Hz"):
            load_audio(write(tmp_path, encoded("wav", tone(), rate)))


class TestTooLarge:
    def test_two_hours_are_refused_before_they_are_decoded(self, tmp_path, monkeypatch):
        path = tmp_path / "long.wav"
        n_bytes = 2 * 3600 * 8000 * 2
        head = struct.pack("<4sI4s4sIHHIIHH4sI", b"RIFF", 36 + n_bytes, b"WAVE", b"fmt ", 16, 1, 1, 8000, 16000, 2, 16,
                           b"data", n_bytes)  # fmt: skip
        path.write_bytes(head)
        os.truncate(path, len(head) + n_bytes)  # zeros that take no room
        monkeypatch.setattr(soundfile.SoundFile, "read", None)
        with pytest.raises(FileTooLargeError, match=r"long\.wav"):
            load_audio(path)

    def test_a_header_is_judged_without_a_sample(self, tmp_path, files, monkeypatch):
        path = write(tmp_path, files["wav"])
        monkeypatch.setattr(soundfile.SoundFile, "read", None)
        check_header(path)
        with pytest.raises(FileTooLargeError, match=r"take\.wav"):
            check_header(path, limits=AudioLimits(max_sec=0.5))
        with pytest.raises(UnreadableFileError, match=r"take\.wav"):
            check_header(write(tmp_path, files["wav"][:-100]))

    def test_an_mp3_file_that_counts_no_frames_is_counted(self, tmp_path, files, monkeypatch):
        content = files["mp3"].replace(b"Xing", bytes(4)).replace(b"Info", bytes(4))
        monkeypatch.setattr(soundfile.SoundFile, "read", None)
        with pytest.raises(FileTooLargeError, match=r"0\.9"):
            load_audio(write(tmp_path, content), limits=AudioLimits(max_sec=0.9))

    def test_frames_are_counted_whatever_the_header_says(self, tmp_path, files, monkeypatch):
        class Endless:
            rate, channels, n_frames = 44100, 1, 1

            def blocks(self, size):
                while True:
                    yield np.zeros((size, 1), np.float32)

        monkeypatch.setitem(audio_io.OPENERS, "soundfile", lambda _: contextlib.nullcontext(Endless()))
        with pytest.raises(FileTooLargeError, match="60"):
            load_audio(write(tmp_path, files["wav"]), limits=AudioLimits(max_sec=60))

    def test_too_many_bytes(self, tmp_path, files):
        with pytest.raises(FileTooLargeError, match="1000"):
            load_audio(write(tmp_path, files["wav"]), limits=AudioLimits(max_bytes=1000))

    @pytest.mark.parametrize("name", ["max_sec", "max_bytes", "max_channels"])
    def test_bounds_are_positive(self, name):
        with pytest.raises(InvalidInputError, match=name):
            AudioLimits(**{name: 0})

    def test_memory_is_that_of_the_result(self, tmp_path):
        path = tmp_path / "long.wav"
        with soundfile.SoundFile(path, "w", 48000, 2, "PCM_16") as file:
            for _ in range(120):
                file.write(noise(48000 / RATE))
        load_audio(tone(), rate=RATE)  # imports
        tracemalloc.start()
        audio = load_audio(path)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert audio.duration_sec == pytest.approx(120)
        # the parts, the whole and its scaled copy, a block; all frames in floats would be 46 MB for each channel alone
        assert peak < 3.5 * audio.samples.nbytes


class TestCutFiles:
    def test_libsndfile_reads_what_is_left_and_says_nothing(self, tmp_path, files):
        """Why containers are walked here."""
        for kind in ("wav", "aiff", "rf64", "vorbis", "mp3"):
            path = write(tmp_path, files[kind][: len(files[kind]) // 2])
            assert 0 < len(soundfile.read(path)[0]) < RATE, kind

    @pytest.mark.parametrize(
        ("kind", "change"),
        [
            ("wav", lambda content: with_data_size(content, 4 * RATE * 2)),
            ("wav", lambda content: with_data_size(content, 4 * RATE // 2)),
            ("aiff", lambda content: with_aiff_frames(content, RATE * 2)),
            ("flac", lambda content: with_flac_frames(content, RATE // 2)),
            ("flac", lambda content: with_flac_checksum(content, bytes(15) + b"\1")),
            ("mp3", lambda content: with_mp3_count(content, 1)[0]),
            ("mp3", lambda content: content[: content.rindex(content[:2])]),
            ("mp3", lambda content: content * 2),
            ("vorbis", lambda content: without_page(content, 2)),
            ("vorbis", lambda content: content * 2),
        ],
    )
    def test_libsndfile_believes_these(self, tmp_path, files, kind, change):
        """Why headers are checked here: where this fails, libsndfile has learnt to refuse, and a check may go."""
        path = write(tmp_path, change(files[kind]))
        with soundfile.SoundFile(path) as file:
            assert len(file.read()) <= file.frames
        refused(path, "claims|follow|states|counts|checksum|several|missing")

    @given(kind=st.sampled_from(sorted(CONTAINERS)), where=st.floats(0, 1, exclude_max=True))
    def test_a_file_cut_anywhere_is_refused(self, tmp_path_factory, files, kind, where):
        content = files[kind][: int(where * len(files[kind]))]
        path = write(tmp_path_factory.mktemp("cut"), content)
        with pytest.raises(UnreadableFileError, match=r"take\.wav"):
            load_audio(path)

    @pytest.mark.parametrize("kind", sorted(CONTAINERS))
    def test_the_last_byte_is_missed(self, tmp_path, files, kind):
        refused(write(tmp_path, files[kind][:-1]), "claims|cut|decoded|checksum")

    def test_a_whole_mp3_frame_is_missed(self, tmp_path, files):
        content = files["mp3"]
        last = content.rindex(content[:2])
        refused(write(tmp_path, content[:last]), "its header counts")

    @pytest.mark.parametrize("kind", ["flac", "flac_24", "vorbis", "mp3"])
    def test_damage_in_the_middle_is_refused(self, tmp_path, files, kind):
        content = bytearray(files[kind])
        half = len(content) // 2
        content[half : half + 600] = bytes(600)
        refused(write(tmp_path, bytes(content)), "no Ogg page|damaged|decoded|no MP3 frame|header counts")

    @pytest.mark.parametrize("kind", ["flac", "vorbis"])
    def test_one_wrong_bit_is_found(self, tmp_path, files, kind):
        content = bytearray(files[kind])
        content[len(content) // 2] ^= 4
        refused(write(tmp_path, bytes(content)), "damaged|decoded|checksum")


def with_data_size(content: bytes, size: int) -> bytes:
    at = content.index(b"data") + 4
    return content[:at] + struct.pack("<I", size) + content[at + 4 :]


def with_aiff_frames(content: bytes, frames: int) -> bytes:
    at = content.index(b"COMM") + 10
    return content[:at] + struct.pack(">I", frames) + content[at + 4 :]


def with_flac_frames(content: bytes, frames: int) -> bytes:
    packed = int.from_bytes(content[18:26], "big") >> 36 << 36 | frames
    return content[:18] + packed.to_bytes(8, "big") + content[26:]


def with_flac_checksum(content: bytes, checksum: bytes) -> bytes:
    return content[:26] + checksum + content[42:]


def with_mp3_count(content: bytes, change: int) -> tuple[bytes, int]:
    at = max(content.find(b"Xing"), content.find(b"Info")) + 8
    count = int.from_bytes(content[at : at + 4], "big") + change
    return content[:at] + count.to_bytes(4, "big") + content[at + 4 :], count


def without_page(content: bytes, page: int) -> bytes:
    starts = [at for at in range(len(content)) if content.startswith(b"OggS", at)]
    return content[: starts[page]] + content[starts[page + 1] :]


class TestHeadersThatLie:
    @pytest.mark.parametrize(
        ("size", "match"),
        [
            (4 * RATE * 2, "claims 352800 bytes of audio, 176400 are there"),
            (4 * RATE + 4, "claims 176404 bytes of audio, 176400 are there"),
            (4 * RATE // 2, "88200 bytes follow the last chunk"),
            (4 * RATE - 8, "8 bytes follow the last chunk"),
            (0x7FFFEF00, "claims 2147479296 bytes"),  # near what a pipe states, and no such number
            (0x80000001, "claims 2147483649 bytes"),
            (0xFFFFFEFF, "claims 4294967039 bytes"),
        ],
    )
    def test_wav(self, tmp_path, files, size, match):
        refused(write(tmp_path, with_data_size(files["wav"], size)), match)

    @pytest.mark.parametrize("kind", ["wav", "wav_float"])
    @pytest.mark.parametrize(  # ffmpeg, sox, arecord, LAME, and what others make of the bounds
        "size",
        [0, 0xFFFFFFFF, 0x7FFFF000, 0x7FFFEFD0, 0x7FFFFF00, 0x7FFFFFFF, 0x80000000, 0x7FFFFFDB, 0xFFFFFFDB, 0xFFFFFF00],
    )
    @pytest.mark.parametrize(
        "whole", [0, 36, 0xFFFFFFFF, 0x7FFFF024, None]
    )  # of the whole, as its header claims it; None: right
    def test_a_wav_written_into_a_pipe_is_read_as_far_as_it_goes(self, tmp_path, files, kind, size, whole):
        content = with_data_size(files[kind], size) + b"\1\2\3"  # of a frame that never came
        if whole is not None:
            content = content[:4] + struct.pack("<I", whole) + content[8:]
        plain = load_audio(write(tmp_path, files[kind], "plain.wav"))
        assert load_audio(write(tmp_path, content)).content_hash == plain.content_hash

    @pytest.mark.parametrize("size", [0x7FFFFFFF, 0xFFFFFF00])
    def test_an_aiff_that_states_no_length_is_refused_for_that(self, tmp_path, files, size):
        at = files["aiff"].index(b"SSND") + 4
        content = files["aiff"][:at] + struct.pack(">I", size) + files["aiff"][at + 4 :]
        refused(write(tmp_path, content), "states no length.*write it to a file, not a pipe")

    def test_libsndfile_believes_that_it_holds_nothing(self, tmp_path, files):
        """Why it is shown a mended header."""
        assert soundfile.info(write(tmp_path, with_data_size(files["wav"], 0))).frames == 0

    def test_rf64_written_into_a_pipe(self, tmp_path, files):
        at = files["rf64"].index(b"ds64") + 16
        for size in (0, 2**64 - 1):
            content = files["rf64"][:at] + struct.pack("<Q", size) + files["rf64"][at + 8 :]
            plain = load_audio(write(tmp_path, files["rf64"], "plain.wav"))
            assert load_audio(write(tmp_path, content)).content_hash == plain.content_hash

    def test_a_stream_of_no_samples(self, tmp_path):
        content = with_data_size(encoded("wav", np.zeros((0, 1))), 0xFFFFFFFF)
        with pytest.raises(MusicEvalsError, match=r"take\.wav"):
            load_audio(write(tmp_path, content))

    def test_an_empty_audio_chunk_before_another_one_is_no_stream(self, tmp_path):
        content = encoded("wav", np.zeros((0, 1))) + b"LIST\x04\0\0\0INFO"
        with pytest.raises(InvalidAudioError, match=r"take\.wav"):
            load_audio(write(tmp_path, content[:4] + struct.pack("<I", len(content) - 8) + content[8:]))

    @pytest.mark.parametrize("kind", ["wav", "wav_float", "rf64", "aiff"])
    @pytest.mark.parametrize("inside", [False, True])  # whether the header counts them in
    @pytest.mark.parametrize("n", [1, 16, 8192])
    def test_zeros_after_the_last_chunk_are_no_lie(self, tmp_path, files, kind, inside, n):
        content = files[kind] + bytes(n)
        if inside and kind != "rf64":
            size = struct.pack(">I" if kind == "aiff" else "<I", len(content) - 8)
            content = content[:4] + size + content[8:]
        plain = load_audio(write(tmp_path, files[kind], "plain.wav"))
        assert load_audio(write(tmp_path, content)).content_hash == plain.content_hash

    @pytest.mark.parametrize(
        "tail", [b"TAG" + bytes(125), b"\xff\0junk" * 9, b"data\xff\xff\xff\x7f", b"text\n", b"\1"]
    )
    def test_junk_beyond_what_the_header_counts_is_no_lie(self, tmp_path, files, tail):
        plain = load_audio(write(tmp_path, files["wav"], "plain.wav"))
        assert load_audio(write(tmp_path, files["wav"] + tail)).content_hash == plain.content_hash

    def test_wav_files_one_after_the_other(self, tmp_path, files):
        refused(write(tmp_path, files["wav"] * 2), "several WAV files one after the other; split them")

    @pytest.mark.parametrize(("at", "value"), [(22, 1), (22, 4), (34, 24), (34, 8)])
    def test_a_wav_whose_channels_or_bits_do_not_fit_its_frames(self, tmp_path, files, at, value):
        content = bytearray(files["wav"])  # 2 channels of 16 bits
        content[at] = value
        refused(write(tmp_path, bytes(content)), f"claims {RATE} frames")

    def test_chunks_after_the_audio_are_no_lie(self, tmp_path, files):
        path = write(tmp_path, files["wav"] + b"LIST\x05\0\0\0INFO!\0" + b"id3 \x02\0\0\0ab")
        assert load_audio(path).content_hash == load_audio(write(tmp_path, files["wav"], "plain.wav")).content_hash

    def test_a_chunk_that_was_not_padded(self, tmp_path):
        file = io.BytesIO()
        soundfile.write(file, tone()[:22051], 22050, format="WAV", subtype="PCM_U8")
        content = file.getvalue()
        end = content.index(b"data") + 8 + 22051
        for padding in (b"", b"\0"):
            path = write(tmp_path, content[:end] + padding + b"LIST\x04\0\0\0INFO")
            assert len(load_audio(path).samples) == 22051

    @pytest.mark.parametrize("frames", [RATE // 2, RATE * 2])
    def test_aiff(self, tmp_path, files, frames):
        refused(write(tmp_path, with_aiff_frames(files["aiff"], frames)), f"claims {frames} frames, {RATE} are there")

    @pytest.mark.parametrize("kind", ["flac", "flac_24"])
    @pytest.mark.parametrize(
        ("frames", "match"), [(0, "states no length"), (RATE // 2, "checksum|claims"), (RATE * 2, "decode|claims")]
    )
    def test_flac(self, tmp_path, files, kind, frames, match):
        refused(write(tmp_path, with_flac_frames(files[kind], frames)), match)

    def test_flac_with_other_samples_than_its_checksum(self, tmp_path, files):
        refused(write(tmp_path, with_flac_checksum(files["flac"], bytes(15) + b"\1")), "checksum")

    @pytest.mark.parametrize("subtype", ["PCM_S8", "PCM_16", "PCM_24"])
    def test_flac_of_any_width_has_the_checksum_of_its_samples(self, tmp_path, subtype):
        path = tmp_path / "a.flac"
        soundfile.write(path, noise() // 256 * 256, 22050, subtype=subtype)
        expected = (noise() // 256).astype(float).mean(axis=1) / 128
        np.testing.assert_array_equal(load_audio(path, policy=RAW).samples, expected.astype(np.float32))

    def test_flac_without_a_checksum_is_read(self, tmp_path, files):
        path = write(tmp_path, with_flac_checksum(files["flac"], bytes(16)))
        assert load_audio(path).content_hash == load_audio(write(tmp_path, files["wav"], "a.wav")).content_hash

    @pytest.mark.parametrize("change", [-1, 1, 100])
    def test_mp3(self, tmp_path, files, change):
        content, count = with_mp3_count(files["mp3"], change)
        refused(write(tmp_path, content), f"counts {count} MP3")

    def test_mp3_files_one_after_the_other(self, tmp_path, files):
        refused(write(tmp_path, files["mp3"] * 2), "its header counts")

    @pytest.mark.parametrize("tail", [b"TAG" + bytes(125), b"APETAGEX" + bytes(24), bytes(500)])
    def test_tags_after_the_last_mp3_frame_are_no_lie(self, tmp_path, files, tail):
        path = write(tmp_path, files["mp3"] + tail)
        assert load_audio(path).duration_sec == pytest.approx(1.0)

    def test_tags_before_the_first_mp3_frame_are_no_lie(self, tmp_path, files):
        path = write(tmp_path, b"ID3\x03\0\0\0\0\x01\x00" + bytes(128) + files["mp3"])
        assert load_audio(path).duration_sec == pytest.approx(1.0)

    def test_mp3_that_changes_its_rate(self, tmp_path, files):
        other = encoded("mp3", tone(0.5, 32000), 32000)
        refused(write(tmp_path, files["mp3"].replace(b"Xing", bytes(4)).replace(b"Info", bytes(4)) + other), "changes")

    def test_ogg_streams_one_after_the_other(self, tmp_path, files):
        refused(write(tmp_path, files["vorbis"] * 2), "several Ogg streams one after the other")

    def test_ogg_without_one_of_its_pages(self, tmp_path, files):
        refused(write(tmp_path, without_page(files["vorbis"], 2)), "Ogg page 2 is missing")


class TestAudio:
    def test_what_is_shared_is_worked_out_once(self):
        audio = load_audio(tone(), rate=RATE)
        calls, found = [], []
        start = threading.Barrier(8)

        def compute() -> object:
            calls.append(threading.get_ident())
            time.sleep(0.05)
            return object()

        def ask() -> None:
            start.wait()
            found.append(audio.share("slow", compute))

        threads = [threading.Thread(target=ask) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(calls) == 1
        assert len(found) == 8
        assert len(set(map(id, found))) == 1

    def test_other_keys_do_not_wait(self):
        audio = load_audio(tone(), rate=RATE)
        inside, done = threading.Event(), threading.Event()
        slow = threading.Thread(target=lambda: audio.share("slow", lambda: (inside.set(), done.wait(10))))
        slow.start()
        assert inside.wait(10)
        assert audio.share("quick", lambda: 3) == 3
        done.set()
        slow.join()

    def test_one_may_be_made_of_another(self):
        audio = load_audio(tone(), rate=RATE)
        assert audio.share("a", lambda: audio.share("b", lambda: 2) + 1) == 3

    def test_a_failure_is_not_kept(self):
        audio = load_audio(tone(), rate=RATE)
        with pytest.raises(ZeroDivisionError):
            audio.share("a", lambda: 1 // 0)
        assert audio.share("a", lambda: 5) == 5

    def test_another_process_gets_the_recording_without_what_was_made_of_it(self, tmp_path, files):
        audio = load_audio(write(tmp_path, files["wav"]))
        audio.share("a", threading.Lock)
        copy = pickle.loads(pickle.dumps(audio))  # noqa: S301 - our own
        np.testing.assert_array_equal(copy.samples, audio.samples)
        assert copy.share("a", lambda: "new") == "new"
        assert copy.at_rate(44100).content_hash == audio.at_rate(44100).content_hash

    def test_the_hash_is_of_samples_rate_and_silence(self):
        samples = tone().astype(np.float32)
        hashes = {
            Audio(samples).content_hash,
            Audio(samples[:-1]).content_hash,
            Audio(samples, 44100).content_hash,
            Audio(samples, silent=True).content_hash,
        }
        assert len(hashes) == 4
        assert Audio(samples.copy()).content_hash in hashes

    def test_a_changed_copy_has_a_hash_of_its_own(self):
        audio = load_audio(tone(), rate=RATE)
        before = audio.content_hash
        assert dataclasses.replace(audio, samples=audio.samples[:-1]).content_hash != before

    @pytest.mark.parametrize("source", ["file", "array"])
    def test_another_rate_is_decoded_anew(self, tmp_path, source):
        sound = noise()
        given = (write(tmp_path, encoded("wav", sound)), {}) if source == "file" else (sound, {"rate": RATE})
        audio = load_audio(given[0], **given[1])
        whole = audio.at_rate(44100)
        assert whole.content_hash == load_audio(sound, rate=RATE, policy=AudioPolicy(44100)).content_hash
        assert audio.at_rate(44100) is whole
        assert whole.at_rate(44100) is whole

    def test_samples_without_a_source_are_resampled(self):
        audio = Audio(tone(1.0, 22050, 1.0).astype(np.float32)).at_rate(44100)
        assert audio.sample_rate == audio.policy.sample_rate == 44100
        np.testing.assert_allclose(audio.samples[4000:-4000], tone(1.0, 44100, 1.0)[4000:-4000], atol=1e-3)

    @pytest.mark.parametrize(
        "samples", [np.zeros(9), np.zeros((2, 9), np.float32), np.zeros(0, np.float32), np.full(9, np.nan, np.float32)]
    )
    def test_what_is_no_audio_is_refused(self, samples):
        with pytest.raises(InvalidAudioError):
            Audio(samples)

    @pytest.mark.parametrize("wrong", [{"sample_rate": 100}, {"decoder": "sox"}])
    def test_a_policy_is_checked(self, wrong):
        with pytest.raises(InvalidInputError, match=next(iter(wrong))):
            AudioPolicy(**wrong)


class TestTorchcodec:
    POLICY = AudioPolicy(decoder="torchcodec")

    def test_it_is_never_taken_for_the_other(self, tmp_path, files, monkeypatch):
        import sys

        for name in ("torchcodec", "torchcodec.decoders"):  # imported already or not
            monkeypatch.setitem(sys.modules, name, None)
        path = write(tmp_path, files["wav"])
        assert load_audio(path).duration_sec == 1.0
        with pytest.raises(MissingBackendError, match="pip install torchcodec"):
            load_audio(path, policy=self.POLICY)

    @pytest.fixture
    def _torchcodec(self):
        try:
            import torchcodec.decoders
        except (ImportError, OSError, RuntimeError) as error:
            pytest.skip(f"torchcodec does not run here: {type(error).__name__}")
        assert torchcodec.decoders

    @pytest.mark.usefixtures("_torchcodec")
    @pytest.mark.parametrize("kind", LOSSLESS)
    def test_it_decodes_the_same_samples(self, tmp_path, files, kind):
        path = write(tmp_path, files[kind])
        assert load_audio(path, policy=self.POLICY).content_hash == load_audio(path).content_hash

    @pytest.mark.usefixtures("_torchcodec")
    def test_it_reads_what_soundfile_does_not(self, tmp_path):
        path = tmp_path / "take.caf"
        soundfile.write(path, noise(), RATE, format="CAF", subtype="PCM_16")
        refused(path, "no WAV, FLAC")
        assert load_audio(path, policy=self.POLICY).duration_sec == 1.0

    @pytest.mark.usefixtures("_torchcodec")
    @pytest.mark.parametrize("kind", sorted(CONTAINERS))
    def test_it_refuses_a_cut_file(self, tmp_path, files, kind):
        path = write(tmp_path, files[kind][: len(files[kind]) // 2])
        with pytest.raises(UnreadableFileError, match=r"take\.wav"):
            load_audio(path, policy=self.POLICY)

    @pytest.mark.usefixtures("_torchcodec")
    def test_text_is_no_audio_for_it_either(self, tmp_path):
        path = write(tmp_path, b"hello world\n" * 100)
        with pytest.raises(UnreadableFileError, match="starts as no kind of audio"):
            load_audio(path, policy=self.POLICY)


sounds = arrays(np.float32, st.integers(10, 3000), elements=st.floats(-1, 1, width=32, allow_subnormal=False)).filter(
    lambda samples: np.abs(samples).max() > 0.25 and np.ptp(samples) > 0.05  # no constant: it is silence
)


class TestLaws:
    @given(samples=sounds, exponent=st.integers(-6, 6), rate=st.sampled_from([8000, 22050, 44100]))
    def test_a_gain_of_a_power_of_two_changes_no_bit(self, samples, exponent, rate):
        samples = np.where(np.abs(samples) < 1e-30, 0, samples)  # what would leave the normal floats
        louder = load_audio(samples * np.float32(2.0**exponent), rate=rate)
        np.testing.assert_array_equal(louder.samples, load_audio(samples, rate=rate).samples)

    @given(samples=sounds, gain=st.floats(0.1, 1), rate=st.sampled_from([8000, 22050, 44100]))
    def test_any_gain_changes_rounding_alone(self, samples, gain, rate):
        softer = load_audio(samples * gain, rate=rate)
        np.testing.assert_allclose(softer.samples, load_audio(samples, rate=rate).samples, atol=1e-6)

    @given(samples=arrays(np.int16, st.tuples(st.integers(50, 2000), st.integers(1, 3))))
    def test_the_container_changes_no_bit(self, tmp_path_factory, samples):
        folder = tmp_path_factory.mktemp("containers")
        kinds = ("wav", "rf64", "aiff", "flac", "flac_24")
        audios = [load_audio(write(folder, encoded(kind, samples), kind)) for kind in kinds]
        assert len({audio.content_hash for audio in audios}) == 1
        np.testing.assert_array_equal(audios[0].samples, load_audio(samples, rate=RATE).samples)

    @given(samples=arrays(np.int16, st.tuples(st.integers(50, 500), st.integers(2, 6))), data=st.data())
    def test_the_order_of_the_channels_changes_no_bit(self, samples, data):
        order = data.draw(st.permutations(range(samples.shape[1])))
        shuffled = load_audio(samples[:, order], rate=RATE)
        np.testing.assert_array_equal(shuffled.samples, load_audio(samples, rate=RATE).samples)


def test_what_is_encoded_is_read_back_and_clipped(rng: np.random.Generator) -> None:
    samples = rng.uniform(-1.2, 1.2, (4000, 2)).astype(np.float32)
    content = encode_flac(samples, 22050)
    read, rate = soundfile.read(io.BytesIO(content), dtype="float64")
    assert (rate, soundfile.info(io.BytesIO(content)).subtype) == (22050, "PCM_16")
    assert np.abs(read - np.clip(samples, -1, 1)).max() <= 2**-15
    assert encode_flac(samples, 22050) == content


@pytest.mark.parametrize("name", ["take.wav", "take.flac", "take.mp3", "take.m4a"])
def test_a_pointer_of_git_lfs_is_named(tmp_path: Path, name: str) -> None:
    pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n"
    refused(write(tmp_path, pointer, name), rf"{name}: a Git LFS pointer.*git lfs pull")
