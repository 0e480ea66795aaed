"""The verb ``discrepancy``."""

from __future__ import annotations

import argparse
from typing import Any

from music_evals.cli._shared import (
    add_dataset_options,
    add_drawing_options,
    add_encoder_options,
    add_engine_options,
    add_interval_options,
    add_number,
    add_output_options,
    add_verb,
    chosen,
    print_results,
    quieten,
    say,
    text_extra,
    why_not_drawn,
)

__all__ = ["add"]

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
    verb = add_verb(
        verbs,
        "discrepancy",
        _run,
        "compare how professionals and amateurs describe the same songs",
        _HELP,
        _EXAMPLES,
        needs=lambda options: [*text_extra(options.encoder), *["report"] * (options.plot is not False)],
    )
    add_dataset_options(verb.add_argument_group("which songs"), required=True)
    _add_options(verb.add_argument_group("how"))
    where = add_output_options(verb)
    add_drawing_options(where, "plot", "discrepancy.svg")


def _add_options(how: Any) -> None:
    how.add_argument(
        "--by",
        default="genre,emotion,purpose",
        metavar="NAMES",
        help="groupings, with commas: genre, emotion, purpose, culture, audience (default: %(default)s)",
    )
    how.add_argument("--dimensions", metavar="NAMES", help="shared dimensions, with commas (default: all ten)")
    how.add_argument("--level", default="tags", help="tags (default), or joined: all tags of a dimension as one text")
    add_encoder_options(how)
    add_engine_options(how)
    add_interval_options(how, resamples=False)
    add_number(how, "--permutations", "of each test", default=10_000, dest="n_permutations")
    how.add_argument("--seed", type=int, default=0, help="of intervals and tests (default: %(default)s)")


def _run(options: argparse.Namespace) -> int:
    from music_evals.benchmark.tasks.songs.discrepancy import DISCREPANCY, Settings, text_study

    undrawn = why_not_drawn(options.plot, "discrepancy.svg")
    settings = Settings(**{**chosen(options, Settings), "plot": options.plot is not False and not undrawn})
    quieten()
    outcome = DISCREPANCY.run(settings)
    if undrawn:
        say(undrawn)
    notes = "\n".join(f"note: {note}" for note in outcome.results["notes"])
    print_results(f"{text_study(outcome.scores)}\n{notes}", outcome.files, as_json=options.json)
    return 0
