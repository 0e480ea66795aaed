"""Two forms of one record: JSON lines and Parquet shards hold the same rows and give the same results."""

from __future__ import annotations

import dataclasses
import os
import signal
import subprocess
import sys
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from music_evals.benchmark import collecting_pairs, engines, results, shards
from music_evals.benchmark.cautions import cautions
from music_evals.benchmark.contents import n_failures
from music_evals.benchmark.load import load_results
from music_evals.benchmark.outputs import write_scores
from music_evals.benchmark.preservation.results import PRESERVATION
from music_evals.benchmark.records import MemoryRecords, RecordFile, read_records
from music_evals.benchmark.results import build_results, collect
from music_evals.benchmark.run import Settings, record
from music_evals.benchmark.shards import ShardFolder, open_records, records_at
from music_evals.benchmark.tables import markdown_report
from music_evals.errors import ChangedResultsError, CorruptRecordsError, InvalidInputError, OutputError
from music_evals.hub.scores import system_scores
from music_evals.leaderboard.details import details_of_run
from music_evals.leaderboard.records import read_run, records_of_run
from music_evals.metrics.catalogue import PRESERVATION_METRICS

from .inpainting.test_numbers import records as inpainting_records

METRICS = ("beat_f_measure", "motif_recall")
HEADER: dict[str, Any] = {
    "task": "preservation", "variant": "corrected", "metrics": list(METRICS), "companions": [],
    "dataset": {"id": "x", "config": None, "split": None, "revision": None},
    "extractors": {"features": {}}, "versions": {},
}  # fmt: skip

words = st.text(max_size=6)
plain = (
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats(allow_nan=False, allow_infinity=False) | words
)
anything = st.recursive(plain, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(words, inner, max_size=2))
contents = st.tuples(words, words).map(list)
scores = st.fixed_dictionaries(
    {"kind": st.just("score"), "item": words, "system": words, "metric": words},
    optional={
        "content": contents | anything, "seed": st.integers(0, 9) | anything, "variant": words,
        "value": st.none() | st.floats(allow_nan=False, allow_infinity=False) | st.just("inf") | anything,
        "error": words, "reason": words, "n": st.integers(0, 1), "more": anything,
    },
)  # fmt: skip
sides = st.fixed_dictionaries({"name": words, "content": words})
pairs = st.fixed_dictionaries(
    {"kind": st.just("pair"), "item": words, "system": words, "group": words, "entrance": words},
    optional={"reference": sides, "estimate": sides | anything, "treatment": words, "error": words},
)
failed = st.fixed_dictionaries({"kind": st.just("pair"), "item": words, "system": words, "error": words | anything})
remarks = st.fixed_dictionaries(
    {
        "kind": st.just("remarks"),
        "item": words,
        "system": words,
        "content": contents,
        "notes": st.lists(words) | anything,
    }
)
others = st.fixed_dictionaries(
    {"kind": st.sampled_from(["outline", "explanation", "prediction", "item", "sitting", "kernels", "selection"])},
    optional={"item": anything, "system": words, "content": words | contents, "seed": anything, "music": anything},
)
rows = st.lists(scores | pairs | failed | remarks | others, max_size=12)


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(blocks=st.lists(rows, max_size=3))
def test_both_forms_hold_the_same_rows(blocks: list[list[dict[str, Any]]], tmp_path_factory: Any) -> None:
    folder = tmp_path_factory.mktemp("forms")
    path = folder / "records.jsonl"
    with RecordFile(path, HEADER) as lines, ShardFolder(folder / "records", HEADER) as shard:
        for block in blocks:
            lines.append(block)
            shard.append(block)
            shard.flush()
    wanted = [{"kind": "run", **HEADER}, *(row for block in blocks for row in block)]
    read, sharded = read_records(path), read_records(folder / "records")
    assert list(read) == list(sharded) == wanted
    assert [read[n] for n in range(len(read))] == sharded[:] == wanted
    for kind in ("score", "pair", "outline"):
        chosen = [row for row in wanted if row["kind"] == kind]
        assert list(read.of(kind)) == list(sharded.of(kind)) == list(MemoryRecords(wanted).of(kind)) == chosen
    numbers = [[n for batch in found.batches("score") for n in batch.numbers.tolist()] for found in (read, sharded)]
    assert numbers[0] == numbers[1] == [n for n, row in enumerate(wanted) if row["kind"] == "score"]


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
            "entrance": "audio",
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


def write(path: Path, rows: Iterator[dict[str, Any]], *, in_shards: bool, header: dict[str, Any] = HEADER) -> None:
    with open_records(path, header, shards=in_shards) as records:
        records.append(rows)


def results_of(records: Any, **options: Any) -> dict[str, Any]:
    return build_results(collect(records, PRESERVATION), PRESERVATION, n_resamples=50, **options)


@pytest.fixture
def small_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shards, "SHARD_ROWS", 97)


@pytest.mark.usefixtures("small_shards")
def test_both_forms_give_the_same_results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = list(made_rows(40))
    wanted = results_of([{"kind": "run", **HEADER}, *made])
    assert wanted["scores"]["a"]["motif_recall"]["n_failed"] > 1  # there is something to be wrong about
    assert wanted["systems"]["a"]["n_groups"] < 14
    assert {len(wanted[kind]) > 3 for kind in ("failures", "undefined", "notes", "comparisons")} == {True, False}
    found = []
    for in_shards, name in ((False, "lines"), (True, "shards")):
        write(tmp_path / name / "records.jsonl", iter(made), in_shards=in_shards)
        place = records_at(tmp_path / name / "records.jsonl")
        assert place is not None
        found.append(results_of(read_records(place)))
    assert found == [wanted, wanted]
    assert len(list((tmp_path / "shards" / "records").glob("*.parquet"))) > 5
    real = os.listdir
    monkeypatch.setattr(os, "listdir", lambda folder: sorted(real(folder), reverse=True))
    assert results_of(read_records(tmp_path / "shards" / "records")) == wanted
    # nor does it matter how the rows were cut into shards
    monkeypatch.setattr(shards, "SHARD_ROWS", 31)
    write(tmp_path / "others" / "records.jsonl", iter(made), in_shards=True)
    assert results_of(read_records(tmp_path / "others" / "records")) == wanted


@pytest.mark.usefixtures("small_shards")
def test_inpainting_gives_the_same_results_in_shards(tmp_path: Path) -> None:
    from music_evals.benchmark.inpainting.results import INPAINTING

    header, *made = inpainting_records(1, 5, split="test")
    about = {key: header[key] for key in header if key != "kind"}
    write(tmp_path / "records.jsonl", iter(made), in_shards=True, header=about)
    one, other = (collect(rows, INPAINTING) for rows in ([header, *made], read_records(tmp_path / "records")))
    assert build_results(one, INPAINTING, n_resamples=20) == build_results(other, INPAINTING, n_resamples=20)
    item = next(iter(one.items))
    assert one.items[item] == other.items[item]
    assert dict(one.predictions) == dict(other.predictions)


def shard_names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("*.parquet"))


@pytest.fixture
def sharded(tmp_path: Path, small_shards: None) -> Path:
    write(tmp_path / "records.jsonl", made_rows(20), in_shards=True)
    return tmp_path / "records"


def test_a_damaged_shard_is_named(sharded: Path) -> None:
    name = shard_names(sharded)[2]
    content = (sharded / name).read_bytes()
    for wrong in (content[:-1], content[:100] + b"!" + content[101:], b""):
        (sharded / name).write_bytes(wrong)
        with pytest.raises(CorruptRecordsError, match=rf"{name} is damaged.*overwrite=True"):
            read_records(sharded)
        with pytest.raises(CorruptRecordsError, match=name):
            ShardFolder(sharded, HEADER)
    (sharded / name).write_bytes(content)
    assert len(read_records(sharded)) > 200


def test_a_shard_that_is_lost_or_there_twice_is_named(sharded: Path) -> None:
    names = shard_names(sharded)
    (sharded / names[1]).rename(sharded / "away")
    with pytest.raises(CorruptRecordsError, match="shard 00001 is missing"):
        read_records(sharded)
    (sharded / "away").rename(sharded / names[1])
    other = sharded / f"00001-{'0' * 16}.parquet"
    other.write_bytes(b"")
    with pytest.raises(CorruptRecordsError, match="have one number"):
        read_records(sharded)


def test_a_file_of_another_kind_under_a_good_name_is_damage(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder = tmp_path / "records"
    folder.mkdir()
    pq.write_table(pa.table({"a": [1]}), folder / "table")
    for content in (b"no parquet", (folder / "table").read_bytes()):
        name = f"00000-{shards._digest(content)}.parquet"
        (folder / name).write_bytes(content)
        with pytest.raises(CorruptRecordsError, match=f"{name} is no shard of records"):
            read_records(folder)
        (folder / name).unlink()


def test_what_is_no_shard_is_left_alone(sharded: Path) -> None:
    wanted = list(read_records(sharded))
    foreign = [sharded / name for name in ("notes.txt", "table.parquet", "00001.parquet", "records.jsonl")]
    torn = sharded / f".00009-{'0' * 16}.parquet.{'a' * 32}.part"  # what a writer leaves that is killed
    for path in (*foreign, torn):
        path.write_bytes(b"mine")
    assert list(read_records(sharded)) == wanted
    with ShardFolder(sharded, HEADER) as records:
        assert records.resumed
    with ShardFolder(sharded, HEADER, overwrite=True) as records:
        assert not records.resumed
    assert {path.read_bytes() for path in foreign} == {b"mine"}
    assert not torn.exists()
    assert list(read_records(sharded)) == [{"kind": "run", **HEADER}]


def test_a_folder_of_shards_is_locked_and_belongs_to_one_run(sharded: Path) -> None:
    with pytest.raises(CorruptRecordsError, match="variant was 'corrected' and is now 'paper'"):
        ShardFolder(sharded, {**HEADER, "variant": "paper"})
    before = shard_names(sharded)
    with ShardFolder(sharded, HEADER) as records:
        for overwrite in (False, True):
            with pytest.raises(OutputError, match="another run is writing to"):
                ShardFolder(sharded, HEADER, overwrite=overwrite)
            with pytest.raises(OutputError, match="another run is writing to"):  # in the other form too
                open_records(sharded.with_suffix(".jsonl"), HEADER, overwrite=True, shards=False)
        assert shard_names(sharded) == before
        records.append([{"kind": "sitting", "wall_time_sec": 2.0}])
    assert read_records(sharded)[-1] == {"kind": "sitting", "wall_time_sec": 2.0}


def test_rows_wait_for_others_and_no_longer_than_some_seconds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with ShardFolder(tmp_path / "records", HEADER) as records:
        records.append([{"kind": "sitting", "wall_time_sec": 1.0}])
        assert records.n_written == 1  # the header
        monkeypatch.setattr(shards, "SHARD_SECONDS", 0.0)
        records.append([{"kind": "sitting", "wall_time_sec": 2.0}])
        assert records.n_written == 3
        assert records.rows[1:] == [{"kind": "sitting", "wall_time_sec": n} for n in (1.0, 2.0)]


KILLED = """
import sys
from pathlib import Path
from music_evals.benchmark import shards
shards.SHARD_ROWS = 25
with shards.ShardFolder(Path(sys.argv[1]), {"a": 1}) as records:
    for unit in range(10_000):
        about = {"item": str(unit), "system": "s", "content": ["r", "e"]}
        records.append({"kind": "score", **about, "metric": m, "variant": "x", "value": 0.5, "n": 1} for m in "abc")
        print(records.n_written, flush=True)
"""


def test_a_killed_writer_loses_nothing_that_was_written(tmp_path: Path) -> None:
    folder = tmp_path / "records"
    for _ in range(2):  # the second one goes on where the first one was
        with subprocess.Popen([sys.executable, "-c", KILLED, str(folder)], stdout=subprocess.PIPE, text=True) as writer:
            assert writer.stdout is not None
            told = [int(next(writer.stdout)) for _ in range(70)][-1]
            writer.send_signal(signal.SIGKILL)
            told = max([told, *map(int, writer.stdout.read().split())])
        assert writer.returncode == -signal.SIGKILL
        found = read_records(folder)
        assert len(found) >= told > 100
        assert found[0] == {"kind": "run", "a": 1}
    first, second = (n for n, row in enumerate(found) if row.get("item") == "0" and row["metric"] == "a")
    for start, end in ((first, second), (second, len(found))):
        rows = [(row["item"], row["metric"]) for row in found[start:end]]
        assert rows == [(str(n // 3), "abc"[n % 3]) for n in range(len(rows))]  # none is lost or there twice


@pytest.fixture
def by_ray(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the engine ray work in this process: which form its records have does not depend on it."""
    monkeypatch.setitem(engines.ENGINES, "ray", engines.serial)  # type: ignore[arg-type]


@pytest.fixture
def job(write_files: Any, stub_judge: Any) -> Any:
    from music_evals.benchmark.preservation.pairs import pairs_in_folders
    from music_evals.benchmark.rows import PairJob

    reference = write_files("r", {f"{name}.wav": str(number) for number, name in enumerate("abcdef")})
    edits = {"a": "0", "b": "1.5", "c": "undefined", "d": "half", "e": "4.25", "f": "5"}
    judged = pairs_in_folders(reference, [f"s={write_files('e', {f'{n}.wav': t for n, t in edits.items()})}"])
    return PairJob(HEADER, judged, (), METRICS, "corrected", stub_judge(METRICS))


@pytest.mark.slow
@pytest.mark.usefixtures("by_ray")
def test_a_run_by_ray_is_in_shards_and_stays_in_its_form(tmp_path: Path, job: Any) -> None:
    path = tmp_path / "out" / "records.jsonl"
    first = record(job, path, Settings(path.parent, engine="ray"))
    assert records_at(path) == path.parent / "records"
    assert not path.exists()
    done = [row["item"] for row in first.of("score")]
    again = record(job, path, Settings(path.parent, engine="serial"))  # shards are gone on with
    assert not path.exists()
    assert [row["item"] for row in again.of("score")] == [*done, "d", "d"]  # what failed is tried again
    assert len(list(again.of("selection"))) == 1
    afresh = record(job, path, Settings(path.parent, engine="serial", overwrite=True))
    assert records_at(path) == path
    assert shard_names(path.parent / "records") == []
    more = record(job, path, Settings(path.parent, engine="ray"))  # and lines are gone on with
    assert records_at(path) == path
    assert [row["item"] for row in more.of("score")] == [*(row["item"] for row in afresh.of("score")), "d", "d"]
    record(job, path, Settings(path.parent, engine="ray", overwrite=True))
    assert records_at(path) == path.parent / "records"
    assert not path.exists()


def test_records_in_two_forms_are_no_records(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    for in_shards, folder in ((True, tmp_path), (False, tmp_path / "else")):
        write(folder / "records.jsonl", iter(()), in_shards=in_shards)
    (tmp_path / "else" / "records.jsonl").rename(path)
    for in_shards in (True, False):
        with pytest.raises(CorruptRecordsError, match="are both there"):
            open_records(path, HEADER, shards=in_shards)
    with open_records(path, HEADER, shards=True, overwrite=True):
        pass
    assert not path.exists()


@pytest.mark.slow
@pytest.mark.usefixtures("by_ray")
def test_results_in_shards_are_loaded_pushed_and_ranked(tmp_path: Path, job: Any) -> None:
    out = tmp_path / "out"
    chosen = Settings(out, engine="ray", report=False, n_resamples=20)
    outcome = write_scores(PRESERVATION, record(job, out / "records.jsonl", chosen), chosen, lambda *_: "")
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
    for module in (collecting_pairs, results):
        monkeypatch.setattr(module, "MOST_LISTED", 3)
    cut = results_of(rows)
    for kind in ("failures", "undefined", "notes"):
        assert cut[kind] == whole[kind][:3]
    assert n_failures(cut) == len(whole["failures"]) > 3
    assert sum(row["n"] for row in cut["unlisted"]["undefined"]) == len(whole["undefined"]) - 3
    assert cut["unlisted"]["n_notes"] == len(whole["notes"]) - 3
    assert sum(row["n"] for row in cut["unlisted"]["notes"]) == len(whole["notes"]) - 3
    told = cautions(cut)
    assert f"results.json lists the first 3 of {len(whole['failures'])} failures; the records hold all" in told
    assert cautions(whole) == [
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
    monkeypatch.setattr(shards, "SHARD_ROWS", 2_000)
    names = tuple(PRESERVATION_METRICS)
    header = {**HEADER, "metrics": list(names)}
    rows = made_rows(4_000, names=names, systems=("a", "b"))
    write(tmp_path / "records.jsonl", rows, in_shards=True, header=header)
    records = read_records(tmp_path / "records")
    assert len(list(records.batches("score", text=False))) > 40
    tracemalloc.start()
    try:
        found = collect(records, PRESERVATION)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(found.of("a")) == 4_001
    assert peak < 16e6
    assert dataclasses.is_dataclass(found)
