"""Records: what is written is read, a kill costs little, damage is named, and old runs are read as they are."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from music_evals.benchmark import records as module
from music_evals.benchmark.columns import dump_json
from music_evals.benchmark.records import RecordStore, read_records, records_at, rows_in_memory
from music_evals.errors import CorruptRecordsError, OtherRunError, OutputError
from music_evals.files import write_atomically

from .record_files import write_json_lines

HEADER: dict[str, Any] = {"dataset": {"id": "tiny", "fingerprint": "abc"}, "seeds": [0, 1]}
FIRST = {"kind": "run", **HEADER}
ITEMS = [{"kind": "item", "item": "a"}, {"kind": "item", "item": "b"}]
BLOCKS = [
    [{"kind": "score", "item": "a", "value": 0.5}, {"kind": "score", "item": "b", "value": None}],
    [{"kind": "score", "item": "a", "error": "no such thing"}],
    [{"kind": "score", "item": "ü\u2028\r", "value": 0.1}],
]
ROWS = [FIRST, *ITEMS, *(row for block in BLOCKS for row in block)]

words = st.text(max_size=6)
plain = (
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats(allow_nan=False, allow_infinity=False) | words
)
anything = st.recursive(plain, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(words, inner, max_size=2))
contents = st.tuples(words, words).map(list)
about = {"kind": st.just("score"), "item": words, "system": words, "metric": words}
more = {"content": contents, "seed": st.integers(0, 9), "variant": words, "n": st.integers(0, 1), "more": anything}
values = st.none() | st.floats(allow_nan=False, allow_infinity=False) | st.just("inf")
scores = st.fixed_dictionaries(about | {"value": values}, optional=more | {"reason": words}) | st.fixed_dictionaries(
    about | {"error": words}, optional=more
)
sides = st.fixed_dictionaries({"name": words, "content": words})
pairs = st.fixed_dictionaries(
    {"kind": st.just("pair"), "item": words, "system": words, "group": words, "modality": words},
    optional={"reference": sides, "estimate": sides, "treatment": words, "error": words, "more": anything},
)
remarks = st.fixed_dictionaries(
    {"kind": st.just("remarks"), "item": words, "system": words, "content": contents, "notes": st.lists(words)}
)
others = st.fixed_dictionaries(
    {"kind": st.sampled_from(["outline", "explanation", "prediction", "item", "sitting", "kernels", "selection"])},
    optional={"item": anything, "system": words, "content": words | contents, "seed": anything, "music": anything},
)
rows = st.lists(scores | pairs | remarks | others, max_size=12)


def write_blocks(path: Path, n: int = len(BLOCKS)) -> Path:
    with RecordStore(path, HEADER, ITEMS) as store:
        for block in BLOCKS[:n]:
            store.append(block)
            store.flush()
    return path


def shards(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("*.parquet"))


def test_what_is_written_is_read(tmp_path: Path) -> None:
    read = read_records(write_blocks(tmp_path / "deep" / "folder" / "records"))
    assert list(read) == ROWS
    assert read[1:3] == ITEMS
    assert read[-1] == ROWS[-1]


@pytest.mark.slow
@settings(deadline=None)
@given(blocks=st.lists(rows, max_size=3))
def test_all_forms_hold_the_same_rows(blocks: list[list[dict[str, Any]]], tmp_path_factory: Any) -> None:
    folder = tmp_path_factory.mktemp("forms")
    with RecordStore(folder / "records", HEADER) as store:
        for block in blocks:
            store.append(block)
            store.flush()
        sharded = store.rows
        wanted = [FIRST, *(row for block in blocks for row in block)]
        forms = [
            sharded,
            rows_in_memory(wanted),
            read_records(write_json_lines(folder / "old.jsonl", [FIRST], *blocks)),
        ]
        for read in forms:
            assert list(read) == [read[n] for n in range(len(read))] == read[:] == wanted
            for kind in ("score", "pair", "outline"):
                chosen = [row for row in wanted if row["kind"] == kind]
                assert list(read.of(kind)) == chosen
                numbers = [n for table in read.batches(kind, text=False) for n in table["number"].to_pylist()]
                assert numbers == [n for n, row in enumerate(wanted) if row["kind"] == kind]
        store.compact()
        assert list(store.rows) == wanted
    assert list(read_records(folder / "records")) == wanted


@pytest.mark.parametrize(
    "wrong",
    [
        {"value": "abc"},
        {"value": [1]},
        {"value": 1.0, "item": 5},
        {"value": 1.0, "content": ["a"]},
        {"value": 1.0, "seed": "x"},
    ],
)
def test_a_field_of_another_type_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises((TypeError, ValueError)):
        rows_in_memory([{"kind": "score", "item": "a", **wrong}])


def test_a_header_of_another_run_is_refused_and_the_difference_named(tmp_path: Path) -> None:
    path = write_blocks(tmp_path / "records")
    before = shards(path)
    other = {**HEADER, "dataset": {"id": "tiny", "fingerprint": "xyz"}, "variant": "paper"}
    with pytest.raises(CorruptRecordsError) as caught:
        RecordStore(path, other, ITEMS)
    message = str(caught.value)
    assert "dataset.fingerprint was 'abc' and is now 'xyz'" in message
    assert "variant was 'absent' and is now 'paper'" in message
    assert "`overwrite=True`" in message
    assert "dataset.id" not in message
    assert shards(path) == before


def test_overwrite_starts_afresh(tmp_path: Path) -> None:
    path = write_blocks(tmp_path / "records")
    with RecordStore(path, {"other": 1}, ITEMS, overwrite=True) as store:
        assert not store.resumed
    assert list(read_records(path)) == [{"kind": "run", "other": 1}, *ITEMS]


def test_no_records_to_read(tmp_path: Path) -> None:
    (tmp_path / "empty.jsonl").write_bytes(b"")
    (tmp_path / "records").mkdir()
    for name in ("empty.jsonl", "records"):
        with pytest.raises(CorruptRecordsError, match="no finished block"):
            read_records(tmp_path / name)
    with pytest.raises(OutputError, match="cannot read"):
        read_records(tmp_path / "missing.jsonl")
    assert records_at(tmp_path / "records") is None


def test_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OutputError, match="No space left on device"):
        RecordStore(tmp_path / "records", HEADER)


def test_a_file_where_the_folder_should_be(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("a file")
    with pytest.raises(OutputError, match="`out`"):
        RecordStore(tmp_path / "out" / "records", HEADER)


def test_results_are_on_the_disk_before_they_take_their_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_atomically(tmp_path / "results.json", b"old")
    synced: list[bytes] = []
    real = os.fsync

    def fsync(descriptor: int) -> None:
        real(descriptor)
        synced.append(path.read_bytes())  # what the name stands for at that time

    monkeypatch.setattr(os, "fsync", fsync)
    write_atomically(path, b"new")
    assert synced == [b"old"]
    assert path.read_bytes() == b"new"


def test_json_holds_no_nan() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        dump_json({"value": float("nan")})
    assert json.loads(dump_json({"a": [1, None]}, indent=2)) == {"a": [1, None]}


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_second_run_in_the_same_folder_changes_nothing(tmp_path: Path, overwrite: bool) -> None:
    path = tmp_path / "records"
    with RecordStore(path, HEADER, ITEMS) as store:
        store.append(BLOCKS[0])
        store.flush()
        before = shards(path)
        with pytest.raises(OutputError, match=r"another run is writing to .*records; wait for it"):
            RecordStore(path, {"other": 1}, overwrite=overwrite)
        assert shards(path) == before
        store.append(BLOCKS[1])
    assert [row["kind"] for row in read_records(path)] == ["run", "item", "item", "score", "score", "score"]
    with RecordStore(path, {"other": 1}, overwrite=True) as store:  # it is free again
        assert not store.resumed
    assert list(read_records(path)) == [{"kind": "run", "other": 1}]


# --- shards


def made_rows(n: int) -> Iterator[dict[str, Any]]:
    for unit in range(n):
        about = {"item": str(unit), "system": "s", "content": ["r", "e"]}
        yield from ({"kind": "score", **about, "metric": m, "variant": "x", "value": 0.5, "n": 1} for m in "abc")


@pytest.fixture
def sharded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(module, "SHARD_ROWS", 97)
    with RecordStore(tmp_path / "records", HEADER) as store:
        store.append(made_rows(200))
    assert len(shards(tmp_path / "records")) > 5
    return tmp_path / "records"


def test_a_damaged_shard_is_named(sharded: Path) -> None:
    name = shards(sharded)[2]
    content = (sharded / name).read_bytes()
    for wrong in (content[:-1], content[:100] + b"!" + content[101:], b""):
        (sharded / name).write_bytes(wrong)
        with pytest.raises(CorruptRecordsError, match=rf"{name} is damaged.*overwrite=True"):
            read_records(sharded)
        with pytest.raises(CorruptRecordsError, match=name):
            RecordStore(sharded, HEADER)
    (sharded / name).write_bytes(content)
    assert len(read_records(sharded)) == 601


def test_a_shard_that_is_lost_or_there_twice_is_named(sharded: Path) -> None:
    names = shards(sharded)
    (sharded / names[1]).rename(sharded / "away")
    with pytest.raises(CorruptRecordsError, match="shard 00001 is missing"):
        read_records(sharded)
    (sharded / "away").rename(sharded / names[1])
    (sharded / f"00001-{'0' * 16}.parquet").write_bytes(b"")
    with pytest.raises(CorruptRecordsError, match="have one number"):
        read_records(sharded)


def test_a_file_of_another_kind_under_a_good_name_is_damage(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder = tmp_path / "records"
    folder.mkdir()
    pq.write_table(pa.table({"a": [1]}), folder / "table")
    for content in (b"no parquet", (folder / "table").read_bytes()):
        name = f"00000-{hashlib.sha256(content).hexdigest()[:16]}.parquet"
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
    with RecordStore(sharded, HEADER) as store:
        assert store.resumed
    with RecordStore(sharded, HEADER, overwrite=True) as store:
        assert not store.resumed
    assert {path.read_bytes() for path in foreign} == {b"mine"}
    assert not torn.exists()
    assert list(read_records(sharded)) == [FIRST]


def test_rows_wait_for_others_and_no_longer_than_some_seconds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "records"
    with RecordStore(path, HEADER) as store:
        store.append([{"kind": "sitting", "wall_time_sec": 1.0}])
        assert len(read_records(path)) == 1  # the header
        monkeypatch.setattr(module, "SHARD_SECONDS", 0.0)
        store.append([{"kind": "sitting", "wall_time_sec": 2.0}])
        assert read_records(path)[1:] == [{"kind": "sitting", "wall_time_sec": n} for n in (1.0, 2.0)]


@pytest.mark.parametrize("kind", ["prediction", "edit", "generation", "preparation"])
def test_what_a_system_made_does_not_wait(tmp_path: Path, kind: str) -> None:
    with RecordStore(tmp_path / "records", HEADER) as store:
        store.append([{"kind": "score", "item": "a", "value": 1.0}])
        store.append([{"kind": kind, "item": "a", "middle": [1]}, {"kind": "score", "item": "b", "value": 1.0}])
        assert len(read_records(tmp_path / "records")) == 4


def test_small_shards_are_merged_and_a_kill_in_between_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "records"
    with RecordStore(path, HEADER, ITEMS) as store:
        for block in BLOCKS:
            store.append(block)
            store.flush()
        assert len(shards(path)) == 4
        monkeypatch.setattr(RecordStore, "_remove", lambda *_: None)  # it is killed before the old ones are removed
        store.compact()
        assert list(store.rows) == ROWS
    assert len(shards(path)) == 5
    before = read_records(path)
    assert list(before) == ROWS
    monkeypatch.undo()
    with RecordStore(path, HEADER) as store:
        assert [name[:12] for name in shards(path)] == ["00000-00003-"]
        for block in BLOCKS[:2]:
            store.append(block)
            store.flush()
        store.compact()
        assert list(store.rows) == [*ROWS, *BLOCKS[0], *BLOCKS[1]]
    assert [name[:12] for name in shards(path)] == ["00000-00003-", "00004-00005-"]
    assert list(read_records(path)) == [*ROWS, *BLOCKS[0], *BLOCKS[1]]
    assert list(before) == ROWS  # what was read before is still there


def test_many_shards_of_sittings_before_are_merged_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_blocks(tmp_path / "records")
    monkeypatch.setattr(module, "MANY_SHARDS", 4)
    with RecordStore(path, HEADER) as store:
        store.append(BLOCKS[0])
        store.compact()
    assert [name[:12] for name in shards(path)] == ["00000-00004-"]
    assert list(read_records(path)) == [*ROWS, *BLOCKS[0]]


KILLED = """
import sys
from pathlib import Path
from music_evals.benchmark import records
records.SHARD_ROWS = 25
n = 1
with records.RecordStore(Path(sys.argv[1]), {"a": 1}) as store:
    for unit in range(10_000):
        about = {"item": str(unit), "system": "s", "content": ["r", "e"]}
        store.append({"kind": "score", **about, "metric": m, "variant": "x", "value": 0.5, "n": 1} for m in "abc")
        print(25 * ((3 * unit + 3) // 25), flush=True)
"""


@pytest.mark.slow
def test_a_killed_writer_loses_nothing_that_was_written(tmp_path: Path) -> None:
    folder = tmp_path / "records"
    for _ in range(2):  # the second one goes on where the first one was
        with subprocess.Popen([sys.executable, "-c", KILLED, str(folder)], stdout=subprocess.PIPE, text=True) as writer:
            assert writer.stdout is not None
            written = [int(next(writer.stdout)) for _ in range(70)][-1]
            writer.send_signal(signal.SIGKILL)
            written = max([written, *map(int, writer.stdout.read().split())])
        assert writer.returncode == -signal.SIGKILL
        read = read_records(folder)
        assert len(read) >= written > 100
        assert read[0] == {"kind": "run", "a": 1}
    first, second = (n for n, row in enumerate(read) if row.get("item") == "0" and row["metric"] == "a")
    for start, end in ((first, second), (second, len(read))):
        own = [(row["item"], row["metric"]) for row in read[start:end]]
        assert own == [(str(n // 3), "abc"[n % 3]) for n in range(len(own))]  # none is lost or there twice


# --- JSON lines of older versions


def write_old(path: Path) -> Path:
    return write_json_lines(path, [FIRST, *ITEMS], *BLOCKS)


def test_an_old_run_is_read_and_becomes_shards_when_it_is_resumed(tmp_path: Path) -> None:
    path = write_old(tmp_path / "records.jsonl")
    assert records_at(tmp_path / "records") == path
    assert list(read_records(path)) == ROWS
    with pytest.raises(OtherRunError, match="seeds was"):
        RecordStore(tmp_path / "records", {**HEADER, "seeds": [5]})
    assert list(read_records(path)) == ROWS
    with RecordStore(path, HEADER, ITEMS) as store:
        assert store.resumed
        store.append(BLOCKS[0])
    assert not path.exists()
    assert records_at(path) == tmp_path / "records"
    assert list(read_records(tmp_path / "records")) == [*ROWS, *BLOCKS[0]]


def test_the_entrance_of_an_old_run_is_its_modality(tmp_path: Path) -> None:
    pair = {"kind": "pair", "item": "a", "system": "s", "group": "g", "treatment": ""}
    pair |= {side: {"name": side, "content": side} for side in ("reference", "estimate")}
    path = write_json_lines(tmp_path / "records.jsonl", [FIRST, {**pair, "entrance": "audio"}])
    assert read_records(path)[1] == {**pair, "modality": "audio"}


def test_an_old_run_that_was_cut_off_ends_with_its_last_whole_block(tmp_path: Path) -> None:
    whole = write_old(tmp_path / "whole.jsonl").read_bytes()
    torn = tmp_path / "torn.jsonl"
    starts = [3, *(3 + sum(map(len, BLOCKS[: n + 1])) for n in range(3))]
    for length in range(0, len(whole), 7):
        torn.write_bytes(whole[:length])
        if b'"block"' not in whole[:length].rpartition(b"\n")[0]:
            with pytest.raises(CorruptRecordsError, match="no finished block"):
                read_records(torn)
            continue
        read = list(read_records(torn))
        assert len(read) in starts
        assert read == ROWS[: len(read)], f"cut at byte {length}"


@pytest.mark.parametrize("line", range(1, 10))
def test_a_damaged_line_is_named(tmp_path: Path, line: int) -> None:
    path = write_old(tmp_path / "records.jsonl")
    lines = path.read_bytes().splitlines(keepends=True)
    assert len(lines) == 11
    lines[line - 1] = b"{" + lines[line - 1][2:]
    path.write_bytes(b"".join(lines))
    # the closing row of a block (lines 4, 7, 9) is missed by the block after it
    with pytest.raises(CorruptRecordsError, match=f"line {line} is damaged.*`overwrite=True`"):
        read_records(path)


def test_a_changed_number_and_a_lost_line_are_noticed(tmp_path: Path) -> None:
    path = write_old(tmp_path / "records.jsonl")
    whole = path.read_bytes()
    path.write_bytes(whole.replace(b'"value":0.5', b'"value":0.9'))
    with pytest.raises(CorruptRecordsError, match=r"lines 5 to 7 are damaged.*checksum"):
        RecordStore(path, HEADER, ITEMS)
    lines = whole.splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:5] + lines[6:]))
    with pytest.raises(CorruptRecordsError, match=r"expected 2 rows .* got 1"):
        read_records(path)


def test_a_file_that_is_no_record_file_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "diary.jsonl"
    path.write_text("dear diary\n")
    with pytest.raises(CorruptRecordsError, match="is no record file"):
        RecordStore(path, HEADER, ITEMS)
    assert path.read_text() == "dear diary\n"


def test_records_in_two_forms_are_no_records(tmp_path: Path) -> None:
    path = write_blocks(tmp_path / "records")
    write_old(tmp_path / "records.jsonl")
    with pytest.raises(CorruptRecordsError, match="are both there"):
        RecordStore(path, HEADER)
    with RecordStore(path, HEADER, overwrite=True):
        pass
    assert records_at(path) == path
