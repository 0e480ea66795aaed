"""Each baseline by hand on small contexts; the protocol; the Markov chain against counts made by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from music_evals.annotations import HOLD, MASK, REST
from music_evals.errors import ContextLengthError, InvalidInputError, InvalidTokensError, NoDataError, UnknownNameError
from music_evals.models.baselines import BASELINES, MarkovChain, make_baseline
from music_evals.protocols import BASELINES as REGISTERED
from music_evals.protocols import CONTROLS, Inpainter, load_plugin

PAST, MIDDLE, FUTURE = slice(0, 144), slice(144, 240), slice(240, 384)


def measures(*pitches: int) -> np.ndarray:
    """One whole note a measure; a negative pitch is a measure of rest."""
    rows = [[REST] * 24 if pitch < 0 else [pitch] + [HOLD] * 23 for pitch in pitches]
    return np.array(rows, dtype=np.uint8).reshape(-1)


@pytest.fixture
def scale() -> np.ndarray:
    """One context whose measures are the pitches 50..65."""
    return measures(*range(50, 66))[None]


def fill(name: str, contexts: np.ndarray, train: np.ndarray | None = None, seed: int = 0) -> np.ndarray:
    return make_baseline(name, train).inpaint(contexts, rng=np.random.default_rng(seed))


def test_silence_is_rests(scale):
    assert (fill("silence", scale) == REST).all()


def test_repeat_last_measure_takes_measure_5(scale):
    np.testing.assert_array_equal(fill("repeat_last_measure", scale)[0], measures(55, 55, 55, 55))


def test_copy_past_takes_measures_2_to_5(scale):
    np.testing.assert_array_equal(fill("copy_past", scale)[0], measures(52, 53, 54, 55))


def test_interpolation_copy_takes_two_measures_of_each_side(scale):
    np.testing.assert_array_equal(fill("interpolation_copy", scale)[0], measures(54, 55, 60, 61))


def test_last_pitch_beats_has_sixteen_notes_of_six_steps(scale):
    expected = np.array(([55] + [HOLD] * 5) * 16, dtype=np.uint8)
    np.testing.assert_array_equal(fill("last_pitch_beats", scale)[0], expected)


def test_last_pitch_beats_looks_back_over_holds_and_rests():
    context = measures(*[-1] * 16)[None]
    context[0, 5:9] = [60, HOLD, 71, HOLD]
    assert set(fill("last_pitch_beats", context)[0]) == {71, HOLD}


def test_last_pitch_beats_rests_without_a_past_pitch():
    context = measures(*[-1] * 6, *range(60, 70))[None]
    context[0, :3] = HOLD  # a held note whose pitch is not known
    assert (fill("last_pitch_beats", context) == REST).all()


def test_copies_keep_a_leading_hold():
    context = np.full((1, 384), HOLD, dtype=np.uint8)
    context[0, 0] = 60
    for name in ("repeat_last_measure", "copy_past", "interpolation_copy"):
        assert (fill(name, context) == HOLD).all(), name


def test_corpus_prior_returns_train_middles_and_all_of_them(scale):
    train = np.concatenate([measures(*[pitch] * 16)[None] for pitch in (40, 41, 42)])
    middles = fill("corpus_prior", np.repeat(scale, 200, axis=0), train)
    assert {tuple(middle) for middle in middles} == {tuple(row[MIDDLE]) for row in train}


def test_reference_returns_the_true_middle_and_is_no_honest_system(scale):
    control = make_baseline("reference")
    assert control.sees_reference
    np.testing.assert_array_equal(control.inpaint(scale, rng=np.random.default_rng(0)), scale[:, MIDDLE])


@pytest.mark.parametrize("name", [name for name in BASELINES if name not in CONTROLS])
def test_honest_baselines_never_see_the_middle(name, scale):
    baseline = make_baseline(name, scale)
    other, masked = scale.copy(), scale.copy()
    other[:, MIDDLE] = measures(1, 2, 3, 4)
    masked[:, MIDDLE] = MASK
    assert not baseline.sees_reference
    results = [baseline.inpaint(contexts, rng=np.random.default_rng(3)) for contexts in (scale, other, masked)]
    np.testing.assert_array_equal(results[0], results[1])
    np.testing.assert_array_equal(results[0], results[2])


@pytest.mark.parametrize("name", BASELINES)
def test_baselines_obey_the_protocol(name, scale):
    train = np.concatenate([measures(*np.random.default_rng(seed).integers(40, 80, 16))[None] for seed in range(20)])
    contexts = np.repeat(scale, 40, axis=0)
    before = contexts.copy()
    baseline = make_baseline(name, train)
    assert isinstance(baseline, Inpainter)
    assert baseline.name == name
    first, again, other = (baseline.inpaint(contexts, rng=np.random.default_rng(seed)) for seed in (1, 1, 2))
    assert first.shape == (40, 96)
    assert first.dtype == np.uint8
    assert first.max() <= REST
    np.testing.assert_array_equal(first, again)
    np.testing.assert_array_equal(contexts, before)
    assert np.array_equal(first, other) == baseline.deterministic


def test_the_registry_names_the_same_baselines(scale):
    assert set(REGISTERED) == set(BASELINES)
    assert load_plugin(REGISTERED, "copy_past", "baseline")("copy_past", None).name == "copy_past"


@given(hnp.arrays(np.uint8, (2, 384), elements=st.integers(0, 129)), st.sampled_from(sorted(BASELINES)))
def test_any_context_gives_a_middle(contexts, name):
    train = measures(*range(50, 66))[None]
    middles = fill(name, contexts, train)
    assert middles.shape == (2, 96)
    assert middles.max() <= REST


def test_no_contexts_give_no_middles(scale):
    for name in BASELINES:
        assert fill(name, scale[:0], scale).shape == (0, 96)


# --- Markov chain


def test_markov_repeats_the_only_way_to_go_on(scale):
    """Train: whole notes 50, 51, 50, 51, ... so after (50, 24) comes (51, 24), and after that (50, 24) again."""
    train = measures(*[50, 51] * 8)[None]
    context = measures(*[50, 51] * 8)[None]
    np.testing.assert_array_equal(fill("markov", context, train)[0], measures(50, 51, 50, 51))


def test_markov_uses_its_order():
    """After 50, 51 comes 52, after 52, 51 comes 50: order 1 cannot know, order 2 must."""
    train = measures(*[50, 51, 52, 51] * 4)[None]
    rng = np.random.default_rng(0)
    context = measures(*[50, 51, 52, 51] * 4)[None]  # the past ends with 50, 51
    second = MarkovChain(train, order=2).fill(np.repeat(context, 50, axis=0), rng)
    assert (second == measures(52, 51, 50, 51)).all()
    first = MarkovChain(train, order=1).fill(np.repeat(context, 50, axis=0), rng)
    assert {50, 52} <= set(first[:, 0])


def test_markov_backs_off_to_shorter_histories(scale):
    """The past ends with pairs that training never saw: only the bare counts are left, here one pair."""
    train = measures(*[70] * 16)[None]
    np.testing.assert_array_equal(fill("markov", scale, train)[0], measures(70, 70, 70, 70))


def test_markov_draws_as_often_as_it_counted():
    """After whole note 50 come 51 three times and 52 once (hand count in the list below)."""
    train = measures(50, 51, 50, 51, 50, 51, 50, 52, 50, *[60] * 7)[None]
    # the fifth 50 is followed by 60: counts are 51: 3, 52: 1, 60: 1
    chain = MarkovChain(train, order=1)
    rng = np.random.default_rng(0)
    drawn = [chain.follow(((50, 24),), rng)[0] for _ in range(5000)]
    share = {pitch: drawn.count(pitch) / 5000 for pitch in (51, 52, 60)}
    assert share == pytest.approx({51: 0.6, 52: 0.2, 60: 0.2}, abs=0.03)


def test_markov_learns_rests_as_pairs():
    train = measures(*[50, -1] * 8)[None]
    context = measures(*[50, -1] * 8)[None]
    np.testing.assert_array_equal(fill("markov", context, train)[0], measures(50, -1, 50, -1))


def test_markov_leaves_out_pairs_of_unknown_length():
    """A rest from the start and the last note are cut by the window; only the note between them is known."""
    train = measures(*[-1] * 5, 64, *[-1] * 5, *[66] * 0, *[65], *[-1] * 4)[None]
    train[0, 12 * 24 :] = HOLD  # the last note is held to the end of the window
    chain = MarkovChain(train, order=1)
    rng = np.random.default_rng(0)
    assert {chain.follow((), rng) for _ in range(200)} == {(64, 24), (REST, 120)}


def test_markov_cuts_the_last_pair_at_the_future(scale):
    train = np.full((1, 384), HOLD, dtype=np.uint8)
    train[0, 0:300:60] = 62  # notes of 60 steps: the second one does not fit into 96
    middle = fill("markov", scale, train)[0]
    np.testing.assert_array_equal(np.flatnonzero(middle == 62), [0, 60])
    assert (np.delete(middle, [0, 60]) == HOLD).all()


def test_markov_needs_an_order_and_notes(scale):
    with pytest.raises(InvalidInputError, match="at least 1, got 0"):
        MarkovChain(scale, order=0)
    with pytest.raises(NoDataError):
        MarkovChain(measures(*[-1] * 16)[None])


# --- bad input


def test_unknown_baselines_are_named_with_the_nearest():
    with pytest.raises(UnknownNameError, match="copy_past"):
        make_baseline("copy_pats")


@pytest.mark.parametrize("name", ["markov", "corpus_prior"])
@pytest.mark.parametrize("train", [None, np.empty((0, 384), dtype=np.uint8)])
def test_fitted_baselines_need_training_contexts(name, train):
    with pytest.raises(NoDataError, match=f"'{name}' is fitted on training contexts"):
        make_baseline(name, train)


def test_contexts_are_checked(scale):
    with pytest.raises(ContextLengthError):
        fill("silence", scale[:, 1:])
    with pytest.raises(ContextLengthError, match="384"):
        fill("silence", scale[0])
    wrong = scale.copy()
    wrong[0, 3] = 130
    with pytest.raises(InvalidTokensError, match="130"):
        fill("silence", wrong)
    with pytest.raises(InvalidTokensError):
        fill("silence", scale.astype(float))
