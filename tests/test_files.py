"""Files are whole or not there, and a store gives back what was put in, or nothing."""

from __future__ import annotations

import logging
import subprocess
import sys
import threading
from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis import given

from music_evals.errors import OutputError
from music_evals.files import Store, write_atomically, written_whole

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
        entry = store.path({"number": 0})
        (entry.parent / f".{entry.name}.0123.part").write_bytes(b"of a writer that was killed")
        store.clear()
        assert store.size() == 0
        assert files_in(store.folder) == [mine]


# Writes and reads one key over and over; fails on what is neither of two values whole.
HAMMER = """
import sys
from music_evals.files import Store

store, number = Store(sys.argv[1]), int(sys.argv[2])
for turn in range(60):
    store.put({"a": 1}, bytes([(number + turn) % 2]) * 5000)
    found = store.get({"a": 1})
    assert found is not None and len(found) == 5000 and len(set(found)) == 1, turn
"""


class TestManyWriters:
    def test_processes(self, tmp_path):
        workers = [
            subprocess.Popen([sys.executable, "-c", HAMMER, tmp_path, str(number)], stderr=subprocess.PIPE, text=True)
            for number in range(3)
        ]
        assert [worker.communicate(timeout=120)[1] for worker in workers] == ["", "", ""]
        assert [worker.returncode for worker in workers] == [0, 0, 0]
        assert len(files_in(tmp_path)) == 1

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
