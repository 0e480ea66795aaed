"""The baseline of style transfer, and the three things that BMST changed, each with a switch."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
import torch

from music_evals.annotations import PianoRoll
from music_evals.errors import InvalidInputError, UnknownNameError
from music_evals.models.layers.rolls import Encoder
from music_evals.models.style_lstm import StyleLSTM, StyleLSTMConfig
from music_evals.models.training.data import RollExamples, RollWindows

pytestmark = pytest.mark.usefixtures("own_random_state")

TINY: dict[str, Any] = {
    "n_groups": 3, "group": 2, "width": 8, "n_layers": 2, "n_heads": 2, "inner": 8, "context": 2, "pitch_width": 4,
    "filters": 5, "dropout": 0.0,
}  # fmt: skip
NOVELTIES: dict[str, dict[str, Any]] = {
    "attention": {"encoder": "attention"},
    "step_heads": {"mask_share": 0.5, "step_heads": True},
    "pitch_code": {"pitch_code": True},
}


def model(**changes: Any) -> StyleLSTM:
    torch.manual_seed(0)
    return StyleLSTM(StyleLSTMConfig(**{**TINY, "pitch_code": False, **changes})).double().eval()


def roll(n: int, seed: int = 0) -> PianoRoll:
    cells = np.random.default_rng(seed).random((n, 84)) < 0.1
    before = np.vstack([np.zeros((1, 84), dtype=bool), cells[:-1]])
    phases = np.arange(n) / 8
    return PianoRoll(cells, cells & ~before, before & ~cells, phases % 1, phases / 4 % 1)


def windows(n: int = 2) -> RollWindows:
    batch = RollExamples([roll(20)], 6).batch(np.arange(5, 5 + n), np.zeros(n, dtype=np.int64), "cpu")
    return batch._replace(meta=batch.meta.double())


def meta_of(piece: PianoRoll) -> torch.Tensor:
    return torch.from_numpy(np.stack([piece.beat_phase, piece.bar_phase], axis=1))


@pytest.mark.parametrize("novelties", [[name] for name in NOVELTIES] + [[], [*NOVELTIES]], ids="+".join)
def test_each_novelty_of_bmst_can_be_had_alone_and_with_the_others(novelties: list[str]) -> None:
    """All of its weights learn, and it says of every cell how likely it sounds."""
    network = model(**{key: value for name in novelties for key, value in NOVELTIES[name].items()})
    assert isinstance(network.left.layers, Encoder) == ("attention" in novelties)
    assert (network.heads is None) == ("step_heads" not in novelties)
    assert network.pitches.embedding.in_channels == (9 if "pitch_code" in novelties else 2)
    loss = network.train().training_loss(windows(), generator=torch.Generator().manual_seed(1))
    assert loss.shape == (2,)
    loss.sum().backward()
    unused = "pitches.layers.6.residual"  # nothing comes after the last layer of pitches
    for name, weight in network.named_parameters():
        assert name.startswith(unused) or (weight.grad is not None and weight.grad.isfinite().all()), name
    found = network.eval().cell_probabilities(roll(9))
    assert ((found > 0) & (found < 1)).all()


def test_without_a_code_the_network_of_pitches_knows_distances_alone() -> None:
    """The same figure a tritone higher gets the same logits, where no edge of the keyboard is within reach."""
    rows = torch.zeros((2, 84), dtype=torch.bool)
    rows[0, [50, 53, 57]] = rows[1, [56, 59, 63]] = True
    network = model()
    # the layers' reach is 128 pitches: cut to 4 layers it is 16, so that both figures are far from the edge
    network.pitches.layers = network.pitches.layers[:4]
    context = torch.full((2, 84, 2), 0.3, dtype=torch.float64)
    below, above = network.pitch_logits(context, rows)
    torch.testing.assert_close(above[56:80], below[50:74], rtol=0, atol=1e-12)
    coded = model(pitch_code=True)
    coded.pitches.layers = coded.pitches.layers[:4]
    below, above = coded.pitch_logits(context, rows)
    assert not torch.allclose(above[56:80], below[50:74])


def test_starts_are_heard_by_both_sides_where_they_were_asked_for() -> None:
    piece = roll(9)
    args = torch.from_numpy(piece.cells), meta_of(piece)
    assert model().onset_probabilities(*args).count_nonzero() == 0
    network = model(**NOVELTIES["step_heads"])
    found = network.onset_probabilities(*args)
    assert ((found > 0) & (found < 1)).all()
    # eq. 6, of one step by hand: a product of what the middle's head makes of either side
    said, told = network._windows(*args, torch.tensor([4]), 0)
    sides = network._sides(said, told)
    by_hand = [network.middle(groups[:, -1]).view(3, 84)[1].sigmoid() for groups, _ in sides]
    torch.testing.assert_close(found[4], by_hand[0] * by_hand[1], rtol=0, atol=1e-12)


def test_the_loss_of_the_sides_is_that_of_hidden_steps_and_the_middle_by_hand() -> None:
    """With heads of zeros each cell costs ln 2, whatever is hidden: ln 2 a side, and half of the pitches' loss."""
    network, batch = model(**NOVELTIES["step_heads"]), windows()
    for layer in (network.heads, network.middle, network.pitches.out):
        torch.nn.init.zeros_(layer.weight)
        torch.nn.init.zeros_(layer.bias)
    found = network.training_loss(batch, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(found, torch.full((2,), 2.5 * np.log(2), dtype=torch.float64))
    # a head that says "sounds, starts, has ended" of nothing but the truth's starts of the middle changes its share
    network.middle.bias.data[84:168] = torch.where(batch.onsets[0, 6], 50.0, -50.0)
    first = network.training_loss(batch, generator=torch.Generator().manual_seed(0))[0]
    hidden = torch.rand((2, 13), generator=torch.Generator().manual_seed(0)) < 0.5
    asked = torch.stack([hidden[0, :6].sum() + 1, hidden[0, 7:].sum() + 1])
    assert (found[0] - first).item() == pytest.approx(float((np.log(2) / 3 / asked).sum()))


def test_without_heads_nothing_of_the_loss_has_changed() -> None:
    """The mean loss of the 84 cells of the middle step."""
    network, batch = model(pitch_code=True), windows()
    loss = network.training_loss(batch)
    torch.testing.assert_close(loss, network.validation_losses(batch) / 84)


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        ({"encoder": "gru"}, UnknownNameError),
        ({"encoder": "attention", "n_heads": 3}, InvalidInputError),
        ({"step_heads": True}, InvalidInputError),
    ],
)
def test_settings_that_do_not_go_together_are_refused(settings: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        dataclasses.replace(StyleLSTMConfig(**TINY), **settings)
