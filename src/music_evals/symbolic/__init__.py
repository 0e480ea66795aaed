"""Music on the page: notes, grids, measures, encodings and files.

`notes` and `measures` are the ground: structured arrays, quantisation, bars. `files` reads and writes MIDI, MusicXML
and ABC, and batches that may hold broken files. `noteseq`, `factorized` and `remi` are encodings, each an
encode/decode pair; `contexts` goes from a score to the tokens of a context; `time_grid` quantises performed MIDI.
`frame` lists what a folder of MIDI files holds, and `filters` cleans it.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from music_evals.symbolic.contexts import (
        context_starts,
        cut_context,
        tokens_from_score,
        window_starts,
    )
    from music_evals.symbolic.files import read_many, read_score
    from music_evals.symbolic.filters import FILTERS, apply_filters, make_filter
    from music_evals.symbolic.frame import frame_to_csv, midi_frame
    from music_evals.symbolic.limits import Limits
    from music_evals.symbolic.measures import MeterMap, meter_map, slice_measures
    from music_evals.symbolic.midi import from_pretty_midi, read_midi, save_midi, to_pretty_midi, write_midi
    from music_evals.symbolic.notation import from_music21, read_abc, read_musicxml
    from music_evals.symbolic.notes import check_monophonic, make_notes, quantize
    from music_evals.symbolic.time_grid import quantize_performance

_HOME = {
    "FILTERS": "filters",
    "Limits": "limits",
    "MeterMap": "measures",
    "apply_filters": "filters",
    "check_monophonic": "notes",
    "context_starts": "contexts",
    "cut_context": "contexts",
    "frame_to_csv": "frame",
    "from_music21": "notation",
    "from_pretty_midi": "midi",
    "make_filter": "filters",
    "make_notes": "notes",
    "meter_map": "measures",
    "midi_frame": "frame",
    "quantize": "notes",
    "quantize_performance": "time_grid",
    "read_abc": "notation",
    "read_many": "files",
    "read_midi": "midi",
    "read_musicxml": "notation",
    "read_score": "files",
    "save_midi": "midi",
    "slice_measures": "measures",
    "to_pretty_midi": "midi",
    "tokens_from_score": "contexts",
    "window_starts": "contexts",
    "write_midi": "midi",
}

__all__ = [
    "FILTERS",
    "Limits",
    "MeterMap",
    "apply_filters",
    "check_monophonic",
    "context_starts",
    "cut_context",
    "frame_to_csv",
    "from_music21",
    "from_pretty_midi",
    "make_filter",
    "make_notes",
    "meter_map",
    "midi_frame",
    "quantize",
    "quantize_performance",
    "read_abc",
    "read_many",
    "read_midi",
    "read_musicxml",
    "read_score",
    "save_midi",
    "slice_measures",
    "to_pretty_midi",
    "tokens_from_score",
    "window_starts",
    "write_midi",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
    msg = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(msg)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
