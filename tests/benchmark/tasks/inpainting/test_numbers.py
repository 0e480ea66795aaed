"""Numbers that no change of the engine may change: seeds, failures, unseen windows, tests, likelihoods."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from music_evals.benchmark.results import build_results
from music_evals.benchmark.scores import read_scores
from music_evals.benchmark.tasks.inpainting.task import INPAINTING

BEFORE = Path(__file__).parent / "tables_at_5945143.json"
"""Our own numbers before the engine was one for all tasks; no oracle, which is why they are not in tests/golden."""
INTERVAL = ("low", "high")
"""Made in another way since then; tests/stats holds how."""
ITEM_METRICS = ("position_score", "pitch_accuracy", "rhythm_accuracy", "note_f1")
FEATURES = ("silence_rate", "pitch_class_entropy_difference", "groove_similarity")
SYSTEMS = {
    "net": ("model", 2), "sampler": ("model", 3), "leaky": ("leaking", 1), "copy_past": ("baseline", 1),
    "markov": ("baseline", 2), "silence": ("baseline", 1), "reference": ("control", 1),
}  # fmt: skip


def records(seed: int, n_songs: int, *, split: str, names: tuple[str, ...] = tuple(SYSTEMS)) -> list[dict[str, Any]]:
    """Records of seven systems: unequal seeds, scores that are undefined, a system that fails, likelihoods of two."""
    rng = np.random.default_rng(seed)
    items = {f"{split}/{song:02d}/{window}": f"song {song}" for song in range(n_songs) for window in range(3)}
    systems = {name: {"role": SYSTEMS[name][0], "seeds": list(range(SYSTEMS[name][1]))} for name in names}
    dataset = {"id": "own", "config": None, "split": split, "revision": None, "fingerprint": "00"}
    about = {"protocol": None, "variant": "corrected", "dataset": dataset | {"n_items": len(items)}, "systems": systems}
    more = {"extractors": {}, "seeds": [0, 1, 2], "options": {}, "versions": {}}
    rows: list[dict[str, Any]] = [
        {"kind": "run", "task": "inpainting", **about, **more},
        {"kind": "item", "item": f"{split}/broken", "error": "UnreadableFileError: no MIDI"},
    ]
    for item, song in items.items():
        seen = bool(rng.random() < 0.3)
        rows.append({"kind": "item", "item": item, "song": song, "seen_in_train": seen, "tokens": [129] * 384})
    level = dict(zip(SYSTEMS, (0.8, 0.6, 0.95, 0.5, 0.4, 0.0, 1.0), strict=True))
    for name, held in systems.items():
        for one, item in itertools.product(held["seeds"], items):
            who = {"item": item, "system": name, "seed": one}
            values = np.clip(level[name] + rng.normal(0, 0.25, 7), 0, 1).round(3)
            rows += _scores(who, values, rng.random(7) < 0.1, fails=name == "sampler" and item.endswith("1/1"))
    for name in [name for name in ("net", "sampler") if name in systems]:
        for place, item in enumerate(items):
            who = {"item": item, "system": name, "seed": 0, "metric": "inpainting_nll"}
            failed = {"error": "RuntimeError: too long", "n": 0}
            fails = name == "sampler" and place == 4
            rows.append({"kind": "score", **who, **(failed if fails else {"value": float(rng.gamma(2, 0.4)), "n": 1})})
    return [*rows, {"kind": "sitting", "wall_time_sec": 1.5}]


def _scores(who: dict[str, Any], values: Any, undefined: Any, *, fails: bool) -> Iterator[dict[str, Any]]:
    """Yield the rows of one item: those of a failure, or a prediction and its scores."""
    if not fails:
        yield {"kind": "prediction", **who, "middle": [129] * 96}
    for metric, value, blank in zip((*ITEM_METRICS, *FEATURES), values, undefined, strict=True):
        scored = {"value": None if blank else float(value), "n": 1}
        yield {"kind": "score", **who, "metric": metric, **({"error": "ValueError: no", "n": 0} if fails else scored)}


def same(found: Any, golden: Any, place: str = "") -> None:
    """Hold what the golden file has against what was found; what was added since is not looked at."""
    if isinstance(golden, dict):
        for key, value in golden.items():
            if key in INTERVAL:
                continue
            assert key in found, f"{place}.{key}"
            same(found[key], value, f"{place}.{key}")
    elif isinstance(golden, list) and golden and not isinstance(golden[0], str):
        assert len(found) == len(golden), place
        for number, value in enumerate(golden):
            same(found[number], value, f"{place}.{number}")
    elif isinstance(golden, float) and not isinstance(found, str):
        assert found is not None, place
        assert math.isclose(found, golden, rel_tol=1e-9, abs_tol=1e-12), (place, found, golden)
    else:
        assert found == golden, place


def test_no_number_has_changed() -> None:
    golden = json.loads(BEFORE.read_text(encoding="utf-8"))
    baselines = ("copy_past", "markov", "silence", "reference")
    judged, validation = (
        read_scores(rows, INPAINTING)
        for rows in (records(1, 9, split="test"), records(2, 6, split="validation", names=baselines))
    )
    results = build_results(judged, INPAINTING, validation, n_resamples=200, seed=3)
    same(results, {key: value for key, value in golden.items() if key != "source"})
