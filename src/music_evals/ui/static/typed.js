// Gradio notices what is typed by presses of keys: what is pasted, deleted or composed would leave old results there.
((ns) => {
  "use strict";

  /** Let every edit of a text count as a press of a key, one that writes nothing. */
  const start = () => {
    document.addEventListener("input", ({ target }) => {
      if (target.matches("[data-testid=textbox]")) target.dispatchEvent(new KeyboardEvent("keypress"));
    });
  };

  ns.typed = { start };
})((globalThis.musicEvals ||= {}));
