"""The verb ``inpainting``."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from music_evals.cli._shared import (
    Bar,
    add_dataset_options,
    add_engine_options,
    add_interval_options,
    add_list,
    add_output_options,
    add_verb,
    chosen,
    in_options,
    list_failures,
    print_results,
    quieten,
    say,
    why_not_drawn,
)
from music_evals.errors import InvalidInputError, OutputError

if TYPE_CHECKING:
    from music_evals.benchmark.tasks.inpainting.task import Outcome

__all__ = ["add"]

_HELP = """\
Evaluate models and baselines on score inpainting: fill 4 measures between 6 of past and 6 of future.

Writes into --out: records (every prediction and score), results.json, table.md, report.html and a model card.
A run that was killed goes on where it stood when the same command is given again.
"""

_EXAMPLES = """\
examples:
  music-evals inpainting --dataset jsb_chorales --config musib --model models/anticipation_rnn --out results/jsb
  music-evals inpainting --dataset jsb_chorales --config musib --predictions mine.jsonl --out results/mine
  music-evals inpainting --dataset jsb_chorales --config musib --predictions part.jsonl --allow-missing \\
      --extensions all --out results/part
  music-evals inpainting --pairs my_midi_pairs --out results/pairs --json > results.json
  music-evals inpainting --pairs my_chorale_pairs --voice Soprano --out results/soprano
  music-evals inpainting --dataset jsb_chorales --protocol official --model models/anticipation_rnn \\
      --decoding teacher_forced --out results/official
"""


def add(verbs: Any) -> None:
    """Add the verb ``inpainting``."""
    verb = add_verb(
        verbs,
        "inpainting",
        _run,
        "evaluate models and baselines on score inpainting",
        _HELP,
        _EXAMPLES,
        needs=lambda options: ["models"] * bool(options.models) + ["report"] * (options.report is not False),
    )
    inputs = verb.add_argument_group("the data (one of --dataset and --pairs)")
    add_dataset_options(
        inputs,
        dataset="a name (see list), a folder or a Hub id",
        limit="evaluate the first N items only; best baselines are still chosen on all of validation",
    )
    inputs.add_argument(
        "--pairs", metavar="PATH", help="folder or manifest (CSV, JSONL) of reference and prediction files"
    )
    inputs.add_argument(
        "--voice", metavar="NAME", help="of --pairs: name or number of the voice, where several have notes"
    )
    inputs.add_argument(
        "--highest",
        action="store_true",
        help="of --pairs: score the highest notes, of the --voice or of all but drums, where several sound at once",
    )
    inputs.add_argument(
        "--measures",
        choices=("notated", "fixed"),
        help="of --pairs: as on the page, where files in another meter than 4/4 fail by name (the default), or four "
        "quarters each from the start, wherever the bar lines are",
    )
    who = verb.add_argument_group("what is evaluated")
    add_list(
        who,
        "--model",
        "a name (see list), a folder or a Hub id[@revision], and :DECODING after it to evaluate one that is not its "
        "default; may be given again",
        dest="models",
    )
    who.add_argument(
        "--predictions", metavar="FILE", help='JSON lines {"item_id": ..., "middle": [96 tokens]}, or their URL'
    )
    who.add_argument(
        "--allow-missing",
        action="store_true",
        help="take --predictions or --pairs for part of the items; the others count as failed: they are listed, score "
        "0 at note F1 and position, and rank the system below all that were scored on more",
    )
    who.add_argument("--baselines", default="all", help="all, none, or names with commas (default: %(default)s)")
    who.add_argument("--seeds", type=int, default=5, dest="n_seeds", metavar="N", help="seeds (default: %(default)s)")
    who.add_argument("--decoding", help="decoding of the models; one that reads the true middle is labelled as leaking")
    who.add_argument("--temperature", type=float, help="temperature of the models")
    who.add_argument("--cache", metavar="DIR", help="keep what models answer here, for other runs and machines too")
    how = verb.add_argument_group("how")
    how.add_argument(
        "--extensions",
        default="none",
        metavar="NAMES",
        help="further scores, consonance_pitch_accuracy and self_replication_rate: all, none, or names with commas "
        "(default: %(default)s; interval divergence and repeated notes are always shown)",
    )
    how.add_argument("--variant", help="corrected (default), official or paper")
    how.add_argument("--protocol", help="official: the published conditions, beside the published table")
    add_interval_options(how)
    add_engine_options(how, "number of cores, at most 4, for networks on many items, else 1")
    where = add_output_options(verb, has_figures=True)
    where.add_argument("--update-card", action="store_true", help="write the scores into the model folder's README.md")


def _run(options: argparse.Namespace) -> int:
    # Small networks gain little from threads, and lose an order of magnitude where another program wants the cores;
    # one thread also gives the same sums on every machine. Work is spread over processes instead.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    from music_evals.benchmark.contents import n_failures
    from music_evals.benchmark.tables import text_report
    from music_evals.benchmark.tasks.inpainting.task import INPAINTING, Settings

    _check_card(options)
    undrawn = why_not_drawn(options.report, "report.html")
    settings = Settings(**{**chosen(options, Settings), "report": options.report is not False and not undrawn})
    quieten()
    with Bar() as bar:
        outcome = INPAINTING.run(settings, progress=bar)
    failures, n_failed = outcome.results["failures"], n_failures(outcome.results)
    update = options.update_card and not failures
    files = {**outcome.files, **_write_cards(outcome, Path(options.out), update=update)}
    for note in outcome.notes:
        say(f"note: {note}")
    if undrawn:
        say(undrawn)
    print_results(text_report(outcome.results, published=options.protocol is not None), files, as_json=options.json)
    reasons = [(_failed(row), in_options(row["error"], options.verb)) for row in failures]
    code = list_failures(reasons, "see the records", n_failed)
    if failures and options.update_card:
        raise OutputError(
            f"{n_failed} results failed; cards of models are left as they were, run again or evaluate other items"
        )
    return code


def _check_card(options: argparse.Namespace) -> None:
    """Keep scores of a part of the test set off the card."""
    if options.update_card and options.limit is not None:
        raise InvalidInputError("--update-card shows scores of the whole split; leave out --limit or --update-card")


def _failed(row: Mapping[str, Any]) -> str:
    """Name what failed: an item that could not be read has neither system nor seed."""
    who = "input" if row["system"] is None else f"{row['system']}, seed {row['seed']}"
    metric = "" if row["metric"] is None else f", {row['metric']}"
    return f"{row['item']} ({who}{metric})"


def _write_cards(outcome: Outcome, out: Path, *, update: bool) -> dict[str, Path]:
    """Write a card for each model that was evaluated, and into its own folder on request."""
    from music_evals.files import write_atomically
    from music_evals.hub.cards import fill_card

    files = {}
    systems = outcome.results["systems"]
    models = [name for name, held in systems.items() if held["role"] == "model" and "source" in held]
    for name in models:
        readme = _folder_of(systems[name]["source"]) / "README.md"
        card = fill_card(outcome.results, name, readme.read_text(encoding="utf-8") if readme.is_file() else None)
        label = "model_card" if len(models) == 1 else f"model_card_{_file_name(name)}"
        files[label] = out / f"{label}.md"
        write_atomically(files[label], card.encode())
        if update and readme.parent.is_dir() and readme not in files.values():  # of two decodings the first
            write_atomically(readme, card.encode())
            files[f"card of {name}"] = readme
    return files


def _folder_of(source: str) -> Path:
    from music_evals.repositories import MODELS, find_repository

    return Path(find_repository(source, MODELS, "model")[0])


def _file_name(name: str) -> str:
    return "".join(letter if letter.isalnum() else "_" for letter in name)
