"""Sung and played lines for training mixtures: glides, scoops, vibrato, drift, consonants and breath.

A renderer of notes holds every note at its pitch. Singers and players of bowed, blown and bent tones do not, and melody
trackers that never heard it take a vibrato for a trill. `perform` turns notes into such a line, and says what frequency
it has at every moment.

A tone is a sum of harmonics whose levels follow a source and a filter: vowels that move from syllable to syllable for a
singer (formants after Peterson and Barney, "Control methods used in a study of the vowels", JASA 1952), a fixed body
for a player. It is meant for networks that listen, not for listeners.
"""

from __future__ import annotations

import dataclasses
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

__all__ = ["CONTROL", "Line", "Performer", "perform", "random_performer"]

CONTROL: Final = 128
"""Samples from one value of frequency and level to the next; four of them are a frame of the spectra."""

VOWELS_HZ: Final = np.array(
    [[730, 1090, 2440], [530, 1840, 2480], [270, 2290, 3010], [570, 840, 2410], [300, 870, 2240], [640, 1190, 2390]]
)
"""First three formants of a, e, i, o, u and a neutral vowel, of men."""

UPPER_FORMANTS_HZ: Final = np.array([3400.0, 4500.0])
MOST_HARMONICS: Final = 48
HIGHEST_HZ: Final = 9500.0
PEAK: Final = 0.9

Rng = np.random.Generator
Floats = npt.NDArray[np.float64]
Samples = npt.NDArray[np.float32]


class Line(NamedTuple):
    """A performed line.

    `samples`: float32, mono, shape (n,). `frequencies_hz`: every `CONTROL` samples from the first, 0 where nothing has
    a pitch, shape (ceil(n / CONTROL),).
    """

    samples: Samples
    frequencies_hz: Floats


@dataclasses.dataclass(frozen=True)
class Performer:
    """How somebody sings or plays.

    Parameters
    ----------
    sings
        Whether there are vowels and consonants; else the body is fixed.
    tuning_cents, spread_cents, drift_cents
        Off pitch: always, from note to note, and within a note, as standard deviations but for the first.
    glide_sec, scoop_semitones, scoop_share
        Time from one tied note to the next; how far below a note may begin, and how many do.
    vibrato_cents, vibrato_hz, vibrato_delay_sec
        Depth to either side, rate, and when it sets in.
    attack_sec, release_sec, decay_sec
        Rise and fall of a note, and the time constant in which its level falls; infinite where it stays.
    slope, even
        The source: harmonic h has the amplitude h ** -slope, times `even` for every second.
    formants, bandwidths, gains
        The filter: its peaks in Hz; for a singer, one row a vowel.
    breath
        Amplitude of noise beside the tone.
    drive
        Of an amplifier that distorts; 0 for none.
    consonants
        Share of notes that begin with one.

    """

    sings: bool
    tuning_cents: float
    spread_cents: float
    drift_cents: float
    glide_sec: float
    scoop_semitones: float
    scoop_share: float
    vibrato_cents: float
    vibrato_hz: float
    vibrato_delay_sec: float
    attack_sec: float
    release_sec: float
    decay_sec: float
    slope: float
    even: float
    formants: Floats
    bandwidths: Floats
    gains: Floats
    breath: float
    drive: float
    consonants: float


def random_performer(rng: Rng) -> Performer:
    """Return somebody who sings, with chances of three in five, or plays."""
    sings = rng.random() < 0.6
    if sings:
        size = float(rng.uniform(0.92, 1.25))  # of the tract: men to children
        formants = size * np.concatenate([VOWELS_HZ, np.tile(UPPER_FORMANTS_HZ, (len(VOWELS_HZ), 1))], axis=1)
        formants *= rng.normal(1, 0.04, formants.shape)
        bandwidths = np.array([70.0, 90.0, 130.0, 200.0, 300.0]) * rng.uniform(0.8, 1.8)
        gains = 10 ** (np.array([0.0, -6.0, -12.0, -16.0, -24.0]) / 20) * 10 ** (rng.normal(0, 3, 5) / 20)
        gains[3] *= 10 ** (rng.uniform(0, 12) / 20)  # the singer's formant
    else:
        n = int(rng.integers(2, 7))
        formants = np.exp(rng.uniform(np.log(200), np.log(6000), (1, n)))
        bandwidths = formants[0] * rng.uniform(0.1, 1.0, n)
        gains = 10 ** (rng.normal(-3, 5, n) / 20)
    decays = not sings and rng.random() < 0.25  # a plucked string that is bent
    return Performer(
        sings,
        tuning_cents=float(rng.normal(0, 10)),
        spread_cents=float(rng.uniform(2, 22)),
        drift_cents=float(rng.uniform(2, 18)),
        glide_sec=float(np.exp(rng.uniform(np.log(0.015), np.log(0.16)))),
        scoop_semitones=float(rng.uniform(0.3, 2.5)),
        scoop_share=float(rng.uniform(0, 0.5)),
        vibrato_cents=float(rng.choice((0.0, rng.uniform(10, 50), rng.uniform(30, 110)), p=(0.2, 0.45, 0.35))),
        vibrato_hz=float(rng.uniform(4.5, 7.2)),
        vibrato_delay_sec=float(rng.uniform(0.0, 0.35)),
        attack_sec=float(rng.uniform(0.002, 0.01) if decays else rng.uniform(0.01, 0.09)),
        release_sec=float(rng.uniform(0.02, 0.12)),
        decay_sec=float(rng.uniform(0.5, 2.5)) if decays else float("inf"),
        slope=float(rng.uniform(0.7, 1.6) if sings else rng.uniform(0.5, 2.0)),
        even=float(rng.uniform(0.05, 0.5)) if not sings and rng.random() < 0.2 else 1.0,
        formants=formants,
        bandwidths=bandwidths,
        gains=gains,
        breath=float(rng.uniform(0, 0.05)),
        drive=float(rng.uniform(2, 20)) if not sings and rng.random() < 0.25 else 0.0,
        consonants=float(rng.uniform(0.3, 0.9)) if sings else 0.0,
    )


def perform(
    intervals_sec: Floats, pitches: Floats, n_samples: int, performer: Performer, rng: Rng, *, sample_rate: int = 22050
) -> Line:
    """Sing or play notes.

    Parameters
    ----------
    intervals_sec
        Onset and end of each note, in order, none before the end of the last; shape (n, 2).
    pitches
        MIDI numbers, shape (n,).
    n_samples
        Length of the line; what lies behind it is left out.
    performer
        Who.
    rng
        The source of randomness.
    sample_rate
        Hz.

    """
    n_frames = -(-n_samples // CONTROL)
    step_sec = CONTROL / sample_rate
    spans = [
        (first, last, float(pitch))
        for (start, end), pitch in zip(intervals_sec / step_sec, pitches, strict=True)
        if (first := round(start)) < (last := min(round(end), n_frames))
    ]
    if not spans:
        return Line(np.zeros(n_samples, dtype=np.float32), np.zeros(n_frames))
    pitch = _pitch(spans, n_frames, performer, step_sec, rng)
    level, noise = _levels(spans, n_frames, performer, step_sec, rng)
    hertz = 440 * 2 ** ((pitch - 69) / 12)
    response = _vowels(spans, n_frames, performer, step_sec, rng)
    samples = _tone(hertz, level, response, performer=performer, n_samples=n_samples, sample_rate=sample_rate, rng=rng)
    samples += _hiss(noise, n_samples, sample_rate, rng)
    if performer.drive:
        samples = np.tanh(performer.drive * samples / max(float(np.abs(samples).max()), 1e-9))
    peak = float(np.abs(samples).max())
    voiced = level > 0.05 * level.max()  # 26 dB below the loudest nothing is said of the pitch
    return Line((PEAK / max(peak, 1e-9) * samples).astype(np.float32), np.where(voiced, hertz, 0.0))


Spans = list[tuple[int, int, float]]


def _pitch(spans: Spans, n_frames: int, performer: Performer, step_sec: float, rng: Rng) -> Floats:
    """Return the pitch at every step; between notes it stays where it was."""
    pitch = np.full(n_frames, spans[0][2])
    vibrato = np.zeros(n_frames)
    before = None
    for first, last, target in spans:
        own = target + rng.normal(0, performer.spread_cents) / 100
        pitch[first:] = own
        time = np.arange(n_frames - first) * step_sec
        if before is not None and (first - before[0]) * step_sec < 0.06:  # tied: half of the way at the onset
            width = performer.glide_sec * rng.uniform(0.6, 1.6)
            reach = min(first, round(width / step_sec))
            way = np.arange(-reach, n_frames - first) * step_sec / width
            pitch[first - reach :] = before[1] + (own - before[1]) / (1 + np.exp(-5 * way))
        elif rng.random() < performer.scoop_share:
            depth = rng.uniform(0.3, 1) * performer.scoop_semitones
            pitch[first:] -= depth * np.exp(-time / rng.uniform(0.02, 0.1))
        held = (last - first) * step_sec
        if performer.vibrato_cents and held > 0.2:
            rise = np.clip((time[: last - first] - performer.vibrato_delay_sec * rng.random()) / 0.25, 0, 1)
            rate = performer.vibrato_hz * rng.normal(1, 0.04)
            depth = performer.vibrato_cents * rng.uniform(0.5, 1.2)
            phase = 2 * np.pi * (rate * time[: last - first] + rng.random())
            vibrato[first:last] = rise * depth / 100 * np.sin(phase)
        before = (last, own)
    drift = _walk(n_frames, 0.15 / step_sec, rng) * performer.drift_cents / 100
    return pitch + vibrato + drift + performer.tuning_cents / 100


def _walk(n: int, smooth: float, rng: Rng) -> Floats:
    """Return noise without fast changes, of standard deviation 1."""
    kernel = np.hanning(2 * max(2, round(smooth)) + 1)
    noise = np.convolve(rng.standard_normal(n + len(kernel)), kernel, mode="valid")[:n]
    steady: Floats = noise / np.sqrt((kernel**2).sum())
    return steady


def _levels(spans: Spans, n_frames: int, performer: Performer, step_sec: float, rng: Rng) -> tuple[Floats, Floats]:
    """Return the amplitudes of tone and of noise at every step."""
    level, noise = np.zeros(n_frames), np.zeros(n_frames)
    attack = max(1, round(performer.attack_sec / step_sec))
    release = max(1, round(performer.release_sec / step_sec))
    begin = end = -n_frames
    for first, last, _ in spans:
        n = last - first
        shape = np.minimum(1, np.arange(1, n + 1) / attack)
        if first - end <= 2 and rng.random() < 0.6:
            shape = np.maximum(shape, rng.uniform(0.4, 0.9))  # tied: hardly a dip
        shape *= np.exp(-np.arange(n) * step_sec / performer.decay_sec)
        shape *= 1 + rng.uniform(-0.3, 0.4) * np.sin(np.pi * np.arange(n) / n)
        shape *= np.minimum(1, np.arange(n, 0, -1) / min(release, n))
        loudness = 10 ** (rng.normal(0, 2.5) / 20)
        level[first:last] = np.maximum(level[first:last], loudness * shape)
        if rng.random() < performer.consonants:
            # the second half of the note before at most: it is heard
            earliest = max(0, (begin + first) // 2)
            _consonant(level, noise, first, earliest=earliest, step_sec=step_sec, loudness=loudness, rng=rng)
        begin, end = first, last
    noise += performer.breath * level
    return level, noise


def _consonant(
    level: Floats, noise: Floats, first: int, *, earliest: int, step_sec: float, loudness: float, rng: Rng
) -> None:
    """Begin a note with a closure and a burst, or with a hiss; the note before ends earlier for it."""
    hisses = rng.random() < 0.5
    length = round(rng.uniform(0.05, 0.13) / step_sec) if hisses else round(rng.uniform(0.02, 0.07) / step_sec)
    start = max(earliest, first - length)
    level[start:first] = 0.0
    if start >= 2:
        level[start - 2 : start] *= (0.7, 0.3)
    if hisses:
        noise[start:first] += rng.uniform(0.05, 0.35) * loudness * np.hanning(first - start + 2)[1:-1]
    else:
        burst = slice(first, min(len(noise), first + 3))
        noise[burst] += rng.uniform(0.05, 0.4) * loudness


def _vowels(spans: Spans, n_frames: int, performer: Performer, step_sec: float, rng: Rng) -> Floats:
    """Return the formants at every step, shape (n_frames, n_formants); they move within some 60 ms."""
    place = np.zeros(n_frames, dtype=int)
    now = 0
    for first, _, _ in spans:
        if rng.random() < 0.75:
            now = int(rng.integers(len(performer.formants)))
        place[first:] = now
    if len(performer.formants) == 1:
        return np.broadcast_to(performer.formants, (n_frames, performer.formants.shape[1]))
    kernel = np.hanning(2 * round(0.03 / step_sec) + 3)[1:-1]
    kernel /= kernel.sum()
    half = len(kernel) // 2
    tracks = np.log(performer.formants[place])
    moved = [np.convolve(np.pad(row, half, mode="edge"), kernel, mode="valid") for row in tracks.T]
    formants: Floats = np.exp(np.stack(moved, axis=1))
    return formants


def _tone(
    hertz: Floats, level: Floats, formants: Floats, *, performer: Performer, n_samples: int, sample_rate: int, rng: Rng
) -> Floats:
    """Add harmonics: each is a power of one rotating phasor, its amplitude that of source and filter."""
    at = np.arange(n_samples) / CONTROL
    steps = np.arange(len(hertz))
    phase = np.cumsum(np.interp(at, steps, hertz)) / sample_rate
    turn = np.exp(2j * np.pi * (phase % 1)).astype(np.complex64)
    power = np.ones(n_samples, dtype=np.complex64)
    total = np.zeros(n_samples)
    n = int(np.clip(HIGHEST_HZ // hertz.min(), 1, MOST_HARMONICS))
    # louder is brighter
    bright = performer.slope + 0.4 * (1 - np.clip(level / max(level.max(), 1e-9), 0, 1))
    for h in range(1, n + 1):
        power *= turn
        frequency = h * hertz
        distance = (frequency[:, None] - formants) / (performer.bandwidths / 2)
        gain = 0.03 + (performer.gains / np.sqrt(1 + distance**2)).sum(axis=1)
        amplitude = level * gain * h**-bright * (performer.even if h % 2 == 0 else 1.0)
        amplitude[frequency > HIGHEST_HZ] = 0.0
        offset = np.complex64(np.exp(2j * np.pi * rng.random()))
        total += np.interp(at, steps, amplitude) * (power * offset).imag
    return total


def _hiss(noise: Floats, n_samples: int, sample_rate: int, rng: Rng) -> Floats:
    """Return noise of a random band, as loud as its level says."""
    if not noise.any():
        return np.zeros(n_samples)
    spectrum = np.fft.rfft(rng.standard_normal(n_samples))
    octaves = np.log2(np.maximum(np.fft.rfftfreq(n_samples, 1 / sample_rate), 20))
    spectrum *= np.exp(-0.5 * ((octaves - np.log2(rng.uniform(2500, 7000))) / rng.uniform(0.4, 1.2)) ** 2)
    made = np.fft.irfft(spectrum, n_samples)
    made /= max(float(np.sqrt(np.mean(made**2))), 1e-9)
    return 0.3 * made * np.interp(np.arange(n_samples) / CONTROL, np.arange(len(noise)), noise)
