"""What runs of inpainting hold for a listening study: their items, and what each system wrote for them.

Everything is taken from the records; no model is asked again. A system of several runs is the same one where its name
and the hash of its content are equal. What has seen the truth (controls, and models that leak) is in a study only where
it is named.
"""

from __future__ import annotations

import dataclasses
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from music_evals.annotations import MUSIB_LAYOUT, Tokens
from music_evals.benchmark.records import read_records, reading_rows, records_at
from music_evals.benchmark.run import RECORDS
from music_evals.benchmark.score_table import OUTSIDE
from music_evals.errors import InvalidInputError, NoDataError, UnknownNameError
from music_evals.protocols import CONTROL
from music_evals.symbolic import noteseq

TASK = "inpainting"

PLAYED_BASELINES: Final = ("copy_past", "lag_vote")
"""Baselines in a study unless it says otherwise: plain copying, and the copy that is best on validation."""


class HeardItem(NamedTuple):
    """An item of a run."""

    song: str
    tokens: Tokens  # the whole truth, shape (384,)
    run: int  # number of the run that it is taken from


class Middle(NamedTuple):
    """What a system wrote for an item."""

    seed: int
    run: int  # number of its run
    tokens: Tokens  # shape (96,)


@dataclasses.dataclass(eq=False)
class HeardSystem:
    """A system of one run or of several equal ones."""

    run: int  # number of the first run that has it
    name: str  # in its records
    about: Mapping[str, Any]  # what the header of its run says of it
    middles: dict[str, Middle]  # by item, that of the lowest seed
    label: str = ""  # in the study


@dataclasses.dataclass(frozen=True, eq=False)
class RunContent:
    """What several runs hold together."""

    names: tuple[str, ...]  # of the runs
    headers: tuple[Mapping[str, Any], ...]
    items: Mapping[str, HeardItem]
    systems: tuple[HeardSystem, ...]  # in the order of the runs, with different labels


def read_runs(runs: Sequence[str | os.PathLike[str]]) -> RunContent:
    """Read the records of runs, and give each system a label of its own."""
    if not runs:
        raise NoDataError("no runs; give the folder of one at least")
    places = [Path(run).resolve() for run in runs]
    if len(set(places)) < len(places):
        twice = next(str(runs[n]) for n, place in enumerate(places) if place in places[:n])
        raise InvalidInputError(f"the run {twice} is given twice; give it once")
    short = [place.parent.name if place.name == RECORDS else place.name for place in places]
    names = tuple(short if len(set(short)) == len(short) else map(str, runs))
    headers: list[Mapping[str, Any]] = []
    items: dict[str, HeardItem] = {}
    systems: dict[tuple[str, str], HeardSystem] = {}
    for number, path in enumerate(map(Path, runs)):
        with reading_rows():
            header, read_items, run_systems = _read_run(path, number)
            headers.append(header)
            for item, row in read_items.items():
                known = items.setdefault(item, row)
                if not np.array_equal(known.tokens, row.tokens):
                    raise InvalidInputError(
                        f"{names[known.run]} and {names[number]} hold different music as item {item!r}; give runs on "
                        "the same data"
                    )
            for system in run_systems:
                key = (system.name, str(system.about["content_hash"]))
                known_system = systems.setdefault(key, system)
                known_system.middles = {**system.middles, **known_system.middles}
    _label(list(systems.values()), names)
    return RunContent(names, tuple(headers), items, tuple(systems.values()))


def _read_run(path: Path, number: int) -> tuple[dict[str, Any], dict[str, HeardItem], list[HeardSystem]]:
    """Return the header of a run, its items, and its systems but for the truth itself."""
    place = records_at(path) or records_at(path / RECORDS)
    if place is None or not place.exists():
        raise NoDataError(f"{path} holds no records ({RECORDS}); give the folder of a run")
    records = read_records(place)
    header = records[0]
    if header.get("task") != TASK:
        raise InvalidInputError(f"{path} is a run of {header.get('task', 'another task')}; expected one of {TASK}")
    systems = {
        name: HeardSystem(number, name, about, {}) for name, about in header["systems"].items() if name != CONTROL
    }
    items = {}
    for row in records.of("item", "prediction"):
        if row["kind"] == "item" and "error" not in row:
            tokens = noteseq.check_contexts([row["tokens"]])[0]
            items[row["item"]] = HeardItem(str(row["song"]), tokens, number)
        elif row["kind"] == "prediction" and row["system"] in systems:
            # that of the lowest seed; of two with one seed the later was written last
            seed, middles = int(row["seed"]), systems[row["system"]].middles
            if row["item"] not in middles or seed <= middles[row["item"]].seed:
                tokens = noteseq.check_tokens(row["middle"]).reshape(MUSIB_LAYOUT.middle_steps)
                middles[row["item"]] = Middle(seed, number, tokens)
    return header, items, list(systems.values())


def _label(systems: Sequence[HeardSystem], names: Sequence[str]) -> None:
    """Label each system by its name and decoding, and where that is not enough by temperature, then by run."""
    for system in systems:
        decoding = system.about.get("decoding")
        # a run says it in the name where it is not the model's default: `net:sample`, `net:teacher_forced (leaks)`
        shown = system.name.replace(f":{decoding}", f" {decoding}")
        system.label = shown if decoding is None or shown != system.name else f"{shown} {decoding}"
    for more in ("temperature", "run"):
        counts = Counter(system.label for system in systems)
        for system in systems:
            further = f"({names[system.run]})" if more == "run" else f"temperature {system.about.get('temperature')}"
            if counts[system.label] > 1 and (more == "run" or system.about.get("temperature") is not None):
                system.label += f" {further}"
    twice = [label for label, n in Counter(system.label for system in systems).items() if n > 1 or label == CONTROL]
    if twice:
        raise InvalidInputError(f"different systems have the name {twice[0]!r}; name the folders of their runs apart")


def choose_systems(content: RunContent, choice: str | None) -> list[HeardSystem]:
    """Return the systems of a choice: names with commas, ``"all"``, or None for models and `PLAYED_BASELINES`."""
    ranked = [system for system in content.systems if system.about["role"] not in OUTSIDE]
    if choice is None:
        chosen = [s for s in ranked if s.about["role"] != "baseline" or s.name in PLAYED_BASELINES]
    elif choice == "all":
        chosen = ranked
    else:
        chosen = []
        for name in filter(None, map(str.strip, choice.split(","))):
            # by its label, its name in the records, and that without the decoding
            named = [
                system
                for system in content.systems
                if name in {system.label, system.name, system.name.replace(f":{system.about.get('decoding')}", "")}
            ]
            if not named and name != CONTROL:
                raise UnknownNameError("system", name, [*(system.label for system in content.systems), "all"])
            chosen += [system for system in named if system not in chosen]
    if not chosen:
        raise NoDataError("no system is left to be heard beside the reference; name some with `systems`")
    for system in chosen:
        if not system.middles:
            raise NoDataError(
                f"{content.names[system.run]} holds no prediction of {system.label}; finish the run, or leave the "
                "system out with `systems`"
            )
    return chosen


def choose_items(content: RunContent, systems: Sequence[HeardSystem], n: int, seed: int) -> list[str]:
    """Draw items that all systems have, from as many songs as can be: one of each song, then a second, and so on."""
    shared = [item for item in content.items if all(item in system.middles for system in systems)]
    if len(shared) < n:
        counts = ", ".join(f"{system.label} has {len(system.middles)}" for system in systems)
        if not shared:
            raise NoDataError(f"the systems share no item: {counts}; choose other systems (`systems`)")
        raise InvalidInputError(
            f"the systems share {len(shared)} of {len(content.items)} items, and {n} are asked for: {counts}; ask for "
            "fewer (`items`), or choose other systems (`systems`)"
        )
    rng = np.random.default_rng(seed)
    by_song: dict[str, list[str]] = {}
    for item in sorted(shared):
        by_song.setdefault(content.items[item].song, []).append(item)
    songs = [[held[place] for place in rng.permutation(len(held))] for _, held in sorted(by_song.items())]
    order = [songs[place] for place in rng.permutation(len(songs))]
    rounds = [held[turn] for turn in range(max(map(len, order))) for held in order if turn < len(held)]
    return rounds[:n]
