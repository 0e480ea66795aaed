"""Cheats in listening tests: who is caught, who is left out wrongly, and what the systems' difference becomes.

    python -m benchmarks.studies.cheats_listening            # about ten minutes
    python -m benchmarks.studies.cheats_listening --write    # and into the README
    python -m benchmarks.studies.cheats_listening --tests 2  # a trial

Each test is a real study folder: built from sounds, joined and answered through the stores of the server, read and
screened as the report does it. Twelve listeners, of whom three cheat in one way; the others are honest: quick, slow (a
pause, or a line that sends an hour later), and sparing (they use the middle of the scale alone). Twelve items, three
systems; in MUSHRA with reference and anchor. Cheats count the tones of attention checks right, but for the careless.
"""

from __future__ import annotations

import argparse
import copy
import csv
import itertools
import shutil
import tempfile
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

import numpy as np
import soundfile
from benchmarks.musib.tables import fill

from music_evals.benchmark.formats import markdown_rows
from music_evals.files import write_atomically
from music_evals.studies.folders import Introduction, StudyFolder
from music_evals.studies.listening.analysis import evaluate_listening
from music_evals.studies.listening.answers import ListeningKey
from music_evals.studies.listening.build import build_listening_test, read_listening_key
from music_evals.studies.listening.results import ANSWERS, read_listening_results
from music_evals.studies.listening.settings import SCALES, TYPES, ListeningSettings
from music_evals.studies.listening.simulation import SPREADS
from music_evals.studies.storage import SlotBook, SubmissionStore

README = Path(__file__).with_name("README.md")
N_ITEMS, N_HONEST, N_CHEATS, SECONDS = 12, 9, 3, 1.0
EFFECTS = {
    "rating": {"a": 3.6, "b": 3.0, "c": 2.4},
    "ab": {"a": 0.6, "b": 0.0, "c": -0.6},
    "mushra": {"reference": 100.0, "a": 70.0, "b": 60.0, "c": 45.0, "anchor": 20.0},
}
Values = dict[str, int]


class World(NamedTuple):
    """A study that was built, and what is true of its sounds."""

    study: StudyFolder
    key: ListeningKey
    type: str

    def system(self, file: str) -> str:
        """Return who made a file."""
        return self.key.pairs[PurePosixPath(file).name].system


class Test(NamedTuple):
    """One test while it is answered."""

    world: World
    sounds: Mapping[str, float]
    """File -> what an average listener thinks of it."""
    rng: np.random.Generator
    sent: list[Mapping[str, Any]]
    """What was sent so far."""


def build_world(folder: Path, kind: str) -> World:
    """Build a test of a type from noises of one second."""
    rng = np.random.default_rng(1)
    names = ["reference", "a", "b", "c"]
    rows = [["item_id", "system", "reference", "estimate"]]
    for item in range(N_ITEMS):
        for name in names:
            soundfile.write(folder / f"{name}{item}.wav", 0.1 * rng.normal(size=round(8820 * SECONDS)), 8820)
        rows += [[f"i{item}", name, f"reference{item}.wav", f"{name}{item}.wav"] for name in names[1:]]
    with (folder / "pairs.csv").open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    settings = ListeningSettings(type=kind, listeners=N_HONEST + N_CHEATS, seed=11)
    told = Introduction(title="T", consent=("Yes.",), instructions=("Go.",))
    page = {"index.html": b'<script type="application/json" id="study"></script>'}
    built = build_listening_test(
        folder / "pairs.csv", folder / "study", settings, study="s", introduction=told, page=page
    )
    return World(built.study, read_listening_key(built.study.key), kind)


def imagine(world: World, rng: np.random.Generator) -> dict[str, float]:
    """Draw what an average listener thinks of each sound."""
    spreads = {"item_sd": 0.4, "sound_sd": 0.3} | SPREADS[world.type]
    items: dict[str, float] = defaultdict(lambda: rng.normal(0, spreads["item_sd"]))
    return {
        name: EFFECTS[world.type][pair.system]
        + (0.0 if pair.system in {"reference", "anchor"} else items[pair.item_id] + rng.normal(0, spreads["sound_sd"]))
        for name, pair in world.key.pairs.items()
    }


def honest(test: Test, plan: Mapping[str, Any], *, squeeze: float = 1.0) -> list[Values]:
    """Return the answers to all pages of somebody who listens; `squeeze` below 1 uses the middle of the scale."""
    rng, kind = test.rng, test.world.type
    low, high = SCALES[kind]
    spreads = {"listener_sd": 0.4, "taste_sd": 0.2, "rating_sd": 0.7} | SPREADS[kind]
    shift = rng.normal(0, spreads["listener_sd"])
    taste: dict[str, float] = defaultdict(lambda: rng.normal(0, spreads["taste_sd"]))

    def said(file: str) -> float:
        system = test.world.system(file)
        own = 0.0 if system in {"reference", "anchor"} else shift + taste[system]
        return test.sounds[PurePosixPath(file).name] + own + rng.normal(0, spreads["rating_sd"])

    found = []
    for trial in plan["trials"]:
        if trial["type"] == "check":
            found.append({file: test.world.key.checks[PurePosixPath(file).name] for file in trial["stimuli"]})
            continue
        thought = {file: said(file) for file in trial["stimuli"]}
        if kind == "ab":
            best = max(thought, key=thought.__getitem__)
            found.append({file: int(file == best) for file in thought})
            continue
        middle = (low + high) / 2
        # of mushra everybody knows the hidden reference
        sure = {file for file in thought if kind == "mushra" and test.world.system(file) == "reference"}
        told = {file: value if file in sure else middle + squeeze * (value - middle) for file, value in thought.items()}
        found.append({file: int(np.clip(round(value), low, high)) for file, value in told.items()})
    return found


def by_page(
    choose: Callable[[Test, Sequence[str], int], Sequence[int]],
) -> Callable[[Test, Mapping[str, Any]], list[Values]]:
    """Return a cheat who answers each page by a rule, and attention checks right."""

    def answer(test: Test, plan: Mapping[str, Any]) -> list[Values]:
        found, number = honest(test, plan), 0
        for place, trial in enumerate(plan["trials"]):
            if trial["type"] != "check":
                found[place] = dict(zip(trial["stimuli"], choose(test, trial["stimuli"], number), strict=True))
                number += 1
        return found

    return answer


def _random(test: Test, files: Sequence[str], _: int) -> list[int]:
    low, high = SCALES[test.world.type]
    if test.world.type == "ab":
        return [1, 0] if test.rng.random() < 0.5 else [0, 1]
    return [int(test.rng.integers(low, high + 1)) for _ in files]


def _highest(test: Test, files: Sequence[str], _: int) -> list[int]:
    return [1, 0] if test.world.type == "ab" else [SCALES[test.world.type][1]] * len(files)


def _in_turn(test: Test, files: Sequence[str], number: int) -> list[int]:
    low, high = SCALES[test.world.type]
    if test.world.type == "ab":
        return [1, 0] if number % 2 else [0, 1]
    return [high if (number + place) % 2 else low for place in range(len(files))]


def _by_place(test: Test, files: Sequence[str], number: int) -> list[int]:
    """Answer in a pattern of four pages."""
    low, high = SCALES[test.world.type]
    if test.world.type == "ab":
        return [1, 0] if number % 4 < 2 else [0, 1]
    return [low + round((high - low) * ((number + place) % 4) / 3) for place in range(len(files))]


def careless(test: Test, plan: Mapping[str, Any]) -> list[Values]:
    """Answer at random, attention checks too."""
    found = by_page(_random)(test, plan)
    for place, trial in enumerate(plan["trials"]):
        if trial["type"] == "check":
            found[place] = dict.fromkeys(trial["stimuli"], int(test.rng.integers(1, 6)))
    return found


def inverted(test: Test, plan: Mapping[str, Any]) -> list[Values]:
    """Listen, and turn the scale round."""
    ends = sum(SCALES[test.world.type])
    return [
        values if trial["type"] == "check" else {file: ends - value for file, value in values.items()}
        for values, trial in zip(honest(test, plan), plan["trials"], strict=True)
    ]


def late_laziness(test: Test, plan: Mapping[str, Any]) -> list[Values]:
    """Listen to the first third, and guess the rest."""
    found, guessed = honest(test, plan), by_page(_random)(test, plan)
    third = len(found) // 3
    return found[:third] + guessed[third:]


def copied(share: float) -> Callable[[Test, Mapping[str, Any]], list[Values]]:
    """Return a cheat who sends the answers of the first listener, of which a share is drawn anew."""

    def answer(test: Test, plan: Mapping[str, Any]) -> list[Values]:
        theirs: dict[frozenset[str], Mapping[str, int]] = {}
        first = test.sent[0]
        for trial, row in zip(test.world.study.plans[first["slot"]]["trials"], first["trials"], strict=True):
            theirs[frozenset(trial["stimuli"])] = next(iter(row["answers"].values()))
        found = honest(test, plan)
        for place, trial in enumerate(plan["trials"]):
            if trial["type"] == "check" or test.rng.random() >= share:
                found[place] = {file: theirs[frozenset(trial["stimuli"])][file] for file in trial["stimuli"]}
        return found

    return answer


class Habit(NamedTuple):
    """A way to take part: what is answered, and how many seconds pass at the server for each that is claimed."""

    answers: Callable[[Test, Mapping[str, Any]], list[Values]]
    pace: float = 1.02
    late_sec: float = 2.0


HONEST = {
    "quick": Habit(honest, 1.0, 0.5),
    "slow": Habit(honest, 1.5, 3600.0),
    "sparing": Habit(lambda test, plan: honest(test, plan, squeeze=0.6)),
}
CHEATS = {
    "posted at once": Habit(by_page(_random), 0.0, 3.0),
    "posted at once, honest answers": Habit(honest, 0.0, 3.0),
    "fast: half of the time claimed": Habit(honest, 0.5, 0.0),
    "all the highest (ab: the first)": Habit(by_page(_highest)),
    "random": Habit(by_page(_random)),
    "random, tones too": Habit(careless),
    "inverted": Habit(inverted),
    "lowest and highest in turn": Habit(by_page(_in_turn)),
    "a pattern of four pages": Habit(by_page(_by_place)),
    "copied from another": Habit(copied(0.0)),
    "copied, a twentieth changed": Habit(copied(0.05)),
    "late laziness: the last two thirds random": Habit(late_laziness),
}


def attend(test: Test, habit: Habit, at: float) -> str:
    """Join and send through the stores of the server, and return the token."""
    study = test.world.study
    token, slot = SlotBook(study.submissions, len(study.plans), clock=lambda: at).join()
    plan = study.plans[slot]
    trials: list[dict[str, Any]] = []
    for trial, values in zip(plan["trials"], habit.answers(test, plan), strict=True):
        played = [*trial["stimuli"], *filter(None, [trial["reference"]])]
        heard = {file: test.world.key.seconds[PurePosixPath(file).name] for file in played}
        # a page takes as long as a real one of ten seconds a sound
        trials.append(
            {"answers": dict.fromkeys(trial["questions"], values), "heard_sec": heard, "seconds": 10.0 * len(played)}
        )
    content = {"slot": slot, "trials": trials}
    claimed = sum(row["seconds"] for row in trials)
    store = SubmissionStore(study.submissions, clock=lambda: at + habit.pace * claimed + habit.late_sec)
    head = {"format": 1, "study": study.study, "kind": study.kind, "slot": slot, "sent": 0, "part": ANSWERS}
    store.submit(token, {**head, "content": copy.deepcopy(content)})
    test.sent.append(content)
    return token


class Outcome(NamedTuple):
    """What one test found."""

    caught: float
    lost: float
    difference: dict[str, float]
    """Of a and c (in ``ab`` the share that prefers a): of honest listeners alone, with screening, without."""


def run_test(world: World, cheat: Habit | None, seed: int) -> Outcome:
    """Hold one test, screen it, and return who was left out."""
    rng = np.random.default_rng([seed, TYPES.index(world.type)])
    shutil.rmtree(world.study.submissions, ignore_errors=True)
    test = Test(world, imagine(world, rng), rng, [])
    kinds = itertools.cycle(HONEST.values())
    honest_ones = {attend(test, next(kinds), 1e9 + number) for number in range(N_HONEST + (0 if cheat else N_CHEATS))}
    cheats = {attend(test, cheat, 1e9 + 7200 + number) for number in range(N_CHEATS)} if cheat else set()
    results = read_listening_results(world.study.folder, strict=True)
    found = evaluate_listening(results.tables, world.key.settings)
    out = {row["listener"] for row in found["listeners"] if not row["is_kept"]}
    table, name = ("preferences", "share") if world.type == "ab" else ("differences", "difference")
    of_sets = {row["listeners"]: row[name] for row in found[table] if (row["first"], row["second"]) == ("a", "c")}
    return Outcome(
        len(out & cheats) / N_CHEATS if cheat else float("nan"),
        len(out & honest_ones) / len(honest_ones),
        {
            "honest": _difference(results.tables, honest_ones, world.type),
            "kept": of_sets["kept"],
            "all": of_sets["all"],
        },
    )


def _difference(tables: Any, listeners: set[str], kind: str) -> float:
    """Return the difference of a and c by some listeners alone."""
    if kind == "ab":
        rows = [
            row
            for row in tables.choices
            if row["listener"] in listeners and {row["first"], row["second"]} == {"a", "c"}
        ]
        return float(np.mean([row["chosen"] == "a" for row in rows]))
    rows = [row for row in tables.ratings if row["listener"] in listeners]
    means = {name: np.mean([row["rating"] for row in rows if row["system"] == name]) for name in "ac"}
    return float(means["a"] - means["c"])


def table(tests: int) -> str:
    """Return the table of all habits and types."""
    head = ["three of twelve", *(f"caught, {kind}" for kind in TYPES), *(f"honest left out, {kind}" for kind in TYPES)]
    head += [f"a less c in {kind}: honest, screened, all" for kind in TYPES]
    rows: dict[str, dict[str, list[Outcome]]] = {name: {} for name in ["nobody cheats", *CHEATS]}
    with tempfile.TemporaryDirectory() as folder:
        for kind in TYPES:
            place = Path(folder, kind)
            place.mkdir()
            world = build_world(place, kind)
            for name, found in rows.items():
                found[kind] = [run_test(world, CHEATS.get(name), seed) for seed in range(tests)]
                print(kind, name, f"{np.mean([one.caught for one in found[kind]]):.2f}", flush=True)
    lines = [head, ["---"] * len(head)]
    for name, found in rows.items():
        cells = [f"{np.mean([one.caught for one in found[kind]]):.2f}" if name in CHEATS else "" for kind in TYPES]
        cells += [f"{np.mean([one.lost for one in found[kind]]):.3f}" for kind in TYPES]
        for kind in TYPES:
            means = (np.mean([one.difference[which] for one in found[kind]]) for which in ("honest", "kept", "all"))
            cells.append(", ".join(f"{mean:.1f}" if kind == "mushra" else f"{mean:.2f}" for mean in means))
        lines.append([name, *cells])
    return markdown_rows(lines)


def main(argv: Sequence[str] | None = None) -> None:
    """Print the table; with ``--write`` put it into the README."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tests", type=int, default=20, help="of each habit and type (default: %(default)s)")
    parser.add_argument("--write", action="store_true", help="put the table into the README")
    options = parser.parse_args(argv)
    text = table(options.tests)
    print(text)
    if options.write:
        write_atomically(README, fill(README.read_text(encoding="utf-8"), {"listening": text}).encode())


if __name__ == "__main__":
    main()
