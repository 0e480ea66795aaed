"""BMST: its published size, what each part may see, and how it learns."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from music_evals.annotations import PianoRoll
from music_evals.errors import InvalidInputError, UnknownNameError
from music_evals.models.bmst import BMST, BMSTConfig, focal_truth
from music_evals.models.layers.rolls import Encoder, PitchNetwork, Sizes, skewed
from music_evals.models.training.data import RollWindows

TINY = BMSTConfig(window=6, embedding=4, n_layers=1, n_heads=2, inner=8, context=3, pitch_width=4, filters=5)

pytestmark = pytest.mark.usefixtures("own_random_state")


def network(**changes: object) -> BMST:
    return BMST(dataclasses.replace(TINY, **changes)).double().eval()


def roll(n: int, seed: int = 0) -> PianoRoll:
    rng = np.random.default_rng(seed)
    cells = rng.random((n, 84)) < 0.1
    before = np.vstack([np.zeros((1, 84), dtype=bool), cells[:-1]])
    phases = np.arange(n) / 8
    return PianoRoll(cells, cells & ~before, before & ~cells, phases % 1, phases / 4 % 1)


def windows(n: int, seed: int = 0, config: BMSTConfig = TINY) -> RollWindows:
    generator = torch.Generator().manual_seed(seed)
    shape = (n, 2 * config.window + 1, 84)
    cells, onsets, offsets = (torch.rand(shape, generator=generator) < 0.1 for _ in range(3))
    return RollWindows(cells, onsets & cells, offsets & ~cells, torch.rand(*shape[:2], 4, generator=generator))


def meta_of(piece: PianoRoll) -> Tensor:
    return torch.from_numpy(np.stack([piece.beat_phase, piece.bar_phase], axis=1))


# --- sizes


def test_the_published_network_has_as_many_parameters_as_the_authors_code() -> None:
    with torch.device("meta"):
        published = BMST(BMSTConfig(pitch_head="scalar", mirrored=False, loss="focal"))
    parts = {name: sum(p.numel() for p in module.parameters()) for name, module in published.named_children()}
    assert sum(parts.values()) == 3_424_661
    assert parts == {
        "cells": 7_482, "steps": 7_482, "dropout": 0, "left": 4 * 235_201 + 392_040, "right": 4 * 235_201 + 392_040,
        "heads": 90_972, "around": 605_640, "pitches": 47_397,
    }  # fmt: skip


def test_the_small_size_is_small() -> None:
    with torch.device("meta"):
        assert sum(p.numel() for p in BMST(BMSTConfig(size="small")).parameters()) < 2_500_000


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"size": "huge"}, UnknownNameError),
        ({"loss": "hinge"}, UnknownNameError),
        ({"pitch_head": "flat"}, UnknownNameError),
        ({"window": -1}, InvalidInputError),
        ({"dropout": 1.0}, InvalidInputError),
        ({"focal_alpha": 0.0}, InvalidInputError),
        ({"embedding": 3}, InvalidInputError),
        ({"n_heads": 3}, InvalidInputError),
        ({"model_type": "vli"}, InvalidInputError),
    ],
)
def test_settings_out_of_range(changes: dict[str, object], error: type[Exception]) -> None:
    with pytest.raises(error):
        dataclasses.replace(TINY, **changes)


# --- layers


def test_relative_terms_stand_where_their_distance_is() -> None:
    terms = torch.arange(16.0).reshape(4, 4)
    expected = [[terms[i, 3 - (i - j)] if j <= i else 0.0 for j in range(4)] for i in range(4)]
    assert torch.equal(skewed(terms), torch.tensor(expected))


@pytest.mark.parametrize("near", [-1, 0])
def test_the_nearest_step_alone_is_that_of_all_steps(near: int) -> None:
    encoder = Encoder(Sizes(width=8, n_heads=2, inner=8, n_layers=2, length=7), 0.3, near=near).double().eval()
    x = torch.randn(3, 7, 8, dtype=torch.float64)
    torch.testing.assert_close(encoder.nearest(x), encoder(x)[:, near], rtol=0, atol=1e-12)


@pytest.mark.parametrize("pitch", [0, 1, 40, 83])
def test_a_pitch_is_told_those_below_it_alone(pitch: int) -> None:
    pitches = PitchNetwork(3, 16, 64, 0.3).double().eval()
    context, rows = torch.randn(8, 84, 3, dtype=torch.float64), torch.rand(8, 84) < 0.3
    others = rows.clone()
    others[:, pitch:] = ~others[:, pitch:]
    before, after = pitches(context, rows), pitches(context, others)
    assert torch.equal(before[:, : pitch + 1], after[:, : pitch + 1])
    if pitch < 83:
        assert (before[:, pitch + 1] != after[:, pitch + 1]).any()


@pytest.mark.parametrize("pitch", [0, 40, 83])
def test_the_published_pitches_are_told_those_below_alone(pitch: int) -> None:
    model = network(pitch_head="scalar")
    pitches = model.pitches
    context, rows = torch.randn(2, 84, TINY.context, dtype=torch.float64), torch.rand(2, 84) < 0.3
    others = rows.clone()
    others[:, pitch:] = ~others[:, pitch:]
    asked = torch.tensor([pitch, pitch])
    assert torch.equal(pitches(context, rows, asked), pitches(context, others, asked))
    torch.testing.assert_close(model.pitch_logits(context, rows)[:, pitch], pitches(context, rows, asked))


@pytest.mark.parametrize(
    ("alpha", "outputs"),
    [
        (0.25, [0.050, 0.108, 0.182, 0.306, 0.399, 0.500, 0.786]),
        (0.6, [0.083, 0.174, 0.280, 0.436, 0.538, 0.637, 0.865]),
    ],
)
def test_what_focal_loss_makes_of_probabilities(alpha: float, outputs: list[float]) -> None:
    """The outputs that minimise the loss at .001, .01, ..., to three digits; found by minimising it numerically."""
    found = focal_truth(torch.tensor(outputs, dtype=torch.float64), alpha)
    np.testing.assert_allclose(found, [0.001, 0.01, 0.05, 0.25, 0.5, 0.75, 0.99], rtol=0.03)


@given(q=st.floats(0.02, 0.98), alpha=st.floats(0.1, 0.9))
def test_the_map_undoes_the_least_focal_loss(q: float, alpha: float) -> None:
    p = torch.linspace(1e-4, 1 - 1e-4, 20_001, dtype=torch.float64)
    loss = -q * alpha * (1 - p) ** 2 * p.log() - (1 - q) * (1 - alpha) * p**2 * (1 - p).log()
    assert float(focal_truth(p[loss.argmin()], alpha)) == pytest.approx(q, abs=1e-3)


# --- what is seen


@pytest.mark.parametrize("mirrored", [True, False])
def test_a_step_sees_its_window_but_not_itself(mirrored: bool) -> None:
    model, piece = network(mirrored=mirrored), roll(30)
    cells, step = torch.from_numpy(piece.cells), torch.tensor([15])
    context = model.context(cells, meta_of(piece), step)
    for other, seen in ((15, False), (9, True), (14, True), (16, True), (21, True), (8, False), (22, False)):
        changed = cells.clone()
        changed[other] = ~changed[other]
        assert torch.equal(model.context(changed, meta_of(piece), step), context) == (not seen), other


def test_hidden_neighbours_are_not_seen() -> None:
    model, piece = network(), roll(30)
    cells, step = torch.from_numpy(piece.cells), torch.tensor([15])
    context = model.context(cells, meta_of(piece), step, hidden=2)
    for other, seen in ((13, False), (17, False), (12, True), (18, True)):
        changed = cells.clone()
        changed[other] = ~changed[other]
        assert torch.equal(model.context(changed, meta_of(piece), step, hidden=2), context) == (not seen), other


def test_mirrored_sides_are_mirrors_of_each_other() -> None:
    """With equal weights, a roll and its mirror image give each other's sides; not so in the published reading."""
    for mirrored in (True, False):
        model = network(mirrored=mirrored)
        model.right.load_state_dict(model.left.state_dict())
        model.code.copy_((model.code + model.code.flip(0)) / 2)  # positions by their distance alone
        cells = windows(1).cells
        meta = torch.zeros(1, cells.shape[1], 4, dtype=torch.float64)
        left, right = model._sides(model._embed(cells), meta)
        swapped, _ = model._sides(model._embed(cells.flip(1)), meta)
        assert torch.equal(model.right.nearest(right), model.left.nearest(swapped)) == mirrored
        assert left.shape == right.shape


def test_the_middle_of_a_window_is_the_step_of_a_roll() -> None:
    """Training and sampling cut the same windows."""
    model, piece = network(), roll(13)
    cells, meta = torch.from_numpy(piece.cells), meta_of(piece)
    zeros = torch.zeros(13, 2, dtype=torch.float64)
    whole = RollWindows(*(cells[None] for _ in range(3)), torch.cat([zeros, meta], dim=1)[None])
    likely = torch.from_numpy(model.cell_probabilities(piece))[6]
    nll = torch.nn.functional.binary_cross_entropy(likely, cells[6].double(), reduction="sum")
    assert model.validation_losses(whole)[0].item() == pytest.approx(float(nll), abs=1e-9)


# --- training


@pytest.mark.slow
@pytest.mark.parametrize("changes", [{"loss": "focal"}, {"pitch_head": "scalar", "mirrored": False}], ids=str)
def test_one_batch_can_be_learnt_by_heart(changes: dict[str, object]) -> None:
    model = BMST(dataclasses.replace(TINY, dropout=0.0, **changes)).train()
    batch = windows(2)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.03)
    generator = torch.Generator().manual_seed(0)
    losses = []
    for _ in range(50):
        loss = model.training_loss(batch, generator=generator).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert np.mean(losses[-10:]) < 0.6 * losses[0]


def test_hidden_steps_are_not_seen_in_training() -> None:
    """With every step hidden, what is heard of the sides does not depend on the cells."""
    model = network(mask_share=0.99)
    first, second = windows(1, 0), windows(1, 1)
    hidden = torch.ones(1, 2 * TINY.window + 1, dtype=torch.bool)
    assert torch.equal(model._embed(first.cells, hidden), model._embed(second.cells, hidden))
    assert not torch.equal(model._embed(first.cells), model._embed(second.cells))


def test_equal_seeds_give_equal_losses() -> None:
    model = network()
    first, second, other = (
        model.training_loss(windows(2), generator=torch.Generator().manual_seed(seed)).detach() for seed in (1, 1, 2)
    )
    assert torch.equal(first, second)
    assert not torch.equal(first, other)
