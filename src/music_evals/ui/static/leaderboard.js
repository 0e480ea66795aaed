// A table whose headings sort it, whose scores open their items, and that says when it is wider than the page.
((ns) => {
  "use strict";

  /** What a cell is sorted by: of the first column its text, of the others a number, or NaN where there is none. */
  const keyOf = (text, column) => {
    if (column === 0) return text.toLowerCase();
    return text === "" ? Number.NaN : Number(text);
  };

  /** Order of the rows as indices of their keys; undefined ones come last, whichever way it goes. */
  const order = (keys, falling) => {
    const compare = (a, b) => {
      const [x, y] = [keys[a], keys[b]];
      if (Number.isNaN(x) || Number.isNaN(y)) return Number.isNaN(x) - Number.isNaN(y);
      if (x === y) return 0;
      return x < y === falling ? 1 : -1;
    };
    return keys.map((_, index) => index).sort(compare);
  };

  const sort = (element, button) => {
    const column = Number(button.dataset.sort);
    const head = button.closest("th");
    const body = element.querySelector(".board tbody");
    const falling = head.getAttribute("aria-sort") === "ascending";
    for (const other of element.querySelectorAll(".board thead th")) other.setAttribute("aria-sort", "none");
    head.setAttribute("aria-sort", falling ? "descending" : "ascending");
    const rows = [...body.rows];
    const keys = rows.map((row) => keyOf(row.cells[column].dataset.value ?? "", column));
    body.append(...order(keys, falling).map((index) => rows[index]));
  };

  /** Show the hint where columns are out of sight. */
  const hint = (element) => {
    const board = element.querySelector(".board");
    const words = element.querySelector(".hint");
    if (board && words) words.hidden = board.scrollWidth <= board.clientWidth + 1;
  };

  const start = ({ element, trigger, watch }) => {
    element.addEventListener("click", (event) => {
      const score = event.target.closest("button[data-record]");
      const head = event.target.closest("button[data-sort]");
      if (score) trigger("click", { record: score.dataset.record });
      else if (head) sort(element, head);
    });
    watch("value", () => hint(element));
    new ResizeObserver(() => hint(element)).observe(element);
  };

  ns.leaderboard = { keyOf, order, start };
})((globalThis.musicEvals ||= {}));
