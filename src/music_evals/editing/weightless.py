"""Edits that need no weights: strong baselines, and teachers of what each metric sees.

Each does what its parameters say, whatever the instruction asks; `EditorInfo.changes` says which facets it changes by
design. Recordings are edited by the phase vocoder and the median filters of librosa and the filters of scipy; scores
by their notes.
"""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar, Final

import numpy as np
import numpy.typing as npt

from music_evals.annotations import DRUMS, EditorInfo, EditRequest, Score, Tempo
from music_evals.annotations.scores import DEFAULT_BPM
from music_evals.compiling import compiled_by_numba
from music_evals.editing.system import Edited, Editor, Seeds
from music_evals.errors import UnsupportedEditError, importing
from music_evals.protocols.settings import check_types
from music_evals.symbolic.notes import make_notes

__all__ = ["Effects", "Equaliser", "HpssRemix", "NoiseVocoder", "Reorchestration", "TimeStretch", "Transposition"]

SYSTEMS = {
    "transposition": "Transposition",
    "time_stretch": "TimeStretch",
    "reorchestration": "Reorchestration",
    "noise_vocoder": "NoiseVocoder",
    "hpss_remix": "HpssRemix",
    "equaliser": "Equaliser",
    "effects": "Effects",
}

Samples = npt.NDArray[np.float32]

MOST_SEMITONES: Final = 24.0
MOST_DB: Final = 60.0

FAMILY = 8
"""Programs of General MIDI that make one family of instruments."""
N_MELODIC_FAMILIES = 14  # before percussion and sound effects, which have no pitch

VOCODER_WINDOW_SEC: Final = 0.37
"""Long enough that neighbouring semitones above 110 Hz (6.5 Hz apart) fall into different bins."""
VOCODER_SIGMA_SEMITONES: Final = 0.2
"""Width of a band of noise around its semitone: neighbours overlap by 4 % of their height."""
LOWEST_HZ: Final = 55.0
ENVELOPE_SEC: Final = 0.02


@dataclasses.dataclass(frozen=True)
class _Weightless(Editor):
    """A system whose fields are its parameters."""

    _NAME: ClassVar[str]
    _TITLE: ClassVar[str]
    _FACTS: ClassVar[dict[str, Any]] = {}

    def __post_init__(self) -> None:
        check_types(self)

    @property
    def info(self) -> EditorInfo:
        """What it is, and the parameters that it was made with."""
        assert dataclasses.is_dataclass(self)
        return EditorInfo(name=self._NAME, title=self._TITLE, parameters=dataclasses.asdict(self), **self._FACTS)

    def _edited(self, request: EditRequest, seeds: Seeds) -> Edited:
        if request.score is not None:
            return Edited(score=self._score(request.score, seeds))
        assert request.audio is not None and request.sample_rate is not None  # noqa: PT018 (a request is checked)
        return Edited(self._audio(request.audio, request.sample_rate, seeds), request.sample_rate)

    def _audio(self, audio: Samples, sample_rate: int, seeds: Seeds) -> Samples:
        raise NotImplementedError  # of systems that take scores only

    def _score(self, score: Score, seeds: Seeds) -> Score:
        raise NotImplementedError  # of systems that take recordings only


@dataclasses.dataclass(frozen=True)
class Transposition(_Weightless):
    """Everything but drums moved by -24 to 24 semitones, whole ones for scores; recordings by a phase vocoder."""

    semitones: float = 2.0

    BOUNDS: ClassVar = {"semitones": (-MOST_SEMITONES, MOST_SEMITONES)}
    _NAME = "transposition"
    _TITLE = "Transposition"
    _FACTS: ClassVar = {"entrances": ("audio", "score"), "changes": ("harmony", "melody")}

    def supports(self, request: EditRequest) -> str:
        """Return why it cannot follow a request; empty where it can."""
        if request.score is not None and self.semitones != round(self.semitones):
            return f"scores have no quarter tones: give a whole number of `semitones`, not {self.semitones}"
        return super().supports(request)

    @compiled_by_numba
    def _audio(self, audio: Samples, sample_rate: int, seeds: Seeds) -> Samples:  # noqa: ARG002 (nothing is drawn)
        with importing("audio", "transposition of recordings"):
            from librosa.effects import pitch_shift
        shifted: Samples = pitch_shift(audio, sr=sample_rate, n_steps=self.semitones)
        return shifted

    def _score(self, score: Score, seeds: Seeds) -> Score:  # noqa: ARG002 (nothing is drawn)
        notes = score.notes.copy()
        drums = np.array([program == DRUMS for program in score.programs] or [False] * len(score.voices))
        melodic = ~drums[notes["voice"]]
        pitch = notes["pitch"].astype(np.int64)
        pitch[melodic] += round(self.semitones)
        if len(pitch) and not (pitch.min() >= 0 and pitch.max() <= 127):
            raise UnsupportedEditError(
                f"transposed by {self.semitones:g} semitones, notes would lie at {pitch.min()}..{pitch.max()}, outside "
                "of 0..127; choose fewer semitones"
            )
        columns = (notes["onset_tick"], notes["duration_tick"], pitch, notes["velocity"], notes["voice"])
        # the signatures of the old key would be wrong
        return dataclasses.replace(score, notes=make_notes(*columns), key_signatures=())


@dataclasses.dataclass(frozen=True)
class TimeStretch(_Weightless):
    """Another tempo, 0.25 to 4 times as fast, at the same pitch; recordings by a phase vocoder."""

    rate: float = 1.15

    BOUNDS: ClassVar = {"rate": (0.25, 4.0)}
    _NAME = "time_stretch"
    _TITLE = "Time stretch"
    _FACTS: ClassVar = {"entrances": ("audio", "score"), "changes": ("rhythm",), "keeps_time": False}

    @compiled_by_numba
    def _audio(self, audio: Samples, sample_rate: int, seeds: Seeds) -> Samples:  # noqa: ARG002 (nothing is drawn)
        with importing("audio", "the time stretch of recordings"):
            from librosa.effects import time_stretch
        stretched: Samples = time_stretch(audio, rate=self.rate)
        return stretched

    def _score(self, score: Score, seeds: Seeds) -> Score:  # noqa: ARG002 (nothing is drawn)
        begins = score.tempos if score.tempos and not score.tempos[0].tick else (Tempo(0, DEFAULT_BPM), *score.tempos)
        return dataclasses.replace(score, tempos=tuple(Tempo(tempo.tick, tempo.bpm * self.rate) for tempo in begins))


@dataclasses.dataclass(frozen=True)
class Reorchestration(_Weightless):
    """Every voice of a score on an instrument of another family, drawn at random; no note is touched.

    Metrics of scores do not see it. Where source and edit are rendered, those of recordings show what they owe to
    timbre.
    """

    _NAME = "reorchestration"
    _TITLE = "Re-orchestration"
    _FACTS: ClassVar = {"entrances": ("score",), "deterministic": False}

    def _score(self, score: Score, seeds: Seeds) -> Score:
        rng = np.random.default_rng(seeds.item)
        programs = list(score.programs or (0,) * len(score.voices))
        for voice, program in enumerate(programs):
            if program != DRUMS:
                families = [family for family in range(N_MELODIC_FAMILIES) if family != program // FAMILY]
                programs[voice] = int(rng.choice(families)) * FAMILY + int(rng.integers(FAMILY))
        return dataclasses.replace(score, programs=tuple(programs))


@dataclasses.dataclass(frozen=True)
class NoiseVocoder(_Weightless):
    """Noise in narrow bands on the semitones, with the pitch classes and the loudness of the source over time.

    The power of each pitch class, summed over all octaves, is spread evenly over its octaves: which chord sounds can be
    heard, in which octave a note lies cannot. At last the level follows that of the source in steps of 20 ms, so that
    onsets stay where they are. The noise reaches up to `highest_hz`, 220 to 20000.
    """

    highest_hz: float = 4000.0

    BOUNDS: ClassVar = {"highest_hz": (220.0, 20000.0)}
    _NAME = "noise_vocoder"
    _TITLE = "Chroma-preserving noise vocoder"
    _FACTS: ClassVar = {"changes": ("melody",), "deterministic": False}

    def _audio(self, audio: Samples, sample_rate: int, seeds: Seeds) -> Samples:
        rng = np.random.default_rng(seeds.item)
        return np.stack([self._vocoded(channel, sample_rate, rng) for channel in audio])

    def _vocoded(self, channel: Samples, sample_rate: int, rng: np.random.Generator) -> Samples:
        from scipy.ndimage import uniform_filter1d
        from scipy.signal import istft, stft

        n_window = 2 * round(VOCODER_WINDOW_SEC * sample_rate / 2)
        n_window = min(n_window, len(channel) - len(channel) % 2)
        options: dict[str, Any] = {"fs": sample_rate, "nperseg": n_window, "noverlap": 3 * n_window // 4}
        frequency_hz, _, source = stft(channel.astype(np.float64), **options)
        _, _, noise = stft(rng.standard_normal(len(channel)), **options)
        # how much each bin belongs to each pitch class (0 = C), by its distance from the nearest octave in semitones
        inside = (frequency_hz >= LOWEST_HZ) & (frequency_hz <= min(self.highest_hz, sample_rate / 2))
        pitch = 69 + 12 * np.log2(np.maximum(frequency_hz, 1e-9) / 440.0)
        off = (pitch[None, :] - np.arange(12)[:, None] + 6) % 12 - 6
        bands = np.exp(-0.5 * (off / VOCODER_SIGMA_SEMITONES) ** 2) * inside  # (12, bins), 0..1
        chroma = bands @ np.abs(source) ** 2  # (12, frames)
        _, samples = istft(noise * np.sqrt(bands.T @ chroma), **options)
        samples = np.pad(samples, (0, max(len(channel) - len(samples), 0)))[: len(channel)]
        # the level over windows of 20 ms follows that of the source; nearly silent noise is not blown up
        n_step = max(round(ENVELOPE_SEC * sample_rate), 1)
        levels = [
            np.sqrt(np.maximum(uniform_filter1d(np.square(x, dtype=np.float64), n_step), 0)) for x in (channel, samples)
        ]
        floor = 1e-3 * max(float(levels[1].max()), 1e-12)
        shaped: Samples = (samples * levels[0] / np.maximum(levels[1], floor)).astype(np.float32)
        return shaped


@dataclasses.dataclass(frozen=True)
class HpssRemix(_Weightless):
    """Tones and hits taken apart (median filters, Fitzgerald 2010) and mixed again at other levels.

    The gain of each part is -60 to 60 dB; -60 takes it away as far as can be heard.
    """

    harmonic_db: float = 0.0
    percussive_db: float = -12.0

    BOUNDS: ClassVar = {"harmonic_db": (-MOST_DB, MOST_DB), "percussive_db": (-MOST_DB, MOST_DB)}
    _NAME = "hpss_remix"
    _TITLE = "Harmonic-percussive remix"

    @compiled_by_numba
    def _audio(self, audio: Samples, sample_rate: int, seeds: Seeds) -> Samples:  # noqa: ARG002 (nothing is drawn)
        with importing("audio", "the remix of tones and hits"):
            from librosa.effects import hpss
        harmonic, percussive = hpss(audio)
        mixed: Samples = harmonic * np.float32(_factor(self.harmonic_db))
        mixed += percussive * np.float32(_factor(self.percussive_db))
        return mixed


@dataclasses.dataclass(frozen=True)
class Equaliser(_Weightless):
    """Low and high shelves of second order, with gains of -60 to 60 dB.

    At the corners half of the gain (in dB) is reached; above the upper half of the band (0.45 of the rate) they are
    moved down to it.
    """

    low_db: float = 6.0
    high_db: float = -9.0
    low_hz: float = 250.0
    high_hz: float = 3000.0

    BOUNDS: ClassVar = {
        **dict.fromkeys(("low_db", "high_db"), (-MOST_DB, MOST_DB)),
        **dict.fromkeys(("low_hz", "high_hz"), (20.0, 20000.0)),
    }
    _NAME = "equaliser"
    _TITLE = "Equaliser"

    def _audio(self, audio: Samples, sample_rate: int, seeds: Seeds) -> Samples:  # noqa: ARG002 (nothing is drawn)
        from scipy.signal import sosfilt

        shelves = [
            _shelf(self.low_db, self.low_hz, sample_rate, high=False),
            _shelf(self.high_db, self.high_hz, sample_rate, high=True),
        ]
        filtered: Samples = sosfilt(np.array(shelves), audio.astype(np.float64), axis=1).astype(np.float32)
        return filtered


def _shelf(gain_db: float, corner_hz: float, sample_rate: int, *, high: bool) -> list[float]:
    """Return a shelf as b0 b1 b2 1 a1 a2 (Bristow-Johnson, Audio EQ Cookbook, slope 1)."""
    a = 10 ** (gain_db / 40)
    omega = 2 * np.pi * min(corner_hz, 0.45 * sample_rate) / sample_rate
    cosine, alpha = np.cos(omega), np.sin(omega) / np.sqrt(2)
    sign = 1 if high else -1  # a high shelf is a low shelf mirrored at a quarter of the rate
    up, down = (a + 1) + sign * (a - 1) * cosine, (a + 1) - sign * (a - 1) * cosine
    edge = 2 * np.sqrt(a) * alpha
    b = [a * (up + edge), -sign * 2 * a * ((a - 1) + sign * (a + 1) * cosine), a * (up - edge)]
    denominator = [down + edge, sign * 2 * ((a - 1) - sign * (a + 1) * cosine), down - edge]
    return [float(value / denominator[0]) for value in (*b, *denominator)]


@dataclasses.dataclass(frozen=True)
class Effects(_Weightless):
    """Soft clipping and a room: what a guitar amplifier or a hall does to music.

    `drive_db` is the gain before the clipping by tanh, 0 (none) to 60 dB; `reverb_sec` the time in which the room falls
    by 60 dB, 0 (no room) to 10 s; `wet` the share of the room in the mix, 0 to 1.
    """

    drive_db: float = 12.0
    reverb_sec: float = 1.5
    wet: float = 0.4

    BOUNDS: ClassVar = {"drive_db": (0.0, MOST_DB), "reverb_sec": (0.0, 10.0), "wet": (0.0, 1.0)}
    _NAME = "effects"
    _TITLE = "Distortion and reverberation"
    _FACTS: ClassVar = {"deterministic": False}

    def _audio(self, audio: Samples, sample_rate: int, seeds: Seeds) -> Samples:
        dry = audio.astype(np.float64)
        if self.drive_db:
            dry = np.tanh(dry * _factor(self.drive_db)) / np.tanh(_factor(self.drive_db))
        if not self.reverb_sec or not self.wet:
            return dry.astype(np.float32)
        from scipy.signal import oaconvolve

        n = max(round(self.reverb_sec * sample_rate), 1)
        noise = np.random.default_rng(seeds.item).standard_normal((len(audio), n))
        response = noise * 10 ** (-3 * np.arange(n) / n)  # -60 dB at its end
        response /= np.sqrt(np.square(response).sum(axis=1, keepdims=True))
        room = oaconvolve(dry, response, axes=1)[:, : audio.shape[1]]
        mixed: Samples = ((1 - self.wet) * dry + self.wet * room).astype(np.float32)
        return mixed


def _factor(gain_db: float) -> float:
    return float(10 ** (gain_db / 20))
