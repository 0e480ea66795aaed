"""What a process of the preservation benchmark does: compare one pair after another, on request.

A request and its answer are plain values, so that they can go through a pipe and into a record. The process keeps the
last sources that it loaded: the edits of one original come one after the other, and the original is analysed once.
"""

from __future__ import annotations

import collections
import dataclasses
import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from music_evals.annotations import Features, Score
from music_evals.audio.io import SAMPLE_RATE, Audio, load_audio
from music_evals.benchmark.preservation.reencoding import reencode, rewrite
from music_evals.errors import MusicEvalsError, located
from music_evals.pipelines.preservation import Settings, Source, SourceLoader, Value, entrance, judge
from music_evals.symbolic.files import read_score

__all__ = ["REENCODED", "answer", "outline", "request", "warm_up_request"]

REENCODED = "re-encoded"
"""The treatment of the same-music control; see `reencoding`."""

KEPT_SOURCES = 4
"""Sources that a process keeps: an original, its edits, and the original of an unrelated pair."""

WARM_UP_SEC = 12.0
"""Long enough for every feature to be extracted."""

_MS = 3  # decimals of seconds in an outline


@dataclasses.dataclass(eq=False)
class _Bench:
    """Settings, and what was loaded under them."""

    settings: Settings
    loader: SourceLoader
    kept: collections.OrderedDict[tuple[str, str], Source]

    def load(self, side: Mapping[str, str]) -> Source:
        key = side["content"], side["treatment"]
        if key not in self.kept:
            self.kept[key] = self.loader.load(_treated(side, self.settings))
        self.kept.move_to_end(key)
        while len(self.kept) > KEPT_SOURCES:
            self.kept.popitem(last=False)
        return self.kept[key]


_benches: dict[str, _Bench] = {}  # one in a process, unless runs of several settings share it


def request(
    settings: Mapping[str, Any], reference: Mapping[str, str], estimate: Mapping[str, str], *, outlines: bool = False
) -> str:
    """Return the message that asks for a comparison.

    Parameters
    ----------
    settings
        Keyword arguments of `pipelines.preservation.Settings.of`, as plain values.
    reference, estimate
        ``path``, ``content`` (hash of the bytes) and ``treatment`` (``""`` or `REENCODED`).
    outlines
        Also return what can be drawn of both.

    """
    sides = {"reference": reference, "estimate": estimate}
    return json.dumps({"settings": settings, "outlines": outlines, **sides}, sort_keys=True)


def warm_up_request(settings: Mapping[str, Any]) -> str:
    """Return the message that asks for everything to be extracted and compared once, so that all code is compiled.

    Every score, since later runs may want others; without a store, which would answer in place of the code.
    """
    whole = {"metrics": None, "companions": True, "store": None}
    return json.dumps({"settings": {**settings, **whole}}, sort_keys=True)


def answer(message: str) -> dict[str, Any]:
    """Answer a `request`, or a `warm_up_request`, whose answer is empty.

    Returns
    -------
    dict
        ``scores``: name -> ``value`` (None where undefined, then with ``reason``) or ``error``; ``notes``: texts;
        ``outlines``: content -> `outline`, with ``music``, the hash of what the file holds once it is decoded; empty
        where they were not asked for.

    Raises
    ------
    MusicEvalsError
        One of the two cannot be loaded; the message starts with which.

    """
    task = json.loads(message)
    bench = _bench(task["settings"])
    if "reference" not in task:
        source = bench.loader.load(_made_up_audio())
        judge(source, source, bench.settings)
        return {}
    sources = {side: _loaded(bench, side, task[side]) for side in ("reference", "estimate")}
    judged = judge(sources["reference"], sources["estimate"], bench.settings)
    scores = {name: _score(value) for name, value in judged.values.items()}
    scores |= {name: {"error": f"{type(error).__name__}: {error}"} for name, error in judged.failures.items()}
    drawn = {
        task[side]["content"]: {"music": source.content, **outline(source.features)} for side, source in sources.items()
    }
    return {"scores": scores, "notes": list(judged.notes), "outlines": drawn if task["outlines"] else {}}


def _loaded(bench: _Bench, side: str, file: Mapping[str, str]) -> Source:
    try:
        return bench.load(file)
    except MusicEvalsError as error:
        raise located(error, side) from error


def _made_up_audio() -> Audio:
    """Clicks and a chord."""
    rng = np.random.default_rng(0)
    times = np.arange(int(WARM_UP_SEC * SAMPLE_RATE)) / SAMPLE_RATE
    clicks = np.where(times % 0.5 < 0.02, rng.standard_normal(len(times)), 0.0)
    tones = np.sin(2 * np.pi * 220 * 2 ** (np.array([[0], [4], [7]]) / 12) * times).sum(axis=0)
    return load_audio((0.2 * clicks + 0.1 * tones).astype(np.float32), rate=SAMPLE_RATE)


def outline(features: Features) -> dict[str, Any]:
    """Return what can be drawn of the features: beats, chords, sections and melody, times in seconds to the ms."""
    drawn: dict[str, Any] = {"duration_sec": round(features.duration_sec, _MS)}
    if features.beats is not None:
        drawn["beats"] = features.beats.times_sec.round(_MS).tolist()
    if features.key is not None:
        drawn["key"] = [features.key.tonic, features.key.mode]
    for name in ("chords", "segments"):
        found = getattr(features, name)
        if found is not None:
            drawn[name] = _labelled(found.intervals_sec, found.labels)
    if features.melody is not None:
        drawn["melody"] = _labelled(features.melody.intervals_sec, features.melody.pitches.round(1).tolist())
    return drawn


def _labelled(intervals_sec: Any, labels: Any) -> list[list[Any]]:
    return [[start, end, label] for (start, end), label in zip(intervals_sec.round(_MS).tolist(), labels, strict=True)]


def _bench(settings: Mapping[str, Any]) -> _Bench:
    key = json.dumps(settings, sort_keys=True)
    if key not in _benches:
        made = Settings.of(**settings)
        _benches[key] = _Bench(made, SourceLoader(made), collections.OrderedDict())
    return _benches[key]


def _score(value: Value) -> dict[str, Any]:
    if np.isnan(value.value):
        return {"value": None, "reason": value.reason}
    return {"value": value.value if np.isfinite(value.value) else "inf"}


def _treated(side: Mapping[str, str], settings: Settings) -> str | Audio | Score:
    path = side["path"]
    if not side["treatment"]:
        return path
    if entrance(path) == "symbolic":
        return rewrite(read_score(path))
    return reencode(load_audio(path, policy=settings.audio_policy))
