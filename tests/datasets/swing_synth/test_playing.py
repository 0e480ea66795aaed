"""What bass and piano play holds what theory asks of it."""

import itertools

import numpy as np
import pytest

from music_evals.datasets.swing_synth.build import N_PIECES, compose
from music_evals.datasets.swing_synth.chords import QUALITIES, Chord
from music_evals.datasets.swing_synth.playing import BASS_RANGE, PIANO_RANGE, movement, next_voicing

PIECES = [compose(number) for number in range(0, N_PIECES, 7)]


def chord_at(piece, half):
    return next(span for span in piece.spans if span.start <= half < span.end).chord


def test_the_bass_walks_in_quarters_and_plays_the_root_where_a_chord_begins():
    for piece in PIECES:
        assert [stroke.start for stroke in piece.bass] == list(range(0, piece.spans[-1].start + 1, 2))
        roots = {stroke.start: stroke.pitches[0] % 12 for stroke in piece.bass}
        assert [roots[span.start] for span in piece.spans] == [span.chord.root for span in piece.spans]


def test_the_bass_keeps_its_range_and_never_leaps_beyond_a_tenth():
    lines = [[stroke.pitches[0] for stroke in piece.bass] for piece in PIECES]
    assert min(map(min, lines)) >= BASS_RANGE[0]
    assert max(map(max, lines)) <= BASS_RANGE[1]
    leaps = np.concatenate([np.abs(np.diff(line)) for line in lines])
    assert leaps.max() <= 16
    assert np.mean(leaps <= 5) > 0.8


def test_strong_beats_inside_of_a_chord_have_its_tones_and_the_last_beat_leads_to_the_next_root():
    for piece in PIECES:
        line = {stroke.start: stroke.pitches[0] for stroke in piece.bass}
        for span, following in itertools.pairwise(piece.spans):
            for half in range(span.start, span.end - 2, 4):
                assert (line[half] - span.chord.root) % 12 in QUALITIES[span.chord.quality].tones
            arrival = line[following.start] - line[span.end - 2]
            if span.end - span.start > 2:
                assert arrival in {-7, -1, 1, 5}


def test_each_stroke_of_the_piano_has_the_guide_tones_of_its_chord():
    for piece in PIECES:
        for stroke in piece.piano:
            chord = chord_at(piece, stroke.start + stroke.start % 2)  # an off-beat stroke plays the next beat's chord
            tones = {(pitch - chord.root) % 12 for pitch in stroke.pitches}
            assert set(QUALITIES[chord.quality].guides) <= tones
            assert len(stroke.pitches) in {3, 4}
            assert min(stroke.pitches) >= PIANO_RANGE[0]
            assert max(stroke.pitches) <= PIANO_RANGE[1]


def test_strokes_do_not_overlap_and_last():
    for piece in PIECES:
        for strokes in (piece.piano, piece.bass):
            assert all(first.end <= second.start for first, second in itertools.pairwise(strokes))
            assert all(stroke.end > stroke.start for stroke in strokes)


def test_a_stroke_does_not_outlast_its_chord():
    for piece in PIECES:
        for stroke in piece.piano:
            assert chord_at(piece, stroke.end - 1) == chord_at(piece, stroke.start + stroke.start % 2) or (
                stroke.end == stroke.start + 1 and stroke.start % 2
            )


def test_two_five_one_moves_as_textbooks_write_it():
    two = (53, 57, 60, 64)  # Dm7: F A C E
    five = next_voicing(Chord(7, "dominant"), 4, two)
    one = next_voicing(Chord(0, "major"), 4, five)
    assert five == (53, 57, 59, 64)  # G7: the C falls to B, all else stays
    assert one == (52, 55, 59, 62)  # Cmaj7: E G B D


def test_voice_leading_moves_little():
    moves = [
        movement(before.pitches, after.pitches) / min(len(before.pitches), len(after.pitches))
        for piece in PIECES
        for before, after in itertools.pairwise(piece.piano)
        if before.pitches != after.pitches
    ]
    assert np.mean(moves) < 2  # semitones a voice
    assert np.quantile(moves, 0.95) <= 4
    assert max(moves) < 6


def test_movement_counts_each_voice_once():
    assert movement((53, 57, 60, 64), (53, 57, 59, 64)) == 1
    assert movement((53, 60, 64), (53, 57, 59, 64)) == 1  # the 57 enters
    assert movement((), (60,)) == 0


@pytest.mark.parametrize("quality", QUALITIES)
@pytest.mark.parametrize("n_notes", [3, 4])
def test_every_chord_has_a_voicing_in_range_on_every_root(quality, n_notes):
    for root in range(12):
        notes = next_voicing(Chord(root, quality), n_notes)
        assert len(notes) == n_notes
        assert notes == tuple(sorted(notes))
        rootless = quality not in {"half_diminished", "diminished"}
        assert not (rootless and root in {pitch % 12 for pitch in notes})
        assert notes[-1] - notes[0] < 12
