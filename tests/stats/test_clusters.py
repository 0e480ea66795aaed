import numpy as np
import pytest

from music_evals.errors import InvalidInputError, PairCountError
from music_evals.stats import clusters
from music_evals.stats.clusters import blocks, check_bins, check_groups, random_bits


@pytest.mark.parametrize(
    ("groups", "codes"),
    [
        (["b", "a", "b", "c"], [1, 0, 1, 2]),
        (np.array(["b", "a", "b", "c"]), [1, 0, 1, 2]),
        (np.array(["b", "a", "b", "c"], dtype=object), [1, 0, 1, 2]),
        ([7, -2, 7, 30], [1, 0, 1, 2]),
        (np.array([7, 2, 7, 30], dtype=np.uint8), [1, 0, 1, 2]),
        ([True, False, True, True], [1, 0, 1, 1]),
        (None, [0, 1, 2, 3]),
    ],
)
def test_clusters_are_numbered_in_the_order_of_their_labels(groups, codes):
    numbered, n_clusters = check_groups(groups, 4)
    assert numbered.tolist() == codes
    assert n_clusters == max(codes) + 1


def test_no_items_have_no_clusters():
    assert check_groups([], 0)[1] == 0
    assert check_groups(None, 0)[1] == 0


@pytest.mark.parametrize("groups", [["a"], [["a", "b"]], "ab", 3])
def test_one_label_per_item(groups):
    with pytest.raises(PairCountError):
        check_groups(groups, 2)


@pytest.mark.parametrize("groups", [[0.5, 1.0], [np.nan, 1.0], ["a", None], [("a",), 3]])
def test_labels_are_numbers_or_strings(groups):
    labels = np.empty(2, dtype=object)
    labels[:] = groups
    with pytest.raises(InvalidInputError, match="whole numbers or strings"):
        check_groups(labels, 2)


def test_discarded_values_go_to_an_extra_bin():
    bins = np.array([0, -1, 3])
    assert check_bins(bins, 4, "bins").tolist() == [0, 4, 3]
    assert bins.tolist() == [0, -1, 3]


@pytest.mark.parametrize("bins", [[4], [-2], [0.5], [[1]], ["a"]])
def test_bins_are_whole_numbers_in_range(bins):
    with pytest.raises(InvalidInputError, match="my_bins"):
        check_bins(bins, 4, "my_bins")


def test_unsigned_bins_are_accepted():
    assert check_bins(np.array([0, 3], dtype=np.uint8), 4, "bins").tolist() == [0, 3]


def test_blocks_add_up_and_are_bounded(monkeypatch):
    monkeypatch.setattr(clusters, "BLOCK_ENTRIES", 100)
    assert list(blocks(25, 10)) == [10, 10, 5]
    assert list(blocks(3, 1000)) == [1, 1, 1]
    assert list(blocks(3, 0)) == [3]


def test_bits_are_fair_and_independent():
    bits = random_bits(np.random.default_rng(0), 4000, 70)
    assert bits.shape == (4000, 70)
    assert set(np.unique(bits)) == {0, 1}
    # 4,000 tosses: standard deviation 0.008; correlation of two columns: 0.016
    assert np.abs(bits.mean(axis=0) - 0.5).max() < 0.04
    correlation = np.corrcoef(bits.T) - np.eye(70)
    assert np.abs(correlation).max() < 0.08


def test_bits_do_not_depend_on_the_block():
    whole = random_bits(np.random.default_rng(3), 10, 70)
    rng = np.random.default_rng(3)
    np.testing.assert_array_equal(whole, np.concatenate([random_bits(rng, 4, 70), random_bits(rng, 6, 70)]))
