"""Scores made audible: an additive synthesiser of our own, and FluidSynth where it is installed.

`render_additive` needs numpy only. On one machine it gives the same samples at every call; on another they may differ
by rounding, because numpy's exp and sin of float32 follow the instructions that the processor has.

A tone is the sum of two oscillators that read wavetables: the body, and the edge, which holds the upper partials, may
be out of tune with the body and dies away first. Wavetables are band limited for every pitch. It is meant for tests of
listening software, not for listening.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from music_evals.annotations import DRUMS, Score
from music_evals.audio import fluidsynth
from music_evals.errors import InvalidInputError, MissingBackendError

__all__ = [
    "PEAK",
    "RELEASE_SEC",
    "Kit",
    "Timbre",
    "find_soundfont",
    "harmonics",
    "identify_sounds",
    "render_additive",
    "render_fluidsynth",
    "stock_timbre",
]

SAMPLE_RATE = 22050  # Hz
RELEASE_SEC = 1.0  # what a rendering lasts after the end of the last note
PEAK = 0.9  # of every rendering that is not silent
SILENCE = 1e-6  # a rendering whose peak is no higher holds nothing
TABLE_BITS = 12  # a wavetable holds 4096 samples: read without interpolation its noise lies 70 dB below the tone
VELOCITY_EXPONENT = 1.5  # amplitude = (velocity / 127) ** 1.5, between linear and General MIDI's square

SOUNDFONT_VARIABLE = "MUSIC_EVALS_SOUNDFONT"
SOUNDFONTS = (
    "/usr/share/sounds/sf2/FluidR3_GM.sf2",
    "/usr/share/sounds/sf2/default-GM.sf2",
    "/usr/share/sounds/sf3/default-GM.sf3",
    "/usr/share/sounds/sf2/TimGM6mb.sf2",
    "/usr/share/soundfonts/FluidR3_GM.sf2",
    "/usr/share/soundfonts/default.sf2",
)

Samples = npt.NDArray[np.float32]


@dataclasses.dataclass(frozen=True)
class Timbre:
    """How the tones of one instrument sound.

    Parameters
    ----------
    body, edge
        Amplitudes of the harmonics 1, 2, 3, ... of the two oscillators.
    edge_ratio
        Frequency of the edge over that of the body: slightly above 1 for stiff strings, 2.76 for bars.
    edge_sec
        Time constant in which the edge dies away; infinite where it stays.
    attack_sec, decay_sec, sustain, release_sec
        Linear rise, time constant of the fall to the level `sustain` (0..1), linear fall after the end of the note.
    vibrato_cents, vibrato_hz
        Depth and rate of a vibrato that sets in over the first half second.
    detune_cents
        Distance of a second player, 0 for a soloist.
    noise
        Amplitude of breath or bow, relative to the tone.
    level
        Amplitude of the whole instrument.
    """

    body: tuple[float, ...]
    edge: tuple[float, ...] = (0.0,)
    edge_ratio: float = 1.0
    edge_sec: float = float("inf")
    attack_sec: float = 0.005
    decay_sec: float = float("inf")
    sustain: float = 1.0
    release_sec: float = 0.08
    vibrato_cents: float = 0.0
    vibrato_hz: float = 5.5
    detune_cents: float = 0.0
    noise: float = 0.0
    level: float = 1.0


@dataclasses.dataclass(frozen=True)
class Kit:
    """How a drum kit differs from the stock one: factors on its pitches, decays, noise and level."""

    pitch: float = 1.0
    decay: float = 1.0
    noise: float = 1.0
    level: float = 1.0


def harmonics(n: int, slope: float, *, even: float = 1.0, first: float = 1.0) -> tuple[float, ...]:
    """Return amplitudes h ** -slope of the harmonics 1..n; `even` and `first` weigh the even ones and the lowest."""
    return tuple(h**-slope * (first if h == 1 else 1.0) * (even if h % 2 == 0 else 1.0) for h in range(1, n + 1))


_INF = float("inf")
# One recipe for each family of eight programs, in the order of General MIDI. The numbers are rough readings of what
# textbooks say of the instruments: struck and plucked strings fall, and their upper partials first; closed pipes lack
# even harmonics; reeds and brass are rich; flutes are not.
_FAMILIES = (
    Timbre(harmonics(8, 1.4), harmonics(16, 0.8), 1.002, 0.4, 0.004, 0.9, 0.0, 0.12),  # piano
    Timbre((1.0, 0.05), (0.5,), 2.76, 0.12, 0.002, 0.5, 0.0, 0.3),  # chromatic percussion: bars
    Timbre((1.0, 0.8, 0.5, 0.4, 0.0, 0.3, 0.0, 0.3), attack_sec=0.012, release_sec=0.05),  # organ
    Timbre(harmonics(10, 1.2), harmonics(14, 0.5), 1.001, 0.15, 0.003, 0.6, 0.0, 0.08),  # guitar
    Timbre(harmonics(8, 1.5), harmonics(8, 0.7), 1.0, 0.1, 0.006, 0.8, 0.15, 0.06),  # bass
    Timbre(harmonics(16, 1.1), attack_sec=0.06, release_sec=0.12, vibrato_cents=18, noise=0.02),  # strings
    Timbre(harmonics(12, 1.3), attack_sec=0.09, release_sec=0.25, vibrato_cents=8, detune_cents=9),  # ensemble
    Timbre(harmonics(8, 1.2, first=0.8), harmonics(14, 0.5), 1.0, 0.3, 0.03, 0.2, 0.7, 0.08),  # brass
    Timbre(harmonics(14, 0.9, even=0.45), attack_sec=0.03, release_sec=0.07, vibrato_cents=10, noise=0.01),  # reed
    Timbre((1.0, 0.3, 0.12, 0.04), attack_sec=0.045, release_sec=0.09, vibrato_cents=14, noise=0.04),  # pipe
    Timbre(harmonics(20, 1.0), attack_sec=0.008, release_sec=0.06, detune_cents=4),  # synth lead
    Timbre(harmonics(8, 1.6), harmonics(12, 0.8), 1.0, 1.5, 0.2, release_sec=0.4, detune_cents=12),  # synth pad
    Timbre(harmonics(6, 1.5), harmonics(10, 0.6), 1.003, 0.8, 0.1, 1.5, 0.4, 0.4, detune_cents=10),  # synth effects
    Timbre(harmonics(12, 0.9), harmonics(12, 0.4), 1.002, 0.12, 0.003, 0.4, 0.0, 0.08),  # ethnic
    Timbre((1.0, 0.1), (0.6,), 1.59, 0.08, 0.002, 0.2, 0.0, 0.1),  # percussive: membranes
    Timbre((0.3,), (0.0,), 1.0, _INF, 0.05, 0.5, 0.2, 0.2, noise=1.0),  # sound effects
)
# Programs that a family's recipe would misrepresent.
_CLARINET = harmonics(15, 0.8, even=0.08)
_EXCEPTIONS = {
    71: dataclasses.replace(_FAMILIES[8], body=_CLARINET, vibrato_cents=0.0),  # a closed pipe: odd harmonics
    45: dataclasses.replace(_FAMILIES[3], decay_sec=0.2),  # pizzicato
    46: dataclasses.replace(_FAMILIES[3], decay_sec=1.0, edge_sec=0.3),  # harp
    80: Timbre(harmonics(19, 1.0, even=0.0), attack_sec=0.008, release_sec=0.06),  # square wave
}
_TILT = 0.25  # how far the slopes of one family's programs lie apart, at most


def stock_timbre(program: int) -> Timbre:
    """Return the recipe of a General MIDI program 0..127: that of its family, a little brighter or darker for each."""
    timbre = _EXCEPTIONS.get(program, _FAMILIES[program // 8])
    tilt = _TILT * (program % 8 - 3.5) / 3.5
    return dataclasses.replace(
        timbre, body=tuple(amplitude * h**tilt for h, amplitude in enumerate(timbre.body, start=1))
    )


def render_additive(
    score: Score, *, seed: int = 0, timbres: Mapping[int, Timbre | Kit] | None = None, sample_rate: int = SAMPLE_RATE
) -> Samples:
    """Render a score with the additive synthesiser, by its tempi (`Score.seconds`).

    Parameters
    ----------
    score
        Voices without a program sound as program 0.
    seed
        Of the phases of the partials and of all noise.
    timbres
        Voice -> timbre, or `Kit` for a voice of drums, instead of the stock ones; the other way round is an
        `InvalidInputError`.
    sample_rate
        In Hz.

    Returns
    -------
    Samples
        float32, mono, shape (n,), peak `PEAK` (0 for a score without notes); the end of the last note plus 1 s long.
    """
    notes = score.notes
    onsets = score.seconds(notes["onset_tick"])
    ends = score.seconds(notes["onset_tick"] + notes["duration_tick"])
    n_samples = round((ends.max(initial=0.0) + RELEASE_SEC) * sample_rate)
    mix = np.zeros(n_samples, dtype=np.float32)
    starts = np.round(onsets * sample_rate).astype(np.int64)
    lengths = np.maximum(np.round(ends * sample_rate).astype(np.int64) - starts, 1)
    gains = (notes["velocity"] / 127.0) ** VELOCITY_EXPONENT
    for voice in range(len(score.voices)):
        program = score.programs[voice] if score.programs else 0
        timbre = (timbres or {}).get(voice) or (Kit() if program == DRUMS else stock_timbre(program))
        if isinstance(timbre, Kit) != (program == DRUMS):
            raise InvalidInputError(
                f"voice {voice} has program {program}: expected a {'Kit' if program == DRUMS else 'Timbre'}"
            )
        follow: Any = _drum if isinstance(timbre, Kit) else _tone
        mine = np.flatnonzero(notes["voice"] == voice)
        for pitch in np.unique(notes["pitch"][mine]):
            chosen = mine[notes["pitch"][mine] == pitch]
            # one tone a pitch, as long as its longest note, and cut to each of them
            tone = follow(timbre, int(pitch), int(lengths[chosen].max()), seed=(seed, voice), sample_rate=sample_rate)
            release = 0 if isinstance(timbre, Kit) else max(round(timbre.release_sec * sample_rate), 1)
            for i in chosen:
                held = int(lengths[i]) if release else len(tone)
                _add(mix[starts[i] :], np.float32(gains[i] * timbre.level) * tone[: held + release], held)
    peak = float(np.abs(mix).max(initial=0.0))
    return mix * np.float32(PEAK / peak) if peak > 0 else mix


def _add(mix: Samples, tone: Samples, held: int) -> None:
    """Add a tone to the beginning of the mix, faded out after the samples that it is held."""
    release = len(tone) - held
    if release:
        tone[held:] *= np.linspace(1, 0, release, endpoint=False, dtype=np.float32)
    n = min(len(tone), len(mix))
    mix[:n] += tone[:n]


def _tone(timbre: Timbre, pitch: int, n_samples: int, *, seed: tuple[int, int], sample_rate: int) -> Samples:
    """Return a tone that is held for `n_samples`, and long enough for its release after them."""
    n = n_samples + max(round(timbre.release_sec * sample_rate), 1)
    rng = np.random.default_rng([*seed, pitch])
    frequency_hz = 440.0 * 2 ** ((pitch - 69) / 12)
    time_sec = np.arange(n, dtype=np.float32) / np.float32(sample_rate)
    # the lead of the phase in cycles of the fundamental, where there is a vibrato
    wobble: Samples | None = None
    if timbre.vibrato_cents:
        depth_hz = frequency_hz * (2 ** (timbre.vibrato_cents / 1200) - 1)
        onset = np.minimum(2 * time_sec, np.float32(1))
        rate = np.float32(2 * np.pi * timbre.vibrato_hz)
        wobble = np.float32(depth_hz / (2 * np.pi * timbre.vibrato_hz)) * onset * np.sin(rate * time_sec)
    total = np.zeros(n, dtype=np.float32)
    for cents in (timbre.detune_cents / 2, -timbre.detune_cents / 2) if timbre.detune_cents else (0.0,):
        detuned = frequency_hz / sample_rate * 2 ** (cents / 1200)
        total += _oscillator(timbre.body, detuned, n, wobble, rng)
        if any(timbre.edge):
            edge = np.exp(-time_sec / np.float32(timbre.edge_sec))
            total += edge * _oscillator(timbre.edge, detuned * timbre.edge_ratio, n, wobble, rng)
    total /= np.float32(np.hypot(np.linalg.norm(timbre.body), np.linalg.norm(timbre.edge)))
    if timbre.noise:
        total += np.float32(timbre.noise) * rng.standard_normal(n, dtype=np.float32)
    attack = np.minimum(time_sec / np.float32(max(timbre.attack_sec, 1e-4)), np.float32(1))
    fall = np.exp(-time_sec / np.float32(timbre.decay_sec))
    level: Samples = attack * (np.float32(timbre.sustain) + np.float32(1 - timbre.sustain) * fall)
    return total * level


def _oscillator(
    amplitudes: tuple[float, ...], cycles_per_sample: float, n: int, wobble: Samples | None, rng: np.random.Generator
) -> Samples:
    """Read a wavetable of the harmonics below the Nyquist frequency; the phase counts in 2**32nds of a cycle."""
    phases = rng.uniform(0, 2 * np.pi, len(amplitudes))
    n_harmonics = min(len(amplitudes), int(0.5 / (cycles_per_sample * 1.03)))  # 3 %: room for the vibrato
    spectrum = np.zeros(2 ** (TABLE_BITS - 1) + 1, dtype=np.complex128)
    spectrum[1 : n_harmonics + 1] = np.asarray(amplitudes[:n_harmonics]) * np.exp(1j * phases[:n_harmonics])
    table = (np.fft.irfft(spectrum) * 2**TABLE_BITS / 2).astype(np.float32)
    phase = np.arange(n, dtype=np.uint32) * np.uint32(cycles_per_sample % 1 * 2**32)
    if wobble is not None:
        phase += (wobble.astype(np.float64) * 2**32).astype(np.int64).astype(np.uint32)
    samples: Samples = table[phase >> np.uint32(32 - TABLE_BITS)]
    return samples


@dataclasses.dataclass(frozen=True)
class _Drum:
    """A sine that falls in pitch, and noise: levels, time constants, and how often the noise is differenced."""

    tone: float
    from_hz: float
    to_hz: float
    tone_sec: float
    noise: float
    noise_sec: float
    brightness: int = 1


_KICK = _Drum(1.0, 120, 50, 0.12, 0.1, 0.01)
_SNARE = _Drum(0.45, 220, 180, 0.07, 0.5, 0.09)
_RIM = _Drum(0.4, 800, 800, 0.02, 0.3, 0.02)
_CLOSED_HAT = _Drum(0.0, 1, 1, 1.0, 0.3, 0.03, 2)
_OPEN_HAT = _Drum(0.0, 1, 1, 1.0, 0.3, 0.2, 2)
_CYMBAL = _Drum(0.05, 420, 420, 0.5, 0.3, 0.6, 2)
_SHAKER = _Drum(0.0, 1, 1, 1.0, 0.25, 0.05, 1)
_DRUMS = {35: _KICK, 36: _KICK, 37: _RIM, 38: _SNARE, 39: _SNARE, 40: _SNARE, 42: _CLOSED_HAT, 44: _CLOSED_HAT}
_DRUMS |= {46: _OPEN_HAT} | dict.fromkeys((49, 51, 52, 53, 55, 57, 59), _CYMBAL)
_DRUMS |= {
    pitch: _Drum(0.8, 1.4 * hz, hz, 0.18, 0.12, 0.03)  # toms
    for pitch, hz in zip((41, 43, 45, 47, 48, 50), (75, 90, 108, 130, 155, 185), strict=True)
}
_DRUM_CLICK_SEC = 0.001


def _drum(kit: Kit, pitch: int, n_samples: int, *, seed: tuple[int, int], sample_rate: int) -> Samples:  # noqa: ARG001
    """Return one stroke, which sounds out whatever the length of its note; unknown drums sound as a shaker."""
    drum = _DRUMS.get(pitch, _SHAKER)
    tone_sec, noise_sec = drum.tone_sec * kit.decay, drum.noise_sec * kit.decay
    longest = max(tone_sec if drum.tone else 0.0, noise_sec)
    time_sec = np.arange(round(5 * longest * sample_rate), dtype=np.float32) / np.float32(sample_rate)
    swept = drum.to_hz + (drum.from_hz - drum.to_hz) * np.exp(-time_sec / np.float32(tone_sec / 3))
    tone = np.sin(2 * np.pi * kit.pitch * np.cumsum(swept, dtype=np.float64) / sample_rate)
    rng = np.random.default_rng([*seed, pitch])
    noise = rng.standard_normal(len(time_sec) + drum.brightness, dtype=np.float32)
    noise = np.diff(noise, drum.brightness) / np.float32(2**drum.brightness)
    stroke = drum.tone * np.exp(-time_sec / tone_sec) * tone
    stroke += kit.noise * drum.noise * np.exp(-time_sec / noise_sec) * noise
    stroke *= np.minimum(time_sec / _DRUM_CLICK_SEC, 1)
    samples: Samples = (2 * stroke).astype(np.float32)
    return samples


def find_soundfont() -> Path:
    """Return the General MIDI soundfont: the one that the variable MUSIC_EVALS_SOUNDFONT names, else the first found.

    Without one it is a `MissingBackendError`, which says how to install a free one.
    """
    named = os.environ.get(SOUNDFONT_VARIABLE)
    for candidate in (named,) if named else SOUNDFONTS:
        if Path(candidate).is_file():
            return Path(candidate)
    purpose = f"FluidSynth (no soundfont at {named}, which {SOUNDFONT_VARIABLE} names)" if named else "FluidSynth"
    raise MissingBackendError("fluid-soundfont-gm", "", purpose, install=fluidsynth.INSTALL)


def identify_sounds(soundfont: str | os.PathLike[str]) -> str:
    """Return what `render_fluidsynth` plays with: FluidSynth's version and the SHA-256 of the soundfont's content.

    A file is read once in a process, and again when its size or time of change differs. Without FluidSynth it is a
    `MissingBackendError`.
    """
    font = Path(soundfont)
    about = font.stat()
    return f"{fluidsynth.version()}:{_hash_file(font, about.st_mtime_ns, about.st_size)}"


@functools.cache
def _hash_file(path: Path, mtime_ns: int, size: int) -> str:  # noqa: ARG001 (they tell another content)
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def render_fluidsynth(
    midi: bytes, *, soundfont: str | os.PathLike[str] | None = None, sample_rate: int = SAMPLE_RATE
) -> Samples:
    """Render a MIDI file with FluidSynth, its reverb on and chorus off; left and right are averaged.

    The library is called in this process, and keeps its soundfont in memory from the first call on. It is native
    code: give it files that you wrote.

    Without a path, `find_soundfont` looks for a soundfont. FluidSynth has rates of 8000..96000 Hz. The samples are
    float32, mono, shape (n,), peak `PEAK` (0 for a file without notes); 1 s longer than the file plays. Without
    FluidSynth or a soundfont it is a `MissingBackendError`; where it refuses either file, a `BackendError`.
    """
    font = Path(soundfont) if soundfont is not None else find_soundfont()
    samples = fluidsynth.play(midi, font, sample_rate, RELEASE_SEC)
    peak = float(np.abs(samples).max(initial=0.0))
    # where nothing plays FluidSynth writes the dither of its output, at -156 dB
    return samples * np.float32(PEAK / peak) if peak > SILENCE else np.zeros_like(samples)
