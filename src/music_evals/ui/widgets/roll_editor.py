"""A piano roll on which one voice is drawn: with a mouse, a finger or the keyboard.

The component's value is text, so that programs can send it too: JSON with ``notes``, a list of
``[onset, duration, pitch]`` in steps (24 a measure), ``first_measure``, what the first measure is called, and ``held``,
the steps at the start that hold a note from before. `read_melody` checks it and gives tokens, `write_melody` is the
inverse.
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

if TYPE_CHECKING:
    import gradio as gr

__all__ = ["Melody", "read_melody", "roll_editor", "write_melody"]

MAX_TEXT = 20_000  # characters; 384 notes take 6,000
MAX_MEASURE = 100_000  # no piece that `symbolic.limits` lets pass has more
_EXPECTED = '{"notes": [[onset, duration, pitch], ...], "first_measure": 1, "held": 0}'


@dataclasses.dataclass(frozen=True, eq=False)
class Melody:
    """One voice in the sixteen measures of a context.

    Parameters
    ----------
    tokens
        NoteSeq tokens, shape (384,), values 0..129.
    first_measure
        Number of the first measure, from 1.

    """

    tokens: Tokens
    first_measure: int = 1

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
    """Read the value of the editor.

    Parameters
    ----------
    text
        JSON, see the module. Notes may come in any order; what lies beyond the sixteen measures is refused.

    Raises
    ------
    InvalidNotesError
        Not such JSON, or a note that is not within the grid.
    PolyphonyError
        Two notes sound at once.

    Examples
    --------
    >>> read_melody('{"notes": [[0, 6, 60], [6, 3, 62]]}').tokens[:10].tolist()
    [60, 128, 128, 128, 128, 128, 62, 128, 128, 129]

    """
    value = _parse(text)
    rows, first, held = value.get("notes"), value.get("first_measure", 1), value.get("held", 0)
    if not isinstance(rows, list) or not all(_is_note(row) for row in rows):
        msg = (
            f"a note is [onset, duration, pitch] in whole numbers: onset 0..{MUSIB_LAYOUT.n_steps - 1} and duration in "
            f"steps of 24 a measure, ending by step {MUSIB_LAYOUT.n_steps}, pitch 0..127; expected {_EXPECTED}"
        )
        raise InvalidNotesError(msg)
    if not _is_count(first, MAX_MEASURE) or first < 1 or not _is_count(held, MUSIB_LAYOUT.n_steps):
        msg = f"first_measure is 1 or more and held is 0..{MUSIB_LAYOUT.n_steps}, got {first!r:.40} and {held!r:.40}"
        raise InvalidNotesError(msg)
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


def roll_editor(value: Melody, **options: Any) -> gr.HTML:
    """Return the component; its value is text for `read_melody`. `options` go to `gr.HTML`.

    Mouse: a click on the grid adds a note and a drag makes it longer; a drag on a note changes its length, a click
    removes it. Finger: a tap adds or removes, a swipe scrolls. Keyboard: arrows move a cursor, Enter adds or removes.
    """
    import gradio as gr

    from music_evals.ui.widgets.roll_view import PLAYER

    return gr.HTML(
        write_melody(value),
        html_template=_TEMPLATE,
        css_template=_STYLE,
        js_on_load=PLAYER + _SCRIPT,
        apply_default_css=False,
        **options,
    )


def _parse(text: str) -> dict[str, Any]:
    if not isinstance(text, str) or len(text) > MAX_TEXT:
        msg = f"a melody is text of at most {MAX_TEXT} characters, such as {_EXPECTED}"
        raise InvalidNotesError(msg)
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        msg = f"a melody is JSON such as {_EXPECTED}; this is not"
        raise InvalidNotesError(msg) from error
    if not isinstance(value, dict):
        msg = f"a melody is JSON such as {_EXPECTED}; got {type(value).__name__}"
        raise InvalidNotesError(msg)
    return value


def _is_note(row: Any) -> bool:
    if not isinstance(row, list) or len(row) != 3 or not all(type(number) is int for number in row):
        return False
    onset, duration, pitch = row
    return bool(0 <= onset < onset + duration <= MUSIB_LAYOUT.n_steps and 0 <= pitch <= 127)


def _is_count(value: Any, most: int) -> bool:
    return type(value) is int and 0 <= value <= most


_TEMPLATE = """
<div class="tools" role="toolbar" aria-label="Piano roll tools">
  <label>Note length <select class="unit">
    <option value="24">whole</option><option value="12">half</option><option value="6" selected>quarter</option>
    <option value="3">eighth</option><option value="2">triplet eighth</option><option value="1">one step</option>
  </select></label>
  <button type="button" data-do="play">Play</button>
  <button type="button" data-do="undo">Undo</button>
  <button type="button" data-do="shorter">Shorter</button>
  <button type="button" data-do="longer">Longer</button>
  <button type="button" data-do="higher">Show higher</button>
  <button type="button" data-do="lower">Show lower</button>
  <button type="button" data-do="gap">Empty the gap</button>
  <button type="button" data-do="all">Empty all</button>
</div>
<div class="sheet"><svg class="keys" aria-hidden="true"></svg><div class="scroll"><svg class="grid" tabindex="0"
  role="application" aria-roledescription="piano roll"
  aria-label="Piano roll. Arrow keys move the cursor by one note length and one semitone, Page Up and Page Down by a
measure, with Shift an octave or the length of the note. Enter adds or removes a note. P plays, U undoes.">
  <g class="paper"></g><g class="notes"></g><rect class="cursor"></rect>
  <line class="playhead" x1="-9" x2="-9" y1="0"></line></svg></div></div>
<p class="where" aria-live="polite"></p>
<p class="help">Click the grid to add a note and drag to make it longer. Click a note to remove it, drag it to change
  its length. One note sounds at a time. On a touch screen tap to add or remove and swipe to scroll. Keys: arrows,
  Page Up, Page Down, Enter, Shift with arrows, P to play, U to undo.</p>
"""

_STYLE = """
& { --filled: #1f6fb4; --note: #3b3935; color: var(--body-text-color);
  --quiet: color-mix(in srgb, var(--body-text-color) 78%, transparent); }
.dark & { --filled: #6fb3ea; --note: #d8d5ce; }
.tools { display: flex; flex-wrap: wrap; gap: .35rem .5rem; align-items: center; margin-bottom: .5rem; }
.tools button, .tools select { font: inherit; font-size: .85rem; padding: .25rem .6rem; border-radius: 4px;
  border: 1px solid var(--border-color-primary); background: var(--background-fill-primary);
  color: var(--body-text-color); cursor: pointer; }
.sheet { display: flex; } .keys { flex: none; } .scroll { overflow-x: auto; flex: 1; min-width: 0; }
svg { display: block; background: var(--background-fill-secondary); }
svg text { font: 9px sans-serif; fill: var(--quiet); }
.grid { cursor: crosshair; touch-action: pan-x pan-y; user-select: none; }
.black { fill: var(--body-text-color); opacity: .05; } .gap { fill: var(--filled); opacity: .15; }
.line { stroke: var(--border-color-primary); stroke-width: 1; opacity: .5; }
.bar { stroke: var(--quiet); stroke-width: 1; }
.note { fill: var(--note); } .note.inside { fill: var(--filled); } .held { fill: var(--note); opacity: .3; }
.cursor { fill: none; stroke: var(--body-text-color); stroke-width: 1.5; visibility: hidden; }
.grid:focus .cursor { visibility: visible; }
.playhead { stroke: var(--body-text-color); stroke-width: 1.5; }
.where { min-height: 1.4em; margin: .3rem 0 0; } .help { color: var(--quiet); font-size: .85rem; }
:focus-visible { outline: 2px solid var(--color-accent); outline-offset: 2px; }
"""

_SCRIPT = (
    """
const STEPS = N_STEPS, MEASURE = N_MEASURE, BEAT = MEASURE / 4, GAP = [GAP_START, GAP_STOP];
const PX = matchMedia("(pointer: coarse)").matches ? 4 : 3, ROW = 11, TOP = 18, SIDE = 30, MOST_UNDO = 100;
const NAMES = ["C", "C#", "D", "D#", "E", "F", "F#", "G", "G#", "A", "A#", "B"];
const SIXTHS = ["", " 1/6", " 1/3", " 1/2", " 2/3", " 5/6"];
const find = selector => element.querySelector(selector);
const [grid, keys, scroll, where, unitOf] = [".grid", ".keys", ".scroll", ".where", ".unit"].map(find);
const clamp = (value, low, high) => Math.max(low, Math.min(high, value));
let melody = {first_measure: 1, held: 0, notes: []}, past = [], low = 55, high = 79, cursor = {step: 0, pitch: 67};
let drag = null, playing = false;

const unit = () => +unitOf.value;
const pitchName = pitch => NAMES[pitch % 12] + (Math.floor(pitch / 12) - 1);
const place = step => {
  const rest = step % MEASURE;
  return `measure ${melody.first_measure + Math.floor(step / MEASURE)}, beat ` +
    `${1 + Math.floor(rest / BEAT)}${SIXTHS[rest % BEAT]}`;
};
const end = note => note[0] + note[1];
const noteAt = (step, pitch) => melody.notes.find(note => note[0] <= step && step < end(note) && note[2] === pitch);
const nextOnset = step => Math.min(STEPS, ...melody.notes.map(note => note[0]).filter(onset => onset > step));
const rect = (kind, step, pitch, steps, title) => `<rect class="${kind}" x="${step * PX}"
  y="${TOP + (high - pitch) * ROW}" width="${steps * PX - 1}" height="${ROW - 1}"><title>${title}</title></rect>`;

const remember = () => { past.push(JSON.stringify(melody)); past = past.slice(-MOST_UNDO); };
const send = () => { props.value = JSON.stringify(melody); };
const add = (step, pitch, length) => {
  melody.notes = melody.notes.filter(note => note[0] !== step)
    .map(note => note[0] < step && end(note) > step ? [note[0], step - note[0], note[2]] : note);
  const note = [step, Math.min(length, nextOnset(step) - step), pitch];
  melody.notes = [...melody.notes, note].sort((a, b) => a[0] - b[0]);
  melody.held = Math.min(melody.held, step);
  return note;
};
const remove = note => { melody.notes = melody.notes.filter(other => other !== note); };
const resize = (note, length) => { note[1] = clamp(length, 1, nextOnset(note[0]) - note[0]); };

const fit = () => {
  const pitches = melody.notes.map(note => note[2]);
  low = clamp(Math.min(low, ...pitches.map(pitch => pitch - 2)), 0, 127);
  high = clamp(Math.max(high, ...pitches.map(pitch => pitch + 2)), 0, 127);
};
const paper = () => {
  const width = STEPS * PX, height = TOP + (high - low + 1) * ROW;
  for (const [svg, wide] of [[grid, width], [keys, SIDE]]) {
    svg.setAttribute("width", wide); svg.setAttribute("height", height);
  }
  find(".playhead").setAttribute("y2", height);
  let rows = "", names = "", lines = "";
  for (let pitch = low; pitch <= high; pitch++) {
    const y = TOP + (high - pitch) * ROW;
    const black = [1, 3, 6, 8, 10].includes(pitch % 12);
    if (black) rows += `<rect class="black" x="0" y="${y}" width="${width}" height="${ROW}"/>`;
    if (pitch % 12 === 0 || pitch % 12 === 7) names += `<text x="4" y="${y + ROW - 2}">${pitchName(pitch)}</text>`;
    if (pitch % 12 === 0) lines += `<line class="bar" x1="0" x2="${width}" y1="${y + ROW}" y2="${y + ROW}"/>`;
  }
  for (let step = 0; step <= STEPS; step += BEAT) {
    const bar = step % MEASURE === 0, x = step * PX, top = bar ? 0 : TOP;
    lines += `<line class="${bar ? "bar" : "line"}" x1="${x}" x2="${x}" y1="${top}" y2="${height}"/>`;
    if (bar && step < STEPS) lines += `<text x="${x + 4}" y="12">${melody.first_measure + step / MEASURE}</text>`;
  }
  const gap = `<rect class="gap" x="${GAP[0] * PX}" y="0" width="${(GAP[1] - GAP[0]) * PX}" height="${height}"/>` +
    `<text x="${GAP[0] * PX + 30}" y="12">gap</text>`;
  find(".paper").innerHTML = rows + gap + lines;
  keys.innerHTML = names;
};
const draw = () => {
  const held = melody.held ? `<rect class="held" x="0" y="${TOP}" width="${melody.held * PX}" height="5">` +
    `<title>holds a note from before</title></rect>` : "";
  find(".notes").innerHTML = held + melody.notes.map(([onset, duration, pitch]) => rect(
    GAP[0] <= onset && onset < GAP[1] ? "note inside" : "note", onset, pitch, duration, pitchName(pitch))).join("");
  const sizes = {x: cursor.step * PX, y: TOP + (high - cursor.pitch) * ROW, width: unit() * PX, height: ROW};
  for (const [name, value] of Object.entries(sizes)) find(".cursor").setAttribute(name, value);
};
const tell = (what = "") => {
  const note = noteAt(cursor.step, cursor.pitch);
  const here = note ? `a note of ${note[1]} steps` : "empty";
  const count = melody.notes.length === 1 ? "1 note in all" : `${melody.notes.length} notes in all`;
  where.textContent = `${what}${place(cursor.step)}, ${pitchName(cursor.pitch)}: ${here}. ${count}.`;
};
const show = what => { fit(); paper(); draw(); tell(what); };
const changed = what => { show(what); send(); };
const load = () => {
  if (JSON.stringify(melody) === props.value) return;
  melody = {first_measure: 1, held: 0, notes: [], ...JSON.parse(props.value || "{}")};
  past = [];
  low = 55; high = 79;
  show();
};

const toggle = () => {
  const note = noteAt(cursor.step, cursor.pitch);
  remember();
  if (note) remove(note); else add(cursor.step, cursor.pitch, unit());
  changed(note ? "Removed. " : "Added. ");
};
const change = by => {
  const note = noteAt(cursor.step, cursor.pitch) || melody.notes.filter(one => one[0] <= cursor.step).at(-1);
  if (!note) return;
  remember();
  resize(note, note[1] + by);
  changed("Length changed. ");
};
const undo = () => {
  if (!past.length) return;
  melody = JSON.parse(past.pop());
  changed("Undone. ");
};
const clear = (from, to) => {
  remember();
  melody.notes = melody.notes.filter(note => note[0] < from || note[0] >= to)
    .map(note => note[0] < from && end(note) > from ? [note[0], from - note[0], note[2]] : note);
  if (from === 0) melody.held = 0;
  changed("Emptied. ");
};
const view = by => {
  if (by > 0) high = clamp(high + by, 0, 127); else low = clamp(low + by, 0, 127);
  paper(); draw();
};
const play = () => {
  if (playing) return player.stop();
  const button = find("[data-do=play]"), head = find(".playhead");
  const from = melody.notes.some(note => note[0] >= cursor.step) ? cursor.step - cursor.step % MEASURE : 0;
  const at = x => head.setAttribute("transform", `translate(${x} 0)`);
  player.play(melody.notes, from, STEPS, step => at(step * PX + 9), () => {
    playing = false; button.textContent = "Play"; at(0);
  });
  playing = true; button.textContent = "Stop";
};
const move = (steps, pitches) => {
  const step = cursor.step - cursor.step % unit() + steps;
  cursor = {step: clamp(steps ? step : cursor.step, 0, STEPS - 1), pitch: clamp(cursor.pitch + pitches, 0, 127)};
  if (cursor.pitch > high) view(cursor.pitch - high);
  if (cursor.pitch < low) view(cursor.pitch - low);
  const x = cursor.step * PX, wide = scroll.clientWidth;
  if (x < scroll.scrollLeft || x + 30 > scroll.scrollLeft + wide) scroll.scrollLeft = x - wide / 2;
  draw(); tell();
};

const ACTIONS = {play, undo, shorter: () => change(-unit()), longer: () => change(unit()), higher: () => view(12),
  lower: () => view(-12), gap: () => clear(...GAP), all: () => clear(0, STEPS)};
element.addEventListener("click", event => {
  const button = event.target.closest("[data-do]");
  if (button) ACTIONS[button.dataset.do]();
});
unitOf.addEventListener("change", draw);
grid.addEventListener("keydown", event => {
  if (event.altKey || event.metaKey || (event.ctrlKey && event.key !== "z")) return;
  const far = event.shiftKey;
  const actions = {
    ArrowLeft: () => far ? change(-unit()) : move(-unit(), 0), ArrowRight: () => far ? change(unit()) : move(unit(), 0),
    ArrowUp: () => move(0, far ? 12 : 1), ArrowDown: () => move(0, far ? -12 : -1),
    PageUp: () => move(-MEASURE, 0), PageDown: () => move(MEASURE, 0), Home: () => move(-STEPS, 0),
    End: () => move(STEPS, 0), Enter: toggle, " ": toggle, Delete: () => noteAt(cursor.step, cursor.pitch) && toggle(),
    p: play, P: play, u: undo, U: undo, z: () => event.ctrlKey && undo(),
  };
  if (!actions[event.key]) return;
  event.preventDefault();
  actions[event.key]();
});
const pointed = event => {
  const box = grid.getBoundingClientRect();
  return {step: clamp(Math.floor((event.clientX - box.left) / PX), 0, STEPS - 1),
    pitch: high - Math.floor((event.clientY - box.top - TOP) / ROW)};
};
const press = event => {
  const {step, pitch} = pointed(event);
  if (pitch > high || pitch < low) return;
  const hit = noteAt(step, pitch);
  cursor = {step: hit ? hit[0] : step - step % unit(), pitch};
  drag = {before: JSON.stringify(melody), note: hit, moved: false, x: event.clientX, y: event.clientY};
};
const release = () => {
  const {before, note, moved} = drag;
  drag = null;
  if (note && !moved) remove(note);
  if (!note) add(cursor.step, cursor.pitch, unit());
  if (JSON.stringify(melody) === before) return draw();
  past.push(before);
  changed(!note ? "Added. " : moved ? "" : "Removed. ");
};
grid.addEventListener("pointerdown", event => {
  if (event.button !== 0) return;
  press(event);
  if (!drag || event.pointerType === "touch") return;
  event.preventDefault();
  grid.focus({preventScroll: true});
  grid.setPointerCapture(event.pointerId);
  if (!drag.note) { drag.note = add(cursor.step, cursor.pitch, unit()); drag.moved = true; }
  draw();
});
grid.addEventListener("pointermove", event => {
  if (!drag || event.pointerType === "touch" || Math.abs(event.clientX - drag.x) < 3) return;
  const {step} = pointed(event), size = unit();
  drag.moved = true;
  resize(drag.note, (Math.floor(step / size) + 1) * size - drag.note[0]);
  draw();
});
grid.addEventListener("pointerup", event => {
  if (!drag) return;
  const far = Math.hypot(event.clientX - drag.x, event.clientY - drag.y) > 8;
  if (event.pointerType === "touch" && far) drag = null; else release();
});
grid.addEventListener("pointercancel", () => {
  if (drag) { melody = JSON.parse(drag.before); drag = null; draw(); }
});
watch("value", load);
load();
""".replace("N_STEPS", str(MUSIB_LAYOUT.n_steps))
    .replace("N_MEASURE", str(MUSIB_LAYOUT.steps_per_measure))
    .replace("GAP_START", str(MUSIB_LAYOUT.middle.start))
    .replace("GAP_STOP", str(MUSIB_LAYOUT.middle.stop))
)
