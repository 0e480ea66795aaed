"""The verb ``lyrics``."""

from __future__ import annotations

import argparse
from typing import Any

from music_evals.cli._shared import (
    Bar,
    add_dataset_options,
    add_engine_options,
    add_interval_options,
    add_list,
    add_number,
    add_output_options,
    add_published_option,
    add_theme_options,
    add_verb,
    chosen,
    finish_scores,
    quieten,
    text_extra,
)

__all__ = ["add"]

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
    verb = add_verb(
        verbs,
        "lyrics",
        _run,
        "score the structure of song lyrics",
        _HELP,
        _EXAMPLES,
        needs=lambda options: ["lyrics", *text_extra(options.theme_encoder)],
    )
    inputs = verb.add_argument_group("what is scored (one of --dataset, --reference and --manifest)")
    add_songs(inputs, '"text": LYRICS')
    inputs.add_argument(
        "--reference", metavar="PATH", help="folder of patterns, one file a song, or one pattern; here or at a URL"
    )
    add_list(
        inputs,
        "--generated",
        "folder of texts with the same relative paths, or one text; may be given again for other systems",
        metavar="[NAME=]PATH",
    )
    inputs.add_argument(
        "--manifest",
        metavar="FILE",
        help="CSV or JSONL with the columns generated and reference, which hold texts, or generated_file and "
        "reference_file, paths below the manifest's folder; and, where wanted, id, group, system",
    )
    _add_measures(verb.add_argument_group("how"))
    where = add_output_options(verb)
    add_published_option(where)
    add_number(
        where,
        "--explained",
        "texts in report.html whose lost points are explained, the worst of each system",
        default=10,
    )


def add_songs(group: Any, fields: str) -> None:
    """Add the options that name songs and predictions for them."""
    add_dataset_options(group)
    add_list(
        group,
        "--predictions",
        f'JSON lines {{"id": SONG, {fields}}}, or their URL; may be given again for other systems; without them '
        "the controls alone are scored",
        metavar="[NAME=]FILE",
    )
    group.add_argument("--no-controls", action="store_false", dest="controls", help="leave out the rows of controls")


def _add_measures(how: Any) -> None:
    how.add_argument(
        "--variant",
        default="official",
        help="official (default), corrected or paper; the corrected total stands beside each",
    )
    how.add_argument(
        "--rhyme",
        help="how rhymes are found: official (default), line, char or words; behind a plus sign the scheme of "
        "classes, xinyun18, shisanzhe, xinyun14 or near, as words+shisanzhe",
    )
    how.add_argument(
        "--section-match",
        default="initial",
        metavar="HOW",
        help="what makes sections the same: initial (default), type or label",
    )
    how.add_argument("--accumulate-song", action="store_true", help="carry the song ratio into all other levels")
    how.add_argument(
        "--no-autojunk",
        action="store_false",
        dest="autojunk",
        help="song level without difflib's heuristic for long sequences; table 1 was made with it",
    )
    how.add_argument(
        "--strict",
        action="store_true",
        help="texts that cannot be scored, as empty ones and those without a section header, are failures (default: "
        "they score what the variant gives them, without a header 0, and the notes count them)",
    )
    how.add_argument(
        "--no-normalise",
        action="store_false",
        dest="normalise",
        help="score texts as they are, with code fences, remarks and other brackets, for parity with the authors' code",
    )
    how.add_argument(
        "--format",
        default="auto",
        dest="song_format",
        metavar="NAME",
        help="format of the texts: auto (default), which finds it out, plain, json, lrc, diffrhythm, suno, yue, "
        "ace-step or songgeneration; the notes name what was found",
    )
    how.add_argument(
        "--unnumbered",
        action="store_false",
        dest="numbered",
        help="section headers of the dataset without their numbers, as in the prompts of write-lyrics",
    )
    add_theme_options(how)
    add_engine_options(how)
    add_interval_options(how)
    how.add_argument("--seed", type=int, default=0, help="of intervals, tests and controls (default: %(default)s)")


def _run(options: argparse.Namespace) -> int:
    from music_evals.benchmark.tasks.songs.lyrics import LYRICS, Settings

    settings = Settings(**chosen(options, Settings))
    quieten()
    with Bar("text") as bar:
        outcome = LYRICS.run(settings, progress=bar)
    return finish_scores(outcome, options)
