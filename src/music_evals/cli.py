"""The ``music-evals`` command.

Data goes to stdout, progress and messages to stderr. Exit codes: 0 all is well; 1 items failed (they are listed), or
results could not be written, or records are damaged; 2 the command or its input is wrong, and nothing was run.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from music_evals import __version__
from music_evals.errors import CorruptRecordsError, InvalidInputError, MusicEvalsError, OutputError, ParserCrashError

if TYPE_CHECKING:
    from music_evals.benchmark.inpainting import Outcome

__all__ = ["main"]

EXIT_FAILURES = 1
EXIT_USAGE = 2
EXIT_INTERRUPTED = 130  # 128 + SIGINT, as shells have it

SHOWN_FAILURES = 20

# These happen to a run; every other named error is about what the run was asked to do.
_RUN_ERRORS = (CorruptRecordsError, OutputError, ParserCrashError)

_INPAINTING_HELP = """\
Judge models and baselines on score inpainting: fill 4 measures between 6 of past and 6 of future.

Writes into --out: records.jsonl (every prediction and score), results.json, table.md, report.html and a model card.
A run that was killed goes on where it stood when the same command is given again.
"""

_INPAINTING_EXAMPLES = """\
examples:
  music-evals inpainting --dataset jsb_chorales --config musib --model models/anticipation_rnn --out results/jsb
  music-evals inpainting --dataset jsb_chorales --config musib --predictions mine.jsonl --out results/mine
  music-evals inpainting --pairs my_midi_pairs --out results/pairs --json > results.json
  music-evals inpainting --dataset jsb_chorales --protocol official --model models/anticipation_rnn \\
      --decoding teacher_forced --out results/official
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    parser = _parser()
    options = parser.parse_args(arguments)
    command: Callable[[argparse.Namespace], int] = options.command
    try:
        return command(options)
    except MusicEvalsError as error:
        _say(f"music-evals: error: {error}")
        return EXIT_FAILURES if isinstance(error, _RUN_ERRORS) else EXIT_USAGE
    except KeyboardInterrupt:
        _say("music-evals: interrupted; give the same command again to go on")
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        _drop_stdout()  # the reader of our output went away
        return EXIT_FAILURES


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="music-evals",
        description="How music models are judged.",
        epilog="Exit codes: 0 ok, 1 some items failed or results could not be written, 2 wrong usage or input.",
    )
    parser.add_argument("--version", action="version", version=f"music-evals {__version__}")
    verbs = parser.add_subparsers(title="verbs", required=True, metavar="VERB")
    _add_inpainting(verbs)
    _add_train(verbs)
    _add_frame(verbs)
    return parser


def _add_verb(verbs: Any, name: str, command: Callable[[argparse.Namespace], int], **texts: str) -> Any:
    verb = verbs.add_parser(name, formatter_class=argparse.RawDescriptionHelpFormatter, **texts)
    verb.set_defaults(command=command)
    return verb


def _add_inpainting(verbs: Any) -> None:
    verb = _add_verb(
        verbs,
        "inpainting",
        _inpainting,
        help="judge models and baselines on score inpainting",
        description=_INPAINTING_HELP,
        epilog=_INPAINTING_EXAMPLES,
    )
    what = verb.add_argument_group("what is judged on (one of --dataset and --pairs)")
    what.add_argument("--dataset", help="a name under ./datasets_scripts, a folder or a Hub id")
    what.add_argument("--config", help="config of the dataset")
    what.add_argument("--split", default="test", help="split of the dataset (default: %(default)s)")
    what.add_argument("--revision", help="commit, tag or branch of a Hub dataset")
    what.add_argument(
        "--pairs", metavar="PATH", help="folder or manifest (CSV, JSONL) of reference and prediction files"
    )
    what.add_argument(
        "--limit",
        type=int,
        metavar="N",
        help="judge the first N items only; best baselines are still chosen on all of validation",
    )
    who = verb.add_argument_group("who is judged")
    who.add_argument(
        "--model",
        action="append",
        default=[],
        dest="models",
        help="name, folder or Hub id[@revision]; may be given again",
    )
    who.add_argument("--predictions", metavar="FILE", help='JSON lines {"item_id": ..., "middle": [96 tokens]}')
    who.add_argument("--baselines", default="all", help="all, none, or names with commas (default: %(default)s)")
    who.add_argument("--seeds", type=int, default=5, dest="n_seeds", metavar="N", help="seeds (default: %(default)s)")
    who.add_argument("--decoding", help="decoding of the models; teacher_forced reads the reference and is labelled")
    who.add_argument("--temperature", type=float, help="temperature of the models")
    how = verb.add_argument_group("how")
    how.add_argument("--variant", help="corrected (default), official or paper")
    how.add_argument("--protocol", help="official: the published conditions, beside the published table")
    how.add_argument("--confidence", type=float, default=0.95, help="of the intervals (default: %(default)s)")
    how.add_argument(
        "--resamples", type=int, default=1000, dest="n_resamples", metavar="N", help="(default: %(default)s)"
    )
    how.add_argument("--workers", type=int, default=1, metavar="N", help="processes (default: %(default)s)")
    where = verb.add_argument_group("where it goes")
    where.add_argument("--out", required=True, metavar="DIR", help="folder for records and results")
    where.add_argument("--overwrite", action="store_true", help="start afresh, whatever the folder holds")
    where.add_argument("--json", action="store_true", help="print results.json in place of the tables")
    where.add_argument("--no-report", action="store_false", dest="report", help="write no report.html")
    where.add_argument("--update-card", action="store_true", help="write the scores into the model folder's README.md")


def _add_train(verbs: Any) -> None:
    verb = _add_verb(
        verbs,
        "train",
        _train,
        help="train a model from its recipe",
        description="Train a model from its recipe, on a GPU if there is one; a run that was killed is taken up again.",
        epilog="example:\n  music-evals train models/anticipation_rnn/train.yaml",
    )
    verb.add_argument("recipe", help="a train.yaml; weights are written beside it")
    verb.add_argument("--device", help="cpu, cuda, ... (default: a GPU if there is one)")
    verb.add_argument("--restart", action="store_true", help="forget the checkpoint and start again")
    verb.add_argument("--json", action="store_true", help="print the result as JSON")


def _add_frame(verbs: Any) -> None:
    verb = _add_verb(
        verbs,
        "frame",
        _frame,
        help="list what a folder of MIDI files holds, and filter it",
        description="Print one row a MIDI file, as CSV; filters are counted on stderr, or in the JSON.",
        epilog=(
            "examples:\n  music-evals frame my_midi > frame.csv\n"
            "  music-evals frame my_midi --filters unique,only_4_4,min_measures=16 --json"
        ),
    )
    verb.add_argument("folder", help="searched with its sub-folders for .mid and .midi files")
    verb.add_argument(
        "--filters",
        default="",
        help="names of filters and of recipes such as musib_folk, with commas; only_4_4 also removes files that state "
        "no time signature",
    )
    verb.add_argument("--counting", default="notated", help="how measures are counted: notated, onset or published")
    verb.add_argument("--json", action="store_true", help="print frame and filters as JSON")


def _inpainting(options: argparse.Namespace) -> int:
    # Small networks gain little from threads, and lose an order of magnitude where another program wants the cores;
    # one thread also gives the same sums on every machine. --workers spreads the work over processes instead.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    from music_evals.benchmark.inpainting import Settings, run_benchmark
    from music_evals.benchmark.results import text_report

    _check_card(options)
    names = {field.name for field in dataclasses.fields(Settings)}
    settings = Settings(**{key: value for key, value in vars(options).items() if key in names})
    _quieten()
    with _Bar() as bar:
        outcome = run_benchmark(settings, progress=bar)
    failures = outcome.results["failures"]
    update = options.update_card and not failures
    files = {**outcome.files, **_write_cards(outcome, Path(options.out), update=update)}
    for note in outcome.notes:
        _say(f"note: {note}")
    where = [f"{kind}: {path}" for kind, path in files.items()]
    if options.json:
        with _to_stdout():
            print(files["results"].read_text(encoding="utf-8"), end="")
        _say("\n".join(where))
    else:
        with _to_stdout():
            print("\n".join([text_report(outcome.results), "", *where]))
    code = _list_failures([(_failed(row), row["error"]) for row in failures], "see the records")
    if failures and options.update_card:
        msg = f"{len(failures)} results failed; cards of models are left as they were, run again or judge other items"
        raise OutputError(msg)
    return code


def _check_card(options: argparse.Namespace) -> None:
    """Keep scores of a part of the test set off the card."""
    if options.update_card and options.limit is not None:
        raise InvalidInputError("--update-card shows scores of the whole split; leave out --limit or --update-card")


def _failed(row: Mapping[str, Any]) -> str:
    """Name what failed: an item that could not be read has neither system nor seed."""
    who = "input" if row["system"] is None else f"{row['system']}, seed {row['seed']}"
    metric = "" if row["metric"] is None else f", {row['metric']}"
    return f"{row['item']} ({who}{metric})"


def _write_cards(outcome: Outcome, out: Path, *, update: bool) -> dict[str, Path]:
    """Write a card for each model that was judged, and into its own folder where that is asked for."""
    from music_evals.hub.cards import fill_card
    from music_evals.symbolic.output import write_atomically

    files = {}
    systems = outcome.results["systems"]
    models = [name for name, held in systems.items() if held["role"] == "model" and "source" in held]
    for name in models:
        readme = _folder_of(systems[name]["source"]) / "README.md"
        card = fill_card(outcome.results, name, readme.read_text(encoding="utf-8") if readme.is_file() else None)
        label = "model_card" if len(models) == 1 else f"model_card_{_file_name(name)}"
        files[label] = out / f"{label}.md"
        write_atomically(files[label], card.encode())
        if update and readme.parent.is_dir():
            write_atomically(readme, card.encode())
            files[f"card of {name}"] = readme
    return files


def _folder_of(source: str) -> Path:
    in_window = Path("models") / source
    return in_window if in_window.is_dir() else Path(source)


def _file_name(name: str) -> str:
    return "".join(letter if letter.isalnum() else "_" for letter in name)


def _train(options: argparse.Namespace) -> int:
    from music_evals.models.training import train_from_file

    _quieten()
    result = train_from_file(options.recipe, resume=not options.restart, device=options.device, progress=True)
    values = {key: str(value) if isinstance(value, Path) else value for key, value in result._asdict().items()}
    text = json.dumps(values) if options.json else "\n".join(f"{key}: {value}" for key, value in values.items())
    with _to_stdout():
        print(text)
    return 0


def _frame(options: argparse.Namespace) -> int:
    from music_evals.symbolic.filters import apply_filters, make_filters
    from music_evals.symbolic.frame import frame_to_columns, midi_frame, write_frame_csv

    filters = make_filters(options.filters)
    with _Bar("file") as bar:
        frame = midi_frame(
            options.folder, counting=options.counting, progress=lambda done, total: bar(done, total, "files")
        )
    report = apply_filters(frame, filters)
    shown = list(report.kept) if filters else frame
    if options.json:
        content = {"frame": _finite(frame_to_columns(shown)), "filters": report.to_dict()}
        with _to_stdout():
            print(json.dumps(content, allow_nan=False))
    else:
        with _to_stdout():
            write_frame_csv(shown, sys.stdout)
        if filters:
            _say(report.table())
    return _list_failures([(row.filename, row.error) for row in frame if row.error], "see the column error")


def _finite(value: Any) -> Any:
    """Replace NaN by None: JSON has no NaN."""
    if isinstance(value, dict):
        return {key: _finite(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(inner) for inner in value]
    return None if isinstance(value, float) and value != value else value  # noqa: PLR0124 (NaN is not itself)


def _list_failures(failures: Sequence[tuple[str, str]], where: str) -> int:
    """List what failed on stderr, say where the rest is found, and return the exit code."""
    if not failures:
        return 0
    _say(f"music-evals: {len(failures)} failed:")
    for name, reason in failures[:SHOWN_FAILURES]:
        _say(f"  {name}: {reason}")
    if len(failures) > SHOWN_FAILURES:
        _say(f"  and {len(failures) - SHOWN_FAILURES} more, {where}")
    return EXIT_FAILURES


@contextlib.contextmanager
def _to_stdout() -> Iterator[None]:
    """Print and flush within: a disk that is full is found here and not at exit, where nobody catches it."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        _drop_stdout()
        msg = f"cannot write to standard output: {error.strerror or error}; make room or send it elsewhere"
        raise OutputError(msg) from error


def _drop_stdout() -> None:
    """Let what is left in the buffer go nowhere, so that it does not raise again at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _say(text: str) -> None:
    print(text, file=sys.stderr)


def _quieten() -> None:
    """Leave the progress bar to us: the data set library draws one for each split it reads."""
    import datasets

    datasets.disable_progress_bars()


class _Bar:
    """A progress bar on stderr, made at the first report; a new total starts a new one."""

    def __init__(self, unit: str = "chunk") -> None:
        self._bar: Any = None
        self._unit = unit

    def __call__(self, done: int, total: int, label: str) -> None:
        from tqdm import tqdm

        if self._bar is None or self._bar.total != total:
            self._close()
            self._bar = tqdm(total=total, file=sys.stderr, unit=self._unit, dynamic_ncols=True)
        self._bar.set_description(label, refresh=False)
        self._bar.update(done - self._bar.n)

    def _close(self) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._close()


if __name__ == "__main__":
    sys.exit(main())
