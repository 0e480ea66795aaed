// The editor of the notes of one sample: tools, keys, transport, undo, and the log of all that is done.
//
// `open(page, options)`: page as `studyKinds` get it (study_page.js); options {sample, limitSec (null for none), mayAdd
// ("yes", "no", "flagged"), title, kept, keep, done}. A sample is as in note_roll.js, with tempos [[tick, quarters a
// minute]]; `kept` is the last value that `keep` was given, or null; `done` is told {events, counts, notes}, and whether
// the time limit ended it.
((ns) => {
  "use strict";

  const { make } = ns.studyPage;
  const { clamp } = ns.pianoRoll;
  const edits = ns.noteEdits;
  const SAVE_MS = 300;
  const HEARTBEAT_MS = 2000;
  const TICK_MS = 250;
  const GRIDS = [
    ["1/4", 1, 1], ["1/8", 1, 2], ["1/16", 1, 4], ["1/32", 1, 8], ["1/4 triplet", 2, 3], ["1/8 triplet", 1, 3], ["1/16 triplet", 1, 6],
  ];
  const TOOLS = [["select", "Select (V)"], ["draw", "Draw (D)"], ["split", "Split (S)"], ["erase", "Erase (E)"]];
  const SPEEDS = [0.5, 0.75, 1, 1.25, 1.5];
  const CAUSES = new Set(["key", "click", "midi"]);
  let midi = null; // once it is allowed, for every sample
  const SHORTCUTS = [
    ["V, D, S, E", "tool: select, draw, split, erase"],
    ["Arrows", "move the selected notes by a grid unit or a semitone, else the cursor; Shift: an octave, or the length"],
    ["N, B", "select the next note, the one before"],
    ["Enter", "select the note at the cursor, or draw one there"],
    ["Delete", "delete what is selected"],
    ["Ctrl+A, Escape", "select all, nothing"],
    ["Ctrl+D, M, Q", "duplicate, merge, quantise what is selected"],
    ["X", "split what is selected at the playhead"],
    ["Ctrl+Z, Ctrl+Y", "undo, do again"],
    ["Space, L, K", "play or stop, loop, metronome"],
    ["Home, +, -", "back to the start, zoom in, zoom out"],
  ];

  /** Seconds of ticks and ticks of seconds, by the tempos of a sample. */
  const clockOf = ({ ticks_per_quarter: quarter, tempos }) => {
    const given = tempos.length && tempos[0][0] === 0 ? tempos : [[0, 120], ...tempos];
    const spans = [];
    for (const [tick, qpm] of given) {
      const last = spans.at(-1);
      const sec = last ? last.sec + (tick - last.tick) * last.per : 0;
      spans.push({ tick, sec, per: 60 / qpm / quarter });
    }
    const at = (key, value) => spans.findLast((span) => span[key] <= value) || spans[0];
    return {
      seconds: (tick) => { const span = at("tick", tick); return span.sec + (tick - span.tick) * span.per; },
      tick: (sec) => { const span = at("sec", sec); return span.tick + (sec - span.sec) / span.per; },
    };
  };

  const gridsOf = (quarter) => GRIDS.map(([name, up, down]) => [name, (quarter * up) / down]).filter(([, ticks]) => Number.isInteger(ticks));

  /** What a key does in the editor, and of which kind that is. */
  const actionOf = (event) => {
    const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
    const held = event.ctrlKey || event.metaKey;
    if (event.altKey) return null;
    if (held) return { a: "all", d: "duplicate", z: event.shiftKey ? "redo" : "undo", y: "redo" }[key] || null;
    return {
      v: "select", d: "draw", s: "split", e: "erase", n: "next", b: "previous", m: "merge", q: "quantise", x: "cut", l: "loop",
      k: "metronome", " ": "play", Home: "home", "+": "nearer", "-": "farther", Escape: "nothing", Enter: "enter",
      Delete: "remove", Backspace: "remove", ArrowLeft: "left", ArrowRight: "right", ArrowUp: "up", ArrowDown: "down",
    }[key] || null;
  };
  const DONE = {
    add: "Added", remove: "Deleted", move: "Moved", resize: "Length changed", split: "Split", merge: "Merged",
    duplicate: "Duplicated", transpose: "Transposed", quantise: "Quantised", reset: "Started over", undo: "Undone", redo: "Done again",
  };
  const TRANSPORT = new Set(["play", "loop", "metronome", "home"]);

  const timeText = (sec) => `${Math.floor(sec / 60)}:${String(Math.floor(sec % 60)).padStart(2, "0")}`;

  /** The editor of one sample. */
  const open = ({ show, say, button }, { sample, limitSec, mayAdd, title, kept, keep, done }) => {
    const original = edits.fromList(sample.notes);
    const locked = sample.locked;
    const state = ns.editLog.replay(edits.fromList(sample.notes), kept?.events || []);
    const { notes } = state;
    const log = ns.editLog.open(() => performance.now(), kept ? { ...kept, away: Date.now() - kept.wall } : {});
    if (!log.events.length) log.add("load");
    const end = sample.end_tick;
    const clock = clockOf(sample);
    const muted = new Set();
    const pressed = { loop: false, metronome: false };
    let tool = "select";
    let cause = null; // the key, click or played note that is being dealt with
    let isHeld = false; // whether the last key was one that repeats
    let isOver = false;
    let isPlaying = false;
    let fresh = Math.max(sample.notes.length, ...notes.keys(), ...log.events.flatMap(([, what, , changes]) => (what === "edit" ? changes.map(([id]) => id + 1) : [])));

    let saving = 0;
    const saveNow = () => {
      clearTimeout(saving);
      saving = 0;
      keep({ events: [...log.events], elapsed: log.elapsed(), wall: Date.now() });
    };
    const save = () => { saving ||= setTimeout(saveNow, SAVE_MS); };
    const record = (...event) => {
      const made = log.add(...event);
      save();
      return made;
    };

    const left = make("span", { class: "left" });
    const holder = make("div", { class: "holder" });
    const toolbar = make("div", { class: "tools", role: "toolbar", "aria-label": "Editor" });
    const options = (id, label, pairs, value, onchange) => {
      const list = make("select", { id, onchange: () => onchange(list.value) });
      for (const [text, key] of pairs) list.append(make("option", { value: key, selected: key === value }, text));
      return make("label", {}, `${label} `, list);
    };
    let roll = null;

    const tellSelection = (what = "") => {
      const ids = roll.selected();
      const one = ids.length === 1 ? notes.get(ids[0]) : null;
      const which = one ? `${roll.describe(one[0], one[2])}, ${one[1]} ticks` : `${ids.length} notes`;
      say(`${what}${ids.length ? `Selected: ${which}.` : "Nothing is selected."}`);
    };

    const choose = (ids, what = "") => {
      roll.select(ids);
      if (ids.length) record("select", ids.length);
      tellSelection(what);
    };

    const apply = (what, event, changes, chosen) => {
      if (cause) cause[2] = "edit";
      record(...event, changes);
      edits.apply(notes, changes);
      roll.draw();
      roll.select(chosen || roll.selected());
      tellSelection(`${DONE[what]}. `);
    };

    const change = (operation, changes, chosen = null) => {
      if (isOver) return;
      if (!changes.length) say("Nothing to change there.");
      else if (edits.clashes(notes, changes).length) say("A note of this pitch sounds there already.");
      else {
        state.done.push(changes);
        state.undone.length = 0;
        fresh = Math.max(fresh, ...changes.map(([id]) => id + 1));
        apply(operation, ["edit", operation], changes, chosen);
      }
    };

    const step = (what, from, to, turn) => {
      if (isOver || !from.length) {
        say(`Nothing to ${what}.`);
        return;
      }
      const known = from.pop();
      to.push(known);
      const changes = turn(known);
      apply(what, [what], changes, changes.filter(([, , after]) => after).map(([id]) => id));
    };

    const withSelected = (act) => {
      const ids = roll.selected();
      if (ids.length) act(ids);
      else say("Select notes first.");
    };

    const moveBy = (ids, ticks, pitches) => {
      const keys = ids.map((id) => notes.get(id)[2]);
      const dp = clamp(pitches, roll.shown[0] - Math.min(...keys), roll.shown[1] - Math.max(...keys));
      return edits.move(notes, ids, ticks, dp, end);
    };
    const voiceToDraw = () => {
      const ids = roll.selected();
      return ids.length ? notes.get(ids[0])[4] : sample.voices.findIndex((_, voice) => !locked.includes(voice));
    };
    const velocityThere = () => Math.round([...notes.values()].reduce((sum, note) => sum + note[3], 0) / Math.max(1, notes.size)) || 80;
    const newNote = (tick, pitch, ticks) => [tick, Math.min(ticks, end - tick), pitch, clamp(velocityThere(), 1, 127), voiceToDraw()];
    const drawNote = (tick, pitch, ticks) => {
      if (mayAdd === "no") {
        say("Notes cannot be added in this study: move, split, resize or delete.");
        return;
      }
      const id = fresh;
      change("add", edits.add(id, newNote(tick, pitch, ticks)), [id]);
    };
    const splitAt = (ids, tick) => change("split", edits.split(notes, ids, tick, fresh));

    const stop = () => window.musicEvalsPlayer.stop();
    const play = () => {
      if (isPlaying) {
        stop();
        return;
      }
      const chosen = pressed.loop ? roll.selected().map((id) => notes.get(id)) : [];
      const from = chosen.length ? Math.min(...chosen.map((note) => note[0])) : roll.head() >= end ? 0 : roll.head();
      const to = chosen.length ? Math.max(...chosen.map((note) => note[0] + note[1])) : end;
      const sounds = [...notes.values()].filter((note) => !muted.has(note[4]));
      const inSec = sounds.map(([onset, duration, pitch]) => [clock.seconds(onset), clock.seconds(onset + duration) - clock.seconds(onset), pitch]);
      if (pressed.metronome) {
        for (const [tick, number] of ns.noteRoll.beatsOf(sample)) inSec.push([clock.seconds(tick), 0.03, number === null ? 84 : 96, "click"]);
      }
      record("play", from);
      isPlaying = true;
      let isStopped = false;
      const wasAt = roll.head();
      toolbar.querySelector("#play").textContent = "Stop";
      const speed = Number(toolbar.querySelector("#speed").value);
      stopNow = () => { isStopped = true; stop(); };
      window.musicEvalsPlayer.play(inSec, 1 / speed, {
        from: clock.seconds(from),
        to: clock.seconds(to),
        onStep: (sec) => roll.setHead(clock.tick(sec), true),
        onEnd: () => {
          isPlaying = false;
          toolbar.querySelector("#play").textContent = "Play";
          record("stop", clamp(Math.round(roll.head()), 0, end));
          const isAtEnd = roll.head() >= to - 1;
          if (isAtEnd || pressed.loop) roll.setHead(wasAt);
          if (pressed.loop && !isStopped && isAtEnd && !isOver) play();
        },
      });
    };
    let stopNow = stop;

    const toggle = (name, id) => {
      pressed[name] = !pressed[name];
      toolbar.querySelector(`#${id}`).setAttribute("aria-pressed", pressed[name]);
      say(`${name} ${pressed[name] ? "on" : "off"}.`);
    };
    const useTool = (name) => {
      tool = name;
      for (const [key] of TOOLS) toolbar.querySelector(`#tool-${key}`).setAttribute("aria-pressed", key === name);
      roll.grid.dataset.tool = name;
    };
    const neighbour = (by) => {
      const free = [...notes.keys()].filter((id) => !locked.includes(notes.get(id)[4]));
      const order = free.sort((a, b) => notes.get(a)[0] - notes.get(b)[0] || notes.get(a)[2] - notes.get(b)[2]);
      if (!order.length) return;
      const now = roll.selected();
      const { tick } = roll.cursor();
      const from = now.length ? order.indexOf(now[0]) + by : order.findIndex((id) => notes.get(id)[0] >= tick);
      const id = order[clamp(from, 0, order.length - 1)];
      roll.moveCursor(notes.get(id)[0], notes.get(id)[2]);
      choose([id]);
    };
    const arrow = (ticks, pitches, isFar) => {
      const ids = roll.selected();
      if (!ids.length) {
        const { tick, pitch } = roll.cursor();
        const unit = roll.unit();
        roll.moveCursor((Math.floor(tick / unit) + ticks) * unit, pitch + pitches * (isFar ? 12 : 1));
        say(roll.describe(roll.cursor().tick, roll.cursor().pitch));
      } else if (ticks && isFar) change("resize", edits.resize(notes, ids, ticks * roll.unit(), roll.unit(), end));
      else if (pitches && isFar) change("transpose", moveBy(ids, 0, 12 * pitches));
      else change("move", moveBy(ids, ticks * roll.unit(), pitches));
    };
    const enter = () => {
      const { tick, pitch } = roll.cursor();
      const there = edits.inside(notes, [tick, tick + 1], [pitch, pitch], locked);
      if (there.length) choose(there);
      else drawNote(tick - (tick % roll.unit()), pitch, roll.unit());
    };

    const actions = {
      select: () => useTool("select"), draw: () => useTool("draw"), split: () => useTool("split"), erase: () => useTool("erase"),
      next: () => neighbour(1), previous: () => neighbour(-1), enter, play: () => (isPlaying ? stopNow() : play()),
      loop: () => toggle("loop", "loop"), metronome: () => toggle("metronome", "metronome"),
      home: () => roll.setHead(0, true), nearer: () => roll.zoomBy(1), farther: () => roll.zoomBy(-1),
      all: () => choose(edits.inside(notes, [0, end + 1], [0, 127], locked)), nothing: () => choose([]),
      remove: () => withSelected((ids) => change("remove", edits.remove(notes, ids), [])),
      duplicate: () => {
        if (mayAdd === "no") say("Notes cannot be added in this study.");
        else withSelected((ids) => { const from = fresh; change("duplicate", edits.duplicate(notes, ids, roll.unit(), end, from), ids.map((_, place) => from + place)); });
      },
      merge: () => withSelected((ids) => change("merge", edits.merge(notes, ids))),
      quantise: () => withSelected((ids) => change("quantise", edits.quantise(notes, ids, roll.unit(), end))),
      cut: () => withSelected((ids) => splitAt(ids, Math.round(roll.head()))),
      undo: () => step("undo", state.done, state.undone, edits.backwards),
      redo: () => step("redo", state.undone, state.done, (changes) => changes),
      left: (far) => arrow(-1, 0, far), right: (far) => arrow(1, 0, far), up: (far) => arrow(0, 1, far), down: (far) => arrow(0, -1, far),
      octave_up: () => withSelected((ids) => change("transpose", moveBy(ids, 0, 12))),
      octave_down: () => withSelected((ids) => change("transpose", moveBy(ids, 0, -12))),
      reset: () => change("reset", edits.reset(notes, original), []),
    };

    // what a pointer does on the roll
    const tell = {
      seek: (tick) => roll.setHead(tick),
      grasped: (hit, from, more) => {
        if (!hit) return { draws: tool === "draw" };
        if (tool === "select" || tool === "draw") {
          const now = roll.selected();
          if (!now.includes(hit.id)) choose(more ? [...now, hit.id] : [hit.id]);
        }
        return {};
      },
      dragged: (drag, to) => {
        const unit = roll.unit();
        const snap = (ticks) => Math.round(ticks / unit) * unit;
        if (!drag.hit) {
          const onset = drag.from.tick - (drag.from.tick % unit);
          const note = newNote(onset, drag.from.pitch, Math.max(unit, (Math.floor(to.tick / unit) + 1) * unit - onset));
          drag.changes = edits.add(fresh, note);
          return {};
        }
        const ids = roll.selected();
        const by = snap(to.tick - drag.from.tick);
        if (drag.hit.end) {
          drag.changes = edits.resize(notes, ids, by, unit, end);
          return { shift: new Map(drag.changes.map(([id, , after]) => [id, after])) };
        }
        drag.changes = moveBy(ids, by, to.pitch - drag.from.pitch);
        const [[, before, after] = [0, [0, 0, 0], [0, 0, 0]]] = drag.changes; // all move alike
        return { ids, ticks: after[0] - before[0], pitches: after[2] - before[2] };
      },
      dropped: (drag, to) => {
        if (drag.hit && tool === "erase") change("remove", edits.remove(notes, [drag.hit.id]), []);
        else if (drag.hit && tool === "split") splitAt([drag.hit.id], to.tick - (to.tick % roll.unit()));
        else if (drag.hit && drag.moved && drag.changes?.length) change(drag.hit.end ? "resize" : "move", drag.changes);
        else if (drag.draws && drag.moved) drawNote(drag.changes[0][2][0], drag.from.pitch, drag.changes[0][2][1]);
        else if (drag.draws) drawNote(drag.from.tick - (drag.from.tick % roll.unit()), drag.from.pitch, roll.unit());
        else if (!drag.hit) {
          roll.moveCursor(drag.from.tick - (drag.from.tick % roll.unit()), drag.from.pitch);
          if (!drag.more && roll.selected().length) choose([]);
        }
      },
      boxed: (ticks, pitches, more) => {
        const found = edits.inside(notes, ticks, pitches, locked);
        choose(more ? [...new Set([...roll.selected(), ...found])] : found);
      },
      tapped: ({ tick, pitch }) => {
        if (tool === "draw") drawNote(tick - (tick % roll.unit()), pitch, roll.unit());
        else roll.moveCursor(tick - (tick % roll.unit()), pitch);
      },
    };

    const onKeyDown = (event) => {
      isHeld = event.repeat;
      if (isOver || event.repeat) {
        // a key that is held goes on moving, but counts once
        if (isOver || !event.target.closest?.(".grid")) return;
      } else {
        const kind = ns.editLog.MODIFIERS.has(event.key) ? "modifier" : "other";
        cause = record("key", kind);
      }
      if (event.target.closest?.("select, input, summary") || (event.target.closest?.("button") && [" ", "Enter"].includes(event.key))) return;
      const action = actionOf(event);
      if (!action) return;
      event.preventDefault();
      if (cause[2] === "other") cause[2] = TRANSPORT.has(action) ? "transport" : "navigation";
      actions[action](event.shiftKey);
    };
    const onPointerDown = (event) => {
      isHeld = false;
      if (!isOver) cause = record("click", "other", ["mouse", "touch", "pen"].includes(event.pointerType) ? event.pointerType : "mouse");
    };
    // who has a button pressed by a screen reader sends no key and no pointer before the click
    const onClick = (event) => {
      const [, last] = log.events.findLast(([, what]) => CAUSES.has(what) || ["load", "absent", "edit", "undo", "redo"].includes(what));
      if (event.isTrusted && !isHeld && !CAUSES.has(last) && event.target.closest?.("button")) cause = record("click", "other", "mouse");
    };
    /** A note that is played is the pitch of the note that is selected, or a new note at the cursor where none is. */
    const onMidi = ({ data: [status, pitch, velocity] }) => {
      if (isOver || status >> 4 !== 9 || !velocity) return;
      cause = record("midi", "other");
      const [id, ...others] = roll.selected();
      const { tick } = roll.cursor();
      if (id === undefined) drawNote(tick - (tick % roll.unit()), clamp(pitch, ...roll.shown), roll.unit());
      else if (!others.length) change("transpose", moveBy([id], 0, pitch - notes.get(id)[2]));
    };
    const listenToMidi = async () => {
      midi ||= await navigator.requestMIDIAccess().catch(() => null);
      for (const input of midi?.inputs.values() || []) input.onmidimessage = onMidi;
      say(midi?.inputs.size ? "What you play sets the selected note, or adds one at the cursor." : "No MIDI keyboard was found.");
    };
    const onVisibility = () => {
      record(document.hidden ? "hide" : "show");
      saveNow();
    };
    const listeners = [
      [document, "keydown", onKeyDown], [document, "pointerdown", onPointerDown], [document, "click", onClick],
      [document, "visibilitychange", onVisibility],
      [window, "blur", () => record("blur")], [window, "focus", () => record("focus")], [window, "pagehide", saveNow],
    ];

    const close = (isLimit) => {
      if (isOver) return;
      if (isPlaying) stopNow();
      isOver = true;
      clearInterval(timer);
      for (const [target, name, act] of listeners) target.removeEventListener(name, act, true);
      roll.freeze();
      saveNow(); // without its end: who comes back before the questions goes on
      if (isLimit) log.add("limit");
      log.add("submit");
      done({ events: log.events, counts: ns.editLog.count(log.events), notes: edits.toList(notes) }, isLimit);
    };

    const onOff = (id, label, act) => button(label, act, { id, "aria-pressed": "false" });
    for (const [name, label] of TOOLS) toolbar.append(onOff(`tool-${name}`, label, () => useTool(name)));
    const units = gridsOf(sample.ticks_per_quarter);
    const unit = (units.find(([name]) => name === "1/16") || units[0])[1];
    toolbar.append(options("unit", "Grid", units, unit, (ticks) => roll.setUnit(Number(ticks))));
    const act = (name, label) => toolbar.append(button(label, () => actions[name](), { id: name }));
    for (const [name, label] of [["undo", "Undo"], ["redo", "Redo"], ["remove", "Delete"], ["duplicate", "Duplicate"], ["merge", "Merge"], ["quantise", "Quantise"], ["octave_up", "Octave up"], ["octave_down", "Octave down"]]) act(name, label);
    toolbar.append(make("span", { class: "gap" }));
    act("play", "Play");
    toolbar.append(onOff("loop", "Loop", () => actions.loop()), onOff("metronome", "Metronome", () => actions.metronome()));
    toolbar.append(options("speed", "Speed", SPEEDS.map((speed) => [`${100 * speed} %`, speed]), 1, () => {}));
    sample.voices.forEach((name, voice) => {
      const box = make("input", { type: "checkbox", checked: true, onchange: () => { if (box.checked) muted.delete(voice); else muted.add(voice); } });
      toolbar.append(make("label", { class: locked.includes(voice) ? "locked" : `voice${voice % 6}` }, box, ` ${name || `voice ${voice + 1}`}${locked.includes(voice) ? " (locked)" : ""}`));
    });
    act("farther", "Zoom out");
    act("nearer", "Zoom in");
    act("reset", "Start over");
    if (navigator.requestMIDIAccess) toolbar.append(button("MIDI keyboard", listenToMidi, { id: "midi" }));
    const help = make("details", {}, make("summary", {}, "Shortcuts"));
    const list = make("dl");
    for (const [key, what] of SHORTCUTS) list.append(make("dt", {}, key), make("dd", {}, what));
    help.append(list);
    const finish = button("I am done", () => close(false), { id: "done" });
    show(make("h2", {}, title), make("p", { class: "clock" }, left, finish), toolbar, holder, help);
    roll = ns.noteRoll.open({ root: holder, sample, notes, locked, tell });
    roll.setUnit(unit);
    // whoever clicks a tool goes on in the roll, where Space plays; the keyboard stays where it is
    toolbar.addEventListener("click", (event) => {
      if (event.detail && event.target.closest("button")) roll.grid.focus({ preventScroll: true });
    });
    roll.grid.setAttribute("aria-label", "Piano roll. Arrow keys move the cursor or what is selected; see Shortcuts below.");
    useTool("select");
    for (const [target, name, listen] of listeners) target.addEventListener(name, listen, true);

    const tick = () => {
      const sec = log.elapsed() / 1000;
      left.textContent = Number.isFinite(limitSec) && limitSec !== null ? `${timeText(Math.max(0, limitSec - sec))} left` : timeText(sec);
      if (limitSec !== null && sec >= limitSec) close(true);
    };
    let beats = 0;
    const timer = setInterval(() => {
      tick();
      if (++beats % (HEARTBEAT_MS / TICK_MS) === 0 && !isOver) save();
    }, TICK_MS);
    tick();
    saveNow();
    if (midi) listenToMidi();
  };

  ns.noteEditor = { actionOf, clockOf, gridsOf, open, timeText };
})((globalThis.musicEvals ||= {}));
