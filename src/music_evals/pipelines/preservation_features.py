"""From a file or a value to the features that are compared: one recording or one score at a time."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import hashlib
import importlib
import inspect
import json
import math
import numbers
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent import futures
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

from music_evals.annotations import Features, Score
from music_evals.audio.backends import choose_backends
from music_evals.audio.extraction import extract
from music_evals.audio.io import DEFAULT_POLICY, Audio, AudioPolicy, load_audio
from music_evals.audio.store import FeatureStore
from music_evals.deprecation import warn_renamed
from music_evals.errors import (
    BackendError,
    InvalidInputError,
    MissingBackendError,
    MusicEvalsError,
    UnknownNameError,
    UnsupportedTypeError,
)
from music_evals.metrics.arrays import MUSECPEVAL, OF_AUTHORS, PRESERVATION_VARIANTS, check_variant
from music_evals.metrics.catalogue import AUXILIARY, CATALOGUE, PRESERVATION_METRICS, RELEASES, select_names
from music_evals.metrics.rhythm import ALIGNMENTS
from music_evals.numerics import n_threads
from music_evals.pipelines.score_features import score_features, score_remarks
from music_evals.symbolic.files import READERS, read_score


class _Measure(NamedTuple):
    """A function of `metrics` with the options that make a metric of it."""

    module: str
    function: str
    options: Mapping[str, Any]


FACETS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        facet: tuple(name for name, metric in PRESERVATION_METRICS.items() if metric.facet == facet)
        for facet in dict.fromkeys(metric.facet for metric in PRESERVATION_METRICS.values())
    }
)
"""Facet -> its metrics, in the order of the results."""

_NAMED: Final[Mapping[str, _Measure]] = MappingProxyType(
    {
        "chroma_dtw_centred_transposed": _Measure(
            "harmony", "chroma_dtw_centred", {"transposition_invariant": True}
        ),
        "beat_f_measure_aligned": _Measure("rhythm", "beat_f_measure", {"align": "offset"}),
        "information_gain_aligned": _Measure("rhythm", "information_gain", {"align": "offset"}),
        "boundary_f_measure_3s": _Measure("structure", "boundary_f_measure", {"window_sec": 3.0}),
        "tuning_cents": _Measure("tuning", "tuning_cents", {}),
    }
)  # fmt: skip
"""Scores that are another function with options; every other one is the function of its name in its facet's module."""


def measure(name: str, variant: str, end_sec: float) -> tuple[Callable[..., float], dict[str, Any]]:
    """Return the function behind a main or auxiliary metric, and the keyword arguments that make it this one."""
    # one that has `end_sec` is given the end of the reference; the others read it off their annotations
    entry = _NAMED.get(name) or _Measure(CATALOGUE[name].facet, name, {})
    function = getattr(importlib.import_module(f"music_evals.metrics.{entry.module}"), entry.function)
    span = {"end_sec": end_sec} if "end_sec" in _keywords(function) and variant not in OF_AUTHORS else {}
    return function, {**entry.options, **span, "variant": variant}


@functools.cache
def _keywords(function: Callable[..., float]) -> tuple[str, ...]:
    """Return the names of the options of a metric."""
    parameters = inspect.signature(function).parameters.values()
    return tuple(parameter.name for parameter in parameters if parameter.kind is parameter.KEYWORD_ONLY)


def options_of(name: str, variant: str) -> tuple[str, ...]:
    """Return the options of a score that are free: neither the variant, nor the span, nor what makes it this score."""
    function, fixed = measure(name, variant, 0.0)
    return tuple(keyword for keyword in _keywords(function) if keyword not in {*fixed, "variant", "end_sec"})


def check_options(options: Mapping[str, Any], scores: Iterable[str], variant: str) -> None:
    """Raise unless all options are free ones of scores that are computed, with values that their functions can take."""
    computed = tuple(scores)
    for name, chosen in options.items():
        if name not in computed:
            raise UnknownNameError("computed metric", name, computed)
        if not isinstance(chosen, Mapping):
            raise UnsupportedTypeError(
                f"options of {name} must be a mapping of option to value, got {type(chosen).__name__}"
            )
        free, kind = options_of(name, variant), f"option of {name}"
        for option, value in chosen.items():
            if option not in free:
                raise UnknownNameError(kind, str(option), free)
            if option == "align" and value not in ALIGNMENTS:
                raise UnknownNameError("alignment", str(value), ALIGNMENTS)
            accepts, expected = _ACCEPTED.get(option, (None, ""))
            if accepts is not None and not accepts(value):
                raise InvalidInputError(f"option {option} of {name} must be {expected}, got {value!r}")


def _is_number(value: Any, kind: type = numbers.Real) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool) and math.isfinite(value)  # type: ignore[arg-type]


def _is_seconds(value: Any) -> bool:
    return _is_number(value) and value >= 0


_SECONDS = (_is_seconds, "a finite number of seconds, at least 0")
_ACCEPTED: Final[Mapping[str, tuple[Callable[[Any], bool], str]]] = MappingProxyType(
    {
        "tolerance_sec": _SECONDS,
        "min_beat_time_sec": (lambda value: value is None or _is_seconds(value), f"{_SECONDS[1]}, or None"),
        "window_sec": _SECONDS,
        "smooth_sec": _SECONDS,
        "min_lag_sec": _SECONDS,
        "tempo_ratio": (lambda value: _is_number(value) and value > 0, "a finite number above 0"),
        "transposition_invariant": (lambda value: isinstance(value, bool), "True or False"),
        "n": (lambda value: _is_number(value, numbers.Integral) and value >= 1, "a whole number, at least 1"),
    }
)
"""Option -> whether a value will do, and which do, in words; `align` is a name, and others are up to their function."""


def select_metrics(names: Iterable[str] | None, variant: str) -> tuple[str, ...]:
    """Return the metrics that are asked for, by name or facet, in the order of the variant's; None for all of these."""
    # auxiliary metrics are metrics where they are named, but of a release
    own = RELEASES.get(variant, tuple(PRESERVATION_METRICS))
    if names is None:
        return own
    known, kind = (own, f"metric of {variant}") if variant in RELEASES else ((*own, *AUXILIARY), "metric")
    wanted: list[str] = []
    for given in [names] if isinstance(names, str) else names:
        # timbre has none but auxiliary metrics
        of_facet = ([name for name in scores if CATALOGUE[name].facet == given] for scores in (own, known))
        wanted += next(filter(None, of_facet), [given])
    return select_names(wanted, known, kind)


def select_auxiliary(names: Iterable[str] | bool, metrics: Iterable[str], variant: str) -> tuple[str, ...]:  # noqa: FBT001
    """Return the auxiliary metrics that are asked for, in the order of `AUXILIARY`; True for all of the facets."""
    # one that is among the metrics is no auxiliary metric of theirs; a release has none
    if variant in RELEASES:
        return select_names(() if isinstance(names, bool) else names, (), f"auxiliary metric of {variant}")
    own = frozenset(metrics)
    if isinstance(names, bool):
        facets = {CATALOGUE[name].facet for name in own} if names else ()
        names = [name for name, scale in AUXILIARY.items() if scale.facet in facets]
    return tuple(name for name in select_names(names, AUXILIARY, "auxiliary metric") if name not in own)


if TYPE_CHECKING:
    from music_evals.processes import ReaderProcess


OFFICIAL_POLICY: Final = AudioPolicy(peak_normalise=False)
"""The official code resamples and mixes down, and leaves the level as it is."""

OFFICIAL_BACKENDS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "beats": "librosa_official",
        "key": "essentia_bgate",
        "chords": "madmom_crf",
        "chroma": "librosa_cqt",
        "f0": "pyin_official",
        "segments": "msaf_sf",
    }
)
"""The extractors of the official code; one whose package is absent fails, and is never imitated."""

_BACKENDS: Final[Mapping[str, Mapping[str, str]]] = {
    "official": OFFICIAL_BACKENDS,
    MUSECPEVAL: {"beats": "librosa_official", **dict.fromkeys(("key", "chroma", "segments"), "musecpeval_0.3")},
}
_POLICIES: Final = {
    "official": OFFICIAL_POLICY,
    MUSECPEVAL: AudioPolicy(peak_normalise=False, silence_dbfs=-160.0),  # it takes softer timbre for silence
}

SourceValue = str | os.PathLike[str] | Audio | Score
"""What can be compared: a file of audio or of notes, or what was read from one."""


class Source(NamedTuple):
    """One recording or score, as far as the metrics need it."""

    features: Features
    modality: str
    """``"audio"`` or ``"symbolic"``."""
    content: str
    """Hash of the decoded samples or of the notes: equal for equal music in whatever file."""
    notes: tuple[str, ...] = ()
    """What had to be assumed, in words."""
    failures: Mapping[str, MusicEvalsError] = MappingProxyType({})
    """Feature -> why its backend failed or is missing."""

    @property
    def entrance(self) -> str:
        """Old name of `modality`."""
        warn_renamed("Source.entrance", "modality")
        return self.modality


@dataclasses.dataclass(frozen=True)
class Settings:
    """What decides which numbers come out for a pair. `of` makes them of what a caller says, and checks it."""

    metrics: tuple[str, ...]  # names, in the order of the results
    companions: tuple[str, ...] = ()
    variant: str = "corrected"  # one of `PRESERVATION_VARIANTS`
    backends: Mapping[str, str] | None = None  # feature -> backend, where it is not the variant's
    store: FeatureStore | None = None  # feature store; `of` takes the folder of one too
    policy: AudioPolicy | None = None  # how recordings are decoded; None for the variant's policy
    # Metric -> keyword arguments of its function.
    options: Mapping[str, Mapping[str, Any]] = dataclasses.field(default_factory=dict)
    # What follows from these, in `of`: metrics and auxiliary metrics with the features that each compares, their names,
    # all features, the backends that differ from the default ones, and how recordings are decoded.
    compared: Mapping[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)
    scores: tuple[str, ...] = ()
    features: tuple[str, ...] = ()
    all_backends: Mapping[str, str] = dataclasses.field(default_factory=dict)
    audio_policy: AudioPolicy = DEFAULT_POLICY

    @classmethod
    def of(
        cls,
        *,
        metrics: Iterable[str] | None = None,
        companions: Iterable[str] | bool = (),
        variant: str = "corrected",
        backends: Mapping[str, str] | None = None,
        store: FeatureStore | str | os.PathLike[str] | None = None,
        policy: AudioPolicy | None = None,
        options: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> Self:
        """Build settings from what a caller may say."""
        check_variant(variant, PRESERVATION_VARIANTS)
        names = select_metrics(metrics, variant)
        opened = store if store is None or isinstance(store, FeatureStore) else FeatureStore(store)
        auxiliary = select_auxiliary(companions, names, variant) if companions else ()
        compared = {name: CATALOGUE[name].features_under(variant) for name in (*names, *auxiliary)}
        all_backends = {**_BACKENDS.get(variant, {}), **(backends or {})}
        choose_backends(all_backends)
        if options:
            check_options(options, compared, variant)
        return cls(
            names, auxiliary, variant, backends, opened, policy, options or {},
            compared=compared,
            scores=tuple(compared),
            features=tuple(dict.fromkeys(feature for features in compared.values() for feature in features)),
            all_backends=all_backends,
            audio_policy=policy or _POLICIES.get(variant, DEFAULT_POLICY),
        )  # fmt: skip


@dataclasses.dataclass(eq=False)
class SourceLoader(contextlib.AbstractContextManager["SourceLoader"]):
    """Loads sources under one set of settings; score files are parsed in a process of their own, while it is open."""

    settings: Settings
    _parser: ReaderProcess[Score] | None = dataclasses.field(default=None, init=False)

    def __exit__(self, *exception: object) -> None:
        """End the process that parses scores, if there is one."""
        if self._parser is not None:
            self._parser.close()
        self._parser = None

    def load(self, source: SourceValue) -> Source:
        """Return the features of a source."""
        return self.load_music(source)[1]

    def load_music(self, source: SourceValue) -> tuple[Audio | Score, Source]:
        """Return the recording or score that a source is, and its features."""
        # A backend that is missing or fails is reported in `Source.failures`; what is wrong with the file is raised.
        path: Any = source
        if modality(source) == "audio":
            policy = self.settings.audio_policy
            audio = source if isinstance(source, Audio) else load_audio(path, policy=policy)
            return audio, self._of_audio(audio)
        if isinstance(source, Score):
            score = source
        else:
            if self._parser is None:
                from music_evals.processes import ReaderProcess

                self._parser = ReaderProcess(read_score)
            parsed = self._parser.read(Path(path).absolute())  # the process may have started in another folder
            if isinstance(parsed, MusicEvalsError):
                raise parsed
            score = parsed
        content = hashlib.sha256(json.dumps(score.to_dict(), sort_keys=True).encode()).hexdigest()
        features = score_features(score, self.settings.features)
        return score, Source(features, "symbolic", content, score_remarks(score))

    def load_all(self, sources: Sequence[SourceValue]) -> list[Source | MusicEvalsError]:
        """Return the features of sources, or what is wrong with a file; recordings at the same time."""
        if len(sources) < 2 or any(modality(source) != "audio" for source in sources):
            return [self._attempt(source) for source in sources]
        with futures.ThreadPoolExecutor(n_threads()) as threads:
            return list(threads.map(self._attempt, sources))

    def _attempt(self, source: SourceValue) -> Source | MusicEvalsError:
        try:
            return self.load_music(source)[1]
        except MusicEvalsError as error:
            return error

    def _of_audio(self, audio: Audio) -> Source:
        settings = self.settings
        values: dict[str, Any] = {}
        undefined: dict[str, str] = {}
        failures: dict[str, MusicEvalsError] = {}
        for name in settings.features:
            try:
                extracted = extract(audio, [name], backends=settings.all_backends, store=settings.store)
            except (BackendError, MissingBackendError) as error:
                failures[name] = error
                continue
            values[name] = getattr(extracted, name)
            undefined |= extracted.undefined
        same_policy = audio.policy == settings.audio_policy
        notes = [] if same_policy else [f"decoded under another policy than asked for: {audio.policy}"]
        notes += [f"decoded by {audio.read_by}"] if audio.read_by else []
        silent = audio.silent and not audio.cancelled
        features = Features(audio.duration_sec, **values, undefined=undefined, silent=silent)
        return Source(features, "audio", audio.content_hash, tuple(notes), failures)


def modality(source: object) -> str:
    """Return the modality of a source: ``"symbolic"`` for a score or a path with a suffix of one, else ``"audio"``."""
    if isinstance(source, Audio):
        return "audio"
    if isinstance(source, Score):
        return "symbolic"
    if isinstance(source, str | os.PathLike):
        return "symbolic" if Path(source).suffix.lower() in READERS else "audio"
    raise UnsupportedTypeError(
        f"expected a path, an Audio or a Score, got {type(source).__name__}; samples become one by load_audio"
    )


def load_features(
    source: SourceValue,
    *,
    variant: str = "corrected",
    metrics: Iterable[str] | None = None,
    companions: Iterable[str] | bool = (),
    backends: Mapping[str, str] | None = None,
    store: FeatureStore | str | os.PathLike[str] | None = None,
    policy: AudioPolicy | None = None,
) -> Features:
    """Return the features of one recording or score that the metrics need."""
    settings = Settings.of(
        metrics=metrics, companions=companions, variant=variant, backends=backends, store=store, policy=policy
    )
    with SourceLoader(settings) as loader:
        loaded = loader.load(source)
    for error in loaded.failures.values():
        raise error
    return loaded.features
