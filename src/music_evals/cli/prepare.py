"""The verb ``prepare``: what programs find out of songs before people annotate them."""

from __future__ import annotations

import argparse
import json
from typing import Any

from music_evals.cli._shared import Bar, add_engine_options, add_verb, chosen, list_failures, print_results, to_stdout

__all__ = ["add"]

_HELP = """\
Prepare songs for annotation: lines in time from LRC files, rhyme marks, and lead sheets as MIDI and MusicXML, as a data
set with one config, `automatic`, one row a song.

A step that fails for a song is named in its row and in the list of failures; the others go on.
"""

_EXAMPLES = """\
examples:
  music-evals prepare my_songs --out results/prepared
  music-evals prepare my_songs --steps rhymes,lead_sheet --out results/prepared
"""


def add(verbs: Any) -> None:
    """Add the verb ``prepare``."""
    verb = add_verb(verbs, "prepare", _run, help="prepare songs for annotation", description=_HELP, epilog=_EXAMPLES)
    verb.add_argument("songs", help="folder with recordings, and lyrics as .lrc or .txt of the same name")
    verb.add_argument("--out", required=True, metavar="DIR", help="folder for records, lead sheets and the data set")
    verb.add_argument(
        "--steps",
        type=lambda text: [name.strip() for name in text.split(",") if name.strip()],
        default=[],
        metavar="NAME,...",
        help="alignment, rhymes, lead_sheet (default: all)",
    )
    verb.add_argument("--limit", type=int, metavar="N", help="take the first N songs only")
    verb.add_argument("--overwrite", action="store_true", help="start afresh in the folder, whatever it holds")
    add_engine_options(verb)
    verb.add_argument("--json", action="store_true", help="print the rows as JSON")


def _run(options: argparse.Namespace) -> int:
    from music_evals.benchmark.preparation.task import Settings, run_preparation

    with Bar("step") as bar:
        done = run_preparation(Settings(**chosen(options, Settings)), progress=bar)
    code = list_failures(done.failures, "see the column failures")
    if options.json:
        with to_stdout():
            print(json.dumps(done.rows, ensure_ascii=False))
    else:
        print_results(f"{len(done.rows)} songs", done.files, as_json=False)
    return code
