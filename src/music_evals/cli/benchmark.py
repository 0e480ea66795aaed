"""The verb ``benchmark``: studies that run several verbs over several systems."""

from __future__ import annotations

import argparse
import json
from typing import Any

from music_evals.cli.console import Bar, list_failures, say, to_stdout
from music_evals.cli.options import add_list, add_options, add_output_options, add_verb, by_system, from_options
from music_evals.errors import InvalidInputError
from music_evals.options import with_commas
from music_evals.protocols import EDITORS, editor_names

_HELP = """\
MuseCPBench: let editing systems edit the same music, score what each preserved, and print the tables of the study.

The protocol `ours` gives all systems the same pieces and instructions: recordings to those that edit sound, the same
pieces as scores to those that edit nothing else. The protocol `paper` gives each what the paper gave it, as far as you
attach it. Controls (the source itself, unrelated music; a codec alone, where its weights are named) edit what others
did. A system that cannot run is left out, with the reason; where it was asked for by name the exit code is 1.

Writes into --out: edits/, a folder a system; preserved/, what the verb preserve writes; musecpbench.json and
musecpbench.md, the tables by facet, by task and by backbone, the paper's findings tested on this run, and the published
table 2 beside it with the reason for each cell that cannot be compared. A study that was stopped goes on when the same
command is given again.
"""

_EXAMPLES = """\
examples:
  music-evals benchmark musecpbench --out study
  music-evals benchmark musecpbench --sources songs.jsonl --systems noise_vocoder,zeta \\
      --weights zeta=cvssp/audioldm2-music@COMMIT --set zeta.start=120 --device cuda --out study
  music-evals benchmark musecpbench --systems effects --outputs closed=their_files --out study
  music-evals benchmark musecpbench --protocol paper --paper-sources zeta=medleydb.jsonl \\
      --weights zeta=cvssp/audioldm2-music@COMMIT --device cuda --out paper
"""


def add(verbs: Any) -> None:
    """Add the verb ``benchmark``."""
    verb = add_verb(verbs, "benchmark", _run, "run a whole study", "Run a whole study.")
    studies = verb.add_subparsers(title="studies", required=True, metavar="STUDY")
    add_verb(studies, "musecpbench", _run, "what editing systems preserve", _HELP, _EXAMPLES, options=_add_options)


def _add_options(study: Any) -> None:
    from music_evals.benchmark.tasks.musecpbench.task import Settings

    groups = add_options(study, Settings)
    who = groups["who"]
    help_ = f"with commas (default: all): {', '.join(EDITORS)}; one of another package is MODULE:CLASS"
    who.add_argument("--systems", default="", metavar="NAMES", help=help_)
    text = "an option of a system, such as zeta.start=100 or resynth.codec=audioldm2; may be given again"
    add_list(who, "--set", text, dest="settings", metavar="SYSTEM.OPTION=VALUE")
    text = "folder, or Hub id@COMMIT, of a system that needs weights; may be given again"
    add_list(who, "--weights", text, metavar="SYSTEM=PLACE")
    who.add_argument("--device", help="where systems with weights compute, as cpu or cuda:1 (default: cpu)")
    add_output_options(groups["output"], "print the tables as JSON")


def _run(options: argparse.Namespace) -> int:
    from music_evals.benchmark.tasks.edits.work import read_options
    from music_evals.benchmark.tasks.musecpbench.task import MUSECPBENCH, Settings

    systems = with_commas(options.systems)
    outputs = by_system(options.outputs, "--outputs")
    texts = list(options.settings)  # with what --weights says in the same form
    for name, place in by_system(options.weights, "--weights").items():
        source, at, revision = place.partition("@")
        texts += [f"{name}.weights={source}", *([f"{name}.weights_revision={revision}"] if at else [])]
    read = read_options(texts, [*editor_names(), *systems, *outputs])
    loaded = {name: weights for name, (_, weights) in read.items() if weights}
    if options.device and not loaded:
        raise InvalidInputError("--device goes with --weights; give that too")
    device = {"device": options.device} if options.device else {}
    settings = from_options(
        options,
        Settings,
        systems=systems,
        outputs=outputs,
        paper_sources=by_system(options.paper_sources, "--paper-sources"),
        parameters={name: parameters for name, (parameters, _) in read.items()},
        weights={name: device | weights for name, weights in loaded.items()},
    )
    with Bar("piece") as bar:
        study = MUSECPBENCH.run(settings, progress=bar)
    code = list_failures(study.failures, f"see the records below {settings.out}")
    for system, why in study.results["left_out"].items():
        if system not in study.results["refused"]:
            say(f"note: {system} was left out: {why}")
    with to_stdout():
        table = study.files["table"].read_text(encoding="utf-8")
        print(json.dumps(study.results, ensure_ascii=False) if options.json else table)
    return code
