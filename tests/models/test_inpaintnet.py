"""InpaintNet: its likelihood, its own oddities, and whether it learns; `test_measures` has what SketchNet shares."""

import dataclasses

import numpy as np
import pytest
import torch

from music_evals.annotations import HOLD
from music_evals.errors import InvalidInputError, UnknownNameError
from music_evals.models import inpaintnet
from music_evals.models.inpaintnet import InpaintNet, InpaintNetConfig
from music_evals.models.training import fit
from music_evals.models.training.recipe import DataConfig, Recipe, Stage, TrainingConfig

from .tiny_networks import TINY, build, losses, noise, tensor

pytestmark = pytest.mark.usefixtures("one_thread", "own_random_state")


def network(**changes) -> InpaintNet:
    return build(InpaintNet, **changes)


@pytest.fixture
def contexts() -> np.ndarray:
    return noise()


# --- likelihood


def test_a_measure_is_given_the_true_measures_before_it(contexts):
    changed = contexts.copy()
    changed[:, 150] = (contexts[:, 150] + 1) % 130
    differs = (network().nll(contexts) != network().nll(changed)).any(0)
    assert differs[168 - 144 :].any()


@pytest.mark.slow
def test_sampling_has_the_networks_distribution(contexts):
    """Token of step 30, in the second measure, after a greedy start: 1,000 draws against 130 likelihoods, 5 sigma."""
    model = network()
    drawn = network()
    drawn.decoding = "sample"
    middles = drawn.inpaint(np.repeat(contexts[:1], 1000, axis=0), rng=np.random.default_rng(0))
    # most common first token: condition on it, and look at the second
    first = np.bincount(middles[:, 0]).argmax()
    middles = middles[middles[:, 0] == first]
    candidates = np.repeat(contexts[:1], 130, axis=0)
    candidates[:, 144], candidates[:, 145] = first, np.arange(130)
    p = np.exp(-model.nll(candidates)[:, 1])
    share = np.bincount(middles[:, 1], minlength=130) / len(middles)
    assert len(middles) > 50
    assert (np.abs(share - p) <= 5 * np.sqrt(p * (1 - p) / len(middles)) + 1e-9).all()


def test_greedy_output_is_the_most_likely_at_every_step(contexts):
    """The likelihood of the greedy middle, fed back, has its maximum on each of its tokens."""
    model, filled = network(), contexts.copy()
    filled[:, 144:240] = model.inpaint(contexts, rng=np.random.default_rng(0))
    with torch.no_grad():
        logits = model(tensor(filled))
    np.testing.assert_array_equal(logits.argmax(-1).numpy(), filled[:, 144:240])


# --- oddities


def test_unmasked_future_shows_the_answer_to_the_backward_half():
    """Under forcing, the latent written for a measure depends on its own truth only with the switch."""
    model = network(latent_forcing=1.0)
    latents = torch.randn(2, 5, 8)
    changed = latents.clone()
    changed[:, 2] += 1  # the truth of the second measure to be written, fed in to write the third
    state = model.latent_rnn.read(latents, latents)
    together = [model.latent_rnn.write(x[:, 1:4], state)[0][:, 0] for x in (latents, changed)]
    assert not torch.equal(*together)  # written first, it has seen what comes later
    alone = [model.latent_rnn.write(x[:, 1:2], state)[0][:, 0] for x in (latents, changed)]
    assert torch.equal(*alone)


def test_unmasked_future_changes_the_leak(contexts):
    outputs = []
    for switch in (False, True):
        model = network(unmasked_future=switch)
        model.decoding = "forced_latents"
        outputs.append(model.inpaint(contexts, rng=np.random.default_rng(0)))
    same = (outputs[0] == outputs[1]).all(1)
    assert same.any()  # items that are not fed the truth
    assert not same.all()


@pytest.mark.slow
def test_half_of_the_items_are_fed_the_truth():
    """The others get what the greedy decoding writes."""
    contexts = np.random.default_rng(5).integers(0, 130, (200, 384)).astype(np.uint8)
    model = network()
    greedy = model.inpaint(contexts, rng=np.random.default_rng(0))
    model.decoding = "forced_latents"
    fed = (model.inpaint(contexts, rng=np.random.default_rng(0)) != greedy).any(1)
    assert fed.mean() == pytest.approx(0.5, abs=0.11)  # 3 sigma of 200 coins


def test_latents_are_drawn_in_training_and_are_means_outside(contexts):
    model = network(latent_forcing=0.0)
    model.begin_stage("latent_rnn")
    x = tensor(contexts)
    with torch.no_grad():
        assert torch.equal(model.eval().training_loss(x), model.training_loss(x))
        assert not torch.equal(model.train().training_loss(x), model.training_loss(x))


def test_measure_forcing_changes_the_first_stage(contexts):
    first, second = (losses(network(measure_forcing=share), contexts, "vae") for share in (0.0, 1.0))
    assert not torch.allclose(first, second)


def test_the_divergence_is_weighted(contexts):
    """By hand: means of 1 and deviations of 1 cost 1/2 for each of 8 numbers."""
    model = network(kl_weight=0.25)
    with torch.no_grad():
        for head, value in ((model.vae.mean, 1.0), (model.vae.log_std, 0.0)):
            head[-1].weight.zero_()
            head[-1].bias.fill_(value)
    free = network(kl_weight=0.0)
    free.load_state_dict(model.state_dict())
    difference = losses(model, contexts, "vae", training=False) - losses(free, contexts, "vae", training=False)
    np.testing.assert_allclose(difference, 0.25 * 8 / 2, rtol=1e-4)


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"measure_size": -1}, InvalidInputError, "measure_size must be at least 1, got -1"),
        ({"latent_forcing": 1.5}, InvalidInputError, r"latent_forcing must lie in \[0, 1\], got 1.5"),
        ({"kl_weight": -1.0}, InvalidInputError, "kl_weight must not be negative"),
        ({"measures_per_context": 17}, InvalidInputError, r"must lie in 1\.\.16, got 17"),
        ({"fix_empty": "none"}, UnknownNameError, "unknown fix_empty 'none'"),
    ],
)
def test_configs_are_checked(changes, error, message):
    with pytest.raises(error, match=message):
        dataclasses.replace(TINY[InpaintNet], **changes)


# --- training


def recipe(*cycles: int, **training) -> Recipe:
    settings = {"batch_size": 4, "epoch_contexts": 40, **training}
    stages = tuple(
        Stage(name, TrainingConfig(cycles=(n,), **settings)) for name, n in zip(InpaintNet.stages, cycles, strict=True)
    )
    return Recipe("inpaintnet", DataConfig("nowhere", "none"), {}, TrainingConfig(**settings), stages)


@pytest.mark.parametrize(
    ("cycles", "rate", "most"), [((1, 1), 0.05, 1.0), pytest.param((5, 3), 0.02, 0.2, marks=pytest.mark.slow)]
)
def test_a_batch_can_be_learnt_by_heart(tmp_path, cycles, rate, most):
    """Four tunes of quarter notes, each on a pitch of its own, then written without their middles; at first half."""
    contexts = np.full((4, 384), HOLD, dtype=np.uint8)
    contexts[:, ::6] = [[55], [60], [65], [70]]
    sizes = {"note_embedding_size": 8, "measure_size": 32, "latent_size": 8, "context_size": 16}
    config = InpaintNetConfig(**sizes, dropout=0.0, kl_weight=0.0, measure_forcing=1.0, latent_forcing=1.0)
    model = InpaintNet(config)
    model.begin_stage("latent_rnn")
    with torch.no_grad():
        before = model.eval().training_loss(tensor(contexts)).mean()
    result = fit(model, contexts, contexts, recipe(*cycles, learning_rate=rate), tmp_path)
    assert before > 2
    assert result.validation_loss < most
    wrong = model.inpaint(contexts, rng=np.random.default_rng(0)) != contexts[:, 144:240]
    assert wrong.mean() < 0.25 if most == 1 else not wrong.any()
    assert model.nll(contexts).mean() < most


def test_the_module_documents_every_setting():
    documented = inpaintnet.InpaintNetConfig.__doc__ or ""
    assert all(field.name in documented for field in dataclasses.fields(InpaintNetConfig))
