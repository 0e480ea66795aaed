"""Filling a gap with a model that is handed in, and the notes that were kept, missed and added."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.filling import Walker

from music_evals.annotations import HOLD, MASK, MUSIB_LAYOUT, REST, NoteArray, Score, TimeSignature, Tokens
from music_evals.errors import (
    ContextLengthError,
    InvalidInputError,
    InvalidTokensError,
    NoDataError,
    PairCountError,
    PolyphonyError,
)
from music_evals.metrics.inpainting import note_f1, rhythm_accuracy
from music_evals.pipelines.gaps.diff import NoteChange, diff_notes
from music_evals.pipelines.gaps.filling import MAX_DRAWS, SCORES, draw_candidates, fill, fill_gap
from music_evals.pipelines.gaps.stretches import cut_stretch
from music_evals.pipelines.inpainting import evaluate_inpainting
from music_evals.symbolic.measures import MeterMap, meter_map
from music_evals.symbolic.notes import make_notes, sort_notes

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
        judged = evaluate_inpainting(context()[None], candidate.middle[None], metrics=SCORES)
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
    [candidate] = fill_gap(context(), Drawing(deterministic=True), n_candidates=5, evaluate=False)
    assert (candidate.scores, candidate.diff) == ({}, None)
    assert set(candidate.row) == {"candidate", "middle"}


def test_bad_gaps_are_refused() -> None:
    empty = np.full(384, REST, dtype=np.uint8)
    empty[MUSIB_LAYOUT.middle.start] = 60  # a note in the middle alone says nothing to a model
    with pytest.raises(NoDataError):
        next(fill_gap(empty, Drawing()))
    with pytest.raises(InvalidInputError, match="`seed` must be 0 or more, got -1"):
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
    with pytest.raises(InvalidTokensError):
        diff_notes([[60]], [[60]])


def test_new_notes_are_as_loud_as_what_the_model_was_shown() -> None:
    notes = melody(64)
    notes["velocity"] = 20
    notes["velocity"][20:48] = 90  # two measures before the gap, the gap, and two after it
    notes["velocity"][28:40] = 5
    bars = meter_map(Score(notes, 4, (TimeSignature(0, 4, 4),)))
    near, far = (
        fill(notes, Walker(steps=steps, hidden_steps=72), bars=bars, first=7, n_measures=3, n_candidates=2)
        for steps in (168, 384)
    )
    assert {int(value) for one in near.candidates for value in one.notes["velocity"]} == {90}
    assert {int(value) for one in far.candidates for value in one.notes["velocity"]} == {20}


def test_what_is_no_truth_is_not_told() -> None:
    notes = melody(64)
    bars = meter_map(Score(notes, 4, (TimeSignature(0, 4, 4),)))
    judged, other = (fill(notes, Walker(), bars=bars, first=7, n_measures=3, evaluate=judge) for judge in (None, False))
    assert (len(judged.truth), len(other.truth)) == (12, 0)


def melody(n: int, *, length: int = 4, pitch: int = 60) -> NoteArray:
    """Return n quarters on a grid of four ticks."""
    return make_notes(np.arange(n) * length, np.full(n, length), pitch + np.arange(n) % 7, 50 + np.arange(n) % 3)


def bars_of(n_quarters: int, *signatures: TimeSignature) -> MeterMap:
    return meter_map(Score(melody(n_quarters), 4, signatures or (TimeSignature(0, 4, 4),)))


def test_a_model_of_sixteen_measures_is_shown_six_and_six_and_rests_beyond_the_ends() -> None:
    model, bars = Drawing(), bars_of(40)
    filling = fill(melody(40), model, bars=bars, first=3, n_measures=4, n_candidates=2)
    [shown, *_] = model.shown
    assert (shown[0, :72] == REST).all()
    # measure 1 begins where the three missing measures end
    assert shown[0, 72:90].tolist() == [60, *[HOLD] * 5, 61, *[HOLD] * 5, 62, *[HOLD] * 5]
    assert (shown[0, MUSIB_LAYOUT.middle] == MASK).all()
    assert shown[0, 240] == melody(40)[28]["pitch"]
    assert (shown[0, 240 + 72 :] == REST).all()
    assert [remark.split(";")[1] for remark in filling.remarks[:2]] == [
        " the tune has 3, and rests stand for the others"
    ] * 2
    assert "drawing cannot say how likely a candidate is" in filling.remarks[-1]
    [first, *_] = filling.candidates
    assert first.notes.tolist() == [(48, 64, int(first.middle[0]), 51, 0)]
    assert filling.truth["onset_tick"].tolist() == list(range(48, 112, 4))


def test_what_sounds_over_the_edges_of_the_gap() -> None:
    # one note from a quarter before the gap into it, one from its last quarter to a quarter after it
    notes = make_notes([0, 4 * 23, 4 * 39, 4 * 44], [4 * 4, 4 * 3, 4 * 2, 4], [60, 62, 64, 65])
    bars = meter_map(Score(notes, 4, (TimeSignature(0, 4, 4),)))
    stretch = cut_stretch(notes, Drawing(), bars=bars, first=6, n_measures=4)
    assert stretch.tokens[144:156].tolist() == [HOLD] * 12  # no note of the gap
    assert stretch.tokens[138:144].tolist() == [62, *[HOLD] * 5]
    assert stretch.tokens[234:252].tolist() == [64, *[HOLD] * 5, 64, *[HOLD] * 5, *[REST] * 6]
    candidate = fill(notes, Drawing(), bars=bars, first=6, n_measures=4).candidates[0]
    assert candidate.diff is not None
    assert candidate.diff.count("missed") + candidate.diff.count("kept") == 1


def test_a_model_of_any_gap_is_shown_whole_measures_on_both_sides() -> None:
    model = Walker(steps=100, hidden_steps=48)
    three = TimeSignature(0, 3, 4)
    filling = fill(melody(36), model, bars=bars_of(36, three), first=4, n_measures=2, n_candidates=3, seed=3)
    tokens, hidden = model.shown[0]
    # 36 steps of gap leave 64: one measure of 18 before, one after, one more before
    assert tokens.shape == (1, 90)
    assert np.flatnonzero(hidden).tolist() == list(range(36, 72))
    assert (tokens[hidden] == MASK).all()
    assert tokens[0, :7].tolist() == [60 + 6 % 7, *[HOLD] * 5, 60]
    assert filling.stretch.bar_lines == (0, 18, 36, 54, 72, 90)
    assert filling.stretch.origin_tick == 24
    assert filling.ranked
    values = [candidate.log_likelihood for candidate in filling.candidates]
    assert values == sorted(values, key=lambda value: -(value or 0))
    assert len({candidate.notes.tobytes() for candidate in filling.candidates}) == 3


def test_a_pickup_is_filled_up_and_two_halves_are_one_measure() -> None:
    signatures = (TimeSignature(0, 1, 4), TimeSignature(4, 4, 4), TimeSignature(4 + 16 * 8 + 12, 4, 4))
    bars = bars_of(65, *signatures)  # a pickup, then a measure of three quarters and one of a quarter within 4/4
    model = Walker(quantum=24)
    cut_stretch(melody(65), model, bars=bars, first=2, n_measures=2)
    stretch = cut_stretch(melody(65), model, bars=bars, first=2, n_measures=2)
    assert stretch.origin_tick == 4 - 16
    assert stretch.tokens[:24].tolist() == [*[REST] * 18, 60, *[HOLD] * 5]
    lines = set(np.diff(stretch.bar_lines).tolist())
    assert lines == {24}


def test_locked_notes_are_shown_and_stay() -> None:
    model, notes, bars = Walker(), melody(64), bars_of(64)
    keep = notes[[24, 27]]  # the first and the fourth quarter of measure 7
    filling = fill(notes, model, bars=bars, first=6, n_measures=1, keep=keep, n_candidates=2)
    tokens, hidden = model.shown[0]
    gap = filling.stretch.gap
    assert np.flatnonzero(~hidden[0, gap]).tolist() == [*range(6), *range(18, 24)]
    assert tokens[0, gap][[0, 18]].tolist() == keep["pitch"].tolist()
    for candidate in filling.candidates:
        kept = {(int(note["onset_tick"]), int(note["pitch"])) for note in candidate.notes}
        assert {(int(note["onset_tick"]), int(note["pitch"])) for note in keep} <= kept
        assert len(candidate.middle) == 24
    with pytest.raises(InvalidInputError, match="no note of the gap"):
        fill(notes, model, bars=bars, first=6, n_measures=1, keep=notes[:1])
    with pytest.raises(InvalidInputError, match="nothing is left to fill"):
        fill(notes, model, bars=bars, first=6, n_measures=1, keep=notes[24:28])
    with pytest.raises(InvalidInputError, match="cannot keep notes"):
        fill(notes, Drawing(), bars=bars, first=6, n_measures=4, keep=keep)


def test_draws_that_are_alike_do_not_count_and_end() -> None:
    class Two(Drawing):
        def inpaint(self, contexts: Tokens, *, rng: np.random.Generator) -> Tokens:
            middle = super().inpaint(contexts, rng=rng)
            middle[0, 0] = 60 + rng.integers(2)
            return middle

    model = Two()
    filling = fill(melody(64), model, bars=bars_of(64), first=6, n_measures=4, n_candidates=3)
    assert len(filling.candidates) == 2
    assert len(model.shown) == 3 * MAX_DRAWS
    assert filling.remarks[0] == f"2 of 3 candidates differ: {3 * MAX_DRAWS} draws gave no more"


def test_the_steps_that_a_model_is_asked_for_are_those_that_it_knows() -> None:
    tokens, hidden = context(), np.zeros(384, dtype=np.bool_)
    hidden[150:160] = True
    with pytest.raises(ContextLengthError):
        next(draw_candidates(tokens, hidden, Drawing()))
    [candidate] = draw_candidates(tokens, hidden, Walker())
    assert len(candidate.middle) == 10


@pytest.mark.parametrize(
    ("signature", "first", "n", "model", "message"),
    [
        (TimeSignature(0, 4, 4), 6, 3, Drawing(), "no more and no fewer; the gap has 3"),
        (TimeSignature(0, 3, 4), 6, 4, Drawing(), "one in the gap lasts 3 quarters"),
        (TimeSignature(0, 2, 4), 6, 8, Drawing(), "one in the gap lasts 2 quarters"),
        (TimeSignature(0, 4, 4), 2, 9, Walker(), r"fills at most 32 \(8 measures of 4/4\); choose fewer"),
        (TimeSignature(0, 4, 4), 2, 8, Walker(steps=192), r"fills at most 31 \(7\.75 measures"),
        (TimeSignature(0, 7, 8), 2, 1, Walker(), "whole multiples of 1 quarters; one in the gap lasts 3.5"),
        (TimeSignature(0, 5, 16), 2, 1, Walker(), "no whole number of steps"),
    ],
)
def test_gaps_that_a_model_cannot_take_are_named(
    signature: TimeSignature, first: int, n: int, model: Drawing, message: str
) -> None:
    with pytest.raises(ContextLengthError, match=message):
        fill(melody(64), model, bars=bars_of(64, signature), first=first, n_measures=n)


def test_irregular_measures_beside_the_gap() -> None:
    # a measure of 7/8 in the midst of 4/4: tick 80 to 94
    changes = (TimeSignature(0, 4, 4), TimeSignature(80, 7, 8), TimeSignature(94, 4, 4))
    bars = meter_map(Score(melody(64), 4, changes))
    filling = fill(melody(64), Walker(), bars=bars, first=7, n_measures=2)
    assert filling.stretch.origin_tick == 94
    assert "before a measure that is no whole multiple" in filling.remarks[0]


def test_other_bad_gaps_are_refused() -> None:
    notes, bars = melody(64), bars_of(64)
    with pytest.raises(InvalidInputError, match=r"the score has 0\.\.15"):
        fill(notes, Drawing(), bars=bars, first=14, n_measures=4)
    with pytest.raises(InvalidInputError, match="`n_measures` must be 1 or more, got 0"):
        fill(notes, Walker(), bars=bars, first=3, n_measures=0)
    chord = sort_notes(np.concatenate([notes, make_notes([100], [4], [90])]))
    with pytest.raises(PolyphonyError):
        fill(chord, Drawing(), bars=bars, first=6, n_measures=4)
    with pytest.raises(NoDataError):
        fill(notes[24:40], Drawing(), bars=bars, first=6, n_measures=4)
    with pytest.raises(NoDataError):
        fill(notes, Drawing(), bars=meter_map(Score(notes[:0], 4)), first=0, n_measures=4)


@given(
    st.lists(st.tuples(st.integers(0, 700), st.integers(1, 40)), min_size=1, max_size=60),
    st.integers(1, 9),
    st.integers(1, 4),
    st.integers(0, 5),
)
def test_nothing_of_the_gap_is_shown(drawn: list[tuple[int, int]], first: int, n: int, seed: int) -> None:
    onsets = sorted({onset for onset, _ in drawn} | {0, 701})
    lengths = dict(drawn)
    ends = np.minimum([*onsets[1:], 710], [onset + lengths.get(onset, 5) for onset in onsets])
    notes = make_notes(onsets, ends - np.array(onsets), 40 + np.arange(len(onsets)) % 50)
    bars = meter_map(Score(notes, 10, (TimeSignature(0, 3, 4),)))
    start, stop = bars.span(first, n)
    inside = (notes["onset_tick"] >= start) & (notes["onset_tick"] < stop)
    other = notes.copy()
    other["pitch"][inside] = 100
    found = []
    for tune in (notes, other):
        # what sounds out of the gap is shown after it, as the notes there are
        kept = tune.copy()
        kept["duration_tick"][inside] = np.minimum(kept["duration_tick"], stop - kept["onset_tick"])[inside]
        model = Walker()
        filling = fill(kept, model, bars=bars, first=first, n_measures=n, seed=seed)
        for candidate in filling.candidates:
            assert candidate.notes["onset_tick"].min(initial=start) >= start
            assert (candidate.notes["onset_tick"] + candidate.notes["duration_tick"]).max(initial=0) <= stop
        found.append((model.shown[0][0].tolist(), [one.notes.tolist() for one in filling.candidates]))
    assert found[0] == found[1]
