"""Piano rolls that can be looked at, listened to and taken along: SVG, playback in the browser, MIDI.

A roll is text of our own making: nothing in it comes from outside, and titles are escaped. Its colours are variables of
the page, so that it follows the light or dark theme. Kinds of notes differ in shape as well as in colour.
"""

from __future__ import annotations

import base64
import collections
import json
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from music_evals.annotations import MUSIB_LAYOUT, NoteArray, Score, Tempo, TimeSignature, Tokens
from music_evals.pipelines.gaps.diff import CHANGES, NoteChange, NoteDiff
from music_evals.symbolic import midi, noteseq
from music_evals.symbolic.notes import quantize
from music_evals.ui.assets import html, script, style

if TYPE_CHECKING:
    import gradio as gr
    from markupsafe import Markup

_NAMES = ("C", "C#", "D", "D#", "E", "F", "F#", "G", "G#", "A", "A#", "B")
_BEAT = MUSIB_LAYOUT.steps_per_measure // 4


def summary(diff: NoteDiff) -> str:
    """Return the counts in words."""
    n_kept, missed, extra = (diff.count(kind) for kind in CHANGES)
    if not diff.changes:
        return "Neither the true middle nor the candidate has a note."
    length = f" ({diff.same_length} of them with the true length)" if n_kept else ""
    return f"{n_kept} kept{length}, {missed} missed, {extra} extra."


def sentences(diff: NoteDiff, first_measure: int) -> list[str]:
    """Return one sentence a change, in the order of time; `first_measure` is the number of the middle's first one."""
    at: dict[int, list[NoteChange]] = collections.defaultdict(list)
    for change in diff.changes:
        at[change.onset].append(change)
    return [_sentence(changes, place_text(onset, first_measure)) for onset, changes in sorted(at.items())]


def pitch_name(pitch: int) -> str:
    """Return the name of a pitch, 60 being C4; black keys are named as sharps."""
    return f"{_NAMES[pitch % 12]}{pitch // 12 - 1}"


def place_text(step: int, first_measure: int) -> str:
    """Return where a step lies, counted from the start of the measure called `first_measure`."""
    measure, rest = divmod(step, MUSIB_LAYOUT.steps_per_measure)
    return f"measure {first_measure + measure}, beat {_mixed(Fraction(rest, _BEAT) + 1)}"


def beats_text(steps: int) -> str:
    """Return a length in beats (quarter notes)."""
    beats = Fraction(steps, _BEAT)
    return f"{_mixed(beats)} beat{'s' if beats > 1 else ''}"


def _mixed(value: Fraction) -> str:
    whole, rest = divmod(value, 1)
    return " ".join(str(part) for part in (whole, rest) if part)


def _sentence(changes: list[NoteChange], place: str) -> str:
    """Tell what became of the notes that begin at one step: one a side."""
    first = changes[0]
    note = f"{pitch_name(first.pitch)}, {beats_text(first.duration)}"
    if len(changes) == 2:
        other = changes[1]
        return (
            f"{place}: missed {note}; extra {pitch_name(other.pitch)}, {beats_text(other.duration)}, "
            f"{_interval(other.pitch - first.pitch)}"
        )
    if first.kind == "kept" and first.true_duration is not None and first.true_duration != first.duration:
        lengths = f"{beats_text(first.duration)} and not {beats_text(first.true_duration)}"
        return f"{place}: kept {pitch_name(first.pitch)}, but {lengths}"
    return f"{place}: {first.kind} {note}"


def _interval(semitones: int) -> str:
    unit = "semitone" if abs(semitones) == 1 else "semitones"
    return f"{abs(semitones)} {unit} {'higher' if semitones > 0 else 'lower'}"


TEMPO_BPM = 96.0
"""What is played and what can be downloaded have this tempo, in quarters a minute; the same as in reports."""

STEP_SEC = 60 / TEMPO_BPM / (MUSIB_LAYOUT.steps_per_measure // 4)
MIDI_TICKS_PER_QUARTER = 480

_STEP_PX = 2.5
_PITCH_PX = 7
_HEAD_PX = 14

_KINDS = {
    "outside": "past and future, as given",
    "true": "the true middle",
    "filled": "filled by the system",
    "kept": "kept: as in the true middle",
    "missed": "missed: only in the true middle",
    "extra": "extra: only in the candidate",
}
_SOUNDING = {"filled", "kept", "extra"}  # kinds of a candidate's own notes in the gap


class RollNote(NamedTuple):
    """A note to draw."""

    onset: int  # in steps
    duration: int
    pitch: int  # MIDI number, 0..127
    kind: str  # ``"outside"``, ``"true"``, ``"filled"``, ``"kept"``, ``"missed"`` or ``"extra"``


def context_notes(
    context: Tokens, middle: Tokens, *, kind: str = "filled", gap: slice = MUSIB_LAYOUT.middle
) -> list[RollNote]:
    """Return the notes of a context with a filled gap in it."""
    inside = range(gap.start, gap.stop)
    whole = np.array(context, dtype=np.uint8)
    whole[gap] = middle
    return [
        RollNote(onset, duration, pitch, kind if onset in inside else "outside")
        for onset, duration, pitch in _rows(noteseq.decode(whole))
    ]


def diff_roll(context: Tokens, middle: Tokens, diff: NoteDiff, *, gap: slice = MUSIB_LAYOUT.middle) -> list[RollNote]:
    """Return the notes of a context with a filled gap in it, those of the gap by what became of them."""
    # Notes that sound are drawn with the length that they sound, which may reach into the future; missed ones as the
    # true middle has them.
    kinds = {(change.onset, change.pitch): change.kind for change in diff.changes if change.kind != "missed"}
    start = gap.start
    notes = [
        note._replace(kind=kinds[note.onset - start, note.pitch]) if note.kind == "filled" else note
        for note in context_notes(context, middle, gap=gap)
    ]
    missed = [
        RollNote(start + change.onset, change.duration, change.pitch, "missed")
        for change in diff.changes
        if change.kind == "missed"
    ]
    return sorted([*notes, *missed])


def pitch_range(notes: Iterable[RollNote]) -> tuple[int, int]:
    """Return the lowest and the highest pitch to draw, with some air; an octave about C4 where there are no notes."""
    pitches = [note.pitch for note in notes]
    if not pitches:
        return 54, 66
    return max(min(pitches) - 2, 0), min(max(pitches) + 2, 127)


def roll_svg(
    notes: Sequence[RollNote],
    *,
    label: str,
    first_measure: int = 1,
    pitches: tuple[int, int] | None = None,
    gap: slice = MUSIB_LAYOUT.middle,
    lockable: bool = False,
) -> Markup:
    """Draw a roll as an ``<svg>``."""
    # Notes are in steps of `MUSIB_LAYOUT`, `label` says what is shown to readers who do not see it, and `pitches` are
    # the lowest and the highest one: `pitch_range` of the notes by default; give one for all rolls that are compared.
    # Of a roll that is lockable, a click on a note of the gap locks it, where the page has a `kept_notes`.
    low, high = pitches or pitch_range(notes)
    height = _HEAD_PX + (high - low + 1) * _PITCH_PX
    measure_px = MUSIB_LAYOUT.steps_per_measure * _STEP_PX

    def top(pitch: int) -> int:
        return _HEAD_PX + (high - pitch) * _PITCH_PX

    return html(
        "roll.html",
        label=label,
        width=MUSIB_LAYOUT.n_steps * _STEP_PX,
        height=height,
        head=_HEAD_PX,
        gap=(gap.start * _STEP_PX, (gap.stop - gap.start) * _STEP_PX),
        octaves=[(top(pitch) + _PITCH_PX, pitch_name(pitch)) for pitch in range(low, high + 1) if pitch % 12 == 0],
        bars=[(i * measure_px, first_measure + i) for i in range(MUSIB_LAYOUT.n_measures)],
        notes=[  # the outlines of missed ones lie on top; a gap shows two notes of one pitch to be two
            (
                note.kind,
                note.onset * _STEP_PX,
                top(note.pitch),
                note.duration * _STEP_PX - 1,
                pitch_name(note.pitch),
                lock_text(note, gap) if lockable and note.kind in _SOUNDING else "",
            )
            for note in sorted(notes, key=lambda note: note.kind == "missed")
        ],
        note_height=_PITCH_PX - 1,
    )


def lock_text(note: RollNote, gap: slice) -> str:
    """Return a note of a gap as a lock names it: onset, duration and pitch; what sounds out of the gap ends with it."""
    return f"{note.onset},{min(note.duration, gap.stop - note.onset)},{note.pitch}"


def locks_html(notes: Iterable[RollNote], gap: slice, first_measure: int) -> Markup:
    """Return a box to tick for each note that sounds in a gap, by which it is locked; for a page with `kept_notes`."""
    return html(
        "locks.html",
        notes=[
            (lock_text(note, gap), f"{pitch_name(note.pitch)} at {place_text(note.onset, first_measure)}")
            for note in notes
            if note.kind in _SOUNDING
        ],
    )


def legend_html(kinds: Iterable[str]) -> Markup:
    """Return a legend of the kinds of notes that occur, in words beside their pictures."""
    used = set(kinds)
    return html("legend.html", kinds={kind: words for kind, words in _KINDS.items() if kind in used})


def figure_html(
    title: str,
    svg: str,
    *,
    tokens: Tokens,
    file_name: str,
    note: str = "",
    details: str = "",
    gap: slice = MUSIB_LAYOUT.middle,
) -> Markup:
    """Return a roll of `roll_svg` with its title, buttons that play it, and its MIDI file."""
    # `tokens` are played and stored, shape (384,); the gap is played with one measure before and one after. `title`
    # and `note` are plain text, `details` is HTML of our own below the roll.
    from markupsafe import Markup

    start = max(gap.start - MUSIB_LAYOUT.steps_per_measure, 0)
    stop = min(gap.stop + MUSIB_LAYOUT.steps_per_measure, MUSIB_LAYOUT.n_steps)
    return html(
        "figure.html",
        title=title,
        note=note,
        svg=Markup(svg),  # noqa: S704  (these two are of our own making)
        details=Markup(details),  # noqa: S704
        notes=json.dumps([list(row) for row in _rows(noteseq.decode(tokens))]),
        midi=base64.b64encode(midi_bytes(tokens, title)).decode(),
        file_name="".join(letter if letter.isalnum() and letter.isascii() else "_" for letter in file_name),
        buttons={"Play the gap": (start, stop), "Play all": (0, MUSIB_LAYOUT.n_steps)},
    )


def midi_bytes(tokens: Tokens, voice: str = "melody") -> bytes:
    """Return tokens as the bytes of a MIDI file: one track, 4/4, `TEMPO_BPM`."""
    score = Score(
        noteseq.decode(tokens),
        MUSIB_LAYOUT.steps_per_measure // 4,
        time_signatures=(TimeSignature(0, 4, 4),),
        tempos=(Tempo(0, TEMPO_BPM),),
        voices=(voice,),
    )
    return midi.write_midi(quantize(score, MIDI_TICKS_PER_QUARTER))


def roll_view(value: str = "", **options: Any) -> gr.HTML:
    """Return a component that shows figures of `figure_html` and plays them; `options` go to `gr.HTML`."""
    import gradio as gr

    start = script("player", "kept", "rolls", start="rolls", stepPx=_STEP_PX, stepSec=STEP_SEC)
    return gr.HTML(value, css_template=style("rolls"), js_on_load=start, apply_default_css=False, **options)


def _rows(notes: NoteArray) -> list[tuple[int, int, int]]:
    return [(int(note["onset_tick"]), int(note["duration_tick"]), int(note["pitch"])) for note in notes]
