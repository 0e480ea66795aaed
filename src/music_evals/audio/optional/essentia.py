"""Backends of essentia (AGPL-3.0): key, beats and melody as the official code takes them, in a process of their own.

essentia is never a dependency; whoever runs these backends by name accepts its licence. All take 44.1 kHz.
"""

from __future__ import annotations

import numpy as np

from music_evals.annotations import Beats, F0Track, Key
from music_evals.audio.beats import fit_tempo
from music_evals.audio.io import Audio
from music_evals.audio.optional.process import run_worker

MELODIA_HOP = 128  # samples at 44.1 kHz, the default of PredominantPitchMelodia

# essentia spells with sharps and flats
_PITCH_CLASSES = {name: 2 * step - (step > 2) for step, name in enumerate("CDEFGAB")}


def estimate_key(audio: Audio) -> Key:
    """Return the key by KeyExtractor with its default profile, `bgate`; of silence it would be A minor."""
    name, scale = run_worker("essentia", "key", audio)
    tonic = (_PITCH_CLASSES[name[0]] + name.count("#") - name.count("b")) % 12
    return Key(tonic, scale)


def track_beats(audio: Audio) -> Beats:
    """Return the beats by RhythmExtractor2013, method `multifeature`, with the tempo fitted to them."""
    times = np.array(run_worker("essentia", "beats", audio), dtype=np.float64)
    return Beats(times, fit_tempo(times))


def track_melodia(audio: Audio) -> F0Track:
    """Return the melody by PredominantPitchMelodia after an equal-loudness filter."""
    frequencies = np.array(run_worker("essentia", "melodia", audio), dtype=np.float64)
    return F0Track(np.arange(len(frequencies), dtype=np.float64) * (MELODIA_HOP / audio.sample_rate), frequencies)
