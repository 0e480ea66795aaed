"""The verb ``examples``: small files of our own, to try the other verbs on."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from music_evals.cli.console import say, to_stdout
from music_evals.cli.options import add_verb
from music_evals.errors import NoDataError, OutputError

_HELP = """\
Copy small files of our own into a folder, to try the other verbs on: recordings before and after edits, MIDI files,
predictions, lyrics, tags. Its README.md says what each is. Files that are there already stay as they are.
"""

_EXAMPLES = """\
examples:
  music-evals examples
  music-evals preserve --reference examples/originals --estimate examples/new_melody --out results/new_melody
"""


def add(verbs: Any) -> None:
    """Add the verb ``examples``."""
    verb = add_verb(verbs, "examples", _run, "copy small files to try things on", _HELP, _EXAMPLES)
    verb.add_argument("folder", nargs="?", default="examples", help="where to (default: %(default)s)")


def _run(options: argparse.Namespace) -> int:
    from music_evals.files import write_atomically
    from music_evals.repositories import EXAMPLES, shipped

    source, target = shipped(EXAMPLES), Path(options.folder)
    if source is None:
        raise NoDataError("this installation came without examples: install the package's wheel, or use a clone")
    files = sorted(path for path in source.rglob("*") if path.is_file() and path.suffix not in {".py", ".pyc"})
    differing, new = [], 0
    for path in files:
        place, content = target / path.relative_to(source), path.read_bytes()
        if not place.exists():
            try:
                place.parent.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise OutputError(f"cannot make the folder {place.parent}: {error.strerror or error}") from error
            write_atomically(place, content)
            new += 1
        elif not place.is_file() or place.read_bytes() != content:
            differing.append(str(place))
    say(f"{new} of {len(files)} files copied to {target}; {target / 'README.md'} says what they are")
    if differing:
        say(f"left as they are, for they differ from ours: {', '.join(differing)}")
    with to_stdout():
        print("\n".join(str(target / path.relative_to(source)) for path in files))
    return 0
