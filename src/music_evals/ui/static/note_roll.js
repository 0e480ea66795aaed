// A piano roll of several voices: what is selected, and what a pointer means.
//
// It draws and tells; it changes no note itself. Notes are those of note_edits.js; a sample is
//   {ticks_per_quarter, end_tick, voices: [name], locked: [voice], notes: [...], time_signatures: [[tick, num, den]]}
((ns) => {
  "use strict";

  const { ROW, clamp, pitchName, shape, snapped } = ns.pianoRoll;
  const SIDE = 34;
  const EDGE = 6; // pixels of the end of a note that resize it
  const SLACK = 3; // pixels that are no drag
  const ZOOMS = [8, 16, 24, 36, 54, 80, 120]; // pixels a quarter
  const COLOURS = 6;

  /** Ticks of beats, each with the number of the measure that begins there, or null. */
  const beatsOf = ({ ticks_per_quarter: quarter, end_tick: end, time_signatures: given }) => {
    const changes = given.length && given[0][0] === 0 ? given : [[0, 4, 4], ...given];
    const beats = [];
    let number = 1;
    changes.forEach(([from, numerator, denominator], index) => {
      const beat = (quarter * 4) / denominator;
      const to = index + 1 < changes.length ? changes[index + 1][0] : Math.max(end, from + beat * numerator);
      for (let count = 0; from + count * beat < to; count++) {
        beats.push([from + count * beat, count % numerator ? null : number++]);
      }
    });
    return beats;
  };

  /** Measure and beat of a tick, as a reader of music says it. */
  const placeOf = (beats, tick) => {
    const last = beats.findLastIndex(([at]) => at <= tick);
    const bar = beats.slice(0, last + 1).findLastIndex(([, number]) => number !== null);
    return `measure ${beats[bar][1]}, beat ${last - bar + 1}`;
  };

  const open = ({ root, sample, notes, locked, tell }) => {
    const given = sample.notes.map((note) => note[2]);
    const shown = [Math.min(21, ...given), Math.max(108, ...given)]; // a piano's keys
    const beats = beatsOf(sample);
    const grid = shape("svg", { class: "grid", tabindex: 0, role: "application", "aria-roledescription": "piano roll" });
    const keys = shape("svg", { class: "keys", "aria-hidden": "true" });
    const layers = Object.fromEntries(
      ["paper", "notes", "lifted", "over"].map((name) => [name, grid.appendChild(shape("g", { class: name }))]),
    );
    const [cursor, selectBox] = ["cursor", "box"].map((name) => layers.over.appendChild(shape("rect", { class: name })));
    const head = layers.over.appendChild(shape("line", { class: "playhead", y1: 0 }));
    const frame = document.createElement("div");
    frame.className = "roll";
    frame.append(keys, grid);
    root.append(frame);

    let selected = new Set();
    let zoom = 3;
    let drag = null;

    const scale = () => ZOOMS[zoom] / sample.ticks_per_quarter;
    const view = ns.pianoRoll.view({
      parts: { frame, grid, keys, paper: layers.paper, notes: layers.notes, cursor, head },
      end: sample.end_tick, shown, unit: sample.ticks_per_quarter / 4, side: SIDE, covered: SIDE, scale,
      beats: () => beats,
      notes: () => notes,
      look: (id, [, , , , voice]) => {
        const kind = locked.includes(voice) ? "locked" : `voice${voice % COLOURS}`;
        return { class: `note ${kind}${selected.has(id) ? " selected" : ""}` };
      },
    });
    const { draw, drawn, pointed, set, x } = view;

    /** Show notes elsewhere by moving the group that they are put into, however many they are. */
    const lift = (ids, ticks, pitches) => {
      if (layers.lifted.childElementCount !== ids.length) {
        layers.notes.append(...layers.lifted.children);
        layers.lifted.append(...ids.map((id) => drawn.get(id)));
      }
      layers.lifted.setAttribute("transform", `translate(${x(ticks)} ${-pitches * ROW})`);
    };

    const lower = () => {
      layers.notes.append(...layers.lifted.children);
      layers.lifted.removeAttribute("transform");
    };

    const select = (ids) => {
      const before = selected;
      selected = new Set(ids);
      for (const id of new Set([...before, ...selected])) {
        if (drawn.has(id) && before.has(id) !== selected.has(id)) view.restyle(id, notes.get(id));
      }
    };

    const grasp = (event) => {
      const id = event.target.dataset?.id;
      if (id === undefined) return null;
      const note = notes.get(Number(id));
      if (!note || locked.includes(note[4])) return null;
      const end = x(note[0] + note[1]) - pointed(event).px;
      return { id: Number(id), end: end < Math.min(EDGE, x(note[1]) / 3) };
    };

    grid.addEventListener("pointerdown", (event) => {
      const from = pointed(event);
      if (event.button !== 0) return;
      grid.focus({ preventScroll: true });
      const hit = grasp(event);
      if (from.onRuler) {
        tell.seek(snapped(from.tick, view.unit()));
        return;
      }
      const isTouch = event.pointerType === "touch";
      if (isTouch && !hit) {
        drag = { from, touch: true, x: event.clientX, y: event.clientY };
        return;
      }
      event.preventDefault();
      grid.setPointerCapture(event.pointerId);
      drag = { from, hit, moved: false, x: event.clientX, y: event.clientY, more: event.shiftKey, ...tell.grasped(hit, from, event.shiftKey) };
    });

    grid.addEventListener("pointermove", (event) => {
      if (!drag || drag.touch) return;
      if (!drag.moved && Math.hypot(event.clientX - drag.x, event.clientY - drag.y) < SLACK) return;
      drag.moved = true;
      const to = pointed(event);
      if (drag.hit || drag.draws) {
        const { ids, ticks, pitches, shift } = tell.dragged(drag, to);
        if (ids) lift(ids, ticks, pitches);
        else draw(shift);
        if (drag.draws) set(selectBox, view.box(drag.changes[0][2]));
        return;
      }
      const [left, top] = [Math.min(drag.from.px, to.px), Math.min(drag.from.py, to.py)];
      set(selectBox, { x: left, y: top, width: Math.abs(to.px - drag.from.px), height: Math.abs(to.py - drag.from.py) });
    });

    const release = () => {
      selectBox.setAttribute("width", 0);
      lower();
      drag = null;
    };

    grid.addEventListener("pointerup", (event) => {
      if (!drag) return;
      const { from, touch, moved } = drag;
      const ended = drag;
      const to = pointed(event);
      release();
      if (touch) {
        if (Math.hypot(event.clientX - ended.x, event.clientY - ended.y) < 8) tell.tapped(from);
      } else if (moved && !ended.hit && !ended.draws) {
        const ticks = [Math.min(from.tick, to.tick), Math.max(from.tick, to.tick)];
        const span = [Math.min(from.pitch, to.pitch), Math.max(from.pitch, to.pitch)];
        tell.boxed(ticks, span, ended.more);
      } else tell.dropped(ended, to);
      draw();
    });

    grid.addEventListener("pointercancel", () => {
      if (!drag) return;
      release();
      draw();
    });

    // a short piece fills the frame
    while (zoom + 1 < ZOOMS.length && (sample.end_tick / sample.ticks_per_quarter) * ZOOMS[zoom + 1] <= frame.clientWidth - SIDE) zoom++;
    view.drawAll();
    const middle = Math.round((Math.min(...given, 72) + Math.max(...given, 60)) / 2);
    frame.scrollTop = Math.max(0, view.y(middle) - frame.clientHeight / 2);

    return {
      ...view,
      grid,
      shown,
      select,
      selected: () => [...selected].filter((id) => notes.has(id)),
      zoomBy: (by) => {
        const centre = (frame.scrollLeft + frame.clientWidth / 2) / scale();
        zoom = clamp(zoom + by, 0, ZOOMS.length - 1);
        view.drawAll();
        frame.scrollLeft = centre * scale() - frame.clientWidth / 2;
      },
      describe: (tick, pitch) => `${placeOf(beats, tick)}, ${pitchName(pitch)}`,
      freeze: () => {
        frame.classList.add("frozen");
        frame.inert = true;
      },
    };
  };

  ns.noteRoll = { beatsOf, placeOf, open };
})((globalThis.musicEvals ||= {}));
