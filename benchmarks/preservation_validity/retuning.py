"""Whether harmony scores fall without a step where a recording is moved by less than a semitone.

``python benchmarks/preservation_validity/retuning.py --recordings FOLDER`` moves the first 12 s of the excerpts of
`real.py` by 0 to 100 cents in steps of 2 (Rubber Band), compares each with its original, and writes retuning.csv and
the table of README.md. A run that was stopped goes on where it stood.
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from real_edits import make_excerpt, missing_programs
from real_recordings import Recording, attach, load_manifest
from run import fill_in
from tqdm import tqdm

from music_evals.audio.store import FeatureStore
from music_evals.errors import InvalidInputError
from music_evals.files import write_atomically
from music_evals.pipelines.preservation import compare, load_features
from music_evals.yaml_files import read_yaml_file

HERE = Path(__file__).parent
CENTS = range(0, 101, 2)
LENGTH_SEC = 12
SCORES = (
    "circle_of_fifths_distance",
    "major_minor_score",
    "chroma_dtw_similarity",
    "chroma_dtw_centred",
    "tuning_cents",
)
HEADINGS = ("score", "half", "at 0", "at 50", "at 100", "largest rise", "largest step")


def main() -> None:
    """Measure all recordings, and write the table where none is missing."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recordings", type=Path, required=True, help="as of real.py")
    parser.add_argument("--half", choices=("development", "test"), help="one half alone; prints, and writes nothing")
    parser.add_argument("--work", type=Path, default=Path(tempfile.gettempdir()) / "retuning")
    options = parser.parse_args()
    manifest = load_manifest(HERE / "recordings.csv")
    files, missing = attach(manifest, options.recordings)
    if missing or missing_programs():
        raise InvalidInputError(f"missing: {', '.join([*missing.values(), *missing_programs()])}")
    chosen = [one for one in manifest if options.half in {None, one.half}]
    tried = tqdm([(one, cents) for one in chosen for cents in CENTS], unit="copy")
    table = pd.DataFrame([_scores_of(one, files[one.name], cents, options.work) for one, cents in tried])
    text = _table(table)
    print(text)
    if options.half is None:
        table.to_csv(HERE / "retuning.csv", index=False, float_format="%.4f")
        fill_in(HERE / "README.md", "retuning", text)


def _scores_of(one: Recording, file: Path, cents: int, work: Path) -> dict[str, Any]:
    plan, store = read_yaml_file(HERE / "real_edits.yaml"), FeatureStore(work / "features")
    excerpt = make_excerpt(plan, one, file, work / one.name / "source.wav")
    sides = []
    for moved in (0, cents):
        copy = work / one.name / f"{moved}.wav"
        if not copy.exists():
            with tempfile.TemporaryDirectory() as folder:
                made = Path(folder) / "copy.wav"
                start = Path(folder) / "start.wav"
                subprocess.run(["ffmpeg", "-v", "error", "-i", excerpt, "-t", str(LENGTH_SEC), start], check=True)
                subprocess.run(
                    ["rubberband", "-q", "--fine", "--pitch", str(moved / 100), start, made],
                    check=True,
                    capture_output=True,
                )
                write_atomically(copy, made.read_bytes(), parents=True)
        sides.append(load_features(copy, metrics=SCORES, store=store))
    scores = {name: value.value for name, value in compare(*sides, metrics=SCORES).items()}
    return {"name": one.name, "half": one.half, "cents": cents, **scores}


def _table(table: pd.DataFrame) -> str:
    """Return the means at three places; and of all recordings the worst rise and the worst step."""
    lines = [f"| {' | '.join(HEADINGS)} |", "|" + "---|" * len(HEADINGS)]
    for name in SCORES[:-1]:
        for half, rows in table.groupby("half"):
            sweeps = rows.pivot(index="name", columns="cents", values=name)
            means = [f"{sweeps[cents].mean():.2f}" for cents in (0, 50, 100)]
            worst = [f"{max(figure(sweep) for sweep in _likeness(name, sweeps)):.3f}" for figure in (_rise, _step)]
            lines.append(f"| `{name}` | {half} | {' | '.join([*means, *worst])} |")
    return "\n".join(lines) + "\n"


def _likeness(name: str, sweeps: pd.DataFrame) -> Iterator[np.ndarray]:
    """Yield what is defined of each recording's scores, higher for what is more alike."""
    sign = -1 if name == "circle_of_fifths_distance" else 1
    for _, row in sweeps.iterrows():
        if row.notna().any():
            yield sign * row.dropna().to_numpy()


def _rise(sweep: np.ndarray) -> float:
    """Return by how much a score rises again, at most."""
    return float((np.maximum.accumulate(sweep[::-1])[::-1] - sweep).max())


def _step(sweep: np.ndarray) -> float:
    return float(np.abs(np.diff(sweep)).max(initial=0.0))


if __name__ == "__main__":
    main()
