"""Whether swing is heard: eighths moved to 2 : 1, in recordings and in renders, beside edits that leave them alone.

``python benchmarks/preservation_validity/swing.py --recordings FOLDER`` moves the middle of every beat of the
excerpts of `real.py` (Rubber Band, by the beats of our tracker) and every note between the beats of pieces of
`known_edits` in 2/4, 3/4 and 4/4, compares them with their originals, and writes swing.csv and the tables of README.md
and of the card. A run that was stopped goes on where it stood.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import itertools
import os
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import soundfile
from real_edits import make_edit, make_excerpt, missing_programs
from real_recordings import Recording, attach, load_manifest
from run import card_of, fill_in
from tqdm import tqdm

from music_evals.annotations import Score
from music_evals.audio.io import SAMPLE_RATE
from music_evals.audio.rendering import render_additive, render_fluidsynth
from music_evals.audio.store import FeatureStore
from music_evals.datasets.known_edits import build as known_edits
from music_evals.errors import InvalidInputError
from music_evals.files import write_atomically
from music_evals.pipelines.preservation import compare, load_features
from music_evals.stats.discrimination import clustered_auc
from music_evals.symbolic.midi import write_midi
from music_evals.yaml_files import read_yaml_file

HERE = Path(__file__).parent
SHARES = {"swing 1.5 : 1": 3 / 5, "swing 2 : 1": 2 / 3}
"""Edit -> where in the beat its middle goes."""
OF_REAL = {
    "mp3": (64,), "eq": (6, -6), "reverb": (25, 50), "noise": (20,), "gain": (-18,), "compressor": (8,),
    "transpose": (2, 5), "tempo": (1.1, 0.8),
}  # fmt: skip
OF_SCORES = (
    "gain", "timbre", "velocity", "texture", "transpose", "tempo", "reharmonised", "melody_replaced", "drums_removed",
    "lowpass",
)  # fmt: skip
LEAST_OFF_BEATS = 0.05  # share of notes between the beats without which a piece has nothing to swing
HALVES = {"development": "tuning", "test": "held_out"}
FIGURES = {"swing_ratio": -1, "beat_f_measure": 1}


def main() -> None:
    """Measure both halves, and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recordings", type=Path, required=True, help="as of real.py")
    parser.add_argument("--half", choices=HALVES, help="one half alone; prints, and writes nothing")
    parser.add_argument("--work", type=Path, default=Path(tempfile.gettempdir()) / "swing")
    options = parser.parse_args()
    files, missing = attach(load_manifest(HERE / "recordings.csv"), options.recordings)
    if missing or missing_programs():
        raise InvalidInputError(f"missing: {', '.join([*missing.values(), *missing_programs()])}")
    rows = [row for half in HALVES if options.half in {None, half} for row in _measured(half, files, options.work)]
    table = pd.DataFrame(rows)
    text = _table(table)
    print(text)
    if options.half is None:
        table.to_csv(HERE / "swing.csv", index=False, float_format="%.4f")
        fill_in(HERE / "README.md", "swing", text)
        fill_in(card_of("swing_ratio"), "swing", text)


def _measured(half: str, files: Mapping[str, Path], work: Path) -> Iterator[dict[str, Any]]:
    store = FeatureStore(work / "features")
    manifest = [one for one in load_manifest(HERE / "recordings.csv") if one.half == half]
    recorded = ((one.name, "recordings", _of_recording(one, files[one.name], work, store)) for one in manifest)
    rendered = (
        (piece, renderer, _of_piece(rows, renderer, work))
        for renderer in ("additive", "fluidsynth")
        for piece, rows in _pieces(HALVES[half])
    )
    for name, source, edits in tqdm(itertools.chain(recorded, rendered), desc=half, unit="piece"):
        original = load_features(edits.pop(""), metrics=FIGURES, store=store)
        for edit, path in edits.items():
            scores = compare(original, load_features(path, metrics=FIGURES, store=store), metrics=FIGURES)
            values = {score: value.value for score, value in scores.items()}
            yield {"half": half, "input": source, "piece": name, "edit": edit} | values


def _of_recording(one: Recording, file: Path, work: Path, store: FeatureStore) -> dict[str, Path]:
    """Return edit -> file; the original has no name."""
    plan, folder = read_yaml_file(HERE / "real_edits.yaml"), work / "recordings" / one.name
    source = make_excerpt(plan, one, file, folder / "source.wav")
    edits = {
        f"{kind} {strength:g}": make_edit(plan, kind, strength, source, folder / f"{kind}_{strength:g}.wav")
        for kind, strengths in OF_REAL.items()
        for strength in strengths
    }
    beats = load_features(source, metrics=["beat_f_measure"], store=store).beats
    assert beats is not None
    about = soundfile.info(source)
    for name, share in SHARES.items():
        target = folder / f"{name}.wav"
        # sample of the original, and where it goes: the beats stay
        middles = [(first + (last - first) / 2, first + share * (last - first)) for first, last in
                   itertools.pairwise(beats.times_sec)]  # fmt: skip
        points = sorted([*middles, *((time, time) for time in beats.times_sec if time)])
        if not target.exists():
            with tempfile.TemporaryDirectory() as scratch:
                times, made = Path(scratch) / "times", Path(scratch) / "made.wav"
                text = (f"{round(at * about.samplerate)} {round(to * about.samplerate)}\n" for at, to in points)
                times.write_text("".join(text))
                program = ["rubberband", "-q", "--timemap", times, "--duration", str(about.duration), source, made]
                subprocess.run(program, check=True, capture_output=True)
                write_atomically(target, made.read_bytes(), parents=True)
        edits[name] = target
    return {"": source, **edits}


def _pieces(half: str) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Yield pieces over quarters with notes half a beat after the beat, and their edits."""
    rows = known_edits.load_rows("default", half)
    for piece in dict.fromkeys(row["piece"] for row in rows):
        own = [row for row in rows if row["piece"] == piece]
        score = known_edits.score(own[0], "reference")
        places = score.notes["onset_tick"] / score.ticks_per_quarter % 1
        if score.time_signatures[0].denominator == 4 and np.mean(np.abs(places - 0.5) < 0.02) >= LEAST_OFF_BEATS:
            yield piece, own


def _of_piece(rows: list[dict[str, Any]], renderer: str, work: Path) -> dict[str, Path]:
    render = functools.partial(known_edits.render, renderer=renderer, cache=work / "audio")
    edits = {f"{row['kind']} {row['strength']:g}": render(row) for row in rows if row["kind"] in OF_SCORES}
    score = known_edits.score(rows[0], "reference")
    for name, share in SHARES.items():
        path = work / "swung" / renderer / f"{rows[0]['piece']} {name}.wav"
        if not path.exists():
            swung = _swung(score, share)
            samples = (
                render_additive(swung, sample_rate=SAMPLE_RATE)
                if renderer == "additive"
                else render_fluidsynth(write_midi(swung), sample_rate=SAMPLE_RATE)
            )
            path.parent.mkdir(parents=True, exist_ok=True)
            part = path.with_name(f"{os.getpid()}.part.wav")
            soundfile.write(part, samples, SAMPLE_RATE, subtype="FLOAT")
            part.replace(path)
        edits[name] = path
    return {"": render(rows[0], which="reference"), **edits}


def _swung(score: Score, share: float) -> Score:
    """Return a score whose quarters have their middle elsewhere, with all that lies between."""

    def moved(ticks: np.ndarray) -> np.ndarray:
        quarters, places = np.divmod(ticks / score.ticks_per_quarter, 1)
        places = np.interp(places, [0, 0.5, 1], [0, share, 1])
        return np.round((quarters + places) * score.ticks_per_quarter).astype(np.int64)

    notes = score.notes.copy()
    ends = moved(notes["onset_tick"] + notes["duration_tick"])
    notes["onset_tick"] = moved(notes["onset_tick"])
    notes["duration_tick"] = np.maximum(ends - notes["onset_tick"], 1)
    return dataclasses.replace(score, notes=notes)


def _table(table: pd.DataFrame) -> str:
    """Return, of each input, how surely swing is told from edits that leave it alone, by either score."""
    names = ("input", "half", "pieces", "2 : 1, mean", "others, mean", "others above 0.3",
             "AUC 2 : 1", "AUC 1.5 : 1", "AUC 2 : 1 by beats")  # fmt: skip
    lines = [f"| {' | '.join(names)} |", "|" + "---|" * len(names)]
    for (source, half), rows in table.groupby(["input", "half"], sort=False):
        others = rows[~rows.edit.isin(SHARES)]
        swung = {name: rows[rows.edit == name] for name in SHARES}
        aucs = [
            _auc(swung[name], others, figure)
            for name, figure in (("swing 2 : 1", "swing_ratio"), ("swing 1.5 : 1", "swing_ratio"),
                                 ("swing 2 : 1", "beat_f_measure"))
        ]  # fmt: skip
        means = [f"{part.swing_ratio.mean():.2f}" for part in (swung["swing 2 : 1"], others)]
        above = f"{(others.swing_ratio > 0.3).sum()} of {others.swing_ratio.notna().sum()}"
        lines.append(f"| {' | '.join([source, half, str(rows.piece.nunique()), *means, above, *aucs])} |")
    return "\n".join(lines) + "\n"


def _auc(swung: pd.DataFrame, others: pd.DataFrame, figure: str) -> str:
    above, below = (FIGURES[figure] * part[figure] for part in (others, swung))
    area, low, high = clustered_auc(above, below, others.piece, swung.piece)
    return f"{area:.3f} ({low:.2f} to {high:.2f})"


if __name__ == "__main__":
    main()
