"""Base classes of the evaluate modules: what goes in, how it is carried, what comes out.

A module under ``metrics/<name>/`` declares its text, reads its inputs with one of the functions below and calls the
library once. What the base classes add to `evaluate.Metric`:

- Items are checked and encoded when they are added, by their type and never by `str()`: scores as tokens (`symbolic`),
  recordings as paths (`audio`), rolls as arrays (`cells`), likelihoods as numbers (`likelihood`), texts,
  tags and rows of studies as JSON (`text`, `studies`). evaluate would write an array as text and cut it with its own
  ellipsis.
- A failed `add` or `add_batch` changes nothing. A failed `compute` drops what was added, gives back the cache file and
  its lock, and the instance can be used again.
- `add` and `add_batch` keep the order of the items, so that `groups` and `per_item` line up with them.

The bases are abstract: evaluate takes the first concrete class that it finds in a module.
"""

from __future__ import annotations

from music_evals.hf.audio import AudioMetric, read_sources
from music_evals.hf.cells import CellPairs, CellsMetric, read_rolls
from music_evals.hf.likelihood import LikelihoodMetric, read_log_probabilities
from music_evals.hf.studies import StudyMetric, join_study
from music_evals.hf.symbolic import SymbolicMetric, SymbolicPairs, read_pairs
from music_evals.hf.targets import CaptionsMetric, NearnessMetric, TargetsMetric, read_captions, read_requests
from music_evals.hf.text import LyricsMetric, TagsMetric, TextsMetric, ThemesMetric, WordsMetric, read_lyrics, read_tags

__all__ = [
    "AudioMetric", "CaptionsMetric", "CellPairs", "CellsMetric", "LikelihoodMetric", "LyricsMetric", "NearnessMetric",
    "StudyMetric", "SymbolicMetric", "SymbolicPairs", "TagsMetric", "TargetsMetric", "TextsMetric", "ThemesMetric",
    "WordsMetric", "join_study", "read_captions", "read_log_probabilities", "read_lyrics", "read_pairs",
    "read_requests", "read_rolls", "read_sources", "read_tags",
]  # fmt: skip
