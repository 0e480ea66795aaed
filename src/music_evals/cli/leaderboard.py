"""The verb ``leaderboard``: results of runs into a board, a board into tables."""

from __future__ import annotations

import argparse
import json
from typing import Any

from music_evals.cli.console import Bar, say, to_stdout
from music_evals.cli.options import add_list, add_verb, from_options

_HELP = """\
Keep results of many runs in one append-only folder (the board), and make tables with honest ranks from it.
"""

_EXAMPLES = """\
examples:
  music-evals leaderboard add results/jsb --board board
  music-evals leaderboard add results/edits --board board --submitter me --media edits --media originals
  music-evals leaderboard build --board board --out site
  music-evals leaderboard build --board board --by note_f1
  MUSIC_EVALS_BOARD=board python spaces/leaderboard/app.py

A board can be uploaded as a dataset repository as it is. Two results share a table where what their references hold,
variant, protocol, encoder and options are the same, whatever files are called; else they stand apart, with the reason.
"""


def add(verbs: Any) -> None:
    """Add the verb ``leaderboard``."""
    verb = add_verb(verbs, "leaderboard", None, "ranks of many runs", _HELP, _EXAMPLES)
    steps = verb.add_subparsers(title="steps", required=True, metavar="STEP")
    step = add_verb(steps, "add", _run_add, "append the results of runs to a board")
    step.add_argument("results", nargs="+", metavar="RESULTS", help="folder of a run (its --out)")
    step.add_argument("--board", required=True, metavar="DIR", help="folder of the board; made where it is missing")
    step.add_argument(
        "--system", action="append", dest="systems", metavar="NAME", help="add this system only; may be given again"
    )
    step.add_argument("--submitter", default="", metavar="NAME", help="who adds them")
    step.add_argument("--source", default="", metavar="URL", help="what stands behind them: code, a paper, a model")
    step.add_argument("--date", metavar="YYYY-MM-DD", help="(default: today)")
    step.add_argument(
        "--no-details",
        action="store_false",
        dest="details",
        help="leave out what can be shown of single items: music, explanations of lyrics, tags",
    )
    add_list(
        step,
        "--media",
        "folder with the recordings that were compared, which are then part of the board; may be given again",
        metavar="DIR",
    )
    step.add_argument("--json", action="store_true", help="print what was added as JSON")
    step = add_verb(steps, "build", _run_build, "make the tables")
    step.add_argument("--board", required=True, metavar="DIR", help="folder of the board")
    step.add_argument(
        "--out",
        metavar="DIR",
        help="folder for leaderboard.json, index.html and tables/ (CSV and LaTeX); without it the board alone gets its "
        "leaderboard.json, so that pages need not compute it",
    )
    step.add_argument("--by", metavar="SCORE", help="order the rows by this score (default: by the mean rank)")
    step.add_argument("--json", action="store_true", help="print leaderboard.json in place of the tables")


def _run_add(options: argparse.Namespace) -> int:
    from music_evals.leaderboard import add_to_board

    report = []
    for results in options.results:
        added = from_options(options, add_to_board, results=results)
        report.append({"results": results, "added": len(added.new), "known": added.n_known})
        if not options.json:
            say(f"{results}: {len(added.new)} records added, {added.n_known} were there")
    if options.json:
        with to_stdout():
            print(json.dumps(report, indent=2))
    return 0


def _run_build(options: argparse.Namespace) -> int:
    from music_evals.leaderboard import build_leaderboard, keep_tables, write_leaderboard
    from music_evals.leaderboard.export import text_tables

    with Bar("test") as bar:
        leaderboard = build_leaderboard(options.board, by=options.by, progress=bar)
    files = {"tables": keep_tables(leaderboard, options.board)}
    if options.out is not None:
        files |= write_leaderboard(leaderboard, options.out)
    with to_stdout():
        print(files["tables"].read_text(encoding="utf-8") if options.json else text_tables(leaderboard))
    say("\n".join(f"{kind}: {path}" for kind, path in files.items()))
    return 0
