"""From records whose selections name the pairs to columns: what each system was judged on, and what came of it."""

from __future__ import annotations

import functools
import json
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from music_evals.benchmark.batches import (
    ERROR,
    Batch,
    ScoreBatch,
    coded,
    codes_of,
    pair_table,
    places,
    score_batch,
    to_table,
)
from music_evals.benchmark.columns import Pairs, Table, Words
from music_evals.benchmark.found import Found
from music_evals.benchmark.grids import MOST_LISTED, Grid, Integers, Sittings, Texts, last_of_each
from music_evals.benchmark.on_demand import Outlines, PairRows, Remarks
from music_evals.benchmark.records import Records

if TYPE_CHECKING:
    import pyarrow as pa

    from music_evals.benchmark.results import ScoreTask

__all__ = ["PairIndex", "failures_of_pairs", "last_selection", "n_failures_of_pairs", "of_pairs"]


def last_selection(records: Records) -> tuple[int, list[Batch]]:
    """Return the number of the row that begins the last selection, and its pairs; -1 and none without one."""
    start = -1
    batches: list[Batch] = []
    for batch in records.batches("selection", "pair", text=False):
        selections = np.flatnonzero(batch.where("selection"))
        kept = batch.where("pair")
        if len(selections):
            start = int(batch.numbers[selections[-1]])
            batches.clear()
            kept[: selections[-1]] = False
        if kept.any():
            batches.append(Batch(batch.table.filter(kept), batch.numbers[kept]))
    return start, batches


class PairIndex:
    """Finds the pairs that scores belong to, by item, system and what both files hold."""

    def __init__(self, items: Words, systems: Words, originals: Words, edits: pa.Array) -> None:
        self._known = [
            {word: place for place, word in enumerate(column.words.to_pylist())}
            for column in (items, systems, originals)
        ]
        keys = self._keys(items.codes, systems.codes)
        self._order = np.argsort(keys, kind="stable")
        self._keys_sorted = keys[self._order]
        self._original = originals.codes
        self._edits = edits

    def _keys(self, items: Integers, systems: Integers) -> npt.NDArray[np.int64]:
        keys = systems.astype(np.int64) * len(self._known[0]) + items
        known: npt.NDArray[np.int64] = np.where((items < 0) | (systems < 0), -1, keys)
        return known

    def places(self, rows: ScoreBatch | Batch) -> npt.NDArray[np.int64]:
        """Return the place of the pair of each row; -1 for one that is of none of these pairs."""
        import pyarrow as pa
        import pyarrow.compute as pc

        columns: list[tuple[Integers, list[str]]]
        written: tuple[Integers, pa.StringArray]
        if isinstance(rows, Batch):
            columns = [*(codes_of(rows.table, name) for name in ("item", "system", "reference"))]
            written = coded(rows.table, "estimate")
        else:
            columns, written = [rows.item, rows.system, rows.reference], rows.estimate
        edit, edits = written
        codes = [*(column for column, _ in columns), edit]
        if any((column < 0).any() for column in codes):
            names = ("item", "system", "content", "content")
            raise KeyError(next(name for name, column in zip(names, codes, strict=True) if (column < 0).any()))
        # rows of one pair follow each other: only the first of them is looked up
        first = np.ones(len(codes[0]), dtype=bool)
        first[1:] = np.logical_or.reduce([column[1:] != column[:-1] for column in codes])
        items, systems, originals = (
            places(words, held)[column[first]] for (column, words), held in zip(columns, self._known, strict=True)
        )
        keys = self._keys(items, systems)
        nearest = np.minimum(np.searchsorted(self._keys_sorted, keys), len(self._order) - 1)
        there = (keys >= 0) & (originals >= 0)
        found = np.full(len(keys), -1, dtype=np.int64)
        if len(self._order) and there.any():
            place = self._order[nearest]
            same = pc.equal(self._edits.take(pa.array(place)), edits.take(pa.array(edit[first])))
            there &= (self._keys_sorted[nearest] == keys) & (self._original[place] == originals)
            there &= same.fill_null(False).to_numpy(zero_copy_only=False)  # noqa: FBT003 (a value)
            found[there] = place[there]
        places_of_rows: npt.NDArray[np.int64] = found[np.cumsum(first) - 1]
        return places_of_rows


def of_pairs(records: Records, header: dict[str, Any], task: ScoreTask) -> Found:
    """Read records whose selections name the pairs."""
    import pyarrow as pa

    selection, whole, edits, numbers = _selected(records)
    systems = list(selection["systems"])
    found_systems, order, slices = _by_system(whole)
    if (order[1:] < order[:-1]).any():
        whole, numbers, edits = whole.take(pa.array(order)), numbers[order], edits.take(pa.array(order))
    # records of before a control had its name may hold a system that was called so
    controls = [name for name in task.controls if name in slices and name not in systems]
    outside = [*selection.get("controls", ()), *controls]
    columns = tuple(dict.fromkeys((*header["metrics"], *header["companions"])))
    grid = Grid.empty(len(whole), len(columns))
    items, groups, originals, entrances, errors = (
        Words.of(whole[name]) for name in ("item", "group", "reference", "entrance", "error")
    )
    table = Table(
        records,
        items,
        groups,
        originals,
        entrances,
        errors,
        numbers,
        slices,
        columns,
        *grid,
        (),
        {},
        functools.partial(_pair_of, records, numbers),
    )
    del whole
    index = PairIndex(items, found_systems, originals, edits)
    made = _Made(records, index, columns, grid)
    table.texts = made.texts.all
    return Found(
        header=header | {key: value for key, value in selection.items() if key not in {"kind", "systems"}},
        roles=dict.fromkeys(systems, "system") | dict.fromkeys(outside, "control"),
        pairs={name: Pairs(table, name, np.arange(rows.start, rows.stop)) for name, rows in slices.items()},
        table=table,
        records=records,
        remarks=Remarks(table, made.remarks, made.notes.all, without=controls),
        outlines=Outlines(records),
        explanations=PairRows(table, made.explanations, functools.partial(_pair_of, records, made.explanations)),
        wall_time_sec=made.sittings.wall_time_sec,
        kernels=made.sittings.kernels,
    )


def _selected(records: Records) -> tuple[dict[str, Any], pa.Table, pa.StringArray, npt.NDArray[np.int64]]:
    """Return the row of the last selection, its pairs, what their edits hold, and the numbers of their rows."""
    import pyarrow as pa

    start, batches = last_selection(records)
    if start < 0:
        raise LookupError("no selection")
    wanted = ["item", "system", "group", "reference", "entrance", "error", "estimate"]
    parts = [pair_table(batch).select(wanted) for batch in batches] or [to_table([]).select(wanted)]
    numbers = np.concatenate([*(batch.numbers for batch in batches), np.empty(0, np.int64)])
    del batches
    edits = pa.concat_arrays([part["estimate"].cast(pa.string()).combine_chunks() for part in parts])
    whole = pa.concat_tables([part.drop_columns(["estimate"]) for part in parts]).unify_dictionaries()
    return records[start], whole, edits, numbers


def _by_system(pairs: pa.Table) -> tuple[Words, Integers, dict[str, slice]]:
    """Return the system of each pair in a new order, the order, and the rows of each system in it."""
    systems = Words.of(pairs["system"])
    found, first = np.unique(systems.codes, return_index=True)
    rank = np.zeros(len(found), dtype=np.int64)
    rank[found[np.argsort(first)]] = np.arange(len(found))
    order = np.argsort(rank[systems.codes], kind="stable")
    sorted_systems = systems.take(order)
    ends = np.cumsum(np.bincount(rank[systems.codes], minlength=len(found)))
    names = sorted_systems.text(ends - 1)
    slices = {
        name: slice(start, end) for name, start, end in zip(names, [0, *ends[:-1].tolist()], ends.tolist(), strict=True)
    }
    return sorted_systems, order, slices


def _pair_of(records: Records, numbers: npt.NDArray[np.int64], row: int) -> dict[str, Any]:
    """Return a pair as it was recorded."""
    return records[int(numbers[row])]


class _Made:
    """What came of the pairs: scores, remarks, explanations."""

    def __init__(self, records: Records, index: PairIndex, columns: Sequence[str], grid: Grid) -> None:
        n = len(grid.values)
        self.texts, self.notes = Texts(), Texts()
        self.sittings = Sittings(records)
        self.remarks = np.full(n, -1, dtype=np.int32)
        self.explanations = np.full(n, -1, dtype=np.int64)
        known = {name: place for place, name in enumerate(columns)}
        for batch in records.batches("score", "remarks", "explanation", text=False):
            if (rows := batch.only("score")) is not None:
                scores = score_batch(rows)
                self.sittings.saw(scores)
                row, column = index.places(scores), places(scores.metric[1], known)[scores.metric[0]]
                keys = np.where((row < 0) | (column < 0), -1, row * len(columns) + column)
                grid.put(keys, scores, self.texts.places(scores.message))
            if (rows := batch.only("remarks")) is not None:
                told, kept = _latest(index, rows)
                self.remarks[told] = self.notes.places(_notes(rows))[kept]
            if (rows := batch.only("explanation")) is not None:
                told, kept = _latest(index, rows)
                self.explanations[told] = rows.numbers[kept]


def _latest(index: PairIndex, batch: Batch) -> tuple[Integers, Integers]:
    """Return pairs that something is told of, each once, and the row of the batch that tells it last."""
    row = index.places(batch)
    kept = np.flatnonzero(row >= 0)
    kept = kept[last_of_each(row[kept])]
    return row[kept], kept


def _notes(batch: Batch) -> tuple[Integers, list[str]]:
    """Return remarks, each a list as JSON text."""
    codes, words = codes_of(batch.table, "notes")
    if (codes >= 0).all():
        return codes, words
    texts = [json.dumps(list(row["notes"])) for row in batch.rows()]
    return np.arange(len(texts)), texts


def _failed(found: Found, pairs: Pairs) -> tuple[Integers, npt.NDArray[np.bool_]]:
    """Return the error of each score, shape (n, scores), -1 for none; and which pairs failed as a whole."""
    # A pair all of whose scores failed for one reason is one failure.
    n = len(found.names)
    states = np.array([pairs.states(name) for name in found.names]).reshape(n, len(pairs)).T
    messages = np.array([pairs.messages(name) for name in found.names]).reshape(n, len(pairs)).T
    errors = np.where(states == ERROR, messages, -1)
    whole = (errors >= 0).all(axis=1) & (errors == errors[:, :1]).all(axis=1) if n else np.zeros(len(pairs), bool)
    return errors, pairs.failed | whole


def failures_of_pairs(found: Found) -> list[dict[str, Any]]:
    """Return the first results that failed."""
    table = found.table
    listed: list[dict[str, Any]] = []
    for system in found.systems:
        pairs = found.of(system)
        errors, whole = _failed(found, pairs)
        chosen = np.flatnonzero(whole | (errors >= 0).any(axis=1))[: MOST_LISTED - len(listed)]
        rows = pairs.rows[chosen]
        reasons = [
            table.errors.words[code].as_py() if code >= 0 else None for code in table.errors.codes[rows].tolist()
        ]
        told = (table.items.text(rows), reasons, whole[chosen].tolist(), errors[chosen].tolist())
        for item, reason, at_once, messages in zip(*told, strict=True):
            why: dict[str | None, str] = {}
            if at_once:
                why[None] = table.texts[messages[0]] if reason is None else reason
            else:
                why |= {name: table.texts[code] for name, code in zip(found.names, messages, strict=True) if code >= 0}
            listed += [{"item": item, "system": system, "metric": name, "error": text} for name, text in why.items()]
    return listed[:MOST_LISTED]


def n_failures_of_pairs(found: Found) -> Counter[tuple[str | None, str | None]]:
    """Return how many results failed, by system and score."""
    n: Counter[tuple[str | None, str | None]] = Counter()
    for system in found.systems:
        errors, whole = _failed(found, found.of(system))
        alone = np.count_nonzero(errors[~whole] >= 0, axis=0).tolist()
        n[system, None] = int(np.count_nonzero(whole))
        n.update({(system, name): count for name, count in zip(found.names, alone, strict=True)})
    return +n
