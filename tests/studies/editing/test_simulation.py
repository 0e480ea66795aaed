"""Simulated editing tests: who does what, in which order, and the effects that were asked for."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from music_evals.studies.editing.simulation import StudyDesign, simulate_study


@given(st.integers(1, 5), st.integers(1, 8), st.integers(1, 8), st.integers(0, 2**32 - 1))
def test_everybody_has_a_share_and_an_order_of_their_own(n_pieces: int, n_editors: int, each: int, seed: int) -> None:
    each = min(each, n_editors)
    design = StudyDesign(n_pieces=n_pieces, n_editors=n_editors, edits_per_sample=each, n_listeners=0)
    tables = simulate_study(design, rng=np.random.default_rng(seed))
    samples, counts = np.unique(tables.edits["sample_id"], return_counts=True)
    assert len(samples) == 4 * n_pieces
    assert set(counts) == {each}
    editors = tables.edits["editor_id"]
    shares = [int(np.count_nonzero(editors == editor)) for editor in np.unique(editors)]
    assert max(shares) - min(shares) <= 1
    for editor, share in zip(np.unique(editors), shares, strict=True):
        mine = editors == editor
        assert len(set(tables.edits["sample_id"][mine])) == share, "nobody has a sample twice"
        assert sorted(tables.edits["order_index"][mine]) == list(range(share))


def test_no_piece_comes_late_for_all(rng: np.random.Generator) -> None:
    tables = simulate_study(StudyDesign(n_pieces=40, n_editors=6, n_listeners=0), rng=rng)
    of_piece = dict(zip(tables.samples["sample_id"], tables.samples["piece_id"], strict=True))
    pieces = np.array([int(of_piece[name].split()[1]) for name in tables.edits["sample_id"]])
    assert abs(np.corrcoef(pieces, tables.edits["order_index"])[0, 1]) < 0.15


def test_learning_is_by_the_place_in_the_order(rng: np.random.Generator) -> None:
    design = StudyDesign(
        n_pieces=6, n_listeners=0, learning=0.9, editor_sd=0, piece_sd=0, sample_sd=0, edit_sd=0, ratio=0.5
    )
    tables = simulate_study(design, rng=rng)
    role = dict(zip(tables.samples["sample_id"], tables.samples["role"], strict=True))
    for name, place, time in zip(*(tables.edits[key] for key in ("sample_id", "order_index", "time_s")), strict=True):
        expected = 600 * 0.9**place * (0.5 if role[name] == "proposed" else 1.0)
        assert time == pytest.approx(expected)
