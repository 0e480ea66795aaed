"""How long a visitor of the inpainting Space waits for a candidate.

    python benchmarks/inpainting_space/run.py            # about three minutes; writes results.csv

Each system runs in a process of its own, tied to two cores. A model without weights is measured with random ones of the
shape that its config.json names: they take the same time.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
N_CORES = 2
COLUMNS = ("system", "what", "load_sec", "first_sec", "next_sec", "candidates", "machine")


def main() -> None:
    """Measure in child processes, print the table, write results.csv."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        json.dump(_measured(options.child[0], json.loads(options.child[1])), sys.stdout)
        return
    with tempfile.TemporaryDirectory() as folder:
        _copy_models(Path(folder))
        rows = [
            {"system": name, "what": what, **_in_child(folder, {"system": name, **settings})}
            for name, what, settings in _cases(folder)
        ]
    machine = f"{platform.machine()}, Python {platform.python_version()}, torch {version('torch')}"
    with (HERE / "results.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows({**row, "machine": machine} for row in rows)
    lines = ["| system | what | load | first candidate | each further one |", "|---|---|---|---|---|"]
    for row in rows:
        times = f"{row['load_sec']:.1f} | {row['first_sec']:.2f} | {row['next_sec']:.2f}"
        lines.append(f"| `{row['system']}` | {row['what']} | {times} |")
    page = HERE / "README.md"
    text = page.read_text(encoding="utf-8")
    table = "<!-- results -->\n" + "\n".join(lines) + "\n<!-- /results -->"
    page.write_text(re.sub("<!-- results -->.*<!-- /results -->", lambda _: table, text, flags=re.DOTALL), "utf-8")
    print("\n".join(lines))


def _copy_models(folder: Path) -> None:
    """Copy the models, with random weights for the transformer where there are none."""
    shutil.copytree(ROOT / "models", folder / "models")
    place = folder / "models" / "infill_transformer"
    if not (place / "model.safetensors").is_file():
        from music_evals.models.infill_transformer import InfillTransformer, InfillTransformerConfig

        settings = json.loads((place / "config.json").read_bytes())
        InfillTransformer(InfillTransformerConfig(**settings)).save_pretrained(place)


def _cases(folder: str) -> list[tuple[str, str, dict[str, Any]]]:
    """Return systems, what is asked of each in words, and as a `Request`."""
    from music_evals.ui.spaces.gap_filling import abilities, find_places

    found: list[tuple[str, str, dict[str, Any]]] = []
    for model in find_places(folder).models:
        drawn = {} if model.draws() else {"decoding": "sample"}
        if not model.draws():
            found.append((model.name, f"as it is set: {model.decoding}", {}))
        found.append((model.name, "drawn", drawn))
        if abilities(model).gap:
            locks = [[144 + 6 * quarter, 6, 60] for quarter in range(4)]
            found.append((model.name, "drawn, one measure locked", {**drawn, "keep": locks}))
            found.append((model.name, "drawn, 8 measures", {**drawn, "first": 5, "n_measures": 8}))
        if abilities(model).sketch:
            found.append((model.name, "drawn along a rhythm", {**drawn, "sketch": "rhythm"}))
    return found


def _in_child(folder: str, settings: dict[str, Any]) -> dict[str, Any]:
    command = [sys.executable, str(Path(__file__).resolve()), "--child", folder, json.dumps(settings)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def _measured(folder: str, settings: dict[str, Any]) -> dict[str, Any]:
    """Load as the page does when a visitor comes, then fill as the button does: four candidates."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:N_CORES])
    os.environ["OMP_NUM_THREADS"] = "1"  # as the page
    from music_evals.ui.spaces import melody_sources
    from music_evals.ui.spaces.gap_filling import Request, fill, find_places, load_system, model_of, models

    settings["keep"] = tuple(tuple(note) for note in settings.get("keep", ()))
    request, places = Request(**settings), find_places(folder)
    start = time.perf_counter()
    model = model_of(models(places), request.system)
    assert model is not None
    _ = load_system(places, model, request.decoding).inpainter
    times = [time.perf_counter()]
    melody = melody_sources.example("A walk in D minor")
    n = 0
    for filling in fill(places, melody, request):
        times.append(time.perf_counter())
        n = len(filling.candidates)
    # the first value has no candidate yet: what comes between is that candidate
    later = times[2 : 2 + n]
    further = (later[-1] - later[0]) / (n - 1) if n > 1 else later[0] - times[0]
    found = {"load_sec": times[0] - start, "first_sec": later[0] - times[0], "next_sec": further}
    return {**{name: round(value, 3) for name, value in found.items()}, "candidates": n}


if __name__ == "__main__":
    main()
