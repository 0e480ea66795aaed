"""Rows of whole pieces, and the scores that come back out of them."""

import dataclasses
from collections import Counter

import numpy as np
import pytest

from music_evals.annotations import KeySignature, Score, TimeSignature
from music_evals.datasets.style_pieces import PieceFacts, features, row_of, split_families
from music_evals.errors import InvalidInputError, NoDataError, UnknownNameError
from music_evals.symbolic.measures import meter_map
from music_evals.symbolic.notes import make_notes
from music_evals.symbolic.piece_rows import score_of_row

FACTS = PieceFacts("piece", "bach", "family", melody="soprano")


def score(*, pitches=(72, 74, 48), tpq=24):
    notes = make_notes([0, tpq, 0], [tpq, tpq // 2, 3 * tpq], pitches, voice=[0, 0, 1])
    return Score(notes, tpq, (TimeSignature(0, 3, 4),), (), (KeySignature(0, -1, True),), ("soprano", "bass"))


@pytest.mark.parametrize("grid", [8, 12])
def test_a_row_gives_the_score_back_on_the_grid(grid):
    row = row_of(score(), FACTS, ticks_per_quarter=grid)
    back, expected = score_of_row(row), score(tpq=grid)
    np.testing.assert_array_equal(back.notes, expected.notes)
    for name in ("ticks_per_quarter", "time_signatures", "key_signatures", "voices"):
        assert getattr(back, name) == getattr(expected, name)
    assert row["measure_starts"] == [0, 3 * grid]
    assert set(row) == set(features())


def test_a_pickup_comes_back():
    pickup = dataclasses.replace(score(), time_signatures=(TimeSignature(0, 3, 4), TimeSignature(24, 3, 4)))
    row = row_of(pickup, FACTS)
    assert row["measure_starts"] == [0, 8, 32]
    assert meter_map(score_of_row(row)).starts.tolist() == [0, 8, 32]


def test_a_row_of_another_data_set_is_named():
    with pytest.raises(InvalidInputError, match="lacks the columns ticks_per_quarter"):
        score_of_row({"tokens": [], "notes": []})


def test_rows_survive_arrow():
    import pyarrow as pa

    row = row_of(score(), FACTS)
    assert pa.Table.from_pylist([row], schema=features().arrow_schema).to_pylist() == [row]


@pytest.mark.parametrize("pitch", [20, 105])
def test_a_pitch_off_the_grid_is_named(pitch):
    with pytest.raises(InvalidInputError, match="A0 to G#7"):
        row_of(score(pitches=(72, 74, pitch)), FACTS)


def test_no_notes_and_an_unknown_melody_are_named():
    with pytest.raises(NoDataError):
        row_of(Score(make_notes([], [], []), 8), dataclasses.replace(FACTS, melody=""))
    with pytest.raises(UnknownNameError, match="flute"):
        row_of(score(), dataclasses.replace(FACTS, melody="flute"))
    with pytest.raises(NoDataError):
        score_of_row({**row_of(score(), FACTS), "notes": []})


def test_families_stay_whole_and_shares_are_near():
    families = {f"piece{number:03d}": f"tune{number // 3:03d}" for number in range(300)}
    splits = split_families(families)
    assert all(
        len({splits[name] for name in families if families[name] == family}) == 1 for family in families.values()
    )
    counts = Counter(splits.values())
    assert counts["train"] == pytest.approx(240, abs=3)
    assert counts["test"] == pytest.approx(30, abs=3)
    assert split_families(dict(reversed(families.items()))) == splits
