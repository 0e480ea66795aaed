"""What a model is shown of a tune around a gap: a stretch of tokens, and which steps of it are hidden."""

from __future__ import annotations

import dataclasses
import itertools
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from music_evals.annotations import MUSIB_LAYOUT, NoteArray, Tokens
from music_evals.errors import ContextLengthError, InvalidInputError, NoDataError, PolyphonyError
from music_evals.protocols import GapInpainter, Inpainter
from music_evals.symbolic.contexts import STEPS_PER_QUARTER, quantize_voice
from music_evals.symbolic.notes import sort_notes
from music_evals.symbolic.noteseq import encode
from music_evals.symbolic.tunes import second_halves

if TYPE_CHECKING:
    from music_evals.protocols import GapLimits
    from music_evals.symbolic.measures import MeterMap

_MEASURE = MUSIB_LAYOUT.steps_per_measure


@dataclasses.dataclass(frozen=True, eq=False)
class Stretch:
    """A gap and what a model is shown around it, in steps of six a quarter."""

    tokens: Tokens  # of NoteSeq, shape (steps,), values 0..129; what stands in the gap is the truth, if there is one
    hidden: npt.NDArray[np.bool_]  # which steps a model may not see, shape (steps,)
    gap: slice  # its steps, those of locked notes included
    origin_tick: int  # of the first step on the tune's own grid; negative where rests were put before a pickup
    bar_lines: tuple[int, ...]  # steps at which measures start, and the end of the last
    remarks: tuple[str, ...] = ()  # what a reader should know of it, a sentence each


class _Place(NamedTuple):
    """A gap in a tune."""

    lines: tuple[int, ...]  # ticks: the bar lines, where two halves of a measure count as one measure
    pickup: int  # ticks that the first measure lacks
    start: int  # ticks of the gap
    stop: int
    ticks_per_quarter: int

    def steps(self, ticks: int) -> int:
        """Return a length in steps, or raise where it is no whole number of them."""
        steps, rest = divmod(ticks * STEPS_PER_QUARTER, self.ticks_per_quarter)
        if rest:
            raise ContextLengthError(
                f"a measure of {ticks / self.ticks_per_quarter:g} quarters is no whole number of steps, of which a "
                f"quarter has {STEPS_PER_QUARTER}; choose other measures"
            )
        return steps


def cut_stretch(
    notes: NoteArray,
    inpainter: Inpainter,
    *,
    bars: MeterMap,
    first: int,
    n_measures: int,
    keep: NoteArray | None = None,
    context: int | None = None,
) -> Stretch:
    """Cut out of a tune what a model can take: the gap, and as much around it as the model was made for."""
    if not bars.n_measures:
        raise NoDataError("there are no measures: the tune has no notes, or states no meter")
    start, stop = bars.span(first, n_measures)
    for name, n in (("n_measures", n_measures), ("context", context)):
        if n is not None and n < 1:
            raise InvalidInputError(f"`{name}` must be 1 or more, got {n}")
    place = _place(bars, start, stop)
    if isinstance(inpainter, GapInpainter):
        origin, end, lines, remarks = _around(place, inpainter.gap_limits, inpainter.name, context)
    else:
        if context not in {None, MUSIB_LAYOUT.past_measures}:
            raise ContextLengthError(
                f"{inpainter.name} is always shown {MUSIB_LAYOUT.past_measures} measures before the gap and "
                f"{MUSIB_LAYOUT.future_measures} after it; leave `context` out, or choose a model of any gap"
            )
        if keep is not None and len(keep):
            raise InvalidInputError(
                f"{inpainter.name} writes the whole gap anew and cannot keep notes in it; use a model that can"
            )
        origin, end, lines, remarks = _sixteen(place, inpainter.name)
        notes = _without_irregular(notes, place, origin, end)
    # the tokens of the voice from `origin` to `end`; no note reaches over an edge of the gap
    ends = notes["onset_tick"] + notes["duration_tick"]
    near = _cut_at(notes[(notes["onset_tick"] < end) & (ends > origin)], place.stop)
    try:
        quantize_voice(near, place.ticks_per_quarter, STEPS_PER_QUARTER)
    except PolyphonyError as error:
        reason = str(error).partition("; ")[0]
        raise PolyphonyError(
            f"{reason}; a gap is filled in one melody: choose a voice of one note at a time, or its highest notes with "
            "`highest=True`"
        ) from None
    # Each part by itself, so that rounding moves no note over an edge of the gap. What sounds into the gap is no note
    # of it, and shows as holds there; what sounds out of it is cut in two above, and begins anew.
    edges = [origin, place.start, place.stop, end]
    tokens = np.concatenate([_encode_part(near, place, low, high) for low, high in itertools.pairwise(edges)])
    gap = slice(place.steps(start - origin), place.steps(stop - origin))
    hidden = np.zeros(len(tokens), dtype=np.bool_)
    hidden[gap] = True
    if keep is not None:
        _show(keep, tokens, hidden, place, origin)
    return Stretch(tokens, hidden, gap, origin, tuple(place.steps(line - origin) for line in lines), tuple(remarks))


def _place(bars: MeterMap, start: int, stop: int) -> _Place:
    """Find the whole measures: two halves of one are together, but where an edge of the gap parts them."""
    pickup = int(bars.lengths[1] - bars.pickup_ticks) if bars.pickup_ticks else 0
    starts = zip(bars.starts[:-1].tolist(), second_halves(bars), strict=True)
    lines = [line for line, is_second in starts if not is_second or line in {start, stop}]
    return _Place((*lines, int(bars.starts[-1])), pickup, start, stop, bars.ticks_per_quarter)


def _around(place: _Place, limits: GapLimits, name: str, context: int | None) -> tuple[int, int, list[int], list[str]]:
    """Return the first tick, the end and the bar lines of what a model of any gap is shown, and remarks."""
    # `context` measures are shown on each side where the tune has them; None shows as many as there is room for
    _check_gap(place, limits, name)
    before = [line for line in place.lines if line <= place.start][::-1]
    after = [line for line in place.lines if line >= place.stop]
    left, right = [place.start], [place.stop]
    room = limits.steps - place.steps(place.stop - place.start)
    stopped: list[str] = []
    sides = [(left, before, -1), (right, after, 1)]
    while sides:
        side, lines, sign = sides.pop(0)
        if len(side) >= len(lines) or len(side) - 1 == context:
            continue
        ticks = abs(lines[len(side)] - side[-1])
        if lines[len(side)] == place.lines[0]:
            ticks += place.pickup
        steps, rest = divmod(ticks * STEPS_PER_QUARTER, place.ticks_per_quarter)
        padding = -steps % limits.quantum if lines[len(side)] in {place.lines[0], place.lines[-1]} else 0
        if rest or (steps + padding) % limits.quantum:
            where = "before" if sign < 0 else "after"
            stopped.append(f"{name} is not shown what lies {where} a measure that is no whole multiple of its quantum")
            continue
        if steps + padding > room:
            if context is None:
                continue
            raise ContextLengthError(
                f"{name} takes at most {limits.steps / STEPS_PER_QUARTER:g} quarters, gap and context together: here a "
                f"`context` of at most {len(side) - 1} measures on each side, got {context}; ask for less"
            )
        room -= steps + padding
        side.append(side[-1] + sign * (ticks + padding * place.ticks_per_quarter // STEPS_PER_QUARTER))
        sides.append((side, lines, sign))
    inside = [line for line in place.lines if place.start < line < place.stop]
    return left[-1], right[-1], [*left[::-1], *inside, *right], stopped


def _check_gap(place: _Place, limits: GapLimits, name: str) -> None:
    steps = place.steps(place.stop - place.start)
    longest = min(limits.hidden_steps, limits.steps - limits.quantum)
    if steps > longest:
        raise ContextLengthError(
            f"the gap lasts {steps / STEPS_PER_QUARTER:g} quarters, and {name} fills at most "
            f"{longest / STEPS_PER_QUARTER:g} ({longest / _MEASURE:g} measures of 4/4); choose fewer measures"
        )
    inside = [line for line in place.lines if place.start <= line <= place.stop]
    for low, high in itertools.pairwise(inside):
        if place.steps(high - low) % limits.quantum:
            raise ContextLengthError(
                f"{name} fills measures that are whole multiples of {limits.quantum / STEPS_PER_QUARTER:g} quarters; "
                f"one in the gap lasts {(high - low) / place.ticks_per_quarter:g}; choose other measures"
            )


def _sixteen(place: _Place, name: str) -> tuple[int, int, list[int], list[str]]:
    """Return the first tick, the end and the bar lines of six, four and six measures of four quarters, and remarks."""
    measure = 4 * place.ticks_per_quarter
    inside = [line for line in place.lines if place.start <= line <= place.stop]
    known = f"{name} fills {MUSIB_LAYOUT.middle_measures} measures of four quarters, such as 4/4, no more and no fewer"
    wrong = next((b - a for a, b in itertools.pairwise(inside) if b - a != measure), None)
    if wrong is not None:
        raise ContextLengthError(f"{known}; one in the gap lasts {wrong / place.ticks_per_quarter:g} quarters")
    if place.stop - place.start != MUSIB_LAYOUT.middle_measures * measure:
        raise ContextLengthError(
            f"{known}; the gap has {len(inside) - 1}: choose {MUSIB_LAYOUT.middle_measures}, or a model of any gap"
        )
    origin = place.start - MUSIB_LAYOUT.past_measures * measure
    end = place.stop + MUSIB_LAYOUT.future_measures * measure
    low, high = _regular(place, origin, end)
    remarks = []
    for side, there, stopped in (
        ("before", min(place.start - place.lines[0] + place.pickup, place.start - low), low > origin),
        ("after", min(place.lines[-1] - place.stop, high - place.stop), high < end),
    ):
        if stopped:
            remarks.append(
                f"{name} expects measures of four quarters: it is shown {there / measure:.3g} {side} the gap, up to a "
                "measure of another length, and rests stand for what lies beyond"
            )
        elif there < MUSIB_LAYOUT.past_measures * measure:
            remarks.append(
                f"{name} expects {MUSIB_LAYOUT.past_measures} measures {side} the gap; the tune has "
                f"{there / measure:.3g}, and rests stand for the others"
            )
    return origin, end, list(range(origin, end + 1, measure)), remarks


def _regular(place: _Place, origin: int, end: int) -> tuple[int, int]:
    """Return from where to where measures of four quarters surround the gap; the last of all may be cut short."""
    measure = 4 * place.ticks_per_quarter
    low, high = origin, end
    for start, stop in itertools.pairwise(place.lines):
        length = stop - start + (place.pickup if start == place.lines[0] else 0)
        if length == measure or (length < measure and stop == place.lines[-1]):
            continue
        if stop <= place.start:
            low = max(low, stop)
        elif start >= place.stop:
            high = min(high, start)
    return low, high


def _without_irregular(notes: NoteArray, place: _Place, origin: int, end: int) -> NoteArray:
    """Leave out what lies beyond a measure of another length; what sounds over its edge is cut there."""
    low, high = _regular(place, origin, end)
    if low > origin:
        notes = _cut_at(notes, low)
        notes = notes[notes["onset_tick"] >= low]
    if high < end:
        notes = _cut_at(notes, high)
        notes = notes[notes["onset_tick"] < high]
    return notes


def _encode_part(notes: NoteArray, place: _Place, low: int, high: int) -> Tokens:
    """Return the tokens from one tick to another; a note that began before shows as holds."""
    ends = notes["onset_tick"] + notes["duration_tick"]
    inside = notes[(notes["onset_tick"] < high) & (ends > low)].copy()
    # ticks are not negative: count from whole quarters before
    lead = max(0, -(-(low - int(inside["onset_tick"].min(initial=low))) // place.ticks_per_quarter))
    inside["onset_tick"] -= low - lead * place.ticks_per_quarter
    on_grid = quantize_voice(inside, place.ticks_per_quarter, STEPS_PER_QUARTER)
    lead *= STEPS_PER_QUARTER
    return encode(on_grid, lead + place.steps(high - low))[lead:].copy()


def _cut_at(notes: NoteArray, tick: int) -> NoteArray:
    """Cut what sounds over a tick in two."""
    over = (notes["onset_tick"] < tick) & (notes["onset_tick"] + notes["duration_tick"] > tick)
    left, right = notes.copy(), notes[over].copy()
    left["duration_tick"][over] = tick - left["onset_tick"][over]
    right["duration_tick"] = right["onset_tick"] + right["duration_tick"] - tick
    right["onset_tick"] = tick
    return sort_notes(np.concatenate([left, right]))


def _show(keep: NoteArray, tokens: Tokens, hidden: npt.NDArray[np.bool_], place: _Place, origin: int) -> None:
    """Let the model see the locked notes."""
    for note in keep:
        onset, length = int(note["onset_tick"]), int(note["duration_tick"])
        step = round((onset - origin) * STEPS_PER_QUARTER / place.ticks_per_quarter)
        if not place.start <= onset < place.stop or not 0 <= step < len(tokens) or tokens[step] != note["pitch"]:
            raise InvalidInputError(
                f"pitch {note['pitch']} at tick {onset} is to be kept, and is no note of the gap; lock notes of the gap"
            )
        steps = max(round(length * STEPS_PER_QUARTER / place.ticks_per_quarter), 1)
        hidden[step : step + steps] = False
