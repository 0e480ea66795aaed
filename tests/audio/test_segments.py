"""Sections of pieces whose form is known: a small band of sine waves and noise plays them."""

from __future__ import annotations

import functools

import mir_eval
import numpy as np
import pytest

from music_evals.annotations import Segments
from music_evals.audio import segments
from music_evals.audio.backends import UndefinedFeature
from music_evals.audio.io import Audio
from music_evals.audio.segments import MIN_RECURRENCE, segment_agglomerative, segment_foote, segment_form
from music_evals.audio.structure import compute_structure

from .sounds import RATE, audio, partials

BEAT = 0.5  # seconds
BAR = 4 * BEAT

# Roots and thirds of four bars, and the harmonics and the rhythm of each kind of section.
SECTIONS: dict[str, tuple[list[tuple[int, int]], int, int]] = {
    "A": ([(48, 4), (55, 4), (57, 3), (53, 4)], 2, 1),
    "B": ([(50, 3), (55, 4), (48, 4), (57, 3)], 8, 2),
    "C": ([(53, 4), (52, 3), (50, 3), (55, 4)], 4, 4),
}


def struck(midi: float, seconds: float, n_harmonics: int) -> np.ndarray:
    """A tone that dies away."""
    time = np.arange(round(seconds * RATE)) / RATE
    wave = partials(midi, seconds, n_harmonics=n_harmonics, falloff=0.7)
    return wave * np.minimum(1, time / 0.01) * np.exp(-2 * time / seconds)


@functools.cache
def section(kind: str, *, semitones: int = 0, n_harmonics: int = 0) -> np.ndarray:
    """Four bars of chords, struck once, twice or four times a bar, and a melody grown from the kind's name."""
    chords, own_harmonics, strokes = SECTIONS[kind]
    n_harmonics = n_harmonics or own_harmonics
    rng = np.random.default_rng(ord(kind))
    bars = []
    for root, third in chords:
        stroke = sum(struck(root + step + semitones, BAR / strokes, n_harmonics) for step in (0, third, 7))
        tune = [struck(root + 24 + int(rng.choice([0, third, 7, 9])) + semitones, BEAT, n_harmonics) for _ in range(4)]
        bars.append(np.tile(stroke, strokes) + 2 * np.concatenate(tune))
    return np.concatenate(bars)


def piece(form: str, **options: int) -> np.ndarray:
    return np.concatenate([section(kind, **options) for kind in form])


def foote(sound: Audio) -> Segments:
    return segment_foote(sound, structure=compute_structure(sound))


def agglomerative(sound: Audio) -> Segments:
    return segment_agglomerative(sound, structure=compute_structure(sound))


ALL = [segment_form, foote, agglomerative]


@pytest.mark.parametrize("form", ["AABA", "ABAB", "ABCA", "ABAC"])
def test_form_finds_the_sections_and_their_repetitions(form: str) -> None:
    found = segment_form(audio(piece(form)))
    assert "".join(found.labels) == form
    np.testing.assert_allclose(found.intervals_sec[:, 0], 8 * np.arange(4), atol=0.25)
    assert found.intervals_sec[-1, 1] == 32


@pytest.mark.parametrize("segment", ALL)
def test_two_sounds_meet_where_they_meet(segment: object) -> None:
    low = np.tile(struck(48, 0.5, 2), 24)
    high = np.tile(struck(79, 0.25, 8), 48)
    found = segment(audio(np.concatenate([low, high])))
    # the bound at 12 s is found; labels of both sides differ
    inner = found.intervals_sec[1:, 0]
    assert np.abs(inner - 12).min() < 0.5
    at = int(np.abs(inner - 12).argmin())
    assert found.labels[at] != found.labels[at + 1]


@pytest.mark.parametrize("segment", ALL)
@pytest.mark.parametrize("seconds", [10, 17.3])
def test_sections_run_from_0_to_the_end(segment: object, seconds: float, rng: np.random.Generator) -> None:
    sound = audio(rng.standard_normal(round(seconds * RATE)))
    found = segment(sound)
    assert found.intervals_sec[0, 0] == 0
    assert found.intervals_sec[-1, 1] == sound.duration_sec
    assert found.labels[0] == "A"
    # a label appears for the first time in the order of the alphabet
    assert "".join(dict.fromkeys(found.labels)) == "ABCDEFGHIJKLMNOPQRSTUVWXYZ"[: len(set(found.labels))]


def agreement(one: Segments, other: Segments) -> tuple[float, float]:
    """Return boundary F at half a second, and adjusted Rand index."""
    intervals, labels = mir_eval.util.adjust_intervals(
        other.intervals_sec, list(other.labels), 0, one.intervals_sec[-1, 1]
    )
    f_measure = mir_eval.segment.detection(one.intervals_sec, intervals, window=0.5, trim=True)[2]
    return f_measure, mir_eval.segment.ari(one.intervals_sec, list(one.labels), intervals, labels)


@pytest.mark.slow
def test_what_leaves_the_form_alone_leaves_the_sections_alone(rng: np.random.Generator) -> None:
    wave = piece("ABAC")
    plain = segment_form(audio(wave))
    noise = 0.3 * wave.std() * rng.standard_normal(len(wave))
    edits = {
        "transposed": piece("ABAC", semitones=5),
        "noisy": wave + noise,
        "delayed": np.concatenate([np.zeros(round(0.2 * RATE)), wave]),
    }
    for name, edited in edits.items():
        f_measure, ari = agreement(plain, segment_form(audio(edited)))
        assert f_measure == 1, name
        assert ari > 0.9, name


def test_another_order_is_another_form() -> None:
    plain = segment_form(audio(piece("AABC")))
    assert agreement(plain, segment_form(audio(piece("CABA"))))[1] < 0.6


@pytest.mark.parametrize("segment", ALL)
def test_the_level_changes_nothing(segment: object) -> None:
    loud, soft = (segment(audio(piece("ABA"), gain)) for gain in (1.0, 0.125))  # exact in binary
    np.testing.assert_array_equal(loud.intervals_sec, soft.intervals_sec)
    assert loud.labels == soft.labels


def test_silence_has_no_form() -> None:
    with pytest.raises(UndefinedFeature, match="silent"):
        segment_form(Audio(np.zeros(12 * RATE, np.float32)))


def test_two_seconds_are_one_section() -> None:
    found = segment_form(audio(section("A")[: 2 * RATE]))
    assert found.labels == ("A",)


def test_the_bar_is_found_in_what_recurs() -> None:
    # a vector for each beat, four beats a bar, in frames of a tenth of a second
    bar = np.repeat(np.eye(4), 5, axis=1)
    found = segments.bar_candidates(np.tile(bar, 12), 0.1)
    assert found[0].length_sec == pytest.approx(2.0, rel=0.005)


def free(seed: int) -> np.ndarray:
    """Chords that never recur in the same order, and last as long as they like: no bar."""
    rng = np.random.default_rng(seed)
    chords = []
    for _ in range(30):
        root, third = 48 + int(rng.integers(12)), int(rng.choice([3, 4]))
        seconds = float(rng.uniform(0.4, 1.9))
        chords.append(sum(struck(root + step, seconds, 4) for step in (0, third, 7)))
    return np.concatenate(chords)


@pytest.mark.parametrize("seed", range(3))
def test_without_a_steady_bar_sections_are_those_of_change(seed: int) -> None:
    sound = audio(free(seed))
    found, expected = segment_form(sound), foote(sound)
    np.testing.assert_array_equal(found.intervals_sec, expected.intervals_sec)
    assert found.labels == expected.labels


def test_a_steady_piece_recurs_and_a_free_one_does_not() -> None:
    bar = np.repeat(np.eye(4), 5, axis=1)
    steady = segments.bar_candidates(np.tile(bar, 12), 0.1)[0].recurrence
    rng = np.random.default_rng(0)
    lengths = rng.integers(3, 20, 48)
    loose = np.repeat(np.eye(12)[:, rng.integers(0, 12, 48)], lengths, axis=1)
    assert steady > 10 * MIN_RECURRENCE
    assert segments.bar_candidates(loose, 0.1)[0].recurrence < steady / 5


def test_sections_are_those_of_the_greatest_sum() -> None:
    # strong bounds at bars 4 and 12, a weak one at 6, in a piece of 16 bars
    strength = np.zeros(16)
    strength[[4, 6, 12]] = [3, 1, 3]
    bounds, score = segments._best_sections(strength)
    assert bounds == [4, 12]
    assert score == pytest.approx(2 * (3 - segments.BOUNDARY_COST))


def test_a_last_section_may_ring_on() -> None:
    strength = np.zeros(9)  # 4 bars, 4 bars, and one to ring
    strength[4] = 3
    assert segments._best_sections(strength)[0] == [4]


def test_the_last_bound_is_where_repetition_ends() -> None:
    # cells a b c d | a b c d | e f g h: a repetition begins at 4 and ends at 8
    cells = np.concatenate([np.tile(np.eye(8)[:, :4], 2), np.eye(8)[:, 4:]], axis=1)
    cells = np.repeat(cells, 4, axis=1)  # 16 cells a part
    change = segments._repetition_change(segments._diagonal_sums(cells.T @ cells), 8, 8)
    inside = np.flatnonzero(change > 0.9 * change.max())
    assert {16, 32} <= set(inside.tolist())


def test_contrast_is_footes_sum_over_the_self_similarity(rng: np.random.Generator) -> None:
    vectors = rng.standard_normal((5, 40))
    half = 6
    similarity = vectors.T @ vectors
    sign = np.repeat([-1.0, 1.0], half) / half
    expected = [sign @ similarity[t - half : t + half, t - half : t + half] @ sign for t in range(half, 40 - half)]
    np.testing.assert_allclose(segments._contrast(vectors, half)[half : 40 - half], expected)
