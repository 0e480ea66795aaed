"""Recipes: what the shipped one holds, and what is said of wrong ones."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest
import torch

from music_evals.annotations import PianoRoll
from music_evals.errors import InvalidInputError, UnknownNameError, UnreadableFileError
from music_evals.models.bmst import BMST
from music_evals.models.training import fit
from music_evals.models.training.data import RollExamples
from music_evals.models.training.recipe import build_recipe, find_recipe, from_mapping, read_recipe, read_sections
from music_evals.protocols import INPAINTERS, STYLE_TRANSFERS, load_plugin

SHIPPED = Path(__file__).parents[3] / "models" / "anticipation_rnn" / "train.yaml"
RECIPES = sorted(path for name in INPAINTERS for path in (SHIPPED.parents[1] / name).glob("train*.yaml"))


def test_the_shipped_recipe_is_complete():
    shipped = read_recipe(SHIPPED)
    assert shipped.model_type == "anticipation_rnn"
    assert (shipped.data.train, shipped.data.validation) == ("train", "validation")
    assert (shipped.training.transpose_low, shipped.training.transpose_high) == (-6, 6)
    assert (SHIPPED.parent / shipped.data.dataset).resolve().name == "jsb_chorales"


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"training": "{bach_size: 3}"}, UnknownNameError, "unknown training setting 'bach_size'; did you mean batch_"),
        ({"trainings": "{}"}, UnknownNameError, "unknown recipe section 'trainings'; did you mean training"),
        ({"training": "{batch_size: 0}"}, InvalidInputError, "batch_size must be at least 1, got 0"),
        ({"training": "{cycles: [3, 0]}"}, InvalidInputError, "cycles must hold at least one epoch each"),
        ({"training": "{schedule: linear}"}, InvalidInputError, "schedule must be one of cosine, constant, .*'linear'"),
        ({"training": "{schedule: noam}"}, InvalidInputError, "warmup_steps must be at least 1 for the schedule noam"),
        ({"training": "{decay: 1.5}"}, InvalidInputError, "decay must lie above 0 and be at most 1, got 1.5"),
        ({"base": "../train.yaml"}, InvalidInputError, "base must be the name of a file beside"),
        ({"base": "train.yaml"}, InvalidInputError, "builds on train.yaml, which has a base itself"),
        ({"training": "{precision: half}"}, InvalidInputError, "precision must be float32 or bfloat16, got 'half'"),
        ({"training": "{learning_rate: fast}"}, InvalidInputError, "learning_rate must be a number, got .fast."),
        ({"training": "3"}, InvalidInputError, "must be a mapping"),
        ({"training": "{average: 1}"}, InvalidInputError, r"average must lie in \[0, 1\), got 1"),
        ({"data": "{dataset: a, config: b, stride_steps: 0}"}, InvalidInputError, "stride_steps must be at least 1"),
        ({"data": "{dataset: a, config: b, also: c}"}, InvalidInputError, "also must be a list of mappings"),
        (
            {"data": "{dataset: a, config: b, also: [{datasets: c}]}"},
            UnknownNameError,
            "unknown setting of more data 'd",
        ),
        ({"data": "{config: tiny}"}, InvalidInputError, "data settings are incomplete.*dataset"),
        ({"training": "{"}, UnreadableFileError, "the recipe .* cannot be read as YAML"),
    ],
)
def test_recipes_are_checked(tmp_path, write_recipe, changes, error, message):
    with pytest.raises(error, match=message):
        read_recipe(write_recipe(tmp_path, **changes))


def test_a_recipe_is_a_file_a_folder_or_the_name_of_a_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = tmp_path / "own" / "train.yaml"
    own.parent.mkdir()
    own.touch()
    monkeypatch.chdir(tmp_path)
    assert find_recipe(own, None) == (own, own.parent)
    assert find_recipe("own", "out") == (Path("own/train.yaml"), Path("out"))
    for name in ("anticipation_rnn", "models/anticipation_rnn/train.yaml"):
        assert find_recipe(name, "out") == (SHIPPED, Path("out"))
        with pytest.raises(InvalidInputError, match="`out`"):
            find_recipe(name, None)
    assert find_recipe("nothing.yaml", None) == (Path("nothing.yaml"), Path())
    monkeypatch.chdir(SHIPPED.parent)
    assert find_recipe("train.yaml", None) == (Path("train.yaml"), Path())


# --- recipes that build on others


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_every_shipped_recipe_is_whole(path):
    """It names its network, all of its stages and a dataset, and its settings are some that the network knows."""
    recipe = read_recipe(path)
    network = load_plugin(INPAINTERS, path.parent.name, "model")
    from_mapping(network.config_class, {"model_type": recipe.model_type, **recipe.model}, "model setting")
    assert [stage.name for stage in recipe.stages] == list(network.stages)
    folk = path.stem == "train-folk"
    assert (Path(recipe.data.dataset).name, recipe.data.config) == (
        ("irish_folk", "music21_folk_cleared") if folk else ("jsb_chorales", "musib")
    )
    for training in [stage.training for stage in recipe.stages] or [recipe.training]:
        assert training.max_minutes is None  # else the weights would depend on the machine


@pytest.mark.parametrize("stem", ["train", "train-swing"])
@pytest.mark.parametrize("name", sorted(STYLE_TRANSFERS))
def test_each_style_transfer_has_recipes_for_both_styles(name, stem):
    recipe = read_recipe(SHIPPED.parents[1] / name / f"{stem}.yaml")
    network = load_plugin(STYLE_TRANSFERS, name, "model")
    config = from_mapping(network.config_class, {"model_type": recipe.model_type, **recipe.model}, "model setting")
    data = (config.style, Path(recipe.data.dataset).name, recipe.data.config)
    assert data == (("swing", "swing_synth", "swing_synth") if "swing" in stem else ("bach", "jsb_chorales", "style"))
    assert config.steps_per_quarter == 8
    assert recipe.training.max_minutes is None
    assert recipe.data.validation_stride_steps % 2  # all places of a bar are judged


def test_each_network_has_recipes_for_both_datasets_and_as_it_was_published():
    names = [(path.parent.name, path.stem) for path in RECIPES]
    ours = {("infill_transformer", "train-paper")}  # which is our own, and published nowhere
    every = [(name, stem) for name in sorted(INPAINTERS) for stem in ("train-folk", "train-paper", "train")]
    assert names == [pair for pair in every if pair not in ours]


def test_anticipation_rnn_goes_on_until_a_whole_cycle_brings_nothing_better():
    for stem in ("train", "train-folk"):
        training = read_recipe(SHIPPED.with_stem(stem)).training
        assert max(training.cycles) < training.patience < 2 * min(training.cycles)


def test_the_published_recipes_of_musib_stop_after_the_paper_s_five_epochs():
    for name in sorted({path.parent.name for path in RECIPES if path.stem == "train-paper"}):
        recipe = read_recipe(SHIPPED.parents[1] / name / "train-paper.yaml")
        patiences = {stage.name: stage.training.patience for stage in recipe.stages} or {name: recipe.training.patience}
        # the connector of SketchNet is no part of MUSIB, and is trained for all of its epochs
        assert patiences.pop("connector", 15) == 15
        assert set(patiences.values()) == {5}


def test_the_published_recipe_of_bmst_is_that_of_the_paper():
    recipe = read_recipe(SHIPPED.parents[1] / "bmst" / "train-paper.yaml")
    assert (recipe.training.transpose_low, recipe.training.transpose_high) == (-12, 12)
    config = from_mapping(BMST.config_class, {"model_type": "bmst", **recipe.model}, "model setting")
    assert (2 * config.window + 1, config.window + 1, config.width, config.n_layers) == (513, 257, 180, 4)
    assert (config.loss, config.focal_alpha, config.focal_gamma) == ("focal", 0.25, 2)
    assert (config.pitch_head, config.mirrored, config.mask_share, config.dropout) == ("scalar", False, 0.3, 0.3)
    assert sum(weight.numel() for weight in BMST(config).parameters()) == 3_424_661


@pytest.mark.slow
@pytest.mark.usefixtures("one_thread", "own_random_state")
@pytest.mark.parametrize("name", ["bmst", "style_lstm"])
def test_a_published_recipe_of_style_transfer_takes_two_steps(name, tmp_path):
    """With the network of its size and all settings but the number of examples."""
    read = read_recipe(SHIPPED.parents[1] / name / "train-paper.yaml")
    short = dataclasses.replace(read.training, batch_size=2, epoch_contexts=4, cycles=(1,), threads=1)
    recipe = dataclasses.replace(read, training=short)
    network = load_plugin(STYLE_TRANSFERS, name, "model")
    model = network(from_mapping(network.config_class, {"model_type": name, **recipe.model}, "model setting"))
    before = [weight.detach().clone() for weight in model.pitches.parameters()]
    cells = np.random.default_rng(0).random((40, 84)) < 0.05
    silent, phases = np.zeros_like(cells), np.arange(40) / 40
    roll = PianoRoll(cells, cells, silent, phases, phases)
    fit(
        model,
        RollExamples([roll], model.config.window),
        RollExamples([roll], model.config.window, 37),
        recipe,
        tmp_path,
    )
    assert model.training_step == 1  # the second of two, from 0
    assert any(not torch.equal(old, new) for old, new in zip(before, model.pitches.parameters(), strict=True))
    assert network.from_pretrained(str(tmp_path)).config == model.config


def test_the_published_recipe_of_sketchnet_has_three_schedules():
    recipe = read_recipe(SHIPPED.parents[1] / "sketchnet" / "train-paper.yaml")
    vae, inpainter, connector = (stage.training for stage in recipe.stages)
    assert (vae.schedule, vae.decay, vae.learning_rate, vae.final_learning_rate) == ("exponential", 0.9999, 1e-4, 1e-5)
    assert (inpainter.schedule, inpainter.learning_rate, inpainter.max_gradient_norm) == ("constant", 1e-4, None)
    assert (connector.schedule, connector.warmup_steps, connector.batch_size) == ("noam", 4000, 32)
    assert connector.learning_rate == pytest.approx((512 * 4000) ** -0.5, rel=1e-3)
    assert (recipe.model["size"], recipe.model["forcing_decay"], vae.batch_size) == ("paper", 4000, 64)


STAGES = "[{name: vae, training: {cycles: [4]}}, {name: latent_rnn, training: {cycles: [6], patience: 3}}]"


def test_a_recipe_says_only_what_differs_from_its_base(tmp_path, write_recipe):
    write_recipe(tmp_path, stages=STAGES, model="{latent_size: 8, dropout: 0.1}")
    own = tmp_path / "train-own.yaml"
    own.write_text("base: train.yaml\nmodel: {dropout: 0.2}\nstages:\n- {name: latent_rnn, training: {cycles: [9]}}\n")
    below, above = read_recipe(tmp_path / "train.yaml"), read_recipe(own)
    assert above.model == {"latent_size": 8, "dropout": 0.2}
    assert above.data == below.data
    assert above.stages[0] == below.stages[0]
    assert (above.stages[1].training.cycles, above.stages[1].training.patience) == ((9,), 3)
    own.write_text("base: train.yaml\nstages:\n- {name: decoder}\n")
    with pytest.raises(UnknownNameError, match="'decoder'"):
        read_recipe(own)
    (tmp_path / "bare").mkdir()
    for stages, message in (
        ("null", "stages must be a list of mappings with the settings name and training, at least one; got None"),
        ("[vae]", r"at least one; got \['vae'\]"),
        ("[{training: {cycles: [9]}}]", r"must have a name, a text; one has the settings {'training'"),
        ("[{name: vae, training: [9]}]", r"training of the stage 'vae' must be a mapping, got \[9\]"),
    ):
        own.write_text(f"base: train.yaml\nstages: {stages}\n")
        with pytest.raises(InvalidInputError, match=message):
            read_recipe(own)
        bare = write_recipe(tmp_path / "bare", stages=stages)
        with pytest.raises(InvalidInputError, match=message):
            read_recipe(bare)
        with pytest.raises(InvalidInputError, match=message):
            read_sections(bare, ["stages.vae.cycles=[1]"])
    own.write_text("base: train.yaml\nstages:\n- {name: vae, trainings: {cycles: [9]}}\n")
    with pytest.raises(UnknownNameError, match="'trainings'"):
        read_recipe(own)
    own.write_text("base: other.yaml\n")
    with pytest.raises(UnreadableFileError, match=r"other\.yaml"):
        read_recipe(own)


def test_two_recipes_of_one_folder_write_to_two_folders(tmp_path):
    for name, folder in (("train.yaml", tmp_path), ("train-folk.yaml", tmp_path / "folk"), ("own.yaml", tmp_path)):
        (tmp_path / name).touch()
        assert find_recipe(tmp_path / name, None)[1] == folder


def test_changes_reach_into_stages(tmp_path, write_recipe):
    path = write_recipe(tmp_path, stages=STAGES)
    changes = ("stages.vae.cycles=[1]", "stages.latent_rnn.learning_rate=1e-5", "training.batch_size=7")
    vae, latent_rnn = (stage.training for stage in build_recipe(read_sections(path, changes)).stages)
    assert (vae.cycles, latent_rnn.cycles, latent_rnn.learning_rate) == ((1,), (6,), 1e-5)
    assert (vae.batch_size, latent_rnn.batch_size) == (7, 7)


WITH = {"stages": STAGES}


@pytest.mark.parametrize(
    ("sections", "change", "error", "message"),
    [
        (WITH, "stages.vea.cycles=[1]", UnknownNameError, "unknown stage 'vea'; did you mean vae"),
        (WITH, "stages.vae=3", InvalidInputError, r"expected stages.NAME.SETTING=value, as stages.vae.cycles"),
        (WITH, "stages.vae.training.cycles=[1]", InvalidInputError, r"expected stages.NAME.SETTING=value"),
        (WITH, "stages.vae.cycle=[1]", UnknownNameError, "unknown training setting 'cycle'; did you mean cycles"),
        ({}, "stages.vae.cycles=[1]", UnknownNameError, "unknown stage 'vae'; known: none; the recipe has no stages"),
    ],
)
def test_wrong_changes_of_stages_are_named(write_recipe, sections, change, error, message, tmp_path):  # noqa: PLR0917
    path = write_recipe(tmp_path, **sections)
    with pytest.raises(error, match=message):
        build_recipe(read_sections(path, [change]))
