"""What InpaintNet and SketchNet share: the parts of both, and the published oddities that both have."""

import numpy as np
import pytest
import torch
from tests.models.tiny_networks import build, losses, noise, tensor

from music_evals.annotations import HOLD, REST
from music_evals.models.inpaintnet import InpaintNet
from music_evals.models.layers.measures import HierarchicalDecoder, draw_span, fix_empty, normals
from music_evals.models.sketchnet import SketchNet
from music_evals.symbolic.encodings import factorized

pytestmark = pytest.mark.usefixtures("one_thread", "own_random_state")
KINDS = pytest.mark.parametrize("kind", [InpaintNet, SketchNet])
STAGES = pytest.mark.parametrize(
    ("kind", "stage"), [(kind, s) for kind in (InpaintNet, SketchNet) for s in kind.stages]
)


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


# --- oddities


@KINDS
def test_output_relu_leaves_no_logit_below_0(kind, contexts):
    with torch.no_grad():
        repaired, published = (build(kind, output_relu=switch)(tensor(contexts)) for switch in (False, True))
    assert repaired.min() < 0
    torch.testing.assert_close(published, repaired.relu())


@KINDS
def test_unmasked_future_changes_forced_training_alone(kind, contexts):
    _, stage, *_ = kind.stages
    for forcing, equal in ((0.0, True), (1.0, False)):
        first, second = (
            losses(build(kind, latent_forcing=forcing, unmasked_future=switch), contexts, stage)
            for switch in (False, True)
        )
        assert torch.allclose(first, second) == equal


@KINDS
def test_sampled_latents_make_the_greedy_decoding_random(kind, contexts):
    model = build(kind, sampled_latents=True, decoding="argmax")
    assert not model.deterministic
    first, second, again = (model.inpaint(contexts, rng=np.random.default_rng(seed)) for seed in (0, 1, 0))
    assert not np.array_equal(first, second)
    np.testing.assert_array_equal(first, again)
    np.testing.assert_array_equal(model.inpaint(contexts[:1], rng=np.random.default_rng(0)), first[:1])


@STAGES
def test_fix_empty_changes_what_is_to_be_written_only_on_demand(kind, stage, contexts):
    def both() -> list[torch.Tensor]:
        return [losses(build(kind, fix_empty=choice), contexts, stage, training=False) for choice in ("inputs", "all")]

    contexts[:, 144:168] = REST  # the first measure of the middle
    assert not torch.equal(*both())
    contexts[:, 144:168] = 60
    torch.testing.assert_close(*both())
