// What all piano rolls that are edited share: names of pitches and places, and the paper that notes are drawn on.
((ns) => {
  "use strict";

  const NAMES = ["C", "C#", "D", "D#", "E", "F", "F#", "G", "G#", "A", "A#", "B"];
  const SIXTHS = ["", " 1/6", " 1/3", " 1/2", " 2/3", " 5/6"];
  const BLACK = new Set([1, 3, 6, 8, 10]);

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
    if (name === "text") made.textContent = text;
    if (name === "rect" && text) made.append(shape("title", {}));
    if (name === "rect" && text) made.firstChild.textContent = text;
    return made;
  };

  const line = (kind, x1, x2, y1, y2) => shape("line", { class: kind, x1, x2, y1, y2 });

  /**
   * The shapes of empty paper: rows of black keys, lines of beats and measures with their numbers, names of keys.
   *
   * shown [lowest, highest] pitch; row and top in pixels; width in pixels; beats [x, number or null of a measure].
   */
  const paper = ({ shown: [low, high], row, top, width, beats }) => {
    const height = top + (high - low + 1) * row;
    const rows = [];
    const names = [];
    const lines = [];
    for (let pitch = low; pitch <= high; pitch++) {
      const y = top + (high - pitch) * row;
      if (isBlack(pitch)) rows.push(shape("rect", { class: "black", x: 0, y, width, height: row }));
      if ([0, 7].includes(pitch % 12)) names.push(shape("text", { x: 4, y: y + row - 2 }, pitchName(pitch)));
      if (pitch % 12 === 0) lines.push(line("bar", 0, width, y + row, y + row));
    }
    for (const [x, number] of beats) {
      const isBar = number !== null;
      lines.push(line(isBar ? "bar" : "line", x, x, isBar ? 0 : top, height));
      if (isBar && x < width) lines.push(shape("text", { x: x + 4, y: 12 }, number));
    }
    return { height, rows, lines, names };
  };

  ns.rollPaper = { clamp, isBlack, line, paper, pitchName, place, shape, snapped };
})((globalThis.musicEvals ||= {}));
