"""Piano rolls that can be looked at, listened to and taken along: SVG, playback in the browser, MIDI.

A roll is text of our own making: nothing in it comes from outside, and titles are escaped. Its colours are variables of
the page, so that it follows the light or dark theme. Kinds of notes differ in shape as well as in colour.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from music_evals.annotations import MUSIB_LAYOUT, ContextLayout, NoteArray, Score, Tempo, TimeSignature, Tokens
from music_evals.symbolic import midi, noteseq
from music_evals.symbolic.notes import quantize
from music_evals.ui.widgets.note_diff import NoteDiff, pitch_name

if TYPE_CHECKING:
    import gradio as gr

__all__ = [
    "PLAYER",
    "ROLL_STYLE",
    "TEMPO_BPM",
    "RollNote",
    "context_notes",
    "diff_roll",
    "figure_html",
    "legend_html",
    "midi_bytes",
    "pitch_range",
    "roll_svg",
    "roll_view",
]

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


class RollNote(NamedTuple):
    """A note to draw.

    Attributes
    ----------
    onset, duration
        In steps.
    pitch
        MIDI number, 0..127.
    kind
        ``"outside"``, ``"true"``, ``"filled"``, ``"kept"``, ``"missed"`` or ``"extra"``.

    """

    onset: int
    duration: int
    pitch: int
    kind: str


def context_notes(
    context: Tokens, middle: Tokens, *, kind: str = "filled", layout: ContextLayout = MUSIB_LAYOUT
) -> list[RollNote]:
    """Return the notes of a context with a middle in it.

    Parameters
    ----------
    context
        Shape (384,); its past and future are taken, whatever its middle holds.
    middle
        Shape (96,), values 0..129.
    kind
        Of the notes that begin in the middle.

    """
    inside = range(layout.middle.start, layout.middle.stop)
    return [
        RollNote(onset, duration, pitch, kind if onset in inside else "outside")
        for onset, duration, pitch in _rows(noteseq.decode(_put(context, middle, layout)))
    ]


def diff_roll(
    context: Tokens, middle: Tokens, diff: NoteDiff, *, layout: ContextLayout = MUSIB_LAYOUT
) -> list[RollNote]:
    """Return the notes of a context with a middle in it, those of the middle by what became of them.

    Notes that sound are drawn with the length that they sound, which may reach into the future; missed ones as the true
    middle has them.
    """
    kinds = {(change.onset, change.pitch): change.kind for change in diff.changes if change.kind != "missed"}
    start = layout.middle.start
    notes = [
        note._replace(kind=kinds[note.onset - start, note.pitch]) if note.kind == "filled" else note
        for note in context_notes(context, middle, layout=layout)
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
    layout: ContextLayout = MUSIB_LAYOUT,
) -> str:
    """Draw a roll.

    Parameters
    ----------
    notes
        In steps of `layout`.
    label
        What is shown, for readers who do not see the picture.
    first_measure
        Number of the first measure.
    pitches
        Lowest and highest pitch; `pitch_range` of the notes by default. Give one for all rolls that are compared.
    layout
        Where the measures and the middle are.

    Returns
    -------
    str
        An ``<svg>`` element.

    """
    low, high = pitches or pitch_range(notes)
    width, height = layout.n_steps * _STEP_PX, _HEAD_PX + (high - low + 1) * _PITCH_PX
    span = _rectangle(layout.middle.start, _HEAD_PX, layout.middle_steps, height - _HEAD_PX, "span")
    octaves = "".join(
        f'<line class="octave" x1="0" x2="{width:g}" y1="{y}" y2="{y}"/>'
        f'<text x="2" y="{y - 1}">{pitch_name(pitch)}</text>'
        for pitch in range(low, high + 1)
        if pitch % 12 == 0
        for y in [_HEAD_PX + (high - pitch + 1) * _PITCH_PX]
    )
    bars = "".join(_bar(measure, first_measure, height, layout) for measure in range(layout.n_measures))
    drawn = "".join(_note(note, high) for note in sorted(notes, key=lambda note: note.kind == "missed"))
    return (
        f'<svg class="roll" role="img" aria-label="{escape(label, quote=True)}" width="{width:g}" height="{height}" '
        f'viewBox="0 0 {width:g} {height}">{span}{octaves}{bars}{drawn}'
        f'<line class="playhead" x1="-9" x2="-9" y1="0" y2="{height}"/></svg>'
    )


def legend_html(kinds: Iterable[str]) -> str:
    """Return a legend of the kinds of notes that occur, in words beside their pictures."""
    used = set(kinds)
    entries = "".join(
        f'<span><svg width="22" height="9" aria-hidden="true">'
        f'<rect class="note {kind}" x="1" y="1" width="20" height="7"/></svg> {words}</span>'
        for kind, words in _KINDS.items()
        if kind in used
    )
    return f'<p class="legend">{entries}</p>'


def figure_html(
    title: str,
    svg: str,
    *,
    tokens: Tokens,
    file_name: str,
    note: str = "",
    details: str = "",
    layout: ContextLayout = MUSIB_LAYOUT,
) -> str:
    """Return a roll with its title, buttons that play it, and its MIDI file.

    Parameters
    ----------
    title, note
        Plain text; escaped here.
    svg
        From `roll_svg`.
    tokens
        What is played and what the file holds, shape (384,).
    file_name
        Of the download, without suffix; anything but letters and digits becomes a low line.
    details
        HTML of our own below the roll.
    layout
        Where the middle is: it is played with one measure before and one after.

    """
    notes = json.dumps([list(row) for row in _rows(noteseq.decode(tokens))])
    content = base64.b64encode(midi_bytes(tokens, title)).decode()
    name = "".join(letter if letter.isalnum() and letter.isascii() else "_" for letter in file_name)
    start = layout.middle.start - layout.steps_per_measure
    stop = layout.middle.stop + layout.steps_per_measure
    spoken = escape(title, quote=True)
    button = '<button type="button" data-from="{}" data-to="{}" aria-label="{}: {}">{}</button>'
    return (
        f"<figure class='rolled' data-notes='{notes}'><figcaption><b>{escape(title)}</b>"
        f'<span class="muted">{escape(note)}</span>'
        f"{button.format(start, stop, 'Play the gap', spoken, 'Play the gap')}"
        f"{button.format(0, layout.n_steps, 'Play all', spoken, 'Play all')}"
        f'<a download="{name}.mid" href="data:audio/midi;base64,{content}" aria-label="MIDI file: {spoken}">MIDI</a>'
        f'</figcaption><div class="scroll" tabindex="0" role="group" aria-label="Piano roll: {spoken}">{svg}</div>'
        f"{details}</figure>"
    )


def midi_bytes(tokens: Tokens, voice: str = "melody") -> bytes:
    """Return tokens as the bytes of a MIDI file: one track, 4/4, `TEMPO_BPM`.

    Parameters
    ----------
    tokens
        NoteSeq tokens, shape (steps,), values 0..129.
    voice
        Name of the track.

    """
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

    return gr.HTML(value, css_template=ROLL_STYLE, js_on_load=PLAYER + _BUTTONS, apply_default_css=False, **options)


def _put(context: Tokens, middle: Tokens, layout: ContextLayout) -> Tokens:
    whole = np.array(context, dtype=np.uint8)
    whole[layout.middle] = middle
    return whole


def _rows(notes: NoteArray) -> list[tuple[int, int, int]]:
    return [(int(note["onset_tick"]), int(note["duration_tick"]), int(note["pitch"])) for note in notes]


def _bar(measure: int, first_measure: int, height: int, layout: ContextLayout) -> str:
    x = measure * layout.steps_per_measure * _STEP_PX
    return (
        f'<line class="bar" x1="{x:g}" x2="{x:g}" y1="0" y2="{height}"/>'
        f'<text x="{x + 3:g}" y="{_HEAD_PX - 4}">{first_measure + measure}</text>'
    )


def _note(note: RollNote, high: int) -> str:
    shape = _rectangle(
        note.onset, _HEAD_PX + (high - note.pitch) * _PITCH_PX, note.duration, _PITCH_PX, f"note {note.kind}"
    )
    return shape.replace("/>", f"><title>{pitch_name(note.pitch)}, {note.kind}</title></rect>")


def _rectangle(step: int, top: float, steps: int, height: float, kind: str) -> str:
    gap = 0 if kind == "span" else 1  # so that two notes of one pitch are seen to be two
    return (
        f'<rect class="{kind}" x="{step * _STEP_PX:g}" y="{top:g}" width="{steps * _STEP_PX - gap:g}" '
        f'height="{height - gap:g}"/>'
    )


ROLL_STYLE = """
& { --quiet: color-mix(in srgb, var(--body-text-color) 78%, transparent); color: var(--body-text-color);
  --kept: #1d7a4b; --missed: #b3372f; --extra: #a4510f; --filled: #1f6fb4; --known: #77746d; }
.dark & { --kept: #62c192; --missed: #ef8078; --extra: #eda05f; --filled: #6fb3ea; --known: #918d85; }
.roll { display: block; background: var(--background-fill-secondary); }
.roll text { font: 9px sans-serif; fill: var(--quiet); }
.roll .span { fill: var(--filled); opacity: .13; }
.roll .bar, .roll .octave { stroke: var(--border-color-primary); stroke-width: 1; }
.note.outside { fill: var(--known); } .note.filled, .note.true { fill: var(--filled); }
.note.kept { fill: var(--kept); }
.note.extra { fill: var(--extra); rx: 3.5px; }
.note.missed { fill: none; stroke: var(--missed); stroke-width: 1.5; stroke-dasharray: 3 2; }
.playhead { stroke: var(--body-text-color); stroke-width: 1.5; }
.scroll { overflow-x: auto; }
figure { margin: 0 0 1.4rem; } .muted { color: var(--quiet); }
figcaption { display: flex; flex-wrap: wrap; align-items: center; gap: .3rem .9rem; margin-bottom: .3rem; }
.legend svg { display: inline-block; } figcaption a { text-decoration: underline; }
.legend { display: flex; flex-wrap: wrap; gap: .2rem 1.2rem; margin: .2rem 0 .8rem; }
figcaption button { font: inherit; font-size: .85rem; padding: .15rem .7rem; border-radius: 4px; cursor: pointer;
  border: 1px solid var(--border-color-primary); background: var(--background-fill-primary);
  color: var(--body-text-color); }
:focus-visible { outline: 2px solid var(--color-accent); outline-offset: 2px; }
table { border-collapse: collapse; margin: .3rem 0; font-variant-numeric: tabular-nums; }
th .muted { font-weight: normal; } td { white-space: nowrap; }
th, td { padding: .2rem .8rem .2rem 0; text-align: left; border-bottom: 1px solid var(--border-color-primary); }
details { margin: .3rem 0; } details li { margin-left: 1.2rem; }
"""
"""Style of rolls, for the `css_template` of the component that holds them."""

PLAYER = """
const player = window.musicEvalsPlayer ||= (() => {
  let audio = null, now = null;
  const stop = () => {
    if (!now) return;
    const ended = now;
    now = null;
    ended.sounds.forEach(sound => sound.stop());
    cancelAnimationFrame(ended.frame);
    clearTimeout(ended.timer);
    ended.onEnd();
  };
  const sound = (pitch, from, to) => {
    const tone = audio.createOscillator(), volume = audio.createGain();
    tone.type = "triangle";
    tone.frequency.value = 440 * 2 ** ((pitch - 69) / 12);
    volume.gain.setValueAtTime(0, from);
    volume.gain.linearRampToValueAtTime(0.2, from + 0.01);
    volume.gain.exponentialRampToValueAtTime(0.02, to);
    tone.connect(volume).connect(audio.destination);
    tone.start(from);
    tone.stop(to);
    return tone;
  };
  const play = (notes, from, to, onStep, onEnd) => {
    stop();
    audio ||= new AudioContext();
    audio.resume();
    const start = audio.currentTime + 0.05, begun = performance.now() + 50, step = STEP_SEC;
    const heard = notes.filter(([onset, duration]) => onset < to && onset + duration > from).map(
      ([onset, duration, pitch]) => [Math.max(onset, from) - from, Math.min(onset + duration, to) - from, pitch]);
    const end = Math.min(to, Math.max(from, ...notes.map(([onset, duration]) => onset + duration)));
    const mine = now = {onEnd, sounds: heard.map(([a, b, pitch]) => sound(pitch, start + a * step, start + b * step))};
    mine.timer = setTimeout(stop, 1000 * (end - from) * step + 200);
    const move = () => {
      if (now !== mine) return;
      onStep(Math.min(end, from + Math.max(0, performance.now() - begun) / 1000 / step));
      mine.frame = requestAnimationFrame(move);
    };
    move();
  };
  return {play, stop};
})();
""".replace("STEP_SEC", str(STEP_SEC))
"""Script that makes `player` in the scripts that follow it: one for the whole page, so that two never sound at once."""

_BUTTONS = """
let pressed = null;
element.addEventListener("click", event => {
  const button = event.target.closest("figure button");
  if (!button) return;
  const again = pressed === button;
  player.stop();
  if (again) return;
  const figure = button.closest("figure"), words = button.textContent;
  const head = figure.querySelector(".playhead"), scroll = figure.querySelector(".scroll");
  const onEnd = () => {
    if (pressed === button) pressed = null;
    button.textContent = words;
    head.setAttribute("transform", "translate(0 0)");
  };
  const onStep = step => {
    const x = step * STEP_PX;
    head.setAttribute("transform", `translate(${x + 9} 0)`);
    if (x < scroll.scrollLeft || x > scroll.scrollLeft + scroll.clientWidth) scroll.scrollLeft = x - 20;
  };
  button.textContent = "Stop";
  pressed = button;
  player.play(JSON.parse(figure.dataset.notes), +button.dataset.from, +button.dataset.to, onStep, onEnd);
});
const showGap = () => element.querySelectorAll(".roll").forEach(roll => {
  roll.parentElement.scrollLeft = roll.querySelector(".span").x.baseVal.value - 40;
});
watch("value", () => { player.stop(); showGap(); });
showGap();
""".replace("STEP_PX", str(_STEP_PX))
