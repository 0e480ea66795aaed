"""From a score to the rows of a tune."""

from __future__ import annotations

import numpy as np
import pytest
from tests.datasets.making import chords, melody, quarter_tokens, score

from music_evals.annotations import Score, TimeSignature
from music_evals.datasets.tunes import Training, features, tune_from_score, tune_rows
from music_evals.errors import ContextLengthError, PolyphonyError, UnknownNameError
from music_evals.symbolic.notes import make_notes


def test_measures_from_the_first_bar() -> None:
    tune = tune_from_score(score(melody(1, 18)), "a", title="A")
    assert tune.tokens.tolist() == quarter_tokens(melody(1, 18)).tolist()
    assert (tune.n_measures, tune.n_windows, tune.key_fifths, tune.mode) == (18, 3, 1, "major")


def test_a_pickup_is_left_out() -> None:
    pitches = [60, *melody(1, 17)]
    notes = make_notes([480 * place for place in range(len(pitches))], [480] * len(pitches), pitches)
    tune = tune_from_score(Score(notes, 480, (TimeSignature(0, 1, 4), TimeSignature(480, 2, 2)), voices=("",)), "a")
    assert tune.tokens.tolist() == quarter_tokens(pitches[1:]).tolist()
    assert (tune.pickup_quarters, tune.time_signature) == (1, "2/2")


@pytest.mark.parametrize(("numerator", "denominator"), [(0, 1), (1, 16), (1, 32), (3, 16)])
def test_times_are_rounded_from_the_bar_line_whatever_the_pickup(numerator: int, denominator: int) -> None:
    pickup = 4 * 480 * numerator // denominator
    meters = [TimeSignature(0, numerator, denominator)] if pickup else []
    pitches = [60 + place % 12 for place in range(256)]
    onsets, lengths = [pickup + 120 * place for place in range(256)], [120] * 256
    before = ([0], [pickup], [50]) if pickup else ([], [], [])
    notes = make_notes(before[0] + onsets, before[1] + lengths, before[2] + pitches)
    tune = tune_from_score(Score(notes, 480, (*meters, TimeSignature(pickup, 4, 4)), voices=("",)), "a")
    # sixteenths are 1.5 steps long: they start at 0, 1.5, 3, 4.5, ..., which is 0, 2, 3, 5, ...
    assert tune.tokens.reshape(-1, 3).tolist() == [
        [one, 128, two] for one, two in zip(*[iter(pitches)] * 2, strict=True)
    ]


def test_of_an_irregular_piece_the_longest_run_is_taken() -> None:
    pitches = melody(1, 40)
    meters = (TimeSignature(0, 4, 4), TimeSignature(480 * 40, 3, 4), TimeSignature(480 * 43, 4, 4))
    notes = make_notes([480 * place for place in range(160)], [480] * 160, pitches)
    tune = tune_from_score(Score(notes, 480, meters, voices=("",)), "a")  # 10 measures, one of 3/4, then 29.25
    assert tune.n_measures == 30
    assert tune.tokens[: 24 * 29].tolist() == quarter_tokens(pitches[43:159]).tolist()


def test_fixed_measures_read_no_meter() -> None:
    waltz = score(melody(1, 20), meter=(3, 4))
    with pytest.raises(ContextLengthError, match="0 measures of four quarters in a row"):
        tune_from_score(waltz, "a")
    assert tune_from_score(waltz, "a", measures="fixed").n_measures == 20
    assert tune_from_score(waltz, "a", measures="fixed", n_measures=17).n_measures == 17
    with pytest.raises(UnknownNameError, match="notated"):
        tune_from_score(waltz, "a", measures="page")  # type: ignore[arg-type]


def test_chords_are_refused() -> None:
    with pytest.raises(PolyphonyError):
        tune_from_score(chords(melody(1)), "a")


def test_rows_say_what_train_holds() -> None:
    train = tune_from_score(score(melody(1, 20)), "train")
    copy = tune_from_score(score([pitch + 2 for pitch in melody(1, 20)]), "copy", title="Copy", collection="book")
    other = tune_from_score(score(melody(2, 20)), "other")
    known = Training.of([train])
    rows = list(tune_rows(copy, "train", "test", known))
    assert [row["item_id"] for row in rows] == [f"copy/{start:03d}" for start in range(5)]
    assert all(row["seen_in_train"] and row["near_train"] == 1 for row in rows)
    assert (rows[0]["title"], rows[0]["collection"], rows[0]["family"]) == ("Copy", "book", "train")
    unseen = list(tune_rows(other, "other", "test", known))
    assert not any(row["seen_in_train"] for row in unseen)
    assert all(row["near_train"] < 1 for row in unseen)
    assert all(row["seen_in_train"] for row in tune_rows(other, "other", "train", known))
    assert set(rows[0]) == set(features())


def test_the_columns_of_jsb_chorales_are_all_there() -> None:
    from music_evals.datasets.jsb_chorales.build import features as of_chorales

    ours, theirs = features(), of_chorales()
    assert {name: ours[name] for name in theirs} == dict(theirs)
    assert [name for name in ours if name not in theirs] == ["title", "collection", "family"]


def test_notes_are_what_the_tokens_hold() -> None:
    tune = tune_from_score(score(melody(3, 16)), "a")
    [row] = tune_rows(tune, "a", "train", Training.of([tune]))
    assert [note["pitch"] for note in row["notes"]] == melody(3, 16)
    assert np.array_equal(row["tokens"], tune.tokens)
