"""Sixty samples of AudioLDM 2 and an edit of each, as MuseCPBench evaluates MusicMagus on: a recipe.

The paper says "60 samples" and "templates", and prints neither. This is a grid of our own: 30 changes of timbre and 30
of style, with the settings of the authors' notebook. Whoever has the weights makes the recordings
(`editing.samples.make_samples`); `attach` finds them. The config ``stand_in`` needs no weights: pieces of
`known_edits`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from music_evals.datasets import edit_sources
from music_evals.datasets.edit_sources import STAND_IN_PIECES, Attached

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


def features() -> Any:
    """Return the `datasets.Features` of the rows."""
    from datasets import Features, Value

    return Features({name: Value(kind) for name, kind in _COLUMNS.items()})


def build_config(config: str) -> list[Row]:
    """Return the rows of a config."""
    if config == "stand_in":
        return [_row(config, number, made=None, **change) for number, change in enumerate(_stand_in())]
    made = {
        "seed": SEED, "steps": STEPS, "guidance": GUIDANCE, "seconds": SECONDS, "negative_prompt": NEGATIVE_PROMPT
    }  # fmt: skip
    changes = (*_changes("timbre", INSTRUMENTS, MOODS), *_changes("style", GENRES, WAYS))
    return [_row(config, number, made=made, **change) for number, change in enumerate(changes)]


def _changes(task: str, things: Sequence[str], ways: Sequence[str]) -> Iterator[dict[str, str]]:
    """Yield a change of each thing into the others, a way of playing each."""
    for before, (place, way) in itertools.product(things, enumerate(ways, start=1)):
        after = things[(things.index(before) + place) % len(things)]
        timbre, style = f"Replace the {before} with {_a(after)}.", f"Change the style from {before} to {after}."
        text = timbre if task == "timbre" else style
        prompt = f"A {way} piece of {{}} music."
        yield {"task": task, "prompt": prompt, "before": before, "after": after, "text": text}


def _stand_in() -> Iterator[dict[str, str]]:
    """Yield five changes of style a piece, by the words of `known_edits`."""
    for piece, after in itertools.product(STAND_IN_PIECES, STAND_IN_GENRES):
        before = piece.removeprefix("song_")
        text = f"Change the style from {before} to {after}."
        yield {
            "task": "style", "prompt": "A piece of {} music.", "before": before, "after": after, "text": text,
            "excerpt": piece,
        }  # fmt: skip


def _row(
    config: str, number: int, *, made: dict[str, Any] | None, task: str, prompt: str, text: str, **words: str
) -> Row:
    name = f"{config}_{number:04d}"
    excerpt = words.get("excerpt", name)
    return {
        "id": name,
        "excerpt": excerpt,
        "audio_file": f"{excerpt}.wav",
        "audio_sha256": None,
        "task": task,
        "instruction": text,
        "source_prompt": prompt.format(words["before"]),
        "target_prompt": prompt.format(words["after"]),
        "before": words["before"],
        "after": words["after"],
        "intended": "" if task == "timbre" else "rhythm",
        **(made or dict.fromkeys(("seed", "steps", "guidance", "seconds", "negative_prompt"))),
        "origin": "music_evals" if made is None else "AudioLDM 2",
    }


def _a(word: str) -> str:
    return f"{'an' if word[0] in 'aeio' else 'a'} {word}"


def attach(rows: Iterable[Row], root: str | Path) -> Attached:
    """Find the recording of each row in a folder, as WAV or FLAC.

    Raises
    ------
    NoDataError
        The folder does not exist, or holds none of the recordings.

    """
    return edit_sources.attach(
        rows,
        root,
        places=lambda name: (name, str(Path(name).with_suffix(".flac"))),
        dataset="the samples",
        where="build.py of the data set makes them with the weights, edit_sources.render_pieces those of stand_in",
    )
