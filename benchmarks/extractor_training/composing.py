"""Tunes from a random grammar: chord progressions in all keys and modes, and melodies of motifs over them.

A tune has one to three sections; a section is a progression of two to eight bars and a melody whose bars repeat and
vary a few motifs. Also: chords for a tune that has none.
"""

from __future__ import annotations

import numpy as np
from benchmarks.extractor_training.tunes import TICKS, Chord, Note, Tune

__all__ = ["compose", "harmonise"]

Rng = np.random.Generator

MODES = {
    "major": (0, 2, 4, 5, 7, 9, 11),
    "minor": (0, 2, 3, 5, 7, 8, 10),
    "dorian": (0, 2, 3, 5, 7, 9, 10),
    "mixolydian": (0, 2, 4, 5, 7, 9, 10),
    "harmonic_minor": (0, 2, 3, 5, 7, 8, 11),
    "pentatonic": (0, 2, 4, 7, 9),
}
MODE_WEIGHTS = (0.36, 0.22, 0.1, 0.1, 0.12, 0.1)
METERS = ((4, 4), (3, 4), (6, 8), (2, 4), (2, 2), (9, 8))
METER_WEIGHTS = (0.52, 0.22, 0.14, 0.08, 0.02, 0.02)
# Roots of a bar each, as degrees of the scale counted from 0.
PROGRESSIONS = (
    (0, 3, 4, 0),
    (0, 4, 5, 3),
    (0, 5, 3, 4),
    (5, 3, 0, 4),
    (0, 5, 1, 4),
    (1, 4, 0, 0),
    (0, 0, 3, 0, 4, 3, 0, 4),
    (0, 3, 0, 4),
    (0, 6, 5, 4),
    (0, 2, 3, 4),
    (0, 3),
    (0, 4),
)
# Rhythms of one beat, in shares of the beat; a negative share is a rest.
SIMPLE = (
    (1.0,),
    (0.5, 0.5),
    (0.75, 0.25),
    (0.25, 0.25, 0.5),
    (0.5, 0.25, 0.25),
    (0.25,) * 4,
    (1 / 3,) * 3,
    (-0.5, 0.5),
)
COMPOUND = ((1.0,), (2 / 3, 1 / 3), (1 / 3,) * 3, (1 / 3, 2 / 3), (-1 / 3, 1 / 3, 1 / 3), (1 / 2, 1 / 6, 1 / 3))
STEPS = (-4, -3, -2, -1, 0, 1, 2, 3, 4, 7, -7)
STEP_WEIGHTS = (0.02, 0.04, 0.1, 0.29, 0.08, 0.29, 0.1, 0.04, 0.02, 0.01, 0.01)


def compose(rng: Rng) -> Tune:
    """Return a tune with chords, 8 to 24 bars."""
    numerator, denominator = METERS[rng.choice(len(METERS), p=METER_WEIGHTS)]
    frame = Tune("composed", numerator, denominator, ())
    tonic = int(rng.integers(12))
    scale = MODES[tuple(MODES)[rng.choice(len(MODES), p=MODE_WEIGHTS)]]
    busyness = float(rng.uniform(0, 1))
    sections = [_section(frame, tonic, scale, busyness, rng) for _ in range(rng.integers(1, 4))]
    form = [sections[i] for i in rng.integers(0, len(sections), rng.integers(2, 4))]
    melody: list[Note] = []
    chords: list[Chord] = []
    start = 0
    for notes, harmony in form:
        melody += [(start + onset, duration, pitch) for onset, duration, pitch in notes]
        chords += [(start + onset, duration, pitches) for onset, duration, pitches in harmony]
        start += sum(duration for _, duration, _ in harmony)
    if not melody:  # every bar a rest
        return compose(rng)
    return Tune("composed", numerator, denominator, (tuple(melody),), tuple(chords))


def _section(
    frame: Tune, tonic: int, scale: tuple[int, ...], busyness: float, rng: Rng
) -> tuple[list[Note], list[Chord]]:
    """Return the melody and the chords of one section."""
    chords = _progression(frame, tonic, scale, rng)
    n_bars = sum(duration for _, duration, _ in chords) // frame.bar_ticks
    motifs = [_rhythm(frame, busyness, rng) for _ in range(2)]
    plan = rng.choice(len(motifs) + 1, size=n_bars, p=(0.5, 0.35, 0.15))
    n_steps = len(scale)
    place = int(rng.integers(4, 7)) * n_steps + int(
        rng.integers(n_steps)
    )  # steps of the scale above MIDI pitch `tonic`
    notes: list[Note] = []
    contours: dict[int, list[int]] = {}
    for bar, which in enumerate(plan.tolist()):
        rhythm = motifs[which] if which < len(motifs) else _rhythm(frame, busyness, rng)
        if which not in contours or rng.random() < 0.4:
            contours[which] = rng.choice(STEPS, size=len(rhythm), p=STEP_WEIGHTS).tolist()
        for (onset, duration), step in zip(rhythm, contours[which], strict=False):
            place = int(np.clip(place + step, 3.5 * n_steps, 7 * n_steps))
            tick = bar * frame.bar_ticks + onset
            pitch = tonic + 12 * (place // n_steps) + scale[place % n_steps]
            if onset % frame.beat_ticks == 0 and rng.random() < 0.6:
                pitch = _nearest(pitch, _chord_at(chords, tick))
            elif rng.random() < 0.03:
                pitch += int(rng.choice((-1, 1)))
            notes.append((tick, duration, int(np.clip(pitch, 36, 100))))
    return _ornamented(notes, rng), chords


def _progression(frame: Tune, tonic: int, scale: tuple[int, ...], rng: Rng) -> list[Chord]:
    """Return the chords of 4 or 8 bars; of one, half a, or two bars each."""
    degrees = PROGRESSIONS[rng.integers(len(PROGRESSIONS))]
    if rng.random() < 0.3:
        degrees = (0, *rng.integers(0, 7, 3).tolist())
    step = frame.bar_ticks
    if rng.random() < 0.25 and frame.numerator % 2 == 0:
        step //= 2
    elif rng.random() < 0.15:
        step *= 2
    seven = MODES["major"] if len(scale) < 7 else scale
    extension = rng.random() < 0.25
    chords = []
    n_chords = max(4 * frame.bar_ticks // step, len(degrees) * (2 if step < frame.bar_ticks else 1))
    for i in range(n_chords):
        degree = degrees[i % len(degrees)]
        size = 4 if extension and rng.random() < 0.7 else 3
        pitches = tuple((tonic + seven[(degree + 2 * third) % 7]) % 12 for third in range(size))
        chords.append((i * step, step, pitches))
    return chords


def _rhythm(frame: Tune, busyness: float, rng: Rng) -> list[tuple[int, int]]:
    """Return onsets and durations within one bar."""
    compound = frame.denominator == 8
    cells = COMPOUND if compound else SIMPLE
    weights = np.array([3.0] + [0.3 + 2 * busyness / len(cell) for cell in cells[1:]])
    weights[0] *= 1.2 - busyness
    if rng.random() < 0.8:
        weights[[i for i, cell in enumerate(cells) if not compound and len(cell) == 3 and cell[0] < 0.4]] *= 0.2
    n_beats = frame.bar_ticks // frame.beat_ticks
    sounds: list[tuple[int, int]] = []
    beat = 0
    while beat < n_beats:
        start = beat * frame.beat_ticks
        if beat + 1 < n_beats and rng.random() < 0.3 * (1.2 - busyness):
            n_held = int(rng.integers(2, n_beats - beat + 1))
            if rng.random() < 0.85:
                sounds.append((start, n_held * frame.beat_ticks))
            beat += n_held
            continue
        position = float(start)
        for share in cells[rng.choice(len(cells), p=weights / weights.sum())]:
            length = abs(share) * frame.beat_ticks
            if share > 0:
                sounds.append((round(position), round(position + length) - round(position)))
            position += length
        beat += 1
    return _syncopated(sounds, rng)


def _syncopated(sounds: list[tuple[int, int]], rng: Rng) -> list[tuple[int, int]]:
    """Tie a few notes to the next, and make rests of a few."""
    kept: list[tuple[int, int]] = []
    for onset, duration in sounds:
        draw = rng.random()
        if kept and draw < 0.08 and kept[-1][0] + kept[-1][1] == onset:
            kept[-1] = (kept[-1][0], kept[-1][1] + duration)
        elif draw < 0.93:
            kept.append((onset, duration))
    return kept


def _ornamented(notes: list[Note], rng: Rng) -> list[Note]:
    """Add turns, trills and grace notes to a few of the longer notes; in two tunes of three to none."""
    if rng.random() < 0.67:
        return notes
    ornamented: list[Note] = []
    for onset, duration, pitch in notes:
        if duration >= TICKS and rng.random() < 0.2:
            short = TICKS // int(rng.choice((4, 6, 8)))
            above = pitch + int(rng.choice((1, 2)))
            n = int(rng.choice((1, 3)))
            ornamented += [(onset + i * short, short, (above, pitch)[i % 2]) for i in range(n)]
            ornamented.append((onset + n * short, duration - n * short, (above, pitch)[n % 2]))
        else:
            ornamented.append((onset, duration, pitch))
    return ornamented


def _chord_at(chords: list[Chord], tick: int) -> tuple[int, ...]:
    return next(pitches for onset, duration, pitches in chords if onset <= tick < onset + duration)


def _nearest(pitch: int, classes: tuple[int, ...]) -> int:
    return min(range(pitch - 6, pitch + 7), key=lambda other: (other % 12 not in classes, abs(other - pitch)))


def harmonise(tune: Tune) -> Tune:
    """Return a tune with chords: for each bar, or half a bar of 4/4, the triad of the key that fits it best."""
    n_bars = -(-tune.end_tick // tune.bar_ticks)
    step = tune.bar_ticks // 2 if (tune.numerator, tune.denominator) == (4, 4) else tune.bar_ticks
    weights = np.zeros((n_bars * tune.bar_ticks // step, 12))
    for onset, duration, pitch in tune.voices[0]:
        weights[onset // step, pitch % 12] += duration * (1.5 if onset % tune.beat_ticks == 0 else 1.0)
    tonic, minor = _key(weights.sum(axis=0), tune.voices[0][-1][2] % 12)
    triads = _triads(tonic, minor=minor)
    chords: list[Chord] = []
    for i, weight in enumerate(weights):
        held = [weight[list(triad)].sum() * (1.1 if triad[0] == tonic else 1.0) for triad in triads]
        chosen = triads[int(np.argmax(held))]
        if not weight.any() and chords:
            chosen = chords[-1][2]
        chords.append((i * step, step, chosen))
    return Tune(tune.name, tune.numerator, tune.denominator, tune.voices, tuple(chords))


def _key(histogram: np.ndarray, last: int) -> tuple[int, bool]:
    """Return the tonic and whether the key is minor: the scale that holds most, with weight on the last note."""
    histogram = histogram / histogram.sum()
    histogram[last] += 0.3
    scored = [
        (sum(histogram[(tonic + degree) % 12] for degree in MODES[mode]) + histogram[tonic], -tonic, mode == "minor")
        for tonic in range(12)
        for mode in ("major", "minor")
    ]
    _, negative_tonic, minor = max(scored)
    return -negative_tonic, minor


def _triads(tonic: int, *, minor: bool) -> list[tuple[int, ...]]:
    scale = MODES["minor" if minor else "major"]
    degrees = (0, 2, 3, 4, 5, 6) if minor else (0, 1, 3, 4, 5)
    return [tuple((tonic + scale[(degree + 2 * third) % 7]) % 12 for third in range(3)) for degree in degrees]
