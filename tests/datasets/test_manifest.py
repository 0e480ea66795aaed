import hashlib
import json

import pytest

from music_evals.datasets.manifest import load_split, rows_sha256, write_dataset
from music_evals.errors import OutputError, UnknownNameError

ROWS = [{"name": "x", "tokens": [1, 2]}, {"name": "y", "tokens": [3, 4]}]


def features():
    from datasets import Features, List, Value

    return Features({"name": Value("string"), "tokens": List(Value("uint8"), length=2)})


def test_rows_are_hashed_as_json_lines_with_sorted_keys():
    text = b'{"a":[1,2],"b":"x"}\n{"a":[],"b":"\xc3\xa9"}\n'
    assert rows_sha256([{"b": "x", "a": [1, 2]}, {"a": [], "b": "é"}]) == hashlib.sha256(text).hexdigest()


def test_the_hash_of_rows_depends_on_their_order():
    rows = [{"a": 1}, {"a": 2}]
    assert rows_sha256(rows) != rows_sha256(rows[::-1])


def test_rows_with_nan_are_refused():
    with pytest.raises(ValueError, match="JSON compliant"):
        rows_sha256([{"a": float("nan")}])


def test_a_folder_that_cannot_be_made_is_a_named_error(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(OutputError, match="choose another folder"):
        write_dataset(tmp_path / "file", {"main": {"test": ROWS}}, features())


def test_rows_that_do_not_fit_leave_the_folder_as_it_was(tmp_path):
    with pytest.raises(ValueError, match="expected 2 but got array of size 1"):
        write_dataset(tmp_path, {"a": {"test": ROWS}, "b": {"test": [{"name": "z", "tokens": [1]}]}}, features())
    assert list(tmp_path.iterdir()) == []


def test_a_data_set_is_its_files_and_a_manifest_of_them(tmp_path):
    manifest = write_dataset(tmp_path, {"main": {"train": ROWS, "test": ROWS[:1]}}, features(), source="ours")
    assert json.loads((tmp_path / "manifest.json").read_text()) == manifest
    assert manifest["source"] == "ours"
    assert {name: facts["rows"] for name, facts in manifest["files"].items()} == {
        "data/main/train-00000-of-00001.parquet": 2,
        "data/main/test-00000-of-00001.parquet": 1,
    }
    for name, facts in manifest["files"].items():
        assert hashlib.sha256((tmp_path / name).read_bytes()).hexdigest() == facts["sha256"]


def test_configs_that_are_built_on_first_use_are_offered_too():
    known = "known: folk_rnn, folk_rnn_small, music21_folk, music21_folk_cleared, small"
    with pytest.raises(UnknownNameError, match=f"unknown config of irish_folk 'nope'; {known}"):
        load_split("irish_folk", "nope", "test")
    with pytest.raises(UnknownNameError, match="split of irish_folk/music21_folk_cleared 'dev'; known: test"):
        load_split("irish_folk", "music21_folk_cleared", "dev")
