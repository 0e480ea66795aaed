"""What the wheel does without any extra, in an empty folder; run by the Python that has it: `.ci/run bare`."""

from __future__ import annotations

import re
import subprocess
import sys
import warnings
import wave
from importlib.metadata import version
from pathlib import Path

import numpy as np

import music_evals
from music_evals.errors import UndefinedMetricWarning
from music_evals.symbolic.midi import save_midi
from music_evals.symbolic.notes import make_notes

warnings.simplefilter("ignore", UndefinedMetricWarning)  # two items show that a score is there, not how it is spread
COMMAND = Path(sys.executable).with_name("music-evals")


def run(*words: str) -> subprocess.CompletedProcess[str]:
    """Run the command."""
    return subprocess.run([COMMAND, *words], capture_output=True, text=True, check=False)


def refused(extras: str, ended: subprocess.CompletedProcess[str]) -> None:
    """Refused in one line that names the extras, before anything is written."""
    assert (ended.returncode, ended.stdout) == (2, ""), ended
    [line] = ended.stderr.splitlines()
    assert "needs the package" in line and f"[{extras}]" in line, line
    assert not Path("refused").exists()


# The package is the installed one, and so is the command.
assert "site-packages" in music_evals.__file__
assert music_evals.__version__ == version("music_evals")
shown = run("--help")
assert shown.returncode == 0, shown.stderr
verbs = re.findall(r"^    ([a-z][\w-]*)(?= |$)", shown.stdout, re.MULTILINE)
assert len(verbs) >= 10, shown.stdout
for verb in verbs:
    assert run(verb, "--help").returncode == 0, verb

# Scores in memory, and as files by the command. A fifth up is one step on the circle of fifths.
bars = [(60, 64, 67), (65, 69, 72), (67, 71, 74), (60, 64, 67)] * 2
onsets = np.repeat(np.arange(8) * 1920, 3)
scores = [music_evals.Score(make_notes(onsets, 1920, np.ravel(bars) + up), 480) for up in (0, 7)]
same, moved = (music_evals.evaluate_preservation([scores[0]], [other]) for other in scores)
assert same["circle_of_fifths_distance"] == 0 and same["beat_f_measure"] == 1, same
assert abs(moved["circle_of_fifths_distance"] - 1 / 6) < 1e-9, moved
for side, score in zip(("original", "edited"), scores, strict=True):
    Path(side).mkdir()
    save_midi(score, Path(side, "tune.mid"))
ended = run("preserve", "--reference", "original", "--estimate", "edited", "--resamples", "20", "--out", "out")
assert ended.returncode == 0, ended.stderr
assert {path.name for path in Path("out").iterdir()} >= {"records", "results.json", "table.md"}

# Filled middles: 384 tokens of one held note each; the middle handed back, and a rest in its place.
contexts = np.full((2, 384), 128, np.uint8)
contexts[:, ::24] = 60
rests = np.full((2, 96), 129, np.uint8)
assert music_evals.evaluate_inpainting(contexts, contexts[:, 144:240], n_resamples=20)["note_f1"] == 1
assert music_evals.evaluate_inpainting(contexts, rests, n_resamples=20)["note_f1"] == 0

# Lyrics with a rhyme of one's own; the authors' needs the extra, and so do recordings, models and pictures.
pattern, poem = "(verse)\nccccR\nccccR", "(verse)\n床前明月光\n疑是地上霜"
own = music_evals.evaluate_lyrics([pattern], [poem], rhyme=lambda line: line[-1] in "光霜")
assert own["lyric_song"] == 10 and abs(own["lyric_rhyme"] - 20) < 0.1, own  # full marks
code = "import music_evals, sys; music_evals.evaluate_lyrics(sys.argv[1:2], sys.argv[2:])"
authors = subprocess.run([sys.executable, "-c", code, pattern, poem], capture_output=True, text=True, check=False)
assert "MissingBackendError: the rhyme of a Chinese line needs the package 'pypinyin'" in authors.stderr, authors
for side in ("sounds", "other sounds"):
    Path(side).mkdir()
    with wave.open(str(Path(side, "noise.wav")), "wb") as file:
        file.setparams((1, 2, 22050, 0, "NONE", "not compressed"))
        file.writeframes(np.random.default_rng(0).integers(-3000, 3000, 44100).astype("<i2").tobytes())
refused("audio,report", run("preserve", "--reference", "sounds", "--estimate", "other sounds", "--out", "refused"))
refused("report", run("preserve", "--reference", "original", "--estimate", "edited", "--report", "--out", "refused"))
print(
    f"Python {sys.version.split()[0]}: music_evals {music_evals.__version__} works without extras; {len(verbs)} verbs"
)
