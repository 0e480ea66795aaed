"""The verb ``describe``."""

from __future__ import annotations

import argparse
from typing import Any

from music_evals.cli._shared import (
    Bar,
    add_encoder_options,
    add_engine_options,
    add_interval_options,
    add_list,
    add_output_options,
    add_published_option,
    add_verb,
    chosen,
    finish_scores,
    quieten,
    text_extra,
)
from music_evals.cli.lyrics import add_songs

__all__ = ["add"]

_HELP = """\
Score how near the tags of a music description are to those that people gave, by the meaning of the words: professional
and amateur annotators, ten dimensions each (MuChin).

Writes into --out: records (every score), results.json, table.md and report.html. A run that was killed goes on
where it stood when the same command is given again.
"""

_EXAMPLES = """\
examples:
  music-evals describe --dataset caimd --config demo --encoder char-ngrams --out results/demo
  music-evals describe --dataset songs.jsonl --predictions mine=tags.jsonl --cache embeddings --out results/mine
  music-evals describe --dataset songs.jsonl --model mert=models/my_tagger --audio recordings --out results/tagger

A prediction is a line {"id": SONG, "professional": {DIMENSION: [TAGS]}, "amateur": {...}}; one of the two groups is
enough. With --text-tags it may be {"id": SONG, "text": "what a captioning model wrote"}. Recordings are called by the
id of their song, as s_0001.flac.
"""


def add(verbs: Any) -> None:
    """Add the verb ``describe``."""
    verb = add_verb(
        verbs,
        "describe",
        _run,
        "score tags that describe songs against those of people",
        _HELP,
        _EXAMPLES,
        needs=lambda options: [*text_extra(options.encoder), *["models"] * bool(options.models)],
    )
    inputs = verb.add_argument_group("what is scored")
    add_songs(inputs, '"professional": {DIMENSION: [TAGS]}, "amateur": {...}')
    inputs.add_argument(
        "--text-tags",
        metavar="HOW",
        help='predictions may be free text, {"id": SONG, "text": ...}: find tags in it; vocabulary: those that '
        "annotators used anywhere in the data set (default: tags alone)",
    )
    add_list(
        inputs,
        "--model",
        "folder of a tagger with weights; may be given again; needs --audio",
        dest="models",
        metavar="[NAME=]DIR",
    )
    inputs.add_argument("--audio", metavar="DIR", help="folder of recordings, each called by the id of its song")
    inputs.add_argument(
        "--threshold", type=float, help="probability from which on taggers give a tag (default: theirs)"
    )
    inputs.add_argument(
        "--trust-remote-code", action="store_true", help="run Python code that comes with a tagger's music encoder"
    )
    how = verb.add_argument_group("how")
    add_encoder_options(how)
    how.add_argument(
        "--empty",
        default="nan",
        help="a list without tags is undefined, and so is the average of its song: nan (default); or zero, or raise",
    )
    add_engine_options(how)
    add_interval_options(how)
    how.add_argument("--seed", type=int, default=0, help="of intervals and tests (default: %(default)s)")
    add_published_option(add_output_options(verb))


def _run(options: argparse.Namespace) -> int:
    from music_evals.benchmark.tasks.songs.descriptions import DESCRIPTIONS, Settings

    settings = Settings(**chosen(options, Settings))
    quieten()
    with Bar("song") as bar:
        outcome = DESCRIPTIONS.run(settings, progress=bar)
    return finish_scores(outcome, options)
