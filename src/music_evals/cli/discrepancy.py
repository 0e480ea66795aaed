"""The verb ``discrepancy``."""

from __future__ import annotations

import argparse
from typing import Any

from music_evals.cli.console import print_results, say, why_not_drawn
from music_evals.cli.options import add_options, add_output_options, add_verb, from_options, text_extra

_HELP = """\
Compare what professionals and amateurs say of the same songs, by the meaning of their tags, dimension by dimension, for
songs grouped by genre, emotion, purpose, culture or audience (MuChin, section 3.1 and figure 3).

Writes into --out: records (the similarity of every song and dimension), results.json, table.md, cells.csv,
discrepancy.svg and report.html. Groupings, intervals and tests may be others in the next run of the same folder; other
songs, dimensions or another encoder need --overwrite.
"""

_EXAMPLES = """\
examples:
  music-evals discrepancy --dataset caimd --config demo --encoder char-ngrams --out results/demo
  music-evals discrepancy --dataset songs.jsonl --by emotion --level joined --cache embeddings --out results/joined
"""


def add(verbs: Any) -> None:
    """Add the verb ``discrepancy``."""
    add_verb(
        verbs,
        "discrepancy",
        _run,
        "compare how professionals and amateurs describe the same songs",
        _HELP,
        _EXAMPLES,
        needs=lambda options: [*text_extra(options.encoder), *["report"] * (options.plot is not False)],
        options=_add_options,
    )


def _add_options(verb: Any) -> None:
    from music_evals.benchmark.tasks.songs.discrepancy import Settings

    where = add_options(verb, Settings, required="dataset")["output"]
    add_output_options(where, picture=("plot", "discrepancy.svg"))


def _run(options: argparse.Namespace) -> int:
    from music_evals.benchmark.tasks.songs.discrepancy import DISCREPANCY, Settings, text_study

    undrawn = why_not_drawn(options.plot, "discrepancy.svg")
    settings = from_options(options, Settings, plot=options.plot is not False and not undrawn)
    outcome = DISCREPANCY.run(settings)
    if undrawn:
        say(undrawn)
    notes = "\n".join(f"note: {note}" for note in outcome.results["notes"])
    print_results(f"{text_study(outcome.scores)}\n{notes}", outcome.files, as_json=options.json)
    return 0
