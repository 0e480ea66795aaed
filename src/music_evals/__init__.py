"""How music models are judged: metrics, benchmarks and protocols for music generation.

Everything below is loaded when it is first asked for (PEP 562); importing the package loads none of it.

Judging
    `evaluate_inpainting` (all metrics of filled middles, with intervals), `evaluate_nll`, `run_benchmark` with its
    `Settings` (models and baselines on a dataset, from end to end).
Judging edits
    `evaluate_preservation` (eleven metrics of what an edit of a recording or score preserved, with intervals);
    `load_features` and `compare`, its two steps; recordings by `load_audio` and `extract`, kept in a `FeatureStore`.
    Harmony: `circle_of_fifths_distance`, `major_minor_score`, `chroma_dtw_similarity`. Rhythm: `delta_bpm`,
    `beat_f_measure`, `information_gain`. Structure: `segment_ari`, `boundary_f_measure`. Melody: `voicing_recall`,
    `motif_jaccard`, `motif_recall`. `render` makes the audio of an edit of the data set `known_edits`.
Metrics of items
    `position_score`, `pitch_accuracy`, `rhythm_accuracy`, `note_f1`, `inpainting_nll`.
Metrics of sets
    `silence_divergence`, `pitch_class_divergence`, `groove_divergence`.
Statistics
    `bootstrap_mean`, `bootstrap_divergence`, `null_divergence`, `paired_mean_test`, `swap_test_divergence`, `holm`.
Symbolic music
    `Score`, `read_score`, `save_midi`, `tokens_from_score`, `cut_context`, `midi_frame`, `apply_filters`.
Systems
    `load_model`, `make_baseline`, `train_from_file`; what they must offer: `Inpainter`, `LikelihoodInpainter`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from music_evals.annotations import MUSIB_LAYOUT, ContextLayout, Score
    from music_evals.audio.extraction import extract
    from music_evals.audio.io import load_audio
    from music_evals.audio.store import FeatureStore
    from music_evals.benchmark.inpainting.systems import load_model
    from music_evals.benchmark.inpainting.task import Settings, run_benchmark
    from music_evals.datasets.known_edits.build import render
    from music_evals.metrics.divergence import groove_divergence, pitch_class_divergence, silence_divergence
    from music_evals.metrics.harmony import chroma_dtw_similarity, circle_of_fifths_distance, major_minor_score
    from music_evals.metrics.inpainting import note_f1, pitch_accuracy, position_score, rhythm_accuracy
    from music_evals.metrics.likelihood import inpainting_nll
    from music_evals.metrics.melody import motif_jaccard, motif_recall, voicing_recall
    from music_evals.metrics.rhythm import beat_f_measure, delta_bpm, information_gain
    from music_evals.metrics.structure import boundary_f_measure, segment_ari
    from music_evals.models.baselines import make_baseline
    from music_evals.models.training import train_from_file
    from music_evals.pipelines.inpainting import evaluate_inpainting, evaluate_nll
    from music_evals.pipelines.preservation import compare, evaluate_preservation, load_features
    from music_evals.protocols import Inpainter, LikelihoodInpainter
    from music_evals.stats.multiplicity import holm
    from music_evals.stats.paired import paired_mean_test, swap_test_divergence
    from music_evals.stats.resampling import bootstrap_divergence, bootstrap_mean, null_divergence
    from music_evals.symbolic.contexts import cut_context, tokens_from_score
    from music_evals.symbolic.files import read_score
    from music_evals.symbolic.filters import apply_filters
    from music_evals.symbolic.frame import midi_frame
    from music_evals.symbolic.midi import save_midi

__version__ = "0.1.0"

__all__ = [
    "MUSIB_LAYOUT",
    "ContextLayout",
    "FeatureStore",
    "Inpainter",
    "LikelihoodInpainter",
    "Score",
    "Settings",
    "__version__",
    "apply_filters",
    "beat_f_measure",
    "bootstrap_divergence",
    "bootstrap_mean",
    "boundary_f_measure",
    "chroma_dtw_similarity",
    "circle_of_fifths_distance",
    "compare",
    "cut_context",
    "delta_bpm",
    "evaluate_inpainting",
    "evaluate_nll",
    "evaluate_preservation",
    "extract",
    "groove_divergence",
    "holm",
    "information_gain",
    "inpainting_nll",
    "load_audio",
    "load_features",
    "load_model",
    "major_minor_score",
    "make_baseline",
    "midi_frame",
    "motif_jaccard",
    "motif_recall",
    "note_f1",
    "null_divergence",
    "paired_mean_test",
    "pitch_accuracy",
    "pitch_class_divergence",
    "position_score",
    "read_score",
    "render",
    "rhythm_accuracy",
    "run_benchmark",
    "save_midi",
    "segment_ari",
    "silence_divergence",
    "swap_test_divergence",
    "tokens_from_score",
    "train_from_file",
    "voicing_recall",
]

_HOMES = {
    "annotations": ("MUSIB_LAYOUT", "ContextLayout", "Score"),
    "audio.extraction": ("extract",),
    "audio.io": ("load_audio",),
    "audio.store": ("FeatureStore",),
    "benchmark.inpainting.task": ("Settings", "run_benchmark"),
    "benchmark.inpainting.systems": ("load_model",),
    "datasets.known_edits.build": ("render",),
    "metrics.divergence": ("groove_divergence", "pitch_class_divergence", "silence_divergence"),
    "metrics.harmony": ("chroma_dtw_similarity", "circle_of_fifths_distance", "major_minor_score"),
    "metrics.inpainting": ("note_f1", "pitch_accuracy", "position_score", "rhythm_accuracy"),
    "metrics.likelihood": ("inpainting_nll",),
    "metrics.melody": ("motif_jaccard", "motif_recall", "voicing_recall"),
    "metrics.rhythm": ("beat_f_measure", "delta_bpm", "information_gain"),
    "metrics.structure": ("boundary_f_measure", "segment_ari"),
    "models.baselines": ("make_baseline",),
    "models.training": ("train_from_file",),
    "pipelines.inpainting": ("evaluate_inpainting", "evaluate_nll"),
    "pipelines.preservation": ("compare", "evaluate_preservation", "load_features"),
    "protocols": ("Inpainter", "LikelihoodInpainter"),
    "stats.multiplicity": ("holm",),
    "stats.paired": ("paired_mean_test", "swap_test_divergence"),
    "stats.resampling": ("bootstrap_divergence", "bootstrap_mean", "null_divergence"),
    "symbolic.contexts": ("cut_context", "tokens_from_score"),
    "symbolic.files": ("read_score",),
    "symbolic.filters": ("apply_filters",),
    "symbolic.frame": ("midi_frame",),
    "symbolic.midi": ("save_midi",),
}
_MODULE_OF = {name: module for module, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    from music_evals.errors import importing

    with importing("models", name):  # only names of that room import a package of an extra
        value = getattr(importlib.import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
    globals()[name] = value  # the next look-up finds it at once
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
