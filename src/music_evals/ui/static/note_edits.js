// Notes of several voices and the ways to change them, as plain values: no page, no time.
//
// Notes are a Map of id -> [onset, duration, pitch, velocity, voice], in ticks. An edit is a list of changes
// [id, before, after]; before is null where a note is new, after is null where it goes. What applies an edit backwards
// is its undo, so that a log of edits is all that it takes to tell what happened.
((ns) => {
  "use strict";

  const { clamp } = ns.pianoRoll;
  const endOf = ([onset, duration]) => onset + duration;
  const same = (one, other) => JSON.stringify(one) === JSON.stringify(other);
  const by = (notes) => (a, b) => notes.get(a)[0] - notes.get(b)[0] || notes.get(a)[2] - notes.get(b)[2] || a - b;

  const fromList = (list) => new Map(list.map((note, id) => [id, note]));

  /** Notes as a list in the order of their ids, as they are sent. */
  const toList = (notes) => [...notes.keys()].sort((a, b) => a - b).map((id) => [id, ...notes.get(id)]);

  const apply = (notes, changes) => {
    for (const [id, , after] of changes) {
      if (after) notes.set(id, after);
      else notes.delete(id);
    }
    return notes;
  };

  const backwards = (changes) => changes.map(([id, before, after]) => [id, after, before]).toReversed();

  /** The ids of a voice and pitch that sound together with one of the changed notes, which a MIDI file cannot hold. */
  const clashes = (notes, changes) => {
    const gone = new Set(changes.map(([id]) => id));
    const news = changes.filter(([, , after]) => after);
    const found = [];
    for (const [id, , [onset, duration, pitch, , voice]] of news) {
      const meets = (other) =>
        other[2] === pitch && other[4] === voice && other[0] < onset + duration && onset < endOf(other);
      for (const [key, other] of notes) if (!gone.has(key) && meets(other)) found.push(key);
      for (const [key, , other] of news) if (key !== id && meets(other)) found.push(key);
    }
    return found;
  };

  const changed = (notes, ids, change) =>
    ids
      .map((id) => [id, notes.get(id), change(notes.get(id))])
      .filter(([, before, after]) => !same(before, after));

  const add = (id, note) => [[id, null, note]];

  const remove = (notes, ids) => ids.map((id) => [id, notes.get(id), null]);

  /** Move notes as one, as far as all of them stay between 0 and `end` and on the keys. */
  const move = (notes, ids, ticks, pitches, end) => {
    const all = ids.map((id) => notes.get(id));
    const dt = clamp(ticks, -Math.min(...all.map(([onset]) => onset)), Math.max(0, end - Math.max(...all.map(endOf))));
    const dp = clamp(pitches, -Math.min(...all.map((note) => note[2])), 127 - Math.max(...all.map((note) => note[2])));
    return changed(notes, ids, ([onset, duration, pitch, ...rest]) => [onset + dt, duration, pitch + dp, ...rest]);
  };

  /** Make notes longer or shorter by the same, each at least `least` long (or as short as it is) and ending by `end`. */
  const resize = (notes, ids, ticks, least, end) =>
    changed(notes, ids, ([onset, duration, ...rest]) => {
      const shortest = Math.min(duration, least);
      return [onset, clamp(duration + ticks, shortest, Math.max(shortest, end - onset)), ...rest];
    });

  /** Cut notes in two at a tick that lies inside of them; the second part is a new note. */
  const split = (notes, ids, tick, nextId) => {
    let fresh = nextId;
    return ids.flatMap((id) => {
      const note = notes.get(id);
      const [onset, duration, ...rest] = note;
      if (tick <= onset || tick >= onset + duration) return [];
      return [[id, note, [onset, tick - onset, ...rest]], [fresh++, null, [tick, onset + duration - tick, ...rest]]];
    });
  };

  /** Join notes of one pitch and voice into the first of them, from its start to the last end. */
  const merge = (notes, ids) => {
    const groups = new Map();
    for (const id of ids.toSorted(by(notes))) {
      const key = `${notes.get(id)[2]} ${notes.get(id)[4]}`;
      groups.set(key, [...(groups.get(key) || []), id]);
    }
    return [...groups.values()].flatMap(([first, ...others]) => {
      if (!others.length) return [];
      const note = notes.get(first);
      const end = Math.max(...[first, ...others].map((id) => endOf(notes.get(id))));
      return [[first, note, [note[0], end - note[0], ...note.slice(2)]], ...remove(notes, others)];
    });
  };

  /** Copies of notes, as a whole directly behind them, on the grid. */
  const duplicate = (notes, ids, grid, end, nextId) => {
    const all = ids.map((id) => notes.get(id));
    const from = Math.min(...all.map(([onset]) => onset));
    const ticks = Math.ceil((Math.max(...all.map(endOf)) - from) / grid) * grid;
    const copies = all.map(([onset, ...rest]) => [onset + ticks, ...rest]);
    if (copies.some((note) => endOf(note) > end)) return [];
    return copies.map((note, place) => [nextId + place, null, note]);
  };

  /** Bring onsets and ends to the nearest line of the grid; a note keeps at least one unit of it. */
  const quantise = (notes, ids, grid, end) =>
    changed(notes, ids, ([onset, duration, ...rest]) => {
      const start = Math.min(Math.round(onset / grid) * grid, Math.max(0, end - grid));
      return [start, Math.max(grid, Math.round((onset + duration) / grid) * grid - start), ...rest];
    });

  /** What makes the notes the original ones again. */
  const reset = (notes, original) => {
    const ids = [...new Set([...notes.keys(), ...original.keys()])].sort((a, b) => a - b);
    const pairs = ids.map((id) => [id, notes.get(id) || null, original.get(id) || null]);
    return pairs.filter(([, before, after]) => !same(before, after));
  };

  /** The ids of notes that touch a box of ticks and pitches, of voices that are not locked. */
  const inside = (notes, [from, to], [low, high], locked) =>
    [...notes.keys()].filter((id) => {
      const note = notes.get(id);
      return note[0] < to && endOf(note) > from && low <= note[2] && note[2] <= high && !locked.includes(note[4]);
    });

  ns.noteEdits = {
    add, apply, backwards, clashes, duplicate, fromList, inside, merge, move, quantise, remove, reset, resize, split, toList,
  };
})((globalThis.musicEvals ||= {}));
