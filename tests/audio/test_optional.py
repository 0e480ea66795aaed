"""Backends that need a package of their own: run where the package is installed, guarded where it is not."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from music_evals.audio.extraction import extract
from music_evals.audio.io import load_audio
from music_evals.audio.optional import _process
from music_evals.errors import BackendError, MissingBackendError

RATE = 22050
BPM = 120.0


def skip_without(package: str) -> None:
    """Skip where a package is not installed; some can be imported in their worker's process only."""
    if importlib.util.find_spec(package) is None:
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


class TestEssentia:
    @pytest.fixture(autouse=True)
    def _needs_essentia(self):
        skip_without("essentia")

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
            monkeypatch.setattr(_process, "__file__", str(tmp_path / "_process.py"))
            return _process.run_worker("toy", "task", clicks_on_a_c_major_triad)

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
        monkeypatch.setattr(_process, "TIMEOUT_SEC", 0.3)
        with pytest.raises(BackendError, match="took more than"):
            run("import time; time.sleep(60)")


def test_workers_do_not_shadow_what_they_run():
    """A script's folder comes first on its path: a module called madmom there would hide the package."""
    names = {path.stem for path in (Path(_process.__file__).parent / "workers").glob("*.py")} - {"__init__"}
    assert names == {"madmom_worker", "msaf_worker"}
