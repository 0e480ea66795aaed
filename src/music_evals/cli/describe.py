"""The verb ``describe``."""

from __future__ import annotations

from typing import Any

from music_evals.cli.console import run_scores
from music_evals.cli.options import add_score_options, add_verb, text_extra

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
    add_verb(
        verbs,
        "describe",
        lambda options: run_scores(options, "descriptions", "song"),
        "score tags that describe songs against those of people",
        _HELP,
        _EXAMPLES,
        needs=lambda options: [*text_extra(options.encoder), *["models"] * bool(options.models)],
        options=lambda verb: add_score_options(verb, "descriptions"),
    )
