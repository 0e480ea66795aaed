"""Features of a recording: which backend runs on what, in which order, and what is never asked of it.

Every extracted feature is either an annotation or undefined with a reason; nothing is made up.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from music_evals.annotations import FEATURES, Features
from music_evals.audio.backends import Backend, UndefinedFeature, choose_backends
from music_evals.audio.decoding import decoder_versions
from music_evals.audio.io import DEFAULT_POLICY, Audio, AudioPolicy
from music_evals.audio.store import FeatureKey, FeatureStore, Undefined
from music_evals.errors import BackendError, UnknownNameError
from music_evals.numerics import kernels, one_thread

__all__ = ["SHORTEST_SEC", "SHORTEST_STRUCTURE_SEC", "extract", "receipt"]

SHORTEST_SEC = 2.0  # below it no feature is defined
SHORTEST_STRUCTURE_SEC = 10.0  # below it the form of the piece is not
_NEEDS_LENGTH = {"segments", "structure"}
# what packages that are not ours raise on a recording that they cannot take, and what an annotation of theirs that
# breaks its rules raises
_FOREIGN_ERRORS = (RuntimeError, ValueError, LookupError)


def extract(
    audio: Audio,
    features: Iterable[str] | None = None,
    *,
    backends: Mapping[str, str] | None = None,
    store: FeatureStore | None = None,
) -> Features:
    """Extract features of a recording, each once.

    What a backend takes as input is extracted first, by the chosen backend of that feature. A feature is undefined,
    with the reason in `Features.undefined`, where the recording is silent or shorter than 2 s, for segments and
    structure where it is shorter than 10 s, where the backend finds none, and where an input of it is undefined.

    Parameters
    ----------
    audio
        The recording.
    features
        Names out of `FEATURES`; None for all.
    backends
        Feature -> name of the backend, where it is not the default.
    store
        Where features are kept from one run to the next. It does not change a number.

    Returns
    -------
    Features
        What was asked for; the rest is None.

    Raises
    ------
    UnknownNameError
        A feature or a backend that does not exist.
    MissingBackendError
        A named backend needs a package that is not installed.
    BackendError
        An optional backend failed on the recording, or a backend returned something else than its feature.
    """
    chosen = choose_backends(backends)
    names = _checked(features)
    run = _Extraction(audio, chosen, store)
    extracted = {name: run.feature(name) for name in names}
    undefined = {name: value.reason for name, value in extracted.items() if isinstance(value, Undefined)}
    values = {name: value for name, value in extracted.items() if name not in undefined}
    return Features(audio.duration_sec, **values, undefined=undefined, silent=audio.silent and not audio.cancelled)


def receipt(
    backends: Mapping[str, str] | None = None,
    *,
    features: Iterable[str] | None = None,
    policy: AudioPolicy = DEFAULT_POLICY,
) -> dict[str, Any]:
    """Return what the numbers depend on, as plain values for a record.

    Parameters
    ----------
    backends
        Feature -> name of the backend, where it is not the default.
    features
        Names out of `FEATURES`; None for all. What they need as input is reported too.
    policy
        What is done to every recording.

    Returns
    -------
    dict
        ``policy``; ``decoder``, the versions of what decodes and resamples; ``features``: for each the backend, its
        version, inputs, parameters, packages with their versions, hashes of its weights, and licence.

    Raises
    ------
    UnknownNameError
        A feature or a backend that does not exist.
    MissingBackendError
        A named backend needs a package that is not installed.
    """
    chosen = choose_backends(backends)
    wanted = list(_checked(features))
    for name in wanted:  # grows while it is read
        wanted += [given for given in chosen[name].inputs if given not in wanted]
    described = {
        name: chosen[name].describe() | {"inputs": list(chosen[name].inputs), "licence": chosen[name].licence}
        for name in sorted(wanted)
    }
    return {"policy": dataclasses.asdict(policy), "decoder": decoder_versions(policy.decoder), "features": described}


def _checked(features: Iterable[str] | None) -> tuple[str, ...]:
    names = tuple(FEATURES) if features is None else tuple(dict.fromkeys(features))
    for name in names:
        if name not in FEATURES:
            raise UnknownNameError("feature", name, FEATURES)
    return names


class _Extraction:
    """One recording under one choice of backends."""

    def __init__(self, audio: Audio, chosen: Mapping[str, Backend], store: FeatureStore | None) -> None:
        self._audio, self._chosen, self._store = audio, chosen, store
        self._digests: dict[str, str] = {}

    def feature(self, name: str) -> Any:
        """Return the annotation, or `Undefined`: from the recording's memory, the store, or the backend."""
        reason = _edge(self._audio, name)
        if reason:
            return Undefined(reason)
        return self._audio.share(f"{name} {self._digest(name)}", lambda: self._stored(name))

    def _stored(self, name: str) -> Any:
        if self._store is None:
            return self._computed(name)
        key = FeatureKey(self._audio.content_hash, name, self._digest(name))
        value = self._store.get(key)
        if value is None:
            value = self._computed(name)
            self._store.put(key, value)
        return value

    def _computed(self, name: str) -> Any:
        backend = self._chosen[name]
        inputs = {given: self.feature(given) for given in backend.inputs}
        for given, value in inputs.items():
            if isinstance(value, Undefined):
                return Undefined(f"no {given}: {value.reason}")
        function, audio = backend.load(), self._audio.at_rate(backend.rate)
        try:
            with one_thread():
                value = function(audio, **inputs, **backend.parameters)
        except UndefinedFeature as undefined:
            return Undefined(str(undefined))
        except _FOREIGN_ERRORS as error:
            if not backend.optional or isinstance(error, BackendError):
                raise
            raise BackendError(
                f"the {backend.feature} backend {backend.name!r} failed: {type(error).__name__}: {error}"
            ) from error
        kind = FEATURES[backend.feature]
        if not isinstance(value, kind):
            raise BackendError(
                f"the {backend.feature} backend {backend.name!r} returned {type(value).__name__}, not {kind.__name__}"
            )
        # laid out as the arrays of a stored one: sums over them add up in the same order
        return kind.from_arrays({name: np.asarray(array, order="C") for name, array in value.to_arrays().items()})

    def _digest(self, name: str) -> str:
        """Return the hash of what the feature depends on besides the samples: its backend and those of its inputs."""
        if name not in self._digests:
            backend = self._chosen[name]
            about = backend.describe() | {"inputs": {given: self._digest(given) for given in backend.inputs}}
            about["kernels"] = kernels()  # a store that machines share mixes no last bits
            if backend.rate != self._audio.sample_rate:  # two recordings may differ above half our rate only
                about["content_hash"] = self._audio.at_rate(backend.rate).content_hash
            text = json.dumps(about, sort_keys=True)
            self._digests[name] = hashlib.sha256(text.encode()).hexdigest()[:32]
        return self._digests[name]


def _edge(audio: Audio, feature: str) -> str:
    """Return why the recording cannot have the feature, or nothing."""
    if audio.cancelled:
        return (
            f"silent: the peak of the mean of the channels lies below {audio.policy.silence_dbfs:g} dBFS, though a "
            "channel is louder (channels in opposite phase cancel); turn one of them over, or give one alone"
        )
    if audio.silent:
        loud = np.abs(audio.samples).max() >= audio.policy.silence
        aside = ", the mean aside," if loud else ""
        return f"silent: the peak{aside} lies below {audio.policy.silence_dbfs:g} dBFS"
    if audio.duration_sec < SHORTEST_SEC:
        return f"shorter than {SHORTEST_SEC:g} s"
    if feature in _NEEDS_LENGTH and audio.duration_sec < SHORTEST_STRUCTURE_SEC:
        return f"shorter than {SHORTEST_STRUCTURE_SEC:g} s"
    return ""
