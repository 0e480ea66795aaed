from __future__ import annotations

import dataclasses
import types
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from music_evals.benchmark import inputs
from music_evals.benchmark.tasks.inpainting.items import ItemSet, load_items
from music_evals.benchmark.tasks.inpainting.task import INPAINTING, Settings
from music_evals.errors import (
    ContextLengthError,
    InvalidInputError,
    InvalidTokensError,
    NoDataError,
    UnknownNameError,
    UnreadableFileError,
    hub_errors,
)


def write_table(folder: Path, **columns: object) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), folder / "test.parquet")
    return folder


def rest(n_steps: int) -> list[int]:
    return [129] * n_steps


def test_a_split_is_loaded(tiny_dataset: Path) -> None:
    items = load_items(str(tiny_dataset), "musib", "test")
    assert len(items) == 70
    assert items.contexts.shape == (70, 384)
    assert items.contexts.dtype == np.uint8
    assert items.middles.shape == (70, 96)
    assert items.item_ids[3] == "musib/test/003"
    assert items.songs[4:8] == ("song 1",) * 4
    assert items.seen_in_train is not None
    assert items.seen_in_train.tolist()[:6] == [True, False, False, False, False, True]
    raw = pq.read_table(tiny_dataset / "data" / "musib" / "test-00000-of-00001.parquet")["tokens"].to_pylist()
    np.testing.assert_array_equal(items.contexts, raw)


def test_a_name_stands_for_a_folder_of_the_window(
    tiny_dataset: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "datasets_scripts").mkdir()
    (tmp_path / "datasets_scripts" / "tiny").symlink_to(tiny_dataset)
    monkeypatch.chdir(tmp_path)
    assert len(load_items("tiny", "musib", "validation")) == 12
    with pytest.raises(UnknownNameError, match="did you mean tiny"):
        load_items("tinny", "musib", "validation")


def test_unknown_config_and_split_name_the_nearest(tiny_dataset: Path) -> None:
    with pytest.raises(UnknownNameError, match=r"unknown config .* 'musb'; did you mean musib"):
        load_items(str(tiny_dataset), "musb", "test")
    with pytest.raises(UnknownNameError, match=r"unknown split .* 'tests'; did you mean test"):
        load_items(str(tiny_dataset), "musib", "tests")
    with pytest.raises(UnknownNameError, match="did you mean musib"):
        inputs.split_names(str(tiny_dataset), "musb")
    assert set(inputs.split_names(str(tiny_dataset), "musib")) == {"train", "validation", "test"}


def test_a_name_is_found_from_any_folder_of_a_clones_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert load_items("jsb_chorales", "musib", "validation").dataset == "jsb_chorales"


def test_an_empty_folder(tmp_path: Path) -> None:
    with pytest.raises(NoDataError):
        load_items(str(tmp_path), None, "test")


def test_an_empty_split(tmp_path: Path) -> None:
    folder = write_table(
        tmp_path / "none",
        item_id=pa.array([], pa.string()), song=pa.array([], pa.string()), tokens=pa.array([], pa.list_(pa.uint8())),
    )  # fmt: skip
    with pytest.raises((NoDataError, UnreadableFileError)):  # datasets itself fails on a table without rows
        load_items(str(folder), None, "test")
    with pytest.raises(NoDataError):
        ItemSet("d", None, "test", (), (), np.empty((0, 384), dtype=np.uint8))


def test_a_broken_file(tmp_path: Path) -> None:
    (tmp_path / "test.parquet").write_bytes(b"no parquet at all")
    with pytest.raises(UnreadableFileError, match="cannot be read"):
        load_items(str(tmp_path), None, "test")


def test_missing_columns_are_named(tmp_path: Path) -> None:
    folder = write_table(tmp_path / "columns", item_id=["a"], notes=["x"])
    with pytest.raises(InvalidInputError, match=r"no column song, tokens; expected .* got item_id, notes"):
        load_items(str(folder), None, "test")


def test_rows_of_the_wrong_length_are_named(tmp_path: Path) -> None:
    folder = write_table(tmp_path / "short", item_id=["a", "b"], song=["s", "s"], tokens=[rest(384), rest(383)])
    with pytest.raises(ContextLengthError, match="item 'b' has 383 tokens; expected 384"):
        load_items(str(folder), None, "test")


def test_tokens_outside_the_vocabulary(tmp_path: Path) -> None:
    folder = write_table(tmp_path / "wrong", item_id=["a"], song=["s"], tokens=[[130, *rest(383)]])
    with pytest.raises(InvalidTokensError, match="130"):
        load_items(str(folder), None, "test")


def test_ids_are_unique(tmp_path: Path) -> None:
    folder = write_table(tmp_path / "twice", item_id=["a", "a"], song=["s", "s"], tokens=[rest(384)] * 2)
    with pytest.raises(InvalidInputError, match="item id 'a' occurs twice"):
        load_items(str(folder), None, "test")


def test_without_a_seen_column_nothing_is_known(tmp_path: Path) -> None:
    folder = write_table(tmp_path / "plain", item_id=["a"], song=["s"], tokens=[rest(384)])
    assert load_items(str(folder), None, "test").seen_in_train is None


def test_the_fingerprint_hangs_on_the_content_alone(tiny_dataset: Path) -> None:
    items = load_items(str(tiny_dataset), "musib", "validation")
    assert items.fingerprint == dataclasses.replace(items, dataset="elsewhere").fingerprint
    other = items.contexts.copy()
    other[0, 0] ^= 1
    assert items.fingerprint != dataclasses.replace(items, contexts=other).fingerprint
    assert items.fingerprint != dataclasses.replace(items, songs=("x", *items.songs[1:])).fingerprint
    for column in ("seen_in_train", "near_train", "repeats_in_context", "voices"):
        assert items.fingerprint != dataclasses.replace(items, **{column: None}).fingerprint


def test_head(tiny_dataset: Path) -> None:
    items = load_items(str(tiny_dataset), "musib", "validation")
    assert items.head(5).item_ids == items.item_ids[:5]
    assert items.head(5).contexts.shape == (5, 384)
    assert items.head(None) is items
    assert items.head(99) is items


SHA = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture
def hub(tiny_dataset: Path, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str | None]]:
    """A Hub that holds the dataset `somebody/tiny`: what was asked for, and with which revision."""
    import datasets
    import huggingface_hub

    asked: list[tuple[str, str | None]] = []

    def info(self: Any, name: str, *, revision: str | None = None) -> Any:
        asked.append((f"info {name}", revision))
        return types.SimpleNamespace(sha=SHA)

    def redirect(name: str) -> None:
        real = getattr(datasets, name)

        def call(path: str, *args: Any, revision: str | None = None, **kwargs: Any) -> Any:
            assert path == "somebody/tiny"
            asked.append((name, revision))
            return real(str(tiny_dataset), *args, **kwargs)

        monkeypatch.setattr(datasets, name, call)

    monkeypatch.setattr(huggingface_hub.HfApi, "dataset_info", info)
    for name in ("load_dataset", "get_dataset_config_names", "get_dataset_split_names"):
        redirect(name)
    return asked


def test_a_hub_dataset_is_pinned_to_its_commit(hub: list[tuple[str, str | None]]) -> None:
    items = load_items("somebody/tiny", "musib", "test", revision="v1")
    assert items.revision == SHA
    assert hub == [("info somebody/tiny", "v1"), ("load_dataset", SHA)]
    hub.clear()
    assert "train" in inputs.split_names("somebody/tiny", "musib", revision=SHA)
    assert {revision for _, revision in hub} == {SHA}
    hub.clear()
    load_items("somebody/tiny", "musib", "train", revision=SHA)
    assert hub == [("load_dataset", SHA)]  # a commit is not asked for again


def test_a_run_reads_one_commit(hub: list[tuple[str, str | None]], tmp_path: Path) -> None:
    settings = Settings(tmp_path, dataset="somebody/tiny", config="musib", revision="v1", limit=2, report=False,
                        baselines="markov", n_resamples=5, n_seeds=1)  # fmt: skip
    assert INPAINTING.run(settings).results["dataset"]["revision"] == SHA
    assert {revision for name, revision in hub if not name.startswith("info")} == {SHA}
    assert [name for name, _ in hub].count("load_dataset") == 3  # test, train, validation


def test_a_hub_that_cannot_be_reached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UnreadableFileError, match="somebody/tiny cannot be read"):
        load_items("somebody/tiny", None, "test")


@pytest.mark.parametrize("kind", ["missing", "broken"])
def test_what_the_hub_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    import huggingface_hub
    from huggingface_hub.errors import RepositoryNotFoundError

    monkeypatch.chdir(tmp_path)
    # what the HTTP library raises without a network is not an OSError
    http_error = hub_errors()[-1]
    error = http_error("no route") if kind == "broken" else RepositoryNotFoundError.__new__(RepositoryNotFoundError)

    def info(*_: Any, **__: Any) -> Any:
        raise error

    monkeypatch.setattr(huggingface_hub.HfApi, "dataset_info", info)
    with pytest.raises(UnreadableFileError if kind == "broken" else UnknownNameError):
        inputs.resolve_revision("somebody/tiny", None)


def test_a_folder_has_no_revision(tiny_dataset: Path) -> None:
    assert load_items(str(tiny_dataset), "musib", "test").revision is None
    with pytest.raises(InvalidInputError, match="`revision`"):
        load_items(str(tiny_dataset), "musib", "test", revision="v1")
