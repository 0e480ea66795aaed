"""The verb ``preserve``."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
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
    add_verb,
    chosen,
    finish_scores,
    quieten,
    say,
    to_stdout,
    why_not_drawn,
)
from music_evals.errors import InvalidInputError

__all__ = ["add"]

_HELP = """\
Measure what an edit preserved: harmony, rhythm, structure and melody of the original, for pairs of recordings or of
scores (MIDI, MusicXML, ABC).

Writes into --out: records (every score), results.json, table.md and report.html. A run that was killed goes on
where it stood when the same command is given again.
"""

_EXAMPLES = """\
examples:
  music-evals preserve --reference originals --estimate edited --out results/edit
  music-evals preserve --reference originals --estimate zeta=out/zeta --estimate musicgen=out/musicgen --out results/two
  music-evals preserve --reference song.wav --estimate song_edited.wav --out results/one --json
  music-evals preserve --manifest pairs.csv --group-by song --out results/list
  music-evals preserve --dataset known_edits --config small --out results/known
"""


def add(verbs: Any) -> None:
    """Add the verb ``preserve``."""
    verb = add_verb(
        verbs,
        "preserve",
        _run,
        "measure what edits of music preserved of the original",
        _HELP,
        _EXAMPLES,
        needs=lambda options: ["audio"] * _hears(options) + ["report"] * (options.report is not False),
    )
    _add_input(verb.add_argument_group("what is compared (one of --reference, --manifest and --dataset)"))
    _add_measures(verb.add_argument_group("how"))
    where = add_output_options(verb, has_figures=True)
    add_published_option(where, others="how to read the scores, notes, remarks and ")
    where.add_argument(
        "--grade",
        action="store_true",
        help="print one score over all facets too, between unrelated music (0) and the same music (1); it hides what "
        "was changed, and is written nowhere",
    )
    add_number(where, "--timelines", "pairs to draw in report.html, the worst of each system", default=10)
    where.add_argument(
        "--audio",
        default="beside",
        metavar="PLACE",
        help="where the music of these pairs lies, for the players of report.html: beside (in the folder report_audio, "
        "the default), embedded (in the page) or none",
    )


def _add_input(group: Any) -> None:
    group.add_argument("--reference", metavar="PATH", help="folder of originals, or one file; here or at a URL")
    add_list(
        group,
        "--estimate",
        "folder of edits with the same relative paths, or one file; may be given again for other systems",
        dest="estimates",
        metavar="[NAME=]PATH",
    )
    group.add_argument(
        "--manifest",
        metavar="FILE",
        help="CSV or JSONL with the columns reference, estimate and, where wanted, id, group, system; it and its cells "
        "may be URLs",
    )
    add_dataset_options(
        group,
        dataset="a name (see list), a folder or a Hub id with two audio columns",
        limit="compare the first N items only: originals of a folder, ids of a manifest, each with the edits of all "
        "systems, or rows of a dataset",
    )
    group.add_argument("--reference-column", default="reference", metavar="NAME", help="(default: %(default)s)")
    group.add_argument("--estimate-column", default="estimate", metavar="NAME", help="(default: %(default)s)")
    group.add_argument(
        "--system-column", default="system", metavar="NAME", help="(default: %(default)s; for datasets of scores kind)"
    )
    group.add_argument("--renderer", help="additive (default) or fluidsynth, for datasets that hold scores")
    group.add_argument(
        "--group-by",
        metavar="WHAT",
        help="clusters of the intervals: file (each original, by what it holds; default), folder, or a column",
    )
    group.add_argument(
        "--no-controls",
        action="store_false",
        dest="controls",
        help="leave out the rows of the same music and of unrelated music",
    )


def _add_measures(how: Any) -> None:
    how.add_argument("--metrics", metavar="NAMES", help="names or facets with commas (default: all of the variant)")
    how.add_argument(
        "--companions",
        metavar="NAMES",
        help="auxiliary metrics: all, none, or names with commas (default: four with all eleven, none with others)",
    )
    how.add_argument("--variant", default="corrected", help="corrected (default), official, paper, or musecpeval-0.3")
    add_list(
        how, "--backend", "another extractor of a feature; may be given again", dest="backends", metavar="FEATURE=NAME"
    )
    how.add_argument(
        "--intended",
        metavar="FACETS",
        help="facets that the edits are meant to change, with commas (harmony, rhythm, structure, melody): the results "
        "also have one score over the others, so that a change that was wanted is no damage",
    )
    how.add_argument("--features", metavar="DIR", help="keep extracted features here, for other runs and machines too")
    add_engine_options(how, "number of cores, at most 4")
    add_interval_options(how)
    how.add_argument("--seed", type=int, default=0, help="of intervals, tests and controls (default: %(default)s)")


def _run(options: argparse.Namespace) -> int:
    from music_evals.benchmark.tasks.preservation.screen import text_report
    from music_evals.benchmark.tasks.preservation.task import PRESERVATION, Settings

    values = chosen(options, Settings)
    values["backends"] = _backends(options.backends)
    undrawn = why_not_drawn(options.report, "report.html")
    values["report"] = options.report is not False and not undrawn
    settings = Settings(**values)
    quieten()
    with Bar("pair") as bar:
        outcome = PRESERVATION.run(settings, progress=bar)
    if undrawn:
        say(undrawn)
    code = finish_scores(outcome, options, report=text_report)
    if options.grade:
        _print_grades(outcome, settings.confidence, as_json=options.json)
    return code


def _hears(options: argparse.Namespace) -> bool:
    """Tell whether recordings are certainly among what is compared."""
    from music_evals.benchmark.tasks.preservation.pairs import AUDIO_SUFFIXES

    place = Path(options.reference or "")
    return options.dataset is not None or any(path.suffix.lower() in AUDIO_SUFFIXES for path in place.glob("*"))


def _print_grades(outcome: Any, confidence: float, *, as_json: bool) -> None:
    from music_evals.benchmark.cells import format_interval, format_value, plain
    from music_evals.benchmark.tasks.preservation.facets import grade

    lines = []
    for system, overall in grade(outcome.scores, confidence=confidence).items():
        cell = plain({"value": overall.estimate, "low": overall.low, "high": overall.high})
        lines.append(f"over all facets, {system}: {format_value(cell['value'])} {format_interval(cell)}")
    lines = [line.rstrip() for line in lines] or ["over all facets: nothing, since this run has not both controls"]
    if as_json:  # stdout holds results.json and nothing else
        say("\n".join(lines))
        return
    with to_stdout():
        print("\n".join(lines))


def _backends(texts: Sequence[str]) -> dict[str, str]:
    chosen_backends: dict[str, str] = {}
    for text in texts:
        feature, equals, name = text.partition("=")
        if not (feature and equals and name):
            raise InvalidInputError(f"--backend takes FEATURE=NAME, such as beats=librosa; got {text!r}")
        if chosen_backends.setdefault(feature, name) != name:
            raise InvalidInputError(
                f"--backend names two extractors of {feature}, {chosen_backends[feature]} and {name}; keep one"
            )
    return chosen_backends
