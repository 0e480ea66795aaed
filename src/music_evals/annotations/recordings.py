"""Values of recorded music: the output of an extractor, or annotations by people.

Conventions
-----------
- All times are seconds from the start of the recording, float64, in names that end in ``_sec``.
- Chord labels follow Harte et al. (ISMIR 2005), as `mir_eval.chord` reads them: ``"C#:min"``, `NO_CHORD` for none.
- A frequency above 0 is a voiced frame. 0 is unvoiced; a negative one is unvoiced too, and its absolute value is the
  best guess of the pitch, as in `mir_eval.melody`.
- Pitches of notes are MIDI numbers, 60 = C4; pitch classes are 0 = C .. 11 = B.

Arrays are checked once, when the value is made; they are not copied and must not be written to. What breaks the
rules of its parameters, such as times that do not increase or are not finite, raises `InvalidAnnotationError`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from music_evals.errors import InvalidAnnotationError

FloatArray = npt.NDArray[np.float64]

NO_CHORD = "N"
"""The label of a stretch without a chord."""


class _Annotation:
    """Conversion to and from named arrays, which a file can hold."""

    def to_arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return every field as an array; `from_arrays` is the inverse."""
        return {field.name: np.asarray(getattr(self, field.name)) for field in dataclasses.fields(self)}  # type: ignore[arg-type]

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> Self:
        """Rebuild an annotation from `to_arrays`."""
        values: dict[str, Any] = {}
        for field in dataclasses.fields(cls):  # type: ignore[arg-type]
            array = arrays[field.name]
            if array.dtype.kind == "U":
                values[field.name] = tuple(array.tolist()) if array.ndim else str(array)
            else:
                values[field.name] = array if array.ndim else array.item()
        if "labels" in values:
            values["labels"] = tuple(values["labels"])  # no labels at all make an array of floats
        return cls(**values)


@dataclasses.dataclass(frozen=True, eq=False)
class Beats(_Annotation):
    """Beat times and the tempo that their source states.

    Parameters
    ----------
    times_sec
        Increasing, >= 0, shape (n,). May be empty.
    bpm
        Beats a minute, above 0; NaN where the source gives none.
    log_odds
        Evidence, from which the beats can be counted at another level (`audio.tempo_levels`): the log-odds of a beat,
        frame by frame, shape (n_frames,). Empty where the source keeps none, and so are the other two.
    span_sec
        Evidence: the stretch that beats may lie in, shape (2,).
    pulse
        Evidence: how much the onsets recur after each of a row of lags, shape (n_lags,).
    onsets
        Evidence: how strong the onsets are, at regular times from 0 on, >= 0, shape (n_frames,). From it
        `metrics.rhythm.swing_ratio` reads what happens between beats.
    onset_rate_hz
        Values of `onsets` a second; NaN where there are none.
    """

    times_sec: FloatArray
    bpm: float = float("nan")
    log_odds: npt.NDArray[np.floating[Any]] = dataclasses.field(default_factory=lambda: np.zeros(0))
    span_sec: FloatArray = dataclasses.field(default_factory=lambda: np.zeros(0))
    pulse: FloatArray = dataclasses.field(default_factory=lambda: np.zeros(0))
    onsets: npt.NDArray[np.floating[Any]] = dataclasses.field(default_factory=lambda: np.zeros(0))
    onset_rate_hz: float = float("nan")

    def __post_init__(self) -> None:
        for name in ("log_odds", "span_sec", "pulse"):
            _check_vector(getattr(self, name), name)
        if len(self.pulse) and not (len(self.log_odds) and len(self.span_sec) == 2):
            raise InvalidAnnotationError("the pulse of beats needs their log_odds and span_sec beside it")
        _check_vector(self.times_sec, "beat times", increasing=True)
        if not (np.isnan(self.bpm) or 0 < self.bpm < float("inf")):
            raise InvalidAnnotationError(f"bpm must be above 0, or NaN if unknown, got {self.bpm}")


@dataclasses.dataclass(frozen=True)
class Key(_Annotation):
    """A key: pitch class of the tonic, 0 = C .. 11 = B, the mode, and how sure its source is.

    Parameters
    ----------
    tonic, mode
        0..11, and ``"major"`` or ``"minor"``.
    confidence
        How far the key stands out from the others, 0..2, higher is surer; NaN where the source does not say. Of
        `estimate_key` the correlation of its profile less that of the next best key. Keys are equal whatever it is.
    tuning
        By how much the pitch classes lie above those of A4 = 440 Hz, in semitones, -0.5..0.5; 0 where the source does
        not say. Two sides of a pair are compared in one tuning: `metrics.tuning`.
    """

    tonic: int
    mode: str
    confidence: float = dataclasses.field(default=float("nan"), compare=False)
    tuning: float = dataclasses.field(default=0.0, compare=False)

    def __post_init__(self) -> None:
        if self.confidence < 0 or self.confidence > 2:
            raise InvalidAnnotationError(f"the confidence of a key must be 0..2, or NaN, got {self.confidence}")
        if self.tonic not in range(12) or self.mode not in {"major", "minor"}:
            raise InvalidAnnotationError(
                f"expected a tonic 0..11 and 'major' or 'minor', got {self.tonic!r} and {self.mode!r}"
            )
        _check_tuning(self.tuning)


@dataclasses.dataclass(frozen=True, eq=False)
class Chords(_Annotation):
    """Chords one after the other.

    Parameters
    ----------
    intervals_sec
        Start and end of each, shape (n, 2); each starts where the one before ends.
    labels
        In Harte syntax, one an interval.
    tuning
        As of a `Key`.
    """

    intervals_sec: FloatArray
    labels: tuple[str, ...]
    tuning: float = 0.0

    def __post_init__(self) -> None:
        _check_intervals(self.intervals_sec, "chords", self.labels)
        _check_tuning(self.tuning)


@dataclasses.dataclass(frozen=True, eq=False)
class Segments(_Annotation):
    """Sections one after the other, from 0 to the end of the recording.

    Parameters
    ----------
    intervals_sec
        Start and end of each, shape (n, 2); each starts where the one before ends, the first at 0.
    labels
        One an interval; sections of one label are repetitions.
    """

    intervals_sec: FloatArray
    labels: tuple[str, ...]

    def __post_init__(self) -> None:
        _check_intervals(self.intervals_sec, "segments", self.labels)
        if len(self.intervals_sec) and self.intervals_sec[0, 0] != 0:
            raise InvalidAnnotationError(f"segments must start at 0, got {self.intervals_sec[0, 0]:.3f} s")


@dataclasses.dataclass(frozen=True, eq=False)
class F0Track(_Annotation):
    """The fundamental frequency of the melody, frame by frame.

    Parameters
    ----------
    times_sec
        Increasing, >= 0, shape (n,).
    frequencies_hz
        Shape (n,); above 0 voiced, 0 unvoiced, negative unvoiced with a guess of the pitch.
    """

    times_sec: FloatArray
    frequencies_hz: FloatArray

    def __post_init__(self) -> None:
        _check_vector(self.times_sec, "frame times", increasing=True)
        _check_vector(self.frequencies_hz, "frequencies")
        if len(self.times_sec) != len(self.frequencies_hz):
            raise InvalidAnnotationError(
                f"expected one frequency a frame, got {len(self.frequencies_hz)} for {len(self.times_sec)} frames"
            )

    @property
    def voiced(self) -> npt.NDArray[np.bool_]:
        """True where a frame is voiced, shape (n,)."""
        return self.frequencies_hz > 0


@dataclasses.dataclass(frozen=True, eq=False)
class Melody(_Annotation):
    """The notes of the melody, one after the other; rests are gaps.

    Parameters
    ----------
    intervals_sec
        Onset and offset of each note, shape (n, 2), sorted and without overlap.
    pitches
        MIDI numbers, whole or not, shape (n,).
    """

    intervals_sec: FloatArray
    pitches: FloatArray

    def __post_init__(self) -> None:
        _check_intervals(self.intervals_sec, "notes")
        _check_vector(self.pitches, "pitches")
        if len(self.intervals_sec) != len(self.pitches):
            raise InvalidAnnotationError(
                f"expected one pitch a note, got {len(self.pitches)} for {len(self.intervals_sec)} notes"
            )


@dataclasses.dataclass(frozen=True, eq=False)
class _Frames(_Annotation):
    """Feature vectors on a regular grid: frame t is centred at t * hop_sec."""

    frames: npt.NDArray[np.floating[Any]]
    hop_sec: float

    _rows = 0  # any number

    def __post_init__(self) -> None:
        kind = type(self).__name__
        if self.frames.ndim != 2 or (self._rows and len(self.frames) != self._rows):
            raise InvalidAnnotationError(
                f"{kind} needs frames of shape ({self._rows or 'features'}, n_frames), got {self.frames.shape}"
            )
        if not np.isfinite(self.frames).all():
            raise InvalidAnnotationError(f"{kind} holds values that are not finite")
        if not 0 < self.hop_sec < float("inf"):
            raise InvalidAnnotationError(f"hop_sec must be above 0, got {self.hop_sec}")


@dataclasses.dataclass(frozen=True, eq=False)
class Chroma(_Frames):
    """Energy of the twelve pitch classes over time.

    Parameters
    ----------
    frames
        Shape (12, n_frames), >= 0, row 0 = C. A silent frame is all zero.
    hop_sec
        Seconds between frames.
    tuning
        As of a `Key`.
    """

    tuning: float = 0.0

    _rows = 12

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_tuning(self.tuning)


@dataclasses.dataclass(frozen=True, eq=False)
class StructureFrames(_Frames):
    """Feature vectors whose self-similarity shows the form of the piece.

    Parameters
    ----------
    frames
        Shape (n_features, n_frames).
    hop_sec
        Seconds between frames.
    """


@dataclasses.dataclass(frozen=True, eq=False)
class TimbreFrames(_Frames):
    """Spectral shapes over time, parameters and errors as of `StructureFrames`."""


@dataclasses.dataclass(frozen=True, eq=False)
class BandFrames(_Frames):
    """Levels of bands a semitone apart over time, and how far tones stand out of each.

    Parameters
    ----------
    frames
        Shape (192, n_frames), in dB: 96 levels, lowest band first, against any one level of the recording; then how far
        the level of the mean power of each band lies above the mean of the levels within it, 0 for a flat spectrum.
    hop_sec
        Seconds between frames.
    """

    _rows = 192


@dataclasses.dataclass(frozen=True, eq=False)
class Features:
    """What is known of one recording or score: the input of the metrics of music context preservation.

    A feature is None where it was not asked for, or where it is undefined; then `undefined` says why.

    Parameters
    ----------
    duration_sec
        Length of the recording.
    beats, key, chords, chroma, f0, melody, segments, structure, contour, timbre, bands
        The annotations, or None. The contour is a chroma of ten frames a second.
    undefined
        Feature -> reason, for features that the recording does not have ("silent", "shorter than 2 s").
    silent
        Whether nothing sounds at all, in no channel. Beside a reference with content such music scores as low as can
        be, see `pipelines.preservation.compare`.
    """

    duration_sec: float
    beats: Beats | None = None
    key: Key | None = None
    chords: Chords | None = None
    chroma: Chroma | None = None
    f0: F0Track | None = None
    melody: Melody | None = None
    segments: Segments | None = None
    structure: StructureFrames | None = None
    contour: Chroma | None = None
    timbre: TimbreFrames | None = None
    bands: BandFrames | None = None
    undefined: Mapping[str, str] = dataclasses.field(default_factory=dict)
    silent: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.duration_sec < float("inf"):
            raise InvalidAnnotationError(f"duration_sec must be finite and not negative, got {self.duration_sec}")
        both = [name for name in self.undefined if name not in FEATURES or getattr(self, name) is not None]
        if both:
            raise InvalidAnnotationError(f"undefined may name features without a value only, got {', '.join(both)}")


FEATURES: dict[str, type[_Annotation]] = {
    "beats": Beats,
    "key": Key,
    "chords": Chords,
    "chroma": Chroma,
    "f0": F0Track,
    "melody": Melody,
    "segments": Segments,
    "structure": StructureFrames,
    "contour": Chroma,
    "timbre": TimbreFrames,
    "bands": BandFrames,
}
"""Feature -> type of its annotation."""


def _check_tuning(semitones: float) -> None:
    if not -0.5 <= semitones <= 0.5:
        raise InvalidAnnotationError(f"a tuning must lie in -0.5..0.5 semitones, got {semitones}")


def _check_vector(values: FloatArray, noun: str, *, increasing: bool = False) -> None:
    if values.ndim != 1 or values.dtype.kind != "f" or not np.isfinite(values).all():
        raise InvalidAnnotationError(
            f"{noun} must be finite floats of shape (n,), got {values.dtype} of shape {values.shape}"
        )
    if increasing and len(values) and values[0] < 0:
        raise InvalidAnnotationError(f"{noun} must not be negative, got {values[0]:.3f} s")
    wrong = np.flatnonzero(np.diff(values) <= 0)
    if increasing and len(wrong):
        i = int(wrong[0])
        raise InvalidAnnotationError(f"{noun} must increase; index {i}: {values[i]:.3f} s then {values[i + 1]:.3f} s")


def _check_intervals(intervals_sec: FloatArray, noun: str, labels: tuple[str, ...] | None = None) -> None:
    """Raise unless intervals are in order; with labels, unless these are as many and no gap is between them."""
    if intervals_sec.ndim != 2 or intervals_sec.shape[1] != 2 or not np.isfinite(intervals_sec).all():
        raise InvalidAnnotationError(f"{noun} need finite intervals of shape (n, 2), got shape {intervals_sec.shape}")
    starts, ends = intervals_sec.T
    if (starts < 0).any() or (ends <= starts).any():
        i = int(np.argmax((starts < 0) | (ends <= starts)))
        raise InvalidAnnotationError(f"{noun} must last, from 0 s on; index {i}: {starts[i]:.3f} s to {ends[i]:.3f} s")
    if (starts[1:] < ends[:-1]).any():
        i = int(np.argmax(starts[1:] < ends[:-1]))
        raise InvalidAnnotationError(
            f"{noun} must not overlap; index {i} ends at {ends[i]:.3f} s, the next starts at {starts[i + 1]:.3f} s"
        )
    if labels is None:
        return
    if len(labels) != len(intervals_sec):
        raise InvalidAnnotationError(f"expected one label each, got {len(labels)} for {len(intervals_sec)} {noun}")
    gaps = np.flatnonzero(intervals_sec[1:, 0] != intervals_sec[:-1, 1])
    if len(gaps):
        i = int(gaps[0])
        raise InvalidAnnotationError(
            f"{noun} must follow one another without a gap; there is one after {intervals_sec[i, 1]:.3f} s"
        )
