from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import adjusted_rand_score

from music_evals.annotations import Segments, StructureFrames
from music_evals.errors import UndefinedMetricWarning
from music_evals.metrics import structure


def sections(edges: list[float], labels: str) -> Segments:
    return Segments(np.stack([edges[:-1], edges[1:]], axis=1).astype(np.float64), tuple(labels))


ABA = sections([0, 10, 20, 30], "ABA")
EMPTY = Segments(np.zeros((0, 2)), ())


def test_ari_by_hand() -> None:
    # Frames of A and B against X and Y, 100 frames a section: A is 200, B 100, X 100, Y 200, and A-X 100, A-Y 100,
    # B-Y 100. Pairs in one section: both 3 * C(100, 2) = 14850, reference C(200, 2) + C(100, 2) = 24850, estimate the
    # same, chance 24850 ** 2 / C(300, 2) = 13768.6, so (14850 - 13768.6) / (24850 - 13768.6).
    estimate = sections([0, 10, 30], "XY")
    assert structure.segment_ari(ABA, estimate) == pytest.approx(0.09759, abs=1e-5)
    assert structure.segment_ari(ABA, sections([0, 10, 20, 30], "xyx")) == 1


@pytest.mark.parametrize(
    ("reference", "estimate", "expected"),
    [
        (sections([0, 30], "A"), sections([0, 30], "B"), 1.0),  # one label on both
        (ABA, sections([0, 30], "A"), 0.0),  # one label on one side
        (sections([0, 30], "A"), ABA, 0.0),
        (ABA, EMPTY, 0.0),
        (sections([0, 10, 20, 30], "AaA"), sections([0, 10, 20, 30], "ABA"), 1.0),  # case tells labels apart
        (ABA, sections([0, 10, 20, 30, 40], "ABAC"), 1.0),  # what comes after the reference does not count
        (ABA, sections([0, 10, 20, 45], "ABA"), 1.0),
    ],
)
def test_ari_at_its_edges(reference: Segments, estimate: Segments, expected: float) -> None:
    assert structure.segment_ari(reference, estimate) == expected


def test_what_a_shorter_estimate_leaves_open_is_a_section_of_its_own() -> None:
    estimate = sections([0, 10, 20], "AB")
    assert structure.segment_ari(ABA, estimate) == structure.segment_ari(ABA, sections([0, 10, 20, 30], "ABC"))
    assert structure.segment_ari(ABA, estimate) < 1


def test_no_reference_no_index() -> None:
    for reference in (EMPTY, sections([0, 0.05], "A")):
        with pytest.warns(UndefinedMetricWarning, match="segment_ari is undefined: the reference has no sections"):
            assert math.isnan(structure.segment_ari(reference, ABA))


@st.composite
def labelled(draw: st.DrawFn) -> tuple[Segments, np.ndarray]:
    """Sections that change between two frames of 0.1 s, and the label of each of 300 frames."""
    cuts = sorted(draw(st.sets(st.integers(0, 298), max_size=8)))
    labels = draw(st.lists(st.sampled_from("ABC"), min_size=len(cuts) + 1, max_size=len(cuts) + 1))
    edges = [0.0, *((cut + 0.5) * 0.1 for cut in cuts), 30.0]
    frames = np.repeat(labels, np.diff([0, *(cut + 1 for cut in cuts), 300]))
    return sections(edges, "".join(labels)), frames


@given(labelled(), labelled())
def test_ari_is_that_of_scikit_learn(
    reference: tuple[Segments, np.ndarray], estimate: tuple[Segments, np.ndarray]
) -> None:
    expected = adjusted_rand_score(reference[1], estimate[1])
    assert structure.segment_ari(reference[0], estimate[0]) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    ("estimate", "half", "three"),
    [
        (sections([0, 10.5, 30], "AB"), 2 / 3, 2 / 3),  # one of two, the limit counts
        (sections([0, 10.6, 22.9, 30], "ABC"), 0.0, 1.0),
        (sections([0, 9.8, 10.2, 30], "ABC"), 0.5, 0.5),  # two near one boundary: one hit, 2 * 1 / (2 + 2)
        (sections([0, 30], "A"), 0.0, 0.0),
        (EMPTY, 0.0, 0.0),
        (sections([0, 10, 20, 30, 40], "ABAB"), 1.0, 1.0),  # a boundary at the end of the reference does not count
        (sections([0, 10, 20], "AB"), 2 / 3, 2 / 3),  # an early end is no boundary
    ],
)  # fmt: skip
def test_boundaries_by_hand(estimate: Segments, half: float, three: float) -> None:
    assert structure.boundary_f_measure(ABA, estimate) == pytest.approx(half)
    assert structure.boundary_f_measure(ABA, estimate, window_sec=3.0) == pytest.approx(three)


def test_no_boundary_on_either_side() -> None:
    for pair in [(sections([0, 30], "A"), sections([0, 20], "A")), (EMPTY, EMPTY), (EMPTY, ABA)]:
        with pytest.warns(UndefinedMetricWarning, match="neither side has a boundary between sections"):
            assert math.isnan(structure.boundary_f_measure(*pair))
        assert structure.boundary_f_measure(*pair, variant="official") == 0
    assert structure.boundary_f_measure(sections([0, 30], "A"), ABA) == 0


def test_the_official_variant_where_the_shift_rounds_the_end() -> None:
    """5.1 s moved by -2 s lies a rounding error before 3.1 s: both sides have 31 frames, and agree as by chance."""
    reference = Segments(np.array([[0.0, 3.1]]), ("A",))
    estimate = Segments(np.array([[0.0, 0.2], [0.2, 2.1], [2.1, 5.1], [5.1, 5.3]]), ("A", "A", "B", "A"))
    assert structure.segment_ari(reference, estimate, variant="official") == 0.0


def test_the_official_variant_moves_the_estimate() -> None:
    late = sections([0, 11.5, 21.5, 31.5], "ABA")
    assert structure.boundary_f_measure(ABA, late) == structure.boundary_f_measure(ABA, late, variant="paper") == 0
    assert structure.boundary_f_measure(ABA, late, variant="official") == 1
    early = sections([0, 9, 19, 29], "ABA")
    with pytest.warns(UndefinedMetricWarning, match="moves the estimate later, and the spans differ"):
        assert math.isnan(structure.segment_ari(ABA, early, variant="official"))
    for pair in [(EMPTY, ABA), (ABA, EMPTY)]:
        with pytest.warns(UndefinedMetricWarning, match="does not overlap"):
            assert math.isnan(structure.segment_ari(*pair, variant="official"))


# Self-similarity


def form(letters: str, *, seconds: float = 6.0, hop_sec: float = 0.25, transposed: int = 0) -> StructureFrames:
    """Each letter is a section of one random feature vector with a little noise; vectors and noise are seeded."""
    rng = np.random.default_rng(3)
    vectors = {letter: rng.normal(size=12) for letter in "ABC"}
    n = round(seconds / hop_sec)
    frames = np.concatenate([np.tile(vectors[letter][:, None], n) for letter in letters], axis=1)
    frames = frames + 0.05 * rng.normal(size=frames.shape)
    return StructureFrames(np.roll(frames, transposed, axis=0), hop_sec)


def plain(reference: StructureFrames, estimate: StructureFrames) -> float:
    """The definition without its economies: whole matrices, numpy's correlation."""
    from scipy.ndimage import uniform_filter1d

    n = min(reference.frames.shape[1], estimate.frames.shape[1])
    matrices = []
    for side in (reference, estimate):
        smooth = uniform_filter1d(side.frames[:, :n], round(1 / side.hop_sec), axis=1, mode="nearest")
        unit = smooth / np.linalg.norm(smooth, axis=0)
        matrices.append(unit.T @ unit)
    i, j = np.indices(matrices[0].shape)
    far = (j - i) * reference.hop_sec > 2
    return float(np.corrcoef(matrices[0][far], matrices[1][far])[0, 1])


@pytest.mark.parametrize("letters", ["ABAB", "AABB", "ABCA" * 12])  # the last is longer than a block of rows
def test_self_similarity_is_the_correlation_of_whole_matrices(letters: str) -> None:
    reference, estimate = form("ABAB" * (len(letters) // 4)), form(letters)
    assert structure.ssm_correlation(reference, estimate) == pytest.approx(plain(reference, estimate), abs=1e-12)


def test_self_similarity_sees_order_and_nothing_else() -> None:
    reference = form("ABAB")
    assert structure.ssm_correlation(reference, reference) == 1
    assert structure.ssm_correlation(reference, form("ABAB", transposed=5)) == pytest.approx(1)
    assert structure.ssm_correlation(reference, form("AABB")) < 0.2
    # other music in the same form
    other = StructureFrames(np.random.default_rng(9).normal(size=(12, 12)) @ reference.frames, 0.25)
    assert structure.ssm_correlation(reference, other) > 0.9


def test_the_longer_side_is_cut() -> None:
    assert structure.ssm_correlation(form("ABAB"), form("ABABC")) == pytest.approx(1, abs=0.01)
    assert structure.ssm_correlation(form("ABABC"), form("ABAB")) == pytest.approx(1, abs=0.01)


@pytest.mark.parametrize("ratio", [0.8, 1.25])
def test_another_tempo_is_read_at_its_speed(ratio: float) -> None:
    reference, estimate = form("ABCAB"), form("ABCAB", seconds=6 / ratio)
    right = structure.ssm_correlation(reference, estimate, tempo_ratio=ratio)
    assert right > 0.97
    assert structure.ssm_correlation(reference, estimate) < right - 0.2


def test_another_hop_is_read_at_its_times() -> None:
    assert structure.ssm_correlation(form("ABCAB"), form("ABCAB", hop_sec=0.2)) > 0.97


def test_nothing_to_correlate() -> None:
    uniform = StructureFrames(np.ones((4, 100)), 0.25)
    assert structure.ssm_correlation(form("ABAB"), uniform) == 0
    with pytest.warns(UndefinedMetricWarning, match="equally similar"):
        assert math.isnan(structure.ssm_correlation(uniform, form("ABAB")))
    for n in (0, 10):  # 10 frames of 0.25 s: one pair is more than 2 s apart
        short = StructureFrames(np.random.default_rng(1).normal(size=(4, n)), 0.25)
        with pytest.warns(UndefinedMetricWarning, match="more than 2 s apart"):
            assert math.isnan(structure.ssm_correlation(short, short))
