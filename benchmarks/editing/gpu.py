"""What edits cost on a device: networks of the published sizes with random weights, seconds and memory of an edit.

Usage: python -m benchmarks.editing.gpu --device cuda [--systems zeta,musicmagus] [--seconds 30] [--write]

How long an edit takes does not depend on what the weights are, so none are needed: sizes are those of
published_sizes.json. Says nothing of how good an edit is. Adds to gpu.csv; --write fills the table of README.md.
"""

from __future__ import annotations

import argparse
import gc
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from benchmarks.editing.cost import BY_SECONDS, STUDIES, published
from benchmarks.gibbs.timing import receipt
from benchmarks.musib.tables import fill, read_csv, write_csv
from tests.editing.tiny_audioldm2 import tiny_pipeline
from tests.editing.tiny_musicgen import tiny_musicgen

from music_evals.annotations import Beats, Chords, EditConditions, EditInstruction, EditRequest, Score, Tempo
from music_evals.benchmark.formats import markdown_rows
from music_evals.editing.audioldm2 import AudioLDM2
from music_evals.files import write_atomically
from music_evals.symbolic.notes import make_notes

HERE = Path(__file__).parent
SIZES: Final = HERE / "published_sizes.json"
COLUMNS = (
    "system", "edited", "weights_gib", "peak_gib", "first_seconds", "seconds", "study_hours", "device", "threads",
    "load_average", "torch",
)  # fmt: skip
RATE: Final = 32000
REFINPAINT_EDITS: Final = 300
INSTRUCTION: Final = EditInstruction(
    text="Make it jazz.", source_prompt="a rock song", target_prompt="a jazz song", before="rock", after="jazz",
    bars=(4, 12), confidence=5,
)  # fmt: skip


def musicgen(sizes: Mapping[str, Any]) -> Any:
    """Return MusicGen by text, small."""
    from music_evals.editing.musicgen import MusicGen

    return MusicGen(tiny_musicgen("musicgen", sizes=_family(sizes, "small")))


def musicgen_melody(sizes: Mapping[str, Any]) -> Any:
    """Return MusicGen with a melody, medium."""
    from music_evals.editing.musicgen_melody import MusicGenMelody

    return MusicGenMelody(tiny_musicgen("musicgen_melody", sizes=_family(sizes, "medium")))


def musicongen(sizes: Mapping[str, Any]) -> Any:
    """Return MusiConGen, medium."""
    from music_evals.editing.musicongen import MusiConGen, _MusiConGenModel

    made = tiny_musicgen("musicongen", sizes=_family(sizes, "medium"))
    width = made.model.config.decoder.hidden_size
    chords, beats = torch.nn.Linear(12, width), torch.nn.Linear(1, width)
    return MusiConGen(_MusiConGenModel(made.model, made.tokenizer, chord_proj=chords, beat_proj=beats))


def zeta(sizes: Mapping[str, Any]) -> Any:
    """Return ZETA on AudioLDM 2."""
    from music_evals.editing.zeta import Zeta

    return Zeta(AudioLDM2(tiny_pipeline(parts=sizes["audioldm2"])))


def musicmagus(sizes: Mapping[str, Any]) -> Any:
    """Return MusicMagus on AudioLDM 2."""
    from music_evals.editing.musicmagus import MusicMagus

    return MusicMagus(AudioLDM2(tiny_pipeline(parts=sizes["audioldm2"])))


def refinpaint(sizes: Mapping[str, Any]) -> Any:
    """Return RefinPaint, whose defaults are the published sizes."""
    from music_evals.editing.refinpaint import RefinPaint
    from music_evals.editing.refinpaint_networks import RefinPaintNetworks

    return RefinPaint(RefinPaintNetworks(**sizes.get("refinpaint", {})))


SYSTEMS: Final[Mapping[str, Callable[[Mapping[str, Any]], Any]]] = {
    "musicgen": musicgen,
    "musicgen_melody": musicgen_melody,
    "musicongen": musicongen,
    "zeta": zeta,
    "musicmagus": musicmagus,
    "refinpaint": refinpaint,
}


def _family(sizes: Mapping[str, Any], size: str) -> dict[str, Any]:
    """Return a model of the MusicGen family as its window's config has it."""
    shared = {name: sizes[name] for name in ("audio_encoder", "text_encoder")}
    return {**shared, "decoder": sizes[size], "num_chroma": 12, "chroma_length": 235}


def request(system: str, seconds: float, item: int = 0) -> EditRequest:
    """Return a source with its instruction: tones and noise, or 16 bars of chords for the system that edits scores."""
    if system == "refinpaint":
        onsets = np.repeat(np.arange(64) * 4, 3)
        pitches = np.tile([60, 64, 67, 65, 69, 72], 32) + item
        score = Score(make_notes(onsets, np.full(192, 4), pitches, 80, 0), 4, tempos=(Tempo(0, 120.0),), programs=(0,))
        return EditRequest(source_id="score", instruction=INSTRUCTION, score=score, seed=item)
    time_sec = np.arange(round(seconds * RATE)) / RATE
    tones = sum(np.sin(2 * np.pi * pitch * time_sec) for pitch in (220.0, 277.2, 329.6))
    audio = (0.1 * tones + 0.01 * np.random.default_rng(item).standard_normal(len(time_sec))).astype(np.float32)
    beats = np.arange(0.0, seconds, 0.5)
    heard = EditConditions(
        Chords(np.array([[0.0, seconds]]), ("A:maj",)), Beats(beats, 120.0), downbeats_sec=beats[::4]
    )
    return EditRequest(
        source_id="song", instruction=INSTRUCTION, audio=audio[None], sample_rate=RATE, seed=item, conditions=heard
    )


def measured(system: str, sizes: Mapping[str, Any], seconds: Sequence[float], device: str) -> Iterator[dict[str, Any]]:
    """Yield a row for each length: the first edit, and the next one of another source."""
    on_gpu = device.startswith("cuda")
    editor = SYSTEMS[system](sizes).to(device)
    for length in seconds if system != "refinpaint" else (0.0,):
        if on_gpu:
            torch.cuda.reset_peak_memory_stats(device)
        took = []
        for item in range(2):
            started = time.perf_counter()
            editor.edit([request(system, length, item)])
            took.append(time.perf_counter() - started)
        yield {
            "system": system,
            "edited": f"{length:g} s" if length else "8 of 16 bars",
            "weights_gib": editor.memory(length)[0] / 2**30,
            "peak_gib": torch.cuda.max_memory_allocated(device) / 2**30 if on_gpu else None,
            "first_seconds": took[0],
            "seconds": took[1],
            "study_hours": hours(system, length, took[1]),
            **receipt(device),
        }


def hours(system: str, length: float, seconds: float) -> float | None:
    """Return the hours of MuseCPBench's study by the seconds of an edit; None at another length than the study's."""
    if system == "refinpaint":
        return seconds * REFINPAINT_EDITS / 3600
    n_sources, n_edits, study_length = STUDIES[system]
    if round(length) != round(study_length):
        return None
    calls = BY_SECONDS[system](published(system), length)
    return seconds * calls.study(n_sources, n_edits) / sum(calls) / 3600


def table(rows: Sequence[Mapping[str, str]]) -> str:
    """Return the rows as a table in Markdown."""
    head = ("system", "edited", "weights, GiB", "most in use, GiB", "seconds an edit", "hours of the study", "device")
    columns = ("system", "edited", "weights_gib", "peak_gib", "seconds", "study_hours", "device")
    lines = [[_short(row[name]) for name in columns] for row in rows]
    return markdown_rows([head, ["---"] * len(head), *lines])


def _short(text: str) -> str:
    try:
        return f"{float(text):.2f}"
    except ValueError:
        return text


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print, and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--systems", default=",".join(SYSTEMS), help="with commas (default: all)")
    parser.add_argument("--seconds", type=float, nargs="+", help="of the sources (default: as in the study)")
    parser.add_argument("--sizes", type=Path, default=SIZES, help="default: published_sizes.json")
    parser.add_argument("--out", type=Path, default=HERE, help="folder of gpu.csv and README.md")
    parser.add_argument("--write", action="store_true", help="fill the table of README.md, too")
    options = parser.parse_args(arguments)
    sizes = json.loads(options.sizes.read_text(encoding="utf-8"))
    file = options.out / "gpu.csv"
    rows: list[Mapping[str, Any]] = list(read_csv(file)) if file.exists() else []
    for system in options.systems.split(","):
        lengths = options.seconds or [float(round(STUDIES.get(system, (0, 0, 0.0))[2]))]
        for row in measured(system, sizes, lengths, options.device):
            print(*row.values(), sep="\t", flush=True)
            rows = [one for one in rows if any(one[name] != row[name] for name in ("system", "edited", "device"))]
            rows = sorted([*rows, row], key=lambda one: list(SYSTEMS).index(one["system"]))
            write_csv(file, COLUMNS, [dict(one) for one in rows])  # what was measured stays, whatever the next one does
        gc.collect()
    if options.write:
        page = options.out / "README.md"
        text = fill(page.read_text(encoding="utf-8"), {"gpu": table(read_csv(file))})
        write_atomically(page, text.encode())


if __name__ == "__main__":
    main()
