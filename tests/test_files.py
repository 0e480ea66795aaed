"""Files are whole or not there, and a store gives back what was put in, or nothing."""

from __future__ import annotations

import errno
import logging
import os
import stat
import subprocess
import sys
import threading
import uuid
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given

from music_evals.errors import OutputError, UnreadableFileError
from music_evals.files import (
    STALE_SEC,
    Store,
    check_no_pointer_in,
    check_no_pointers_below,
    decode_text,
    item_name,
    json_lines,
    parse_json,
    private_folder,
    scratch_folder,
    write_atomically,
    written_whole,
)

KEY = {"text": "甲", "version": 1}


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def files_in(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def write_half(path: Path, error: Exception) -> None:
    with written_whole(path) as part:
        part.write_bytes(b"half")
        raise error


class TestWriting:
    def test_a_block_that_fails_leaves_what_was_there(self, tmp_path):
        path = write_atomically(tmp_path / "a", b"old")
        with pytest.raises(KeyError):
            write_half(path, KeyError())
        assert path.read_bytes() == b"old"
        assert files_in(tmp_path) == [path]

    def test_a_folder_is_made_where_that_is_asked_for(self, tmp_path):
        with pytest.raises(OutputError, match="cannot be written"):
            write_atomically(tmp_path / "new" / "a", b"x")
        assert write_atomically(tmp_path / "new" / "a", b"x", parents=True).read_bytes() == b"x"

    def test_a_file_in_the_way_of_the_folder(self, tmp_path):
        (tmp_path / "file").write_text("in the way")
        with pytest.raises(OutputError, match="cannot be made"):
            write_atomically(tmp_path / "file" / "a", b"x", parents=True)

    def test_a_full_disk_leaves_nothing_behind(self, tmp_path):
        path = write_atomically(tmp_path / "a", b"old")
        with pytest.raises(OutputError, match="No space left"):
            write_half(path, OSError(28, "No space left on device"))
        assert path.read_bytes() == b"old"
        assert files_in(tmp_path) == [path]


class TestStore:
    @pytest.mark.parametrize("content", [b"", b"a", b"\n", b"two\nlines\n", bytes(range(256))])
    def test_what_is_put_in_comes_out(self, store, content):
        assert store.get(KEY) is None
        store.put(KEY, content)
        assert store.get(KEY) == content
        assert Store(store.folder).get(KEY) == content

    def test_the_order_of_a_key_does_not_matter_and_its_values_do(self, store):
        store.put(KEY, b"x")
        assert store.get(dict(reversed(KEY.items()))) == b"x"
        assert store.get({**KEY, "version": 2}) is None
        assert store.get({**KEY, "version": "1"}) is None

    def test_half_of_a_surrogate_pair_is_a_key(self, store):
        store.put({"text": "\ud800"}, b"x")
        assert store.get({"text": "\ud800"}) == b"x"

    def test_a_key_does_not_lead_out_of_the_folder(self, store):
        store.put({"text": "../../outside"}, b"x")
        assert [path.parent.parent for path in files_in(store.folder)] == [store.folder]

    def test_a_folder_is_not_made_before_it_is_needed(self, store):
        assert store.get(KEY) is None
        assert store.size() == 0
        store.clear()
        assert not store.folder.exists()

    @given(data=st.data())
    def test_no_damage_gives_another_value(self, tmp_path_factory, data):
        store = Store(tmp_path_factory.mktemp("store"))
        store.put(KEY, b"what was worked out")
        path = store.path(KEY)
        content = bytearray(path.read_bytes())
        at = data.draw(st.integers(0, len(content) - 1))
        if data.draw(st.booleans()):
            content[at] ^= data.draw(st.integers(1, 255))
        else:
            del content[at:]
        path.write_bytes(content)
        assert store.get(KEY) is None

    def test_a_damaged_entry_is_logged_and_replaced(self, store, caplog):
        store.put(KEY, b"x")
        path = store.path(KEY)
        path.write_bytes(b"nonsense")
        with caplog.at_level(logging.WARNING):
            assert store.get(KEY) is None
        assert f"{path}: damaged" in caplog.text
        store.put(KEY, b"x")
        assert store.get(KEY) == b"x"

    def test_an_entry_in_the_wrong_place_counts_as_none(self, store):
        other = {**KEY, "version": 2}
        store.put(KEY, b"x")
        store.path(other).parent.mkdir(exist_ok=True)
        store.path(other).write_bytes(store.path(KEY).read_bytes())
        assert store.get(other) is None

    def test_a_folder_in_its_place_counts_as_none(self, store):
        store.path(KEY).mkdir(parents=True)
        assert store.get(KEY) is None

    def test_size_and_clear(self, store):
        for number in range(5):
            store.put({"number": number}, b"x" * number)
        assert store.size() == sum(path.stat().st_size for path in files_in(store.folder)) > 0
        mine = store.folder / "mine.txt"
        mine.write_text("keep me")
        old, new = (part_of(store, number, age_sec) for number, age_sec in ((0, 2 * STALE_SEC), (1, 0.0)))
        store.clear()
        assert store.size() == 0
        assert not old.exists()  # of a writer that was killed
        assert {*files_in(store.folder)} == {mine, new}  # of one that is at work, perhaps on another machine

    def test_a_writer_removes_what_killed_ones_left_beside_its_entry(self, store, monkeypatch):
        store.put(KEY, b"x")
        old, new = (part_of(store, KEY, age_sec) for age_sec in (2 * STALE_SEC, 0.9 * STALE_SEC))
        monkeypatch.setattr("time.time", lambda: 0.0)  # a clock that is wrong does no harm
        Store(store.folder).put(KEY, b"y")
        assert not old.exists()
        assert new.exists()
        assert store.get(KEY) == b"y"

    def test_an_entry_that_goes_away_while_it_is_counted(self, store, monkeypatch):
        store.put(KEY, b"x")
        stat = Path.stat

        def gone(path: Path, **options: bool) -> object:
            if path.suffix == ".entry":
                path.unlink(missing_ok=True)
            return stat(path, **options)

        monkeypatch.setattr(Path, "stat", gone)
        assert store.size() == 0

    def test_a_move_that_is_refused_while_the_entry_is_there(self, store, monkeypatch):
        store.put(KEY, b"x")

        def refuse(*_: object) -> None:
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr(Path, "replace", refuse)  # as shares of Windows do while somebody reads it
        store.put(KEY, b"x")
        assert store.get(KEY) == b"x"
        assert len(files_in(store.folder)) == 1
        store.path(KEY).write_bytes(b"damaged")
        store.put(KEY, b"x")  # which is logged
        assert store.get(KEY) is None


class TestStoresThatCannotKeep:
    """A cache that cannot be written to, or is full, costs time and nothing else; it is said once."""

    @pytest.fixture
    def blocked(self, tmp_path):
        (tmp_path / "file").write_text("in the way")
        return tmp_path / "file" / "store"

    @pytest.mark.parametrize("tried", [False, True])
    def test_a_folder_that_cannot_be_made(self, blocked, caplog, tried):
        store = Store(blocked)
        if tried:
            store.try_out()
            assert len(caplog.records) == 1
        for number in range(3):
            store.put({"number": number}, b"x")
            assert store.get({"number": number}) is None
        assert len(caplog.records) == 1
        assert store.size() == 0

    def test_a_folder_that_can_be_written_to_is_left_as_it_is(self, store, caplog):
        store.try_out()
        assert files_in(store.folder) == []
        assert not caplog.records

    @pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EDQUOT, errno.EIO])
    def test_what_was_kept_before_stays(self, store, caplog, monkeypatch, number):
        store.put(KEY, b"x")

        def refuse(*_: object) -> None:
            raise OSError(number, os.strerror(number))

        monkeypatch.setattr(Path, "write_bytes", refuse)
        for other in range(3):
            store.put({"number": other}, b"y")
        assert store.get(KEY) == b"x"
        assert store.get({"number": 0}) is None
        assert len(caplog.records) == 1
        assert len(files_in(store.folder)) == 1

    def test_no_room_for_temporary_files(self, monkeypatch, tmp_path):
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "none"))
        with pytest.raises(OutputError), scratch_folder():
            pass


@pytest.mark.parametrize("umask", [0, 0o022, 0o077, 0o777])
def test_a_private_folder_is_its_owners_alone(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        for _ in range(2):
            assert stat.S_IMODE(private_folder(tmp_path / "new").stat().st_mode) == 0o700
            (tmp_path / "new").chmod(0o755)
    finally:
        os.umask(before)


def part_of(store: Store, key: Any, age_sec: float) -> Path:
    """Write a part of the entry of a key, as a writer does, and let it be so old."""
    entry = store.path(key if isinstance(key, dict) else {"number": key})
    part = entry.with_name(f".{entry.name}.{uuid.uuid4().hex}.part")
    part.write_bytes(b"half")
    then = part.stat().st_mtime - age_sec
    os.utime(part, (then, then))
    return part


# Writes and reads a few keys over and over, as one of several machines whose processes have equal numbers and names;
# fails on what is neither of two values whole.
HAMMER = """
import os, random, socket, sys, time
from music_evals.files import Store

os.getpid, socket.gethostname = (lambda: 1), (lambda: "node")
random.seed(0)
store, number = Store(sys.argv[1]), int(sys.argv[2])
until = time.monotonic() + float(sys.argv[3])
turn = 0
while turn < 60 or time.monotonic() < until:
    turn += 1
    key = {"a": turn % 5}
    store.put(key, bytes([(number + turn) % 2]) * 50_000)
    found = store.get(key)
    assert found is not None and len(found) == 50_000 and len(set(found)) == 1, turn
    assert store.size() >= 0
"""


class TestManyWriters:
    @pytest.mark.slow
    def test_processes(self, tmp_path):
        workers = [
            subprocess.Popen(
                [sys.executable, "-c", HAMMER, tmp_path, str(number), "1"], stderr=subprocess.PIPE, text=True
            )
            for number in range(4)
        ]
        assert [worker.communicate(timeout=120)[1] for worker in workers] == 4 * [""]
        assert [worker.returncode for worker in workers] == 4 * [0]
        assert len(files_in(tmp_path)) == 5

    def test_threads(self, tmp_path):
        store, found = Store(tmp_path), []

        def hammer(number: int) -> None:
            for turn in range(60):
                store.put(KEY, bytes([(number + turn) % 2]) * 5000)
                found.append(store.get(KEY))

        workers = [threading.Thread(target=hammer, args=(number,)) for number in range(4)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join(120)
        assert len(found) == 240
        assert all(value is not None and len(set(value)) == 1 for value in found)
        assert len(files_in(tmp_path)) == 1


POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n"


def test_a_pointer_of_git_lfs_is_named(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    for name in ("a.wav", "data/b.parquet"):
        (tmp_path / name).write_bytes(POINTER)
        with pytest.raises(UnreadableFileError, match=rf"{name}: a Git LFS pointer, .*run `git lfs pull`"):
            check_no_pointer_in(tmp_path / name)
    with pytest.raises(UnreadableFileError, match=r"b\.parquet: a Git LFS pointer"):
        check_no_pointers_below(tmp_path)
    for read in (decode_text, parse_json, lambda content, place: list(json_lines(content, place))):
        with pytest.raises(UnreadableFileError, match=r"songs\.jsonl: a Git LFS pointer"):
            read(POINTER, "songs.jsonl")
    (tmp_path / "c.txt").write_bytes(b"version 1")
    check_no_pointer_in(tmp_path / "c.txt")
    check_no_pointers_below(tmp_path / "c.txt")
    check_no_pointers_below(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("encoding", "line", "advice"),
    [("gbk", 2, "if it is GBK by `iconv -f GBK -t UTF-8"), ("shift-jis", 2, "convert the file"),
     ("latin-1", 2, "convert the file"), ("utf-16", 1, "since it is UTF-16 by `iconv -f UTF-16 -t UTF-8")],
)  # fmt: skip
def test_a_text_in_another_encoding_gets_advice(encoding: str, line: int, advice: str) -> None:
    word = "\u00e9t\u00e9" if encoding == "latin-1" else "\u6b4c\u624b"
    content = f'{{"id": "a"}}\n{{"id": "{word}"}}\n'.encode(encoding)
    with pytest.raises(
        UnreadableFileError, match=rf"songs\.jsonl, line {line} cannot be read: not UTF-8; .*{advice}"
    ) as caught:
        list(json_lines(content, "songs.jsonl"))
    assert "\n" not in str(caught.value)
    assert "codec" not in str(caught.value)


def test_a_text_in_utf_8_is_read_with_its_line_ends() -> None:
    assert decode_text("\ufeff\u6b4c\r\n".encode(), "a") == "\u6b4c\r\n"
    rows = list(json_lines('\ufeff{"a": "x\u2028y"}\r\n\n{"a": 2}'.encode(), "a"))
    assert rows == [(1, {"a": "x\u2028y"}), (3, {"a": 2})]


@pytest.mark.parametrize(
    "text", ['{"id": 1, "id": 2}', '{"a": [{"id": 1, "b": 3, "id": 1}]}', '{"id": {"x": 1}, "id": {}}']
)
def test_a_key_that_comes_twice_is_named(text: str) -> None:
    with pytest.raises(UnreadableFileError, match="'id'"):
        list(json_lines(f'{{"id": 0}}\n{text}', "e.jsonl"))
    with pytest.raises(UnreadableFileError, match="'id'"):
        parse_json(text, "e.json")
    assert parse_json('{"id": {"id": 1}, "b": [{"id": 2}, {"id": 3}]}', "e.json")["b"] == [{"id": 2}, {"id": 3}]


def test_json_that_is_none_says_what_was_expected() -> None:
    for text, reason in (("{", "Expecting property name"), ("[" * 100_000, "nested too deeply")):
        with pytest.raises(UnreadableFileError, match=rf"e\.json is not JSON \({reason}.*; expected an object"):
            parse_json(text, "e.json", "an object")


def test_names_that_look_the_same_are_the_same() -> None:
    assert (
        item_name("Dvor\u030ca\u0301k/no\u0308el")
        == item_name("Dvo\u0159\u00e1k/n\u00f6el")
        == "Dvo\u0159\u00e1k/n\u00f6el"
    )
    assert item_name(Path("\u6b4c")) == "\u6b4c"
