"""Windows of piano rolls as training sees them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from music_evals.annotations import LOWEST_PITCH, PianoRoll, Score
from music_evals.errors import NoDataError
from music_evals.models.bmst import BMST, BMSTConfig
from music_evals.models.training import fit
from music_evals.models.training.data import RollExamples
from music_evals.models.training.recipe import DataConfig, Recipe, TrainingConfig
from music_evals.symbolic.encodings.piano_rolls import piano_roll
from music_evals.symbolic.notes import make_notes

pytestmark = pytest.mark.usefixtures("one_thread", "own_random_state")

WINDOW = 6


def tune(pitches: list[int], quarters: int = 1) -> PianoRoll:
    """One note after the other, a quarter each."""
    n = len(pitches)
    return piano_roll(Score(make_notes(8 * quarters * np.arange(n), [8 * quarters] * n, pitches), 8))


ROLLS = [tune([60, 64, 67, 72]), tune([21, 40]), tune([104, 100, 90])]


def examples() -> RollExamples:
    return RollExamples(ROLLS, WINDOW)


def test_every_step_of_every_roll_is_one() -> None:
    found = examples()
    assert len(found) == sum(len(roll) for roll in ROLLS)
    batch = found.batch(np.arange(len(found)), np.zeros(len(found), dtype=np.int64), "cpu")
    middle = batch.cells[:, WINDOW].numpy()
    assert np.array_equal(middle, np.concatenate([roll.cells for roll in ROLLS]))
    assert np.array_equal(batch.onsets[:, WINDOW].numpy(), np.concatenate([roll.onsets for roll in ROLLS]))
    assert np.array_equal(batch.offsets[:, WINDOW].numpy(), np.concatenate([roll.offsets for roll in ROLLS]))
    phases = np.concatenate([np.stack([roll.beat_phase, roll.bar_phase], axis=1) for roll in ROLLS])
    np.testing.assert_allclose(batch.meta[:, WINDOW, 2:], phases, atol=1e-7)


def test_every_so_many_steps_of_every_roll() -> None:
    found = RollExamples(ROLLS, WINDOW, stride=7)
    middle = found.batch(np.arange(len(found)), np.zeros(len(found), dtype=np.int64), "cpu").cells[:, WINDOW].numpy()
    assert np.array_equal(middle, np.concatenate([roll.cells[::7] for roll in ROLLS]))


def test_around_a_piece_is_silence_that_is_marked() -> None:
    found = examples()
    first, last = (found.batch(np.array([row]), np.array([0]), "cpu") for row in (0, len(ROLLS[0]) - 1))
    assert first.meta[0, :, 0].tolist() == [1.0] * WINDOW + [0.0] * (WINDOW + 1)
    assert last.meta[0, :, 1].tolist() == [0.0] * (WINDOW + 1) + [1.0] * WINDOW
    # nothing of the next piece is seen
    assert not first.cells[0, :WINDOW].any()
    assert not last.cells[0, WINDOW + 1 :].any()


@given(seed=st.integers(0, 1000), low=st.integers(-12, 0), high=st.integers(0, 12))
def test_transpositions_keep_all_notes_of_a_piece(seed: int, low: int, high: int) -> None:
    found = examples()
    shifts = found.draw_transpositions(low, high, np.random.default_rng(seed))
    assert shifts.min() >= low
    assert shifts.max() <= high
    rows = np.arange(len(found))
    plain = found.batch(rows, np.zeros_like(rows), "cpu").cells
    moved = found.batch(rows, shifts, "cpu").cells
    assert torch.equal(moved.sum(-1), plain.sum(-1))
    row = int(np.random.default_rng(seed).integers(len(found)))
    expected = plain[row].nonzero() + torch.tensor([0, int(shifts[row])])
    assert torch.equal(moved[row].nonzero(), expected)


def test_both_ends_of_the_range_are_drawn() -> None:
    found = examples()
    shifts = found.draw_transpositions(-12, 12, np.random.default_rng(0))
    first = shifts[: len(ROLLS[0])]
    assert set(first.tolist()) <= set(range(-12, 13))
    assert shifts[len(ROLLS[0]) : len(ROLLS[0]) + len(ROLLS[1])].min() == 0  # A0 cannot go down
    assert shifts[-len(ROLLS[2]) :].max() == 0  # G#7 cannot go up
    assert ROLLS[1].cells[0, 21 - LOWEST_PITCH]


def test_the_hash_changes_with_the_rolls_their_order_and_what_is_cut_out_of_them() -> None:
    others = [
        examples(),
        RollExamples(ROLLS[::-1], WINDOW),
        RollExamples(ROLLS[:2], WINDOW),
        RollExamples(ROLLS, WINDOW + 1),
        RollExamples(ROLLS, WINDOW, stride=7),
        RollExamples([tune([60, 64, 67, 71]), *ROLLS[1:]], WINDOW),
    ]
    assert len({one.content_hash() for one in others}) == len(others)
    assert examples().content_hash() == examples().content_hash()


def test_no_rolls() -> None:
    with pytest.raises(NoDataError, match="split"):
        RollExamples([], WINDOW)


@pytest.mark.slow
def test_a_killed_training_on_rolls_goes_on_as_if_nothing_had_happened(tmp_path: Path) -> None:
    config = BMSTConfig(window=WINDOW, embedding=4, n_layers=1, n_heads=2, inner=8, context=3, pitch_width=4, filters=5)
    training = TrainingConfig(
        batch_size=8, epoch_contexts=16, cycles=(3,), learning_rate=0.01, transpose_low=-12, transpose_high=12
    )
    recipe = Recipe("bmst", DataConfig("nowhere", "none"), {}, training)

    def train(folder: Path, stop_after: int | None = None) -> BMST:
        torch.manual_seed(0)
        model, seen = BMST(config), []

        def clock() -> float:
            seen.append(0)
            if stop_after is not None and len(seen) > 2 * stop_after:
                raise KeyboardInterrupt
            return 0.0

        fit(model, examples(), examples(), recipe, folder, clock=clock)
        return model

    whole = train(tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        train(tmp_path / "cut", stop_after=1)
    again = train(tmp_path / "cut")
    for name, value in whole.state_dict().items():
        assert torch.equal(again.state_dict()[name], value), name
