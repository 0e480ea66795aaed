"""Compare melody trackers on music whose melody is known. See README.md beside this file.

::

    python -m benchmarks.melody_tracker.evaluate --set tuning --renderings FOLDER [--trackers melody_net basic_pitch]

Writes its rows into results.csv, in place of those of the same set, renderer and tracker, and the table of README.md.
"""

from __future__ import annotations

import argparse
import csv
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from benchmarks.extractor_training.mixtures import LEADS, make_mixture
from benchmarks.musib.tables import fill, read_csv
from tqdm import tqdm

from music_evals.annotations import F0Track, Melody
from music_evals.audio.f0 import track_harmonic_sum, track_melody_net, track_pyin
from music_evals.audio.io import Audio
from music_evals.audio.melody import notes_from_f0
from music_evals.audio.optional_f0 import track_basic_pitch
from music_evals.datasets.known_edits.build import RENDERERS, annotations, iter_edits, render, row_of
from music_evals.datasets.known_edits.labels import declared
from music_evals.errors import UndefinedMetricWarning
from music_evals.files import write_atomically
from music_evals.metrics.melody import (
    motif_jaccard,
    motif_recall,
    overall_accuracy,
    raw_chroma_accuracy,
    raw_pitch_accuracy,
    voicing_false_alarm,
    voicing_recall,
)

RESULTS = Path(__file__).with_name("results.csv")
PAGE = Path(__file__).with_name("README.md")
HOP_SEC = 512 / 22050
FIRST_VALIDATION = 1_000_000

Tracker = Callable[[Audio], F0Track]
TRACKERS: dict[str, Tracker] = {
    "melody_net": track_melody_net,
    "harmonic_sum": track_harmonic_sum,
    "basic_pitch": track_basic_pitch,
    "pyin": track_pyin,
}
FRAME_METRICS = {
    "raw_pitch_accuracy": raw_pitch_accuracy,
    "raw_chroma_accuracy": raw_chroma_accuracy,
    "overall_accuracy": overall_accuracy,
    "voicing_recall": voicing_recall,
    "voicing_false_alarm": voicing_false_alarm,
}
NOTE_METRICS = {"motif_jaccard": motif_jaccard, "motif_recall": motif_recall}
SETS = (*LEADS, "tuning", "held_out")
COLUMNS = {
    "raw_pitch_accuracy": "RPA",
    "raw_chroma_accuracy": "RCA",
    "overall_accuracy": "OA",
    "voicing_recall": "VR",
    "voicing_false_alarm": "VFA",
    "motif_jaccard": "MJ",
    "cpu_seconds_per_30s": "CPU",
}


class Item(NamedTuple):
    """A recording and its melody."""

    name: str
    audio: Audio
    f0: F0Track
    melody: Melody


def validation_items(renderer: str, count: int, tunes: Path, lead: str) -> Iterator[Item]:
    """Yield mixtures that the network was not trained on."""
    for index in range(FIRST_VALIDATION, FIRST_VALIDATION + count):
        mixture = make_mixture(index, renderer=renderer, lead=lead, cache=tunes)
        if len(mixture.melody.pitches):
            truth = truth_track(mixture.melody, 30.0) if mixture.f0 is None else mixture.f0
            yield Item(str(index), _audio(mixture.samples), truth, mixture.melody)


def performed_track(sounding: np.ndarray) -> F0Track:
    """Return the track of MIDI pitches on a grid of 512 samples, NaN where none sounds."""
    hertz = 440 * 2 ** ((sounding - 69) / 12)
    return F0Track(np.arange(len(sounding)) * HOP_SEC, np.where(np.isnan(sounding), 0.0, hertz))


def truth_track(melody: Melody, duration_sec: float) -> F0Track:
    """Return the track of a melody on a grid of 512 samples."""
    times_sec = np.arange(1 + int(duration_sec / HOP_SEC)) * HOP_SEC
    hertz = np.zeros(len(times_sec))
    for (start, end), pitch in zip(melody.intervals_sec, melody.pitches, strict=True):
        hertz[(times_sec >= start) & (times_sec < end)] = 440 * 2 ** ((pitch - 69) / 12)
    return F0Track(times_sec, hertz)


def piece_items(half: str, renderer: str, folder: Path) -> Iterator[Item]:
    """Yield the unedited pieces of one half of `known_edits`."""
    import soundfile

    for name in declared()["pieces"][half]:
        row = row_of(next(iter_edits([name])))
        samples, _ = soundfile.read(render(row, renderer=renderer, which="reference", cache=folder), dtype="float32")
        truth = annotations(row, "reference")
        assert truth.f0 is not None
        assert truth.melody is not None
        yield Item(name, _audio(samples), truth.f0, truth.melody)


def _audio(samples: np.ndarray) -> Audio:
    return Audio((samples / np.abs(samples).max()).astype(np.float32))


def judge(item: Item, track: Tracker) -> dict[str, float]:
    """Return the scores of one tracker on one recording, and its CPU seconds for 30 s of it, transforms included."""
    audio = Audio(item.audio.samples)  # nothing shared with another tracker
    started = time.process_time()
    found = track(audio)
    seconds = (time.process_time() - started) * 30 / audio.duration_sec
    notes = notes_from_f0(audio, f0=found)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        scores = {name: metric(item.f0, found) for name, metric in FRAME_METRICS.items()}
        scores |= {name: metric(item.melody, notes) for name, metric in NOTE_METRICS.items()}
    return {**scores, "cpu_seconds_per_30s": seconds}


def main() -> None:
    """Judge trackers on one set and both renderers."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--set", choices=SETS, required=True)
    parser.add_argument("--renderings", type=Path, required=True, help="folder of recordings and tunes, made if needed")
    parser.add_argument("--trackers", nargs="+", choices=list(TRACKERS), default=list(TRACKERS))
    parser.add_argument("--count", type=int, default=40, help="mixtures of each renderer")
    parser.add_argument("--details", type=Path, help="a file for the rows of single recordings")
    options = parser.parse_args()
    rows, details = [], []
    for renderer in RENDERERS:
        items = list(
            validation_items(renderer, options.count, options.renderings, options.set)
            if options.set in LEADS
            else piece_items(options.set, renderer, options.renderings)
        )
        for name in options.trackers:
            TRACKERS[name](items[0].audio)  # compiled code and weights are loaded outside of the clock
            scores = [judge(item, TRACKERS[name]) for item in tqdm(items, desc=f"{options.set} {renderer} {name}")]
            key = {"set": options.set, "renderer": renderer, "tracker": name}
            details += [{**key, "item": item.name, **score} for item, score in zip(items, scores, strict=True)]
            means = {metric: round(float(np.nanmean([score[metric] for score in scores])), 4) for metric in scores[0]}
            rows.append({**key, "n": len(items), **means})
            print(rows[-1], flush=True)
    _merge(rows)
    write_atomically(PAGE, fill(PAGE.read_text(encoding="utf-8"), {"results": table_of(RESULTS)}).encode())
    if options.details:
        _write(options.details, details)


def _merge(rows: list[dict[str, object]]) -> None:
    kept: list[dict[str, object]] = []
    if RESULTS.exists():
        with RESULTS.open(encoding="utf-8") as file:
            kept = list(csv.DictReader(file))
    new = {tuple(row[name] for name in ("set", "renderer", "tracker")) for row in rows}
    kept = [row for row in kept if (row["set"], row["renderer"], row["tracker"]) not in new]
    _write(RESULTS, sorted([*kept, *rows], key=lambda row: (str(row["set"]), str(row["renderer"]))))


def table_of(results: Path) -> str:
    """Return the table of README.md."""
    rows = read_csv(results)
    rows.sort(key=lambda row: (SETS.index(row["set"]), row["renderer"], list(TRACKERS).index(row["tracker"])))
    lines = [["set", "renderer", "n", "tracker", *COLUMNS.values()], ["---"] * (4 + len(COLUMNS))]
    for row in rows:
        name = f"**{row['tracker']}**" if row["tracker"] == next(iter(TRACKERS)) else row["tracker"]
        scores = [f"{float(row[column]):.2f}" for column in COLUMNS]
        lines.append([row["set"], row["renderer"], row["n"], name, *scores])
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def _write(path: Path, rows: list[dict[str, object]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
