"""Spectrograms that several extractors need: worked out once a recording and kept with it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from music_evals.audio.io import Audio
from music_evals.audio.samples import Samples, resample

HOP_LENGTH = 512  # samples; 23.2 ms at 22,050 Hz
BINS_PER_OCTAVE = 36  # three a semitone
N_OCTAVES = 8
N_BINS = BINS_PER_OCTAVE * N_OCTAVES  # 288, C1 to B8
CQT_MIDI = 24  # C1, 32.7 Hz: the centre of bin 0
SHORTEST_SAMPLES: Final = 1 << 16  # 3 s; what is shorter is continued by silence
N_FFT = 2048  # samples; 92.9 ms
N_MELS = 128
DYNAMIC_RANGE_DB: Final = 80.0  # below the loudest
SILENCE: Final = 1e-3  # -60 dB below the loudest frame; the same bound as that of a silent recording

TUNING_BINS: Final = slice(36, 216)  # C2..B6, where a partial is narrower than a semitone and strong
TUNING_FLOOR: Final = 0.1  # peaks below this share of their frame's loudest are left out

Spectrogram = npt.NDArray[np.float32]
Value = TypeVar("Value")


def shared(compute: Callable[[Audio], Value]) -> Callable[[Audio], Value]:
    """Work out what several extractors need once a recording, and keep it with it."""

    @functools.wraps(compute)
    def compute_once(audio: Audio) -> Value:
        return audio.share(compute.__name__, lambda: compute(audio))

    return compute_once


def opening(audio: Audio, seconds: float = 60.0) -> Samples:
    """Return the samples of the beginning, cut before they are resampled, as librosa loads it."""
    source = audio if audio.source_rate is None else audio.at_rate(audio.source_rate)
    if source.duration_sec <= seconds:
        return audio.samples
    return resample(iter([source.samples[: int(seconds * source.sample_rate)]]), source.sample_rate, audio.sample_rate)


@shared
def constant_q(audio: Audio) -> Spectrogram:
    """Return the magnitudes of the constant-Q transform, shape (288, n_frames), eight octaves from C1.

    Bin b is centred at MIDI pitch 24 + b / 3, frame t at sample 512 t.
    """
    # the lowest octave is worked out on every 128th sample, and its filters must find enough of them
    missing = max(0, SHORTEST_SAMPLES - len(audio.samples))
    magnitudes = _constant_q_magnitudes(
        np.pad(audio.samples, (0, missing)),
        audio.sample_rate,
        hop_length=HOP_LENGTH,
        lowest_midi=CQT_MIDI,
        n_octaves=N_OCTAVES,
        bins_per_octave=BINS_PER_OCTAVE,
    )
    return magnitudes[:, : len(audio.samples) // HOP_LENGTH + 1]


@shared
def power_spectrum(audio: Audio) -> Spectrogram:
    """Return the power spectrogram, shape (1025, n_frames); Hann window of 2048 samples, hop 512, centred frames."""
    from scipy.fft import rfft

    # The numbers of ``librosa.stft``: transformed in double precision, then rounded; rows belong to frames.
    n_frames = len(audio.samples) // HOP_LENGTH + 1
    padded = np.pad(audio.samples, N_FFT // 2)
    frames = np.lib.stride_tricks.sliding_window_view(padded, N_FFT)[::HOP_LENGTH]
    window = _hann(N_FFT)
    power = np.empty((n_frames, N_FFT // 2 + 1), np.float32)
    for start in range(0, n_frames, BLOCK):
        spectra = rfft(window * frames[start : start + BLOCK], axis=1, overwrite_x=True)
        np.square(np.abs(spectra.astype(np.complex64)), out=power[start : start + BLOCK])
    return power.T


@shared
def mel_decibels(audio: Audio) -> Spectrogram:
    """Return the levels of 128 mel bands up to half the sample rate, shape (128, n_frames).

    In dB below the loudest, -80..0, on the frames of `power_spectrum`. All 0 where nothing sounds.
    """
    # most weights are zero; and a dense product would depend on the number of threads, in its last bits
    bands = _mel_filters(audio.sample_rate) @ power_spectrum(audio)
    loudest = float(bands.max(initial=0.0))
    if loudest == 0:
        return np.zeros_like(bands)
    floor = loudest * 10 ** (-DYNAMIC_RANGE_DB / 10)
    levels: Spectrogram = 10 * np.log10(np.maximum(bands, floor) / loudest)
    return levels


@functools.cache
def _mel_filters(rate: int) -> Any:
    """Return triangular filters of equal area on the mel scale, sparse, shape (128, 1025).

    The scale and the numbers are those of ``librosa.filters.mel``, after M. Slaney's "Auditory toolbox", 1998: linear
    up to 1 kHz, 27 steps to a factor of 6.4 above.
    """
    from scipy.sparse import csr_array

    linear_hz, corner_hz, log_step = 200.0 / 3, 1000.0, np.log(6.4) / 27
    corner = corner_hz / linear_hz
    top = corner + np.log(rate / 2 / corner_hz) / log_step
    mels = np.linspace(0.0, top, N_MELS + 2)
    edges = linear_hz * mels
    above = mels >= corner
    edges[above] = corner_hz * np.exp(log_step * (mels[above] - corner))
    ramps = edges[:, None] - np.fft.rfftfreq(N_FFT, 1 / rate)
    widths = np.diff(edges)[:, None]
    triangles = np.maximum(0, np.minimum(-ramps[:-2] / widths[:-1], ramps[2:] / widths[1:])).astype(np.float32)
    triangles *= 2.0 / (edges[2:] - edges[:-2])[:, None]
    return csr_array(triangles)


@shared
def frame_levels(audio: Audio) -> npt.NDArray[np.float64]:
    """Return the root mean square of the samples around each frame, shape (n_frames,), on the frames of `constant_q`.

    Frame t covers the 2048 samples around sample 512 t; beyond the ends there is silence.
    """
    energy = np.concatenate([[0.0], np.cumsum(audio.samples.astype(np.float64) ** 2)])
    centres = np.arange(len(audio.samples) // HOP_LENGTH + 1) * HOP_LENGTH
    starts, ends = (np.clip(centres + half, 0, len(audio.samples)) for half in (-N_FFT // 2, N_FFT // 2))
    levels: npt.NDArray[np.float64] = np.sqrt(np.maximum(energy[ends] - energy[starts], 0) / N_FFT)
    return levels


def sounding_frames(audio: Audio) -> npt.NDArray[np.bool_]:
    """Return which frames of `constant_q` sound: those less than 60 dB below the loudest, shape (n_frames,)."""
    levels = frame_levels(audio)
    sounds: npt.NDArray[np.bool_] = levels > SILENCE * levels.max(initial=0.0)
    return sounds


@shared
def tuning(audio: Audio) -> float:
    """Return how far the recording is tuned above A4 = 440 Hz, in semitones, -0.5..0.5; 0 where nothing sounds.

    The circular mean of the distances of all spectral peaks from equal temperament, weighted by magnitude.
    """
    bins = constant_q(audio)[TUNING_BINS]
    left, middle, right = bins[:-2], bins[1:-1], bins[2:]
    peaks = (middle > left) & (middle >= right) & (middle > TUNING_FLOOR * bins.max(axis=0))
    if not peaks.any():
        return 0.0
    # the vertex of the parabola through a peak and its two neighbours, in bins from the peak
    below, at, above = (part[peaks].astype(np.float64) for part in (left, middle, right))
    shift = 0.5 * (below - above) / np.minimum(below - 2 * at + above, -1e-12)
    position = np.nonzero(peaks)[0] + 1 + TUNING_BINS.start + shift
    turns = position * 12 / BINS_PER_OCTAVE  # semitones from C1, a note
    return float(np.angle(np.sum(at * np.exp(2j * np.pi * turns))) / (2 * np.pi))


# The constant-Q transform of librosa, equal to the last bit, with its filters made once a process.
#
# Follows ``librosa.cqt`` (librosa 0.11, ISC licence, Copyright (c) 2013--2023, librosa development team), of which it
# keeps the steps and their precision: filters with a Hann window, of which the 1 % that matters least is set to zero in
# the frequency domain; eight octaves of the same width, each at half the sample rate of the one above. Changed: filters
# are not made again for each recording, frames are transformed in blocks, and only magnitudes are kept. Half of the
# time of a recording went into the filters, and most of the start of a process into librosa itself. See
# C. Schörkhuber and A. Klapuri: "Constant-Q transform toolbox for music processing", SMC 2010.


SPARSITY: Final = 0.01  # share of a filter's magnitude that is left out
BLOCK: Final = 256  # frames that are transformed at once: they stay in the cache

FloatArray = npt.NDArray[np.float64]


class _Octave(NamedTuple):
    """The filters of one octave, lowest first, at the sample rate of that octave."""

    n_fft: int
    used: slice  # bins of the spectrum that any filter needs
    filters: Any  # sparse, shape (n_filters, bins used), complex64
    scales: FloatArray  # of each filter's output, shape (n_filters,)


def _constant_q_magnitudes(
    samples: Samples, rate: int, *, hop_length: int, lowest_midi: float, n_octaves: int, bins_per_octave: int
) -> Samples:
    """Return magnitudes, shape (bins, n_frames), a view of rows that belong to frames; frame t at sample hop * t.

    `hop_length` must be divisible by the factor between the first and the last octave's sample rate.
    """
    import soxr
    from scipy.fft import rfft

    n_frames = len(samples) // hop_length + 1
    magnitudes = np.empty((n_frames, n_octaves * bins_per_octave), np.float32)
    last = magnitudes.shape[1]
    for octave in _filter_bank(rate, lowest_midi, n_octaves, bins_per_octave):
        bins = slice(last - bins_per_octave, last)
        # as doubles: frames are transformed in double precision, and their spectra rounded
        padded = np.pad(samples, octave.n_fft // 2)
        for start in range(0, n_frames, BLOCK):
            end = min(start + BLOCK, n_frames)
            piece = padded[start * hop_length : (end - 1) * hop_length + octave.n_fft].astype(np.float64)
            frames = np.lib.stride_tricks.sliding_window_view(piece, octave.n_fft)[::hop_length]
            spectra = rfft(frames, axis=1)[:, octave.used].T.astype(np.complex64, order="C")
            coefficients = octave.filters @ spectra
            parts = coefficients.view(np.float32)
            np.multiply(parts, octave.scales[:, None], out=parts, casting="same_kind")
            magnitudes[start:end, bins] = np.abs(coefficients).T
        last -= bins_per_octave
        if last:
            # the samples at half the rate, with the energy that they had
            n_samples = -(-len(samples) // 2)
            half: Samples = soxr.resample(samples, 2, 1, quality="soxr_hq")[:n_samples]
            half = np.pad(half, (0, n_samples - len(half)))
            half /= np.sqrt(0.5)
            samples = half
            hop_length //= 2
    return magnitudes.T


@functools.cache
def _filter_bank(rate: int, lowest_midi: float, n_octaves: int, bins_per_octave: int) -> tuple[_Octave, ...]:
    """Return the filters of all octaves, highest first."""
    from scipy.sparse import csr_array

    ratios = np.multiply.outer(2.0 ** np.arange(n_octaves), 2.0 ** (np.arange(bins_per_octave) / bins_per_octave))
    frequencies = ratios.ravel() * (440.0 * 2.0 ** ((lowest_midi - 69.0) / 12.0))
    # the width of each filter over its frequency, from the distances to its neighbours
    places = np.log2(frequencies)
    density = np.empty_like(frequencies)  # filters an octave
    density[0], density[-1] = 1 / (places[1] - places[0]), 1 / (places[-1] - places[-2])
    density[1:-1] = 2 / (places[2:] - places[:-2])
    bandwidths: FloatArray = (2.0 ** (2 / density) - 1) / (2.0 ** (2 / density) + 1)
    scales = 1.0 / np.sqrt(1.0 / bandwidths * rate / frequencies)
    octaves = []
    for number in range(n_octaves):
        bins = slice(len(frequencies) - bins_per_octave * (number + 1), len(frequencies) - bins_per_octave * number)
        n_fft, filters = _filters(frequencies[bins], bandwidths[bins], rate / 2.0**number)
        filters = (filters * np.sqrt(2.0**number)).astype(np.complex64)
        # the bins of the spectrum that any filter needs
        spectrum = np.flatnonzero(filters.any(axis=0))
        used = slice(int(spectrum[0]), int(spectrum[-1]) + 1)
        octaves.append(_Octave(n_fft, used, csr_array(filters[:, used]), scales[bins]))
    return tuple(octaves)


def _filters(frequencies: FloatArray, bandwidths: FloatArray, rate: float) -> tuple[int, npt.NDArray[np.complex64]]:
    """Return the length of the Fourier transform, and the spectrum of each filter without its least part."""
    from scipy.fft import fft

    lengths = 1.0 / bandwidths * rate / frequencies
    n_fft = int(2.0 ** np.ceil(np.log2(lengths.max())))
    waves = np.zeros((len(lengths), n_fft), np.complex64)
    for row, length, frequency in zip(waves, lengths, frequencies, strict=True):
        angles = np.arange(-length // 2, length // 2) * 2 * np.pi * frequency / rate
        wave = (np.cos(angles) + 1j * np.sin(angles)) * _hann(len(angles))
        start = (n_fft - len(wave)) // 2
        row[start : start + len(wave)] = wave / np.abs(wave).sum()
    waves *= lengths[:, None] / n_fft
    spectra = fft(waves, axis=1)[:, : n_fft // 2 + 1]
    # of every filter the smallest values go that make up less than the share together
    sizes = np.abs(spectra)
    ordered = np.sort(sizes, axis=1)
    shares = np.cumsum(ordered / sizes.sum(axis=1, keepdims=True), axis=1)
    least = ordered[np.arange(len(ordered)), np.argmin(shares < SPARSITY, axis=1)]
    return n_fft, np.where(sizes >= least[:, None], spectra, 0)


def _hann(length: int) -> FloatArray:
    """Return a Hann window of one period, shape (length,): the one of ``scipy.signal``, which takes long to import."""
    window: FloatArray = 0.5 + 0.5 * np.cos(np.linspace(-np.pi, np.pi, length + 1)[:-1])
    return window
