"""What several extractors share, against the same done slowly, one frame after the other."""

from __future__ import annotations

import numpy as np
import pytest

from music_evals.audio import beats, segments
from music_evals.audio.filters import median_filter, viterbi


def slow_viterbi(log_likelihood: np.ndarray, stay: float) -> np.ndarray:
    """With a table of all transitions; of equally good states to come from the same one, then the first."""
    n_states, n_frames = log_likelihood.shape
    transitions = np.full((n_states, n_states), np.log((1 - stay) / (n_states - 1)))
    np.fill_diagonal(transitions, np.log(stay))
    score, came_from = log_likelihood[:, 0].copy(), np.zeros((n_frames, n_states), int)
    for t in range(1, n_frames):
        reached = score + transitions  # (to, from)
        came_from[t] = [
            state if reached[state, state] == reached[state].max() else int(reached[state].argmax())
            for state in range(n_states)
        ]
        score = reached.max(axis=1) + log_likelihood[:, t]
    path = [int(score.argmax())]
    for t in range(n_frames - 1, 0, -1):
        path.append(came_from[t, path[-1]])
    return np.array(path[::-1])


@pytest.mark.parametrize("n_frames", [1, 2, 150])
@pytest.mark.parametrize("whole", [False, True])
def test_the_likeliest_path_is_that_of_a_table_of_all_transitions(
    rng: np.random.Generator, n_frames: int, whole: bool
) -> None:
    for _ in range(10):
        scores = rng.normal(0, 2, (24, n_frames))
        scores = scores.round() if whole else scores  # many paths are equally likely
        np.testing.assert_array_equal(viterbi(scores, 0.9), slow_viterbi(scores, 0.9))


@pytest.mark.parametrize("length", [1, 3, 5])
def test_the_median_is_that_of_each_window(rng: np.random.Generator, length: int) -> None:
    frames = rng.integers(0, 9, (3, 40)).astype(np.float32)
    padded = np.pad(frames, [(0, 0), (length // 2, length // 2)], mode="edge")
    expected = [[np.median(row[t : t + length]) for t in range(40)] for row in padded]
    found = median_filter(frames, length)
    np.testing.assert_array_equal(found, expected)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(median_filter(frames[0].astype(np.int64), length), expected[0])


def test_a_comb_is_the_mean_at_the_multiples_of_a_length(rng: np.random.Generator) -> None:
    profile, lengths, hop_sec = rng.normal(size=260), np.geomspace(1, 5, 400), 0.093
    ends = np.maximum(18.0, 1.01 * lengths)
    expected = [
        np.interp(np.arange(length, end, length) / hop_sec, np.arange(260), profile).mean()
        for length, end in zip(lengths, ends, strict=True)
    ]
    np.testing.assert_array_equal(segments._combs(profile, hop_sec, lengths, ends), expected)


def test_sums_along_diagonals(rng: np.random.Generator) -> None:
    matrix = rng.normal(size=(9, 9))
    sums = segments._diagonal_sums(matrix)
    for i, j in np.ndindex(10, 10):
        before = [matrix[i - k, j - k] for k in range(min(i, j), 0, -1)]
        assert sums[i, j] == pytest.approx(sum(before))


def slow_beats(log_odds: np.ndarray) -> np.ndarray:
    """The dynamic programming of `decode_beats`, one frame and one interval after the other."""
    rate = beats.UPSAMPLING * beats.FRAME_RATE_HZ
    n = beats.UPSAMPLING * (len(log_odds) - 1) + 1
    odds = np.interp(np.arange(n) / beats.UPSAMPLING, np.arange(len(log_odds)), log_odds)
    gain = np.clip(odds, -beats.MOST_LOG_ODDS, beats.MOST_LOG_ODDS) + beats.BEAT_BONUS
    intervals = np.arange(round(60 * rate / beats.FASTEST_BPM), round(60 * rate / beats.SLOWEST_BPM) + 1)
    logs, k = np.log(intervals), len(intervals)
    score, best, came_from = np.zeros((n, k)), np.zeros((n, k)), np.zeros((n, k), int)
    for t in range(n):
        for i in range(k):
            before = t - intervals[i]
            score[t, i] = gain[t] + (best[before, i] if before >= 0 else 0.0)
        for i in range(k):
            best[t, i], came_from[t, i] = score[t, i], i
            for other in range(max(i - beats.REACH, 0), min(i + beats.REACH + 1, k)):
                value = score[t, other] - beats.CHANGE_COST * abs(logs[other] - logs[i])
                if value > best[t, i]:
                    best[t, i], came_from[t, i] = value, other
    last = np.where(np.arange(n)[:, None] >= n - intervals, score, -np.inf)
    frame, i = (int(index) for index in np.unravel_index(last.argmax(), last.shape))
    found = []
    while frame >= 0:
        found.append(frame)
        frame -= int(intervals[i])
        if frame >= 0:
            i = came_from[frame, i]
    return np.array(found[::-1]) / rate


@pytest.mark.parametrize("n_frames", [14, 60, 120])
def test_decoding_is_that_of_a_search_frame_by_frame(rng: np.random.Generator, n_frames: int) -> None:
    for spread in (0.5, 4.0):
        odds = rng.normal(-1, spread, n_frames).astype(np.float32)
        # the beats then move to the top of their peaks, by half a step of 11.6 ms at most
        np.testing.assert_allclose(beats.decode_beats(odds), slow_beats(odds), atol=0.0059)
