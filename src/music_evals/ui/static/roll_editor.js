// A piano roll on which one voice is drawn: with a mouse, a finger or the keyboard.
//
// A melody is {first_measure, held, notes}, a note [onset, duration, pitch] in steps; at each step begins at most one.
((ns) => {
  "use strict";

  const { ROW, TOP, clamp, line, pitchName, place, shape, snapped } = ns.pianoRoll;
  const EMPTY = { first_measure: 1, held: 0, notes: [] };
  const RANGE = [55, 79]; // pitches to begin with
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
    let drag = null;
    let playing = false;

    const isInside = ([onset]) => gap[0] <= onset && onset < gap[1];
    const roll = ns.pianoRoll.view({
      parts: { frame, grid, keys, paper: find(".paper"), notes: find(".notes"), cursor: find(".cursor"), head: find(".playhead") },
      end: steps, shown: RANGE, unit: Number(unitOf.value), side: 30, scale: () => px,
      beats: () =>
        Array.from({ length: (4 * steps) / measure + 1 }, (_, beat) =>
          [(beat * measure) / 4, beat % 4 ? null : melody.first_measure + beat / 4]),
      notes: () => melody.notes.map((note) => [note[0], note]),
      look: (_, note) => ({ class: isInside(note) ? "note inside" : "note", title: pitchName(note[2]) }),
      under: (x, height) => [
        shape("rect", { class: "gap", x: x(gap[0]), y: 0, width: x(gap[1] - gap[0]), height }),
        shape("text", { x: x(gap[0]) + 30, y: 12 }, "gap"),
        ...(melody.held ? [shape("rect", { class: "held", x: 0, y: TOP, width: x(melody.held), height: 5 }, "holds a note from before")] : []),
      ],
    });
    const { x, y } = roll;
    const { unit } = roll;
    const here = () => noteAt(melody, roll.cursor().tick, roll.cursor().pitch);

    const drawTask = () => {
      const drawnNotes = melody.notes.filter(isInside);
      const middleOf = ([onset, duration, pitch]) => `${x(onset + duration / 2)},${y(pitch) + ROW / 2}`;
      const sketch = {
        none: () => [],
        rhythm: () => drawnNotes.map(([onset]) => line("onset", x(onset), x(onset), TOP, y(roll.shown()[0]) + ROW)),
        contour: () => [shape("polyline", { points: drawnNotes.map(middleOf).join(" ") })],
      };
      find(".sketch").replaceChildren(...sketch[task.sketch]());
      find(".kept").replaceChildren(...locks.map((lock) => shape("rect", roll.box(lock), "kept")));
    };

    const draw = () => {
      roll.draw();
      drawTask();
    };

    const lockHere = () => {
      const { tick, pitch } = roll.cursor();
      return locks.find((lock) => lock[2] === pitch && lock[0] <= tick && tick < endOf(lock));
    };

    const say = (what = "") => {
      const note = here();
      const count = melody.notes.length === 1 ? "1 note in all" : `${melody.notes.length} notes in all`;
      const { tick, pitch } = roll.cursor();
      const at = `${place(tick, melody.first_measure, measure)}, ${pitchName(pitch)}`;
      const there = `${note ? `a note of ${note[1]} steps` : "empty"}${lockHere() ? ", kept" : ""}`;
      where.textContent = `${what}${at}: ${there}. ${count}.`;
    };

    const show = (what, range = roll.shown()) => {
      roll.show(fitted(melody, range));
      drawTask();
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
      show("", RANGE);
    };

    const toggle = () => {
      const note = here();
      if (note) change(remove(melody, note[0]), "Removed. ");
      else change(add(melody, roll.cursor().tick, roll.cursor().pitch, unit(), steps), "Added. ");
    };

    const lengthen = (by) => {
      const note = here() || melody.notes.findLast(([onset]) => onset <= roll.cursor().tick);
      if (note) change(resize(melody, note[0], note[1] + by, steps), "Length changed. ");
    };

    const lock = () => {
      const { keep } = ns.kept;
      if (task.noLocks) {
        say(`${task.noLocks} `);
        return;
      }
      const held = lockHere();
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
      roll.drawAll();
      drawTask();
    };

    const undo = () => {
      if (!past.length) return;
      melody = past.pop();
      send("Undone. ");
    };

    const view = (by) => {
      const [low, high] = roll.shown();
      roll.show(by > 0 ? [low, clamp(high + by, 0, 127)] : [clamp(low + by, 0, 127), high]);
      drawTask();
    };

    const play = () => {
      if (playing) {
        window.musicEvalsPlayer.stop();
        return;
      }
      const button = find("[data-do=play]");
      const { tick } = roll.cursor();
      const ahead = melody.notes.some(([onset]) => onset >= tick);
      window.musicEvalsPlayer.play(melody.notes, stepSec, {
        from: ahead ? snapped(tick, measure) : 0,
        to: steps,
        onStep: (step) => roll.setHead(step + 9 / px), // it rests 9 pixels to the left, where it is not seen
        onEnd: () => {
          playing = false;
          button.textContent = "Play";
          roll.setHead(0);
        },
      });
      playing = true;
      button.textContent = "Stop";
    };

    const move = (by, pitches) => {
      const { tick, pitch } = roll.cursor();
      const next = clamp(pitch + pitches, 0, 127);
      const [low, high] = roll.shown();
      if (next > high) view(next - high);
      if (next < low) view(next - low);
      roll.moveCursor(by ? snapped(tick, unit()) + by : tick, next);
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
    unitOf.addEventListener("change", () => roll.setUnit(Number(unitOf.value)));

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

    const isTouch = (event) => event.pointerType === "touch";
    grid.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      const { tick: step, pitch, onRuler } = roll.pointed(event);
      if (onRuler) return;
      const hit = noteAt(melody, step, pitch);
      const first = hit ? hit[0] : snapped(step, unit());
      roll.setCursor(first, pitch);
      drag = { keep: keeping, step, first, pitch, before: melody, hit: Boolean(hit), moved: false, x: event.clientX, y: event.clientY };
      if (keeping || isTouch(event)) return;
      event.preventDefault();
      grid.focus({ preventScroll: true });
      grid.setPointerCapture(event.pointerId);
      if (!hit) melody = add(melody, first, pitch, unit(), steps);
      draw();
    });
    grid.addEventListener("pointermove", (event) => {
      if (!drag || drag.keep || isTouch(event) || Math.abs(event.clientX - drag.x) < 3) return;
      drag.moved = true;
      melody = resize(melody, drag.first, draggedLength(drag.first, roll.pointed(event).tick, unit()), steps);
      draw();
    });
    grid.addEventListener("pointerup", (event) => {
      if (!drag) return;
      const { keep, step, first, pitch, before, hit, moved } = drag;
      const far = Math.hypot(event.clientX - drag.x, event.clientY - drag.y);
      drag = null;
      if (isTouch(event) && far > 8) return; // a swipe scrolls
      if (keep) {
        roll.setCursor(step, pitch);
        lock();
        return;
      }
      let after = melody;
      if (hit && !moved) after = remove(melody, first);
      if (!hit && isTouch(event)) after = add(melody, first, pitch, unit(), steps);
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
