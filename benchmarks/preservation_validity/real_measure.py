"""Scores of the edits of real recordings, into a record file."""

from __future__ import annotations

import functools
import hashlib
import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from formulas import scoring_digest
from measure import UNRELATED, append_records, compare_sides, record_of
from real_edits import edits_of, make_edit, make_excerpt
from real_recordings import Recording
from tqdm import tqdm

from music_evals.annotations import Features
from music_evals.audio.store import FeatureStore
from music_evals.metrics.catalogue import AUXILIARY
from music_evals.pipelines.preservation import load_features

RENDERER = "recordings"
"""In the column of the renderers."""


def measure_recordings(
    recordings: Sequence[Recording],
    files: Mapping[str, Path],
    plan: Mapping[str, Any],
    half: str,
    *,
    work: Path,
    backends: tuple[str, ...] = (),
) -> Path:
    """Append what is missing to the records of a half, and return their path.

    One line a pair: item_id, renderer, half, source, piece, kind, strength, and the value (or null and a reason) of
    each main and auxiliary metric. `backends` are extractors in the place of the default ones, as ``"segments=foote"``.
    A run that was stopped goes on. Records of other extractors or formulas are left aside; features are kept through a
    change of formula.
    """
    work.mkdir(parents=True, exist_ok=True)
    chosen = [one for one in recordings if one.half == half and one.name in files]
    folders = {
        one.name: work / "audio" / half / _digest([plan["excerpt"], plan["kinds"], *_excerpt_of(one)]) for one in chosen
    }
    scoring = scoring_digest([*sorted(folder.name for folder in folders.values()), *backends])
    path = work / f"{half}-{scoring}.jsonl"
    done = {json.loads(line)["item_id"] for line in path.read_text().splitlines()} if path.exists() else set()
    excerpts = {}
    for one in tqdm(chosen, desc=f"excerpts, {half}", unit="file"):
        excerpts[one.name] = make_excerpt(plan, one, files[one.name], folders[one.name] / "source.wav")
    with path.open("a", encoding="utf-8") as file:
        jobs = [(one, *edit) for one in chosen for edit in edits_of(plan) if _edit_id(one, *edit) not in done]
        for one, kind, strength in tqdm(jobs, desc=f"edits, {half}", unit="pair", mininterval=5):
            target = folders[one.name] / f"{kind}_{strength:g}.wav"
            edited = make_edit(plan, kind, strength, excerpts[one.name], target)
            scores = compare_sides(
                *(_features(side, work, backends) for side in (excerpts[one.name], edited)), RENDERER
            )
            facts = {"half": half, "source": one.source, "piece": one.name, "kind": kind, "strength": strength}
            append_records(file, [record_of(scores, item_id=_edit_id(one, kind, strength), renderer=RENDERER, **facts)])
        pairs = list(_unrelated(chosen, done))
        for one, other in tqdm(pairs, desc=f"unrelated, {half}", unit="pair", mininterval=5):
            first, second = (_features(excerpts[each.name], work, backends) for each in (one, other))
            facts = {"half": half, "source": one.source, "piece": one.name, "kind": UNRELATED, "strength": 0.0}
            scores = compare_sides(first, second, RENDERER)
            append_records(file, [record_of(scores, item_id=_pair_id(one, other), renderer=RENDERER, **facts)])
    return path


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:12]


def _excerpt_of(recording: Recording) -> tuple[str, float, float]:
    return recording.sha256, recording.start_sec, recording.length_sec


@functools.lru_cache(maxsize=64)
def _features(path: Path, work: Path, backends: tuple[str, ...]) -> Features:
    chosen = dict(each.split("=", 1) for each in backends)
    return load_features(path, companions=AUXILIARY, backends=chosen, store=FeatureStore(work / "features"))


def _edit_id(recording: Recording, kind: str, strength: float) -> str:
    return f"{recording.name}:{kind}:{strength:g}"


def _pair_id(one: Recording, other: Recording) -> str:
    return f"{UNRELATED}:{one.name}:{other.name}"


def _unrelated(chosen: Sequence[Recording], done: set[str]) -> Iterator[tuple[Recording, Recording]]:
    """Yield every ordered pair of recordings by different artists."""
    for one, other in itertools.permutations(chosen, 2):
        if one.source != other.source and _pair_id(one, other) not in done:
            yield one, other
