"""How long a report is, and how long a browser takes to open it.

    python -m benchmarks.report_pages.run            # about two minutes; writes results.csv

Reports of made-up records, as large as reports become: 27 systems, and 2,000 pairs.
"""

from __future__ import annotations

import csv
import itertools
import platform
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from benchmarks.machines import processor

from music_evals.benchmark.results import build_results
from music_evals.benchmark.scores import read_scores
from music_evals.benchmark.tasks.inpainting import report as inpainting
from music_evals.benchmark.tasks.inpainting.task import INPAINTING
from music_evals.benchmark.tasks.preservation import report as preservation
from music_evals.benchmark.tasks.preservation.pairs import CEILING, UNRELATED
from music_evals.benchmark.tasks.preservation.task import PRESERVATION
from music_evals.metrics.catalogue import AUXILIARY, CATALOGUE, PRESERVATION_METRICS, SUCCESS_SCORES

__all__ = ["CASES", "Opened", "inpainting_page", "opened", "preservation_page"]

HERE: Final = Path(__file__).resolve().parent
WIDTH: Final = 1280
CASES: Final = (
    ("preservation", 2, 20),
    ("preservation", 27, 20),
    ("preservation", 1, 2000),
    ("preservation", 27, 74),
    ("inpainting", 7, 30),
    ("inpainting", 27, 30),
)
"""Task, systems, and items of each."""


class Opened(NamedTuple):
    """What a browser says of a page."""

    height_px: int
    seconds: float  # until it is drawn and its scripts have run
    shown: int  # sections that are open


def preservation_page(n_systems: int, n_items: int, *, targets: bool = False, seed: int = 0) -> str:
    """Return the report of systems, and of the two controls, on items of which every tenth score is undefined.

    With `targets` success is scored too, and the same music scores as well as can be, so that there is a plane.
    """
    rng = np.random.default_rng(seed)
    more = [*AUXILIARY, *(SUCCESS_SCORES if targets else ())]
    names = [*PRESERVATION_METRICS, *more]
    header = {"variant": "corrected", "metrics": list(PRESERVATION_METRICS), "companions": more,
              "extractors": {"features": {}}, "versions": {}}  # fmt: skip
    dataset = {"id": "made_up", "config": None, "split": None, "revision": None}
    systems = [f"system {place}" for place in range(n_systems)]
    rows: list[dict[str, Any]] = [
        {"kind": "run", "task": "preservation", "dataset": dataset, **header},
        {"kind": "selection", "systems": systems},
    ]
    for system, item in itertools.product([*systems, CEILING, UNRELATED], range(n_items)):
        contents = [f"{side} {item} {system if side == 'estimate' else ''}" for side in ("reference", "estimate")]
        sides = {
            side: {"name": f"song_{item:04d}.wav", "content": content}
            for side, content in zip(("reference", "estimate"), contents, strict=True)
        }
        about = {"item": f"song_{item:04d}", "system": system}
        rows.append({"kind": "pair", **about, "group": f"{item}", "modality": "audio", **sides, "treatment": ""})
        for name, value in zip(names, rng.random(len(names)), strict=True):
            score = {"value": None, "reason": "reference: silent"} if value < 0.1 else {"value": float(value)}
            if targets and system == CEILING:
                score = {"value": 0.0 if name in SUCCESS_SCORES else CATALOGUE[name].best}
            rows.append({"kind": "score", **about, "content": contents, "metric": name, "variant": "corrected",
                         **score, "n": 1})  # fmt: skip
        rows += ({"kind": "outline", "content": content, "duration_sec": 8.0, "beats": [1.0, 2.0, 3.0],
                  "melody": [[0.0, 1.0, 60.0], [1.0, 2.0, 67.0]]} for content in contents)  # fmt: skip
    found = read_scores(rows, PRESERVATION)
    return preservation.render_report(build_results(found, PRESERVATION, n_resamples=20), found)


def inpainting_page(n_systems: int, n_items: int, *, seed: int = 0) -> str:
    """Return the report of models and baselines on windows of songs, three a song."""
    systems = {
        f"system {place}": {"role": "model" if place % 2 else "baseline", "seeds": [0]} for place in range(n_systems)
    } | {"reference": {"role": "control", "seeds": [0]}}
    judged, validation = (
        read_scores(list(_filled(systems, n_items, split, seed)), INPAINTING) for split in ("test", "validation")
    )
    return inpainting.render_report(build_results(judged, INPAINTING, validation, n_resamples=20), judged)


def _filled(systems: dict[str, Any], n_items: int, split: str, seed: int) -> Iterator[dict[str, Any]]:
    rng = np.random.default_rng([seed, len(split)])
    kept = systems if split == "test" else {name: one for name, one in systems.items() if one["role"] != "model"}
    dataset = {"id": "made_up", "config": None, "split": split, "revision": None, "fingerprint": "00"}
    yield {"kind": "run", "task": "inpainting", "protocol": None, "variant": "corrected", "systems": kept,
           "dataset": dataset | {"n_items": n_items}, "extractors": {}, "seeds": [0], "options": {},
           "versions": {}}  # fmt: skip
    for item in range(n_items):
        tune = [60, *[128] * 11] * 32
        yield {"kind": "item", "item": f"{split}/{item:03d}", "song": f"{item // 3}", "seen_in_train": False,
               "tokens": tune}  # fmt: skip
    names = ("position_score", "pitch_accuracy", "rhythm_accuracy", "note_f1", "silence_rate",
             "pitch_class_entropy_difference", "groove_similarity")  # fmt: skip
    for system, item in itertools.product(kept, range(n_items)):
        who = {"item": f"{split}/{item:03d}", "system": system, "seed": 0}
        yield {"kind": "prediction", **who, "middle": [62, *[128] * 11] * 8}
        for name, value in zip(names, rng.random(len(names)), strict=True):
            yield {"kind": "score", **who, "metric": name, "value": float(value), "n": 1}
    yield {"kind": "sitting", "wall_time_sec": 1.5}


def opened(browser: Any, path: Path) -> Opened:
    """Open a page from its file in a browser of playwright, and wait until it is drawn."""
    page = browser.new_page(viewport={"width": WIDTH, "height": 900})
    begun = time.monotonic()
    page.goto(path.as_uri(), wait_until="load")
    page.evaluate("() => new Promise(drawn => requestAnimationFrame(() => requestAnimationFrame(drawn)))")
    seconds = time.monotonic() - begun
    height, shown = page.evaluate(
        "[document.documentElement.scrollHeight, document.querySelectorAll('main > details[open]').length]"
    )
    page.close()
    return Opened(height, seconds, shown)


def main() -> None:
    """Measure all cases and write results.csv."""
    from playwright.sync_api import sync_playwright

    rows: list[Sequence[Any]] = []
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for task, n_systems, n_items in CASES:
            page = (preservation_page if task == "preservation" else inpainting_page)(n_systems, n_items)
            path = Path(folder, "report.html")
            path.write_text(page, encoding="utf-8")
            found = min((opened(browser, path) for _ in range(3)), key=lambda one: one.seconds)
            size = path.stat().st_size / 1e6
            rows.append((task, n_systems, n_items, f"{size:.2f}", found.height_px, f"{found.seconds:.2f}"))
            print(*rows[-1], sep="\t", flush=True)
        version = browser.version
        browser.close()
    with (HERE / "results.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("task", "systems", "items", "megabytes", "height_px", "open_sec", "machine"))
        writer.writerows((*row, f"{processor()}, {platform.system()}, Chromium {version}") for row in rows)


if __name__ == "__main__":
    main()
