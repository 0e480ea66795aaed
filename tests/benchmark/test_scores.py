"""The score table: hand-worked tables, and equal numbers whatever the form and the order of the records."""

from __future__ import annotations

import dataclasses
import math
import os
import tracemalloc
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from music_evals.benchmark import records, results, score_table, scores
from music_evals.benchmark.aggregate import Resampling, table_of_scores
from music_evals.benchmark.columns import Categorical
from music_evals.benchmark.contents import caveats, n_failures
from music_evals.benchmark.load import load_results
from music_evals.benchmark.records import RecordStore, read_records
from music_evals.benchmark.results import build_results
from music_evals.benchmark.run import Settings, record
from music_evals.benchmark.score_table import ERROR, UNDEFINED, ScoreTable
from music_evals.benchmark.scores import read_scores
from music_evals.benchmark.tables import markdown_report
from music_evals.benchmark.tasks.inpainting.runner import METRICS as RECORDED
from music_evals.benchmark.tasks.inpainting.task import INPAINTING
from music_evals.benchmark.tasks.preservation.task import PRESERVATION
from music_evals.errors import ChangedResultsError, CorruptRecordsError, InvalidInputError
from music_evals.hub.scores import system_scores
from music_evals.leaderboard.details import details_of_run
from music_evals.leaderboard.records import read_run, records_of_run
from music_evals.metrics.catalogue import PRESERVATION_METRICS

from .record_files import write_json_lines
from .tasks.inpainting.test_numbers import records as inpainting_records

METRICS = ("beat_f_measure", "motif_recall")
HEADER: dict[str, Any] = {
    "task": "preservation", "variant": "corrected", "metrics": list(METRICS), "companions": [],
    "dataset": {"id": "x", "config": None, "split": None, "revision": None},
    "extractors": {"features": {}}, "versions": {},
}  # fmt: skip


# --- by hand

# item -> scores of both metrics with system a, and with system b; text is an error, None undefined
BY_HAND: dict[str, dict[str, tuple[Any, Any]]] = {
    "a": {"1": (0.5, 0.25), "2": (1.0, None), "3": ("BackendError: no", 0.75), "4": (0.0, 0.5)},
    "b": {"2": (0.5, 0.5), "1": (0.75, 0.25), "4": (0.25, "BackendError: no")},
}
GROUPS = {"1": "x", "2": "x", "3": "y", "4": "z"}


def pair_and_scores(item: str, system: str, values: tuple[Any, Any]) -> Iterator[dict[str, Any]]:
    about = {"item": item, "system": system}
    held = {side: {"name": side, "content": f"{side} {item}"} for side in ("reference", "estimate")}
    yield {"kind": "pair", **about, "group": GROUPS[item], "modality": "audio", **held, "treatment": ""}
    content = [f"reference {item}", f"estimate {item}"]
    for metric, value in zip(METRICS, values, strict=True):
        what = {"kind": "score", **about, "content": content, "metric": metric, "variant": "corrected"}
        if isinstance(value, str):
            yield {**what, "error": value, "n": 0}
        else:
            yield {**what, "value": value, "n": 1} | ({"reason": "silent"} if value is None else {})


def by_hand(*more: dict[str, Any]) -> ScoreTable:
    """Return the table of `BY_HAND`, and a pair of system b that could not be read."""
    pairs = [
        row
        for system, items in BY_HAND.items()
        for item, both in items.items()
        for row in pair_and_scores(item, system, both)
    ]
    lost = {"kind": "pair", "item": "3", "system": "b", "error": "NoDataError: no such file"}
    selection = {"kind": "selection", "systems": ["b", "a"]}
    pairs = [*(row for row in pairs if row["kind"] == "pair"), lost, *(row for row in pairs if row["kind"] == "score")]
    return read_scores([{"kind": "run", **HEADER}, selection, *pairs, *more], PRESERVATION)


def test_columns_and_scores_of_a_system() -> None:
    table = by_hand()
    assert table.systems == ("b", "a")
    assert table.metrics == METRICS
    a, b = table.of("a"), table.scored("b")
    assert a.text("item") == ["1", "2", "3", "4"]
    assert a.text("group") == ["x", "x", "y", "z"]
    np.testing.assert_array_equal(a.values(*METRICS), [[0.5, 0.25], [1.0, np.nan], [np.nan, 0.75], [0.0, 0.5]])
    assert a.states(METRICS[0])[2, 0] == ERROR
    assert a.states(METRICS[1])[1, 0] == UNDEFINED
    assert np.isnan(a.values("another")).all()
    assert table.of("b").failed.tolist() == [False, False, False, True]
    assert b.text("item") == ["1", "2", "4"]  # sorted, without what failed
    assert [pair["reference"]["content"] for pair in b] == ["reference 1", "reference 2", "reference 4"]
    assert [pair["item"] for pair in b[1:]] == ["2", "4"]
    assert len(table.of("nobody")) == 0


def test_systems_are_paired_by_item_and_reference() -> None:
    table = by_hand()
    a, b = table.paired("a", "b")
    assert a.text("item") == b.text("item") == ["1", "2", "4"]
    np.testing.assert_array_equal((b.values(METRICS[0]) - a.values(METRICS[0]))[:, 0], [0.25, -0.5, 0.25])
    a, b = table.only(["2", "3"]).paired("a", "b")
    assert a.text("item") == b.text("item") == ["2"]
    assert [len(side) for side in table.paired("a", "nobody")] == [0, 0]


def test_scores_at_items_in_any_order() -> None:
    table = by_hand()
    np.testing.assert_array_equal(table.at(["4", "9", "1"], "a").values(METRICS[0])[:, 0], [0.0, np.nan, 0.5])
    assert table.at(["4", "9"], "nobody").rows.tolist() == [-1, -1]
    assert table.value("2", "b", METRICS[1]) == 0.5
    assert math.isnan(table.value("9", "b", METRICS[1]))


def test_groups_that_hold_one_music_are_one() -> None:
    table = by_hand()
    table.columns["group"] = table.columns["reference"]
    table.group_by({"reference 1": "tune", "reference 2": "tune"})
    assert table.of("a").text("group") == ["tune", "tune", "reference 3", "reference 4"]
    assert table.of("b").text("group")[3] is None


def test_means_numbers_and_best_by_hand() -> None:
    built = table_of_scores(by_hand(), PRESERVATION, {}, Resampling(n_resamples=20))
    cells = {system: built["scores"][system][METRICS[0]] for system in "ab"}
    assert [cells[system]["value"] for system in "ab"] == [pytest.approx(0.5), pytest.approx(0.5)]
    assert [(cell["n"], cell["n_failed"], cell["n_defined"], cell["n_groups"]) for cell in cells.values()] == [
        (4, 1, 3, 2), (4, 1, 3, 2),
    ]  # fmt: skip
    assert built["scores"]["a"][METRICS[1]]["value"] == pytest.approx(0.5)
    assert built["n_shared"] == 4  # what could not be read says nothing of its reference
    assert built["best"][METRICS[0]] == ["b", "a"]  # equal on 1, 2 and 4
    test = next(test for test in built["comparisons"] if test["metric"] == METRICS[0])
    assert (test["a"], test["b"], test["n"], test["difference"]) == ("b", "a", 3, pytest.approx(0.0))


def test_of_two_scores_the_later_one_counts() -> None:
    late = list(pair_and_scores("3", "a", (0.25, "BackendError: late")))[1:]
    table = by_hand(*late)
    assert table.value("3", "a", METRICS[0]) == 0.25
    assert table.failures[-1] == {"item": "3", "system": "a", "metric": METRICS[1], "error": "BackendError: late"}


def test_failures_and_undefined_scores_are_listed_and_counted() -> None:
    table = by_hand()
    assert table.failures == [
        {"item": "4", "system": "b", "metric": METRICS[1], "error": "BackendError: no"},
        {"item": "3", "system": "b", "metric": None, "error": "NoDataError: no such file"},
        {"item": "3", "system": "a", "metric": METRICS[0], "error": "BackendError: no"},
    ]
    assert table.n_failures == {("b", METRICS[1]): 1, ("b", None): 1, ("a", METRICS[0]): 1}
    listed, counts = table.undefined()
    assert listed == [{"item": "2", "system": "a", "metric": METRICS[1], "reason": "silent"}]
    assert counts == {("a", METRICS[1], "silent"): 1}


def test_a_pair_all_of_whose_scores_failed_for_one_reason_is_one_failure() -> None:
    table = by_hand(*list(pair_and_scores("4", "a", ("Boom: x", "Boom: x")))[1:])
    assert {"item": "4", "system": "a", "metric": None, "error": "Boom: x"} in table.failures


@pytest.mark.parametrize("missing", ["item", "system", "metric", "content"])
def test_a_score_without_what_it_belongs_to_is_refused(missing: str) -> None:
    row = next(row for row in pair_and_scores("1", "a", (0.5, 0.5)) if row["kind"] == "score")
    with pytest.raises(CorruptRecordsError):
        by_hand({key: value for key, value in row.items() if key != missing})


def seeded(values: dict[str, list[list[float | None]]]) -> ScoreTable:
    """Return the table of systems -> note F1 of each seed."""
    systems = {name: {"role": "baseline", "seeds": list(range(len(rows)))} for name, rows in values.items()}
    items = [f"i{n}" for n in range(len(next(iter(values.values()))[0]))]
    made: list[dict[str, Any]] = [{"kind": "run", "variant": "corrected", "systems": systems}]
    made += (
        {"kind": "item", "item": item, "song": item, "seen_in_train": None, "tokens": [129] * 384} for item in items
    )
    for name, by_seed in values.items():
        for seed, own in enumerate(by_seed):
            for item, value in zip(items, own, strict=True):
                about = {"item": item, "system": name, "seed": seed}
                made.append({"kind": "prediction", **about, "middle": [129 - seed] * 96})
                for metric in RECORDED:
                    made.append({"kind": "score", **about, "metric": metric, "value": value, "n": 1})
    return read_scores(made, INPAINTING)


def test_seeds_by_hand() -> None:
    table = seeded({"two": [[0.8, 0.2, None], [0.4, None, None]], "one": [[1.0, 0.5, 0.0]]})
    two = table.scored("two")
    np.testing.assert_allclose(two.values("note_f1")[:, 0], [0.6, 0.2, np.nan])
    np.testing.assert_array_equal(two.by_seed("note_f1"), [[0.8, 0.2, np.nan], [0.4, np.nan, np.nan]])
    np.testing.assert_array_equal(table.at(["i1", "no", "i0"], "one").by_seed("note_f1"), [[0.5, np.nan, 1.0]])
    assert two.by_seed("another").shape == (0, 3)
    assert table.prediction("i1", "two") == [[129] * 96, [128] * 96]
    assert table.prediction("i1", "nobody") == []
    assert table.songs == ["i0", "i1", "i2"]
    assert table.item_rows["i2"]["tokens"] == [129] * 384


def test_text_by_numbers() -> None:
    import pyarrow as pa

    column = Categorical.of(pa.array(["b", None, "a", "b"]))
    assert column.codes.tolist() == [1, -1, 0, 1]
    assert column.text() == ["b", None, "a", "b"]
    assert column.codes_of(["a", "c", "b"]).tolist() == [0, -1, 1]
    assert Categorical.of([]).text() == []


# --- whatever the form


def made_rows(
    n: int, *, names: tuple[str, ...] = METRICS, systems: tuple[str, ...] = ("a", "b")
) -> Iterator[dict[str, Any]]:
    """Yield pairs and their scores: failed, undefined, done in a second try; remarks and music of the originals."""
    yield {"kind": "selection", "systems": list(systems)}
    keys = [
        (f"item {place:04}", system, f"original {place // 3}", f"{system} {place}")
        for system in systems
        for place in range(n)
    ]
    for item, system, original, edit in keys:
        held = {"reference": {"name": original, "content": original}, "estimate": {"name": edit, "content": edit}}
        yield {
            "kind": "pair",
            "item": item,
            "system": system,
            "group": original,
            "modality": "audio",
            **held,
            "treatment": "",
        }
    yield {"kind": "pair", "item": "lost", "system": "a", "error": "NoDataError: no such file"}
    yield {"kind": "kernels", "kernels": "one"}
    for attempt in range(2):
        for place, (item, system, original, edit) in enumerate(keys):
            if attempt and place % 10:
                continue
            about = {"item": item, "system": system, "content": [original, edit]}
            for column, metric in enumerate(names):
                chance = (place * 7 + column * 3) % 20
                score = {"value": ((place * 37 + column * 11 + attempt) % 101) / 100, "n": 1}
                if chance == 0 or (not attempt and place % 10 == 0):
                    score = {"error": f"BackendError: {place % 4}", "n": 0}
                elif chance == 1:
                    score = {"value": None, "reason": "silent", "n": 1}
                yield {"kind": "score", **about, "metric": metric, "variant": "corrected", **score}
            if place % 5 == 0:
                yield {"kind": "remarks", **about, "notes": [f"{place % 3} more bars"]}
            yield {"kind": "outline", "content": original, "music": f"music {original[9:10]}", "duration_sec": 1.0}
            yield {"kind": "outline", "content": edit, "duration_sec": 2.0}
    yield {"kind": "sitting", "wall_time_sec": 1.5}


def write(path: Path, rows: Iterable[dict[str, Any]], header: dict[str, Any] = HEADER) -> None:
    with RecordStore(path, header) as store:
        store.append(rows)


def results_of(read: Any, **options: Any) -> dict[str, Any]:
    return build_results(read_scores(read, PRESERVATION), PRESERVATION, n_resamples=50, **options)


@pytest.fixture
def small_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "SHARD_ROWS", 97)


@pytest.mark.usefixtures("small_shards")
def test_all_forms_give_the_same_results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, made = {"kind": "run", **HEADER}, list(made_rows(40))
    wanted = results_of([first, *made])
    assert wanted["scores"]["a"]["motif_recall"]["n_failed"] > 1  # there is something to be wrong about
    assert wanted["systems"]["a"]["n_groups"] < 14
    assert {len(wanted[kind]) > 3 for kind in ("failures", "undefined", "notes", "comparisons")} == {True, False}
    write(tmp_path / "records", iter(made))
    assert results_of(read_records(tmp_path / "records")) == wanted
    assert len(list((tmp_path / "records").glob("*.parquet"))) > 5
    entrances = [{"entrance" if key == "modality" else key: value for key, value in row.items()} for row in made]
    assert results_of(read_records(write_json_lines(tmp_path / "old.jsonl", [first], entrances))) == wanted
    real = os.listdir
    monkeypatch.setattr(os, "listdir", lambda folder: sorted(real(folder), reverse=True))
    assert results_of(read_records(tmp_path / "records")) == wanted
    # nor does it matter how the rows were cut into shards
    monkeypatch.setattr(records, "SHARD_ROWS", 31)
    write(tmp_path / "others", iter(made))
    assert results_of(read_records(tmp_path / "others")) == wanted
    monkeypatch.setattr(records, "SHARD_ROWS", 200)
    monkeypatch.setattr(records, "MANY_SHARDS", 2)
    with RecordStore(tmp_path / "others", HEADER) as store:
        store.compact()
    assert results_of(read_records(tmp_path / "others")) == wanted


@pytest.mark.slow
@pytest.mark.usefixtures("small_shards")
def test_inpainting_gives_the_same_results_in_shards(tmp_path: Path) -> None:
    header, *made = inpainting_records(1, 5, split="test")
    write(tmp_path / "records", iter(made), {key: header[key] for key in header if key != "kind"})
    one, other = (read_scores(rows, INPAINTING) for rows in ([header, *made], read_records(tmp_path / "records")))
    assert build_results(one, INPAINTING, n_resamples=20) == build_results(other, INPAINTING, n_resamples=20)
    item = next(iter(one.item_rows))
    assert one.item_rows[item] == other.item_rows[item]
    assert all(one.prediction(item, name) == other.prediction(item, name) for name in one.systems)


@pytest.fixture
def job(write_files: Any, stub_judge: Any) -> Any:
    from music_evals.benchmark.rows import PairJob
    from music_evals.benchmark.tasks.preservation.pairs import pairs_in_folders

    reference = write_files("r", {f"{name}.wav": str(number) for number, name in enumerate("abcdef")})
    edits = {"a": "0", "b": "1.5", "c": "undefined", "d": "half", "e": "4.25", "f": "5"}
    judged = pairs_in_folders(reference, [f"s={write_files('e', {f'{n}.wav': t for n, t in edits.items()})}"])
    return PairJob(HEADER, judged, (), METRICS, "corrected", stub_judge(METRICS))


@pytest.mark.slow
def test_a_run_is_resumed_where_it_stood(tmp_path: Path, job: Any) -> None:
    path = tmp_path / "out" / "records"
    first = record(job, path, Settings(path.parent))
    assert len(list(path.glob("*.parquet"))) == 1
    done = [row["item"] for row in first.of("score")]
    again = record(job, path, Settings(path.parent))
    assert [row["item"] for row in again.of("score")] == [*done, "d", "d"]  # what failed is tried again
    assert len(list(again.of("selection"))) == 1
    assert [row["item"] for row in first.of("score")] == done


@pytest.mark.slow
def test_results_are_loaded_pushed_and_ranked(tmp_path: Path, job: Any) -> None:
    out = tmp_path / "out"
    chosen = Settings(out, report=False, n_resamples=20)
    outcome = PRESERVATION.write(record(job, out / "records", chosen), chosen, lambda *_: "")
    assert outcome.files["records"] == out / "records"
    loaded = load_results(out)
    assert loaded.results == outcome.results
    with pytest.raises(InvalidInputError, match="1 results of s failed"):
        system_scores(loaded.results, "s")
    run = read_run(out)
    made = records_of_run(run)
    assert {record.metric: record.n for record in made} == dict.fromkeys(METRICS, 6)
    assert {detail.kind for detail in details_of_run(run, made)} == {"pair", "outline"}
    text = (out / "results.json").read_text()
    (out / "results.json").write_text(text.replace('"n_defined": 5', '"n_defined": 6', 1))
    with pytest.raises(ChangedResultsError, match="n_defined is 6"):
        load_results(out)


def test_long_lists_are_cut_and_the_rest_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [{"kind": "run", **HEADER}, *made_rows(60)]
    whole = results_of(rows)
    assert "unlisted" not in whole
    for module in (scores, score_table, results):
        monkeypatch.setattr(module, "MOST_LISTED", 3)
    cut = results_of(rows)
    for kind in ("failures", "undefined", "notes"):
        assert cut[kind] == whole[kind][:3]
    assert n_failures(cut) == len(whole["failures"]) > 3
    assert sum(row["n"] for row in cut["unlisted"]["undefined"]) == len(whole["undefined"]) - 3
    assert cut["unlisted"]["n_notes"] == len(whole["notes"]) - 3
    assert sum(row["n"] for row in cut["unlisted"]["notes"]) == len(whole["notes"]) - 3
    told = caveats(cut)
    assert f"results.json lists the first 3 of {len(whole['failures'])} failures; the records hold all" in told
    assert caveats(whole) == [
        text.replace("the records have them all", "results.json has them all") for text in told[:-2]
    ]
    assert f"and {len(whole['failures']) - 50} more" in markdown_report(whole) or len(whole["failures"]) <= 50
    messages = []
    for found in (whole, cut):
        with pytest.raises(InvalidInputError) as caught:
            system_scores(found, "b")  # all of what is listed of the cut one is of system a
        messages.append(str(caught.value).partition(" failed")[0])
    assert messages[0] == messages[1]
    assert {key: cut[key] for key in ("scores", "comparisons", "best")} == {
        key: whole[key] for key in ("scores", "comparisons", "best")
    }


@pytest.mark.slow
@pytest.mark.usefixtures("small_shards")
def test_memory_does_not_grow_with_the_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One dictionary takes half a kilobyte, and there are eleven scores a pair: 44 MB where all rows are held."""
    monkeypatch.setattr(records, "SHARD_ROWS", 2_000)
    names = tuple(PRESERVATION_METRICS)
    header = {**HEADER, "metrics": list(names)}
    rows = made_rows(4_000, names=names, systems=("a", "b"))
    write(tmp_path / "records", rows, header)
    read = read_records(tmp_path / "records")
    assert len(list(read.batches("score", text=False))) > 40
    tracemalloc.start()
    try:
        found = read_scores(read, PRESERVATION)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(found.of("a")) == 4_001
    assert peak < 16e6
    assert dataclasses.is_dataclass(found)
