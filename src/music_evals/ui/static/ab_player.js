// Two recordings that play at the same time; one is heard. Both sources start at one moment of one clock, so a switch is
// a change of volume and nothing else. Whatever carries data-sec moves the player, and so do timelines.
((ns) => {
  "use strict";

  const SHORTEST_LOOP_SEC = 0.1;

  /** A time as minutes, seconds and tenths. */
  const clock = (sec) => {
    const tenths = Math.round(sec * 10);
    return `${Math.floor(tenths / 600)}:${String(Math.floor(tenths / 10) % 60).padStart(2, "0")}.${tenths % 10}`;
  };

  /** Where the player stands, for a time of the clock of the sound. */
  const positionAt = ({ playing, position, startedAt, loop, from, to, length }, currentTime) => {
    if (!playing) return position;
    const at = position + Math.max(0, currentTime - startedAt);
    if (loop && at > to) return from + ((at - from) % (to - from));
    return Math.min(at, length);
  };

  /** Where to start for a wanted place: at the end from the beginning, behind a loop at its start. */
  const startFor = (at, { loop, from, to, length }) => {
    const wanted = at >= length - 0.01 ? (loop ? from : 0) : at;
    return loop && wanted > to ? from : wanted;
  };

  /** Loop settings after a change of one of them; where the loop would be too short, its other end gives way. */
  const looped = (now, change) => {
    const next = { loop: now.loop, from: now.from, to: now.to, ...change };
    if (next.to - next.from >= SHORTEST_LOOP_SEC) return next;
    if ("from" in change) next.to = now.length;
    else next.from = 0;
    return next.to - next.from >= SHORTEST_LOOP_SEC ? next : { ...next, from: 0, to: now.length };
  };

  const start = ({ element, props, watch }) => {
    const state = { ctx: null, buffers: [], gains: [], sources: [], bytes: [], track: 0, playing: false, position: 0,
      startedAt: 0, loop: false, from: 0, to: 0, length: 0, round: 0 };
    const find = (selector) => element.querySelector(selector);
    const tracks = () => props.value?.tracks || [];
    const now = () => positionAt(state, state.ctx ? state.ctx.currentTime : 0);
    const say = (text) => {
      const note = find(".ab-status");
      if (note) note.textContent = text;
    };

    /** A narrow page shows a part of the timelines only: it follows the line. */
    const follow = (head) => {
      const frame = find(".timeline-frame");
      const seen = frame.getBoundingClientRect();
      const names = find(".timeline .names").getBoundingClientRect();
      const line = head.getBoundingClientRect();
      if (line.right > seen.right || line.left < names.right) frame.scrollLeft += line.left - names.right - 40;
    };

    const showTimeline = (at) => {
      const picture = find(".timeline .lanes");
      if (!picture) return;
      const head = picture.querySelector(".playhead");
      head.setAttribute("x1", at * picture.dataset.perSec);
      head.setAttribute("x2", at * picture.dataset.perSec);
      if (state.playing) follow(head);
    };

    const show = () => {
      const root = find(".ab");
      if (!root) return;
      const at = now();
      Object.assign(root.dataset, {
        playing: state.playing, track: state.track, position: at.toFixed(3), loop: state.loop,
      });
      find(".ab-time").textContent = `${clock(at)} / ${clock(state.length)}`;
      const slider = find(".ab-seek");
      if (document.activeElement !== slider || state.playing) slider.value = at;
      slider.setAttribute("aria-valuetext", clock(at));
      find('[data-act="play"]').textContent = state.playing ? "Stop" : "Play";
      element.querySelectorAll('[data-act="track"]').forEach((button, i) =>
        button.setAttribute("aria-pressed", i === state.track));
      find('[data-act="loop"]').setAttribute("aria-pressed", state.loop);
      find(".ab-loop").textContent = `Loop ${clock(state.from)} to ${clock(state.to)}`;
      showTimeline(at);
    };

    const ready = async () => {
      if (state.buffers.length) return true;
      const { round } = state;
      try {
        state.ctx ||= new AudioContext();
        const bytes = await Promise.all(state.bytes);
        const decoded = await Promise.all(bytes.map((part) => state.ctx.decodeAudioData(part.slice(0))));
        if (round !== state.round) return false;
        const frames = Math.max(...decoded.map((buffer) => buffer.length));
        state.buffers = decoded.map((buffer) => { // of one length, so that loops stay together
          const padded = state.ctx.createBuffer(1, frames, buffer.sampleRate);
          padded.copyToChannel(buffer.getChannelData(0), 0);
          return padded;
        });
      } catch {
        say("This browser could not load the sound.");
        return false;
      }
      return true;
    };

    const silence = () => {
      for (const source of state.sources) {
        source.onended = null;
        source.stop();
        source.disconnect();
      }
      state.sources = [];
    };

    const stopAt = (at) => {
      silence();
      Object.assign(state, { playing: false, position: at });
      show();
    };

    const tick = () => {
      if (!state.playing) return;
      if (!document.contains(element)) {
        stopAt(0);
        return;
      }
      show();
      requestAnimationFrame(tick);
    };

    const playFrom = (wanted) => {
      silence();
      const at = startFor(wanted, state);
      const when = state.ctx.currentTime + 0.03;
      state.gains = state.buffers.map((_, i) =>
        new GainNode(state.ctx, { gain: i === state.track ? tracks()[i].gain : 0 }));
      state.sources = state.buffers.map((buffer, i) => {
        const options = { buffer, loop: state.loop, loopStart: state.from, loopEnd: state.to };
        const source = new AudioBufferSourceNode(state.ctx, options);
        source.connect(state.gains[i]).connect(state.ctx.destination);
        source.start(when, at);
        return source;
      });
      state.sources[0].onended = () => {
        if (!state.loop) stopAt(0);
      };
      Object.assign(state, { playing: true, position: at, startedAt: when });
      requestAnimationFrame(tick);
      show();
    };

    const play = async () => {
      if (state.playing) {
        stopAt(now());
        return;
      }
      if (!(await ready())) return;
      await state.ctx.resume();
      playFrom(state.position);
    };

    const choose = (track) => {
      state.track = track;
      state.gains.forEach((gain, i) =>
        gain.gain.setTargetAtTime(i === track ? tracks()[i].gain : 0, state.ctx.currentTime, 0.003));
      show();
    };

    const seek = (sec) => {
      const at = Math.min(Math.max(sec, 0), state.length);
      if (at < state.from || at > state.to) state.loop = false;
      if (state.playing) {
        playFrom(at);
      } else {
        state.position = at;
        show();
      }
    };

    const loop = (change) => {
      const at = now();
      Object.assign(state, looped(state, change));
      if (state.playing) playFrom(state.loop && at < state.from ? state.from : at);
      else show();
    };

    const acts = {
      play,
      track: (button) => choose(Number(button.dataset.track)),
      loop: () => loop({ loop: !state.loop }),
      from: () => loop({ from: now(), loop: true }),
      to: () => loop({ to: now(), loop: true }),
    };

    /** The second at which a timeline is clicked; what differs takes the click to its own start. */
    const secondOf = (picture, event) => {
      const differs = event.target.closest(".differs");
      const x = differs
        ? Number(differs.getAttribute("x") || differs.getAttribute("x1"))
        : new DOMPoint(event.clientX, event.clientY).matrixTransform(picture.getScreenCTM().inverse()).x;
      return x / picture.dataset.perSec;
    };

    element.addEventListener("click", (event) => {
      const button = event.target.closest("[data-act]");
      const place = event.target.closest("[data-sec]");
      const picture = event.target.closest(".timeline .lanes");
      if (button) acts[button.dataset.act](button);
      else if (place) seek(Number(place.dataset.sec));
      else if (picture) seek(secondOf(picture, event));
    });
    element.addEventListener("input", (event) => {
      if (event.target.matches(".ab-seek")) seek(Number(event.target.value));
    });

    const onKey = { " ": play, x: () => choose(1 - state.track), l: () => loop({ loop: !state.loop }) };
    const keys = (event) => {
      if (!document.contains(element)) {
        document.removeEventListener("keydown", keys);
        return;
      }
      if (!find(".ab") || event.ctrlKey || event.altKey || event.metaKey) return;
      if (event.target.closest('textarea, select, [contenteditable="true"], input:not([type="range"])')) return;
      const key = event.key.toLowerCase();
      if (key === " " && event.target.closest('button, a, summary, audio, [role="tab"], [role="switch"]')) return;
      if (!onKey[key] || event.repeat) return;
      event.preventDefault();
      onKey[key]();
    };
    document.addEventListener("keydown", keys);

    const load = () => {
      silence();
      const length = Number(props.value?.seconds) || 0;
      Object.assign(state, { buffers: [], gains: [], playing: false, position: 0, track: 0, loop: false, from: 0,
        to: length, length, round: state.round + 1 });
      state.bytes = tracks().map(async ({ file }) => {
        const answer = await fetch(file.url);
        if (!answer.ok) throw new Error(answer.statusText);
        return answer.arrayBuffer();
      });
      state.bytes.forEach((part) => part.catch(() => say("The sound is gone; compare the files again.")));
      show();
    };
    watch("value", load);
    load();
  };

  ns.abPlayer = { clock, positionAt, startFor, looped, start };
})((globalThis.musicEvals ||= {}));
