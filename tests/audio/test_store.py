"""The feature store: what is put in comes out, and nothing else does."""

from __future__ import annotations

import dataclasses
import io
import logging
import os
from pathlib import Path

import numpy as np
import pytest

from music_evals.annotations import (
    FEATURES,
    BandFrames,
    Beats,
    Chords,
    Chroma,
    F0Track,
    Key,
    Melody,
    Segments,
    StructureFrames,
    TimbreFrames,
)
from music_evals.audio.store import FeatureKey, FeatureStore, Undefined
from music_evals.errors import UnknownNameError
from music_evals.files import Store

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
    "contour": Chroma(np.arange(24).reshape(12, 2) / 24, 0.1),
    "timbre": TimbreFrames(np.ones((36, 2), np.float32), 512 / 22050),
    "bands": BandFrames(np.ones((192, 2), np.float32), 2048 / 22050),
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


def put_arrays(store: FeatureStore, **arrays: object) -> None:
    """Store arrays under the key of chords, as another version might have."""
    content = io.BytesIO()
    np.savez(content, **arrays)
    Store(store.folder).put(dataclasses.asdict(key("chords")), content.getvalue())


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


def test_other_versions_lie_side_by_side(store):
    store.put(key("key", "1" * 32), Key(0, "major"))
    store.put(key("key", "2" * 32), Key(7, "major"))
    assert store.get(key("key", "1" * 32)) == Key(0, "major")
    assert store.get(key("key", "3" * 32)) is None


def test_a_feature_that_does_not_exist(store):
    with pytest.raises(UnknownNameError, match="'beat'"):
        key("beat")


class TestDamage:
    @pytest.fixture
    def path(self, store) -> Path:
        store.put(key("chords"), VALUES["chords"])
        return store.path(key("chords"))

    @pytest.mark.parametrize("content", [b"", b"PK", b"nonsense" * 100, b"\x93NUMPY\x01\x00"])
    def test_a_damaged_file_counts_as_none_and_is_replaced(self, store, path, content, caplog):
        path.write_bytes(content)
        with caplog.at_level(logging.WARNING):
            assert store.get(key("chords")) is None
        assert f"{path}: damaged" in caplog.text
        store.put(key("chords"), VALUES["chords"])
        same(store.get(key("chords")), VALUES["chords"])

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
    def test_values_that_break_their_rules_count_as_none(self, store, arrays):
        put_arrays(store, **arrays)
        assert store.get(key("chords")) is None

    def test_a_pickle_is_never_opened(self, store, path):
        class Trap:
            def __reduce__(self):
                return os.mkdir, (str(path.parent / "sprung"),)

        put_arrays(store, intervals_sec=SPANS, labels=np.array([Trap()], dtype=object))
        assert store.get(key("chords")) is None
        assert not (path.parent / "sprung").exists()
