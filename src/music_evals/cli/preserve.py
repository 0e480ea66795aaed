"""The verb ``preserve``."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from music_evals.cli.console import Bar, finish_scores, say, to_stdout, why_not_drawn
from music_evals.cli.options import add_options, add_output_options, add_verb, from_options
from music_evals.errors import InvalidInputError

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
    add_verb(
        verbs,
        "preserve",
        _run,
        "measure what edits of music preserved of the original",
        _HELP,
        _EXAMPLES,
        needs=lambda options: ["audio"] * _hears(options) + ["report"] * (options.report is not False),
        options=_add_options,
    )


def _add_options(verb: Any) -> None:
    from music_evals.benchmark.tasks.preservation.task import Settings

    where = add_options(verb, Settings)["output"]
    add_output_options(
        where, picture=("report", "report.html"), published="how to read the scores, notes, remarks and "
    )
    where.add_argument(
        "--grade",
        action="store_true",
        help="print one score over all facets too, between unrelated music (0) and the same music (1); it hides what "
        "was changed, and is written nowhere",
    )


def _run(options: argparse.Namespace) -> int:
    from music_evals.benchmark.tasks.preservation.screen import text_report
    from music_evals.benchmark.tasks.preservation.task import PRESERVATION, Settings

    backends: dict[str, str] = {}
    for text in options.backends:
        feature, equals, name = text.partition("=")
        if not (feature and equals and name):
            raise InvalidInputError(f"--backend takes FEATURE=NAME, such as beats=librosa; got {text!r}")
        if backends.setdefault(feature, name) != name:
            raise InvalidInputError(
                f"--backend names two extractors of {feature}, {backends[feature]} and {name}; keep one"
            )
    undrawn = why_not_drawn(options.report, "report.html")
    settings = from_options(options, Settings, backends=backends, report=options.report is not False and not undrawn)
    with Bar("pair") as bar:
        outcome = PRESERVATION.run(settings, progress=bar)
    if undrawn:
        say(undrawn)
    code = finish_scores(outcome, options, report=text_report)
    if options.grade:
        _print_grades(outcome, settings.confidence, as_json=options.json)
    return code


def _print_grades(outcome: Any, confidence: float, *, as_json: bool) -> None:
    from music_evals.benchmark.formats import format_interval, format_value, plain
    from music_evals.benchmark.tasks.preservation.facets import grade

    lines = []
    for system, overall in grade(outcome.scores, confidence=confidence).items():
        cell = plain({"value": overall.estimate, "low": overall.low, "high": overall.high})
        line = f"over all facets, {system}: {format_value(cell['value'])} {format_interval(cell)}"
        lines.append(line.rstrip())
    text = "\n".join(lines or ["over all facets: nothing, since this run has not both controls"])
    if as_json:  # stdout holds results.json and nothing else
        say(text)
    else:
        with to_stdout():
            print(text)


def _hears(options: argparse.Namespace) -> bool:
    """Tell whether recordings are certainly among what is compared."""
    from music_evals.benchmark.tasks.preservation.pairs import AUDIO_SUFFIXES

    place = Path(options.reference or "")
    return options.dataset is not None or any(path.suffix.lower() in AUDIO_SUFFIXES for path in place.glob("*"))
