"""The verb ``prepare``: what programs find out of songs before people annotate them."""

from __future__ import annotations

import argparse
import json
from typing import Any

from music_evals.cli.console import Bar, list_failures, print_results, say, to_stdout
from music_evals.cli.options import (
    add_options,
    add_output_options,
    add_verb,
    add_writer_options,
    from_options,
    in_options,
    writer_of,
)
from music_evals.options import with_commas

_HELP = """\
Prepare songs for annotation, as a data set with one config, `automatic`, one row a song.

Without --steps, all that can be done is done: lines in time from LRC files, rhyme marks, and lead sheets as MIDI and
MusicXML; with --encoder also embeddings and clusters of songs that sound alike, with --theme-model also themes of
lyrics, with --demucs also stems; where the Montreal Forced Aligner is installed, phonemes; and with either, characters
with their times. What is left out is said, and why. A step of --steps that cannot be done is an error.

A step that fails for a song is named in its row and in the list of failures; the others go on. The same command again
does what is left.
"""

_EXAMPLES = """\
examples:
  music-evals prepare my_songs --out results/prepared
  music-evals prepare my_songs --encoder audio-statistics --n-clusters 50 --sample 200 --out results/prepared
  music-evals prepare my_songs --steps clusters --encoder mert-330m --device cuda --out results/prepared
  music-evals prepare my_songs --steps rhymes,stems --demucs demucs/bin/demucs --out results/prepared
  music-evals prepare my_songs --theme-model Qwen/Qwen2.5-7B-Instruct --out results/prepared
  music-evals caimap import study results/prepared/songs.jsonl --audio my_songs --prepared results/prepared
"""


def add(verbs: Any) -> None:
    """Add the verb ``prepare``."""
    add_verb(verbs, "prepare", _run, "prepare songs for annotation", _HELP, _EXAMPLES, options=_add_options)


def _add_options(verb: Any) -> None:
    from music_evals.preparation.task import Settings

    groups = add_options(verb, Settings)
    verb.add_argument(
        "--steps",
        type=with_commas,
        default=[],
        metavar="NAME,...",
        help="alignment, rhymes, lead_sheet, themes, embeddings, stems, phonemes, characters, clusters; with "
        "each those that it needs (default: all that can be done)",
    )
    add_output_options(verb, "print the rows as JSON")
    help_ = (
        "language model that writes what lyrics are about: folder or Hub id[@revision], or with --theme-endpoint its "
        "id there; what it wrote is kept, and not asked again"
    )
    add_writer_options(groups["themes"], "theme", help_, dest="theme_writer")


def _run(options: argparse.Namespace) -> int:
    from music_evals.preparation.task import Settings, run_preparation

    settings = from_options(options, Settings, theme_writer=writer_of(options, "theme", options.theme_writer))
    with Bar("step") as bar:
        done = run_preparation(settings, progress=bar)
    for name, reason in done.left_out.items():
        say(f"note: {name} was left out: {in_options(reason, options.verb)}")
    failures = [(name, in_options(reason, options.verb)) for name, reason in done.failures]
    code = list_failures(failures, "see the column failures")
    if options.json:
        with to_stdout():
            print(json.dumps(done.rows, ensure_ascii=False))
    else:
        print_results(f"{len(done.rows)} songs", done.files, as_json=False)
    return code
