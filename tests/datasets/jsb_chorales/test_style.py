"""Whole chorales for style transfer."""

import numpy as np
import pytest

from music_evals.annotations import KeySignature, Score, TimeSignature
from music_evals.datasets.bach_corpus import VOICES, Chorale, Measure
from music_evals.datasets.jsb_chorales.style import (
    content_key,
    four_voices,
    official_splits,
    page_signatures,
    style_row,
    tune_families,
)
from music_evals.errors import InvalidInputError
from music_evals.symbolic.notes import make_notes
from music_evals.symbolic.piece_rows import score_of_row


def score(voices, *, melody=(0, 2, 4), shift=0):
    n = len(melody)
    onset = np.tile(np.arange(n) * 24, len(voices))
    pitch = np.concatenate([48 + shift + 2 * index + np.array(melody) for index in range(len(voices))])
    notes = make_notes(onset, np.full(len(onset), 24), pitch, voice=np.repeat(np.arange(len(voices)), n))
    return Score(notes, 24, (TimeSignature(0, 4, 4),), (), (KeySignature(0, 2),), tuple(voices))


def test_voices_are_taken_by_name_whatever_plays_with_them():
    chosen = four_voices(score(["Horn", "Bass", "Soprano", "Tenor", "Alto", "Continuo"]))
    assert chosen.voices == VOICES
    assert [int(chosen.voice(index)["pitch"][0]) for index in range(4)] == [52, 56, 54, 50]


def test_four_parts_without_names_are_read_from_the_top_and_five_are_an_error():
    assert int(four_voices(score("abcd")).voice(3)["pitch"][0]) == 54
    with pytest.raises(InvalidInputError, match="leave the piece out"):
        four_voices(score("abcde"))


def test_a_row_has_the_bar_lines_of_the_page():
    bars = (Measure(0.0, 1.0, 4.0), Measure(1.0, 2.0, 4.0))
    row = style_row(Chorale("bwv1", score("abcd"), bars, frozenset({"4/4"}), "major"), "bwv1")
    assert row["measure_starts"] == [0, 8, 40]
    assert row["melody"] == row["voices"][0] == "soprano"
    assert content_key(row) == content_key({**row, "name": "another"})
    assert content_key(row) != content_key({**row, "notes": row["notes"][1:]})
    assert score_of_row(row).voices == VOICES


@pytest.mark.parametrize(
    ("bars", "signatures"),
    [
        ([(0, 4, 4), (4, 4, 4)], [(0, 4, 4)]),
        ([(0, 1, 4), (1, 4, 4), (5, 4, 4)], [(0, 4, 4), (24, 4, 4)]),  # a pickup
        ([(0, 1, 4), (1, 4, 4), (5, 3, 4), (8, 1, 4), (9, 4, 4)], [(0, 4, 4), (24, 4, 4)]),  # a repeat inside of a bar
        ([(0, 1, 4), (1, 3, 4), (4, 4, 4)], [(0, 4, 4)]),  # one that the first bar completes
        ([(0, 4, 4), (4, 3, 4), (7, 4, 4)], [(0, 4, 4), (168, 4, 4)]),  # a short bar
        ([(0, 3, 3), (3, 4.5, 4.5)], [(0, 3, 4), (72, 9, 8)]),
    ],
)
def test_signatures_put_bar_lines_where_the_page_has_them(bars, signatures):
    measures = tuple(Measure(*map(float, bar)) for bar in bars)
    found = page_signatures(Chorale("bwv1", score("abcd"), measures, frozenset({"4/4"}), "major"))
    assert [(one.tick, one.numerator, one.denominator) for one in found] == signatures


def test_a_tune_in_another_key_is_of_the_same_family():
    scores = {"c": score("abcd", melody=(0, 2, 3)), "b": score("abcd", shift=5), "a": score("abcd")}
    assert tune_families(scores) == {"a": "a", "b": "a", "c": "c"}


def test_the_official_split_is_in_the_order_of_text():
    splits = official_splits()
    assert {name: len(of) for name, of in splits.items()} == {"train": 296, "validation": 37, "test": 38}
    assert splits["train"][:4] == [0, 1, 10, 100]
    assert splits["test"][-1] == 99
    assert sorted(place for of in splits.values() for place in of) == list(range(371))
    with pytest.raises(InvalidInputError, match="371"):
        official_splits(350)
