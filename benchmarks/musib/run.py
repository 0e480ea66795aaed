"""MUSIB's tables: all models with weights and all baselines, honest and as published, with reasons and hypotheses.

Usage: python -m benchmarks.musib.run [--write]

    --data jsb --protocol honest    the honest table of the chorales alone
    --items 12 --seeds 2            a small trial; its numbers say nothing
    --verdicts                      read the verdicts off the differences that lie here, into README.md; nothing is run
    --write                         write results.csv, published.csv, nll.csv, differences.csv, correlations.csv, the
                                    pictures and the tables of README.md here; without it they go below the folder --out

What is finished is not done again: an interrupted run goes on where it stood when it is started again.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import datasets
from benchmarks.musib.judging import N_SEEDS, PROTOCOLS, Judged, judge, plans, untrained
from benchmarks.musib.reasons import REASONS
from benchmarks.musib.systems import DATA, HERE, ROOT, Data, absent
from benchmarks.musib.tables import Row

from benchmarks.musib import hypotheses, likelihood, pictures, relations, tables
from music_evals.benchmark.formats import markdown_rows
from music_evals.files import write_atomically

STUDIES = "equal_budget_differences.csv"
"""Differences that equal_budget.py measures, for the hypotheses that are about training."""


def judge_all(options: argparse.Namespace) -> list[Judged]:
    """Do all runs, or take them up where they stood."""
    for data in DATA:
        if data.key in options.data and absent(data):
            print(f"without {data.title}: {absent(data)}", file=sys.stderr)
    wanted = [
        plan
        for data in here(options.data)
        for plan in plans(
            data, options.protocol, options.out, items=options.items, seeds=options.seeds, models=options.models
        )
    ]
    done = []
    for number, plan in enumerate(wanted, 1):
        done.append(judge(plan, options.out, progress=_line(f"[{number}/{len(wanted)}] {plan.name}")))
        print(file=sys.stderr)
    return done


def _line(title: str) -> Callable[[int, int, str], None]:
    def show(done: int, n: int, label: str) -> None:
        print(f"\r{title}: {done} of {n}, {label:<40.40}", end="", file=sys.stderr, flush=True)

    return show


def here(keys: Iterable[str]) -> list[Data]:
    """Return the data sets of these keys that are on this machine."""
    return [data for data in DATA if data.key in keys and not absent(data)]


def missing(keys: Sequence[str], models: Path | None = None) -> str:
    """Return what the tables do not hold, by name."""
    lines = [
        f"- **{data.title}** (`{data.dataset}`, config `{data.config}`) cannot be read on this machine."
        for data in DATA
        if data.key in keys and absent(data)
    ]
    for data in here(keys):
        names = untrained(data, models)
        if names:
            lines.append(f"- **{data.title}**: untrained, and in no table: {', '.join(f'`{name}`' for name in names)}.")
    return "\n".join(lines) or "Nothing: all models are trained on all data sets."


def write_tables(runs: Sequence[Judged], options: argparse.Namespace, folder: Path) -> dict[str, str]:
    """Write the tables and pictures of all runs into a folder, and return the sections of the page."""
    folder.mkdir(parents=True, exist_ok=True)
    honest = {run.plan.data.key: run for run in runs if run.plan.protocol == "honest"}
    tables.write_csv(folder / "results.csv", tables.SCORES, [row for run in runs for row in tables.score_rows(run)])
    sections = {
        "honest": "\n\n".join([*map(tables.honest_table, honest.values()), HOW_TO_READ]),
        "missing": missing(options.data, options.models),
    }
    if "official" in options.protocol:
        sections |= _write_compared(runs, options, folder)
    sections["nll"] = _write_likelihoods(options, folder)
    sections["hypotheses"] = _write_hypotheses(honest, folder)
    correlations = [row for run in honest.values() for row in relations.correlation_rows(run)]
    tables.write_csv(folder / "correlations.csv", relations.COLUMNS, correlations)
    sections["correlations"] = markdown_rows(relations.relation_table(_strong(correlations)))
    sections["pictures"] = _draw(honest, correlations, folder)
    return sections


def _draw(honest: Mapping[str, Judged], correlations: Sequence[Row], folder: Path) -> str:
    """Draw the pictures of each data set into a folder, and return the links to them."""
    drawn = []
    for key, run in honest.items():
        drawn += [folder / f"pitches_{key}.svg", folder / f"comparison_{key}.svg"]
        pictures.draw_pitches(run, drawn[-2])
        pictures.draw_comparison(run, drawn[-1])
        own = [row for row in correlations if row["data"] == key]
        if own:
            drawn.append(folder / f"correlations_{key}.svg")
            pictures.draw_correlations(own, drawn[-1])
    return "\n".join(f"![{path.stem}]({path.name})" for path in drawn)


HOW_TO_READ = (
    "`+` better, `-` worse than the best baseline of that score (`=`), which is chosen on validation; paired test by "
    "song, Holm-corrected p < 0.05. In brackets the 95 % interval by songs, and the floor of a divergence: what noise "
    "alone gives with this number of songs, on average. Ranked by note F1; the controls, in italics, stand outside: "
    "both see the truth, and `best_lag` copies the stretch of the context that is nearest to it. A "
    "row with a size is of that size: `small` says nothing of the published model of that name."
)


def _write_compared(runs: Sequence[Judged], options: argparse.Namespace, folder: Path) -> dict[str, str]:
    rows, parts = [], []
    for data in (data for data in DATA if data.key in options.data and data.table is not None):
        own = list(tables.compared_rows(data, [run for run in runs if run.plan.data == data]))
        rows += own
        parts.append(tables.printed_table(data, runs))
        if any(row["size"] for row in own):
            parts.append(tables.compared_table(own))
        elif absent(data):
            parts.append(f"Nothing of ours stands beside it: {data.title} is not here, and other tunes are no match.")
    tables.write_csv(folder / "published.csv", tables.COMPARED, rows)
    codes = {code for row in rows for key in ("because", "because_of_protocol") for code in row[key].split()}
    reasons = "\n".join(f"- **{code}**: {text}" for code, text in REASONS.items() if code in codes)
    return {"published": "\n\n".join(parts), "reasons": reasons}


def _write_likelihoods(options: argparse.Namespace, folder: Path) -> str:
    rows = [
        row
        for data in here(options.data)
        for row in likelihood.likelihood_rows(data, options.out, items=options.items, models=options.models)
    ]
    tables.write_csv(folder / "nll.csv", likelihood.COLUMNS, rows)
    parts = [likelihood.likelihood_table(rows, data) for data in here(options.data)]
    return "\n\n".join([*parts, likelihood.published_table(rows)])


def _write_hypotheses(honest: Mapping[str, Judged], folder: Path) -> str:
    """Write the differences, and read the verdicts off them and off those of the studies of training beside them."""
    parts = list(hypotheses.judged_parts(honest))
    tables.write_csv(folder / "differences.csv", hypotheses.COLUMNS, hypotheses.difference_rows(parts))
    return verdicts(folder)


def verdicts(folder: Path) -> str:
    """Return the verdicts and their differences, of the files of a folder."""
    rows = tables.read_csv(folder / "differences.csv")
    if (folder / STUDIES).is_file():
        rows += tables.read_csv(folder / STUDIES)
    return f"{hypotheses.verdict_table(rows)}\n\n{hypotheses.part_table(rows)}"


def _strong(rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the correlations whose interval is on one side of 0."""
    return [row for row in rows if row["low"] is not None and (row["low"] > 0 or row["high"] < 0)]


def read_options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    keys = [data.key for data in DATA]
    parser.add_argument("--data", nargs="+", choices=keys, default=keys, help="by default all that are here")
    parser.add_argument("--protocol", nargs="+", choices=PROTOCOLS, default=list(PROTOCOLS))
    parser.add_argument("--items", type=int, help="take the first windows only")
    parser.add_argument("--seeds", type=int, default=N_SEEDS, help="samples of what uses randomness")
    parser.add_argument("--models", type=Path, help="folder with the models, in place of models/")
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "musib", help="runs, which a later one takes up")
    parser.add_argument("--write", action="store_true", help="write the tables of this folder")
    parser.add_argument("--verdicts", action="store_true", help="fill in the verdicts of README.md alone")
    options = parser.parse_args(arguments)
    partial = options.items is not None or options.seeds < N_SEEDS or options.models is not None
    whole = set(options.data) == set(keys) and set(options.protocol) == set(PROTOCOLS)
    if options.write and (partial or not whole):
        parser.error("--write is for the whole tables: leave out --data, --protocol, --items, --seeds and --models")
    return options


def main() -> None:
    """Do what is left of the runs, and write the tables."""
    options = read_options()
    if options.verdicts:
        place = HERE / "README.md"
        text = tables.fill(place.read_text(encoding="utf-8"), {"hypotheses": verdicts(HERE)})
        write_atomically(place, text.encode())
        return
    datasets.disable_progress_bars()
    runs = judge_all(options)
    folder = HERE if options.write else options.out / "tables"
    sections = write_tables(runs, options, folder)
    page = (HERE / "README.md").read_text(encoding="utf-8")
    (folder / "README.md").write_text(tables.fill(page, sections), encoding="utf-8")
    print(sections["honest"])
    print(f"written to {folder}", file=sys.stderr)


if __name__ == "__main__":
    main()
