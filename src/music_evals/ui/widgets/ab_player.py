"""Two recordings that play at the same time at equal loudness; one is heard, and a key changes which.

The player is a `gr.HTML` with a script of its own over Web Audio: both sources start at one moment of one clock, so a
switch is a change of volume and nothing else. Keys: space plays and stops, X switches, L turns the loop on and off.
Elements inside it that carry ``data-sec``, and the timelines of `timeline_view`, move it.
"""

from __future__ import annotations

import html
import io
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from music_evals.ui.widgets.loudness import integrated_loudness, level_gains
from music_evals.ui.widgets.timeline_view import TIMELINE_STYLE, clock

if TYPE_CHECKING:
    import gradio as gr

__all__ = ["PLAYER_SCRIPT", "PLAYER_STYLE", "Track", "add_player", "empty_player", "encode", "levels_told", "player"]

EMPTY: Final = "Compare two files to hear and see them here."

PLAYER_STYLE: Final = (
    """
.ab-buttons { display: flex; flex-wrap: wrap; gap: .4rem; align-items: center; }
.ab-buttons button { font: inherit; padding: .35rem .8rem; border: 1px solid var(--border-color-primary);
  border-radius: 6px; background: var(--button-secondary-background-fill); color: var(--body-text-color);
  cursor: pointer; }
.ab-buttons button[aria-pressed="true"] { background: var(--color-accent); color: white; border-color: transparent; }
.ab-time { font-variant-numeric: tabular-nums; margin-left: auto; }
.ab-seek { width: 100%; margin: .6rem 0 .2rem; accent-color: var(--color-accent); }
.ab-note { color: color-mix(in srgb, var(--body-text-color) 72%, transparent); font-size: var(--text-sm);
  margin: .2rem 0; }
.ab-note:empty { display: none; }
kbd { border: 1px solid var(--border-color-primary); border-radius: 3px; padding: 0 .3em; }
"""
    + TIMELINE_STYLE
)

PLAYER_SCRIPT: Final = r"""
const state = {ctx: null, buffers: [], gains: [], sources: [], bytes: [], track: 0, playing: false, position: 0,
  startedAt: 0, loop: false, from: 0, to: 0, length: 0, round: 0};
const find = selector => element.querySelector(selector);
const tracks = () => (props.value && props.value.tracks) || [];
const clock = sec => {
  const tenths = Math.round(sec * 10);
  return `${Math.floor(tenths / 600)}:${String(Math.floor(tenths / 10) % 60).padStart(2, '0')}.${tenths % 10}`;
};
const say = text => { const note = find('.ab-status'); if (note) note.textContent = text; };

function now() {
  if (!state.playing) return state.position;
  const at = state.position + Math.max(0, state.ctx.currentTime - state.startedAt);
  if (state.loop && at > state.to) return state.from + (at - state.from) % (state.to - state.from);
  return Math.min(at, state.length);
}

function show() {
  const root = find('.ab');
  if (!root) return;
  const at = now();
  root.dataset.playing = state.playing;
  root.dataset.track = state.track;
  root.dataset.position = at.toFixed(3);
  root.dataset.loop = state.loop;
  find('.ab-time').textContent = `${clock(at)} / ${clock(state.length)}`;
  const seek = find('.ab-seek');
  if (document.activeElement !== seek || state.playing) seek.value = at;
  seek.setAttribute('aria-valuetext', clock(at));
  find('[data-act="play"]').textContent = state.playing ? 'Stop' : 'Play';
  element.querySelectorAll('[data-act="track"]').forEach((button, i) =>
    button.setAttribute('aria-pressed', i === state.track));
  const loop = find('[data-act="loop"]');
  loop.setAttribute('aria-pressed', state.loop);
  find('.ab-loop').textContent = `Loop ${clock(state.from)} to ${clock(state.to)}`;
  const picture = find('svg.timeline');
  const head = find('.playhead');
  if (picture && head) {
    const x = +picture.dataset.left + at * picture.dataset.perSec;
    head.setAttribute('x1', x);
    head.setAttribute('x2', x);
    if (state.playing) follow(head);
  }
}

function follow(head) {  // a narrow page shows a part of the timelines only
  const frame = find('.timeline-frame');
  const seen = frame.getBoundingClientRect();
  const line = head.getBoundingClientRect();
  if (line.right > seen.right || line.left < seen.left) frame.scrollLeft += line.left - seen.left - 40;
}

async function ready() {
  if (state.buffers.length) return true;
  const round = state.round;
  try {
    state.ctx = state.ctx || new AudioContext();
    const bytes = await Promise.all(state.bytes);
    const decoded = await Promise.all(bytes.map(part => state.ctx.decodeAudioData(part.slice(0))));
    if (round !== state.round) return false;
    const frames = Math.max(...decoded.map(buffer => buffer.length));
    state.buffers = decoded.map(buffer => {  // of one length, so that loops stay together
      const padded = state.ctx.createBuffer(1, frames, buffer.sampleRate);
      padded.copyToChannel(buffer.getChannelData(0), 0);
      return padded;
    });
  } catch (error) {
    say('This browser could not load the sound.');
    return false;
  }
  return true;
}

function silence() {
  for (const source of state.sources) { source.onended = null; source.stop(); source.disconnect(); }
  state.sources = [];
}

function start(at) {
  silence();
  if (at >= state.length - 0.01) at = state.loop ? state.from : 0;
  if (state.loop && at > state.to) at = state.from;
  const when = state.ctx.currentTime + 0.03;
  state.gains = [];
  state.buffers.forEach((buffer, i) => {
    const source = new AudioBufferSourceNode(state.ctx,
      {buffer, loop: state.loop, loopStart: state.from, loopEnd: state.to});
    const gain = new GainNode(state.ctx, {gain: i === state.track ? tracks()[i].gain : 0});
    source.connect(gain).connect(state.ctx.destination);
    source.start(when, at);
    state.sources.push(source);
    state.gains.push(gain);
  });
  state.sources[0].onended = () => { if (!state.loop) stop(0); };
  Object.assign(state, {playing: true, position: at, startedAt: when});
  requestAnimationFrame(tick);
  show();
}

function tick() {
  if (!state.playing || !document.contains(element)) { if (state.playing) stop(0); return; }
  show();
  requestAnimationFrame(tick);
}

function stop(at) {
  silence();
  Object.assign(state, {playing: false, position: at});
  show();
}

async function play() {
  if (state.playing) { stop(now()); return; }
  if (!await ready()) return;
  await state.ctx.resume();
  start(state.position);
}

function choose(track) {
  state.track = track;
  state.gains.forEach((gain, i) =>
    gain.gain.setTargetAtTime(i === track ? tracks()[i].gain : 0, state.ctx.currentTime, 0.003));
  show();
}

function seek(sec) {
  const at = Math.min(Math.max(sec, 0), state.length);
  if (state.loop && (at < state.from || at > state.to)) state.loop = false;
  if (state.playing) { start(at); } else { state.position = at; show(); }
}

function loop(change) {
  const at = now();
  Object.assign(state, change);
  if (state.to - state.from < 0.1) {  // the other end gives way
    if ('from' in change) { state.to = state.length; } else { state.from = 0; }
    if (state.to - state.from < 0.1) { Object.assign(state, {from: 0, to: state.length}); }
  }
  if (state.playing) { start(state.loop && at < state.from ? state.from : at); } else { show(); }
}

const acts = {
  play,
  track: button => choose(+button.dataset.track),
  loop: () => loop({loop: !state.loop}),
  from: () => loop({from: now(), loop: true}),
  to: () => loop({to: now(), loop: true}),
};

element.addEventListener('click', event => {
  const target = event.target;
  const button = target.closest('[data-act]');
  if (button) { acts[button.dataset.act](button); return; }
  const place = target.closest('[data-sec]');
  if (place) { seek(+place.dataset.sec); return; }
  const picture = target.closest('svg.timeline');
  if (!picture || !picture.dataset.perSec) return;
  const left = +picture.dataset.left;
  const scale = +picture.dataset.perSec;
  const differs = target.closest('.differs');
  const x = differs ? +(differs.getAttribute('x') || differs.getAttribute('x1'))
    : new DOMPoint(event.clientX, event.clientY).matrixTransform(picture.getScreenCTM().inverse()).x;
  if (x >= left - 1) seek((x - left) / scale);
});

element.addEventListener('input', event => {
  if (event.target.matches('.ab-seek')) seek(+event.target.value);
});

function keys(event) {
  if (!document.contains(element)) { document.removeEventListener('keydown', keys); return; }
  if (!find('.ab') || event.ctrlKey || event.altKey || event.metaKey) return;
  const target = event.target;
  if (target.closest('textarea, select, [contenteditable="true"], input:not([type="range"])')) return;
  const key = event.key.toLowerCase();
  if (key === ' ' && target.closest('button, a, summary, audio, [role="tab"], [role="switch"]')) return;
  const act = {' ': play, x: () => choose(1 - state.track), l: () => loop({loop: !state.loop})}[key];
  if (act && !event.repeat) { event.preventDefault(); act(); }
}
document.addEventListener('keydown', keys);

function load() {
  silence();
  const length = props.value ? +props.value.seconds || 0 : 0;
  Object.assign(state, {buffers: [], gains: [], playing: false, position: 0, track: 0, loop: false, from: 0,
    to: length, length, round: state.round + 1});
  state.bytes = tracks().map(track => fetch(track.file.url).then(answer => {
    if (!answer.ok) throw new Error(answer.statusText);
    return answer.arrayBuffer();
  }));
  state.bytes.forEach(part => part.catch(() => say('The sound is gone; compare the files again.')));
  show();
}
watch('value', load);
load();
"""


class Track(NamedTuple):
    """What is played of one side."""

    title: str
    samples: npt.NDArray[np.float32]
    """Mono, shape (n,), at the level of the source; what lies beyond -1..1 is clipped."""
    sample_rate: int
    source: str = "its file"
    """What its level is told against."""

    @property
    def seconds(self) -> float:
        """Length in seconds."""
        return len(self.samples) / self.sample_rate


def add_player(**options: Any) -> gr.HTML:
    """Add an empty player to the page; a callback returns `player` for it.

    Parameters
    ----------
    options
        Go to `gradio.HTML`, over ours.

    """
    import gradio as gr

    settings: dict[str, Any] = {
        "html_template": "${value.html}",
        "css_template": PLAYER_STYLE,
        "js_on_load": PLAYER_SCRIPT,
        "apply_default_css": False,
        "elem_id": "player",
    }
    return gr.HTML(empty_player(), **settings | options)


def empty_player() -> dict[str, Any]:
    """Return the value of a player without music."""
    return {"html": f'<p class="ab-note">{EMPTY}</p>', "tracks": [], "seconds": 0.0}


def player(first: Track, second: Track, picture: str = "") -> dict[str, Any]:
    """Return the value of a player with two tracks.

    Parameters
    ----------
    first, second
        Original and edit. The shorter one is followed by silence.
    picture
        HTML below the player whose ``data-sec`` and timelines move it; it must be escaped.

    Returns
    -------
    dict
        ``html``, ``tracks`` (``file``, which Gradio serves and removes later, and ``gain``) and ``seconds``.

    """
    loudness = [integrated_loudness(track.samples, track.sample_rate) for track in (first, second)]
    gains = level_gains(loudness[0], loudness[1])
    seconds = max(first.seconds, second.seconds)
    tracks = [
        {"file": _served(track, name), "gain": gain}
        for track, name, gain in zip((first, second), ("original", "edit"), gains, strict=True)
    ]
    return {
        "html": _html((first, second), seconds, levels_told(*loudness, sources=(first.source, second.source)))
        + picture,
        "tracks": tracks,
        "seconds": round(seconds, 3),
    }


def levels_told(first_lufs: float, second_lufs: float, *, sources: tuple[str, str] = ("its file", "its file")) -> str:
    """Say what was done to the levels.

    Parameters
    ----------
    first_lufs, second_lufs
        Loudness of both as their sources have it; NaN where it is undefined.
    sources
        What the level of each is told against.

    Examples
    --------
    >>> levels_told(-14.0, -17.2)
    'Equal loudness: the original plays 3.2 dB softer than its file, to match the edit.'

    """
    if np.isnan(first_lufs) or np.isnan(second_lufs):
        return "Loudness could not be matched: a side is silent or shorter than 0.4 s. Both play as they are."
    change = first_lufs - second_lufs
    if abs(change) < 0.1:
        return "Equal loudness: both play as they are."
    louder, softer = ("original", "edit") if change > 0 else ("edit", "original")
    source = sources[0] if change > 0 else sources[1]
    return f"Equal loudness: the {louder} plays {abs(change):.1f} dB softer than {source}, to match the {softer}."


def encode(track: Track) -> bytes:
    """Return a track as FLAC with 16 bits, which every browser decodes."""
    import soundfile

    stream = io.BytesIO()
    samples = np.clip(track.samples, -1.0, 1.0)
    soundfile.write(stream, samples, track.sample_rate, format="FLAC", subtype="PCM_16")
    return stream.getvalue()


def _served(track: Track, name: str) -> dict[str, Any]:
    """Return a track as a file in Gradio's own folder, which Gradio serves, and removes with the others."""
    from gradio import processing_utils, utils
    from gradio.data_classes import FileData

    content = encode(track)
    path = processing_utils.save_bytes_to_cache(content, f"{name}.flac", utils.get_upload_folder())
    file: dict[str, Any] = FileData(path=path, orig_name=f"{name}.flac", mime_type="audio/flac").model_dump()
    return file


def _html(tracks: tuple[Track, Track], seconds: float, levels: str) -> str:
    chosen = "".join(
        f'<button type="button" data-act="track" data-track="{i}" aria-pressed="{str(i == 0).lower()}" '
        f'aria-keyshortcuts="X">{html.escape(track.title)}</button>'
        for i, track in enumerate(tracks)
    )
    return (
        '<div class="ab" role="group" aria-label="Player" data-playing="false"><div class="ab-buttons">'
        '<button type="button" data-act="play" aria-keyshortcuts="Space">Play</button>'
        f"{chosen}"
        '<button type="button" data-act="loop" aria-pressed="false" aria-keyshortcuts="L">Loop</button>'
        '<button type="button" data-act="from">Loop from here</button>'
        '<button type="button" data-act="to">Loop to here</button>'
        f'<span class="ab-time">0:00.0 / {clock(seconds)}</span></div>'
        f'<input class="ab-seek" type="range" min="0" max="{seconds:.3f}" step="0.01" value="0" aria-label="Position">'
        f'<p class="ab-note"><span class="ab-loop">Loop 0:00.0 to {clock(seconds)}</span>. Keys: <kbd>space</kbd> '
        "plays and stops, <kbd>X</kbd> switches, <kbd>L</kbd> loops. Click a timeline to go there.</p>"
        f'<p class="ab-note">{html.escape(levels)}</p><p class="ab-note ab-status" role="status"></p></div>'
    )
