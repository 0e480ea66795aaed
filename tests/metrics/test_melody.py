from __future__ import annotations

import functools
import itertools
import math
from collections import Counter
from collections.abc import Callable

import mir_eval
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from music_evals.annotations import F0Track, Melody
from music_evals.errors import InvalidInputError, UndefinedMetricWarning, UnknownNameError, UnsupportedTypeError
from music_evals.metrics import melody

FRAMES = {
    "voicing_recall": melody.voicing_recall,
    "voicing_false_alarm": melody.voicing_false_alarm,
    "raw_pitch_accuracy": melody.raw_pitch_accuracy,
    "raw_chroma_accuracy": melody.raw_chroma_accuracy,
    "overall_accuracy": melody.overall_accuracy,
}


def track(*frequencies_hz: float, hop_sec: float = 0.01, start_sec: float = 0.0) -> F0Track:
    return F0Track(start_sec + hop_sec * np.arange(len(frequencies_hz)), np.array(frequencies_hz, dtype=np.float64))


def scores(reference: F0Track, estimate: F0Track, **options: str) -> dict[str, float]:
    return {name: function(reference, estimate, **options) for name, function in FRAMES.items()}


def test_frames_by_hand() -> None:
    # 220 Hz: right; 449 is 35 cents above 440: right; 466 is 100 cents above: wrong; 880: right but for the octave;
    # voiced where it should not be; -330: right pitch, called unvoiced; unvoiced on both sides
    reference = track(220, 440, 440, 440, 0, 330, 0)
    estimate = track(220, 449, 466, 880, 220, -330, 0)
    assert scores(reference, estimate) == {
        "voicing_recall": pytest.approx(4 / 5),
        "voicing_false_alarm": pytest.approx(1 / 2),
        "raw_pitch_accuracy": pytest.approx(3 / 5),
        "raw_chroma_accuracy": pytest.approx(4 / 5),
        "overall_accuracy": pytest.approx(3 / 7),
    }


def test_an_estimate_without_voice() -> None:
    expected = {"voicing_recall": 0, "voicing_false_alarm": 0, "raw_pitch_accuracy": 0, "raw_chroma_accuracy": 0}
    for estimate in (track(0, 0, 0, 0), track()):
        assert scores(track(220, 220, 220, 0), estimate) == {**expected, "overall_accuracy": 1 / 4}
    # unvoiced with the right guess
    guessed = scores(track(220, 220, 220, 0), track(-220, -220, -300, 0))
    assert guessed["raw_pitch_accuracy"] == pytest.approx(2 / 3)
    assert guessed["overall_accuracy"] == 1 / 4


@pytest.mark.parametrize("name", FRAMES)
@pytest.mark.parametrize("reference", [track(), track(0, 0), track(-220, 0)], ids=["no frames", "rests", "guesses"])
def test_a_reference_without_voice(name: str, reference: F0Track) -> None:
    for estimate in (track(220, 220), track(0, 0), track()):
        with pytest.warns(UndefinedMetricWarning, match=f"{name} is undefined: the reference has no voiced frame"):
            assert math.isnan(FRAMES[name](reference, estimate))


def test_no_unvoiced_frame_no_false_alarm() -> None:
    with pytest.warns(UndefinedMetricWarning, match="the reference has no unvoiced frame"):
        assert math.isnan(melody.voicing_false_alarm(track(220, 220), track(220, 0)))
    assert melody.voicing_false_alarm(track(220, 220), track(220, 0), variant="official") == 0


def test_outside_of_its_span_the_estimate_is_unvoiced() -> None:
    reference = track(*[220] * 10)
    assert melody.voicing_recall(reference, track(*[220] * 6)) == pytest.approx(6 / 10)
    assert melody.voicing_recall(reference, track(*[220] * 6, start_sec=0.04)) == pytest.approx(6 / 10)
    assert melody.voicing_recall(reference, track(*[220] * 30)) == 1
    assert melody.voicing_recall(reference, track(220)) == pytest.approx(1 / 10)
    assert melody.voicing_recall(track(220), track(220, start_sec=0.001)) == 1
    # frames centred in the middle of their hop begin half a hop late
    assert melody.voicing_recall(reference, track(*[220] * 10, start_sec=0.005)) == 1


def test_another_grid() -> None:
    reference = track(*[0] * 10, *[220] * 20)  # voiced from 0.1 to 0.3 s
    twice = track(*[0] * 20, *[220] * 40, hop_sec=0.005)
    assert melody.overall_accuracy(reference, twice) == melody.overall_accuracy(twice, reference) == 1


@st.composite
def f0_tracks(draw: st.DrawFn, hop_sec: float, n: int) -> F0Track:
    values = st.sampled_from([0.0, 110.0, 220.0, 222.0, 440.0, 447.0, 500.0, -220.0])
    lengths = draw(st.lists(st.tuples(values, st.integers(1, 9)), min_size=1, max_size=8))
    frequencies = np.resize(np.concatenate([[value] * length for value, length in lengths]), n)
    frequencies[:2] = 220.0, 0.0  # mir_eval warns of a side without voice
    return track(*frequencies, hop_sec=hop_sec)


@given(f0_tracks(0.01, 40), f0_tracks(0.008, 60))
def test_frames_are_those_of_mir_eval(reference: F0Track, estimate: F0Track) -> None:
    # the estimate is longer, so its end is not touched
    expected = mir_eval.melody.evaluate(
        reference.times_sec, reference.frequencies_hz, estimate.times_sec, estimate.frequencies_hz
    )
    found = scores(reference, estimate)
    assert found == pytest.approx(
        {
            "voicing_recall": expected["Voicing Recall"],
            "voicing_false_alarm": expected["Voicing False Alarm"],
            "raw_pitch_accuracy": expected["Raw Pitch Accuracy"],
            "raw_chroma_accuracy": expected["Raw Chroma Accuracy"],
            "overall_accuracy": expected["Overall Accuracy"],
        }
    )


def test_the_official_variant_compares_within_50_hz() -> None:
    # 100 cents apart but 26 Hz; 12 cents apart but 60 Hz at 8 kHz
    assert melody.raw_pitch_accuracy(track(440, 440), track(466, 466), variant="official") == 1
    assert melody.raw_pitch_accuracy(track(440, 440), track(466, 466)) == 0
    assert melody.raw_pitch_accuracy(track(8000, 8000), track(8060, 8060), variant="official") == 0
    assert melody.raw_pitch_accuracy(track(8000, 8000), track(8060, 8060)) == 1


def test_the_official_variant_knows_no_times() -> None:
    assert melody.voicing_recall(track(220, 0), track(220, 0, hop_sec=5.0), variant="official") == 1
    for function in FRAMES.values():
        with pytest.raises(InvalidInputError, match=r"tracks of 2 and 3 frames .*use variant=\"corrected\""):
            function(track(220, 0), track(220, 0, 0), variant="official")


# Motifs


def notes(*pitches: float, seconds: float = 0.5) -> Melody:
    starts = seconds * np.arange(len(pitches))
    intervals = np.stack([starts, starts + 0.8 * seconds], axis=1).reshape(-1, 2)
    return Melody(intervals, np.array(pitches, dtype=np.float64))


SCALE = notes(60, 62, 64, 65, 67, 69, 71, 72)  # 2 2 1 2 2 2 1: motifs 221 212 122 222 221


@pytest.mark.parametrize(
    ("estimate", "jaccard", "recall"),
    [
        (notes(67, 69, 71, 72, 74, 76, 78, 79), 1, 1),  # transposed
        (notes(60, 62, 64, 65, 67, 69, 71, 72, seconds=0.7), 1, 1),  # slower
        (notes(60.3, 62.2, 64.4, 65.1, 67.3, 69.3, 71.2, 72.3), 1, 1),  # out of tune
        (notes(60, 62, 64, 65), 1 / 5, 1 / 5),  # 221, once of twice
        # 221 212 122 221 of 2 2 1 2 2 1: all but 222
        (notes(60, 62, 64, 65, 67, 69, 70), 4 / 5, 4 / 5),
        (notes(60, 62, 64, 65, 67, 69, 71, 72, 63), 5 / 6, 1),  # 2 1 3 more
        (notes(60, 62, 62, 64, 65, 67, 69, 69, 69, 71, 72, 60), 1, 1),  # struck again, in another octave too
        (notes(72, 62, 76, 65, 67, 57, 71, 84), 1, 1),  # octaves as they come
        (notes(72, 71, 69, 67, 65, 64, 62, 60), 0, 0),  # backwards: all falling
        (notes(60, 62, 64), 0, 0),
        (notes(), 0, 0),
    ],
)
def test_motifs_by_hand(estimate: Melody, jaccard: float, recall: float) -> None:
    assert melody.motif_jaccard(SCALE, estimate) == jaccard == melody.motif_jaccard(estimate, SCALE)
    assert melody.motif_recall(SCALE, estimate) == recall


def test_motifs_of_the_paper_know_octaves_and_repetitions() -> None:
    mine, paper = (functools.partial(melody.motif_jaccard, variant=name) for name in ("corrected", "paper"))
    assert paper(SCALE, notes(67, 69, 71, 72, 74, 76, 78, 79)) == 1
    leap = notes(60, 62, 64, 65, 67, 69, 83, 84)  # 2 2 1 2 2 14 1: all but 222 and 221, 2 2 14 and 2 14 1 more
    assert (mine(SCALE, leap), paper(SCALE, leap)) == (1, 3 / 7)
    again = notes(60, 62, 64, 65, 65, 67, 69, 71, 72)  # 2 2 1 0 2 2 2 1: 221 222 221 of 221 212 122 222 221
    assert (mine(SCALE, again), paper(SCALE, again)) == (1, 3 / 8)


def test_motifs_of_other_lengths() -> None:
    # single intervals: 2 2 1 2 2 2 1 against 2 2 2 2: min 4, max 5 + 2
    assert melody.motif_jaccard(SCALE, notes(60, 62, 64, 66, 68), n=1) == 4 / 7
    assert melody.motif_recall(SCALE, SCALE, n=7) == 1


def test_too_few_notes() -> None:
    short = notes(60, 62, 64)
    with pytest.warns(UndefinedMetricWarning, match="motif_jaccard is undefined: neither side has a motif"):
        assert math.isnan(melody.motif_jaccard(short, short))
    with pytest.warns(UndefinedMetricWarning, match="takes 4 different notes in a row"):
        assert math.isnan(melody.motif_recall(short, SCALE))
    assert melody.motif_jaccard(short, SCALE) == 0


@given(*[st.lists(st.integers(53, 67), min_size=4, max_size=40)] * 2, st.sampled_from(["corrected", "paper"]))
def test_motifs_are_counted(first: list[int], second: list[int], variant: str) -> None:
    def count(pitches: list[int]) -> Counter[tuple[int, ...]]:
        if variant == "corrected":  # the pitch classes, each where it changes
            pitches = [name for name, _ in itertools.groupby(pitch % 12 for pitch in pitches)]
        steps = [(b - a) % 12 if variant == "corrected" else b - a for a, b in itertools.pairwise(pitches)]
        return Counter(tuple(steps[i : i + 3]) for i in range(len(steps) - 2))

    a, b = count(first), count(second)
    assume(a)
    shared = sum(min(a[motif], b[motif]) for motif in a)
    pair = notes(*first), notes(*second)
    assert melody.motif_jaccard(*pair, variant=variant) == shared / sum(max(a[m], b[m]) for m in {*a, *b})
    assert melody.motif_recall(*pair, variant=variant) == shared / sum(a.values())


def test_motifs_of_the_wrong_kind() -> None:
    with pytest.raises(UnsupportedTypeError, match='use variant="official"'):
        melody.motif_recall(track(220), SCALE)
    with pytest.raises(UnsupportedTypeError, match="give the f0 of both sides"):
        melody.motif_recall(SCALE, SCALE, variant="official")


# Auxiliary metrics of order and contour

CURVES = st.lists(st.sampled_from([0.0, 110.0, 123.5, 220.0, 246.9, 261.6, 330.0, -440.0]), min_size=1, max_size=30)


@given(CURVES, st.floats(-30, 30), st.integers(1, 4))
def test_a_contour_survives_transposition_and_stretch(curve: list[float], semitones: float, factor: int) -> None:
    reference = track(*curve)
    other = np.repeat(np.array(curve) * 2 ** (semitones / 12), factor)
    if not reference.voiced.any():
        with pytest.warns(UndefinedMetricWarning, match="melody_contour_accuracy is undefined: the reference has no"):
            assert math.isnan(melody.melody_contour_accuracy(reference, track(*other)))
        return
    assert melody.melody_contour_accuracy(reference, track(*other)) == 1
    assert melody.melody_contour_accuracy(reference, track(*other, hop_sec=0.007)) == 1


@pytest.mark.parametrize("length", [0.5, 0.8, 0.9, 1.1, 1.25])
def test_a_contour_of_another_steady_tempo_loses_frames_at_the_ends_of_notes(length: float) -> None:
    rng = np.random.default_rng(0)
    ends_sec = np.cumsum(rng.uniform(0.1, 0.8, 60))  # 0.45 s a note on average
    pitches_hz = 440 * 2 ** (rng.integers(-9, 6, 60) / 12)

    def played(factor: float) -> F0Track:
        times_sec = np.arange(round(1000 * factor)) * 0.0232
        notes = np.searchsorted(ends_sec * factor, times_sec, side="right")
        return F0Track(times_sec, pitches_hz[notes])

    reference = played(1.0)
    score = melody.melody_contour_accuracy(reference, played(length))
    n_ends = np.count_nonzero(np.diff(reference.frequencies_hz))
    assert 0.975 < score < 1
    assert (1 - score) * len(reference.times_sec) <= n_ends


@given(CURVES, CURVES, st.floats(-30, 30))
def test_a_transposed_estimate_scores_the_same(curve: list[float], estimate: list[float], semitones: float) -> None:
    reference = track(220, *curve)
    moved = np.array(estimate) * 2 ** (semitones / 12)
    first, second = (melody.melody_contour_accuracy(reference, track(*side)) for side in (estimate, moved))
    assert first == second
    assert 0 <= first <= 1


def test_contour_by_hand() -> None:
    reference = track(220, 220, 330, 0)
    assert melody.melody_contour_accuracy(reference, track(220, 110, 0, 330)) == pytest.approx(2 / 3)  # ends early
    assert melody.melody_contour_accuracy(reference, track(220, 220, 330, 0, 100, 100)) == 1  # second by second
    assert melody.melody_contour_accuracy(reference, track(-440, -440, -660, 0)) == 1  # guesses count
    # 50 cents to either side of the best transposition, and no more
    for cents, expected in ((100, 1), (104, 2 / 3)):
        bent = track(220, 220, 330 * 2 ** (cents / 1200), 0)
        assert melody.melody_contour_accuracy(reference, bent) == pytest.approx(expected)
    # differences of 10 and 1190 cents lie next to each other
    around = track(220 * 2 ** (10 / 1200), 220 * 2 ** (1190 / 1200), 330, 0)
    assert melody.melody_contour_accuracy(reference, around) == 1
    for nothing in (track(), track(0, 0)):
        assert melody.melody_contour_accuracy(reference, nothing) == 0


PITCHES = st.lists(st.integers(55, 67), max_size=40)


def longest_common(first: list[int], second: list[int]) -> int:
    """The table of Wagner and Fischer."""
    table = np.zeros((len(first) + 1, len(second) + 1), dtype=int)
    for i, a in enumerate(first):
        for j, b in enumerate(second):
            table[i + 1, j + 1] = table[i, j] + 1 if a == b else max(table[i, j + 1], table[i + 1, j])
    return int(table[-1, -1])


@given(PITCHES, PITCHES, st.integers(-20, 20))
def test_interval_lcs_is_that_of_the_table(first: list[int], second: list[int], semitones: int) -> None:
    steps = [np.diff(side).tolist() for side in (first, second)]
    if not any(steps):
        with pytest.warns(UndefinedMetricWarning, match="interval_lcs is undefined: neither side has two notes"):
            assert math.isnan(melody.interval_lcs(notes(*first), notes(*second)))
        return
    expected = 2 * longest_common(*steps) / sum(map(len, steps))
    moved = notes(*(pitch + semitones for pitch in second), seconds=0.1)
    assert melody.interval_lcs(notes(*first), moved) == melody.interval_lcs(moved, notes(*first)) == expected
    assert (expected == 1) == (steps[0] == steps[1])


def test_interval_lcs_by_hand() -> None:
    tune = notes(60, 62, 64, 65, 67)  # 2 2 1 2
    assert melody.interval_lcs(tune, notes(60, 62, 65, 67)) == pytest.approx(4 / 7)  # 2 3 2: 2 and 2 are left
    assert melody.interval_lcs(tune, notes(60)) == 0
    assert melody.interval_lcs(tune, notes(60.4, 61.6, 64, 65, 67)) == pytest.approx(6 / 8)  # 1 2 1 2


@given(st.lists(st.integers(55, 67), min_size=12, max_size=40), st.data())
def test_a_note_that_an_extractor_loses_costs_the_order_less_than_the_motifs(
    tune: list[int], data: st.DataObject
) -> None:
    lost = data.draw(st.integers(4, len(tune) - 5))
    sides = notes(*tune), notes(*tune[:lost], *tune[lost + 1 :])
    # two intervals become one, at the worst another one; four motifs of the original become three
    assert melody.interval_lcs(*sides) >= 2 * (len(tune) - 3) / (2 * len(tune) - 3)
    jaccard = melody.motif_jaccard(*sides, variant="paper")
    assert melody.interval_lcs(*sides) > jaccard or jaccard == 1


def test_interval_lcs_of_long_melodies_takes_milliseconds(rng: np.random.Generator) -> None:
    import time

    sides = [notes(*rng.integers(50, 80, 2000)) for _ in range(2)]
    started = time.process_time()
    melody.interval_lcs(*sides)
    assert time.process_time() - started < 30


@pytest.mark.parametrize("metric", [melody.melody_contour_accuracy, melody.interval_lcs])
def test_companions_check_their_variant(metric: Callable[..., float]) -> None:
    with pytest.raises(UnknownNameError, match="variant"):
        metric(notes(60), notes(60), variant="best")
