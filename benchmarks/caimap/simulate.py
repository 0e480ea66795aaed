"""Simulated annotators under shares of 10, 20 and 40 % of sampled descriptions, in one table.

    python -m benchmarks.caimap.simulate            # some minutes
    python -m benchmarks.caimap.simulate --write    # and into the README
    python -m benchmarks.caimap.simulate --worlds 1 # a trial

Each world is a seed: 10 annotators of each habit, 4 weeks, 10 structures and 10 descriptions a week. Values are means
over worlds with their 95 % interval.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from benchmarks.musib.tables import fill

from music_evals.caimap.simulation import HABITS, Outcome, Plan, simulate
from music_evals.files import write_atomically
from music_evals.stats.intervals import mean_interval

SHARES = (0.1, 0.2, 0.4)
COLUMNS = (
    "share",
    "habit",
    "excluded after 1 week",
    "after 4",
    "below the mark, of what entered",
    "good ones lost",
    "scored, per description that entered",
)
README = Path(__file__).with_name("README.md")


def main(argv: Sequence[str] | None = None) -> None:
    """Print the table; with ``--write`` put it into the README."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--worlds", type=int, default=20, help="seeds (default: %(default)s)")
    parser.add_argument("--write", action="store_true", help="put the table into the README")
    options = parser.parse_args(argv)
    worlds = {share: [simulate(Plan(share=share, seed=seed)) for seed in range(options.worlds)] for share in SHARES}
    text = table(worlds)
    print(text)
    if options.write:
        write_atomically(README, fill(README.read_text(encoding="utf-8"), {"simulation": text}).encode())


def table(worlds: dict[float, list[list[Outcome]]]) -> str:
    """Return the table of all shares and habits."""
    lines = [f"| {' | '.join(COLUMNS)} |", "|---" * len(COLUMNS) + "|"]
    for share, runs in worlds.items():
        for place, habit in enumerate(HABITS):
            ours = [run[place] for run in runs]
            cells = (
                _mean([one.excluded[0] for one in ours]),
                _mean([one.excluded[-1] for one in ours]),
                _mean([one.bad for one in ours]),
                _mean([one.lost for one in ours]),
                _mean([one.scored / one.entered if one.entered else float("nan") for one in ours], most=float("inf")),
            )
            lines.append(f"| {100 * share:.0f} % | {habit} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _mean(values: Sequence[float], most: float = 1.0) -> str:
    found = mean_interval(values, None, span=(0.0, most))
    if not found.n_defined:
        return "nothing entered"
    inside = f" ({found.low:.2f} to {found.high:.2f})" if found.low == found.low else ""
    return f"{found.estimate:.2f}{inside}"


if __name__ == "__main__":
    main()
