"""The fundamental frequency of the melody, by backend; those that need a package of their own are in `optional_f0`.

Every backend but `track_pyin_official` gives one frame each 512 samples, centred there. A frame in which the melody
rests holds the best guess of its pitch, as a negative frequency, or 0 where the backend has none.

============================ =========================================================================================
`track_melody_net`           default: two networks of our own, made for mixtures
`track_harmonic_sum`         harmonic sum of the constant-Q transform, smoothed; for comparison, needs no weights
`track_pyin`                 pYIN (Mauch and Dixon, ICASSP 2014) by librosa, for one voice alone
`track_pyin_official`        pYIN at the settings of the official code of MuseCPBench, 15 times as slow
============================ =========================================================================================
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from music_evals.annotations import F0Track
from music_evals.audio.io import Audio
from music_evals.audio.melody_net import LOWEST_PITCH, N_PITCHES, RANGE_DB, decode, levels_of, melody_activations
from music_evals.audio.spectra import BINS_PER_OCTAVE, CQT_MIDI, HOP_LENGTH
from music_evals.compiling import compiled_by_numba

__all__ = ["track_harmonic_sum", "track_melody_net", "track_pyin", "track_pyin_official"]

FloatArray = npt.NDArray[np.float64]

BINS_PER_SEMITONE = BINS_PER_OCTAVE // 12

# Of `track_harmonic_sum`, whose range is that of the network.
HARMONIC_DECAY = 0.8
N_HARMONICS = 6
SALIENCE_RANGE_DB = 40.0
CENTRE_PITCH = 75.0  # melodies lie around it: without a preference for their register the bass wins
PITCH_SPREAD = 14.0  # semitones, standard deviation

# Of pYIN in the official code of MuseCPBench.
PYIN_LOWEST_HZ = 55.0
PYIN_HIGHEST_HZ = 1760.0


def track_melody_net(
    audio: Audio,
    *,
    onset_weight: float = 1.0,
    change_cost: float = 2.0,
    rest_cost: float = 2.0,
    rest_bias: float = -2.0,
) -> F0Track:
    """Follow the melody of a mixture with the networks of `melody_net`.

    Range: C2 to C7. The frequency of a frame is refined within its semitone by the constant-Q transform.

    The costs are those of the path through what the networks say, see `melody_net.decode`. They were chosen by
    ``benchmarks/melody_tracker/tune.py``; the measures of voicing and of motifs depend on them, pitch hardly does. The
    recording is not silent. Without onnxruntime it is a `MissingBackendError`.
    """
    path = decode(
        melody_activations(audio),
        onset_weight=onset_weight,
        change_cost=change_cost,
        rest_cost=rest_cost,
        rest_bias=rest_bias,
    )
    # how many cents each frame's fundamental lies above its semitone, within -45..45, shape (n_frames,)
    values = levels_of(audio)
    # A parabola through the levels of the semitone's three bins; 0 where they have no peak.
    middle = BINS_PER_SEMITONE * (path.pitches - CQT_MIDI)
    frames = np.arange(len(path.pitches))
    below, centre, above = (values[middle + side, frames].astype(np.float64) for side in (-1, 0, 1))
    curvature = below - 2 * centre + above
    peak = (curvature < 0) & (centre >= np.minimum(below, above))
    offset = np.where(peak, 0.5 * (below - above) / np.where(peak, curvature, 1.0), 0.0)
    cents = np.clip(offset * 100 / BINS_PER_SEMITONE, -45.0, 45.0)
    return _track(audio, path.pitches + cents / 100, path.voiced)


def track_harmonic_sum(
    audio: Audio, *, jump_cost: float = 0.3, smoothing: float = 12.0, threshold: float = 0.35
) -> F0Track:
    """Follow the pitch whose partials are loudest in sum, smoothly.

    Range: C2 to C7. Salience of a pitch: the weighted mean level of its harmonics 1..6 in the upper 40 dB, times a
    preference for the register of melodies.

    Parameters
    ----------
    audio
        Not silent.
    jump_cost
        Cost of a change of pitch by one semitone, up to an octave; in nats, see `smoothing`.
    smoothing
        Scale on the salience, 0..1, before it is taken as a log-likelihood.
    threshold
        Salience below which the melody rests.
    """
    # the mean level of the harmonics of each pitch times the preference for it, 0..1, shape (61, n_frames)
    values = 1 - (1 - levels_of(audio).astype(np.float64)) * (RANGE_DB / SALIENCE_RANGE_DB)
    padded = np.pad(np.clip(values, 0, 1), ((0, BINS_PER_OCTAVE * 3), (0, 0)))
    rows = BINS_PER_SEMITONE * (LOWEST_PITCH - CQT_MIDI + np.arange(N_PITCHES))
    total = np.zeros((N_PITCHES, values.shape[1]))
    weights = HARMONIC_DECAY ** np.arange(N_HARMONICS)
    for number, weight in enumerate(weights / weights.sum(), start=1):
        total += weight * padded[rows + round(BINS_PER_OCTAVE * np.log2(number))]
    distance = (LOWEST_PITCH + np.arange(N_PITCHES) - CENTRE_PITCH) / PITCH_SPREAD
    salience: FloatArray = total * np.exp(-(distance**2) / 2)[:, None]
    steps = np.abs(np.subtract.outer(np.arange(N_PITCHES), np.arange(N_PITCHES)))
    path = _viterbi(smoothing * salience.T, -jump_cost * np.minimum(steps, 12))
    voiced = salience[path, np.arange(len(path))] >= threshold
    return _track(audio, path + float(LOWEST_PITCH), voiced)


def track_pyin(audio: Audio, *, resolution: float = 0.25) -> F0Track:
    """Follow a voice alone with pYIN; in a mixture it finds the bass, or nothing.

    The resolution is that of the pitch candidates, in semitones. The recording is not silent.
    """
    return _pyin(audio, HOP_LENGTH, resolution, guesses=True)


def track_pyin_official(audio: Audio) -> F0Track:
    """Follow a voice alone with pYIN at the settings of the official code: 55..1760 Hz, hop 256, resolution 0.1.

    Frames in which pYIN finds no voice hold 0.
    """
    return _pyin(audio, 256, 0.1, guesses=False)


@compiled_by_numba
def _pyin(audio: Audio, hop_length: int, resolution: float, *, guesses: bool) -> F0Track:
    import librosa

    frequencies, voiced, _ = librosa.pyin(
        audio.samples,
        fmin=PYIN_LOWEST_HZ,
        fmax=PYIN_HIGHEST_HZ,
        sr=audio.sample_rate,
        hop_length=hop_length,
        resolution=resolution,
        fill_na=None if guesses else 0.0,
    )
    return _on_grid(audio, np.where(voiced, frequencies, -np.abs(frequencies)), hop_length)


def _track(audio: Audio, pitches: npt.ArrayLike, voiced: npt.NDArray[np.bool_]) -> F0Track:
    """Return a track of MIDI pitches, whole or not, on the grid of the constant-Q transform."""
    hertz = 440.0 * 2.0 ** ((np.asarray(pitches) - 69.0) / 12.0)
    return _on_grid(audio, np.where(voiced, hertz, -hertz), HOP_LENGTH)


def _on_grid(audio: Audio, frequencies_hz: FloatArray, hop_length: int) -> F0Track:
    times_sec: FloatArray = np.arange(len(frequencies_hz), dtype=np.float64) * (hop_length / audio.sample_rate)
    return F0Track(times_sec, frequencies_hz)


def _viterbi(scores: FloatArray, transitions: FloatArray) -> npt.NDArray[np.int64]:
    """Return the path of the highest sum of scores (n_frames, n_states) and transitions (to, from)."""
    came_from = np.zeros(scores.shape, dtype=np.int64)
    best = scores[0]
    for t in range(1, len(scores)):
        reached = transitions + best
        came_from[t] = reached.argmax(axis=1)
        best = reached.max(axis=1) + scores[t]
    path = np.empty(len(scores), dtype=np.int64)
    path[-1] = best.argmax()
    for t in range(len(scores) - 1, 0, -1):
        path[t - 1] = came_from[t, path[t]]
    return path
