"""MP4, AAC and WebM: containers made by hand are walked, and files of ffmpeg are read by it alone."""

from __future__ import annotations

import shutil
import struct
import subprocess
import sys
import time
import types
from pathlib import Path

import hypothesis.strategies as st
import numpy as np
import pytest
import soundfile
from hypothesis import given

from music_evals.audio import containers, decoding
from music_evals.audio.containers import read_container
from music_evals.audio.decoding import decoder_versions
from music_evals.audio.io import AudioLimits, AudioPolicy, check_header, load_audio, load_channels
from music_evals.errors import FileTooLargeError, MissingBackendError, MusicEvalsError, UnreadableFileError
from music_evals.pipelines.preservation import evaluate_preservation

RATE = 44100
RAW = AudioPolicy(peak_normalise=False)
BY_FFMPEG = AudioPolicy(peak_normalise=False, decoder="ffmpeg")


def box(name: bytes, content: bytes = b"") -> bytes:
    return struct.pack(">I4s", 8 + len(content), name) + content


def adts(n_bytes: int) -> bytes:
    """A frame of AAC-LC, 44.1 kHz, mono, without a checksum: its header and nonsense."""
    size = n_bytes + 7
    head = bytes([0xFF, 0xF1, 0x50, 0x40 | size >> 11, size >> 3 & 0xFF, (size & 7) << 5 | 0x1F, 0xFC])
    return head + bytes([7]) * n_bytes


def element(name: bytes, content: bytes = b"", size: bytes = b"") -> bytes:
    return name + (size or struct.pack(">I", 0x10000000 | len(content))) + content


EBML, SEGMENT, CLUSTER, BLOCK, INFO = b"\x1aE\xdf\xa3", b"\x18S\x80g", b"\x1fC\xb6u", b"\xa3", b"\x15I\xa9f"
UNKNOWN = b"\x01" + b"\xff" * 7

CONTAINERS = {
    "mp4": box(b"ftyp", b"M4A ") + box(b"moov", bytes(90)) + box(b"mdat", b"sound" * 50),
    "mp4_64": box(b"ftyp", b"M4A ") + struct.pack(">I4sQ", 1, b"mdat", 116) + bytes(100) + box(b"moov", bytes(9)),
    "aac": b"".join(adts(n) for n in (100, 250, 33)),
    "aac_tagged": b"ID3\x04\0\0\0\0\0\x0a" + bytes(10) + adts(200),
    "webm": element(EBML, b"webm") + element(SEGMENT, element(INFO, b"abc") + element(CLUSTER, element(BLOCK, b"xyz"))),
    "webm_stream": element(EBML, b"webm")
    + element(SEGMENT, element(INFO, b"abc") + element(CLUSTER, element(BLOCK, b"x" * 90), UNKNOWN), UNKNOWN),
}
FORMATS = {"mp4": "MP4", "mp4_64": "MP4", "aac": "AAC", "aac_tagged": "AAC", "webm": "MATROSKA",
           "webm_stream": "MATROSKA"}  # fmt: skip


def test_every_kind_that_is_walked_is_named_as_readable():
    """The walks, the demuxers of ffmpeg and the words of the cards know the same kinds."""
    assert decoding._FORMATS.keys() | decoding._OTHERS.keys() == decoding._DEMUXERS.keys()
    assert set(FORMATS.values()) == decoding._OTHERS.keys()
    assert decoding.READABLE == (
        "WAV, FLAC, OGG, MP3, AIFF; MP4 (m4a), AAC, WebM or Matroska where ffmpeg or torchcodec is installed"
    )


def write(folder: Path, content: bytes, name: str = "take.m4a") -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


class TestWalks:
    @pytest.mark.parametrize("kind", sorted(CONTAINERS))
    @pytest.mark.parametrize("tail", [b"", bytes(100)])
    def test_a_whole_one(self, tmp_path, kind, tail):
        assert read_container(write(tmp_path, CONTAINERS[kind] + tail)).format == FORMATS[kind]

    @pytest.mark.parametrize("kind", sorted(CONTAINERS))
    @pytest.mark.parametrize("missing", [1, 20])
    def test_one_whose_end_is_missing(self, tmp_path, kind, missing):
        path = write(tmp_path, CONTAINERS[kind][:-missing])
        with pytest.raises(UnreadableFileError, match=r"take\.m4a: .*(claims|is cut|without).*get a whole copy"):
            read_container(path)

    @pytest.mark.parametrize("kind", ["mp4", "aac", "webm"])
    def test_junk_at_the_end(self, tmp_path, kind):
        with pytest.raises(UnreadableFileError, match=r"where the next should be|or one that is cut"):
            read_container(write(tmp_path, CONTAINERS[kind] + b"\0\1\2\3\4\5\6\7\xff\xff\xff\xff\xff"))

    def test_an_mp4_that_was_never_finished(self, tmp_path):
        with pytest.raises(UnreadableFileError, match="without a moov and an mdat box"):
            read_container(write(tmp_path, box(b"ftyp", b"M4A ") + box(b"mdat", bytes(99))))

    @pytest.mark.parametrize(
        ("content", "match"),
        [
            (box(b"ftyp") + box(b"free") * 20_000, "more than 10000 boxes"),
            (element(EBML) + b"\xec\x80" * 5_001, "more than 5000 elements"),
            (box(b"ftyp") + struct.pack(">I4sQ", 1, b"mdat", 2**63), "claims 9223372036854775808 bytes"),
            (box(b"ftyp") + struct.pack(">I4s", 3, b"mdat") + bytes(99), "claims 3 bytes"),
        ],
    )
    def test_hostile_ones_end_soon(self, tmp_path, monkeypatch, content, match):
        monkeypatch.setattr(containers, "_MAX_ELEMENTS", 5_000)  # of 500,000, which take a second
        with pytest.raises(UnreadableFileError, match=match):
            read_container(write(tmp_path, content))

    @given(kind=st.sampled_from(sorted(CONTAINERS)), tail=st.binary(max_size=200), kept=st.integers(0, 400))
    def test_nonsense_ends_with_a_name(self, tmp_path_factory, kind, tail, kept):
        path = write(tmp_path_factory.mktemp("nonsense"), CONTAINERS[kind][:kept] + tail)
        try:
            read_container(path)
        except UnreadableFileError as error:
            assert "take.m4a" in str(error)  # noqa: PT017 - it may be whole


@pytest.fixture
def _nothing_installed(monkeypatch):
    monkeypatch.setenv("PATH", "")
    for name in ("torchcodec", "torchcodec.decoders"):  # imported already or not
        monkeypatch.setitem(sys.modules, name, None)
    decoding.ffmpeg_version.cache_clear()
    yield
    decoding.ffmpeg_version.cache_clear()


@pytest.mark.usefixtures("_nothing_installed")
class TestNeitherIsThere:
    @pytest.mark.parametrize("kind", sorted(CONTAINERS))
    def test_both_are_named_and_the_way_out(self, tmp_path, kind):
        path = write(tmp_path, CONTAINERS[kind])
        for ask in (load_audio, check_header):
            with pytest.raises(UnreadableFileError) as caught:
                ask(path)
            for word in ("take.m4a", "ffmpeg", "torchcodec", "install", "WAV or FLAC"):
                assert word in str(caught.value)

    def test_a_cut_file_is_a_cut_file(self, tmp_path):
        with pytest.raises(UnreadableFileError, match="get a whole copy"):
            load_audio(write(tmp_path, CONTAINERS["mp4"][:-1]))

    def test_the_named_decoder_is_missing(self, tmp_path):
        for ask in (lambda: load_audio(write(tmp_path, b"RIFF"), policy=BY_FFMPEG), lambda: decoder_versions("ffmpeg")):
            with pytest.raises(MissingBackendError, match="'ffmpeg'"):
                ask()


@pytest.mark.usefixtures("_nothing_installed")
class TestTorchcodecAlone:
    """What is made of its answers; the package itself stands in `test_io`, where it is installed."""

    @staticmethod
    def decoder(seconds: float | None, held: int = RATE) -> type:
        class Decoder:
            metadata = types.SimpleNamespace(sample_rate=RATE, num_channels=2, duration_seconds_from_header=seconds)

            def __init__(self, path: Path) -> None:
                assert path.name == "take.m4a"

            def get_all_samples(self) -> types.SimpleNamespace:
                samples = np.stack([np.sin(np.arange(held) / 9), np.zeros(held)]).astype(np.float32)
                return types.SimpleNamespace(data=types.SimpleNamespace(numpy=lambda: samples))

        return Decoder

    @pytest.fixture
    def installed(self, monkeypatch):
        monkeypatch.setattr(decoding.importlib.metadata, "version", lambda name: f"1.2.3 of {name}")
        return lambda decoder: monkeypatch.setattr(decoding, "_torchcodec_decoder", lambda: decoder)

    @pytest.mark.parametrize("seconds", [1.0, None])
    def test_it_reads_what_soundfile_does_not(self, tmp_path, installed, seconds):
        installed(self.decoder(seconds))
        audio = load_audio(write(tmp_path, CONTAINERS["aac"]), policy=AudioPolicy(RATE, peak_normalise=False))
        assert audio.read_by == "torchcodec 1.2.3 of torchcodec"
        np.testing.assert_allclose(audio.samples, np.sin(np.arange(RATE) / 9) / 2, atol=1e-6)

    def test_fewer_samples_than_claimed(self, tmp_path, installed):
        installed(self.decoder(1.0, RATE // 2))
        with pytest.raises(UnreadableFileError, match=f"claims {RATE} frames, {RATE // 2} were decoded"):
            load_audio(write(tmp_path, CONTAINERS["mp4"]))

    def test_a_cut_file_does_not_reach_it(self, tmp_path, installed):
        installed(None)
        with pytest.raises(UnreadableFileError, match="258"):
            load_audio(write(tmp_path, CONTAINERS["mp4"][:-1]))


@pytest.fixture
def impostor(tmp_path, monkeypatch):
    """Return what puts a script in the place of ffmpeg."""

    def install(body: str) -> Path:
        folder = tmp_path / "bin"
        folder.mkdir()
        script = folder / "ffmpeg"
        script.write_text(f'#!/bin/sh\nif [ "$1" = -version ]; then echo ffmpeg version 9.9-test; exit; fi\n{body}\n')
        script.chmod(0o755)
        monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
        decoding.ffmpeg_version.cache_clear()
        return folder

    yield install
    decoding.ffmpeg_version.cache_clear()


AU_HEAD = r"printf '.snd\0\0\0\030\377\377\377\377\0\0\0\006\0\0\126\042\0\0\0\001'"  # floats, 22050 Hz, mono
AU_HALVES = AU_HEAD + "\n" + r"printf '\077\000\000\000\277\000\000\000'"  # 0.5, -0.5


class TestTheCommand:
    def test_what_it_is_told(self, tmp_path, impostor):
        folder = impostor(f'for word in "$@"; do echo "$word"; done > "$0.words"\n{AU_HALVES}')
        path = write(tmp_path, CONTAINERS["mp4"], "-i concat:a|$(touch x) %d.m4a")
        audio = load_audio(path, policy=RAW)
        np.testing.assert_array_equal(audio.samples, np.float32([0.5, -0.5]))
        assert audio.read_by == "ffmpeg 9.9-test"
        words = (folder / "ffmpeg.words").read_text().splitlines()
        at = words.index("-i")
        assert words[at - 4 : at + 2] == ["-protocol_whitelist", "file", "-f", "mov", "-i", f"file:{path}"]
        assert {"-nostdin", "-xerror"} <= set(words)

    @pytest.mark.parametrize(("kind", "demuxer"), [("aac", "aac"), ("webm", "matroska")])
    def test_the_demuxer_is_named_after_the_content(self, tmp_path, impostor, kind, demuxer):
        folder = impostor(f'echo "$*" > "$0.words"\n{AU_HALVES}')
        load_audio(write(tmp_path, CONTAINERS[kind], "playlist.m3u"))
        assert f" -f {demuxer} -i " in (folder / "ffmpeg.words").read_text()

    def test_a_mended_file_opens_no_other(self, tmp_path, impostor):
        folder = impostor(f'echo "$*" > "$0.words"; cat > "$0.got"\n{AU_HALVES}')
        path = tmp_path / "stream.wav"
        soundfile.write(path, np.float32([0.5, -0.5]), 22050)
        whole = path.read_bytes()
        path.write_bytes(whole[:40] + b"\xff" * 4 + whole[44:])
        load_audio(path, policy=BY_FFMPEG)
        assert "-protocol_whitelist pipe -f wav -i pipe:0 " in (folder / "ffmpeg.words").read_text()
        assert (folder / "ffmpeg.got").read_bytes() == whole

    @pytest.mark.parametrize("decoder", ["soundfile", "ffmpeg", "torchcodec"])
    @pytest.mark.parametrize(
        "playlist", [b"#EXTM3U\n#EXTINF:1,\n/etc/passwd\n", b"ffconcat version 1.0\nfile /etc/passwd\n", b"v=0\r\nc=IN"]
    )
    def test_a_playlist_is_never_opened(self, tmp_path, impostor, monkeypatch, decoder, playlist):
        folder = impostor('touch "$0.ran"')
        opened = []
        monkeypatch.setattr("music_evals.audio.decoding._torchcodec_decoder", lambda: opened.append)
        for name in ("list.m4a", "list.m3u8"):
            with pytest.raises(UnreadableFileError, match=f"{name}: "):
                load_audio(write(tmp_path, playlist, name), policy=AudioPolicy(decoder=decoder))
        assert not opened
        assert not (folder / "ffmpeg.ran").exists()

    def test_it_is_not_waited_for_for_ever(self, tmp_path, impostor, monkeypatch):
        monkeypatch.setattr(decoding, "TIMEOUT_SEC", 0.3)
        path = write(tmp_path, CONTAINERS["mp4"])
        for body in ("exec sleep 30", f"{AU_HALVES}\nexec sleep 30"):
            impostor(body)
            start = time.monotonic()
            with pytest.raises(UnreadableFileError, match=r"0\.3"):
                load_audio(path)
            assert time.monotonic() - start < 25
            shutil.rmtree(tmp_path / "bin")

    @pytest.mark.parametrize(
        ("body", "match"),
        [
            ("echo first >&2; echo then >&2; exit 3", r"cannot be decoded by ffmpeg \(first\)"),
            ("echo odd >&2; echo \\'0:a:0\\' matches no streams. >&2; exit 1", "holds no audio track"),
            (f"{AU_HALVES}; exit 1", r"cannot be decoded by ffmpeg \(no message\)"),
            ("exit 0", "found no audio"),
            ("printf '012345678901234567890123456789'", "no AU header"),
        ],
    )
    def test_its_failure_is_that_of_the_file(self, tmp_path, impostor, body, match):
        impostor(body)
        with pytest.raises(UnreadableFileError, match=rf"take\.m4a: .*{match}"):
            load_audio(write(tmp_path, CONTAINERS["mp4"]))

    def test_one_that_does_not_end_is_cut_off(self, tmp_path, impostor):
        impostor(f"{AU_HEAD}\nexec cat /dev/zero")
        start = time.monotonic()
        with pytest.raises(FileTooLargeError):
            load_audio(write(tmp_path, CONTAINERS["mp4"]), limits=AudioLimits(max_sec=2))
        assert time.monotonic() - start < 60

    def test_a_look_at_the_header_reads_no_more(self, tmp_path, impostor):
        impostor(f"{AU_HEAD}\nexec cat /dev/zero")
        assert check_header(write(tmp_path, CONTAINERS["mp4"])) == 22050

    def test_one_that_does_not_run_is_not_there(self, tmp_path, impostor, monkeypatch):
        folder = impostor("")
        (folder / "ffmpeg").write_text("#!/bin/sh\nexit 127\n")  # as where a shared library is missing
        for name in ("torchcodec", "torchcodec.decoders"):  # imported already or not
            monkeypatch.setitem(sys.modules, name, None)
        with pytest.raises(UnreadableFileError, match="neither the command ffmpeg nor the package torchcodec runs"):
            load_audio(write(tmp_path, CONTAINERS["mp4"]))

    def test_the_record_of_a_pair_says_who_read_it(self, tmp_path, impostor):
        impostor(AU_HALVES)
        plain = tmp_path / "plain.wav"
        soundfile.write(plain, np.sin(np.arange(RATE) / 9), RATE)
        given = {"metrics": ["circle_of_fifths_distance"], "per_item": True}
        with pytest.warns(match="no pair defines it|undefined"):
            row = evaluate_preservation([plain], [write(tmp_path, CONTAINERS["mp4"])], **given)["per_item"][0]
        assert "prediction: decoded by ffmpeg 9.9-test" in row["notes"]


KINDS = {
    "m4a": ["-c:a", "aac", "-b:a", "192k"],
    "mp4": ["-c:a", "aac", "-b:a", "192k", "-movflags", "frag_keyframe+empty_moov"],
    "aac": ["-c:a", "aac", "-b:a", "192k"],
    "webm": ["-c:a", "libopus", "-b:a", "192k"],
    "mka": ["-c:a", "pcm_s16le"],
}


@pytest.fixture(scope="module")
def encoded(tmp_path_factory) -> dict[str, Path]:
    """Return a chirp of 2 s in stereo as each kind of file."""
    if not decoding.ffmpeg_version():
        pytest.skip("the command ffmpeg does not run here")
    folder = tmp_path_factory.mktemp("encoded")
    soundfile.write(folder / "chirp.wav", np.stack([chirp(), chirp() / 2], axis=1), RATE)
    for kind, options in KINDS.items():
        subprocess.run(
            ["ffmpeg", "-v", "error", "-i", folder / "chirp.wav", *options, folder / f"chirp.{kind}"], check=True
        )
    return {kind: folder / f"chirp.{kind}" for kind in (*KINDS, "wav")}


def chirp() -> np.ndarray:
    time_sec = np.arange(2 * RATE) / RATE
    return 0.5 * np.sin(2 * np.pi * (200 + 200 * time_sec) * time_sec)


class TestFilesOfFFmpeg:
    @pytest.mark.parametrize("kind", sorted(KINDS))
    def test_the_samples_are_there(self, encoded, kind):
        samples, rate = load_channels(encoded[kind])
        assert samples.shape[1] == 2
        audio = load_audio(encoded[kind], policy=AudioPolicy(RATE, peak_normalise=False))
        assert audio.read_by == f"ffmpeg {decoding.ffmpeg_version()}"
        # bare AAC frames and fragments say nothing of the 1,024 samples that the encoder put before the music
        delay = 1024 if kind in {"aac", "mp4"} else 0
        found = audio.samples[delay:]
        assert len(samples) == pytest.approx(2.0 * rate, abs=0.07 * rate)
        middle = slice(5000, 2 * RATE - 5000)
        np.testing.assert_allclose(found[middle], 0.75 * chirp()[middle], atol=0.03)

    def test_what_is_not_packed_is_equal_to_the_bit(self, encoded):
        plain = load_audio(encoded["wav"])
        assert plain.read_by == ""
        assert load_audio(encoded["mka"]).content_hash == plain.content_hash
        named = load_audio(encoded["wav"], policy=AudioPolicy(decoder="ffmpeg"))
        assert (named.content_hash, named.read_by) == (plain.content_hash, "")
        assert set(decoder_versions("ffmpeg")) == {"soxr", "ffmpeg"}

    @pytest.mark.parametrize("kind", sorted(KINDS))
    def test_another_rate_is_decoded_anew(self, encoded, kind):
        audio = load_audio(encoded[kind]).at_rate(48000)
        assert audio.content_hash == load_audio(encoded[kind], policy=AudioPolicy(48000)).content_hash
        assert audio.read_by.startswith("ffmpeg ")

    @pytest.mark.parametrize("kind", sorted(KINDS))
    @pytest.mark.parametrize("share", [0.02, 0.5, 0.97])
    def test_a_cut_file_is_refused(self, encoded, tmp_path, kind, share):
        content = encoded[kind].read_bytes()
        path = write(tmp_path, content[: int(share * len(content))])
        with pytest.raises(UnreadableFileError, match=r"take\.m4a"):
            load_audio(path)

    def test_a_film_without_sound_is_refused(self, encoded, tmp_path):
        path = tmp_path / "film.webm"
        film = ["ffmpeg", "-v", "error", "-f", "lavfi", "-i", "color=c=red:s=16x16:d=0.2", "-c:v", "libvpx", path]
        if subprocess.run(film, check=False).returncode:
            pytest.skip("this ffmpeg encodes no film")
        assert encoded
        for policy in (AudioPolicy(), BY_FFMPEG):
            with pytest.raises(UnreadableFileError, match=r"film\.webm"):
                load_audio(path, policy=policy)

    def test_a_wav_out_of_its_own_pipe_is_read_by_it_too(self, encoded, tmp_path):
        into_a_pipe = ["ffmpeg", "-v", "error", "-i", encoded["wav"], "-f", "wav", "pipe:1"]
        content = subprocess.run(into_a_pipe, check=True, capture_output=True).stdout
        assert struct.unpack("<I", content[4:8]) == (0xFFFFFFFF,)  # states no length
        path = write(tmp_path, content + b"\1", "stream.wav")  # and the first byte of a frame that never came
        named = load_audio(path, policy=AudioPolicy(decoder="ffmpeg"))
        assert (named.content_hash, named.read_by) == (load_audio(encoded["wav"]).content_hash, "")
        assert path.read_bytes() == content + b"\1"

    @pytest.mark.slow
    def test_an_upload_of_that_kind_becomes_its_samples(self, encoded, tmp_path):
        from music_evals.ui.uploads import load_recording, trusted_sources

        expected = load_audio(encoded["m4a"])
        audio = load_recording(encoded["m4a"])
        assert (audio.content_hash, audio.read_by) == (expected.content_hash, expected.read_by)
        with trusted_sources(encoded["m4a"]) as [source]:
            assert load_audio(source).content_hash == expected.content_hash
        with pytest.raises(FileTooLargeError):
            load_recording(encoded["m4a"], max_seconds=1.0)
        with pytest.raises(MusicEvalsError, match="cut"):
            load_recording(write(tmp_path, CONTAINERS["aac"][:-1], "cut.aac"))
