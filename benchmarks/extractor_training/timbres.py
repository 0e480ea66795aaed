"""Random instruments and rooms for training renderings, so that no network learns the stock ones."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from music_evals.annotations import DRUMS
from music_evals.audio.rendering import Kit, Timbre
from music_evals.datasets.programs import FAMILIES

__all__ = ["colour", "random_recipe"]

Rng = np.random.Generator
Samples = npt.NDArray[np.float32]

STRUCK = {"piano", "chromatic_percussion", "guitar", "bass", "ethnic"}
SLOW = {"ensemble", "synth_pad", "strings"}
SPECTRUM_POINTS_HZ = np.array([30.0, 120.0, 400.0, 1200.0, 3500.0, 11025.0])  # where the equaliser has its knobs


def random_recipe(program: int, rng: Rng) -> Timbre | Kit:
    """Return a timbre that moves like the program's family, with partials of its own; a kit for drums."""
    if program == DRUMS:
        return Kit(*(float(2**octaves) for octaves in rng.normal(0, (0.25, 0.5, 0.4, 0.2))))
    family = next(name for name, programs in FAMILIES.items() if program in programs)
    body = _partials(int(rng.integers(3, 20)), float(rng.uniform(0.6, 2.2)), rng)
    soft = rng.random() < 0.4
    edge = (0.0,) if soft else _partials(int(rng.integers(4, 20)), float(rng.uniform(0.2, 1.2)), rng)
    ratio = 1 + float(rng.exponential(0.001))
    if family == "chromatic_percussion":
        body, edge, ratio = (1.0, float(rng.uniform(0, 0.2))), (float(rng.uniform(0.1, 0.6)),), float(rng.uniform(2, 5))
    bend = float(rng.uniform(0, 35)) if family not in STRUCK and rng.random() < 0.6 else 0.0
    chorus = float(rng.uniform(2, 18)) if rng.random() < (0.6 if family in SLOW else 0.15) else 0.0
    return Timbre(
        body,
        edge,
        ratio,
        edge_sec=float(rng.uniform(0.05, 1.0)),
        attack_sec=_attack(family, rng),
        decay_sec=float(rng.uniform(0.35, 2.0)),
        sustain=0.0 if family in STRUCK else float(rng.uniform(0.4, 1.0)),
        release_sec=float(rng.uniform(0.03, 0.4 if family in SLOW else 0.15)),
        vibrato_cents=bend,
        vibrato_hz=float(rng.uniform(4.5, 7.0)),
        detune_cents=chorus,
        noise=float(rng.uniform(0, 0.08)) if rng.random() < 0.3 else 0.0,
    )


def _attack(family: str, rng: Rng) -> float:
    if family in STRUCK:
        return float(rng.uniform(0.001, 0.01))
    return float(rng.uniform(0.02, 0.2) if family in SLOW else rng.uniform(0.005, 0.08))


def _partials(n: int, slope: float, rng: Rng) -> tuple[float, ...]:
    """Return falling amplitudes with dents; in one of five the even partials are weak, in one of five the lowest is."""
    h = np.arange(1, n + 1)
    amplitudes = h**-slope * 10 ** (rng.normal(0, 0.3, n))
    draw = rng.random()
    if draw < 0.2:
        amplitudes[1::2] *= rng.uniform(0, 0.4)
    elif draw < 0.4:
        amplitudes[0] *= rng.uniform(0.1, 0.7)
    return tuple(amplitudes.tolist())


def colour(samples: Samples, sample_rate: int, rng: Rng) -> Samples:
    """Return a recording with a random room, equaliser, low-pass filter, noise and level; as long as it was."""
    from scipy import fft

    n = fft.next_fast_len(len(samples) + sample_rate, real=True)
    spectrum = fft.rfft(samples, n)
    frequencies = np.linspace(0, sample_rate / 2, len(spectrum), dtype=np.float32)
    if rng.random() < 0.6:
        spectrum *= _equaliser(frequencies, rng)
    if rng.random() < 0.5:
        spectrum *= fft.rfft(_room(sample_rate, rng), n)
    wet = fft.irfft(spectrum, n)[: len(samples)].astype(np.float32)
    rms = float(np.sqrt(np.mean(wet**2)))
    if rng.random() < 0.4 and rms > 0:
        noise = rng.standard_normal(len(wet), dtype=np.float32)
        if rng.random() < 0.5:  # pink: power falls with frequency
            shape = 1 / np.sqrt(np.maximum(frequencies, 20)).astype(np.float32)
            noise = fft.irfft(fft.rfft(noise, n) * shape, n)[: len(wet)].astype(np.float32)
        wet += noise * np.float32(rms * 10 ** (-rng.uniform(0, 40) / 20) / np.sqrt(np.mean(noise**2)))
    level = 10 ** (-float(rng.uniform(0, 20)) / 20)
    peak = float(np.abs(wet).max(initial=0.0))
    coloured: Samples = wet * np.float32(level / peak) if peak > 0 else wet
    return coloured


def _equaliser(frequencies: npt.NDArray[np.float32], rng: Rng) -> Samples:
    gains_db = rng.normal(0, 5, len(SPECTRUM_POINTS_HZ))
    octaves = np.log2(np.maximum(frequencies, 20))
    curve = np.interp(octaves, np.log2(SPECTRUM_POINTS_HZ), gains_db)
    if rng.random() < 0.3:
        cutoff = float(rng.uniform(1500, 8000))
        curve -= 24 * np.maximum(octaves - np.log2(cutoff), 0)  # 24 dB an octave
    gains: Samples = (10 ** (curve / 20)).astype(np.float32)
    return gains


def _room(sample_rate: int, rng: Rng) -> Samples:
    """Return an impulse response: the direct sound, then noise that dies away within 0.2 to 1.5 s by 60 dB."""
    reverberation_sec = float(rng.uniform(0.2, 1.5))
    time = np.arange(round(min(reverberation_sec, 1.0) * sample_rate)) / sample_rate
    tail = rng.standard_normal(len(time)) * 10 ** (-3 * time / reverberation_sec)
    tail *= 10 ** (-float(rng.uniform(3, 18)) / 20) / np.linalg.norm(tail)
    tail[0] = 1.0
    response: Samples = tail.astype(np.float32)
    return response
