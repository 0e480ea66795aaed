"""The lag vote against plain loops over the definition, its decoding against every choice there is, and by hand."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from music_evals.annotations import HOLD, MASK, REST
from music_evals.metrics.inpainting import note_f1
from music_evals.models.baselines import best_lag, lag_vote, mode_pitch_beats
from music_evals.models.layers.lag_votes import Votes, decode_expected_f1, lag_agreement, lag_marginals, vote_lags

MIDDLE = range(144, 240)
contexts_of_few = hnp.arrays(np.uint8, (2, 384), elements=st.sampled_from([60, 62, 64, HOLD, HOLD, REST]))


def visible(step: int) -> bool:
    return 0 <= step < 384 and step not in MIDDLE


def plain_agreement(context: list[int], step: int, lag: int, votes: Votes) -> float:
    """Dice over the notes of the context and of the context moved by the lag, each weighted by its distance."""
    shared = notes = 0.0
    for here in range(384):
        if visible(here) and visible(here + lag):
            weight = math.exp(-abs(here - step) / votes.kernel_steps)
            a, b = context[here], context[here + lag]
            notes += weight * ((a < HOLD) + (b < HOLD))
            shared += weight * (a < HOLD and a == b)
    return 2 * shared / (notes + votes.shrinkage)


def plain_marginal(context: list[int], step: int, votes: Votes) -> dict[int, float]:
    found: dict[int, float] = {}
    for quarters in range(-votes.farthest_quarters, votes.farthest_quarters + 1):
        lag = 6 * quarters
        if lag and visible(step + lag):
            vote = math.exp(votes.sharpness * plain_agreement(context, step, lag, votes))
            found[context[step + lag]] = found.get(context[step + lag], 0) + vote
    total = sum(found.values())
    return {token: vote / total for token, vote in found.items()}


@pytest.mark.parametrize("votes", [Votes(), Votes(36.0, 30.0, 2.0, 39)])
def test_the_votes_are_those_of_plain_loops(votes):
    rng = np.random.default_rng(1)
    contexts = rng.choice(np.array([60, 62, 64, HOLD, HOLD, REST], dtype=np.uint8), (2, 384))
    contexts[0, 240:336] = contexts[0, :96]  # something that repeats
    marginals = lag_marginals(contexts, votes)
    assert marginals.shape == (2, 96, 130)
    for row, place in itertools.product(range(2), (0, 5, 47, 95)):
        expected = plain_marginal(contexts[row].tolist(), 144 + place, votes)
        found = {token: share for token, share in enumerate(marginals[row, place].tolist()) if share}
        assert found == pytest.approx(expected, rel=1e-9)


def test_the_agreement_is_that_of_plain_loops():
    contexts = np.random.default_rng(2).choice(np.array([60, 62, HOLD], dtype=np.uint8), (1, 384))
    votes = Votes()
    found = lag_agreement(contexts, votes)
    for place, lag in enumerate(vote_lags(votes).tolist()):
        for step in (144, 191, 239):
            expected = plain_agreement(contexts[0].tolist(), step, lag, votes)
            assert found[0, place, step - 144] == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_lags_are_whole_quarters_back_and_forth():
    assert vote_lags(Votes(farthest_quarters=2)).tolist() == [-6, 6, -12, 12]


@settings(deadline=None, max_examples=20)
@given(contexts_of_few)
def test_the_middle_is_not_read(contexts):
    other = contexts.copy()
    other[:, 144:240] = MASK
    np.testing.assert_array_equal(lag_marginals(contexts), lag_marginals(other))
    np.testing.assert_allclose(lag_marginals(contexts).sum(axis=2), 1.0)


@settings(deadline=None, max_examples=20)
@given(contexts_of_few, st.integers(-30, 30))
def test_transposed_context_gives_the_transposed_middle(contexts, shift):
    moved = np.where(contexts < HOLD, contexts.astype(int) + shift, contexts).astype(np.uint8)
    middles = lag_vote(contexts)
    np.testing.assert_array_equal(lag_vote(moved), np.where(middles < HOLD, middles.astype(int) + shift, middles))


def test_a_window_alone_and_in_a_batch():
    rng = np.random.default_rng(3)
    contexts = rng.choice(np.array([60, 62, 64, 65, HOLD, HOLD, REST], dtype=np.uint8), (131, 384))
    together = lag_vote(contexts)
    for row in (0, 63, 64, 130):
        np.testing.assert_array_equal(lag_vote(contexts[row : row + 1])[0], together[row])
        np.testing.assert_array_equal(lag_marginals(contexts[row : row + 1])[0], lag_marginals(contexts)[row])


def test_what_repeats_every_four_measures_goes_on():
    tune = np.random.default_rng(4).integers(50, 80, 16)
    bars = np.array([[pitch] + [HOLD] * 5 for pitch in tune], dtype=np.uint8).reshape(-1)
    context = np.tile(bars, 4)[None]
    np.testing.assert_array_equal(lag_vote(context), context[:, 144:240])


# --- decoding


def expected_f1_bound(p: np.ndarray, chosen: tuple[int, ...]) -> float:
    return 2 * p[list(chosen)].sum() / (len(chosen) + p.sum())


@given(hnp.arrays(np.float64, 6, elements=st.floats(0.01, 1.0)))
def test_no_other_choice_of_notes_promises_more(p):
    """One pitch a step, so that its probability is all there is: every set of steps is tried."""
    marginals = np.zeros((1, 6, 130))
    marginals[0, :, 60], marginals[0, :, HOLD] = p, 1 - p
    steps = tuple(np.flatnonzero(decode_expected_f1(marginals)[0] < HOLD))
    others = [c for k in range(1, 7) for c in itertools.combinations(range(6), k)]
    assert expected_f1_bound(p, steps) == pytest.approx(max(expected_f1_bound(p, c) for c in others))


def test_decoding_by_hand():
    marginals = np.zeros((1, 5, 130))
    marginals[0, 0, [60, 62, HOLD]] = 0.5, 0.3, 0.2
    marginals[0, 1, [HOLD, REST]] = 0.6, 0.4
    marginals[0, 2, [60, REST]] = 0.1, 0.9
    marginals[0, 3, [HOLD, REST]] = 0.6, 0.4
    marginals[0, 4, [61, 64]] = 0.5, 0.5
    # expected notes .8 + .1 + 1 = 1.9; k = 1: 1 / 2.9, k = 2: 2 / 3.9, k = 3: 2.2 / 4.9, so both halves are written;
    # of equals the lower pitch; after the rest of step 2 the hold of step 3 belongs to no note
    assert decode_expected_f1(marginals).tolist() == [[60, HOLD, REST, REST, 61]]


def test_where_no_note_can_be_none_is_written():
    marginals = np.zeros((1, 3, 130))
    marginals[0, :, HOLD] = 1
    assert decode_expected_f1(marginals).tolist() == [[HOLD] * 3]


def test_what_is_known_stays_and_does_not_count():
    """As the case by hand above, but for steps between that are known: a note, a rest before a hold, and a hold."""
    marginals = np.zeros((1, 8, 130))
    marginals[0, 0, [60, HOLD]] = 0.8, 0.2
    marginals[0, 2, [HOLD, REST]] = 0.9, 0.1
    marginals[0, 4, [62, HOLD, REST]] = 0.1, 0.7, 0.2
    marginals[0, 6, [61, 64]] = 0.5, 0.5
    marginals[0, [1, 3, 5, 7], 99] = 1  # of no account: these are known
    known = np.array([[MASK, 70, MASK, REST, MASK, HOLD, MASK, HOLD]], dtype=np.uint8)
    # the rest of step 3 goes on to the hold of step 4, which belongs to no note
    assert decode_expected_f1(marginals, known).tolist() == [[60, 70, HOLD, REST, REST, HOLD, 61, HOLD]]


@settings(deadline=None, max_examples=20)
@given(contexts_of_few)
def test_where_nothing_is_known_the_middles_are_as_ever(contexts):
    marginals = lag_marginals(contexts)
    nothing = np.full((2, 96), MASK, dtype=np.uint8)
    np.testing.assert_array_equal(decode_expected_f1(marginals, nothing), decode_expected_f1(marginals))


# --- the other baselines of this kind


def test_mode_pitch_counts_onsets_beat_by_beat():
    context = np.full((1, 384), HOLD, dtype=np.uint8)
    context[0, [0, 24, 240]] = [60, 60, 72]  # first beats: 60 twice
    context[0, [6, 30]] = [62, 61]  # second beats: once each, and 62 is found once more elsewhere
    context[0, 13] = 62
    context[0, 150] = 99  # the middle does not count
    # no note starts on a third or fourth beat: 60 and 62 have two onsets each, the lower pitch
    found = mode_pitch_beats(context)
    assert found[0, ::6].tolist() == [60, 62, 60, 60] * 4
    assert (np.delete(found[0], np.arange(0, 96, 6)) == HOLD).all()
    assert (mode_pitch_beats(np.full((1, 384), HOLD, dtype=np.uint8)) == REST).all()


@settings(deadline=None, max_examples=30)
@given(contexts_of_few)
def test_no_single_lag_beats_the_best_one(contexts):
    truth = contexts[:, 144:240]
    best = note_f1(truth, best_lag(contexts))
    starts = [*range(0, 49, 6), *range(240, 289, 6)]
    every = np.array([note_f1(truth, contexts[:, start : start + 96]) for start in starts])
    np.testing.assert_array_equal(best, every.max(axis=0))


def test_of_equal_lags_the_nearest_past_is_copied():
    context = np.tile(np.array([60] + [HOLD] * 23, dtype=np.uint8), 16)[None]
    context[0, [49, 241]] = 70, 71  # one note too many on either side, at the nearest lags
    context[0, 25] = 72  # and at the next ones of the past that start on a bar line
    found = best_lag(context)
    np.testing.assert_array_equal(found[0], context[0, 264:360])
