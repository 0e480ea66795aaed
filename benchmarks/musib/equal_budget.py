"""The designs at equal parameters and equal steps; whether folk helps the chorales; what the number of tunes does.

Usage: python -m benchmarks.musib.equal_budget [--plan] [--minutes-in-all 400] [--write]

    --plan               measure some steps of each design, say what would be run and how long it takes, and stop
    --minutes-in-all     core-minutes that all runs together may take; what does not fit is left out, and named
    --kept               take what is kept of finished runs, whatever data are here; nothing is read, run or trained
    --write              write equal_budget.csv, equal_budget_differences.csv, data_size.svg, the section of README.md,
                         and what each run found into equal_budget_runs/

An interrupted table goes on where it stood when it is started again: what is finished, here or in equal_budget_runs/,
is not done again, and an unfinished run goes on from its last epoch. Where a shipped model decodes otherwise than it
did, the weights in results/ are judged again, and not trained. Several processes may share the work: start the
command once a core, with OMP_NUM_THREADS=1. Each takes a run that nobody is at, and all end when all runs are done.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import datasets
from benchmarks.musib.run import STUDIES
from benchmarks.musib.shortening import Limits
from benchmarks.musib.studies import COMPARED_DESIGNS, Run, Studies, parts
from benchmarks.musib.study_scores import BITS, in_words
from benchmarks.musib.systems import HERE, ROOT
from benchmarks.musib.tables import Row, number

from benchmarks.musib import hypotheses, pictures, tables
from music_evals.benchmark.formats import markdown_rows
from music_evals.files import write_atomically
from music_evals.repositories import MODELS

COLUMNS = (
    "run", "design", "size", "data", "songs", "start", "steps", "core_minutes", "decoding", "metric", "value", "low",
    "high", "n", "n_defined", "n_groups",
)  # fmt: skip
"""Columns of equal_budget.csv; `songs` is those of the training split, `n_groups` those that are judged."""

PAUSE_SEC = 10.0
"""Until it is looked again whether the runs that others are at are done."""

SHOWN = ("note_f1", "position_score", "pitch_accuracy", "rhythm_accuracy", "own_loss", BITS)


def affordable(left: Sequence[Run], estimates: Mapping[str, float], minutes: float, done: Sequence[str]) -> list[Run]:
    """Return the runs that fit into the minutes, in their order; one that starts from another needs that one."""
    chosen: list[Run] = []
    for run in left:
        started = run.start is None or run.start in done or run.start in {one.name for one in chosen}
        if started and estimates[run.name] <= minutes:
            chosen.append(run)
            minutes -= estimates[run.name]
    return chosen


def reasons(
    studies: Studies, left: Sequence[Run], chosen: Sequence[Run], estimates: Mapping[str, float], minutes: float
) -> dict[str, str]:
    """Return why each run that is neither done nor chosen is left out."""
    there = {*studies.done(), *(run.name for run in chosen)}
    found = {}
    for run in (run for run in studies.table if run.name not in there):
        if run not in left:
            found[run.name] = f"the data set {run.data} is not on this machine"
        elif run.start is not None and run.start not in there:
            found[run.name] = f"it starts from `{run.start}`, which is left out"
        else:
            takes = f"about {estimates[run.name]:.0f} core-minutes"
            found[run.name] = f"{takes}, which did not fit into --minutes-in-all {minutes:g}"
    return found


def work(studies: Studies, chosen: Sequence[Run], pause_sec: float = PAUSE_SEC) -> None:
    """Do runs in their order, but for those that other processes are at; return when all are done."""
    done = studies.done()
    while waiting := [run for run in chosen if run.name not in done]:
        ready = [run for run in waiting if run.start is None or run.start in done]
        for run in ready:
            if studies.do_if_free(run):
                print(f"{run.name}: done", file=sys.stderr)
                break  # what others have done meanwhile may come before the next
        else:
            time.sleep(pause_sec)
        done = studies.done()


def result_rows(studies: Studies) -> Iterator[Row]:
    """Yield one row for each score of each run that is done."""
    for name, about in studies.done().items():
        run, scores = studies.named[name], studies.scores(name)
        if scores is None:
            continue
        shared = {
            "run": name,
            "design": run.design,
            "size": about["size"],
            "data": run.data,
            "songs": about["songs"],
            "start": run.start or "",
            "steps": studies.limits.steps,
            "core_minutes": about["core_minutes"],
            "decoding": in_words(studies.judged_by(name)),
        }
        for metric, values in scores.values.items():
            found = tables.interval_of_mean(values, scores.songs, span=tables.span_of(metric))
            interval = {"value": found.estimate, "low": found.low, "high": found.high}
            counts = {"n": found.n, "n_defined": found.n_defined, "n_groups": len(set(scores.songs))}
            yield {**shared, "metric": metric, **interval, **counts}


def section(rows: Sequence[Row], left_out: Mapping[str, str]) -> str:
    """Return the table of the runs, and what is not in it."""
    head = [
        "run", "size", "songs", "core-minutes", "decoding", "note F1", "position", "pitch acc.", "rhythm acc.",
        "own loss", "bits a note",
    ]  # fmt: skip
    lines = [head, ["---", "---", "---:", "---:", "---", *["---:"] * len(SHOWN)]]
    for name in dict.fromkeys(row["run"] for row in rows):
        own = {row["metric"]: row for row in rows if row["run"] == name}
        first = own["note_f1"]
        values = [number(own[metric]["value"]) for metric in SHOWN]
        values[0] += f" ({number(first['low'])} to {number(first['high'])})"
        about = [first["size"], str(first["songs"]), number(first["core_minutes"]), first["decoding"]]
        lines.append([f"`{name}`", *about, *values])
    named = [f"- `{name}`: {reason}" for name, reason in left_out.items()]
    return "\n\n".join([markdown_rows(lines), *(["Not run:\n\n" + "\n".join(named)] if named else [])])


def size_rows(rows: Sequence[Row]) -> list[Row]:
    """Return the note F1 of the runs on folk tunes, of designs that were trained on two sets of tunes."""
    folk = [
        row
        for row in rows
        if row["metric"] == "note_f1" and row["data"] == "folk" and row["design"] in COMPARED_DESIGNS
    ]
    counts = Counter(row["design"] for row in folk)
    return [row for row in folk if counts[row["design"]] > 1]


def write(studies: Studies, left_out: Mapping[str, str], folder: Path) -> str:
    """Write what the runs found into a folder, and return the section of the page."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = list(result_rows(studies))
    tables.write_csv(folder / "equal_budget.csv", COLUMNS, rows)
    tables.write_csv(folder / STUDIES, hypotheses.COLUMNS, hypotheses.difference_rows(list(parts(studies))))
    if sizes := size_rows(rows):
        pictures.draw_sizes(sizes, folder / "data_size.svg")
    text = section(rows, left_out)
    return f"{text}\n\n![data size](data_size.svg)" if sizes else text


def read_options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plan", action="store_true")
    parser.add_argument("--minutes-in-all", type=float, default=400.0)
    parser.add_argument("--steps", type=int, default=Limits().steps)
    parser.add_argument("--models", type=Path, default=ROOT / MODELS, help="folder with the recipes")
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "musib_equal_budget")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--kept", action="store_true")
    parser.add_argument("--runs", type=Path, default=HERE / "equal_budget_runs", help="what is kept of finished runs")
    return parser.parse_args(arguments)


def main() -> None:
    """Measure, run what fits, and write what was found."""
    options = read_options()
    datasets.disable_progress_bars()
    places: dict[str, tuple[str, str]] | None = {} if options.kept else None
    studies = Studies(options.out, Limits(steps=options.steps), options.models, places=places, kept=options.runs)
    done, left = studies.done(), studies.left()
    spent = sum(about["core_minutes"] for about in done.values())
    estimates = studies.estimate(left)
    chosen = affordable(left, estimates, options.minutes_in_all - spent, list(done))
    for run in left:
        mark = "to run" if run in chosen else "left out"
        print(f"{run.name:32} {estimates[run.name]:7.1f} core-minutes  {mark}", file=sys.stderr)
    total = sum(estimates[run.name] for run in chosen)
    print(f"done: {spent:.1f} core-minutes; to come: {total:.1f}; at most {options.minutes_in_all:g}", file=sys.stderr)
    if options.plan:
        return
    work(studies, chosen)
    left_out = reasons(studies, left, chosen, estimates, options.minutes_in_all)
    folder = HERE if options.write else options.out / "tables"
    text = write(studies, left_out, folder)
    if options.write:
        studies.keep()
        page = HERE / "README.md"
        write_atomically(page, tables.fill(page.read_text(encoding="utf-8"), {"equal_budget": text}).encode())
    print(text)


if __name__ == "__main__":
    main()
