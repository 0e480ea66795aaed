"""Chords and beats that editing systems are told: heard in renders whose truth is known, and refused by name."""

from __future__ import annotations

import mir_eval
import numpy as np
import pytest

from music_evals.audio.backends import DEFAULT_BACKENDS
from music_evals.audio.io import Audio, load_audio
from music_evals.datasets.known_edits import build as known_edits
from music_evals.errors import InvalidAudioError, InvalidInputError
from music_evals.pipelines.edit_conditions import BEATS_BACKEND, CHORD_LABELS, extract_conditions

pytest.importorskip("librosa")


def test_beats_are_heard_by_another_tracker_than_the_metrics() -> None:
    assert DEFAULT_BACKENDS["beats"] != BEATS_BACKEND


@pytest.mark.parametrize("piece", ["song_rock", pytest.param("song_synth", marks=pytest.mark.slow)])
def test_what_is_played_is_heard(piece: str) -> None:
    row = next(row for row in known_edits.load_rows("default", "tuning") if row["piece"] == piece)
    audio = load_audio(known_edits.render(row, renderer="additive", which="reference"))
    heard, truth = extract_conditions(audio), known_edits.annotations(row, which="reference")
    assert mir_eval.beat.f_measure(truth.beats.times_sec, heard.beats.times_sec) > 0.9
    labels = [list(chords.labels) for chords in (truth.chords, heard.chords)]
    merged = mir_eval.util.merge_labeled_intervals(
        truth.chords.intervals_sec,
        labels[0],
        *mir_eval.util.adjust_intervals(
            heard.chords.intervals_sec, labels[1], 0, truth.chords.intervals_sec[-1, 1], "N", "N"
        ),
    )
    right = mir_eval.chord.majmin(merged[1], merged[2])
    assert mir_eval.chord.weighted_accuracy(right, np.diff(merged[0]).ravel()) > 0.85
    assert np.isin(heard.downbeats_sec, heard.beats.times_sec).all()
    assert heard.chords.intervals_sec[0, 0] == 0
    assert heard.chords.intervals_sec[-1, 1] == pytest.approx(audio.duration_sec)
    assert set(heard.chords.labels) <= {*CHORD_LABELS, "N"}
    # chords of a whole bar change on the beats that are called the first of a bar
    changes = heard.chords.intervals_sec[1:, 0]
    assert np.isin(changes, heard.downbeats_sec).mean() > 0.4


def test_music_without_beats_is_refused() -> None:
    with pytest.raises(InvalidAudioError, match="no beats"):
        extract_conditions(Audio(np.zeros(22050 * 4, np.float32), silent=True))
    with pytest.raises(InvalidInputError, match="at least one beat"):
        extract_conditions(Audio(np.zeros(22050, np.float32)), beats_per_bar=0)
