"""Sung lines by construction: a source-filter voice with consonants, vibrato, glides, breaths and a room.

Voiced sound is a sum of harmonics whose levels follow the formants of the vowel; consonants are closures, bursts and
bands of noise, or a murmur for the voiced ones; a breath is a quiet band of noise. The numbers are rough readings of
textbooks of phonetics: lengths of consonants, formants of vowels, depth and rate of vibrato. It is no singer.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

__all__ = ["RATE", "VOICES", "Phones", "SungTruth", "Voice", "sing"]

RATE: Final = 22050
CONTROL: Final = 200  # values a second that the synthesiser is steered by
HARMONICS: Final = 28

Floats = npt.NDArray[np.float64]

# First three formants in Hz of a male voice.
VOWELS: Final = {
    "a": (750, 1200, 2500), "o": (500, 850, 2500), "e": (480, 1250, 2450), "i": (300, 2250, 2950),
    "u": (330, 750, 2350), "v": (300, 1900, 2300), "n": (270, 1100, 2300),
}  # fmt: skip
BANDS: Final = {"high": (3500, 9500), "broad": (700, 6000), "breath": (600, 3500)}


class Phones(NamedTuple):
    """How a syllable is sung: kind of its consonant, vowels in order, and whether it ends in a nasal."""

    kind: str
    vowels: tuple[str, ...]
    nasal: bool


class SungTruth(NamedTuple):
    """A character as it is sung: its place, the notes under it as (start, end, MIDI pitch), and what came before."""

    text: str
    line: int
    start_sec: float
    end_sec: float
    notes: tuple[tuple[float, float, int], ...]
    before: str  # "", "pause", "breath"; "" where it follows the last character at once
    phones: Phones
    consonant_sec: float


@dataclasses.dataclass(frozen=True)
class Voice:
    """A singer: name, lowest pitch, size of the vocal tract against a man's, and habits."""

    name: str
    lowest: int
    formants: float
    vibrato_cents: float
    vibrato_hz: float
    glide_sec: float
    tilt: float
    noise: float
    scoop: float  # semitones below a note at which it is begun after a rest
    breath_db: float


# No voice of one half sings in the other.
VOICES: Final = {
    "development": (
        Voice("d1", 48, 1.0, 35, 5.4, 0.06, 1.1, 0.02, 0.7, -28),
        Voice("d2", 57, 1.18, 55, 5.9, 0.09, 1.3, 0.04, 1.2, -24),
        Voice("d3", 53, 1.08, 15, 5.0, 0.04, 0.9, 0.03, 0.3, -34),
        Voice("d4", 60, 1.22, 70, 5.6, 0.07, 1.2, 0.02, 0.9, -20),
    ),
    "test": (
        Voice("t1", 46, 0.96, 45, 5.2, 0.07, 1.2, 0.03, 0.9, -25),
        Voice("t2", 50, 1.04, 25, 6.1, 0.05, 1.0, 0.02, 0.5, -31),
        Voice("t3", 55, 1.14, 60, 5.7, 0.10, 1.4, 0.05, 1.4, -22),
        Voice("t4", 58, 1.2, 40, 5.5, 0.06, 1.1, 0.03, 0.6, -29),
        Voice("t5", 62, 1.25, 75, 6.0, 0.08, 1.3, 0.02, 1.0, -18),
        Voice("t6", 52, 1.1, 10, 5.0, 0.045, 0.95, 0.04, 0.2, -36),
    ),
}


class Controls(NamedTuple):
    """What steers the synthesiser, `CONTROL` values a second."""

    pitch: Floats  # MIDI
    voice: Floats  # amplitude of the voiced sound
    formants: Floats  # (n, 3)
    noise: dict[str, Floats]


def sing(
    song: Sequence[SungTruth], breaths: Sequence[tuple[float, float]], voice: Voice, rng: np.random.Generator
) -> tuple[Floats, Controls]:
    """Return the samples of a song, peak 0.5, and what steered them."""
    controls = _controls(song, breaths, voice, rng)
    n = round(len(controls.pitch) / CONTROL * RATE)
    at = np.arange(n) / RATE * CONTROL
    grid = np.arange(len(controls.pitch))
    hertz = 440.0 * 2 ** ((controls.pitch - 69) / 12)
    phase = 2 * np.pi * np.cumsum(np.interp(at, grid, hertz)) / RATE
    samples = np.zeros(n)
    for h in range(1, HARMONICS + 1):
        heard = h * hertz < RATE / 2.2
        level = np.where(heard, controls.voice * h**-voice.tilt * _filter(h * hertz, controls.formants), 0.0)
        samples += np.interp(at, grid, level) * np.sin(h * phase + rng.uniform(0, 2 * np.pi))
    loud = np.sqrt(np.mean(samples[np.interp(at, grid, controls.voice) > 0.5] ** 2))
    for band, level in controls.noise.items():
        samples += loud * np.interp(at, grid, level) * _band(n, BANDS[band], rng)
    samples += loud * voice.noise * np.interp(at, grid, controls.voice) * _band(n, BANDS["broad"], rng)
    return 0.5 * samples / np.abs(samples).max(), controls


def _filter(hertz: Floats, formants: Floats) -> Floats:
    """Return the gain of three resonances of 90, 110 and 170 Hz width at a frequency each moment."""
    total = np.full(len(hertz), 0.02)
    for i, (width, weight) in enumerate(((90, 1.0), (110, 0.6), (170, 0.3))):
        total += weight / (1 + ((hertz - formants[:, i]) / width) ** 2)
    return total


def _band(n: int, edges: tuple[int, int], rng: np.random.Generator) -> Floats:
    """Return noise of a band, root mean square 1."""
    spectrum = np.fft.rfft(rng.standard_normal(n))
    hertz = np.fft.rfftfreq(n, 1 / RATE)
    spectrum[(hertz < edges[0]) | (hertz > edges[1])] = 0
    samples: Floats = np.fft.irfft(spectrum, n)
    samples /= np.sqrt(np.mean(samples**2))
    return samples


def _controls(
    song: Sequence[SungTruth], breaths: Sequence[tuple[float, float]], voice: Voice, rng: np.random.Generator
) -> Controls:
    n = round((song[-1].end_sec + 0.8) * CONTROL)
    time = np.arange(n) / CONTROL
    pitch, level = np.full(n, np.nan), np.zeros(n)
    formants = np.full((n, 3), np.nan)
    noise = {name: np.zeros(n) for name in BANDS}
    for one in song:
        _place_syllable(one, voice, rng, time, Controls(pitch, level, formants, noise))
        for start, end, midi in one.notes:
            inside = (time >= start) & (time < end)
            held = time[inside] - start
            depth = voice.vibrato_cents / 100 * np.clip((held - 0.2) / 0.25, 0, 1)
            wobble = depth * np.sin(2 * np.pi * voice.vibrato_hz * held + rng.uniform(0, 6))
            pitch[inside] = midi + wobble
        if one.before:  # a note after a rest is begun from below
            held = time - (one.start_sec + one.consonant_sec)
            pitch -= np.where(
                (held >= 0) & (time < one.end_sec), voice.scoop * np.exp(-np.maximum(held, 0) / 0.05), 0.0
            )
    for start, end in breaths:
        span = (time >= start) & (time < end)
        noise["breath"][span] += 10 ** (voice.breath_db / 20) * np.sin(np.pi * (time[span] - start) / (end - start))
    known = np.flatnonzero(~np.isnan(pitch))
    pitch = np.interp(np.arange(n), known, pitch[known])
    drift = np.cumsum(rng.normal(0, 0.012, n))  # cents wander, and come back
    pitch = _smooth(pitch, voice.glide_sec) + 0.1 * (drift - _smooth(drift, 2.0))
    known = np.flatnonzero(~np.isnan(formants[:, 0]))
    formants = np.stack([np.interp(np.arange(n), known, formants[known, i]) for i in range(3)], axis=1)
    formants = np.stack([_smooth(formants[:, i], 0.05) for i in range(3)], axis=1)
    level *= 1 + 0.1 * _smooth(rng.normal(0, 3, n), 0.25)
    noise = {name: _smooth(values, 0.01) for name, values in noise.items()}
    return Controls(pitch, np.maximum(_smooth(level, 0.025), 0), formants, noise)


def _place_syllable(one: SungTruth, voice: Voice, rng: np.random.Generator, time: Floats, to: Controls) -> None:
    """Write consonant, vowels and nasal of one syllable into the controls."""
    _, level, formants, noise = to
    vowel_from = one.start_sec + one.consonant_sec
    nucleus = (time >= vowel_from) & (time < one.end_sec)
    share = (time[nucleus] - vowel_from) / (one.end_sec - vowel_from)
    level[nucleus] = rng.uniform(0.75, 1.0) * (1 - 0.35 * share)
    names = [*one.phones.vowels, *(["n"] if one.phones.nasal else [])]
    which = np.minimum((share * len(names)).astype(int), len(names) - 1)
    formants[nucleus] = voice.formants * np.array([VOWELS[name] for name in names])[which]
    if one.phones.nasal:
        level[nucleus] *= np.where(which == len(names) - 1, 0.6, 1.0)
    consonant = (time >= one.start_sec) & (time < vowel_from)
    kind = one.phones.kind
    place = (time[consonant] - one.start_sec) / max(one.consonant_sec, 1e-9)
    if kind == "sonorant":
        level[consonant] = rng.uniform(0.25, 0.5)
        formants[consonant] = voice.formants * np.array(VOWELS["n"])
    elif kind == "none":  # the voice is taken back a little
        level[consonant] = rng.uniform(0.45, 0.9)
        formants[consonant] = voice.formants * np.array(VOWELS[one.phones.vowels[0]])
    elif kind == "stop":
        noise["broad"][consonant] = np.where(place > 0.7, rng.uniform(0.15, 0.4), 0.0)
    elif kind == "affricate":
        noise["high"][consonant] = np.where(place > 0.4, rng.uniform(0.15, 0.4), 0.0)
    else:
        noise["high"][consonant] = rng.uniform(0.12, 0.35) * np.sin(np.pi * np.clip(place, 0.1, 0.9))


def _smooth(values: Floats, seconds: float) -> Floats:
    """Return a running mean by a raised cosine of a length."""
    window = np.hanning(max(round(seconds * 2 * CONTROL), 1) + 2)[1:-1]
    half = len(window) // 2
    padded = np.pad(values, (half, len(window) - 1 - half), mode="edge")
    return np.convolve(padded, window / window.sum(), mode="valid")
