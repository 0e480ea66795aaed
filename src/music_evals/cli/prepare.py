"""The verb ``prepare``: what programs find out of songs before people annotate them."""

from __future__ import annotations

import argparse
import json
from typing import Any

from music_evals.cli._shared import (
    Bar,
    add_engine_options,
    add_verb,
    chosen,
    in_options,
    list_failures,
    print_results,
    quieten,
    say,
    to_stdout,
)
from music_evals.errors import InvalidInputError
from music_evals.protocols import MUSIC_ENCODERS

__all__ = ["add"]

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
    verb = add_verb(verbs, "prepare", _run, "prepare songs for annotation", _HELP, _EXAMPLES)
    verb.add_argument("songs", help="folder with recordings, and lyrics as .lrc or .txt of the same name")
    verb.add_argument(
        "--out", required=True, metavar="DIR", help="folder for records, what steps make and the data set"
    )
    verb.add_argument(
        "--steps",
        type=lambda text: [name.strip() for name in text.split(",") if name.strip()],
        default=[],
        metavar="NAME,...",
        help="alignment, rhymes, lead_sheet, themes, embeddings, stems, phonemes, characters, clusters; with "
        "each those that it needs (default: all that can be done)",
    )
    verb.add_argument("--limit", type=int, metavar="N", help="take the first N songs only")
    verb.add_argument("--overwrite", action="store_true", help="start afresh in the folder, whatever it holds")
    add_engine_options(verb)
    verb.add_argument("--json", action="store_true", help="print the rows as JSON")
    _add_clusters(verb.add_argument_group("embeddings and clusters"))
    _add_themes(verb.add_argument_group("themes"))
    _add_stems(verb.add_argument_group("stems"))


def _add_clusters(how: Any) -> None:
    how.add_argument(
        "--encoder",
        metavar="NAME",
        help=f"{', '.join(MUSIC_ENCODERS)}, or a folder; NAME@REVISION at a commit, NAME=ID for another model of its "
        "class. audio-statistics needs no weights: means and deviations of timbre and pitch classes",
    )
    how.add_argument("--device", help="where encoder and demucs compute, as cpu or cuda:1 (default: a GPU if any)")
    how.add_argument("--trust-remote-code", action="store_true", help="run Python code that comes with the encoder")
    how.add_argument(
        "--n-clusters", type=int, metavar="N", help="at most as many as songs (default: 1000, or as many as songs)"
    )
    how.add_argument("--sample", type=int, metavar="N", help="draw N songs, as evenly from clusters as possible")
    how.add_argument("--seed", type=int, default=0, help="of clusters and sample (default: %(default)s)")


def _add_themes(who: Any) -> None:
    who.add_argument(
        "--theme-model",
        dest="theme_writer",
        metavar="ID",
        help="language model that writes what lyrics are about: folder or Hub id[@revision], or with --theme-endpoint "
        "its id there; what it wrote is kept, and not asked again",
    )
    who.add_argument("--theme-endpoint", metavar="URL", help="OpenAI-compatible address, up to /v1")
    who.add_argument(
        "--api-key-env", metavar="VARIABLE", help="environment variable that holds its key (default: no key)"
    )


def _add_stems(how: Any) -> None:
    how.add_argument("--demucs", metavar="COMMAND", help="its command, by name or path (default: demucs)")
    how.add_argument("--stem-model", default="htdemucs", metavar="NAME", help="model of demucs (default: %(default)s)")
    how.add_argument(
        "--voice-and-rest",
        action="store_true",
        dest="two_stems",
        help="two stems in place of voice, drums, bass, other",
    )


def _writer(options: argparse.Namespace) -> dict[str, Any] | None:
    settings = {"endpoint": options.theme_endpoint, "api_key_env": options.api_key_env}
    settings = {name: value for name, value in settings.items() if value is not None}
    if options.theme_writer is None:
        if settings:
            raise InvalidInputError("--theme-endpoint and --api-key-env go with --theme-model; give that too")
        return None
    return {"model": options.theme_writer, **settings}


def _run(options: argparse.Namespace) -> int:
    from music_evals.preparation.task import Settings, run_preparation

    settings = Settings(**{**chosen(options, Settings), "theme_writer": _writer(options)})
    quieten()
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
