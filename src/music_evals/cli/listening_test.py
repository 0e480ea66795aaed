"""The verb ``listening-test``: what people are to hear, how they are asked, and what they said."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, Any

from music_evals.cli.console import Bar, say, to_stdout
from music_evals.cli.listening_study import BUILD_EXAMPLES, add_build, add_plan, add_report
from music_evals.cli.options import add_confidence, add_json, add_list, add_number, add_options, add_verb, from_options
from music_evals.cli.studies import add_serve

if TYPE_CHECKING:
    from music_evals.studies.stimuli import Study

__all__ = ["add"]

_HELP = """\
Make the sounds of a blind listening study out of results, build a test of any sounds, hold it in the browser, report
it, and compare scores with what listeners said.
"""

_PAIRS_HELP = """\
Build the sounds of a blind listening study from runs of the verb inpainting: the reference, models, decodings and
copies on the same items, whole, on one instrument, at equal loudness.

Writes into --out: audio/, files whose names say nothing; pairs.csv, the key, which stays with the leader of the study;
and pairs.json, how it was made. All of it is taken from the records of the runs.
"""

_AGREEMENT_HELP = """\
Tell how the metrics of a run agree with people: rank correlations with their mean ratings by stimulus and by system,
and the share of their preferences that a metric has, with intervals over items and listeners; and how far the listeners
agree with each other.

RATINGS is one's own or published data, one row a rating (CSV, JSON lines or Parquet), with the columns item, system,
listener, rating and, where there are any, facet (the question) and scale (such as 0-100). No such data ships with this
package.
"""

_AGREEMENT_EXAMPLES = """\
examples:
  music-evals listening-test agreement results/edit ratings.csv
  music-evals listening-test agreement results/two answers.csv --key results/study/pairs.csv
  music-evals listening-test agreement results/edit published.parquet --reverse "how much was changed" --json
"""

_EXAMPLES = """\
examples:
  music-evals listening-test pairs results/best results/sample --out study --seed 8241
  music-evals listening-test pairs results/jsb --systems infill_transformer,copy_past --items 12 --out study
  music-evals listening-test pairs results/mine --licence "my own tunes" --sounds additive --out study
"""


def add(verbs: Any) -> None:
    """Add the verb ``listening-test``."""
    verb = add_verb(
        verbs,
        "listening-test",
        None,
        "build, serve and report a blind listening test; compare scores with listeners",
        _HELP,
        BUILD_EXAMPLES,
    )
    steps = verb.add_subparsers(title="steps", required=True, metavar="STEP")
    text = "render what is heard, and write its key"
    add_verb(steps, "pairs", _run, text, _PAIRS_HELP, _EXAMPLES, options=_add_pairs_options)
    add_build(steps)
    add_serve(steps, "listening-test")
    add_report(steps)
    add_plan(steps)
    _add_agreement(steps)


def _add_pairs_options(step: Any) -> None:
    from music_evals.studies.listening.inpainting import StudySettings

    add_json(add_options(step, StudySettings)["output"], "print pairs.json in place of the summary")


def _add_agreement(steps: Any) -> None:
    step = add_verb(
        steps,
        "agreement",
        _agree,
        "compare the scores of a run with the ratings of listeners",
        _AGREEMENT_HELP,
        _AGREEMENT_EXAMPLES,
    )
    step.add_argument("run", metavar="RUN", help="folder of a run of any task, its --out")
    step.add_argument("ratings", metavar="RATINGS", help="table of ratings: .csv, .jsonl or .parquet")
    step.add_argument(
        "--key",
        metavar="FILE",
        help="pairs.csv of the study: the table then may name played files (column estimate), and systems as the study",
    )
    add_list(step, "--reverse", "lower ratings of this question are better; may be given again", metavar="QUESTION")
    step.add_argument(
        "--level",
        default="interval",
        help="of the ratings, for Krippendorff's alpha: interval (default), ordinal or nominal",
    )
    add_confidence(step)
    add_number(
        step, "--resamples", "draws of items and listeners behind the intervals", default=1000, dest="n_resamples"
    )
    step.add_argument("--seed", type=int, default=0, help="of the draws (default: %(default)s)")
    step.add_argument("--json", action="store_true", help="print everything as JSON in place of the tables")


def _run(options: argparse.Namespace) -> int:
    from music_evals.studies.listening.inpainting import StudySettings, build_study

    with Bar("item") as bar:
        study = build_study(from_options(options, StudySettings), progress=bar)
    same = [pair for pair in study.pairs if pair.same_as]
    if same:
        say(f"note: {len(same)} files sound exactly like one of another system of their item; see the column same_as")
    with to_stdout():
        print(json.dumps(study.about, indent=1) if options.json else _summary(study))
    return 0


def _agree(options: argparse.Namespace) -> int:
    from music_evals.studies.listening.agreement import agreement_of_run, agreement_text
    from music_evals.studies.pairs import read_pairs
    from music_evals.studies.ratings import read_ratings

    key = read_pairs(options.key, check_files=False) if options.key else ()
    agreement = from_options(
        options, agreement_of_run, ratings=read_ratings(options.ratings, key=key, reverse=options.reverse), key=key
    )
    with to_stdout():
        print(json.dumps(agreement, indent=1, allow_nan=False) if options.json else agreement_text(agreement))
    if options.json:
        for note in agreement["notes"]:
            say(f"note: {note}")
    return 0


def _summary(study: Study) -> str:
    items, groups = {pair.item_id for pair in study.pairs}, {pair.group for pair in study.pairs}
    systems = list(dict.fromkeys(pair.system for pair in study.pairs))
    seconds = sum(pair.seconds or 0.0 for pair in study.pairs)
    return "\n".join(
        [
            f"{len(items)} items of {len(groups)} songs, {len(systems)} systems: {', '.join(systems)}",
            f"{len(study.pairs)} files to be judged, {seconds / 60:.1f} minutes in all",
            f"{study.folder}: pairs.csv (the key), pairs.json, audio/",
        ]
    )
