"""What every inpainting network keeps: size, causality, seeds, batches, files; on one tiny network of each."""

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from music_evals.annotations import HOLD, MASK, REST
from music_evals.benchmark.inpainting.systems import load_model
from music_evals.errors import (
    ContextLengthError,
    InvalidInputError,
    InvalidTokensError,
    NoDataError,
    UnknownNameError,
    UnreadableFileError,
)
from music_evals.models._vli_notes import END
from music_evals.models.inpaintnet import InpaintNet, InpaintNetConfig
from music_evals.models.recipe import read_recipe
from music_evals.models.sketchnet import SketchNet, SketchNetConfig
from music_evals.models.training import train_from_file
from music_evals.models.vli import VLI, VLIConfig
from music_evals.protocols import INPAINTERS, Inpainter, LikelihoodInpainter, load_plugin
from music_evals.symbolic import remi

pytestmark = pytest.mark.usefixtures("one_thread")

MIDDLE = slice(144, 240)
TINY: dict[type, Any] = {
    InpaintNet: InpaintNetConfig(note_embedding_size=4, measure_size=12, latent_size=8, context_size=10),
    SketchNet: SketchNetConfig(
        note_embedding_size=4, measure_size=12, latent_size=6, context_size=10, connector_size=16, connector_layers=2
    ),
    VLI: VLIConfig(model_size=16, n_layers=2, n_heads=2, inner_size=24, embedding_size=4),
}
# The published number of parameters of every part, counted on MUSIB's code with its defaults.
PUBLISHED = {
    InpaintNet: {"vae": 17_710_261, "vae.decoder": 6_653_345, "latent_rnn": 41_468_160, "": 59_178_421},
    VLI: {"": 93_573_127},
    SketchNet: {"vae": 78_447_797, "inpainter": 79_266_048, "connector": 12_865_280, "": 170_579_125},
}
NETWORKS = pytest.mark.parametrize("kind", list(TINY), ids=[kind.__name__ for kind in TINY])
DECODINGS = [(kind, decoding) for kind in TINY for decoding in kind.decodings]
HONEST = [(kind, decoding) for kind, decoding in DECODINGS if decoding not in kind.leaking]
LEAKING = [(kind, decoding) for kind, decoding in DECODINGS if decoding in kind.leaking]


def cases(pairs: list[tuple[Any, str]]) -> Any:
    ids = [f"{kind.__name__}-{decoding}" for kind, decoding in pairs]
    return pytest.mark.parametrize(("kind", "decoding"), pairs, ids=ids)


def build(kind: Any, **changes: Any) -> Any:
    """Build a tiny network with weights large enough that its inputs matter."""
    with torch.random.fork_rng():
        torch.manual_seed(1)
        network = kind(dataclasses.replace(TINY[kind], **changes))
        with torch.no_grad():
            for parameter in network.parameters():
                parameter.copy_(torch.randn_like(parameter) * 0.5)
            if kind is VLI:
                network.heads[remi.BAR].bias[END] = -3  # so that it writes some notes before the end
                for layer in network.blocks:
                    layer.out.weight *= 8  # what is looked at outweighs what is known of the note itself
    return network.eval()


def melodies(n: int, seed: int = 5) -> np.ndarray:
    """Contexts of notes of 3 to 12 steps and some rests, pitches 50..80."""
    rng = np.random.default_rng(seed)
    contexts = np.full((n, 384), HOLD, dtype=np.uint8)
    for row in contexts:
        onsets = np.cumsum(rng.choice([0, 3, 6, 12], 150, p=[0, 0.2, 0.5, 0.3]))
        onsets = np.append(0, onsets[onsets < 384])
        row[onsets] = np.where(rng.random(len(onsets)) < 0.1, REST, rng.integers(50, 81, len(onsets)))
    return contexts


@pytest.fixture
def contexts() -> np.ndarray:
    return melodies(6)


def inpaint(network: Any, contexts: np.ndarray, decoding: str, seed: int = 0) -> np.ndarray:
    network.decoding = decoding
    return network.inpaint(contexts, rng=np.random.default_rng(seed))


def with_other_middles(contexts: np.ndarray) -> np.ndarray:
    other = contexts.copy()
    other[:, MIDDLE] = melodies(len(contexts), seed=77)[:, :96]
    return other


# --- size


def count(network: torch.nn.Module, part: str = "") -> int:
    return sum(parameter.numel() for parameter in network.get_submodule(part).parameters())


@NETWORKS
def test_the_paper_size_has_the_published_number_of_parameters(kind):
    with torch.device("meta"):
        network = kind(kind.config_class(size="paper"))
    assert {part: count(network, part) for part in PUBLISHED[kind]} == PUBLISHED[kind]


@NETWORKS
def test_the_small_size_is_small(kind):
    with torch.device("meta"):
        assert count(kind(kind.config_class(size="small"))) <= 2_500_000


@NETWORKS
def test_sizes_may_be_changed_one_by_one_and_must_exist(kind):
    small, paper = kind.config_class(size="small"), kind.config_class()
    assert paper.size == "paper"
    differing = [name for name, value in dataclasses.asdict(small).items() if value != getattr(paper, name)]
    assert set(differing) > {"size"}
    name = differing[1]
    assert getattr(kind.config_class(size="small", **{name: 24}), name) == 24
    with pytest.raises(UnknownNameError, match="unknown size 'smaller'; did you mean small"):
        kind.config_class(size="smaller")


# --- decoding


@cases(DECODINGS)
def test_decodings_obey_the_protocol(kind, decoding, contexts):
    network, before = build(kind), contexts.copy()
    first, again, other = (inpaint(network, contexts, decoding, seed) for seed in (1, 1, 2))
    assert isinstance(network, Inpainter)
    assert isinstance(network, LikelihoodInpainter) == hasattr(network, "nll")
    assert first.shape == (6, 96)
    assert first.dtype == np.uint8
    assert first.max() <= REST
    np.testing.assert_array_equal(first, again)
    np.testing.assert_array_equal(contexts, before)
    assert np.array_equal(first, other) == network.deterministic
    assert network.sees_reference == (decoding in kind.leaking)
    default = decoding == network.config.decoding
    assert network.name == network.config.model_type + ("" if default else f":{decoding}")


@cases(HONEST)
def test_honest_decodings_do_not_see_the_middle(kind, decoding, contexts):
    network, masked = build(kind), contexts.copy()
    masked[:, MIDDLE] = MASK
    result = inpaint(network, contexts, decoding)
    np.testing.assert_array_equal(result, inpaint(network, with_other_middles(contexts), decoding))
    np.testing.assert_array_equal(result, inpaint(network, masked, decoding))


@cases(LEAKING)
def test_leaking_decodings_see_the_middle(kind, decoding, contexts):
    network = build(kind)
    result = inpaint(network, contexts, decoding)
    assert not np.array_equal(result, inpaint(network, with_other_middles(contexts), decoding))


@cases(HONEST)
def test_past_and_future_matter(kind, decoding, contexts):
    network, other = build(kind), melodies(6, seed=8)
    result = inpaint(network, contexts, decoding)
    for part in (slice(0, 144), slice(240, 384)):
        changed = contexts.copy()
        changed[:, part] = other[:, part]
        assert not np.array_equal(inpaint(network, changed, decoding), result), part


@cases(DECODINGS)
def test_an_item_does_not_depend_on_the_items_after_it(kind, decoding, contexts):
    """Its random numbers are its own, and it is decoded alone as in a batch."""
    network = build(kind)
    np.testing.assert_array_equal(inpaint(network, contexts, decoding)[:1], inpaint(network, contexts[:1], decoding))


@NETWORKS
def test_greedy_items_do_not_depend_on_their_batch(kind, contexts):
    """More rows than are decoded at once; each row is what it is alone."""
    network, many = build(kind), np.tile(contexts, (50, 1))
    alone = np.concatenate([inpaint(network, contexts[row : row + 1], "argmax") for row in range(6)])
    np.testing.assert_array_equal(inpaint(network, many, "argmax"), np.tile(alone, (50, 1)))


@NETWORKS
def test_temperature_0_and_a_tiny_nucleus_are_greedy(kind, contexts):
    network = build(kind)
    greedy = inpaint(network, contexts, "argmax")
    network.top_p = 1e-9
    np.testing.assert_array_equal(inpaint(network, contexts, "sample"), greedy)
    assert not network.deterministic
    network.top_p, network.temperature = 1.0, 0
    np.testing.assert_array_equal(inpaint(network, contexts, "sample"), greedy)
    assert network.deterministic


@NETWORKS
def test_no_contexts_give_no_middles(kind, contexts):
    assert inpaint(build(kind), contexts[:0], "sample").shape == (0, 96)


@NETWORKS
def test_training_mode_is_left_as_it_was(kind, contexts):
    network = build(kind).train()
    first = inpaint(network, contexts, "argmax")
    assert network.training
    np.testing.assert_array_equal(first, inpaint(network.eval(), contexts, "argmax"))


@NETWORKS
def test_measures_without_an_onset_are_read_and_written(kind):
    """All rests, and all holds."""
    contexts = np.stack([np.full(384, REST), np.full(384, HOLD)]).astype(np.uint8)
    assert inpaint(build(kind), contexts, "argmax").shape == (2, 96)


# --- training


@NETWORKS
def test_losses_are_one_for_each_context_and_reach_what_is_trained(kind, contexts):
    network, tokens = build(kind), torch.from_numpy(melodies(3).astype(np.int64))
    for stage in kind.stages or ("",):
        if stage:
            network.begin_stage(stage)
        for varied in (False, True):
            network.train().zero_grad()
            losses = network.training_loss(tokens, varied=varied)
            assert losses.shape == (3,)
            losses.sum().backward()
            moved = {
                name.split(".")[0] for name, p in network.named_parameters() if p.grad is not None and p.grad.any()
            }
            assert moved == set(
                kind.stages[stage] if stage else {name.split(".")[0] for name, _ in network.named_parameters()}
            )


@NETWORKS
def test_every_stage_trains_in_mixed_precision(kind, contexts):
    network = build(kind, kl_weight=0.0) if kind.stages else build(kind)
    tokens = torch.from_numpy(contexts[:2].astype(np.int64))
    for stage in kind.stages or ("",):
        if stage:
            network.begin_stage(stage)
        network.train()
        for _ in range(3):  # with forcing and without
            with torch.autocast("cpu", dtype=torch.bfloat16):
                loss = network.training_loss(tokens).mean()
            loss.backward()
            assert torch.isfinite(loss)


@NETWORKS
def test_validation_losses_repeat(kind, contexts):
    network, tokens = build(kind), torch.from_numpy(contexts.astype(np.int64))
    for stage in kind.stages or ("",):
        if stage:
            network.begin_stage(stage)
        with torch.no_grad():
            torch.testing.assert_close(network.training_loss(tokens), network.training_loss(tokens), rtol=0, atol=0)


@NETWORKS
def test_what_a_stage_leaves_alone_is_frozen_and_has_no_dropout(kind):
    network = build(kind)
    for stage, trained in kind.stages.items():
        network.begin_stage(stage)
        network.train()
        for name, child in network.named_children():
            assert child.training == (name in trained)
            assert all(parameter.requires_grad == (name in trained) for parameter in child.parameters())
    with pytest.raises(UnknownNameError, match="stage"):
        network.begin_stage("first")


# --- files


@NETWORKS
def test_a_loaded_network_writes_what_the_saved_one_wrote(kind, contexts, tmp_path):
    """Weights are stored in half precision, so the second generation equals the first bit for bit."""
    build(kind).save_pretrained(tmp_path / "first")
    first = kind.from_pretrained(tmp_path / "first")
    first.save_pretrained(tmp_path / "second")
    second = kind.from_pretrained(tmp_path / "second", decoding="sample", temperature=0.5, top_p=0.9)
    for name in ("model.safetensors", "config.json"):
        assert (tmp_path / "second" / name).read_bytes() == (tmp_path / "first" / name).read_bytes()
    assert (second.decoding, second.temperature, second.top_p) == ("sample", 0.5, 0.9)
    assert first.config == TINY[kind]
    assert {parameter.dtype for parameter in first.parameters()} == {torch.float32}
    np.testing.assert_array_equal(inpaint(first, contexts, "argmax"), inpaint(second, contexts, "argmax"))


@NETWORKS
def test_a_saved_network_is_a_system_of_the_benchmark(kind, tmp_path):
    build(kind).save_pretrained(tmp_path)
    assert load_model(str(tmp_path)).role == "model"
    for decoding in kind.decodings:
        system = load_model(str(tmp_path), decoding=decoding)
        assert (system.role == "leaking") == (decoding in kind.leaking) == system.name.endswith("(leaks)")


@NETWORKS
def test_a_recipe_trains_it(kind, tmp_path, tiny_dataset, write_recipe):
    """All stages, one epoch each, from a file, as the command line does it; then it is loaded and fills a gap."""
    sizes = {name: value for name, value in dataclasses.asdict(TINY[kind]).items() if name.endswith("_size")}
    stages = {"stages": json.dumps([{"name": stage} for stage in kind.stages])} if kind.stages else {}
    path = write_recipe(
        tmp_path,
        model_type=kind.config_class().model_type,
        model=json.dumps({"size": "small", **sizes}),
        data=json.dumps({"dataset": str(tiny_dataset), "config": "musib"}),
        training="{batch_size: 12, cycles: [1], plain_epochs: 0, transpose_low: -6, transpose_high: 6, threads: 1}",
        **stages,
    )
    result = train_from_file(path)
    assert result.epochs == max(1, len(kind.stages))
    network = kind.from_pretrained(result.folder)
    assert inpaint(network, melodies(2), "sample").shape == (2, 96)


@NETWORKS
def test_the_shipped_recipe_and_config_belong_together(kind):
    """The recipe names the stages of the network, and makes the network that config.json describes."""
    model_type = kind.config_class().model_type
    folder = Path(__file__).parents[2] / "models" / model_type
    recipe = read_recipe(folder / "train.yaml")
    assert recipe.model_type == model_type
    assert [stage.name for stage in recipe.stages] == list(kind.stages)
    config = kind.config_class(**recipe.model)
    assert config.size == "small"
    assert dataclasses.asdict(config) == json.loads((folder / "config.json").read_text())


@NETWORKS
def test_the_registry_names_the_class(kind):
    assert load_plugin(INPAINTERS, kind.config_class().model_type, "model") is kind


def spoil(change: dict[str, Any]) -> Callable[[Any], None]:
    def rewrite(folder: Any) -> None:
        path = folder / "config.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), **change}))

    return rewrite


@NETWORKS
@pytest.mark.parametrize(
    ("break_it", "error", "message"),
    [
        (lambda folder: (folder / "model.safetensors").unlink(), NoDataError, "holds no model.safetensors; train it"),
        (lambda folder: (folder / "config.json").unlink(), NoDataError, "holds no config.json"),
        (lambda folder: (folder / "model.safetensors").write_bytes(b"12"), UnreadableFileError, "damaged"),
        (spoil({"dropout": 0.5, "future_switch": 1}), UnreadableFileError, "future_switch.*another version"),
        (spoil({"model_type": "somebody_elses"}), InvalidInputError, "load the model with the class of its type"),
    ],
)
def test_what_cannot_be_loaded_is_named(kind, break_it, error, message, tmp_path):
    build(kind).save_pretrained(tmp_path)
    break_it(tmp_path)
    with pytest.raises(error, match=message):
        kind.from_pretrained(tmp_path)


@NETWORKS
def test_weights_of_another_size_are_named(kind, tmp_path):
    build(kind).save_pretrained(tmp_path)
    small = json.dumps(dataclasses.asdict(kind.config_class(size="small")))
    (tmp_path / "config.json").write_text(small)
    with pytest.raises(
        UnreadableFileError, match=r"do not fit its config\.json.*take both files from one training run"
    ):
        kind.from_pretrained(tmp_path)


# --- bad input


@cases(DECODINGS)
def test_contexts_are_checked(kind, decoding, contexts):
    network = build(kind)
    with pytest.raises(ContextLengthError, match=r"got \(6, 96\)"):
        inpaint(network, contexts[:, :96], decoding)
    broken = contexts.copy()
    broken[0, 0] = 130
    with pytest.raises(InvalidTokensError, match="token 130"):
        inpaint(network, broken, decoding)


@NETWORKS
@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"dropout": 1.0}, InvalidInputError, r"dropout must lie in \[0, 1\), got 1.0"),
        ({"temperature": -1.0}, InvalidInputError, "temperature must be 0 or more"),
        ({"top_p": 0.0}, InvalidInputError, "top_p must lie above 0 and be at most 1, got 0.0"),
        ({"decoding": "greedy"}, UnknownNameError, "unknown decoding 'greedy'"),
    ],
)
def test_configs_are_checked(kind, changes, error, message):
    with pytest.raises(error, match=message):
        dataclasses.replace(TINY[kind], **changes)


@cases(LEAKING)
def test_a_leak_is_never_a_default(kind, decoding):
    with pytest.raises(InvalidInputError, match="reads the true middle and cannot be a default; ask for it by name"):
        dataclasses.replace(TINY[kind], decoding=decoding)
