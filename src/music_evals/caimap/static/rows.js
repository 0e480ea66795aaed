// Keys of the editor of structures: a digit labels a line, rows are put in, and a line plays from where it begins.
((ns) => {
  "use strict";

  const MOST_ROWS = 400; // of `caimap.domain.structure`

  const labelNumber = (label, kind) => (label.replace(/\d+$/, "") === kind ? Number(label.slice(kind.length)) : 0);

  /** Label of a kind for a row: its next number after the rows above; where the row has the kind, the others in turn. */
  const nextLabel = (kind, labels, at) => {
    const free = Math.max(0, ...labels.slice(0, at).map((label) => labelNumber(label, kind))) + 1;
    const now = labelNumber(labels[at], kind);
    return `${kind}${now === 0 ? free : (now % free) + 1}`;
  };

  const field = (row, name) => row.querySelector(`[name^=${name}_]`);
  const wordsOf = (row) => field(row, "line").value.split("/")[0].trim();

  /** `player` is `{ audio, seek }`, or nothing where the song has no recording. */
  const start = (table, player) => {
    const form = table.closest("form");
    const { kinds, ...texts } = table.dataset;
    const rows = () => [...table.tBodies[0].rows];

    const say = (row, text) => { form.querySelector(".row-status").textContent = `${rows().indexOf(row) + 1}: ${text}`; };
    const changed = (one) => one.dispatchEvent(new Event("input", { bubbles: true }));
    const setLabel = (row, label) => {
      const select = field(row, "label");
      select.value = label;
      if (select.value !== label) select.add(new Option(label, label, true, true));
      changed(select);
      say(row, label || texts.same);
    };
    const turnRhyme = (row) => {
      field(row, "rhyme").click();
      say(row, `${texts.rhymes}: ${field(row, "rhyme").checked ? texts.yes : texts.no}`);
    };
    const insert = (row, place) => {
      if (rows().length >= MOST_ROWS) return;
      const made = row.cloneNode(true);
      made.dataset.start = made.dataset.noted = field(made, "reading").dataset.usual = "";
      made.querySelectorAll("[name]").forEach((one) => {
        if (one.type === "checkbox") one.checked = false;
        else one.value = "";
      });
      row[place](made);
      rows().forEach((each, number) => each.querySelectorAll("[aria-label]").forEach((one) => {
        one.ariaLabel = one.ariaLabel.replace(/\d+$/, number + 1);
        one.name = one.name.replace(/\d+$/, number);
      }));
      field(made, "line").focus(); // which says its number
      changed(field(made, "line"));
    };
    const note = (row) => {
      row.dataset.noted = row.dataset.start = player.audio.currentTime;
      say(row, `${texts.noted} ${ns.waveform.clock(player.audio.currentTime)}`);
    };
    const playFrom = (row) => {
      if (!row.dataset.start) return say(row, texts.untimed);
      player.seek(Number(row.dataset.start));
      return player.audio.play().catch(() => undefined);
    };

    /** What a key does in a row; nothing where it is the browser's. */
    const actOf = ({ key, code, altKey, shiftKey, target }, row) => {
      if (altKey) return code === "KeyN" && player ? () => note(row) : null;
      if (/^\d$/.test(key) && !target.matches("[name^=reading_]")) {
        if (key === "8") return () => playFrom(row);
        if (key === "9") return () => turnRhyme(row);
        const labels = rows().map((each) => field(each, "label").value);
        return () => setLabel(row, key === "0" ? "" : nextLabel(kinds.split(" ")[key - 1], labels, rows().indexOf(row)));
      }
      if (!target.matches("input")) return null;
      if (key === "Enter") return () => insert(row, shiftKey ? "before" : "after");
      const next = { ArrowUp: row.previousElementSibling, ArrowDown: row.nextElementSibling }[key];
      return next ? () => field(next, target.name.split("_")[0]).focus() : null;
    };
    table.addEventListener("keydown", (event) => {
      // 229 is a key that an input method has taken
      if (event.isComposing || event.keyCode === 229 || event.ctrlKey || event.metaKey) return;
      const row = event.target.closest("tbody tr");
      const act = row && actOf(event, row);
      if (!act) return;
      event.preventDefault();
      act();
    });
    table.addEventListener("click", ({ target }) => { if (target.matches(".from")) playFrom(target.closest("tr")); });
    table.addEventListener("input", ({ target }) => {
      const row = target.closest("tr");
      const [line, reading] = [field(row, "line"), field(row, "reading")];
      const [now, before] = [line.value, line.defaultValue].map((text) => text.trim().at(-1));
      reading.placeholder = now === before ? reading.dataset.usual : ""; // of the character that was there
      row.classList.toggle("begins", field(row, "label").value !== "");
    });

    // positions that were noted stay in this tab of the browser, with the words of their lines
    const store = `lines of ${form.getAttribute("action").replace(/\/submit$/, "")}`;
    const kept = JSON.parse(sessionStorage.getItem(store) ?? "[]");
    for (const row of rows()) {
      const at = kept.findIndex(([text]) => text === wordsOf(row));
      const [[, second] = []] = at < 0 ? [] : kept.splice(at, 1);
      if (second) row.dataset.noted = row.dataset.start = second;
    }
    addEventListener("pagehide", () => {
      sessionStorage.setItem(store, JSON.stringify(rows().map((row) => [wordsOf(row), row.dataset.noted])));
    });
    form.classList.add("has-keys");
  };

  ns.rows = { nextLabel, start };
})((globalThis.musicEvals ||= {}));
