// Figures of piano rolls: their buttons play them, and a line shows where.
((ns) => {
  "use strict";

  /** Where a picture has to be scrolled so that x is seen; where it is seen already, nothing changes. */
  const scrolled = (x, left, width) => (x < left || x > left + width ? x - 20 : left);

  const start = ({ element, watch }, { stepPx, stepSec }) => {
    let pressed = null;

    const play = (button) => {
      const figure = button.closest("figure");
      const head = figure.querySelector(".playhead");
      const frame = figure.querySelector(".scroll");
      const words = button.textContent;
      const show = (x) => head.setAttribute("transform", `translate(${x} 0)`);
      button.textContent = "Stop";
      pressed = button;
      window.musicEvalsPlayer.play(JSON.parse(figure.dataset.notes), stepSec, {
        from: Number(button.dataset.from),
        to: Number(button.dataset.to),
        onStep: (step) => {
          show(step * stepPx + 9);
          frame.scrollLeft = scrolled(step * stepPx, frame.scrollLeft, frame.clientWidth);
        },
        onEnd: () => {
          if (pressed === button) pressed = null;
          button.textContent = words;
          show(0);
        },
      });
    };

    const showGap = () => {
      element.querySelectorAll(".roll").forEach((roll) => {
        roll.parentElement.scrollLeft = roll.querySelector(".span").x.baseVal.value - 40;
      });
    };

    const { read, keep, follow, same } = ns.kept;
    let locks = [];
    const showLocks = () => {
      element.querySelectorAll("[data-keep]").forEach((shown) => {
        const locked = locks.some((lock) => same(lock, read(shown.dataset.keep)));
        if (shown.matches("input")) shown.checked = locked;
        else shown.classList.toggle("locked", locked);
      });
    };
    follow((now) => {
      locks = now;
      showLocks();
    });
    element.addEventListener("change", (event) => {
      if (event.target.matches("input[data-keep]")) keep(read(event.target.dataset.keep));
    });

    element.addEventListener("click", (event) => {
      if (event.target.matches("rect[data-keep]")) keep(read(event.target.dataset.keep));
      const button = event.target.closest("figure button");
      if (!button) return;
      const again = pressed === button;
      window.musicEvalsPlayer.stop();
      if (!again) play(button);
    });
    watch("value", () => {
      window.musicEvalsPlayer.stop();
      showGap();
      showLocks();
    });
    showGap();
  };

  ns.rolls = { scrolled, start };
})((globalThis.musicEvals ||= {}));
