"""What the verbs share: data to stdout, progress and messages to stderr, and lists of what failed."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from music_evals.errors import MissingBackendError, OutputError

__all__ = [
    "EXIT_FAILURES",
    "SHOWN_FAILURES",
    "Bar",
    "add_dataset_options",
    "add_drawing_options",
    "add_encoder_options",
    "add_engine_options",
    "add_interval_options",
    "add_list",
    "add_number",
    "add_output_options",
    "add_published_option",
    "add_verb",
    "chosen",
    "drop_stdout",
    "finish_scores",
    "in_options",
    "list_failures",
    "print_results",
    "quieten",
    "say",
    "text_extra",
    "to_stdout",
    "why_not_drawn",
]

EXIT_FAILURES = 1

SHOWN_FAILURES = 20


def add_verb(
    verbs: Any,
    name: str,
    command: Callable[[argparse.Namespace], int] | None,
    *texts: str,
    needs: Callable[[argparse.Namespace], Iterable[str]] = lambda _: (),
) -> Any:
    """Add a verb, with its line in the list of all, its description and its examples as far as they are given."""
    # `needs` says which extras its options ask for, so that all that are missing are named at once. A verb with steps
    # has no command: argparse asks for a step.
    verb = verbs.add_parser(name, **dict(zip(("help", "description", "epilog"), texts, strict=False)))
    verb.set_defaults(command=command, verb=verb, needs=needs)
    return verb


def add_list(group: Any, flag: str, text: str, **more: Any) -> None:
    """Add an option that may be given again; its value is a list."""
    group.add_argument(flag, action="append", default=[], help=text, **more)


def add_number(group: Any, flag: str, text: str, *, default: int | None = None, **more: Any) -> None:
    """Add an option that is a whole number; its help ends with the default, unless it says it itself or has none."""
    suffix = "" if default is None or "%(default)s" in text else " (default: %(default)s)"
    group.add_argument(flag, type=int, default=default, metavar="N", help=f"{text}{suffix}", **more)


def in_options(text: str, verb: argparse.ArgumentParser) -> str:
    """Return a message of the library with the options of a verb in place of the settings that it names."""
    # The library marks settings so: `` `limit` ``, `` `strict=False` ``, `` `empty='zero'` ``.
    actions = {action.dest: action for action in verb._actions if action.option_strings}

    def option(match: re.Match[str]) -> str:
        name, value = match["name"], match["value"]
        if name not in actions:
            return match[0]
        action = actions[name]
        flag = action.option_strings[-1]
        if value in {"True", "False"}:
            is_set = str(action.const) == value
            return f"{match['with'] or ''}{flag}" if is_set else f"{'without' if match['with'] else 'no'} {flag}"
        reported = name if action.const is False else flag  # an option may say the opposite of its setting
        return (match["with"] or "") + " ".join(filter(None, [reported, (value or "").strip("'")]))

    return re.sub(r"(?P<with>with )?`(?P<name>[a-z_]+)(?:=(?P<value>[^`]+))?`", option, text)


def add_dataset_options(
    group: Any,
    *,
    required: bool = False,
    dataset: str = "a name (see list), a folder, a Hub id, or a file of JSON lines, each a row of CaiMD",
    limit: str = "the first N songs only",
) -> None:
    """Add what names the items of a dataset; `dataset` and `limit` say what it may be, and what is left out of it."""
    group.add_argument("--dataset", required=required, help=dataset)
    group.add_argument("--config", help="config of the dataset")
    group.add_argument("--split", default="test", help="split of the dataset (default: %(default)s)")
    group.add_argument("--revision", help="commit, tag or branch of a Hub dataset")
    group.add_argument("--limit", type=int, metavar="N", help=limit)


def add_encoder_options(group: Any) -> None:
    """Add how tags are compared by their embeddings."""
    group.add_argument(
        "--encoder",
        default="BAAI/bge-large-zh-v1.5",
        metavar="NAME",
        help="sentence-transformers model, a Hub id or a folder, or char-ngrams, which needs no weights and knows no "
        "meaning (default: %(default)s)",
    )
    group.add_argument("--encoder-revision", metavar="REV", help="commit, tag or branch of the encoder's Hub id")
    group.add_argument("--device", help="where the encoder computes, as cpu or cuda:1 (default: a GPU if any)")
    group.add_argument("--cache", metavar="DIR", help="keep the vectors of tags here, for the next run too")
    group.add_argument("--aggregation", default="mean", help="mean of all pairs (default), best_match or f1")
    group.add_argument(
        "--normalize-by-self", action="store_true", help="divide by what the two lists have with themselves"
    )


def text_extra(encoder: str | None) -> list[str]:
    """Return the extra that an encoder of texts needs, if any."""
    return [] if encoder in {None, "char-ngrams"} else ["text"]


def add_theme_options(group: Any) -> None:
    """Add how lyrics are compared with the themes of their songs."""
    group.add_argument(
        "--theme-encoder",
        metavar="NAME",
        help="also compare texts with the themes of their songs, by a sentence-transformers model (Hub id or folder) "
        "or char-ngrams, which knows no meaning (default: not compared)",
    )
    group.add_argument("--theme-encoder-revision", metavar="REV", help="commit, tag or branch of its Hub id")


def add_interval_options(group: Any, *, resamples: bool = True) -> None:
    """Add what the intervals are made with; `resamples` where there are divergences or tests."""
    of = "of the intervals (default: %(default)s)"
    group.add_argument("--confidence", type=float, default=0.95, metavar="P", help=of)
    if resamples:
        text = "of a divergence's interval; a test of a difference takes ten times as many, a mean none"
        add_number(group, "--resamples", text, default=1000, dest="n_resamples")


def add_engine_options(group: Any, default: str = "1") -> None:
    """Add where the work is done; `default` says how many processes suit the task."""
    group.add_argument(
        "--engine",
        metavar="NAME",
        help="serial: in this process; local: in processes of this machine; ray: on the machines of a Ray cluster, or "
        "on this one (default: what suits the task); changes no number",
    )
    add_number(group, "--workers", f"processes (default: {default}; with ray one a processor); changes no number")
    group.add_argument(
        "--ray-address",
        metavar="H:P",
        help="host:port of the head of a Ray cluster, or auto for that of this machine (default: the variable "
        "RAY_ADDRESS, or else a new cluster on this machine, which ends with the run)",
    )


def add_output_options(verb: Any, *, has_figures: bool = False) -> Any:
    """Add the group that says where results go, and return it; `has_figures` says that report.html needs matplotlib."""
    where = verb.add_argument_group("where it goes")
    where.add_argument("--out", required=True, metavar="DIR", help="folder for records and results")
    where.add_argument("--overwrite", action="store_true", help="start afresh, whatever the folder holds")
    where.add_argument("--json", action="store_true", help="print results.json in place of the tables")
    if has_figures:
        add_drawing_options(where, "report", "report.html")
    else:
        where.add_argument("--no-report", action="store_false", dest="report", help="write no report.html")
    return where


def add_drawing_options(where: Any, name: str, file: str) -> None:
    """Add the options that ask for a file that matplotlib draws, or leave it out; see `why_not_drawn`."""
    insist = f"write {file}, or fail where matplotlib is not installed; by default it is left out there"
    where.add_argument(f"--{name}", action="store_true", default=None, help=insist)
    where.add_argument(f"--no-{name}", action="store_false", dest=name, default=None, help=f"write no {file}")


def why_not_drawn(wanted: bool | None, file: str) -> str:  # noqa: FBT001  # the value of an option
    """Return a remark where matplotlib is missing for a file that nobody asked for by name; else an empty text."""
    from music_evals.benchmark.canvas import check_backend

    if wanted is not None:
        return ""
    try:
        check_backend()
    except MissingBackendError as error:
        return f"note: {file} was left out: {error}"
    return ""


def chosen(options: argparse.Namespace, settings: type) -> dict[str, Any]:
    """Return the options that are fields of a dataclass of settings."""
    names = {field.name for field in dataclasses.fields(settings)}
    return {key: value for key, value in vars(options).items() if key in names}


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


def add_published_option(where: Any, *, others: str = "") -> None:
    """Add the option that makes `finish_scores` print published results; `others` names what else it prints."""
    help_ = f"print {others}the published results of others too; table.md always has them"
    where.add_argument("--published", action="store_true", help=help_)


def finish_scores(outcome: Any, options: argparse.Namespace, *, report: Callable[..., str] | None = None) -> int:
    """Say what a benchmark of scores found (`score_outputs.Outcome`), and return the exit code."""
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
    print(text, file=sys.stderr)


def quieten() -> None:
    """Leave the progress bar to us: the data set library draws one for each split it reads."""
    os.environ.setdefault("HF_DATASETS_DISABLE_PROGRESS_BARS", "1")  # read when it is imported, which takes long
    if "datasets" in sys.modules:
        sys.modules["datasets"].disable_progress_bars()


class Bar:
    """A progress bar on stderr, made at the first report; a new total starts a new one."""

    def __init__(self, unit: str = "chunk") -> None:
        self._bar: Any = None
        self._unit = unit

    def __call__(self, done: int, total: int, label: str) -> None:
        from tqdm import tqdm

        if self._bar is None or self._bar.total != total:
            self._close()
            self._bar = tqdm(total=total, file=sys.stderr, unit=self._unit, dynamic_ncols=True)
        # tqdm draws by itself when something is done; what is only begun, as compiling, must be seen too
        self._bar.set_description(label, refresh=done == self._bar.n)
        self._bar.update(done - self._bar.n)

    def _close(self) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._close()
