"""All verbs of the command: their parser, and one of them run."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import os
import pkgutil
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from music_evals import __version__, errors
from music_evals.cli import completion
from music_evals.cli.console import EXIT_FAILURES, drop_stdout, say
from music_evals.cli.options import in_options
from music_evals.cli.parser import HelpFormatter, Parser
from music_evals.errors import MissingBackendError, MusicEvalsError, check_extras
from music_evals.files import check_folder

EXIT_USAGE = 2
FOLDER = Path(__file__).parent

VERBS = (
    "inpainting", "fill", "style_transfer", "edit", "prepare", "preserve", "benchmark", "lyrics", "describe",
    "discrepancy", "write_lyrics", "train", "corpus", "caimap", "publish", "push", "leaderboard", "listening_test",
    "editing_test", "frame", "listing", "examples", "convert",
)  # fmt: skip
"""Modules of this package, one a verb, in the order of the help; behind them come others that have a function `add`."""

# These happen to a run; every other named error is about what the run was asked to do.
_RUN_ERRORS = (
    errors.BackendError, errors.CorruptRecordsError, errors.HubError, errors.OutputError, errors.ParserCrashError,
)  # fmt: skip
_ASKED_FOR = (errors.OccupiedError, errors.OtherRunError)  # of them


def run(arguments: Sequence[str] | None = None) -> int:
    """Run a verb and return the exit code; None takes the arguments of this process."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    # the progress bars are ours: the data set library draws one for each split it reads
    os.environ.setdefault("HF_DATASETS_DISABLE_PROGRESS_BARS", "1")  # read when it is imported, which takes long
    if "datasets" in sys.modules:
        sys.modules["datasets"].disable_progress_bars()
    options = build_parser(words[0] if words else "").parse_args(words)
    command: Callable[[argparse.Namespace], int] = options.command
    try:
        with _plainly(options):
            if getattr(options, "out", None):
                check_folder(options.out, "out")
            return command(options)
    except MusicEvalsError as error:
        say(f"music-evals: error: {in_options(str(error), options.verb)}")
        return EXIT_FAILURES if isinstance(error, _RUN_ERRORS) and not isinstance(error, _ASKED_FOR) else EXIT_USAGE
    except BrokenPipeError:
        drop_stdout()  # the reader of our output went away
        return EXIT_FAILURES


@contextlib.contextmanager
def _plainly(options: argparse.Namespace) -> Iterator[None]:
    """Print warnings of ours as messages, since their place in the code helps no user, and name all missing extras."""
    with warnings.catch_warnings():
        show = warnings.showwarning

        def show_plainly(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
            if category.__module__ == MusicEvalsError.__module__:
                say(f"music-evals: warning: {in_options(str(message), options.verb)}")
            else:
                show(message, category, *place, **more)

        warnings.showwarning = show_plainly
        try:
            yield
        except MissingBackendError as error:
            if error.extra:  # the other extras that a command needs beside the one that it misses first
                check_extras(dict.fromkeys([*error.extra.split(","), *options.needs(options)]), error.feature)
            raise


def build_parser(verb: str = "") -> Parser:
    """Return the parser of the command and of one verb; of all, where it is none or one that tells of the others."""
    parser = Parser(
        prog="music-evals",
        formatter_class=HelpFormatter,
        description="How music models are judged.",
        epilog="Exit codes: 0 ok, 1 some items failed or results could not be written, 2 wrong usage or input.",
    )
    parser.add_argument("--version", action="version", version=f"music-evals {__version__}")
    verbs = parser.add_subparsers(title="verbs", prog=parser.prog, required=True, metavar="VERB")
    others = {module.name for module in pkgutil.iter_modules([str(FOLDER)]) if module.name[0] != "_"}
    names = (*VERBS, *sorted(others - {*VERBS, "completion", "verbs"}))
    # `list` and `completion` tell of all others
    lone = {name.replace("_", "-"): name for name in names if name != "listing"}
    for name in [lone[verb]] if verb in lone else names:
        module = importlib.import_module(f"music_evals.cli.{name}")
        if hasattr(module, "add"):
            module.add(verbs)
    if verb not in lone:
        completion.add(verbs, parser)
    return parser if verbs.choices else build_parser()
