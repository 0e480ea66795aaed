"""SketchNet: factorised encoders, connector, sketches, schedules; `test_measures` has what InpaintNet shares."""

import dataclasses

import numpy as np
import pytest
import torch

from music_evals.annotations import HOLD, REST
from music_evals.errors import ContextLengthError, InvalidInputError, PairCountError
from music_evals.models.sketchnet import Sketch, SketchConnector, SketchNet, SketchNetConfig, factorize
from music_evals.models.training import fit
from music_evals.models.training.recipe import DataConfig, Recipe, Stage, TrainingConfig
from music_evals.symbolic.encodings import factorized

from .tiny_networks import TINY, build, losses, melodies, noise, tensor

pytestmark = pytest.mark.usefixtures("one_thread", "own_random_state")


def network(**changes) -> SketchNet:
    return build(SketchNet, **changes)


@pytest.fixture
def contexts() -> np.ndarray:
    return noise()


def fill(model: SketchNet, contexts: np.ndarray, sketches=None, seed: int = 0) -> np.ndarray:
    return model.inpaint(contexts, rng=np.random.default_rng(seed), sketches=sketches)


# --- the parts


def test_factorisation_is_that_of_the_encoding():
    tokens = np.random.default_rng(0).choice([60, 64, 67, HOLD, REST], (7, 24)).astype(np.uint8)
    expected = factorized.encode(tokens.flatten())
    pitches, lengths, rhythm = factorize(tensor(tokens))
    np.testing.assert_array_equal(pitches, expected.px)
    np.testing.assert_array_equal(lengths, expected.len_x)
    np.testing.assert_array_equal(rhythm + 1, expected.rx)


def test_pitch_and_rhythm_are_encoded_apart():
    vae = network().vae
    tokens = np.full((2, 24), HOLD, dtype=np.uint8)
    tokens[:, [0, 6, 12]] = 60, 64, 67
    tokens[1] = np.roll(tokens[1], 3)  # another rhythm, the same pitches
    tokens[1, 0] = REST
    mean, _ = vae.encode(tensor(tokens))  # (2, 2, latent)
    torch.testing.assert_close(mean[0, 0], mean[1, 0])
    assert not torch.allclose(mean[0, 1], mean[1, 1])
    tokens[1] = tokens[0]
    tokens[1, 6] = 65  # another pitch, the same rhythm
    mean, _ = vae.encode(tensor(tokens))
    assert not torch.allclose(mean[0, 0], mean[1, 0])
    torch.testing.assert_close(mean[0, 1], mean[1, 1])


def test_padding_is_not_read():
    vae, lengths = network().vae, torch.tensor([2, 24, 1])
    pitches = torch.randint(0, 128, (3, 24))
    changed = pitches.clone()
    changed[0, 2:], changed[2, 1:] = 5, 9
    torch.testing.assert_close(vae.encode_pitch(pitches, lengths), vae.encode_pitch(changed, lengths))


def test_positions_of_the_connector_by_hand():
    """The published table: sin and cos of position / 10000^(2i / size), alternating."""
    positions = SketchConnector(TINY[SketchNet]).positions
    assert positions.shape == (16, 16)
    for position, column in ((0, 0), (3, 0), (5, 7), (15, 14)):
        angle = position / 10_000 ** (2 * (column // 2) / 16)
        assert positions[position, column] == pytest.approx(np.cos(angle) if column % 2 else np.sin(angle), abs=1e-6)


def test_the_connector_is_a_transformer_whose_query_alone_is_normalised_first():
    """One layer against its formula, head by head."""
    model = network(connector_layers=1)
    layer, x = model.connector.layers[0], torch.randn(2, 16, 16)
    normed = torch.nn.functional.layer_norm(x, (16,), layer.norm.weight, layer.norm.bias, 1e-6)
    query, key, value = normed @ layer.query.weight.T, x @ layer.key.weight.T, x @ layer.value.weight.T
    heads = []
    for head in range(4):
        part = slice(4 * head, 4 * head + 4)
        weights = (query[..., part] @ key[..., part].transpose(1, 2) / 2).softmax(-1)  # sqrt(4) = 2
        heads.append(weights @ value[..., part])
    middle = x + torch.cat(heads, dim=-1) @ layer.out.weight.T
    torch.testing.assert_close(layer(x), middle + layer.feed_forward(middle), rtol=1e-4, atol=1e-4)


# --- likelihood


def test_a_step_is_given_its_measure_before_it_and_nothing_else_of_the_middle(contexts):
    changed = contexts.copy()
    changed[:, 175] = (contexts[:, 175] + 1) % 130  # tick 7 of the second measure
    differs = (network().nll(contexts) != network().nll(changed)).any(0)
    assert differs.nonzero()[0].min() == 31  # the token itself
    assert differs[32:].any()
    assert not differs[48:].any()


@pytest.mark.slow
def test_sampling_has_the_networks_distribution(contexts):
    """First token of the last measure: 1,000 draws against the 130 likelihoods, within 5 standard errors."""
    model = network()
    candidates = np.repeat(contexts[:1], 130, axis=0)
    candidates[:, 216] = np.arange(130)
    p = np.exp(-model.nll(candidates)[:, 72])
    model.decoding = "sample"
    drawn = fill(model, np.repeat(contexts[:1], 1000, axis=0))[:, 72]
    share = np.bincount(drawn, minlength=130) / 1000
    assert (np.abs(share - p) <= 5 * np.sqrt(p * (1 - p) / 1000) + 1e-9).all()


@pytest.mark.parametrize("decoding", ["argmax", "without_connector"])
def test_greedy_output_is_the_most_likely_at_every_step(contexts, decoding):
    model, filled = network(), contexts.copy()
    model.decoding = decoding
    filled[:, 144:240] = fill(model, contexts)
    with torch.no_grad():
        logits = model(tensor(filled))
    np.testing.assert_array_equal(logits.argmax(-1).numpy(), filled[:, 144:240])


def test_the_connector_matters_where_it_is_used(contexts):
    model = network()
    first = {}
    for decoding in ("argmax", "without_connector"):
        model.decoding = decoding
        first[decoding] = fill(model, contexts)
    with torch.no_grad():
        model.connector.out.bias += 1
    for decoding, same in (("argmax", False), ("without_connector", True)):
        model.decoding = decoding
        assert np.array_equal(fill(model, contexts), first[decoding]) == same


# --- sketches


NOTES = (60, 62, 64, 65)
STEPS = (1, *(2,) * 5) * 4


def test_an_empty_sketch_changes_nothing(contexts):
    np.testing.assert_array_equal(fill(network(), contexts), fill(network(), contexts, Sketch()))


@pytest.mark.parametrize("which", [{"pitches": (None, NOTES, None, None)}, {"rhythms": (None, STEPS, None, None)}])
def test_a_sketch_steers_the_middle(contexts, which):
    model = network()
    plain, steered = fill(model, contexts), fill(model, contexts, Sketch(**which))
    assert (plain != steered)[:, 24:48].any()


def test_swapped_latents_are_decoded_as_they_are():
    """What the connector makes of a measure cannot matter where both its pitch and its rhythm are sketched."""
    sketch = Sketch((NOTES, None, None, None), (STEPS, None, None, None))
    contexts = np.random.default_rng(1).integers(0, 130, (3, 384)).astype(np.uint8)
    middles = fill(network(swapped_latents=True, obey_sketches=False), contexts, sketch)
    assert (middles[:, :24] == middles[:1, :24]).all()  # three contexts, one measure
    assert not (middles[:, 24:] == middles[:1, 24:]).all()


def test_each_context_may_have_its_own_sketch(contexts):
    model = network()
    sketches = [Sketch(((note,), None, None, None)) for note in (40, 60, 80, 50, 55, 70)]
    together = fill(model, contexts, sketches)
    for row, sketch in enumerate(sketches):
        np.testing.assert_array_equal(together[row], fill(model, contexts[row : row + 1], sketch)[0])
    with pytest.raises(PairCountError):
        fill(model, contexts, sketches[:2])


def test_sketches_can_be_taken_from_a_middle(contexts):
    middle = np.full(96, HOLD, dtype=np.uint8)
    middle[[0, 6, 30]] = 60, 62, 64
    sketch = Sketch.from_tokens(middle)
    assert sketch.pitches == ((60, 62), (64,), None, None)
    assert sketch.rhythms[1] == (2,) * 6 + (1,) + (2,) * 17
    assert Sketch.from_tokens(middle, pitch=False).pitches == (None,) * 4
    assert Sketch.from_tokens(middle, rhythm=False).rhythms == (None,) * 4
    with pytest.raises(ContextLengthError, match="96"):
        Sketch.from_tokens(contexts[0])


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"pitches": (None, None)}, "pitches needs one entry a measure of the middle, 4; got 2"),
        ({"pitches": None}, "pitches needs one entry a measure of the middle, 4; got None"),
        ({"rhythms": 24}, "rhythms needs one entry a measure of the middle, 4; got 24"),
        ({"pitches": ((60.5,), None, None, None)}, "pitches of measure 0 must be 1 to 24 MIDI numbers"),
        ({"pitches": (("C4",), None, None, None)}, "pitches of measure 0 must be 1 to 24 MIDI numbers"),
        ({"pitches": (60, None, None, None)}, "pitches of measure 0 must be 1 to 24 MIDI numbers"),
        ({"pitches": ((), None, None, None)}, r"pitches of measure 0 must be 1 to 24 MIDI numbers 0\.\.127, or None"),
        ({"pitches": (None, (128,), None, None)}, "pitches of measure 1"),
        ({"rhythms": (None, None, (1, 2), None)}, "rhythms of measure 2 must be 24 steps of 1 onset, 2 hold or 3 rest"),
        ({"rhythms": ((0,) * 24, None, None, None)}, "rhythms of measure 0"),
        ({"pitches": (60, None, None, None)}, "pitches of measure 0 must be .* got 60"),
        (
            {"pitches": (None, (60, 62), None, None), "rhythms": (None, (1, 2, 3) * 8, None, None)},
            "measure 1 has 2 pitches and a rhythm of 8 onsets; give as many of both, or leave one to the network",
        ),
    ],
)
def test_sketches_are_checked(fields, message):
    with pytest.raises(InvalidInputError, match=message):
        Sketch(**fields)


@pytest.mark.parametrize("given", [list(melodies(1)[:, 144:240]), 60, "sketch", {"pitches": None}])
def test_something_else_than_sketches_is_named(contexts, given):
    with pytest.raises(InvalidInputError, match="from_tokens"):
        fill(network(), contexts, given)


@pytest.mark.parametrize("decoding", ["without_connector", "reference_pitch"])
def test_some_decodings_take_no_sketch(contexts, decoding):
    model = network()
    model.decoding = decoding
    with pytest.raises(InvalidInputError, match=f"{decoding} takes no sketches; choose argmax, sample or two_stage"):
        fill(model, contexts, Sketch())


def test_leaking_decodings_sketch_what_is_true(contexts):
    model = network(swapped_latents=True, obey_sketches=False)
    for decoding, pitch in (("reference_pitch", True), ("reference_rhythm", False)):
        model.decoding = "argmax"
        truth = [Sketch.from_tokens(row[144:240], pitch=pitch, rhythm=not pitch) for row in contexts]
        expected = fill(model, contexts, truth)
        model.decoding = decoding
        np.testing.assert_array_equal(fill(model, contexts), expected)


# --- oddities and schedules


def test_unmasked_future_shows_the_answer_to_the_backward_half():
    """The latent of the first measure depends on its own truth only with the switch."""
    inpainter = network().inpainter
    past, true, future = torch.randn(2, 6, 2, 6), torch.randn(2, 4, 2, 6), torch.randn(2, 6, 2, 6)
    changed = true.clone()
    changed[:, 0] += 1
    for ahead in (False, True):
        first, second = (inpainter(past, future, 4, truth, ahead=ahead)[:, 0] for truth in (true, changed))
        assert torch.equal(first, second) != ahead


def test_sketched_latents_are_drawn_too(contexts):
    model, sketch = network(sampled_latents=True, obey_sketches=False), Sketch((NOTES,) * 4, (STEPS,) * 4)
    assert not np.array_equal(fill(model, contexts, sketch), fill(model, contexts, sketch, seed=1))


def test_forcing_of_ticks_decays_with_the_steps(contexts, monkeypatch):
    """k / (k + exp(step / k)) with k = 100: 100/101 at first, 1/2 at step 100 ln 100 = 460, next to nothing later."""
    model = network(forcing_decay=100.0)
    shares = []
    decode = model.vae.decoder.forward

    def spy(z, true, forced):
        shares[-1].extend(forced)
        return decode(z, true, forced)

    monkeypatch.setattr(model.vae.decoder, "forward", spy)
    for step in (0, 460, 10**7):
        shares.append([])
        model.training_step = step
        for seed in range(10):
            model.begin_stage("vae")
            model.train()
            torch.manual_seed(seed)
            with torch.no_grad():
                model.training_loss(tensor(contexts[:1]))
    expected = [100 / 101, 0.5, 0.0]
    np.testing.assert_allclose([np.mean(share) for share in shares], expected, atol=0.12)  # 240 coins: 3.7 sigma
    model.eval()
    shares.append([])
    with torch.no_grad():
        model.training_loss(tensor(contexts[:1]))
    assert not any(shares[-1])  # never outside of training


def test_the_connector_is_shown_true_latents_in_some_batches(contexts):
    always = losses(network(reveal_batches=1.0, reveal=1.0), contexts, "connector")
    never = [losses(network(reveal_batches=0.0, reveal=1.0), contexts, "connector")]
    never.append(losses(network(reveal_batches=1.0, reveal=0.0), contexts, "connector"))
    assert not torch.allclose(always, never[0])
    changed = losses(network(reveal_batches=1.0, reveal=1.0), contexts, "connector", training=False)
    torch.testing.assert_close(changed, losses(network(reveal_batches=0.0), contexts, "connector", training=False))
    assert never[0].shape == never[1].shape == (6,)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"latent_size": -3}, "latent_size must be at least 1, got -3"),
        ({"reveal": 2.0}, r"reveal must lie in \[0, 1\], got 2.0"),
        ({"forcing_decay": 0.0}, "forcing_decay must be at least 1, got 0.0"),
        ({"connector_heads": 3}, r"connector_size must be a multiple of twice connector_heads \(6\), got 16"),
    ],
)
def test_configs_are_checked(changes, message):
    with pytest.raises(InvalidInputError, match=message):
        dataclasses.replace(TINY[SketchNet], **changes)


def test_every_setting_is_documented():
    documented = SketchNetConfig.__doc__ or ""
    assert all(field.name in documented for field in dataclasses.fields(SketchNetConfig))


# --- training


@pytest.mark.parametrize(
    ("cycles", "rate", "most"), [((1, 1, 1), 0.03, 1.0), pytest.param((7, 3, 3), 0.02, 0.2, marks=pytest.mark.slow)]
)
def test_a_batch_can_be_learnt_by_heart(tmp_path, cycles, rate, most):
    """Four tunes of quarter notes, each on a pitch of its own, then written without their middles; at first half."""
    contexts = np.full((4, 384), HOLD, dtype=np.uint8)
    contexts[:, ::6] = [[55], [60], [65], [70]]
    sizes = {"note_embedding_size": 8, "measure_size": 32, "latent_size": 8, "context_size": 16, "connector_size": 16}
    none = {"measure_dropout": 0.0, "dropout": 0.0, "connector_dropout": 0.0, "kl_weight": 0.0}
    model = SketchNet(SketchNetConfig(**sizes, **none, connector_layers=1, reveal_batches=0.0))
    model.begin_stage("connector")
    with torch.no_grad(), torch.random.fork_rng():
        before = model.eval().training_loss(tensor(contexts)).mean()
    shared = {"batch_size": 4, "epoch_contexts": 40, "learning_rate": rate}
    stages = tuple(
        Stage(name, TrainingConfig(cycles=(n,), **shared)) for name, n in zip(SketchNet.stages, cycles, strict=True)
    )
    recipe = Recipe("sketchnet", DataConfig("nowhere", "none"), {}, TrainingConfig(**shared), stages)
    result = fit(model, contexts, contexts, recipe, tmp_path)
    assert before > 2
    assert result.validation_loss < most
    for decoding in ("argmax", "without_connector"):
        model.decoding = decoding
        wrong = fill(model, contexts) != contexts[:, 144:240]
        assert wrong.mean() < 0.25 if most == 1 else not wrong.any()
    assert model.nll(contexts).mean() < most
