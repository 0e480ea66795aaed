"""From a file or a value to the features that are compared: one recording or one score at a time."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
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
from music_evals.errors import BackendError, MissingBackendError, MusicEvalsError, UnsupportedTypeError
from music_evals.metrics.arrays import MUSECPEVAL, PRESERVATION_VARIANTS, check_variant
from music_evals.metrics.catalogue import CATALOGUE
from music_evals.numerics import n_threads
from music_evals.pipelines._measures import check_options, select_auxiliary, select_metrics
from music_evals.pipelines.score_features import score_features, score_remarks
from music_evals.symbolic.files import READERS, read_score

if TYPE_CHECKING:
    from music_evals.processes import ReaderProcess

__all__ = [
    "OFFICIAL_BACKENDS",
    "OFFICIAL_POLICY",
    "Settings",
    "Source",
    "SourceLoader",
    "SourceValue",
    "load_features",
    "modality",
]

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
        # A backend that is missing or fails is reported in `Source.failures`; what is wrong with the file is raised.
        path: Any = source
        if modality(source) == "audio":
            policy = self.settings.audio_policy
            return self._of_audio(source if isinstance(source, Audio) else load_audio(path, policy=policy))
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
        return Source(score_features(score, self.settings.features), "symbolic", content, score_remarks(score))

    def load_all(self, sources: Sequence[SourceValue]) -> list[Source | MusicEvalsError]:
        """Return the features of sources, or what is wrong with a file; recordings at the same time."""
        if len(sources) < 2 or any(modality(source) != "audio" for source in sources):
            return [self._attempt(source) for source in sources]
        with futures.ThreadPoolExecutor(n_threads()) as threads:
            return list(threads.map(self._attempt, sources))

    def _attempt(self, source: SourceValue) -> Source | MusicEvalsError:
        try:
            return self.load(source)
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
    """Return the modality of a source: ``"symbolic"`` for a score or a path with a suffix of one, else ``"audio"``.

    Parameters
    ----------
    source
        A path, an `Audio` or a `Score`. A file is identified by its suffix (``symbolic.files.READERS``), never opened.

    Raises
    ------
    UnsupportedTypeError
        Anything else.

    Examples
    --------
    >>> modality("edited.mid"), modality("edited.flac")
    ('symbolic', 'audio')

    """
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
