"""Simulated annotators: which cheats are caught within 30 songs, who is taken for one, and what a share costs.

    python -m benchmarks.caimap.simulate            # some minutes
    python -m benchmarks.caimap.simulate --write    # and into the README
    python -m benchmarks.caimap.simulate --worlds 1 # a trial

Each world is a seed: 4 annotators of each habit, 3 weeks, 10 structures and 10 descriptions a week. The thresholds of
the rules were set on seeds from 100; these are from 0. The honest habits run again with other parameters (`VARIED`).
"""

from __future__ import annotations

import argparse
import functools
import math
import statistics
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from benchmarks.musib.tables import fill

from music_evals.caimap.domain.simulation import HABITS, Habit, Outcome, Plan, simulate
from music_evals.files import write_atomically
from music_evals.stats.intervals import mean_interval

SHARES = (0.1, 0.2, 0.4)
OF_SHARES = ("careful", "hasty", "random")
ANNOTATORS, WEEKS = 4, 3
VARIED: Mapping[str, Habit] = {
    "careful": HABITS["careful"],
    "careful, worse": HABITS["careful"]._replace(points=80, points_sd=9, line_error=0.05, page=(1.0, 2.0), breaks=2.0),
    "quick expert, quicker": HABITS["quick expert"]._replace(page=(0.65, 1.1), describing=(1.22, 1.5), played=0.56),
    "slow phone, slower": HABITS["slow phone"]._replace(late_sec=2.0, missing=0.1, page=(2.0, 9.0)),
    "interrupted, more often": HABITS["interrupted"]._replace(breaks=7.0, describing=(2.0, 30.0)),
}
"""The honest habits with other parameters; on the last one the pauses of `restless` went from 12 to 24."""

COLUMNS = (
    "habit",
    "excluded within 30 songs",
    "songs until then, median",
    "paid before, of 600",
    "bad, of what entered",
)
SHARE_COLUMNS = (
    "share",
    "habit",
    "excluded after 1 week",
    "after 3",
    "below the mark, of what entered",
    "good ones lost",
    "scored, per description that entered",
)
README = Path(__file__).with_name("README.md")


def main(argv: Sequence[str] | None = None) -> None:
    """Print the tables; with ``--write`` put them into the README."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--worlds", type=int, default=20, help="seeds (default: %(default)s)")
    parser.add_argument("--write", action="store_true", help="put the tables into the README")
    options = parser.parse_args(argv)
    seeds = range(options.worlds)
    with ProcessPoolExecutor() as pool:
        cheats = list(pool.map(_cheats, seeds))
        shares = {share: list(pool.map(functools.partial(_of_share, share), seeds)) for share in SHARES}
    texts = {"cheats": cheat_table(cheats), "simulation": table(shares)}
    print(*texts.values(), sep="\n\n")
    if options.write:
        write_atomically(README, fill(README.read_text(encoding="utf-8"), texts).encode())


def _cheats(seed: int) -> list[Outcome]:
    plan = Plan(annotators=ANNOTATORS, weeks=WEEKS, seed=seed)
    varied = simulate(Plan(annotators=ANNOTATORS, weeks=WEEKS, seed=seed, habits=VARIED))
    return [*simulate(plan), *varied[1:]]


def _of_share(share: float, seed: int) -> list[Outcome]:
    habits = {name: HABITS[name] for name in OF_SHARES}
    return simulate(Plan(share, ANNOTATORS, WEEKS, seed=seed, habits=habits))


def cheat_table(worlds: list[list[Outcome]]) -> str:
    """Return the table of all habits; how many were excluded, with the Wilson interval of 95 %."""
    honest = {name for name, habit in {**HABITS, **VARIED}.items() if habit.honest}
    lines = [f"| {' | '.join(COLUMNS)} |", "|---" * len(COLUMNS) + "|"]
    rows = list(zip(*worlds, strict=True))
    for ours in sorted(rows, key=lambda row: row[0].habit not in honest):
        n = ANNOTATORS * len(ours)
        caught = round(sum(one.caught for one in ours) * ANNOTATORS)
        songs = [one.songs for one in ours if one.songs == one.songs]
        cells = (
            f"{ours[0].habit} ({'honest' if ours[0].habit in honest else 'cheat'})",
            f"{caught} of {n} ({_wilson(caught, n)})",
            f"{statistics.median(songs):.0f}" if songs else "none",
            f"{statistics.fmean(one.cents for one in ours) / 100:.0f}",
            _mean([one.bad for one in ours]),
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _wilson(count: int, n: int) -> str:
    z = statistics.NormalDist().inv_cdf(0.975)
    middle, half = (count + z * z / 2) / (n + z * z), z * math.sqrt(count * (n - count) / n + z * z / 4) / (n + z * z)
    return f"{100 * (middle - half):.0f} to {100 * (middle + half):.0f} %"


def table(worlds: dict[float, list[list[Outcome]]]) -> str:
    """Return the table of shares."""
    lines = [f"| {' | '.join(SHARE_COLUMNS)} |", "|---" * len(SHARE_COLUMNS) + "|"]
    for share, runs in worlds.items():
        for ours in zip(*runs, strict=True):
            cells = (
                _mean([one.excluded[0] for one in ours]),
                _mean([one.excluded[-1] for one in ours]),
                _mean([one.bad for one in ours]),
                _mean([one.lost for one in ours]),
                _mean([one.scored / one.entered if one.entered else float("nan") for one in ours], most=float("inf")),
            )
            lines.append(f"| {100 * share:.0f} % | {ours[0].habit} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _mean(values: Sequence[float], most: float = 1.0) -> str:
    found = mean_interval(values, None, span=(0.0, most))
    if not found.n_defined:
        return "nothing entered"
    inside = f" ({found.low:.2f} to {found.high:.2f})" if found.low == found.low else ""
    return f"{found.estimate:.2f}{inside}"


if __name__ == "__main__":
    main()
