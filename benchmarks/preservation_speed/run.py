"""Time and memory of the eleven metrics of music context preservation, beside the official extractor settings.

    python benchmarks/preservation_speed/run.py            # about two minutes; writes results.csv

Each measurement runs in a process of its own, tied to two cores, and is warm: another pair was judged before in the
same process. Both sides take the same recordings, in one run.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
N_CORES = 2
PIECE, WARM_UP_PIECE = "song_pop", "song_rock"
KINDS = ("timbre", "tempo", "reharmonised", "melody_replaced", "noise")
PAIR_SEC, LONG_SEC = 30, 180
GOALS = {"pair": 0.2, "further_edit": 0.15, "long_pair": 2.0, "peak_memory": 600, "ratio": 100}

OFFICIAL_METRICS = {
    "beats, chroma and melody": (
        "chroma_dtw_similarity", "delta_bpm", "beat_f_measure", "information_gain",
        "voicing_recall", "motif_jaccard", "motif_recall",
    ),
    "key (essentia)": ("circle_of_fifths_distance",),
    "chords (madmom)": ("major_minor_score",),
    "segments (MSAF)": ("segment_ari", "boundary_f_measure"),
}  # fmt: skip


def main() -> None:
    """Measure in child processes, print the table, write results.csv."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3, help="passes, of which the fastest counts (default: 3)")
    parser.add_argument("--work", type=Path, default=Path(tempfile.gettempdir()) / "preservation_speed")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        json.dump(MEASUREMENTS[options.child](options.work, options.repeats), sys.stdout)
        return
    make_recordings(options.work)
    found: dict[str, Any] = {}
    for name in MEASUREMENTS:
        found |= _in_child(name, options)
    _report(found)


def make_recordings(work: Path) -> None:
    """Write the recordings: an original and its edits, 30 s each; a long pair; a pair to warm up with."""
    from music_evals.audio.io import load_audio
    from music_evals.datasets.known_edits import build as known_edits

    work.mkdir(parents=True, exist_ok=True)
    rows = [row for half in ("tuning", "held_out") for row in known_edits.load_rows("default", half)]

    def samples(piece: str, kind: str, which: str) -> np.ndarray:
        row = next(row for row in rows if row["piece"] == piece and row["kind"] == kind)
        return load_audio(known_edits.render(row, renderer="additive", which=which, cache=work / "audio")).samples

    _write(work / "original.wav", samples(PIECE, KINDS[0], "reference"), PAIR_SEC)
    _write(work / "long_original.wav", samples(PIECE, KINDS[0], "reference"), LONG_SEC)
    _write(work / "long_edit.wav", samples(PIECE, KINDS[0], "estimate"), LONG_SEC)
    for index, kind in enumerate(KINDS):
        _write(work / f"edit_{index}.wav", samples(PIECE, kind, "estimate"), PAIR_SEC)
    _write(work / "warm_original.wav", samples(WARM_UP_PIECE, "timbre", "reference"), PAIR_SEC)
    _write(work / "warm_edit.wav", samples(WARM_UP_PIECE, "timbre", "estimate"), PAIR_SEC)


def _write(path: Path, samples: np.ndarray, seconds: int) -> None:
    """Write so many seconds; a shorter recording is played again."""
    import soundfile

    from music_evals.audio.io import SAMPLE_RATE

    soundfile.write(path, np.resize(samples, seconds * SAMPLE_RATE), SAMPLE_RATE, subtype="PCM_16")


def judge(work: Path, originals: list[str], edits: list[str], **options: Any) -> dict[str, Any]:
    """Judge pairs by all metrics, without intervals."""
    from music_evals.pipelines.preservation import evaluate_preservation

    pairs = [[str(work / f"{name}.wav") for name in side] for side in (originals, edits)]
    return evaluate_preservation(*pairs, **options)


def fastest(work: Callable[[], Any], repeats: int) -> dict[str, float]:
    """Return wall and processor seconds of the fastest pass, those of child processes included."""
    walls, processors = [], []
    for _ in range(repeats):
        wall, processor = time.perf_counter(), sum(os.times()[:4])
        work()
        walls.append(time.perf_counter() - wall)
        processors.append(sum(os.times()[:4]) - processor)
    return {"wall": min(walls), "processor": min(processors)}


def measure_ours(work: Path, repeats: int) -> dict[str, Any]:
    """Measure one pair, every further edit of its original, and the memory for it."""
    judge(work, ["warm_original"], ["warm_edit"])
    pair = fastest(lambda: judge(work, ["original"], ["edit_0"]), repeats)
    edits = [f"edit_{index}" for index in range(len(KINDS))]
    many = fastest(lambda: judge(work, ["original"] * len(edits), edits), repeats)
    further = {key: (many[key] - pair[key]) / (len(edits) - 1) for key in pair}
    return {"pair": pair, "further_edit": further, "peak_memory": peak_memory()}


def measure_long(work: Path, repeats: int) -> dict[str, Any]:
    """Measure a pair of three minutes."""
    judge(work, ["warm_original"], ["warm_edit"])
    pair = fastest(lambda: judge(work, ["long_original"], ["long_edit"]), repeats)
    return {"long_pair": pair, "long_peak_memory": peak_memory()}


def measure_stages(work: Path, repeats: int) -> dict[str, Any]:
    """Measure where the time of one file goes, stage by stage, and that of the one comparison that takes any."""
    from music_evals.annotations import FEATURES
    from music_evals.audio import spectra
    from music_evals.audio.extraction import extract
    from music_evals.audio.io import load_audio
    from music_evals.pipelines.preservation import compare, load_features

    extract(load_audio(work / "warm_original.wav"))
    stages: dict[str, list[dict[str, float]]] = {}
    for _ in range(repeats):
        audio = load_audio(work / "original.wav")
        steps: dict[str, Callable[[], Any]] = {
            "constant-Q": lambda: spectra.constant_q(audio),  # noqa: B023
            "power spectrum": lambda: spectra.power_spectrum(audio),  # noqa: B023
            **{name: (lambda name=name: extract(audio, [name])) for name in FEATURES},  # noqa: B023
        }
        for name, step in steps.items():
            stages.setdefault(name, []).append(fastest(step, 1))
    pair = [load_features(work / f"{name}.wav") for name in ("original", "edit_0")]
    found = {f"stage {name}": min(passes, key=lambda each: each["wall"]) for name, passes in stages.items()}
    return found | {"stage chroma DTW": fastest(lambda: compare(*pair, metrics=["chroma_dtw_similarity"]), repeats)}


def measure_official(work: Path, _repeats: int) -> dict[str, Any]:
    """Measure the same pair with the official extractors, as far as they are installed; one warm pass."""
    from music_evals.errors import MissingBackendError

    found: dict[str, Any] = {}
    missing = []
    for stage, metrics in OFFICIAL_METRICS.items():
        chosen = {"metrics": metrics, "variant": "official"}
        try:
            judge(work, ["warm_original"], ["warm_edit"], **chosen)
        except MissingBackendError as error:
            missing.append(f"{stage}: {error}")
            continue
        found[f"official {stage}"] = fastest(lambda: judge(work, ["original"], ["edit_0"], **chosen), 1)  # noqa: B023
    return found | {"official_missing": missing}


MEASUREMENTS: dict[str, Callable[[Path, int], dict[str, Any]]] = {
    "ours": measure_ours,
    "long": measure_long,
    "stages": measure_stages,
    "official": measure_official,
}


def peak_memory() -> float:
    """Return the largest resident memory of this process so far, in MB."""
    import resource

    status = Path("/proc/self/status")
    if status.is_file():  # ru_maxrss would start from the parent's
        line = next(line for line in status.read_text(encoding="utf-8").splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024 / 1e6
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def _in_child(name: str, options: argparse.Namespace) -> dict[str, Any]:
    command = [sys.executable, __file__, "--child", name, "--work", options.work, "--repeats", str(options.repeats)]
    environment = os.environ | {"PYTHONWARNINGS": "ignore"}
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, env=environment, preexec_fn=two_cores)
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def two_cores() -> None:
    """Tie this process to two cores."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:N_CORES])


def _report(found: dict[str, Any]) -> None:
    missing = found.pop("official_missing")
    stages = {name: facts for name, facts in found.items() if name.startswith("official ")}
    official = {key: sum(facts[key] for facts in stages.values()) for key in ("wall", "processor")}
    rows = [
        (name, key, value)
        for name, facts in (found | {"official stages together": official}).items()
        for key, value in (facts.items() if isinstance(facts, dict) else [("MB", facts)])
    ]
    rows += [("ratio", key, official[key] / found["pair"][key]) for key in ("wall", "processor")]
    machine = f"{platform.machine()}, Python {platform.python_version()}, numpy {version('numpy')}"
    with (HERE / "results.csv").open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["quantity", "unit", "value", "goal", "machine"])
        for name, key, value in rows:
            goal = GOALS.get(name, "") if key in {"wall", "MB"} else ""
            writer.writerow([name, key, f"{value:.3f}", goal, machine])
            print(f"{name:<40} {key:<10} {value:>9.3f}  {goal and f'goal {goal}'}")
    for stage in missing:
        print(f"left out: {stage}")
    shown = [(name, value, GOALS.get(name, "")) for name, key, value in rows if key in {"wall", "MB"}]
    lines = ["| quantity | wall seconds, MB, or ratio | goal |", "|---|---|---|"]
    lines += [f"| {name} | {value:.3g} | {goal} |" for name, value, goal in shown]
    lines += ["", *(f"Left out: {stage}" for stage in missing)]
    fill_in("results", lines)


def fill_in(mark: str, lines: list[str]) -> None:
    """Write a table between two marks of the README."""
    page = (HERE / "README.md").read_text(encoding="utf-8")
    table = "\n".join(lines).rstrip() + "\n"
    page = re.sub(rf"(?<=<!-- {mark} -->\n).*?(?=<!-- /{mark} -->)", lambda _: table, page, flags=re.DOTALL)
    (HERE / "README.md").write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
