"""Training renderings: random arrangements of public-domain and composed tunes, with their melody and beats.

They train the networks of our own that follow melodies and beats. Mixture number `index` is always the same: everything
random in it comes from ``numpy.random.default_rng([seed, index])``. Pieces, instruments and sounds are disjoint from
the benchmark `known_edits`: its chorales and tunes are left out, only `TRAIN_PROGRAMS` are played, and the additive
renderer is given random timbres instead of its stock ones. The lead may be performed by `voices` instead: sung, or
played with glides and vibrato.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import numpy.typing as npt
from benchmarks.extractor_training.arranging import Part, arrange
from benchmarks.extractor_training.composing import compose, harmonise
from benchmarks.extractor_training.timbres import colour, random_recipe
from benchmarks.extractor_training.tunes import TICKS, Tune, load_tunes
from benchmarks.extractor_training.voices import CONTROL, Line, perform, random_performer

from music_evals.annotations import DRUMS, Beats, F0Track, Melody, Score, Tempo, TimeSignature
from music_evals.audio.rendering import render_additive, render_fluidsynth
from music_evals.errors import InvalidInputError
from music_evals.symbolic.midi import write_midi
from music_evals.symbolic.notes import make_notes

__all__ = ["LEADS", "RENDERERS", "SAMPLE_RATE", "Mixture", "make_mixture"]

SAMPLE_RATE = 22050  # Hz
HOP = 512  # samples from one frame of the spectra to the next
RENDERERS = ("additive", "fluidsynth", "mixed")
LEADS = ("rendered", "performed")
SHARE_CHORALES, SHARE_TUNES = 0.2, 0.3  # of the pieces; the rest is composed
TEMPO_BPM, TEMPO_SPREAD, TEMPO_RANGE_BPM = 105.0, 0.32, (50.0, 200.0)  # beats a minute, log-normal
SHORTEST_NOTE_SEC = 0.11  # half of the notes of a melody are longer
SILENT_BARS = 0.25  # share of mixtures whose melody pauses for a while
SILENT_BARS_PERFORMED = 0.6  # the same, of a lead that is performed: singers wait while others play
LEAD_DB = (-5.0, 10.0)  # level of a lead that is performed, over that of all others
COMFORT = ((43, 70), (52, 82))  # MIDI pitches that the middle of a performed lead lies between, low and high voices
SILENT_LEAD = 0.04  # share of mixtures whose melody is left out, where something else plays
SHORTEST_SEC = 0.03  # of a note of the melody, after everything was moved a little

Rng = np.random.Generator


@dataclasses.dataclass(frozen=True, eq=False)
class Mixture:
    """A rendering and what is known of it.

    Parameters
    ----------
    samples
        float32, mono, at 22,050 Hz, shape (n,).
    melody
        The exact notes of the lead.
    beats
        The beats of the time signature, the dotted quarter in 6/8, from the first note to the last.
    downbeats_sec
        Those that begin a bar, shape (n,).
    has_drums
        Whether drums play.
    source
        Name of the tune.
    f0
        What a lead that is performed has as its frequency, every 512 samples; None of one that is rendered, which keeps
        to the pitches of its notes.

    """

    samples: npt.NDArray[np.float32]
    melody: Melody
    beats: Beats
    downbeats_sec: npt.NDArray[np.float64]
    has_drums: bool
    source: str
    f0: F0Track | None = None


def make_mixture(
    index: int,
    *,
    seconds: float = 30.0,
    renderer: str = "mixed",
    lead: str = "rendered",
    seed: int = 0,
    cache: Path | None = None,
    is_raw: bool = False,
) -> Mixture:
    """Return mixture number `index`.

    Parameters
    ----------
    index
        Its number, >= 0.
    seconds
        Its length; the music may end earlier.
    renderer
        ``"additive"``, ``"fluidsynth"``, or ``"mixed"`` for either with equal chances.
    lead
        ``"rendered"`` as all other parts are, or ``"performed"`` by somebody who sings or plays.
    seed
        Of the whole collection; 0 and up.
    is_raw
        Whether it is left without room, equaliser and noise.
    cache
        A folder that keeps the notes of the corpus, which takes minutes to read the first time.

    Raises
    ------
    InvalidInputError
        An unknown renderer or kind of lead.
    MissingBackendError
        music21, or FluidSynth where it is asked for, is not installed.

    """
    if renderer not in RENDERERS:
        msg = f"unknown renderer {renderer!r}; expected one of {', '.join(RENDERERS)}"
        raise InvalidInputError(msg)
    if lead not in LEADS:
        msg = f"unknown kind of lead {lead!r}; expected one of {', '.join(LEADS)}"
        raise InvalidInputError(msg)
    rng = np.random.default_rng([seed, index])
    if renderer == "mixed":
        renderer = str(rng.choice(("additive", "fluidsynth")))
    tune = _tune(rng, cache)
    bpm = _tempo(tune, rng)
    tune, start_tick = _window(tune, bpm, seconds, rng)
    parts = arrange(tune, rng)
    tempos = _tempo_map(tune, bpm, start_tick, rng)
    silent_bars = SILENT_BARS if lead == "rendered" else SILENT_BARS_PERFORMED
    score, melody = _perform(tune, parts, start_tick, tempos, rng, silent_bars=silent_bars)
    line = None
    if lead == "rendered":
        samples = _render(score, renderer, rng)
    else:
        samples, line, melody = _with_performed_lead(score, melody, renderer, rng)
    lead_in = int(rng.uniform(0, 0.8) * SAMPLE_RATE) if rng.random() < 0.3 else 0
    n_samples = round(seconds * SAMPLE_RATE)
    padded = np.zeros(n_samples, dtype=np.float32)
    kept = samples[: max(n_samples - lead_in, 0)]
    padded[lead_in : lead_in + len(kept)] = kept
    lead_in_sec = lead_in / SAMPLE_RATE
    grids = (_grid(score, tune, start_tick, step) + lead_in_sec for step in (tune.beat_ticks, tune.bar_ticks))
    beats, downbeats = (grid[grid < seconds] for grid in grids)
    return Mixture(
        padded if is_raw else colour(padded, SAMPLE_RATE, rng),
        _cut(melody, lead_in_sec, seconds),
        Beats(beats, 60 * (len(beats) - 1) / (beats[-1] - beats[0]) if len(beats) > 1 else float("nan")),
        downbeats,
        DRUMS in score.programs,
        tune.name,
        None if line is None else _track(line, lead_in, n_samples),
    )


def _tune(rng: Rng, cache: Path | None) -> Tune:
    draw = rng.random()
    if draw >= SHARE_CHORALES + SHARE_TUNES:
        tune = compose(rng)
        while not tune.voices[0]:  # one in two thousand came out as rests only
            tune = compose(rng)
        return tune
    chorales, tunes = load_tunes(cache)
    chosen = chorales if draw < SHARE_CHORALES else tunes
    return harmonise(chosen[rng.integers(len(chosen))])


def _tempo(tune: Tune, rng: Rng) -> float:
    """Return beats a minute at which the melody can be played."""
    typical = float(np.median([duration for _, duration, _ in tune.voices[0]])) / tune.beat_ticks
    low, high = TEMPO_RANGE_BPM
    fastest = float(np.clip(60 * typical / SHORTEST_NOTE_SEC, low + 10, high))
    return float(np.clip(TEMPO_BPM * np.exp(rng.normal(0, TEMPO_SPREAD)), low, fastest))


def _window(tune: Tune, bpm: float, seconds: float, rng: Rng) -> tuple[Tune, int]:
    """Repeat a tune until it fills the time, and choose where to begin: half of the time at its beginning."""
    n_ticks = round(seconds * bpm / 60 * tune.beat_ticks)
    start = 0 if rng.random() < 0.5 else int(rng.integers(0, min(16 * tune.bar_ticks, tune.end_tick)))
    if rng.random() < 0.15:
        return tune, min(start, tune.end_tick // 2)  # it ends when it ends
    period = -(-tune.end_tick // tune.bar_ticks) * tune.bar_ticks
    first = min(voice[0][0] for voice in tune.voices)
    if first and tune.end_tick <= period - tune.bar_ticks + first:
        period -= tune.bar_ticks  # the pickup of the next time completes the last bar
    end = start + round(1.15 * n_ticks)  # a tempo that drifts up needs more
    n_times = -(-end // period)
    voices = tuple(
        tuple(
            (onset + i * period, duration, pitch)
            for i in range(n_times)
            for onset, duration, pitch in voice
            if onset + i * period < end
        )
        for voice in tune.voices
    )
    chords = tuple(
        (onset + i * period, min(duration, period - onset), pitches)
        for i in range(n_times)
        for onset, duration, pitches in tune.chords
        if onset < period and onset + i * period < end
    )
    return dataclasses.replace(tune, voices=voices, chords=chords), start


def _tempo_map(tune: Tune, bpm: float, start: int, rng: Rng) -> list[Tempo]:
    """Return a tempo for every beat from `start` on: constant, drifting, or with rubato."""
    n_beats = (tune.end_tick - start) // tune.beat_ticks + 2
    beat = np.arange(n_beats)
    kind = rng.choice(("constant", "drift", "rubato"), p=(0.5, 0.2, 0.3))
    curve = np.ones(n_beats)
    if kind == "drift":
        curve += rng.uniform(-0.12, 0.12) * beat / n_beats
    elif kind == "rubato":
        period = int(rng.choice((4, 8, 16)))
        curve += rng.uniform(0.02, 0.12) * np.sin(2 * np.pi * (beat / period + rng.random()))
        curve += rng.normal(0, rng.uniform(0, 0.03), n_beats)
    if rng.random() < 0.2:
        curve[-4:] *= np.linspace(1, 0.75, min(4, n_beats))
    quarters = bpm * tune.beat_ticks / TICKS
    first = start - start % tune.beat_ticks
    return [
        Tempo(max(first + i * tune.beat_ticks - start, 0), float(quarters * factor)) for i, factor in enumerate(curve)
    ]


def _perform(
    tune: Tune, parts: list[Part], start: int, tempos: list[Tempo], rng: Rng, *, silent_bars: float
) -> tuple[Score, npt.NDArray[np.float64]]:
    """Return the score as it is played, and the melody's rows of onset, end (s) and pitch."""
    swing = float(rng.uniform(0.52, 0.68)) if tune.denominator != 8 and rng.random() < 0.15 else 0.5
    spread_sec = float(rng.choice((0.0, 0.004, 0.01, 0.018)))
    ticks_per_sec = tempos[0].bpm / 60 * TICKS
    pauses = _pauses(tune, silent_bars, rng, alone=len(parts) == 1)
    columns: list[npt.NDArray[np.int64]] = []
    for voice, part in enumerate(parts):
        if not part.notes:
            continue
        onset, duration, pitch = np.array(part.notes).T
        kept = (onset >= start) & (pitch >= 21) & (pitch <= 108)
        if part.role == "lead":
            kept &= ~pauses[onset // tune.bar_ticks]
        onset, duration, pitch = onset[kept] - start, duration[kept], pitch[kept]
        onset = _swung(onset + start, tune.beat_ticks, swing) - start
        onset = np.maximum(onset + np.round(rng.normal(0, spread_sec * ticks_per_sec, len(onset))), 0).astype(np.int64)
        share = float(rng.uniform(0.6, 1.0))
        duration = np.maximum(np.round(duration * share), TICKS // 24).astype(np.int64)
        if part.role == "lead":
            onset, duration, pitch = _monophonic(onset, duration, pitch, ticks_per_sec)
        velocity = _velocities(onset + start, part, tune, rng)
        columns.append(np.stack([onset, duration, pitch, velocity, np.full(len(onset), voice)]))
    onset, duration, pitch, velocity, voices = np.concatenate(columns, axis=1) if columns else np.zeros((5, 0), int)
    score = Score(
        make_notes(onset, duration, pitch, velocity, voices),
        TICKS,
        (TimeSignature(0, tune.numerator, tune.denominator),),
        tuple(tempos),
        voices=tuple(part.role for part in parts),
        programs=tuple(part.program for part in parts),
    )
    lead = score.voice(0)
    ends = lead["onset_tick"] + lead["duration_tick"]
    return score, np.stack([score.seconds(lead["onset_tick"]), score.seconds(ends), lead["pitch"]], axis=1)


def _pauses(tune: Tune, silent_bars: float, rng: Rng, *, alone: bool) -> npt.NDArray[np.bool_]:
    """Return the bars in which the melody is silent."""
    n_bars = tune.end_tick // tune.bar_ticks + 1
    silent = np.zeros(n_bars, dtype=bool)
    draw = rng.random()
    if draw < silent_bars:
        for first in rng.integers(0, n_bars, 1 + n_bars // 12):
            silent[first : first + int(rng.integers(1, 5))] = True
    if draw < SILENT_LEAD and not alone:
        silent[:] = True
    return silent


def _swung(tick: npt.NDArray[np.int64], beat: int, swing: float) -> npt.NDArray[np.int64]:
    """Stretch the first half of every beat to the share `swing`, and squeeze the second."""
    within = tick % beat / beat
    moved = np.where(within < 0.5, within * 2 * swing, swing + (within - 0.5) * 2 * (1 - swing))
    swung: npt.NDArray[np.int64] = tick - tick % beat + np.round(moved * beat).astype(np.int64)
    return swung


def _monophonic(
    onset: npt.NDArray[np.int64], duration: npt.NDArray[np.int64], pitch: npt.NDArray[np.int64], ticks_per_sec: float
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Put the notes of the melody in order again, and end each before the next begins."""
    order = np.argsort(onset, kind="stable")
    onset, duration, pitch = onset[order], duration[order], pitch[order]
    shortest = int(np.ceil(SHORTEST_SEC * ticks_per_sec))
    room = np.diff(onset, append=np.iinfo(np.int64).max)
    kept = room >= shortest
    onset, duration, pitch = onset[kept], duration[kept], pitch[kept]
    room = np.diff(onset, append=np.iinfo(np.int64).max)
    return onset, np.minimum(np.maximum(duration, shortest), room), pitch


def _velocities(tick: npt.NDArray[np.int64], part: Part, tune: Tune, rng: Rng) -> npt.NDArray[np.int64]:
    """Return velocities: the level of the part, accents of the meter, a slow swell, and chance."""
    accent = np.where(tick % tune.bar_ticks == 0, 1.0, np.where(tick % tune.beat_ticks == 0, 0.4, 0.0))
    level = 10 ** (part.level_db / 20 / 1.5)  # the renderers' amplitude grows with velocity ** 1.5 .. 2
    swell = 6 * np.sin(2 * np.pi * (tick / (8 * tune.bar_ticks) + rng.random()))
    velocity = 88 * level + rng.uniform(0, 10) * accent + swell * level + rng.normal(0, rng.uniform(0, 9), len(tick))
    clipped: npt.NDArray[np.int64] = np.clip(np.round(velocity), 8, 127).astype(np.int64)
    return clipped


def _render(score: Score, renderer: str, rng: Rng) -> npt.NDArray[np.float32]:
    recipes = {voice: random_recipe(program, rng) for voice, program in enumerate(score.programs)}
    seed = int(rng.integers(2**31))
    if renderer == "fluidsynth":
        return render_fluidsynth(write_midi(score), sample_rate=SAMPLE_RATE)
    return render_additive(score, seed=seed, timbres=recipes, sample_rate=SAMPLE_RATE)


def _with_performed_lead(
    score: Score, melody: npt.NDArray[np.float64], renderer: str, rng: Rng
) -> tuple[npt.NDArray[np.float32], Line, npt.NDArray[np.float64]]:
    """Return the mix of what the others play and a lead that somebody performs in a register of their own, and both."""
    others = dataclasses.replace(score, notes=score.notes[score.notes["voice"] != 0])
    band = _render(others, renderer, rng)
    low, high = COMFORT[rng.integers(len(COMFORT))]
    if len(melody):
        middle = float(np.median(melody[:, 2]))
        target = rng.uniform(low + 6, high - 6)
        moved = melody + np.array([0.0, 0.0, 12 * round((target - middle) / 12)])
        melody = moved[(moved[:, 2] >= low - 10) & (moved[:, 2] <= high + 12)]
    n_samples = max(len(band), round((melody[:, 1].max(initial=0.0) + 1.0) * SAMPLE_RATE))
    line = perform(melody[:, :2], melody[:, 2], n_samples, random_performer(rng), rng, sample_rate=SAMPLE_RATE)
    gain = 10 ** (rng.uniform(*LEAD_DB) / 20)
    mixed = np.zeros(n_samples, dtype=np.float32)
    mixed[: len(band)] = band
    loud = _loudness(band)
    if loud and (own := _loudness(line.samples)):
        mixed += np.float32(gain * loud / own) * line.samples
    else:
        mixed += line.samples
    return mixed, line, melody


def _loudness(samples: npt.NDArray[np.float32]) -> float:
    """Return the root mean square where something sounds."""
    sounding = samples[np.abs(samples) > 1e-3]
    return float(np.sqrt(np.mean(sounding**2))) if len(sounding) else 0.0


def _track(line: Line, lead_in: int, n_samples: int) -> F0Track:
    """Return the frequency of a line that begins later, every 512 samples."""
    frames = np.arange(-(-n_samples // HOP))
    at = np.rint((frames * HOP - lead_in) / CONTROL).astype(int)
    inside = (at >= 0) & (at < len(line.frequencies_hz))
    hertz = np.where(inside, line.frequencies_hz[np.clip(at, 0, len(line.frequencies_hz) - 1)], 0.0)
    return F0Track(frames * HOP / SAMPLE_RATE, hertz)


def _grid(score: Score, tune: Tune, start: int, step: int) -> npt.NDArray[np.float64]:
    """Return the times of the multiples of `step` ticks between the first note and the last."""
    if not len(score.notes):
        return np.zeros(0)
    first = int(score.notes["onset_tick"][0]) - tune.beat_ticks // 4
    last = int(score.notes["onset_tick"][-1]) + tune.beat_ticks // 4
    ticks = np.arange(-(-max(start + first, 0) // step) * step, start + last + 1, step) - start
    return score.seconds(ticks[ticks >= 0])


def _cut(melody: npt.NDArray[np.float64], lead_in_sec: float, seconds: float) -> Melody:
    onset, end, pitch = melody.T
    onset, end = onset + lead_in_sec, np.minimum(end + lead_in_sec, seconds)
    kept = onset < seconds - SHORTEST_SEC
    onset, end = onset[kept], end[kept]
    end[:-1] = np.minimum(end[:-1], onset[1:])  # rounding
    return Melody(np.stack([onset, end], axis=1), pitch[kept])
