"""Editing systems, and a metric, beside the code of their authors: equal random weights and inputs, stage by stage.

Usage: python -m benchmarks.parity.run refinpaint=CHECKOUT musicmagus=CHECKOUT ... [--write]

CHECKOUT is a clone of the authors' repository at the commit that README.md names; nothing is fetched. Prints the
stages; `--write` writes them into results.csv and README.md, and what the tests compare with into tests/golden/parity.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.musib.tables import fill, read_csv, write_csv
from benchmarks.parity.side_by_side import GOAL, Recorder, verify_commit

from music_evals.benchmark.formats import markdown_rows
from music_evals.files import write_atomically

HERE = Path(__file__).parent
SYSTEMS = ("refinpaint", "musicmagus", "zeta", "audioldm2", "musicongen", "musicgen_melody", "lpaps")
"""Modules of this folder, each with `AUTHORS` and `measure(checkout, recorder)`."""
COLUMNS = ("system", "repository", "commit", "stage", "n", "largest", "difference", "equal", "note")


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print, and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkouts", nargs="+", metavar="SYSTEM=CHECKOUT", help=", ".join(SYSTEMS))
    parser.add_argument("--write", action="store_true", help="results.csv, README.md and the arrays of the tests")
    options = parser.parse_args(arguments)
    rows = read_csv(HERE / "results.csv") if (HERE / "results.csv").exists() else []
    for text in options.checkouts:
        system, _, checkout = text.partition("=")
        if system not in SYSTEMS or not checkout:
            parser.error(f"{text}: SYSTEM=CHECKOUT, with a system of {', '.join(SYSTEMS)}")
        measured = measure(system, Path(checkout), write=options.write)
        rows = [row for row in rows if row["system"] != system] + measured
        for row in measured:
            print(*row.values(), sep="\t", flush=True)
    if options.write:
        rows.sort(key=lambda row: SYSTEMS.index(row["system"]))
        write_csv(HERE / "results.csv", COLUMNS, rows)
        page = HERE / "README.md"
        write_atomically(page, fill(page.read_text(encoding="utf-8"), {"results": table(rows)}).encode())
    if unnamed := [f"{row['system']}: {row['stage']}" for row in rows if row["equal"] == "no" and not row["note"]]:
        sys.exit(f"differ by more than {GOAL:g}, and no note says why: {', '.join(unnamed)}")


def measure(system: str, checkout: Path, *, write: bool) -> list[dict[str, str]]:
    """Return the stages of a system as rows; write the arrays of its test."""
    module = importlib.import_module(f"benchmarks.parity.{system}")
    verify_commit(checkout, module.AUTHORS)
    recorder = Recorder()
    module.measure(checkout.resolve(), recorder)
    if write:
        recorder.write(system, module.AUTHORS)
    return [
        {
            "system": system,
            **module.AUTHORS._asdict(),
            "stage": stage.name,
            "n": str(stage.n),
            "largest": f"{stage.largest:.3g}",
            "difference": f"{stage.difference:.1e}",
            "equal": "yes" if stage.equal else "no",
            "note": stage.note,
        }
        for stage in recorder.stages
    ]


def table(rows: Sequence[Mapping[str, str]]) -> str:
    """Return the stages as a table in Markdown."""
    columns = ("system", "stage", "n", "largest", "difference", "equal", "note")
    head = ("System", "Stage", "Values", "Largest of theirs", "Largest difference, relative", "Equal", "What differs")
    return markdown_rows([head, ["---"] * len(head), *([row[name] for name in columns] for row in rows)])


if __name__ == "__main__":
    main()
