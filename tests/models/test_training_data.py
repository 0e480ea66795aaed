"""Contexts of a recipe: whole voices out of windows, windows out of whole voices, and data sets together."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from music_evals.errors import InvalidInputError, NoDataError
from music_evals.models._training_data import cut_voices, training_contexts, validation_contexts, whole_voices
from music_evals.models.recipe import DataConfig


def voice(n_measures: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 130, 24 * n_measures).astype(np.uint8)


def windows_of(*voices: tuple[str, str, np.ndarray, list[int]]) -> tuple[dict[str, np.ndarray], np.ndarray]:
    rows = [(song, part, start, whole) for song, part, whole, starts in voices for start in starts]
    columns = {"song": [r[0] for r in rows], "voice": [r[1] for r in rows], "start": [r[2] for r in rows]}
    tokens = np.stack([whole[24 * start : 24 * start + 384] for *_, start, whole in rows])
    return {name: np.array(values) for name, values in columns.items()}, tokens


def test_windows_become_the_voices_that_they_were_cut_out_of():
    soprano, bass, other = voice(20, 1), voice(20, 2), voice(17, 3)
    columns, tokens = windows_of(
        ("a", "soprano", soprano, [4, 2, 0, 1, 3]), ("a", "bass", bass, [0, 4]), ("b", "bass", other, [1])
    )
    found = whole_voices(columns, tokens)
    assert [len(whole) for whole in found] == [480, 480, 384]
    for whole, expected in zip(found, (soprano, bass, other[24:]), strict=True):
        np.testing.assert_array_equal(whole, expected)


def test_where_windows_do_not_touch_a_new_stretch_begins():
    long = voice(60, 1)
    found = whole_voices(*windows_of(("a", "bass", long, [0, 16, 33])))
    assert [len(whole) for whole in found] == [768, 384]
    np.testing.assert_array_equal(found[0], long[:768])
    np.testing.assert_array_equal(found[1], long[24 * 33 : 24 * 49])


def test_windows_that_contradict_each_other_are_refused():
    columns, tokens = windows_of(("a", "bass", voice(18, 1), [0, 1, 2]))
    tokens[1, 100] = (tokens[1, 100] + 1) % 130
    with pytest.raises(InvalidInputError, match="windows of a, bass, differ where they overlap, at measure 1"):
        whole_voices(columns, tokens)


def test_missing_columns_are_named():
    with pytest.raises(InvalidInputError, match="the dataset lacks voice, start: leave stride_steps out"):
        whole_voices({"song": np.array(["a"])}, np.zeros((1, 384), dtype=np.uint8))


def test_windows_start_at_every_stride():
    whole, short = voice(17, 1), voice(3, 2)
    found = cut_voices([whole, short], 384, 6)
    np.testing.assert_array_equal(found, [whole[start : start + 384] for start in (0, 6, 12, 18, 24)])
    assert cut_voices([short], 384, 6).shape == (0, 384)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two datasets, `one` with two voices of which windows overlap, `two` with one window."""
    for name, voices in {
        "one": [("a", "soprano", voice(18, 1), [0, 1, 2]), ("b", "alto", voice(16, 2), [0])],
        "two": [("c", "alto", voice(16, 3), [0])],
    }.items():
        columns, tokens = windows_of(*voices)
        table = pa.table({**columns, "tokens": pa.array(list(tokens), pa.list_(pa.uint8()))})
        for split in ("train", "validation"):
            path = tmp_path / name / "data" / f"{split}-00000-of-00001.parquet"
            path.parent.mkdir(parents=True, exist_ok=True)
            pq.write_table(table, path)
    return tmp_path


def test_a_recipe_cuts_its_training_windows_anew(folder):
    plain = training_contexts(DataConfig("one", "default"), folder)
    cut = training_contexts(DataConfig("one", "default", stride_steps=6), folder)
    assert plain.shape == (4, 384)
    assert cut.shape == (9 + 1, 384)
    np.testing.assert_array_equal(cut[[0, 4, 8, 9]], plain)
    whole = voice(18, 1)
    np.testing.assert_array_equal(cut[1], whole[6:390])
    np.testing.assert_array_equal(validation_contexts(DataConfig("one", "default", stride_steps=6), folder), plain)


def test_more_data_is_trained_on_and_not_validated_on(folder):
    both = DataConfig("one", "default", stride_steps=24, also=[{"dataset": "two", "config": "default"}])
    np.testing.assert_array_equal(training_contexts(both, folder)[-1], voice(16, 3))
    assert training_contexts(both, folder).shape == (5, 384)
    assert validation_contexts(both, folder).shape == (4, 384)
    missing = DataConfig("one", "default", also=[{"dataset": "one", "config": "default", "train": "test"}])
    with pytest.raises(NoDataError, match="cannot load split 'test' of one"):
        training_contexts(missing, folder)
