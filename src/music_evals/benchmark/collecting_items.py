"""From records whose header names the systems to columns: each is judged on every item, with each of its seeds."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from music_evals.benchmark.batches import ABSENT, ERROR, SCORED, UNDEFINED, Batch, codes_of, places, score_batch
from music_evals.benchmark.columns import Pairs, Table, Words
from music_evals.benchmark.found import Found
from music_evals.benchmark.grids import MOST_LISTED, Grid, Integers, Sittings, Texts, last_of_each
from music_evals.benchmark.listed import Bins, Listed, read_listed
from music_evals.benchmark.on_demand import ItemRows, Outlines, PairRows, Remarks
from music_evals.benchmark.records import Records

if TYPE_CHECKING:
    from music_evals.benchmark.results import ScoreTask

__all__ = ["NOT_GIVEN", "SeededScores", "of_items"]

NO_PREDICTION = "no prediction of every seed"

NOT_GIVEN = "no prediction was given"
"""Why an item failed that predictions made elsewhere leave out, where that is allowed."""


def of_items(records: Records, header: dict[str, Any], task: ScoreTask) -> Found:
    """Read records whose header names the systems with their seeds: each is judged on every item."""
    items, songs, broken = _items(records)
    seeds = {name: list(held["seeds"]) for name, held in header["systems"].items()}
    columns = dict.fromkeys((*task.scales, *task.divergences.values()))
    made = SeededScores(
        records, list(items), seeds, list(columns), alone=task.without_prediction, not_given=task.not_given(header)
    )
    table = _table_of_items(records, items, songs, made)
    table.listed = {
        (name, system): bins for name, listed in task.listed.items() for system, bins in made.listed(listed).items()
    }
    may_be_absent = {*task.without_prediction, *task.on_request}
    not_asked = _not_asked(records, task)
    metrics = [name for name in task.scales if name not in not_asked and (name not in may_be_absent or made.has(name))]
    failed = [*broken, *made.failures()]
    failures = [dict(zip(("item", "system", "seed", "metric", "error"), row, strict=True)) for row in failed]
    return Found(
        header=header | {"metrics": metrics, "companions": []},
        roles={name: held["role"] for name, held in header["systems"].items()},
        pairs={name: Pairs(table, name, np.arange(rows.start, rows.stop)) for name, rows in table.systems.items()},
        table=table,
        records=records,
        outlines=Outlines(records),
        explanations=PairRows(table, np.full(len(table.values), -1), lambda row: row),
        remarks=Remarks(table, np.full(len(table.values), -1, dtype=np.int32), (), without=()),
        failures=failures[:MOST_LISTED],
        n_failures=Counter((system, metric) for _, system, _, metric, _ in failed),
        items=ItemRows(records, items),
        songs=songs,
        predictions=_Predictions(table, made),
        wall_time_sec=made.sittings.wall_time_sec,
        kernels=made.sittings.kernels,
    )


def _not_asked(records: Records, task: ScoreTask) -> set[str]:
    """Return the scores that the last selection did not ask for; none of records that hold no selection."""
    selections = list(records.of("selection"))
    return set(task.on_request).difference(selections[-1]["scores"]) if selections else set()


Failure = tuple[str, str | None, int | None, str | None, str]
"""Item, system, seed, metric and error."""


def _items(records: Records) -> tuple[dict[str, int], list[str], list[Failure]]:
    """Return the number of the row of each item, their songs, and the items that could not be read."""
    numbers: dict[str, int] = {}
    songs: dict[str, str] = {}
    broken: list[Failure] = []
    for batch in records.batches("item"):
        for number, row in zip(batch.numbers.tolist(), batch.rows(), strict=True):
            if "error" in row:
                broken.append((row["item"], None, None, None, row["error"]))
            else:
                numbers[row["item"]], songs[row["item"]] = number, row["song"]
    return numbers, list(songs.values()), broken


class SeededScores:
    """What came of each item with each seed of each system: a row of the grid for each of these."""

    def __init__(
        self,
        records: Records,
        items: Sequence[str],
        seeds: Mapping[str, Sequence[int]],
        columns: Sequence[str],
        *,
        alone: Collection[str] = (),
        not_given: Mapping[str, float] | None = None,
    ) -> None:
        self.items, self.seeds, self.columns, self._records = items, seeds, tuple(columns), records
        self.texts, self.sittings = Texts(), Sittings(records)
        # without a prediction every metric of it fails, for one reason; what needs none has its own
        self._alone = np.array([name in alone for name in self.columns])
        self._not_given = np.array([(not_given or {}).get(name, np.nan) for name in self.columns])
        self._places = {item: place for place, item in enumerate(items)}
        self._starts = np.cumsum([0, *(len(items) * len(held) for held in seeds.values())])
        n_rows = int(self._starts[-1])
        self._grid = Grid.empty(n_rows, len(self.columns))
        self._first = np.full(n_rows * len(self.columns), -1, dtype=np.int64)  # number of the first row of a score
        self._predictions = np.full(n_rows, -1, dtype=np.int64)  # number of the row
        known = {name: place for place, name in enumerate(self.columns)}
        for batch in records.batches("prediction", text=False):
            rows = self._rows(codes_of(batch.table, "item"), codes_of(batch.table, "system"), _seeds_of(batch))
            last = last_of_each(rows)
            self._predictions[rows[last]] = batch.numbers[last]
        for batch in records.batches("score", text=False):
            scores = score_batch(batch)
            self.sittings.saw(scores)
            rows = self._rows(scores.item, scores.system, scores.seed)
            column = places(scores.metric[1], known)[scores.metric[0]]
            keys = np.where(column < 0, -1, rows * len(self.columns) + column)
            self._grid.put(keys, scores, self.texts.places(scores.message))
            new, first = np.unique(keys, return_index=True)
            fresh = (new >= 0) & (self._first[new] < 0)
            self._first[new[fresh]] = scores.numbers[first[fresh]]
        # a chunk that is tried again may fail on an item that it had a prediction for
        self._predictions[(self._grid.states[:, ~self._alone] == ERROR).any(axis=1)] = -1

    def _rows(
        self, item: tuple[Integers, list[str]], system: tuple[Integers, list[str]], seeds: npt.NDArray[np.float64]
    ) -> npt.NDArray[np.int64]:
        """Return the row of the grid of each score or prediction; raises as a dictionary for what is not judged."""
        systems = {name: place for place, name in enumerate(self.seeds)}
        found = [places(words, held)[codes] for (codes, words), held in ((item, self._places), (system, systems))]
        for known, (codes, words) in zip(found, (item, system), strict=True):
            if (known < 0).any():
                raise KeyError((*words, None)[codes[np.flatnonzero(known < 0)[0]]])
        rows = np.empty(len(seeds), dtype=np.int64)
        for place, held in enumerate(self.seeds.values()):
            own = found[1] == place
            order = np.argsort(held, kind="stable")
            which = np.searchsorted(np.array(held, dtype=np.float64), seeds[own], sorter=order)
            if (which >= len(held)).any() or (np.array(held)[order[which]] != seeds[own]).any():
                raise KeyError("seed")
            rows[own] = self._starts[place] + found[0][own] * len(held) + order[which]
        return rows

    def good(self, system: str, seed: int, items: range, columns: Sequence[str]) -> bool:
        """Tell whether all of some scores are there and none of them failed."""
        place = list(self.seeds).index(system)
        n_seeds = len(self.seeds[system])
        rows = self._starts[place] + np.array(items) * n_seeds + list(self.seeds[system]).index(seed)
        states = self._grid.states[np.ix_(rows, [self.columns.index(name) for name in columns])]
        return bool(((states == SCORED) | (states == UNDEFINED)).all())

    def has(self, name: str) -> bool:
        """Tell whether any system has a score."""
        return bool((self._grid.states[:, self.columns.index(name)] != ABSENT).any())

    def of(self, place: int) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_], npt.NDArray[np.int64]]:
        """Return values (items, seeds, columns) of a system, whether they are there, and predictions (items, seeds)."""
        rows = slice(int(self._starts[place]), int(self._starts[place + 1]))
        shape = (len(self.items), len(list(self.seeds.values())[place]))
        values = self._grid.values[rows].reshape(*shape, len(self.columns))
        states = self._grid.states[rows].reshape(*shape, len(self.columns))
        predictions = self._predictions[rows].reshape(shape)
        complete = np.logical_and.reduce(predictions >= 0, axis=1)
        there = np.logical_or.reduce(states != ABSENT, axis=1) & (complete[:, None] | self._alone)
        # what was not given has the worst score, where there is one
        missing = self._grid.messages[rows].reshape(states.shape) == self.texts.place(NOT_GIVEN)
        worst = ((states == ERROR) & missing).all(axis=1) & ~np.isnan(self._not_given)
        return np.where(worst[:, None], self._not_given, values), there | worst, predictions

    def listed(self, listed: Listed) -> dict[str, Bins]:
        """Return what is listed of the predictions of each system, shape (seeds, items, most)."""
        every = read_listed(self._records, self._predictions, listed)
        parts = np.split(every, self._starts[1:-1])
        return {
            name: part.reshape(len(self.items), len(held), every.shape[1]).swapaxes(0, 1)
            for (name, held), part in zip(self.seeds.items(), parts, strict=True)
        }

    def failures(self) -> Iterator[Failure]:
        """Yield what failed, in the order in which it was first recorded."""
        rows, columns = np.nonzero(self._grid.states == ERROR)
        order = np.argsort(self._first[rows * len(self.columns) + columns], kind="stable")
        names = list(self.seeds)
        found: dict[tuple[str, str, int, str | None], str] = {}
        for row, column in zip(rows[order].tolist(), columns[order].tolist(), strict=True):
            place = int(np.searchsorted(self._starts, row, side="right")) - 1
            seeds = self.seeds[names[place]]
            item, seed = divmod(row - int(self._starts[place]), len(seeds))
            metric = self.columns[column] if self._alone[column] else None
            error = self.texts.all[self._grid.messages[row, column]]
            found[self.items[item], names[place], seeds[seed], metric] = error
        yield from ((*who, error) for who, error in found.items())


def _seeds_of(batch: Batch) -> npt.NDArray[np.float64]:
    return np.asarray(batch.table["seed"].to_numpy(), dtype=np.float64)


def _table_of_items(records: Records, items: Mapping[str, int], songs: Sequence[str], made: SeededScores) -> Table:
    """Return a pair of each item with each system; it has an error unless there is a prediction of every seed."""
    import pyarrow as pa

    n, names = len(items), list(made.seeds)
    parts = [made.of(place) for place in range(len(names))]
    grid = Grid.empty(n * len(names), len(made.columns))
    failed = np.zeros(len(grid.values), dtype=bool)
    for place, (values, there, predictions) in enumerate(parts):
        rows = slice(place * n, place * n + n)
        means = _means(values)
        grid.values[rows] = np.where(there, means, np.nan)
        grid.states[rows] = np.where(there, np.where(np.isnan(means), UNDEFINED, SCORED), ABSENT)
        failed[rows] = (predictions < 0).any(axis=1)
    every = np.tile(np.arange(n), len(names))
    words, groups, entrances = (Words.of(pa.array(column, pa.string())) for column in (list(items), songs, ["item"]))
    errors = Words.of(pa.array([NO_PREDICTION], pa.string()))
    return Table(
        records,
        words.take(every),
        groups.take(every),
        words.take(every),
        entrances.take(np.zeros(len(every), dtype=np.int64)),
        errors._replace(codes=np.where(failed, 0, -1).astype(np.int32)),
        np.tile(np.fromiter(items.values(), np.int64, n), len(names)),
        {name: slice(place * n, place * n + n) for place, name in enumerate(names)},
        made.columns,
        *grid,
        made.texts.all,
        {name: part[0].swapaxes(0, 1) for name, part in zip(names, parts, strict=True)},
        functools.partial(_pair_of_item, list(items), songs, names, failed),
    )


def _means(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the means over the seeds that define a score, of values (items, seeds, columns)."""
    defined = ~np.isnan(values)
    total = np.zeros((len(values), values.shape[2]))
    for seed in range(values.shape[1]):  # one after the other, in the order of the seeds
        total += np.where(defined[:, seed], values[:, seed], 0.0)
    n = np.count_nonzero(defined, axis=1)
    means = np.full(total.shape, np.nan)
    np.divide(total, n, out=means, where=n > 0)
    return means


def _pair_of_item(
    items: Sequence[str], songs: Sequence[str], systems: Sequence[str], failed: npt.NDArray[np.bool_], row: int
) -> dict[str, Any]:
    """Return the pair that an item and a system make."""
    system, place = divmod(row, len(items))
    side = {"name": items[place], "content": items[place]}
    pair = {"item": items[place], "system": systems[system], "group": songs[place], "entrance": "item"}
    return pair | {"reference": side} | ({"error": NO_PREDICTION} if failed[row] else {})


class _Predictions(Mapping[tuple[str, str], list[Any]]):
    """What each system wrote for each item with each of its seeds; None where there is none."""

    def __init__(self, table: Table, made: SeededScores) -> None:
        self._table = table
        self._numbers = {name: made.of(place)[2] for place, name in enumerate(made.seeds)}

    def __getitem__(self, key: tuple[str, str]) -> list[Any]:
        row = self._table.row_of(*key)
        if row < 0:
            raise KeyError(key)
        numbers = self._numbers[key[1]][row - self._table.systems[key[1]].start].tolist()
        rows = iter(self._table.records.read(number for number in numbers if number >= 0))
        return [next(rows)["middle"] if number >= 0 else None for number in numbers]

    def __iter__(self) -> Iterator[tuple[str, str]]:
        for system, rows in self._table.systems.items():
            yield from ((item, system) for item in self._table.items.text(rows))

    def __len__(self) -> int:
        return len(self._table.values)
