"""The scores of a run, read from its records into a `ScoreTable`.

Records come in two forms. Rows ``selection`` and ``pair`` name what each system was scored on (`_from_pairs`); without
them, the header names the systems with their seeds, and each system is scored on every row ``item`` (`_from_items`).
"""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from music_evals.benchmark.columns import REMEDY, Categorical, match, only, text_places, to_rows, to_table, words_of
from music_evals.benchmark.records import Records, reading_rows, rows_in_memory
from music_evals.benchmark.score_table import (
    ABSENT,
    ERROR,
    MOST_LISTED,
    SCORED,
    UNDEFINED,
    Bins,
    Floats,
    HistogramFeature,
    RecordedRows,
    Row,
    ScoreMatrix,
    ScoreTable,
)
from music_evals.errors import CorruptRecordsError, InvalidTokensError

if TYPE_CHECKING:
    import pyarrow as pa

    from music_evals.benchmark.task import Task

NO_PREDICTION = "no prediction of every seed"

NOT_GIVEN = "no prediction was given"
"""Why an item failed that predictions made elsewhere leave out, where that is allowed."""


@reading_rows()
def read_scores(rows: Iterable[Row], task: Task) -> ScoreTable:
    """Read the scores in the records of a run; of two rows for one score the later one counts."""
    records = rows if isinstance(rows, Records) else rows_in_memory(rows)
    header = records[0] if len(records) else {}
    if header.get("kind") != "run":
        raise CorruptRecordsError("the records do not start with their header; restore the file, or start afresh")
    by_item = "systems" in header
    table = (_from_items if by_item else _from_pairs)(records, header, task)
    table.wall_time_sec = float(sum(row["wall_time_sec"] for row in records.of("sitting")))
    task.check_scores(table)
    names = task.shown_metrics(table)
    if not by_item:
        table.header |= {key: [name for name in header[key] if name in names] for key in ("metrics", "companions")}
        table.failures, table.n_failures = _failures_of_pairs(table)
    return table


# --- records whose selections name the pairs


def last_selection(records: Records) -> tuple[int, list[pa.Table]]:
    """Return the number of the row that begins the last selection, and its pairs; -1 and none without one."""
    start = -1
    tables: list[pa.Table] = []
    for table in records.batches("selection", "pair", text=False):
        selections = only(table, "selection")
        if selections is not None:
            start, tables = selections["number"][-1].as_py(), []
            table = table.filter(table["number"].to_numpy() > start)  # noqa: PLW2901
        pairs = only(table, "pair")
        if pairs is not None:
            tables.append(pairs)
    return start, tables


def index_pairs(
    items: Categorical, systems: Categorical, references: Categorical, estimates: pa.Array
) -> Callable[[pa.Table], npt.NDArray[np.int64]]:
    """Return a function that finds the pairs that rows of a table belong to, by item, system and what both files hold.

    It gives the number of the pair of each row, -1 for one that is of none of them.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    names = ("item", "system", "reference", "estimate")
    known = [
        {word: place for place, word in enumerate(column.categories.to_pylist())}
        for column in (items, systems, references)
    ]
    own = systems.codes.astype(np.int64) * len(known[0]) + items.codes
    order = np.argsort(own, kind="stable")
    ordered = own[order]

    def rows_of(table: pa.Table) -> npt.NDArray[np.int64]:
        # rows of one pair follow each other: only the first of them is looked up
        first = np.ones(len(table), dtype=bool)
        codes = [words_of(table[name])[0] for name in names]
        first[1:] = np.logical_or.reduce([column[1:] != column[:-1] for column in codes])
        short = table.select(names).filter(first)
        item, system, reference = (match(short, name, words) for name, words in zip(names[:3], known, strict=True))
        if short["estimate"].null_count:
            raise KeyError("content")
        rows = np.full(len(short), -1, dtype=np.int64)
        if len(order):
            keys = system * len(known[0]) + item
            nearest = np.minimum(np.searchsorted(ordered, keys), len(order) - 1)
            place = order[nearest]
            same = pc.equal(estimates.take(pa.array(place)), short["estimate"].cast(pa.string()))
            there = same.fill_null(False).to_numpy() & (item >= 0) & (system >= 0)  # noqa: FBT003 (a value)
            there &= (ordered[nearest] == keys) & (reference >= 0) & (references.codes[place] == reference)
            rows[there] = place[there]
        rows_of_all: npt.NDArray[np.int64] = rows[np.cumsum(first) - 1]
        return rows_of_all

    return rows_of


def _from_pairs(records: Records, header: dict[str, Any], task: Task) -> ScoreTable:
    """Read records whose selections name the pairs."""
    import pyarrow as pa

    start, tables = last_selection(records)
    if start < 0:
        raise LookupError("no selection")
    selection = records[start]
    nothing = to_table([]).append_column("number", pa.array([], pa.int64()))
    pairs = pa.concat_tables([table.drop_columns(["json"]) for table in [nothing, *tables]]).unify_dictionaries()
    if pairs["item"].null_count or pairs["system"].null_count:
        raise KeyError("item")
    columns = {
        name: Categorical.of(pairs[name]) for name in ("item", "system", "group", "reference", "modality", "error")
    }
    estimates = pa.concat_arrays([pa.array([], pa.string()), *pairs["estimate"].cast(pa.string()).chunks])
    numbers = pairs["number"].to_numpy()
    del pairs, tables
    named, item, system = list(selection["systems"]), columns["item"], columns["system"]
    # records of before a control had its name may hold a system that was called so
    present = set(system.categories.to_pylist()) - set(named)
    controls = [name for name in task.controls if name in present]
    rows_of = index_pairs(item, system, columns["reference"], estimates)
    metrics = tuple(dict.fromkeys((*header["metrics"], *header["companions"])))
    matrix = ScoreMatrix.read(records, metrics, len(numbers), rows_of, others=("remarks", "explanation"))
    table = ScoreTable(
        header=header | {key: value for key, value in selection.items() if key not in {"kind", "systems"}},
        roles=dict.fromkeys(named, "system") | dict.fromkeys([*selection.get("controls", ()), *controls], "control"),
        records=records,
        columns=columns,
        estimates=estimates,
        matrix=matrix,
        rows=np.arange(len(numbers)),
        pair_of=lambda row: records[int(numbers[row])],
    )
    explained = np.full(len(numbers) + 1, -1)
    for rows, part in matrix.others.pop("explanation", []):
        explained[rows] = part["number"].to_numpy()
    pairs = table.take(np.flatnonzero(explained[:-1] >= 0))
    keys = zip(pairs.text("item"), pairs.text("system"), strict=True)
    table.explanations = RecordedRows(records, dict(zip(keys, explained[pairs.rows].tolist(), strict=True)))
    notes, texts = np.full(len(numbers) + 1, -1), dict[str, int]()
    for rows, part in matrix.others.pop("remarks", []):
        notes[rows] = text_places(part, "notes", texts)
    notes[:-1][np.isin(system.codes, system.codes_of(controls))] = -1
    order = np.lexsort((system.codes, item.codes))
    pairs, parsed = table.take(order[notes[order] >= 0]), list(map(json.loads, texts))
    remarks = zip(pairs.text("item"), pairs.text("system"), notes[pairs.rows].tolist(), strict=True)
    table.remarks = [{"item": item, "system": system, "notes": parsed[code]} for item, system, code in remarks]
    return table


def _failures_of_pairs(table: ScoreTable) -> tuple[list[dict[str, Any]], Counter[tuple[str | None, str | None]]]:
    """Return the first results that failed, and how many did, by system and metric."""
    # A pair all of whose scores failed for one reason is one failure.
    listed: list[dict[str, Any]] = []
    counts: Counter[tuple[str | None, str | None]] = Counter()
    texts = table.matrix.texts
    for system in table.systems:
        pairs = table.of(system)
        errors, whole = pairs.messages(ERROR, *table.metrics), pairs.failed
        if table.metrics:
            whole = whole | ((errors >= 0).all(axis=1) & (errors == errors[:, :1]).all(axis=1))
        counts[system, None] = int(np.count_nonzero(whole))
        alone = np.count_nonzero(errors[~whole] >= 0, axis=0).tolist()
        counts.update({(system, name): n for name, n in zip(table.metrics, alone, strict=True)})
        chosen = np.flatnonzero(whole | (errors >= 0).any(axis=1))[: MOST_LISTED - len(listed)]
        failed = pairs.take(chosen)
        parts = failed.text("item"), failed.text("error"), whole[chosen].tolist(), errors[chosen].tolist()
        for item, reason, at_once, codes in zip(*parts, strict=True):
            if at_once:
                reasons: dict[str | None, str] = {None: texts[codes[0]] if reason is None else reason}
            else:
                reasons = {name: texts[code] for name, code in zip(table.metrics, codes, strict=True) if code >= 0}
            listed += [{"item": item, "system": system, "metric": name, "error": why} for name, why in reasons.items()]
    return listed[:MOST_LISTED], +counts


# --- records whose header names the systems with their seeds


class SeededScores:
    """The scores of each item with each seed of each system: a row of the matrix for each of these."""

    def __init__(
        self, records: Records, items: Sequence[str], seeds: Mapping[str, Sequence[int]], metrics: Sequence[str],
        *, without_prediction: Collection[str] = (),
    ) -> None:  # fmt: skip
        self.items, self.seeds, self.records = list(items), {name: list(own) for name, own in seeds.items()}, records
        # without a prediction every metric of it fails, for one reason; what needs none has its own
        self.alone = np.array([name in without_prediction for name in metrics], dtype=bool)
        self._known = tuple({name: place for place, name in enumerate(names)} for names in (self.items, self.seeds))
        ends = np.cumsum([len(self.items) * len(own) for own in self.seeds.values()], dtype=np.int64).tolist()
        self.blocks = {
            name: slice(*span) for name, span in zip(self.seeds, itertools.pairwise([0, *ends]), strict=True)
        }
        self.matrix = ScoreMatrix.read(records, metrics, ends[-1] if ends else 0, self._rows_of)
        self.predictions = np.full(len(self.matrix.values), -1, dtype=np.int64)  # number of the row
        for table in records.batches("prediction", text=False):
            self.predictions[self._rows_of(table)] = table["number"].to_numpy()
        # a chunk that is tried again may fail on an item that it had a prediction for
        self.predictions[(self.matrix.states[:, ~self.alone] == ERROR).any(axis=1)] = -1

    def _rows_of(self, table: pa.Table) -> npt.NDArray[np.int64]:
        """Return the row of each score or prediction; raises KeyError or ValueError for what is not scored here."""
        item, system = (match(table, name, known) for name, known in zip(("item", "system"), self._known, strict=True))
        if (item < 0).any() or (system < 0).any():
            raise KeyError("item or system")
        seed = table["seed"].fill_null(-1).to_numpy()
        rows = np.empty(len(table), dtype=np.int64)
        for place, (name, seeds) in enumerate(self.seeds.items()):
            own = system == place
            values, inverse = np.unique(seed[own], return_inverse=True)
            columns = np.array([seeds.index(value) for value in values.tolist()], dtype=np.int64)
            rows[own] = self.blocks[name].start + item[own] * len(seeds) + columns[inverse]
        return rows

    def are_scored(self, system: str, seed: int, items: range, metrics: Sequence[str]) -> bool:
        """Tell whether all of some scores are there and none of them failed."""
        seeds = self.seeds[system]
        rows = self.blocks[system].start + np.array(items) * len(seeds) + seeds.index(seed)
        columns = [self.matrix.metrics.index(name) for name in metrics]
        return bool(np.isin(self.matrix.states[np.ix_(rows, columns)], (SCORED, UNDEFINED)).all())

    def by_item(self, system: str, cells: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return cells of a system, shape (items, seeds, ...)."""
        return cells[self.blocks[system]].reshape(len(self.items), len(self.seeds[system]), *cells.shape[1:])

    def bins(self, feature: HistogramFeature) -> dict[str, Bins]:
        """Return the bins of a feature of each system's predictions, shape (seeds, items, most)."""
        rows_of = {number: row for row, number in enumerate(self.predictions.tolist()) if number >= 0}
        parts: list[tuple[list[int], Bins]] = []
        for table in self.records.batches("prediction"):
            numbered = zip(table["number"].to_pylist(), to_rows(table), strict=True)
            middles = {rows_of[number]: row["middle"] for number, row in numbered if number in rows_of}
            if middles:
                try:
                    parts.append((list(middles), feature.bins(np.array(list(middles.values()), dtype=np.uint8))))
                except InvalidTokensError as error:
                    message = f"the records hold a prediction of other tokens: {error}; {REMEDY}"
                    raise CorruptRecordsError(message) from error
        bins = np.full((len(self.predictions), max((part.shape[1] for _, part in parts), default=0)), -1, dtype=np.int8)
        for rows, part in parts:
            bins[rows, : part.shape[1]] = part
        return {name: self.by_item(name, bins).swapaxes(0, 1) for name in self.seeds}

    def failures(self) -> list[dict[str, Any]]:
        """Return what failed, in the order in which it was first recorded."""
        matrix, names = self.matrix, list(self.seeds)
        rows, columns = np.nonzero(matrix.states == ERROR)
        order = np.argsort(matrix.first[rows, columns], kind="stable")
        starts = [block.start for block in self.blocks.values()]
        errors: dict[tuple[str, str, int, str | None], str] = {}
        for row, column in zip(rows[order].tolist(), columns[order].tolist(), strict=True):
            name = names[int(np.searchsorted(starts, row, side="right")) - 1]
            item, seed = divmod(row - self.blocks[name].start, len(self.seeds[name]))
            metric = matrix.metrics[column] if self.alone[column] else None
            errors[self.items[item], name, self.seeds[name][seed], metric] = matrix.texts[matrix.messages[row, column]]
        keys = ("item", "system", "seed", "metric", "error")
        return [dict(zip(keys, (*key, error), strict=True)) for key, error in errors.items()]


def _from_items(records: Records, header: dict[str, Any], task: Task) -> ScoreTable:
    """Read records whose header names the systems with their seeds: a pair of each item with each system."""
    numbers, songs, failures = _item_rows(records)
    columns = tuple(dict.fromkeys((*task.scales, *task.divergences.values())))
    seeds = {name: about["seeds"] for name, about in header["systems"].items()}
    runs = SeededScores(records, list(numbers), seeds, columns, without_prediction=task.without_prediction)
    n, worst, texts = len(numbers), task.missing_scores(header), runs.matrix.texts
    lowest = np.array([worst.get(name, np.nan) for name in columns])
    matrix = ScoreMatrix.empty(columns, n * len(seeds))
    matrix.texts, matrix.kernels = texts, runs.matrix.kernels
    by_seed, predictions, failed = {}, {}, []
    for place, name in enumerate(seeds):
        cells = runs.matrix.values, runs.matrix.states, runs.matrix.messages, runs.predictions
        values, states, messages, predictions[name] = (runs.by_item(name, part) for part in cells)
        complete = np.logical_and.reduce(predictions[name] >= 0, axis=1)
        # what was not given has the worst score, where there is one
        missing = messages == (texts.index(NOT_GIVEN) if NOT_GIVEN in texts else -2)
        not_given = ((states == ERROR) & missing).all(axis=1) & ~np.isnan(lowest)
        there = ((states != ABSENT).any(axis=1) & (complete[:, None] | runs.alone)) | not_given
        values = np.where(not_given[:, None], lowest, values)
        means = np.where(there, _means(values), np.nan)
        matrix.values[place * n : place * n + n] = means
        matrix.states[place * n : place * n + n] = np.where(there, np.where(np.isnan(means), UNDEFINED, SCORED), ABSENT)
        by_seed[name] = values.swapaxes(0, 1)
        failed.append(~complete)
    every = {"item": list(numbers) * len(seeds), "system": np.repeat(list(seeds), n).tolist()}
    every |= {"group": songs * len(seeds), "reference": every["item"], "modality": ["item"] * (n * len(seeds))}
    text = {name: Categorical.of(column) for name, column in every.items()}
    without = np.concatenate([*failed, np.empty(0, dtype=bool)])
    text["error"] = Categorical.of([NO_PREDICTION])._replace(codes=np.where(without, 0, -1).astype(np.int32))
    failures += runs.failures()
    # the metrics of all runs, and those that the last selection asked for, where there is one
    selections = list(records.of("selection"))
    left_out = set(task.on_request).difference(selections[-1]["scores"]) if selections else set()
    recorded = {name for name, own in zip(columns, runs.matrix.states.T, strict=True) if (own != ABSENT).any()}
    recorded |= set(columns).difference(task.without_prediction, task.on_request)
    shown = [name for name in task.scales if name in recorded and name not in left_out]
    return ScoreTable(
        header=header | {"metrics": shown, "companions": []},
        roles={name: about["role"] for name, about in header["systems"].items()},
        records=records,
        columns=text,
        estimates=text["item"].categories.take(text["item"].codes),
        matrix=matrix,
        rows=np.arange(n * len(seeds)),
        pair_of=lambda row: _pair_of_item(text, row),
        seeds=by_seed,
        feature_bins={metric: runs.bins(feature) for metric, feature in task.histogram_features.items()},
        predictions=predictions,
        item_rows=RecordedRows(records, numbers),
        songs=songs,
        failures=failures[:MOST_LISTED],
        n_failures=Counter((row["system"], row["metric"]) for row in failures),
    )


def _item_rows(records: Records) -> tuple[dict[str, int], list[str], list[dict[str, Any]]]:
    """Return the number of the row of each item, their songs, and the items that could not be read."""
    numbers: dict[str, int] = {}
    songs: dict[str, str] = {}
    broken: list[dict[str, Any]] = []
    for row in records.of("item", numbered=True):
        if "error" in row:
            broken.append({"item": row["item"], "system": None, "seed": None, "metric": None, "error": row["error"]})
        else:
            numbers[row["item"]], songs[row["item"]] = row["number"], row["song"]
    return numbers, list(songs.values()), broken


def _means(values: Floats) -> Floats:
    """Return the means over the seeds that define a score, of values (items, seeds, metrics)."""
    defined = ~np.isnan(values)
    total = np.zeros((len(values), values.shape[2]))
    for seed in range(values.shape[1]):  # one after the other, in the order of the seeds
        total += np.where(defined[:, seed], values[:, seed], 0.0)
    n = np.count_nonzero(defined, axis=1)
    means: Floats = np.divide(total, n, out=np.full(total.shape, np.nan), where=n > 0)
    return means


def _pair_of_item(columns: Mapping[str, Categorical], row: int) -> dict[str, Any]:
    """Return the pair that an item and a system make."""
    pair = {name: column.text(np.array([row]))[0] for name, column in columns.items() if column.codes[row] >= 0}
    return {**pair, "reference": {"name": pair["item"], "content": pair["item"]}}
