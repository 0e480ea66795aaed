"""What the voices of a score do."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from music_evals.annotations import DRUMS, Score
from music_evals.errors import InvalidInputError, NoDataError, UnknownNameError
from music_evals.symbolic.notes import make_notes
from music_evals.symbolic.roles import ROLES, take_roles


def voices(*named: tuple[str, int]) -> Score:
    """Return a note for each voice, of pitches 60, 61, ..."""
    n = len(named)
    notes = make_notes(range(n), [1] * n, range(60, 60 + n), voice=range(n))
    return Score(notes, 4, voices=tuple(name for name, _ in named), programs=tuple(program for _, program in named))


def taken(score: Score, roles: dict[str, tuple[str, ...]]) -> dict[str, list[int]]:
    found = take_roles(score, roles)
    return {name: found.voice(index)["pitch"].tolist() for index, name in enumerate(found.voices)}


def test_names_come_before_programs():
    score = voices(("Bass", 0), ("", 33), ("Strings 2", 80), ("Piano", DRUMS))
    assert taken(score, {"bass": ()}) == {"bass": [60, 61]}
    assert taken(score, {"strings": (), "bass": ()}) == {"strings": [62], "bass": [60, 61]}
    with pytest.raises(NoDataError):
        take_roles(voices(("Piano", DRUMS), ("Bass", 0)), {"piano": ()})


def test_a_name_of_two_roles_leaves_it_to_the_program():
    score = voices(("Bass guitar", 33), ("Guitar", 25))
    assert taken(score, {"guitar": (), "bass": ()}) == {"guitar": [61], "bass": [60]}
    assert taken(score, {"guitar": ()}) == {"guitar": [61]}


def test_names_that_are_given_come_first():
    score = voices(("One", 0), ("Two", 33), ("Piano", 0))
    assert taken(score, {"bass": ("one",), "piano": ()}) == {"bass": [60], "piano": [62]}
    assert taken(score, {"bass": ("TWO", "Piano")}) == {"bass": [61, 62]}


def test_bad_roles_are_named():
    score = voices(("One", 0))
    with pytest.raises(UnknownNameError, match="kazoo"):
        take_roles(score, {"kazoo": ()})
    with pytest.raises(InvalidInputError, match="one role or more"):
        take_roles(score, {})


@given(st.lists(st.tuples(st.sampled_from(["", "Piano", "Bass", "Lead", "Slap bass 2"]), st.integers(0, DRUMS))))
def test_every_voice_has_one_role_at_most_and_no_note_is_invented(named):
    score = voices(*named) if named else voices(("", 0))
    roles = dict.fromkeys(ROLES, ())
    for role in ROLES:
        try:
            take_roles(score, {role: ()})
        except NoDataError:
            del roles[role]
    try:
        found = take_roles(score, roles) if roles else None
    except NoDataError:  # a voice of two roles went to one of them
        return
    if found is not None:
        pitches = found.notes["pitch"].tolist()
        assert len(set(pitches)) == len(pitches)
        assert set(pitches) <= set(score.notes["pitch"].tolist())
        assert found.voices == tuple(roles)
        assert (np.bincount(found.notes["voice"], minlength=len(roles)) > 0).all()
