// A piano roll on which one voice is drawn: with a mouse, a finger or the keyboard.
//
// A melody is {first_measure, held, notes}, a note [onset, duration, pitch] in steps; at each step begins at most one.
((ns) => {
  "use strict";

  const { clamp, line, pitchName, place, shape, snapped } = ns.rollPaper;
  const EMPTY = { first_measure: 1, held: 0, notes: [] };
  const ROW = 11;
  const TOP = 18;
  const SIDE = 30;
  const MOST_UNDO = 100;

  const endOf = ([onset, duration]) => onset + duration;

  /** The length of a note that is dragged to a step: whole units, at least to the end of the unit there. */
  const draggedLength = (onset, step, unit) => (Math.floor(step / unit) + 1) * unit - onset;

  const noteAt = (melody, step, pitch) =>
    melody.notes.find((note) => note[0] <= step && step < endOf(note) && note[2] === pitch);

  const nextOnset = (notes, step, steps) =>
    Math.min(steps, ...notes.map(([onset]) => onset).filter((onset) => onset > step));

  /** Notes of which none sounds over a step: what sounds there ends there. */
  const cutAt = (notes, step) =>
    notes.map((note) => (note[0] < step && endOf(note) > step ? [note[0], step - note[0], note[2]] : note));

  const add = (melody, step, pitch, length, steps) => {
    const kept = cutAt(melody.notes, step).filter(([onset]) => onset !== step);
    const note = [step, Math.min(length, nextOnset(kept, step, steps) - step), pitch];
    const notes = [...kept, note].sort((a, b) => a[0] - b[0]);
    return { ...melody, held: Math.min(melody.held, step), notes };
  };

  const remove = (melody, onset) => ({ ...melody, notes: melody.notes.filter((note) => note[0] !== onset) });

  /** Give the note that begins at a step another length, at least one step and at most up to the next note. */
  const resize = (melody, onset, length, steps) => {
    const most = nextOnset(melody.notes, onset, steps) - onset;
    const notes = melody.notes.map((note) => (note[0] === onset ? [onset, clamp(length, 1, most), note[2]] : note));
    return { ...melody, notes };
  };

  /** Take out what begins in a span; what sounds into it ends where it starts. */
  const clear = (melody, from, to) => ({
    ...melody,
    held: from === 0 ? 0 : melody.held,
    notes: cutAt(melody.notes, from).filter(([onset]) => onset < from || onset >= to),
  });

  /** Lowest and highest pitch to show, so that every note has two above and below it. */
  const fitted = (melody, [low, high]) => {
    const pitches = melody.notes.map((note) => note[2]);
    return [
      clamp(Math.min(low, ...pitches.map((pitch) => pitch - 2)), 0, 127),
      clamp(Math.max(high, ...pitches.map((pitch) => pitch + 2)), 0, 127),
    ];
  };

  /** The lock of a note: what sounds out of the gap ends with it; null where it does not begin in the gap. */
  const lockOf = (note, [from, to]) => {
    if (!note || note[0] < from || note[0] >= to) return null;
    return [note[0], Math.min(note[1], to - note[0]), note[2]];
  };

  const SAID = {
    none: "",
    rhythm: "The notes in the gap are a rhythm: where they begin and how long they are counts, in whichever row.",
    contour: "The notes in the gap are a contour: their pitches in their order count, wherever in the measure they are.",
  };

  const start = ({ element, props, watch }, { steps, measure, stepSec }) => {
    const px = matchMedia("(pointer: coarse)").matches ? 4 : 3;
    const find = (selector) => element.querySelector(selector);
    const [grid, keys, frame, where, unitOf] = [".grid", ".keys", ".scroll", ".where", ".unit"].map(find);
    const keeper = find("[data-do=keep]");
    let melody = EMPTY;
    let task = props.task;
    let gap = task.gap;
    let locks = [];
    let keeping = false;
    let past = [];
    let shown = [55, 79];
    let cursor = { step: 0, pitch: 67 };
    let drag = null;
    let playing = false;

    const unit = () => Number(unitOf.value);
    const here = () => noteAt(melody, cursor.step, cursor.pitch);
    const top = (pitch) => TOP + (shown[1] - pitch) * ROW;

    const paper = () => {
      const width = steps * px;
      const beats = [];
      for (let step = 0; step <= steps; step += measure / 4) {
        beats.push([step * px, step % measure ? null : melody.first_measure + step / measure]);
      }
      const { height, rows, lines, names } = ns.rollPaper.paper({ shown, row: ROW, top: TOP, width, beats });
      for (const [svg, wide] of [[grid, width], [keys, SIDE]]) {
        svg.setAttribute("width", wide);
        svg.setAttribute("height", height);
      }
      find(".playhead").setAttribute("y2", height);
      const span = shape("rect", { class: "gap", x: gap[0] * px, y: 0, width: (gap[1] - gap[0]) * px, height });
      find(".paper").replaceChildren(...rows, span, shape("text", { x: gap[0] * px + 30, y: 12 }, "gap"), ...lines);
      keys.replaceChildren(...names);
    };

    const inGap = () => melody.notes.filter(([onset]) => gap[0] <= onset && onset < gap[1]);

    const drawTask = () => {
      const middleOf = ([onset, duration, pitch]) => `${(onset + duration / 2) * px},${top(pitch) + ROW / 2}`;
      const bottom = top(shown[0]) + ROW;
      const sketch = {
        none: () => [],
        rhythm: () => inGap().map(([onset]) => line("onset", onset * px, onset * px, TOP, bottom)),
        contour: () => [shape("polyline", { points: inGap().map(middleOf).join(" ") })],
      };
      find(".sketch").replaceChildren(...sketch[task.sketch]());
      const outlines = locks.map(([onset, duration, pitch]) =>
        shape("rect", { x: onset * px, y: top(pitch), width: duration * px - 1, height: ROW - 1 }, "kept"),
      );
      find(".kept").replaceChildren(...outlines);
    };

    const draw = () => {
      const notes = melody.notes.map(([onset, duration, pitch]) => {
        const kind = gap[0] <= onset && onset < gap[1] ? "note inside" : "note";
        const box = { class: kind, x: onset * px, y: top(pitch), width: duration * px - 1, height: ROW - 1 };
        return shape("rect", box, pitchName(pitch));
      });
      const held = { class: "held", x: 0, y: TOP, width: melody.held * px, height: 5 };
      if (melody.held) notes.unshift(shape("rect", held, "holds a note from before"));
      find(".notes").replaceChildren(...notes);
      drawTask();
      const box = { x: cursor.step * px, y: top(cursor.pitch), width: unit() * px, height: ROW };
      for (const [name, value] of Object.entries(box)) find(".cursor").setAttribute(name, value);
    };

    const say = (what = "") => {
      const note = here();
      const count = melody.notes.length === 1 ? "1 note in all" : `${melody.notes.length} notes in all`;
      const at = `${place(cursor.step, melody.first_measure, measure)}, ${pitchName(cursor.pitch)}`;
      const lock = locks.some((one) => one[2] === cursor.pitch && one[0] <= cursor.step && cursor.step < endOf(one));
      const there = `${note ? `a note of ${note[1]} steps` : "empty"}${lock ? ", kept" : ""}`;
      where.textContent = `${what}${at}: ${there}. ${count}.`;
    };

    const show = (what) => {
      shown = fitted(melody, shown);
      paper();
      draw();
      say(what);
    };

    const send = (what) => {
      show(what);
      props.value = JSON.stringify(melody);
    };

    const change = (next, what) => {
      past = [...past, melody].slice(-MOST_UNDO);
      melody = next;
      send(what);
    };

    const load = () => {
      if (JSON.stringify(melody) === props.value) return;
      melody = { ...EMPTY, ...JSON.parse(props.value || "{}") };
      past = [];
      shown = [55, 79];
      show();
    };

    const toggle = () => {
      const note = here();
      if (note) change(remove(melody, note[0]), "Removed. ");
      else change(add(melody, cursor.step, cursor.pitch, unit(), steps), "Added. ");
    };

    const lengthen = (by) => {
      const note = here() || melody.notes.findLast(([onset]) => onset <= cursor.step);
      if (note) change(resize(melody, note[0], note[1] + by, steps), "Length changed. ");
    };

    const lock = () => {
      const { keep } = ns.kept;
      if (task.noLocks) {
        say(`${task.noLocks} `);
        return;
      }
      const held = locks.find((one) => one[2] === cursor.pitch && one[0] <= cursor.step && cursor.step < endOf(one));
      const note = held || lockOf(here(), gap);
      if (!note) {
        say("Only a note of the gap can be kept. ");
        return;
      }
      keep(note);
      say(held ? "Let go. " : "Kept. ");
    };

    const showKeeper = () => {
      keeping = keeping && !task.noLocks;
      keeper.setAttribute("aria-pressed", keeping);
      keeper.disabled = Boolean(task.noLocks);
      keeper.title = task.noLocks;
    };

    const retask = () => {
      task = props.task;
      gap = task.gap;
      find(".task").textContent = SAID[task.sketch];
      showKeeper();
      paper();
      draw();
    };

    const undo = () => {
      if (!past.length) return;
      melody = past.pop();
      send("Undone. ");
    };

    const view = (by) => {
      const [low, high] = shown;
      shown = by > 0 ? [low, clamp(high + by, 0, 127)] : [clamp(low + by, 0, 127), high];
      paper();
      draw();
    };

    const play = () => {
      if (playing) {
        window.musicEvalsPlayer.stop();
        return;
      }
      const button = find("[data-do=play]");
      const at = (x) => find(".playhead").setAttribute("transform", `translate(${x} 0)`);
      const ahead = melody.notes.some(([onset]) => onset >= cursor.step);
      window.musicEvalsPlayer.play(melody.notes, stepSec, {
        from: ahead ? snapped(cursor.step, measure) : 0,
        to: steps,
        onStep: (step) => at(step * px + 9),
        onEnd: () => {
          playing = false;
          button.textContent = "Play";
          at(0);
        },
      });
      playing = true;
      button.textContent = "Stop";
    };

    const move = (by, pitches) => {
      const step = by ? snapped(cursor.step, unit()) + by : cursor.step;
      cursor = { step: clamp(step, 0, steps - 1), pitch: clamp(cursor.pitch + pitches, 0, 127) };
      if (cursor.pitch > shown[1]) view(cursor.pitch - shown[1]);
      if (cursor.pitch < shown[0]) view(cursor.pitch - shown[0]);
      const x = cursor.step * px;
      const wide = frame.clientWidth;
      if (x < frame.scrollLeft || x + 30 > frame.scrollLeft + wide) frame.scrollLeft = x - wide / 2;
      draw();
      say();
    };

    const buttons = {
      play,
      undo,
      shorter: () => lengthen(-unit()),
      longer: () => lengthen(unit()),
      higher: () => view(12),
      lower: () => view(-12),
      keep: () => {
        keeping = !keeping;
        showKeeper();
      },
      gap: () => change(clear(melody, ...gap), "Emptied. "),
      all: () => change(clear(melody, 0, steps), "Emptied. "),
    };
    element.addEventListener("click", (event) => {
      const button = event.target.closest("[data-do]");
      if (button) buttons[button.dataset.do]();
    });
    unitOf.addEventListener("change", draw);

    const onKey = {
      ArrowLeft: (far) => (far ? lengthen(-unit()) : move(-unit(), 0)),
      ArrowRight: (far) => (far ? lengthen(unit()) : move(unit(), 0)),
      ArrowUp: (far) => move(0, far ? 12 : 1),
      ArrowDown: (far) => move(0, far ? -12 : -1),
      PageUp: () => move(-measure, 0),
      PageDown: () => move(measure, 0),
      Home: () => move(-steps, 0),
      End: () => move(steps, 0),
      Enter: toggle,
      " ": toggle,
      Delete: () => here() && toggle(),
      k: lock,
      p: play,
      u: undo,
      "ctrl+z": undo,
    };
    grid.addEventListener("keydown", (event) => {
      if (event.altKey || event.metaKey) return;
      const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
      const act = onKey[event.ctrlKey ? `ctrl+${key}` : key];
      if (!act) return;
      event.preventDefault();
      act(event.shiftKey);
    });

    const pointed = (event) => {
      const box = grid.getBoundingClientRect();
      const step = clamp(Math.floor((event.clientX - box.left) / px), 0, steps - 1);
      return { step, pitch: shown[1] - Math.floor((event.clientY - box.top - TOP) / ROW) };
    };
    const isTouch = (event) => event.pointerType === "touch";
    grid.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      const { step, pitch } = pointed(event);
      if (pitch > shown[1] || pitch < shown[0]) return;
      const hit = noteAt(melody, step, pitch);
      cursor = { step: hit ? hit[0] : snapped(step, unit()), pitch };
      drag = { keep: keeping, step, before: melody, hit: Boolean(hit), moved: false, x: event.clientX, y: event.clientY };
      if (keeping || isTouch(event)) return;
      event.preventDefault();
      grid.focus({ preventScroll: true });
      grid.setPointerCapture(event.pointerId);
      if (!hit) melody = add(melody, cursor.step, pitch, unit(), steps);
      draw();
    });
    grid.addEventListener("pointermove", (event) => {
      if (!drag || drag.keep || isTouch(event) || Math.abs(event.clientX - drag.x) < 3) return;
      drag.moved = true;
      melody = resize(melody, cursor.step, draggedLength(cursor.step, pointed(event).step, unit()), steps);
      draw();
    });
    grid.addEventListener("pointerup", (event) => {
      if (!drag) return;
      const { keep, step, before, hit, moved, x, y } = drag;
      drag = null;
      if (isTouch(event) && Math.hypot(event.clientX - x, event.clientY - y) > 8) return; // a swipe scrolls
      if (keep) {
        cursor.step = step;
        draw();
        lock();
        return;
      }
      let after = melody;
      if (hit && !moved) after = remove(melody, cursor.step);
      if (!hit && isTouch(event)) after = add(melody, cursor.step, cursor.pitch, unit(), steps);
      melody = before;
      if (JSON.stringify(after) === JSON.stringify(before)) draw();
      else change(after, hit ? (moved ? "" : "Removed. ") : "Added. ");
    });
    grid.addEventListener("pointercancel", () => {
      if (!drag) return;
      melody = drag.before;
      drag = null;
      draw();
    });
    watch("value", load);
    watch("task", retask);
    load();
    retask();
    ns.kept.follow((now) => {
      locks = now;
      draw();
    });
  };

  ns.rollEditor = { draggedLength, noteAt, add, remove, resize, clear, fitted, lockOf, start };
})((globalThis.musicEvals ||= {}));
