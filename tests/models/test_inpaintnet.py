"""InpaintNet: its decoder, likelihood, the published oddities, and whether it learns."""

import dataclasses

import numpy as np
import pytest
import torch

from music_evals.annotations import HOLD, REST
from music_evals.errors import InvalidInputError, UnknownNameError
from music_evals.models import inpaintnet
from music_evals.models._measures import HierarchicalDecoder, draw_span, fix_empty, normals
from music_evals.models._network import draw
from music_evals.models.inpaintnet import InpaintNet, InpaintNetConfig
from music_evals.models.recipe import DataConfig, Recipe, Stage, TrainingConfig
from music_evals.models.training import fit
from music_evals.symbolic import factorized

from .tiny_networks import TINY, build, noise, tensor

pytestmark = pytest.mark.usefixtures("one_thread", "own_random_state")


def network(**changes) -> InpaintNet:
    return build(InpaintNet, **changes)


@pytest.fixture
def contexts() -> np.ndarray:
    return noise()


# --- the parts


def test_fix_empty_is_that_of_the_encoding(contexts):
    contexts[:, 24:48], contexts[:, 96:120] = REST, HOLD
    fixed = fix_empty(tensor(contexts).view(6, 16, 24))
    for row, tokens in zip(fixed, contexts, strict=True):
        np.testing.assert_array_equal(row.flatten().numpy(), factorized.fix_empty(tokens))


def test_the_decoder_is_causal_and_forcing_runs_all_ticks_at_once():
    """Step by step with all but the last token forced, against the pass over whole beats."""
    decoder = HierarchicalDecoder(8, 12, 4, 0.0, output_relu=False)
    z, true = torch.randn(5, 8), torch.randint(0, 130, (5, 24))
    stepwise, _ = decoder(z, true, (True,) * 23 + (False,))
    at_once, _ = decoder(z, true, (True,) * 24)
    torch.testing.assert_close(stepwise, at_once)
    changed = true.clone()
    changed[:, 10] = (true[:, 10] + 1) % 130
    differs = (decoder(z, changed, (True,) * 24)[0] != at_once).any(-1).any(0)
    assert not differs[:11].any()
    assert differs[11]


def test_the_decoder_feeds_back_what_was_chosen():
    decoder = HierarchicalDecoder(8, 12, 4, 0.0, output_relu=False)
    z, wanted = torch.randn(5, 8), torch.randint(0, 130, (5, 24))
    logits, tokens = decoder(z, choose=lambda _, tick: wanted[:, tick])
    assert torch.equal(tokens, wanted)
    torch.testing.assert_close(logits, decoder(z, wanted, (True,) * 24)[0])


def test_spans_leave_a_measure_on_either_side():
    assert draw_span(varied=False) == (6, 10)
    spans = [draw_span(varied=True) for _ in range(2000)]
    assert {stop - start for start, stop in spans} == {2, 3, 4, 5, 6}
    assert min(start for start, _ in spans) == 1
    assert max(stop for _, stop in spans) == 15


def test_normals_are_normal():
    """Quartiles of the normal distribution: -0.6745, 0, 0.6745; 0 itself stays finite."""
    values = normals(torch.tensor([0.0, 0.25, 0.5, 0.75]))
    assert torch.isfinite(values[0])
    np.testing.assert_allclose(values[1:], [-0.6745, 0, 0.6745], atol=1e-4)


def test_nucleus_by_hand():
    """0.5, 0.3, 0.15, 0.05: a nucleus of 0.6 holds the first two, 5/8 and 3/8."""
    log_p = torch.tensor([[0.15, 0.5, 0.05, 0.3]]).double().log().repeat(4, 1)
    uniform = torch.tensor([0.0, 0.62, 0.63, 0.999])
    assert draw(log_p, 1.0, uniform, top_p=0.6).tolist() == [1, 1, 3, 3]
    assert draw(log_p, 1.0, uniform).tolist() == [0, 1, 1, 3]


# --- likelihood


def test_nll_sums_to_one_over_the_tokens_at_every_step(contexts):
    for step in (144, 200):
        candidates = np.repeat(contexts[:1], 130, axis=0)
        candidates[:, step] = np.arange(130)
        log_p = -network().nll(candidates)
        assert log_p.shape == (130, 96)
        assert np.exp(log_p[:, step - 144]).sum() == pytest.approx(1)
        np.testing.assert_allclose(log_p[:, : step - 144], log_p[:1, : step - 144].repeat(130, 0), atol=1e-5)


def test_a_measure_is_given_the_true_measures_before_it(contexts):
    changed = contexts.copy()
    changed[:, 150] = (contexts[:, 150] + 1) % 130
    differs = (network().nll(contexts) != network().nll(changed)).any(0)
    assert differs[168 - 144 :].any()


def test_sampling_has_the_networks_distribution(contexts):
    """Token of step 30, in the second measure, after a greedy start: 2,000 draws against 130 likelihoods, 5 sigma."""
    model = network()
    drawn = network()
    drawn.decoding = "sample"
    middles = drawn.inpaint(np.repeat(contexts[:1], 2000, axis=0), rng=np.random.default_rng(0))
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


def losses(model: InpaintNet, contexts: np.ndarray, stage: str, *, training: bool = True) -> torch.Tensor:
    model.begin_stage(stage)
    model.train(training)
    torch.manual_seed(0)
    with torch.no_grad():
        return model.training_loss(tensor(contexts))


def test_output_relu_leaves_no_logit_below_0(contexts):
    with torch.no_grad():
        repaired, published = (network(output_relu=switch)(tensor(contexts)) for switch in (False, True))
    assert repaired.min() < 0
    torch.testing.assert_close(published, repaired.relu())


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


def test_unmasked_future_changes_forced_training_alone(contexts):
    for forcing, equal in ((0.0, True), (1.0, False)):
        first, second = (
            losses(network(latent_forcing=forcing, unmasked_future=switch), contexts, "latent_rnn")
            for switch in (False, True)
        )
        assert torch.allclose(first, second) == equal


def test_unmasked_future_changes_the_leak(contexts):
    outputs = []
    for switch in (False, True):
        model = network(unmasked_future=switch)
        model.decoding = "forced_latents"
        outputs.append(model.inpaint(contexts, rng=np.random.default_rng(0)))
    same = (outputs[0] == outputs[1]).all(1)
    assert same.any()  # items that are not fed the truth
    assert not same.all()


def test_half_of_the_items_are_fed_the_truth():
    """The others get what the greedy decoding writes."""
    contexts = np.random.default_rng(5).integers(0, 130, (200, 384)).astype(np.uint8)
    model = network()
    greedy = model.inpaint(contexts, rng=np.random.default_rng(0))
    model.decoding = "forced_latents"
    fed = (model.inpaint(contexts, rng=np.random.default_rng(0)) != greedy).any(1)
    assert fed.mean() == pytest.approx(0.5, abs=0.11)  # 3 sigma of 200 coins


def test_sampled_latents_make_the_greedy_decoding_random(contexts):
    model = network(sampled_latents=True)
    assert not model.deterministic
    first, second, again = (model.inpaint(contexts, rng=np.random.default_rng(seed)) for seed in (0, 1, 0))
    assert not np.array_equal(first, second)
    np.testing.assert_array_equal(first, again)


def test_latents_are_drawn_in_training_and_are_means_outside(contexts):
    model = network(latent_forcing=0.0)
    model.begin_stage("latent_rnn")
    x = tensor(contexts)
    with torch.no_grad():
        assert torch.equal(model.eval().training_loss(x), model.training_loss(x))
        assert not torch.equal(model.train().training_loss(x), model.training_loss(x))


@pytest.mark.parametrize("stage", ["vae", "latent_rnn"])
def test_fix_empty_changes_what_is_to_be_written_only_on_demand(contexts, stage):
    contexts[:, 144:168] = REST  # the first measure of the middle
    first, second = (losses(network(fix_empty=choice), contexts, stage, training=False) for choice in ("inputs", "all"))
    assert not torch.equal(first, second)
    contexts[:, 144:168] = 60
    first, second = (losses(network(fix_empty=choice), contexts, stage, training=False) for choice in ("inputs", "all"))
    torch.testing.assert_close(first, second)


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
    settings = {"batch_size": 4, "patience": 99, **training}
    stages = tuple(
        Stage(name, TrainingConfig(cycles=(n,), **settings)) for name, n in zip(InpaintNet.stages, cycles, strict=True)
    )
    return Recipe("inpaintnet", DataConfig("nowhere", "none"), {}, TrainingConfig(**settings), stages)


def test_a_batch_can_be_learnt_by_heart(tmp_path):
    """Four tunes of quarter notes, each on a pitch of its own, then written without their middles."""
    contexts = np.full((4, 384), HOLD, dtype=np.uint8)
    contexts[:, ::6] = [[55], [60], [65], [70]]
    sizes = {"note_embedding_size": 8, "measure_size": 32, "latent_size": 8, "context_size": 16}
    config = InpaintNetConfig(**sizes, dropout=0.0, kl_weight=0.0, measure_forcing=1.0, latent_forcing=1.0)
    model = InpaintNet(config)
    model.begin_stage("latent_rnn")
    with torch.no_grad():
        before = model.eval().training_loss(tensor(contexts)).mean()
    result = fit(model, contexts, contexts, recipe(50, 30, learning_rate=0.02), tmp_path)
    assert before > 2
    assert result.validation_loss < 0.2
    np.testing.assert_array_equal(model.inpaint(contexts, rng=np.random.default_rng(0)), contexts[:, 144:240])
    assert model.nll(contexts).mean() < 0.2


def test_the_module_documents_every_setting():
    documented = inpaintnet.InpaintNetConfig.__doc__ or ""
    assert all(field.name in documented for field in dataclasses.fields(InpaintNetConfig))
