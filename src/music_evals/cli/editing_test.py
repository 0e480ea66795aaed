"""The verb ``editing-test``: a study with editors, from its folder to its report, and how large it must be."""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from music_evals.cli.console import say, to_stdout
from music_evals.cli.options import add_list, add_options, add_verb, from_options, sizes_of
from music_evals.cli.studies import add_introduction_options, add_serve, introduction_of

if TYPE_CHECKING:
    from music_evals.studies.editing.study import EditingSettings
    from music_evals.studies.folders import Introduction, StudyFolder

_HELP = """\
Evaluate style transfers by how much work editors have with them: plan a study, build it, hold it in the browser,
collect what editors sent, and report it.
"""

_REPORT_HELP = """\
Write every table of an editing test: means of samples, pairs, ratios of effort, correlations of loads and answers with
intervals and corrections, similarity to styles, and what the time limit ended.

STUDY is a folder with the tables samples, edits and, where there was a listening test, listening, each as .csv, .jsonl
or .parquet. The report goes to STUDY/report, or to --out: report.md, tables.json, one CSV a table, with the extra
report figures as SVG, and with the extra studies a mixed model.
"""

_PLAN_HELP = """\
Simulate studies with a known effect, and tell how often one of a size finds it: power, coverage of the interval and its
width, by the number of pieces.
"""

_BUILD_HELP = """\
Make the folder of an editing test out of samples: a page with a piano roll on which each editor repairs the samples of
a plan, blind and against the clock, and the key to it.

SAMPLES is a table (.csv, .jsonl or .parquet) with the columns sample_id, piece_id, style, model, role (proposed or
baseline) and midi, a file. Each piece and style has one sample of each role.
"""

_DEMO_HELP = """\
Make the folder of a study to try: six pieces of the package with triads, whose accompaniment was given mistakes by a
rule, few of them in the "proposed" samples and many in the "baseline". Needs the extra symbolic.
"""

_COLLECT_HELP = """\
Play the logs of all editors again, count them, and write the tables that the step report reads, with the edited samples
as MIDI files, to STUDY/collected or --out. FILES are those that editors got from a page without a server.
"""

_BUILD_EXAMPLES = """\
examples:
  music-evals editing-test build samples.csv --contact "Ada, ada@example.org" --editors 12 --seed 8241 --out study
  music-evals editing-test serve study
  music-evals editing-test collect study
  music-evals editing-test report study/collected
"""

_REPORT_EXAMPLES = """\
examples:
  music-evals editing-test report study
  music-evals editing-test report study --epsilon 1 --out results/study --json
"""

_PLAN_EXAMPLES = """\
examples:
  music-evals editing-test plan --ratio 0.8
  music-evals editing-test plan --ratio 0.7 --pieces 6,12,24 --editors 12 --edits 3 --draws 500
"""


def add(verbs: Any) -> None:
    """Add the verb ``editing-test``."""
    text = "plan, build, serve, collect and report a study with editors"
    verb = add_verb(verbs, "editing-test", None, text, _HELP, _BUILD_EXAMPLES)
    steps = verb.add_subparsers(title="steps", required=True, metavar="STEP")
    text = "samples to a study in the browser"
    add_verb(steps, "build", _build, text, _BUILD_HELP, _BUILD_EXAMPLES, options=_add_build_options)
    examples = "examples:\n  music-evals editing-test demo --out study\n  music-evals editing-test serve study\n"
    step = add_verb(steps, "demo", _demo, "a study to try", _DEMO_HELP, examples)
    step.add_argument("--out", required=True, metavar="DIR", help="new folder of the study")
    add_serve(steps, "editing-test")
    step = add_verb(steps, "collect", _collect, "what editors sent to tables", _COLLECT_HELP, _BUILD_EXAMPLES)
    step.add_argument("folder", metavar="STUDY", help="folder of the study")
    step.add_argument("files", nargs="*", metavar="FILES", help="files that editors sent")
    step.add_argument("--out", metavar="DIR", help="folder of the tables (default: STUDY/collected)")
    add_list(step, "--leave-out", "an editor who is left out; may be given again", metavar="NUMBER")
    step.add_argument("--leave-out-marked", action="store_true", help="leave out edits that are hard to believe")
    step.add_argument("--logs", metavar="DIR", help="also write the logs of who agreed to it, as a data set")
    step.add_argument("--licence", default="cc-by-4.0", metavar="ID", help="of that data set (default: %(default)s)")
    step.add_argument("--push", metavar="OWNER/NAME", help="send it to the Hub, private unless made so before")
    step = add_verb(steps, "report", _report, "tables of a study", _REPORT_HELP, _REPORT_EXAMPLES)
    step.add_argument("study", metavar="STUDY", help="folder of its tables")
    step.add_argument("--out", metavar="DIR", help="folder of the report (default: STUDY/report)")
    step.add_argument("--confidence", type=float, default=0.95, help="level of the intervals (default: %(default)g)")
    step.add_argument(
        "--epsilon", type=float, default=0.0, help="added to both sides of a ratio (default: a load of 0 is refused)"
    )
    step.add_argument(
        "--time-limit", type=float, default=1800.0, dest="time_limit_s", metavar="SECONDS",
        help="longest time for an edit (default: %(default)g)",
    )  # fmt: skip
    step.add_argument("--json", action="store_true", help="print the tables as JSON in place of the report")
    step = add_verb(steps, "plan", _plan, "how large a study must be", _PLAN_HELP, _PLAN_EXAMPLES)
    step.add_argument("--ratio", type=float, default=0.8, help="true ratio of loads (default: %(default)g)")
    step.add_argument("--pieces", default="6,12,24", metavar="N,N", help="sizes (default: %(default)s)")
    step.add_argument("--styles", type=int, default=2, metavar="N", help="target styles (default: %(default)s)")
    step.add_argument("--editors", type=int, default=12, metavar="N", help="how many (default: %(default)s)")
    step.add_argument("--edits", type=int, default=3, metavar="N", help="of each sample (default: %(default)s)")
    step.add_argument("--draws", type=int, default=200, metavar="N", help="studies a size (default: %(default)s)")
    step.add_argument("--confidence", type=float, default=0.95, help="level of the intervals (default: %(default)g)")
    step.add_argument("--seed", type=int, default=0, help="of the draws (default: %(default)s)")
    step.add_argument("--json", action="store_true", help="print the table as JSON")


def _add_build_options(step: Any) -> None:
    from music_evals.studies.editing.study import EditingSettings

    step.add_argument("samples", metavar="SAMPLES", help="table of the samples")
    add_options(step, EditingSettings)
    add_introduction_options(step)
    step.add_argument("--out", required=True, metavar="DIR", help="new folder of the study")


def _demo(options: argparse.Namespace) -> int:
    from music_evals.datasets.style_transfer_pieces.build import PIECES, piece_score
    from music_evals.studies.editing.study import write_demo_samples
    from music_evals.studies.folders import default_introduction

    introduction = default_introduction("editing", "An editing test to try", "Who serves this page")
    with tempfile.TemporaryDirectory() as folder:
        samples = write_demo_samples(folder, {name: piece_score(name) for name in PIECES})
        _write_study(options.out, samples, "demo", introduction)
    return 0


def _build(options: argparse.Namespace) -> int:
    from music_evals.studies.editing.study import EditingSettings

    locked = tuple(options.locked.split(",")) if options.locked else None
    settings = from_options(options, EditingSettings, limit_sec=options.limit_sec or None, locked=locked)
    introduction = introduction_of(options, "editing")
    study = _write_study(options.out, options.samples, options.study, introduction, settings)
    n_samples = len(study.settings["samples"]) - 1
    say(f"{len(study.plans)} plans over {n_samples} samples; key/ stays with you, page/ is what editors see")
    return 0


def _write_study(
    out: str, samples: str | Path, name: str, introduction: Introduction, settings: EditingSettings | None = None
) -> StudyFolder:
    """Make the folder of a study, and print where it is."""
    from music_evals.studies.editing.study import EditingSettings, build_editing_study
    from music_evals.ui.studies.page import study_page

    page, settings = study_page("editing", introduction.title), settings or EditingSettings()
    study = build_editing_study(out, samples, study=name, introduction=introduction, page=page, settings=settings)
    with to_stdout():
        print(study.folder)
    return study


def _collect(options: argparse.Namespace) -> int:
    from music_evals.errors import InvalidInputError
    from music_evals.hub.folders import send_folder
    from music_evals.pipelines.study_tables import tell_marks
    from music_evals.studies.editing.answers import collect_edits, write_collected
    from music_evals.studies.editing.publishing import write_logs
    from music_evals.studies.folders import read_study_folder

    if options.push and not options.logs:
        raise InvalidInputError("name the folder of the data set too, with --logs")
    study = read_study_folder(options.folder)
    collected = collect_edits(
        study, options.files, leave_out=options.leave_out, leave_out_marked=options.leave_out_marked
    )
    folder = Path(options.out) if options.out else study.folder / "collected"
    tables = write_collected(collected, folder)
    with to_stdout():
        print(folder)
    left = f"; {collected.n_left_out} that were marked are left out" if options.leave_out_marked else ""
    say(f"{len(tables.edits['time_s'])} edits by {len(collected.participants)} editors{left}")
    for line in tell_marks(tables.edits["editor_id"].tolist(), tables.edits["marks"].tolist()):
        say(line)
    if options.logs:
        n_agreed = write_logs(study, collected, options.logs, licence=options.licence)
        say(f"{options.logs}: the logs of {n_agreed} editors who agreed")
    if options.push:
        say(send_folder(options.logs, options.push, title=f"Editing test: logs of {n_agreed} editors").url)
    return 0


def _report(options: argparse.Namespace) -> int:
    from music_evals.errors import MissingBackendError
    from music_evals.pipelines.editing_test import evaluate_editing_test
    from music_evals.pipelines.study_tables import read_study
    from music_evals.studies.editing.figures import draw_figures
    from music_evals.studies.editing.mixed_model import mixed_models
    from music_evals.studies.editing.report import report_text, write_report

    study = read_study(options.study)
    shared = {"confidence": options.confidence, "epsilon": options.epsilon}
    tables = evaluate_editing_test(study, time_limit_s=options.time_limit_s, **shared)
    extras: dict[str, Any] = {}
    for name, make in (("mixed", lambda: mixed_models(study, **shared)), ("figures", lambda: draw_figures(tables))):
        try:
            extras[name] = make()
        except MissingBackendError as error:
            say(f"note: {error}")
    tables |= {"mixed_models": extras["mixed"]} if "mixed" in extras else {}
    folder = Path(options.out) if options.out else Path(options.study) / "report"
    files = write_report(tables, folder, confidence=options.confidence, figures=extras.get("figures"))
    with to_stdout():
        whole = files["tables.json"].read_text(encoding="utf-8").rstrip()
        print(whole if options.json else report_text(tables, confidence=options.confidence).rstrip())
    say(f"{folder}: {', '.join(files)}")
    return 0


def _plan(options: argparse.Namespace) -> int:
    from music_evals.studies.editing.simulation import StudyDesign, plan_sizes

    pieces = sizes_of(options.pieces, "--pieces")
    design = StudyDesign(
        styles=tuple(f"style {number}" for number in range(1, options.styles + 1)),
        n_editors=options.editors,
        edits_per_sample=options.edits,
        ratio=options.ratio,
    )
    sizes = plan_sizes(
        design, pieces, n_draws=options.draws, confidence=options.confidence, seed=options.seed,
        progress=lambda done, n: say(f"size {done} of {n}"),
    )  # fmt: skip
    with to_stdout():
        if options.json:
            print(json.dumps([size._asdict() for size in sizes], indent=1))
        else:
            print("pieces  edits  power  coverage  upper/lower end")
            for n_pieces, n_edits, power, coverage, width in sizes:
                print(f"{n_pieces:6}  {n_edits:5}  {power:5.2f}  {coverage:8.2f}  {width:15.2f}")
    return 0
