"""Sixty samples of AudioLDM 2 and an edit of each, as MuseCPBench evaluates MusicMagus on: a recipe.

The paper says "60 samples" and "templates", and prints neither. This is a grid of our own: 30 changes of timbre and 30
of style, with the settings of the authors' notebook. Whoever has the weights makes the recordings
(`editing.audioldm2.make_samples`); `attach` finds them. The config ``stand_in`` needs no weights: pieces of
`known_edits`.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from music_evals.datasets import edit_sources
from music_evals.datasets.edit_sources import STAND_IN_PIECES, Attached
from music_evals.datasets.manifest import flat_features

__all__ = ["CONFIGS", "MODEL", "attach", "build_config", "features"]

CONFIGS: Final = ("recipe", "stand_in")
"""Names of the configs; `stand_in` is our own music."""

MODEL: Final = "cvssp/audioldm2"
"""Of the samples, on the Hub; licence CC-BY-NC-SA-4.0."""

INSTRUMENTS: Final = ("piano", "guitar", "violin", "flute", "organ", "trumpet")
MOODS: Final = ("calm", "happy", "sad", "dark", "energetic")
GENRES: Final = ("rock", "jazz", "classical", "electronic", "blues", "country")
WAYS: Final = ("slow", "fast", "quiet", "loud", "simple")
STAND_IN_GENRES: Final = ("jazz", "electronic", "classical", "country", "metal")

# The authors' notebook, but for its 10 s: 10.24 s need no padding of the latents, and an editor finds the noise.
SEED, STEPS, GUIDANCE, SECONDS, NEGATIVE_PROMPT = 42, 100, 3.5, 10.24, "low quality"

Row = dict[str, Any]

_COLUMNS = {
    "id": "string",
    "excerpt": "string",
    "audio_file": "string",
    "audio_sha256": "string",  # null: samples differ from one machine to the next
    "task": "string",
    "instruction": "string",
    "source_prompt": "string",
    "target_prompt": "string",
    "before": "string",
    "after": "string",
    "intended": "string",  # facets that are meant to change, with commas
    "seed": "int64",  # the rest is null where nothing is to be made
    "steps": "int64",
    "guidance": "float64",
    "seconds": "float64",
    "negative_prompt": "string",
    "origin": "string",
}


features = functools.partial(flat_features, _COLUMNS)
"""Return the `datasets.Features` of the rows."""


def build_config(config: str) -> list[Row]:
    """Return the rows of a config."""
    if config == "stand_in":
        # five changes of style a piece, by the words of `known_edits`
        return [
            _row(config, number, "style", "A piece of {} music.", (piece.removeprefix("song_"), after), excerpt=piece)
            for number, (piece, after) in enumerate(itertools.product(STAND_IN_PIECES, STAND_IN_GENRES))
        ]
    made = {
        "seed": SEED, "steps": STEPS, "guidance": GUIDANCE, "seconds": SECONDS, "negative_prompt": NEGATIVE_PROMPT
    }  # fmt: skip
    rows: list[Row] = []
    for task, things, ways in (("timbre", INSTRUMENTS, MOODS), ("style", GENRES, WAYS)):
        # a change of each thing into the others, a way of playing each
        for before, (place, way) in itertools.product(things, enumerate(ways, start=1)):
            after = things[(things.index(before) + place) % len(things)]
            rows.append(_row(config, len(rows), task, f"A {way} piece of {{}} music.", (before, after), made=made))
    return rows


def _row(
    config: str,
    number: int,
    task: str,
    prompt: str,
    words: tuple[str, str],
    *,
    excerpt: str = "",
    made: dict[str, Any] | None = None,
) -> Row:
    name = f"{config}_{number:04d}"
    excerpt, (before, after) = excerpt or name, words
    article = "an" if after[0] in "aeio" else "a"
    timbre, style = f"Replace the {before} with {article} {after}.", f"Change the style from {before} to {after}."
    return {
        "id": name,
        "excerpt": excerpt,
        "audio_file": f"{excerpt}.wav",
        "audio_sha256": None,
        "task": task,
        "instruction": timbre if task == "timbre" else style,
        "source_prompt": prompt.format(before),
        "target_prompt": prompt.format(after),
        "before": before,
        "after": after,
        "intended": "" if task == "timbre" else "rhythm",
        **(made or dict.fromkeys(("seed", "steps", "guidance", "seconds", "negative_prompt"))),
        "origin": "music_evals" if made is None else "AudioLDM 2",
    }


def attach(rows: Iterable[Row], root: str | Path) -> Attached:
    """Find the recording of each row in a folder, as WAV or FLAC; see `edit_sources.attach`."""
    return edit_sources.attach(
        rows,
        root,
        dataset="the samples",
        where="build.py of the data set makes them with the weights, edit_sources.render_pieces those of stand_in",
    )
