"""Anticipation-RNN: size, what it may see, decoding, likelihood, files."""

import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from music_evals.annotations import HOLD, REST
from music_evals.errors import InvalidInputError
from music_evals.models.anticipation_rnn import DECODINGS, AnticipationRNN, AnticipationRNNConfig, _varied_masks

from .tiny_networks import TINY as TINY_OF
from .tiny_networks import build, noise

pytestmark = pytest.mark.usefixtures("one_thread")

PAST, MIDDLE, FUTURE = slice(0, 144), slice(144, 240), slice(240, 384)
HONEST = [decoding for decoding in DECODINGS if decoding != "teacher_forced"]
TINY = TINY_OF[AnticipationRNN]
SHIPPED = Path(__file__).parents[2] / "models" / "anticipation_rnn"


@pytest.fixture
def model() -> AnticipationRNN:
    return build(AnticipationRNN)


@pytest.fixture
def contexts() -> np.ndarray:
    return noise()


def inpaint(model: AnticipationRNN, contexts: np.ndarray, decoding: str, seed: int = 0) -> np.ndarray:
    model.decoding = decoding
    return model.inpaint(contexts, rng=np.random.default_rng(seed))


# --- the network


def test_it_has_the_published_number_of_parameters():
    """Counted on the MUSIB code with its defaults."""
    with torch.device("meta"):
        model = AnticipationRNN()
    assert sum(parameter.numel() for parameter in model.parameters()) == 1_992_413


def test_shapes(model, contexts):
    tokens = torch.from_numpy(contexts.astype(np.int64))
    assert model(tokens).shape == (6, 96, 131)
    assert model.anticipate(tokens).shape == (6, 384, 12)
    assert model.training_loss(tokens).shape == (6,)


def test_the_constraint_lstm_reads_from_right_to_left(model, contexts):
    """A change at a step changes what is anticipated there and before, never after."""
    tokens = torch.from_numpy(contexts.astype(np.int64))
    changed = tokens.clone()
    changed[:, 200] = (tokens[:, 200] + 1) % 130
    with torch.no_grad():
        differs = (model.anticipate(tokens) != model.anticipate(changed)).any(-1).any(0).numpy()
    assert differs[200]
    assert differs[:200].any()
    assert not differs[201:].any()


def test_teacher_forced_logits_are_causal_in_the_middle(model, contexts):
    """The prediction of a step depends on the middle before it, not on itself or later."""
    changed = contexts.copy()
    changed[:, 190] = (contexts[:, 190] + 1) % 130
    with torch.no_grad():
        first, second = (model(torch.from_numpy(x.astype(np.int64))).numpy() for x in (contexts, changed))
    differs = (first != second).any(-1).any(0)
    assert not differs[: 190 - 144 + 1].any()
    assert differs[190 - 144 + 1]


def test_past_and_future_matter(model, contexts):
    plain = model.nll(contexts)
    for step in (143, 240):
        changed = contexts.copy()
        changed[:, step] = (contexts[:, step] + 1) % 130
        assert (model.nll(changed) != plain).any(), step


def test_note_dropout_hides_whole_steps():
    """Dropout1d over (batch, steps, features): a hidden step is zero in all features."""
    dropped = AnticipationRNN(TINY).train().note_dropout(torch.ones(4, 500, 4))
    assert set(dropped.sum(-1).unique().tolist()) == {0.0, 4 / (1 - TINY.note_dropout)}


# --- decoding


def test_step_by_step_decoding_agrees_with_the_whole_run(model, contexts):
    """Teacher forcing on argmax's own output must choose the same tokens again, at every step."""
    middles = inpaint(model, contexts, "argmax")
    filled = contexts.copy()
    filled[:, MIDDLE] = middles
    np.testing.assert_array_equal(inpaint(model, filled, "teacher_forced"), middles)


@pytest.mark.parametrize("decoding", ["sample", "two_stage"])
def test_sampling_has_the_networks_distribution(model, contexts, decoding):
    """First middle token: 1,000 draws at temperature 1 against the 130 likelihoods, within 5 standard errors."""
    candidates = np.repeat(contexts[:1], 130, axis=0)
    candidates[:, 144] = np.arange(130)
    p = np.exp(-model.nll(candidates)[:, 0])
    assert p.sum() == pytest.approx(1)
    drawn = inpaint(model, np.repeat(contexts[:1], 1000, axis=0), decoding)[:, 0]
    share = np.bincount(drawn, minlength=130) / 1000
    assert (np.abs(share - p) <= 5 * np.sqrt(p * (1 - p) / 1000) + 1e-9).all()


def test_two_stage_tempers_onsets_as_one(model, contexts):
    """Near temperature 0 the first token's kind is the most likely of onset, hold, rest, not that of the top token."""
    candidates = np.repeat(contexts[:1], 130, axis=0)
    candidates[:, 144] = np.arange(130)
    p = np.exp(-model.nll(candidates)[:, 0])
    kind = int(np.argmax([p[:HOLD].sum(), p[HOLD], p[REST]]))
    expected = int(np.argmax(p[:HOLD])) if kind == 0 else HOLD - 1 + kind
    for temperature in (0, 1e-4):
        model.temperature = temperature
        assert inpaint(model, contexts[:1], "two_stage")[0, 0] == expected
        assert model.deterministic == (temperature == 0)


# --- likelihood


def test_training_loss_is_the_mean_over_131_outputs(model, contexts):
    """Against PyTorch's own losses, from the logits."""
    tokens = torch.from_numpy(contexts.astype(np.int64))
    with torch.no_grad():
        logits, loss = model(tokens), model.training_loss(tokens)
    for row in range(6):
        expected = torch.nn.CrossEntropyLoss()(logits[row], tokens[row, MIDDLE])
        assert loss[row].item() == pytest.approx(expected.item(), rel=1e-5)


def test_varied_training_predicts_every_step_up_to_the_end_of_the_middle(model, contexts):
    """With nothing but weights at zero, each of 240 steps costs ln 131; divided by 96."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
        tokens = torch.from_numpy(contexts.astype(np.int64))
        loss = model.training_loss(tokens, varied=True)
    np.testing.assert_allclose(loss.numpy(), 240 / 96 * np.log(131), rtol=1e-5)


def test_varied_masks():
    """Half of the rows hide the middle, half another span; in half of both some of it is shown. The future is open."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        masks = _varied_masks(torch.zeros(4000, 384, dtype=torch.int64)).numpy()
    assert not masks[:, 240:].any()
    expected = np.zeros(384, dtype=bool)
    expected[MIDDLE] = True
    whole_middle = (masks == expected).all(1)
    assert whole_middle.mean() == pytest.approx(0.25, abs=0.03)
    gaps = (np.diff(masks.astype(int), axis=1) == 1).sum(1) + masks[:, 0]
    assert (gaps <= 1).mean() == pytest.approx(0.5, abs=0.05)  # in one piece: nothing of it is shown
    assert masks[:, 96:144].any(1).mean() > 0.2  # the past is hidden too


# --- files


@pytest.mark.slow
def test_save_and_load_in_a_fresh_process_gives_the_same_middles(model, contexts, tmp_path):
    model.save_pretrained(tmp_path)
    loaded = AnticipationRNN.from_pretrained(tmp_path)
    np.save(tmp_path / "contexts.npy", contexts)
    script = (
        "import sys, numpy as np; from music_evals.models.anticipation_rnn import AnticipationRNN\n"
        "folder = sys.argv[1]; model = AnticipationRNN.from_pretrained(folder); x = np.load(folder + '/contexts.npy')\n"
        "np.savez(folder + '/out.npz', middles=model.inpaint(x, rng=np.random.default_rng(4)), nll=model.nll(x))"
    )
    result = subprocess.run(
        [sys.executable, "-c", script, tmp_path],
        check=True,
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert result.stdout == ""
    other = np.load(tmp_path / "out.npz")
    np.testing.assert_array_equal(loaded.inpaint(contexts, rng=np.random.default_rng(4)), other["middles"])
    np.testing.assert_array_equal(loaded.nll(contexts), other["nll"])


def test_weights_are_stored_in_half_and_loaded_in_single_precision(model, contexts, tmp_path):
    from safetensors.torch import load_file

    model.save_pretrained(tmp_path / "first")
    stored = load_file(tmp_path / "first" / "model.safetensors")
    assert {tensor.dtype for tensor in stored.values()} == {torch.float16}
    loaded = AnticipationRNN.from_pretrained(tmp_path / "first")
    assert {parameter.dtype for parameter in loaded.parameters()} == {torch.float32}
    np.testing.assert_allclose(loaded.nll(contexts), model.nll(contexts), atol=0.2)
    loaded.save_pretrained(tmp_path / "second")
    for name in ("model.safetensors", "config.json"):
        assert (tmp_path / "second" / name).read_bytes() == (tmp_path / "first" / name).read_bytes()
    assert not list(tmp_path.rglob("*.partial"))


def test_config_round_trips_through_json(tmp_path):
    config = dataclasses.replace(TINY, decoding="sample", temperature=0.7)
    AnticipationRNN(config).save_pretrained(tmp_path)
    assert json.loads((tmp_path / "config.json").read_text())["model_type"] == "anticipation_rnn"
    assert AnticipationRNN.from_pretrained(tmp_path).config == config


def test_decoding_can_be_chosen_when_loading(model, tmp_path):
    model.save_pretrained(tmp_path)
    loaded = AnticipationRNN.from_pretrained(tmp_path, decoding="sample", temperature=0.5)
    assert (loaded.decoding, loaded.temperature, loaded.name) == ("sample", 0.5, "anticipation_rnn:sample")
    assert AnticipationRNN.from_pretrained(tmp_path).name == "anticipation_rnn"


def test_the_shipped_model_loads_and_is_small(contexts):
    weights = SHIPPED / "model.safetensors"
    assert weights.stat().st_size <= 12e6
    model = AnticipationRNN.from_pretrained(SHIPPED)
    assert not model.training
    assert not model.sees_reference
    assert sum(parameter.numel() for parameter in model.parameters()) == 1_992_413
    assert model.inpaint(contexts, rng=np.random.default_rng(0)).shape == (6, 96)


# --- bad input


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"hidden_size": 0}, "hidden_size must be at least 1, got 0"),
        ({"dropout": 1.0}, r"dropout must lie in \[0, 1\), got 1.0"),
        ({"temperature": -1.0}, "temperature must be 0 or more"),
        ({"temperature": float("nan")}, "temperature must be finite"),
        ({"decoding": "teacher_forced"}, "cannot be a default"),
        ({"model_type": "vli"}, "must be 'anticipation_rnn', got 'vli'"),
    ],
)
def test_configs_are_checked(changes, message):
    with pytest.raises(InvalidInputError, match=message):
        AnticipationRNNConfig(**changes)
