"""The verb ``push``."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, Any

from music_evals.cli.console import say, to_stdout
from music_evals.cli.options import add_verb, from_options
from music_evals.cli.publish import advising, quieten_hub, say_waiting
from music_evals.errors import HubRightsError, MusicEvalsError, OtherResultsError

if TYPE_CHECKING:
    from music_evals.hub.pushing import Pushed

_HELP = """\
Write the scores of a run into the card of a model on the Hub: the model-index of its README.md, and one entry below
.eval_results for each metric that the dataset declares a task for. One commit, or a pull request; other results on the
card stay as they are.

Needs a token that may write (HF_TOKEN, or hf auth login).
"""

_EXAMPLES = """\
examples:
  music-evals push results/jsb --model my-org/anticipation_rnn --dataset my-org/jsb_chorales --dry-run
  music-evals push results/jsb --model someone/inpainter --dataset my-org/jsb_chorales --pr
"""


_ADVICE: dict[type[MusicEvalsError], str] = {
    OtherResultsError: "--overwrite lets values change, --adopt with it those of another system",
    HubRightsError: "--pr proposes the change",
}


def add(verbs: Any) -> None:
    """Add the verb ``push``."""
    verb = add_verb(verbs, "push", _run, "write scores into a model card", _HELP, _EXAMPLES)
    verb.add_argument(
        "results",
        metavar="RESULTS",
        help="folder of a run or study (its --out), or its results.json; what `benchmark` found is always proposed",
    )
    verb.add_argument("--model", required=True, metavar="ORG/NAME", help="model on the Hub")
    verb.add_argument("--system", metavar="NAME", help="system in the results (default: the one called like the model)")
    inputs = verb.add_argument_group("the data, if the results do not name it")
    inputs.add_argument("--dataset", metavar="ORG/NAME", help="dataset on the Hub")
    inputs.add_argument("--config", help="config of the dataset")
    inputs.add_argument("--split", help="split of the dataset")
    how = verb.add_argument_group("how")
    how.add_argument("--source", metavar="URL", help="what stands behind the scores: records, a report, a paper")
    how.add_argument("--pr", dest="pull_request", action="store_true", help="open a pull request")
    how.add_argument("--dry-run", action="store_true", help="send nothing; print the diff")
    how.add_argument("--overwrite", action="store_true", help="let values on the card become others")
    how.add_argument("--adopt", action="store_true", help="the same for values that are of another system")
    how.add_argument("--json", action="store_true", help="print the outcome as JSON")


def _run(options: argparse.Namespace) -> int:
    from music_evals.hub.pushing import push_results

    quieten_hub()
    with advising(_ADVICE):
        done = from_options(options, push_results, waiting=say_waiting)
    for note in done.notes:
        say(f"note: {note}")
    if options.dry_run and done.owners and not options.adopt:
        say(f"note: values of {', '.join(done.owners)} would become others, which needs --adopt and --overwrite")
    elif options.dry_run and done.changed and not options.overwrite:
        say(f"note: {len(done.changed)} values on the card would change, which needs --overwrite")
    content = {
        "model": done.model,
        "url": done.url or None,
        "files": dict(done.files),
        "changed": [change.as_json() for change in done.changed],
        "tasks": dict(done.tasks),
        "notes": list(done.notes),
    }
    with to_stdout():
        print(json.dumps(content, indent=2) if options.json else _as_text(done, dry_run=options.dry_run))
    return 0


def _as_text(done: Pushed, *, dry_run: bool) -> str:
    if not done.files:
        return f"{done.model} holds these results already; nothing was sent."
    if dry_run:
        return f"{done.diff}\nNothing was sent."
    lines = [f"{done.model}: {len(done.tasks)} tasks, {', '.join(done.files)}"]
    lines += [f"  {change.entry}: {change.old} became {change.new}" for change in done.changed]
    return "\n".join([*lines, done.url])
