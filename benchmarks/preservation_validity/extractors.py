"""Accuracy of every extractor against the truth of `known_edits`, by mir_eval.

``python benchmarks/preservation_validity/extractors.py`` writes extractors.csv and its table in README.md. Slow
backends run on 20 files only. A run that was stopped goes on where it stood. Backends that are not installed are
named and left out. With ``--features`` the rows of the others stay as they are.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import mir_eval
import numpy as np
import pandas as pd
from run import HALVES, HERE, RENDERERS, fill_in
from tqdm import tqdm

from music_evals.annotations import Features
from music_evals.audio.backends import BACKENDS, Backend
from music_evals.audio.extraction import extract
from music_evals.audio.io import load_audio
from music_evals.datasets.known_edits import build as known_edits
from music_evals.errors import BackendError, MissingBackendError
from music_evals.metrics.harmony import major_minor_score

SLOW = {"pyin_official", "torchcrepe", "madmom", "madmom_crf", "msaf_sf", "beat_this", "essentia_melodia"}
SLOW_FILES = 20
KEY = ("item_id", "renderer", "feature", "backend", "described")
GROUP = ["feature", "backend", "renderer"]
EDITS_A_PIECE = 5
TOLERANCE_CENTS = 50

Scores = dict[str, float]


def score_beats(truth: Features, found: Features) -> Scores:
    """F at 70 ms over all beats, and whether the tempo is right within 4 %, at any octave too."""
    ratio = np.log2(found.beats.bpm / truth.beats.bpm)
    return {
        "F": mir_eval.beat.f_measure(truth.beats.times_sec, found.beats.times_sec),
        "tempo within 4 %": float(abs(ratio) < np.log2(1.04)),
        "any octave": float(abs(ratio - round(ratio)) < np.log2(1.04)) if np.isfinite(ratio) else 0.0,
    }


def score_key(truth: Features, found: Features) -> Scores:
    """Share of exact keys, and of keys at the same place on the circle of fifths."""
    if found.key is None:
        return {"exact": 0.0, "same circle place": 0.0}
    relative = [(key.tonic + 3 * (key.mode == "minor")) % 12 for key in (truth.key, found.key)]
    return {"exact": float(truth.key == found.key), "same circle place": float(relative[0] == relative[1])}


def score_chords(truth: Features, found: Features) -> Scores:
    """Duration-weighted accuracy of major and minor chords; mir_eval's own fails on a chord at the very end."""
    return {"majmin": major_minor_score(truth.chords, found.chords)}


def score_f0(truth: Features, found: Features) -> Scores:
    """Raw pitch and chroma accuracy, overall accuracy, voicing recall and false alarm."""
    scores = mir_eval.melody.evaluate(
        truth.f0.times_sec, truth.f0.frequencies_hz, found.f0.times_sec, found.f0.frequencies_hz
    )
    names = {
        "Raw Pitch Accuracy": "RPA",
        "Raw Chroma Accuracy": "RCA",
        "Overall Accuracy": "OA",
        "Voicing Recall": "VR",
        "Voicing False Alarm": "VFA",
    }
    return {short: scores[name] for name, short in names.items()}


def score_segments(truth: Features, found: Features) -> Scores:
    """Boundaries at 0.5 and 3 s, trimmed, and labels."""
    end = truth.segments.intervals_sec[-1, 1]
    intervals, labels = mir_eval.util.adjust_intervals(
        found.segments.intervals_sec, list(found.segments.labels), t_min=0.0, t_max=end
    )
    true, names = truth.segments.intervals_sec, list(truth.segments.labels)
    return {
        "F at 0.5 s": mir_eval.segment.detection(true, intervals, window=0.5, trim=True)[2],
        "F at 3 s": mir_eval.segment.detection(true, intervals, window=3.0, trim=True)[2],
        "ARI": mir_eval.segment.ari(true, names, intervals, labels),
    }


SCORERS: Mapping[str, Callable[[Features, Features], Scores]] = {
    "beats": score_beats,
    "key": score_key,
    "chords": score_chords,
    "f0": score_f0,
    "segments": score_segments,
}


def main() -> None:
    """Run every backend on every file and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--features", nargs="+", default=list(SCORERS), choices=list(SCORERS))
    parser.add_argument("--work", type=Path, default=Path(tempfile.gettempdir()) / "preservation_validity")
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    path = options.work / "extractors.jsonl"
    done = set()
    if path.exists():
        rows = [json.loads(line) for line in path.open()]
        done = {tuple(row[key] for key in KEY) for row in rows if "error" not in row}
    with path.open("a") as file:
        for feature in options.features:
            for backend in BACKENDS[feature].values():
                for record in _judge(backend, options.work, done):
                    file.write(json.dumps(record) + "\n")
                    file.flush()
    records = pd.DataFrame([json.loads(line) for line in path.open()])
    _write(merged(pd.read_csv(HERE / "extractors.csv", index_col=GROUP), means_of(records, options.features)))


def _judge(backend: Backend, work: Path, done: set[tuple[str, ...]]) -> Iterator[dict[str, Any]]:
    try:
        backend.load()
    except MissingBackendError as error:
        tqdm.write(f"left out: {error}")
        return
    described = hashlib.sha256(json.dumps(backend.describe(), sort_keys=True).encode()).hexdigest()[:12]
    rows = list(_files())[: SLOW_FILES // 2 if backend.name in SLOW else None]
    for renderer in RENDERERS:
        for row in tqdm(rows, desc=f"{backend.feature} {backend.name} {renderer}", unit="file"):
            key = (row["item_id"], renderer, backend.feature, backend.name, described)
            if key in done:
                continue
            yield dict(zip(KEY, key, strict=True)) | _scores(row, renderer, backend, work)


def _files() -> Iterator[dict[str, Any]]:
    """Yield the held-out sources' edits, a few kinds of each piece in turn."""
    rows = known_edits.load_rows("default", HALVES[1])
    pieces = list(dict.fromkeys(row["piece"] for row in rows))
    by_piece = {piece: [row for row in rows if row["piece"] == piece] for piece in pieces}
    for turn in range(EDITS_A_PIECE):
        for index, piece in enumerate(pieces):
            edits = by_piece[piece]
            yield edits[(7 * turn + 3 * index) % len(edits)]


def _scores(row: dict[str, Any], renderer: str, backend: Backend, work: Path) -> dict[str, Any]:
    path = known_edits.render(row, renderer=renderer, which="estimate", cache=work / "audio")
    truth = known_edits.annotations(row, "estimate")
    audio = load_audio(path)
    began = _processor_sec()
    try:
        found = extract(audio, [backend.feature], backends={backend.feature: backend.name})
    except (MissingBackendError, BackendError) as error:
        return {"error": str(error)}
    if backend.feature in found.undefined and backend.feature != "key":
        return {"error": found.undefined[backend.feature]}
    seconds = (_processor_sec() - began) * 30 / audio.duration_sec
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of mir_eval, about empty annotations
        return {**SCORERS[backend.feature](truth, found), "CPU s per 30 s": seconds}


def _processor_sec() -> float:
    """Return the processor time of this process and of those that it has started."""
    return sum(os.times()[:4])


def means_of(records: pd.DataFrame, features: Sequence[str]) -> pd.DataFrame:
    """Return the means of some features, a row for each backend and renderer."""
    records = records[records.feature.isin(features)]
    numbers = [name for name in records.columns if name not in {*KEY, "error"}]
    records = records[records["error"].isna()] if "error" in records else records
    groups = records.groupby(GROUP, sort=False)
    means = groups[numbers].mean()
    means["CPU s per 30 s"] = groups["CPU s per 30 s"].median()  # the first file also pays for compilation
    return pd.concat([groups.size().rename("files"), means], axis=1)


def merged(before: pd.DataFrame, now: pd.DataFrame) -> pd.DataFrame:
    """Return both tables, of a feature that both have the rows of `now`, in the order of features."""
    measured = before.index.get_level_values("feature").isin(now.index.get_level_values("feature"))
    table = pd.concat([before[~measured], now])
    order = {feature: place for place, feature in enumerate(SCORERS)}
    return table.sort_index(level="feature", key=lambda level: level.map(order), sort_remaining=False, kind="stable")


def _write(table: pd.DataFrame) -> None:
    table.to_csv(HERE / "extractors.csv", float_format="%.4f")
    parts = []
    for feature, rows in table.groupby(level="feature", sort=False):
        shown = rows.droplevel("feature").dropna(axis=1, how="all").reset_index()
        heads = "| " + " | ".join(shown.columns) + " |\n" + "|---" * len(shown.columns) + "|"
        lines = [
            "| " + " | ".join(f"{cell:.2f}" if isinstance(cell, float) else str(cell) for cell in row) + " |"
            for row in shown.itertuples(index=False)
        ]
        parts.append(f"**{feature}**\n\n{heads}\n" + "\n".join(lines) + "\n")
    fill_in(HERE / "README.md", "extractors", "\n".join(parts))


if __name__ == "__main__":
    main()
