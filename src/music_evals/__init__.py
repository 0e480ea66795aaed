"""How music models are judged: metrics, benchmarks and protocols for music generation.

Everything below is loaded when it is first asked for (PEP 562); importing the package loads none of it.

In memory
    `evaluate_preservation` (what edits of recordings or scores preserved of their originals), `evaluate_inpainting`
    (filled middles of melodies), `evaluate_lyrics` (lyrics against the structure that was asked for) and
    `evaluate_descriptions` (tags of songs against those of people): all scores of a task in one pass, with intervals.
From end to end
    `run`: a task into a folder, with records, results and a report, resumed where it was killed; the same options as
    the verbs of ``music-evals``. `push_results`: its scores onto the page of a model on the Hub.
Names
    `repo_path`: the folder of a metric, dataset or model of ours, from any current folder: ``repo_path("note_f1")``.
Values
    `Score`, `Tempo`, `TimeSignature`, `KeySignature`; `Features` of recordings and scores: `Beats`, `Chords`, `Chroma`,
    `F0Track`, `Key`, `Melody`, `Segments`; `ContextLayout`, the places of past, middle and future in a context;
    `LyricSection`, `Pattern`.

Single metrics are in `music_evals.metrics`, one module a concept; readers and writers in `music_evals.symbolic`,
`music_evals.audio` and `music_evals.lyrics`; intervals and tests in `music_evals.stats`; what models must offer in
`music_evals.protocols`.
"""

from __future__ import annotations

import importlib

TYPE_CHECKING = False  # as of `typing`, whose import takes longer than all of this
if TYPE_CHECKING:
    from typing import Any

    from music_evals.annotations import (
        Beats,
        Chords,
        Chroma,
        ContextLayout,
        F0Track,
        Features,
        Key,
        KeySignature,
        LyricSection,
        Melody,
        Pattern,
        Score,
        Segments,
        Tempo,
        TimeSignature,
    )
    from music_evals.benchmark.run import run
    from music_evals.hub.pushing import push_results
    from music_evals.pipelines.descriptions import evaluate_descriptions
    from music_evals.pipelines.inpainting import evaluate_inpainting
    from music_evals.pipelines.lyrics import evaluate_lyrics
    from music_evals.pipelines.preservation import evaluate_preservation
    from music_evals.repositories import repo_path

__version__ = "0.3.0"

__all__ = [
    "Beats",
    "Chords",
    "Chroma",
    "ContextLayout",
    "F0Track",
    "Features",
    "Key",
    "KeySignature",
    "LyricSection",
    "Melody",
    "Pattern",
    "Score",
    "Segments",
    "Tempo",
    "TimeSignature",
    "__version__",
    "evaluate_descriptions",
    "evaluate_inpainting",
    "evaluate_lyrics",
    "evaluate_preservation",
    "push_results",
    "repo_path",
    "run",
]

_MODULE_OF = {
    "evaluate_descriptions": "pipelines.descriptions",
    "evaluate_inpainting": "pipelines.inpainting",
    "evaluate_lyrics": "pipelines.lyrics",
    "evaluate_preservation": "pipelines.preservation",
    "push_results": "hub.pushing",
    "repo_path": "repositories",
    "run": "benchmark.run",
}
"""Name -> its module; every other public name is a value of `annotations`."""

_RENAMED = {"window": "repo_path"}
"""Old name -> new one; the old ones warn."""


def __getattr__(name: str) -> Any:
    if name in _RENAMED:
        importlib.import_module(f"{__name__}.deprecation").warn_renamed(f"{__name__}.{name}", _RENAMED[name])
        return __getattr__(_RENAMED[name])
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_MODULE_OF.get(name, 'annotations')}"), name)
    globals()[name] = value  # the next look-up finds it at once
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
