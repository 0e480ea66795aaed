"""The verb ``frame``."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from music_evals.benchmark.formats import plain
from music_evals.cli.console import Bar, list_failures, say, to_stdout
from music_evals.cli.options import add_verb


def add(verbs: Any) -> None:
    """Add the verb ``frame``."""
    verb = add_verb(
        verbs,
        "frame",
        _run,
        "list what a folder of MIDI files holds, and filter it",
        "Print one row a MIDI file, as CSV; filters are counted on stderr, or in the JSON.",
        "examples:\n  music-evals frame my_midi > frame.csv\n"
        "  music-evals frame my_midi --filters unique,only_4_4,min_measures=16 --json",
    )
    verb.add_argument("folder", help="searched with its sub-folders for .mid and .midi files")
    verb.add_argument(
        "--filters",
        default="",
        help="names of filters and of recipes such as musib_folk, with commas; only_4_4 also removes files that state "
        "no time signature",
    )
    verb.add_argument("--counting", default="notated", help="how measures are counted: notated, onset or published")
    verb.add_argument("--json", action="store_true", help="print frame and filters as JSON")


def _run(options: argparse.Namespace) -> int:
    from music_evals.symbolic.filters import apply_filters, make_filters
    from music_evals.symbolic.frame import frame_to_columns, midi_frame, write_frame_csv

    filters = make_filters(options.filters)
    with Bar("file") as bar:
        frame = midi_frame(
            options.folder, counting=options.counting, progress=lambda done, total: bar(done, total, "files")
        )
    report = apply_filters(frame, filters)
    shown = list(report.passed) if filters else frame
    if options.json:
        content = {"frame": plain(frame_to_columns(shown)), "filters": report.to_dict()}
        with to_stdout():
            print(json.dumps(content, allow_nan=False))
    else:
        with to_stdout():
            write_frame_csv(shown, sys.stdout)
        if filters:
            say(report.table())
    return list_failures([(row.filename, row.error) for row in frame if row.error], "see the column error")
