"""Rows of pairs and their scores, as every benchmark writes them that compares estimates with references.

What is scored is a sequence of pairs, each with an item, a system, a group and two sides with hashes of what they hold.
A run is resumed by these hashes: pairs whose scores are all there are skipped, failed ones are not.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from music_evals.benchmark.columns import Categorical
from music_evals.benchmark.engines import Failed, Unit, answer
from music_evals.benchmark.inputs import some
from music_evals.benchmark.records import Records, check_same_run
from music_evals.benchmark.run import Job, Progress, Row
from music_evals.benchmark.score_table import SCORED, UNDEFINED, ScoreMatrix
from music_evals.benchmark.scores import index_pairs, last_selection
from music_evals.errors import PairCountError


@dataclasses.dataclass(frozen=True)
class Failure:
    """A pair that cannot be compared, and why."""

    item: str
    system: str
    error: str


@dataclasses.dataclass(frozen=True)
class Pair:
    """What a system made of an item, and its reference: a file, a text, or anything with a name and a hash."""

    item: str
    system: str
    group: str  # cluster of the intervals
    modality: str
    reference: Any  # has a ``name``, which records call it by, and a ``content``, the hash of what it holds
    estimate: Any
    treatment: str = ""  # what is done to the estimate before it is compared
    targets: str = ""  # what was asked of whoever made an edit, in the form of `annotations.targets_of`


@dataclasses.dataclass(frozen=True)
class PairSet:
    """All that is scored in one run, without the controls that the task adds."""

    dataset: Mapping[str, Any]  # ``id``, ``config``, ``split``, ``revision``, and what else decides the pairs
    systems: tuple[str, ...] = ()  # in the order given
    pairs: tuple[Pair, ...] = ()  # in the order given
    failures: tuple[Failure, ...] = ()  # items of a system without a pair
    controls: tuple[str, ...] = ()  # those of the systems that stand outside of all comparisons


def check_unique(pairs: Iterable[Any], where: str = "") -> None:
    """Raise where a system has two pairs for one item."""
    counts = Counter((pair.item, pair.system) for pair in pairs)
    twice = [f"{item} ({system})" for (item, system), count in counts.items() if count > 1]
    if twice:
        raise PairCountError(
            f"{where and f'{where}: '}ids must be unique for each system, twice or more: {some(twice)}; give each pair "
            "its own id"
        )


def score_or_reason(value: float, reason: str) -> dict[str, Any]:
    """Return a score as a `Scorer` gives it: its value, or where that is NaN the reason."""
    if math.isnan(value):
        return {"value": None, "reason": reason}
    return {"value": float(value) if math.isfinite(value) else "inf"}


class Scorer(Protocol):
    """Compares the two sides of a pair: the `engines.Work` of such a benchmark."""

    def __call__(self, pair: Any, /) -> Mapping[str, Any]:
        """Return what came of a pair."""
        # That is ``scores``: name -> ``value`` (None where undefined, then with ``reason``) or ``error``; ``notes``;
        # and, where there are any, ``explanation``, the fields of such a row, and ``outlines``: content -> the same.
        ...


@dataclasses.dataclass(eq=False)
class PairJob(Job):
    """Pairs, and the controls beside them, that are scored into one store of records."""

    header: Mapping[str, Any]  # what the numbers depend on, besides the pairs
    pair_set: PairSet  # what is scored
    controls: Sequence[Pair]
    scores: Sequence[str]  # names, in the order of the results
    variant: str  # in every row
    scorer: Scorer
    at_once: int = 1  # pairs that a process is given at once, and whose rows are written together
    engine: str = "serial"  # unless the settings name others
    workers: int = 1
    before: Callable[[Sequence[Any], Progress | None], None] | None = None  # called with the pairs that are left
    # Systems that a later job on the same records adds: a selection that has them besides says the same.
    later: Collection[str] = ()
    # What results depend on and scores do not: it may change from one session to the next, and the last one counts.
    about: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        self._chosen = [*self.pair_set.pairs, *self.controls]
        self._outlined: set[str] = set()
        self.size, self.work = len(self._chosen), _ScorePairs(self.scorer)

    def selection(self, rows: Records) -> Iterable[Row]:
        """Return the rows that say what is scored in this session; nothing if the last ones of `rows` say the same."""
        if "pair" in rows.kinds and any(getattr(pair, "targets", "") for pair in self._chosen):
            self._check_targets(rows)
        selected: Row = {"kind": "selection", "systems": list(self.pair_set.systems), **self.about}
        start, tables = last_selection(rows) if "selection" in rows.kinds else (-1, [])
        recorded = (row for table in tables for row in rows.read(table["number"].to_pylist()))
        known = (row for row in recorded if row.get("system") not in self.later)
        pairs = itertools.zip_longest(known, self._pair_rows())
        if start >= 0 and rows[start] == selected and all(row == other for row, other in pairs):
            return []
        return itertools.chain([selected], self._pair_rows())

    def _check_targets(self, rows: Records) -> None:
        """Raise where other targets than these were named of a pair that is recorded."""
        targets: dict[tuple[str, ...], str] = {
            (pair.item, pair.system, pair.reference.content, pair.estimate.content): getattr(pair, "targets", "")
            for pair in self._chosen
        }
        for row in rows.of("pair"):
            sides = (row[side]["content"] for side in ("reference", "estimate") if side in row)
            if (now := targets.get((row["item"], row["system"], *sides))) is not None:
                check_same_run({"targets": row.get("targets", "")}, {"targets": now}, rows.path)

    def _pair_rows(self) -> Iterator[Row]:
        for pair in self._chosen:
            about = {"item": pair.item, "system": pair.system, "group": pair.group, "modality": pair.modality}
            sides = {
                side: {"name": file.name, "content": file.content}
                for side, file in (("reference", pair.reference), ("estimate", pair.estimate))
            }
            targets = getattr(pair, "targets", "")  # on which success depends; pairs of other packages may lack it
            request = {"targets": targets} if targets else {}
            yield {"kind": "pair", **about, **sides, "treatment": pair.treatment, **request}
        yield from ({"kind": "pair", **dataclasses.asdict(failure)} for failure in self.pair_set.failures)

    def left(self, rows: Records) -> list[Unit]:
        """Leave out the pairs of which every score is there; a failed one brings its pair back."""
        self._outlined = set()
        done: npt.NDArray[np.bool_] = np.zeros(len(self._chosen), dtype=bool)
        if "outline" in rows.kinds:
            outlines = rows.batches("outline", text=False)
            self._outlined = {content for batch in outlines for content in batch["reference"].to_pylist()}
        if "score" in rows.kinds or not self.scores:
            import pyarrow as pa

            # which pairs have all scores, and no failures among them; of two rows for one the later counts
            sides = [(pair.item, pair.system, pair.reference.content, pair.estimate.content) for pair in self._chosen]
            items, systems, references = (Categorical.of([side[place] for side in sides]) for place in range(3))
            rows_of = index_pairs(items, systems, references, pa.array([side[-1] for side in sides], pa.string()))
            states = ScoreMatrix.read(rows, self.scores, len(sides), rows_of).states
            done = np.logical_and.reduce(np.isin(states, (SCORED, UNDEFINED)), axis=1)
        units = [
            Unit((pair,), f"{pair.item} ({pair.system})", pair.reference.content)
            for pair, is_done in zip(self._chosen, done, strict=True)
            if not is_done
        ]
        if self.at_once == 1:
            return units
        chunks = [units[start : start + self.at_once] for start in range(0, len(units), self.at_once)]
        return [
            Unit(tuple(pair for unit in chunk for pair in unit.payload), chunk[0].label, "", len(chunk), tuple(chunk))
            for chunk in chunks
        ]

    def rows(self, unit: Unit, answer: Any) -> list[Row]:
        """Return the rows of scored pairs: their scores, and what else is known where there is anything."""
        rows: list[Row] = []
        answers = [answer] * len(unit.payload) if isinstance(answer, Failed) else answer
        for pair, made in zip(unit.payload, answers, strict=True):
            contents = [pair.reference.content, pair.estimate.content]
            about = {"item": pair.item, "system": pair.system, "content": contents}
            scored: Mapping[str, Any] = made
            if isinstance(made, Failed):
                scored = {"scores": {name: {"error": made.reason} for name in self.scores}, "notes": []}
            for name in self.scores:
                score = scored["scores"][name]
                about_score = {**about, "metric": name, "variant": self.variant}
                rows.append({"kind": "score", **about_score, **score, "n": int("error" not in score)})
            if scored["notes"]:
                rows.append({"kind": "remarks", **about, "notes": scored["notes"]})
            if scored.get("explanation"):
                rows.append({"kind": "explanation", **about, **scored["explanation"]})
            for content, outline in scored.get("outlines", {}).items():
                if content not in self._outlined:
                    self._outlined.add(content)
                    rows.append({"kind": "outline", "content": content, **outline})
        return rows


@dataclasses.dataclass
class _ScorePairs:
    """Scores several pairs, each of which may fail by itself."""

    scorer: Scorer

    def begin(self, folder: Path) -> None:
        if hasattr(self.scorer, "begin"):
            self.scorer.begin(folder)

    def __call__(self, pairs: Sequence[Pair]) -> list[Any]:
        return [answer(self.scorer, pair) for pair in pairs]
