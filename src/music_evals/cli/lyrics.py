"""The verb ``lyrics``."""

from __future__ import annotations

from typing import Any

from music_evals.cli.console import run_scores
from music_evals.cli.options import add_score_options, add_verb, text_extra

_HELP = """\
Score how well song lyrics keep the structure that was asked for: sections, lines, characters and rhymes (the score of
MuChin, 0..110 points).

Writes into --out: records (every score), results.json, table.md and report.html, which tells where the worst
texts lost their points. A run that was killed goes on where it stood when the same command is given again.
"""

_EXAMPLES = """\
examples:
  music-evals lyrics --dataset caimd --config demo --out results/demo
  music-evals lyrics --dataset songs.jsonl --predictions gpt=gpt.jsonl --predictions qwen=qwen.jsonl --out results/two
  music-evals lyrics --reference patterns --generated mine=texts --out results/folders
  music-evals lyrics --reference song_pattern.txt --generated song.txt --out results/one --json
  music-evals lyrics --manifest pairs.csv --rhyme char --out results/list

A prediction is a line {"id": SONG, "text": LYRICS}, with a "seed" where there are several for a song. A pattern is what
the columns `structure` of a dataset hold: headers such as (verse1), c for a character, R for a rhyming one, a space for
a pause.
"""


def add(verbs: Any) -> None:
    """Add the verb ``lyrics``."""
    add_verb(
        verbs,
        "lyrics",
        lambda options: run_scores(options, "lyrics", "text"),
        "score the structure of song lyrics",
        _HELP,
        _EXAMPLES,
        needs=lambda options: ["lyrics", *text_extra(options.theme_encoder)],
        options=lambda verb: add_score_options(verb, "lyrics"),
    )
