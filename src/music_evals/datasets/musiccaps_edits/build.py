"""A hundred clips of MusicCaps and an edit of each, as MuseCPBench evaluates MusicGen and MusiConGen on.

The paper does not say which clips it took, and its sentences are not published. Here are a hundred chosen by a rule
(`choose`) and edits by our templates; both are frozen in the package's table. Of MusicCaps (Agostinelli et al., 2023,
CC BY-SA 4.0) the table has ids, times and one word of each aspect list. The audio is that of videos: it is never here,
`attach` finds it in the user's own folder. The config ``stand_in`` needs none: pieces of `known_edits`.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from music_evals.csv_files import csv_rows, csv_text
from music_evals.datasets import edit_sources
from music_evals.datasets.edit_sources import STAND_IN_PIECES, Attached
from music_evals.datasets.manifest import flat_features
from music_evals.errors import NoDataError, UnreadableFileError
from music_evals.files import decode_text, reading

__all__ = ["CONFIGS", "TASKS", "attach", "build_config", "choose", "features", "frozen_table", "read_captions"]

CONFIGS: Final = ("musiccaps", "stand_in")
"""Names of the configs; `stand_in` is our own."""

TASKS: Final[Mapping[str, int]] = {"genre": 34, "style": 33, "mood": 33}
"""Task -> how many clips; the paper names the tasks and not their shares."""

TABLE: Final = "edits.csv"

# What the pieces of `known_edits` are, and what else they could be.
STAND_IN_GENRES: Final = ("jazz", "electronic", "folk")

Row = dict[str, Any]

_COLUMNS = {
    "id": "string",
    "excerpt": "string",
    "start_s": "float64",  # null for pieces that are whole
    "end_s": "float64",
    "audio_file": "string",
    "audio_sha256": "string",  # null: nobody publishes one
    "task": "string",
    "instruction": "string",
    "source_prompt": "string",
    "target_prompt": "string",
    "before": "string",
    "after": "string",
    "intended": "string",  # facets that are meant to change, with commas
    "origin": "string",
}
_FROZEN = tuple(name for name in _COLUMNS if name not in {"id", "audio_file", "audio_sha256", "origin"})


features = functools.partial(flat_features, _COLUMNS)
"""Return the `datasets.Features` of the rows."""


def build_config(config: str) -> list[Row]:
    """Return the rows of a config."""
    made: list[Row] = []
    if config == "musiccaps":
        text = (files("music_evals.datasets.musiccaps_edits") / TABLE).read_text(encoding="utf-8")
        for row in csv_rows(text, TABLE):
            times = {name: float(row[name]) for name in ("start_s", "end_s")}
            made.append({**row, **times, "origin": "MusicCaps"})
    else:  # three changes of genre a piece, by the words of `known_edits`
        for piece, after in itertools.product(STAND_IN_PIECES, STAND_IN_GENRES):
            before = piece.removeprefix("song_")
            made.append(
                {
                    "excerpt": piece,
                    "start_s": None,
                    "end_s": None,
                    "task": "genre",
                    "instruction": f"Change the genre from {before} to {after}.",
                    "source_prompt": f"A {before} piece.",
                    "target_prompt": f"{'An' if after[0] in 'aeio' else 'A'} {after} piece.",
                    "before": before,
                    "after": after,
                    "intended": "harmony,rhythm",
                    "origin": "music_evals",
                }
            )
    return [
        {"id": f"{config}_{number:04d}", **row, "audio_file": f"{row['excerpt']}.wav", "audio_sha256": None}
        for number, row in enumerate(made)
    ]


def choose(rows: Iterable[Mapping[str, str]], words: Mapping[str, Mapping[str, str]]) -> list[tuple[str, Row]]:
    """Return the clips of the data set, each with its task, out of the rows of ``musiccaps-public.csv``.

    Clips of AudioSet's evaluation part, in the order of the SHA-256 of task and id; each task takes the first ones
    whose aspect list names a word of its kind (`words`: id -> task -> word) and that no task before took. Too few raise
    `NoDataError`.
    """
    known = {row["ytid"]: row for row in rows if row["is_audioset_eval"] == "True"}
    taken: dict[str, str] = {}
    for task, count in TASKS.items():
        fits = [name for name in known if task in words.get(name, {}) and name not in taken]
        fits.sort(key=lambda name: hashlib.sha256(f"{task} {name}".encode()).hexdigest())
        if len(fits) < count:
            raise NoDataError(f"{len(fits)} clips have a word of {task}, and {count} are needed; give the whole table")
        taken |= dict.fromkeys(fits[:count], task)
    return [(task, dict(known[name])) for name, task in taken.items()]


def frozen_table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return rows as the package's table holds them."""
    return csv_text(_FROZEN, rows)


def attach(rows: Iterable[Row], root: str | Path) -> Attached:
    """Find the recording of each row in a folder: clips of 10 s that are called by their id, as WAV or FLAC.

    See `edit_sources.attach`.
    """
    return edit_sources.attach(
        rows,
        root,
        dataset="the clips of MusicCaps",
        where=(
            "cut each video from start_s to end_s into ID.wav where its licence lets you; edit_sources.render_pieces "
            "makes those of stand_in"
        ),
    )


def read_captions(path: str | Path) -> dict[str, str]:
    """Return id -> caption out of the user's ``musiccaps-public.csv``; another table raises `UnreadableFileError`."""
    with reading(f"{path} (MusicCaps' table is musiccaps-public.csv, CC BY-SA 4.0)"):
        content = Path(path).read_bytes()
    rows = csv_rows(decode_text(content, path), path)
    if not rows or not {"ytid", "caption"} <= rows[0].keys():
        raise UnreadableFileError(f"{path}: expected the columns ytid and caption, as in musiccaps-public.csv")
    return {row["ytid"]: row["caption"] for row in rows}
