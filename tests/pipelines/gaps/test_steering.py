"""Locked notes and sketches: what is shown, what stays, and what a model aimed at."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.filling import Walker

from music_evals.annotations import HOLD, MUSIB_LAYOUT, REST, Tokens
from music_evals.errors import InvalidInputError, UnknownNameError
from music_evals.pipelines.gaps.filling import draw_candidates
from music_evals.pipelines.gaps.steering import Sketched, drawn_sketch, end_locked, followed, hide_gap
from music_evals.symbolic import noteseq
from music_evals.symbolic.notes import make_notes

GAP = slice(150, 210)


def context() -> Tokens:
    """A quarter after the other, up and down."""
    steps = np.arange(0, 384, 6)
    return noteseq.encode(make_notes(steps, [6] * 64, [60 + index % 5 for index in range(64)]), 384)


def rows(tokens: Tokens) -> list[tuple[int, int, int]]:
    return [
        (int(note["onset_tick"]), int(note["duration_tick"]), int(note["pitch"])) for note in noteseq.decode(tokens)
    ]


class Holder(Walker):
    """Writes nothing but holds: whatever sounds, sounds on."""

    deterministic = True

    def infill(self, tokens: Tokens, hidden: Any, *, rng: np.random.Generator) -> Tokens:
        del rng
        return np.where(hidden, np.uint8(HOLD), tokens)


def test_locked_notes_are_shown_and_all_else_of_the_gap_is_hidden() -> None:
    keep = [(180, 12, 72), (156, 4, 48)]
    tokens, hidden = hide_gap(context(), GAP, keep)
    assert rows(np.concatenate([np.full(150, REST), np.where(hidden, REST, tokens)[GAP], np.full(174, REST)])) == [
        (156, 4, 48),
        (180, 12, 72),
    ]
    assert np.flatnonzero(~hidden[GAP]).tolist() == [*range(6, 10), *range(30, 42)]
    assert not hidden[:150].any()
    assert not hidden[210:].any()
    assert np.array_equal(
        tokens[~np.isin(np.arange(384), np.arange(150, 210))], context()[[*range(150), *range(210, 384)]]
    )


@pytest.mark.parametrize(
    ("keep", "words"),
    [
        ([(149, 4, 60)], "does not lie in the gap"),
        ([(206, 6, 60)], "does not lie in the gap"),
        ([(160, 0, 60)], "does not lie in the gap"),
        ([(160, 6, 60), (163, 2, 64)], "sound at once"),
    ],
)
def test_locks_that_cannot_be_kept_are_refused(keep: list[tuple[int, int, int]], words: str) -> None:
    with pytest.raises(InvalidInputError, match=words):
        hide_gap(context(), GAP, keep)


@pytest.mark.parametrize("model", [Walker(), Holder()])
def test_locked_notes_are_in_every_candidate_exactly_as_they_were(model: Walker) -> None:
    """Also where the model writes holds behind them, which would make them longer."""
    keep = [(156, 4, 48), (160, 2, 50), (180, 12, 72)]
    tokens, hidden = hide_gap(context(), GAP, keep)
    found = list(draw_candidates(tokens, hidden, model, gap=GAP, n_candidates=4, truth=context()[GAP]))
    assert len(found) == (1 if model.deterministic else 4)
    for candidate in found:
        assert {(onset - 150, duration, pitch) for onset, duration, pitch in keep} <= set(rows(candidate.middle))
        assert candidate.diff is not None
        # the truth is what stood there, not the locked notes
        assert {change.pitch for change in candidate.diff.changes if change.kind != "extra"} == set(range(60, 65))
        assert 48 in {change.pitch for change in candidate.diff.changes if change.kind == "extra"}


@given(
    st.lists(st.sampled_from([55, 60, HOLD, REST]), min_size=24, max_size=24),
    st.lists(st.booleans(), min_size=24, max_size=24),
)
def test_only_filled_holds_behind_a_lock_are_ended(tokens: list[int], hidden: list[bool]) -> None:
    before, mask = np.array(tokens, dtype=np.uint8), np.array(hidden)
    after = end_locked(before, mask, slice(3, 20))
    changed = np.flatnonzero(before != after)
    assert all(mask[step] and before[step] == HOLD and after[step] == REST and 3 < step < 20 for step in changed)
    for step in range(4, 20):
        assert not (after[step] == HOLD and mask[step] and not mask[step - 1])


MIDDLE = noteseq.encode(make_notes([2, 12, 20, 60], [6, 3, 10, 6], [60, 64, 67, 70]), 96)


def test_a_drawn_rhythm_is_that_of_each_measure_in_which_something_sounds() -> None:
    first, second, third, fourth = drawn_sketch(MIDDLE, "rhythm")
    assert first == (3, 3, 1, 2, 2, 2, 2, 2, 3, 3, 3, 3, 1, 2, 2, 3, 3, 3, 3, 3, 1, 2, 2, 2)
    assert second == (2,) * 6 + (3,) * 18  # a note sounds on over the bar line
    assert third == (3,) * 12 + (1, *(2,) * 5) + (3,) * 6
    assert fourth is None


def test_a_drawn_contour_is_the_pitches_of_each_measure() -> None:
    assert drawn_sketch(MIDDLE, "contour") == ((60, 64, 67), None, (70,), None)


def test_a_note_that_sounds_into_the_gap_sketches_nothing() -> None:
    middle = np.full(96, REST, dtype=np.uint8)
    middle[:5] = HOLD
    for kind in ("rhythm", "contour"):
        with pytest.raises(InvalidInputError, match="nothing is drawn"):
            drawn_sketch(middle, kind)
    with pytest.raises(UnknownNameError):
        drawn_sketch(MIDDLE, "harmony")


def test_how_much_of_a_sketch_is_there_is_counted() -> None:
    other = noteseq.encode(make_notes([2, 13, 20, 60, 80], [6, 3, 4, 6, 6], [61, 64, 65, 70, 71]), 96)
    assert followed(drawn_sketch(MIDDLE, "rhythm"), "rhythm", other) == (3, 4, 1)
    assert followed(drawn_sketch(MIDDLE, "contour"), "contour", other) == (2, 4, 0)
    every = noteseq.encode(make_notes(range(96), [1] * 96, [60] * 96), 96)  # hits whatever is drawn, and more
    assert followed(drawn_sketch(MIDDLE, "rhythm"), "rhythm", every) == (4, 4, 68)
    assert followed(drawn_sketch(MIDDLE, "contour"), "contour", every) == (1, 4, 44)
    for kind in ("rhythm", "contour"):
        assert followed(drawn_sketch(MIDDLE, kind), kind, MIDDLE) == (4, 4, 0)


def test_likelihoods_are_left_out_where_nobody_asks() -> None:
    tokens, hidden = hide_gap(context(), GAP)
    for likelihood in (True, False):
        found = list(draw_candidates(tokens, hidden, Walker(), n_candidates=2, likelihood=likelihood))
        assert all((candidate.log_likelihood is not None) == likelihood for candidate in found)


class Sketcher:
    """Writes what it is given as a sketch."""

    name = "sketcher"
    deterministic = True
    sees_reference = False

    def inpaint(self, contexts: Tokens, *, rng: np.random.Generator, sketches: Any = None) -> Tokens:
        del rng
        return np.broadcast_to(sketches, (len(contexts), 96)).copy()


def test_a_sketch_reaches_the_model_and_likelihoods_are_not_asked_for() -> None:
    tokens, hidden = hide_gap(context(), MUSIB_LAYOUT.middle)
    [candidate] = draw_candidates(tokens, hidden, Sketched(Sketcher(), MIDDLE), evaluate=False)
    assert np.array_equal(candidate.middle, MIDDLE)
    assert candidate.log_likelihood is None
