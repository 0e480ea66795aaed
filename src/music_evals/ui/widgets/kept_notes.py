"""The list of notes of a gap that stay as they are.

The component's value is text, so that programs can send it too: JSON, a list of ``[onset, duration, pitch]`` in steps
of the sixteen measures, 24 a measure. A `roll_editor` and the rolls of a `roll_view` on the same page lock notes and
show what is locked.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from music_evals.annotations import MUSIB_LAYOUT
from music_evals.errors import InvalidNotesError
from music_evals.ui.assets import html, script, style
from music_evals.ui.widgets.roll_editor import is_note

if TYPE_CHECKING:
    import gradio as gr

__all__ = ["NO_LOCKS", "kept_notes", "read_locks"]

NO_LOCKS = "[]"
"""The value without a lock."""

MAX_TEXT = 20_000  # characters, as of a melody


def read_locks(text: str | None) -> tuple[tuple[int, int, int], ...]:
    """Read the value of the component; None and no text are no locks.

    Examples
    --------
    >>> read_locks("[[144, 6, 60]]")
    ((144, 6, 60),)

    """
    expected = "notes that stay are JSON such as [[144, 6, 60]]: onset, duration and pitch of each, in whole numbers"
    if not text:
        return ()
    try:
        rows = json.loads(text) if len(text) <= MAX_TEXT else None
    except (ValueError, RecursionError) as error:
        raise InvalidNotesError(f"{expected}; this is no JSON") from error
    if not isinstance(rows, list) or not all(is_note(row) for row in rows):
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
