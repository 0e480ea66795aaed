from __future__ import annotations

from types import ModuleType

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.spatial.distance import jensenshannon

from music_evals.errors import (
    ContextLengthError,
    InvalidInputError,
    InvalidTokensError,
    NoDataError,
    PairCountError,
    UnknownNameError,
)
from music_evals.metrics import arrays, divergence

H, R = 128, 129
LN2 = np.log(2)
VARIANTS = ["corrected", "official", "paper"]
DIVERGENCES = ["silence_divergence", "pitch_class_divergence", "groove_divergence"]

tokens = st.sampled_from([H, H, H, R, 60, 60, 61, 72, 67, 127])
item_sets = st.integers(1, 4).flatmap(
    lambda n: st.tuples(hnp.arrays(np.uint8, (n, 384), elements=tokens), hnp.arrays(np.uint8, (n, 96), elements=tokens))
)


def bar(*onsets: tuple[int, int], fill: int = H) -> list[int]:
    """One measure with (step, pitch) onsets."""
    content = [fill] * 24
    for step, pitch in onsets:
        content[step] = pitch
    return content


EMPTY = bar(fill=R)


def context(past: list[int], middle: list[int], future: list[int]) -> np.ndarray:
    return np.array([past + middle + future], np.uint8)


def put(contexts: np.ndarray, middles: np.ndarray) -> np.ndarray:
    """Return the contexts with other middles."""
    return np.concatenate([contexts[:, :144], middles, contexts[:, 240:]], axis=1)


# features


def test_silence_counts_rests_only() -> None:
    # 24 rests and 3 more of 96 steps; holds sound, even where they hold nothing
    middle = [EMPTY + bar(fill=H) + bar((0, 60), fill=H)[:-3] + [R] * 3 + bar((0, 60))]
    np.testing.assert_array_equal(divergence.silence_rate(middle), [27 / 96])


# Entropies in bits: one class 0; two classes once each 1; two against one log2(3) - 2/3; none 0.
ONE, TWO = bar((0, 60), (6, 72)), bar((0, 60), (12, 62))
THIRD = bar((0, 60), (6, 72), (12, 62))
THIRD_BITS = np.log2(3) - 2 / 3


def test_entropy_difference_by_hand() -> None:
    # middle: 1, 0, 0 (empty), 1 bits | context: six bars of 0, five of 1, one empty
    whole = context(ONE * 6, ONE * 4, TWO * 5 + EMPTY)
    middle = [TWO + ONE + EMPTY + TWO]
    # pairs: each 1 differs from seven zeros, each 0 from five ones
    pairs = (2 * 7 + 2 * 5) / 48
    feature = divergence.pitch_class_entropy_difference
    np.testing.assert_allclose(feature(whole, middle, variant="paper"), [pairs], rtol=1e-12)
    np.testing.assert_allclose(feature(whole, middle), [pairs / np.log2(12)], rtol=1e-12)
    # without the empty bars: 1, 0, 1 against six 0 and five 1, in nats
    np.testing.assert_allclose(feature(whole, middle, variant="official"), [(2 * 6 + 1 * 5) / 33 * LN2], rtol=1e-12)


def test_entropy_counts_onsets_by_class() -> None:
    whole = context(THIRD * 6, THIRD * 4, THIRD * 6)
    feature = divergence.pitch_class_entropy_difference(whole, [ONE * 4], variant="paper")
    np.testing.assert_allclose(feature, [THIRD_BITS], rtol=1e-12)


def test_entropy_has_its_largest_value_with_all_twelve_classes() -> None:
    chromatic = bar(*((2 * k, 48 + k) for k in range(12)))
    whole = context(ONE * 6, ONE * 4, ONE * 6)
    feature = divergence.pitch_class_entropy_difference
    np.testing.assert_allclose(feature(whole, [chromatic * 4]), [1], rtol=1e-12)
    np.testing.assert_allclose(feature(whole, [chromatic * 4], variant="paper"), [np.log2(12)], rtol=1e-12)
    np.testing.assert_allclose(feature(whole, [chromatic * 4], variant="official"), [np.log(12)], rtol=1e-12)


def test_groove_by_hand() -> None:
    # ONE has onsets at 0 and 6, TWO at 0 and 12: they differ at 2 of 24 steps; an empty bar from either at 2
    whole = context(ONE * 6, ONE * 4, TWO * 5 + EMPTY)
    middle = [ONE + ONE + ONE + EMPTY]
    # three times 5 + 1 bars differ by 2, the empty bar differs by 2 from 11
    corrected = 1 - (3 * 6 * 2 + 11 * 2) / (48 * 24)
    for variant in ("corrected", "paper"):
        values = divergence.groove_similarity(whole, middle, variant=variant)
        np.testing.assert_allclose(values, [corrected], rtol=1e-12)
    # three bars against eleven
    official = 1 - 3 * 5 * 2 / (33 * 24)
    np.testing.assert_allclose(divergence.groove_similarity(whole, middle, variant="official"), [official], rtol=1e-6)


@pytest.mark.parametrize("variant", VARIANTS)
def test_only_past_and_future_of_the_context_are_read(variant: str) -> None:
    rng = np.random.default_rng(0)
    whole = rng.choice([H, H, R, 60, 64, 67], (5, 384)).astype(np.uint8)
    middle = rng.choice([H, H, R, 60, 64, 67], (5, 96)).astype(np.uint8)
    for feature in (divergence.pitch_class_entropy_difference, divergence.groove_similarity):
        np.testing.assert_array_equal(
            feature(whole, middle, variant=variant), feature(put(whole, middle), middle, variant=variant)
        )


@pytest.mark.parametrize("variant", VARIANTS)
def test_passages_without_any_onset(variant: str) -> None:
    silent = context(EMPTY * 6, EMPTY * 4, EMPTY * 6)
    assert divergence.pitch_class_entropy_difference(silent, [EMPTY * 4], variant=variant) == 0
    # two empty grooves are equal; the official code has no bars to compare
    assert divergence.groove_similarity(silent, [EMPTY * 4], variant=variant) == (variant != "official")


@given(item_sets)
def test_features_against_plain_python(plain: ModuleType, items: tuple[np.ndarray, np.ndarray]) -> None:
    contexts, middles = items
    rows = [
        (whole[:144], middle, whole[240:]) for whole, middle in zip(*(side.tolist() for side in items), strict=True)
    ]
    np.testing.assert_array_equal(divergence.silence_rate(middles), [plain.silence(middle) for _, middle, _ in rows])
    for variant, scale in {"corrected": np.log2(12), "paper": 1.0}.items():
        np.testing.assert_allclose(
            divergence.pitch_class_entropy_difference(contexts, middles, variant=variant),
            [plain.entropy_difference(*row, scale=scale) for row in rows],
            atol=1e-12,
        )
        np.testing.assert_allclose(
            divergence.groove_similarity(contexts, middles, variant=variant),
            [plain.groove(*row) for row in rows],
            atol=1e-12,
        )


@given(items=item_sets, variant=st.sampled_from(VARIANTS))
def test_one_pass_gives_what_the_single_features_give(items: tuple[np.ndarray, np.ndarray], variant: str) -> None:
    contexts, middles = items
    true = contexts[:, 144:240]
    expected = [
        *(divergence.silence_rate(side) for side in (true, middles)),
        *(divergence.pitch_class_entropy_difference(contexts, side, variant=variant) for side in (true, middles)),
        *(divergence.groove_similarity(contexts, side, variant=variant) for side in (true, middles)),
    ]
    np.testing.assert_array_equal(divergence.feature_rows(contexts, middles, variant=variant), expected)


# histograms and the divergence


@pytest.mark.parametrize("variant", ["corrected", "paper"])
def test_bins_are_closed_below_and_the_last_takes_the_rest(variant: str) -> None:
    values = [0, 0.00999, 0.01, 0.29, 0.57, 0.58, 0.98, 0.99, 1, 1.5, 3.585]
    # 0.29, 0.57 and 0.58 times 100 fall short of whole numbers in floating point
    expected = [0, 0, 1, 29, 57, 58, 98, 99, 99, 99, 99]
    assert divergence.histogram_bins(values, variant=variant).tolist() == expected
    assert divergence.n_bins(variant) == 100


def test_rounding_does_not_keep_a_value_below_an_edge() -> None:
    # three and four classes against one: (log2 3 + log2 4) / 4 bits over log2 12 are a quarter, whatever the floats say
    three, four = bar((0, 60), (6, 62), (12, 64)), bar((0, 60), (6, 62), (12, 64), (18, 65))
    whole = context(ONE * 6, ONE * 4, ONE * 6)
    values = divergence.pitch_class_entropy_difference(whole, [four + three + ONE + ONE])
    assert values[0] == pytest.approx(0.25, abs=1e-12)
    assert divergence.histogram_bins(values).tolist() == [25]
    assert divergence.histogram_bins([0.25 - 1e-12, 0.25 - 1e-7]).tolist() == [25, 24]


def test_official_bins_lose_what_lies_above() -> None:
    values = [0, 0.01, 0.29, 0.98, 0.99, 0.9900001, 1, 2.4]
    assert divergence.histogram_bins(values, variant="official").tolist() == [0, 1, 29, 98, 98, -1, -1, -1]
    assert divergence.n_bins("official") == 99


@given(hnp.arrays(np.float64, 20, elements=st.floats(0, 4) | st.integers(0, 110).map(lambda k: k / 100)))
def test_official_bins_are_those_of_numpy_histogram(values: np.ndarray) -> None:
    bins = divergence.histogram_bins(values, variant="official")
    expected, _ = np.histogram(values, bins=[i / 100 for i in range(100)])
    assert np.bincount(bins[bins >= 0], minlength=99).tolist() == expected.tolist()


@pytest.mark.parametrize("value", [-0.1, np.nan])
def test_what_is_no_feature_has_no_bin(value: float) -> None:
    with pytest.raises(InvalidInputError):
        divergence.histogram_bins([0.5, value])


masses = hnp.arrays(np.float64, (2, 3, 6), elements=st.sampled_from([0.0, 0.0, 0.25, 1.0, 3.0])).filter(
    lambda pair: (pair.sum(axis=2) > 0).all()
)


@given(masses)
def test_divergence_is_the_square_of_scipys_distance(pair: np.ndarray) -> None:
    p, q = pair / pair.sum(axis=2, keepdims=True)
    expected = jensenshannon(p, q, axis=1) ** 2
    np.testing.assert_allclose(divergence.jensen_shannon(p, q), expected, atol=1e-15)
    np.testing.assert_allclose(divergence.jensen_shannon(p, q, base="bits"), expected / LN2, atol=1e-15)
    np.testing.assert_array_equal(divergence.jensen_shannon(q, p), divergence.jensen_shannon(p, q))
    np.testing.assert_allclose(divergence.normalised_jensen_shannon(*pair), expected, atol=1e-15)


def test_lost_mass_is_not_replaced() -> None:
    # fact sheet 3.2: all of one side lost against all of the other kept gives half of ln 2
    assert divergence.jensen_shannon([0.0, 0.0], [1.0, 0.0]) == pytest.approx(LN2 / 2)
    assert divergence.jensen_shannon([0.0], [0.0]) == 0


def test_a_histogram_without_mass() -> None:
    given_one = divergence.normalised_jensen_shannon([[0, 0], [0, 0], [1, 0]], [[3, 0], [0, 0], [1, 0]])
    np.testing.assert_allclose(given_one, [LN2, np.nan, 0])


# set metrics


def divergence_of(name: str, *items: object, **options: str) -> float:
    return getattr(divergence, name)(*items, **options)


def test_silence_divergence_by_hand() -> None:
    # true middles rest 0, 0, 1, 1; filled ones 0, 1, 1, 1: masses 1/2, 1/2 and 1/4, 3/4
    sound, silent = bar((0, 60)) * 4, EMPTY * 4
    contexts = np.concatenate([context(ONE * 6, middle, ONE * 6) for middle in (sound, sound, silent, silent)])
    middles = np.array([sound, silent, silent, silent], np.uint8)
    expected = (np.log(4 / 3) / 2 + np.log(4 / 5) / 2 + np.log(2 / 3) / 4 + np.log(6 / 5) * 3 / 4) / 2
    assert divergence.silence_divergence(contexts, middles) == pytest.approx(expected)
    assert divergence.silence_divergence(contexts, middles, base="bits") == pytest.approx(expected / LN2)


def divergences_of(*items: object) -> dict[tuple[str, str], float]:
    """Each divergence in each variant."""
    return {
        (name, variant): divergence_of(name, *items, variant=variant) for name in DIVERGENCES for variant in VARIANTS
    }


class TestLaws:
    @given(items=item_sets)
    def test_the_true_middles_are_at_distance_zero(self, items: tuple) -> None:
        contexts, _ = items
        assert set(divergences_of(contexts, contexts[:, 144:240]).values()) == {0}

    @given(items=item_sets)
    def test_bounds_and_symmetry(self, items: tuple) -> None:
        contexts, middles = items
        values = divergences_of(contexts, middles)
        assert all(0 <= value <= LN2 + 1e-12 for value in values.values()), values
        assert divergences_of(put(contexts, middles), contexts[:, 144:240]) == values

    @given(items=item_sets, data=st.data())
    def test_order_of_items(self, items: tuple, data: st.DataObject) -> None:
        contexts, middles = items
        order = data.draw(st.permutations(range(len(middles))))
        assert divergences_of(contexts[order], middles[order]) == divergences_of(contexts, middles)

    @given(items=item_sets, semitones=st.integers(-60, 0))
    def test_transposition_of_whole_items(self, items: tuple, semitones: int) -> None:
        moved = [np.where(side < H, side.astype(np.int16) + semitones, side).astype(np.uint8) for side in items]
        values, others = divergences_of(*items), divergences_of(*moved)
        # their sum over the pitch classes depends on its order in the last bit, which may change a bin
        del values["pitch_class_divergence", "official"], others["pitch_class_divergence", "official"]
        assert others == values

    def test_chunks_leave_no_trace(self, monkeypatch: pytest.MonkeyPatch) -> None:
        rng = np.random.default_rng(3)
        contexts = rng.choice([H, H, H, R, 60, 62, 65], (40, 384)).astype(np.uint8)
        middles = rng.choice([H, H, H, R, 60, 62, 65], (40, 96)).astype(np.uint8)
        whole = divergences_of(contexts, middles)
        monkeypatch.setattr(arrays, "CHUNK_ROWS", 7)
        assert divergences_of(contexts, middles) == whole

    def test_input_is_left_alone_and_may_be_read_only(self) -> None:
        contexts = np.tile(np.array(ONE, np.uint8), (2, 16))
        contexts.setflags(write=False)
        assert set(divergences_of(contexts, contexts[:, 144:240]).values()) == {0}


@pytest.mark.parametrize("name", DIVERGENCES)
def test_bad_input_is_named(name: str) -> None:
    contexts, middles = np.full((2, 384), R, np.uint8), np.full((2, 96), R, np.uint8)
    with pytest.raises(ContextLengthError, match="384"):
        divergence_of(name, middles, middles)
    with pytest.raises(ContextLengthError, match="96"):
        divergence_of(name, contexts, contexts)
    with pytest.raises(PairCountError):
        divergence_of(name, contexts, middles[:1])
    with pytest.raises(InvalidTokensError, match="130"):
        divergence_of(name, contexts + 1, middles)
    with pytest.raises(NoDataError):
        divergence_of(name, contexts[:0], middles[:0])
    with pytest.raises(UnknownNameError, match="variant"):
        divergence_of(name, contexts, middles, variant="published")
    with pytest.raises(UnknownNameError, match="base"):
        divergence_of(name, contexts, middles, base="decibels")
