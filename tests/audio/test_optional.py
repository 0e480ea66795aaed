"""Backends that need a package of their own: run where the package is installed, guarded where it is not."""

from __future__ import annotations

import importlib.util
import tempfile
from pathlib import Path

import numpy as np
import pytest
import soundfile
from benchmarks.parity import backends as installing

from music_evals.audio import backends
from music_evals.audio.backends import Backend, get_backend
from music_evals.audio.extraction import extract
from music_evals.audio.io import AudioPolicy, load_audio
from music_evals.audio.optional import madmom, msaf, process
from music_evals.errors import BackendError, MissingBackendError

RATE = 22050
BPM = 120.0


def skip_without(package: str) -> None:
    """Skip where a package is installed neither here nor in an environment of its own."""
    if importlib.util.find_spec(package) is None and not process.installed_version(package):
        pytest.skip(f"{package} is not installed")


@pytest.fixture(scope="module")
def clicks_on_a_c_major_triad():
    """20 s of C major, ten partials a tone, with a click every half second."""
    time = np.arange(20 * RATE) / RATE
    tones = (65.41, 130.81, 164.81, 196.0, 261.63, 329.63, 392.0)
    sound = sum(np.sin(2 * np.pi * f * n * time) / n for f in tones for n in range(1, 11)) / 16
    phase = time % (60 / BPM)
    sound += 0.5 * np.exp(-phase * 80) * np.sin(2 * np.pi * 1000 * phase)
    return load_audio(sound, rate=RATE)


class TestWhatMadmomIsGiven:
    """The recording at its own rate: the official code has it resampled by madmom, which has ffmpeg do it."""

    @pytest.fixture
    def given(self, tmp_path, monkeypatch):
        """Return a function that says how the worker would find a recording: samples, rate and subtype."""
        script = (
            f"import json, shutil, sys; shutil.copy(sys.argv[2], {str(tmp_path / 'given.wav')!r})\n"
            "print(json.dumps([[0.0, 1.0, sys.argv[1]]]))"
        )
        (tmp_path / "workers").mkdir()
        (tmp_path / "workers" / "madmom_worker.py").write_text(script)
        monkeypatch.setattr(process, "__file__", str(tmp_path / "process.py"))
        monkeypatch.setenv("MUSIC_EVALS_CACHE", str(tmp_path))  # madmom has no environment of its own there
        monkeypatch.setattr(madmom, "ffmpeg_version", lambda: "1.0")
        monkeypatch.setattr(madmom, "Chords", lambda _, labels: labels[0])

        def give(audio):
            task = madmom.recognise_chords(audio.at_rate(44100))
            samples, rate = soundfile.read(tmp_path / "given.wav", dtype="float64")
            return task, samples, rate, soundfile.info(tmp_path / "given.wav").subtype

        return give

    @pytest.mark.parametrize("rate", [16000, 44100, 48000])
    def test_a_file_of_16_bits_is_given_as_it_is(self, tmp_path, given, rng, rate):
        values = rng.integers(-32000, 32000, 3 * rate // 1000).astype(np.int16)
        soundfile.write(tmp_path / "take.wav", values, rate)
        audio = load_audio(tmp_path / "take.wav", policy=AudioPolicy(peak_normalise=False))
        task, samples, found_rate, subtype = given(audio)
        assert (task, found_rate, subtype) == ("chords", rate, "PCM_16")
        np.testing.assert_array_equal(samples * 2**15, values)

    @pytest.mark.parametrize("top", [0.3, 1.5])
    def test_what_16_bits_do_not_hold_is_given_as_floats(self, tmp_path, given, rng, top):
        values = rng.uniform(-top, top, 300).astype(np.float32)
        soundfile.write(tmp_path / "take.wav", values, 16000, subtype="FLOAT")
        audio = load_audio(tmp_path / "take.wav", policy=AudioPolicy(peak_normalise=False))
        _, samples, rate, subtype = given(audio)
        assert (rate, subtype) == (16000, "FLOAT")
        np.testing.assert_array_equal(np.float32(samples), values)

    def test_samples_are_given_at_their_rate(self, given, rng):
        values = rng.integers(-32000, 32000, 300).astype(np.int16)
        _, samples, rate, subtype = given(load_audio(values, rate=8000, policy=AudioPolicy(peak_normalise=False)))
        assert (rate, subtype) == (8000, "PCM_16")
        np.testing.assert_array_equal(samples * 2**15, values)

    def test_without_ffmpeg_nothing_else_resamples(self, tmp_path, given, monkeypatch):
        monkeypatch.setattr(madmom, "ffmpeg_version", lambda: "")
        for rate in (44100, 16000):
            soundfile.write(tmp_path / f"{rate}.wav", np.sin(np.arange(rate // 100)), rate)
        assert given(load_audio(tmp_path / "44100.wav"))[2] == 44100
        with pytest.raises(MissingBackendError, match="'madmom_crf'"):
            given(load_audio(tmp_path / "16000.wav"))

    def test_the_receipt_names_ffmpeg(self, monkeypatch):
        monkeypatch.setattr(Backend, "package_versions", lambda _: {"madmom": "0"})
        monkeypatch.setattr("music_evals.audio.backends.ffmpeg_version", lambda: "7.1")
        assert get_backend("chords", "madmom_crf").describe()["packages"] == {"madmom": "0", "ffmpeg": "7.1"}
        assert get_backend("beats", "madmom").describe()["packages"] == {"madmom": "0"}


class TestEssentia:
    @pytest.fixture(autouse=True)
    def _needs_essentia(self):
        skip_without("essentia")

    @pytest.mark.slow
    def test_key(self, clicks_on_a_c_major_triad):
        found = extract(clicks_on_a_c_major_triad, ["key"], backends={"key": "essentia_bgate"}).key
        assert (found.tonic, found.mode) == (0, "major")

    def test_beats(self, clicks_on_a_c_major_triad):
        beats = extract(clicks_on_a_c_major_triad, ["beats"], backends={"beats": "essentia"}).beats
        assert beats.bpm == pytest.approx(BPM, rel=0.01)

    def test_melodia(self, clicks_on_a_c_major_triad):
        track = extract(clicks_on_a_c_major_triad, ["f0"], backends={"f0": "essentia_melodia"}).f0
        assert len(track.times_sec) == pytest.approx(20 * 44100 / 128, rel=0.01)


class TestMadmom:
    @pytest.fixture(autouse=True)
    def _needs_madmom(self):
        skip_without("madmom")

    def test_chords(self, clicks_on_a_c_major_triad):
        chords = extract(clicks_on_a_c_major_triad, ["chords"], backends={"chords": "madmom_crf"}).chords
        seconds = dict.fromkeys(chords.labels, 0.0)
        for (start, end), label in zip(chords.intervals_sec, chords.labels, strict=True):
            seconds[label] += end - start
        assert max(seconds, key=seconds.__getitem__) == "C:maj"

    def test_beats(self, clicks_on_a_c_major_triad):
        beats = extract(clicks_on_a_c_major_triad, ["beats"], backends={"beats": "madmom"}).beats
        assert beats.bpm == pytest.approx(BPM, rel=0.01)


def test_msaf_gives_segments_without_labels(clicks_on_a_c_major_triad):
    skip_without("msaf")
    segments = extract(clicks_on_a_c_major_triad, ["segments"], backends={"segments": "msaf_sf"}).segments
    assert set(segments.labels) == {"-1"}
    assert segments.intervals_sec[-1, 1] == pytest.approx(20.0)


def test_msaf_gives_the_labels_of_the_release(clicks_on_a_c_major_triad):
    skip_without("msaf")
    segments = extract(clicks_on_a_c_major_triad, ["segments"], backends={"segments": "musecpeval_0.3"}).segments
    assert segments.intervals_sec[-1, 1] == pytest.approx(20.0)
    assert "-1" not in segments.labels


class TestLabelsOfTheRelease:
    """What becomes of MSAF's boundaries and labels, with MSAF stood in for."""

    @pytest.fixture
    def segment(self, monkeypatch, clicks_on_a_c_major_triad):
        def segment(times, labels):
            monkeypatch.setattr(msaf, "run_worker", lambda *_: [times, labels])
            return msaf.segment_sf_labelled(clicks_on_a_c_major_triad)

        return segment

    def test_the_end_is_that_of_the_recording(self, segment):
        found = segment([0.0, 5.0, 12.0, 20.04], ["2.0", "0.0", "2.0"])
        assert found.intervals_sec.tolist() == [[0, 5], [5, 12], [12, 20]]
        assert found.labels == ("2.0", "0.0", "2.0")

    def test_labels_that_are_missing_repeat_the_last_and_others_go(self, segment):
        assert segment([0.0, 5.0, 12.0], ["2.0", "0.0"]).labels == ("2.0", "0.0", "0.0")
        assert segment([0.0, 5.0], ["2.0", "0.0", "1.0"]).labels == ("2.0", "0.0")

    def test_one_label_alone_gives_way_to_pitch_classes(self, segment):
        labels = segment([0.0, 5.0, 12.0, 20.0], ["0.0"] * 3).labels
        assert len(set(labels)) == 1
        assert int(labels[0]) in {0, 4, 7}  # of C major


class TestEnvironments:
    """A package may be installed in an environment of its own."""

    @pytest.fixture(autouse=True)
    def _of_our_own(self, tmp_path, monkeypatch):
        monkeypatch.setenv("MUSIC_EVALS_CACHE", str(tmp_path))

    def test_its_version_and_interpreter_are_found(self, tmp_path, clicks_on_a_c_major_triad):
        assert process.installed_version("toy") == ""
        home = tmp_path / "backends" / "toy"
        about = home / "lib" / "python3.11" / "site-packages" / "toy-1.2.dist-info"
        about.mkdir(parents=True)
        (about / "METADATA").write_text("Metadata-Version: 2.1\nName: toy\nVersion: 1.2\n")
        assert process.installed_version("toy") == "1.2"
        (home / "bin").mkdir()
        (home / "bin" / "python").write_text("#!/bin/sh\necho '[\"its own\"]'\n")
        (home / "bin" / "python").chmod(0o755)
        assert process.run_worker("toy", "task", clicks_on_a_c_major_triad) == ["its own"]

    def test_a_backend_takes_the_version_from_there(self, monkeypatch):
        monkeypatch.setattr(backends, "installed_version", lambda package: {"msaf": "0.1.80"}.get(package, ""))
        backends._version.cache_clear()
        assert get_backend("segments", "msaf_sf").package_versions() == {"msaf": "0.1.80"}
        backends._version.cache_clear()

    def test_what_cannot_be_installed_is_told_with_the_reason(self, monkeypatch, capsys):
        monkeypatch.setattr(installing, "install", lambda name: "no wheel" if name == "madmom" else "")
        assert installing.main(["essentia", "madmom"]) == 1
        assert "madmom: not installed: no wheel" in capsys.readouterr().out
        assert installing.main(["essentia"]) == 0
        assert installing.main(["numpy"]) == 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("package", "feature", "backend"),
    [("essentia", "key", "essentia_bgate"), ("madmom", "chords", "madmom_crf"), ("msaf", "segments", "musecpeval_0.3")],
)
def test_it_installs_and_runs(package, feature, backend, clicks_on_a_c_major_triad):
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as folder:
        patch.setenv("MUSIC_EVALS_CACHE", folder)
        if why := installing.install(package):
            pytest.skip(f"{package} does not install here: {why}")
        backends._version.cache_clear()
        found = extract(clicks_on_a_c_major_triad, [feature], backends={feature: backend})
        backends._version.cache_clear()
    assert getattr(found, feature) is not None


def test_beat_this_never_fetches_its_checkpoint(clicks_on_a_c_major_triad, monkeypatch):
    from music_evals.audio.optional import beat_this

    monkeypatch.delenv(beat_this.CHECKPOINT_VARIABLE, raising=False)
    with pytest.raises(MissingBackendError, match=beat_this.CHECKPOINT_VARIABLE):
        beat_this.track_beats(clicks_on_a_c_major_triad)


class TestWorker:
    """The process around a package, with scripts of ours in place of the package's."""

    @pytest.fixture
    def run(self, tmp_path, monkeypatch, clicks_on_a_c_major_triad):
        def run(script: str):
            (tmp_path / "workers").mkdir()
            (tmp_path / "workers" / "toy_worker.py").write_text(script)
            monkeypatch.setattr(process, "__file__", str(tmp_path / "process.py"))
            return process.run_worker("toy", "task", clicks_on_a_c_major_triad)

        return run

    def test_gives_samples_and_returns_json(self, run):
        script = (
            "import json, sys, numpy; print('hello'); print(json.dumps([sys.argv[1], len(numpy.load(sys.argv[2]))]))"
        )
        assert run(script) == ["task", 20 * RATE]

    def test_works_in_a_folder_that_is_removed(self, run):
        folder = run("import os, json; open('left.txt', 'w').close(); print(json.dumps(os.getcwd()))")
        assert not Path(folder).exists()

    @pytest.mark.parametrize("script", ["raise ValueError('no chord at all')", "import os; os.kill(os.getpid(), 11)"])
    def test_a_failure_or_a_crash_is_an_error(self, run, script):
        with pytest.raises(BackendError, match="toy failed with exit status"):
            run(script)

    @pytest.mark.parametrize("script", ["", "print('ready')", "print('[1, 2')"])
    def test_an_end_without_a_result_is_an_error(self, run, script):
        with pytest.raises(BackendError, match="toy ended without a result") as caught:
            run(script)
        assert isinstance(caught.value.__cause__, ValueError)

    def test_a_hang_is_an_error(self, run, monkeypatch):
        monkeypatch.setattr(process, "TIMEOUT_SEC", 0.3)
        with pytest.raises(BackendError, match="took more than"):
            run("import time; time.sleep(60)")


def test_workers_do_not_shadow_what_they_run():
    """A script's folder comes first on its path: a module called madmom there would hide the package."""
    names = {path.stem for path in (Path(process.__file__).parent / "workers").glob("*.py")} - {"__init__"}
    assert names == {"essentia_worker", "madmom_worker", "msaf_worker"}
