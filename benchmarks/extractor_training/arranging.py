"""Parts around a melody: bass, chords in many patterns, pads, second voices, drums."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
from benchmarks.extractor_training.tunes import Chord, Note, Tune

from music_evals.annotations import DRUMS
from music_evals.datasets.programs import TRAIN_PROGRAMS, programs_of

__all__ = ["Part", "arrange"]

Rng = np.random.Generator

LEAD_FAMILIES = (
    "piano", "chromatic_percussion", "organ", "guitar", "strings", "ensemble", "brass", "reed", "pipe", "synth_lead",
    "ethnic",
)  # fmt: skip
CHORD_FAMILIES = ("piano", "chromatic_percussion", "organ", "guitar", "ensemble", "ethnic", "synth_lead")
PAD_FAMILIES = ("organ", "strings", "ensemble", "synth_pad", "reed")
BASS_FAMILIES = ("bass", "bass", "bass", "piano", "strings", "brass", "synth_lead")
QUIET_DB, QUIET_SPREAD_DB = -8.5, 4.5  # level of the other parts against the melody
LOUDEST_DB, SOFTEST_DB = 1.0, -20.0


@dataclasses.dataclass
class Part:
    """What one instrument plays: notes, a program, a level in dB against the melody, and what it is."""

    role: str
    program: int
    notes: list[Note]
    level_db: float = 0.0


def arrange(tune: Tune, rng: Rng) -> list[Part]:
    """Return the parts of a random arrangement; the first is the melody.

    One in six is the melody alone. Chorales keep their four voices at equal levels in two of three. About half of the
    others have drums.
    """
    melody = list(tune.voices[0])
    if len(tune.voices) > 1 and rng.random() < 0.67:
        return _choir(tune, rng)
    shift = _register_shift(melody, rng)
    lead = Part("lead", _program(LEAD_FAMILIES, rng), [(o, d, _fold(p + shift)) for o, d, p in melody])
    draw = rng.random()
    if draw < 1 / 6:
        return [lead]
    parts = [lead]
    if draw < 0.92:
        parts.append(_with_level(_bass(tune, rng), rng))
    n_chords = int(rng.choice((1, 2, 0), p=(0.6, 0.25, 0.15)))
    parts += [_with_level(_chords(tune, rng), rng) for _ in range(n_chords)]
    if rng.random() < 0.3:
        parts.append(_with_level(_pad(tune, rng), rng))
    if rng.random() < 0.3:
        parts.append(_with_level(_second_voice(tune, lead, rng), rng))
    if rng.random() < 0.65:
        parts.append(_with_level(Part("drums", DRUMS, _drums(tune, rng)), rng))
    return parts


def _choir(tune: Tune, rng: Rng) -> list[Part]:
    """Play the voices of a chorale on one instrument, or each on its own, at equal levels."""
    families = rng.choice(("ensemble", "organ", "strings", "reed", "brass", "piano", "synth_pad", "pipe"), size=4)
    if rng.random() < 0.6:
        families[:] = families[0]
        one = _program((str(families[0]),), rng)
        programs = [one] * 4
    else:
        programs = [_program((str(family),), rng) for family in families]
    shift = int(rng.integers(-5, 6))
    roles = ("lead", "alto", "tenor", "bass")
    return [
        Part(role, program, [(o, d, p + shift) for o, d, p in voice], float(rng.normal(0, 1.0)) if index else 0.0)
        for index, (role, program, voice) in enumerate(zip(roles, programs, tune.voices, strict=True))
    ]


def _program(families: tuple[str, ...], rng: Rng) -> int:
    return int(rng.choice(programs_of(str(rng.choice(families)), TRAIN_PROGRAMS)))


def _with_level(part: Part, rng: Rng) -> Part:
    part.level_db = float(np.clip(rng.normal(QUIET_DB, QUIET_SPREAD_DB), SOFTEST_DB, LOUDEST_DB))
    return part


def _register_shift(melody: list[Note], rng: Rng) -> int:
    """Return semitones that bring the middle of the melody somewhere between E3 and E6, mostly around C5."""
    middle = float(np.median([pitch for _, _, pitch in melody]))
    target = float(np.clip(rng.normal(71, 8), 52, 88))
    return 12 * round((target - middle) / 12) + int(rng.integers(-5, 7))


def _fold(pitch: int) -> int:
    """Keep a pitch of the melody within C3..C7, by octaves."""
    while pitch < 48:
        pitch += 12
    while pitch > 96:
        pitch -= 12
    return pitch


def _voiced(pitches: tuple[int, ...], lowest: int) -> list[int]:
    """Return a chord in close position, its notes from `lowest` on."""
    return sorted(lowest + (pitch - lowest) % 12 for pitch in pitches)


def _bass(tune: Tune, rng: Rng) -> Part:
    lowest = int(rng.integers(28, 41))
    pattern = rng.choice(("held", "beat", "fifth", "walk", "pulse"), p=(0.25, 0.25, 0.25, 0.1, 0.15))
    step = tune.beat_ticks // (2 if pattern == "pulse" and tune.denominator != 8 else 1)
    notes: list[Note] = []
    for onset, duration, pitches in tune.chords:
        root = lowest + (pitches[0] - lowest) % 12
        tones = _voiced(pitches, root)
        if pattern == "held":
            notes.append((onset, duration, root))
            continue
        for i, tick in enumerate(range(onset, onset + duration, step)):
            pitch = root
            if pattern == "fifth" and i % 2:
                pitch = root + 7 if rng.random() < 0.5 else root - 5
            elif pattern == "walk":
                pitch = tones[i % len(tones)]
            if i == 0 or rng.random() < 0.92:
                notes.append((tick, step, pitch))
    return Part("bass", _program(BASS_FAMILIES, rng), notes)


def _chords(tune: Tune, rng: Rng) -> Part:
    """Return a part of chords: held, repeated, off the beat, broken, or in a rhythm of its own."""
    lowest = int(np.clip(rng.normal(56, 8), 43, 80))  # at times above the melody
    pattern: Callable[[Tune, Chord, list[int], Rng], list[Note]] = PATTERNS[rng.integers(len(PATTERNS))]
    fixed = int(rng.integers(2**31))
    notes: list[Note] = []
    for chord in tune.chords:
        # one generator for all bars: the pattern of a bar is that of every other
        notes += pattern(tune, chord, _voiced(chord[2], lowest), np.random.default_rng(fixed))
    return Part("chords", _program(CHORD_FAMILIES, rng), notes)


def _held(tune: Tune, chord: Chord, pitches: list[int], rng: Rng) -> list[Note]:  # noqa: ARG001
    onset, duration, _ = chord
    return [(onset, duration, pitch) for pitch in pitches]


def _repeated(tune: Tune, chord: Chord, pitches: list[int], rng: Rng) -> list[Note]:
    onset, duration, _ = chord
    step = tune.beat_ticks // int(rng.choice((1, 1, 2) if tune.denominator != 8 else (1, 3)))
    return [(tick, step, pitch) for tick in range(onset, onset + duration, step) for pitch in pitches]


def _off_beat(tune: Tune, chord: Chord, pitches: list[int], rng: Rng) -> list[Note]:
    onset, duration, _ = chord
    beat = tune.beat_ticks
    if rng.random() < 0.6:  # on every beat but the first of the bar or chord
        ticks = [tick for tick in range(onset, onset + duration, beat) if tick != onset]
        return [(tick, beat, pitch) for tick in ticks for pitch in pitches]
    half = beat // 2 if tune.denominator != 8 else 2 * beat // 3
    return [(tick + half, beat - half, pitch) for tick in range(onset, onset + duration, beat) for pitch in pitches]


def _broken(tune: Tune, chord: Chord, pitches: list[int], rng: Rng) -> list[Note]:
    onset, duration, _ = chord
    step = tune.beat_ticks // (3 if tune.denominator == 8 else int(rng.choice((1, 2, 2, 2, 3, 4))))
    orders = ((0, 1, 2), (0, 2, 1, 2), (0, 1, 2, 1), (2, 1, 0), (0, 1, 2, 3), (3, 2, 1, 0))
    order = orders[rng.integers(len(orders))]
    tones = [*pitches, pitches[0] + 12]
    held = step * int(rng.choice((1, 1, 2)))
    return [(tick, held, tones[order[i % len(order)]]) for i, tick in enumerate(range(onset, onset + duration, step))]


def _strummed(tune: Tune, chord: Chord, pitches: list[int], rng: Rng) -> list[Note]:
    """Play a rhythm drawn once: eighths, or thirds of a compound beat, each struck or not."""
    onset, duration, _ = chord
    step = tune.beat_ticks // (3 if tune.denominator == 8 else 2)
    struck = rng.random(64) < rng.uniform(0.3, 0.7)
    struck[0] = rng.random() < 0.85
    n_bar = tune.bar_ticks // step
    return [
        (tick, step, pitch)
        for tick in range(onset, onset + duration, step)
        if struck[(tick // step) % n_bar]
        for pitch in pitches
    ]


PATTERNS: tuple[Callable[[Tune, Chord, list[int], Rng], list[Note]], ...] = (
    _held, _repeated, _off_beat, _broken, _broken, _strummed,
)  # fmt: skip


def _pad(tune: Tune, rng: Rng) -> Part:
    lowest = int(rng.integers(50, 80))
    size = int(rng.integers(1, 4))
    notes = [(onset, duration, pitch) for onset, duration, pcs in tune.chords for pitch in _voiced(pcs, lowest)[:size]]
    return Part("pad", _program(PAD_FAMILIES, rng), notes)


def _second_voice(tune: Tune, lead: Part, rng: Rng) -> Part:
    """Return a voice below the melody in chord tones, one an octave off, or a slow one of its own."""
    kind = rng.choice(("parallel", "slow", "octave"), p=(0.5, 0.4, 0.1))
    program = _program(LEAD_FAMILIES, rng)
    if kind == "octave":
        return Part("second", program, [(onset, duration, pitch - 12) for onset, duration, pitch in lead.notes])
    if kind == "parallel":
        classes = np.zeros(12, dtype=bool)
        classes[[pitch for _, _, pitches in tune.chords for pitch in pitches]] = True
        notes = []
        for onset, duration, pitch in lead.notes:
            below = [other for other in range(pitch - 5, pitch - 2) if classes[other % 12]]
            notes.append((onset, duration, below[-1] if below else pitch - 4))
        return Part("second", program, notes)
    notes, step = [], tune.beat_ticks * int(rng.choice((1, 2)))
    place = int(rng.integers(52, 76))
    for onset, duration, pitches in tune.chords:
        for tick in range(onset, onset + duration, step):
            near = [p for p in range(place - 7, place + 8) if p % 12 in pitches]
            place = int(np.clip(rng.choice(near), 48, 84))
            if rng.random() < 0.85:
                notes.append((tick, min(step, onset + duration - tick), place))
    return Part("second", program, notes)


KICK, SNARE, RIM, CLOSED, OPEN, RIDE, CRASH, SHAKER, TOM = 36, 38, 37, 42, 46, 51, 49, 70, 45


def _drums(tune: Tune, rng: Rng) -> list[Note]:
    """Return a groove of one bar that is repeated, with a fill or crash now and then; some only a shaker or a kick."""
    n_bars = -(-tune.end_tick // tune.bar_ticks)
    bar = _groove(tune, rng)
    sparse = rng.random() < 0.12
    kept = int(rng.choice((KICK, SHAKER, CLOSED))) if sparse else 0
    notes: list[Note] = []
    step = tune.beat_ticks // (3 if tune.denominator == 8 else 4)
    for index in range(n_bars):
        start = index * tune.bar_ticks
        strokes = [(start + tick, step, pitch) for tick, pitch in bar if not sparse or pitch in {kept, CLOSED}]
        if not sparse and index % 4 == 3 and rng.random() < 0.3:
            last = start + tune.bar_ticks - tune.beat_ticks
            strokes = [stroke for stroke in strokes if stroke[0] < last]
            strokes += [
                (tick, step, int(rng.choice((SNARE, TOM, 47, 50))))
                for tick in range(last, last + tune.beat_ticks, step)
            ]
        if not sparse and index % 8 == 0 and rng.random() < 0.4:
            strokes.append((start, step, CRASH))
        notes += strokes
    return notes


def _groove(tune: Tune, rng: Rng) -> list[tuple[int, int]]:
    """Return the strokes of one bar as (tick, drum)."""
    beat, n_beats = tune.beat_ticks, tune.bar_ticks // tune.beat_ticks
    parts = 3 if tune.denominator == 8 else 2
    hat = int(rng.choice((CLOSED, RIDE, SHAKER, CLOSED)))
    n_hats = int(rng.choice((1, parts, parts, 4 if parts == 2 else 3)))
    strokes = [(round(i * beat / n_hats), hat) for i in range(n_beats * n_hats)]
    if n_beats % 2 == 0:
        back = [i * beat for i in range(1, n_beats, 2)] if rng.random() < 0.8 else [n_beats // 2 * beat]
        kicks = [i * beat for i in range(n_beats)] if rng.random() < 0.3 else [i * beat for i in range(0, n_beats, 2)]
    else:
        back, kicks = [i * beat for i in range(1, n_beats)], [0]
    snare = int(rng.choice((SNARE, SNARE, RIM)))
    strokes += [(tick, snare) for tick in back] + [(tick, KICK) for tick in kicks]
    for i in range(n_beats):  # kicks and ghost notes between the beats
        if rng.random() < 0.25:
            strokes.append((i * beat + (parts - 1) * beat // parts, KICK))
        if rng.random() < 0.1:
            strokes.append((i * beat + (parts - 1) * beat // parts, snare))
    if rng.random() < 0.25:
        strokes.append((tune.bar_ticks - beat // parts, OPEN))
    return sorted(set(strokes))
