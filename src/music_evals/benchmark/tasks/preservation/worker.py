"""How one pair is compared, in whatever process: the work of the preservation benchmark.

The control of the same music is a lesser copy of it: what everybody would call the same, and no extractor finds equal
to the bit. A metric that is not near its best for such a pair says something of the copy and not of the music.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from music_evals.annotations import Features, Score, targets_of
from music_evals.audio.io import DEFAULT_AUDIO_LIMITS, Audio, load_audio
from music_evals.benchmark.formats import plain
from music_evals.benchmark.rows import score_or_reason
from music_evals.benchmark.tasks.preservation.pairs import CONTROLS, MusicFile, Pair
from music_evals.errors import MusicEvalsError, located
from music_evals.locations import fetched
from music_evals.pipelines.edit_success import (
    DONE,
    SUCCESS,
    Measured,
    features_for,
    measured,
    score_targets,
    share_done,
    success_of,
)
from music_evals.pipelines.preservation import Settings, Source, SourceLoader, modality, score_pair
from music_evals.symbolic.files import read_score
from music_evals.symbolic.limits import DEFAULT_LIMITS
from music_evals.symbolic.midi import read_midi, write_midi

CACHED_SOURCES = 4
"""Sources that a process keeps: an original, its edits, and the original of an unrelated pair."""

_MS = 3  # decimals of seconds in an outline

RATE = 16_000  # Hz: nothing above 8 kHz is left
GAIN = 10 ** (-6 / 20)
SNR_DB = 30.0

REENCODED_AUDIO = "6 dB softer, as 16-bit samples at 16 kHz, with pink noise 30 dB below the music"
REENCODED_SCORE = "written as MIDI"

_LOWEST_HZ = 20.0  # of the noise: what lies below is not heard
_LOOP_BITS = 20  # the noise repeats after 2**20 samples, 66 s


@dataclasses.dataclass(eq=False)
class PairScorer:
    """Compares pairs; keeps the last sources, since the edits of one original come one after the other."""

    settings: Settings
    kinds: frozenset[str] = frozenset()  # of the targets of all pairs; none where nothing was asked

    _sources: dict[tuple[str, str], tuple[Source, Measured | None]] = dataclasses.field(
        default_factory=dict, init=False
    )  # the last used last
    _scratch: Path | None = dataclasses.field(default=None, init=False)
    _loader: SourceLoader | None = dataclasses.field(default=None, init=False)

    def begin(self, folder: Path) -> None:
        """Keep copies of remote files here; see `engines.Work`."""
        self._scratch = folder

    def __call__(self, pair: Pair) -> dict[str, Any]:
        """Return the answer for a pair, as in `rows.Scorer`, with the outlines of both files."""
        sides = [self._load("reference", pair.reference), self._load("estimate", pair.estimate, pair.treatment)]
        (reference, _), (estimate, _) = sides
        scored = score_pair(reference, estimate, self.settings)
        scores = {name: score_or_reason(value.value, value.reason) for name, value in scored.values.items()}
        scores |= {name: _failed(error) for name, error in scored.failures.items()}
        explanation: dict[str, Any] = {}
        if self.kinds:
            success, explanation = _success(sides, pair)
            scores |= success
        outlined = {} if pair.system in CONTROLS else {pair.reference: reference, pair.estimate: estimate}
        outlines = {
            file.content: {"music": source.content, **outline(source.features)} for file, source in outlined.items()
        }
        answer = {"scores": scores, "notes": list(scored.notes), "outlines": outlines}
        return answer | ({"explanation": explanation} if explanation else {})

    def _load(self, side: str, file: MusicFile, treatment: str = "") -> tuple[Source, Measured | None]:
        key = file.content, treatment
        self._loader = self._loader or SourceLoader(self.settings)
        if key not in self._sources:
            limits = DEFAULT_AUDIO_LIMITS if modality(file.path) == "audio" else DEFAULT_LIMITS
            try:
                with fetched(file.path, file.content, max_bytes=limits.max_bytes, folder=self._scratch) as path:
                    loaded: str | Audio | Score = path
                    if treatment and modality(path) == "symbolic":
                        loaded = read_midi(write_midi(read_score(path)))
                    elif treatment:  # the same-music control: the same music in a lesser copy
                        loaded = reencode(load_audio(path, policy=self.settings.audio_policy))
                    value, source = self._loader.load_music(loaded)
                    self._sources[key] = source, measured(value, source, self.kinds) if self.kinds else None
            except MusicEvalsError as error:
                raise located(error, side) from error
        self._sources[key] = self._sources.pop(key)
        while len(self._sources) > CACHED_SOURCES:
            del self._sources[next(iter(self._sources))]
        return self._sources[key]


def _success(sides: Sequence[tuple[Source, Measured | None]], pair: Pair) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the scores of what was asked, and what became of each target, both as in `rows.Scorer`."""
    wanted = targets_of(pair.targets)
    failures = [
        source.failures[name] for source, _ in sides for name in features_for(wanted) if name in source.failures
    ]
    if failures:
        return {name: _failed(failures[0]) for name in (SUCCESS, DONE)}, {}
    before, after = (measures for _, measures in sides if measures is not None)
    if pair.treatment:  # the control was turned down, and stands for the original unchanged
        after = dataclasses.replace(after, lufs=before.lufs)
    results = score_targets(before, after, wanted)
    why = "; ".join(f"{kind}: {score.reason}" for kind, score in results.items() if score.reason)
    why = why or ("nothing can be told of its targets" if wanted else "nothing was asked that can be measured")
    values = {SUCCESS: success_of(results), DONE: share_done(results)}
    targets = plain({kind: score.to_dict() for kind, score in results.items()})
    scores = {name: score_or_reason(value, why) for name, value in values.items()}
    return scores, {"targets": targets} if targets else {}


def _failed(error: MusicEvalsError) -> dict[str, Any]:
    return {"error": f"{type(error).__name__}: {error}"}


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


def reencode(audio: Audio) -> Audio:
    """Return a recording as it is after a pass through a small file."""
    # It is resampled to `RATE` (soxr HQ), gets pink noise (power falls as 1/f) `SNR_DB` below its own power, is turned
    # down by `GAIN`, and rounded to 16 bits; what then lies over full scale is clipped. The result is decoded under the
    # policy of the original, so that it has its rate again. The noise depends on the content alone: the same at every
    # call.
    policy = dataclasses.replace(audio.policy, sample_rate=RATE, peak_normalise=False)
    small = load_audio(audio.samples, rate=audio.sample_rate, policy=policy).samples
    power = float(np.mean(small.astype(np.float64) ** 2))
    noise = _pink_noise(int(audio.content_hash[:16], 16), len(small))
    softer = GAIN * (small + np.sqrt(power / 10 ** (SNR_DB / 10)) * noise)
    whole = np.iinfo(np.int16)
    rounded = np.clip(np.round(whole.max * softer), whole.min, whole.max).astype(np.int16)
    return load_audio(rounded, rate=RATE, policy=audio.policy)


def _pink_noise(seed: int, n: int) -> npt.NDArray[np.float64]:
    """Return noise at `RATE` of power 1, shape (n,), with equal power in each octave from `_LOWEST_HZ` on."""
    size = 2**_LOOP_BITS
    frequencies_hz = np.fft.rfftfreq(size, 1 / RATE)
    rng = np.random.default_rng(seed)
    spectrum = rng.standard_normal(len(frequencies_hz)) + 1j * rng.standard_normal(len(frequencies_hz))
    audible = frequencies_hz >= _LOWEST_HZ
    spectrum[~audible] = 0
    spectrum[audible] /= np.sqrt(frequencies_hz[audible])
    loop = np.fft.irfft(spectrum, size)
    return np.resize(loop / np.sqrt(np.mean(loop**2)), n)  # a spectrum's inverse goes on where it began
