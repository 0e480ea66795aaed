// Pairs by metric: a table that is sorted by its heads, and a picture of the same rows, one metric against another. The
// rows are made of the data beside the table when they are shown; without this script the first of them stand there.
((ns) => {
  "use strict";

  const MOST_PX = 720, LEAST_PX = 320, LEFT = 64, RIGHT = 16, TOP = 14, BOTTOM = 52, NEAR_PX = 24;
  const COLOURS = ["accent", "second", "good", "bad", "ink", "muted"];
  // Colours and shapes have numbers of members without a common divisor, so that many systems look different.
  const SHAPES = [
    "M-5 0a5 5 0 1 0 10 0a5 5 0 1 0 -10 0Z", "M-4.5 -4.5h9v9h-9Z", "M0 -6L5.5 4.5h-11Z", "M0 -6L6 0L0 6L-6 0Z",
    "M0 6L5.5 -4.5h-11Z", "M-5 -2h3v-3h4v3h3v4h-3v3h-4v-3h-3Z", "M-6 0L-2 -1.6L0 -6L2 -1.6L6 0L2 1.6L0 6L-2 1.6Z",
  ];

  /** A text whose numbers are sorted by size: "9" before "10". */
  const padded = (text) => text.replace(/\d+/g, (digits) => digits.padStart(15, "0"));

  /** The order of values, in places: numbers by size, texts by their letters, and what is undefined always last. */
  const order = (values, descending) => {
    const sign = descending ? -1 : 1;
    const keys = values.map((value) => (typeof value === "string" ? padded(value) : value));
    return keys.map((_, i) => i).sort((i, j) => {
      const [a, b] = [keys[i], keys[j]];
      if (a === null || b === null) return (a === null) - (b === null) || i - j;
      return sign * ((a > b) - (a < b)) || i - j;
    });
  };

  /** Round numbers within a span, about n of them (3 or more). */
  const ticks = (low, high, n = 5) => {
    const rough = (high - low) / n, power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= rough * (1 - 1e-9));
    const found = [];
    for (let i = Math.ceil(low / step - 1e-9); i * step <= high + 1e-9 * step; i += 1) {
      found.push(Number((i * step).toPrecision(12)));
    }
    return found;
  };

  /** The span of an axis: that of its values and a little more, and more where they are all one. */
  const span = (values) => {
    const low = Math.min(...values), high = Math.max(...values);
    const room = high > low ? 0.05 * (high - low) : Math.max(0.5, 0.1 * Math.abs(high));
    return [low - room, high + room];
  };

  /** The place of the point that is nearest to another; -1 where none is near. */
  const nearest = (points, x, y, most) => {
    const far = points.map((point) => (point.x - x) ** 2 + (point.y - y) ** 2);
    const best = far.indexOf(Math.min(...far));
    return best >= 0 && far[best] <= most ** 2 ? best : -1;
  };

  /** A pair: texts of its cells, what each is sorted by, and its row, which is made when it is first shown. */
  class Pair {
    constructor(systems, [system, item, anchor, cells]) {
      this.system = String(system);
      this.anchor = anchor;
      this.texts = [item, systems[system], ...cells.map(([text]) => text)];
      const number = (value) => (value === null ? null : Number(String(value).replace("inf", "Infinity")));
      this.values = [item, systems[system], ...cells.map(([, value]) => number(value))];
    }

    get row() {
      if (!this.made) {
        this.made = document.createElement("tr");
        this.made.append(...this.texts.map((text, i) => {
          const cell = document.createElement(i ? "td" : "th");
          if (!i) cell.scope = "row";
          cell.textContent = text;
          return cell;
        }));
        if (this.anchor) {
          const link = Object.assign(document.createElement("a"), { href: `#${this.anchor}`, textContent: this.texts[0] });
          this.made.cells[0].replaceChildren(link);
        }
      }
      return this.made;
    }
  }

  const start = (root) => {
    const [plot] = root.querySelectorAll(".scatter > svg");
    const form = root.querySelector("form"), told = root.querySelector(".told");
    const body = root.querySelector("tbody"), heads = [...root.querySelectorAll("thead th")];
    const [more] = root.querySelectorAll(".more button");
    const titles = heads.map((head) => head.textContent);
    const controls = new Set([...root.querySelectorAll(".keys .control")].map((key) => Number(key.dataset.system)));
    const held = JSON.parse(root.querySelector("script").textContent);
    const rows = held.rows.map((given) => new Pair(held.systems, given));
    const table = root.querySelector("table");
    let shown = rows, all = false, points = [], current = -1, width = MOST_PX, height = 0;

    const make = (name, attributes, text = "") => {
      const made = document.createElementNS(plot.namespaceURI, name);
      for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
      made.textContent = text;
      return made;
    };

    const marker = (system, attributes = {}) => {
      const colour = `var(--${COLOURS[system % COLOURS.length]})`, hollow = controls.has(Number(system));
      return make("path", { d: SHAPES[system % SHAPES.length], fill: hollow ? "none" : colour, stroke: colour,
        "stroke-width": hollow ? 1.8 : 0.8, "fill-opacity": 0.75, ...attributes });
    };

    const wanted = ({ system }) => form.system.value === "" || form.system.value === system;

    const list = () => {
      const mine = shown.filter(wanted), most = all ? Infinity : Number(root.dataset.first);
      body.replaceChildren(...mine.slice(0, most).map(({ row }) => row));
      more.parentElement.hidden = mine.length <= Number(root.dataset.first);
      more.textContent = all ? `Show the first ${root.dataset.first}` : `Show all ${mine.length}`;
      more.setAttribute("aria-pressed", all);
    };

    const sortBy = (column) => {
      const descending = heads[column].getAttribute("aria-sort") === "ascending";
      heads.forEach((head, i) =>
        head.setAttribute("aria-sort", i !== column ? "none" : descending ? "descending" : "ascending"));
      shown = order(rows.map(({ values }) => values[column]), descending).map((i) => rows[i]);
      list();
    };

    const say = () => {
      const point = points[current];
      plot.querySelector(".ring")?.remove();
      body.querySelectorAll(".current").forEach((row) => row.classList.remove("current"));
      if (!point) return;
      plot.append(make("circle", { class: "ring", cx: point.x, cy: point.y, r: 10 }));
      point.of.row.classList.add("current");
      const [x, y] = [form.x, form.y].map((axis) => Number(axis.value) + 2);
      const values = [x, y].map((i) => `${titles[i]} ${point.of.texts[i]}`);
      told.textContent = `${point.of.values[0]}, ${point.of.values[1]}: ${values.join(", ")}`;
    };

    const room = () => Math.min(MOST_PX, Math.max(LEAST_PX, plot.parentElement.clientWidth));

    const axes = (x, y, spans) => {
      const [[left, right], [low, high]] = spans;
      const across = (value) => LEFT + ((value - left) / (right - left)) * (width - LEFT - RIGHT);
      const up = (value) => height - BOTTOM - ((value - low) / (high - low)) * (height - BOTTOM - TOP);
      for (const tick of ticks(left, right, width < MOST_PX ? 4 : 7)) {
        const at = across(tick);
        plot.append(make("line", { x1: at, x2: at, y1: TOP, y2: height - BOTTOM }),
          make("text", { x: at, y: height - BOTTOM + 16, "text-anchor": "middle" }, tick));
      }
      for (const tick of ticks(low, high, 6)) {
        const at = up(tick);
        plot.append(make("line", { x1: LEFT, x2: width - RIGHT, y1: at, y2: at }),
          make("text", { x: LEFT - 7, y: at + 4, "text-anchor": "end" }, tick));
      }
      const middle = (TOP + height - BOTTOM) / 2;
      plot.append(
        make("text", { class: "title", x: (LEFT + width - RIGHT) / 2, y: height - 12, "text-anchor": "middle" },
          titles[x]),
        make("text", { class: "title", x: 16, y: middle, "text-anchor": "middle", transform: `rotate(-90 16 ${middle})` },
          titles[y]));
      return [across, up];
    };

    const draw = () => {
      width = room();
      height = Math.round(width < MOST_PX ? 0.9 * width : 0.6 * width);
      plot.setAttribute("viewBox", `0 0 ${width} ${height}`);
      const [x, y] = [form.x, form.y].map((axis) => Number(axis.value) + 2);
      const chosen = rows.filter(wanted);
      const drawn = chosen.filter(({ values }) => Number.isFinite(values[x]) && Number.isFinite(values[y]));
      plot.replaceChildren();
      [points, current] = [[], -1];
      const left = chosen.length - drawn.length;
      told.textContent = `${drawn.length} pairs${left ? `; ${left} more are undefined or infinite in one of the two` : ""}`;
      if (!drawn.length) return;
      const [across, up] = axes(x, y, [x, y].map((i) => span(drawn.map(({ values }) => values[i]))));
      points = drawn.map((of) => ({ of, x: across(of.values[x]), y: up(of.values[y]) }));
      points.sort((a, b) => a.x - b.x || a.y - b.y);
      for (const point of points) {
        const dot = marker(point.of.system, { transform: `translate(${point.x} ${point.y})` });
        dot.append(make("title", {}, `${point.of.values[0]}, ${point.of.values[1]}`));
        plot.append(dot);
      }
    };

    const placeOf = (event) => {
      const { x, y } = new DOMPoint(event.clientX, event.clientY).matrixTransform(plot.getScreenCTM().inverse());
      return nearest(points, x, y, NEAR_PX);
    };

    const point = (place) => {
      if (place < 0 || place === current) return;
      current = place;
      say();
    };

    /** Go to where the chosen pair is drawn; to its row in the table where the page draws it nowhere. */
    const follow = () => {
      if (!points[current]) {
        told.textContent = "No pair is chosen yet: the arrow keys go from pair to pair.";
        return;
      }
      const { anchor, row } = points[current].of;
      if (anchor) {
        location.hash = anchor;
        return;
      }
      if (!row.isConnected) {
        all = true;
        list();
      }
      say();
      told.textContent += "; not drawn below, its row in the table is marked";
      row.tabIndex = -1;
      row.focus({ preventScroll: true });
      row.scrollIntoView({ block: "center" });
    };

    const keys = (event) => {
      const steps = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 };
      if (event.key in steps && points.length) {
        event.preventDefault();
        point((current + steps[event.key] + points.length + (current < 0 && steps[event.key] < 0)) % points.length);
      } else if (event.key === "Enter") {
        follow();
      }
    };

    heads.forEach((head, i) => {
      const button = document.createElement("button");
      Object.assign(button, { type: "button", textContent: head.textContent });
      head.replaceChildren(button);
      head.setAttribute("aria-sort", "none");
      button.addEventListener("click", () => sortBy(i));
    });
    root.querySelectorAll(".keys li").forEach((key) => key.querySelector("svg").append(marker(key.dataset.system)));
    form.addEventListener("change", () => {
      if (form.columns?.value) table.dataset.columns = form.columns.value;
      else delete table.dataset.columns;
      list();
      draw();
    });
    form.addEventListener("submit", (event) => event.preventDefault());
    more.addEventListener("click", () => {
      all = !all;
      list();
    });
    plot.addEventListener("pointermove", (event) => point(placeOf(event)));
    plot.addEventListener("click", (event) => {
      point(placeOf(event));
      if (placeOf(event) >= 0) follow();
    });
    plot.addEventListener("keydown", keys);
    form.hidden = false;
    plot.parentElement.hidden = false;
    if (form.columns) table.dataset.columns = form.columns.value;
    list();
    draw();
    new ResizeObserver(() => {
      if (room() !== width) draw();
    }).observe(plot.parentElement);
  };

  ns.pairList = { order, ticks, span, nearest, start };
})((globalThis.musicEvals ||= {}));
