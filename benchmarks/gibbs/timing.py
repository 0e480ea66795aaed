"""The piece that sampling is timed on, one run with its counts, and the two samplers side by side."""

from __future__ import annotations

import dataclasses
import math
import os
import statistics
import time
from collections.abc import Callable, Mapping
from importlib.metadata import version
from typing import Any

import numpy as np
import torch
from benchmarks.machines import processor

from music_evals.annotations import Arrangement, Score, TimeSignature
from music_evals.models.gibbs import GibbsSettings, gibbs_sweeps
from music_evals.models.layers.gibbs import RollNetwork
from music_evals.numerics import n_threads
from music_evals.symbolic.encodings.piano_rolls import STEPS_PER_QUARTER, arrange
from music_evals.symbolic.notes import make_notes

__all__ = ["first_steps", "ode_to_joy", "receipt", "side_by_side", "timed_run"]

# Beethoven, 1824: quarters from E4, a letter each; the rhythm of the last bar of a phrase is dotted
_PHRASES = ("EEFGGFEDCCDEEDD", "EEFGGFEDCCDEDCC", "DDECDEFECDEFEDCDG", "EEFGGFEDCCDEDCC")
_PLAIN = (*[1.0] * 12, 1.5, 0.5, 2.0)
_MIDDLE = (1.0, 1.0, 1.0, 1.0, 1.0, 0.5, 0.5, 1.0, 1.0, 1.0, 0.5, 0.5, 1.0, 1.0, 1.0, 1.0, 2.0)
_PITCHES = {"C": 60, "D": 62, "E": 64, "F": 65, "G": 67}
_CHORDS = "CGCG CGCC GGGG CGCC".replace(" ", "")  # one a bar
_TRIADS = {"C": (48, 52, 55), "G": (43, 47, 50)}


def ode_to_joy() -> Arrangement:
    """Return the 16 bars of the "Ode to Joy" over a triad in root position on every beat."""
    melody, chords, at = [], [], 0.0
    for phrase in _PHRASES:
        for letter, quarters in zip(phrase, _MIDDLE if len(phrase) == len(_MIDDLE) else _PLAIN, strict=True):
            melody.append((at, quarters, _PITCHES[letter], 0))
            at += quarters
    for beat in range(64):
        chords += [(float(beat), 1.0, pitch, 1) for pitch in _TRIADS[_CHORDS[beat // 4]]]
    onset, length, pitch, voice = (np.array(column) for column in zip(*melody, *chords, strict=True))
    onset, length = ((column * STEPS_PER_QUARTER).astype(np.int64) for column in (onset, length))
    notes = make_notes(onset, length, pitch, voice=voice)
    score = Score(notes, STEPS_PER_QUARTER, (TimeSignature(0, 4, 4),), voices=("melody", "accompaniment"))
    return arrange(score, "melody")


def first_steps(arrangement: Arrangement, n: int) -> Arrangement:
    """Return the beginning of an arrangement."""
    cut = {
        part: dataclasses.replace(
            roll,
            **{field: getattr(roll, field)[:n] for field in ("cells", "onsets", "offsets", "beat_phase", "bar_phase")},
        )
        for part, roll in (("melody", arrangement.melody), ("accompaniment", arrangement.accompaniment))
    }
    return Arrangement(**cut)


def timed_run(
    network: RollNetwork,
    arrangement: Arrangement,
    settings: GibbsSettings,
    *,
    seed: int = 0,
    progress: Callable[[str], None] = lambda _line: None,
) -> dict[str, Any]:
    """Return seconds and counts of a run; sweeps from snapshots and sweeps that see all before are timed apart."""
    blocks, ahead, sequential, last = 0.0, 0.0, [], None
    began = time.perf_counter()
    for sweep in gibbs_sweeps(network, arrangement, settings, seed):
        seconds = time.perf_counter() - began
        if math.isnan(sweep.accepted):
            blocks += seconds
        else:
            ahead += seconds
            sequential.append(sweep)
        last = sweep
        progress(f"sweep {sweep.index}: {seconds:.1f} s, {sweep.n_changed} cells changed, kept {sweep.accepted:.2f}")
        began = time.perf_counter()
    if last is None:
        raise AssertionError  # a run has at least one sweep
    return {
        "steps": len(arrangement),
        "sweeps": settings.sweeps,
        "mode": settings.mode,
        "seconds": blocks + ahead,
        "snapshot_seconds": blocks,
        "sequential_seconds": ahead,
        # each sweep keeps equally many steps
        "kept": statistics.harmonic_mean(sweep.accepted for sweep in sequential) if sequential else None,
        "passes": statistics.mean(sweep.passes for sweep in sequential) if sequential else None,
        "changed": last.n_changed,
        "density": last.density,
    }


def side_by_side(network: RollNetwork, arrangement: Arrangement, settings: GibbsSettings, pairs: int) -> dict[str, Any]:
    """Return the seconds of both samplers, run by turns, and the median of their ratios; their rolls must be equal."""
    ratios, seconds = [], {"exact": 0.0, "naive": 0.0}
    for pair in range(pairs):
        took, rolls = {}, []
        for sampler in ("exact", "naive") if pair % 2 == 0 else ("naive", "exact"):
            began = time.perf_counter()
            chosen = dataclasses.replace(settings, sampler=sampler)
            rolls.append([sweep.cells for sweep in gibbs_sweeps(network, arrangement, chosen, pair)])
            took[sampler] = time.perf_counter() - began
            seconds[sampler] += took[sampler] / pairs
        if not all(np.array_equal(one, other) for one, other in zip(*rolls, strict=True)):
            message = "the two samplers gave different rolls"
            raise ValueError(message)
        ratios.append(took["naive"] / took["exact"])
    return {
        "steps": len(arrangement),
        "sweeps": settings.sweeps,
        "mode": settings.mode,
        "seconds": seconds["exact"],
        "naive_seconds": seconds["naive"],
        "ratio": statistics.median(ratios),
    }


def receipt(device: str) -> Mapping[str, str]:
    """Return what the seconds are of."""
    on_gpu = device.startswith("cuda")
    return {
        "device": torch.cuda.get_device_name(device) if on_gpu else processor(),
        "threads": str(n_threads()),
        "load_average": f"{os.getloadavg()[0]:.1f}",
        "torch": version("torch"),
    }
