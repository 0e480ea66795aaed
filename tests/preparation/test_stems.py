"""Stems by a program that stands in for demucs: it takes its options and writes files where demucs writes them."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import datasets
import numpy as np
import pytest
import soundfile

from music_evals.cli import main
from music_evals.errors import MissingBackendError
from music_evals.preparation.stems import about
from music_evals.preparation.task import Settings, run_preparation

RATE = 44100

# As demucs 4.0.1 has it: OUT/MODEL/TRACK/STEM.wav, 16 bits at 44.1 kHz in stereo; messages on stdout, bars on stderr.
PROGRAM = f"""#!{sys.executable}
import argparse, json, sys, time
from pathlib import Path
import numpy as np, soundfile
parser = argparse.ArgumentParser()
parser.add_argument("tracks", nargs="+", type=Path)
parser.add_argument("-n", "--name", default="htdemucs")
parser.add_argument("-o", "--out", type=Path, default=Path("separated"))
parser.add_argument("-d", "--device")
parser.add_argument("--shifts", type=int, default=1)
parser.add_argument("--two-stems", dest="stem")
given = parser.parse_args()
with Path(__file__).with_name("calls.jsonl").open("a") as calls:
    calls.write(json.dumps(sys.argv[1:]) + "\\n")
behaviour = Path(__file__).with_name("behaviour").read_text()
print("Selected model is a bag of 1 models.")
if behaviour == "fails":
    print("Traceback\\nRuntimeError: out of memory", file=sys.stderr)
    sys.exit(3)
for track in given.tracks:
    samples, rate = soundfile.read(track, always_2d=True)
    samples = np.repeat(samples[:, :1], 44100 // rate, axis=0) * np.ones((1, 2))
    samples = samples[: len(samples) // 2] if behaviour == "short" else samples
    folder = given.out / given.name / track.name.rsplit(".", 1)[0]
    folder.mkdir(parents=True)
    stems = ["drums", "bass", "other", "vocals"] if given.stem is None else [given.stem, "no_" + given.stem]
    for place, stem in enumerate(stems):
        if behaviour == "missing" and stem == "vocals":
            continue
        kind = "FLOAT" if behaviour == "floats" else "PCM_16"
        soundfile.write(folder / (stem + ".wav"), samples / (place + 1), 44100, subtype=kind)
        if behaviour == "damaged":
            (folder / (stem + ".wav")).write_bytes(b"RIFF")
"""


class Stand:
    """The program, how it behaves, and how it was called."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.command, self._calls = folder / "demucs", folder / "calls.jsonl"
        self.command.write_text(PROGRAM, encoding="utf-8")
        self.command.chmod(0o755)
        self.behaves("well")

    def behaves(self, how: str) -> None:
        self.command.with_name("behaviour").write_text(how, encoding="utf-8")

    @property
    def calls(self) -> list[list[str]]:
        if not self._calls.exists():
            return []
        return [json.loads(line) for line in self._calls.read_text(encoding="utf-8").splitlines()]


@pytest.fixture
def stand(tmp_path: Path) -> Stand:
    return Stand(tmp_path / "program")


@pytest.fixture
def song(tmp_path: Path) -> Path:
    """A folder with one recording, whose name is none that a command line likes."""
    folder = tmp_path / "songs"
    folder.mkdir()
    tone = 0.5 * np.sin(2 * np.pi * 220 * np.arange(22050) / 22050)
    soundfile.write(folder / "-n a.b 名.flac", tone, 22050)
    return folder


def _settings(stand: Stand, song: Path, **more: object) -> Settings:
    return Settings(song.parent / "out", songs=song, steps=["stems"], demucs=str(stand.command), **more)  # type: ignore[arg-type]


@pytest.mark.slow
def test_stems_are_kept_as_they_came_and_not_made_again(stand: Stand, song: Path) -> None:
    (row,) = run_preparation(_settings(stand, song)).rows
    out = song.parent / "out"
    assert not row["failures"]
    stems = row["stems"]
    assert (stems["duration_sec"], stems["model"]) == (1.0, "htdemucs")
    for place, stem in enumerate(("drums", "bass", "other", "vocals")):
        samples, rate = soundfile.read(out / stems[stem], dtype="int16", always_2d=True)
        assert (samples.shape, rate) == ((RATE, 2), RATE)
        assert samples.max() == pytest.approx(0.5 * 32768 / (place + 1), abs=2)
    assert stand.calls[0][:4] == ["-n", "htdemucs", "--shifts", "0"]
    run_preparation(_settings(stand, song))
    assert len(stand.calls) == 1
    (out / stems["bass"]).unlink()  # a file that is gone
    run_preparation(_settings(stand, song))
    assert len(stand.calls) == 2
    assert (out / stems["bass"]).is_file()
    run_preparation(_settings(stand, song, stem_model="mdx"))  # another model
    assert stand.calls[2][:2] == ["-n", "mdx"]


def test_two_stems_and_a_device(stand: Stand, song: Path) -> None:
    run_preparation(_settings(stand, song, two_stems=True, device="cpu"))
    assert stand.calls[0][4:8] == ["--two-stems", "vocals", "-d", "cpu"]
    loaded = datasets.load_dataset(
        str(song.parent / "out"), "automatic", split="test", cache_dir=str(song.parent / "c")
    )
    held = loaded[0]["stems"]
    assert {name for name, place in held.items() if str(place).endswith(".flac")} == {"vocals", "no_vocals"}
    assert held["drums"] is None


@pytest.mark.slow
@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ("fails", "exit status 3: RuntimeError: out of memory"),
        ("missing", "wrote no vocals.wav"),
        ("short", "with 0.50 s as PCM_16; expected 1.00 s"),
        ("floats", "as FLOAT"),
        ("damaged", "cannot be read"),
    ],
)
def test_what_demucs_does_badly_is_the_failure_of_that_song(stand: Stand, song: Path, how: str, reason: str) -> None:
    stand.behaves(how)
    done = run_preparation(_settings(stand, song))
    ((_, error),) = done.failures
    assert error.startswith("BackendError")
    assert reason in error
    assert not list((song.parent / "out").rglob("*.flac"))
    stand.behaves("well")
    assert not run_preparation(_settings(stand, song)).failures  # what failed is tried again


def test_the_version_is_that_of_the_package_beside_the_command(
    stand: Stand, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = {"demucs": str(stand.command), "stem_model": "htdemucs", "two_stems": False, "device": None}
    beside = tmp_path / "site" / "demucs-4.0.1.dist-info"
    beside.mkdir(parents=True)
    (beside / "METADATA").write_text("Metadata-Version: 2.1\nName: demucs\nVersion: 4.0.1\n", encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(beside.parent))
    assert about(options)["demucs"] == "4.0.1"
    other = Stand(tmp_path / "other")
    other.command.write_text("#!/bin/sh\nexit 0\n", encoding="utf-8")
    assert about({**options, "demucs": str(other.command)})["demucs"] is None  # and no version is made up


def test_without_demucs_the_step_says_how_to_get_it(
    song: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingBackendError, match="pip install demucs"):
        run_preparation(Settings(tmp_path / "out", songs=song, steps=["stems"]))
    assert main(["prepare", str(song), "--out", str(tmp_path / "out"), "--steps", "stems"]) == 2
    assert "(--demucs)" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_what_was_made_among_the_songs_is_no_song(stand: Stand, song: Path) -> None:
    settings = Settings(song / "out", songs=song, steps=["stems"], demucs=str(stand.command))
    assert len(run_preparation(settings).rows) == len(run_preparation(settings).rows) == 1
