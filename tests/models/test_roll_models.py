"""What holds for every network of piano rolls: what a step is told, how it learns, what it gives."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from music_evals.annotations import Arrangement, PianoRoll
from music_evals.errors import InvalidInputError, NoDataError
from music_evals.models.bmst import BMST, BMSTConfig
from music_evals.models.full_sequence import BandedAttention, FullSequence, FullSequenceConfig
from music_evals.models.gibbs import GibbsSettings, gibbs_sweeps
from music_evals.models.style_lstm import StyleLSTM, StyleLSTMConfig
from music_evals.models.training.data import RollExamples
from music_evals.protocols import STYLE_TRANSFERS, CellPredictor, StyleTransfer, load_plugin

pytestmark = pytest.mark.usefixtures("one_thread", "own_random_state")

_SMALL: dict[str, Any] = {"context": 3, "pitch_width": 4, "filters": 5}
CONFIGS: dict[str, Any] = {
    "bmst": BMSTConfig(window=6, embedding=4, n_layers=1, n_heads=2, inner=8, **_SMALL),
    "full_sequence": FullSequenceConfig(window=6, band=5, width=8, n_layers=2, n_heads=2, inner=8, **_SMALL),
    "style_lstm": StyleLSTMConfig(n_groups=3, group=2, width=8, n_layers=2, mask_share=0.3, **_SMALL),
}
Make = Callable[..., Any]


@pytest.fixture(params=sorted(CONFIGS))
def make(request: pytest.FixtureRequest) -> Make:
    """A function that makes the network in float64, for evaluation, with some settings changed."""

    def made(*, sampling: GibbsSettings | None = None, **changes: Any) -> Any:
        config = dataclasses.replace(CONFIGS[request.param], **changes)
        network = load_plugin(STYLE_TRANSFERS, request.param, "model")(config, sampling=sampling)
        return network.double().eval()

    return made


def roll(n: int, seed: int = 0) -> PianoRoll:
    rng = np.random.default_rng(seed)
    cells = rng.random((n, 84)) < 0.1
    before = np.vstack([np.zeros((1, 84), dtype=bool), cells[:-1]])
    phases = np.arange(n) / 8
    return PianoRoll(cells, cells & ~before, before & ~cells, phases % 1, phases / 4 % 1)


def meta_of(piece: PianoRoll) -> Tensor:
    return torch.from_numpy(np.stack([piece.beat_phase, piece.bar_phase], axis=1))


def over_silence(melody: PianoRoll) -> Arrangement:
    silent = np.zeros_like(melody.cells)
    return Arrangement(melody, melody.with_notes(silent, silent, silent))


def test_all_are_tested_here() -> None:
    assert set(CONFIGS) == set(STYLE_TRANSFERS)


# --- what is seen


def test_no_step_is_told_itself(make: Make) -> None:
    model, piece = make(), roll(30)
    cells, steps = torch.from_numpy(piece.cells), torch.arange(30)
    context = model.context(cells, meta_of(piece), steps)
    for step in (0, 1, 15, 28, 29):
        changed = cells.clone()
        changed[step] = ~changed[step]
        other = model.context(changed, meta_of(piece), steps)
        assert torch.equal(other[step], context[step])
        for near in {step - 1, step + 1} & set(range(30)):
            assert not torch.equal(other[near], context[near])


def test_steps_as_far_apart_as_a_window_do_not_see_each_other(make: Make) -> None:
    model, piece = make(), roll(30)
    cells, step = torch.from_numpy(piece.cells), torch.tensor([15])
    context = model.context(cells, meta_of(piece), step)
    for other in (0, 15 - model.window, 15 + model.window, 29):
        if not 0 <= other < 30:
            continue
        changed = cells.clone()
        changed[other] = ~changed[other]
        seen = not torch.equal(model.context(changed, meta_of(piece), step), context)
        assert seen == (abs(other - 15) < model.window)


def test_hidden_neighbours_are_not_told(make: Make) -> None:
    model, piece = make(), roll(30)
    cells, step = torch.from_numpy(piece.cells), torch.tensor([15])
    context = model.context(cells, meta_of(piece), step, hidden=2)
    for other, seen in ((13, False), (17, False), (15, False), (12, True), (18, True)):
        changed = cells.clone()
        changed[other] = ~changed[other]
        assert torch.equal(model.context(changed, meta_of(piece), step, hidden=2), context) == (not seen), other


def test_several_steps_are_as_one_by_one(make: Make) -> None:
    model, piece = make(), roll(20)
    cells, meta = torch.from_numpy(piece.cells), meta_of(piece)
    for hidden in (0, 2):
        together = model.context(cells, meta, torch.arange(20), hidden=hidden)
        alone = torch.cat([model.context(cells, meta, torch.tensor([step]), hidden=hidden) for step in range(20)])
        torch.testing.assert_close(together, alone, rtol=0, atol=1e-12)


@pytest.mark.parametrize("length", [1, 3, 4, 5, 8, 11])
def test_banded_attention_is_attention_with_a_mask(length: int) -> None:
    band, heads, width = 4, 2, 6
    layer, x = BandedAttention(width, heads, band).double(), torch.randn(2, length, width, dtype=torch.float64)
    query, key, value = (part(x).view(2, length, heads, -1) for part in (layer.query, layer.key, layer.value))
    expected = torch.zeros(2, length, heads, width // heads, dtype=torch.float64)
    for item in range(2):
        for i in range(length):
            near = range(max(0, i - band + 1), i + 1)
            for head in range(heads):
                q = query[item, i, head]
                scores = torch.stack([q @ key[item, j, head] + q @ layer.distances[i - j] for j in near])
                weights = (scores * (width // heads) ** -0.5).softmax(0)
                expected[item, i, head] = sum(w * value[item, j, head] for w, j in zip(weights, near, strict=True))
    torch.testing.assert_close(layer(x), layer.out(expected.flatten(2)), rtol=0, atol=1e-12)


def test_an_lstm_that_was_never_shown_hidden_steps_is_not_asked_with_some() -> None:
    model = StyleLSTM(dataclasses.replace(CONFIGS["style_lstm"], mask_share=0.0))
    assert model.cell_probabilities(roll(5)).shape == (5, 84)
    with pytest.raises(InvalidInputError, match="mask_share"):
        model.cell_probabilities(roll(5), hidden=1)


# --- what it says


@pytest.mark.parametrize("n", [1, 5, 13, 40])
def test_pieces_of_any_length(make: Make, n: int) -> None:
    model = make()
    for hidden in (0, 3):
        found = model.cell_probabilities(roll(n), hidden=hidden)
        assert found.shape == (n, 84)
        assert ((found > 0) & (found < 1)).all()
    assert model.cell_probabilities(roll(0)).shape == (0, 84)


def test_starts_are_said_of_every_cell(make: Make) -> None:
    piece = roll(9)
    found = make().onset_probabilities(torch.from_numpy(piece.cells), meta_of(piece))
    assert found.shape == (9, 84)
    assert ((found >= 0) & (found < 1)).all()


def test_validation_is_the_likelihood_of_what_is_predicted(make: Make) -> None:
    """Windows of training, which hold a whole piece here, are told what a roll is told."""
    model, piece = make(), roll(5)
    window = model.config.window
    examples = RollExamples([piece], window)
    batch = examples.batch(np.array([2]), np.array([0]), "cpu")
    batch = batch._replace(meta=batch.meta.double())
    likely = torch.from_numpy(model.cell_probabilities(piece))
    nll = torch.nn.functional.binary_cross_entropy(likely, torch.from_numpy(piece.cells).double(), reduction="none")
    expected = nll.sum(1).mean() if model.whole else nll.sum(1)[2]
    # one that reads whole pieces is told of more padding
    assert model.validation_losses(batch)[0].item() == pytest.approx(float(expected), rel=0.05 if model.whole else 1e-9)


# --- training


def test_one_batch_can_be_learnt_by_heart(make: Make) -> None:
    model = make(dropout=0.0).float().train()
    examples = RollExamples([roll(20)], model.config.window)
    batch = examples.batch(np.array([3, 12]), np.array([0, 0]), "cpu")
    optimizer = torch.optim.Adam(model.parameters(), lr=0.03)
    losses = []
    for _ in range(40):
        loss = model.training_loss(batch).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert np.mean(losses[-10:]) < 0.6 * losses[0]
    assert model.validation_losses(batch).shape == (2,)


def test_padding_is_not_learnt_from() -> None:
    model = FullSequence(CONFIGS["full_sequence"]).double().eval()
    examples = RollExamples([roll(4)], 6)
    batch = examples.batch(np.array([0]), np.array([0]), "cpu")
    batch = batch._replace(meta=batch.meta.double())
    near = model._read(batch.cells, batch.meta)
    changed = near.clone()
    changed[:, :6] += 1  # steps before the piece
    asked, inside = torch.arange(13)[None], batch.meta[..., :2].sum(-1) == 0
    first, second = (model._pitch_losses(some, batch, asked, inside) for some in (near, changed))
    assert torch.equal(first, second)


# --- sampling


@pytest.mark.slow
def test_the_exact_sampler_gives_the_rolls_of_the_naive_one(make: Make) -> None:
    model = make()
    arrangement = over_silence(roll(2, 1))
    fast, slow = (
        list(gibbs_sweeps(model, arrangement, GibbsSettings(sweeps=2, sampler=sampler), 0))
        for sampler in ("exact", "naive")
    )
    for one, other in zip(fast, slow, strict=True):
        assert one.closest > 1e-10, "a decision that rounding can turn"
        np.testing.assert_array_equal(one.cells, other.cells)


def test_the_melody_stays(make: Make) -> None:
    model, melody = make(sampling=GibbsSettings(sweeps=2)).float(), roll(8, 3)
    found, again = (model.transfer(over_silence(melody), rng=np.random.default_rng(3)) for _ in range(2))
    assert np.array_equal(found.melody.cells, melody.cells)
    assert np.array_equal(found.accompaniment.cells, again.accompaniment.cells)


def test_a_network_that_reads_whole_pieces_sees_snapshots_by_default() -> None:
    assert FullSequence(CONFIGS["full_sequence"]).sampling.alpha_min == 1 / 32
    assert StyleLSTM(CONFIGS["style_lstm"]).sampling == BMST(CONFIGS["bmst"]).sampling == GibbsSettings()


def test_neighbours_are_hidden_at_first_where_that_is_asked_for(make: Make) -> None:
    melody = over_silence(roll(6, 1))
    first, second = (
        next(gibbs_sweeps(make(), melody, GibbsSettings(sweeps=3, hidden_max=hidden), 0)).cells for hidden in (0, 3)
    )
    assert not np.array_equal(first, second)


# --- faces


def test_it_is_a_style_transfer_and_predicts_cells(make: Make) -> None:
    model = make(style="bach")
    assert all(isinstance(model, protocol) for protocol in (StyleTransfer, CellPredictor))
    assert (model.name, model.style) == (f"{model.config.model_type}:bach", "bach")


def test_another_grid_is_refused(make: Make) -> None:
    model, other = make(), dataclasses.replace(roll(12), steps_per_quarter=12)
    with pytest.raises(InvalidInputError, match="12"):
        model.cell_probabilities(other)
    with pytest.raises(InvalidInputError, match="12"):
        model.transfer(over_silence(other), rng=np.random.default_rng(0))
    with pytest.raises(InvalidInputError, match="hidden"):
        model.cell_probabilities(roll(12), hidden=6)


@pytest.mark.parametrize("name", sorted(CONFIGS))
def test_save_and_load(name: str, tmp_path: Path) -> None:
    kind = load_plugin(STYLE_TRANSFERS, name, "model")
    model = kind(CONFIGS[name])
    model.save_pretrained(tmp_path / name)
    again = kind.from_pretrained(tmp_path / name)
    assert again.config == CONFIGS[name]
    for key, value in model.state_dict().items():
        assert torch.equal(again.state_dict()[key], value.half().float()), key
    with pytest.raises(NoDataError):
        kind.from_pretrained(str(tmp_path))


@pytest.mark.parametrize(
    ("config", "changes"),
    [
        (CONFIGS["full_sequence"], {"n_heads": 3}),
        (CONFIGS["full_sequence"], {"mask_share": 1.0}),
        (CONFIGS["full_sequence"], {"pitch_steps": 0}),
        (CONFIGS["full_sequence"], {"model_type": "bmst"}),
        (CONFIGS["style_lstm"], {"n_layers": 1}),
        (CONFIGS["style_lstm"], {"dropout": -0.1}),
        (CONFIGS["style_lstm"], {"model_type": "bmst"}),
        *((config, {"dropout": "half"}) for config in CONFIGS.values()),
        *((config, {"steps_per_quarter": 8.0}) for config in CONFIGS.values()),
        (GibbsSettings(), {"temperature": "hot"}),
        (GibbsSettings(), {"spacing": "wide"}),
        (GibbsSettings(), {"mode": {1}}),
    ],
)
def test_settings_out_of_range(config: Any, changes: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError, match=next(iter(changes))):
        dataclasses.replace(config, **changes)
