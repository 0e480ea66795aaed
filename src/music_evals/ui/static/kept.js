// Notes that a visitor locks: what the roll editor, the pictures of candidates and the list of locks say to each other.
//
// A lock is [onset, duration, pitch] in steps. The list holds the locks; the others ask it to change one ("keep"), and
// draw what it says ("kept").
((ns) => {
  "use strict";

  const KEEP = "musicEvals:keep";
  const KEPT = "musicEvals:kept";
  const ASKED = "musicEvals:asked";

  const same = (one, other) => one.every((value, index) => value === other[index]);
  const atOnce = ([onset, duration], [start, length]) => onset < start + length && start < onset + duration;

  /** Lock a note, or unlock it; what sounds at the same time is unlocked, for one note sounds at a time. */
  const toggled = (locks, note) => {
    if (locks.some((lock) => same(lock, note))) return locks.filter((lock) => !same(lock, note));
    return [...locks.filter((lock) => !atOnce(lock, note)), note].sort((a, b) => a[0] - b[0]);
  };

  /** A lock from text such as "144,6,60". */
  const read = (text) => text.split(",").map(Number);

  const send = (name, detail) => document.dispatchEvent(new CustomEvent(name, { detail }));

  /** Ask the list to lock a note or to unlock it. */
  const keep = (note) => send(KEEP, note);

  /** Call a function with the locks, now and whenever they change. */
  const follow = (show) => {
    document.addEventListener(KEPT, (event) => show(event.detail));
    send(ASKED);
  };

  /** Be the list: answer what is asked. */
  const serve = (onKeep, locks) => {
    document.addEventListener(KEEP, (event) => onKeep(event.detail));
    document.addEventListener(ASKED, () => send(KEPT, locks()));
  };

  const tell = (locks) => send(KEPT, locks);

  ns.kept = { same, toggled, read, keep, follow, serve, tell };
})((globalThis.musicEvals ||= {}));
