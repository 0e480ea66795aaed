"""What the verbs print: data to stdout, progress and messages to stderr, and lists of what failed."""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from music_evals.cli.options import from_options, in_options
from music_evals.errors import InvalidInputError, MissingBackendError, OutputError

EXIT_FAILURES = 1

SHOWN_FAILURES = 20


def print_results(text: str, files: Mapping[str, Path], *, as_json: bool) -> None:
    """Print the tables and where the files are, or the file of results alone."""
    if as_json:
        with to_stdout():
            print(files["results"].read_text(encoding="utf-8"), end="")
        say("\n".join(f"{kind}: {path}" for kind, path in files.items()))
        return
    folders: dict[Path, list[str]] = {}
    for path in files.values():
        folders.setdefault(path.parent, []).append(path.name)
    with to_stdout():
        print("\n".join([text, "", *(f"{folder}: {', '.join(names)}" for folder, names in folders.items())]))


def finish_scores(outcome: Any, options: argparse.Namespace, *, report: Callable[..., str] | None = None) -> int:
    """Say what a benchmark of scores found (`benchmark.run.Outcome`), and return the exit code."""
    # What failed is listed first, so that it does not hide behind the tables. `report` makes the tables; None takes
    # those of all scores. A system without a single defined score is a failure too.
    from music_evals.benchmark.contents import n_failures, undefined_systems
    from music_evals.benchmark.tables import text_report

    results = outcome.results
    failures = [
        (
            f"{row['item']} ({row['system']}{', ' + row['metric'] if row['metric'] else ''})",
            in_options(row["error"], options.verb),
        )
        for row in results["failures"]
    ]
    code = list_failures(failures, "see the records", n_failures(results))
    undefined = undefined_systems(results)
    if undefined:
        say(f"music-evals: nothing at all is defined for {', '.join(undefined)}; the notes tell why")
    for note in outcome.notes if options.json else ():  # the tables have them
        say(f"note: {in_options(note, options.verb)}")
    text = (report or text_report)(results, published=options.published)
    print_results(in_options(text, options.verb), outcome.files, as_json=options.json)
    return EXIT_FAILURES if undefined else code


def run_scores(options: argparse.Namespace, task: str, unit: str) -> int:
    """Run a benchmark of scores as its options say, and return the exit code; `unit` is what the bar counts."""
    from music_evals.benchmark.run import load_task

    benchmark = load_task(task)
    settings = from_options(options, benchmark.settings)
    with Bar(unit) as bar:
        outcome = benchmark.run(settings, progress=bar)
    return finish_scores(outcome, options)


def why_not_drawn(wanted: bool | None, file: str) -> str:  # noqa: FBT001  # the value of an option
    """Return a remark where matplotlib is missing for a file that nobody asked for by name; else an empty text."""
    from music_evals.benchmark.formats import check_backend

    if wanted is not None:
        return ""
    try:
        check_backend()
    except MissingBackendError as error:
        return f"note: {file} was left out: {error}"
    return ""


def earlier_run(
    folder: Path, source: Path, *, manifest: str, pattern: re.Pattern[str], run: str, done: str
) -> dict[str, Any]:
    """Return the manifest of an earlier run in a folder, empty if there is none; raise where a file would be lost."""
    # `pattern` are names of files that such a run writes: a manifest may name no others
    if not folder.exists():
        return {}
    if not folder.is_dir():
        raise InvalidInputError(f"{folder} is a file; name another --out")
    try:
        earlier = json.loads((folder / manifest).read_text(encoding="utf-8"))
        listed = {str(name): str(sha256) for name, sha256 in earlier["files"].items() if pattern.fullmatch(name)}
    except (OSError, ValueError, TypeError, LookupError, AttributeError):
        earlier, listed = {}, {}
    ours = {*listed, manifest} if listed else set()
    for path in sorted(folder.iterdir()):
        if path.exists() and source.exists() and path.samefile(source):
            raise InvalidInputError(
                f"{path} is what is to be {done}, and would be lost; name another folder with --out"
            )
        if path.name in listed and not (path.is_file() and sha256_of(path.read_bytes()) == listed[path.name]):
            raise InvalidInputError(
                f"{path} was changed since it was written, and would be lost; move it, or name another --out"
            )
        if path.name not in ours and not path.name.startswith("."):
            whose = f"{run} that {manifest} lists" if listed else run
            raise InvalidInputError(
                f"{folder} holds {path.name}, which is not of {whose}; name a new folder with --out, or an empty one"
            )
    return {**earlier, "files": listed} if listed else {}


def sha256_of(content: bytes) -> str:
    """Return the SHA-256 of bytes, in hexadecimal digits."""
    return hashlib.sha256(content).hexdigest()


def list_failures(failures: Sequence[tuple[str, str]], where: str, n: int | None = None) -> int:
    """List what failed on stderr, `n` in all, say where the rest is found, and return the exit code."""
    if not failures:
        return 0
    n = len(failures) if n is None else n
    say(f"music-evals: {n} failed:")
    for name, reason in failures[:SHOWN_FAILURES]:
        say(f"  {name}: {reason}")
    if n > SHOWN_FAILURES:
        say(f"  and {n - SHOWN_FAILURES} more, {where}")
    return EXIT_FAILURES


@contextlib.contextmanager
def to_stdout() -> Iterator[None]:
    """Print and flush within: a disk that is full is found here and not at exit, where nobody catches it."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        drop_stdout()
        raise OutputError(
            f"cannot write to standard output: {error.strerror or error}; make room or send it elsewhere"
        ) from error


def drop_stdout() -> None:
    """Let what is left in the buffer go nowhere, so that it does not raise again at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def say(text: str) -> None:
    """Print a message on stderr."""
    print(text, file=sys.stderr)


class Bar(contextlib.AbstractContextManager["Bar"]):
    """A progress bar on stderr, made at the first report; a new total starts a new one."""

    def __init__(self, unit: str = "chunk") -> None:
        self._bar: Any = None
        self._unit = unit

    def __call__(self, done: int, total: int, label: str) -> None:
        """Show what is done of all that there is."""
        from tqdm import tqdm

        if self._bar is None or self._bar.total != total:
            self.__exit__()
            self._bar = tqdm(total=total, file=sys.stderr, unit=self._unit, dynamic_ncols=True)
        # tqdm draws by itself when something is done; what is only begun, as compiling, must be seen too
        self._bar.set_description(label, refresh=done == self._bar.n)
        self._bar.update(done - self._bar.n)

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None
