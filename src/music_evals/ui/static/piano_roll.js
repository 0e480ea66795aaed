// A piano roll that is edited: paper, notes, a cursor and a playhead, and where a pointer is; and how pitches and places
// are called. What is edited, and what a pointer does, is the editor's: roll_editor.js of one voice, note_roll.js of several.
((ns) => {
  "use strict";

  const NAMES = ["C", "C#", "D", "D#", "E", "F", "F#", "G", "G#", "A", "A#", "B"];
  const SIXTHS = ["", " 1/6", " 1/3", " 1/2", " 2/3", " 5/6"];
  const BLACK = new Set([1, 3, 6, 8, 10]);

  const ROW = 11;
  const TOP = 18;

  const clamp = (value, low, high) => Math.max(low, Math.min(high, value));
  const isBlack = (pitch) => BLACK.has(pitch % 12);

  /** The name of a pitch, 60 being C4. */
  const pitchName = (pitch) => `${NAMES[pitch % 12]}${Math.floor(pitch / 12) - 1}`;

  /** Where a step of equal measures of four beats lies, as a reader of music says it. */
  const place = (step, firstMeasure, measure) => {
    const beat = measure / 4;
    const rest = step % measure;
    const number = firstMeasure + Math.floor(step / measure);
    return `measure ${number}, beat ${1 + Math.floor(rest / beat)}${SIXTHS[((rest % beat) * 6) / beat]}`;
  };

  /** The start of the unit of note length in which a step lies. */
  const snapped = (step, unit) => step - (step % unit);

  const shape = (name, attributes, text) => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (name === "text" || name === "title") made.textContent = text;
    if (name === "rect" && text) made.append(shape("title", {}, text));
    return made;
  };

  const line = (kind, x1, x2, y1, y2) => shape("line", { class: kind, x1, x2, y1, y2 });

  /**
   * The shapes of empty paper: rows of black keys, lines of beats and measures with their numbers, names of keys.
   *
   * shown [lowest, highest] pitch; width in pixels; beats [x, number or null of a measure].
   */
  const paper = ({ shown: [low, high], width, beats }) => {
    const height = TOP + (high - low + 1) * ROW;
    const rows = [];
    const names = [];
    const lines = [];
    for (let pitch = low; pitch <= high; pitch++) {
      const y = TOP + (high - pitch) * ROW;
      if (isBlack(pitch)) rows.push(shape("rect", { class: "black", x: 0, y, width, height: ROW }));
      if ([0, 7].includes(pitch % 12)) names.push(shape("text", { x: 4, y: y + ROW - 2 }, pitchName(pitch)));
      if (pitch % 12 === 0) lines.push(line("bar", 0, width, y + ROW, y + ROW));
    }
    for (const [x, number] of beats) {
      const isBar = number !== null;
      lines.push(line(isBar ? "bar" : "line", x, x, isBar ? 0 : TOP, height));
      if (isBar && x < width) lines.push(shape("text", { x: x + 4, y: 12 }, number));
    }
    return { height, rows, lines, names };
  };

  /**
   * A view of notes [onset, duration, pitch, ...], in ticks; it draws and changes no note.
   *
   * parts {frame, grid, keys, paper, notes, cursor, head}: the element that scrolls, its SVGs, and groups and shapes of the
   * grid; end in ticks; side, the width of the keys, and covered, how much of it lies over the grid, in pixels; scale(),
   * pixels a tick; beats(), [tick, number or null of a measure]; notes(), [id, note]; look(id, note), {class, title};
   * under(x, height), shapes between paper and lines.
   */
  const view = ({ parts, end, shown, unit, side, covered = 0, scale, beats, notes, look, under = () => [] }) => {
    const { frame, grid, keys } = parts;
    const drawn = new Map(); // id -> rect
    const seen = new Map(); // id -> the note that is drawn
    let range = shown;
    let grain = unit;
    let cursor = { tick: 0, pitch: clamp(67, ...range) };
    let at = 0;
    const x = (tick) => tick * scale();
    const y = (pitch) => TOP + (range[1] - pitch) * ROW;
    const set = (element, attributes) => {
      for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    };
    const box = ([onset, duration, pitch]) =>
      ({ x: x(onset), y: y(pitch), width: Math.max(2, x(duration) - 1), height: ROW - 1 });

    const restyle = (id, note) => drawn.get(id)?.setAttribute("class", look(id, note).class);

    /** Bring what is drawn up to what is there, or to the notes of a shift: only notes that changed are touched. */
    const draw = (shift = null) => {
      const there = new Map(notes());
      for (const id of [...drawn.keys()].filter((key) => !there.has(key))) {
        drawn.get(id).remove();
        drawn.delete(id);
        seen.delete(id);
      }
      for (const [id, note] of there) {
        const now = shift?.get(id) || note;
        if (seen.get(id) === now) continue;
        if (!drawn.has(id)) drawn.set(id, parts.notes.appendChild(shape("rect", { "data-id": id })));
        const { title, ...attributes } = look(id, now);
        set(drawn.get(id), { ...box(now), ...attributes });
        if (title) drawn.get(id).replaceChildren(shape("title", {}, title));
        seen.set(id, now);
      }
    };

    const drawCursor = () => set(parts.cursor, { x: x(cursor.tick), y: y(cursor.pitch), width: x(grain), height: ROW });
    const drawHead = () => parts.head.setAttribute("transform", `translate(${x(at)} 0)`);

    const drawAll = () => {
      const width = x(end);
      const { height, rows, lines, names } = paper({ shown: range, width, beats: beats().map(([tick, number]) => [x(tick), number]) });
      for (const [svg, wide] of [[grid, width + 1], [keys, side]]) set(svg, { width: wide, height });
      parts.head.setAttribute("y2", height);
      parts.paper.replaceChildren(...rows, ...under(x, height), ...lines);
      keys.replaceChildren(...names);
      seen.clear();
      draw();
      drawCursor();
      drawHead();
    };

    const setCursor = (tick, pitch) => {
      cursor = { tick: clamp(tick, 0, end - 1), pitch: clamp(pitch, ...range) };
      drawCursor();
    };

    const reveal = ({ tick, pitch }) => {
      const [px, py, wide] = [x(tick), y(pitch), frame.clientWidth - covered];
      if (px < frame.scrollLeft || px + 40 > frame.scrollLeft + wide) frame.scrollLeft = px - wide / 2;
      if (py < frame.scrollTop || py + ROW > frame.scrollTop + frame.clientHeight) frame.scrollTop = py - frame.clientHeight / 2;
    };

    return {
      box, draw, drawAll, drawn, restyle, set, x, y,
      shown: () => range,
      show: (pitches) => {
        range = pitches;
        drawAll();
      },
      unit: () => grain,
      setUnit: (ticks) => {
        grain = ticks;
        drawCursor();
      },
      cursor: () => cursor,
      setCursor,
      moveCursor: (tick, pitch) => {
        setCursor(tick, pitch);
        reveal(cursor);
      },
      head: () => at,
      setHead: (tick, follow) => {
        at = tick;
        drawHead();
        if (follow && (x(at) < frame.scrollLeft || x(at) > frame.scrollLeft + frame.clientWidth - covered - 20)) {
          frame.scrollLeft = x(at) - 20;
        }
      },
      /** The tick and pitch where a pointer is, within the roll, and the place in pixels. */
      pointed: (event) => {
        const { left, top } = grid.getBoundingClientRect();
        const [px, py] = [event.clientX - left, event.clientY - top];
        const tick = clamp(Math.floor(px / scale()), 0, end - 1);
        return { px, py, tick, pitch: clamp(range[1] - Math.floor((py - TOP) / ROW), ...range), onRuler: py < TOP };
      },
    };
  };

  ns.pianoRoll = { ROW, TOP, clamp, isBlack, line, paper, pitchName, place, shape, snapped, view };
})((globalThis.musicEvals ||= {}));
