"""The verb ``publish``."""

from __future__ import annotations

import argparse
import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from music_evals.cli.console import Bar, list_failures, say, to_stdout
from music_evals.cli.options import add_verb, from_options
from music_evals.errors import HubForeignError, HubRightsError, InvalidInputError, MusicEvalsError, worded

if TYPE_CHECKING:
    from music_evals.hub.publishing import Published

_HELP = """\
Publish repository folders on the Hub: a metric or Space folder becomes a Space, a dataset folder a dataset, a
model folder, with its variants, a model.

All are checked before anything is sent. Each gets one commit with all that differs, or none where nothing does: after a
failure the same command goes on. Needs a token that may write (HF_TOKEN, or hf auth login).
"""

_EXAMPLES = """\
examples:
  music-evals publish metrics/note_f1 datasets_scripts/jsb_chorales --org my-org --dry-run
  music-evals publish models/anticipation_rnn --org my-org --pr
  music-evals publish --all --org my-org --source https://github.com/my-org/music_evals
"""


_ADVICE: dict[type[MusicEvalsError], str] = {
    HubForeignError: "--adopt publishes over what others made, --org names another owner",
    HubRightsError: "--pr proposes the change, --org names another owner",
}
_STATES = {
    "there": "is there",
    "asked for": "was asked for",
    "would be asked for": "would be asked for",
    "refused": "was refused",
}


def add(verbs: Any) -> None:
    """Add the verb ``publish``."""
    verb = add_verb(verbs, "publish", _run, "publish metrics, datasets, models and Spaces", _HELP, _EXAMPLES)
    verb.add_argument("folders", nargs="*", metavar="FOLDER", help="folders, such as metrics/note_f1")
    verb.add_argument(
        "--all", action="store_true", dest="everything", help="every repository folder below the current folder"
    )
    verb.add_argument("--org", required=True, metavar="NAME", help="user or organisation that owns the repositories")
    verb.add_argument(
        "--pr", dest="pull_request", action="store_true", help="open pull requests on repositories that exist"
    )
    verb.add_argument("--dry-run", action="store_true", help="send nothing; list the files that would change")
    verb.add_argument("--private", action="store_true", help="repositories that are made are private")
    verb.add_argument("--prune", action="store_true", help="delete files on the Hub that the folder does not have")
    verb.add_argument("--adopt", action="store_true", help="publish over a repository that has no commit of ours")
    verb.add_argument(
        "--hardware",
        metavar="NAME",
        help="hardware of the Spaces that are named, such as zero-a10g or cpu-basic (default: what the cards suggest)",
    )
    verb.add_argument("--source", metavar="URL", help="source repository (default: that of pyproject.toml)")
    verb.add_argument(
        "--revision",
        metavar="COMMIT",
        help="commit of it that requirements pin (default: the last that changed the package, which must be pushed)",
    )
    verb.add_argument("--json", action="store_true", help="print the outcome as JSON")


def _run(options: argparse.Namespace) -> int:
    from music_evals.hub.publishing import publish
    from music_evals.hub.repository_folders import all_repository_folders, find_repository_folders

    if options.everything == bool(options.folders):
        raise InvalidInputError("name folders, or give --all for every one; not both")
    if options.everything and options.hardware:
        raise InvalidInputError("--hardware is for Spaces that are named; with --all each has what its card suggests")
    folders = all_repository_folders(".") if options.everything else find_repository_folders(options.folders)
    quieten_hub()
    with Bar("folder") as bar, advising(_ADVICE):
        done = from_options(options, publish, folders=folders, progress=bar, waiting=say_waiting)
    rows = [
        {
            "window": row.folder.label,
            "type": row.repository.type,
            "repository": row.repository.id,
            "status": row.status,
            "url": row.url,
            "changes": [change._asdict() for change in row.changes],
            "left": list(row.left),
            "kept": [change.as_json() for change in row.retained],
            "hardware": row.hardware._asdict() if row.hardware else None,
            "error": row.error or None,
        }
        for row in done
    ]
    with to_stdout():
        print(json.dumps(rows, indent=2) if options.json else _as_text(done, dry_run=options.dry_run))
    for row in done:
        if row.left:
            say(f"note: {row.repository} holds {', '.join(row.left)}, which the folder does not; --prune deletes them")
    failed = [(row.folder.label, row.error or "not tried") for row in done if row.error or row.status == "not tried"]
    return list_failures(failed, "see the table")


@contextlib.contextmanager
def advising(advice: Mapping[type[MusicEvalsError], str]) -> Iterator[None]:
    """Add the options that help to the errors of these kinds."""
    try:
        yield
    except MusicEvalsError as error:
        for kind, text in advice.items():
            if isinstance(error, kind):
                between = "\n" if "\n" in str(error) else "; "
                raise worded(type(error), f"{error}{between}{text}", vars(error)) from error
        raise


def say_waiting(action: str, seconds: float) -> None:
    """Say on stderr that the Hub has not answered yet."""
    say(f"waiting for the Hub for {seconds:.0f} s: {action}")


def quieten_hub() -> None:
    """Leave the progress bar to us: the client draws one for each upload."""
    import huggingface_hub.utils

    huggingface_hub.utils.disable_progress_bars()  # type: ignore[attr-defined]  # its documented name


def _as_text(done: Sequence[Published], *, dry_run: bool) -> str:
    lines = [["folder", "becomes", "outcome", "files", "size", "where"]]
    for row in done:
        size = sum(change.size for change in row.changes)
        shown = [str(len(row.changes)), _size(size)] if row.changes else ["", ""]
        lines.append([row.folder.label, str(row.repository), row.status, *shown, row.url])
    # columns of text, those of numbers to the right
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    numbers = {lines[0].index("files"), lines[0].index("size")}
    table = "\n".join(
        "  ".join(
            cell.rjust(width) if place in numbers else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )
    parts = [table]
    for row in (row for row in done if row.retained):
        heading = f"{row.repository} keeps its results, which `music-evals push --overwrite` changes:"
        retained = [f"  {change.entry}: {change.old}, in the folder {change.new}" for change in row.retained]
        parts.append("\n".join([heading, *retained]))
    running = [
        f"{row.repository}: hardware {row.hardware.name} {_STATES[row.hardware.state]}" for row in done if row.hardware
    ]
    parts += ["\n".join(running)] if running else []
    if dry_run:
        marks = {"new": "+", "changed": "~", "deleted": "-"}
        for row in (row for row in done if row.changes):
            changes = [f"  {marks[change.kind]} {change.path} ({_size(change.size)})" for change in row.changes]
            parts.append("\n".join([str(row.repository), *changes]))
        parts.append("Nothing was sent.")
    return "\n\n".join(parts)


def _size(n_bytes: int) -> str:
    size = float(n_bytes)
    for unit in ("B", "kB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:,.1f} MB"
