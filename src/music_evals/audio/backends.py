"""The extractors by name, as data: feature -> name -> `Backend`.

A backend is a function ``(audio, *, <inputs>, **parameters) -> annotation``. It raises `UndefinedFeature` where the
recording does not have the feature. The default backend of each feature is one and the same on every machine; an
optional one runs when it is named, or says how it is installed.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import importlib
import importlib.metadata
import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from music_evals.audio.decoding import ffmpeg_version
from music_evals.audio.io import SAMPLE_RATE
from music_evals.audio.optional.process import installed_version
from music_evals.errors import BackendError, MissingBackendError, UnknownNameError

__all__ = ["BACKENDS", "DEFAULT_BACKENDS", "Backend", "UndefinedFeature", "choose_backends", "get_backend"]

WEIGHTS = Path(__file__).parent / "weights"


class UndefinedFeature(Exception):  # noqa: N818 - no error: the recording does not have the feature
    """Raised by a backend, and caught by `extract`, where the recording does not have the feature; says why."""


@dataclasses.dataclass(frozen=True)
class Backend:
    """One way to extract one feature.

    Parameters
    ----------
    feature
        What it returns, one of `FEATURES`.
    name
        Its name among the backends of the feature.
    function
        ``"module:function"``, imported when it is first used.
    version
        Raised whenever its numbers change: stored features of older versions are then not found any more.
    packages
        Distributions that it computes with; their installed versions go into the key of the feature store and into the
        receipt. If one is missing, the backend is.
    inputs
        Features that it takes as keyword arguments.
    rate
        The sample rate in Hz that it is given, whatever the policy says.
    parameters
        Fixed keyword arguments of the function.
    weights
        Files in ``audio/weights`` that it reads; their hashes go where the versions go.
    find_weights
        ``"module:function"`` that returns the path of weights which are not ours; their hash goes there too.
    ffmpeg
        True if it may run the command ffmpeg; its version goes where those of the packages go.
    licence
        Of its code and weights.
    install
        The command that installs an optional backend; empty for those that come with ``music_evals[audio]``.
    """

    feature: str
    name: str
    function: str
    version: int = 1
    packages: tuple[str, ...] = ("numpy", "scipy", "soxr")
    inputs: tuple[str, ...] = ()
    rate: int = SAMPLE_RATE
    parameters: Mapping[str, Any] = dataclasses.field(default_factory=lambda: MappingProxyType({}))
    weights: tuple[str, ...] = ()
    find_weights: str = ""
    ffmpeg: bool = False
    licence: str = "Apache-2.0"
    install: str = ""

    @property
    def optional(self) -> bool:
        """True if it needs more than ``music_evals[audio]``."""
        return bool(self.install)

    def load(self) -> Callable[..., Any]:
        """Import the function.

        Raises
        ------
        MissingBackendError
            A package that it needs is not installed.
        """
        self.package_versions()
        return _function(self.function)

    def package_versions(self) -> dict[str, str]:
        """Return the installed version of each package that it computes with.

        Raises
        ------
        MissingBackendError
            One is not installed; says how to install it.
        """
        versions = {}
        for package in self.packages:
            try:
                versions[package] = _version(package)
            except importlib.metadata.PackageNotFoundError:
                purpose = f"the {self.feature} backend {self.name!r}"
                raise MissingBackendError(package, "audio", purpose, install=self.install) from None
        return versions

    def describe(self) -> dict[str, Any]:
        """Return what its numbers depend on, as plain values.

        Raises
        ------
        MissingBackendError
            A package that it needs is not installed.
        BackendError
            Its weights are not there.
        """
        return {
            "backend": self.name,
            "version": self.version,
            "packages": self.package_versions() | ({"ffmpeg": ffmpeg_version()} if self.ffmpeg else {}),
            "parameters": self._defaults() | dict(self.parameters),
            "weights": {path.name: _sha256(path) for path in self._weight_files()},
            "rate": self.rate,
        }

    def _defaults(self) -> dict[str, Any]:
        """Return the keyword arguments that the function has a default for: what it was tuned to."""
        named = inspect.signature(_function(self.function)).parameters.values()
        return {each.name: each.default for each in named if each.default is not inspect.Parameter.empty}

    def _weight_files(self) -> list[Path]:
        files = [WEIGHTS / name for name in self.weights]
        return [*files, _function(self.find_weights)()] if self.find_weights else files


def _function(path: str) -> Callable[..., Any]:
    module, _, name = path.partition(":")
    function: Callable[..., Any] = getattr(importlib.import_module(module), name)
    return function


_OF_WORKERS = ("essentia", "madmom", "msaf")  # run in processes, perhaps in environments of their own


@functools.cache
def _version(package: str) -> str:
    own = installed_version(package) if package in _OF_WORKERS else ""
    return own or importlib.metadata.version(package)


@functools.cache
def _sha256(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise BackendError(
            f"the weights {path.name} cannot be read ({error.strerror}); install music_evals again"
        ) from error


_HERE = "music_evals.audio"
_OPTIONAL = f"{_HERE}.optional"
_ONNX = ("numpy", "onnxruntime", "scipy", "soxr")
_MELODY = ("melody_performed.onnx", "melody_rendered.onnx")
_LIBROSA = ("librosa", "numba", "numpy", "scipy", "soxr")


def _essentia(feature: str, name: str, function: str) -> Backend:
    return Backend(
        feature,
        name,
        f"{_OPTIONAL}.essentia:{function}",
        packages=("essentia",),
        rate=44100,
        licence="AGPL-3.0",
        install="pip install essentia",
    )


def _madmom(feature: str, name: str, function: str, **more: Any) -> Backend:
    return Backend(
        feature,
        name,
        f"{_OPTIONAL}.madmom:{function}",
        packages=("madmom",),
        rate=44100,
        licence="code BSD-3-Clause, weights CC BY-NC-SA 4.0",
        install='pip install "setuptools<81" cython numpy wheel && pip install --no-build-isolation madmom',
        **more,
    )


def _msaf(name: str, function: str, *packages: str) -> Backend:
    more = {"packages": ("msaf", *packages), "licence": "MIT", "install": "pip install msaf"}
    return Backend("segments", name, f"{_OPTIONAL}.msaf:{function}", **more)  # type: ignore[arg-type]


def _release(feature: str, function: str, rate: int = SAMPLE_RATE, **more: Any) -> Backend:
    return Backend(feature, "musecpeval_0.3", f"{_HERE}.{function}", packages=_LIBROSA, rate=rate, **more)


_ALL = (
    Backend("beats", "tcn", f"{_HERE}.beats:track_beats_tcn", version=3, weights=("beat_tracker.safetensors",)),
    Backend("beats", "librosa", f"{_HERE}.beats:track_beats_librosa", packages=_LIBROSA),
    Backend("beats", "librosa_official", f"{_HERE}.beats:track_beats_official", packages=_LIBROSA),
    _madmom("beats", "madmom", "track_beats"),
    _essentia("beats", "essentia", "track_beats"),
    Backend(
        "beats",
        "beat_this",
        f"{_OPTIONAL}.beat_this:track_beats",
        packages=("beat-this", "torch"),
        find_weights=f"{_OPTIONAL}.beat_this:find_checkpoint",
        licence="MIT",
        install="pip install beat-this, and let MUSIC_EVALS_BEAT_THIS_CHECKPOINT name the checkpoint (final0.ckpt) "
        "that you have fetched",
    ),
    Backend("key", "aarden_essen", f"{_HERE}.key:estimate_key", version=3),
    _essentia("key", "essentia_bgate", "estimate_key"),
    _release("key", "key:estimate_key_krumhansl"),
    Backend("chords", "hmm", f"{_HERE}.chords:recognise_chords", version=2),
    _madmom("chords", "madmom_crf", "recognise_chords", version=2, ffmpeg=True),
    Backend("chroma", "cqt", f"{_HERE}.chroma:compute_chroma"),
    Backend("chroma", "librosa_cqt", f"{_HERE}.chroma:compute_chroma_official", packages=_LIBROSA),
    _release("chroma", "chroma:smoothed_chroma"),
    _release("contour", "chroma:compute_contour", 16000),
    _release("timbre", "timbre:compute_mfcc"),
    Backend("bands", "cqt", f"{_HERE}.timbre:compute_bands"),
    Backend("f0", "melody_net", f"{_HERE}.f0:track_melody_net", version=2, packages=_ONNX, weights=_MELODY),
    Backend("f0", "harmonic_sum", f"{_HERE}.f0:track_harmonic_sum"),
    Backend("f0", "pyin", f"{_HERE}.f0:track_pyin", packages=_LIBROSA),
    Backend("f0", "pyin_official", f"{_HERE}.f0:track_pyin_official", packages=_LIBROSA),
    Backend(
        "f0",
        "basic_pitch",
        f"{_HERE}.optional_f0:track_basic_pitch",
        packages=_ONNX,
        find_weights=f"{_HERE}.optional_f0:find_basic_pitch",
        install="pip install --no-deps basic-pitch",
    ),
    Backend(
        "f0",
        "torchcrepe",
        f"{_HERE}.optional_f0:track_torchcrepe",
        packages=("torchcrepe", "torch"),
        licence="MIT",
        install="pip install torchcrepe",
    ),
    _essentia("f0", "essentia_melodia", "track_melodia"),
    Backend(
        "melody", "from_f0", f"{_HERE}.melody:notes_from_f0", version=2, packages=_ONNX, inputs=("f0",), weights=_MELODY
    ),
    Backend("structure", "timbre_harmony", f"{_HERE}.structure:compute_structure"),
    Backend("segments", "foote", f"{_HERE}.segments:segment_foote", inputs=("structure",)),
    Backend("segments", "form", f"{_HERE}.segments:segment_form", version=2),
    Backend(
        "segments", "agglomerative", f"{_HERE}.segments:segment_agglomerative", packages=_LIBROSA, inputs=("structure",)
    ),
    _msaf("msaf_sf", "segment_sf"),
    _msaf("musecpeval_0.3", "segment_sf_labelled", *_LIBROSA),
)

BACKENDS: Mapping[str, Mapping[str, Backend]] = MappingProxyType(
    {
        feature: MappingProxyType({backend.name: backend for backend in _ALL if backend.feature == feature})
        for feature in dict.fromkeys(backend.feature for backend in _ALL)
    }
)
"""Feature -> name -> backend."""

DEFAULT_BACKENDS: Mapping[str, str] = MappingProxyType(
    {
        "beats": "tcn",
        "key": "aarden_essen",
        "chords": "hmm",
        "chroma": "cqt",
        "f0": "melody_net",
        "melody": "from_f0",
        "segments": "foote",
        "structure": "timbre_harmony",
        "contour": "musecpeval_0.3",
        "timbre": "musecpeval_0.3",
        "bands": "cqt",
    }
)
"""Feature -> the backend that is used where none is named: free, offline, and the same on every machine."""


def get_backend(feature: str, name: str | None = None) -> Backend:
    """Return a backend by name, or the default of the feature.

    Raises
    ------
    UnknownNameError
        No such feature, or no such backend of it; names the nearest.
    """
    if feature not in BACKENDS:
        raise UnknownNameError("feature", feature, BACKENDS)
    if name is None:
        name = DEFAULT_BACKENDS[feature]
    if name not in BACKENDS[feature]:
        kind = f"{feature} backend"
        raise UnknownNameError(kind, name, BACKENDS[feature])
    return BACKENDS[feature][name]


def choose_backends(backends: Mapping[str, str] | None = None) -> dict[str, Backend]:
    """Return the backend of every feature: the named one, else the default.

    Raises
    ------
    UnknownNameError
        No such feature, or no such backend of it.
    """
    named = dict(backends or {})
    chosen = {feature: get_backend(feature, named.pop(feature, None)) for feature in BACKENDS}
    for feature in named:
        raise UnknownNameError("feature", feature, BACKENDS)
    return chosen
