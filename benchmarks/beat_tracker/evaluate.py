"""Compare the beat trackers on mixtures that no network was trained on, with and without drums, on both renderers."""

from __future__ import annotations

import argparse
import csv
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import mir_eval
import numpy as np
from benchmarks.beat_tracker.mixtures import SEEDS
from benchmarks.extractor_training.mixtures import make_mixture
from tqdm import tqdm

from music_evals.annotations import Beats
from music_evals.audio.beats import track_beats_librosa, track_beats_official, track_beats_tcn
from music_evals.audio.io import Audio

TRACKERS: dict[str, Callable[[Audio], Beats]] = {
    "tcn": track_beats_tcn,
    "librosa": track_beats_librosa,
    "official": track_beats_official,
}
TEMPO_TOLERANCE = 0.04  # the customary one for tempo (Gouyon et al. 2006)
HERE = Path(__file__).resolve().parent


def score(truth: Beats, found: Beats, seconds: float) -> dict[str, float]:
    """Return F at 70 ms, whether the tempo is right, whether it is right but for octaves, and CPU seconds."""
    octaves = np.array([1.0]) if np.isnan(found.bpm) else found.bpm * np.array([1, 2, 1 / 2, 3, 1 / 3]) / truth.bpm
    right = np.abs(octaves - 1) <= TEMPO_TOLERANCE
    known = not np.isnan(found.bpm)
    f_measure = mir_eval.beat.f_measure(truth.times_sec, found.times_sec) if len(found.times_sec) else 0.0
    return {"f": f_measure, "tempo": known and right[0], "octave": known and right.any(), "cpu_sec": seconds}


def main() -> None:
    """Write results.csv beside this file and print it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cache", type=Path, help="the folder of mixtures.py, which holds the notes of the corpus")
    parser.add_argument("--n", type=int, default=60, help="mixtures of each renderer")
    parser.add_argument("--split", default="test", choices=sorted(SEEDS))
    options = parser.parse_args()
    rows = defaultdict(list)
    for renderer in ("additive", "fluidsynth"):
        for index in tqdm(range(options.n), desc=renderer):
            mixture = make_mixture(index, renderer=renderer, seed=SEEDS[options.split], cache=options.cache)
            if len(mixture.beats.times_sec) < 8:
                continue
            for name, track in TRACKERS.items():
                audio = Audio(mixture.samples / np.abs(mixture.samples).max())
                started = time.process_time()
                found = track(audio)
                seconds = time.process_time() - started
                drums = "drums" if mixture.has_drums else "no drums"
                rows[renderer, drums, name].append(score(mixture.beats, found, seconds))
    with (HERE / "results.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["renderer", "group", "tracker", "n", "f_measure", "tempo_4_percent", "octaves_too", "cpu_sec"])
        for key, scores in sorted(rows.items()):
            means = [np.mean([row[name] for row in scores]) for name in ("f", "tempo", "octave")]
            median = np.median([row["cpu_sec"] for row in scores])
            line = [*key, len(scores), *(f"{mean:.3f}" for mean in means), f"{median:.3f}"]
            writer.writerow(line)
            print(*line, sep="\t")


if __name__ == "__main__":
    main()
