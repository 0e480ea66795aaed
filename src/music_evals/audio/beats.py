"""Beats of a recording, and the tempo of a line fitted through them.

Three backends. `track_beats_tcn`, the default, is a small network of our own, a temporal convolutional network after
Davies and Böck (EUSIPCO 2019), whose beat probabilities are joined to a regular sequence by dynamic programming; it was
trained on renderings of public-domain and composed tunes (see ``benchmarks/beat_tracker``). `track_beats_librosa` is
librosa's dynamic programming tracker (Ellis 2007) with all of its beats and the fitted tempo. `track_beats_official` is
the same tracker as MuseCPBench calls it: weak beats at both ends dropped, and the tempo off librosa's grid of lags.

The output of the network is stored with the beats (`Beats.log_odds`, `span_sec`, `pulse`), so that a pair of recordings
can be counted at one metrical level, by `audio.tempo_levels`.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import json
from importlib import resources
from typing import Any

import numpy as np
import numpy.typing as npt

from music_evals.annotations import Beats
from music_evals.audio.filters import moving_average
from music_evals.audio.io import SAMPLE_RATE, Audio
from music_evals.audio.spectra import HOP_LENGTH, N_FFT, power_spectrum
from music_evals.compiling import compiled_by_numba

__all__ = [
    "FRAME_RATE_HZ",
    "activations",
    "beat_features",
    "beats_within",
    "decode_beats",
    "fit_tempo",
    "pulse_profile",
    "track_beats_librosa",
    "track_beats_official",
    "track_beats_tcn",
]

FloatArray = npt.NDArray[np.float64]
Frames = npt.NDArray[np.float32]

TIME_DECIMALS = 4  # of seconds; below lies the noise of sums that are added up in another order
FRAME_RATE_HZ = SAMPLE_RATE / HOP_LENGTH  # 43.07 frames a second
SHORTEST_SAMPLES = N_FFT  # one window: in less there is no beat
MIN_BEATS_OF_A_TEMPO = 4
N_BANDS = 84  # semitones from C2 to B8
LOWEST_MIDI = 36
FLUX_LAG = 2  # frames: half a window
DYNAMIC_RANGE = 1e5  # levels are compressed from 50 dB below the loudest band on
AUDIBLE = 0.15  # of the range of levels: some 43 dB below the loudest band
FASTEST_BPM, SLOWEST_BPM = 210.0, 48.0
SLACK_FRAMES = 2  # to both sides of what sounds: beats lie in it too
LONGEST_REST_FRAMES = round(60 / SLOWEST_BPM * FRAME_RATE_HZ)  # a longer one says nothing of the tempo
PULSE_RANGE_SEC = (0.2, 8.0)  # from less than the shortest beat to some bars
PULSE_SHARE = 0.6  # of the recording: what recurs later recurs too rarely
PULSE_STEPS = 48  # an octave of lags


def fit_tempo(times_sec: FloatArray) -> float:
    """Return beats a minute: the slope of the beats' number against their time, NaN below four beats.

    A beat that was missed leaves a gap of about two intervals, which counts as two.

    Parameters
    ----------
    times_sec
        Increasing, shape (n,).

    Examples
    --------
    >>> round(fit_tempo(np.array([0.0, 0.5, 1.0, 2.0, 2.5])), 6)
    120.0
    """
    if len(times_sec) < MIN_BEATS_OF_A_TEMPO:
        return float("nan")
    intervals = np.diff(times_sec)
    steps = np.maximum(np.round(intervals / np.median(intervals)), 1)
    number = np.concatenate([[0.0], np.cumsum(steps)])
    time = times_sec - times_sec.mean()
    return float(60 * (time @ (number - number.mean())) / (time @ time))


def track_beats_librosa(audio: Audio) -> Beats:
    """Return librosa's beats, those at the ends included, with the fitted tempo; none in silence."""
    times_sec, _ = _librosa(audio, trim=False)
    return Beats(times_sec, fit_tempo(times_sec))


def track_beats_official(audio: Audio) -> Beats:
    """Return librosa's beats and tempo with its defaults, as the authors of MuseCPBench do; none in silence.

    The tempo is one of a grid (107.67, 112.35, 117.45, 123.05, ...), whatever the beats are.
    """
    times_sec, bpm = _librosa(audio, trim=True)
    return Beats(times_sec, bpm if bpm > 0 else float("nan"))


@compiled_by_numba
def _librosa(audio: Audio, *, trim: bool) -> tuple[FloatArray, float]:
    import librosa
    from librosa.beat import beat_track

    if len(audio.samples) < SHORTEST_SAMPLES:
        return np.zeros(0), 0.0
    tempo, frames = beat_track(y=audio.samples, sr=audio.sample_rate, trim=trim)
    times_sec = librosa.frames_to_time(frames, sr=audio.sample_rate).astype(np.float64)
    return times_sec, float(np.atleast_1d(tempo)[0])


def track_beats_tcn(audio: Audio) -> Beats:
    """Return the beats that our network finds, with the fitted tempo; none in silence or below 0.1 s.

    Beats follow the tactus of the training data: the unit of the time signature, the dotted quarter in 6/8, between 48
    and 210 a minute. They cover the sounding part of the recording without a gap; silence before and after it plays no
    part, and a rest of more than the slowest beat speaks neither for nor against beats in it.
    """
    if len(audio.samples) < SHORTEST_SAMPLES or not audio.samples.any():
        return Beats(np.zeros(0))
    features = beat_features(audio)
    sounding = np.flatnonzero(features.max(axis=1) > AUDIBLE)
    span_sec = np.array(
        [
            max((sounding[0] - SLACK_FRAMES) / FRAME_RATE_HZ, 0),
            min((sounding[-1] + SLACK_FRAMES) / FRAME_RATE_HZ, audio.duration_sec),
        ]
    )
    log_odds = activations(features)[0]
    for first, last in itertools.pairwise(sounding):
        if last - first > LONGEST_REST_FRAMES:
            log_odds[first + SLACK_FRAMES : last - SLACK_FRAMES + 1] = -BEAT_BONUS  # a beat gains and costs nothing
    pulse = pulse_profile(features[sounding[0] : sounding[-1] + 1])
    onsets = _rises(features).sum(axis=1)
    return beats_within(Beats(np.zeros(0), float("nan"), log_odds, span_sec, pulse, onsets, FRAME_RATE_HZ))


def beats_within(evidence: Beats, slowest_bpm: float = SLOWEST_BPM, fastest_bpm: float = FASTEST_BPM) -> Beats:
    """Return the beats that the evidence of others shows between two tempi, with the evidence.

    Parameters
    ----------
    evidence
        Beats of `track_beats_tcn`; their times play no part.
    slowest_bpm, fastest_bpm
        Bounds of the tempo.

    Returns
    -------
    Beats
        None where no beat of such a tempo fits into the recording.
    """
    frames_sec = np.arange(len(evidence.log_odds)) / FRAME_RATE_HZ
    first, last = evidence.span_sec
    inside = slice(np.searchsorted(frames_sec, first), np.searchsorted(frames_sec, last, side="right"))
    times_sec = decode_beats(evidence.log_odds[inside], slowest_bpm=slowest_bpm, fastest_bpm=fastest_bpm)
    times_sec = np.round(times_sec + inside.start / FRAME_RATE_HZ, TIME_DECIMALS)
    return dataclasses.replace(evidence, times_sec=times_sec, bpm=fit_tempo(times_sec))


def beat_features(audio: Audio) -> Frames:
    """Return the network's input, shape (n_frames, 84), 0..1: the levels of semitone bands from C2 on.

    They are logarithms, relative to the loudest band of the whole recording, so that gain changes nothing.
    """
    power = _filters() @ power_spectrum(audio)  # (bands, frames)
    loudest = float(power.max(initial=0.0))
    if loudest > 0:
        power *= np.float32(DYNAMIC_RANGE / loudest)
    levels: Frames = (np.log1p(power) / np.float32(np.log1p(DYNAMIC_RANGE))).T
    return levels


def pulse_profile(features: Frames) -> FloatArray:
    """Return how much the onsets recur after lags from 0.2 s on, 48 an octave, up to 8 s or 0.6 of the recording.

    The autocorrelation of the rises in all bands, less its mean over half an octave: a row of peaks at the beats and
    bars, which moves by whole places where the tempo is changed. Shape (n_lags,); empty for recordings below 0.67 s.
    """
    from scipy.fft import irfft, next_fast_len, rfft

    n = len(features)
    longest_sec = min(PULSE_RANGE_SEC[1], PULSE_SHARE * n / FRAME_RATE_HZ)
    n_lags = int(np.log2(max(longest_sec / PULSE_RANGE_SEC[0], 1)) * PULSE_STEPS)
    if n_lags < PULSE_STEPS:
        return np.zeros(0)
    rises = _rises(features)
    rises -= rises.mean(axis=0)
    length = next_fast_len(2 * n, real=True)
    power = np.square(np.abs(rfft(rises, length, axis=0))).sum(axis=1, dtype=np.float64)
    recurrence = irfft(power, length)[:n] / (n - np.arange(n))
    lags = PULSE_RANGE_SEC[0] * 2 ** (np.arange(n_lags) / PULSE_STEPS) * FRAME_RATE_HZ
    profile = np.interp(lags, np.arange(n), recurrence / max(float(recurrence[0]), float(np.finfo(np.float32).tiny)))
    without_slope: FloatArray = np.asarray(profile - moving_average(profile, PULSE_STEPS // 2 + 1), dtype=np.float64)
    return without_slope


def _rises(features: Frames) -> Frames:
    """Return by how much each level rises over two frames; 0 where it falls."""
    rises = np.zeros_like(features)
    rises[FLUX_LAG:] = np.maximum(features[FLUX_LAG:] - features[:-FLUX_LAG], 0)
    return rises


@functools.cache
def _filters() -> Frames:
    """Return triangular filters a semitone wide, or as wide as the spectrum's bins are apart, shape (bands, bins)."""
    centres = 440 * 2 ** ((LOWEST_MIDI + np.arange(N_BANDS) - 69) / 12)
    width = np.maximum(centres * (2 ** (1 / 12) - 1), SAMPLE_RATE / N_FFT)
    bins = np.arange(N_FFT // 2 + 1) * SAMPLE_RATE / N_FFT
    weights = np.maximum(1 - np.abs(bins - centres[:, None]) / width[:, None], 0)
    filters: Frames = weights.astype(np.float32)
    return filters


def activations(features: Frames) -> Frames:
    """Return the network's log-odds of a beat and of a downbeat at every frame, shape (2, n_frames).

    The network adds to every level its rise over two frames. Two convolutions over five frames follow, then residual
    layers whose taps lie 1, 2, 4, ... frames apart, so that a frame sees the whole of a recording of 90 s, then two
    weighted sums. The twin of `BeatTracker` in benchmarks/beat_tracker/network.py.
    """
    weights = _load_weights("beat_tracker")
    joined = np.concatenate([features, _rises(features)], axis=1)
    hidden = ((joined - weights["mean"]) / weights["scale"]).T  # (channels, frames)
    for name in ("front.0", "front.1"):
        hidden = _elu(_convolved(hidden, weights[f"{name}.weight"], weights[f"{name}.bias"]))
    dilation, layer = 1, 0
    while (name := f"blocks.{layer}") + ".dilated.weight" in weights:
        inner = _elu(_convolved(hidden, weights[f"{name}.dilated.weight"], weights[f"{name}.dilated.bias"], dilation))
        hidden = hidden + _convolved(inner, weights[f"{name}.mixed.weight"], weights[f"{name}.mixed.bias"])
        dilation, layer = 2 * dilation, layer + 1
    return _convolved(_elu(hidden), weights["head.weight"], weights["head.bias"])


def _elu(values: Frames) -> Frames:
    result: Frames = np.where(values > 0, values, np.expm1(np.minimum(values, 0)))
    return result


def _convolved(values: Frames, weight: Frames, bias: Frames, dilation: int = 1) -> Frames:
    """Convolve (channels, frames) with a kernel (outputs, channels, taps), centred, zeros beyond both ends."""
    n_frames, n_taps = values.shape[1], weight.shape[2]
    total = np.repeat(bias[:, None], n_frames, axis=1)
    for tap in range(n_taps):
        shift = (tap - n_taps // 2) * dilation
        if abs(shift) >= n_frames:
            continue
        product = weight[:, :, tap] @ values[:, max(shift, 0) : n_frames + min(shift, 0)]
        total[:, max(-shift, 0) : n_frames - max(shift, 0)] += product
    return total


# Dynamic programming at twice the frame rate. The numbers were chosen on training mixtures that the network had not
# seen; see benchmarks/beat_tracker.
UPSAMPLING = 2
MOST_LOG_ODDS = 4.0  # a frame counts at most so much for, or against
BEAT_BONUS = 1.25  # what a beat is worth where the network is undecided
CHANGE_COST = 25.0  # for a change of the interval by a factor of e
REACH = 3  # steps of 11.6 ms by which the interval may change from one beat to the next


def decode_beats(
    log_odds: npt.NDArray[np.floating[Any]], *, slowest_bpm: float = SLOWEST_BPM, fastest_bpm: float = FASTEST_BPM
) -> FloatArray:
    """Return beat times (s): the regular sequence over the whole recording with the highest sum of log-odds.

    The score of a sequence is the sum over its beats of the log-odds and a constant bonus, less a cost for every change
    of the interval, proportional to the logarithm of the ratio.

    Parameters
    ----------
    log_odds
        Of a beat at each frame, shape (n_frames,).
    slowest_bpm, fastest_bpm
        Bounds of the tempo.

    Returns
    -------
    FloatArray
        Shape (n,).
    """
    rate = UPSAMPLING * FRAME_RATE_HZ
    n = UPSAMPLING * (len(log_odds) - 1) + 1
    odds = np.interp(np.arange(n) / UPSAMPLING, np.arange(len(log_odds)), log_odds)
    gain = np.clip(odds, -MOST_LOG_ODDS, MOST_LOG_ODDS) + BEAT_BONUS
    intervals = np.arange(round(60 * rate / fastest_bpm), round(60 * rate / slowest_bpm) + 1)
    if not len(intervals) or n <= intervals[0]:
        return np.zeros(0)
    return _traced(odds, _forward(gain, intervals), intervals) / rate


def _forward(gain: FloatArray, intervals: npt.NDArray[np.int64]) -> FloatArray:
    """Return the best score that ends with a beat at a frame after an interval, shape (frames, intervals)."""
    # No interval is shorter than the shortest, so that so many frames are worked out at once.
    n, width, shortest = len(gain), len(intervals), int(intervals[0])
    score = np.empty((n, width))
    # What a beat at a frame inherits: the best score of the beat an interval before. `ahead` looks at it from there.
    inherited = np.zeros((n + int(intervals[-1]), width))
    ahead = np.lib.stride_tricks.as_strided(
        inherited[shortest:], (n, width), (inherited.strides[0], inherited.strides[0] + inherited.strides[1])
    )
    # Rows with a margin, in which no move finds anything better, lie one after the other: each move is one operation.
    reached = np.full((shortest, width + 2 * REACH), -np.inf)
    inner, best, other = slice(REACH, -REACH), np.empty_like(reached), np.empty(reached.size - 2 * REACH)
    costs = {move: np.tile(_change_costs(intervals, move), shortest)[inner] for move in range(-REACH, REACH + 1)}
    for start in range(0, n, shortest):
        block = slice(start, min(start + shortest, n))
        size = block.stop - start
        np.add(gain[block, None], inherited[block], out=reached[:size, inner])
        score[block] = reached[:size, inner]
        best[:] = reached
        flat, best_inner = reached.ravel(), best.ravel()[inner]
        for move, cost in costs.items():
            np.subtract(flat[REACH + move : flat.size - REACH + move], cost, out=other)
            np.maximum(best_inner, other, out=best_inner)
        ahead[block] = best[:size, inner]
    return score


def _change_costs(intervals: npt.NDArray[np.int64], move: int) -> FloatArray:
    """Return what it costs to go on with each interval after the one so many places on; 0 in a margin on both sides."""
    logs = np.log(intervals)
    place = np.clip(np.arange(len(intervals)) + move, 0, len(intervals) - 1)
    costs: FloatArray = np.pad(CHANGE_COST * np.abs(logs[place] - logs), REACH)
    return costs


def _came_from(score: FloatArray, interval: int, intervals: npt.NDArray[np.int64]) -> int:
    """Return the best interval to come from, for one to go on with: of equal ones itself, else the shortest."""
    low, high = max(interval - REACH, 0), min(interval + REACH + 1, len(intervals))
    logs = np.log(intervals)
    others = score[low:high] - CHANGE_COST * np.abs(logs[low:high] - logs[interval])
    best = low + int(np.argmax(others))
    return best if others[best - low] > score[interval] else interval


def _traced(odds: FloatArray, score: FloatArray, intervals: npt.NDArray[np.int64]) -> FloatArray:
    """Follow the best sequence back from its last beat; return the beats in frames, moved to the top of their peaks."""
    n = len(score)
    # a last beat leaves less than its own interval to the end
    tail = np.arange(max(n - int(intervals[-1]), 0), n)
    last = np.where(tail[:, None] >= n - intervals, score[tail], -np.inf)
    frame, interval = (int(index) for index in np.unravel_index(np.argmax(last), last.shape))
    frame += int(tail[0])
    beats = []
    while frame >= 0:
        beats.append(frame)
        before = frame - int(intervals[interval])
        if before >= 0:
            # the interval that led to the beat before
            interval = _came_from(score[before], interval, intervals)
        frame = before
    frames = np.array(beats[::-1])
    inner = frames[(frames > 0) & (frames < n - 1)]
    left, top, right = odds[inner - 1], odds[inner], odds[inner + 1]
    bend = left - 2 * top + right
    shift = np.where(bend < 0, 0.5 * (left - right) / np.where(bend < 0, bend, 1), 0.0)
    result = frames.astype(np.float64)
    result[(frames > 0) & (frames < n - 1)] += np.clip(shift, -0.5, 0.5)
    return result


_TYPES = {"F16": np.float16, "F32": np.float32}


@functools.cache
def _load_weights(name: str) -> dict[str, npt.NDArray[np.float32]]:
    """Return the tensors of ``weights/<name>.safetensors``, as float32."""
    # The format: the length of the header in eight bytes, the header in JSON, then the numbers, little endian.
    content = resources.files("music_evals.audio").joinpath("weights", f"{name}.safetensors").read_bytes()
    size = int.from_bytes(content[:8], "little")
    data = memoryview(content)[8 + size :]
    tensors = {}
    for tensor, entry in json.loads(content[8 : 8 + size]).items():
        if tensor == "__metadata__":
            continue
        start, end = entry["data_offsets"]
        numbers = np.frombuffer(data[start:end], dtype=np.dtype(_TYPES[entry["dtype"]]).newbyteorder("<"))
        tensors[tensor] = numbers.reshape(entry["shape"]).astype(np.float32)
        tensors[tensor].flags.writeable = False
    return tensors
