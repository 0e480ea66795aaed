// What an editor did, as a list of events [milliseconds, what, ...], and what can be counted from it.
//
//   load, submit, limit, blur, focus, hide, show
//   play [tick], stop [tick], select [notes]
//   key [category], midi [category], click [category, device]
//     categories: edit, transport, navigation, modifier, other
//   edit [operation, changes], undo [changes], redo [changes]      changes as in note_edits.js
//   idle [milliseconds]      nothing was done for so long, and now something is
//   absent [milliseconds]    the page was closed for so long; what is over a minute is not in the time
//
// The library counts the same from the same list (studies/editing/logs.py), and is the reference.
((ns) => {
  "use strict";

  const IDLE_MS = 60_000;
  const MODIFIERS = new Set(["Shift", "Control", "Alt", "Meta", "AltGraph", "CapsLock"]);
  const ACTIONS = new Set(["key", "click", "midi", "play", "stop", "select", "edit", "undo", "redo", "load"]);

  const sum = (values) => values.reduce((total, value) => total + value, 0);

  const count = (events) => {
    const of = (...names) => events.filter(([, what]) => names.includes(what));
    const last = events.at(-1);
    /** Milliseconds between what begins something and what ends it; what never ended does so with the log. */
    const between = (start, ends) => {
      let total = 0;
      let since = null;
      for (const [at, what] of [...events, [last[0], ends[0]]]) {
        if (what === start) since ??= at;
        else if (ends.includes(what) && since !== null) {
          total += at - since;
          since = null;
        }
      }
      return total;
    };
    const hidden = between("hide", ["show"]);
    const idle = sum(of("idle").map((event) => event[2]));
    const keys = of("key");
    const clicks = of("click");
    return {
      time_ms: last[0],
      active_ms: Math.max(0, last[0] - hidden - idle),
      playback_ms: between("play", ["stop", "submit", "limit"]),
      key_presses: keys.length,
      mouse_clicks: clicks.length,
      edit_key_presses: keys.filter((event) => event[2] === "edit").length,
      edit_clicks: clicks.filter((event) => event[2] === "edit").length,
      n_edits: of("edit").length,
      n_undone: of("undo").length,
      n_redone: of("redo").length,
      hit_limit: of("limit").length > 0,
      n_midi: of("midi").length,
    };
  };

  /**
   * A log that goes on from what was kept: its events, and the milliseconds that had passed. `now` gives milliseconds
   * that never go back; `away` is how long the page was closed since.
   */
  const open = (now, { events = [], elapsed: passed = 0, away = 0 } = {}) => {
    const begun = now() - passed - Math.min(away, IDLE_MS);
    const isResumed = events.length > 0;
    const elapsed = () => Math.max(Math.round(now() - begun), events.length ? events.at(-1)[0] : 0);
    let acted = elapsed();
    const add = (what, ...data) => {
      const at = elapsed();
      if (ACTIONS.has(what)) {
        // time in a hidden tab is left out as such, and not a second time as idleness
        const hidden = events.findLast((event) => event[1] === "show" || event[1] === "hide");
        const from = Math.max(acted, hidden ? hidden[0] : 0);
        if (at - from > IDLE_MS) events.push([at, "idle", at - from]);
        acted = at;
      }
      const event = [at, what, ...data];
      events.push(event);
      return event;
    };
    if (isResumed) add("absent", Math.round(away));
    return { add, elapsed, events };
  };

  /** Notes after all that a log holds, and what may be undone and redone. */
  const replay = (notes, events) => {
    const done = [];
    const undone = [];
    for (const [, what, ...data] of events) {
      if (what === "edit") {
        ns.noteEdits.apply(notes, data[1]);
        done.push(data[1]);
        undone.length = 0;
      } else if (what === "undo") {
        undone.push(done.pop());
        ns.noteEdits.apply(notes, data[0]);
      } else if (what === "redo") {
        done.push(undone.pop());
        ns.noteEdits.apply(notes, data[0]);
      }
    }
    return { notes, done, undone };
  };

  ns.editLog = { IDLE_MS, MODIFIERS, count, open, replay };
})((globalThis.musicEvals ||= {}));
