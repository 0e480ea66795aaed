"""MedleyDB excerpts and the edits that are asked of them: the sources of ZETA and of the vanilla baseline.

The sentences are those of MedleyMDPrompts (Manor and Michaeli, ICML 2024, CC BY 4.0), as published. The audio of
MedleyDB may not be passed on: `attach` finds it in the user's own copy, and `edit_sources.write_sources` writes the
table that ``music-evals edit`` reads. The config ``stand_in`` needs no copy: pieces of `known_edits`, with prompts of
our own.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from music_evals.annotations import targets_text
from music_evals.annotations.target_words import targets_between, targets_in_words
from music_evals.csv_files import csv_rows, csv_text
from music_evals.datasets import edit_sources
from music_evals.datasets.edit_sources import STAND_IN_PIECES, Attached
from music_evals.datasets.manifest import flat_features
from music_evals.errors import UnreadableFileError

__all__ = ["CONFIGS", "attach", "build_config", "features", "published_table"]

CONFIGS = ("zeta", "vanilla", "stand_in")
"""Names of the configs; `stand_in` is our own."""

PROMPT_TABLE = "prompts.csv"
"""Package data: `published_table` of the two tables at commit f324c19 of HilaManor/AudioEditingCode."""

VANILLA_EXCERPTS = 20  # "20 prompts from MedleyDB"; the paper does not say which
VANILLA_SEED = 0

# Our own wishes for the stand-in: none of them is taken from the published table.
STAND_IN_WISHES = (
    ("Let a church organ play all of it.", "A piece played by a church organ."),
    ("Turn it into music for an old video game.", "Music of an old video game."),
    ("Play it as slow chamber music for strings.", "Slow chamber music for strings."),
    ("Make a dance track of it, with a heavy kick drum.", "A dance track with a heavy kick drum."),
    ("Give the tune to a clarinet and leave the rest as it is.", "A tune played by a clarinet over other instruments."),
    ("Leave out everything but the tune and the bass.", "A tune with a bass and nothing else."),
)
"""What is asked, and a description of the result."""
Row = dict[str, Any]


_COLUMNS = {
    "id": "string",
    "excerpt": "string",
    "audio_file": "string",
    "audio_sha256": "string",  # null: nobody has published one
    "instruction": "string",
    "source_prompt": "string",  # null where a prompt of the table goes with no description of the source
    "target_prompt": "string",
    "needs_source": "bool",  # null where the published table holds a value that it does not explain
    "targets": "string",  # what the words name that can be measured afterwards; empty where they name nothing
    "origin": "string",
}

features = functools.partial(flat_features, _COLUMNS)
"""Return the `datasets.Features` of the rows."""


def build_config(config: str) -> list[Row]:
    """Return the rows of a config."""
    rows = _rows(config)
    for row in rows:
        between = targets_between(row["source_prompt"] or "", row["target_prompt"])
        row["targets"] = targets_text(targets_in_words(row["instruction"]) or between)
    return rows


def _rows(config: str) -> list[Row]:
    if config == "stand_in":
        # each piece has half of the wishes, in turn
        pieces = itertools.product(STAND_IN_PIECES, range(len(STAND_IN_WISHES) // 2))
        return [
            _row(config, number, piece, wish)
            | {
                "audio_file": f"{piece}.wav",
                "source_prompt": f"A {piece.removeprefix('song_')} piece.",
                "target_prompt": result,
                "needs_source": True,
                "origin": "music_evals",
            }
            for number, ((piece, _), (wish, result)) in enumerate(
                zip(pieces, itertools.cycle(STAND_IN_WISHES), strict=False)
            )
        ]
    sources, targets = _published()
    if config == "zeta":
        return [
            _row(config, number, row["excerpt"], row["sentence"])
            | {
                "source_prompt": sources[row["excerpt"]][int(row["source_index"]) - 1],
                "needs_source": {"yes": True, "no": False}.get(row["needs_source"]),
            }
            for number, row in enumerate(targets)
        ]
    names = sorted(sources)
    chosen = np.random.default_rng(VANILLA_SEED).choice(len(names), VANILLA_EXCERPTS, replace=False)
    return [_row(config, number, names[index], sources[names[index]][0]) for number, index in enumerate(sorted(chosen))]


def _row(config: str, number: int, excerpt: str, sentence: str) -> Row:
    return {
        "id": f"{config}_{number:04d}",
        "excerpt": excerpt,
        "audio_file": f"MusicDelta_{excerpt}/MusicDelta_{excerpt}_MIX.wav",
        "audio_sha256": None,
        "instruction": sentence,
        "source_prompt": None,
        "target_prompt": sentence,
        "needs_source": None,
        "origin": "MedleyMDPrompts",
    }


@functools.cache
def _published() -> tuple[dict[str, list[str]], list[dict[str, str]]]:
    """Return the source captions by excerpt, and the rows of the target prompts."""
    text = (files("music_evals.datasets.medleydb_editing") / PROMPT_TABLE).read_text(encoding="utf-8")
    rows = csv_rows(text, PROMPT_TABLE)
    sources: dict[str, list[str]] = {}
    for row in rows:
        if row["kind"] == "source":
            sources.setdefault(row["excerpt"], []).append(row["sentence"])
    return sources, [row for row in rows if row["kind"] == "target"]


def published_table(targets: str, sources: str) -> str:
    """Return the table of the package as CSV, from ``captions_targets.csv`` and ``captions_sources.csv`` as published.

    A table without the published columns raises `UnreadableFileError`.
    """
    rows: list[tuple[Any, ...]] = []
    numbers: dict[str, int] = {}
    try:
        for row in csv_rows(sources, "captions_sources.csv"):
            excerpt = _excerpt_of(row["filename"])
            numbers[excerpt] = numbers.get(excerpt, 0) + 1
            rows.append(("source", excerpt, numbers[excerpt], "", row["source_captions"]))
        for row in csv_rows(targets, "captions_targets.csv"):
            alone = {"1": "no", "0": "yes"}.get(row["can_be_used_without_source"], "")
            sentence = row["target_captions"]
            rows.append(("target", _excerpt_of(row["filename"]), row["source_caption_index"], alone, sentence))
    except KeyError as error:
        raise UnreadableFileError(
            f"the tables of MedleyMDPrompts have a column {error}; give both as published"
        ) from error
    return csv_text(("kind", "excerpt", "source_index", "needs_source", "sentence"), rows)


def _excerpt_of(filename: str) -> str:
    return filename.removeprefix("MusicDelta_").removesuffix("_MIX.wav")


def attach(rows: Iterable[Row], root: str | Path) -> Attached:
    """Find the recording of each row in the user's own copy; see `edit_sources.attach`.

    The root is the folder of MedleyDB (with or without its folder ``Audio``), or any that holds the files; for
    ``stand_in`` the one that `edit_sources.render_pieces` wrote to.
    """
    return edit_sources.attach(
        rows,
        root,
        places=lambda name: (name, f"Audio/{name}", Path(name).name),  # MedleyDB keeps a folder a song
        dataset="MedleyDB",
        where=(
            "MedleyDB is given out by its authors, https://medleydb.weebly.com; edit_sources.render_pieces makes those "
            "of stand_in"
        ),
    )
