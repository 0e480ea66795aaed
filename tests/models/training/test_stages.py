"""Training in stages: recipes, what each stage trains, and going on after a kill in any of them."""

import csv
import dataclasses
import json
import shutil
import sys
import types
from pathlib import Path

import numpy as np
import pytest
import torch

from music_evals.annotations import HOLD
from music_evals.errors import CorruptRecordsError, InvalidInputError, MissingBackendError, UnknownNameError
from music_evals.models.inpaintnet import InpaintNet, InpaintNetConfig
from music_evals.models.training import fit, train_from_file
from music_evals.models.training.data import draw_transpositions
from music_evals.models.training.recipe import DataConfig, Recipe, Stage, TrainingConfig, read_recipe

pytestmark = pytest.mark.usefixtures("one_thread", "own_random_state")

NEEDS_GPU = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")

TINY = InpaintNetConfig(note_embedding_size=4, measure_size=8, latent_size=4, context_size=6, measures_per_context=2)


def recipe(first: int = 2, second: int = 2, **changes) -> Recipe:
    shared = {"batch_size": 4, "learning_rate": 0.01, "transpose_low": -6, "transpose_high": 6, **changes}
    stages = (
        Stage("vae", TrainingConfig(cycles=(first,), **shared)),
        Stage("latent_rnn", TrainingConfig(cycles=(second,), **shared)),
    )
    return Recipe("inpaintnet", DataConfig("nowhere", "none"), {}, TrainingConfig(**shared), stages)


def tunes(n: int, seed: int = 0) -> np.ndarray:
    contexts = np.full((n, 384), HOLD, dtype=np.uint8)
    contexts[:, ::6] = np.random.default_rng(seed).integers(55, 75, n)[:, None]
    return contexts


class Interrupted(InpaintNet):
    """Raises at one of its losses: 2 training and 1 validation batch an epoch, 2 epochs a stage."""

    at = 0
    calls = 0

    def training_loss(self, contexts, *, varied=False):
        self.calls += 1
        if self.calls == self.at:
            raise KeyboardInterrupt
        return super().training_loss(contexts, varied=varied)


def train(folder: Path, *, seed: int = 0, at: int = 0, plan: Recipe | None = None) -> Interrupted:
    torch.manual_seed(seed)
    model = Interrupted(TINY)
    model.at = at
    fit(model, tunes(6), tunes(3, seed=1), plan or recipe(), folder)
    return model


@pytest.fixture(scope="module")
def whole_run(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("whole")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    with torch.random.fork_rng():
        train(folder)
    torch.set_num_threads(threads)
    return folder


def test_each_stage_has_a_log_and_a_checkpoint(whole_run):
    for stage in ("vae", "latent_rnn"):
        with (whole_run / "run" / stage / "log.csv").open() as file:
            assert len(list(csv.DictReader(file))) == 2
        assert (whole_run / "run" / stage / "checkpoint.safetensors").is_file()
    assert (whole_run / "model.safetensors").is_file()


def test_a_stage_starts_from_the_best_weights_of_the_one_before_and_leaves_them(whole_run):
    from safetensors.torch import load_file

    first, second = (load_file(whole_run / "run" / stage / "checkpoint.safetensors") for stage in InpaintNet.stages)
    of_vae = [name for name in first if name.startswith("best.vae")]
    assert of_vae
    assert all(torch.equal(first[name], second[name]) for name in of_vae)
    untouched = [name for name in first if name.startswith("best.latent_rnn")]
    assert all(torch.equal(first[name], first["model" + name.removeprefix("best")]) for name in untouched)
    assert any(not torch.equal(first[name], second[name]) for name in untouched)


@pytest.mark.slow
@pytest.mark.parametrize("at", [2, 5, 8, 11], ids=["vae 1", "vae 2", "latent 1", "latent 2"])
def test_a_run_stopped_in_any_stage_ends_with_equal_weights(at, tmp_path, whole_run):
    with pytest.raises(KeyboardInterrupt):
        train(tmp_path, at=at)
    assert not (tmp_path / "model.safetensors").exists()  # a run that is cut short spoils no model
    # nothing of the state at the restart may matter, where an epoch is finished
    model = train(tmp_path, seed=77 if at > 3 else 0)
    assert (tmp_path / "model.safetensors").read_bytes() == (whole_run / "model.safetensors").read_bytes()
    assert model.calls == 12 - (at - 1) // 3 * 3


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=NEEDS_GPU)])
def test_gradients_pass_through_what_a_stage_froze_and_dropout_does_not_act_there(device):
    # cuDNN refuses the gradient of a recurrent network in evaluation: it stays in training, with a dropout of 0
    model = InpaintNet(dataclasses.replace(TINY, dropout=0.5)).to(device)
    frozen, trained = model.vae.decoder.tick_rnn, model.latent_rnn.generation_rnn
    model.begin_stage("latent_rnn")
    model.train()
    assert (frozen.training, frozen.dropout, trained.dropout) == (True, 0, 0.5)
    model.training_loss(torch.from_numpy(tunes(2).astype(np.int64)).to(device)).mean().backward()
    assert trained.weight_hh_l0.grad.abs().sum() > 0
    assert all(parameter.grad is None for parameter in model.vae.parameters())
    model.begin_stage("vae")
    assert (frozen.dropout, trained.dropout) == (0.5, 0)
    model.eval()
    assert not any(module.training for module in model.modules())


class Worse(InpaintNet):
    """Is judged worse each time."""

    calls = 0

    def validation_losses(self, contexts):
        self.calls += 1
        return torch.full((len(contexts),), float(self.calls))


def test_a_start_is_kept_in_every_stage_that_makes_it_worse(tmp_path, whole_run):
    model = Worse.from_pretrained(whole_run)
    result = fit(model, tunes(6), tunes(3, seed=1), recipe(1, 1), tmp_path, started=True)
    assert (model.calls, result.epochs, result.best_epoch, result.validation_loss) == (4, 2, 0, 3)
    before, after = (InpaintNet.from_pretrained(folder).state_dict() for folder in (whole_run, tmp_path))
    assert all(torch.equal(before[name], after[name]) for name in before)


def test_a_finished_run_is_not_run_again(whole_run):
    before = (whole_run / "model.safetensors").read_bytes()
    assert train(whole_run, seed=5).calls == 0
    assert (whole_run / "model.safetensors").read_bytes() == before


def test_another_later_stage_keeps_the_earlier_ones(tmp_path, whole_run):
    shutil.copytree(whole_run, tmp_path, dirs_exist_ok=True)
    with pytest.raises(CorruptRecordsError, match="latent_rnn"):
        train(tmp_path, plan=recipe(second=1))
    (tmp_path / "run" / "latent_rnn" / "checkpoint.safetensors").unlink()
    assert train(tmp_path, plan=recipe(second=1)).calls == 3
    with pytest.raises(CorruptRecordsError, match=r"another recipe; delete .*vae/checkpoint\.safetensors"):
        train(tmp_path, plan=recipe(first=1))


def test_more_cycles_of_the_last_stage_go_on_from_it(tmp_path, whole_run):
    def longer(plan: Recipe, stage: int) -> Recipe:
        stages = list(plan.stages)
        training = dataclasses.replace(stages[stage].training, cycles=(2, 1))
        stages[stage] = dataclasses.replace(stages[stage], training=training)
        return dataclasses.replace(plan, stages=tuple(stages))

    shutil.copytree(whole_run, tmp_path, dirs_exist_ok=True)
    assert train(tmp_path, plan=longer(recipe(), 1)).calls == 3  # of one epoch
    with pytest.raises(CorruptRecordsError, match="latent_rnn"):
        train(tmp_path, plan=longer(recipe(), 0))  # what came after it started from other weights


@pytest.mark.slow
def test_the_loop_counts_the_steps_of_a_stage(tmp_path):
    seen: list[tuple[str, bool, int]] = []

    class Counting(InpaintNet):
        def training_loss(self, contexts, *, varied=False):
            seen.append((self.stage, self.training, self.training_step))
            return super().training_loss(contexts, varied=varied)

    fit(Counting(TINY), tunes(6), tunes(3), recipe(), tmp_path)
    steps = {
        stage: [step for name, training, step in seen if name == stage and training] for stage in InpaintNet.stages
    }
    assert steps == {"vae": [0, 1, 2, 3], "latent_rnn": [0, 1, 2, 3]}


def test_transpositions_stay_within_the_pitches_of_the_network():
    contexts = np.array([[24, 60]] * 400 + [[60, 106]] * 400 + [[20, 60]] * 400, dtype=np.uint8)
    shifts = draw_transpositions(contexts, -6, 6, np.random.default_rng(0), pitch_range=(22, 107)).reshape(3, 400)
    assert [set(row.tolist()) for row in shifts] == [set(range(-2, 7)), set(range(-6, 2)), set(range(7))]


# --- recipes


STAGES = "[{name: vae, training: {cycles: [3]}}, {name: latent_rnn, training: {learning_rate: 0.5}}]"


def test_stages_share_settings_and_replace_some(tmp_path, write_recipe):
    path = write_recipe(tmp_path, model_type="inpaintnet", model="{}", stages=STAGES)
    vae, latent = read_recipe(path).stages
    assert (vae.name, vae.training.cycles, vae.training.batch_size) == ("vae", (3,), 4)
    assert (latent.training.cycles, latent.training.learning_rate, latent.training.threads) == ((2,), 0.5, 1)


@pytest.mark.parametrize(
    ("stages", "error", "message"),
    [
        ("[]", InvalidInputError, "stages must be a list"),
        ("{name: vae}", InvalidInputError, "stages must be a list"),
        ("[{name: vae, training: 3}]", InvalidInputError, "training of the stage 'vae' must be a mapping"),
        ("[{training: {}}]", InvalidInputError, "each of the stages must have a name"),
        ("[{name: vae, trainings: {}}]", UnknownNameError, "unknown stage setting 'trainings'; did you mean training"),
        ("[{name: vae, training: {cycle: [1]}}]", UnknownNameError, "unknown training setting 'cycle'"),
    ],
)
def test_stages_are_checked(stages, error, message, tmp_path, write_recipe):
    with pytest.raises(error, match=message):
        read_recipe(write_recipe(tmp_path, stages=stages))


@pytest.mark.parametrize(
    ("kind", "changes", "message"),
    [
        ("inpaintnet", {}, r"inpaintnet is trained in the stages vae, latent_rnn; the recipe has \(none\)"),
        ("inpaintnet", {"stages": "[{name: vae}]"}, "the recipe has vae: name them all, in this order"),
        ("anticipation_rnn", {"stages": "[{name: vae}]"}, r"trained in the stages \(none\); the recipe has vae"),
    ],
)
def test_a_recipe_names_the_stages_of_its_network(kind, changes, message, tmp_path, write_recipe):
    model = "{}" if kind == "anticipation_rnn" else "{size: small}"
    with pytest.raises(InvalidInputError, match=message):
        train_from_file(write_recipe(tmp_path, model_type=kind, model=model, **changes))


# --- a dashboard


def test_curves_go_to_trackio_where_it_is_there(tmp_path, tiny_dataset, write_recipe, monkeypatch):
    """A stand-in for the package: what it is called with, and that the run is ended."""
    calls: list[tuple[str, dict]] = []
    stand_in = types.SimpleNamespace(
        init=lambda **options: calls.append(("init", options)),
        log=lambda row: calls.append(("log", row)),
        finish=lambda: calls.append(("finish", {})),
    )
    monkeypatch.setitem(sys.modules, "trackio", stand_in)
    sizes = {"note_embedding_size": 4, "measure_size": 8, "latent_size": 4, "context_size": 6}
    path = write_recipe(
        tmp_path,
        model_type="inpaintnet",
        model=json.dumps(sizes),
        data=json.dumps({"dataset": str(tiny_dataset), "config": "musib"}),
        training="{batch_size: 12, cycles: [1], threads: 1}",
        stages="[{name: vae}, {name: latent_rnn}]",
    )
    train_from_file(path, trackio="project")
    assert [name for name, _ in calls] == ["init", "log", "log", "finish"]
    assert calls[0][1]["project"] == "project"
    assert calls[0][1]["config"]["model_type"] == "inpaintnet"
    with (tmp_path / "run" / "vae" / "log.csv").open() as file:
        (row,) = csv.DictReader(file)
    assert calls[1][1] == {f"vae/{name}": float(value) for name, value in row.items()}
    assert "latent_rnn/train_loss" in calls[2][1]


def test_trackio_is_named_where_it_is_missing(tmp_path, tiny_dataset, write_recipe, monkeypatch):
    monkeypatch.setitem(sys.modules, "trackio", None)
    data = json.dumps({"dataset": str(tiny_dataset), "config": "musib"})
    with pytest.raises(MissingBackendError, match="'trackio'"):
        train_from_file(write_recipe(tmp_path, data=data), trackio="project")
    assert not (tmp_path / "run").exists()


def test_a_tagger_has_no_curves_for_trackio(tmp_path, write_recipe):
    with pytest.raises(InvalidInputError, match="the curves of a tagger are files alone; leave trackio out"):
        train_from_file(write_recipe(tmp_path, model_type="music_tagger"), trackio="project")
