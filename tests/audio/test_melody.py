"""Notes from a track of the fundamental frequency: every expected note is counted by hand, in frames of 23.2 ms."""

import numpy as np
import pytest

from music_evals.annotations import F0Track
from music_evals.audio import melody
from music_evals.audio.io import Audio
from music_evals.audio.melody import notes_from_f0
from music_evals.audio.melody_net import MelodyActivations

HOP_SEC = 512 / 22050
NEVER = 2.0  # no note is struck again
AUDIO = Audio(np.zeros(22050, dtype=np.float32))


def _track(*runs: tuple[float, int]) -> F0Track:
    """A track of (MIDI pitch, frames); pitch 0 is a rest, with a guess that must not be heard."""
    hertz = [440 * 2 ** ((pitch - 69) / 12) if pitch else -330.0 for pitch, frames in runs for _ in range(frames)]
    return F0Track(np.arange(len(hertz)) * HOP_SEC, np.array(hertz))


def _frames(notes: object) -> list[tuple[int, int, float]]:
    intervals, pitches = notes.intervals_sec, notes.pitches  # type: ignore[attr-defined]
    return [
        (round(a / HOP_SEC), round(b / HOP_SEC), p)
        for (a, b), p in zip(intervals.tolist(), pitches.tolist(), strict=True)
    ]


def test_runs_of_one_pitch_are_notes() -> None:
    found = notes_from_f0(AUDIO, f0=_track((0, 6), (60.3, 10), (61.8, 12), (0, 8), (64, 9)), attack=NEVER)
    assert _frames(found) == [(6, 16, 60), (16, 28, 62), (36, 45, 64)]


def test_a_glitch_is_smoothed_away() -> None:
    found = notes_from_f0(AUDIO, f0=_track((60, 10), (72, 1), (60, 10), (0, 1), (60, 5)), attack=NEVER)
    assert _frames(found) == [(0, 27, 60)]


def test_short_notes_are_left_out() -> None:
    f0 = _track((60, 10), (0, 10), (65, 6), (0, 10), (62, 10))
    assert _frames(notes_from_f0(AUDIO, f0=f0, attack=NEVER, minimum_sec=7 * HOP_SEC)) == [(0, 10, 60), (36, 46, 62)]
    assert len(notes_from_f0(AUDIO, f0=f0, attack=NEVER, minimum_sec=6 * HOP_SEC).pitches) == 3


def test_one_pitch_goes_on_over_a_short_gap_only() -> None:
    f0 = _track((60, 10), (0, 3), (60, 10), (0, 6), (60, 10))
    found = notes_from_f0(AUDIO, f0=f0, attack=NEVER, median_sec=HOP_SEC, gap_sec=4 * HOP_SEC)
    assert _frames(found) == [(0, 23, 60), (29, 39, 60)]


def test_a_note_between_keeps_two_apart() -> None:
    f0 = _track((60, 10), (62, 2), (60, 10))
    found = notes_from_f0(AUDIO, f0=f0, attack=NEVER, median_sec=HOP_SEC, minimum_sec=HOP_SEC)
    assert _frames(found) == [(0, 10, 60), (10, 12, 62), (12, 22, 60)]


def test_no_voiced_frame_is_a_melody_without_notes() -> None:
    found = notes_from_f0(AUDIO, f0=_track((0, 30)), attack=NEVER)
    assert found.intervals_sec.shape == (0, 2)
    assert found.pitches.shape == (0,)


def test_a_track_of_one_frame_is_too_short_for_a_note() -> None:
    assert len(notes_from_f0(AUDIO, f0=_track((60, 1)), attack=NEVER).pitches) == 0


def test_a_finer_grid_gives_the_same_notes() -> None:
    coarse = _track((60, 20), (62, 20))
    fine = F0Track(np.arange(80) * HOP_SEC / 2, np.repeat(coarse.frequencies_hz, 2))
    assert _frames(notes_from_f0(AUDIO, f0=fine, attack=NEVER)) == [(0, 20, 60), (20, 40, 62)]


@pytest.mark.parametrize(
    ("onsets", "expected"),
    [
        ({(60, 20): 0.9}, [(0, 20, 60), (20, 40, 60)]),
        ({(60, 20): 0.3}, [(0, 40, 60)]),  # doubtful
        ({(62, 20): 0.9}, [(0, 40, 60)]),  # of another pitch
        ({(60, 1): 0.9, (60, 39): 0.9}, [(0, 40, 60)]),  # too near to an end
        ({(60, 10): 0.9, (60, 11): 0.8, (60, 12): 0.9}, [(0, 10, 60), (10, 40, 60)]),  # two peaks of one onset
    ],
)
def test_a_note_struck_again_is_two(
    onsets: dict[tuple[int, int], float], expected: list[tuple[int, int, float]], monkeypatch: pytest.MonkeyPatch
) -> None:
    heard = np.zeros((61, 40), dtype=np.float32)
    for (pitch, frame), probability in onsets.items():
        heard[pitch - 36, frame] = probability
    said = MelodyActivations(np.zeros((62, 40), dtype=np.float32), heard)
    monkeypatch.setattr(melody, "melody_activations", lambda _: said)
    assert _frames(notes_from_f0(AUDIO, f0=_track((60, 40)), attack=0.5, minimum_sec=0.08)) == expected


def test_notes_beyond_the_network_are_kept_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    said = MelodyActivations(np.zeros((62, 40), dtype=np.float32), np.ones((61, 40), dtype=np.float32))
    monkeypatch.setattr(melody, "melody_activations", lambda _: said)
    assert _frames(notes_from_f0(AUDIO, f0=_track((30, 20), (100, 20)), attack=0.5)) == [(0, 20, 30), (20, 40, 100)]
