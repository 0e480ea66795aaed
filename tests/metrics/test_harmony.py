from __future__ import annotations

import itertools
import math

import mir_eval
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from music_evals.annotations import Chords, Chroma, Key
from music_evals.errors import InvalidAnnotationError, InvalidInputError, UndefinedMetricWarning
from music_evals.metrics import harmony

KEYS = [Key(tonic, mode) for mode in ("major", "minor") for tonic in range(12)]
C, A_MINOR = Key(0, "major"), Key(9, "minor")


@pytest.mark.parametrize(
    ("semitones", "expected"),
    # the official distance by transposition: 5/6 for a semitone, 1/6 for a fourth or fifth, 1 for a tritone
    [(0, 0), (1, 5 / 6), (2, 2 / 6), (3, 3 / 6), (4, 4 / 6), (5, 1 / 6), (6, 1), (7, 1 / 6), (11, 5 / 6)],
)
def test_circle_of_fifths(semitones: int, expected: float) -> None:
    for key in KEYS:
        assert harmony.circle_of_fifths_distance(key, Key((key.tonic + semitones) % 12, key.mode)) == expected


def test_relative_keys_are_one_place_and_same_mode_tells_them_apart() -> None:
    assert harmony.circle_of_fifths_distance(C, A_MINOR) == 0
    assert harmony.same_mode(C, A_MINOR) == 0
    assert harmony.same_mode(A_MINOR, Key(4, "minor")) == 1
    # parallel: C minor is E flat major, three fifths away
    assert harmony.circle_of_fifths_distance(C, Key(0, "minor")) == 0.5


def test_the_distance_is_a_metric_on_signatures() -> None:
    d = harmony.circle_of_fifths_distance
    for a, b in itertools.product(KEYS, KEYS):
        assert d(a, b) == d(b, a) == d(a, b, variant="paper")
        assert all(d(a, c) <= d(a, b) + d(b, c) + 1e-12 for c in KEYS)


# Chords


def chords(*spans: tuple[float, float, str]) -> Chords:
    return Chords(np.array([span[:2] for span in spans], dtype=np.float64).reshape(-1, 2), tuple(s[2] for s in spans))


FOUR = chords((0, 2, "C:maj"), (2, 4, "A:min"))


@pytest.mark.parametrize(
    ("estimate", "expected"),
    [
        (chords((0, 3, "C:maj"), (3, 4, "A:min")), 3 / 4),
        (chords((0, 4, "C:7")), 2 / 4),  # the pitches up to the fifth agree
        (chords((0, 4, "C:min")), 0),
        (chords((0, 4, "C:dim")), 0),  # outside of major and minor: wrong in the estimate
        (chords((0, 4, "N")), 0),
        (chords(), 0),
        (chords((0, 2, "C:maj"), (2, 3, "A:min")), 3 / 4),  # ends early: no chord
        (chords((1, 2, "C:maj"), (2, 4, "A:min")), 3 / 4),  # starts late
        (chords((0, 2, "C:maj"), (2, 4, "A:min"), (4, 9, "G:maj")), 1),  # goes on from the very end
        (chords((0, 2, "C:maj"), (2, 9, "A:min")), 1),
        (chords((4, 9, "C:maj")), 0),
    ],
)
def test_majmin_by_hand(estimate: Chords, expected: float) -> None:
    assert harmony.major_minor_score(FOUR, estimate) == expected
    assert harmony.major_minor_score(FOUR, estimate, variant="paper") == expected


def test_the_span_of_the_reference_need_not_start_at_0() -> None:
    assert harmony.major_minor_score(chords((1, 2, "C:maj"), (2, 3, "A:min")), FOUR) == 1


def test_reference_chords_outside_of_major_and_minor_are_left_out() -> None:
    reference = chords((0, 1, "C:maj"), (1, 4, "B:dim"), (4, 5, "X"), (5, 6, "E:sus4"))
    assert harmony.major_minor_score(reference, chords((0, 6, "C:maj"))) == 1


def test_silence_on_both_sides_is_left_out() -> None:
    reference, estimate = chords((0, 1, "C:maj"), (1, 4, "N")), chords((0, 1, "G:maj"), (1, 3, "N"), (3, 4, "D:maj"))
    # counts: 0..1 wrong and 3..4 wrong
    assert harmony.major_minor_score(reference, estimate) == 0
    # theirs: 1..3 agrees, 2 of 4 s
    assert harmony.major_minor_score(reference, estimate, variant="official") == 0.5


@pytest.mark.parametrize(
    ("reference", "estimate", "official"),
    [
        (chords((0, 4, "N")), chords((0, 4, "N")), 1.0),
        (chords((0, 4, "N")), chords((0, 2, "N")), 1.0),
        (chords((0, 4, "B:dim")), FOUR, 0.0),
        (chords(), FOUR, None),
    ],
)
def test_nothing_to_compare(reference: Chords, estimate: Chords, official: float | None) -> None:
    with pytest.warns(UndefinedMetricWarning, match="major_minor_score is undefined: the reference has no"):
        assert math.isnan(harmony.major_minor_score(reference, estimate))
    if official is not None:
        assert harmony.major_minor_score(reference, estimate, variant="official") == official


def test_a_label_that_nobody_reads() -> None:
    with pytest.raises(InvalidAnnotationError, match=r"not in Harte syntax.*write C:maj, A:min, N for no chord"):
        harmony.major_minor_score(FOUR, chords((0, 4, "C#m")))


LABELS = ["C:maj", "C:7", "A:min", "A:min7", "F#:maj", "Gb:maj", "B:dim", "D:sus4", "X"]


@st.composite
def progressions(draw: st.DrawFn) -> Chords:
    edges = sorted(draw(st.sets(st.integers(0, 400), min_size=2, max_size=12)))
    labels = draw(st.lists(st.sampled_from(LABELS), min_size=len(edges) - 1, max_size=len(edges) - 1))
    return chords(*((a / 10, b / 10, label) for a, b, label in zip(edges, edges[1:], labels, strict=False)))


def majmin_of_mir_eval(reference: Chords, estimate: Chords) -> float:
    """The recipe in the documentation of `mir_eval.chord.majmin`."""
    span = reference.intervals_sec.min(), reference.intervals_sec.max()
    cut = mir_eval.util.adjust_intervals(estimate.intervals_sec, list(estimate.labels), *span, "N", "N")
    merged = mir_eval.util.merge_labeled_intervals(reference.intervals_sec, list(reference.labels), *cut)
    durations = mir_eval.util.intervals_to_durations(merged[0])
    return mir_eval.chord.weighted_accuracy(mir_eval.chord.majmin(*merged[1:]), durations)


@given(progressions(), progressions())
def test_majmin_is_that_of_mir_eval(reference: Chords, estimate: Chords) -> None:
    # no label here is silence, so the variants agree wherever something can be compared
    assume(not set(reference.labels) <= {"B:dim", "D:sus4", "X"})
    expected = majmin_of_mir_eval(reference, estimate)
    assert harmony.major_minor_score(reference, estimate) == pytest.approx(expected, abs=1e-12)
    assert harmony.major_minor_score(reference, estimate, variant="official") == pytest.approx(expected, abs=1e-15)


# Chroma


def chroma(*pitch_classes: int | None) -> Chroma:
    """One frame a number, None a silent one."""
    frames = np.zeros((12, len(pitch_classes)), dtype=np.float32)
    for t, pitch_class in enumerate(pitch_classes):
        if pitch_class is not None:
            frames[pitch_class, t] = 0.5 + t  # loudness does not matter
    return Chroma(frames, 0.023)


@pytest.mark.parametrize(
    ("reference", "estimate", "expected"),
    [
        (chroma(0, 7), chroma(0, 0, 7), 1.0),  # held longer
        (chroma(0, 7), chroma(2, 2, 5), 0.0),
        # 0 7 against 0 2: only the first pair agrees, and the shortest path has two
        (chroma(0, 7), chroma(0, 2), 0.5),
        (chroma(0, None, 7), chroma(0, None, 7), 1.0),
        (chroma(0, None, 7), chroma(0, None, None, 7), 1.0),
        (chroma(0, 5, 7), chroma(0, None, 7), 2 / 3),
        (chroma(0, 7), chroma(None, None), 0.0),
        (chroma(0, 7), chroma(), 0.0),
    ],
)
def test_chroma_similarity_by_hand(reference: Chroma, estimate: Chroma, expected: float) -> None:
    assert harmony.chroma_dtw_similarity(reference, estimate, variant="paper") == pytest.approx(expected, abs=1e-12)
    # each frame long enough to be a mean of its own; pitch classes that share nothing correlate by -1/11
    held = (Chroma(np.repeat(side.frames, 8, axis=1), 0.023) for side in (reference, estimate))
    expected = {0.5: (1 - 1 / 11) / 2}.get(expected, expected)
    assert harmony.chroma_dtw_similarity(*held) == pytest.approx(expected, abs=1e-6)


def test_cosine_by_hand() -> None:
    # one frame each: C and G together against C alone, cosine 1 / sqrt(2)
    both = Chroma(np.zeros((12, 1)), 0.023)
    both.frames[[0, 7]] = 3.0
    assert harmony.chroma_dtw_similarity(both, chroma(0), variant="paper") == pytest.approx(math.sqrt(0.5))
    # minus the means: (10 + 2 * 4) / 144 ... : 2 of 12 and 1 of 12 share 1, correlation sqrt(5 / 11)
    for metric in (harmony.chroma_dtw_centred, harmony.chroma_dtw_similarity):
        assert metric(both, chroma(0)) == pytest.approx(math.sqrt(5 / 11))


def test_what_hardly_stands_out_is_unlike_what_does() -> None:
    # 0 and 1 away from 10: centred (11, -1, ..) / 12, of length sqrt(11 / 12); the whole has sqrt(11 * 100 + 121)
    frame = np.full((12, 8), 10.0)
    frame[0] = 11.0
    clear = math.sqrt(11 / 12 / 1221) / harmony.CLEAR
    found = harmony.clear_frames(Chroma(frame, 0.023))
    assert found == pytest.approx(np.array([[clear * math.sqrt(11 / 12), *[-clear / math.sqrt(132)] * 11,
                                             math.sqrt(1 - clear**2), 0]]))  # fmt: skip
    assert harmony.chroma_dtw_similarity(Chroma(frame, 0.023), chroma(*[0] * 8)) == pytest.approx(clear)
    silent = harmony.clear_frames(chroma(*[None] * 9))
    assert silent.tolist() == [[0.0] * 13 + [1.0]] * 2


@given(st.integers(0, 2**32 - 1), st.integers(1, 40), st.floats(0, 10))
def test_clear_frames_are_of_length_1(seed: int, n: int, floor: float) -> None:
    frames = np.random.default_rng(seed).random((12, n)) + floor
    found = harmony.clear_frames(Chroma(frames, 0.023))
    assert found.shape == (-(-n // 8), 14)
    assert np.linalg.norm(found, axis=1) == pytest.approx(1)
    assert (found[:, 12:] >= 0).all()


@pytest.mark.parametrize("metric", [harmony.chroma_dtw_similarity, harmony.chroma_dtw_centred])
def test_a_silent_reference(metric) -> None:
    for silent in (chroma(), chroma(None, None)):
        with pytest.warns(UndefinedMetricWarning, match=f"{metric.__name__} is undefined: no|the reference"):
            assert math.isnan(metric(silent, chroma(0, 7)))
        assert metric(chroma(0, 7), silent) == 0


def test_official_chroma_at_its_edges() -> None:
    with pytest.warns(UndefinedMetricWarning, match="a frame is silent"):
        assert math.isnan(harmony.chroma_dtw_similarity(chroma(0, None), chroma(0, 7), variant="official"))
    assert harmony.chroma_dtw_similarity(chroma(), chroma(0), variant="official") == 0


def test_official_chroma_of_very_long_recordings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(harmony, "_OFFICIAL_MAX_PAIRS", 5)
    with pytest.raises(InvalidInputError, match="DTW of 2 and 3 frames needs more than 1 GB"):
        harmony.chroma_dtw_similarity(chroma(0, 7), chroma(0, 7, 0), variant="official")


def test_long_recordings_are_averaged(monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator) -> None:
    frames = rng.random((12, 7))
    estimate = rng.random((12, 5))
    monkeypatch.setattr(harmony, "MAX_FRAMES", 4)  # 7 frames: two by two, the last alone
    found = harmony.chroma_dtw_similarity(Chroma(frames, 0.023), Chroma(estimate, 0.023), variant="paper")
    pairs = [
        np.stack([side[:, i : i + 2].mean(axis=1) for i in range(0, side.shape[1], 2)], axis=1)
        for side in (frames, estimate)
    ]
    monkeypatch.undo()
    assert found == harmony.chroma_dtw_similarity(*(Chroma(side, 0.046) for side in pairs), variant="paper")


def test_very_long_recordings_are_averaged_more(monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator) -> None:
    sides = [Chroma(rng.random((12, n)), 0.023) for n in (70, 50)]
    monkeypatch.setattr(harmony, "MAX_FRAMES", 4)  # of 70 frames 9 means of 8, 5 of 16, 3 of 24
    found = harmony.chroma_dtw_similarity(*sides)
    monkeypatch.setattr(harmony, "MAX_FRAMES", 3)
    assert found == harmony.chroma_dtw_similarity(*sides)
    monkeypatch.undo()
    assert found != harmony.chroma_dtw_similarity(*sides)


def melody_of_chords(seed: int, seconds: float = 8.0) -> np.ndarray:
    """Chords of a second each, three tones with overtones, each of its own decay."""
    rng = np.random.default_rng(seed)
    times = np.arange(22050) / 22050
    bars = []
    for root in rng.integers(0, 12, int(seconds)):
        pitches = 48 + root + np.array([0, 3 + rng.integers(2), 7]) + 12 * rng.integers(0, 2, 3)
        tones = [
            np.sin(2 * np.pi * 440 * 2 ** ((pitch - 69) / 12) * k * times) / k * np.exp(-rng.uniform(1, 4) * times)
            for pitch in pitches
            for k in range(1, 6)
        ]
        bars.append(np.sum(tones, axis=0))
    return np.concatenate(bars)


@pytest.fixture(scope="module")
def recordings() -> dict[str, list[Chroma]]:
    """Chroma of made-up music and of noises, as recordings have it."""
    pytest.importorskip("librosa")
    from music_evals.audio.chroma import compute_chroma
    from music_evals.audio.io import load_audio

    rng = np.random.default_rng(0)
    white = [rng.normal(size=8 * 22050) for _ in range(2)]
    sounds = {
        "music": [melody_of_chords(seed) for seed in range(4)],
        "noise": [*white, np.cumsum(white[0] - white[0].mean())],
        "noisy": [melody_of_chords(0) + 0.1 * white[0]],
    }
    return {
        name: [compute_chroma(load_audio(one.astype(np.float32), rate=22050)) for one in made]
        for name, made in sounds.items()
    }


@pytest.mark.slow
def test_noise_is_no_nearer_than_unrelated_music(recordings: dict[str, list[Chroma]]) -> None:
    def mean(variant: str, others: list[Chroma]) -> float:
        pairs = [(one, other) for one in recordings["music"] for other in others if one is not other]
        return float(np.mean([harmony.chroma_dtw_similarity(*pair, variant=variant) for pair in pairs]))

    noise, music = recordings["noise"], recordings["music"]
    assert mean("corrected", noise) <= mean("corrected", music)
    assert mean("corrected", noise[:2]) < 0.6 * mean("corrected", music)  # white
    assert mean("paper", noise) > mean("paper", music)  # the defect that definition 2 takes away
    assert harmony.chroma_dtw_similarity(music[0], recordings["noisy"][0]) > 0.9


@pytest.fixture
def music(rng: np.random.Generator) -> np.ndarray:
    """400 frames, 12 different ones held for 33 each, with noise."""
    return np.repeat(rng.random((12, 12)) ** 3, 34, axis=1)[:, :400] + 0.05 * rng.random((12, 400))


@pytest.mark.parametrize("semitones", range(12))
def test_a_transposition_can_be_taken_away(music: np.ndarray, semitones: int) -> None:
    pair = Chroma(music, 0.023), Chroma(np.roll(music, semitones, axis=0), 0.023)
    assert harmony.chroma_dtw_centred(*pair, transposition_invariant=True) == pytest.approx(1, abs=1e-12)
    if semitones:
        assert harmony.chroma_dtw_centred(*pair) < 0.8


def test_of_equally_good_rotations_none_is_taken() -> None:
    # C, then F sharp: on average the same a tritone away, in time the opposite
    turn = chroma(*[0] * 80, *[6] * 80)
    turn.frames[turn.frames > 0] = 1
    assert harmony.chroma_dtw_centred(turn, turn, transposition_invariant=True) == 1


def test_centred_similarity_reaches_below_0() -> None:
    frame = np.arange(12.0)[:, None]
    opposite = Chroma(11 - np.repeat(frame, 16, axis=1), 0.023)
    assert harmony.chroma_dtw_centred(Chroma(np.repeat(frame, 16, axis=1), 0.023), opposite) == -1


def test_flat_frames_are_like_silence() -> None:
    flat = Chroma(np.full((12, 8), 0.3), 0.023)  # whose mean is not quite 0.3
    assert harmony.chroma_dtw_centred(chroma(*[0] * 8), flat) == 0
    with_flat, with_silence = np.eye(12)[:, [0] * 16], np.eye(12)[:, [0] * 16]
    with_flat[:, 8:], with_silence[:, 8:] = 0.3, 0.0
    assert harmony.chroma_dtw_centred(Chroma(with_flat, 0.023), Chroma(with_silence, 0.023)) == 1


def test_the_band_is_a_tenth_of_the_length() -> None:
    # 40 means of 8 frames; the change from C to G comes 3 or 8 means earlier
    def change(at: int) -> Chroma:
        return chroma(*[0] * 8 * at, *[7] * 8 * (40 - at))

    assert harmony.chroma_dtw_centred(change(20), change(17)) == 1
    assert harmony.chroma_dtw_centred(change(20), change(12)) < 0.95
    assert harmony.chroma_dtw_similarity(change(20), change(12)) == 1
