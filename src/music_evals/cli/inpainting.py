"""The verb ``inpainting``."""

from __future__ import annotations

import argparse
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from music_evals.cli.console import Bar, list_failures, print_results, say, why_not_drawn
from music_evals.cli.options import add_options, add_output_options, add_verb, from_options, in_options
from music_evals.errors import InvalidInputError, OutputError

if TYPE_CHECKING:
    from music_evals.benchmark.tasks.inpainting.task import Outcome

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
    add_verb(
        verbs,
        "inpainting",
        _run,
        "evaluate models and baselines on score inpainting",
        _HELP,
        _EXAMPLES,
        needs=lambda options: ["models"] * bool(options.models) + ["report"] * (options.report is not False),
        options=_add_options,
    )


def _add_options(verb: Any) -> None:
    from music_evals.benchmark.tasks.inpainting.task import Settings

    where = add_options(verb, Settings)["output"]
    add_output_options(where, picture=("report", "report.html"))
    where.add_argument("--update-card", action="store_true", help="write the scores into the model folder's README.md")


def _run(options: argparse.Namespace) -> int:
    # Small networks gain little from threads, and lose an order of magnitude where another program wants the cores;
    # one thread also gives the same sums on every machine. Work is spread over processes instead.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    from music_evals.benchmark.contents import n_failures
    from music_evals.benchmark.tables import text_report
    from music_evals.benchmark.tasks.inpainting.task import INPAINTING, Settings

    if options.update_card and options.limit is not None:
        raise InvalidInputError("--update-card shows scores of the whole split; leave out --limit or --update-card")
    undrawn = why_not_drawn(options.report, "report.html")
    settings = from_options(options, Settings, report=options.report is not False and not undrawn)
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
    reasons = []
    for row in failures:  # an item that could not be read has neither system nor seed
        who = "input" if row["system"] is None else f"{row['system']}, seed {row['seed']}"
        metric = "" if row["metric"] is None else f", {row['metric']}"
        reasons.append((f"{row['item']} ({who}{metric})", in_options(row["error"], options.verb)))
    code = list_failures(reasons, "see the records", n_failed)
    if failures and options.update_card:
        raise OutputError(
            f"{n_failed} results failed; cards of models are left as they were, run again or evaluate other items"
        )
    return code


def _write_cards(outcome: Outcome, out: Path, *, update: bool) -> dict[str, Path]:
    """Write a card for each model that was evaluated, and into its own folder on request."""
    from music_evals.files import write_atomically
    from music_evals.hub.cards import fill_card
    from music_evals.repositories import MODELS, find_repository

    files = {}
    systems = outcome.results["systems"]
    models = [name for name, held in systems.items() if held["role"] == "model" and "source" in held]
    for name in models:
        readme = Path(find_repository(systems[name]["source"], MODELS, "model")[0]) / "README.md"
        card = fill_card(outcome.results, name, readme.read_text(encoding="utf-8") if readme.is_file() else None)
        label = "model_card" if len(models) == 1 else "model_card_" + re.sub(r"[\W_]", "_", name)
        files[label] = out / f"{label}.md"
        write_atomically(files[label], card.encode())
        if update and readme.parent.is_dir() and readme not in files.values():  # of two decodings the first
            write_atomically(readme, card.encode())
            files[f"card of {name}"] = readme
    return files
