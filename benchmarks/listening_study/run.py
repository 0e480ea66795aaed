"""Listening tests that nobody heard: what their intervals cover, what screening catches, and how large one must be.

Usage: python -m benchmarks.listening_study.run [--draws 500] [--power-draws 200]
       python -m benchmarks.listening_study.run --write   # tables of the README from the CSV files alone

Writes, beside itself: coverage.csv and power.csv, and the tables of the README.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.musib.tables import fill, read_csv, write_csv

from music_evals.benchmark.formats import markdown_rows
from music_evals.files import write_atomically
from music_evals.studies.listening.settings import ListeningSettings
from music_evals.studies.listening.simulation import PlannedTest, plan_listening, world_of

HERE = Path(__file__).resolve().parent
EFFECTS = {"rating": (0.25, 0.5, 1.0), "ab": (0.25, 0.5, 1.0), "mushra": (4.0, 8.0, 16.0)}
SIZES = (4, 8, 16, 32)
USUAL = {"rating": 0.5, "ab": 0.5, "mushra": 8.0}


class Condition(NamedTuple):
    """One world and one design."""

    type: str
    about: str
    listeners: int = 12
    blocks: int = 1
    effect: float | None = None
    others: Mapping[str, Any] = {}


def conditions() -> list[Condition]:
    """Return what is simulated."""
    found = []
    for kind in USUAL:
        found += [Condition(kind, "careful listeners", size) for size in (4, 12, 24)]
        found += [
            Condition(kind, "no difference", effect=0.0),
            Condition(kind, "six items", others={"n_items": 6}),
            Condition(kind, "three blocks", listeners=24, blocks=3),
            Condition(kind, "a quarter careless", listeners=16, others={"careless": 0.25}),
        ]
    found.append(Condition("rating", "ratings rise by 1 to the last page", others={"order_effect": 1.0}))
    found.append(Condition("ab", "the first sound is preferred", others={"order_effect": 0.5}))
    found.append(Condition("mushra", "harsh listeners are harsh on the reference", others={"is_reference_harsh": True}))
    return found


def simulate(condition: Condition, draws: int) -> PlannedTest:
    """Return what tests of one condition found."""
    effect = USUAL[condition.type] if condition.effect is None else condition.effect
    world = world_of(condition.type, effect, **condition.others)
    # without the rule on agreement, which benchmarks/studies looks at
    settings = ListeningSettings(
        type=condition.type, blocks=condition.blocks, listeners=condition.blocks, least_agreement=0.0
    )
    return plan_listening(world, settings, [condition.listeners], n_draws=draws)[0]


def told(cell: str, digits: int) -> str:
    """Return a number as a table has it."""
    return "" if cell in {"", "nan"} else f"{round(float(cell), digits) + 0.0:.{digits}f}"  # never -0.00


def write_tables() -> None:
    """Fill the tables of the README from the CSV files."""
    rows = read_csv(HERE / "coverage.csv")
    head = ["type", "world", "listeners", "items", "blocks", "truth", "coverage", "nobody left out", "bias",
            "nobody left out", "width", "careless kept", "careful lost"]  # fmt: skip
    lines = [head, ["---"] * len(head)]
    for row in rows:
        digits = 1 if row["type"] == "mushra" else 2
        plain = [row[name] for name in ("type", "about", "n_listeners", "n_items", "blocks")]
        scaled = [told(row[name], digits) for name in ("truth",)]
        lines.append(
            [*plain, *scaled, told(row["coverage"], 3), told(row["coverage_all"], 3), told(row["bias"], digits),
             told(row["bias_all"], digits), told(row["width"], digits), told(row["kept_careless"], 2),
             told(row["lost_careful"], 3)]
        )  # fmt: skip
    power = read_csv(HERE / "power.csv")
    sizes = sorted({int(row["n_listeners"]) for row in power})
    of = {(row["type"], float(row["effect"]), int(row["n_listeners"])): row["power"] for row in power}
    curves = [["type", "effect", *(f"{size} listeners" for size in sizes)], ["---"] * (2 + len(sizes))]
    for kind, effect in dict.fromkeys((kind, effect) for kind, effect, _ in of):
        curves.append([kind, f"{effect:g}", *(told(of[kind, effect, size], 2) for size in sizes)])
    readme = HERE / "README.md"
    sections = {"coverage": markdown_rows(lines), "power": markdown_rows(curves)}
    write_atomically(readme, fill(readme.read_text(encoding="utf-8"), sections).encode())


def main() -> None:
    """Simulate, or write the tables alone."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=500, help="tests of each condition (default: %(default)s)")
    parser.add_argument("--power-draws", type=int, default=200, help="of each size and effect (default: %(default)s)")
    parser.add_argument("--write", action="store_true", help="write the tables of the README from the CSV files alone")
    options = parser.parse_args()
    if not options.write:
        rows = []
        for condition in conditions():
            found = simulate(condition, options.draws)
            about = {"type": condition.type, "about": condition.about, "blocks": condition.blocks}
            rows.append({**about, "draws": options.draws, **found._asdict()})
            print(condition.type, condition.about, f"{found.coverage:.3f}", flush=True)
        write_csv(HERE / "coverage.csv", list(rows[0]), rows)
        curves = []
        for kind, effects in EFFECTS.items():
            for effect in effects:
                sizes = plan_listening(
                    world_of(kind, effect),
                    ListeningSettings(type=kind, least_agreement=0.0),
                    SIZES,
                    n_draws=options.power_draws,
                )
                for size in sizes:
                    about = {"type": kind, "effect": effect, "draws": options.power_draws}
                    curves.append({**about, **size._asdict()})
                print(kind, effect, [round(size.power, 2) for size in sizes], flush=True)
        write_csv(HERE / "power.csv", list(curves[0]), curves)
    write_tables()


if __name__ == "__main__":
    main()
