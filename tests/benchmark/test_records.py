from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from music_evals.benchmark.records import RecordFile, dump_json, read_records
from music_evals.errors import CorruptRecordsError, OutputError
from music_evals.files import write_atomically

HEADER = {"dataset": {"id": "tiny", "fingerprint": "abc"}, "seeds": [0, 1]}
ITEMS = [{"kind": "item", "item": "a"}, {"kind": "item", "item": "b"}]
BLOCKS = [
    [{"kind": "score", "item": "a", "value": 0.5}, {"kind": "score", "item": "b", "value": None}],
    [{"kind": "score", "item": "a", "error": "no such thing"}],
    [{"kind": "score", "item": "ü\u2028\r", "value": 0.1}],
]


def write_blocks(path: Path, n: int = len(BLOCKS)) -> bytes:
    with RecordFile(path, HEADER, ITEMS) as records:
        for block in BLOCKS[:n]:
            records.append(block)
    return path.read_bytes()


def test_what_is_written_is_read(tmp_path: Path) -> None:
    write_blocks(tmp_path / "deep" / "folder" / "records.jsonl")
    rows = read_records(tmp_path / "deep" / "folder" / "records.jsonl")
    assert list(rows) == [{"kind": "run", **HEADER}, *ITEMS, *(row for block in BLOCKS for row in block)]


def test_cut_off_anywhere_and_resumed_it_ends_the_same(tmp_path: Path) -> None:
    whole = write_blocks(tmp_path / "whole.jsonl")
    torn = tmp_path / "torn.jsonl"
    ends = [end for end in range(len(whole)) if whole[end : end + 1] == b"\n"]
    for length in sorted({*range(0, len(whole), 7), *ends, *(end + 1 for end in ends[:-1])}):
        torn.write_bytes(whole[:length])
        with RecordFile(torn, HEADER, ITEMS) as records:
            found = [row for row in records.rows if row["kind"] == "score"]
            # only whole blocks are counted as done
            done = next(n for n in range(4) if sum(map(len, BLOCKS[:n])) == len(found))
            for block in BLOCKS[done:]:
                records.append(block)
        assert torn.read_bytes() == whole, f"cut at byte {length}"


@pytest.mark.parametrize("line", range(1, 10))
def test_a_damaged_line_is_named(tmp_path: Path, line: int) -> None:
    path = tmp_path / "records.jsonl"
    lines = write_blocks(path).splitlines(keepends=True)
    assert len(lines) == 11
    lines[line - 1] = b"{" + lines[line - 1][2:]
    path.write_bytes(b"".join(lines))
    # the closing row of a block (lines 4, 7, 9) is missed by the block after it
    with pytest.raises(CorruptRecordsError, match=f"line {line} is damaged.*`overwrite=True`"):
        read_records(path)


def test_a_changed_number_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    path.write_bytes(write_blocks(path).replace(b'"value":0.5', b'"value":0.9'))
    with pytest.raises(CorruptRecordsError, match=r"lines 5 to 7 are damaged.*checksum"):
        RecordFile(path, HEADER, ITEMS)


def test_a_lost_line_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    lines = write_blocks(path).splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:5] + lines[6:]))
    with pytest.raises(CorruptRecordsError, match=r"expected 2 rows .* got 1"):
        read_records(path)


def test_a_header_of_another_run_is_refused_and_the_difference_named(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    before = write_blocks(path)
    other = {**HEADER, "dataset": {"id": "tiny", "fingerprint": "xyz"}, "variant": "paper"}
    with pytest.raises(CorruptRecordsError) as caught:
        RecordFile(path, other, ITEMS)
    message = str(caught.value)
    assert "dataset.fingerprint was 'abc' and is now 'xyz'" in message
    assert "variant was 'absent' and is now 'paper'" in message
    assert "`overwrite=True`" in message
    assert "dataset.id" not in message
    assert path.read_bytes() == before


def test_overwrite_starts_afresh(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    path.write_text("anything")
    with RecordFile(path, HEADER, ITEMS, overwrite=True) as records:
        assert not records.resumed
    assert list(read_records(path)) == [{"kind": "run", **HEADER}, *ITEMS]


def test_a_file_that_is_no_record_file_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "diary.txt"
    path.write_text("dear diary\n")
    with pytest.raises(CorruptRecordsError, match="is no record file"):
        RecordFile(path, HEADER, ITEMS)
    assert path.read_text() == "dear diary\n"


def test_no_records_to_read(tmp_path: Path) -> None:
    (tmp_path / "empty.jsonl").write_bytes(b"")
    with pytest.raises(CorruptRecordsError, match="no finished block"):
        read_records(tmp_path / "empty.jsonl")
    with pytest.raises(OutputError, match="cannot read"):
        read_records(tmp_path / "missing.jsonl")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full, a device of Linux")
def test_a_full_disk(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    path.symlink_to("/dev/full")
    with pytest.raises(OutputError, match="No space left on device"):
        RecordFile(path, HEADER, ITEMS)


def test_a_file_where_the_folder_should_be(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("a file")
    with pytest.raises(OutputError, match="`out`"):
        RecordFile(tmp_path / "out" / "records.jsonl", HEADER, ITEMS)


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
    path = tmp_path / "records.jsonl"
    with RecordFile(path, HEADER, ITEMS) as records:
        records.append(BLOCKS[0])
        before = path.read_bytes()
        with pytest.raises(OutputError, match=r"another run is writing to .*records\.jsonl; wait for it"):
            RecordFile(path, {"other": 1}, overwrite=overwrite)
        assert path.read_bytes() == before
        records.append(BLOCKS[1])
    assert [row["kind"] for row in read_records(path)] == ["run", "item", "item", "score", "score", "score"]
    with RecordFile(path, {"other": 1}, overwrite=True) as records:  # it is free again
        assert not records.resumed
    assert list(read_records(path)) == [{"kind": "run", "other": 1}]
