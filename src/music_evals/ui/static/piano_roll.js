// The view of notes of several voices that are edited: paper, notes, selection, playhead, and what a pointer means.
//
// It draws and tells; it changes no note itself. Notes are those of note_edits.js; a sample is
//   {ticks_per_quarter, end_tick, voices: [name], locked: [voice], notes: [...], time_signatures: [[tick, num, den]]}
((ns) => {
  "use strict";

  const { clamp, paper, pitchName, shape } = ns.rollPaper;
  const ROW = 11;
  const TOP = 18;
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
    const [cursorBox, selectBox] = ["cursor", "box"].map((name) => layers.over.appendChild(shape("rect", { class: name })));
    const head = layers.over.appendChild(shape("line", { class: "playhead", y1: 0 }));
    const frame = document.createElement("div");
    frame.className = "roll";
    frame.append(keys, grid);
    root.append(frame);

    const drawn = new Map(); // id -> rect
    const seen = new Map(); // id -> the note that is drawn
    let selected = new Set();
    let zoom = 3;
    let unit = sample.ticks_per_quarter / 4;
    let cursor = { tick: 0, pitch: clamp(67, ...shown) };
    let at = 0;
    let drag = null;

    const scale = () => ZOOMS[zoom] / sample.ticks_per_quarter;
    const x = (tick) => tick * scale();
    const y = (pitch) => TOP + (shown[1] - pitch) * ROW;

    const place = (rect, [onset, duration, pitch]) => {
      rect.setAttribute("x", x(onset));
      rect.setAttribute("y", y(pitch));
      rect.setAttribute("width", Math.max(2, x(duration) - 1));
    };

    const classOf = (id, voice) => {
      const kind = locked.includes(voice) ? "locked" : `voice${voice % COLOURS}`;
      return `note ${kind}${selected.has(id) ? " selected" : ""}`;
    };

    /** Bring what is drawn up to what is there: only notes that changed are touched. */
    const draw = (shift = null) => {
      for (const id of drawn.keys()) {
        if (notes.has(id)) continue;
        drawn.get(id).remove();
        drawn.delete(id);
        seen.delete(id);
      }
      for (const [id, note] of notes) {
        if (!drawn.has(id)) {
          drawn.set(id, layers.notes.appendChild(shape("rect", { height: ROW - 1, "data-id": id })));
        }
        const now = shift?.get(id) || note;
        if (seen.get(id) !== now) {
          place(drawn.get(id), now);
          drawn.get(id).setAttribute("class", classOf(id, now[4]));
          seen.set(id, now);
        }
      }
    };

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

    const drawCursor = () => {
      const box = { x: x(cursor.tick), y: y(cursor.pitch), width: x(unit), height: ROW };
      for (const [name, value] of Object.entries(box)) cursorBox.setAttribute(name, value);
    };

    const drawHead = () => {
      head.setAttribute("transform", `translate(${x(at)} 0)`);
    };

    const drawPaper = () => {
      const width = x(sample.end_tick);
      const lines = beats.map(([tick, number]) => [x(tick), number]);
      const { height, rows, lines: ruled, names } = paper({ shown, row: ROW, top: TOP, width, beats: lines });
      for (const [svg, wide] of [[grid, width + 1], [keys, SIDE]]) {
        svg.setAttribute("width", wide);
        svg.setAttribute("height", height);
      }
      head.setAttribute("y2", height);
      layers.paper.replaceChildren(...rows, ...ruled);
      keys.replaceChildren(...names);
      seen.clear();
      draw();
      drawCursor();
      drawHead();
    };

    const select = (ids) => {
      const before = selected;
      selected = new Set(ids);
      for (const id of new Set([...before, ...selected])) {
        if (drawn.has(id) && before.has(id) !== selected.has(id)) {
          drawn.get(id).setAttribute("class", classOf(id, notes.get(id)[4]));
        }
      }
    };

    const reveal = (tick, pitch) => {
      const [px, py] = [x(tick), y(pitch)];
      if (px < frame.scrollLeft || px + 40 > frame.scrollLeft + frame.clientWidth - SIDE) {
        frame.scrollLeft = px - (frame.clientWidth - SIDE) / 2;
      }
      if (py < frame.scrollTop || py + ROW > frame.scrollTop + frame.clientHeight) {
        frame.scrollTop = py - frame.clientHeight / 2;
      }
    };

    const pointed = (event) => {
      const box = grid.getBoundingClientRect();
      const [px, py] = [event.clientX - box.left, event.clientY - box.top];
      const tick = clamp(Math.floor(px / scale()), 0, sample.end_tick - 1);
      return { px, py, tick, pitch: clamp(shown[1] - Math.floor((py - TOP) / ROW), ...shown), onRuler: py < TOP };
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
        tell.seek(from.tick - (from.tick % unit));
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
        if (drag.draws) {
          place(selectBox, drag.changes[0][2]);
          selectBox.setAttribute("height", ROW - 1);
        }
        return;
      }
      const [left, top] = [Math.min(drag.from.px, to.px), Math.min(drag.from.py, to.py)];
      const box = { x: left, y: top, width: Math.abs(to.px - drag.from.px), height: Math.abs(to.py - drag.from.py) };
      for (const [name, value] of Object.entries(box)) selectBox.setAttribute(name, value);
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
    drawPaper();
    frame.scrollTop = Math.max(0, y(Math.round((Math.min(...given, 72) + Math.max(...given, 60)) / 2)) - frame.clientHeight / 2);

    return {
      grid,
      shown,
      draw,
      select,
      selected: () => [...selected].filter((id) => notes.has(id)),
      cursor: () => cursor,
      unit: () => unit,
      moveCursor: (tick, pitch) => {
        cursor = { tick: clamp(tick, 0, sample.end_tick - 1), pitch: clamp(pitch, ...shown) };
        reveal(cursor.tick, cursor.pitch);
        drawCursor();
      },
      setUnit: (ticks) => {
        unit = ticks;
        drawCursor();
      },
      zoomBy: (by) => {
        const middle = (frame.scrollLeft + frame.clientWidth / 2) / scale();
        zoom = clamp(zoom + by, 0, ZOOMS.length - 1);
        drawPaper();
        frame.scrollLeft = middle * scale() - frame.clientWidth / 2;
      },
      setHead: (tick, follow) => {
        at = tick;
        drawHead();
        if (follow && (x(at) < frame.scrollLeft || x(at) > frame.scrollLeft + frame.clientWidth - SIDE - 20)) {
          frame.scrollLeft = x(at) - 20;
        }
      },
      head: () => at,
      describe: (tick, pitch) => `${placeOf(beats, tick)}, ${pitchName(pitch)}`,
      freeze: () => {
        frame.classList.add("frozen");
        frame.inert = true;
      },
    };
  };

  ns.pianoRoll = { beatsOf, placeOf, open };
})((globalThis.musicEvals ||= {}));
