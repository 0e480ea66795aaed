import dataclasses

import numpy as np
import pytest
from benchmarks.gibbs.timing import first_steps, ode_to_joy, side_by_side, timed_run
from tests.models.tiny_roll_network import TinyRollNetwork

from music_evals.models.gibbs import GibbsSettings


def test_piece_is_sixteen_bars_of_melody_over_triads():
    piece = ode_to_joy()
    assert len(piece) == 16 * 32
    assert (piece.accompaniment.cells.sum(axis=1)[:-1] <= 3).all()
    assert piece.melody.onsets.sum() == 3 * 15 + 17
    # E4 E4 F4 G4, a quarter each; the second bar over G2 B2 D3
    assert [int(np.argmax(piece.melody.cells[step])) + 21 for step in (0, 8, 16, 24)] == [64, 64, 65, 67]
    assert (np.flatnonzero(piece.accompaniment.cells[32]) + 21).tolist() == [43, 47, 50]
    assert np.allclose(piece.melody.bar_phase[:34], [*np.arange(32) / 32, 0, 1 / 32])


def test_run_counts_all_its_seconds_and_says_how_many_steps_were_kept():
    lines = []
    row = timed_run(
        TinyRollNetwork(1, scale=0.3),
        first_steps(ode_to_joy(), 24),
        GibbsSettings(sweeps=4, eta=0.4, call_cost=9.0),
        progress=lines.append,
    )
    assert len(lines) == 4
    assert row["seconds"] == pytest.approx(row["snapshot_seconds"] + row["sequential_seconds"])
    assert 0 < row["kept"] < 1
    assert (row["steps"], row["sweeps"]) == (24, 4)


@pytest.mark.slow
def test_samplers_side_by_side_must_agree(monkeypatch):
    network, piece = TinyRollNetwork(1, scale=0.3), first_steps(ode_to_joy(), 6)
    chosen = GibbsSettings(sweeps=2, eta=0.4)
    row = side_by_side(network, piece, chosen, 2)
    assert row["ratio"] > 2  # 84 calls of a step against one and a few passes
    calls = []

    def other_rolls(_network, _piece, settings, _seed):
        calls.append(settings.sampler)
        yield dataclasses.make_dataclass("Sweep", ["cells"])(np.full((1, 84), settings.sampler == "naive"))

    monkeypatch.setattr("benchmarks.gibbs.timing.gibbs_sweeps", other_rolls)
    with pytest.raises(ValueError, match="different"):
        side_by_side(network, piece, chosen, 1)
    assert sorted(calls) == ["exact", "naive"]
