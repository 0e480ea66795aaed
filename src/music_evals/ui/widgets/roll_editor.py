"""A piano roll on which one voice is drawn: with a mouse, a finger or the keyboard.

The component's value is text, so that programs can send it too: JSON with ``notes``, a list of
``[onset, duration, pitch]`` in steps (24 a measure), ``first_measure``, what the first measure is called, and ``held``,
the steps at the start that hold a note from before. `read_melody` checks it and gives tokens, `write_melody` is the
inverse. What the gap is, and what is drawn in it, is no part of the melody: it is the property ``task``, made by
`roll_task`. Notes of the gap can be locked where the page has a `kept_notes`, the list of notes that stay as they are;
its value is JSON too, a list of ``[onset, duration, pitch]``.
"""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING, Any

import numpy as np

from music_evals.annotations import HOLD, MUSIB_LAYOUT, REST, Tokens
from music_evals.errors import InvalidNotesError
from music_evals.symbolic import noteseq
from music_evals.symbolic.notes import make_notes
from music_evals.ui.assets import html, script, style

if TYPE_CHECKING:
    import gradio as gr

MAX_TEXT = 20_000  # characters; 384 notes take 6,000
MAX_MEASURE = 100_000  # no piece that `symbolic.limits` lets pass has more
_EXPECTED = '{"notes": [[onset, duration, pitch], ...], "first_measure": 1, "held": 0}'


@dataclasses.dataclass(frozen=True, eq=False)
class Melody:
    """One voice in the sixteen measures of a context."""

    tokens: Tokens  # noteSeq tokens, shape (384,), values 0..129
    first_measure: int = 1  # number of the first measure, from 1

    @property
    def notes(self) -> list[list[int]]:
        """``[onset, duration, pitch]`` of each note, in steps."""
        fields = ("onset_tick", "duration_tick", "pitch")
        return [[int(note[field]) for field in fields] for note in noteseq.decode(self.tokens)]

    @property
    def held(self) -> int:
        """Steps at the start that hold a note from before."""
        return int((self.tokens != HOLD).argmax()) if (self.tokens != HOLD).any() else len(self.tokens)


def read_melody(text: str) -> Melody:
    """Read the value of the editor."""
    if not isinstance(text, str) or len(text) > MAX_TEXT:
        raise InvalidNotesError(f"a melody is text of at most {MAX_TEXT} characters, such as {_EXPECTED}")
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidNotesError(f"a melody is JSON such as {_EXPECTED}; this is not") from error
    if not isinstance(value, dict):
        raise InvalidNotesError(f"a melody is JSON such as {_EXPECTED}; got {type(value).__name__}")
    rows, first, held = value.get("notes"), value.get("first_measure", 1), value.get("held", 0)
    if not isinstance(rows, list) or not all(_is_note(row) for row in rows):
        raise InvalidNotesError(
            f"a note is [onset, duration, pitch] in whole numbers: onset 0..{MUSIB_LAYOUT.n_steps - 1} and duration in "
            f"steps of 24 a measure, ending by step {MUSIB_LAYOUT.n_steps}, pitch 0..127; expected {_EXPECTED}"
        )
    if (
        not (type(first) is int and 0 <= first <= MAX_MEASURE)
        or first < 1
        or not (type(held) is int and 0 <= held <= MUSIB_LAYOUT.n_steps)
    ):
        raise InvalidNotesError(
            f"first_measure is 1 or more and held is 0..{MUSIB_LAYOUT.n_steps}, got {first!r:.40} and {held!r:.40}"
        )
    columns = np.array(sorted(rows), dtype=np.int64).reshape(-1, 3).T
    tokens = noteseq.encode(make_notes(*columns), MUSIB_LAYOUT.n_steps)
    start = tokens[:held]
    start[start == REST] = HOLD
    return Melody(tokens, first)


def write_melody(melody: Melody) -> str:
    """Return the value of the editor that shows a melody.

    Holds after a rest belong to no note and are not kept (`symbolic.noteseq`); everything else is.

    Examples
    --------
    >>> write_melody(read_melody('{"notes": [[0, 6, 60]], "first_measure": 3}'))
    '{"first_measure": 3, "held": 0, "notes": [[0, 6, 60]]}'
    """
    return json.dumps({"first_measure": melody.first_measure, "held": melody.held, "notes": melody.notes})


def roll_task(gap: slice = MUSIB_LAYOUT.middle, *, sketch: str = "none", no_locks: str = "") -> dict[str, Any]:
    """Return the property ``task`` of the editor, to begin with or for an update."""
    # `sketch` is what the notes in the gap are taken for: ``"rhythm"``, ``"contour"``, or ``"none"``. `no_locks` says
    # why notes cannot be locked; empty where they can.
    return {"gap": [gap.start, gap.stop], "sketch": sketch, "noLocks": no_locks}


def roll_editor(value: Melody, *, task: dict[str, Any] | None = None, **options: Any) -> gr.HTML:
    """Return the component; its value is text for `read_melody`, `task` is of `roll_task`."""
    # Mouse: a click on the grid adds a note and a drag makes it longer; a drag on a note changes its length, a click
    # removes it. Finger: a tap adds or removes, a swipe scrolls. Keyboard: arrows move a cursor, Enter adds or removes,
    # K locks; "Keep by click" makes a click lock. `options` go to `gr.HTML`.
    import gradio as gr

    from music_evals.ui.widgets.roll_view import STEP_SEC

    layout = MUSIB_LAYOUT
    settings = {"steps": layout.n_steps, "measure": layout.steps_per_measure, "stepSec": STEP_SEC}
    return gr.HTML(
        write_melody(value),
        html_template=html("roll_editor.html"),
        css_template=style("roll_editor"),
        js_on_load=script("player", "kept", "piano_roll", "roll_editor", start="rollEditor", **settings),
        apply_default_css=False,
        task=task or roll_task(),
        **options,
    )


def _is_note(row: Any) -> bool:
    """Tell whether a value is ``[onset, duration, pitch]`` of a note in the sixteen measures."""
    if not isinstance(row, list) or len(row) != 3 or not all(type(number) is int for number in row):
        return False
    onset, duration, pitch = row
    return bool(0 <= onset < onset + duration <= MUSIB_LAYOUT.n_steps and 0 <= pitch <= 127)


NO_LOCKS = "[]"  # the value without a lock


def read_locks(text: str | None) -> tuple[tuple[int, int, int], ...]:
    """Read the value of the component; None and no text are no locks."""
    expected = "notes that stay are JSON such as [[144, 6, 60]]: onset, duration and pitch of each, in whole numbers"
    if not text:
        return ()
    try:
        rows = json.loads(text) if len(text) <= MAX_TEXT else None
    except (ValueError, RecursionError) as error:
        raise InvalidNotesError(f"{expected}; this is no JSON") from error
    if not isinstance(rows, list) or not all(_is_note(row) for row in rows):
        raise InvalidNotesError(f"{expected}, within {MUSIB_LAYOUT.n_steps} steps, pitch 0..127")
    return tuple((onset, duration, pitch) for onset, duration, pitch in sorted(rows))


def kept_notes(why: str = "", **options: Any) -> gr.HTML:
    """Return the component; its value is text for `read_locks`, and its property `why` says why there are no locks."""
    import gradio as gr

    start = script("kept", "kept_notes", start="keptNotes", measure=MUSIB_LAYOUT.steps_per_measure)
    return gr.HTML(
        NO_LOCKS,
        html_template=html("kept_notes.html"),
        css_template=style("kept_notes"),
        js_on_load=start,
        apply_default_css=False,
        why=why,
        **options,
    )
