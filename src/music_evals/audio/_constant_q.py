"""The constant-Q transform of librosa, equal to the last bit, with its filters made once a process.

Follows ``librosa.cqt`` (librosa 0.11, ISC licence, Copyright (c) 2013--2023, librosa development team), of which it
keeps the steps and their precision: filters with a Hann window, of which the 1 % that matters least is set to zero in
the frequency domain; eight octaves of the same width, each at half the sample rate of the one above. Changed: filters
are not made again for each recording, frames are transformed in blocks, and only magnitudes are kept. Half of the time
of a recording went into the filters, and most of the start of a process into librosa itself.

References
----------
C. Schörkhuber and A. Klapuri: "Constant-Q transform toolbox for music processing", SMC 2010.

"""

from __future__ import annotations

import functools
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

__all__ = ["constant_q_magnitudes", "hann"]

SPARSITY: Final = 0.01  # share of a filter's magnitude that is left out
BLOCK: Final = 256  # frames that are transformed at once: they stay in the cache

Samples = npt.NDArray[np.float32]
FloatArray = npt.NDArray[np.float64]


class _Octave(NamedTuple):
    """The filters of one octave, lowest first, at the sample rate of that octave."""

    n_fft: int
    used: slice  # bins of the spectrum that any filter needs
    filters: Any  # sparse, shape (n_filters, bins used), complex64
    scales: FloatArray  # of each filter's output, shape (n_filters,)


def constant_q_magnitudes(
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
            found = octave.filters @ spectra
            parts = found.view(np.float32)
            np.multiply(parts, octave.scales[:, None], out=parts, casting="same_kind")
            magnitudes[start:end, bins] = np.abs(found).T
        last -= bins_per_octave
        if last:
            samples = _halved(samples, soxr)
            hop_length //= 2
    return magnitudes.T


def _halved(samples: Samples, soxr: Any) -> Samples:
    """Return the samples at half the rate, with the energy that they had."""
    n_samples = -(-len(samples) // 2)
    half: Samples = soxr.resample(samples, 2, 1, quality="soxr_hq")[:n_samples]
    half = np.pad(half, (0, n_samples - len(half)))
    half /= np.sqrt(0.5)
    return half


@functools.cache
def _filter_bank(rate: int, lowest_midi: float, n_octaves: int, bins_per_octave: int) -> tuple[_Octave, ...]:
    """Return the filters of all octaves, highest first."""
    ratios = np.multiply.outer(2.0 ** np.arange(n_octaves), 2.0 ** (np.arange(bins_per_octave) / bins_per_octave))
    frequencies = ratios.ravel() * (440.0 * 2.0 ** ((lowest_midi - 69.0) / 12.0))
    bandwidths = _relative_bandwidths(frequencies)
    scales = 1.0 / np.sqrt(1.0 / bandwidths * rate / frequencies)
    octaves = []
    for number in range(n_octaves):
        bins = slice(len(frequencies) - bins_per_octave * (number + 1), len(frequencies) - bins_per_octave * number)
        n_fft, filters = _filters(frequencies[bins], bandwidths[bins], rate / 2.0**number)
        filters = (filters * np.sqrt(2.0**number)).astype(np.complex64)
        octaves.append(_octave(n_fft, filters, scales[bins]))
    return tuple(octaves)


def _octave(n_fft: int, filters: npt.NDArray[np.complex64], scales: FloatArray) -> _Octave:
    from scipy.sparse import csr_array

    bins = np.flatnonzero(filters.any(axis=0))
    used = slice(int(bins[0]), int(bins[-1]) + 1)
    return _Octave(n_fft, used, csr_array(filters[:, used]), scales)


def _relative_bandwidths(frequencies: FloatArray) -> FloatArray:
    """Return the width of each filter over its frequency, from the distances to its neighbours."""
    octaves = np.log2(frequencies)
    density = np.empty_like(frequencies)  # filters an octave
    density[0], density[-1] = 1 / (octaves[1] - octaves[0]), 1 / (octaves[-1] - octaves[-2])
    density[1:-1] = 2 / (octaves[2:] - octaves[:-2])
    widths: FloatArray = (2.0 ** (2 / density) - 1) / (2.0 ** (2 / density) + 1)
    return widths


def _filters(frequencies: FloatArray, bandwidths: FloatArray, rate: float) -> tuple[int, npt.NDArray[np.complex64]]:
    """Return the length of the Fourier transform, and the spectrum of each filter without its least part."""
    from scipy.fft import fft

    lengths = 1.0 / bandwidths * rate / frequencies
    n_fft = int(2.0 ** np.ceil(np.log2(lengths.max())))
    waves = np.zeros((len(lengths), n_fft), np.complex64)
    for row, length, frequency in zip(waves, lengths, frequencies, strict=True):
        angles = np.arange(-length // 2, length // 2) * 2 * np.pi * frequency / rate
        wave = (np.cos(angles) + 1j * np.sin(angles)) * hann(len(angles))
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


def hann(length: int) -> FloatArray:
    """Return a Hann window of one period, shape (length,): the one of ``scipy.signal``, which takes long to import."""
    window: FloatArray = 0.5 + 0.5 * np.cos(np.linspace(-np.pi, np.pi, length + 1)[:-1])
    return window
