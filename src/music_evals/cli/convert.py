"""The verb ``convert``: weights that are published as pickled files, as safetensors."""

from __future__ import annotations

import argparse
from typing import Any

from music_evals.cli.console import say, to_stdout
from music_evals.cli.options import add_verb
from music_evals.errors import importing

_HELP = """\
Write a safetensors file beside the pickled weights (.bin, .pth) of each model in a folder and below: only safetensors
are loaded. They are read in a process of their own, with limits, that makes nothing but tensors. They stay.
"""

_EXAMPLES = """\
examples:
  music-evals convert weights/refinpaint
"""


def add(verbs: Any) -> None:
    """Add the verb ``convert``."""
    verb = add_verb(verbs, "convert", _run, "make safetensors of pickled weights", _HELP, _EXAMPLES)
    verb.add_argument("folder", help="where the pickled files are")


def _run(options: argparse.Namespace) -> int:
    from music_evals.editing.conversion import convert

    with importing("editing", "the conversion of weights"):
        import torch  # noqa: F401  # which the other process needs
    written = convert(options.folder)
    if not written:
        say(f"{options.folder} holds no pickled weights that are not there as safetensors already")
    with to_stdout():
        print(*written, sep="\n", end="\n" * bool(written))
    return 0
