"""The verb ``listening-test``: what people are to hear, how they are asked, and what they said."""

from __future__ import annotations

import argparse
import contextlib
import json
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from music_evals.benchmark.formats import format_value, plain
from music_evals.cli.console import Bar, list_failures, say, to_stdout
from music_evals.cli.options import (
    add_confidence,
    add_list,
    add_number,
    add_options,
    add_output_options,
    add_verb,
    from_options,
    sizes_of,
)
from music_evals.cli.studies import add_introduction_options, add_serve, introduction_of
from music_evals.options import with_commas

if TYPE_CHECKING:
    from music_evals.studies.listening.build import BuiltTest

_BUILD_HELP = """\
Build a blind listening test in the browser out of a table of sounds, of any task: audio edits, filled gaps, transfers.

PAIRS is a pairs.csv of the step pairs or your own: a CSV with the columns reference and estimate (files, from the
folder of the table on) and, where there are several, system, item_id and group, the song. A sample of an editing test
is named by sample_id. Or PAIRS are the folders of runs of music-evals edit, a system each, on the same sources. Every
file is mixed down, brought to one loudness and renamed; key/ says who is who.

--type rating: one sound, questions from 1 to 5; with LQ1 and --styles, the report writes the table listening of an
editing test. ab: one of two sounds is chosen. mushra: all systems of an item on one page, 0 to 100, beside the
reference, which is hidden among them with an anchor, the reference below 3.5 kHz.
"""

_BUILD_EXAMPLES = """\
examples:
  music-evals listening-test build results/study/pairs.csv --contact "Ada, ada@example.org" --out study
  music-evals listening-test build edits.csv --type mushra --listeners 16 --seed 8241 --contact Ada --out study
  music-evals listening-test build edits.csv --type ab --questions harmony,rhythm --contact Ada --out study
  music-evals listening-test build edited/zeta edited/musicgen --questions harmony,rhythm,structure,melody \\
      --contact Ada --out study
  music-evals listening-test build transfers.csv --styles bach,jazz --blocks 3 --contact Ada --out study
  music-evals listening-test serve study
  music-evals listening-test report study
"""

_REPORT_HELP = """\
Report a listening test: means of systems, differences or preferences with intervals for other listeners and other
items, with and without who is left out by the rules that build stated; agreement of the listeners (Krippendorff's
alpha); and effects of order. With --run, how every metric of a run agrees with the listeners.

FILES are those that listeners got from a page without a server. Answers that nobody can have given are left out, and
listed. The report goes to STUDY/report, or to --out: report.md, tables.json, and one CSV a table, ratings.csv and
listening.csv among them.
"""

_REPORT_EXAMPLES = """\
examples:
  music-evals listening-test report study
  music-evals listening-test report study answers/*.json --run results/edit --out results/heard
"""

_PLAN_HELP = """\
Simulate listening tests with a known difference of two systems, and tell how often one of a size finds it: power,
coverage of the interval and its width, by the number of listeners; and how many careless listeners are caught.
"""

_PLAN_EXAMPLES = """\
examples:
  music-evals listening-test plan --effect 0.3
  music-evals listening-test plan --type mushra --effect 8 --items 8 --listeners 8,16,32 --careless 0.1 --draws 500
"""


def _add_options(step: Any) -> None:
    from music_evals.studies.listening.settings import ListeningSettings

    step.add_argument("pairs", nargs="+", metavar="PAIRS", help="table of the sounds, or folders of runs of edit")
    groups = add_options(step, ListeningSettings)
    text = "ask how near each sound is to these styles, with commas"
    groups["asked"].add_argument("--styles", metavar="NAMES", help=text)
    add_list(groups["asked"], "--question", "a question of your own; may be repeated", metavar="NAME=TEXT")
    text = "of every file (default: %(default)g)"
    groups["how"].add_argument("--loudness", type=float, default=-23.0, dest="loudness_lufs", metavar="LUFS", help=text)
    add_introduction_options(step)
    step.add_argument("--out", required=True, metavar="DIR", help="new folder of the study")


def _add_plan(steps: Any) -> None:
    """Add the step ``plan``."""
    step = add_verb(steps, "plan", _plan, "how large a test must be", _PLAN_HELP, _PLAN_EXAMPLES)
    step.add_argument("--type", default="rating", help="rating (default), ab or mushra")
    step.add_argument(
        "--effect", type=float,
        help="true difference of two systems, in the unit of the scale (default: 0.4; mushra 8)",
    )  # fmt: skip
    step.add_argument("--listeners", default="8,16,32", metavar="N,N", help="sizes (default: %(default)s)")
    step.add_argument("--items", type=int, default=12, metavar="N", help="how many (default: %(default)s)")
    step.add_argument("--blocks", type=int, default=1, metavar="N", help="questionnaires (default: %(default)s)")
    step.add_argument("--careless", type=float, default=0.0, help="share who answer at random (default: %(default)g)")
    step.add_argument("--draws", type=int, default=200, metavar="N", help="tests a size (default: %(default)s)")
    step.add_argument("--confidence", type=float, default=0.95, help="level of the intervals (default: %(default)g)")
    step.add_argument("--seed", type=int, default=0, help="of the draws (default: %(default)s)")
    step.add_argument("--json", action="store_true", help="print the table as JSON")


def _build(options: argparse.Namespace) -> int:
    from music_evals.studies.listening.build import build_listening_test
    from music_evals.studies.listening.screening import rule_texts
    from music_evals.studies.listening.settings import ListeningSettings, named_questions, style_questions
    from music_evals.ui.studies.page import study_page

    introduction = introduction_of(options, "listening")
    # without a word on it the usual question is asked, beside those on styles too
    named = named_questions(options.type, (*with_commas(options.questions), *options.question))
    questions = (*named, *style_questions(with_commas(options.styles)))
    systems = tuple(with_commas(options.systems))
    settings = from_options(options, ListeningSettings, questions=questions, systems=systems)
    with _table(options.pairs) as table, Bar("item") as bar:
        built = build_listening_test(
            table,
            options.out,
            settings,
            study=options.study,
            introduction=introduction,
            page=study_page("listening", introduction.title),
            loudness_lufs=options.loudness_lufs,
            progress=bar,
        )
    with to_stdout():
        print(built.study.folder)
    for note in [*_notes_of(built), *(f"left out is who {text}" for text in rule_texts(settings).values())]:
        say(note)
    return 0


@contextlib.contextmanager
def _table(places: Sequence[str]) -> Iterator[Path]:
    """Yield the table of the sounds; one that is made of runs of edits is there for as long as the ``with`` lasts."""
    from music_evals.errors import InvalidInputError
    from music_evals.studies.listening.edits import pairs_of_edits
    from music_evals.studies.pairs import write_pairs

    if not Path(places[0]).is_dir():
        if len(places) > 1:
            raise InvalidInputError(f"expected one table or folders of runs of edit, got {', '.join(places)}")
        yield Path(places[0])
        return
    pairs = pairs_of_edits(places)
    with tempfile.TemporaryDirectory(prefix="music_evals_") as folder:
        yield write_pairs(Path(folder) / "pairs.csv", pairs)


def _notes_of(built: BuiltTest) -> list[str]:
    plans = built.study.plans
    systems = list(dict.fromkeys(pair.system for pair in built.pairs))
    pages = sorted({len(plan["trials"]) for plan in plans})
    n_items = len({pair.item_id for pair in built.pairs})
    size = f"{len(plans)} plans of {' to '.join(map(str, pages))} pages"
    coverage = f"{n_items} items and {len(systems)} systems: {', '.join(systems)}"
    lines = [f"{size} over {coverage}", "key/ stays with you, page/ is what listeners see"]
    for item, longer in built.cut.items():
        cuts = ", ".join(f"{name} by {sec:.3f} s" for name, sec in longer.items())
        lines.append(f"note: {item}: cut to the shortest: {cuts}")
    same = sum(bool(pair.same_as) for pair in built.pairs)
    if same:
        lines.append(f"note: {same} files sound exactly like one of another system of their item; see key/pairs.csv")
    unlicensed = sum(not pair.licence for pair in built.pairs)
    if unlicensed:
        lines.append(f"note: of {unlicensed} sounds the table names no licence; make sure that they may be played")
    return lines


def _report(options: argparse.Namespace) -> int:
    from music_evals.studies.listening.agreement import agreement_of_run
    from music_evals.studies.listening.analysis import evaluate_listening
    from music_evals.studies.listening.answers import ratings_of
    from music_evals.studies.listening.report import report_text, write_report
    from music_evals.studies.listening.results import read_listening_results

    results = read_listening_results(options.folder, options.files, leave_out=options.leave_out)
    settings, level = results.key.settings, options.confidence
    analysis = evaluate_listening(results.tables, settings, confidence=level)
    if not results.is_by_invitation:
        analysis["warnings"].append("not all listeners came by invitation: one person may have joined twice")
    included = {row["listener"] for row in analysis["listeners"] if row["is_kept"]}
    ratings = ratings_of(row for row in results.tables.ratings if row["listener"] in included)
    key = list(results.key.pairs.values())
    runs = {Path(run).resolve().name: agreement_of_run(run, ratings, key=key, confidence=level) for run in options.runs}
    folder = Path(options.out) if options.out else Path(options.folder) / "report"
    files = write_report(analysis, results.tables, settings, folder, confidence=level, runs=runs)
    with to_stdout():
        whole = files["tables.json"].read_text(encoding="utf-8").rstrip()
        print(whole if options.json else report_text(analysis, settings, confidence=level, runs=runs).rstrip())
    if results.unfinished:
        say(f"note: {len(results.unfinished)} began and sent no answers")
    say(f"{folder}: {', '.join(files)}")
    return list_failures(list(results.refused.items()), "see the submissions")


def _plan(options: argparse.Namespace) -> int:
    from music_evals.studies.listening.settings import ListeningSettings
    from music_evals.studies.listening.simulation import plan_listening, world_of

    sizes = sizes_of(options.listeners, "--listeners")
    effect = options.effect if options.effect is not None else 8.0 if options.type == "mushra" else 0.4
    planned = plan_listening(
        world_of(options.type, effect, n_items=options.items, careless=options.careless),
        ListeningSettings(type=options.type, blocks=options.blocks, listeners=options.blocks),
        sizes,
        n_draws=options.draws,
        confidence=options.confidence,
        seed=options.seed,
        progress=lambda done, n: say(f"size {done} of {n}"),
    )
    with to_stdout():
        if options.json:
            print(json.dumps(plain([size._asdict() for size in planned]), indent=1))
        else:
            print("listeners  items  minutes  truth  power  coverage  width  careless kept")
            for size in planned:
                about = f"{size.n_listeners:9}  {size.n_items:5}  {size.minutes:7.1f}  {size.truth:5.2f}"
                found_of_size = f"{size.power:5.2f}  {size.coverage:8.2f}  {size.width:5.2f}"
                print(f"{about}  {found_of_size}  {format_value(size.kept_careless):>13}")
    return 0


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
        _BUILD_EXAMPLES,
    )
    steps = verb.add_subparsers(title="steps", required=True, metavar="STEP")
    text = "render what is heard, and write its key"
    add_verb(steps, "pairs", _run, text, _PAIRS_HELP, _EXAMPLES, options=_add_pairs_options)
    text = "sounds to a test in the browser"
    add_verb(steps, "build", _build, text, _BUILD_HELP, _BUILD_EXAMPLES, options=_add_options)
    add_serve(steps, "listening-test")
    step = add_verb(steps, "report", _report, "what listeners said", _REPORT_HELP, _REPORT_EXAMPLES)
    step.add_argument("folder", metavar="STUDY", help="folder of the study")
    step.add_argument("files", nargs="*", metavar="FILES", help="files that listeners sent")
    text = "folder of a run whose metrics are set against the listeners; may be repeated"
    add_list(step, "--run", text, dest="runs", metavar="DIR")
    text = "a listener who is left out, such as who withdrew; may be given again"
    add_list(step, "--leave-out", text, metavar="NUMBER")
    add_confidence(step)
    step.add_argument("--out", metavar="DIR", help="folder of the report (default: STUDY/report)")
    step.add_argument("--json", action="store_true", help="print the tables as JSON in place of the report")
    _add_plan(steps)
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


def _add_pairs_options(step: Any) -> None:
    from music_evals.studies.listening.inpainting import StudySettings

    add_output_options(add_options(step, StudySettings)["output"], "print pairs.json in place of the summary")


def _run(options: argparse.Namespace) -> int:
    from music_evals.studies.listening.inpainting import StudySettings, build_study

    with Bar("item") as bar:
        study = build_study(from_options(options, StudySettings), progress=bar)
    same = [pair for pair in study.pairs if pair.same_as]
    if same:
        say(f"note: {len(same)} files sound exactly like one of another system of their item; see the column same_as")
    items, groups = {pair.item_id for pair in study.pairs}, {pair.group for pair in study.pairs}
    systems = list(dict.fromkeys(pair.system for pair in study.pairs))
    seconds = sum(pair.seconds or 0.0 for pair in study.pairs)
    summary = [
        f"{len(items)} items of {len(groups)} songs, {len(systems)} systems: {', '.join(systems)}",
        f"{len(study.pairs)} files to be judged, {seconds / 60:.1f} minutes in all",
        f"{study.folder}: pairs.csv (the key), pairs.json, audio/",
    ]
    with to_stdout():
        print(json.dumps(study.about, indent=1) if options.json else "\n".join(summary))
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
