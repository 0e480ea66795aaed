from __future__ import annotations

import json
import pickle
import shutil
from pathlib import Path

import numpy as np
import pytest

from music_evals.benchmark.tasks.inpainting.items import load_items
from music_evals.benchmark.tasks.inpainting.systems import (
    System,
    baseline_system,
    chosen_names,
    load_model,
    stored_system,
)
from music_evals.benchmark.tasks.inpainting.task import INPAINTING, Settings
from music_evals.errors import InvalidInputError, NoDataError, UnknownNameError, UnreadableFileError
from music_evals.models.baselines import BASELINES as OFFERED
from music_evals.protocols import BASELINES, CONTROL


def test_the_registry_lists_every_baseline() -> None:
    assert set(BASELINES) == set(OFFERED)


def test_choices_of_baselines() -> None:
    known = [name for name in BASELINES if name != CONTROL]
    assert chosen_names("none", known, "baseline") == ()
    assert chosen_names("all", known, "baseline") == tuple(known)
    assert len(known) == 10
    assert chosen_names("markov, copy_past,markov", known, "baseline") == ("markov", "copy_past")
    with pytest.raises(UnknownNameError, match="did you mean copy_past"):
        chosen_names("copy-past", known, "baseline")


def test_the_control_runs_anyway_and_is_no_baseline(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError):
        INPAINTING.run(Settings(out=tmp_path, dataset="jsb_chorales", config="musib", baselines=CONTROL, report=False))


def test_what_sees_the_reference_is_a_control() -> None:
    roles = {name: baseline_system(name, np.full((1, 384), 60, dtype=np.uint8)).role for name in BASELINES}
    assert {name for name, role in roles.items() if role == "control"} == {"reference", "best_lag"}
    assert set(roles.values()) == {"control", "baseline"}


def test_a_model_is_loaded(fake_model: Path) -> None:
    system = load_model(str(fake_model))
    assert (system.name, system.role, system.sees_reference) == ("fake", "model", False)
    assert system.seeds([4, 5]) == (4, 5)
    assert system.details == {"source": str(fake_model), "revision": None, "decoding": "sample", "temperature": 1.0}


def test_the_content_hash_hangs_on_weights_and_options(fake_model: Path) -> None:
    first = load_model(str(fake_model)).content_hash
    assert load_model(str(fake_model)).content_hash == first
    assert load_model(str(fake_model), temperature=0.5).content_hash != first
    (fake_model / "model.safetensors").write_bytes(b"other weights")
    assert load_model(str(fake_model)).content_hash != first


def test_a_name_may_end_in_a_decoding(fake_model: Path) -> None:
    own = load_model(f"{fake_model}:teacher_forced", decoding="sample")
    assert own.name == load_model(fake_model, decoding="teacher_forced").name
    assert own.content_hash == load_model(fake_model, decoding="teacher_forced").content_hash
    assert own.details["source"] == str(fake_model)
    other = fake_model.with_name("a:folder")
    shutil.copytree(fake_model, other)
    assert load_model(other).details["source"] == str(other)


def test_a_leaking_decoding_is_labelled(fake_model: Path) -> None:
    system = load_model(str(fake_model), decoding="teacher_forced")
    assert system.role == "leaking"
    assert "leaks" in system.name
    assert system.seeds([4, 5]) == (4,)


def test_wrong_model_folders(fake_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UnknownNameError, match="did you mean anticipation_rnn"):
        load_model("anticipation_rn")
    (tmp_path / "models" / "mine").mkdir(parents=True)
    with pytest.raises(NoDataError, match=r"no config\.json"):
        load_model("mine")
    config = tmp_path / "models" / "mine" / "config.json"
    config.write_text("{")
    with pytest.raises(UnreadableFileError, match="is not JSON"):
        load_model("models/mine")
    config.write_text("[]")
    with pytest.raises(UnreadableFileError, match="names no model_type"):
        load_model("models/mine")
    config.write_text(json.dumps({"model_type": "anticipation_rnnn"}))
    with pytest.raises(UnknownNameError, match=r"model type .* did you mean anticipation_rnn"):
        load_model("models/mine")
    config.write_text(json.dumps({"model_type": "fake"}))
    with pytest.raises(NoDataError, match=r"no model\.safetensors.*music-evals train"):
        load_model("models/mine")


def test_baselines_that_need_data_say_so(tiny_dataset: Path) -> None:
    with pytest.raises(NoDataError, match="markov"):
        baseline_system("markov", None)
    train = load_items(str(tiny_dataset), "musib", "train").contexts
    assert baseline_system("markov", train).content_hash != baseline_system("markov", train[1:]).content_hash


@pytest.mark.parametrize("name", sorted(OFFERED))
def test_a_baseline_travels_to_another_process(tiny_dataset: Path, name: str) -> None:
    train = load_items(str(tiny_dataset), "musib", "train").contexts
    system = baseline_system(name, train)
    copy: System = pickle.loads(pickle.dumps(system))  # noqa: S301 (our own bytes)
    rows = range(4)
    first, second = (each.inpaint(train[:4], rows, seed=0, rng=np.random.default_rng(3)) for each in (system, copy))
    np.testing.assert_array_equal(first, second)
    assert (copy.name, copy.role, copy.content_hash) == (system.name, system.role, system.content_hash)


def test_predictions_made_elsewhere_have_their_own_seeds() -> None:
    stored = stored_system("mine", {2: np.zeros((3, 96), dtype=np.uint8)})
    assert stored.seeds([0, 1]) == (2,)


def test_a_system_is_a_plug_in_or_predictions() -> None:
    with pytest.raises(InvalidInputError):
        System("neither", "model", "0")
    with pytest.raises(InvalidInputError):
        System("both", "model", "0", make=lambda: None, stored={})  # type: ignore[arg-type, return-value]
    stored = stored_system("mine", {2: np.zeros((3, 96), dtype=np.uint8)})
    assert stored.seeds([0, 1]) == (2,)


def test_a_hub_id_that_cannot_be_fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UnreadableFileError, match="somebody/some_model cannot be fetched"):
        load_model("somebody/some_model")  # the tests have no network


def test_a_hub_model_is_pinned_to_its_commit(fake_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import huggingface_hub

    snapshot = tmp_path / "snapshots" / "0123abc"
    shutil.copytree(fake_model, snapshot)
    asked: list[tuple[str, str | None]] = []

    def download(repository: str, *, revision: str | None, allow_patterns: list[str]) -> str:
        asked.append((repository, revision))
        return str(snapshot)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
    monkeypatch.chdir(tmp_path)
    system = load_model("somebody/some_model@v1")
    assert asked == [("somebody/some_model", "v1")]
    assert (system.details["source"], system.details["revision"]) == ("somebody/some_model", "0123abc")
    assert load_model("somebody/some_model").details["revision"] == "0123abc"
    assert asked[-1] == ("somebody/some_model", None)
