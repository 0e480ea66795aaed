"""How one pair is compared, in whatever process: the work of the preservation benchmark."""

from __future__ import annotations

import collections
import dataclasses
from pathlib import Path
from typing import Any

import numpy as np

from music_evals.annotations import Features, Score
from music_evals.audio.io import DEFAULT_AUDIO_LIMITS, Audio, load_audio
from music_evals.benchmark.tasks.preservation.pairs import CONTROLS, MusicFile, Pair
from music_evals.benchmark.tasks.preservation.reencoding import reencode, rewrite
from music_evals.errors import MusicEvalsError, located
from music_evals.locations import fetched
from music_evals.pipelines.preservation import Settings, Source, SourceLoader, Value, modality, score_pair
from music_evals.symbolic.files import read_score
from music_evals.symbolic.limits import DEFAULT_LIMITS

__all__ = ["PairScorer", "outline"]

CACHED_SOURCES = 4
"""Sources that a process keeps: an original, its edits, and the original of an unrelated pair."""

_MS = 3  # decimals of seconds in an outline


@dataclasses.dataclass(eq=False)
class PairScorer:
    """Compares pairs; keeps the last sources, since the edits of one original come one after the other."""

    settings: Settings

    def __post_init__(self) -> None:
        self._sources: collections.OrderedDict[tuple[str, str], Source] = collections.OrderedDict()
        self._scratch: Path | None = None
        self._loader = SourceLoader(self.settings)  # it parses nothing before it is in its process

    def begin(self, folder: Path) -> None:
        """Keep copies of remote files here; see `engines.Work`."""
        self._scratch = folder

    def __call__(self, pair: Pair) -> dict[str, Any]:
        """Return the answer for a pair, as in `rows.Scorer`, with the outlines of both files."""
        reference = self._load("reference", pair.reference)
        estimate = self._load("estimate", pair.estimate, pair.treatment)
        scored = score_pair(reference, estimate, self.settings)
        scores = {name: _score(value) for name, value in scored.values.items()}
        scores |= {name: {"error": f"{type(error).__name__}: {error}"} for name, error in scored.failures.items()}
        outlined = {} if pair.system in CONTROLS else {pair.reference: reference, pair.estimate: estimate}
        outlines = {
            file.content: {"music": source.content, **outline(source.features)} for file, source in outlined.items()
        }
        return {"scores": scores, "notes": list(scored.notes), "outlines": outlines}

    def _load(self, side: str, file: MusicFile, treatment: str = "") -> Source:
        key = file.content, treatment
        if key not in self._sources:
            limits = DEFAULT_AUDIO_LIMITS if modality(file.path) == "audio" else DEFAULT_LIMITS
            try:
                with fetched(file.path, file.content, max_bytes=limits.max_bytes, folder=self._scratch) as path:
                    source: str | Audio | Score = path
                    if treatment and modality(path) == "symbolic":  # the same music in a lesser copy
                        source = rewrite(read_score(path))
                    elif treatment:
                        source = reencode(load_audio(path, policy=self.settings.audio_policy))
                    self._sources[key] = self._loader.load(source)
            except MusicEvalsError as error:
                raise located(error, side) from error
        self._sources.move_to_end(key)
        while len(self._sources) > CACHED_SOURCES:
            self._sources.popitem(last=False)
        return self._sources[key]


def _score(value: Value) -> dict[str, Any]:
    if np.isnan(value.value):
        return {"value": None, "reason": value.reason}
    return {"value": value.value if np.isfinite(value.value) else "inf"}


def outline(features: Features) -> dict[str, Any]:
    """Return what can be drawn of the features: beats, chords, sections and melody, times in seconds to the ms."""
    drawable: dict[str, Any] = {"duration_sec": round(features.duration_sec, _MS)}
    if features.beats is not None:
        drawable["beats"] = features.beats.times_sec.round(_MS).tolist()
    if features.key is not None:
        drawable["key"] = [features.key.tonic, features.key.mode]
    for name in ("chords", "segments"):
        track = getattr(features, name)
        if track is not None:
            drawable[name] = _labelled(track.intervals_sec, track.labels)
    if features.melody is not None:
        drawable["melody"] = _labelled(features.melody.intervals_sec, features.melody.pitches.round(1).tolist())
    return drawable


def _labelled(intervals_sec: Any, labels: Any) -> list[list[Any]]:
    return [[start, end, label] for (start, end), label in zip(intervals_sec.round(_MS).tolist(), labels, strict=True)]
