// The list of notes that stay: it holds the locks, and each can be taken away.
((ns) => {
  "use strict";

  const NAMES = ["C", "C#", "D", "D#", "E", "F", "F#", "G", "G#", "A", "A#", "B"];
  const HOW = "None yet. In the roll, put the cursor on a note of the gap and press K; or tick notes of a candidate.";

  /** A lock in words; measures are counted in the sixteen. */
  const words = ([onset, duration, pitch], measure) => {
    const name = `${NAMES[pitch % 12]}${Math.floor(pitch / 12) - 1}`;
    const beat = 1 + Math.floor((4 * (onset % measure)) / measure);
    return `${name}, measure ${1 + Math.floor(onset / measure)} of 16, beat ${beat}, ${duration} steps`;
  };

  const start = ({ element, props, watch }, { measure }) => {
    const { keep, serve, tell, toggled } = ns.kept;
    const find = (selector) => element.querySelector(selector);
    let locks = [];

    const made = (lock) => {
      const item = document.createElement("li");
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = `${words(lock, measure)} \u2715`;
      button.setAttribute("aria-label", `Let go: ${words(lock, measure)}`);
      button.addEventListener("click", () => keep(lock));
      item.append(button);
      return item;
    };

    const show = () => {
      find("ul").replaceChildren(...locks.map(made));
      find("fieldset").disabled = Boolean(props.why) && !locks.length;
      find("[data-do=none]").disabled = !locks.length;
      find(".why").textContent = props.why || (locks.length ? "They are in every candidate that is filled next." : HOW);
      tell(locks);
    };

    const set = (next) => {
      locks = next;
      show();
      props.value = JSON.stringify(locks);
    };

    const load = () => {
      if (JSON.stringify(locks) === props.value) return;
      locks = JSON.parse(props.value || "[]");
      show();
    };

    find("[data-do=none]").addEventListener("click", () => set([]));
    serve(
      (note) => set(toggled(locks, note)),
      () => locks,
    );
    watch("value", load);
    watch("why", show);
    load();
    show();
  };

  ns.keptNotes = { words, start };
})((globalThis.musicEvals ||= {}));
