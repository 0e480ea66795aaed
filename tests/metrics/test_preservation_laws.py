"""Laws of all preservation metrics at once, on generated annotations whose arrays cannot be written to."""

from __future__ import annotations

import functools
import itertools
import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from music_evals.annotations import (
    FEATURES,
    BandFrames,
    Beats,
    Chords,
    Chroma,
    F0Track,
    Key,
    Melody,
    Segments,
    StructureFrames,
)
from music_evals.errors import UndefinedMetricWarning, UnknownNameError
from music_evals.metrics import harmony, melody, rhythm, structure
from music_evals.metrics.arrays import MUSECPEVAL, VARIANTS
from music_evals.metrics.catalogue import AUXILIARY, PRESERVATION_METRICS, features_of, metric_of
from music_evals.pipelines.preservation_features import measure

Metric = Callable[..., float]

SCALES = {**PRESERVATION_METRICS, **AUXILIARY}


def metric_function(name: str) -> Metric:
    """Return the function of a metric with the options that make it this one, without the span of a recording."""
    function, options = measure(name, "official", 0.0)
    return functools.partial(function, **{option: value for option, value in options.items() if option != "variant"})


METRICS = {name: metric_function(name) for name in SCALES}


def frozen(values: Any) -> np.ndarray:
    array = np.array(values, dtype=np.float64)
    array.flags.writeable = False
    return array


def spans(lengths: list[float], start: float = 0.0) -> np.ndarray:
    edges = start + np.cumsum([0.0, *lengths])
    return frozen(np.stack([edges[:-1], edges[1:]], axis=1).reshape(-1, 2))


def lists(of: st.SearchStrategy[Any], longest: int, shortest: int = 0) -> st.SearchStrategy[list[Any]]:
    return st.lists(of, min_size=shortest, max_size=longest)


SECONDS = st.integers(2, 40).map(lambda tenths: tenths / 10)
RNG = st.integers(0, 2**32).map(np.random.default_rng)


@st.composite
def beats(draw: st.DrawFn) -> Beats:
    # further apart than the window of a hit, see beat_offset_sec
    gaps = draw(lists(st.floats(0.15, 1.2), 25))
    return Beats(frozen(np.cumsum(gaps)), draw(st.floats(30, 300) | st.just(math.nan)))


@st.composite
def labelled(draw: st.DrawFn, kind: type, labels: list[str], start: float = 0.0) -> Any:
    lengths = draw(lists(SECONDS, 10))
    return kind(spans(lengths, start), tuple(draw(lists(st.sampled_from(labels), len(lengths), len(lengths)))))


@st.composite
def chromas(draw: st.DrawFn, silence: bool = True) -> Chroma:
    rng, n = draw(RNG), draw(st.integers(0 if silence else 1, 40))
    frames = rng.integers(0 if silence else 1, draw(st.sampled_from([2, 3, 10])) + 1, (12, n))
    frames[:, rng.random(n) < (0.1 if silence else 0)] = 0
    return Chroma(frozen(frames / 10), 0.023)


@st.composite
def f0_tracks(draw: st.DrawFn) -> F0Track:
    values = st.sampled_from([0.0, 0.0, 110.0, 220.0, 222.0, 440.0, 447.0, 500.0, -220.0])
    frames = [value for value, n in draw(lists(st.tuples(values, st.integers(1, 9)), 8)) for _ in range(n)]
    return F0Track(frozen(draw(st.sampled_from([0.01, 0.013, 0.05])) * np.arange(len(frames))), frozen(frames))


@st.composite
def melodies(draw: st.DrawFn) -> Melody:
    pitches = draw(lists(st.integers(55, 62), 15))
    return Melody(spans(draw(lists(SECONDS, len(pitches), len(pitches)))), frozen(pitches))


@st.composite
def structures(draw: st.DrawFn) -> StructureFrames:
    n = draw(st.integers(0, 40))
    return StructureFrames(frozen(draw(RNG).integers(0, 3, (5, n))), 0.25)


@st.composite
def bands(draw: st.DrawFn) -> BandFrames:
    rng, n = draw(RNG), draw(st.integers(0, 20))
    levels, prominence = rng.uniform(-80, 0, (96, n)), rng.uniform(0, draw(st.sampled_from([1, 20])), (96, n))
    return BandFrames(frozen(np.concatenate([levels, prominence])), 0.093)


ANNOTATIONS: dict[str, st.SearchStrategy[Any]] = {
    "key": st.builds(Key, st.integers(0, 11), st.sampled_from(["major", "minor"])),
    "beats": beats(),
    "chords": labelled(Chords, ["C:maj", "C:7", "A:min", "F#:maj", "B:dim", "X", "N", "N"]),
    "chroma": chromas(),
    "f0": f0_tracks(),
    "melody": melodies(),
    "segments": labelled(Segments, ["A", "a", "B", "C"]),
    "structure": structures(),
    "bands": bands(),
}


def metrics_of(feature: str, variant: str = "corrected") -> list[str]:
    """Names of the metrics that compare this feature: what is drawn serves them all."""
    return [name for name in SCALES if features_of(name, variant) == (feature,)]


def score(metric: Metric, *pair: Any, **options: Any) -> float:
    """The value, NaN without its warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        return metric(*pair, **options)


def test_every_metric_and_companion_is_here() -> None:
    assert len(PRESERVATION_METRICS) == 11
    assert {feature for scale in SCALES.values() for feature in scale.features} == set(FEATURES) - {"contour", "timbre"}
    assert features_of("motif_recall") == ("melody",)
    assert features_of("motif_recall", "official") == ("f0",)
    assert features_of("motif_recall", MUSECPEVAL) == ("contour",)
    assert metric_of("motif_recall").facet == metric_of("overall_accuracy").facet == "melody"
    with pytest.raises(UnknownNameError, match="motif_recall"):
        features_of("motif_recal")


@pytest.mark.parametrize("feature", ANNOTATIONS)
@given(data=st.data())
def test_identity_is_exactly_best(feature: str, data: st.DataObject) -> None:
    same = data.draw(ANNOTATIONS[feature])
    for name in metrics_of(feature):
        value = score(METRICS[name], same, same)
        assert value == SCALES[name].best or math.isnan(value), name


PLENTY = {
    "key": Key(4, "minor"),
    "beats": Beats(frozen(np.arange(12) * 0.58 + 0.4), 104.0, onsets=frozen(np.arange(800) % 25), onset_rate_hz=86.0),
    "chords": Chords(spans([1.0, 0.3, 0.7, 1.1]), ("C:maj", "N", "A:min", "G:7")),
    "chroma": Chroma(frozen(np.eye(12)), 0.023),
    "f0": F0Track(frozen([0.0, 0.01, 0.02]), frozen([220.0, 0.0, 330.0])),
    "melody": Melody(spans([1.0] * 4), frozen([60, 62, 64, 60])),
    "segments": Segments(spans([5.1, 7.3, 3.9]), ("A", "B", "A")),
    "structure": StructureFrames(frozen(np.random.default_rng(0).random((3, 40))), 0.25),
    "bands": BandFrames(frozen(np.random.default_rng(0).random((192, 40))), 0.093),
}


@pytest.mark.parametrize("name", SCALES)
def test_identity_is_defined_where_there_is_something(name: str) -> None:
    same = PLENTY[features_of(name)[0]]
    assert METRICS[name](same, same) == METRICS[name](same, same, variant="paper") == SCALES[name].best


@pytest.mark.parametrize("feature", ANNOTATIONS)
@given(data=st.data())
def test_scores_stay_within_their_scale_and_are_repeatable(feature: str, data: st.DataObject) -> None:
    pair = data.draw(ANNOTATIONS[feature]), data.draw(ANNOTATIONS[feature])
    for variant in VARIANTS:
        if variant == "official" and feature == "f0":
            n = min(len(side.times_sec) for side in pair)
            pair = tuple(F0Track(side.times_sec[:n], side.frequencies_hz[:n]) for side in pair)
        # the authors' values may be beyond by rounding
        slack = 1e-12 if variant == "official" else 0
        for name in metrics_of(feature, variant):
            value, again = (score(METRICS[name], *pair, variant=variant) for _ in range(2))
            assert math.isnan(value) or SCALES[name].low - slack <= value <= SCALES[name].high + slack, name
            np.testing.assert_equal(again, value, name)


DEFINED_ANEW = {"chroma_dtw_similarity", "motif_jaccard", "motif_recall"}  # corrected, for reasons that the cards tell


@pytest.mark.parametrize("feature", ANNOTATIONS)
@given(data=st.data())
def test_paper_is_corrected_where_the_text_settles_nothing(feature: str, data: st.DataObject) -> None:
    pair = data.draw(ANNOTATIONS[feature]), data.draw(ANNOTATIONS[feature])
    for name in set(metrics_of(feature)) - DEFINED_ANEW:
        np.testing.assert_equal(score(METRICS[name], *pair, variant="paper"), score(METRICS[name], *pair), name)


NOTHING = {
    "beats": Beats(frozen([])),
    "chords": Chords(spans([]), ()),
    "chroma": Chroma(frozen(np.zeros((12, 3))), 0.023),
    "f0": F0Track(frozen([0.0, 0.01]), frozen([0.0, 0.0])),
    "melody": Melody(spans([]), frozen([])),
    "segments": Segments(spans([]), ()),
    "structure": StructureFrames(frozen(np.zeros((3, 40))), 0.25),
    "bands": BandFrames(frozen(np.zeros((192, 0))), 0.093),
}


@pytest.mark.parametrize("name", [name for name, scale in SCALES.items() if scale.features != ("key",)])
def test_nothing_to_preserve_is_undefined_and_the_caller_is_told(name: str) -> None:
    nothing = NOTHING[features_of(name)[0]]
    with pytest.warns(UndefinedMetricWarning, match=r"^\w+ is undefined: ") as told:
        assert math.isnan(METRICS[name](nothing, nothing))
    assert [warning.filename for warning in told] == [__file__]


# Symmetry

SYMMETRIC = [
    "circle_of_fifths_distance", "chroma_dtw_similarity", "delta_bpm", "beat_f_measure", "information_gain",
    "motif_jaccard", "same_mode", "chroma_dtw_centred", "ssm_correlation", "interval_lcs",
    "timbre_similarity",
]  # fmt: skip
ODD = ["tempo_log2", "tempo_octave"]

# The beat within which an offset is looked for is the reference's: 1 s is enough here, 0.3 s is not.
SLOW, QUICK = Beats(frozen([0.8, 1.6, 2.8])), Beats(frozen([2.0, 2.3]))
SHORT, LONG = Segments(spans([4.0, 4.0]), ("A", "B")), Segments(spans([4.0, 4.0, 2.0]), ("A", "B", "A"))
FEW, MANY = F0Track(frozen([0, 1, 2]), frozen([220, 0, 0])), F0Track(frozen([0, 1, 2]), frozen([220, 0, 450]))
ASYMMETRIC: dict[str, tuple[Any, Any]] = {
    "major_minor_score": (Chords(spans([4.0]), ("C:maj",)), Chords(spans([2.0]), ("C:maj",))),
    "segment_ari": (SHORT, LONG),
    "boundary_f_measure": (SHORT, LONG),
    "boundary_f_measure_3s": (SHORT, LONG),
    "voicing_recall": (FEW, MANY),
    "voicing_false_alarm": (FEW, F0Track(FEW.times_sec, frozen([220, 220, 0]))),
    "raw_pitch_accuracy": (FEW, MANY),
    "raw_chroma_accuracy": (FEW, MANY),
    "melody_contour_accuracy": (FEW, MANY),
    # on one grid it is symmetric; the longer side counts where it is the reference
    "overall_accuracy": (FEW, F0Track(frozen([0, 1, 2, 3]), frozen([220, 0, 0, 220]))),
    "motif_recall": (Melody(spans([1.0] * 4), frozen([1, 2, 3, 4])), Melody(spans([1.0] * 5), frozen([1, 2, 3, 4, 9]))),
    "beat_offset_sec": (SLOW, QUICK),
    "beat_f_measure_aligned": (SLOW, QUICK),
    "information_gain_aligned": (SLOW, QUICK),
}
# Symmetric but for the order of additions and for equally good rotations.
NEARLY = ["chroma_dtw_centred_transposed"]


def test_no_metric_is_symmetric_and_not() -> None:
    assert sorted({*SYMMETRIC, *ODD, *ASYMMETRIC, *NEARLY} & SCALES.keys()) == sorted(
        [*SYMMETRIC, *ODD, *ASYMMETRIC, *NEARLY]
    )


@pytest.mark.parametrize("feature", sorted({*itertools.chain.from_iterable(map(features_of, SYMMETRIC))}))
@given(data=st.data())
def test_the_sides_may_change_places(feature: str, data: st.DataObject) -> None:
    reference, estimate = data.draw(ANNOTATIONS[feature]), data.draw(ANNOTATIONS[feature])
    for name in set(metrics_of(feature)) & {*SYMMETRIC}:
        one, other = score(METRICS[name], reference, estimate), score(METRICS[name], estimate, reference)
        # what is undefined for a reference without content is 0 for such an estimate
        if math.isnan(one) != math.isnan(other):
            assert 0 in {one, other}, name
        else:
            np.testing.assert_equal(one, other, name)


@given(beats(), beats())
def test_the_sign_changes_with_the_sides(reference: Beats, estimate: Beats) -> None:
    for name in ODD:
        np.testing.assert_equal(
            score(METRICS[name], reference, estimate) + 0.0, -score(METRICS[name], estimate, reference) + 0.0, name
        )


@pytest.mark.parametrize("name", ASYMMETRIC)
def test_the_reference_is_not_the_estimate(name: str) -> None:
    reference, estimate = ASYMMETRIC[name]
    np.testing.assert_raises(
        AssertionError,
        np.testing.assert_equal,
        score(METRICS[name], reference, estimate),
        score(METRICS[name], estimate, reference),
    )


# Transposition, time, loudness


@given(*[ANNOTATIONS["key"]] * 2, st.integers(0, 11))
def test_both_keys_transposed(reference: Key, estimate: Key, semitones: int) -> None:
    moved = [Key((key.tonic + semitones) % 12, key.mode) for key in (reference, estimate)]
    before = harmony.circle_of_fifths_distance(reference, estimate)
    assert harmony.circle_of_fifths_distance(*moved) == before


NAMES = ["C", "C#", "D", "Eb", "E", "F", "F#", "G", "Ab", "A", "Bb", "B"]


@given(st.data(), st.integers(0, 11))
def test_both_progressions_transposed(data: st.DataObject, semitones: int) -> None:
    pair = [data.draw(labelled(Chords, [f"{n}:{q}" for n in NAMES for q in ("maj", "min")])) for _ in range(2)]

    def move(chords: Chords) -> Chords:
        parts = [label.split(":") for label in chords.labels]
        labels = [f"{NAMES[(NAMES.index(root) + semitones) % 12]}:{quality}" for root, quality in parts]
        return Chords(chords.intervals_sec, tuple(labels))

    before = score(harmony.major_minor_score, *pair)
    np.testing.assert_equal(score(harmony.major_minor_score, *map(move, pair)), before)


CHROMA_METRICS = ["chroma_dtw_similarity", "chroma_dtw_centred", "chroma_dtw_centred_transposed"]


@st.composite
def uneven_chromas(draw: st.DrawFn) -> Chroma:
    """Chroma without two frames alike: no two alignments cost the same, and rounding decides nothing."""
    return Chroma(frozen(draw(RNG).random((12, draw(st.integers(1, 60))))), 0.023)


@given(reference=uneven_chromas(), estimate=uneven_chromas(), semitones=st.integers(0, 11), gain=st.floats(0.01, 100))
def test_both_chromas_transposed_or_one_louder(
    reference: Chroma, estimate: Chroma, semitones: int, gain: float
) -> None:
    louder = Chroma(estimate.frames * gain, estimate.hop_sec)
    moved = [Chroma(np.roll(side.frames, semitones, axis=0), side.hop_sec) for side in (reference, estimate)]
    for name in CHROMA_METRICS:
        before = score(METRICS[name], reference, estimate)
        assert score(METRICS[name], reference, louder) == pytest.approx(before, abs=1e-9), name
        assert score(METRICS[name], *moved) == pytest.approx(before, abs=1e-9), name
        assert score(METRICS[name], estimate, reference) == pytest.approx(before, abs=1e-9), name


@given(uneven_chromas(), uneven_chromas(), st.integers(0, 11))
def test_the_estimate_transposed(reference: Chroma, estimate: Chroma, semitones: int) -> None:
    moved = Chroma(np.roll(estimate.frames, semitones, axis=0), estimate.hop_sec)
    pair = [harmony.chroma_dtw_centred(reference, side, transposition_invariant=True) for side in (estimate, moved)]
    assert pair[0] == pytest.approx(pair[1], abs=1e-9)


@given(chromas(silence=False), st.integers(1, 5))
def test_repeated_frames_change_nothing(chroma: Chroma, times: int) -> None:
    slower = Chroma(np.repeat(chroma.frames, times, axis=1), chroma.hop_sec)
    compare = functools.partial(harmony.chroma_dtw_similarity, variant="paper")
    assert compare(chroma, slower) == compare(slower, chroma) == 1
    held = [Chroma(np.repeat(side.frames, harmony.FRAMES_PER_MEAN, axis=1), side.hop_sec) for side in (chroma, slower)]
    assert harmony.chroma_dtw_similarity(*held) == pytest.approx(1, abs=1e-12)


@given(melodies(), melodies(), st.integers(-24, 24), st.floats(0.3, 3.0), st.data())
def test_motifs_know_no_key_tempo_or_register(
    reference: Melody, estimate: Melody, semitones: int, tempo: float, data: st.DataObject
) -> None:
    moved = Melody(estimate.intervals_sec * tempo, estimate.pitches + semitones)
    octaves = data.draw(st.lists(st.integers(-2, 2), min_size=len(moved.pitches), max_size=len(moved.pitches)))
    scattered = Melody(moved.intervals_sec, moved.pitches + 12 * np.array(octaves, dtype=np.float64))
    for metric in (melody.motif_jaccard, melody.motif_recall):
        of_paper = functools.partial(metric, variant="paper")
        np.testing.assert_equal(score(of_paper, reference, moved), score(of_paper, reference, estimate))
        np.testing.assert_equal(score(metric, reference, scattered), score(metric, reference, estimate))


@given(beats(), beats(), st.integers(0, 2**20))
def test_beats_know_no_start(reference: Beats, estimate: Beats, steps: int) -> None:
    # beats on a grid of 2**-10 s and a shift on it: sums are exact
    def on_grid(times_sec: np.ndarray, shift: float = 0.0) -> Beats:
        return Beats(np.round(times_sec * 1024) / 1024 + shift)

    shift = steps / 1024
    for metric in (rhythm.beat_f_measure, rhythm.information_gain, rhythm.beat_offset_sec):
        before = score(metric, on_grid(reference.times_sec), on_grid(estimate.times_sec))
        after = score(metric, on_grid(reference.times_sec, shift), on_grid(estimate.times_sec, shift))
        assert after == pytest.approx(before, nan_ok=True, abs=1e-9)


@given(beats(), st.integers(-2, 2))
def test_a_metrical_level_is_no_change_of_tempo(reference: Beats, octave: int) -> None:
    assume(not math.isnan(reference.bpm))
    other = Beats(reference.times_sec, reference.bpm * 2.0**octave)
    assert rhythm.tempo_log2(reference, other) == pytest.approx(0, abs=1e-12)
    assert rhythm.tempo_octave(reference, other) == octave


@given(labelled(Segments, ["A", "B", "C"]), labelled(Segments, ["A", "B", "C"]), st.permutations("ABC"))
def test_names_of_sections_do_not_matter(reference: Segments, estimate: Segments, names: list[str]) -> None:
    renamed = Segments(estimate.intervals_sec, tuple(names["ABC".index(label)] for label in estimate.labels))
    before = score(structure.segment_ari, reference, estimate)
    np.testing.assert_equal(score(structure.segment_ari, reference, renamed), before)


@given(f0_tracks(), f0_tracks())
def test_chroma_is_easier_than_pitch(reference: F0Track, estimate: F0Track) -> None:
    assume(reference.voiced.any())
    pitch, pitch_class = (f(reference, estimate) for f in (melody.raw_pitch_accuracy, melody.raw_chroma_accuracy))
    assert pitch <= pitch_class


def has_a_motif(tune: Melody) -> bool:
    return np.count_nonzero(np.diff(tune.pitches) % 12) >= 3


@given(melodies(), melodies())
def test_recall_is_never_below_the_jaccard_index(reference: Melody, estimate: Melody) -> None:
    assume(has_a_motif(reference))
    assert melody.motif_jaccard(reference, estimate) <= melody.motif_recall(reference, estimate)


# More damage never scores better: where it can be proved


def falling(values: list[float]) -> bool:
    return all(a >= b - 1e-12 for a, b in itertools.pairwise(values))


@given(beats(), RNG)
def test_lost_beats(reference: Beats, rng: np.random.Generator) -> None:
    times = reference.times_sec
    assume(len(times))
    order = rng.permutation(len(times))
    left = [Beats(times[np.sort(order[:n])]) for n in range(len(times), -1, -1)]
    assert falling([rhythm.beat_f_measure(reference, estimate) for estimate in left])


@given(labelled(Chords, ["C:maj", "A:min", "F:maj"]), RNG)
def test_wrong_chords(reference: Chords, rng: np.random.Generator) -> None:
    assume(len(reference.labels))
    order = rng.permutation(len(reference.labels))
    values = []
    for n in range(len(order) + 1):
        wrong = set(order[:n])
        labels = tuple("D:maj" if i in wrong else label for i, label in enumerate(reference.labels))
        values.append(harmony.major_minor_score(reference, Chords(reference.intervals_sec, labels)))
    assert falling(values)
    assert values[-1] == 0


@pytest.mark.slow
@given(f0_tracks(), RNG)
def test_lost_voice(reference: F0Track, rng: np.random.Generator) -> None:
    voiced = np.flatnonzero(reference.voiced)
    assume(len(voiced))
    values: dict[str, list[float]] = {"voicing_recall": [], "raw_pitch_accuracy": [], "overall_accuracy": []}
    lost = rng.permutation(voiced)
    for n in range(len(lost) + 1):
        frequencies = reference.frequencies_hz.copy()
        frequencies[lost[:n]] = 0
        for name, row in values.items():
            row.append(METRICS[name](reference, F0Track(reference.times_sec, frequencies)))
    assert all(falling(row) for row in values.values())


@given(melodies())
def test_a_melody_that_stops_earlier(reference: Melody) -> None:
    assume(has_a_motif(reference))
    left = [Melody(reference.intervals_sec[:n], reference.pitches[:n]) for n in range(len(reference.pitches), -1, -1)]
    assert falling([melody.motif_recall(reference, estimate) for estimate in left])
    assert falling([melody.motif_jaccard(reference, estimate) for estimate in left])


@given(labelled(Segments, ["A", "B"]), RNG)
def test_lost_boundaries(reference: Segments, rng: np.random.Generator) -> None:
    edges = np.unique(reference.intervals_sec)
    assume(len(edges) > 2)
    order = rng.permutation(np.arange(1, len(edges) - 1))
    values = []
    for n in range(len(order), -1, -1):
        kept = edges[np.sort([0, *order[:n], len(edges) - 1])]
        estimate = Segments(np.stack([kept[:-1], kept[1:]], axis=1), ("A",) * (len(kept) - 1))
        values.append(structure.boundary_f_measure(reference, estimate))
    assert falling(values)


@given(st.floats(30, 300), st.floats(0, 50), st.floats(0, 50))
def test_a_larger_change_of_tempo(bpm: float, change: float, more: float) -> None:
    reference, none = Beats(frozen([]), bpm), frozen([])
    near, far = Beats(none, bpm + change), Beats(none, bpm + change + more)
    assert rhythm.delta_bpm(reference, near) <= rhythm.delta_bpm(reference, far)
