import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from music_evals.annotations import HOLD, REST
from music_evals.errors import InvalidTokensError
from music_evals.symbolic.encodings.factorized import decode, encode, fix_empty

measures = st.integers(0, 5).flatmap(lambda n: hnp.arrays(np.uint8, 24 * n, elements=st.integers(0, 129)))


def test_two_measures_by_hand():
    tokens = [60, HOLD, 64, REST, REST, REST, HOLD, HOLD]
    px, rx, len_x, nrx, gd = encode(tokens, steps_per_measure=4)
    assert px.tolist() == [[60, 64, 128, 128], [128] * 4]
    assert rx.tolist() == [[1, 2, 1, 3], [3, 3, 2, 2]]
    assert len_x.tolist() == [2, 0]
    assert nrx[0].tolist() == [[1, 0, 0], [0, 1, 0], [1, 0, 0], [0, 0, 1]]
    assert gd.tolist() == [tokens[:4], tokens[4:]]


@given(measures)
def test_tokens_come_back(tokens):
    factorized = encode(tokens)
    assert np.array_equal(decode(factorized.px, factorized.rx), tokens)
    assert np.array_equal(factorized.nrx.argmax(axis=2) + 1, factorized.rx)
    assert (factorized.nrx.sum(axis=2) == 1).all()
    assert np.array_equal((factorized.px < 128).sum(axis=1), factorized.len_x)


@given(measures)
def test_fix_empty_touches_only_measures_without_an_onset(tokens):
    before = tokens.copy()
    fixed = fix_empty(tokens)
    assert np.array_equal(tokens, before)
    for old, new in zip(tokens.reshape(-1, 24), fixed.reshape(-1, 24), strict=True):
        expected = old.copy()
        if (old >= HOLD).all():
            expected[0] = 60
        assert np.array_equal(new, expected)


@pytest.mark.parametrize("tokens", [[60] * 23, [[60] * 24], [130] * 24, [0.5] * 24])
def test_what_is_no_whole_measure_raises(tokens):
    for function in (encode, fix_empty):
        with pytest.raises(InvalidTokensError):
            function(tokens)


@pytest.mark.parametrize(
    ("px", "rx", "message"),
    [
        ([[60, 128]], [[1, 1]], "measure 0: 2 onsets"),
        ([[60, 61]], [[1, 2]], "measure 0: 1 onsets"),
        ([[128, 60]], [[1, 2]], "measure 0"),
        ([[60, 128]], [[1, 0]], "rx must be 1 onset"),
        ([[60, 128]], [[1, 4]], "rx must be 1 onset"),
        ([[60, 128]], [[1]], "one shape"),
        ([60, 128], [1, 2], "one shape"),
    ],
)
def test_parts_that_do_not_fit_raise(px, rx, message):
    with pytest.raises(InvalidTokensError, match=message):
        decode(px, rx)
