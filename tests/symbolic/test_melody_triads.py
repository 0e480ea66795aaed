"""Triads for a melody."""

import numpy as np
import pytest

from music_evals.annotations import Key
from music_evals.errors import InvalidInputError, NoDataError
from music_evals.symbolic.melody import harmonise
from music_evals.symbolic.notes import make_notes

# Twinkle Twinkle, two notes a half bar: C C G G A A G. F F E E D D C.
TWINKLE = [(60, 1), (60, 1), (67, 1), (67, 1), (69, 1), (69, 1), (67, 2)]
TWINKLE += [(65, 1), (65, 1), (64, 1), (64, 1), (62, 1), (62, 1), (60, 2)]


def melody(notes, shift=0):
    pitch, length = np.array(notes).T
    return make_notes(8 * (np.cumsum(length) - length), 8 * length, pitch + shift)


def test_twinkle_gets_the_chords_of_every_songbook():
    roots = [triad.root for triad in harmonise(melody(TWINKLE), Key(0, "major"), 16)]
    assert roots == [0, 0, 5, 0, 5, 0, 7, 0]


@pytest.mark.parametrize("shift", range(1, 12))
def test_another_key_gets_the_same_chords(shift):
    there = harmonise(melody(TWINKLE, shift), Key(shift, "major"), 16)
    here = harmonise(melody(TWINKLE), Key(0, "major"), 16)
    assert [(triad.root - shift) % 12 for triad in there] == [triad.root for triad in here]


def test_a_minor_cadence_has_the_major_dominant():
    triads = harmonise(melody([(57, 4), (62, 4), (64, 2), (68, 2), (57, 4)]), Key(9, "minor"), 32)
    assert [(triad.root, triad.tones) for triad in triads] == [
        (9, (0, 3, 7)),
        (2, (0, 3, 7)),
        (4, (0, 4, 7)),
        (9, (0, 3, 7)),
    ]


def test_what_cannot_be_harmonised_is_refused():
    with pytest.raises(NoDataError):
        harmonise(melody(TWINKLE)[:0], Key(0, "major"), 16)
    with pytest.raises(InvalidInputError, match="1 tick"):
        harmonise(melody(TWINKLE), Key(0, "major"), 0)
