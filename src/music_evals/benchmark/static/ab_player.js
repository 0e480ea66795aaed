// Two recordings, one of which is heard, for Spaces and reports. Where their bytes can be read, both play at the same time:
// they start at one moment of one clock, so a switch is a change of volume and nothing else. A page that was opened from a
// disk may not read the files beside it: there two elements take turns at one place of the music. Whatever carries
// data-sec moves the player, and so do timelines. Of all players of a page one sounds.
//
// musicEvals.abPlayer.open(urls, gains, onEnd) is the sound of it alone, of any number of recordings, for other pages:
//   prefetch()                begin to read them; a page may do so before anybody has touched it
//   load()                    read them; resolves when they can sound
//   lengths()                 how long each plays, in seconds, once they are loaded
//   start(at, track, {loop, from, to, length}), stop(), choose(track), now()
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

  let ctx = null; // of all players
  let stopOther = () => {}; // of the player that sounds

  /** Recordings as samples: their sources start together, and the volume says which is heard. */
  const decoded = (files, gains, onEnd) => {
    let buffers = [], sources = [], volumes = [], begun = null, lengths = [];
    const stop = () => {
      for (const source of sources) {
        source.onended = null;
        source.stop();
        source.disconnect();
      }
      sources = [];
      begun = null;
    };
    return {
      load: async () => {
        ctx ||= new AudioContext();
        if (!buffers.length) {
          const bytes = await Promise.all(files());
          const read = await Promise.all(bytes.map((part) => ctx.decodeAudioData(part.slice(0))));
          lengths = read.map((buffer) => buffer.duration);
          const frames = Math.max(...read.map((buffer) => buffer.length));
          buffers = read.map((buffer) => { // of one length, so that loops stay together
            const padded = ctx.createBuffer(buffer.numberOfChannels, frames, buffer.sampleRate);
            for (let i = 0; i < buffer.numberOfChannels; i += 1) padded.copyToChannel(buffer.getChannelData(i), i);
            return padded;
          });
        }
        await ctx.resume();
      },
      start: (at, track, { loop, from, to, length }) => {
        stop();
        const when = ctx.currentTime + 0.03;
        volumes = buffers.map((_, i) => new GainNode(ctx, { gain: i === track ? gains[i] : 0 }));
        sources = buffers.map((buffer, i) => {
          const source = new AudioBufferSourceNode(ctx, { buffer, loop, loopStart: from, loopEnd: to });
          source.connect(volumes[i]).connect(ctx.destination);
          source.start(when, at);
          return source;
        });
        sources[0].onended = () => {
          if (!loop) onEnd();
        };
        begun = { playing: true, position: at, startedAt: when, loop, from, to, length };
      },
      stop,
      choose: (track) => volumes.forEach((volume, i) =>
        volume.gain.setTargetAtTime(i === track ? gains[i] : 0, ctx.currentTime, 0.003)),
      now: () => positionAt(begun, ctx.currentTime),
      lengths: () => lengths,
      prefetch: files,
    };
  };

  /** Recordings as elements of sound: the one that is heard plays, and the other takes over where it stands. */
  const streamed = (urls, gains, onEnd) => {
    const sounds = urls.map((url, i) => Object.assign(new Audio(), { preload: "none", src: url, volume: gains[i] }));
    let heard = sounds[0], loops = null;
    const goTo = (at) => {
      heard.currentTime = at;
    };
    const resume = () => heard.play().catch(() => {}); // it was stopped before it could begin
    const stop = () => sounds.forEach((sound) => sound.pause());
    sounds.forEach((sound) => sound.addEventListener("ended", () => {
      if (sound !== heard) return;
      if (loops?.loop) {
        goTo(loops.from);
        resume();
      } else {
        onEnd();
      }
    }));
    return {
      load: () => Promise.all(sounds.map((sound) => new Promise((ready, failed) => {
        if (sound.readyState > 0) {
          ready();
          return;
        }
        sound.addEventListener("loadedmetadata", ready, { once: true });
        sound.addEventListener("error", failed, { once: true });
        sound.load();
      }))),
      start: (at, track, loop) => {
        stop();
        loops = loop;
        heard = sounds[track];
        goTo(at);
        resume();
      },
      stop,
      choose: (track) => {
        const at = heard.currentTime;
        stop();
        heard = sounds[track];
        goTo(at);
        resume();
      },
      now: () => {
        if (loops.loop && heard.currentTime >= loops.to) goTo(loops.from);
        return heard.currentTime;
      },
      lengths: () => sounds.map((sound) => sound.duration),
      prefetch: () => sounds.forEach((sound) => Object.assign(sound, { preload: "auto" })),
    };
  };

  /** Tell whether a page may read the bytes of a file: not of one that lies beside it on a disk. */
  const readable = (url) => new URL(url, document.baseURI).protocol !== "file:";

  /** The bytes of files, each a promise. */
  const fetched = (urls) => urls.map(async (url) => {
    const answer = await fetch(url);
    if (!answer.ok) throw new Error(answer.statusText);
    return answer.arrayBuffer();
  });

  /** Files that are fetched once, and again where that failed. */
  const filesOf = (urls) => {
    let parts = null;
    const forget = () => {
      parts = null;
    };
    return () => {
      if (!parts) {
        parts = fetched(urls);
        parts.forEach((part) => part.catch(forget));
      }
      return parts;
    };
  };

  /** The sound of recordings, one of which is heard; see the top. */
  const open = (urls, gains, onEnd, files = filesOf(urls)) =>
    (urls.every(readable) ? decoded(files, gains, onEnd) : streamed(urls, gains, onEnd));

  /** Start a player in its element. By default its keys are those of the whole page, and files are fetched at once. */
  const start = ({ element, props, watch }, { keysOf = document, lazy = false } = {}) => {
    const state = { sound: null, bytes: [], track: 0, playing: false, position: 0, loop: false, from: 0, to: 0, length: 0,
      round: 0 };
    const find = (selector) => element.querySelector(selector);
    const tracks = () => props.value?.tracks || [];
    const now = () => (state.playing ? state.sound.now() : state.position);
    const say = (text) => {
      const note = find(".ab-status");
      if (note) note.textContent = text;
    };

    /** A narrow page shows a part of the timelines only: it follows the line. */
    const follow = (head) => {
      const frame = head.closest(".timeline");
      const seen = frame.getBoundingClientRect();
      const names = frame.querySelector(".names").getBoundingClientRect();
      const line = head.getBoundingClientRect();
      if (line.right > seen.right || line.left < names.right) frame.scrollLeft += line.left - names.right - 40;
    };

    const showTimeline = (at) => {
      for (const picture of element.querySelectorAll(".timeline .lanes")) {
        const head = picture.querySelector(".playhead");
        head.setAttribute("x1", at * picture.dataset.perSec);
        head.setAttribute("x2", at * picture.dataset.perSec);
        if (state.playing) follow(head);
      }
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

    const stopAt = (at) => {
      state.sound?.stop();
      Object.assign(state, { playing: false, position: at });
      show();
    };

    const makeSound = () => {
      const urls = tracks().map(({ file }) => file.url), gains = tracks().map(({ gain }) => gain);
      return open(urls, gains, () => stopAt(0), fetchAll);
    };

    const fetchAll = () => {
      if (!state.bytes.length) state.bytes = fetched(tracks().map(({ file }) => file.url));
      return state.bytes;
    };

    const ready = async () => {
      const { round } = state;
      try {
        state.sound ||= makeSound();
        await state.sound.load();
      } catch {
        if (round === state.round) Object.assign(state, { sound: null, bytes: [] });
        say("This browser could not load the sound.");
        return false;
      }
      return round === state.round;
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
      const at = startFor(wanted, state);
      state.sound.start(at, state.track, { loop: state.loop, from: state.from, to: state.to, length: state.length });
      Object.assign(state, { playing: true, position: at });
      requestAnimationFrame(tick);
      show();
    };

    const stopHere = () => {
      if (state.playing) stopAt(now());
    };

    const play = async () => {
      if (state.playing) {
        stopHere();
        return;
      }
      if (!(await ready())) return;
      if (stopOther !== stopHere) stopOther();
      stopOther = stopHere;
      playFrom(state.position);
    };

    const choose = (track) => {
      state.track = track;
      if (state.playing) state.sound.choose(track);
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
        keysOf.removeEventListener("keydown", keys);
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
    keysOf.addEventListener("keydown", keys);

    const load = () => {
      state.sound?.stop();
      const length = Number(props.value?.seconds) || 0;
      Object.assign(state, { sound: null, bytes: [], playing: false, position: 0, track: 0, loop: false, from: 0,
        to: length, length, round: state.round + 1 });
      const gone = () => say("The sound is gone; compare the files again.");
      if (!lazy) fetchAll().forEach((part) => part.catch(gone));
      show();
    };
    watch("value", load);
    load();
  };

  ns.abPlayer = { clock, positionAt, startFor, looped, start, open };
})((globalThis.musicEvals ||= {}));
