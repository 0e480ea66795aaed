"""What a recipe learns from: whole voices out of windows, windows out of these, pieces, and data sets together."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from music_evals.annotations import Score
from music_evals.datasets.style_pieces import PieceFacts, features, row_of
from music_evals.errors import InvalidInputError, NoDataError, UnknownNameError
from music_evals.models.bmst import BMSTConfig
from music_evals.models.training.data import cut_voices, recipe_examples, training_contexts, whole_voices
from music_evals.models.training.recipe import DataConfig
from music_evals.symbolic.encodings.piano_rolls import piano_roll
from music_evals.symbolic.notes import make_notes


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
    with pytest.raises(InvalidInputError, match="stride_steps"):
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
    _, validation = recipe_examples("vli", None, DataConfig("one", "default", stride_steps=6), folder)
    np.testing.assert_array_equal(validation.contexts, plain)


def test_more_data_is_trained_on_and_not_validated_on(folder):
    both = DataConfig("one", "default", stride_steps=24, also=[{"dataset": "two", "config": "default"}])
    np.testing.assert_array_equal(training_contexts(both, folder)[-1], voice(16, 3))
    assert training_contexts(both, folder).shape == (5, 384)
    assert len(recipe_examples("vli", None, both, folder)[1]) == 4
    missing = DataConfig("one", "default", also=[{"dataset": "one", "config": "default", "train": "test"}])
    with pytest.raises(NoDataError, match="'test'"):
        training_contexts(missing, folder)


# --- whole pieces


def chord(pitch: int) -> Score:
    return Score(
        make_notes([0, 0, 8], [16, 8, 8], [pitch, pitch + 7, pitch + 9], voice=[0, 1, 1]), 8, voices=("piano", "bass")
    )


@pytest.fixture
def pieces(tmp_path: Path) -> Path:
    """A dataset of whole pieces, three to train on and two to validate on."""
    for split, pitches in {"train": (50, 55, 60), "validation": (52, 57)}.items():
        rows = [row_of(chord(pitch), PieceFacts(f"piece{pitch}", "own", "family")) for pitch in pitches]
        path = tmp_path / "pieces" / "data" / f"{split}-00000-of-00001.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.Table.from_pylist(rows, schema=features().arrow_schema), path)
    return tmp_path


def test_networks_of_rolls_learn_from_whole_pieces(pieces: Path) -> None:
    data = DataConfig("pieces", "default", validation_stride_steps=5)
    train, validation = recipe_examples("bmst", BMSTConfig(window=4, embedding=4), data, pieces)
    assert (len(train), len(validation)) == (3 * 32, 2 * 7)
    middles = train.batch(np.arange(96), np.zeros(96, dtype=np.int64), "cpu").cells[:, 4].numpy()
    np.testing.assert_array_equal(middles[32:64], piano_roll(chord(55)).cells)
    heard = validation.batch(np.arange(14), np.zeros(14, dtype=np.int64), "cpu").cells[:, 4].numpy()
    np.testing.assert_array_equal(heard[7:], piano_roll(chord(57)).cells[::5])


def test_what_does_not_fit_a_network_of_rolls_is_named(pieces: Path, folder: Path) -> None:
    config = BMSTConfig(window=4, embedding=4)
    with pytest.raises(InvalidInputError, match="stride_steps"):
        recipe_examples("bmst", config, DataConfig("pieces", "default", stride_steps=3), pieces)
    with pytest.raises(InvalidInputError, match="validation_stride_steps"):
        recipe_examples("vli", None, DataConfig("one", "default", validation_stride_steps=3), folder)
    with pytest.raises(InvalidInputError, match="ticks_per_quarter"):
        recipe_examples("bmst", config, DataConfig("one", "default"), folder)
    with pytest.raises(InvalidInputError, match=r"pieces \(default\), split train: the rows have 8 steps a quarter"):
        recipe_examples("bmst", BMSTConfig(window=4, steps_per_quarter=12), DataConfig("pieces", "default"), pieces)
    with pytest.raises(InvalidInputError, match=r"pieces \(default\), split validation: no column tokens; expected"):
        recipe_examples("vli", None, DataConfig("pieces", "default"), pieces)
    with pytest.raises(NoDataError, match="'test'"):
        recipe_examples("bmst", config, DataConfig("pieces", "default", validation="test"), pieces)


def test_a_config_that_does_not_exist_is_named_beside_all_that_do(tmp_path):
    data = DataConfig("irish_folk", "nope")
    with pytest.raises(UnknownNameError, match="'nope'") as caught:
        training_contexts(data, tmp_path)
    assert "known: folk_rnn, folk_rnn_small, music21_folk, music21_folk_cleared, small" in str(caught.value)
