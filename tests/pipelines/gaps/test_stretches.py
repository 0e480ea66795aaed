"""What a model of sixteen measures is shown where a measure near the gap has another length."""

from __future__ import annotations

import numpy as np
import pytest
from tests.filling import Walker

from music_evals.annotations import HOLD, REST, NoteArray, TimeSignature, Tokens
from music_evals.errors import ContextLengthError
from music_evals.pipelines.gaps.stretches import Stretch, cut_stretch
from music_evals.symbolic.measures import MeterMap
from music_evals.symbolic.notes import make_notes
from music_evals.symbolic.tunes import measure_numbers


class Fixed:
    """A model of sixteen measures."""

    name = "fixed"
    sees_reference = False
    deterministic = True

    def inpaint(self, contexts: Tokens, *, rng: np.random.Generator) -> Tokens:
        raise NotImplementedError


def quarters(n: int, pitch: int = 60) -> NoteArray:
    """Return n quarters on a grid of four ticks."""
    return make_notes(np.arange(n) * 4, np.full(n, 4), pitch + np.arange(n) % 7)


def measured(*lengths: int) -> MeterMap:
    """Return measures of 4/4 that last so many quarters."""
    starts = np.cumsum([0, *lengths]) * 4
    return MeterMap(starts, tuple(TimeSignature(int(start), 4, 4) for start in starts[:-1]), 4)


def cut(bars: MeterMap, first: int, notes: NoteArray | None = None) -> Stretch:
    return cut_stretch(
        quarters(int(bars.starts[-1]) // 4) if notes is None else notes, Fixed(), bars=bars, first=first, n_measures=4
    )


def test_first_and_second_endings_stop_the_context_of_a_reel() -> None:
    # a pickup, eight measures with two endings, a pickup of the second part, eight measures
    reel = measured(1, *[4] * 7, 3, 3, 1, *[4] * 7, 3)
    before = cut(reel, 3)  # measures 3 to 6; two more before the first ending
    ended, stopped = before.remarks
    assert ended == "fixed expects 6 measures before the gap; the tune has 3, and rests stand for the others"
    assert stopped == (
        "fixed expects measures of four quarters: it is shown 1 after the gap, up to a measure of another length, "
        "and rests stand for what lies beyond"
    )
    assert before.tokens[240] not in {HOLD, REST}
    assert (before.tokens[264:] == REST).all()
    # the second ending and the pickup of the second part are one measure
    after = cut(reel, 12)
    assert "it is shown 2 before the gap" in after.remarks[0]
    assert "the tune has 2.75" in after.remarks[1]
    assert (after.tokens[:96] == REST).all()
    assert after.tokens[96] not in {HOLD, REST}
    assert len(after.tokens) == 384
    assert after.bar_lines == tuple(range(0, 385, 24))


def test_notes_over_the_edge_of_an_odd_measure_are_cut_there() -> None:
    bars = measured(4, 3, *[4] * 14, 5, 4)
    # over the end of the odd measure into the context, and out of it into the odd one
    notes = make_notes([0, 6 * 4, 9 * 4, 62 * 4, 67 * 4], [4, 2 * 4, 4 * 50, 3 * 4, 4], [60, 62, 64, 65, 67])
    stretch = cut(bars, 8, notes)
    assert stretch.tokens[:8].tolist() == [*[HOLD] * 6, REST, REST]  # the odd measure is not one of the six
    assert stretch.tokens[330:336].tolist() == [65, *[HOLD] * 5]
    assert (stretch.tokens[336:] == REST).all()
    far = cut(bars, 7, notes)  # the odd measure is one of the six
    assert far.tokens[:30].tolist() == [*[REST] * 24, 62, *[HOLD] * 5]
    late = cut(bars, 11, notes)
    assert late.tokens[258:264].tolist() == [65, *[HOLD] * 5]
    assert (late.tokens[264:] == REST).all()


def test_an_odd_measure_in_the_gap_is_refused_and_one_far_away_does_not_count() -> None:
    bars = measured(4, 4, 3, *[4] * 20)
    with pytest.raises(ContextLengthError, match="one in the gap lasts 3 quarters"):
        cut(bars, 1)
    assert cut(bars, 9).remarks == ()
    # a model of any gap is not concerned
    assert (
        "is not shown what lies before"
        in cut_stretch(quarters(91), Walker(quantum=24), bars=bars, first=9, n_measures=4).remarks[0]
    )


def test_halves_are_paired_as_their_numbers_are() -> None:
    """A gap that parts a measure does not pair its second half with the first half of the next."""
    bars = measured(4, 2, 2, 2, 2, 4)
    assert measure_numbers(bars) == ("1", "2", "2", "3", "3", "4")
    stretch = cut_stretch(quarters(16), Walker(), bars=bars, first=2, n_measures=2)
    assert stretch.bar_lines == (0, 24, 36, 48, 60, 72, 96)  # each half is by itself: the gap parts both measures
    assert stretch.gap == slice(36, 60)
    assert cut_stretch(quarters(16), Walker(), bars=bars, first=1, n_measures=2).bar_lines == (0, 24, 48, 72, 96)


def test_the_context_is_as_long_as_it_is_asked_for() -> None:
    bars, model = measured(*[4] * 20), Walker(steps=240, hidden_steps=96)  # ten measures, four of them hidden
    shown = {
        n: cut_stretch(quarters(80), model, bars=bars, first=8, n_measures=2, context=n).bar_lines for n in (1, 2, 4)
    }
    assert shown == {n: tuple(range(0, 24 * (2 * n + 2) + 1, 24)) for n in shown}
    # where the tune has no more on one side, the other is no longer than asked for
    first = cut_stretch(quarters(80), model, bars=bars, first=1, n_measures=2, context=3)
    assert (first.gap, len(first.tokens)) == (slice(24, 72), 24 * 6)
    with pytest.raises(ContextLengthError, match=r"at most 40 quarters, .* `context` of at most 4 measures .* got 5"):
        cut_stretch(quarters(80), model, bars=bars, first=8, n_measures=2, context=5)
    # at the start of the tune there is room for more after the gap
    late = cut_stretch(quarters(80), model, bars=bars, first=1, n_measures=2, context=7)
    assert (late.gap, len(late.tokens)) == (slice(24, 72), 240)
    with pytest.raises(ContextLengthError, match=r"at most 7 measures on each side, got 8"):
        cut_stretch(quarters(80), model, bars=bars, first=1, n_measures=2, context=8)


def test_a_model_of_sixteen_measures_takes_its_own_context_alone() -> None:
    bars = measured(*[4] * 20)
    notes = quarters(80)
    with pytest.raises(ContextLengthError, match="fixed is always shown 6 measures before the gap and 6 after it"):
        cut_stretch(notes, Fixed(), bars=bars, first=8, n_measures=4, context=5)
    whole = cut_stretch(notes, Fixed(), bars=bars, first=8, n_measures=4, context=6)
    assert whole.tokens.tolist() == cut(bars, 8).tokens.tolist()


def test_gaps_longer_than_the_whole_stretch_are_refused_with_the_limit() -> None:
    """88 quarters: more than the 84 that the infill transformer reads, and than the 32 that it fills."""
    bars, limits = measured(*[4] * 30), Walker(steps=504, hidden_steps=192)
    for model, most in ((limits, "32"), (Walker(steps=504, hidden_steps=1000), "83")):
        with pytest.raises(ContextLengthError, match=f"the gap lasts 88 quarters, and walker fills at most {most} "):
            cut_stretch(quarters(120), model, bars=bars, first=4, n_measures=22)
    longest = cut_stretch(quarters(120), limits, bars=bars, first=4, n_measures=8)
    assert (longest.hidden.sum(), len(longest.tokens)) == (192, 504)  # all four before, nine after
