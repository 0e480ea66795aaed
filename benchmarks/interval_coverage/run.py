"""How often intervals that promise 95 % hold the truth, where the truth is known.

Usage: python -m benchmarks.interval_coverage.run [--simulations N]

Writes results.csv beside itself and the tables between the markers of README.md. The figures in the repository are of
``--simulations 1000``; the default takes about a minute of processor time. `bands`,
`rare_differences` and `unequal` make of the rows what `music_evals.stats.intervals` holds as `SIMULATED_COVERAGE`,
`RARE_DIFFERENCES` and `UNEQUAL_COVERAGE`, and a test compares them.
"""

from __future__ import annotations

import argparse
import csv
import functools
import io
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from benchmarks.interval_coverage import rare, rivals, worlds
from benchmarks.interval_coverage.rare import MEASURED
from benchmarks.interval_coverage.worlds import Songs, World

from music_evals.files import write_atomically
from music_evals.metrics.divergence import jensen_shannon, masses, n_bins
from music_evals.stats import bootstrap_divergence, swap_test_divergence
from music_evals.stats.intervals import MANY_CLUSTERS

HERE = Path(__file__).parent
START, END = "<!-- tables:start -->", "<!-- tables:end -->"
CLUSTERS = (2, 3, 4, 5, 10, 18, 30, 60, 120)
RARE_SHOWN = (10, 20, 30, 60)
RARE_CLUSTERS = (2, 3, 5, 10, 20, 30, 60, 120)
MEASURED_CLUSTERS = (10, 20, 60)
DIVERGENCE_CLUSTERS = (2, 3, 4, 5, 10, 18, 30, 60)
SHOWN = (10, 18, 30, 60)
CONFIDENCE = 0.95
OTHER_CONFIDENCES = (0.9875, 0.99375)
"""Of four and of eight intervals that hold together in 95 %, as in `benchmarks/musib/hypotheses.py`."""
WIDE = 0.95
"""Quantile of the widths that is reported beside their median."""
RARE_BANDS = (1, 5, 10, 20, 30, 60)
"""Effective numbers of clusters where a row of `RARE_DIFFERENCES` begins."""
BANDS = (1, 5, 10, 17)
"""Effective numbers of clusters where a row of `SIMULATED_COVERAGE` begins."""
N_RESAMPLES = 200
"""Of the bootstrap of divergences."""
SLOWER = 4
"""Divergences are simulated less often by this: each sample is a bootstrap of its own."""
LARGEST = float(np.log(2))


class Found(NamedTuple):
    """How an estimator did in a world."""

    kind: str
    """``"mean"``, ``"rare"`` of means with rare errors, ``"divergence"`` or ``"difference"`` of divergences."""
    sizes: str
    world: str
    n_clusters: int
    effective: float
    estimator: str
    coverage: float
    width: float
    """Median."""
    wide: float
    """95 % quantile of the widths."""
    beside: float
    """Share of estimates outside of their own interval."""
    confidence: float
    """Nominal coverage."""
    promised: bool
    """Counts for `SIMULATED_COVERAGE`: it is no world of stress, from which `UNEQUAL_COVERAGE` is."""


def of_means(every: Sequence[World], n_simulations: int, clusters: Sequence[int] = CLUSTERS) -> Iterator[Found]:
    """Simulate the intervals of means."""
    for world in every:
        for n_clusters in clusters:
            rng = np.random.default_rng([n_clusters, n_simulations])
            sums, counts = world.draw(rng, n_clusters, n_simulations)
            estimates = sums.sum(axis=0) / counts.sum(axis=0)
            effective = counts.sum(axis=0) ** 2 / (counts**2).sum(axis=0)
            compared = rivals.estimators(rng, world)
            tried = [(name, CONFIDENCE, interval) for name, interval in compared.items()]
            if world.sizes != MEASURED:
                tried += [
                    ("chosen", confidence, functools.partial(compared["chosen"], confidence=confidence))
                    for confidence in OTHER_CONFIDENCES
                ]
            with np.errstate(divide="ignore", invalid="ignore"):  # samples that are all alike have no interval
                for name, confidence, interval in tried:
                    what = ("rare" if world.unseen else "mean", world.sizes, world.name, n_clusters, name)
                    made = np.stack([*interval(sums, counts), estimates, effective], axis=1)
                    yield _judged(what, made, world.truth, confidence, promised=not world.stress)


class _Recorder:
    """A divergence that keeps what it gave: the value of the data first, then those of resamples."""

    def __init__(self) -> None:
        self.values: list[float] = []

    def __call__(self, reference: rivals.Floats, estimate: rivals.Floats) -> rivals.Floats:
        found = np.asarray(jensen_shannon(reference, estimate), dtype=np.float64)
        self.values += found.tolist()
        return found


def of_divergences(songs: Songs, n_simulations: int, clusters: Sequence[int] = DIVERGENCE_CLUSTERS) -> Iterator[Found]:
    """Simulate the intervals of divergences, by drawing whole songs out of the real ones."""
    size = n_bins("corrected")
    for system, features in songs.bins.items():
        for feature, (reference, estimate) in features.items():
            truth = float(jensen_shannon(masses(reference, size), masses(estimate, size)))
            for n_clusters in clusters:
                ends = []
                for items, groups, seed in _draws(songs, n_clusters, n_simulations):
                    measure = _Recorder()
                    found = bootstrap_divergence(
                        reference[items], estimate[items], groups, n_bins=size, divergence=measure,
                        upper=LARGEST, n_resamples=N_RESAMPLES, seed=seed,
                    )  # fmt: skip
                    quantiles = np.quantile(measure.values[1:], [0.025, 0.975])
                    basic = np.clip(2 * found.estimate - quantiles[::-1], 0, LARGEST)
                    ends.append((*quantiles, *basic, found.low, found.high, found.estimate, found.n_clusters))
                made = np.array(ends)
                for i, name in enumerate(("percentile", "basic", "chosen")):
                    what = ("divergence", "test songs", f"{system}, {feature}", n_clusters, name)
                    yield _judged(what, made[:, [2 * i, 2 * i + 1, 6, 7]], truth)


def of_differences(songs: Songs, n_simulations: int, clusters: Sequence[int] = DIVERGENCE_CLUSTERS) -> Iterator[Found]:
    """Simulate the intervals of the difference of two systems' divergences."""
    size = n_bins("corrected")
    first, second = songs.bins.values()
    for feature in first:
        (reference, a), (_, b) = first[feature], second[feature]
        held = masses(reference, size)
        truth = float(jensen_shannon(held, masses(a, size)) - jensen_shannon(held, masses(b, size)))
        for n_clusters in clusters:
            ends = []
            for items, groups, seed in _draws(songs, n_clusters, n_simulations):
                found = swap_test_divergence(
                    reference[items], a[items], b[items], groups, n_bins=size, divergence=jensen_shannon,
                    upper=LARGEST, n_resamples=1, n_bootstrap=N_RESAMPLES, seed=seed,
                )  # fmt: skip
                sizes = np.bincount(groups)
                ends.append((found.low, found.high, found.difference, sizes.sum() ** 2 / (sizes**2).sum()))
            what = ("difference", "test songs", f"copy - mode pitch, {feature}", n_clusters, "chosen")
            yield _judged(what, np.array(ends), truth)


def _draws(songs: Songs, n_clusters: int, n_simulations: int) -> Iterator[tuple[worlds.Integers, worlds.Integers, int]]:
    """Yield items and clusters of samples of songs, and a seed."""
    rng = np.random.default_rng([n_clusters, n_simulations])
    windows = [np.flatnonzero(songs.codes == code) for code in range(len(songs.names))]
    for seed in range(n_simulations):
        drawn = [windows[code] for code in rng.integers(0, len(windows), n_clusters)]
        yield np.concatenate(drawn), np.repeat(np.arange(n_clusters), list(map(len, drawn))), seed


def _judged(
    what: tuple[str, str, str, int, str],
    made: rivals.Floats,
    truth: float,
    confidence: float = CONFIDENCE,
    *,
    promised: bool = True,
) -> Found:
    """Return a row from the ends, the estimate and the effective number of clusters of each sample."""
    kind, sizes, world, n_clusters, name = what
    low, high, estimates, effective = made.T
    return Found(
        kind, sizes, world, n_clusters, float(effective.mean()), name,
        coverage=_coverage(low, high, truth),
        width=float(np.nanmedian(high - low)),
        wide=float(np.nanquantile(high - low, WIDE)),
        beside=float(((estimates < low) | (estimates > high)).mean()),
        confidence=confidence,
        promised=promised,
    )  # fmt: skip


def _coverage(low: rivals.Floats, high: rivals.Floats, truth: float) -> float:
    """Return the share that holds the truth, of the intervals that are given: samples without spread have none."""
    return float(((low <= truth) & (truth <= high)).sum() / np.isfinite(low).sum())


def bands(rows: Iterable[Found]) -> list[tuple[int, tuple[float, float], tuple[float, float]]]:
    """Return least and largest coverage of means and of divergences by effective number of clusters."""
    kept = [row for row in _of_the_package(rows) if row.promised]
    made = []
    for least, below in zip(BANDS, (*BANDS[1:], MANY_CLUSTERS), strict=True):
        parts = []
        for kinds in (("mean", "rare"), ("divergence", "difference")):
            inside = [row.coverage for row in kept if row.kind in kinds and least <= row.effective < below]
            parts.append((round(min(inside), 2), round(max(inside), 2)))
        made.append((least, *parts))
    return made


def unequal(rows: Iterable[Found]) -> float:
    """Return the least coverage in the worlds of stress, of sizes."""
    return round(min(row.coverage for row in _of_the_package(rows) if not row.promised and row.kind == "mean"), 2)


def rare_differences(rows: Iterable[Found]) -> list[tuple[int, float]]:
    """Return the least coverage of differences where one side has rare errors, by effective number of clusters.

    A side that has none adds noise alone, so that the difference is covered as the mean by `spread alone`.
    """
    alone = [row for row in rows if row.estimator == "spread alone" and row.promised]
    bounds = zip(RARE_BANDS, (*RARE_BANDS[1:], np.inf), strict=True)
    inside = [(least, [row.coverage for row in alone if least <= row.effective < below]) for least, below in bounds]
    return [(least, round(min(covered), 2)) for least, covered in inside]


def _of_the_package(rows: Iterable[Found]) -> list[Found]:
    """Return the rows of the intervals that the package gives, at the confidence that it takes by default."""
    return [row for row in rows if row.estimator == "chosen" and row.confidence == CONFIDENCE]


def read(path: Path = HERE / "results.csv") -> list[Found]:
    """Return the rows of a table."""
    with path.open(encoding="utf-8", newline="") as file:
        return [
            Found(
                row["kind"],
                row["sizes"],
                row["world"],
                int(row["n_clusters"]),
                float(row["effective"]),
                row["estimator"],
                float(row["coverage"]),
                float(row["width"]),
                float(row["wide"]),
                float(row["beside"]),
                float(row["confidence"]),
                row["promised"] == "True",
            )
            for row in csv.DictReader(file)
        ]


def write(rows: Sequence[Found]) -> None:
    """Write results.csv and the tables of README.md."""
    table = io.StringIO()
    writer = csv.writer(table, lineterminator="\n")
    writer.writerow(Found._fields)
    for row in rows:
        numbers = {name: f"{getattr(row, name):.4f}" for name in ("effective", "coverage", "width", "wide", "beside")}
        writer.writerow(row._replace(**numbers))
    write_atomically(HERE / "results.csv", table.getvalue().encode())
    page = HERE / "README.md"
    before, _, rest = page.read_text(encoding="utf-8").partition(START)
    after = rest.partition(END)[2]
    write_atomically(page, f"{before}{START}\n{text(rows)}\n{END}{after}".encode())


def text(rows: Sequence[Found]) -> str:
    """Return the tables as Markdown."""
    parts = ["### What the tables of this package say below 30 effective clusters", _bands_text(rows)]
    parts += [f"Where sizes are very unequal (`all songs`), at any number of clusters: {unequal(rows):.2f} at worst."]
    parts += ["### Rare, large errors", _rare_text(rows)]
    parts += ["### Rare, large errors: scores of recordings under edits that leave the music as it is"]
    parts += [_measured_text(rows), "### Differences of means where one side alone has rare, large errors"]
    cells = [[str(least), f"{coverage:.2f}"] for least, coverage in rare_differences(rows)]
    parts += [_markdown([["effective clusters, from", "least coverage"], ["---:", "---:"], *cells])]
    titles = {"mean": "Means", "divergence": "Divergences", "difference": "Differences of two systems' divergences"}
    for kind, title in titles.items():
        for n_clusters in SHOWN:
            wanted = (kind, n_clusters, CONFIDENCE)
            held = [row for row in rows if (row.kind, row.n_clusters, row.confidence) == wanted]
            parts += [f"### {title}, {n_clusters} clusters", _table(held)] if held else []
    return "\n\n".join([*parts, "### Means, other confidences", _confidences_text(rows)])


def _confidences_text(rows: Sequence[Found]) -> str:
    """Return least and largest coverage at each confidence, over the worlds that count."""
    kept = [row for row in rows if row.kind == "mean" and row.estimator == "chosen" and row.promised]
    confidences = (CONFIDENCE, *OTHER_CONFIDENCES)
    lines = [["clusters", *map(str, confidences)], ["---:", *("---:" for _ in confidences)]]
    for n_clusters in CLUSTERS:
        cells = []
        for confidence in confidences:
            held = [row.coverage for row in kept if (row.n_clusters, row.confidence) == (n_clusters, confidence)]
            cells.append(f"{min(held):.3f} to {max(held):.3f}")
        lines.append([str(n_clusters), *cells])
    return _markdown(lines)


def _bands_text(rows: Sequence[Found]) -> str:
    lines = [["effective clusters", "means", "divergences"], ["---", "---:", "---:"]]
    starts = [*(row[0] for row in bands(rows)), MANY_CLUSTERS]
    for (least, *parts), below in zip(bands(rows), starts[1:], strict=True):
        lines.append([f"{least} to {below}", *(f"{low:.2f} to {high:.2f}" for low, high in parts)])
    return _markdown(lines)


def _rare_text(rows: Sequence[Found]) -> str:
    """Return coverage and median widths in the worlds that are made up."""
    names = ("spread alone", "chosen", "Learned-Miller, Thomas", "betting")
    head = ["sizes", "clusters", "effective", "world", *names, *(f"width: {name}" for name in names)]
    lines = [head, ["---", "---:", "---:", "---", *("---:" for _ in head[4:])]]
    made_up = [row for row in rows if row.kind == "rare" and row.sizes != MEASURED and row.n_clusters in RARE_SHOWN]
    wanted = [row for row in made_up if row.confidence == CONFIDENCE]
    for sizes, n_clusters, world in dict.fromkeys((row.sizes, row.n_clusters, row.world) for row in wanted):
        held = {row.estimator: row for row in wanted if row[1:4] == (sizes, world, n_clusters)}
        cells = [f"{held[name].coverage:.3f}" if name in held else "" for name in names]
        cells += [f"{held[name].width:.3f}" if name in held else "" for name in names]
        lines.append([sizes, str(n_clusters), f"{held['chosen'].effective:.1f}", world, *cells])
    return _markdown(lines)


def _measured_text(rows: Sequence[Found]) -> str:
    """Return, over the edits of each score, the least coverage, the width and how it compares."""
    head = ["score", "sources", "edits", "least: spread alone", "least: chosen", "width", "times as wide"]
    lines = [head, ["---", *("---:" for _ in head[1:])]]
    measured = [row for row in rows if row.sizes == MEASURED]
    for score, n in dict.fromkeys((row.world.split(",")[0], row.n_clusters) for row in measured):
        held = [row for row in measured if (row.world.split(",")[0], row.n_clusters) == (score, n)]
        alone, ours = ([row for row in held if row.estimator == name] for name in ("spread alone", "chosen"))
        ratios = [b.width / a.width for a, b in zip(alone, ours, strict=True) if a.width > 0]
        width, ratio = np.median([row.width for row in ours]), np.median(ratios)
        least = [f"{min(row.coverage for row in part):.3f}" for part in (alone, ours)]
        lines.append([f"`{score}`", str(n), str(len(ours)), *least, f"{width:.3f}", f"{ratio:.2f}"])
    return _markdown(lines)


def _table(rows: Sequence[Found]) -> str:
    names = list(dict.fromkeys(row.estimator for row in rows))
    head = ["sizes", "world", "effective", *names, "width", "95 % of widths"]
    head += ["width with unseen"] if "with unseen" in names else []
    lines = [head, ["---", "---", *("---:" for _ in head[2:])]]
    for place in dict.fromkeys((row.sizes, row.world) for row in rows):
        held = {row.estimator: row for row in rows if (row.sizes, row.world) == place}
        chosen = held["chosen"]
        covered = [f"{held[name].coverage:.3f}" if name in held else "" for name in names]
        cells = [*place, f"{chosen.effective:.1f}", *covered, f"{chosen.width:.3f}", f"{chosen.wide:.3f}"]
        cells += [f"{held['with unseen'].width:.3f}"] if "with unseen" in held else [""] * ("with unseen" in names)
        lines.append(cells)
    return _markdown(lines)


def _markdown(lines: Iterable[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def main() -> None:
    """Simulate everything."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--simulations",
        type=int,
        default=300,
        metavar="N",
        help=f"of means; those of divergences are {SLOWER} times fewer (default: %(default)s)",
    )
    n = parser.parse_args().simulations
    test, every = worlds.load_songs("test"), worlds.load_songs("train", "validation", "test")
    simulated = [
        *worlds.made_up(test.sizes),
        *worlds.real(test, "test songs"),
        *worlds.real(every, "all songs", ["note_f1"], stress=True),
    ]
    few = -(-n // SLOWER)
    rows = [
        *of_means(simulated, n),
        *of_means(rare.made_up(test.sizes), n, RARE_CLUSTERS),
        *of_means(rare.measured(), n, MEASURED_CLUSTERS),
    ]
    rows += [*of_divergences(test, few), *of_differences(test, few)]
    write(rows)
    print(text(rows))
    print(bands(rows), rare_differences(rows), unequal(rows))


if __name__ == "__main__":
    main()
