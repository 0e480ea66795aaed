"""The feature store: what is put in comes out, and nothing else does."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
from pathlib import Path

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from music_evals.annotations import (
    FEATURES,
    Beats,
    Chords,
    Chroma,
    F0Track,
    Key,
    Melody,
    Segments,
    StructureFrames,
)
from music_evals.audio.store import FeatureKey, FeatureStore, Undefined
from music_evals.errors import InvalidInputError, OutputError, UnknownNameError

TIMES = np.array([0.1, 0.6, 1.1])
SPANS = np.array([[0.0, 1.5], [1.5, 4.0]])
VALUES = {
    "beats": Beats(TIMES, 120.5),
    "key": Key(9, "minor"),
    "chords": Chords(SPANS, ("C#:min", "N")),
    "chroma": Chroma(np.arange(36, dtype=np.float32).reshape(12, 3), 512 / 22050),
    "f0": F0Track(TIMES, np.array([440.0, -220.0, 0.0])),
    "melody": Melody(SPANS, np.array([60.0, 61.5])),
    "segments": Segments(SPANS, ("A", "B")),
    "structure": StructureFrames(np.ones((5, 4)), 0.25),
}
EMPTY = {
    "beats": Beats(np.zeros(0)),
    "chords": Chords(np.zeros((0, 2)), ()),
    "chroma": Chroma(np.zeros((12, 0)), 0.1),
    "f0": F0Track(np.zeros(0), np.zeros(0)),
    "melody": Melody(np.zeros((0, 2)), np.zeros(0)),
    "segments": Segments(np.zeros((0, 2)), ()),
    "structure": StructureFrames(np.zeros((3, 0)), 0.1),
}
HASH = "ab" * 32


def key(feature: str, digest: str = "0" * 32) -> FeatureKey:
    return FeatureKey(HASH, feature, digest)


def same(left: object, right: object) -> None:
    assert type(left) is type(right)
    for name, array in left.to_arrays().items():
        other = right.to_arrays()[name]
        assert array.dtype == other.dtype or array.size == 0
        np.testing.assert_array_equal(array, other)


@pytest.fixture
def store(tmp_path: Path) -> FeatureStore:
    return FeatureStore(tmp_path / "features")


def test_the_values_above_are_of_every_feature():
    assert set(VALUES) == set(FEATURES)


@pytest.mark.parametrize("feature", FEATURES)
def test_what_is_put_in_comes_out(store, feature):
    assert store.get(key(feature)) is None
    store.put(key(feature), VALUES[feature])
    same(store.get(key(feature)), VALUES[feature])
    same(FeatureStore(store.folder).get(key(feature)), VALUES[feature])


@pytest.mark.parametrize("feature", EMPTY)
def test_empty_annotations_come_out_empty(store, feature):
    store.put(key(feature), EMPTY[feature])
    same(store.get(key(feature)), EMPTY[feature])


def test_a_tempo_that_is_not_known_stays_unknown(store):
    store.put(key("beats"), Beats(TIMES))
    assert np.isnan(store.get(key("beats")).bpm)


@pytest.mark.parametrize("reason", ["no frame is voiced", "no f0: zu leise, 静か"])
def test_that_there_is_none_is_kept_with_its_reason(store, reason):
    store.put(key("f0"), Undefined(reason))
    assert store.get(key("f0")) == Undefined(reason)


def test_one_file_holds_one_feature(store):
    store.put(key("key"), VALUES["key"])
    files = [path.relative_to(store.folder).as_posix() for path in store.folder.rglob("*") if path.is_file()]
    assert files == [f"ab/{HASH}/key-{'0' * 32}.npz"]


def test_other_versions_lie_side_by_side(store):
    store.put(key("key", "1" * 32), Key(0, "major"))
    store.put(key("key", "2" * 32), Key(7, "major"))
    assert store.get(key("key", "1" * 32)) == Key(0, "major")
    assert store.get(key("key", "3" * 32)) is None


def test_a_folder_is_not_made_before_it_is_needed(store):
    store.get(key("key"))
    assert store.size() == 0
    store.clear()
    assert not store.folder.exists()


def test_a_feature_that_does_not_exist(store):
    with pytest.raises(UnknownNameError, match="unknown feature 'beat'; did you mean beats"):
        key("beat")


@pytest.mark.parametrize(
    ("content_hash", "digest"),
    [("..", "0" * 32), ("AB" * 32, "0" * 32), (HASH + "\n", "0" * 32), (HASH, "../" * 10 + "00"), (HASH, "0" * 31)],
)
def test_a_key_does_not_lead_out_of_the_folder(content_hash, digest):
    with pytest.raises(InvalidInputError, match="hexadecimal digits"):
        FeatureKey(content_hash, "key", digest)


class TestDamage:
    @pytest.fixture
    def path(self, store) -> Path:
        store.put(key("chords"), VALUES["chords"])
        return store.folder / key("chords").path

    @pytest.mark.parametrize("content", [b"", b"PK", b"nonsense" * 100, b"\x93NUMPY\x01\x00"])
    def test_a_damaged_file_counts_as_none_and_is_replaced(self, store, path, content, caplog):
        path.write_bytes(content)
        with caplog.at_level(logging.WARNING):
            assert store.get(key("chords")) is None
        assert f"{path}: damaged" in caplog.text
        store.put(key("chords"), VALUES["chords"])
        same(store.get(key("chords")), VALUES["chords"])

    @given(data=st.data())
    def test_no_damage_gives_another_value(self, tmp_path_factory, data):
        store = FeatureStore(tmp_path_factory.mktemp("store"))
        store.put(key("chords"), VALUES["chords"])
        path = store.folder / key("chords").path
        content = bytearray(path.read_bytes())
        at = data.draw(st.integers(0, len(content) - 1))
        if data.draw(st.booleans()):
            content[at] ^= data.draw(st.integers(1, 255))
        else:
            del content[at:]
        path.write_bytes(content)
        found = store.get(key("chords"))
        if found is not None:  # a byte of the archive that says nothing of the content, such as a time
            same(found, VALUES["chords"])

    def test_no_flipped_bit_of_the_directory_raises_or_gives_another_value(self, store, path):
        """One bit of every byte: an encrypted file, a later format, another compression, a place outside."""
        content = path.read_bytes()
        for at in range(content.index(b"PK\x01\x02"), len(content)):
            path.write_bytes(content[:at] + bytes([content[at] ^ 1 << at % 8]) + content[at + 1 :])
            found = store.get(key("chords"))
            if found is not None:
                same(found, VALUES["chords"])

    def test_a_cut_file_counts_as_none(self, store, path):
        content = path.read_bytes()
        for size in range(0, len(content), 97):
            path.write_bytes(content[:size])
            assert store.get(key("chords")) is None

    def test_a_file_in_the_wrong_place_counts_as_none(self, store, path, caplog):
        other = store.folder / key("chords", "9" * 32).path
        other.write_bytes(path.read_bytes())
        assert store.get(key("chords", "9" * 32)) is None
        assert "it holds" in caplog.text

    @pytest.mark.parametrize(
        "arrays",
        [
            {"intervals_sec": SPANS},
            {"intervals_sec": SPANS, "labels": np.array(["C:maj"])},
            {"intervals_sec": SPANS[::-1], "labels": np.array(["C:maj", "N"])},
            {"intervals_sec": SPANS * np.nan, "labels": np.array(["C:maj", "N"])},
            {"intervals_sec": SPANS[0], "labels": np.array(["C:maj", "N"])},
        ],
    )
    def test_values_that_break_their_rules_count_as_none(self, store, path, arrays):
        about = np.array([HASH, "chords", "0" * 32, ""])
        np.savez(path, about=about, **arrays)
        assert store.get(key("chords")) is None

    def test_a_pickle_is_never_opened(self, store, path):
        class Trap:
            def __reduce__(self):
                return os.mkdir, (str(path.parent / "sprung"),)

        np.savez(path, about=np.array([HASH, "chords", "0" * 32, ""]), labels=np.array([Trap()], dtype=object))
        assert store.get(key("chords")) is None
        assert not (path.parent / "sprung").exists()

    def test_a_folder_in_its_place_counts_as_none(self, store, path):
        path.unlink()
        path.mkdir()
        assert store.get(key("chords")) is None


class TestFolder:
    def test_size_and_clear(self, store):
        for feature, value in VALUES.items():
            store.put(key(feature), value)
        assert store.size() == sum(path.stat().st_size for path in store.folder.rglob("*.npz")) > 0
        mine = store.folder / "mine.txt"
        mine.write_text("keep me")
        left = store.folder / key("key").path.parent / ".key-0.npz.1.2.3.part"  # of a writer that was killed
        left.write_bytes(b"half")
        store.clear()
        assert store.size() == 0
        assert [path for path in store.folder.rglob("*") if path.is_file()] == [mine]

    def test_a_folder_that_cannot_be_written_to(self, tmp_path):
        (tmp_path / "file").write_text("in the way")
        with pytest.raises(OutputError, match="cannot be written"):
            FeatureStore(tmp_path / "file").put(key("key"), VALUES["key"])

    def test_a_full_disk_leaves_nothing_behind(self, store, monkeypatch):
        store.put(key("key"), VALUES["key"])

        def full(path: Path, content: bytes) -> None:
            with path.open("wb") as file:
                file.write(content[:10])
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(Path, "write_bytes", full)
        with pytest.raises(OutputError, match="No space left"):
            store.put(key("key"), Key(0, "major"))
        assert store.get(key("key")) == VALUES["key"]
        assert len([path for path in store.folder.rglob("*") if path.is_file()]) == 1


# Writes and reads one key over and over; fails on what is neither of two values whole.
HAMMER = """
import sys
import numpy as np
from music_evals.annotations import Chroma
from music_evals.audio.store import FeatureKey, FeatureStore

store, number = FeatureStore(sys.argv[1]), int(sys.argv[2])
key = FeatureKey("ab" * 32, "chroma", "0" * 32)
for turn in range(60):
    store.put(key, Chroma(np.full((12, 200), float((number + turn) % 2)), 0.1))
    found = store.get(key)
    assert found is not None and len(np.unique(found.frames)) == 1, turn
"""


class TestManyWriters:
    def test_processes(self, tmp_path):
        workers = [
            subprocess.Popen([sys.executable, "-c", HAMMER, tmp_path, str(number)], stderr=subprocess.PIPE, text=True)
            for number in range(3)
        ]
        assert [worker.communicate(timeout=120)[1] for worker in workers] == ["", "", ""]
        assert [worker.returncode for worker in workers] == [0, 0, 0]
        assert len([path for path in tmp_path.rglob("*") if path.is_file()]) == 1

    def test_threads(self, tmp_path):
        store, found = FeatureStore(tmp_path), []

        def hammer(number: int) -> None:
            for turn in range(60):
                store.put(key("chroma"), Chroma(np.full((12, 200), float((number + turn) % 2)), 0.1))
                found.append(store.get(key("chroma")))

        workers = [threading.Thread(target=hammer, args=(number,)) for number in range(4)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join(120)
        assert len(found) == 240
        assert all(value is not None and len(np.unique(value.frames)) == 1 for value in found)
        assert len([path for path in tmp_path.rglob("*") if path.is_file()]) == 1
