"""The runs behind the tables: every model with weights and every baseline, on each data set and by each protocol.

A run lies in a folder whose name holds what decides it, so that new weights make a new run beside the old one, and one
that was interrupted goes on where it stood. What models answered is kept beside the runs and never asked twice.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.musib.systems import DESIGNS, Data, Design, as_published, fingerprint, size_of, weights_of

import music_evals
from music_evals.benchmark.inputs import load_split
from music_evals.benchmark.run import Progress

OFFICIAL_CONFIG = "musib_official"
PROTOCOLS = ("honest", "official")
N_SEEDS = 5


class Plan(NamedTuple):
    """One run: what is judged, how, and with which decoding."""

    data: Data
    protocol: str  # one of `PROTOCOLS`
    decoding: str  # "own", or "published": that of the authors' evaluation, which may leak
    models: tuple[Path, ...]
    settings: dict[str, Any]  # what else `music_evals.run` is given

    @property
    def name(self) -> str:
        """Folder of the run."""
        facts = {"models": [fingerprint(folder) for folder in self.models], "settings": self.settings}
        digest = hashlib.sha256(json.dumps(facts, sort_keys=True, default=str).encode()).hexdigest()[:8]
        designs = f"-{self.models[0].name}" if self.decoding == "published" else ""
        return f"{self.data.key}-{self.protocol}-{self.decoding}{designs}-{digest}"


class Judged(NamedTuple):
    """A finished run."""

    plan: Plan
    results: dict[str, Any]  # the content of results.json
    found: Any  # `benchmark.score_table.ScoreTable`: the scores of each item
    sizes: dict[str, str]  # system -> its size in words; baselines have none


def untrained(data: Data, models: Path | None = None) -> list[str]:
    """Return the designs that have no weights for a data set."""
    return [design.name for design in DESIGNS if weights_of(design, data, models) is None]


def plans(
    data: Data,
    protocols: Sequence[str],
    out: Path,
    *,
    items: int | None = None,
    seeds: int = N_SEEDS,
    models: Path | None = None,
) -> Iterator[Plan]:
    """Yield the runs of one data set that is here."""
    trained = {design: folder for design in DESIGNS if (folder := weights_of(design, data, models)) is not None}
    shared = {"n_seeds": seeds, "limit": items, "report": False}
    if "honest" in protocols:
        settings = {**shared, "dataset": data.place, "config": data.config}
        yield Plan(data, "honest", "own", tuple(trained.values()), settings)
    if "official" in protocols and data.table is not None:
        settings = {**shared, **_official(data, out)}
        yield Plan(data, "official", "own", tuple(trained.values()), settings)
        for design, folder in trained.items():
            own = {**settings, "baselines": "none", "decoding": design.decoding}
            yield Plan(data, "official", "published", (as_published(design, folder, out),), own)


def _official(data: Data, out: Path) -> dict[str, Any]:
    """Return the settings of the published conditions: the first 16 measures of each song, by the official formulas."""
    if data.dataset == "jsb_chorales":
        return {"dataset": data.place, "protocol": "official"}
    return {"dataset": str(first_windows(data, out)), "variant": "official"}


def first_windows(data: Data, out: Path) -> Path:
    """Write a data set of which validation and test hold the first window of each song alone, and return its folder."""
    folder = out / f"{data.key}-first-windows"
    for split in ("train", "validation", "test"):
        path = folder / f"{split}.parquet"
        if path.is_file():
            continue
        rows = load_split(data.place, data.config, split)
        if split != "train":
            first: dict[str, int] = {}
            for place, song in enumerate(rows["song"]):
                first.setdefault(song, place)
            rows = rows.select(list(first.values()))
        folder.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(".part")
        rows.to_parquet(str(unfinished))
        unfinished.replace(path)
    return folder


def judge(plan: Plan, out: Path, progress: Progress | None = None) -> Judged:
    """Do one run, or take it up where it stood."""
    outcome = music_evals.run(
        "inpainting",
        out / plan.name,
        models=[str(folder) for folder in plan.models],
        **({"cache": str(out / "answers")} if plan.models else {}),
        **plan.settings,
        progress=progress,
    )
    sizes = {
        name: size_of(Path(about["source"])) for name, about in outcome.results["systems"].items() if "source" in about
    }
    return Judged(plan, outcome.results, outcome.scores, sizes)


def design_of(results: Mapping[str, Any], system: str) -> Design | None:
    """Return the design that a system is of; None for baselines and controls."""
    name = system.removesuffix(" (leaks)").partition(":")[0]
    return next((design for design in DESIGNS if design.name == name and "source" in results["systems"][system]), None)
