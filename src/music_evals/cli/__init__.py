"""The ``music-evals`` command.

Data goes to stdout, progress and messages to stderr. Exit codes: 0 all is well; 1 items failed (they are listed), or
results could not be written, or records are damaged; 2 the command or its input is wrong, and nothing was run.
"""

from __future__ import annotations

import argparse
import contextlib
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from music_evals import __version__
from music_evals.cli import (
    benchmark,
    caimap,
    completion,
    corpus,
    describe,
    discrepancy,
    edit,
    editing_test,
    examples,
    fill,
    frame,
    inpainting,
    leaderboard,
    listening_test,
    listing,
    lyrics,
    prepare,
    preserve,
    publish,
    push,
    style_transfer,
    train,
    write_lyrics,
)
from music_evals.cli._shared import EXIT_FAILURES, drop_stdout, in_options, say
from music_evals.errors import (
    BackendError,
    CorruptRecordsError,
    HubError,
    MusicEvalsError,
    OutputError,
    ParserCrashError,
)

__all__ = ["main"]

EXIT_USAGE = 2
EXIT_INTERRUPTED = 130  # 128 + SIGINT, as shells have it

# These happen to a run; every other named error is about what the run was asked to do.
_RUN_ERRORS = (BackendError, CorruptRecordsError, HubError, OutputError, ParserCrashError)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    parser = _parser()
    options = parser.parse_args(arguments)
    command: Callable[[argparse.Namespace], int] = options.command
    try:
        with _plain_warnings(options.verb):
            return command(options)
    except MusicEvalsError as error:
        say(f"music-evals: error: {in_options(str(error), options.verb)}")
        return EXIT_FAILURES if isinstance(error, _RUN_ERRORS) else EXIT_USAGE
    except KeyboardInterrupt:
        say("music-evals: interrupted; give the same command again to go on")
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        drop_stdout()  # the reader of our output went away
        return EXIT_FAILURES


@contextlib.contextmanager
def _plain_warnings(verb: argparse.ArgumentParser) -> Iterator[None]:
    """Print warnings of ours as messages: where in our code they come from tells a user nothing."""
    with warnings.catch_warnings():
        show = warnings.showwarning

        def show_plainly(message: Warning | str, category: type[Warning], *place: Any, **options: Any) -> None:
            if category.__module__ == MusicEvalsError.__module__:
                say(f"music-evals: warning: {in_options(str(message), verb)}")
            else:
                show(message, category, *place, **options)

        warnings.showwarning = show_plainly
        yield


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="music-evals",
        description="How music models are judged.",
        epilog="Exit codes: 0 ok, 1 some items failed or results could not be written, 2 wrong usage or input.",
    )
    parser.add_argument("--version", action="version", version=f"music-evals {__version__}")
    verbs = parser.add_subparsers(title="verbs", required=True, metavar="VERB")
    inpainting.add(verbs)
    fill.add(verbs)
    style_transfer.add(verbs)
    edit.add(verbs)
    prepare.add(verbs)
    preserve.add(verbs)
    benchmark.add(verbs)
    lyrics.add(verbs)
    describe.add(verbs)
    discrepancy.add(verbs)
    write_lyrics.add(verbs)
    train.add(verbs)
    corpus.add(verbs)
    caimap.add(verbs)
    publish.add(verbs)
    push.add(verbs)
    leaderboard.add(verbs)
    listening_test.add(verbs)
    editing_test.add(verbs)
    frame.add(verbs)
    listing.add(verbs)
    examples.add(verbs)
    completion.add(verbs, parser)
    return parser
