"""The verb ``discrepancy``."""

from __future__ import annotations

import argparse
from typing import Any

from music_evals.cli._shared import add_interval_options, add_verb, chosen, print_results, quieten

__all__ = ["add"]

_HELP = """\
Compare what professionals and amateurs say of the same songs, by the meaning of their tags, dimension by dimension, for
songs grouped by genre, emotion, purpose, culture or audience (MuChin, section 3.1 and figure 3).

Writes into --out: results.json, table.md, cells.csv and discrepancy.svg; those of an earlier run are replaced.
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
        help="compare how professionals and amateurs describe the same songs",
        description=_HELP,
        epilog=_EXAMPLES,
    )
    _add_songs(verb.add_argument_group("which songs"))
    _add_options(verb.add_argument_group("how"))
    where = verb.add_argument_group("where it goes")
    where.add_argument("--out", required=True, metavar="DIR", help="folder for results")
    where.add_argument("--json", action="store_true", help="print results.json in place of the tables")
    where.add_argument("--no-plot", action="store_false", dest="plot", help="draw no discrepancy.svg")


def _add_songs(what: Any) -> None:
    what.add_argument(
        "--dataset",
        required=True,
        help="a name under ./datasets_scripts, a folder, a Hub id, or a file of JSON lines, each a row of CaiMD",
    )
    what.add_argument("--config", help="config of the dataset")
    what.add_argument("--split", default="test", help="split of the dataset (default: %(default)s)")
    what.add_argument("--revision", help="commit, tag or branch of a Hub dataset")
    what.add_argument("--limit", type=int, metavar="N", help="study the first N songs only")


def _add_options(how: Any) -> None:
    how.add_argument(
        "--by",
        default="genre,emotion,purpose",
        metavar="NAMES",
        help="groupings, with commas: genre, emotion, purpose, culture, audience (default: %(default)s)",
    )
    how.add_argument("--dimensions", metavar="NAMES", help="shared dimensions, with commas (default: all ten)")
    how.add_argument("--level", default="tags", help="tags (default), or joined: all tags of a dimension as one text")
    how.add_argument(
        "--encoder",
        default="BAAI/bge-large-zh-v1.5",
        metavar="NAME",
        help="sentence-transformers model, a Hub id or a folder, or char-ngrams, which needs no weights and knows no "
        "meaning (default: %(default)s)",
    )
    how.add_argument("--encoder-revision", metavar="REV", help="commit, tag or branch of the encoder's Hub id")
    how.add_argument("--device", help="where the encoder computes, as cpu or cuda:1 (default: a GPU if any)")
    how.add_argument("--cache", metavar="DIR", help="keep the vectors of tags here, for the next run too")
    how.add_argument("--aggregation", default="mean", help="mean of all pairs (default), best_match or f1")
    how.add_argument(
        "--normalize-by-self", action="store_true", help="divide by what the two lists have with themselves"
    )
    add_interval_options(how)
    how.add_argument(
        "--permutations",
        type=int,
        default=10_000,
        dest="n_permutations",
        metavar="N",
        help="of each test (default: %(default)s)",
    )
    how.add_argument("--seed", type=int, default=0, help="of intervals and tests (default: %(default)s)")


def _run(options: argparse.Namespace) -> int:
    from music_evals.benchmark.discrepancy import Settings, run_discrepancy, text_study

    settings = Settings(**chosen(options, Settings))
    quieten()
    outcome = run_discrepancy(settings)
    notes = "\n".join(f"note: {note}" for note in outcome.results["notes"])
    print_results(f"{text_study(outcome.study)}\n{notes}", outcome.files, as_json=options.json)
    return 0
