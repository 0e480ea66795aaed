from __future__ import annotations

from types import ModuleType

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from music_evals.errors import (
    ContextLengthError,
    InvalidInputError,
    InvalidTokensError,
    NoDataError,
    PairCountError,
    UndefinedMetricWarning,
    UnknownNameError,
)
from music_evals.metrics import arrays, inpainting

H, R = 128, 129
NAN = float("nan")
F1_SCORES = ["position_score", "note_f1"]
ACCURACIES = ["pitch_accuracy", "rhythm_accuracy"]
NOTE_METRICS = [*F1_SCORES, *ACCURACIES]
METRICS = [*NOTE_METRICS, "consonance_pitch_accuracy"]

undefined_allowed = pytest.mark.filterwarnings("ignore::music_evals.errors.UndefinedMetricWarning")
# few values, so that positions, pitches and durations coincide often; both ends of the pitch range are among them
tokens = st.sampled_from([H, H, H, R, 60, 60, 61, 72, 0, 127])


def pairs(steps: st.SearchStrategy[int] | None = None, n: int = 3) -> st.SearchStrategy[np.ndarray]:
    """Reference and estimates, shape (2, n, steps)."""
    # 64 and 65: a sequence that fills a machine word, and one that does not
    lengths = steps or st.sampled_from([1, 2, 24, 63, 64, 65, 96, 130])
    return lengths.flatmap(lambda s: hnp.arrays(np.uint8, (2, n, s), elements=tokens))


def score(name: str, reference: object, estimate: object, **options: str) -> np.ndarray:
    return getattr(inpainting, name)(reference, estimate, **options)


# Reference: C4 for two steps, D4 for two, rest, E4 for one | estimate: the cases.
REFERENCE = [60, H, 62, H, R, 64]
TOY = [
    # the same
    ([60, H, 62, H, R, 64], 1, 1, 1, 1),
    # positions 0, 2 of 0, 2, 5: F1 4/5; both pitches right; durations 2 = 2 and 4 != 2
    ([60, H, 62, H, H, H], 4 / 5, 1, 1 / 2, 4 / 5),
    # positions equal; pitches right, wrong, wrong: F1 2 * 1 / 6; all durations right
    ([60, H, 63, H, R, 76], 1, 1 / 3, 1, 1 / 3),
    # positions 1, 5 of 0, 2, 5: one shared of 3 + 2; that one has pitch and length of E4
    ([R, 60, H, H, H, 64], 2 / 5, 1, 1, 2 / 5),
    # every step an onset: shared 0, 2, 5 of 3 + 6; C4 and D4 are too short, E4 is right
    ([60, 60, 62, 62, 62, 64], 6 / 9, 1, 1 / 3, 6 / 9),
    # nothing shared
    ([R, 60, H, 62, H, R], 0, NAN, NAN, 0),
    # no note at all: holds belong to none
    ([H, H, R, H, H, H], 0, NAN, NAN, 0),
]


@undefined_allowed
@pytest.mark.parametrize(("estimate", "position", "pitch", "rhythm", "f1"), TOY)
def test_worked_cases(estimate: list[int], position: float, pitch: float, rhythm: float, f1: float) -> None:
    assert inpainting.position_score(REFERENCE, estimate) == pytest.approx(position, abs=1e-15)
    assert inpainting.pitch_accuracy(REFERENCE, estimate) == pytest.approx(pitch, abs=1e-15, nan_ok=True)
    assert inpainting.rhythm_accuracy(REFERENCE, estimate) == pytest.approx(rhythm, abs=1e-15, nan_ok=True)
    assert inpainting.note_f1(REFERENCE, estimate) == pytest.approx(f1, abs=1e-15)


def test_the_last_note_is_cut_at_the_end() -> None:
    # both last notes reach the end, wherever they would have gone; a rest before the end makes the difference
    assert inpainting.rhythm_accuracy([R, 60, H, H], [R, 60, H, H]) == 1
    assert inpainting.rhythm_accuracy([R, 60, H, H], [R, 60, H, R]) == 0


@pytest.mark.parametrize("start", [0, 61, 62, 63, 64, 100, 127, 128])
def test_notes_across_machine_words(start: int) -> None:
    # 192 steps are three words of 64 bits; the durations are compared by a carry that runs through them
    ends = [end for end in (63, 64, 65, 66, 126, 127, 128, 129, 130, 191, 192) if end > start]
    notes = np.full((len(ends), 192), R, np.uint8)
    for row, end in zip(notes, ends, strict=True):
        row[start:end] = [60, *[H] * (end - start - 1)]
    first, second = (index.ravel() for index in np.indices((len(ends), len(ends))))
    np.testing.assert_array_equal(inpainting.rhythm_accuracy(notes[first], notes[second]), first == second)


def test_holds_that_belong_to_no_note_change_nothing() -> None:
    assert inpainting.rhythm_accuracy([R, H, 60, H, R, R], [H, H, 60, H, R, H]) == 1


def test_rests_and_the_rest_of_an_earlier_note_are_one_to_these_metrics_with_notes_and_without() -> None:
    """Were silence against a held note 0 without any note, one equal note at the end would turn it into 1."""
    for metric in (inpainting.note_f1, inpainting.position_score):
        for held, silent in (([H] * 6, [R] * 6), ([H] * 5 + [60], [R] * 5 + [60])):
            assert metric(held, silent) == metric(silent, held) == 1


def test_shared_middle_of_a_long_note_is_no_position() -> None:
    assert inpainting.position_score([60, H, H, H], [60, H, 60, H]) == pytest.approx(2 / 3)


# reference, estimate, then (F1 scores, accuracies) for corrected, paper and official
EMPTY = [
    ([R, R], [H, R], (1, NAN), (NAN, NAN), (0, 0)),
    ([60, R], [R, R], (0, NAN), (0, NAN), (0, 0)),
    ([60, R], [R, 60], (0, NAN), (0, NAN), (0, 0)),
    ([60, R], [60, R], (1, 1), (1, 1), (1, 1)),
]


@undefined_allowed
@pytest.mark.parametrize(("reference", "estimate", "corrected", "paper", "official"), EMPTY)
def test_empty_sides(
    reference: list[int], estimate: list[int], corrected: tuple, paper: tuple, official: tuple
) -> None:
    for variant, (f1, accuracy) in {"corrected": corrected, "paper": paper, "official": official}.items():
        for name in F1_SCORES:
            np.testing.assert_equal(float(score(name, reference, estimate, variant=variant)), float(f1))
        for name in ACCURACIES:
            np.testing.assert_equal(float(score(name, reference, estimate, variant=variant)), float(accuracy))


@pytest.mark.parametrize("name", NOTE_METRICS)
def test_official_names_the_item_it_cannot_score(name: str) -> None:
    with pytest.raises(InvalidInputError, match=r"item 1: .*without onset"):
        score(name, [[60, R], [R, R]], [[60, R], [60, R]], variant="official")


@pytest.mark.parametrize("name", ACCURACIES)
def test_undefined_items_are_warned_of(name: str) -> None:
    with pytest.warns(UndefinedMetricWarning, match=f"{name} is undefined for 1 of 2 items") as caught:
        scores = score(name, [[60, R], [60, R]], [[60, R], [R, 60]])
    np.testing.assert_array_equal(scores, [1, NAN])
    assert caught[0].filename == __file__


@undefined_allowed
@given(pairs())
def test_against_plain_python(plain: ModuleType, sides: np.ndarray) -> None:
    reference, estimate = sides
    for variant, empty in {"corrected": 1.0, "paper": NAN}.items():
        expected = [plain.item_scores(*pair, empty=empty) for pair in zip(*sides.tolist(), strict=True)]
        for name in NOTE_METRICS:
            scores = score(name, reference, estimate, variant=variant)
            np.testing.assert_array_equal(scores, [row[name] for row in expected])


@given(pairs())
def test_counts_against_plain_python(plain: ModuleType, sides: np.ndarray) -> None:
    counts = inpainting.note_counts(*sides)
    for item, (reference, estimate) in enumerate(zip(*sides.tolist(), strict=True)):
        true, found = plain.notes(reference), plain.notes(estimate)
        assert counts.reference[item] == len(true)
        assert counts.estimate[item] == len(found)
        assert counts.shared[item] == len({note[0] for note in true} & {note[0] for note in found})
        assert counts.same_pitch[item] == len({note[:2] for note in true} & {note[:2] for note in found})
        assert counts.same_duration[item] == len({note[::2] for note in true} & {note[::2] for note in found})


@undefined_allowed
class TestLaws:
    @given(sides=pairs())
    def test_identity_is_perfect(self, sides: np.ndarray) -> None:
        empty = ~(sides[0] < H).any(axis=1)
        for name in METRICS:
            scores = score(name, sides[0], sides[0])
            assert (scores[~empty] == 1).all(), name
            assert (scores[empty] == 1).all() if name in F1_SCORES else np.isnan(scores[empty]).all(), name

    @given(sides=pairs())
    def test_bounds(self, sides: np.ndarray) -> None:
        for name in METRICS:
            scores = score(name, *sides)
            assert ((scores >= 0) & (scores <= 1) | np.isnan(scores)).all(), name

    @given(sides=pairs())
    def test_symmetry(self, sides: np.ndarray) -> None:
        for name in METRICS:
            np.testing.assert_array_equal(score(name, *sides), score(name, *sides[::-1]), name)

    @given(sides=pairs(n=4), order=st.permutations(range(4)))
    def test_order_of_items(self, sides: np.ndarray, order: list[int]) -> None:
        for name in METRICS:
            np.testing.assert_array_equal(score(name, *sides)[order], score(name, *sides[:, order]), name)

    @given(sides=pairs(), semitones=st.integers(-12, 12))
    def test_transposition_of_both(self, sides: np.ndarray, semitones: int) -> None:
        inner = np.where((sides == 0) | (sides == 127), 60, sides).astype(np.int16)
        moved = np.where(inner < H, inner + semitones, inner).astype(np.uint8)
        for name in METRICS:
            np.testing.assert_array_equal(score(name, *inner), score(name, *moved), name)

    def test_input_is_left_alone_and_may_be_read_only(self) -> None:
        sides = np.array([[[60, H, 62, R]], [[60, R, 62, H]]], np.uint8)
        sides.setflags(write=False)
        assert {score(name, *sides).dtype for name in METRICS} == {np.dtype(np.float64)}

    def test_one_sequence_gives_one_number(self) -> None:
        for name in METRICS:
            single = score(name, [60, H], [60, R])
            assert single.shape == ()
            assert single == score(name, [[60, H]], [[60, R]])[0]

    def test_chunks_leave_no_trace(self, monkeypatch: pytest.MonkeyPatch) -> None:
        sides = np.random.default_rng(1).choice([H, H, R, 60, 62], (2, 50, 96)).astype(np.uint8)
        whole = [score(name, *sides) for name in METRICS]
        monkeypatch.setattr(arrays, "CHUNK_ROWS", 7)
        np.testing.assert_array_equal([score(name, *sides) for name in METRICS], whole)


@given(data=st.data())
def test_more_damage_never_scores_higher(data: st.DataObject) -> None:
    """Each stroke spoils a step that was still right: a note lost, moved in pitch, or put where none was."""
    reference = data.draw(hnp.arrays(np.uint8, 48, elements=tokens))
    damaged, last = reference.copy(), np.ones(len(F1_SCORES))
    for step in data.draw(st.permutations(range(48)).map(lambda steps: steps[:12])):
        damaged[step] = data.draw(st.sampled_from([H, R, 50, 51]))
        now = np.array([score(name, reference, damaged) for name in F1_SCORES])
        assert (now <= last).all()
        last = now


@given(pairs())
def test_note_f1_is_never_above_position_score(sides: np.ndarray) -> None:
    assert (inpainting.note_f1(*sides) <= inpainting.position_score(*sides)).all()


BAD = [
    ([60, 130], [60, 60], InvalidTokensError, "token 130 is outside the vocabulary"),
    ([60, -1], [60, 60], InvalidTokensError, "token -1 is outside"),
    ([60.0], [60.0], InvalidTokensError, "whole numbers"),
    ([[60]], [60], InvalidTokensError, "two arrays of shape"),
    ([[[60]]], [[[60]]], InvalidTokensError, "two arrays of shape"),
    ([60, 61], [60], ContextLengthError, "same number of steps, got 2 and 1"),
    ([], [], ContextLengthError, "same number of steps"),
    ([[60], [61]], [[60]], PairCountError, "2 references and 1 estimates"),
]


@pytest.mark.parametrize(("reference", "estimate", "error", "message"), BAD)
def test_bad_input_is_named(reference: list, estimate: list, error: type[Exception], message: str) -> None:
    for name in METRICS:
        with pytest.raises(error, match=message):
            score(name, reference, estimate)


@pytest.mark.parametrize("name", NOTE_METRICS)
def test_unknown_variant_names_the_nearest(name: str) -> None:
    with pytest.raises(UnknownNameError):
        score(name, [60], [60], variant="officially")


def test_no_items_give_no_scores() -> None:
    assert inpainting.position_score(np.zeros((0, 96), np.uint8), np.zeros((0, 96), np.uint8)).shape == (0,)


# consonance


def test_consonance_follows_its_table() -> None:
    # printed in Hall, Tamir and Rohrmeier (2025), table 1, row "Schwartz et al. (2003)", m2 to P8
    printed = [-1.0, -0.4, 0.0, 0.4, 0.6, -0.2, 0.8, 0.2, 0.4, -0.4, -0.8, 1.0]
    for semitones, value in enumerate(printed, start=1):
        for estimate in (60 + semitones, 60 - semitones, 60 + semitones + 12):
            assert inpainting.consonance_pitch_accuracy([60], [estimate]) == pytest.approx((value + 1) / 2)
    assert inpainting.consonance_pitch_accuracy([60], [60]) == 1


def test_consonance_is_a_mean_over_shared_positions() -> None:
    # shared: 0 (same, 1.0), 2 (minor second, 0.0), 3 (fifth, 0.9); step 1 is the estimate's own
    assert inpainting.consonance_pitch_accuracy([60, H, 62, 64], [60, 60, 63, 71]) == pytest.approx(1.9 / 3)


@undefined_allowed
@given(pairs())
def test_consonance_is_never_below_pitch_accuracy(sides: np.ndarray) -> None:
    soft, hard = inpainting.consonance_pitch_accuracy(*sides), inpainting.pitch_accuracy(*sides)
    np.testing.assert_array_equal(np.isnan(soft), np.isnan(hard))
    assert (np.nan_to_num(soft) >= np.nan_to_num(hard) - 1e-12).all()


# copying


def measure(pitch: int) -> list[int]:
    return [pitch, *[H] * 11, pitch + 4, *[H] * 11]


SILENT, HELD = [R] * 24, [H] * 24
# past: C, D, and four silent measures; future: E, a held measure, and four silent ones
CONTEXT = np.array([measure(60) + measure(62) + SILENT * 4 + SILENT * 4 + measure(64) + HELD + SILENT * 4], np.uint8)


@pytest.mark.parametrize(
    ("middle", "rate", "transposed_rate"),
    [
        # copies of the past and of the future, one of its own
        (measure(60) + measure(64) + measure(70) + measure(62), 3 / 4, 1),
        # silent and held measures do not count, though they are in the context too
        (measure(60) + SILENT + HELD + measure(65), 1 / 2, 1),
        # the same notes with another duration
        (measure(60)[:-1] + [R] + SILENT * 3, 0, 0),
        # the same rhythm with another interval
        ([60, *[H] * 11, 65, *[H] * 11] + SILENT * 3, 0, 0),
    ],
)
def test_self_replication(middle: list[int], rate: float, transposed_rate: float) -> None:
    assert inpainting.self_replication_rate(CONTEXT, [middle]) == pytest.approx(rate)
    assert inpainting.self_replication_rate(CONTEXT, [middle], transposed=True) == pytest.approx(transposed_rate)


def test_replication_of_a_corpus_looks_there_only() -> None:
    middle = [measure(60) + measure(70) + measure(72) + SILENT]
    assert inpainting.self_replication_rate(CONTEXT, middle, corpus=[measure(70) + measure(72)]) == pytest.approx(2 / 3)
    assert inpainting.self_replication_rate(CONTEXT, middle, corpus=measure(30)) == 0
    assert inpainting.self_replication_rate(CONTEXT, middle, corpus=measure(30), transposed=True) == 1


@pytest.mark.parametrize("first", [0, 60, 127])
@pytest.mark.parametrize("other", [H, R])
def test_transposition_does_not_mix_up_intervals_with_holds_and_rests(first: int, other: int) -> None:
    corpus = [[first, pitch, *[H] * 22] for pitch in range(128)]
    middle = [[first, other, *[H] * 22, *SILENT * 3]]
    assert inpainting.self_replication_rate(CONTEXT, middle, corpus=corpus, transposed=True) == 0


def test_the_true_middle_is_not_its_own_context() -> None:
    context = CONTEXT.copy()
    context[0, 144:168] = measure(80)
    assert inpainting.self_replication_rate(context, [measure(80) + SILENT * 3]) == 0


def test_replication_without_onset_is_undefined() -> None:
    with pytest.warns(UndefinedMetricWarning, match="no onset"):
        assert np.isnan(inpainting.self_replication_rate(CONTEXT, [SILENT * 2 + HELD * 2])).all()


def test_replication_by_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(2)
    bars = np.array([measure(60), measure(62), measure(64), measure(65)], np.uint8)
    contexts, middles = (bars[rng.integers(0, 4, (20, k))].reshape(20, -1) for k in (16, 4))
    whole = inpainting.self_replication_rate(contexts, middles)
    by_hand = [
        np.mean([any((bar == other).all() for other in outside) for bar in middle.reshape(4, 24)])
        for context, middle in zip(contexts, middles, strict=True)
        for outside in [np.delete(context.reshape(16, 24), slice(6, 10), axis=0)]
    ]
    np.testing.assert_array_equal(whole, by_hand)
    monkeypatch.setattr(arrays, "CHUNK_ROWS", 3)
    np.testing.assert_array_equal(inpainting.self_replication_rate(contexts, middles), whole)


def test_bad_replication_input_is_named() -> None:
    middle = [measure(60) * 4]
    with pytest.raises(ContextLengthError, match="384"):
        inpainting.self_replication_rate(middle, middle)
    with pytest.raises(ContextLengthError, match="96"):
        inpainting.self_replication_rate(CONTEXT, CONTEXT)
    with pytest.raises(PairCountError):
        inpainting.self_replication_rate(CONTEXT, middle * 2)
    with pytest.raises(ContextLengthError):
        inpainting.self_replication_rate(CONTEXT, middle, corpus=[60] * 25)
    with pytest.raises(NoDataError):
        inpainting.self_replication_rate(CONTEXT, middle, corpus=np.zeros((0, 24), np.uint8))
