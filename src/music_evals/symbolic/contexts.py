"""From a score to NoteSeq tokens: one voice, one grid, and contexts of past, middle and future.

Two ways to lay measures over a piece (`measures=`):

- ``"fixed"``, the default and MUSIB's: a measure is 24 steps, counted from tick 0, whatever the score says about meter.
  Pickups and other meters move the notated bar lines inside these measures.
- ``"notated"``: the bars of `symbolic.measures.meter_map`. Every bar of a context must last four quarters, so only 4/4
  and 2/2 without irregular bars can be cut.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from music_evals.annotations import MUSIB_LAYOUT, ContextLayout, NoteArray, Score, Tokens
from music_evals.errors import ContextLengthError, InvalidInputError, PolyphonyError, UnknownNameError
from music_evals.symbolic.measures import meter_map
from music_evals.symbolic.melody import LEGATO_QUARTERS, skyline, without_drums
from music_evals.symbolic.notes import rescale_tick
from music_evals.symbolic.noteseq import encode

__all__ = [
    "MEASURES",
    "Measures",
    "check_four_quarters",
    "check_measures",
    "context_starts",
    "cut_context",
    "pick_voice",
    "quantize_voice",
    "tokens_from_score",
    "window_starts",
]

STEPS_PER_QUARTER = 6  # MUSIB, "Data representation": 24 steps a measure of 4/4

Measures = Literal["fixed", "notated"]
"""How measures are laid over a piece: four quarters each from the start, or by the bar lines of the page."""

MEASURES: tuple[Measures, ...] = get_args(Measures)
"""Ways to lay measures over a piece."""


def pick_voice(score: Score, voice: int | str | None = None, *, highest: bool = False) -> NoteArray:
    """Return the notes of one voice, or its highest ones.

    Parameters
    ----------
    score
        Any score.
    voice
        Index from 0, or as a text: a name, or else a number from 1. None takes the only voice that has notes, or with
        `highest` all of them but drums; a score without notes gives none.
    highest
        Whether to keep the highest notes alone, one at a time; see `melody.skyline`.

    Raises
    ------
    PolyphonyError
        No voice was chosen and several have notes; its `kind` is ``"voices"``.
    UnknownNameError, InvalidInputError
        There is no voice of this index, name or number, or several have this name.
    """
    if highest:
        notes = without_drums(score).notes if voice is None else pick_voice(score, voice)
        return skyline(notes, overlap=score.ticks_per_quarter * LEGATO_QUARTERS)
    if voice is None:
        sounding = np.unique(score.notes["voice"])
        if len(sounding) > 1:
            names = ", ".join(f"{index + 1} {score.voices[index]!r}" for index in sounding)
            raise PolyphonyError(
                f"one voice is needed, but {len(sounding)} have notes ({names}); choose one by name or number, as with "
                f"`voice='{sounding[0] + 1}'`, or the highest notes of all with `highest=True`",
                kind="voices",
            )
        return score.notes
    if isinstance(voice, str):
        voice = _named_voice(score, voice)
    elif not 0 <= voice < len(score.voices):
        raise UnknownNameError("voice", str(voice), map(str, range(len(score.voices))))
    return score.voice(voice)


def _named_voice(score: Score, voice: str) -> int:
    """Return the index of a voice by its name, or by its number from 1."""
    matches = [index for index, name in enumerate(score.voices) if name == voice]
    if len(matches) > 1:
        numbers = " or ".join(str(index + 1) for index in matches)
        raise InvalidInputError(f"{len(matches)} voices are called {voice!r}; choose one by its number, {numbers}")
    if not matches and voice.isdecimal() and 1 <= int(voice) <= len(score.voices):
        matches = [int(voice) - 1]
    if not matches:
        known = [*(str(index + 1) for index in range(len(score.voices))), *filter(None, score.voices)]
        raise UnknownNameError("voice", voice, known)
    return matches[0]


def quantize_voice(notes: NoteArray, from_tpq: int, to_tpq: int, *, delay_ticks: int = 0) -> NoteArray:
    """Put the notes of one voice on a grid so that no two sound at once.

    Onsets and ends are rounded half up. What is smaller than a step does not exist on the grid: an overlap of less than
    one step is cut at the next onset, and of two notes that come to start on one step the later one stays, for it
    sounds on.

    Parameters
    ----------
    notes
        One voice, shape (n,), on a grid of `from_tpq` ticks a quarter.
    from_tpq, to_tpq
        Ticks in a quarter note of the two grids.
    delay_ticks
        All notes are moved later by so many ticks before they are rounded: a bar line that lies between two steps can
        be moved to one.

    Returns
    -------
    NoteArray
        Shape (m,), m <= n, one note at a time.

    Raises
    ------
    PolyphonyError
        Two notes start together, or overlap by a step or more.
    """
    onsets = notes["onset_tick"]
    ends = onsets + notes["duration_tick"]
    sounding_until = np.maximum.accumulate(ends)[:-1]
    overlap = sounding_until - onsets[1:]
    together = (overlap * to_tpq >= from_tpq) | (np.diff(onsets) == 0)
    if together.any():
        second = notes[1:][together][0]
        raise PolyphonyError(
            f"one voice is needed, but pitch {second['pitch']} starts at tick {second['onset_tick']} "
            f"({second['onset_tick'] / from_tpq:.2f} quarters) while another note sounds; split the voices, or keep "
            "the highest notes with `highest=True`"
        )
    # each end is cut at the next onset; what comes to last no step is left out
    starts = rescale_tick(onsets + delay_ticks, from_tpq, to_tpq)
    stops = np.maximum(rescale_tick(ends + delay_ticks, from_tpq, to_tpq), starts + 1)
    stops[:-1] = np.minimum(stops[:-1], starts[1:])
    moved = notes.copy()
    moved["onset_tick"] = starts
    moved["duration_tick"] = stops - starts
    quantized: NoteArray = moved[stops > starts]
    return quantized


def tokens_from_score(
    score: Score,
    n_steps: int | None = None,
    *,
    voice: int | str | None = None,
    highest: bool = False,
    steps_per_quarter: int = STEPS_PER_QUARTER,
    start_tick: int = 0,
) -> Tokens:
    """Encode one voice of a score as NoteSeq tokens.

    Parameters
    ----------
    score
        On any grid, with any meter: time is counted in quarters from `start_tick`.
    n_steps
        Length of the result: what lies beyond it is cut, what is missing is rest. None takes the whole piece up to the
        end of its last note, in whole steps.
    voice, highest
        As `pick_voice`, which also says what is refused.
    steps_per_quarter
        The grid.
    start_tick
        Where the first step is, a bar line for example. Times are rounded as they are counted from it; a note that is
        held over it shows as leading holds without an onset.

    Returns
    -------
    Tokens
        Shape (n_steps,), uint8, values 0..129.

    Raises
    ------
    PolyphonyError
        Several voices and none chosen, or two notes at once; see `quantize_voice`.

    Examples
    --------
    >>> from music_evals.symbolic.notes import make_notes
    >>> tokens_from_score(Score(make_notes([0, 480], [480, 240], [60, 64]), 480), 10).tolist()
    [60, 128, 128, 128, 128, 128, 64, 128, 128, 129]
    """
    tpq = score.ticks_per_quarter
    delay = -start_tick % tpq  # whole quarters lie on every grid
    notes = quantize_voice(pick_voice(score, voice, highest=highest), tpq, steps_per_quarter, delay_ticks=delay)
    first_step = (start_tick + delay) // tpq * steps_per_quarter
    if n_steps is None:
        n_steps = max(int((notes["onset_tick"] + notes["duration_tick"]).max(initial=0)) - first_step, 0)
    return encode(notes, first_step + n_steps)[first_step:].copy()


def window_starts(n_measures: int, layout: ContextLayout = MUSIB_LAYOUT, *, stride: int = 1) -> range:
    """Return the first measure of every context in a piece of `n_measures`.

    There are n - 15 at stride 1 for MUSIB's layout. (The published counts are n - 16 a voice: one too few.)

    Examples
    --------
    >>> window_starts(18)
    range(0, 3)
    """
    if n_measures < 0 or stride < 1:
        raise InvalidInputError(f"n_measures must not be negative and stride at least 1, got {n_measures} and {stride}")
    return range(0, max(n_measures - layout.n_measures + 1, 0), stride)


def context_starts(
    score: Score, *, measures: Measures = "fixed", layout: ContextLayout = MUSIB_LAYOUT, stride: int = 1
) -> Sequence[int]:
    """Return the first measure of every context that `cut_context` can cut from a score.

    Measures are laid as ``"fixed"`` ones, from tick 0 to the end of the last note, the last one padded with rest; or as
    ``"notated"`` ones, only where all bars of the context last `layout.steps_per_measure` steps. `stride` counts
    measures from one start to the next.
    """
    if measures == "fixed":
        steps = int(rescale_tick(score.end_tick, score.ticks_per_quarter, _steps_per_quarter(layout)))
        return window_starts(-(-steps // layout.steps_per_measure), layout, stride=stride)
    check_measures(measures)
    bars = meter_map(score)
    # how many bars before each one are irregular: a context may hold none
    wrong = np.concatenate([[0], np.cumsum(~_is_regular(bars.lengths, score.ticks_per_quarter, layout))])
    starts = window_starts(bars.n_measures, layout, stride=stride)
    return [start for start in starts if wrong[start + layout.n_measures] == wrong[start]]


def cut_context(
    score: Score,
    start: int,
    *,
    voice: int | str | None = None,
    highest: bool = False,
    measures: Measures = "fixed",
    layout: ContextLayout = MUSIB_LAYOUT,
) -> Tokens:
    """Cut one context out of a piece and encode it.

    A note that is held over the start shows as leading holds without an onset, as in MUSIB; a note that is held over
    the end is cut there.

    Parameters
    ----------
    score
        Any score.
    start
        First measure of the context, from 0; a notated pickup is bar 0.
    voice, highest
        As `pick_voice`.
    measures
        ``"fixed"`` or ``"notated"``; see the module.
    layout
        Past, middle and future.

    Returns
    -------
    Tokens
        Shape (`layout.n_steps`,), uint8. Steps after the end of the piece are rests.

    Raises
    ------
    ContextLengthError
        The context starts after the end of the piece, or a notated bar in it is not `layout.steps_per_measure` steps.
    PolyphonyError, UnknownNameError, InvalidInputError
        As `tokens_from_score`.
    """
    steps_per_quarter, tpq = _steps_per_quarter(layout), score.ticks_per_quarter
    if measures == "fixed":
        start_tick = start * 4 * tpq
    else:
        check_measures(measures)
        bars = meter_map(score)
        inside = bars.lengths[start : start + layout.n_measures] if start >= 0 else bars.lengths[:0]
        regular = _is_regular(inside, tpq, layout)
        if len(inside) < layout.n_measures or not regular.all():
            bar = start + int(np.argmin(regular)) if len(regular) and not regular.all() else bars.n_measures
            reason = "is not there" if bar >= bars.n_measures else f"lasts {bars.lengths[bar] / tpq:g} quarters"
            raise ContextLengthError(
                f"a context of {layout.n_measures} bars of {layout.steps_per_measure} steps cannot start at bar "
                f'{start}: bar {bar} {reason}; choose from context_starts(score, measures="notated"), or use '
                'measures="fixed"'
            )
        start_tick = int(bars.starts[start])
    end_step = int(rescale_tick(score.end_tick, tpq, steps_per_quarter))
    if not 0 <= start_tick * steps_per_quarter < max(end_step, 1) * tpq:
        n_measures = end_step / layout.steps_per_measure
        raise ContextLengthError(
            f"no context starts at measure {start}: the piece has measures 0..{max(math.ceil(n_measures) - 1, 0)}"
        )
    return tokens_from_score(
        score, layout.n_steps, voice=voice, highest=highest, steps_per_quarter=steps_per_quarter, start_tick=start_tick
    )


def check_four_quarters(score: Score, layout: ContextLayout = MUSIB_LAYOUT) -> None:
    """Raise where a bar of the page is no measure of four quarters, as those of 4/4 and 2/2 are.

    A score without a time signature is in 4/4.

    Raises
    ------
    ContextLengthError
        A bar of another length, a pickup too; its `kind` is ``"meter"``.
    """
    if not score.time_signatures:
        return
    bars = meter_map(score)
    regular = _is_regular(bars.lengths, score.ticks_per_quarter, layout)
    if regular.all():
        return
    bar = int(np.argmin(regular))
    quarters, signature = bars.lengths[bar] / score.ticks_per_quarter, bars.signatures[bar]
    meter = f"{signature.numerator}/{signature.denominator}"
    problem, advice = f"measure {bar + 1} is in {meter} and lasts {quarters:g} quarters", "choose music in 4/4"
    if bars.pickup_ticks and regular[1:].all():
        problem, advice = f"the first is a pickup of {quarters:g} quarters", "cut it off"
    raise ContextLengthError(
        f"measures of four quarters are needed, such as 4/4, but {problem}; {advice}, or count four quarters from the "
        "start, wherever its bar lines are, with `measures='fixed'`",
        kind="meter",
        measure=bar + 1,
        meter=meter,
        quarters=float(quarters),
    )


def _is_regular(lengths: npt.NDArray[np.int64], ticks_per_quarter: int, layout: ContextLayout) -> npt.NDArray[np.bool_]:
    return np.equal(lengths * _steps_per_quarter(layout), layout.steps_per_measure * ticks_per_quarter)


def _steps_per_quarter(layout: ContextLayout) -> int:
    if layout.steps_per_measure % 4:
        raise InvalidInputError(f"a measure of 4/4 needs a multiple of 4 steps, got {layout.steps_per_measure}")
    return layout.steps_per_measure // 4


def check_measures(measures: str) -> None:
    """Raise `UnknownNameError` where a way to lay measures is none of `MEASURES`."""
    if measures not in MEASURES:
        raise UnknownNameError("way to lay measures", str(measures), MEASURES)
