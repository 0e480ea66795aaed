"""The verb ``edit``."""

from __future__ import annotations

import argparse
import json
from typing import Any

from music_evals.annotations import EDIT_TASKS, EditInstruction, targets_of
from music_evals.cli.console import Bar, list_failures, say, to_stdout
from music_evals.cli.options import (
    add_list,
    add_options,
    add_output_options,
    add_verb,
    add_writer_options,
    from_options,
    writer_of,
)
from music_evals.options import with_commas
from music_evals.protocols import EDITORS

_HELP = f"""\
Let an editing system edit recordings or scores, and write what `preserve` scores.

Systems: {", ".join(EDITORS)}. Those without weights do what their parameters say
(--set), whatever the instruction asks.

Writes into --out: edits/, the edited files, at the rate, length and loudness of their sources (what was done to them is
in the records; a time stretch keeps its own length); edit_records, the records; and manifest.jsonl, which
`music-evals preserve --manifest` reads. A run that was stopped goes on when the same command is given again.
"""

_EXAMPLES = """\
examples:
  music-evals edit song.wav --system transposition --set semitones=3 --out edited
  music-evals edit folder --system noise_vocoder --seconds 30 --mono --out vocoded
  music-evals edit song.mid --system reorchestration --render additive --out other_instruments
  music-evals edit --dataset known_edits --config small --limit 2 --system hpss_remix --out remixed
  music-evals edit song.wav --system zeta --weights cvssp/audioldm2-music --weights-revision COMMIT \\
      --mono --seconds 30 --source-prompt "a rock song" --before rock --after jazz --out jazz
  music-evals preserve --manifest edited/manifest.jsonl --intended harmony,melody --out results/edited
"""

_INSTRUCTED = ("source_prompt", "target_prompt", "before", "after", "task", "bars", "keep", "intended", "targets")


def add(verbs: Any) -> None:
    """Add the verb ``edit``."""
    add_verb(
        verbs, "edit", _run, "let an editing system edit recordings or scores", _HELP, _EXAMPLES, options=_add_options
    )


def _add_options(verb: Any) -> None:
    from music_evals.benchmark.tasks.edits.task import Settings

    groups = add_options(verb, Settings)
    group, how = groups["asked"], groups["how"]
    group.add_argument("--instruction", metavar="TEXT", help="what is to change, in words")
    group.add_argument("--source-prompt", default="", metavar="TEXT", help="description of the source")
    group.add_argument("--target-prompt", default="", metavar="TEXT", help="description of what is wanted")
    group.add_argument("--before", default="", metavar="WORD", help="word of the source prompt that is exchanged")
    group.add_argument("--after", default="", metavar="WORD", help="word that takes its place")
    group.add_argument("--task", default="other", choices=EDIT_TASKS, help="kind of edit (default: %(default)s)")
    group.add_argument("--bars", metavar="FIRST:END", help="bars that may change, from 0, the end excluded")
    group.add_argument("--keep", type=int, metavar="N", help="how much of these bars is kept, 0 (nothing) to 10 (all)")
    group.add_argument("--intended", default="", metavar="FACETS", help="facets that are meant to change, with commas")
    text = "what can be measured afterwards, as tempo=1.2x; key=A minor, for the manifest that preserve reads"
    group.add_argument("--targets", default="", metavar="TARGETS", help=text)
    group.add_argument(
        "--generate",
        default="",
        metavar="TASKS",
        help="write instructions for these tasks (genre, style, mood, timbre) from the description of each source: its "
        "column description, or --source-prompt; by templates unless a model is named",
    )
    help_ = (
        "language model that writes them: folder or Hub id[@revision], or with --instruction-endpoint its id there; "
        "asked once, and kept in instructions.jsonl"
    )
    add_writer_options(group, "instruction", help_)
    text = "an option of the system, with or without SYSTEM. in front; may be given again"
    add_list(how, "--set", text, dest="settings", metavar="OPTION=VALUE")
    how.add_argument(
        "--weights",
        metavar="PLACE",
        help="for a system with weights: a folder, or an id of the Hub with --weights-revision; they have a licence of "
        "their own",
    )
    how.add_argument("--weights-revision", metavar="COMMIT", help="commit of the Hub id of --weights")
    how.add_argument("--device", help="where a system with weights computes, as cpu or cuda:1 (default: cpu)")
    add_output_options(groups["output"], "print the records of the edits")


def _run(options: argparse.Namespace) -> int:
    from music_evals.benchmark.tasks.edits.task import EDITS, Settings
    from music_evals.benchmark.tasks.edits.work import read_options

    instruction, generate = _instruction(options), tuple(with_commas(options.generate))
    loaded = {name: getattr(options, name) for name in ("weights", "weights_revision", "device")}
    texts = [f"{options.system}.{name}={value}" for name, value in loaded.items() if value is not None]
    read = read_options([*options.settings, *texts], [options.system])
    parameters, weights = read.get(options.system, ({}, {}))
    more = {"instruction": instruction, "generate": generate, "parameters": parameters, "weights": weights}
    writer = writer_of(options, "instruction", options.instruction_model)
    settings = from_options(options, Settings, **more, writer=writer)
    with Bar("edit") as bar:
        edits = EDITS.run(settings, progress=bar, tell=lambda text: say(f"note: {text}"))
    code = list_failures(edits.failures, f"see {edits.files['records']}")
    warned = [(row["item"], text) for row in edits.rows for text in row.get("warnings", ())]
    for item, text in warned:
        say(f"note: {item}: {text}")
    with to_stdout():
        if options.json:
            print(json.dumps(edits.rows, ensure_ascii=False))
        else:
            n = len(edits.rows) - len(edits.failures)
            print(f"{n} of {len(edits.rows)} edited by {settings.system}: {edits.files['manifest']}")
    return code


def _instruction(options: argparse.Namespace) -> EditInstruction | None:
    from music_evals.benchmark.tasks.edits.sources import bars_of

    fields = {name: getattr(options, name) for name in _INSTRUCTED if getattr(options, name) not in {None, "", "other"}}
    if options.instruction is None and not fields:
        return None
    text = options.instruction or options.target_prompt
    if not text and options.before:
        text = f"Change {options.before} to {options.after}."
    instruction: EditInstruction = from_options(
        options,
        EditInstruction,
        text=text or "What the other options say.",
        bars=None if options.bars is None else bars_of(options.bars),
        confidence=options.keep,
        intended_facets=tuple(with_commas(options.intended)),
        targets=targets_of(options.targets) if options.targets else (),
    )
    return instruction
