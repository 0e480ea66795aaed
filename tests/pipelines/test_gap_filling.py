"""Filling a gap with a model that is handed in, and the notes that were kept, missed and added."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from music_evals.annotations import HOLD, MASK, MUSIB_LAYOUT, REST, Tokens
from music_evals.errors import InvalidInputError, InvalidTokensError, NoDataError, PairCountError
from music_evals.metrics.inpainting import note_f1, rhythm_accuracy
from music_evals.pipelines.gap_filling import SCORES, NoteChange, diff_notes, fill_gap
from music_evals.pipelines.inpainting import evaluate_inpainting

TOKENS = st.lists(st.sampled_from([60, 62, 64, 128, 129]), min_size=24, max_size=24)


class Drawing:
    """A model that writes one random note, and keeps what it was shown."""

    name = "drawing"
    sees_reference = False

    def __init__(self, *, deterministic: bool = False) -> None:
        self.deterministic = deterministic
        self.shown: list[Tokens] = []

    def inpaint(self, contexts: Tokens, *, rng: np.random.Generator) -> Tokens:
        self.shown.append(contexts.copy())
        middle = np.full((1, 96), HOLD, dtype=np.uint8)
        middle[0, 0] = 40 + rng.integers(80)
        return middle


def context() -> Tokens:
    tokens = np.full(384, REST, dtype=np.uint8)
    tokens[[0, 144, 150, 240]] = [60, 62, 64, 65]
    return tokens


def test_candidates_are_judged_as_the_benchmark_judges_and_the_middle_is_hidden() -> None:
    model = Drawing()
    found = list(fill_gap(context(), model, seed=4, n_candidates=3))
    assert [candidate.number for candidate in found] == [1, 2, 3]
    assert all((shown[0, MUSIB_LAYOUT.middle] == MASK).all() for shown in model.shown)
    for candidate in found:
        judged = evaluate_inpainting(context()[None], candidate.middle[None], n_resamples=0, metrics=SCORES)
        assert {name: pytest.approx(judged[name], nan_ok=True) for name in SCORES} == candidate.scores
        assert candidate.diff == diff_notes(context()[MUSIB_LAYOUT.middle], candidate.middle)
        assert candidate.row["missed"] + candidate.row["kept"] == 2


def test_more_candidates_do_not_change_the_first_ones() -> None:
    few, many, other = (
        [tuple(candidate.middle) for candidate in fill_gap(context(), Drawing(), seed=seed, n_candidates=n)]
        for seed, n in ((4, 2), (4, 5), (5, 2))
    )
    assert many[:2] == few
    assert other != few


def test_what_is_not_random_is_drawn_once_and_what_is_not_known_is_not_judged() -> None:
    [candidate] = fill_gap(context(), Drawing(deterministic=True), n_candidates=5, judge=False)
    assert (candidate.scores, candidate.diff) == ({}, None)
    assert set(candidate.row) == {"candidate", "middle"}


def test_bad_gaps_are_refused() -> None:
    empty = np.full(384, REST, dtype=np.uint8)
    empty[MUSIB_LAYOUT.middle.start] = 60  # a note in the middle alone says nothing to a model
    with pytest.raises(NoDataError, match="before and after the gap"):
        next(fill_gap(empty, Drawing()))
    with pytest.raises(InvalidInputError, match="got -1 and 1"):
        next(fill_gap(context(), Drawing(), seed=-1))
    seeing = Drawing()
    seeing.sees_reference = True
    with pytest.raises(InvalidInputError, match="sees the true middle"):
        next(fill_gap(context(), seeing))


def test_each_note_of_both_sides_is_told_once() -> None:
    true = [60, 128, 62, 128, 64, 129, 65, 128]
    given_ = [60, 129, 63, 128, 64, 129, 129, 67]
    assert diff_notes(true, given_).changes == (
        NoteChange("kept", 0, 1, 60, 2),
        NoteChange("missed", 2, 2, 62),
        NoteChange("extra", 2, 2, 63),
        NoteChange("kept", 4, 1, 64, 1),
        NoteChange("missed", 6, 2, 65),
        NoteChange("extra", 7, 1, 67),
    )


@given(TOKENS, TOKENS)
def test_counts_are_those_of_note_f1(true: list[int], found: list[int]) -> None:
    diff = diff_notes(true, found)
    kept, missed, extra = (diff.count(kind) for kind in ("kept", "missed", "extra"))
    whole = 2 * kept + missed + extra
    assert note_f1(true, found) == pytest.approx(2 * kept / whole if whole else 1.0)


@given(TOKENS)
def test_a_copy_is_kept_whole(true: list[int]) -> None:
    diff = diff_notes(true, true)
    assert {change.kind for change in diff.changes} <= {"kept"}
    assert diff.same_length == len(diff.changes) == np.sum(np.array(true) < 128)
    if diff.changes:
        assert rhythm_accuracy(true, true) == 1.0


def test_bad_input_is_named() -> None:
    with pytest.raises(PairCountError, match="4 and 3 steps"):
        diff_notes([60, 128, 128, 128], [60, 128, 128])
    with pytest.raises(InvalidTokensError, match="one sequence"):
        diff_notes([[60]], [[60]])
