"""The ``music-evals`` command.

Data goes to stdout, progress and messages to stderr. Exit codes: 0 all is well; 1 items failed (they are listed), or
results could not be written, or records are damaged; 2 the command or its input is wrong, and nothing was run; 130 it
was interrupted.

Hardly anything is imported before `main` is entered: an interrupt while modules are imported is caught, too.
"""

from __future__ import annotations

import atexit
import codecs
import io
import os
import signal
import sys

TYPE_CHECKING = False  # as of `typing`, which would have to be imported
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

__all__ = ["main"]

EXIT_INTERRUPTED = 130  # 128 + SIGINT, as shells have it
GRACE_SEC = 5
ESCAPED_ERRORS = {"strict", "surrogateescape", "backslashreplace"}
HAS_ALARMS = hasattr(signal, "SIGALRM")  # Windows has none
ENDING = (signal.SIGINT, signal.SIGALRM) if HAS_ALARMS else (signal.SIGINT,)
interrupts: list[int] = []  # that came
INTERRUPTED = "music-evals: interrupted; give the same command again to go on"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code; None takes the arguments of this process, which then ends."""
    shown, code, owns_process = sys.unraisablehook, 1, False
    try:
        # a process in the background of a script is not to be interrupted
        owns_process = arguments is None and signal.getsignal(signal.SIGINT) is signal.default_int_handler
        sys.unraisablehook = _end_at_a_lost_interrupt
        if owns_process:
            # last of all: threads of other libraries, stopped halfway, cannot be taken down in order
            atexit.register(lambda: code == EXIT_INTERRUPTED and os._exit(code))
            signal.signal(signal.SIGINT, _wait)
        # characters that stdout or stderr lacks are written as JSON does, so that JSON stays JSON; whoever asked for
        # another way, as by PYTHONIOENCODING=ascii:replace, keeps it
        codecs.register_error("music_evals.escape", _escape)
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper) and stream.errors in ESCAPED_ERRORS:
                stream.reconfigure(errors="music_evals.escape")
        if owns_process:
            signal.signal(signal.SIGINT, _interrupt)
            if interrupts:
                _interrupt()
        from music_evals.cli.verbs import run

        code = run(arguments)
    except (KeyboardInterrupt, ImportError) as error:
        if isinstance(error, ImportError) and not interrupts:  # which numpy makes of an interrupt while it is imported
            raise
        code = EXIT_INTERRUPTED
        print(INTERRUPTED, file=sys.stderr)
    finally:
        if arguments is not None:
            sys.unraisablehook = shown
        for number in ENDING if owns_process else ():  # the interpreter takes a while to end
            signal.signal(number, lambda *_: os._exit(code))
    return code


def _wait(*_: Any) -> None:
    """Note an interrupt while the streams are set up: one raised there leaves a stream without its encoder."""
    interrupts.append(signal.SIGINT)


def _interrupt(*_: Any) -> None:
    """Raise `KeyboardInterrupt`, and end the process if it is still there some seconds later, as at a lock."""
    interrupts.append(signal.SIGINT)
    if HAS_ALARMS:
        signal.signal(signal.SIGALRM, _end)
        signal.alarm(GRACE_SEC)
    raise KeyboardInterrupt


def _end(*_: Any) -> None:
    print(INTERRUPTED, file=sys.stderr, flush=True)
    os._exit(EXIT_INTERRUPTED)


def _end_at_a_lost_interrupt(unraisable: Any) -> None:
    """End the process where an interrupt came in a callback, as of the import system, which no caller would see."""
    if issubclass(unraisable.exc_type, KeyboardInterrupt):
        _end()
    sys.__unraisablehook__(unraisable)


def _escape(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    units = error.object[error.start : error.end].encode("utf-16-be", "surrogatepass")  # as JSON counts characters
    return "".join(f"\\u{high:02x}{low:02x}" for high, low in zip(units[::2], units[1::2], strict=True)), error.end
