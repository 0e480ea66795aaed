"""Backends of essentia (AGPL-3.0): key, beats and melody as the official code takes them.

essentia is never a dependency; whoever runs these backends by name accepts its licence.
"""

from __future__ import annotations

from types import ModuleType

import numpy as np

from music_evals.annotations import Beats, F0Track, Key
from music_evals.audio.beats import fit_tempo
from music_evals.audio.io import Audio

__all__ = ["estimate_key", "track_beats", "track_melodia"]

MELODIA_HOP = 128  # samples at 44.1 kHz, the default of PredominantPitchMelodia

# essentia spells with sharps and flats
_PITCH_CLASSES = {name: 2 * step - (step > 2) for step, name in enumerate("CDEFGAB")}


def _standard() -> ModuleType:
    import essentia
    import essentia.standard

    essentia.log.infoActive = False
    standard: ModuleType = essentia.standard
    return standard


def estimate_key(audio: Audio) -> Key:
    """Return the key by KeyExtractor with its default profile, `bgate`.

    Parameters
    ----------
    audio
        At 44.1 kHz, not silent: KeyExtractor takes silence for A minor.

    """
    name, scale, _ = _standard().KeyExtractor()(audio.samples)
    tonic = (_PITCH_CLASSES[name[0]] + name.count("#") - name.count("b")) % 12
    return Key(tonic, scale)


def track_beats(audio: Audio) -> Beats:
    """Return the beats by RhythmExtractor2013, method `multifeature`, with the tempo fitted to them.

    Parameters
    ----------
    audio
        At 44.1 kHz.

    """
    extractor = _standard().RhythmExtractor2013(method="multifeature")
    times = np.asarray(extractor(audio.samples)[1], dtype=np.float64)
    return Beats(times, fit_tempo(times))


def track_melodia(audio: Audio) -> F0Track:
    """Return the melody by PredominantPitchMelodia after an equal-loudness filter.

    Parameters
    ----------
    audio
        At 44.1 kHz.

    """
    standard = _standard()
    filtered = standard.EqualLoudness()(audio.samples)
    frequencies, _ = standard.PredominantPitchMelodia()(filtered)
    times = np.arange(len(frequencies), dtype=np.float64) * (MELODIA_HOP / audio.sample_rate)
    return F0Track(times, np.asarray(frequencies, dtype=np.float64))
